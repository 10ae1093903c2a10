"""What Kiln's estimators share: scikit-learn's conventions about Kiln's calls."""
from __future__ import annotations

import functools
import inspect
import json
import numbers
from contextlib import contextmanager
from typing import Any, Iterator

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (_check_n_features, _check_sample_weight, check_array, check_is_fitted,
                                      validate_data)

from ._arrays import Device, Matrix, canonical, choose, device, matrix, refuse_disguised, with_threads
from ._columns import as_table
from ._dlpack import as_floats, on_cuda, to_host
from ._frames import all_numbers, as_column, check_names, encoded, has_text, numbers_of, with_names
from ._joint import alone, shared
from ._library import ArgumentError, DataError, c_name, check, ffi, lib, struct
from ._packed import described
from ._rows import is_plain
from ._solve import Report, algorithm_options, finishing, solve, warn_of
from ._told import GIVEN, told
from ._words import speaking


_COUNTS = {"batch_size", "factors", "iterations", "max_iter", "n_clusters", "n_components", "n_init", "steps"}
_NUMBERS = {"C", "alpha", "damping", "doc_topic_prior", "eps", "epsilon", "l1_ratio", "l2", "learning_decay",
            "learning_offset", "link_power", "parameter", "power", "rate", "regularization", "shape", "tol",
            "topic_word_prior", "total_samples"}


