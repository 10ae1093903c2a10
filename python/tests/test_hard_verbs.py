"""Columns that hurt through every verb that takes rows: type, dense and sparse, device. Each stands beside
two ordinary columns, and what is handed over is judged in long double on centred data. Losses do not change
when columns are shifted and scaled, so that the fit of standardised columns in float64 says what is right;
centres, distances, layouts and predictions are computed again from what a model holds."""
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hard_columns import hard_columns

import kiln

M, LONG = 240, np.longdouble
EPS = {np.float64: 2.3e-16, np.float32: 1.2e-7}
FORMS = [np.asarray, sp.csr_matrix]


def columns(dtype):
    some = {**hard_columns(M), "equal": np.full(M, 7.3),
            "ulp": np.where(np.arange(M) == 5, np.nextafter(dtype(1), dtype(2)), 1)}
    if dtype is np.float32:
        some["large"] = some["large"] / 1e3  # float32 has no room for its cube, which a Newton step may meet
    else:
        some["1e20"] = 1e20 * np.random.default_rng(3).standard_normal(M)
    return some


CASES = [(dtype, name, device) for dtype in EPS for name in columns(dtype) for device in ("cpu", "cpu*2")]
CASES += [(dtype, name, "opencl") for dtype in EPS for name in ("years", "unix seconds", "outlier", "ulp")]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}-{case[2]}")
def case(request):
    dtype, name, device = request.param
    if device == "opencl" and not any(d["name"].startswith("opencl") and d["usable"] for d in kiln.devices()):
        pytest.skip("no OpenCL device")
    B = np.random.default_rng(11).standard_normal((M, 2))
    X = np.column_stack([B[:, 0], columns(dtype)[name], B[:, 1]]).astype(dtype)
    return X, device


def standardised(X):
    """Z, the spreads, and whether the middle column counts as constant: to 16 units of rounding."""
    Z = X.astype(LONG) - X.astype(LONG).mean(0)
    spread = np.sqrt((Z**2).mean(0))
    flat = bool(spread[1] <= 16 * LONG(np.finfo(X.dtype).eps) * np.abs(X[:, 1]).max())
    Z = np.divide(Z, spread, out=np.zeros_like(Z), where=spread > 0)
    if flat:
        Z[:, 1] = 0
    return Z.astype(float), spread, flat


def models(Z, device):
    rng = np.random.default_rng(5)
    eta = Z @ [0.5, 0.4, -0.6]
    noisy, label = eta + 0.3 * rng.standard_normal(M), rng.random(M) < 1 / (1 + np.exp(-eta))
    glm = kiln.GeneralizedLinearRegressor
    same = {"standardize": True, "device": device}
    few = [(kiln.Ridge(3.0, **same), noisy), (kiln.LinearRegression(device=device), noisy),
           (kiln.LogisticRegression(C=1.0, **same), label)]
    if device == "opencl":  # each loss is a kernel to compile
        return few
    return few + [
        (kiln.LinearSVC(C=1.0, **same), label),
        (kiln.LinearSVR(C=1.0, **same), noisy),
        (glm("poisson", alpha=0.01, **same), rng.poisson(np.exp(eta))),
        (glm("gamma", link="log", alpha=0.01, **same), rng.gamma(2, np.exp(eta) / 2)),
        (glm("binomial", alpha=0.01, **same), label),
        (glm("gaussian", alpha=0.01, l1_ratio=0.5, **same), noisy),
    ]


def linear(model, X):
    """x . w + b in long double, and what rounding of its terms may be, in epsilons."""
    w, b = np.ravel(model.coef_).astype(LONG), LONG(np.ravel(model.intercept_)[0])
    return X.astype(LONG) @ w + b, np.abs(X.astype(LONG)) @ np.abs(w) + np.abs(b)


