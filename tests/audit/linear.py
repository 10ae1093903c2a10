"""Linear models: gradient, objective, rank and metrics from the written coefficients alone, in long double.

The objective of all is sum_i s_i loss(y_i, x_i.w + b) + l1 ||w||_1 + (l2/2) sum_j p_j w_j^2, where p_j are the
columns' variances with --standardize, else 1; l1 goes by their roots. A model is judged by how far Newton's step would lower it, which
no scaling of the columns changes:

    gap = g^T H^+ g / 2,   g, H gradient and (expected) Hessian about the weighted means of the columns

A claim "converged" holds if the gap is at most SHARE of what the model has gained over the best constant, plus
what the rounding of the stored numbers costs.

SPDX-License-Identifier: Apache-2.0
"""

import json
import pathlib

import numpy as np

import draw
from runs import REFUSALS, Tool

L = np.longdouble
SHARE = {np.float64: 1e-7, np.float32: 2e-4}
EPS = {np.float64: 2.3e-16, np.float32: 6e-8}


# ------------------------------------------------------------------ losses: value, d/d eta, expected d2/d eta2
def logistic(eta):
    """1 / (1 + exp(-eta)) and its complement, each with all of its digits."""
    e = np.exp(-np.abs(eta))
    big, small = 1 / (1 + e), e / (1 + e)
    return np.where(eta >= 0, big, small), np.where(eta >= 0, small, big)


def logistic_loss(y, eta):
    p, q = logistic(eta)
    value = np.log1p(np.exp(-np.abs(eta))) + np.where(y > 0.5, np.maximum(-eta, 0), np.maximum(eta, 0))
    # p - y without cancelling where y is 0 or 1
    slope = np.where(y == 1, -q, np.where(y == 0, p, p - y))
    inner = (y > 0) & (y < 1)
    value = np.where(inner, np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0) - y * eta, value)
    return value, slope, p * q


def squared_loss(y, eta):
    return (eta - y) ** 2 / 2, eta - y, np.ones_like(eta)


def hinge_loss(y, eta):
    sign = np.where(y > 0.5, 1, -1)
    short = np.maximum(0, 1 - sign * eta)
    return short**2 / 2, -sign * short, (short > 0).astype(L)


def tube_loss(epsilon):
    def loss(y, eta):
        over = np.sign(eta - y) * np.maximum(0, np.abs(eta - y) - L(epsilon))
        return over**2 / 2, over, (over != 0).astype(L)

    return loss


def poisson_loss(y, eta):
    mu = np.exp(eta)
    return mu - y * eta, mu - y, mu


def gamma_loss(y, eta):
    ratio = y * np.exp(-eta)
    return ratio + eta, 1 - ratio, np.ones_like(eta)


def inverse_gaussian_loss(y, eta):
    inverse = np.exp(-eta)
    return y * inverse**2 / 2 - inverse, inverse - y * inverse**2, inverse


def negative_binomial_loss(alpha):
    a = L(alpha)

    def loss(y, eta):
        mu = np.exp(eta)
        return (y + 1 / a) * np.log1p(a * mu) - y * eta, (mu - y) / (1 + a * mu), mu / (1 + a * mu)

    return loss


def tweedie_loss(power):
    p = L(power)

    def loss(y, eta):
        return (
            np.exp((2 - p) * eta) / (2 - p) - y * np.exp((1 - p) * eta) / (1 - p),
            np.exp((2 - p) * eta) - y * np.exp((1 - p) * eta),
            np.exp((2 - p) * eta),
        )

    return loss


# ------------------------------------------------------------------------------------------------ problems
class Problem:
    """One model to fit: data as the tool reads them, options, and the loss."""

    def __init__(self, rng, folder: pathlib.Path, kind: type) -> None:
        self.rng, self.folder, self.kind = rng, folder, kind
        self.n, self.p = int(rng.sizes.integers(2, 60)), int(rng.sizes.integers(1, 8))
        self.X, self.columns = draw.columns(rng, self.n, self.p)
        with np.errstate(over="ignore"):
            self.kept = self.X.astype(kind).astype(L)
        self.weights = draw.weights(rng, self.n)
        self.intercept = rng.random() < 0.8
        self.standardize = rng.random() < 0.25
        self.l1, self.offset = 0.0, None
        signal = draw.unit(self.X) @ rng.normal(size=self.p)
        self.eta = signal * rng.choice([0.1, 0.5, 2.0]) + (rng.normal() if self.intercept else 0)
        self.file = draw.write_matrix(rng, folder, self.X)
        self.arguments: list[object] = []
        if self.weights is not None:
            np.save(folder / "s.npy", self.weights)
            self.arguments += ["--weights-file", "s.npy"]
        if not self.intercept:
            self.arguments += ["--no-intercept"]
        if self.standardize:
            self.arguments += ["--standardize"]

    def set_target(self, y: np.ndarray) -> None:
        self.y = y
        np.save(self.folder / "y.npy", y)
        self.arguments += ["--target-file", "y.npy"]

    def set_penalty(self, values: list[float]) -> None:
        self.l2 = float(self.rng.choice(values))
        self.arguments += ["--l2", self.l2]

    def draw_l1(self, share: float) -> None:
        """Gives that share of the problems an l1 term."""
        if self.rng.random() < share:
            self.l1 = float(self.rng.choice([0.01, 1]))
            self.arguments += ["--l1", self.l1]

    def data_arguments(self) -> list[object]:
        """Of the arguments those that say what the data are, as verify takes them."""
        pairs = zip(self.arguments, self.arguments[1:])
        return [
            a
            for pair in pairs
            if str(pair[0]) in ("--weights-file", "--target-file", "--offset-file")
            for a in pair
        ]

    @property
    def s(self) -> np.ndarray:
        return (np.ones(self.n) if self.weights is None else self.weights.astype(self.kind)).astype(L)


