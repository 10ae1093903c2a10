"""Files and tables in memory as arrays."""
from __future__ import annotations

import ctypes
import glob
import os
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ._arrays import Device, Matrix, device as open_device
from ._columns import FORMATS, INDEX, as_table, columns_of, is_columnar, stored
from ._extras import missing
from ._joint import current
from ._library import (ArgumentError, DataError, KilnError, UnsupportedError, c_name, check, ffi, lib, struct,
                       text)
from ._load import label_array, open_model
from ._words import advice, of_table, speaking, warn, words as told


_ROLES = {"weights": lib.KILN_COLUMN_WEIGHTS, "offset": lib.KILN_COLUMN_OFFSET,
          "groups": lib.KILN_COLUMN_GROUPS}


class Data(NamedTuple):
    """A file's content; arrays are in host memory."""

    X: Any
    y: Any
    feature_names: list[str] | None
    warnings: list[str]
    weights: Any = None
    offset: Any = None
    groups: Any = None
    roles: dict[str, str] | None = None  # names of the columns of weights, offset, groups

    def __repr__(self) -> str:
        shown = shapes(self, "X", "y", "weights", "offset", "groups", "feature_names")
        return f"Data({shown}; {len(self.warnings)} warnings)"


def shapes(data: Any, *fields: str) -> str:
    """These fields of a tuple, shapes in place of numbers and the first of many names."""
    shown = []
    for name in fields:
        values = getattr(data, name)
        if isinstance(values, list):
            first = ", ".join(map(repr, values[:3]))
            shown.append(f"{name}=[{first}{', ...' if len(values) > 3 else ''}]")
        elif values is not None:
            entries = f", {values.nnz:,} entries" if hasattr(values, "tocsr") else ""
            shown.append(f"{name}={' x '.join(f'{size:,}' for size in values.shape)} {values.dtype}{entries}")
    return "; ".join(shown)


