"""Linear models whose penalty cross-validation chooses: all folds and all penalties are one call of the library, kiln_path."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ._arrays import Matrix, device, matrix
from ._base import as_columns, beside
from ._dlpack import to_host
from ._library import UnsupportedError, ffi, lib, struct
from ._linear import ElasticNet, GeneralizedLinearRegressor, _class_of, _Linear, _Logistic, _Regressor
from ._solve import _failed, running, solve

# --------------------------------------------------------------------------------------------------- what scorers ask


class _Means(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regression whose predictions of the rows that are asked for are known."""

    def __init__(self, means: Any) -> None:
        self.means = means

    def predict(self, X: Any) -> Any:
        return self.means


class _Responses(_Means):
    """The same of a generalised linear model, whose own score is D2."""

    def __init__(self, means: Any, model: Any) -> None:
        self.means = means
        self.model = model

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(self.model._explained(y, self.means, sample_weight))


class _Predictors(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classification whose linear predictors of the rows that are asked for are known."""

    def __init__(self, eta: Any, classes: Any) -> None:
        self.eta = eta
        self.classes_ = classes

    def decision_function(self, X: Any) -> Any:
        return self.eta[:, 0] if self.eta.shape[1] == 1 else self.eta

    def predict(self, X: Any) -> Any:
        return _class_of(self.eta, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        return np.hstack([expit(-self.eta), expit(self.eta)]) if self.eta.shape[1] == 1 else softmax(self.eta, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        return np.hstack([log_expit(-self.eta), log_expit(self.eta)]) if self.eta.shape[1] == 1 else log_softmax(self.eta, axis=1)


# ------------------------------------------------------------------------------------------------------- the call


_Splits = list[tuple[Any, Any]]


class _Search:
    """Takes the models that kiln_path hands over, and keeps what the rows held out say of them: scores[split, value]."""

    def __init__(self, model: Any, X: Matrix, y: Any, sample_weight: Any, splits: _Splits, penalties: Any, offset: Any) -> None:
        self.model, self.X, self.y, self.sample_weight, self.splits = model, X, y, sample_weight, splits
        self.offset = None if offset is None else np.asarray(to_host(offset), np.float64).reshape(-1, 1)
        self.order = np.lexsort((-penalties[:, :2].sum(axis=1), penalties[:, 2]))  # each block from the strongest to the weakest
        self.l2, self.l1 = (np.ascontiguousarray(penalties[self.order, i]) for i in (0, 1))
        self.scores = np.full((len(splits), len(penalties)), np.nan)
        self.unconverged = 0
        self.first = 0  # the split that the library calls fold 0
        self.best: list[Any] = [None] * len(splits)  # score, value, W, b of each split's best model, where none is trained on all rows
        self.scorer = _scorer(model)
        self.held: Matrix | None = None

    def take(self, models: Any) -> None:
        """The values models.first, ... of one fold."""
        split = self.first + models.fold
        test = self.splits[split][1]
        with self.X.device.turn.handed_over():
            if models.first == 0:
                self.held = _rows_of(self.X, test)
            eta = self._predictors(models, test)
            columns = eta.shape[1] // models.count
            for i in range(models.count):
                self._take_one(models, i, split, eta[:, i * columns:(i + 1) * columns])

    def _take_one(self, models: Any, i: int, split: int, eta: Any) -> None:
        test, value = self.splits[split][1], self.order[models.first + i]
        self.unconverged += not models.reports[i].converged
        score = self._score(eta, test) if np.isfinite(eta).all() else np.nan
        self.scores[split, value] = score
        if getattr(self.model, "refit", True):
            return
        kept, rank = self.best[split], -np.inf if np.isnan(score) else score
        if kept is None or rank > kept[0] or (rank == kept[0] and value < kept[1]):  # the caller's first of several that are equal
            columns = slice(i * eta.shape[1], (i + 1) * eta.shape[1])
            self.best[split] = rank, value, *(None if at == ffi.NULL else self._host(at, (rows, models.count * eta.shape[1]))[:, columns]
                                              for at, rows in ((models.W, self.X.shape[1]), (models.b, 1)))

    def _host(self, pointer: Any, shape: tuple[int, int]) -> Any:
        values = np.empty(shape, self.X.dtype)
        self.X.device.call(lib.kiln_matrix_get, ffi.from_buffer(values), pointer)
        return values

    def _predictors(self, models: Any, test: Any) -> Any:
        """X W + b of the rows held out, by all models handed over."""
        operand, columns = self.held or self.X, lib.kiln_matrix_cols(models.W)
        bias = np.zeros((1, columns)) if models.b == ffi.NULL else self._host(models.b, (1, columns))
        eta = matrix(np.full((operand.shape[0], columns), bias, operand.dtype), operand.device)
        operand.device.call(lib.kiln_multiply, eta.pointer, 1, lib.KILN_PLAIN, operand.pointer, models.W, 1, eta.pointer)
        values = (eta.numpy() if self.held else eta.numpy()[test]).astype(np.float64)
        return values if self.offset is None else values + self.offset[test]

    def _score(self, eta: Any, test: Any) -> float:
        weights = {} if self.sample_weight is None else {"sample_weight": self.sample_weight[test]}
        return float(self.scorer(self.model._judged(eta), None, self.y[test], **weights))

    # ----------------------------------------------------------------------------------------------- running

    def run(self, target: Matrix, columns: int, **options: Any) -> None:
        """All splits in one call where each row is held out once, else one by one."""
        folds = _as_folds(self.splits, self.X.shape[0])
        if folds is not None:
            weights = self.model._settings(self.X, self.sample_weight, options)
            self._call(target, columns, weights, fold=ffi.from_buffer("int32_t[]", folds), folds=len(self.splits))
            return
        for self.first, (train, _) in enumerate(self.splits):
            counts = np.bincount(train, minlength=self.X.shape[0]).astype(self.X.dtype)
            weights = counts if self.sample_weight is None else counts * self.sample_weight
            self._call(target, columns, self.model._settings(self.X, weights, options))

    def _call(self, target: Matrix, columns: int, options: dict[str, Any], **folds: Any) -> None:
        model, user = self.model, ffi.new_handle(self)
        penalties = {name: ffi.from_buffer("double[]", values) for name, values in (("l2", self.l2), ("l1", self.l1))
                     if name == "l2" or values.any()}
        asked = struct("kiln_path_options", count=len(self.order), take=_take, user=user, **penalties, **folds)

        def path(made: Any, report: Any) -> Any:
            return lib.kiln_path(model._algorithm.encode(), made, self.X.pointer, target.pointer, columns, asked)

        solve(self.X.device, path, [], model._filled(options), verbose=model.verbose, callback=getattr(model, "callback", None))


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


def _as_folds(splits: _Splits, rows: int) -> Any:
    """The split that holds each row out, if it is one and the others train on it; else None."""
    folds = np.full(rows, -1, np.int32)
    for number, (train, test) in enumerate(splits):
        trained = np.bincount(train, minlength=rows)
        if (folds[test] >= 0).any() or len(train) + len(test) != rows or trained.max() > 1 or trained[test].any():
            return None
        folds[test] = number
    return folds if (folds >= 0).all() else None


# ------------------------------------------------------------------------------------------------------ estimators


class _Validated(_Linear):
    """Chooses the penalty by what the rows held out say of the models, and trains with it on all rows."""

    cv: Any
    scoring: Any

    def _judged(self, eta: Any) -> Any:
        """What a scorer asks of a model, from the linear predictors of the rows held out."""
        raise NotImplementedError

    def _splits(self, X: Matrix, y: Any, groups: Any) -> _Splits:
        y = to_host(y)
        made = check_cv(5 if self.cv is None else self.cv, y, classifier=is_classifier(self))
        splits = [(np.asarray(train), np.asarray(test)) for train, test in made.split(np.zeros((X.shape[0], 1)), y, groups)]
        if not splits or any(len(test) == 0 for _, test in splits):
            raise ValueError(f"The 'cv' parameter of {type(self).__name__} makes no splits, or one that holds no row out.")
        return splits

    def _search(self, X: Matrix, y: Any, target: Matrix, sample_weight: Any, columns: int, penalties: Any, splits: _Splits,
                **options: Any) -> _Search:
        """penalties: a row for each value, its l2, its l1, and the block that it belongs to."""
        if getattr(running, "checkpoint", None) is not None and getattr(running, "watch", None) is None:
            raise NotImplementedError(f"a checkpoint does not keep the folds of {type(self).__name__}; `kiln ... --cv --checkpoint` does")
        y = np.asarray(to_host(y))
        search = _Search(self, X, y, sample_weight, splits, np.asarray(penalties, np.float64), options.get("offset"))
        search.run(target, columns, **options)
        if search.unconverged:
            warnings.warn(f"{type(self).__name__}: {search.unconverged} of {search.scores.size} models of the cross-validation did not "
                          "converge; raise max_iter, or tol", ConvergenceWarning, stacklevel=3)
        if not np.isfinite(search.scores).any():
            raise ValueError(f"{type(self).__name__}: no score is a number")
        return search


def _scorer(model: Any) -> Any:
    """What `scoring` names; None is the model's own score."""
    if not (model.scoring is None or isinstance(model.scoring, str) or callable(model.scoring)):
        raise ValueError(f"The 'scoring' parameter of {type(model).__name__} must be one name or one callable, no list or dict of them. "
                         f"Got {model.scoring!r} instead.")
    return check_scoring(model, scoring=model.scoring)


def _best(scores: Any) -> int:
    """The place of the best mean over the first axis; the first of several that are equal."""
    means = scores.mean(axis=0)
    return int(np.argmax(np.where(np.isnan(means), -np.inf, means)))


def _count(model: Any, name: str) -> int:
    """A parameter that is a list of numbers or how many: the latter, else 0."""
    value = getattr(model, name)
    if isinstance(value, (int, np.integer)) and value < 1:
        raise ValueError(f"The '{name}' parameter of {type(model).__name__} must be a list of numbers, or how many. Got {value!r} instead.")
    return int(value) if isinstance(value, (int, np.integer)) else 0


def _numbers(model: Any, name: str, most: float = np.inf, *, positive: bool = False) -> Any:
    """A parameter that is a list of numbers from 0 on, or above it, as an array; one number is a list of one."""
    values = np.atleast_1d(np.asarray(getattr(model, name), np.float64))
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= most)).all() or (positive and not values.all()):
        raise ValueError(f"The '{name}' parameter of {type(model).__name__} must be a list of numbers in the range "
                         f"{'(' if positive else '['}0, {most:g}]. Got {getattr(model, name)!r} instead.")
    return values


