"""RidgeCV with cv=None leaves out one row at a time, as scikit-learn's does."""
import kiln
import numpy as np
import pytest
import scipy.sparse
from sklearn import linear_model as peer
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut

RANDOM = np.random.default_rng(0)
ALPHAS = np.logspace(-3, 3, 7)
WEIGHTS = RANDOM.uniform(0, 2, 40)
LONG, WIDE = RANDOM.normal(size=(40, 7)) + 2, RANDOM.normal(size=(40, 90))
Y = LONG @ RANDOM.normal(size=(7, 3)) + RANDOM.normal(size=(40, 3))
OPTIONS = [{}, {"fit_intercept": False}, {"store_cv_results": True}, {"scoring": "neg_mean_absolute_error"},
           {"scoring": "r2", "store_cv_results": True}, {"alpha_per_target": True, "store_cv_results": True},
           {"alpha_per_target": True, "scoring": "neg_mean_squared_error"}]


@pytest.mark.parametrize("X", [LONG, WIDE, scipy.sparse.csr_matrix(LONG), scipy.sparse.csr_matrix(WIDE)],
                         ids=["long", "wide", "sparse long", "sparse wide"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_scikit_learns_figures(X, options):
    for y in (Y[:, 0], Y[:, :1], Y):
        if options.get("alpha_per_target") and options.get("scoring") and y.ndim == 1:
            continue  # which scikit-learn cannot score
        for weights in (None, WEIGHTS):
            ours = kiln.RidgeCV(ALPHAS, **options, device="cpu").fit(X, y, weights)
            theirs = peer.RidgeCV(ALPHAS, **options).fit(X, y, weights)
            kept = ["cv_results_"] if "store_cv_results" in options else []
            for name in ("alpha_", "best_score_", "coef_", "intercept_", *kept):
                wanted, found = np.asarray(getattr(theirs, name)), np.asarray(getattr(ours, name))
                if name in ("alpha_", "best_score_"):
                    wanted, found = np.ravel(wanted), np.ravel(found)
                np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9, err_msg=name)
            assert ours.converged_ and ours.scores_.shape[::len(ours.scores_.shape) - 1] == (1, len(ALPHAS))


def test_each_row_is_left_out():
    """The definition, by the folds of as many splits; and in single precision."""
    ours = kiln.RidgeCV(ALPHAS, device="cpu").fit(LONG, Y[:, 0])
    folds = clone(ours).set_params(cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(LONG, Y[:, 0])
    np.testing.assert_allclose(ours.scores_[0], folds.scores_.mean(axis=0), rtol=1e-8)
    assert ours.alpha_ == folds.alpha_ and ours.best_score_ == pytest.approx(folds.best_score_)
    narrow = kiln.RidgeCV(ALPHAS, device="cpu").fit(LONG.astype(np.float32), Y[:, 0])
    np.testing.assert_allclose(narrow.scores_, ours.scores_, rtol=1e-4)
    assert narrow.coef_.dtype == np.float32


def test_columns_that_depend_on_each_other():
    """Whose singular values are nothing: small penalties are judged as by a decomposition of X."""
    X = np.column_stack([LONG, LONG[:, :2] @ np.ones(2), np.full(40, 3.0)]) * 10.0 ** np.arange(-4, 5)
    for alphas in ([1e-3, 1e-1], [1e6, 1e9]):
        ours = kiln.RidgeCV(alphas, device="cpu").fit(X, Y[:, 0])
        theirs = peer.RidgeCV(alphas, gcv_mode="svd").fit(X, Y[:, 0])
        assert ours.alpha_ == theirs.alpha_
        assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-5)


@pytest.mark.parametrize("X", [LONG, WIDE], ids=["long", "wide"])
@pytest.mark.parametrize("type_, mean, allowed",
                         [("float32", 1e3, 1e-5), ("float64", 1e3, 1e-9), ("float64", 1e8, 1e-9)])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.filterwarnings("ignore:RidgeCV did not converge")  # of the fit that follows, on X as it is
def test_columns_far_from_zero(X, type_, mean, allowed, form):
    """They are judged by how they spread, as scikit-learn judges the same columns less their means."""
    X = (X + mean * (np.arange(X.shape[1]) != 3)).astype(type_)
    for weights in (np.ones(40), WEIGHTS):
        ours = kiln.RidgeCV(ALPHAS, store_cv_results=True, device="cpu").fit(form(X), Y, weights)
        centred = X.astype(np.float64)
        centred -= np.average(centred, axis=0, weights=weights)
        theirs = peer.RidgeCV(ALPHAS, store_cv_results=True, gcv_mode="svd").fit(centred, Y, weights)
        np.testing.assert_allclose(ours.scores_[0], -theirs.cv_results_.mean(axis=(0, 1)), rtol=allowed)


def test_what_is_refused(tmp_path):
    for options, text in [({"alphas": [0.0, 1.0]}, "alphas"), ({"standardize": True}, "cv=5"),
                          ({"cv": 5, "store_cv_results": True}, "cv=None"),
                          ({"cv": 5, "alpha_per_target": True}, "cv=None")]:
        with pytest.raises(ValueError, match=text):
            kiln.RidgeCV(**options, device="cpu").fit(LONG, Y)
    with pytest.raises(kiln.ArgumentError, match="4096.*5000 x 5000.*cv=5"):
        kiln.RidgeCV(device="cpu").fit(scipy.sparse.eye(5000, format="csr"), np.ones(5000))
    for X, y in [(np.where(LONG == LONG[2, 2], np.nan, LONG), Y), (LONG, np.where(Y == Y[1, 1], np.inf, Y))]:
        with pytest.raises(ValueError, match="NaN|infinity"):
            kiln.RidgeCV(device="cpu").fit(X, y)
    model = kiln.RidgeCV(device="cpu").fit(LONG, Y)
    model.save(tmp_path / "m.kiln")
    np.testing.assert_allclose(kiln.load(tmp_path / "m.kiln").predict(LONG), model.predict(LONG))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("X", [LONG, np.column_stack([LONG, LONG[:, 2] * 2, np.zeros(40)]), WIDE],
                         ids=["long", "collinear", "wide"])
@pytest.mark.parametrize("far", [0, 1000])
def test_columns_of_different_scales(X, far, form):
    """As each row left out in turn, which ridge regression of columns so large is: they cost nothing."""
    for large in (1e6, 1e9, 1e12):
        scales = np.ones(X.shape[1])
        scales[0], scales[4] = large, 1 / np.sqrt(large)
        data = (X + far) * scales
        ours = kiln.RidgeCV(ALPHAS, store_cv_results=True, device="cpu").fit(form(data), Y[:, 0])
        for a in (2, 3, 5):
            centred = (data - data.mean(axis=0)) / scales
            A = np.vstack([centred, np.diag(np.sqrt(ALPHAS[a]) / scales)])
            Q, _ = np.linalg.qr(A)
            hat = Q[:40] @ Q[:40].T
            y = Y[:, 0] - Y[:, 0].mean()
            errors = (y - hat @ y) / (1 - hat.diagonal() - 1 / 40)
            np.testing.assert_allclose(ours.cv_results_[:, a], errors**2, rtol=1e-4, atol=1e-4)
