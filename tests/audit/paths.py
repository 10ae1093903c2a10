"""Paths of penalties: the model of a penalty ten times as strong is the start of the next one, as kiln_path
and --warm-start have it. What it says of itself is judged like any model's.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from problems import Problem, judge_bound, judge_fit, refused
from runs import Tool

PART = 0.4  # of the problems: the last thing that is drawn of one


def stronger(arguments: list[object]) -> list[object]:
    """The same with both penalties ten times as strong."""
    made = list(arguments)
    for i, name in enumerate(made[:-1]):
        if name in ("--l1", "--l2"):
            made[i + 1] = 10 * float(str(made[i + 1]))
    return made


def follow(rng, tool: Tool, verb: str, problem: Problem, loss, y: np.ndarray) -> list[str]:
    if not tool.starts_warm or rng.random() > PART:
        return []
    found: list[str] = []
    before = tool.run(verb, problem.file, *stronger(problem.arguments), "-o", "start.kiln")
    if refused(before, found):
        return found
    run = tool.run(verb, problem.file, *problem.arguments, "--warm-start", "start.kiln", "-o", "path.kiln")
    if refused(run, found):
        return found
    tensors = tool.model("path.kiln").tensors
    w, b = tensors["W"][:, 0], tensors.get("b", np.zeros((1, 1)))[0, 0]
    found += judge_fit(problem, loss, w, b, y, None, run.out["converged"], f"{verb}, started warm")
    return found + judge_bound(problem, [(loss, w, b, y)], run)
