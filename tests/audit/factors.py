"""ALS, SFA, Gamma-Poisson, LDA and scaling: objectives, errors and bounds from what was written.

SPDX-License-Identifier: Apache-2.0
"""

import json

import numpy as np
import scipy.sparse
import scipy.special

import draw
import held_out
from problems import EPS, near, refused
from runs import Tool

L = np.longdouble


def monotone(name: str, out, digits: float, blur: float = 0, sign: float = 1, first: int = 1) -> list[str]:
    """Whether the objective never rises (sign -1: falls) behind row `first`, and whether "setbacks" says so;
    sums of the start's size are what rounding is of, and blur what it may be."""
    values = [row["objective"] for row in out["trace"]]
    pairs = [(b, a) for b, a in zip(values[first:], values[first + 1 :])]
    worse = [
        (b, a)
        for b, a in pairs
        if b is None or a is None or sign * (a - b) > blur + digits * (abs(b) + 1e-3 * abs(values[0]))
    ]
    found = [f"{name}: the objective goes from {worse[0][0]} to {worse[0][1]}"] if worse else []
    if out["setbacks"] != 0:  # which a larger share of the start's size would be, too
        found.append(f"{name}: setbacks is {out['setbacks']}, where the objective never goes the wrong way")
    return found


def accepted(tool: Tool, file: str, *arguments: object) -> list[str]:
    run = tool.verify(file, *arguments)
    if run is None or (run.code == 0 and run.out.get("holds")):
        return []
    return [
        f"verify ended with {run.code}: "
        f"{json.dumps([c for c in run.out.get('claims', []) if c['holds'] is False])} "
        f"{run.err.strip()[-200:]}"
    ]


def sparse(rng, folder, whole: bool) -> np.ndarray:
    """A matrix with empty rows and columns, as .npz; NaN where there is no entry."""
    m, n = int(rng.sizes.integers(1, 30)), int(rng.sizes.integers(1, 25))
    X = np.where(rng.random((m, n)) < rng.choice([0.1, 0.4, 0.9]), 1.0, np.nan)
    X *= rng.integers(1, 6, (m, n)) if whole else rng.normal(3, 1, (m, n))
    X *= rng.choice([1, 1, 1, 1e-3, 1e4]) if not whole else 1
    if rng.random() < 0.2:
        X[rng.integers(m)] = np.nan
    if np.isnan(X).all():
        X[0, 0] = 1
    stored = ~np.isnan(X)
    matrix = scipy.sparse.csr_matrix((X[stored], np.nonzero(stored)), shape=X.shape)
    scipy.sparse.save_npz(folder / "X.npz", matrix)
    return X


