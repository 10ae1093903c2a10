"""Models as ONNX graphs, which other runtimes run without Kiln, scikit-learn or Python.

A graph is written in ONNX's text form: a line of operators for each model, beside its tensors. The types are
the model's own, float64 or float32, so that decisions are the model's own, too."""
from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple

import numpy as np

from ._cluster import KMeans
from ._extras import needed
from ._factors import NMF
from ._library import UnsupportedError, lib, text
from ._linear import GeneralizedLinearRegressor, _Classifier, _Logistic, _Regressor

_TYPES = {"f": "float", "d": "double", "b": "bool", "U": "string", "O": "string"}
# the mean that a link makes of eta; erf and atan are there in float32 alone
_MEANS = {
    "identity": "variable = Identity(eta)",
    "log": "variable = Exp(eta)",
    "logit": "variable = Sigmoid(eta)",
    "sqrt": "variable = Mul(eta, eta)",
    "inverse": "variable = Reciprocal(eta)",
    "inverse-squared": "root = Sqrt(eta) variable = Reciprocal(root)",
    "power": "variable = Pow(eta, exponent)",
    "cloglog": "t = Exp(eta) minus = Neg(t) rest = Exp(minus) variable = Sub(one, rest)",
    "probit": "scaled = Mul(eta, root_half) short = Cast<to = 1>(scaled) erf = Erf(short) "
              "long = CastLike(erf, eta) twice = Add(long, one) variable = Mul(twice, half)",
    "cauchit": "short = Cast<to = 1>(eta) atan = Atan(short) long = CastLike(atan, eta) "
               "share = Mul(long, over_pi) variable = Add(share, half)",
}
_LINEAR = "product = MatMul(X, W) eta = Add(product, b) "
_TWO = ("positive = Greater(eta, zero) column = Cast<to = 7>(positive) index = Reshape(column, flat) "
        "label = Gather(classes, index) ")
_SEVERAL = "index = ArgMax<axis = 1, keepdims = 0>(eta) label = Gather(classes, index) "
# distances about the mean of the centres, so that little is lost to squares that are large
_NEAREST = ("shifted = Sub(row, shift) cross = MatMul(shifted, minus_twice) near = Add(cross, squares) "
            "label = ArgMin<axis = 1, keepdims = 0>(near) own = ReduceSumSquare(shifted, one_axis) "
            "whole = Add(near, own) square = Max(whole, zero) distance = Sqrt(square) "
            "scores = CastLike(distance, X)")
_UNIT = ("length = ReduceL2(wide, one_axis) empty = Equal(length, zero) safe = Where(empty, one, length) "
         "row = Div(wide, safe) ")
# the multiplicative update of W until the likelihood of X rests, as kiln_transform has it: added up in
# float64, as a sum of float32 would rest elsewhere
_FOLD_IN = """
sums = ReduceSum(X, one_axis) lengths = Mul(sums, zero) start = Add(lengths, ones)
variable, last = Loop<body = step (int64 i, bool on, {kind}[N, K] W, double before)
    => (bool more, {kind}[N, K] next, double fit) {{
    product = MatMul(W, H) guarded = Max(product, least) ratio = Div(X, guarded)
    Y = MatMul(ratio, H_transposed)
    moved = Mul(W, Y) raised = Add(moved, shape) next = Mul(raised, over)
    logarithm = Log(guarded) terms = Mul(X, logarithm) wide = Cast<to = 11>(terms)
    fit = ReduceSum<keepdims = 0>(wide)
    change = Sub(fit, before) far = Abs(change) size = Abs(fit) bound = Mul(size, tolerance)
    moves = Greater(far, bound) early = Less(i, two) more = Or(moves, early)
}}>(steps, true, start, no_fit)
"""


class _Graph(NamedTuple):
    outputs: str
    body: str
    tensors: dict[str, Any]
    more: str = ""  # inputs beside X


def _regressor(model: Any, kind: str) -> _Graph:
    return _Graph(f"{kind}[N, K] variable", _LINEAR + _MEANS["identity"], {})


def _generalized(model: Any, kind: str) -> _Graph:
    family, link, _, power = model._of_fit()
    link = text(lib.kiln_link_name(model._known().link)) if link == "default" else link
    tensors = {"exponent": 1 / power if link == "power" else 1.0, "one": 1.0, "half": 0.5,
               "root_half": np.sqrt(0.5), "over_pi": 1 / np.pi}
    if not model._offset:
        return _Graph(f"{kind}[N, K] variable", _LINEAR + _MEANS[link], tensors)
    moved = _LINEAR.replace("eta", "without") + "eta = Add(without, offset) "
    return _Graph(f"{kind}[N, K] variable", moved + _MEANS[link], tensors, f", {kind}[N, 1] offset")


def _classifier(model: Any, kind: str) -> _Graph:
    two, classes = model._weight.shape[1] == 1, model.classes_
    names = classes.dtype.kind in "UO"
    tensors = {"classes": classes.astype(object) if names else classes.astype(
        np.int64 if classes.dtype.kind == "i" else classes.dtype)}
    of = _TYPES.get(classes.dtype.char if classes.dtype.kind == "f" else classes.dtype.kind,
                    "uint64" if classes.dtype.kind == "u" else "int64")
    if of == "uint64":
        tensors["classes"] = classes.astype(np.uint64)
    body = _LINEAR + (_TWO if two else _SEVERAL)
    if not isinstance(model, _Logistic):
        return _Graph(f"{of}[N] label, {kind}[N, K] scores", body + "scores = Identity(eta)",
                      {**tensors, "zero": 0.0})
    body += ("minus = Neg(eta) first = Sigmoid(minus) second = Sigmoid(eta) "
             "probabilities = Concat<axis = 1>(first, second)" if two
             else "probabilities = Softmax<axis = 1>(eta)")
    return _Graph(f"{of}[N] label, {kind}[N, {len(classes)}] probabilities", body, {**tensors, "zero": 0.0})


