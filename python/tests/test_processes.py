"""kiln.processes under mpirun, where there is one and the plug-in lies beside the tool."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import kiln
X = np.random.default_rng(0).normal(size=(5000, 8))
y = X @ np.arange(8.0)
with kiln.processes() as where:
    if where:
        model = kiln.Ridge(1e-6).fit(kiln.matrix(X, where), y)
        print("found", np.allclose(model.coef_, np.arange(8), atol=1e-4))
print("end")
"""


def test_processes(tool):
    plugins = sorted(pathlib.Path(tool).resolve().parent.glob("libkiln-*.so"))
    found = [(plugin, shutil.which(f"mpirun.{plugin.stem.removeprefix('libkiln-')}")
              or shutil.which("mpirun")) for plugin in plugins]
    if not found or not found[-1][1]:
        pytest.skip("there is no MPI")
    plugin, mpirun = found[-1]
    done = subprocess.run([mpirun, "-n", "2", sys.executable, "-c", PROGRAM], text=True, capture_output=True,
                          timeout=120, check=False, env=dict(os.environ, KILN_MPI_PATH=str(plugin),
                                                             OMPI_ALLOW_RUN_AS_ROOT="1",
                                                             OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                   OMPI_MCA_rmaps_base_oversubscribe="1"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("found True") == 1 and done.stdout.count("end") == 2, done.stdout
