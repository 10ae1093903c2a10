"""Runs scikit-learn's own classes on Kiln, where both minimise the same.

    python -m kiln.accel script.py [arguments]      a table at the end says which call ran where, for how long, or why not

or install() at the beginning of a program. Classes keep their identity: fit() of a supported call trains with Kiln and sets
scikit-learn's attributes; every other call runs as it always did.
"""
from __future__ import annotations

import functools
import numbers
import runpy
import sys
import time
from typing import Any, Callable, NamedTuple

import numpy as np
import sklearn.cluster
import sklearn.linear_model
import sklearn.svm

from ._base import Estimator
from ._cluster import KMeans
from ._library import KilnError
from ._linear import (GammaRegressor, LinearRegression, LinearSVC, LogisticRegression, PoissonRegressor, Ridge, TweedieRegressor)


class Call(NamedTuple):
    """A call of fit: where it ran ("scikit-learn", or Kiln's device), how long, and why not on Kiln."""

    name: str
    shape: tuple[int, ...]
    where: str
    seconds: float
    why: str


calls: list[Call] = []


class _NotHere(Exception):
    """This call has no counterpart in Kiln; the text says why."""


def _wants(model: Any, **values: Any) -> None:
    """Refuses a parameter that is not as Kiln has it."""
    for name, value in values.items():
        found = getattr(model, name, value)
        if not (found is value or (np.isscalar(found) and found == value)):
            raise _NotHere(f"{name}={found!r}")


def _linear_regression(model: Any) -> Estimator:
    _wants(model, positive=False)
    return LinearRegression(fit_intercept=model.fit_intercept)


def _ridge(model: Any) -> Estimator:
    _wants(model, positive=False)
    if not isinstance(model.alpha, numbers.Real):
        raise _NotHere("an alpha for each target")
    return Ridge(float(model.alpha), fit_intercept=model.fit_intercept)


def _logistic(model: Any) -> Estimator:
    _wants(model, dual=False, warm_start=False)
    if model.solver == "liblinear" and model.fit_intercept:
        raise _NotHere("liblinear penalises the intercept")
    ratios = {"l2": 0.0, "l1": 1.0, "elasticnet": model.l1_ratio}
    penalty = getattr(model, "penalty", "deprecated")
    if penalty is None:
        return LogisticRegression(C=np.inf, fit_intercept=model.fit_intercept, class_weight=model.class_weight)
    return LogisticRegression(C=model.C, l1_ratio=ratios.get(penalty, model.l1_ratio or 0.0), fit_intercept=model.fit_intercept,
                              class_weight=model.class_weight)


def _poisson(model: Any) -> Estimator:
    _wants(model, warm_start=False)
    return PoissonRegressor(alpha=model.alpha, fit_intercept=model.fit_intercept)


def _gamma(model: Any) -> Estimator:
    _wants(model, warm_start=False)
    return GammaRegressor(alpha=model.alpha, fit_intercept=model.fit_intercept)


def _tweedie(model: Any) -> Estimator:
    _wants(model, warm_start=False)
    return TweedieRegressor(power=model.power, alpha=model.alpha, link=model.link, fit_intercept=model.fit_intercept)


def _svc(model: Any) -> Estimator:
    _wants(model, penalty="l2", loss="squared_hinge", multi_class="ovr")
    if model.fit_intercept:
        raise _NotHere("scikit-learn penalises the intercept")
    return LinearSVC(C=model.C, fit_intercept=False, class_weight=model.class_weight)


def _kmeans(model: Any) -> Estimator:
    if callable(model.init):
        raise _NotHere("init is a function")
    return KMeans(model.n_clusters, init=model.init, n_init=model.n_init, max_iter=model.max_iter, tol=model.tol,
                  random_state=model.random_state)


