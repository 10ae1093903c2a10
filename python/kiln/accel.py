"""Runs scikit-learn's own classes, statsmodels' generalised linear models and networkx's
rankings on Kiln where the result is the same.

    python -m kiln.accel [--verify] [--log] script.py [arguments]
    python -m kiln.accel [--verify] [--log] -m module [arguments]
    pytest -p kiln.accel [--accel-verify]
    %load_ext kiln.accel

or install() at the beginning of a program. A table at the end says which call ran where, for how long, or why
not on Kiln. Classes keep their identity: a call that Kiln takes sets scikit-learn's attributes, every other
call runs as it always did. --log prints a line for each call as it ends. --verify runs each call that Kiln
takes in both, and says how far the results are apart and how far they may be.
"""
from __future__ import annotations

import copy
import functools
import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import runpy
import sys
import tempfile
import threading
import time
from typing import Any, NamedTuple

import numpy as np

from ._extras import needed
from ._library import KilnError

# for processes that this one starts: the options, and the file that takes their calls
_ENVIRONMENT = "KILN_ACCEL"


class Call(NamedTuple):
    """A call: where it ran ("kiln", or whose it is), for how long, why not on Kiln; with verify how far the
    results are apart, and whether that is too far."""

    name: str
    shape: tuple[int, ...]
    where: str
    seconds: float
    why: str
    apart: float | None = None
    differs: bool = False

    def __str__(self) -> str:
        told = ("" if self.apart is None
                else f"{'DIFFERS by' if self.differs else 'differs by'} {self.apart:.1e}")
        line = (f"{self.name:<30} {' x '.join(map(str, self.shape)):>18}  {self.where:<13} "
                f"{self.seconds:9.3f}  {self.why or told}")
        return line.rstrip()


calls: list[Call] = []
_originals: list[tuple[Any, str, Any]] = []
_PEERS = ("networkx", "statsmodels", "implicit")  # which scripts may never import
_how: dict[str, Any] = {"log": False, "verify": False, "file": None}
# its "comparing": whether this thread is in scikit-learn's own call of a comparison
_here = threading.local()


def _shape(operand: Any) -> tuple[int, ...]:
    found = getattr(operand, "shape", None)
    if found is None:
        found = ((len(operand), operand.number_of_edges()) if hasattr(operand, "number_of_edges")
                 else (len(operand),) if hasattr(operand, "__len__") else ())
    return tuple(int(size) for size in found)


def _keep(call: Call) -> None:
    calls.append(call)
    if _how["log"]:
        print(f"kiln.accel: {' '.join(str(call).split())}", file=sys.stderr)
    if _how["file"]:
        with open(_how["file"], "a") as file:
            file.write(json.dumps(call) + "\n")


def _as_before(values: Any) -> Any:
    """A copy of what a call draws numbers from, so that another call draws the same; other values are
    themselves."""
    return copy.deepcopy(values) if isinstance(values, np.random.RandomState) else values


def _restore(values: Any, before: Any) -> None:
    """What a call draws numbers from as it was before the call."""
    for value, copied in zip(values, before):
        if value is not copied:
            value.set_state(copied.get_state())


def _verified(rule: Any, original: Any, found: Any, arguments: Any, named: Any) -> tuple[float, bool]:
    theirs = rule.also(original, *arguments, **named) if rule.also else original(*arguments, **named)
    apart = rule.apart(theirs, found, *arguments, **named)
    return apart, not apart <= rule.bound