def read(path: Any, *, target: str | int | None = None, dtype: Any = "float64", features: Any = None,
         ignore: Any = None, target_file: Any = None, model: Any = None, weights: str | None = None,
         offset: str | None = None, groups: str | None = None, categorical: Any = None,
         numeric: Any = None, missing: str | None = None, missing_words: str | None = None,
         reference: Any = None, interact: Any = None, columns: Any = None, format: str | None = None,
         part: tuple[int, int] | None = None, parts: bool = False, source: str | int | None = None,
         weight: str | int | None = None, undirected: bool = False, device: str | Device | None = None,
         mapped: bool = False) -> Data:
    """Reads LIBSVM, CSV, Matrix Market, .npy, .npz, edge lists, each also with .gz or .zst, Parquet and
    Feather or Arrow files through pyarrow, into arrays; and tables in memory.

    path: a file, several of the same columns in a list or by a pattern such as "day-*.csv", whose rows follow
    each other, or a table in memory: what exports the Arrow C stream interface (`__arrow_c_stream__`), as
    frames of pandas and polars, relations of DuckDB, pyarrow's tables and readers and nanoarrow's streams do,
    or the dataframe interchange protocol. A table, and a Parquet or Feather file, is read as the CSV file
    with its columns would be, but that a text such as NA or None is text there: such tables have nulls.

    target: a CSV file's column by name; of columns without names, as in .npy, an index: 0 the first, -1 the
    last (a text counts from 1, as the tool does); features, ignore: names of columns, in a list or separated
    by commas; target_file: a file with y; model: a model file, as whose training data a table's columns are
    to be encoded. A target in text is an array of its names; so is one of codes, such as 007, which numbers
    would rewrite; whole numbers beyond 2^53 are int64. categorical, numeric: columns that are text, or
    numbers, whatever they look like, targets among them; reference: the level of a column that gets no
    feature, as {"colour": "red"} or "colour=red"; interact: pairs of text columns, as "colour:floor", of
    which each pair of levels that occurs is one more feature. weights, offset, groups: columns that are no
    features but the rows' weights, offset and groups. missing: "error", "drop", "mean" or "indicator", which
    fill with means of all rows, or "nan", which keeps NaN in X, for a pipeline that fills in each fold of a
    cross-validation by the rows that train; missing_words: further words for a missing value.

    columns: the only columns that are looked at; of a Parquet file others are not read at all. format: the
    file's format, where its name and content do not say it. part: (i, n), i from 0: the i-th of n parts of
    the rows of Parquet and Feather files, of as many rows each, of which nothing else is read. parts: this
    process's share of the files, one after the other, of those that kiln.distributed.join() has brought
    together; of fewer Parquet or Feather files than processes its part of the rows. Means and levels of text
    are those of the share. device: X is a kiln.Matrix on that device.
    mapped: X is a kiln.Matrix that stays in its file, or lies in a temporary one where it cannot, as of CSV
    and LIBSVM, so that it need not fit into memory; y, weights, offset and groups are arrays.

    source, weight: with one of them a file is a list of links, or of ratings with format="ratings". The
    column with the node that a link comes from, or the user, is source, that with the node it leads to, or
    the item, target, and that with the link's weight, or the rating, weight: each by its name in the header,
    or by an index as target. undirected: links of a list lead both ways.
    """
    kinds = {"float32": lib.KILN_F32, "float64": lib.KILN_F64}
    if str(dtype) not in kinds:
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    counted = any(isinstance(one, (int, np.integer)) for one in (target, source, weight))
    target, source, weight = (_column(one, name) for one, name in ((target, "target"), (source, "source"),
                                                                   (weight, "weight")))
    ways = {None: lib.KILN_MISSING_DEFAULT, "error": lib.KILN_MISSING_ERROR, "drop": lib.KILN_MISSING_DROP,
            "mean": lib.KILN_MISSING_MEAN, "indicator": lib.KILN_MISSING_INDICATOR,
            "nan": lib.KILN_MISSING_DEFAULT}
    if missing not in ways:
        raise ArgumentError(f"missing must be error, drop, mean, indicator or nan, got {missing!r}")
    roles = [name for name in (target, weights, offset, groups) if name is not None]
    wanted = columns_of(columns, roles)
    if wanted is not None and features is None:
        features = [name for name in wanted if name not in roles]
    words = {"target": target, "features": listed(features), "ignore": listed(ignore),
             "target_file": target_file and str(target_file), "weights": weights,
             "offset": offset, "groups": groups, "categorical": listed(categorical),
             "numeric": listed(numeric), "missing_words": missing_words, "reference": reference_of(reference),
             "interact": pairs_of(interact),
             "source": source, "weight": weight}
    texts = {name: ffi.new("char[]", c_name(value, name)) for name, value in words.items()
             if value is not None}
    options = struct("kiln_read_options", type=kinds[str(dtype)], text_targets=lib.KILN_TARGETS_TEXT,
                     missing=ways[missing], allow_nonfinite=missing == "nan", undirected=undirected, **texts)
    if source is None and weight is None and (texts or model is not None):  # rows, and no list of links
        options.tables = lib.KILN_FILE_CSV
    if model is not None:
        trained = open_model(model)
        options.model = trained
    where = open_device("cpu" if device is None else device)
    options.map = mapped
    if parts:
        path, part = _share(path, format, part)
    with speaking(counted="from 0" if counted else ""):
        data, path = _read(path, where, options, format, wanted, part)
    X = Matrix.within(lib.kiln_data_X(data), where, data) if mapped or device is not None else host_copy(
        lib.kiln_data_X(data), where, data)
    if mapped:
        X._file = path
    y = host_copy(lib.kiln_data_y(data), where, data)
    names = [text(lib.kiln_data_feature_name(data, j))
             for j in range(X.shape[1])] if lib.kiln_data_feature_name(data, 0) else None
    with speaking(table="" if path == "the table" else os.fsdecode(path)):
        warnings = [*data_warnings(data), *namesakes(names)]
    if (format is None and not texts and model is None and names and not os.fsdecode(path).endswith(".edges")
            and lib.kiln_data_format(data) == lib.KILN_FILE_EDGES
            and all(name and name.isdigit() for name in names[:100])):
        warnings.append(f"{os.fsdecode(path)}: numbers without names are read as links between vertices; "
                        "format='csv' reads columns, and format='edges' links without this warning")
        warn(warnings[-1])
    found = (host_copy(one(data), where, data) for one in (lib.kiln_data_weights, lib.kiln_data_offset))
    s, o = (None if column is None else column[:, 0] for column in found)
    for name, column in (("target", y), ("weights", s), ("offset", o)):
        if missing == "nan" and column is not None and not np.isfinite(column).all():
            raise DataError(f"the {name} of row {int(np.argwhere(~np.isfinite(column))[0, 0])} (from 0) of "
                            f"{path} is missing, or no finite number")
    of = lib.kiln_data_groups(data)
    numbers = np.array(ffi.unpack(of, X.shape[0]), np.int64) if of and X.shape[0] else None
    columns = {role: text(lib.kiln_data_role_name(data, number)) for role, number in _ROLES.items()}
    return Data(X, None if y is None else _targets(data, y), names, warnings, s, o, numbers,
                {role: name for role, name in columns.items() if name})


