#!/usr/bin/env python3
"""A map of speed: every estimator and operation over a grid of shapes, on one device.

A cell is a verb with rows, columns, a width (columns of y, targets, classes, clusters or factors), a share
of nonzeros and a type. Cells are drawn by a seed from the grid: in turn one of each verb, so that a map that
is not finished knows something of every verb. The grid's cells are bounded by their bytes and by the
arithmetic that they are expected to take. What is measured of a cell:

  seconds          a fit from call to return, X on the device; the least of some after a first one
  passes           walks over X, as the report counts them
  pass_seconds     one such walk by itself: mmchain of as many columns, the nearest of as many centres,
                   sampled products of as many factors, a Guttman step
  composed_seconds the walk made of NumPy's or SciPy's products, of PyTorch's on a CUDA device
  peer_seconds     a whole fit by another package: scikit-learn (liblinear behind it), implicit; cuML on a
                   CUDA device. With its default tolerances, or as many iterations

A cell stands out where seconds > 1.5 passes pass_seconds, where a walk is slower than the composed one, or a
fit than the peer's. What is below 2 ms is not judged by its passes: calls count there.

usage: map.py [--device D] [--json FILE] [--limit SECONDS] [--seed N] [--cells N] [--only VERB...] [--busy]
              [--show] [--cell VERB ROWS COLUMNS WIDTH SHARE TYPE]...

The JSON is continued: cells that it has are not measured again. --show prints what stands out in it, and
measures nothing. --cell measures cells that are named, in place of drawn ones. A cell is measured in a
process of its own, which ends where it takes too long; its peer then has no time. Goes through the Python
package (PYTHONPATH, KILN_LIBRARY); peers that are not installed are left out.
"""
import argparse
import datetime
import importlib
import importlib.util
import json
import math
import os
import random
import select
import sys
import time
import warnings

