"""Few rows on the host: what they cost beside their arithmetic is small (kiln/rows.h). Models are read where
their arrays lie, so that changes in place count; what is prepared is kept until these are other arrays."""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from ._arrays import Device, device, staying
from ._library import ffi, lib, struct

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_PLAIN = 1 << 20  # numbers that are looked at here; more are left to scikit-learn's checks
_FEW = 1 << 24  # multiplications beyond which a pass over a matrix is worth its start
_LISTS = 8  # rows below which lists are made one by one
_prepared: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def is_plain(X: Any, features: int, *, looked_at: bool = False) -> bool:
    """Whether X is what checks would leave as it is: a float array by rows or CSR matrix of NumPy's and
    SciPy's own, finite, with entries in order, of so many columns; looked_at: checks were there already.
    False says nothing."""
    kind = type(X)
    if kind is np.ndarray:
        return (X.ndim == 2 and X.shape[1] == features and (X.dtype == _F64 or X.dtype == _F32)
                and 0 < X.size <= _PLAIN and X.flags.c_contiguous and X.flags.aligned
                and (looked_at or bool(np.isfinite(X).all())))
    if kind is not csr_matrix and kind is not csr_array or len(X.shape) != 2 or X.shape[1] != features:
        return False
    starts, places, values = X.indptr, X.indices, X.data
    if not (X.shape[0] > 0 and features > 0 and places.dtype == np.int32 and starts.dtype == np.int32
            and (values.dtype == _F64 or values.dtype == _F32)
            and starts.shape == (X.shape[0] + 1,) and values.size <= _PLAIN and starts[0] == 0
            and places.shape == values.shape == (starts[-1],) and (starts[1:] >= starts[:-1]).all()
            and starts.flags.c_contiguous and places.flags.c_contiguous and values.flags.c_contiguous):
        return False
    if looked_at:
        return True
    if places.size and (places.min() < 0 or places.max() >= features):
        return False
    return bool(np.isfinite(values).all() and X.has_canonical_format)


def host(named: Any) -> Device | None:
    """The CPU, if an estimator's `device` may mean it and results do not stay on devices."""
    if staying():
        return None
    if isinstance(named, Device):
        return named if named.name == "cpu" else None
    return device("cpu") if named in ("auto", "cpu") else None


def _borrowed(array: Any, dtype: Any) -> bool:
    return type(array) is np.ndarray and array.dtype == dtype and array.flags.aligned


