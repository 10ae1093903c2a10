"""Metrics of predictions, which libkiln computes (kiln/metrics.h)."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Matrix, device, matrix
from ._base import as_columns
from ._library import ffi, lib, struct


def _operand(values: Any) -> Matrix | None:
    """Numbers on the host in float64; a matrix stays what it is."""
    if values is None or isinstance(values, Matrix):
        return values
    return matrix(as_columns(np.asarray(values, np.float64), np.float64), device("cpu"))


class Metrics:
    """Of linear predictors, arrays or matrices: one column, or one for each class or target. loss: fields of kiln_loss, without kind
    those of a GLM. y: numbers, or the places of classes (-1: of one that the model does not know). options: of kiln_metrics_options."""

    def __init__(self, loss: dict[str, Any], eta: Any, y: Any, weights: Any = None, *, offset: Any = None, **options: Any) -> None:
        operands = {"y": _operand(y), "weights": _operand(weights), "offset": _operand(offset)}
        predictors = _operand(eta)
        assert predictors is not None
        given = {"kind": lib.KILN_LOSS_GLM, **loss, **{name: part.pointer for name, part in operands.items() if part is not None}}
        made = ffi.new("kiln_metrics **")
        predictors.device.call(lib.kiln_metrics_of, made, struct("kiln_loss", **given), predictors.pointer,
                               struct("kiln_metrics_options", **options))
        self._made = ffi.gc(made[0], lib.kiln_metrics_free)

    def __getitem__(self, name: str) -> float:
        return float(lib.kiln_metrics_value(self._made, name.encode()))

    def part(self, j: int, name: str) -> float:
        """Of class or target j."""
        return float(lib.kiln_metrics_part(self._made, j, name.encode()))


def _kind(eta: Any) -> int:
    """Of linear predictors of classes."""
    return int(lib.KILN_LOSS_LOGISTIC if eta.shape[1] == 1 else lib.KILN_LOSS_SOFTMAX)


def accuracy(eta: Any, codes: Any, weights: Any) -> float:
    """The share of rows whose class is right. codes: the places of the true classes, -1 of one that the model does not know."""
    return Metrics({"kind": lib.KILN_LOSS_SQUARED_HINGE}, eta, codes, weights, unranked=1)["accuracy"]


def log_loss(eta: Any, codes: Any, weights: Any) -> float:
    """Probabilities are at least epsilon, as scikit-learn's are."""
    return Metrics({"kind": _kind(eta)}, eta, codes, weights, unranked=1, least_probability=float(np.finfo(np.float64).eps))["log_loss"]


def mean_squared_error(eta: Any, y: Any, weights: Any) -> float:
    return Metrics({"kind": lib.KILN_LOSS_SQUARED}, eta, y, weights)["mse"]


def r2(means: Any, y: Any, weights: Any) -> float:
    """The mean over the targets, as scikit-learn has it; of a constant one 1 where it is met, else 0."""
    found = Metrics({"kind": lib.KILN_LOSS_SQUARED}, means, y, weights)
    targets = 1 if np.ndim(y) == 1 else np.shape(y)[1]
    return float(np.mean([_or_met(found.part(j, "r2"), found.part(j, "rss"), found.part(j, "tss")) for j in range(targets)]))


def explained_deviance(loss: dict[str, Any], eta: Any, y: Any, weights: Any, offset: Any) -> float:
    """D2; of a target that the best intercept alone meets 1 where the model does, else 0."""
    found = Metrics(loss, eta, y, weights, offset=offset, explained=1, unranked=1)
    return _or_met(found["d2"], found["deviance"], found["null_deviance"])


def _or_met(share: float, left: float, whole: float) -> float:
    """What is explained of the whole; if that is 0, whether nothing is left."""
    return float(left == 0) if whole == 0 else share
