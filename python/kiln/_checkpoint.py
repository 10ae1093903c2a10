"""Runs that can be stopped and go on where they were."""
from __future__ import annotations

import os
from typing import Any, NamedTuple

from ._library import check, ffi, fields, lib, struct
from ._solve import running


class Kept(NamedTuple):
    """How often the file was written, its bytes and the iteration that it holds, the iteration that the run went on from (-1: none),
    and the seconds that writing took."""

    written: int
    bytes: int
    iteration: int
    resumed: int
    seconds: float


class checkpoint:  # a context manager, in lower case as contextlib's are
    """Within the block one run, of whatever estimator or function, keeps its state in the file `path` every so many seconds, and when it is
    stopped, by Ctrl-C or a callback. `resume`: the file to go on from; True: `path`, where that exists. Data and options must be
    those of before, but for tol and max_iter. With deterministic devices the run ends at the same bits as one that was never stopped.

    >>> with kiln.checkpoint("run.ckpt", resume=True) as kept:
    ...     model = kiln.ALS(64).fit(ratings)
    >>> kept.info.written

    ModelError: the file is no checkpoint, or one of another run, and what differs. FileError: it cannot be read or written."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, every: float = 600.0,
                 resume: str | os.PathLike[str] | bool | None = None) -> None:
        if path is None and (resume is None or isinstance(resume, bool)):
            raise ValueError("path, resume or both must name a file")
        if resume is True:
            resume = path if path is not None and os.path.exists(path) else None
        self.path, self.every, self.resume = path, every, resume or None
        self.info: Kept | None = None
        self._pointer: Any = None
        self._outer: Any = None

    def __enter__(self) -> checkpoint:
        names = {field: ffi.new("char[]", os.fsencode(value)) for field, value in (("checkpoint", self.path), ("resume", self.resume))
                 if value is not None}
        made = ffi.new("kiln_checkpoint **")
        check(lib.kiln_checkpoint_open(made, struct("kiln_checkpoint_options", checkpoint_every=self.every, **names)))
        self._pointer, self._outer = made[0], getattr(running, "checkpoint", None)
        running.checkpoint = self
        return self

    def __exit__(self, *error: object) -> None:
        running.checkpoint = self._outer
        info = struct("kiln_checkpoint_info")
        check(lib.kiln_checkpoint_get_info(info, self._pointer))
        self.info = Kept(**fields(info[0]))
        lib.kiln_checkpoint_close(self._pointer)
        self._pointer = None

    def take(self, control: Any) -> Any:
        """The control for the one run that this is for, which is the first."""
        if self.info is not None:
            raise RuntimeError("a checkpoint is of one run: begin another block for the next one")
        self.info = Kept(0, 0, -1, -1, 0.0)
        return lib.kiln_checkpoint_control(self._pointer, control)
