"""Docstrings in NumPy's form: what a class or function says in its source, completed by its parameters,
attributes, results and an example when its name is first used.

One table (_docs_table.py, _docs_examples.py) has the texts, so that a parameter that many classes share is
described once. A row "Ridge.alpha" is of that class and those below it, a row "alpha" of all that have none
of their own."""
from __future__ import annotations

import functools
import inspect
import re
import textwrap
from typing import Any

import kiln._docs_table as table
from ._docs_examples import EXAMPLES


@functools.cache
def _rows(text: str) -> dict[str, tuple[str, str]]:
    """The rows "name, name | type | text" of a table; what is indented goes on with the row before."""
    found: dict[str, tuple[str, str]] = {}
    for row in textwrap.dedent(text).strip().replace("\n    ", " ").split("\n"):
        names, kind, meaning = (part.strip() for part in row.split(" | "))
        found.update(dict.fromkeys(names.split(", "), (kind, meaning)))
    return found


def _row(text: str, of: Any, name: str) -> tuple[str, str] | None:
    rows = _rows(text)
    owners = [kind.__name__ for kind in getattr(of, "__mro__", (of,))]
    return next((rows[key] for key in (*(f"{owner}.{name}" for owner in owners), name) if key in rows), None)


def _heading(title: str) -> str:
    return f"{title}\n{'-' * len(title)}\n"


def _section(title: str, entries: list[tuple[str, str]]) -> str:
    """A section of NumPy's form, "" without entries; an entry is its head and its text."""
    if not entries:
        return ""
    lines = []
    for head, text in entries:
        lines += [head, *textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="    ")]
    return _heading(title) + "\n".join(lines)


def _parameters(of: Any) -> list[tuple[str, str]]:
    entries = []
    for name, one in inspect.signature(of).parameters.items():
        if not name.startswith("_"):
            kind, meaning = _row(table.PARAMETERS, of, name) or ("any", "As above.")
            default = "" if one.default is one.empty else f", default={one.default!r}"
            stars = "**" if one.kind == one.VAR_KEYWORD else ""
            entries.append((f"{stars}{name} : {kind}{default}", meaning))
    return entries


def attributes(kind: Any) -> list[str]:
    """The fitted attributes of a class and those above it, in the table's order."""
    of = _rows(table.HAS)
    owners = [each.__name__ for each in reversed(kind.__mro__)]
    return [name for owner in owners if owner in of for name in of[owner][1].split(", ")]


_ORDER = ("Parameters", "Attributes", "Returns", "Raises", "Notes", "Examples")
_TITLE = re.compile(r"^(\w+)\n-+\n", re.M)


def described(of: Any) -> str:
    """The whole docstring: sections that the source has stay as they are."""
    said = inspect.cleandoc(of.__doc__ or "")
    titles = list(_TITLE.finditer(said))
    begins = [title.start() for title in titles]
    text = said[:begins[0]].strip() if titles else said
    sections = {title[1]: said[title.start():end].strip()
                for title, end in zip(titles, [*begins[1:], len(said)])}
    text, _, example = text.partition("\n\n>>> ")
    if example:
        sections["Examples"] = _heading("Examples") + ">>> " + example
    for title, made in _made(of).items():
        if made:
            sections.setdefault(title, made)
    rank = {title: place for place, title in enumerate(_ORDER)}
    order = sorted(sections, key=lambda title: rank.get(title, 4))
    return "\n\n".join([text, *(sections[title] for title in order)])


def _made(of: Any) -> dict[str, str]:
    """The sections that the tables have."""
    made = {"Parameters": _section("Parameters", _parameters(of))}
    if inspect.isclass(of):
        rows = [(name, _row(table.ATTRIBUTES, of, name)) for name in attributes(of)]
        found = [(f"{name} : {row[0]}", row[1]) for name, row in rows if row]
        made["Attributes"] = _section("Attributes", found)
    elif row := _row(table.RETURNS, of, "returns"):
        made["Returns"] = _section("Returns", [row])
    if example := EXAMPLES.get(of.__name__):
        made["Examples"] = _heading("Examples") + textwrap.dedent(example).strip()
    return made


def complete(of: Any) -> None:
    """Gives a class or function of the package its whole docstring."""
    kind = inspect.isclass(of) and not issubclass(of, Exception)
    if (kind or inspect.isfunction(of)) and of.__doc__ and of.__module__.startswith("kiln."):
        of.__doc__ = described(of)
