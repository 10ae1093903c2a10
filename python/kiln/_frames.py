"""Frames whose columns are not all numbers, as estimators take them."""
from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from ._arrays import Matrix, device
from ._columns import as_table
from ._dlpack import on_cuda
from ._library import DataError, c_name, check, ffi, lib, struct, text
from ._read import data_warnings, from_table, host_copy, namesakes
from ._words import speaking


def as_column(values: Any) -> Any:
    """Targets, weights or groups as NumPy takes them: a column of cuDF, and a table of one column that is no
    array, such as a relation of DuckDB, come through pyarrow; others are as they are."""
    if type(values) is np.ndarray or values is None or isinstance(values, (str, Matrix)) or on_cuda(values):
        return values
    if hasattr(values, "to_arrow"):
        try:
            return np.asarray(values)
        except TypeError:  # cuDF copies nothing to the host unasked
            values = values.to_arrow()
    if hasattr(values, "__array__"):
        return values
    table = as_table(values)
    if table is None:
        return values
    import pyarrow

    columns = [column.to_numpy() for column in pyarrow.table(table).columns]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def all_numbers(frame: Any) -> bool:
    """Whether scikit-learn makes an array of numbers of it: frames of pandas and polars may hold text,
    categories and dates besides."""
    if hasattr(frame, "dtypes") and hasattr(frame, "__array__"):
        return all(_is_number(kind) for kind in getattr(frame.dtypes, "values", frame.dtypes))
    return False


def _is_number(kind: Any) -> bool:
    if hasattr(kind, "is_numeric"):  # of polars, which has it as a method; Boolean is none of its numbers
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    return bool(getattr(kind, "_is_numeric", getattr(kind, "kind", "O") in "biuf"))


def model_of(schema: str) -> Any:
    """A kiln_model that encodes tables as this schema says."""
    made = ffi.new("kiln_model **")
    check(lib.kiln_model_create(made, b"linreg"))
    model = ffi.gc(made[0], lib.kiln_model_free)
    check(lib.kiln_model_set_text(model, b"schema", schema.encode()))
    return model


def encoded(frame: Any, schema: str | None, *, texts: dict[str, str | None] | None = None,
            silent: str | None = None, **options: Any) -> tuple[Any, list[str], str]:
    """X, the names of its columns, and the schema, of a frame: as kiln.read has it, a feature for each level
    of text. With a schema the columns that it names, as they were then: a level that it does not know is 0 in
    all of its column's features. options, texts: further fields of kiln_read_options; silent: warnings with
    these words are not told."""
    kept = {name: ffi.new("char[]", c_name(value, name)) for name, value in (texts or {}).items()
            if value is not None}
    made = struct("kiln_read_options", **{"type": lib.KILN_F64, "tables": lib.KILN_FILE_CSV, **options,
                                          **kept})
    if schema is not None:
        model = model_of(schema)
        made.model = model
    where = device("cpu")
    with speaking(reader="encoder" if "missing" in options else "estimator"):
        data = from_table(frame, where, made)
        data_warnings(data, silent)
    X = host_copy(lib.kiln_data_X(data), where, data)
    names = [text(lib.kiln_data_feature_name(data, j)) for j in range(X.shape[1])]
    if schema is None:
        namesakes(names)
    return X, names, text(lib.kiln_data_schema(data))


def numbers_by_name(frame: Any, wanted: Any, count: int) -> Any:
    """The columns of a table of numbers by these names, in any order; `count` as they are where the names are
    None. None: it has text."""
    X, names, schema = encoded(frame, None)
    if any(column["kind"] == "text" for column in json.loads(schema or "{}").get("columns", ())):
        return None
    if wanted is None or list(wanted) == names:
        if X.shape[1] != count:
            raise DataError(f"X has {X.shape[1]} features, but {count} features are expected")
        return X
    known = set(names)
    for said, missing in (("lacks the column", [name for name in wanted if name not in known]),
                          ("has a column that was not there in fit,", [name for name in names
                                                                       if name not in set(wanted)])):
        if missing:
            raise DataError(f"the table {said} {str(missing[0])!r}")
    place = {name: j for j, name in enumerate(names)}
    return X[:, [place[name] for name in wanted]]


def with_names(message: str, names: Any) -> str:
    """A message of the library's about "column 3 of X", with the column's name."""
    def named(found: re.Match[str]) -> str:
        place = int(found.group(1))
        return f"column {str(names[place])!r} of X" if place < len(names) else found.group()

    said = re.sub(r"column (\d+) of X\b", named, message) if names is not None else message
    return said if said == message else re.sub(r" \(columns count from 0\)", "", said)
