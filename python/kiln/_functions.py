"""Operations and rankings as functions of arrays."""
from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from ._arrays import Device, Matrix, choose, device as open_device, is_graph, matrix, numbers
from ._library import ArgumentError, ffi, lib, struct
from ._solve import Callback, Report, algorithm_options, choice, solve, warn_of

_Operand = Any


def place(X: _Operand, where: str | Device, passes: int = 1, columns: int = 1,
          vector: bool = False) -> Matrix:
    """X on its device: its own, the one that is named, or the best for so many passes. vector: of one
    dimension it is one column."""
    if isinstance(X, Matrix):
        return X
    if isinstance(X, (list, tuple)):
        X = numbers(X)
    if not vector and len(getattr(X, "shape", (0, 0))) == 1:
        raise ArgumentError("expected a matrix, of 2 dimensions, got 1: reshape(-1, 1) makes a column of it, "
                            "reshape(1, -1) a row")
    if where != "auto":
        return matrix(X, where)
    host = Matrix(X, "cpu")
    if host.device.is_gpu:  # where the caller has it
        return host
    best = choose(host.shape, host.nnz if host.sparse else None, host.dtype, passes, columns)
    return matrix(host, best)


def _beside(X: Matrix, array: _Operand) -> Matrix | None:
    """Another operand, where X is and of its type."""
    return None if array is None else matrix(array, X.device, X.dtype)


def _pointer(operand: Matrix | None) -> Any:
    return ffi.NULL if operand is None else operand.pointer


def _result(values: Matrix, like: _Operand) -> Any:
    """The values as a call hands them out; a vector where `like` was one."""
    return values.result(vector=len(like.shape if hasattr(like, "shape") else np.shape(like)) == 1)


def mmchain(X: _Operand, y: _Operand, *, v: _Operand = None, alpha: float = 1.0, beta: float = 0.0,
            z: _Operand = None, device: str | Device = "auto") -> Any:
    """alpha X^T (v * (X y)) + beta z, with X (m, n), dense or sparse, read once."""
    x = place(X, device)
    weights, start, Y = _beside(x, v), _beside(x, z), matrix(y, x.device, x.dtype)
    w = Matrix.empty(x.device, (x.shape[1], Y.shape[1]), x.dtype)
    x.device.call(lib.kiln_mmchain, w.pointer, alpha, x.pointer, _pointer(weights), Y.pointer, beta,
                  _pointer(start))
    return _result(w, y)


def multiply(A: _Operand, B: _Operand, *, transposed: bool = False, device: str | Device = "auto") -> Any:
    """A B, or with transposed A^T B; A dense or sparse, B dense."""
    a = place(A, device)
    b = matrix(B, a.device, a.dtype)
    Y = Matrix.empty(a.device, (a.shape[1] if transposed else a.shape[0], b.shape[1]), a.dtype)
    a.device.call(lib.kiln_multiply, Y.pointer, 1, lib.KILN_TRANSPOSED if transposed else lib.KILN_PLAIN,
                  a.pointer, b.pointer, 0, ffi.NULL)
    return _result(Y, B)


def spmm(S: _Operand, B: _Operand, *, transposed: bool = False, device: str | Device = "auto") -> Any:
    """A sparse matrix times a dense one: multiply(), under the name that the field gives it."""
    return multiply(S, B, transposed=transposed, device=device)


_KINDS = {"product": "KILN_SAMPLE_PRODUCT", "times": "KILN_SAMPLE_TIMES", "quotient": "KILN_SAMPLE_QUOTIENT",
          "residual": "KILN_SAMPLE_RESIDUAL"}


