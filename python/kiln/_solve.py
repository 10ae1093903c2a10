"""Runs an algorithm: progress and Ctrl-C on the way, the report afterwards."""
from __future__ import annotations

import contextlib
import functools
import html
import sys
import threading
from typing import Any, Callable, Iterator, Mapping, NamedTuple

import numpy as np

from ._arrays import Device, Matrix
from ._library import DataError, OutOfMemoryError, check, ffi, lib, struct, text
from ._words import advice, convergence, speaking, warn, words

Callback = Callable[[dict[str, Any]], Any]


class Report(NamedTuple):
    """An account of a run. figures are the algorithm's own, by name; history has an array for each column of
    the trace; solver is the one that ran, "" where there is one alone; optimality_gap is the most that the
    objective can be above the optimum, inf where nothing bounds it; certificate names what that follows from,
    "" then; warnings are what Python warned of, by the library's word for each."""

    converged: bool
    stopped_by: str
    n_iter: int
    residual: float
    tolerance: float
    objective: float
    passes: int
    seconds: float
    figures: dict[str, float]
    history: dict[str, Any]
    solver: str
    optimality_gap: float
    certificate: str
    warnings: dict[str, str] = {}

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self._fields if name != "history")
        return f"Report({', '.join(shown)}, history of {self._rows()} rows)"

    def _rows(self) -> int:
        return len(next(iter(self.history.values()), ()))

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        told = {**{name: getattr(self, name) for name in self._fields if name not in ("history", "figures")},
                **self.figures, "history": f"{self._rows()} rows"}
        rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
                       for name, value in told.items())
        return f"<table>{rows}</table>"


def together(reports: list[Report]) -> Report:
    """Joins several runs that are one fit: sums of what adds up, and the rest of the one that is the least
    done."""
    worst = min(reports, key=lambda report: (report.converged,
                                             -report.residual / max(report.tolerance, np.finfo(float).tiny)))
    sums = {name: sum(getattr(report, name) for report in reports) for name in ("objective", "passes",
                                                                                "seconds", "optimality_gap")}
    said = {kind: message for report in reports for kind, message in report.warnings.items()}
    return worst._replace(**sums, n_iter=max(report.n_iter for report in reports), figures={}, warnings=said)


class _Line:
    """Progress as one line of text that is written anew."""

    def show(self, now: Any) -> None:
        if sys.stderr is not None:
            total = f"/{now.total}" if now.total else ""
            sys.stderr.write(f"\rkiln: {text(now.phase)} {now.done}{total}, {_figures(now)}, "
                             f"{now.seconds:.1f} s \x1b[K")
            sys.stderr.flush()

    def close(self) -> None:
        if sys.stderr is not None:
            sys.stderr.write("\n")


