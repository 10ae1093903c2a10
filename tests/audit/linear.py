"""Linear models: linreg, logreg, svm and glm, each drawn, run and judged.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import draw
import paths
import rows
from losses import (
    best_of,
    beta_loss,
    gamma_loss,
    hinge_loss,
    inverse_gaussian_loss,
    logistic,
    logistic_loss,
    negative_binomial_loss,
    poisson_loss,
    squared_loss,
    tube_loss,
    tweedie_loss,
)
from peers import statsmodels_glm
from problems import (
    EPS,
    Problem,
    auc,
    blur_of,
    check_verify,
    eta_of,
    gap,
    judge_bound,
    judge_fit,
    moments,
    moved,
    near,
    refused,
    share,
    within,
)
from runs import Tool

L = np.longdouble


def linreg(rng, tool: Tool, kind: type) -> list[str]:
    problem = Problem(rng, tool.folder, kind)
    targets = int(rng.sizes.choice([1, 1, 1, 2, 3]))
    scale, shift = float(rng.choice([1, 1, 1e6, 1e-6])), float(rng.choice([0, 0, 1e5]))
    Y = (
        problem.eta[:, None] + rng.normal(size=(problem.n, targets)) * rng.choice([0, 0.1, 1])
    ) * scale + shift
    problem.set_target(Y)
    problem.set_penalty([0, 0, 1e-3, 1, 100])
    if rng.random() < 0.3:
        problem.arguments += ["--solver", str(rng.choice(["cg", "cholesky"]))]
    found: list[str] = []
    run = tool.run("linreg", problem.file, *problem.arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    model = tool.model()
    W = model.tensors["W"]
    b = model.tensors.get("b", np.zeros((1, targets)))[0]
    Yk = Y.astype(kind).astype(L)
    converged = run.out["converged"]
    total, blur = L(0), L(0)
    for t in range(targets):
        found += judge_fit(
            problem, squared_loss, W[:, t], b[t], Yk[:, t], None, converged, f"linreg target {t + 1}"
        )
        _, rounding, objective = gap(problem, squared_loss, W[:, t], b[t], Yk[:, t])
        total += objective
        blur += rounding
    found += judge_bound(problem, [(squared_loss, W[:, t], b[t], Yk[:, t]) for t in range(targets)], run)
    digits = 1e-8 if kind is np.float64 else 2e-3
    own = eta_of(problem, model)
    rss = (problem.s[:, None] * (own - Yk) ** 2).sum()
    center = (problem.s @ Yk / problem.s.sum()) if problem.intercept else 0
    tss = (problem.s[:, None] * (Yk - problem.s @ Yk / problem.s.sum()) ** 2).sum()
    blur += (EPS[kind] * np.abs(Yk).max() * 30) ** 2 * problem.n
    if rss > (1e6 if kind is np.float64 else 1e3) * blur:
        digits += 4 * float(np.sqrt(blur / rss))
        found += near("objective", run.out["objective"], total, digits)
        found += near("rss", run.out["metrics"].get("rss"), rss, digits)
        r2 = run.out["metrics"].get("r2")
        # a mean of numbers as large as Y's is off by e, and TSS by the weights' sum times e^2
        off = (np.sqrt(problem.n) + 8) * EPS[kind] / 2 * np.abs(Yk).max()
        if tss > 0 and targets == 1 and r2 is not None:
            found += near("1 - r2", 1 - r2, rss / tss, digits * 10 + share(problem.s.sum() * off**2, tss))
    # the minimum-norm solution where the rank is beyond doubt
    tame = all(k in draw.TAME + ("copy", "sum") for k in problem.columns)
    if converged and problem.l2 == 0 and tame and not problem.standardize:
        mean, _ = moments(problem)
        Z = ((problem.kept - (mean if problem.intercept else 0)) * np.sqrt(problem.s)[:, None]).astype(float)
        size = np.linalg.svd(Z, compute_uv=False)
        if size.size and size[0] > 0 and not np.any((size > 1e-10 * size[0]) & (size < 1e-4 * size[0])):
            Yc = ((Yk - center) * np.sqrt(problem.s)[:, None]).astype(float)
            least = np.linalg.norm(np.linalg.pinv(Z, rcond=1e-7) @ Yc)
            norm = float(np.linalg.norm(W.astype(float)))
            if norm > least * (1 + (1e-5 if kind is np.float64 else 5e-2)) + 1e-9 * scale:
                found.append(
                    f"linreg: the norm of the coefficients is {norm:.6g}, that of the minimum-norm solution "
                    f"{least:.6g}"
                )
    check_verify(tool, problem, found, converged)
    return found + rows.judge_numbers(rng, tool, problem, model)


def binary_metrics(problem: Problem, y, model, run, digits: float) -> list[str]:
    s, eta, blur = problem.s, eta_of(problem, model)[:, 0], blur_of(problem, model)[:, 0]
    p, q = logistic(eta)
    metrics = run.out["metrics"]
    value = s @ np.where(s > 0, logistic_loss(y, eta)[0], 0)
    off = moved(s, lambda eta: logistic_loss(y, eta)[0], eta, blur)
    found = near("log_loss", metrics.get("log_loss"), value / s.sum(), digits + share(off, value))
    # a probability's logarithm moves by no more than eta does, and its square twice as far
    missed = s @ np.where(y > 0.5, q, p) ** 2
    off = s @ (np.where(y > 0.5, q, p) ** 2 * np.expm1(2 * blur))
    found += near("brier", metrics.get("brier"), missed / s.sum(), digits + share(off, missed))
    found += decided(problem, y, eta, run, digits)
    return found


def decided(problem: Problem, y, eta, run, digits: float) -> list[str]:
    """Accuracy and AUC, where rounding decides neither."""
    s = problem.s
    sure = np.abs(eta) > 1e-3
    found = []
    if sure.all():
        found += near(
            "accuracy",
            run.out["metrics"].get("accuracy"),
            s @ ((eta > 0) == (y > 0.5)) / s.sum(),
            8 * EPS[problem.kind],
        )
    found += within("auc", run.out["metrics"].get("auc"), auc(y, eta, s, 1e-3), 8 * EPS[problem.kind])
    return found


def two_classes(rng, problem: Problem) -> np.ndarray:
    y = (rng.random(problem.n) < logistic(problem.eta)[0]).astype(float)
    # both classes have rows that count: the best intercept of one alone is infinite
    counts = np.nonzero(problem.s > 0)[0]
    if y[counts].min() == y[counts].max():
        y[counts[0]] = 1 - y[counts[0]]
    if len(counts) == 1:
        y[counts[0] - 1] = 1 - y[counts[0]]
    return y


def logreg(rng, tool: Tool, kind: type) -> list[str]:
    problem = Problem(rng, tool.folder, kind)
    y = two_classes(rng, problem)
    problem.set_target(y)
    problem.set_penalty([1e-3, 1, 1, 100])
    problem.draw_l1(0.25)
    found: list[str] = []
    run = tool.run("logreg", problem.file, *problem.arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    model = tool.model()
    b = model.tensors.get("b", np.zeros((1, 1)))[0, 0]
    found += judge_fit(
        problem,
        logistic_loss,
        model.tensors["W"][:, 0],
        b,
        y,
        run.out["objective"],
        run.out["converged"],
        "logreg",
    )
    found += judge_bound(problem, [(logistic_loss, model.tensors["W"][:, 0], b, y)], run)
    digits = 1e-7 if kind is np.float64 else 2e-3
    found += binary_metrics(problem, y, model, run, digits)
    check_verify(tool, problem, found, run.out["converged"])
    found += rows.judge_classes(rng, tool, problem, model, np.unique(y))
    return found + paths.follow(rng, tool, "logreg", problem, logistic_loss, y)


def svm(rng, tool: Tool, kind: type) -> list[str]:
    problem = Problem(rng, tool.folder, kind)
    regression = rng.sizes.random() < 0.4
    if regression:
        epsilon = float(rng.choice([0.0, 0.1, 1]))
        y = problem.eta + rng.normal(size=problem.n)
        problem.arguments += ["--regression", "--epsilon", epsilon]
        loss, target = tube_loss(epsilon), y.astype(kind).astype(L)
    else:
        y = two_classes(rng, problem)
        loss, target = hinge_loss, y
    problem.set_target(y)
    problem.set_penalty([1e-3, 1, 1, 100])
    found: list[str] = []
    run = tool.run("svm", problem.file, *problem.arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    model = tool.model()
    b = model.tensors.get("b", np.zeros((1, 1)))[0, 0]
    found += judge_fit(
        problem, loss, model.tensors["W"][:, 0], b, target, run.out["objective"], run.out["converged"], "svm"
    )
    found += judge_bound(problem, [(loss, model.tensors["W"][:, 0], b, target)], run)
    if not regression:
        found += decided(problem, y, eta_of(problem, model)[:, 0], run, 1e-7)
    check_verify(tool, problem, found, run.out["converged"])
    if regression:
        found += rows.judge_numbers(rng, tool, problem, model)
    else:
        found += rows.judge_classes(rng, tool, problem, model, np.unique(y))
    return found + paths.follow(rng, tool, "svm", problem, loss, target)


def draw_glm(rng, problem: Problem):
    """Family, its loss under its default link log (logit, identity), targets and deviance."""
    mu = np.exp(np.clip(problem.eta, -5, 5))
    family = str(
        rng.sizes.choice(
            [
                "gaussian",
                "poisson",
                "gamma",
                "inverse-gaussian",
                "binomial",
                "tweedie",
                "negative-binomial",
                "beta",
            ]
        )
    )
    arguments: list[object] = ["--family", family]
    if family == "gaussian":
        return family, arguments, squared_loss, problem.eta + rng.normal(size=problem.n)
    if family == "poisson":
        return family, arguments, poisson_loss, rng.poisson(mu).astype(float)
    if family == "gamma":
        return family, arguments, gamma_loss, rng.gamma(2, mu / 2) + 1e-8
    if family == "inverse-gaussian":
        return family, [*arguments, "--link", "log"], inverse_gaussian_loss, rng.wald(mu, 2.0)
    if family == "binomial":
        return family, arguments, logistic_loss, two_classes(rng, problem)
    if family == "tweedie":
        power = float(rng.choice([1.2, 1.5, 1.9]))
        y = np.where(rng.random(problem.n) < 0.3, 0, rng.gamma(2, mu / 2))
        return family, [*arguments, "--variance-power", power], tweedie_loss(power), y
    if family == "beta":
        precision = float(rng.choice([0.5, 5, 100]))
        share = logistic(np.clip(problem.eta, -5, 5))[0].astype(float)
        y = np.clip(rng.beta(precision * share, precision * (1 - share)), 1e-6, 1 - 1e-6)
        return family, [*arguments, "--precision", precision], beta_loss(precision), y
    alpha = float(rng.choice([0.1, 1, 5]))
    y = rng.negative_binomial(1 / alpha, 1 / (1 + alpha * mu)).astype(float)
    return family, [*arguments, "--alpha", alpha], negative_binomial_loss(alpha), y


def glm(rng, tool: Tool, kind: type) -> list[str]:
    problem = Problem(rng, tool.folder, kind)
    family, arguments, loss, y = draw_glm(rng, problem)
    if y.max() <= 0:
        y[0] = 1
    problem.arguments += arguments
    if rng.random() < 0.3:
        problem.offset = rng.normal(size=problem.n)
        np.save(tool.folder / "o.npy", problem.offset)
        problem.arguments += ["--offset-file", "o.npy"]
        problem.offset = problem.offset.astype(kind)
    problem.set_target(y)
    problem.set_penalty([1e-3, 0.1, 1, 1, 100])
    problem.draw_l1(0.2)
    found: list[str] = []
    run = tool.run("glm", problem.file, *problem.arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    model = tool.model()
    b = model.tensors.get("b", np.zeros((1, 1)))[0, 0]
    yk = y.astype(kind).astype(L)
    found += judge_fit(
        problem, loss, model.tensors["W"][:, 0], b, yk, None, run.out["converged"], f"glm {family}"
    )
    found += judge_bound(problem, [(loss, model.tensors["W"][:, 0], b, yk)], run)
    eta, digits = eta_of(problem, model)[:, 0], 1e-7 if kind is np.float64 else 2e-3
    if family == "binomial":
        found += binary_metrics(problem, y, model, run, digits)

    def unit_deviance(y, eta):
        return 2 * (loss(y, eta)[0] - saturated(family, loss, y))

    deviance = problem.s @ np.where(problem.s > 0, unit_deviance(yk, eta), 0)
    off = moved(problem.s, lambda eta: unit_deviance(yk, eta), eta, blur_of(problem, model)[:, 0])
    scale = float(problem.s @ np.abs(np.where(problem.s > 0, loss(yk, eta)[0], 0)))
    if float(deviance) > 1e-5 * scale:
        told = run.out["metrics"].get("deviance")
        found += near("deviance", told, deviance, 10 * digits + share(off, deviance))
    check_verify(tool, problem, found, run.out["converged"])
    if family != "beta":  # which is no family of its GLM
        found += statsmodels_glm(problem, tool, family, loss, yk)
    inverse = None if family == "gaussian" else np.exp
    if family in ("binomial", "beta"):
        inverse = lambda eta: logistic(eta)[0]  # noqa: E731
    whole = {"poisson": np.inf, "negative-binomial": np.inf, "binomial": 1, "beta": 1 - 1e-6}.get(family)
    found += rows.judge_numbers(rng, tool, problem, model, inverse, unit_deviance, whole)
    return found + paths.follow(rng, tool, "glm", problem, loss, yk)


def saturated(family: str, loss, y):
    """The loss of y's best mean, which is y but for beta; a limit where its eta is infinite."""
    if family == "gaussian" or family == "binomial":
        return np.zeros_like(y)
    if family == "beta":
        return best_of(loss, y)
    at = np.where(y > 0, np.log(np.where(y > 0, y, 1)), 0)
    return np.where(y > 0, loss(y, at)[0], 0)


VERBS = {"linreg": linreg, "logreg": logreg, "svm": svm, "glm": glm}
