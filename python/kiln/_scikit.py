"""Models to scikit-learn and from it: one table of the classes that both have."""
from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

import kiln

from ._base import Estimator
from ._library import ArgumentError, UnsupportedError, lib, text

# parameters that say how, not what: scikit-learn's defaults are not meant as a wish
_HOW = {"tol", "eps", "max_iter", "solver", "verbose"}
# fitted attributes that scikit-learn's classes do not have
_OWN = {"device_", "converged_", "objective_", "optimality_gap_", "report_", "standard_errors_",
        "intercept_error_", "stress_1_", "point_stress_", "scale_"}
_PROPERTIES = ("doc_topic_prior_", "topic_word_prior_", "exp_dirichlet_component_")
_POWERS = {"gaussian": 0.0, "poisson": 1.0, "gamma": 2.0, "inverse-gaussian": 3.0}


class _Row(NamedTuple):
    """A class of Kiln that scikit-learn has too. module: scikit-learn's; wanted(model): the parameters whose
    value is another one there; give(theirs, ours): what else scikit-learn's methods look at; take(ours,
    theirs): what else Kiln's do; name: scikit-learn's, where it differs."""

    module: str
    wanted: Callable[[Any], dict[str, Any]] = lambda model: {}
    give: Callable[[Any, Any], None] = lambda theirs, ours: None
    take: Callable[[Any, Any], None] = lambda ours, theirs: None
    name: str = ""


def fitted(model: Any) -> bool:
    """Whether fit() has been called."""
    return any(name.endswith("_") and not name.startswith("_") for name in vars(model))


# ------------------------------------------------------------------------------------------------- the table


def _logistic(model: Any) -> dict[str, Any]:
    """A solver that has this penalty: scikit-learn's "liblinear" would penalise the intercept, too."""
    ratios = np.atleast_1d(model._ratio(getattr(model, "l1_ratio", getattr(model, "l1_ratios", 0.0))))
    plain = model.solver not in ("liblinear", "auto", "newton", "dual") and not ratios.any()
    return {"solver": model.solver if plain else "saga" if ratios.any() else "lbfgs", "dual": False}


def _power(model: Any) -> dict[str, Any]:
    """The power of a TweedieRegressor, where it was found."""
    if not model._estimates():
        return {}
    if not fitted(model):
        raise UnsupportedError("scikit-learn does not estimate the power: fit this model first.")
    return {"power": model._of_fit()[2]}


def _tweedie(model: Any) -> dict[str, Any]:
    """The power and the link of TweedieRegressor."""
    _power(model)
    family, link, parameter, _ = model._of_fit()
    link = text(lib.kiln_link_name(model._known().link)) if link == "default" else link
    power = parameter if family == "tweedie" else _POWERS.get(family)
    if power is None or link not in ("identity", "log"):
        raise UnsupportedError(f"scikit-learn has no model of the family {family!r} with the link {link!r}: "
                               "to_onnx() has it, and save().")
    return {"power": power, "link": link, "alpha": getattr(model, "alpha_", getattr(model, "alpha", 1.0))}


def _scaling(model: Any) -> dict[str, Any]:
    """What MDS lays out, in scikit-learn's words of this version."""
    kind, of = model._meant()
    if kind == "interval":
        raise UnsupportedError("scikit-learn has no MDS with metric='interval'.")
    if "metric_mds" in inspect.signature(_original("MDS")).parameters:
        return {"metric": "euclidean" if of == "deprecated" else of, "metric_mds": kind == "ratio",
                "dissimilarity": "deprecated"}
    return {"metric": kind == "ratio", "dissimilarity": "euclidean" if of == "euclidean" else "precomputed"}


def _give_loss(theirs: Any, ours: Any) -> None:
    theirs._base_loss = theirs._get_loss()


def _take_family(ours: Any, theirs: Any) -> None:
    ours._fitted = ours._distribution()


