"""Linear models on columns that hurt, against elimination in long double on centred, scaled columns; and the
solution of least norm."""
import itertools
import json
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from hard_columns import hard_columns, table

import kiln
from kiln import accel

M = 400
LONG = np.longdouble


def eliminate(A, r):
    A, r = A.copy(), r.copy()
    for k in range(len(r)):
        for i in range(k + 1, len(r)):
            part = A[i, k] / A[k, k]
            A[i] -= part * A[k]
            r[i] -= part * r[k]
    x = np.zeros_like(r)
    for k in reversed(range(len(r))):
        x[k] = (r[k] - A[k] @ x) / A[k, k]
    return x


def reference(X, y, l2=0.0, standardize=False, intercept=True, weights=None):
    """Coefficients of least squares, and the columns' spreads."""
    X, y = X.astype(LONG), y.astype(LONG)
    s = np.ones(len(y), LONG) if weights is None else weights.astype(LONG)
    mean = s @ X / s.sum()
    mean += s @ (X - mean) / s.sum()
    spread = np.sqrt(s @ (X - mean) ** 2 / s.sum())
    Z = X - mean if intercept else X
    scale = np.sqrt(s @ Z**2)
    Z = Z / scale
    A = Z.T @ (s[:, None] * Z) + np.diag(l2 * (spread**2 if standardize else spread**0) / scale**2)
    return eliminate(A, Z.T @ (s * (y - (s @ y / s.sum() if intercept else 0)))) / scale, spread


def target(X, seed=3):
    rng = np.random.default_rng(seed)
    Z = X.astype(float) - X.mean(0, dtype=float)
    return Z / Z.std(0) @ rng.standard_normal(X.shape[1]) + 0.3 * rng.standard_normal(len(X))


WEIGHTS = np.random.default_rng(9).uniform(0.2, 3, M)
KINDS = [dict(), dict(l2=30.0, standardize=True), dict(l2=30.0, standardize=True, weights=WEIGHTS),
         dict(weights=WEIGHTS)]


