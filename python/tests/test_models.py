"""Models as files: Python's for the tool, the tool's for Python; pickles; long runs that are watched and
stopped."""
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import kiln
import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris


def estimators():
    X, y = load_diabetes(return_X_y=True)
    flowers, kinds = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[kinds]
    return {
        "ridge": (kiln.Ridge(device="cpu").fit(X, y), X),
        "poisson": (kiln.PoissonRegressor(device="cpu").fit(X, y), X),
        "tweedie": (kiln.TweedieRegressor(power=1.5, device="cpu").fit(X, y), X),
        "classes": (kiln.LogisticRegression(device="cpu").fit(flowers, kinds), flowers),
        "names": (kiln.LogisticRegression(device="cpu").fit(flowers, names), flowers),
        "svc": (kiln.LinearSVC(device="cpu").fit(flowers, kinds == 1), flowers),
        "svr": (kiln.LinearSVR(epsilon=5, device="cpu").fit(X, y), X),
        "kmeans": (kiln.KMeans(3, random_state=0, device="cpu").fit(flowers), flowers),
    }


@pytest.mark.parametrize("model", [kiln.ALS(2), kiln.SFA(2), kiln.NMF(2), kiln.NMF(2, prior="gamma"),
                                   kiln.LatentDirichletAllocation(2)],
                         ids=lambda model: type(model).__name__)
def test_factor_models_saved_and_loaded(tmp_path, model):
    X = scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(1.5, (40, 30)).astype(float))
    model.set_params(device="cpu", random_state=0).fit(X).save(tmp_path / "m.kiln")
    loaded = kiln.load(tmp_path / "m.kiln").set_params(device="cpu")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


@pytest.mark.parametrize("name", estimators())
def test_saved_and_loaded(tmp_path, name):
    estimator, X = estimators()[name]
    path = tmp_path / "model.kiln"
    estimator.save(path)
    loaded = kiln.load(path)
    assert (loaded.predict(X) == estimator.predict(X)).all()
    again = pickle.loads(pickle.dumps(estimator))
    assert (again.predict(X) == estimator.predict(X)).all()


def test_the_tool_reads_what_python_saves(tool, tmp_path):
    estimator, X = estimators()["names"]
    estimator.save(tmp_path / "m.kiln")
    np.save(tmp_path / "X.npy", X)
    subprocess.run([tool, "predict", tmp_path / "m.kiln", tmp_path / "X.npy", "-o", tmp_path / "p.txt"],
                   check=True)
    words = (tmp_path / "p.txt").read_text().split()
    assert words[-len(X):] == estimator.predict(X).tolist()


def test_python_reads_what_the_tool_saves(tool, tmp_path, data):
    table = data / "flights.csv.gz"
    subprocess.run([tool, "linreg", table, "--target", "arr_delay", "--l2", "1", "-o", tmp_path / "m.kiln",
                    "--quiet"], check=True)
    estimator = kiln.load(tmp_path / "m.kiln")
    read = kiln.read(table, target="arr_delay", model=tmp_path / "m.kiln")
    assert len(read.feature_names) == estimator.n_features_in_
    ours = kiln.Ridge(1.0, device="cpu").fit(read.X, read.y)
    np.testing.assert_allclose(estimator.predict(read.X), ours.predict(read.X), atol=1e-6)


