"""Cross-validation: each fold's model is found again by Newton's method in long double from the rows that
train, and the fold's score, the means, the best value and the final model follow.

The package scores the targets that it was given, with probabilities of at least epsilon, as scikit-learn does
(python/kiln/_cv_judged.py); the tool what its type made of them, and without a limit.

A model that has converged may lie above the optimum by what linear models are allowed (problems.judge_fit),
fall. Its linear predictor of a row z then differs from the optimum's by at most d = sqrt(2 fall z^T H^-1 z),
H the Hessian there, and by what rounding makes of it; what these make of the score is what its claim may be
off by.

SPDX-License-Identifier: Apache-2.0
"""

import copy

import numpy as np

from losses import logistic_loss, poisson_loss, squared_loss
from problems import EPS, SHARE, Problem, Scaled, constant_objective, judge_fit, near, refused
from runs import Tool

L = np.longdouble
LOSSES = {"linreg": squared_loss, "logreg": logistic_loss, "glm": poisson_loss}


class Tame(Problem):
    """Columns whose folds have one optimum that f32 finds, too."""

    def __init__(self, rng, folder, kind: type) -> None:
        super().__init__(rng, folder, kind, rows=(12, 60), kinds=("normal", "counts", "binary", "sparse"))


def part(problem: Problem, rows: np.ndarray) -> Problem:
    """The problem of some of its rows."""
    made = copy.copy(problem)
    made.kept, made.n, made.X = problem.kept[rows], int(rows.sum()), problem.X[rows]
    made.weights = None if problem.weights is None else problem.weights[rows]
    return made


def optimum(problem: Problem, loss, y: np.ndarray) -> Scaled:
    """Newton's steps from zero; columns that are constant keep 0."""
    scaled = Scaled(problem, loss, np.zeros(problem.kept.shape[1]), 0.0, y)
    scaled.descend(exactly=True)
    return scaled


def eta_at(problem: Problem, w: np.ndarray, b) -> np.ndarray:
    return problem.kept @ w + b


def reach(scaled: Scaled, train: Problem, test: Problem, loss, y: np.ndarray) -> np.ndarray:
    """By how much the linear predictor of each row of `test` may differ, of a model that has converged on
    `train`."""
    w, b = scaled.coefficients()
    eta = eta_at(train, w, b)
    value, slope, curve = loss(y, eta)
    s = train.s
    value, slope, curve = (np.where(s > 0, of, 0) for of in (value, slope, curve))
    H = scaled.Z.T @ (scaled.Z * (s * curve)[s > 0][:, None]) + np.diag(scaled.pen[:, 0])
    Z = (test.kept - scaled.center[:, 0])[:, scaled.live] / scaled.size[:, 0]
    Z = np.c_[Z, np.ones(test.n)] if test.intercept else Z
    eps = EPS[train.kind]
    blur = 8 * eps * (np.abs(b) + np.abs(train.kept) @ np.abs(w))
    # a logistic loss's criterion counts from w = 0 and b = 0, others' from the best constant
    origin = s.sum() * np.log(L(2)) if loss is logistic_loss else constant_objective(train, loss, y)
    fall = SHARE[train.kind] * max(origin - (s @ value + (scaled.pen * scaled.reached**2).sum() / 2), 0)
    fall += s @ (curve * blur**2)
    d = np.sqrt(np.diag(H))
    d = np.where(d > 0, d, 1)
    across = np.linalg.pinv((H / d[:, None] / d).astype(float), hermitian=True)
    lever = np.einsum("ij,jk,ik->i", Z / d, across, Z / d)
    lost = 8 * eps * (s * np.abs(slope))[s > 0] @ np.abs(scaled.Z)  # of the gradient, whose terms may cancel
    moved = np.abs(Z / d) @ np.abs(across) @ (lost / d)
    rounding = moved + 8 * eps * (np.abs(b) + np.abs(test.kept) @ np.abs(w))
    return np.sqrt(2 * fall * np.maximum(lever, 0)) + rounding


def row_losses(metric: str, y: np.ndarray, eta: np.ndarray, least: float):
    """least: what a probability is taken for that is below it."""
    if metric == "log_loss":
        return np.minimum(logistic_loss(y, eta)[0], -np.log(L(least)) if least else np.inf)
    if metric == "mean_deviance":
        level = np.where(y > 0, y * np.log(np.where(y > 0, y, 1)) - y, 0)
        return 2 * (poisson_loss(y, eta)[0] + level)
    return (eta - y) ** 2


