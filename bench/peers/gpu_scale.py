#!/usr/bin/env python3
"""One GPU against a group of them: passes, a logistic regression, K-Means' assignment, sampled products and PageRank, with all of the data (strong)
and, for dense passes, with so much for each GPU (weak); the group's results against one GPU's.

Seconds are the least of several batches of calls, wall clock around a synchronised batch, so that what meets after a pass counts.

usage: gpu_scale.py [--gpus 1,2] [--cases dense,weak,...] [--json FILE] [--commit TEXT]
"""
import argparse
import datetime
import json
import subprocess
import time

import numpy as np

import kiln_c as kiln
from gpu_sparse import make

BATCHES, BATCH_SECONDS = 5, 0.03


def least_time(device, call):
    """Of a call, after three that build kernels, look at X's rows and columns, and derive from it."""
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


def dense_points(rows, cols, seed=1):
    """Repeated blocks: how long a pass takes does not hang on the numbers."""
    block = np.random.default_rng(seed).standard_normal((rows // 11, cols), dtype=np.float32)
    return np.tile(block, (11, 1))


def dense(device, gpus, data):
    return passes(device, device.dense(*data.shape, np.float32, data), data.shape[1])


def weak(device, gpus, data):
    host = np.tile(data, (gpus, 1))
    return passes(device, device.dense(*host.shape, np.float32, host), host.shape[1])[0], None


def sparse(device, gpus, data):
    shape, arrays = data
    return passes(device, device.sparse(shape, np.float32, *arrays), shape[1])


def logreg(device, gpus, data):
    host, target = data
    X, y = device.dense(*host.shape, np.float32, host), device.dense(len(target), 1, np.float32, target)
    W, b = device.dense(host.shape[1], 1, np.float32), device.dense(1, 1, np.float32)
    seconds = [kiln.fit("logreg", W, b, X, y, l2=1.0).seconds for _ in range(5)]
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
    Y, p = device.dense(shape[0], k, np.float32), kiln.like(device, S)
    sample = kiln.struct("sample", kind=1, S=S, A=a, B=b)
    seconds = least_time(device, lambda: kiln.call("sddmm", p, None, 1, sample, 0))
    result = np.empty(len(arrays[1]), np.float32)
    kiln.call("matrix_get", result, p)
    p.free()
    for m in (S, a, b, Y):
        m.free()
    return seconds, result


def made(*shape):
    arrays = [part.get() for part in make(*shape, np.float32)]
    import cupy
    cupy.get_default_memory_pool().free_all_blocks()
    return shape[:2], arrays


def labelled():
    X = dense_points(11_000_000, 28)
    rng = np.random.default_rng(2)
    truth = rng.standard_normal(28).astype(np.float32) / 3
    return X, (rng.random(len(X), dtype=np.float32) < 1 / (1 + np.exp(-X @ truth))).astype(np.float32)


CASES = {
    "dense": ("a pass over dense 11M x 28", dense, lambda: dense_points(11_000_000, 28)),
    "weak": ("a pass over dense 11M x 28 a GPU", weak, lambda: dense_points(11_000_000, 28)),
    "large": ("a pass over dense 66M x 28", dense, lambda: dense_points(66_000_000, 28)),
    "wide": ("a pass over dense 1.1M x 1,000", dense, lambda: dense_points(1_100_000, 1000)),
    "logreg": ("logistic regression, dense 11M x 28", logreg, labelled),
    "kmeans": ("nearest of 100 centres and their sums, 33M x 32", kmeans, lambda: dense_points(33_000_000, 32, 3)),
    "sddmm": ("sampled products, 2M x 1M, 30 a row, k = 128", sddmm, lambda: made(2_000_000, 1_000_000, 30, "uniform")),
    "kdd": ("a pass over KDD2010-shaped 15M x 29.9M", sparse, lambda: made(15_009_374, 29_890_095, 28.24, "zipf")),
}


def differs(one, other):
    return None if one is None or other is None else float(np.abs(one - other).max() / np.abs(one).max())


def describe():
    return subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                          check=False).stdout.split("\n")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--same", action="store_true", help="parts of one GPU in place of several GPUs, to try the script")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    counts, rows = [int(count) for count in options.gpus.split(",")], []
    for name in options.cases.split(","):
        title, run, data = CASES[name]
        begin, first = time.perf_counter(), None
        host = data()
        prepared = time.perf_counter() - begin
        for gpus in counts:
            several = f"cuda:0*{gpus}" if options.same else "cuda:" + ",".join(str(i) for i in range(gpus))
            device = kiln.Device("cuda:0" if gpus == 1 else several)
            seconds, result = run(device, gpus, host)
            row = {"case": name, "what": title, "gpus": gpus, "ms": seconds * 1e3}
            if first:
                row["times"] = first[0] / seconds * (gpus if name == "weak" else 1)
                row["difference"] = differs(first[1], result)
            first = first or (seconds, result)
            rows.append(row)
            device.close()
            print(f"{title}, {gpus} GPU: {row['ms']:.4f} ms" + (f", {row['times']:.2f} times, differs by {row['difference'] or 0:.0e}"
                                                               if "times" in row else ""), flush=True)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump({"benchmark": "one GPU against a group", "device": describe(), "date": str(datetime.date.today()),
                               "commit": options.commit, "rows": rows}, file, indent=1)
        print(f"  (data {prepared:.0f} s, all {time.perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
