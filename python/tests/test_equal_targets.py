"""Generalised linear models of targets that are all equal: the best constant fits them as well as anything
does, so that a run ends where it begins, and the deviance is 0 but for rounding, and never negative."""

import json
import subprocess

import numpy as np
import pytest

import kiln

FAMILIES = {
    "gaussian": (), "poisson": (), "gamma": (), "inverse-gaussian": (), "binomial": (),
    "tweedie 1.5": ("--variance-power", 1.5), "tweedie 3": ("--variance-power", 3),
    "negative-binomial": ("--alpha", 0.7),
    "beta 5": ("--precision", 5), "beta 0.01": ("--precision", 0.01), "beta 1e4": ("--precision", 1e4),
}
LINKS = ["log", "logit", "probit", "cloglog", "cauchit"]


def run(tool, *arguments):
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("share", [1e-5, 0.123, 0.3, 0.7, 0.999])
def test_equal(tool, tmp_path, family, share):
    file, model = tmp_path / "rows.csv", tmp_path / "m.kiln"
    file.write_text("x,z,y\n" + "".join(f"{i},{i * i % 7},{share!r}\n" for i in range(1, 6)))
    for link in LINKS[family.startswith("beta"):]:
        chosen = ["--target", "y", "--family", family.split()[0], *FAMILIES[family], "--link", link,
                  "--device", "cpu", "-o", model]
        made = json.loads(run(tool, "glm", file, *chosen, "--json", "--quiet").stdout)
        assert made["converged"] and made["iterations"] == 0, (link, made)
        assert 0 <= made["metrics"]["deviance"] <= 1e-12 and 0 <= made["metrics"]["null_deviance"] <= 1e-12, (
            link,
            made,
        )
        verified = run(tool, "verify", model, file, "--quiet")
        assert verified.returncode == 0, (link, verified.stdout)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_targets_at_the_range_s_end_where_weights_count(family, kind):
    """The best constant is at infinity, where the curvature is 0."""
    rng = np.random.default_rng(3)
    y, s = np.zeros(21, kind), rng.integers(1, 4, 21).astype(kind) / 1000
    y[1], s[1] = 1, 0
    with pytest.warns(UserWarning, match="all targets are 0"):
        model = kiln.GeneralizedLinearRegressor(family, alpha=0)
        model.fit(rng.normal(size=(21, 1)).astype(kind), y, sample_weight=s)
