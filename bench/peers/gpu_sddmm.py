#!/usr/bin/env python3
"""Kiln's sampled products on a GPU against cuSPARSE (PyTorch's sampled_addmm and sparse product) and RoDe in one process on the same
data, shaped as in table III of the SDDMM paper: rows, columns and entries of the data sets, popular columns where theirs are.

usage: gpu_sddmm.py [--cases NAME,...] [--widths 32,128,512] [--device cuda] [--rode LIBRARY] [--nisa PROGRAM] [--halves]
                    [--plans] [--no-peers] [--json FILE] [--commit TEXT]
The case "long" has more than 2^31 entries. --halves also times factors of half precision. --rode and --nisa are what rode.sh and
nisa.sh have built. --plans times every plan of kiln_sddmm instead, as kiln tune sddmm --exhaustive does.
Times are medians over batches of calls, wall clock around a synchronised batch. "fused" is kiln_sddmm_multiply, "pair" the same as two
calls, kiln_sddmm and then kiln_multiply. Fails where Kiln and the peer differ by more than 1e-4 of the largest.
"""
import argparse
import ctypes
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

import kiln_ctypes as kiln
from gpu_common import median_time
from gpu_sparse import make, new_csr

TIMES, LIMIT = 2, 1e-4
COMPARED = 10_000_000  # entries of P that are worth downloading for every plan
# Rows, columns, entries, and the columns' popularity: table III but PubMed, whose entries fill the GPU with what makes them.
CASES = {
    "enron": (39_861, 28_102, 3_710_420 / 39_861, "zipf"),
    "kos": (3_430, 6_906, 353_160 / 3_430, "zipf"),
    "nips": (1_500, 12_419, 746_316 / 1_500, "zipf"),
    "nytimes": (300_000, 102_660, 69_679_427 / 300_000, "zipf"),
    "cit-hepph": (34_546, 34_546, 421_578 / 34_546, "zipf"),
    "com-amazon": (548_552, 548_552, 925_872 / 548_552, "uniform"),
    "com-dblp": (425_957, 425_957, 1_049_866 / 425_957, "uniform"),
    "com-youtube": (1_157_828, 1_157_828, 2_987_624 / 1_157_828, "zipf"),
    "email-enron": (36_692, 36_692, 367_662 / 36_692, "zipf"),
    "facebook": (4_039, 4_039, 88_234 / 4_039, "uniform"),
    "filter3d": (106_437, 106_437, 2_707_179 / 106_437, "uniform"),
    "gowalla": (196_591, 196_591, 1_900_654 / 196_591, "zipf"),
    "mario002": (389_874, 389_874, 2_101_242 / 389_874, "uniform"),
    "offshore": (259_789, 259_789, 4_242_673 / 259_789, "uniform"),
    "patents-main": (240_547, 240_547, 560_943 / 240_547, "uniform"),
    "pdb1hys": (36_417, 36_417, 4_344_765 / 36_417, "uniform"),
    "roadnet-ca": (1_971_281, 1_971_281, 5_533_214 / 1_971_281, "uniform"),
    "web-berkstan": (685_230, 685_230, 7_600_595 / 685_230, "zipf"),
    "web-google": (916_428, 916_428, 5_105_039 / 916_428, "zipf"),
    "web-notredame": (325_729, 325_729, 1_497_134 / 325_729, "zipf"),
}


class Sample(kiln.Sized):
    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("floor", kiln.D), ("S", kiln.P), ("A", kiln.P),
                ("B", kiln.P)]


class Plan(ctypes.Structure):
    _fields_ = ([("number", kiln.I64), ("chosen", ctypes.c_int), ("variant", ctypes.c_char * 32)] +
                [(name, ctypes.c_int) for name in ("vector", "group", "load", "rows", "columns", "team", "stages", "shared")] +
                [("coarsening", kiln.I64), ("groups", kiln.I64)] +
                [(name, kiln.D) for name in ("occupancy", "bytes", "atomics", "seconds")] + [("limit", ctypes.c_char * 48)])


class Work(kiln.Sized):
    _fields_ = [("size", ctypes.c_size_t), ("format", ctypes.c_int), ("type", ctypes.c_int)] + [
        (name, kiln.I64) for name in ("rows", "cols", "nnz", "k", "passes")]


class Memory(kiln.Sized):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int), ("rows", kiln.I64), ("cols", kiln.I64), ("values", kiln.P),
                ("row_start", kiln.P), ("col", kiln.P), ("row_start_bits", ctypes.c_int), ("on_device", ctypes.c_int),
                ("trusted", ctypes.c_int), ("release", kiln.P), ("user", kiln.P)]


