"""positive=True: least squares, ridge regression, lasso and elastic nets over coefficients from 0 on."""
import kiln
import numpy as np
import pytest
import scipy.sparse
import sklearn.base
import sklearn.linear_model as linear
from scipy.optimize import nnls

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 12)) * RANDOM.lognormal(size=12) + 3
Y = X @ RANDOM.normal(size=(12, 3)) + RANDOM.normal(size=(60, 3))
WEIGHTS = RANDOM.uniform(0, 2, 60)
KINDS = [(kiln.LinearRegression, linear.LinearRegression, {}), (kiln.Ridge, linear.Ridge, {"alpha": 3.0}),
         (kiln.Lasso, linear.Lasso, {"alpha": 0.05}),
         (kiln.ElasticNet, linear.ElasticNet, {"alpha": 0.05, "l1_ratio": 0.4})]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, kiln.matrix])
@pytest.mark.parametrize("kind, theirs, options", KINDS, ids=lambda value: getattr(value, "__module__", ""))
def test_scikit_learns_figures(kind, theirs, options, form):
    """With and without an intercept, of one and several targets, with weights."""
    for intercept in (True, False):
        for y, weights in ((Y[:, 0], None), (Y[:, :1], WEIGHTS), (Y, WEIGHTS)):
            more = {**options, "positive": True, "fit_intercept": intercept}
            ours = kind(**more, device="cpu").fit(form(X), y, weights)
            limits = {} if kind is kiln.LinearRegression else {"tol": 1e-13, "max_iter": 100000}
            known = theirs(**more, **limits).fit(X, y, weights)
            assert np.shape(ours.coef_) == np.shape(known.coef_)
            assert np.shape(ours.intercept_) == np.shape(known.intercept_)
            np.testing.assert_allclose(ours.coef_, known.coef_, atol=1e-5 * np.abs(known.coef_).max() + 1e-12)
            assert ours.coef_.min() >= 0 and ours.converged_ and ours.score(X, y) == pytest.approx(
                known.score(X, y), abs=1e-6)
            assert ours.optimality_gap_ <= 1e-9 * ours.objective_


@pytest.mark.parametrize("l1, l2", [(0.0, 0.0), (0.0, 1.0), (3.0, 0.0), (3.0, 1.0)])
def test_hard_problems(l1, l2):
    """Columns that depend on each other, more columns than rows, integers: the conditions of the least value,
    and the bound, which holds against what scipy finds."""
    from kiln._positive import Positive

    for seed in range(12):
        random = np.random.default_rng(seed)
        rows, columns = random.integers(2, 30, 2)
        A = np.round(random.normal(size=(rows, columns)) * 3) * (10.0 ** random.integers(-4, 4, columns))
        A[:, -1] = A[:, 0]
        y = A @ np.abs(random.normal(size=columns)) + random.normal(size=rows)
        w, _, report = Positive(kiln.matrix(A), None, intercept=False).solve(y, l1, l2, None)
        slope = A.T @ (y - A @ w) - l1 - l2 * w
        size = 1e-9 * np.linalg.norm(A, axis=0) * np.linalg.norm(y) + 1e-12
        assert report.converged and (w >= 0).all()
        assert (slope <= size).all() and (np.abs(slope) <= size)[w > 0].all()
        if l1 == 0:
            wide, long = np.vstack([A, np.sqrt(l2) * np.eye(columns)]), np.append(y, np.zeros(columns))
            least = nnls(wide, long, maxiter=1000)[1] ** 2 / 2
            assert report.objective - report.optimality_gap <= least * (1 + 1e-9) + 1e-12
            assert report.objective <= least * (1 + 1e-9) + 1e-9


def test_single_precision_and_standardized():
    narrow = kiln.Ridge(1.0, positive=True, device="cpu").fit(X.astype(np.float32), Y[:, 0])
    wide = kiln.Ridge(1.0, positive=True, device="cpu").fit(X, Y[:, 0])
    assert narrow.coef_.dtype == np.float32 and narrow.converged_
    np.testing.assert_allclose(narrow.coef_, wide.coef_, atol=1e-3 * wide.coef_.max())
    spread = X.std(axis=0)
    scaled = kiln.Ridge(1.0, positive=True, standardize=True, device="cpu").fit(X, Y[:, 0])
    np.testing.assert_allclose(scaled.coef_ * spread, kiln.Ridge(1.0, positive=True, device="cpu").fit(
        X / spread, Y[:, 0]).coef_, rtol=1e-8, atol=1e-10)


