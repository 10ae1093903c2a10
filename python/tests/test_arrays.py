"""Arrays in and out: nothing is copied that need not be, nothing is changed, and what cannot be taken is
refused."""
import gc
import threading

import kiln
import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
from kiln._library import ffi


def test_a_dense_array_is_used_where_it_lies():
    X = np.arange(6.0).reshape(3, 2)
    matrix = kiln.matrix(X)
    assert matrix._keep[0] is X
    before = kiln.multiply(matrix, np.ones(2))
    X[0, 0] = 100  # the matrix sees it: it is the same memory
    assert kiln.multiply(matrix, np.ones(2))[0] == before[0] + 100


def test_a_sparse_matrix_is_used_where_it_lies():
    S = scipy.sparse.random(50, 20, 0.2, format="csr", random_state=0)
    matrix = kiln.matrix(S)
    assert {id(part) for part in matrix._keep} == {id(S.data), id(S.indices), id(S.indptr)}
    assert (matrix.numpy() != S).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_that_are_all_one_number(dtype):
    S = scipy.sparse.random(300, 40, 0.2, format="csr", random_state=3, dtype=dtype)
    S.data[:] = 0.3
    matrix, expected = kiln.matrix(S), S.astype(np.float64).toarray()
    S.data[:] = 5  # which the matrix does not read
    v, y = np.linspace(1, 2, 300).astype(dtype), np.linspace(-1, 1, 40).astype(dtype)
    some = 400 * np.finfo(dtype).eps  # more than all roundings of a product of 40 and then 300 terms
    for found, wanted, size in ((kiln.multiply(matrix, y), expected @ y, expected @ np.abs(y)),
                                (kiln.mmchain(matrix, y, v=v), expected.T @ (v * (expected @ y)),
                                 expected.T @ (v * (expected @ np.abs(y))))):
        assert (np.abs(found - wanted) <= some * size).all()
    assert (matrix.numpy().toarray() == expected.astype(dtype)).all()


@pytest.mark.parametrize("made", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array",
                                  "coo_array"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_formats(made, dtype):
    S = getattr(scipy.sparse, made)(scipy.sparse.random(30, 20, 0.3, random_state=1, dtype=dtype))
    y = np.linspace(0, 1, 20).astype(dtype)
    w = kiln.mmchain(S, y, device="cpu")
    assert w.dtype == dtype
    np.testing.assert_allclose(w, S.T @ (S @ y), rtol=1e-5)


def test_duplicates_are_added_and_the_caller_keeps_them():
    S = scipy.sparse.csr_matrix((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 2))
    np.testing.assert_allclose(kiln.multiply(S, np.eye(2), device="cpu"), [[0, 2], [1, 0]])
    assert S.nnz == 3


@pytest.mark.parametrize("change", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2],
                                    lambda X: X[::-1][::-1], lambda X: X.astype(">f8"),
                                    lambda X: X.astype(np.float16).astype(np.float64)])
def test_layouts_of_dense_arrays(change):
    X = np.random.default_rng(0).integers(0, 9, (7, 4)).astype(float)
    np.testing.assert_allclose(kiln.multiply(change(X), np.ones(4), device="cpu"), X.sum(axis=1))


NARROW = [np.uint8, np.int8, np.uint16, np.int16, np.float16, bool]


def narrow_array(dtype, shape=(300, 40)):
    least, most = (0, 2) if dtype is bool else (0, 120) if np.dtype(dtype).kind == "u" else (-120, 120)
    return np.random.default_rng(1).integers(least, most, shape).astype(dtype)


@pytest.mark.parametrize("form", ["csr", "coo", "csc"])
@pytest.mark.parametrize("take", [kiln.matrix, lambda S: kiln.stream([S])], ids=["matrix", "stream"])
def test_repeated_entries_add_up_beyond_their_type(form, take):
    """In its own 8 bits SciPy makes 144 of 200 + 200."""
    S = scipy.sparse.coo_matrix((np.array([200, 200, 7], np.uint8), ([0, 0, 1], [1, 1, 0])), (2, 2))
    if form != "coo":  # with both entries, which SciPy's own conversion would add
        data, places = np.array([200, 200, 7], np.uint8), np.array([1, 1, 0] if form == "csr" else [0, 0, 1])
        starts = np.array([0, 2, 3])
        S = getattr(scipy.sparse, f"{form}_matrix")((data, places, starts), (2, 2))
    want = [[0, 400], [7, 0]] if form != "csc" else [[400, 0], [0, 7]]
    assert take(S).numpy().toarray().tolist() == want
    known = kiln.train_test_split(S, 0.5, random_state=0)
    assert known[0].sum() + known[1].sum() == 407
    y = [1.0, 2.0]
    np.testing.assert_allclose(kiln.Ridge(fit_intercept=False).fit(S, y).coef_,
                               kiln.Ridge(fit_intercept=False).fit(np.array(want, float), y).coef_)


