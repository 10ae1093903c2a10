"""Pictures of results, with matplotlib; every function draws on `ax` (default: a new figure) and returns
it."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._extras import needed
from ._library import lib
from ._metrics import Metrics


# The tool's: any two stay apart for those who see no red, green or blue. More series than colours differ by
# dashes, or squares.
COLOURS = ["#2191e7", "#fb7b28", "#994d97", "#c9212e", "#9e9e9e", "#0c47f3"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    plt = needed("matplotlib.pyplot", "kiln.plot")
    made = plt.subplots(layout="constrained")[1]
    made.set_prop_cycle(plt.cycler(linestyle=["-", "-."]) * plt.cycler(color=COLOURS))
    return made


def convergence(model: Any, ax: Any = None) -> Any:
    """The residual of each iteration, and the tolerance that it was compared with; model: fitted, or a
    report."""
    ax = _axes(ax)
    report = getattr(model, "report_", model)
    ax.semilogy(report.history["iteration"], report.history["residual"], marker=".")
    if np.isfinite(report.tolerance) and report.tolerance > 0:
        ax.axhline(report.tolerance, color="grey", linestyle="--", label=f"tolerance {report.tolerance:.1e}")
        ax.legend()
    ax.set(xlabel="iteration", ylabel="relative residual")
    return ax


def regularization_path(model: Any, X: Any, y: Any, values: Any, parameter: str = "C", ax: Any = None) -> Any:
    """The coefficients of copies of the model, trained at each of the values of a parameter; the ten that
    become largest have names, the others are grey."""
    ax = _axes(ax)
    clone = needed("sklearn.base", "a path").clone
    trained = [clone(model).set_params(**{parameter: value}).fit(X, y) for value in values]
    paths, names = np.array([one.coef_.ravel() for one in trained]), _coefficient_names(trained[0])
    order = np.argsort(-abs(paths).max(axis=0), kind="stable")
    for j in order[:9:-1]:
        ax.semilogx(values, paths[:, j], color="grey", linestyle="-", alpha=0.35, linewidth=0.8)
    for j in order[:10]:
        ax.semilogx(values, paths[:, j], label=names[j])
    ax.legend(fontsize="small", title=f"the largest of {len(order)}" if len(order) > 10 else None,
              loc="center left", bbox_to_anchor=(1, 0.5))
    ax.axhline(0, color="grey", linewidth=0.5)
    ax.set(xlabel=parameter, ylabel="coefficient")
    return ax


def _coefficient_names(model: Any) -> list[str]:
    """Names coef_.ravel(): the columns' names or numbers, and of several classes or targets which one."""
    rows, columns = np.atleast_2d(model.coef_).shape
    names = [str(name) for name in getattr(model, "feature_names_in_",
                                           [f"column {j}" for j in range(columns)])]
    if rows == 1:
        return names
    of = getattr(model, "classes_", [f"target {k}" for k in range(rows)])
    return [f"{name} ({part})" for part in of for name in names]


def validation(model: Any, ax: Any = None) -> Any:
    """The scores of an estimator with CV by its penalty: the mean over the folds with its standard error, a
    line for each l1_ratio, and the penalty that was chosen."""
    ax = _axes(ax)
    name = "C" if hasattr(model, "Cs_") else "alpha"
    values = (model.Cs_ if name == "C"
              else np.asarray(getattr(model, "alphas_", getattr(model, "alphas", None)), float))
    # folds first, values last
    scores = -np.moveaxis(model.mse_path_, -1, 0) if hasattr(model, "mse_path_") else model.scores_
    scores = scores.reshape(len(scores), -1, scores.shape[-1])
    ratios = np.atleast_1d(getattr(model, "l1_ratios_", getattr(model, "l1_ratio", 0.0)))
    for block in range(scores.shape[1]):
        error = scores[:, block].std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else None
        ax.errorbar(values if values.ndim == 1 else values[block], scores[:, block].mean(axis=0), error,
                    marker=".", capsize=2, label=f"l1_ratio = {ratios[block]:.3g}" if len(ratios)
                    == scores.shape[1] > 1 else None)
    for chosen in np.atleast_1d(getattr(model, f"{name}_")):
        ax.axvline(chosen, color="grey", linestyle="--", label=f"{name} = {chosen:.3g}")
    ax.set(xlabel=name, ylabel="score of rows held out", xscale="log")
    ax.legend()
    return ax


