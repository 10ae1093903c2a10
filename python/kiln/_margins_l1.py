"""LinearSVC(penalty="l1"): minimises  ||w||_1 + sum_i u_i max(0, 1 - y_i (x_i . w + b))^2.

The rows within the margin make a quadratic form of X's columns about their means, which is kiln_gram with
weights; an active set finds the least value of that and the penalty, and a search along the way there, with
the best intercept of each point, has the next rows. How far the primal is above the dual says when it is
done."""
from __future__ import annotations

import time
from typing import Any

import numpy as np

from ._arrays import Matrix, matrix
from ._base import as_columns
from ._functions import multiply
from ._library import ArgumentError, DataError, ffi, lib
from ._margins import TOLERANCE
from ._positive import _active_set
from ._solve import Report

_MOST = 2048  # columns: a quadratic form of as many positive and negative parts
_STEPS = 100


class _Primal:
    """The objective of one X, classes y of -1 and 1, and weights u. X is of float64."""

    def __init__(self, X: Matrix, y: Any, u: Any, intercept: bool) -> None:
        if X.shape[1] > _MOST:
            raise ArgumentError(f"penalty='l1' of LinearSVC is for up to {_MOST} columns, X has "
                                f"{X.shape[1]}: take LogisticRegression(l1_ratio=1)")
        self.X, self.y, self.u, self.intercept = X, y, u, intercept
        self.passes = 0  # over X so far

    def along(self, w: Any) -> Any:
        if not w.any():
            return np.zeros(len(self.y))
        self.passes += 1
        return np.asarray(multiply(self.X, as_columns(w, np.float64)))[:, 0]

    def across(self, rows: Any) -> Any:
        self.passes += 1
        return np.asarray(multiply(self.X, as_columns(rows, np.float64), transposed=True))[:, 0]

    def best_intercept(self, means: Any, b: float) -> float:
        """By Newton's method within the rows' kinks, which bound where the slope changes its sign."""
        if not self.intercept:
            return 0.0
        size = 1.0 + float(np.abs(means).max(initial=0))
        low, high = -size, size  # beyond them one class is outside the margin, and all of the other within
        for _ in range(200):
            left = np.maximum(0, 1 - self.y * (means + b))
            slope = -2 * float(np.sum(self.u * self.y * left))
            bend = 2 * float(np.sum(self.u[left > 0]))
            low, high = (b, high) if slope < 0 else (low, b)
            if slope == 0 or high - low <= 4 * np.finfo(np.float64).eps * size:
                break
            ahead = b - slope / bend if bend > 0 else np.inf
            ahead = ahead if low < ahead < high else (low + high) / 2
            if ahead == b:
                break
            b = ahead
        return b

    def left(self, means: Any, b: float) -> Any:
        return np.maximum(0, 1 - self.y * (means + b))

    def value(self, w: Any, left: Any) -> float:
        return float(np.abs(w).sum() + self.u @ left**2)

    def form(self, v: Any) -> Any:
        """X^T diag(v) X, of the columns about the means of these rows under an intercept."""
        X, size = self.X, self.X.shape[1]
        mean = self.across(v) / v.sum() if self.intercept and v.any() else np.zeros(size)
        made = Matrix.empty(X.device, (size, size), np.float64)
        weights, about = (matrix(as_columns(part, np.float64), X.device) for part in (v, mean))
        self.passes += 1
        X.device.call(lib.kiln_gram, made.pointer, ffi.NULL, X.pointer, weights.pointer, about.pointer)
        form = np.array(made.numpy())
        flat = form.diagonal() <= 1e-14 * v.sum() * mean**2  # all of it is rounding
        form[flat], form[:, flat] = 0, 0
        return form

    def gap(self, slope: Any, left: Any, value: float, b: float) -> float:
        """slope: sum_i alpha_i y_i x_i of the dual's alpha = 2 u left, which is scaled into what it may
        be."""
        alpha = 2 * self.u * left
        share = 1 / max(1.0, float(np.abs(slope).max(initial=0)))
        squares = float(self.u @ left**2)  # sum alpha^2 / (4 u)
        dual = share * float(alpha.sum()) - share * share * squares
        # the intercept's condition holds but for rounding
        rest = (1 + abs(b)) * abs(float(np.sum(alpha * self.y))) if self.intercept else 0.0
        return max(0.0, value - dual) + 8 * np.finfo(np.float64).eps * (value + float(alpha.sum())) + rest


def _towards(form: Any, slope: Any, w: Any) -> Any:
    """The w that minimises the quadratic form about this one, with this slope, and ||w||_1."""
    diagonal = form.diagonal()
    kept = np.flatnonzero(diagonal > 0)
    scale = np.sqrt(diagonal[kept])
    part = form[np.ix_(kept, kept)] / np.outer(scale, scale)
    A = np.block([[part, -part], [-part, part]])
    gains = np.concatenate([(slope[kept] - 1) / scale, (-slope[kept] - 1) / scale])
    v = np.concatenate([np.maximum(w[kept], 0), np.maximum(-w[kept], 0)]) * np.tile(scale, 2)
    found, _ = _active_set(A, gains, v)
    made = np.zeros(len(w))
    made[kept] = (found[:len(kept)] - found[len(kept):]) / scale
    return made


def solve_l1(X: Matrix, y: Any, u: Any, *, intercept: bool,
             tolerance: float | None) -> tuple[Any, float, Report]:
    """w, b and the report."""
    begin, tolerance = time.perf_counter(), TOLERANCE if tolerance is None else tolerance
    problem, w = _Primal(X, y, u, intercept), np.zeros(X.shape[1])
    if not np.isfinite(problem.across(np.ones(len(y)))).all():
        raise DataError("X contains NaN or infinity, or products of its entries overflow.")
    means = problem.along(w)
    b = problem.best_intercept(means, 0.0)
    left = problem.left(means, b)
    value, gap, steps, best = problem.value(w, left), np.inf, 0, np.inf
    for steps in range(_STEPS + 1):
        slope = problem.across(2 * u * y * left)
        gap = problem.gap(slope, left, value, b)
        if gap <= 1e-4 * tolerance * value or steps == _STEPS or not gap < best and gap <= tolerance * value:
            break
        best = min(best, gap)
        way = _towards(problem.form(2 * u * (left > 0)), slope, w) - w
        moves, size = problem.along(way), 1.0
        for _ in range(40):  # the objective falls along the way, by how much is what halving finds
            at = means + size * moves
            there = problem.best_intercept(at, b)
            rest = problem.left(at, there)
            now = problem.value(w + size * way, rest)
            if now < value:
                break
            size /= 2
        else:
            break
        ends = w + way if size == 1 else w + size * way
        w, b, means, left, value = ends, there, problem.along(ends), rest, now
        left = problem.left(means, b)
        value = problem.value(w, left)
    share = gap / value if value > 0 else 0.0
    met = bool(share <= tolerance)
    return w, b, Report(met, "tolerance" if met else "stalled", steps, share, tolerance, value,
                        problem.passes, time.perf_counter() - begin, {}, {}, "active-set", gap, "duality gap")
