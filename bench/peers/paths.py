"""Cross-validation of a path of 20 penalties in 5 folds beside one training: the command kiln, and
scikit-learn (RidgeCV; LassoCV; LogisticRegressionCV, with L1 by liblinear; PoissonRegressor and LinearSVC in
GridSearchCV), which takes very long.

    python3 bench/peers/paths.py build/kiln --threads 2 --json FILE [--case NAME]... [--bow docword.kos.txt.gz]

Seconds are the least of --repeat, product and peer taking turns: `solve` in the solver, `judge` for scores of
the training or held-out rows. Of the cross-validation the training of the chosen penalty on all rows, which
follows, is taken off. Reading is in none of them.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression, LogisticRegressionCV, PoissonRegressor, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

VALUES, FOLDS = 20, 5
# The tool's verb and options, the target, and the penalty with its strongest and its weakest value.
MODELS = {"linreg": ("linreg", [], "y", "--l2", 1e4, 1e-2),
          "logreg": ("logreg", [], "class", "--l2", 1e4, 1e-2),
          "logreg-l1": ("logreg", [], "class", "--l1", 1e3, 1e-1),
          "lasso": ("glm", ["--family", "gaussian"], "y", "--l1", 1e4, 1e-1),
          "glm-poisson": ("glm", ["--family", "poisson"], "count", "--l2", 1e4, 1e-2),
          "svm": ("svm", [], "class", "--l2", 1e4, 1e-2)}
SHAPES = {"500,000 x 100": (500_000, 100), "54,000 x 26": (54_000, 26)}


def dense(rows, columns):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)) * (0.5 + rng.random(columns)) + rng.standard_normal(columns)
    X[:, 1:] += 0.5 * X[:, :-1]
    eta = X @ rng.standard_normal(columns) / np.sqrt(columns)
    y = eta + rng.standard_normal(rows)
    classes = (rng.random(rows) < 1 / (1 + np.exp(eta.mean() - eta))).astype(float)
    return X, {"y": y, "class": classes,
               "count": rng.poisson(np.exp(0.3 * (eta - eta.mean()) / eta.std())).astype(float)}


def words(path):
    """Counts of words, and a planted class."""
    import gzip
    from scipy.sparse import csr_array
    with gzip.open(path, "rt") as file:
        documents, vocabulary, _ = (int(file.readline()) for _ in range(3))
        entries = np.loadtxt(file, dtype=np.int32)
    X = csr_array((entries[:, 2].astype(float), (entries[:, 0] - 1, entries[:, 1] - 1)),
                  shape=(documents, vocabulary))
    rng = np.random.default_rng(0)
    eta = X @ (rng.standard_normal(vocabulary) * (rng.random(vocabulary) < 0.05))
    return X, {"class": (eta + rng.logistic(size=documents) > np.median(eta)).astype(float)}


def save(folder, X, y):
    """The files that the tool reads: its arguments."""
    if isinstance(X, np.ndarray):
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        return [folder / "X.npy", "--target-file", folder / "y.npy"]
    from sklearn.datasets import dump_svmlight_file
    dump_svmlight_file(X, y, str(folder / "X.svm"), zero_based=False)
    return [folder / "X.svm"]


def tool(kiln, verb, data, threads, *options):
    command = [kiln, verb, *data, "--json", "-q", "--device", "cpu", "--threads", threads, *options]
    return json.loads(subprocess.run([str(part) for part in command], check=True, capture_output=True).stdout)


def seconds_of(result):
    return result["seconds"]["solve"], result["seconds"]["measure"]


def run_kiln(kiln, model, data, threads, strengths):
    verb, options, _, penalty, _, _ = MODELS[model]
    one = tool(kiln, verb, data, threads, *options, penalty, 1)
    path = tool(kiln, verb, data, threads, *options, "--cv", FOLDS, penalty, ",".join(map(repr, strengths)))
    final = tool(kiln, verb, data, threads, *options, penalty, path["cross_validation"]["best"])
    training, all_of_it, last = (seconds_of(result) for result in (one, path, final))
    return {"one": training, "path": tuple(max(a - b, 0) for a, b in zip(all_of_it, last)),
            "solver": one.get("solver", "newton"), "best": path["cross_validation"]["best"],
            "converged": all(value["converged"] for value in path["cross_validation"]["values"])}


def timed(fit):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        found = fit()
    return time.perf_counter() - start, found


def searched(estimator, name, values, X, y):
    one, _ = timed(lambda: estimator.set_params(**{name: values[len(values) // 2]}).fit(X, y))
    path, found = timed(lambda: GridSearchCV(estimator, {name: values}, cv=FOLDS, refit=False).fit(X, y))
    return {"one": one, "path": path, "best": strengths_of(name, found.best_params_[name], len(y))}


def strengths_of(name, value, rows):
    return value * rows * (FOLDS - 1) / FOLDS if name == "alpha" else 0.5 / value


def run_sklearn(model, X, y, strengths):
    if model == "linreg":
        one, _ = timed(lambda: Ridge(alpha=1.0).fit(X, y))
        path, found = timed(lambda: RidgeCV(alphas=strengths, cv=FOLDS).fit(X, y))
        return {"one": one, "path": path, "best": float(found.alpha_)}
    if model == "lasso":
        trained = len(y) * (FOLDS - 1) / FOLDS
        one, _ = timed(lambda: Lasso(alpha=1 / len(y)).fit(X, y))
        path, found = timed(lambda: LassoCV(alphas=[l1 / trained for l1 in strengths], cv=FOLDS).fit(X, y))
        return {"one": one, "path": path, "best": float(found.alpha_ * trained)}
    if model == "glm-poisson":
        return searched(PoissonRegressor(solver="newton-cholesky", max_iter=1000), "alpha",
                        [l2 / (len(y) * (FOLDS - 1) / FOLDS) for l2 in strengths], X, y)
    if model == "svm":
        return searched(LinearSVC(dual="auto", max_iter=10000), "C", [0.5 / l2 for l2 in strengths], X, y)
    solver = {"solver": "lbfgs" if isinstance(X, np.ndarray) and model == "logreg" else "liblinear",
              "max_iter": 1000}
    if model == "logreg-l1":
        solver["penalty"] = "l1"
    one, _ = timed(lambda: LogisticRegression(C=1.0, **solver).fit(X, y))
    path, found = timed(lambda: LogisticRegressionCV(Cs=[1 / l2 for l2 in strengths], cv=FOLDS, refit=False,
                                                     **solver).fit(X, y))
    return {"one": one, "path": path, "best": float(1 / np.ravel(found.C_)[0])}


def run_case(arguments, name, model, X, y):
    strengths = np.geomspace(*MODELS[model][4:], VALUES).tolist()
    rows = {"kiln": [], "scikit-learn": []}
    with tempfile.TemporaryDirectory() as folder:
        data = save(pathlib.Path(folder), X, y)
        for turn in range(arguments.repeat):
            rows["kiln"].append(run_kiln(arguments.kiln, model, data, arguments.threads, strengths))
            if arguments.peers and turn < arguments.peer_repeat:
                rows["scikit-learn"].append(run_sklearn(model, X, y, strengths))
    found = rows["kiln"]
    least = {key: [min(run[key][part] for run in found) for part in range(2)] for key in ("one", "path")}
    row = {"case": name, "model": model, "solver": found[0]["solver"],
           "converged": all(run["converged"] for run in found), "best": found[0]["best"],
           "training": {"solve": least["one"][0], "judge": least["one"][1]},
           "path": {"solve": least["path"][0], "judge": least["path"][1]}, "ratio": least["path"][0]
           / least["one"][0], "ratio_with_scores": sum(least["path"]) / sum(least["one"])}
    for run in rows["scikit-learn"]:
        peer = row.setdefault("scikit-learn", dict(run))
        for key in ("one", "path"):
            peer[key] = min(peer[key], run[key])
    print(json.dumps(row), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-repeat", type=int, default=1)
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--case", action="append")
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--bow")
    parser.add_argument("--json")
    parser.add_argument("--device", default="")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.case or SHAPES:
        X, targets = words(arguments.bow) if name not in SHAPES else dense(*SHAPES[name])
        for model in arguments.model or MODELS:
            if MODELS[model][2] in targets:
                rows.append(run_case(arguments, name, model, X, targets[MODELS[model][2]]))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"benchmark": "a path of 20 penalties in 5 folds beside one training",
                       "device": arguments.device, "threads": arguments.threads, "commit": arguments.commit,
                       "date": datetime.date.today().isoformat(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