def calibration(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """Draws how often a class is what it is predicted to be, with standard errors, in bins of as many rows
    each; of two classes the second, else a line for each. On the diagonal: calibrated. The same table as kiln
    evaluate's."""
    measured = Metrics({"kind": lib.KILN_LOSS_SQUARED}, *_judged(model.predict_proba(X), model, y), curves=1)
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="grey", linestyle="--")
    for j, name in _shown(model):
        of = measured.calibration(j)
        ax.errorbar(of["predicted"], of["observed"], np.nan_to_num(of["error"]), marker="o", markersize=4,
                    label=str(name))
    if len(model.classes_) > 2:
        ax.legend(fontsize="small")
    ax.set(xlabel="predicted probability" + f" of {model.classes_[1]}" * (len(model.classes_) == 2),
           ylabel="observed share", xlim=(0, 1), ylim=(0, 1))
    return ax


def roc(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """The receiver operating characteristic of the second of two classes, or of each against all others, with
    the areas below. The same table as kiln evaluate's."""
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X))
    else:
        scores = np.asarray(model.decision_function(X))
        scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    scores, found = _judged(scores, model, y)
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="grey", linestyle="--")
    for j, name in _shown(model):
        curve = Metrics({"kind": lib.KILN_LOSS_SQUARED_HINGE}, scores[:, j], found[:, j], curves=1).roc(1)
        if curve is not None:
            ax.plot(*curve[:2], label=f"{name}: area {curve[2]:.3f}")
    ax.legend(fontsize="small", loc="lower right")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1))
    return ax


def _judged(scores: Any, model: Any, y: Any) -> tuple[Any, Any]:
    """The scores, and for each of them 1 where the row is of that class, else 0."""
    return np.asarray(scores, np.float64), np.equal.outer(np.asarray(y),
                                                          np.asarray(model.classes_)).astype(np.float64)


def _shown(model: Any) -> list[tuple[int, Any]]:
    """The classes that have a line, by number and name."""
    named = list(enumerate(model.classes_))
    return named[1:] if len(named) == 2 else named


_RESIDUALS = {"response": "y - mean", "pearson": "Pearson residual", "deviance": "deviance residual",
              "standardized": "standardised residual"}


def residuals(result: Any, kind: str = "deviance", ax: Any = None) -> Any:
    """A residual of each row by its mean: of model.inference(X, y), the kind "response",
    "pearson", "deviance" or "standardized"."""
    ax, rows = _axes(ax), result.residuals()
    if kind not in _RESIDUALS:
        raise ValueError(f"kind must be one of {list(_RESIDUALS)}, got {kind!r}")
    ax.scatter(rows["mean"], rows[kind], s=8)
    ax.axhline(0, color="grey", linewidth=1)
    ax.set(xlabel="mean", ylabel=_RESIDUALS[kind])
    return ax


def influence(result: Any, ax: Any = None) -> Any:
    """The standardised residual of each row by its leverage, of model.inference(X, y), with the lines at
    which Cook's distance is 1/2 and 1; the rows of the five largest distances have their numbers, from 0."""
    ax, rows = _axes(ax), result.residuals()
    leverage, residual, cook = rows["leverage"], rows["standardized"], rows["cooks_distance"]
    ax.scatter(leverage, residual, s=8)
    most = np.nanmax(np.abs(residual))
    along = np.linspace(1e-3, min(1.05 * leverage.max(), 0.999), 200)
    for distance, style in ((0.5, "--"), (1.0, "-")):
        line = np.sqrt(distance * result.figures["parameters"] * (1 - along) / along)
        for side in (1, -1):
            ax.plot(along, side * line, color="grey", linewidth=1, linestyle=style,
                    label=f"Cook's distance {distance:g}" if side > 0 else None)
    for row in np.argsort(-np.nan_to_num(cook))[:5]:
        ax.annotate(str(row), (leverage[row], residual[row]), fontsize="small")
    ax.set(xlabel="leverage", ylabel="standardised residual", ylim=(-1.2 * most, 1.2 * most))
    ax.legend()
    return ax


