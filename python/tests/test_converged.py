"""Converged is a promise in f32, too."""
import itertools
import json
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special

import kiln


@pytest.mark.parametrize("seed", [1, 4, 10])
def test_a_row_whose_curvature_falls_to_0_in_a_step(seed, tool, tmp_path):
    """A step takes the predictor of a row of 1e12 from about -40 to beyond -103, where its curvature is 0 in
    f32. Only the penalty holds the column from then on, and the model that the step went by knows nothing of
    that."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(13, 2))
    X[4, 1] = 1e12
    y = (rng.random(13) < 0.5).astype(float)
    y[4] = 0
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)

    def fit(type_name):
        run = [tool, "logreg", tmp_path / "X.npy", "--target-file", tmp_path / "y.npy", "--no-intercept",
               "--l2", "100", "--type", type_name]
        done = subprocess.run([*run, "-o", tmp_path / "m.kiln", "--device", "cpu", "-q", "--json"],
                              check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    single, double = fit("f32"), fit("f64")
    assert double["converged"]
    # the row's share is e times less in each step, and rounding of f32 may hide the last ones
    if not single["converged"]:
        assert single["stopped_by"] == "stalled"
        return
    gain = 13 * np.log(2) - double["objective"]
    assert single["objective"] - double["objective"] < 2e-4 * gain + 1e-6 * double["objective"]


FAMILIES = {
    "gaussian": [],
    "poisson": [],
    "gamma": [],
    "inverse-gaussian": ["--link", "log"],
    "tweedie": ["--variance-power", "1.5"],
    "negative-binomial": ["--alpha", "1"],
}


def glm(tool, folder, family, X, y, *more):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    run = [tool, "glm", folder / "X.npy", "--target-file", folder / "y.npy", "--family", family,
           *FAMILIES[family], *more]
    done = subprocess.run([*run, "-o", folder / "m.kiln", "--device", "cpu", "-q", "--json"], check=False,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("type_name", ["f32", "f64"])
@pytest.mark.parametrize("level", [np.e, 1, 1000003])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_target_of_one_level_beside_times(family, level, type_name, tool, tmp_path):
    """The constant fits all, and what is left of the gradient is rounding. The loss of a Poisson count of e
    is 0, and says nothing of how large that is."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=200), 1.7e9 + rng.normal(size=200) * 1e7]
    fitted = glm(tool, tmp_path, family, X, np.full(200, float(level)), "--l2", "0.1", "--type", type_name)
    assert fitted["converged"] and fitted["iterations"] <= 1
    assert abs(fitted["metrics"]["deviance"]) < 1e-10 * level**2


def test_a_gradient_that_is_more_than_rounding(tool, tmp_path):
    """A row's loss is ten times what its derivative comes from at a variance power near 2."""
    X = np.array([[0, 2460969.5], [0, 2460631.5], [0, 2460845.5]])
    y, offset = np.array([4.828496, 4.546881, 0]), np.array([-1.291667, -1.212073, 0.632409])
    np.save(tmp_path / "o.npy", offset)
    more = ["--variance-power", "1.9", "--l2", "0.001", "--offset-file", tmp_path / "o.npy"]
    single, double = (glm(tool, tmp_path, "tweedie", X, y, *more, "--type", name) for name in ("f32", "f64"))
    assert double["converged"]
    assert single["iterations"] > 0 and single["objective"] - double["objective"] < 1e-6 * double["objective"]


def test_als_does_not_end_on_a_plateau():
    """Next to a saddle, where one factor has done its work and another has not begun, a sweep gains little
    once: here 3e-4 of the objective after 6e-3, and 7e-3, 2e-2, ... from the second sweep after it on."""
    rng = np.random.default_rng(0)
    R = sp.csr_matrix(np.where(rng.random((12, 18)) < 0.8, 3e4 * rng.random((12, 18)), 0))

    def reached(**more):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kiln.ALS(2, implicit=True, alpha=1.0, l2=1.0, random_state=0, device="cpu",
                            **more).fit(R).report_.objective

    plateau = reached(tol=1e-9, max_iter=6)
    assert plateau - reached(tol=1e-9, max_iter=7) < 1e-3 * plateau  # it is one
    assert reached(tol=5e-4) < 0.97 * plateau


