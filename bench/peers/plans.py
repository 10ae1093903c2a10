#!/usr/bin/env python3
"""Judges the launch model's choices: every plan of mmchain measured at a list of shapes, the rank of
the choice among them and what it loses to the best (the fused-kernels paper's Figure 6 and section 4.3).

usage: plans.py --kiln KILN [--device cuda] [--scale S] [--shapes COLUMNS,...] [--quick] [--jobs N] [--json FILE]
--shapes takes the dense shapes of these widths alone; --quick times the plans predicted to be the fastest
alone. A choice is good that is at most 5 % slower than the best plan. With --jobs all kernels are first built
for a few rows, N shapes at a time, so that the measurements, one by one, find them in Kiln's cache.
"""
import argparse
import concurrent.futures
import datetime
import json
import subprocess
import sys

# rows, columns, entries (0 = dense), skew
SHAPES = [(60_000_000, 8, 0, ""), (11_000_000, 28, 0, ""), (4_000_000, 100, 0, ""), (1_500_000, 256, 0, ""),
          (400_000, 1000, 0, ""), (400_000, 1024, 0, ""), (200_000, 2048, 0, ""), (100_000, 4096, 0, ""),
          (50_000, 8192, 0, ""), (20_000, 20_000, 0, ""), (8_000, 50_000, 0, ""),
          (500_000, 200, 1_000_000, "uniform"), (500_000, 1024, 5_000_000, "uniform"),
          (500_000, 4096, 20_000_000, "uniform"), (500_000, 4096, 20_000_000, "zipf"),
          (2_000_000, 1_000_000, 60_000_000, "uniform"), (2_000_000, 1_000_000, 60_000_000, "zipf")]


def tune(options, shape, kind, scale):
    rows, cols, nnz, skew = shape
    scaled = max(int(rows * scale), 1)
    command = [options.kiln, "tune", "mmchain", "--rows", str(scaled), "--columns", str(cols), "--type", kind,
               "--device", options.device, "--json", "--quiet"]
    if not options.quick:
        command.append("--exhaustive")
    if nnz:
        command += ["--nnz", str(max(int(nnz * scale), 1)), "--skew", skew]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=float, default=1.0, help="a fraction of the rows and entries")
    parser.add_argument("--shapes", type=lambda text: [int(part) for part in text.split(",")],
                        help="widths of dense shapes")
    parser.add_argument("--quick", action="store_true", help="the plans predicted to be the fastest alone")
    parser.add_argument("--jobs", type=int, default=0,
                        help="shapes whose kernels are built at a time beforehand")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    results = []
    shapes = [shape for shape in SHAPES if options.shapes is None or not shape[2]
              and shape[1] in options.shapes]
    if options.jobs:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda work: tune(options, *work, 0.002),
                          [(shape, kind) for kind in ("f64", "f32") for shape in shapes]))
    print(f"{'shape':>24} {'type':>4} {'plans':>5} {'rank':>5} {'loss':>7} {'choice ms':>10} "
          f"{'predicted':>10} {'best ms':>9} "
          f"{'worst ms':>9}  best plan")
    for kind in ("f64", "f32"):
        for shape in shapes:
            result = tune(options, shape, kind, options.scale)
            best, worst, choice = result["plans"][0], result["plans"][-1], result["plans"][result["rank"] - 1]
            results.append(result)
            print(f"{result['rows']:>12,} x {shape[1]:<9,} {kind:>4} {len(result['plans']):>5} "
                  f"{result['rank']:>5} "
                  f"{result['loss']:>7.1%} {1e3 * choice['seconds']:>10.4f} "
                  f"{1e3 * choice['predicted_seconds']:>10.4f} "
                  f"{1e3 * best['seconds']:>9.4f} {1e3 * worst['seconds']:>9.4f}  {best['variant']} VS "
                  f"{best['VS']} BS {best['BS']} "
                  f"CL {best['team']} TL {best['TL']} rows {best['rows_a_step']} {shape[3]}", flush=True)
    good = sum(result["loss"] <= 0.05 for result in results)
    print(f"within 5 % of the best: {good} of {len(results)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "the launch model's choices", "date": datetime.date.today().isoformat(),
                       "commit": options.commit, "device": results[0]["device_description"], "good": good,
                       "shapes": len(results), "results": results}, file)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
