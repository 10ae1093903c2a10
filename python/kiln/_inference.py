"""Statistics of fitted linear models, which libkiln computes (kiln/inference.h): here they are asked for and
shown."""
from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import Matrix, matrix
from ._base import as_columns, beside, check_fitted, host_vector
from ._extras import needed
from ._library import ArgumentError, DataError, check, ffi, lib, struct, text
from ._words import convergence, warn

_KINDS = {"nonrobust": lib.KILN_ERRORS_MODEL, "HC0": lib.KILN_ERRORS_HC0, "HC1": lib.KILN_ERRORS_HC1,
          "HC2": lib.KILN_ERRORS_HC2, "HC3": lib.KILN_ERRORS_HC3, "cluster": lib.KILN_ERRORS_CLUSTER}
_RESIDUALS = ("mean", "response", "pearson", "deviance", "leverage", "standardized", "cooks_distance")


class Inference:
    """Statistics of a model at its optimum without a penalty, on the data that it was trained on:
    ``model.inference(X, y)`` makes them.

    Coefficients stand in the order of the columns, the intercept last. Student's t is the distribution of
    tests and intervals where the dispersion is estimated, the normal distribution where it is known.

    Attributes
    ----------
    names : list of str
    params, bse, tvalues, pvalues : arrays (n_coefficients,)
        Coefficients, standard errors, their quotients, probabilities of both tails. A column that depends on
        those before it has coefficient 0 and NaN; all errors are NaN where the dispersion is to be estimated
        and there are no more rows than parameters.
    figures : dict
        Every figure by its name in kiln/inference.h: "log_likelihood", "dispersion", ...
    distance : float
        How many standard errors the coefficients are from the optimum on these data, next to 0 on those of
        the fit; above 0.1 a warning says so.
    nobs, df_model, df_resid, scale, llf, aic, bic, deviance, null_deviance, pearson_chi2 : floats
        scale is the dispersion. aic and bic count it as a parameter where it is estimated, as R does;
        figures["aic_of_means"] and figures["bic_of_means"] do not, as statsmodels.
    rsquared, rsquared_adj, fvalue, f_pvalue : floats
        Of least squares with an intercept, else NaN. F is of plain errors, whatever cov_type is.
    use_t : bool
    cov_type : str
    """

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, *,
                 cov_type: str = "nonrobust", groups: Any = None) -> None:
        cov_type = {kind.lower(): kind for kind in _KINDS}.get(str(cov_type).lower(), cov_type)
        if cov_type not in _KINDS:
            raise ArgumentError(f"cov_type must be one of {list(_KINDS)}, got {cov_type!r}")
        if (groups is not None) != (cov_type == "cluster"):
            raise ArgumentError("groups belong to cov_type='cluster', which needs them")
        if not hasattr(model, "_inferred_loss"):
            raise ArgumentError(f"a {type(model).__name__} has no statistics: linear models of kiln have")
        check_fitted(model)
        _refuse_other_data(model, sample_weight, offset)
        X = model._validate(X, reset=False)
        sample_weight = model._weights(sample_weight, X)
        self._X = operand = matrix(X, model._place(X))
        self._operands = {"y": beside(operand, model._inferred_target(y)),
                          "weights": None if sample_weight is None else beside(operand, sample_weight),
                          "offset": None if offset is None else beside(operand, offset)}
        fields = model._inferred_loss()
        self._loss = struct("kiln_loss", **fields, **{name: part.pointer for name, part
                                                      in self._operands.items() if part is not None})
        options = {"errors": _KINDS[cov_type]}
        if groups is not None:
            options.update(_group_fields(groups, operand.shape[0]))
        W = matrix(as_columns(model._weight, operand.dtype), operand.device)
        b = (matrix(np.reshape(model._bias, (1, 1)).astype(operand.dtype), operand.device)
             if model.fit_intercept else None)
        made = ffi.new("kiln_inference **")
        self._call(lib.kiln_inference_of, made, W.pointer, ffi.NULL if b is None else b.pointer,
                   operand.pointer, self._loss, struct("kiln_inference_options", **options))
        self._made = ffi.gc(made[0], lib.kiln_inference_free)
        self._model = model
        self._know(model, cov_type)

    def _call(self, function: Any, *arguments: Any) -> None:
        self._X.device.call(function, *arguments)

    def _know(self, model: Any, cov_type: str) -> None:
        """What does not need the library any more."""
        self.cov_type, self.title = cov_type, model._inferred_title()
        self.converged: bool | None = getattr(getattr(model, "report_", None), "converged", None)
        self.figures: dict[str, float] = {}
        while name := lib.kiln_inference_name(self._made, len(self.figures)):
            self.figures[text(name)] = float(lib.kiln_inference_value(self._made, name))
        names = getattr(model, "feature_names_in_", None)
        self.names = [str(name) for name in names] if names is not None else [
            f"x{j}" for j in range(model.n_features_in_)]
        self.names += ["(intercept)"] * model.fit_intercept
        self.params, self.bse, self.tvalues, self.pvalues, _, _ = self._columns(0.95)
        if self.distance > 0.1:
            warn(f"the coefficients are up to {self.distance:.3g} standard errors from the best ones for "
                 "these data, and statistics are those of the best: give X, y, sample_weight and offset of "
                 "fit(), or fit until it has converged", convergence())

    def _columns(self, level: float) -> Any:
        """value, error, statistic, p, low, high of all coefficients."""
        row, rows = struct("kiln_coefficient"), []
        for i in range(lib.kiln_inference_count(self._made)):
            check(lib.kiln_inference_coefficient(row, self._made, i, level))
            rows.append((row.value, row.error, row.statistic, row.p, row.low, row.high, row.dependent))
        *columns, dependent = np.array(rows).T
        self._dependent = dependent > 0
        return np.array(columns)

    # ------------------------------------------------------------------------------------------ figures

    nobs = property(lambda self: self.figures["rows"])
    df_model = property(lambda self: self.figures["model_degrees"])
    df_resid = property(lambda self: self.figures["residual_degrees"])
    scale = property(lambda self: self.figures["dispersion"])
    llf = property(lambda self: self.figures["log_likelihood"])
    aic = property(lambda self: self.figures["aic"])
    bic = property(lambda self: self.figures["bic"])
    deviance = property(lambda self: self.figures["deviance"])
    null_deviance = property(lambda self: self.figures["null_deviance"])
    pearson_chi2 = property(lambda self: self.figures["pearson"])
    distance = property(lambda self: self.figures["distance"])
    rsquared = property(lambda self: self.figures.get("r2", math.nan))
    rsquared_adj = property(lambda self: self.figures.get("r2_adjusted", math.nan))
    fvalue = property(lambda self: self.figures.get("f", math.nan))
    f_pvalue = property(lambda self: self.figures.get("f_p", math.nan))
    use_t = property(lambda self: not math.isinf(self.figures["test_degrees"]))

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Intervals (n_coefficients, 2) that hold 1 - alpha."""
        return self._columns(_level(alpha))[4:].T

    def exp_coef(self, alpha: float = 0.05) -> Any:
        """exp of the coefficients and of their intervals (n_coefficients, 3): factors of the mean under a log
        link, odds ratios under a logit."""
        columns = self._columns(_level(alpha))
        return np.exp(columns[[0, 4, 5]].T)

    def cov_params(self) -> Any:
        """The covariance (n_coefficients, n_coefficients) of the estimates."""
        count = lib.kiln_inference_count(self._made)
        made = np.empty((count, count))
        check(lib.kiln_inference_covariance(ffi.cast("double *", made.ctypes.data), self._made))
        return made

    # --------------------------------------------------------------------------------------------- rows

    def residuals(self) -> dict[str, Any]:
        """Each row has "mean", and the residuals "response", "pearson", "deviance", "standardized" (Pearson's
        over its standard deviation), with "leverage" and "cooks_distance"."""
        made = Matrix.empty(self._X.device, (self._X.shape[0], len(_RESIDUALS)), self._X.dtype)
        self._call(lib.kiln_inference_residuals, made.pointer, self._made, self._X.pointer, self._loss)
        return dict(zip(_RESIDUALS, made.numpy().T.copy()))

    def get_prediction(self, X: Any, offset: Any = None, *, alpha: float = 0.05) -> Prediction:
        """Means of new rows with their standard errors, and intervals that hold 1 - alpha: those of the
        linear predictor through the link, so that they stay in the link's range. offset (n_samples,): needed
        where fit() had one, zeros for none."""
        if self._operands["offset"] is not None and offset is None:
            raise ArgumentError("the model was fitted with an offset: get_prediction() needs the rows' "
                                "offset too, zeros for none")
        operand = matrix(self._model._validate(X, reset=False), self._X.device, self._X.dtype)
        made = Matrix.empty(operand.device, (operand.shape[0], 6), operand.dtype)
        added = None if offset is None else beside(operand, offset)
        self._call(lib.kiln_inference_predict, made.pointer, self._made, operand.pointer,
                   ffi.NULL if added is None else added.pointer, _level(alpha))
        linear, se_linear, mean, se_mean, low, high = made.numpy().T.copy()
        return Prediction(mean, se_mean, linear, se_linear, low, high)

    def compare(self, smaller: Inference) -> Comparison:
        """Tests a model nested in this one against it: the F test where the dispersion is estimated, else
        that of the deviances' difference, and the likelihood-ratio test."""
        if not isinstance(smaller, Inference):
            raise ArgumentError(f"compare takes a kiln.Inference of the smaller model, got a "
                                f"{type(smaller).__name__}")
        made = struct("kiln_comparison")
        check(lib.kiln_inference_compare(made, smaller._made, self._made))
        return Comparison(made.degrees, made.under, made.deviance, made.statistic, made.p, made.ratio,
                          made.ratio_p)

    def summary(self, alpha: float = 0.05) -> Summary:
        """The table of coefficients with the model's figures: as text, as HTML in notebooks, `.frame`."""
        return Summary(self, alpha)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        return (f"Inference({self.title}: {self.nobs:,.0f} rows, {len(self.params)} coefficients, cov_type="
                f"{self.cov_type!r}; summary() shows them)")

    def __reduce__(self) -> Any:
        raise TypeError("an Inference lives with its data: pickle its summary().frame or figures")


