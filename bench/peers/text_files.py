#!/usr/bin/env python3
"""Reading text: the command `kiln info FILE` against pyarrow and polars on the same bytes, in turns.

The files are answer.py's, of random numbers, words and links. Kiln's seconds are those of the whole command,
which also describes the columns; a peer's, in a process of its own, those of its reading alone. Wall and
processor seconds are the least of the turns.

usage: text_files.py --build BUILD [--threads N] [--scale S] [--repeat N] [--json FILE]
"""
import argparse
import datetime
import json
import os
import sys
import tempfile

import numpy as np
from answer import FILES, missing, run

# File: format, lines to skip, separator, whether it has a header. LIBSVM's lines are fields of words to
# pyarrow.
KINDS = {"table.csv": ("csv", 0, ",", True), "links.txt": ("edges", 0, "\t", False),
         "ratings.tsv": ("ratings", 0, "\t", True), "docword.txt": ("docword", 3, " ", False),
         "rows.svm": ("libsvm", 0, "\n", False)}
PEERS = {"pyarrow": """import pyarrow, pyarrow.csv as pc
pyarrow.set_cpu_count(THREADS)
head = pc.ReadOptions(skip_rows=SKIP, autogenerate_column_names=not HEADER)
read = lambda: pc.read_csv(FILE, head, pc.ParseOptions(delimiter=SEPARATOR) if SEPARATOR != "\\n" else pc.ParseOptions(delimiter="\\x01"))
""", "polars": """import polars
read = lambda: polars.read_csv(FILE, has_header=HEADER, separator=SEPARATOR if SEPARATOR != "\\n" else "\\x01", skip_rows=SKIP)
"""}
CLOCK = """import json, resource, time
used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
wall, cpu = time.perf_counter(), used()
table = read()
print(json.dumps([time.perf_counter() - wall, used() - cpu]))
"""


def measure(options, folder, file):
    name, skip, separator, header = KINDS[file]
    path = f"{folder}/{file}"
    FILES[file](folder, options.scale, np.random.default_rng(options.seed))
    head = f"FILE, SKIP, SEPARATOR, HEADER, THREADS = {path!r}, {skip}, {separator!r}, {header}, {options.threads}\n"
    commands = {"kiln": [f"{options.build}/kiln", "info", path, "--format", name, "--threads",
                         str(options.threads), "--device", "cpu", "-q"]}
    commands.update({peer: [sys.executable, "-c", head + code + CLOCK] for peer, code in PEERS.items()
                     if not missing([peer])})
    environment = dict(os.environ, POLARS_MAX_THREADS=str(options.threads),
                       OMP_NUM_THREADS=str(options.threads))
    best = {}
    for _ in range(options.repeat):
        for reader, command in commands.items():
            wall, cpu, output = run(command, environment, 600)
            if reader != "kiln":
                wall, cpu = json.loads(output)
            before = best.get(reader, (wall, cpu))
            best[reader] = (min(before[0], wall), min(before[1], cpu))
    megabytes = os.path.getsize(path) / 1e6
    print(f"{name:13} {megabytes:6.1f} MB " + "  ".join(f"{reader} {wall:.3f} s, {cpu:.3f} of processors"
                                                        for reader, (wall, cpu) in best.items()),
          flush=True)
    return {"format": name, "megabytes": round(megabytes, 1),
            "readers": {reader: {"wall_seconds": round(wall, 4), "cpu_seconds": round(cpu, 4)}
                        for reader, (wall, cpu) in best.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(options, folder, file) for file in KINDS]
    if options.json:
        from cpu_mmchain import processor
        result = {"benchmark": "reading text", "device": processor(),
                  "date": datetime.date.today().isoformat(), "commit": options.commit,
                  "threads": options.threads, "scale": options.scale, "repeat": options.repeat,
                  "seed": options.seed, "load_average": os.getloadavg()[0], "rows": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