def _replaced(rule: Any, original: Any) -> Any:
    from ._accel_rules import NotHere

    method = ":" in rule.places[0][0]
    kind = _holder(rule.places[0][0]) if method else None

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        if getattr(_here, "comparing", False):
            return original(*arguments, **named)
        begin, why = time.perf_counter(), ""
        apart: tuple[float | None, bool] = (None, False)
        name, place = rule.name, _whose(rule)
        operands = arguments[1:] if method else arguments
        operand = operands[0] if operands else named.get("X", getattr(arguments[0], "exog", None)
                                                         if arguments else next(iter(named.values()), None))
        again = tuple(map(_as_before, arguments)), {key: _as_before(value) for key, value in named.items()}
        try:
            if method and type(arguments[0]) is not kind:
                name = f"{type(arguments[0]).__name__}.{rule.places[0][1]}"
                raise NotHere(f"a subclass of {place}'s {getattr(kind, '__name__', '')}")
            found = rule.ours(original, *arguments, **named)
            place, seconds = "kiln", time.perf_counter() - begin
            if _how["verify"]:
                _here.comparing = True
                try:
                    apart = _verified(rule, original, found, *again)
                finally:
                    _here.comparing = False
        # the original says it in its own words, or can do it
        except (NotHere, KilnError, ValueError, TypeError, NotImplementedError) as error:
            if place == "kiln":
                raise
            why = str(error).split("\n")[0] or type(error).__name__
            _restore((*arguments, *named.values()), (*again[0], *again[1].values()))
            found = original(*arguments, **named)
            seconds = time.perf_counter() - begin
        _keep(Call(name, _shape(operand), place, seconds, why, *apart))
        return found

    return call


def _whose(rule: Any) -> str:
    first = rule.name.partition(".")[0]
    return first if first in _PEERS else "scikit-learn"


def _holder(place: str) -> Any:
    """The module, or what it has of that name."""
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def install(*, log: bool = False, verify: bool = False) -> None:
    """From now on scikit-learn and networkx run on Kiln where they can. log: print a line for each call;
    verify: run both, and compare. Functions such as lasso_path are to be imported after it."""
    needed("sklearn", "kiln.accel")
    from ._accel_rules import rules

    _how.update(log=log, verify=verify)
    if _originals:
        return
    for rule in rules():
        own: dict[Any, Any] = {}
        for place, name in rule.places:
            module = place.partition(":")[0]
            if module.partition(".")[0] in _PEERS and module not in sys.modules:
                _later.setdefault(module, []).append((rule, place, name, own))
            else:
                _replace(rule, place, name, own)
    if _later:
        sys.meta_path.insert(0, _finder)


def _replace(rule: Any, place: str, name: str, own: dict[Any, Any]) -> None:
    """Puts Kiln's call in the place of the original; own: those of this rule by their originals."""
    holder = _holder(place)
    original = getattr(holder, name, None)
    if original is not None and original not in own.values():
        _originals.append((holder, name, original))
        setattr(holder, name, own.setdefault(original, _replaced(rule, original)))


_later: dict[str, list[Any]] = {}  # what is replaced in modules when they are imported