def _give_vector(theirs: Any, ours: Any) -> None:
    theirs.intercept_ = np.atleast_1d(ours.intercept_)


def _take_epsilon(ours: Any, theirs: Any) -> None:
    ours.intercept_ = np.atleast_1d(theirs.intercept_)[0]
    ours._fitted = ours.epsilon


def _give_centres(theirs: Any, ours: Any) -> None:
    theirs._n_threads, theirs._n_features_out = _openmp_effective_n_threads(), len(ours.cluster_centers_)
    if hasattr(theirs, "partial_fit") and ours._clusters is not None:
        theirs._counts, theirs._n_since_last_reassign = ours._clusters[:, 0].copy(), 0
        theirs._random_state, theirs._batch_size = check_random_state(ours.random_state), ours.batch_size


def _take_centres(ours: Any, theirs: Any) -> None:
    ours._n_features_out = len(ours.cluster_centers_)


def _give_parts(theirs: Any, ours: Any) -> None:
    theirs._n_components = len(ours.components_)


def _give_topics(theirs: Any, ours: Any) -> None:
    if np.ptp(ours._alphas) > 0:
        raise UnsupportedError("scikit-learn's LatentDirichletAllocation has one prior for all topics: fit "
                               "with learn_alpha=False.")
    for name in _PROPERTIES:
        setattr(theirs, name, getattr(ours, name))
    theirs.doc_topic_prior_ = float(ours._alphas[0, 0])
    theirs.random_state_ = check_random_state(ours.random_state)


def _wanted_axes(model: Any) -> dict[str, Any]:
    if getattr(model, "standardize", False):
        raise UnsupportedError(f"scikit-learn's {type(model).__name__} has no standardize: put a "
                               "StandardScaler before it.")
    return {}


def _take_axes(ours: Any, theirs: Any) -> None:
    """The variance as a model's file has it; of a TruncatedSVD the rows are not known."""
    ours._variance = ours.explained_variance_
    with np.errstate(invalid="ignore", divide="ignore"):
        ours._total = float(np.divide(ours.explained_variance_[0], ours.explained_variance_ratio_[0]))


def _take_parts(ours: Any, theirs: Any) -> None:
    ours._n_features_out = len(theirs.components_)
    ours._rows = None  # which scikit-learn does not keep


def _take_topics(ours: Any, theirs: Any) -> None:
    _take_parts(ours, theirs)
    ours._alphas = np.full((1, len(ours.components_)), theirs.doc_topic_prior_, ours.components_.dtype)


def _take_layout(ours: Any, theirs: Any) -> None:
    ours._metric, of = ours._meant()
    ours._points = None


_TABLE: dict[str, _Row] = {
    **dict.fromkeys(("LinearRegression", "Ridge", "RidgeCV", "Lasso", "ElasticNet", "LassoCV",
                     "ElasticNetCV"), _Row("linear_model")),
    **dict.fromkeys(("LogisticRegression", "LogisticRegressionCV"), _Row("linear_model", _logistic)),
    **dict.fromkeys(("PoissonRegressor", "GammaRegressor", "TweedieRegressor"),
                    _Row("linear_model", _power, _give_loss, _take_family)),
    **dict.fromkeys(("GeneralizedLinearRegressor", "GeneralizedLinearRegressorCV"),
                    _Row("linear_model", _tweedie, _give_loss, name="TweedieRegressor")),
    "LinearSVC": _Row("svm"),
    "LinearSVR": _Row("svm", give=_give_vector, take=_take_epsilon),
    **dict.fromkeys(("KMeans", "MiniBatchKMeans"), _Row("cluster", give=_give_centres, take=_take_centres)),
    "NMF": _Row("decomposition", give=_give_parts, take=_take_parts),
    "LatentDirichletAllocation": _Row("decomposition", give=_give_topics, take=_take_topics),
    "SpectralEmbedding": _Row("manifold"),
    "MDS": _Row("manifold", _scaling, take=_take_layout),
    **dict.fromkeys(("PCA", "IncrementalPCA", "TruncatedSVD"),
                    _Row("decomposition", _wanted_axes, take=_take_axes)),
}


