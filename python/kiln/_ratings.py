"""Ratings by name: users in rows, items in columns."""
from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ._columns import as_table
from ._library import ArgumentError, DataError, lib, text
from ._links import arrow
from ._read import links_of_file, shapes
from ._roles import columns_by_role
from ._words import warn

_WORDS = ("user|customer|uid", "item|movie|product|book|artist|track|iid",
          "rating|score|stars|value|count|plays")
_KEY = "s?[ _.-]?(id|name|no|number|code|key|index|title)?"  # what may follow such a word
_FEW = 20  # columns of a table that has a row for each rating


class Ratings(NamedTuple):
    """X (n_users, n_items), SciPy's CSR, and what its rows and columns are called, user_names and item_names,
    texts; fit() of ALS and SFA takes all of it.

    Examples
    --------
    >>> import scipy.sparse, kiln
    >>> ratings = kiln.Ratings(scipy.sparse.eye(3, format="csr"), ["ann", "bob", "cy"], ["x", "y", "z"])
    >>> kiln.ALS(1, random_state=0).fit(ratings).user_names_.tolist()
    ['ann', 'bob', 'cy']
    """

    X: Any
    user_names: list[str]
    item_names: list[str]

    def __repr__(self) -> str:
        return f"Ratings({shapes(self, *self._fields)})"

    def _of(self, users: Any, items: Any) -> Any:
        """A row for each of these users, a column for each of these items; other items do not count."""
        rows, columns = ({name: place for place, name in enumerate(names)}
                         for names in (self.user_names, items))
        missing = [name for name in users if name not in rows]
        if missing:
            raise ValueError(f"there is no user {missing[0]!r} among the {len(rows)} of the ratings")
        X = self.X[[rows[name] for name in users]].tocoo()
        places = np.array([columns.get(name, -1) for name in self.item_names], np.int64)[X.col]
        kept = places >= 0
        return csr_matrix((X.data[kept], (X.row[kept], places[kept])), (len(users), len(items)))


def read_ratings(path: Any, /, *, source: str | int | None = None, target: str | int | None = None,
                 weight: str | int | None = None, dtype: Any = "float64") -> Ratings:
    """Ratings in this dtype: of a file of lines "user, item and perhaps a rating", as `kiln als` reads it, or
    of a table in memory, as kiln.read takes it, with such columns: those whose names begin with user, item
    and rating (or customer, movie, count and the like), else the first three.

    source, target, weight: the columns of users, items and ratings, by name, or by number, 0 the first, -1
    the last. If columns are called user and item but none rating, each line counts 1, with a warning if there
    are further columns.

    Users and items are numbered in the order in which they come, and their names are texts: user 3 of a frame
    is called "3", as in a file. If a user has rated an item several times the last rating counts, with a
    warning; without ratings each line counts 1, and they add up.

    Examples
    --------
    >>> import pandas, kiln
    >>> plays = pandas.DataFrame({"user": ["ann", "bob", "ann"], "item": ["x", "x", "y"], "plays": [3, 1, 2]})
    >>> ratings = kiln.read_ratings(plays)
    >>> ratings.X.toarray().tolist(), ratings.user_names, ratings.item_names
    ([[3.0, 2.0], [1.0, 0.0]], ['ann', 'bob'], ['x', 'y'])
    """
    if str(dtype) not in ("float32", "float64"):
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    said = {"source": source, "target": target, "weight": weight}
    frame = path if hasattr(path, "iloc") and hasattr(path, "columns") else as_table(path)
    if frame is not None:
        return _of_frame(frame, said, dtype)
    X, data = links_of_file(path, said, format=lib.KILN_FILE_RATINGS,
                            type=lib.KILN_F32 if str(dtype) == "float32" else lib.KILN_F64)
    return Ratings(X, [text(lib.kiln_data_row_name(data, i)) for i in range(X.shape[0])],
                   [text(lib.kiln_data_feature_name(data, j)) for j in range(X.shape[1])])


def not_by_line(X: Any, took: str) -> Any:
    """X, which may not be a file's name, or a frame, with a row for each rating."""
    if isinstance(X, (str, os.PathLike)) or has_ratings(X):
        raise ArgumentError(f"a file or frame with a row for each rating has no row for each user: {took} "
                            "kiln.read_ratings(...) of it")
    return X


def has_ratings(frame: Any) -> bool:
    """Whether a frame's rows are ratings: it has few columns, and some are called users and items by nothing
    but these words. An item may be called "Book of Eli"."""
    names = [str(name) for name in getattr(frame, "columns", ()) if isinstance(name, str)]
    return len(names) <= _FEW and all(any(re.fullmatch(f"(?:{word}){_KEY}", name, re.I) for name in names)
                                      for word in _WORDS[:2])


def _of_frame(frame: Any, said: dict[str, Any], dtype: Any) -> Ratings:
    if hasattr(frame, "iloc"):
        names, parts = list(frame.columns), [frame.iloc[:, j] for j in range(frame.shape[1])]
    elif hasattr(frame, "get_columns"):  # of polars
        names, parts = frame.columns, frame.get_columns()
    else:
        table = arrow().table(frame)
        names, parts = table.column_names, table.columns
    if len(names) < 2:
        raise DataError("ratings are columns of users, items and perhaps ratings")
    users, items, ratings = columns_by_role([(str(name), part) for name, part in zip(names, parts)], said,
                                            _WORDS, by_order=True)
    (rows, user_names), (cols, item_names) = _numbered(users, "user"), _numbered(items, "item")
    shape = len(user_names), len(item_names)
    if ratings is None:
        X = csr_matrix((np.ones(len(rows), dtype), (rows, cols)), shape)
    else:
        cells = rows * shape[1] + cols
        last = len(cells) - 1 - np.unique(cells[::-1], return_index=True)[1]
        if len(last) < len(cells):
            warn(f"{len(cells) - len(last)} ratings are of users who rated the item again: the last counts")
        try:
            values = np.asarray(ratings, dtype)[last]
        except (TypeError, ValueError) as error:
            raise DataError(f"ratings must be numbers: {error}") from error
        if not np.isfinite(values).all():
            row = int(last[~np.isfinite(values)].min())
            raise DataError(f"the rating of row {row} (from 0) is missing, or no finite number")
        X = csr_matrix((values, (rows[last], cols[last])), shape)
    X.sort_indices()
    return Ratings(X, user_names, item_names)


def _numbered(names: Any, role: str) -> tuple[Any, list[str]]:
    """The names' numbers, and the names as texts in the order in which they come."""
    listed = names.to_pylist() if hasattr(names, "to_pylist") else names.to_list()
    missing = names.isna() if hasattr(names, "isna") else [name is None or name != name for name in listed]
    if len(rows := np.flatnonzero(missing)):
        raise DataError(f"the {role} of row {rows[0]} (from 0) is missing")
    known: dict[str, int] = {}
    numbers = np.array([known.setdefault(str(name), len(known)) for name in listed], np.int64)
    return numbers, list(known)
