"""Each number that a model file keeps of its fit is changed, one at a time: kiln verify must see it."""
import copy
import json
import subprocess

import numpy as np
import pytest

from kiln._arrays import Matrix, device
from kiln._library import check, lib, text
from kiln._load import _tensors, open_model

# What no code can find again from the file and its data: how the run went, and bounds, of which a larger one is true as well.
UNSEEN = {"iterations", "residual", "optimality_gap", "setbacks", "relocated", "skipped", "gap", "error_bound", "eigenvalue_error", "seconds", "zero_factors",
          "alpha_moves", "l2", "mean", "test_rmse", "test_perplexity"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Tables, ratings, counts and links."""
    folder, rng = tmp_path_factory.mktemp("verified"), np.random.default_rng(3)
    m = 80
    x, z = rng.normal(size=m), rng.normal(size=m)
    amount, weights = np.exp(0.4 * x + 0.3 * rng.normal(size=m)) + 0.05, rng.uniform(0.5, 2, m)
    columns = {"x": x, "z": z, "n": 2 * x - z + rng.normal(size=m), "p": amount, "c": rng.poisson(np.exp(0.5 + 0.4 * x)),
               "k": (x + rng.normal(size=m) > 0).astype(int), "t": np.digitize(x + rng.normal(size=m), [-1, 1]), "w": weights}
    table = np.column_stack(list(columns.values()))
    np.savetxt(folder / "table.csv", table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    np.savetxt(folder / "points.csv", rng.normal(size=(60, 2)) + 4 * rng.integers(0, 3, (60, 1)), delimiter=",", header="a,b", comments="", fmt="%.17g")
    with open(folder / "ratings.tsv", "w") as file:
        for u in range(20):
            for i in range(15):
                if (u * 7 + i * 3) % 4:
                    file.write(f"u{u}\ti{i}\t{1 + (u * i + u) % 5}\n")
    with open(folder / "links.edges", "w") as file:
        for a in range(30):
            for b in {(a * 7 + 3) % 30, (a * a + 1) % 30, (a + 1) % 30} - {a}:
                file.write(f"{a} {b}\n")
    return folder


FEATURES = ["--features", "x,z"]
MODELS = {
    "linreg": ("table.csv", ["linreg", "--target", "n", *FEATURES]),
    "weighted linreg": ("table.csv", ["linreg", "--target", "n", "--weights", "w", "--l2", "1", *FEATURES]),
    "gaussian": ("table.csv", ["glm", "--target", "n", "--standard-errors", *FEATURES]),
    "gamma": ("table.csv", ["glm", "--target", "p", "--family", "gamma", "--standard-errors", "--weights", "w", *FEATURES]),
    "inverse gaussian": ("table.csv", ["glm", "--target", "p", "--family", "inverse-gaussian", "--standard-errors", *FEATURES]),
    "poisson": ("table.csv", ["glm", "--target", "c", "--family", "poisson", "--standard-errors", "--weights", "w", *FEATURES]),
    "negative binomial": ("table.csv", ["glm", "--target", "c", "--family", "negative-binomial", "--alpha", "0.5", "--standard-errors", *FEATURES]),
    "tweedie": ("table.csv", ["glm", "--target", "p", "--family", "tweedie", "--variance-power", "1.5", "--standard-errors", *FEATURES]),
    "binomial": ("table.csv", ["glm", "--target", "k", "--family", "binomial", "--standard-errors", *FEATURES]),
    "probit": ("table.csv", ["glm", "--target", "k", "--family", "binomial", "--link", "probit", "--standard-errors", "--no-intercept", *FEATURES]),
    "f32": ("table.csv", ["glm", "--target", "p", "--family", "gamma", "--standard-errors", "--type", "f32", *FEATURES]),
    "penalised": ("table.csv", ["glm", "--target", "c", "--family", "poisson", "--l1", "1", *FEATURES]),
    "logreg": ("table.csv", ["logreg", "--target", "k", *FEATURES]),
    "balanced": ("table.csv", ["logreg", "--target", "k", "--class-weight", "balanced", "--weights", "w", *FEATURES]),
    "softmax": ("table.csv", ["logreg", "--target", "t", *FEATURES]),
    "svm": ("table.csv", ["svm", "--target", "k", *FEATURES]),
    "svr": ("table.csv", ["svm", "--target", "n", "--regression", *FEATURES]),
    "kmeans": ("points.csv", ["kmeans", "--clusters", "3"]),
    "spherical kmeans": ("points.csv", ["kmeans", "--clusters", "3", "--spherical"]),
    "kmeans f32": ("points.csv", ["kmeans", "--clusters", "3", "--type", "f32"]),
    "mds": ("points.csv", ["mds", "--dimensions", "1", "--max-iterations", "50"]),
    "als": ("ratings.tsv", ["als", "--factors", "2", "--format", "ratings"]),
    "sfa": ("ratings.tsv", ["sfa", "--factors", "2", "--format", "ratings"]),
    "gap": ("ratings.tsv", ["gap", "--topics", "2", "--format", "ratings"]),
    "lda": ("ratings.tsv", ["lda", "--topics", "2", "--format", "ratings"]),
    "hits": ("links.edges", ["hits"]),
    "pagerank": ("links.edges", ["pagerank"]),
}


def numbers(value, path=()):
    """The places of all numbers within a JSON value."""
    if isinstance(value, dict):
        return [place for key, inner in value.items() for place in numbers(inner, (*path, key))]
    if isinstance(value, list):
        return [place for i, inner in enumerate(value) for place in numbers(inner, (*path, i))]
    return [path] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def changed(value, place, part):
    made = inner = copy.deepcopy(value)
    for key in place[:-1]:
        inner = inner[key]
    old = inner[place[-1]]
    inner[place[-1]] = old + 1 if old == int(old) and abs(old) < 100 else old * (1 + part)
    return made


@pytest.mark.parametrize("kind", list(MODELS))
def test_every_number_is_seen(kind, files, tool, tmp_path):
    name, arguments = MODELS[kind]
    data, path, other = files / name, tmp_path / "m.kiln", tmp_path / "other.kiln"
    subprocess.run([tool, arguments[0], data, *arguments[1:], "-o", path, "--device", "cpu", "-q"], check=True, capture_output=True)

    def verdict(file):
        form = ["--format", "ratings"] if data.suffix == ".tsv" else []
        return subprocess.run([tool, "verify", file, data, "-q", "--json", *form], capture_output=True, text=True)

    sound = verdict(path)
    assert sound.returncode == 0, sound.stdout + sound.stderr

    def fails(what, change):
        model = open_model(path)
        change(model)
        check(lib.kiln_model_save(model, str(other).encode()))
        judged = verdict(other)
        assert judged.returncode == 4, (kind, what, judged.stdout, judged.stderr)

    seen, whole = 0, open_model(path)
    for key in ("metrics", "report"):
        kept = text(lib.kiln_model_text(whole, key.encode()))
        value = json.loads(kept) if kept else {}
        for place in numbers(value):
            if place[0] in UNSEEN:
                continue
            new = json.dumps(changed(value, place, 1e-3 if "f32" in kind else 1e-6)).encode()
            fails((key, place), lambda model, key=key, new=new: check(lib.kiln_model_set_text(model, key.encode(), new)))
            seen += 1
    assert seen
    where, tensors = device("cpu"), _tensors(whole)
    for tensor, columns in (("standard_errors", (0,)), ("clusters", (0, 1, 2))):
        for place in [(i, j) for i in range(len(tensors.get(tensor, ()))) for j in columns]:
            for part in (1.01, 2):
                values = tensors[tensor].copy()
                values[place] *= part
                fails((tensor, place), lambda model, tensor=tensor, values=values:
                      where.call(lib.kiln_model_set_tensor, model, tensor.encode(), Matrix(values, where).pointer))