def test_paths():
    y = Y[:, 0] - Y[:, 0].mean()
    for ratio in (1.0, 0.5):
        ours = kiln.enet_path(X, y, l1_ratio=ratio, alphas=15, positive=True, return_n_iter=True,
                              device="cpu")
        theirs = linear.enet_path(X, y, l1_ratio=ratio, alphas=15, positive=True, tol=1e-13,
                                  max_iter=100000)
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
        np.testing.assert_allclose(ours[1], theirs[1], atol=1e-6 * theirs[1].max())
        assert ours[1].min() >= 0 and len(ours[3]) == 15 and (ours[2] < 1e-9 * (y @ y)).all()


def test_what_is_said(tmp_path):
    model = kiln.Lasso(0.05, positive=True, device="cpu").fit(X, Y[:, 0])
    model.save(tmp_path / "m.kiln")
    np.testing.assert_allclose(kiln.load(tmp_path / "m.kiln").predict(X), model.predict(X))
    assert model.report_.solver == "active-set" and model.report_.certificate
    with pytest.raises(kiln.ArgumentError, match="4096 columns"):
        kiln.LinearRegression(positive=True).fit(scipy.sparse.eye(5000, format="csr"), np.ones(5000))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN"):
            kiln.Ridge(positive=True, device="cpu").fit(np.where(X == X[3, 3], bad, X), Y[:, 0])
    wide = np.hstack([X, np.full((60, 1), 7.0)])
    flat = kiln.LinearRegression(positive=True, device="cpu").fit(wide, Y[:, 0])
    assert flat.coef_[-1] == 0 and flat.rank_ is None
    assert (kiln.Lasso(1e6, positive=True, device="cpu").fit(X, Y[:, 0]).coef_ == 0).all()


@pytest.mark.parametrize("model", [kiln.Lasso(0.01, positive=True), kiln.Ridge(positive=True),
                                   kiln.LinearRegression(positive=True), kiln.ElasticNet(positive=True)])
def test_fits_that_rounding_ends(model, tmp_path):
    """The report of such a fit is kept with the model as that of any other."""
    far = (X + 1e4).astype(np.float32)
    for rows, options in ((far, {}), (X, {"tol": 1e-30})):
        fitted = sklearn.base.clone(model).set_params(device="cpu", **options).fit(rows, Y[:, 0])
        fitted.save(tmp_path / "m.kiln")
        assert fitted.report_.converged in (True, False) and fitted.coef_.min() >= 0
        assert kiln.load(tmp_path / "m.kiln").report_.converged == fitted.report_.converged


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [True, False])
def test_cross_validation(form, weights, intercept):
    """scikit-learn's choice, its errors of each fold, and its coefficients."""
    y = X @ np.maximum(np.arange(-4, 8), 0) + Y[:, 0]
    for kind, theirs, more in ((kiln.LassoCV, linear.LassoCV, {}),
                               (kiln.ElasticNetCV, linear.ElasticNetCV, {"l1_ratio": [0.3, 0.9]})):
        options = {**more, "positive": True, "fit_intercept": intercept, "cv": 4}
        known = theirs(**options, alphas=20, tol=1e-12, max_iter=1_000_000).fit(X, y, weights)
        ours = kind(**options, alphas=20, device="cpu").fit(form(X), y, weights)
        np.testing.assert_allclose(ours.alphas_, known.alphas_, rtol=1e-9)
        np.testing.assert_allclose(ours.mse_path_, known.mse_path_, rtol=1e-6)
        assert ours.alpha_ == pytest.approx(known.alpha_) and ours.coef_.min() >= 0
        np.testing.assert_allclose(ours.coef_, known.coef_, atol=1e-6 * known.coef_.max())
        assert ours.intercept_ == pytest.approx(known.intercept_, abs=1e-6) and ours.converged_
