#!/usr/bin/env python3
"""mmchain on dense X of 4 GB on a GPU, from 1 to 100,000 columns, odd numbers of them too, for 1 to 8 columns
of y, against the measured read bandwidth and, on CUDA, against cuBLAS gemv + product + gemv (through PyTorch)
for one column.

usage: gpu_dense.py [--device cuda|opencl] [--columns N,...] [--json FILE] [--commit TEXT]
Times are the median over batches of calls, wall clock around a synchronised batch. "difference" is the
largest relative error against NumPy over 1, 3 and 8 columns, on X of 100 MB.
"""
import argparse
import datetime
import json
import sys

import numpy as np

import kiln_c as kiln
from gpu_common import median_time, relative_error

COLUMNS = (1, 3, 7, 8, 13, 28, 100, 101, 256, 999, 1000, 1001, 1024, 2048, 4096, 5003, 6000, 8192, 12000,
           12001, 20000, 20001, 49999, 50000, 100000)
SEVERAL = (28, 256, 1024, 4096, 20000, 50000, 100000)
BYTES, CHECKED_BYTES = 4_000_000_000, 100_000_000


def operands(device, rows, cols, dtype):
    return (device.dense(rows, cols, dtype).fill_random(3, 0),
            device.dense(rows, 1, dtype).fill_random(1, 1, normal=False))


def run(device, X, v, k):
    y, w = device.dense(X.shape[1], k, X.dtype).fill_random(1, 2), device.dense(X.shape[1], k, X.dtype)
    seconds = median_time(lambda: kiln.mmchain(w, 1.0, X, v, y), device.synchronize, least=0.04)
    result, vector = w.numpy(), y.numpy()
    y.free()
    w.free()
    return seconds, result, vector


def difference(device, cols, dtype):
    X, v = operands(device, max(CHECKED_BYTES // (cols * dtype().itemsize), 40), cols, dtype)
    x, weights, worst = X.numpy(), v.numpy(), 0.0
    for k in (1, 3, 8):
        _, got, y = run(device, X, v, k)
        worst = max(worst, relative_error(got, x.T @ (weights * (x @ y))))
    X.free()
    v.free()
    return worst


def composed(rows, cols, dtype):
    import torch
    kind = {"float64": torch.float64, "float32": torch.float32}[np.dtype(dtype).name]
    X = torch.empty((rows, cols), dtype=kind, device="cuda").uniform_(-0.5, 0.5)
    v, y = torch.rand(rows, dtype=kind, device="cuda"), torch.rand(cols, dtype=kind, device="cuda")
    seconds = median_time(lambda: torch.mv(X.t(), v * torch.mv(X, y)), torch.cuda.synchronize, least=0.04)
    del X
    torch.cuda.empty_cache()
    return seconds


def measure(device, cols, dtype, roof, with_pair):
    rows, wrong, one = BYTES // (cols * dtype().itemsize), difference(device, cols, dtype), None
    X, v = operands(device, rows, cols, dtype)
    size = rows * (cols + 1) * dtype().itemsize  # X and v
    for k in (1, 2, 4, 8) if cols in SEVERAL else (1,):
        seconds, _, _ = run(device, X, v, k)
        one = one or seconds
        yield {"rows": rows, "cols": cols, "k": k, "type": np.dtype(dtype).name, "bytes": size,
               "fused_ms": seconds * 1e3, "gb_s": size / seconds / 1e9, "fraction_of_roof": size / seconds
               / roof, "times_of_one": seconds / one,
               "difference": wrong}
    X.free()
    v.free()
    if with_pair:
        yield composed(rows, cols, dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--columns", type=lambda text: tuple(int(part) for part in text.split(",")),
                        default=COLUMNS)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device = kiln.Device(options.device)
    name, description = device.name, device.description
    roof, rows_out = device.bandwidth(), []
    print(f"{name}: {description}; read bandwidth {roof / 1e9:.0f} GB/s")
    for dtype in (np.float64, np.float32):
        for cols in options.columns:
            found = list(measure(device, cols, dtype, roof, options.device.startswith("cuda")))
            if isinstance(found[-1], float):
                pair = found.pop()
                found[0].update(composed_ms=pair * 1e3, ratio=pair * 1e3 / found[0]["fused_ms"])
            for row in found:
                print(f"{row['rows']:>11,} x {cols:<7,} {row['type'][5:]} k {row['k']}: "
                      f"{row['fused_ms']:8.3f} ms {row['gb_s']:5.0f} GB/s "
                      f"{row['fraction_of_roof']:5.0%} of roof, {row['times_of_one']:.2f} of one column, "
                      "ratio "
                      f"{row.get('ratio', float('nan')):.2f}, differ {row['difference']:.0e}", flush=True)
            rows_out += found
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "mmchain on dense X of 4 GB", "device": f"{name}: {description}",
                       "date": datetime.date.today().isoformat(), "commit": options.commit,
                       "read_bandwidth_gb_s": roof / 1e9, "rows": rows_out}, file, indent=1)
            file.write("\n")
    return 0 if all(row["difference"] < 1e-4 for row in rows_out) else 1


if __name__ == "__main__":
    sys.exit(main())
