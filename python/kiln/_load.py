"""Model files as estimators."""
from __future__ import annotations

import inspect
import json
import math
import re
from typing import Any

import numpy as np

from ._arrays import Matrix, device
from ._library import ModelError, c_name, check, ffi, lib, text
from ._packed import ELSEWHERE, unpacked
from ._solve import Report
from ._told import KEPT


def load(path: Any) -> Any:
    """The estimator of a model file, which save() or the command line tool has written.

    Parameters
    ----------
    path : str or path-like
        A file of a model, of any version of Kiln.

    Returns
    -------
    estimator
        Of save()'s files the class that it was, with its parameters and fitted attributes. Absent are the
        parameter ``device`` (a model is used on other machines, too), parameters that are no data (generators
        of random numbers, splitters, functions), which are the defaults, ``random_state_``, and what is as
        long as the training data: ``labels_``, ``dissimilarity_matrix_``, ``point_stress_``,
        ``cv_results_``, and arrays of more than 65,536 numbers. A file of the tool gives the class that
        solves the same problem, with the parameters that say which, and ``report_``, whose passes are -1,
        whose seconds are NaN and whose history is empty, as these files do not have them. ``offset_column_``
        of a generalised linear model is the column of the table that was its offset, None if none was.

    Examples
    --------
    >>> import kiln, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "m.kiln")
    >>> kiln.Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]).save(path)
    >>> kiln.load(path)
    Ridge(alpha=0.5)
    """
    model = open_model(path)
    file = _File(_texts(model), _tensors(model))
    name = file.texts["algorithm"]
    if name not in _MAKERS:
        raise ModelError(f"kiln.load: a model of {name} has no estimator")
    estimator = _MAKERS[name](file)
    estimator._told = {key: file.texts[key] for key in KEPT if key in file.texts}
    estimator._schema = file.texts.get("schema")
    names = file.names()
    if names is not None and len(names) == estimator.n_features_in_:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    file.attributes(estimator)
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


class _File:
    """A model file: its texts, its tensors, and, where Python wrote it, the estimator that it was."""

    def __init__(self, texts: dict[str, str], tensors: dict[str, Any]) -> None:
        self.texts, self.tensors = texts, tensors
        self.options = self._json("options")
        self.saved = self._json("estimator")

    def _json(self, key: str) -> dict[str, Any]:
        """The dictionary that a text is; any text may be in a file, and other text says nothing here."""
        try:
            found = json.loads(self.texts.get(key, "{}"))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def number(self, option: str, default: float = 0.0) -> float:
        """An option of the training."""
        value = self.options.get(option, default)
        return default if value is None else float(value)

    def make(self, name: str, **parameters: Any) -> Any:
        """The estimator as it was saved; of the tool's models, one of the class of that name with these
        parameters."""
        import kiln

        if not self.saved:
            return getattr(kiln, name)(**parameters)
        said = self.saved.get("class")
        kind: Any = getattr(kiln, said) if said in kiln.__all__ else None
        if getattr(kind, "_algorithm", None) != self.texts["algorithm"]:
            raise ModelError(f"kiln.load: the file says that it is a {said}, but a model of "
                             f"{self.texts['algorithm']} is none")
        known = inspect.signature(kind).parameters
        return kind(**{key: value for key, value in self._unpacked("parameters").items() if key in known})

    def _unpacked(self, part: str) -> dict[str, Any]:
        """The parameters or attributes of the text "estimator"."""
        try:
            return {str(name): unpacked(value) for name, value in self.saved[part].items()}
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            raise ModelError(f"kiln.load: the file's text 'estimator' has {part} that nobody saved: "
                             f"{error}") from error

    def attributes(self, estimator: Any) -> None:
        """What the file says of the fit beside the tensors."""
        if not self.saved:
            self._report(estimator)
            return
        for name, value in self._unpacked("attributes").items():
            computed = isinstance(getattr(type(estimator), name, None), property)
            if name.endswith("_") and not name.startswith("_") and name not in ELSEWHERE and not computed:
                setattr(estimator, name, value)
        shape = self.saved.get("coef_shape")
        if shape is not None and np.size(estimator.coef_) == np.prod(shape):
            estimator.coef_ = np.reshape(estimator.coef_, shape)

    def _report(self, estimator: Any) -> None:
        """report_ and what is taken from it, of the tool's account: passes and seconds are not in it."""
        said = self._json("report")
        if not said:
            return
        objective = next((float(said.pop(name)) for name in ("objective", "inertia", "stress", "bound",
                                                                  "squares")
                          if said.get(name) is not None), math.nan)
        gap, certificate = said.pop("optimality_gap", None), said.pop("certificate", None) or ""
        known = {name: said.pop(name, None) for name in ("converged", "stopped_by", "iterations", "solver",
                                                         "residual")}
        figures = {name: float(value) for name, value in said.items() if isinstance(value, (int, float))}
        residual = math.nan if known["residual"] is None else float(known["residual"])
        estimator._take_report(Report(
            bool(known["converged"]), str(known["stopped_by"]), int(known["iterations"] or 0), residual,
            self.number("tolerance", math.nan), objective, -1, math.nan, figures, {}, known["solver"] or "",
            math.inf if gap is None else float(gap), certificate))
        estimator.device_ = self.texts.get("device", "")

    def names(self) -> list[str] | None:
        """The features, by the columns that they were made of."""
        if "features" in self.texts:
            found = json.loads(self.texts["features"])
            return found if isinstance(found, list) else None
        if "columns" in self.texts and self.texts["algorithm"] in ("gap", "lda"):  # words
            return [str(word) for word in json.loads(self.texts["columns"])]
        names: list[str] = []
        for column in self._json("schema").get("columns", []):
            levels = column.get("levels")
            first = column.get("of", [column["name"]])[0]  # the levels of a pair are "x:b=y"
            names += [first] if levels is None else [f"{first}={level}" for level in levels]
        return names or None


