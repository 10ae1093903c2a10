"""Least squares along a list of penalties, each fit from where the last one ended."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Matrix, matrix
from ._base import host_vector
from ._functions import multiply, place
from ._joint import alone
from ._library import ArgumentError, DataError
from ._linear import ElasticNet
from ._positive import Positive
from ._words import convergence, warn


@alone
def enet_path(X: Any, y: Any, *, l1_ratio: float = 0.5, eps: float = 1e-3, n_alphas: int | None = None,
              alphas: Any = 100, precompute: Any = "auto", Xy: Any = None, copy_X: bool = True,
              coef_init: Any = None, verbose: int = 0, return_n_iter: bool = False, positive: bool = False,
              check_input: bool = True, tol: float | None = None, max_iter: int | None = None,
              device: Any = "auto") -> Any:
    """The elastic nets without an intercept for each of these alphas, from the largest.

    Minimises 1/(2 n) ||X w - y||^2 + alpha (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2) for each alpha.
    """
    operand = place(X, device, 100)
    if 0 in operand.shape:
        raise ArgumentError(f"X is {operand.shape[0]} x {operand.shape[1]}, but a path needs rows and "
                            "columns")
    target = np.asarray(host_vector(y), np.float64)
    if target.shape != (operand.shape[0],):
        raise ArgumentError(f"a path is of one target: y must be of shape ({operand.shape[0]},), got "
                            f"{target.shape}")
    values = _penalties(operand, target, l1_ratio, eps, alphas if n_alphas is None else n_alphas, positive)
    if positive:
        return _positive_path(operand, target, l1_ratio, values, coef_init, tol, return_n_iter)
    model = ElasticNet(l1_ratio=l1_ratio, fit_intercept=False, warm_start=True, tol=tol,
                       max_iter=max_iter, verbose=verbose)
    if coef_init is not None:
        model.coef_, model.intercept_ = np.array(coef_init, operand.dtype), 0.0
        if model.coef_.shape != (operand.shape[1],):
            raise ArgumentError(f"coef_init must be of shape ({operand.shape[1]},), got {model.coef_.shape}")
    model._beginning = True
    coefs, gaps, steps = np.empty((operand.shape[1], len(values)), operand.dtype), np.empty(len(values)), []
    unfinished = 0
    for i, alpha in enumerate(values):
        model.set_params(alpha=float(alpha)).fit(operand, target)
        coefs[:, i], gaps[i] = model.coef_, model.dual_gap_
        steps.append(model.n_iter_)
        unfinished += not model.converged_
    _tell(unfinished, len(values), l1_ratio)
    return (values, coefs, gaps, steps) if return_n_iter else (values, coefs, gaps)


def _tell(unfinished: int, count: int, ratio: float) -> None:
    if unfinished:
        warn(f"{'lasso_path' if ratio == 1 else 'enet_path'}: {unfinished} of {count} models did "
             "not converge; raise max_iter, or tol",
             convergence())


def _positive_path(X: Matrix, y: Any, ratio: float, alphas: Any, start: Any, tol: float | None,
                   return_n_iter: bool) -> Any:
    """The path over coefficients from 0 on, with one Gram matrix for all of it."""
    problem = Positive(X, None, intercept=False)
    coefs, gaps, steps = np.empty((X.shape[1], len(alphas)), X.dtype), np.empty(len(alphas)), []
    unfinished = 0
    for i, alpha in enumerate(alphas):
        start, _, report = problem.solve(y, alpha * ratio * len(y), alpha * (1 - ratio) * len(y), tol, start)
        coefs[:, i], gaps[i] = start, report.optimality_gap / len(y)
        steps.append(report.n_iter)
        unfinished += not report.converged
    _tell(unfinished, len(alphas), ratio)
    return (alphas, coefs, gaps, steps) if return_n_iter else (alphas, coefs, gaps)


@alone
def lasso_path(X: Any, y: Any, **options: Any) -> Any:
    """enet_path with l1_ratio=1: the lasso for each of the alphas, from the largest."""
    return enet_path(X, y, **{**options, "l1_ratio": 1.0})


def _penalties(X: Matrix, y: Any, ratio: float, eps: float, alphas: Any, positive: bool) -> Any:
    if np.ndim(alphas) > 0:
        given = np.sort(np.asarray(alphas, np.float64))[::-1]
        if not (given >= 0).all() or np.isinf(given).any():
            raise ArgumentError(f"alphas must be numbers in the range [0, inf), got {alphas!r}")
        return given
    if not 0 < eps <= 1:
        raise ArgumentError(f"eps must be in the range (0, 1], got {eps!r}")
    if ratio == 0:
        raise ArgumentError("With l1_ratio=0 no alpha makes all coefficients 0: alphas must be a list.")
    largest = multiply(X, matrix(y.astype(X.dtype), X.device), transposed=True)
    gains = largest if isinstance(largest, np.ndarray) else largest.numpy()
    largest = float((gains if positive else np.abs(gains)).max()) / len(y) / ratio
    if not np.isfinite(largest):
        raise DataError("X or y has NaN or infinite values, or products of theirs overflow")
    if largest <= np.finfo(np.float64).resolution:
        return np.full(int(alphas), np.finfo(np.float64).resolution)
    return np.geomspace(largest, largest * eps, int(alphas))
