"""Singular values and principal components: triples, means, deviations and variances from the written model
and coordinates alone, in long double, beside LAPACK's values of the same matrix.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import draw
from problems import EPS, check_verify, near, refused
from runs import Tool

L = np.longdouble
TOLERANCE = {np.float64: 1e-8, np.float32: 1e-5}


class Table:
    """A matrix, and A, what of it is decomposed: about means, in deviations."""

    def __init__(self, rng, folder, kind, center: bool, scale: bool) -> None:
        shapes = ((1, 60), (1, 20)), ((1, 20), (1, 60)), ((2, 9), (2, 9))
        m, n = (int(rng.sizes.integers(*ends)) for ends in shapes[rng.sizes.integers(3)])
        X, self.columns = draw.columns(rng, m, n, 0.0 if rng.random() < 0.5 else 0.5)
        if rng.random() < 0.3:  # of a low rank, equal values
            X = np.round(rng.normal(size=(m, 2))) @ np.round(rng.normal(size=(2, n)))
        with np.errstate(over="ignore"):  # squares of what an f32 holds must be numbers, too
            X = np.where(np.abs(X) < (1e15 if kind is np.float32 else 1e100), X, 0)
        self.file, self.k = draw.write_matrix(rng, folder, X), int(rng.sizes.integers(1, min(m, n) + 1))
        self.m, self.n = m, n
        self.kept = X.astype(kind).astype(L)
        self.mean = self.kept.mean(axis=0) if center else np.zeros(n, L)
        self.deviation = np.sqrt(((self.kept - self.kept.mean(axis=0)) ** 2).mean(axis=0))
        # what rounding leaves of the mean of a constant column is no deviation
        blur = 4 * EPS[kind] * np.abs(self.kept).max(axis=0)
        self.doubted = scale and bool(((self.deviation > 0) & (self.deviation < 100 * blur)).any())
        if not scale:
            self.deviation = np.ones(n, L)
        self.deviation[self.deviation == 0] = 1
        self.A = (self.kept - self.mean) / self.deviation
        size = (np.abs(self.kept) + np.abs(self.mean)) / self.deviation
        self.blur = 16 * EPS[kind] * np.sqrt((size * size).sum()) * np.sqrt(L(self.k))

    def data_arguments(self) -> list[object]:
        return []


def judge(table: Table, out, model, T: np.ndarray, kind: type) -> list[str]:
    """T: the rows' coordinates, U diag(s)."""
    V, s = model.tensors["V"].astype(L), model.tensors["s"].astype(L).ravel()
    A, first, found = table.A, s[0], []
    if V.shape != (table.n, table.k) or len(s) != table.k or T.shape != (table.m, table.k):
        return [f"svd: shapes {V.shape}, {s.shape}, {T.shape}"]
    if (np.diff(s) > 0).any() or s[-1] < 0:
        found.append("svd: values do not descend, or are negative")
    rounding = 8 * max(table.m, table.n) * EPS[kind]
    skew = float(np.abs(V.T @ V - np.eye(table.k)).max())
    if skew > 10 * rounding:
        found.append(f"svd: |V'V - 1| is {skew:.2g}")
    largest = np.abs(V).max(axis=0)
    if not all((V[np.abs(V[:, c]) > (1 - 1e-5) * largest[c], c] > 0).any() for c in range(table.k)):
        found.append("svd: an entry of the largest size is not positive")
    forth = np.sqrt(((A @ V - T) ** 2).sum(axis=0))
    counts = s > 100 * table.blur
    back = np.sqrt(((A.T @ (T[:, counts] / s[counts]) - V[:, counts] * s[counts]) ** 2).sum(axis=0))
    bound = (TOLERANCE[kind] if out["converged"] else max(out["residual"], TOLERANCE[kind])) * first
    # u is known by coordinates, whose rounding is large beside a small s, and comes back times the first one
    returned = table.blur * (1 + first / s[counts])
    for name, values, blur in (("A v - s u", forth, table.blur + 0 * forth), ("A'u - s v", back, returned)):
        for worst, off in zip(values, blur):
            if worst > bound * 1.001 + 2 * off:
                found.append(f"svd: |{name}| is {float(worst):.3g}, but at most {float(bound):.3g} with "
                             f"rounding of {float(off):.3g}")
    scale = np.abs(A).max(initial=0)
    right = np.linalg.svd((A / scale).astype(float), compute_uv=False)[: table.k] * scale if scale else s * 0
    off = np.abs(right - s).max()
    if out["converged"] and off > bound + 2 * table.blur + 1e-13 * first:
        found.append(f"svd: values are off by {float(off):.3g}, LAPACK's {right.astype(float).tolist()}, "
                     f"written {s.astype(float).tolist()}")
    if not out["converged"] and not out["residual"] * first <= table.blur:
        found.append(f"svd: did not converge in {out['iterations']} iterations, at a residual of "
                     f"{out['residual']:.3g}; rounding is {float(table.blur):.3g}, s_1 {float(first):.3g}")
    return found