def _linear(estimator: Any, tensors: dict[str, Any]) -> tuple[Any, Any]:
    """W and b."""
    W = tensors["W"]
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


def _classes(file: _File) -> Any:
    values = file.tensors["classes"][:, 0]
    if "class_names" in file.texts:
        return label_array(json.loads(file.texts["class_names"]))
    return values.astype(np.int64) if np.array_equal(values, values.astype(np.int64)) else values


def _class_weight(file: _File) -> Any:
    """The tool's "yes=2,no=1", or "balanced", by the classes as they are here."""
    given = file.options.get("class_weight")
    if given is None or "=" not in given:
        return given
    weights = dict(pair.rsplit("=", 1) for pair in given.split(","))
    found = {}
    for label in _classes(file).tolist():
        names = {str(label), repr(float(label)) if isinstance(label, (int, float)) else ""}
        found.update({label: float(weight) for name, weight in weights.items() if name in names})
    return found


def _classifier(estimator: Any, file: _File) -> Any:
    estimator._show(*_linear(estimator, file.tensors))
    estimator.classes_ = _classes(file)
    return estimator


def _fit_options(file: _File) -> dict[str, Any]:
    """What linear models of all kinds say of their fit."""
    return {"fit_intercept": "b" in file.tensors, "standardize": bool(file.options.get("standardize", False))}


def _make_linreg(file: _File) -> Any:
    l2, given = file.number("l2"), _fit_options(file)
    if l2 == 0:
        given.pop("standardize")
    return _regressor(file.make("Ridge", alpha=l2, **given) if l2 else file.make("LinearRegression", **given),
                      file.tensors)


def _make_logreg(file: _File) -> Any:
    l1, l2 = file.number("l1"), file.number("l2")
    both = l1 + l2
    estimator = file.make("LogisticRegression", C=1 / both if both else math.inf,
                          l1_ratio=l1 / both if both else 0.0, class_weight=_class_weight(file),
                          **_fit_options(file))
    return _classifier(estimator, file)


