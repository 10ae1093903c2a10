"""New rows: predictions and every figure of `evaluate` from the written coefficients alone, by the plain
formulas.

SPDX-License-Identifier: Apache-2.0
"""

import typing

import numpy as np

from problems import EPS, Problem, auc, near, refused, within
from losses import logistic
from runs import Model, Tool

L = np.longdouble


class New(typing.NamedTuple):
    kept: np.ndarray
    s: np.ndarray
    eta: np.ndarray
    blur: np.ndarray  # what rounding may have made of eta
    offset: np.ndarray | None
    arguments: list[object]


def draw_rows(rng, problem: Problem, model: Model) -> New | None:
    """Rows with each column's values in another order, so that their scale stays, written to new.npy; often
    none."""
    if rng.random() < 0.5:
        return None
    count = int(rng.integers(1, 40))
    X = np.column_stack([rng.choice(column, count) for column in problem.X.T])
    np.save(problem.folder / "new.npy", X)
    arguments: list[object] = []
    weights, offset = np.ones(count), None
    if rng.random() < 0.5:
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], count)
        weights[0] = 1
        np.save(problem.folder / "new_s.npy", weights)
        arguments += ["--weights-file", "new_s.npy"]
    if problem.offset is not None:
        offset = rng.normal(size=count).astype(problem.kind)
        np.save(problem.folder / "new_o.npy", offset)
        arguments += ["--offset-file", "new_o.npy"]
    with np.errstate(over="ignore"):
        kept = X.astype(problem.kind).astype(L)
    W = model.tensors["W"].astype(L)
    b = model.tensors["b"].astype(L) if "b" in model.tensors else np.zeros((1, W.shape[1]), L)
    eta = kept @ W + b
    blur = 8 * EPS[problem.kind] * (np.abs(kept) @ np.abs(W) + np.abs(b))
    if offset is not None:
        eta = eta + offset.astype(L)[:, None]
        blur = blur + 8 * EPS[problem.kind] * np.abs(offset.astype(L))[:, None]
    return New(kept, weights.astype(L), eta, blur, offset, arguments)


def predictions(tool: Tool, new: New, found: list[str], *arguments: object) -> np.ndarray | None:
    offsets = new.arguments[-2:] if new.offset is not None else []
    run = tool.run("predict", "model.kiln", "new.npy", *offsets, *arguments)
    if refused(run, found) or run.code:
        return None
    told = np.array(run.out["predictions"], dtype=float).reshape(len(new.s), -1)
    return told


def compare(name: str, told: np.ndarray | None, own: np.ndarray, allowed: np.ndarray) -> list[str]:
    """Whether numbers agree where the right ones are finite in the tool's type."""
    if told is None:
        return []
    if told.shape != own.shape:
        return [f"{name}: predictions of shape {told.shape} for {own.shape}"]
    wrong = np.isfinite(own.astype(float)) & (np.abs(own) < 1e37) & ~(np.abs(told - own) <= allowed)
    if not wrong.any():
        return []
    i = tuple(np.argwhere(wrong)[0])
    return [
        f"{name}: row {i[0] + 1} is predicted as {told[i]:.12g}, the coefficients give {float(own[i]):.12g}"
    ]


def evaluated(tool: Tool, new: New, y: np.ndarray) -> typing.Any:
    """The answer of `evaluate`, None where the entrance has none or it was refused."""
    np.save(tool.folder / "new_y.npy", y)
    run = tool.evaluate("new.npy", "--target-file", "new_y.npy", *new.arguments)
    return None if run is None or run.code else run.out


def mean(s: np.ndarray, values: np.ndarray):
    return s @ np.where(s > 0, values, 0) / s.sum()


def judge_numbers(
    rng, tool: Tool, problem: Problem, model: Model, inverse=None, deviance=None, most=None
) -> list[str]:
    """Judges linreg, glm and svm --regression. inverse: the mean of eta; deviance(y, eta): of a row;
    most: of targets that are whole numbers; below 1: of shares."""
    new, found = draw_rows(rng, problem, model), []
    if new is None:
        return found
    mu = new.eta if inverse is None else inverse(new.eta)
    # a mean moves as eta does, times its slope
    slope = (
        1
        if inverse is None
        else np.abs(inverse(new.eta + new.blur) - inverse(new.eta - new.blur)) / (2 * new.blur + 1e-300)
    )
    allowed = new.blur * (1 + slope) + 4 * EPS[problem.kind] * np.abs(mu)
    found += compare("predict", predictions(tool, new, found), mu, allowed)
    lift = np.minimum(np.abs(mu).astype(float), 1e10)
    y = lift * rng.uniform(0.5, 1.5, mu.shape) + (0.01 if inverse is not None else rng.normal(size=mu.shape))
    if most is not None:
        y = np.minimum(np.floor(y), most) if most >= 1 else np.clip(y, 1 - most, most)
    out = evaluated(tool, new, y if y.shape[1] > 1 else y[:, 0])
    if out is None or not np.all(np.isfinite(mu.astype(float))) or float(np.abs(mu).max()) > 1e30:
        return found
    y = y.astype(problem.kind).astype(L)
    digits = (1e-7 if problem.kind is np.float64 else 2e-3) + float(
        (allowed / (np.abs(mu - y) + 1e-300))[new.s > 0].max()
    )
    if digits > 0.1:
        return found
    metrics, s = out["metrics"], new.s
    rss = (s[:, None] * (mu - y) ** 2).sum()
    found += near("evaluate rss", metrics.get("rss"), rss, digits)
    found += near("evaluate rmse", metrics.get("rmse"), np.sqrt(rss / s.sum() / mu.shape[1]), digits)
    found += near("evaluate mae", metrics.get("mae"), mean(s, np.abs(mu - y).mean(axis=1)), digits)
    tss = (s[:, None] * (y - s @ y / s.sum()) ** 2).sum()
    if metrics.get("r2") is not None and mu.shape[1] == 1 and tss > 0:
        found += near("evaluate 1 - r2", 1 - metrics["r2"], rss / tss, 10 * digits)
    if deviance is not None:
        whole = (s * np.where(s > 0, deviance(y[:, 0], new.eta[:, 0]), 0)).sum()
        found += near("evaluate deviance", metrics.get("deviance"), whole, 10 * digits)
    return found


