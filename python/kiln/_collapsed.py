"""Columns of whose numbers float32 keeps one, or a few that are next to one another, as of the seconds of
half an hour: named where a user asks for float32 (src/io/collapsed.c does so where files are read)."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._words import warn

_APART = 16 * float(np.finfo(np.float32).eps)  # of a column's first number
_FEW = 1 << 18  # entries that tell most columns of a sparse matrix apart


def _near(narrow: Any) -> Any:
    """Finds the columns of a dense array that may stay next to their first number, by a few rows."""
    rows = narrow[np.unique(np.linspace(0, len(narrow) - 1, 8).astype(np.intp))].astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((rows[0] != 0) & (np.abs(rows - rows[0]) <= _APART * np.abs(rows[0])).all(0))


def _full(wide: Any, narrow: Any, columns: Any, count: int) -> Any:
    """Finds the same columns of a sparse matrix with their entries, of those that have one in each row."""
    full = np.bincount(columns) == count
    few = slice(None, None, max(1, len(columns) // _FEW))
    least, most = np.full(len(full), np.inf), np.full(len(full), -np.inf)
    np.minimum.at(least, columns[few], narrow[few])
    np.maximum.at(most, columns[few], narrow[few])
    with np.errstate(invalid="ignore"):
        full &= ~(most - least > 2 * _APART * np.maximum(np.abs(least), np.abs(most)))
    kept = full[columns]
    order = np.argsort(columns[kept], kind="stable")
    shape = (-1, count)  # a row a column
    return zip(np.flatnonzero(full).tolist(), wide[kept][order].reshape(shape),
               narrow[kept][order].reshape(shape))


def _lost(wide: Any, narrow: Any) -> tuple[int, int] | None:
    """Counts how many different numbers of a column are left of how many, where it stays next to one."""
    first = float(narrow[0])
    if not (np.abs(narrow.astype(np.float64) - first) <= _APART * abs(first)).all():
        return None
    left, all_of_them = len(np.unique(narrow)), len(np.unique(wide))
    return (left, all_of_them) if left < all_of_them else None


def tell_collapsed(wide: Any, narrow: Any, columns: Any = None, count: int = 0) -> None:
    """Warns of such columns of `narrow`, which are the float32 of `wide`: dense, or the entries of a sparse
    matrix of `count` rows with their columns."""
    if narrow.dtype != np.float32 or wide.dtype == np.float32 or len(narrow) < 2:
        return
    if columns is None:
        parts = ((int(j), wide[:, j], narrow[:, j]) for j in _near(narrow))
    else:
        parts = _full(wide, narrow, columns, count) if len(columns) else iter(())
    found = [(j, numbers) for j, of, part in parts if (numbers := _lost(of, part))]
    if found:
        j, (left, all_of_them) = found[0]
        more = f" (and {len(found) - 1} more columns)" if len(found) > 1 else ""
        warn(f"column {j}{more} keeps {left} of {all_of_them} different numbers in float32, which cannot "
             "tell the others apart: float64 keeps them apart")
