"""Batches that come one after the other become a matrix that lies in a temporary file: they are read once,
and fits take the passes that they need over the file, so that the rows need not fit into memory."""
from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Iterable
from typing import IO, Any

import numpy as np

from ._arrays import Device, Matrix, canonical, numbers, refuse_disguised, streams
from ._columns import as_table
from ._library import ArgumentError, DataError

_STARTS = np.dtype(np.int64)


def _array(batch: Any, number: int) -> tuple[Any, Any]:
    """The batch's rows, as NumPy's array or SciPy's CSR matrix, and its columns' names."""
    if isinstance(batch, Matrix):
        return batch.numpy(), batch.feature_names
    if hasattr(batch, "tocsr"):
        return canonical(batch), None
    table = as_table(batch)
    if table is not None:
        from ._frames import numeric_batch

        rows, names = numeric_batch(table, f"batch {number}")
        if names is None and hasattr(batch, "columns"):
            labels = list(batch.columns)  # numbers and tuples are names, too, but for the places themselves
            names = None if labels == list(range(len(labels))) else labels
        return rows, names
    if getattr(batch, "dtype", None) is not None and batch.dtype.kind == "c":
        raise ArgumentError(f"batch {number} is complex, but rows are real numbers")
    try:
        rows = numbers(batch)
    except ArgumentError as error:
        raise ArgumentError(f"batch {number}: {error}") from error
    if rows.ndim != 2:
        raise ArgumentError(f"batch {number} has {rows.ndim} dimensions, but rows have 2")
    return rows, None


def _header(file: IO[bytes], dtype: Any, shape: tuple[int, ...]) -> int:
    """Writes the header of an .npy file, and returns its length, which no number of rows changes."""
    written = io.BytesIO()
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(written, description)
    return file.write(written.getvalue())


class _Array:
    """An .npy file that grows."""

    def __init__(self, path: str, dtype: Any, width: tuple[int, ...]) -> None:
        self.path, self.dtype, self.width, self.count = path, np.dtype(dtype), width, 0
        self.file = open(path, "wb")
        self.begin = _header(self.file, self.dtype, (0, *width))

    def add(self, rows: Any) -> None:
        self.file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.count += len(rows)

    def close(self) -> None:
        self.file.seek(0)
        length = _header(self.file, self.dtype, (self.count, *self.width))
        self.file.close()
        assert length == self.begin  # NumPy leaves room for any number of rows


class _Spool:
    """The rows of batches in files of a folder."""

    def __init__(self, folder: str, first: Any, names: Any, dtype: Any) -> None:
        self.names = names
        self.folder, self.columns, self.sparse = folder, first.shape[1], hasattr(first, "indptr")
        self.rounds = dtype is not None
        kind = np.dtype(dtype) if dtype is not None else first.dtype
        kind = kind if kind == np.float32 else np.dtype(np.float64)
        self.values = self._part("data" if self.sparse else "X", kind, () if self.sparse else (self.columns,))
        self.places = self._part("indices", np.int32, ()) if self.sparse else None
        self.starts = [np.zeros(1, _STARTS)]

    def _part(self, name: str, dtype: Any, width: tuple[int, ...]) -> _Array:
        return _Array(os.path.join(self.folder, f"{name}.npy"), dtype, width)

    def add(self, rows: Any, names: Any, number: int) -> None:
        if (names is None) != (self.names is None):
            wanted = ("names of columns, as the first has them" if names is None
                      else "no names of columns, as the first has none")
            raise ArgumentError(f"batch {number} must have {wanted}")
        if names is not None and list(names) != list(self.names):
            from ._frames import places

            rows = rows[:, places(names, self.names, f"batch {number}", "in the first")]
        if rows.shape[1] != self.columns or hasattr(rows, "indptr") != self.sparse:
            kinds = ["sparse" if one else "dense" for one in (hasattr(rows, "indptr"), self.sparse)]
            raise ArgumentError(f"batch {number} is {kinds[0]} of {rows.shape[1]} columns, but the first "
                                f"{kinds[1]} of {self.columns}")
        if rows.dtype.kind == "c":
            raise ArgumentError(f"batch {number} is complex, but rows are real numbers")
        narrow = self.values.dtype == np.float32 and not self.rounds
        if narrow and not np.can_cast(rows.dtype, np.float32):
            raise ArgumentError(f"batch {number} is {rows.dtype}, but the first float32: give dtype=")
        with np.errstate(over="ignore"):  # what is too large for float32 is told of with what is infinite
            rows = rows.astype(self.values.dtype, copy=False)
        self._check_finite(rows, number)
        if self.places is None:
            self.values.add(rows)
            return
        self.starts.append(rows.indptr[1:].astype(_STARTS) + self.values.count)
        self.values.add(rows.data)
        self.places.add(rows.indices)

    def _check_finite(self, rows: Any, number: int) -> None:
        values = rows if self.places is None else rows.data
        if np.isfinite(values).all():
            return
        at = np.argwhere(~np.isfinite(values))[0]
        row, column = at if self.places is None else (np.searchsorted(rows.indptr, at[0], "right") - 1,
                                                      rows.indices[at[0]])
        called = column if self.names is None else repr(self.names[column])
        raise DataError(f"batch {number} has {values[tuple(at)]} in row {row}, column {called} (from 0), but "
                        f"rows are finite numbers of {self.values.dtype}: repair or leave out that row")

    def abandon(self) -> None:
        """Closes the files, which go with their folder."""
        for part in (self.values, self.places):
            if part is not None:
                part.file.close()

    def end(self) -> str:
        """The path of the whole."""
        self.values.close()
        if self.places is None:
            return self.values.path
        self.places.close()
        starts = np.concatenate(self.starts)
        whole = os.path.join(self.folder, "X.npz")
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as out:
            for part in (self.places, self.values):
                with open(part.path, "rb") as came, out.open(os.path.basename(part.path), "w",
                                                             force_zip64=True) as to:
                    shutil.copyfileobj(came, to, 1 << 20)
                os.unlink(part.path)
            for name, array in (("indptr", starts), ("format", np.array(b"csr")),
                                ("shape", np.array([len(starts) - 1, self.columns], _STARTS))):
                with out.open(f"{name}.npy", "w", force_zip64=True) as to:
                    np.lib.format.write_array(to, array)
        return whole


