"""Frames whose columns are not all numbers, as estimators take them."""
from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ._arrays import Matrix, device, names_of
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


def has_text(schema: str) -> bool:
    """Whether the table that a schema is of has columns of text."""
    return any(column["kind"] == "text" for column in json.loads(schema or "{}").get("columns", ()))


def numbers_of(frame: Any, wanted: Any, count: int) -> Any:
    """The columns of a table of numbers, which have these names in this order; None: there are `count`
    without. The result is None where the table has text."""
    X, names, schema = encoded(frame, None)
    if has_text(schema):
        return None
    if wanted is not None:
        check_names(names, wanted, "the table", "a table of numbers")
    if X.shape[1] != count:
        raise DataError(f"X has {X.shape[1]} features, but {count} features are expected")
    return X


def places(names: Any, wanted: Any, table: str, first: str) -> list[int]:
    """Where the columns of these names are among `names`; an error where there are others. table, first: how
    the error calls the table, and when the wanted names were there."""
    place = {name: j for j, name in enumerate(names)}
    if len(place) != len(names):
        twice = next(name for j, name in enumerate(names) if place[name] != j)
        raise DataError(f"{table} has two columns of the name {str(twice)!r}")
    for said, missing in (("lacks the column", [name for name in wanted if name not in place]),
                          (f"has a column that was not there {first},", [name for name in names
                                                                         if name not in set(wanted)])):
        if missing:
            raise DataError(f"{table} {said} {str(missing[0])!r}")
    return [place[name] for name in wanted]


def check_names(names: Any, wanted: Any, table: str = "X", kind: str = "a kiln.Matrix") -> None:
    """Refuses columns that keep their places by other names than those of fit, or in another order, as
    scikit-learn does with frames. table, kind: how errors call what has them."""
    places(names, wanted, table, "in fit")
    for j, (name, was) in enumerate(zip(names, wanted)):
        if name != was:
            raise DataError(f"column {j} of {table} is {str(name)!r}, but was {str(was)!r} in fit: the "
                            f"columns of {kind} must be in the order of fit")


def numeric_batch(frame: Any, table: str) -> tuple[Any, Any]:
    """The rows of a frame of numbers, in float32 or float64, and its columns' names; None: numbers are their
    names. table: how errors call it."""
    if all_numbers(frame):
        return (check_array(frame, dtype=[np.float64, np.float32], ensure_all_finite=False,
                            ensure_min_samples=0), names_of(frame))
    if hasattr(frame, "dtypes") and hasattr(frame, "__array__"):
        kinds = getattr(frame.dtypes, "values", frame.dtypes)
        name, kind = next((name, kind) for name, kind in zip(frame.columns, kinds) if not _is_number(kind))
        _refuse(table, name, kind)
    import pyarrow

    frame = frame if isinstance(frame, pyarrow.RecordBatch) else pyarrow.table(frame)
    columns = []
    for field, column in zip(frame.schema, frame.columns):
        kind = field.type
        if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
                or pyarrow.types.is_decimal(kind) or pyarrow.types.is_boolean(kind)):
            _refuse(table, field.name, kind)
        found = np.asarray(column)
        columns.append(found.astype(np.float64) if found.dtype == object else found)
    return np.column_stack(columns), np.array(frame.schema.names, object)


def _refuse(table: str, name: Any, kind: Any) -> None:
    raise DataError(f"{table}: the column {str(name)!r} is of {kind}, but rows of a stream are numbers: "
                    "kiln.TableEncoder().fit(a_frame).transform(each) makes numbers of text; make numbers of "
                    "dates, such as days since the first")


def with_names(message: str, names: Any) -> str:
    """A message of the library's about "column 3 of X", with the column's name."""
    def named(found: re.Match[str]) -> str:
        place = int(found.group(1))
        return f"column {str(names[place])!r} of X" if place < len(names) else found.group()

    said = re.sub(r"column (\d+) of X\b", named, message) if names is not None else message
    return said if said == message else re.sub(r" \(columns count from 0\)", "", said)
