"""Logistic regression and support vector machines on real data: Kiln against LIBLINEAR and scikit-learn, one
objective each.

Objectives are computed by one NumPy function from the coefficients that a solver returns, in Kiln's units.
The best of all tight runs is the optimum; a solver's time is that of its loosest tolerance of a ladder whose
objective is within 1e-6 of it, data in memory. Every run is a process of its own, peers take turns, medians
count. A run is cut off after --patience seconds: a solver that is not there by then is said not to reach the
optimum within them, and is not asked again. Ends with 1 where an optimum of Kiln's is not LIBLINEAR's or
scikit-learn's to 1e-6.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/logreg.py --data ../shared/data --threads 2 --json result.json
"""
import argparse
import datetime
import gzip
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sparse

CLOSE = 1e-6
LADDER = [10.0 ** -e for e in (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10)]
TIGHT = 1e-10

# name -> loss, l2, l1, intercept, LIBLINEAR's solver (0: none)
PROBLEMS = {"logistic": ("logistic", 1.0, 0.0, False, "0"), "squared hinge": ("hinge", 0.5, 0.0, False, "2"),
            "squared epsilon": ("epsilon", 0.5, 0.0, False, "11"), "multinomial": ("softmax", 1.0, 0.0, True,
                                                                                   "")}
PROBLEMS.update({f"logistic l1={l1:g}": ("logistic", 0.0, l1, False, "6") for l1 in (0.01, 0.1, 1.0, 10.0)})
PROBLEMS.update({f"multinomial l1={l1:g}": ("softmax", 0.0, l1, True, "") for l1 in (1.0, 10.0)})
RUNS = [("a9a", "logistic"), ("a9a", "squared hinge"), ("a9a", "squared epsilon"),
        ("agaricus", "logistic"), ("agaricus", "squared hinge"), ("higgs", "logistic"),
        ("higgs", "squared hinge"), ("higgs", "squared epsilon"), ("covtype binary", "logistic"),
        ("covtype binary", "squared hinge"), ("covtype", "multinomial"), ("digits", "multinomial"),
        ("mnist", "multinomial")]
RUNS += [(data, problem) for data in ("a9a", "agaricus", "higgs", "covtype binary", "kos", "rcv1-like",
                                      "news20-like")
         for problem in PROBLEMS if problem.startswith("logistic l1")]
RUNS += [(data, problem) for data in ("digits", "covtype") for problem in PROBLEMS
         if problem.startswith("multinomial l1")]
EPSILON = 0.1


def read_table(path, **options):
    return np.genfromtxt(gzip.open(path), delimiter=",", **options)


