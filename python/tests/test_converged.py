"""Converged is a promise in f32, too."""
import json
import subprocess

import numpy as np
import pytest


@pytest.mark.parametrize("seed", [1, 4, 10])
def test_a_row_whose_curvature_falls_to_0_in_a_step(seed, tool, tmp_path):
    """A step takes the predictor of a row of 1e12 from about -40 to beyond -103, where its curvature is 0 in f32. Only the
    penalty holds the column from then on, and the model that the step went by knows nothing of that."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(13, 2))
    X[4, 1] = 1e12
    y = (rng.random(13) < 0.5).astype(float)
    y[4] = 0
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)

    def fit(type_name):
        run = [tool, "logreg", tmp_path / "X.npy", "--target-file", tmp_path / "y.npy", "--no-intercept", "--l2", "100", "--type", type_name]
        done = subprocess.run([*run, "-o", tmp_path / "m.kiln", "--device", "cpu", "-q", "--json"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    single, double = fit("f32"), fit("f64")
    assert single["converged"] and double["converged"]
    gain = 13 * np.log(2) - double["objective"]
    assert single["objective"] - double["objective"] < 2e-4 * gain + 1e-6 * double["objective"]
