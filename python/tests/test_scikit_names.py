"""Scripts change their import and nothing else: what scikit-learn's classes have by name, and
docs/migration.md lists what is missing."""
import inspect
import warnings

import kiln
import numpy as np
import pytest
import sklearn
from scikit_gaps import CURRENT, defaults, fitted, gaps, listed, pairs, parameters
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted()


def test_what_is_missing_is_listed_with_its_reason(models):
    """The other way round where it is scikit-learn's of the page's version: what is listed is missing."""
    known = {(kind, name)
             for kinds, names, *_ in listed("scikit-learn's features that Kiln lacks")
             for kind in kinds.split(", ") for name in names.split(", ")}
    found = {(kind, name) for kind, _, name in gaps(models)}
    if CURRENT:
        assert found == known


def test_defaults_that_differ_are_listed_with_their_reason():
    known = {(kind, name) for kinds, name, *_ in listed("Defaults that differ from scikit-learn's")
             for kind in kinds.split(", ")}
    if CURRENT:
        assert {(kind, name) for kind, name, *_ in defaults()} == known


@pytest.mark.parametrize("name,theirs,ours", list(pairs()), ids=lambda value: value if isinstance(value, str)
                         else "")
def test_positions_of_parameters(name, theirs, ours):
    """The parameters that can be given without a name are scikit-learn's, in its order."""
    def placed(kind):
        return [one for one, it in parameters(kind).items()
                if it.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

    assert placed(theirs) == placed(ours)


DIABETES, PROGRESS = load_diabetes(return_X_y=True)
HIGH, COUNTS = PROGRESS > 100, np.abs(DIABETES * 100).round()
REFUSED = [(kiln.LinearSVC, {"loss": "log"}), (kiln.LinearSVC, {"penalty": "l3"}),
           (kiln.LinearSVC, {"multi_class": "crammer_singer"}),
           (kiln.LinearSVR, {"loss": "huber"}), (kiln.NMF, {"beta_loss": "frobenius"}),
           (kiln.NMF, {"solver": "cd"}), (kiln.NMF, {"alpha_W": 0.1}), (kiln.NMF, {"alpha_H": 0.1}),
           (kiln.LogisticRegressionCV, {"use_legacy_attributes": True}),
           (kiln.LogisticRegression, {"penalty": "l3"}), (kiln.LogisticRegression, {"solver": "simplex"}),
           (kiln.PoissonRegressor, {"solver": "sag"}), (kiln.LinearRegression, {"n_jobs": 0})]


@pytest.mark.parametrize("kind,wrong", REFUSED, ids=lambda value: getattr(value, "__name__", None)
                         or ",".join(map(str, value.items())))
def test_what_would_be_another_problem_is_refused(kind, wrong):
    (name, value), = wrong.items()
    y = HIGH if issubclass(kind, (kiln.LogisticRegression, kiln.LogisticRegressionCV,
                                  kiln.LinearSVC)) else PROGRESS
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        kind(device="cpu", **wrong).fit(COUNTS if kind is kiln.NMF else DIABETES, y)


def test_penalties_by_name():
    def coef(**how):
        return kiln.LogisticRegression(C=0.5, device="cpu", tol=1e-11, **how).fit(DIABETES, HIGH).coef_

    for name, ratio in (("l2", 0.0), ("l1", 1.0)):
        np.testing.assert_array_equal(coef(penalty=name, l1_ratio=0.5), coef(l1_ratio=ratio))
    np.testing.assert_array_equal(coef(penalty="elasticnet", l1_ratio=0.5), coef(l1_ratio=0.5))
    free = kiln.LogisticRegression(penalty=None, C=0.5, device="cpu").fit(DIABETES, HIGH)
    np.testing.assert_array_equal(free.coef_,
                                  kiln.LogisticRegression(C=np.inf, device="cpu").fit(DIABETES, HIGH).coef_)


def test_n_jobs_are_threads(monkeypatch):
    """The threads are the CPU's, as joblib counts them; a kiln.Device says its own number."""
    from kiln._arrays import with_threads

    monkeypatch.setattr("os.cpu_count", lambda: 8)
    host = kiln.device("cpu")
    assert [with_threads(host, jobs).threads for jobs in (1, 3, -1, -2, -20)] == [1, 3, 8, 7, 1]
    assert with_threads(host, None) is host and with_threads(host, host.threads) is host
    one, all_of_them = (kiln.LinearRegression(n_jobs=jobs).fit(DIABETES, PROGRESS).coef_
                        for jobs in (1, None))
    np.testing.assert_allclose(one, all_of_them, rtol=1e-9)
    mine = kiln.Device("cpu", threads=2)
    assert kiln.LinearRegression(n_jobs=1, device=mine)._place(DIABETES) is mine


LINEAR = [kiln.LinearRegression(), kiln.Ridge([1.0, 2.0]), kiln.Lasso(0.1), kiln.PoissonRegressor(),
          kiln.LinearSVR(), kiln.LogisticRegression(), kiln.LinearSVC()]


@pytest.mark.parametrize("model", LINEAR, ids=lambda model: type(model).__name__)
def test_predictions_follow_the_coefficients(model, tmp_path):
    """As they are now, also in a file; sparse ones, too."""
    targets = {kiln.Ridge: np.column_stack([PROGRESS, DIABETES[:, 0]]), kiln.LogisticRegression: PROGRESS
               // 120, kiln.LinearSVC: HIGH}
    model = sklearn.base.clone(model).set_params(device="cpu").fit(DIABETES,
                                                                   targets.get(type(model), PROGRESS))
    model.coef_ = np.round(model.coef_, 1)
    model.intercept_ = model.intercept_ + 2
    eta = DIABETES @ np.atleast_2d(model.coef_).T + model.intercept_
    wanted = np.exp(eta) if isinstance(model, kiln.PoissonRegressor) else eta
    model.save(tmp_path / "m.kiln")
    for each in (model, kiln.load(tmp_path / "m.kiln")):
        found = each.decision_function(DIABETES) if hasattr(each,
                                                            "decision_function") else each.predict(DIABETES)
        np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, rtol=1e-12, atol=1e-12)
    if hasattr(model, "sparsify"):
        dense = model.decision_function(DIABETES)
        for made in (model.sparsify(), model.densify()):  # whose sums have another order
            np.testing.assert_allclose(made.decision_function(DIABETES), dense, rtol=1e-12)


def test_a_penalty_for_each_target():
    Y = np.column_stack([PROGRESS, DIABETES[:, 0] * 100, DIABETES[:, 1]])
    weights = np.random.default_rng(0).uniform(1, 2, len(Y))
    ours, theirs = (kind([0.1, 1.0, 10.0]).fit(DIABETES, Y, weights)
                    for kind in (kiln.Ridge, sklearn.linear_model.Ridge))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict(DIABETES), theirs.predict(DIABETES), rtol=1e-9, atol=1e-12)
    parts = [kiln.Ridge(alpha).fit(DIABETES, y, weights) for alpha, y in zip([0.1, 1.0, 10.0], Y.T)]
    assert ours.objective_ == pytest.approx(sum(part.objective_ for part in parts)) and ours.converged_
    with pytest.raises(ValueError, match="3 targets"):
        kiln.Ridge([1.0, 2.0]).fit(DIABETES, Y)


