"""Files, and what this machine offers."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import time
from typing import Any, Callable, Iterator, NamedTuple

import numpy as np

from ._arrays import Device, Matrix, device as open_device
from ._functions import batch_of, place
from ._load import label_array, open_model
from ._library import ArgumentError, DataError, c_name, check, ffi, fields, lib, rows, struct, text
from ._words import advice, warn, words as told


class Data(NamedTuple):
    """A file's content; arrays are in host memory."""

    X: Any
    y: Any
    feature_names: list[str] | None
    warnings: list[str]
    weights: Any = None
    offset: Any = None
    groups: Any = None


def read(path: Any, *, target: str | int | None = None, dtype: Any = "float64", features: str | None = None,
         ignore: str | None = None, target_file: Any = None, model: Any = None, weights: str | None = None,
         offset: str | None = None, groups: str | None = None, categorical: str | None = None,
         numeric: str | None = None, missing: str | None = None, missing_words: str | None = None) -> Data:
    """Reads LIBSVM, CSV, Matrix Market, .npy, .npz, edge lists, each also with .gz or .zst, into arrays; and
    tables in memory.

    path: a file, or a table that exports the Arrow C stream interface (`__arrow_c_stream__`), as frames of
    pandas and polars, pyarrow's tables and nanoarrow's streams do: it is read as the CSV file with its
    columns would be.

    target: a CSV file's column by name; of columns without names, as in .npy, an index: 0 the first, -1 the
    last (a text counts from 1, as the tool does); features, ignore: names of columns, separated by commas;
    target_file: a file with y; model: a model file, as whose training data a table's columns are to be
    encoded. A target in text is an array of its names; so is one of codes, such as 007, which numbers would
    rewrite; whole numbers beyond 2^53 are int64. categorical, numeric: columns that are text, or numbers,
    whatever they look like, targets among them. weights, offset, groups: columns that are no features but the
    rows' weights, offset and groups. missing: "error", "drop", "mean" or "indicator", which fill with means
    of all rows, or "nan", which keeps NaN in X, for a pipeline that fills in each fold of a cross-validation
    by the rows that train; missing_words: further words for a missing value.
    """
    kinds = {"float32": lib.KILN_F32, "float64": lib.KILN_F64}
    if str(dtype) not in kinds:
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    if isinstance(target, bool):
        raise ArgumentError("target must be a column's name or index, not a bool")
    if isinstance(target, (int, np.integer)):  # the library counts from 1
        target = str(target + (target >= 0))
    ways = {None: lib.KILN_MISSING_DEFAULT, "error": lib.KILN_MISSING_ERROR, "drop": lib.KILN_MISSING_DROP,
            "mean": lib.KILN_MISSING_MEAN, "indicator": lib.KILN_MISSING_INDICATOR,
            "nan": lib.KILN_MISSING_DEFAULT}
    if missing not in ways:
        raise ArgumentError(f"missing must be error, drop, mean, indicator or nan, got {missing!r}")
    words = {"target": target, "features": features, "ignore": ignore, "target_file": target_file
             and str(target_file), "weights": weights,
             "offset": offset, "groups": groups, "categorical": categorical, "numeric": numeric,
             "missing_words": missing_words}
    texts = {name: ffi.new("char[]", c_name(value, name)) for name, value in words.items()
             if value is not None}
    options = struct("kiln_read_options", type=kinds[str(dtype)], text_targets=lib.KILN_TARGETS_TEXT,
                     missing=ways[missing], allow_nonfinite=missing == "nan", **texts)
    if texts or model is not None:  # rows, and no list of links
        options.tables = lib.KILN_FILE_CSV
    if model is not None:
        trained = open_model(model)
        options.model = trained
    where = open_device("cpu")
    if hasattr(path, "__arrow_c_stream__"):
        data, path = from_table(path, where, options), "the table"
    else:
        made = ffi.new("kiln_data **")
        where.call(lib.kiln_data_read, made, where.pointer, c_name(path), options)
        data = where.turn.own(lib.kiln_data_free, made[0])
    X = _borrowed(lib.kiln_data_X(data), where, data)
    y = _borrowed(lib.kiln_data_y(data), where, data)
    names = [text(lib.kiln_data_feature_name(data, j))
             for j in range(X.shape[1])] if lib.kiln_data_feature_name(data, 0) else None
    warnings = data_warnings(data)
    columns = (_borrowed(part(data), where, data) for part in (lib.kiln_data_weights, lib.kiln_data_offset))
    s, o = (None if column is None else column[:, 0] for column in columns)
    for name, column in (("target", y), ("weights", s), ("offset", o)):
        if missing == "nan" and column is not None and not np.isfinite(column).all():
            raise DataError(f"the {name} of row {int(np.argwhere(~np.isfinite(column))[0, 0])} (from 0) of "
                            f"{path} is missing, or no finite number")
    of = lib.kiln_data_groups(data)
    numbers = np.array(ffi.unpack(of, X.shape[0]), np.int64) if of and X.shape[0] else None
    return Data(X, None if y is None else _targets(data, y), names, warnings, s, o, numbers)


