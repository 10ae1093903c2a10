"""Generalised linear models of targets that are all equal: the best constant fits them as well as anything does, so that a run ends where it
begins, and the deviance is 0 but for rounding, and never negative."""
import json
import subprocess

import pytest

FAMILIES = {
    "gaussian": (), "poisson": (), "gamma": (), "inverse-gaussian": (), "binomial": (),
    "tweedie 1.5": ("--variance-power", 1.5), "tweedie 3": ("--variance-power", 3), "negative-binomial": ("--alpha", 0.7),
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
        chosen = ["--target", "y", "--family", family.split()[0], *FAMILIES[family], "--link", link, "--device", "cpu", "-o", model]
        made = json.loads(run(tool, "glm", file, *chosen, "--json", "--quiet").stdout)
        assert made["converged"] and made["iterations"] == 0, (link, made)
        assert 0 <= made["metrics"]["deviance"] <= 1e-12 and 0 <= made["metrics"]["null_deviance"] <= 1e-12, (link, made)
        verified = run(tool, "verify", model, file, "--quiet")
        assert verified.returncode == 0, (link, verified.stdout)
