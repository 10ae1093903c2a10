"""Kiln's estimators against others', called alike with X in memory, fit for fit. And what a call costs.

scikit-learn's of the same name: the same three lines with another import. scikit-learn-intelex, which
replaces some of these; glum for what is a generalised linear model; implicit for ALS. Those that are not
installed, or do not have the estimator, are left out. All have their default tolerances. The objective is
what all minimise, computed here in NumPy from what each found; `gap` is how far it is above the least that
any found, as a share of that. Fits take turns, the fastest counts.

    python3 bench/peers/python_fits.py [--data ../shared/data] [--device cpu] [--repeat 3] [--only WORD...] [--json FILE]

Without --data only what the repository ships and random data are run. Ends with 1 where Kiln's gap is above
1e-4, or above 0.01 where minima are many.
"""
import argparse
import datetime
import gzip
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import subprocess
import time
import warnings
from typing import Any, NamedTuple

import als
import kiln
import numpy as np
import scipy.sparse
from kiln._functions import batch_of
from kiln._library import ffi, lib, struct

PACKAGES = {"numpy": "numpy", "scikit-learn": "sklearn", "scikit-learn-intelex": "sklearnex", "glum": "glum",
            "implicit": "implicit"}
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


def ratings(folder):
    return als.read(os.path.join(folder, "ratings", "ml-1m.implicit.train.txt.gz")), None


class Weights(NamedTuple):
    """A linear model as all of these packages have it: a row of coefficients for each class or target."""

    coef: Any
    intercept: Any


def weights(model):
    coef = np.atleast_2d(np.asarray(model.coef_, np.float64))
    return Weights(coef, np.broadcast_to(np.asarray(model.intercept_, np.float64).ravel(), len(coef)))


# Objectives: what the model found, X, y, and Kiln's estimator, whose options say how strong the penalty is.

def squares(model, X, y, ours):
    w = weights(model)
    alpha = getattr(ours, "alpha_", getattr(ours, "alpha", 0))
    return 0.5 * float(((y - X @ w.coef[0]
                         - w.intercept[0]) ** 2).sum()) + 0.5 * alpha * float((w.coef**2).sum())


def lasso(model, X, y, ours):
    w = weights(model)
    return 0.5 * float(((y - X @ w.coef[0]
                         - w.intercept[0]) ** 2).mean()) + ours.alpha_ * float(np.abs(w.coef).sum())


def logistic(model, X, y, ours):
    w = weights(model)
    eta = np.asarray(X @ w.coef.T + w.intercept, np.float64)
    label = np.searchsorted(ours.classes_, y)
    if eta.shape[1] == 1:
        eta = np.hstack([np.zeros_like(eta), eta])
    top = eta.max(axis=1)
    losses = np.log(np.exp(eta - top[:, None]).sum(axis=1)) + top - eta[np.arange(len(label)), label]
    return float(losses.sum()) + 0.5 / float(getattr(ours, "C_",
                                                     getattr(ours, "C", 1))) * float((w.coef**2).sum())


def hinge(model, X, y, ours):
    w = weights(model)
    margin = np.maximum(0, 1 - np.where(y == ours.classes_[1], 1, -1) * np.asarray(X @ w.coef[0]))
    return 0.5 * float((w.coef**2).sum()) + ours.C * float((margin**2).sum())


def poisson(model, X, y, ours):
    w = weights(model)
    eta = X @ w.coef[0] + w.intercept[0]
    return float((np.exp(eta) - y * eta).mean()) + 0.5 * ours.alpha * float((w.coef**2).sum())


def inertia(model, X, _, ours):
    return float(model.inertia_)


def divergence(model, X, _, ours):
    """Kullback-Leibler, with W found again by the model itself; zeros of X through sums."""
    W = model.transform(X)
    at = X.tocoo()
    product = np.einsum("ij,ij->i", W[at.row], model.components_.T[at.col])
    return float((at.data * np.log(at.data / np.maximum(product, 1e-300))).sum() - at.data.sum()
                 + W.sum(axis=0) @ model.components_.sum(axis=1))


def preferences(model, X, _, ours):
    if hasattr(model, "row_factors_"):
        return float(als.objective(X, model.row_factors_, model.column_factors_))
    return float(als.objective(X, np.asarray(model.user_factors), np.asarray(model.item_factors)))


class Implicit:
    """implicit's ALS, which takes confidences, with fit(X, y)."""

    def __init__(self, **options):
        self.model = importlib.import_module("implicit.cpu.als").AlternatingLeastSquares(**options)

    def fit(self, X, _):
        confidence = X.copy()
        confidence.data = 1 + als.ALPHA * confidence.data
        self.model.fit(confidence, show_progress=False)
        return self.model


class Case(NamedTuple):
    """kind: the name of Kiln's class and scikit-learn's; options of both; more(X): those of scikit-learn's
    alone. glum, implicit: a function of X that gives their options."""

    module: str
    kind: str
    data: Any
    objective: Any
    options: dict = {}
    more: dict = {}
    glum: Any = None
    implicit: Any = None


