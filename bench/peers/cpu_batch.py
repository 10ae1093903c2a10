#!/usr/bin/env python3
"""Many vectors at once on the CPU: kiln_batch_reduce and kiln_batch_scale against NumPy (add.reduceat, sum,
multiply) and, where it is installed, PyTorch (sum, mul). The fastest of several turns, in which Kiln and the
read bandwidth take part, and the peers in the first of them: on a machine that others use too, that is what
comes nearest to each one's own time.

usage: cpu_batch.py [--type f32|f64] [--json FILE] [--commit TEXT] [--elements N] [--turns N] [--peer-turns N]
"""
import argparse
import datetime
import json
import os
import pathlib
import time

import numpy as np

try:
    import torch
except ModuleNotFoundError:
    torch = None

import kiln_c as kiln
from gpu_batch import Batch, LENGTHS, SUM


def once(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peers_of(x, y, s, count, length):
    """Calls of NumPy and PyTorch for the vectors of x and their factors s, which they write to y."""
    matrix, target, starts = x[:count * length].reshape(count,
                                                        length), y[:count
                                                                   * length].reshape(count,
                                                                                     length), np.arange(count) * length
    calls = {"reduceat": lambda: np.add.reduceat(matrix.ravel(), starts), "numpy_sum": lambda: matrix.sum(1),
             "multiply": lambda: np.multiply(matrix, s, out=target)}
    if torch:
        a, b, t = torch.from_numpy(matrix), torch.from_numpy(s), torch.from_numpy(target)
        calls |= {"torch_sum": lambda: a.sum(1), "torch_mul": lambda: torch.mul(a, b, out=t)}
    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--type", choices=["f32", "f64"], default="f32")
    parser.add_argument("--commit", default="")
    parser.add_argument("--elements", type=int, default=40_000_000)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--peer-turns", type=int, default=12)
    args = parser.parse_args()
    real = np.dtype({"f32": np.float32, "f64": np.float64}[args.type])
    device, element, longest = kiln.Device("cpu"), real.itemsize, max(LENGTHS)
    if torch:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    x, y = np.random.default_rng(3).random(longest, real), np.zeros(longest, real)
    X, Y, rows, calls, made, read = (device.dense(1, longest, real, x), device.dense(1, longest, real), {},
                                     {}, [], 0)
    for length in LENGTHS:
        count = max(1, args.elements // length)
        batch, out, factors = (Batch(count, length), device.dense(count, 1, real),
                               device.dense(count, 1, real, x[:count]))
        rows[length] = {"length": length, "count": count}
        calls[length] = ({"sum": lambda batch=batch, out=out: batch.reduce(out, SUM, X),
                          "scale": lambda batch=batch, factors=factors: batch.scale(Y, X, factors)},
                         peers_of(x, y, x[:count, None], count, length))
        made += [batch, out, factors]
    for turn in range(args.turns):
        for length, row in rows.items():
            read = max(read, device.bandwidth(remeasure=True))
            for name, call in (calls[length][0] | (calls[length][1] if turn < args.peer_turns
                                                   else {})).items():
                row[name] = min(row.get(name, float("inf")), once(call))
    names = [name for name in rows[1] if name not in ("length", "count")]
    print(f"{args.type}, read {read / 1e9:.1f} GB/s; ms\n    length of read of read "
          + " ".join(f"{name:>9s}" for name in names))
    for row in rows.values():
        row["of_read"] = element * row["count"] * (row["length"] + 1) / row["sum"] / read
        row["scale_of_read"] = element * row["count"] * (2 * row["length"] + 1) / row["scale"] / read
        print(f"{row['length']:10d} {100 * row['of_read']:6.1f}% {100 * row['scale_of_read']:6.1f}% "
              + " ".join(f"{1e3 * row[name]:9.2f}" for name in names), flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(
            {"device": device.description, "date": datetime.date.today().isoformat(), "commit": args.commit,
             "type": args.type, "numpy": np.__version__, "torch": torch and torch.__version__, "read": read,
             "rows": list(rows.values())}, indent=1) + "\n")
    for item in made:
        item.free()


if __name__ == "__main__":
    main()
