#!/usr/bin/env python3
"""The end of K-Means at its defaults, beside scikit-learn: the mean inertia over seeds, one start each.

usage: kmeans_starts.py [--seeds 10] [--threads 1] > bench/results/cpu2-kmeans-starts.json
Data: normal blobs in 10 columns whose centres are `apart` standard deviations apart, 8 to 200 of them, and
scikit-learn's digits. Three epochs of batches of 256 for MiniBatchKMeans. A ratio below 1 says that Kiln ends
lower. Quality, not time: any machine will do.
"""
import argparse
import json
import warnings

import kiln
import numpy as np
import sklearn
import sklearn.cluster
from sklearn.datasets import load_digits

BLOBS = [(8, 20), (8, 6), (20, 20), (20, 6), (50, 20), (50, 6), (100, 20), (100, 3), (200, 20), (200, 6)]


def data():
    for k, apart in BLOBS:
        random = np.random.default_rng(k + 1000 * apart)
        centres = random.normal(size=(k, 10)) * apart / np.sqrt(2 * 10)
        yield f"blobs, {apart} apart", k, centres[random.integers(0, k,
                                                                  4000)] + random.normal(size=(4000, 10))
    yield "digits", 10, load_digits().data


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--seeds", type=int, default=10)
    seeds = range(parse.parse_args().seeds)
    warnings.simplefilter("ignore")
    rows = []
    for name, k, X in data():
        batches = {"batch_size": 256, "n_init": 1}
        epochs = -(-3 * len(X) // 256)  # Kiln counts batches, scikit-learn epochs
        ours = {"kmeans": lambda s: kiln.KMeans(k, n_init=1, random_state=s),
                "parallel": lambda s: kiln.KMeans(k, init="k-means||", n_init=1, random_state=s),
                "batches": lambda s: kiln.MiniBatchKMeans(k, random_state=s, max_iter=epochs, **batches)}
        theirs = {"kmeans": lambda s: sklearn.cluster.KMeans(k, n_init=1, random_state=s),
                  "batches": lambda s: sklearn.cluster.MiniBatchKMeans(k, random_state=s, max_iter=3,
                                                                       **batches)}
        inertia = {}
        for side, estimators in (("kiln", ours), ("sklearn", theirs)):
            for what, make in estimators.items():
                inertia[side, what] = float(np.mean([-make(s).fit(X).score(X) for s in seeds]))
        row = {"data": name, "rows": len(X), "columns": X.shape[1], "clusters": k}
        for what in ours:
            row[what] = round(inertia["kiln", what] / inertia["sklearn", "kmeans" if what == "parallel"
                                                              else what], 4)
        rows.append(row)
    print(json.dumps({"what": "mean inertia over seeds at the defaults, Kiln's over scikit-learn's; "
                              "parallel: k-means|| over its "
                      "k-means++", "seeds": len(seeds), "kiln": kiln.__version__,
                      "scikit-learn": sklearn.__version__, "rows": rows},
                     indent=1))


if __name__ == "__main__":
    main()