def make_factor(device, rows, k, peers):
    """Random numbers, which PyTorch has, too, at the same place."""
    if not peers:
        return device.dense(rows, k, np.float32).fill_random(3, rows, normal=False)
    import torch
    matrix = kiln.Matrix.__new__(kiln.Matrix)
    matrix.handle, matrix.shape, matrix.dtype = kiln.P(), (rows, k), np.dtype(np.float32)
    matrix.tensor = torch.rand(rows, k, device="cuda")
    memory = Memory(type=1, rows=rows, cols=k, values=matrix.tensor.data_ptr(), on_device=1)
    kiln.check(kiln.library.kiln_matrix_wrap(ctypes.byref(matrix.handle), device.handle, ctypes.byref(memory)))
    return matrix


def rode_times(row, rode, S, a, b, got):
    """S, a and b are PyTorch's."""
    import torch
    starts, cols = S.crow_indices().int(), S.col_indices().int()
    host, P = starts.cpu().numpy(), torch.zeros_like(S.values())
    rode.rode_new.restype = kiln.P
    division = kiln.P(rode.rode_new(row["rows"], host.ctypes.data_as(kiln.P), 512 if row["k"] == 32 else 32))
    pointers = [kiln.P(t.data_ptr()) for t in (starts, cols, S.values(), a, b, P)]

    def call():
        error = rode.rode_sddmm(division, row["k"], row["columns"], *pointers)
        if error:
            raise RuntimeError(f"RoDe: CUDA error {error}")

    row["rode_sddmm_ms"] = median_time(call, torch.cuda.synchronize) * 1e3
    want = P.cpu().numpy()
    row["rode_difference"] = float(np.abs(got - want).max() / np.abs(want).max())
    rode.rode_free(division)


def nisa_times(row, program, start, col):
    """The paper's program with rows of one factor in on-chip memory: 192, 96 or 48 of 32, 64 or 128 numbers, and columns in tiles that
    leave the other to the second cache level; the best of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "S.mtx")
        of = np.repeat(np.arange(row["rows"]), np.diff(start))
        with open(path, "w", encoding="ascii") as file:
            file.write(f"%%MatrixMarket matrix coordinate real general\n{row['rows']} {row['columns']} {len(col)}\n")
            np.savetxt(file, np.column_stack([of + 1, col + 1, np.ones_like(of)]), "%d")
        for rows in (192, 96, 48):
            for columns in (12500, 50000):
                out = subprocess.run([program, path, str(row["k"]), str(rows), str(columns)], capture_output=True, text=True, check=True)
                found = float(re.search(r": ([\d.e+-]+) ms", out.stdout).group(1))
                if found < row.get("nisa_sddmm_ms", np.inf):
                    row.update(nisa_sddmm_ms=found, nisa_tile=[rows, columns])


def peer_times(row, start, col, value, a, b, got, rode):
    import torch
    shape, sync = (row["rows"], row["columns"]), torch.cuda.synchronize
    S = torch.sparse_csr_tensor(torch.from_numpy(start), torch.from_numpy(col.astype(np.int64)), torch.from_numpy(value),
                                size=shape, device="cuda")
    bt = b.t()
    row["peer"] = f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"
    row["peer_sddmm_ms"] = median_time(lambda: torch.sparse.sampled_addmm(S, a, bt, beta=0.0), sync) * 1e3
    row["peer_spmm_ms"] = median_time(lambda: S @ b, sync) * 1e3
    want = torch.sparse.sampled_addmm(S, a, bt, beta=0.0).values().cpu().numpy() * value
    row["difference"] = float(np.abs(got - want).max() / np.abs(want).max())
    if rode:
        rode_times(row, rode, S, a, b, got)
    del S, bt
    torch.cuda.empty_cache()


def half_times(device, row, sample, a, b, p, exact):
    """With factors of half precision, S and P in f32 all the same; how far the products are from those of f32."""
    got, alone = np.empty_like(exact), Sample(kind=sample.kind, floor=0, S=sample.S)
    kiln.library.kiln_half_free.argtypes = [kiln.P]
    for name, code in (("f16", 1), ("bf16", 2)):
        halves = kiln.P(), kiln.P()
        for half, factor in zip(halves, (a, b)):
            kiln.check(kiln.library.kiln_half_copy(ctypes.byref(half), code, factor.handle))

        def call(halves=halves):
            kiln.check(kiln.library.kiln_sddmm_half(p, None, kiln.D(1), ctypes.byref(alone), *halves, kiln.D(0)))

        row[f"{name}_ms"] = median_time(call, device.sync, 0.05) * 1e3
        kiln.check(kiln.library.kiln_matrix_get(got.ctypes.data_as(kiln.P), p))
        row[f"{name}_difference"] = float(np.abs(got - exact).max() / np.abs(exact).max())
        for half in halves:
            kiln.library.kiln_half_free(half)


def run_plans(device, name, k, data):
    """Each plan's time, the prediction beside it, and how far its products are from those of the choice, which comes first."""
    rows, cols = CASES[name][:2]
    start, col, value = data
    S = new_csr(device, (rows, cols), np.float32, start, col, value)
    a, b = (device.dense(n, k, np.float32).fill_random(1, n, normal=False) for n in (rows, cols))
    p, plans, count = kiln.P(), ctypes.POINTER(Plan)(), kiln.I64()
    kiln.check(kiln.library.kiln_matrix_like(ctypes.byref(p), S.handle, 0, None))
    sample = Sample(kind=TIMES, floor=0, S=S.handle, A=a.handle, B=b.handle)
    work = Work(format=2, type=1, rows=rows, cols=cols, nnz=len(col), k=k)
    kiln.check(kiln.library.kiln_sddmm_plans(ctypes.byref(plans), ctypes.byref(count), device.handle, ctypes.byref(work)))
    found, got, want = [], np.empty(len(col), np.float32), None
    for plan in plans[:count.value]:
        def call(plan=plan):
            kiln.check(kiln.library.kiln_sddmm_with(ctypes.byref(plan), p, ctypes.byref(sample)))
        found.append({"variant": plan.variant.decode(), "VS": plan.vector, "TL": plan.load, "rows_a_step": plan.rows, "K": plan.columns,
                      "chosen": bool(plan.chosen), "limit": plan.limit.decode(), "predicted_ms": plan.seconds * 1e3,
                      "ms": median_time(call, device.sync, 0.01) * 1e3})
        if len(col) <= COMPARED:
            kiln.check(kiln.library.kiln_matrix_get(got.ctypes.data_as(kiln.P), p))
            want = got.copy() if want is None else want
            found[-1]["difference"] = float(np.abs(got - want).max() / np.abs(want).max())
    kiln.library.kiln_free(plans)
    kiln.library.kiln_matrix_free(p)
    for matrix in (S, a, b):
        matrix.free()
    times = sorted(plan["ms"] for plan in found)
    chosen = next(plan["ms"] for plan in found if plan["chosen"])
    return {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": len(col), "best_ms": times[0], "chosen_ms": chosen,
            "loss": chosen / times[0] - 1, "difference": max(plan.get("difference", 0) for plan in found), "plans": found}


