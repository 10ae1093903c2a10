"""K-Means on the CPU: kiln kmeans against scikit-learn, faiss-cpu and superkmeans (PyPI) from the same start.

Points are drawn around K centres that overlap, so that no program is done before its last iteration. An
iteration is the difference of two runs of different length, each the least of the repeats, over the number of
iterations between them; programs take turns, and the machine has nothing else to do. "kiln" is what a user
gets, "kiln lloyd" measures all distances. faiss and superkmeans have f32 alone. superkmeans prunes, and is
compared where it is made for, from 64 columns on, flat and with all rows. A program that is missing is left
out. --images FILE... adds images in ten clusters, whose first ten are the start, as whole runs of 45
iterations beside scikit-learn's two algorithms, Lloyd's and Elkan's bounds. Results are added to the JSON
file.

    python3 bench/peers/kmeans.py --kiln build/kiln --threads 2 --shapes 200000,4,300 --images mnist-t10k-images-idx3-ubyte.gz --json FILE
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

SHAPES = ["200000,2,300", "200000,4,300", "200000,8,100", "100000,32,100", "50000,128,1024", "6000,784,256"]
SHORT, LONG, WHOLE = 1, 7, 45


def points(rows, columns, k, dtype):
    rng = numpy.random.default_rng(rows + columns + k)
    centres = 3 / columns ** 0.5 * rng.normal(size=(k, columns))
    X = (centres[rng.integers(k, size=rows)] + rng.normal(size=(rows, columns))).astype(dtype)
    return X, X[rng.choice(rows, k, replace=False)]


def images(paths, dtype):
    parts = []
    for path in paths:
        with gzip.open(path) as file:
            parts.append(numpy.frombuffer(file.read()[16:], numpy.uint8).reshape(-1, 784))
    X = numpy.concatenate(parts).astype(dtype) / 255
    return X, X[:10].copy()


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def by_sklearn(X, start, iterations, threads, algorithm="lloyd"):
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits
    with threadpool_limits(threads):
        model = KMeans(len(start), init=start, n_init=1, max_iter=iterations, tol=0, algorithm=algorithm)
        seconds, inertia = timed(lambda: model.fit(X).inertia_)
        assert model.n_iter_ == iterations
        return seconds, inertia


def by_elkan(X, start, iterations, threads):
    return by_sklearn(X, start, iterations, threads, "elkan")


def by_faiss(X, start, iterations, threads):
    import faiss
    faiss.omp_set_num_threads(threads)
    model = faiss.Kmeans(X.shape[1], len(start), niter=iterations, max_points_per_centroid=len(X),
                         min_points_per_centroid=1)
    return timed(lambda: model.train(X, init_centroids=start))


def by_superkmeans(X, start, iterations, threads):
    from superkmeans import SuperKMeans
    model = SuperKMeans(len(start), X.shape[1], hierarchical=False, iters=iterations, sampling_fraction=1.0,
                        max_points_per_cluster=len(X), n_threads=threads, early_termination=False)
    return timed(lambda: model.train(X))


def by_kiln(kiln, folder, iterations, threads, type, *options):
    command = [kiln, "kmeans", os.path.join(folder, "X.npy"), "--init", os.path.join(folder, "start.npy"),
               "--type", type, "--device", "cpu", "--threads", threads, "--max-iterations", iterations,
               "--tolerance", 1e-300, "--json", "--quiet", *options]
    result = json.loads(subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL).stdout)
    assert result["iterations"] == iterations
    return result["seconds"]["solve"], result


def peers_of(columns, type):
    found = {}
    for name, call in (("scikit-learn", by_sklearn), ("faiss-cpu", by_faiss),
                       ("superkmeans", by_superkmeans)):
        try:
            __import__({"scikit-learn": "sklearn", "faiss-cpu": "faiss"}.get(name, name))
        except ImportError:
            continue
        if (name != "superkmeans" or columns >= 64) and (name == "scikit-learn" or type == "f32"):
            found[name] = call
    return found


def measure(X, start, lengths, peers, arguments):
    """Least seconds of each program for runs of each length, what they end with, and what Kiln says of
    itself."""
    least, inertia, skipped = {}, {}, None

    def keep(name, iterations, seconds):
        least[name, iterations] = min(least.get((name, iterations), numpy.inf), seconds)

    with tempfile.TemporaryDirectory() as folder:
        numpy.save(os.path.join(folder, "X.npy"), X)
        numpy.save(os.path.join(folder, "start.npy"), start)
        for _ in range(arguments.repeats):
            for iterations in lengths:
                for name, options in (("kiln", ()), ("kiln lloyd", ("--algorithm", "lloyd"))):
                    seconds, ours = by_kiln(arguments.kiln, folder, iterations, arguments.threads,
                                            arguments.type, *options)
                    keep(name, iterations, seconds)
                    inertia[name] = ours["inertia"]
                    skipped = ours.get("skipped") if name == "kiln" else skipped
                for name, call in peers.items():
                    seconds, result = call(X, start, iterations, arguments.threads)
                    keep(name, iterations, seconds)
                    if name.startswith("scikit-learn"):
                        inertia[name] = float(result)
    row = {"rows": X.shape[0], "columns": X.shape[1], "clusters": len(start), "type": arguments.type,
           "inertia": inertia}
    if skipped is not None:
        row["skipped"] = skipped
    return least, row, ours["device_description"]


def an_iteration(shape, arguments):
    X, start = points(*shape, arguments.dtype)
    peers = peers_of(shape[1], arguments.type)
    least, row, device = measure(X, start, (SHORT, LONG), peers, arguments)
    row["milliseconds"] = {name: 1e3 * (least[name, LONG] - least[name, SHORT]) / (LONG - SHORT)
                           for name in ("kiln", "kiln lloyd", *peers)}
    return row, device


def whole_run(paths, arguments):
    X, start = images(paths, arguments.dtype)
    peers = {name: call for name, call in (("scikit-learn", by_sklearn), ("scikit-learn elkan", by_elkan))
             if peers_of(784, "f64")}
    least, row, device = measure(X, start, (WHOLE,), peers, arguments)
    row["iterations"] = WHOLE
    row["milliseconds of a run"] = {name: 1e3 * least[name, WHOLE] for name in ("kiln", "kiln lloyd", *peers)}
    return row, device


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kiln", default="build/kiln")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--type", choices=("f32", "f64"), default="f32")
    parser.add_argument("--shapes", nargs="*", default=SHAPES, metavar="ROWS,COLUMNS,K")
    parser.add_argument("--images", nargs="*", default=[])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    arguments.dtype = numpy.float32 if arguments.type == "f32" else numpy.float64
    jobs = [lambda text=text: an_iteration(tuple(map(int, text.split(","))), arguments)
            for text in arguments.shapes]
    if arguments.images:
        jobs.append(lambda: whole_run(arguments.images, arguments))
    found = {"benchmark": "kmeans", "results": []}
    if arguments.json and os.path.exists(arguments.json):
        with open(arguments.json) as file:
            found = json.load(file)
    for job in jobs:
        row, device = job()
        times = row.get("milliseconds") or row["milliseconds of a run"]
        print(f"{row['rows']} x {row['columns']}, {row['clusters']} clusters, {row['type']}:",
              ", ".join(f"{name} {value:.2f} ms" for name, value in times.items()), flush=True)
        found["results"].append(row)
        found.update(date=datetime.date.today().isoformat(), commit=arguments.commit, device=device,
                     threads=arguments.threads)
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(found, file, indent=1)
                file.write("\n")


if __name__ == "__main__":
    main()
