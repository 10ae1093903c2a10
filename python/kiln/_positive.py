"""Least squares whose coefficients are from 0 on: minimises

    1/2 sum_i s_i (x_i w + b - y_i)^2 + sum_j l1_j w_j + 1/2 sum_j l2_j w_j^2   over w >= 0 and b.

An active set on the Gram matrix finds which coefficients are above 0, and what they are; the gradient of the
true residuals then says how good that is, and the active set corrects it by that, until rounding ends it."""
from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ._arrays import Matrix, matrix
from ._base import as_columns, host_vector, naming
from ._functions import multiply
from ._library import ArgumentError, DataError, ffi, lib
from ._linear import _fields
from ._solve import Report, algorithm_options, together
from ._told import told

_MOST = 4096  # columns: a Gram matrix of 128 MiB
_EXACT = 1024  # columns up to which an eigenvalue bounds how far a fit without penalties is from the best
_SMALL = 1e-7  # the root of a share of a column's square that counts as its own, beside the others'
_ROUNDS = 12  # corrections by the true residuals
_LOST = "X or y contains NaN or infinity, or products of theirs overflow."


class _Seen(NamedTuple):
    """One w has this: the intercept, X w, minus the gradient by the scaled coefficients, the objective's
    parts."""

    b: float
    means: Any
    slope: Any
    rss: float
    objective: float


