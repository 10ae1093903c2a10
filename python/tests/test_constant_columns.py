"""Columns whose spread is rounding count as constant: every linear model says so, and its bound belongs to
the problem that was posed."""
import json
import os
import pathlib
import shutil
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import kiln

M = 300
RNG = np.random.default_rng(4)
# 2 units of float32 at 1, in as many values as float32 has there
NEAR = (1 + 2e-7 * RNG.standard_normal(M)).astype(np.float32)
FREE = RNG.standard_normal(M).astype(np.float32)
ETA = FREE + 3 * (NEAR.astype(float) - 1) / 2e-7
Y = (ETA + 0.3 * RNG.standard_normal(M)).astype(np.float32)
COUNTS = RNG.poisson(np.exp(ETA / 4)).astype(np.float32)

MODELS = {  # and the targets; f64 keeps the column, so that its objective is the posed problem's
    "least squares": (lambda **on: kiln.Ridge(alpha=1.0, **on), Y),
    "conjugate gradient": (lambda **on: kiln.Ridge(alpha=1.0, solver="cg", **on), Y),
    "minimum norm": (lambda **on: kiln.Ridge(alpha=0.0, **on), Y),
    "gaussian": (lambda **on: kiln.GeneralizedLinearRegressor("gaussian", alpha=1e-3, **on), Y),
    "lasso": (lambda **on: kiln.Lasso(alpha=1e-3, **on), Y),
    "poisson": (lambda **on: kiln.GeneralizedLinearRegressor("poisson", alpha=1e-3, **on), COUNTS),
    "logistic": (lambda **on: kiln.LogisticRegression(C=1.0, **on), Y > 0),
    "softmax": (lambda **on: kiln.LogisticRegression(C=1.0, **on), np.digitize(Y, [-1, 1])),
    "l1": (lambda **on: kiln.LogisticRegression(C=1.0, l1_ratio=1.0, **on), Y > 0),
    "svm": (lambda **on: kiln.LinearSVC(C=1.0, **on), Y > 0),
    "svr": (lambda **on: kiln.LinearSVR(C=1.0, epsilon=0.1, **on), Y),
}


def fitted(model, X, y):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y)
    return model, [str(w.message) for w in said if "as constant" in str(w.message)]


def needs(device):
    if device == "opencl" and not any(d["name"].startswith("opencl") and d["usable"] for d in kiln.devices()):
        pytest.skip("no OpenCL device")


