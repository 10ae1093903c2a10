"""Arrays of PyTorch and CuPy in CUDA memory, both ways; the same results as on the CPU and as the tool's."""
import json
import subprocess

import kiln
import numpy as np
import pytest
import scipy.sparse

if not any(row["name"].startswith("cuda") and row["usable"] for row in kiln.devices()):
    pytest.skip("needs a CUDA device", allow_module_level=True)
torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")
sparse = pytest.importorskip("cupyx.scipy.sparse")

PACKAGES = {"torch": (lambda X: torch.as_tensor(X, device="cuda"), torch.from_dlpack,
                      lambda X: X.cpu().numpy(), lambda X: X.data_ptr()),
            "cupy": (cupy.asarray, cupy.from_dlpack, cupy.asnumpy, lambda X: X.data.ptr)}
TYPES = [np.float32, np.float64]


@pytest.fixture(params=list(PACKAGES))
def package(request):
    return PACKAGES[request.param]


def numbers(rows=3000, cols=40, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(rows, cols)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_in_and_out_without_a_copy(package, dtype):
    to_device, from_dlpack, to_host, address = package
    X, W = numbers(dtype=dtype), numbers(40, 3, dtype)
    there = to_device(X)
    matrix = kiln.matrix(there, "cuda")
    assert address(from_dlpack(matrix)) == address(there)
    with kiln.results_on_device():
        product = kiln.multiply(there, to_device(W))
    lent = from_dlpack(product)
    assert product.device.name == "cuda:0" and lent.device is not None
    np.testing.assert_allclose(to_host(lent), X @ W, rtol=1e-4 if dtype == np.float32 else 1e-12,
                               atol=1e-4 if dtype == np.float32 else 1e-12)
    del product, matrix
    lent += 1  # the memory is still there
    np.testing.assert_allclose(to_host(lent), X @ W + 1, rtol=1e-4, atol=1e-4)


def test_work_that_is_queued_is_waited_for(package):
    """Each call takes what the last product of a queue leaves."""
    to_device, _, to_host, _ = package
    A, want = to_device(np.eye(2048) * 1.01), None
    for _ in range(5):
        B = A
        for _ in range(20):
            B = B @ A
        want = to_host(B) if want is None else want
        np.testing.assert_allclose(kiln.multiply(B, np.ones(2048)), want.sum(axis=1), rtol=1e-10)


def test_other_streams_are_waited_for():
    for stream in (cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream.null):
        with stream:
            A = cupy.eye(2048) * 1.01
            for _ in range(40):
                A = A @ cupy.eye(2048)
        np.testing.assert_allclose(kiln.multiply(A, np.ones(2048)), 1.01, rtol=1e-10)


@pytest.mark.parametrize("dtype", TYPES)
def test_sparse_matrices(dtype):
    S = scipy.sparse.random(500, 60, 0.1, format="csr", random_state=0, dtype=dtype)
    y = numbers(60, 1, dtype)[:, 0]
    want, close = S.T @ (S @ y), {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-11}
    there = sparse.csr_matrix(S)
    np.testing.assert_allclose(kiln.mmchain(there, cupy.asarray(y)), want, **close)
    tensor = torch.sparse_csr_tensor(torch.as_tensor(S.indptr), torch.as_tensor(S.indices),
                                     torch.as_tensor(S.data), S.shape)
    np.testing.assert_allclose(kiln.mmchain(tensor, y, device="cpu"), want, **close)
    np.testing.assert_allclose(kiln.mmchain(tensor.cuda(), y), want, **close)


def test_jax(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX takes most of the GPU's memory else
    jax = pytest.importorskip("jax")
    try:
        where = jax.devices("cuda")[0]
    except RuntimeError as error:
        pytest.skip(str(error))
    X, W = numbers(dtype=np.float32), numbers(40, 3, np.float32)
    there = jax.device_put(X, where)
    matrix = kiln.matrix(there)
    assert (matrix.device.name == "cuda:0" and torch.from_dlpack(matrix).data_ptr()
            == there.unsafe_buffer_pointer())
    with kiln.results_on_device():
        product = kiln.multiply(there * np.float32(2), jax.device_put(W, where))
    lent = jax.dlpack.from_dlpack(product)
    assert where in lent.devices()
    np.testing.assert_allclose(np.asarray(lent), 2 * X @ W, rtol=1e-4, atol=1e-4)
    y = X[:, :3].sum(axis=1)
    ours, host = kiln.Ridge(1.0).fit(there, jax.device_put(y, where)), kiln.Ridge(1.0, device="cpu").fit(X, y)
    assert ours.device_ == "cuda:0"
    np.testing.assert_allclose(ours.coef_, host.coef_, rtol=1e-4, atol=1e-4)


def test_columns_are_looked_at_on_the_device():
    S = scipy.sparse.random(20_000, 3000, 0.005, format="csr", random_state=0)
    y = np.random.default_rng(0).normal(size=3000)
    there = sparse.csr_matrix(S)
    turned = there.copy()
    first, end = int(S.indptr[7]), int(S.indptr[8])
    turned.indices[first:end], turned.data[first:end] = (there.indices[first:end][::-1].copy(),
                                                         there.data[first:end][::-1].copy())
    np.testing.assert_allclose(kiln.multiply(turned, cupy.asarray(y)), S @ y, rtol=1e-10, atol=1e-12)
    for place, column, message in ((first, 3000, "outside"), (end - 1, -1, "outside"),
                                   (first + 1, int(S.indices[first]), "twice")):
        wrong = there.copy()
        wrong.indices[place] = column
        with pytest.raises(kiln.DataError, match=message):
            kiln.matrix(wrong)


@pytest.mark.parametrize("make", [lambda: kiln.Ridge(1.0, device="cpu"),
                                  lambda: kiln.PoissonRegressor(alpha=0.1, device="cpu"),
                                  lambda: kiln.LogisticRegression(device="cpu"),
                                  lambda: kiln.LinearSVC(device="cpu")])
def test_estimators_take_them_where_they_are(package, make):
    to_device, from_dlpack, to_host, _ = package
    X = numbers() / 4
    score = X[:, :3].sum(axis=1)
    y = (np.random.default_rng(1).poisson(np.exp(score)) if "Regressor" in type(make()).__name__
         else score + X[:, 3] > 0)
    y = y.astype(np.int64)
    ours, host = make().fit(to_device(X), to_device(y)), make().fit(X, y)
    assert ours.device_ == "cuda:0" and host.device_ == "cpu"
    np.testing.assert_allclose(ours.coef_, host.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.predict(to_device(X)), host.predict(X), rtol=1e-6)
    if isinstance(ours, kiln.LogisticRegression):
        with kiln.results_on_device():
            there = from_dlpack(ours.predict_proba(to_device(X)))
        np.testing.assert_allclose(to_host(there), host.predict_proba(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("values", [(0, 1), (-1, 1), (3, 5), (0, 1, 2), (7, 2**24 + 1, 2**24 + 2)])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_labels_on_the_device(package, values, dtype):
    to_device, _, _, _ = package
    X = numbers(dtype=np.float32)
    y = np.array(values, dtype)[np.clip(np.round(X[:, 0] + 1).astype(int), 0, len(values) - 1)]
    ours, host = kiln.LogisticRegression().fit(
        to_device(X), to_device(np.stack([y, y], 1))[:, 0]
    ), kiln.LogisticRegression(device="cpu").fit(X, y)
    assert ours.classes_.dtype == dtype and ours.classes_.tolist() == list(values)
    # float32, of classes that can nearly be separated
    np.testing.assert_allclose(ours.coef_, host.coef_, rtol=1e-2, atol=1e-2)


def test_kmeans(package):
    to_device, _, _, _ = package
    X = numbers(dtype=np.float32)
    start = X[:8].copy()
    ours, host = (kiln.KMeans(8, init=start, device="cpu").fit(data) for data in (to_device(X), X))
    assert ours.device_ == "cuda:0" and (ours.labels_ == host.labels_).mean() > 0.999
    assert ours.inertia_ == pytest.approx(host.inertia_, rel=1e-5)


def test_what_cannot_be_taken_is_refused(package):
    to_device, _, _, _ = package
    with pytest.raises(kiln.ArgumentError, match="contiguous"):
        kiln.matrix(to_device(numbers()).T)
    with pytest.raises(kiln.ArgumentError, match="float32 or float64"):
        kiln.matrix(to_device(np.ones((3, 3), np.float16)))


def test_the_tool_finds_the_same(package, tool, tmp_path):
    to_device, _, _, _ = package
    X = numbers()
    y = (X[:, 0] + 0.5 * numbers(cols=41)[:, 40] > 0).astype(int)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(float))
    subprocess.run([tool, "logreg", tmp_path / "X.npy", "--target-file", tmp_path / "y.npy", "--device",
                    "cuda", "--json", "-o", tmp_path / "m.kiln"], check=True,
                   stdout=open(tmp_path / "out.json", "w", encoding="utf-8"))
    ours, theirs = kiln.LogisticRegression().fit(to_device(X), to_device(y)), kiln.load(tmp_path / "m.kiln")
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    assert json.loads((tmp_path
                       / "out.json").read_text())["objective"] == pytest.approx(ours.objective_, rel=1e-9)
