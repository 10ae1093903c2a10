"""Beta regression with its precision given, against statsmodels' BetaModel on the two tables that it comes
with, and against mpmath."""

import json
import subprocess
from pathlib import Path

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import kiln

betareg = pytest.importorskip("statsmodels.othermod.betareg")
TABLES = Path(betareg.__file__).parent / "tests" / "results"
LINKS = {"logit": "Logit", "probit": "Probit", "cloglog": "CLogLog", "cauchit": "Cauchy"}


def table(name):
    """Columns without the constant, and shares."""
    if name == "food":
        data = pd.read_csv(TABLES / "foodexpenditure.csv")
        return data[["income", "persons"]].to_numpy(float), (data["food"] / data["income"]).to_numpy()
    data = pd.read_csv(TABLES / "methylation-test.csv")
    return np.column_stack([data["gender"] == data["gender"].iloc[0],
                            data["age"]]).astype(float), data["methylation"].to_numpy()


def peer(X, y, link):
    """statsmodels' fit, its precision, and the standard errors of the coefficients at that precision."""
    import statsmodels.api as sm

    design = sm.add_constant(X)
    model = betareg.BetaModel(y, design, link=getattr(sm.families.links, LINKS[link])())
    fit = model.fit(disp=0, method="newton", maxiter=200, tol=1e-14)
    params = np.asarray(fit.params)
    k = design.shape[1]
    for _ in range(50):  # Fisher steps, to the digits that the optimiser leaves
        step = np.linalg.solve(-model.hessian(params, observed=False), model.score(params))
        params = params + step
        if np.abs(step).max() < 1e-14 * np.abs(params).max():
            break
    information = -model.hessian(params, observed=False)[:k, :k]
    return (
        params[:k],
        float(np.exp(params[k])),
        np.sqrt(np.diag(np.linalg.inv(information))),
        model.loglike(params),
    )


@pytest.mark.parametrize("name", ["food", "methylation"])
@pytest.mark.parametrize("link", list(LINKS))
def test_statsmodels(name, link):
    X, y = table(name)
    coefficients, precision, errors, likelihood = peer(X, y, link)
    for data in (X, sp.csr_array(X)):
        ours = kiln.GeneralizedLinearRegressor("beta", link=link, parameter=precision, standard_errors=True,
                                               tol=1e-12, device="cpu").fit(data, y)
        assert np.r_[ours.intercept_, ours.coef_] == pytest.approx(coefficients, rel=1e-8,
                                                                   abs=1e-8 * np.abs(coefficients).max())
        assert np.r_[ours.intercept_error_, ours.standard_errors_] == pytest.approx(errors, rel=1e-8)
        assert ours.report_.figures["aic"] == pytest.approx(-2 * likelihood + 2 * len(coefficients), rel=1e-9)
        assert ours.report_.figures["dispersion"] == 1


def exact(precision, y, mean):
    """Half the deviance: minus the log-density at this mean, less that at the best one."""
    p, y = mp.mpf(precision), mp.mpf(float(y))

    def loss(mu, nu):
        return mp.loggamma(p * mu) + mp.loggamma(p * nu) - p * mu * mp.log(y) - p * nu * mp.log(1 - y)

    low, high = mp.mpf(-20000), mp.mpf(20000)
    for _ in range(200):
        t = (low + high) / 2
        mu, nu = 1 / (1 + mp.exp(-t)), 1 / (1 + mp.exp(t))
        rises = mp.digamma(p * mu) - mp.digamma(p * nu) - mp.log(y) + mp.log(1 - y) > 0
        low, high = (low, t) if rises else (t, high)
    return loss(*mean) - loss(1 / (1 + mp.exp(-low)), 1 / (1 + mp.exp(low)))


@pytest.mark.parametrize("precision", [1e-2, 1.0, 30.0, 1e4])
def test_deviance_of_any_mean(precision):
    from kiln._arrays import Matrix, device, matrix
    from kiln._base import as_columns
    from kiln._library import lib, struct

    where = device("cpu")
    grid = [(y, eta) for y in (1e-300, 1e-12, 0.01, 0.5, 0.97, 1 - 1e-12)
            for eta in (-800, -40, -3, 0.1, 4, 30)]
    y, eta = np.array(grid).T
    parts, Y = Matrix.empty(where, (len(y), 3), np.float64), matrix(as_columns(y, np.float64), where)
    loss = struct("kiln_loss", kind=lib.KILN_LOSS_GLM, family=lib.KILN_BETA, parameter=precision, y=Y.pointer)
    where.call(lib.kiln_loss_deviance, parts.pointer, loss,
               matrix(as_columns(eta, np.float64), where).pointer)
    with mp.workdps(60):
        for found, (share, at) in zip(parts.numpy()[:, 0], grid, strict=True):
            mu, nu = 1 / (1 + mp.exp(-mp.mpf(at))), 1 / (1 + mp.exp(mp.mpf(at)))
            want = 2 * exact(precision, share, (mu, nu))
            size = (
                1
                + precision * (1 - np.log(share) + abs(np.log1p(-share)) + np.log1p(precision))
                + 3 * abs(np.log(precision))
                + abs(at)
            )  # of the terms
            assert abs(found - want) <= 4e-15 * size + 1e-13 * abs(want), (share, at, found, want)


