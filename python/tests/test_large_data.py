"""Data that stay in their file, or do not fit into the device's memory: the answers of data in memory."""
import pickle
import subprocess
import warnings

import kiln
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

rng = np.random.default_rng(0)
CENTRES = 8 * rng.normal(size=(4, 60))
HOME = rng.integers(0, 4, 5000)
POINTS = CENTRES[HOME] + rng.normal(size=(5000, 60))
LINKS = sp.random(1200, 1200, 0.1, format="csr", random_state=1, data_rvs=lambda n: 0.5 + rng.random(n))


def opencl(memory):
    if not any(row["name"].startswith("opencl") and row["usable"] for row in kiln.devices()):
        pytest.skip("no OpenCL")
    return kiln.Device("opencl", memory=memory)


@pytest.mark.parametrize("where", ["cpu", "opencl"])
@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_clusters_of_a_file(tmp_path, where, init):
    np.save(tmp_path / "X.npy", POINTS)
    budget = POINTS.nbytes // 10
    device = opencl(budget) if where == "opencl" else kiln.Device("cpu", memory=budget)
    want = kiln.KMeans(4, init=init, random_state=3, n_init=1, device="cpu").fit(POINTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = kiln.KMeans(4, init=init, random_state=3, n_init=1).fit(kiln.matrix(tmp_path / "X.npy", device))
    assert np.array_equal(got.labels_, want.labels_)
    np.testing.assert_allclose(got.cluster_centers_, want.cluster_centers_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got.inertia_, want.inertia_, rtol=1e-12)
    seen = device.statistics()
    assert seen["panels"] > 10 and seen["memory_peak"] <= budget
    assert np.array_equal(got.predict(kiln.matrix(tmp_path / "X.npy", device)), want.labels_)


@pytest.mark.parametrize("clusters, share", [(6, 6), (90, 2)])  # one group of bounds, and several
def test_bounds_of_a_file(tmp_path, clusters, share):
    points = POINTS + 8 * rng.normal(size=POINTS.shape)  # rows that change their centre for some iterations
    np.save(tmp_path / "X.npy", points)
    device = kiln.Device("cpu", memory=points.nbytes // share)
    model = kiln.KMeans(clusters, init="random", algorithm="elkan", random_state=3, n_init=1, device="cpu")
    want, got = clone(model).fit(points), model.fit(kiln.matrix(tmp_path / "X.npy", device))
    assert np.array_equal(got.labels_, want.labels_) and got.n_iter_ == want.n_iter_ > 3
    np.testing.assert_allclose(got.inertia_, want.inertia_, rtol=1e-12)
    seen = device.statistics()
    assert seen["panels"] > 10 and seen["memory_peak"] <= points.nbytes // share


@pytest.mark.parametrize("options", [
    {}, {"dissimilarity": "precomputed"}, {"dissimilarity": "precomputed", "metric": "interval"}
], ids=["points", "ratio", "interval"])
def test_layouts_of_a_file(tmp_path, options):
    X = rng.normal(size=(500, 700)) * np.r_[3, 2, np.ones(698)]
    if options:
        X = np.sqrt(((X[:, None, :3] - X[None, :, :3])**2).sum(-1))
    np.save(tmp_path / "X.npy", X)
    device = kiln.Device("cpu", memory=X.nbytes // 7)
    model = kiln.MDS(2, max_iter=3, device="cpu", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        want, got = clone(model).fit(X), model.fit(kiln.matrix(tmp_path / "X.npy", device))
    np.testing.assert_allclose(got.stress_, want.stress_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(got.embedding_), np.abs(want.embedding_), rtol=0,
                               atol=1e-8 * np.abs(want.embedding_).max())
    seen = device.statistics()
    assert seen["panels"] > 10 and seen["memory_peak"] <= X.nbytes // 7


def test_clusters_of_an_array_beyond_the_budget():
    device = opencl(POINTS.nbytes // 10)
    want = kiln.KMeans(4, random_state=3, device="cpu").fit(POINTS)
    with pytest.warns(UserWarning, match="moved it in panels"):
        got = kiln.KMeans(4, random_state=3, device=device).fit(POINTS)
    assert np.array_equal(got.labels_, want.labels_)
    assert device.statistics()["memory_peak"] <= POINTS.nbytes // 10


@pytest.mark.parametrize("where", ["cpu", "opencl"])
@pytest.mark.parametrize("options", [{}, {"unweighted": True}, {"personalize": np.eye(1200)[:, [3, 70]]}])
def test_ranks_of_a_file(tmp_path, where, options):
    sp.save_npz(tmp_path / "A.npz", LINKS, compressed=False)
    budget = (LINKS.data.nbytes + LINKS.indices.nbytes) // 5
    device = opencl(budget) if where == "opencl" else kiln.Device("cpu", memory=budget)
    want = kiln.pagerank(LINKS, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = kiln.pagerank(kiln.matrix(tmp_path / "A.npz", device), **options)
    bound = want.report.figures["error_bound"] + got.report.figures["error_bound"]
    assert np.abs(np.asarray(got.scores) - np.asarray(want.scores)).sum(axis=0).max() <= bound <= 1e-8
    seen = device.statistics()
    assert seen["panels"] > 10 and seen["memory_peak"] <= budget


@pytest.mark.parametrize("where", ["cpu", "opencl"])
@pytest.mark.parametrize("options", [{}, {"implicit": True}, {"counted": True, "solver": "cholesky"}])
def test_factors_of_a_file(tmp_path, where, options):
    ratings = sp.random(2000, 1500, 0.15, format="csr", random_state=2,
                        data_rvs=lambda n: 1 + np.floor(5 * rng.random(n)))
    sp.save_npz(tmp_path / "R.npz", ratings, compressed=False)
    budget = (ratings.data.nbytes + ratings.indices.nbytes) // 10
    device = opencl(budget) if where == "opencl" else kiln.Device("cpu", memory=budget)
    model = {"n_components": 3, "random_state": 5, "max_iter": 3, "tol": 1e-12, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        want = kiln.ALS(**model, device="cpu").fit(ratings)
        got = kiln.ALS(**model).fit(kiln.matrix(tmp_path / "R.npz", device))
    for name in ("row_factors_", "column_factors_"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=0, atol=1e-7)
    seen = device.statistics()
    assert seen["panels"] > 10 and seen["memory_peak"] <= budget


@pytest.mark.parametrize("model", [
    kiln.LatentDirichletAllocation(2, max_iter=3, random_state=1, learning_method="batch"),
    kiln.NMF(2, max_iter=3, random_state=1, beta_loss="kullback-leibler", solver="mu", init="random"),
])
def test_topics_of_a_file(tmp_path, model):
    counts = sp.random(2000, 1500, 0.15, format="csr", random_state=2,
                       data_rvs=lambda n: 1 + np.floor(5 * rng.random(n)))
    sp.save_npz(tmp_path / "X.npz", counts, compressed=False)
    budget = (counts.data.nbytes + counts.indices.nbytes) // 10
    device = kiln.Device("cpu", memory=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        want = model.set_params(device="cpu").fit(counts).components_
        got = model.set_params(device="auto").fit(kiln.matrix(tmp_path / "X.npz", device)).components_
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())
    seen = device.statistics()
    assert seen["panels"] > 10 and seen["memory_peak"] <= budget


def test_strict_budgets():
    """On the CPU a budget is about what comes to be in the process; the model is there beside the error, of a
    search of penalties, too."""
    np.ones(32 << 20).sum()  # which was before
    small, large = (kiln.Device("cpu", memory=memory, strict=True) for memory in (2 << 20, 1 << 42))
    kiln.Ridge(device=large).fit(POINTS, HOME)
    kiln.Ridge(device=kiln.Device("cpu", memory=2 << 20)).fit(POINTS[:500], HOME[:500])
    more = np.ones(8 << 20)
    for model in (kiln.Ridge(device=small), kiln.RidgeCV(cv=2, device=small),
                  kiln.KMeans(2, random_state=0, device=small)):
        with pytest.raises(kiln.OutOfMemoryError,
                           match="cpu held .* more than 5 % over the budget of 2,097,152"):
            model.fit(POINTS[:500], HOME[:500])
        whole = clone(model).set_params(device="cpu").fit(POINTS[:500], HOME[:500])
        np.testing.assert_allclose(model.predict(POINTS[:9]), whole.predict(POINTS[:9]), rtol=1e-6)
    assert len(more) and kiln.Device("cpu", memory=64 << 20, strict=True).check_memory() is None


def test_a_strict_gpu_holds_what_it_may(tmp_path):
    opencl(POINTS.nbytes)
    np.save(tmp_path / "X.npy", POINTS)
    device = kiln.Device("opencl", memory=POINTS.nbytes // 4, strict=True)
    kiln.Ridge().fit(kiln.matrix(tmp_path / "X.npy", device), HOME.astype(float))
    assert device.statistics()["panels"] > 1


def test_a_packed_file_is_its_table(tmp_path, tool):
    (tmp_path / "t.csv").write_text("x,kind,w,y\n" + "".join(
        f"{i % 23},k{i % 5},{1 + i % 2},{'ab'[i * 7 % 11 < 5]}\n" for i in range(600)))
    subprocess.run([tool, "convert", "-q", tmp_path / "t.csv", tmp_path / "t.kiln-data", "--target", "y",
                    "--weights", "w"], check=True)
    table = kiln.read(tmp_path / "t.csv", target="y", weights="w")
    for mapped in (False, True):
        packed = kiln.read(tmp_path / "t.kiln-data", mapped=mapped)
        assert packed.feature_names == table.feature_names
        assert (packed.y == table.y).all() and (packed.weights == table.weights).all()
        both = [kiln.LogisticRegression().fit(one.X, one.y, one.weights).coef_ for one in (table, packed)]
        np.testing.assert_array_equal(*both)
    assert kiln.read(tmp_path / "t.kiln-data", target="y").X.shape == table.X.shape
    with pytest.raises(kiln.ArgumentError, match="settled: ignore= comes too late"):
        kiln.read(tmp_path / "t.kiln-data", ignore="kind")
    with pytest.raises(kiln.ArgumentError, match="not 'kind'"):
        kiln.read(tmp_path / "t.kiln-data", target="kind")


def test_deflated_archives_go_to_a_temporary_file(tmp_path):
    A = sp.random(20_000, 300, 0.1, format="csr", random_state=2, dtype=np.float32)
    sp.save_npz(tmp_path / "a.npz", A[:15_000])  # several windows of 64 KiB
    sp.save_npz(tmp_path / "b.npz", A[15_000:])
    device = kiln.Device("cpu", memory=8_000_000)
    x, y = rng.normal(size=300), rng.normal(size=20_000)
    one = kiln.read(tmp_path / "a.npz", device=device, mapped=True).X
    np.testing.assert_allclose(kiln.multiply(one, x), A[:15_000] @ x, rtol=1e-12, atol=1e-12)
    both = kiln.read([tmp_path / "a.npz", tmp_path / "b.npz"], device=device, mapped=True).X
    assert both.shape == A.shape
    np.testing.assert_allclose(kiln.multiply(both, y, transposed=True), A.T @ y, rtol=1e-9, atol=1e-9)


def test_text_and_bytes_go_to_a_temporary_file(tmp_path):
    names, pixels = np.array(["plain", "late"])[(np.arange(5000) > 4800).astype(int)], rng.integers(
        0, 256, (5000, 60), np.uint8)
    rows = [",".join([name, *map(repr, point), str(home)])
            for name, point, home in zip(names, POINTS.tolist(), HOME)]
    header = ",".join(["name", *(f"x{j}" for j in range(60)), "y"])
    (tmp_path / "X.csv").write_text("\n".join([header, *rows]) + "\n")
    device = kiln.Device("cpu", memory=POINTS.nbytes // 2)
    here, there = kiln.read(tmp_path / "X.csv", target="y"), kiln.read(tmp_path / "X.csv", target="y",
                                                                      device=device, mapped=True)
    assert there.feature_names == here.feature_names and np.array_equal(there.y, here.y)
    assert there.X.mapped and (there.X.numpy() != here.X).nnz == 0
    want, got = (kiln.Ridge().fit(data.X, data.y).coef_ for data in (here, there))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)
    np.save(tmp_path / "pixels.npy", pixels)
    budget = pixels.nbytes * 4 // 10
    device = kiln.Device("cpu", memory=budget)
    X = kiln.matrix(tmp_path / "pixels.npy", device, dtype=np.float32)
    assert np.array_equal(X.numpy(), pixels.astype(np.float32))
    want = kiln.KMeans(3, random_state=3, device="cpu").fit(pixels.astype(np.float32))
    got = kiln.KMeans(3, random_state=3).fit(X)
    assert np.array_equal(got.labels_, want.labels_)
    assert device.statistics()["memory_peak"] <= budget
