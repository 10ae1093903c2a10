"""Models of the tool and of Python are one thing: what is saved is loaded as it was, whoever trained it."""
import copy
import pickle
import subprocess

import numpy as np
import pytest
from sklearn.base import clone
from test_leave import alike, rows_for, trained
from test_saved import FITS, RATINGS, X

import kiln
from kiln._packed import packed, unpacked

QUIET = pytest.mark.filterwarnings("ignore")
# as long as the training data, or no data
NOT_KEPT = {"labels_", "dissimilarity_matrix_", "point_stress_", "random_state_", "cv_results_"}


def same(one, other):
    if isinstance(one, (tuple, list)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.shape == other.shape and bool(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def public(model):
    return {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}


@QUIET
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loaded_as_it_was_saved(dtype, tool, tmp_path):
    for estimator, data, y, more in FITS:
        model = trained((clone(estimator).set_params(device="auto"), data.astype(dtype), y, more))
        model.save(tmp_path / "m.kiln")
        loaded = kiln.load(tmp_path / "m.kiln")
        assert type(loaded) is type(model) and loaded.get_params() == model.get_params()
        assert public(model) - public(loaded) <= NOT_KEPT, model
        for name in public(model) & public(loaded):
            if not name.startswith("sparse"):
                assert same(getattr(model, name), getattr(loaded, name)), (model, name)
        if not getattr(model, "_offset", False):
            alike(model, loaded, rows_for(model).astype(dtype))
        with pytest.raises(Exception, match="not fitted"):
            clone(loaded).save(tmp_path / "none.kiln")


@QUIET
def test_the_tool_predicts_what_python_predicts(tool, tmp_path):
    for fit in FITS:
        model = trained(fit)
        if not hasattr(model, "predict") or type(model).__name__ in ("ALS", "SFA") or fit[3]:
            continue
        model.save(tmp_path / "m.kiln")
        np.save(tmp_path / "X.npy", fit[1])
        subprocess.run([tool, "predict", tmp_path / "m.kiln", tmp_path / "X.npy", "-q", "-o",
                        tmp_path / "p.npy"], check=True)
        found, wanted = np.load(tmp_path / "p.npy"), kiln.load(tmp_path / "m.kiln").predict(fit[1])
        found = found if wanted.ndim == 2 else found[:, 0]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


# verb, its arguments, and the estimator that is the same problem
TABLE = "a,b,colour,expo,w,n,cls\n" + "\n".join(
    f"{a:.3f},{b:.3f},{'red' if a > 0.3 else 'blue'},{b * b:.3f},{1 + a * a:.3f},{int(3 * abs(a + b))},"
    f"{'xyz'[int(2.9 * abs(np.sin(a)))]}" for a, b, _ in X)
COMMANDS = [
    (["linreg", "--target", "n", "--features", "a,b,colour"], kiln.LinearRegression()),
    (["linreg", "--target", "n", "--features", "a,b,colour", "--l2", "2", "--standardize"],
     kiln.Ridge(2.0, standardize=True)),
    (["logreg", "--target", "cls", "--features", "a,b,colour", "--l1", "0.1", "--l2", "0.3", "--class-weight",
      "x=2,y=1,z=0.5"],
     kiln.LogisticRegression(C=2.5, l1_ratio=0.25, class_weight={"x": 2.0, "y": 1.0, "z": 0.5})),
    (["logreg", "--target", "cls", "--features", "a,b,colour", "--class-weight", "balanced",
      "--no-intercept"],
     kiln.LogisticRegression(class_weight="balanced", fit_intercept=False)),
    (["glm", "--target", "n", "--features", "a,b,colour", "--family", "poisson", "--l2", "6"],
     kiln.GeneralizedLinearRegressor("poisson", alpha=6 / len(X))),
    (["glm", "--target", "n", "--features", "a,b", "--family", "poisson", "--standard-errors", "--offset",
      "expo", "--weights", "w"], kiln.GeneralizedLinearRegressor("poisson", standard_errors=True)),
    (["svm", "--target", "n", "--features", "a,b", "--regression", "--epsilon", "0.1", "--l2", "0.25"],
     kiln.LinearSVR(C=2.0, epsilon=0.1)),
    (["svm", "--target", "cls", "--features", "a,b", "--l2", "0.5"], kiln.LinearSVC()),
    (["kmeans", "--features", "a,b", "-k", "3"], kiln.KMeans(3)),
    (["mds", "--features", "a,b", "--metric", "interval"], kiln.MDS(metric="interval")),
]


@QUIET
@pytest.mark.parametrize("command, wanted", COMMANDS, ids=lambda one: one[0] if isinstance(one, list) else "")
def test_models_of_the_tool(command, wanted, tool, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE + "\n")
    model = tmp_path / "m.kiln"
    verb, *options = command
    run = subprocess.run([tool, verb, tmp_path / "t.csv", *options, "-o", model, "-q"], capture_output=True,
                         text=True)
    assert run.returncode == 0, run.stderr
    loaded = kiln.load(model)
    assert type(loaded) is type(wanted)
    for name, value in wanted.get_params().items():
        if name in options or name not in ("link", "epsilon"):
            found = getattr(loaded, name)
            assert found == value or np.isclose(found, value), name
    assert loaded.report_.n_iter >= 0 and loaded.converged_ == loaded.report_.converged
    names = list(loaded.feature_names_in_)
    assert names[:2] == ["a", "b"] and len(names) == loaded.n_features_in_
    if hasattr(loaded, "standard_errors"):
        assert hasattr(loaded, "standard_errors_") == ("--standard-errors" in command)
        assert loaded.offset_column_ == ("expo" if "--offset" in command else None)
    data = kiln.read(tmp_path / "t.csv", model=model)
    if verb != "mds":
        more = {"offset": np.zeros(data.X.shape[0])} if "--offset" in command else {}
        assert len(loaded.predict(data.X, **more)) == data.X.shape[0]
    for again in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert again.get_params() == loaded.get_params()
    loaded.save(tmp_path / "again.kiln")
    subprocess.run([tool, "verify", tmp_path / "again.kiln", tmp_path / "t.csv", "-q"], check=True,
                   stdout=subprocess.DEVNULL)


def test_factor_models_of_the_tool(tool, tmp_path):
    import scipy.io

    scipy.io.mmwrite(tmp_path / "R.mtx", RATINGS)
    for verb, kind in (("als", kiln.ALS), ("sfa", kiln.SFA), ("gap", kiln.NMF),
                       ("lda", kiln.LatentDirichletAllocation)):
        size = ["--topics" if verb in ("gap", "lda") else "--factors", "3"]
        subprocess.run([tool, verb, tmp_path / "R.mtx", *size, "-o", tmp_path / "m.kiln", "-q"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        loaded = kiln.load(tmp_path / "m.kiln")
        assert type(loaded) is kind and loaded.n_components == 3
        assert loaded.transform(RATINGS).shape == (20, 3)
        assert np.isfinite(loaded.objective_)


def test_values_come_back_as_they_were():
    values = [None, True, 3, 1.5, float("inf"), "a", (1, 2.0), [1, [2]], {"x": 1.0, 0: (None,)},
              np.float32(1.1), np.array([[1.5, np.nan]]), np.array(["a", "bc"]), np.array(["a", "b"], object),
              np.arange(3), np.array([True]), np.zeros((0, 2))]
    for value in values:
        found = unpacked(packed(value))
        assert type(found) is type(value) and same(found, value)
    for value in (np.random.RandomState(0), len, np.array([object()]), {"a": len}):
        with pytest.raises(TypeError):
            packed(value)


@pytest.mark.parametrize("text", ['{"class": "KMeans"}', '{"class": "Ridge"}', '{"class": 3}',
                                  '{"parameters": {}}',
                                  '{"class": "Ridge", "parameters": 3, "attributes": {}}',
                                  '{"class": "Ridge", "parameters": {"alpha": {"array": 1}}}',
                                  '{"class": "Ridge", "parameters": {"alpha": {}}, "attributes": {}}'])
def test_texts_that_nobody_saved(text, tmp_path, monkeypatch):
    monkeypatch.setattr("kiln._base.described", lambda model: text)
    kiln.Ridge(device="cpu").fit(X, X[:, 0]).save(tmp_path / "m.kiln")
    with pytest.raises(kiln.ModelError):
        kiln.load(tmp_path / "m.kiln")


@QUIET
def test_what_is_long_is_left_out(tmp_path):
    """A file's texts have 16 MiB: names of 300,000 columns fit, a K-Means start of 1,000 x 784 would not."""
    wide = np.zeros((3, 300000))
    wide[:, 0] = 1, 2, 4
    model = kiln.Ridge(device="cpu").fit(wide, [1.0, 2.0, 4.0])
    model.feature_names_in_ = np.array([f"a column with a name {j}" for j in range(300000)], object)
    model.save(tmp_path / "m.kiln")
    assert kiln.load(tmp_path / "m.kiln").feature_names_in_[-1] == "a column with a name 299999"
    many = kiln.KMeans(900, init=np.random.default_rng(0).normal(size=(900, 784)), device="cpu", max_iter=1)
    many.fit(many.init).save(tmp_path / "k.kiln")
    assert kiln.load(tmp_path / "k.kiln").init == "k-means++"


@QUIET
def test_what_is_no_data_is_left_out(tmp_path):
    model = kiln.KMeans(2, init=X[:2], random_state=np.random.RandomState(0), device="cpu").fit(X)
    model.save(tmp_path / "m.kiln")
    loaded = kiln.load(tmp_path / "m.kiln")
    np.testing.assert_array_equal(loaded.init, X[:2])
    assert loaded.random_state is None and loaded.device == "auto"


def test_old_models(data):
    old = kiln.load(data.parent / "tests" / "io" / "fixtures" / "linreg-0.1.0.kiln")
    assert len(old.predict(np.zeros((2, old.n_features_in_)))) == 2


@QUIET
@pytest.mark.parametrize("where", ["cpu", "a Device"])
def test_copies_of_estimators_with_devices(where, tmp_path):
    """test_handles.py has GridSearchCV(n_jobs=2)."""
    joblib = pytest.importorskip("joblib")
    device = kiln.Device("cpu", threads=1) if where == "a Device" else where
    model = kiln.Ridge(0.5, device=device).fit(X, X[:, 0])
    joblib.dump(model, tmp_path / "m.joblib")
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)),
                  joblib.load(tmp_path / "m.joblib")):
        assert getattr(again.device, "name", again.device) == "cpu"
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).device is device
