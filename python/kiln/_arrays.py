"""Arrays of other packages as Kiln's matrices, without a copy where the layout allows, and back."""
from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._collapsed import tell_collapsed
from ._dlpack import CPU, CUDA, cuda_memory, lend, on_cuda
from ._extras import needed
from ._library import (ArgumentError, DataError, DeviceError, OutOfMemoryError, c_name, check, ffi, fields,
                       lib, struct, text)

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_TYPES: dict[Any, int] = {_F32: lib.KILN_F32, _F64: lib.KILN_F64}
# Numbers that the library widens as it reads them; float32 is one of them in a matrix of float64.
_ELEMENTS: dict[Any, int] = {np.dtype(name): getattr(lib, f"KILN_ELEMENT_{short}") for name, short in
                             (("bool", "U8"), ("uint8", "U8"), ("int8", "I8"), ("uint16", "U16"),
                              ("int16", "I16"), ("float16", "F16"), ("float32", "F32"))}


def _type_of(dtype: Any) -> int:
    return _TYPES[np.dtype(dtype)]


_turns: weakref.WeakSet[_Turn] = weakref.WeakSet()


class _Turn:
    """One thread at a time calls the library on a device. What is freed meanwhile, by the garbage collector
    of any thread, is freed after the call. The collector frees a cycle in any order, so the device is closed
    with the last of what lies on it."""

    def __init__(self, device: Any) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._device = device
        self._held = {device}  # pointers that are not freed yet
        self._left: collections.deque[tuple[Any, Any, Any]] = collections.deque()
        self._stuck = False  # a call was under way in another thread when this process was forked
        _turns.add(self)

    def renew(self) -> None:
        """In a forked child, which has none of the parent's other threads: a call that one of them was in
        never ends here."""
        if self._lock.acquire(False):
            self._lock.release()
        else:
            self._lock, self._stuck = threading.RLock(), True

    def __enter__(self) -> None:
        if self._stuck:
            raise DeviceError("another thread was using the device when this process was forked; open it "
                              "anew: kiln.Device(name)")
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *error: Any) -> None:
        if self._left:
            self._free_left()
        self._depth -= 1
        self._lock.release()

    @contextlib.contextmanager
    def handed_over(self) -> Iterator[None]:
        """Within a callback in which the library may be called as between two calls, so that what is freed
        meanwhile is freed."""
        depth, self._depth = self._depth, 0
        try:
            with self:
                yield
        finally:
            self._depth = depth

    def _free_left(self) -> None:
        while self._depth == 1 and self._left and not self._stuck:
            function, pointer, _ = self._left.popleft()
            self._held.discard(pointer)
            if pointer != self._device:
                function(pointer)
            if not self._held:
                lib.kiln_device_close(self._device)

    def own(self, function: Any, pointer: Any, keep: Any = None) -> Any:
        """The pointer; when nobody has it any more, function(pointer) frees it. keep lives until then."""
        self._held.add(pointer)
        return ffi.gc(pointer, lambda pointer: self.free(function, pointer, keep))

    def free(self, function: Any, pointer: Any, keep: Any = None) -> None:
        """function(pointer), now or after the call that is under way, and of the device nothing but that it
        may be closed; keep lives until then."""
        self._left.append((function, pointer, keep))
        if self._lock.acquire(False):
            self._depth += 1
            self.__exit__()


