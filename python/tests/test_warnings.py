"""Python warns where the tool does: at the user's line, in parameters' words, and of nothing that is not
so."""
from __future__ import annotations

import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kiln

CPU = {"device": "cpu"}


def heard(call):
    """The result of a call, and its warnings; each points at this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    for warning in caught:
        assert warning.filename == __file__, (warning.filename, warning.lineno, warning.message)
    return result, caught


def groups(seed=0, m=200):
    """A number and a group that a tenth of the rows are in."""
    rng = np.random.default_rng(seed)
    x, inside = rng.normal(size=m), rng.random(m) < 0.1
    return rng, x, inside, np.column_stack([x, inside])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_quasi_separation(dtype, sparse):
    rng, x, inside, X = groups()
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-x))) | inside
    X = scipy.sparse.csr_matrix(X.astype(dtype)) if sparse else X.astype(dtype)
    for model in (kiln.LogisticRegression(C=np.inf, **CPU),
                  kiln.GeneralizedLinearRegressor("binomial", **CPU),
                  kiln.GeneralizedLinearRegressor("binomial", link="probit", **CPU)):
        fitted, caught = heard(lambda model=model: model.fit(X, y.astype(float)))
        assert [warning.category for warning in caught] == [ConvergenceWarning], caught
        assert ("separated but for ties" in str(caught[0].message)
                and f"{inside.sum()} of {len(x)} rows" in str(caught[0].message))
        assert ("(C)" if isinstance(model, kiln.LogisticRegression) else "(alpha)") in str(caught[0].message)
        assert list(fitted.report_.warnings) == ["quasi-separated"]


def test_separation_of_three_classes():
    rng, x, inside, X = groups()
    y = np.where(inside, 2, rng.integers(0, 3, len(x)))
    fitted, caught = heard(lambda: kiln.LogisticRegression(C=np.inf, **CPU).fit(X, y))
    assert list(fitted.report_.warnings) == ["quasi-separated"] and len(caught) == 1
    assert heard(lambda: kiln.LogisticRegression(**CPU).fit(X, y))[1] == []


def test_complete_separation():
    X = np.array([[1.0], [2], [3], [4]])
    for y, kind in (([0, 0, 1, 1], "separated"), ([0, 1, 0, 1], None), ([0, 1, 1, 1], "separated")):
        fitted, caught = heard(lambda y=y: kiln.LogisticRegression(C=np.inf, **CPU).fit(X, y))
        assert list(fitted.report_.warnings) == ([kind] if kind else []) and len(caught) == bool(kind)
    fitted, caught = heard(lambda: kiln.LogisticRegression(C=1e12, **CPU).fit(X, [0, 0, 1, 1]))
    assert list(fitted.report_.warnings) == ["saturated"] and issubclass(caught[0].category, UserWarning)
    fitted, caught = heard(lambda: kiln.LinearSVC(C=np.inf, **CPU).fit(X, [0, 0, 1, 1]))
    assert list(fitted.report_.warnings) == ["margins"]
    fitted, caught = heard(lambda: kiln.GeneralizedLinearRegressor("binomial", **CPU).fit(X, [1.0, 1, 1, 1]))
    assert list(fitted.report_.warnings) == ["one-sided"]


@pytest.mark.parametrize("family", [dict(family="poisson"), dict(family="negative-binomial", parameter=0.5),
                                    dict(family="tweedie", parameter=1.5)])
def test_groups_of_zeros(family):
    rng, x, inside, X = groups()
    counts = rng.poisson(np.exp(1 + 0.3 * x)).astype(float)
    model = kiln.GeneralizedLinearRegressor(**family, **CPU)
    fitted, caught = heard(lambda: model.fit(X, np.where(inside, 0, counts)))
    assert (list(fitted.report_.warnings) == ["zeros"]
            and f"{inside.sum()} of {len(x)} rows" in str(caught[0].message))
    one = np.where(inside, 0, counts)
    one[np.flatnonzero(inside)[0]] = 1
    assert heard(lambda: model.fit(X, one))[1] == []
    assert heard(lambda: model.set_params(alpha=0.01).fit(X, np.where(inside, 0, counts)))[1] == []
    fitted, _ = heard(lambda: kiln.PoissonRegressor(**CPU).fit(X, np.zeros(len(x))))
    assert list(fitted.report_.warnings) == ["one-sided"]


@pytest.mark.parametrize("family", [dict(family="poisson"), dict(family="negative-binomial", parameter=0.5),
                                    dict(family="negative-binomial", parameter=1e-13)])
def test_counts_that_float32_does_not_resolve(family):
    """Against float64: without the warning the deviance is right to 1 %, and of 1e12 it is no deviance."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(500, 2))
    for size, exposure in ((1e4, 1), (1e8, 1), (1e12, 1), (100, 1e10)):
        mean = size * np.exp(X @ [0.3, -0.2])
        alike = family.get("parameter") == 0.5  # means vary by 0.7 of themselves
        y = mean * rng.gamma(2, 0.5, len(X)) if alike else rng.normal(mean, np.sqrt(mean / exposure))
        weights = np.full(len(X), exposure)
        fits = [heard(lambda kind=kind: kiln.GeneralizedLinearRegressor(**family, **CPU).fit(
            X.astype(kind), y.astype(kind), sample_weight=weights.astype(kind))) for kind in ("f4", "f8")]
        (single, caught), (double, none) = fits
        wrong = size * exposure >= 1e12 and not alike
        assert none == [] and list(single.report_.warnings) == (["counts"] if wrong else []), (size, exposure)
        assert len(caught) == wrong
        off = abs(single.report_.figures["deviance"] / double.report_.figures["deviance"] - 1)
        assert off > 0.1 if wrong else off < 0.01, (size, exposure, off)


