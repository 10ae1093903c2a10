"""Converged is a promise in f32, too."""
import json
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

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
    """Of a variance power near 2 a row's loss is ten times what its derivative comes from."""
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