class Device:
    """The CPU or a GPU, opened by name: "auto", "cpu", "cuda", "cuda:1", "opencl", "opencl:0.0"; or several
    devices that share passes over X, "cuda:all", "cuda:0,1", "cpu,cuda:0" (docs/groups.md).

    memory is a budget in bytes; deterministic asks for the same bits from run to run. strict: a fit ends
    in OutOfMemoryError, and the model is fitted, where more than 5 % over the budget was held: by the
    device, on the CPU by what came to be in the process since it was opened. Threads may share a device:
    their calls take turns. A copy is the device itself; one that is unpickled, as in a worker of
    joblib's, is opened there by the same name and options.
    """

    def __init__(self, name: str = "auto", *, threads: int = 0, memory: int = 0, deterministic: bool = False,
                 strict: bool = False, _processes: Any = None) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"a device is named by text, got {name!r}")
        options = struct("kiln_device_options", threads=threads, memory=memory, deterministic=deterministic)
        pointer = ffi.new("kiln_device **")
        if _processes is None:
            check(lib.kiln_device_open(pointer, c_name(name, "device's name"), options))
        else:
            check(lib.kiln_processes_open(pointer, _processes, c_name(name, "device's name"), options))
        self._options = None if _processes is not None else (threads, memory, deterministic, strict)
        self._strict = strict
        self._begun, self._mark = _most_from_now() if strict else (0, 0)
        self.pointer = pointer[0]
        self.turn = _Turn(self.pointer)
        # matrices may outlive it there
        weakref.finalize(self, self.turn.free, None, self.pointer).atexit = False
        info = struct("kiln_device_info")
        check(lib.kiln_device_get_info(self.pointer, info))
        self.name, self.description = text(info.name), text(info.description)
        self.is_gpu, self.threads, self.memory = bool(info.is_gpu), int(info.threads), int(info.memory)
        self.has_f64 = bool(info.has_f64)
        # a list lies on another device than the CPU
        self._on_cpu = self.name.startswith("cpu") and "," not in self.name

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, known: Any) -> Device:
        return self

    def __reduce__(self) -> Any:
        if self._options is None:
            raise TypeError("the device of processes that mpirun has started cannot be pickled")
        return _same, (self.name, *self._options)

    def call(self, function: Any, *arguments: Any) -> None:
        """A function of the library that works on this device; raises what it says went wrong."""
        with self.turn:
            status = function(*arguments)
            if status:
                check(status)

    def synchronize(self) -> None:
        """Waits until everything that was asked of the device is done."""
        self.call(lib.kiln_device_sync, self.pointer)

    def bandwidth(self, *, remeasure: bool = False) -> float:
        """Bytes a second that the device reads from its memory, measured once on this machine, or now."""
        measured = ffi.new("double *")
        self.call(lib.kiln_device_bandwidth, measured, self.pointer, remeasure)
        return float(measured[0])

    def statistics(self) -> dict[str, Any]:
        """The device's work so far: bytes moved, kernels built and found in the cache, memory held, seconds
        of each."""
        counted = struct("kiln_device_statistics")
        self.call(lib.kiln_device_get_statistics, self.pointer, counted)
        return fields(counted[0])

    def check_memory(self) -> None:
        """Raises OutOfMemoryError on a strict device where more than 5 % over its budget was held since it
        was opened."""
        if not self._strict:
            return
        held = self.statistics()["memory_peak"]
        if self._on_cpu:
            now, most = _process_memory()
            held = max(held, (most if most > self._mark else now) - self._begun)
        if held > self.memory + self.memory // 20:
            raise OutOfMemoryError(f"{self.name} held {held:,} bytes since it was opened, more than 5 % over "
                                   f"the budget of {self.memory:,}")

    def __repr__(self) -> str:
        return f"<kiln.Device {self.name}: {self.description}>"


def _process_memory() -> tuple[int, int]:
    """Bytes that this process holds, and has held at most, as the kernel counts them; 0 where it does not
    say."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status if line.startswith(("VmRSS:", "VmHWM:")))
    except OSError:
        return 0, 0
    now, most = (1024 * int(fields.get(name, "0").split()[0]) for name in ("VmRSS", "VmHWM"))
    return now, most


def _most_from_now() -> tuple[int, int]:
    """The same, after the kernel's mark of the most was set back, if it lets us: what was before does not
    count."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as mark:
        mark.write(b"5")
    return _process_memory()


_opened: dict[str, Device] = {}
_parents: list[Any] = []  # devices of a process that this one was forked from: never closed here
_lock = threading.Lock()


@functools.lru_cache(maxsize=None)
def _same(name: str, threads: int, memory: int, deterministic: bool, strict: bool) -> Device:
    """The device that one of another process is here."""
    return Device(name, threads=threads, memory=memory, deterministic=deterministic, strict=strict)


