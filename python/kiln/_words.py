"""What libkiln says, in the words of those who call it from Python: parameters for a struct's fields, and the
user's line for a warning."""
from __future__ import annotations

import contextlib
import re
import sys
import threading
import warnings
from typing import Iterator, Mapping

# This thread has: .names, the parameters of the estimator or function that it is in, by the library's fields;
# .table, the name of the file that a table in memory was; .reader, who reads it, one of _READERS;
# .counted, whether the caller gave columns by an index, from 0, which the library counts from 1
_said = threading.local()

_PARAMETERS = {"tolerance": "tol", "max_iterations": "max_iter", "restarts": "n_init", "seed": "random_state",
               "no_intercept": "fit_intercept", "batch": "batch_size", "balanced": "class_weight",
               "personalize": "personalize"}
_READ = {"target", "features", "ignore", "target_file", "model", "weights", "offset", "groups", "categorical",
         "numeric", "missing", "missing_words", "source", "weight"}
# By who reads a table: how an option of reading is written there, and the ways to take missing values.
_READERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "read": ("{}", ("drop", "mean", "indicator", "nan")), "encoder": ("{}", ("mean", "indicator", "nan")),
    "estimator": ("kiln.TableEncoder({}) in a pipeline", ("mean",))}
# A table in memory has no header, and lies in no file.
_OF_A_TABLE = (("of the file", "of the table"), ("which the file lacks", "which the table lacks"),
               ("give the file the header that the training data had", "name them as in the training data"),
               ("the header has", "the table has"),
               ("value '' in (.*?): missing", r"the value in \1 is missing"))
# the tool's options in hints, as they are written in Python
_OPTIONS = ((r"--device (\w[\w:.*]*)", r"device='\1'"), (r"--type f(32|64)", r"float\1"), ("--type", "dtype"),
            ("leave --map out", "read it into memory by kiln.read"),
            (r"\(--memory\)", "(memory)"), (r" \(--map\)", ""), ("--target-file( FILE)?", "target_file"),
            (r"--(source|weight|target(?= says it))(?![\w-])", r"\1="),
            (r"--(\w+) comes too late", r"\1= comes too late"), (r"--format (\w+)", r"format='\1'"),
            (r"--family (\w+)", r"family='\1'"), ("--checkpoint", "kiln.checkpoint"),
            ("--resume", "resume=True"), ("--mpi", "kiln.processes()"),
            ("--warm-start", "warm_start=True"), (", or 0 for the default", ""),
            (r" \(kiln_read_options\.\w+\)", ""), ("kiln info lists the levels; they", "levels"),
            (r"'kiln (devices|doctor)'", r"kiln.\1()"),
            (r"kiln_read_options.unseen zero\|reference takes.*",
             "handle_unknown='ignore' or 'reference' takes it"))
_OF_THE_TOOL = re.compile(r"(^|\W)--\w|kiln_\w|\bkiln (info|kernels|recommend|logreg|svm|explain)\b")
_OUTSIDE = {"kiln", "sklearn", "joblib", "contextlib"}  # packages whose lines a user did not write


@contextlib.contextmanager
def speaking(names: Mapping[str, str] | None = None, **how: str) -> Iterator[None]:
    """Within the block, messages use these names of parameters, and tell of tables as `how` says: table,
    reader."""
    outer = dict(vars(_said))
    vars(_said).update({**({"names": names} if names else {}), **how})
    try:
        yield
    finally:
        vars(_said).clear()
        vars(_said).update(outer)


def _parameter(found: re.Match[str]) -> str:
    field = found.group("field")
    name: str = getattr(_said, "names", {}).get(field) or _PARAMETERS.get(field, field)
    return name


def _option(found: re.Match[str]) -> str:
    """An option of reading with its value as Python has it: missing='mean' or 'indicator'."""
    field, value = found.group("field"), (found.group("value") or "").strip()
    form, ways = _READERS[getattr(_said, "reader", "read")]
    if field == "missing" and value:
        named = value.split("|")
        value = " or ".join(repr(way) for way in ways if way in named or len(named) > 2)
    if field not in _READ or (found.group("value") and not value):
        return found.group()
    return form.format(f"{field}={value or '...'}") if value or form != "{}" else field


def without_header(message: str) -> str:
    """A text about a file's columns, of a table in memory."""
    for of_a_file, meant in _OF_A_TABLE:
        message = re.sub(of_a_file, meant, message)
    return message


def of_table(message: str) -> str:
    """A message about a table in memory: its rows, which count from 0, for lines of a file."""
    found = re.match(r"\(table\)(?::(\d+))?: ", message)
    if found is None:
        return message
    said = re.sub(r"\bline (\d+)", lambda line: f"row {int(line[1]) - 1}",
                  without_header(message[found.end():]))
    name = getattr(_said, "table", "")
    if found[1] is None or re.search("is not a column|needs a column|columns? that the model", said):
        return f"{name}: {said}" if name else said
    return f"row {int(found[1]) - 1} (from 0) of {name or 'the table'}: {said}"


def words(message: str) -> str:
    """A message of the library's, without the names of its functions and structs."""
    message = re.sub(r"(^|: )kiln_\w+: ", r"\1", message)
    message = message.replace("--allow-nonfinite", "kiln_read_options.missing nan")
    message = re.sub(r"kiln_read_options\.(?P<field>\w+)(?P<value> '[^']*'| (?:drop|mean|indicator|nan)\b"
                     r"(?:\|\w+)*)?", _option, message)
    message = re.sub(r"kiln_(?!read)[a-z]+_options\.(?P<field>\w+)", _parameter, message)
    for option, meant in _OPTIONS:
        message = re.sub(option, meant, message)
    if getattr(_said, "counted", ""):
        message = re.sub(r"(so that no \w+ can be |(?:target|source|weight) ')(\d+)",
                         lambda found: found[1] + str(int(found[2]) - 1), message)
    return re.sub(r"give its number, from 1 to (\d+)",
                  lambda found: f"give its index, from 0 to {int(found[1]) - 1}", message)


def advice(hint: str) -> str:
    """The parts of a hint that a Python program can follow: none that name an option of the tool, or a
    function of the library."""
    parts = re.split(r"(; |, or )", words(hint))
    kept = [(mark, part) for mark, part in zip(["", *parts[1::2]], parts[::2])
            if not _OF_THE_TOOL.search(part)]
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
