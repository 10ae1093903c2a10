"""Draws small problems, runs Kiln on them, and computes from what it wrote whether what it says is true.

    python tests/audit KILN [--problems N] [--seconds S] [--seed SEED] [--verbs a,b] [--devices cpu,opencl]
                            [--entrances tool,package] [--shapes N] [--only I,J] [--json FILE]

It shares nothing with what it audits: formulas stand here in long double, and where a peer answers the same
question it is asked. The entrance "package" calls the Python package in this process, which PYTHONPATH and
KILN_LIBRARY find, instead of the tool. With --shapes problems share N shapes (verb, type, sizes), so that a
device compiles few kernels. Problem I of a seed is the same wherever it is drawn: `--seed SEED --only I`,
with the other arguments, shows one again, and leaves its files. The exit code is 1 if there is a finding.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import collections
import datetime
import faulthandler
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import traceback
import typing

import numpy as np

import classes
import clusters
import decompositions
import draw
import factors
import graphs
import linear
import tables
import validation
import warned
from package import Package
from runs import Tool

VERBS = {
    **linear.VERBS,
    **classes.VERBS,
    **validation.VERBS,
    **tables.VERBS,
    **warned.VERBS,
    **clusters.VERBS,
    **graphs.VERBS,
    **factors.VERBS,
    **decompositions.VERBS,
}
PATIENCE = 120  # seconds for a problem, which takes a few at most
TOOL_ONLY = {"table", "spectral"}  # the package has no like of the one, and graphs in other forms


def give_up(index: int) -> None:
    print(f"problem {index} hangs: all threads", flush=True)
    faulthandler.dump_traceback()
    os._exit(1)


def attempt(
    arguments: argparse.Namespace, index: int, folder: pathlib.Path
) -> tuple[str, list[str], list[str]]:
    """The verb of problem `index`, what is wrong with its answers, and the commands."""
    shape = [arguments.seed, 1 << 30, index % arguments.shapes] if arguments.shapes else None
    rng = draw.Rng([arguments.seed, index], shape)
    verb = str(rng.sizes.choice(arguments.verbs))
    device = str(rng.choice(arguments.devices))
    options, kind = draw.options(rng, device)
    entrances = ["tool"] if verb in TOOL_ONLY else arguments.entrances
    entrance = str(rng.choice(entrances)) if len(entrances) > 1 else entrances[0]
    tool = Tool(arguments.tool, folder, options) if entrance == "tool" else Package(folder, options)
    try:
        with np.errstate(all="ignore"):
            found = VERBS[verb](rng, tool, kind)
    except Exception:  # a fault of the audit's own is a finding, too: it must not hide one of Kiln's
        found = [traceback.format_exc(limit=-3)]
    return verb, found, tool.commands


def parse() -> argparse.Namespace:
    names = lambda text: text.split(",")  # noqa: E731
    parser = argparse.ArgumentParser(prog="audit", description=__doc__.splitlines()[0])
    parser.add_argument("tool", nargs="?")
    parser.add_argument("--problems", type=int, default=1 << 30)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--verbs", type=names, default=sorted(VERBS))
    parser.add_argument("--devices", type=names, default=["cpu"])
    parser.add_argument("--entrances", type=names, default=["tool"])
    parser.add_argument("--shapes", type=int, default=0)
    parser.add_argument("--only", type=lambda text: [int(index) for index in text.split(",")])
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if not set(arguments.entrances) <= {"tool", "package"} or (
        "tool" in arguments.entrances and not arguments.tool
    ):
        parser.error("--entrances are tool, which needs KILN, and package")
    if "tool" not in arguments.entrances:
        arguments.verbs = [verb for verb in arguments.verbs if verb not in TOOL_ONLY]
    arguments.tool = os.path.abspath(arguments.tool) if arguments.tool else None
    if arguments.tool:  # which verifies what the package saves
        os.environ["KILN_TOOL"] = arguments.tool
    return arguments


def summary(
    arguments: argparse.Namespace,
    counts: typing.Counter[str],
    seconds: float,
    findings: list[dict[str, typing.Any]],
) -> dict[str, typing.Any]:
    return {
        "date": datetime.date.today().isoformat(),
        "seed": arguments.seed,
        "devices": arguments.devices,
        "entrances": arguments.entrances,
        "shapes": arguments.shapes or None,
        "problems": sum(counts.values()),
        "by_verb": dict(sorted(counts.items())),
        "seconds": round(seconds, 1),
        "findings": findings,
    }


def main() -> int:
    arguments = parse()
    began, findings = time.monotonic(), []
    counts: typing.Counter[str] = collections.Counter()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="audit-"))
    indices = arguments.only or range(arguments.problems)
    for index in indices:
        if time.monotonic() - began > arguments.seconds:
            break
        here = folder / str(index)
        here.mkdir()
        hang = threading.Timer(PATIENCE, give_up, [index])
        hang.daemon = True  # an interrupt ends it, too
        hang.start()
        verb, found, commands = attempt(arguments, index, here)
        hang.cancel()
        counts[verb] += 1
        if found:
            named = [command.replace(str(arguments.tool), "kiln") for command in commands]
            findings.append({"problem": index, "verb": verb, "found": found, "commands": named})
            print(
                f"problem {index} (--seed {arguments.seed} --only {index}), in {here}:\n  "
                + "\n  ".join(["; ".join(commands)[:600], *found]),
                flush=True,
            )
        else:
            shutil.rmtree(here)
    total, seconds = sum(counts.values()), time.monotonic() - began
    if arguments.json:
        arguments.json.write_text(json.dumps(summary(arguments, counts, seconds, findings), indent=1) + "\n")
    if not findings:
        shutil.rmtree(folder)
    print(
        f"audit: {total - len(findings)} passed, {len(findings)} failed (seed {arguments.seed}, "
        f"{seconds:.0f} s)"
    )
    return 1 if findings or not total else 0


sys.exit(main())