def _after_fork() -> None:
    """The parent's devices are not the child's, and its other threads are not there."""
    global _lock, _same
    _lock = threading.Lock()
    _parents.append((dict(_opened), _same))
    _opened.clear()
    _same = functools.lru_cache(maxsize=None)(_same.__wrapped__)
    _best.cache_clear()
    for turn in list(_turns):
        turn.renew()


os.register_at_fork(after_in_child=_after_fork)


def device(name: str | Device = "auto") -> Device:
    """The device of that name, opened once in a process."""
    if isinstance(name, Device):
        return name
    if not isinstance(name, str):
        raise ArgumentError(f"a device is named by text, or is a kiln.Device, got {name!r}")
    with _lock:
        if name not in _opened:
            made = Device(name)
            _opened[name] = _opened.setdefault(made.name, made)
        return _opened[name]


def with_threads(where: Device, n_jobs: int | None) -> Device:
    """A CPU with so many threads, as joblib counts them (-1: one for each core, -2: one less); any other
    device, and None, as it is."""
    if n_jobs is None or where.name != "cpu":
        return where
    if n_jobs == 0:
        raise ArgumentError("n_jobs=0 leaves nobody to work: take None or -1 for all cores, or a number of "
                            "threads.")
    threads = n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    return where if threads == where.threads else _same("cpu", threads, 0, False, False)


def choose(shape: tuple[int, int], nnz: int | None, dtype: Any, passes: int, columns: int = 1,
           algorithm: str = "") -> Device:
    """The device on which so many passes of the algorithm over such a matrix are expected to end first."""
    return device(_best(shape, nnz, np.dtype(dtype), passes, columns, algorithm))


@functools.lru_cache(maxsize=1024)
def _best(shape: tuple[int, int], nnz: int | None, dtype: Any, passes: int, columns: int,
          algorithm: str) -> str:
    """Its name; a process that asks again is told the same, without a look at what was measured on this
    machine."""
    host = device("cpu")
    work = struct("kiln_work", format=lib.KILN_DENSE if nnz is None else lib.KILN_CSR, type=_type_of(dtype),
                  rows=shape[0], cols=shape[1], nnz=nnz or 0, k=columns, passes=passes)
    named = lib.kiln_algorithm_named(algorithm.encode())
    if named:
        work.trial = named.trial
    chosen, estimates, count = ffi.new("kiln_device **"), ffi.new("kiln_estimate **"), ffi.new("int64_t *")
    host.call(lib.kiln_device_choose, chosen, estimates, count, host.pointer, work, ffi.NULL)
    try:
        name = next((text(estimates[0][i].device) for i in range(count[0]) if estimates[0][i].chosen), "cpu")
    finally:
        lib.kiln_free(estimates[0])
        if chosen[0] != host.pointer:
            lib.kiln_device_close(chosen[0])
    return name


_stay = contextvars.ContextVar("kiln.results_on_device", default=False)


@contextlib.contextmanager
def results_on_device() -> Iterator[None]:
    """Within the block, functions and methods of estimators return each array as a kiln.Matrix in the memory
    of its device.

        with kiln.results_on_device():
            Z = kiln.multiply(X, W)
        torch.from_dlpack(Z)            # the same memory

    Labels, and what a fit keeps in attributes, are NumPy arrays as ever.
    """
    token = _stay.set(True)
    try:
        yield
    finally:
        _stay.reset(token)


def staying() -> bool:
    """Whether results_on_device() holds."""
    return _stay.get()


