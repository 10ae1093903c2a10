"""Frames whose columns are not all numbers, as estimators take them."""
from __future__ import annotations

import re
from typing import Any

from ._arrays import device
from ._library import check, ffi, lib, struct, text
from ._machine import _borrowed, data_warnings, from_table


def is_frame(X: Any) -> bool:
    """Whether X is a table in memory whose columns have names."""
    return hasattr(X, "__arrow_c_stream__") and (hasattr(X, "columns") or hasattr(X, "column_names"))


def all_numbers(frame: Any) -> bool:
    """Whether scikit-learn makes an array of numbers of it: frames of pandas and polars may hold text,
    categories and dates besides."""
    if hasattr(frame, "dtypes"):
        return all(_is_number(kind) for kind in getattr(frame.dtypes, "values", frame.dtypes))
    return False


def _is_number(kind: Any) -> bool:
    if hasattr(kind, "is_numeric"):  # of polars, which has it as a method; Boolean is none of its numbers
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    return bool(getattr(kind, "_is_numeric", getattr(kind, "kind", "O") in "biuf"))


def encoded(frame: Any, schema: str | None) -> tuple[Any, list[str], str]:
    """X, the names of its columns, and the schema, of a frame: as kiln.read has it, a feature for each level
    of text. With a schema the columns that it names, as they were then: a level that it does not know is 0 in
    all of its column's features."""
    options = struct("kiln_read_options", type=lib.KILN_F64, tables=lib.KILN_FILE_CSV)
    if schema is not None:
        made = ffi.new("kiln_model **")
        check(lib.kiln_model_create(made, b"linreg"))
        model = ffi.gc(made[0], lib.kiln_model_free)
        check(lib.kiln_model_set_text(model, b"schema", schema.encode()))
        options.model = model
    where = device("cpu")
    data = from_table(frame, where, options)
    data_warnings(data)
    X = _borrowed(lib.kiln_data_X(data), where, data)
    return X, [text(lib.kiln_data_feature_name(data, j))
               for j in range(X.shape[1])], text(lib.kiln_data_schema(data))


def with_names(message: str, names: Any) -> str:
    """A message of the library's about "column 3 of X", with the column's name."""
    def named(found: re.Match[str]) -> str:
        place = int(found.group(1))
        return f"column {str(names[place])!r} of X" if place < len(names) else found.group()

    said = re.sub(r"column (\d+) of X\b", named, message) if names is not None else message
    return said if said == message else re.sub(r" \(columns count from 0\)", "", said)
