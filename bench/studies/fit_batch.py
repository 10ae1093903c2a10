#!/usr/bin/env python3
"""Fits the constants of the launch model of batched sums (KI_BATCH_CONSTANTS, src/ops/batch/batch.h) to the
timings in h200-batch-plans.json, and says what the model's choice loses. The same method as fit_dense.py,
whose functions it uses.

usage: bench/studies/fit_batch.py BUILD [--fit PREFIX,...] [--take FOLDER COMMIT]
       BUILD: the build's folder; PREFIX: the constants to fit; else only the table is printed
       --take: writes the file of timings anew from FOLDER/tune-*.json (kiln tune batch --exhaustive --json)
"""
import argparse
import datetime
import glob
import json
import math
import os
import sys

import fit_dense

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "h200-batch-plans.json")
WAYS = ["vector a thread", "few threads", "vector a block", "looped block", "vector in pieces", "tiles"]


class Model(fit_dense.Model):
    def __init__(self, build):
        super().__init__(build, "kiln_batch_plans")

    def plans(self, shape):
        predicted, choice = {}, None
        for line in self.ask("shape {} {} {}".format(*shape)):
            way, lanes, _, parts, _, _, seconds, chosen = line
            key = (WAYS[int(way)], int(lanes), int(parts))
            predicted[key] = float(seconds)
            choice = key if chosen == "1" else choice
        return predicted, choice


def take(folder, commit):
    shapes = []
    for path in sorted(glob.glob(os.path.join(folder, "tune-*.json"))):
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        plans = [[p["variant"], p["VS"], p["cluster"], round(1e3 * p["seconds"], 6)] for p in told["plans"]
                 if p.get("seconds")]
        shapes.append({"count": told["vectors"], "length": told["length"], "type": told["type"],
                       "plans": plans})
    with open(FILE, "w", encoding="utf-8") as file:
        json.dump({"what": "sums of a batch by every plan: variant, VS, parts, ms",
                   "device": told["device_description"], "date": datetime.date.today().isoformat(),
                   "commit": commit, "shapes": shapes}, file, indent=1)
        file.write("\n")


def timings():
    with open(FILE, encoding="utf-8") as file:
        return {(s["count"], s["length"], s["type"]): {tuple(plan[:3]): plan[3] for plan in s["plans"]}
                for s in json.load(file)["shapes"]}


def report(model, table):
    losses = []
    print("  length type    loss  error  taken; best")
    for shape, measured in sorted(table.items(), key=lambda item: item[0][1]):
        loss, error, taken, best, _ = fit_dense.judge(model, shape, measured)
        losses.append(loss)
        text = [f"{key[0]} VS {key[1]} parts {key[2]} {measured[key]:.3f} ms" for key in (taken, best)]
        print(f"{shape[1]:8} {shape[2]} {100 * loss:6.1f} % {100 * error:4.0f} %  {text[0]}"
              + (f"; {text[1]}" if taken != best else ""))
    print(f"{len(losses)} shapes: mean loss {100 * sum(losses) / len(losses):.1f} %, largest "
          f"{100 * max(losses):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--fit", default="")
    parser.add_argument("--take", nargs=2, metavar=("FOLDER", "COMMIT"))
    options = parser.parse_args()
    if options.take:
        take(*options.take)
    model, table = Model(options.build), timings()
    if options.fit:
        fit_dense.fit(model, table, options.fit.split(","))
    report(model, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