class Estimator(BaseEstimator):  # type: ignore[misc]
    """A class names its algorithm in the registry; its options come from there, what a model holds from
    _content()."""

    _algorithm: str
    device: Any
    verbose: int
    device_: str  # where the last fit ran
    _names: dict[str, str] = {}  # parameters by the library's fields, where they differ
    # scikit-learn's parameters of which Kiln has these values alone, and what to do for others
    _only: dict[str, tuple[tuple[Any, ...], str]] = {}
    # of parameters that are numbers: what else may be given; list: numbers in a row
    _also: dict[str, tuple[Any, ...]] = {}
    # a fit that need not converge, or whose caller says that it has not: a first batch, a path's
    _beginning = False
    _steps = "iterations"  # how messages call what the library counts
    _told: dict[str, str] = {}  # what the file said of the fit
    # of the last fit: its options, which of GIVEN there were, device, float32
    _kept: tuple[bytes, dict[str, bool], str, bool] | None = None
    report_: Report
    _schema: str | None = None  # of a frame with text columns: what makes features of such a one
    _joins = True  # whether processes can share its fit (kiln.distributed)
    _row_results: tuple[str, ...] = ()  # fitted attributes that have a row for each of X

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name in ("fit", "partial_fit", "partial_fit_users", "partial_fit_items", "inference"):
            if name in vars(cls):
                way = shared if name == "fit" else alone
                setattr(cls, name, way(finishing()(vars(cls)[name])))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------------------------------------ data

    def _validate(self, X: Any, y: Any = "no_validation", **more: Any) -> Any:
        """X, or X and y, in float32 or float64; a kiln.Matrix as it is. A frame with text columns becomes a
        feature for each level. A fitted model of float64 has float32's X as float64, as NumPy's products."""
        reset = more.get("reset", True)
        kinds = [np.float64] if not reset and self._is_double() else [np.float64, np.float32]
        if not reset and len(more) == 1 and self._is_plain(X, y):
            return X
        if reset:
            self._check_only()
        more.setdefault("accept_sparse", "csr")
        if isinstance(y, str) and y != "no_validation":
            refuse_name(y)
        table, y = as_table(X), as_column(y)
        if table is not None:
            X = table
            if not all_numbers(X) or (not reset and self._schema is not None):
                return self._validate_frame(X, y, **more)
        if not isinstance(X, Matrix) and on_cuda(X):
            X = Matrix(X)
        if isinstance(X, Matrix):
            if reset:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("_schema", None)
                self.__dict__.pop("feature_names_in_", None)
                if X.feature_names is not None:
                    self.feature_names_in_ = X.feature_names
            elif X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                                 f"{self.n_features_in_} features as input")
            elif X.feature_names is not None and hasattr(self, "feature_names_in_"):
                check_names(X.feature_names, self.feature_names_in_)
            refuse_disguised(y, "y")
            return X if isinstance(y, str) else (X, y if on_cuda(y) else np.asarray(y))
        refuse_disguised(X)
        X = canonical(X)
        if not isinstance(y, str):
            refuse_disguised(y, "y")
            more["y"] = y
        if not reset and self._schema is not None:  # features as kiln.read makes them, which have no names
            more.pop("reset")
            found = check_array(X, dtype=kinds, order="C", estimator=self, **more)
            _check_n_features(self, found, reset=False)
            return found
        found = validate_data(self, X, dtype=kinds, order="C", **more)
        if reset:
            self.__dict__.pop("_schema", None)
        return found

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Whether checks would leave X, of a fitted model's call, as it is, and say nothing."""
        known = vars(self)
        return (isinstance(y, str) and y == "no_validation" and self._schema is None
                and "feature_names_in_" not in known and is_plain(X, known.get("n_features_in_", -1))
                and (X.dtype == np.float64 or not self._is_double()))

    def _is_double(self) -> bool:
        """Whether the fitted numbers are float64."""
        known = vars(self)
        return any(getattr(known.get(name), "dtype", None) == np.float64
                   for name in ("coef_", "components_", "cluster_centers_"))

    def _validate_frame(self, X: Any, y: Any, **more: Any) -> Any:
        """The same of a frame, by its columns' names: feature_names_in_ and n_features_in_ are of the
        features that it makes."""
        reset = more.get("reset", True)
        if not reset and self._schema is None:
            X = numbers_of(X, getattr(self, "feature_names_in_", None), self.n_features_in_)
            if X is None:
                raise DataError(f"X has columns of text or dates, but {type(self).__name__} was fitted with "
                                "numbers alone: fit it with a frame of such columns, or make numbers of "
                                "them.")
            return X if isinstance(y, str) else (X, y)
        X, names, schema = encoded(X, None if reset else self._schema)
        if not more["accept_sparse"] and hasattr(X, "toarray"):
            X = X.toarray()
        if not reset:
            return X if isinstance(y, str) else (X, y)
        found = validate_data(self, X, dtype=[np.float64, np.float32], order="C", **more,
                              **({} if isinstance(y, str) else {"y": y}))
        self.feature_names_in_, self._schema = np.array(names, object), schema if has_text(schema) else None
        return found

    def _check_only(self) -> None:
        """Refuses parameters that are no numbers where one is wanted, and what scikit-learn's class of this
        name has and this one has not."""
        for name, default in _numeric(self.__class__.__init__).items():
            value = getattr(self, name)
            if value is None or isinstance(value, str):
                fits = value == default or value in self._also.get(name, ())
            elif np.ndim(value) == 1:
                fits = list in self._also.get(name, ())
            else:
                whole = name in _COUNTS and float not in self._also.get(name, ())
                kind: Any = numbers.Integral if whole else numbers.Real
                fits = isinstance(value, (kind, np.ndarray))
            if not fits:
                words = [repr(one) for one in (default, *self._also.get(name, ())) if isinstance(one, str)]
                kinds = " or ".join(["an integer" if name in _COUNTS else "a number", *dict.fromkeys(words)])
                raise ValueError(f"The {name!r} parameter of {type(self).__name__} must be {kinds}. "
                                 f"Got {value!r} instead.")
            if (name in _COUNTS - {"max_iter", "steps"} and isinstance(value, numbers.Integral) and value < 1
                    and value not in self._also.get(name, ())):
                raise ValueError(f"The {name!r} parameter of {type(self).__name__} must be at least "
                                 f"{0 if 0 in self._also.get(name, ()) else 1}. Got "
                                 f"{value!r} instead.")
        for name, (known, remedy) in _of_all(type(self), "_only").items():
            value = getattr(self, name, known[0])
            if not any(value is one or (np.isscalar(value) and value == one) for one in known):
                raise ArgumentError(f"kiln.{type(self).__name__} has no {name}={value!r}: {remedy}.")

    def _weights(self, sample_weight: Any, X: Any) -> Any:
        """sample_weight as an array for a validated X; None stays None."""
        return row_weights(sample_weight, X.shape[0], X.dtype)

    def _place(self, X: Any, columns: int = 1) -> Device:
        """The device that `device` names; "auto" weighs them for this X. n_jobs: threads of the CPU, where
        `device` says nothing of them."""
        if isinstance(X, Matrix):
            return X.device
        if self.device != "auto":
            where = device(self.device)
        else:
            nnz = X.nnz if hasattr(X, "tocsr") else None
            passes = lib.kiln_algorithm_passes(self._algorithm.encode(), X.shape[1],
                                               getattr(self, "max_iter", None) or 0)
            where = choose(X.shape, nnz, X.dtype, passes, columns, self._algorithm)
        return with_threads(where, getattr(self, "n_jobs", None)) if isinstance(self.device, str) else where

    # --------------------------------------------------------------------------------------------- running

    def _run(self, operands: list[Matrix | None], **options: Any) -> Report:
        """kiln_ALGORITHM(operands..., options, report); options that are None keep their defaults."""
        with speaking(self._vocabulary()):
            made = algorithm_options(self._algorithm, options)
        pointers = [operand.pointer if operand is not None else ffi.NULL for operand in operands]
        first = next(operand for operand in operands if operand is not None)
        where = first.device
        try:
            report = solve(where, getattr(lib, f"kiln_{self._algorithm}"), pointers, made,
                           verbose=self.verbose, callback=getattr(self, "callback", None),
                           names=self._vocabulary(),
                           mapped=any(operand is not None and operand.mapped for operand in operands))
        except DataError as error:
            error.args = (with_names(str(error), getattr(self, "feature_names_in_", None)),)
            raise
        single = first.dtype == np.float32
        if self._by_levels(report):
            report.warnings.pop("rank", None)
        self._keep_report(report, single)
        given = {name: True for name in GIVEN if options.get(name)}
        # what save() tells is put into words there
        self._kept = bytes(ffi.buffer(made)), given, where.name, single
        return report

    def _by_levels(self, report: Report) -> bool:
        """Whether columns depend on each other by nothing but how text is encoded, of which the tool does not
        warn either: with an intercept each text column whose levels are all features makes one of them do."""
        if self._schema is None:
            return False
        whole = sum(column.get("kind") == "text" and "reference" not in column
                    for column in json.loads(self._schema).get("columns", ()))
        intercept = bool(getattr(self, "fit_intercept", True))
        rank = report.figures.get("rank", report.figures.get("parameters", np.nan) - intercept)
        return bool(self.n_features_in_ - rank <= whole - (not intercept))

    def _account(self) -> dict[str, str]:
        """What save() writes of the last fit, or what the file said."""
        if self._kept is None:
            return self._told
        values, given, where, single = self._kept
        made = struct(f"kiln_{self._algorithm}_options")
        ffi.memmove(made, values, len(values))
        return told(self._algorithm, made, given, self.report_, where, single)

    def _vocabulary(self) -> dict[str, str]:
        """The parameters by the library's fields."""
        return _of_all(type(self), "_names")

    def _forget_report(self) -> None:
        """Forgets the report of a fit before this model was changed."""
        for name in ("n_iter_", "converged_", "objective_", "optimality_gap_", "report_", "_kept", "_told"):
            self.__dict__.pop(name, None)

    def _keep_report(self, report: Report, single: bool = True) -> None:
        """The report as attributes, and what it warns of. single: whether it is of a run in float32."""
        self._take_report(report)
        warn_of(report, type(self).__name__, self._vocabulary(), unfinished=not self._beginning,
                single=single, steps=self._steps)

    def _take_report(self, report: Report) -> None:
        self.n_iter_: Any = report.n_iter
        self.converged_ = report.converged
        self.objective_ = report.objective
        self.optimality_gap_ = report.optimality_gap
        self.report_ = report

    # ---------------------------------------------------------------------------------------------- models

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The tensors and the texts of this estimator's model."""
        raise NotImplementedError

    def _model(self, where: Device) -> Any:
        pointer = ffi.new("kiln_model **")
        check(lib.kiln_model_create(pointer, self._algorithm.encode()))
        model = ffi.gc(pointer[0], lib.kiln_model_free)
        tensors, texts = self._content()
        for name, values in tensors.items():
            tensor = Matrix(values, where)
            where.call(lib.kiln_model_set_tensor, model, name.encode(), tensor.pointer)
        for name, value in texts.items():
            check(lib.kiln_model_set_text(model, name.encode(), value.encode()))
        return model

    def _whole_model(self, where: Device) -> Any:
        """What save() writes: all that was fitted, where a model that is only used has less."""
        return self._model(where)

    def _predict(self, X: Any) -> Matrix:
        """kiln_predict of a validated X."""
        where = self._place(X)
        made = ffi.new("kiln_matrix **")
        operand = matrix(X, where)
        where.call(lib.kiln_predict, made, self._model(where), operand.pointer)
        return Matrix.adopt(made[0], where)

    def to_sklearn(self) -> Any:
        """scikit-learn's estimator of the same class, parameters and, after fit, predictions
        (kiln.to_sklearn)."""
        from ._scikit import to_sklearn

        return to_sklearn(self)

    def to_onnx(self, path: Any = None) -> Any:
        """The model as an ONNX graph, and a file of it (kiln.to_onnx)."""
        from ._onnx import to_onnx

        return to_onnx(self, path)

    def save(self, path: Any) -> None:
        """Writes the model as a file that `kiln predict` and kiln.load read, and that `kiln verify` holds
        against the data."""
        check_is_fitted(self)
        model = self._whole_model(device("cpu"))
        account = {**self._account(), "estimator": described(self)}
        for name, value in account.items():
            check(lib.kiln_model_set_text(model, name.encode(), value.encode()))
        if self._schema is not None:
            check(lib.kiln_model_set_text(model, b"schema", self._schema.encode()))
            account = {**account, "schema": self._schema}
        names = getattr(self, "feature_names_in_", None)
        if names is not None and "schema" not in account:
            check(lib.kiln_model_set_text(model, b"features", json.dumps(list(names)).encode()))
        check(lib.kiln_model_save(model, c_name(path)))


