#!/usr/bin/env python3
"""mmchain on the CPU, w = X^T (v .* (X y)), with 1, 2, 4, 8 and 16 threads, against the roof (read bandwidth
with as many threads) and against NumPy with OpenBLAS on as many threads (dense), SciPy (CSR, one thread is
all it has), and MKL on as many threads (CSR, where sparse_dot_mkl can be imported). The bytes that a pass
cannot do without are those of X and v, once.

usage: cpu_mmchain.py [--json FILE] [--commit TEXT] [--threads N,N,...] [--cases N,N,...]
Kiln and each peer run in processes of their own, on the same data, made from a seed in each. Figures are the
fastest of several calls: on a shared machine others can only slow a call down. About two minutes on 16 cores.
With --cases, only some of the shapes, numbered from 0; FILE then keeps the rows that it has of the others, if
they are of the same commit.
Kiln is also run as a deterministic device, and its first two calls, in which it derives what it keeps with X,
are noted.
"""
import argparse
import datetime
import glob
import json
import os
import platform
import subprocess
import sys
import time

CASES = [("csr", 500_000, 4096, 40), ("csr", 2_000_000, 1024, 10), ("csr", 200_000, 2000, 50),
         ("csr", 600_000, 1_000_000, 30), ("dense", 8_000_000, 7, 0), ("dense", 2_000_000, 28, 0),
         ("dense", 250_000, 257, 0), ("dense", 64_000, 1024, 0), ("dense", 16_000, 4096, 0),
         ("dense", 1_500, 50_000, 0), ("dense", 750, 100_000, 0)]
TYPES = ("float64", "float32")
THREADS = (1, 2, 4, 8, 16)