def moments(problem: Problem):
    """Means and variances of the columns by the rows' weights; variances are always about the mean."""
    s, X = problem.s, problem.kept
    mean = s @ X / s.sum()
    variance = s @ (X - mean) ** 2 / s.sum()
    return mean, variance


class Scaled:
    """The objective about one column of coefficients, of columns shifted to their weighted mean and scaled by their
    largest entry, against under- and overflow; those that are constant but for rounding are left out."""

    def __init__(self, problem: Problem, loss, w: np.ndarray, b, y: np.ndarray) -> None:
        counts = problem.s > 0  # a loss of a row without weight may be infinite
        self.s, self.y, self.loss, self.problem = problem.s[counts], y[counts], loss, problem
        X, eps = problem.kept[counts], EPS[problem.kind]
        mean, variance = moments(problem)
        center = mean if problem.intercept else np.zeros_like(mean)
        offset = L(0) if problem.offset is None else problem.offset.astype(L)[counts]
        w, b = w.astype(L), L(b)
        self.eta = (X - center) @ w + (b + center @ w) + offset
        penalty = L(problem.l2) * (variance if problem.standardize else np.ones_like(w))
        lasso = L(problem.l1) * (np.sqrt(variance) if problem.standardize else np.ones_like(w))
        # eta in the tool's type cannot be nearer than this
        value, _, curve = loss(self.y, self.eta)
        blur = eps * (np.abs(b) + np.abs(X) @ np.abs(w) + np.abs(self.eta))
        sizes = np.abs(value) + np.abs(loss(self.y, np.zeros_like(self.eta) + offset)[0])
        self.rounding = 8 * np.sum(self.s * curve * blur**2) + 64 * eps**2 * np.sum(self.s * sizes)
        self.objective = self.s @ value + (penalty * w * w).sum() / 2 + (lasso * np.abs(w)).sum()
        Z = X - center
        largest, far = np.abs(Z).max(axis=0), np.abs(X).max(axis=0)
        live = largest > 4 * far * eps * (1 if problem.intercept else 0)
        size = largest[live]
        self.Z, self.u = Z[:, live] / size, w[live] * size
        self.pen, self.lasso = penalty[live] / size**2, lasso[live] / size
        if problem.intercept:
            self.Z = np.c_[self.Z, np.ones(len(Z))]
            self.u, self.pen, self.lasso = (np.append(v, 0) for v in (self.u, self.pen, self.lasso))

    def value(self, u: np.ndarray):
        """The objective of u less that of the coefficients that are judged, of the columns that are left."""
        change = self.Z @ (u - self.u)
        parts = self.loss(self.y, self.eta + change)[0] - self.loss(self.y, self.eta)[0]
        ridge = (self.pen * (u - self.u) * (u + self.u)).sum() / 2
        return self.s @ parts + ridge + (self.lasso * (np.abs(u) - np.abs(self.u))).sum()

    def newton(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        """Newton's step from u and by how much its model falls; an l1 term is linear up to the sign's change."""
        _, slope, curve = self.loss(self.y, self.eta + self.Z @ (u - self.u))
        smooth = self.Z.T @ (self.s * slope) + self.pen * u
        short = np.sign(smooth) * np.maximum(0, np.abs(smooth) - self.lasso)
        g = np.where((u != 0) | (self.lasso == 0), smooth + np.sign(u) * self.lasso, short)
        live = (u != 0) | (g != 0) | (self.lasso == 0)
        Z, pen = self.Z[:, live], self.pen[live]
        H = Z.T @ (Z * (self.s * curve)[:, None]) + np.diag(pen)
        d = np.sqrt(np.diag(H))
        d = np.where(d > 0, d, 1)
        values, vectors = np.linalg.eigh((H / d[:, None] / d).astype(float))
        alive = values > (1e-11 if self.problem.kind is np.float64 else 1e-5)
        turned = vectors.T @ (g[live] / d).astype(float)
        step = np.zeros_like(u)
        step[live] = -(vectors[:, alive] @ (turned[alive] / values[alive])) / d
        return step, float((turned[alive] ** 2 / values[alive]).sum() / 2)

    def descend(self) -> float:
        """How much lower Newton's steps in long double come, each halved until it falls and kept to its signs."""
        u, best = self.u, L(0)
        for _ in range(30):
            step, _ = self.newton(u)
            side = np.where(u != 0, np.sign(u), np.sign(step))
            for halved in range(30):
                there = u + step / 2**halved
                there = np.where((self.lasso > 0) & (np.sign(there) != side), 0, there)
                value = self.value(there)
                if value < best:
                    break
            else:
                break
            u, gained, best = there, best - value, value
            if gained < 1e-3 * -best:
                break
        return float(-best)


def gap(problem: Problem, loss, w: np.ndarray, b, y: np.ndarray):
    """(by how much Newton's step would lower the objective, cost of rounding, objective) of one column of coefficients."""
    scaled = Scaled(problem, loss, w, b, y)
    return scaled.newton(scaled.u)[1], scaled.rounding, scaled.objective


def constant_objective(problem: Problem, loss, y):
    """The objective of w = 0 and the best intercept, by Newton's steps in long double."""
    counts = problem.s > 0
    s, y = problem.s[counts], y[counts]
    offset = L(0) if problem.offset is None else problem.offset.astype(L)[counts]
    b = L(0)
    if problem.intercept:
        for _ in range(60):
            _, slope, curve = loss(y, offset + b * np.ones(len(y), L))
            denominator = s @ curve
            if denominator <= 0:
                break
            step = np.clip(s @ slope / denominator, -2, 2)
            b -= step
    value, _, _ = loss(y, offset + b * np.ones(len(y), L))
    return s @ value


def judge_fit(problem: Problem, loss, w, b, y, claimed, converged: bool, name: str) -> list[str]:
    scaled = Scaled(problem, loss, w, b, y)
    fall, rounding, objective = scaled.newton(scaled.u)[1], scaled.rounding, scaled.objective
    null = constant_objective(problem, loss, y)
    gain = max(null - objective, 0)
    found = []
    allowed = (
        SHARE[problem.kind] * float(gain + min(fall, gain))
        + float(rounding)
        + 1e-13 * float(abs(objective)) * EPS[problem.kind] / 2e-16
    )
    # where a loss has kinks the step's model promises more than there is: what is reached counts
    if converged and not fall <= allowed and not (fall := scaled.descend()) <= allowed:
        found.append(
            f"{name}: converged, but the optimum is {fall:.3g} lower (gain {float(gain):.3g}, "
            f"rounding {float(rounding):.3g}, allowed {allowed:.3g})"
        )
    if converged and float(objective - null) > allowed + 1e-9 * abs(float(null)):
        found.append(f"{name}: converged to {float(objective):.9g}, worse than a constant, {float(null):.9g}")
    if claimed is not None:
        tolerance = (1e-9 if problem.kind is np.float64 else 3e-4) * abs(float(objective)) + 4 * float(
            np.sqrt(rounding * abs(objective))
        )
        if not abs(claimed - float(objective)) <= tolerance + 1e-300:
            found.append(
                f"{name}: objective {claimed:.12g}, but the coefficients' own is {float(objective):.12g}"
            )
    return found


def near(name: str, claimed, true, tolerance: float) -> list[str]:
    if claimed is None or not np.isfinite(float(true)):
        return []
    if abs(float(claimed) - float(true)) <= tolerance * max(1e-300, abs(float(true))) + tolerance * 1e-3:
        return []
    return [f"{name}: reported {float(claimed):.12g}, but the predictions give {float(true):.12g}"]


def eta_of(problem: Problem, model) -> np.ndarray:
    W = model.tensors["W"].astype(L)
    b = model.tensors["b"].astype(L) if "b" in model.tensors else np.zeros((1, W.shape[1]), L)
    offset = 0 if problem.offset is None else problem.offset.astype(L)[:, None]
    return problem.kept @ W + b + offset


def auc(y, score, s, blur: float = 0) -> tuple[float, float]:
    """The least and the largest share of pairs of rows that are in order, of scores that are known to blur."""
    above = score[y > 0.5][:, None] - score[y < 0.5][None, :]
    weight = s[y > 0.5][:, None] * s[y < 0.5][None, :]
    whole = weight.sum()
    if not whole > 0:
        return float("nan"), float("nan")
    shares = [(weight * ((above > lift) + (above == lift) / L(2))).sum() / whole for lift in (blur, -blur)]
    return float(shares[0]), float(shares[1])


def within(name: str, claimed, bounds: tuple[float, float], tolerance: float) -> list[str]:
    if claimed is None or not np.isfinite(bounds[0]) or bounds[0] - tolerance <= claimed <= bounds[1] + tolerance:
        return []
    return [f"{name}: reported {claimed:.12g}, but the predictions give {bounds[0]:.12g} to {bounds[1]:.12g}"]


def refused(run, found: list[str]) -> bool:
    """Whether the run ended without a model; a strange way to end is a finding."""
    if run.code == 0:
        return False
    if run.code not in REFUSALS or "error" not in run.out:
        found.append(f"{run.command[1]} ended with exit code {run.code}: {run.err.strip()[-300:]}")
    return True


def check_verify(tool: Tool, problem: Problem, found: list[str], converged: bool) -> None:
    run = tool.verify(problem.file, *problem.data_arguments())
    if run is None:
        return
    if run.code not in (0, 4):
        found.append(f"verify ended with exit code {run.code}: {run.err.strip()[-300:]}")
    elif converged and not run.out.get("holds", False):
        claims = [c for c in run.out.get("claims", []) if c["holds"] is False]
        found.append(f"verify does not accept a model that has converged: {json.dumps(claims)}")


# --------------------------------------------------------------------------------------------------- verbs
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
        if tss > 0 and targets == 1 and r2 is not None:
            found += near("1 - r2", 1 - r2, rss / tss, digits * 10)
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
                    f"linreg: the norm of the coefficients is {norm:.6g}, that of the minimum-norm solution {least:.6g}"
                )
    check_verify(tool, problem, found, converged)
    return found


