#!/usr/bin/env python3
"""Factor models on a GPU: each model's sweep against the floor of its products, the share of SDDMM in each
application, and ALS against implicit on all cores of the same machine.

usage: gpu_factors.py [--parts sweeps,applications,als] [--device cuda] [--json FILE] [--commit TEXT]
A sweep's time is the median step of the trace of a run. Its floor is the sum of the sampled products and
sparse products that the model's formulas ask for, each timed alone on the same factors: ALS by CG 4 fused
ones a side and the objective's, LDA 2 fused and a transposed one, GaP one of each, SFA one of each, 3 sampled
products and 2 sparse ones.
An application is one sweep written with library calls in PyTorch: with cuSPARSE's SDDMM, then with kiln_sddmm
in its place and all else as it was (what the SDDMM paper's table V estimates), then the model itself, whose
products are fused. The share is that of SDDMM in the first.
"""
import argparse
import datetime
import json
import os
import sys
import time

import numpy as np

import kiln_c as kiln
from gpu_common import median_time
from gpu_sparse import make

PRODUCT, TIMES, QUOTIENT, RESIDUAL = 1, 2, 3, 4
ALS_STEPS, LDA_STEPS = 3, 2
ALPHA, L2 = 40.0, 0.01
# Rows, columns, draws a row; a row's columns are distinct, so that some draws go.
SHAPES = {"nytimes": (300_000, 102_660, 311), "netflix": (480_189, 17_770, 299),
          "movielens": (138_000, 27_000, 140)}


MODELS = {
    "als": ("als", {"implicit": 1, "l2": L2, "alpha": ALPHA}),
    "als, explicit": ("als", {"l2": 10.0}),
    "als, biases": ("als", {"l2": 10.0, "biases": 1}),
    "sfa": ("sfa", {"l2": 10.0}),
    "lda": ("lda", {}),
    "gap": ("gap", {}),
}


def fit(model, device, X, k, iterations):
    """Factors and [(objective, seconds)] after each iteration; a model with biases or means has a column for
    them beside the k."""
    name, options = MODELS[model]
    k += model in ("sfa", "als, biases")
    A, B = device.dense(X.shape[0], k, X.dtype), device.dense(X.shape[1], k, X.dtype)
    history = kiln.fit(name, A, B, X, tolerance=1e-30, max_iterations=iterations, **options).history
    return A, B, list(zip(history["objective"], history["seconds"]))


def step_of(trace):
    """Seconds of an iteration, after the first ones, in which LDA's documents begin anew."""
    return float(np.median(np.diff([seconds for _, seconds in trace])[5:]))


# ----------------------------------------------------------------------------------------------------- sweeps

class Products:
    """The products of one problem, in ms."""

    def __init__(self, device, X, A, B):
        self.device, self.X, self.A, self.B = device, X, A, B
        self.side = (device.dense(*A.shape, A.dtype), device.dense(*B.shape, B.dtype))
        self.known = {}

    def free(self):
        for matrix in self.side:
            matrix.free()

    def time(self, what, kind=None, transposed=False, summed=False):
        key = (what, kind, transposed, summed)
        if key not in self.known:
            self.known[key] = median_time(lambda: self.run(*key), self.device.synchronize, least=0.1) * 1e3
        return self.known[key]

    def run(self, what, kind, transposed, summed):
        place = kiln.ffi.new("double *") if summed else None
        if what == "spmm":
            kiln.multiply(self.side[transposed], 1, self.X, self.A if transposed else self.B,
                          transposed=transposed)
            return
        sample = kiln.struct("sample", kind=kind, S=self.X, A=self.A, B=self.B)
        if what == "fused":
            kiln.call("sddmm_multiply", self.side[transposed], place, 1, int(transposed), sample, 0, None)
        else:
            kiln.call("sddmm", None, place, 1, sample, 0)


def floor_of(model, p):
    if model.startswith("als"):
        return ((ALS_STEPS + 1) * (p.time("fused", TIMES) + p.time("fused", TIMES, True))
                + p.time("sddmm", RESIDUAL, summed=True))
    if model == "lda":
        return LDA_STEPS * p.time("fused", QUOTIENT) + p.time("fused", QUOTIENT, True, True)
    if model == "gap":
        return p.time("fused", QUOTIENT, summed=True) + p.time("fused", QUOTIENT, True)
    return (p.time("fused", RESIDUAL, summed=True) + p.time("fused", RESIDUAL, True) + 3
            * p.time("sddmm", RESIDUAL, summed=True)
            + p.time("spmm") + p.time("spmm", transposed=True))


