"""One fit in several processes, whatever has started them.

    with kiln.distributed.join():
        model = kiln.LogisticRegression().fit(X_mine, y_mine)

Each process has rows of its own, and the whole model afterwards. kiln.distributed.dask fits what lies on the
workers of a Dask cluster, kiln.distributed.ray a Ray dataset.
"""
from __future__ import annotations

from typing import Any

from .._joint import Joined, current, join as _join, launched
from .._library import ArgumentError, DeviceError, UnsupportedError
from . import _transports

__all__ = ["Joined", "join"]

_WORLD = -1  # KILN_WORLD


def join(by: Any = None, device: str = "cpu", *, threads: int = 0, memory: int = 0,
         deterministic: bool = False) -> Joined:
    """Brings processes together, each of which calls this: from then on each fit of this thread is one of the
    rows of all.

    by: what the processes know each other by. An mpi4py communicator; a torch.distributed process group,
    whose backend may be NCCL, too; an object with `rank`, `size`, `send(to, data)` and `receive(source,
    data)`, of at most 4 MiB each, which return when a memoryview's bytes are on their way or there, and raise
    what goes wrong, and perhaps `broadcast(data)` from process 0 and `add(numbers)` to its array; or None:
    what has started the processes is found in the environment, which is torchrun, mpirun or Slurm's srun.

    device: of each process, as for kiln.Device; with "cuda" the processes of a machine take a GPU each.
    Within the block `fit` of linear models, of those with cross-validation, of KMeans, TruncatedSVD and PCA
    takes this process's rows. All processes make the same calls in the same order: an error in one is raised
    in all, where parameters, features or names differ, too, and a process that leaves early is an error in
    the others' next fit, and in all later ones within the block. Classes are the union of all processes'
    classes. predict and transform are each process's own; what needs all rows, as inference does, is refused.
    Parameters of estimators that name a device hold outside of fit alone.
    """
    if current() is not None:
        raise ArgumentError("this thread has joined others already: leave first")
    options = {"threads": threads, "memory": memory, "deterministic": deterministic}
    if by is not None:
        return _join(Joined(_WORLD, _transports.known(by), device, **options))
    made = _transports.initialised()
    found = launched()
    if made is None and found is None:
        raise UnsupportedError("no launcher has started several processes: `mpirun -n 2 python ...` or "
                               "torchrun does, or give what they know each other by")
    if made is None and found is not None and not _transports.has_mpi(found[0]):
        made = _transports.by_environment(*found)
    if made is not None:
        return _join(Joined(_WORLD, made, device, **options))
    try:
        return _join(Joined(_WORLD, None, device, **options))
    except DeviceError as error:  # before anything was sent
        if "plug-in" not in str(error):
            raise
        return _join(Joined(_WORLD, _transports.by_mpi4py(), device, **options))
