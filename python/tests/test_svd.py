"""TruncatedSVD, PCA, IncrementalPCA and SpectralEmbedding against constructed spectra, NumPy, SciPy and
scikit-learn."""
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
from conftest import ROOT
from sklearn.datasets import load_digits
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline

import kiln

CPU = {"device": "cpu"}
DIGITS = load_digits().data
REAL = pathlib.Path(os.environ.get("KILN_SHARED", ROOT.parent / "shared")) / "data"


def of_spectrum(rows, columns, values, seed=0):
    """A matrix with these singular values, and its vectors."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(rows, len(values))))[0]
    V = np.linalg.qr(rng.normal(size=(columns, len(values))))[0]
    return U * values @ V.T, V


def residual(model, A):
    """The largest of ||A v - s u|| and ||A^T u - s v|| over the largest s, with the best u of each v."""
    A, V, s = (x.astype(np.float64) for x in (A, model.components_.T, model.singular_values_))
    far = 0.0
    for v, value in zip(V.T, s):
        image = A @ v
        u = image / np.linalg.norm(image) if value > 0 else image
        far = max(far, np.linalg.norm(image - value * u), np.linalg.norm(A.T @ u - value * v))
    return far / s[0]


SPECTRA = {
    "falling": 0.7 ** np.arange(20),
    "several alike": np.array([5.0, 5, 5, 4, 4, 1, 1, 1, 1, 0.1]),
    "close": 1 + 1e-7 * np.arange(12)[::-1],
    "one huge": np.array([1e8, 1, 0.9, 0.8, 0.7, 0.6]),
    "of rank 3": np.array([3.0, 2, 1, 0, 0, 0]),
    "small": 1e-150 * np.array([9.0, 7, 5, 3, 1]),
    "large": 1e150 * np.array([9.0, 7, 5, 3, 1]),
}


@pytest.mark.parametrize("shape", [(400, 40), (40, 400), (64, 64)])
@pytest.mark.parametrize("name", list(SPECTRA))
def test_singular_values_that_are_known(name, shape):
    values = SPECTRA[name]
    X, V = of_spectrum(*shape, values)
    tol = 1e-14 if name == "one huge" else 0.0  # of the largest, which is 1e8 times the others
    model = kiln.TruncatedSVD(4, tol=tol, **CPU).fit(X)
    assert model.converged_ or tol
    np.testing.assert_allclose(model.singular_values_, values[:4], atol=1e-14 * len(X) * values[0])
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-12)
    inside = model.components_ @ V[:, values >= values[3]]  # of what has these values, any basis
    rank = int((values[:4] > 0).sum())
    assert np.linalg.norm(inside[:rank]) ** 2 == pytest.approx(rank, abs=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_truncated_as_scikit_learn_has_it(k, form, dtype):
    X = DIGITS.astype(dtype)
    ours = kiln.TruncatedSVD(k, **CPU)
    fitted = ours.fit_transform(form(X))
    theirs = sklearn.decomposition.TruncatedSVD(k, algorithm="arpack").fit(DIGITS)
    loose = 1e-9 if dtype == np.float64 else 2e-4
    assert ours.components_.dtype == ours.transform(form(X)).dtype == dtype
    assert residual(ours, X) <= (1e-8 if dtype == np.float64 else 1e-5)
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=loose, err_msg=name)
    # A vector is turned by no more than its residual over the gap to the other values (Davis and Kahan).
    values = np.linalg.svd(DIGITS, compute_uv=False)
    turned = 2 * residual(ours, X) * values[0] / -np.diff(values[:k + 1]).max() + np.finfo(dtype).eps * 64
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=0, atol=turned)
    longest = np.linalg.norm(DIGITS, axis=1).max()
    for image in (fitted, ours.transform(form(X))):
        np.testing.assert_allclose(image, theirs.transform(DIGITS), rtol=0, atol=turned * longest)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(form(X))),
                               theirs.inverse_transform(theirs.transform(DIGITS)), rtol=0,
                               atol=2 * np.sqrt(k) * turned * longest)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("k", [2, 30, None, 0.8, 0.999])
@pytest.mark.parametrize("whiten", [False, True])
def test_components_as_scikit_learn_has_them(k, whiten, form, dtype):
    X = DIGITS.astype(dtype)
    ours = kiln.PCA(k, whiten=whiten, **CPU).fit(form(X))
    theirs = sklearn.decomposition.PCA(k, whiten=whiten, svd_solver="full").fit(DIGITS)
    loose = 1e-9 if dtype == np.float64 else 3e-4
    assert ours.n_components_ == theirs.n_components_ and ours.n_samples_ == theirs.n_samples_
    for name in ("explained_variance_", "explained_variance_ratio_", "noise_variance_", "mean_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=loose,
                                   atol=loose * theirs.explained_variance_[0], err_msg=name)
    sure = theirs.explained_variance_ > 0.1
    np.testing.assert_allclose(ours.components_[sure], theirs.components_[sure], atol=20 * loose)
    found, wanted = ours.transform(form(X)), theirs.transform(DIGITS)
    np.testing.assert_allclose(found[:, sure], wanted[:, sure], atol=600 * loose)
    np.testing.assert_allclose(ours.inverse_transform(wanted), theirs.inverse_transform(wanted),
                               atol=600 * loose)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_gaussian_of_the_components(form):
    X = DIGITS[:, 1:30]
    for k in (3, 10, 28):
        ours, theirs = (kind(k, svd_solver="full", **more).fit(X) for kind, more in
                        ((kiln.PCA, CPU), (sklearn.decomposition.PCA, {})))
        np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-11)
        np.testing.assert_allclose(ours.get_precision(), theirs.get_precision(), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(ours.score_samples(form(X)), theirs.score_samples(X), rtol=1e-6)
        assert ours.score(form(X)) == pytest.approx(theirs.score(X), rel=1e-8)


def test_batches_of_another_width_are_refused():
    model = kiln.IncrementalPCA(3, **CPU).fit(DIGITS)
    with pytest.raises(ValueError, match="between calls to partial_fit"):
        model.set_params(n_components=4).partial_fit(DIGITS)


def test_what_has_no_spread(tool, tmp_path):
    """One row, columns that are all constant, one column, and a tool that takes what there is."""
    np.savetxt(tmp_path / "one.csv", [[1.0, 2, 3]], delimiter=",", header="a,b,c", comments="")
    np.savetxt(tmp_path / "same.csv", np.ones((5, 3)), delimiter=",", header="a,b,c", comments="")
    # of a column of 0.1 the variance is 4.6e-35, the square of what its mean is rounded by
    np.savetxt(tmp_path / "tenth.csv", np.full((15, 1), 0.1), header="a", comments="")
    for verb, name in (("svd", "one"), ("svd", "same"), ("pca", "one"), ("pca", "same"), ("svd", "tenth")):
        file, model = tmp_path / f"{name}.csv", tmp_path / f"{verb}-{name}.kiln"
        for command in ([tool, verb, file, "-o", model, "-q"], [tool, "verify", model, file, "-q"]):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert kiln.PCA(1, **CPU).fit(DIGITS[:, 20:21]).explained_variance_ratio_ == pytest.approx(1)
    model = kiln.TruncatedSVD(1, **CPU).fit(DIGITS[:1])
    model.save(tmp_path / "m.kiln")
    assert model.explained_variance_.tolist() == [0]
    wide = np.random.default_rng(0).normal(size=(10, 50))
    assert kiln.PCA(**CPU).fit(wide).score(wide) == -np.inf


def test_minka():
    assert (kiln.PCA("mle", **CPU).fit(DIGITS).n_components_
            == sklearn.decomposition.PCA("mle", svd_solver="full").fit(DIGITS).n_components_)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("standardize", [False, True])
def test_columns_far_from_zero(shift, standardize):
    """Against the singular values in long double's digits: of X whose means are taken off exactly."""
    rng = np.random.default_rng(1)
    A = rng.integers(-50, 50, size=(200, 6)).astype(np.float64)
    ours = kiln.PCA(6, standardize=standardize, **CPU).fit(A + shift)
    centred = A - A.mean(axis=0)
    centred = centred / centred.std(axis=0) if standardize else centred
    np.testing.assert_allclose(ours.singular_values_, np.linalg.svd(centred, compute_uv=False), rtol=1e-9)
    np.testing.assert_allclose(ours.mean_, A.mean(axis=0) + shift, rtol=1e-14)