class Matrix:
    """A dense or sparse (CSR) matrix on a device. Made once, it serves any number of calls and fits.

    Matrix(array) takes NumPy arrays, SciPy's, CuPy's and PyTorch's sparse matrices, and arrays with DLPack
    (PyTorch, CuPy, JAX; on the CPU and on CUDA devices). C-contiguous arrays and CSR matrices of float32 and
    float64 are used where they lie; others are copied, or in CUDA memory refused. Of a CSR matrix whose
    entries are all one number, the number is kept and its values are no longer read. A dense matrix offers
    DLPack itself: torch.from_dlpack(matrix) is the same memory.

    Matrix("X.npy") stays in its file, an uncompressed .npy by rows or .npz in CSR, and passes over it read it
    from there, so that it may be larger than memory; linear models and mmchain, multiply take such a matrix.
    """

    _file: Any = None  # where the values stay
    _folder: Any = None  # of kiln.stream, which goes with the last matrix that has it
    shape: tuple[int, int]
    feature_names: Any = None  # of the columns, an array of text, where a frame had them

    def __init__(self, array: Any, device: str | Device = "cpu", *, dtype: Any = None) -> None:
        self._keep: list[Any] = []  # what the C matrix points into
        if dtype is not None and np.dtype(dtype) not in _TYPES:
            raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
        pointer = ffi.new("kiln_matrix **")
        if isinstance(array, (str, os.PathLike)):
            self._file = array
            self.device, mapped = _mapped(self._keep, array, device, dtype)
            self._know(mapped)
            return
        element = 0
        if type(array) is not np.ndarray and on_cuda(array):
            self.device, memory = _cuda_memory(self._keep, array, device)
        elif hasattr(array, "tocsr") or getattr(array, "is_sparse_csr", False):
            self.device, memory = _sparse_memory(self._keep, array, device, dtype)
        else:
            self.device, memory, element = _dense_memory(self._keep, array, device, dtype, True)
            self.feature_names = names_of(array)
        if element:
            self.device.call(lib.kiln_matrix_wrap_narrow, pointer, self.device.pointer, memory, element)
        else:
            self.device.call(lib.kiln_matrix_wrap, pointer, self.device.pointer, memory)
        self._own(pointer[0], None if memory.row_start else (memory.rows, memory.cols),
                  _F32 if memory.type == lib.KILN_F32 else _F64)
        if memory.row_start and not memory.on_device:  # entries that are all one number need no values
            self.device.call(lib.kiln_matrix_narrow, self.pointer, lib.KILN_ELEMENT_TYPE, ffi.NULL)

    @classmethod
    def adopt(cls, pointer: Any, device: Device, keep: Any = None) -> Matrix:
        """A matrix that the library has made; keep: what it shares memory with."""
        self = cls.__new__(cls)
        self._keep = [keep]
        self.device = device
        self._own(pointer)
        return self

    @classmethod
    def within(cls, pointer: Any, device: Device, keep: Any) -> Matrix:
        """A matrix that another owner frees, which lives as long as this."""
        self = cls.__new__(cls)
        self._keep, self.device = [keep], device
        self._know(pointer)
        return self

    @classmethod
    def empty(cls, device: Device, shape: tuple[int, int], dtype: Any) -> Matrix:
        """A dense matrix of zeros."""
        pointer = ffi.new("kiln_matrix **")
        device.call(lib.kiln_matrix_dense, pointer, device.pointer, _type_of(dtype), shape[0], shape[1],
                    ffi.NULL)
        self = cls.__new__(cls)
        self._keep, self.device = [], device
        self._own(pointer[0], shape, np.dtype(dtype))
        return self

    def _own(self, pointer: Any, shape: tuple[int, int] | None = None, dtype: Any = None) -> None:
        """shape, dtype: of a dense matrix, where they are known."""
        pointer = self.device.turn.own(lib.kiln_matrix_free, pointer, self._keep)
        if shape is None:
            self._know(pointer)
        else:
            self.pointer, self.shape, self.dtype, self.sparse, self.nnz = (
                pointer, shape, dtype, False, shape[0] * shape[1])

    def _know(self, pointer: Any) -> None:
        self.pointer = pointer
        self.shape = (lib.kiln_matrix_rows(pointer), lib.kiln_matrix_cols(pointer))
        self.dtype = _F32 if lib.kiln_matrix_type(pointer) == lib.KILN_F32 else _F64
        self.sparse = lib.kiln_matrix_format(pointer) == lib.KILN_CSR
        self.nnz = lib.kiln_matrix_nnz(pointer)

    @property
    def mapped(self) -> bool:
        """True if the values stay in a file."""
        return self._file is not None

    def numpy(self) -> Any:
        """A copy in host memory: an ndarray, of a sparse matrix a scipy.sparse.csr_matrix."""
        values = np.empty(self.nnz if self.sparse else self.shape, self.dtype)
        if not self.sparse:
            if values.size:
                self.device.call(lib.kiln_matrix_get, ffi.from_buffer(values), self.pointer)
            return values
        sparse = needed("scipy.sparse", "a sparse matrix in Python")
        starts, columns = np.empty(self.shape[0] + 1, np.int64), np.empty(self.nnz, np.int32)
        self.device.call(lib.kiln_matrix_get_csr, _memory_of(starts, "int64_t[]"),
                         _memory_of(columns, "int32_t[]"), _memory_of(values), self.pointer)
        if self.nnz < 2**31:  # which SciPy would come to itself, after a look at all
            starts = starts.astype(np.int32)
        return sparse.csr_matrix((values, columns, starts), self.shape)

    def __reduce__(self) -> Any:
        """Copies, and pickles, have the values of their own, or the file."""
        return _made, (self.numpy() if self._file is None else self._file, self.device, self.dtype,
                       self.feature_names, self._folder is not None, self.shape)

    def __copy__(self) -> Matrix:
        """The values of a file, which nobody changes, are the copy's, too."""
        if self._file is None:
            return _made(*self.__reduce__()[1])
        made = Matrix.within(self.pointer, self.device, self)
        made._file, made._folder, made.feature_names = self._file, self._folder, self.feature_names
        return made

    def __deepcopy__(self, known: Any) -> Matrix:
        return self.__copy__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        values = self.numpy()
        if self.sparse:
            raise TypeError("a sparse kiln.Matrix is no array; numpy() makes a scipy.sparse.csr_matrix of it")
        return values if dtype is None else values.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device.name == "cpu":
            return CPU, 0
        if self.device.name.startswith("cuda:") and self.device.name[5:].isdigit():  # not a group
            return CUDA, int(self.device.name[5:])
        raise BufferError(f"{self.device.name} has no memory that other packages know; numpy() copies it")

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """The values for another package, in place; all work on them is done. The matrix stays on its device
        from then on."""
        here = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != here:
            raise BufferError(f"the matrix lies on {self.device.name}; numpy() copies it")
        if copy:
            made = ffi.new("kiln_matrix **")
            self.device.call(lib.kiln_matrix_copy, made, self.device.pointer, lib.KILN_TYPE_DEFAULT,
                             self.pointer)
            return Matrix.adopt(made[0], self.device).__dlpack__()
        memory = struct("kiln_memory")
        self.device.call(lib.kiln_matrix_lend, memory, self.pointer)
        return lend(self, memory)

    def result(self, vector: bool = False) -> Any:
        """What a call hands out: within results_on_device() this matrix, else an array, with `vector` of one
        dimension."""
        if _stay.get():
            return self
        values = self.numpy()
        return values[:, 0] if vector and not self.sparse else values

    def __repr__(self) -> str:
        kind = f"sparse, {self.nnz:,} entries" if self.sparse else "dense"
        return (f"<kiln.Matrix {self.shape[0]:,} x {self.shape[1]:,} {self.dtype.name}, {kind}, on "
                f"{self.device.name}>")


