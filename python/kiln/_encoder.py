"""Tables as arrays of numbers, for pipelines."""
from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from ._arrays import refuse_disguised
from ._columns import as_table
from ._extras import needed
from ._frames import encoded
from ._joint import alone
from ._library import ArgumentError, DataError, lib
from ._read import listed, pairs_of, reference_of
from ._words import warn

if TYPE_CHECKING:
    from typing_extensions import Self

_MISSING = {None: lib.KILN_MISSING_DEFAULT, "error": lib.KILN_MISSING_ERROR, "mean": lib.KILN_MISSING_MEAN,
            "indicator": lib.KILN_MISSING_INDICATOR, "nan": lib.KILN_MISSING_DEFAULT}
_UNSEEN = {"warn": lib.KILN_UNSEEN_ZERO, "ignore": lib.KILN_UNSEEN_ZERO, "error": lib.KILN_UNSEEN_ERROR,
           "reference": lib.KILN_UNSEEN_REFERENCE}
_TYPES = {"float32": lib.KILN_F32, "float64": lib.KILN_F64}


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Makes features of a table's columns, as the tool does of a CSV file's: a column of numbers is one
    feature, and one of text or categories is a feature for each of its levels, `colour=red`, in the order of
    their texts.

        make_pipeline(kiln.TableEncoder(missing="mean"), kiln.Ridge()).fit(frame, y)

    Estimators take such tables themselves; this is for pipelines, for missing values, which are then filled
    with the means of the rows that train, and for other packages' estimators.

    features, ignore: the only columns that count, and columns that do not, as lists or names separated by
    commas; categorical, numeric: columns that are text, or numbers, whatever they look like. reference: the
    level of a column that gets no feature, {"colour": "red"}. interact: pairs of text columns, as
    "colour:floor" or ("colour", "floor"), of which each pair of levels that occurs is one more feature, but
    those with a reference level. missing: None, numbers that are missing are an error, and text that is
    missing is a level, the empty one; "error", both are; "mean" of the rows of fit; "indicator", the same,
    and a feature "COLUMN missing" is 1 there; "nan", it stays NaN. Missing are nulls, NaN and empty text;
    missing_words: words for it, such as "NA", which is text else.
    handle_unknown: a level that fit has not seen gives 0 in all features of its column, with a warning,
    "warn", or without, "ignore"; or is an error, "error", or as the reference level, without one the first,
    "reference". Columns that fit has not seen are left out with a warning.
    sparse_output: True, False, or "auto", CSR where most entries would be 0. dtype: "float32" or "float64".

    X: what kiln.read takes for a table in memory (pandas, polars, pyarrow, DuckDB, ...), columns by their
    names, in any order; or a NumPy array, whose columns are x0, x1, ... and come through pyarrow.

    feature_names_in_, n_features_in_: the columns; levels_: the levels of each text column; means_: what
    missing numbers are filled with; schema_: all of it, as a model file has it.
    """

    def __init__(self, *, features: Any = None, ignore: Any = None, categorical: Any = None,
                 numeric: Any = None, reference: Any = None, interact: Any = None,
                 missing: str | None = None, missing_words: Any = None, handle_unknown: str = "warn",
                 sparse_output: Any = "auto", dtype: Any = "float64") -> None:
        self.features = features
        self.ignore = ignore
        self.categorical = categorical
        self.numeric = numeric
        self.reference = reference
        self.interact = interact
        self.missing = missing
        self.missing_words = missing_words
        self.handle_unknown = handle_unknown
        self.sparse_output = sparse_output
        self.dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing in ("mean", "indicator", "nan")
        return tags

    @alone
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns the columns, levels and means of a table; y is not looked at."""
        self._fit(X)
        return self

    @alone
    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> Any:
        """fit(X) and transform(X) in one reading."""
        return self._shaped(self._fit(X))

    def transform(self, X: Any) -> Any:
        """The features (n_samples, n_features_out) of a table with the columns of fit."""
        check_is_fitted(self)
        made, _, _ = encoded(self._table(X, reset=False), self.schema_, **self._options(), unseen=_UNSEEN[
            self.handle_unknown], silent="not seen in training" if self.handle_unknown == "ignore" else None)
        return self._shaped(made)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The features' names. input_features: other names for the columns of an array."""
        check_is_fitted(self)
        named = _check_feature_names_in(self, input_features)
        if input_features is None or hasattr(self, "feature_names_in_"):
            return np.array(self._names, object)
        return np.array([re.sub(r"^x(\d+)(?=$|=| missing$)", lambda found: str(named[int(found.group(1))]),
                                name) for name in self._names], object)

    def _fit(self, X: Any) -> Any:
        for name, known in (("missing", _MISSING), ("handle_unknown", _UNSEEN),
                            ("sparse_output", (True, False, "auto"))):
            if getattr(self, name) not in known:
                raise ArgumentError(f"{name} must be one of {list(known)}, got {getattr(self, name)!r}")
        words = {name: listed(getattr(self, name))
                 for name in ("features", "ignore", "categorical", "numeric", "missing_words")}
        self.__dict__.pop("feature_names_in_", None)
        made, self._names, self.schema_ = encoded(self._table(X, reset=True), None, **self._options(),
                                                  texts={**words, "reference": reference_of(self.reference),
                                                         "interact": pairs_of(self.interact)})
        columns = json.loads(self.schema_)["columns"]
        self.levels_ = {column["name"]: column["levels"] for column in columns if column["kind"] == "text"}
        self.means_ = {column["name"]: column["mean"] for column in columns if "mean" in column}
        if self._by_name:
            names = [column["name"] for column in columns if "of" not in column]
            self.feature_names_in_ = np.array(names, object)
            self.n_features_in_ = len(names)
        return made

    def _options(self) -> dict[str, Any]:
        if str(np.dtype(self.dtype)) not in _TYPES:
            raise ArgumentError(f"dtype must be float32 or float64, got {self.dtype!r}")
        return {"type": _TYPES[str(np.dtype(self.dtype))], "missing": _MISSING[self.missing],
                "allow_nonfinite": self.missing == "nan"}

    def _table(self, X: Any, reset: bool) -> Any:
        """X as a table, of an array one with the columns x0, x1, ..., or with those of fit by their
        places."""
        table = as_table(X)
        if reset:
            self._by_name = table is not None
        if table is not None and self._by_name:
            return table
        if table is None:
            refuse_disguised(X)
            objects = getattr(X, "dtype", None) == object
            table = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False if objects else
                                  "allow-nan" if self.__sklearn_tags__().input_tags.allow_nan else True)
            columns = list(table.T)
        else:
            warn(f"X has feature names, but {type(self).__name__} was fitted without feature names")
        pyarrow = needed("pyarrow", "a table encoder of arrays")
        if not isinstance(table, np.ndarray):
            columns = pyarrow.table(table).columns
        if not reset and len(columns) != self.n_features_in_:
            raise ValueError(f"X has {len(columns)} features, but {type(self).__name__} is expecting "
                             f"{self.n_features_in_} features as input.")
        names = (self.feature_names_in_ if self._by_name and not reset
                 else [f"x{j}" for j in range(len(columns))])
        try:
            return pyarrow.table({name: _arrow_column(column, pyarrow)
                                  for name, column in zip(names, columns)})
        except (pyarrow.ArrowException, TypeError) as error:
            raise DataError("a column of the array mixes kinds of values, make it numbers alone or text "
                            f"alone: {error}") from error

    def _shaped(self, made: Any) -> Any:
        sparse = self.sparse_output
        if sparse == "auto" and _get_output_config("transform", self)["dense"] != "default":
            sparse = False
        if sparse is True and not scipy.sparse.issparse(made):
            return scipy.sparse.csr_matrix(made)
        return made.toarray() if sparse is False and scipy.sparse.issparse(made) else made


def _arrow_column(column: Any, pyarrow: Any) -> Any:
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype == object:
        return pyarrow.array(column.tolist(), from_pandas=True)
    return pyarrow.array(np.ascontiguousarray(column, column.dtype.newbyteorder("=")))