def test_linear_models(case):
    X, device = case
    Z, spread, flat = standardised(X)
    for model, y in models(Z, device):
        y = np.asarray(y, float).astype(X.dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = np.ravel(type(model)(**{**model.get_params(),
                                           "device": "cpu"}).fit(Z, y.astype(float)).coef_)
        for form in FORMS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a constant column has no say: the rank
                model.fit(form(X), y)
            assert model.report_.converged, (model, form)
            w = np.ravel(model.coef_)
            off = np.abs(w * spread - want).max() / np.abs(want).max()
            assert off < (1e-6 if X.dtype == np.float64 else 2e-3), (model, form, off)
            assert not flat or w[1] == 0, (model, form)
            score = (model.decision_function(form(X)) if hasattr(model, "decision_function")
                     else model.predict(form(X)))
            eta, terms = linear(model, X)
            if hasattr(model, "family") and model.family != "gaussian":
                score, eta = np.asarray(score, LONG), (
                    np.exp(eta) if model.family != "binomial" else 1 / (1 + np.exp(-eta))
                )
                terms = terms * np.maximum(eta, 1)
            assert np.all(np.abs(np.ravel(score) - eta) <= 16 * EPS[X.dtype.type]
                          * (terms + 1)), (model, form)


def test_kmeans(case):
    X, device = case
    L = X.astype(LONG)
    for form in FORMS:
        model = kiln.KMeans(4, random_state=0, device=device).fit(form(X))
        squares = ((L[:, None] - model.cluster_centers_.astype(LONG)) ** 2).sum(2)
        own, room = squares[np.arange(M), model.labels_], 64 * EPS[X.dtype.type]
        assert model.report_.converged and np.all(own <= squares.min(1) * (1 + room)), form
        assert abs(model.inertia_ - own.sum()) <= room * own.sum(), form
        assert np.array_equal(model.predict(form(X)), model.labels_), form


def test_mds(case):
    X, device = case
    if device == "opencl":
        pytest.skip("a CPU has it")
    X = X[:40]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kiln.MDS(2, random_state=0, max_iter=50, device=device).fit(X)
    between = lambda A: np.sqrt(((A[:, None].astype(LONG) - A[None].astype(LONG)) ** 2).sum(2))[
        np.triu_indices(len(A), 1)
    ]  # noqa: E731
    d, stress = between(X), ((between(X) - between(model.embedding_)) ** 2).sum()
    # each distance is known to some units of its own size
    unit = 16 * EPS[X.dtype.type]
    assert abs(model.stress_ - stress) <= 2 * np.sqrt(stress
                                                      * (unit**2 * (d**2).sum())) + unit**2 * (d**2).sum()


@pytest.mark.parametrize("device", ["cpu", "cpu*2"])
@pytest.mark.parametrize("form", FORMS)
def test_squares_that_underflow_are_refused(form, device):
    X = np.random.default_rng(0).standard_normal((M, 3)) * [1, 1e-155, 1]
    for model, y in models(X / [1, 1e-155, 1], device):
        with pytest.raises(ValueError, match="column 1 of X has .* underflow f64"):
            model.fit(form(X), np.asarray(y, float))


@pytest.mark.parametrize("device", ["cpu", "cpu*2", "opencl"])
@pytest.mark.parametrize("form", FORMS)
def test_penalties_that_overflow_are_refused(form, device):
    """Float32 has room for the squares and none for a hundred variances, which the penalty is: coefficients
    and objective were NaN."""
    if device == "opencl" and not any(d["name"].startswith("opencl") and d["usable"] for d in kiln.devices()):
        pytest.skip("no OpenCL device")
    X, s = np.random.default_rng(0).standard_normal((M, 3)) * [1, 4e18, 1], np.full(M, 1e-3)
    same, label = {"standardize": True, "device": device}, X[:, 0] > 0
    some = [kiln.Ridge(100.0, **same), kiln.LogisticRegression(C=0.01, **same),
            kiln.LogisticRegression(C=0.01, l1_ratio=0.1, **same)]
    if device != "opencl":  # each loss is a kernel to compile
        some += [kiln.LinearSVC(C=0.005, **same), kiln.GeneralizedLinearRegressor("poisson",
                                                                                  alpha=100 / s.sum(),
                                                                                  **same)]
    for model in some:
        with pytest.raises(ValueError,
                           match="column 1 of X has .* the penalty, leave the range of f32.*float64"):
            model.fit(form(X.astype(np.float32)), label.astype(np.float32), s.astype(np.float32))


@pytest.mark.parametrize("solver", ["cg", "cholesky"])
@pytest.mark.parametrize("form", FORMS)
def test_a_column_whose_diagonal_overflows_is_not_left_out(form, solver):
    """Its squares end just below float32's largest number, and with the penalty above it: it was left out
    without a word."""
    X, s = np.sign(np.random.default_rng(0).standard_normal((M, 2))), np.full(M, 0.01 / M)
    y = X.sum(1)
    model = kiln.Ridge(1e-3, fit_intercept=False, standardize=True, solver=solver)
    fit = lambda X: model.fit(form(X.astype(np.float32)), y.astype(np.float32),
                              s.astype(np.float32))  # noqa: E731
    with pytest.raises(ValueError, match="column 1 of X has values whose squares.* f32"):
        fit(X * [1, 1.83e20])
    Z = X.T @ X * 0.01 / M  # the same for columns of any scale
    own = np.linalg.solve(Z + np.diag(1e-3 * X.var(0)), X.T @ y * 0.01 / M)
    assert np.abs(fit(X * [1, 1e19]).coef_ * [1, 1e19] - own).max() < 1e-4