@pytest.mark.parametrize("batch", [100, 250, None])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_batches(batch, form):
    ours = kiln.IncrementalPCA(10, batch_size=batch, **CPU).fit(form(DIGITS))
    theirs = sklearn.decomposition.IncrementalPCA(10, batch_size=batch).fit(DIGITS)
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_", "noise_variance_",
                 "mean_", "var_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-12,
                                   err_msg=name)
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-7)
    assert (ours.batch_size_, ours.n_samples_seen_) == (theirs.batch_size_, theirs.n_samples_seen_)
    by_hand = kiln.IncrementalPCA(10, **CPU)
    for first in range(0, len(DIGITS), 300):
        by_hand.partial_fit(DIGITS[first:first + 300])
    whole = kiln.PCA(10, **CPU).fit(DIGITS)
    np.testing.assert_allclose(by_hand.explained_variance_[:3], whole.explained_variance_[:3], rtol=1e-2)


@pytest.mark.parametrize("whiten", [False, True])
def test_no_components(whiten, tmp_path):
    """The mean, and noise of one variance in all directions."""
    X = np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 4] + 5
    ours, theirs = (package.PCA(0, whiten=whiten, **more).fit(X)
                    for package, more in ((kiln, {"device": "cpu"}), (sklearn.decomposition, {})))
    assert ours.noise_variance_ == pytest.approx(np.trace(np.cov(X.T)) / 4, rel=1e-12)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-12)
    assert len(ours.get_feature_names_out()) == 0
    for name in ("get_covariance", "get_precision"):
        np.testing.assert_allclose(getattr(ours, name)(), getattr(theirs, name)(), rtol=1e-12)
    for made in (ours.transform(X), ours.fit_transform(X)):
        assert made.shape == theirs.transform(X).shape == (50, 0)
        np.testing.assert_allclose(ours.inverse_transform(made), np.tile(X.mean(axis=0), (50, 1)))
    with pytest.raises(kiln.UnsupportedError, match="without components"):
        ours.save(tmp_path / "m.kiln")
    with pytest.raises(ValueError, match="n_components"):
        kiln.TruncatedSVD(0).fit(X)


