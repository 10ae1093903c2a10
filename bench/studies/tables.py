"""Tables of many levels, columns and commas: how long `kiln info` takes, and its memory against the file's
size.

usage: tables.py KILN [--json FILE]

Two cores. A process's peak begins with its parent's size, so that a small process begins each kiln; what
reading a tiny file takes is taken off.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

COLUMNS, LEVELS, REPEATS = 100000, 300000, 5
RUNNER = ("import os, sys, time; null = os.open(os.devnull, os.O_RDWR); start = time.perf_counter()\n"
          "to = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]\n"
          "pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=to)\n"
          "_, status, usage = os.wait4(pid, 0)\n"
          "print(time.perf_counter() - start, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status))\n")


def tables(folder):
    source = random.Random(2)
    rows = (f"id{i * 7919 % 300007},{source.randrange(100)},{source.randrange(2)}\n" for i in range(LEVELS))
    texts = {"300,000 text levels": "id,x,y\n" + "".join(rows),
             "100,000 named columns": "\n".join(",".join(cells)
                                                for cells in ([f"column_{i}" for i in range(COLUMNS)],
                                                              ["1"] * COLUMNS, ["2"] * COLUMNS)) + "\n",
             "100,000 text columns of one level": "\n".join(",".join(cells)
                                                            for cells in ([f"{i:x}" for i in range(COLUMNS)],
                                                                          ["a"] * COLUMNS)) + "\n",
             "a line of 99,999 commas": "," * (COLUMNS - 1) + "\n", "a name and 99,999 commas": "x" + ","
             * (COLUMNS - 1) + "\n"}
    for number, (what, text) in enumerate(texts.items()):
        path = os.path.join(folder, f"{number}.csv")
        with open(path, "w") as file:
            file.write(text)
        yield what, path


def run(kiln, path, *more):
    line = [sys.executable, "-I", "-S", "-c", RUNNER, kiln, "info", path, "--device", "cpu", "--threads", "2",
            "--quiet", *more]
    seconds, peak, code = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), int(peak), int(code)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("--json")
    options = parser.parse_args()
    kiln, results = os.path.abspath(options.kiln), []
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-2:])
    with tempfile.TemporaryDirectory() as folder:
        tiny = os.path.join(folder, "tiny.csv")
        with open(tiny, "w") as file:
            file.write("a,b\n1,2\n")
        nothing = run(kiln, tiny)[1]
        for what, path in tables(folder):
            for more in ([], ["--json"]):
                runs, size = [run(kiln, path, *more) for _ in range(REPEATS)], os.path.getsize(path)
                peak = max(one[1] for one in runs) - nothing
                results.append({"what": what, "json": bool(more), "file_bytes": size,
                                "seconds": min(one[0] for one in runs),
                                "all_seconds": [round(one[0], 4) for one in runs], "peak_bytes": peak,
                                "times_file": peak / size, "exit_code": runs[0][2]})
                print(f"{what}{' --json' if more else ''}: {results[-1]['seconds']:.3f} s, {peak / size:.1f} "
                      "times the file")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"benchmark": "kiln info on tables", "date": time.strftime("%Y-%m-%d"), "cores": 2,
                       "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