class _Bar:
    """Progress as a bar of tqdm's, in a notebook as that shows it."""

    def __init__(self, tqdm: Any) -> None:
        self.tqdm, self.phase = tqdm, ""
        self.bar: Any = None

    def show(self, now: Any) -> None:
        if self.bar is None or text(now.phase) != self.phase:
            self.close()
            self.phase = text(now.phase)
            self.bar = self.tqdm(total=now.total or None, desc=f"kiln: {self.phase}", unit=" iterations"
                                 if self.phase == "solve" else " B")
        self.bar.set_postfix_str(_figures(now), refresh=False)
        self.bar.update(now.done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _figures(now: Any) -> str:
    residual = f"residual {now.residual:.2e}" if np.isfinite(now.residual) else "no residual yet"
    return f"objective {now.objective:.6g}, {residual}"


def _display() -> _Bar | _Line:
    """Shows progress with tqdm where it is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line()
    return _Bar(tqdm)


class _Watch:
    """What a run's callback from C looks at."""

    def __init__(self, verbose: int, callback: Callback | None) -> None:
        self.verbose, self.callback = verbose, callback
        self.error: BaseException | None = None
        self.display: _Bar | _Line | None = None

    def see(self, now: Any) -> int:
        if self.callback is not None:
            row = {name: getattr(now, name) for name in ("done", "total", "objective", "residual", "seconds",
                                                         "bytes")}
            if self.callback({"phase": text(now.phase), **row}):
                return 1
        if self.verbose:
            self.display = self.display or _display()
            self.display.show(now)
        return 0


# .watch: of the run that this thread is in; .checkpoint: of the block (checkpoint)
running = threading.local()


def _failed(kind: Any, error: Any, trace: Any) -> int:
    """An exception in a callback, Ctrl-C among them, ends the run; solve() raises it again."""
    running.watch.error = error
    return 1


@ffi.callback("int(void *, const kiln_progress *)", onerror=_failed)  # type: ignore[untyped-decorator]
def _progress(user: Any, now: Any) -> int:
    watch: _Watch = running.watch
    return watch.see(now)


def solve(where: Device, function: Any, operands: list[Any], options: Any, *, verbose: int = 0,
          callback: Callback | None = None, names: Mapping[str, str] | None = None,
          mapped: bool = False, beforehand: bool = False) -> Report:
    """function(*operands, options, report) on a device, with C operands; the report, which is also told where
    it ends early. names: the caller's parameters by the library's fields, for messages. mapped: X stays in
    its file on purpose, so that no budget is too small for it. beforehand: a checkpoint is of the run after
    this one."""
    outer = getattr(running, "watch", None)  # a callback may train a model itself
    report = struct("kiln_report")
    options.control.progress = _progress
    kept = getattr(running, "checkpoint", None)
    if kept is not None and outer is None and not beforehand:
        options.control = kept.take(options.control)
    watch = running.watch = _Watch(verbose, callback)
    try:
        with where.turn, speaking(names):
            before = where.statistics()
            status = function(*operands, options, report)
            if watch.display:
                watch.display.close()
            if watch.error is not None:
                raise watch.error
            check(status)
            made = _read(report)
            _check_memory(where)
            if not mapped:
                made.warnings.update(_budget(where, before))
            return made
    finally:
        running.watch = outer
        lib.kiln_report_free(report)


@contextlib.contextmanager
def finishing() -> Iterator[None]:
    """Within it a budget that was exceeded is an error at the end, when the model has what was found."""
    if getattr(running, "over", None) is not None:
        yield  # within another fit, whose end it is then
        return
    over = running.over = []
    try:
        yield
    finally:
        running.over = None
    if over:
        raise over[0]


def _check_memory(where: Device) -> None:
    try:
        where.check_memory()
    except OutOfMemoryError as error:
        if getattr(running, "over", None) is None:
            raise
        running.over.append(error)


def _budget(where: Device, before: Mapping[str, Any]) -> dict[str, str]:
    """A warning where the device's memory was too little for what was done on it since then."""
    now = where.statistics()
    panels, evictions = (now[name] - before[name] for name in ("panels", "evictions"))
    if not panels and not evictions:
        return {}
    what = ("X does not fit, so that every pass moved it in panels" if panels
            else f"matrices made room for others {evictions} times")
    return {"budget": f"the memory of {where.name} was too little: {what}; a larger memory of kiln.Device, "
                      "or float32"}


def algorithm_options(algorithm: str, options: dict[str, Any]) -> Any:
    """The algorithm's struct with these options, whose matrices must live as long. None leaves an option its
    default; what is given is meant, 0 too."""
    row = lib.kiln_algorithm_named(algorithm.encode())
    known = {text(row.options[i].name) for i in range(row.option_count)}
    given = {name: value.pointer if isinstance(value, Matrix) else value for name, value in options.items()
             if value is not None}
    made = struct(f"kiln_{algorithm}_options", **given)
    for name in given.keys() & known:
        check(lib.kiln_option_give(algorithm.encode(), made, name.encode()))
    return made


def choice(algorithm: str, option: str, wanted: str, peers: tuple[str, ...] = ()) -> int | None:
    """The number of what is wanted among an option's choices, by the registry; None, which leaves the choice
    to the library, for "auto", and for what scikit-learn calls its own (peers)."""
    if wanted == "auto" or wanted in peers:
        return None
    row = lib.kiln_algorithm_named(algorithm.encode())
    known = next((text(row.options[i].choices).split("|") for i in range(row.option_count)
                  if text(row.options[i].name) == option), [])
    if wanted not in known:
        raise ValueError(f"{option} must be 'auto' or one of {[*known, *peers]}, got {wanted!r}")
    return known.index(wanted) + 1


@functools.cache
def _trace_type() -> Any:
    """A row of the trace as NumPy has it."""
    row = ffi.typeof("kiln_trace_row")
    kinds = {name: (np.dtype({"int64_t": np.int64, "double": np.float64}[field.type.cname]), field.offset)
             for name, field in row.fields}
    return np.dtype({"names": list(kinds), "formats": [kind for kind, _ in kinds.values()],
                     "offsets": [at for _, at in kinds.values()], "itemsize": ffi.sizeof(row)})


def _read(report: Any) -> Report:
    figures: dict[str, float] = {}
    while name := lib.kiln_report_figure_name(report, len(figures)):
        figures[text(name)] = float(lib.kiln_report_figure(report, name))
    kinds = _trace_type()
    trace = np.frombuffer(ffi.buffer(report.trace, report.trace_count * kinds.itemsize) if report.trace_count
                          else b"", kinds)
    history = {name: trace[name].copy() for name in kinds.names or ()}
    said: dict[str, str] = {}
    kind, hint = ffi.new("const char **"), ffi.new("const char **")
    while line := lib.kiln_report_warning(report, len(said), kind, hint):
        remedy = advice(text(hint[0]))
        said[text(kind[0])] = words(text(line)) + (f"; {remedy}" if remedy else "")
    return Report(bool(report.converged), text(lib.kiln_stop_name(report.stopped_by)), int(report.iterations),
                  float(report.residual), float(report.tolerance), float(report.objective),
                  int(report.passes), float(report.seconds), figures, history, text(report.solver),
                  float(report.optimality_gap), text(report.certificate), said)


# what is no result to converge to
ENDLESS = {"separated", "quasi-separated", "zeros", "undecided", "one-sided", "out-of-reach", "clusters",
            "batches"}
ASKED = "patience"  # what a parameter asks for: it ends a run as scikit-learn's does, and is worth no word


def warn_of(report: Report, name: str, names: Mapping[str, str] = {}, *, unfinished: bool = True,
            single: bool = True, steps: str = "iterations") -> None:
    """What the library says of the result, and that it has not converged, as warnings; what met NaN or
    infinity is no result. names: the parameters by the library's fields. unfinished: whether a run that has
    not converged is worth a word. single: whether it ran in float32, where float64 would have more digits.
    steps: how an iteration is called."""
    if report.stopped_by == "diverged":
        raise DataError(f"{name}: the solver met NaN or infinity after {report.n_iter} iterations; take "
                        "float64, or data of smaller magnitude")
    for kind, message in report.warnings.items():
        if kind != ASKED:
            warn(f"{name}: {message}", convergence() if kind in ENDLESS else UserWarning)
    if (report.converged or not unfinished or report.stopped_by == "cancelled"
        or {"out-of-reach", "batches", ASKED} & report.warnings.keys()):
        return
    tol = names.get("tolerance", "tol")
    more = ", or take float64" if single else ""
    ends = {"max_iterations": ("max_iter ended it", f"raise max_iter, or {tol}"),
            "stalled": ("it made no more progress", f"rounding ends it here: raise {tol}{more}"),
            "rounding": ("rounding ended it", f"raise {tol}{more}")}
    end, remedy = ends.get(report.stopped_by, ("it ended", "the result is what it had by then"))
    met = (", which is met, but the objective is not known to be near its least value" if report.residual
           <= report.tolerance else "")
    warn(f"{name} did not converge: {end} after {report.n_iter} {steps}, residual "
         f"{report.residual:.2e} where "
         f"{report.tolerance:.2e} was wanted{met}; {remedy}", convergence())
