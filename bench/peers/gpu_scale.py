#!/usr/bin/env python3
"""One GPU against a group of them: passes, a logistic regression, K-Means' assignment, sampled products, ALS
and PageRank, with all of the data (strong), for dense passes and K-Means also with so much for each GPU
(weak), and with more data than a GPU is allowed to hold; the group's results against one GPU's, and its times
beside those that `kiln explain` predicts (docs/scaling.md).

Seconds are the least of several batches of calls, wall clock around a synchronised batch, so that what meets
after a pass counts.

usage: gpu_scale.py [--gpus 1,2] [--cases dense,weak,...] [--kiln TOOL] [--json FILE] [--commit TEXT]
To try the script where there are no GPUs: --device cpu --same --shrink 1000
"""
import argparse
import dataclasses
import functools
import json
import subprocess
import time
from typing import Callable

import numpy as np

import kiln_c as kiln
import pagerank
from gpu_common import keep
from gpu_sparse import make

BATCHES, BATCH_SECONDS = 5, 0.03
shrink = 1  # what rows, vertices and columns beyond a thousand are divided by


def least_time(device, call):
    """Times a call, after three that build kernels, look at X's rows and columns, and derive from it."""
    for _ in range(3):
        call()
    device.synchronize()
    begin = time.perf_counter()
    call()
    device.synchronize()
    count = max(2, int(BATCH_SECONDS / max(time.perf_counter() - begin, 1e-6)))
    least = np.inf
    for _ in range(BATCHES):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        device.synchronize()
        least = min(least, (time.perf_counter() - begin) / count)
    return least


def passes(device, X, cols):
    rows = X.shape[0]
    y, v, w = (device.dense(n, 1, np.float32) for n in (cols, rows, cols))
    y.fill_random(1, 1), v.fill_random(1, 2, normal=False)
    seconds = least_time(device, lambda: kiln.mmchain(w, 1.0, X, v, y))
    result = w.numpy()[:, 0]
    for m in (X, y, v, w):
        m.free()
    return seconds, result


def dense(device, gpus, data):
    return passes(device, device.dense(*data.shape, np.float32, data), data.shape[1])


def weak(case):
    """The same with so much for each GPU."""
    def run(device, gpus, data):
        return case(device, gpus, np.tile(data, (gpus, 1)))[0], None
    return run


def sparse(device, gpus, data):
    shape, arrays = data
    return passes(device, device.sparse(shape, np.float32, *arrays), shape[1])


def logreg(device, gpus, data):
    host, target = data
    X, y = device.dense(*host.shape, np.float32, host), device.dense(len(target), 1, np.float32, target)
    W, b = device.dense(host.shape[1], 1, np.float32), device.dense(1, 1, np.float32)
    seconds = [kiln.fit("logreg", W, b, X, y, l2=1.0).seconds for _ in range(6)]
    result = W.numpy()[:, 0]
    for m in (X, y, W, b):
        m.free()
    return min(seconds), result


def kmeans(device, gpus, data):
    k = 100
    X, C = device.dense(*data.shape, np.float32, data), device.dense(k, data.shape[1], np.float32, data[:k])
    sums, totals = device.dense(k, data.shape[1], np.float32), np.empty((k, 2))
    to = kiln.struct("assignment", sums=sums, totals=totals)
    seconds = least_time(device, lambda: kiln.call("assign", to, X, C, None))
    result = sums.numpy().ravel()
    for m in (X, C, sums):
        m.free()
    return seconds, result


def sddmm(device, gpus, data):
    shape, arrays = data
    k = 128
    S = device.sparse(shape, np.float32, *arrays)
    a, b = (device.dense(n, k, np.float32).fill_random(1, n, normal=False) for n in shape)
    p = kiln.like(device, S)
    sample = kiln.struct("sample", kind=1, S=S, A=a, B=b)
    seconds = least_time(device, lambda: kiln.call("sddmm", p, None, 1, sample, 0))
    result = np.empty(len(arrays[1]), np.float32)
    kiln.call("matrix_get", result, p)
    for m in (p, S, a, b):
        m.free()
    return seconds, result


