"""Each entry of a model file is changed or taken out, one at a time: kiln verify must see it."""
import copy
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kiln
from kiln._arrays import Matrix, device
from kiln._library import check, ffi, lib
from kiln._load import _tensors, _texts, open_model

# Attributes that the file and its data do not tell, each with its reason; a change of others must be seen.
WAYS = "how the result was reached; what it is does not depend on that"
OVER = "what happened on the way; the run is over"
BOUND = "a bound, of which a larger one is true as well"
ARRAY = "a model of an array has no names"
UNSEEN = {
    **dict.fromkeys(["device", "options.tolerance", "options.max_iterations", "options.preconditioner",
                     "options.solver", "options.steps", "options.init", "options.restarts", "options.seed",
                     "options.batch", "options.patience", "options.algorithm", "options.delay",
                     "options.decay", "options.layout", "options.iterations", "options.learn_alpha"], WAYS),
    **dict.fromkeys(["report.iterations", "report.setbacks", "report.relocated", "report.skipped",
                     "report.alpha_moves"], OVER),
    **dict.fromkeys(["report.optimality_gap", "report.gap", "report.error_bound", "report.eigenvalue_error",
                     "report.orthogonality", "report.side_gain"], BOUND),
    **dict.fromkeys(["columns removed", "rows removed", "vertices removed", "schema removed"], ARRAY),
    **dict.fromkeys(["options.standardize", "options.ties", "options.unweighted", "options.weighted",
                     "options.dangling", "options.confidence", "options.epsilon"],
                    "it has no part in these data's result"),
    "schema.ignored": "columns that took no part",
    **dict.fromkeys(["tensor total removed", "tensor variance removed"], "they may be unknown"),
    "report.isolated": "a warning's cause, which follows from the data",
    "report.zero_factors": "a warning's cause, by a measure of its own",
    "cross_validation removed": "a model may have been trained without",
    "cross_validation": "scores are of models that nobody has any more; what follows from them is seen",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Tables, ratings, counts and links."""
    folder, rng = tmp_path_factory.mktemp("verified"), np.random.default_rng(3)
    m = 80
    x, z = rng.normal(size=m), rng.normal(size=m)
    amount, weights = np.exp(0.4 * x + 0.3 * rng.normal(size=m)) + 0.05, rng.uniform(0.5, 2, m)
    columns = {"x": x, "z": z, "n": 2 * x - z + rng.normal(size=m), "p": amount,
               "c": rng.poisson(np.exp(0.5 + 0.4 * x)), "k": (x + rng.normal(size=m) > 0).astype(int),
               "t": np.digitize(x + rng.normal(size=m), [-1, 1]), "w": weights}
    table = np.column_stack(list(columns.values()))
    rows = [",".join([*(f"{value:.17g}" for value in row), "yes" if row[5] else "no"]) for row in table]
    (folder / "table.csv").write_text("\n".join([",".join([*columns, "g"]), *rows]) + "\n")
    np.savetxt(folder / "points.csv", rng.normal(size=(60, 2)) + 4 * rng.integers(0, 3, (60, 1)),
               delimiter=",", header="a,b", comments="", fmt="%.17g")
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
    "gamma": ("table.csv", ["glm", "--target", "p", "--family", "gamma", "--standard-errors", "--weights",
                            "w", *FEATURES]),
    "inverse gaussian": ("table.csv", ["glm", "--target", "p", "--family", "inverse-gaussian",
                                       "--standard-errors", *FEATURES]),
    "poisson": ("table.csv", ["glm", "--target", "c", "--family", "poisson", "--standard-errors", "--weights",
                              "w", *FEATURES]),
    "negative binomial": ("table.csv", ["glm", "--target", "c", "--family", "negative-binomial", "--alpha",
                                        "0.5", "--standard-errors", *FEATURES]),
    "tweedie": ("table.csv", ["glm", "--target", "p", "--family", "tweedie", "--variance-power", "1.5",
                              "--standard-errors", *FEATURES]),
    "binomial": ("table.csv", ["glm", "--target", "k", "--family", "binomial", "--standard-errors",
                               *FEATURES]),
    "probit": ("table.csv", ["glm", "--target", "k", "--family", "binomial", "--link", "probit",
                             "--standard-errors", "--no-intercept", *FEATURES]),
    "f32": ("table.csv", ["glm", "--target", "p", "--family", "gamma", "--standard-errors", "--type", "f32",
                          *FEATURES]),
    "penalised": ("table.csv", ["glm", "--target", "c", "--family", "poisson", "--l1", "1", *FEATURES]),
    "logreg": ("table.csv", ["logreg", "--target", "k", *FEATURES]),
    "named classes": ("table.csv", ["logreg", "--target", "g", *FEATURES]),
    "cross-validated": ("table.csv", ["logreg", "--target", "k", "--cv", "3", "--l2", "1,10", *FEATURES]),
    "ended early": ("table.csv", ["logreg", "--target", "t", "--max-iterations", "1", *FEATURES]),
    "balanced": ("table.csv", ["logreg", "--target", "k", "--class-weight", "balanced", "--weights", "w",
                               *FEATURES]),
    "softmax": ("table.csv", ["logreg", "--target", "t", *FEATURES]),
    "svm": ("table.csv", ["svm", "--target", "k", *FEATURES]),
    "svr": ("table.csv", ["svm", "--target", "n", "--regression", *FEATURES]),
    "kmeans": ("points.csv", ["kmeans", "--clusters", "3"]),
    "spherical kmeans": ("points.csv", ["kmeans", "--clusters", "3", "--spherical"]),
    "kmeans f32": ("points.csv", ["kmeans", "--clusters", "3", "--type", "f32"]),
    "mds": ("points.csv", ["mds", "--dimensions", "1", "--max-iterations", "50"]),
    "ordinal mds": ("points.csv", ["mds", "--dimensions", "1", "--metric", "ordinal", "--max-iterations",
                                   "50"]),
    "als": ("ratings.tsv", ["als", "--factors", "2", "--format", "ratings"]),
    "sfa": ("ratings.tsv", ["sfa", "--factors", "2", "--format", "ratings"]),
    "gap": ("ratings.tsv", ["gap", "--topics", "2", "--format", "ratings"]),
    "lda": ("ratings.tsv", ["lda", "--topics", "2", "--format", "ratings"]),
    "svd": ("points.csv", ["svd", "-k", "2"]),
    "pca": ("points.csv", ["pca", "-k", "1", "--scale"]),
    "spectral": ("links.edges", ["spectral", "-k", "2"]),
    "hits": ("links.edges", ["hits"]),
    "pagerank": ("links.edges", ["pagerank"]),
}


# Every entry of these files is changed; of the others metrics, report and tensors are.
THOROUGH = {"weighted linreg", "poisson", "balanced", "named classes", "cross-validated", "ended early",
            "softmax", "svm", "svr", "spherical kmeans", "mds", "als", "sfa", "gap", "lda", "hits",
            "pagerank"}


def leaves(value, path=()):
    """The places of all values within a JSON value."""
    if isinstance(value, dict):
        return [place for key, inner in value.items() for place in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [place for i, inner in enumerate(value) for place in leaves(inner, (*path, i))]
    return [path]


def other_than(value, place, part):
    """A value that is not this one, of a number by this part; what rounding leaves of a residual is known to
    a factor."""
    if value is None:
        return 1
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    if place[-1] == "residual":
        return value * 2 + 1e-3
    if place[-1] in ("l2", "l1"):
        return value * 2 or 0.5
    return value + 1 if value == int(value) and abs(value) < 100 else value * (1 + part)


def mutants(texts, tensors, part):
    """Names and contents of models that differ from this one in one entry, which has changed or is gone."""
    for key in sorted(texts.keys() - {"algorithm", "format", "checksum", "kiln_version"}):
        yield f"{key} removed", {k: t for k, t in texts.items() if k != key}, tensors
        whole = json.loads(texts[key]) if texts[key][0] in "{[" else None
        if whole is None:
            yield key, {**texts, key: texts[key] + "x"}, tensors
            continue
        for place in leaves(whole):
            for gone in (False, True):
                made = inner = copy.deepcopy(whole)
                for step in place[:-1]:
                    inner = inner[step]
                if inner[place[-1]] is None and not gone and key == "options":
                    continue  # an option that was not given
                if gone:
                    del inner[place[-1]]
                else:
                    inner[place[-1]] = other_than(inner[place[-1]], place,
                                                  part if key in ("metrics", "report") else 0.01)
                yield ".".join(map(str, (key, *place))) + (" removed" if gone
                                                           else ""), {**texts, key: json.dumps(made)}, tensors
    for name, values in tensors.items():
        yield f"tensor {name} removed", texts, {k: t for k, t in tensors.items() if k != name}
        places = [np.unravel_index(np.abs(values).argmax(), values.shape)]
        if name in ("standard_errors", "clusters"):
            places = list(np.ndindex(values.shape))
        for place in places:
            other = values.copy()
            other[place] = other[place] * values.dtype.type(1.01) if other[place] else 1
            yield f"tensor {name} {place}", texts, {**tensors, name: other}


def write(path, texts, tensors):
    """False where the library refuses to write such a model."""
    where, made = device("cpu"), ffi.new("kiln_model **")
    check(lib.kiln_model_create(made, texts["algorithm"].encode()))
    model = ffi.gc(made[0], lib.kiln_model_free)
    for name, values in tensors.items():
        where.call(lib.kiln_model_set_tensor, model, name.encode(), Matrix(values, where).pointer)
    for key, value in texts.items():
        if key not in ("algorithm", "format", "checksum", "kiln_version"):
            check(lib.kiln_model_set_text(model, key.encode(), value.encode()))
    try:
        check(lib.kiln_model_save(model, str(path).encode()))
    except kiln.KilnError:
        return False
    return True


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_coefficients_from_zero_on(tool, tmp_path, dtype):
    """At 0 a gradient that leads below is none, and one that leads above is."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6)).astype(dtype)
    y, weights = (X @ [2, -3, 1, 0, -1, 0.5] + rng.normal(size=80) + 3).astype(dtype), rng.random(80) + 0.2
    for name, values in (("X", X), ("y", y[:, None]), ("w", weights[:, None])):
        np.save(tmp_path / f"{name}.npy", values)

    def judged(model, weighted):
        model.save(tmp_path / "m.kiln")
        along = ["--weights-file", tmp_path / "w.npy"] if weighted else []
        done = subprocess.run([tool, "verify", tmp_path / "m.kiln", tmp_path / "X.npy", "--target-file",
                               tmp_path / "y.npy", *along], text=True, capture_output=True, check=False)
        assert done.returncode in (0, 4), done.stderr
        return [line.split()[0] for line in done.stdout.splitlines() if "DOES NOT" in line]

    for model in (kiln.Lasso(0.1, positive=True), kiln.ElasticNet(0.3, positive=True, fit_intercept=False),
                  kiln.LinearRegression(positive=True), kiln.Ridge(2, positive=True, standardize=True)):
        for weighted in (False, True):
            model.fit(X, y, sample_weight=weights if weighted else None)
            assert judged(model, weighted) == [], model
        found = model.coef_.copy()
        assert (found == 0).any()
        for j, value in ((int(np.flatnonzero(found == 0)[0]), 0.1), (int(found.argmax()), 0.0),
                         (int(np.flatnonzero(found == 0)[0]), -0.1)):
            model.coef_ = found.copy()
            model.coef_[j] = value
            assert "gradient" in judged(model, True), (model, j, value)
        model.coef_ = found
        model._told["options"] = model._told["options"].replace('"positive": true', '"positive": false')
        assert "gradient" in judged(model, True)


@pytest.mark.parametrize("model", [kiln.Ridge(2, positive=True, standardize=True),
                                   kiln.LinearRegression(positive=True, fit_intercept=False)], ids=str)
def test_positive_coefficients_of_several_targets(tool, tmp_path, model):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 5)), rng.normal(size=(60, 3))
    files = [str(tmp_path / name) for name in ("m.kiln", "X.npy", "y.npy")]
    np.save(files[1], X)
    np.save(files[2], y)
    found = model.set_params(device="cpu").fit(X, y).coef_.copy()
    for target, shift, code in ((0, 0.0, 0), (0, 0.1, 4), (2, 0.1, 4)):
        model.coef_ = found.copy()
        model.coef_[target] += shift
        model.save(files[0])
        done = subprocess.run([tool, "verify", files[0], files[1], "--target-file", files[2]], text=True,
                              capture_output=True, check=False)
        assert done.returncode == code, (target, shift, done.stdout, done.stderr)


