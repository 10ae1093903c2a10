"""Which columns of a frame of links, or of ratings, have which role: as in the tool. What the caller says
comes first, then the words by which a column may be called, then, for an end, the column that is left over. A
column has one role."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from ._library import ArgumentError, DataError
from ._words import warn

_ROLES = ("source", "target", "weight")


def columns_by_role(columns: list[tuple[str, Any]], said: dict[str, Any], words: tuple[str, str, str],
                    *, by_order: bool = False, weighted: bool = True) -> list[Any]:
    """The columns with the sources (users), targets (items) and weights (ratings), these None, where there
    are none, with a warning if columns are left over.

    columns: with their names; words: how names begin, regular expressions; by_order: where neither end is
    known, it is the first column that is left over; weighted: weights are looked for."""
    names = [name for name, _ in columns]
    found: list[int | None] = [None if said[role] is None else _place(names, role, said[role])
                               for role in _ROLES]
    told = [place for place in found if place is not None]
    for i, place in enumerate(found):
        if place is not None and place in found[:i]:
            raise ArgumentError(f"{_ROLES[found.index(place)]}= and {_ROLES[i]}= are the same column, "
                                f"{names[place]!r}")
    by_word = list(found)
    for i, word in enumerate(words):
        if by_word[i] is None:
            by_word[i] = next((j for j in _free(names, by_word) if re.match(word, names[j], re.I)), None)
    worded = None not in by_word[:2]
    if told or worded or not by_order:
        found = by_word
    neither = found[0] is None and found[1] is None
    for i in range(2):
        left = _free(names, found)
        if found[i] is None:
            if not left or not (by_order and neither or told and not neither and len(left) == 1):
                raise ArgumentError(f"the frame has no column {_ROLES[i]!r}; its columns are "
                                    f"{', '.join(names[:20])}: {_ROLES[i]}= says which it is")
            found[i] = left[0]
    left = _free(names, found)
    if found[2] is None and left and not told and not worded:
        found[2] = left[0]
    for place in found:
        if place is not None and names.count(names[place]) > 1:
            raise DataError(f"two columns of the table are named {names[place]!r}; columns are told apart by "
                            "name; rename one")
    if found[2] is None and left and weighted:
        called = re.sub(r"\|(?=\w+$)", " or ", words[2]).replace("|", ", ")
        warn(f"no column is called {called}, so that each row counts 1; name the one that counts with "
             "weight=")
    return [None if place is None else columns[place][1] for place in found]


def _free(names: list[str], found: list[int | None]) -> list[int]:
    return [j for j in range(len(names)) if j not in found]


def _place(names: list[str], role: str, said: str | int) -> int:
    place = isinstance(said, (int, np.integer)) and not isinstance(said, bool)
    if place and -len(names) <= int(said) < len(names):
        return int(said) % len(names)
    if said not in names:
        raise ArgumentError(f"the frame has no column {said!r}; its columns are {', '.join(names[:20])}: "
                            f"{role}= says which it is")
    return names.index(str(said))
