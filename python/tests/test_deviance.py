"""Deviances and Pearson's statistic of means beyond a type's range, and what is made of them, against
mpmath."""
import csv
import json
import subprocess

import mpmath as mp
import numpy as np
import pytest

import kiln
from kiln._arrays import Matrix, device, matrix
from kiln._base import as_columns
from kiln._library import lib

FAMILIES = [("poisson", 0.0), ("gamma", 0.0), ("inverse-gaussian", 0.0), ("tweedie", 1.5), ("tweedie", 1.9),
            ("tweedie", 3.0), ("negative-binomial", 0.7), ("negative-binomial", 1e-3)]
ETA = {np.float64: [-1000, -800, -700, -90, -5, -1e-3, 0.7, 5, 90, 700, 800, 1000],
       np.float32: [-110, -90, -80, -5, -1e-3, 0.7, 5, 80, 90, 110]}
Y = {np.float64: [0, 1e-300, 1e-8, 0.5, 1, 1e6, 1e300], np.float32: [0, 1e-30, 1e-8, 0.5, 1, 1e6, 1e30]}


def exact(family, parameter, y, eta):
    """Unit deviance and Pearson's (y - mu)^2 / V(mu) at mu = e^eta."""
    y, mu, p = mp.mpf(float(y)), mp.exp(mp.mpf(float(eta))), mp.mpf(parameter)
    own = y * mp.log(y / mu) if y else mp.mpf(0)
    if family == "poisson":
        return 2 * (own - y + mu), (y - mu) ** 2 / mu
    if family == "gamma":
        return 2 * ((y - mu) / mu - mp.log(y / mu)), (y - mu) ** 2 / mu**2
    if family == "inverse-gaussian":
        return (y - mu) ** 2 / (mu**2 * y), (y - mu) ** 2 / mu**3
    if family == "tweedie":
        best = y ** (2 - p) / ((1 - p) * (2 - p)) if y else mp.mpf(0)
        return 2 * (best - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)), (y - mu) ** 2 / mu**p
    return 2 * (own - (y + 1 / p) * mp.log((1 + p * y) / (1 + p * mu))), (y - mu) ** 2 / (mu + p * mu**2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family,parameter", FAMILIES)
def test_deviance_of_any_mean(family, parameter, dtype):
    zero = family in ("poisson", "negative-binomial") or (family == "tweedie" and parameter < 2)
    pairs = np.array([(y, eta) for y in Y[dtype][0 if zero else 1:] for eta in ETA[dtype]], dtype)
    model = kiln.GeneralizedLinearRegressor(family, link="log",
                                            parameter=parameter).fit(np.zeros((3, 1)), np.array([1.0, 2, 3]))
    where = device("cpu")
    y, eta = (matrix(as_columns(pairs[:, i].copy(), dtype), where) for i in range(2))
    parts = Matrix.empty(where, (len(pairs), 3), dtype)
    where.call(lib.kiln_loss_deviance, parts.pointer, model._loss(y=y.pointer), eta.pointer)
    information = np.finfo(dtype)
    with mp.workdps(900):
        for (value, at), got in zip(pairs, parts.numpy()):
            for name, found, want in zip(("deviance", "pearson"), got, exact(family, parameter, value, at)):
                if want > information.max:
                    assert found == np.inf, (name, value, at, found)
                    continue
                # a power's error is its exponent's
                size = 1 + abs(float(at)) + (abs(np.log(value)) if value else 0)
                # y / mu - 1 has lost 1 / near of its digits
                near = min(1, abs(float(at) - np.log(value))) if value else 1
                allowed = 64 * information.eps * size / near * abs(want) + information.tiny
                assert abs(mp.mpf(float(found)) - want) <= allowed, (name, value, at, found, float(want))


@pytest.mark.parametrize("family,parameter", FAMILIES)
def test_scores_of_any_mean(tmp_path, tool, family, parameter):
    """D2 by score() and by the tool: of predictions e^-800 to e^400, each beside its own target."""
    X = np.array([[-800.0], [-400], [-1], [0], [2], [400]])
    y = np.array([0.5, 1.0, 2, 1, 7, 3])
    model = kiln.GeneralizedLinearRegressor(family, link="log", parameter=parameter,
                                            tol=1e-3).fit(np.array([[0.0], [1], [2]]), np.array([1.0, 2, 4]))
    model.coef_, model.intercept_ = np.array([1.0]), 0.0
    with mp.workdps(900):
        left = sum(exact(family, parameter, *pair)[0] for pair in zip(y, X[:, 0]))
        whole = sum(exact(family, parameter, value, mp.log(mp.mpf(y.mean())))[0] for value in y)
        want = float(1 - left / whole)
    assert model.score(X, y) == (pytest.approx(want, rel=1e-11) if np.isfinite(want) else want)
    path, rows = tmp_path / "m.kiln", tmp_path / "x.csv"
    model.save(path)
    with rows.open("w") as file:
        csv.writer(file).writerows([["x", "y"], *zip(X[:, 0], y)])
    done = subprocess.run([tool, "evaluate", path, rows, "--target", "y", "--json"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    assert np.isfinite(float(left)) == (metrics["deviance"] is not None)
    if np.isfinite(float(left)):
        assert metrics["deviance"] == pytest.approx(float(left), rel=1e-11)
        assert metrics["d2"] == pytest.approx(want, rel=1e-11)
