"""Cross-validation: each fold's model is found again by Newton's method in long double from the rows that train, and
the fold's score, the means, the best value and the final model follow.

SPDX-License-Identifier: Apache-2.0
"""

import copy

import numpy as np

from losses import logistic_loss, poisson_loss, squared_loss
from problems import Problem, Scaled, judge_fit, near, refused
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


def optimum(problem: Problem, loss, y: np.ndarray) -> tuple[np.ndarray, np.longdouble]:
    """w and b by Newton's steps from zero; columns that are constant keep 0."""
    scaled = Scaled(problem, loss, np.zeros(problem.kept.shape[1]), 0.0, y)
    scaled.descend(exactly=True)
    return scaled.coefficients()


def eta_at(problem: Problem, w: np.ndarray, b) -> np.ndarray:
    return problem.kept @ w + b


def score(metric: str, y: np.ndarray, eta: np.ndarray, s: np.ndarray):
    if metric == "log_loss":
        return s @ logistic_loss(y, eta)[0] / s.sum()
    if metric == "mean_deviance":
        level = np.where(y > 0, y * np.log(np.where(y > 0, y, 1)) - y, 0)
        return 2 * (s @ (poisson_loss(y, eta)[0] + level)) / s.sum()
    square = s @ (eta - y) ** 2
    if metric == "rmse":
        return np.sqrt(square / s.sum())
    return 1 - square / (s @ (y - s @ y / s.sum()) ** 2)


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
    held = np.loadtxt(tool.folder / "held.csv", delimiter=",", skiprows=1, ndmin=2)
    fold = held[np.argsort(held[:, 0]), 1].astype(int)
    if not np.array_equal(np.unique(fold), np.arange(1, folds + 1)):
        return [f"cv: folds {np.unique(fold).tolist()} of {folds}"]
    if groups is not None and any(len(np.unique(fold[groups == g])) > 1 for g in np.unique(groups)):
        found.append("cv: rows of one group are in several folds")
    digits = 1e-6 if problem.kind is np.float64 else 1e-2
    means = {}
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
            w, b = optimum(train, loss, y[fold != f])
            own.append(score(told["metric"], y[fold == f], eta_at(test, w, b), test.s))
        for f, (a, b) in enumerate(zip(value["folds"], own)):
            found += near(f"cv: l2 {value['l2']:g}, fold {f + 1}", a, b, digits)
        own = np.array(own)
        means[value["l2"]] = float(own.mean())
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
