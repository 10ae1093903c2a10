#!/usr/bin/env python3
"""Training from Python on one GPU, f32, X on the device: Kiln's estimators against what GPU users would take
instead, FlashLib and cuML.

All take the same tensors where they lie and are timed from call to return. Linear models, each with its
default tolerance: how far the objective stays above the optimum (relative; all objectives are computed in f64
by the same PyTorch code, the optimum by Kiln in f64 to a tight tolerance; FlashLib's ridge fits no intercept,
so that its distance is to the optimum without one). K-Means: inertia after equally many iterations from the
same centres. And what a call costs beside the library. A peer that is not installed is left out.

usage: gpu_models.py [--json FILE] [--commit TEXT] [--scale S] [--only dense|sparse|kmeans|calls]

The package comes from an installation, or from python/ with the binding that
`python3 python/binding.py cc include python/kiln/_binding.py` writes, and KILN_LIBRARY.
"""
import argparse
import datetime
import json
import sys
import time
import warnings

import numpy as np
import torch

import kiln
from gpu_sparse import make
from kiln._library import ffi, lib, struct

L2 = 1.0
DENSE = [(11_000_000, 28), (1_000_000, 256), (500_000, 1024)]
SPARSE = [(3_000_000, 100_000, False), (3_000_000, 1_000_000, True)]
CLUSTERED = [(10_000_000, 32, 100), (1_000_000, 128, 1024)]
ITERATIONS = 20


def fastest(run, repeats=3):
    """Least seconds of some runs after a first one, which builds kernels, and the last result."""
    result, best = run(), float("inf")
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = run()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
        if best > 5:
            break
    return best, result


def host(values):
    """The result of any of the packages, in NumPy."""
    values = values.get() if hasattr(values, "get") else values.cpu() if hasattr(values, "cpu") else values
    return np.asarray(values, np.float64)


# ---------------------------------------------------------------------------------------------- linear models

def objective(loss, products, y, w, b):
    """sum_i loss_i + L2/2 |w|^2 in f64; products(w) = X w."""
    w = torch.as_tensor(w, device="cuda")
    eta = products(w) + float(b)
    y = y.double()
    each = torch.nn.functional.softplus(eta) - y * eta if loss == "logistic" else (eta - y) ** 2 / 2
    return float(each.sum() + L2 / 2 * (w @ w))


def dense_products(X):
    return lambda w: torch.cat([part.double() @ w for part in X.split(1 << 20)])


def sparse_products(X):
    X = torch.sparse_csr_tensor(*(torch.from_dlpack(part.astype(kind)) for part, kind in
                                  ((X.indptr, np.int64), (X.indices, np.int64), (X.data, np.float64))),
                                X.shape)
    return lambda w: X @ w


def fitted(model, X, y, repeats=3):
    """Coefficients, intercept, seconds and the model."""
    seconds, _ = fastest(lambda: model.fit(X, y), repeats)
    return host(model.coef_).ravel(), float(host(getattr(model, "intercept_",
                                                         0.0)).ravel()[0]), seconds, model


def by_kiln(loss, X, y, **options):
    made = kiln.LogisticRegression(C=1 / L2, **options) if loss == "logistic" else kiln.Ridge(L2, **options)
    return fitted(made, X, y)


def by_flashlib(loss, X, y):
    from flashlib.applications.logistic_regression import LogisticRegression
    from flashlib.applications.ridge import Ridge
    return fitted(LogisticRegression(C=1 / L2, max_iter=1000) if loss == "logistic" else Ridge(alpha=L2), X,
                  y)


def by_cuml(loss, X, y):
    import cuml
    made = cuml.LogisticRegression(C=1 / L2, max_iter=1000,
                                   tol=1e-4) if loss == "logistic" else cuml.Ridge(alpha=L2)
    return fitted(made, X, y, 1)


