#!/usr/bin/env python3
"""The cost of an iteration of kiln_linreg on a GPU beside its one pass over X, for X of more than a gigabyte:
HIGGS-shaped dense data (11,000,000 x 28, columns of ever smaller scale, so that conjugate gradient goes on)
and KDD2010-shaped sparse data.

usage: gpu_iteration.py [--cases dense,kdd] [--device cuda] [--json FILE] [--commit TEXT]
"iteration" is by the times that the run notes of its iterations, from the tenth on; "pass" is mmchain with v and
z, the median over batches of calls.
"""
import argparse
import datetime
import json
import sys

import numpy as np

import kiln_c as kiln
from gpu_common import median_time
from gpu_sparse import make

FIRST, LAST = 10, 60


def dense(device):
    rows, cols = 11_000_000, 28
    host = np.random.default_rng(1).random((rows, cols))
    host *= 10.0 ** (-np.arange(cols) / 4)
    return device.dense(rows, cols, np.float64, host)


def kdd(device):
    import cupy
    shape = (15_009_374, 29_890_095)
    arrays = [cupy.asnumpy(part) for part in make(*shape, 28.24, "zipf", np.float64)]
    cupy.get_default_memory_pool().free_all_blocks()
    return device.sparse(shape, np.float64, *arrays)


def iteration_seconds(times):
    """Times iterations from the first on that counts; those whose end is told together have one time."""
    ends = [i for i, time in enumerate(times) if i >= FIRST and (i + 1 == len(times) or times[i + 1] > time)]
    return (times[ends[-1]] - times[ends[0]]) / (ends[-1] - ends[0])


def measure(device, name, X, intercept):
    rows, cols = X.shape
    y, z = (device.dense(rows, 1, np.float64).fill_random(2, 0),
            device.dense(cols, 1, np.float64).fill_random(2, 1))
    W, b, v = (device.dense(cols, 1, np.float64), device.dense(1, 1, np.float64),
               device.dense(rows, 1, np.float64))
    v.fill_random(2, 2, normal=False)
    for _ in range(3):
        kiln.mmchain(W, 1.0, X, v, z, 0.5, z)
    one_pass = median_time(lambda: kiln.mmchain(W, 1.0, X, v, z, 0.5, z), device.synchronize)
    for _ in range(2):
        report = kiln.fit("linreg", W, b, X, y, l2=1e-12, no_intercept=int(not intercept), no_preconditioner=1,
                          tolerance=1e-300, max_iterations=LAST)
    iteration = iteration_seconds(report.history["seconds"])
    row = {"case": name, "rows": rows, "cols": cols, "intercept": intercept, "pass_ms": 1e3 * one_pass,
           "iteration_ms": 1e3 * iteration, "ratio": iteration / one_pass,
           "before_ms": 1e3 * report.history["seconds"][0], "whole_ms": 1e3 * report.seconds}
    print(f"{name:6} {'intercept' if intercept else 'no intercept':12} pass {row['pass_ms']:8.3f} ms  "
          "iteration "
          f"{row['iteration_ms']:8.3f} ms, {row['ratio']:.3f} of its pass", flush=True)
    for matrix in (y, z, W, b, v):
        matrix.free()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", default="dense,kdd")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device, rows = kiln.Device(options.device), []
    for name in options.cases.split(","):
        X = {"dense": dense, "kdd": kdd}[name](device)
        rows += [measure(device, name, X, intercept) for intercept in (False, True)]
        X.free()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "an iteration of linear regression against its pass",
                       "device": device.description, "date": datetime.date.today().isoformat(),
                       "commit": options.commit, "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