def rows(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3)).round(3)
    offset = rng.normal(size=400).round(2) / 4
    mean = 1 / (1 + np.exp(-(X @ [0.5, -0.3, 0.1] + 0.2 + offset)))
    y = np.clip(rng.beta(12 * mean, 12 * (1 - mean)), 1e-6, 1 - 1e-6)
    weights = rng.integers(1, 4, 400).astype(float)
    file = tmp_path / "rows.csv"
    columns = np.column_stack([X, y, weights, offset])
    np.savetxt(file, columns, delimiter=",", header="a,b,c,share,weight,more", comments="", fmt="%.17g")
    return file, X, y, weights, offset


def run(tool, *arguments, code=0):
    made = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert made.returncode == code, made.stderr
    return made


@pytest.mark.parametrize("device, kind",
                         [("cpu", "f64"), ("cpu", "f32"), ("cpu*2", "f64"), ("cpu*2", "f32"),
                          ("opencl", "f64")])
def test_tool(tool, tmp_path, device, kind):
    if device == "opencl" and not any(d["name"].startswith("opencl") and d["usable"] for d in kiln.devices()):
        pytest.skip("no OpenCL here")
    file, X, y, weights, offset = rows(tmp_path)
    model = tmp_path / "m.kiln"
    more = ["--target", "share", "--weights", "weight", "--offset", "more", "--json", "--quiet"]
    made = json.loads(run(tool, "glm", file, "--family", "beta", "--precision", 12, "--type", kind,
                          "--device", device, "--standard-errors",
                          "-o", model, *more).stdout)
    assert made["converged"]
    exactly = kiln.GeneralizedLinearRegressor("beta", parameter=12, tol=1e-12, standard_errors=True,
                                              device="cpu").fit(X, y, weights, offset)
    close = 1e-7 if kind == "f64" else 2e-4
    assert made["objective"] == pytest.approx(exactly.report_.objective, rel=close)
    run(tool, "verify", model, file, *more)
    judged = json.loads(run(tool, "evaluate", model, file, *more).stdout)
    assert judged["metrics"]["d2"] == pytest.approx(exactly.score(X, y, weights, offset),
                                                    rel=1e-5 if kind == "f64" else 1e-2)
    predicted = run(tool, "predict", model, file, *[word for word in more if word != "--json"],
                    "--quiet").stdout
    assert predicted


def test_refused(tool, tmp_path):
    file = tmp_path / "ends.csv"
    for wrong in ("1", "0", "1.5", "-0.1"):
        file.write_text(f"a,share\n1,0.5\n2,0.25\n3,{wrong}\n4,0.75\n")
        made = run(tool, "glm", file, "--target", "share", "--family", "beta", "--precision", 3, code=3)
        assert "ends.csv:4:3" in made.stderr and "> 0 and < 1" in made.stderr, made.stderr
    file.write_text("a,share\n1,0.5\n2,0.25\n3,0.2\n4,0.75\n")
    assert "by maximum likelihood" in run(tool, "glm", file, "--target", "share", "--family", "beta").stdout
    assert "belongs to --family beta" in run(tool, "glm", file, "--target", "share", "--precision", 3,
                                             code=2).stderr
    assert "no link log" in run(tool, "glm", file, "--target", "share", "--family", "beta", "--precision", 3,
                                "--link", "log", code=2).stderr


@pytest.mark.parametrize("least", [1e-100, 1e-300, 5e-324, 1e-20])
def test_verified_near_0(tool, tmp_path, least):
    """The best mean of a share of 1e-100 is at 1 / (5 log 1e100), and not near the share."""
    file, model = tmp_path / "rows.csv", tmp_path / "m.kiln"
    shares = [least, 0.4, 0.6]
    file.write_text("x,y\n" + "".join(f"{i},{y!r}\n" for i, y in enumerate(shares, 1)))
    made = json.loads(run(tool, "glm", file, "--target", "y", "--family", "beta", "--precision", 5, "-o",
                          model, "--json", "--quiet").stdout)
    verified = json.loads(run(tool, "verify", model, file, "--json", "--quiet").stdout)
    with mp.workdps(60):
        nowhere = mp.findroot(lambda t: sum(mp.digamma(5 / (1 + mp.exp(-t))) - mp.digamma(5 / (1 + mp.exp(t)))
                                            - mp.log(y) + mp.log(1 - mp.mpf(y))
                                            for y in shares), (-12, 4), solver="anderson")
        null = 2 * sum(exact(5, y, (1 / (1 + mp.exp(-nowhere)), 1 / (1 + mp.exp(nowhere)))) for y in shares)
    assert made["metrics"]["null_deviance"] == pytest.approx(float(null), rel=1e-12)
    assert verified


def test_a_precision_beside_means_that_are_1_by_rounding():
    rng = np.random.default_rng([1, 1000, 10])
    X = rng.normal(size=(60, 4))
    mean = np.clip(-np.expm1(-np.exp(X @ rng.normal(size=4))), 1e-9, 1 - 1e-9)
    y = np.clip(rng.beta(100 * mean, 100 * (1 - mean)), 1e-12, 1 - 1e-12)
    best = kiln.GeneralizedLinearRegressor("beta", link="cloglog", parameter="estimate",
                                           device="cpu").fit(X, y).parameter_
    lower, least, higher = (kiln.GeneralizedLinearRegressor("beta", link="cloglog", parameter=best * part,
                                                            device="cpu").fit(X, y).report_.figures["aic"]
                            for part in (0.9, 1, 1.1))
    assert least < min(lower, higher)