@pytest.mark.parametrize("device", ["cpu", "cpu*2", "opencl"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", list(MODELS))
def test_a_spread_of_rounding(name, form, device):
    needs(device)
    if device == "opencl" and (name not in ("least squares", "logistic") or form is sp.csr_matrix):
        pytest.skip("a CPU has the others: each is kernels to compile")
    make, y = MODELS[name]
    X = np.c_[FREE, NEAR, FREE ** 2, NEAR].astype(np.float32)
    for standardize in [False, True]:
        narrow, said = fitted(make(standardize=standardize, device=device), form(X), y)
        wide, nothing = fitted(make(standardize=standardize), X.astype(float), y.astype(float)
                               if y.dtype == np.float32 else y)
        assert (len(said) == 1 and "column 1 and 1 more count" in said[0] and "float64" in said[0]
                and not nothing)
        assert np.all(np.atleast_2d(narrow.coef_)[:, [1, 3]] == 0)
        assert narrow.report_.objective - narrow.optimality_gap_ <= wide.report_.objective * (1 + 1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_columns_are_no_news(form, dtype):
    """Whatever their value and the weights are: a constant is exactly that."""
    rng = np.random.default_rng(6)
    for rows in (7, 300, 5000):
        values = np.r_[0.1, 1 / 3, 1e8 / 7, -1e-5 / 3,
                       rng.standard_normal(6) * 10.0 ** rng.integers(-6, 6, 6)]
        X = np.c_[rng.standard_normal(rows), np.tile(values, (rows, 1))].astype(dtype)
        y = (X[:, 0] + rng.standard_normal(rows)).astype(dtype)
        for model, target in [(kiln.Ridge(alpha=1.0), y), (kiln.LogisticRegression(), y > y.mean())]:
            for weights in (None, rng.uniform(0, 3, rows).astype(dtype),
                            (rng.random(rows) < 0.5).astype(dtype) + (np.arange(rows) < 2)):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    model.fit(form(X), target, sample_weight=weights)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_without_an_intercept_nothing_is_left_out(form):
    X = np.c_[FREE, NEAR].astype(np.float32)
    model, said = fitted(kiln.Ridge(alpha=1.0, fit_intercept=False), form(X), Y)
    assert not said and model.coef_[1] != 0


@pytest.mark.parametrize("device", ["cpu", "cpu*2"])
@pytest.mark.parametrize("targets", [2, 3])
def test_columns_that_count_as_constant_are_one_without_an_intercept(targets, device):
    """Standardised, they have no penalty: what parts them in f32 is rounding, and no fit may live on it."""
    rng = np.random.default_rng(5)
    X = np.c_[np.full(60, 2.0), rng.standard_normal((60, 2)), 1 + 1e-7 * rng.standard_normal(60)]
    y = rng.integers(0, targets, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [kiln.LogisticRegression(C=10, standardize=True, fit_intercept=False, max_iter=50,
                                        device=where).fit(A, y)
                for where, A in [("cpu", X[:, :3]), (device, X.astype(np.float32))]]
    assert np.all(fits[1].coef_[:, 3] == 0)
    losses = [-np.log(fit.predict_proba(A)[np.arange(60), y]).mean() for fit, A in
              zip(fits, [X[:, :3], X.astype(np.float32)])]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_the_tool_names_the_column(tool, tmp_path):
    rows = "".join(f"{a!r},{b!r},{y!r}\n" for a, b, y in zip(FREE.tolist(), NEAR.tolist(), Y.tolist()))
    (tmp_path / "t.csv").write_text("free,near,y\n" + rows)
    run = subprocess.run([tool, "linreg", tmp_path / "t.csv", "--target", "y", "--l2", "1", "--type", "f32",
                          "--device", "cpu", "--json"],
                         capture_output=True, text=True, check=True)
    (said,) = json.loads(run.stdout)["warnings"]
    assert (said["name"] == "constant" and said["text"].startswith("column 'near' counts as constant")
            and said["text"] in run.stderr)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_every_fold_and_penalty(form):
    X = np.c_[FREE, NEAR].astype(np.float32)
    for model, y in [(kiln.RidgeCV(alphas=[0.1, 1.0], cv=3), Y),
                     (kiln.LogisticRegressionCV(Cs=[0.1, 1.0], cv=3), Y > 0)]:
        _, said = fitted(model, form(X), y)
        assert len(said) == 1


WAYS = {  # panels: whether X goes by in some
    "cross-validation": (["--cv", "3", "--l2", "0.1,1"], False),
    "in panels": (["--l2", "1", "--device", "cpu", "--map", "--memory", "400k"], True),
    "in panels of several devices": (["--l2", "1", "--device", "cpu*2", "--map", "--memory", "800k"], True),
    "processes": (["--l2", "1", "--device", "cpu", "--mpi"], False),
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("verb", [["linreg"], ["linreg", "--solver", "cg"], ["glm", "--family", "gaussian"]],
                         ids=" ".join)
def test_ways_through_the_rows(verb, way, tool, tmp_path):
    options, panels = WAYS[way]
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 40)).astype(np.float32)
    X[:, 7] = 1 + 2e-7 * X[:, 7]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", X[:, 0] + rng.standard_normal(4000).astype(np.float32))
    run = [tool, *verb, tmp_path / "X.npy", "--target-file", tmp_path / "y.npy", "--type", "f32", "--json",
           *options]
    env = dict(os.environ)
    if "--mpi" in options:
        plugins = sorted(pathlib.Path(tool).resolve().parent.glob("libkiln-*.so"))
        mpirun = plugins and (shutil.which(f"mpirun.{plugins[-1].stem.removeprefix('libkiln-')}")
                              or shutil.which("mpirun"))
        if not mpirun:
            pytest.skip("there is no MPI")
        run = [mpirun, "-n", "2", *run]
        env.update(KILN_MPI_PATH=str(plugins[-1]), OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    out = json.loads(done.stdout)
    assert [w["text"].split(":")[0] for w in out["warnings"]] == ["column 8 counts as constant"]
    assert (out["memory"]["panels"] > 0) == panels


@pytest.mark.parametrize("spread, kept", [(200, 3), (1800, 15)])
@pytest.mark.parametrize("name", ["t.csv", "t.npz"])
def test_a_column_of_few_numbers_in_f32_is_named(name, spread, kept, tool, tmp_path):
    """Seconds of some minutes, of which f32 has each 128th. Whole numbers that f32 has, all of them next to
    one another, and numbers far apart are not meant."""
    stamps = 1_760_000_000.0 + np.arange(spread + 1.0)
    X = np.c_[np.arange(spread + 1.0), stamps, 16_000_000.0 + np.arange(spread + 1) % 9, stamps * 1.5 // 1e8]
    assert len(np.unique(stamps.astype(np.float32))) == kept
    path = tmp_path / name
    if name == "t.csv":
        rows = "".join(",".join(map(repr, map(float, row))) + "\n" for row in X)
        path.write_text("a,stamp,c,d\n" + rows)
    else:
        sp.save_npz(path, sp.csr_matrix(X))
    column = "'stamp'" if name == "t.csv" else "2"
    for type_name in ("f32", "f64"):
        told = subprocess.run([tool, "info", path, "--type", type_name], check=True, capture_output=True,
                              text=True).stderr
        assert (f"column {column} keeps {kept} different numbers, from 1760000000 to " in told) == (
            type_name == "f32"), told
        assert "more column" not in told
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kiln.read(path, dtype="float32")
    assert any(f"column {column} keeps {kept} different numbers" in str(line.message) for line in seen)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.int64)])
def test_a_column_of_few_numbers_is_named_where_float32_is_asked_for(form):
    """float32 and float64 that were given, and whole numbers that float32 has, are no news."""
    X = form(np.c_[np.arange(1.0, 501), 1_760_000_000.0 + np.arange(500), 16_000_000.0 + np.arange(500) % 9])
    with pytest.warns(UserWarning, match="column 1 keeps 5 of 500 different numbers in float32") as seen:
        kiln.matrix(X, "cpu", dtype=np.float32)
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kiln.matrix(X, "cpu", dtype=np.float64)
        kiln.matrix(X, "cpu")
        kiln.matrix(X.astype(np.float32), "cpu", dtype=np.float32)
        kiln.matrix(form(np.eye(3)), "cpu", dtype=np.float32)


STAMPS = 1_760_000_001.0 + np.arange(12) % 4  # seconds, of which f32 knows each 128th


@pytest.mark.parametrize("name", ["t.csv", "t.npy", "t.npz", "t.mtx", "t.svm"])
def test_a_column_that_f32_cannot_tell_apart_is_named(name, tool, tmp_path):
    """All verbs that read X say so; a column that is constant in the file, 0.1 in f32, is not meant."""
    X = np.c_[np.arange(12.0), STAMPS, np.full(12, 0.1)]
    path = tmp_path / name
    if name == "t.csv":
        path.write_text("a,stamp,c\n" + "".join(f"{a:.0f},{b:.0f},{c}\n" for a, b, c in X))
    elif name == "t.svm":
        path.write_text("".join(f"0 1:{a} 2:{b} 3:{c}\n" for a, b, c in X))
    elif name == "t.mtx":
        path.write_text("%%MatrixMarket matrix array real general\n12 3\n"
                        + "".join(f"{value}\n" for value in X.T.ravel()))
    else:
        (np.save if name == "t.npy" else lambda to, A: sp.save_npz(to, sp.csr_matrix(A)))(path, X)
    column = "'stamp'" if name == "t.csv" else "2"
    for verb in (["info"], ["kmeans", "-k", "2", "--device", "cpu"]):
        for type_name in ("f32", "f64"):
            run = [tool, verb[0], path, *verb[1:], "--type", type_name]
            told = subprocess.run(run, check=True, capture_output=True, text=True).stderr
            assert ((f"column {column} is 1760000000 in every row as f32 has it" in told)
                    == (type_name == "f32"))
            assert "more column" not in told
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kiln.read(path, dtype="float32")
    assert any(f"column {column} is 1760000000 in every row" in str(line.message) for line in seen)
