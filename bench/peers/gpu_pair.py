#!/usr/bin/env python3
"""Fused against composed on a GPU, in one process on the same data:
   Kiln's mmchain, w = X^T (v .* (X y)), against cuBLAS gemv + product + gemv (through PyTorch) for dense X, and cuSPARSE SpMV +
   product + transposed SpMV, and with a stored transpose (through CuPy), for CSR X.

usage: gpu_pair.py [--device cuda|opencl] [--format dense|csr] [--json FILE] [--commit TEXT]
Prints a table; GB/s counts X read once, so that the composed column shows what reading it twice costs. Times are the median
over batches of calls, wall clock around a synchronised batch.
"""
import argparse
import datetime
import json
import sys
import time

import numpy as np

import kiln_ctypes as kiln

DENSE = [(11_000_000, 28), (2_000_000, 100), (500_000, 256), (500_000, 1000), (500_000, 1024), (500_000, 2048),
         (200_000, 4096), (100_000, 8192), (20_000, 50_000)]
SPARSE = [(500_000, 200, 2), (500_000, 1024, 10), (500_000, 4096, 41), (2_000_000, 1_000_000, 30)]


def median_time(call, sync, least=0.15):
    call()
    sync()
    start = time.perf_counter()
    call()
    sync()
    once = max(time.perf_counter() - start, 1e-6)
    batch = max(1, int(0.01 / once))
    times = []
    begin = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < least:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        sync()
        times.append((time.perf_counter() - start) / batch)
    return sorted(times)[len(times) // 2]


def distinct_csr(rows, cols, per_row, dtype, seed, zipf=False):
    """Rows of a Poisson length about per_row, of distinct columns; zipf: column c with a weight of about 1/(c+1)."""
    import scipy.sparse as sp
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(rows), rng.poisson(per_row, rows))
    if zipf:
        col = np.floor(np.exp(rng.random(len(row)) * np.log(cols + 1)) - 1).astype(np.int64).clip(0, cols - 1)
    else:
        col = rng.integers(0, cols, len(row))
    entry = row * cols + col
    entry.sort()
    entry = entry[np.concatenate([[True], entry[1:] != entry[:-1]])]
    start = np.concatenate([[0], np.cumsum(np.bincount(entry // cols, minlength=rows))])
    col = (entry % cols).astype(np.int32)
    return sp.csr_matrix((rng.standard_normal(len(col)).astype(dtype), col, start), shape=(rows, cols))


def relative_error(got, want):
    return float(np.abs(got - want).max() / np.abs(want).max())


def run_dense(device, rows, cols, dtype):
    import torch
    X = device.dense(rows, cols, dtype).fill_random(1, 0)
    v = device.dense(rows, 1, dtype).fill_random(1, 1, normal=False)
    y = device.dense(cols, 1, dtype).fill_random(1, 2)
    w = device.dense(cols, 1, dtype)
    fused = median_time(lambda: kiln.mmchain(w, 1.0, X, v, y), device.sync)
    got = w.numpy()[:, 0]
    tX, tv, ty = (torch.from_numpy(m.numpy()).cuda() for m in (X, v, y))
    tv, ty = tv[:, 0].contiguous(), ty[:, 0].contiguous()
    for m in (X, v, y, w):
        m.free()
    pair = median_time(lambda: torch.mv(tX.t(), tv * torch.mv(tX, ty)), torch.cuda.synchronize)
    want = torch.mv(tX.t(), tv * torch.mv(tX, ty)).cpu().numpy()
    del tX
    torch.cuda.empty_cache()
    return {"format": "dense", "nnz": rows * cols, "bytes": rows * cols * dtype().itemsize, "fused_ms": fused * 1e3,
            "composed_ms": pair * 1e3, "difference": relative_error(got, want)}


def run_sparse(device, rows, cols, per_row, dtype, zipf):
    import cupy
    import cupyx.cusparse
    import cupyx.scipy.sparse
    host = distinct_csr(rows, cols, per_row, dtype, 1, zipf)
    rng = np.random.default_rng(2)
    hv, hy = rng.random(rows).astype(dtype), rng.standard_normal(cols).astype(dtype)
    X, v, y, w = device.csr(host), device.dense(rows, 1, dtype, hv), device.dense(cols, 1, dtype, hy), device.dense(cols, 1, dtype)
    fused = median_time(lambda: kiln.mmchain(w, 1.0, X, v, y), device.sync)
    got = w.numpy()[:, 0]
    for m in (X, v, y, w):
        m.free()
    cX, cv, cy = cupyx.scipy.sparse.csr_matrix(host), cupy.asarray(hv), cupy.asarray(hy)
    cT = cupyx.scipy.sparse.csr_matrix(host.T.tocsr())
    sync = cupy.cuda.Device().synchronize
    spmv = cupyx.cusparse.spmv
    pair = median_time(lambda: spmv(cX, cv * spmv(cX, cy), transa=True), sync)
    stored = median_time(lambda: spmv(cT, cv * spmv(cX, cy)), sync)
    want = host.T @ (hv * (host @ hy))
    size = host.nnz * (dtype().itemsize + 4) + (rows + 1) * 8
    return {"format": "csr zipf" if zipf else "csr", "nnz": host.nnz, "bytes": size, "fused_ms": fused * 1e3,
            "composed_ms": pair * 1e3, "stored_transpose_ms": stored * 1e3, "difference": relative_error(got, want)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--format", choices=["dense", "csr"], help="only these")
    options = parser.parse_args()
    device = kiln.Device(options.device)
    name, description = device.description()
    roof = device.bandwidth()
    print(f"{name}: {description}; read bandwidth {roof / 1e9:.0f} GB/s")
    print(f"{'shape':>22} {'type':>4} {'kind':>9} {'fused ms':>9} {'GB/s':>6} {'of roof':>7} {'composed':>9} {'ratio':>6} "
          f"{'stored T':>9} {'ratio':>6} {'differ':>8}")
    rows_out = []
    cases = [("dense", shape, None) for shape in DENSE] + [("csr", s, False) for s in SPARSE] + \
            [("csr", s, True) for s in SPARSE[2:]]
    for dtype in (np.float64, np.float32):
        for kind, shape, zipf in cases:
            if options.format and kind != options.format:
                continue
            if kind == "dense":
                row = run_dense(device, *shape, dtype)
            else:
                row = run_sparse(device, *shape, dtype, zipf)
            row.update(rows=shape[0], cols=shape[1], type=np.dtype(dtype).name,
                       fraction_of_roof=row["bytes"] / row["fused_ms"] * 1e3 / roof,
                       ratio=row["composed_ms"] / row["fused_ms"])
            rows_out.append(row)
            stored = row.get("stored_transpose_ms")
            print(f"{shape[0]:>11,} x {shape[1]:<8,} {row['type'][5:]:>4} {row['format']:>9} {row['fused_ms']:9.3f} "
                  f"{row['bytes'] / row['fused_ms'] / 1e6:6.0f} {row['fraction_of_roof']:7.0%} {row['composed_ms']:9.3f} "
                  f"{row['ratio']:6.2f} {stored or float('nan'):9.3f} {(stored or float('nan')) / row['fused_ms']:6.2f} "
                  f"{row['difference']:8.1e}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "mmchain fused against composed", "device": f"{name}: {description}",
                       "date": datetime.date.today().isoformat(), "commit": options.commit,
                       "kiln": kiln.library.kiln_version().decode(), "read_bandwidth_gb_s": roof / 1e9, "rows": rows_out}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