def test_paths():
    y = PROGRESS - PROGRESS.mean()
    for ratio in (1.0, 0.4):
        alphas, coefs, gaps_, steps = kiln.enet_path(DIABETES, y, l1_ratio=ratio, alphas=12,
                                                     return_n_iter=True, device="cpu")
        theirs = sklearn.linear_model.enet_path(DIABETES, y, l1_ratio=ratio, alphas=12, tol=1e-12,
                                                max_iter=100000)
        np.testing.assert_allclose(alphas, theirs[0], rtol=1e-12)
        np.testing.assert_allclose(coefs, theirs[1], atol=1e-5 * np.abs(theirs[1]).max())
        assert len(steps) == 12 and (gaps_ >= 0).all() and coefs.shape == (10, 12)
    np.testing.assert_array_equal(kiln.Lasso.path(DIABETES, y, alphas=[0.5, 1.0])[0], [1.0, 0.5])
    model = kiln.Lasso(1.0, device="cpu").fit(DIABETES, PROGRESS)
    assert (
        model.sparse_coef_.shape == (1, 10)
        and model.sparse_coef_.nnz == np.count_nonzero(model.coef_)
        and 0 <= model.dual_gap_ < 1e-3
    )


def test_factors_as_scikit_learn_has_them():
    from sklearn.decomposition._nmf import _beta_divergence

    model = kiln.NMF(3, random_state=0, device="cpu")
    W = model.fit_transform(COUNTS)
    assert (model.reconstruction_err_ == pytest.approx(_beta_divergence(COUNTS, W, model.components_, 1,
                                                                        square_root=True), rel=1e-9))
    np.testing.assert_array_equal(model.inverse_transform(W), W @ model.components_)
    again = kiln.NMF(3, init="custom", device="cpu")
    again.fit_transform(COUNTS, W=W, H=model.components_)
    assert again.reconstruction_err_ <= model.reconstruction_err_
    with pytest.raises(ValueError, match="init='custom'"):
        kiln.NMF(3, init="custom", device="cpu").fit(COUNTS)
    assert kiln.NMF("auto", init=None, device="cpu").fit(COUNTS[:, :4]).n_components_ == 4