def test_a_path_leaves_rows_of_huge_entries():
    """With l1 alone a model adds to each column a part of what curvature it had at first. A row of 1e12 that
    has left the loss is nearly all of that, and the model then lets its columns hardly move: what it says of
    the objective is nothing."""
    started = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(23, 6))
        X[rng.integers(23), 1] = X[rng.integers(23), 4] = 1e12
        X[:, 2] = X[:, 0] + X[:, 1]
        y = rng.integers(0, 2, 23)
        cold = kiln.LogisticRegression(C=10.0, l1_ratio=1.0, device="cpu", fit_intercept=False).fit(X, y)
        warm = kiln.LogisticRegression(C=1.0, l1_ratio=1.0, device="cpu", fit_intercept=False,
                                       warm_start=True).fit(X, y)
        warm.set_params(C=10.0).fit(X, y)
        started += warm.converged_
        if warm.converged_:
            gain = 23 * np.log(2) - cold.objective_
            assert warm.objective_ - cold.objective_ < 1e-6 * gain, seed
    assert started > 6


def least(family, X, y):
    """The least objective, by Newton's method with 60 digits."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        A = mp.matrix(np.c_[np.ones(len(X)), X].tolist())
        w = mp.matrix(A.cols, 1)
        for _ in range(1 if family == "gaussian" else 60):
            eta = A * w
            mu = eta if family == "gaussian" else mp.matrix([mp.exp(e) for e in eta])
            h = [1] * A.rows if family == "gaussian" else mu
            slope = A.T * mp.matrix([m - v for m, v in zip(mu, y)])
            step = mp.lu_solve(A.T * mp.matrix([[a * h[i] for a in A[i, :]] for i in range(A.rows)]), slope)
            longest = max(abs(e) for e in A * step)
            w -= step * min(1, 2 / longest)
            if longest < 1e-25:
                break
        eta = A * w
        return float(sum((e - v)**2 / 2 if family == "gaussian" else mp.exp(e) - v * e
                         for e, v in zip(eta, y)))


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("size", [1e5, 1e7, 1e10, 1e12])
def test_a_row_that_hides_the_others(family, size, tool, tmp_path):
    """A row of 1e12 makes all columns look like one to their Gram matrix, as to the columns' scales. A fit
    that went by these ended there as converged, and said that columns depend on each other."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    X[7] *= size
    eta = np.clip(X @ [0.3, -0.2, 0.1], -3, 3)
    y = eta + rng.normal(size=40) / 10 if family == "gaussian" else rng.poisson(np.exp(eta)).astype(float)
    y[7] = 2
    result, best = glm(tool, tmp_path, family, X, y, "--l2", "0"), least(family, X, y)
    constant = least(family, X[:, :0], y)
    if result["stopped_by"] != "max_iterations":
        assert result["objective"] - best < (1e-9 if result["converged"] else 1e-6) * (constant - best)
    assert "rank" not in [warning["name"] for warning in result["warnings"]]


@pytest.mark.parametrize("verb", ["linreg", "glm"])
def test_a_row_that_hides_the_others_in_f32(verb, tool, tmp_path):
    """If f32 cannot tell columns apart, the report says that they depend on each other, or no
    "converged"."""
    rng = np.random.default_rng(5)
    for size in [1e4, 1e5, 1e6, 1e7, 1e9]:
        X = rng.normal(size=(40, 3))
        X[7] *= size
        X = X.astype(np.float32)
        y = X @ [0.3, -0.2, 0.1] + rng.normal(size=40) / 10
        y[7] = 2
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        run = [tool, verb, tmp_path / "X.npy", "--target-file", tmp_path / "y.npy", "--l2", "0", "--type",
               "f32"]
        done = subprocess.run([*run, "--device", "cpu", "-q", "--json"], capture_output=True, text=True)
        result = json.loads(done.stdout)
        best, constant = (least("gaussian", A.astype(float), y) for A in (X, X[:, :0]))
        known = "rank" in [warning["name"] for warning in result["warnings"]]
        assert known or not result["converged"] or result["objective"] - best < 1e-4 * (constant - best)


