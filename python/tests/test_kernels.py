"""Packs of kernels, built ahead: what there is to build, and what is refused. The packs themselves are tested
with stubs in C."""
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

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


def test_the_wheel_of_kernels(tmp_path):
    """A pack that python/kernels has wrapped lies beside the library, and is found: with a driver's stub
    and without NVRTC the GPU opens, which it does for nothing else. pip lets a group write what it installs
    where the user's umask does; a pack that more may write than the library is refused."""
    library = pathlib.Path(os.environ.get("KILN_LIBRARY", "/nowhere"))
    stubs, root = library.parent / "tests/stubs/whole", pathlib.Path(__file__).parents[2]
    if not (stubs / "libcuda.so.1").exists():
        pytest.skip("there is no stub of the driver beside the library")
    pytest.importorskip("hatchling.build")
    shutil.copy(root / "CMakeLists.txt", tmp_path)
    folder, package = tmp_path / "python" / "kernels", tmp_path / "site" / "kiln"
    shutil.copytree(root / "python" / "kernels", folder, ignore=shutil.ignore_patterns("*.pack"))
    package.mkdir(parents=True)
    shutil.copy(library, package / "libkiln.so.0")
    found = {"KILN_LIBRARY": str(package / "libkiln.so.0"), "LD_LIBRARY_PATH": str(stubs),
             "KILN_NVRTC_PATH": "", "KILN_CACHE_DIR": str(tmp_path / "cache"), "KILN_KERNEL_PACK": ""}
    pack = str(folder / "kiln-kernels.pack")
    build = f"print(kiln.build_kernels({pack!r}, 'sm_90', ['rows f32 -DGROUP=64']))"
    assert in_a_process(build, **found) == "1\n"
    subprocess.run([sys.executable, "-c", "from hatchling.build import build_wheel; build_wheel('.')"],
                   cwd=folder, check=True, capture_output=True)
    wheel, = folder.glob("kiln_ml_kernels_cu13-*-py3-none-any.whl")
    opens = ("try:\n    kiln.Device('cuda')\n    print('opened')\n"
             "except kiln.KilnError as error:\n    print(error)")
    found["KILN_NVRTC_PATH"] = "/nowhere/libnvrtc.so.13"
    assert "NVRTC" in in_a_process(opens, **found)
    with zipfile.ZipFile(wheel) as archive:
        archive.extract("kiln/kiln-kernels.pack", package.parent)
    found_pack = package / "kiln-kernels.pack"
    for of_pack, of_library, used in ((0o644, 0o755, True), (0o664, 0o775, True), (0o664, 0o755, False),
                                      (0o666, 0o775, False)):
        found_pack.chmod(of_pack)
        (package / "libkiln.so.0").chmod(of_library)
        said = in_a_process(opens, **found)
        assert (said == "opened\n") == used and ("others may write" in said) != used, said
