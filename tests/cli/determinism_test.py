"""With --deterministic every verb and solver gives the same bits in each run, on any number of threads.

usage: determinism_test.py KILN [DEVICE [VERB [RUNS]]]
"""

import os
import random
import re
import subprocess
import sys
import tempfile

THREADS = (1, 2, 3, 7)
RUNS = 3


def tables(folder):
    """Data for every verb: a table of numbers, sparse rows of three and of two classes, ratings, counts, links."""
    dice = random.Random(3)
    with open(os.path.join(folder, "table.csv"), "w") as out:
        out.write("a,b,c,d,y,n,k\n")
        for _ in range(2500):
            x = [dice.gauss(j, 1) for j in range(4)]
            y = x[0] - 2 * x[1] + 0.3 * x[2] * x[3] + dice.gauss(0, 1)
            out.write(",".join(f"{v:.6f}" for v in x) + f",{y:.6f},{int(dice.expovariate(1) * 3)},{'pqr'[int(y) % 3]}\n")
    for name, classes, rows in (("two", 2, 4000), ("three", 3, 4000), ("few", 2, 300)):
        columns = 60 if rows > 300 else 900
        with open(os.path.join(folder, name + ".svm"), "w") as out:
            for _ in range(rows):
                row = sorted(dice.sample(range(1, columns), 12))
                values = [dice.gauss(0, 1) for _ in row]
                label = int(abs(sum(v * ((j % 5) - 2) for j, v in zip(row, values))) > 4) if classes == 2 else row[0] % 3
                out.write(f"{label} " + " ".join(f"{j}:{v:.5f}" for j, v in zip(row, values)) + "\n")
    with open(os.path.join(folder, "counts.mtx"), "w") as out:
        entries = sorted({(dice.randrange(300), int(120 * dice.random() ** 2)) for _ in range(6000)})
        out.write(f"%%MatrixMarket matrix coordinate real general\n300 120 {len(entries)}\n")
        out.writelines(f"{i + 1} {j + 1} {1 + (i * j) % 5}\n" for i, j in entries)
    with open(os.path.join(folder, "links.txt"), "w") as out:
        out.writelines(f"{dice.randrange(800)} {int(800 * dice.random() ** 2)}\n" for _ in range(9000))
    with open(os.path.join(folder, "wide.csv"), "w") as out:
        out.write(",".join(f"x{j}" for j in range(20)) + "\n")
        out.writelines(",".join(f"{dice.gauss(2 * (i % 7), 1):.5f}" for _ in range(20)) + "\n" for i in range(1500))
    with open(os.path.join(folder, "points.csv"), "w") as out:
        out.write("a,b,c\n")
        out.writelines(",".join(f"{dice.gauss(3 * (i % 4), 1):.5f}" for _ in range(3)) + "\n" for i in range(120))