def data_of(name):
    """Popular columns, whole numbers from 1 to 5 as values."""
    rows, cols, draws = SHAPES[name]
    start, col, value = [array.get() for array in make(rows, cols, draws, "zipf", np.float32)]
    return (rows, cols), start, col, np.floor((value + np.float32(0.5)) * np.float32(4.999)) + np.float32(1)


def sweeps(device, options):
    rows = []
    for name, k, models in (("movielens", 64, ("als", "als, explicit", "als, biases", "sfa")),
                            ("nytimes", 128, ("lda", "gap"))):
        shape, *arrays = data_of(name)
        X = device.sparse(shape, np.float32, *arrays)
        for model in models:
            A, B, trace = fit(model, device, X, k, options.iterations)
            plain = [device.dense(rows, k, np.float32).fill_random(1, 2 + i, normal=False)
                     for i, rows in enumerate(shape)]
            products = Products(device, X, *plain)
            row = {"model": model, "data": name, "rows": shape[0], "columns": shape[1], "nnz": len(arrays[1]),
                   "factors": k, "sweep_ms": step_of(trace) * 1e3, "floor_ms": floor_of(model, products),
                   "products_ms": {" ".join(str(part) for part in key): ms
                                   for key, ms in products.known.items()}}
            row["times_floor"] = row["sweep_ms"] / row["floor_ms"]
            print(f"{model:14} {name} k={k} sweep {row['sweep_ms']:.2f} ms, floor {row['floor_ms']:.2f}, "
                  f"{row['times_floor']:.2f}", flush=True)
            rows.append(row)
            products.free()
            for matrix in (A, B, *plain):
                matrix.free()
        X.free()
    return rows


# ----------------------------------------------------------------------------------------------- applications

