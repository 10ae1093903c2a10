"""Penalties chosen by cross-validation: the same as scikit-learn's classes of these names choose, and what a search over trainings finds."""
import kiln
import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model as peer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold
from sklearn.preprocessing import StandardScaler

DEVICES = [row["name"] for row in kiln.devices() if row["usable"]][-2:]
ALPHAS = np.logspace(-4, 2, 12)


def standardized(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("cv", [5, KFold(3, shuffle=True, random_state=1), ShuffleSplit(3, random_state=2), KFold(60),
                                PredefinedSplit(np.arange(442) % 4 - 1), list(KFold(4).split(np.zeros(442)))],
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
    ours = kiln.RidgeCV(ALPHAS * 100, device="cpu").fit(X, Y, weights)
    found = []
    for train, test in KFold(5).split(X):
        model = peer.Ridge(alpha=ours.alpha_).fit(X[train], Y[train], weights[train])
        found.append(model.score(X[test], Y[test], weights[test]))
    np.testing.assert_allclose(ours.scores_[:, np.flatnonzero(ours.alpha_ == ALPHAS * 100)[0]], found, rtol=1e-9)
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
    theirs = peer.LogisticRegressionCV(**options, use_legacy_attributes=False, l1_ratios=(0.0,), tol=1e-10, max_iter=10000).fit(X, y)
    assert ours.C_ == theirs.C_ and ours.l1_ratio_ == theirs.l1_ratio_ == 0
    np.testing.assert_allclose(ours.scores_, theirs.scores_, rtol=1e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.score(X, y), theirs.score(X, y), rtol=1e-6)


def test_logistic_with_l1_and_sparse():
    X, y = standardized(load_breast_cancer)
    X = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    names = np.array(["malignant", "benign"])[y]
    folds = StratifiedKFold(3, shuffle=True, random_state=4)
    ours = kiln.LogisticRegressionCV(Cs=[10.0, 0.1, 1.0], l1_ratios=[0.0, 0.5, 1.0], cv=folds, scoring="neg_log_loss",
                                     class_weight="balanced", device="cpu").fit(X, names)
    weights = len(y) / (2 * np.bincount(y))[y]  # of all rows, as ours and scikit-learn's are
    for r, ratio in enumerate(ours.l1_ratios_):
        for c, C in enumerate(ours.Cs_):
            for f, (train, test) in enumerate(folds.split(X, y)):
                model = kiln.LogisticRegression(C=C, l1_ratio=ratio, device="cpu").fit(X[train], names[train], weights[train])
                found = np.log(model.predict_proba(X[test])[np.arange(len(test)), np.searchsorted(model.classes_, names[test])]).mean()
                np.testing.assert_allclose(ours.scores_[f, r, c], found, rtol=1e-5)
    assert ours.best_score_ == ours.scores_.mean(axis=0).max() and set(ours.predict(X)) == set(names)


def test_groups_float32_and_a_kept_matrix():
    X, y = load_diabetes(return_X_y=True)
    groups = np.random.default_rng(5).integers(0, 20, len(y))
    theirs = GridSearchCV(peer.Ridge(), {"alpha": ALPHAS}, cv=GroupKFold(4)).fit(X, y, groups=groups)
    for data in (X, X.astype(np.float32), kiln.matrix(X, "cpu")):
        ours = kiln.RidgeCV(ALPHAS, cv=GroupKFold(4), device="cpu").fit(data, y, groups=groups)
        assert ours.alpha_ == theirs.best_params_["alpha"]
        np.testing.assert_allclose(ours.scores_.mean(axis=0), theirs.cv_results_["mean_test_score"], rtol=2e-4)
        assert ours.predict(data).dtype == data.dtype


@pytest.mark.parametrize(("model", "text"), [(kiln.RidgeCV([-1.0]), "'alphas'.*range"), (kiln.RidgeCV([]), "'alphas'"),
                                             (kiln.RidgeCV(cv=1000), "n_splits"), (kiln.RidgeCV(cv="five"), "cv"),
                                             (kiln.LogisticRegressionCV(Cs=[0.0]), "'Cs'.*range"), (kiln.LogisticRegressionCV(Cs=0), "'Cs'"),
                                             (kiln.LogisticRegressionCV(l1_ratios=[2.0]), "'l1_ratios'"),
                                             (kiln.RidgeCV(scoring="nonsense"), "scoring"), (kiln.RidgeCV(cv=[]), "no splits")])
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
    with pytest.warns(match="of 10 models of the cross-validation did not converge"), pytest.warns(match="ended by"):
        kiln.LogisticRegressionCV(Cs=2, max_iter=1, device="cpu").fit(X, y)
