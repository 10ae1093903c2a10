#!/usr/bin/env python3
"""K-Means on a GPU: the assignment with its sums (kiln_assign), an iteration of whole runs (kiln_kmeans), and
the same of PyTorch, cuML and FlashLib, as far as they are there; labels against those of f64, inertia after
equally many iterations from the same centres.

Points are normal around k centres that lie as far apart as their noise is wide, so that clusters overlap. An
iteration of a whole run is the difference of two runs of different length over the iterations between them.

usage: gpu_kmeans.py [--json FILE] [--commit TEXT] [--device NAME] [--shapes 0,1,2,3] [--peers FlashLib,PyTorch,cuML]
"""
import argparse
import sys
import time

import numpy as np

import kiln_c as kiln
from gpu_common import keep, median_time

SHAPES = [(10_000_000, 4, 300), (10_000_000, 32, 100), (1_000_000, 128, 1024), (1_000_000, 784, 4096)]
SHORT, LONG, CHECKED = 2, 8, 100_000
GIVEN = 4


def points(rows, columns, k):
    import torch
    torch.manual_seed(rows + columns + k)
    centres = torch.randn(k, columns, device="cuda")
    X = centres[torch.randint(k, (rows,), device="cuda")] + torch.randn(rows, columns, device="cuda")
    return X, X[torch.randperm(rows, device="cuda")[:k]].contiguous()


def exact_labels(X, C):
    """Returns the number of the nearest row of C, in f64."""
    import torch
    C = C.double()
    half, step = (C * C).sum(1) / 2, max(1, 200_000_000 // len(C))
    return torch.cat([(half - x.double() @ C.T).argmin(1) for x in X.split(step)])


def exact_inertia(X, C):
    total = 0.0
    labels = exact_labels(X, C)
    for x, label in zip(X.split(1_000_000), labels.split(1_000_000)):
        total += float(((x.double() - C.double()[label]) ** 2).sum())
    return total


def torch_iteration(X, C):
    import torch
    half, step = (C * C).sum(1) / 2, max(1, 1_000_000_000 // len(C))
    sums, counts = torch.zeros_like(C), torch.zeros(len(C), device="cuda")
    labels = torch.cat([torch.addmm(half, x, C.T, alpha=-1).argmin(1) for x in X.split(step)])
    sums.index_add_(0, labels, X)
    counts.index_add_(0, labels, torch.ones(len(X), device="cuda"))
    return labels, torch.where(counts[:, None] > 0, sums / counts[:, None], C)


def by_torch(X, C):
    import torch
    seconds = median_time(lambda: torch_iteration(X, C), torch.cuda.synchronize)
    labels = torch_iteration(X[:CHECKED], C)[0]
    for _ in range(LONG):
        C = torch_iteration(X, C)[1]
    return seconds, labels, C


def run_seconds(run):
    """Seconds of an iteration, and what the longer run gave."""
    import torch
    least = {}
    for iterations in (SHORT, LONG, SHORT, LONG):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = run(iterations)
        torch.cuda.synchronize()
        took = time.perf_counter() - start
        least[iterations] = min(took, least.get(iterations, took))
    return (least[LONG] - least[SHORT]) / (LONG - SHORT), result


def by_cuml(X, C):
    import cupy
    import torch
    from cuml.cluster import KMeans
    points_, start = cupy.asarray(X), cupy.asarray(C)
    seconds, model = run_seconds(lambda n: KMeans(n_clusters=len(C), init=start, n_init=1, max_iter=n,
                                                  tol=1e-30, output_type="cupy").fit(points_))
    return seconds, None, torch.as_tensor(model.cluster_centers_, device="cuda")


def by_flashlib(X, C):
    import flashlib
    seconds, result = run_seconds(lambda n: flashlib.flash_kmeans(X, len(C), max_iters=n, tol=-1.0,
                                                                  init_centroids=C.clone()))
    return seconds, None, result[1]


def by_kiln(device, X, C):
    import torch
    rows, columns, k = *X.shape, len(C)
    X, start = device.dense(rows, columns, "float32", X.cpu().numpy()), C.cpu().numpy()
    C, sums, labels = (device.dense(k, columns, "float32", start), device.dense(k, columns, "float32"),
                       device.dense(rows, 1, "float32"))
    totals = np.empty((k, 2))
    to = kiln.struct("assignment", sums=sums, totals=totals)
    assign = median_time(lambda: kiln.call("assign", to, X, C, None), device.synchronize)
    only = kiln.struct("assignment", labels=labels)
    label = median_time(lambda: kiln.call("assign", only, X, C, None), device.synchronize)
    found = torch.from_numpy(labels.numpy()[:CHECKED, 0]).long()

    def run(iterations):
        centres = device.dense(k, columns, "float32", start)
        kiln.fit("kmeans", centres, X, init=GIVEN, tolerance=1e-300, max_iterations=iterations)
        values = centres.numpy()
        centres.free()
        return torch.from_numpy(values).cuda()

    whole, centres = run_seconds(run)
    for matrix in (X, C, sums, labels):
        matrix.free()
    return {"assign_ms": 1e3 * assign, "labels_ms": 1e3 * label}, whole, found, centres


def measure(device, shape, peers):
    import torch
    X, C = points(*shape)
    want = exact_labels(X[:CHECKED], C)
    row = {"rows": shape[0], "columns": shape[1], "clusters": shape[2], "milliseconds": {},
           "wrong_labels": {}, "inertia": {}}
    extra, seconds, labels, centres = by_kiln(device, X, C)
    row.update(extra)
    results = {"kiln": (seconds, labels.cuda(), centres)}
    for name, call in (("FlashLib", by_flashlib), ("PyTorch", by_torch), ("cuML", by_cuml)):
        if name not in peers:
            continue
        try:
            results[name] = call(X, C)
        except ImportError:
            continue
        except Exception as error:  # a peer that fails says so, and the others are still measured
            print(f"  {name}: {repr(error)[:200]}", flush=True)
    for name, (seconds, labels, centres) in results.items():
        row["milliseconds"][name] = 1e3 * seconds
        row["inertia"][name] = exact_inertia(X, centres)
        if labels is not None:
            row["wrong_labels"][name] = float((labels != want).double().mean())
    print(f"{shape[0]} x {shape[1]}, {shape[2]}: assign {row['assign_ms']:.2f} ms, labels "
          f"{row['labels_ms']:.2f}; iteration "
          + ", ".join(f"{name} {value:.2f}" for name, value in row["milliseconds"].items()) + "; wrong "
          + ", ".join(f"{name} {value:.1e}" for name, value in row["wrong_labels"].items()), flush=True)
    del X, C, results
    torch.cuda.empty_cache()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", default="0,1,2,3")
    parser.add_argument("--peers", default="FlashLib,PyTorch,cuML")
    options = parser.parse_args()
    device, rows = kiln.Device(options.device), []
    for number in options.shapes.split(","):
        rows.append(measure(device, SHAPES[int(number)], options.peers.split(",")))
        keep(options.json, "K-Means", device.description, options.commit, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
