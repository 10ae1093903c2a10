"""The command `kiln`: the tool that the package carries."""
from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Becomes the tool."""
    path = str(pathlib.Path(__file__).resolve().parent / "kiln-tool")
    os.execv(path, ["kiln", *sys.argv[1:]])