def _column(said: str | int | None, name: str) -> str | None:
    """A column as the library takes it, which counts from 1."""
    if isinstance(said, bool):
        raise ArgumentError(f"{name} must be a column's name or index, not a bool")
    return str(said + (said >= 0)) if isinstance(said, (int, np.integer)) else said


def links_of_file(path: Any, said: dict[str, Any], *, type: int = lib.KILN_F64,
                  **options: int) -> tuple[Any, Any]:
    """The matrix of a file of links or ratings, whose columns are said, on the host, and the kiln_data."""
    texts = {name: _column(one, name) for name, one in said.items()}
    columns = {name: ffi.new("char[]", c_name(one, name)) for name, one in texts.items() if one is not None}
    where, made = open_device("cpu"), ffi.new("kiln_data **")
    where.call(lib.kiln_data_read, made, where.pointer, c_name(path),
               struct("kiln_read_options", type=type, **options, **columns))
    data = where.turn.own(lib.kiln_data_free, made[0])
    data_warnings(data)
    return host_copy(lib.kiln_data_X(data), where, data), data


def _read(source: Any, where: Device, options: Any, format: str | None, columns: list[str] | None,
          part: tuple[int, int] | None) -> tuple[Any, Any]:
    """The kiln_data of a source, and what messages call it."""
    paths = isinstance(source, (str, bytes, os.PathLike, list, tuple))
    table = None if paths else source if hasattr(source, "__arrow_c_stream__") else as_table(source)
    links = [name for name in ("source", "weight", "undirected") if getattr(options, name)]
    said = f"{links[0]}= is of files of links or ratings in text" if links else ""
    if table is None:
        files = _files(source)
        if links and is_columnar(files[0], format):
            raise ArgumentError(f"{said}, and {os.fspath(files[0])} is a table of columns")
        if not is_columnar(files[0], format):
            if part is not None:
                raise ArgumentError("part= is of Parquet and Feather files; kiln.processes() reads parts of "
                                    "others")
            return _read_files(files, where, options, format), files[0]
        name = os.fsdecode(files[0]) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        return from_table(stored(files, format, columns, part), where, options, name), name
    if links:
        raise ArgumentError(f"{said}, and this is a table in memory: kiln.pagerank, kiln.hits and "
                            "kiln.read_ratings take frames")
    for name, given in (("format", format), ("part", part)):
        if given is not None:
            raise ArgumentError(f"{name}= is of files, and the source is a table in memory")
    return from_table(table, where, options), "the table"


def _files(source: Any) -> list[Any]:
    """The files that a list, a pattern or a path names."""
    if isinstance(source, (list, tuple)):
        if not source:
            raise ArgumentError("the list of files is empty")
        return [os.fspath(one) for one in source]
    name = os.fspath(source)
    if isinstance(name, str) and any(sign in name for sign in "*?[") and not os.path.exists(name):
        found = sorted(glob.glob(name))
        if not found:
            raise ArgumentError(f"no file matches the pattern {name!r}")
        return found
    return [name]