@functools.cache
def _numeric(constructor: Any) -> dict[str, Any]:
    """The parameters of a constructor that are numbers, with their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(constructor).parameters.items()
            if name in _COUNTS | _NUMBERS}


def _of_all(kind: type, name: str) -> dict[str, Any]:
    """The dictionaries of that name of a class and those above it as one."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        found.update(vars(each).get(name, {}))
    return found


def as_columns(values: Any, dtype: Any) -> Any:
    """A vector as a matrix of one column, and any array in this type."""
    values = np.ascontiguousarray(values, dtype)
    return values.reshape(-1, 1) if values.ndim == 1 else values


def check_fitted(model: Any) -> None:
    """scikit-learn's check, which takes longer than a row's prediction, unless a look tells."""
    if "n_features_in_" not in vars(model):
        check_is_fitted(model)


def refuse_name(y: str) -> None:
    raise ArgumentError(f"y is the text {y!r}, but the true values are needed: give the column itself, such "
                        f"as frame[{y!r}].")


@contextmanager
def naming(model: Any, X: Any) -> Iterator[None]:
    """Where a DataError comes of a column of X that is not finite, it names that column."""
    try:
        yield
    except DataError as error:
        host = X.numpy() if isinstance(X, Matrix) else X
        bad = (host.tocoo().col[~np.isfinite(host.tocoo().data)] if hasattr(host, "tocoo")
               else np.flatnonzero(~np.isfinite(host).all(axis=0)))
        if len(bad):
            said = (f"column {bad.min()} of X has NaN or infinite values (columns count from 0): clean that "
                    "column")
            error.args = (with_names(said, getattr(model, "feature_names_in_", None)),)
        raise


