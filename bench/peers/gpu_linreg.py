#!/usr/bin/env python3
"""Linear regression to the same answer on every device: HIGGS-shaped dense data (11,000,000 x 28, f64, made
on each device from a seed) and a sparse set with popular columns. Each device's weights are compared with the
CPU's.

usage: gpu_linreg.py [--json FILE] [--commit TEXT] [--rows N]
"""
import argparse
import datetime
import json
import sys
import time

import numpy as np

import kiln_c as kiln
from gpu_common import distinct_csr


def solve(device, X, y, cols):
    W, b = device.dense(cols, 1, np.float64), device.dense(1, 1, np.float64)
    start = time.perf_counter()
    report = kiln.fit("linreg", W, b, X, y, l2=1.0)
    first = time.perf_counter() - start
    # what the first has derived from a sparse X has kernels of its own, which the second builds
    for _ in range(2):
        report = kiln.fit("linreg", W, b, X, y, l2=1.0)
    weights = W.numpy()[:, 0]
    for m in (W, b):
        m.free()
    return weights, report, first


def dense_case(device, rows):
    cols = 28
    X = device.dense(rows, cols, np.float64).fill_random(7, 0)
    noise = device.dense(rows, 1, np.float64).fill_random(7, 1)
    truth = device.dense(cols, 1, np.float64).fill_random(7, 2)
    y = device.dense(rows, 1, np.float64)
    kiln.multiply(y, 1.0, X, truth, 1.0, noise)
    result = solve(device, X, y, cols)
    for m in (X, noise, truth, y):
        m.free()
    return result


def sparse_case(device, host, target):
    X, y = device.csr(host), device.dense(host.shape[0], 1, np.float64, target)
    result = solve(device, X, y, host.shape[1])
    for m in (X, y):
        m.free()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--rows", type=int, default=11_000_000)
    options = parser.parse_args()
    host = distinct_csr(500_000, 20_000, 30, np.float64, 3, zipf=True)
    rng = np.random.default_rng(4)
    target = host @ rng.standard_normal(host.shape[1]) + rng.standard_normal(host.shape[0])
    rows, references, failed = [], {}, 0
    for name in sorted((row["name"] for row in kiln.devices() if row["usable"]),
                       key=lambda name: name != "cpu"):
        device = kiln.Device(name)
        description = device.description
        for case, shape, run in (("dense", (options.rows, 28), lambda: dense_case(device, options.rows)),
                                 ("csr", host.shape, lambda: sparse_case(device, host, target))):
            row = {"device": name, "description": description, "case": case, "rows": shape[0],
                   "cols": shape[1]}
            try:
                weights, report, first = run()
                reference = references.setdefault(case, weights)
                row.update(iterations=report.n_iter, converged=report.converged, r2=report.figures["r2"],
                           objective=report.objective, seconds=report.seconds, first_seconds=first,
                           difference=float(np.linalg.norm(weights - reference) / np.linalg.norm(reference)))
                row["same_answer"] = bool(report.converged and row["difference"] < 1e-8)
                failed += not row["same_answer"]
                print(f"{name:12} {case:6} {report.n_iter:4} iterations {report.seconds:9.4f} s (first "
                      f"{first:8.3f} s)  "
                      f"R2 {report.figures['r2']:.9f}  differs by {row['difference']:.1e}", flush=True)
            except kiln.KilnError as error:
                failed += 1
                row["error"] = str(error)
                print(f"{name:12} {case:6} failed: {error}", flush=True)
            rows.append(row)
        del device  # and so closed before the next one is opened
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "linear regression on every device",
                       "date": datetime.date.today().isoformat(), "commit": options.commit,
                       "kiln": kiln.version, "rows": rows}, file, indent=1)
            file.write("\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