streams: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # folders by their files


def _made(array: Any, where: Device, dtype: Any, names: Any = None, streamed: bool = False,
          shape: Any = None) -> Matrix:
    folder = streams.get(array) if streamed else None
    if streamed and not os.path.exists(array):
        raise DataError("the rows of this matrix were in a temporary file of kiln.stream, which has gone "
                        "with the last matrix that had it: stream them again, or keep the file "
                        "yourself: kiln.matrix('X.npy')")
    made = Matrix(array, where, dtype=dtype)
    if shape is not None and made.shape != tuple(shape):
        raise DataError(f"{os.fspath(array)} makes a matrix of {made.shape[0]} x {made.shape[1]}, but this "
                        f"one was of {shape[0]} x {shape[1]}: the file has changed, or columns of it were "
                        "left out, so that kiln.read has to read it again")
    made.feature_names, made._folder = names, folder
    return made


def names_of(frame: Any) -> Any:
    """The names of a frame's columns as scikit-learn takes them: an array of text, None where they are none,
    such as numbers."""
    names = list(getattr(frame, "columns", ()))
    return np.array(names, object) if names and all(isinstance(name, str) for name in names) else None


def _mapped(keep: list[Any], path: Any, where: str | Device, dtype: Any) -> tuple[Device, Any]:
    """The matrix of a file that stays there."""
    wanted, made = device(where), ffi.new("kiln_data **")
    options = struct("kiln_read_options", type=_type_of(dtype or np.float64), map=1)
    wanted.call(lib.kiln_data_read, made, wanted.pointer, c_name(path), options)
    data = wanted.turn.own(lib.kiln_data_free, made[0])
    keep.append(data)
    return wanted, lib.kiln_data_X(data)


