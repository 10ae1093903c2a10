"""With --deterministic every verb, solver, start and type gives the same bits in each run, on any number of
threads.

Each case goes through both types on each device; its runs are spread over 1, 2, 3 and 7 threads where the
device has threads. Another device may have other bits. The last line that is printed says what ran, as JSON:
./test.sh long keeps it.
"""

import argparse
import concurrent.futures
import datetime
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time

THREADS = (1, 2, 3, 7)


def tables(folder):
    """Data for every verb: a table of numbers, sparse rows of three and of two classes, ratings, counts,
    links."""
    dice = random.Random(3)
    with open(os.path.join(folder, "table.csv"), "w") as out:
        out.write("a,b,c,d,y,n,k\n")
        for _ in range(2500):
            x = [dice.gauss(j, 1) for j in range(4)]
            y = x[0] - 2 * x[1] + 0.3 * x[2] * x[3] + dice.gauss(0, 1)
            out.write(",".join(f"{v:.6f}" for v in x)
                      + f",{y:.6f},{int(dice.expovariate(1) * 3)},{'pqr'[int(y) % 3]}\n")
    for name, classes, rows in (("two", 2, 4000), ("three", 3, 4000), ("few", 2, 300)):
        columns = 60 if rows > 300 else 900
        with open(os.path.join(folder, name + ".svm"), "w") as out:
            for _ in range(rows):
                row = sorted(dice.sample(range(1, columns), 12))
                values = [dice.gauss(0, 1) for _ in row]
                label = int(abs(sum(v * ((j % 5) - 2) for j, v in zip(row, values)))
                            > 4) if classes == 2 else row[0] % 3
                out.write(f"{label} " + " ".join(f"{j}:{v:.5f}" for j, v in zip(row, values)) + "\n")
    with open(os.path.join(folder, "counts.mtx"), "w") as out:
        entries = sorted({(dice.randrange(300), int(120 * dice.random() ** 2)) for _ in range(6000)})
        out.write(f"%%MatrixMarket matrix coordinate real general\n300 120 {len(entries)}\n")
        out.writelines(f"{i + 1} {j + 1} {1 + (i * j) % 5}\n" for i, j in entries)
    with open(os.path.join(folder, "links.txt"), "w") as out:
        out.writelines(f"{dice.randrange(800)} {int(800 * dice.random() ** 2)}\n" for _ in range(9000))
    with open(os.path.join(folder, "wide.csv"), "w") as out:
        out.write(",".join(f"x{j}" for j in range(26)) + "\n")
        out.writelines(",".join(f"{dice.gauss(2 * (i % 7), 1):.5f}" for _ in range(26)) + "\n"
                       for i in range(1500))
    with open(os.path.join(folder, "positive.csv"), "w") as out:
        out.write("a,b,y\n")
        for _ in range(1500):
            a, b = dice.gauss(0, 1), dice.gauss(0, 1)
            out.write(f"{a:.6f},{b:.6f},{math.exp(0.3 * a - 0.2 * b) * dice.gammavariate(4, 0.25):.6f}\n")
    with open(os.path.join(folder, "shares.csv"), "w") as out:
        out.write("a,b,y\n")
        for _ in range(1500):
            a, b = dice.gauss(0, 1), dice.gauss(0, 1)
            mean = 1 / (1 + math.exp(0.3 * a - 0.2 * b))
            out.write(
                f"{a:.6f},{b:.6f},{min(max(dice.betavariate(4 * mean, 4 - 4 * mean), 1e-6), 1 - 1e-6):.6f}\n"
            )
    for name, width, count in (("points.csv", 3, 120), ("centres.csv", 26, 7), ("y.csv", 3, 59),
                               ("z.csv", 3, 59), ("v.csv", 1, 4000), ("users.csv", 5, 300),
                               ("items.csv", 5, 120)):
        with open(os.path.join(folder, name), "w") as out:
            out.write(",".join(f"x{j}" for j in range(width)) + "\n")
            out.writelines(",".join(f"{dice.gauss(3 * (i % 4), 1):.5f}" for _ in range(width)) + "\n"
                           for i in range(count))


