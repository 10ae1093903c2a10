"""Linear classifiers on text-like data of more words than documents: Kiln's solvers against LIBLINEAR's (pip install
liblinear-official), one objective for all, without an intercept, as LIBLINEAR penalises its own.

Prints for each the least of the times to solve (data in memory, taking turns) and how far its objective is above the least one seen,
relative to that. LIBLINEAR's tolerance is that which its documentation gives first, and a hundredth of it.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/text.py --threads 2
"""
import argparse
import ctypes
import datetime
import json
import time

import numpy as np
import scipy.sparse
from liblinear import liblinearutil

import kiln_ctypes as kiln


def text(documents, words, length, seed):
    """Words by Zipf's law, logarithms of counts, rows of length 1; two classes, a tenth of the labels wrong."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, words + 1)
    rows = np.repeat(np.arange(documents), rng.poisson(length, documents) + 1)
    cols = rng.choice(words, len(rows), p=share / share.sum())
    X = scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, cols)), (documents, words))
    X.sum_duplicates()
    X.data = 1 + np.log(X.data)
    X = scipy.sparse.diags(1 / np.sqrt(X.multiply(X).sum(1).A1)) @ X
    y = np.where(X @ rng.normal(size=words) > 0, 1.0, -1.0)
    y[rng.random(documents) < 0.1] *= -1
    return X.tocsr(), y


def objective(X, y, w, l2, logistic):
    margin = y * (X @ w)
    losses = np.logaddexp(0, -margin) if logistic else np.maximum(1 - margin, 0) ** 2 / 2
    return losses.sum() + l2 / 2 * w @ w


def run_kiln(device, X, y, l2, logistic, solver):
    A, target = device.csr(X), device.dense(len(y), 1, "float64", y)
    W = device.dense(X.shape[1], 1, "float64")
    options = (kiln.LogregOptions if logistic else kiln.SvmOptions)(l2=l2, no_intercept=1, solver=solver)
    call = kiln.library.kiln_logreg if logistic else kiln.library.kiln_svm

    def fit():
        report = kiln.Report()
        kiln.check(call(W.handle, None, A.handle, target.handle, ctypes.byref(options), ctypes.byref(report)))
        note = f"{report.iterations} steps, {report.passes} passes" + ("" if report.converged else ", not converged")
        kiln.library.kiln_report_free(ctypes.byref(report))
        return W.numpy()[:, 0], note
    return fit


def run_liblinear(X, y, l2, logistic, kind, tolerance):
    problem = liblinearutil.problem(y, X)
    C = 1 / l2 if logistic else 1 / (2 * l2)
    parameter = liblinearutil.parameter(f"-s {kind} -c {C:.17g} -e {tolerance} -B -1 -q")

    def fit():
        model = liblinearutil.train(problem, parameter)
        w = np.array(model.get_decfun()[0])
        return w if model.get_labels()[0] == 1 else -w, ""
    return fit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shapes", default="2000x10000x100,10000x37000x100")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    device = kiln.Device("cpu", arguments.threads)
    rows = []
    for shape in arguments.shapes.split(","):
        documents, words, length = (int(part) for part in shape.split("x"))
        X, y = text(documents, words, length, 1)
        for logistic, l2 in ((False, 1.0), (False, 0.01), (True, 1.0), (True, 0.01)):
            solvers = {"kiln dual": run_kiln(device, X, y, l2, logistic, 2), "kiln newton": run_kiln(device, X, y, l2, logistic, 1)}
            for kind, standard in ((7, 0.1), (0, 0.01)) if logistic else ((1, 0.1), (2, 0.01)):
                for tolerance in (standard, standard / 100):
                    solvers[f"liblinear -s {kind} -e {tolerance:g}"] = run_liblinear(X, y, l2, logistic, kind, tolerance)
            seconds, found = {name: [] for name in solvers}, {}
            for _ in range(arguments.repeat):
                for name, fit in solvers.items():
                    start = time.perf_counter()
                    found[name] = fit()
                    seconds[name].append(time.perf_counter() - start)
            values = {name: objective(X, y, w, l2, logistic) for name, (w, _) in found.items()}
            least = min(values.values())
            for name, (_, note) in found.items():
                rows.append({"shape": X.shape, "nnz": X.nnz, "loss": "logistic" if logistic else "squared hinge", "l2": l2,
                             "solver": name, "seconds": min(seconds[name]), "gap": (values[name] - least) / least, "note": note})
                print("{shape!s:16} {loss:13} l2 {l2:5g}  {solver:24} {seconds:8.4f} s  gap {gap:.1e}  {note}".format(**rows[-1]))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"kiln": kiln.library.kiln_version().decode(), "commit": arguments.commit,
                       "date": datetime.date.today().isoformat(), "device": device.description(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
