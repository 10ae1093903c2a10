"""The same results as scikit-learn's own classes, where both minimise the same."""
import functools

import kiln
import numpy as np
import pytest
import scipy.sparse
import sklearn.cluster
import sklearn.linear_model as peer
import sklearn.manifold
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

# the CPU and one other: the library's tests have the rest
DEVICES = [row["name"] for row in kiln.devices() if row["usable"]][-2:]


def standardized(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_devices():
    assert "cpu" in DEVICES


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_ridge(where, alpha):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    ours = kiln.Ridge(alpha, device=where).fit(X, y, weights)
    theirs = peer.Ridge(alpha, tol=1e-12).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8)
    assert ours.converged_ and ours.device_.startswith(where.split(":")[0])


def test_several_targets_sparse():
    rng = np.random.default_rng(2)
    X = scipy.sparse.random(300, 40, 0.2, format="csc", random_state=rng)
    Y = rng.normal(size=(300, 3))
    ours, theirs = kiln.LinearRegression(device="cpu").fit(X, Y), peer.LinearRegression().fit(X.toarray(), Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    assert ours.coef_.shape == (3, 40) and ours.intercept_.shape == (3,)


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("alpha", [0.1, 1.0, 1000.0])
def test_lasso_and_elastic_net(where, alpha):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(7).uniform(0, 2, len(y))
    for ours, theirs in ((kiln.Lasso(alpha), peer.Lasso(alpha)),
                         (kiln.ElasticNet(alpha, l1_ratio=0.3), peer.ElasticNet(alpha, l1_ratio=0.3))):
        ours.set_params(device=where).fit(scipy.sparse.csr_matrix(X), y, weights)
        theirs.set_params(tol=1e-12, max_iter=100000).fit(X, y, weights)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        assert (((ours.coef_ == 0) == (theirs.coef_ == 0)).all() and ours.score(X, y)
                == pytest.approx(theirs.score(X, y), abs=1e-7))


def test_a_warm_start_from_where_nothing_is_0():
    X, y = load_diabetes(return_X_y=True)
    model = kiln.Lasso(0.01, warm_start=True, device="cpu").fit(X, y)
    assert (model.coef_ != 0).all()
    assert (model.set_params(alpha=1000.0).fit(X, y).coef_ == 0).all() and model.converged_


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_logistic(load):
    X, y = standardized(load)
    ours = kiln.LogisticRegression(C=0.5, device="cpu").fit(X, y)
    theirs = peer.LogisticRegression(C=0.5, tol=1e-10, max_iter=10000).fit(X, y)
    if len(ours.classes_) > 2:  # softmax is free up to a shift of all classes, but penalised
        np.testing.assert_allclose(ours.intercept_ - ours.intercept_.mean(),
                                   theirs.intercept_ - theirs.intercept_.mean(), atol=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_balanced_classes_with_weights(load):
    """A class's weight is what its samples weigh, not how many they are."""
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    weights = np.random.default_rng(5).uniform(0.1, 1, len(y)) * (1 + 4 * (y == 1))
    for ours, theirs in ((kiln.LogisticRegression, peer.LogisticRegression(tol=1e-10, max_iter=10000)),
                         (kiln.LinearSVC, None),
                         (functools.partial(kiln.LogisticRegressionCV, Cs=[1.0], cv=3),
                          peer.LogisticRegression(tol=1e-10, max_iter=10000))):
        found = ours(class_weight="balanced", device="cpu").fit(X, y, weights)
        if theirs is None:  # scikit-learn's penalises the intercept: its factors of the classes, as weights
            factors = compute_class_weight("balanced", classes=np.unique(y), y=y, sample_weight=weights)
            expected = ours(device="cpu").fit(X, y, weights * factors[y])
        else:
            expected = theirs.set_params(class_weight="balanced").fit(X, y, weights)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())
        np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-4)