class Half:
    """A dense factor (m, k) of half precision on a device, 16 bits a number, for sddmm(). Made once, it
    serves any number of calls.

    kind: "float16" or "bfloat16"; numbers of other precision are rounded to the nearest. An array of that
    kind itself (NumPy's float16, ml_dtypes' bfloat16) is taken bit by bit.
    """

    def __init__(self, array: _Operand, kind: str = "float16", device: str | Device = "cpu") -> None:
        kinds = {"float16": lib.KILN_F16, "bfloat16": lib.KILN_BF16}
        if kind not in kinds:
            raise ArgumentError(f"kind must be one of {sorted(kinds)}, got {kind!r}")
        made = ffi.new("kiln_half **")
        if isinstance(array, np.ndarray) and array.dtype.name == kind:
            if array.ndim != 2:
                raise ArgumentError(f"expected an array of 2 dimensions, got {array.ndim}")
            bits, where = np.ascontiguousarray(array).view(np.uint16), open_device(device)
            where.call(lib.kiln_half_dense, made, where.pointer, kinds[kind], *bits.shape,
                       ffi.cast("uint16_t *", bits.ctypes.data))
        else:
            array = matrix(array, device)
            where = array.device
            where.call(lib.kiln_half_copy, made, kinds[kind], array.pointer)
        self.kind, self.shape, self.device = kind, tuple(array.shape), where
        self.pointer = where.turn.own(lib.kiln_half_free, made[0])

    def __copy__(self) -> Half:
        return self

    def __deepcopy__(self, known: Any) -> Half:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a kiln.Half cannot be pickled; pickle the array that it was made of")

    def __repr__(self) -> str:
        return f"<kiln.Half {self.shape[0]:,} x {self.shape[1]:,} {self.kind}, on {self.device.name}>"


def sddmm(S: _Operand, A: _Operand, B: _Operand, *, kind: str = "product", alpha: float = 1.0,
          device: str | Device = "auto") -> Any:
    """alpha f(s_ij, a_i . b_j) at the entries of a sparse S (m, n), as a sparse matrix; A (m, k), B (n, k).

    kind: "product" d, "times" s d, "quotient" s / d, "residual" s - d. A and B may both be kiln.Half of one
    kind; S is float32 then.
    """
    if kind not in _KINDS:
        raise ArgumentError(f"kind must be one of {sorted(_KINDS)}, got {kind!r}")
    halves = isinstance(A, Half) and isinstance(B, Half)
    s = place(S, A.device if halves else device)
    if not s.sparse:
        raise ArgumentError("S must be a sparse matrix, at whose entries A B^T is wanted")
    a, b = (A, B) if halves else (matrix(A, s.device, s.dtype), matrix(B, s.device, s.dtype))
    made = ffi.new("kiln_matrix **")
    s.device.call(lib.kiln_matrix_like, made, s.pointer, lib.KILN_TYPE_DEFAULT, ffi.NULL)
    P = Matrix.adopt(made[0], s.device, s)
    sample = struct("kiln_sample", kind=getattr(lib, _KINDS[kind]), S=s.pointer)
    if halves:
        s.device.call(lib.kiln_sddmm_half, P.pointer, ffi.NULL, alpha, sample, a.pointer, b.pointer, 0)
    else:
        sample.A, sample.B = a.pointer, b.pointer
        s.device.call(lib.kiln_sddmm, P.pointer, ffi.NULL, alpha, sample, 0)
    return P.result()


_REDUCTIONS = {name: "KILN_BATCH_" + name.upper() for name in ("sum", "squares", "l1", "l2", "max", "min",
                                                               "argmax", "argmin", "mean", "variance")}


def batch_of(x: Matrix, offsets: Any) -> tuple[Any, int]:
    """The vectors of a batch: rows, or where the offsets cut a flat array; and their number."""
    made, where = ffi.new("kiln_batch **"), x.device
    if offsets is None:
        count = x.shape[0]
        where.call(lib.kiln_batch_rows, made, x.pointer)
    else:
        starts = np.ascontiguousarray(offsets, np.int64)
        if starts.ndim != 1 or len(starts) == 0:
            raise ArgumentError("offsets must be a vector of count + 1 numbers")
        count = len(starts) - 1
        where.call(lib.kiln_batch_ragged, made, where.pointer, count,
                   ffi.cast("int64_t *", starts.ctypes.data))
    return where.turn.own(lib.kiln_batch_free, made[0]), count