def documents(rows, columns, words, seed=1):
    """Rows of about that many words, drawn from Zipf's law, logarithms of their counts scaled to length 1, as
    in LIBSVM's rcv1.binary and news20.binary; labels by a sparse model, a tenth of them wrong."""
    random = np.random.default_rng(seed)
    lengths = np.maximum(1, random.lognormal(np.log(1.35 * words), 0.5, rows).astype(np.int64))
    drawn = np.exp(random.random(lengths.sum()) * np.log(columns)).astype(np.int64) - 1
    drawn = np.minimum(drawn + random.integers(0, 10, len(drawn)), columns - 1)
    counts = sparse.csr_matrix((np.ones(len(drawn)), (np.repeat(np.arange(rows), lengths), drawn)),
                               shape=(rows, columns))
    frequency = np.maximum(np.bincount(counts.indices, minlength=columns), 1)
    X = counts.copy()
    X.data = np.log1p(X.data) * np.log(rows / frequency[X.indices] + 1)
    X = sparse.diags(1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X
    model = np.where(random.random(columns) < 0.1, random.standard_normal(columns), 0)
    score = X @ model
    y = (score > np.median(score)) ^ (random.random(rows) < 0.1)
    X = sparse.csr_matrix(X)
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y.astype(float)


def load(name, folder):
    """X (CSR or dense) and labels."""
    if name in ("a9a", "agaricus"):
        from sklearn.datasets import load_svmlight_file
        X, y = load_svmlight_file(os.path.join(folder, "libsvm",
                                               {"a9a": "a9a.gz", "agaricus": "agaricus.txt.train.gz"}[name]))
        # sag and saga want no others
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X, (y > 0).astype(float)
    if name == "higgs":
        table = read_table(os.path.join(folder, "dense", "higgs_train_10k.csv.gz"), skip_header=1)
        return np.ascontiguousarray(table[:, 1:]), table[:, 0]
    if name.startswith("covtype"):  # columns scaled to unit variance: as they are, no peer gets anywhere
        table = read_table(os.path.join(folder, "dense", "covtype.20k.data.gz"))
        table = table[~np.isnan(table).any(axis=1)]
        scale = table[:, :-1].std(axis=0)
        X, y = table[:, :-1] / np.where(scale > 0, scale, 1), table[:, -1]
        return np.ascontiguousarray(X), (y == 2).astype(float) if name == "covtype binary" else y
    if name == "rcv1-like":
        return documents(20242, 47236, 74)
    if name == "news20-like":
        return documents(19996, 1355191, 455)
    if name == "kos":  # which documents have the 20th most frequent word, told by the others
        table = np.loadtxt(gzip.open(os.path.join(folder, "bow", "docword.kos.txt.gz")), skiprows=3,
                           dtype=np.int64)
        X = sparse.csr_matrix((np.log1p(table[:, 2]), (table[:, 0] - 1, table[:, 1] - 1)))
        word = np.argsort(-X.getnnz(axis=0), kind="stable")[20]
        y = np.asarray(X[:, word].todense()).ravel() > 0
        X = sparse.csr_matrix(X[:, np.arange(X.shape[1]) != word])
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X, y.astype(float)
    if name == "digits":
        from sklearn.datasets import load_digits
        return load_digits(return_X_y=True)
    with gzip.open(os.path.join(folder, "dense", "mnist-t10k-images-idx3-ubyte.gz")) as file:
        X = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 784) / 255.0
    with gzip.open(os.path.join(folder, "dense", "mnist-t10k-labels-idx1-ubyte.gz")) as file:
        return sparse.csr_matrix(X), np.frombuffer(file.read()[8:], np.uint8).astype(float)


def objective(problem, X, y, W, b):
    loss, l2, l1, _, _ = PROBLEMS[problem]
    eta = X @ W + b
    penalty = 0.5 * l2 * np.sum(W * W) + l1 * np.sum(np.abs(W))
    if loss == "softmax":
        label = np.unique(y, return_inverse=True)[1]
        top = eta.max(axis=1, keepdims=True)
        sums = np.log(np.exp(eta - top).sum(axis=1)) + top[:, 0]
        return penalty + np.sum(sums - eta[np.arange(len(y)), label])
    sign = np.where(y > 0, 1.0, -1.0)
    if loss == "logistic":
        return penalty + np.sum(np.logaddexp(0, -sign * eta[:, 0]))
    slack = (np.maximum(1 - sign * eta[:, 0], 0) if loss == "hinge"
             else np.maximum(np.abs(eta[:, 0] - sign) - EPSILON, 0))
    return penalty + 0.5 * np.sum(slack * slack)


