"""Warnings: whether an optimum is at infinity is a linear programme, and a rank is NumPy's.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import scipy.optimize

from problems import refused
from runs import Run, Tool
from validation import Tame

SAID = {  # words of a warning for people: its name
    "can be separated but for ties": "quasi-separated",
    "can be separated:": "separated",
    "have the target 0": "zeros",
    "all targets are": "one-sided",
}


def names(run: Run) -> set[str]:
    """The names of a run's warnings."""
    if "warnings" in run.out:
        return {row["name"] for row in run.out["warnings"]}
    return {name for words, name in SAID.items() if words in run.err}


def largest(gain: np.ndarray, kept: np.ndarray) -> float:
    """max sum(gain d) over |d| <= 1 with gain d >= 0 for each row, and kept d = 0."""
    found = scipy.optimize.linprog(
        -gain.sum(axis=0),
        A_ub=-gain if len(gain) else None,
        b_ub=np.zeros(len(gain)) if len(gain) else None,
        A_eq=kept if len(kept) else None,
        b_eq=np.zeros(len(kept)) if len(kept) else None,
        bounds=(-1, 1),
    )
    return -found.fun if found.status == 0 else 0.0


def margin(gain: np.ndarray) -> float:
    """max t with gain d >= t for each row, |d| <= 1."""
    rows = np.c_[-gain, np.ones(len(gain))]
    cost = np.r_[np.zeros(gain.shape[1]), -1]
    found = scipy.optimize.linprog(cost, A_ub=rows, b_ub=np.zeros(len(gain)), bounds=(-1, 1))
    return -found.fun if found.status == 0 else 0.0


def infinite(rng, tool: Tool, kind: type) -> list[str]:
    """Fits without a penalty, often of few rows: classes that can be separated, groups whose counts are all
    0."""
    problem = Tame(rng, tool.folder, kind)
    poisson = rng.sizes.random() < 0.4
    X = problem.X
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    if poisson:
        y = rng.poisson(np.exp(np.clip(problem.eta, -3, 2))).astype(float)
        if rng.random() < 0.5:
            y[X[:, 0] != 0] = 0
        if not y.any():
            y[0] = 1
        arguments = ["--family", "poisson"]
    else:
        y = (
            problem.eta + rng.choice([0, 0.3, 2]) * rng.logistic(size=problem.n) > np.median(problem.eta)
        ).astype(float)
        y[:2] = [0, 1]
        arguments = ["--family", "binomial"]
    problem.set_target(y)
    problem.l2 = 0.0
    run = tool.run("glm", problem.file, *problem.arguments, *arguments, "--l2", 0, "-o", "model.kiln")
    found: list[str] = []
    if refused(run, found):
        return found
    rows = problem.s > 0
    X, y = X[rows], y[rows]
    if problem.intercept:
        X = np.c_[X, np.ones(len(X))]
    if poisson:
        apart, without = False, largest(-X[y == 0], X[y > 0])
    else:
        gain = np.where(y > 0.5, 1, -1)[:, None] * X
        apart, without = margin(gain) > 1e-6, largest(gain, np.zeros((0, X.shape[1])))
    if 1e-9 < without < 1e-4:  # too near to say
        return found
    told, wanted = names(run) & {"separated", "quasi-separated", "zeros", "one-sided"}, set()
    if problem.intercept and (not y.any() or (not poisson and y.all())):  # the intercept alone
        wanted = {"one-sided"}
    elif without >= 1e-4:
        wanted = {"zeros"} if poisson else {"separated"} if apart else {"quasi-separated"}
    if told and not wanted:
        found.append(f"a warning says {sorted(told)}, but the optimum is finite")
    elif wanted and not told:
        found.append(f"the optimum is at infinity ({sorted(wanted)}), and nothing says so")
    elif (wanted == {"one-sided"}) != (told == {"one-sided"}):
        found.append(f"a warning says {sorted(told)}, but the reason is {sorted(wanted)}")
    elif wanted == {"quasi-separated"} and told == {"separated"}:
        found.append("a warning says that the classes can be separated, but no plane does it")
    return found


def rank(rng, tool: Tool, kind: type) -> list[str]:
    """Least squares of columns that depend on each other."""
    problem = Tame(rng, tool.folder, kind)
    if problem.p > 2 and rng.random() < 0.5:
        problem.X[:, 1] = 2 * problem.X[:, 0]
        np.save(tool.folder / "X.npy", problem.X)
        problem.file = "X.npy"
    problem.standardize = False
    problem.arguments = [a for a in problem.arguments if a != "--standardize"]
    problem.set_target(problem.eta + rng.normal(size=problem.n))
    run = tool.run("linreg", problem.file, *problem.arguments, "--l2", 0, "-o", "model.kiln")
    found: list[str] = []
    if refused(run, found):
        return found
    rows = problem.s > 0
    Z = problem.X[rows].astype(kind).astype(float) * np.sqrt(problem.s[rows].astype(float))[:, None]
    if problem.intercept:
        s = np.sqrt(problem.s[rows].astype(float))
        Z = Z - s[:, None] * (s @ Z / (s @ s))
    size = np.linalg.norm(Z, axis=0)
    sizes = np.linalg.svd(Z / np.where(size > 0, size, 1), compute_uv=False)
    unsure = (sizes > 1e-12) & (sizes < (1e-5 if kind is np.float64 else 1e-2))
    told = run.out["metrics"].get("rank", run.out.get("rank"))
    if not unsure.any() and told is not None and told != (sizes > 1e-9).sum():
        found.append(f"rank {told}, NumPy's is {(sizes > 1e-9).sum()} of {problem.p} columns")
    if not unsure.any() and "rank" in names(run) and (sizes > 1e-9).sum() == problem.p:
        found.append("a warning of the rank, but all columns are independent")
    return found


VERBS = {"infinite": infinite, "rank": rank}
