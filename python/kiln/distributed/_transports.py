"""Bytes between processes by what these have already: mpi4py, torch.distributed."""
from __future__ import annotations

import itertools
import os
import re
import sys
import time
from typing import Any

from .._extras import needed
from .._library import UnsupportedError


class Mpi:
    """By an mpi4py communicator, in a duplicate of it. Waits yield, then nap, so that a process that has
    nothing to do leaves its processor to others."""

    def __init__(self, communicator: Any) -> None:
        from mpi4py import MPI

        self._all, self._byte, self._sum, self._here = communicator.Dup(), MPI.BYTE, MPI.SUM, MPI.IN_PLACE
        self.rank, self.size, self.name = self._all.Get_rank(), self._all.Get_size(), "mpi4py"

    @staticmethod
    def _wait(request: Any) -> None:
        for turn in itertools.count():
            if request.Test():
                return
            time.sleep(0 if turn < 2000 else 5e-5)

    def send(self, to: int, data: memoryview) -> None:
        self._wait(self._all.Isend([data, self._byte], to, 1))

    def receive(self, source: int, data: memoryview) -> None:
        self._wait(self._all.Irecv([data, self._byte], source, 1))

    def broadcast(self, data: memoryview) -> None:
        self._wait(self._all.Ibcast([data, self._byte], 0))

    def add(self, numbers: Any) -> None:
        self._wait(self._all.Ireduce(self._here if self.rank == 0 else numbers,
                                     numbers if self.rank == 0 else None, self._sum, 0))


class Torch:
    """By torch.distributed: a group of the same processes by gloo, whatever carries their tensors."""

    name = "torch.distributed"

    def __init__(self, group: Any = None) -> None:
        import torch

        self._torch, self._over = torch, torch.distributed
        self._ranks = self._over.get_process_group_ranks(group or self._over.group.WORLD)
        self._group = self._over.new_group(self._ranks, backend="gloo", use_local_synchronization=True)
        self.rank, self.size = self._over.get_rank(self._group), len(self._ranks)

    def _tensor(self, data: memoryview) -> Any:
        return self._torch.frombuffer(data, dtype=self._torch.uint8)

    def send(self, to: int, data: memoryview) -> None:
        if data.nbytes:
            self._over.send(self._tensor(data), self._ranks[to], self._group)

    def receive(self, source: int, data: memoryview) -> None:
        if data.nbytes:
            self._over.recv(self._tensor(data), self._ranks[source], self._group)

    def broadcast(self, data: memoryview) -> None:
        if data.nbytes:
            self._over.broadcast(self._tensor(data), self._ranks[0], self._group)

    def add(self, numbers: Any) -> None:
        self._over.reduce(self._torch.from_numpy(numbers), self._ranks[0], group=self._group)


def known(by: Any) -> Any:
    """The transport of what a caller names."""
    if hasattr(by, "py2f"):
        return Mpi(by)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(by, torch.distributed.ProcessGroup):
        return Torch(by)
    return by


def initialised() -> Any:
    """By torch.distributed, where the program has begun it."""
    torch = sys.modules.get("torch")
    begun = torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
    return Torch() if begun else None


def has_mpi(launcher: str) -> bool:
    """Whether the launcher has started the processes as MPI's."""
    return launcher in ("mpirun", "mpiexec") or (launcher == "srun" and any(
        name in os.environ for name in ("PMIX_RANK", "PMI_RANK", "PMI_FD")))


def by_mpi4py() -> Any:
    """By mpi4py: all processes that mpirun has started."""
    return Mpi(needed("mpi4py.MPI", "kiln.distributed, without the plug-in for MPI,").COMM_WORLD)


def by_environment(launcher: str, rank: int, size: int) -> Any:
    """By torch.distributed, of the processes that torchrun, or srun without MPI, has started."""
    try:
        import torch.distributed as over
    except ImportError:
        raise UnsupportedError(f"the processes that {launcher} has started know each other by "
                               "torch.distributed: pip install torch, or take mpirun") from None
    if launcher == "srun":
        os.environ.setdefault("MASTER_ADDR", first_host(os.environ["SLURM_STEP_NODELIST"]))
        # of the ports that no service has by custom, one that goes with the job
        os.environ.setdefault("MASTER_PORT", str(20000 + int(os.environ["SLURM_JOB_ID"]) % 20000))
    over.init_process_group("gloo", rank=rank, world_size=size)
    return Torch()


def first_host(listing: str) -> str:
    """The first machine of a list of Slurm's, such as "node[08-11,20],login1"."""
    found = re.match(r"([^\[,]+)(?:\[([^\],-]+)[^\]]*\]([^,]*))?", listing)
    if found is None:
        raise UnsupportedError(f"the list of Slurm's machines is {listing!r}")
    return "".join(part or "" for part in found.groups())
