#!/usr/bin/env python3
"""Kiln's sampled products on a GPU against cuSPARSE (PyTorch's sampled_addmm and sparse product) and RoDe in
one process on the same data, shaped as in table III of the SDDMM paper: rows, columns and entries of the data
sets, popular columns where theirs are.

usage: gpu_sddmm.py [--cases NAME,...] [--widths 32,128,512] [--device cuda] [--rode LIBRARY] [--nisa PROGRAM] [--halves]
                    [--plans] [--no-peers] [--json FILE] [--commit TEXT]
The case "long" has more than 2^31 entries. --halves also times factors of half precision. --rode and --nisa
are what rode.sh and nisa.sh have built. --plans times every plan of kiln_sddmm instead, as kiln tune sddmm
--exhaustive does.
Times are medians over batches of calls, wall clock around a synchronised batch. "fused" is
kiln_sddmm_multiply, "pair" the same as two calls, kiln_sddmm and then kiln_multiply. Fails where Kiln and the
peer differ by more than 1e-4 of the largest.
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
import time

import numpy as np

import kiln_c as kiln
from gpu_common import median_time
from gpu_sparse import make

TIMES, LIMIT = 2, 1e-4
COMPARED = 10_000_000  # entries of P that are worth downloading for every plan
# Rows, columns, entries, and the columns' popularity: table III.
CASES = {
    "enron": (39_861, 28_102, 3_710_420, "zipf"),
    "kos": (3_430, 6_906, 353_160, "zipf"),
    "nips": (1_500, 12_419, 746_316, "zipf"),
    "nytimes": (300_000, 102_660, 69_679_427, "zipf"),
    "pubmed": (8_200_000, 141_043, 483_450_157, "zipf"),
    "cit-hepph": (34_546, 34_546, 421_578, "zipf"),
    "com-amazon": (548_552, 548_552, 925_872, "uniform"),
    "com-dblp": (425_957, 425_957, 1_049_866, "uniform"),
    "com-youtube": (1_157_828, 1_157_828, 2_987_624, "zipf"),
    "email-enron": (36_692, 36_692, 367_662, "zipf"),
    "facebook": (4_039, 4_039, 88_234, "uniform"),
    "filter3d": (106_437, 106_437, 2_707_179, "uniform"),
    "gowalla": (196_591, 196_591, 1_900_654, "zipf"),
    "mario002": (389_874, 389_874, 2_101_242, "uniform"),
    "offshore": (259_789, 259_789, 4_242_673, "uniform"),
    "patents-main": (240_547, 240_547, 560_943, "uniform"),
    "pdb1hys": (36_417, 36_417, 4_344_765, "uniform"),
    "roadnet-ca": (1_971_281, 1_971_281, 5_533_214, "uniform"),
    "web-berkstan": (685_230, 685_230, 7_600_595, "zipf"),
    "web-google": (916_428, 916_428, 5_105_039, "zipf"),
    "web-notredame": (325_729, 325_729, 1_497_134, "zipf"),
}
# PubMed's entries fill the GPU with what makes them here; bench/papers makes them on the host.
MADE = [name for name in CASES if name != "pubmed"]


def make_factor(device, rows, k, peers):
    """Random numbers, which PyTorch has, too, at the same place."""
    if not peers:
        return device.dense(rows, k, np.float32).fill_random(3, rows, normal=False)
    import torch
    tensor = torch.rand(rows, k, device="cuda")
    matrix = kiln.wrap(device, tensor.data_ptr(), (rows, k))
    matrix.tensor = tensor
    return matrix


def rode_times(row, rode, S, a, b, got):
    """S, a and b are PyTorch's."""
    import torch
    starts, cols = S.crow_indices().int(), S.col_indices().int()
    host, P = starts.cpu().numpy(), torch.zeros_like(S.values())
    rode.rode_new.restype = ctypes.c_void_p
    division = ctypes.c_void_p(rode.rode_new(row["rows"], host.ctypes.data_as(ctypes.c_void_p),
                                             512 if row["k"] == 32 else 32))
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (starts, cols, S.values(), a, b, P)]

    def call():
        error = rode.rode_sddmm(division, row["k"], row["columns"], *pointers)
        if error:
            raise RuntimeError(f"RoDe: CUDA error {error}")

    row["rode_sddmm_ms"] = median_time(call, torch.cuda.synchronize) * 1e3
    want = P.cpu().numpy()
    row["rode_difference"] = float(np.abs(got - want).max() / np.abs(want).max())
    rode.rode_free(division)