def _share(source: Any, format: str | None, part: tuple[int, int] | None) -> Any:
    """This one's files of the processes that have joined, and part of their rows."""
    here = current()
    if here is None:
        raise ArgumentError("parts=True is this process's share of what kiln.distributed.join() has brought "
                            "together, and it has not joined others")
    if part is not None or not isinstance(source, (str, os.PathLike, list, tuple)):
        raise ArgumentError("parts=True is of files, without part=")
    files = _files(source)
    if len(files) < here.size and is_columnar(files[0], format):
        return files, (here.rank, here.size)
    if len(files) < here.size:
        raise ArgumentError(f"{len(files)} files are fewer than the {here.size} processes: write as many, or "
                            "a Parquet file, of which each reads a part")
    begin, end = (len(files) * rank // here.size for rank in (here.rank, here.rank + 1))
    return files[begin:end], None


def _read_files(files: list[Any], where: Device, options: Any, format: str | None) -> Any:
    if format is not None:
        if format not in FORMATS:
            raise ArgumentError(f"format must be one of {sorted(FORMATS)}, got {format!r}")
        options.format = FORMATS[format]
    more = [ffi.new("char[]", c_name(one)) for one in files[1:]]
    listing = ffi.new("char *[]", more)
    if more:
        options.more, options.more_count = listing, len(more)
    made = ffi.new("kiln_data **")
    where.call(lib.kiln_data_read, made, where.pointer, c_name(files[0]), options)
    return where.turn.own(lib.kiln_data_free, made[0])


def listed(names: Any) -> str | None:
    """Names of columns as the library takes them: separated by commas."""
    if names is None or isinstance(names, str):
        return names
    return ",".join(str(name) for name in names)


def pairs_of(pairs: Any) -> str | None:
    """["a:b"] or [("a", "b")] as the library takes it."""
    if pairs is None or isinstance(pairs, str):
        return pairs
    return ",".join(":".join(map(str, pair)) if isinstance(pair, tuple) else str(pair) for pair in pairs)


def reference_of(reference: Any) -> str | None:
    """{"colour": "red"} as the library takes it."""
    if isinstance(reference, dict):
        return ",".join(f"{name}={level}" for name, level in reference.items())
    parts = reference if isinstance(reference, (list, tuple)) else [reference]
    if reference is not None and not all("=" in str(part) for part in parts):
        raise ArgumentError("reference must name a column's level, as {'colour': 'red'} or 'colour=red', got "
                            f"{reference!r}")
    return listed(reference)


def from_table(table: Any, where: Device, options: Any, name: str = "") -> Any:
    """The kiln_data of a table in memory, or of a file whose name messages tell then. The index of pandas
    names rows and is no column, in a table that pyarrow made of a frame neither."""
    if hasattr(table, "reset_index"):
        table = _of_pandas(table)
    elif hasattr(table, "drop_columns"):
        table = table.drop_columns([name for name in table.column_names if INDEX.fullmatch(name)])
    made = ffi.new("kiln_data **")
    try:
        stream = _stream_of(table)
    except ImportError as error:
        raise missing(error, f"a {type(table).__name__}", "pyarrow") from error
    # pyarrow's, of a column of objects: its arguments say which one, and what it found there
    except (TypeError, ValueError) as error:
        raise DataError("a column of the table mixes kinds of values, make it numbers alone or text alone: "
                        + "; ".join(str(part) for part in error.args)) from error
    except NotImplementedError as error:
        raise UnsupportedError("a column of the table is of a type that is not read, make real numbers of it "
                               "or leave it out: " + "; ".join(str(part) for part in error.args)) from error
    try:
        with speaking(table=name):
            where.call(lib.kiln_data_from_arrow, made, where.pointer,
                       ffi.cast("struct ArrowArrayStream *", stream.address), options)
    except KilnError as error:
        error.file, error.line, error.column = name, 0, 0
        raise
    return where.turn.own(lib.kiln_data_free, made[0])


def _of_pandas(frame: Any) -> Any:
    """A frame of pandas as pyarrow exports it: without its index, with names in text, with sparse columns
    filled up, numbers in this machine's order of bytes, and intervals that are categories, as of pandas.cut,
    by their text. Periods, which pyarrow exports as numbers, are the dates that they begin with."""
    frame = frame.reset_index(drop=True)
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"two columns of the table are named {twice!r}; columns are told apart by "
                        "name; rename one")
    for name, kind in frame.dtypes.items():
        said = str(getattr(getattr(kind, "categories", None), "dtype", kind))
        if said.startswith("period[") and not hasattr(kind, "categories"):
            frame = frame.assign(**{name: frame[name].dt.to_timestamp()})
        if said.startswith("interval[") and hasattr(kind, "categories"):
            frame = frame.assign(**{name: frame[name].cat.rename_categories(str)})
        elif said.startswith("Sparse["):
            frame = frame.assign(**{name: frame[name].sparse.to_dense()})
        elif isinstance(kind, np.dtype) and not kind.isnative:
            frame = frame.assign(**{name: frame[name].astype(kind.newbyteorder("="))})
    return frame


