"""Linear support vector machines whose losses have kinks, by an interior point method of the dual:

    minimise 1/2 ||w||^2 + sum_k u_k max(0, -(sigma_k (x_k . w + b) + c_k))

A row has one such term (hinge: sigma the class, -1 or 1, and c = -1) or two (epsilon-insensitive: sigma = 1
with c = epsilon - y, and sigma = -1 with c = epsilon + y). A step solves a system of X's columns,
I + X^T diag(v) X, which is kiln_gram with weights; how far the primal is above the dual says when it is done.

Source: Ferris and Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 2002.
"""
from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._arrays import Matrix, matrix
from ._base import as_columns, naming
from ._functions import multiply
from ._leave_one_out import about_means
from ._library import ArgumentError, DataError, ffi, lib
from ._solve import Report, together

_MOST = 4096  # columns: a Gram matrix of 128 MiB
_STEPS = 100
_NEAR = 0.99  # of the way to where a variable would be 0
TOLERANCE = 1e-8  # of the gap, over the objective


class _Terms:
    """The terms of all rows: sigma, c and u have a row for each of a sample's terms. X is of float64."""

    def __init__(self, X: Matrix, sigma: Any, c: Any, u: Any, intercept: bool) -> None:
        if X.shape[1] > _MOST:
            raise ArgumentError(f"losses that are not squared are for up to {_MOST} columns, X has "
                                f"{X.shape[1]}: take the squared loss")
        self.X, self.sigma, self.c, self.u, self.intercept = X, sigma, c, u, intercept
        self.live = u > 0
        self.passes = 0  # over X so far

    def along(self, w: Any) -> Any:
        """X w."""
        self.passes += 1
        return np.asarray(multiply(self.X, as_columns(w, np.float64)))[:, 0]

    def across(self, a: Any) -> Any:
        """sum_k sigma_k a_k x_k."""
        self.passes += 1
        found = multiply(self.X, as_columns((self.sigma * a).sum(axis=0), np.float64), transposed=True)
        return np.asarray(found)[:, 0]

    def losses(self, means: Any, b: float) -> float:
        return float(np.sum(self.u * np.maximum(0, -(self.sigma * (means + b) + self.c))))

    def primal(self, w: Any, near: float) -> tuple[float, Any, float]:
        """The objective, w and its best b."""
        means = self.along(w)
        b = self.best_intercept(means, near)
        return float(w @ w) / 2 + self.losses(means, b), w, b

    def best_intercept(self, means: Any, near: float) -> float:
        """Returns the b next to this one of those that make the losses least."""
        if not self.intercept:
            return 0.0
        places = (-self.sigma * self.c - means)[self.live]
        order = np.argsort(places)
        slopes = np.cumsum(self.u[self.live][order]) - self.u[self.live & (self.sigma > 0)].sum()
        size = 1e-12 * self.u.sum()
        first = int(np.searchsorted(slopes, -size))
        last = int(np.searchsorted(slopes, size, side="right"))
        ends = places[order[[min(first, len(order) - 1), min(last, len(order) - 1)]]]
        return float(np.clip(near, *ends))

    def balanced(self, a: Any) -> Any:
        """a with sum sigma a = 0, where there is an intercept, by what one side has too much."""
        if not self.intercept:
            return a
        total = [float(a[self.sigma == side].sum()) for side in (1, -1)]
        least = min(total)
        factors = [least / one if one > 0 else 0.0 for one in total]
        return np.where(self.sigma > 0, a * factors[0], a * factors[1])