TABLE = ("--target", "y", "--ignore", "k,n")
CASES = (
    ("linreg", "table.csv", *TABLE),
    ("linreg", "table.csv", *TABLE, "--solver", "cg"),
    ("linreg", "two.svm", "--solver", "cg"),
    ("linreg", "two.svm", "--solver", "cholesky"),
    ("linreg", "few.svm", "--l2", "1"),
    ("linreg", "table.csv", *TABLE, "--cv", "3", "--l2", "0.1,1"),
    ("logreg", "two.svm", "--l2", "1", "--solver", "newton"),
    ("logreg", "two.svm", "--l2", "1", "--solver", "dual"),
    ("logreg", "two.svm", "--l1", "3"),
    ("logreg", "three.svm", "--l2", "1", "--solver", "newton"),
    ("logreg", "three.svm", "--l2", "1", "--solver", "dual"),
    ("logreg", "three.svm", "--l1", "3"),
    ("logreg", "few.svm", "--l2", "1"),
    ("logreg", "two.svm", "--cv", "3", "--l2", "0.1,1"),
    ("svm", "two.svm", "--l2", "1", "--solver", "newton"),
    ("svm", "two.svm", "--l2", "1", "--solver", "dual"),
    ("svm", "two.svm", "--l2", "0.01", "--solver", "dual"),
    ("svm", "three.svm", "--l2", "1", "--solver", "dual"),
    ("svm", "three.svm", "--l2", "1", "--solver", "dual", "--no-intercept"),
    ("svm", "few.svm", "--l2", "0.1"),
    ("svm", "two.svm", "--cv", "3", "--l2", "0.1,1"),
    ("glm", "table.csv", "--target", "n", "--ignore", "k,y", "--family", "poisson", "--standard-errors"),
    ("glm", "two.svm", "--family", "binomial", "--l2", "1"),
    ("kmeans", "table.csv", "--ignore", "k,n", "--clusters", "7", "--seed", "3"),
    ("kmeans", "two.svm", "--clusters", "5", "--seed", "3"),
    ("kmeans", "table.csv", "--ignore", "k,n", "--clusters", "7", "--algorithm", "lloyd", "--init", "random", "--restarts", "2"),
    ("kmeans", "wide.csv", "--clusters", "7", "--algorithm", "bounds", "--init", "k-means-parallel"),
    ("kmeans", "two.svm", "--clusters", "5", "--spherical"),
    ("kmeans", "table.csv", "--ignore", "k,n", "--clusters", "7", "--batch", "256", "--seed", "3"),
    ("hits", "links.txt", "--solver", "power"),
    ("hits", "links.txt", "--solver", "lobpcg", "--type", "f32"),
    ("pagerank", "links.txt", "--layout", "csr"),
    ("pagerank", "links.txt", "--layout", "hybrid"),
    ("pagerank", "links.txt", "--layout", "balanced", "--type", "f32"),
    ("mds", "points.csv", "--seed", "2"),
    ("mds", "points.csv", "--metric", "interval", "--init", "random", "--seed", "2"),
    ("mds", "points.csv", "--metric", "ordinal", "--type", "f32"),
    ("als", "counts.mtx", "--seed", "1"),
    ("als", "counts.mtx", "--implicit", "--seed", "1"),
    ("als", "counts.mtx", "--solver", "cg", "--no-biases", "--type", "f32"),
    ("als", "counts.mtx", "--solver", "cholesky", "--seed", "1"),
    ("als", "counts.mtx", "--solver", "ccd", "--seed", "1"),
    ("sfa", "counts.mtx", "--seed", "1"),
    ("lda", "counts.mtx", "--topics", "5", "--seed", "1"),
    ("lda", "counts.mtx", "--topics", "5", "--batch", "64", "--seed", "1"),
    ("gap", "counts.mtx", "--topics", "5", "--seed", "1"),
    ("gap", "counts.mtx", "--topics", "5", "--init", "nndsvda"),
)


def model_of(kiln, folder, device, case, threads):
    """The tensors of the model; its header has no times in it."""
    verb, data, *options = case
    model = os.path.join(folder, "model.kiln")
    command = [kiln, verb, os.path.join(folder, data), *options, "-o", model, "--deterministic", "-q"]
    command += ["--device", device, *(["--threads", str(threads)] if threads else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()[-300:]}".encode()
    with open(model, "rb") as of:
        data = of.read()
    return data[8 + int.from_bytes(data[:8], "little") :]


def solvers_left_out(kiln):
    """Solvers that the tool's hint offers and no case asks for."""
    named = {(verb, value) for verb, _, *options in CASES for name, value in zip(options, options[1:]) if name == "--solver"}
    offered = set()
    for verb in {case[0] for case in CASES}:
        said = subprocess.run([kiln, verb, "-", "--solver", "?"], capture_output=True, text=True, check=False).stderr
        found = re.search(r"hint: one of ([a-z|]+)", said)
        offered |= {(verb, value) for value in found.group(1).split("|")} if found else set()
    return sorted(offered - named) if offered else ["any"]


def main(kiln, device="cpu", only="", runs=RUNS):
    left_out = solvers_left_out(kiln)
    failed = len(left_out)
    if failed:
        print("FAIL no case asks for", *left_out)
    with tempfile.TemporaryDirectory() as folder:
        tables(folder)
        for case in CASES:
            if only and case[0] != only:
                continue
            first = None
            for threads in THREADS if device.startswith("cpu") else (0,):
                for run in range(int(runs)):
                    got = model_of(kiln, folder, device, case, threads)
                    first = got if first is None else first
                    if got != first or got.startswith(b"exit "):
                        failed += 1
                        why = got.decode() if got.startswith(b"exit ") else "other bits"
                        print("FAIL", *case, f"threads {threads}, run {run}: {why}", flush=True)
                        break
    print(f"{len(CASES)} cases, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