def kiln_solver(problem, X, y, device_name, threads):
    import kiln_c as kiln
    loss, l2, l1, intercept, _ = PROBLEMS[problem]
    device = kiln.Device(device_name, threads=threads)
    k = len(np.unique(y)) if loss == "softmax" else 1
    target = np.where(y > 0, 1.0, -1.0) if loss == "epsilon" else y
    A = device.csr(X) if sparse.issparse(X) else device.dense(*X.shape, "float64", X)
    t = device.dense(len(y), 1, "float64", target)
    W, b = device.dense(X.shape[1], k, "float64"), device.dense(1, k, "float64")

    def solve(tolerance):
        if loss in ("hinge", "epsilon"):
            report = kiln.fit("svm", W, b, A, t, regression=loss == "epsilon", epsilon=EPSILON, l2=l2,
                              no_intercept=1, tolerance=tolerance)
        else:
            report = kiln.fit("logreg", W, b, A, t, l2=l2 or -1, l1=l1, no_intercept=not intercept,
                              tolerance=tolerance)
        return lambda: (W.numpy(), b.numpy(), f"{report.n_iter} steps, {report.passes} passes")
    return solve


def liblinear_solver(problem, X, y, threads):
    del threads  # it has one
    from liblinear import liblinear as api
    code, l1 = PROBLEMS[problem][4], PROBLEMS[problem][2]
    sign = np.where(y > 0, 1.0, -1.0)
    data = api.problem(sign, sparse.csr_matrix(X))

    def solve(tolerance):
        parameters = api.parameter(f"-s {code} -c {1 / l1 if l1 else 1!r} -p {EPSILON} -e {tolerance} -B -1 "
                                   "-q")
        data.set_bias(-1)
        model = api.liblinear.train(data, parameters)

        def result():
            count = model.contents.nr_feature
            w = np.array(model.contents.w[:count])
            first = model.contents.label[0] if code != "11" else 1
            return (w if first > 0 else -w)[:, None], np.zeros((1, 1)), "liblinear-official"
        return result
    return solve


def sklearn_solver(problem, X, y, name):
    from sklearn.linear_model import LogisticRegression
    _, _, l1, intercept, _ = PROBLEMS[problem]

    def solve(tolerance):
        model = LogisticRegression(C=1 / l1 if l1 else 1.0, l1_ratio=1.0 if l1 else 0.0,
                                   fit_intercept=intercept, solver=name, tol=tolerance, max_iter=20000)
        model.fit(X, y)
        return lambda: (model.coef_.T, model.intercept_ if intercept else np.zeros((1, 1)),
                        f"{np.max(model.n_iter_)} iterations")
    return solve


def peers_of(problem):
    loss, _, l1, _, code = PROBLEMS[problem]
    peers = ["kiln"] + (["liblinear"] if code else [])
    if loss == "softmax" or (loss == "logistic" and not l1):
        peers += [f"sklearn {s}" for s in ("lbfgs", "newton-cg", "newton-cholesky")]
    return peers + (["sklearn saga"] if l1 else []) + (["sklearn liblinear"] if l1 and code else [])


def child(arguments):
    """A line of JSON for each solve: one at the tightest tolerance, or rungs down to the first that reaches
    --best. No Python code runs during a solve, so that what ends one that takes too long is the signal's
    default action."""
    X, y = load(arguments.dataset, arguments.data)
    if arguments.peer == "kiln":
        solve = kiln_solver(arguments.problem, X, y, arguments.device, arguments.threads)
    elif arguments.peer == "liblinear":
        solve = liblinear_solver(arguments.problem, X, y, arguments.threads)
    else:
        solve = sklearn_solver(arguments.problem, X, y, arguments.peer.split()[1])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, arguments.patience)
    for tolerance in LADDER if arguments.best else [TIGHT]:
        start = time.perf_counter()
        result = solve(tolerance)
        seconds = time.perf_counter() - start
        W, b, note = result()
        found = {"tolerance": tolerance, "seconds": seconds, "objective": objective(arguments.problem, X, y,
                                                                                    W, b),
                 "note": note}
        found["reached"] = bool(arguments.best and found["objective"] <= arguments.best * (1 + CLOSE))
        print(json.dumps(found), flush=True)
        if found["reached"]:
            break


