"""Linear models whose penalty cross-validation chooses."""
from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from ._arrays import Matrix, matrix
from ._base import beside, host_vector, naming
from ._cv_judged import (NEGATIVE_ERRORS, Formula, Means, Predictors, Responses, area, negative_log_loss,
                         r2_of_rows, scorer)
from ._cv_search import Search, Splits
from ._dlpack import to_host
from ._library import ArgumentError, ffi, lib
from ._linear import ElasticNet, GeneralizedLinearRegressor, Ridge, _Linear, _Logistic, _Regressor
from ._metrics import accuracy, explained_deviance
from ._positive import as_one, fit_positive, scores_of_folds
from ._solve import running
from ._words import warn

if TYPE_CHECKING:
    from typing_extensions import Self


class _Validated(_Linear):
    """Chooses the penalty by what the rows held out say of the models, and trains with it on all rows."""

    cv: Any
    scoring: Any
    _formulas: dict[str | None, Formula] = {}  # of the usual scorings

    def _judged(self, eta: Any, offset: Any) -> Any:
        """What a scorer asks of a model, from the linear predictors of the rows held out."""
        raise NotImplementedError

    def _measured(self, eta: Any, y: Any, weights: Any, offset: Any, **view: int) -> float | None:
        """A usual score of these linear predictors, where they lie; None: its scorer has it."""
        formula = (self._formulas.get(self.scoring) if self.scoring is None or isinstance(self.scoring, str)
                   else None)
        return None if formula is None else formula(eta, y, weights, **view)

    def _splits(self, X: Matrix, y: Any, groups: Any) -> Splits:
        y = to_host(y)
        made = check_cv(5 if self.cv is None else self.cv, y, classifier=is_classifier(self))
        splits = [(np.asarray(train), np.asarray(test))
                  for train, test in made.split(np.zeros((X.shape[0], 1)), y,
                                               None if groups is None else host_vector(groups))]
        if not splits or any(len(test) == 0 for _, test in splits):
            raise ValueError(f"The 'cv' parameter of {type(self).__name__} makes no splits, or one that "
                             "holds no row out.")
        return splits

    def _search(self, X: Matrix, y: Any, target: Matrix, sample_weight: Any, columns: int, penalties: Any,
                splits: Splits, level: float | None = None, **options: Any) -> Search:
        """penalties: a row for each value, its l2, its l1, and the block that it belongs to. level: the
        weight on which the penalties are to be taken in each fold; None: on its own."""
        kept = getattr(running, "checkpoint", None) if getattr(running, "watch", None) is None else None
        y = np.asarray(to_host(y))
        search = Search(self, X, y, sample_weight, splits, np.asarray(penalties, np.float64),
                        options.get("offset"), columns)
        search.run(target, kept, level, **options)
        self._tell_unfinished(search.unconverged, search.scores.size)
        self._judge_scores(search.scores)
        return search

    def _tell_unfinished(self, unfinished: int, count: int) -> None:
        if unfinished:
            warn(f"{type(self).__name__}: {unfinished} of {count} models of the cross-validation did not "
                 "converge; raise max_iter, or tol", ConvergenceWarning)

    def _judge_scores(self, scores: Any) -> None:
        """A value whose score is no number in one fold is not chosen: an error where that leaves none. One
        fold may decide alone."""
        name, bad = type(self).__name__, ~np.isfinite(scores)
        folds, values = [int(f) for f in np.flatnonzero(bad.any(axis=1))], int(bad.any(axis=0).sum())
        if not getattr(self, "refit", True):  # each fold has its own best
            lost = [int(f) for f in np.flatnonzero(bad.all(axis=1))]
            if lost:
                raise ValueError(f"{name}: no penalty has a finite score in the folds {lost} (from 0)")
            return
        if bad.any(axis=0).all():
            raise ValueError(f"{name}: no penalty has a finite score in every fold (folds from 0: {folds})")
        if values:
            warn(f"{name}: scores are no finite numbers in the folds {folds} (from 0), so that {values} of "
                 f"{scores.shape[1]} penalties "
                 "cannot be chosen")
        sizes = np.abs(scores[:, _best(scores)])
        middle = float(np.median(sizes))
        if len(sizes) > 2 and middle > 0 and sizes.max() > 1e6 * middle:
            warn(f"{name}: the score of fold {int(sizes.argmax())} (from 0) is {sizes.max():.3g} in size, "
                 f"{middle:.3g} in the median: that "
                 "fold decides alone")


