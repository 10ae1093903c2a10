"""Rankings of a graph's nodes."""
from __future__ import annotations

import itertools
from typing import Any, Mapping, NamedTuple

import numpy as np

from ._arrays import Device, Matrix, matrix
from ._functions import beside, place, pointer_of
from ._joint import alone
from ._library import ArgumentError, DataError, lib
from ._links import Graph, sparse_links
from ._solve import Callback, Report, algorithm_options, choice, solve, warn_of


def _brief(scores: Any) -> str:
    if isinstance(scores, dict) or (hasattr(scores, "items") and getattr(scores, "ndim", 0) == 1):
        first = ", ".join(f"{node!r}: {score}" for node, score in itertools.islice(scores.items(), 3))
        return f"{{{first}{', ...' if len(scores) > 3 else ''}}} ({len(scores):,} nodes)"
    if not isinstance(scores, np.ndarray):
        return (f"<{type(scores).__name__} of {len(scores):,} nodes>" if hasattr(scores, "__len__")
                else repr(scores))
    return np.array2string(scores, threshold=6, edgeitems=2)


class Ranking(NamedTuple):
    """The scores of a graph's nodes, and the run's report. If nodes have names, the scores go by them in the
    form in which the graph was given (a dict, a Series of pandas, a frame of polars, a table of pyarrow);
    else they are an array."""

    scores: Any
    report: Report

    def __repr__(self) -> str:
        return f"Ranking(scores={_brief(self.scores)}, report={self.report})"


class HubsAndAuthorities(NamedTuple):
    """The result of hits(); hubs and authorities have the form of a Ranking's scores."""

    hubs: Any
    authorities: Any
    report: Report

    def __repr__(self) -> str:
        return (f"HubsAndAuthorities(hubs={_brief(self.hubs)}, authorities={_brief(self.authorities)}, "
                f"report={self.report})")


def _of_shape(given: Matrix | None, shape: tuple[int, int], name: str) -> None:
    if given is not None and given.shape != shape:
        raise ArgumentError(f"{name} is {given.shape[0]} x {given.shape[1]}, but must be {shape[0]} x "
                            f"{shape[1]}")


def _rank(name: str, graph: Graph, operands: list[Matrix], options: Any, verbose: int,
          callback: Callback | None, names: Mapping[str, str] = {}) -> Report:
    try:
        report = solve(operands[0].device, getattr(lib, f"kiln_{name}"),
                       [operand.pointer for operand in operands], options, verbose=verbose, callback=callback,
                       names=names, mapped=any(operand.mapped for operand in operands))
    except DataError as error:
        if bad := graph.worst(lambda values: ~(values >= 0) | np.isinf(values)):
            error.args = (f"{bad[0]} has the weight {bad[1]:g}, but weights are finite numbers >= 0: "
                          "unweighted=True takes every link for 1",)
        raise
    warn_of(report, name, single=operands[0].dtype == np.float32)
    return report


def _one_of(name: str, value: Any, also: str, given: Any, default: Any) -> Any:
    """The value of a parameter with two names."""
    if given is None:
        return value
    if value is not default and not (np.isscalar(value) and value == default):
        raise ArgumentError(f"{also} is another name of {name}: give one of them")
    return given


