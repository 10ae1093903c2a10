"""A fit that several processes share: each calls it with rows of its own, and has the whole model then
(kiln.distributed.join). What fails in one process fails in all, at the same place."""
from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import re
import threading
from typing import Any, Callable, TypeVar, cast

import numpy as np

from ._arrays import Device, Matrix, canonical, host_memory
from ._library import ArgumentError, DeviceError, KilnError, UnsupportedError, check, ffi, lib, struct
from ._words import warn

_LENT: set[Any] = set()  # handles of the arrays that the library works on


@ffi.callback("void(void *)")  # type: ignore[untyped-decorator]
def _done(user: Any) -> None:
    """The library is done with a process's rows."""
    _LENT.discard(user)


class Joined:
    """The processes that kiln.distributed.join() has brought together: `rank` is this one's number, from 0,
    of `size`. A context manager; leave() ends it, in all processes."""

    _handle: Any = None
    _device: Device | None = None  # of process 0, for all

    def __init__(self, communicator: int, transport: Any, name: str, **options: Any) -> None:
        self._calls = _Calls(transport) if transport is not None else None
        handle = ffi.new("kiln_processes **")
        self._check(lib.kiln_processes_meet(handle, communicator,
                                            self._calls.struct if self._calls else ffi.NULL))
        self._handle = handle[0]
        self.rank: int = lib.kiln_processes_rank(self._handle)
        self.size: int = lib.kiln_processes_count(self._handle)
        self.fitting = False  # so that fits within a fit are this process's own
        try:
            self._lead(lambda: setattr(self, "_device", Device(name, _processes=self._handle, **options)))
        except BaseException:  # a device's name that is no text, too: nobody else has the handle
            self.leave()
            raise

    def __enter__(self) -> Joined:
        return self

    def __exit__(self, *error: Any) -> None:
        self.leave()

    def __repr__(self) -> str:
        return f"<kiln.distributed.Joined: process {self.rank} of {self.size}>"

    def leave(self) -> None:
        """Ends it. The others learn that this process has left when they call fit the next time."""
        if current() is self:
            _here.joined = None
        if self._handle is None:
            return
        with contextlib.suppress(KilnError):  # of processes that are gone
            self.gather(("leave", None))
        self._part()

    def _part(self) -> None:
        handle, self._handle = self._handle, None
        lib.kiln_processes_leave(handle)

    def _check(self, status: int) -> None:
        """check(), with what the transport raised as the cause."""
        try:
            check(status)
        except KilnError as error:
            raise error from (self._calls.error if self._calls else None)

    # ------------------------------------------------------------------------------------------- objects

    def collect(self, what: Any) -> list[Any]:
        """In process 0 what each process gave; elsewhere nothing."""
        return [pickle.loads(one) for one in self._collect_bytes(pickle.dumps(what, protocol=5))]

    def _collect_bytes(self, data: bytes) -> list[bytes]:
        """The same of bytes, of which no process fails by itself."""
        if self._handle is None:
            raise DeviceError("these processes have parted, and no fit of one is that of all rows any more: "
                              "leave the block of kiln.distributed.join(), and join again")
        all_, ends = ffi.new("void **"), ffi.new("int64_t[]", self.size)
        self._check(lib.kiln_processes_collect(all_, ends, self._handle, ffi.from_buffer(data), len(data)))
        if all_[0] == ffi.NULL:
            return []
        try:
            view = memoryview(ffi.buffer(all_[0], ends[self.size - 1]))
            return [bytes(view[begin:end]) for begin, end in zip([0, *ends], ends)]
        finally:
            lib.kiln_free(all_[0])

    def spread(self, what: Any) -> Any:
        """What process 0 gives, in all."""
        data = pickle.dumps(what, protocol=5) if self.rank == 0 else b""
        keep = ffi.from_buffer(data)
        bytes_, count = ffi.new("void **"), ffi.new("int64_t *", len(data))
        bytes_[0] = ffi.cast("void *", keep)
        self._check(lib.kiln_processes_spread(bytes_, count, self._handle))
        if self.rank == 0:
            return what
        try:
            return pickle.loads(ffi.buffer(bytes_[0], count[0]))
        finally:
            lib.kiln_free(bytes_[0])

    def gather(self, told: tuple[str, Any]) -> list[Any]:
        """What all tell, in all. told: what this process is about to do, and an object. Where they do not do
        the same all end here."""
        all_: list[tuple[str, Any]] = self.spread(self.collect(told))
        doing = [what for what, _ in all_]
        if len(set(doing)) > 1:
            other = next(i for i, what in enumerate(doing) if what != doing[self.rank])
            if told[0] != "leave":
                self._part()
            raise DeviceError(f"process {other} of {self.size} does something else than process {self.rank}: "
                              f"{doing[other]} in place of {doing[self.rank]}; all processes must call the "
                              "same fits in the same order, and they have parted now")
        return [what for _, what in all_]

    def _lead(self, call: Callable[[], Any]) -> Any:
        """call() in process 0, whom the others serve meanwhile; its result, or its exception, in all."""
        outcome: Any = None
        if self.rank == 0:
            try:
                outcome = call()
            except BaseException as error:  # which the others are to have, too
                outcome = error
            self._check(lib.kiln_processes_rest(self._handle))
        else:
            self._check(lib.kiln_processes_serve(self._handle))
        told = self.spread(_sendable(outcome))
        outcome = outcome if self.rank == 0 else told
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome
        finally:
            del outcome, told  # an exception that its own traceback kept would keep X

    # ------------------------------------------------------------------------------------------- fitting

    def fit(self, model: Any, fit: Callable[..., Any], X: Any, rows: dict[str, Any]) -> None:
        """fit(model, X, **rows) of the rows of all processes. rows: y, sample_weight and the like, one for
        each row, or None."""
        self.fitting = True
        try:
            self._fit(model, fit, X, rows)
        finally:
            self.fitting = False

    def _fit(self, model: Any, fit: Callable[..., Any], X: Any, rows: dict[str, Any]) -> None:
        doing = f"{type(model).__name__}.fit"
        mine, all_ = self._ready(doing, lambda: _Rows(model, X, rows), lambda made: made.facts)
        _check_facts(all_)
        dtype = np.float32 if all(one["dtype"] == "float32" for one in all_) else np.float64
        # What may need much memory is made before the library's protocol begins: all learn of a failure.
        (data, memory, handle), _ = self._ready(doing, lambda: (pickle.dumps(mine.rows, protocol=5),
                                                                *mine.lent(dtype)))
        pickles, united = self._collect_bytes(data), ffi.new("kiln_matrix **")
        _LENT.add(handle)
        status = lib.kiln_processes_unite(united, self._handle, memory)

        def train() -> tuple[dict[str, Any], dict[str, Any]]:
            self._check(status)
            assert self._device is not None
            whole = Matrix.adopt(united[0], self._device)
            model.__dict__.pop("feature_names_in_", None)
            fit(model, whole, **_joint_rows([pickle.loads(one) for one in pickles]))
            if all_[0]["names"] is not None:
                model.feature_names_in_ = np.array(all_[0]["names"], object)
            return ({name: value for name, value in vars(model).items() if name not in _parameters(model)},
                    {name: one.get_state() for name, one in _generators(model)})

        fitted, states = self._lead(train)
        for name, one in _generators(model):  # the others' go on as process 0's, for the next fit
            one.set_state(states[name])
        counts = [one["rows"] for one in all_]
        first = sum(counts[:self.rank])
        for name in model._row_results:
            if fitted.get(name) is not None:
                fitted[name] = fitted[name][first:first + counts[self.rank]]
        kept = {name: value for name, value in vars(model).items() if name in _parameters(model)}
        vars(model).clear()
        vars(model).update({**kept, **fitted})

    def _ready(self, doing: str, make: Callable[[], Any],
               tell: Callable[[Any], Any] = lambda made: None) -> tuple[Any, list[Any]]:
        """make(), and what all tell of theirs; an exception in one process is raised in all."""
        made: Any = None
        try:
            made = make()
            told = tell(made)
        except Exception as error:  # which all are to have
            told = error
        all_ = self.gather((doing, _sendable(told)))
        try:
            for rank, one in enumerate(all_):
                if isinstance(one, Exception):
                    if rank == self.rank and isinstance(told, Exception):
                        raise told
                    one.args = (f"process {rank} of {self.size}: {one}",)
                    raise one
            return made, all_
        finally:
            del told  # an exception that its own traceback kept would keep X