def _make_glm(file: _File) -> Any:
    texts, tensors = file.texts, file.tensors
    power, link_power = (float(value) for value in tensors["parameters"][0])
    link = texts["link"]
    if texts["family"] == "inverse-gaussian" and link == "default":  # a file from before the default was log
        link = "inverse-squared"
    l1, l2 = file.number("l1"), file.number("l2")
    estimator = file.make("GeneralizedLinearRegressor", family=texts["family"], link=link, parameter=power,
                          link_power=link_power, alpha=(l1 + l2) / _weight_of(file) if l1 + l2 else 0.0,
                          l1_ratio=l1 / (l1 + l2) if l1 + l2 else 0.0,
                          standard_errors="standard_errors" in tensors, **_fit_options(file))
    estimator._fitted = texts["family"], link, power, link_power
    column = file.options.get("offset")
    estimator._offset = bool(column or file.options.get("offset_file"))
    if not file.saved:
        estimator.offset_column_ = column
    _regressor(estimator, tensors)
    if "standard_errors" in tensors:
        errors = tensors["standard_errors"][:, 0]
        errors = np.where(errors < 0, np.nan, errors)  # of a column that depends on others
        estimator.standard_errors_ = errors[:estimator.n_features_in_]
        estimator.intercept_error_ = errors[-1] if "b" in tensors else 0.0
    return estimator


def _weight_of(file: _File) -> float:
    """The weight of all training rows: the deviance over the mean deviance; NaN where the file lacks one."""
    metrics = file._json("metrics")
    whole, mean = metrics.get("deviance"), metrics.get("mean_deviance")
    return float(whole / mean) if whole and mean else math.nan


def _make_svm(file: _File) -> Any:
    l2 = file.number("l2")
    given = {"C": 1 / (2 * l2) if l2 else math.inf, **_fit_options(file)}
    if "classes" in file.tensors:
        return _classifier(file.make("LinearSVC", class_weight=_class_weight(file), **given), file)
    epsilon = float(file.tensors["parameters"][0, 0])
    estimator = file.make("LinearSVR", epsilon=epsilon, **given)
    estimator._fitted = epsilon
    return _regressor(estimator, file.tensors)


def _make_kmeans(file: _File) -> Any:
    centres, clusters = file.tensors["centres"], file.tensors.get("clusters")
    estimator = file.make("KMeans", n_clusters=len(centres),
                          spherical=file.texts.get("geometry") == "spherical")
    estimator.cluster_centers_, estimator._clusters = centres, clusters
    if clusters is not None:
        estimator.inertia_ = float(clusters[:, 1].sum())
    estimator.n_features_in_, estimator._n_features_out = centres.shape[1], len(centres)
    return estimator


def _make_mds(file: _File) -> Any:
    layout, points = file.tensors["layout"], file.tensors.get("points")
    metric = file.texts.get("metric", "ratio")
    estimator = file.make("MDS", n_components=layout.shape[1], metric=metric,
                          ties=file.options.get("ties") or "primary",
                          dissimilarity="precomputed" if points is None else "euclidean")
    estimator.embedding_, estimator._points, estimator._metric = layout, points, metric
    estimator.n_features_in_ = len(layout) if points is None else points.shape[1]
    figures = file._json("report")
    if "stress_1" in figures:
        estimator.stress_1_ = float(figures["stress_1"])
        estimator.stress_ = estimator.stress_1_ if metric == "ordinal" else float(figures["stress"])
    return estimator


def _make_svd(file: _File) -> Any:
    V, mean = file.tensors["V"], file.tensors.get("mean")
    scale = file.tensors.get("deviation")
    estimator = file.make("TruncatedSVD" if mean is None else "PCA", n_components=V.shape[1],
                          standardize=scale is not None)
    variance = file.tensors.get("variance")
    estimator.components_, estimator.singular_values_ = np.ascontiguousarray(V.T), file.tensors["s"][:, 0]
    estimator.scale_ = None if scale is None else scale[:, 0]
    if variance is not None:
        estimator._variance = estimator.explained_variance_ = variance[:, 0]
    if variance is not None and "total" in file.tensors:
        estimator._total = float(file.tensors["total"][0, 0])
        estimator.explained_variance_ratio_ = variance[:, 0] / file.tensors["total"][0, 0]
    if mean is not None:
        estimator.mean_, estimator.n_components_ = mean[:, 0], V.shape[1]
    estimator.n_features_in_ = len(V)
    return estimator


