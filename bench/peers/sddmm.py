#!/usr/bin/env python3
"""Kiln's sampled products on the CPU against NumPy, which gathers rows of both factors block by block, in one process on the same data.

usage: sddmm.py [--widths 32,128] [--rounds 5] [--json FILE] [--commit TEXT]
Times are the least of rounds in which both take turns, so that a busy machine slows both. Fails where results differ by more than 1e-4 of
the largest.
"""
import argparse
import datetime
import json
import sys
import time

import numpy as np

import kiln_c as kiln
from gpu_common import distinct_csr

SHAPES = {"ratings": (138_000, 27_000, 27, True), "uniform": (138_000, 27_000, 27, False)}
TIMES, LIMIT, BLOCK = 2, 1e-4, 1 << 13


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def run(device, name, k, rounds):
    rows, cols, mean, zipf = SHAPES[name]
    X = distinct_csr(rows, cols, mean, np.float32, 4, zipf)
    rng = np.random.default_rng(5)
    A, B = rng.random((rows, k), np.float32), rng.random((cols, k), np.float32)
    of = np.repeat(np.arange(rows), np.diff(X.indptr))
    S, a, b = device.csr(X), device.dense(rows, k, np.float32, A), device.dense(cols, k, np.float32, B)
    y, p = device.dense(rows, k, np.float32), kiln.like(device, S)
    sample = kiln.struct("sample", kind=TIMES, S=S, A=a, B=b)
    want, got = np.empty(X.nnz, np.float32), np.empty(X.nnz, np.float32)

    def numpy():
        for at in range(0, X.nnz, BLOCK):
            part = slice(at, at + BLOCK)
            want[part] = X.data[part] * np.einsum("ij,ij->i", A[of[part]], B[X.indices[part]])

    def sddmm():
        kiln.call("sddmm", p, None, 1, sample, 0)

    def fused():
        kiln.call("sddmm_multiply", y, None, 1, 0, sample, 0, None)

    def product():
        kiln.call("multiply", y, 1, 0, p, b, 0, None)

    calls = {"numpy_ms": numpy, "sddmm_ms": sddmm, "product_ms": product, "fused_ms": fused}
    times = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            times[key].append(seconds(call) * 1e3)
    kiln.call("matrix_get", got, p)
    row = {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": int(X.nnz), **{key: min(all) for key, all in times.items()}}
    row.update(speedup=row["numpy_ms"] / row["sddmm_ms"], gflops=2e-6 * X.nnz * k / row["sddmm_ms"],
               fused_against_pair=(row["sddmm_ms"] + row["product_ms"]) / row["fused_ms"],
               difference=float(np.abs(got - want).max() / np.abs(want).max()))
    p.free()
    for matrix in (S, a, b, y):
        matrix.free()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--widths", default="32,128")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device = kiln.Device("cpu")
    name, description = device.name, device.description
    rows = []
    for case in SHAPES:
        for k in map(int, options.widths.split(",")):
            rows.append(run(device, case, k, options.rounds))
            print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                           for key, value in rows[-1].items()), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "sampled products on the CPU against NumPy", "device": f"{name}: {description}",
                       "date": datetime.date.today().isoformat(), "commit": options.commit, "numpy": np.__version__,
                       "rows": rows}, file, indent=1)
            file.write("\n")
    return int(any(row["difference"] > LIMIT for row in rows))


if __name__ == "__main__":
    sys.exit(main())
