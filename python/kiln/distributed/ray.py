"""One fit of what lies in the object stores of a Ray cluster: each of some workers has blocks of a dataset,
and nothing goes through the driver but the model."""
from __future__ import annotations

import collections
import contextlib
import queue
import threading
from typing import Any

import numpy as np

from .._extras import needed
from .._library import ArgumentError, DeviceError
from . import join

_ON_THE_WAY = 4  # messages that a worker may have sent before another has taken them
_PATIENCE = 2.0  # seconds without bytes of another worker, after which it is asked whether it is there


def fit(estimator: Any, X: Any, y: str | None = None, *, workers: int = 2, device: str = "cpu",
        threads: int = 1, deterministic: bool = False, **columns: str) -> Any:
    """Fits an estimator to a Ray dataset, and returns it.

    X: the dataset; y and columns, as sample_weight="w": the names of its columns for each of fit's arguments.
    The other columns, of numbers or of arrays of one shape, are the features. The workers, at most as many as
    there are blocks, are actors with so many CPUs each, or with a GPU where the device is one; all work at
    the same time. Rows follow each other in the order of the blocks, and an attribute as long as the rows,
    such as labels_, is left out: predict has it.
    """
    ray = needed("ray", "kiln.distributed.ray")
    needed("ray.data", "kiln.distributed.ray")
    if not isinstance(X, ray.data.Dataset):
        raise ArgumentError(f"X must be a Ray dataset, got {type(X).__name__}")
    named = {**({} if y is None else {"y": y}), **columns}
    blocks = X.materialize()
    missing = [name for name in named.values() if name not in blocks.columns()]
    if missing:
        raise ArgumentError(f"the dataset has no column {missing[0]!r}; its columns are {blocks.columns()}")
    parts = [one for one in blocks.split(workers) if one.count() > 0]
    if not parts:
        raise ArgumentError("the dataset has no rows")
    resources = {"num_cpus": threads} if device == "cpu" else {"num_gpus": 1}
    # one thread of an actor fits, another takes what comes, the third says that it is there
    made = ray.remote(_Worker).options(max_concurrency=3, **resources)
    actors = [made.remote(rank, len(parts)) for rank in range(len(parts))]
    try:
        running = [one.work.remote(estimator, part, named, actors, device, threads, deterministic)
                   for one, part in zip(actors, parts)]
        fitted = _first(ray, running)
    finally:
        for one in actors:
            ray.kill(one)
    vars(estimator).update(vars(fitted))
    for name in estimator._row_results:
        vars(estimator).pop(name, None)
    return estimator


def _first(ray: Any, running: list[Any]) -> Any:
    """What the first worker found, once all have ended; the first error, as its own exception."""
    waiting = list(running)
    try:
        while waiting:
            ended, waiting = ray.wait(waiting)
            ray.get(ended)
        return ray.get(running[0])
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, Exception) else error) from None
    except ray.exceptions.RayActorError as error:
        raise DeviceError("a worker has gone") from error


def _arrays(part: Any, named: dict[str, str]) -> dict[str, Any]:
    """What fit takes, of a worker's blocks: a frame of features, or an array where columns have arrays."""
    frame = part.to_pandas()
    rows = {name: frame[column].to_numpy() for name, column in named.items()}
    features = frame.drop(columns=list(named.values()))
    if any(isinstance(features[name].iloc[0], np.ndarray) for name in features):
        return {"X": np.column_stack([np.stack(features[name].to_numpy()) for name in features]), **rows}
    return {"X": features, **rows}


class _Worker:
    """An actor: a process's part of the fit, and boxes for what others send."""

    name = "Ray's workers"

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self._boxes: list[queue.Queue[bytes]] = [queue.Queue() for _ in range(size)]
        self._sent, self._taken = [0] * size, [0] * size
        self._early: dict[tuple[int, int], bytes] = {}
        self._turn = threading.Lock()
        self._on_the_way: collections.deque[Any] = collections.deque()

    def take(self, source: int, number: int, data: bytes) -> None:
        """Messages of one source come in any order, as two threads may take them at once."""
        with self._turn:
            self._early[source, number] = data
            while (source, self._taken[source]) in self._early:
                self._boxes[source].put(self._early.pop((source, self._taken[source])))
                self._taken[source] += 1

    def there(self) -> None:
        """Answers while the process is there."""

    def work(self, estimator: Any, part: Any, named: dict[str, str], actors: list[Any], device: str,
             threads: int, deterministic: bool) -> Any:
        self._actors = actors
        rows = _arrays(part, named)
        with join(self, device, threads=threads if device == "cpu" else 0, deterministic=deterministic):
            return estimator.fit(**rows)

    def send(self, to: int, data: memoryview) -> None:
        import ray

        self._on_the_way.append(self._actors[to].take.remote(self.rank, self._sent[to], bytes(data)))
        self._sent[to] += 1
        if len(self._on_the_way) > _ON_THE_WAY:
            ray.get(self._on_the_way.popleft())

    def receive(self, source: int, data: memoryview) -> None:
        import ray

        while True:
            with contextlib.suppress(queue.Empty):
                data[:] = self._boxes[source].get(timeout=_PATIENCE)
                return
            try:
                ray.get(self._actors[source].there.remote())
            except ray.exceptions.RayActorError as error:
                raise DeviceError(f"worker {source} has gone") from error
