#!/usr/bin/env python3
"""Truncated SVD and PCA on a GPU beside PyTorch's and cuML's, as far as they are there: times with the
residual that each reaches, max(|| A v - s u ||, || A^T u - s v ||) / s_1, measured in f64 by PyTorch.

digits is 60,000 x 784 numbers of 0 to 255 that fall off as images of digits do, or MNIST from FOLDER; PCA with 50
components. sparse is 1,000,000 x 30,000 at 3 %, a sum of 60 factors seen at random places: the 50 largest
singular values, with X on the device and with a budget of a tenth of it. PyTorch's ways: its randomised
search with more and more steps, eigenvectors of the covariances, and the whole decomposition.

usage: gpu_svd.py [--json FILE] [--commit TEXT] [--device NAME] [--cases digits,sparse,budget] [--rows N]
                  [--folder FOLDER] [--turns N]
--rows: of sparse. FOLDER has dense/mnist-train-images-idx3-ubyte.gz.
"""
import argparse
import gzip
import os
import sys
import time

import numpy as np

import kiln_c as kiln
from gpu_common import keep

DIGITS, COMPONENTS = (60_000, 784), 50
COLUMNS, PER_ROW, FACTORS = 30_000, 900, 60


def digits(folder):
    path = os.path.join(folder or "", "dense/mnist-train-images-idx3-ubyte.gz")
    if folder and os.path.exists(path):
        with gzip.open(path) as file:
            return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float32), "MNIST"
    rng = np.random.default_rng(0)
    rows, columns = DIGITS
    axes = np.linalg.qr(rng.standard_normal((columns, columns)))[0] * (400 / np.arange(1, columns + 1) ** 0.75)
    X = (rng.standard_normal(DIGITS) @ axes.T.astype(np.float32) + 40).clip(0, 255)
    return X.astype(np.float32), "made"


def sparse(rows, where):
    """start, col, values of CSR, on the device `where` of PyTorch: one entry in each of PER_ROW strips of a row."""
    import torch
    torch.manual_seed(0)
    size = 1 / torch.arange(1, FACTORS + 1, device=where).sqrt()
    left = torch.randn(rows, FACTORS, device=where) * size
    right = torch.randn(COLUMNS, FACTORS, device=where)
    width = COLUMNS / PER_ROW
    first = (torch.arange(PER_ROW, device=where) * width).long()
    last = ((torch.arange(PER_ROW, device=where) + 1) * width).long()
    col = torch.empty(rows * PER_ROW, dtype=torch.int32, device=where)
    values = torch.empty(rows * PER_ROW, device=where)
    step = 2000
    for at in range(0, rows, step):
        some = left[at:at + step]
        chosen = first + (torch.rand(len(some), PER_ROW, device=where) * (last - first)).long()
        found = 1 + torch.bmm(right[chosen], some[:, :, None])[:, :, 0]
        found += 0.5 * torch.randn(found.shape, device=where)
        part = slice(at * PER_ROW, (at + len(some)) * PER_ROW)
        col[part], values[part] = chosen.int().reshape(-1), found.reshape(-1)
    return (torch.arange(rows + 1, device=where) * PER_ROW).int(), col, values


class Judge:
    """Residuals of triples of X, a tensor, about its columns' means where these are asked for."""

    def __init__(self, X, center):
        self.X, self.center = X, center

    def back(self, U):
        import torch
        if self.X.layout == torch.strided:
            return sum(self.X[at:at + 8192].double().T @ U[at:at + 8192] for at in range(0, len(self.X), 8192))
        start, col, values = self.X.crow_indices(), self.X.col_indices(), self.X.values()
        total, step = torch.zeros(self.X.shape[1], U.shape[1], dtype=U.dtype, device=U.device), 10_000
        for at in range(0, len(U), step):
            some = min(step, len(U) - at)
            part = slice(int(start[at]), int(start[at + some]))
            row = torch.repeat_interleave(torch.arange(some, device=U.device), start[at + 1:at + some + 1]
                                          - start[at:at + some])
            total.index_add_(0, col[part].long(), values[part].double()[:, None] * U[at:at + some][row])
        return total

    def forth(self, V):
        import torch
        if self.X.layout == torch.strided:
            return torch.cat([self.X[at:at + 8192].double() @ V for at in range(0, len(self.X), 8192)])
        start, col, values = self.X.crow_indices(), self.X.col_indices(), self.X.values()
        out, step = [], 10_000
        for at in range(0, self.X.shape[0], step):
            some = min(step, self.X.shape[0] - at)
            part = slice(int(start[at]), int(start[at + some]))
            row = torch.repeat_interleave(torch.arange(some, device=V.device), start[at + 1:at + some + 1]
                                          - start[at:at + some])
            got = torch.zeros(some, V.shape[1], dtype=V.dtype, device=V.device)
            out.append(got.index_add_(0, row, values[part].double()[:, None] * V[col[part].long()]))
        return torch.cat(out)

    def __call__(self, U, s, V):
        import torch
        U, s, V = (torch.as_tensor(part, device=self.X.device).double() for part in (U, s, V))
        forth, back = self.forth(V) - U * s, self.back(U)
        if self.center:
            mean = self.X.double().mean(0)
            forth -= mean @ V
            back -= mean[:, None] * U.sum(0)
        return max(float(part.norm(dim=0).max()) for part in (forth, back - V * s)) / float(s[0])


