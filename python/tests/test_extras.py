"""A package that is not installed is named with the extra of kiln-ml that brings it, and another distribution
that has a package `kiln` is told of."""
import pathlib
import re
import subprocess
import sys
import warnings

import kiln
import pytest
from conftest import ROOT
from kiln._extras import _EXTRAS, MissingPackageError, needed

# Without what the extras bring, before any name is loaded: each lambda is a thing that a user asks for.
PROGRAM = """
import sys
for name in {absent!r}:
    sys.modules[name] = None
import numpy as np
import kiln

class Frame:
    columns = ["a"]
    def __dataframe__(self):
        pass

for ask in (lambda: kiln.Ridge, lambda: kiln.accel.install(), lambda: kiln.plot.convergence(None),
            lambda: kiln.pagerank(np.eye(3)), lambda: kiln.to_onnx, lambda: kiln.read("t.parquet"),
            lambda: kiln.read(Frame()), lambda: kiln.distributed.dask.fit(None, None),
            lambda: kiln.distributed.ray.fit(None, None),
            lambda: kiln._formula.parts("y ~ x", None)):
    import kiln._formula, kiln.distributed.dask, kiln.distributed.ray
    try:
        ask()
    except ImportError as error:
        assert isinstance(error, kiln.UnsupportedError) and error.hint in str(error), error
        print(error)
print(kiln.mmchain(np.eye(2), [1.0, 2.0]), kiln.read({data!r}, target="arr_delay", device="cpu").X.shape)
"""


def test_what_is_not_installed_is_named(tmp_path):
    absent = sorted(_EXTRAS)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    data = str(ROOT / "data" / "flights.csv.gz")
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(absent=absent, data=data)], text=True,
                          cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    wanted = [("kiln.Ridge needs SciPy", "sklearn"), ("kiln.accel needs scikit-learn", "sklearn"),
              ("kiln.plot needs scikit-learn", "sklearn"), ("a graph needs SciPy", "sklearn"),
              ("kiln.to_onnx needs SciPy", "sklearn"), ("t.parquet, a Parquet file, needs pyarrow", "arrow"),
              ("a Frame needs pyarrow", "arrow"), ("kiln.distributed.dask needs dask.distributed", "dask"),
              ("kiln.distributed.ray needs Ray", "ray"),
              ("a formula needs formulaic", "formula")]
    assert lines[:-1] == [f"{said}: pip install 'kiln-ml[{extra}]'" for said, extra in wanted]
    assert lines[-1] == "[1. 2.] (65470, 126)"


def test_pictures_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"kiln.plot needs matplotlib: pip install 'kiln-ml\[plot\]'"):
        kiln.plot.rank_distribution([1.0])


def test_a_frame_without_pandas(monkeypatch):
    X, y = [[1.0], [2.0], [4.0]], [1.0, 3.0, 2.0]
    summary = kiln.LinearRegression(device="cpu").fit(X, y).inference(X, y).summary()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match="a frame of a summary needs pandas: pip install pandas$"):
        assert summary.frame is None


def test_a_version_that_lacks_something(tmp_path):
    (tmp_path / "sklearn").mkdir()
    for name in ("__init__", "base"):
        (tmp_path / "sklearn" / f"{name}.py").touch()
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kiln; kiln.Ridge"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    said = r"kiln.Ridge needs a newer scikit-learn \(cannot import name '\w+' from 'sklearn.*\): pip install "
    assert re.search(said + r"'kiln-ml\[sklearn\]'$", done.stderr, re.M), done.stderr


def test_each_extra_is_there():
    project = (pathlib.Path(ROOT) / "pyproject.toml").read_text()
    extras = re.search(r"^\[project.optional-dependencies\]\n(.*?)\n\n", project, re.M | re.S).group(1)
    assert {extra for _, extra in _EXTRAS.values() if extra} <= set(re.findall(r"^(\w+) = ", extras, re.M))
    # what these bring is of use to estimators alone
    whole = set(re.findall(r'^(\w+) = \["kiln-ml\[sklearn\]", "', extras, re.M))
    assert whole >= {"plot", "formula", "onnx", "dask", "ray"}


def test_what_an_installed_package_lacks_is_no_missing_extra(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as raised:
        needed("half_there", "this")
    assert not isinstance(raised.value, MissingPackageError)


def test_another_distribution_of_this_name(tmp_path, monkeypatch):
    (tmp_path / "kiln").mkdir()
    (tmp_path / "kiln_ml-0.2.0.dist-info").mkdir()
    (tmp_path / "kiln_ml_kernels_cu13-0.2.0.dist-info").mkdir()
    monkeypatch.setattr(kiln, "__file__", str(tmp_path / "kiln" / "__init__.py"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kiln._warn_of_another_kiln()
    (tmp_path / "kiln-0.1.egg-info").mkdir()
    with pytest.warns(RuntimeWarning, match=r"beside kiln-ml \(kiln-0.1.*\).*pip uninstall kiln kiln-ml"):
        kiln._warn_of_another_kiln()