def _original(name: str) -> Any:
    """scikit-learn's class for Kiln's of that name."""
    row = _TABLE[name]
    return getattr(importlib.import_module(f"sklearn.{row.module}"), row.name or name)


# ------------------------------------------------------------------------------------------ to scikit-learn


def to_sklearn(model: Any) -> Any:
    """The estimator of scikit-learn that a model of Kiln is.

    Parameters
    ----------
    model : estimator or Pipeline
        An estimator of Kiln, or a scikit-learn Pipeline that contains some.

    Returns
    -------
    estimator
        scikit-learn's class of the same name, with the parameters that it has (its own default where it does
        not take Kiln's value) and, of a fitted model, the attributes, so that it predicts the same. A
        GeneralizedLinearRegressor becomes a TweedieRegressor, a spherical KMeans a Pipeline of a Normalizer
        and a KMeans, and a Pipeline one whose steps are scikit-learn's. Arrays are copies.

    Raises
    ------
    UnsupportedError
        If scikit-learn has no such model: ALS and SFA, families and links that TweedieRegressor does not
        have, a fit with an offset, NMF(prior="gamma"), LatentDirichletAllocation(learn_alpha=True), and
        MDS(metric="interval").

    Examples
    --------
    >>> import kiln
    >>> model = kiln.Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
    >>> kiln.to_sklearn(model)
    Ridge(alpha=0.5)
    """
    if isinstance(model, Pipeline):
        return _through(model, lambda step: to_sklearn(step) if isinstance(step, Estimator) else step)
    name = type(model).__name__
    if isinstance(model, type):
        raise ArgumentError(f"{model.__name__} is a class: to_sklearn takes an estimator, "
                            f"{model.__name__}()")
    if type(model).__module__.startswith("sklearn."):
        raise ArgumentError(f"this {name} is scikit-learn's already: from_sklearn makes Kiln's of it")
    if not isinstance(model, Estimator) or name not in _TABLE:
        raise UnsupportedError(f"scikit-learn has no class that is like {name} of "
                               f"{type(model).__module__.partition('.')[0]}.")
    if getattr(model, "_offset", False):
        raise UnsupportedError(f"this {name} was fitted with an offset, which scikit-learn's models do not "
                               "have.")
    if getattr(model, "prior", None):
        raise UnsupportedError("scikit-learn's NMF has no prior='gamma'.")
    theirs = _original(name)(**_parameters(model))
    if fitted(model):
        give(theirs, model)
    if not getattr(model, "spherical", False):
        return theirs
    whole = make_pipeline(Normalizer(), theirs)
    if hasattr(model, "n_features_in_"):
        whole[0].n_features_in_ = model.n_features_in_
    return whole


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters of scikit-learn's class; those whose value it does not take are left to its default."""
    kind = _original(type(model).__name__)
    values = {**model.get_params(deep=False), **_TABLE[type(model).__name__].wanted(model)}
    known = inspect.signature(kind).parameters
    return {name: value for name, value in values.items() if name in known and _takes(kind, name, value)}


def _takes(kind: Any, name: str, value: Any) -> bool:
    """Whether scikit-learn's class takes this value of a parameter."""
    try:
        validate_parameter_constraints({name: kind._parameter_constraints[name]}, {name: value},
                                       kind.__name__)
    except InvalidParameterError:
        return False
    return True


def give(theirs: Any, ours: Any) -> None:
    """What scikit-learn's methods look at after fit, from a fitted model of Kiln."""
    for name, value in vars(ours).items():
        if name.endswith("_") and not name.startswith("_") and name not in _OWN and value is not None:
            setattr(theirs, name, value.copy() if isinstance(value, np.ndarray) else value)
    _TABLE[type(ours).__name__].give(theirs, ours)