@dataclass(frozen=True)
class Prediction:
    """Predictions with their errors; se_mean by the delta method."""

    mean: Any
    se_mean: Any
    linear: Any
    se_linear: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class Comparison:
    """A test between nested models: `statistic` is F with `degrees` and `under`, or chi square with
    `degrees` where `under` is infinite."""

    degrees: float
    under: float
    deviance: float
    statistic: float
    p: float
    likelihood_ratio: float
    likelihood_ratio_p: float


class Summary:
    """The table of a model's coefficients and its figures."""

    def __init__(self, inference: Inference, alpha: float) -> None:
        self._of = inference
        self._sides = (f"[{alpha / 2:.6g}", f"{1 - alpha / 2:.6g}]")
        self._columns = inference._columns(_level(alpha))

    @property
    def frame(self) -> Any:
        """A pandas DataFrame, a row each coefficient."""
        pandas = needed("pandas", "a frame of a summary")
        statistic = "t" if self._of.use_t else "z"
        return pandas.DataFrame(dict(zip(("coef", "std err", statistic, f"P>|{statistic}|", *self._sides),
                                         self._columns)), index=self._of.names)

    def _figures(self) -> list[tuple[str, str]]:
        of = self._of
        pairs = [("Rows", f"{of.nobs:,.0f}"), ("Log-likelihood", f"{of.llf:.6g}"),
                 ("Residual degrees", f"{of.df_resid:,.0f}"), ("AIC", f"{of.aic:.6g}"),
                 ("Model degrees", f"{of.df_model:,.0f}"), ("BIC", f"{of.bic:.6g}"),
                 ("Dispersion", f"{of.scale:.6g}"), ("Deviance", f"{of.deviance:.6g}"),
                 ("Errors", of.cov_type), ("Null deviance", f"{of.null_deviance:.6g}"),
                 ("Converged", {True: "yes", False: "no", None: "not known"}[of.converged]),
                 ("Pearson chi2", f"{of.pearson_chi2:.6g}")]
        if "r2" in of.figures:
            pairs += [("R2", f"{of.rsquared:.6g}"), ("F", f"{of.fvalue:.6g}"),
                      ("Adjusted R2", f"{of.rsquared_adj:.6g}"), ("P > F", f"{of.f_pvalue:.3g}")]
        if "groups" in of.figures:
            pairs += [("Groups", f"{of.figures['groups']:,.0f}"), ("", "")]
        return pairs

    def _head(self) -> tuple[str, ...]:
        statistic = "t" if self._of.use_t else "z"
        return "", "coef", "std err", statistic, f"P>|{statistic}|", *self._sides

    def _rows(self) -> list[tuple[str, ...]]:
        return [(name, f"{value:.6g}", *(("", "", "depends on", "columns", "before it") if dependent else
                                         (f"{error:.6g}", f"{ratio:.3f}", f"{p:.3g}", f"{low:.6g}",
                                          f"{high:.6g}")))
                for name, (value, error, ratio, p, low, high), dependent in zip(
                    self._of.names, self._columns.T, self._of._dependent)]

    def as_text(self) -> str:
        """Lines of a fixed width."""
        rows = self._rows()
        first = min(max(16, *(len(row[0]) for row in rows)), 40)
        line = [f"{row[0][:first]:<{first}}" + "".join(f"{cell:>13}" for cell in row[1:])
                for row in (self._head(), *rows)]
        width = first + 78
        half, pairs = width // 2 - 1, self._figures()
        cells = [f"{name + ':' if name else '':<18}{value:>{half - 18}}" for name, value in pairs]
        figures = [f"{left}  {right}" for left, right in zip(cells[::2], cells[1::2])]
        return "\n".join([self._of.title.center(width).rstrip(), "=" * width, *figures, "=" * width, line[0],
                          "-" * width, *line[1:], "=" * width])

    def as_html(self) -> str:
        """Two tables."""
        def row(cells: tuple[str, ...], kind: str = "td") -> str:
            inside = "".join(f"<{kind if i else 'th'}>{html.escape(cell)}</{kind if i else 'th'}>"
                             for i, cell in enumerate(cells))
            return f"<tr>{inside}</tr>"

        pairs = self._figures()
        figures = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td><th>{html.escape(c)}</th>"
                          f"<td>{html.escape(d)}</td></tr>"
                          for (a, b), (c, d) in zip(pairs[::2], pairs[1::2]))
        body = "".join(row(cells) for cells in self._rows())
        return (f"<table><caption>{html.escape(self._of.title)}</caption>{figures}</table>"
                f"<table>{row(self._head(), 'th')}{body}</table>")

    _repr_html_ = as_html

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__


