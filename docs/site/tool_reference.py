"""A page from what `kiln VERB --help` says."""
from __future__ import annotations

import pathlib
import re
import subprocess


def ask(tool: str, *words: str) -> str:
    return subprocess.run([tool, *words], check=True, capture_output=True, text=True).stdout.rstrip()


def write(tool: str, stage: pathlib.Path) -> None:
    """tool-reference.md"""
    about = ask(tool, "--help")
    verbs = about.partition("\nVerbs\n")[2].partition("\n\n")[0]
    names = re.findall(r"^  ([a-z]+)\b", verbs, re.M)
    if not names:
        raise SystemExit("tool_reference.py: the tool names no verbs")
    out = ["# The command line tool", "",
           "What `kiln --help` and `kiln VERB --help` say. The same is in the manual, `kiln man VERB`.", "",
           "```text", about, "```", ""]
    for name in names:
        out += [f"## kiln {name}", "", "```text", ask(tool, name, "--help"), "```", ""]
    (stage / "tool-reference.md").write_text("\n".join(out))
