"""What the tests share: the devices that they run on, and the tool."""
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
