"""Several classes: softmax by one Newton's step of all classes at once, each against the rest by one for
each.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import rows
from problems import EPS, Problem, check_verify, eta_of, judge_bound, judge_fit, near, refused
from losses import hinge_loss, softmax_loss
from runs import Tool

L = np.longdouble


def draw_classes(rng, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The labels of the classes, and each row's class; each has rows that count."""
    count = int(rng.sizes.integers(3, 6))
    labels = np.sort(rng.choice([-7.0, -1.0, 0.0, 1.0, 2.0, 2.5, 10.0, 1e6], count, replace=False))
    tilt = np.outer(problem.eta, rng.normal(size=count))
    of = (tilt + rng.gumbel(size=tilt.shape)).argmax(axis=1)
    counted = rng.permutation(np.nonzero(problem.s > 0)[0])[:count]
    of[counted] = np.arange(len(counted))
    return labels, of


def confusion(classes: list[float], y: np.ndarray, taken: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.array([[s[(y == a) & (taken == b)].sum() for b in classes] for a in classes])


def fit(rng, tool: Tool, kind: type, verb: str):
    """A problem, its refused or finished run, the classes that the rows have, and their numbers."""
    problem = Problem(rng, tool.folder, kind)
    labels, of = draw_classes(rng, problem)
    problem.set_target(labels[of])
    problem.set_penalty([1e-3, 1, 1, 100])
    if verb == "logreg":
        problem.draw_l1(0.25)
    run = tool.run(verb, problem.file, *problem.arguments, "-o", "model.kiln")
    present, number = np.unique(labels[of], return_inverse=True)
    return problem, run, present, number


def decided(problem: Problem, run, eta: np.ndarray, classes: np.ndarray, y: np.ndarray) -> list[str]:
    """Accuracy and the table of classes, where rounding decides no row's class."""
    top = np.sort(eta, axis=1)
    if (top[:, -1] - top[:, -2]).min() < 1e-3 * (1 + float(np.abs(eta).max())):
        return []
    taken, s = classes[eta.argmax(axis=1)], problem.s
    metrics = run.out["metrics"]
    found = near("accuracy", metrics.get("accuracy"), s @ (taken == y) / s.sum(), 1e-6)
    if "confusion" in metrics:
        own = confusion(list(classes), y, taken, s).astype(float)
        told = np.array(metrics["confusion"]["rows"])
        if own.shape != told.shape or not np.allclose(own, told, rtol=1e-6):
            found.append(f"the table of classes is {told.tolist()}, that of the predictions {own.tolist()}")
    return found


def softmax(
    problem: Problem, run, W: np.ndarray, b: np.ndarray, number: np.ndarray, eta: np.ndarray
) -> list[str]:
    found = judge_fit(
        problem, softmax_loss, W, b[0], number, run.out["objective"], run.out["converged"], "softmax"
    )
    found += judge_bound(problem, [(softmax_loss, W, b[0], number)], run)
    s, metrics = problem.s, run.out["metrics"]
    value = np.where(s > 0, softmax_loss(number, eta)[0], 0)
    # what rounding may have made of eta
    blur = (
        (s @ (np.abs(problem.kept) @ np.abs(W.astype(L)) + np.abs(b))).max()
        * 16
        * EPS[problem.kind]
        / s.sum()
    )
    loss = s @ value / s.sum()
    digits = (1e-7 if problem.kind is np.float64 else 2e-3) + float(blur / loss)
    found += near("log_loss", metrics.get("log_loss"), loss, digits)
    p = np.exp(eta - eta.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    brier = s @ ((p - np.eye(W.shape[1])[number]) ** 2).sum(axis=1) / s.sum()
    return found + near("brier", metrics.get("brier"), brier, digits)


def one_vs_rest(
    problem: Problem, run, W: np.ndarray, b: np.ndarray, number: np.ndarray, eta: np.ndarray
) -> list[str]:
    columns = [(hinge_loss, W[:, c], b[0, c], (number == c).astype(float)) for c in range(W.shape[1])]
    found = []
    for c, (loss, w, level, own) in enumerate(columns):
        if 0 < problem.s @ own < problem.s.sum():
            found += judge_fit(problem, loss, w, level, own, None, run.out["converged"], f"svm class {c + 1}")
    return found + judge_bound(problem, columns, run)


def several(verb: str, judge):
    """Problems of several classes for `verb`, whose model `judge` judges by its loss; what all have in common
    is judged here."""

    def judged(rng, tool: Tool, kind: type) -> list[str]:
        problem, run, classes, number = fit(rng, tool, kind, verb)
        found: list[str] = []
        if refused(run, found) or len(classes) < 3:
            return found
        model = tool.model()
        W, eta = model.tensors["W"], eta_of(problem, model)
        found += judge(problem, run, W, model.tensors.get("b", np.zeros((1, len(classes)))), number, eta)
        found += decided(problem, run, eta, classes, problem.y)
        check_verify(tool, problem, found, run.out["converged"])
        return found + rows.judge_classes(rng, tool, problem, model, classes)

    return judged


VERBS = {"softmax": several("logreg", softmax), "one-vs-rest": several("svm", one_vs_rest)}