@pytest.mark.parametrize("wide", [np.float64, np.float32])
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_numbers_are_used_where_they_lie(dtype, wide):
    X = narrow_array(dtype)
    matrix = kiln.matrix(X, dtype=wide)
    assert matrix._keep[0] is X and matrix.dtype == wide
    y = np.linspace(-1, 1, X.shape[1]).astype(wide)
    np.testing.assert_array_equal(kiln.mmchain(matrix, y), kiln.mmchain(X.astype(wide), y))
    before = kiln.multiply(matrix, y)[0]
    X[0, 0] = not X[0, 0]  # the matrix sees it: it is the same memory
    assert kiln.multiply(matrix, y)[0] != before
    np.testing.assert_array_equal(matrix.numpy(), X.astype(wide))
    np.testing.assert_array_equal(np.from_dlpack(matrix), X.astype(wide))  # of its own from then on


def test_a_bool_of_any_byte_is_one():
    X = np.array([[0, 1], [2, 255], [1, 0]], np.uint8).view(bool)
    np.testing.assert_array_equal(kiln.matrix(X).numpy(), [[0, 1], [1, 1], [1, 0]])


def test_numbers_of_another_byte_order_are_copied():
    X = narrow_array(np.int16).astype(">i2")
    np.testing.assert_array_equal(kiln.matrix(X).numpy(), X.astype(float))


@pytest.mark.parametrize("make, options, result", [
    (kiln.Ridge, {}, "predict"), (kiln.LogisticRegression, {}, "predict_proba"),
    (kiln.LinearSVC, {}, "decision_function"), (kiln.KMeans, {"random_state": 1}, "transform"),
    (kiln.TruncatedSVD, {"random_state": 1}, "transform")])
def test_fits_have_the_same_bits_of_narrow_numbers(make, options, result):
    X = narrow_array(np.uint8)
    y = (X[:, 0] > X[:, 1]).astype(int)
    narrow, wide = (make(device="cpu", **options).fit(A, y) for A in (X, X.astype(float)))
    expected = getattr(wide, result)(X.astype(float))
    reversed_twice = X[:, ::-1].copy()[:, ::-1]
    for A in (X, reversed_twice):
        np.testing.assert_array_equal(getattr(narrow, result)(A), expected)


def test_dlpack_and_frames():
    class Lent:  # another package's array on the CPU
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + 4
    matrix = kiln.matrix(Lent(X))
    assert np.shares_memory(matrix._keep[0], X)
    for frame in (pandas.DataFrame(X, columns=["a", "b", "c"]),
                  polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})):
        model = kiln.LinearRegression(device="cpu").fit(frame, y)
        np.testing.assert_allclose(model.coef_, [1, 2, 3], rtol=1e-8)
        assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_a_matrix_serves_many_fits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 5)), rng.normal(size=100)
    matrix = kiln.matrix(X, "cpu")
    np.testing.assert_array_equal(kiln.Ridge(1.0).fit(matrix, y).coef_,
                                  kiln.Ridge(1.0, device="cpu").fit(X, y).coef_)
    np.testing.assert_allclose(kiln.Ridge(1.0).fit(matrix, y).predict(matrix),
                               kiln.Ridge(1.0).fit(X, y).predict(X), rtol=1e-12)


@pytest.mark.parametrize("name", ["cpu*2", "opencl", "cpu@2,opencl:0.0@1"])
def test_a_matrix_on_a_group_or_a_device_of_its_own(name):
    if "opencl" in name and not any(row["name"].startswith("opencl") and row["usable"]
                                    for row in kiln.devices()):
        pytest.skip("needs an OpenCL device")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 5)), rng.normal(size=100)
    matrix = kiln.matrix(X, kiln.device(name))
    ours = kiln.Ridge(1.0).fit(matrix, y)
    assert ours.device_ == matrix.device.name and ours.device_.startswith(name)
    np.testing.assert_allclose(ours.coef_, kiln.Ridge(1.0, device="cpu").fit(X, y).coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict(matrix), ours.predict(X), rtol=1e-9, atol=1e-12)
    with pytest.raises(BufferError, match="memory that other packages know"):
        matrix.__dlpack__()


