#!/usr/bin/env python3
"""What a run takes beside its computation, against the size of the data: the overhead model of the iterative-kernels paper for PageRank
and multi-dimensional scaling. For each size the CPU and the GPU from a process's start to its end without reading, the parts that the
run reports (moving the data, building kernels, solving), what kiln explain predicts for both, and what --device auto takes.

usage: gpu_overheads.py --build BUILD [--gpu cuda] [--json FILE] [--plot FOLDER] [--commit TEXT] [--folder DIR] [--quick]
"""
import argparse
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from gpu_common import distinct_csr

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from plot import COLOURS, Drawing  # noqa: E402

SIZES = {"pagerank": [1_000, 10_000, 100_000, 1_000_000], "mds": [250, 1_000, 4_000, 12_000]}
ITERATIONS = 40


def write(verb, size, folder):
    if verb == "mds":
        path = os.path.join(folder, "points.npy")
        np.save(path, np.random.default_rng(1).standard_normal((size, 16)))
    else:
        import scipy.sparse as sp
        path = os.path.join(folder, "graph.npz")
        graph = distinct_csr(size, size, 8, np.float64, 1)
        graph.data[:] = 1
        sp.save_npz(path, graph, compressed=False)
    return path


def kiln(build, *words):
    start = time.perf_counter()
    done = subprocess.run([f"{build}/kiln", *words, "--json", "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"kiln {' '.join(words)}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout), time.perf_counter() - start


def measure(build, verb, path, device):
    """The faster of two runs: the first one builds kernels."""
    best = None
    for _ in range(2):
        result, wall = kiln(build, verb, path, "--device", device, "--max-iterations", str(ITERATIONS), "--tolerance", "1e-300")
        parts = {name: value for name, value in result["seconds"].items() if value is not None}
        row = {"seconds": wall - parts.get("read", 0), "device": result["device"], "parts": parts}
        best = row if best is None or row["seconds"] < best["seconds"] else best
    return best


def draw(path, verb, rows, gpu):
    """Seconds against size on two logarithmic axes: measured as lines with dots, predicted as dashes."""
    drawing = Drawing(640, 400)
    lines = {f"{device}, {kind}": [(row["size"], row[kind].get(device)) for row in rows]
             for device in ("cpu", gpu) for kind in ("measured", "predicted")}
    values = [y for points in lines.values() for _, y in points if y]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(rows[0]["size"]), math.log10(rows[-1]["size"])

    def at(x, y):
        return 70 + 540 * (math.log10(x) - first) / (last - first), 350 - 290 * (math.log10(y) - low) / (high - low)

    drawing.text(16, 24, f"kiln {verb}: seconds from start to end, {ITERATIONS} iterations", size=15)
    for power in range(low, high + 1):
        y = at(rows[0]["size"], 10**power)[1]
        drawing.line(70, y, 610, y)
        drawing.text(62, y + 4, f"{10.0**power:g}", "end")
    for row in rows:
        drawing.text(at(row["size"], 10**low)[0], 370, f"{row['size']:,}", "middle")
    for i, (name, points) in enumerate(lines.items()):
        colour, places = COLOURS[i // 2], [at(x, y) for x, y in points if y]
        drawing.text(80 + 135 * i, 44, name, colour=colour)
        dashes = ' stroke-dasharray="5 4"' if "predicted" in name else ""
        for (x1, y1), (x2, y2) in zip(places, places[1:]):
            drawing.line(x1, y1, x2, y2, f'stroke="{colour}" stroke-width="2"{dashes}')
    drawing.text(340, 390, "vertices" if verb == "pagerank" else "points", "middle")
    with open(path, "w", encoding="utf-8") as file:
        file.write(drawing.svg())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--gpu", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--folder")
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes, to see that it works")
    options = parser.parse_args()
    found, right = [], 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for verb, sizes in SIZES.items():
            rows = []
            for size in sizes[:2] if options.quick else sizes:
                path = write(verb, size, folder)
                told, _ = kiln(options.build, "explain", verb, path, "--max-iterations", str(ITERATIONS))
                estimates = {"cpu" if e["device"] == "cpu" else options.gpu: e for e in told["estimates"] if e["considered"]}
                runs = {device: measure(options.build, verb, path, device) for device in ("cpu", options.gpu, "auto")}
                taken = "cpu" if runs["auto"]["device"] == "cpu" else options.gpu
                good = runs[taken]["seconds"] <= 1.05 * min(runs["cpu"]["seconds"], runs[options.gpu]["seconds"])
                right += good
                rows.append({"verb": verb, "size": size, "auto": taken, "right": good,
                             "measured": {device: run["seconds"] for device, run in runs.items()},
                             "parts": {device: run["parts"] for device, run in runs.items()},
                             "predicted": {device: e["seconds"] for device, e in estimates.items()}, "estimates": estimates})
                print(json.dumps({key: rows[-1][key] for key in ("verb", "size", "auto", "right", "measured", "predicted")}), flush=True)
            found += rows
            if options.plot:
                draw(os.path.join(options.plot, f"overheads-{verb}.svg"), verb, rows, options.gpu)
    print(f"right: {right} of {len(found)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "overheads against size", "commit": options.commit, "date": datetime.date.today().isoformat(),
                       "iterations": ITERATIONS, "rows": found}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