def endless(gains, ties=()):
    """Whether some direction lowers no gain, raises one and leaves ties, by a linear programme."""
    both = np.vstack([gains, *ties])
    scale = np.abs(both).max(axis=0)
    gains, ties = gains / np.where(scale > 0, scale, 1), [tie / np.where(scale > 0, scale, 1) for tie in ties]
    found = linprog(-gains.sum(axis=0), A_ub=-gains, b_ub=np.zeros(len(gains)),
                    bounds=[(-1, 1)] * gains.shape[1], method="highs", A_eq=np.vstack(ties) if ties else None,
                    b_eq=np.zeros(sum(map(len, ties))) if ties else None)
    assert found.status == 0
    return None if 1e-9 < -found.fun < 1e-4 else -found.fun > 1e-7  # None: rounding decides


def against(X, y, classes):
    """A row for each class that a row of X is not of: its own score less that one's."""
    made = []
    for c in range(classes):
        rows = np.flatnonzero(y != c)
        gains = np.zeros((len(rows), classes, X.shape[1]))
        gains[np.arange(len(rows)), y[rows].astype(int)] = X[rows]
        gains[:, c] = -X[rows]
        made.append(gains.reshape(len(rows), -1))
    return np.vstack(made)


def columns(rng, m, n):
    return np.where(rng.random(n) < 0.5, rng.normal(size=(m, n)),
                    rng.random((m, n)) < rng.choice([0.04, 0.2, 0.5], n))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [(10, 120), (500, 1500)])
