#!/usr/bin/env python3
"""An iteration of PageRank on the CPU, in each layout of the links and in the one that Kiln takes, against
SciPy's loop over a transposed CSR matrix and, where it was built, GAP's pr (github.com/sbeamer/gapbs, f32).
The fastest of several turns, in which all of them take part: on a machine that others use too, that is what
comes nearest to each one's own time.

usage: pagerank.py [--gap PR] [--json FILE] [--commit TEXT] [--turns N] GRAPH...
A graph is a list of links (.txt), Matrix Market (.mtx), either through gzip, or "KIND:VERTICES:LINKS_EACH",
KIND made (like the web), uniform or kronecker.
"""
import argparse
import datetime
import gzip
import json
import os
import re
import subprocess
import tempfile
import time

import numpy as np

import kiln_c as kiln

LAYOUTS = {"chosen": 0, "csr": 1, "hybrid": 2, "balanced": 3}
STEPS, HEAD, DAMPING = 16, 4, 0.85


class Ranks:
    """The operands of kiln_ranks_step for a graph of which `matrix` has the links."""

    def __init__(self, device, matrix, dtype, layout):
        n = matrix.shape[0]
        self.P, self.C, self.next = (device.dense(n, 1, dtype, np.full((n, 1), 1 / n, dtype))
                                     for _ in range(3))
        self.factor = device.dense(n, 1, dtype)
        self.S = device.dense(HEAD + STEPS, 1, np.float64, np.full((HEAD + STEPS, 1), -1.0))
        self.call = kiln.struct("ranks", A=matrix, damping=DAMPING, P=self.P, C=self.C, next=self.next,
                                factor=self.factor, S=self.S, layout=layout)
        kiln.call("ranks_begin", self.call)
        self.steps()

    def steps(self, first=0, count=STEPS):
        kiln.call("ranks_step", self.call, first, count)

    def free(self):
        for matrix in (self.P, self.C, self.next, self.factor, self.S):
            matrix.free()


def web(vertices, count, xp, generator):
    """Links like those of the web: half lead to a near vertex, half to a popular one."""
    source = xp.arange(count, dtype=xp.int64) // (count // vertices)
    near = source + (60 * generator.standard_normal(count)).astype(xp.int64)
    popular = (vertices * generator.random(count)**2).astype(xp.int64) * 2654435761
    return source, xp.where(generator.random(count) < 0.5, near, popular) % vertices


def uniform(vertices, count, xp, generator):
    return generator.integers(0, vertices, count), generator.integers(0, vertices, count)


def kronecker(vertices, count, xp, generator):
    """Graph500's, of 2^n vertices, whose numbers are shuffled by an odd factor."""
    source, to = (xp.zeros(count, xp.int64) for _ in range(2))
    for _ in range(vertices.bit_length() - 1):
        draw = generator.random(count, dtype=xp.float32)
        right = (draw >= 0.57) & (draw < 0.76) | (draw >= 0.95)
        source, to = 2 * source + (draw >= 0.76), 2 * to + right
    return source * 2654435761 % vertices, to * 2654435761 % vertices


KINDS = {"made": web, "uniform": uniform, "kronecker": kronecker}


def made(kind, vertices, each, xp=np, seed=1):
    """Row starts and columns of a graph with `each` links a vertex; those that come twice count once, so that
    there are a little less."""
    source, col = KINDS[kind](vertices, vertices * each, xp, xp.random.default_rng(seed))
    links = xp.unique(source * vertices + col)
    del source, col
    start = xp.searchsorted(links, xp.arange(vertices + 1, dtype=xp.int64) * vertices)
    return (start if xp is np else start.get()), (links % vertices).astype(xp.int32)


def shape_of(name):
    """(kind, vertices, links each) of "made:VERTICES:EACH", None of a file."""
    parts = name.split(":")
    return (parts[0], *map(int, parts[1:])) if parts[0] in KINDS and len(parts) == 3 else None


def read(path):
    import scipy.io
    import scipy.sparse as sp
    if shape_of(path):
        start, col = made(*shape_of(path))
        A = sp.csr_matrix((np.ones(len(col)), col, start), shape=2 * (len(start) - 1,))
    else:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            if ".mtx" in path:
                A = sp.csr_matrix(scipy.io.mmread(file))
            else:
                links = np.loadtxt(file, dtype=np.int64, comments="#", usecols=(0, 1))
                n = links.max() + 1
                A = sp.csr_matrix((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(n, n))
    A.sum_duplicates()
    A.data[:] = 1
    return A


class Scipy:
    def __init__(self, A, dtype):
        out = np.diff(A.indptr)
        self.T = A.T.tocsr().astype(dtype)
        self.factor = np.where(out > 0, 1 / np.maximum(out, 1), 0).astype(dtype)
        self.dangling, self.n = np.flatnonzero(out == 0), A.shape[0]
        self.x = np.full(self.n, 1 / self.n, dtype)

    def step(self):
        mass = self.x[self.dangling].sum()
        y = self.T @ (self.x * self.factor)
        y *= DAMPING
        y += (DAMPING * mass + 1 - DAMPING) / self.n
        change = np.abs(y - self.x).sum()
        self.x = y
        return change


def by_gap(program, A, folder):
    """Seconds of an iteration, the fastest of five runs of forty."""
    path = os.path.join(folder, "graph.el")
    if not os.path.exists(path):
        links = A.tocoo()
        np.savetxt(path, np.column_stack([links.row, links.col]), fmt="%d")
    text = subprocess.check_output([program, "-f", path, "-i", "40", "-t", "0", "-n", "5"], text=True)
    return min(float(found) for found in re.findall(r"Trial Time:\s+([\d.]+)", text)) / 40


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(A, dtype, arguments, device):
    matrix = device.csr(A.astype(dtype))
    runs = {name: Ranks(device, matrix, dtype, layout) for name, layout in LAYOUTS.items()}
    peer, best = Scipy(A, dtype), {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.turns):
            turn = {name: min(seconds_of(lambda i=i, run=run: run.steps(i, 1)) for i in range(STEPS))
                    for name, run in runs.items()}
            turn["scipy"] = min(seconds_of(peer.step) for _ in range(STEPS))
            if arguments.gap and dtype == np.float32:
                turn["gap"] = by_gap(arguments.gap, A, folder)
            best = {name: min(best.get(name, 9e9), value) for name, value in turn.items()}
    for run in runs.values():
        run.free()
    matrix.free()
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--gap")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    device, rows = kiln.Device("cpu"), []
    for path in arguments.graphs:
        A = read(path)
        for dtype in (np.float32, np.float64):
            best = compare(A, dtype, arguments, device)
            row = {"graph": os.path.basename(path), "vertices": A.shape[0], "links": int(A.nnz),
                   "type": np.dtype(dtype).name, "ms": {name: 1e3 * value for name, value in best.items()},
                   "scipy_ratio": best["scipy"] / best["chosen"]}
            if "gap" in best:
                row["gap_ratio"] = best["gap"] / best["chosen"]
            rows.append(row)
            print(json.dumps(row), flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "an iteration of PageRank", "device": device.description,
                       "commit": arguments.commit, "date": datetime.date.today().isoformat(), "rows": rows},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
