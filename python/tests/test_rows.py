"""Few rows: what is read where it lies follows what is written there, and says what many rows say."""
import copy
import pickle

import kiln
import numpy as np
import pytest
import scipy.sparse as sp


def data(rows=120, cols=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, cols))
    return X, X @ rng.normal(size=cols) + rng.normal(size=rows)


MODELS = [(kiln.LinearRegression(), lambda y: y), (kiln.Ridge(), lambda y: np.column_stack([y, -2 * y])),
          (kiln.Lasso(0.01), lambda y: y), (kiln.PoissonRegressor(), lambda y: np.exp(y / 4)),
          (kiln.GeneralizedLinearRegressor("gamma", link="log"), lambda y: np.exp(y / 4)),
          (kiln.LinearSVR(), lambda y: y), (kiln.LinearSVC(), lambda y: y > 0),
          (kiln.LinearSVC(), lambda y: np.digitize(y, [-1, 1])),
          (kiln.LogisticRegression(), lambda y: y > 0),
          (kiln.LogisticRegression(), lambda y: np.digitize(y, [-1, 1])),
          (kiln.LogisticRegression(fit_intercept=False), lambda y: np.digitize(y, [-1, 1]))]


def answers(model, X):
    names = ("predict", "decision_function", "predict_proba", "predict_log_proba")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


def agree(few, many, dtype=np.float64):
    assert few.keys() == many.keys()
    for name, found in few.items():
        assert type(found) is np.ndarray and found.dtype == many[name].dtype
        np.testing.assert_allclose(found, many[name], rtol=1e-10 if dtype == np.float64 else 2e-4,
                                   atol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model, target", MODELS, ids=lambda value: type(value).__name__)
def test_few_rows_say_what_a_matrix_says(model, target, dtype):
    X, y = data()
    X = X.astype(dtype)
    model.fit(X, target(y))
    for rows in (X[:1].copy(), X[:6].copy()):
        many = {name: found for name, found in answers(model, kiln.Matrix(rows)).items()}
        agree(answers(model, rows), many, dtype)
        agree(answers(model, sp.csr_matrix(rows)), many, dtype)
        agree(answers(model, sp.csr_array(rows)), many, dtype)


@pytest.mark.parametrize("model, target", MODELS, ids=lambda value: type(value).__name__)
def test_predictions_follow_the_coefficients(model, target):
    X, y = data(seed=1)
    model.fit(X, target(y))
    rows = X[:3].copy()
    before = answers(model, rows)
    model.coef_ *= 2  # in place
    agree(answers(model, rows), answers(model, kiln.Matrix(rows)))
    model.coef_ = np.ascontiguousarray(model.coef_) / 2  # by rows now, and another array
    agree(answers(model, rows), before)
    model.intercept_ = model.intercept_ + 0.25
    agree(answers(model, rows), answers(model, kiln.Matrix(rows)))
    model.coef_ = model.coef_.tolist()
    agree(answers(model, rows), answers(model, kiln.Matrix(rows)))
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        agree(answers(again, rows), answers(model, rows))


def test_intercepts_in_place():
    X, y = data()
    model = kiln.LogisticRegression().fit(X, np.digitize(y, [-1, 1]))
    rows = X[:2].copy()
    before = model.decision_function(rows)
    model.intercept_[1] += 3
    np.testing.assert_allclose(model.decision_function(rows) - before, [[0, 3, 0]] * 2, atol=1e-12)


def test_types_meet():
    X, y = data()
    wide, single = X[:4].copy(), X[:4].astype(np.float32)
    model = kiln.Ridge().fit(X, y)
    assert model.predict(single).dtype == np.float64  # as NumPy's products of both
    np.testing.assert_array_equal(model.predict(single), model.predict(single.astype(float)))
    sparse = sp.csr_matrix(single)
    np.testing.assert_array_equal(model.predict(sparse), model.predict(sparse.astype(float)))
    for other in (kiln.KMeans(2, random_state=0, device="cpu"), kiln.PCA(2, device="cpu")):
        assert other.fit(X).transform(single).dtype == np.float64
    model.fit(X.astype(np.float32), y.astype(np.float32))
    assert model.predict(wide).dtype == np.float64
    np.testing.assert_allclose(model.predict(wide), wide @ model.coef_.astype(float) + model.intercept_)


def test_rows_that_are_wrong_are_refused_as_many_are():
    X, y = data()
    model = kiln.Ridge().fit(X, y)
    bad = X[:2].copy()
    bad[1, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(bad)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(sp.csr_matrix(bad))
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:2, :3])
    outside = sp.csr_matrix(X[:2])
    outside.indices[3] = 99
    with pytest.raises(ValueError):
        model.predict(outside)
    doubled = sp.csr_matrix(([1.0, 2.0], [4, 4], [0, 2]), (1, 7))
    np.testing.assert_allclose(model.predict(doubled), 3 * model.coef_[4] + model.intercept_)


def test_results_stay_on_devices():
    X, y = data()
    model = kiln.Ridge().fit(X, y)
    with kiln.results_on_device():
        assert isinstance(model.predict(X[:1].copy()), kiln.Matrix)


@pytest.mark.parametrize("implicit", [True, False])
def test_lists_follow_the_factors(implicit):
    plays = sp.random(40, 60, 0.2, format="csr", random_state=0)
    model = kiln.ALS(5, implicit=implicit, random_state=0, max_iter=5).fit(plays)
    many = np.arange(40)
    wanted = model.recommend(many, plays, N=8)
    similar = model.similar_items(np.arange(60), N=8)
    for user in (0, 7, 39):
        found = model.recommend(user, plays[user], N=8)
        np.testing.assert_array_equal(found[0], wanted[0][user])
        np.testing.assert_allclose(found[1], wanted[1][user], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.similar_items(user, N=8)[1], similar[1][user], rtol=1e-9, atol=1e-12)
    model.column_factors_[3] = 0  # in place
    if not implicit:
        model.column_biases_[3] = 100
    ids, scores = model.recommend(5, filter_already_liked_items=False, N=60)
    assert implicit or ids[0] == 3
    np.testing.assert_allclose(scores, model.predict(5, ids), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="user_items has 2 rows"):
        model.recommend(5, plays[:2])
    with pytest.raises(ValueError, match="needs user_items"):
        model.recommend(5)


def test_few_documents_have_the_mixtures_of_many():
    counts = sp.random(60, 400, 0.1, format="csr", random_state=0)
    counts.data = np.ceil(5 * counts.data)
    model = kiln.LatentDirichletAllocation(4, random_state=0, max_iter=5).fit(counts)
    for rows in (counts[:1], counts[3:5]):
        assert 4 * rows.nnz <= 400
        np.testing.assert_allclose(model.transform(rows), model.transform(kiln.Matrix(rows)), rtol=1e-9)
    model.components_[2] *= 3  # in place
    np.testing.assert_allclose(model.transform(counts[:1]), model.transform(kiln.Matrix(counts[:1])),
                               rtol=1e-9)
    assert model.transform(sp.csr_matrix((1, 400))).shape == (1, 4)
