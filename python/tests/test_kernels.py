"""Packs of kernels, built ahead: what there is to build, and what is refused. The packs themselves are tested
with stubs in C."""
import os
import subprocess
import sys

import pytest

import kiln


def in_a_process(code, **environment):
    done = subprocess.run([sys.executable, "-c", "import kiln\n" + code], env={**os.environ, **environment},
                          capture_output=True, text=True, check=True)
    return done.stdout


def test_what_was_built_is_listed(tmp_path):
    opencl = [row["name"] for row in kiln.devices() if row["name"].startswith("opencl") and row["usable"]]
    folder = {"KILN_CACHE_DIR": str(tmp_path)}
    assert in_a_process("print(kiln.kernels('opencl'), kiln.kernels())", **folder) == "[] []\n"
    if not opencl:
        pytest.skip("no OpenCL device builds kernels here")
    work = f"import numpy as np; kiln.Ridge(device={opencl[0]!r}).fit(np.eye(5, 3), np.arange(5.0))\n"
    lines = in_a_process(work + "print(*kiln.kernels('opencl'), sep='\\n')", **folder).splitlines()
    assert lines == sorted(set(lines)) and any(line.startswith("combine f64") for line in lines)


def test_what_cannot_be_built(tmp_path):
    for programs, architectures, why in ((["no f32"], "sm_90", "NVRTC|does not have"),
                                         ([], "ninety", "no architecture|NVRTC")):
        with pytest.raises(kiln.KilnError, match=why):
            kiln.build_kernels(tmp_path / "a.pack", architectures, programs)
    assert not list(tmp_path.iterdir())