def als(device, gpus, data):
    """A sweep, with what a run of several takes beside them."""
    shape, arrays = data
    sweeps, seconds = 4, []
    R = device.sparse(shape, np.float32, *arrays)
    A, B = (device.dense(n, 64, np.float32) for n in shape)
    for _ in range(3):
        report = kiln.fit("als", A, B, R, l2=10.0, tolerance=1e-9, max_iterations=sweeps, seed=1)
        seconds.append(report.seconds / sweeps)
    for m in (R, A, B):
        m.free()
    return min(seconds), np.array([report.objective])


def ranks(device, gpus, data):
    shape, (start, col, values) = data
    A = device.sparse(shape, np.float32, start, col, values)
    of = pagerank.Ranks(device, A, np.float32, 0)
    seconds = least_time(device, of.steps) / pagerank.STEPS
    result = of.P.numpy()[:, 0]
    of.free()
    A.free()
    return seconds, result


# ---- data


def smaller(*counts):
    return [n if n <= 1000 else max(n // shrink, 64) for n in counts]


def dense_points(rows, cols, seed=1):
    """Repeated blocks: how long a pass takes does not hang on the numbers."""
    rows = smaller(rows)[0]
    block = np.random.default_rng(seed).standard_normal((rows // 11, cols), dtype=np.float32)
    return np.tile(block, (11, 1))


def host_arrays(shape, arrays):
    import cupy
    made = [cupy.asnumpy(part) for part in arrays]
    cupy.get_default_memory_pool().free_all_blocks()
    return shape, made


@functools.lru_cache(1)
def entries(rows, cols, mean, kind):
    rows, cols = smaller(rows, cols)
    return host_arrays((rows, cols), make(rows, cols, mean, kind, np.float32))


def links(vertices, each):
    import cupy
    vertices = smaller(vertices)[0]
    start, col = pagerank.made("made", vertices, each, xp=cupy)
    return host_arrays((vertices, vertices), (start, col, cupy.ones(len(col), cupy.float32)))


def labelled():
    X = dense_points(11_000_000, 28)
    rng = np.random.default_rng(2)
    truth = rng.standard_normal(28).astype(np.float32) / 3
    return X, (rng.random(len(X), dtype=np.float32) < 1 / (1 + np.exp(-X @ truth))).astype(np.float32)


@dataclasses.dataclass
class Case:
    title: str
    run: Callable
    data: Callable
    explain: tuple = ()  # the verb, rows, columns, entries (0: dense), k, whose pass `kiln explain` predicts
    passes: int = 1  # of those, in what is measured
    weak: bool = False
    budget: float = 0  # bytes of a GPU's memory, where it is to have less than it has


KMEANS = ("kmeans", 33_000_000, 32, 0, 100)
CASES = {
    "dense": Case("a pass over dense 11M x 28", dense, lambda: dense_points(11_000_000, 28),
                  ("linreg", 11_000_000, 28, 0, 1)),
    "logreg": Case("logistic regression, dense 11M x 28", logreg, labelled),
    "kmeans": Case("nearest of 100 centres and their sums, 33M x 32", kmeans,
                   lambda: dense_points(33_000_000, 32, 3), KMEANS),
    "kdd": Case("a pass over KDD2010-shaped 15M x 29.9M", sparse,
                lambda: entries(15_009_374, 29_890_095, 28.24, "zipf"),
                ("linreg", 15_009_374, 29_890_095, 423_865_484, 1)),
    "pagerank": Case("a step of PageRank, 16.8M pages, 266M links", ranks, lambda: links(1 << 24, 16),
                     ("pagerank", 1 << 24, 1 << 24, 266_055_339, 1)),
    "sddmm": Case("sampled products, 2M x 1M, 30 a row, k = 128", sddmm,
                  lambda: entries(2_000_000, 1_000_000, 30, "uniform")),
    "als": Case("a sweep of ALS, 2M x 1M, 30 a row, 64 factors", als,
                lambda: entries(2_000_000, 1_000_000, 30, "uniform"),
                ("als", 2_000_000, 1_000_000, 60_000_000, 64), passes=4),
    "wide": Case("a pass over dense 1.1M x 1,000", dense, lambda: dense_points(1_100_000, 1000),
                 ("linreg", 1_100_000, 1000, 0, 1)),
    "weak": Case("a pass over dense 11M x 28 a GPU", weak(dense), lambda: dense_points(11_000_000, 28),
                 ("linreg", 11_000_000, 28, 0, 1), weak=True),
    "weak-kmeans": Case("nearest of 100 centres and their sums, 11M x 32 a GPU", weak(kmeans),
                        lambda: dense_points(11_000_000, 32, 3), ("kmeans", 11_000_000, 32, 0, 100),
                        weak=True),
    "large": Case("a pass over dense 66M x 28", dense, lambda: dense_points(66_000_000, 28),
                  ("linreg", 66_000_000, 28, 0, 1)),
    "beyond": Case("a pass over dense 66M x 28, of which a GPU may hold 1 / 1.5", dense,
                   lambda: dense_points(66_000_000, 28), ("linreg", 66_000_000, 28, 0, 1),
                   budget=66e6 * 28 * 4 / 1.5),
}


def differs(one, other):
    return None if one is None or other is None else float(np.abs(one - other).max() / np.abs(one).max())


def describe():
    try:
        told = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False)
        return told.stdout.split("\n")[0]
    except FileNotFoundError:
        return "no GPU"


def predicted(tool, case, counts):
    """GPUs -> milliseconds."""
    if not tool or not case.explain:
        return {}
    verb, rows, cols, nnz, k = case.explain
    made = {}
    for gpus in counts:
        command = [tool, "explain", verb, "--rows", rows * (gpus if case.weak else 1), "--columns", cols,
                   "--type", "f32", "--gpus", gpus, "--json"]
        command += (["--nnz", nnz] if nnz else []) + (["--k", k] if k > 1 else [])
        told = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        made[gpus] = json.loads(told.stdout)["scaling"][-1]["pass_seconds"] * 1e3 * case.passes
    return made


def open_device(options, gpus, budget):
    name = options.device
    if gpus > 1:
        name = (f"{name}*{gpus}" if options.same else name.split(":")[0] + ":"
                + ",".join(str(i) for i in range(gpus)))
    return kiln.Device(name, memory=int(budget / shrink))


def measure(case, options, counts):
    """A row for each number of GPUs."""
    expected, host, rows, first = predicted(options.kiln, case, counts), case.data(), [], None
    for gpus in counts:
        device = open_device(options, gpus, case.budget)
        seconds, result = case.run(device, gpus, host)
        row = {"what": case.title, "gpus": gpus, "ms": seconds * 1e3}
        if gpus in expected:
            row["predicted_ms"] = expected[gpus]
        if first:
            row["times"] = first[0] / seconds * (gpus if case.weak else 1)
            row["difference"] = differs(first[1], result)
        first = first or (seconds, result)
        rows.append(row)
        del device  # and so closed before the next one is opened
        print(f"{case.title}, {gpus} GPU: {row['ms']:.3f} ms" + (f", predicted {row['predicted_ms']:.3f}"
                                                                 if "predicted_ms" in row else "") +
              (f", {row['times']:.2f} times, differs by {row['difference'] or 0:.0e}" if "times" in row
               else ""), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--device", default="cuda:0", help="the first device")
    parser.add_argument("--same", action="store_true",
                        help="parts of one device in place of several, to try the script")
    parser.add_argument("--shrink", type=int, default=1,
                        help="divide rows and columns by this, to try the script")
    parser.add_argument("--kiln", help="the tool, for what it predicts")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    global shrink
    shrink = options.shrink
    counts, rows = [int(count) for count in options.gpus.split(",")], []
    for name in options.cases.split(","):
        begin = time.perf_counter()
        try:
            rows += [{"case": name, **row} for row in measure(CASES[name], options, counts)]
        except (kiln.KilnError, MemoryError) as error:  # the other cases are worth having
            print(f"{name} FAILED: {error}", flush=True)
            rows.append({"case": name, "failed": str(error)})
        print(f"  ({time.perf_counter() - begin:.0f} s)", flush=True)
        keep(options.json, "one GPU against a group", describe(), options.commit, rows)


if __name__ == "__main__":
    main()