def test_a_linear_programme_agrees(dtype, rows):
    """Small problems at random, half of them with an optimum at infinity; and those of which a few rows are
    asked first."""
    rng, said = np.random.default_rng(5), []
    for _ in range(60):
        m, n = int(rng.integers(*rows)), int(rng.integers(1, 5))
        X = columns(rng, m, n).astype(dtype)
        noise, weights = rng.choice([0, 0.5, 2]), np.where(rng.random(m) < 0.1, 0,
                                                           rng.choice([1e-3, 1, 1e3], m))
        y = X @ rng.normal(size=n) + noise * rng.logistic(size=m) > 0
        counted = weights > 0
        if y[counted].all() or not y[counted].any():
            continue
        model = kiln.LogisticRegression(C=np.inf, fit_intercept=bool(rng.random() < 0.7), **CPU)
        heard(lambda: model.fit(scipy.sparse.csr_matrix(X) if rng.random() < 0.3 else X, y,
                                sample_weight=weights))
        Z = np.column_stack([X, np.ones(m)]) if model.fit_intercept else X.astype(float)
        true = endless((Z * np.where(y, 1, -1)[:, None])[counted])
        told = set(model.report_.warnings) & {"separated", "quasi-separated", "undecided"}
        assert true is None or bool(told) == true, (m, n, told, true)
        assert "undecided" not in told
        said.append(bool(told))
    assert 10 < sum(said) < len(said) - 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [(10, 60), (450, 900)])
def test_a_linear_programme_agrees_about_zeros(dtype, rows):
    rng, said = np.random.default_rng(6), []
    for _ in range(60):
        m, n = int(rng.integers(*rows)), int(rng.integers(1, 7))
        X = columns(rng, m, n).astype(dtype)
        y = rng.poisson(np.exp(np.clip(X @ rng.normal(size=n), -3, 2))).astype(float)
        if rng.random() < 0.5:
            y[X[:, 0] != 0] = 0
        if rng.random() < 0.2:
            y[:] = 0
        y[0] = max(y[0], 1)
        model = kiln.GeneralizedLinearRegressor("poisson", **CPU)
        heard(lambda: model.fit(X, y))
        Z = np.column_stack([X, np.ones(m)])
        true = (y == 0).any() and endless(-Z[y == 0], [Z[y > 0]])
        told = "zeros" in model.report_.warnings
        assert true is None or told == true, (m, n, told, true)
        said.append(told)
    assert 10 < sum(said) < len(said) - 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [(10, 80), (250, 400)])
