#!/usr/bin/env python3
"""From file to answer: whole commands, from a process's start to its end, beside peers that do the same job
from the same file.

Writes files of random numbers, words and links from a seed, then runs each job several times, Kiln and its
peers taking turns, every time in a process of its own. Wall and processor seconds are the least of the turns;
of Kiln also its own account of where they went. Peers: pandas, polars and pyarrow with scikit-learn,
liblinear-train, implicit, networkx, igraph; those that are not installed are named and left out. One that takes
longer than --patience is stopped and said to.

usage: answer.py --build BUILD [--device cpu|cuda] [--threads N] [--scale S] [--repeat N] [--only JOB[,JOB]] [--json FILE]
"""
import argparse
import datetime
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

# ------------------------------------------------------------------------------------------------------ files

CSV_ROWS, NUMBERS, MATRIX_ROWS, RATINGS, LINKS, DOCUMENTS, SVM_ROWS, POINTS = 200_000, 20, 1_000_000, 2_000_000, 1_000_000, 20_000, 100_000, 2_000


def write_lines(path, head, columns, form, separator):
    """A line for each entry of the columns, by a format each."""
    template = separator.join(form) + "\n"
    with open(path, "w", encoding="ascii") as file:
        file.write(head)
        for begin in range(0, len(columns[0]), 100_000):
            parts = [column[begin:begin + 100_000].tolist() for column in columns]
            file.write("".join(template % row for row in zip(*parts)))


def write_csv(folder, scale, rng):
    rows = int(CSV_ROWS * scale)
    X = rng.standard_normal((rows, NUMBERS))
    carrier, city = rng.integers(0, 40, rows), rng.integers(0, 1000, rows)
    eta = X @ rng.standard_normal(NUMBERS) / 4 + .1 * (carrier % 5)
    columns = [X[:, j] for j in range(NUMBERS)] + [carrier, city,
                                                   (rng.random(rows) < 1 / (1 + np.exp(-eta))).astype(int),
                                                    rng.poisson(np.exp(.3 * eta.clip(-6, 6))),
                                                   eta + rng.standard_normal(rows)]
    names = [f"x{j}" for j in range(NUMBERS)] + ["carrier", "city", "y", "count", "value"]
    write_lines(f"{folder}/table.csv", ",".join(names) + "\n", columns,
                ["%.4f"] * NUMBERS + ["c%d", "city%d", "%d", "%d", "%.4f"], ",")


def write_matrix(folder, scale, rng):
    rows = int(MATRIX_ROWS * scale)
    X = rng.standard_normal((rows, 28), dtype=np.float32)
    np.save(f"{folder}/x.npy", X)
    np.save(f"{folder}/y.npy", (X[:, :5].sum(1) > rng.standard_normal(rows)).astype(np.float32))
    np.save(f"{folder}/points.npy", X[:int(POINTS * scale ** .5)])