def test_columns_that_depend_on_others_are_told_of(tool, tmp_path):
    """By every linear model without a penalty, two classes or three."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 3))
    X = np.c_[X, X[:, 0] - X[:, 1]]
    np.save(tmp_path / "X.npy", X)
    noise = rng.normal(size=60) * 3
    for verb, y, more in [("linreg", X[:, 0] + noise, []), ("glm", X[:, 0] + noise, []),
                          ("logreg", (X[:, 0] + noise > 0) * 1.0, []),
                          ("logreg", np.digitize(X[:, 0] + noise, [-1, 1]) * 1.0, []),
                          ("svm", (X[:, 0] + noise > 0) * 1.0, []),
                          ("svm", X[:, 0] + noise, ["--regression"])]:
        np.save(tmp_path / "y.npy", y)
        run = [tool, verb, tmp_path / "X.npy", "--target-file", tmp_path / "y.npy", "--l2", "0", *more]
        done = subprocess.run([*run, "--device", "cpu", "--json"], check=True, capture_output=True, text=True)
        assert "rank" in [warning["name"] for warning in json.loads(done.stdout)["warnings"]], (verb, more)
        assert "3 of 4 say all that they do" in done.stderr


@pytest.mark.parametrize("link", ["identity", "log", "inverse", "inverse-squared", "sqrt", "probit", "logit"])
@pytest.mark.parametrize("single", [False, True], ids=["f64", "f32"])
def test_targets_that_are_all_alike(link, single):
    """The rest of the gradient at the best constant is rounding of the mean, in the targets' units."""
    rng = np.random.default_rng(9)
    for target in [0.123, 0.5, 0.7, 0.0123, *rng.random(6)]:
        X, y = rng.normal(size=(20, 2)), np.full(20, target)
        if single:
            X, y = X.astype(np.float32), y.astype(np.float32)
        model = kiln.GeneralizedLinearRegressor("gaussian", link=link, device="cpu").fit(X, y)
        assert model.report_.converged and np.all(model.coef_ == 0)


def test_targets_of_another_precision():
    """Most rows of such a beta regression bend down, or have a curvature far from the expected one."""
    means = {"logit": special.expit, "probit": special.ndtr, "cloglog": lambda eta: -np.expm1(-np.exp(eta))}
    for link, true, given, scale in itertools.product(means, (0.1, 1), (10, 100, 1000), (0.3, 1, 3)):
        rng = np.random.default_rng([0, int(true * 10), int(scale * 10)])
        X = rng.normal(size=(60, 4))
        mean = np.clip(means[link](scale * X @ rng.normal(size=4)), 1e-9, 1 - 1e-9)
        y = np.clip(rng.beta(true * mean, true * (1 - mean)), 1e-12, 1 - 1e-12)
        model = kiln.GeneralizedLinearRegressor("beta", link=link, parameter=given, max_iter=200,
                                                device="cpu").fit(X, y)
        assert model.report_.converged, (link, true, given, scale)


def test_an_expected_curvature_that_is_a_part_of_the_loss_s_own():
    """Steps near the solution are not too long by what the expected curvature lacks."""
    rng = np.random.default_rng(1)
    ended = 0
    for _ in range(20):
        X = rng.normal(size=(20, 2))
        y = np.where(rng.random(20) < 0.5, 1e-12, 1 / (1 + np.exp(-X[:, 0])))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kiln.GeneralizedLinearRegressor("beta", parameter=20, alpha=0.1, device="cpu").fit(X, y)
        ended += model.report_.stopped_by == "stalled"
    assert ended == 0