def _clusters(model: Any, kind: str) -> _Graph:
    """In float64, as kiln.KMeans has the labels of float32."""
    centres = model.cluster_centers_.astype(np.float64)
    shift = centres.mean(axis=0, keepdims=True)
    rest = centres - shift
    tensors = {"shift": shift, "minus_twice": -2 * rest.T, "squares": np.square(rest).sum(axis=1)[None, :],
               "zero": np.zeros(()), "one": np.ones(())}
    body = ("wide = Cast<to = 11>(X) " + _UNIT if model.spherical else "row = Cast<to = 11>(X) ") + _NEAREST
    return _Graph(f"int64[N] label, {kind}[N, {len(centres)}] scores", body, tensors)


def _parts(model: Any, kind: str) -> _Graph:
    options, H = model._settings(), model.components_
    shape, rate = (lib.kiln_option_value(b"gap", options, name, lib.KILN_F64) if model.prior else nothing
                   for name, nothing in ((b"shape", 1.0), (b"rate", 0.0)))
    sums = H.sum(axis=1, dtype=np.float64) + rate
    over = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)[None, :]
    tensors = {"H": H, "H_transposed": H.T, "shape": shape - 1, "over": over, "ones": np.ones((1, len(H))),
               "least": np.finfo(H.dtype).tiny, "zero": 0.0}
    return _Graph(f"{kind}[N, {len(H)}] variable", _FOLD_IN.format(kind=kind),
                  {**{name: np.asarray(value, H.dtype) for name, value in tensors.items()},
                   "tolerance": np.array(1e-7), "no_fit": np.zeros(()), "steps": np.int64(1000),
                   "true": np.True_, "two": np.int64(2)})


_GRAPHS: tuple[tuple[Any, Callable[[Any, str], _Graph]], ...] = (
    (_Classifier, _classifier), (GeneralizedLinearRegressor, _generalized), (_Regressor, _regressor),
    (KMeans, _clusters), (NMF, _parts))


def to_onnx(model: Any, path: Any = None) -> Any:
    """A fitted model as an ONNX graph, which onnxruntime and others run.

    Parameters
    ----------
    model : estimator
        A fitted linear model or K-Means, or NMF. Not LatentDirichletAllocation, MDS, ALS and SFA.
    path : str or path-like, optional
        Where to write the graph, such as ``"model.onnx"``.

    Returns
    -------
    onnx.ModelProto
        The graph. Its input "X" is a dense array of shape (n_samples, n_features) in the type of the model,
        float64 or float32; a generalised linear model that was fitted with an offset has the input "offset"
        of shape (n_samples, 1), too. Outputs have skl2onnx's names: "variable" (n_samples, n_targets) of
        regressors, and of NMF what ``transform`` returns; "label" (n_samples,) and "probabilities" of
        logistic regression; "label" and "scores", what ``decision_function`` returns, of LinearSVC; "label"
        and "scores", what ``transform`` returns, of K-Means.

    Raises
    ------
    UnsupportedError
        If the model has no graph.
    ImportError
        If the package onnx is not installed.

    Notes
    -----
    Results are those of the model but for rounding. The links "probit" and "cauchit" are computed in float32,
    as runtimes have no erf and atan of float64. NMF iterates as ``transform`` does, over all rows of a call
    at once; in float32 rounding may end it a step earlier or later, which changes the likelihood by 1e-7 of
    itself. kiln.to_sklearn gives what skl2onnx takes, for Pipelines.

    Examples
    --------
    >>> import kiln
    >>> model = kiln.Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
    >>> [output.name for output in kiln.to_onnx(model).graph.output]  # doctest: +SKIP
    ['variable']
    """
    from sklearn.utils.validation import check_is_fitted

    find = next((made for kind, made in _GRAPHS if isinstance(model, kind)), None)
    if find is None:
        raise UnsupportedError(f"{type(model).__name__} has no ONNX graph: linear models, K-Means and NMF "
                               "have one.")
    check_is_fitted(model)
    onnx = needed("onnx", "kiln.to_onnx")

    linear = hasattr(model, "coef_")
    dtype = (model._weight if linear else model.cluster_centers_ if isinstance(model, KMeans)
             else model.components_).dtype
    kind = _TYPES[dtype.char]
    outputs, body, tensors, more = find(model, kind)
    if linear:
        tensors = {"W": model._weight, "b": model._bias, **tensors}
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18], producer_name: "kiln">\n'
                                   f"kiln ({kind}[N, {model.n_features_in_}] X{more}) => ({outputs}) "
                                   f"{{ {body} }}")
    for name, values in {"flat": np.array([-1]), "one_axis": np.array([1]), **tensors}.items():
        values = np.array(values, dtype if isinstance(values, float) else None, order="C")
        if name in body.replace("(", " ").replace(")", " ").replace(",", " ").split():
            made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        onnx.helper.set_model_props(made, {"feature_names": json.dumps(list(names))})
    onnx.checker.check_model(made)
    if path is not None:
        onnx.save(made, path)
    return made
