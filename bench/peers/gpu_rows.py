#!/usr/bin/env python3
"""Whole runs on one GPU, on a group of two, and by processes that have a GPU each: logistic regression and
K-Means of 20M x 28, PageRank of 8M pages; what these runs consist of, a call at a time; and how many bytes of
vectors as long as the rows came to the first GPU or process.

In one process a run's seconds are the report's, the least of several fits; by processes they are the tool's
`solve` of the second run, whose kernels the first has left in the cache. Data are made on the host.

usage: gpu_rows.py --build BUILD [--gpus 1,2] [--json FILE] [--commit TEXT] [--seconds 150]
To try the script where there are no GPUs: --device cpu --same --shrink 1000
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

import numpy as np

import kiln_c as kiln
from gpu_common import keep
from gpu_scale import describe, least_time, open_device
from kiln._library import ffi, lib

ROWS, COLUMNS, CLUSTERS, PAGES, LINKS, FITS = 20_000_000, 28, 50, 8_000_000, 16, 5


def points(rows):
    block = np.random.default_rng(1).standard_normal((rows // 20, COLUMNS), dtype=np.float32)
    return np.tile(block, (20, 1))


def labels(X):
    rng = np.random.default_rng(2)
    truth = rng.standard_normal(COLUMNS).astype(np.float32) / 3
    return (rng.random(len(X), dtype=np.float32) < 1 / (1 + np.exp(-X @ truth))).astype(np.float32)


def graph(pages):
    """Links, most of them to the first pages; none stands twice."""
    col = ((pages - LINKS) * np.random.default_rng(3).random((pages, LINKS), dtype=np.float32)**2)
    col = col.astype(np.int32)
    col.sort(1)
    col += np.arange(LINKS, dtype=np.int32)
    return np.arange(0, col.size + 1, LINKS, dtype=np.int64), col.ravel()


def sharing(device):
    told = ffi.new("kiln_sharing *")
    kiln.call("device_sharing", told, device)
    return {"operations": told.operations, "rows_home_bytes": told.rows_home_bytes}


def fits(device, fit):
    """The least seconds of several runs, and what the last one shared."""
    seconds = []
    for _ in range(FITS):
        before = sharing(device)
        report = fit()
        device.synchronize()
        seconds.append(report.seconds)
    after = sharing(device)
    return {"ms": min(seconds) * 1e3, "all_ms": [round(s * 1e3, 3) for s in seconds],
            "iterations": report.n_iter, "passes": report.passes, "objective": report.objective,
            **{key: after[key] - before[key] for key in after}}


def parts_of_logreg(device, X, y):
    """Milliseconds of each call that a fit is made of; of X's rows and of the model's columns."""
    rows, n = X.shape
    dense = lambda r, c=1: device.dense(r, c, np.float32)  # noqa: E731
    w, g, C, b, gb, G, mean, one = (dense(n), dense(n), dense(rows), dense(1), dense(1), dense(n, n), dense(n),
                                    dense(1))
    loss, value = kiln.struct("loss", kind=lib.KILN_LOSS_LOGISTIC, y=y), np.zeros(1)
    factor = np.ones(1)
    calls = {"loss_gradient": lambda: kiln.call("loss_gradient", ffi.cast("double *", value.ctypes.data), g, gb,
                                                C, loss, X, w, b),
             "loss_hessian": lambda: kiln.call("loss_hessian", g, gb, loss, C, X, w, b, 0.0, None),
             "gram_diagonal": lambda: kiln.call("gram_diagonal", g, X, C),
             "gram": lambda: kiln.call("gram", G, None, X, C, None),
             "norm of rows": lambda: kiln.call("norm", ffi.cast("double *", value.ctypes.data), C, 1),
             "dot of rows": lambda: kiln.call("dot", ffi.cast("double *", value.ctypes.data), C, y),
             "times of rows": lambda: kiln.call("times", C, C, y),
             "combine of columns": lambda: kiln.call("combine", g, ffi.cast("double *", factor.ctypes.data), w,
                                                     None, None),
             "product of columns": lambda: kiln.call("multiply", one, -1.0, 1, mean, w, 1.0, b),
             "eta": lambda: kiln.call("multiply", C, 1.0, 0, X, w, 0.0, None)}
    found = {}
    for name, call in calls.items():
        try:
            found[name] = least_time(device, call) * 1e3
        except kiln.KilnError as error:
            found[name] = str(error)
    for m in (w, g, C, b, gb, G, mean, one):
        m.free()
    return found


def logreg(device, host):
    X, y = (device.dense(*host[0].shape, np.float32, host[0]),
            device.dense(len(host[1]), 1, np.float32, host[1]))
    W, b = device.dense(COLUMNS, 1, np.float32), device.dense(1, 1, np.float32)
    row = fits(device, lambda: kiln.fit("logreg", W, b, X, y, l2=1.0))
    row["calls_ms"] = parts_of_logreg(device, X, y)
    for m in (X, y, W, b):
        m.free()
    return row


def kmeans(device, host):
    X, C = device.dense(*host[0].shape, np.float32, host[0]), device.dense(CLUSTERS, COLUMNS, np.float32)
    row = fits(device, lambda: kiln.fit("kmeans", C, X, init=1, seed=1, max_iterations=20, tolerance=1e-9))
    for m in (X, C):
        m.free()
    return row


def pagerank(device, host):
    start, col = host[2]
    pages = len(start) - 1
    A = device.sparse((pages, pages), np.float32, start, col, np.ones(len(col), np.float32))
    ranks = device.dense(pages, 1, np.float32)
    row = fits(device, lambda: kiln.fit("pagerank", ranks, A, iterations=40, unweighted=1))
    for m in (A, ranks):
        m.free()
    return row


CASES = {"logreg": logreg, "kmeans": kmeans, "pagerank": pagerank}


def in_one_process(options, host, late):
    rows = []
    for gpus in map(int, options.gpus.split(",")):
        device = open_device(options, gpus, 0)
        for name, case in CASES.items():
            if late():
                continue
            row = {"case": name, "gpus": gpus, "processes": 1, **case(device, host)}
            rows.append(row)
            print(json.dumps(row), flush=True)
        del device
    return rows


def commands(folder):
    x = f"{folder}/x.npy"
    return {"logreg": ["logreg", x, "--target-file", f"{folder}/y.npy", "--l2", "1"],
            "kmeans": ["kmeans", x, "-k", str(CLUSTERS), "--seed", "1", "--max-iterations", "20",
                       "--tolerance", "1e-9"],
            "pagerank": ["pagerank", f"{folder}/links.npz", "--iterations", "40", "--unweighted"]}


def write(folder, host):
    np.save(f"{folder}/x.npy", host[0])
    np.save(f"{folder}/y.npy", host[1])
    start, col = host[2]
    pages = len(start) - 1
    np.savez(f"{folder}/links.npz", indices=col, indptr=start, format=np.array(b"csr"),
             shape=np.array([pages, pages]), data=np.ones(len(col), np.float32))


def by_processes(options, host, late):
    """The tool by one process and by two, a GPU each; the second run of each."""
    rows, folder = [], tempfile.mkdtemp(dir="/dev/shm")
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none")
    device = options.device.split(":")[0]
    try:
        write(folder, host)
        for name, work in commands(folder).items():
            for count in (1, 2):
                command = ["mpirun", "-n", str(count), "--bind-to", "none", f"{options.build}/kiln", *work,
                           "--type", "f32", "--device", device, "--mpi", "--json", "-v"]
                row = {"case": name, "gpus": count, "processes": count}
                for _ in range(2):
                    if late():
                        continue
                    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60,
                                          check=False)
                    if done.returncode:
                        row["failed"] = done.stderr[-400:]
                        break
                    report = json.loads(done.stdout)
                    row.update(ms=report["seconds"]["solve"] * 1e3, read_ms=report["seconds"]["read"] * 1e3,
                               iterations=report.get("iterations"), **report["sharing"],
                               objective=report.get("objective", report.get("inertia")),
                               said=[line for line in done.stderr.splitlines() if "NCCL" in line][:2])
                rows.append(row)
                print(json.dumps(row), flush=True)
    finally:
        shutil.rmtree(folder)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--device", default="cuda:0", help="the first device")
    parser.add_argument("--same", action="store_true", help="parts of one device in place of several")
    parser.add_argument("--shrink", type=int, default=1, help="divide rows by this, to try the script")
    parser.add_argument("--seconds", type=float, default=150, help="begin nothing after so many")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    began = time.monotonic()
    late = lambda: time.monotonic() - began > options.seconds  # noqa: E731
    X = points(ROWS // options.shrink)
    host = X, labels(X), graph(PAGES // options.shrink)
    print(f"made in {time.monotonic() - began:.1f} s", flush=True)
    rows = in_one_process(options, host, late) + by_processes(options, host, late)
    print(f"{time.monotonic() - began:.0f} s in all")
    keep(options.json, "one GPU, two, and two processes: whole runs", describe(), options.commit, rows)


if __name__ == "__main__":
    main()