class _System:
    """D a + Z w = right and w - Z^T a = lack, Z = sigma x, of one step."""

    def __init__(self, terms: _Terms, D: Any) -> None:
        self.terms, self.inverse = terms, np.where(terms.live, 1 / D, 0.0)
        X = terms.X
        weights = matrix(as_columns(self.inverse.sum(axis=0), np.float64), X.device)
        made = Matrix.empty(X.device, (X.shape[1], X.shape[1]), np.float64)
        terms.passes += 1
        X.device.call(lib.kiln_gram, made.pointer, ffi.NULL, X.pointer, weights.pointer, ffi.NULL)
        self.factor = cho_factor(made.numpy() + np.eye(X.shape[1]))

    def solve(self, right: Any, lack: Any) -> tuple[Any, Any]:
        """a and w, with one correction by what is left, as the diagonal's sizes take the factor's digits."""
        a, w = self._by_factor(right, lack)
        more, further = self._by_factor(None, lack - w + self.terms.across(a))
        return a + more, w + further

    def _by_factor(self, right: Any, lack: Any) -> tuple[Any, Any]:
        terms, right = self.terms, 0.0 if right is None else right
        towards = lack + terms.across(self.inverse * right) if np.ndim(right) else lack
        w = cho_solve(self.factor, towards, check_finite=False)
        return self.inverse * (right - terms.sigma * terms.along(w)), w


def _step_size(values: Any, way: Any) -> float:
    falls = way < 0
    return float(min(1.0, _NEAR * np.min(values[falls] / -way[falls], initial=np.inf)))


def _interior(terms: _Terms, tolerance: float) -> tuple[Any, Any, float, int]:
    """a, w and b, and the steps that it took. w is a variable of its own, from 0 on: as the sum of a's rows
    it would lose its digits where columns have large entries."""
    u, sigma, c, live = terms.u, terms.sigma, terms.c, terms.live
    width, count = np.where(live, u, 1.0), max(int(live.sum()), 1)
    a, w, means = width / 2, np.zeros(terms.X.shape[1]), np.zeros(terms.X.shape[0])
    b = terms.best_intercept(means, 0.0)
    begin = np.where(live, sigma * b + c, 0.0)
    typical = float(np.abs(begin).sum()) / count or 1.0
    low, high = (np.where(live, np.maximum(0, side) + typical, 1.0) for side in (begin, -begin))
    best, steps = (np.inf, np.where(live, a, 0.0), w, b), 0
    stuck = 0
    for steps in range(1, _STEPS + 1):
        own = np.where(live, a, 0.0)
        sums = terms.across(own)
        lack = sums - w
        squares, below = float(w @ w), np.where(live, sigma * (means + b) + c, 0.0)
        loss, rest = terms.losses(means, b), float(np.sum(sigma * own)) if terms.intercept else 0.0
        gap = (squares + float(sums @ sums)) / 2 + loss + float(np.sum(c * own)) + abs(b * rest)
        if not np.isfinite(gap):
            break
        stuck = 0 if gap < 0.9 * best[0] else stuck + 1
        if gap < best[0]:
            best = gap, own, w, b
        if gap <= 1e-4 * tolerance * (squares / 2 + loss) or stuck == (
                4 if best[0] <= tolerance * (squares / 2 + loss) else 12):
            break
        other = width - a
        mean = float(np.sum(np.where(live, a * low + other * high, 0))) / (2 * count)
        try:
            system = _System(terms, low / a + high / other)
        except np.linalg.LinAlgError:  # rounding: the factor has no more digits to give
            break
        along = system.solve(sigma, np.zeros_like(w)) if terms.intercept else None

        def way(aim_low: Any, aim_high: Any) -> tuple[Any, float, Any, Any, Any]:
            """The ways of a, b, both multipliers and w, for products that are these."""
            right = -below + low - high + (aim_low - a * low) / a - (aim_high - other * high) / other
            (found, to_w), shift = system.solve(np.where(live, right, 0), lack), 0.0
            if along is not None:
                shift = (float(np.sum(sigma * found)) + rest) / float(np.sum(sigma * along[0]))
                found, to_w = found - shift * along[0], to_w - shift * along[1]
            return (found, shift, (aim_low - a * low - low * found) / a,
                    (aim_high - other * high + high * found) / other, to_w)

        def reach(move: Any) -> tuple[float, float]:
            to_a, to_low, to_high = (np.where(live, move[part], 0) for part in (0, 2, 3))
            return (min(_step_size(a, to_a), _step_size(other, -to_a)),
                    min(_step_size(low, to_low), _step_size(high, to_high)))

        affine = way(0.0, 0.0)
        first, second = reach(affine)
        ahead = np.where(live, (a + first * affine[0]) * (low + second * affine[2])
                         + (other - first * affine[0]) * (high + second * affine[3]), 0)
        aim = mean * min(1.0, float(np.sum(ahead)) / (2 * count * mean)) ** 3
        move = way(aim - affine[0] * affine[2], aim + affine[0] * affine[3])
        first, second = reach(move)
        a, b = a + first * np.where(live, move[0], 0), b + second * move[1]
        w = w + first * move[4]
        means = terms.along(w)
        low, high = (np.where(live, one + second * to, 1.0) for one, to in ((low, move[2]), (high, move[3])))
    return best[1], best[2], best[3], steps


