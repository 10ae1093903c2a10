"""One fit of what lies on the workers of a Dask cluster: each worker has its partitions' rows, and nothing
goes through the client but the model."""
from __future__ import annotations

import asyncio
import contextlib
import queue
import uuid
from typing import Any, Callable

import numpy as np

from .._extras import needed
from .._library import ArgumentError, DeviceError
from . import join

_PATIENCE = 2.0  # seconds without bytes of another worker, after which the scheduler is asked for it
# what has come: of a fit, to a rank, from a rank
_boxes: dict[tuple[str, int, int], queue.Queue[bytes]] = {}


def fit(estimator: Any, X: Any, y: Any = None, *, client: Any = None, device: str = "cpu",
        threads: int = 0, deterministic: bool = False, **rows: Any) -> Any:
    """Fits an estimator to Dask collections, and returns it.

    X, y and rows, such as sample_weight: Dask arrays or frames whose partitions have the same rows, of all
    columns. Each worker that has partitions of X takes part, with its threads, or so many, on a device of
    its own; workers must be free, as all work at the same time. Rows follow each other in the order of
    workers, so that an attribute as long as the rows, such as labels_, is left out: predict has it.
    """
    over = needed("distributed", "kiln.distributed.dask")
    client = client or over.default_client()
    given = {"X": X, **({} if y is None else {"y": y}), **rows}
    pieces = {name: _pieces(name, one) for name, one in given.items()}
    if len({len(one) for one in pieces.values()}) != 1:
        raise ArgumentError("X, y and what else there is for each row must have as many partitions each: "
                            f"{ {name: len(one) for name, one in pieces.items()} }")
    futures = client.compute([{name: pieces[name][i] for name in pieces} for i in range(len(pieces["X"]))])
    _check_rows(client.gather(client.map(_rows_of, futures, pure=False)))
    where: dict[str, list[Any]] = {}
    for future, workers in zip(futures, (client.who_has([one])[one.key] for one in futures)):
        if not workers:
            future.result()  # raises what went wrong
        where.setdefault(sorted(workers)[0], []).append(future)
    addresses, key = list(where), uuid.uuid4().hex
    client.run(_begin, key, len(addresses), workers=addresses)
    try:
        running = [client.submit(_work, estimator, where[address], key, rank, addresses, device, threads,
                                 deterministic, workers=[address], allow_other_workers=False, pure=False)
                   for rank, address in enumerate(addresses)]
        _wait(client, running, addresses)
        fitted = client.gather(running)[0]
    finally:  # workers that are gone are not waited for
        client.run(_end, key, workers=list(client.nthreads(workers=addresses)), on_error="ignore")
    vars(estimator).update(vars(fitted))
    for name in estimator._row_results:
        vars(estimator).pop(name, None)
    return estimator


def _wait(client: Any, running: list[Any], addresses: list[str]) -> None:
    """Returns where all are done, or one has failed. The task of a worker that is gone would stay with Dask
    for ever, as no other worker may take it: DeviceError."""
    over = needed("distributed", "kiln.distributed.dask")
    while pending := [one for one in running if not one.done()]:
        with contextlib.suppress(over.TimeoutError):
            over.wait(pending, timeout=_PATIENCE, return_when="FIRST_COMPLETED")
        if any(one.done() and one.status != "finished" for one in running):
            return
        there = client.nthreads(workers=addresses)
        for future, address in zip(running, addresses):
            if address not in there and not future.done():
                raise DeviceError(f"worker {address} has gone")


def _pieces(name: str, one: Any) -> list[Any]:
    """A collection's partitions, in the order of its rows."""
    if not hasattr(one, "to_delayed"):
        raise ArgumentError(f"{name} must be a Dask array or frame, got {type(one).__name__}")
    if hasattr(one, "chunks") and one.ndim == 2 and len(one.chunks[1]) > 1:
        one = one.rechunk({1: -1})
    return list(np.ravel(np.array(one.to_delayed(), object)))


def _rows_of(part: dict[str, Any]) -> dict[str, int]:
    return {name: one.shape[0] for name, one in part.items()}


def _check_rows(counts: list[dict[str, int]]) -> None:
    """Each partition of X has its own rows of y: sums that agree would hide rows of others."""
    for number, count in enumerate(counts):
        if len(set(count.values())) != 1:
            raise ArgumentError(f"partition {number} (from 0) has other rows in X, y and what else there is "
                                f"for each row: {count}; rechunk them alike")


def _joined_rows(parts: list[Any]) -> Any:
    """A worker's partitions as one."""
    if hasattr(parts[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(parts, "csr")
    if hasattr(parts[0], "iloc"):
        import pandas

        return pandas.concat(parts)
    return np.concatenate(parts)


def _begin(key: str, count: int, dask_worker: Any) -> None:
    """Boxes for what comes, before anybody sends."""
    for to in range(count):
        for source in range(count):
            _boxes[key, to, source] = queue.Queue()
    dask_worker.handlers["kiln_bytes"] = _take


def _end(key: str) -> None:
    """A worker that waits at one of the boxes, as another has failed, notices that it is gone."""
    for box in [one for one in _boxes if one[0] == key]:
        del _boxes[box]


async def _take(key: str, to: int, source: int, data: bytes) -> str:
    _boxes[key, to, source].put(bytes(data))
    return "OK"


def _work(estimator: Any, parts: list[dict[str, Any]], key: str, rank: int, addresses: list[str], device: str,
          threads: int, deterministic: bool) -> Any:
    """A worker's part of the fit."""
    from distributed import get_worker

    worker = get_worker()
    rows = {name: _joined_rows([part[name] for part in parts]) for name in parts[0]}
    threads = threads or (worker.state.nthreads if device == "cpu" else 0)
    with join(_Workers(worker, key, rank, addresses), device, threads=threads, deterministic=deterministic):
        return estimator.fit(**rows)


class _Workers:
    """Bytes between workers, by their own connections."""

    name = "Dask's workers"

    def __init__(self, worker: Any, key: str, rank: int, addresses: list[str]) -> None:
        self._worker, self._key, self._addresses = worker, key, addresses
        self.rank, self.size = rank, len(addresses)

    def _ask(self, call: Callable[..., Any], **what: Any) -> Any:
        async def asked() -> Any:
            return await call(**what)

        return asyncio.run_coroutine_threadsafe(asked(), self._worker.loop.asyncio_loop).result()

    def send(self, to: int, data: memoryview) -> None:
        self._ask(self._worker.rpc(self._addresses[to]).kiln_bytes, key=self._key, to=to, source=self.rank,
                  data=bytes(data))

    def receive(self, source: int, data: memoryview) -> None:
        where = self._key, self.rank, source
        box = _boxes.get(where)
        while box is not None and where in _boxes:
            with contextlib.suppress(queue.Empty):
                data[:] = box.get(timeout=_PATIENCE)
                return
            other = self._addresses[source]
            if other not in self._ask(self._worker.scheduler.ncores, workers=[other]):
                raise DeviceError(f"worker {other} has gone")
        raise DeviceError("the fit has ended: another worker could not do its part")
