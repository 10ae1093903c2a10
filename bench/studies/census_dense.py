#!/usr/bin/env python3
"""Counts the kernels that passes over dense data of every width ask for: of the cost model's best plans, the distinct
ones; and the fewest (by a greedy search) of which one is within a tenth of the best for 80, 90, 95 and 100 of
a hundred shapes. Plans that differ in the width of a load or in what is masked alone count as one, so that
these are lower bounds. The model needs no GPU (kiln_dense_plans, as for fit_dense.py).

usage: bench/studies/census_dense.py BUILD [--json FILE]
"""
import argparse
import json

from fit_dense import Model

ROWS, MOST, SLACK = (2_000, 30_000, 1_000_000, 20_000_000), 1.2e10, 1.1


def widths():
    """1 to 64, then steps of 7 %, each as a multiple of four, an even and an odd number."""
    found, at = set(range(1, 65)), 66.0
    while at < 50_000:
        found |= {int(at) // 4 * 4, int(at) // 2 * 2, int(at) | 1}
        at *= 1.07
    return sorted(found)


def cover(serving, shapes):
    """Plans that serve so many of a hundred shapes: {plan: the shapes that it is good enough for}."""
    left, served = set(range(shapes)), []
    while left:
        plan = max(serving, key=lambda plan: len(serving[plan] & left))
        left -= serving[plan]
        served.append(1 - len(left) / shapes)
    return [next(i + 1 for i, share in enumerate(served) if share >= wanted)
            for wanted in (0.8, 0.9, 0.95, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--json")
    options = parser.parse_args()
    model, table = Model(options.build), []
    shapes = [(rows, cols) for cols in widths() for rows in ROWS if rows * cols <= MOST]
    for kind in ("f32", "f64"):
        for k in (1, 2, 4, 8):
            best, serving = set(), {}
            for i, (rows, cols) in enumerate(shapes):
                predicted, choice = model.plans((rows, cols, kind, k))
                best.add(choice)
                for plan, seconds in predicted.items():
                    if seconds <= SLACK * predicted[choice]:
                        serving.setdefault(plan, set()).add(i)
            row = {"type": kind, "columns of y": k, "shapes": len(shapes), "best plans": len(best),
                   "within a tenth for 80, 90, 95, 100 %": cover(serving, len(shapes))}
            table.append(row)
            print(*row.values(), sep="  ", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"study": "kernels of dense passes over all widths", "gpu": "H200, by the cost model",
                       "date": "2026-11-29", "rows": table}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