@alone
def pagerank(G: Any, *, damping: float = 0.85, personalize: Any = None, unweighted: bool = False,
             dangling: Any = "personalized", source: str | None = None, target: str | None = None,
             weight: str | None = "auto", undirected: bool = False, tol: float | None = None,
             max_iter: int | None = None, iterations: int | None = None, start: Any = None,
             alpha: float | None = None, personalization: Any = None, nstart: Any = None,
             layout: str = "auto", device: str | Device = "auto", verbose: int = 0,
             callback: Callback | None = None) -> Ranking:
    """PageRank of a graph.

    G: a graph of networkx or igraph; an adjacency matrix (n, n), where row i links to column j (NumPy, SciPy,
    a kiln.Matrix, or a frame of pandas with the same index and columns); or a frame with a link in each row
    (pandas, polars, pyarrow, DuckDB, ...), or the path of a file of links, as `kiln pagerank` reads it, with
    columns called `source`, `target` and perhaps `weight`, or as source=, target= and weight= say. The scores
    go by node as G does: a dict of a file of links, a graph of networkx, or of igraph with the attribute
    `name`; of a frame of pandas a Series, of polars a frame, of other tables one of
    pyarrow, with the columns `node` and `pagerank`; else an array.

    Links are followed in proportion to their weights (of a graph's links the attribute `weight`, or the one
    that weight= names; 1 where there is none), those of a link that is there several times added up.
    weight=None, not of a file: each counts 1, as in networkx; unweighted: so does one that is there several
    times. undirected: links lead both ways, as they do in a graph that is undirected itself.

    personalize: by node, as a dict, or as a Series or frame of pandas by its index, where other nodes have 0;
    or an array (n,) or (n, k), one ranking for each column; or a list of dicts or Series, for one each.
    dangling: "personalized", "uniform", or where nodes without links lead, by node or an array (n,). start:
    by node or an array. alpha, personalization and nstart are networkx's names of damping, personalize and
    start. layout of the links: "csr", "hybrid",
    "balanced", or "auto", which takes what is predicted to be the fastest. scores add up to 1;
    report.figures has "error_bound".
    """
    damping = _one_of("damping", damping, "alpha", alpha, 0.85)
    personalize = _one_of("personalize", personalize, "personalization", personalization, None)
    start = _one_of("start", start, "nstart", nstart, None)
    graph = Graph(G, source=source, target=target, weight=weight, undirected=undirected,
                  unweighted=unweighted)
    shape = getattr(graph.links, "shape", (1, 1))
    if len(shape) != 2:
        raise ArgumentError(f"expected a matrix of 2 dimensions, got {len(shape)}")
    if shape[0] != shape[1]:
        raise ArgumentError(f"an adjacency matrix is square, got {' x '.join(map(str, shape))}")
    a = place(sparse_links(graph.links), device, 60)
    names = {"damping": "damping" if alpha is None else "alpha",
             "personalize": "personalize" if personalization is None else "personalization"}
    personalize, start = (graph.vector(personalize, names["personalize"]),
                          graph.vector(start, "start" if nstart is None else "nstart"))
    teleport = beside(a, personalize)
    if teleport is not None:
        _of_shape(teleport, (a.shape[0], teleport.shape[1]), names["personalize"])
    options = algorithm_options("pagerank", {
        "damping": damping, "unweighted": graph.unweighted, "tolerance": tol, "max_iterations": max_iter,
        "iterations": iterations, "layout": choice("pagerank", "layout", layout), "personalize": teleport,
        "warm_start": start is not None})
    sink = None
    if not isinstance(dangling, str):
        sink = beside(a, graph.vector(dangling, "dangling"))
        _of_shape(sink, (a.shape[0], 1), "dangling")
        options.dangling_to = pointer_of(sink)
    elif dangling in ("personalized", "uniform"):
        options.dangling = getattr(lib, "KILN_DANGLING_" + dangling.upper())
    else:
        raise ArgumentError("dangling must be 'personalized', 'uniform', or given by node or as an array, "
                            f"got {dangling!r}")
    shape = (a.shape[0], teleport.shape[1] if teleport else 1)
    ranks = Matrix.empty(a.device, shape,
                         a.dtype) if start is None else matrix(np.array(start, a.dtype, order="C"), a.device)
    _of_shape(ranks, shape, "start" if nstart is None else "nstart")
    report = _rank("pagerank", graph, [ranks, a], options, verbose, callback, names)
    return Ranking(graph.named(ranks, "pagerank", teleport is None or len(personalize.shape) == 1), report)


@alone
def hits(G: Any, *, norm: int = 1, unweighted: bool = False, source: str | None = None,
         target: str | None = None, weight: str | None = "auto", undirected: bool = False,
         solver: str = "auto", tol: float | None = None, max_iter: int | None = None,
         device: str | Device = "auto", verbose: int = 0,
         callback: Callback | None = None) -> HubsAndAuthorities:
    """Hubs and authorities of a graph, which is given, and whose scores go by node, as of pagerank(); an
    adjacency matrix may be (m, n). norm 1: hubs, and authorities, add up to 1; 2: their squares do.

    unweighted: every link counts 1; without it weights count, those of a link that is there several times
    added up. solver: "power", "lobpcg", or "auto", the power iteration, and LOBPCG from where that is slow.
    report.objective is the eigenvalue, and report.figures has "eigenvalue_error", how far it is from one of
    A^T A at most."""
    graph = Graph(G, source=source, target=target, weight=weight, undirected=undirected,
                  unweighted=unweighted)
    a = place(graph.links, device, 40)
    options = algorithm_options("hits", {"norm": norm, "unweighted": graph.unweighted,
                                         "solver": choice("hits", "solver", solver), "tolerance": tol,
                                         "max_iterations": max_iter})
    hubs, authorities = Matrix.empty(a.device, (a.shape[0], 1),
                                     a.dtype), Matrix.empty(a.device, (a.shape[1], 1), a.dtype)
    report = _rank("hits", graph, [hubs, authorities, a], options, verbose, callback)
    return HubsAndAuthorities(graph.named(hubs, "hub"), graph.named(authorities, "authority"), report)
