#!/usr/bin/env python3
"""mmchain on the CPU, w = X^T (v .* (X y)), against SciPy (CSR) and NumPy with OpenBLAS on as many threads (dense).

usage: cpu_mmchain.py [--json FILE] [--commit TEXT] [--threads N]
Kiln and the peer run in processes of their own on the same data (made from a seed in each), in turns; figures are the medians
over the turns of each process's median. A shared machine disturbs both alike that way.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time

CASES = [("csr", 500_000, 4096, 40), ("csr", 500_000, 1024, 10), ("csr", 200_000, 2000, 50),
         ("csr", 300_000, 1_000_000, 30), ("dense", 2_000_000, 28, 0), ("dense", 500_000, 256, 0),
         ("dense", 100_000, 1024, 0), ("dense", 25_000, 4096, 0), ("dense", 1_000_000, 7, 0)]


def median_seconds(call, least=0.5):
    call()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < least:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def worker(who, case, type_name, threads):
    """Runs in a process of its own; prints seconds, a checksum of w, and the bytes of X."""
    import numpy as np
    from gpu_pair import distinct_csr
    kind, rows, cols, per_row = case
    dtype = np.dtype(type_name).type
    rng = np.random.default_rng(5)
    v, y = rng.random(rows).astype(dtype), rng.standard_normal(cols).astype(dtype)
    X = distinct_csr(rows, cols, per_row, dtype, 6) if kind == "csr" else rng.standard_normal((rows, cols), dtype)
    size = X.nnz * (X.dtype.itemsize + 4) + 8 * (rows + 1) if kind == "csr" else X.nbytes
    if who == "peer":
        seconds = median_seconds(lambda: X.T @ (v * (X @ y)))
        w = X.T @ (v * (X @ y))
        roof = 0
    else:
        import kiln_ctypes as kiln
        device = kiln.Device("cpu", threads)
        roof = device.bandwidth()
        KX = device.csr(X) if kind == "csr" else device.dense(rows, cols, dtype, X)
        kv, ky, kw = (device.dense(len(a), 1, dtype, a) for a in (v, y, np.zeros(cols, dtype)))
        seconds = median_seconds(lambda: kiln.mmchain(kw, 1.0, KX, kv, ky))
        w = kw.numpy()[:, 0]
    print(json.dumps({"seconds": seconds, "norm": float(np.linalg.norm(w)), "bytes": size, "roof": roof}))


def run_worker(who, case, type_name, threads):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    command = [sys.executable, os.path.abspath(__file__), "--worker", who, json.dumps(case), type_name, str(threads)]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def versions():
    import numpy
    import scipy
    return {"numpy": numpy.__version__, "scipy": scipy.__version__, "python": platform.python_version()}


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        worker(sys.argv[2], tuple(json.loads(sys.argv[3])), sys.argv[4], int(sys.argv[5]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    rows = []
    print(f"{processor()}, {options.threads} threads")
    print(f"{'shape':>21} {'type':>7} {'kiln ms':>8} {'GB/s':>6} {'of roof':>7} {'peer ms':>8} {'ratio':>6}")
    for type_name in ("float64", "float32"):
        for case in CASES:
            turns = [[run_worker(who, case, type_name, options.threads) for who in ("kiln", "peer")]
                     for _ in range(options.turns)]
            ours, peer = (statistics.median(turn[i]["seconds"] for turn in turns) for i in (0, 1))
            first = turns[0][0]
            roof = max(turn[0]["roof"] for turn in turns)
            difference = abs(first["norm"] - turns[0][1]["norm"]) / first["norm"]
            row = {"format": case[0], "rows": case[1], "cols": case[2], "per_row": case[3], "type": type_name,
                   "kiln_ms": ours * 1e3, "peer_ms": peer * 1e3, "ratio": peer / ours, "bytes": first["bytes"],
                   "gb_s": first["bytes"] / ours / 1e9, "read_bandwidth_gb_s": roof / 1e9, "norm_difference": difference}
            rows.append(row)
            print(f"{case[0]:>5} {case[1]:>8} x {case[2]:<8} {type_name[5:]:>4} {row['kiln_ms']:8.2f} {row['gb_s']:6.1f} "
                  f"{first['bytes'] / ours / roof:7.0%} {row['peer_ms']:8.2f} {row['ratio']:6.2f}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "mmchain on the CPU against SciPy and NumPy", "device": processor(),
                       "threads": options.threads, "date": datetime.date.today().isoformat(), "commit": options.commit,
                       "versions": versions(), "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
