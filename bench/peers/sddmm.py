#!/usr/bin/env python3
"""Kiln's sampled products on the CPU against NumPy, which gathers rows of both factors block by block, and
FusedMM, in one process on the same data.

usage: sddmm.py [--cases ratings,uniform] [--widths 32,128] [--rounds 5] [--fusedmm LIBRARY] [--json FILE] [--commit TEXT]
The case "long" has more than 2^31 entries, and takes 45 GB. --fusedmm is what fusedmm.sh has built: its fused
product, P B with P = A B^T at the pattern, beside the same of Kiln. Times are the least of rounds in which
all take turns, so that a busy machine slows all. Fails where results differ by more than 1e-4 of the largest.
"""
import argparse
import ctypes
import datetime
import json
import os
import sys
import time

import numpy as np

import kiln_c as kiln
from gpu_common import distinct_csr

SHAPES = {"ratings": (138_000, 27_000, 27, True), "uniform": (138_000, 27_000, 27, False)}
PRODUCT, TIMES, LIMIT, BLOCK = 1, 2, 1e-4, 1 << 13


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def in_turns(calls, rounds):
    """The least milliseconds of each call; one after the other, so that all have the machine's better
    moments."""
    least = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for key, call in calls.items():
            least[key] = min(least[key], seconds(call) * 1e3)
    return least


def apart(got, want):
    return float(np.abs(got - want).max() / np.abs(want).max())


def load_fusedmm(path):
    """None if there is none. Its threads otherwise spin on the cores of whoever comes next."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return ctypes.CDLL(path) if path else None


def fusedmm_call(library, X, A, B):
    """A call of FusedMM's kernel, whose indices are of 32 bits, and where its result lies."""
    Z, (rows, k) = np.empty_like(A), A.shape
    arrays = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), A, B, Z

    def call():
        if library.fusedmm(k, rows, B.shape[0], *[ctypes.c_void_p(array.ctypes.data) for array in arrays]):
            raise RuntimeError(f"FusedMM has no kernel for {k} numbers")

    return call, Z


def run_long(device, k=8, rows=2_200_000, per_row=1000):
    """More than 2^31 entries: each product is k (1 + column % 7), the sum of their squares an exact
    number."""
    cols, nnz = 1000 * per_row, rows * per_row
    col = np.empty((rows, per_row), np.int32)
    np.add(np.arange(per_row, dtype=np.int32) * 1000, (np.arange(rows, dtype=np.int32) % 1000)[:, None],
           out=col)
    start, value = np.arange(rows + 1, dtype=np.int64) * per_row, np.ones(nnz, np.float32)
    A, B = np.ones((rows, k), np.float32), np.repeat(1 + np.arange(cols, dtype=np.float32) % 7,
                                                     k).reshape(cols, k)
    a, b = device.dense(rows, k, np.float32, A), device.dense(cols, k, np.float32, B)
    S = kiln.make(device, "wrap", device, kiln.struct("memory", type=kiln.lib.KILN_F32, rows=rows, cols=cols,
                                                      values=value, row_start=start, col=col, trusted=1))
    p, total = kiln.like(device, S), kiln.ffi.new("double *")
    sample = kiln.struct("sample", kind=TIMES, S=S, A=a, B=b)
    took = seconds(lambda: kiln.call("sddmm", p, total, 1, sample, 0))
    got = np.empty(nnz, np.float32)
    kiln.call("matrix_get", got, p)
    want = float(rows // 1000 * ((k * (1 + np.arange(cols, dtype=np.float64) % 7)) ** 2).sum())
    wrong = sum(int((got[at:at + per_row] != k * (1 + col[at // per_row] % 7)).sum())
                for at in range(0, nnz, 997 * per_row))
    for matrix in (p, S, a, b):
        matrix.free()
    return {"case": "long", "k": k, "rows": rows, "columns": cols, "nnz": nnz, "sddmm_ms": took * 1e3,
            "difference": max(abs(total[0] / want - 1), float(wrong))}


def run(device, name, k, rounds, fusedmm):
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
    if fusedmm:
        unscaled = kiln.struct("sample", kind=PRODUCT, S=S, A=a, B=b)
        calls["fusedmm_ms"], Z = fusedmm_call(fusedmm, X, A, B)
        calls["fused_unscaled_ms"] = lambda: kiln.call("sddmm_multiply", y, None, 1, 0, unscaled, 0, None)
    times = in_turns(calls, rounds)
    kiln.call("matrix_get", got, p)
    row = {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": int(X.nnz), **times}
    row.update(speedup=row["numpy_ms"] / row["sddmm_ms"], gflops=2e-6 * X.nnz * k / row["sddmm_ms"],
               fused_against_pair=(row["sddmm_ms"] + row["product_ms"]) / row["fused_ms"],
               difference=apart(got, want))
    if fusedmm:
        own = np.empty_like(Z)
        kiln.call("matrix_get", own, y)
        row.update(fusedmm_speedup=row["fusedmm_ms"] / row["fused_unscaled_ms"],
                   fusedmm_difference=apart(Z, own))
    p.free()
    for matrix in (S, a, b, y):
        matrix.free()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", default=",".join(SHAPES))
    parser.add_argument("--widths", default="32,128")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fusedmm")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device = kiln.Device("cpu")
    name, description = device.name, device.description
    fusedmm = load_fusedmm(options.fusedmm)
    rows = []
    for case in options.cases.split(","):
        for k in map(int, options.widths.split(",")) if case != "long" else [8]:
            rows.append(run(device, case, k, options.rounds, fusedmm) if case != "long"
                        else run_long(device, k))
            print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                           for key, value in rows[-1].items()), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "sampled products on the CPU against NumPy and FusedMM",
                       "device": f"{name}: {description}", "date": datetime.date.today().isoformat(),
                       "commit": options.commit, "numpy": np.__version__, "rows": rows}, file, indent=1)
            file.write("\n")
    return int(any(row.get(key, 0) > LIMIT for row in rows for key in ("difference", "fusedmm_difference")))


if __name__ == "__main__":
    sys.exit(main())