def _check_facts(all_: list[Any]) -> None:
    """The same error in all processes, where they differ."""
    for name, what in (("parameters", "parameters"), ("columns", "features"), ("names", "feature names"),
                       ("sparse", "kind of X, dense or sparse,"), ("given", "arrays beside X")):
        for rank, facts in enumerate(all_):
            if facts[name] != all_[0][name]:
                found, first = _different(facts[name], all_[0][name])
                raise ArgumentError(f"process {rank} of {len(all_)} has other {what} than process 0: "
                                    f"{found}, where that has {'another' if found == first else first}")


def _different(*both: Any) -> list[str]:
    """Two facts in words; of those that have names, the ones that differ."""
    if not isinstance(both[0], dict):
        return [repr(one) for one in both]
    names = [name for name in {**both[0], **both[1]} if both[0].get(name) != both[1].get(name)]
    return [", ".join(f"{name}={one[name]}" for name in names if name in one) or "none" for one in both]


class _Rows:
    """A process's part of what a fit takes, as the library takes it, and what the others are told of it."""

    def __init__(self, model: Any, X: Any, rows: dict[str, Any]) -> None:
        from sklearn.utils.validation import _get_feature_names, check_array, check_consistent_length

        from ._base import host_vector
        from ._columns import as_table
        from ._frames import all_numbers

        if not model._joins:
            raise UnsupportedError(f"{type(model).__name__} cannot be fitted by several processes together: "
                                   "linear models, KMeans, TruncatedSVD and PCA can; kiln.processes() offers "
                                   "a device for others")
        if as_table(X) is not None and not all_numbers(X):
            raise UnsupportedError("X has columns of text or dates, of which each process would make columns "
                                   "of its own: a kiln.TableEncoder that was fitted before, once for all, "
                                   "makes numbers of them")
        names = _get_feature_names(X)
        X = canonical(X.numpy() if isinstance(X, Matrix) else X)
        self.X = check_array(X, accept_sparse="csr", order="C",
                             dtype=[np.float64, np.float32], ensure_all_finite=False, estimator=model)
        self.rows = {name: value if np.isscalar(value) and name != "y" else host_vector(value)
                     for name, value in rows.items() if value is not None}
        check_consistent_length(self.X, *(one for one in self.rows.values() if not np.isscalar(one)))
        parameters = {name: _Value(value) for name, value in model.get_params(deep=False).items()
                      if name not in ("device", "verbose", "callback")}
        self.facts = {"rows": self.X.shape[0], "columns": self.X.shape[1], "dtype": self.X.dtype.name,
                      "sparse": hasattr(self.X, "tocsr"), "names": None if names is None else list(names),
                      "parameters": parameters, "given": {name: _kind(one)
                                                          for name, one in self.rows.items()}}

    def lent(self, dtype: Any) -> tuple[Any, Any]:
        """The rows of X as a kiln_memory, and the handle that keeps them while it is in _LENT."""
        keep: list[Any] = []
        memory = host_memory(keep, self.X, dtype)
        handle = ffi.new_handle(keep)
        memory.release, memory.user = _done, handle
        keep.append(memory)
        return memory, handle