def _through(pipeline: Any, change: Callable[[Any], Any]) -> Any:
    """The Pipeline with each step changed."""
    steps = [(name, step if isinstance(step, str) or step is None else change(step))
             for name, step in pipeline.steps]
    return Pipeline(steps, memory=pipeline.memory, verbose=pipeline.verbose)


# ---------------------------------------------------------------------------------------- from scikit-learn


def from_sklearn(estimator: Any, **parameters: Any) -> Any:
    """The estimator of Kiln that one of scikit-learn is.

    Parameters
    ----------
    estimator : estimator or Pipeline
        One of a class that Kiln has by the same name, fitted or not; or a Pipeline, whose steps of such
        classes become Kiln's, while scalers and all other steps stay as they are.
    **parameters
        Parameters of Kiln's class that are to have another value, such as ``device="cuda"``; not of a
        Pipeline.

    Returns
    -------
    estimator
        Kiln's estimator with the same parameters; ``tol``, ``eps``, ``max_iter`` and ``solver`` are Kiln's
        defaults where they were scikit-learn's. From a fitted estimator it makes one that predicts and
        transforms alike.

    Raises
    ------
    UnsupportedError
        If Kiln has no class of that name.
    ArgumentError
        If Kiln's class refuses the value of a parameter, such as NMF(solver="cd").

    Examples
    --------
    >>> import kiln
    >>> from sklearn.linear_model import Lasso
    >>> kiln.from_sklearn(Lasso(alpha=0.1), device="cpu")
    Lasso(alpha=0.1, device='cpu')
    """
    if isinstance(estimator, Pipeline) and not parameters:
        return _through(estimator, lambda step: from_sklearn(step) if _known(step) else step)
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise ArgumentError(f"{estimator.__name__} is a class: from_sklearn takes an estimator, "
                            f"{estimator.__name__}()")
    if isinstance(estimator, Estimator):
        raise ArgumentError(f"this {name} is Kiln's already: to_sklearn makes scikit-learn's of it")
    if not _known(estimator):
        raise UnsupportedError(f"Kiln has no class that is like {name} of "
                               f"{type(estimator).__module__.partition('.')[0]}.")
    given, ready = _wishes(estimator), fitted(estimator)
    ours = getattr(kiln, name)(**{**given, **parameters})
    ours._check_only()
    if ready:
        _take(ours, estimator)
    return ours


def _known(estimator: Any) -> bool:
    """Whether Kiln has scikit-learn's class of this estimator."""
    row = _TABLE.get(type(estimator).__name__)
    return (row is not None and not row.name and isinstance(estimator, BaseEstimator)
            and type(estimator) is _original(type(estimator).__name__))


def _wishes(estimator: Any) -> dict[str, Any]:
    """scikit-learn's parameters that Kiln's class has and that are wishes."""
    defaults = {name: one.default for name, one in inspect.signature(type(estimator)).parameters.items()}
    known = inspect.signature(getattr(kiln, type(estimator).__name__)).parameters
    found = {}
    for name, value in estimator.get_params(deep=False).items():
        left = value is defaults[name] or (np.isscalar(value) and value == defaults[name])
        if name in known and not (left and (name in _HOW or value in ("warn", "deprecated"))):
            found[name] = value
    return found


def _take(ours: Any, theirs: Any) -> None:
    """What Kiln's methods look at after fit, from a fitted model of scikit-learn's."""
    check_is_fitted(theirs)
    kind = type(ours)
    for name, value in vars(theirs).items():
        computed = isinstance(getattr(kind, name, None), property)
        if name.endswith("_") and not name.startswith("_") and not computed:
            setattr(ours, name, value.copy() if isinstance(value, np.ndarray) else value)
    _TABLE[kind.__name__].take(ours, theirs)
    ours._told = {"trained_by": "scikit-learn"}