def binary_metrics(problem: Problem, y, eta, run, digits: float) -> list[str]:
    s = problem.s
    p, q = logistic(eta)
    metrics = run.out["metrics"]
    value = np.where(s > 0, logistic_loss(y, eta)[0], 0)
    found = near("log_loss", metrics.get("log_loss"), s @ value / s.sum(), digits)
    found += near("brier", metrics.get("brier"), s @ np.where(y > 0.5, q, p) ** 2 / s.sum(), digits)
    found += decided(problem, y, eta, run, digits)
    return found


def decided(problem: Problem, y, eta, run, digits: float) -> list[str]:
    """Accuracy and AUC, where rounding decides neither."""
    s = problem.s
    sure = np.abs(eta) > 1e-3
    found = []
    if sure.all():
        found += near(
            "accuracy", run.out["metrics"].get("accuracy"), s @ ((eta > 0) == (y > 0.5)) / s.sum(), 8 * EPS[problem.kind]
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
    digits = 1e-7 if kind is np.float64 else 2e-3
    found += binary_metrics(problem, y, eta_of(problem, model)[:, 0], run, digits)
    check_verify(tool, problem, found, run.out["converged"])
    return found


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
    if not regression:
        found += decided(problem, y, eta_of(problem, model)[:, 0], run, 1e-7)
    check_verify(tool, problem, found, run.out["converged"])
    return found


def draw_glm(rng, problem: Problem):
    """Family, its loss under its default link log (logit, identity), targets and deviance."""
    mu = np.exp(np.clip(problem.eta, -5, 5))
    family = str(
        rng.sizes.choice(
            ["gaussian", "poisson", "gamma", "inverse-gaussian", "binomial", "tweedie", "negative-binomial"]
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
    eta, digits = eta_of(problem, model)[:, 0], 1e-7 if kind is np.float64 else 2e-3
    if family == "binomial":
        found += binary_metrics(problem, y, eta, run, digits)
    losses = np.where(problem.s > 0, loss(yk, eta)[0] - saturated(family, loss, yk), 0)
    deviance = 2 * (problem.s @ losses)
    scale = float(problem.s @ np.abs(np.where(problem.s > 0, loss(yk, eta)[0], 0)))
    if float(deviance) > 1e-5 * scale:
        found += near("deviance", run.out["metrics"].get("deviance"), deviance, 10 * digits)
    check_verify(tool, problem, found, run.out["converged"])
    return found


def saturated(family: str, loss, y):
    """The loss of a mean that equals y, as a limit where its eta is infinite."""
    if family == "gaussian" or family == "binomial":
        return np.zeros_like(y)
    at = np.where(y > 0, np.log(np.where(y > 0, y, 1)), 0)
    return np.where(y > 0, loss(y, at)[0], 0)


VERBS = {"linreg": linreg, "logreg": logreg, "svm": svm, "glm": glm}
