"""Runs that can be stopped and go on where they were."""
from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ._library import ModelError, c_name, check, ffi, fields, lib, struct
from ._solve import running
from ._words import warn


class Kept(NamedTuple):
    """Says how often the file was written, its bytes and the iteration that it holds, the iteration that the
    run went on from (-1: none), the seconds that writing took, how often it failed, and the last reason."""

    written: int
    bytes: int
    iteration: int
    resumed: int
    seconds: float
    failed: int
    problem: str


class checkpoint:  # a context manager, in lower case as contextlib's are
    """Within the block one run, of whatever estimator or function, keeps its state in the file `path` every
    so many seconds, and when it is stopped, by Ctrl-C or a callback.

    `resume`: the file to go on from; True: `path`, where that exists. Data and options must be those of
    before, but for tol and max_iter. Estimators with CV keep the folds that are done. With deterministic
    devices the run ends at the same bits as one that was never stopped. The object that `as` names has
    `info`: how often the file was written, its bytes and more. A warning says that no run took the
    checkpoint: what is found in one piece, as positive=True is, keeps none.

    ModelError: the file is no checkpoint, or one of another run, and what differs. FileError: it cannot be
    read or written."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, every: float = 600.0,
                 resume: str | os.PathLike[str] | bool | None = None) -> None:
        if path is None and (resume is None or isinstance(resume, bool)):
            raise ValueError("path, resume or both must name a file")
        if resume is True:
            resume = path if path is not None and os.path.exists(path) else None
        self.path, self.every, self.resume = path, every, resume or None
        self.info: Kept | None = None
        self.stays = False  # the file keeps what it has, whatever runs there are
        self.runs = 1  # that may still be given the checkpoint, one after the other
        self._taken = False
        self._along: Any = None  # numbers that the library writes into: kept so that their memory stays
        self._pointer: Any = None
        self._outer: Any = None

    def __reduce__(self) -> Any:
        raise TypeError("a kiln.checkpoint is of one run, and can be neither copied nor pickled")

    def __enter__(self) -> checkpoint:
        names = {field: ffi.new("char[]", c_name(value)) for field, value in (("checkpoint", self.path),
                                                                              ("resume", self.resume))
                 if value is not None}
        made = ffi.new("kiln_checkpoint **")
        check(lib.kiln_checkpoint_open(made, struct("kiln_checkpoint_options", checkpoint_every=self.every,
                                                    **names)))
        self._pointer, self._outer = made[0], getattr(running, "checkpoint", None)
        running.checkpoint = self
        return self

    def __exit__(self, *error: object) -> None:
        running.checkpoint = self._outer
        info = struct("kiln_checkpoint_info")
        check(lib.kiln_checkpoint_get_info(info, self._pointer))
        self.info = Kept(**fields(info[0]))
        if self.info.failed:
            warn(f"kiln.checkpoint: {self.path} could not be written {self.info.failed} times: "
                 f"{self.info.problem}")
        elif not any(error) and not self._taken:
            warn(f"kiln.checkpoint: nothing in the block took {self.path or self.resume}: what is found in "
                 "one piece, as positive=True is, keeps no checkpoint, and begins anew")
        lib.kiln_checkpoint_close(self._pointer)
        self._pointer = None

    def along(self, numbers: Any, head: int, what: str, runs: int) -> None:
        """These numbers go along with each state of the next `runs` runs, which count as one, and take what
        the file to go on from has: an error unless that is as many, of which the first `head` are these."""
        self._refuse(self.runs == 0 or self._along is not None)
        self._taken = True
        own, found = numbers[:head].copy(), ffi.new("int *")
        status = lib.kiln_checkpoint_along(self._pointer, ffi.from_buffer("double[]", numbers), len(numbers),
                                           found)
        if found[0] and not (status == lib.KILN_OK and np.array_equal(own, numbers[:head])):
            raise ModelError(f"{self.resume} is of {what} with other folds, penalties or scoring, or of "
                             "another estimator's")
        check(status)
        self._along, self.runs = numbers, runs

    def take(self, control: Any) -> Any:
        """The control for the run that this is for, which is the first, or one of those of `along`."""
        self.skip()
        return control if self.stays else lib.kiln_checkpoint_control(self._pointer, control)

    def skip(self) -> None:
        """A run is over, or needs not be done."""
        self._refuse(self.runs == 0)
        self.runs, self._taken = self.runs - 1, True

    @staticmethod
    def _refuse(used: bool) -> None:
        if used:
            raise RuntimeError("a checkpoint is of one run: begin another block for the next one")
