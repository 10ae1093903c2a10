"""Penalties chosen by cross-validation: the same as scikit-learn's classes of these names choose, and what a
search over trainings finds."""
import kiln
import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model as peer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import get_scorer, log_loss, mean_poisson_deviance
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.preprocessing import StandardScaler

from kiln._cv_judged import Predictors, negative_log_loss as formula
from kiln._cv_search import Search

DEVICES = [row["name"] for row in kiln.devices() if row["usable"]][-2:]
ALPHAS = np.logspace(-4, 2, 12)


def standardized(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("cv", [5, KFold(3, shuffle=True, random_state=1), ShuffleSplit(3, random_state=2),
                                KFold(60), PredefinedSplit(np.arange(442) % 4 - 1),
                                list(KFold(4).split(np.zeros(442)))],
                         ids=["5", "shuffled", "not folds", "many", "never out", "pairs"])
def test_ridge(cv):
    X, y = load_diabetes(return_X_y=True)
    scoring = "neg_mean_squared_error"
    ours = kiln.RidgeCV(ALPHAS, cv=cv, scoring=scoring, device="cpu").fit(X, y)
    theirs = peer.RidgeCV(ALPHAS, cv=cv, scoring=scoring).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    assert ours.scores_.shape[1] == len(ALPHAS) and ours.converged_


def test_ridge_of_several_targets_and_weights():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 8))
    Y = X @ rng.normal(size=(8, 3)) + 3 * rng.normal(size=(200, 3))
    weights = rng.uniform(0.5, 2, 200)
    ours = kiln.RidgeCV(ALPHAS * 100, cv=5, device="cpu").fit(X, Y, weights)
    found = []
    for train, test in KFold(5).split(X):
        model = peer.Ridge(alpha=ours.alpha_).fit(X[train], Y[train], weights[train])
        found.append(model.score(X[test], Y[test], weights[test]))
    np.testing.assert_allclose(ours.scores_[:, np.flatnonzero(ours.alpha_ == ALPHAS * 100)[0]], found,
                               rtol=1e-9)
    assert ours.coef_.shape == (3, 8) and ours.best_score_ == ours.scores_.mean(axis=0).max()