def once(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def fastest(call, least=0.25):
    call()
    times, begin = [], time.perf_counter()
    while len(times) < 4 or time.perf_counter() - begin < least:
        times.append(once(call))
    return min(times)


def make(case):
    """X in float64."""
    import numpy as np
    from gpu_common import distinct_csr
    kind, rows, cols, per_row = case
    if kind == "csr":
        return distinct_csr(rows, cols, per_row, np.float64, 6)
    return np.random.default_rng(6).random((rows, cols)) - 0.5


def vectors(case, dtype):
    import numpy as np
    rng = np.random.default_rng(5)
    return rng.random(case[1]).astype(dtype), rng.standard_normal(case[2]).astype(dtype)


def time_kiln(case, X, v, y, threads, deterministic):
    """Seconds of the first call, the second, and the fastest of those after them; w."""
    import numpy as np
    import kiln_c as kiln
    device = kiln.Device("cpu", threads=threads, deterministic=deterministic)
    KX = device.csr(X) if case[0] == "csr" else device.dense(case[1], case[2], X.dtype, X)
    kv, ky, kw = (device.dense(len(a), 1, X.dtype, a) for a in (v, y, np.zeros(case[2], X.dtype)))
    call = lambda: kiln.mmchain(kw, 1.0, KX, kv, ky)
    first = [once(call), once(call)]
    result = first, fastest(call), kw.numpy()[:, 0]
    for matrix in (KX, kv, ky, kw):
        matrix.free()
    return result


def run_kiln(case, X, v, y, threads):
    """Yields (threads, seconds, w, further figures) for each number of threads."""
    for count in threads:
        first, seconds, w = time_kiln(case, X, v, y, count, 0)
        deterministic = time_kiln(case, X, v, y, count, 1)[1]
        yield count, seconds, w, {"first": first, "deterministic": deterministic}


def run_plain(case, X, v, y, threads):
    """NumPy and SciPy; OpenBLAS has its number of threads from the environment."""
    yield threads[0], fastest(lambda: X.T @ (v * (X @ y))), X.T @ (v * (X @ y)), {}


def run_mkl(case, X, v, y, threads):
    from sparse_dot_mkl import dot_product_mkl, mkl_set_num_threads
    transposed = X.T
    for count in threads:
        mkl_set_num_threads(count)
        call = lambda: dot_product_mkl(transposed, v * dot_product_mkl(X, y))
        yield count, fastest(call), call(), {}


def worker(who, kind, threads, cases):
    """Runs in a process of its own and prints one JSON line a figure."""
    import numpy as np
    if who == "mkl":
        import sparse_dot_mkl  # fails, where it is missing, before data are made
    if who == "kiln":
        import kiln_c as kiln
        for count in threads:
            print(json.dumps({"roof": max(kiln.Device("cpu", threads=count).bandwidth() for _ in range(2)),
                              "threads": count}))
    for index, case in enumerate(CASES):
        if index not in cases or (case[0] != kind and kind != "all"):
            continue
        wide = make(case)
        for type_name in TYPES:
            X = wide.astype(type_name)
            size = X.nnz * (X.dtype.itemsize + 4) + 8 * (case[1] + 1) if case[0] == "csr" else X.nbytes
            size += case[1] * X.dtype.itemsize
            run = {"kiln": run_kiln, "mkl": run_mkl}.get(who, run_plain)
            for count, seconds, w, more in run(case, X, *vectors(case, X.dtype), threads):
                print(json.dumps({"case": index, "type": type_name, "threads": count, "seconds": seconds,
                                  "bytes": size, "norm": float(np.linalg.norm(np.asarray(w, np.float64))),
                                  **more}), flush=True)


def run_worker(who, kind, threads, cases):
    """The worker's figures, or none where its library cannot be imported."""
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads[0]))
    environment["OMP_NUM_THREADS"] = str(max(threads))
    if who == "mkl" and "MKL_RT" not in environment:
        found = sorted(glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*")))
        environment.update({"MKL_RT": found[0]} if found else {})
    command = [sys.executable, os.path.abspath(__file__), "--worker", who, kind, json.dumps(threads),
               json.dumps(cases)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and who == "mkl":
        print("mkl: " + done.stderr.strip().splitlines()[-1])
        return []
    if done.returncode:
        sys.exit(f"{who}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def versions():
    import numpy
    import scipy
    return {"numpy": numpy.__version__, "scipy": scipy.__version__, "python": platform.python_version()}


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def key(figure):
    return figure["case"], figure["type"], figure["threads"]


def tabulate(figures):
    """One row for each case, type and number of threads; prints it."""
    roofs = {f["threads"]: f["roof"] for f in figures["kiln"] if "roof" in f}
    peers = {who: {key(f): f for f in figures[who]} for who in ("openblas", "scipy", "mkl")}
    rows = []
    print(f"{'shape':>24} {'type':>4} {'threads':>7} {'kiln ms':>9} {'GB/s':>6} {'of roof':>7} "
          f"{'determ.':>7}  against peers")
    for figure in sorted((f for f in figures["kiln"] if "case" in f), key=key):
        case, threads, seconds = CASES[figure["case"]], figure["threads"], figure["seconds"]
        row = {"format": case[0], "rows": case[1], "cols": case[2], "per_row": case[3],
               "type": figure["type"], "threads": threads, "kiln_ms": seconds * 1e3,
               "first_two_ms": [s * 1e3 for s in figure["first"]], "deterministic_ms": figure["deterministic"]
               * 1e3, "gb_s": figure["bytes"] / seconds / 1e9,
               "of_roof": figure["bytes"] / seconds / roofs[threads]}
        for who, table in peers.items():
            peer = table.get(key(figure)) or (who == "scipy"
                                              and table.get((figure["case"], figure["type"], 1)))
            if peer:
                row[who + "_ms"], row["against_" + who] = peer["seconds"] * 1e3, peer["seconds"] / seconds
                row["norm_difference"] = abs(peer["norm"] - figure["norm"]) / peer["norm"]
        rows.append(row)
        ratios = ", ".join(f"{who} {row['against_' + who]:.2f}x" for who in peers if "against_" + who in row)
        print(f"{case[0]:>5} {case[1]:>8} x {case[2]:<8} {figure['type'][5:]:>4} {threads:>7} "
              f"{seconds * 1e3:9.2f} "
              f"{row['gb_s']:6.1f} {row['of_roof']:7.0%} {row['deterministic_ms'] / row['kiln_ms']:7.2f}  "
              f"{ratios}")
    return rows, {str(threads): roof / 1e9 for threads, roof in roofs.items()}


def shape_of(row):
    """The key that rows are ordered by: the case, the type, the number of threads."""
    return CASES.index((row["format"], row["rows"], row["cols"], row["per_row"])), row["type"], row["threads"]


def write(options, rows, roofs):
    """With the rows of other cases that the file holds, and the largest of the roofs of all runs for all of
    them."""
    old = {}
    if os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as file:
            old = json.load(file)
    if old.get("commit") == options.commit:
        new = {shape_of(row) for row in rows}
        rows = sorted(rows + [row for row in old["rows"] if shape_of(row) not in new], key=shape_of)
        roofs = {count: max(roof, old["read_bandwidth_gb_s"].get(count, 0)) for count, roof in roofs.items()}
        for row in rows:
            row["of_roof"] = row["gb_s"] / roofs[str(row["threads"])]
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"benchmark": "mmchain on the CPU against the roof, SciPy, OpenBLAS and MKL",
                   "device": processor(), "cores": len(os.sched_getaffinity(0)),
                   "date": datetime.date.today().isoformat(), "commit": options.commit,
                   "versions": versions(), "read_bandwidth_gb_s": roofs, "rows": rows}, file,
                  indent=1)
        file.write("\n")


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        worker(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]), json.loads(sys.argv[5]))
        return 0
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--cases", default=",".join(str(i) for i in range(len(CASES))))
    parser.add_argument("--threads", default=",".join(str(t) for t in THREADS if t <= cores))
    options = parser.parse_args()
    threads = [int(text) for text in options.threads.split(",")]
    cases = [int(text) for text in options.cases.split(",")]
    print(f"{processor()}, {cores} cores")
    begin = time.perf_counter()
    figures = {"kiln": run_worker("kiln", "all", threads, cases),
               "scipy": run_worker("scipy", "csr", [1], cases), "mkl": run_worker("mkl", "csr", threads,
                                                                                  cases), "openblas": []}
    for count in threads:
        figures["openblas"] += run_worker("openblas", "dense", [count], cases)
    rows, roofs = tabulate(figures)
    print(f"{time.perf_counter() - begin:.0f} s")
    if options.json:
        write(options, rows, roofs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