def compare(loss, case, X, exact, y, products):
    """A row: each library's milliseconds and gap. exact: X in f64; y: a tensor."""
    labels = y.long() if loss == "logistic" else y
    optimum = {}
    for fit_intercept in (True, False):
        w, b, _, model = by_kiln(loss, exact, labels, tol=1e-11, fit_intercept=fit_intercept)
        optimum[fit_intercept] = objective(loss, products, y, w, b)
    row = {"loss": loss, "case": case, "optimum": optimum[True], "optimum_converged": model.converged_}
    # it takes no sparse X
    peers = [("kiln", by_kiln), ("cuml", by_cuml)] + ([] if hasattr(X, "tocsr")
                                                      else [("flashlib", by_flashlib)])
    for name, fit in peers:
        try:
            w, b, seconds, model = fit(loss, X, labels if name == "kiln" else y)
        except ImportError as error:
            print(f"  {name}: {error}")
            continue
        intercept = name != "flashlib" or loss == "logistic"
        row[name] = {"ms": 1e3 * seconds, "gap": objective(loss, products, y, w, b) / optimum[intercept] - 1}
        if name == "kiln":
            row[name] |= {"passes": model.report_.passes, "converged": model.converged_,
                          "library_ms": 1e3 * model.report_.seconds}
    if hasattr(X, "tocsr"):  # whose layout is looked at once for all fits where it is kept as a kiln.Matrix
        row["kiln"]["kept_ms"] = 1e3 * by_kiln(loss, kiln.matrix(X), labels)[2]
    show(f"{loss} {case}", row, "gap")
    return row


def show(title, row, figure):
    print(f"{title:44} " + "  ".join(f"{name} {row[name]['ms']:8.2f} ms {figure} {row[name][figure]:.4g}"
                                     for name in ("kiln", "flashlib", "cuml") if name in row), flush=True)


def dense_rows(rows, cols):
    torch.manual_seed(1)
    X = torch.randn(rows, cols, device="cuda")
    eta = X @ (torch.randn(cols, device="cuda") / cols ** 0.5) + 0.3
    labels = (torch.rand(rows, device="cuda") < torch.sigmoid(eta)).float()
    values = eta + torch.randn(rows, device="cuda")
    for loss, y in (("logistic", labels), ("squared", values)):
        yield compare(loss, f"dense {rows:,} x {cols:,}", X, X.double(), y, dense_products(X))


def sparse_rows(rows, cols, popular):
    import cupyx.scipy.sparse
    start, col, value = make(rows, cols, 30, "zipf" if popular else "uniform", np.float32)
    X = cupyx.scipy.sparse.csr_matrix((value, col, start.astype(np.int32)), (rows, cols))
    products = sparse_products(X)
    torch.manual_seed(2)
    eta = products(torch.randn(cols, device="cuda", dtype=torch.float64)) / 2
    y = (torch.rand(rows, device="cuda") < torch.sigmoid(eta)).float()
    yield compare("logistic", f"sparse {rows:,} x {cols:,}, {'popular' if popular else 'uniform'} columns", X,
                  X.astype(np.float64), y, products)


# --------------------------------------------------------------------------------------------------- K-Means

def clusters_by_kiln(X, C):
    model = kiln.KMeans(len(C), init=C.cpu().numpy(), max_iter=ITERATIONS, tol=0).fit(X)
    return model.cluster_centers_, {"library_ms": 1e3 * model.report_.seconds, "iterations": model.n_iter_}


def clusters_by_flashlib(X, C):
    import flashlib
    return flashlib.flash_kmeans(X, len(C), max_iters=ITERATIONS, tol=-1.0, init_centroids=C)[1], {}


def clusters_by_cuml(X, C):
    import cupy
    from cuml.cluster import KMeans
    return KMeans(n_clusters=len(C), init=cupy.asarray(C), n_init=1, max_iter=ITERATIONS, tol=1e-30,
                  output_type="cupy").fit(cupy.asarray(X)).cluster_centers_, {}


