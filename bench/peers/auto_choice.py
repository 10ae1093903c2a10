#!/usr/bin/env python3
"""Counts how often --device auto takes the faster device: a grid of shapes and iterations, trained on the CPU, on
the GPU and under auto, each from its process's start to its end without the reading of the file, which is the
same for all.

usage: auto_choice.py --build BUILD [--gpu cuda] [--quick] [--repeat N] [--folder DIR] [--json FILE]
Prints a row for each point and the share of right choices; a choice also counts as right where it costs at
most 5 % more.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

# rows, columns, entries (0 = dense)
SHAPES = [(10_000, 28, 0), (100_000, 28, 0), (1_000_000, 28, 0), (4_000_000, 28, 0), (11_000_000, 28, 0),
          (10_000, 256, 0), (100_000, 256, 0), (400_000, 256, 0), (1_500_000, 256, 0), (10_000, 2048, 0),
          (50_000, 2048, 0), (200_000, 2048, 0), (100_000, 1_000, 1_000_000), (1_000_000, 1_000, 10_000_000),
          (5_000_000, 1_000, 50_000_000), (100_000, 100_000, 3_000_000), (1_000_000, 100_000, 30_000_000),
          (300_000, 1_000_000, 9_000_000), (2_000_000, 3_000_000, 60_000_000)]
QUICK = [(10_000, 28, 0), (200_000, 28, 0), (50_000, 2_000, 500_000)]
ITERATIONS = (3, 40)


def train(options, path, targets, device, iterations):
    """The best of the runs."""
    best = None
    for _ in range(options.repeat):
        start = time.perf_counter()
        done = subprocess.run([f"{options.build}/kiln", "linreg", path, "--target-file", targets, "--device",
                               device, "--l2", "1", "--max-iterations", str(iterations), "--tolerance",
                               "1e-300", "--json", "--quiet"],
                              capture_output=True, text=True, check=False)
        wall = time.perf_counter() - start
        if done.returncode:
            raise SystemExit(f"kiln linreg {path} on {device}: {done.stderr}{done.stdout}")
        result = json.loads(done.stdout)
        result["wall"] = wall - result["seconds"]["read"]
        if best is None or result["wall"] < best["wall"]:
            best = result
    return best


def predictions(choice):
    return {("cpu" if e["device"] == "cpu" else "gpu"): e["seconds"] for e in choice["estimates"]
            if e["considered"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True, help="the build folder, with kiln and bench/kiln_generate")
    parser.add_argument("--gpu", default="cuda")
    parser.add_argument("--quick", action="store_true", help="a few small shapes, to see that it works")
    parser.add_argument("--repeat", type=int, default=2, help="runs of which the fastest counts")
    parser.add_argument("--folder", help="where the data go; default: a temporary folder")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    rows, right = [], 0
    print(f"{'shape':>24} {'entries':>12} {'it.':>4} {'cpu s':>8} {'gpu s':>8} {'auto s':>8}  choice  "
          "predicted")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for shape in QUICK if options.quick else SHAPES:
            name, prefix = ("kdd2010" if shape[2] else "higgs"), os.path.join(folder, "x")
            command = [f"{options.build}/bench/kiln_generate", name, prefix, "--rows", str(shape[0]),
                       "--cols", str(shape[1])]
            subprocess.run(command + (["--nnz", str(shape[2])] if shape[2] else []), check=True,
                           stdout=subprocess.DEVNULL)
            path, targets = f"{prefix}.{'npz' if shape[2] else 'npy'}", f"{prefix}.y.npy"
            for iterations in ITERATIONS:
                runs = {device: train(options, path, targets, device, iterations)
                        for device in ("cpu", options.gpu, "auto")}
                chosen = "cpu" if runs["auto"]["device"] == "cpu" else options.gpu
                best = min(runs["cpu"]["wall"], runs[options.gpu]["wall"])
                good = runs[chosen]["wall"] <= 1.05 * best
                right += good
                expected = predictions(runs["auto"]["choice"])
                rows.append({"rows": shape[0], "columns": shape[1], "nnz": shape[2] or shape[0] * shape[1],
                             "sparse": bool(shape[2]), "max_iterations": iterations,
                             "cpu_seconds": runs["cpu"]["wall"], "gpu_seconds": runs[options.gpu]["wall"],
                             "auto_seconds": runs["auto"]["wall"], "chosen": chosen, "right": bool(good),
                             "predicted": expected, "choice": runs["auto"]["choice"]})
                print(f"{shape[0]:>12,} x {shape[1]:<9,} {rows[-1]['nnz']:>12,} {iterations:>4} "
                      f"{runs['cpu']['wall']:8.3f} "
                      f"{runs[options.gpu]['wall']:8.3f} {runs['auto']['wall']:8.3f}  {chosen:6} "
                      f"{'' if good else 'WRONG '}" + ", ".join(f"{k} {v:.3f}" for k, v in expected.items()),
                      flush=True)
            os.remove(path)
            os.remove(targets)
    share = right / len(rows)
    print(f"right: {right} of {len(rows)}, {share:.1%}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "the choice of --device auto", "date": datetime.date.today().isoformat(),
                       "commit": options.commit, "right": right, "points": len(rows), "share": share,
                       "rows": rows}, file,
                      indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