def test_an_array_above_the_budget_streams():
    if not any(row["name"].startswith("opencl") and row["usable"] for row in kiln.devices()):
        pytest.skip("needs an OpenCL device")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 24))
    y = X @ rng.normal(size=24) + rng.normal(size=3000)
    for make, target in ((kiln.LinearRegression, y), (kiln.LogisticRegression, y > 0)):
        little = kiln.Device("opencl", memory=X.nbytes // 2)
        ours = make(device=little).fit(X, target)
        np.testing.assert_allclose(ours.coef_, make(device="cpu").fit(X, target).coef_, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(np.shape(ours.predict(X)), (3000,))


def test_clusters_on_a_group():
    X = np.random.default_rng(0).normal(size=(200, 3))
    ours, one = (kiln.KMeans(4, init=X[:4].copy(), device=name).fit(X) for name in ("cpu*2", "cpu"))
    assert ours.device_ == "cpu*2" and (ours.labels_ == one.labels_).all()
    np.testing.assert_allclose(ours.cluster_centers_, one.cluster_centers_, rtol=1e-12)


def test_inputs_are_not_written():
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50.0)
    X.setflags(write=False)
    y.setflags(write=False)
    kiln.LinearRegression(device="cpu").fit(X, y)
    kiln.KMeans(2, device="cpu", random_state=0).fit(X)


def test_the_array_lives_as_long_as_the_matrix():
    matrix = kiln.matrix(np.full((1000, 100), 2.0))
    gc.collect()
    np.empty((1000, 100))  # would take the memory if it were free
    assert (kiln.multiply(matrix, np.ones(100)) == 200).all()


@pytest.mark.parametrize("array", [np.zeros((2, 2, 2)), np.float64(1)])
def test_other_dimensions_are_refused(array):
    with pytest.raises(kiln.ArgumentError, match="dimensions"):
        kiln.matrix(array)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(kiln.ArgumentError) as caught:
        kiln.mmchain(np.eye(3), np.ones(4), device="cpu")
    assert isinstance(caught.value, ValueError)
    with pytest.raises(kiln.DeviceError, match="cuda|nvrtc|found"):
        kiln.device("cuda:77")


def test_columns_out_of_range_are_refused():
    S = scipy.sparse.csr_matrix((np.ones(1), np.array([1]), np.array([0, 1])), (1, 2))
    S.indices[0] = 5
    S.has_canonical_format = True
    with pytest.raises(kiln.DataError):
        kiln.matrix(S)


def test_threads_take_turns_on_a_device():
    """A matrix that one thread frees while another trains is freed afterwards."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 20)), rng.normal(size=2000)
    wanted, found = kiln.Ridge(device="cpu").fit(X, y).coef_, []

    def train():
        for _ in range(5):
            found.append(kiln.Ridge(device="cpu").fit(X, y).coef_)
            gc.collect()

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20 and all(np.allclose(coef, wanted, rtol=1e-10) for coef in found)


def test_a_device_is_closed_after_what_lies_on_it():
    for _ in range(20):  # the collector tells weak references of a cycle first, then it frees
        device = kiln.Device("cpu", memory=1 << 30)
        cycle = [device, kiln.Matrix(np.ones((300, 30)), device),
                 kiln.Half(np.ones((3, 4)), "float16", device=device)]
        cycle.append(cycle)
        turn = device.turn
        assert len(turn._held) == 3
        del device, cycle
        gc.collect()
        assert not turn._held


def test_every_declaration_is_in_the_library():
    from kiln._library import lib

    functions = [name for name in dir(lib) if name.startswith("kiln_")]
    assert len(functions) > 80
    assert ffi.sizeof("kiln_report") > 0


def test_a_matrix_that_stays_in_its_file(tmp_path):
    rng = np.random.default_rng(0)
    X, S = rng.normal(size=(500, 6)), scipy.sparse.random(500, 6, 0.3, format="csr", random_state=0)
    np.save(tmp_path / "X.npy", X)
    scipy.sparse.save_npz(tmp_path / "S.npz", S, compressed=False)
    for file, values in (("X.npy", X), ("S.npz", S)):
        there, y = kiln.matrix(tmp_path / file), values @ np.arange(6.0)
        assert there.shape == (500, 6) and there.sparse == scipy.sparse.issparse(values)
        model = kiln.Ridge(1.0).fit(there, y)
        np.testing.assert_allclose(model.coef_, kiln.Ridge(1.0, device="cpu").fit(values, y).coef_, rtol=1e-9)
        np.testing.assert_allclose(model.predict(there), values @ model.coef_ + model.intercept_, rtol=1e-9,
                                   atol=1e-9)
    single = kiln.matrix(tmp_path / "X.npy", dtype=np.float32)  # by way of a temporary file
    np.testing.assert_array_equal(single.numpy(), X.astype(np.float32))
    with pytest.raises(kiln.KilnError, match="file"):
        kiln.matrix(tmp_path / "X.npy").__dlpack__()