class Composed:
    """A sweep in PyTorch, whose time in SDDMM is kept apart. own: kiln_sddmm in place of cuSPARSE's."""

    def __init__(self, device, shape, start, col, value):
        import torch
        self.torch, self.device, self.shape, self.own, self.spent = torch, device, shape, False, 0.0
        self.start, self.col = torch.from_numpy(start).cuda(), torch.from_numpy(col).cuda()
        self.wide = self.col.long()
        self.value = torch.from_numpy(value).cuda()
        self.row = torch.repeat_interleave(torch.arange(shape[0], device="cuda"), self.start.diff())
        self.order = torch.argsort(self.wide * shape[0] + self.row)
        self.turned_col = self.row[self.order]
        self.turned_start = torch.cat([torch.zeros(1, dtype=torch.long, device="cuda"),
                                       torch.bincount(self.wide, minlength=shape[1]).cumsum(0)])
        self.pattern = torch.sparse_csr_tensor(self.start, self.wide, torch.zeros_like(self.value),
                                               size=shape)
        self.out = torch.empty_like(self.value)
        self.P = self.wrap(self.out, *shape, sparse=True)

    def free(self):
        self.P.free()

    def wrap(self, tensor, rows, cols, sparse=False):
        more = {"row_start": kiln.address(self.start.data_ptr()),
                "col": kiln.address(self.col.data_ptr())} if sparse else {}
        return kiln.wrap(self.device, tensor.data_ptr(), (rows, cols), trusted=1, **more)

    def dots(self, A, B):
        """a_i . b_j at the entries; the time is kept."""
        torch = self.torch
        if self.own:
            a, b = self.wrap(A, *A.shape), self.wrap(B, *B.shape)
        torch.cuda.synchronize()
        began = time.perf_counter()
        if self.own:
            sample = kiln.struct("sample", kind=PRODUCT, S=self.P, A=a, B=b)
            kiln.call("sddmm", self.P, None, 1, sample, 0)
            self.device.synchronize()
            d = self.out
        else:
            d = torch.sparse.sampled_addmm(self.pattern, A, B.t(), beta=0.0).values()
            torch.cuda.synchronize()
        self.spent += time.perf_counter() - began
        if self.own:
            a.free()
            b.free()
        return d

    def times(self, values, B):
        return self.torch.sparse_csr_tensor(self.start, self.wide, values, size=self.shape) @ B

    def turned(self, values, A):
        return self.torch.sparse_csr_tensor(self.turned_start, self.turned_col, values[self.order],
                                            size=self.shape[::-1]) @ A

    # ------------------------------------------------------------------ the models' sweeps

    def gap(self):
        A, B = self.A, self.B
        q = self.value / self.dots(A, B)
        self.A = A = (A * self.times(q, B) + 0.1) / (B.sum(0) + 1)
        q = self.value / self.dots(A, B)
        (self.value * self.torch.log(self.value / q)).sum().item()
        B = B * self.turned(q, A)
        self.B = B / B.sum(0)

    def expect(self, G, rows):
        digamma = self.torch.special.digamma
        return self.torch.exp(digamma(G) - digamma(G.sum(1, keepdim=True) if rows else G.sum(0)))

    def lda(self):
        prior = 1 / self.A.shape[1]
        U = self.expect(self.B + 1, False)
        gamma = self.A + 1
        for _ in range(LDA_STEPS):
            T = self.expect(gamma, True)
            gamma = prior + T * self.times(self.value / self.dots(T, U), U)
        T = self.expect(gamma, True)
        d = self.dots(T, U)
        (self.value * self.torch.log(d)).sum().item()
        self.B = prior + U * self.turned(self.value / d, T)

    def sfa(self):
        A, B, l2 = self.A, self.B, 10.0
        p = self.value - self.dots(A, B)
        ones = self.torch.ones_like(p)
        Z_A = (l2 * A - self.times(p, B)) / (l2 + self.times(ones, B * B))
        Z_B = (l2 * B - self.turned(p, A)) / (l2 + self.turned(ones, A * A))
        for t in (0.5, 1, 2):
            p = self.value - self.dots(A - 1e-3 * t * Z_A, B - 1e-3 * t * Z_B)
            (p * p).sum().item()
        self.A, self.B = A - 1e-3 * Z_A, B - 1e-3 * Z_B

    def rows_by_cg(self, x, other, gram, apply):
        r = -(x @ gram + L2 * x + apply(x, other, True))
        p, rho = r, (r * r).sum(1, keepdim=True)
        for _ in range(ALS_STEPS):
            q = p @ gram + L2 * p + apply(p, other, False)
            length = rho / (p * q).sum(1, keepdim=True).clamp_min(1e-30)
            x, r = x + length * p, r - length * q
            before, rho = rho, (r * r).sum(1, keepdim=True)
            p = r + rho / before.clamp_min(1e-30) * p
        return x

    def als(self):
        weight = ALPHA * self.value

        def values(A, B, begins):
            d = weight * self.dots(A, B)
            return d - (1 + weight) if begins else d

        self.A = self.rows_by_cg(self.A, self.B, self.B.t() @ self.B,
                                 lambda x, other, begins: self.times(values(x, other, begins), other))
        self.B = self.rows_by_cg(self.B, self.A, self.A.t() @ self.A,
                                 lambda x, other, begins: self.turned(values(other, x, begins), other))
        d = self.dots(self.A, self.B)
        ((1 + weight) * (1 - d) ** 2 - d * d).sum().item()

    def measure(self, model, k, own, repeats=3):
        """Seconds of the fastest sweep, and of SDDMM in it."""
        times, shares, torch = [], [], self.torch
        sweep, self.own = getattr(self, model), own
        generator = torch.Generator("cuda").manual_seed(1)
        self.A = torch.rand(self.shape[0], k, device="cuda", generator=generator) + 0.1
        self.B = torch.rand(self.shape[1], k, device="cuda", generator=generator) + 0.1
        for turn in range(repeats + 1):
            self.torch.cuda.synchronize()
            self.spent, began = 0.0, time.perf_counter()
            sweep()
            self.torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
            shares.append(self.spent)
        best = int(np.argmin(times[1:])) + 1
        return times[best], shares[best]


def applications(device, options):
    import torch
    rows, k = [], 128
    for name in ("netflix", "nytimes"):
        data = data_of(name)
        composed = Composed(device, *data)
        X = device.sparse(data[0], np.float32, *data[1:])
        for model in options.applications.split(","):
            row = {"application": model, "data": name, "nnz": len(data[2]), "factors": k}
            for key, own in (("cusparse", False), ("kiln_sddmm", True)):
                seconds, sddmm = composed.measure(model, k, own)
                row[key + "_sweep_ms"], row[key + "_sddmm_ms"] = seconds * 1e3, sddmm * 1e3
                torch.cuda.empty_cache()
            A, B, trace = fit(model, device, X, k, options.iterations)
            row["kiln_sweep_ms"] = step_of(trace) * 1e3
            A.free()
            B.free()
            row["share"] = row["cusparse_sddmm_ms"] / row["cusparse_sweep_ms"]
            row["by_sddmm"] = row["cusparse_sweep_ms"] / row["kiln_sddmm_sweep_ms"]
            row["by_model"] = row["cusparse_sweep_ms"] / row["kiln_sweep_ms"]
            print(f"{name} {model}: SDDMM {100 * row['share']:.0f} %, {row['cusparse_sweep_ms']:.0f} ms; "
                  "with kiln_sddmm "
                  f"{row['by_sddmm']:.2f} times, the model {row['by_model']:.2f}", flush=True)
            rows.append(row)
        X.free()
        composed.free()
        del composed
        torch.cuda.empty_cache()
    return rows