def run_long(device, k=32, rows=2_200_000, per_row=1000):
    """More than 2^31 entries, in CuPy's memory: each product is k (1 + column % 7), the sum of their squares an exact number."""
    import cupy
    cols, nnz = 1000 * per_row, rows * per_row
    col = cupy.empty((rows, per_row), np.int32)
    cupy.add(cupy.arange(per_row, dtype=np.int32) * 1000, (cupy.arange(rows, dtype=np.int32) % 1000)[:, None], out=col)
    start, value = cupy.arange(rows + 1, dtype=np.int64) * per_row, cupy.ones(nnz, np.float32)
    A, B = np.ones((rows, k), np.float32), np.repeat(1 + np.arange(cols, dtype=np.float32) % 7, k).reshape(cols, k)
    a, b = device.dense(rows, k, np.float32, A), device.dense(cols, k, np.float32, B)
    S, p, total = kiln.P(), kiln.P(), kiln.D()
    memory = Memory(type=1, rows=rows, cols=cols, values=value.data.ptr, row_start=start.data.ptr, col=col.data.ptr, on_device=1, trusted=1)
    kiln.check(kiln.library.kiln_matrix_wrap(ctypes.byref(S), device.handle, ctypes.byref(memory)))
    kiln.check(kiln.library.kiln_matrix_like(ctypes.byref(p), S, 0, None))
    sample = Sample(kind=TIMES, floor=0, S=S, A=a.handle, B=b.handle)
    kiln.check(kiln.library.kiln_sddmm(p, ctypes.byref(total), kiln.D(1), ctypes.byref(sample), kiln.D(0)))
    got = np.empty(nnz, np.float32)
    kiln.check(kiln.library.kiln_matrix_get(got.ctypes.data_as(kiln.P), p))
    want = float(rows // 1000 * ((k * (1 + np.arange(cols, dtype=np.float64) % 7)) ** 2).sum())
    wrong = sum(int((got[at:at + per_row] != k * (1 + col[at // per_row].get() % 7)).sum())
                for at in range(0, nnz, 997 * per_row))

    def sddmm():
        kiln.check(kiln.library.kiln_sddmm(p, None, kiln.D(1), ctypes.byref(sample), kiln.D(0)))

    row = {"case": "long", "k": k, "rows": rows, "columns": cols, "nnz": nnz, "sddmm_ms": median_time(sddmm, device.sync) * 1e3,
           "sum_difference": total.value / want - 1, "wrong": wrong}
    for handle in (p, S):
        kiln.library.kiln_matrix_free(handle)
    for matrix in (a, b):
        matrix.free()
    return row


def run(device, name, k, data, peers, rode, halves):
    rows, cols = CASES[name][:2]
    start, col, value = data
    row = {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": len(col)}
    S = new_csr(device, (rows, cols), np.float32, start, col, value)
    a, b = (make_factor(device, n, k, peers) for n in (rows, cols))
    y, t = device.dense(rows, k, np.float32), device.dense(cols, k, np.float32)
    p = kiln.P()
    kiln.check(kiln.library.kiln_matrix_like(ctypes.byref(p), S.handle, 0, None))
    sample = Sample(kind=TIMES, floor=0, S=S.handle, A=a.handle, B=b.handle)

    def sddmm():
        kiln.check(kiln.library.kiln_sddmm(p, None, kiln.D(1), ctypes.byref(sample), kiln.D(0)))

    def fused(to, transposed):
        kiln.check(kiln.library.kiln_sddmm_multiply(to.handle, None, kiln.D(1), int(transposed), ctypes.byref(sample),
                                                    kiln.D(0), None))

    def product():
        kiln.check(kiln.library.kiln_multiply(y.handle, kiln.D(1), 0, p, b.handle, kiln.D(0), None))

    def pair():
        sddmm()
        product()

    row["sddmm_ms"] = median_time(sddmm, device.sync) * 1e3
    got = np.empty(len(col), np.float32)
    kiln.check(kiln.library.kiln_matrix_get(got.ctypes.data_as(kiln.P), p))
    if halves:
        half_times(device, row, sample, a, b, p, got)
        sddmm()
    row["spmm_ms"] = median_time(product, device.sync) * 1e3
    row["pair_ms"] = median_time(pair, device.sync) * 1e3
    row["fused_ms"] = median_time(lambda: fused(y, False), device.sync) * 1e3
    row["fused_transposed_ms"] = median_time(lambda: fused(t, True), device.sync) * 1e3
    row["gflops"] = 2e-6 * len(col) * k / row["sddmm_ms"]
    kiln.library.kiln_matrix_free(p)
    for matrix in (S, a, b, y, t):
        matrix.free()
    if peers:
        peer_times(row, start, col, value, a.tensor, b.tensor, got, rode)
        for speedup, peer in (("speedup", "peer_sddmm_ms"), ("rode_speedup", "rode_sddmm_ms")):
            if peer in row:
                row[speedup] = row[peer] / row["sddmm_ms"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--widths", default="32,128,512")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--rode")
    parser.add_argument("--nisa")
    parser.add_argument("--halves", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device = kiln.Device(options.device)
    rode = ctypes.CDLL(options.rode) if options.rode else None
    name, description = device.description()
    print(f"{name}: {description}")
    rows = []
    for case in options.cases.split(","):
        if case == "long":
            rows.append(run_long(device))
            print(rows[-1], flush=True)
            continue
        data = [array.get() for array in make(*CASES[case], np.float32)]
        for k in map(int, options.widths.split(",")):
            if options.plans:
                row = run_plans(device, case, k, data)
            else:
                row = run(device, case, k, data, not options.no_peers, rode, options.halves)
                if options.nisa:
                    nisa_times(row, options.nisa, data[0], data[1])
            rows.append(row)
            print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                           for key, value in row.items() if key != "plans"), flush=True)
    result = {"benchmark": "every plan of sampled products" if options.plans else "sampled products against cuSPARSE and RoDe",
              "device": f"{name}: {description}", "date": datetime.date.today().isoformat(), "commit": options.commit}
    for of, mean, peer in (("speedup", "geometric_mean", "cuSPARSE"), ("rode_speedup", "rode_geometric_mean", "RoDe")):
        ratios = [row[of] for row in rows if of in row]
        if ratios:
            result[mean] = float(np.exp(np.mean(np.log(ratios))))
            print(f"sddmm: {result[mean]:.3g} times {peer} in geometric mean, least {min(ratios):.3g}")
    if options.plans:
        result["mean_loss"] = float(np.mean([row["loss"] for row in rows]))
        print(f"the model's choice loses {100 * result['mean_loss']:.1f} % on average, at most "
              f"{100 * max(row['loss'] for row in rows):.1f} %")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**result, "rows": rows}, file, indent=1)
            file.write("\n")
    return int(any(abs(row.get(key, 0)) > LIMIT for row in rows for key in ("difference", "rode_difference", "sum_difference", "wrong")))


if __name__ == "__main__":
    sys.exit(main())
