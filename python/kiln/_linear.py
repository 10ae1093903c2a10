"""Linear models: least squares, logistic regression, generalised linear models, support vector machines."""
from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (assert_all_finite, check_array, check_consistent_length,
                                      check_is_fitted, column_or_1d)

from ._arrays import Matrix, affine, device, matrix, refuse_disguised
from ._base import Estimator, as_columns, beside, check_fitted, host_vector, not_negative, row_weights
from ._dlpack import on_cuda, to_host
from ._joint import alone
from ._library import ArgumentError, DataError, ffi, lib, struct, text
from ._metrics import accuracy, explained_deviance, r2
from ._rows import linear
from ._solve import Report, algorithm_options, choice, solve, together
from ._sufficient import Sums
from ._words import warn

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._inference import Inference


_SMALL = 65536  # entries of X up to which a step more costs nothing that anybody sees
_DECOMPOSED = 1 << 23  # multiplications of a singular value decomposition that nobody waits for
_OF_SMALL = {"logreg": 1e-9, "svm": 1e-9, "glm": 1e-10}  # tolerances there: a tenth of the library's


class _Linear(Estimator):
    """X W + b, as coef_ and intercept_ are now: whoever changes them changes what is predicted, scored and
    saved."""

    fit_intercept: bool
    coef_: Any
    intercept_: Any
    _peers: tuple[str, ...] = ()  # scikit-learn's solvers, which have the same optimum: "auto" here

    @property
    def _weight(self) -> Any:
        """W (n_features, columns) of coef_, without a copy where that is as fit() left it."""
        coef = self.coef_.toarray() if hasattr(self.coef_, "toarray") else np.asarray(self.coef_)
        coef = coef if coef.dtype in (np.float32, np.float64) else coef.astype(np.float64)
        return coef.reshape(-1, 1) if coef.ndim == 1 else coef.T

    @property
    def _bias(self) -> Any:
        """b (1, columns) of intercept_."""
        if self.intercept_ is None:
            raise ArgumentError(f"intercept_ of this {type(self).__name__} is None: set it to 0.0 for no "
                                "intercept.")
        weight = self._weight
        return np.array(np.broadcast_to(np.asarray(self.intercept_, weight.dtype).reshape(1, -1),
                                        (1, weight.shape[1])))

    def _checked(self, X: Any, y: Any, **more: Any) -> Any:
        """X and y as _train() takes them; that X is finite is left to the library, which looks at each number
        anyway."""
        return self._validate(X, y, ensure_all_finite=False, **more)

    def _train(self, X: Any, y: Any, sample_weight: Any, columns: int, **options: Any) -> tuple[Any, Any]:
        """W (n x columns) and b for validated X, y and weights."""
        where = self._place(X, columns)
        operand = matrix(X, where)
        target = beside(operand, y)
        W = Matrix.empty(where, (operand.shape[1], columns), operand.dtype)
        b = Matrix.empty(where, (1, columns), operand.dtype)
        if getattr(self, "warm_start", False) and hasattr(self, "coef_") and self._weight.shape == W.shape:
            W, b = (matrix(np.array(start, operand.dtype), where) for start in (self._weight, self._bias))
            options["warm_start"] = 1
        if options.get("standard_errors"):
            errors = options["standard_errors"] = Matrix.empty(where, (operand.shape[1] + self.fit_intercept,
                                                                       1), operand.dtype)
        self._run([W, b, operand, target], **self._settings(operand, sample_weight, options))
        if options.get("standard_errors"):
            found = errors.numpy()[:, 0]
            self.standard_errors_, self.intercept_error_ = (found[:operand.shape[1]],
                                                            found[-1] if self.fit_intercept else 0.0)
        self.device_ = where.name
        return W.numpy(), b.numpy()

    def _settings(self, X: Matrix, sample_weight: Any, options: dict[str, Any]) -> dict[str, Any]:
        """These options and those that all linear models have, for this X."""
        offset = options.get("offset")
        if options.get("tolerance") is None and X.dtype == np.float64 and X.nnz <= _SMALL:
            small = _OF_SMALL.get(self._algorithm)
            # steps with L1 end just below the tolerance, where Newton's own end far below it
            options = {**options, "tolerance": small / 10 if small and options.get("l1") else small}
        return {**options, "weights": None if sample_weight is None else matrix(sample_weight, X.device),
                "no_intercept": not self.fit_intercept, "offset": None if offset is None
                else beside(X, offset),
                "solver": choice(self._algorithm, "solver", getattr(self, "solver", "auto"), self._peers),
                "standardize": getattr(self, "standardize", False) or None}

    def _predictors(self, X: Any) -> Any:
        """X W + b on the host, an array (n_samples, columns)."""
        X = self._validate(X, reset=False)
        found = linear(self, X)
        return self._linear_predictor(X).numpy() if found is None else found

    def _linear_predictor(self, X: Any) -> Matrix:
        """X W + b of a validated X."""
        where = self._place(X)
        operand = matrix(X, where)
        W = matrix(as_columns(self._weight, operand.dtype), where)
        b = matrix(np.reshape(self._bias, (1, -1)).astype(operand.dtype), where)
        return affine(operand, W.pointer, b.pointer)

    def _inferred_target(self, y: Any) -> Any:
        """y as statistics take it; raises where there are none of this model."""
        raise ArgumentError(f"{type(self).__name__} has no statistics: its loss is no likelihood")

    def _inferred_loss(self) -> dict[str, Any]:
        """kiln_loss's fields."""
        raise NotImplementedError

    def _inferred_title(self) -> str:
        return type(self).__name__

    def _had_weights(self) -> bool:
        """Whether the fit had weights of the rows, as far as is known."""
        try:
            options = json.loads(self._account().get("options", "{}"))
        except ValueError:
            return False
        return isinstance(options, dict) and bool(options.get("weights") or options.get("weights_file"))

    def _refuse_penalty(self, penalised: bool, how: str) -> None:
        if getattr(self, "positive", False):
            raise ArgumentError("standard errors are those of estimates that may have any sign: "
                                "positive=False")
        if penalised:
            raise ArgumentError(f"standard errors are those of estimates without a penalty: {how}")

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        weight, bias = self._weight, self._bias
        return {"W": weight, "b": bias} if self.fit_intercept or bias.any() else {"W": weight}, {}