def test_all_components_of_batches_are_exact():
    ours = kiln.IncrementalPCA(batch_size=200, **CPU).fit(DIGITS)
    whole = kiln.PCA(**CPU).fit(DIGITS)
    np.testing.assert_allclose(ours.explained_variance_, whole.explained_variance_, atol=1e-10)


def test_batches_are_saved(tmp_path):
    """`kiln verify` cannot judge what a file of batches does not claim."""
    model = kiln.IncrementalPCA(5, batch_size=200, **CPU).fit(DIGITS)
    model.save(tmp_path / "m.kiln")
    loaded = kiln.load(tmp_path / "m.kiln")
    np.testing.assert_array_equal(loaded.transform(DIGITS), model.transform(DIGITS))
    theirs = model.to_sklearn()
    np.testing.assert_allclose(theirs.transform(DIGITS), model.transform(DIGITS), atol=1e-10)
    loaded.partial_fit(DIGITS[:300]), theirs.partial_fit(DIGITS[:300])
    np.testing.assert_allclose(loaded.explained_variance_, theirs.explained_variance_, rtol=1e-8)


def test_edits_of_components_count():
    model = kiln.PCA(2, **CPU).fit(DIGITS)
    before = model.transform(DIGITS)
    model.components_ = -model.components_
    np.testing.assert_allclose(model.transform(DIGITS), -before, atol=1e-10)