def _refuse_other_data(model: Any, sample_weight: Any, offset: Any) -> None:
    """Statistics are those of the optimum, which a fit with other weights or another offset has elsewhere."""
    name = type(model).__name__
    if getattr(model, "_offset", False) and offset is None:
        raise ArgumentError(f"this {name} was fitted with an offset: inference() needs the same offset")
    if not getattr(model, "_offset", False) and offset is not None:
        raise ArgumentError(f"this {name} was fitted without an offset: inference() takes none")
    if model._had_weights() and sample_weight is None:
        raise ArgumentError(f"this {name} was fitted with sample_weight: inference() needs the same weights")


def _level(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise ArgumentError(f"alpha must be between 0 and 1, got {alpha!r}")
    return 1 - alpha


def _group_fields(groups: Any, rows: int) -> dict[str, Any]:
    """The options' fields: any labels, one for each row."""
    given = host_vector(groups)
    absent = [one is None for one in given] if given.dtype == object else False
    if len(missing := np.flatnonzero((given != given) | absent)):  # NaN alone is not itself
        raise DataError(f"the group of row {missing[0]} (from 0) is missing")
    labels, places = np.unique(given, return_inverse=True)
    places = np.ascontiguousarray(places.ravel(), np.int64)
    if len(places) != rows:
        raise ArgumentError(f"groups has {len(places)} entries, X {rows} rows")
    return {"groups": ffi.from_buffer("int64_t[]", places), "group_count": len(labels)}