@pytest.mark.parametrize("where", DEVICES)
def test_devices(where):
    X, y = load_diabetes(return_X_y=True)
    ours = kiln.RidgeCV(ALPHAS[::4], cv=3, device=where).fit(X, y)
    theirs = peer.RidgeCV(ALPHAS[::4], cv=3).fit(X, y)
    assert ours.alpha_ == theirs.alpha_ and ours.device_.startswith(where.split(":")[0])
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-9)
    X, y = standardized(load_iris)
    model = kiln.LogisticRegressionCV(Cs=[0.1, 10.0], cv=3, device=where).fit(scipy.sparse.csr_matrix(X), y)
    assert model.C_ == 10 and model.score(X, y) > 0.96


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
@pytest.mark.parametrize("refit", [True, False])
def test_logistic(load, scoring, refit):
    X, y = standardized(load)
    options = {"Cs": [0.01, 0.1, 1.0, 10.0], "cv": 4, "scoring": scoring, "refit": refit}
    ours = kiln.LogisticRegressionCV(**options, device="cpu").fit(X, y)
    theirs = peer.LogisticRegressionCV(**options, use_legacy_attributes=False, l1_ratios=(0.0,), tol=1e-10,
                                       max_iter=10000).fit(X, y)
    assert ours.C_ == theirs.C_ and ours.l1_ratio_ == theirs.l1_ratio_ == 0
    np.testing.assert_allclose(ours.scores_, theirs.scores_, rtol=1e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.score(X, y), theirs.score(X, y), rtol=1e-6)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_the_first_of_equal_scores_as_the_caller_has_them(load):
    """Accuracies of several Cs are equal, and the library goes from the strongest penalty to the weakest."""
    X, y = standardized(load)
    for Cs in ([100.0, 10.0, 1.0, 0.1], [1.0, 100.0, 0.1, 10.0]):
        options = {"Cs": Cs, "cv": 4, "refit": False, "scoring": None}
        ours = kiln.LogisticRegressionCV(**options, device="cpu").fit(X, y)
        theirs = peer.LogisticRegressionCV(**options, use_legacy_attributes=False, l1_ratios=(0.0,),
                                           tol=1e-10, max_iter=10000).fit(X, y)
        np.testing.assert_array_equal(ours.scores_, theirs.scores_)
        assert any((row == row.max()).sum() > 1 for row in ours.scores_) and ours.C_ == theirs.C_
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4 * np.abs(theirs.coef_).max())
    # C first, then l1_ratio, as scikit-learn's
    both = kiln.LogisticRegressionCV(**options, l1_ratios=[0.5, 0.0], device="cpu").fit(X, y)
    first = [np.argmax(row.T) for row in both.scores_]
    assert (both.C_, both.l1_ratio_) == (np.mean([Cs[place // 2] for place in first]),
                                         np.mean([[0.5, 0.0][place % 2] for place in first]))


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_scores_that_are_no_numbers(bad):
    """They are worse than all others, and a fold that has no other is an error."""
    X, y = standardized(load_breast_cancer)
    splits = list(KFold(2).split(X))  # of 285 and 284 rows

    def scorer(model, X, y):
        return (bad if lost and len(y) == 285 or abs(model.decision_function(None)).max() > 10
                else model.score(None, y))

    def trained(C, fold):
        return kiln.LogisticRegression(C=C, device="cpu").fit(X[splits[fold][0]], y[splits[fold][0]]).coef_

    for lost in (True, False):
        model = kiln.LogisticRegressionCV(Cs=[100.0, 0.001, 0.0001], cv=splits, scoring=scorer, refit=False,
                                          device="cpu")
        if lost:
            with pytest.raises(ValueError, match=r"folds \[0\]"):
                model.fit(X, y)
    model.fit(X, y)
    np.testing.assert_array_equal(np.isfinite(model.scores_[:, 0]), [[False, True, True]] * 2)
    best = [[100.0, 0.001, 0.0001][place] for place in np.nanargmax(np.where(np.isfinite(model.scores_[:, 0]),
                                                                             model.scores_[:, 0], np.nan),
                                                                    axis=1)]
    assert model.C_ == np.mean(best)
    np.testing.assert_allclose(model.coef_, (trained(best[0], 0) + trained(best[1], 1)) / 2, rtol=1e-4,
                               atol=1e-6)


def test_without_a_training_on_all_rows_nothing_says_how_it_went():
    X, y = standardized(load_iris)
    model = kiln.LogisticRegressionCV(Cs=2, device="cpu").fit(X, y)
    assert model.converged_ and model.report_.converged
    model.set_params(refit=False).fit(X, y)
    assert not {"report_", "converged_", "objective_", "n_iter_"} & set(vars(model))


def test_logistic_with_l1_and_sparse():
    X, y = standardized(load_breast_cancer)
    X = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    names = np.array(["malignant", "benign"])[y]
    folds = StratifiedKFold(3, shuffle=True, random_state=4)
    ours = kiln.LogisticRegressionCV(Cs=[10.0, 0.1, 1.0], l1_ratios=[0.0, 0.5, 1.0], cv=folds,
                                     scoring="neg_log_loss", class_weight="balanced",
                                     device="cpu").fit(X, names)
    weights = len(y) / (2 * np.bincount(y))[y]  # of all rows, as ours and scikit-learn's are
    for r, ratio in enumerate(ours.l1_ratios_):
        for c, C in enumerate(ours.Cs_):
            for f, (train, test) in enumerate(folds.split(X, y)):
                model = kiln.LogisticRegression(C=C, l1_ratio=ratio,
                                                device="cpu").fit(X[train], names[train], weights[train])
                found = np.log(model.predict_proba(X[test])[np.arange(len(test)),
                                                            np.searchsorted(model.classes_,
                                                                            names[test])]).mean()
                np.testing.assert_allclose(ours.scores_[f, r, c], found, rtol=1e-5)
    assert ours.best_score_ == ours.scores_.mean(axis=0).max() and set(ours.predict(X)) == set(names)


@pytest.mark.parametrize("ratio", [1.0, 0.5, [0.1, 0.9]], ids=["lasso", "one", "two"])
@pytest.mark.parametrize("alphas", [12, [0.01, 0.1, 1.0]], ids=["found", "given"])
def test_elastic_net(ratio, alphas):
    # so that the folds are of the same size
    X, y = (values[:440] for values in load_diabetes(return_X_y=True))
    X = scipy.sparse.csr_matrix(X) if alphas == 12 else X
    own = {} if ratio == 1.0 else {"l1_ratio": ratio}
    name = "LassoCV" if ratio == 1.0 else "ElasticNetCV"
    ours = getattr(kiln, name)(alphas=alphas, cv=5, device="cpu", **own).fit(X, y)
    theirs = getattr(peer, name)(alphas=alphas, cv=5, tol=1e-12, max_iter=100000, **own).fit(X, y)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-9)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-9)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert (ours.best_score_ == -ours.mse_path_.mean(axis=-1).min() and ours.l1_ratio_
            == getattr(theirs, "l1_ratio_", 1.0))


@pytest.mark.parametrize(("scale", "dtype"), [(1e-7, np.float32), (1e-7, np.float64), (0.0, np.float64)])
def test_elastic_net_of_small_and_constant_responses(scale, dtype):
    X, y = (values[:440].astype(dtype) for values in load_diabetes(return_X_y=True))
    y = y * dtype(scale)
    theirs = peer.LassoCV(alphas=7, cv=5).fit(X.astype(np.float64), y.astype(np.float64))
    ours = kiln.LassoCV(alphas=7, device="cpu").fit(X, y)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-9 if dtype == np.float64 else 1e-4)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-4)
    assert scale or set(ours.alphas_) == {1e-15}