def kept_apart(weights: Any, splits: Splits, share: float) -> bool:
    """Whether the weights that the splits train on differ by more than this share."""
    totals = [float(weights[train].sum()) for train, _ in splits]
    return max(totals) - min(totals) > share * max(totals)


def _best(scores: Any) -> int:
    """The place of the best mean over the first axis, of those that are numbers in all folds; the first of
    several that are equal."""
    means = scores.mean(axis=0)
    return int(np.argmax(np.where(np.isfinite(means), means, -np.inf)))


def _count(model: Any, name: str) -> int:
    """A parameter that is a list of numbers or how many: the latter, else 0."""
    value = getattr(model, name)
    if isinstance(value, (int, np.integer)) and value < 1:
        raise ValueError(f"The '{name}' parameter of {type(model).__name__} must be a list of numbers, or "
                         f"how many. Got {value!r} instead.")
    return int(value) if isinstance(value, (int, np.integer)) else 0


def _numbers(model: Any, name: str, most: float = np.inf, given: Any = None, *,
             positive: bool = False) -> Any:
    """A parameter that is a list of numbers from 0 on, or above it, as an array; one number is a list of one.
    given: what it stands for."""
    values = np.atleast_1d(np.asarray(getattr(model, name) if given is None else given, np.float64))
    if values.ndim != 1 or not values.size or not ((values >= 0)
                                                   & (values <= most)).all() or (positive
                                                                                 and not values.all()):
        raise ValueError(f"The '{name}' parameter of {type(model).__name__} must be a list of numbers in the "
                         "range "
                         f"{'(' if positive else '['}0, {most:g}]. Got {getattr(model, name)!r} instead.")
    return values


