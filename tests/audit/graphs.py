"""PageRank against the exact solution of its linear system, HITS against its own fixed point, spectral
embeddings against LAPACK's eigenvalues and the definition of their vectors.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import scipy.sparse.csgraph

from peers import networkx_hits, networkx_pagerank
from problems import EPS, refused
from runs import Tool

L = np.longdouble


def draw_graph(rng, folder) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Weights of the links, how many lines each link has, names; written as an edge list."""
    n = int(rng.sizes.integers(2, 40))
    links = int(rng.integers(1, 4 * n))
    source, target = rng.integers(0, n, links), rng.integers(0, n, links)
    shape = rng.integers(4)
    if shape == 1:
        target[: links // 2] = 0  # a hub
    elif shape == 2:
        source, target = np.arange(n - 1), np.arange(1, n)  # a chain
    weighted = rng.random() < 0.5
    weights = rng.integers(1, 9, len(source)).astype(float) if weighted else np.ones(len(source))
    used = np.unique(np.r_[source, target])
    place = {v: i for i, v in enumerate(used)}
    text = rng.random() < 0.5
    names = [f"v{v}" if text else str(v) for v in used]
    A, count = np.zeros((len(used), len(used))), np.zeros((len(used), len(used)))
    lines = []
    for a, b, w in zip(source, target, weights):
        A[place[a], place[b]] += w
        count[place[a], place[b]] += 1
        lines.append(f"{names[place[a]]}\t{names[place[b]]}" + (f"\t{w:g}" if weighted else ""))
    (folder / "g.edges").write_text("\n".join(lines) + "\n")
    return A, count, names


def read_scores(path) -> dict[str, list[float]]:
    rows = [line.rstrip("\n").split("\t") for line in open(path)]
    return {
        row[0]: [float(x) for x in row[1:]]
        for row in rows
        if row and not row[0].startswith("#") and row[0] != "vertex"
    }


def solve(M: np.ndarray, right: np.ndarray) -> np.ndarray:
    """M x = right to long double's digits: f64 with refinement."""
    x = np.linalg.solve(M.astype(float), right.astype(float)).astype(L)
    for _ in range(4):
        x = x + np.linalg.solve(M.astype(float), (right - M @ x).astype(float))
    return x


def pagerank(rng, tool: Tool, kind: type) -> list[str]:
    A, count, names = draw_graph(rng, tool.folder)
    n = len(names)
    unweighted = rng.random() < 0.5
    damping = float(rng.choice([0.5, 0.85, 0.85, 0.99]))
    arguments: list[object] = ["--damping", damping] + (["--unweighted"] if unweighted else [])
    if rng.random() < 0.4:
        arguments += ["--layout", str(rng.choice(["csr", "hybrid", "balanced"]))]
    t = np.full(n, 1 / L(n))
    if rng.random() < 0.3:
        seeds = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
        (tool.folder / "seeds").write_text("".join(f"{names[v]}\n" for v in seeds))
        arguments += ["--personalize", "seeds"]
        t = np.zeros(n, L)
        t[seeds] = 1 / L(len(seeds))
    g = t
    if rng.random() < 0.3:
        arguments += ["--dangling", "uniform"]
        g = np.full(n, 1 / L(n))
    found: list[str] = []
    run = tool.run("pagerank", "g.edges", *arguments, "--scores", "ranks.tsv", "-o", "model.kiln")
    if refused(run, found):
        return found
    W = (count > 0 if unweighted else A).astype(L)
    out = W.sum(axis=1)
    P = np.where(out[:, None] > 0, W / np.where(out > 0, out, 1)[:, None], g[None, :])
    exact = solve(np.eye(n, dtype=L) - L(damping) * P.T, (1 - L(damping)) * t)
    scores = read_scores(tool.folder / "ranks.tsv")
    if set(scores) != set(names):
        return [f"pagerank: the scores have {len(scores)} vertices, the graph {n}"]
    ranks = np.array([scores[name][0] for name in names]).astype(L)
    error = float(np.abs(ranks - exact).sum())
    bound = run.out["error_bound"]
    # the file's digits
    written = 1e-15 if kind is np.float64 else 3e-7
    if bound is not None and not error <= bound * (1 + 1e-6) + written:
        found.append(f"pagerank: the ranks are {error:.3g} off, error_bound is {bound:.3g}")
    if bound is not None:
        found += networkx_pagerank(W, damping, t, g, ranks, bound * (1 + 1e-6) + written)
    if abs(float(ranks.sum()) - 1) > (1e-13 if kind is np.float64 else 1e-5):
        found.append(f"pagerank: ranks add up to {float(ranks.sum()):.17g}")
    # what ends a run otherwise is a limit that a contraction by the damping allows, or rounding, and both are
    # said
    most = 2 * damping ** run.out["iterations"] * 1.01 + 100 * np.finfo(kind).eps / (1 - damping)
    if not run.out["converged"] and run.out["residual"] > most:
        found.append(
            f"pagerank: not converged after {run.out['iterations']} iterations, residual "
            f"{run.out['residual']}"
        )
    check = tool.verify("g.edges")
    if check is None:
        return found
    if check.code not in (0, 4) or not check.out.get("holds", False):
        found.append(f"verify ended with {check.code}: {check.out.get('claims')} {check.err.strip()[-200:]}")
    return found


def hits(rng, tool: Tool, kind: type) -> list[str]:
    A, count, names = draw_graph(rng, tool.folder)
    unweighted = rng.random() < 0.4
    norm = int(rng.integers(1, 3))
    arguments: list[object] = ["--norm", norm] + (["--unweighted"] if unweighted else [])
    if rng.random() < 0.4:
        arguments += ["--solver", str(rng.choice(["power", "lobpcg"]))]
    found: list[str] = []
    run = tool.run("hits", "g.edges", *arguments, "--scores", "scores.tsv", "-o", "model.kiln")
    if refused(run, found):
        return found
    W = (count > 0 if unweighted else A).astype(L)
    scores = read_scores(tool.folder / "scores.tsv")
    if set(scores) != set(names):
        return [f"hits: the scores have {len(scores)} vertices, the graph {len(names)}"]
    h, a = np.array([scores[name] for name in names], L).T
    size = np.abs if norm == 1 else np.square
    digits = 1e-12 if kind is np.float64 else 1e-5
    for name, v in (("hubs", h), ("authorities", a)):
        if abs(float(size(v).sum()) - 1) > digits * 10:
            found.append(f"hits: {name} add up to {float(size(v).sum()):.17g}")
        if (v < -digits).any():
            found.append(f"hits: {name} have negative scores")
    told = run.out["eigenvalue" if "eigenvalue" in run.out else "objective"]
    found += judge_eigenvalue(W, told, run.out["eigenvalue_error"])
    value = float(np.linalg.norm((W.T @ (W @ a)).astype(float)) / np.linalg.norm(a.astype(float)))
    largest = float(np.linalg.norm(W.astype(float), 2) ** 2)
    if run.out["converged"] and value < largest * (1 - 1e-3 * (1 if kind is np.float64 else 10)):
        found.append(f"hits: converged at an eigenvalue of {value:.9g}, the largest is {largest:.9g}")
    next_a = W.T @ (W @ a)
    change = float(np.abs(next_a / next_a.sum() - a / a.sum()).sum())
    if run.out["converged"] and change > 10 * run.out["tolerance"] + digits:
        found.append(f"hits: converged, but one more iteration changes the authorities by {change:.3g}")
    if run.out["converged"]:
        found += networkx_hits(W, h, a, run.out["tolerance"], digits)
    check = tool.verify("g.edges")
    if check is None:
        return found
    if check.code not in (0, 4) or (run.out["converged"] and not check.out.get("holds", False)):
        found.append(f"verify ended with {check.code}: {check.out.get('claims')} {check.err.strip()[-200:]}")
    return found


def judge_eigenvalue(W: np.ndarray, told: float, bound: float | None) -> list[str]:
    """Whether A^T A has an eigenvalue within the bound of the one that is reported. LAPACK's own are off by
    some units of the largest."""
    if bound is None:
        return []
    values = np.linalg.eigvalsh((W.T @ W).astype(float))
    error, peer = float(np.abs(values - told).min()), 4 * len(values) * EPS[np.float64] * float(values[-1])
    if error <= bound + peer:
        return []
    return [f"hits: the eigenvalue {told:.12g} is {error:.3g} off, eigenvalue_error is {bound:.3g}"]


def spectral(rng, tool: Tool, kind: type) -> list[str]:
    A, _, names = draw_graph(rng, tool.folder)
    n = len(names)
    if n < 2:
        return []
    k, found = int(rng.integers(1, n)), []
    arguments = ["-k", k, "--seed", int(rng.integers(99)), "--coordinates", "v.tsv", "-o", "model.kiln"]
    run = tool.run("spectral", "g.edges", *arguments)
    if refused(run, found):
        return found
    S = (A + A.T).astype(L) / 2  # each vertex has a link: that is how it came to be in the file
    root = np.sqrt(S.sum(axis=1))
    M = (np.eye(n, dtype=L) + S / root / root[:, None]) / 2
    s = tool.model().tensors["s"].astype(L).ravel()
    scores = read_scores(tool.folder / "v.tsv")
    if set(scores) != set(names) or len(s) != k + 1:
        return [f"spectral: {len(scores)} vertices of {n}, {len(s)} eigenvalues of {k + 1}"]
    V = np.array([scores[name] for name in names], L) * root[:, None]
    rounding = 64 * n * EPS[kind]
    bound = max(run.out["residual"], run.out["tolerance"] if run.out["converged"] else 0) + rounding
    right = np.linalg.eigvalsh(M.astype(float))[::-1][: k + 1]
    off = float(np.abs(right - s).max())
    if off > bound * np.sqrt(k + 1):  # the norm of all residuals
        found.append(f"spectral: eigenvalues are off by {off:.3g}, bound {bound:.3g}")
    worst = float(np.sqrt(((M @ V - V * s[1:]) ** 2).sum(axis=0)).max())
    if worst > bound:
        found.append(f"spectral: |A v - s v| is {worst:.3g}, bound {bound:.3g}")
    skew = float(np.abs(V.T @ V - np.eye(k)).max())
    if skew > rounding:
        found.append(f"spectral: |V'V - 1| is {skew:.3g}")
    parts = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_matrix(A), directed=False)[0]
    if (run.out["connected_components"], run.out["isolated"]) != (parts, 0):
        found.append(f"spectral: {run.out['connected_components']} components, SciPy finds {parts}")
    check = tool.verify("g.edges")
    if check is not None and (check.code not in (0, 4) or not check.out.get("holds", False)):
        found.append(f"verify ended with {check.code}: {check.out.get('claims')} {check.err.strip()[-200:]}")
    return found


VERBS = {"pagerank": pagerank, "hits": hits, "spectral": spectral}
