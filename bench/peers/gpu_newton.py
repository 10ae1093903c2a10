#!/usr/bin/env python3
"""Logistic regression on a GPU: Kiln's trust-region Newton method, one fused pass over X per Hessian product,
against the same method composed of library calls (CuPy: cuBLAS gemv for dense X, cuSPARSE SpMV and transposed
SpMV for CSR), and against Kiln on the machine's processor. All solve to the same gradient tolerance;
objectives must agree to 1e-6.

usage: gpu_newton.py [--json FILE] [--commit TEXT] [--scale S] [--no-cpu]
"""
import argparse
import datetime
import json
import sys
import time

import numpy as np

import kiln_c as kiln

TOLERANCE, L2 = 1e-6, 1.0


def make_csr(cupy, rows, cols, per_row, skew, seed):
    """On the GPU: rows of a Poisson length, distinct columns; with skew, column c as popular as 1/(c+1)."""
    rng = cupy.random.default_rng(seed)
    length = rng.poisson(per_row, rows)
    first = cupy.concatenate([cupy.zeros(1, cupy.int64), cupy.cumsum(length)])
    row = cupy.searchsorted(first[1:], cupy.arange(int(first[-1])), side="right")
    u = rng.random(row.size)
    if skew:
        col = cupy.clip(cupy.floor(cupy.exp(u * np.log(cols + 1)) - 1), 0, cols - 1).astype(cupy.int64)
    else:
        col = cupy.minimum((u * cols).astype(cupy.int64), cols - 1)
    entry = cupy.unique(row * cols + col)
    start = cupy.concatenate([cupy.zeros(1, cupy.int64),
                              cupy.cumsum(cupy.bincount(entry // cols, minlength=rows))])
    return rng.standard_normal(entry.size), (entry % cols).astype(cupy.int32), start.astype(cupy.int32)


class Composed:
    """The solver of Kiln's newton.c written with CuPy; forward(p) = X p, back(r) = X^T r. Intercept through
    centred columns."""

    def __init__(self, cupy, forward, back, squares, y, cols):
        self.cp, self.forward, self.back, self.y = cupy, forward, back, y
        self.squares_of, self.cols, self.passes = squares, cols, 0

    def gradient(self, w, c):
        cp = self.cp
        eta = self.forward(w) + (c - self.mean @ w)
        mu = 1 / (1 + cp.exp(-eta))
        value = float(cp.sum(cp.logaddexp(0, eta) - self.y * eta) + L2 / 2 * (w @ w))
        r = mu - self.y
        total = r.sum()
        self.passes += 2
        return value, self.back(r) - self.mean * total + L2 * w, total, mu * (1 - mu)

    def hessian(self, d, p, pc):
        t = d * (self.forward(p) + (pc - self.mean @ p))
        total = t.sum()
        self.passes += 2
        return self.back(t) - self.mean * total + L2 * p, total

    def solve(self):
        cp = self.cp
        self.mean, squares = self.back(cp.ones_like(self.y)) / self.y.size, self.squares_of()
        self.passes += 2
        w, c = cp.zeros(self.cols), cp.zeros(())
        f, g, gc, d = self.gradient(w, c)
        inverse = 1 / (0.25 * (squares - self.y.size * self.mean ** 2) + L2)
        inverse_c = 1 / (0.25 * self.y.size)
        norm0 = float(cp.sqrt(g @ (inverse * g) + gc * gc * inverse_c))
        radius, steps = norm0, 0
        while float(cp.sqrt(g @ (inverse * g) + gc * gc * inverse_c)) > TOLERANCE * norm0 and steps < 100:
            norm = float(cp.sqrt(g @ (inverse * g) + gc * gc * inverse_c))
            s, sc, r, rc = cp.zeros_like(w), cp.zeros(()), -g, -gc
            p, pc = inverse * r, inverse_c * rc
            rho, inner, size, cross, square = norm ** 2, 0, 0.0, 0.0, norm ** 2
            while rho ** 0.5 > min(0.1, (norm / norm0) ** 0.5) * norm and inner < 250:
                q, qc = self.hessian(d, p, pc)
                curvature = float(p @ q + pc * qc)
                alpha = rho / curvature if curvature > 0 else np.inf
                longer = size + 2 * alpha * cross + alpha ** 2 * square
                if not longer < radius ** 2:
                    alpha = (-cross + (cross ** 2 + square * (radius ** 2 - size)) ** 0.5) / square
                    s, sc, r, rc = s + alpha * p, sc + alpha * pc, r - alpha * q, rc - alpha * qc
                    break
                s, sc, r, rc = s + alpha * p, sc + alpha * pc, r - alpha * q, rc - alpha * qc
                z, zc = inverse * r, inverse_c * rc
                following = float(r @ z + rc * zc)
                beta, size = following / rho, longer
                cross, square = beta * (cross + alpha * square), following + beta ** 2 * square
                p, pc, rho, inner = z + beta * p, zc + beta * pc, following, inner + 1
            predicted = float(-0.5 * (s @ (g - r) + sc * (gc - rc)))
            after = self.gradient(w + s, c + sc)
            ratio = (f - after[0]) / predicted
            length = float(cp.sqrt(s @ (s / inverse) + sc * sc / inverse_c))
            radius = 0.5 * length if ratio < 0.25 else max(radius, 4 * length) if ratio > 0.75 else radius
            if ratio > 1e-4:
                w, c, (f, g, gc, d) = w + s, c + sc, after
            steps += 1
        return f, steps


def timed(run, sync, repeats=3):
    best, result = float("inf"), None
    for _ in range(repeats):
        sync()
        start = time.perf_counter()
        result = run()
        sync()
        best = min(best, time.perf_counter() - start)
    return best, result


def solve_kiln(name, X_of, y, cols, repeats):
    device = kiln.Device(name)
    X = X_of(device)
    target = device.dense(y.size, 1, np.float64, y)
    W, b = device.dense(cols, 1, np.float64), device.dense(1, 1, np.float64)
    seconds, report = timed(lambda: kiln.fit("logreg", W, b, X, target, l2=L2, tolerance=TOLERANCE),
                            device.synchronize, repeats)
    for m in (X, target, W, b):
        m.free()
    return seconds, report


def labels(cupy, eta, seed):
    rng = cupy.random.default_rng(seed)
    return (rng.random(eta.size) < 1 / (1 + cupy.exp(-eta))).astype(cupy.float64)


def dense_case(cupy, rows, cols):
    X = cupy.random.default_rng(1).standard_normal((rows, cols))
    y = labels(cupy, X @ cupy.random.default_rng(2).standard_normal(cols) / 4, 3)
    composed = Composed(cupy, lambda p: X @ p, lambda r: X.T @ r, lambda: cupy.einsum("ij,ij->j", X, X), y,
                        cols)
    return (X.nbytes, composed,
            (lambda host: lambda device: device.dense(rows, cols, np.float64, host))(X.get()), y.get())


def sparse_case(cupy, rows, cols, per_row, skew):
    import cupyx.cusparse
    import cupyx.scipy.sparse
    data, col, start = make_csr(cupy, rows, cols, per_row, skew, 1)
    X = cupyx.scipy.sparse.csr_matrix((data, col, start), shape=(rows, cols))
    spmv = cupyx.cusparse.spmv
    y = labels(cupy, spmv(X, cupy.random.default_rng(2).standard_normal(cols)) / 2, 3)
    composed = Composed(cupy, lambda p: spmv(X, p), lambda r: spmv(X, r, transa=True),
                        lambda: cupy.bincount(col, weights=data ** 2, minlength=cols), y, cols)
    host = X.get()
    return host.nnz * 12 + rows * 8, composed, lambda device: device.csr(host), y.get()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--no-cpu", action="store_true")
    options = parser.parse_args()
    import cupy
    sync = cupy.cuda.Device().synchronize
    s = options.scale
    cases = [("dense 11,000,000 x 28", 28, lambda: dense_case(cupy, int(11_000_000 * s), 28)),
             ("dense 1,000,000 x 256", 256, lambda: dense_case(cupy, int(1_000_000 * s), 256)),
             ("csr uniform 3,000,000 x 100,000", 100_000, lambda: sparse_case(cupy, int(3_000_000 * s),
                                                                              100_000, 30, False)),
             ("csr zipf 3,000,000 x 1,000,000", 1_000_000, lambda: sparse_case(cupy, int(3_000_000 * s),
                                                                               1_000_000, 30, True))]
    rows, failed = [], 0
    for name, cols, make in cases:
        size, composed, X_of, y = make()
        composed.solve()  # libraries' first call
        composed.passes = 0
        peer, (objective, steps) = timed(composed.solve, sync, 1)
        passes = composed.passes
        composed = None
        cupy.get_default_memory_pool().free_all_blocks()
        row = {"case": name, "bytes": size, "composed_seconds": peer, "composed_steps": steps,
               "composed_passes": passes}
        for device in ["cuda"] + ([] if options.no_cpu else ["cpu"]):
            seconds, report = solve_kiln(device, X_of, y, cols, 3 if device == "cuda" else 1)
            row[device] = {"seconds": seconds, "steps": report.n_iter, "passes": report.passes,
                           "converged": report.converged,
                           "objective_difference": abs(report.objective - objective) / objective}
            failed += not (report.converged and row[device]["objective_difference"] < 1e-6)
        row["ratio_to_composed"] = peer / row["cuda"]["seconds"]
        print(f"{name:34} composed {peer:8.3f} s ({steps} steps, {passes} passes)  cuda "
              f"{row['cuda']['seconds']:8.3f} s "
              f"({row['cuda']['steps']} steps, {row['cuda']['passes']} passes): "
              f"{row['ratio_to_composed']:.2f}x", end="")
        if "cpu" in row:
            row["ratio_to_cpu"] = row["cpu"]["seconds"] / row["cuda"]["seconds"]
            print(f"; cpu {row['cpu']['seconds']:8.3f} s: {row['ratio_to_cpu']:.1f}x", end="")
        print(f"; objectives differ by {row['cuda']['objective_difference']:.1e}", flush=True)
        rows.append(row)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "logistic regression, fused against composed",
                       "device": kiln.Device("cuda").description, "date": datetime.date.today().isoformat(),
                       "commit": options.commit, "rows": rows}, file, indent=1)
            file.write("\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