TABLE = ("--target", "y", "--ignore", "k,n")
COUNTS = ("--target", "n", "--ignore", "k,y")
CLASSES = ("--target", "k", "--ignore", "n,y")
MEASURES = ("--ignore", "k,n")
CASES = (
    *(("linreg", *data, "--solver", solver) for data in (("table.csv", *TABLE), ("two.svm",))
      for solver in ("cg", "cholesky")),
    ("linreg", "few.svm", "--l2", "1"),
    ("linreg", "table.csv", *TABLE, "--cv", "3", "--l2", "0.1,1"),
    *(("logreg", data, "--l2", "1", "--solver", "newton") for data in ("two.svm", "three.svm")),
    *(("logreg", data, "--l1", "3") for data in ("two.svm", "three.svm")),
    ("logreg", "table.csv", *CLASSES, "--l2", "1"),
    ("logreg", "few.svm", "--l2", "1"),
    ("logreg", "two.svm", "--cv", "3", "--l2", "0.1,1"),
    ("svm", "two.svm", "--l2", "1", "--solver", "newton"),
    ("svm", "table.csv", *CLASSES, "--l2", "1", "--solver", "newton"),
    ("svm", "table.csv", *TABLE, "--l2", "1", "--regression"),
    ("svm", "few.svm", "--l2", "0.1"),
    ("svm", "two.svm", "--cv", "3", "--l2", "0.1,1"),
    ("glm", "table.csv", *TABLE, "--family", "gaussian"),
    ("glm", "table.csv", *COUNTS, "--family", "negative-binomial", "--alpha", "1"),
    ("glm", "table.csv", *COUNTS, "--family", "tweedie", "--variance-power", "1.5"),
    *(("glm", "positive.csv", "--target", "y", "--family", family)
      for family in ("gamma", "inverse-gaussian")),
    ("glm", "table.csv", *COUNTS, "--family", "poisson", "--standard-errors"),
    ("glm", "two.svm", "--family", "binomial", "--l2", "1"),
    ("glm", "shares.csv", "--target", "y", "--family", "beta", "--precision", "4"),
    *(("kmeans", "table.csv", *MEASURES, "-k", "7", "--seed", "3", *more)
      for more in ((), ("--batch", "256"))),
    *(("kmeans", "two.svm", "-k", "5", "--seed", "3", *more) for more in ((), ("--spherical",),
                                                                          ("--batch", "256"))),
    *(("kmeans", "two.svm", "-k", "5", "--init", init) for init in ("k-means-parallel", "random")),
    ("kmeans", "table.csv", *MEASURES, "-k", "7", "--algorithm", "lloyd", "--init", "random", "--restarts",
     "2"),
    *(("kmeans", "wide.csv", "-k", "7", "--init", init) for init in ("k-means-parallel", "centres.csv")),
    ("hits", "links.txt", "--solver", "power"),
    ("hits", "links.txt", "--solver", "lobpcg"),
    *(("pagerank", "links.txt", "--layout", layout) for layout in ("csr", "hybrid", "balanced")),
    *(("mds", "points.csv", "--metric", metric, "--seed", "2") for metric in ("ratio", "interval")),
    *(("mds", "points.csv", "--metric", "ordinal", "--ties", ties) for ties in ("primary", "secondary")),
    ("mds", "points.csv", "--init", "random", "--restarts", "2", "--seed", "2"),
    *(("als", "counts.mtx", "--solver", solver, *more) for solver in ("cg", "cholesky", "ccd")
      for more in ((), ("--no-biases",))),
    *(("als", "counts.mtx", "--implicit", "--solver", solver) for solver in ("cg", "cholesky")),
    ("sfa", "counts.mtx", "--seed", "1"),
    *(("svd", "two.svm", "-k", "6", "--solver", solver) for solver in ("krylov", "gram")),
    ("svd", "counts.mtx", "-k", "5", "--center", "--scale", "--seed", "1"),
    ("spectral", "links.txt", "-k", "3", "--seed", "1"),
    *(("pca", "wide.csv", "-k", "4", "--solver", solver) for solver in ("krylov", "gram")),
    ("lda", "counts.mtx", "--topics", "5", "--seed", "1"),
    ("lda", "counts.mtx", "--topics", "5", "--learn-alpha"),
    ("lda", "counts.mtx", "--topics", "5", "--online", "--batch", "64", "--seed", "1"),
    *(("gap", "counts.mtx", "--topics", "5", "--init", init) for init in ("random", "nndsvda")),
    ("gap", "counts.mtx", "--topics", "5", "--prior", "none", "--init", "nndsvd"),
    ("mmchain", "two.svm", "y.csv", "--v", "v.csv", "--z", "z.csv", "--beta", "0.5"),
    *(("sddmm", "counts.mtx", "users.csv", "items.csv", "--kind", kind)
      for kind in ("times", "product", "quotient", "residual")),
)
# Verbs that write a file of numbers, which has no header with times.
PRODUCTS = {"mmchain": ".csv", "sddmm": ".mtx"}
# The dual is for sparse rows in the CPU's memory, bounds are for dense ones on one device.
CPU_CASES = (
    *(("logreg", data, "--l2", "1", "--solver", "dual") for data in ("two.svm", "three.svm")),
    *(("svm", "two.svm", "--l2", l2, "--solver", "dual") for l2 in ("1", "0.01")),
    *(("svm", "three.svm", "--l2", "1", "--solver", "dual", *more) for more in ((), ("--no-intercept",))),
    ("kmeans", "wide.csv", "-k", "7", "--algorithm", "bounds"),
)