class _Inferred(_Linear):
    """Models that have statistics, and formulas."""

    _formula: Any = None  # the last fit's, and formulaic's ModelSpec of its right side

    @classmethod
    @alone
    def from_formula(cls, formula: str, data: Any, sample_weight: Any = None, *, offset: Any = None,
                     **parameters: Any) -> Self:
        """Fits by a formula, such as "y ~ a + C(b)", of a pandas frame's columns; a "- 1" leaves the
        intercept out. parameters: those of the class. Methods of the model take such frames, too. It needs
        the package formulaic, whose rules are R's."""
        from . import _formula

        y, matrix, intercept = _formula.parts(formula, data)
        model = cls(**{"fit_intercept": intercept, **parameters})
        more = {} if offset is None else {"offset": offset}
        model.fit(_formula.features(matrix), y, sample_weight, **more)
        model._formula = formula, matrix.model_spec
        return model

    def _validate(self, X: Any, y: Any = "no_validation", **more: Any) -> Any:
        if more.get("reset", True):
            self.__dict__.pop("_formula", None)
        elif self._formula is not None:
            from ._formula import features_of

            X = features_of(self._formula[1], X)
        return super()._validate(X, y, **more)

    def inference(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, *,
                  cov_type: str = "nonrobust", groups: Any = None) -> Inference:
        """Standard errors, tests, intervals, likelihoods and residuals of this model, on the data that it was
        trained on.

        Parameters
        ----------
        X, y, sample_weight, offset : as fit() had them
            Of a model by a formula X may be the frame, with y in it.
        cov_type : {"nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster"}
            How the covariance of the coefficients is estimated.
        groups : array (n_samples,)
            The cluster of each row, by any label, for "cluster".

        Returns
        -------
        kiln.Inference

        Examples
        --------
        >>> import kiln, numpy as np
        >>> X = np.arange(8.0).reshape(-1, 1)
        >>> y = np.array([1, 2, 2, 4, 7, 9, 14, 25])
        >>> model = kiln.GeneralizedLinearRegressor("poisson").fit(X, y)
        >>> model.inference(X, y).bse.round(4)
        array([0.0664, 0.3689])
        """
        from ._inference import Inference

        check_is_fitted(self)
        if y is None:
            if self._formula is None:
                raise ArgumentError("y is missing: the targets that fit() had")
            from ._formula import target_of

            y = target_of(self._formula[0], X)
        return Inference(self, X, y, sample_weight, offset, cov_type=cov_type, groups=groups)