def nisa_times(row, program, start, col):
    """The paper's program with rows of one factor in on-chip memory: 192, 96 or 48 of 32, 64 or 128 numbers,
    and columns in tiles that leave the other to the second cache level; the best of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "S.mtx")
        of = np.repeat(np.arange(row["rows"]), np.diff(start))
        with open(path, "w", encoding="ascii") as file:
            file.write(f"%%MatrixMarket matrix coordinate real general\n"
                       f"{row['rows']} {row['columns']} {len(col)}\n")
            np.savetxt(file, np.column_stack([of + 1, col + 1, np.ones_like(of)]), "%d")
        for rows in (192, 96, 48):
            for columns in (12500, 50000):
                out = subprocess.run([program, path, str(row["k"]), str(rows), str(columns)],
                                     capture_output=True, text=True, check=True)
                found = float(re.search(r": ([\d.e+-]+) ms", out.stdout).group(1))
                if found < row.get("nisa_sddmm_ms", np.inf):
                    row.update(nisa_sddmm_ms=found, nisa_tile=[rows, columns])


def peer_times(row, start, col, value, a, b, got, rode):
    import torch
    shape, sync = (row["rows"], row["columns"]), torch.cuda.synchronize
    S = torch.sparse_csr_tensor(torch.from_numpy(start), torch.from_numpy(col.astype(np.int64)),
                                torch.from_numpy(value), size=shape, device="cuda")
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


def half_times(device, row, sample, a, b, p, exact, y):
    """With factors of half precision, S, P and y in f32 all the same; how far the products are from those of
    f32."""
    got, alone = np.empty_like(exact), kiln.struct("sample", kind=sample.kind, S=sample.S)
    for name, code in (("f16", 1), ("bf16", 2)):
        made = [kiln.ffi.new("kiln_half **") for _ in range(2)]
        for half, factor in zip(made, (a, b)):
            kiln.call("half_copy", half, code, factor)
        halves = [half[0] for half in made]

        def call(halves=halves):
            kiln.call("sddmm_half", p, None, 1, alone, *halves, 0)

        row[f"{name}_ms"] = median_time(call, device.synchronize, 0.05) * 1e3
        kiln.call("matrix_get", got, p)
        row[f"{name}_difference"] = float(np.abs(got - exact).max() / np.abs(exact).max())

        def fused(halves=halves):
            kiln.call("sddmm_multiply_half", y, None, 1, 0, alone, *halves, 0, None)

        row[f"{name}_fused_ms"] = median_time(fused, device.synchronize, 0.05) * 1e3
        for half in halves:
            kiln.lib.kiln_half_free(half)


def run_plans(device, name, k, data, shape=None):
    """Each plan's time, the prediction beside it, and how far its products are from those of the choice,
    which comes first."""
    rows, cols = shape or CASES[name][:2]
    start, col, value = data
    S = device.sparse((rows, cols), np.float32, start, col, value)
    a, b = (device.dense(n, k, np.float32).fill_random(1, n, normal=False) for n in (rows, cols))
    p, plans, count = kiln.like(device, S), kiln.ffi.new("kiln_plan **"), kiln.ffi.new("int64_t *")
    sample = kiln.struct("sample", kind=TIMES, S=S, A=a, B=b)
    work = kiln.struct("work", format=kiln.lib.KILN_CSR, type=kiln.lib.KILN_F32, rows=rows, cols=cols,
                       nnz=len(col), k=k)
    kiln.call("sddmm_plans", plans, count, device, work)
    found, got, want = [], np.empty(len(col), np.float32), None
    for plan in plans[0][0:count[0]]:
        def call(plan=plan):
            kiln.call("sddmm_with", kiln.ffi.addressof(plan), p, sample)
        found.append({"variant": kiln.text(plan.variant), "VS": plan.vector, "TL": plan.load,
                      "rows_a_step": plan.rows, "K": plan.columns, "chosen": bool(plan.chosen),
                      "limit": kiln.text(plan.limit), "predicted_ms": plan.seconds * 1e3,
                      "ms": median_time(call, device.synchronize, 0.01) * 1e3})
        if len(col) <= COMPARED:
            kiln.call("matrix_get", got, p)
            want = got.copy() if want is None else want
            found[-1]["difference"] = float(np.abs(got - want).max() / np.abs(want).max())
    kiln.lib.kiln_free(plans[0])
    p.free()
    for matrix in (S, a, b):
        matrix.free()
    times = sorted(plan["ms"] for plan in found)
    chosen = next(plan["ms"] for plan in found if plan["chosen"])
    return {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": len(col), "best_ms": times[0],
            "chosen_ms": chosen, "loss": chosen / times[0] - 1,
            "difference": max(plan.get("difference", 0) for plan in found), "plans": found}


def run_long(device, k=32, rows=2_200_000, per_row=1000):
    """More than 2^31 entries, in CuPy's memory: each product is k (1 + column % 7), the sum of their squares
    an exact number. So are those of a column times its factor; their first time has the copy by columns in
    it."""
    import cupy
    cols, nnz = 1000 * per_row, rows * per_row
    col = cupy.empty((rows, per_row), np.int32)
    cupy.add(cupy.arange(per_row, dtype=np.int32) * 1000, (cupy.arange(rows, dtype=np.int32) % 1000)[:, None],
             out=col)
    start, value = cupy.arange(rows + 1, dtype=np.int64) * per_row, cupy.ones(nnz, np.float32)
    A, B = np.ones((rows, k), np.float32), np.repeat(1 + np.arange(cols, dtype=np.float32) % 7,
                                                     k).reshape(cols, k)
    a, b = device.dense(rows, k, np.float32, A), device.dense(cols, k, np.float32, B)
    S = kiln.wrap(device, value.data.ptr, (rows, cols), row_start=kiln.address(start.data.ptr),
                  col=kiln.address(col.data.ptr), trusted=1)
    p, total = kiln.like(device, S), kiln.ffi.new("double *")
    sample = kiln.struct("sample", kind=TIMES, S=S, A=a, B=b)
    kiln.call("sddmm", p, total, 1, sample, 0)
    got = np.empty(nnz, np.float32)
    kiln.call("matrix_get", got, p)
    want = float(rows // 1000 * ((k * (1 + np.arange(cols, dtype=np.float64) % 7)) ** 2).sum())
    wrong = sum(int((got[at:at + per_row] != k * (1 + col[at // per_row].get() % 7)).sum())
                for at in range(0, nnz, 997 * per_row))

    def sddmm():
        kiln.call("sddmm", p, None, 1, sample, 0)

    row = {"case": "long", "k": k, "rows": rows, "columns": cols, "nnz": nnz,
           "sddmm_ms": median_time(sddmm, device.synchronize) * 1e3, "sum_difference": total[0] / want - 1,
           "wrong": wrong}
    p.free()
    y = device.dense(cols, k, np.float32)

    def turned():
        kiln.call("sddmm_multiply", y, None, 1, 1, sample, 0, None)
        device.synchronize()

    began = time.perf_counter()
    turned()
    row["turned_first_ms"] = (time.perf_counter() - began) * 1e3
    row["turned_ms"] = median_time(turned, device.synchronize) * 1e3
    sums = np.empty((cols, k), np.float32)
    kiln.call("matrix_get", sums, y)
    row["turned_wrong"] = int((sums != rows // 1000 * k * (1 + np.arange(cols) % 7)[:, None]).sum())
    for matrix in (S, a, b, y):
        matrix.free()
    return row


def run(device, name, k, data, peers, rode, halves):
    rows, cols = CASES[name][:2]
    start, col, value = data
    row = {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": len(col)}
    S = device.sparse((rows, cols), np.float32, start, col, value)
    a, b = (make_factor(device, n, k, peers) for n in (rows, cols))
    y, t = device.dense(rows, k, np.float32), device.dense(cols, k, np.float32)
    p = kiln.like(device, S)
    sample = kiln.struct("sample", kind=TIMES, S=S, A=a, B=b)

    def sddmm():
        kiln.call("sddmm", p, None, 1, sample, 0)

    def fused(to, transposed):
        kiln.call("sddmm_multiply", to, None, 1, int(transposed), sample, 0, None)

    def product():
        kiln.call("multiply", y, 1, 0, p, b, 0, None)

    def pair():
        sddmm()
        product()

    row["sddmm_ms"] = median_time(sddmm, device.synchronize) * 1e3
    got = np.empty(len(col), np.float32)
    kiln.call("matrix_get", got, p)
    if halves:
        half_times(device, row, sample, a, b, p, got, y)
        sddmm()
    row["spmm_ms"] = median_time(product, device.synchronize) * 1e3
    row["pair_ms"] = median_time(pair, device.synchronize) * 1e3
    row["fused_ms"] = median_time(lambda: fused(y, False), device.synchronize) * 1e3
    row["fused_transposed_ms"] = median_time(lambda: fused(t, True), device.synchronize) * 1e3
    row["gflops"] = 2e-6 * len(col) * k / row["sddmm_ms"]
    p.free()
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
    parser.add_argument("--cases", default=",".join(MADE))
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
    name, description = device.name, device.description
    print(f"{name}: {description}")
    rows = []
    for case in options.cases.split(","):
        if case == "long":
            rows.append(run_long(device))
            print(rows[-1], flush=True)
            continue
        rows_of, cols_of, entries, kind = CASES[case]
        data = [array.get() for array in make(rows_of, cols_of, entries / rows_of, kind, np.float32)]
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
    result = {"benchmark": "every plan of sampled products" if options.plans
              else "sampled products against cuSPARSE and RoDe",
              "device": f"{name}: {description}", "date": datetime.date.today().isoformat(),
              "commit": options.commit}
    for of, mean, peer in (("speedup", "geometric_mean", "cuSPARSE"),
                           ("rode_speedup", "rode_geometric_mean", "RoDe")):
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
    return int(any(abs(row.get(key, 0)) > LIMIT for row in rows for key in ("difference", "rode_difference",
                                                                            "sum_difference", "wrong",
                                                                            "turned_wrong")))


if __name__ == "__main__":
    sys.exit(main())
