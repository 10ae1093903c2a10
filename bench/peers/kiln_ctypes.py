"""The least of a binding, for benchmarks: Kiln's C API through ctypes. KILN_LIBRARY names libkiln.so."""
import ctypes
import os

import numpy as np

P, I64, D = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char_p), ("hint", ctypes.c_char_p)]


class Sized(ctypes.Structure):
    """A struct that begins with its size, so that the library refuses one that is too short."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **fields)


class DeviceOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t),
                ("threads", ctypes.c_int), ("memory", I64), ("deterministic", ctypes.c_int), ("message", P),
                ("message_user", P)]


class DeviceInfo(Sized):
    _fields_ = [("size", ctypes.c_size_t),
                ("name", ctypes.c_char * 32), ("description", ctypes.c_char * 160), ("usable", ctypes.c_int),
                ("reason", ctypes.c_char * 256), ("hint", ctypes.c_char * 256), ("memory", I64),
                ("threads", ctypes.c_int), ("is_gpu", ctypes.c_int), ("has_f64", ctypes.c_int)]


class Statistics(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("bytes_up", I64), ("bytes_down", I64), ("transfer_seconds", D),
                ("build_seconds", D), ("kernels_built", I64), ("kernels_cached", I64), ("memory_used", I64),
                ("memory_peak", I64), ("evictions", I64), ("panels", I64), ("panel_bytes", I64), ("panel_seconds", D),
                ("panel_wait_seconds", D), ("layout_seconds", D), ("layout_bytes", I64)]


library = ctypes.CDLL(os.environ.get("KILN_LIBRARY", "libkiln.so"))
library.kiln_last_error.restype = ctypes.POINTER(Error)
library.kiln_report_figure.restype = D
library.kiln_report_figure_name.restype = ctypes.c_char_p
library.kiln_version.restype = ctypes.c_char_p
library.kiln_matrix_free.argtypes = [P]
library.kiln_device_close.argtypes = [P]


def check(status):
    if status:
        raise RuntimeError(library.kiln_last_error().contents.message.decode())


class Device:
    def __init__(self, name, threads=0, memory=0, deterministic=0):
        self.handle = P()
        options = DeviceOptions(threads=threads, memory=memory, deterministic=deterministic)
        check(library.kiln_device_open(ctypes.byref(self.handle), name.encode(), ctypes.byref(options)))

    def description(self):
        info = DeviceInfo()
        check(library.kiln_device_get_info(self.handle, ctypes.byref(info)))
        return info.name.decode(), info.description.decode()

    def statistics(self):
        found = Statistics()
        check(library.kiln_device_get_statistics(self.handle, ctypes.byref(found)))
        return found

    def sync(self):
        check(library.kiln_device_sync(self.handle))

    def bandwidth(self):
        value = D()
        check(library.kiln_device_bandwidth(ctypes.byref(value), self.handle, 1))
        return value.value

    def dense(self, rows, cols, dtype, values=None):
        return Matrix(self, rows, cols, dtype, values=values)

    def csr(self, matrix):
        return Matrix(self, *matrix.shape, matrix.dtype, csr=matrix)


def type_code(dtype):
    return {"float32": 1, "float64": 2}[np.dtype(dtype).name]


class Matrix:
    def __init__(self, device, rows, cols, dtype, values=None, csr=None):
        self.handle, self.shape, self.dtype = P(), (rows, cols), np.dtype(dtype)
        if csr is not None:
            start = np.ascontiguousarray(csr.indptr, np.int64)
            col = np.ascontiguousarray(csr.indices, np.int32)
            data = np.ascontiguousarray(csr.data)
            check(library.kiln_matrix_csr(ctypes.byref(self.handle), device.handle, type_code(dtype), I64(rows),
                                          I64(cols), start.ctypes.data_as(P), col.ctypes.data_as(P),
                                          data.ctypes.data_as(P)))
            return
        array = None if values is None else np.ascontiguousarray(values, dtype)
        check(library.kiln_matrix_dense(ctypes.byref(self.handle), device.handle, type_code(dtype), I64(rows),
                                        I64(cols), None if array is None else array.ctypes.data_as(P)))

    def fill_random(self, seed, stream, normal=True):
        check(library.kiln_fill_random(self.handle, int(normal), ctypes.c_uint64(seed), ctypes.c_uint64(stream)))
        return self

    def numpy(self):
        out = np.empty(self.shape, self.dtype)
        check(library.kiln_matrix_get(out.ctypes.data_as(P), self.handle))
        return out

    def free(self):
        library.kiln_matrix_free(self.handle)
        self.handle = P()


def mmchain(w, alpha, X, v, y, beta=0.0, z=None):
    check(library.kiln_mmchain(w.handle, D(alpha), X.handle, v.handle if v else None, y.handle, D(beta),
                               z.handle if z else None))


class LinregOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t),
                ("l2", D), ("no_intercept", ctypes.c_int), ("standardize", ctypes.c_int),
                ("no_preconditioner", ctypes.c_int), ("warm_start", ctypes.c_int), ("tolerance", D),
                ("max_iterations", I64), ("weights", P), ("progress", P), ("user", P), ("solver", ctypes.c_int)]


class Report(Sized):
    _fields_ = [("size", ctypes.c_size_t),
                ("converged", ctypes.c_int), ("stopped_by", ctypes.c_int), ("iterations", I64), ("residual", D),
                ("tolerance", D), ("objective", D), ("passes", I64), ("seconds", D), ("trace", P), ("trace_count", I64), ("figures", P),
                ("solver", ctypes.c_char_p)]

    def take_figures(self):
        """Every figure becomes an attribute; then the library's memory is freed."""
        for i in range(64):
            name = library.kiln_report_figure_name(ctypes.byref(self), I64(i))
            if not name:
                break
            setattr(self, name.decode(), library.kiln_report_figure(ctypes.byref(self), name))
        library.kiln_report_free(ctypes.byref(self))
        return self