def batch_reduce(X: _Operand, kind: str = "sum", *, offsets: Any = None,
                 device: str | Device = "auto") -> Any:
    """The sum, squares, l1, l2, max, min, argmax, argmin, mean or variance of each row of X, or of each piece
    X[offsets[v]:offsets[v + 1]] of a vector X. Sums run in double."""
    if kind not in _REDUCTIONS:
        raise ArgumentError(f"kind must be one of {sorted(_REDUCTIONS)}, got {kind!r}")
    x = place(X, device, vector=True)
    batch, count = batch_of(x, offsets)
    result = Matrix.empty(x.device, (count, 1), x.dtype)
    x.device.call(lib.kiln_batch_reduce, result.pointer, getattr(lib, _REDUCTIONS[kind]), x.pointer, batch)
    if kind.startswith("arg"):
        return result.numpy()[:, 0].astype(np.int64)
    return result.result(vector=True)


def batch_scale(X: _Operand, scale: Any, *, offsets: Any = None, device: str | Device = "auto") -> Any:
    """scale[v] times row v of X, or times each piece X[offsets[v]:offsets[v + 1]] of a vector X."""
    x = place(X, device, vector=True)
    batch, _ = batch_of(x, offsets)
    factors = matrix(scale, x.device, x.dtype)
    if x.sparse:
        made = ffi.new("kiln_matrix **")
        x.device.call(lib.kiln_matrix_like, made, x.pointer, lib.KILN_TYPE_DEFAULT, ffi.NULL)
        Y = Matrix.adopt(made[0], x.device, x)
    else:
        Y = Matrix.empty(x.device, x.shape, x.dtype)
    x.device.call(lib.kiln_batch_scale, Y.pointer, x.pointer, factors.pointer, batch)
    return Y.result() if x.sparse else _result(Y, X)


def _brief(scores: Any) -> str:
    if isinstance(scores, dict):
        first = ", ".join(f"{node!r}: {score}" for node, score in itertools.islice(scores.items(), 3))
        return f"{{{first}{', ...' if len(scores) > 3 else ''}}} ({len(scores):,} nodes)"
    return (np.array2string(scores, threshold=6, edgeitems=2) if isinstance(scores, np.ndarray)
            else repr(scores))


class Ranking(NamedTuple):
    """The scores of a graph's vertices, and the run's report. Of a networkx graph scores is a dict by
    node."""

    scores: Any
    report: Report

    def __repr__(self) -> str:
        return f"Ranking(scores={_brief(self.scores)}, report={self.report})"


class HubsAndAuthorities(NamedTuple):
    """What hits() returns. Of a networkx graph hubs and authorities are dicts by node."""

    hubs: Any
    authorities: Any
    report: Report

    def __repr__(self) -> str:
        return f"HubsAndAuthorities(hubs={_brief(self.hubs)}, authorities={_brief(self.authorities)}, report={self.report})"


class _Graph:
    """The links of an operand, and how its vertices are called: by the nodes of a networkx graph, else by
    their places."""

    def __init__(self, A: _Operand) -> None:
        self.links, self.nodes = A, None
        if isinstance(A, (list, tuple)):
            raise ArgumentError("a list may hold links or rows: networkx.DiGraph makes a graph of links, "
                                "numpy.array a matrix of rows")
        if is_graph(A):
            import networkx

            if len(A) == 0:
                raise ArgumentError("the graph has no nodes")
            self.nodes = list(A)
            self.links = networkx.to_scipy_sparse_array(A, nodelist=self.nodes, dtype=np.float64,
                                                        format="csr")

    def vector(self, values: Any, name: str) -> Any:
        """What is given by vertex, in the vertices' order: a dict of some nodes, others have 0, or an array
        as it is."""
        if values is None or not isinstance(values, dict):
            return values if values is None or hasattr(values, "shape") else numbers(values)
        if self.nodes is None:
            raise ArgumentError(f"{name} is a dict by node, but A is no networkx graph")
        unknown = values.keys() - set(self.nodes)
        if unknown:
            raise ArgumentError(f"{name}: the graph has no node {next(iter(unknown))!r}")
        return np.array([values.get(node, 0) for node in self.nodes], np.float64)

    def named(self, scores: Matrix, vector: bool) -> Any:
        if self.nodes is None:
            return scores.result(vector=vector)
        values = scores.numpy()
        return dict(zip(self.nodes, values[:, 0].tolist() if vector else values))


