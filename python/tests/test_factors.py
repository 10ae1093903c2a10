"""Factor models: what their attributes are, at their defaults and from any start."""
import gzip
import inspect
import os
import pathlib
import re
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse

import kiln

from conftest import ROOT

MAKERS = {
    "als": lambda **more: kiln.ALS(5, **more),
    "als with biases": lambda **more: kiln.ALS(5, biases=True, **more),
    "als without": lambda **more: kiln.ALS(5, biases=False, counted=True, **more),
    "als implicit": lambda **more: kiln.ALS(5, implicit=True, **more),
    "als ccd": lambda **more: kiln.ALS(5, solver="ccd", **more),
    "sfa": lambda **more: kiln.SFA(5, **more),
}


def ratings(rows=60, columns=40, density=0.4, seed=0, size=1.0):
    """About 1 to 5, of rank 2 about the means of rows and columns."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(rows, columns, density, format="csr", random_state=rng)
    u, i = X.nonzero()
    A, B = rng.normal(size=(rows, 3)), rng.normal(size=(columns, 3))
    X.data = size * (3 + 0.5 * A[u, 2] + 0.4 * B[i, 2] + 0.6 * (A[u, :2] * B[i, :2]).sum(1) + 0.2
                     * rng.normal(size=X.nnz))
    return X


def by_formula(model, rows, columns):
    return np.array([model.mean_ + model.row_biases_[u] + model.column_biases_[i] + model.row_factors_[u]
                     @ model.column_factors_[i]
                     for u, i in zip(rows, columns)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", MAKERS)
def test_attributes_are_the_prediction(kind, dtype, tmp_path):
    X = ratings().astype(dtype)
    fitted = MAKERS[kind](device="cpu", random_state=0).fit(X)
    fitted.save(tmp_path / "m.kiln")
    u, i = X.nonzero()
    for model in (fitted, kiln.load(tmp_path / "m.kiln")):
        assert (
            model.row_factors_.shape == (60, 5)
            and model.column_factors_.shape == (40, 5)
            and model.n_components == 5
        )
        assert model.row_biases_.shape == (60,) and model.column_biases_.shape == (40,)
        assert model.transform(X[:7]).shape == (7, 5) and len(model.get_feature_names_out()) == 5
        np.testing.assert_allclose(model.predict(u, i), by_formula(model, u, i),
                                   rtol=1e-4 if dtype == np.float32 else 1e-12)
        assert model.l2_ == pytest.approx(fitted.l2_)
        if kind == "als implicit":
            continue
        error = np.sqrt(np.mean((model.predict(u, i) - X.data) ** 2))
        assert error < 0.8 * X.data.std()
        objective = X.nnz * error**2 / 2
        weights = [X.getnnz(1), X.getnnz(0)] if model.get_params().get("counted") else [1, 1]
        for side, count in zip(("row", "column"), weights):
            factors, biases = getattr(model, f"{side}_factors_"), getattr(model, f"{side}_biases_")
            squares = (factors**2).sum(1) + (0 if kind == "sfa" else biases**2)
            objective += model.l2_ / 2 * (count * squares).sum()
        assert fitted.objective_ == pytest.approx(objective, rel=1e-4 if dtype == np.float32 else 1e-9)


def test_predict_broadcasts_and_refuses():
    model = kiln.ALS(2, device="cpu", random_state=0).fit(ratings())
    np.testing.assert_allclose(model.predict(3, np.arange(40)), [model.predict(3, i) for i in range(40)])
    assert model.predict([[0], [1]], [0, 1, 2]).shape == (2, 3) and model.predict([], []).shape == (0,)
    np.testing.assert_array_equal(model.predict(ratings()[:5]),
                                  model.recommend(ratings()[:5], N=1)[0][:, 0])
    for rows, columns in ((60, 0), (-1, 0), (0, 40), (0.5, 0)):
        with pytest.raises(ValueError, match="integers from 0 to"):
            model.predict(rows, columns)


@pytest.mark.parametrize("kind", MAKERS)
def test_recommend_takes_what_transform_takes(kind):
    import pandas

    X = ratings()
    model = MAKERS[kind](device="cpu", random_state=0).fit(X)
    columns, scores = model.recommend(np.arange(9), X[:9], N=4)
    for u in range(9):
        new = np.setdiff1d(np.arange(40), X[u].indices)
        wanted = model.predict(u, new)
        np.testing.assert_array_equal(columns[u], new[np.argsort(-wanted)[:4]])
        np.testing.assert_allclose(scores[u], np.sort(wanted)[::-1][:4], rtol=1e-12)
    seen = X[:9]
    for same in (np.ascontiguousarray(model.row_factors_[:9]), model.row_factors_[:9].tolist(),
                 kiln.Matrix(model.row_factors_[:9].copy())):
        np.testing.assert_array_equal(model.recommend(same, seen, N=4)[0], columns)
        np.testing.assert_array_equal(model.recommend(same, seen.toarray(), N=4)[0], columns)
    folded = model.recommend(seen, N=4)  # without what they have
    assert not any(set(folded[0][u]) & set(X[u].indices) for u in range(9))
    for same in (seen.tocoo(), seen.toarray(), pandas.DataFrame(seen.toarray()), kiln.Matrix(seen),
                 seen.astype(np.float32)):
        again = model.recommend(same, N=4)
        np.testing.assert_array_equal(again[0], folded[0])
        np.testing.assert_allclose(again[1], folded[1], rtol=1e-3)
    factors = model.transform(seen)
    np.testing.assert_array_equal(model.recommend(factors, seen, N=4)[0], folded[0])
    with kiln.results_on_device():
        np.testing.assert_array_equal(model.transform(seen).numpy(), factors)


@pytest.mark.parametrize("make", [lambda k, seed: kiln.ALS(k, implicit=True, random_state=seed, device="cpu"),
                                  lambda k, seed: kiln.ALS(k, implicit=True, l2=0.01, alpha=40,
                                                           random_state=seed, device="cpu"),
                                  lambda k, seed: kiln.ALS(k, l2=0.1, counted=True, biases=False,
                                                           random_state=seed, device="cpu"),
                                  lambda k, seed: kiln.ALS(k, random_state=seed, device="cpu"),
                                  lambda k, seed: kiln.SFA(k, random_state=seed, device="cpu")])
@pytest.mark.parametrize("shape", [(5, 4, 0.6), (30, 20, 0.3), (200, 100, 0.1)])
def test_any_seed_ends_near_the_best(make, shape):
    rows, columns, density = shape
    rng = np.random.default_rng(1)
    counts = rng.poisson(100 * np.outer(rng.gamma(1, 1, rows),
                                        rng.gamma(1, 1, columns))) * (rng.random((rows, columns)) < density)
    X = scipy.sparse.csr_matrix(counts.astype(float))
    for k in (1, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ends = [make(k, seed).fit(X).objective_ for seed in range(12)]
        assert max(ends) <= 2.5 * min(ends), (k, ends)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", MAKERS)
def test_defaults_fit_any_size_and_unit(kind, size):
    """More factors than noise is found in a table of 12 x 8 and of 300 x 200, whatever the unit of its
    numbers."""
    for shape in ((12, 8, 0.7), (300, 200, 0.1)):
        X = ratings(*shape, size=1 if kind == "als implicit" else size)  # whose counts have no unit
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = MAKERS[kind](device="cpu", random_state=0).fit(X)
        assert model.converged_ and model.report_.figures["zero_factors"] == 0
        assert np.linalg.norm(model.row_factors_ @ model.column_factors_.T) > 0
        if kind != "als implicit":
            error = np.sqrt(np.mean((model.predict(*X.nonzero()) - X.data) ** 2))
            assert error < 0.95 * X.data.std()


@pytest.mark.parametrize("kind", MAKERS)
def test_a_model_of_nothing_warns(kind):
    with pytest.warns(UserWarning, match="all factors are about 0"):
        model = MAKERS[kind](l2=1e5, device="cpu", random_state=0).fit(ratings())
    assert model.report_.figures["zero_factors"] == 1


def test_sparse_and_dense_matrices_of_any_kind():
    counts = scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, (30, 20)).astype(float))
    for make in (lambda: kiln.NMF(2, random_state=0, device="cpu"),
                 lambda: kiln.LatentDirichletAllocation(2, random_state=0, device="cpu"),
                 lambda: kiln.ALS(2, random_state=0, device="cpu"),
                 lambda: kiln.SFA(2, random_state=0, device="cpu")):
        first = make().fit(counts)
        for same in (kiln.Matrix(counts), kiln.Matrix(counts.toarray()), counts.toarray(), counts.tocoo()):
            again = make().fit(same)
            assert again.objective_ == first.objective_
            np.testing.assert_array_equal(again.transform(same), first.transform(counts))
    with pytest.raises(kiln.DataError, match="must be a finite number >= 0"):
        kiln.NMF(2, device="cpu").fit(kiln.Matrix(scipy.sparse.csr_matrix(-counts)))


NAMES = {"max_iter": "max_iterations", "tol": "tolerance", "doc_topic_prior": "alpha",
         "topic_word_prior": "eta", "learning_decay": "decay", "learning_offset": "delay",
         "n_components": "components"}
# scikit-learn's words for the same thing, and what an estimator's name says already
ELSEWHERE = {("LinearSVC", "C"), ("LinearSVR", "C"), ("MDS", "init"), ("MiniBatchKMeans", "max_iter"),
             ("MiniBatchKMeans", "tol"), ("NMF", "prior"), ("GeneralizedLinearRegressor", "link"),
             ("GeneralizedLinearRegressorCV", "link"), ("PCA", "tol"), ("TruncatedSVD", "tol")}


def test_defaults_are_the_registrys(tool):
    """A signature says what the registry says, of which the tool's options are made; None leaves it
    to the library."""
    from kiln._base import Estimator
    from kiln._library import lib, text

    seen = 0
    for name in dir(kiln):
        kind = getattr(kiln, name)
        if not (inspect.isclass(kind) and issubclass(kind, Estimator)):
            continue
        row = lib.kiln_algorithm_named(kind._algorithm.encode())
        options = {text(row.options[i].name): row.options[i] for i in range(row.option_count)}
        for parameter in inspect.signature(kind).parameters.values():
            option = options.get(NAMES.get(parameter.name, parameter.name))
            if parameter.name == "n_components" and kind._algorithm in ("svd", "pca"):
                continue  # scikit-learn's; the tool takes ten, or as many as there are
            if parameter.name == "n_components":
                assert parameter.default == row.components, name
                told = subprocess.run([tool, kind._algorithm, "--help"], stdout=subprocess.PIPE, check=True,
                                      text=True).stdout
                word = {"als": "factors", "sfa": "factors", "mds": "dimensions",
                        "spectral": "components"}.get(kind._algorithm,
                                                                                     "topics")
                assert re.search(rf"--{word} [^\[]*\[{parameter.default}\]", told), name
            elif (option is not None and parameter.default is not None and (name, parameter.name)
                  not in ELSEWHERE):
                choices = text(option.choices).split("|") if option.choices else []
                standard = (
                    choices[int(option.standard) - 1]
                    if choices and option.standard
                    else "auto" if choices else option.standard
                )
                assert (parameter.default == standard and option.standard
                        == option.standard_f32), (name, parameter.name)
                seen += 1
    assert seen > 40
    told = subprocess.run([tool, "lda", "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    assert (f"after every "
            f"{inspect.signature(kiln.LatentDirichletAllocation).parameters['batch_size'].default} documents"
            in " ".join(told.split()))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1.0, 1e-8, 1e8])
@pytest.mark.parametrize("components", [1, 4])
def test_topics_of_any_size(components, size, dtype):
    """Counts of any size, a document and a word without any among them: the objective improves all the time,
    to the end, and KL-NMF's is in proportion to the counts."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.3, 1, (80, 4)) @ rng.gamma(0.3, 2, (4, 60))).astype(float)
    counts[5], counts[:, 7] = 0, 0
    X = scipy.sparse.csr_matrix(counts * size).astype(dtype)
    exact = 1e-6 if dtype == np.float32 else 1e-12
    makers = {"nmf": lambda **more: kiln.NMF(components, init="nndsvda", device="cpu", **more),
              "random": lambda **more: kiln.NMF(components, random_state=0, max_iter=2000, device="cpu",
                                                **more),
              "gap": lambda **more: kiln.NMF(components, prior="gamma", random_state=0, device="cpu", **more),
              "lda": lambda **more: kiln.LatentDirichletAllocation(components, random_state=0, device="cpu",
                                                                   **more)}
    for name, make in makers.items():
        model = make().fit(X)
        better = np.diff(model.report_.history["objective"]) * (1 if name == "lda" else -1)
        assert (better[5 if name == "lda" else 0:] >= -exact * abs(model.objective_)).all(), name
        assert (model.converged_ and np.isfinite(model.components_).all()
                and np.isfinite(model.transform(X)).all()), name
        end = make(tol=1e-9).set_params(max_iter=5000).fit(X).objective_
        assert abs(model.objective_ - end) <= 0.01 * abs(end), name
        if name == "random":
            plain = make().fit(scipy.sparse.csr_matrix(counts))
            assert model.objective_ == pytest.approx(size * plain.objective_, rel=1e-3)


