"""Models that go to scikit-learn and come from it."""
import pickle
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_saved import FITS, RATINGS, X

import kiln
from kiln._base import Estimator

RNG = np.random.default_rng(8)
MANY = RNG.normal(size=(10000, 3))
METHODS = ("decision_function", "predict_proba", "predict", "transform")
# what scikit-learn has no class of: a word of the reason
REFUSED = {"ALS": "no class", "SFA": "no class", "prior='gamma'": "prior", "binomial": "family",
           "negative": "family", "PCA(n_components=0.5, s": "StandardScaler",
           "TruncatedSVD(s": "StandardScaler", "offset": "offset", "learn_alpha": "one prior"}
# iterations of scikit-learn's own that end elsewhere: how far apart transforms may be, of their largest value
LOOSE = {"NMF": 0.02, "LatentDirichletAllocation": 0.05}
QUIET = pytest.mark.filterwarnings("ignore")


def trained(fit):
    estimator, data, y, more = fit
    return estimator.fit(data, y, **more) if y is not None else estimator.fit(data, **more)


def rows_for(model):
    if model.n_features_in_ == RATINGS.shape[1]:
        return sp.random(500, RATINGS.shape[1], 0.5, format="csr", random_state=0,
                         data_rvs=lambda n: RNG.integers(1, 6, n).astype(float))
    return MANY[:, :model.n_features_in_]


def alike(one, other, rows):
    """Checks that methods which both have give the same."""
    tried = 0
    for method in METHODS:
        if hasattr(one, method) and hasattr(other, method):
            wanted, found = getattr(one, method)(rows), getattr(other, method)(rows)
            tried += 1
            if method == "predict" and wanted.dtype.kind not in "f":
                assert (wanted == found).mean() > 1 - 1e-3  # rows that are as near to one as to the other
            else:
                loose = LOOSE.get(type(one).__name__, 1e-10)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=loose * np.abs(wanted).max())
    return tried


def reason(fit):
    estimator, _, _, more = fit
    name = repr(estimator) + " ".join(more)
    return next((word for part, word in REFUSED.items() if part in name), None)


@QUIET
@pytest.mark.parametrize("fit", FITS, ids=lambda fit: f"{type(fit[0]).__name__}-{FITS.index(fit)}")
def test_to_scikit_learn_and_back(fit):
    model = trained(fit)
    why = reason(fit)
    if why:
        with pytest.raises(kiln.UnsupportedError, match=why):
            model.to_sklearn()
        return
    theirs = model.to_sklearn()
    inner = theirs[-1] if getattr(model, "spherical", False) else theirs
    name = type(model).__name__
    assert type(inner).__module__.startswith("sklearn.")
    assert type(inner).__name__ == ("TweedieRegressor" if name.startswith("Generalized") else name)
    for attribute in ("coef_", "intercept_", "classes_", "cluster_centers_", "components_", "embedding_"):
        if hasattr(model, attribute):
            np.testing.assert_array_equal(np.ravel(getattr(inner, attribute)),
                                          np.ravel(getattr(model, attribute)))
    assert "kiln" not in {type(value).__module__.split(".")[0] for value in vars(inner).values()}
    if not hasattr(model, "embedding_"):
        assert alike(model, theirs, rows_for(model))
    pickle.loads(pickle.dumps(theirs))
    if name.startswith("Generalized"):
        assert alike(model, kiln.from_sklearn(theirs), rows_for(model))
        return
    back = kiln.from_sklearn(theirs) if inner is theirs else kiln.from_sklearn(inner)
    assert type(back) is type(model)
    if not hasattr(model, "embedding_") and inner is theirs:
        assert alike(model, back, rows_for(model))
        assert back.n_features_in_ == model.n_features_in_


@QUIET
def test_float32_and_names_go_along():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abc"))
    model = kiln.LogisticRegression(device="cpu").fit(frame, X[:, 0] > 0)
    theirs = model.to_sklearn()
    assert theirs.coef_.dtype == np.float32 and list(theirs.feature_names_in_) == list("abc")
    np.testing.assert_allclose(theirs.predict_proba(frame), model.predict_proba(frame), atol=1e-6)


def test_unfitted_estimators_keep_their_parameters():
    from sklearn.linear_model import Lasso, LogisticRegression, RidgeCV
    from sklearn.svm import LinearSVC, LinearSVR

    theirs = kiln.LogisticRegression(C=3.0, l1_ratio=0.5, tol=1e-3).to_sklearn()
    assert (theirs.C, theirs.l1_ratio, theirs.tol, theirs.solver) == (3.0, 0.5, 1e-3, "saga")
    ours = kiln.from_sklearn(Lasso(alpha=0.3, max_iter=50), device="cpu")
    assert (ours.alpha, ours.max_iter, ours.tol, ours.device) == (0.3, 50, None, "cpu")
    assert kiln.from_sklearn(LogisticRegression()).solver == "auto"
    assert kiln.from_sklearn(RidgeCV()).cv is None
    assert kiln.from_sklearn(LinearSVR()).loss == "epsilon_insensitive"
    with pytest.raises(kiln.ArgumentError, match="multi_class"):
        kiln.from_sklearn(LinearSVC(multi_class="crammer_singer"))
    with pytest.raises(kiln.UnsupportedError, match="StandardScaler"):
        kiln.from_sklearn(StandardScaler())


@QUIET
def test_pipelines():
    y = X[:, 0] > 0
    ours = make_pipeline(StandardScaler(), kiln.LinearSVC(device="cpu")).fit(X, y)
    theirs = kiln.to_sklearn(ours)
    assert not isinstance(theirs[-1], Estimator)
    assert alike(ours, theirs, MANY)
    back = kiln.from_sklearn(theirs)
    assert isinstance(back[-1], kiln.LinearSVC) and alike(ours, back, MANY)


@QUIET
def test_every_class_of_both_is_in_the_table():
    from kiln._scikit import _TABLE
    from scikit_gaps import pairs

    assert set(_TABLE) == {name for name, _, _ in pairs()} | {"GeneralizedLinearRegressor",
                                                              "GeneralizedLinearRegressorCV"}


@QUIET
def test_models_of_scikit_learn_are_saved(tool, tmp_path):
    from sklearn.cluster import KMeans
    from sklearn.decomposition import NMF

    ours = kiln.from_sklearn(KMeans(3, random_state=0).fit(MANY[:100]))
    ours.save(tmp_path / "m.kiln")
    loaded = kiln.load(tmp_path / "m.kiln")
    assert alike(ours, loaded, MANY)
    np.save(tmp_path / "X.npy", MANY)
    subprocess.run([tool, "predict", tmp_path / "m.kiln", tmp_path / "X.npy", "-o", tmp_path / "p.npy", "-q"],
                   check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy")[:, 0], ours.predict(MANY))
    theirs = NMF(2, init="random", solver="mu", beta_loss="kullback-leibler", random_state=0)
    with pytest.raises(kiln.UnsupportedError, match="factors of the rows"):
        kiln.from_sklearn(theirs.fit(np.abs(MANY[:50]))).save(tmp_path / "m.kiln")


@QUIET
def test_batches_go_on_in_scikit_learn():
    model = kiln.MiniBatchKMeans(3, random_state=0, device="cpu").fit(MANY)
    theirs = model.to_sklearn()
    model.partial_fit(MANY[:100]), theirs.partial_fit(MANY[:100])
    np.testing.assert_allclose(theirs.cluster_centers_, model.cluster_centers_, atol=1e-9)
    with pytest.raises(kiln.ModelError, match="partial_fit"):
        kiln.from_sklearn(theirs).partial_fit(MANY[:100])
