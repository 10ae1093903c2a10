"""A newcomer's first minutes with Python, timed: clone, environment, pip install, a model of the shipped
flights.

    python3 bench/newcomer.py [--json FILE]

Nothing that an earlier build has left is used; what pip loads comes from the network, or its cache. Processor
time is that of all programs, which two cores share, the time on the clock that of this machine with whatever
else it does.
"""
import argparse
import datetime
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = """
import kiln
flights = kiln.read("data/flights.csv.gz", target="arr_delay")
print("R2", kiln.Ridge().fit(flights.X, flights.y).score(flights.X, flights.y))
"""


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    environment = dict(os.environ, CCACHE_DISABLE="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder, "kiln")
        steps = {"clone": (folder, ["git", "clone", "-q", str(ROOT), "kiln"]),
                 "environment": (clone, ["python3", "-m", "venv", ".venv"]),
                 "install": (clone, [".venv/bin/pip", "install", "-q", ".[sklearn]"]),
                 "model": (clone, [".venv/bin/python", "-c", MODEL])}
        rows = []
        for name, (where, command) in steps.items():
            begin, before = time.perf_counter(), processor()
            subprocess.run(command, cwd=where, env=environment, check=True)
            rows.append({"step": name, "seconds": time.perf_counter() - begin,
                         "processor_seconds": processor() - before})
            print("{step:12} {seconds:6.1f} s, processor {processor_seconds:6.1f} s".format(**rows[-1]),
                  flush=True)
        commit = subprocess.check_output(["git", "-C", clone, "rev-parse", "--short", "HEAD"],
                                         text=True).strip()
    total = {key: sum(row[key] for row in rows) for key in ("seconds", "processor_seconds")}
    print("{:12} {seconds:6.1f} s, processor {processor_seconds:6.1f} s".format("all", **total))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "from a clone to a first model in Python", "commit": commit,
                       "date": datetime.date.today().isoformat(), "cores": os.cpu_count(), **total,
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