def test_bad_files(tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("a,y\n1,2\nx,3\n")
    with pytest.raises(kiln.FileError):
        kiln.read(tmp_path / "absent.csv")
    (tmp_path / "short.svm").write_text("1 1:2 3\n")
    with pytest.raises(kiln.DataError) as caught:
        kiln.read(tmp_path / "short.svm")
    assert caught.value.line == 1 and caught.value.file.endswith("short.svm")
    with pytest.raises(kiln.KilnError):
        kiln.load(bad)


def slow():
    """A problem that takes long enough to be stopped."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(20000, 60)), rng.normal(size=20000)


def test_ctrl_c_ends_a_run():
    X, _ = slow()
    ended = threading.Event()
    # what a shell runs in the background ignores it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press():
        wait = 0.3
        while not ended.wait(wait):
            signal.raise_signal(signal.SIGINT)
            wait = 5  # Python forgets an interrupt that meets an object's __del__: as people do, again

    threading.Thread(target=press).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        try:
            kiln.KMeans(200, init="random", n_init=10000, random_state=0, device="cpu").fit(X)
        finally:
            ended.set()
            signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begin < 20


def test_a_callback_sees_the_run_and_stops_it():
    X, _ = slow()
    seen = []
    model = kiln.KMeans(20, random_state=0, device="cpu")
    model.callback = lambda row: seen.append(row) or len(seen) >= 3
    model.fit(X)
    assert len(seen) >= 3 and {"phase", "done", "objective", "residual"} <= set(seen[0])
    assert not model.converged_ and model.report_.stopped_by == "cancelled"
    model.callback = lambda row: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.fit(X)


def test_not_converging_is_a_warning():
    from sklearn.exceptions import ConvergenceWarning

    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter ended it.*raise max_iter"):
        kiln.LogisticRegression(max_iter=1, device="cpu").fit(X, y)


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_verbose_shows_progress(capsys, monkeypatch, has_tqdm):
    if not has_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    X, y = slow()
    kiln.LogisticRegression(device="cpu", verbose=1).fit(X, y > 0)
    shown = capsys.readouterr().err
    assert "objective" in shown and ("iterations" in shown) == has_tqdm


def test_import_is_lazy():
    """scikit-learn is loaded for an estimator only."""
    code = ("import kiln, sys; kiln.matrix; print('sklearn' in sys.modules); kiln.Ridge; "
            "print('sklearn' in sys.modules)")
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False", "True"]


def test_the_environment_has_the_tool():
    """The command `kiln` that comes with the package is the tool, of the same version."""
    command = pathlib.Path(sys.executable).parent / "kiln"
    assert subprocess.check_output([command, "version"], text=True).split()[1] == kiln.__version__
    assert subprocess.run([command, "linregg"], capture_output=True, check=False).returncode == 2


def test_targets_in_text(tmp_path):
    (tmp_path / "t.csv").write_text("x,kind,size\n1,b,1.5\n2,a,2.5\n3,b,3.5\n4,c,4.5\n")
    assert list(kiln.read(tmp_path / "t.csv", target="kind").y) == ["b", "a", "b", "c"]
    assert kiln.read(tmp_path / "t.csv", target="size").y.dtype == np.float64
    assert kiln.read(tmp_path / "t.csv", target="kind,size").y.tolist()[1] == ["a", 2.5]
    data = kiln.read(tmp_path / "t.csv", target="kind", features="x")
    model = kiln.LogisticRegression(device="cpu").fit(data.X, data.y)
    model.save(tmp_path / "m.kiln")
    assert list(kiln.load(tmp_path / "m.kiln").classes_) == ["a", "b", "c"]


def test_classes_that_a_model_does_not_know(tool, tmp_path):
    (tmp_path / "t.csv").write_text("x,kind\n1,a\n2,b\n3,a\n4,b\n")
    (tmp_path / "new.csv").write_text("x,kind\n1,b\n2,z\n")
    subprocess.run([tool, "logreg", "-q", tmp_path / "t.csv", "--target", "kind", "-o", tmp_path / "m.kiln"],
                   check=True, stdout=subprocess.DEVNULL)
    assert list(kiln.read(tmp_path / "new.csv", model=tmp_path / "m.kiln").y) == ["b", None]


def test_solvers_and_penalties_of_scaled_columns():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 200)) * np.geomspace(0.1, 10, 200) * (random.random((60, 200)) < 0.1)
    y = X[:, :5].sum(axis=1) > 0
    S = scipy.sparse.csr_matrix(X)
    fits = {solver: kiln.LogisticRegression(solver=solver, fit_intercept=False, tol=1e-9,
                                            device="cpu").fit(S, y) for solver in ("newton", "dual")}
    assert (fits["newton"].report_.solver.startswith("newton")
            and fits["dual"].report_.solver.startswith("dual"))
    np.testing.assert_allclose(fits["newton"].coef_, fits["dual"].coef_, atol=1e-6)
    with pytest.raises(ValueError, match="one of"):
        kiln.Ridge(solver="dual").fit(X, y)
    X, y = random.normal(size=(500, 4)) * [1, 10, 0.1, 3], random.normal(size=500)
    scaled = kiln.Ridge(5.0, standardize=True, device="cpu").fit(X, y)
    wanted = kiln.Ridge(5.0, device="cpu").fit(X / X.std(axis=0), y)
    np.testing.assert_allclose(scaled.coef_, wanted.coef_ / X.std(axis=0), rtol=1e-8)


def test_the_report_names_the_solver_and_the_device_counts_its_work():
    X, y = np.random.default_rng(0).normal(size=(300, 5)), np.arange(300.0)
    where = kiln.Device("cpu")
    assert kiln.Ridge(1.0, device=where).fit(X, y).report_.solver == "cholesky"
    counted = where.statistics()
    assert (counted["memory_peak"] >= counted["memory_used"] >= 0 and "size" not in counted
            and counted["bytes_up"] == 0)