def write_ratings(folder, scale, rng):
    count = int(RATINGS * scale)
    columns = [rng.integers(0, max(count // 150, 10), count), (5000 ** rng.random(count)).astype(int),
               rng.integers(1, 6, count)]
    write_lines(f"{folder}/ratings.tsv", "user\titem\trating\n", columns, ["%d"] * 3, "\t")


def write_links(folder, scale, rng):
    count = int(LINKS * scale)
    vertices = max(count // 20, 10)
    columns = [rng.integers(0, vertices, count), (vertices ** rng.random(count)).astype(int)]
    write_lines(f"{folder}/links.txt", "", columns, ["%d"] * 2, "\t")


def write_documents(folder, scale, rng):
    documents, words = int(DOCUMENTS * scale), 10_000
    pairs = np.unique(np.repeat(np.arange(documents), 80) * words
                      + (words ** rng.random(80 * documents)).astype(int) % words)
    columns = [pairs // words + 1, pairs % words + 1, rng.integers(1, 5, len(pairs))]
    write_lines(f"{folder}/docword.txt", f"{documents}\n{words}\n{len(pairs)}\n", columns, ["%d"] * 3, " ")


def write_libsvm(folder, scale, rng):
    rows, each = int(SVM_ROWS * scale), 40
    col = np.sort(rng.integers(0, 500, (rows, each)), axis=1) + 500 * np.arange(each) % 20_000 + 1
    value = rng.standard_normal((rows, each))
    y = np.where(value[:, :5].sum(1) > rng.standard_normal(rows), 1, -1)
    with open(f"{folder}/rows.svm", "w", encoding="ascii") as file:
        for i in range(rows):
            entries = {int(j): x for j, x in zip(col[i], value[i])}
            file.write(f"{y[i]:+d} " + " ".join(f"{j}:{x:.5g}" for j, x in sorted(entries.items())) + "\n")


FILES = {"table.csv": write_csv, "x.npy": write_matrix, "points.npy": write_matrix,
         "ratings.tsv": write_ratings, "links.txt": write_links, "docword.txt": write_documents,
         "rows.svm": write_libsvm}

# ------------------------------------------------------------------------------------------------------- jobs

READ_CSV = {"pandas": "import pandas as pd\nt = pd.read_csv(FILE)\nnames = t.columns\n"
                      "col = lambda n: t[n].to_numpy()\n",
            "polars": "import polars as pl\nt = pl.read_csv(FILE)\nnames = t.columns\n"
                      "col = lambda n: t[n].to_numpy()\n",
            "pyarrow": "import pyarrow.csv as pc\nt = pc.read_csv(FILE)\nnames = t.column_names\n"
                       "col = lambda n: t[n].to_numpy()\n"}
TABLE = """import numpy as np, scipy.sparse as sp
from sklearn.preprocessing import OneHotEncoder
numbers = np.column_stack([col(n) for n in names if n.startswith("x")])
words = np.column_stack([np.asarray(col(n), dtype=object) for n in ("carrier", "city")])
X = sp.hstack([numbers, OneHotEncoder(drop="first").fit_transform(words)], format="csr")
"""
MATRIX = 'import numpy as np\nX = np.load(FILE)\ny = np.load(FOLDER + "/y.npy")\n'
COUNTS = """import numpy as np, pandas as pd, scipy.sparse as sp
t = pd.read_csv(FILE, sep=" ", skiprows=3, header=None).to_numpy()
X = sp.csr_matrix((t[:, 2].astype(float), (t[:, 0] - 1, t[:, 1] - 1)))
"""
IGRAPH = "import igraph\ng = igraph.Graph.Read_Edgelist(FILE, directed=True)\n"
GRAPH = "import networkx as nx\ng = nx.read_edgelist(FILE, create_using=nx.DiGraph)\n"
IMPLICIT = """import numpy as np, pandas as pd, scipy.sparse as sp
from implicit.als import AlternatingLeastSquares
t = pd.read_csv(FILE, sep="\\t").to_numpy()
X = sp.csr_matrix((t[:, 2].astype(np.float32), (t[:, 0], t[:, 1])))
AlternatingLeastSquares(factors=64, iterations=15, num_threads=THREADS, use_gpu=False).fit(X, show_progress=False)
"""


def of_table(fit):
    return {name: ([name, "sklearn"], read + TABLE + fit) for name, read in READ_CSV.items()}


def others(*names):
    return [word for name in names for word in ("--ignore", name)]


# Job: file, Kiln's arguments (FOLDER: that of the files), peers: packages they need and what they run.
JOBS = {
    "linreg csv": ("table.csv", ["linreg", "table.csv", "--target", "value"] + others("y", "count"),
                   of_table("from sklearn.linear_model import Ridge\nRidge(alpha=1.0).fit(X, col('value'))\n")),
    "logreg csv": ("table.csv", ["logreg", "table.csv", "--target", "y"] + others("count", "value"),
                   of_table("from sklearn.linear_model import LogisticRegression\n"
                            "LogisticRegression(max_iter=1000).fit(X, col('y'))\n")),
    "glm poisson csv": ("table.csv", ["glm", "table.csv", "--target", "count", "--family", "poisson"]
                        + others("y", "value"),
                        of_table("from sklearn.linear_model import PoissonRegressor\n"
                                 "PoissonRegressor(alpha=1e-6, max_iter=1000).fit(X, col('count'))\n")),
    "svm csv": ("table.csv", ["svm", "table.csv", "--target", "y"] + others("count", "value"),
                of_table("from sklearn.svm import LinearSVC\nLinearSVC(dual=False).fit(X, col('y'))\n")),
    "logreg npy": ("x.npy", ["logreg", "x.npy", "--target-file", "FOLDER/y.npy"],
                   {"sklearn": (["sklearn"],
                                MATRIX
                                + "from sklearn.linear_model import LogisticRegression\n"
                                  "LogisticRegression().fit(X, y)\n")}),
    "linreg npy": ("x.npy", ["linreg", "x.npy", "--target-file", "FOLDER/y.npy"],
                   {"sklearn": (["sklearn"],
                                MATRIX + "from sklearn.linear_model import Ridge\nRidge().fit(X, y)\n"),
                    "numpy": ([],
                              MATRIX
                              + "X = np.column_stack([X, np.ones(len(X), X.dtype)])\n"
                                "np.linalg.solve(X.T @ X, X.T @ y)\n")}),
    "kmeans npy": ("x.npy", ["kmeans", "x.npy", "-k", "50", "--seed", "1", "--max-iterations", "30"],
                   {"sklearn": (["sklearn"], "import numpy as np\nfrom sklearn.cluster import KMeans\n"
                                "KMeans(50, n_init=1, max_iter=30, random_state=1).fit(np.load(FILE))\n")}),
    "als": ("ratings.tsv", ["als", "ratings.tsv", "--implicit", "--factors", "64", "--max-iterations", "15",
                            "--seed", "1"],
            {"implicit": (["implicit", "pandas"], IMPLICIT)}),
    "lda": ("docword.txt", ["lda", "docword.txt", "--factors", "50", "--max-iterations", "20", "--seed", "1"],
            {"sklearn": (["sklearn", "pandas"],
                         COUNTS + "from sklearn.decomposition import LatentDirichletAllocation\n"
                         "LatentDirichletAllocation(50, max_iter=20, learning_method='batch', "
                         "n_jobs=THREADS, random_state=1).fit(X)\n")}),
    "gap": ("docword.txt", ["gap", "docword.txt", "--factors", "50", "--max-iterations", "20", "--seed", "1"],
            {"sklearn KL-NMF": (["sklearn", "pandas"], COUNTS + "from sklearn.decomposition import NMF\n"
                                "NMF(50, solver='mu', beta_loss='kullback-leibler', init='random', "
                                "max_iter=20, tol=0, random_state=1).fit(X)\n")}),
    "pagerank": ("links.txt", ["pagerank", "links.txt"],
                 {"networkx": (["networkx"], GRAPH + "nx.pagerank(g)\n"),
                  "igraph": (["igraph"], IGRAPH + "g.pagerank()\n")}),
    "hits": ("links.txt", ["hits", "links.txt"],
             {"networkx": (["networkx"], GRAPH + "nx.hits(g, max_iter=1000)\n"),
              "igraph": (["igraph"], IGRAPH + "g.hub_score()\ng.authority_score()\n")}),
    "mds": ("points.npy", ["mds", "points.npy", "--max-iterations", "50", "--seed", "1"],
            {"sklearn": (["sklearn"], "import numpy as np\nfrom sklearn.manifold import MDS\n"
                         "MDS(n_init=1, max_iter=50, eps=0, random_state=1).fit(np.load(FILE))\n")}),
    "logreg libsvm": ("rows.svm", ["logreg", "rows.svm"],
                      {"sklearn": (["sklearn"],
                                   "from sklearn.datasets import load_svmlight_file\n"
                                   "from sklearn.linear_model import LogisticRegression\n"
                                   "X, y = load_svmlight_file(FILE)\nLogisticRegression(max_iter=1000).fit(X, y)\n"),
                       "liblinear-train": (["liblinear-train"], None)}),
}
WRITES = {"linreg", "logreg", "glm", "svm", "kmeans", "als", "lda", "gap", "mds"}  # verbs with a model

# ---------------------------------------------------------------------------------------------------- running


def run(command, environment, patience):
    """Wall seconds, processor seconds, output; None for all: it was stopped. What fails ends the
    benchmark."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() - began > patience:
                process.kill()
                os.wait4(process.pid, 0)
                process.returncode = -9
                return None
            time.sleep(.002)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)[:300]}: exit {process.returncode}: "
                             f"{errors.read().decode()[-600:]}")
        return wall, usage.ru_utime + usage.ru_stime, output.read().decode()


def missing(packages):
    return [name for name in packages if not (shutil.which(name) if name == "liblinear-train"
                                              else importlib.util.find_spec(name))]


def commands(options, folder, job):
    """Name and command of Kiln and of the job's peers that are there; the peers that are not."""
    file, arguments, peers = JOBS[job]
    path, absent = f"{folder}/{file}", {}
    kiln = [f"{options.build}/kiln"] + [path if word == file else word.replace("FOLDER", folder)
                                        for word in arguments]
    if arguments[0] in WRITES:
        kiln += ["-o", f"{folder}/model"]
    found = [("kiln", kiln + ["--device", options.device, "--threads", str(options.threads), "--json", "-q"])]
    for name, (packages, code) in peers.items():
        lacks = missing(packages)
        if lacks:
            absent[name] = lacks
        elif code is None:
            found.append((name, ["liblinear-train", "-s", "0", "-q", path, f"{folder}/liblinear.model"]))
        else:
            head = f"FILE, FOLDER, THREADS = {path!r}, {folder!r}, {options.threads}\n"
            found.append((name, [sys.executable, "-W", "ignore", "-c", head + code]))
    return found, absent


def measure(options, folder, job):
    found, absent = commands(options, folder, job)
    environment = dict(os.environ, **{name: str(options.threads) for name in
                                      ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS",
                                       "LOKY_MAX_CPU_COUNT")})
    best, account = {}, {}
    for _ in range(options.repeat):
        for name, command in found:
            if name in best and best[name] is None:
                continue
            done = run(command, environment, options.patience)
            if done is None:
                best[name] = None
                continue
            wall, cpu, output = done
            if name == "kiln" and (name not in best or wall < best[name][0]):
                told = json.loads(output)
                account = {"seconds": told.get("seconds"), "iterations": told.get("iterations"),
                           "converged": told.get("converged")}
            before = best.get(name) or (wall, cpu)
            best[name] = (min(before[0], wall), min(before[1], cpu))
    told = {name: {"wall_seconds": round(times[0], 3), "cpu_seconds": round(times[1], 3)} if times
            else {"longer_than": options.patience}
            for name, times in best.items()}
    told["kiln"].update(account)
    return {"job": job, "file": JOBS[job][0],
            "megabytes": round(os.path.getsize(f"{folder}/{JOBS[job][0]}") / 1e6, 1), "runs": told,
            "left_out": absent}


def tell(row):
    kiln = row["runs"]["kiln"]
    parts = " ".join(f"{name} {value:.2f}" for name, value in (kiln.get("seconds") or {}).items()
                     if value >= .005)
    rest = ", ".join(f"{name} {run['wall_seconds']:.2f}" if "wall_seconds" in run
                     else f"{name} > {run['longer_than']:g}"
                     for name, run in row["runs"].items() if name != "kiln")
    mine = f"{kiln['wall_seconds']:7.2f}" if "wall_seconds" in kiln else f"> {kiln['longer_than']:g}"
    print(f"{row['job']:16} {row['megabytes']:7.1f} MB {mine} s ({parts})  {rest}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--scale", type=float, default=1.0,
                        help="size of the files; 10 is what an H200 deserves")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--patience", type=float, default=60, help="seconds that one run may take")
    parser.add_argument("--only", help="jobs, separated by commas")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    jobs = options.only.split(",") if options.only else list(JOBS)
    rows, made = [], set()
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            write = FILES[JOBS[job][0]]
            if write not in made:
                write(folder, options.scale, np.random.default_rng(options.seed))
                made.add(write)
            rows.append(measure(options, folder, job))
            tell(rows[-1])
    absent = {name: lacks for row in rows for name, lacks in row["left_out"].items()}
    for name, lacks in absent.items():
        print(f"left out: {name}, as there is no {' and no '.join(lacks)}")
    if options.json:
        from cpu_mmchain import processor
        result = {"benchmark": "from file to answer", "device": processor(), "kiln_device": options.device,
                  "date": datetime.date.today().isoformat(), "commit": options.commit,
                  "threads": options.threads, "scale": options.scale, "repeat": options.repeat,
                  "seed": options.seed, "load_average": os.getloadavg()[0], "rows": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