def test_a_linear_programme_agrees_about_several_classes(dtype, rows):
    rng, said = np.random.default_rng(7), []
    for _ in range(40):
        m, n, k = int(rng.integers(*rows)), int(rng.integers(1, 4)), int(rng.integers(3, 5))
        X = columns(rng, m, n).astype(dtype)
        y = np.argmax(X @ rng.normal(size=(n, k)) * 2 + rng.choice([0, 0.3, 1]) * rng.gumbel(size=(m, k)),
                      axis=1)
        if rng.random() < 0.3:
            y[X[:, 0] > 1] = 1
        if len(np.unique(y)) < k:
            continue
        model = kiln.LogisticRegression(C=np.inf, **CPU)
        heard(lambda: model.fit(X, y))
        true = endless(against(np.column_stack([X, np.ones(m)]), y, k))
        told = bool(set(model.report_.warnings) & {"separated", "quasi-separated", "undecided"})
        assert true is None or told == true, (m, n, k, told, true)
        said.append(told)
    assert 5 < sum(said) < len(said) - 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_among_many(dtype):
    """More coefficients than are proved: rows of one class in one column of 700, or not."""
    rng = np.random.default_rng(2)
    X = scipy.sparse.random(8000, 700, 0.01, format="csr", random_state=3)
    y = X @ rng.normal(size=700) + rng.logistic(size=8000) > 0
    inside = np.unique(X[:, [3]].nonzero()[0])
    for settled in (True, False):
        y[inside] = settled | y[inside]
        y[inside[0]] = settled
        model, _ = heard(lambda: kiln.LogisticRegression(C=np.inf, **CPU).fit(X.astype(dtype), y))
        told = set(model.report_.warnings)
        assert told <= {"quasi-separated", "undecided"} if settled else told <= {"undecided"}
        assert not settled or told


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [(20, 80), (500, 900)])
def test_columns_that_are_sums_but_for_their_rounding(dtype, rows):
    """A sum of columns far from zero, rounded, tells every row apart by its last digits: the question is that
    of the columns without it, whatever the loss is."""
    rng, said = np.random.default_rng(11), []
    for turn in range(48):
        m = int(rng.integers(*rows))
        few = (rng.normal(size=(m, 2)) + rng.choice([0, 30, 1000], 2)).astype(dtype)
        made = few.astype(float) @ rng.choice([-0.3, 1, 0.7], (2, 2))
        X = np.column_stack([few, made.astype(dtype)])[:, rng.permutation(4)]
        eta = (few - few.mean(0)) @ rng.normal(size=2) + rng.choice([0, 1]) * rng.logistic(size=m)
        Z = np.column_stack([few, np.ones(m)]).astype(float)
        if turn % 4 == 0:
            y = np.digitize(eta, np.quantile(eta, [0.3, 0.7])).astype(float)
            if rng.random() < 0.5:
                y[few[:, 0] > np.quantile(few[:, 0], 0.8)] = 2
            model, true = kiln.LogisticRegression(C=np.inf, **CPU), endless(against(Z, y, 3))
        elif turn % 4 == 1:
            y = rng.poisson(np.exp(np.clip(eta, -3, 1))).astype(float)
            y[few[:, 0] > np.quantile(few[:, 0], rng.choice([0.8, 1]))] = 0
            model = kiln.GeneralizedLinearRegressor("poisson", **CPU)
            true = (y == 0).any() and endless(-Z[y == 0], [Z[y > 0]])
        else:
            y = (eta > 0).astype(float)
            model = (kiln.LogisticRegression(C=np.inf, **CPU) if turn % 4 == 2 else
                     kiln.GeneralizedLinearRegressor("binomial", **CPU))
            true = endless(Z * np.where(y > 0, 1, -1)[:, None])
        heard(lambda model=model, X=X, y=y: model.fit(X, y))
        told = set(model.report_.warnings) & {"separated", "quasi-separated", "zeros", "undecided"}
        assert true is None or bool(told) == true, (turn, m, told, true)
        said.append(bool(told))
    assert 8 < sum(said) < len(said) - 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_sets_that_can_be_separated(dtype):
    """All rows of breast cancer are; of the irises those of one class, from each other class, and of the
    others none."""
    data = load_breast_cancer()
    model, caught = heard(lambda: kiln.LogisticRegression(C=np.inf, **CPU).fit(data.data.astype(dtype),
                                                                               data.target))
    assert list(model.report_.warnings) == ["separated"] and caught[0].category is ConvergenceWarning
    X, y = load_iris(return_X_y=True)
    model, caught = heard(lambda: kiln.LogisticRegression(C=np.inf, **CPU).fit(X.astype(dtype), y))
    rows = against(np.column_stack([X.astype(dtype), np.ones(150)]), y, 3)
    # the conditions that can be met with room: those with a direction of their own
    gone = np.zeros(len(rows), bool)
    for i in range(len(rows)):
        gone[i] = linprog(-rows[i], A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1),
                          method="highs").fun < -1e-6
    excluded = gone.reshape(3, 100)
    row_of = np.concatenate([np.flatnonzero(y != c) for c in range(3)])
    certain = len(np.unique(row_of[excluded.ravel()]))
    assert (list(model.report_.warnings) == ["quasi-separated"]
            and f"of {certain} of 150 rows" in str(caught[0].message)), caught


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("l1_ratio", [0, 1])
def test_intercepts_have_no_common_shift(dtype, l1_ratio):
    """Several classes: the objective does not depend on a shift of all intercepts, nor does the model on what
    made one."""
    rng = np.random.default_rng(8)
    for far in (0, 100):
        X = (rng.normal(size=(90, 4)) * [1, 1e2, 1e-2, 1] + far).astype(dtype)
        y = np.argmax((X - X.mean(0)) / X.std(0) @ rng.normal(size=(4, 4)) + rng.gumbel(size=(90, 4)), axis=1)
        model = kiln.LogisticRegression(C=100, l1_ratio=l1_ratio, warm_start=True, **CPU)
        first, _ = heard(lambda: model.fit(X, y))
        size = 1e-6 * np.abs(first.intercept_).max() * (1 if dtype == np.float64 else 100)

        def shift(model):  # of the scores at the columns' means
            return abs((model.intercept_ + model.coef_ @ X.mean(0, dtype=float)).sum())

        assert shift(first) <= size and (l1_ratio or np.abs(first.coef_.sum(0)).max() <= 1e-4
                                         * np.abs(first.coef_).max())
        shares = first.predict_proba(X)
        first.intercept_ = first.intercept_ + dtype(1000)
        again, _ = heard(lambda: first.fit(X, y))
        assert shift(again) <= size
        np.testing.assert_allclose(again.predict_proba(X), shares, atol=1e-6 if dtype == np.float64 else 2e-2)


