"""Pages from the C headers: each comment with the declarations that follow it. The headers keep the only copy
of a contract."""
from __future__ import annotations

import pathlib
import re
from typing import NamedTuple

# What a paragraph of a contract may begin with.
LEADS = ("Errors", "Cost", "Determinism", "Source")
LEAD = re.compile(rf"(?:(?<=[.;]) |^)({'|'.join(LEADS)}):", re.M)
NAME = re.compile(r"\bkiln_\w+\b")
LINKED = re.compile(r"(\bkiln_\w+\b|\bdocs/\w+\.md|\bkiln/\w+\.h)")
DECLARED = (
    re.compile(r"^KILN_API [^(]*?\b(kiln_\w+)\(", re.M),
    re.compile(r"^typedef (?:struct|enum) (kiln_\w+)", re.M),
    re.compile(r"^#define (KILN_\w+)", re.M),
)


class Block(NamedTuple):
    """A comment and its declarations."""

    comment: str
    code: str
    names: list[str]


def blocks(text: str) -> list[Block]:
    """The header's blocks in their order; the first is the comment at its top."""
    text = re.sub(r"^#(ifndef|ifdef|endif|include|define KILN_\w+_H\b).*\n", "", text, flags=re.M)
    text = re.sub(r'^(extern "C" \{|\})\n', "", text, flags=re.M)
    made: list[Block] = []
    for part in re.split(r"^(?=/\*)", text, flags=re.M):
        found = re.match(r"/\*(.*?)\*/\s*", part, re.S)
        comment, code = (found[1], part[found.end():]) if found else ("", part)
        names = sorted({name for pattern in DECLARED for name in pattern.findall(code)}, key=code.find)
        if made and not names and not code.strip() and comment.strip(" -").startswith("-"):
            continue
        if comment.strip() or code.strip():
            made.append(Block(comment, code.strip(), names))
    return made


def lines_of(comment: str) -> list[str]:
    lines = [re.sub(r"^ ?\* ?", "", line) if number else line.strip()
             for number, line in enumerate(comment.split("\n"))]
    return [line.rstrip() for line in lines]


def escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", text)


def prose(comment: str, pages: dict[str, str]) -> str:
    """A comment as Markdown: indented lines are formulas, the others run on."""
    out: list[str] = []
    for line in lines_of(comment):
        formula = line.startswith("  ")
        if not line:
            out.append("")
        elif formula:
            if not out or not out[-1].startswith("    "):
                out.append("")
            out.append("    " + line.strip())
        else:
            fresh = (not out or not out[-1] or out[-1].startswith("    ")
                     or line.startswith(tuple(f"{lead}:" for lead in LEADS)))
            if fresh:
                out += ["", ""]
            out[-1] += ("" if fresh else " ") + with_links(line, pages)
    return LEAD.sub(r"\n\n**\1**:", "\n".join(out)).strip()


def with_links(line: str, pages: dict[str, str]) -> str:
    """A line of prose; what it names is a link."""
    out = []
    for part in LINKED.split(line):
        if NAME.fullmatch(part):
            out.append(f"[`{part}`]({pages[part]}.md#{part.lower()})" if part in pages else f"`{part}`")
        elif LINKED.fullmatch(part):
            target = f"c-{part[5:-2]}.md" if part.endswith(".h") else part.removeprefix("docs/")
            out.append(f"[{part}]({target})")
        else:
            out.append(escape(part))
    return "".join(out)


def heading(block: Block) -> str:
    """What the block is about: its functions, else its types, else its macros."""
    functions = DECLARED[0].findall(block.code)
    return ", ".join(dict.fromkeys(functions or DECLARED[1].findall(block.code) or block.names))


def split_section(comment: str) -> tuple[str, str]:
    """What a line of dashes names, and the rest; "" where the comment begins with none."""
    first, _, rest = comment.partition("\n")
    return (first.strip(" -"), f"\n{rest}") if first.strip().startswith("--") else ("", comment)


def page(name: str, parts: list[Block], pages: dict[str, str]) -> str:
    head = lines_of(parts[0].comment)
    title = " ".join(line for line in head if line).split(" SPDX")[0].removeprefix("Kiln: ")
    out = [f"# kiln/{name}.h", "", with_links(title[0].upper() + title[1:], pages), ""]
    level = "##"
    for block in parts[1:]:
        section, comment = split_section(block.comment)
        if section:
            level = "###"
            out += [f"## {escape(section[0].upper() + section[1:])}", ""]
        if not block.code:
            out += [prose(comment, pages), ""]
            continue
        out += [f"({label.lower()})=" for label in block.names]
        out += [f"{level} {escape(heading(block))}", "", prose(comment, pages), "", "```c",
                block.code.replace("KILN_API ", ""), "```", ""]
    return "\n".join(out)


def write(include: pathlib.Path, stage: pathlib.Path) -> None:
    """c-reference.md, and c-NAME.md for each header."""
    headers = {path.stem: blocks(path.read_text()) for path in sorted((include / "kiln").glob("*.h"))}
    pages = {name: f"c-{stem}" for stem, parts in headers.items() for block in parts for name in block.names}
    order = re.findall(r'#include "kiln/(\w+)\.h"', (include / "kiln.h").read_text())
    order += sorted(set(headers) - set(order))
    index = ["# The C interface", "",
             "`#include <kiln.h>` declares everything but what is in `kiln/codes.h`, `kiln/half.h` and "
             "`kiln/tune.h`. Link with `-lkiln`:", "", "    cc program.c $(pkg-config --cflags --libs kiln)", "",
             "[C in five minutes](tutorial-c.md) has a program that trains a model.", ""]
    for stem in order:
        (stage / f"c-{stem}.md").write_text(page(stem, headers[stem], pages))
        names = [name for block in headers[stem] for name in DECLARED[0].findall(block.code)]
        index += [f"**[kiln/{stem}.h](c-{stem}.md)**", "",
                  ", ".join(f"[`{name}`](c-{stem}.md#{name.lower()})" for name in names), ""]
    index += ["```{toctree}", ":hidden:", "", *(f"c-{stem}" for stem in order), "```", ""]
    (stage / "c-reference.md").write_text("\n".join(index))
