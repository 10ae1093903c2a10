"""Sums over rows that say all that least squares need of them: so batches are looked at once.

Of rows x and targets y with weights v, whose sum is V:  the means m of x and y,
  S = sum v (x - m_x)(x - m_x)^T,  T = sum v (x - m_x)(y - m_y)^T,
and of two sets of rows a and b, with d = m_b - m_a of x and e of y (Chan, Golub and LeVeque 1983),
  S = S_a + S_b + V_a V_b / V d d^T,  T = T_a + T_b + V_a V_b / V d e^T,
which does not cancel where columns lie far from zero. Without an intercept the means are 0."""
from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.linalg import eigh, lapack

from ._functions import multiply

_EPSILON = np.finfo(np.float64).eps


class Sums:
    """What the rows so far come to, in float64: n_features (n_features + n_targets + 1) numbers."""

    def __init__(self, features: int, targets: int, centred: bool) -> None:
        self.centred, self.weight = centred, 0.0
        self.mean = np.zeros(features + targets)
        self.S, self.T = np.zeros((features, features)), np.zeros((features, targets))

    def added(self, X: Any, y: Any, weights: Any) -> Sums:
        """New sums that count rows X, too, which become dense, with targets y (n, n_targets) and weights
        (None: 1 each). These stay as they are, so that rows of which no model comes do not count."""
        rows = np.hstack([X.toarray() if hasattr(X, "toarray") else X, y]).astype(np.float64, copy=False)
        v = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
        total = self.weight + v.sum()
        if v.sum() == 0:
            return self
        mean = v @ rows / v.sum() if self.centred else np.zeros(rows.shape[1])
        centred = (rows - mean) * np.sqrt(v)[:, None]
        n = len(self.S)
        products = multiply(np.ascontiguousarray(centred[:, :n]), centred, transposed=True, device="cpu")
        apart = mean - self.mean
        products = products + self.weight * v.sum() / total * np.outer(apart[:n], apart)
        sums = copy.copy(self)
        sums.S, sums.T = self.S + products[:, :n], self.T + products[:, n:]
        sums.mean, sums.weight = self.mean + v.sum() / total * apart, total
        return sums

    def ridge(self, alphas: Any) -> tuple[Any, Any]:
        """W (n_features, n_targets) and b (1, n_targets) of ||v^1/2 (x W + b - y)||^2 + alpha ||w||^2, with
        an alpha for each target; of the least norm where alpha is 0."""
        n = len(self.S)
        W = np.column_stack([_solved(self.S, alpha, t) for alpha, t in zip(alphas, self.T.T)])
        return W, (self.mean[n:] - self.mean[:n] @ W).reshape(1, -1)


def _solved(S: Any, alpha: float, t: Any) -> Any:
    """w of (S + alpha I) w = t, of the least norm where alpha is 0 and S singular. By Cholesky where that
    keeps half the digits whatever the columns' scales, else by S's eigenvectors, of which t has none that
    belong to an eigenvalue of 0."""
    A = S + alpha * np.eye(len(S))
    if alpha > 0:
        scale = 1 / np.sqrt(np.diag(A))
        scaled = A * scale * scale[:, None]
        factor, failed = lapack.dpotrf(scaled)
        if not failed and lapack.dpocon(factor, np.linalg.norm(scaled, 1))[0] > np.sqrt(_EPSILON):
            return scale * lapack.dpotrs(factor, scale * t)[0]
    values, vectors = eigh(S)
    held = values > len(S) * _EPSILON * values[-1]
    return vectors[:, held] @ (vectors[:, held].T @ t / (values[held] + alpha))