class RidgeCV(_Validated, _Regressor):
    """Least squares with the L2 penalty that cross-validation finds best: minimises ||X w + b - y||^2 + alpha
    ||w||^2.

    alphas: the penalties to try, above 0 without folds. cv: None leaves out one row at a time, as
    scikit-learn does, for up to 4,096 rows or columns; else a number of folds, a splitter of scikit-learn's,
    or a list of pairs of train and test rows. scoring: one name or one callable, called with the rows'
    predictions and X=None, and with sample_weight where fit has it; None: R2, without folds minus the mean of
    the weighted squared errors. Folds whose test rows are all rows once share one Gram matrix for all folds
    and penalties.

    alpha_: the best, with alpha_per_target, which is for cv=None, one for each target; best_score_: its mean
    score; scores_ (n_folds, n_alphas), without folds (1, n_alphas) or (1, n_targets, n_alphas): of the rows
    held out; cv_results_, with store_cv_results, which is for cv=None, (n_samples, n_alphas) or (n_samples,
    n_targets, n_alphas): their squared errors times weights, or with scoring their predictions. coef_ and
    intercept_ are of all rows.

    gcv_mode is taken and changes nothing: the shape of X says which Gram matrix is decomposed.
    """

    _algorithm = "linreg"
    _names = {"l2": "alphas"}
    _formulas = {None: r2_of_rows, "r2": r2_of_rows, **NEGATIVE_ERRORS}
    _single: bool
    _flat = True

    def __init__(self, alphas: Any = (0.1, 1.0, 10.0), *, fit_intercept: bool = True, scoring: Any = None,
                 cv: Any = None, gcv_mode: str | None = None, store_cv_results: bool = False,
                 alpha_per_target: bool = False, standardize: bool = False, solver: str = "auto",
                 tol: float | None = None, max_iter: int | None = None, device: Any = "auto",
                 verbose: int = 0) -> None:
        self.alphas, self.fit_intercept, self.scoring, self.cv, self.gcv_mode = (
            alphas, fit_intercept, scoring, cv, gcv_mode)
        self.store_cv_results, self.alpha_per_target, self.standardize = (
            store_cv_results, alpha_per_target, standardize)
        self.solver, self.tol, self.max_iter, self.device, self.verbose = (
            solver, tol, max_iter, device, verbose)

    def _judged(self, eta: Any, offset: Any) -> Any:
        return Means(eta[:, 0] if self._single else eta)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Chooses alpha and trains on X (n_samples, n_features), dense or sparse, and y (n_samples,) or
        (n_samples, n_targets). groups: of the rows, for splitters that keep them together."""
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        alphas = _numbers(self, "alphas", positive=self.cv is None)
        self._single = np.ndim(y) == 1
        columns = 1 if self._single else np.shape(y)[1]
        X = matrix(X, self._place(X, columns))
        self.__dict__.pop("cv_results_", None)
        if self.cv is None:
            return self._leave_one_out(X, y, sample_weight, alphas)
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ValueError(f"{name}=True of RidgeCV is for cv=None, which leaves out one row at a "
                                 "time; scores_ has the score of each penalty in each fold.")
        target = beside(X, y)
        options = {"tolerance": self.tol, "max_iterations": self.max_iter}
        penalties = np.column_stack([alphas, np.zeros((len(alphas), 2))])
        self.scores_ = self._search(X, y, target, sample_weight, columns, penalties,
                                    self._splits(X, y, groups), **options).scores
        best = _best(self.scores_)
        self.alpha_, self.best_score_ = float(alphas[best]), float(self.scores_[:, best].mean())
        self._shape(y, *self._train(X, target, sample_weight, columns, l2=self.alpha_, **options))
        return self

    def _leave_one_out(self, X: Matrix, y: Any, sample_weight: Any, alphas: Any) -> Self:
        """Chooses alpha by each row in turn, and trains on all."""
        from ._leave_one_out import leave_one_out

        if self.standardize:
            raise ValueError("standardize=True of RidgeCV is for folds, cv=5: without a row the columns have "
                             "other variances.")
        home = np.asarray(to_host(y))
        with naming(self, X):
            found = leave_one_out(self, X, home, sample_weight, alphas)
        if self.store_cv_results:
            results = np.moveaxis(found.results, 0, -1)
            self.cv_results_ = (results[:, 0] if self._single else results).astype(X.dtype)
        each = found.scores.ndim == 2 and found.scores.shape[1] > 1
        scores = found.scores if each else found.scores.reshape(1, -1)
        if not each:
            self._judge_scores(scores)
        best = [_best(column[None]) for column in found.scores.T] if each else [_best(scores)]
        self.alpha_ = alphas[best] if each else float(alphas[best[0]])
        self.best_score_ = (found.scores[best, np.arange(len(best))] if each else float(scores[0, best[0]]))
        self.scores_ = found.scores.T[None] if each else scores
        if not each:
            self._shape(y, *self._train(X, beside(X, y), sample_weight, found.targets, l2=self.alpha_,
                                        tolerance=self.tol, max_iterations=self.max_iter))
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # _keep_report() has them again
            options = {name: getattr(self, name) for name in ("fit_intercept", "max_iter", "tol", "solver",
                                                              "device", "verbose")}
            model = Ridge(self.alpha_, **options).fit(X, home, sample_weight)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.device_, self._kept, self._told = model.device_, None, {}
        self._keep_report(model.report_, np.asarray(model.coef_).dtype == np.float32)
        return self


class LogisticRegressionCV(_Validated, _Logistic):
    """Logistic regression with the penalty that cross-validation finds best; LogisticRegression has the
    objective and the solvers.

    Cs: the values of C to try, or how many between 1e-4 and 1e4, equally far apart by their logarithms.
    l1_ratios: to try with each of them. cv: a number of folds, with equal shares of the classes, None: 5, a
    splitter of scikit-learn's, or a list of pairs of train and test rows. scoring: as RidgeCV's; None:
    accuracy; also what score() returns. refit: train with the best on all rows; else coef_, intercept_, C_
    and l1_ratio_ are means over what is best in each fold, and there is no report_. class_weight="balanced"
    is of all rows.

    C_, l1_ratio_: the best; best_score_: their mean score; Cs_, l1_ratios_: the values tried; scores_
    (n_folds, n_l1_ratios, n_cs): of the rows held out. As scikit-learn's with use_legacy_attributes=False;
    True is refused. penalty, dual, random_state, intercept_scaling and n_jobs: as LogisticRegression's.
    """

    _formulas = {None: accuracy, "accuracy": accuracy, "neg_log_loss": negative_log_loss, "roc_auc": area}

    _names = {"l2": "Cs", "l1": "Cs"}
    _only = {"use_legacy_attributes": ((False,),
                                       "take use_legacy_attributes=False, with which C_, l1_ratio_ and "
                                       "scores_ are arrays")}

    def __init__(self, *, Cs: Any = 10, l1_ratios: Any = (0.0,), fit_intercept: bool = True, cv: Any = None,
                 dual: bool = False, penalty: str | None = "deprecated", scoring: Any = None,
                 solver: str = "auto", tol: float | None = None, max_iter: int | None = None,
                 class_weight: Any = None, n_jobs: int | None = None, verbose: int = 0, refit: bool = True,
                 intercept_scaling: float = 1.0, random_state: Any = None,
                 use_legacy_attributes: bool = False, standardize: bool = False,
                 device: Any = "auto") -> None:
        self.Cs, self.l1_ratios, self.fit_intercept, self.cv, self.dual, self.penalty = (
            Cs, l1_ratios, fit_intercept, cv, dual, penalty)
        self.scoring, self.solver, self.tol, self.max_iter, self.class_weight = (
            scoring, solver, tol, max_iter, class_weight)
        self.n_jobs, self.verbose, self.refit, self.intercept_scaling = (
            n_jobs, verbose, refit, intercept_scaling)
        self.random_state, self.use_legacy_attributes, self.standardize = (
            random_state, use_legacy_attributes, standardize)
        self.device = device

    def _judged(self, eta: Any, offset: Any) -> Any:
        return Predictors(eta, self.classes_)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Chooses C and l1_ratio and trains on X (n_samples, n_features), dense or sparse, and the classes y
        (n_samples,). groups: of the rows, for splitters that keep them together."""
        X, y = self._checked(X, y)
        sample_weight = self._weights(sample_weight, X)
        labels, columns, options = self._classified(X, y, sample_weight)
        count = _count(self, "Cs")
        self.Cs_ = np.logspace(-4, 4, count) if count else _numbers(self, "Cs", positive=True)
        if self.penalty is None:
            raise ValueError("Without a penalty there is none to choose: "
                             "kiln.LogisticRegression(C=numpy.inf) trains without one.")
        self.l1_ratios_ = _numbers(self, "l1_ratios", 1, self._ratio(self.l1_ratios))
        X = matrix(X, self._place(X, columns))
        target = beside(X, labels)
        grid = [(C, ratio) for C in self.Cs_ for ratio in self.l1_ratios_]
        penalties = [((1 - ratio) / C, ratio / C, i % len(self.l1_ratios_))
                     for i, (C, ratio) in enumerate(grid)]
        search = self._search(X, y, target, sample_weight, columns, penalties, self._splits(X, y, groups),
                              **options)
        self.scores_ = search.scores.reshape(-1, len(self.Cs_), len(self.l1_ratios_)).swapaxes(1, 2)
        best = _best(search.scores)
        self.best_score_ = float(search.scores[:, best].mean())
        if self.refit:
            (self.C_, self.l1_ratio_), (l2, l1, _) = (float(value) for value in grid[best]), penalties[best]
            self._show(*self._train(X, target, sample_weight, columns, l2=l2, l1=l1, **options))
        else:
            self._take_means(X, search, np.array(grid))
        return self

    def _take_means(self, X: Matrix, search: Search, grid: Any) -> None:
        """W, b, C_ and l1_ratio_ as means over the best of each fold."""
        values, weights, biases = search.best_models()
        self.C_, self.l1_ratio_ = (float(value) for value in grid[values].mean(axis=0))
        self._show(weights.mean(axis=0).astype(X.dtype), biases.mean(axis=0).astype(X.dtype))
        self.device_ = X.device.name
        self._forget_report()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of these rows, by `scoring`."""
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        self._true_codes(y)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(self)(self, X, y, **weights))


class _Generalized(_Validated, GeneralizedLinearRegressor):
    """alpha and l1_ratio of generalised linear models."""

    _also = {"l1_ratio": (list,)}
    l1_ratio: Any

    _names = {"l2": "alphas", "l1": "alphas"}

    def _judged(self, eta: Any, offset: Any) -> Any:
        # scores of means that cannot be are no numbers
        return Responses(self._means(eta, quiet=True), self, eta, offset)

    def _measured(self, eta: Any, y: Any, weights: Any, offset: Any, **view: int) -> float | None:
        if self.scoring is None:
            return explained_deviance(self._loss_fields(), eta, y, weights, offset, **view)
        return super()._measured(eta, y, weights, offset, **view)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, *,
            groups: Any = None) -> Self:
        """Chooses alpha and l1_ratio and trains on X (n_samples, n_features), dense or sparse, and y
        (n_samples,). offset (n_samples,): what is added to X w + b. groups: of the rows, for splitters that
        keep them together."""
        X, y = self._checked(X, y, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight.astype(np.float64)
        ratios = _numbers(self, "l1_ratio", 1)
        X = matrix(X, self._place(X))
        splits = self._splits(X, y, groups)
        grid = [(alpha, ratio, block) for block, ratio in enumerate(ratios)
                for alpha in self._alphas(X, y, weights, block, ratio)]
        trained = float(np.mean([weights[train].sum() for train, _ in splits]))
        penalties = [(alpha * (1 - ratio) * trained, alpha * ratio * trained, block)
                     for alpha, ratio, block in grid]
        target, options = beside(X, y), {**self._family(), "offset": offset}
        self._offset, self._total, self._fitted = (offset is not None, float(weights.sum()),
                                                   self._distribution())
        # folds of 10,000 rows that differ by one share their work
        apart = kept_apart(weights, splits, 1e-4 if sample_weight is None else 1e-9)
        level = trained if apart else None
        search = self._search(X, y, target, sample_weight, 1, penalties, splits, level, **options)
        best = _best(search.scores)
        alphas = np.array([alpha for alpha, _, _ in grid]).reshape(len(ratios), -1)
        self.alphas_ = alphas if (alphas != alphas[0]).any() else alphas[0]
        (self.alpha_, self.l1_ratio_), total = (float(value) for value in grid[best][:2]), self._total
        self.best_score_ = float(search.scores[:, best].mean())
        self._shape(y, *self._train(X, target, sample_weight, 1, l2=self.alpha_ * (1 - self.l1_ratio_)
                                    * total,
                                    l1=self.alpha_ * self.l1_ratio_ * total, **options))
        self._keep_scores(search.scores.reshape(-1, len(ratios), alphas.shape[1]))
        return self

    def _keep_scores(self, scores: Any) -> None:
        """scores: (n_folds, n_l1_ratio, n_alphas)."""
        self.scores_ = scores

    def _alphas(self, X: Matrix, y: Any, weights: Any, block: int, ratio: float) -> Any:
        """The values of alpha for this l1_ratio, from the largest."""
        raise NotImplementedError


class GeneralizedLinearRegressorCV(_Generalized):
    """A generalised linear model with the penalty that cross-validation finds best;
    GeneralizedLinearRegressor has the objective.

    alphas: the values to try, or how many between 1e-4 and 1e2, equally far apart by their logarithms.
    l1_ratio: one, or a list to try. cv, scoring: as RidgeCV's; None: D2. The penalty of a fold is alpha times
    the weight that it trains on; of folds whose numbers of rows differ by less than 1e-4 of them, the mean.

    alpha_, l1_ratio_: the best; best_score_: their mean score; alphas_; scores_ (n_folds, n_l1_ratio,
    n_alphas): of the rows held out.
    """

    def __init__(self, family: str = "gaussian", *, link: str = "default", parameter: float = 0.0,
                 link_power: float = 0.0, alphas: Any = 10, l1_ratio: Any = 0.0, fit_intercept: bool = True,
                 cv: Any = None, scoring: Any = None, standardize: bool = False, tol: float | None = None,
                 max_iter: int | None = None, device: Any = "auto", verbose: int = 0) -> None:
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
    """Least squares with the L1 and L2 penalties that cross-validation finds best; ElasticNet has the
    objective.

    l1_ratio: one, or a list to try. alphas: the values to try, or how many, of which the largest is the least
    that makes all coefficients 0, and the smallest eps times that. cv: as RidgeCV's. The penalty of a fold is
    alpha times the weight that it trains on; of folds whose numbers of rows differ by less than 1e-4 of them,
    the mean.

    alpha_, l1_ratio_: the best, by the mean squared error; alphas_ (n_alphas,): from the largest, and
    mse_path_ (n_alphas, n_folds): of the rows held out; with several l1_ratio both have a first axis for
    these, but alphas_ only where it was not given. best_score_: minus the least mean of mse_path_.
    positive: coefficients are from 0 on, of up to 4,096 columns; each fold has one Gram matrix.
    precompute, copy_X, random_state, selection: as ElasticNet's; n_jobs: threads.
    """

    scoring = "neg_mean_squared_error"
    _formulas = {"r2": r2_of_rows, **NEGATIVE_ERRORS}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def __init__(self, *, l1_ratio: Any = 0.5, eps: float = 1e-3, alphas: Any = 100,
                 fit_intercept: bool = True, precompute: Any = "auto", max_iter: int | None = None,
                 tol: float | None = None, cv: Any = None, copy_X: bool = True, verbose: int = 0,
                 n_jobs: int | None = None, positive: bool = False, random_state: Any = None,
                 selection: str = "cyclic", device: Any = "auto") -> None:
        self.l1_ratio, self.eps, self.alphas, self.fit_intercept, self.precompute = (
            l1_ratio, eps, alphas, fit_intercept, precompute)
        self.max_iter, self.tol, self.cv, self.copy_X, self.verbose, self.n_jobs = (
            max_iter, tol, cv, copy_X, verbose, n_jobs)
        self.positive, self.random_state, self.selection, self.device = (
            positive, random_state, selection, device)

    def _alphas(self, X: Matrix, y: Any, weights: Any, block: int, ratio: float) -> Any:
        count = _count(self, "alphas")
        if not count:
            return np.sort(_numbers(self, "alphas"))[::-1]
        if ratio == 0:
            raise ValueError("With l1_ratio=0 no alpha makes all coefficients 0: the 'alphas' parameter must "
                             "be a list.")
        y = np.asarray(to_host(y), np.float64).reshape(-1)
        residual = weights * (y - np.average(y, weights=weights) if self.fit_intercept else y)
        gradient = Matrix.empty(X.device, (X.shape[1], 1), X.dtype)
        X.device.call(lib.kiln_multiply, gradient.pointer, 1, lib.KILN_TRANSPOSED, X.pointer,
                      beside(X, residual).pointer, 0, ffi.NULL)
        gains = gradient.numpy() if self.positive else np.abs(gradient.numpy())
        largest = float(gains.max()) / weights.sum() / ratio
        if not np.isfinite(largest):
            raise ValueError("X or y contains NaN or infinity, or products of theirs overflow.")
        least = float(np.finfo(np.float64).resolution)  # for y that X says nothing of, as scikit-learn has it
        return np.full(count, least) if largest <= least else np.geomspace(largest, largest * self.eps, count)

    def _search(self, X: Matrix, y: Any, target: Matrix, sample_weight: Any, columns: int, penalties: Any,
                splits: Splits, level: float | None = None, **options: Any) -> Any:
        if not self.positive:
            return super()._search(X, y, target, sample_weight, columns, penalties, splits, level, **options)
        if options.get("offset") is not None:
            raise ArgumentError("positive=True has no offset: subtract it from y")
        with naming(self, X):
            scores, unfinished = scores_of_folds(self, X, y, sample_weight, penalties, splits, level)
        self._tell_unfinished(unfinished, scores.size)
        self._judge_scores(scores)
        return SimpleNamespace(scores=scores)

    def _train(self, X: Any, y: Any, sample_weight: Any, columns: int, **options: Any) -> tuple[Any, Any]:
        if not self.positive:
            return super()._train(X, y, sample_weight, columns, **options)
        W, b, reports = fit_positive(self, X, y, sample_weight, options["l1"], options["l2"])
        self._keep_report(as_one(reports), W.dtype == np.float32)
        return W, b

    def _keep_scores(self, scores: Any) -> None:
        paths = -np.moveaxis(scores, 0, -1)
        self.mse_path_ = paths if len(paths) > 1 else paths[0]


class LassoCV(ElasticNetCV):
    """Least squares with the L1 penalty that cross-validation finds best: ElasticNetCV with l1_ratio=1."""

    l1_ratio = 1.0

    def __init__(self, *, eps: float = 1e-3, alphas: Any = 100, fit_intercept: bool = True,
                 precompute: Any = "auto", max_iter: int | None = None, tol: float | None = None,
                 copy_X: bool = True, cv: Any = None, verbose: int = 0, n_jobs: int | None = None,
                 positive: bool = False, random_state: Any = None, selection: str = "cyclic",
                 device: Any = "auto") -> None:
        self.eps, self.alphas, self.fit_intercept, self.precompute, self.max_iter, self.tol = (
            eps, alphas, fit_intercept, precompute, max_iter, tol)
        self.copy_X, self.cv, self.verbose, self.n_jobs, self.positive = copy_X, cv, verbose, n_jobs, positive
        self.random_state, self.selection, self.device = random_state, selection, device