def ask(arguments, dataset, problem, peer, best=None):
    command = [sys.executable, os.path.abspath(__file__), "--data", arguments.data, "--device",
               arguments.device, "--threads", str(arguments.threads), "--patience", str(arguments.patience),
               "--peer", peer, "--dataset", dataset, "--problem", problem] + (["--best", repr(best)] if best
                                                                              else [])
    environment = dict(os.environ,
                       **{name: str(arguments.threads) for name in ("OMP_NUM_THREADS",
                                                                    "OPENBLAS_NUM_THREADS")})
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode == -signal.SIGALRM:
        return dict(json.loads(lines[-1]) if lines else {}, cut_off=arguments.patience)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(lines[-1])


def compare(arguments, dataset, problem):
    peers = peers_of(problem)
    tight = {peer: ask(arguments, dataset, problem, peer) for peer in peers}
    best = min(run["objective"] for run in tight.values() if "objective" in run)
    runs = {peer: [] for peer in peers if "error" not in tight[peer]}
    for _ in range(arguments.repeat):
        for peer in runs:
            if all(run.get("reached") for run in runs[peer]):
                runs[peer].append(ask(arguments, dataset, problem, peer, best))
    rows = []
    for peer in peers:
        row = {"dataset": dataset, "problem": problem, "solver": peer, **tight[peer]}
        if peer in runs:
            reached = [run["seconds"] for run in runs[peer] if run.get("reached")]
            row.update(runs[peer][-1] if "objective" not in row else {},
                       tight_seconds=row.pop("seconds", None), seconds=statistics.median(reached)
                       if len(reached) == arguments.repeat else None,
                       at_tolerance=runs[peer][-1].get("tolerance"))
            row["optimum_off"] = row["objective"] / best - 1 if "objective" in row else None
            row["cut_off"] = runs[peer][-1].get("cut_off")
        row.pop("reached", None)
        rows.append(row)
    mine = rows[0].get("seconds")
    for row in rows:
        row["times_kiln"] = row["seconds"] / mine if mine and row.get("seconds") else None
        note = row.get("error") or ("objective {objective:.10g}, off by {optimum_off:.1e}; ".format(**row)
                                    if row.get("objective") is not None else "")
        if row["times_kiln"]:
            note += "to 1e-6: {seconds:.4f} s = {times_kiln:.2f} x Kiln's".format(**row)
        elif "error" not in row:
            note += f"to 1e-6: not reached{' within %g s' % row['cut_off'] if row['cut_off'] else ''}"
        print(f"{dataset:15} {problem:16} {row['solver']:24} {note}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.path.join("..", "shared", "data"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--patience", type=float, default=30.0, help="seconds after which a run is cut off")
    parser.add_argument("--only", help="runs whose data set or problem contains this")
    parser.add_argument("--json")
    for name in ("--peer", "--dataset", "--problem"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--best", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        warnings.simplefilter("ignore")
        return child(arguments)
    rows = []
    for dataset, problem in RUNS:
        if arguments.only and arguments.only not in dataset and arguments.only not in problem:
            continue
        if dataset != "digits" and not os.path.isdir(arguments.data):
            print(f"skip {dataset}: {arguments.data} is not there")
            continue
        rows += compare(arguments, dataset, problem)
    if arguments.json:
        import sklearn
        import kiln_c as kiln
        device = kiln.Device(arguments.device)
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        with open(arguments.json, "w") as file:
            json.dump({"kiln": kiln.version, "commit": commit,
                       "date": datetime.date.today().isoformat(), "device": [device.name, device.description],
                       "threads": arguments.threads, "repeat": arguments.repeat,
                       "sklearn": sklearn.__version__, "rows": rows}, file, indent=1)
    mine = [row for row in rows if row["solver"] == "kiln"]
    off = [row for row in mine if row.get("optimum_off") is None or not abs(row["optimum_off"]) <= CLOSE]
    if off:
        sys.exit("Kiln misses the optimum of " + ", ".join(f"{row['dataset']} {row['problem']}"
                                                           for row in off))
    return None


if __name__ == "__main__":
    main()