# -------------------------------------------------------------------------------------------------------- als

def objective(arrays, shape, A, B):
    """In f64, on the GPU, a million entries at a time."""
    import torch
    start, col, value = (torch.from_numpy(array).cuda() for array in arrays)
    A, B = (torch.from_numpy(np.ascontiguousarray(A)).cuda().double(),
            torch.from_numpy(np.ascontiguousarray(B)).cuda().double())
    row = torch.repeat_interleave(torch.arange(shape[0], device="cuda"), start.diff())
    total = ((A.T @ A) * (B.T @ B)).sum() + L2 * ((A * A).sum() + (B * B).sum())
    for at in range(0, len(col), 1 << 20):
        part = slice(at, at + (1 << 20))
        d = (A[row[part]] * B[col[part].long()]).sum(1)
        total += ((1 + ALPHA * value[part].double()) * (1 - d) ** 2 - d * d).sum()
    return float(total) / 2


def als(device, options):
    import scipy.sparse
    shape, start, col, value = data_of("movielens")
    row = {"rows": shape[0], "columns": shape[1], "nnz": len(col), "factors": 64,
           "cores": len(os.sched_getaffinity(0))}
    import implicit.cpu.als
    peer = implicit.cpu.als.AlternatingLeastSquares(factors=64, regularization=L2, alpha=1.0,
                                                    iterations=options.peer_iterations,
                                                    num_threads=row["cores"], random_state=1, use_cg=True)
    confidence = scipy.sparse.csr_matrix((1 + ALPHA * value, col, start), shape)
    began = time.perf_counter()
    peer.fit(confidence, show_progress=False)
    row["implicit"], row["implicit_iterations"] = implicit.__version__, options.peer_iterations
    row["implicit_seconds"] = time.perf_counter() - began
    row["implicit_objective"] = objective((start, col, value), shape, peer.user_factors, peer.item_factors)
    X = device.sparse(shape, np.float32, start, col, value)
    for turn in range(2):  # the first builds the kernels
        A, B, trace = fit("als", device, X, 64, options.peer_iterations)
        found = objective((start, col, value), shape, A.numpy(), B.numpy())
        A.free()
        B.free()
    row["kiln_sweep_ms"], row["kiln_objective"], row["kiln_said"] = step_of(trace) * 1e3, found, trace[-1][0]
    row["implicit_sweep_ms"] = row["implicit_seconds"] / options.peer_iterations * 1e3
    reached = [(i + 1, seconds) for i, (value, seconds) in enumerate(trace)
               if value <= row["implicit_objective"] * (1 + 1e-6)]
    if reached:
        row["kiln_iterations"], row["kiln_seconds"] = reached[0]
        row["times_faster"] = row["implicit_seconds"] / row["kiln_seconds"]
    row["times_faster_sweep"] = row["implicit_sweep_ms"] / row["kiln_sweep_ms"]
    row["trace"] = trace
    print(" ".join(f"{key}={value:.5g}" if isinstance(value, float) else f"{key}={value}"
                   for key, value in row.items() if key != "trace"), flush=True)
    return row


PARTS = {"sweeps": sweeps, "applications": applications, "als": als}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--iterations", type=int, default=9)
    parser.add_argument("--applications", default="sfa,gap,lda,als")
    parser.add_argument("--peer-iterations", type=int, default=15)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    device = kiln.Device(options.device)
    name, description = device.name, device.description
    print(f"{name}: {description}")
    report = {"benchmark": "factor models: sweeps, applications, ALS against implicit",
              "device": f"{name}: {description}", "date": datetime.date.today().isoformat(),
              "commit": options.commit}
    for part in options.parts.split(","):
        began = time.perf_counter()
        report[part] = PARTS[part](device, options)
        print(f"{part}: {time.perf_counter() - began:.0f} s", flush=True)
        if options.json:  # after each part: what has been measured stays
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)
                file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