@pytest.mark.filterwarnings("ignore:.*all factors are about 0")
@pytest.mark.parametrize("device", ["cpu", "cpu*2", "opencl"])
@pytest.mark.parametrize("name, options", [("ALS", {"solver": "cg"}), ("ALS", {"solver": "cholesky"}),
                                           ("ALS", {"solver": "ccd"}), ("SFA", {"damping": 1e15}),
                                           ("SFA", {"damping": 0.0})])
def test_ratings_far_from_zero(name, options, device):
    """Means near 2^24 lie between two numbers of f32: what ratings are less their mean is exact all the same.
    Under a penalty that leaves no factors the objective is the squares of that."""
    if device == "opencl" and not any(d["name"].startswith("opencl") and d["usable"] for d in kiln.devices()):
        pytest.skip("no OpenCL device")
    rows, columns = np.indices((8, 6))
    R = 16_000_000.0 + 3 * rows + (rows + columns) % 2
    less = R - (R.mean(1, keepdims=True) if options.get("damping") == 0 else R.mean())
    model = getattr(kiln, name)(2, l2=1e9, device=device, **options)
    found = model.fit(scipy.sparse.csr_matrix(R.astype(np.float32))).report_.objective
    assert found == pytest.approx((less**2).sum() / 2, rel=1e-4)  # n 2^-24, and the penalty's share