def _prepare(model: Any) -> Any:
    """(coef_, intercept_, dtype, struct, what it points into), None where arrays would have to be copied."""
    coef, intercept = model.coef_, model.intercept_
    if not (_borrowed(coef, _F64) or _borrowed(coef, _F32)) or coef.ndim not in (1, 2) or not coef.size:
        return None
    W, dtype = np.atleast_2d(coef), coef.dtype
    steps = [step // dtype.itemsize for step in W.strides]
    if not (steps[1] == 1 and steps[0] >= W.shape[1] or steps[0] == 1 and steps[1] >= W.shape[0]
            or W.flags.c_contiguous):
        return None
    if W.flags.c_contiguous:  # NumPy's strides of axes of length 1 say nothing
        steps = [W.shape[1], 1]
    elif W.shape[0] == 1:
        steps[0] = W.shape[1] * steps[1]
    if isinstance(intercept, (float, np.floating)):
        bias = np.full(W.shape[0], intercept, dtype)
    elif _borrowed(intercept, dtype) and intercept.flags.c_contiguous and intercept.shape == (W.shape[0],):
        bias = intercept
    else:
        return None
    buffers = ffi.from_buffer("char[]", W.T if W.flags.f_contiguous else W), ffi.from_buffer("char[]", bias)
    made = struct("kiln_row_model", type=lib.KILN_F32 if dtype == _F32 else lib.KILN_F64, inputs=W.shape[1],
                  outputs=W.shape[0], W=buffers[0], input_step=steps[1], output_step=steps[0], b=buffers[1])
    return coef, intercept, dtype, made, (buffers, W, bias)


def _sparse(X: Any, keep: list[Any]) -> dict[str, Any]:
    """kiln_memory's fields of a plain CSR matrix."""
    starts, places = ffi.from_buffer("char[]", X.indptr), ffi.from_buffer("int32_t[]", X.indices)
    keep += [starts, places]
    return {"rows": X.shape[0], "cols": X.shape[1], "row_start": starts, "col": places if X.indices.size
            else ffi.NULL, "row_start_bits": 32}


def linear(model: Any, X: Any, mean: dict[str, Any] | None = None) -> Any:
    """X coef_.T + intercept_ for a validated X, or with kiln_row_model's fields of `mean` that mean, an array
    (rows, columns); None where that is none of few rows in host memory."""
    if type(X) not in (np.ndarray, csr_matrix, csr_array) or not is_plain(X, X.shape[1],
                                                                                looked_at=True):
        return None
    where = host(model.device)
    if where is None:
        return None
    kept = _prepared.get(model)
    if kept is None or kept[0] is not model.coef_ or kept[1] is not model.intercept_:
        kept = _prepare(model)
        if kept is None:
            return None
        _prepared[model] = kept
    _, _, dtype, made, _ = kept
    if X.dtype != dtype and dtype == _F32 or X.shape[1] != made.inputs:
        return None
    sparse = type(X) is not np.ndarray
    if (X.nnz if sparse else X.size) * made.outputs > _FEW:
        return None
    if mean is not None:
        made = struct("kiln_row_model", type=made.type, inputs=made.inputs, outputs=made.outputs, W=made.W,
                      input_step=made.input_step, output_step=made.output_step, b=made.b, has_mean=1, **mean)
    values = X.data if sparse else X
    if X.dtype != dtype:
        values = values.astype(dtype)
    keep: list[Any] = []
    memory = struct("kiln_memory", type=made.type, values=ffi.from_buffer("char[]", values) if values.size
                    else ffi.NULL, **(_sparse(X, keep) if sparse else {"rows": X.shape[0],
                                                                       "cols": X.shape[1]}))
    found = np.empty((X.shape[0], lib.kiln_row_model_columns(made)), dtype)
    where.call(lib.kiln_predict_rows, ffi.from_buffer(found), where.pointer, made, memory)
    return found if X.dtype == dtype else found.astype(X.dtype)


def lists(named: Any, A: Any, B: Any, top: int, *, offsets: Any = None, cosines: bool = False,
          seen: Any = None, allowed: Any = None) -> Any:
    """(numbers, scores) of kiln_list_rows for rows A and B of a type, offsets too; None where these are not
    few rows in host memory."""
    where, kind = host(named), B.dtype
    if (where is None or len(A) >= _LISTS or (kind != _F32 and kind != _F64) or not B.size
            or not all(part is None or (_borrowed(part, kind) and part.flags.c_contiguous)
                       for part in (A, B, offsets))
            or (seen is not None and not is_plain(seen, len(B), looked_at=True))):
        return None
    keep: list[Any] = []
    left_out = None if seen is None else struct("kiln_memory", type=lib.KILN_F64, **_sparse(seen, keep))
    made = struct("kiln_row_lists", type=lib.KILN_F32 if kind == _F32 else lib.KILN_F64, rows=len(A),
                  columns=len(B), factors=B.shape[1], A=ffi.from_buffer("char[]", A),
                  B=ffi.from_buffer("char[]", B), cosines=cosines, top=top, seen=left_out,
                  offsets=None if offsets is None else ffi.from_buffer("char[]", offsets),
                  allowed=None if allowed is None else ffi.from_buffer("unsigned char[]", allowed))
    numbers, scores = np.empty((len(A), top), np.int64), np.empty((len(A), top))
    where.call(lib.kiln_list_rows, ffi.from_buffer("int64_t[]", numbers), ffi.from_buffer("double[]", scores),
               where.pointer, made)
    return numbers, scores
