"""DLPack, https://dmlc.github.io/dlpack/latest/: matrices lent to other packages, and what lies in CUDA
memory borrowed from them."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._library import ArgumentError, DataError, ffi, lib, struct

CPU, CUDA = 1, 2  # DLPack's numbers of devices
_INTEGER, _FLOAT = 0, 2  # and of kinds of elements


def on_cuda(array: Any) -> bool:
    """Whether another package's array lies in CUDA memory."""
    there = getattr(array, "is_cuda", None)
    if there is not None:  # PyTorch, whose own answer takes a tenth of the time that the protocol's does
        return bool(there)
    if hasattr(array, "tocsr"):
        array = getattr(array, "data", None)
    try:
        return hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) == CUDA
    except BufferError:  # a kiln.Matrix on an OpenCL device or a group
        return False


def to_host(array: Any) -> Any:
    """An array in CUDA memory as one that NumPy takes, as its package copies it; others as they are."""
    if not on_cuda(array):
        return array
    if hasattr(array, "get"):  # CuPy
        return array.get()
    return array.detach().cpu() if hasattr(array, "detach") else array  # PyTorch; JAX copies when NumPy asks


def as_floats(array: Any, dtype: Any) -> Any:
    """An array in CUDA memory in this type and contiguous, as its package makes it there."""
    if hasattr(array, "detach"):  # PyTorch
        return (array.double() if dtype == np.float64 else array.float()).contiguous()
    if hasattr(array, "get"):  # CuPy
        return array.astype(dtype, order="C", copy=False)
    return array.astype(dtype)


# ------------------------------------------------------------------------------------------------ borrowing

_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer",
                                                                                  ctypes.pythonapi))


class _Array(NamedTuple):
    """An array in CUDA memory."""

    device: int
    address: int
    shape: Sequence[int]
    contiguous: bool
    kind: int
    bits: int


def _of_torch(array: Any) -> _Array:
    """A tensor, by its own methods: through DLPack that takes six times as long."""
    kind = _FLOAT if array.is_floating_point() else _INTEGER
    return _Array(array.get_device(), array.data_ptr(), array.shape, array.is_contiguous(), kind,
                  8 * array.element_size())


def _of_dlpack(keep: list[Any], array: Any) -> _Array:
    # kiln_matrix_wrap waits for all streams, so that CuPy need not (-1); JAX waits until the default one (1)
    # can go on
    capsule = array.__dlpack__(stream=-1 if hasattr(array, "get") else 1)
    tensor = ffi.cast("DLManagedTensor *", _pointer(capsule, b"dltensor")).dl_tensor
    keep.append(capsule)  # which gives the memory back when it goes
    shape = tensor.shape[0:tensor.ndim]
    strides = tensor.strides[0:tensor.ndim] if tensor.strides else ()
    wanted = [shape[1] if len(shape) == 2 else 1, 1][:len(shape)]
    contiguous = all(n <= 1 or s == w for n, s, w in zip(shape, strides, wanted))
    kind, bits = tensor.dtype.code, tensor.dtype.bits if tensor.dtype.lanes == 1 else 0
    return _Array(tensor.device.device_id, int(ffi.cast("uintptr_t", tensor.data)) + tensor.byte_offset,
                  shape, contiguous, kind, bits)


def _borrow(keep: list[Any], array: Any, kind: int, what: str) -> _Array:
    """A contiguous array of 1 or 2 dimensions; `keep` then holds what it lives on."""
    keep.append(array)
    found = _of_torch(array) if hasattr(array, "data_ptr") else _of_dlpack(keep, array)
    if not found.contiguous or len(found.shape) not in (1, 2):
        raise ArgumentError(f"expected {what} to be a contiguous array of 1 or 2 dimensions in CUDA memory")
    if found.kind != kind or found.bits not in (32, 64):
        raise ArgumentError(f"expected {what} to be of "
                            f"{'float32 or float64' if kind == _FLOAT else 'int32 or int64'}")
    return found


def cuda_memory(keep: list[Any], array: Any) -> tuple[int, Any]:
    """The number of a CUDA device, and the kiln_memory of an array or a CSR matrix that lies there."""
    if getattr(array, "is_sparse_csr", False):  # PyTorch
        parts = array.values(), array.col_indices(), array.crow_indices()
    elif hasattr(array, "tocsr"):  # CuPy
        array = array.tocsr()
        parts = array.data, array.indices, array.indptr
    else:
        found = _borrow(keep, array, _FLOAT, "the array")
        return found.device, _memory(found, found.shape[0], found.shape[1] if len(found.shape) == 2 else 1)
    values, columns, starts = (_borrow(keep, part, kind, f"the matrix's {name}") for part, kind, name in
                               zip(parts, (_FLOAT, _INTEGER, _INTEGER), ("values", "columns", "row starts")))
    starts_needed, entries = array.shape[0] + 1, int(parts[2][-1]) if starts.shape[0] else 0
    if tuple(starts.shape) != (starts_needed,) or min(values.shape[0], columns.shape[0]) < entries:
        raise DataError(f"a matrix of {array.shape[0]} rows and {entries} entries needs as many values and "
                        f"columns, and {starts_needed} row "
                        f"starts; it has {values.shape[0]}, {columns.shape[0]} and {starts.shape[0]}")
    if columns.bits != 32:
        raise ArgumentError("expected the matrix's columns to be of int32 in CUDA memory")
    return values.device, _memory(values, *array.shape, row_start=ffi.cast("void *", starts.address),
                                  row_start_bits=starts.bits, col=ffi.cast("int32_t *", columns.address))


def _memory(values: _Array, rows: int, cols: int, **more: Any) -> Any:
    return struct("kiln_memory", type=lib.KILN_F32 if values.bits == 32 else lib.KILN_F64, rows=rows,
                  cols=cols, values=ffi.cast("void *", values.address), on_device=1, **more)


# -------------------------------------------------------------------------------------------------- lending

_lent: dict[int, Any] = {}  # by the address of a DLManagedTensor: what has to live as long


@ffi.callback("void(DLManagedTensor *)")  # type: ignore[untyped-decorator]
def _give_back(tensor: Any, lent: dict[int, Any] = _lent, cast: Any = ffi.cast) -> None:
    lent.pop(int(cast("intptr_t", tensor)), None)


_PLAIN = b"dltensor"  # the name of a capsule that nobody has taken the tensor out of
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                         ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                              ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_of_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer",
                                                                                  ctypes.pythonapi))


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _forget(capsule: Any) -> None:
    """A capsule that nobody has taken the tensor out of goes."""
    if _is_valid(capsule, _PLAIN):
        _lent.pop(int(_of_dying(capsule, _PLAIN)), None)


def lend(matrix: Any, memory: Any) -> Any:
    """A capsule over what kiln_matrix_lend has told of a matrix, which lives until the borrower is done."""
    shape = ffi.new("int64_t[2]", [memory.rows, memory.cols])
    strides = ffi.new("int64_t[2]", [memory.cols, 1])
    tensor = ffi.new("DLManagedTensor *")
    tensor.deleter = _give_back
    made = tensor.dl_tensor
    made.data, made.ndim, made.shape, made.strides = memory.values, 2, shape, strides
    made.device.device_type, made.device.device_id = matrix.__dlpack_device__()
    made.dtype.code, made.dtype.bits, made.dtype.lanes = _FLOAT, 8 * matrix.dtype.itemsize, 1
    address = int(ffi.cast("intptr_t", tensor))
    _lent[address] = (tensor, shape, strides, matrix)
    return _new(address, _PLAIN, ctypes.cast(_forget, ctypes.c_void_p))
