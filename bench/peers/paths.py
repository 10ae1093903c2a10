"""Cross-validation of a path of 20 penalties in 5 folds beside one training: the command kiln, and scikit-learn (RidgeCV; LogisticRegressionCV,
which takes very long).

    python3 bench/peers/paths.py build/kiln --threads 2 --json FILE [--case NAME]... [--bow docword.kos.txt.gz]

Seconds are the least of --repeat, product and peer taking turns: `solve` in the solver, `judge` for scores of the training or held-out rows. Of
the cross-validation the training of the chosen penalty on all rows, which follows, is taken off. Reading is in none of them.
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
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV

VALUES, FOLDS = 20, 5
SHAPES = {"500,000 x 100": (500_000, 100), "54,000 x 26": (54_000, 26)}


def dense(rows, columns):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)) * (0.5 + rng.random(columns)) + rng.standard_normal(columns)
    X[:, 1:] += 0.5 * X[:, :-1]
    eta = X @ rng.standard_normal(columns) / np.sqrt(columns)
    y = eta + rng.standard_normal(rows)
    return X, y, (rng.random(rows) < 1 / (1 + np.exp(eta.mean() - eta))).astype(float)


def words(path):
    """Counts of words, and a planted class."""
    import gzip
    from scipy.sparse import csr_array
    with gzip.open(path, "rt") as file:
        documents, vocabulary, _ = (int(file.readline()) for _ in range(3))
        entries = np.loadtxt(file, dtype=np.int32)
    X = csr_array((entries[:, 2].astype(float), (entries[:, 0] - 1, entries[:, 1] - 1)), shape=(documents, vocabulary))
    rng = np.random.default_rng(0)
    eta = X @ (rng.standard_normal(vocabulary) * (rng.random(vocabulary) < 0.05))
    return X, None, (eta + rng.logistic(size=documents) > np.median(eta)).astype(float)


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
    return result["seconds"]["solve"], result["seconds"]["other"]


def run_kiln(kiln, verb, data, threads, strengths):
    one = tool(kiln, verb, data, threads, "--l2", 1)
    path = tool(kiln, verb, data, threads, "--cv", FOLDS, "--l2", ",".join(map(repr, strengths)))
    final = tool(kiln, verb, data, threads, "--l2", path["cross_validation"]["best"])
    training, all_of_it, last = (seconds_of(result) for result in (one, path, final))
    return {"one": training, "path": tuple(max(a - b, 0) for a, b in zip(all_of_it, last)), "solver": one["solver"], "best": path["cross_validation"]["best"],
            "converged": all(value["converged"] for value in path["cross_validation"]["values"])}


def timed(fit):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        found = fit()
    return time.perf_counter() - start, found


def run_sklearn(verb, X, y, strengths):
    if verb == "linreg":
        one, _ = timed(lambda: Ridge(alpha=1.0).fit(X, y))
        path, found = timed(lambda: RidgeCV(alphas=strengths, cv=FOLDS).fit(X, y))
        return {"one": one, "path": path, "best": float(found.alpha_)}
    solver = {"solver": "lbfgs" if isinstance(X, np.ndarray) else "liblinear", "max_iter": 1000}
    one, _ = timed(lambda: LogisticRegression(C=1.0, **solver).fit(X, y))
    path, found = timed(lambda: LogisticRegressionCV(Cs=[1 / l2 for l2 in strengths], cv=FOLDS, refit=False, **solver).fit(X, y))
    return {"one": one, "path": path, "best": float(1 / np.ravel(found.C_)[0])}


def run_case(arguments, name, verb, X, y):
    strengths = np.geomspace(1e4, 1e-2, VALUES).tolist()
    rows = {"kiln": [], "scikit-learn": []}
    with tempfile.TemporaryDirectory() as folder:
        data = save(pathlib.Path(folder), X, y)
        for turn in range(arguments.repeat):
            rows["kiln"].append(run_kiln(arguments.kiln, verb, data, arguments.threads, strengths))
            if arguments.peers and turn < arguments.peer_repeat:
                rows["scikit-learn"].append(run_sklearn(verb, X, y, strengths))
    found = rows["kiln"]
    least = {key: [min(run[key][part] for run in found) for part in range(2)] for key in ("one", "path")}
    row = {"case": name, "verb": verb, "solver": found[0]["solver"], "converged": all(run["converged"] for run in found), "best": found[0]["best"],
           "training": {"solve": least["one"][0], "judge": least["one"][1]}, "path": {"solve": least["path"][0], "judge": least["path"][1]},
           "ratio": least["path"][0] / least["one"][0], "ratio_with_scores": sum(least["path"]) / sum(least["one"])}
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
    parser.add_argument("--verb", action="append", choices=["linreg", "logreg"])
    parser.add_argument("--bow")
    parser.add_argument("--json")
    parser.add_argument("--device", default="")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.case or SHAPES:
        X, y, z = words(arguments.bow) if name not in SHAPES else dense(*SHAPES[name])
        for verb in arguments.verb or ("linreg", "logreg"):
            target = y if verb == "linreg" else z
            if target is not None:
                rows.append(run_case(arguments, name, verb, X, target))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"benchmark": "a path of 20 penalties in 5 folds beside one training", "device": arguments.device, "threads": arguments.threads,
                       "commit": arguments.commit, "date": datetime.date.today().isoformat(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