def test_as_steps_of_others():
    y = load_digits().target
    search = GridSearchCV(make_pipeline(kiln.PCA(**CPU), kiln.LogisticRegression(max_iter=50, **CPU)),
                          {"pca__n_components": [4, 20]}, cv=2).fit(DIGITS, y)
    assert search.best_params_ == {"pca__n_components": 20}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(DIGITS), search.predict(DIGITS))


@pytest.mark.parametrize("model", [kiln.PCA(3, **CPU), kiln.PCA(3, standardize=True, **CPU),
                                   kiln.TruncatedSVD(3, **CPU)], ids=repr)
def test_the_tool_gives_the_same_coordinates(model, tool, tmp_path):
    X = DIGITS[:, 1:20]
    model.fit(X).save(tmp_path / "m.kiln")
    np.save(tmp_path / "X.npy", X)
    subprocess.run([tool, "predict", tmp_path / "m.kiln", tmp_path / "X.npy", "-q", "-o",
                    tmp_path / "p.npy"], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), model.transform(X), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("model, data, message", [
    (kiln.PCA(-1, **CPU), DIGITS, "at least"), (kiln.PCA(1.5, **CPU), DIGITS, "between 0 and"),
    (kiln.PCA(65, **CPU), DIGITS, "between 0 and"), (kiln.PCA("most", **CPU), DIGITS, "must be a"),
    (kiln.PCA("mle", **CPU), DIGITS[:10], "n_samples >= n_features"),
    (kiln.PCA(svd_solver="best", **CPU), DIGITS, "'svd_solver' parameter of PCA"),
    (kiln.TruncatedSVD(65, **CPU), DIGITS, "n_components"),
    (kiln.TruncatedSVD(0, **CPU), DIGITS, "at least 1"),
    (kiln.TruncatedSVD(algorithm="best", **CPU), DIGITS, "'algorithm' parameter"),
    (kiln.IncrementalPCA(65, **CPU), DIGITS, "n_components=65"),
    (kiln.IncrementalPCA(20, **CPU), DIGITS[:10], "n_components=20")], ids=str)
def test_what_is_refused(model, data, message):
    with pytest.raises(ValueError, match=message):
        model.fit(data)


def test_a_limit_is_said():
    X = of_spectrum(300, 200, 1 + 1e-9 * np.arange(100)[::-1])[0]
    with pytest.warns(UserWarning, match="did not converge"):
        assert not kiln.TruncatedSVD(5, max_iter=1, tol=1e-14, **CPU).fit(X).converged_


def real(name, **options):
    path = REAL / name
    if not path.exists():
        pytest.skip(f"{name} is not here: it is of the data sets that the project may not ship")
    return kiln.read(path, device="cpu", **options).X


@pytest.mark.parametrize("far", [5e5, 1e6])
def test_spreads_near_what_f32_resolves(far):
    """Such columns count as constant for scaling, which is said, but their variances are what they are."""
    X = (np.random.default_rng(0).normal(size=(200, 6)) + far).astype(np.float32)
    theirs = sklearn.decomposition.PCA(3).fit(X.astype(np.float64) - far)
    ours = kiln.PCA(3, **CPU).fit(X)
    assert np.allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-4)
    assert np.isclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-4)
    most = sklearn.decomposition.PCA(0.9).fit(X.astype(np.float64) - far)
    assert kiln.PCA(0.9, **CPU).fit(X).n_components_ == most.n_components_


@pytest.mark.parametrize("name, k", [("bow/docword.kos.txt.gz", 20), ("libsvm/a9a.gz", 15),
                                     ("ratings/ml-100k.u.data.gz", 25)])