def als(rng, tool: Tool, kind: type) -> list[str]:
    X = sparse(rng, tool.folder, rng.random() < 0.5)
    k = int(rng.sizes.integers(1, 6))
    modes = ([], ["--no-biases"], ["--counted"], ["--counted", "--no-biases"], ["--implicit"])
    mode = modes[rng.sizes.integers(len(modes))]
    arguments: list[object] = ["--factors", k, "--seed", int(rng.integers(99)), *mode]
    solver = str(rng.sizes.choice(["cg", "cholesky"] + (["ccd"] if "--implicit" not in mode else [])))
    arguments += ["--solver", solver]
    if rng.random() < 0.7:
        arguments += ["--l2", float(rng.choice([0.01, 0.1, 1, 10]))]
    found: list[str] = []
    run = tool.run("als", "X.npz", *arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    model = tool.model()
    A, B = model.tensors["A"].astype(L), model.tensors["B"].astype(L)
    mean, l2, alpha = (L(v) for v in model.tensors["settings"][0, :3])
    biases, counted, implicit = model.tensors["settings"][0, 3:] != 0
    Xk = X.astype(kind).astype(L)
    stored = ~np.isnan(X)
    if biases:
        predicted = mean + A[:, :-1] @ B[:, :-1].T + A[:, -1:] + B[:, -1]
    else:
        predicted = mean + A @ B.T
    l2_rows = l2 * (stored.sum(axis=1) if counted else 1)
    l2_columns = l2 * (stored.sum(axis=0) if counted else 1)
    penalty = (l2_rows * (A**2).sum(axis=1)).sum() / 2 + (l2_columns * (B**2).sum(axis=1)).sum() / 2
    values = np.where(stored, Xk, 0)
    if implicit:
        confidence = np.where(stored, 1 + alpha * np.abs(values), 1)
        fit = (confidence * ((values > 0) - predicted) ** 2).sum() / 2
    else:
        fit = (np.where(stored, values - predicted, 0) ** 2).sum() / 2
    digits = 1e-7 if kind is np.float64 else 2e-3
    found += near("als objective", run.out["objective"], fit + penalty, digits)
    found += monotone("als", run.out, 1e-9 if kind is np.float64 else 1e-4)
    if not A.any() and not biases and "arn" not in run.err:
        found.append("als: the model is all zeros, and nothing says so")
    found += held_out.judge(tool, "als", X, arguments, kind, int(arguments[3]))
    return found + accepted(tool, "X.npz")


def sfa(rng, tool: Tool, kind: type) -> list[str]:
    X = sparse(rng, tool.folder, rng.random() < 0.5)
    found: list[str] = []
    arguments = ["--factors", int(rng.sizes.integers(1, 6)), "--l2", float(rng.choice([0.1, 1, 10]))]
    run = tool.run("sfa", "X.npz", *arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    found += monotone("sfa", run.out, 1e-9 if kind is np.float64 else 1e-4)
    found += held_out.judge(tool, "sfa", X, arguments, kind, 0)
    return found + accepted(tool, "X.npz")


def gap(rng, tool: Tool, kind: type) -> list[str]:
    X = np.nan_to_num(sparse(rng, tool.folder, True))
    k = int(rng.sizes.integers(1, 6))
    free = rng.random() < 0.5
    arguments: list[object] = ["-k", k, "--seed", int(rng.integers(99))] + (
        ["--prior", "none"] if free else []
    )
    found: list[str] = []
    run = tool.run("gap", "X.npz", *arguments, "-o", "model.kiln")
    if refused(run, found):
        return found
    model = tool.model()
    A, B = model.tensors["A"].astype(L), model.tensors["B"].astype(L)
    if (A < 0).any() or (B < 0).any():
        found.append("gap: negative factors")
    mean = A @ B.T
    x = X.astype(L)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = (np.where(x > 0, x * np.log(x / mean), 0) - x + mean).sum()
    if free:
        digits = 1e-6 if kind is np.float64 else 2e-3
        if np.isfinite(float(divergence)) and divergence > 1e-4 * x.sum():
            found += near("gap objective", run.out["objective"], divergence, digits)
    blur = 16 * EPS[kind] * float(x.sum())
    found += monotone("gap", run.out, 1e-9 if kind is np.float64 else 1e-4, blur)
    return found + accepted(tool, "X.npz")


def lda(rng, tool: Tool, kind: type) -> list[str]:
    sparse(rng, tool.folder, True)
    found: list[str] = []
    run = tool.run(
        "lda",
        "X.npz",
        "-k",
        int(rng.sizes.integers(1, 6)),
        "--seed",
        int(rng.integers(99)),
        "-o",
        "model.kiln",
    )
    if refused(run, found):
        return found
    model = tool.model()
    if (model.tensors["A"] <= 0).any() or (model.tensors["B"] <= 0).any():
        found.append("lda: parameters of a Dirichlet distribution that are not positive")
    found += monotone("lda", run.out, 1e-8 if kind is np.float64 else 1e-4, sign=-1, first=6)
    return found + accepted(tool, "X.npz")


def mds(rng, tool: Tool, kind: type) -> list[str]:
    n, p = int(rng.sizes.integers(1, 25)), int(rng.sizes.integers(1, 6))
    X, _ = draw.columns(rng, n, p, 0.1)
    X = np.where(np.abs(X) < 1e6, X, 0)
    np.save(tool.folder / "X.npy", X)
    metric = str(rng.sizes.choice(["ratio", "interval", "ordinal"]))
    arguments: list[object] = [
        "--metric",
        metric,
        "-d",
        int(rng.sizes.integers(1, 4)),
        "--seed",
        int(rng.integers(99)),
    ]
    if rng.random() < 0.3:
        arguments += ["--restarts", 3]
    found: list[str] = []
    run = tool.run("mds", "X.npy", *arguments, "--coordinates", "layout.csv", "-o", "model.kiln")
    if refused(run, found):
        return found
    Y = tool.model().tensors["layout"].astype(L)
    Xk = X.astype(kind).astype(L)
    delta = np.sqrt(((Xk[:, None] - Xk[None]) ** 2).sum(axis=2))
    d = np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(axis=2))
    upper = np.triu_indices(n, 1)
    delta, d = delta[upper], d[upper]
    if len(d) == 0 or not delta.any():
        return found + accepted(tool, "X.npy")
    if metric == "ratio":
        stress, scale = ((delta - d) ** 2).sum(), (delta**2).sum()
    elif metric == "interval":
        stress, scale = interval_stress(delta, d), L(len(d))
    else:
        stress, scale = ordinal_stress(delta, d, 1e-12 if kind is np.float64 else 1e-5), L(len(d))
    digits = 1e-7 if kind is np.float64 else 2e-3
    if stress > 1e-6 * scale:
        found += near(f"mds {metric} stress", run.out["stress"], stress, digits)
        found += near(f"mds {metric} stress_1", run.out["stress_1"], np.sqrt(stress / (d**2).sum()), digits)
    found += monotone("mds", run.out, 1e-9 if kind is np.float64 else 1e-4)
    return found + accepted(tool, "X.npy")


def interval_stress(delta: np.ndarray, d: np.ndarray):
    """The least stress of interval scaling: disparities are >= 0, rise, and their squares add up to their
    number."""
    best = None
    # a + b delta is spanned by its values at the least and the largest dissimilarity
    low, high = delta.min(), delta.max()
    if high == low:
        fits = [np.ones_like(d)]
    else:
        rise = (delta - low) / (high - low)
        A = np.c_[np.ones_like(d), rise].astype(float)
        a, b = np.linalg.lstsq(A, d.astype(float), rcond=None)[0]
        fits = [np.ones_like(d), rise] + ([a + b * rise] if a >= 0 and b >= 0 else [])
    for fit in fits:
        size = (fit**2).sum()
        if size > 0:
            hat = fit * np.sqrt(len(d) / size)
            value = ((hat - d) ** 2).sum()
            best = value if best is None else min(best, value)
    return best


def ordinal_stress(delta: np.ndarray, d: np.ndarray, tied: float):
    """The least stress of ordinal scaling, primary ties: dissimilarities within `tied` of the least of them
    are equal."""
    group, least = np.zeros(len(delta), int), L(-1)
    for number, pair in enumerate(np.argsort(delta, kind="stable")):
        if least < 0 or delta[pair] > least * (1 + L(tied)):
            least, first = delta[pair], number
        group[pair] = first
    d = d[np.lexsort((d, group))]
    sums = np.concatenate([[L(0)], np.cumsum(d)])
    # the slope of the sums' lower hull at each pair: the largest over beginnings of the least mean over ends
    hat = np.empty_like(d)
    begin = 0
    while begin < len(d):
        means = (sums[begin + 1 :] - sums[begin]) / np.arange(1, len(d) - begin + 1)
        end = begin + 1 + int(len(means) - 1 - np.argmin(means[::-1]))
        hat[begin:end] = means[end - begin - 1]
        begin = end
    size = (hat**2).sum()
    return ((hat * np.sqrt(len(d) / size) - d) ** 2).sum() if size > 0 else (d**2).sum()


VERBS = {"als": als, "sfa": sfa, "gap": gap, "lda": lda, "mds": mds}