def _memory_of(array: Any, kind: str = "char[]") -> Any:
    """What a contiguous NumPy array begins with; NULL of an empty one."""
    return ffi.from_buffer(kind, array) if array.size else ffi.NULL


def _float_type(array: Any, dtype: Any) -> Any:
    wanted = np.dtype(dtype) if dtype is not None else getattr(array, "dtype", None)
    return wanted if wanted in _TYPES else _F64


def is_graph(array: Any) -> bool:
    """Whether it is one of networkx's graphs."""
    return hasattr(array, "is_directed") and hasattr(array, "adj")


def refuse_disguised(array: Any, name: str = "") -> None:
    """Refuses what NumPy makes numbers of although they are none: a graph's nodes, entries behind a mask, and
    dates."""
    where = f"{name}: " if name else ""
    if is_graph(array):
        raise ArgumentError(f"{where}a networkx graph is no matrix: kiln.pagerank and kiln.hits take it, "
                            "networkx.to_scipy_sparse_array makes one")
    if np.ma.is_masked(array):
        raise ArgumentError(f"{where}expected real numbers, got a masked array: fill in the masked entries, "
                            "or leave out their rows")
    kind = getattr(array, "dtype", None)
    if isinstance(kind, np.dtype) and kind.names:
        raise ArgumentError(f"{where}expected real numbers, got an array of records with the fields "
                            f"{', '.join(kind.names)}: numpy.lib.recfunctions.structured_to_unstructured "
                            "makes columns of them")
    if isinstance(kind, np.dtype) and kind == np.dtype(f"V{kind.itemsize}"):
        raise ArgumentError(f"{where}expected real numbers, got an array of {kind}, bytes without a type")
    if isinstance(kind, np.dtype) and kind.kind in "mM":
        raise ArgumentError(f"{where}expected real numbers, got {kind}: make numbers of dates, such as days "
                            "since the first")


def numbers(array: Any) -> Any:
    """A host array of numbers: the array, or what NumPy makes of it if these are numbers in rows of one
    length."""
    refuse_disguised(array)
    if type(array) is not np.ndarray:
        if isinstance(array, (set, frozenset, dict)) or hasattr(array, "__next__") or array is None:
            raise ArgumentError(f"expected an array, got {type(array).__name__}")
        try:
            array = (np.from_dlpack(array)
                     if hasattr(array, "__dlpack__") and not hasattr(array, "__array__")
                     else np.asarray(array))
        except ValueError as error:
            raise ArgumentError("expected numbers in rows of one length, got a ragged "
                                f"{type(array).__name__}") from error
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"expected numbers, got an array of objects: {error}") from error
    if array.dtype.kind not in "biufV" or array.dtype.names:
        raise ArgumentError(f"expected real numbers, got an array of {array.dtype}")
    return array


def _element(values: Any, kind: Any) -> int:
    """Which narrow numbers of a matrix of that type an array has, 0 if it has none. NumPy takes any byte of a
    bool but 0 for 1, the library takes it for a number."""
    if values.ndim != 2 or values.dtype == kind:
        return 0
    odd = values.dtype == bool and values.size > 0 and values.view(np.uint8).max() > 1
    return 0 if odd else _ELEMENTS.get(values.dtype, 0)