class _Regressor(MultiOutputMixin, RegressorMixin, _Linear):  # type: ignore[misc]
    # whether coef_ has no axis of targets for a y of one column, as scikit-learn's ridge regressions have it
    _flat = False

    def _shape(self, y: Any, W: Any, b: Any) -> None:
        """coef_ and intercept_ as scikit-learn has them: without an axis of targets where y has none."""
        one = np.ndim(y) == 1
        self.coef_ = W[:, 0] if one or (self._flat and W.shape[1] == 1) else W.T
        self.intercept_ = 0.0 if not self.fit_intercept else b[0, 0] if one else b[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2. y and sample_weight may lie on a device."""
        y = self._true_values(X, y)
        if len(y) < 2:
            warn("R2 is not defined with less than two samples", UndefinedMetricWarning)
            return float("nan")
        return r2(self._predict(self._validate(X, reset=False)), y, row_weights(sample_weight, len(y)))

    def _true_values(self, X: Any, y: Any) -> Any:
        """y of score(): finite numbers on the host, as many for each row of X as the model predicts."""
        check_is_fitted(self)
        y = check_array(host_vector(y), ensure_2d=False, dtype="numeric", input_name="y")
        check_consistent_length(X, y)
        targets = 1 if np.ndim(self.coef_) == 1 else np.shape(self.coef_)[0]
        if (1 if y.ndim == 1 else y.shape[1]) != targets:
            raise ValueError(f"y is of shape {y.shape}, but this {type(self).__name__} predicts {targets} "
                             f"target{'s'[:targets > 1]}")
        return y

    def predict(self, X: Any) -> Any:
        """X W + b, or the mean response."""
        check_fitted(self)
        X, vector = self._validate(X, reset=False), np.ndim(self.coef_) == 1
        few = linear(self, X)
        if few is None:
            return self._predict(X).result(vector=vector)
        return few[:, 0] if vector else few


class _SingleTarget(_Regressor):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


class LinearRegression(_Inferred, _Regressor):
    """Least squares: minimises 1/2 ||X w + b - y||^2. If columns depend on each other (with an intercept: the
    centred columns), coef_ is the solution with the least ||w||, as NumPy's lstsq has it.

    solver: "cholesky" of X^T X, preconditioned conjugate gradient "cg", or "auto", the one that suits X;
    scikit-learn's other names mean "auto". tol bounds the relative residual of the normal equations; None:
    1e-12 for float64, 1e-5 for float32. n_jobs: threads. copy_X is taken and changes nothing: X is never
    written to.

    positive=True keeps coefficients at 0 or above, by an active set on the Gram matrix, for up to 4,096
    columns. solver and max_iter change nothing then, rank_ is None, and the model's file does not say how it
    was trained, which `kiln verify` asks for.

    rank_ is the rank of X, which is centred if there is an intercept. It is None if it was not determined:
    with a penalty, where conjugate gradient solved a problem too large for a factor (above 4,096 columns and
    rows on a CPU, 1,024 on a GPU), or where columns are so near to dependent that rounding hides it. There
    is no singular_, as singular values are not computed.
    """

    _algorithm = "linreg"
    _names = {"l2": "alpha of kiln.Ridge"}
    _peers = ("svd", "lsqr", "sparse_cg", "sag", "saga", "lbfgs")

    def __init__(self, *, fit_intercept: bool = True, copy_X: bool = True, tol: float | None = None,
                 n_jobs: int | None = None, positive: bool = False, solver: str = "auto",
                 max_iter: int | None = None, device: Any = "auto", verbose: int = 0) -> None:
        self.fit_intercept, self.copy_X, self.tol, self.n_jobs, self.positive = (
            fit_intercept, copy_X, tol, n_jobs, positive)
        self.solver, self.max_iter, self.device, self.verbose = solver, max_iter, device, verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trains on X (n_samples, n_features), dense or sparse, and y (n_samples,) or (n_samples,
        n_targets)."""
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        if self.positive:
            self._fit_positive(X, y, sample_weight, self._penalty())
            return self
        columns = 1 if np.ndim(y) == 1 else np.shape(y)[1]
        self._shape(y, *self._train(X, y, sample_weight, columns, l2=self._penalty(), tolerance=self.tol,
                                    max_iterations=self.max_iter))
        rank = self.report_.figures.get("rank", float("nan"))
        self.rank_ = int(rank) if rank >= 0 else None
        self._decompose(X, sample_weight)
        return self

    def _fit_positive(self, X: Any, y: Any, sample_weight: Any, l2: Any) -> None:
        """The fit over coefficients from 0 on."""
        from ._positive import as_one, fit_positive

        W, b, reports = fit_positive(self, X, y, sample_weight, 0.0, l2)
        self._shape(y, W, b)
        self._keep_report(as_one(reports), W.dtype == np.float32)
        self.rank_ = None

    def _decompose(self, X: Any, sample_weight: Any) -> None:
        """singular_, where it takes no time that anybody sees."""
        self.__dict__.pop("singular_", None)
        if isinstance(X, np.ndarray) and X.size * min(X.shape) <= _DECOMPOSED:
            if self.fit_intercept:
                X = X - np.average(X, axis=0, weights=sample_weight)
            rows = X if sample_weight is None else X * np.sqrt(sample_weight)[:, None]
            self.singular_ = np.linalg.svd(rows, compute_uv=False)

    def _penalty(self) -> float:
        return 0.0

    def _inferred_target(self, y: Any) -> Any:
        self._refuse_penalty(bool(np.any(np.asarray(self._penalty()) > 0)), "alpha must be 0")
        if np.ndim(host_vector(y)) > 1:
            raise ArgumentError("statistics are of one target: fit and ask for each column of y")
        return y

    def _inferred_loss(self) -> dict[str, Any]:
        return {"kind": lib.KILN_LOSS_SQUARED}

    def _inferred_title(self) -> str:
        return "Least squares"


class Ridge(LinearRegression):
    """Least squares with an L2 penalty: minimises ||X w + b - y||^2 + alpha ||w||^2. standardize
    penalises the coefficients of columns scaled to unit variance; coef_ has those of X itself. alpha: a
    number, or one for each target. solver_: the one that ran.

    random_state and copy_X are taken and change nothing: no solver draws numbers or writes to X. Everything
    else is as in LinearRegression."""

    _names = {"l2": "alpha"}
    _also = {"alpha": (list,)}
    _flat = True
    _sums: Sums  # of partial_fit

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True, copy_X: bool = True,
                 max_iter: int | None = None, tol: float | None = None, solver: str = "auto",
                 positive: bool = False, random_state: Any = None, standardize: bool = False,
                 device: Any = "auto", verbose: int = 0) -> None:
        self.alpha, self.fit_intercept, self.copy_X, self.max_iter, self.tol = (
            alpha, fit_intercept, copy_X, max_iter, tol)
        self.solver, self.positive, self.random_state, self.standardize = (
            solver, positive, random_state, standardize)
        self.device, self.verbose = device, verbose

    def _penalty(self) -> float:
        not_negative(self, "alpha")
        return self.alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trains on X (n_samples, n_features), dense or sparse, and y (n_samples,) or (n_samples,
        n_targets)."""
        self.__dict__.pop("_sums", None)
        if np.ndim(self.alpha) > 0:
            return self._fit_each(X, y, sample_weight)
        super().fit(X, y, sample_weight)
        self.solver_ = self.report_.solver
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Goes on with these rows: coef_ and intercept_ are those of fit on all rows that came so far, each
        of which is looked at once, from sums of n_features^2 numbers. These go with pickles, not with model
        files: after fit() or load(), whose rows are not known any more, it begins anew, with a warning."""
        if self.positive or self.standardize:
            raise ArgumentError("partial_fit knows neither positive=True nor standardize=True")
        first = not hasattr(self, "_sums")
        if first and hasattr(self, "coef_"):
            warn("partial_fit begins anew: fit() and model files keep no sums of the rows so far, as "
                 "partial_fit itself and pickle do")
        X, y = self._checked(X, y, multi_output=True, y_numeric=True, reset=first)
        X = X.numpy() if isinstance(X, Matrix) else X
        targets = as_columns(host_vector(y), X.dtype)
        weights = self._weights(sample_weight, X)
        assert_all_finite(X.data if hasattr(X, "indptr") else X)
        sums = self._sums if not first else Sums(X.shape[1], targets.shape[1], bool(self.fit_intercept))
        if sums.T.shape[1] != targets.shape[1]:
            raise ArgumentError(f"y has {targets.shape[1]} targets, but the first batch had "
                                f"{sums.T.shape[1]}")
        if sums.centred != bool(self.fit_intercept):
            raise ArgumentError("fit_intercept cannot change between calls to partial_fit")
        alphas = self._alphas(targets.shape[1])
        sums = sums.added(X, targets, None if weights is None else host_vector(weights))
        W, b = sums.ridge(alphas)
        self._sums = sums
        self._shape(y, W.astype(X.dtype), b.astype(X.dtype))
        self._forget_report()
        self.rank_, self.solver_, self.device_ = None, "cholesky", "cpu"
        return self

    def _decompose(self, X: Any, sample_weight: Any) -> None:
        """Ridge regressions of scikit-learn have no singular_."""

    def _alphas(self, targets: int) -> Any:
        """alpha as a number for each target."""
        if np.ndim(self.alpha) == 0:
            return np.full(targets, self._penalty(), np.float64)
        alphas = np.asarray(self.alpha, np.float64)
        if alphas.shape not in ((1,), (targets,)):
            raise ValueError(f"The 'alpha' parameter of Ridge must be a number, or one for each of the "
                             f"{targets} targets. Got {alphas.shape} of them.")
        if not (np.isfinite(alphas) & (alphas >= 0)).all():
            raise ArgumentError(f"alpha is {self.alpha}, but must be finite numbers from 0 on")
        return np.broadcast_to(alphas, targets)

    def _fit_each(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """alpha has a number for each target."""
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        targets = as_columns(host_vector(y), X.dtype)
        alphas = self._alphas(targets.shape[1])
        if self.positive:
            self._fit_positive(X, y, sample_weight, np.asarray(self.alpha))
            self.solver_ = self.report_.solver
            return self
        operand = matrix(X, self._place(X, targets.shape[1]))
        each = [clone(self).set_params(alpha=float(alpha)).fit(operand, target, sample_weight)
                for alpha, target in zip(alphas, targets.T)]
        self._shape(y, np.column_stack([one.coef_ for one in each]),
                    np.array([[one.intercept_ for one in each]]))
        self._keep_report(together([one.report_ for one in each]), self.coef_.dtype == np.float32)
        self.rank_, self.solver_, self.device_, self._kept, self._told = (
            None, each[0].solver_, each[0].device_, None, {})
        return self


class GeneralizedLinearRegressor(_Inferred, _SingleTarget):
    """A generalised linear model of any family and link that libkiln has.

    minimises 1/(2 sum s) sum_i s_i d(y_i, mu_i) + alpha (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2), d the
    family's unit deviance, as scikit-learn's regressors do; l1_ratio=1 is the lasso of each family.
    family: "gaussian", "poisson", "gamma", "inverse-gaussian", "binomial" (y a proportion), "tweedie"
    (parameter: the power of its variance), "negative-binomial" (parameter: alpha), "beta"
    (y in (0, 1), parameter: the precision); parameter="estimate" finds it by maximum likelihood, the
    power between 1 and 2, and leaves it in parameter_; link: "default", "identity", "log", "logit", "power"
    (link_power), ... standard_errors=True leaves those of the coefficients in standard_errors_ and
    intercept_error_; alpha must be 0 then. standardize penalises the coefficients of columns scaled to unit
    variance.
    """

    _algorithm = "glm"
    _names = {"l2": "alpha", "l1": "alpha"}
    _also = {"parameter": ("estimate",)}
    _offset = False  # whether the fit had one
    # the distribution of the last fit, whatever the parameters are now
    _fitted: tuple[str, str, float, float] | None = None
    parameter_: float
    _found = "parameter_"
    _total: float  # weight of the rows that it had

    def __init__(self, family: str = "gaussian", *, link: str = "default", parameter: float | str = 0.0,
                 link_power: float = 0.0, alpha: float = 0.0, l1_ratio: float = 0.0,
                 fit_intercept: bool = True, standardize: bool = False, standard_errors: bool = False,
                 warm_start: bool = False, tol: float | None = None, max_iter: int | None = None,
                 device: Any = "auto", verbose: int = 0) -> None:
        self.family = family
        self.l1_ratio = l1_ratio
        self.standardize = standardize
        self.link = link
        self.parameter = parameter
        self.link_power = link_power
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standard_errors = standard_errors
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.verbose = verbose

    def _distribution(self) -> tuple[str, str, float, float]:
        """Family, link, and the parameters of both."""
        parameter = self.parameter_ if self._estimates() else self.parameter
        own = lib.kiln_family_describe(_number(lib.kiln_family_name, 1, self.family)).parameter
        if own.option and parameter == 0:
            raise ArgumentError(f"family={self.family!r} needs parameter=, which is its {text(own.option)}: "
                                f"{text(own.wanted)}, or 'estimate', which finds it")
        for name, value, held in (("parameter", parameter, bool(own.option)),
                                  ("link_power", self.link_power, self.link == "power")):
            if value and not held:
                raise ArgumentError(f"{name}={value!r} has no meaning with " + (
                    "this link: it belongs to link='power'" if name == "link_power" else
                    f"family={self.family!r}: it belongs to 'tweedie', 'negative-binomial' and 'beta'"))
        return self.family, self.link, float(parameter), self.link_power

    def _estimates(self) -> bool:
        """Whether the family's parameter is to be found."""
        return isinstance(getattr(self, "parameter", 0.0), str)

    def _unknown(self) -> tuple[str, str, float, float]:
        """The distribution with a parameter that is to be found."""
        return self.family, self.link, 0.0, self.link_power

    def _estimate(self, X: Matrix, y: Any, sample_weight: Any, options: dict[str, Any]) -> float:
        """The family's parameter with the largest likelihood, of fits with these options."""
        made = ffi.new("double *")
        target = beside(X, y)
        own = self._settings(X, sample_weight, options)
        solve(X.device, lambda *parts: lib.kiln_glm_estimate(made, *parts[:-1]), [X.pointer, target.pointer],
              algorithm_options("glm", own), verbose=self.verbose, callback=getattr(self, "callback", None),
              names=self._vocabulary(), beforehand=True)
        return float(made[0])

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Trains on X (n_samples, n_features), dense or sparse, and y (n_samples,). offset (n_samples,): what
        is added to X w + b, such as the logarithm of an exposure; predict() and score() need one then."""
        X, y = self._checked(X, y, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        total = np.shape(y)[0] if sample_weight is None else float(sample_weight.sum())
        ratio = getattr(self, "l1_ratio", 0.0)
        not_negative(self, "alpha")
        if not 0 <= ratio <= 1:
            raise ValueError(f"The 'l1_ratio' parameter of {type(self).__name__} must be in the range [0, "
                             f"1]. Got {ratio!r} instead.")
        self._total = total
        penalties = {"l2": self.alpha * (1 - ratio) * total, "l1": self.alpha * ratio * total}
        options = {**penalties, "offset": offset}
        distribution = None
        if self._estimates():
            X = matrix(X, self._place(X))
            start = self._unknown()
            found = self._estimate(X, y, sample_weight, {**options, **self._family(start)})
            distribution = start[0], start[1], found, start[3]
        self._shape(y, *self._train(X, y, sample_weight, 1, **options,
                                    standard_errors=getattr(self, "standard_errors", False) or None,
                                    **self._family(distribution)))
        self.__dict__.pop(self._found, None)
        if distribution:
            setattr(self, self._found, distribution[2])
        self._offset, self._fitted = offset is not None, self._distribution()
        return self

    def _family(self, distribution: tuple[str, str, float, float] | None = None) -> dict[str, Any]:
        """The options that say what is fitted, and until when."""
        return {**_fields(distribution or self._distribution()), "tolerance": self.tol,
                "max_iterations": self.max_iter}

    def _of_fit(self) -> tuple[str, str, float, float]:
        """The distribution that coef_ belongs to."""
        return self._fitted or self._distribution()

    def _eta(self, X: Any, offset: Any) -> Any:
        """X w + b + offset (n_samples,), in float64."""
        check_is_fitted(self)
        if self._offset and offset is None:
            raise ValueError(f"this {type(self).__name__} was fitted with an offset: predict() and score() "
                             "need the rows' offset too, zeros "
                             "for none")
        eta = self._predictors(X)[:, 0].astype(np.float64)
        return eta if offset is None else eta + _offsets(offset, len(eta))

    def _inferred_target(self, y: Any) -> Any:
        # of cross-validation alpha_; NaN where a file does not say it
        self._refuse_penalty(getattr(self, "alpha_", getattr(self, "alpha", 0.0)) != 0, "alpha must be 0")
        return y

    def _inferred_loss(self) -> dict[str, Any]:
        return {"kind": lib.KILN_LOSS_GLM, **self._loss_fields()}

    def _inferred_title(self) -> str:
        family, link, parameter, power = self._of_fit()
        known = text(lib.kiln_link_name(self._known().link)) if link == "default" else link
        own = text(option) if (option := self._known().parameter.option) else ""
        shape = f" ({own} {parameter:.6g})" if own else ""
        exponent = f" {power:.6g}" if known == "power" else ""
        return f"Generalised linear model: {family}{shape}, link {known}{exponent}"

    def _loss_fields(self) -> dict[str, Any]:
        """kiln_loss's fields for the family and its link."""
        return _fields(self._of_fit())

    def _loss(self, **more: Any) -> Any:
        return struct("kiln_loss", kind=lib.KILN_LOSS_GLM, **self._loss_fields(), **more)

    def _means(self, eta: Any, *, quiet: bool = False) -> Any:
        """The means at these linear predictors; a warning, unless quiet, where the family cannot have
        them."""
        where = device("cpu")
        means = matrix(as_columns(eta.copy(), np.float64), where)
        where.call(lib.kiln_loss_mean, means.pointer, self._loss(), means.pointer)
        found = means.numpy()[:, 0]
        return found if quiet else self._told_of(found)

    def _told_of(self, found: Any) -> Any:
        """These means, with a warning where the family cannot have them."""
        astray = int((~self._possible(found)).sum())
        if astray:
            name, link = self._of_fit()[:2]
            inside = text(lib.kiln_link_name(self._known().link))
            warn(f"{type(self).__name__}: the link {link!r} gives {astray} of {len(found)} rows a mean that "
                 f"the family {name!r} cannot "
                 f"have; a link such as {inside!r} stays inside")
        return found

    def _known(self) -> Any:
        """What the library's table says of the family."""
        return lib.kiln_family_describe(self._loss_fields()["family"])

    def _possible(self, means: Any) -> Any:
        """Which of these means the family can have."""
        family = self._loss_fields()
        possible = lib.kiln_family_range(family["family"], family["parameter"])
        return np.isfinite(means) & (means >= possible.least) & (means <= possible.most)

    def predict(self, X: Any, offset: Any = None) -> Any:
        """The mean response. offset (n_samples,): needed where fit() had one."""
        if offset is not None or self._offset:
            return self._means(self._eta(X, offset)).astype(self._weight.dtype)
        check_fitted(self)
        X = self._validate(X, reset=False)
        few = linear(self, X, {"kind": lib.KILN_LOSS_GLM, **self._loss_fields()})
        if few is not None:
            return self._told_of(few[:, 0])
        eta = self._linear_predictor(X).numpy()[:, 0].astype(np.float64)
        return self._means(eta).astype(self._weight.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """D2, the share of the deviance from the best intercept alone, with the offset, that the model
        explains: R2 for "gaussian"."""
        y = self._true_values(X, y)
        eta = self._eta(X, offset)
        self._means(eta)  # which warns
        return self._explained(y, eta, row_weights(sample_weight, len(y)), None if offset is None
                               else _offsets(offset, len(y)))

    def _explained(self, y: Any, eta: Any, sample_weight: Any, offset: Any) -> float:
        return explained_deviance(self._loss_fields(), eta, y, sample_weight, offset)

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        tensors, _ = super()._content()
        family, link, parameter, power = self._of_fit()
        if family == "inverse-gaussian" and link == "default":  # which was another one once
            link = "log"
        texts = {"family": family, "link": link}
        if self._offset:
            texts["options"] = json.dumps({"offset_file": "an array"})
        if getattr(self, "standard_errors", False) and hasattr(self, "standard_errors_"):
            errors = np.append(self.standard_errors_, [self.intercept_error_] if self.fit_intercept else [])
            # a column that depends on others has none, and a model file holds finite numbers alone
            tensors["standard_errors"] = np.where(np.isnan(errors), -1,
                                                  errors).astype(self._weight.dtype).reshape(-1, 1)
        return {**tensors, "parameters": np.array([[parameter, power]])}, texts


def _offsets(offset: Any, rows: int) -> Any:
    """offset as a vector of finite numbers in float64, one for each row."""
    refuse_disguised(offset, "offset")
    offset = np.asarray(host_vector(offset), np.float64)
    if offset.shape != (rows,):
        raise ValueError(f"offset must be of shape ({rows},), got {offset.shape}")
    assert_all_finite(offset, input_name="offset")
    return offset


def _fields(distribution: tuple[str, str, float, float]) -> dict[str, Any]:
    """kiln_loss's fields for a family and its link."""
    family, link, parameter, power = distribution
    return {"family": _number(lib.kiln_family_name, 1, family), "link": _number(lib.kiln_link_name, 0, link)
            or None,
            "parameter": parameter, "link_power": power}


@functools.cache
def _number(name: Any, first: int, wanted: str) -> int:
    """The number of the family or link of that name."""
    known: list[str] = []
    while pointer := name(first + len(known)):
        known.append(text(pointer))
    if wanted not in known:
        raise ValueError(f"{'family' if first else 'link'} must be one of {known}, got {wanted!r}")
    return first + known.index(wanted)


class PoissonRegressor(GeneralizedLinearRegressor):
    """Counts: Poisson regression with a log link. solver: "auto"; scikit-learn's names are taken, and mean
    the same."""

    _peers = ("lbfgs", "newton-cholesky")

    def __init__(self, *, alpha: float = 1.0, fit_intercept: bool = True, solver: str = "auto",
                 max_iter: int | None = None, tol: float | None = None, warm_start: bool = False,
                 verbose: int = 0, device: Any = "auto") -> None:
        self.alpha, self.fit_intercept, self.solver, self.max_iter, self.tol = (
            alpha, fit_intercept, solver, max_iter, tol)
        self.warm_start, self.verbose, self.device = warm_start, verbose, device

    def _distribution(self) -> tuple[str, str, float, float]:
        return "poisson", "log", 0.0, 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class GammaRegressor(PoissonRegressor):
    """Positive amounts: gamma regression with a log link."""

    def _distribution(self) -> tuple[str, str, float, float]:
        return "gamma", "log", 0.0, 0.0


class TweedieRegressor(GeneralizedLinearRegressor):
    """power 0: Gaussian, 1: Poisson, 2: gamma, 3: inverse Gaussian; in (1, 2) amounts with many zeros;
    "estimate" finds it there by maximum likelihood, and leaves it in power_. link: "auto", "identity",
    "log"."""

    power_: float
    _found = "power_"
    _names = {"parameter": "power"}
    _also = {"power": ("estimate",)}
    _peers = PoissonRegressor._peers

    def __init__(self, *, power: float | str = 0.0, alpha: float = 1.0, fit_intercept: bool = True,
                 link: str = "auto", solver: str = "auto", max_iter: int | None = None,
                 tol: float | None = None, warm_start: bool = False, verbose: int = 0,
                 device: Any = "auto") -> None:
        self.power, self.alpha, self.fit_intercept, self.link, self.solver = (
            power, alpha, fit_intercept, link, solver)
        self.max_iter, self.tol, self.warm_start, self.verbose, self.device = (
            max_iter, tol, warm_start, verbose, device)

    def _distribution(self) -> tuple[str, str, float, float]:
        if self.link not in ("auto", "identity", "log"):
            raise ValueError(f"The 'link' parameter of TweedieRegressor must be 'auto', 'identity' or 'log'. "
                             f"Got {self.link!r} instead.")
        if isinstance(self.power, str):
            return "tweedie", self._unknown()[1], self.power_, 0.0
        link = self.link if self.link != "auto" else "identity" if self.power <= 0 else "log"
        exact = {0: "gaussian", 1: "poisson", 2: "gamma", 3: "inverse-gaussian"}
        if self.power in exact:
            return exact[int(self.power)], link, 0.0, 0.0
        return "tweedie", link, float(self.power), 0.0

    def _estimates(self) -> bool:
        return isinstance(self.power, str)

    def _unknown(self) -> tuple[str, str, float, float]:
        return "tweedie", "log" if self.link == "auto" else self.link, 0.0, 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.power, str) or self.power > 0
        return tags


class ElasticNet(GeneralizedLinearRegressor):
    """Least squares with L1 and L2 penalties, whose coefficients are exactly 0 where a column says too
    little.

    minimises 1/(2 sum s) sum_i s_i (x_i w + b - y_i)^2 + alpha (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2).
    tol bounds the scaled least subgradient; None: 1e-9 for float64 (1e-11 up to 65,536 entries of X), 1e-4
    for float32. standardize penalises the coefficients of columns scaled to unit variance.
    GeneralizedLinearRegressor has the same for other families.

    dual_gap_: the most that the objective can be above its least value; sparse_coef_: coef_ as a sparse
    matrix.

    precompute, copy_X, random_state and selection are taken and change nothing: they say how scikit-learn's
    coordinate descent finds the same optimum. positive=True keeps coefficients at 0 or above, by an active
    set on the Gram matrix, for up to 4,096 columns; max_iter changes nothing then, and tol is as
    LinearRegression's.
    """

    dual_gap_: Any

    def __init__(self, alpha: float = 1.0, *, l1_ratio: float = 0.5, fit_intercept: bool = True,
                 precompute: Any = False, max_iter: int | None = None, copy_X: bool = True,
                 tol: float | None = None, warm_start: bool = False, positive: bool = False,
                 random_state: Any = None, selection: str = "cyclic", standardize: bool = False,
                 device: Any = "auto", verbose: int = 0) -> None:
        self.alpha, self.l1_ratio, self.fit_intercept, self.precompute, self.max_iter = (
            alpha, l1_ratio, fit_intercept, precompute, max_iter)
        self.copy_X, self.tol, self.warm_start, self.positive, self.random_state = (
            copy_X, tol, warm_start, positive, random_state)
        self.selection, self.standardize, self.device, self.verbose = selection, standardize, device, verbose

    def _distribution(self) -> tuple[str, str, float, float]:
        return "gaussian", "identity", 0.0, 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None,  # type: ignore[override]
            check_input: bool = True, *, offset: Any = None) -> Self:
        """Trains on X (n_samples, n_features), dense or sparse, and y (n_samples,) or (n_samples, n_targets),
        each target by itself. offset (n_samples,): what is added to X w + b of a single target. check_input
        is taken and changes nothing: input is always checked."""
        if self.positive:
            return self._fit_positive(X, y, sample_weight, offset)
        if len(y.shape if hasattr(y, "shape") else np.asarray(y).shape) == 2:
            return self._fit_each(X, y, sample_weight, offset)
        super().fit(X, y, sample_weight, offset)
        return self

    def _fit_each(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Self:
        """y has an axis of targets."""
        if offset is not None:
            raise ArgumentError("offset is for a y of one dimension: fit each target by itself")
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        targets = as_columns(host_vector(y), X.dtype)
        operand, each = matrix(X, self._place(X)), []
        for j in range(targets.shape[1]):
            one = clone(self)
            if self.warm_start and np.shape(getattr(self, "coef_", ())) == (targets.shape[1], X.shape[1]):
                one.coef_ = self.coef_[j]
                one.intercept_ = np.broadcast_to(self.intercept_, targets.shape[1])[j]
            each.append(one.fit(operand, np.ascontiguousarray(targets[:, j]), sample_weight))
        self._take_each(each, y)
        return self

    def _fit_positive(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Self:
        """The fit over coefficients from 0 on."""
        from ._positive import as_one, fit_positive

        if offset is not None:
            raise ArgumentError("positive=True has no offset: subtract it from y")
        start = np.atleast_2d(self.coef_) if self.warm_start and hasattr(self, "coef_") else None
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        self._total = X.shape[0] if sample_weight is None else float(sample_weight.sum())
        self._offset, self._fitted = False, self._distribution()
        l1, l2 = self._strengths()
        if start is not None and start.shape != (1 if np.ndim(y) == 1 else np.shape(y)[1], X.shape[1]):
            start = None
        W, b, reports = fit_positive(self, X, y, sample_weight, l1, l2, start)
        self._shape(y, W, b)
        self._keep_report(as_one(reports), W.dtype == np.float32)
        self._shape_each([report.n_iter for report in reports],
                         np.array([report.optimality_gap for report in reports]) / self._total)
        return self

    def _strengths(self) -> tuple[float, float]:
        """l1 and l2 of the library's objective, for the rows of _total."""
        not_negative(self, "alpha")
        if not 0 <= self.l1_ratio <= 1:
            raise ValueError(f"The 'l1_ratio' parameter of {type(self).__name__} must be in the range [0, "
                             f"1]. Got {self.l1_ratio!r} instead.")
        return self.alpha * self.l1_ratio * self._total, self.alpha * (1 - self.l1_ratio) * self._total

    def _shape_each(self, steps: list[int], gaps: Any) -> None:
        """n_iter_ and dual_gap_ of each target; of one alone as scikit-learn has them."""
        if len(steps) == 1:
            self.coef_, self.n_iter_, self.dual_gap_ = np.reshape(self.coef_, -1), steps[0], float(gaps[0])
        else:
            self.n_iter_, self.dual_gap_ = steps, gaps

    def _take_each(self, each: list[Any], y: Any) -> None:
        """The fitted attributes, from those of each target."""
        self._total, self._fitted = each[0]._total, each[0]._fitted
        self._shape(y, np.column_stack([one.coef_ for one in each]),
                    np.array([[one.intercept_ for one in each]]))
        self.device_, self._kept, self._told = each[0].device_, None, {}
        self._keep_report(together([one.report_ for one in each]), self.coef_.dtype == np.float32)
        self._shape_each([one.n_iter_ for one in each], np.array([one.dual_gap_ for one in each]))

    def _take_report(self, report: Report) -> None:
        super()._take_report(report)
        self.dual_gap_ = report.optimality_gap / self._total

    def predict(self, X: Any, offset: Any = None) -> Any:
        """X w + b, of several targets (n_samples, n_targets). offset (n_samples,): needed where fit() had
        one."""
        check_is_fitted(self)
        if np.ndim(self.coef_) == 1:
            return super().predict(X, offset)
        return self._linear_predictor(self._validate(X, reset=False)).result()

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """R2; of several targets the mean of theirs."""
        check_is_fitted(self)
        if np.ndim(self.coef_) == 1:
            return super().score(X, y, sample_weight, offset)
        y = self._true_values(X, y)
        eta = self._linear_predictor(self._validate(X, reset=False))
        return r2(eta, y, row_weights(sample_weight, len(y)))

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        if np.ndim(self.coef_) == 2:
            raise ArgumentError(f"a model file of {type(self).__name__} has one target: save a model for "
                                "each")
        return super()._content()

    @property
    def sparse_coef_(self) -> Any:
        """coef_ as a sparse matrix, a row for each target."""
        return csr_matrix(self.coef_)

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """kiln.enet_path(X, y, **options): alphas, coefs, dual_gaps."""
        from ._path import enet_path

        return enet_path(X, y, **options)


class Lasso(ElasticNet):
    """Least squares with an L1 penalty: minimises 1/(2 sum s) sum_i s_i (x_i w + b - y_i)^2 + alpha ||w||_1;
    else as ElasticNet."""

    l1_ratio = 1.0

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True, precompute: Any = False,
                 copy_X: bool = True, max_iter: int | None = None, tol: float | None = None,
                 warm_start: bool = False, positive: bool = False, random_state: Any = None,
                 selection: str = "cyclic", standardize: bool = False, device: Any = "auto",
                 verbose: int = 0) -> None:
        self.alpha, self.fit_intercept, self.precompute, self.copy_X, self.max_iter = (
            alpha, fit_intercept, precompute, copy_X, max_iter)
        self.tol, self.warm_start, self.positive, self.random_state, self.selection = (
            tol, warm_start, positive, random_state, selection)
        self.standardize, self.device, self.verbose = standardize, device, verbose


class _Classifier(ClassifierMixin, SparseCoefMixin, _Linear):  # type: ignore[misc]
    C: float
    class_weight: Any
    tol: float | None
    max_iter: int | None

    def _options(self) -> dict[str, Any]:
        """The penalties."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trains on X (n_samples, n_features), dense or sparse, and the classes y (n_samples,), numbers or
        text."""
        X, y = self._checked(X, y)
        sample_weight = self._weights(sample_weight, X)
        labels, columns, options = self._classified(X, y, sample_weight)
        self._show(*self._train(X, labels, sample_weight, columns, **options, **self._options()))
        return self

    def _classified(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, int, dict[str, Any]]:
        """Sets classes_; the labels for the library, the columns of W, and the options besides the
        penalties."""
        self.classes_, labels = _classes(X, y)
        count = len(self.classes_)
        if count < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least 2 classes in the data, but "
                             "the data contains only "
                             f"one class: {self.classes_.tolist()[0]!r}")
        self._class_weights: str | None = None
        if self.class_weight is None:
            factors: Any = None
        else:
            found = compute_class_weight(self.class_weight, classes=self.classes_, y=to_host(y),
                                         sample_weight=sample_weight)
            factors = ffi.new("double[]", found.tolist())
            self._class_weights = ",".join(f"{self._label(label)}={weight!r}"
                                           for label, weight in zip(self.classes_, found.tolist()))
        return labels, 1 if count == 2 else count, {"tolerance": self.tol, "max_iterations": self.max_iter,
                                                    "class_weights": factors}

    def _show(self, W: Any, b: Any) -> None:
        """coef_ and intercept_ as scikit-learn has them."""
        self.coef_ = W.T
        self.intercept_ = b[0] if self.fit_intercept else np.zeros(b.shape[1], b.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy; rows of a class that the model does not know count as wrong. y and sample_weight may
        lie on a device."""
        codes = self._true_codes(y)
        check_consistent_length(X, codes)
        eta = self._linear_predictor(self._validate(X, reset=False))
        return accuracy(eta, codes, row_weights(sample_weight, len(codes)))

    def _true_codes(self, y: Any) -> Any:
        """The places in classes_ of the labels y of score(); -1, with a warning, of those that the model does
        not know."""
        check_is_fitted(self)
        y = column_or_1d(host_vector(y), input_name="y")
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        try:
            codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        except TypeError as error:
            raise ValueError(f"y has labels that cannot be compared with classes_, such as "
                             f"{self.classes_.tolist()[0]!r}") from error
        known = self.classes_[codes] == y
        unknown = len(y) - int(known.sum())
        if unknown:
            warn(f"{type(self).__name__}: {unknown} of {len(y)} rows are of classes that the model does not "
                 "know; they count as wrong")
        return np.where(known, codes, -1)

    def decision_function(self, X: Any) -> Any:
        """X W + b: (n_samples,) for two classes, positive for the second; else (n_samples, n_classes)."""
        check_fitted(self)
        X = self._validate(X, reset=False)
        few = linear(self, X)
        if few is None:
            eta = self._linear_predictor(X)
            return eta.result(vector=eta.shape[1] == 1)
        return few[:, 0] if few.shape[1] == 1 else few

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        check_fitted(self)
        eta = self._predictors(X)
        if isinstance(X, Matrix):  # whose numbers nobody has looked at
            assert_all_finite(eta, input_name="X w + b")
        return _class_of(eta, self.classes_)

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        tensors, texts = super()._content()
        names = [str(name) for name in self.classes_]
        if self._numbered():
            return {**tensors, "classes": self.classes_.astype(np.float64).reshape(-1, 1)}, texts
        return ({**tensors, "classes": np.arange(len(names), dtype=np.float64).reshape(-1, 1)},
                {**texts, "class_names": json.dumps(names)})


    def _numbered(self) -> bool:
        """Whether the classes are numbers that doubles tell apart."""
        kind = self.classes_.dtype.kind
        return kind in "bf" or (kind in "iu" and all(abs(int(label)) < 2**53 for label in self.classes_))

    def _label(self, label: Any) -> str:
        return repr(float(label)) if self._numbered() else str(label)

    def _account(self) -> dict[str, str]:
        texts = super()._account()
        if self._kept is None:
            return texts
        return {**texts,
                "options": json.dumps({**json.loads(texts["options"]), "class_weight": self._class_weights})}


def _class_of(eta: Any, classes: Any) -> Any:
    """The class that each row's linear predictors speak for."""
    return classes[(eta[:, 0] > 0).astype(int) if eta.shape[1] == 1 else eta.argmax(axis=1)]


def _classes(X: Any, y: Any) -> tuple[Any, Any]:
    """The classes in ascending order, and what says each row's to the library."""
    if isinstance(X, Matrix) and on_cuda(y):
        labels, values, count = beside(X, y), ffi.new("double **"), ffi.new("int64_t *")
        X.device.call(lib.kiln_classes, values, count, labels.pointer, 0)
        found = np.array(ffi.unpack(values[0], count[0]))
        lib.kiln_free(values[0])
        if abs(found).max(initial=0) < 2**24:  # which float32 tells apart
            return found.astype(str(y.dtype).removeprefix("torch.")), labels
    y = np.asarray(to_host(y))
    if y.dtype.kind == "O":
        for row, label in enumerate(y.flat):
            if label is None or type(label).__name__ == "NAType" or label != label:
                raise DataError(f"row {row} of y (rows count from 0) has no label: leave out the row")
    if y.dtype.kind != "i" or y.size == 0:
        check_classification_targets(y)
        return np.unique(y, return_inverse=True)
    least, span = int(y.min()), int(y.max()) - int(y.min())
    if span >= 65536:
        return np.unique(y, return_inverse=True)
    places = y.astype(np.int64) - least  # numbers that lie close together need no sorting
    there = np.zeros(span + 1, bool)
    there[places] = True
    return (np.flatnonzero(there) + least).astype(y.dtype), (np.cumsum(there) - 1)[places]


class _Logistic(_Classifier):
    _algorithm = "logreg"
    _names = {"l2": "C", "l1": "C"}
    _also = {"l1_ratio": (None,)}
    _peers = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")
    penalty: str | None

    def _ratio(self, given: Any) -> Any:
        """l1_ratio, or l1_ratios, as `penalty` has them, which scikit-learn lets name them."""
        if self.penalty not in ("deprecated", None, "l1", "l2", "elasticnet"):
            raise ValueError(f"The 'penalty' parameter of {type(self).__name__} must be None, 'l1', 'l2' or "
                             "'elasticnet'. Got "
                             f"{self.penalty!r} instead.")
        return {"l1": 1.0, "l2": 0.0, None: 0.0}.get(self.penalty, 0.0 if given is None else given)

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class (n_samples, n_classes), in the order of classes_."""
        check_fitted(self)
        X = self._validate(X, reset=False)
        few = self._few_probabilities(X)
        return self._predict(X).result() if few is None else few

    def _few_probabilities(self, X: Any) -> Any:
        """Those of a validated X; None unless it is few rows."""
        kind = lib.KILN_LOSS_LOGISTIC if len(self.classes_) == 2 else lib.KILN_LOSS_SOFTMAX
        return linear(self, X, {"kind": kind})

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of predict_proba."""
        check_fitted(self)
        X = self._validate(X, reset=False)
        few = self._few_probabilities(X)
        return np.log(self._predict(X).numpy() if few is None else few)


class LogisticRegression(_Inferred, _Logistic):
    """Binomial or multinomial (softmax) logistic regression, l1_ratio as scikit-learn has it: 0 is L2, 1 is
    L1.

    minimises C sum_i s_i loss_i + (1 - l1_ratio)/2 ||w||^2 + l1_ratio ||w||_1. solver: "newton", "dual"
    (coordinate descent, for sparse X of more columns than rows), or "auto", the one that suits X.
    standardize penalises the coefficients of columns scaled to unit variance. tol bounds the scaled
    gradient; None: 1e-8 for float64 (1e-9 up to 65,536 entries of X), 1e-4 for float32. warm_start: a fit
    begins where the last one ended, if X has as many columns. n_jobs: threads.

    penalty: "l2", "l1" and "elasticnet" say l1_ratio, None is C=inf; scikit-learn's names of solvers mean
    "auto". dual, random_state and intercept_scaling are taken and change nothing: the optimum is the same,
    and the intercept is never penalised, by "liblinear" neither.
    """

    def __init__(self, penalty: str | None = "deprecated", *, C: float = 1.0, l1_ratio: float = 0.0,
                 dual: bool = False, tol: float | None = None, fit_intercept: bool = True,
                 intercept_scaling: float = 1, class_weight: Any = None, random_state: Any = None,
                 solver: str = "auto", max_iter: int | None = None, verbose: int = 0,
                 warm_start: bool = False, n_jobs: int | None = None, standardize: bool = False,
                 device: Any = "auto") -> None:
        self.penalty, self.C, self.l1_ratio, self.dual, self.tol, self.fit_intercept = (
            penalty, C, l1_ratio, dual, tol, fit_intercept)
        self.intercept_scaling, self.class_weight, self.random_state, self.solver = (
            intercept_scaling, class_weight, random_state, solver)
        self.max_iter, self.verbose, self.warm_start, self.n_jobs, self.standardize = (
            max_iter, verbose, warm_start, n_jobs, standardize)
        self.device = device

    def _take_report(self, report: Report) -> None:
        super()._take_report(report)
        # as scikit-learn's, which once had one for each class
        self.n_iter_ = np.array([report.n_iter], np.int32)

    def _options(self) -> dict[str, Any]:
        ratio = self._ratio(self.l1_ratio)
        if not self.C > 0:
            raise ValueError(f"The 'C' parameter of LogisticRegression must be a float in the range (0, "
                             f"inf]. Got {self.C!r} instead.")
        if not 0 <= ratio <= 1:
            raise ValueError(f"The 'l1_ratio' parameter of LogisticRegression must be in the range [0, 1]. "
                             f"Got {self.l1_ratio!r} instead.")
        return ({"l2": 0.0, "l1": 0.0} if self.penalty is None else {"l2": (1 - ratio) / self.C,
                                                                     "l1": ratio / self.C})

    def _inferred_target(self, y: Any) -> Any:
        self._refuse_penalty(any(self._options().values()), "penalty=None or C=inf")
        if len(self.classes_) != 2:
            raise ArgumentError("statistics are of two classes")
        if self.class_weight is not None:
            raise ArgumentError("statistics of a model with class_weight are those of other data; give "
                                "sample_weight")
        places = np.searchsorted(self.classes_, labels := host_vector(y)).clip(0, 1)
        if not np.array_equal(self.classes_[places], labels):
            raise ArgumentError("y has labels that are not in classes_")
        return places.astype(np.float64)

    def _inferred_loss(self) -> dict[str, Any]:
        return {"kind": lib.KILN_LOSS_LOGISTIC}

    def _inferred_title(self) -> str:
        return f"Logistic regression: {self.classes_[1]} against {self.classes_[0]}"


class LinearSVC(_Classifier):
    """Linear support vector classification with the squared hinge, one class against the rest.

    minimises 1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i (x_i . w + b))^2. The intercept is not penalised, as
    scikit-learn's is. solver, standardize: as LogisticRegression's.

    loss="hinge" leaves out the square; an interior point method in float64 fits it, for up to 4,096 columns.
    penalty="l1", with the squared hinge, has ||w||_1 in place of 1/2 ||w||^2; active sets in float64 fit it,
    for up to 2,048 columns. For both, tol bounds the duality gap over the objective (None: 1e-8), max_iter
    and solver change nothing, and the model's file does not say how it was trained, which `kiln verify`
    asks for.

    dual, random_state and intercept_scaling are taken and change nothing: the optimum is the same, and has no
    penalty of the intercept that could be lessened. multi_class="crammer_singer" is refused.
    """

    _algorithm = "svm"
    _names = {"l2": "C"}
    _only = {"penalty": (("l2", "l1"), "take penalty='l2' or penalty='l1'"),
             "loss": (("squared_hinge", "hinge"), "take loss='squared_hinge' or loss='hinge'"),
             "multi_class": (("ovr",), "take multi_class='ovr', or sklearn.svm.LinearSVC")}

    def __init__(self, penalty: str = "l2", loss: str = "squared_hinge", *, dual: Any = "auto",
                 tol: float | None = None, C: float = 1.0, multi_class: str = "ovr",
                 fit_intercept: bool = True, intercept_scaling: float = 1, class_weight: Any = None,
                 verbose: int = 0, random_state: Any = None, max_iter: int | None = None,
                 solver: str = "auto", standardize: bool = False, device: Any = "auto") -> None:
        self.penalty, self.loss, self.dual, self.tol, self.C, self.multi_class = (
            penalty, loss, dual, tol, C, multi_class)
        self.fit_intercept, self.intercept_scaling, self.class_weight = (
            fit_intercept, intercept_scaling, class_weight)
        self.verbose, self.random_state, self.max_iter, self.solver, self.standardize = (
            verbose, random_state, max_iter, solver, standardize)
        self.device = device

    def _options(self) -> dict[str, Any]:
        return {"l2": _penalty_of(self.C, "LinearSVC")}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trains on X (n_samples, n_features), dense or sparse, and the classes y (n_samples,), numbers or
        text."""
        if self.loss != "hinge" and self.penalty != "l1":
            super().fit(X, y, sample_weight)
            return self
        from ._margins import fit_margins, hinge, solve_margins
        from ._margins_l1 import solve_l1

        X, y = self._checked(X, y)
        sample_weight = self._weights(sample_weight, X)
        _penalty_of(self.C, "LinearSVC")
        labels, columns, options = self._classified(X, y, sample_weight)
        codes = (np.searchsorted(self.classes_, labels.numpy()[:, 0]) if isinstance(labels, Matrix)
                 else labels)
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight.astype(np.float64)
        if options["class_weights"] is not None:
            weights = weights * np.array(list(options["class_weights"]))[codes]
        if self.loss == "hinge" and self.penalty == "l1":
            raise ValueError("penalty='l1' of LinearSVC is for loss='squared_hinge', as in scikit-learn.")
        signs = [np.where(codes == (1 if columns == 1 else j), 1.0, -1.0) for j in range(columns)]
        if self.penalty == "l1":
            found = fit_margins(self, X, [(sign, self.C * weights) for sign in signs], solve_l1)
        else:
            found = fit_margins(self, X, [hinge(sign, weights, self.C) for sign in signs], solve_margins)
        self._show(*found)
        return self


class LinearSVR(_SingleTarget):
    """Linear support vector regression with the squared epsilon-insensitive loss.

    minimises 1/2 ||w||^2 + C sum_i s_i max(0, |x_i . w + b - y_i| - epsilon)^2. solver, standardize: as
    LogisticRegression's.

    loss="epsilon_insensitive", scikit-learn's default, leaves out the square; it is fitted like LinearSVC's
    loss="hinge", with the same limits. dual, random_state and intercept_scaling are taken and
    change nothing, as those of LinearSVC.
    """

    _algorithm = "svm"

    _names = {"l2": "C"}
    _fitted: float  # the epsilon of the last fit
    _only = {"loss": (("squared_epsilon_insensitive", "epsilon_insensitive"),
                      "take loss='squared_epsilon_insensitive' or loss='epsilon_insensitive'")}

    def __init__(self, *, epsilon: float = 0.0, tol: float | None = None, C: float = 1.0,
                 loss: str = "squared_epsilon_insensitive", fit_intercept: bool = True,
                 intercept_scaling: float = 1.0, dual: Any = "auto", verbose: int = 0,
                 random_state: Any = None, max_iter: int | None = None, solver: str = "auto",
                 standardize: bool = False, device: Any = "auto") -> None:
        self.epsilon, self.tol, self.C, self.loss, self.fit_intercept = epsilon, tol, C, loss, fit_intercept
        self.intercept_scaling, self.dual, self.verbose, self.random_state = (
            intercept_scaling, dual, verbose, random_state)
        self.max_iter, self.solver, self.standardize, self.device = max_iter, solver, standardize, device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trains on X (n_samples, n_features), dense or sparse, and y (n_samples,)."""
        X, y = self._checked(X, y, y_numeric=True)
        sample_weight = self._weights(sample_weight, X)
        not_negative(self, "epsilon")
        penalty = _penalty_of(self.C, "LinearSVR")
        if self.loss == "epsilon_insensitive":
            from ._margins import fit_margins, insensitive

            target = host_vector(y).astype(np.float64)
            weights = np.ones(len(target)) if sample_weight is None else sample_weight.astype(np.float64)
            found = fit_margins(self, X, [insensitive(target, weights, self.C, self.epsilon)])
        else:
            found = self._train(X, y, sample_weight, 1, regression=1, epsilon=self.epsilon, l2=penalty,
                                tolerance=self.tol, max_iterations=self.max_iter)
        self._shape(y, *found)
        if self.fit_intercept:
            self.intercept_ = np.atleast_1d(self.intercept_)  # as scikit-learn has it
        self._fitted = self.epsilon
        return self

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        tensors, texts = super()._content()
        return {**tensors, "parameters": np.array([[self._fitted, 0.0]])}, texts


def _penalty_of(C: float, name: str) -> float:
    """The l2 for which Kiln's objective is scikit-learn's over 2 C."""
    if not C > 0:
        raise ValueError(f"The 'C' parameter of {name} must be a float in the range (0, inf]. Got {C!r} "
                         "instead.")
    return 1 / (2 * C)