def test_elastic_net_of_a_kept_matrix_and_a_column():
    X, y = load_diabetes(return_X_y=True)
    expected = kiln.ElasticNetCV(alphas=5, cv=3, device="cpu").fit(X, y)
    found = kiln.ElasticNetCV(alphas=5, cv=3).fit(kiln.matrix(X, "cpu"), y.reshape(-1, 1))
    np.testing.assert_array_equal(found.alphas_, expected.alphas_)
    np.testing.assert_allclose(found.mse_path_, expected.mse_path_, rtol=1e-12)
    np.testing.assert_allclose(found.coef_.ravel(), expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("family", ["poisson", "gamma", "binomial", "gaussian"])
def test_generalized(family):
    X, y = standardized(load_diabetes)
    y = {"poisson": np.round(y / 20), "gamma": y, "binomial": (y > 140) * 1.0, "gaussian": y}[family]
    alphas = np.array([0.01, 0.1, 1.0])
    ours = kiln.GeneralizedLinearRegressorCV(family, alphas=alphas, l1_ratio=[0.0, 0.5], cv=KFold(4),
                                             device="cpu").fit(X[:440], y[:440])
    for r, ratio in enumerate([0.0, 0.5]):
        model = kiln.GeneralizedLinearRegressor(family, l1_ratio=ratio, device="cpu")
        search = GridSearchCV(model, {"alpha": alphas[::-1]}, cv=KFold(4)).fit(X[:440], y[:440])
        found = np.array([search.cv_results_[f"split{f}_test_score"] for f in range(4)])
        np.testing.assert_allclose(ours.scores_[:, r], found, rtol=1e-6)
    assert ours.best_score_ == ours.scores_.mean(axis=0).max() and ours.alpha_ in alphas


def test_generalized_with_offset_and_weights():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 4))
    offset, weights = rng.uniform(0, 1, 400), rng.uniform(0.5, 1.5, 400)
    y = rng.poisson(np.exp(offset + X @ [0.3, -0.2, 0, 0])).astype(float)
    ours = kiln.GeneralizedLinearRegressorCV("poisson", alphas=[0.01], cv=2,
                                             scoring="neg_mean_poisson_deviance", device="cpu")
    ours.fit(X, y, weights, offset)
    for f, (train, test) in enumerate(KFold(2).split(X)):
        model = kiln.PoissonRegressor(alpha=0.01, device="cpu").fit(X[train], y[train], weights[train],
                                                                    offset[train])
        found = mean_poisson_deviance(y[test], model.predict(X[test], offset[test]),
                                      sample_weight=weights[test])
        np.testing.assert_allclose(ours.scores_[f, 0, 0], -found, rtol=1e-7)