def model_of(kiln, folder, device, case, threads):
    """The tensors of the model, whose header has times in it, or all of a product."""
    verb, data, *options = case
    options = [os.path.join(folder, value) if value.endswith(".csv") else value for value in options]
    with tempfile.NamedTemporaryFile(dir=folder, suffix=PRODUCTS.get(verb, ".kiln")) as model:
        command = [kiln, verb, os.path.join(folder, data), *options, "-o", model.name, "--deterministic",
                   "-q"]
        command += ["--device", device, *(["--threads", str(threads)] if threads else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()[-300:]}".encode()
        with open(model.name, "rb") as of:
            data = of.read()
    return data if verb in PRODUCTS else data[8 + int.from_bytes(data[:8], "little") :]


def left_out(kiln):
    """The values that the tool's hints offer for an option that names a way, and no case asks for."""
    asked = {(case[0], name, value) for case in (*CASES, *CPU_CASES)
             for name, value in zip(case[2:], case[3:])}
    ways = [(verb, "--solver") for verb in sorted({case[0] for case in CASES})]
    ways += [("glm", "--family"), ("pagerank", "--layout"), ("mds", "--metric"), ("mds", "--ties"),
             ("gap", "--init"), ("sddmm", "--kind")]
    offered = set()
    for verb, option in ways:
        said = subprocess.run([kiln, verb, "-", option, "?"], capture_output=True, text=True,
                              check=False).stderr
        found = re.search(r"hint: one of ([a-z|-]+)", said)
        offered |= {(verb, option, value) for value in found.group(1).split("|")} if found else set()
    return sorted(offered - asked) if offered else ["any"]


def run_case(kiln, folder, device, case, runs):
    """Returns how a case failed, or nothing."""
    first = None
    for run in range(runs):
        threads = THREADS[run % len(THREADS)] if device.startswith("cpu") else 0
        got = model_of(kiln, folder, device, case, threads)
        first = got if first is None else first
        if got != first or got.startswith(b"exit "):
            why = got.decode() if got.startswith(b"exit ") else "other bits"
            return " ".join(case) + f" on {device}, threads {threads}, run {run}: {why}"
    return None


def first_line(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")[0].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kiln")
    parser.add_argument("--devices", default="cpu", help="separated by commas")
    parser.add_argument("--verb", default="", help="its cases alone")
    parser.add_argument("--runs", type=int, default=len(THREADS), help="of each case")
    parser.add_argument("--at-once", type=int, default=2, help="cases")
    parser.add_argument("--json", help="the file for the last line")
    arguments = parser.parse_args()
    began, counts = time.monotonic(), {}
    failures = [f"no case asks for {way}" for way in left_out(arguments.kiln)]
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(arguments.at_once) as workers,
    ):
        tables(folder)
        for device in arguments.devices.split(","):
            cases = [*CASES, *(CPU_CASES if device == "cpu" else ())]
            cases = [case for case in cases if arguments.verb in ("", case[0])]
            typed = [(*case, "--type", kind) for case in cases for kind in ("f32", "f64")]
            counts[device] = len(typed)
            found = workers.map(lambda case: run_case(arguments.kiln, folder, device, case, arguments.runs),
                                typed)  # noqa: B023
            for failure in filter(None, found):
                print("FAIL", failure, flush=True)
                failures.append(failure)
    result = {
        "date": datetime.date.today().isoformat(),
        "commit": first_line("git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short",
                             "HEAD"),
        "machine": first_line("sh", "-c", "grep -m 1 'model name' /proc/cpuinfo | cut -d: -f2"),
        "cases": counts,
        "runs": arguments.runs,
        "threads": THREADS,
        "seconds": round(time.monotonic() - began),
        "failures": failures,
    }
    print(json.dumps(result))
    if arguments.json:
        with open(arguments.json, "w") as out:
            out.write(json.dumps(result) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