def from_table(table: Any, where: Device, options: Any) -> Any:
    """The kiln_data of a table in memory. The index of pandas names rows and is no column, in a table that
    pyarrow made of a frame neither."""
    if hasattr(table, "reset_index"):
        table = table.reset_index(drop=True)
    elif hasattr(table, "drop_columns"):
        table = table.drop_columns([name for name in table.column_names
                                    if re.fullmatch(r"__index_level_\d+__", name)])
    made = ffi.new("kiln_data **")
    try:
        capsule = table.__arrow_c_stream__()
    # pyarrow's, of a column of objects: its arguments say which one, and what it found there
    except (TypeError, ValueError) as error:
        raise DataError("a column of the table mixes kinds of values, make it numbers alone or text alone: "
                        + "; ".join(str(part) for part in error.args)) from error
    where.call(lib.kiln_data_from_arrow, made, where.pointer,
               ffi.cast("struct ArrowArrayStream *", _pointer_of(capsule)), options)
    return where.turn.own(lib.kiln_data_free, made[0])


def data_warnings(data: Any) -> list[str]:
    """What reading warned of, which is told, too."""
    warnings: list[str] = []
    hint = ffi.new("const char **")
    while line := lib.kiln_data_warning(data, len(warnings), hint):
        remedy = advice(text(hint[0]))
        warnings.append(told(text(line)) + (f"; {remedy}" if remedy else ""))
        warn(warnings[-1])
    return warnings


