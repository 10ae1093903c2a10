"""Ridge regression of dense data of few columns: Kiln against scikit-learn and scikit-learn-intelex (pip
install scikit-learn-intelex; left out where it is not there), one objective for all, with an intercept.

Prints for each the least of the times to solve (data in memory, taking turns), and how far its objective is
above the least one seen, relative to that.

    KILN_LIBRARY=build/libkiln.so taskset -c 0,1 python3 bench/peers/ridge.py --threads 2
"""
import argparse
import datetime
import json
import time

import numpy as np
from sklearn.linear_model import Ridge

import kiln_c as kiln

L2 = 1.0


def one_hot(rng, rows, columns, groups):
    X = np.zeros((rows, columns))
    width = columns // groups
    for group in range(groups):
        X[np.arange(rows), group * width + rng.integers(0, width, rows)] = 1
    return X


CASES = {"500,000 x 100": lambda rng: rng.normal(1, 1, (500_000, 100)),
         "1,400,000 x 17": lambda rng: rng.normal(1, 1, (1_400_000, 17)),
         "54,000 x 26": lambda rng: rng.normal(1, 1, (54_000, 26)),
         "3,000 x 300 one-hot": lambda rng: one_hot(rng, 3_000, 300, 10)}


def objective(X, y, w, b):
    r = X @ w + b - y
    return (r @ r + L2 * w @ w) / 2


def run_kiln(device, X, y):
    A, target = device.dense(*X.shape, "float64", X), device.dense(len(y), 1, "float64", y)
    W, b = device.dense(X.shape[1], 1, "float64"), device.dense(1, 1, "float64")

    def fit():
        report = kiln.fit("linreg", W, b, A, target, l2=L2)
        return W.numpy()[:, 0], b.numpy()[0, 0], f"{report.solver}, {report.passes} passes"
    return fit


def run_sklearn(model, X, y):
    def fit():
        found = model(alpha=L2).fit(X, y)
        return found.coef_, found.intercept_, ""
    return fit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    models = {"scikit-learn": Ridge}
    try:
        from sklearnex.linear_model import Ridge as Intel
        models["scikit-learn-intelex"] = Intel
    except ImportError as error:
        print("scikit-learn-intelex is left out:", error)
    device = kiln.Device("cpu", threads=arguments.threads)
    rows = []
    for case, make in CASES.items():
        rng = np.random.default_rng(1)
        X = make(rng)
        y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X))
        solvers = {"kiln": run_kiln(device, X, y),
                   **{name: run_sklearn(model, X, y) for name, model in models.items()}}
        seconds, found = {name: [] for name in solvers}, {}
        for _ in range(arguments.repeat):
            for name, fit in solvers.items():
                start = time.perf_counter()
                found[name] = fit()
                seconds[name].append(time.perf_counter() - start)
        values = {name: objective(X, y, w, b) for name, (w, b, _) in found.items()}
        least = min(values.values())
        for name, (_, _, note) in found.items():
            rows.append({"case": case, "solver": name, "ms": 1e3 * min(seconds[name]),
                         "gap": (values[name] - least) / least, "note": note})
            print("{case:20} {solver:22} {ms:9.2f} ms  gap {gap:.1e}  {note}".format(**rows[-1]))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"kiln": kiln.version, "commit": arguments.commit,
                       "date": datetime.date.today().isoformat(), "device": [device.name, device.description],
                       "threads": arguments.threads, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