def timed(call, turns):
    """The first call's seconds, the least of the others, and what the last gave."""
    import torch
    times = []
    for _ in range(turns + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times[0], min(times[1:]), result


def by_kiln(device, X, k, name, judge, turns, **options):
    (rows, columns), kind = X.shape, X.dtype
    U, s, V = (device.dense(*shape, kind) for shape in ((rows, k), (k, 1), (columns, k)))
    before = device.statistics()
    first, seconds, report = timed(lambda: kiln.fit(name, U, s, V, X, **options), turns)
    moved = {key: device.statistics()[key] - value for key, value in before.items()
             if isinstance(value, (int, float)) and not isinstance(value, bool)}
    residual = judge(U.numpy(), s.numpy()[:, 0], V.numpy()) if judge else None
    for matrix in (U, s, V):
        matrix.free()
    return {"seconds": seconds, "first_seconds": first, "residual": residual, "reported": report.residual,
            "iterations": report.n_iter, "passes": report.passes, "solver": report.solver, "statistics": moved}


def torch_covariance(X, k):
    import torch
    A = X - X.mean(0)
    values, vectors = torch.linalg.eigh(A.T @ A)
    V, s = vectors[:, -k:].flip(1), values[-k:].flip(0).sqrt()
    return A @ V / s, s, V


def torch_whole(X, k):
    import torch
    U, s, Vt = torch.linalg.svd(X - X.mean(0), full_matrices=False)
    return U[:, :k], s[:k], Vt[:k].T


def by_cuml(X, k):
    import cupy
    from cuml.decomposition import PCA
    model = PCA(n_components=k, output_type="cupy")
    T = model.fit_transform(cupy.asarray(X))
    s = model.singular_values_
    return T / s, s, model.components_.T


def show(row):
    for name, found in row["ways"].items():
        print(f"{row['case']} {row['type']} {name}: " + (found if isinstance(found, str) else ", ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in found.items())), flush=True)
    return row


def attempt(ways, name, call, turns, judge):
    try:
        first, seconds, result = timed(call, turns)
        ways[name] = {"seconds": seconds, "first_seconds": first, "residual": judge(*result)}
    except ImportError:
        pass
    except Exception as error:  # a peer that fails says so, and the others are still measured
        ways[name] = repr(error)[:200]


def dense_case(options, kind):
    import torch
    values, source = digits(options.folder)
    values = values.astype(kind)
    X, k = torch.from_numpy(values).to("cuda"), COMPONENTS
    judge, ways = Judge(X, True), {}
    device = kiln.Device(options.device)
    own = device.dense(*values.shape, kind, values)
    for name, more in (("kiln", {}), ("kiln krylov", {"solver": 1}), ("kiln gram", {"solver": 2})):
        try:
            ways[name] = by_kiln(device, own, k, "pca", judge, options.turns, **more)
        except kiln.KilnError as error:
            ways[name] = repr(error)[:200]
    own.free()
    for steps in (2, 6, 12):
        attempt(ways, f"PyTorch pca_lowrank, {steps} steps",
                lambda n=steps: torch.pca_lowrank(X, q=k + 10, niter=n), options.turns,
                lambda U, s, V: judge(U[:, :k], s[:k], V[:, :k]))
    attempt(ways, "PyTorch eigh of the covariances", lambda: torch_covariance(X, k), options.turns, judge)
    attempt(ways, "PyTorch svd", lambda: torch_whole(X, k), 1, judge)
    attempt(ways, "cuML", lambda: by_cuml(X, k), options.turns, judge)
    return show({"case": "digits", "data": source, "type": kind, "rows": values.shape[0],
                 "columns": values.shape[1], "k": k, "ways": ways})


def sparse_case(options, budget):
    import torch
    start, col, values = sparse(options.rows, "cuda")
    X = torch.sparse_csr_tensor(start, col, values, size=(options.rows, COLUMNS), device="cuda")
    judge, ways, k = Judge(X, False), {}, COMPONENTS
    began = time.perf_counter()
    host = [part.cpu().numpy() for part in (start, col, values)]
    name = "kiln, a tenth of X" if budget else "kiln"
    device = kiln.Device(options.device, memory=sum(part.nbytes for part in host) // 10 if budget else 0)
    own = device.sparse((options.rows, COLUMNS), "float32", *host)
    print(f"{options.rows} x {COLUMNS}: moved in {time.perf_counter() - began:.1f} s", flush=True)
    for center in (False,) if budget else (False, True):
        ways[name + (" centred" if center else "")] = by_kiln(
            device, own, k, "svd", None if center else judge, 1, tolerance=1e-6, center=center)
        print(ways, flush=True)
    own.free()
    if not budget:
        for steps in (2, 8):
            attempt(ways, f"PyTorch svd_lowrank, {steps} steps",
                    lambda n=steps: torch.svd_lowrank(X, q=k + 10, niter=n), 1,
                    lambda U, s, V: judge(U[:, :k], s[:k], V[:, :k]))
    return show({"case": "budget" if budget else "sparse", "type": "float32", "rows": options.rows,
                 "columns": COLUMNS, "entries": len(host[1]), "k": k, "ways": ways})


CASES = {"digits": lambda o: [dense_case(o, "float32"), dense_case(o, "float64")],
         "sparse": lambda o: [sparse_case(o, False)], "budget": lambda o: [sparse_case(o, True)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    rows = []
    for case in options.cases.split(","):
        rows += CASES[case](options)
        keep(options.json, "truncated SVD and PCA", kiln.Device(options.device).description, options.commit, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
