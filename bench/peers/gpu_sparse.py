#!/usr/bin/env python3
"""Kiln's passes over sparse X on a GPU against cuSPARSE in one process on the same data: the pair SpMV +
product + transposed
   SpMV, and the same with a stored transpose (through CuPy). KDD2010-shaped data are made on the GPU from a
   seed.

usage: gpu_sparse.py [--cases NAME,...] [--types f64,f32] [--device cuda] [--json FILE] [--commit TEXT]
Times are medians over batches of calls, wall clock around a synchronised batch. "transposed" is X^T p alone.
"""
import argparse
import datetime
import json
import sys
import time

import numpy as np

import kiln_c as kiln
from gpu_common import median_time

# rows, columns, mean entries in a row, columns: zipf (c-th weight about 1/c), zipf with shuffled names, or
# uniform
CASES = {
    "paper-200": (500_000, 200, 2, "uniform"),
    "paper-1024": (500_000, 1024, 10.24, "uniform"),
    "paper-4096": (500_000, 4096, 40.96, "uniform"),
    "million": (2_000_000, 1_000_000, 30, "uniform"),
    "million-zipf": (2_000_000, 1_000_000, 30, "zipf"),
    "kdd": (15_009_374, 29_890_095, 28.24, "zipf"),
    "kdd-shuffled": (15_009_374, 29_890_095, 28.24, "shuffled"),
    "kdd-uniform": (15_009_374, 29_890_095, 28.24, "uniform"),
    "skewed-rows": (2_000_000, 1_500_000, 10, "skewed"),
}


