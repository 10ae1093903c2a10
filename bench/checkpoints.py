"""Runs on one device that are cut at limits of iterations, and killed, and go on: whether they end at the
same bits. And what a checkpoint of large factors takes.

usage: checkpoints.py KILN DEVICE OUT.json [COMMIT]
"""
import concurrent.futures
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time

KILN, DEVICE, OUT = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
COMMIT = sys.argv[4] if len(sys.argv) > 4 else ""
ROWS = 500_000  # of the large factors
RUNS = {
    "hits": ["hits", "g.edges", "--tolerance", "1e-13"],
    "pagerank": ["pagerank", "g.edges", "--tolerance", "1e-14"],
    "linreg": ["linreg", "number.svm", "--solver", "cg", "--no-preconditioner"],
    "logreg": ["logreg", "two.svm", "--l2", "1e-3"],
    "softmax": ["logreg", "three.svm", "--l2", "1e-3"],
    "kmeans": ["kmeans", "points.csv", "-k", "40", "--tolerance", "1e-12"],
    "als": ["als", "counts.mtx", "--factors", "8", "--l2", "0.1", "--tolerance", "1e-12"],
    "sfa": ["sfa", "counts.mtx", "--factors", "8", "--tolerance", "1e-12"],
    "lda": ["lda", "counts.mtx", "--topics", "5", "--tolerance", "1e-12"],
    "gap": ["gap", "counts.mtx", "--topics", "5", "--tolerance", "1e-12"],
    "mds": ["mds", "few.csv", "--tolerance", "1e-12"],
}
MOST = 60  # iterations


def make_data():
    r = random.Random(3)
    with open("g.edges", "w") as file:
        for i in range(3000):
            file.writelines(f"{i} {min(int(r.paretovariate(0.7)), 2999)} {r.random():.3f}\n"
                            for _ in range(6))
    files = {name: open(f"{name}.svm", "w") for name in ("number", "two", "three")}
    for _ in range(4000):
        x = [r.gauss(0, 1) for _ in range(30)]
        eta = sum(0.4 * value * (j % 5 - 2) for j, value in enumerate(x)) + r.gauss(0, 1)
        row = " ".join(f"{j + 1}:{value * 10 ** (j % 4):.5f}" for j, value in enumerate(x))
        for name, target in (("number", f"{eta:.5f}"), ("two", eta > 0), ("three", (eta > -1) + (eta > 1))):
            files[name].write(f"{target if name == 'number' else int(target)} {row}\n")
    for file in files.values():
        file.close()
    for name, rows in (("points", 3000), ("few", 250)):
        with open(f"{name}.csv", "w") as file:
            file.write("a,b,c,d,e,f,g,h\n")
            file.writelines(",".join(f"{r.gauss(i % 7 * (j % 3 - 1), 1.3):.4f}" for j in range(8)) + "\n"
                            for i in range(rows))
    entries = [(u, i, r.randint(1, 5)) for u in range(1, 301) for i in range(1, 201) if r.random() < 0.15]
    write_matrix("counts.mtx", 300, 200, entries)
    write_matrix("wide.mtx", ROWS, 1000, [(i + 1, i % 1000 + 1, i % 5 + 1) for i in range(ROWS)])


def write_matrix(name, rows, columns, entries):
    with open(name, "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{rows} {columns} {len(entries)}\n")
        file.writelines(f"{u} {i} {x}\n" for u, i, x in entries)


def words(command, *more):
    return [KILN, *command, "--device", DEVICE, "--deterministic", "--quiet", "--json", *map(str, more)]


def run(command, *more):
    result = subprocess.run(words(command, *more), capture_output=True, text=True, timeout=120)
    if result.returncode:
        sys.exit(f"{command}: {result.stderr}")
    return json.loads(result.stdout)


def numbers(path):
    """A model file's, without its texts, some of which are times."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()
    places = {name: about["data_offsets"] for name, about in header.items() if name != "__metadata__"}
    return {name: data[begin:end] for name, (begin, end) in places.items()}


def keeping(name):
    state = f"{name}.ckpt"
    return ["-o", f"{name}.part", "--checkpoint", state, "--checkpoint-every", "1e-9",
            *(["--resume", state] if os.path.exists(state) else [])]


def cut_and_kill(name):
    command, model, source, kills, pieces, at = RUNS[name], f"{name}.whole", random.Random(1), 0, 0, 1
    iterations = run(command, "--max-iterations", MOST, "-o", model)["iterations"]
    while True:
        part = run(command, "--max-iterations", min(at, MOST), *keeping(name))
        pieces += 1
        if part["converged"] or at >= MOST:
            break
        at = at + 1 if at < 3 else at * 3
    same = numbers(f"{name}.part") == numbers(model)
    if os.path.exists(f"{name}.ckpt"):
        os.remove(f"{name}.ckpt")
    began = time.time()
    run(command, "--max-iterations", MOST, "-o", model)
    seconds = time.time() - began
    for _ in range(2):
        process = subprocess.Popen(words(command, "--max-iterations", MOST, *keeping(name)),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds * (0.5 + 0.5 * source.random()))
        kills += process.poll() is None
        process.kill()
        process.wait()
    last = run(command, "--max-iterations", MOST, *keeping(name))
    return name, {"iterations": iterations, "resumed_iterations": part["iterations"], "pieces": pieces,
                  "same_bits_in_pieces": same, "kills": kills,
                  "went_on_after": last["checkpoint"]["resumed_after"],
                  "same_bits_after_kills": numbers(f"{name}.part") == numbers(model)}


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_data()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = dict(pool.map(cut_and_kill, RUNS))
        about = run(["als", "wide.mtx"], "--factors", 128, "--type", "f32", "--tolerance", "1e-300",
                    "--max-iterations", 6, "--checkpoint", "wide.ckpt", "--checkpoint-every",
                    "1e-9")["checkpoint"]
        found["cost"] = {"bytes": about["bytes"], "written": about["written"],
                         "seconds_a_write": about["seconds"] / about["written"]}
        os.chdir("/")
    with open(OUT, "w") as file:
        json.dump({"device": DEVICE, "date": str(datetime.date.today()), "commit": COMMIT, "runs": found},
                  file, indent=1)
        file.write("\n")
    for name, about in found.items():
        print(name, *(f"{key}={value}" for key, value in about.items()))


if __name__ == "__main__":
    main()
