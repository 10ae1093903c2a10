"""Generalised linear models of dense data: Kiln against glum (pip install glum), one objective for both, half
the deviance and an L2 penalty of 1, with an intercept, family's log or logit link.

Each solver runs with each of its tolerances; printed is the first one that comes within 1e-6 of the least
objective seen in the least time (data in memory, taking turns). Beside them what bounds Newton's method: the
Gram matrix alone, as SciPy's BLAS makes it (dsyrk, one triangle).

    KILN_LIBRARY=build/libkiln.so OPENBLAS_NUM_THREADS=2 OMP_NUM_THREADS=2 taskset -c 0,1 python3 bench/peers/glm_dense.py --threads 2
"""
import argparse
import datetime
import json
import time
import warnings

import glum
import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.special import xlogy

import kiln_c as kiln

L2, POWER, CLOSE = 1.0, 1.5, 1e-6
# name: Kiln's family and link, glum's family
FAMILIES = {"poisson": (2, 2, "poisson"), "gamma": (3, 2, "gamma"), "tweedie": (6, 2, f"tweedie ({POWER})"),
            "binomial": (5, 6, "binomial")}
KILN_TOLERANCES, GLUM_TOLERANCES = (1e-2, 1e-4), (1e-3, 1e-5)


def make(rows, columns):
    """X, and y of each family, from one set of coefficients."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, columns))
    eta = X @ (rng.standard_normal(columns) / np.sqrt(columns) / 2) + 0.5
    mu = np.exp(eta)
    return X, {"poisson": rng.poisson(mu).astype(float), "gamma": rng.gamma(2.0, mu / 2),
               "tweedie": rng.poisson(mu) * rng.gamma(2.0, 0.5, rows),
               "binomial": (rng.random(rows) < 1 / (1 + np.exp(-eta))).astype(float)}


def objective(family, X, y, w, b):
    eta = X @ w + b
    mu = np.exp(eta)
    losses = {"poisson": lambda: xlogy(y, y / mu) - y + mu, "gamma": lambda: y / mu - 1 - np.log(y / mu),
              "binomial": lambda: np.logaddexp(0, eta) - y * eta, "tweedie": lambda: 2
              * (y ** (2 - POWER) / ((1 - POWER) * (2 - POWER)) - y * mu ** (1 - POWER) / (1 - POWER)
                 + mu ** (2 - POWER) / (2 - POWER)) / 2}
    return losses[family]().sum() + L2 / 2 * w @ w


def run_kiln(device, A, y, family):
    kind, link, _ = FAMILIES[family]
    target = device.dense(len(y), 1, "float64", y)
    w, b = device.dense(A.shape[1], 1, "float64"), device.dense(1, 1, "float64")

    def fit(tolerance):
        report = kiln.fit("glm", w, b, A, target, family=kind, link=link, parameter=POWER
                          if family == "tweedie" else 0, l2=L2, tolerance=tolerance)
        return w.numpy()[:, 0].copy(), b.numpy()[0, 0], f"{report.n_iter} steps, {report.passes} passes"
    return fit


def run_glum(X, y, family):
    def fit(tolerance):
        model = glum.GeneralizedLinearRegressor(family=FAMILIES[family][2], alpha=L2 / len(y),
                                                gradient_tol=tolerance, copy_X=False, check_input=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        return model.coef_, model.intercept_, f"{model.n_iter_} steps"
    return fit


def compare(device, X, y, family, repeat, A):
    found = {("kiln", tolerance): run_kiln(device, A, y, family) for tolerance in KILN_TOLERANCES}
    found.update({("glum", tolerance): run_glum(X, y, family) for tolerance in GLUM_TOLERANCES})
    rows = {key: {"seconds": []} for key in found}
    for turn in range(repeat):
        for key, fit in found.items():
            start = time.perf_counter()
            w, b, note = fit(key[1])
            rows[key]["seconds"].append(time.perf_counter() - start)
            if turn == 0:
                rows[key].update(note=note, objective=objective(family, X, y, w, b))
    least = min(row["objective"] for row in rows.values())
    return [{"rows": X.shape[0], "columns": X.shape[1], "family": family, "solver": solver,
             "tolerance": tolerance, "seconds": min(row["seconds"]), "gap": (row["objective"] - least)
             / abs(least), "note": row["note"]} for (solver, tolerance), row in rows.items()]


def tell(rows):
    best = {}
    for row in rows:
        if row["gap"] <= CLOSE and row["seconds"] < best.get(row["solver"], {"seconds": np.inf})["seconds"]:
            best[row["solver"]] = row
    for row in best.values():
        print("{rows} x {columns}  {family:9} {solver:5} {seconds:8.4f} s  gap {gap:.1e} at {tolerance:g}  {note}".format(**row))
    if len(best) == 2:
        print("    {:.1f} times".format(best["glum"]["seconds"] / best["kiln"]["seconds"]), flush=True)


def gram_seconds(X, repeat=3):
    """Times one Gram matrix, with the rows' numbers side by side as BLAS has columns."""
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        dsyrk(1.0, X.T)
        taken.append(time.perf_counter() - start)
    return min(taken)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--shapes", default="500000x100,54000x26")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device, rows, grams = kiln.Device("cpu", threads=options.threads), [], {}
    for shape in options.shapes.split(","):
        X, targets = make(*(int(part) for part in shape.split("x")))
        A = device.dense(*X.shape, "float64", X)
        grams[shape] = gram_seconds(X)
        print(f"{shape}: dsyrk {grams[shape] * 1e3:.1f} ms, "
              f"{X.shape[0] * X.shape[1] * (X.shape[1] + 1) / grams[shape] / 1e9:.0f} Gflop/s")
        for family in options.families.split(","):
            found = compare(device, X, targets[family], family, options.repeat, A)
            tell(found)
            rows += found
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"kiln": kiln.version, "glum": glum.__version__, "commit": options.commit,
                       "date": datetime.date.today().isoformat(), "device": [device.name, device.description],
                       "threads": options.threads, "dsyrk_seconds": grams, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
