#!/usr/bin/env python3
"""The time that a GPU's first calls take beside their work. `calls`: fits in processes of their own, with empty caches
(Kiln's, and the one that NVRTC 13 keeps through the driver) and again with what the first has kept: seconds
of the call, and of building or loading its kernels. `layouts`: for a sparse X the passes as they come, with
kernels already built; the layout is made before the pass that first finds it worth having, and `saving` is
what a pass takes less from then on.

usage: gpu_first_call.py [--device cuda] [--what calls,layouts] [--cases NAME,...] [--json FILE] [--commit TEXT]
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import kiln_c as kiln
from gpu_common import median_time

# name: (verb, rows, columns, entries of a row or None for dense X)
CALLS = {
    "ridge": ("linreg", 1_000_000, 28, None),
    "logistic": ("logreg", 1_000_000, 28, None),
    "logistic, sparse": ("logreg", 1_000_000, 100_000, 10),
}
LAYOUTS = ["million-zipf", "kdd", "kdd-shuffled", "kdd-uniform"]


def operands(device, rows, cols, entries):
    rng = np.random.default_rng(1)
    if entries:
        col = rng.integers(0, cols // entries, (rows, entries)) + np.arange(entries) * (cols // entries)
        X = device.sparse((rows, cols), np.float32, np.arange(rows + 1) * entries, col.ravel(),
                          rng.standard_normal(rows * entries))
    else:
        X = device.dense(rows, cols, np.float32, rng.standard_normal((rows, cols), np.float32))
    return X, device.dense(rows, 1, np.float32, rng.integers(0, 2, rows))


def one_call(device_name, name):
    """In a process of its own; the result as JSON on standard output."""
    verb, rows, cols, entries = CALLS[name]
    device = kiln.Device(device_name)
    X, y = operands(device, rows, cols, entries)
    w, b = device.dense(cols, 1, np.float32), device.dense(1, 1, np.float32)
    rows_of = []
    for _ in range(2):
        before, start = device.statistics(), time.perf_counter()
        kiln.fit(verb, w, b, X, y, l2=1.0)
        device.synchronize()
        seconds, after = time.perf_counter() - start, device.statistics()
        rows_of.append({"ms": seconds * 1e3, "kernels_ms": (after["build_seconds"] - before["build_seconds"])
                        * 1e3,
                        "built": after["kernels_built"] - before["kernels_built"],
                        "cached": after["kernels_cached"] - before["kernels_cached"]})
    print(json.dumps({"first": rows_of[0], "second": rows_of[1]}))


def calls(device_name):
    found = []
    for name in CALLS:
        with tempfile.TemporaryDirectory() as folder:
            row = {"call": name, "rows": CALLS[name][1], "columns": CALLS[name][2]}
            for process in ("empty cache", "filled cache"):
                made = subprocess.run([sys.executable, __file__, "--device", device_name, "--one", name],
                                      capture_output=True, text=True,
                                      env={**os.environ, "KILN_CACHE_DIR": folder, "CUDA_CACHE_PATH": folder
                                           + "/driver"}, check=False)
                if made.returncode:
                    raise SystemExit(f"{name}: {made.stderr}")
                row[process] = json.loads(made.stdout.splitlines()[-1])
            found.append(row)
            print(name,
                  "; ".join("{}: {ms:.0f} ms, kernels {kernels_ms:.0f} ms, {built} built, {cached} cached".format(process, **row[process]["first"])
                            for process in ("empty cache", "filled cache")),
                  "; again {ms:.1f} ms".format(**row["filled cache"]["second"]), flush=True)
    return found


def one_layout(device, name, host, shape, passes=4):
    X = device.sparse(shape, np.float32, *host)
    v, y = (device.dense(shape[0], 1, np.float32, np.ones(shape[0])),
            device.dense(shape[1], 1, np.float32, np.ones(shape[1])))
    w, taken = device.dense(shape[1], 1, np.float32), []
    for _ in range(passes):
        before, start = device.statistics(), time.perf_counter()
        kiln.mmchain(w, 1.0, X, v, y)
        device.synchronize()
        seconds, after = time.perf_counter() - start, device.statistics()
        build = after["build_seconds"] - before["build_seconds"]
        taken.append({"ms": (seconds - build) * 1e3, "kernels_ms": build * 1e3,
                      "layout_ms": max(after["layout_seconds"] - before["layout_seconds"] - build, 0) * 1e3})
    usual = median_time(lambda: kiln.mmchain(w, 1.0, X, v, y), device.synchronize) * 1e3
    for matrix in (X, v, y, w):
        matrix.free()
    layout, plain = sum(row["layout_ms"] for row in taken), taken[0]["ms"] - taken[0]["layout_ms"]
    return {"case": name, "rows": shape[0], "columns": shape[1], "nnz": len(host[1]), "passes": taken,
            "pass_ms": usual, "layout_ms": layout, "saving_ms": plain - usual,
            "passes_to_pay": layout / (plain - usual) if plain > usual else None}


def layouts(device, cases):
    """Each twice: the first one's kernels are built on the way."""
    import cupy
    from gpu_sparse import CASES, make
    found = []
    for name in cases:
        rows, cols, mean, kind = CASES[name]
        made = make(rows, cols, mean, kind, np.float32)
        host = [part.get() for part in made]
        del made
        cupy.get_default_memory_pool().free_all_blocks()
        one_layout(device, name, host, (rows, cols))
        row = one_layout(device, name, host, (rows, cols))
        found.append(row)
        print("{case}: passes {}, then {pass_ms:.2f} ms; layout {layout_ms:.1f} ms, {:.1f} passes' saving".format(
            " ".join(f"{p['ms']:.1f}" for p in row["passes"]), row["passes_to_pay"] or np.inf, **row),
              flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--what", default="calls,layouts")
    parser.add_argument("--cases", default=",".join(LAYOUTS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    if options.one:
        return one_call(options.device, options.one)
    found = {"calls": calls(options.device)} if "calls" in options.what else {}
    device = kiln.Device(options.device)
    if "layouts" in options.what:
        found["layouts"] = layouts(device, options.cases.split(","))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "first calls on a GPU", "device": f"{device.name}: {device.description}",
                       "kiln": kiln.version, "date": datetime.date.today().isoformat(),
                       "commit": options.commit, **found}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