class RidgeCV(_Validated, _Regressor):
    """Least squares with the L2 penalty that cross-validation finds best: minimises ||X w + b - y||^2 + alpha ||w||^2.

    alphas: the penalties to try. cv: a number of folds, None: 5 (not scikit-learn's leave-one-out), a splitter of scikit-learn's, or a
    list of pairs of train and test rows. scoring: one name or one callable, called with the rows' predictions and X=None, and with
    sample_weight where fit has it; None: R2. Folds whose test rows are all rows once share one Gram matrix for all folds and penalties.

    alpha_: the best; best_score_: its mean score; scores_ (n_folds, n_alphas): of the rows held out. coef_ and intercept_ are of all rows.
    """

    _algorithm = "linreg"

    def __init__(self, alphas: Any = (0.1, 1.0, 10.0), *, fit_intercept: bool = True, standardize: bool = False, scoring: Any = None,
                 cv: Any = None, solver: str = "auto", tol: float | None = None, max_iter: int | None = None, device: Any = "auto",
                 verbose: int = 0) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.scoring = scoring
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.verbose = verbose

    def _judged(self, eta: Any) -> Any:
        return _Means(eta[:, 0] if self._single else eta)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Chooses alpha and trains on X (n_samples, n_features), dense or sparse, and y (n_samples,) or (n_samples, n_targets). groups:
        of the rows, for splitters that keep them together."""
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        alphas = _numbers(self, "alphas")
        self._single = np.ndim(y) == 1
        columns = 1 if self._single else np.shape(y)[1]
        X = matrix(X, self._place(X, columns))
        target = beside(X, y)
        options = {"tolerance": self.tol, "max_iterations": self.max_iter}
        penalties = np.column_stack([alphas, np.zeros((len(alphas), 2))])
        self.scores_ = self._search(X, y, target, sample_weight, columns, penalties, self._splits(X, y, groups), **options).scores
        best = _best(self.scores_)
        self.alpha_, self.best_score_ = float(alphas[best]), float(self.scores_[:, best].mean())
        self._train(X, target, sample_weight, columns, l2=self.alpha_, **options)
        self._shape(y)
        return self


class LogisticRegressionCV(_Validated, _Logistic):
    """Logistic regression with the penalty that cross-validation finds best; LogisticRegression has the objective and the solvers.

    Cs: the values of C to try, or how many between 1e-4 and 1e4, equally far apart by their logarithms. l1_ratios: to try with each of
    them. cv: a number of folds, with equal shares of the classes, None: 5, a splitter of scikit-learn's, or a list of pairs of train and
    test rows. scoring: as RidgeCV's; None: accuracy; also what score() returns. refit: train with the best on all rows; else coef_,
    intercept_, C_ and l1_ratio_ are means over what is best in each fold, and there is no report_. class_weight="balanced" is of all rows.

    C_, l1_ratio_: the best; best_score_: their mean score; Cs_, l1_ratios_: the values tried; scores_ (n_folds, n_l1_ratios, n_cs): of the
    rows held out. As scikit-learn's with use_legacy_attributes=False.
    """

    def __init__(self, *, Cs: Any = 10, l1_ratios: Any = (0.0,), fit_intercept: bool = True, cv: Any = None, scoring: Any = None,
                 standardize: bool = False, class_weight: Any = None, solver: str = "auto", tol: float | None = None,
                 max_iter: int | None = None, refit: bool = True, device: Any = "auto", verbose: int = 0) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.refit = refit
        self.device = device
        self.verbose = verbose

    def _judged(self, eta: Any) -> Any:
        return _Predictors(eta, self.classes_)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Chooses C and l1_ratio and trains on X (n_samples, n_features), dense or sparse, and the classes y (n_samples,). groups: of the
        rows, for splitters that keep them together."""
        X, y = self._checked(X, y)
        sample_weight = self._weights(sample_weight, X)
        labels, columns, options = self._classified(X, y, sample_weight)
        count = _count(self, "Cs")
        self.Cs_ = np.logspace(-4, 4, count) if count else _numbers(self, "Cs", positive=True)
        self.l1_ratios_ = _numbers(self, "l1_ratios", 1)
        X = matrix(X, self._place(X, columns))
        target = beside(X, labels)
        grid = [(C, ratio) for C in self.Cs_ for ratio in self.l1_ratios_]
        penalties = [((1 - ratio) / C, ratio / C, i % len(self.l1_ratios_)) for i, (C, ratio) in enumerate(grid)]
        search = self._search(X, y, target, sample_weight, columns, penalties, self._splits(X, y, groups), **options)
        self.scores_ = search.scores.reshape(-1, len(self.Cs_), len(self.l1_ratios_)).swapaxes(1, 2)
        best = _best(search.scores)
        self.best_score_ = float(search.scores[:, best].mean())
        if self.refit:
            (self.C_, self.l1_ratio_), (l2, l1, _) = (float(value) for value in grid[best]), penalties[best]
            self._train(X, target, sample_weight, columns, l2=l2 if l2 > 0 else lib.KILN_NONE, l1=l1, **options)
        else:
            self._take_means(X, search, np.array(grid))
        self._show()
        return self

    def _take_means(self, X: Matrix, search: _Search, grid: Any) -> None:
        """W, b, C_ and l1_ratio_ as means over the best of each fold."""
        _, values, weights, biases = zip(*search.best)
        self.C_, self.l1_ratio_ = (float(value) for value in grid[list(values)].mean(axis=0))
        self._weight = np.mean(weights, axis=0, dtype=np.float64).astype(X.dtype)
        self._bias = np.mean(biases, axis=0, dtype=np.float64).astype(X.dtype) if self.fit_intercept else np.zeros(
            (1, self._weight.shape[1]), X.dtype)
        self.device_ = X.device.name
        for name in ("n_iter_", "converged_", "objective_", "report_"):  # of a fit before this one
            self.__dict__.pop(name, None)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of these rows, by `scoring`."""
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(_scorer(self)(self, X, y, **weights))


class _Generalized(_Validated, GeneralizedLinearRegressor):
    """alpha and l1_ratio of generalised linear models."""

    l1_ratio: Any

    def _judged(self, eta: Any) -> Any:
        where, settings = device("cpu"), self._family()
        means = matrix(as_columns(eta.copy(), np.float64), where)
        loss = struct("kiln_loss", kind=lib.KILN_LOSS_GLM, **{name: settings[name] for name in ("family", "link", "parameter", "link_power")})
        where.call(lib.kiln_loss_mean, means.pointer, loss, means.pointer)
        return _Responses(means.numpy()[:, 0], self)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, *, groups: Any = None) -> Any:
        """Chooses alpha and l1_ratio and trains on X (n_samples, n_features), dense or sparse, and y (n_samples,). offset (n_samples,):
        what is added to X w + b. groups: of the rows, for splitters that keep them together."""
        X, y = self._checked(X, y, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight.astype(np.float64)
        ratios = _numbers(self, "l1_ratio", 1)
        X = matrix(X, self._place(X))
        splits = self._splits(X, y, groups)
        grid = [(alpha, ratio, block) for block, ratio in enumerate(ratios) for alpha in self._alphas(X, y, weights, block, ratio)]
        trained = float(np.mean([weights[train].sum() for train, _ in splits]))
        penalties = [(alpha * (1 - ratio) * trained, alpha * ratio * trained, block) for alpha, ratio, block in grid]
        target, options = beside(X, y), {**self._family(), "offset": offset}
        search = self._search(X, y, target, sample_weight, 1, penalties, splits, **options)
        best = _best(search.scores)
        alphas = np.array([alpha for alpha, _, _ in grid]).reshape(len(ratios), -1)
        self.alphas_ = alphas if (alphas != alphas[0]).any() else alphas[0]
        (self.alpha_, self.l1_ratio_), total = (float(value) for value in grid[best][:2]), float(weights.sum())
        self.best_score_ = float(search.scores[:, best].mean())
        self._train(X, target, sample_weight, 1, l2=self.alpha_ * (1 - self.l1_ratio_) * total, l1=self.alpha_ * self.l1_ratio_ * total,
                    **options)
        self._shape(y)
        self._keep_scores(search.scores.reshape(-1, len(ratios), alphas.shape[1]))
        return self

    def _keep_scores(self, scores: Any) -> None:
        """scores: (n_folds, n_l1_ratio, n_alphas)."""
        self.scores_ = scores

    def _alphas(self, X: Matrix, y: Any, weights: Any, block: int, ratio: float) -> Any:
        """The values of alpha for this l1_ratio, from the largest."""
        raise NotImplementedError


class GeneralizedLinearRegressorCV(_Generalized):
    """A generalised linear model with the penalty that cross-validation finds best; GeneralizedLinearRegressor has the objective.

    alphas: the values to try, or how many between 1e-4 and 1e2, equally far apart by their logarithms. l1_ratio: one, or a list to try.
    cv, scoring: as RidgeCV's; None: D2. In a fold the penalty is alpha times the weight that folds train on in the mean.

    alpha_, l1_ratio_: the best; best_score_: their mean score; alphas_; scores_ (n_folds, n_l1_ratio, n_alphas): of the rows held out.
    """

    def __init__(self, family: str = "gaussian", *, link: str = "default", parameter: float = 0.0, link_power: float = 0.0,
                 alphas: Any = 10, l1_ratio: Any = 0.0, fit_intercept: bool = True, cv: Any = None, scoring: Any = None,
                 standardize: bool = False, tol: float | None = None, max_iter: int | None = None, device: Any = "auto",
                 verbose: int = 0) -> None:
        self.family = family
        self.link = link
        self.parameter = parameter
        self.link_power = link_power
        self.alphas = alphas
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.verbose = verbose

    def _alphas(self, X: Matrix, y: Any, weights: Any, block: int, ratio: float) -> Any:
        count = _count(self, "alphas")
        return np.logspace(2, -4, count) if count else np.sort(_numbers(self, "alphas"))[::-1]


class ElasticNetCV(_Generalized, ElasticNet):
    """Least squares with the L1 and L2 penalties that cross-validation finds best; ElasticNet has the objective.

    l1_ratio: one, or a list to try. alphas: the values to try, or how many, of which the largest is the least that makes all coefficients
    0, and the smallest eps times that. cv: as RidgeCV's. In a fold the penalty is alpha times the weight that folds train on in the mean.

    alpha_, l1_ratio_: the best, by the mean squared error; alphas_ (n_alphas,): from the largest, and mse_path_ (n_alphas, n_folds): of
    the rows held out; with several l1_ratio both have a first axis for these, but alphas_ only where it was not given. best_score_: minus the least mean of mse_path_.
    """

    scoring = "neg_mean_squared_error"

    def __init__(self, *, l1_ratio: Any = 0.5, eps: float = 1e-3, alphas: Any = 100, fit_intercept: bool = True, cv: Any = None,
                 tol: float | None = None, max_iter: int | None = None, device: Any = "auto", verbose: int = 0) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.verbose = verbose

    def _alphas(self, X: Matrix, y: Any, weights: Any, block: int, ratio: float) -> Any:
        count = _count(self, "alphas")
        if not count:
            return np.sort(_numbers(self, "alphas"))[::-1]
        if ratio == 0:
            raise ValueError("With l1_ratio=0 no alpha makes all coefficients 0: the 'alphas' parameter must be a list.")
        y = np.asarray(to_host(y), np.float64).reshape(-1)
        residual = weights * (y - np.average(y, weights=weights) if self.fit_intercept else y)
        gradient = Matrix.empty(X.device, (X.shape[1], 1), X.dtype)
        X.device.call(lib.kiln_multiply, gradient.pointer, 1, lib.KILN_TRANSPOSED, X.pointer, beside(X, residual).pointer, 0, ffi.NULL)
        largest = float(np.abs(gradient.numpy()).max()) / weights.sum() / ratio
        if not np.isfinite(largest):
            raise ValueError("X or y contains NaN or infinity, or products of theirs overflow.")
        least = float(np.finfo(np.float64).resolution)  # for y that X says nothing of, as scikit-learn has it
        return np.full(count, least) if largest <= least else np.geomspace(largest, largest * self.eps, count)

    def _keep_scores(self, scores: Any) -> None:
        paths = -np.moveaxis(scores, 0, -1)
        self.mse_path_ = paths if len(paths) > 1 else paths[0]


class LassoCV(ElasticNetCV):
    """Least squares with the L1 penalty that cross-validation finds best: ElasticNetCV with l1_ratio=1."""

    l1_ratio = 1.0

    def __init__(self, *, eps: float = 1e-3, alphas: Any = 100, fit_intercept: bool = True, cv: Any = None, tol: float | None = None,
                 max_iter: int | None = None, device: Any = "auto", verbose: int = 0) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.verbose = verbose
