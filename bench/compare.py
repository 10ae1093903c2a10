#!/usr/bin/env python3
"""Which times of a run are longer than those of another: files of bench/results against files of the same
benchmark, row by row.

usage: compare.py OLD NEW [--beyond 1.05]      two files, or two folders, whose files of the same name are compared
Rows are paired by what they say of the work (NAMES). A time is a number under a name that ends like one
(TIME). Peers' times are among them, and say how far the two runs' machines differ. Fails where a time is
longer by more than --beyond, or nothing could be compared.
"""
import argparse
import json
import os
import re
import sys

NAMES = ("set", "case", "call", "graph", "model", "application", "verb", "data", "format", "operation",
         "kind", "loss", "type", "cols", "columns", "k", "factors", "clusters", "size", "length", "points",
         "n", "p", "l2")
TIME = re.compile(r"(^|_)(ms|us|seconds|milliseconds|measured)$")
# of *-batch.json and *-wire.json, whose rows have a sum: a time each
REDUCTIONS = {"sum", "scale", "l2", "argmax", "variance", "broadcast"}
REDUCTION = re.compile(rf"(^|_)({'|'.join(REDUCTIONS)})$")
NOT_TIMES = ("saving_ms",)


def times(value, path=(), timed=False):
    """(path, number) of each time in a JSON value; a list of rows is a step of the path for each, by what the
    row says of itself."""
    if isinstance(value, dict):
        for name, part in value.items():
            is_time = TIME.search(name) and name not in NOT_TIMES or "sum" in value and REDUCTION.search(name)
            yield from times(part, path + (name,), timed or bool(is_time))
    elif isinstance(value, list):
        seen = {}
        for part in value:
            if not isinstance(part, dict):
                continue
            says = [name for name in NAMES if not (name in REDUCTIONS and "sum" in part)]
            label = " ".join(f"{part[name]}" for name in says if isinstance(part.get(name),
                                                                            (str, int, float)))
            seen[label] = seen.get(label, 0) + 1
            yield from times(part, path + (label if seen[label] == 1 else f"{label} ({seen[label]})",), timed)
    elif timed and isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        yield path, value


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def compare(old, new, beyond):
    """Prints what is slower; how many times were compared, and how many are longer."""
    former, now = dict(times(load(old))), dict(times(load(new)))
    ratios = sorted((now[path] / former[path], path) for path in now if path in former)
    slower = [(ratio, path) for ratio, path in ratios if ratio > beyond]
    middle = f"median {ratios[len(ratios) // 2][0]:.3f}, " if ratios else ""
    print(f"{os.path.basename(new)}: {len(ratios)} times, {middle}{len(slower)} beyond {beyond}; "
          f"{len(now) - len(ratios)} without an old one")
    for ratio, path in reversed(slower):
        print(f"  {ratio:6.3f}  {former[path]:.5g} -> {now[path]:.5g}  {', '.join(path)}")
    return len(ratios), len(slower)


def pairs(old, new):
    if not os.path.isdir(new):
        return [(old, new)]
    both = sorted(set(os.listdir(old)) & set(os.listdir(new)))
    return [(os.path.join(old, name), os.path.join(new, name)) for name in both if name.endswith(".json")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--beyond", type=float, default=1.05)
    options = parser.parse_args()
    found = [compare(old, new, options.beyond) for old, new in pairs(options.old, options.new)]
    compared, slower = (sum(counts) for counts in zip(*found)) if found else (0, 0)
    print(f"{compared} times compared, {slower} beyond {options.beyond}")
    return 0 if compared and not slower else 1


if __name__ == "__main__":
    sys.exit(main())