class Positive:
    """The problem of one X with its weights. Coefficients are scaled so that the quadratic form has ones on
    its diagonal; a column of nothing, constant under an intercept, has coefficient 0."""

    def __init__(self, X: Matrix, sample_weight: Any, *, intercept: bool,
                 standardize: bool = False) -> None:
        columns = X.shape[1]
        if columns > _MOST:
            raise ArgumentError(f"positive=True is for up to {_MOST} columns, X has {columns}: take "
                                "scikit-learn's class, or choose among the columns first")
        self.X, self.intercept, self.passes = X, intercept, 1  # over X, of which no report tells yet
        self.standardized = standardize
        self.weights = (np.ones(X.shape[0]) if sample_weight is None
                        else np.asarray(sample_weight, np.float64))
        self.total, self.epsilon = float(self.weights.sum()), float(np.finfo(X.dtype).eps)
        if not self.total > 0:
            raise DataError("the weights are all zero")
        along = matrix(as_columns(self.weights, X.dtype), X.device)
        self.mean = self._scatter(self.weights) / self.total if intercept else np.zeros(columns)
        about = matrix(as_columns(self.mean, X.dtype), X.device)
        made = Matrix.empty(X.device, (columns, columns), X.dtype)
        X.device.call(lib.kiln_gram, made.pointer, ffi.NULL, X.pointer, along.pointer,
                      about.pointer if intercept else ffi.NULL)
        self.gram = made.numpy().astype(np.float64)
        if not np.isfinite(self.gram).all():
            raise DataError(_LOST)
        squares, means = self.gram.diagonal(), self.total * self.mean**2
        self.kept = squares > (16 * self.epsilon) ** 2 * means
        self.spread = np.sqrt(squares / self.total) if standardize else np.ones(columns)
        # how much larger the columns are than what is left of them about their means
        self.size = float(np.sqrt(1 + (means[self.kept] / squares[self.kept]).max(initial=0)))

    def _scatter(self, rows: Any) -> Any:
        """X^T of these numbers, in float64."""
        self.passes += 1
        found = multiply(self.X, as_columns(rows, self.X.dtype), transposed=True)
        return np.asarray(found)[:, 0].astype(np.float64)

    def _look(self, y: Any, w: Any, l1: Any, l2: Any) -> _Seen:
        means = np.zeros(len(y))
        if w.any():
            self.passes += 1
            found = multiply(self.X, as_columns(w, self.X.dtype))
            means = np.asarray(found)[:, 0].astype(np.float64)
        residuals = y - means
        b = float(self.weights @ residuals) / self.total if self.intercept else 0.0
        residuals -= b
        weighted = self.weights * residuals
        slope = self._scatter(weighted) - self.mean * weighted.sum() - l1 - l2 * w
        rss = float(weighted @ residuals)
        return _Seen(b, means, slope, rss, rss / 2 + float(np.sum(l1 * w + l2 * w * w / 2)))

    def solve(self, y: Any, l1: float, l2: float, tolerance: float | None,
              start: Any = None) -> tuple[Any, float, Report]:
        """w, b and the report, for one target. tolerance: of the scaled gradient, over that at w = 0; None:
        as LinearRegression's."""
        begin, y = time.perf_counter(), np.asarray(y, np.float64)
        if tolerance is None:
            tolerance = 1e-12 if self.epsilon < 1e-10 else 1e-5
        first, second = l1 * self.spread, l2 * self.spread**2
        diagonal = self.gram.diagonal() + second
        kept = np.flatnonzero(self.kept & (diagonal > 0))
        scale = np.sqrt(diagonal[kept])
        A = (self.gram[np.ix_(kept, kept)] + np.diag(second[kept])) / np.outer(scale, scale)

        def look(v: Any) -> tuple[Any, _Seen, Any]:
            w = np.zeros(len(self.mean))
            w[kept] = v / scale
            w = w.astype(self.X.dtype).astype(np.float64)
            seen = self._look(y, w, first, second)
            return w, seen, seen.slope[kept] / scale

        w, seen, slope = look(np.zeros(len(kept)))
        if not np.isfinite(seen.rss) or not np.isfinite(slope).all():
            raise DataError(_LOST)
        whole, nothing = _left(slope, w[kept]), seen
        if start is not None and np.any(start):
            w, seen, slope = look(np.maximum(np.asarray(start, np.float64)[kept], 0) * scale)
        steps, left = 0, _left(slope, w[kept])
        for _ in range(_ROUNDS):
            if left <= tolerance * whole:
                break
            v, taken = _active_set(A, slope, w[kept] * scale)
            tried = look(v)
            steps, now = steps + taken, _left(tried[2], tried[0][kept])
            if not now < left:
                break
            (w, seen, slope), left = tried, now
        rows = float(np.sqrt(self.weights @ (y * y + seen.means**2)))
        noise = 16 * self.epsilon * self.size * rows  # of an entry of the slope
        met, least = left <= tolerance * whole, noise * np.sqrt(max(len(kept), 1))
        passes, self.passes = self.passes, 0
        gap, certificate = self._gap(y, w, seen, first, second, kept, scale, A, noise)
        figures = {"rss": seen.rss, "tss": nothing.rss,
                   "r2": 1 - seen.rss / nothing.rss if nothing.rss > 0 else float("nan")}
        return w, seen.b, Report(bool(met or left <= least), "tolerance" if met else "rounding", steps,
                                 left / whole if whole > 0 else 0.0, tolerance, seen.objective, passes,
                                 time.perf_counter() - begin, figures, {}, "active-set", gap, certificate)

    def _gap(self, y: Any, w: Any, seen: _Seen, l1: Any, l2: Any, kept: Any, scale: Any, A: Any,
             noise: float) -> tuple[float, str]:
        """Says how far the objective is above its least value at most, and what that follows from: the
        curvature that all coefficients have at least, or a point of the dual, which is the residuals made
        smaller until no column without a coefficient gains by one."""
        found = [(seen.objective, "duality gap")]  # which nothing is below
        v, slope = w[kept] * scale, seen.slope[kept] / scale
        least = l2[kept] / scale**2
        if not (least > 0).all() and len(kept) <= _EXACT:
            smallest = float(np.linalg.eigvalsh(A)[0]) if len(kept) else 1.0
            least = np.full(len(kept), smallest - 4 * len(kept) * self.epsilon * self.size**2)
        if (least > 0).all():
            rises = np.where((slope >= 0) | (v > 0), np.abs(slope), 0) + noise
            step = np.clip(np.where(slope < 0, -rises, rises) / least, -v, None)
            gains = np.where(slope < 0, -rises, rises) * step - least * step * step / 2
            gains = np.maximum(gains, noise * noise / (2 * least))
            found.append((float(gains.sum()),
                          "duality gap" if (l2[kept] > 0).all() else "normal equations"))
        if (l1[kept] > 0).all() and not l2.any():
            shares = (seen.slope + l1)[kept] / l1[kept]
            share = 1 / max(1.0, float(shares.max(initial=0)))
            residuals = y - seen.means - seen.b
            weighted = self.weights * residuals
            dual = share * float(weighted @ y) - share * share * seen.rss / 2
            found.append((max(0.0, seen.objective - dual) + self.epsilon * seen.objective, "duality gap"))
        return min(found)


