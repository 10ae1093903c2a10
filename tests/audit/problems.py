"""The judgement of linear models: gradient, objective, rank and metrics from the written coefficients
alone, in long double.

The objective of all is sum_i s_i loss(y_i, x_i.w + b) + l1 ||w||_1 + (l2/2) sum_j p_j w_j^2, where p_j are
the columns' variances with --standardize, else 1; l1 goes by their roots. A model is judged by how far
Newton's step would lower it, which no scaling of the columns changes:

    gap = g^T H^+ g / 2,   g, H gradient and (expected) Hessian about the weighted means of the columns

A claim "converged" holds if the gap is at most SHARE of what the model has gained over the best constant,
plus what the rounding of the stored numbers costs.

SPDX-License-Identifier: Apache-2.0
"""

import json
import pathlib

import numpy as np

import draw
from losses import in_columns
from runs import REFUSALS, Tool

L = np.longdouble
SHARE = {np.float64: 1e-7, np.float32: 2e-4}
EPS = {np.float64: 2.3e-16, np.float32: 6e-8}


# ------------------------------------------------------------------------------------------------ problems
class Problem:
    """One model to fit: data as the tool reads them, options, and the loss."""

    def __init__(self, rng, folder: pathlib.Path, kind: type, rows=(2, 60), kinds=()) -> None:
        self.rng, self.folder, self.kind = rng, folder, kind
        self.n, self.p = int(rng.sizes.integers(*rows)), int(rng.sizes.integers(1, 8))
        self.X, self.columns = draw.columns(rng, self.n, self.p, kinds=kinds)
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
        if not kinds and rng.random() < 0.1:  # bounds hold early, too
            self.arguments += ["--max-iterations", int(rng.integers(1, 4))]

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
        """Returns the arguments that say what the data are, as verify takes them."""
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
    """The objective about coefficients w (a vector, or a matrix with a column for each class), of columns of
    X shifted to their weighted mean and scaled by their largest entry, against under- and overflow; those
    that are constant but for rounding are left out."""

    def __init__(self, problem: Problem, loss, w: np.ndarray, b, y: np.ndarray) -> None:
        counts = problem.s > 0  # a loss of a row without weight may be infinite
        self.s, self.y, self.problem = problem.s[counts], y[counts], problem
        self.loss = loss if np.ndim(w) == 2 else in_columns(loss)
        w, b = w.astype(L).reshape(len(w), -1), np.asarray(b, L).reshape(1, -1)
        X, eps = problem.kept[counts], EPS[problem.kind]
        mean, variance = (m[:, None] for m in moments(problem))
        center = mean if problem.intercept else np.zeros_like(mean)
        offset = L(0) if problem.offset is None else problem.offset.astype(L)[counts, None]
        Z = X - center[:, 0]
        # not about the means: one row of 1e12 would cost the others their digits
        self.eta = X @ w + b + offset
        penalty = L(problem.l2) * (variance if problem.standardize else np.ones_like(mean))
        lasso = L(problem.l1) * (np.sqrt(variance) if problem.standardize else np.ones_like(mean))
        # eta in the tool's type cannot be nearer than this
        value, _, curve = self.loss(self.y, self.eta)
        blur = eps * (np.abs(b) + np.abs(X) @ np.abs(w) + np.abs(self.eta))
        bend = np.einsum("ijj->ij", curve)
        # a hinge whose kink is nearer than blur may bend there
        for other in (self.eta - blur, self.eta + blur):
            bend = np.where(bend == 0, np.einsum("ijj->ij", self.loss(self.y, other)[2]), bend)
        sizes = np.abs(value) + np.abs(self.loss(self.y, np.zeros_like(self.eta) + offset)[0])
        self.rounding = 8 * (self.s @ (bend * blur**2)).sum() + 64 * eps**2 * (self.s @ sizes)
        self.objective = self.s @ value + (penalty * w * w).sum() / 2 + (lasso * np.abs(w)).sum()
        largest, far = np.abs(Z).max(axis=0), np.abs(X).max(axis=0)
        live = largest > 4 * far * eps * (1 if problem.intercept else 0)
        if problem.intercept:  # include/kiln/linear.h: constant to 16 units of rounding counts as constant
            live &= np.sqrt(variance[:, 0]) > 16.1 * np.finfo(problem.kind).eps * np.abs(mean[:, 0])
        size = largest[live, None]
        self.live, self.size, self.center = live, size, center
        self.Z, self.u = Z[:, live] / size[:, 0], w[live] * size
        self.squares = self.s @ (X[:, live] / size[:, 0]) ** 2
        self.pen, self.lasso = penalty[live] / size**2, lasso[live] / size
        if problem.intercept:
            self.Z = np.c_[self.Z, np.ones(len(Z))]
            self.u = np.r_[self.u, np.zeros_like(b)]
            self.pen, self.lasso = (np.r_[v, np.zeros((1, 1), L)] for v in (self.pen, self.lasso))

    def value(self, u: np.ndarray):
        """The objective of u less that of the coefficients that are judged, of the columns that are left."""
        change = self.Z @ (u - self.u)
        parts = self.loss(self.y, self.eta + change)[0] - self.loss(self.y, self.eta)[0]
        ridge = (self.pen * (u - self.u) * (u + self.u)).sum() / 2
        return self.s @ parts + ridge + (self.lasso * (np.abs(u) - np.abs(self.u))).sum()

    def dual_rounding(self, units: float):
        """The value of sum_j z_j^2 / (2 L_j), z = X^T t about L w, where z_j is off by units |t|
        |x_j|."""
        slope = self.loss(self.y, self.eta)[1]
        rows = len(self.size)
        off = units * np.sqrt((self.s[:, None] * slope**2).sum() * self.squares)[:, None]
        pen, w = self.pen[:rows], self.u[:rows]
        return (off * (2 * np.abs(pen * w) + off) / np.where(pen > 0, 2 * pen, 1)).sum()

    def newton(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        """Newton's step from u and by how much its model falls; an l1 term is linear up to the sign's
        change."""
        _, slope, curve = self.loss(self.y, self.eta + self.Z @ (u - self.u))
        rows, k = u.shape
        smooth = self.Z.T @ (self.s[:, None] * slope) + self.pen * u
        short = np.sign(smooth) * np.maximum(0, np.abs(smooth) - self.lasso)
        free = np.broadcast_to(self.lasso == 0, u.shape)
        g = np.where((u != 0) | free, smooth + np.sign(u) * self.lasso, short)
        live = ((u != 0) | (g != 0) | free).ravel()
        H = np.zeros((rows, k, rows, k), L)
        for c in range(k):
            for d in range(k):
                H[:, c, :, d] = self.Z.T @ (self.Z * (self.s * curve[:, c, d])[:, None])
        H = H.reshape(rows * k, rows * k) + np.diag(np.broadcast_to(self.pen, u.shape).ravel())
        H, g = H[live][:, live], g.ravel()[live]
        d = np.sqrt(np.diag(H))
        d = np.where(d > 0, d, 1)
        values, vectors = np.linalg.eigh((H / d[:, None] / d).astype(float))
        alive = values > (1e-11 if self.problem.kind is np.float64 else 1e-5)
        turned = vectors.T @ (g / d).astype(float)
        step = np.zeros(rows * k, L)
        step[live] = -(vectors[:, alive] @ (turned[alive] / values[alive])) / d
        return step.reshape(u.shape), float((turned[alive] ** 2 / values[alive]).sum() / 2)

    def descend(self, exactly: bool = False) -> float:
        """Returns how much lower Newton's steps in long double come, each halved until it falls and kept to
        its signs."""
        u, best = self.u, L(0)
        for _ in range(30):
            step, gain = self.newton(u)
            side = np.where(u != 0, np.sign(u), np.sign(step))
            for halved in range(30):
                there = u + step / 2**halved
                there = np.where((self.lasso > 0) & (np.sign(there) != side), 0, there)
                value = self.value(there)
                if value < best:
                    break
            else:
                # of which values see no more, but the score does
                if exactly and gain < 1e-15 * max(1, -best):
                    u = u + np.where(self.lasso > 0, 0, step)
                break
            u, gained, best = there, best - value, value
            if gained < 1e-3 * -best and not exactly:
                break
        self.reached = u
        return float(-best)

    def coefficients(self) -> tuple[np.ndarray, np.longdouble]:
        """w and b of X's own columns where descend() ended, of one column that began at 0."""
        w = np.zeros(len(self.live), L)
        w[self.live] = self.reached[: self.live.sum(), 0] / self.size[:, 0]
        return w, (self.reached[-1, 0] if self.problem.intercept else 0) - self.center[:, 0] @ w


def gap(problem: Problem, loss, w: np.ndarray, b, y: np.ndarray):
    """(by how much Newton's step would lower the objective, cost of rounding, objective) of one column of
    coefficients."""
    scaled = Scaled(problem, loss, w, b, y)
    return scaled.newton(scaled.u)[1], scaled.rounding, scaled.objective


def constant_objective(problem: Problem, loss, y, columns: int = 0):
    """The objective of w = 0 and the best intercept, by Newton's steps in long double; of several columns at
    their shares."""
    counts = problem.s > 0
    s, y = problem.s[counts], y[counts]
    if columns:
        shares = np.array([s[y == c].sum() for c in range(columns)]) / s.sum()
        level = np.log(np.maximum(shares, L(1e-300))) if problem.intercept else np.zeros(columns, L)
        return s @ loss(y, np.broadcast_to(level, (len(y), columns)))[0]
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
    null = constant_objective(problem, loss, y, w.shape[1] if w.ndim == 2 else 0)
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
    # a run that met NaN says so and has no objective: the tool refuses it, the package warns
    if claimed is not None and (converged or not np.isnan(claimed)):
        tolerance = (1e-9 if problem.kind is np.float64 else 3e-4) * abs(float(objective)) + 4 * float(
            np.sqrt(rounding * abs(objective))
        )
        if not abs(claimed - float(objective)) <= tolerance + 1e-300:
            found.append(
                f"{name}: objective {claimed:.12g}, but the coefficients' own is {float(objective):.12g}"
            )
    return found


def judge_bound(problem: Problem, fits, run) -> list[str]:
    """Whether the objective is above the optimum by no more than the run says; fits: (loss, w, b, y) of each
    column."""
    told, relative = (run.out.get(name) for name in ("optimality_gap", "gap"))
    told, relative = (None if v is None or not np.isfinite(v) else v for v in (told, relative))
    if told is None and relative is None:
        return []
    scaled = [Scaled(problem, loss, w, b, y) for loss, w, b, y in fits]
    reached = sum(each.descend() for each in scaled)
    objective, rounding = (
        float(sum(getattr(each, name) for each in scaled)) for name in ("objective", "rounding")
    )
    found = []
    if told is not None and not reached <= told * (1 + 1e-9):
        found.append(f"optimality_gap is {told:.6g}, but the objective can fall by {reached:.6g}")
    # a share of the objective without what rounding made of its sum (Higham and Mary's bound), and of the
    # dual's X^T t
    units = (8 * np.sqrt(problem.n) + 8) * EPS[problem.kind]
    summed = units * objective + rounding + sum(float(each.dual_rounding(units)) for each in scaled)
    if relative is not None and not reached <= relative * objective * (1 + 1e-9) + summed:
        found.append(f"gap is {relative:.6g} of {objective:.6g}, but the objective can fall by {reached:.6g}")
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


def blur_of(problem: Problem, model) -> np.ndarray:
    """Returns how far the tool's own eta may be from eta_of's: what a sum of so many terms loses in its
    type."""
    W = np.abs(model.tensors["W"].astype(L))
    b = np.abs(model.tensors["b"].astype(L)) if "b" in model.tensors else np.zeros((1, W.shape[1]), L)
    offset = 0 if problem.offset is None else np.abs(problem.offset.astype(L)[:, None])
    return 8 * EPS[problem.kind] * (np.abs(problem.kept) @ W + b + offset)


def moved(s, value, eta, blur):
    """Returns how far the weighted sum of value(eta), convex and at least 0, moves where each eta does by its
    blur."""
    here, above, below = value(eta), value(eta + blur), value(eta - blur)
    fall = np.where((above > here) & (below > here), here, 0)  # the least value may lie between
    rows = np.maximum(np.maximum(np.abs(above - here), np.abs(below - here)), fall)
    return s @ np.where(s > 0, rows, 0)


def share(part, whole) -> float:
    return float(part / whole) if part > 0 else 0.0


def auc(y, score, s, blur: float = 0) -> tuple[float, float]:
    """The least and the largest share of pairs of rows that are in order, of scores that are known to
    blur."""
    above = score[y > 0.5][:, None] - score[y < 0.5][None, :]
    weight = s[y > 0.5][:, None] * s[y < 0.5][None, :]
    whole = weight.sum()
    if not whole > 0:
        return float("nan"), float("nan")
    shares = [(weight * ((above > lift) + (above == lift) / L(2))).sum() / whole for lift in (blur, -blur)]
    return float(shares[0]), float(shares[1])


def within(name: str, claimed, bounds: tuple[float, float], tolerance: float) -> list[str]:
    if (
        claimed is None
        or not np.isfinite(bounds[0])
        or bounds[0] - tolerance <= claimed <= bounds[1] + tolerance
    ):
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