def test_topics_as_scikit_learn_has_them():
    """score() is the bound that scikit-learn finds at the same parameters; partial_fit ends near what fit
    finds."""
    theirs = sklearn.decomposition.LatentDirichletAllocation(3).fit(COUNTS)
    ours = kiln.LatentDirichletAllocation(3, random_state=0, device="cpu").fit(COUNTS)
    for name in ("components_", "exp_dirichlet_component_", "doc_topic_prior_", "topic_word_prior_"):
        setattr(theirs, name, getattr(ours, name))
    gamma = ours.transform(COUNTS, normalize=False)
    assert ours.score(COUNTS) == pytest.approx(theirs._approx_bound(COUNTS, gamma, False), rel=1e-9)
    np.testing.assert_allclose(gamma / gamma.sum(axis=1, keepdims=True), ours.transform(COUNTS), rtol=1e-9)
    online = kiln.LatentDirichletAllocation(3, random_state=0, total_samples=len(COUNTS), device="cpu")
    for _ in range(40):
        online.partial_fit(COUNTS)
    assert online.n_batch_iter_ == 161 and not hasattr(online, "report_")
    assert online.score(COUNTS) > ours.score(COUNTS) - 0.01 * abs(ours.score(COUNTS))


def test_batches_of_k_means(tmp_path):
    """The centres are means of all rows that came to them, with their weights."""
    random = np.random.default_rng(0)
    rows = np.vstack([random.normal(size=(200, 2)) + centre for centre in ([0, 0], [20, 0],
                                                                           [0, 20])])[random.permutation(600)]
    weights = random.uniform(1, 2, 600)
    model = kiln.MiniBatchKMeans(3, random_state=0, device="cpu")
    for begin in range(0, 600, 100):
        model.partial_fit(rows[begin:begin + 100], sample_weight=weights[begin:begin + 100])
    labels = model.predict(rows)
    wanted = [np.average(rows[labels == i], axis=0, weights=weights[labels == i]) for i in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, wanted, rtol=0, atol=1e-12)
    assert model.n_steps_ == 6 and not hasattr(model, "n_iter_")
    model.save(tmp_path / "m.kiln")
    np.testing.assert_array_equal(kiln.load(tmp_path / "m.kiln").predict(rows), labels)
    assert not hasattr(model, "report_")


@pytest.mark.parametrize("rows, batch, passes", [(600, 100, 1), (600, 250, 2), (50, 1024, 3)])
def test_batches_are_counted_in_passes(rows, batch, passes):
    """max_iter is that of scikit-learn: so many passes, of rows / batch steps each."""
    X = np.random.default_rng(0).random((rows, 3))
    with pytest.warns(ConvergenceWarning, match="max_iter ended it after [0-9]+ batches"):
        ours = kiln.MiniBatchKMeans(4, max_iter=passes, batch_size=batch, max_no_improvement=None,
                                    random_state=0, device="cpu").fit(X)
    theirs = sklearn.cluster.MiniBatchKMeans(4, max_iter=passes, batch_size=batch, tol=0, random_state=0,
                                             max_no_improvement=None).fit(X)
    assert ours.n_steps_ == ours.report_.n_iter == theirs.n_steps_ and ours.n_iter_ == theirs.n_iter_