def _left(slope: Any, w: Any) -> float:
    """The norm of what may still be gained to first order."""
    return float(np.linalg.norm(np.where(w > 0, slope, np.maximum(slope, 0))))


def _factor(A: Any) -> Any:
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    return L if (L.diagonal() > _SMALL).all() else None



def _begin(A: Any, slope: Any) -> Any:
    """Coefficients of those columns alone for which all come out above 0; None where some depend on
    others."""
    places = np.arange(len(A))
    while len(places):
        L = _factor(A[np.ix_(places, places)])
        if L is None:
            return None
        found = _solved(L, slope[places])
        if (found > 0).all():
            v = np.zeros(len(A))
            v[places] = found
            return v
        places = places[found > 0]
    return np.zeros(len(A))


def _solved(L: Any, right: Any) -> Any:
    return solve_triangular(L, solve_triangular(L, right, lower=True), lower=True, trans=1)


def _active_set(A: Any, slope: Any, v: Any) -> tuple[Any, int]:
    """The v >= 0 that minimises -slope.d + d.A d / 2, d its way from the given one, and the steps that it
    took: each frees the coefficient that gains most, and walks to the best of those that are free, or to
    where one of them becomes 0."""
    at_zero, v, steps, barred = slope + A @ v, v.copy(), 0, np.zeros(len(v), bool)
    free = np.flatnonzero(v > 0)
    L = _factor(A[np.ix_(free, free)])
    if L is None or not len(free):
        begun = _begin(A, at_zero)
        v = np.zeros(len(v)) if begun is None else begun
        free = np.flatnonzero(v > 0)
        L = _factor(A[np.ix_(free, free)])
    noise = 16 * np.finfo(np.float64).eps * (np.abs(at_zero).max(initial=0) + np.abs(v).sum())
    for steps in range(1, 10 * len(v) + 10):
        rest = at_zero - A @ v
        way, reach = (_solved(L, rest[free]) if len(free) else np.zeros(0)), 1.0
        hits = _blocked(v[free], way, reach)
        if hits is None:
            v[free] += way
            rest = at_zero - A @ v
            gains = np.where((v > 0) | barred, -np.inf, rest)
            gains[free] = -np.inf
            j = int(gains.argmax()) if len(gains) else 0
            if not len(gains) or not gains[j] > noise:
                break
            part = solve_triangular(L, A[free, j], lower=True) if len(free) else np.zeros(0)
            own = A[j, j] - part @ part
            if own > _SMALL**2:
                L, free = _grown(L, part, own), np.append(free, j)
                continue
            # it says what the others say: a way along which only the slope counts
            way = -solve_triangular(L, part, lower=True, trans=1) if len(free) else np.zeros(0)
            hits = _blocked(v[free], way, np.inf)
            if hits is None:
                barred[j] = True
                continue
            v[j] = hits[0]
            free, way = np.append(free, j), np.append(way, 0.0)
        reach, drop = hits
        moved = reach * np.abs(way).max(initial=0) > 0
        v[free] = np.maximum(v[free] + reach * way, 0)
        v[free[drop]] = 0
        if not moved:
            barred[free[drop]] = True
        free = np.delete(free, drop)
        L = _factor(A[np.ix_(free, free)])
        if L is None:  # rounding: what depends on the others goes
            v[free] = 0
            free = free[:0]
            L = np.zeros((0, 0))
    return v, steps