class _Finder(importlib.abc.MetaPathFinder):
    """Modules of other packages, which are found as ever, and then changed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in _later:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_replace(module: Any) -> None:
                run(module)
                for rule, place, attribute, own in _later.pop(name, []):
                    _replace(rule, place, attribute, own)

            spec.loader.exec_module = run_and_replace  # type: ignore[method-assign]
        return spec


_finder = _Finder()


def uninstall() -> None:
    """scikit-learn and the others as they were."""
    _later.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    while _originals:
        holder, name, original = _originals.pop()
        setattr(holder, name, original)


def table() -> str:
    """The calls so far, a line each."""
    heading = (f"{'call':<30} {'X':>18}  {'where':<13} {'seconds':>9}  "
               f"{'difference' if _how['verify'] else 'why not Kiln'}")
    return "\n".join([heading, *map(str, calls)])


def load_ipython_extension(shell: Any) -> None:
    """%load_ext kiln.accel: from then on, also in processes that the notebook starts. kiln.accel.table() has
    the calls."""
    _open({"log": False, "verify": False})


def unload_ipython_extension(shell: Any) -> None:
    """%unload_ext kiln.accel"""
    _close()


def pytest_addoption(parser: Any) -> None:
    """pytest -p kiln.accel --accel-verify"""
    parser.getgroup("kiln").addoption("--accel-verify", action="store_true",
                                      help="run each call that Kiln takes in both, and compare; tests "
                                           "fail where they differ")


def pytest_configure(config: Any) -> None:
    """pytest -p kiln.accel"""
    _open({"log": False, "verify": bool(config.getoption("--accel-verify", False))})


def pytest_runtest_call(item: Any) -> Any:
    """A test whose results differ by more than their bound is to fail."""
    begin = len(calls)
    found = yield
    differs = [call for call in calls[begin:] if call.differs]
    if differs:
        raise AssertionError("kiln.accel: " + "; ".join(" ".join(str(call).split()) for call in differs))
    return found


pytest_runtest_call.pytest_impl = {"wrapper": True}  # type: ignore[attr-defined]  # as pytest.hookimpl has it


def pytest_terminal_summary(terminalreporter: Any) -> None:
    _gather()
    if calls:
        terminalreporter.section("kiln.accel")
        terminalreporter.write_line(table())


def pytest_unconfigure(config: Any) -> None:
    _close()


_folder: list[Any] = []  # the temporary directory that processes which this one starts write their calls to


def _open(options: dict[str, bool]) -> None:
    """install(), also for the processes that this one starts."""
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory())
        _for_workers(_folder[0].name, options)
    install(**options)


def _gather() -> None:
    """The calls of the processes that this one has started."""
    written = pathlib.Path(_folder[0].name, "calls")
    if written.exists():
        for line in written.read_text().splitlines():
            name, shape, *rest = json.loads(line)
            calls.append(Call(name, tuple(shape), *rest))
        written.unlink()


def _close() -> None:
    """As it was before _open()."""
    uninstall()
    if _folder:
        _gather()
        paths = os.environ["PYTHONPATH"].split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path != _folder[0].name)
        os.environ.pop(_ENVIRONMENT, None)
        _folder.pop().cleanup()


def _for_workers(folder: str, options: dict[str, bool]) -> None:
    """Processes that this one starts, joblib's among them, begin with install(), and write their calls to a
    file."""
    pathlib.Path(folder, "sitecustomize.py").write_text(_BEGIN)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = folder if not before else os.pathsep.join([folder, before])
    os.environ[_ENVIRONMENT] = json.dumps({**options, "file": str(pathlib.Path(folder, "calls"))})


_BEGIN = """\
import importlib.machinery, importlib.util, os, sys
here = os.path.dirname(os.path.abspath(__file__))
elsewhere = [p for p in sys.path if os.path.abspath(p or ".") != here]
other = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
if other is not None and other.loader is not None:
    other.loader.exec_module(importlib.util.module_from_spec(other))
if "KILN_ACCEL" in os.environ:
    from kiln.accel import begin_worker
    begin_worker()
"""


def begin_worker() -> None:
    """install() as the process says that started this one."""
    options = json.loads(os.environ[_ENVIRONMENT])
    install(log=options["log"], verify=options["verify"])
    _how["file"] = options["file"]


def _run(arguments: list[str]) -> None:
    """A script, or -m and a module, with its arguments, as python runs it."""
    if arguments[0] == "-m":
        sys.argv, sys.path[0] = arguments[1:], ""
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(pathlib.Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    """python -m kiln.accel [--verify] [--log] script.py [arguments]"""
    arguments, options = sys.argv[1:], {"log": False, "verify": False}
    while arguments and arguments[0] in ("--log", "--verify"):
        options[arguments.pop(0)[2:]] = True
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(__doc__)
        raise SystemExit(0 if arguments and arguments[0] != "-m" else 2)
    from kiln import accel  # not __main__, so that there is one list of calls

    accel._open(options)
    try:
        _run(arguments)
    except SystemExit as ended:
        if ended.code not in (None, 0):  # a script that ends well has yet to be judged
            raise
    finally:
        accel._close()
        if accel.calls:
            print(accel.table(), file=sys.stderr)
    if any(call.differs for call in accel.calls):
        raise SystemExit("kiln.accel: results differ by more than their bounds")


if __name__ == "__main__":
    main()