def make(rows, cols, mean, kind, dtype, seed=1):
    """CSR arrays on the GPU: distinct columns in each row."""
    import cupy
    rng = cupy.random.default_rng(seed)
    if kind == "skewed":  # rows of a power law, some empty, and one full of entries
        length = cupy.minimum((mean / 3 * (1 - rng.random(rows)) ** (-1 / 1.5)).astype(cupy.int64), cols // 4)
        length[::7] = 0
        length[rows // 2] = 2 * cols
    else:
        length = rng.poisson(mean, rows).astype(cupy.int64)
    total = int(length.sum())
    entry = \
        cupy.searchsorted(cupy.cumsum(length), cupy.arange(total, dtype=cupy.int64), side="right")
    entry *= cols
    step = 1 << 26
    for at in range(0, total, step):
        u = rng.random(min(step, total - at))
        c = (cupy.floor(cupy.exp(u * np.log(cols + 1.0)) - 1) if kind in ("zipf", "shuffled")
             else cupy.floor(u * cols))
        c = cupy.clip(c.astype(cupy.int64), 0, cols - 1)
        if kind == "shuffled":
            c = c * 15485863 % cols
        entry[at:at + step] += c
    entry.sort()
    keep = cupy.ones(total, dtype=bool)
    keep[1:] = entry[1:] != entry[:-1]
    entry = entry[keep]
    del keep
    start = cupy.searchsorted(entry, cupy.arange(rows + 1, dtype=cupy.int64) * cols)
    col = (entry % cols).astype(cupy.int32)
    del entry
    value = cupy.empty(len(col), dtype)
    for at in range(0, len(col), step):
        value[at:at + step] = rng.random(min(step, len(col) - at), dtype=np.float64) - 0.5
    cupy.get_default_memory_pool().free_all_blocks()
    return start.astype(cupy.int64), col, value


def run_kiln(device, shape, dtype, host, hv, hy, row, peers=True):
    rows, cols = shape
    X = device.sparse(shape, dtype, *host)
    v, y, w = device.dense(rows, 1, dtype, hv), device.dense(cols, 1, dtype, hy), device.dense(cols, 1, dtype)
    before = device.statistics()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        kiln.mmchain(w, 1.0, X, v, y)
        device.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    row["first_passes_ms"] = times
    row["fused_ms"] = median_time(lambda: kiln.mmchain(w, 1.0, X, v, y), device.synchronize) * 1e3
    got = w.numpy()[:, 0]
    row["transposed_ms"] = median_time(lambda: kiln.multiply(w, 1.0, X, v, transposed=True),
                                       device.synchronize) * 1e3
    q = device.dense(rows, 1, dtype)
    row["plain_ms"] = median_time(lambda: kiln.multiply(q, 1.0, X, y), device.synchronize) * 1e3
    after = device.statistics()
    row["layout_ms"] = (after["layout_seconds"] - before["layout_seconds"]) * 1e3
    row["layout_memory"] = (after["layout_bytes"] - before["layout_bytes"]) / row["bytes"]
    if row["columns"] <= 30_000_000 and peers:
        for k in (2, 8):
            Y, W = device.dense(cols, k, dtype).fill_random(1, k), device.dense(cols, k, dtype)
            row[f"fused_k{k}_ms"] = median_time(lambda: kiln.mmchain(W, 1.0, X, v, Y),
                                                device.synchronize) * 1e3
            Y.free(), W.free()
    for m in (X, v, y, w, q):
        m.free()
    return got


def run(device, name, dtype, exact, peers):
    import cupy
    import cupyx.cusparse
    import cupyx.scipy.sparse
    rows, cols, mean, kind = CASES[name]
    start, col, value = make(rows, cols, mean, kind, dtype)
    rng = np.random.default_rng(2)
    hv, hy = rng.random(rows).astype(dtype), rng.standard_normal(cols).astype(dtype)
    nnz = len(col)
    row = {"case": name, "type": np.dtype(dtype).name, "rows": rows, "columns": cols, "nnz": nnz,
           "bytes": nnz * (dtype().itemsize + 4) + (rows + 1) * 8}
    host = start.get(), col.get(), value.get()
    got = run_kiln(device, (rows, cols), dtype, host, hv, hy, row)
    if exact:
        other = {"bytes": row["bytes"], "columns": cols}
        bits = run_kiln(exact, (rows, cols), dtype, host, hv, hy, other, False)
        row.update(deterministic_ms=other["fused_ms"], deterministic_layout_ms=other["layout_ms"],
                   deterministic_memory=other["layout_memory"],
                   deterministic_differs=float(np.abs(bits - got).max() / np.abs(got).max()))
    pattern = {"bytes": row["bytes"], "columns": cols}
    run_kiln(device, (rows, cols), dtype, (host[0], host[1], None), hv, hy, pattern, False)
    row["pattern_ms"] = pattern["fused_ms"]
    if peers:
        X = cupyx.scipy.sparse.csr_matrix((value, col, start.astype(cupy.int32)), shape=(rows, cols))
        X.has_sorted_indices = X.has_canonical_format = True
        v, y = cupy.asarray(hv), cupy.asarray(hy)
        sync = cupy.cuda.Device().synchronize
        spmv = cupyx.cusparse.spmv
        row["pair_ms"] = median_time(lambda: spmv(X, v * spmv(X, y), transa=True), sync) * 1e3
        row["pair_transposed_ms"] = median_time(lambda: spmv(X, v, transa=True), sync) * 1e3
        want = spmv(X, v * spmv(X, y), transa=True).get()
        row["difference"] = float(np.abs(got - want).max() / np.abs(want).max())
        T = X.T.tocsr()
        row["stored_ms"] = median_time(lambda: spmv(T, v * spmv(X, y)), sync) * 1e3
        row["stored_transposed_ms"] = median_time(lambda: spmv(T, v), sync) * 1e3
        del X, T
    del start, col, value
    cupy.get_default_memory_pool().free_all_blocks()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--types", default="f64,f32")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-deterministic", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device = kiln.Device(options.device)
    exact = None if options.no_deterministic else kiln.Device(options.device, deterministic=True)
    name, description = device.name, device.description
    roof = device.bandwidth()
    print(f"{name}: {description}; read bandwidth {roof / 1e9:.0f} GB/s")
    rows = []
    for case in options.cases.split(","):
        for dtype in [{"f64": np.float64, "f32": np.float32}[t] for t in options.types.split(",")]:
            row = run(device, case, dtype, exact, not options.no_peers)
            row["fraction_of_roof"] = row["bytes"] / row["fused_ms"] * 1e3 / roof
            rows.append(row)
            print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                           for key, value in row.items()), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "passes over sparse X against cuSPARSE",
                       "device": f"{name}: {description}", "date": datetime.date.today().isoformat(),
                       "commit": options.commit, "read_bandwidth_gb_s": roof / 1e9, "rows": rows}, file,
                      indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