def test_batches_end_by_scikit_learns_rule(recwarn):
    """Batches of more than half of the rows are not smoothed: the last one's inertia counts."""
    X = np.random.default_rng(0).random((600, 3))
    for patience in (1, 5):
        ours = kiln.MiniBatchKMeans(4, batch_size=301, max_no_improvement=patience, random_state=0,
                                    device="cpu").fit(X)
        inertia = ours.report_.history["objective"][1:]  # the first batch does not count
        assert len(inertia) - 1 - np.argmin(inertia) == patience
        assert ours.report_.stopped_by == "stalled" and "patience" in ours.report_.warnings
    endless = kiln.MiniBatchKMeans(4, batch_size=301, max_no_improvement=10**19, max_iter=1, random_state=0,
                                   device="cpu").fit(X)
    assert endless.report_.stopped_by == "max_iterations"
    assert "max_iter ended it" in str(recwarn.pop(ConvergenceWarning).message)
    for passes in (1, 5):
        given = {"batch_size": 301, "max_no_improvement": 0, "max_iter": passes, "random_state": 0}
        at_once, theirs = (package.MiniBatchKMeans(4, **given).fit(X) for package in (kiln, sklearn.cluster))
        assert at_once.n_steps_ == theirs.n_steps_ == min(passes, 2) and at_once.n_iter_ == theirs.n_iter_
    assert not recwarn.list
    for patience in (-1, 2.5, "ten"):
        with pytest.raises(ValueError, match="'max_no_improvement' parameter of .* must be an int from 0 on"):
            kiln.MiniBatchKMeans(4, max_no_improvement=patience, device="cpu").fit(X)


def test_scaling_in_scikit_learns_words():
    X = np.random.default_rng(0).random((15, 3))
    for how in ({"metric": "euclidean"}, {"metric": "manhattan"},
                {"metric": "minkowski", "metric_params": {"p": 3}}, {"metric_mds": False},
                {"metric_mds": False, "normalized_stress": False},
                {"metric": "cosine", "normalized_stress": True}):
        ours = kiln.MDS(init="classical_mds", eps=1e-10, max_iter=5000, device="cpu", **how).fit(X)
        theirs = sklearn.manifold.MDS(init="classical_mds", eps=1e-12, max_iter=5000, **how).fit(X)
        # scikit-learn scales the disparities of non-metric layouts another way
        if how.get("normalized_stress") is not False:
            assert ours.stress_ == pytest.approx(theirs.stress_, rel=1e-4), how
    assert (kiln.MDS(metric=False, device="cpu").fit(X).stress_ == kiln.MDS(metric="ordinal",
                                                                            device="cpu").fit(X).stress_1_)
    with pytest.raises(ValueError, match="interval"):
        kiln.MDS(metric="interval", metric_mds=False).fit(X)
    between = sklearn.metrics.pairwise_distances(X)
    ours, theirs = (kind(metric="precomputed", init="classical_mds", **more).fit(between)
                    for kind, more in ((kiln.MDS, {"eps": 1e-10, "max_iter": 5000, "device": "cpu"}),
                                       (sklearn.manifold.MDS, {"eps": 1e-12, "max_iter": 5000, "n_init": 1})))
    assert ours.stress_ == pytest.approx(theirs.stress_, rel=1e-4)


@pytest.mark.parametrize("kind", [kiln.NMF, kiln.LatentDirichletAllocation, kiln.ALS, kiln.SFA, kiln.KMeans,
                                  kiln.MiniBatchKMeans, kiln.PCA, kiln.IncrementalPCA, kiln.TruncatedSVD])