def _blocked(v: Any, way: Any, reach: float) -> tuple[float, Any] | None:
    """Says how far the way goes until a coefficient is 0, and which are there; None: farther than reach."""
    falls = np.flatnonzero(way < 0)
    if not len(falls):
        return None
    shares = v[falls] / -way[falls]
    least = float(shares.min())
    return None if least >= reach else (least, falls[shares <= least])


def _grown(L: Any, part: Any, own: float) -> Any:
    size = len(part)
    grown = np.zeros((size + 1, size + 1))
    grown[:size, :size], grown[size, :size], grown[size, size] = L, part, np.sqrt(own)
    return grown


def fit_positive(model: Any, X: Any, y: Any, sample_weight: Any, l1: float, l2: Any,
                 start: Any = None) -> tuple[Any, Any, list[Report]]:
    """W, b and the reports for validated operands, l2 one or one for each target."""
    targets = as_columns(host_vector(y), np.float64)
    operand = matrix(X, model._place(X, targets.shape[1]))
    strengths = np.broadcast_to(l2, targets.shape[1])
    with naming(model, X):
        problem = Positive(operand, sample_weight, intercept=model.fit_intercept,
                           standardize=getattr(model, "standardize", False))
        found = [problem.solve(targets[:, j], l1, float(strengths[j]), model.tol,
                               None if start is None else start[j])
                 for j in range(targets.shape[1])]
    model.device_, model._kept, model._told = operand.device.name, None, {}
    reports = [report for _, _, report in found]
    if (strengths == strengths[:1]).all():  # a model's file tells of one penalty
        made = algorithm_options(model._algorithm, {
            "l2": float(strengths[0]), "no_intercept": not model.fit_intercept,
            "standardize": problem.standardized, "max_iterations": _ROUNDS * (10 * operand.shape[1] + 10),
            **({**_fields(model._distribution()), "l1": l1} if model._algorithm == "glm" else {})})
        model._told = told(model._algorithm, made, {"weights": sample_weight is not None}, as_one(reports),
                           operand.device.name, operand.dtype == np.float32, positive=True)
    W, b = np.column_stack([w for w, _, _ in found]), np.array([[b for _, b, _ in found]])
    return W.astype(operand.dtype), b.astype(operand.dtype), reports


def scores_of_folds(model: Any, X: Matrix, y: Any, sample_weight: Any, penalties: Any, splits: Any,
                    level: float | None) -> tuple[Any, int]:
    """Minus the mean squared error of the rows that each split holds out, by each of the penalties (l2, l1
    and the block that it belongs to), whose order is from the strongest on; and how many models did not
    converge. The rows held out have no weight, so that no part of X is copied. level: as Search's."""
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, np.float64)
    y, scores, unfinished = as_columns(host_vector(y), np.float64)[:, 0], [], 0
    for train, held in splits:
        if not weights[held].sum() > 0:
            raise DataError("the rows that a fold holds out have no weight")
        own, start, block, found = np.zeros_like(weights), None, -1, []
        own[train] = weights[train]
        problem = Positive(X, own, intercept=model.fit_intercept)
        share = 1 if level is None else own.sum() / level
        for l2, l1, of in penalties:
            start, block = (start if of == block else None), of
            start, b, report = problem.solve(y, l1 * share, l2 * share, model.tol, start)
            unfinished += not report.converged
            means = np.asarray(multiply(X, as_columns(start, X.dtype)))[:, 0].astype(np.float64) + b
            found.append(-np.average((y - means)[held] ** 2, weights=weights[held]))
        scores.append(found)
    return np.array(scores), unfinished


def as_one(reports: list[Report]) -> Report:
    return reports[0] if len(reports) == 1 else together(reports)
