"""All folds and all penalties of a cross-validation as one call of the library, kiln_path, and what came of
them."""
from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ._arrays import Matrix, affine, matrix
from ._checkpoint import checkpoint
from ._base import as_columns
from ._cv_judged import scorer
from ._dlpack import to_host
from ._library import UnsupportedError, ffi, lib, struct
from ._metrics import measured_on
from ._solve import _failed, algorithm_options, solve

Splits = list[tuple[Any, Any]]


class _Kept:
    """What came of the folds, as numbers in one piece, which go along with a checkpoint: for whom they are;
    how many folds are done, and how many of their models did not converge; the scores; and, `wide` numbers,
    each split's best model where that is kept: its score, its value (-1: there is none yet), W and b."""

    def __init__(self, whose: list[float], shape: tuple[int, int], wide: int) -> None:
        self.head, scores = len(whose), len(whose) + 2
        self.numbers = np.zeros(scores + shape[0] * (shape[1] + wide))
        self.numbers[:self.head] = whose
        self.counts = self.numbers[self.head:scores]
        self.scores = self.numbers[scores:scores + shape[0] * shape[1]].reshape(shape)
        self.scores[:] = np.nan
        self.best = self.numbers[scores + self.scores.size:].reshape(shape[0], wide)


class _HeldOut:
    """The rows that one split holds out, where X lies: X's, their targets, weights and offset. Nothing as
    long as they are comes to the host unless a scorer of scikit-learn's asks for it."""

    def __init__(self, X: Matrix, test: Any, truth: Any, weights: Any, offset: Any) -> None:
        self.whole, self.test = X, test
        self.X = _rows_of(X, test)
        where = measured_on(X.device)
        self.y = matrix(as_columns(truth[test], np.float64), where)
        self.weights = None if weights is None else matrix(as_columns(weights[test], np.float64), where)
        self.weightless = weights is not None and not weights[test].sum() > 0
        self.offset = None if offset is None else matrix(offset[test], where)
        self.zeros = Matrix.empty(X.device, (len(test), 1), X.dtype)

    def predictors(self, W: Any, b: Any) -> Matrix:
        """X W + b + offset of these rows, by all models whose columns W and b are."""
        eta = affine(self.whole if self.X is None else self.X, W, b)
        if self.X is None:
            eta = _rows_of(eta, self.test) or matrix(eta.numpy()[self.test], eta.device)
        return eta if self.offset is None else _beside(eta, self.offset)

    def finite(self, eta: Matrix) -> Any:
        """Says of each column whether all of it is: 0 times what is not is no number."""
        zeros = matrix(self.zeros, eta.device, eta.dtype)
        products = Matrix.empty(eta.device, (eta.shape[1], 1), eta.dtype)
        eta.device.call(lib.kiln_multiply, products.pointer, 1, lib.KILN_TRANSPOSED, eta.pointer,
                        zeros.pointer, 0, ffi.NULL)
        return np.isfinite(products.numpy()[:, 0])


def _beside(eta: Matrix, offset: Matrix) -> Matrix:
    """eta + offset in doubles, on the device where these are measured."""
    sums, ones = matrix(eta, offset.device, np.float64), ffi.new("double[]", [1.0] * eta.shape[1])
    offset.device.call(lib.kiln_combine, sums.pointer, ones, sums.pointer, ones, offset.pointer)
    return sums


