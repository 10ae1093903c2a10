"""Ridge regressions judged by each row in turn, trained on all others, for each penalty at the cost of one
decomposition.

With weights s, X about its means and U D^1/2 V^T the singular value decomposition of S^1/2 X, the share of
row i in its own prediction is h_i = s_i / sum s + sum_j U_ij^2 d_j / (d_j + alpha), and the error of the
model without the row is that of the model with it over 1 - h_i."""
from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dgejsv

from ._arrays import Matrix, matrix
from ._base import as_columns
from ._cv_judged import Means, scorer
from ._functions import multiply
from ._library import ArgumentError, DataError, ffi, lib

_MOST = 4096  # rows or columns, the lesser: a Gram matrix of 128 MiB
_BLOCK = 1 << 25  # doubles of one block of singular vectors, or of the penalties' predictions
_FAR = 100  # times a column's variance, the square of its mean, from which on it is centred before products
_LOST = "X or y contains NaN or infinity, or products of theirs overflow."


class Judged(NamedTuple):
    """scores (n_alphas,) or (n_alphas, n_targets), the errors' squares or the predictions of the rows
    (n_alphas, n_rows, n_targets), and the number of targets."""

    scores: Any
    results: Any
    targets: int


class _Rows:
    """X about its means, its rows times the roots of their weights."""

    def __init__(self, X: Matrix, weights: Any, intercept: bool) -> None:
        self.X, self.weights, self.roots = X, weights, np.sqrt(weights)
        self.total = float(weights.sum())
        self.intercept = intercept
        if intercept:
            self.X, _ = about_means(X, weights)
        # what rounding left of those that are far from 0, and the others
        self.mean = _means(self.X, weights) if intercept else np.zeros(X.shape[1])
        self.epsilon = float(np.finfo(X.dtype).eps)

    def along(self, V: Any) -> Any:
        """These rows times V."""
        found = np.asarray(multiply(self.X, as_columns(V, self.X.dtype)), np.float64)
        return self.roots[:, None] * (found - self.mean @ V)

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Left singular vectors and the squares of singular values, in blocks."""
        rows, columns = self.X.shape
        if min(rows, columns) > _MOST:
            raise ArgumentError(f"RidgeCV with cv=None leaves out one row at a time, for up to {_MOST} rows "
                                f"or columns, and X is {rows} x {columns}: give a number of folds, cv=5")
        if columns > rows:
            if self._spread() and (not self.X.sparse or rows * columns <= _BLOCK):
                values, vectors = _graded((self.roots[:, None] * self._host()).T)
                yield vectors[:, values > 0], values[values > 0]
                return
            values, vectors = _eigen(self._of_rows())
            kept = values > 64 * rows * np.finfo(np.float64).eps * values.max(initial=0)
            yield vectors[:, kept], values[kept]
            return
        gram = self._of_columns()
        if _differ(gram.diagonal()):
            yield from self._by_scales(gram)
            return
        values, vectors = _eigen(gram)
        least = 16 * np.sqrt(columns) * self.epsilon * np.sqrt(values.max(initial=0))
        for first in range(0, columns, size := max(1, min(64, _BLOCK // max(rows, 1)))):
            U = self.along(vectors[:, first:first + size])
            lengths = np.linalg.norm(U, axis=0)  # more digits than the eigenvalues have
            kept = lengths > least
            yield U[:, kept] / lengths[kept], lengths[kept] ** 2

    def _by_scales(self, gram: Any) -> Iterator[tuple[Any, Any]]:
        """As blocks(). The Gram matrix of columns of one length, W L W^T, has X = Q R with R = L^1/2 W^T
        lengths, and R's decomposition is one of few columns."""
        sizes = np.sqrt(np.where(gram.diagonal() > 0, gram.diagonal(), np.inf))
        if not np.isfinite(gram).all():
            raise DataError(_LOST)
        values, vectors = _eigen(gram / sizes[:, None] / sizes)
        kept = values > 64 * len(gram) * self.epsilon
        roots, vectors, lengths = np.sqrt(values[kept]), vectors[:, kept], np.where(sizes < np.inf, sizes, 0)
        squares, inner = _graded(lengths[:, None] * vectors * roots)
        towards = (vectors / roots) @ inner / sizes[:, None]
        size = max(1, min(64, _BLOCK // max(self.X.shape[0], 1)))
        for first in range(0, len(squares), size):
            U = self.along(towards[:, first:first + size])
            yield U / np.linalg.norm(U, axis=0), squares[first:first + size]

    def _spread(self) -> bool:
        return _differ(_squares(self.X, self.weights) - self.total * self.mean**2)

    def _host(self) -> Any:
        """X about its means, as a dense array."""
        host = self.X.numpy()
        return (host.toarray() if self.X.sparse else host).astype(np.float64) - self.mean

    def _of_columns(self) -> Any:
        where, size = self.X.device, self.X.shape[1]
        made = Matrix.empty(where, (size, size), self.X.dtype)
        weights, mean = (matrix(as_columns(part, self.X.dtype), where) for part in (self.roots**2, self.mean))
        where.call(lib.kiln_gram, made.pointer, ffi.NULL, self.X.pointer, weights.pointer, mean.pointer)
        return made.numpy().astype(np.float64)

    def _of_rows(self) -> Any:
        host = self.X.numpy().astype(np.float64)
        mean = host.T @ self.weights / self.total if self.intercept else self.mean  # of more digits
        if self.X.sparse:
            products, towards = (host @ host.T).toarray(), host @ mean
            products += mean @ mean - towards - towards[:, None]
        else:
            host -= mean
            products = host @ host.T
        return products * np.outer(self.roots, self.roots)


def _means(X: Matrix, weights: Any) -> Any:
    found = multiply(X, as_columns(weights, X.dtype), transposed=True)
    return np.asarray(found)[:, 0].astype(np.float64) / float(weights.sum())


def _squares(X: Matrix, weights: Any) -> Any:
    made = Matrix.empty(X.device, (X.shape[1], 1), X.dtype)
    along = matrix(as_columns(weights, X.dtype), X.device)
    X.device.call(lib.kiln_gram_diagonal, made.pointer, X.pointer, along.pointer)
    return made.numpy()[:, 0].astype(np.float64)


def about_means(X: Matrix, weights: Any, times: float = _FAR) -> tuple[Matrix, Any]:
    """X less the means of the columns whose squares are this many times their variances, so that a product
    takes their digits, and what that took off each column."""
    mean, off = _means(X, weights), np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        squares, means = _squares(X, weights), float(weights.sum()) * mean**2
        far = np.flatnonzero((means > 0) & (squares - means < means / times) & np.isfinite(squares))
    if not len(far):
        return X, off
    off[far] = mean[far].astype(X.dtype)
    return _less(X, far, off[far]), off


def _less(X: Matrix, far: Any, means: Any) -> Matrix:
    """X less the means of these columns, in numbers of its type. A sparse X stays sparse: nearly all rows
    have entries in a column so far from 0."""
    if not X.sparse:
        host = X.numpy()
        host[:, far] -= means.astype(X.dtype)
        return matrix(host, X.device)
    import scipy.sparse

    host = X.numpy().tocsc()
    full = scipy.sparse.csc_array(host[:, far].toarray() - means.astype(X.dtype))
    kept = np.ones(X.shape[1], bool)
    kept[far] = False
    order = np.argsort(np.concatenate([np.flatnonzero(kept), far]))
    return matrix(scipy.sparse.hstack([host[:, kept], full], format="csc")[:, order].tocsr(), X.device)


def _differ(squares: Any) -> bool:
    """Whether columns' lengths differ so much that the eigenvectors of their products lose digits."""
    some = squares[squares > 0]
    return len(some) > 0 and bool(some.max() > 1e6 * some.min())


def _graded(A: Any) -> tuple[Any, Any]:
    """The squares of A's singular values and its right singular vectors, with digits of their own where its
    rows have different scales, by Jacobi's method (LAPACK's gejsv)."""
    if not np.isfinite(A).all():
        raise DataError(_LOST)
    values, _, vectors, work, _, info = dgejsv(A, joba=2, jobu=3, jobv=0)
    if info:
        raise DataError(_LOST)
    return (values * work[0] / work[1]) ** 2, vectors


def _eigen(gram: Any) -> tuple[Any, Any]:
    if not np.isfinite(gram).all():
        raise DataError(_LOST)
    values, vectors = eigh(gram)
    return np.maximum(values, 0), vectors


def leave_one_out(model: Any, X: Matrix, y: Any, sample_weight: Any, alphas: Any) -> Judged:
    """The scores of these penalties by model.scoring, None: minus the mean of the weighted squared errors;
    with model.alpha_per_target those of each target."""
    if X.shape[0] < 2:
        raise ValueError("RidgeCV with cv=None leaves out one row at a time, and X has 1 sample.")
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, np.float64)
    targets, keep = as_columns(y, np.float64), model.store_cv_results
    if not np.isfinite(targets).all():
        raise DataError(_LOST)
    rows = _Rows(X, weights, model.fit_intercept)
    centre = weights @ targets / rows.total if model.fit_intercept else np.zeros(targets.shape[1])
    wanted = rows.roots[:, None] * (targets - centre)
    share = weights / rows.total if model.fit_intercept else np.zeros(len(weights))
    size = max(1, 4 * _BLOCK // (len(targets) * (1 + targets.shape[1])))
    scores: list[Any] = []
    results: list[Any] = []
    for first in range(0, len(alphas), size):
        some = alphas[first:first + size]
        own = np.repeat(1 - share[:, None], len(some), axis=1)
        left = np.repeat(wanted[:, :, None], len(some), axis=2)
        for U, squares in rows.blocks():
            shares = squares[:, None] / (squares[:, None] + some)
            own -= (U * U) @ shares
            parts = U.T @ wanted
            left -= np.einsum("ij,jka->ika", U, parts[:, :, None] * shares[:, None, :])
        left /= own[:, None, :]
        for a in range(len(some)):
            score, result = _score(model, targets, left[:, :, a], rows.roots, sample_weight)
            scores.append(score)
            if keep:
                results.append(result)
    return Judged(np.array(scores), np.array(results) if keep else None, targets.shape[1])


def _score(model: Any, targets: Any, errors: Any, roots: Any, sample_weight: Any) -> tuple[Any, Any]:
    """The score by the errors of the rows left out, times the roots of their weights, and what cv_results_
    has of them."""
    if model.scoring is None:
        squares = errors**2
        return -(squares.mean(axis=0) if model.alpha_per_target else squares.mean()), squares
    with np.errstate(invalid="ignore", divide="ignore"):
        predictions = targets - np.where(roots[:, None] > 0, errors / roots[:, None], 0.0)
    judge, given = scorer(model), {} if sample_weight is None else {"sample_weight": sample_weight}

    def judged(found: Any, true: Any) -> float:
        return float(judge(Means(found), None, true, **given))

    if model.alpha_per_target:
        return [judged(predictions[:, j], targets[:, j]) for j in range(targets.shape[1])], predictions
    single = model._single or targets.shape[1] == 1
    return judged(predictions[:, 0], targets[:, 0]) if single else judged(predictions, targets), predictions