def test_real_data(name, k):
    from scipy.sparse.linalg import svds

    host = real(name, format="ratings" if "ratings" in name else None).numpy()
    assert sp.issparse(host)
    model = kiln.TruncatedSVD(k, **CPU).fit(host)
    values = svds(host.astype(np.float64), k, tol=1e-12, return_singular_vectors=False)
    np.testing.assert_allclose(model.singular_values_, np.sort(values)[::-1], rtol=1e-9)
    assert residual(model, host) <= 1e-8
    centred = kiln.PCA(k, **CPU).fit(host)
    theirs = sklearn.decomposition.PCA(k, svd_solver="arpack", tol=1e-12).fit(host)
    np.testing.assert_allclose(centred.explained_variance_, theirs.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(centred.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "covariance_eigh"])
@pytest.mark.parametrize("kind, tolerance, digits", [(np.float32, 1e-5, 1e-5), (np.float64, 1e-8, 1e-12)])
def test_images(kind, tolerance, digits, solver):
    """Numbers of 0 to 255, whose squares' sums an f32 holds, though not what it takes them by."""
    path = REAL / "dense" / "mnist-t10k-images-idx3-ubyte.gz"
    if not path.exists():
        pytest.skip("MNIST is not here: it is of the data sets that the project may not ship")
    with gzip.open(path) as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    A = X - X.mean(axis=0)
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(A.T @ A)[::-1][:50], 0))
    model = kiln.PCA(50, svd_solver=solver, **CPU).fit(X.astype(kind))
    assert model.report_.solver == "gram" and model.report_.residual <= tolerance
    np.testing.assert_allclose(model.singular_values_, values, rtol=digits)
    assert residual(model, A) <= 2 * tolerance


def laplacian(W):
    """Eigenvalues and coordinates by NumPy, of a dense W without links of vertices with themselves."""
    S = (W + W.T) / 2
    degrees = S.sum(axis=0)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1))
    values, vectors = np.linalg.eigh(np.eye(len(W)) - S / roots / roots[:, None])
    return values, vectors / roots[:, None]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("affinity", ["nearest_neighbors", "rbf", "precomputed",
                                      "precomputed_nearest_neighbors", "a function"])
def test_vertices_as_scikit_learn_has_them(affinity, dtype):
    """Points whose distances differ, as else nobody knows which neighbours are the nearest."""
    more = {"n_neighbors": 10, "gamma": 1e-3}
    X = (DIGITS[:500] + np.random.default_rng(0).normal(size=(500, 64)) / 10).astype(dtype)
    if affinity == "precomputed":
        X = kneighbors_graph(X, 10, include_self=True).astype(dtype)
        X = X + X.T
    elif affinity == "precomputed_nearest_neighbors":
        X = kneighbors_graph(X, 20, mode="distance")
    elif affinity == "a function":
        affinity = rbf_affinity
    ours = kiln.SpectralEmbedding(4, affinity=affinity, **more, **CPU).fit(X)
    theirs = SpectralEmbedding(4, affinity=affinity, eigen_solver="arpack", random_state=0, **more).fit(X)
    assert ours.converged_ and ours.embedding_.dtype == X.dtype
    # A vector of each turns from the truth by its residual over the distance to the other eigenvalues.
    # scikit-learn's ends at rounding of its type, and both divide by the roots of the degrees.
    W = theirs.affinity_matrix_
    W = np.array(W.toarray() if sp.issparse(W) else W, dtype=np.float64)
    np.fill_diagonal(W, 0)
    values, vectors = laplacian(W)
    gap = np.diff(values)[:5].min()
    turned = (ours.report_.residual + 50 * np.finfo(dtype).eps) / gap
    for mine in (ours.embedding_, theirs.embedding_):
        apart = np.abs(np.abs(mine) - np.abs(vectors[:, 1:5]))
        assert apart.max() < max(turned, 1e-7) * np.abs(vectors).max()
    assert (np.sign(ours.embedding_) == np.sign(theirs.embedding_)).mean() > 0.99
    np.testing.assert_allclose(ours.affinity_matrix_.sum(), theirs.affinity_matrix_.sum(), rtol=1e-6)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-8), (np.float32, 6e-5)])  # 1,000 roundings