def shares(table: np.ndarray, unknown: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recall, precision and F1 of each class; rows of classes that the model does not know are wrong."""
    right, own, taken = np.diag(table), table.sum(axis=1), table.sum(axis=0) + unknown
    with np.errstate(invalid="ignore", divide="ignore"):
        return right / own, right / taken, 2 * right / (own + taken)


def judge_classes(rng, tool: Tool, problem: Problem, model: Model, classes: np.ndarray) -> list[str]:
    """Judges logreg and svm with two classes or more."""
    new, found = draw_rows(rng, problem, model), []
    if new is None:
        return found
    eta, s, two = new.eta, new.s, len(classes) == 2
    logistic_one = tool.logistic(model)
    if logistic_one:
        p = np.exp(eta - eta.max(axis=1, keepdims=True))
        p = np.c_[logistic(eta)[1], logistic(eta)[0]] if two else p / p.sum(axis=1, keepdims=True)
        told = predictions(tool, new, found, "--probabilities")
        found += compare(
            "probabilities",
            told,
            p,
            np.abs(p) * 4 * new.blur.max(axis=1, keepdims=True) + 8 * EPS[problem.kind],
        )
    gaps = np.abs(eta) if two else np.diff(np.sort(eta, axis=1)[:, -2:], axis=1)
    if (gaps[:, 0] <= 4 * new.blur.max(axis=1)).any():
        return found
    place = (eta[:, 0] > 0).astype(int) if two else eta.argmax(axis=1)
    told = predictions(tool, new, found)
    if told is not None and not np.array_equal(told[:, 0], classes[place]):
        found.append(
            f"predict: labels {told[:, 0].tolist()}, the coefficients give {classes[place].tolist()}"
        )
    number = rng.integers(0, len(classes), len(s))
    y = classes[number]
    strange = rng.random(len(s)) < (0.2 if rng.random() < 0.3 else 0)
    y = np.where(strange, 77.0, y)
    out = evaluated(tool, new, y)
    if out is None:
        return found
    metrics, digits = out["metrics"], 1e-6 if problem.kind is np.float64 else 2e-3
    found += near("evaluate accuracy", metrics.get("accuracy"), s @ (y == classes[place]) / s.sum(), 1e-6)
    table = np.array(
        [[s[(y == a) & (place == b)].sum() for b in range(len(classes))] for a in classes], float
    )
    unknown = np.array([s[strange & (place == b)].sum() for b in range(len(classes))], float)
    recall, precision, f1 = shares(table, unknown)
    present = table.sum(axis=1) > 0
    # a class that the model does not know is one of those that rows have, and none of them is found
    there = present.sum() + (unknown.sum() > 0)
    found += near(
        "evaluate balanced accuracy", metrics.get("balanced_accuracy"), recall[present].sum() / there, 1e-6
    )
    found += near(
        "evaluate macro F1", metrics.get("macro_f1"), np.nan_to_num(f1[present]).sum() / there, 1e-6
    )
    for c, row in enumerate(out.get("classes") or []):
        for name, values in (("recall", recall), ("precision", precision), ("f1", f1)):
            found += near(f"evaluate {name} of class {c + 1}", row[name], values[c], 1e-6)
    if "confusion" in metrics and not np.allclose(metrics["confusion"]["rows"], table, rtol=1e-6):
        found.append(
            f"evaluate: the table of classes is {metrics['confusion']['rows']}, the right one "
            f"{table.tolist()}"
        )
    if logistic_one and not strange.any():
        low = np.log(np.maximum(p[np.arange(len(s)), number], np.finfo(float).tiny))
        if float(low.min()) > -500 and float(new.blur.max()) < 1e-3 * digits:
            found += near("evaluate log loss", metrics.get("log_loss"), -mean(s, low), digits)
        wrong = ((p - np.eye(len(classes))[number]) ** 2).sum(axis=1) / (2 if two else 1)
        if float(new.blur.max()) < 1e-3 * digits:
            found += near("evaluate brier", metrics.get("brier"), mean(s, wrong), digits)
    if two and not strange.any():
        bounds = auc(number, eta[:, 0], s, 4 * float(new.blur.max()) + 1e-12)
        found += within("evaluate auc", metrics.get("auc"), bounds, 1e-6)
    return found
