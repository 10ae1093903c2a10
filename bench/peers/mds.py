#!/usr/bin/env python3
"""A step of SMACOF (kiln_guttman_step) on the CPU against an iteration of scikit-learn's smacof, from the
same layout: what an iteration takes, and how far apart the stresses are after STEPS of them. Both with
--threads threads; the fastest of several turns, in which both take part.

usage: mds.py [--json FILE] [--commit TEXT] [--threads N] [--turns N]
"""
import argparse
import datetime
import inspect
import json
import os
import time

import numpy as np

SHAPES = [(1_024, 2), (1_024, 3), (4_096, 2), (4_096, 3)]
STEPS, FEW = 8, 2


def ours(kiln, device, D, start, dtype):
    """A function that makes STEPS steps, and returns seconds of the fastest and the stress of the last layout
    but one."""
    n, p = start.shape
    matrix, Y, R = device.dense(n, n, dtype, D), device.dense(n, p, dtype), device.dense(n, p, dtype)
    sums = device.dense(1, 4, "float64")
    step = kiln.struct("guttman", R=R, sums=sums, Y=Y, D=matrix)

    def run():
        layout, best = start.astype(dtype), 9e9
        for _ in range(STEPS + 1):
            kiln.call("matrix_set", Y, np.ascontiguousarray(layout))
            began = time.perf_counter()
            kiln.call("guttman_step", step)
            best = min(best, time.perf_counter() - began)
            layout = R.numpy() / dtype(n)
        return best, float(sums.numpy()[0, 0])
    return run


def theirs(D, start):
    """A function that returns seconds of an iteration, and the stress after STEPS of them."""
    from sklearn.manifold import smacof
    known = inspect.signature(smacof).parameters
    more = {name: value for name, value in (("normalized_stress", False), ("n_jobs", 1)) if name in known}

    def iterations(count):
        began = time.perf_counter()
        _, stress = smacof(D, n_components=start.shape[1], init=start, n_init=1, max_iter=count, eps=0,
                           **more)
        return time.perf_counter() - began, stress

    def run():
        short, (long, stress) = iterations(FEW)[0], iterations(STEPS)
        return (long - short) / (STEPS - FEW), float(stress)
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    import kiln_c as kiln
    device, rows = kiln.Device("cpu", threads=options.threads), []
    for n, p in SHAPES:
        random = np.random.default_rng(1)
        X, start = random.standard_normal((n, 8)), random.standard_normal((n, p))
        D = np.sqrt(np.maximum((X * X).sum(1)[:, None] + (X * X).sum(1) - 2 * X @ X.T, 0))
        np.fill_diagonal(D, 0)
        D = (D + D.T) / 2
        runs = {"float32": ours(kiln, device, D, start, np.float32),
                "float64": ours(kiln, device, D, start, np.float64), "sklearn": theirs(D, start)}
        best, stress = {}, {}
        for _ in range(options.turns):
            for name, run in runs.items():
                seconds, stress[name] = run()
                best[name] = min(best.get(name, 9e9), seconds)
        for kind in ("float32", "float64"):
            row = {"n": n, "p": p, "type": kind, "kiln_ms": 1e3 * best[kind],
                   "sklearn_ms": 1e3 * best["sklearn"], "ratio": best["sklearn"] / best[kind],
                   "stress_apart": stress[kind] / stress["sklearn"] - 1}
            rows.append(row)
            print(json.dumps(row), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "a step of SMACOF", "device": device.description,
                       "commit": options.commit, "date": datetime.date.today().isoformat(), "rows": rows},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