@pytest.mark.parametrize("n, k", [(300, 3), (1000, 2), (1000, 9)])
def test_eigenvalues_as_close_as_a_cycle_has_them(n, k, dtype, tolerance):
    """(1 + cos(2 pi j / n)) / 2, each but the first twice: the gaps of 1,000 vertices are 1e-5. A residual r
    allows an eigenvalue to be r off."""
    W = sp.coo_matrix((np.ones(n, dtype), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n)).tocsr()
    wanted = 1 - np.cos(2 * np.pi * ((np.arange(k + 1) + 1) // 2) / n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kiln.SpectralEmbedding(k, affinity="precomputed", eigen_tol=tolerance, **CPU).fit(W)
    assert model.converged_ and model.report_.residual <= tolerance
    np.testing.assert_allclose(model.eigenvalues_, wanted, atol=2 * tolerance)
    S = (W + W.T) / 2
    v = model.embedding_.astype(float)
    off = np.linalg.norm(S @ v / 2 + v / 2 - v * (1 - model.eigenvalues_[1:] / 2), axis=0)
    assert (off <= 2 * tolerance * np.linalg.norm(v, axis=0)).all()
    triples = kiln.TruncatedSVD(k, **CPU).fit(sp.identity(n, dtype) + S)  # of the same vectors
    assert triples.converged_
    np.testing.assert_allclose(triples.singular_values_, 2 - wanted[:k], atol=4 * tolerance)


def test_all_vectors_of_a_cycle():
    """Rounding of the last turns of its 300 vectors does not keep them turning."""
    n = 300
    W = sp.coo_matrix((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n)).tocsr()
    wanted = np.sort(1 - np.cos(2 * np.pi * np.arange(n) / n))
    model = kiln.SpectralEmbedding(n - 1, affinity="precomputed", **CPU).fit(W)
    assert model.converged_ and model.report_.figures["orthogonality"] <= 4 * n * np.finfo(float).eps
    np.testing.assert_allclose(model.eigenvalues_, wanted, atol=2e-8)


def rbf_affinity(X):
    return rbf_kernel(X, gamma=1e-3)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_graph_in_parts(form):
    """Two parts, two vertices without links, and links in one direction, against NumPy's eigenvalues."""
    W = np.zeros((12, 12))
    W[:4, :4], W[4:10, 4:10] = np.triu(np.ones((4, 4)), 1), np.triu(np.arange(36.0).reshape(6, 6), 1)
    wanted, vectors = laplacian(W)
    with pytest.warns(UserWarning) as said:
        model = kiln.SpectralEmbedding(11, affinity="precomputed", **CPU).fit(form(W))
    told = " ".join(str(one.message) for one in said)
    assert "falls into 2 parts" in told and "vertices without links: 2" in told
    np.testing.assert_allclose(model.eigenvalues_, wanted, atol=1e-13)
    assert model.report_.figures["connected_components"] == 4 and model.report_.figures["isolated"] == 2
    few = kiln.SpectralEmbedding(1, affinity="precomputed", **CPU)
    with pytest.warns(UserWarning, match="parts"):
        few.fit(form(W))
    for part in (slice(0, 4), slice(4, 10)):  # constant on each
        assert np.ptp(few.embedding_[part]) < 1e-7
    assert np.abs(few.embedding_[10:]).max() < 1e-8
    whole = kiln.SpectralEmbedding(2, affinity="precomputed", **CPU).fit(form(W[4:10, 4:10]))
    along = laplacian(W[4:10, 4:10])[1][:, 1:3]
    np.testing.assert_allclose(np.abs(whole.embedding_), np.abs(along), atol=1e-8)


def test_a_graph_by_the_tool(tool, tmp_path):
    """Names, coordinates, the model and its verification; links of a vertex with itself count, as in
    networkx."""
    (tmp_path / "g.edges").write_text("a b 2\nb c 1\nc a 1\nc d 1\nd e 3\ne f 1\nf d 1\nf f 2\n")
    W = np.zeros((6, 6))
    for line in (tmp_path / "g.edges").read_text().splitlines():
        one, other, weight = line.split()
        W["abcdef".index(one), "abcdef".index(other)] = float(weight)
    told = subprocess.run([tool, "spectral", "g.edges", "-k", "2", "--coordinates", "c.csv", "-o", "m.kiln",
                           "--plot", "p.svg", "--json"], cwd=tmp_path, capture_output=True, text=True,
                          check=True)
    values, vectors = laplacian(W)
    found = [row["eigenvalue"] for row in json.loads(told.stdout)["eigenvalues"]]
    np.testing.assert_allclose(found, values[:3], atol=1e-13)
    lines = [line.split(",") for line in (tmp_path / "c.csv").read_text().splitlines()]
    assert lines[0] == ["vertex", "component_1", "component_2"]
    assert [name for name, *_ in lines[1:]] == [*"abcdef"]
    coordinates = np.array([row[1:] for row in lines[1:]], float)
    np.testing.assert_allclose(np.abs(coordinates), np.abs(vectors[:, 1:3]), atol=1e-8)
    np.testing.assert_allclose(kiln.load(tmp_path / "m.kiln").embedding_, coordinates, rtol=1e-12)
    verify = [tool, "verify", "m.kiln", "g.edges"]
    assert subprocess.run(verify, cwd=tmp_path, capture_output=True).returncode == 0
    (tmp_path / "g.edges").write_text((tmp_path / "g.edges").read_text().replace("b c 1", "b c 2"))
    assert subprocess.run(verify, cwd=tmp_path, capture_output=True).returncode == 4


@pytest.mark.parametrize("data, message", [
    (np.ones((4, 3)), "must be the same vertices"), (-np.ones((3, 3)) + np.eye(3), "finite number >= 0"),
    (sp.csr_matrix(-np.ones((3, 3))), "finite number >= 0"), (np.ones((2, 2)), "less than the number"),
    (np.full((3, 3), 1e308), "add up to more")], ids=str)
def test_graphs_that_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        kiln.SpectralEmbedding(2, affinity="precomputed", **CPU).fit(data)
    with pytest.raises(ValueError, match="'affinity' parameter"):
        kiln.SpectralEmbedding(affinity="near", **CPU).fit(data)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e150, 1e300])