def namesakes(names: list[str] | None) -> list[str]:
    """Warns of features of one name, as of a column c with the level x and a column c=x."""
    if names is None or len(set(names)) == len(names):
        return []
    twice = next(name for name, count in Counter(names).items() if count > 1)
    said = f"two features are called {twice!r}, a column's level and another column; rename the latter"
    warn(said)
    return [said]


def data_warnings(data: Any, silent: str | None = None) -> list[str]:
    """What reading warned of, which is told, too, but for what has the words that are silent."""
    warnings: list[str] = []
    hint = ffi.new("const char **")
    while line := lib.kiln_data_warning(data, len(warnings), hint):
        remedy = advice(text(hint[0]))
        warnings.append(of_table(told(text(line))) + (f"; {remedy}" if remedy else ""))
        if silent is None or silent not in warnings[-1]:
            warn(warnings[-1])
    return warnings


class _Capsule:
    """What another package exports. address: of the stream, which is there as long as this object."""

    def __init__(self, table: Any) -> None:
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        self._capsule = table.__arrow_c_stream__()
        self.address = int(pointer_of(self._capsule, b"arrow_array_stream"))


def _stream_of(table: Any) -> Any:
    try:
        return _Capsule(table)
    except ImportError:
        if not hasattr(table, "reset_index"):
            raise
        from ._pandas import Stream

        return Stream(table)


def _targets(data: Any, y: Any) -> Any:
    """y as fit() takes it: of one column a vector, and of text its names; a class that the model does not
    know is None."""
    columns = []
    for j in range(y.shape[1]):
        classes: list[str] = []
        while name := lib.kiln_data_class_name(data, j, len(classes)):
            classes.append(text(name))
        codes = y[:, j].astype(np.int64) if classes else None
        known = codes is not None and (codes >= 0).all()
        columns.append(y[:, j] if codes is None else label_array(classes)[codes] if known
                       else np.array([*classes, None], object)[codes])
    if len(columns) == 1:
        return columns[0]
    return y if all(column.dtype == y.dtype for column in columns) else np.array(columns, object).T


def host_copy(pointer: Any, where: Device, data: Any) -> Any:
    """A matrix that the data own as an array on the host: of a dense one on the CPU its memory, which lives
    as long as the array, else a copy."""
    if not pointer:
        return None
    matrix = Matrix.within(pointer, where, data)
    if where.name != "cpu" or matrix.sparse or 0 in matrix.shape:
        return matrix.numpy()
    memory = struct("kiln_memory")
    where.call(lib.kiln_matrix_lend, memory, ffi.cast("kiln_matrix *", pointer))
    kept = ffi.gc(ffi.cast("char *", memory.values), lambda _, data=data: None)
    values = np.frombuffer(ffi.buffer(kept, matrix.nnz * matrix.dtype.itemsize), matrix.dtype)
    return values.reshape(matrix.shape)