def test_names_of_what_comes_out(kind):
    import pandas as pd

    frame = pd.DataFrame(COUNTS).rename(columns=lambda place: f"c{place}")
    model = kind(3, device="cpu").set_output(transform="pandas")
    for made in (model.fit_transform(frame), model.transform(frame)):
        assert list(made.columns) == list(model.get_feature_names_out()) and len(made) == len(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(kind(3, device="cpu").fit(frame).transform(frame), pd.DataFrame)


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV"])
def test_a_target_of_one_column(name, tmp_path):
    """Ridge regressions have no axis of targets for it, least squares has one."""
    options = {"cv": 3} if name == "RidgeCV" else {}
    ours, theirs = (getattr(package, name)(**options, **more).fit(DIABETES, PROGRESS.reshape(-1, 1))
                    for package, more in ((kiln, {"device": "cpu"}), (sklearn.linear_model, {})))
    assert ours.coef_.shape == theirs.coef_.shape and np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    assert ours.predict(DIABETES).shape == theirs.predict(DIABETES).shape
    np.testing.assert_allclose(ours.predict(DIABETES), theirs.predict(DIABETES), rtol=1e-6)
    ours.save(tmp_path / "m.kiln")
    np.testing.assert_array_equal(kiln.load(tmp_path / "m.kiln").predict(DIABETES), ours.predict(DIABETES))


@pytest.mark.parametrize("model, later", [(kiln.TweedieRegressor(power=1.5, device="cpu"), {"power": 0}),
                                          (kiln.GeneralizedLinearRegressor("poisson", device="cpu"),
                                           {"family": "gaussian"})],
                         ids=["TweedieRegressor", "GeneralizedLinearRegressor"])
def test_parameters_after_a_fit_wait_for_the_next(model, later, tmp_path):
    model.fit(DIABETES, PROGRESS).save(tmp_path / "m.kiln")
    for each in (model, kiln.load(tmp_path / "m.kiln")):
        wanted, scored = each.predict(DIABETES), each.score(DIABETES, PROGRESS)
        each.set_params(**later if isinstance(each, type(model)) else {"family": "gaussian"})
        np.testing.assert_array_equal(each.predict(DIABETES), wanted)
        assert each.score(DIABETES, PROGRESS) == scored
        each.save(tmp_path / "again.kiln")
        np.testing.assert_array_equal(kiln.load(tmp_path / "again.kiln").predict(DIABETES), wanted)
    assert abs(model.fit(DIABETES, PROGRESS).predict(DIABETES) - wanted).max() > 0.1


def test_a_saved_margin_is_the_fitted_one(tmp_path):
    model = kiln.LinearSVR(epsilon=5, device="cpu").fit(DIABETES, PROGRESS).set_params(epsilon=0.0)
    for _ in range(2):
        model.save(tmp_path / "m.kiln")
        model = kiln.load(tmp_path / "m.kiln")
        assert model._fitted == 5
        model.set_params(epsilon=1.0)


def test_an_intercept_of_none():
    model = kiln.Ridge(device="cpu").fit(DIABETES, PROGRESS)
    model.intercept_ = None
    with pytest.raises(kiln.ArgumentError, match="intercept_ .* is None"):
        model.predict(DIABETES)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("count", [1, 3])
def test_lassos_of_several_targets(count):
    """Each by itself, shapes as scikit-learn's, also where y has one column."""
    Y = np.column_stack([PROGRESS, DIABETES[:, 0] * 100, DIABETES[:, 1] * 50])[:, :count]
    weights = np.random.default_rng(0).uniform(1, 2, len(Y))
    for intercept in (True, False):
        options = {"alpha": 0.1, "l1_ratio": 0.7, "fit_intercept": intercept}
        ours = kiln.ElasticNet(**options, device="cpu").fit(DIABETES, Y, weights, check_input=False)
        theirs = sklearn.linear_model.ElasticNet(**options, tol=1e-12, max_iter=100000).fit(DIABETES, Y,
                                                                                            weights)
        for name in ("coef_", "intercept_", "n_iter_", "dual_gap_"):
            assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name)), name
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6 * np.abs(theirs.coef_).max())
        assert ours.predict(DIABETES).shape == theirs.predict(DIABETES).shape
        assert ours.score(DIABETES, Y, weights) == pytest.approx(theirs.score(DIABETES, Y, weights))
        assert ours.sparse_coef_.shape == theirs.sparse_coef_.shape and ours.converged_
    again = ours.set_params(warm_start=True, alpha=0.2).fit(DIABETES, Y)
    np.testing.assert_allclose(again.coef_, kiln.ElasticNet(0.2, l1_ratio=0.7, fit_intercept=False,
                                                            device="cpu").fit(DIABETES, Y).coef_, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_singular_values(intercept, weighted):
    weights = np.random.default_rng(0).uniform(1, 2, len(DIABETES)) if weighted else None
    ours, theirs = (kind(fit_intercept=intercept).fit(DIABETES, PROGRESS, weights)
                    for kind in (kiln.LinearRegression, sklearn.linear_model.LinearRegression))
    np.testing.assert_allclose(ours.singular_, theirs.singular_, rtol=1e-10)
    assert ours.rank_ == theirs.rank_ and not hasattr(kiln.Ridge().fit(DIABETES, PROGRESS), "singular_")


def test_what_is_the_one_or_the_other_already():
    import sklearn.linear_model as theirs

    for call, said in ((lambda: kiln.from_sklearn(kiln.Ridge()), "this Ridge is Kiln's already"),
                       (lambda: kiln.from_sklearn(theirs.Ridge), "Ridge is a class: .* an estimator"),
                       (lambda: kiln.to_sklearn(theirs.Ridge()), "this Ridge is scikit-learn's already"),
                       (lambda: kiln.to_sklearn(kiln.Ridge), "Ridge is a class: .* an estimator")):
        with pytest.raises(kiln.ArgumentError, match=said):
            call()