def _make_spectral(file: _File) -> Any:
    V = file.tensors["V"]
    estimator = file.make("SpectralEmbedding", n_components=V.shape[1] - 1, affinity="precomputed")
    estimator._take(V, file.tensors["s"], file.tensors["deviation"])
    estimator.n_features_in_ = len(V)
    return estimator


def _sized(estimator: Any, file: _File, factors: int) -> Any:
    estimator.n_features_in_, estimator._n_features_out = len(file.tensors["B"]), factors
    return estimator


def _named(estimator: Any, file: _File) -> Any:
    """The names of rows and columns, where the file has them."""
    for key, name in (("rows", "user_names_"), ("columns", "item_names_")):
        if key in file.texts:
            setattr(estimator, name, np.array(json.loads(file.texts[key]), object))
    return estimator


def _make_als(file: _File) -> Any:
    mean, l2, alpha, biases, counted, implicit = (float(value) for value in file.tensors["settings"][0])
    factors = file.tensors["A"].shape[1] - int(biases)
    kinds = {lib.KILN_CONFIDENCE_LINEAR: "linear", lib.KILN_CONFIDENCE_PROPORTIONAL: "proportional",
             lib.KILN_CONFIDENCE_LOG: "log"}
    which, epsilon = (float(value) for value in file.tensors.get("confidence", np.ones((1, 2)))[0])
    estimator = file.make("ALS", n_components=factors, implicit=bool(implicit),
                          alpha=alpha if implicit else None, l2=l2,
                          biases=bool(biases), counted=bool(counted), confidence=kinds[int(which)],
                          epsilon=epsilon if kinds[int(which)] == "log" else None)
    estimator._know(file.tensors["A"], file.tensors["B"], mean, l2, bool(biases))
    return _named(_sized(estimator, file, factors), file)


def _make_sfa(file: _File) -> Any:
    mean, l2, damping = (float(value) for value in file.tensors["settings"][0])
    factors = file.tensors["A"].shape[1] - 1
    estimator = file.make("SFA", n_components=factors, l2=l2, damping=damping)
    estimator._know(file.tensors["A"], file.tensors["B"], mean, l2, True)
    return _named(_sized(estimator, file, factors), file)


def _make_gap(file: _File) -> Any:
    prior, shape, rate = (float(value) for value in file.tensors["settings"][0])
    factors = file.tensors["A"].shape[1]
    estimator = file.make("NMF", n_components=factors, prior="gamma" if prior == lib.KILN_GAP_GAMMA else None,
                          shape=shape, rate=rate)
    estimator._take(file.tensors["A"], file.tensors["B"])
    return _sized(estimator, file, factors)


def _make_lda(file: _File) -> Any:
    factors = file.tensors["A"].shape[1]
    estimator = file.make("LatentDirichletAllocation", n_components=factors,
                          topic_word_prior=float(file.tensors["eta"][0, 0]),
                          learn_alpha=bool(file.options.get("learn_alpha", False)))
    estimator._take(file.tensors["A"], file.tensors["B"])
    estimator._alphas = file.tensors["alpha"].astype(file.tensors["B"].dtype)
    return _sized(estimator, file, factors)


_MAKERS = {"linreg": _make_linreg, "logreg": _make_logreg, "glm": _make_glm, "svm": _make_svm,
           "kmeans": _make_kmeans, "mds": _make_mds, "als": _make_als, "sfa": _make_sfa, "gap": _make_gap,
           "lda": _make_lda, "svd": _make_svd, "pca": _make_svd, "spectral": _make_spectral}
