"""Explicit ratings: the RMSE that kiln als and kiln sfa reach in five-fold cross-validation, and their time.

The ratings are cut into five parts at random (--seed), as is usual for MovieLens 100K. What is published for
biased factor models there: 0.934 (Surprise's SVD), 0.963 (its NMF), 0.944 (its baseline of means alone); a
model that does worse than the means has not been trained well. The ratings may not be given on: RATINGS is
the user's own copy.

    python3 bench/peers/movielens.py --kiln build/kiln ../shared/data/ratings/ml-100k.u.data.gz --json FILE
"""
import argparse
import datetime
import gzip
import json
import os
import random
import subprocess
import tempfile

RUNS = {
    "als, 20 factors and biases": ["als", "--factors", 20, "--l2", 10],
    "als by ccd, 20 factors and biases": ["als", "--factors", 20, "--l2", 10, "--solver", "ccd"],
    "als counted (ALS-WR), 20 factors": ["als", "--counted", "--no-biases", "--factors", 20, "--l2", 0.1],
    "sfa, 20 factors": ["sfa", "--factors", 20, "--l2", 10],
}


def folds(path, count, seed):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        lines = file.read().splitlines()
    random.Random(seed).shuffle(lines)
    for fold in range(count):
        yield [line for i, line in enumerate(lines) if i % count != fold], [line.split()
                                                                            for i, line in enumerate(lines)
                                                                            if i % count == fold]


def factors(path):
    import numpy
    arrays = numpy.load(path)
    names = [{name: i for i, name in enumerate(json.loads(arrays[key].item()))}
             for key in ("rows", "columns")]
    return arrays["A"], arrays["B"], arrays["settings"][0, 0], *names


def rmse(path, test, biases):
    """The error of predictions held between 1 and 5; the mean alone for users or items that training has not seen."""
    A, B, mean, users, items = factors(path)
    total = 0
    for user, item, rating, *_ in test:
        u, i = users.get(user), items.get(item)
        known = A.shape[1] - biases
        guess = mean
        if u is not None and i is not None:
            guess += A[u, :known] @ B[i, :known]
        if biases:
            guess += (A[u, -1] if u is not None else 0) + (B[i, -1] if i is not None else 0)
        total += (float(rating) - min(max(guess, 1), 5)) ** 2
    return (total / len(test)) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratings")
    parser.add_argument("--kiln", default="build/kiln")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data, out = os.path.join(folder, "train.tsv"), os.path.join(folder, "factors.npz")
        for title, words in RUNS.items():
            errors, seconds = [], []
            for train, test in folds(arguments.ratings, arguments.folds, arguments.seed):
                with open(data, "w") as file:
                    file.write("\n".join(train) + "\n")
                command = [arguments.kiln, *words, data, "--factors-out", out, "--device", arguments.device,
                           "--json", "--quiet"]
                result = json.loads(subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                                                   check=True).stdout)
                errors.append(rmse(out, test, biases="--no-biases" not in words))
                seconds.append(result["seconds"]["solve"])
            rows.append({"run": title, "command": "kiln " + " ".join(map(str, words)),
                         "rmse": sum(errors) / len(errors), "rmse_of_folds": errors,
                         "solve_seconds": min(seconds)})
            print(f"{title:36} RMSE {rows[-1]['rmse']:.4f}, {min(seconds):.2f} s")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"data": os.path.basename(arguments.ratings), "folds": arguments.folds,
                       "seed": arguments.seed, "device": result["device_description"],
                       "date": datetime.date.today().isoformat(), "commit": arguments.commit, "runs": rows},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