def test_groups_float32_and_a_kept_matrix():
    X, y = load_diabetes(return_X_y=True)
    groups = np.random.default_rng(5).integers(0, 20, len(y))
    theirs = GridSearchCV(peer.Ridge(), {"alpha": ALPHAS}, cv=GroupKFold(4)).fit(X, y, groups=groups)
    for data in (X, X.astype(np.float32), kiln.matrix(X, "cpu")):
        ours = kiln.RidgeCV(ALPHAS, cv=GroupKFold(4), device="cpu").fit(data, y, groups=groups)
        assert ours.alpha_ == theirs.best_params_["alpha"]
        np.testing.assert_allclose(ours.scores_.mean(axis=0), theirs.cv_results_["mean_test_score"],
                                   rtol=2e-4)
        assert ours.predict(data).dtype == data.dtype


@pytest.mark.parametrize(("model", "text"), [(kiln.RidgeCV([-1.0], cv=5), r"'alphas'.*range \[0, inf\]"),
                                             (kiln.RidgeCV([]), "'alphas'"),
                                             (kiln.RidgeCV(cv=1000), "n_splits"),
                                             (kiln.RidgeCV(cv="five"), "cv"),
                                             (kiln.LogisticRegressionCV(Cs=[0.0]), r"'Cs'.*range \(0, inf\]"),
                                             (kiln.LogisticRegressionCV(Cs=0), "'Cs'"),
                                             (kiln.LogisticRegressionCV(l1_ratios=[2.0]), "'l1_ratios'"),
                                             (kiln.RidgeCV(scoring="nonsense"), "scoring"),
                                             (kiln.RidgeCV(scoring=["r2", "max_error"]),
                                              "'scoring'.*one name or one callable"),
                                             (kiln.LogisticRegressionCV(scoring={"a": "accuracy"}),
                                              "'scoring'.*one name or one callable"),
                                             (kiln.LassoCV(alphas=0), "'alphas'.*how many"),
                                             (kiln.ElasticNetCV(l1_ratio=0), "l1_ratio=0"),
                                             (kiln.GeneralizedLinearRegressorCV("normal"),
                                              "family must be one of"), (kiln.RidgeCV(cv=[]), "no splits")])
def test_errors(model, text):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=text):
        model.set_params(device="cpu").fit(X, y)


