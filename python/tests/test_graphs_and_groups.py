"""K-Means of fewer different rows than clusters, and MDS of data of any size."""
import warnings

import kiln
import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"spherical": True}, {"init": "random"}])
def test_fewer_different_rows_than_clusters(dtype, sparse, options):
    rng = np.random.default_rng(0)
    X = (1e6 + rng.normal(size=(5, 3)))[rng.integers(0, 5, 97)].astype(dtype)
    with pytest.warns(
        ConvergenceWarning,
        match=r"number of distinct clusters \(5\) found smaller than the number wanted \(8\)",
    ) as caught:
        model = kiln.KMeans(8, random_state=1, tol=1e-12, device="cpu",
                            **options).fit(scipy.sparse.csr_matrix(X) if sparse else X)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.report_.converged and len(set(model.labels_)) == 5
    with pytest.warns(ConvergenceWarning,
                      match=r"number of distinct clusters \(5\) found smaller than the number wanted \(8\)"):
        kiln.MiniBatchKMeans(8, random_state=1, tol=1e-3, max_iter=3, device="cpu").fit(X)


def test_as_many_different_rows_as_clusters():
    X = np.repeat(1e6 + np.arange(15.0).reshape(5, 3), 7, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(set(kiln.KMeans(5, random_state=0, device="cpu").fit(X).labels_)) == 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e20, 1e-30])
@pytest.mark.parametrize("precomputed", [False, True])
def test_layouts_of_any_size(dtype, size, precomputed):
    X = np.random.default_rng(0).normal(size=(30, 4)) * size
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    model = kiln.MDS(2, dissimilarity="precomputed" if precomputed else "euclidean", device="cpu")
    Y = model.fit_transform((D if precomputed else X).astype(dtype)).astype(float)
    squares = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    rest = (D - np.sqrt(squares)) ** 2
    digits = 1e-9 if dtype is np.float64 else 1e-4
    assert model.stress_ == pytest.approx(rest.sum() / 2, rel=digits)
    assert model.stress_1_ == pytest.approx(np.sqrt(rest.sum() / squares.sum()), rel=digits)
    assert model.stress_1_ < 0.25
    assert np.allclose(model.point_stress_, rest.sum(axis=1), rtol=10 * digits, atol=0)
    if not precomputed:
        assert np.abs(model.place(X[:5].astype(dtype)) - Y[:5]).max() < 0.1 * np.abs(Y).max()