def _dense_memory(keep: list[Any], array: Any, where: str | Device, dtype: Any,
                  narrow: bool = False) -> tuple[Device, Any, int]:
    """Its memory, and which narrow numbers lie there, if any may and do."""
    values = numbers(array)
    if values.ndim not in (1, 2):
        raise ArgumentError(f"expected an array of 1 or 2 dimensions, got {values.ndim}")
    kind = _float_type(values, dtype)
    element = _element(values, kind) if narrow else 0
    values = values.reshape(-1, 1) if values.ndim == 1 else values
    wide, values = values, _plain(values, values.dtype if element else kind)
    if not element:
        tell_collapsed(wide, values)
    buffer = _memory_of(values)
    keep += [values, buffer]
    return device(where), struct("kiln_memory", type=_type_of(kind), rows=values.shape[0],
                                 cols=values.shape[1], values=buffer), element


def _plain(array: Any, dtype: Any) -> Any:
    """The array itself, or its copy where it is not contiguous, not aligned or of another type."""
    return np.require(array, dtype, ["C", "A"])


def _part(array: Any, name: str, dimensions: int = 1) -> Any:
    part = np.asarray(getattr(array, name))
    if part.ndim != dimensions:
        raise DataError(f"the sparse matrix's {name} has {part.ndim} dimensions, but must have {dimensions}")
    if part.dtype.kind not in ("iu" if name != "data" else "biuf"):
        raise DataError(f"the sparse matrix's {name} must be "
                        f"{'integers' if name != 'data' else 'real numbers'}, got {part.dtype}")
    return part


def _check_length(part: Any, name: str, needed: int, exact: bool = True) -> None:
    if len(part) < needed or (exact and len(part) > needed):
        raise DataError(f"the sparse matrix's {name} has {len(part)} numbers, but needs {needed}")


def _check_places(part: Any, name: str, most: int) -> None:
    if len(part) and (part.min() < 0 or part.max() >= most):
        raise DataError(f"the sparse matrix's {name} has numbers outside of [0, {most})")


def _check_sparse(array: Any) -> None:
    """A sparse matrix of SciPy's whose arrays do not fit together is refused before anybody follows them."""
    form = getattr(array, "format", None)
    if len(array.shape) != 2:
        raise ArgumentError(f"expected a matrix of 2 dimensions, got {len(array.shape)}")
    if form == "coo":
        data = _part(array, "data")
        for name, most in (("row", array.shape[0]), ("col", array.shape[1])):
            part = _part(array, name)
            _check_length(part, name, len(data))
            _check_places(part, name, most)
    elif form in ("csr", "csc", "bsr"):
        lines, across = (n // size for n, size in zip(array.shape, array.blocksize if form == "bsr"
                                                      else (1, 1)))
        if form == "csc":
            lines, across = across, lines
        starts, places, data = (_part(array, "indptr"), _part(array, "indices"),
                                _part(array, "data", 3 if form == "bsr" else 1))
        _check_length(starts, "indptr", lines + 1)
        if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
            raise DataError("the sparse matrix's indptr must begin with 0 and never decrease")
        _check_length(places, "indices", int(starts[-1]), exact=False)
        _check_length(data, "data", int(starts[-1]), exact=False)
        if form != "csr" or places.dtype.itemsize > 4:  # the library looks at the columns of others
            _check_places(places[:starts[-1]], "indices", across)


def widened(array: Any) -> Any:
    """An array or sparse matrix whose numbers can be added up: SciPy and NumPy add narrow ones in their own
    type, where sums wrap around."""
    kind = array.dtype
    narrow = kind == np.float16 or (kind.kind in "biu" and kind.itemsize < 8)
    return array.astype(np.float64) if narrow else array


def canonical(array: Any) -> Any:
    """A sparse matrix of SciPy's as CSR, checked, with each entry once and by columns; others as they are."""
    if not hasattr(array, "tocsr"):
        return array
    _check_sparse(array)
    if array.format == "csr" and array.has_canonical_format:
        return array
    csr = widened(array).tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is array else csr
        csr.sum_duplicates()
    return csr