class _Value:
    """A parameter's value, as processes compare theirs. What repr shortens, or tells by its address, is the
    same where its pickle is: a generator in the same state, wherever it lies."""

    def __init__(self, value: Any) -> None:
        text = repr(value)
        self.text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)
        exact = isinstance(value, np.ndarray) or self.text != text
        # protocol 4, as 5 also tells whether an array may be written
        self.key = hashlib.sha256(pickle.dumps(value, protocol=4)).hexdigest() if exact else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and self.key == other.key

    def __repr__(self) -> str:
        return self.text


def _kind(one: Any) -> Any:
    """What must be the same of all processes' arrays: numbers or text, a vector or columns."""
    if np.isscalar(one):
        return one
    kind = "number" if one.dtype.kind in "biuf" else "text" if one.dtype.kind in "OUS" else one.dtype.kind
    return kind, *one.shape[1:]


def _joint_rows(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The arrays beside X of all processes, one after the other."""
    return {name: one if np.isscalar(one) else np.concatenate([rows[name] for rows in told])
            for name, one in told[0].items()}


def _parameters(model: Any) -> set[str]:
    return set(model._get_param_names())


def _generators(model: Any) -> list[tuple[str, np.random.RandomState]]:
    """The parameters from which a fit draws numbers."""
    return [(name, one) for name, one in vars(model).items()
            if name in _parameters(model) and isinstance(one, np.random.RandomState)]


def _sendable(what: Any) -> Any:
    """An object that pickles: what does not is an error, or an exception of the same words."""
    if isinstance(what, KeyboardInterrupt):
        return DeviceError("process 0 was interrupted")
    try:
        pickle.loads(pickle.dumps(what, protocol=5))
    except Exception as error:
        return DeviceError(str(what) if isinstance(what, BaseException) else
                           f"the fitted model cannot be sent to other processes: {error}")
    return what


class _Calls:
    """A transport of Python's as the library calls it."""

    def __init__(self, transport: Any) -> None:
        for name in ("rank", "size", "send", "receive"):
            if not hasattr(transport, name):
                raise ArgumentError(f"a transport has rank, size, send(to, data) and receive(source, data); "
                                    f"this {type(transport).__name__} has no {name}")
        self.error: BaseException | None = None
        self._keep: list[Any] = [transport, ffi.new("char[]", str(getattr(
            transport, "name", type(transport).__name__)).encode())]
        local, local_count = _local(transport)
        broadcast, add = getattr(transport, "broadcast", None), getattr(transport, "add", None)
        self.struct = struct(
            "kiln_transport", rank=transport.rank, count=transport.size, local=local, local_count=local_count,
            name=self._keep[1],
            send=self._callback("int(void *, int, const void *, int64_t)", lambda to, data, count:
                                transport.send(to, memoryview(ffi.buffer(data, count)))),
            receive=self._callback("int(void *, int, void *, int64_t)", lambda source, data, count:
                                   transport.receive(source, memoryview(ffi.buffer(data, count)))),
            broadcast=broadcast and self._callback(
                "int(void *, void *, int64_t)",
                lambda data, count: broadcast(memoryview(ffi.buffer(data, count)))),
            sum=add and self._callback(
                "int(void *, void *, int64_t, int)",
                lambda data, count, real: add(np.frombuffer(ffi.buffer(data, count * real), f"f{real}"))))

    def _callback(self, kind: str, function: Callable[..., Any]) -> Any:
        def called(_: Any, *arguments: Any) -> int:
            function(*arguments)
            return 0

        def failed(_: Any, error: BaseException, __: Any) -> int:
            self.error = error
            return 1

        made = ffi.callback(kind, called, onerror=failed)
        self._keep.append(made)
        return made


def _local(transport: Any) -> tuple[int, int]:
    """This process's number among those of its machine, and how many these are."""
    import socket

    boot = "/proc/sys/kernel/random/boot_id"
    name = socket.gethostname() + (open(boot).read() if os.path.exists(boot) else "")
    names = bytearray(16 * transport.size)
    own = memoryview(names)[16 * transport.rank:][:16]
    own[:] = hashlib.sha256(name.encode()).digest()[:16]
    for other in range(1, transport.size):
        if transport.rank == 0:
            transport.receive(other, memoryview(names)[16 * other:][:16])
        elif transport.rank == other:
            transport.send(0, own)
    for other in range(1, transport.size):
        if transport.rank == 0:
            transport.send(other, memoryview(names))
        elif transport.rank == other:
            transport.receive(0, memoryview(names))
    same = [i for i in range(transport.size) if names[16 * i:][:16] == own]
    return same.index(transport.rank), len(same)


# ------------------------------------------------------------------------------------------- the estimators

_here = threading.local()  # .joined: the processes that this thread has joined
_told = False  # whether it was warned of processes that have not joined


def join(made: Joined) -> Joined:
    """From then on fits of this thread are shared."""
    _here.joined = made
    return made


def current() -> Joined | None:
    """The processes that this thread has joined."""
    return getattr(_here, "joined", None)


def _sharing() -> Joined | None:
    """The same, but None within a fit, whose own fits are not shared."""
    found = current()
    return None if found is None or found.fitting else found


# the variables with which launchers number the processes that they have started, and count them
LAUNCHERS = {"mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), "mpiexec": ("PMI_RANK", "PMI_SIZE"),
             "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), "torchrun": ("RANK", "WORLD_SIZE")}


def launched() -> tuple[str, int, int] | None:
    """The launcher that has started several processes, this one's number and how many there are."""
    for launcher, (rank, size) in LAUNCHERS.items():
        number, count = os.environ.get(rank, ""), os.environ.get(size, "")
        if number.isdigit() and count.isdigit() and int(count) > 1:
            return launcher, int(number), int(count)
    return None


def _warn_apart() -> None:
    """One warning, in the first process, where a launcher has started several and each fits alone."""
    global _told
    _told = True
    found = launched()
    if found is not None and found[1] == 0:
        warn(f"{found[0]} has started {found[2]} processes, and each fits a model of its own rows: `with "
             "kiln.distributed.join():` fits one model of all rows")


def shared(fit: Callable[..., Any]) -> Callable[..., Any]:
    """An estimator's fit, which processes that have joined do together."""
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def called(self: Any, *given: Any, **named: Any) -> Any:
        together = _sharing()
        if together is None:
            if not _told and current() is None:
                _warn_apart()
            return fit(self, *given, **named)
        bound = signature.bind(self, *given, **named)
        rows = {name: value for name, value in bound.arguments.items() if name not in ("self", "X")}
        if "y" in rows and signature.parameters["y"].default is None:
            del rows["y"]  # which is ignored
        together.fit(self, fit, bound.arguments["X"], rows)
        return self

    return called


_Function = TypeVar("_Function", bound=Callable[..., Any])


def alone(function: _Function) -> _Function:
    """A function or method that needs all rows, but that processes cannot share: of a process's own rows it
    would say something else."""
    hidden = function.__qualname__.startswith("_")
    name = function.__name__ if hidden else function.__qualname__

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        if _sharing() is not None:
            raise UnsupportedError(f"{name} would be of this process's rows alone: the processes of "
                                   "kiln.distributed.join() share the fits of estimators, and no more; call "
                                   "it outside of the block, with all rows")
        return function(*given, **named)

    return cast(_Function, called)
