"""Models as scorers see them: what they predict of the rows held out is known, and nothing else is asked.

Scorers check their operands anew for each model, which takes longer than most models do. The usual scores are
libkiln's metrics, as scikit-learn has them, of linear predictors, true values and weights; None is left to
its scorer."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, f1_score, jaccard_score, make_scorer, precision_score, recall_score

from ._linear import _class_of
from ._metrics import auc, error, log_loss, r2, width

Formula = Callable[..., "float | None"]

# Scores of the class 1, which of two other classes are of the second, as ROC curves are.
_OF_ONE_CLASS = {"f1": f1_score, "precision": precision_score, "recall": recall_score,
                 "jaccard": jaccard_score}


class Means(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regression whose predictions of the rows that are asked for are known."""

    def __init__(self, means: Any) -> None:
        self.means = means

    def predict(self, X: Any) -> Any:
        return self.means


class Responses(Means):
    """The same of a generalised linear model, whose own score is D2, of the linear predictors and what of
    them is the offset."""

    def __init__(self, means: Any, model: Any, eta: Any, offset: Any) -> None:
        self.means = means
        self.model = model
        self.eta = eta
        self.offset = offset

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(self.model._explained(y, self.eta, sample_weight, self.offset))


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
        return np.hstack([expit(-self.eta),
                          expit(self.eta)]) if self.eta.shape[1] == 1 else softmax(self.eta, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        return np.hstack([log_expit(-self.eta),
                          log_expit(self.eta)]) if self.eta.shape[1] == 1 else log_softmax(self.eta, axis=1)


def scorer(model: Any) -> Any:
    """What `scoring` names; None is the model's own score."""
    if not (model.scoring is None or isinstance(model.scoring, str) or callable(model.scoring)):
        raise ValueError(f"The 'scoring' parameter of {type(model).__name__} must be one name or one "
                         "callable, no list or dict of them. "
                         f"Got {model.scoring!r} instead.")
    named = _OF_ONE_CLASS.get(model.scoring) if isinstance(model.scoring, str) else None
    classes = getattr(model, "classes_", None)
    # else 1 is meant
    if named is not None and classes is not None and len(classes) == 2 and 1 not in classes.tolist():
        return make_scorer(named, pos_label=classes[1])
    return check_scoring(model, scoring=model.scoring)


# ------------------------------------------------------------------------------------------- the usual scores


def r2_of_rows(eta: Any, y: Any, weights: Any, **view: int) -> float | None:
    return r2(eta, y, weights, **view) if y.shape[0] > 1 else None  # of which the scorer warns


def negative_log_loss(eta: Any, codes: Any, weights: Any, **view: int) -> float:
    return -log_loss(eta, codes, weights, **view)


def area(eta: Any, codes: Any, weights: Any, **view: int) -> float | None:
    """The area of two classes, which both have rows."""
    found = auc(eta, codes, weights, **view) if width(eta, **view) == 1 else np.nan
    return None if np.isnan(found) else found


def _negative(name: str) -> Formula:
    return lambda eta, y, weights, **view: -error(name, eta, y, weights, **view)


NEGATIVE_ERRORS: dict[str | None, Formula] = {
    "neg_mean_squared_error": _negative("mse"), "neg_root_mean_squared_error": _negative("rmse"),
    "neg_mean_absolute_error": _negative("mae")}
