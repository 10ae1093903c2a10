"""Shared parts of the tests: the devices that they run on, and the tool."""
import os
import pathlib
import re
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# PoCL now and then aborts on an entry of its cache that another process is just writing.
if "POCL_CACHE_DIR" in os.environ and "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["POCL_CACHE_DIR"] += "-" + os.environ["PYTEST_XDIST_WORKER"]
# the tool's options and verbs, and names of C
TOOL_WORDS = re.compile(r"(^|[^\w-])--[a-z]|\bkiln_[a-z]+_\w|\bkiln_\w+\("
                        r"|\bkiln (info|devices|doctor|kernels|recommend|logreg|svm|glm|explain)\b")


@pytest.fixture(autouse=True)
def python_words(monkeypatch):
    """Errors and warnings of every test are in Python's words."""
    from kiln import _library, _words

    begin, tell = _library.KilnError.__init__, warnings.warn

    def made(error, *said):
        assert not any(TOOL_WORDS.search(str(one)) for one in said), said
        begin(error, *said)

    class Warnings:
        @staticmethod
        def warn(message, kind, stacklevel):
            assert not TOOL_WORDS.search(message), message
            tell(message, kind, stacklevel=stacklevel + 1)

    monkeypatch.setattr(_library.KilnError, "__init__", made)
    monkeypatch.setattr(_words, "warnings", Warnings)


@pytest.fixture(scope="session")
def tool():
    """The command line tool: of the build that KILN_TOOL names, or of one of test.sh's."""
    for path in (os.environ.get("KILN_TOOL"), ROOT / "build-gcc" / "kiln", ROOT / "build" / "kiln"):
        if path and pathlib.Path(path).exists():
            return str(path)
    pytest.fail("there is no tool: build Kiln, or set KILN_TOOL")


@pytest.fixture(scope="session")
def data():
    """The data set that the repository ships."""
    return ROOT / "data"