def as_csr(X: Any) -> Any:
    """A Matrix, array or sparse matrix as SciPy's csr_matrix, with each entry once."""
    sparse = needed("scipy.sparse", "a sparse matrix in Python")
    return sparse.csr_matrix(canonical(X.numpy() if isinstance(X, Matrix) else X))


def _sparse_memory(keep: list[Any], array: Any, where: str | Device, dtype: Any) -> tuple[Device, Any]:
    csr = canonical(array if hasattr(array, "tocsr") else _torch_csr(array))
    if csr.shape[1] >= 2**31:
        raise ArgumentError(f"expected fewer than 2^31 columns, got {csr.shape[1]}")
    values = _plain(csr.data, _float_type(csr, dtype))
    columns = _plain(csr.indices, np.int32)
    starts = _plain(csr.indptr, np.int32 if csr.indptr.dtype == np.int32 else np.int64)
    keep += [values, columns, starts]
    tell_collapsed(csr.data, values, columns, csr.shape[0])
    memory = struct("kiln_memory", type=_type_of(values.dtype), rows=csr.shape[0], cols=csr.shape[1],
                    values=_memory_of(values), row_start=_memory_of(starts),
                    col=_memory_of(columns, "int32_t[]"), row_start_bits=8 * starts.dtype.itemsize)
    return device(where), memory


def host_memory(keep: list[Any], array: Any, dtype: Any) -> Any:
    """The kiln_memory of an array or sparse matrix in host memory."""
    made = _sparse_memory if hasattr(array, "tocsr") else _dense_memory
    return made(keep, array, "cpu", dtype)[1]


def _torch_csr(array: Any) -> Any:
    """A CSR tensor of PyTorch's in host memory, as SciPy has it."""
    sparse = needed("scipy.sparse", "a sparse tensor")
    parts = (np.asarray(part.detach()) for part in (array.values(), array.col_indices(),
                                                    array.crow_indices()))
    return sparse.csr_matrix(tuple(parts), array.shape)


def _cuda_memory(keep: list[Any], array: Any, where: str | Device) -> tuple[Device, Any]:
    """Memory of a CUDA device that another package lends."""
    number, memory = cuda_memory(keep, array)
    wanted = device(where if isinstance(where, Device) or where.startswith("cuda") else f"cuda:{number}")
    if wanted.name != f"cuda:{number}":
        raise ArgumentError(f"the array lies on cuda:{number}, not on {wanted.name}")
    return wanted, memory


def affine(X: Matrix, W: Any, b: Any) -> Matrix:
    """X W + 1 b, where X lies; W and b: the library's matrices, b NULL: none."""
    call, made = X.device.call, Matrix.empty(X.device, (X.shape[0], lib.kiln_matrix_cols(W)), X.dtype)
    if b != ffi.NULL:
        ones = Matrix.empty(X.device, (X.shape[0], 1), X.dtype)
        call(lib.kiln_fill, ones.pointer, 1)
        call(lib.kiln_multiply, made.pointer, 1, lib.KILN_PLAIN, ones.pointer, b, 0, ffi.NULL)
    call(lib.kiln_multiply, made.pointer, 1, lib.KILN_PLAIN, X.pointer, W, int(b != ffi.NULL), made.pointer)
    return made


def matrix(array: Any, where: str | Device = "cpu", dtype: Any = None) -> Matrix:
    """The array as a Matrix on the device; a Matrix that is there already is taken as it is."""
    if not isinstance(array, Matrix):
        return Matrix(array, where, dtype=dtype)
    wanted = device(where)
    if array.device is wanted and (dtype is None or array.dtype == np.dtype(dtype)):
        return array
    pointer = ffi.new("kiln_matrix **")
    with array.device.turn:
        wanted.call(lib.kiln_matrix_copy, pointer, wanted.pointer, _type_of(dtype or array.dtype),
                    array.pointer)
    made = Matrix.adopt(pointer[0], wanted)
    made.feature_names = array.feature_names
    return made
