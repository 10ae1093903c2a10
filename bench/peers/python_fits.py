"""Kiln's estimators against scikit-learn's, called alike: the same three lines with another import, X in memory. And what a call costs.

Both have their default tolerances. `objective` is what both minimise, computed here in NumPy from what each found; `gap` is how much
higher Kiln's is than scikit-learn's, as a share of it: below zero Kiln's is the better one. Fits take turns,
the fastest counts.

    python3 bench/peers/python_fits.py [--data ../shared/data] [--device cpu] [--repeat 3] [--only WORD] [--json FILE]

Without --data only what the repository ships and random data are run. Ends with 1 where a gap is above 1e-4, or above 0.01 where
minima are many.
"""
import argparse
import datetime
import gzip
import importlib
import json
import os
import pathlib
import subprocess
import time
import warnings

import kiln
import numpy as np
import scipy.sparse
import sklearn
from kiln._library import ffi, lib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def flights(target):
    data = kiln.read(ROOT / "data" / "flights.csv.gz", target=target)
    scale = np.sqrt(np.asarray(data.X.power(2).mean(axis=0)).ravel())
    return scipy.sparse.csr_matrix(data.X @ scipy.sparse.diags(1 / np.where(scale > 0, scale, 1))), data.y


def normal(rows, cols, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, cols)).astype(dtype)
    return X, X @ rng.normal(size=cols).astype(dtype) / np.sqrt(cols) + rng.normal(size=rows).astype(dtype)


def counts(rows, cols):
    X, score = normal(rows, cols)
    return X, np.random.default_rng(1).poisson(np.exp(score / 2)).astype(float)


def two(rows, cols, dtype=np.float64):
    X, score = normal(rows, cols, dtype)
    return X, (score > 0).astype(int)


def svmlight(folder, name):
    data = kiln.read(os.path.join(folder, "libsvm", name))
    return data.X, (data.y > 0).astype(int)


def digits(folder):
    with gzip.open(os.path.join(folder, "dense", "mnist-t10k-images-idx3-ubyte.gz")) as file:
        return np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 784).astype(np.float32) / 255, None


def words(folder):
    return kiln.read(os.path.join(folder, "bow", "docword.kos.txt.gz")).X, None


def squares(model, X, y):
    return 0.5 * float(((y - X @ model.coef_ - model.intercept_) ** 2).sum()) + 0.5 * getattr(model, "alpha", 0) * float((model.coef_**2).sum())


def logistic(model, X, y):
    eta = np.asarray(X @ model.coef_.T + model.intercept_, np.float64)
    label = np.searchsorted(model.classes_, y)
    if eta.shape[1] == 1:
        eta = np.hstack([np.zeros_like(eta), eta])
    top = eta.max(axis=1)
    losses = np.log(np.exp(eta - top[:, None]).sum(axis=1)) + top - eta[np.arange(len(label)), label]
    return float(losses.sum()) + 0.5 / model.C * float((model.coef_.astype(np.float64) ** 2).sum())


def hinge(model, X, y):
    margin = np.maximum(0, 1 - np.where(y == model.classes_[1], 1, -1) * np.asarray(X @ model.coef_[0]))
    return 0.5 * float((model.coef_**2).sum()) + model.C * float((margin**2).sum())


def poisson(model, X, y):
    eta = X @ model.coef_ + model.intercept_
    return float((np.exp(eta) - y * eta).mean()) + 0.5 * model.alpha * float((model.coef_**2).sum())


def inertia(model, X, _):
    return float(model.inertia_)


def divergence(model, X, _):
    """Kullback-Leibler, with W found again by the model itself; zeros of X through sums."""
    W = model.transform(X)
    at = X.tocoo()
    product = np.einsum("ij,ij->i", W[at.row], model.components_.T[at.col])
    return float((at.data * np.log(at.data / np.maximum(product, 1e-300))).sum() - at.data.sum() + W.sum(axis=0) @ model.components_.sum(axis=1))


# name -> module of scikit-learn, class, options of both, of scikit-learn's alone, data, objective
CASES = {
    "linear regression, flights": ("linear_model", "LinearRegression", {}, {}, lambda _: flights("arr_delay"), squares),
    "ridge, 500,000 x 50": ("linear_model", "Ridge", {}, {}, lambda _: normal(500_000, 50), squares),
    "logistic regression, flights, 3 classes": ("linear_model", "LogisticRegression", {}, {"max_iter": 1000}, lambda _: flights("origin"), logistic),
    "logistic regression, 500,000 x 28": ("linear_model", "LogisticRegression", {}, {}, lambda _: two(500_000, 28), logistic),
    "logistic regression, 500,000 x 28, f32": ("linear_model", "LogisticRegression", {}, {}, lambda _: two(500_000, 28, np.float32), logistic),
    "logistic regression, a9a": ("linear_model", "LogisticRegression", {}, {"max_iter": 1000}, lambda folder: svmlight(folder, "a9a.gz"), logistic),
    "support vectors, a9a": ("svm", "LinearSVC", {"fit_intercept": False}, {}, lambda folder: svmlight(folder, "a9a.gz"), hinge),
    "Poisson regression, 200,000 x 30": ("linear_model", "PoissonRegressor", {}, {}, lambda _: counts(200_000, 30), poisson),
    "K-Means, MNIST, k = 10": ("cluster", "KMeans", {"n_clusters": 10, "random_state": 0}, {}, digits, inertia),
    "NMF, KOS, 10 components": ("decomposition", "NMF", {"n_components": 10, "max_iter": 100, "random_state": 0, "tol": 1e-12},
                                {"beta_loss": "kullback-leibler", "solver": "mu", "init": "random"}, words, divergence),
}
NEEDS_DATA = ("a9a", "MNIST", "KOS")