def test_the_callers_errors_end_it():
    X, y = load_iris(return_X_y=True)

    def scorer(model, X, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kiln.RidgeCV(scoring=scorer, device="cpu").fit(X, y)


def test_models_that_do_not_converge_are_told():
    X, y = standardized(load_breast_cancer)
    with (
        pytest.warns(match="of 10 models of the cross-validation did not converge"),
        pytest.warns(match="max_iter ended it"),
    ):
        kiln.LogisticRegressionCV(Cs=2, max_iter=1, device="cpu").fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_usual_scores_are_those_of_the_scorers(weighted):
    """Scorings by name are formulas; the same as a callable goes through scikit-learn."""
    cases = [(kiln.RidgeCV, load_diabetes, name) for name in ("r2", "neg_mean_squared_error")]
    cases += [(kiln.LogisticRegressionCV, load, name) for load in (load_breast_cancer, load_iris)
              for name in ("accuracy", "neg_log_loss")]
    cases += [(kiln.LogisticRegressionCV, load_breast_cancer, "roc_auc"),
              (kiln.RidgeCV, load_diabetes, "neg_mean_absolute_error")]
    for kind, load, name in cases:
        X, y = standardized(load)
        options = {"alphas": [1e-8, 0.1, 10.0]} if kind is kiln.RidgeCV else {"Cs": [0.01, 1.0, 100.0]}
        weights = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
        plain, scored = (kind(**options, cv=3, scoring=scoring, device="cpu").fit(X, y, weights)
                         for scoring in (name, get_scorer(name)))
        np.testing.assert_allclose(plain.scores_, scored.scores_, rtol=1e-7)


def test_the_loss_of_what_is_certain_and_wrong():
    eta = np.array([[-50.0], [50.0], [3.0], [-800.0]])
    for given in (eta, np.hstack([eta, -eta, 0 * eta])):
        codes = np.array([1, 0, 1, 1])
        probabilities = Predictors(given, None).predict_proba(None)
        np.testing.assert_allclose(formula(given, codes, None),
                                   -log_loss(codes, probabilities, labels=range(probabilities.shape[1])),
                                   rtol=1e-12)


def _judging(model, device, X, y, **fit):
    """The bytes that come home while models are judged, and the fitted model."""
    counted, take = [0], Search.take

    def counting(self, models):
        before = device.statistics()["bytes_down"]
        take(self, models)
        counted[0] += device.statistics()["bytes_down"] - before

    Search.take = counting
    try:
        return counted, model.set_params(device=device).fit(kiln.matrix(X, device), y, **fit)
    finally:
        Search.take = take


@pytest.mark.parametrize("where", [name for name in DEVICES if not name.startswith("cpu")])
def test_judged_where_X_lies(where):
    """Predictions of the rows held out stay on the device, and the scores are those of the CPU, found there
    by scikit-learn's scorers."""
    rng, m = np.random.default_rng(5), 6000
    X = rng.normal(size=(m, 4))
    signal, weights, offset = X @ [1, -1, 0.5, 0], rng.integers(0, 3, m), np.linspace(0, 1, m)
    y, kinds, counts = (signal + rng.normal(size=m), (signal > 0) * 1 + (signal > 1),
                        rng.poisson(np.exp(signal / 3 + offset)))
    cases = [(kiln.RidgeCV([0.1, 10.0]), y, {}), (kiln.RidgeCV([0.1, 10.0]), np.column_stack([y, signal]),
                                                  {"sample_weight": weights}),
             (kiln.LassoCV(alphas=4), y, {}), (kiln.LogisticRegressionCV(Cs=[0.01, 1.0]), y > 0,
                                               {"sample_weight": weights}),
             (kiln.LogisticRegressionCV(Cs=[0.01, 1.0], scoring="roc_auc"), y > 0,
              {"sample_weight": weights}),
             (kiln.LogisticRegressionCV(Cs=[0.01, 1.0], scoring="neg_log_loss"), kinds, {}),
             (kiln.GeneralizedLinearRegressorCV("poisson", alphas=[0.1, 0.01]), counts,
              {"offset": offset, "sample_weight": weights})]
    for model, target, fit in cases:
        model.set_params(cv=3)
        (home,), ours = _judging(model, kiln.device(where), X, target, **fit)
        if "offset" not in fit:  # else the best intercept alone is a fit, which looks at the rows on the host
            assert home < m, f"{model}: {home} bytes of {m} rows came home"
        named = {"RidgeCV": "r2", "LassoCV": "neg_mean_squared_error", "LogisticRegressionCV": "accuracy"}
        scoring = model.scoring or named.get(type(model).__name__)
        theirs = model.__class__(**{**model.get_params(), "device": "cpu",
                                    **({"scoring": get_scorer(scoring)} if scoring and
                                 not isinstance(model, kiln.LassoCV) else {})}).fit(X, target, **fit)
        scores = ((model.mse_path_, theirs.mse_path_) if isinstance(model, kiln.LassoCV)
                  else (ours.scores_, theirs.scores_))
        np.testing.assert_allclose(*scores, rtol=1e-6)


@pytest.mark.parametrize("name", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error",
                                  "neg_mean_absolute_error"])
def test_scores_of_several_targets_are_those_of_the_scorers(name):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(90, 3))
    y = np.column_stack([X @ [1, 2, 3] + rng.normal(size=90), 1e3 * X[:, 0] + rng.normal(size=90),
                         np.ones(90)])
    plain, scored = (kiln.RidgeCV([0.1, 10.0], cv=3, scoring=scoring,
                                  device="cpu").fit(X, y, np.arange(90) % 3)
                     for scoring in (name, get_scorer(name)))
    np.testing.assert_allclose(plain.scores_, scored.scores_, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_of_any_size_take_scikit_learns_penalty(weighted):
    """The penalty of a fold is alpha times the rows that it trains on, here 60 to 100 of 110."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(110, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=110)
    weights = {"sample_weight": rng.random(110) + 0.5} if weighted else {}
    splits = list(PredefinedSplit(np.repeat([0, 1, 2], [10, 50, 50])).split())
    ours = kiln.LassoCV(cv=splits, device="cpu").fit(X, y, **weights)
    theirs = peer.LassoCV(cv=splits, tol=1e-12, max_iter=10**6).fit(X, y, **weights)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
