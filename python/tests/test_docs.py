"""The pages in docs tell the truth: their blocks run and print what they show, and the names that they
mention exist."""
import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import os
import pathlib
import pkgutil
import re
import subprocess

import kiln
import pytest
import scipy.sparse
from conftest import ROOT
from kiln._library import lib, text as library_text

DOCS = ROOT / "docs"
RUN = ["../README", "tutorial-cli", "tutorial-table", "tutorial-python", "tutorial-c", "large-data",
       "devices", "groups", "distributed", "scaling", "gallery", "troubleshooting", "linear", "statistics",
       "hits", "frames", "recommenders", "results", "svd"]
SAME = doctest.OutputChecker()
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?((?:(?!\$ ).*\n?)*)", re.M)


@pytest.fixture
def place(tmp_path, tool, monkeypatch):
    """A folder with the repository's data, where `kiln` is the tool, and pkg-config finds the library beside
    it."""
    build = pathlib.Path(tool).resolve().parent
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / "kiln.pc").write_text(f"Name: kiln\nDescription: kiln\nVersion: 0\nCflags: -I{ROOT}/include\n"
                                      f"Libs: -L{build} -Wl,-rpath,{build} -lkiln\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kiln").symlink_to(tool)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(wanted, found, what):
    # Before and after an ellipsis that stands on a line of its own there may be nothing.
    wanted = re.sub(r"^\.\.\.\n", "...", wanted, flags=re.M)
    if wanted.strip() and not SAME.check_output(wanted, found, LOOSELY):
        pytest.fail(f"{what}\n--- the page says\n{wanted}\n--- but it prints\n{found}")


def run_console(text):
    for command, wanted in COMMAND.findall(text):
        command = command.replace("\n> ", "\n")
        done = subprocess.run(["bash", "-c", command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        error = re.search(r"^(kiln: |hint: )", wanted, re.M) is not None and "kiln: warning" not in wanted
        if (done.returncode != 0) != error:
            pytest.fail(f"{command}: exit code {done.returncode}\n{done.stdout}")
        check(wanted, done.stdout, command)


def run_python(text, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "page", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", RUN)
def test_pages_run(page, place):
    names, printed = {}, None
    for kind, text in BLOCK.findall((DOCS / f"{page}.md").read_text()):
        if kind == "console":
            run_console(text)
        elif kind == "python":
            printed = run_python(text, names)
        elif kind == "text" and printed is not None:
            check(text, printed, page)
        elif kind == "c":
            (place / re.match(r"/\* (\S+\.c):", text)[1]).write_text(text)


PAGE_OF = {"linear": ("linreg", "logreg", "glm", "svm"), "kmeans": ("kmeans",), "mds": ("mds",),
           "pagerank": ("pagerank",), "hits": ("hits",), "factors": ("als", "sfa"), "topics": ("lda", "gap"),
           "svd": ("svd", "pca", "spectral")}


@pytest.mark.parametrize("page", PAGE_OF)
def test_a_page_has_what_each_has(page):
    """When to take it, when not, parameters, cost, determinism, source, a picture, what it was compared
    with."""
    text = (DOCS / f"{page}.md").read_text()
    table = text.partition("## At a glance\n")[2].partition("\n## ")[0]
    assert (re.findall(r"^\| ([a-z][a-zA-Z ]+) \| \S", table, re.M)
            == ["use it for", "avoid it", "parameters", "cost", "determinism", "source", "in Python and C"])
    assert re.search(r"^!\[|savefig\(", text, re.M) and "\n## Checked against\n" in text
    assert all(re.search(rf"`(kiln )?{verb}\b|^    kiln {verb}\b", text, re.M) for verb in PAGE_OF[page])
    assert all(hasattr(kiln, name) for name in re.findall(r"`kiln\.(\w+)", table) if name != "plot")


def test_each_algorithm_has_a_page():
    names = []
    while algorithm := lib.kiln_algorithm_at(len(names)):
        names.append(library_text(algorithm.name))
    assert sorted(names) == sorted(name for page in PAGE_OF.values() for name in page)


def migration_cells():
    """The code in the second column of the tables."""
    rows = re.findall(r"^\| `[^\n]*$", (DOCS / "migration.md").read_text(), re.M)
    cells = [re.split(r"(?<!\\) \| ", row)[1] for row in rows]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


@pytest.fixture(scope="module")
def help_of(tool):
    def ask(*verbs):
        return "".join(subprocess.run([tool, verb, "--help"], check=True, text=True,
                                      capture_output=True).stdout for verb in verbs)

    return ask


@pytest.mark.parametrize("code", sorted(set(migration_cells())))
def test_names_of_the_migration_tables(code, help_of):
    options = re.findall(r"(--[\w-]+)", code)
    if code.startswith(("kiln ", "--")):
        said = help_of(*[code.split()[1]] if code.startswith("kiln ") else ("logreg", "glm", "linreg"))
        assert options or code.startswith("kiln ")
        assert all(re.search(rf"{option}\b", said) for option in options)
    elif code.startswith(("kiln.", "with kiln.")):
        name, _, arguments = re.match(r"(?:with )?kiln\.(\w+)(\((.*)\))?", code).groups()
        parameters = inspect.signature(getattr(kiln, name)).parameters
        assert all(word in parameters for word in re.findall(r"(\w+)=", arguments or ""))
    elif code.startswith("model."):
        name, arguments = re.match(r"model\.(\w+)\((.*)\)", code).groups()
        assert all(word in inspect.signature(getattr(kiln.ALS, name)).parameters
                   for word in re.findall(r"(\w+)=", arguments))
    elif code.endswith("_"):
        assert hasattr(kiln.ALS(2, device="cpu").fit(scipy.sparse.eye(4, format="csr")), code)
    elif code.startswith("python -m "):
        assert importlib.util.find_spec(code.split()[2])
    else:
        assert code == "cupy.from_dlpack(result)" and hasattr(kiln.Matrix, "__dlpack__")


def test_the_migration_tables_are_found():
    assert len(migration_cells()) > 40


def test_the_reference_has_every_name(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "site")
    reference = importlib.import_module("python_reference")
    assert sorted(name for names in reference.GROUPS.values() for name in names) == sorted(kiln.__all__)
    modules = [one.name for one in pkgutil.walk_packages(kiln.__path__, "kiln.") if "._" not in one.name]
    assert sorted(f"kiln.{name}" for name in reference.MODULES) == sorted(modules)