def mean(**options):
    """glum's options for an objective that is a sum over rows, with a penalty of 1."""
    return lambda X: {**options, "alpha": 1 / X.shape[0]}


LINEAR, MANY = "linear_model", {"max_iter": 1000}
LEGACY = {"use_legacy_attributes": False, "l1_ratios": (0.0,), "n_jobs": 2, **MANY}
CASES = {
    "linear regression, flights": Case(LINEAR, "LinearRegression", lambda _: flights("arr_delay"), squares),
    "ridge, 500,000 x 50": Case(LINEAR, "Ridge", lambda _: normal(500_000, 50), squares,
                                glum=mean(family="normal")),
    "logistic regression, flights, 3 classes": Case(LINEAR, "LogisticRegression", lambda _: flights("origin"),
                                                    logistic, more=MANY),
    "logistic regression, 500,000 x 28": Case(LINEAR, "LogisticRegression", lambda _: two(500_000, 28),
                                              logistic, glum=mean(family="binomial")),
    "logistic regression, 500,000 x 28, f32": Case(LINEAR, "LogisticRegression",
                                                   lambda _: two(500_000, 28, np.float32), logistic,
                                                   glum=mean(family="binomial")),
    "logistic regression, a9a": Case(LINEAR, "LogisticRegression", lambda folder: svmlight(folder, "a9a.gz"),
                                     logistic, more=MANY, glum=mean(family="binomial")),
    "support vectors, a9a": Case("svm", "LinearSVC", lambda folder: svmlight(folder, "a9a.gz"), hinge,
                                 {"fit_intercept": False}),
    "Poisson regression, 200,000 x 30": Case(LINEAR, "PoissonRegressor", lambda _: counts(200_000, 30),
                                             poisson, glum=lambda X: {"family": "poisson", "alpha": 1.0}),
    "RidgeCV, 10 values, 5 folds, 50,000 x 50": Case(LINEAR, "RidgeCV", lambda _: normal(50_000, 50), squares,
                                                     {"alphas": np.logspace(-3, 3, 10), "cv": 5}),
    "LassoCV, 50 values, 5 folds, 100,000 x 50": Case(LINEAR, "LassoCV", lambda _: normal(100_000, 50), lasso,
                                                      {"alphas": 50, "cv": 5}, {"n_jobs": 2}),
    "LogisticRegressionCV, 10 values, 5 folds, 100,000 x 28": Case(LINEAR, "LogisticRegressionCV",
                                                                   lambda _: two(100_000, 28), logistic,
                                                                   {"Cs": 10, "cv": 5,
                                                                    "scoring": "neg_log_loss"}, LEGACY),
    "K-Means, MNIST, k = 10": Case("cluster", "KMeans", digits, inertia, {"n_clusters": 10, "n_init": 1}),
    "NMF, KOS, 10 components": Case("decomposition", "NMF", words, divergence,
                                    {"n_components": 10, "max_iter": 100, "random_state": 0, "tol": 1e-12},
                                    {"beta_loss": "kullback-leibler", "solver": "mu", "init": "random"}),
    "ALS, MovieLens 1M as counts, 64 factors": Case("", "ALS", ratings, preferences, {
        "n_components": 64, "implicit": True, "alpha": als.ALPHA, "l2": als.L2, "max_iter": 15, "tol": 1e-12,
        "random_state": 1}, implicit=lambda X: {"factors": 64, "regularization": als.L2, "alpha": 1.0,
                                                "iterations": 15, "random_state": 1, "use_cg": True}),
}
NEEDS_DATA = ("a9a", "MNIST", "KOS", "MovieLens")


