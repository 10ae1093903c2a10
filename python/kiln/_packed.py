"""What a model file says of an estimator beside its tensors, as JSON: the class, the parameters, and the
fitted attributes that are not as long as the data."""
from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ._solve import Report

_MOST = 65536  # numbers of an array, and rows of a history: a file's texts have 16 MiB together
# in tensors of the file, or as many as rows of the training data
ELSEWHERE = {"coef_", "cluster_centers_", "components_", "embedding_", "row_factors_", "column_factors_",
              "row_biases_", "column_biases_", "labels_", "dissimilarity_matrix_", "point_stress_",
              "cv_results_"}
_NOT_KEPT = {"device"}  # a model is used on other machines, too


def packed(value: Any) -> Any:
    """The value in terms of JSON, which gives it back as it was; TypeError where it is none of numbers, text,
    lists, dictionaries and arrays of these, or too long."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"dtype": np.dtype(value).str}
    if isinstance(value, (np.ndarray, np.generic)):
        return _packed_array(np.asarray(value))
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, Report):
        short = all(len(column) * len(value.history) <= _MOST for column in value.history.values())
        return {"report": packed(value._replace(history=value.history if short else {})._asdict())}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [packed(one) for one in value]}
    if isinstance(value, dict):
        return {"dict": [[packed(key), packed(one)] for key, one in value.items()]}
    raise TypeError(f"{type(value).__name__} is no data")


def _packed_array(values: np.ndarray[Any, Any]) -> Any:
    if values.size > _MOST:
        raise TypeError(f"{values.size} numbers are too many for a text")
    flat = values.ravel().tolist()
    if values.dtype.kind not in "biufUO" or (values.dtype.kind == "O"
                                             and not all(isinstance(one, str) for one in flat)):
        raise TypeError(f"arrays of {values.dtype} are no data")
    if values.dtype.kind == "f":
        flat = [one if math.isfinite(one) else repr(one) for one in flat]
    return {"array": flat, "type": values.dtype.str, "shape": list(values.shape)}


def unpacked(value: Any) -> Any:
    """What packed() had."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        kind = np.dtype(value["type"])
        flat = [float(one) for one in value["array"]] if kind.kind == "f" else value["array"]
        return np.array(flat, kind).reshape(value["shape"])[()]
    if "dtype" in value:
        return np.dtype(value["dtype"]).type
    if "number" in value:
        return float(value["number"])
    if "report" in value:
        return Report(**unpacked(value["report"]))
    if "dict" in value:
        return {unpacked(key): unpacked(one) for key, one in value["dict"]}
    kind, values = next(iter(value.items()))
    found = [unpacked(one) for one in values]
    return tuple(found) if kind == "tuple" else found


def _packable(values: dict[str, Any]) -> dict[str, Any]:
    """These values packed, without those that are too long or no data: generators of random numbers,
    splitters, functions."""
    found = {}
    for name, value in values.items():
        try:
            found[name] = packed(value)
        except TypeError:
            continue
    return found


def described(model: Any) -> str:
    """The text of a model file that kiln.load makes the estimator from."""
    parameters = {name: value for name, value in model.get_params(deep=False).items()
                  if name not in _NOT_KEPT}
    attributes = {name: value for name, value in vars(model).items()
                  if name.endswith("_") and not name.startswith("_") and name not in ELSEWHERE}
    if model._schema is None:  # names are a text of their own
        attributes.pop("feature_names_in_", None)
    shape = {"coef_shape": list(np.shape(model.coef_))} if hasattr(model, "coef_") else {}
    return json.dumps({"class": type(model).__name__, "parameters": _packable(parameters),
                       "attributes": _packable(attributes), **shape})
