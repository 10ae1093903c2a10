"""Operations as functions of arrays."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Device, Matrix, choose, device as open_device, matrix, numbers
from ._library import ArgumentError, ffi, lib, struct

_Operand = Any


def place(X: _Operand, where: str | Device, passes: int = 1, columns: int = 1,
          vector: bool = False) -> Matrix:
    """X on its device: its own, the one that is named, or the best for so many passes. vector: of one
    dimension it is one column."""
    if isinstance(X, Matrix):
        return X
    if isinstance(X, (list, tuple)):
        X = numbers(X)
    if not vector and len(getattr(X, "shape", (0, 0))) == 1:
        raise ArgumentError("expected a matrix, of 2 dimensions, got 1: reshape(-1, 1) makes a column of it, "
                            "reshape(1, -1) a row")
    if where != "auto":
        return matrix(X, where)
    host = Matrix(X, "cpu")
    if host.device.is_gpu:  # where the caller has it
        return host
    best = choose(host.shape, host.nnz if host.sparse else None, host.dtype, passes, columns)
    return matrix(host, best)


def beside(X: Matrix, array: _Operand) -> Matrix | None:
    """Another operand, where X is and of its type."""
    return None if array is None else matrix(array, X.device, X.dtype)


def pointer_of(operand: Matrix | None) -> Any:
    return ffi.NULL if operand is None else operand.pointer


def _result(values: Matrix, like: _Operand) -> Any:
    """The values as a call hands them out; a vector where `like` was one."""
    return values.result(vector=len(like.shape if hasattr(like, "shape") else np.shape(like)) == 1)


def mmchain(X: _Operand, y: _Operand, *, v: _Operand = None, alpha: float = 1.0, beta: float = 0.0,
            z: _Operand = None, device: str | Device = "auto") -> Any:
    """alpha X^T (v * (X y)) + beta z, with X (m, n), dense or sparse, read once."""
    x = place(X, device)
    weights, start, Y = beside(x, v), beside(x, z), matrix(y, x.device, x.dtype)
    w = Matrix.empty(x.device, (x.shape[1], Y.shape[1]), x.dtype)
    x.device.call(lib.kiln_mmchain, w.pointer, alpha, x.pointer, pointer_of(weights), Y.pointer, beta,
                  pointer_of(start))
    return _result(w, y)


def multiply(A: _Operand, B: _Operand, *, transposed: bool = False, device: str | Device = "auto") -> Any:
    """A B, or with transposed A^T B; A dense or sparse, B dense."""
    a = place(A, device)
    b = matrix(B, a.device, a.dtype)
    Y = Matrix.empty(a.device, (a.shape[1] if transposed else a.shape[0], b.shape[1]), a.dtype)
    a.device.call(lib.kiln_multiply, Y.pointer, 1, lib.KILN_TRANSPOSED if transposed else lib.KILN_PLAIN,
                  a.pointer, b.pointer, 0, ffi.NULL)
    return _result(Y, B)


def spmm(S: _Operand, B: _Operand, *, transposed: bool = False, device: str | Device = "auto") -> Any:
    """A sparse matrix times a dense one: multiply(), under the name that the field gives it."""
    return multiply(S, B, transposed=transposed, device=device)


_KINDS = {"product": "KILN_SAMPLE_PRODUCT", "times": "KILN_SAMPLE_TIMES", "quotient": "KILN_SAMPLE_QUOTIENT",
          "residual": "KILN_SAMPLE_RESIDUAL"}


class Half:
    """A dense factor (m, k) of half precision on a device, 16 bits a number, for sddmm(). Made once, it
    serves any number of calls.

    kind: "float16" or "bfloat16"; numbers of other precision are rounded to the nearest. An array of that
    kind itself (NumPy's float16, ml_dtypes' bfloat16) is taken bit by bit.
    """

    def __init__(self, array: _Operand, kind: str = "float16", device: str | Device = "cpu") -> None:
        kinds = {"float16": lib.KILN_F16, "bfloat16": lib.KILN_BF16}
        if kind not in kinds:
            raise ArgumentError(f"kind must be one of {sorted(kinds)}, got {kind!r}")
        made = ffi.new("kiln_half **")
        if isinstance(array, np.ndarray) and array.dtype.name == kind:
            if array.ndim != 2:
                raise ArgumentError(f"expected an array of 2 dimensions, got {array.ndim}")
            bits, where = np.ascontiguousarray(array).view(np.uint16), open_device(device)
            where.call(lib.kiln_half_dense, made, where.pointer, kinds[kind], *bits.shape,
                       ffi.cast("uint16_t *", bits.ctypes.data))
        else:
            array = matrix(array, device)
            where = array.device
            where.call(lib.kiln_half_copy, made, kinds[kind], array.pointer)
        self.kind, self.shape, self.device = kind, tuple(array.shape), where
        self.pointer = where.turn.own(lib.kiln_half_free, made[0])

    def __copy__(self) -> Half:
        return self

    def __deepcopy__(self, known: Any) -> Half:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a kiln.Half cannot be pickled; pickle the array that it was made of")

    def __repr__(self) -> str:
        return f"<kiln.Half {self.shape[0]:,} x {self.shape[1]:,} {self.kind}, on {self.device.name}>"


def sddmm(S: _Operand, A: _Operand, B: _Operand, *, kind: str = "product", alpha: float = 1.0,
          device: str | Device = "auto") -> Any:
    """alpha f(s_ij, a_i . b_j) at the entries of a sparse S (m, n), as a sparse matrix; A (m, k), B (n, k).

    kind: "product" d (the default), "times" s d (the SDDMM paper's), "quotient" s / d, "residual" s - d. A
    and B may both be kiln.Half of one kind; S is float32 then.
    """
    if kind not in _KINDS:
        raise ArgumentError(f"kind must be one of {sorted(_KINDS)}, got {kind!r}")
    halves = isinstance(A, Half) and isinstance(B, Half)
    s = place(S, A.device if halves else device)
    if not s.sparse:
        raise ArgumentError("S must be a sparse matrix, at whose entries A B^T is wanted")
    a, b = (A, B) if halves else (matrix(A, s.device, s.dtype), matrix(B, s.device, s.dtype))
    made = ffi.new("kiln_matrix **")
    s.device.call(lib.kiln_matrix_like, made, s.pointer, lib.KILN_TYPE_DEFAULT, ffi.NULL)
    P = Matrix.adopt(made[0], s.device, s)
    sample = struct("kiln_sample", kind=getattr(lib, _KINDS[kind]), S=s.pointer)
    if halves:
        s.device.call(lib.kiln_sddmm_half, P.pointer, ffi.NULL, alpha, sample, a.pointer, b.pointer, 0)
    else:
        sample.A, sample.B = a.pointer, b.pointer
        s.device.call(lib.kiln_sddmm, P.pointer, ffi.NULL, alpha, sample, 0)
    return P.result()


_REDUCTIONS = {name: "KILN_BATCH_" + name.upper() for name in ("sum", "squares", "l1", "l2", "max", "min",
                                                               "argmax", "argmin", "mean", "variance")}


def batch_of(x: Matrix, offsets: Any) -> tuple[Any, int]:
    """The vectors of a batch: rows, or where the offsets cut a flat array; and their number."""
    made, where = ffi.new("kiln_batch **"), x.device
    if offsets is None:
        count = x.shape[0]
        where.call(lib.kiln_batch_rows, made, x.pointer)
    else:
        starts = np.ascontiguousarray(offsets, np.int64)
        if starts.ndim != 1 or len(starts) == 0:
            raise ArgumentError("offsets must be a vector of count + 1 numbers")
        count = len(starts) - 1
        where.call(lib.kiln_batch_ragged, made, where.pointer, count,
                   ffi.cast("int64_t *", starts.ctypes.data))
    return where.turn.own(lib.kiln_batch_free, made[0]), count


def batch_reduce(X: _Operand, kind: str = "sum", *, offsets: Any = None,
                 device: str | Device = "auto") -> Any:
    """The sum, squares, l1, l2, max, min, argmax, argmin, mean or variance of each row of X, or of each piece
    X[offsets[v]:offsets[v + 1]] of a vector X. Sums run in double."""
    if kind not in _REDUCTIONS:
        raise ArgumentError(f"kind must be one of {sorted(_REDUCTIONS)}, got {kind!r}")
    x = place(X, device, vector=True)
    batch, count = batch_of(x, offsets)
    result = Matrix.empty(x.device, (count, 1), x.dtype)
    x.device.call(lib.kiln_batch_reduce, result.pointer, getattr(lib, _REDUCTIONS[kind]), x.pointer, batch)
    if kind.startswith("arg"):
        return result.numpy()[:, 0].astype(np.int64)
    return result.result(vector=True)


def batch_scale(X: _Operand, scale: Any, *, offsets: Any = None, device: str | Device = "auto") -> Any:
    """scale[v] times row v of X, or times each piece X[offsets[v]:offsets[v + 1]] of a vector X."""
    x = place(X, device, vector=True)
    batch, _ = batch_of(x, offsets)
    factors = matrix(scale, x.device, x.dtype)
    if x.sparse:
        made = ffi.new("kiln_matrix **")
        x.device.call(lib.kiln_matrix_like, made, x.pointer, lib.KILN_TYPE_DEFAULT, ffi.NULL)
        Y = Matrix.adopt(made[0], x.device, x)
    else:
        Y = Matrix.empty(x.device, x.shape, x.dtype)
    x.device.call(lib.kiln_batch_scale, Y.pointer, x.pointer, factors.pointer, batch)
    return Y.result() if x.sparse else _result(Y, X)
