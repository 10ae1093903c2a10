"""Linear classifiers on text-like data of more words than documents: Kiln's solvers against LIBLINEAR's (pip
install liblinear-official) and, for softmax, scikit-learn's L-BFGS; one objective for all, without an
intercept, as LIBLINEAR penalises its own.

Every solver runs with each of its tolerances. For each the least of the times to train (data in memory,
taking turns), wall and processor, and how far its objective is above the least one seen, relative to that.
Prints, of each solver, the first tolerance that came within 1e-6 in the least time; --json keeps all. On a
machine that others use too compare processor time; Kiln's adds up its threads.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/text.py --threads 2
"""
import argparse
import datetime
import json
import time

import numpy as np
import scipy.sparse
from liblinear import liblinearutil
from sklearn.linear_model import LogisticRegression

import kiln_c as kiln

CLOSE = 1e-6


def text(documents, words, length, seed, classes=2):
    """Words by Zipf's law, logarithms of counts, rows of length 1; a tenth of the labels by chance."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, words + 1)
    rows = np.repeat(np.arange(documents), rng.poisson(length, documents) + 1)
    cols = rng.choice(words, len(rows), p=share / share.sum())
    X = scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, cols)), (documents, words))
    X.sum_duplicates()
    X.data = 1 + np.log(X.data)
    X = (scipy.sparse.diags(1 / np.sqrt(X.multiply(X).sum(1).A1)) @ X).tocsr()
    if classes == 2:
        y = np.where(X @ rng.normal(size=words) > 0, 1.0, -1.0)
        y[rng.random(documents) < 0.1] *= -1
        return X, y
    y = (X @ rng.normal(size=(words, classes))).argmax(1).astype(float)
    wrong = rng.random(documents) < 0.1
    y[wrong] = rng.integers(0, classes, wrong.sum())
    return X, np.unique(y, return_inverse=True)[1].astype(float)


def objective(X, y, W, l2, loss):
    """W: a column, or one for each class."""
    eta, penalty = X @ W, l2 / 2 * (W * W).sum()
    if loss == "softmax":
        peak = eta.max(1)
        return ((peak + np.log(np.exp(eta - peak[:, None]).sum(1)) - eta[np.arange(len(y)),
                                                                         y.astype(int)]).sum() + penalty)
    sign = y[:, None] if W.shape[1] == 1 else np.where(y[:, None] == np.arange(W.shape[1]), 1.0, -1.0)
    margin = sign * eta
    losses = np.logaddexp(0, -margin) if loss == "logistic" else np.maximum(1 - margin, 0) ** 2 / 2
    return losses.sum() + penalty


def run_kiln(device, X, y, l2, loss, solver):
    A, target = device.csr(X), device.dense(len(y), 1, "float64", y)
    classes = len(np.unique(y))
    W = device.dense(X.shape[1], classes if classes > 2 else 1, "float64")
    name = "svm" if loss == "squared hinge" else "logreg"

    def fit(tolerance):
        report = kiln.fit(name, W, None, A, target, l2=l2, no_intercept=1, solver=solver, tolerance=tolerance)
        note = f"{report.solver}, {report.n_iter} steps, {report.passes} passes"
        note += "" if report.converged else ", not converged"
        return W.numpy, note
    return fit


def run_liblinear(X, y, l2, loss, kind):
    problem = liblinearutil.problem(y, X)
    C = 1 / (2 * l2) if loss == "squared hinge" else 1 / l2

    def fit(tolerance):
        model = liblinearutil.train(problem,
                                    liblinearutil.parameter(f"-s {kind} -c {C:.17g} -e {tolerance} -B -1 -q"))
        return lambda: liblinear_coefficients(model), ""
    return fit


def liblinear_coefficients(model):
    labels, W = model.get_labels(), np.ctypeslib.as_array(model.w,
                                                          (model.nr_feature * max(model.get_nr_class(), 1),))
    if len(labels) == 2:
        return W[:model.nr_feature, None] * (1 if labels[0] == 1 else -1)
    return W.reshape(model.nr_feature, -1)[:, np.argsort(labels)]


def run_sklearn(X, y, l2):
    def fit(tolerance):
        model = LogisticRegression(C=1 / l2, fit_intercept=False, tol=tolerance, max_iter=5000).fit(X, y)
        return lambda: model.coef_.T, f"{model.n_iter_[0]} iterations"
    return fit


def solvers_of(device, X, y, l2, loss, quick):
    """name: (function of a tolerance, tolerances)"""
    ours = [1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-8]
    found = {"kiln": (run_kiln(device, X, y, l2, loss, 0), ours)}
    if not quick:
        found["kiln --solver newton"] = run_kiln(device, X, y, l2, loss, 1), ours
    if loss == "softmax":
        found["scikit-learn lbfgs"] = run_sklearn(X, y, l2), [1e-5, 1e-6]
    for kind in {"logistic": (7, 0), "squared hinge": (1, 2)}.get(loss, ()):
        found[f"liblinear -s {kind}"] = (run_liblinear(X, y, l2, loss, kind),
                                         [1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4])
    return found


def compare(X, y, l2, loss, solvers, repeat):
    found = {(name, tolerance): {"seconds": [], "processor_seconds": []}
             for name, (_, tolerances) in solvers.items() for tolerance in tolerances}
    for _ in range(repeat):
        for (name, tolerance), row in found.items():
            wall, processor = time.perf_counter(), time.process_time()
            coefficients, row["note"] = solvers[name][0](tolerance)
            row["seconds"].append(time.perf_counter() - wall)
            row["processor_seconds"].append(time.process_time() - processor)
            row["gap"] = objective(X, y, coefficients(), l2, loss)
    least = min(row["gap"] for row in found.values())
    for row in found.values():
        row.update(seconds=min(row["seconds"]), processor_seconds=min(row["processor_seconds"]),
                   gap=(row["gap"] - least) / least)
    return [{"loss": loss, "l2": l2, "solver": name, "tolerance": tolerance, **row}
            for (name, tolerance), row in found.items()]


def tell(shape, rows):
    for name in dict.fromkeys(row["solver"] for row in rows):
        close = [row for row in rows if row["solver"] == name and row["gap"] <= CLOSE]
        row = min(close, key=lambda row: row["seconds"]) if close else None
        what = ("{seconds:8.4f} s, processor {processor_seconds:8.4f} s  gap {gap:.1e} at {tolerance:g}  {note}".format(**row) if row else "never close")
        print("{!s:16} {:13} l2 {:5g}  {:20} {}".format(shape, rows[0]["loss"], rows[0]["l2"], name, what),
              flush=True)


def keep(arguments, device, rows):
    with open(arguments.json, "w") as file:
        json.dump({"kiln": kiln.version, "commit": arguments.commit,
                   "date": datetime.date.today().isoformat(), "device": [device.name, device.description],
                   "rows": rows}, file, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shapes", default="2000x10000x100,10000x37000x100,200x1000000x100")
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--losses", help="the default: squared hinge and logistic, or softmax")
    parser.add_argument("--quick", action="store_true",
                        help="without Newton's method where Kiln takes another")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    device = kiln.Device("cpu", threads=arguments.threads)
    losses, rows = arguments.losses or "squared hinge," + ("logistic" if arguments.classes == 2
                                                           else "softmax"), []
    for shape in arguments.shapes.split(","):
        documents, words, length = (int(part) for part in shape.split("x"))
        X, y = text(documents, words, length, 1, arguments.classes)
        for loss in losses.split(","):
            for l2 in (1.0, 0.01):
                solvers = solvers_of(device, X, y, l2, loss, arguments.quick)
                found = compare(X, y, l2, loss, solvers, arguments.repeat)
                rows += [{"shape": X.shape, "nnz": X.nnz, "classes": arguments.classes, **row}
                         for row in found]
                tell(X.shape, found)
                if arguments.json:
                    keep(arguments, device, rows)


if __name__ == "__main__":
    main()