ROWS = [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
COLUMNS = [4, 16, 50, 100, 300, 1_000, 5_000, 50_000]
SHARES = [1, 0.1, 0.01, 0.001]  # of entries that are not 0
SQUARE = [1_000, 10_000, 100_000, 1_000_000]
FACTORS = [8, 32, 64, 128, 256]
TARGETS, CLASSES = [1, 3, 10, 16, 32, 100, 300], [3, 10, 32, 100, 300]
CLUSTERS = [2, 10, 50, 256, 1024, 4096]
TYPES = ["f32", "f64"]

# verb: rows, columns, widths, shares of nonzeros, walks that a fit is expected to take
GRID = {
    "mmchain": (ROWS, COLUMNS, TARGETS, SHARES, 1),
    "multiply": (ROWS, COLUMNS, TARGETS, SHARES, 1),
    "multiply transposed": (ROWS, COLUMNS, TARGETS, SHARES, 1),
    "sddmm": (ROWS, COLUMNS, FACTORS, SHARES[1:], 1),
    "spmm": (ROWS, COLUMNS, FACTORS, SHARES[1:], 1),
    "batch_reduce": (ROWS, COLUMNS, [1], [1], 1),
    "batch_scale": (ROWS, COLUMNS, [1], [1], 1),
    "LinearRegression": (ROWS, COLUMNS, [1], SHARES, 20),
    "Ridge": (ROWS, COLUMNS, [1, 16, 100, 300], SHARES, 20),
    "Lasso": (ROWS, COLUMNS, [1], SHARES, 40),
    "LogisticRegression": (ROWS, COLUMNS, [1], SHARES, 30),
    "softmax": (ROWS, COLUMNS, CLASSES, SHARES, 40),
    "LinearSVC": (ROWS, COLUMNS, [1], SHARES, 30),
    "LinearSVR": (ROWS, COLUMNS, [1], SHARES, 30),
    "PoissonRegressor": (ROWS, COLUMNS, [1], SHARES, 30),
    "GammaRegressor": (ROWS, COLUMNS, [1], SHARES[:2], 30),
    "KMeans": (ROWS, COLUMNS, CLUSTERS, SHARES[:1], 25),
    "ALS": (ROWS, COLUMNS, FACTORS, SHARES[2:], 40),
    "SFA": (ROWS, COLUMNS, FACTORS, SHARES[2:], 40),
    "NMF": (ROWS, COLUMNS, FACTORS, SHARES[1:], 20),
    "LatentDirichletAllocation": (ROWS, COLUMNS, FACTORS, SHARES[1:], 60),
    "pagerank": (SQUARE, [0], [1], [0.01, 0.001, 0.0001, 0.00001], 50),
    "hits": (SQUARE, [0], [1], [0.01, 0.001, 0.0001, 0.00001], 50),
    "MDS": ([1_000, 3_000, 10_000], [0], [2, 3, 10], [1], 30),
}
TARGETED = ("LinearRegression", "Ridge", "Lasso", "LogisticRegression", "softmax", "LinearSVC", "LinearSVR",
            "PoissonRegressor", "GammaRegressor")
OPERATIONS = ("mmchain", "multiply", "multiply transposed", "sddmm", "spmm", "batch_reduce", "batch_scale")
ITERATIONS = 10  # of what is measured by its iterations
LIMITS = {"cpu": {"bytes": 400e6, "flops": 4e10, "entries": 2e6, "scores": 1e7, "cell": 15},
          "gpu": {"bytes": 20e9, "flops": 5e13, "entries": 3e7, "scores": 2e8, "cell": 30}}
PATIENCE, LITTLE = 1.5, 0.002
LEAST = 50_000  # entries of X: below, calls count


def cells(limits, seed, most, only):
    """The cells of this seed, in the order in which they are measured."""
    drawn = random.Random(seed)
    by_verb = []
    for verb, (rows, columns, widths, shares, walks) in GRID.items():
        possible = [dict(verb=verb, rows=m, cols=n or m, width=k, share=s, type=t)
                    for m in rows for n in columns for k in widths for s in shares for t in TYPES]
        possible = [cell for cell in possible if fits(cell, walks, limits)]
        drawn.shuffle(possible)
        if not only or verb in only:
            by_verb.append(possible)
    turns = [cell for turn in range(most) for cell in (of[turn] for of in by_verb if turn < len(of))]
    return turns[:most]


def fits(cell, walks, limits):
    m, n, k, share = cell["rows"], cell["cols"], cell["width"], cell["share"]
    size, entries = int(cell["type"][1:]) // 8, m * n * share
    stored = entries * (size if share == 1 else size + 4)
    factored = cell["verb"] in ("ALS", "SFA", "NMF", "LatentDirichletAllocation", "sddmm", "spmm")
    if factored and k >= min(m, n) or cell["verb"] == "KMeans" and 4 * k > m:
        return False
    return (entries >= max(m, n, LEAST) and stored + size * k * (m + n) <= limits["bytes"]
            and (share == 1 or entries <= limits["entries"]) and 4 * entries * k * walks <= limits["flops"]
            and (cell["verb"] != "softmax" or m * k <= limits["scores"])
            and (cell["verb"] not in ("softmax", "KMeans") or m >= 4 * k))


# ---------------------------------------------------------------------------------------- a cell, in a child

class Work:
    """A cell's operands on the device, and for the peers."""

    def __init__(self, cell, device, clock):
        import kiln
        import numpy as np
        self.clock = clock
        self.np, self.kiln, self.cell, self.device = np, kiln, cell, kiln.device(device)
        self.rng = np.random.default_rng([cell[key] for key in ("rows", "cols", "width")])
        self.m, self.n, self.k = cell["rows"], cell["cols"], cell["width"]
        self.dtype = np.float32 if cell["type"] == "f32" else np.float64
        self.X = self.sparse() if cell["share"] < 1 else self.normal(self.m, self.n)
        self.Y = self.normal(self.n, self.k)
        self.keep = []  # what C structures point to

    def normal(self, rows, cols, seed=1):
        """Normal numbers, made on the device."""
        from kiln._library import lib
        made = self.kiln.Matrix.empty(self.device, (rows, cols), self.dtype)
        self.device.call(lib.kiln_fill_random, made.pointer, lib.KILN_NORMAL, seed, 0)
        return made

    def sparse(self):
        """Rows of about equal length with columns that are not all as popular; counts for what wants them."""
        import scipy.sparse
        np, m, n = self.np, self.m, self.n
        row = np.repeat(np.arange(m), np.maximum(self.rng.poisson(n * self.cell["share"], m), 1))
        col = np.minimum((n * self.rng.random(len(row))**1.5).astype(np.int64), n - 1)
        values = self.rng.poisson(1, len(row)) + 1 if self.counts() else self.rng.standard_normal(len(row))
        S = scipy.sparse.csr_matrix((values.astype(self.dtype), (row, col)), (m, n))
        S.sum_duplicates()
        return self.kiln.matrix(S, self.device)

    def counts(self):
        return self.cell["verb"] in ("ALS", "NMF", "LatentDirichletAllocation", "pagerank", "hits")

    def scores(self):
        """The targets that a linear model is to find, about as large as its noise, on the host."""
        with self.kiln.results_on_device():
            made = self.kiln.multiply(self.X, self.Y).numpy()
        made /= made.std()
        return made

    def target(self):
        np, verb = self.np, self.cell["verb"]
        scores = self.scores()
        if verb in ("softmax", "LogisticRegression", "LinearSVC"):
            labels = scores.argmax(axis=1) if verb == "softmax" else (scores[:, 0] > 0).astype(np.int64)
            noise = self.rng.random(self.m) < 0.2
            labels[noise] = self.rng.integers(0, max(self.k, 2), noise.sum())
            labels[:max(self.k, 2)] = np.arange(max(self.k, 2))
            return labels
        if verb == "PoissonRegressor":
            return self.rng.poisson(np.exp(scores[:, 0] / 2)).astype(self.dtype)
        if verb == "GammaRegressor":
            return self.rng.gamma(2, np.exp(scores[:, 0] / 2)).astype(self.dtype) + self.dtype(1e-3)
        made = scores + self.rng.standard_normal(scores.shape).astype(self.dtype)
        return made[:, 0] if self.k == 1 else made

    def host(self):
        """X for a peer on the CPU."""
        return self.X.numpy()

    def timed(self, call, least=3, most=30, patience=0.6):
        """Least seconds of some calls after a first one, which prepares and builds: short ones are repeated
        more often, as what else a machine does falls between them."""
        call()
        self.device.synchronize()
        times, began = [], time.perf_counter()
        while len(times) < most and (len(times) < least or time.perf_counter() - began < patience):
            start = self.clock()
            call()
            self.device.synchronize()
            times.append(self.clock() - start)
            if times[-1] > 2:
                break
        return min(times)


def model_of(work):
    """The estimator, and the parameters that a peer is given, too."""
    kiln, k, rng = work.kiln, work.k, work.rng
    where = {"device": work.device}
    made = {
        "LinearRegression": lambda: kiln.LinearRegression(**where),
        "Ridge": lambda: kiln.Ridge(1.0, **where),
        "Lasso": lambda: kiln.Lasso(0.05, **where),
        "LogisticRegression": lambda: kiln.LogisticRegression(**where),
        "softmax": lambda: kiln.LogisticRegression(**where),
        "LinearSVC": lambda: kiln.LinearSVC(**where),
        "LinearSVR": lambda: kiln.LinearSVR(**where),
        "PoissonRegressor": lambda: kiln.PoissonRegressor(alpha=1e-3, **where),
        "GammaRegressor": lambda: kiln.GammaRegressor(alpha=1e-3, **where),
        "KMeans": lambda: kiln.KMeans(k, init=centres(work), max_iter=ITERATIONS, tol=0, **where),
        "ALS": lambda: kiln.ALS(k, implicit=True, max_iter=ITERATIONS, tol=0, random_state=0, **where),
        "SFA": lambda: kiln.SFA(k, max_iter=ITERATIONS, tol=0, random_state=0, **where),
        "NMF": lambda: kiln.NMF(k, max_iter=ITERATIONS, tol=0, random_state=0, **where),
        "LatentDirichletAllocation": lambda: kiln.LatentDirichletAllocation(
            k, max_iter=ITERATIONS, tol=0, random_state=0, **where),
        "MDS": lambda: kiln.MDS(k, init=rng.normal(size=(work.m, k)), max_iter=ITERATIONS, eps=0,
                                dissimilarity="precomputed", **where)}
    return made[work.cell["verb"]]()


def centres(work):
    rows = work.np.sort(work.rng.choice(work.m, work.k, replace=False))
    from kiln._library import ffi, lib
    made = work.kiln.Matrix.empty(work.device, (work.k, work.n), work.dtype)
    work.device.call(lib.kiln_rows, made.pointer, work.X.pointer, ffi.new("int64_t[]", rows.tolist()))
    return made.numpy()


def walk_of(work):
    """One walk over X by itself."""
    from kiln._library import ffi, lib, struct
    kiln, cell, device, X = work.kiln, work.cell, work.device, work.X
    verb = cell["verb"]
    if verb == "KMeans":
        start = kiln.matrix(centres(work), device)
        sums, totals = work.kiln.Matrix.empty(device, (work.k, work.n), work.dtype), ffi.new("double[]",
                                                                                             2 * work.k)
        wanted = struct("kiln_assignment", sums=sums.pointer, totals=totals)
        work.keep += [start, sums, totals]
        return lambda: device.call(lib.kiln_assign, wanted, X.pointer, start.pointer, ffi.NULL)
    if verb in ("ALS", "SFA", "NMF", "LatentDirichletAllocation", "sddmm"):
        A, B = work.normal(work.m, work.k), work.Y
        if verb == "sddmm":
            return lambda: kiln.sddmm(X, A, B)
        into = kiln.Matrix.empty(device, (work.m, work.k), work.dtype)
        work.keep += [A, B]
        sample = struct("kiln_sample", kind=lib.KILN_SAMPLE_TIMES, S=X.pointer, A=A.pointer, B=B.pointer)
        return lambda: device.call(lib.kiln_sddmm_multiply, into.pointer, ffi.NULL, 1.0, lib.KILN_PLAIN,
                                   sample, 0.0, ffi.NULL)
    if verb == "MDS":
        made = [kiln.Matrix.empty(device, shape, kind) for shape, kind in
                (((work.m, work.k), work.dtype), ((1, 4), work.np.float64 if device.has_f64 else work.dtype))]
        layout = work.normal(work.m, work.k, 2)
        work.keep += [made, layout]
        step = struct("kiln_guttman", R=made[0].pointer, sums=made[1].pointer, Y=layout.pointer, D=X.pointer)
        return lambda: device.call(lib.kiln_guttman_step, step)
    other = work.normal(work.m, work.k, 3) if verb == "multiply transposed" else None
    column = work.normal(work.m, 1, 4) if verb in ("batch_scale", "mmchain") else None
    calls = {"multiply": lambda: kiln.multiply(X, work.Y), "spmm": lambda: kiln.spmm(X, work.Y),
             "multiply transposed": lambda: kiln.multiply(X, other, transposed=True),
             "batch_reduce": lambda: kiln.batch_reduce(X), "batch_scale": lambda: kiln.batch_scale(X, column),
             "pagerank": lambda: kiln.multiply(X, work.Y, transposed=True)}
    return calls.get(verb, lambda: kiln.mmchain(X, work.Y, v=column))


def composed_of(work, cuda):
    """The walk as users of NumPy or PyTorch would write it: its name and the call; None: there is none."""
    verb, sparse = work.cell["verb"], work.cell["share"] < 1
    if cuda:
        if not importlib.util.find_spec("torch"):
            return None
        import torch as they
        if sparse:
            S = work.X.numpy()
            X = they.sparse_csr_tensor(*(they.from_numpy(part).cuda() for part in
                                         (S.indptr, S.indices, S.data)), S.shape)
        else:
            X = they.from_dlpack(work.X)
        give = lambda rows, cols, seed: they.from_dlpack(work.normal(rows, cols, seed))
    else:
        import numpy as they
        X = work.host()
        give = lambda rows, cols, seed: work.normal(rows, cols, seed).numpy()
    name = "PyTorch" if cuda else "SciPy" if sparse else "NumPy"
    Y = give(work.n, work.k, 1)
    if verb == "multiply" or verb == "spmm":
        return name, lambda: X @ Y
    if verb in ("multiply transposed", "pagerank"):
        P, T = give(work.m, work.k, 3), X.T
        return name, lambda: T @ P
    if verb == "batch_reduce":
        return name, lambda: X.sum(1)
    if verb == "batch_scale":
        s = give(work.m, 1, 4)
        return name, lambda: X * s
    if verb == "sddmm":
        A = give(work.m, work.k, 1)
        if cuda:
            B = Y.T.contiguous()
            return name, lambda: they.sparse.sampled_addmm(X, A, B, beta=0.0)
        rows = they.repeat(they.arange(work.m), they.diff(X.indptr))
        return "NumPy", lambda: they.einsum("ij,ij->i", A[rows], Y[X.indices])
    if verb == "KMeans" and not sparse:
        C = give(work.k, work.n, 5)
        return (name, lambda: they.cdist(X, C).argmin(1)) if cuda else None
    if verb in ("KMeans", "ALS", "SFA", "NMF", "LatentDirichletAllocation", "MDS"):
        return None
    v, T = give(work.m, 1, 4), X.T
    return name, lambda: T @ (v * (X @ Y))


def peer_of(work, y, cuda):
    """Another package's fit: its name and the call; None where there is none."""
    verb, np, k = work.cell["verb"], work.np, work.k
    if cuda:
        return cuml_of(work, y)
    if verb == "ALS":
        if not importlib.util.find_spec("implicit"):
            return None
        from implicit.als import AlternatingLeastSquares
        X = work.host()
        return "implicit", lambda: AlternatingLeastSquares(
            factors=k, iterations=ITERATIONS, dtype=work.dtype, random_state=0,
            num_threads=work.device.threads).fit(X, show_progress=False)
    if not importlib.util.find_spec("sklearn"):
        return None
    from sklearn import cluster, decomposition, linear_model, manifold, svm
    made = {
        "LinearRegression": lambda: linear_model.LinearRegression(),
        "Ridge": lambda: linear_model.Ridge(1.0),
        "Lasso": lambda: linear_model.Lasso(0.05),
        "LogisticRegression": lambda: linear_model.LogisticRegression(),
        "softmax": lambda: linear_model.LogisticRegression(),
        "LinearSVC": lambda: svm.LinearSVC(),
        "LinearSVR": lambda: svm.LinearSVR(loss="squared_epsilon_insensitive"),
        "PoissonRegressor": lambda: linear_model.PoissonRegressor(alpha=1e-3),
        "GammaRegressor": lambda: linear_model.GammaRegressor(alpha=1e-3),
        "KMeans": lambda: cluster.KMeans(k, init=start, n_init=1, max_iter=ITERATIONS, tol=0,
                                         algorithm="lloyd"),
        "NMF": lambda: decomposition.NMF(k, init="random", solver="mu", beta_loss="kullback-leibler",
                                         max_iter=ITERATIONS, tol=0, random_state=0),
        "LatentDirichletAllocation": lambda: decomposition.LatentDirichletAllocation(
            k, max_iter=ITERATIONS, random_state=0),
        "MDS": lambda: manifold.MDS(k, n_init=1, max_iter=ITERATIONS, eps=0, dissimilarity="precomputed",
                                    normalized_stress=False, random_state=0, init="random"),
    }.get(verb)
    if made is None:
        return None
    start = centres(work) if verb == "KMeans" else None
    X = work.host()
    if verb == "MDS":
        X = dissimilarities(work)
    return "scikit-learn", lambda: made().fit(X) if y is None else made().fit(X, y)


def cuml_of(work, y):
    """cuML's fit of arrays that lie on the device."""
    if work.cell["share"] < 1 or not importlib.util.find_spec("cuml"):
        return None
    import cuml
    import cupy
    made = {"LinearRegression": lambda: cuml.LinearRegression(), "Ridge": lambda: cuml.Ridge(alpha=1.0),
            "Lasso": lambda: cuml.Lasso(alpha=0.05), "LogisticRegression": lambda: cuml.LogisticRegression(),
            "softmax": lambda: cuml.LogisticRegression(), "LinearSVC": lambda: cuml.svm.LinearSVC(),
            "LinearSVR": lambda: cuml.svm.LinearSVR(loss="squared_epsilon_insensitive"),
            "KMeans": lambda: cuml.KMeans(work.k, init=start, n_init=1, max_iter=ITERATIONS, tol=1e-30),
            }.get(work.cell["verb"])
    if made is None or work.cell["verb"] in ("Ridge", "LinearRegression") and work.k > 1:
        return None
    start = cupy.asarray(centres(work)) if work.cell["verb"] == "KMeans" else None
    X, given = cupy.from_dlpack(work.X), None if y is None else cupy.asarray(y, dtype=work.dtype)
    return "cuML", lambda: made().fit(X) if y is None else made().fit(X, given)


def dissimilarities(work):
    """Distances of points, which X becomes; symmetric."""
    points = work.normal(work.m, 5, 7).numpy()
    from scipy.spatial.distance import cdist
    return cdist(points, points).astype(work.dtype)


def measure(cell, device, clock, tell):
    """Tells what is known of the cell, part by part; the last part is the peer's, which may take long."""
    work = Work(cell, device, clock)
    tell({"device": f"{work.device.description}"})
    verb, cuda, row = cell["verb"], device.startswith("cuda"), {}
    y = work.target() if verb in TARGETED else None
    if verb == "MDS":
        work.X = work.kiln.matrix(dissimilarities(work), work.device)
    with work.kiln.results_on_device():
        row["pass_seconds"] = work.timed(walk_of(work))
    if verb in ("pagerank", "hits"):
        rank = getattr(work.kiln, verb)
        found = []
        row["seconds"] = work.timed(lambda: found.append(rank(work.X, device=work.device)))
        report = found[-1].report
    elif verb in OPERATIONS:
        row["seconds"], report = row["pass_seconds"], None
    else:
        model = model_of(work)
        row["seconds"] = work.timed((lambda: model.fit(work.X)) if y is None else
                                    (lambda: model.fit(work.X, y)))
        report = model.report_
    row["passes"] = 1 if report is None else report.passes
    if report is not None:
        row |= {"library_seconds": report.seconds, "converged": bool(report.converged),
                "iterations": report.n_iter}
    tell(row)
    for part, made in (("composed", composed_of(work, cuda)), ("peer", peer_of(work, y, cuda)
                                                              if report is not None else None)):
        if made is None or device.startswith("opencl"):
            continue
        tell({part: made[0]})
        sync = __import__("torch").cuda.synchronize if cuda else None
        tell({f"{part}_seconds": work.timed(lambda: (made[1](), sync and sync()), least=1)})


def child(cell, device, clock, pipe):
    """Tells of the cell through the pipe, a line each part, and ends."""
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what packages print is no row
    out = os.fdopen(pipe, "w", buffering=1)
    tell = lambda part: print(json.dumps(part), file=out)
    try:
        measure(cell, device, clock, tell)
    except Exception as error:  # a finding, and the next cell may not fail
        tell({"error": f"{type(error).__name__}: {error}"[:300]})
    tell({"done": True})
    os._exit(0)


# ------------------------------------------------------------------------------------------------- the parent

def measured(cell, device, clock, most):
    """A child's word of a cell within `most` seconds. One that knows the fit's time has as long as twenty
    fits take for the rest: a peer that takes longer has lost."""
    reads, writes = os.pipe()
    kid = os.fork()
    if kid == 0:
        os.close(reads)
        child(cell, device, clock, writes)
    os.close(writes)
    row, rest, until, known = {}, b"", time.monotonic() + most, False
    while "done" not in row:
        if not select.select([reads], [], [], max(until - time.monotonic(), 0))[0]:
            row["cut_off"] = most
            break
        got = os.read(reads, 1 << 16)
        if not got:
            row.setdefault("error", "the process ended")
            break
        *lines, rest = (rest + got).split(b"\n")
        for line in lines:
            row |= json.loads(line)
        if "seconds" in row and not known:
            known, until = True, min(until, time.monotonic() + 2 + 20 * row["seconds"])
    os.close(reads)
    os.kill(kid, 9)
    os.waitpid(kid, 0)
    return row


def judged(row):
    """The findings that stand out in a cell, worst first: (how many times worse than it should be, in words)."""
    found = []
    if "error" in row:
        return [(math.inf, row["error"])]
    if "seconds" not in row:
        return [(math.inf, f"no fit within {row.get('cut_off', 0):.0f} s")]
    if row["passes"] > 0 and row["seconds"] > LITTLE:
        times = row["seconds"] / (row["passes"] * row["pass_seconds"])
        if times > PATIENCE:
            found.append((times / PATIENCE, f"{times:.1f} times its {row['passes']} passes"))
    if row.get("composed_seconds", math.inf) < row["pass_seconds"]:
        times = row["pass_seconds"] / row["composed_seconds"]
        found.append((times, f"a pass takes {times:.1f} times {row['composed']}'s"))
    if row.get("peer_seconds", math.inf) < row["seconds"]:
        times = row["seconds"] / row["peer_seconds"]
        found.append((times, f"{times:.1f} times {row['peer']}'s"))
    return sorted(found, reverse=True)


def name(cell):
    width = "" if cell["width"] == 1 else f", {cell['width']} wide"
    share = "" if cell["share"] == 1 else f", {100 * cell['share']:g} % dense"
    return f"{cell['verb']} {cell['rows']:,} x {cell['cols']:,}{width}{share}, {cell['type']}"


def show(data):
    rows = sorted(((judged(row), row) for row in data["rows"]), key=lambda one: one[0][:1], reverse=True)
    for found, row in rows:
        if found:
            seconds = f"{1000 * row['seconds']:10.2f} ms  " if "seconds" in row else " " * 15
            print(seconds + f"{name(row['cell'])}: {'; '.join(words for _, words in found)}")
    print(f"{len(rows)} cells, {sum(bool(found) for found, _ in rows)} of them stand out")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", default="map.json")
    parser.add_argument("--limit", type=float, default=600, help="seconds in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=[], metavar="VERB")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--busy", action="store_true", help="seconds of the processor: for one thread of a "
                        "machine that others use, too")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--cell", nargs=6, action="append", default=[],
                        metavar=("VERB", "ROWS", "COLUMNS", "WIDTH", "SHARE", "TYPE"))
    options = parser.parse_args()
    data = {"rows": []}
    if os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as file:
            data = json.load(file)
    if not options.show:
        fill(data, options)
        write(data, options.json)
    show(data)
    return 0


