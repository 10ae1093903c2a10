"""Implicit ALS: kiln als against implicit (PyPI), time to an equal objective on the same entries.

Both minimise 1/2 sum_ui c_ui (p_ui - a_u.b_i)^2 + l2/2 (||A||^2 + ||B||^2), f32, three steps of conjugate
gradient a row. Runs take turns; the least time counts. The objectives are recomputed here in f64. DATA: lists
"user item item ..." a line (LightGCN's form).

    python3 bench/peers/als.py --kiln build/kiln ../shared/data/ratings/ml-1m.implicit.train.txt.gz --json FILE
"""
import argparse
import datetime
import gzip
import json
import os
import subprocess
import tempfile
import time

import numpy
import scipy.sparse

ALPHA, L2 = 40.0, 0.01


def read(path):
    users, items = [], []
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        for line in file:
            user, *rest = line.split()
            users += [int(user)] * len(rest)
            items += map(int, rest)
    X = scipy.sparse.csr_matrix((numpy.ones(len(users), numpy.float32), (users, items)))
    X.sort_indices()
    return X


def objective(X, A, B):
    A, B = A.astype(float), B.astype(float)
    rows = numpy.repeat(numpy.arange(X.shape[0]), numpy.diff(X.indptr))
    d = numpy.einsum("ek,ek->e", A[rows], B[X.indices])
    c = 1 + ALPHA * X.data.astype(float)
    everything = numpy.sum((A.T @ A) * (B.T @ B))
    return (everything + numpy.sum(c * (1 - d) ** 2 - d * d) + L2 * (numpy.sum(A * A) + numpy.sum(B * B))) / 2


def by_implicit(X, factors, iterations, threads):
    import implicit.cpu.als
    model = implicit.cpu.als.AlternatingLeastSquares(factors=factors, regularization=L2, alpha=1.0,
                                                     iterations=iterations, num_threads=threads,
                                                     random_state=1, use_cg=True)
    confidence = X.copy()
    confidence.data = 1 + ALPHA * confidence.data
    start = time.perf_counter()
    model.fit(confidence, show_progress=False)
    seconds = time.perf_counter() - start
    return objective(X, numpy.asarray(model.user_factors), numpy.asarray(model.item_factors)), seconds


def by_kiln(kiln, path, factors, iterations, threads):
    command = [kiln, "als", path, "--implicit", "--factors", factors, "--alpha", ALPHA, "--l2", L2, "--type",
               "f32", "--device", "cpu", "--threads", threads, "--max-iterations", iterations, "--tolerance",
               1e-12, "--json", "--quiet"]
    process = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE)
    result = json.loads(process.stdout)
    return [(row["objective"], row["seconds"]) for row in result["trace"]], result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--kiln", default="build/kiln")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    X = read(arguments.data)
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "X.npz")
        scipy.sparse.save_npz(path, X, compressed=False)
        for _ in range(arguments.repeats):
            theirs.append(by_implicit(X, arguments.factors, arguments.iterations, arguments.threads))
            trace, result = by_kiln(arguments.kiln, path, arguments.factors, 2 * arguments.iterations,
                                    arguments.threads)
            goal = theirs[-1][0]
            ours.append(next(((o, s, i + 1) for i, (o, s) in enumerate(trace) if o <= goal * (1 + 1e-6)),
                             (*trace[-1], None)))
    row = {
        "data": os.path.basename(arguments.data), "rows": X.shape[0], "columns": X.shape[1],
        "nnz": int(X.nnz), "factors": arguments.factors, "threads": arguments.threads,
        "implicit_iterations": arguments.iterations, "implicit_objective": theirs[0][0],
        "implicit_seconds": min(seconds for _, seconds in theirs), "kiln_objective": ours[0][0],
        "kiln_seconds": min(seconds for _, seconds, _ in ours), "kiln_iterations": ours[0][2],
        "device": result["device_description"], "date": datetime.date.today().isoformat(),
        "commit": arguments.commit,
    }
    row["times_faster"] = row["implicit_seconds"] / row["kiln_seconds"]
    print(json.dumps(row, indent=1))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(row, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
