"""K-Means: labels, centres, inertia, weights and radii from the written centres alone, in long double.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import draw
from problems import EPS, check_verify, near, refused
from runs import Tool

L = np.longdouble
TOLERANCE = 1e-12


class Points:
    def __init__(self, rng, folder, kind) -> None:
        self.n, p = int(rng.sizes.integers(1, 80)), int(rng.sizes.integers(1, 20))
        self.k = int(rng.sizes.integers(1, min(self.n, 8) + 1))
        hostile = 0.0 if rng.random() < 0.5 else 0.5
        X, self.columns = draw.columns(rng, self.n, p, hostile)
        X = X + rng.integers(0, self.k, self.n)[:, None] * rng.choice([0, 1, 5])
        # squares of what an f32 holds must be numbers, too
        with np.errstate(over="ignore"):
            X = np.where(np.abs(X) < (1e15 if kind is np.float32 else 1e100), X, 0)
        if rng.random() < 0.3:
            X = X[rng.integers(0, max(1, self.n // 3), self.n)]
        self.file = draw.write_matrix(rng, folder, X)
        self.kept = X.astype(kind).astype(L)
        self.weights = draw.weights(rng, self.n)
        self.arguments: list[object] = ["-k", self.k]
        if self.weights is not None:
            np.save(folder / "s.npy", self.weights)
            self.arguments += ["--weights-file", "s.npy"]
        self.s = np.ones(self.n, L) if self.weights is None else self.weights.astype(kind).astype(L)

    def data_arguments(self) -> list[object]:
        return self.arguments[2:4] if self.weights is not None else []


def squares(X: np.ndarray, C: np.ndarray) -> np.ndarray:
    return ((X[:, None, :] - C[None, :, :]) ** 2).sum(axis=2)


def kmeans(rng, tool: Tool, kind: type) -> list[str]:
    points = Points(rng, tool.folder, kind)
    drawn: list[object] = [
        "--init",
        str(rng.choice(["k-means++", "k-means-parallel", "random"])),
        "--seed",
        int(rng.integers(100)),
    ]
    if rng.random() < 0.3:
        drawn += ["--restarts", int(rng.integers(2, 5))]
    if rng.random() < 0.5:
        drawn += ["--algorithm", str(rng.choice(["lloyd", "bounds"]))]
    found: list[str] = []
    run = tool.run(
        "kmeans",
        points.file,
        *points.arguments,
        *drawn,
        "--tolerance",
        TOLERANCE,
        "--labels",
        "labels.txt",
        "-o",
        "model.kiln",
    )
    if refused(run, found):
        return found
    model = tool.model()
    labels = np.loadtxt(tool.folder / "labels.txt", ndmin=1).astype(int)
    found += judge(points, kind, model.tensors["centres"].astype(L), labels, run.out)
    if not run.out["converged"] and run.out["iterations"] >= 300:
        found.append(
            f"kmeans: {points.n} rows, {points.k} clusters: not converged after {run.out['iterations']} "
            "iterations"
        )
    predicted = tool.run("predict", "model.kiln", points.file)
    again = np.array(predicted.out.get("predictions", []))
    if predicted.code or len(again) != points.n:
        found.append(f"kmeans: predict ended with {predicted.code}: {predicted.err.strip()[-200:]}")
    elif not np.array_equal(again[:, 0] if again.ndim > 1 else again, labels):
        found.append("kmeans: predict gives its own training rows other labels")
    check_verify(tool, points, found, run.out["converged"])
    return found


def judge(points: Points, kind: type, C: np.ndarray, labels: np.ndarray, out) -> list[str]:
    if C.shape[0] != points.k or labels.min() < 0 or labels.max() >= points.k:
        return [f"kmeans: labels from {labels.min()} to {labels.max()}, {C.shape[0]} centres"]
    found, moved, d = [], L(0), squares(points.kept, C)
    own, least = d[np.arange(points.n), labels], d.min(axis=1)
    wrong = np.nonzero(own > least * (1 + L(1e-12)))[0]
    if len(wrong):
        i = wrong[0]
        found.append(
            f"kmeans: {len(wrong)} labels are not those of the nearest centre; row {i + 1}: squared distance "
            f"{float(own[i]):.17g}, "
            f"of the nearest {float(least[i]):.17g}"
        )
    # a distance cannot be nearer than what the type says of its rows
    blur = (4 * EPS[kind] * np.abs(points.kept).max()) ** 2 * points.kept.shape[1]
    digits = 1e-9 if kind is np.float64 else 1e-4
    inertia = points.s @ least
    if inertia > 1e8 * blur * points.s.sum():
        found += near("kmeans inertia", out["inertia"], inertia, digits)
    for c, cluster in enumerate(out["clusters"]):
        mine = labels == c
        found += near(f"weight of cluster {c}", cluster["weight"], points.s[mine].sum(), 1e-6)
        counted = mine & (points.s > 0)
        if mine.any() and own[mine].max() > 1e8 * blur:
            found += near(f"radius of cluster {c}", cluster["radius"], np.sqrt(own[mine].max()), digits)
        if out["converged"] and counted.any():
            mean = points.s[mine] @ points.kept[mine] / points.s[mine].sum()
            off = np.abs(mean - C[c])
            size = np.abs(points.kept[counted]).max(axis=0)
            moved += (np.maximum(0, off - (1e-6 if kind is np.float64 else 1e-5) * size) ** 2).sum()
    variance = (
        points.s @ (points.kept - points.s @ points.kept / points.s.sum()) ** 2
    ).mean() / points.s.sum()
    if moved > 2 * L(TOLERANCE) * variance:
        found.append(
            f"kmeans: converged, but the squares of the centres' distances from the means of their rows add "
            "up to "
            f"{float(moved):.3g}; the columns' mean variance is {float(variance):.3g}"
        )
    return found


VERBS = {"kmeans": kmeans}