def score(metric: str, y: np.ndarray, eta: np.ndarray, s: np.ndarray, d: np.ndarray, least: float):
    """The score of the linear predictors eta, and by how much it may differ where these do by d."""
    y, eta, d, s = y[s > 0], eta[s > 0], d[s > 0], s[s > 0]
    losses = row_losses(metric, y, eta, least)
    worst = np.maximum(*(np.abs(row_losses(metric, y, eta + side, least) - losses) for side in (d, -d)))
    total, off = s @ losses, s @ worst + 8 * np.finfo(float).eps * (s @ np.abs(losses))
    if metric == "r2":
        about = y - y[0]  # of equal targets 0, and not rounding: they have no R2
        spread = s @ (about - s @ about / s.sum()) ** 2
        return (1 - total / spread, off / spread + 1e-15) if spread > 0 else (L("nan"), L("nan"))
    total, off = total / s.sum(), off / s.sum()
    if metric == "rmse":
        return np.sqrt(total), np.sqrt(total) - np.sqrt(np.maximum(total - off, 0)) + np.sqrt(
            total + off
        ) - np.sqrt(total)
    return total, off


def draw_target(rng, problem: Problem, verb: str) -> np.ndarray:
    if verb == "linreg":
        return problem.eta + rng.normal(size=problem.n)
    if verb == "glm":
        return rng.poisson(np.exp(np.clip(problem.eta, -3, 3))).astype(float) + 0.0
    return (problem.eta + rng.logistic(size=problem.n) > 0).astype(float)


def cross_validation(rng, tool: Tool, kind: type) -> list[str]:
    verb = str(rng.sizes.choice(tool.validated))
    problem, loss = Tame(rng, tool.folder, kind), LOSSES[verb]
    y = draw_target(rng, problem, verb)
    problem.set_target(y)
    folds, values = int(rng.integers(2, 5)), [
        float(v) for v in rng.choice([0.1, 1, 10, 100], 2, replace=False)
    ]
    problem.arguments += ["--cv", folds, "--l2", ",".join(map(str, values)), "--held-out", "held.csv"]
    if verb == "glm":
        problem.arguments += ["--family", "poisson"]
    groups = None
    if tool.needs_groups or rng.random() < 0.5:
        groups = rng.permutation(np.arange(problem.n) % (folds if tool.needs_groups else folds + 3))
        np.save(tool.folder / "groups.npy", groups.astype(float))
        problem.arguments += ["--groups-file", "groups.npy"]
    else:
        problem.arguments += ["--seed", int(rng.integers(99))]
    found: list[str] = []
    run = tool.run(verb, problem.file, *problem.arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    return found + judge(problem, tool, run, loss, y.astype(kind).astype(L), groups, folds)


def judge(problem: Problem, tool: Tool, run, loss, y, groups, folds: int) -> list[str]:
    found, told = [], run.out["cross_validation"]
    scored = problem.y.astype(L) if tool.scores_given else y
    held = np.loadtxt(tool.folder / "held.csv", delimiter=",", skiprows=1, ndmin=2)
    fold = held[np.argsort(held[:, 0]), 1].astype(int)
    if not np.array_equal(np.unique(fold), np.arange(1, folds + 1)):
        return [f"cv: folds {np.unique(fold).tolist()} of {folds}"]
    if groups is not None and any(len(np.unique(fold[groups == g])) > 1 for g in np.unique(groups)):
        found.append("cv: rows of one group are in several folds")
    for value in told["values"]:
        problem.l2 = value["l2"]
        own = []
        for f in range(1, folds + 1):
            train, test = part(problem, fold != f), part(problem, fold == f)
            if (
                not (train.s > 0).any()
                or not (test.s > 0).any()
                or len(np.unique(y[fold != f][train.s > 0])) < 2
            ):
                return found  # such a fold has no model, or no score
            fit = optimum(train, loss, y[fold != f])
            d = reach(fit, train, test, loss, y[fold != f])
            eta = eta_at(test, *fit.coefficients())
            own.append(score(told["metric"], scored[fold == f], eta, test.s, d, tool.least_probability))
        for f, (told_score, (true, off)) in enumerate(zip(value["folds"], own)):
            if told_score is not None and abs(told_score - true) > off:
                found.append(
                    f"cv: l2 {value['l2']:g}, fold {f + 1}: reported {told_score:.12g}, but the predictions "
                    "give "
                    f"{float(true):.12g} but for {float(off):.3g}"
                )
        found += near("cv: mean", value["mean"], np.mean(value["folds"]), 1e-9)
        if value.get("standard_error") is not None:
            found += near(
                "cv: standard error",
                value["standard_error"],
                np.std(value["folds"], ddof=1) / np.sqrt(folds),
                1e-6,
            )
    sign = -1 if told["metric"] == "r2" else 1
    best = min(told["values"], key=lambda value: sign * value["mean"])
    if told["best"] != best["l2"]:
        found.append(f"cv: the best value is said to be {told['best']}, the means say {best['l2']}")
    model = tool.model()
    problem.l2 = told["best"]
    b = model.tensors.get("b", np.zeros((1, 1)))[0, 0]
    found += judge_fit(
        problem, loss, model.tensors["W"][:, 0], b, y, None, run.out["converged"], "cv: the final model"
    )
    return found


VERBS = {"cross-validation": cross_validation}
