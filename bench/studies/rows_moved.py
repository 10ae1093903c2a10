#!/usr/bin/env python3
"""Sampled products on the CPU beside what moving their operands takes without any arithmetic (rows_moved.c),
on the data of bench/peers/sddmm.py, all in turns.

usage: rows_moved.py LIBRARY [--cases ratings,uniform] [--widths 32,128] [--rounds 5] [--fusedmm LIBRARY] [--json FILE] [--commit TEXT]
gathered: rows of B alone; moved: rows of both factors, values and products; moved_y: rows of both factors and
of Y. Of each the best of some distances at which rows are asked for. at_most: how many times as fast as
NumPy, and as FusedMM, a product without arithmetic were.
"""
import argparse
import ctypes
import datetime
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import kiln_c as kiln
import sddmm as peer
from gpu_common import distinct_csr

AHEAD = (8, 16, 32)


def run(device, mover, name, k, rounds, fusedmm):
    rows, cols, mean, zipf = peer.SHAPES[name]
    X = distinct_csr(rows, cols, mean, np.float32, 4, zipf)
    rng = np.random.default_rng(5)
    A, B = rng.random((rows, k), np.float32), rng.random((cols, k), np.float32)
    of = np.repeat(np.arange(rows), np.diff(X.indptr))
    S, a, b = device.csr(X), device.dense(rows, k, np.float32, A), device.dense(cols, k, np.float32, B)
    y, p = device.dense(rows, k, np.float32), kiln.like(device, S)
    times, plain = kiln.struct("sample", kind=peer.TIMES, S=S, A=a,
                               B=b), kiln.struct("sample", kind=peer.PRODUCT, S=S, A=a, B=b)
    start, col, out = X.indptr.astype(np.int64), X.indices.astype(np.int32), np.empty(X.nnz, np.float32)
    space = np.empty(rows * k + 16, np.float32)
    Y = space[-space.ctypes.data // 4 % 16:][:rows * k]  # at a line's beginning

    def numpy():
        for at in range(0, X.nnz, peer.BLOCK):
            part = slice(at, at + peer.BLOCK)
            out[part] = X.data[part] * np.einsum("ij,ij->i", A[of[part]], B[X.indices[part]])

    def move(ahead, with_A, P, Y):
        arrays = start, col, X.data, A if with_A else None, B, P, Y
        pointers = [ctypes.c_void_p(array.ctypes.data if array is not None else None) for array in arrays]
        return lambda: mover.rows_moved(*pointers, *map(ctypes.c_int64, (rows, 4 * k, ahead)))

    calls = {"numpy": numpy, "sddmm": lambda: kiln.call("sddmm", p, None, 1, times, 0)}
    if fusedmm:
        calls["fusedmm"], _ = peer.fusedmm_call(fusedmm, X, A, B)
    calls["fused"] = lambda: kiln.call("sddmm_multiply", y, None, 1, 0, plain, 0, None)
    for ahead in AHEAD:
        calls |= {f"gathered {ahead}": move(ahead, False, None, None),
                  f"moved {ahead}": move(ahead, True, out, None),
                  f"moved_y {ahead}": move(ahead, True, None, Y)}
    least = {}
    for key, took in peer.in_turns(calls, rounds).items():
        least[key.split()[0]] = min(least.get(key.split()[0], np.inf), took)
    row = {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": int(X.nnz),
           **{f"{key}_ms": ms for key, ms in least.items()}}
    row |= {"gathered_gb_s": X.nnz * k * 4e-6 / least["gathered"], "sddmm_against_moved": least["sddmm"]
            / least["moved"],
            "fused_against_moved_y": least["fused"] / least["moved_y"], "at_most_numpy": least["numpy"]
            / least["moved"]}
    if fusedmm:
        row["at_most_fusedmm"] = least["fusedmm"] / least["moved_y"]
    p.free()
    for matrix in (S, a, b, y):
        matrix.free()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("--cases", default=",".join(peer.SHAPES))
    parser.add_argument("--widths", default="32,128")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fusedmm")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device, mover, fusedmm = (kiln.Device("cpu"), ctypes.CDLL(options.library),
                              peer.load_fusedmm(options.fusedmm))
    rows = []
    for case in options.cases.split(","):
        for k in map(int, options.widths.split(",")):
            rows.append(run(device, mover, case, k, options.rounds, fusedmm if k in (32, 128) else None))
            print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                           for key, value in rows[-1].items()), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"what": "sampled products on the CPU beside what moving their operands takes without "
                               "arithmetic",
                       "device": f"{device.name}: {device.description}",
                       "date": datetime.date.today().isoformat(), "commit": options.commit, "rows": rows},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