def test_weights_of_any_size(size):
    W = kneighbors_graph(DIGITS[:60], 5)
    W = W + W.T
    plain, sized = (kiln.SpectralEmbedding(2, affinity="precomputed", **CPU).fit(W * times)
                    for times in (1.0, size))
    np.testing.assert_allclose(sized.eigenvalues_, plain.eigenvalues_, atol=1e-13)
    np.testing.assert_allclose(sized.embedding_ * np.sqrt(size), plain.embedding_, atol=1e-8)


@pytest.mark.parametrize("far", [0.0, 1e6])
@pytest.mark.parametrize("solver", ["auto", "covariance_eigh"])
def test_data_that_stay_in_their_file(tmp_path, far, solver):
    """Columns far from zero lose digits, as many as the mean is times the spread, and no more."""
    X = of_spectrum(400, 30, 0.8 ** np.arange(30))[0] * 100
    X[:, 3] += far
    np.save(tmp_path / "X.npy", X)
    held = kiln.PCA(4, svd_solver=solver, **CPU).fit(X)
    model = kiln.PCA(4, svd_solver=solver, **CPU).fit(kiln.Matrix(tmp_path / "X.npy", "cpu"))
    assert model.report_.converged
    digits = 1e-12 if far == 0 else 1e-8
    np.testing.assert_allclose(model.singular_values_, held.singular_values_, rtol=digits)
    np.testing.assert_allclose(np.abs(model.components_ @ held.components_.T), np.eye(4), atol=1e-5)