def test_no_word_about_usual_data():
    for data in (load_breast_cancer(), load_iris(), load_wine()):
        X = StandardScaler().fit_transform(data.data)
        for model in (kiln.LogisticRegression(**CPU), kiln.LinearSVC(**CPU),
                      kiln.KMeans(3, random_state=0, **CPU)):
            assert heard(lambda model=model, X=X, y=data.target: model.fit(X, y))[1] == []
    X, y = load_diabetes(return_X_y=True)
    for model in (kiln.LinearRegression(**CPU), kiln.Ridge(**CPU),
                  kiln.GeneralizedLinearRegressor("gamma", **CPU), kiln.PoissonRegressor(alpha=0, **CPU)):
        assert heard(lambda model=model: model.fit(X, y))[1] == []
    assert heard(lambda: kiln.LogisticRegression(C=np.inf, **CPU).fit(X, y > 140))[1] == []


def test_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X = np.column_stack([X, X.sum(axis=1)])
    y = rng.normal(size=40)
    for model, name in ((kiln.LinearRegression(**CPU), "alpha of kiln.Ridge"),
                        (kiln.Ridge(0.0, **CPU), "(alpha)"), (kiln.GeneralizedLinearRegressor(**CPU),
                                                              "(alpha)")):
        fitted, caught = heard(lambda model=model: model.fit(X, y))
        assert (list(fitted.report_.warnings) == ["rank"] and "2 of 3" in str(caught[0].message)
                and name in str(caught[0].message))
    assert heard(lambda: kiln.Ridge(1.0, **CPU).fit(X, y))[1] == []


def test_clusters_and_factors():
    X = np.repeat([[0.0, 1], [2, 3], [4, 9]], 5, axis=0)
    fitted, caught = heard(lambda: kiln.KMeans(5, random_state=0, **CPU).fit(X))
    assert list(fitted.report_.warnings) == ["clusters"] and "distinct clusters (3)" in str(caught[0].message)
    R = np.random.default_rng(0).integers(1, 6, (20, 15)).astype(float)
    fitted, caught = heard(lambda: kiln.ALS(2, l2=1e6, random_state=0, **CPU).fit(R))
    assert "zero-factors" in fitted.report_.warnings and "(l2)" in str(caught[0].message)


def test_classes_that_the_model_does_not_know():
    X, y = load_iris(return_X_y=True)
    model = kiln.LogisticRegression(**CPU).fit(X[:100], y[:100])
    score, caught = heard(lambda: model.score(X, y))
    assert (score <= 100 / 150 and "50 of 150 rows" in str(caught[0].message) and caught[0].category
            is UserWarning)
    assert heard(lambda: model.score(X[:100], y[:100]))[1] == []