def inertia(X, C):
    C = torch.as_tensor(host(C), device="cuda")
    parts = X.split(max(1, 200_000_000 // len(C)))
    return sum(float(((x * x).sum(1) + ((C * C).sum(1) - 2 * x @ C.T).min(1)[0]).sum())
               for x in (part.double() for part in parts))


def clustered_rows(rows, cols, k):
    """Points around k centres that lie as far apart as their noise is wide."""
    torch.manual_seed(3)
    X = torch.randn(k, cols, device="cuda")[torch.randint(k, (rows,),
                                                          device="cuda")] + torch.randn(rows, cols, device="cuda")
    C = X[torch.randperm(rows, device="cuda")[:k]].contiguous()
    row = {"case": f"K-Means {rows:,} x {cols:,}, k = {k:,}, {ITERATIONS} iterations"}
    for name, run in (("kiln", clusters_by_kiln), ("flashlib", clusters_by_flashlib),
                      ("cuml", clusters_by_cuml)):
        try:
            seconds, (centres, more) = fastest(lambda run=run: run(X, C), 2)
        # a peer that is not there, or fails, says so, and the others are still measured
        except Exception as error:
            if name == "kiln":
                raise
            print(f"  {name}: {repr(error)[:300]}")
            continue
        row[name] = {"ms": 1e3 * seconds, "inertia": inertia(X, centres), **more}
    show(row["case"], row, "inertia")
    yield row


# ------------------------------------------------------------------------------------------ what a call costs

def call_rows():
    """multiply and mmchain of 8 x 8 tensors with results that stay, microseconds; beside them the library's
    own call, and its calls where the tensors are borrowed: it takes both, makes the result, and waits for the
    work before it gives them back."""
    where = kiln.device("cuda")
    X, y = torch.eye(8, device="cuda"), torch.ones(8, device="cuda")
    A, b, out = kiln.matrix(X), kiln.matrix(y), kiln.matrix(torch.zeros(8, device="cuda"))
    memories = [struct("kiln_memory", type=lib.KILN_F32, rows=8, cols=tensor.numel() // 8,
                       values=ffi.cast("void *", tensor.data_ptr()), on_device=1) for tensor in (X, y)]
    bare = {"multiply": lambda: lib.kiln_multiply(out.pointer, 1, lib.KILN_PLAIN, A.pointer, b.pointer, 0,
                                                  ffi.NULL),
            "mmchain": lambda: lib.kiln_mmchain(out.pointer, 1, A.pointer, ffi.NULL, b.pointer, 0, ffi.NULL)}
    for name, direct in bare.items():
        with kiln.results_on_device():
            function = getattr(kiln, name)
            took = {"library": per_call(direct, where), "kiln.Matrix": per_call(lambda: function(A, b),
                                                                                where),
                    "library, borrowed": per_call(lambda: borrowed(where, memories, direct), where),
                    "PyTorch": per_call(lambda: function(X, y), where)}
        print(f"a call of {name}, us: " + ", ".join(f"{kind} {us:.1f}" for kind, us in took.items()),
              flush=True)
        yield {"call": name, "microseconds": took}


def borrowed(where, memories, direct):
    made = [ffi.new("kiln_matrix **") for _ in range(3)]
    for place, memory in zip(made, memories):
        lib.kiln_matrix_wrap(place, where.pointer, memory)
    lib.kiln_matrix_dense(made[2], where.pointer, lib.KILN_F32, 8, 1, ffi.NULL)
    direct()
    for place in made:
        lib.kiln_matrix_free(place[0])


def per_call(call, where, batch=50, repeats=10):
    call()
    took = []
    for _ in range(repeats):
        where.synchronize()
        begin = time.perf_counter()
        for _ in range(batch):
            call()
        where.synchronize()
        took.append((time.perf_counter() - begin) / batch)
    return 1e6 * min(took)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {"calls": [], "rows": [], "clusters": []}
    plan = [("calls", "calls", call_rows, [()]), ("kmeans", "clusters", clustered_rows, CLUSTERED),
            ("sparse", "rows", sparse_rows, SPARSE), ("dense", "rows", dense_rows, DENSE)]
    for word, place, run, shapes in plan:
        for shape in shapes if options.only in word else []:
            found[place] += run(*[int(shape[0] * options.scale), *shape[1:]] if shape else [])
            torch.cuda.empty_cache()
            if options.json:
                save(options, found)
    return 0 if all(row["kiln"]["converged"] for row in found["rows"]) else 1


def save(options, found):
    """Writes the results so far."""
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"benchmark": "from Python against FlashLib and cuML, f32",
                   "device": kiln.device("cuda").description, "date": datetime.date.today().isoformat(),
                   "commit": options.commit, **found}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