def test_lasso_logistic():
    X, y = standardized(load_breast_cancer)
    ours = kiln.LogisticRegression(C=0.1, l1_ratio=1.0, device="cpu").fit(X, y)
    theirs = peer.LogisticRegression(C=0.1, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ((ours.coef_ == 0) == (theirs.coef_ == 0)).all()


@pytest.mark.parametrize("pair", [("PoissonRegressor", {}), ("GammaRegressor", {}),
                                  ("TweedieRegressor", {"power": 1.5}), ("TweedieRegressor", {"power": 0}),
                                  ("TweedieRegressor", {"power": 3, "link": "log"})])
def test_glm(pair):
    name, options = pair
    X, y = standardized(load_diabetes)
    weights = np.random.default_rng(3).uniform(0.5, 2, len(y))
    ours = getattr(kiln, name)(alpha=0.3, device="cpu", **options).fit(X, y, weights)
    theirs = getattr(peer, name)(alpha=0.3, tol=1e-12, max_iter=10000, solver="newton-cholesky",
                                 **options).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)


def test_glm_standard_errors_and_offset():
    """A Poisson model without a penalty has errors by the inverse of the Fisher information; an exposure is
    an offset."""
    rng = np.random.default_rng(5)
    X, exposure = rng.normal(size=(400, 3)), rng.uniform(0.5, 2, 400)
    y = rng.poisson(exposure * np.exp(X @ [0.3, -0.2, 0.1] + 0.4))
    model = kiln.GeneralizedLinearRegressor("poisson", standard_errors=True,
                                            device="cpu").fit(X, y, offset=np.log(exposure))
    rates = peer.PoissonRegressor(alpha=0, tol=1e-12, solver="newton-cholesky").fit(X, y / exposure, exposure)
    np.testing.assert_allclose(model.coef_, rates.coef_, rtol=1e-6)
    D = np.hstack([X, np.ones((400, 1))])
    mean = model.predict(X, offset=np.log(exposure))
    errors = np.sqrt(np.diag(np.linalg.inv(D.T @ (mean[:, None] * D))))
    np.testing.assert_allclose([*model.standard_errors_, model.intercept_error_], errors, rtol=1e-6)


@pytest.mark.parametrize("make", [lambda: kiln.LogisticRegression(warm_start=True, device="cpu"),
                                  lambda: kiln.PoissonRegressor(warm_start=True, device="cpu")])
def test_warm_start(make):
    X, y = standardized(load_breast_cancer)
    model = make().fit(X, y)
    cold, coef = model.n_iter_, model.coef_
    assert model.fit(X, y).n_iter_ < cold
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-9)
    assert model.fit(X[:, :5], y).coef_.size == 5


def test_svm_objective():
    """scikit-learn penalises the intercept, so both are judged by Kiln's objective."""
    from sklearn.svm import LinearSVC

    X, y = standardized(load_breast_cancer)
    ours, theirs = (kiln.LinearSVC(C=0.1, device="cpu").fit(X, y),
                    LinearSVC(C=0.1, tol=1e-8, max_iter=100000).fit(X, y))

    def objective(model):
        margin = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X))
        return 0.5 * (model.coef_**2).sum() + 0.1 * (margin**2).sum()

    assert objective(ours) <= objective(theirs) * (1 + 1e-9)
    assert ours.objective_ == pytest.approx(objective(ours) / (2 * 0.1), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kmeans_from_the_same_start(dtype):
    X = load_digits().data.astype(dtype)
    start = X[:10].copy()
    ours = kiln.KMeans(10, init=start, tol=1e-9, device="cpu").fit(X)
    theirs = sklearn.cluster.KMeans(10, init=start, n_init=1, tol=1e-9).fit(X)
    assert (ours.labels_ == theirs.labels_).mean() > 0.999
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-5)
    assert (ours.predict(X) == ours.labels_).all()
    np.testing.assert_allclose(ours.transform(X).min(axis=1) ** 2, theirs.transform(X).min(axis=1) ** 2,
                               rtol=1e-3)
    assert ours.score(X) == pytest.approx(-ours.inertia_, rel=1e-6)