def fit(kind, options, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        model = kind(**options).fit(X, y)
        return time.perf_counter() - begin, model


def run_case(name, arguments):
    module, kind, common, theirs, data, objective = CASES[name]
    X, y = data(arguments.data)
    if kind == "KMeans":
        common = {"n_clusters": common["n_clusters"], "init": X[:common["n_clusters"]].copy(), "n_init": 1}
    pair = {"kiln": (getattr(kiln, kind), {**common, "device": arguments.device}),
            "sklearn": (getattr(importlib.import_module(f"sklearn.{module}"), kind), {**common, **theirs})}
    seconds, models = {who: [] for who in pair}, {}
    for _ in range(arguments.repeat):
        for who, (made, options) in pair.items():
            took, models[who] = fit(made, options, X, y)
            seconds[who].append(took)
    found = {who: objective(model, X, y) for who, model in models.items()}
    return {"name": name, "rows": X.shape[0], "columns": X.shape[1], "type": str(X.dtype), "sparse": scipy.sparse.issparse(X),
            "device": models["kiln"].device_, "kiln_seconds": min(seconds["kiln"]), "sklearn_seconds": min(seconds["sklearn"]),
            "kiln_all": seconds["kiln"], "sklearn_all": seconds["sklearn"], "times": min(seconds["sklearn"]) / min(seconds["kiln"]),
            "objective": found, "gap": (found["kiln"] - found["sklearn"]) / abs(found["sklearn"]),
            "iterations": {who: int(np.max(model.n_iter_)) if getattr(model, "n_iter_", None) is not None else None
                           for who, model in models.items()}}


def per_call(call, most=0.3):
    """Microseconds of a call: the fastest batch of 20, which others on the machine have left alone."""
    call()
    took, begin = [], time.perf_counter()
    while time.perf_counter() - begin < most:
        start = time.perf_counter()
        for _ in range(20):
            call()
        took.append((time.perf_counter() - start) / 20)
    return 1e6 * min(took)


def run_calls():
    """What the package adds to a call of the library: 8 x 8 matrices, where there is next to nothing to compute."""
    rows = []
    X = np.eye(8)
    y = np.ones(8)
    A, b, out = kiln.matrix(X, "cpu"), kiln.matrix(y, "cpu"), kiln.matrix(np.zeros(8), "cpu")
    direct = {"multiply": lambda: lib.kiln_multiply(out.pointer, 1, lib.KILN_PLAIN, A.pointer, b.pointer, 0, ffi.NULL),
              "mmchain": lambda: lib.kiln_mmchain(out.pointer, 1, A.pointer, ffi.NULL, b.pointer, 0, ffi.NULL)}
    for name, bare in direct.items():
        function, base = getattr(kiln, name), per_call(bare)
        for kind, arguments in (("kiln.Matrix", (A, b)), ("NumPy", (X, y))):
            whole = per_call(lambda: function(*arguments, device="cpu"))
            rows.append({"call": name, "operands": kind, "microseconds": whole, "library": base, "binding": whole - base})
    return rows


def save(arguments, calls, rows):
    """What there is so far."""
    host = kiln.device(arguments.device)
    commit = os.environ.get("KILN_COMMIT") or subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True,
                                                             capture_output=True, check=False).stdout.strip()
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump({"kiln": kiln.__version__, "commit": commit, "date": datetime.date.today().isoformat(), "device": host.name,
                   "description": host.description, "sklearn": sklearn.__version__, "numpy": np.__version__, "calls": calls,
                   "rows": rows}, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    calls, rows = run_calls(), []
    for row in calls:
        print(f"{row['call']:<9} of {row['operands']:<11} {row['microseconds']:6.1f} us, {row['binding']:5.1f} of them the package's")
    for name in CASES:
        if arguments.only not in name or (not arguments.data and any(word in name for word in NEEDS_DATA)):
            continue
        row = run_case(name, arguments)
        rows.append(row)
        print(f"{name:<40} kiln {row['kiln_seconds']:8.4f} s  sklearn {row['sklearn_seconds']:8.4f} s  {row['times']:6.1f} x  gap {row['gap']:+.1e}",
              flush=True)
        if arguments.json:
            save(arguments, calls, rows)
    raise SystemExit(any(row["gap"] > (0.01 if "NMF" in row["name"] else 1e-4) for row in rows))


if __name__ == "__main__":
    main()
