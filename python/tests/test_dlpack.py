"""Matrices lent to other packages, and results that stay on their device."""
import gc
import weakref

import kiln
import numpy as np
import pytest
import scipy.sparse
from kiln import _dlpack


def test_a_matrix_is_lent_in_place():
    matrix = kiln.matrix(np.arange(6.0).reshape(3, 2))
    lent = np.from_dlpack(matrix)
    np.testing.assert_array_equal(lent, [[0, 1], [2, 3], [4, 5]])
    assert np.shares_memory(lent, matrix._keep[0])


def test_what_is_lent_lives_as_long_as_the_borrower():
    with kiln.results_on_device():
        product = kiln.multiply(np.eye(100), np.full((100, 3), 2.0), device="cpu")
    gone, lent = weakref.ref(product), np.from_dlpack(product)
    del product
    gc.collect()
    assert gone() is not None and (lent == 2).all()
    del lent
    gc.collect()
    assert gone() is None and not _dlpack._lent


def test_a_capsule_that_nobody_takes():
    matrix = kiln.matrix(np.ones((2, 2)))
    capsule = matrix.__dlpack__()
    assert len(_dlpack._lent) == 1
    del capsule
    assert not _dlpack._lent


def test_copies_and_refusals():
    matrix = kiln.matrix(np.ones((2, 2)))
    assert not np.shares_memory(np.from_dlpack(matrix, copy=True), matrix._keep[0])
    with pytest.raises(kiln.ArgumentError, match="sparse"):
        kiln.matrix(scipy.sparse.eye(3, format="csr")).__dlpack__()
    with pytest.raises(BufferError, match="cpu"):
        matrix.__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("call", [
    lambda X: kiln.mmchain(X, np.ones(4), device="cpu"), lambda X: kiln.multiply(X, np.ones((4, 2)),
                                                                                 device="cpu"),
    lambda X: kiln.batch_reduce(X, "l2", device="cpu"), lambda X: kiln.batch_scale(X, np.arange(20.0),
                                                                                   device="cpu"),
    lambda X: kiln.Ridge(device="cpu").fit(X, X[:, 0]).predict(X),
    lambda X: kiln.LogisticRegression(device="cpu").fit(X, X[:, 0] > 0).predict_proba(X),
    lambda X: kiln.LogisticRegression(device="cpu").fit(X, X[:, 0] > 0).decision_function(X),
    lambda X: kiln.KMeans(2, random_state=0, device="cpu").fit(X).transform(X),
    lambda X: kiln.pagerank(scipy.sparse.csr_matrix(np.abs(X[:4])), device="cpu").scores])
def test_results_stay_when_asked(call):
    X = np.random.default_rng(0).normal(size=(20, 4))
    wanted = call(X)
    with kiln.results_on_device():
        kept = call(X)
    assert isinstance(wanted, np.ndarray) and isinstance(kept, kiln.Matrix)
    # few rows on the host are added up in another order
    np.testing.assert_allclose(np.from_dlpack(kept).reshape(wanted.shape), wanted, rtol=1e-12, atol=1e-15)


def test_labels_stay_arrays():
    X = np.random.default_rng(0).normal(size=(20, 4))
    with kiln.results_on_device():
        assert kiln.LogisticRegression(device="cpu").fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.8
        assert isinstance(kiln.KMeans(2, random_state=0, device="cpu").fit(X).predict(X), np.ndarray)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jax(dtype):
    """Arrays of JAX come in and go out in place, as those of PyTorch and CuPy do in test_cuda.py."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        X = jax.numpy.asarray(np.random.default_rng(0).normal(size=(60, 3)).astype(dtype))
        came = kiln.matrix(X)
        assert came.dtype == dtype and came._keep[0].ctypes.data == X.unsafe_buffer_pointer()
        with kiln.results_on_device():
            product = kiln.multiply(X, jax.numpy.ones((3, 2), dtype), device="cpu")
        went = jax.dlpack.from_dlpack(product)
        assert went.dtype == dtype and went.unsafe_buffer_pointer() == np.from_dlpack(product).ctypes.data
        del product, came
        gc.collect()
        np.testing.assert_allclose(went, np.asarray(X) @ np.ones((3, 2)), rtol=1e-5)
        model = kiln.Ridge(1e-6, device="cpu").fit(X, X @ jax.numpy.arange(3, dtype=dtype))
        assert model.coef_.dtype == dtype
        np.testing.assert_allclose(model.coef_, np.arange(3), atol=1e-4)
