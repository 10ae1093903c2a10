"""Tables in memory, and Parquet and Feather files through pyarrow, as streams of Arrow's record batches."""
from __future__ import annotations

import os
import re
from typing import Any, Iterator

import numpy as np

from ._arrays import Matrix, is_graph
from ._extras import needed
from ._library import ArgumentError, DataError, FileError, c_name, lib, text

FORMATS: dict[str, int] = {}  # of the library, by their names
while pointer := lib.kiln_format_name(len(FORMATS)):
    FORMATS[text(pointer)] = len(FORMATS)

INDEX = re.compile(r"__index_level_\d+__")  # how pyarrow calls an index of pandas without a name
_COLUMNAR = {"parquet": "parquet", "feather": "ipc", "arrow": "ipc"}  # Kiln's names, and pyarrow's
_MARKS = {b"PAR1": "parquet", b"ARRO": "feather"}
_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "arrow",
            ".ipc": "arrow"}


def as_table(X: Any) -> Any:
    """X as a table in memory that exports the Arrow C stream interface; None: it is none, but an array.

    Tables of polars, pyarrow, DuckDB and nanoarrow, and readers, which are read once, export it themselves.
    Lazy frames are collected, frames of cuDF come to the host by their to_arrow, and what offers the
    dataframe interchange protocol alone comes through pyarrow."""
    if type(X) is np.ndarray or isinstance(X, Matrix) or hasattr(X, "tocsr") or is_graph(X):
        return None
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        X = X.collect()
    if hasattr(X, "__arrow_c_stream__"):
        table = hasattr(X, "columns") or hasattr(X, "column_names") or not hasattr(X, "__array__")
        return X if table else None  # a column
    if hasattr(X, "to_arrow") and hasattr(X, "columns"):
        return (X.reset_index(drop=True) if hasattr(X, "reset_index") else X).to_arrow()
    if hasattr(X, "__dataframe__"):
        return needed("pyarrow.interchange", f"a {type(X).__name__}").from_dataframe(X)
    return None


def columns_of(columns: Any, roles: list[str]) -> list[str] | None:
    """The columns that are looked at: those that are named, and those with a role."""
    if columns is None:
        return None
    named = columns.split(",") if isinstance(columns, str) else [str(name) for name in columns]
    return [*named, *(name for name in roles if name not in named)]


def is_columnar(path: Any, format: str | None) -> bool:
    """Whether pyarrow is to read the file."""
    return _kind(path, format) in _COLUMNAR


def _kind(path: Any, format: str | None) -> str | None:
    """"parquet", "feather" or "arrow": as it is said, by the file's first bytes, or by its name."""
    if format is not None:
        if format not in FORMATS and format not in _COLUMNAR:
            raise ArgumentError(f"format must be one of {sorted([*FORMATS, *_COLUMNAR])}, got {format!r}")
        return format
    path = c_name(path)
    ending = _ENDINGS.get(os.path.splitext(os.fsdecode(path))[1].lower())
    if os.path.isdir(path):
        return ending or "parquet"
    if not os.path.isfile(path):  # what comes through a pipe can be read once
        return ending
    try:
        with open(path, "rb") as file:
            return _MARKS.get(file.read(4), ending)
    except OSError:
        return ending


def stored(files: list[Any], format: str | None, columns: list[str] | None,
           part: tuple[int, int] | None) -> Any:
    """A reader of the rows of Parquet or Feather files, or of the i-th of n parts of them."""
    kind = _kind(files[0], format) or ""
    needs = f"{files[0]}, a {kind.capitalize()} file,"
    pyarrow, in_files = needed("pyarrow", needs), needed("pyarrow.dataset", needs)
    try:
        dataset = in_files.dataset(files[0] if len(files) == 1 else files, format=_COLUMNAR[kind],
                                          partitioning="hive")
    except FileNotFoundError as error:
        raise FileError(f"{error}: there is no such file") from error
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{files[0]}: this is no {kind.capitalize()} file that pyarrow reads: "
                        f"{error}") from error
    names = dataset.schema.names
    for name in columns or ():
        if name not in names:
            raise ArgumentError(f"{files[0]} has no column {name!r}; its columns are {', '.join(names[:20])}"
                                + (", ..." if len(names) > 20 else ""))
    chosen = [name for name in names
              if (name in columns if columns is not None else not INDEX.fullmatch(name))]
    _same_columns(dataset, columns)
    schema = pyarrow.schema([dataset.schema.field(name) for name in chosen])
    if part is None:
        return dataset.scanner(columns=chosen).to_reader()
    return pyarrow.RecordBatchReader.from_batches(schema, _rows(dataset, chosen, *_bounds(part, dataset)))


def _same_columns(dataset: Any, columns: list[str] | None) -> None:
    """Refuses files one of which lacks a column of the first one, or has one more."""
    first: list[str] | None = None
    for file in dataset.get_fragments():
        names = [name for name in file.physical_schema.names
                 if (not INDEX.fullmatch(name) if columns is None else name in columns)]
        first = names if first is None else first
        for name in first:
            if name not in names:
                raise DataError(f"{file.path}: {len(names)} columns, the first file has {len(first)}; "
                                f"{name!r} is not among them")
        for name in names:
            if name not in first:
                raise DataError(f"{file.path}: {len(names)} columns, the first file has {len(first)}; "
                                f"{name!r} is not among its")


def _bounds(part: Any, dataset: Any) -> tuple[int, int]:
    """The rows of a part: from, to."""
    if (not isinstance(part, (tuple, list)) or len(part) != 2
            or not all(isinstance(number, (int, np.integer)) for number in part)
            or not 0 <= part[0] < part[1]):
        raise ArgumentError(f"part must be (i, n) with 0 <= i < n, got {part!r}")
    rows = dataset.count_rows()
    return part[0] * rows // part[1], (part[0] + 1) * rows // part[1]


def _rows(dataset: Any, columns: list[str], first: int, last: int) -> Iterator[Any]:
    """Batches with the rows [first, last) of a dataset. Row groups of Parquet, and files, that have none of
    them are not read."""
    at = 0
    for file in dataset.get_fragments():
        for piece in file.split_by_row_group() if hasattr(file, "split_by_row_group") else [file]:
            groups = getattr(piece, "row_groups", None)  # count_rows() of one counts its file's
            rows = piece.count_rows() if groups is None else sum(group.num_rows for group in groups)
            if at + rows > first and at < last:
                inside = at
                for batch in piece.to_batches(schema=dataset.schema, columns=columns):
                    begin, end = max(first - inside, 0), min(last - inside, batch.num_rows)
                    if begin < end:
                        yield batch.slice(begin, end - begin)
                    inside += batch.num_rows
            at += rows
