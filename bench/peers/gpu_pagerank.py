#!/usr/bin/env python3
"""An iteration of PageRank on a GPU in each layout of the links, several queued at once, against CuPy's loop
around cuSPARSE, f32.

usage: gpu_pagerank.py [--json FILE] [--commit TEXT] [--device NAME] [GRAPH...]
Graphs are named as pagerank.py takes them. Without any: made ones of the shape of web-Stanford and
web-Google, and of 2^24 vertices and 268 M links, made like the web, uniform, and by Graph500's generator.
"""
import argparse
import datetime
import json
import os

import numpy as np

import kiln_c as kiln
from gpu_common import median_time
from pagerank import DAMPING, LAYOUTS, STEPS, Ranks, made, read, shape_of

GRAPHS = ["made:281903:8", "made:916428:6", "made:16777216:16", "uniform:16777216:16",
          "kronecker:16777216:16"]


class Cupy:
    """Ranks, mass and change stay on the device; each step is one product and three kernels more."""

    def __init__(self, start, col):
        import cupy as cp
        import cupyx.scipy.sparse as sp
        self.n = n = len(start) - 1
        out = cp.diff(cp.asarray(start)).astype(cp.float32)
        ones = cp.ones(len(col), cp.float32)
        A = sp.csr_matrix((ones, cp.asarray(col), cp.asarray(start.astype(np.int32))), shape=(n, n))
        self.T = A.T.tocsr()
        self.dangling = (out == 0).astype(cp.float32)
        self.factor = cp.where(out > 0, 1 / cp.maximum(out, 1), 0).astype(cp.float32)
        self.x, self.cp = cp.full(n, 1 / n, cp.float32), cp
        self.update = cp.ElementwiseKernel("T y, T mass, T uniform", "T to",
                                           f"to = (T){DAMPING} * (y + mass * uniform) + (T){1 - DAMPING} * "
                                           "uniform", "update")
        self.apart = cp.ReductionKernel("T x, T y", "T sum", "abs(x - y)", "a + b", "sum = a", "0", "apart")

    def steps(self):
        uniform = self.cp.float32(1 / self.n)
        for _ in range(STEPS):
            mass = self.dangling @ self.x
            y = self.update(self.T @ (self.x * self.factor), mass, uniform)
            self.change = self.apart(self.x, y)
            self.x = y


def graph_of(name):
    """Row starts and columns on the host."""
    if not shape_of(name):
        A = read(name)
        return A.indptr.astype(np.int64), A.indices.astype(np.int32)
    try:
        import cupy as xp
    except ImportError:
        xp = np
    start, col = made(*shape_of(name), xp=xp)
    return start, col if xp is np else col.get()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    import scipy.sparse as sp
    device, rows = kiln.Device(arguments.device), []
    for name in arguments.graphs or GRAPHS:
        start, col = graph_of(name)
        n = len(start) - 1
        A = sp.csr_matrix((np.ones(len(col), np.float32), col, start), shape=(n, n))
        row = {"graph": os.path.basename(name), "vertices": n, "links": len(col), "us": {}}
        matrix = device.csr(A)
        for layout, number in LAYOUTS.items():
            ranks = Ranks(device, matrix, np.float32, number)
            row["us"][layout] = 1e6 * median_time(ranks.steps, device.synchronize) / STEPS
            row.setdefault("layout_seconds", {})[layout] = device.statistics()["layout_seconds"]
            ranks.free()
        matrix.free()
        row["floor_us"] = 1e6 * (4 * len(col) + 16 * n) / device.bandwidth()
        try:
            peer = Cupy(start, col)
            row["us"]["cusparse"] = 1e6 * median_time(peer.steps, peer.cp.cuda.Device().synchronize) / STEPS
            row["ratio"] = row["us"]["cusparse"] / row["us"]["chosen"]
            del peer
        except ImportError:
            pass
        rows.append(row)
        print(json.dumps(row), flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "an iteration of PageRank", "device": device.description,
                       "commit": arguments.commit, "date": datetime.date.today().isoformat(), "type": "f32",
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
