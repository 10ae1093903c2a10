"""Deviances and Pearson's statistic of means beyond a type's range, and what is made of them, against
mpmath."""
import csv
import json
import re
import subprocess

import mpmath as mp
import numpy as np
import pytest

import kiln
from kiln._arrays import Matrix, device, matrix
from kiln._base import as_columns
from kiln._library import lib

FAMILIES = [("poisson", 0.0), ("gamma", 0.0), ("inverse-gaussian", 0.0), ("tweedie", 1.5), ("tweedie", 1.9),
            ("tweedie", 3.0), ("negative-binomial", 0.7), ("negative-binomial", 1e-3),
            ("negative-binomial", 1e12)]  # times y it leaves the type
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


def minus_log_likelihood(family, parameter, y, eta):
    y, mu = mp.mpf(float(y)), mp.exp(mp.mpf(float(eta)))
    if family == "poisson":
        return mu - y * mp.log(mu) + mp.loggamma(y + 1)
    a, shape = mp.mpf(parameter), 1 / mp.mpf(parameter)
    return (mp.loggamma(shape) + mp.loggamma(y + 1) - mp.loggamma(y + shape) + (y + shape) * mp.log1p(a * mu)
            - y * mp.log(a * mu))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family,parameter", [("poisson", 0.0), ("negative-binomial", 1.0),
                                              ("negative-binomial", 1e-6), ("negative-binomial", 30.0),
                                              ("negative-binomial", 1e12)])
def test_log_likelihood_of_large_counts(family, parameter, dtype):
    """Half the deviance and the largest log-likelihood, each without terms of the size of y."""
    model = kiln.GeneralizedLinearRegressor(family, link="log",
                                            parameter=parameter).fit(np.zeros((3, 1)), np.array([1.0, 2, 3]))
    y = np.array([1, 30, 1e3, 1e6, 1e8, 1e10, 1e12, np.finfo(dtype).max / 9]).repeat(6).astype(dtype)
    eta = (np.log(y.astype(float)) + np.tile([0, 1e-4, -1e-3, 0.1, -0.4, 2], 8)).astype(dtype)
    where = device("cpu")
    of = matrix(as_columns(y, dtype), where)
    parts = Matrix.empty(where, (len(y), 3), dtype)
    where.call(lib.kiln_loss_deviance, parts.pointer, model._loss(y=of.pointer),
               matrix(as_columns(eta, dtype), where).pointer)
    eps = np.finfo(dtype).eps
    with mp.workdps(400):
        for value, at, (deviance, _, least) in zip(y, eta, parts.numpy().astype(float)):
            want = minus_log_likelihood(family, parameter, value, at)
            mu, off = np.exp(float(at)), 16 * eps * (1 + abs(float(at)))  # the mean's relative error
            information = mu / (1 + parameter * mu)
            slope = abs(mu - value) / (1 + parameter * mu)
            allowed = slope * off + information * off**2 + 64 * eps * (abs(deviance) + 32)
            assert abs(deviance / 2 + least - want) <= allowed, (value, at, deviance / 2 + least, float(want))


@pytest.mark.parametrize("family,parameter,mean", [("poisson", 0.0, 1e12), ("negative-binomial", 1e-3, 1e9),
                                                   ("negative-binomial", 1e-7, 1.0)])
def test_akaike_of_hard_terms_is_verified(tmp_path, tool, family, parameter, mean):
    """verify's own sum has terms of the size of y and of log(alpha) / alpha, which it allows for."""
    dice = np.random.default_rng(1)
    X = dice.normal(size=(300, 3)) * 0.1
    y = dice.poisson(mean * np.exp(0.3 * X[:, 0])).astype(float)
    model = kiln.GeneralizedLinearRegressor(family, alpha=0, parameter=parameter).fit(X, y)
    for name, values in (("model.kiln", None), ("X.npy", X), ("y.npy", y)):
        model.save(tmp_path / name) if values is None else np.save(tmp_path / name, values)
    done = subprocess.run([tool, "verify", "model.kiln", "X.npy", "--target-file", "y.npy"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and re.search("AIC .* holds", done.stdout), done.stdout + done.stderr



@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family,parameter", [("poisson", 0.0), ("negative-binomial", 1.0),
                                              ("negative-binomial", 30.0)])
def test_fits_of_large_counts(tmp_path, tool, family, parameter, dtype):
    """Newton's step at the coefficients is small, and Akaike's criterion that of the means."""
    dice = np.random.default_rng(0)
    X = dice.normal(size=(100, 3)).astype(dtype)
    ones = np.column_stack([X.astype(float), np.ones(len(X))])
    for scale in (1e6, 1e8, 1e10):
        mean = scale * np.exp(X @ [0.3, -0.2, 0.5])
        y = (dice.negative_binomial(1 / parameter, 1 / (1 + parameter * mean)) if parameter
             else dice.poisson(mean)).astype(dtype)
        model = kiln.GeneralizedLinearRegressor(family, alpha=0, parameter=parameter).fit(X, y)
        assert model.report_.converged, (scale, model.report_)
        eta = ones @ np.append(model.coef_, model.intercept_).astype(float)
        mu, eps = np.exp(eta), np.finfo(dtype).eps
        slope = (mu - y) / (1 + parameter * mu)
        curvature = mu * (1 + parameter * y) / (1 + parameter * mu) ** 2
        gradient, H = ones.T @ slope, (ones * curvature[:, None]).T @ ones
        step = np.sqrt(gradient @ np.linalg.solve(H, gradient) / np.trace(H))
        assert step <= max(1e-4, 3 * model.report_.tolerance), scale
        with mp.workdps(60):
            want = 2 * sum(minus_log_likelihood(family, parameter, *row) for row in zip(y, eta)) + 8
        off = 32 * eps * (1 + np.abs(eta).max())  # of a mean
        allowed = 2 * off * np.abs(slope).sum() + off**2 * curvature.sum() + 256 * eps * len(X) * 32
        assert abs(model.report_.figures["aic"] - want) <= allowed, (scale, model.report_, float(want))