def solve_margins(X: Matrix, sigma: Any, c: Any, u: Any, *, intercept: bool,
                  tolerance: float | None) -> tuple[Any, float, Report]:
    """w, b and the report."""
    begin, tolerance = time.perf_counter(), TOLERANCE if tolerance is None else tolerance
    terms = _Terms(X, sigma, c, u, intercept)
    if not (np.isfinite(c).all() and np.isfinite(terms.across(u)).all()):
        raise DataError("X or y contains NaN or infinity, or products of theirs overflow.")
    with np.errstate(all="ignore"):  # the last digits end in a step that is not finite, which it looks for
        a, found, near, steps = _interior(terms, tolerance)
    a = terms.balanced(np.clip(a, 0, u))
    sums = terms.across(a)
    objective, w, b = min((terms.primal(w, near) for w in (found, sums, np.zeros_like(sums))),
                          key=lambda one: one[0])
    squares = float(sums @ sums)
    # what rounding may make of either
    noise = 4 * np.finfo(np.float64).eps * (squares + float(np.sum(np.abs(c) * u)) + objective)
    gap = max(0.0, objective + squares / 2 + float(np.sum(c * a))) + noise
    if not np.isfinite(gap):
        raise DataError("X or y contains NaN or infinity, or products of theirs overflow.")
    share = gap / objective if objective > 0 else 0.0
    met = bool(share <= tolerance or gap <= 2 * noise)
    return w, b, Report(met, "tolerance" if met else "stalled", steps, share, tolerance, objective,
                        terms.passes, time.perf_counter() - begin, {}, {}, "interior-point", gap,
                        "duality gap")


def fit_margins(model: Any, X: Any, problems: list[Any], solve: Any = solve_margins) -> tuple[Any, Any]:
    """W and b for validated X and what solve takes for each column of W; the report is the model's."""
    if model.standardize:
        raise ArgumentError(f"standardize=True of {type(model).__name__} is for the squared loss and "
                            "penalty='l2'")
    where = model._place(X, len(problems))
    operand, off, before = matrix(X, where if where.has_f64 else "cpu", np.float64), np.zeros(X.shape[1]), 0
    if model.fit_intercept:
        operand, off = about_means(operand, np.ones(X.shape[0]), 1)
        before = 2  # passes, for the means and the squares
    with naming(model, X):
        found = [solve(operand, *terms, intercept=model.fit_intercept, tolerance=model.tol)
                 for terms in problems]
    model.device_, model._kept, model._told = operand.device.name, None, {}
    reports = [report for _, _, report in found]
    reports[0] = reports[0]._replace(passes=reports[0].passes + before)
    model._keep_report(reports[0] if len(reports) == 1 else together(reports), single=False)
    W, b = np.column_stack([w for w, _, _ in found]), np.array([[b - float(off @ w) for w, b, _ in found]])
    return W.astype(X.dtype), b.astype(X.dtype)


def hinge(y: Any, weights: Any, C: float) -> tuple[Any, Any, Any]:
    """sigma, c and u of classes that are -1 and 1."""
    return y[None], np.full((1, len(y)), -1.0), C * weights[None]


def insensitive(y: Any, weights: Any, C: float, epsilon: float) -> tuple[Any, Any, Any]:
    """sigma, c and u of numbers."""
    ones = np.ones(len(y))
    return np.array([ones, -ones]), np.array([epsilon - y, epsilon + y]), C * np.array([weights, weights])