class Search:
    """Takes the models that kiln_path hands over, and keeps what the rows held out say of them: scores[split,
    value].

    penalties: l2, l1 and the block of each value. columns: of a model's W. Where no model is trained on all
    rows (refit=False), each split's best one is kept."""

    def __init__(self, model: Any, X: Matrix, y: Any, sample_weight: Any, splits: Splits, penalties: Any,
                 offset: Any, columns: int) -> None:
        self.model, self.X, self.y, self.sample_weight, self.splits = model, X, y, sample_weight, splits
        self.columns = columns
        self.offset = None if offset is None else np.asarray(to_host(offset), np.float64).reshape(-1, 1)
        # each block from the strongest to the weakest
        self.order = np.lexsort((-penalties[:, :2].sum(axis=1), penalties[:, 2]))
        self.l2, self.l1 = (np.ascontiguousarray(penalties[self.order, i]) for i in (0, 1))
        self.folds = _as_folds(splits, X.shape[0])
        self.refit = getattr(model, "refit", True)
        self.kept = _Kept(self._whose(penalties), (len(splits), len(penalties)), 0 if self.refit
                          else 2 + (X.shape[1] + 1) * columns)
        self.scores = self.kept.scores
        self.first = 0  # the split that the library calls fold 0
        self.astray = 0  # models of the fold at hand that did not converge
        self.late = 0  # and of folds that a checkpoint is not told of,
        self.cut = False  # as one of their models, or of a fold before, ended at max_iter
        self.scorer = scorer(model)
        self.truth = np.searchsorted(model.classes_, y) if is_classifier(model) else np.asarray(y, np.float64)
        if self.truth.ndim == 2 and self.truth.shape[1] == 1:
            self.truth = self.truth[:, 0]
        self.held: _HeldOut | None = None
        self.host: Any = None  # predictors of the models at hand, where a scorer has asked for them

    def _whose(self, penalties: Any) -> list[float]:
        scoring = self.model.scoring
        named = (scoring if isinstance(scoring, str) else getattr(scoring, "__name__",
                                                                  re.sub(" at 0x[0-9a-fA-F]+", "",
                                                                         repr(scoring))))
        splits = (self.splits if self.folds is None else [(self.folds,)])
        sides = [rows for split in splits for rows in split]
        folds = b"".join(np.array([len(rows), *rows], np.int64).tobytes() for rows in sides)
        made = [np.ascontiguousarray(penalties).tobytes(), folds, named.encode()]
        return [len(self.splits), len(penalties), *map(zlib.crc32, made)]

    @property
    def unconverged(self) -> int:
        return int(self.kept.counts[1]) + self.late

    def best_models(self) -> tuple[Any, Any, Any]:
        """The best value of each split, W and b."""
        weights = self.kept.best[:, 2:].reshape(len(self.splits), -1, self.columns)
        return self.kept.best[:, 1].astype(int), weights[:, :-1], weights[:, -1:]

    def take(self, models: Any) -> None:
        """The values models.first, ... of one fold."""
        split = self.first + models.fold
        test = self.splits[split][1]
        with self.X.device.turn.handed_over():
            if models.first == 0:
                self.held = None  # first, so that no two folds' rows need room
                self.held, self.astray = _HeldOut(self.X, test, self.truth, self.sample_weight,
                                                  self.offset), 0
                self.kept.best[split, 1:2] = -1
            assert self.held is not None
            eta = self.held.predictors(models.W, models.b)
            finite = self.held.finite(eta).reshape(models.count, -1).all(axis=1)
            self.host = None
            for i in range(models.count):
                self._take_one(models, i, split, self._score(eta, i, test) if finite[i] else np.nan)
        if models.first + models.count < len(self.order):
            return
        if self.cut:
            self.late += self.astray
        else:
            self.kept.counts += 1, self.astray

    def _take_one(self, models: Any, i: int, split: int, score: float) -> None:
        value = self.order[models.first + i]
        self.astray += not models.reports[i].converged
        self.cut |= models.reports[i].stopped_by == lib.KILN_STOP_ITERATIONS
        self.scores[split, value] = score
        if self.refit:
            return
        best, rank = self.kept.best[split], -np.inf if np.isnan(score) else score
        # the caller's first of several that are equal
        if best[1] < 0 or rank > best[0] or (rank == best[0] and value < best[1]):
            wide, rows = self.columns * models.count, self.X.shape[1]
            columns = slice(i * self.columns, (i + 1) * self.columns)
            best[:2] = rank, value
            weights = best[2:].reshape(rows + 1, self.columns)
            weights[:-1] = self._host(models.W, (rows, wide))[:, columns]
            weights[-1] = 0 if models.b == ffi.NULL else self._host(models.b, (1, wide))[0, columns]

    def _host(self, pointer: Any, shape: tuple[int, int]) -> Any:
        values = np.empty(shape, self.X.dtype)
        self.X.device.call(lib.kiln_matrix_get, ffi.from_buffer(values), pointer)
        return values

    def _score(self, eta: Matrix, i: int, test: Any) -> float:
        """Scores the i-th model in eta: by the library's metrics where eta lies, or by its scorer, on the
        host."""
        held, columns = self.held, self.columns
        assert held is not None
        if not held.weightless:
            found = self.model._measured(eta, held.y, held.weights, held.offset, first=i * columns,
                                         columns=columns)
            if found is not None:
                return float(found)
        if self.host is None:
            self.host = eta.numpy().astype(np.float64)
        given = {} if self.sample_weight is None else {"sample_weight": self.sample_weight[test]}
        offset = None if self.offset is None else self.offset[test][:, 0]
        own = self.host[:, i * columns:(i + 1) * columns]
        return float(self.scorer(self.model._judged(own, offset), None, self.y[test], **given))

    # ----------------------------------------------------------------------------------------------- running

    def run(self, target: Matrix, kept: checkpoint | None, level: float | None, **options: Any) -> None:
        """All splits in one call where each row is held out once, else one by one; level: each trains on this
        weight, to which its own is scaled."""
        whole = self.folds is not None and level is None
        if kept is not None:
            runs = (1 if whole else len(self.splits)) + bool(self.refit)
            kept.along(self.kept.numbers, self.kept.head,
                       f"a cross-validation of {type(self.model).__name__}", runs)
        done = int(self.kept.counts[0])
        if whole:
            weights = self.model._settings(self.X, self.sample_weight, options)
            self._call(target, weights, kept, done == len(self.splits), folds=len(self.splits),
                       fold=ffi.from_buffer("int32_t[]", self.folds))
            return
        for self.first, (train, _) in enumerate(self.splits):
            counts = np.bincount(train, minlength=self.X.shape[0]).astype(self.X.dtype)
            weights = counts if self.sample_weight is None else counts * self.sample_weight
            if level is not None:
                weights = weights * (level / weights.sum())
            self._call(target, self.model._settings(self.X, weights, options), kept, self.first < done)

    def _call(self, target: Matrix, options: dict[str, Any], kept: checkpoint | None, done: bool,
              **folds: Any) -> None:
        """One run, unless the checkpoint has its end."""
        if kept is not None and done:
            kept.skip()
            return
        model, user = self.model, ffi.new_handle(self)
        penalties = {name: ffi.from_buffer("double[]", values) for name, values in (("l2", self.l2),
                                                                                    ("l1", self.l1))
                     if name == "l2" or values.any()}
        asked = struct("kiln_path_options", count=len(self.order), take=_take, user=user, **penalties,
                       **folds)

        def path(made: Any, report: Any) -> Any:
            return lib.kiln_path(model._algorithm.encode(), made, self.X.pointer, target.pointer,
                                 self.columns, asked)

        solve(self.X.device, path, [], algorithm_options(model._algorithm, options), verbose=model.verbose,
              callback=getattr(model, "callback", None), names=model._vocabulary(), mapped=self.X.mapped)
        if kept is not None:
            kept.stays = self.cut  # other runs come after the folds that wait


@ffi.callback("int(void *, const kiln_path_models *)", onerror=_failed)  # type: ignore[untyped-decorator]
def _take(user: Any, models: Any) -> int:
    ffi.from_handle(user).take(models)
    return 0


def _rows_of(X: Matrix, rows: Any) -> Matrix | None:
    """These rows of X beside it; None where a device or a format does not offer that, or has no room."""
    if X.sparse:
        return None
    try:
        part = Matrix.empty(X.device, (len(rows), X.shape[1]), X.dtype)
        rows = np.ascontiguousarray(rows, np.int64)
        X.device.call(lib.kiln_rows, part.pointer, X.pointer, ffi.from_buffer("int64_t[]", rows))
    except (UnsupportedError, MemoryError):
        return None
    return part


def _as_folds(splits: Splits, rows: int) -> Any:
    """The split that holds each row out, if it is one and the others train on it; else None."""
    folds = np.full(rows, -1, np.int32)
    for number, (train, test) in enumerate(splits):
        trained = np.bincount(train, minlength=rows)
        if (folds[test]
            >= 0).any() or len(train) + len(test) != rows or trained.max() > 1 or trained[test].any():
            return None
        folds[test] = number
    return folds if (folds >= 0).all() else None
