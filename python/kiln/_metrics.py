"""Metrics of predictions, which libkiln computes (kiln/metrics.h)."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Device, Matrix, device, matrix
from ._base import as_columns
from ._library import ffi, lib, struct


def measured_on(where: Device) -> Device:
    """Where targets and weights are to lie for predictors of this device: beside them if it knows doubles,
    else on the CPU."""
    return where if where.has_f64 and not where._on_cpu else device("cpu")


def _operand(values: Any, where: Device) -> Matrix | None:
    """Numbers in float64; a matrix stays what it is."""
    if values is None or isinstance(values, Matrix):
        return values
    return matrix(as_columns(np.asarray(values, np.float64), np.float64), where)


class Metrics:
    """Metrics of linear predictors, arrays or matrices: one column, or one for each class or target. loss:
    fields of kiln_loss, without kind those of a GLM. y: numbers, or the places of classes (-1: of one that
    the model does not know). options: of kiln_metrics_options, of which first and columns, `view` below, say
    which columns of eta are meant.

    Predictors on a GPU are measured there; arrays of y, weights and offset are brought to them."""

    def __init__(self, loss: dict[str, Any], eta: Any, y: Any, weights: Any = None, *, offset: Any = None,
                 **options: Any) -> None:
        predictors = _operand(eta, device("cpu"))
        assert predictors is not None
        where = measured_on(predictors.device)
        operands = {"y": _operand(y, where), "weights": _operand(weights, where),
                    "offset": _operand(offset, where)}
        given = {"kind": lib.KILN_LOSS_GLM, **loss, **{name: part.pointer for name, part in operands.items()
                                                       if part is not None}}
        made = ffi.new("kiln_metrics **")
        predictors.device.call(lib.kiln_metrics_of, made, struct("kiln_loss", **given), predictors.pointer,
                               struct("kiln_metrics_options", **options))
        self._made = ffi.gc(made[0], lib.kiln_metrics_free)

    def __getitem__(self, name: str) -> float:
        return float(lib.kiln_metrics_value(self._made, name.encode()))

    def part(self, j: int, name: str) -> float:
        """A metric of class or target j."""
        return float(lib.kiln_metrics_part(self._made, j, name.encode()))

    def calibration(self, j: int) -> dict[str, Any]:
        """Calibration of class or target j: arrays of each bin's predicted and observed means, and their
        standard errors."""
        count = ffi.new("int64_t *")
        bins = lib.kiln_metrics_calibration(self._made, j, count)
        return {name: np.array([getattr(bins[b], name) for b in range(count[0])])
                for name in ("predicted", "observed", "error")}

    def roc(self, j: int) -> tuple[Any, Any, float] | None:
        """The receiver operating characteristic of class j: both shares, and the area; None without rows of
        it and others."""
        curve = lib.kiln_metrics_roc(self._made, j)
        if curve == ffi.NULL or not curve.count:
            return None
        false, true = (np.array(list(shares[0:curve.count])) for shares in (curve.false_share,
                                                                            curve.true_share))
        return false, true, float(curve.area)


def width(eta: Any, columns: int = 0, first: int = 0) -> int:
    """Counts the columns of these predictors that are meant."""
    return columns or (eta.shape[1] if len(eta.shape) > 1 else 1)


def accuracy(eta: Any, codes: Any, weights: Any, **view: int) -> float:
    """The share of rows whose class is right. codes: the places of the true classes, -1 of one that the model
    does not know."""
    return Metrics({"kind": lib.KILN_LOSS_SQUARED_HINGE}, eta, codes, weights, unranked=1, **view)["accuracy"]


def log_loss(eta: Any, codes: Any, weights: Any, **view: int) -> float:
    """Probabilities are at least epsilon, as scikit-learn's are."""
    kind = lib.KILN_LOSS_LOGISTIC if width(eta, **view) == 1 else lib.KILN_LOSS_SOFTMAX
    least = float(np.finfo(np.float64).eps)
    return Metrics({"kind": kind}, eta, codes, weights, unranked=1, least_probability=least,
                   **view)["log_loss"]


def auc(eta: Any, codes: Any, weights: Any, **view: int) -> float:
    """The area of two classes; NaN without rows of both."""
    return Metrics({"kind": lib.KILN_LOSS_SQUARED_HINGE}, eta, codes, weights, **view)["auc"]


def error(name: str, eta: Any, y: Any, weights: Any, **view: int) -> float:
    """"mse", "rmse" or "mae": the mean over the targets, as scikit-learn has it."""
    found = Metrics({"kind": lib.KILN_LOSS_SQUARED}, eta, y, weights, **view)
    if name == "rmse":
        return float(np.mean([np.sqrt(found.part(j, "mse")) for j in range(width(eta, **view))]))
    return found[name]


def r2(means: Any, y: Any, weights: Any, **view: int) -> float:
    """The mean over the targets, as scikit-learn has it; of a constant one 1 where it is met, else 0."""
    found, targets = Metrics({"kind": lib.KILN_LOSS_SQUARED}, means, y, weights, **view), width(means, **view)
    return float(np.mean([_or_met(found.part(j, "r2"), found.part(j, "rss"), found.part(j, "tss"))
                          for j in range(targets)]))


def explained_deviance(loss: dict[str, Any], eta: Any, y: Any, weights: Any, offset: Any,
                       **view: int) -> float:
    """D2; of a target that the best intercept alone meets 1 where the model does, else 0."""
    found = Metrics(loss, eta, y, weights, offset=offset, explained=1, unranked=1, **view)
    return _or_met(found["d2"], found["deviance"], found["null_deviance"])


def _or_met(share: float, left: float, whole: float) -> float:
    """What is explained of the whole; if that is 0, whether nothing is left."""
    return float(left == 0) if whole == 0 else share
