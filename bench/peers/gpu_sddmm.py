#!/usr/bin/env python3
"""Kiln's sampled products on a GPU against cuSPARSE (PyTorch's sampled_addmm and sparse product) in one process on the same data,
shaped as in table III of the SDDMM paper: rows, columns and entries of the data sets, popular columns where theirs are.

usage: gpu_sddmm.py [--cases NAME,...] [--widths 32,128,512] [--device cuda] [--json FILE] [--commit TEXT]
Times are medians over batches of calls, wall clock around a synchronised batch. "fused" is kiln_sddmm_multiply, "pair" the same as two
calls, kiln_sddmm and then kiln_multiply. Fails where Kiln and the peer differ by more than 1e-4 of the largest.
"""
import argparse
import ctypes
import datetime
import json
import sys

import numpy as np

import kiln_ctypes as kiln
from gpu_common import median_time
from gpu_sparse import make, new_csr

TIMES, LIMIT = 2, 1e-4
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


def peer_times(row, start, col, value, A, B, got):
    try:
        import torch
    except ImportError:
        row["peer"] = "no PyTorch"
        return
    shape, sync = (row["rows"], row["columns"]), torch.cuda.synchronize
    S = torch.sparse_csr_tensor(torch.from_numpy(start), torch.from_numpy(col.astype(np.int64)), torch.from_numpy(value),
                                size=shape, device="cuda")
    a, b = torch.from_numpy(A).cuda(), torch.from_numpy(B).cuda()
    bt = b.t()
    row["peer"] = f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"
    row["peer_sddmm_ms"] = median_time(lambda: torch.sparse.sampled_addmm(S, a, bt, beta=0.0), sync) * 1e3
    row["peer_spmm_ms"] = median_time(lambda: S @ b, sync) * 1e3
    want = torch.sparse.sampled_addmm(S, a, bt, beta=0.0).values().cpu().numpy() * value
    row["difference"] = float(np.abs(got - want).max() / np.abs(want).max())
    del S, a, b, bt
    torch.cuda.empty_cache()


def run(device, name, k, data, peers):
    rows, cols = CASES[name][:2]
    start, col, value = data
    rng = np.random.default_rng(3)
    A, B = rng.random((rows, k), np.float32), rng.random((cols, k), np.float32)
    row = {"case": name, "k": k, "rows": rows, "columns": cols, "nnz": len(col)}
    S = new_csr(device, (rows, cols), np.float32, start, col, value)
    a, b = device.dense(rows, k, np.float32, A), device.dense(cols, k, np.float32, B)
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
    row["spmm_ms"] = median_time(product, device.sync) * 1e3
    row["pair_ms"] = median_time(pair, device.sync) * 1e3
    row["fused_ms"] = median_time(lambda: fused(y, False), device.sync) * 1e3
    row["fused_transposed_ms"] = median_time(lambda: fused(t, True), device.sync) * 1e3
    row["gflops"] = 2e-6 * len(col) * k / row["sddmm_ms"]
    kiln.library.kiln_matrix_free(p)
    for matrix in (S, a, b, y, t):
        matrix.free()
    if peers:
        peer_times(row, start, col, value, A, B, got)
        if "peer_sddmm_ms" in row:
            row["speedup"] = row["peer_sddmm_ms"] / row["sddmm_ms"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--widths", default="32,128,512")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device = kiln.Device(options.device)
    name, description = device.description()
    print(f"{name}: {description}")
    rows = []
    for case in options.cases.split(","):
        data = [array.get() for array in make(*CASES[case], np.float32)]
        for k in map(int, options.widths.split(",")):
            row = run(device, case, k, data, not options.no_peers)
            rows.append(row)
            print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                           for key, value in row.items()), flush=True)
    ratios = [row["speedup"] for row in rows if "speedup" in row]
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else None
    if mean:
        print(f"sddmm: {mean:.3g} times cuSPARSE in geometric mean, least {min(ratios):.3g}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "sampled products against cuSPARSE", "device": f"{name}: {description}",
                       "date": datetime.date.today().isoformat(), "commit": options.commit, "geometric_mean": mean,
                       "rows": rows}, file, indent=1)
            file.write("\n")
    return int(any(row.get("difference", 0) > LIMIT for row in rows))


if __name__ == "__main__":
    sys.exit(main())
