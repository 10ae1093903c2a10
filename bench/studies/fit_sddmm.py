#!/usr/bin/env python3
"""Fits the constants of the launch model of sampled products (src/ops/sampled/sddmm_plans.c) to what
gpu_sddmm.py --plans has measured.

usage: fit_sddmm.py FILE.json... [--tries 20000] [--seed 1]
The formula is that of predict() there. Random steps are kept if they lower what choices lose against the best
plan of their shape, on average, and a little of what predictions miss.
"""
import argparse
import json
import math

import numpy as np

BEGIN = {"cache": 20.1e12, "cached": 14.4e6, "far": 0.604, "issued": 7.87e9, "lines": 1.69e9, "row": 0.426e-6,
         "next_row": 0.279e-6, "step": 104.0, "entry": 14.5, "exchange": 0.0443, "finish": 22.9,
         "not_hidden": 0.205, "launch": 4.32e-6}
UNITS, BANDWIDTH, ELEMENT, GROUP, WARP, SHARE = 132, 4.2e12, 4, 128, 32, 32


def features(row):
    """A column a plan, of all that does not depend on the constants."""
    of = row["plans"]
    get = lambda key: np.array([plan[key] for plan in of], float)
    VS, TL, R, width = get("VS"), get("TL"), get("rows_a_step"), get("K")
    ahead = np.array([plan["variant"] == "rows ahead" for plan in of], float)
    return {"VS": VS, "TL": TL, "R": R, "width": width, "ahead": ahead, "ms": get("ms"),
            "W": np.where(row["k"] % 4 == 0, 4, 1.0), "row": row}


def predict(f, c):
    row, VS, TL, R, width, ahead, W = f["row"], f["VS"], f["TL"], f["R"], f["width"], f["ahead"], f["W"]
    nnz, k, rows, cols = row["nnz"], row["k"], min(row["rows"], row["nnz"]), row["columns"]
    Q, BS, slices, a_row = TL / W, np.maximum(VS, GROUP), np.ceil(k / width), nnz / rows
    own = np.maximum(R / VS, 1)
    gathered, factors = nnz * k * ELEMENT, (rows + min(cols, nnz)) * k * ELEMENT
    again = max(0, nnz - cols) * k * ELEMENT
    panel = cols * width * ELEMENT
    missed = np.maximum(0, 1 - c["cached"] / panel)
    entries = nnz * (slices * (ELEMENT + 4) + ELEMENT + (slices - 1) * 2 * ELEMENT)
    registers = 28 + TL * (R + 1 + ahead * R / 2)
    resident = np.maximum(1, np.floor(np.minimum(65536 / registers, 2048) / BS))
    groups = np.clip(nnz / (SHARE * (BS / VS)), 1, UNITS * resident)
    each = nnz / (groups * (BS / VS))
    loads = R * np.where(ahead > 0, 2, 1 + 1 / a_row) * Q
    exchanges = R - own + np.log2(VS) - np.log2(np.minimum(R, VS))
    instructions = c["step"] + R * (c["entry"]
                                    + TL) + 2 * loads + exchanges * c["exchange"] + own * c["finish"]
    lines = nnz * slices / R * loads * VS * np.maximum(1 / VS, W * ELEMENT / 128)
    seconds = np.array([(factors + c["far"] * missed * again + entries + row["rows"] * 8) / BANDWIDTH,
                        (gathered * (1 + 0.2 * ahead) + entries) / c["cache"],
                        lines / (UNITS * c["lines"]),
                        slices * nnz / R * VS / WARP * instructions / (UNITS * c["issued"]),
                        slices * each * (c["row"] / R + (1 - ahead) * c["next_row"] / a_row)])
    return seconds.max(0) + c["not_hidden"] * (seconds.sum(0) - seconds.max(0)) + slices * c["launch"]


def judge(shapes, c):
    losses, misses = [], []
    for f in shapes:
        guess = predict(f, c)
        losses.append(f["ms"][guess.argmin()] / f["ms"].min() - 1)
        misses.append(np.abs(np.log(guess * 1e3 / f["ms"])).mean())
    return np.mean(losses) + 0.3 * max(losses) / len(losses) + 0.05 * np.mean(misses), losses, misses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--tries", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    shapes = []
    for file in options.files:
        with open(file, encoding="utf-8") as text:
            shapes += [features(row) for row in json.load(text)["rows"]]
    rng, best = np.random.default_rng(options.seed), dict(BEGIN)
    least = judge(shapes, best)[0]
    print(f"at the beginning: {least:.4f}")
    for _ in range(options.tries):
        tried = {key: value * math.exp(rng.normal(0, 0.15) * (rng.random() < 0.4))
                 for key, value in best.items()}
        found = judge(shapes, tried)[0]
        if found < least:
            least, best = found, tried
    _, losses, misses = judge(shapes, best)
    for f, loss, miss in zip(shapes, losses, misses):
        print(f"{f['row']['case']:14} k={f['row']['k']:<5} loses {100 * loss:5.1f} %, predictions miss by "
              f"{100 * miss:.0f} %")
    print(f"mean loss {100 * np.mean(losses):.1f} %, most {100 * max(losses):.1f} %")
    print({key: float(f"{value:.3g}") for key, value in best.items()})


if __name__ == "__main__":
    main()
