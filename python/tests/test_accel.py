"""scikit-learn's classes on Kiln: the same numbers, the same classes, and a table that says what ran where."""
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import sklearn.cluster
import sklearn.linear_model
import sklearn.svm
from kiln import accel
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler


@pytest.fixture
def installed():
    accel.calls.clear()
    accel.install()
    yield accel.calls
    accel.uninstall()


def regressors():
    linear = sklearn.linear_model
    return [linear.LinearRegression(), linear.Ridge(2.0), linear.PoissonRegressor(tol=1e-10, max_iter=10000),
            linear.GammaRegressor(tol=1e-10, max_iter=10000), linear.TweedieRegressor(power=1.5, tol=1e-10, max_iter=10000)]


@pytest.mark.parametrize("model", regressors(), ids=lambda model: type(model).__name__)
def test_regressors(model):
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    weights = np.random.default_rng(0).uniform(1, 2, len(y))
    theirs = clone(model).fit(X, y, weights)
    accel.calls.clear()
    accel.install()
    try:
        ours = clone(model).fit(X, y, weights)
    finally:
        accel.uninstall()
    assert accel.calls[-1].where.startswith("kiln")
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)


def test_classifiers(installed):
    X, y = load_iris(return_X_y=True)
    model = sklearn.linear_model.LogisticRegression(C=0.7).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3) and model.score(X, y) > 0.95
    sparse = scipy.sparse.csr_matrix(X)
    assert sklearn.svm.LinearSVC(fit_intercept=False).fit(sparse, y > 0).score(sparse, y > 0) > 0.9
    assert [call.where.split()[0] for call in installed] == ["kiln", "kiln"]


def test_kmeans(installed):
    X, _ = load_breast_cancer(return_X_y=True)
    model = sklearn.cluster.KMeans(4, n_init=3, random_state=0).fit(X)
    assert (model.predict(X) == model.labels_).all() and model.transform(X).shape == (len(X), 4)
    assert installed[-1].where.startswith("kiln")


def test_what_kiln_has_not_falls_back(installed):
    X, y = load_diabetes(return_X_y=True)
    assert (sklearn.linear_model.LinearRegression(positive=True).fit(X, y).coef_ >= 0).all()
    sklearn.svm.LinearSVC().fit(X, y > 100)
    with pytest.raises(ValueError, match="NaN"):
        sklearn.linear_model.Ridge().fit(np.full_like(X, np.nan), y)
    assert [call.where for call in installed] == ["scikit-learn"] * 2
    assert installed[0].why == "positive=True" and "intercept" in installed[1].why


def test_a_script_runs_unchanged(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nfrom sklearn.datasets import load_iris\nfrom sklearn.linear_model import LogisticRegression\n"
                      "print(LogisticRegression().fit(*load_iris(return_X_y=True)).score(*load_iris(return_X_y=True)), sys.argv[1])\n")
    done = subprocess.run([sys.executable, "-m", "kiln.accel", script, "word"], capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[0]) > 0.95 and done.stdout.split()[1] == "word"
    assert "LogisticRegression.fit" in done.stderr and "kiln cpu" in done.stderr
