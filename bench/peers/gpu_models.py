#!/usr/bin/env python3
"""Training linear models on one GPU, f32, X on the device: Kiln against what GPU users would take instead, FlashLib and cuML, each
with how far its objective stays above the optimum (relative; all objectives are computed in f64 by the same PyTorch code, the
optimum by Kiln in f64 to a tight tolerance).

FlashLib's ridge fits no intercept, so that its distance is to the optimum without one. A peer that is not installed is left out.

usage: gpu_models.py [--json FILE] [--commit TEXT] [--scale S] [--only WORD]
"""
import argparse
import datetime
import json
import sys
import time

import numpy as np
import torch

import kiln_ctypes as kiln
from gpu_common import distinct_csr

L2 = 1.0
DENSE = [(11_000_000, 28), (1_000_000, 256), (500_000, 1024)]
SPARSE = [(3_000_000, 100_000, False), (3_000_000, 1_000_000, True)]


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


def objective(loss, products, y, w, b):
    """sum_i loss_i + L2/2 |w|^2 in f64; products(w) = X w."""
    w = torch.as_tensor(np.asarray(w, np.float64).ravel(), device="cuda")
    eta = products(w) + float(b)
    y = y.double()
    each = torch.nn.functional.softplus(eta) - y * eta if loss == "logistic" else (eta - y) ** 2 / 2
    return float(each.sum() + L2 / 2 * (w @ w))


def dense_products(X):
    return lambda w: torch.cat([part.double() @ w for part in X.split(1 << 20)])


def sparse_products(host):
    X = torch.sparse_csr_tensor(torch.from_numpy(host.indptr.astype(np.int64)), torch.from_numpy(host.indices.astype(np.int64)),
                                torch.from_numpy(host.data.astype(np.float64)), host.shape, device="cuda")
    return lambda w: X @ w


def kiln_fit(loss, make_X, y, cols, dtype, **options):
    device = kiln.Device("cuda")
    X, target = make_X(device, dtype), device.dense(y.size, 1, dtype, y)
    W, b = device.dense(cols, 1, dtype), device.dense(1, 1, dtype)
    fit = kiln.logreg if loss == "logistic" else kiln.linreg
    seconds, report = fastest(lambda: fit(W, b, X, target, l2=L2, **options))
    result = W.numpy().ravel(), float(b.numpy()[0, 0]), seconds, report
    for matrix in (X, target, W, b):
        matrix.free()
    kiln.library.kiln_device_close(device.handle)
    return result


def flashlib_fit(loss, X, y):
    from flashlib.applications.logistic_regression import LogisticRegression
    from flashlib.applications.ridge import Ridge
    model = LogisticRegression(C=1 / L2, max_iter=1000) if loss == "logistic" else Ridge(alpha=L2)
    seconds, _ = fastest(lambda: model.fit(X, y))
    intercept = getattr(model, "intercept_", 0.0)
    return model.coef_.double().cpu().numpy(), float(intercept), seconds


def cuml_fit(loss, X, y):
    import cuml
    if loss == "logistic":
        model = cuml.LogisticRegression(C=1 / L2, max_iter=1000, tol=1e-4)
    else:
        model = cuml.Ridge(alpha=L2)
    seconds, _ = fastest(lambda: model.fit(X, y), 1)
    as_numpy = lambda a: np.asarray(a.get() if hasattr(a, "get") else a, np.float64)
    return as_numpy(model.coef_).ravel(), float(as_numpy(model.intercept_).ravel()[0]), seconds


def fits(loss, case, y, cols, make_X, products, gpu_X):
    """A row: each library's milliseconds and gap. gpu_X: what peers take, or for a sparse X a function that makes it."""
    target = y.cpu().numpy()
    optimum = {}
    for no_intercept in (0, 1):
        w, b, _, report = kiln_fit(loss, make_X, target, cols, np.float64, tolerance=1e-11, no_intercept=no_intercept)
        optimum[no_intercept] = objective(loss, products, y, w, b)
    row = {"loss": loss, "case": case, "optimum": optimum[0], "optimum_converged": bool(report.converged)}
    w, b, seconds, report = kiln_fit(loss, make_X, target, cols, np.float32)
    row["kiln"] = {"ms": 1e3 * seconds, "gap": objective(loss, products, y, w, b) / optimum[0] - 1, "passes": report.passes,
                   "converged": bool(report.converged)}
    for name, fit in (("flashlib", flashlib_fit), ("cuml", cuml_fit)):
        if name == "flashlib" and callable(gpu_X):
            continue  # it takes no sparse X
        try:
            w, b, seconds = fit(loss, gpu_X() if callable(gpu_X) else gpu_X, y)
        except ImportError as error:
            print(f"  {name}: {error}")
            continue
        with_none = name == "flashlib" and loss == "squared"
        row[name] = {"ms": 1e3 * seconds, "gap": objective(loss, products, y, w, b) / optimum[with_none] - 1}
    print(f"{loss:9} {case:34} " + "  ".join(f"{name} {row[name]['ms']:8.2f} ms gap {row[name]['gap']:.1e}"
                                             for name in ("kiln", "flashlib", "cuml") if name in row), flush=True)
    return row


def dense_rows(rows, cols):
    torch.manual_seed(1)
    X = torch.randn(rows, cols, device="cuda")
    eta = X @ (torch.randn(cols, device="cuda") / cols ** 0.5) + 0.3
    host = X.cpu().numpy()
    make_X = lambda device, dtype: device.dense(rows, cols, dtype, host)
    labels = (torch.rand(rows, device="cuda") < torch.sigmoid(eta)).float()
    values = eta + torch.randn(rows, device="cuda")
    for loss, y in (("logistic", labels), ("squared", values)):
        yield fits(loss, f"dense {rows:,} x {cols:,}", y, cols, make_X, dense_products(X), X)


def sparse_rows(rows, cols, popular):
    host = distinct_csr(rows, cols, 30, np.float32, 1, zipf=popular)
    products = sparse_products(host)
    torch.manual_seed(2)
    eta = products(torch.randn(cols, device="cuda", dtype=torch.float64)) / 2
    y = (torch.rand(rows, device="cuda") < torch.sigmoid(eta)).float()
    make_X = lambda device, dtype: device.csr(host.astype(dtype))

    def cupy_X():
        import cupyx.scipy.sparse
        return cupyx.scipy.sparse.csr_matrix(host)

    yield fits("logistic", f"sparse {rows:,} x {cols:,}, {'popular' if popular else 'uniform'} columns", y, cols, make_X, products,
               cupy_X)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows, s = [], options.scale
    for shape in DENSE:
        if options.only in "dense":
            rows += dense_rows(int(shape[0] * s), shape[1])
        torch.cuda.empty_cache()
    for shape in SPARSE:
        if options.only in "sparse":
            rows += sparse_rows(int(shape[0] * s), *shape[1:])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "linear models against FlashLib and cuML, f32", "device": kiln.Device("cuda").description()[1],
                       "date": datetime.date.today().isoformat(), "commit": options.commit, "rows": rows}, file, indent=1)
            file.write("\n")
    return 0 if all(row["kiln"]["converged"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
