"""Kiln's C interface as benchmarks time it, through the Python package's binding: operands are made
beforehand, results are written in place, and a call is one of libkiln's. What users call is the package
itself.

The package comes from an installation, or from python/ with the binding that `python3 python/binding.py cc
include python/kiln/_binding.py` writes, and KILN_LIBRARY.
"""
import pathlib
import sys
import weakref

import numpy as np

try:
    import kiln
except ModuleNotFoundError:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    import kiln
from kiln import _arrays, _library, _solve
from kiln._library import ffi, lib

version, devices, KilnError, text = kiln.__version__, kiln.devices, kiln.KilnError, _library.text
_held = weakref.WeakKeyDictionary()  # what the pointers of a struct point to


def plain(value):
    """An argument as C takes it: a matrix's or an array's address, NULL for None, others as they are."""
    if value is None:
        return ffi.NULL
    if isinstance(value, np.ndarray):
        return ffi.cast("void *", value.ctypes.data)
    return getattr(value, "pointer", value)


def call(name, *arguments):
    """kiln_NAME(arguments); raises what it says went wrong."""
    _library.check(getattr(lib, "kiln_" + name)(*[plain(value) for value in arguments]))


def struct(name, **values):
    """kiln_NAME with its size and these fields set, which it keeps alive."""
    made = _library.struct(f"kiln_{name}", **{field: plain(value) for field, value in values.items()})
    _held[made] = values
    return made


def address(number):
    """Returns a number as a pointer."""
    return ffi.cast("void *", number)


class Matrix(kiln.Matrix):
    def fill_random(self, seed, stream, normal=True):
        call("fill_random", self, int(normal), seed, stream)
        return self

    def free(self):
        """Now, where the garbage collector would come later."""
        ffi.release(self.pointer)


def make(device, name, *arguments):
    """The matrix that kiln_matrix_NAME makes of the arguments."""
    pointer = ffi.new("kiln_matrix **")
    call("matrix_" + name, pointer, *arguments)
    return Matrix.adopt(pointer[0], device)


def wrap(device, values, shape, **more):
    """A matrix of float32 in a CUDA device's memory, at that address; more: fields of kiln_memory."""
    return make(device, "wrap", device, struct("memory", type=lib.KILN_F32, rows=shape[0], cols=shape[1],
                                               values=address(values), on_device=1, **more))


def like(device, pattern):
    """A sparse matrix with the structure of another, of ones."""
    return make(device, "like", pattern, lib.KILN_TYPE_DEFAULT, None)


class Device(kiln.Device):
    def dense(self, rows, cols, dtype, values=None):
        """A matrix of its own, with these values or zeros."""
        return make(self, "dense", self, _arrays._type_of(dtype), rows, cols, None if values is None
                    else np.ascontiguousarray(values, dtype))

    def sparse(self, shape, dtype, start, col, values):
        """Makes a matrix of the arrays of CSR; values None: a pattern."""
        arrays = [array if array is None else np.ascontiguousarray(array, kind)
                  for array, kind in zip((start, col, values), (np.int64, np.int32, dtype))]
        return make(self, "csr", self, _arrays._type_of(dtype), *shape, *arrays)

    def csr(self, matrix):
        return self.sparse(matrix.shape, matrix.dtype, matrix.indptr, matrix.indices, matrix.data)


def mmchain(w, alpha, X, v, y, beta=0.0, z=None):
    call("mmchain", w, alpha, X, v, y, beta, z)


def multiply(Y, alpha, A, B, beta=0.0, Z=None, transposed=False):
    call("multiply", Y, alpha, int(transposed), A, B, beta, Z)


def fit(name, *operands, **options):
    """kiln_NAME of operands with these of its options; its report, as the package has it."""
    report = struct("report")
    try:
        call(name, *operands, struct(f"{name}_options", **options), report)
        return _solve._read(report)
    finally:
        lib.kiln_report_free(report)
