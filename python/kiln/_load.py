"""Model files as estimators."""
from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from ._arrays import Matrix, device
from ._library import ModelError, c_name, check, ffi, lib, text
from ._told import KEPT


def load(path: Any) -> Any:
    """The estimator of a model file, written by save() or by the command line tool: it predicts, and does not
    train anew from where it was."""
    model = open_model(path)
    texts, tensors = _texts(model), _tensors(model)
    name = texts["algorithm"]
    if name not in _MAKERS:
        raise ModelError(f"kiln.load: a model of {name} has no estimator")
    estimator = _MAKERS[name](texts, tensors)
    estimator._told = {key: texts[key] for key in KEPT if key in texts}
    estimator._schema = texts.get("schema")
    if "features" in texts and isinstance(names := json.loads(texts["features"]), list):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def open_model(path: Any) -> Any:
    """The kiln_model of a file."""
    made = ffi.new("kiln_model **")
    check(lib.kiln_model_load(made, c_name(path)))
    return ffi.gc(made[0], lib.kiln_model_free)


def _texts(model: Any) -> dict[str, str]:
    texts: dict[str, str] = {}
    while key := lib.kiln_model_key(model, len(texts)):
        texts[text(key)] = text(lib.kiln_model_text(model, key))
    return texts


def _tensors(model: Any) -> dict[str, Any]:
    tensors: dict[str, Any] = {}
    where = device("cpu")
    kind, rows, cols = ffi.new("kiln_type *"), ffi.new("int64_t *"), ffi.new("int64_t *")
    while name := lib.kiln_model_tensor_info(model, len(tensors), kind, rows, cols):
        made = ffi.new("kiln_matrix **")
        where.call(lib.kiln_model_tensor, made, where.pointer, lib.KILN_TYPE_DEFAULT, model, name)
        tensors[text(name)] = Matrix.adopt(made[0], where).numpy()
    return tensors


def _linear(estimator: Any, tensors: dict[str, Any]) -> tuple[Any, Any]:
    """W and b."""
    W = tensors["W"]
    estimator.fit_intercept = "b" in tensors
    estimator.n_features_in_ = W.shape[0]
    return W, tensors.get("b", np.zeros((1, W.shape[1]), W.dtype))


def _regressor(estimator: Any, tensors: dict[str, Any]) -> Any:
    estimator._shape(np.empty(0) if tensors["W"].shape[1] == 1 else np.empty((0, 2)),
                     *_linear(estimator, tensors))
    return estimator


def label_array(names: list[str]) -> Any:
    """Labels that a file keeps as text: whole numbers that no double holds are integers again."""
    if all(re.fullmatch("0|-?[1-9][0-9]*", name) for name in names):
        for kind in (np.int64, np.uint64):
            if all(np.iinfo(kind).min <= int(name) <= np.iinfo(kind).max for name in names):
                return np.array([int(name) for name in names], kind)
    return np.array(names)