def multiply(Y, alpha, A, B, beta=0.0, Z=None, transposed=False):
    check(library.kiln_multiply(Y.handle, D(alpha), int(transposed), A.handle, B.handle, D(beta),
                                Z.handle if Z else None))


def linreg(W, b, X, y, **options):
    report = Report()
    check(library.kiln_linreg(W.handle, b.handle, X.handle, y.handle, ctypes.byref(LinregOptions(**options)),
                              ctypes.byref(report)))
    return report.take_figures()


class LogregOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t),
                ("l2", D), ("l1", D), ("no_intercept", ctypes.c_int), ("standardize", ctypes.c_int),
                ("warm_start", ctypes.c_int), ("tolerance", D), ("max_iterations", I64), ("weights", P), ("class_weights", P),
                ("balanced", ctypes.c_int), ("progress", P), ("user", P), ("solver", ctypes.c_int)]


def logreg(W, b, X, y, **options):
    report = Report()
    check(library.kiln_logreg(W.handle, b.handle, X.handle, y.handle, ctypes.byref(LogregOptions(**options)),
                              ctypes.byref(report)))
    return report.take_figures()


class SvmOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t),
                ("regression", ctypes.c_int), ("epsilon", D), ("l2", D), ("no_intercept", ctypes.c_int),
                ("standardize", ctypes.c_int), ("warm_start", ctypes.c_int), ("tolerance", D), ("max_iterations", I64),
                ("weights", P), ("class_weights", P), ("balanced", ctypes.c_int), ("progress", P), ("user", P),
                ("solver", ctypes.c_int)]


class GlmOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t),
                ("family", ctypes.c_int), ("link", ctypes.c_int), ("parameter", D), ("link_power", D), ("l2", D),
                ("no_intercept", ctypes.c_int), ("standardize", ctypes.c_int), ("warm_start", ctypes.c_int), ("tolerance", D),
                ("max_iterations", I64), ("weights", P), ("offset", P), ("standard_errors", P), ("progress", P), ("user", P)]


def glm(w, b, X, y, **options):
    """Matrices among the options by their Matrix."""
    report = Report()
    options = {key: value.handle if isinstance(value, Matrix) else value for key, value in options.items()}
    check(library.kiln_glm(w.handle, b.handle if b else None, X.handle, y.handle, ctypes.byref(GlmOptions(**options)),
                           ctypes.byref(report)))
    return report.take_figures()