def scatter(model: Any, color: Any = None, ax: Any = None) -> Any:
    """The first two dimensions of a layout (kiln.MDS), coloured by a class or a number for each point."""
    ax = _axes(ax)
    if color is not None and np.asarray(color).dtype.kind not in "f":
        for place, value in enumerate(np.unique(color)):
            points = model.embedding_[np.asarray(color) == value]
            ax.scatter(points[:, 0], points[:, 1], s=12, marker="os^D"[place // len(COLOURS) % 4],
                       label=str(value))
        ax.legend()
    else:
        ax.scatter(model.embedding_[:, 0], model.embedding_[:, 1], s=12, c=color)
    ax.set(xlabel="dimension 1", ylabel="dimension 2")
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def cluster_sizes(model: Any, ax: Any = None) -> Any:
    """The number of rows of each cluster (kiln.KMeans)."""
    ax = _axes(ax)
    ax.bar(np.arange(model.n_clusters), np.bincount(model.labels_, minlength=model.n_clusters),
           color=COLOURS[0])
    ax.locator_params(axis="x", integer=True, nbins=20)
    ax.set(xlabel="cluster", ylabel="rows")
    return ax


def rank_distribution(ranking: Any, ax: Any = None) -> Any:
    """The scores of a ranking (kiln.pagerank) from the highest to the lowest, on logarithmic axes."""
    ax = _axes(ax)
    scores = getattr(ranking, "scores", ranking)
    scores = np.sort(np.asarray(list(scores.values()) if isinstance(scores, dict) else scores).ravel())[::-1]
    ax.loglog(np.arange(1, len(scores) + 1), scores)
    ax.set(xlabel="place", ylabel="score")
    return ax


def roofline(X: Any, columns: int = 1, device: Any = "auto", repeats: int = 5, ax: Any = None) -> Any:
    """Draws how fast kiln.multiply and kiln.mmchain pass over X, under the roof of the device that it lies
    on: the bandwidth of its memory, and what a large product of dense matrices reaches. Runs them `repeats`
    times and takes the fastest."""
    from . import _functions
    from ._arrays import matrix, results_on_device
    from ._machine import fastest

    x = _functions.place(X, device, passes=repeats)
    where = x.device
    y = matrix(np.ones((x.shape[1], columns), x.dtype), where)
    side = 2048 if where.is_gpu else 768
    square = matrix(np.ones((side, side), x.dtype), where)
    size = x.nnz * (x.dtype.itemsize + 4 * x.sparse)
    with results_on_device():
        peak = 2 * side**3 / fastest(where, lambda: _functions.multiply(square, square), repeats)
        calls = {"multiply": (2 * x.nnz * columns, lambda: _functions.multiply(x, y)),
                 "mmchain": (4 * x.nnz * columns, lambda: _functions.mmchain(x, y))}
        seconds = {name: fastest(where, call, repeats) for name, (_, call) in calls.items()}
    bandwidth = where.bandwidth(remeasure=True)
    ax = _axes(ax)
    intensity = np.logspace(-2, max(2, np.log10(2 * peak / bandwidth)), 200)
    ax.loglog(intensity, np.minimum(bandwidth * intensity, peak) / 1e9, color="grey",
              label=f"{where.name}: {bandwidth / 1e9:.0f} GB/s, {peak / 1e9:.0f} GFLOP/s")
    for name, (flops, _) in calls.items():
        ax.plot(flops / size, flops / seconds[name] / 1e9, "o",
                label=f"{name}: {size / seconds[name] / 1e9:.1f} GB/s of X")
    ax.set(xlabel="operations for each byte of X", ylabel="GFLOP/s")
    ax.legend()
    return ax
