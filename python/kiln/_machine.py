"""Files, and what this machine offers."""
from __future__ import annotations

import functools
import time
from typing import Any, Callable, NamedTuple

import numpy as np

from ._arrays import Device, Matrix, device as open_device
from ._functions import place
from ._load import open_model
from ._library import ArgumentError, ffi, fields, lib, rows, struct, text


class Data(NamedTuple):
    """A file's content; arrays are in host memory."""

    X: Any
    y: Any
    feature_names: list[str] | None
    warnings: list[str]


def read(path: Any, *, target: str | None = None, dtype: Any = "float64", features: str | None = None, ignore: str | None = None,
         target_file: Any = None, model: Any = None) -> Data:
    """Reads LIBSVM, CSV, Matrix Market, .npy, .npz, edge lists, each also with .gz or .zst, into arrays.

    target: a CSV file's column; features, ignore: names of columns, separated by commas; target_file: a file with y;
    model: a model file, as whose training data a table's columns are to be encoded. A target in text is an array of its names.
    """
    kinds = {"float32": lib.KILN_F32, "float64": lib.KILN_F64}
    if str(dtype) not in kinds:
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    words = {"target": target, "features": features, "ignore": ignore, "target_file": target_file and str(target_file)}
    texts = {name: ffi.new("char[]", value.encode()) for name, value in words.items() if value is not None}
    options, made = struct("kiln_read_options", type=kinds[str(dtype)], text_targets=1, **texts), ffi.new("kiln_data **")
    if model is not None:
        trained = open_model(model)
        options.model = trained
    where = open_device("cpu")
    where.call(lib.kiln_data_read, made, where.pointer, str(path).encode(), options)
    data = ffi.gc(made[0], lambda pointer: where.turn.free(lib.kiln_data_free, pointer))
    X = _borrowed(lib.kiln_data_X(data), where, data)
    y = _borrowed(lib.kiln_data_y(data), where, data)
    names = [text(lib.kiln_data_feature_name(data, j)) for j in range(X.shape[1])] if lib.kiln_data_feature_name(data, 0) else None
    warnings: list[str] = []
    while line := lib.kiln_data_warning(data, len(warnings), ffi.NULL):
        warnings.append(text(line))
    return Data(X, None if y is None else _targets(data, y), names, warnings)


def _targets(data: Any, y: Any) -> Any:
    """y as fit() takes it: of one column a vector, and of text its names; a class that the model does not know is None."""
    columns = []
    for j in range(y.shape[1]):
        classes: list[str] = []
        while name := lib.kiln_data_class_name(data, j, len(classes)):
            classes.append(text(name))
        codes = y[:, j].astype(np.int64) if classes else None
        known = codes is not None and (codes >= 0).all()
        columns.append(y[:, j] if codes is None else np.array(classes if known else [*classes, None], None if known else object)[codes])
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


def devices() -> list[dict[str, Any]]:
    """All devices of this machine, usable or not, best first."""
    return rows(lib.kiln_device_list, "kiln_device_info")


def doctor() -> list[dict[str, Any]]:
    """What was looked for on this machine, what was found, and how to get what was not."""
    return rows(lib.kiln_probe_machine, "kiln_probe")


def explain(shape: tuple[int, int], *, nnz: int | None = None, dtype: Any = "float64", passes: int = 1, columns: int = 1,
            thorough: bool = False) -> list[dict[str, Any]]:
    """What passes over a matrix are expected to take on each device, and which one "auto" chooses.

    nnz: entries of a sparse matrix; columns: of what it is multiplied with; thorough measures the devices first.
    """
    kinds = {"float32": lib.KILN_F32, "float64": lib.KILN_F64}
    work = struct("kiln_work", format=lib.KILN_DENSE if nnz is None else lib.KILN_CSR, type=kinds[str(dtype)], rows=shape[0],
                  cols=shape[1], nnz=nnz or 0, k=columns, passes=passes)
    host = open_device("cpu")
    chosen, estimates, count = ffi.new("kiln_device **"), ffi.new("kiln_estimate **"), ffi.new("int64_t *")
    host.call(lib.kiln_device_choose, chosen, estimates, count, host.pointer, work, struct("kiln_choose_options", thorough=thorough))
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


def tune(X: Any, *, columns: int = 1, device: str | Device = "auto", most: int = 8, repeats: int = 3) -> list[dict[str, Any]]:
    """What mmchain(X, y) with so many columns of y takes by each of the plans that the device has for it, fastest first.

    Each plan has its launch parameters, `chosen` (the one that mmchain takes), `seconds` as predicted and `measured`. Of many plans the
    `most` are measured that are predicted to be the fastest, and the chosen one. Changes nothing.
    """
    x = place(X, device)
    work = struct("kiln_work", format=lib.KILN_CSR if x.sparse else lib.KILN_DENSE, type=lib.kiln_matrix_type(x.pointer),
                  rows=x.shape[0], cols=x.shape[1], nnz=x.nnz, k=columns, passes=1)
    y = Matrix(np.ones((x.shape[1], columns), x.dtype), x.device)
    w = Matrix.empty(x.device, (x.shape[1], columns), x.dtype)
    plans, count = ffi.new("kiln_plan **"), ffi.new("int64_t *")
    x.device.call(lib.kiln_mmchain_plans, plans, count, x.device.pointer, work)
    try:
        listed = sorted((plans[0] + i for i in range(count[0])), key=lambda plan: plan.seconds)
        tried = listed[:most] + [plan for plan in listed[most:] if plan.chosen]
        rows = []
        for plan in tried:
            call = functools.partial(x.device.call, lib.kiln_mmchain_with, plan, w.pointer, x.pointer, ffi.NULL, y.pointer)
            rows.append({**fields(plan[0]), "measured": fastest(x.device, call, repeats)})
        return sorted(rows, key=lambda row: float(row["measured"]))
    finally:
        lib.kiln_free(plans[0])