def fill(data, options):
    """Measures cells that the map lacks, until there is no time left."""
    for package in ("kiln", "numpy", "scipy.sparse", "scipy.spatial", "sklearn.linear_model", "sklearn.svm",
                    "sklearn.cluster", "sklearn.decomposition", "sklearn.manifold", "implicit", "torch"):
        if importlib.util.find_spec(package.split(".")[0]):
            importlib.import_module(package)  # once for all children
    end = time.monotonic() + options.limit
    limits = LIMITS["cpu" if options.device == "cpu" else "gpu"]
    data |= {"date": datetime.date.today().isoformat(), "commit": options.commit, "seed": options.seed,
             "clock": "processor" if options.busy else "wall"}
    known = [row["cell"] for row in data["rows"]]
    named = [dict(verb=verb, rows=int(m), cols=int(n), width=int(k), share=float(share), type=kind)
             for verb, m, n, k, share, kind in options.cell]
    for cell in named or cells(limits, options.seed, options.cells, options.only):
        most = min(limits["cell"], end - time.monotonic())
        if cell in known or most < 2:
            continue
        row = measured(cell, options.device, time.process_time if options.busy else time.perf_counter, most)
        if "cut_off" in row and most < limits["cell"]:
            break  # this run's time was over
        data["device"] = row.pop("device", data.get("device", options.device))
        row.pop("done", None)
        data["rows"].append({"cell": cell, "commit": options.commit} | row)
        write(data, options.json)
        print(f"{name(cell)}: {'; '.join(words for _, words in judged(row)) or 'ok'}", flush=True)


def write(data, path):
    """A row a line, so that what has changed can be seen."""
    for row in data["rows"]:
        row["name"], row["found"] = name(row["cell"]), [words for _, words in judged(row)]
    head = json.dumps({key: value for key, value in data.items() if key != "rows"})[:-1]
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(head + ', "rows": [\n' + ",\n".join(json.dumps(row) for row in data["rows"]) + "\n]}\n")
    os.replace(path + ".part", path)


if __name__ == "__main__":
    sys.exit(main())