def test_an_offset_that_is_missing():
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(50, 2)), rng.normal(size=50)
    model = kiln.PoissonRegressor(**CPU)
    general = kiln.GeneralizedLinearRegressor("poisson", **CPU).fit(X, rng.poisson(np.exp(offset)),
                                                                    offset=offset)
    assert heard(lambda: model.fit(X, rng.poisson(1, 50)).predict(X))[1] == []
    for call in (lambda: general.predict(X), lambda: general.score(X, np.ones(50))):
        with pytest.raises(ValueError, match="offset"):
            call()


def test_a_budget_that_was_reached():
    if not any(row["name"].startswith("opencl") and row["usable"] for row in kiln.devices()):
        pytest.skip("no OpenCL")
    X = np.random.default_rng(0).normal(size=(4000, 8))
    y = X @ np.ones(8)
    for memory, said in ((X.nbytes // 2, True), (100 * X.nbytes, False)):
        where = kiln.Device("opencl", memory=memory)
        model, caught = heard(lambda where=where: kiln.Ridge(1.0, solver="cg", device=where).fit(X, y))
        assert list(model.report_.warnings) == (["budget"] if said else []) and len(caught) == said
        assert not said or (caught[0].category is UserWarning
                            and "a larger memory of kiln.Device" in str(caught[0].message))


def test_one_process():
    """If mpirun has started one; without the plug-in, or MPI, there is an error instead."""
    def join():
        with kiln.processes() as where:
            return where.name

    try:
        _, caught = heard(join)
    except kiln.KilnError:
        pytest.skip("no MPI")
    assert [warning.category
            for warning in caught] == [UserWarning] and "one process" in str(caught[0].message)


def test_means_outside_the_family():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (100, 1))
    y = rng.poisson(1 + 3 * X[:, 0]).astype(float)
    model = kiln.GeneralizedLinearRegressor("poisson", link="identity", **CPU).fit(X, y)
    far = np.array([[-5.0], [0.5]])
    for call in (lambda: model.predict(far), lambda: model.score(far, [1.0, 2.0])):
        _, caught = heard(call)
        assert len(caught) == 1 and "1 of 2 rows" in str(caught[0].message), caught


def test_what_has_not_converged_points_at_the_user():
    X, y = load_breast_cancer(return_X_y=True)
    for model in (kiln.LogisticRegression(max_iter=1, **CPU),
                  make_pipeline(StandardScaler(), kiln.LogisticRegression(max_iter=1, **CPU)),
                  kiln.LogisticRegressionCV(Cs=2, cv=3, max_iter=1, **CPU),
                  kiln.NMF(2, max_iter=1, random_state=0, **CPU),
                  kiln.PoissonRegressor(max_iter=1, alpha=0, **CPU)):
        _, caught = heard(lambda model=model: model.fit(X, y))
        assert caught and all(warning.category is ConvergenceWarning for warning in caught)
        here = inspect.currentframe().f_code.co_firstlineno
        assert here < caught[0].lineno < here + 10
    links = scipy.sparse.csr_matrix(np.triu(np.ones((4, 4)), 1))
    assert heard(lambda: kiln.pagerank(links, max_iter=1, device="cpu"))[1]


def test_errors_name_parameters():
    counts = scipy.sparse.csr_matrix(np.arange(12.0).reshape(4, 3))

    def online(**options):
        return kiln.LatentDirichletAllocation(2, learning_method="online", **options, **CPU).fit(counts)

    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.ones(20)
    cases = [(lambda: kiln.GeneralizedLinearRegressor("tweedie", **CPU).fit(X, y), "needs parameter="),
             (lambda: kiln.GeneralizedLinearRegressor("negative-binomial", **CPU).fit(X, y),
              "needs parameter="),
             (lambda: kiln.GeneralizedLinearRegressor(link="power", **CPU).fit(X, y), "(link_power)"),
             (lambda: kiln.TweedieRegressor(power=0.5, **CPU).fit(X, y), "(power)"),
             (lambda: kiln.LogisticRegression(tol=-1, **CPU).fit(X, X[:, 0] > 0), "tol is -1"),
             (lambda: kiln.KMeans(2, max_iter=-1, **CPU).fit(X), "max_iter is -1"),
             (lambda: kiln.GeneralizedLinearRegressor(standard_errors=True, alpha=1, **CPU).fit(X, y),
              "alpha must be 0"),
             (lambda: kiln.pagerank(scipy.sparse.eye(2, format="csr"), damping=3, device="cpu"),
              "damping is 3, but must be in [0, 1]"),
             (lambda: kiln.ALS(2, alpha=-2, implicit=True, **CPU).fit(counts), "alpha is -2"),
             (lambda: kiln.ALS(2, steps=-2, **CPU).fit(counts), "steps is -2"),
             (lambda: kiln.NMF(2, prior="gamma", shape=-1, **CPU).fit(counts), "shape is -1"),
             (lambda: kiln.LatentDirichletAllocation(2, doc_topic_prior=-1, **CPU).fit(counts),
              "doc_topic_prior is -1"),
             (lambda: online(learning_decay=3), "learning_decay is 3"),
             (lambda: online(learning_offset=-3), "learning_offset is -3")]
    for call, part in cases:
        with pytest.raises(kiln.ArgumentError) as raised:
            call()
        assert (part in str(raised.value) and "kiln_" not in str(raised.value) and "_options"
                not in str(raised.value))
        assert " --" not in str(raised.value)
        assert "0 means" not in str(raised.value)  # where 0 is given it is meant
    with pytest.raises(ValueError, match="n_components"):
        kiln.MDS(0, **CPU).fit(X)


def test_a_hint_that_begins_with_what_python_has_not(tmp_path):
    (tmp_path / "comma.csv").write_text("a,y\n" + "".join(f'"1,{100 + i}",{i}\n' for i in range(20)))
    with pytest.raises(kiln.DataError) as raised:
        kiln.read(tmp_path / "comma.csv", target="y")
    assert raised.value.hint.startswith("write numbers with a decimal point")


def test_without_scikit_learn_loaded():
    """Functions that need no scikit-learn warn by UserWarning."""
    program = ("import warnings, numpy as np, scipy.sparse, kiln\n"
               "A = scipy.sparse.csr_matrix(np.triu(np.ones((4, 4)), 1))\n"
               "with warnings.catch_warnings(record=True) as caught:\n"
               "    warnings.simplefilter('always')\n"
               "    kiln.pagerank(A, max_iter=1, device='cpu')\n"
               "print(caught[0].category.__name__, caught[0].filename)\n")
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             check=True).stdout.split()
    assert printed[0] in ("UserWarning", "ConvergenceWarning") and printed[1] == "<string>"


@pytest.mark.parametrize("patience", [None, 10**6])
def test_batches_at_rest_have_not_converged(patience):
    """Patience that is not what ended the run keeps nothing back."""
    random = np.random.default_rng(0)
    X = random.normal(size=(8, 5))[random.integers(0, 8, 2000)] * 2 + random.normal(size=(2000, 5))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kiln.MiniBatchKMeans(8, batch_size=100, tol=1e-4, max_no_improvement=patience, random_state=0,
                                     device="cpu").fit(X)
    assert model.report_.stopped_by == "stalled" and not model.report_.converged
    said = [str(one.message) for one in caught]
    assert len(said) == 1 and "batches no longer move the centres" in said[0], said
    assert caught[0].category.__name__ == "ConvergenceWarning"
    moved = sum(np.sum((X[model.labels_ == c].mean(axis=0) - model.cluster_centers_[c]) ** 2)
                for c in range(8))
    assert abs(model.report_.residual * X.var(axis=0).mean() - moved) <= 1e-9 * moved
