"""LinearSVC(loss="hinge") and LinearSVR(loss="epsilon_insensitive"), losses with kinks."""
import kiln
import numpy as np
import pytest
import scipy.sparse
from kiln._arrays import Device
from kiln._library import lib
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

CANCER, SICK = load_breast_cancer(return_X_y=True)
CANCER = StandardScaler().fit_transform(CANCER)
DIABETES, PROGRESS = load_diabetes(return_X_y=True)
DIABETES = DIABETES * 20
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, kiln.matrix])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_classes(form, C):
    """As libsvm's linear machine, whose intercept is not penalised either; with weights of rows and
    classes."""
    weights = RANDOM.uniform(0, 2, len(SICK)) * (RANDOM.random(len(SICK)) > 0.2)
    for given in (None, weights):
        options = {"C": C, "class_weight": {0: 2.0, 1: 0.5}}
        ours = kiln.LinearSVC(loss="hinge", **options, device="cpu").fit(form(CANCER), SICK, given)
        theirs = SVC(kernel="linear", tol=1e-10, **options).fit(CANCER, SICK, given)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4 * np.abs(theirs.coef_).max())
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
        assert ours.converged_ and ours.optimality_gap_ <= 1e-8 * ours.objective_


@pytest.mark.parametrize("epsilon", [0.0, 5.0])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_numbers(epsilon, C):
    weights = RANDOM.uniform(0, 2, len(PROGRESS))
    options = {"C": C, "epsilon": epsilon}
    ours = kiln.LinearSVR(loss="epsilon_insensitive", **options, device="cpu")
    ours.fit(DIABETES, PROGRESS, weights)
    theirs = SVR(kernel="linear", tol=1e-10, **options).fit(DIABETES, PROGRESS, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-4 * np.abs(theirs.coef_).max())
    assert ours.intercept_.shape == (1,) and ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-5)
    assert ours.predict(DIABETES).shape == (442,) and ours.converged_


def test_the_gap_is_a_bound():
    """No other w is better by more, without an intercept too, also where scikit-learn's ends far above."""
    sign = np.where(SICK == 1, 1.0, -1.0)
    for C in (1.0, 100.0):
        both = (kiln.LinearSVC, {"device": "cpu"}), (LinearSVC, {"tol": 1e-10, "max_iter": 20000})
        ours, theirs = (kind(loss="hinge", C=C, fit_intercept=False, **more).fit(CANCER, SICK)
                        for kind, more in both)
        found, other = (w @ w / 2 + C * np.maximum(0, 1 - sign * (CANCER @ w)).sum()
                        for w in (ours.coef_[0], theirs.coef_[0]))
        assert ours.objective_ == pytest.approx(found) and other >= found - ours.optimality_gap_
        assert ours.intercept_ == 0.0 and ours.converged_


