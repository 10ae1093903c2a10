#!/usr/bin/env python3
"""Truncated SVD and PCA on the CPU beside scikit-learn's: ARPACK asked for the same residual, and its
randomised method as it is by default, with Kiln at the residual which that reaches. Turns of all of them
follow one another; of each the least wall time counts and the least processor time, which is what a busy
machine leaves to compare.

usage: svd.py [--json FILE] [--commit TEXT] [--turns N] [--sets NAME,...] FOLDER
FOLDER has bow/docword.kos.txt.gz, libsvm/a9a.gz, ratings/ml-100k.u.data.gz and
dense/mnist-train-images-idx3-ubyte.gz.
"""
import argparse
import datetime
import gzip
import json
import os
import time

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_svmlight_file
from sklearn.decomposition import PCA, TruncatedSVD

import kiln_c as kiln

TOLERANCE = 1e-8


def words(folder):
    with gzip.open(os.path.join(folder, "bow/docword.kos.txt.gz"), "rt") as file:
        numbers = np.array(file.read().split(), np.int64)
    found = numbers[3:].reshape(-1, 3)
    return sp.csr_matrix((found[:, 2].astype(float), (found[:, 0] - 1, found[:, 1] - 1)), numbers[:2])


def ratings(folder):
    with gzip.open(os.path.join(folder, "ratings/ml-100k.u.data.gz")) as file:
        found = np.loadtxt(file, np.int64, usecols=(0, 1, 2))
    return sp.csr_matrix((found[:, 2].astype(float), (found[:, 0] - 1, found[:, 1] - 1)))


def people(folder):
    with gzip.open(os.path.join(folder, "libsvm/a9a.gz")) as file:
        return load_svmlight_file(file)[0].tocsr()


def digits(folder):
    with gzip.open(os.path.join(folder, "dense/mnist-train-images-idx3-ubyte.gz")) as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784).astype(float)


def made(_):
    return np.random.default_rng(0).standard_normal((200000, 100)) * np.linspace(1, 3, 100)


SETS = {"kos": (words, 50, False), "ml-100k": (ratings, 20, False), "a9a": (people, 20, False),
        "mnist": (digits, 50, True), "200000x100": (made, 10, True)}


def residual(X, mean, U, s, V):
    """max(|| A v - s u ||, || A^T u - s v ||) / s_1 of A = X - 1 mean^T."""
    forth = X @ V - mean @ V - U * s
    back = X.T @ U - np.outer(mean, U.sum(axis=0)) - V * s
    return max(np.linalg.norm(part, axis=0).max() for part in (forth, back)) / s[0]


class Kiln:
    def __init__(self, X, k, center):
        self.device, self.center, self.shape = kiln.Device("cpu"), center, X.shape
        rows, cols = X.shape
        self.X = self.device.csr(X) if sp.issparse(X) else self.device.dense(rows, cols, float, X)
        self.U, self.s, self.V = (self.device.dense(*shape, float) for shape in ((rows, k), (k, 1), (cols, k)))

    def __call__(self, tolerance):
        return kiln.fit("svd", self.U, self.s, self.V, self.X, center=int(self.center), tolerance=tolerance)


def peer(X, k, center, solver, **more):
    """U, s, V and means as the estimator's."""
    if center:
        made_by = PCA(k, svd_solver=solver, random_state=0, **more)
    else:
        made_by = TruncatedSVD(k, algorithm=solver, random_state=0, **more)
    T = made_by.fit_transform(X)
    s = made_by.singular_values_
    return T / s, s, made_by.components_.T, made_by.mean_ if center else np.zeros(X.shape[1])


def timed(call):
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return (time.perf_counter() - wall, time.process_time() - processor), result


def compare(X, k, center, turns):
    arpack = (lambda: peer(X, k, center, "arpack", tol=TOLERANCE))
    randomized = (lambda: peer(X, k, center, "randomized"))
    reached = {}
    for name, call in (("arpack", arpack), ("randomized", randomized)):
        U, s, V, mean = call()
        reached[name] = residual(X, mean, U, s, V)
    ours = Kiln(X, k, center)
    calls = {"kiln": lambda: ours(TOLERANCE), "arpack": arpack,
             "kiln at the randomised residual": lambda: ours(max(reached["randomized"], TOLERANCE)),
             "randomized": randomized}
    times, reports = {name: [] for name in calls}, {}
    for _ in range(turns):
        for name, call in calls.items():
            seconds, result = timed(call)
            times[name].append(seconds)
            if name.startswith("kiln"):
                reports[name] = result
    row = {}
    for name, found in times.items():
        row[name] = {"seconds": min(wall for wall, _ in found),
                     "processor_seconds": min(processor for _, processor in found)}
        row[name]["residual"] = reached[name] if name in reached else reports[name].residual
        if name in reports:
            row[name].update(iterations=reports[name].n_iter, passes=reports[name].passes,
                             solver=reports[name].solver)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    result = {"benchmark": "truncated SVD and PCA beside scikit-learn", "device": "cpu, "
              + kiln.Device("cpu").description, "date": datetime.date.today().isoformat(),
              "commit": options.commit, "scikit-learn": sklearn.__version__, "turns": options.turns, "rows": []}
    for name in options.sets.split(","):
        make, k, center = SETS[name]
        X = make(options.folder)
        row = {"data": name, "rows": X.shape[0], "columns": X.shape[1], "k": k, "center": center,
               **compare(X, k, center, options.turns)}
        result["rows"].append(row)
        print(json.dumps(row), flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(result, file, indent=1)
                file.write("\n")


if __name__ == "__main__":
    main()