class _Folder:
    """The temporary folder of a stream, which goes with the last matrix that has it."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str]) -> None:
        weakref.finalize(self, folder.cleanup)


def stream(batches: Iterable[Any], *, dtype: Any = None, device: str | Device = "cpu") -> Any:
    """Rows that come in batches, as a Matrix for fits and functions: batches are read once and go on to a
    temporary file, which passes read, so that they need not fit into memory.

    A batch is a NumPy array, one of SciPy's sparse matrices, a batch or table of numbers from pyarrow, pandas
    or polars, or a pair (X, y) with a target for each row. All are dense or all sparse, of as many columns.
    Columns of frames are taken by the names that the first has, in any order, and fits know them as
    feature_names_in_. TableEncoder makes numbers of text.

    The file lies in the folder that TMPDIR names, else in /var/tmp, takes as much room as the rows (sparse
    rows twice as much until the last has come), and goes with the Matrix and its copies."""
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    spool: _Spool | None = None
    targets: list[Any] = []
    folder = tempfile.TemporaryDirectory(prefix="kiln-", dir=os.environ.get("TMPDIR") or "/var/tmp")
    try:
        for number, batch in enumerate(batches):
            paired = isinstance(batch, tuple)
            if paired and len(batch) != 2:
                raise ArgumentError(f"batch {number} is a tuple of {len(batch)}, but a pair is (X, y)")
            rows, names = _array(batch[0] if paired else batch, number)
            if spool is None:
                spool, with_targets = _Spool(folder.name, rows, names, dtype), paired
            if paired != with_targets or (paired and np.shape(batch[1])[:1] != rows.shape[:1]):
                wanted = "a target for each row" if with_targets else "no y, as the first has none"
                raise ArgumentError(f"batch {number} must have {wanted}")
            spool.add(rows, names, number)
            if paired:
                refuse_disguised(batch[1], f"y of batch {number}")
                targets.append(np.asarray(batch[1]))
        if spool is None:
            raise ArgumentError("there are no batches")
        path = spool.end()
        X = Matrix(path, device, dtype=spool.values.dtype)
        X.feature_names = (spool.names if spool.names is not None
                           and all(isinstance(name, str) for name in spool.names) else None)
    except BaseException:
        if spool is not None:
            spool.abandon()
        folder.cleanup()
        raise
    X._folder = streams[path] = _Folder(folder)
    return (X, np.concatenate(targets)) if with_targets else X