_LINEAR = ("coef_", "intercept_")
_COUNTERPARTS: dict[Any, tuple[Callable[[Any], Estimator], tuple[str, ...]]] = {
    sklearn.linear_model.LinearRegression: (_linear_regression, _LINEAR),
    sklearn.linear_model.Ridge: (_ridge, _LINEAR),
    sklearn.linear_model.LogisticRegression: (_logistic, (*_LINEAR, "classes_")),
    sklearn.linear_model.PoissonRegressor: (_poisson, _LINEAR),
    sklearn.linear_model.GammaRegressor: (_gamma, _LINEAR),
    sklearn.linear_model.TweedieRegressor: (_tweedie, _LINEAR),
    sklearn.svm.LinearSVC: (_svc, (*_LINEAR, "classes_")),
    sklearn.cluster.KMeans: (_kmeans, ("cluster_centers_", "labels_", "inertia_", "_n_features_out")),
}
_originals: dict[Any, Any] = {}


def _train(model: Any, X: Any, y: Any, sample_weight: Any) -> Estimator:
    """The model's counterpart, trained; _NotHere with the reason where there is none."""
    make, _ = _COUNTERPARTS[type(model)]
    model._validate_params()
    ours = make(model)
    try:
        ours.fit(X, y, sample_weight)
    except (KilnError, ValueError, TypeError) as error:  # scikit-learn says it in its own words, or can do it
        raise _NotHere(str(error).split("\n")[0]) from None
    return ours


def _adopt(model: Any, ours: Estimator) -> None:
    """scikit-learn's fitted attributes."""
    for name in (*_COUNTERPARTS[type(model)][1], "n_features_in_", "feature_names_in_"):
        if hasattr(ours, name):
            setattr(model, name, getattr(ours, name))
    steps = ours.n_iter_
    model.n_iter_ = np.array([steps], np.int32) if isinstance(model, sklearn.linear_model.LogisticRegression) else steps
    if isinstance(model, sklearn.cluster.KMeans):
        model._n_threads = 1
        model._algorithm = "lloyd"
    if isinstance(model, (sklearn.linear_model.PoissonRegressor, sklearn.linear_model.GammaRegressor,
                          sklearn.linear_model.TweedieRegressor)):
        model._base_loss = model._get_loss()


def _patched(original: Any) -> Any:
    @functools.wraps(original)
    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> Any:
        begin, where, why = time.perf_counter(), "scikit-learn", ""
        try:
            if more or type(self) not in _COUNTERPARTS:
                raise _NotHere("a subclass" if not more else f"fit({', '.join(more)}=...)")
            ours = _train(self, X, y, sample_weight)
            _adopt(self, ours)
            where = f"kiln {ours.device_}"
        except _NotHere as reason:
            why = str(reason)
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            original(self, X, y, **weights, **more)
        calls.append(Call(type(self).__name__, np.shape(X), where, time.perf_counter() - begin, why))
        return self

    return fit


def install() -> None:
    """From now on scikit-learn's classes train with Kiln where they can."""
    for kind in _COUNTERPARTS:
        if kind not in _originals:
            _originals[kind] = kind.fit
            kind.fit = _patched(kind.fit)


def uninstall() -> None:
    """scikit-learn's classes as they were."""
    while _originals:
        kind, original = _originals.popitem()
        kind.fit = original


def table() -> str:
    """The calls so far, a line each."""
    lines = [f"{'call':<28} {'X':>18}  {'where':<14} {'seconds':>9}  why not Kiln"]
    lines += [f"{call.name + '.fit':<28} {' x '.join(map(str, call.shape)):>18}  {call.where:<14} {call.seconds:9.3f}  {call.why}"
              for call in calls]
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    """python -m kiln.accel script.py [arguments]"""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        raise SystemExit(0 if len(sys.argv) > 1 else 2)
    sys.argv = sys.argv[1:]
    from kiln import accel  # not __main__, so that there is one list of calls

    accel.install()
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        if accel.calls:
            print(accel.table(), file=sys.stderr)


if __name__ == "__main__":
    main()