def test_kmeans_with_bounds_has_the_labels_of_lloyd():
    X = load_digits().data
    by_all, by_bounds = (kiln.KMeans(10, init=X[:10].copy(), tol=1e-9, algorithm=algorithm,
                                     device="cpu").fit(X)
                         for algorithm in ("lloyd", "bounds"))
    np.testing.assert_array_equal(by_bounds.labels_, by_all.labels_)
    np.testing.assert_allclose(by_bounds.inertia_, by_all.inertia_, rtol=1e-12)
    with pytest.raises(ValueError, match="algorithm.*'yinyang'"):
        kiln.KMeans(2, algorithm="yinyang").fit(X)


def test_spherical_kmeans_clusters_directions(tmp_path):
    X = load_digits().data
    ours = kiln.KMeans(10, init=X[:10].copy(), spherical=True, tol=1e-9, device="cpu").fit(X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    nearest = (unit @ ours.cluster_centers_.T).argmax(axis=1)
    assert (nearest == ours.labels_).all()
    assert ours.inertia_ == pytest.approx((2 - 2 * (unit @ ours.cluster_centers_.T).max(axis=1)).sum(),
                                          rel=1e-9)
    assert ours.score(7 * X) == pytest.approx(-ours.inertia_, rel=1e-9)
    ours.save(tmp_path / "model.kiln")
    assert (kiln.load(tmp_path / "model.kiln").predict(7 * X) == ours.labels_).all()


def test_mds_stress():
    X = load_iris().data[::3]
    ours = kiln.MDS(device="cpu", eps=1e-10, max_iter=5000).fit(X)
    theirs = sklearn.manifold.MDS(n_init=4, max_iter=3000, eps=1e-10, random_state=0,
                                  normalized_stress=False).fit(X)
    assert ours.stress_ <= theirs.stress_ * 1.001
    assert ours.embedding_.shape == (50, 2)


def test_als_lowers_the_error():
    rng = np.random.default_rng(4)
    A, B = rng.normal(size=(60, 3)), rng.normal(size=(40, 3))
    mask = scipy.sparse.random(60, 40, 0.4, format="csr", random_state=rng)
    mask.data[:] = (A @ B.T)[mask.nonzero()]
    ours = kiln.ALS(3, l2=1e-6, tol=1e-10, max_iter=500, random_state=0, device="cpu").fit(mask)
    fitted = ours.predict(*mask.nonzero())
    assert np.abs(fitted - mask.data).max() < 0.05 * np.abs(mask.data).max()
    columns, scores = ours.recommend(ours.row_factors_[:2], mask[:2], N=5)
    assert not set(columns[0]) & set(mask[0].indices)
    assert (np.diff(scores[0]) <= 0).all()


@pytest.mark.parametrize("make",
                         [lambda: kiln.ALS(3, warm_start=True, biases=True, random_state=0, device="cpu"),
                          lambda: kiln.SFA(3, warm_start=True, random_state=0, device="cpu")])
def test_factors_go_on_and_grow(make):
    ratings = scipy.sparse.random(60, 40, 0.4, format="csr", random_state=0)
    ratings.data[:] += 3
    model = make().fit(ratings[:50, :30])
    first = model.n_iter_
    assert model.fit(ratings[:50, :30]).n_iter_ <= max(2, first // 2)
    model.fit(ratings)  # ten rows and ten columns have come since
    fresh = make().fit(ratings)
    assert model.row_factors_.shape[0] == 60 and model.column_factors_.shape[0] == 40
    assert model.objective_ == pytest.approx(fresh.objective_, rel=0.1)


def test_columns_that_are_alike():
    ratings = scipy.sparse.random(60, 40, 0.4, format="csr", random_state=0)
    model = kiln.ALS(3, random_state=0, device="cpu").fit(ratings)
    columns, cosines = model.similar_items(7, N=5)
    B = model.column_factors_ / np.linalg.norm(model.column_factors_, axis=1, keepdims=True)
    wanted = B @ B[7]
    assert list(columns) == list(np.argsort(-wanted)[:5])
    np.testing.assert_allclose(cosines, np.sort(wanted)[::-1][:5], rtol=1e-12)


def test_new_points_in_a_layout():
    X = load_iris().data[:, [0, 2]]
    model = kiln.MDS(device="cpu", eps=1e-12).fit(X[::2])
    together = np.vstack([model.embedding_, model.place(X[1::2])])
    apart = np.linalg.norm(together[:, None] - together[None], axis=2)
    wanted = np.vstack([X[::2], X[1::2]])
    np.testing.assert_allclose(apart, np.linalg.norm(wanted[:, None] - wanted[None], axis=2), atol=1e-3)
    primary, secondary = (kiln.MDS(metric="ordinal", ties=ties, device="cpu").fit(np.round(X)).stress_1_
                          for ties in ("primary", "secondary"))
    assert primary < secondary


def counts():
    rng = np.random.default_rng(6)
    return scipy.sparse.csr_matrix(rng.poisson(rng.gamma(0.3, 1, (80, 4))
                                               @ rng.gamma(0.3, 2, (4, 60))).astype(float))


def test_nmf_divergence():
    from sklearn.decomposition import NMF

    X = counts()
    ours = kiln.NMF(4, tol=1e-9, max_iter=3000, random_state=0, device="cpu")
    W = ours.fit_transform(X)
    peer_model = NMF(4, beta_loss="kullback-leibler", solver="mu", init="random", tol=1e-9, max_iter=3000,
                     random_state=0).fit(X)

    def divergence(product):
        dense = X.toarray()
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(dense > 0, dense * np.log(dense / product), 0).sum() - dense.sum() + product.sum()

    assert divergence(W @ ours.components_) < 1.02 * peer_model.reconstruction_err_**2 / 2
    assert ours.objective_ == pytest.approx(divergence(W @ ours.components_), rel=1e-8)
    assert ours.transform(X).shape == W.shape


@pytest.mark.parametrize("init", ["nndsvd", "nndsvda"])
def test_nmf_from_singular_vectors(init):
    X = counts()
    first, again = (kiln.NMF(4, init=init, max_iter=300, random_state=seed, device="cpu").fit(X)
                    for seed in (0, 1))
    # the same start but for rounding
    np.testing.assert_allclose(first.components_, again.components_, atol=1e-3)
    assert first.objective_ < kiln.NMF(1, device="cpu").fit(X).objective_
    with pytest.raises(ValueError, match="init"):
        kiln.NMF(4, init="svd", device="cpu").fit(X)


@pytest.mark.parametrize("method", ["batch", "online"])
def test_lda(method):
    X = counts()
    model = kiln.LatentDirichletAllocation(4, learning_method=method, batch_size=20, random_state=0,
                                           device="cpu").fit(X)
    mixtures = model.transform(X)
    np.testing.assert_allclose(mixtures.sum(axis=1), 1, rtol=1e-9)
    assert model.components_.shape == (4, 60) and (model.components_ > 0).all()
    assert (model.perplexity(X) < kiln.LatentDirichletAllocation(1, random_state=0,
                                                                 device="cpu").fit(X).perplexity(X))


def test_sfa():
    rng = np.random.default_rng(4)
    mask = scipy.sparse.random(60, 40, 0.4, format="csr", random_state=rng)
    mask.data[:] = 3 + (rng.normal(size=(60, 2)) @ rng.normal(size=(40, 2)).T)[mask.nonzero()]
    model = kiln.SFA(4, l2=0.01, max_iter=2000, tol=1e-9, random_state=0, device="cpu").fit(mask)
    assert model.recommend(model.transform(mask)[:3], mask[:3], N=2)[0].shape == (3, 2)
    assert model.report_.history["objective"][-1] <= model.report_.history["objective"][0] / 5


def test_pipeline_and_grid_search():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), kiln.LogisticRegression(device="cpu"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.93
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1, 100]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.93
