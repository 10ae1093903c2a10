"""Models as scorers see them: what they predict of the rows held out is known, and nothing else is asked."""
from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from ._linear import _class_of


class Means(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regression whose predictions of the rows that are asked for are known."""

    def __init__(self, means: Any) -> None:
        self.means = means

    def predict(self, X: Any) -> Any:
        return self.means


class Responses(Means):
    """The same of a generalised linear model, whose own score is D2."""

    def __init__(self, means: Any, model: Any) -> None:
        self.means = means
        self.model = model

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(self.model._explained(y, self.means, sample_weight))


class Predictors(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classification whose linear predictors of the rows that are asked for are known."""

    def __init__(self, eta: Any, classes: Any) -> None:
        self.eta = eta
        self.classes_ = classes

    def decision_function(self, X: Any) -> Any:
        return self.eta[:, 0] if self.eta.shape[1] == 1 else self.eta

    def predict(self, X: Any) -> Any:
        return _class_of(self.eta, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        return np.hstack([expit(-self.eta), expit(self.eta)]) if self.eta.shape[1] == 1 else softmax(self.eta, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        return np.hstack([log_expit(-self.eta), log_expit(self.eta)]) if self.eta.shape[1] == 1 else log_softmax(self.eta, axis=1)


def scorer(model: Any) -> Any:
    """What `scoring` names; None is the model's own score."""
    if not (model.scoring is None or isinstance(model.scoring, str) or callable(model.scoring)):
        raise ValueError(f"The 'scoring' parameter of {type(model).__name__} must be one name or one callable, no list or dict of them. "
                         f"Got {model.scoring!r} instead.")
    return check_scoring(model, scoring=model.scoring)