@pytest.mark.parametrize("device", ["cpu", "cpu*2", "opencl"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_least_squares(device, dtype):
    needs(device)
    X = table(hard_columns(M, wild=dtype is np.float64), dtype)
    y = target(X).astype(dtype)
    for solver, form, kind in itertools.product(["cholesky", "cg"], [np.asarray, sp.csr_matrix], KINDS):
        given = dict(kind)
        weights = given.get("weights")
        weights = None if weights is None else weights.astype(dtype)
        want, spread = reference(X, y, given.get("l2", 0.0), given.get("standardize", False), weights=weights)
        model = kiln.Ridge(alpha=given.get("l2", 0.0), standardize=given.get("standardize", False),
                           solver=solver, device=device)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it converges
            model.fit(form(X), y, sample_weight=weights)
        off = np.abs((model.coef_ - want) * spread).max() / np.abs(want * spread).max()
        assert off < (3e-8 if dtype is np.float64 else 2e-3), (solver, form, kind, off)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_converged_is_near_the_solution(dtype):
    """Columns ever farther from zero: what says that it has converged is right to 4 roots of epsilon, and
    reports a residual that was reached."""
    epsilon = np.finfo(dtype).eps
    stops = set()
    for far, l2, kind in itertools.product(10.0 ** np.arange(1, 16 if dtype is np.float64 else 8),
                                           [0.0, 10.0], range(3)):
        rng = np.random.default_rng(int(np.log10(far)))
        Z = rng.standard_normal((M, 4))
        X = (Z + [0, far, far / 10, 0]).astype(dtype)
        y = (Z @ [[1, 2, 0, 3], [1, 0, 0, 0], [0, 0, 1e3, 1e-3]][kind] + [1, 0.1, 1e-3][kind]
             * rng.standard_normal(M)).astype(dtype)
        if np.any(X.std(0, dtype=float) <= 32 * epsilon * np.abs(X).max(0)):
            continue  # constant to 16 units of rounding: left out
        want, spread = reference(X, y, l2)
        for solver, form in itertools.product(["cholesky", "cg"], [np.asarray, sp.csr_matrix]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kiln.Ridge(alpha=l2, solver=solver).fit(form(X), y)
            report = model.report_
            stops.add(report.stopped_by)
            assert report.converged == (report.stopped_by in ("tolerance", "rounding"))
            assert (report.residual <= report.tolerance) == (report.stopped_by == "tolerance")
            assert report.stopped_by != "rounding" or report.residual <= epsilon**0.5
            off = np.abs((model.coef_ - want) * spread).max() / np.abs(want * spread).max()
            assert not report.converged or off < 4 * epsilon**0.5, (far, l2, kind, solver, form, off)
    assert "rounding" in stops


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_but_constant_columns_are_constant(form, dtype):
    columns = hard_columns(M, flat=True)
    X = table(columns, dtype)
    y = target(table(hard_columns(M), dtype)).astype(dtype)
    kept = [name not in ("constant", "constant but for an ulp") for name in columns]
    want, spread = reference(X[:, kept], y)
    for solver, standardize in itertools.product(["cholesky", "cg"], [False, True]):
        model = kiln.Ridge(alpha=0, solver=solver, standardize=standardize).fit(form(X), y)
        assert model.report_.converged and np.all(model.coef_[~np.array(kept)] == 0)
        off = np.abs((model.coef_[kept] - want) * spread).max() / np.abs(want * spread).max()
        assert off < (1e-8 if dtype is np.float64 else 2e-3), off


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_newton_sees_no_shift(form):
    """Losses do not change when columns are shifted and scaled: coefficients follow."""
    columns = hard_columns(M)
    X = table(columns)
    Z = (X - X.mean(0)) / X.std(0)
    rng = np.random.default_rng(5)
    eta = Z @ rng.standard_normal(X.shape[1]) / 2
    label = rng.random(M) < 1 / (1 + np.exp(-eta))
    models = [
        (kiln.LogisticRegression(C=1.0, standardize=True), label),
        (kiln.LinearSVC(C=1.0, standardize=True), label),
        (kiln.GeneralizedLinearRegressor("poisson", alpha=0.01, standardize=True), rng.poisson(np.exp(eta))),
        (kiln.GeneralizedLinearRegressor("gamma", link="log", alpha=0.01, standardize=True),
         rng.gamma(2, np.exp(eta) / 2)),
    ]
    for model, y in models:
        plain = np.ravel(type(model)(**model.get_params()).fit(Z, y).coef_)
        model.fit(form(X), y)
        assert model.report_.converged, model
        off = np.abs(np.ravel(model.coef_) * X.std(0) - plain).max() / np.abs(plain).max()
        assert off < 1e-5, (model, off)


def deficient():
    rng = np.random.default_rng(1)
    B = rng.standard_normal((M, 5))
    levels = np.hstack([np.eye(k)[rng.integers(0, k, M)] for k in (4, 7)])
    years = rng.integers(1900, 2026, (M, 1)).astype(float)
    return {
        "twice": np.hstack([B, B[:, :2]]),
        "one-hot": np.hstack([levels, B]),
        "ages": np.hstack([years, 2025 - years, B]),
        "scales": np.hstack([B * [1, 1e3, 1e-3, 1, 1], B[:, 1:2] * 1e3 + B[:, 2:3]]),
        "wide": rng.standard_normal((40, 90)),
        "low rank": rng.standard_normal((M, 6)) @ rng.standard_normal((6, 30)),
    }


def least_norm(X, Y, s, intercept):
    """Returns the shortest of all least squares solutions, and the rank."""
    X, Y, s = X.astype(float), Y.astype(float), s.astype(float)
    center = (lambda A: A - s @ A / s.sum()) if intercept else (lambda A: A)
    root = np.sqrt(s)[:, None]
    want, _, rank, _ = np.linalg.lstsq(root * center(X), root * center(Y), rcond=1e-6)
    return want, rank


def needs(device):
    if device == "opencl" and not any(d["name"].startswith("opencl") and d["usable"] for d in kiln.devices()):
        pytest.skip("no OpenCL device")


@pytest.mark.parametrize("device", ["cpu", "cpu*2", "opencl"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", list(deficient()))
def test_least_norm(name, dtype, device):
    needs(device)
    if device == "opencl" and name != "twice":
        pytest.skip("a CPU has the others: each number of columns is a kernel to compile")
    X = deficient()[name].astype(dtype)
    rng = np.random.default_rng(2)
    Y = X @ rng.standard_normal((X.shape[1],
                                 3)) / np.sqrt(X.shape[1]) + 0.3 * rng.standard_normal((len(X), 3)) + 5
    Y = Y.astype(dtype)
    few = device == "opencl"
    for form, solver, k, intercept, weigh in itertools.product(
            [np.asarray, sp.csr_matrix], ["auto", "cg"], [1, 3], [True] if few else [True, False],
            [True] if few else [False, True]):
        s = (WEIGHTS[:len(X)] if weigh else np.ones(len(X))).astype(dtype)
        want, rank = least_norm(X, Y, s, intercept)
        model = kiln.LinearRegression(fit_intercept=intercept, solver=solver, device=device)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(form(X), Y[:, 0] if k == 1 else Y, sample_weight=s if weigh else None)
        assert any("depend on each other" in str(w.message) for w in said) == (rank < X.shape[1])
        assert (model.report_.converged and model.rank_ == rank), (form, solver, k, intercept, weigh,
                                                                   model.rank_, rank)
        off = np.abs(model.coef_.T - (want[:, 0] if k == 1 else want)).max() / np.abs(want).max()
        assert off < (1e-9 if dtype is np.float64 else 1e-3), (form, solver, k, intercept, weigh, off)


@pytest.mark.parametrize("device", ["cpu", "cpu*2", "opencl"])
@pytest.mark.parametrize("solver", ["auto", "cg"])
def test_the_rank_of_far_columns(solver, device):
    """Sums over a sparse X whose columns' means dwarf their spreads cancel: candidates for dependence are
    found as far as these are known, and judged by X itself."""
    needs(device)
    kinds = [lambda r: 1 + 1e-7 * r.normal(size=24), lambda r: 1.7e9 + np.floor(r.random(24) * 3e3),
             lambda r: 1.7e12 + np.floor(r.random(24) * 3e7)]
    for seed, kind in itertools.product(range(8), range(3)):
        r = np.random.default_rng([5, seed])
        a, b = kinds[kind](r), kinds[kind](r)
        first = np.c_[r.normal(size=24), r.random(24) < 0.5]
        for rank, rest in ((3, [a, a]), (4, [a, b, a + b]), (4, [a, b, b])):
            model = kiln.LinearRegression(solver=solver, device=device)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(sp.csr_matrix(np.c_[first, np.stack(rest, 1)]), first[:, 0] + r.normal(size=24),
                          sample_weight=r.random(24) + 0.1)
            assert model.rank_ == rank, (seed, kind, rank, model.rank_)


@pytest.mark.parametrize("device", ["cpu", "cpu*2"])
@pytest.mark.parametrize("copies", [0, 2])
def test_the_rank_where_a_factor_is_dear(copies, device):
    """640 columns are solved by conjugate gradient, which tells by a vector at random whether they depend on
    each other."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((1200, 640)) * rng.uniform(0.1, 10, 640) + 3
    y = rng.standard_normal(1200)
    apart, twins = (X[:, :640 - copies] - X[:, :640 - copies].mean(0),
                    np.r_[np.full(copies, 2**0.5), np.ones(640 - 2 * copies)])
    half = np.linalg.solve(twins[:, None] * (apart.T @ apart) * twins,
                           twins * (apart.T @ (y - y.mean()))) * twins
    half[:copies] /= 2  # of two that are the same each has half of what they need together
    want = np.r_[half, half[:copies]]
    X[:, 640 - copies:] = X[:, :copies]
    model = kiln.LinearRegression(device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    assert model.report_.solver == "cg" and model.report_.converged and model.report_.n_iter < 100
    assert model.rank_ == 640 - copies
    assert np.abs(model.coef_ - want).max() < 1e-9 * np.abs(want).max()


def test_near_dependent_is_not_dependent():
    rng = np.random.default_rng(4)
    B = rng.standard_normal((M, 4))
    X = np.hstack([B, B[:, :1] + 1e-7 * rng.standard_normal((M, 1))])
    y = rng.standard_normal(M)
    want, _ = reference(X, y)
    model = kiln.LinearRegression().fit(X, y)
    assert model.rank_ is None or model.rank_ == 5
    assert np.abs(model.coef_ - want).max() / np.abs(want).max() < 1e-4


def test_the_tool_says_the_rank(tmp_path, tool):
    X = deficient()["one-hot"]
    rows = np.column_stack([X, X @ np.arange(X.shape[1])])
    path = tmp_path / "x.csv"
    np.savetxt(path, rows, delimiter=",")
    done = subprocess.run([tool, "linreg", path, "--target", str(X.shape[1] + 1), "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"rank"' in done.stdout and json.loads(done.stdout)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", list(deficient()))
def test_least_norm_of_others_that_have_no_penalty(name, dtype):
    """RidgeCV with no strength but 0, Ridge(0), and scikit-learn's classes under kiln.accel."""
    X = deficient()[name].astype(dtype)
    rng = np.random.default_rng(2)
    Y = X @ rng.standard_normal((X.shape[1],
                                 3)) / np.sqrt(X.shape[1]) + 0.3 * rng.standard_normal((len(X), 3)) + 5
    Y, s = Y.astype(dtype), WEIGHTS[:len(X)].astype(dtype)
    want = least_norm(X, Y, s, True)[0].T
    accel.calls.clear()
    accel.install()
    try:
        theirs = [sklearn.linear_model.LinearRegression().fit(X, y, s) for y in (Y, Y[:, 0])]
        assert len(accel.calls) == 2
    finally:
        accel.uninstall()
    ours = [kind.fit(form(X), y, s) for kind in (kiln.RidgeCV([0.0], cv=3), kiln.Ridge(0.0))
            for y in (Y, Y[:, 0]) for form in (np.asarray, sp.csr_matrix)]
    for model in theirs + ours:
        off = np.abs(model.coef_ - (want if model.coef_.ndim == 2 else want[0])).max() / np.abs(want).max()
        assert off < (1e-9 if dtype is np.float64 else 1e-3), (model, off)


def test_a_rank_that_is_not_decided_is_said(tmp_path, tool):
    """No factor of 4,200 columns is made: conjugate gradient solves them, and the report has no rank."""
    m, n = 5000, 4200
    rng = np.random.default_rng(6)
    X = sp.vstack([sp.eye(n), sp.random(m - n, n, 1e-3, random_state=6)]).tocsr()
    y = rng.standard_normal(m)
    model = kiln.LinearRegression(device="cpu").fit(X, y)
    assert model.rank_ is None and np.isnan(model.report_.figures["rank"])
    sp.save_npz(tmp_path / "x.npz", X)
    np.save(tmp_path / "y.npy", y)
    command = [tool, "linreg", tmp_path / "x.npz", "--target-file", tmp_path / "y.npy", "--device", "cpu"]
    assert json.loads(subprocess.run([*command, "--json"], capture_output=True,
                                     text=True).stdout)["metrics"]["rank"] is None
    assert "rank        not known" in subprocess.run(command, capture_output=True, text=True).stdout


LINEAR = {
    "Ridge": lambda **more: kiln.Ridge(1.0, **more),
    "LogisticRegression": lambda **more: kiln.LogisticRegression(**more),
    "GeneralizedLinearRegressor": lambda **more: kiln.GeneralizedLinearRegressor("gamma", alpha=0.1, **more),
    "LinearSVC": lambda **more: kiln.LinearSVC(**more),
    "LinearSVR": lambda **more: kiln.LinearSVR(**more),
}


@pytest.mark.parametrize("name, device", [*itertools.product(LINEAR, ["cpu", "cpu*2"]), ("Ridge", "opencl")])
def test_rows_without_weight_do_not_count(name, device):
    """A column is zero in all rows that have weight: whatever the others hold, its coefficient is
    0."""
    if device == "opencl" and not any(d["name"].startswith("opencl") and d["usable"] for d in kiln.devices()):
        pytest.skip("no OpenCL device")
    rng = np.random.default_rng(5)
    kinds = list(itertools.product((np.float64, np.float32), (False, True), (True, False)))
    # whose kernels take seconds to compile
    for dtype, sparse, intercept in kinds[:1] if device == "opencl" else kinds:
        X = rng.standard_normal((60, 14))
        weights = rng.integers(1, 4, 60) * 1e-3
        weights[::5] = 0
        X[weights > 0, 1:13] = 0
        y = (rng.gamma(2, np.exp(0.3 * X[:, 0])) if "Linear" not in name[:6]
             else X[:, 0] + rng.standard_normal(60))
        y = ((X[:, 0] + rng.standard_normal(60) > 0).astype(int) if name in ("LogisticRegression",
                                                                             "LinearSVC") else y)
        operand = sp.csr_matrix(X.astype(dtype)) if sparse else X.astype(dtype)
        model = LINEAR[name](standardize=True, fit_intercept=intercept,
                             device=device).fit(operand, y, sample_weight=weights)
        coefficients = np.ravel(model.coef_)
        assert np.all(coefficients[1:13] == 0), (dtype, sparse, intercept, coefficients)
        kept = weights > 0
        alone = LINEAR[name](standardize=True, fit_intercept=intercept,
                             device=device).fit(operand[kept], y[kept], sample_weight=weights[kept])
        np.testing.assert_allclose(coefficients, np.ravel(alone.coef_), rtol=1e-4 if dtype is np.float64
                                   else 2e-2, atol=1e-3)


@pytest.mark.parametrize("solver", ["cg", "cholesky", "auto"])
@pytest.mark.parametrize("far", [0.0, 1e5])
def test_squares_are_those_of_the_coefficients(solver, far):
    """If columns are nearly constant, iterates go far out and come back; the report is of what is handed
    over."""
    X = np.array([[1 - 1.2e-7, 0, 0, 0, 1, 0], [1 - 1e-8, 2, 1, 0, 1, 0]])
    y = np.array([0.75994522, 0.75873233]) + far
    for sparse, standardize in itertools.product((False, True), (False, True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kiln.Ridge(0.0, solver=solver, standardize=standardize).fit(sp.csr_matrix(X) if sparse
                                                                                else X, y)
        rss = float(((X.astype(LONG) @ model.coef_.astype(LONG) + LONG(model.intercept_) - y) ** 2).sum())
        assert model.report_.figures["rss"] == pytest.approx(rss, rel=1e-6, abs=1e-24 * max(far, 1) ** 2)
        assert model.report_.objective == pytest.approx(rss / 2, rel=1e-6, abs=1e-24 * max(far, 1) ** 2)


def test_score_of_equal_targets():
    """Rounding of their mean is no spread: the score is scikit-learn's for a constant, 0."""
    rng = np.random.default_rng(2)
    X, weights = rng.standard_normal((12, 2)), rng.random(12)
    y = X[:, 0] + 1
    weights[0] = 0
    equal = np.full(12, 0.1)
    equal[0] = 7
    for model in (kiln.Ridge(1.0), kiln.GeneralizedLinearRegressor("gaussian"), kiln.LinearSVR()):
        assert model.fit(X, y).score(X, equal, sample_weight=weights) == 0
    folds = [(np.arange(6, 12), np.arange(6)), (np.arange(6), np.arange(6, 12))]
    y[:6] = 0.1
    scores = kiln.RidgeCV([1.0, 2.0], cv=folds).fit(X, y, sample_weight=np.maximum(weights, 1e-3)).scores_
    assert np.all(scores[0] == 0)


def test_what_met_infinity_is_no_model():
    """l2 times the square of this column is beyond float32."""
    X = np.zeros((8, 2), np.float32)
    X[:, 0] = np.linspace(-1e20, 1.6e20, 8)
    X[:, 1] = np.arange(8) % 3
    y = np.array([0, 1, 2, 0, 1, 2, 1, 2])
    model = kiln.LogisticRegression(C=0.01, standardize=True)
    with pytest.raises(kiln.DataError, match="float64"):
        model.fit(X, y, sample_weight=np.full(8, 2e-3))
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("shape", ["wide", "far", "scaled"])
def test_least_norm_of_any_shape(shape):
    """Their least squares end by rounding, at the least norm all the same."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 120) if shape == "wide" else (300, 3))
    if shape == "far":
        X = np.column_stack([X, X[:, 0]]) + 100
    if shape == "scaled":
        X = np.column_stack([X * [1, 1e-3, 1e3], X[:, 0] + X[:, 1] * 1e-3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = kiln.PoissonRegressor(alpha=0).fit(X, rng.poisson(2, len(X)) + 1).coef_
    centred = X - X.mean(0)
    np.testing.assert_allclose(np.linalg.pinv(centred) @ (centred @ found), found, rtol=0,
                               atol=1e-8 * np.abs(found).max())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "logistic", "softmax"])
def test_least_norm_without_a_penalty(family, intercept):
    """They lie in the space that the rows span, and predict what the independent columns do."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(200, 3))
    X = np.column_stack([base, base @ [1.0, 2.0, -1.0], base[:, :1] * 2])
    eta = 0.5 * base[:, 0] + rng.normal(size=200)
    model, y = {"gaussian": (kiln.GeneralizedLinearRegressor("gaussian", alpha=0), eta),
                "poisson": (kiln.PoissonRegressor(alpha=0), rng.poisson(np.exp(eta))),
                "gamma": (kiln.GammaRegressor(alpha=0), np.exp(eta)),
                "logistic": (kiln.LogisticRegression(C=np.inf), eta > 0),
                "softmax": (kiln.LogisticRegression(C=np.inf), np.digitize(eta, [-0.5, 0.5]))}[family]
    model.set_params(fit_intercept=intercept, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that depend on others
        found = np.atleast_2d(model.fit(X, y).coef_)
        few = type(model)(**model.get_params()).fit(base, y)
    centred = X - X.mean(0) if intercept else X
    np.testing.assert_allclose(found @ np.linalg.pinv(centred) @ centred, found, rtol=0, atol=1e-9)
    alone = np.atleast_2d(few.coef_)
    np.testing.assert_allclose(X @ found.T + model.intercept_, base @ alone.T + few.intercept_, atol=1e-5)
