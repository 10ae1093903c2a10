#!/usr/bin/env python3
"""The time of a run beside its computation, against the size of the data: the overhead model of the
iterative-kernels paper for PageRank, K-Means and multi-dimensional scaling. For each size the CPU and the GPU
from a process's start to its end without reading, the parts that the run reports (moving the data, building
kernels, solving), what kiln explain predicts for both, part by part, and what --device auto takes.
bench/plot.py draws what --json writes.

usage: gpu_overheads.py --build BUILD [--gpu cuda] [--json FILE] [--commit TEXT] [--folder DIR] [--quick]
"""
import argparse
import datetime
import json
import os
import subprocess
import tempfile
import time

import numpy as np

from gpu_common import distinct_csr

SIZES = {"pagerank": [1_000, 10_000, 100_000, 1_000_000, 4_000_000], "mds": [250, 1_000, 4_000, 12_000],
         "kmeans": [1_000, 30_000, 300_000, 3_000_000]}
OPTIONS = {"pagerank": [], "mds": ["-d", "2"], "kmeans": ["-k", "20"]}
COLUMNS, LINKS, ITERATIONS = 16, 8, 20


def write(verb, size, folder):
    if verb != "pagerank":
        path = os.path.join(folder, "points.npy")
        np.save(path, np.random.default_rng(1).standard_normal((size, COLUMNS)))
    else:
        import scipy.sparse as sp
        path = os.path.join(folder, "graph.npz")
        graph = distinct_csr(size, size, LINKS, np.float64, 1)
        graph.data[:] = 1
        sp.save_npz(path, graph, compressed=False)
    return path


def kiln(build, *words):
    start = time.perf_counter()
    done = subprocess.run([f"{build}/kiln", *words, "--json", "--quiet"], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise SystemExit(f"kiln {' '.join(words)}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout), time.perf_counter() - start


def measure(build, verb, path, device, iterations=ITERATIONS, runs=3):
    """The fastest of some runs, the first of which builds kernels."""
    best = None
    for _ in range(runs):
        result, wall = kiln(build, verb, path, *OPTIONS[verb], "--device", device, "--max-iterations",
                            str(iterations), "--tolerance", "1e-300")
        parts = {name: value for name, value in result["seconds"].items() if value is not None}
        row = {"seconds": wall - parts.get("read", 0), "device": result["device"],
               "described": result["device_description"], "parts": parts}
        best = row if best is None or row["seconds"] < best["seconds"] else best
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--gpu", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--folder")
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes, to see that it works")
    options = parser.parse_args()
    found, right = [], 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for verb, sizes in SIZES.items():
            rows = []
            path = write(verb, sizes[0], folder)
            for _ in range(2):  # measures the machine, and then a process on the GPU that it has seen
                kiln(options.build, "explain", verb, path, *OPTIONS[verb])
            for size in sizes[:2] if options.quick else sizes:
                path = write(verb, size, folder)
                told, _ = kiln(options.build, "explain", verb, path, *OPTIONS[verb], "--max-iterations",
                               str(ITERATIONS))
                estimates = {"cpu" if e["device"] == "cpu" else options.gpu: e for e in told["estimates"]
                             if e["considered"]}
                runs = {device: measure(options.build, verb, path, device)
                        for device in ("cpu", options.gpu, "auto")}
                taken = "cpu" if runs["auto"]["device"] == "cpu" else options.gpu
                good = runs[taken]["seconds"] <= 1.05 * min(runs["cpu"]["seconds"],
                                                            runs[options.gpu]["seconds"])
                right += good
                rows.append({"verb": verb, "size": size, "auto": taken, "right": good,
                             "measured": {device: run["seconds"] for device, run in runs.items()},
                             "parts": {device: run["parts"] for device, run in runs.items()},
                             "predicted": {device: e["seconds"] for device, e in estimates.items()},
                             "passes": told["passes"], "estimates": estimates,
                             "described": runs[options.gpu]["described"]})
                print(json.dumps({key: rows[-1][key] for key in ("verb", "size", "auto", "right", "measured",
                                                                 "predicted")}), flush=True)
            found += rows
    print(f"right: {right} of {len(found)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "overheads against size", "device": found[-1]["described"],
                       "gpu": options.gpu, "commit": options.commit,
                       "date": datetime.date.today().isoformat(), "iterations": ITERATIONS, "rows": found},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