def test_several_classes_and_single_precision(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    ours = kiln.LinearSVC(loss="hinge", device="cpu").fit(X, names)
    for j, name in enumerate(ours.classes_):
        one = SVC(kernel="linear", tol=1e-10).fit(X, names == name)
        np.testing.assert_allclose(ours.decision_function(X)[:, j], one.decision_function(X), atol=2e-3)
    narrow = kiln.LinearSVC(loss="hinge", device="cpu").fit(X.astype(np.float32), names)
    np.testing.assert_allclose(narrow.coef_, ours.coef_, atol=1e-3)
    assert narrow.coef_.dtype == np.float32
    ours.save(tmp_path / "m.kiln")
    np.testing.assert_array_equal(kiln.load(tmp_path / "m.kiln").predict(X), ours.predict(X))


@pytest.mark.parametrize("intercept", [True, False])
def test_the_least_absolute_coefficients(intercept):
    """penalty="l1" of the squared hinge: the conditions of the least value, and the bound, which holds
    against scikit-learn's model, whose random order may end far above."""
    weights, sign = RANDOM.uniform(0, 2, len(SICK)), np.where(SICK == 1, 1.0, -1.0)
    options = {"penalty": "l1", "fit_intercept": intercept}
    for C in (0.001, 0.01, 1.0):
        ours = kiln.LinearSVC(C=C, **options, device="cpu").fit(CANCER, SICK, weights)
        w, b = ours.coef_[0], ours.intercept_
        left = np.maximum(0, 1 - sign * (CANCER @ w + b))
        slope = CANCER.T @ (2 * C * weights * sign * left)
        assert ours.objective_ == pytest.approx(np.abs(w).sum() + C * weights @ left**2)
        assert (np.abs(slope) <= 1 + 1e-7).all() and np.allclose(slope[w != 0], np.sign(w[w != 0]), atol=1e-7)
        assert ours.converged_ and ours.optimality_gap_ <= 1e-8 * ours.objective_
        if intercept:
            assert abs(np.sum(C * weights * sign * left)) < 1e-9
        else:
            theirs = LinearSVC(C=C, dual=False, tol=1e-10, max_iter=20000, **options)
            other = theirs.fit(CANCER, SICK, weights).coef_[0]
            above = C * weights @ np.maximum(0, 1 - sign * (CANCER @ other)) ** 2 + np.abs(other).sum()
            assert ours.objective_ - ours.optimality_gap_ <= above


def test_the_least_absolute_coefficients_of_few_rows():
    """Fewer than columns, of three classes, sparse."""
    X = RANDOM.normal(size=(60, 150)) * (RANDOM.random((60, 150)) > 0.5)
    y = np.argmax(X[:, :3], axis=1)
    ours = kiln.LinearSVC("l1", C=0.3, device="cpu").fit(scipy.sparse.csr_matrix(X), y)
    again = kiln.LinearSVC("l1", C=0.3, device="cpu").fit(X, y)
    np.testing.assert_allclose(ours.coef_, again.coef_, atol=1e-8)
    assert ours.coef_.shape == (3, 150) and ours.converged_ and 0 < np.count_nonzero(ours.coef_) < 150
    assert not kiln.LinearSVC("l1", C=1e-6, device="cpu").fit(X, y).coef_.any()


def test_what_is_refused_and_warned_of():
    for bad in (np.nan, np.inf):
        X = np.where(CANCER == CANCER[3, 3], bad, CANCER)
        with pytest.raises(ValueError, match="NaN"):
            kiln.LinearSVC(loss="hinge", device="cpu").fit(X, SICK)
    with pytest.raises(kiln.ArgumentError, match="4096 columns"):
        kiln.LinearSVC(loss="hinge", device="cpu").fit(scipy.sparse.eye(5000, format="csr"),
                                                       np.arange(5000) % 2)
    with pytest.raises(kiln.ArgumentError, match="standardize"):
        kiln.LinearSVC(loss="hinge", standardize=True, device="cpu").fit(CANCER, SICK)
    for wrong in ({"C": -1.0}, {"loss": "log"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            kiln.LinearSVC(**{"loss": "hinge", **wrong}, device="cpu").fit(CANCER, SICK)
    with pytest.warns(match="did not converge.*; rounding ends it here: raise tol$"):
        kiln.LinearSVC("l1", tol=1e-20, device="cpu").fit(CANCER, SICK)


@pytest.mark.parametrize("model, kind", [
    (kiln.LinearSVC(loss="hinge"), "classes"), (kiln.LinearSVC(loss="hinge", fit_intercept=False), "classes"),
    (kiln.LinearSVR(loss="epsilon_insensitive"), "numbers"), (kiln.LinearSVC(penalty="l1"), "classes"),
    (kiln.LinearRegression(positive=True), "numbers"), (kiln.Ridge(positive=True), "targets"),
    (kiln.Lasso(0.1, positive=True, fit_intercept=False), "numbers")], ids=repr)
def test_passes_are_counted(model, kind, monkeypatch):
    """Each product with X, and each of its columns with each other, is one."""
    calls, call = [], Device.call
    monkeypatch.setattr(Device, "call", lambda self, function, *given: (calls.append(function),
                                                                        call(self, function, *given))[1])
    targets = {"classes": SICK, "numbers": PROGRESS, "targets": np.column_stack([PROGRESS, -PROGRESS])}
    model.set_params(device="cpu").fit(CANCER[:60, :5], targets[kind][:60])
    assert model.report_.passes == sum(one in (lib.kiln_multiply, lib.kiln_gram, lib.kiln_gram_diagonal)
                                         for one in calls)


FAR = RANDOM.normal(size=(150, 4))
LINE = FAR @ [1.0, 2.0, -1.0, 0.5] + 0.1 * RANDOM.normal(size=150)
SIDES = np.where(FAR[:, 0] + 0.5 * FAR[:, 1] + 0.3 * RANDOM.normal(size=150) > 0, 1, -1)
KINDS = [(kiln.LinearSVC(loss="hinge", device="cpu"), SIDES), (kiln.LinearSVC("l1", device="cpu"), SIDES),
         (kiln.LinearSVR(loss="epsilon_insensitive", device="cpu"), LINE)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("model, y", KINDS, ids=repr)
def test_columns_far_from_zero(model, y, form):
    """A shift of the columns is the intercept's alone."""
    near = clone(model).fit(FAR, y)
    for far in (9, 100, 2000, 1e6):
        found = clone(model).fit(form(FAR + far), y)
        np.testing.assert_allclose(found.coef_, near.coef_, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.intercept_, near.intercept_ - far * near.coef_.sum(),
                                   atol=3e-6 * far)
        assert found.converged_


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model, y", KINDS, ids=repr)
def test_columns_of_different_scales(model, y):
    """A column so large that its coefficient costs nothing, and one so small that it is not worth its own."""
    found = [clone(model).fit(FAR * [large, 1, 1 / large, 1], y) for large in (1e6, 1e8)]
    for one in found:
        assert one.converged_ and one.objective_ == pytest.approx(found[0].objective_, rel=1e-5)
    free = np.abs(np.ravel(found[1].coef_)) * [1e8, 1, 1e-8, 1]
    assert 0.5 < free[0] < 10 and 0.5 < free[1] < 4 and free[2] < 1e-10


@pytest.mark.filterwarnings("error")
def test_large_costs_say_no_word_of_their_steps():
    for C in (1e5, 1e8):
        for model, y in KINDS:
            clone(model).set_params(C=C).fit(FAR + 100, y)