def test_steps_by_few_pairs_are_newtons(tool, tmp_path):
    """Many rows of few columns: pairs of steps stand for the Hessian, and the report says so."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 20))
    y = (X @ rng.standard_normal(20) + rng.logistic(size=len(X)) > 0).astype(float)
    files = [str(tmp_path / name) for name in ("m.kiln", "X.npy", "y.npy")]
    np.save(files[1], X)
    np.save(files[2], y)
    done = subprocess.run([tool, "logreg", files[1], "--target-file", files[2], "-o", files[0], "--device",
                           "cpu", "--json"], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["solver"] == "newton (L-BFGS steps)"
    subprocess.run([tool, "verify", files[0], files[1], "--target-file", files[2], "-q"], check=True)


@pytest.mark.parametrize("kind", list(MODELS))
def test_every_change_is_seen(kind, files, tool, tmp_path):
    name, arguments = MODELS[kind]
    data, path = files / name, tmp_path / "m.kiln"
    subprocess.run([tool, arguments[0], data, *arguments[1:], "-o", path, "--device", "cpu", "-q"],
                   check=True, capture_output=True)

    def verdict(file):
        form = ["--format", "ratings"] if data.suffix == ".tsv" else []
        return subprocess.run([tool, "verify", file, data, "-q", "--json", *form], capture_output=True,
                              text=True)

    sound = verdict(path)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    whole = open_model(path)
    written = []
    for what, *content in mutants(_texts(whole), _tensors(whole), 1e-3 if "f32" in kind else 1e-6):
        if kind not in THOROUGH and not what.startswith(("metrics", "report", "tensor")):
            continue
        file = tmp_path / f"{len(written)}.kiln"
        if write(file, *content):
            written.append((what, file))
    assert len(written) > 15
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(pool.map(lambda entry: verdict(entry[1]), written))
    passed = [what for (what, _), run in zip(written, judged) if run.returncode == 0]
    assert not {run.returncode for run in judged} - {0, 2, 3, 4, 7}
    unexpected = [what for what in passed if what not in UNSEEN
                  and not any(what.startswith(f"{known}.") for known in ("schema.ignored",
                                                                         "cross_validation"))]
    assert not unexpected


def test_als_is_judged_by_an_exact_sweep(files, tool, tmp_path):
    """One step of CG gains little where confidences are large: that is no proof of having converged."""
    data, path = files / "ratings.tsv", tmp_path / "m.kiln"
    subprocess.run([tool, "als", data, "--implicit", "--alpha", "1e4", "--l2", "1", "--factors", "4",
                    "--steps", "1", "--tolerance", "0", "--max-iterations", "200", "-o", path, "--device",
                    "cpu", "-q"], check=True, capture_output=True)
    whole = open_model(path)
    texts = _texts(whole)
    options, report = json.loads(texts["options"]), json.loads(texts["report"])
    claims = {**texts, "options": json.dumps({**options, "tolerance": 1e-4}),
              "report": json.dumps({**report, "converged": True, "residual": 1e-4})}
    assert write(path, claims, _tensors(whole))
    found = subprocess.run([tool, "verify", path, data, "-q", "--json"], capture_output=True, text=True)
    assert found.returncode == 4, found.stdout
    residual, = (claim for claim in json.loads(found.stdout)["claims"] if claim["name"] == "residual")
    assert not residual["holds"] and residual["found"] > 1e-3


def test_the_best_constant_may_be_far_from_the_first(tool, tmp_path):
    """An inverse Gaussian's curve is flat far out: sum y e^(-2 o) / sum e^(-o) is e to the best constant."""
    rng = np.random.default_rng(5)
    o, y = rng.normal(size=50) * 4, np.exp(rng.normal(size=50) * 2)
    table = tmp_path / "far.csv"
    np.savetxt(table, np.c_[rng.normal(size=50), o, y], delimiter=",", header="x,o,y", comments="")
    mu = np.exp(o) * (y * np.exp(-2 * o)).sum() / np.exp(-o).sum()
    for kind, digits in (("f64", 1e-9), ("f32", 1e-3)):
        model = tmp_path / f"{kind}.kiln"
        words = [tool, "glm", table, "--target", "y", "--offset", "o", "--family", "inverse-gaussian",
                 "--link",
                 "log", "--l2", "0.1", "--type", kind, "--json", "-q", "-o", model]
        out = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout)
        told, right = out["metrics"]["null_deviance"], ((y - mu) ** 2 / (y * mu**2)).sum()
        np.testing.assert_allclose(told, right, rtol=digits)
        assert subprocess.run([tool, "verify", model, table, "-q"], check=False).returncode == 0
