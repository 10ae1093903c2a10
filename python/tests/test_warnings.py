"""Python warns where the tool does: at the user's line, in parameters' words, and of nothing that is not so."""
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
    """What a call returns, and its warnings; each points at this file."""
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
    for model in (kiln.LogisticRegression(C=np.inf, **CPU), kiln.GeneralizedLinearRegressor("binomial", **CPU),
                  kiln.GeneralizedLinearRegressor("binomial", link="probit", **CPU)):
        fitted, caught = heard(lambda model=model: model.fit(X, y.astype(float)))
        assert [warning.category for warning in caught] == [ConvergenceWarning], caught
        assert "separated but for ties" in str(caught[0].message) and f"{inside.sum()} of {len(x)} rows" in str(caught[0].message)
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


@pytest.mark.parametrize("family", [dict(family="poisson"), dict(family="negative-binomial", parameter=0.5), dict(family="tweedie", parameter=1.5)])
def test_groups_of_zeros(family):
    rng, x, inside, X = groups()
    counts = rng.poisson(np.exp(1 + 0.3 * x)).astype(float)
    model = kiln.GeneralizedLinearRegressor(**family, **CPU)
    fitted, caught = heard(lambda: model.fit(X, np.where(inside, 0, counts)))
    assert list(fitted.report_.warnings) == ["zeros"] and f"{inside.sum()} of {len(x)} rows" in str(caught[0].message)
    one = np.where(inside, 0, counts)
    one[np.flatnonzero(inside)[0]] = 1
    assert heard(lambda: model.fit(X, one))[1] == []
    assert heard(lambda: model.set_params(alpha=0.01).fit(X, np.where(inside, 0, counts)))[1] == []
    fitted, _ = heard(lambda: kiln.PoissonRegressor(**CPU).fit(X, np.zeros(len(x))))
    assert list(fitted.report_.warnings) == ["one-sided"]


def separated(rows):
    """Whether some direction lowers no row and raises one, by a linear programme."""
    scale = np.abs(rows).max(axis=0)
    rows = rows / np.where(scale > 0, scale, 1)
    found = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=[(-1, 1)] * rows.shape[1], method="highs")
    return -found.fun > 1e-7


def test_a_linear_programme_agrees():
    """Small problems at random, half of them with an optimum at infinity."""
    rng, said = np.random.default_rng(5), []
    for _ in range(60):
        m, n = int(rng.integers(10, 120)), int(rng.integers(1, 5))
        X = np.where(rng.random(n) < 0.5, rng.normal(size=(m, n)), rng.random((m, n)) < rng.choice([0.04, 0.2, 0.5], n))
        y = rng.random(m) < 1 / (1 + np.exp(-2 * X @ rng.normal(size=n)))
        if y.all() or not y.any():
            continue
        model, _ = heard(lambda: kiln.LogisticRegression(C=np.inf, **CPU).fit(X, y))
        said.append(bool(model.report_.warnings))
        assert said[-1] == separated(np.column_stack([X, np.ones(m)]) * np.where(y, 1, -1)[:, None])
    assert 10 < sum(said) < len(said) - 10


def test_no_word_about_usual_data():
    for data in (load_breast_cancer(), load_iris(), load_wine()):
        X = StandardScaler().fit_transform(data.data)
        for model in (kiln.LogisticRegression(**CPU), kiln.LinearSVC(**CPU), kiln.KMeans(3, random_state=0, **CPU)):
            assert heard(lambda model=model, X=X, y=data.target: model.fit(X, y))[1] == []
    X, y = load_diabetes(return_X_y=True)
    for model in (kiln.LinearRegression(**CPU), kiln.Ridge(**CPU), kiln.GeneralizedLinearRegressor("gamma", **CPU),
                  kiln.PoissonRegressor(alpha=0, **CPU)):
        assert heard(lambda model=model: model.fit(X, y))[1] == []
    assert heard(lambda: kiln.LogisticRegression(C=np.inf, **CPU).fit(X, y > 140))[1] == []


def test_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X = np.column_stack([X, X.sum(axis=1)])
    y = rng.normal(size=40)
    for model, name in ((kiln.LinearRegression(**CPU), "alpha of kiln.Ridge"), (kiln.Ridge(0.0, **CPU), "(alpha)"),
                        (kiln.GeneralizedLinearRegressor(**CPU), "(alpha)")):
        fitted, caught = heard(lambda model=model: model.fit(X, y))
        assert list(fitted.report_.warnings) == ["rank"] and "2 of 3" in str(caught[0].message) and name in str(caught[0].message)
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
    assert score <= 100 / 150 and "50 of 150 rows" in str(caught[0].message) and caught[0].category is UserWarning
    assert heard(lambda: model.score(X[:100], y[:100]))[1] == []


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
    for model in (kiln.LogisticRegression(max_iter=1, **CPU), make_pipeline(StandardScaler(), kiln.LogisticRegression(max_iter=1, **CPU)),
                  kiln.LogisticRegressionCV(Cs=2, cv=3, max_iter=1, **CPU), kiln.NMF(2, max_iter=1, random_state=0, **CPU),
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
    cases = [(lambda: kiln.GeneralizedLinearRegressor("tweedie", **CPU).fit(X, y), "(parameter)"),
             (lambda: kiln.GeneralizedLinearRegressor("negative-binomial", **CPU).fit(X, y), "(parameter)"),
             (lambda: kiln.GeneralizedLinearRegressor(link="power", **CPU).fit(X, y), "(link_power)"),
             (lambda: kiln.TweedieRegressor(power=0.5, **CPU).fit(X, y), "(power)"),
             (lambda: kiln.LogisticRegression(tol=-1, **CPU).fit(X, X[:, 0] > 0), "tol is -1"),
             (lambda: kiln.KMeans(2, max_iter=-1, **CPU).fit(X), "max_iter is -1"),
             (lambda: kiln.GeneralizedLinearRegressor(standard_errors=True, alpha=1, **CPU).fit(X, y), "alpha must be 0"),
             (lambda: kiln.pagerank(scipy.sparse.eye(2, format="csr"), damping=3, device="cpu"), "damping is 3, but must be in [0, 1]"),
             (lambda: kiln.ALS(2, alpha=-2, implicit=True, **CPU).fit(counts), "alpha is -2"),
             (lambda: kiln.ALS(2, steps=-2, **CPU).fit(counts), "steps is -2"),
             (lambda: kiln.NMF(2, prior="gamma", shape=-1, **CPU).fit(counts), "shape is -1"),
             (lambda: kiln.LatentDirichletAllocation(2, doc_topic_prior=-1, **CPU).fit(counts), "doc_topic_prior is -1"),
             (lambda: online(learning_decay=3), "learning_decay is 3"),
             (lambda: online(learning_offset=-3), "learning_offset is -3")]
    for call, part in cases:
        with pytest.raises(kiln.ArgumentError) as raised:
            call()
        assert part in str(raised.value) and "kiln_" not in str(raised.value) and "_options" not in str(raised.value)
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
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert printed[0] in ("UserWarning", "ConvergenceWarning") and printed[1] == "<string>"
