"""What libkiln says, in the words of those who call it from Python: parameters for a struct's fields, and the
user's line for a warning."""
from __future__ import annotations

import contextlib
import re
import sys
import threading
import warnings
from typing import Iterator, Mapping

# .names: the parameters of the estimator or function that this thread is in, by the library's fields
_said = threading.local()

_PARAMETERS = {"tolerance": "tol", "max_iterations": "max_iter", "restarts": "n_init", "seed": "random_state",
               "no_intercept": "fit_intercept", "batch": "batch_size", "balanced": "class_weight",
               "personalize": "personalize"}
_READ = {"target", "features", "ignore", "target_file", "model", "weights", "offset", "groups", "categorical",
         "numeric", "missing", "missing_words", "source", "weight"}
# the tool's options in hints, as they are written in Python
_OPTIONS = ((r"--device (\w[\w:.*]*)", r"device='\1'"), (r"--type f(32|64)", r"float\1"), ("--type", "dtype"),
            (r"\(--memory\)", "(memory)"), (r" \(--map\)", ""), ("--target-file( FILE)?", "target_file"),
            (r"--(source|weight|target(?= says it))(?![\w-])", r"\1="),
            ("--allow-nonfinite", "missing='nan'"), (r"--format (\w+)", r"format='\1'"),
            (r"--family (\w+)", r"family='\1'"), ("--checkpoint", "kiln.checkpoint"),
            ("--resume", "resume=True"), ("--mpi", "kiln.processes()"),
            ("--warm-start", "warm_start=True"), (", or 0 for the default", ""),
            (r" \(kiln_read_options\.\w+\)", ""))
_OUTSIDE = {"kiln", "sklearn", "joblib", "contextlib"}  # packages whose lines a user did not write


@contextlib.contextmanager
def speaking(names: Mapping[str, str] | None) -> Iterator[None]:
    """Within the block, messages use these names of parameters."""
    outer = getattr(_said, "names", {})
    _said.names = names or outer
    try:
        yield
    finally:
        _said.names = outer


def _parameter(found: re.Match[str]) -> str:
    algorithm, field = found.group("algorithm", "field")
    if algorithm == "read" and field not in _READ:
        return found.group()
    name: str = getattr(_said, "names", {}).get(field) or _PARAMETERS.get(field, field)
    return name


def _values(found: re.Match[str]) -> str:
    """Values of a parameter as Python has them: missing="mean" or "indicator"."""
    return f"{found[1]}={' or '.join(repr(value) for value in found[2].split('|'))}"


def words(message: str) -> str:
    """A message of the library's, without the names of its functions and structs."""
    message = re.sub(r"(^|: )kiln_\w+: ", r"\1", message)
    message = re.sub(r"kiln_(?P<algorithm>[a-z]+)_options\.(?P<field>\w+)", _parameter, message)
    message = re.sub(r"\b(missing) ((?:drop|mean|indicator)(?:\|\w+)*)", _values, message)
    for option, meant in _OPTIONS:
        message = re.sub(option, meant, message)
    return message


def advice(hint: str) -> str:
    """The parts of a hint that a Python program can follow: none that name an option of the tool, or a
    function of the library."""
    parts = re.split(r"(; |, or )", words(hint))
    kept = [(mark, part) for mark, part in zip(["", *parts[1::2]], parts[::2])
            if not re.search(r"(^|\W)--\w|kiln_\w", part)]
    return "".join(mark + part for mark, part in kept).lstrip(";, ").removeprefix("or ").removeprefix("else ")


def convergence() -> type[Warning]:
    """scikit-learn's class where that is loaded."""
    kind: type[Warning] = UserWarning
    if "sklearn" in sys.modules:
        from sklearn.exceptions import ConvergenceWarning as kind  # type: ignore[no-redef]
    return kind


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """A warning at the line of the user's that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] in _OUTSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)
