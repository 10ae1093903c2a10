"""The table of kiln.accel: what of scikit-learn and networkx Kiln runs instead, under which conditions, and
how far results may differ."""
from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any, Callable, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_feature_names, _check_n_features

import kiln

from ._columns import as_table
from ._frames import all_numbers
from ._scikit import give


class NotHere(Exception):
    """This call has no counterpart in Kiln; the text says why."""


class Rule(NamedTuple):
    """A function or method that is replaced. places: modules, or a module:class, that have it, each with the
    name there; ours(original, *arguments): what runs instead, or NotHere; apart(theirs, ours, *arguments):
    how far two results are apart; bound: how far they may be."""

    name: str
    places: tuple[tuple[str, str], ...]
    ours: Callable[..., Any]
    apart: Callable[..., float]
    bound: float
    also: Callable[..., Any] | None = None  # the original, run to its end, for verify


# ------------------------------------------------------------------------------------------------- estimators

# they say how, not what
_LIMITS = {"tol", "max_iter", "solver", "verbose", "warm_start", "random_state", "device"}


def wants(model: Any, **values: Any) -> None:
    """Refuses a parameter that is not as Kiln has it."""
    for name, value in values.items():
        found = getattr(model, name, value)
        if not (found is value or (np.isscalar(found) and found == value)):
            raise NotHere(f"{name}={found!r}")


def twin(model: Any, name: str = "", **changed: Any) -> Any:
    """Kiln's class of the same problem."""
    if hasattr(model, "coef_"):
        wants(model, warm_start=False)
    kind = getattr(kiln, name or type(model).__name__)
    known = set(inspect.signature(kind).parameters) - _LIMITS
    return kind(**{**{key: value for key, value in model.get_params(deep=False).items() if key in known},
                   **changed})


