#!/usr/bin/env python3
"""Fits the constants of src/pass/dense/hopper.h to the timings of plans beside this file, and says what the
model's choice loses.

The model is the library's own: kiln_dense_plans (tests/backends/dense_plans.c) says what it predicts of an
H200 that need not be here. A shape's loss is the time of the plan that the model takes, of those that were
timed and are still offered, over the best of them. Fitted is one constant after the other, each by steps of
30 % and less, to the sum over the shapes of
    loss + WEIGHT * mean |log(predicted / measured)| of its plans, each weighed by (best / measured)^POWER.

usage: bench/studies/fit_dense.py BUILD [--fit PREFIX,...] [--shapes f32:12001:1,...]
       BUILD: the build's folder; PREFIX: the constants to fit (team_,ring_narrow); else only the table is printed
"""
import argparse
import json
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WEIGHT, POWER = 0.2, 3
# With the states of the kernels that do what those of the tree do.
SOURCES = [("h200-plans.json", (None,)), ("h200-dense-variants.json", ("2", "3")),
           ("h200-dense-choices.json", (None,))]


class Model:
    """The library's formulas, with constants that can be changed."""

    def __init__(self, build, program="kiln_dense_plans"):
        self.program = program
        program = os.path.join(build, "tests", program)
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names, self.values = map(list,
                                      zip(*((name, float(value)) for name, value in self.ask("constants"))))

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        while (answer := self.process.stdout.readline().strip()) != ".":
            if not answer:
                sys.exit(f"{self.program}: no answer to {line}")
            yield answer.split(" ", 11) if line.startswith("shape") else answer.split()

    def set(self, at, value):
        self.values[at] = value
        self.process.stdin.write(f"set {at} {value:.9g}\n")

    def plans(self, shape):
        """{key: seconds}, and the key of the choice. Plans that differ in `lag` alone share the key, which
        files lack: the least."""
        predicted, choice = {}, None
        for variant, *numbers, _, _, seconds, chosen_limit in self.ask("shape {} {} {} {}".format(*shape)):
            key = (variant, *map(int, numbers))
            predicted[key] = min(predicted.get(key, math.inf), float(seconds))
            choice = key if chosen_limit.startswith("1") else choice
        return predicted, choice


def key_of(plan):
    return tuple(plan[name] for name in ("variant", "VS", "BS", "TL", "R", "K", "C", "stages"))


def timings():
    """{(rows, cols, type, k): {key: least milliseconds}} of the kernels in the tree. What was timed first, on
    a GPU whose clocks still rose, counts where nothing else is known of the plan."""
    table, firsts = {}, []
    for name, states in SOURCES:
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            for plan in json.load(file)["plans"]:
                if plan.get("state") in states:
                    # a row more is no other shape
                    size = round(plan["rows"] * plan["cols"] * (4 if plan["type"] == "f32" else 8) / 1e8)
                    _, plans = table.setdefault((size, plan["cols"], plan["type"], plan["k"]),
                                                    ((plan["rows"], plan["cols"], plan["type"], plan["k"]),
                                                     {}))
                    if plan.get("first"):
                        firsts.append((plans, plan))
                    else:
                        plans[key_of(plan)] = min(plan["ms"], plans.get(key_of(plan), math.inf))
    for plans, plan in firsts:
        plans.setdefault(key_of(plan), plan["ms"])
    return {shape: plans for shape, plans in table.values() if len(plans) > 1}


def judge(model, shape, measured):
    """Returns for a shape: what the choice loses, the mean error of its plans, the plan taken, the best, and whether
    the model would take one that was not timed."""
    predicted, choice = model.plans(shape)
    known = [key for key in measured if key in predicted]
    if len(known) < 2:
        return None
    taken, best = min(known, key=predicted.get), min(known, key=measured.get)
    weights = {key: (measured[best] / measured[key]) ** POWER for key in known}
    error = sum(weights[key] * abs(math.log(predicted[key] * 1e3 / measured[key]))
                for key in known) / sum(weights.values())
    return (measured[taken] / measured[best] - 1, error, taken, best, choice if choice not in measured
            else None)


def total(model, table):
    judged = [judge(model, shape, measured) for shape, measured in table.items()]
    return sum(one[0] + WEIGHT * one[1] for one in judged if one)


def fit(model, table, prefixes):
    fitted = [i for i, name in enumerate(model.names) if any(name.startswith(prefix) for prefix in prefixes)]
    least, step = total(model, table), 0.3
    while step > 0.02:
        former = least
        for at in fitted:
            for factor in (1 + step, 1 / (1 + step)):
                value = model.values[at]
                model.set(at, value * factor)
                now = total(model, table)
                if now < least - 1e-6:
                    least = now
                    break
                model.set(at, value)
        print(f"steps of {100 * step:.0f} %: {least:.4f}", flush=True)
        step = step if former - least > 1e-3 else step / 2
    for at in fitted:
        print(f"{model.names[at]} {model.values[at]:.3g}")


def plan_text(key):
    return "{0} VS {1} BS {2} load {3} R {4} K {5} C {6} S {7}".format(*key)


def report(model, table):
    print(f"{'columns':>8} {'type':4} {'k':>2} {'loss':>7} {'error':>6}  taken; best; the model's own where "
          "it was not timed")
    losses = []
    for shape, measured in sorted(table.items(), key=lambda item: (item[0][2], item[0][3], item[0][1])):
        judged = judge(model, shape, measured)
        if not judged:
            continue
        loss, error, taken, best, own = judged
        losses.append(loss)
        rate = shape[0] * shape[1] * (4 if shape[2] == "f32" else 8) / 1e6 / measured[taken]
        print(f"{shape[1]:8} {shape[2]:4} {shape[3]:2} {100 * loss:5.1f} % {100 * error:4.1f} %  "
              f"{plan_text(taken)} ({rate:.0f} GB/s)"
              + (f"; {plan_text(best)}" if best != taken else "") + (f"; own: {plan_text(own)}" if own
                                                                     else ""))
    print(f"{len(losses)} shapes: mean loss {100 * sum(losses) / len(losses):.2f} %, largest "
          f"{100 * max(losses):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--fit", default="", help="prefixes of the constants to fit")
    parser.add_argument("--shapes", default="", help="TYPE:COLUMNS:K, only these")
    options = parser.parse_args()
    model, table = Model(options.build), timings()
    wanted = {tuple(text.split(":")) for text in options.shapes.split(",") if text}
    table = {s: m for s, m in table.items() if not wanted or (s[2], str(s[1]), str(s[3])) in wanted}
    if options.fit:
        fit(model, table, options.fit.split(","))
    report(model, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
