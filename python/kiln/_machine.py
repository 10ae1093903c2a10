"""The devices of this machine, and the times that they take."""
from __future__ import annotations

import contextlib
import functools
import time
from typing import Any, Callable, Iterator

import numpy as np

from ._arrays import Device, Matrix, device as open_device
from ._functions import batch_of, place
from ._library import ArgumentError, c_name, check, ffi, fields, lib, rows, struct, text
from ._words import warn


@contextlib.contextmanager
def processes(communicator: Any = None, name: str = "cpu", *, threads: int = 0, memory: int = 0,
              deterministic: bool = False) -> Iterator[Device | None]:
    """The processes that mpirun has started, as one device, which share the rows of X (docs/mpi.md).

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

    Drivers are asked in this process. If one crashes, the command `kiln devices` says which (it asks in
    processes of their own), and the environment variable KILN_WITHOUT, "opencl" or "cuda", leaves its kind
    out.
    """
    return rows(lib.kiln_device_list, "kiln_device_info")


def doctor() -> list[dict[str, Any]]:
    """A row for each thing that was looked for on this machine: if it was found, and how to get it if not."""
    return rows(lib.kiln_probe_machine, "kiln_probe")


def explain(shape: tuple[int, int], *, nnz: int | None = None, dtype: Any = "float64", passes: int = 1,
            columns: int = 1, thorough: bool = False) -> list[dict[str, Any]]:
    """The expected time of passes over a matrix on each device, and the device that "auto" chooses.

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


# An operation's plans are listed, and one is run, by these arguments of the library's functions.

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

    architectures: "sm_90" and the like, "compute_90" for PTX, NVRTC's of sm_75 to sm_120 and compute_75
    where none are given; programs: lines as `kernels` returns them, "usual" or None for what serves most
    work on data of any shape; threads: as many as there are processors if 0. KILN_KERNEL_PACK names the
    pack to the library, which also takes kiln-kernels.pack beside itself or in the cache folder.
    """
    of = None if architectures is None else ",".join([architectures] if isinstance(architectures, str)
                                                     else architectures)
    keep = [ffi.NULL if of is None else ffi.new("char[]", c_name(of, "architectures")),
            ffi.NULL if programs is None else
            ffi.new("char[]", c_name(programs if isinstance(programs, str) else "\n".join(programs),
                                     "programs"))]
    built = ffi.new("int64_t *")
    check(lib.kiln_kernels_build(c_name(path), struct("kiln_pack_options", architectures=keep[0],
                                                      programs=keep[1], threads=threads), built))
    return int(built[0])


_TUNED = {"mmchain": _mmchain, "sddmm": _sddmm, "batch_reduce": _batch_reduce}


def tune(X: Any, *, operation: str = "mmchain", columns: int = 1, device: str | Device = "auto",
         most: int = 8, repeats: int = 3) -> list[dict[str, Any]]:
    """The time of an operation on X by each of the plans that the device has for it, fastest first.

    operation: "mmchain" with so many columns of y, "sddmm" with factors of so many columns, or
    "batch_reduce", the sum of each row. Each plan has its launch parameters, `chosen` (the one that the
    operation takes), `seconds` as predicted and `measured`. If there are many plans, only the `most` that are
    predicted to be the fastest are measured, and the chosen one. Changes nothing.
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