def _plain(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    return twin(model).fit(X, y, sample_weight)


def _penalised_intercept(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """liblinear's problem: the intercept is the coefficient of one more column of X, intercept_scaling."""
    if not model.fit_intercept:
        return _plain(model, X, y, sample_weight)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    column = np.full((X.shape[0], 1), model.intercept_scaling, X.dtype)
    wide = scipy.sparse.hstack([X, column], "csr") if scipy.sparse.issparse(X) else np.hstack([X, column])
    ours = twin(model, fit_intercept=False).fit(wide, y, sample_weight)
    last = ours.coef_[..., -1] * model.intercept_scaling
    ours.coef_, ours.intercept_ = (np.ascontiguousarray(ours.coef_[..., :-1]), last if last.ndim
                                   else np.array([last]))
    return ours


def _svm(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    wants(model, penalty="l2")  # of "l1" LIBLINEAR ends where its random order leads
    ours = _penalised_intercept(model, X, y, sample_weight)
    if not model.fit_intercept:
        ours.intercept_ = 0.0
    return ours


def _solvable(model: Any, ratios: Any, y: Any) -> None:
    """Leaves to scikit-learn what its solver of this name refuses. ratios: the l1_ratio of each penalty,
    where `penalty` does not say it."""
    given = (0.0,) if ratios is None or isinstance(ratios, str) else np.atleast_1d(ratios)
    named: dict[Any, Any] = {"l1": (1.0,), "l2": (0.0,), None: (0.0,)}
    penalties = named.get(model.penalty, given)
    small, lasso = model.solver == "liblinear", any(ratio != 0 for ratio in penalties)
    mixed = any(ratio not in (0, 1) for ratio in penalties)
    none = model.penalty is None or np.isinf(getattr(model, "C", 1.0))
    if ((lasso and model.solver not in ("liblinear", "saga")) or (model.dual and (lasso or not small))
        or (small and (mixed or none))):
        raise NotHere(f"solver={model.solver!r} refuses this penalty, or dual={model.dual}")
    if small and len(np.unique(y)) > 2:
        raise NotHere("solver='liblinear' refuses more than two classes")


def _logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    _solvable(model, model.l1_ratio, y)
    return (_penalised_intercept if model.solver == "liblinear" else _plain)(model, X, y, sample_weight)


def _logistic_cv(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    wants(model, use_legacy_attributes=False)
    _solvable(model, model.l1_ratios, y)
    if model.solver == "liblinear" and model.fit_intercept:
        raise NotHere("solver='liblinear' penalises the intercept")
    return _plain(model, X, y, sample_weight)


def _ridge(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Leaves to scikit-learn what its solver of this name refuses."""
    if model.solver == "lbfgs" or (scipy.sparse.issparse(X) and model.solver in ("svd", "cholesky", "saga")):
        raise NotHere(f"solver={model.solver!r} refuses this problem")
    return twin(model, "Ridge").fit(X, y, sample_weight)


def _ridge_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Ridge regression of targets that are -1 and 1."""
    model._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
    targets = model._label_binarizer.fit_transform(y)
    if model.class_weight is not None:
        weights = compute_sample_weight(model.class_weight, y)
        sample_weight = weights if sample_weight is None else sample_weight * weights
    return _ridge(model, X, targets.astype(np.float64), sample_weight)


def never(why: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise NotHere(why)

    return refuse


def _ridge_classifier_cv(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """RidgeCV of targets that are -1 and 1."""
    if model.scoring is not None or model.cv is not None:
        raise NotHere("scoring or cv given: it scores classes")
    model._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
    targets = model._label_binarizer.fit_transform(y).astype(np.float64)
    if model.class_weight is not None:
        weights = compute_sample_weight(model.class_weight, y)
        sample_weight = weights if sample_weight is None else sample_weight * weights
    return twin(model, "RidgeCV").fit(X, targets, sample_weight)


def adopt(model: Any, ours: Any, X: Any) -> None:
    """scikit-learn's fitted attributes from Kiln's."""
    give(model, ours)
    if hasattr(model, "_label_binarizer"):
        model.classes_ = model._label_binarizer.classes_
    _check_feature_names(model, X, reset=True)
    _check_n_features(model, X, reset=True)


def _fit(train: Callable[..., Any]) -> Callable[..., Any]:
    def ours(original: Any, model: Any, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> Any:
        more.pop("check_input", None)  # input is always checked
        if more:
            raise NotHere(f"fit({', '.join(more)}=...)")
        if as_table(X) is not None and not all_numbers(X):
            raise NotHere("X has columns of text or dates")
        model._validate_params()
        found = train(model, X, y, sample_weight)
        adopt(model, found, X)
        return model

    return ours


def _predictions(model: Any, X: Any) -> Any:
    found = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return np.asarray(found, np.float64)


def _models_apart(theirs: Any, ours: Any, model: Any, X: Any, *arguments: Any, **named: Any) -> float:
    """The largest difference between predictions of X, over their range."""
    return _far(_predictions(theirs, X), _predictions(ours, X))


def _far(wanted: Any, found: Any) -> float:
    wanted, found = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
    return float(np.abs(found - wanted).max() / (np.ptp(wanted) or np.abs(wanted).max() or 1.0))


def _fit_to_the_end(original: Any, model: Any, *arguments: Any, **named: Any) -> Any:
    """scikit-learn's fit with a tolerance that leaves its end no choice."""
    other, limits = clone(model), {"tol": 1e-10, "max_iter": 100000}
    other.set_params(**{name: value for name, value in limits.items()
                        if name in other.get_params(deep=False)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return original(other, *arguments, **named)


_RANDOM = "its batches are drawn at random"
_FITS: dict[str, tuple[str, Callable[..., Any], float]] = {
    **{name: ("linear_model", _plain, 1e-4) for name in ("LinearRegression", "Lasso", "LassoCV", "ElasticNet",
                                                         "ElasticNetCV",
                                                        "PoissonRegressor", "GammaRegressor",
                                                         "TweedieRegressor")},
    "Ridge": ("linear_model", _ridge, 1e-4), "LogisticRegression": ("linear_model", _logistic, 1e-4),
    "LogisticRegressionCV": ("linear_model", _logistic_cv, 1e-4),
    "RidgeCV": ("linear_model", _plain, 1e-4),
    "RidgeClassifierCV": ("linear_model", _ridge_classifier_cv, 1e-4),
    "RidgeClassifier": ("linear_model", _ridge_classifier,
                                                                      1e-4), "LinearSVC": ("svm", _svm, 1e-4),
    "LinearSVR": ("svm", _svm, 1e-4), "MiniBatchKMeans": ("cluster", never(_RANDOM), 0.0),
    "MiniBatchNMF": ("decomposition", never(_RANDOM), 0.0),
    "SpectralEmbedding": ("manifold",
                          never("vectors of equal eigenvalues are any: kiln.SpectralEmbedding has its own"),
                          0.0),
    "LatentDirichletAllocation": ("decomposition",
                                  never("its inner iterations end elsewhere: kiln.LatentDirichletAllocation "
                                         "runs to the end"), 0.0),
}


# ------------------------------------------------------------------------------ iterations with a given start


def _quietly(model: Any, method: str, *arguments: Any, **named: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return getattr(model, method)(*arguments, **named)


def _lloyd(original: Any, X: Any, sample_weight: Any, centers_init: Any, max_iter: int = 300,
           verbose: Any = False, tol: float = 1e-4, n_threads: int = 1) -> Any:
    """One start of K-Means: scikit-learn drew it, and scikit-learn's tol is of the mean variance already."""
    if scipy.sparse.issparse(X):
        variance = float(np.mean(X.multiply(X).mean(axis=0) - np.square(X.mean(axis=0))))
    else:
        variance = float(np.var(X, axis=0).mean())
    model = kiln.KMeans(len(centers_init), init=centers_init, n_init=1, max_iter=max_iter, tol=tol / variance
                        if variance > 0 else 0.0)
    _quietly(model, "fit", X, sample_weight=sample_weight)
    return model.labels_, model.inertia_, model.cluster_centers_, model.n_iter_


def _smacof(original: Any, dissimilarities: Any, metric: Any = True, n_components: int = 2, init: Any = None,
            max_iter: int = 300, verbose: int = 0, eps: float = 1e-6, random_state: Any = None,
            normalized_stress: Any = False) -> Any:
    """One start of SMACOF, to Kiln's end, which is later: of the stress, where scikit-learn's eps is of the
    distances' squares."""
    if not metric:
        raise NotHere("scikit-learn scales the disparities of non-metric layouts another way")
    if init is None:
        init = check_random_state(random_state).uniform(size=(len(dissimilarities), n_components))
    model = kiln.MDS(np.shape(init)[1], metric="ratio", dissimilarity="precomputed", init=np.asarray(init),
                     max_iter=10 * max_iter, eps=eps, normalized_stress=bool(normalized_stress))
    _quietly(model, "fit", np.asarray(dissimilarities, np.float64))
    return model.embedding_, model.stress_, model.n_iter_


def _multiplicative(original: Any, X: Any, W: Any, H: Any, beta_loss: Any = "frobenius", max_iter: int = 200,
                    tol: float = 1e-4, l1_reg_W: float = 0, l1_reg_H: float = 0, l2_reg_W: float = 0,
                    l2_reg_H: float = 0, update_H: bool = True, verbose: int = 0) -> Any:
    """Multiplicative updates, which end as scikit-learn's do: where ten of them lower the error by less than
    tol times the first."""
    if beta_loss not in ("kullback-leibler", 1):
        raise NotHere(f"beta_loss={beta_loss!r}")
    if not update_H or any((l1_reg_W, l1_reg_H, l2_reg_W, l2_reg_H)):
        raise NotHere("H is fixed" if not update_H else "alpha_W or alpha_H penalises")
    from sklearn.decomposition._nmf import _beta_divergence

    first = previous = _beta_divergence(X, W, H, 1, square_root=True)
    done = 0
    while done < max_iter:
        steps = min(10, max_iter - done)
        model = kiln.NMF(W.shape[1], init="custom", tol=0.0, max_iter=steps)
        W, done = _quietly(model, "fit_transform", X, W=W, H=H), done + steps
        H = model.components_
        if tol > 0 and steps == 10:
            if (previous - model.reconstruction_err_) / first < tol:
                break
            previous = model.reconstruction_err_
    return W, H, done


def _path(original: Any, X: Any, y: Any, **options: Any) -> Any:
    known = set(inspect.signature(kiln.enet_path).parameters) - {"tol", "max_iter"}
    unknown = set(options) - known - {"tol", "max_iter"}
    if unknown:
        raise NotHere(f"{', '.join(sorted(unknown))} given")
    ratio = {"l1_ratio": 1.0} if original.__name__ == "lasso_path" else {}
    return kiln.enet_path(X, y,
                          **{**ratio, **{name: value for name, value in options.items() if name in known}})


def _objectives_apart(theirs: Any, ours: Any, *arguments: Any, **named: Any) -> float:
    """By how much the second result, an objective, is above scikit-learn's, relative to it."""
    return max(0.0, float(ours[1] - theirs[1])) / (abs(float(theirs[1])) or 1.0)


def _errors_apart(theirs: Any, ours: Any, X: Any, *arguments: Any, **named: Any) -> float:
    from sklearn.decomposition._nmf import _beta_divergence

    wanted, found = (_beta_divergence(X, W, H, 1, square_root=True) for W, H, _ in (theirs, ours))
    return float(max(0.0, found - wanted) / (wanted or 1.0))


def _second_apart(theirs: Any, ours: Any, *arguments: Any, **named: Any) -> float:
    return _far(theirs[1], ours[1])


def _path_to_the_end(original: Any, X: Any, y: Any, **options: Any) -> Any:
    return original(X, y, **{**options, "tol": 1e-10, "max_iter": 100000})


# --------------------------------------------------------------------------------------------------- networkx


def _ranks(original: Any, *arguments: Any, **named: Any) -> Any:
    from . import _networkx

    if named.get("backend") not in (None, "networkx"):
        raise NotHere(f"backend={named['backend']!r}")
    named.pop("backend", None)
    return getattr(_networkx, original.__name__)(*arguments, **named)


def _ranks_to_the_end(original: Any, *arguments: Any, **named: Any) -> Any:
    return original(*arguments, **{**named, "tol": 1e-12, "max_iter": 10000})


def _ranks_apart(theirs: Any, ours: Any, *arguments: Any, **named: Any) -> float:
    """The 1-norm of the difference, of hubs or scores."""
    theirs, ours = (found[0] if isinstance(found, tuple) else found for found in (theirs, ours))
    return float(sum(abs(theirs[node] - ours[node]) for node in theirs))


def _fits() -> list[Rule]:
    found = []
    for name, (module, train, bound) in _FITS.items():
        module = f"sklearn.{module}"
        if hasattr(importlib.import_module(module), name):
            found.append(Rule(f"{name}.fit", ((f"{module}:{name}", "fit"),), _fit(train), _models_apart,
                              bound, _fit_to_the_end))
    return found


def rules() -> list[Rule]:
    """The table."""
    from ._accel_axes import rules as axes
    from ._accel_peers import rules as beside

    kmeans, descent = "sklearn.cluster._kmeans", "sklearn.linear_model._coordinate_descent"
    starts = [Rule("KMeans, a start",
                   tuple((module, name) for module in (kmeans, "sklearn.cluster._bisect_k_means")), _lloyd,
                   _objectives_apart, 1e-3)
              for name in ("_kmeans_single_lloyd", "_kmeans_single_elkan")]
    paths = [Rule(name, tuple((module, name) for module in ("sklearn.linear_model", descent)), _path,
                  _second_apart, 1e-3, _path_to_the_end)
             for name in ("lasso_path", "enet_path")]
    within = ("networkx", "networkx.algorithms", "networkx.algorithms.link_analysis")
    ranks = [Rule(f"networkx.{name}",
                  tuple((module, name) for module in (*within, f"{within[-1]}.{name}_alg")), _ranks,
                  _ranks_apart, 1e-6, _ranks_to_the_end)
             for name in ("pagerank", "hits")]
    return [*_fits(), *starts, *paths, *ranks, *axes(), *beside(),
            Rule("MDS, a start", (("sklearn.manifold._mds", "_smacof_single"),), _smacof, _objectives_apart,
                 1e-3),
            Rule("NMF, updates", (("sklearn.decomposition._nmf", "_fit_multiplicative_update"),),
                 _multiplicative, _errors_apart, 1e-3)]