def fit(make, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make()
        begin = time.perf_counter()
        model = model.fit(X, y)
        return time.perf_counter() - begin, model


def rivals(case, X, device):
    """Who -> a function that makes the estimator; Kiln first."""
    options = dict(case.options)
    if case.kind == "KMeans":
        options["init"] = X[:options["n_clusters"]].copy()
    made = {"kiln": lambda: getattr(kiln, case.kind)(**options, device=device)}
    for who, package in (("scikit-learn", "sklearn"), ("scikit-learn-intelex", "sklearnex")):
        try:
            kind = getattr(importlib.import_module(f"{package}.{case.module}"), case.kind)
        except (ImportError, AttributeError):
            continue
        made[who] = lambda kind=kind: kind(**options, **case.more)
    if case.glum and importlib.util.find_spec("glum"):
        made["glum"] = lambda: importlib.import_module("glum").GeneralizedLinearRegressor(l1_ratio=0, **case.glum(X))
    if case.implicit and importlib.util.find_spec("implicit"):
        made["implicit"] = lambda: Implicit(**case.implicit(X))
    return made


def run_case(name, arguments):
    case = CASES[name]
    X, y = case.data(arguments.data)
    made = rivals(case, X, arguments.device)
    seconds, models = {who: [] for who in made}, {}
    for _ in range(arguments.repeat):
        for who, make in made.items():
            took, models[who] = fit(make, X, y)
            seconds[who].append(took)
    found = {who: case.objective(model, X, y, models["kiln"]) for who, model in models.items()}
    least = min(found.values())
    rows = {who: {"seconds": min(seconds[who]), "all": seconds[who], "objective": found[who],
                  "gap": (found[who] - least) / abs(least)}
            for who in made}
    for who, row in rows.items():
        if getattr(models[who], "n_iter_", None) is not None:
            row["iterations"] = int(np.max(models[who].n_iter_))
    return {"name": name, "rows": X.shape[0], "columns": X.shape[1], "type": str(X.dtype),
            "sparse": scipy.sparse.issparse(X), "device": models["kiln"].device_, "fits": rows}


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


def bare_calls(X, y):
    """The library's own calls of 8 x 8 operands that are there, by the functions of the package that come to
    them."""
    A, b, out, S = (kiln.matrix(X, "cpu"), kiln.matrix(y, "cpu"), kiln.matrix(np.zeros(8), "cpu"),
                    kiln.matrix(scipy.sparse.csr_matrix(X), "cpu"))
    W, c, P, batch = (kiln.matrix(np.zeros(8), "cpu"), kiln.matrix(np.zeros(1), "cpu"),
                      kiln.matrix(scipy.sparse.csr_matrix(X), "cpu"), batch_of(A, None)[0])
    sample = struct("kiln_sample", kind=lib.KILN_SAMPLE_PRODUCT, S=S.pointer, A=A.pointer, B=A.pointer)
    options = struct("kiln_linreg_options", l2=1.0)
    null = ffi.NULL
    return {"multiply": lambda: lib.kiln_multiply(out.pointer, 1, lib.KILN_PLAIN, A.pointer, b.pointer, 0,
                                                  null),
            "mmchain": lambda: lib.kiln_mmchain(out.pointer, 1, A.pointer, null, b.pointer, 0, null),
            "batch_reduce": lambda: lib.kiln_batch_reduce(out.pointer, lib.KILN_BATCH_SUM, A.pointer, batch),
            "sddmm": lambda: lib.kiln_sddmm(P.pointer, null, 1, sample, 0),
            "Ridge.fit": lambda: lib.kiln_linreg(W.pointer, c.pointer, A.pointer, b.pointer, options, null)}


def run_calls():
    """The time that the package adds to a call of the library: 8 x 8 matrices, where there is next to nothing to
    compute."""
    X, y = np.eye(8), np.ones(8)
    A, b, S = kiln.matrix(X, "cpu"), kiln.matrix(y, "cpu"), kiln.matrix(scipy.sparse.csr_matrix(X), "cpu")
    ridge = {where: kiln.Ridge(1.0, device=where) for where in ("cpu", "auto")}
    calls = {"multiply": ((A, b), (X, y), kiln.multiply), "mmchain": ((A, b), (X, y), kiln.mmchain),
             "batch_reduce": ((A,), (X,), kiln.batch_reduce),
             "sddmm": ((S, A, A), (scipy.sparse.csr_matrix(X), X, X), kiln.sddmm),
             "Ridge.fit": ((A, y), (X, y), lambda X, y, device: ridge[device].fit(X, y))}
    rows, bare = [], bare_calls(X, y)
    for name, (kept, arrays, function) in calls.items():
        base = per_call(bare[name])
        for kind, arguments, where in (("kiln.Matrix", kept, "cpu"), ("NumPy", arrays, "cpu"),
                                       ("NumPy, auto", arrays, "auto")):
            whole = per_call(lambda: function(*arguments, device=where))
            rows.append({"call": name, "operands": kind, "microseconds": whole, "library": base,
                         "binding": whole - base})
    return rows


def save(arguments, calls, rows):
    """The results so far."""
    host = kiln.device(arguments.device)
    commit = os.environ.get("KILN_COMMIT") or subprocess.run(["git", "-C", ROOT, "rev-parse", "--short",
                                                              "HEAD"], text=True,
                                                             capture_output=True, check=False).stdout.strip()
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump({"kiln": kiln.__version__, "commit": commit, "date": datetime.date.today().isoformat(),
                   "device": host.name, "description": host.description,
                   "versions": {who: importlib.metadata.version(who) for who in PACKAGES
                                if importlib.util.find_spec(PACKAGES[who])}, "calls": calls, "rows": rows},
                  file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose name contains one of these")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    calls, rows = run_calls(), []
    for row in calls:
        print(f"{row['call']:<12} of {row['operands']:<11} {row['microseconds']:6.1f} us, "
              f"{row['binding']:5.1f} of them the package's")
    if arguments.json:
        save(arguments, calls, rows)
    for name in CASES:
        if (not any(word in name for word in arguments.only)
            or (not arguments.data and any(word in name for word in NEEDS_DATA))):
            continue
        row = run_case(name, arguments)
        rows.append(row)
        print(f"{name:<40} " + "  ".join(f"{who} {one['seconds']:.4f} s, {one['gap']:.0e}"
                                         for who, one in row["fits"].items()), flush=True)
        if arguments.json:
            save(arguments, calls, rows)
    raise SystemExit(any(row["fits"]["kiln"]["gap"] > (0.01 if row["name"][:3] in ("NMF", "ALS") else 1e-4)
                         for row in rows))


if __name__ == "__main__":
    main()