def _classifier(estimator: Any, texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    estimator._show(*_linear(estimator, tensors))
    values = tensors["classes"][:, 0]
    whole = np.array_equal(values, values.astype(np.int64))
    estimator.classes_ = (label_array(json.loads(texts["class_names"])) if "class_names" in texts
                          else values.astype(np.int64) if whole else values)
    return estimator


def _make_linreg(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._linear import LinearRegression

    return _regressor(LinearRegression(), tensors)


def _make_logreg(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._linear import LogisticRegression

    return _classifier(LogisticRegression(), texts, tensors)


def _make_glm(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._linear import GeneralizedLinearRegressor

    power, link_power = (float(value) for value in tensors["parameters"][0])
    link = texts["link"]
    if texts["family"] == "inverse-gaussian" and link == "default":  # a file from before the default was log
        link = "inverse-squared"
    estimator = GeneralizedLinearRegressor(texts["family"], link=link, parameter=power, link_power=link_power)
    estimator._fitted = estimator._distribution()
    used = json.loads(texts.get("options", "{}"))
    estimator._offset = bool(used.get("offset") or used.get("offset_file"))
    _regressor(estimator, tensors)
    if "standard_errors" in tensors:
        errors = tensors["standard_errors"][:, 0]
        errors = np.where(errors < 0, np.nan, errors)  # of a column that depends on others
        estimator.standard_errors = True
        estimator.standard_errors_ = errors[:estimator.n_features_in_]
        estimator.intercept_error_ = errors[-1] if estimator.fit_intercept else 0.0
    return estimator


def _make_svm(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._linear import LinearSVC, LinearSVR

    if "classes" in tensors:
        return _classifier(LinearSVC(), texts, tensors)
    estimator = LinearSVR(epsilon=float(tensors["parameters"][0, 0]))
    estimator._fitted = estimator.epsilon
    return _regressor(estimator, tensors)


def _make_kmeans(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._cluster import KMeans

    estimator = KMeans(len(tensors["centres"]), spherical=texts.get("geometry") == "spherical")
    estimator.cluster_centers_, estimator._clusters = tensors["centres"], tensors.get("clusters")
    if estimator._clusters is not None:
        estimator.inertia_ = float(estimator._clusters[:, 1].sum())
    estimator.n_features_in_, estimator._n_features_out = tensors["centres"].shape[1], len(tensors["centres"])
    return estimator


def _make_mds(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._manifold import MDS

    estimator = MDS(tensors["layout"].shape[1], metric=texts.get("metric", "ratio"), dissimilarity="euclidean"
                    if "points" in tensors else "precomputed")
    estimator.embedding_, estimator._points, estimator._metric = (tensors["layout"], tensors.get("points"),
                                                                  estimator.metric)
    return estimator


def _make_als(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._factors import ALS

    mean, l2, alpha, biases, counted, implicit = (float(value) for value in tensors["settings"][0])
    factors = tensors["A"].shape[1] - int(biases)
    estimator = ALS(factors, implicit=bool(implicit), alpha=alpha, l2=l2, biases=bool(biases),
                    counted=bool(counted))
    estimator._know(tensors["A"], tensors["B"], mean, l2, bool(biases))
    estimator.n_features_in_, estimator._n_features_out = len(tensors["B"]), factors
    return estimator


def _make_sfa(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._factors import SFA

    mean, l2, damping = (float(value) for value in tensors["settings"][0])
    factors = tensors["A"].shape[1] - 1
    estimator = SFA(factors, l2=l2, damping=damping)
    estimator._know(tensors["A"], tensors["B"], mean, l2, True)
    estimator.n_features_in_, estimator._n_features_out = len(tensors["B"]), factors
    return estimator


def _make_gap(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._factors import NMF

    prior, shape, rate = (float(value) for value in tensors["settings"][0])
    estimator = NMF(tensors["A"].shape[1], prior="gamma" if prior == lib.KILN_GAP_GAMMA else None,
                    shape=shape, rate=rate)
    estimator._take(tensors["A"], tensors["B"])
    estimator.n_features_in_, estimator._n_features_out = len(tensors["B"]), tensors["B"].shape[1]
    return estimator


def _make_lda(texts: dict[str, str], tensors: dict[str, Any]) -> Any:
    from ._factors import LatentDirichletAllocation

    estimator = LatentDirichletAllocation(tensors["A"].shape[1], topic_word_prior=float(tensors["eta"][0, 0]))
    estimator._take(tensors["A"], tensors["B"])
    estimator._alphas = tensors["alpha"]
    estimator.n_features_in_, estimator._n_features_out = len(tensors["B"]), tensors["B"].shape[1]
    return estimator


_MAKERS = {"linreg": _make_linreg, "logreg": _make_logreg, "glm": _make_glm, "svm": _make_svm,
           "kmeans": _make_kmeans, "mds": _make_mds, "als": _make_als, "sfa": _make_sfa, "gap": _make_gap,
           "lda": _make_lda}