def host_vector(y: Any) -> Any:
    """y in host memory, of one column a vector."""
    if y is None:
        raise ValueError("y is None, but the true values are needed.")
    if isinstance(y, str):
        refuse_name(y)
    refuse_disguised(y, "y")
    y = y.numpy() if isinstance(y, Matrix) else np.asarray(to_host(as_column(y)))
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def row_weights(sample_weight: Any, rows: int, dtype: Any = np.float64) -> Any:
    """sample_weight, one for all rows or one for each, as an array on the host; None stays None."""
    if sample_weight is None:
        return None
    refuse_disguised(sample_weight, "sample_weight")
    given = sample_weight if np.isscalar(sample_weight) else host_vector(sample_weight)
    weights = _check_sample_weight(given, np.empty((rows, 0)), dtype=dtype, ensure_non_negative=True)
    with np.errstate(over="ignore"):
        total = weights.sum(dtype=np.float64)
    if not np.isfinite(total):
        raise ValueError("The sum of sample_weight overflows float64.")
    return weights


def beside(X: Matrix, values: Any) -> Matrix:
    """Targets in X's type on its device; what lies in CUDA memory stays there."""
    refuse_disguised(values)
    if isinstance(values, Matrix):
        return values
    return matrix(as_floats(values, X.dtype) if on_cuda(values) else as_columns(values, X.dtype), X.device)


def not_negative(model: Any, *names: str) -> None:
    """Parameters that are None or finite numbers from 0 on: the library has a meaning of its own for -1."""
    for name in names:
        value = getattr(model, name)
        if value is not None and not 0 <= value < float("inf"):
            raise ValueError(f"The '{name}' parameter of {type(model).__name__} must be a float in the range "
                             f"[0, inf). Got {value!r} instead.")
