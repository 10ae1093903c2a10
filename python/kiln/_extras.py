"""Packages that Kiln takes where they are installed, and the extra of kiln-ml that brings each."""
from __future__ import annotations

import importlib
from typing import Any

from ._library import UnsupportedError

# the module -> what people call the package, and the extra (pyproject.toml), "": none
_EXTRAS = {
    "sklearn": ("scikit-learn", "sklearn"),
    "scipy": ("SciPy", "sklearn"),
    "matplotlib": ("matplotlib", "plot"),
    "pandas": ("pandas", ""),
    "pyarrow": ("pyarrow", "arrow"),
    "formulaic": ("formulaic", "formula"),
    "onnx": ("onnx", "onnx"),
    "dask": ("dask", "dask"),
    "distributed": ("dask.distributed", "dask"),
    "ray": ("Ray", "ray"),
    "mpi4py": ("mpi4py", "mpi"),
}


class MissingPackageError(UnsupportedError, ImportError):
    """A package that is not installed; `hint` is the command that installs it."""


def needed(module: str, who: str) -> Any:
    """A module of a package that `who` needs."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error, who) from error


def missing(error: ImportError, who: str, module: str = "") -> ImportError:
    """The error where one of the packages is not there, or too old (module: which, if the error does not say
    it); any other error is returned as it is."""
    module = module or (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return error
    package, extra = _EXTRAS[module]
    hint = f"pip install 'kiln-ml[{extra}]'" if extra else f"pip install {module}"
    if error.msg.startswith("cannot import name"):
        package = f"a newer {package} ({error.msg})"
    made = MissingPackageError(f"{who} needs {package}: {hint}")
    made.hint, made.name = hint, module
    return made
