#!/usr/bin/env python3
"""Models that the tool trains on a GPU against those of the processor: every verb, dense and sparse data;
predictions, authorities or, of classifiers, the objective side by side, and the seconds of each.

usage: gpu_cli.py --kiln KILN [--device cuda] [--rows N]
Fails where two answers differ by more than 1e-5 of the largest.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

SEED, LIMIT = 5, 1e-5
VERBS = [("linreg", "real", ["--l2", "1"]), ("logreg", "sign", ["--l2", "1"]),
         ("logreg", "sign", ["--l1", "1"]), ("logreg", "label", ["--l2", "1"]),
         ("glm", "count", ["--family", "poisson", "--l2", "1"]), ("svm", "sign", ["--l2", "1"]),
         ("svm", "real", ["--regression", "--l2", "1"])]


def write_svm(path, X, y):
    with open(path, "w", encoding="ascii") as file:
        for row, target in zip(X, y):
            entries = " ".join(f"{j + 1}:{row[j]:.6g}" for j in np.flatnonzero(row))
            file.write(f"{target:.9g} {entries}\n")


def make(folder, rows, cols, share):
    """Files of the same X with targets of four kinds."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((rows, cols)) * (rng.random((rows, cols)) < share)
    X[:, -1] += 1
    score = X @ rng.standard_normal(cols) / np.sqrt(cols * share)
    targets = {"real": score + 0.1 * rng.standard_normal(rows),
               "sign": np.where(score + rng.standard_normal(rows) > 0, 1, -1),
               "label": np.digitize(score + 0.5 * rng.standard_normal(rows), [-0.5, 0.5]),
               "count": rng.poisson(np.exp(0.3 * np.clip(score, -5, 5)))}
    for name, y in targets.items():
        write_svm(f"{folder}/{name}.svm", X, y)
    return folder


def call(command, parse=True):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout) if parse else done.stdout


def trained(kiln, device, verb, data, more, model):
    report = call([kiln, verb, data, "--device", device, "--json", "--quiet", "-o", model] + more)
    if verb == "hits":
        return np.array(sorted(vertex["value"]
                               for vertex in report["authorities"])), report["seconds"]["solve"]
    if verb == "logreg" or data.endswith("sign.svm"):
        return np.array([report["trace"][-1]["objective"]]), report["seconds"]["solve"]
    text = call([kiln, "predict", model, data, "--device", "cpu", "--quiet"], parse=False)
    return np.array([line.split()[0] for line in text.splitlines() if line[:1] in "-.0123456789"],
                    float), report["seconds"]["solve"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=20000)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for kind, cols, share in (("dense", 28, 1.0), ("sparse", 2000, 0.01)):
            os.mkdir(f"{folder}/{kind}")
            make(f"{folder}/{kind}", options.rows, cols, share)
            runs += [(kind, verb, f"{folder}/{kind}/{target}.svm", more) for verb, target, more in VERBS]
        links = np.random.default_rng(SEED).zipf(1.5, (options.rows * 5, 2)) % options.rows
        np.savetxt(f"{folder}/links.edges", links, "%d")
        runs.append(("graph", "hits", f"{folder}/links.edges", []))
        for kind, verb, data, more in runs:
            answers = [trained(options.kiln, device, verb, data, more, f"{folder}/model.kiln")
                       for device in ("cpu", options.device)]
            (want, cpu), (got, gpu) = answers
            differs = np.abs(got
                             - want).max() / np.abs(want).max() if got.shape == want.shape and want.size else np.inf
            wrong = not differs <= LIMIT
            failed += wrong
            print(f"{kind:6} {verb:6} {os.path.basename(data):10} {' '.join(more):26} {want.size:7} answers "
                  f"differ by {differs:.1e}, "
                  f"{cpu:.4f} s and {gpu:.4f} s{'  WRONG' if wrong else ''}", flush=True)
    print(f"{len(runs) - failed} of {len(runs)} runs alike")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