def _pointer_of(capsule: Any) -> int:
    """The address of the stream that an Arrow capsule holds."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer_of(capsule, b"arrow_array_stream"))


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


def _borrowed(pointer: Any, where: Device, data: Any) -> Any:
    """A copy of a matrix that the data own."""
    if not pointer:
        return None
    made = ffi.new("kiln_matrix **")
    where.call(lib.kiln_matrix_copy, made, where.pointer, lib.KILN_TYPE_DEFAULT, pointer)
    return Matrix.adopt(made[0], where, data).numpy()


@contextlib.contextmanager
def processes(communicator: Any = None, name: str = "cpu", *, threads: int = 0, memory: int = 0,
              deterministic: bool = False) -> Iterator[Device | None]:
    """What mpirun has started as one device, whose processes share the rows of X (docs/mpi.md).

    communicator: mpi4py's, or None for all processes. The first one gets the device; all others work for it
    until it leaves the block, and then get None: `with kiln.processes() as where:`, `if where:
    model.fit(kiln.matrix(X, where), y)`. name: the device of each process, a GPU each for "cuda".
    """
    handle = ffi.new("kiln_processes **")
    check(lib.kiln_processes_join(handle, -1 if communicator is None else communicator.py2f()))
    if not handle[0]:
        yield None
        return
    if lib.kiln_processes_count(handle[0]) == 1:
        warn("kiln.processes() finds one process, this one: `mpirun -n 4 python ...` starts four")
    try:
        yield Device(name, threads=threads, memory=memory, deterministic=deterministic, _processes=handle[0])
    finally:
        lib.kiln_processes_leave(handle[0])


def devices() -> list[dict[str, Any]]:
    """All devices of this machine, usable or not, best first.

    Drivers are asked in this process. Where one crashes, the command `kiln devices` says which (it asks in
    processes of their own), and the environment variable KILN_WITHOUT, "opencl" or "cuda", leaves its kind
    out.
    """
    return rows(lib.kiln_device_list, "kiln_device_info")


def doctor() -> list[dict[str, Any]]:
    """What was looked for on this machine, what was found, and how to get what was not."""
    return rows(lib.kiln_probe_machine, "kiln_probe")


def explain(shape: tuple[int, int], *, nnz: int | None = None, dtype: Any = "float64", passes: int = 1,
            columns: int = 1, thorough: bool = False) -> list[dict[str, Any]]:
    """What passes over a matrix are expected to take on each device, and which one "auto" chooses.

    nnz: entries of a sparse matrix; columns: of what it is multiplied with; thorough measures the devices
    first.
    """
    kinds = {"float32": lib.KILN_F32, "float64": lib.KILN_F64}
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise ArgumentError(f"shape must be the numbers of rows and columns, got {shape!r}")
    if np.dtype(dtype).name not in kinds:
        raise ArgumentError(f"dtype must be one of {sorted(kinds)}, got {dtype!r}")
    work = struct("kiln_work", format=lib.KILN_DENSE if nnz is None else lib.KILN_CSR,
                  type=kinds[np.dtype(dtype).name], rows=shape[0], cols=shape[1], nnz=nnz or 0, k=columns,
                  passes=passes)
    host = open_device("cpu")
    chosen, estimates, count = ffi.new("kiln_device **"), ffi.new("kiln_estimate **"), ffi.new("int64_t *")
    host.call(lib.kiln_device_choose, chosen, estimates, count, host.pointer, work,
              struct("kiln_choose_options", thorough=thorough))
    try:
        return [fields(estimates[0][i]) for i in range(count[0])]
    finally:
        lib.kiln_free(estimates[0])
        if chosen[0] != host.pointer:
            lib.kiln_device_close(chosen[0])


def fastest(where: Device, call: Callable[[], Any], repeats: int) -> float:
    """The least seconds of several calls on a device, after one that counts for nothing."""
    seconds = []
    for _ in range(repeats + 1):
        where.synchronize()
        begin = time.perf_counter()
        call()
        where.synchronize()
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:])


def _work_of(x: Matrix, columns: int) -> Any:
    return struct("kiln_work", format=lib.KILN_CSR if x.sparse else lib.KILN_DENSE,
                  type=lib.kiln_matrix_type(x.pointer), rows=x.shape[0], cols=x.shape[1], nnz=x.nnz,
                  k=columns, passes=1)


# How an operation's plans are listed, and what runs one: arguments of the library's functions.

def _mmchain(x: Matrix, columns: int) -> tuple[Any, Any]:
    y = Matrix(np.ones((x.shape[1], columns), x.dtype), x.device)
    w = Matrix.empty(x.device, (x.shape[1], columns), x.dtype)
    return ((lib.kiln_mmchain_plans, x.device.pointer, _work_of(x, columns)),
            lambda plan: x.device.call(lib.kiln_mmchain_with, plan, w.pointer, x.pointer, ffi.NULL,
                                       y.pointer))


def _sddmm(x: Matrix, columns: int) -> tuple[Any, Any]:
    if not x.sparse:
        raise ArgumentError("sddmm takes a sparse X")
    A, B = (Matrix(np.ones((count, columns), x.dtype), x.device) for count in x.shape)
    made = ffi.new("kiln_matrix **")
    x.device.call(lib.kiln_matrix_like, made, x.pointer, lib.KILN_TYPE_DEFAULT, ffi.NULL)
    P = Matrix.adopt(made[0], x.device, (x, A, B))
    sample = struct("kiln_sample", kind=lib.KILN_SAMPLE_TIMES, S=x.pointer, A=A.pointer, B=B.pointer)
    return ((lib.kiln_sddmm_plans, x.device.pointer, _work_of(x, columns)),
            lambda plan: x.device.call(lib.kiln_sddmm_with, plan, P.pointer, sample))


def _batch_reduce(x: Matrix, columns: int) -> tuple[Any, Any]:
    batch, count = batch_of(x, None)
    result = Matrix.empty(x.device, (count, 1), x.dtype)
    return ((lib.kiln_batch_plans, x.device.pointer, batch, lib.kiln_matrix_type(x.pointer)),
            lambda plan: x.device.call(lib.kiln_batch_reduce_with, plan, result.pointer, lib.KILN_BATCH_SUM,
                                       x.pointer, batch))


def kernels(backend: str = "cuda") -> list[str]:
    """The programs that this version of Kiln has built for devices of a backend ("cuda" or "opencl") and
    keeps in the cache folder, each as "FILE TYPE DEFINES"."""
    out = ffi.new("char **")
    check(lib.kiln_kernels_list(out, backend.encode()))
    try:
        return text(out[0]).splitlines()
    finally:
        lib.kiln_free(out[0])


def build_kernels(path: Any, architectures: Any = None, programs: Any = None, *, threads: int = 0) -> int:
    """Writes a pack: kernels for NVIDIA's GPUs, built ahead of time by NVRTC, for which no GPU is needed; how
    many there are in it.

    architectures: "sm_90" and the like, NVRTC's of sm_75 to sm_120 where none are given; programs: lines as
    `kernels` returns them, where None those; threads: as many as there are processors if 0. KILN_KERNEL_PACK
    names the pack to the library, which also takes kiln-kernels.pack beside itself or in the cache folder.
    """
    of = None if architectures is None else ",".join([architectures] if isinstance(architectures, str)
                                                     else architectures)
    keep = [ffi.NULL if of is None else ffi.new("char[]", c_name(of, "architectures")),
            ffi.new("char[]", c_name(programs if isinstance(programs, str)
                                     else "\n".join(kernels() if programs is None else programs),
                                     "programs"))]
    built = ffi.new("int64_t *")
    check(lib.kiln_kernels_build(c_name(path), struct("kiln_pack_options", architectures=keep[0],
                                                      programs=keep[1], threads=threads), built))
    return int(built[0])


_TUNED = {"mmchain": _mmchain, "sddmm": _sddmm, "batch_reduce": _batch_reduce}


def tune(X: Any, *, operation: str = "mmchain", columns: int = 1, device: str | Device = "auto",
         most: int = 8, repeats: int = 3) -> list[dict[str, Any]]:
    """What an operation on X takes by each of the plans that the device has for it, fastest first.

    operation: "mmchain" with so many columns of y, "sddmm" with factors of so many columns, or
    "batch_reduce", the sum of each row. Each plan has its launch parameters, `chosen` (the one that the
    operation takes), `seconds` as predicted and `measured`. Of many plans the `most` are measured that are
    predicted to be the fastest, and the chosen one. Changes nothing.
    """
    if operation not in _TUNED:
        raise ArgumentError(f"operation must be one of {sorted(_TUNED)}, got {operation!r}")
    x = place(X, device)
    (listing, *of), run = _TUNED[operation](x, columns)
    plans, count = ffi.new("kiln_plan **"), ffi.new("int64_t *")
    x.device.call(listing, plans, count, *of)
    try:
        listed = sorted((plans[0] + i for i in range(count[0])), key=lambda plan: plan.seconds)
        tried = listed[:most] + [plan for plan in listed[most:] if plan.chosen]
        rows = [{**fields(plan[0]), "measured": fastest(x.device, functools.partial(run, plan), repeats)}
                for plan in tried]
        return sorted(rows, key=lambda row: float(row["measured"]))
    finally:
        lib.kiln_free(plans[0])
