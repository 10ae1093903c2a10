"""K-Means on the CPU: an iteration of kiln kmeans against scikit-learn, faiss-cpu and superkmeans (PyPI) from the same start, f32.

Points are drawn around K centres that overlap, so that no program is done before its last iteration. An iteration is the difference of
two runs of different length, each the least of the repeats, over the number of iterations between them; programs take turns. Time is the processor's, of all threads together (one by
default), so that a machine with other work says the same. superkmeans prunes, and is compared where it is made for, from 64 columns
on, flat and with all rows; scikit-learn's other algorithm, Elkan's bounds, goes with the images. A program that is missing is left
out. --images adds 10,000 images of 784 pixels in ten clusters, whose first ten are the start.

    python3 bench/peers/kmeans.py --kiln build/kiln --images mnist-t10k-images-idx3-ubyte.gz --json bench/results/FILE
"""
import argparse
import datetime
import gzip
import json
import os
import resource
import subprocess
import tempfile
import time

import numpy

SHAPES = [(200_000, 2, 300), (200_000, 4, 300), (200_000, 8, 100), (100_000, 32, 100), (20_000, 128, 256), (6_000, 784, 256)]
SHORT, LONG = 1, 7


def points(rows, columns, k):
    rng = numpy.random.default_rng(rows + columns + k)
    centres = 3 / columns ** 0.5 * rng.normal(size=(k, columns))
    X = (centres[rng.integers(k, size=rows)] + rng.normal(size=(rows, columns))).astype(numpy.float32)
    return X, X[rng.choice(rows, k, replace=False)]


def images(path):
    with gzip.open(path) as file:
        X = numpy.frombuffer(file.read()[16:], numpy.uint8).reshape(-1, 784).astype(numpy.float32) / 255
    return X, X[:10].copy()


def timed(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


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
    model = faiss.Kmeans(X.shape[1], len(start), niter=iterations, max_points_per_centroid=len(X), min_points_per_centroid=1)
    return timed(lambda: model.train(X, init_centroids=start))


def by_superkmeans(X, start, iterations, threads):
    from superkmeans import SuperKMeans
    model = SuperKMeans(len(start), X.shape[1], hierarchical=False, iters=iterations, sampling_fraction=1.0, max_points_per_cluster=len(X),
                        n_threads=threads, early_termination=False)
    return timed(lambda: model.train(X))


def by_kiln(kiln, folder, iterations, threads):
    command = [kiln, "kmeans", os.path.join(folder, "X.npy"), "--init", os.path.join(folder, "start.npy"), "--type", "f32", "--device", "cpu",
               "--threads", threads, "--max-iterations", iterations, "--tolerance", 1e-300, "--json", "--quiet"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads(subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result["iterations"] == iterations
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def peers_of(columns):
    found = {}
    for name, call in (("scikit-learn", by_sklearn), ("faiss-cpu", by_faiss), ("superkmeans", by_superkmeans)):
        try:
            __import__({"scikit-learn": "sklearn", "faiss-cpu": "faiss"}.get(name, name))
        except ImportError:
            continue
        if name != "superkmeans" or columns >= 64:
            found[name] = call
    return found


def measure(X, start, arguments):
    shape = (*X.shape, len(start))
    peers, least, inertia = peers_of(shape[1]), {}, {}

    def keep(name, iterations, seconds):
        least[name, iterations] = min(least.get((name, iterations), numpy.inf), seconds)

    if len(start) == 10 and "scikit-learn" in peers:
        peers["scikit-learn elkan"] = by_elkan
    with tempfile.TemporaryDirectory() as folder:
        numpy.save(os.path.join(folder, "X.npy"), X)
        numpy.save(os.path.join(folder, "start.npy"), start)
        for _ in range(arguments.repeats):
            for iterations in (SHORT, LONG):
                seconds, ours = by_kiln(arguments.kiln, folder, iterations, arguments.threads)
                keep("kiln", iterations, seconds)
            inertia["kiln"] = ours["inertia"]
            for name, call in peers.items():
                for iterations in (SHORT, LONG):
                    seconds, result = call(X, start, iterations, arguments.threads)
                    keep(name, iterations, seconds)
                if name == "scikit-learn":
                    inertia[name] = float(result)
    best = {name: (least[name, LONG] - least[name, SHORT]) / (LONG - SHORT) for name in ("kiln", *peers)}
    return ours, {"rows": shape[0], "columns": shape[1], "clusters": shape[2], "milliseconds": {name: 1e3 * value for name, value in best.items()},
                  "inertia": inertia}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kiln", default="build/kiln")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--images")
    arguments = parser.parse_args()
    results, data = [], [lambda shape=shape: points(*shape) for shape in SHAPES]
    if arguments.images:
        data.append(lambda: images(arguments.images))
    for make in data:
        ours, result = measure(*make(), arguments)
        results.append(result)
        print(f"{result['rows']} x {result['columns']}, {result['clusters']} clusters:", ", ".join(f"{name} {value:.2f} ms" for name, value in result["milliseconds"].items()), flush=True)
    found = {"benchmark": "kmeans", "date": datetime.date.today().isoformat(), "commit": arguments.commit, "device": ours["device_description"],
             "threads": arguments.threads, "results": results}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
