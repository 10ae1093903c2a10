"""Measures what standard errors of many columns hold beside X: the largest resident memory of
LinearRegression's inference, plain and HC3, less what there was before.

    python bench/studies/inference_memory.py [--rows 15000] [--columns 5000] [--json FILE] [--commit TEXT]

Linux alone. Beside X the memory grows by a dozen vectors of its rows.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import datetime
import json
import pathlib
import time

import numpy as np

import kiln


def resident(name):
    """Gigabytes of /proc/self/status: VmRSS, or VmHWM, the most so far."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e9


def measured(kind, model, X, y):
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the most so far begins anew
    before, processor = resident("VmRSS"), time.process_time()
    result = model.inference(X, y, cov_type=kind)
    row = {"errors": kind, "peak_beside_X_gb": round(resident("VmHWM") - before, 3),
           "processor_seconds": round(time.process_time() - processor, 1),
           "distance": float(result.distance)}
    print(row, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=15000)
    parser.add_argument("--columns", type=int, default=5000)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    X = np.empty((asked.rows, asked.columns))
    for part in np.array_split(np.arange(asked.rows), max(1, asked.rows // 1000)):
        X[part] = rng.random((len(part), asked.columns)) - 0.5
    y = X[:, :50] @ rng.normal(size=50) + rng.normal(size=asked.rows)
    model = kiln.LinearRegression(device="cpu", solver="cg").fit(X, y)
    rows = [measured(kind, model, X, y) for kind in ("nonrobust", "HC3")]
    if asked.json:
        asked.json.write_text(json.dumps({
            "benchmark": "memory of standard errors", "commit": asked.commit, "device": "cpu",
            "date": str(datetime.date.today()), "rows_of_X": asked.rows, "columns": asked.columns,
            "X_gb": X.nbytes / 1e9, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