def test_defaults_on_movielens():
    """A tenth held out: where a mean and biases alone have an RMSE of 0.94, three seeds."""
    path = pathlib.Path(os.environ.get("KILN_SHARED",
                                       ROOT.parent / "shared")) / "data" / "ratings" / "ml-100k.u.data.gz"
    if not path.exists():
        pytest.skip(f"there is no {path}: MovieLens may not be handed on")
    with gzip.open(path, "rt") as file:
        rows, columns, values = np.loadtxt(file, dtype=np.int64, usecols=(0, 1, 2)).T
    for make, most in ((kiln.ALS, 0.92), (kiln.SFA, 0.93)):
        errors = []
        for seed in range(3):
            test = np.random.default_rng(seed).random(len(values)) < 0.1
            X = scipy.sparse.csr_matrix((values[~test].astype(float), (rows[~test] - 1, columns[~test] - 1)),
                                        (943, 1682))
            model = make(random_state=seed, device="cpu").fit(X)
            errors.append(np.sqrt(np.mean((model.predict(rows[test] - 1, columns[test] - 1)
                                           - values[test]) ** 2)))
        assert np.mean(errors) < most


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bound_of_topics_is_scikit_learns(dtype):
    """The topics are the same; mixtures are found anew by both, each to its own tolerance."""
    sklearn = pytest.importorskip("sklearn.decomposition")
    from scipy.special import psi

    X = scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, (40, 12)).astype(dtype))
    ours = kiln.LatentDirichletAllocation(3, random_state=0, device="cpu", max_iter=2000).fit(X)
    theirs = sklearn.LatentDirichletAllocation(3, random_state=0).fit(X)
    theirs.components_ = np.asarray(ours.components_, float)
    theirs.exp_dirichlet_component_ = np.exp(psi(theirs.components_)
                                             - psi(theirs.components_.sum(axis=1))[:, None])
    assert ours.score(X) == pytest.approx(theirs.score(X.astype(float)), rel=1e-4)
    assert ours.score(X) == pytest.approx(ours.objective_, rel=1e-4)
