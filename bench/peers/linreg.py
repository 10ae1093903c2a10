"""Linear regression on the shipped flights: Kiln against scikit-learn's Ridge and SciPy's lsqr, one objective
for all.

Prints for each the median of the times to solve (data in memory, taking turns), the objective it reached, and
how far its coefficients and predictions are from a dense QR solution; ends with 1 if Kiln is further than
1e-8 from that.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/linreg.py --device cpu --threads 2
"""
import argparse
import csv
import datetime
import gzip
import json
import os
import statistics
import sys
import time

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import sklearn
from sklearn.linear_model import Ridge

import kiln_c as kiln

FLIGHTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "flights.csv.gz")


def read_flights():
    """X in CSR, text columns one-hot with all their levels, and the arrival delay."""
    with gzip.open(FLIGHTS, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    y = np.array([float(row["arr_delay"]) for row in rows])
    blocks = []
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name == "arr_delay":
            continue
        if name in ("carrier", "origin", "dest"):
            levels, codes = np.unique(values, return_inverse=True)
            shape = (len(rows), len(levels))
            blocks.append(scipy.sparse.csr_matrix((np.ones(len(rows)), (np.arange(len(rows)), codes)), shape))
        else:
            blocks.append(scipy.sparse.csr_matrix(np.array(values, float)[:, None]))
    return scipy.sparse.hstack(blocks).tocsr(), y


def reference(X, y, l2, weights):
    """Dense least squares of the weighted, centred rows with sqrt(l2) I below."""
    mean, y_mean = weights @ X / weights.sum(), weights @ y / weights.sum()
    root = np.sqrt(weights)
    A = np.vstack([root[:, None] * (X.toarray() - mean), np.sqrt(l2) * np.eye(X.shape[1])])
    w = scipy.linalg.lstsq(A, np.concatenate([root * (y - y_mean), np.zeros(X.shape[1])]),
                           lapack_driver="gelsy")[0]
    return w, y_mean - mean @ w


def run_kiln(device, X, y, l2, weights):
    A, target = device.csr(X), device.dense(len(y), 1, "float64", y)
    W, b = device.dense(X.shape[1], 1, "float64"), device.dense(1, 1, "float64")
    s = device.dense(len(y), 1, "float64", weights)

    def fit():
        report = kiln.fit("linreg", W, b, A, target, l2=l2, weights=s)
        return W.numpy()[:, 0], b.numpy()[0, 0], f"{report.n_iter} iterations"
    return fit


def run_ridge(X, y, l2, weights, solver):
    def fit():
        model = Ridge(alpha=l2, solver=solver, tol=1e-12, max_iter=100000).fit(X, y, sample_weight=weights)
        return (model.coef_, model.intercept_, f"{np.max(model.n_iter_)} iterations" if model.n_iter_
                is not None else "")
    return fit


def run_lsqr(X, y, l2, weights):
    def fit():
        mean, y_mean = weights @ X / weights.sum(), weights @ y / weights.sum()
        root = np.sqrt(weights)
        A = scipy.sparse.linalg.LinearOperator(
            X.shape, dtype=float, matvec=lambda p: root * (X @ p.ravel() - mean @ p.ravel()),
            rmatvec=lambda r: X.T @ (root * r.ravel()) - mean * (root @ r.ravel()))
        found = scipy.sparse.linalg.lsqr(A, root * (y - y_mean), damp=np.sqrt(l2), atol=1e-15, btol=1e-15,
                                         conlim=0, iter_lim=20000)
        return found[0], y_mean - mean @ found[0], f"{found[2]} iterations"
    return fit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    device = kiln.Device(arguments.device, threads=arguments.threads)
    X, y = read_flights()
    rows, worst = [], 0.0
    for l2, weighted in ((1.0, False), (1.0, True), (100.0, False)):
        weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
        w, b = reference(X, y, l2, weights)
        prediction = X @ w + b
        solvers = {"kiln": run_kiln(device, X, y, l2, weights), "lsqr": run_lsqr(X, y, l2, weights),
                   "ridge sparse_cg": run_ridge(X, y, l2, weights, "sparse_cg")}
        seconds, results = {name: [] for name in solvers}, {}
        for _ in range(arguments.repeat):
            for name, fit in solvers.items():
                start = time.perf_counter()
                results[name] = fit()
                seconds[name].append(time.perf_counter() - start)
        for name, (coefficients, intercept, note) in results.items():
            residual = X @ coefficients + intercept - y
            row = {"solver": name, "l2": l2, "weighted": weighted,
                   "seconds": statistics.median(seconds[name]),
                   "objective": 0.5 * (weights @ residual ** 2 + l2 * coefficients @ coefficients),
                   "coefficients_off": np.linalg.norm(coefficients - w) / np.linalg.norm(w),
                   "predictions_off": np.linalg.norm(residual + y - prediction) / np.linalg.norm(prediction),
                   "note": note}
            rows.append(row)
            if name == "kiln":
                worst = max(worst, row["coefficients_off"])
            print("{solver:16} l2 {l2:5g} weighted {weighted!s:5}  {seconds:8.4f} s  objective "
                  "{objective:.12g}  "
                  "coefficients off by {coefficients_off:.1e}, predictions {predictions_off:.1e}  {note}".format(**row))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"kiln": kiln.version, "commit": arguments.commit,
                       "date": datetime.date.today().isoformat(), "device": [device.name, device.description],
                       "sklearn": sklearn.__version__, "scipy": scipy.__version__, "shape": X.shape,
                       "nnz": X.nnz, "rows": rows}, file, indent=1)
    if not worst <= 1e-8:
        sys.exit(f"Kiln's coefficients are off by {worst:.1e}")


if __name__ == "__main__":
    main()