def _of_shape(given: Matrix | None, shape: tuple[int, int], name: str) -> None:
    if given is not None and given.shape != shape:
        raise ArgumentError(f"{name} is {given.shape[0]} x {given.shape[1]}, but must be {shape[0]} x "
                            f"{shape[1]}")


def _rank(name: str, operands: list[Matrix], options: Any, verbose: int, callback: Callback | None) -> Report:
    report = solve(operands[0].device, getattr(lib, f"kiln_{name}"),
                   [operand.pointer for operand in operands], options, verbose=verbose, callback=callback)
    warn_of(report, name)
    return report


def pagerank(A: _Operand, *, damping: float = 0.85, personalize: Any = None, unweighted: bool = False,
             dangling: Any = "personalized", tol: float | None = None, max_iter: int | None = None,
             iterations: int | None = None, start: Any = None, device: str | Device = "auto",
             verbose: int = 0, callback: Callback | None = None) -> Ranking:
    """PageRank of the graph with adjacency matrix A (n, n), sparse: row i links to column j.

    A may be a networkx graph, whose nodes then name the scores, and may in personalize, dangling and start;
    links of an undirected one lead both ways. Links are followed in proportion to their weights, those of a
    link that is there several times added up; unweighted: every link counts 1, also where it is there several
    times.

    personalize: (n,) or (n, k), one ranking for each column; dangling: "personalized", "uniform", or an array
    (n,) of where vertices without links lead. scores add up to 1; report.figures has "error_bound".
    """
    graph = _Graph(A)
    a = place(graph.links, device, 60)
    personalize, start = graph.vector(personalize, "personalize"), graph.vector(start, "start")
    teleport = _beside(a, personalize)
    options = algorithm_options("pagerank", {
        "damping": damping, "unweighted": unweighted, "tolerance": tol, "max_iterations": max_iter,
        "iterations": iterations, "personalize": teleport, "warm_start": start is not None})
    sink = None
    if not isinstance(dangling, str):
        sink = _beside(a, graph.vector(dangling, "dangling"))
        _of_shape(sink, (a.shape[0], 1), "dangling")
        options.dangling_to = _pointer(sink)
    elif dangling in ("personalized", "uniform"):
        options.dangling = getattr(lib, "KILN_DANGLING_" + dangling.upper())
    else:
        raise ArgumentError(f"dangling must be 'personalized', 'uniform' or an array, got {dangling!r}")
    shape = (a.shape[0], teleport.shape[1] if teleport else 1)
    ranks = Matrix.empty(a.device, shape,
                         a.dtype) if start is None else matrix(np.array(start, a.dtype, order="C"), a.device)
    _of_shape(ranks, shape, "start")
    report = _rank("pagerank", [ranks, a], options, verbose, callback)
    return Ranking(graph.named(ranks, teleport is None or len(personalize.shape) == 1), report)


def hits(A: _Operand, *, norm: int = 1, unweighted: bool = False, solver: str = "auto",
         tol: float | None = None, max_iter: int | None = None, device: str | Device = "auto",
         verbose: int = 0, callback: Callback | None = None) -> HubsAndAuthorities:
    """Hubs and authorities of the graph with adjacency matrix A (m, n), or of a networkx graph; norm 1: each
    add up to 1, 2: their squares do. unweighted: every link counts 1; without it weights count, those of a
    link that is there several times added up. solver: "power", "lobpcg", or "auto", the power iteration, and
    LOBPCG from where that is slow. report.objective is the eigenvalue, and report.figures has
    "eigenvalue_error", how far it is from one of A^T A at most."""
    graph = _Graph(A)
    a = place(graph.links, device, 40)
    options = algorithm_options("hits", {"norm": norm, "unweighted": unweighted,
                                         "solver": choice("hits", "solver", solver), "tolerance": tol,
                                         "max_iterations": max_iter})
    hubs, authorities = Matrix.empty(a.device, (a.shape[0], 1),
                                     a.dtype), Matrix.empty(a.device, (a.shape[1], 1), a.dtype)
    report = _rank("hits", [hubs, authorities, a], options, verbose, callback)
    return HubsAndAuthorities(graph.named(hubs, True), graph.named(authorities, True), report)