def judge_moments(table: Table, model, kind: type) -> list[str]:
    """Means, deviations, the coordinates' variances, and their sum over all columns."""
    found, A = [], table.A
    size = np.abs(table.kept).max(axis=0)
    if "mean" in model.tensors:
        off = np.abs(model.tensors["mean"].astype(L).ravel() - table.mean)
        if (off > 4 * EPS[kind] * size).any():
            found.append(f"svd: a mean is off by {float((off / np.where(size, size, 1)).max()):.3g} of the "
                         "column's largest entry")
    digits = 1e-9 if kind is np.float64 else 1e-3
    if "deviation" in model.tensors:
        for j, value in enumerate(model.tensors["deviation"].astype(L).ravel()):
            found += near(f"svd deviation {j}", value, table.deviation[j], digits)
    rows = max(table.m - 1, 1)
    if "total" in model.tensors:
        total = ((A - A.mean(axis=0)) ** 2).sum() / rows
        if total * rows > 1e8 * table.blur**2:
            found += near("svd: the columns' variance", model.tensors["total"].ravel()[0], total, digits)
    if "variance" in model.tensors:
        T = A @ model.tensors["V"].astype(L)
        own = ((T - T.mean(axis=0)) ** 2).sum(axis=0) / rows
        off = np.abs(model.tensors["variance"].astype(L).ravel() - own)
        allowed = digits * (own.max() + (T * T).mean(axis=0).max()) + table.blur**2
        if (off > allowed).any():
            found.append(f"svd: variances are off by {float(off.max()):.3g} of {float(own.max()):.3g}")
    return found


def decomposition(verb: str, rng, tool: Tool, kind: type) -> list[str]:
    center = verb == "pca" or (tool.centres and rng.random() < 0.3)
    scale = bool(rng.random() < 0.3)
    table = Table(rng, tool.folder, kind, center, scale)
    arguments: list[object] = ["-k", table.k, "--seed", int(rng.integers(99))]
    arguments += ["--scale"] if scale else []
    arguments += ["--center"] if center and verb == "svd" else []
    if table.m >= table.n and rng.random() < 0.4:
        arguments += ["--solver", str(rng.choice(["krylov", "gram"])) if tool.centres else "gram"]
    found: list[str] = []
    run = tool.run(verb, table.file, *arguments, "--coordinates", "T.csv", "-o", "model.kiln")
    if refused(run, found):
        return found
    T = np.loadtxt(tool.folder / "T.csv", delimiter=",", skiprows=1, ndmin=2).astype(L)
    model = tool.model()
    if not table.doubted:
        found += judge(table, run.out, model, T, kind)
        found += judge_moments(table, model, kind)
    new = tool.run("predict", "model.kiln", table.file)
    again = np.array(new.out.get("predictions", []), L).reshape(-1, table.k)
    allowed = TOLERANCE[kind] * model.tensors["s"].ravel()[0] + 4 * table.blur
    if new.code or again.shape != T.shape:
        found.append(f"{verb}: predict ended with {new.code}: {new.err.strip()[-200:]}")
    elif not table.doubted and np.abs(again - T).max() > allowed:
        found.append(f"{verb}: predict is {float(np.abs(again - T).max()):.3g} from the coordinates")
    check_verify(tool, table, found, run.out["converged"])
    return found


VERBS = {
    "svd": lambda *problem: decomposition("svd", *problem),
    "pca": lambda *problem: decomposition("pca", *problem),
}
