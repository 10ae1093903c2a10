#!/usr/bin/env python3
"""Many vectors at once on the CPU: kiln_batch_reduce and kiln_batch_scale against NumPy (add.reduceat, sum, multiply), f32. The fastest of
several turns, in which all of them and the read bandwidth take part: on a machine that others use too, that is what comes nearest to each
one's own time.

usage: cpu_batch.py [--json FILE] [--commit TEXT] [--elements N] [--turns N]
"""
import argparse
import datetime
import json
import pathlib
import time

import numpy as np

import kiln_c as kiln
from gpu_batch import Batch, LENGTHS, SUM


def once(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--elements", type=int, default=40_000_000)
    parser.add_argument("--turns", type=int, default=12)
    args = parser.parse_args()
    device = kiln.Device("cpu")
    read = 0
    X = device.dense(1, args.elements, np.float32).fill_random(3, 0)
    Y, x, rows = device.dense(1, args.elements, np.float32), X.numpy().ravel(), []
    for length in [length for length in LENGTHS if length <= args.elements]:
        count = args.elements // length
        batch, out = Batch(count, length), device.dense(count, 1, np.float32)
        factors = device.dense(count, 1, np.float32).fill_random(1, 1)
        matrix, starts = x[:count * length].reshape(count, length), np.arange(0, count * length, length)
        s, target = factors.numpy(), np.empty((count, length), np.float32)
        calls = {"sum": lambda: batch.reduce(out, SUM, X), "scale": lambda: batch.scale(Y, X, factors),
                 "reduceat": lambda: np.add.reduceat(x[:count * length], starts), "numpy_sum": lambda: matrix.sum(1),
                 "multiply": lambda: np.multiply(matrix, s, out=target)}
        row = {"length": length, "count": count} | {name: once(call) for name, call in calls.items()}
        for _ in range(args.turns):
            read = max(read, device.bandwidth(remeasure=True))
            row |= {name: min(row[name], once(call)) for name, call in calls.items()}
        rows.append(row)
        for item in (out, factors, batch):
            item.free()
    print(f"read {read / 1e9:.1f} GB/s\n    length     sum   of read    scale    reduceat       sum  multiply (ms)")
    for row in rows:
        row["of_read"] = 4 * row["count"] * (row["length"] + 1) / row["sum"] / read
        row["scale_of_read"] = 4 * row["count"] * (2 * row["length"] + 1) / row["scale"] / read
        print(f"{row['length']:10d} {1e3 * row['sum']:7.2f}  {100 * row['of_read']:6.1f}%  {1e3 * row['scale']:7.2f}  "
              f"{1e3 * row['reduceat']:9.2f} {1e3 * row['numpy_sum']:9.2f} {1e3 * row['multiply']:9.2f}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(
            {"device": device.description, "date": datetime.date.today().isoformat(), "commit": args.commit, "type": "f32",
             "read": read, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
