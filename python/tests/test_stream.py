"""Batches that come once: what fits make of them is what they make of all rows at once."""
import copy
import datetime
import os
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import kiln

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 12))
Y = X @ np.arange(12.0) + rng.normal(size=3000)
CUTS = (0, 700, 701, 701, 3000)
PARTS = [slice(a, b) for a, b in zip(CUTS, CUTS[1:])]
SPARSE = sp.random(3000, 40, 0.1, format="csr", random_state=1)


def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_dense(tmp_path, monkeypatch, kind):
    where = folder(tmp_path, monkeypatch)
    rows = X.astype(kind)
    read = []
    device = kiln.Device("cpu", memory=rows.nbytes // 4)

    def batches():
        for part in PARTS:
            read.append(part)
            yield rows[part], Y[part]

    got, y = kiln.stream(batches(), device=device)
    assert read == PARTS and np.array_equal(y, Y)
    assert got.shape == X.shape and got.dtype == kind and np.array_equal(got.numpy(), rows)
    want = kiln.Ridge(2.0).fit(rows, Y)
    np.testing.assert_allclose(kiln.Ridge(2.0).fit(got, y).coef_, want.coef_,
                               rtol=1e-4 if kind == np.float32 else 1e-9)
    assert device.statistics()["panels"] > 1 and os.listdir(where)
    del got
    assert os.listdir(where) == []


def test_copies_keep_the_file(tmp_path, monkeypatch):
    """The file goes with the last of them; a pickle that outlives it says what it lacks."""
    where = folder(tmp_path, monkeypatch)
    first = kiln.stream(X[part] for part in PARTS)
    kept, text = [copy.copy(first), copy.deepcopy(first)], pickle.dumps(first)
    kept.append(pickle.loads(text))
    del first
    for one in kept:
        assert one.mapped and np.array_equal(one.numpy(), X)
    assert len(os.listdir(where)) == 1
    del one
    kept.clear()
    assert os.listdir(where) == []
    with pytest.raises(kiln.DataError, match="has gone with the last matrix"):
        pickle.loads(text)


def test_copies_of_a_part_of_a_file(tmp_path):
    """They are that part; a pickle, which has the name alone, says that it would be more."""
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n4,5,7\n")
    part = kiln.read(tmp_path / "t.csv", target="c", mapped=True).X
    for one in (copy.copy(part), copy.deepcopy(part)):
        assert one.mapped and np.array_equal(one.numpy(), [[1, 2], [4, 5]])
    with pytest.raises(kiln.DataError, match="makes a matrix of 2 x 3, but this one was of 2 x 2"):
        pickle.loads(pickle.dumps(part))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, pd.DataFrame, None])
def test_what_is_not_finite_is_told_by_batch_and_row(form):
    rows = np.ones((4, 3))
    rows[2, 1] = 1e300 if form is None else np.nan
    column = "'1'" if form is pd.DataFrame else "1"
    make = form or np.asarray
    named = {"columns": list("012")} if form is pd.DataFrame else {}
    with pytest.raises(kiln.DataError, match=rf"batch 1 has (nan|inf) in row 2, column {column} \(from 0\)"):
        kiln.stream((make(part, **named) for part in (np.ones((2, 3)), rows)),
                    dtype=np.float32 if form is None else None)


def test_sparse(tmp_path, monkeypatch):
    where = folder(tmp_path, monkeypatch)
    got = kiln.stream(SPARSE[part] for part in PARTS)
    assert (got.numpy() != SPARSE).nnz == 0 and got.nnz == SPARSE.nnz
    want = kiln.NMF(2, beta_loss="kullback-leibler", solver="mu", init="random", random_state=1, max_iter=3,
                    tol=1e-12)
    with pytest.warns(UserWarning):
        first = want.fit(SPARSE).components_
    with pytest.warns(UserWarning):
        second = want.fit(got).components_
    np.testing.assert_allclose(second, first, rtol=0, atol=1e-10 * np.abs(first).max())
    del got
    assert os.listdir(where) == []


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_tables(library):
    names = [f"c{j}" for j in range(X.shape[1])]
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    tables = [make({name: X[part][:, j] for j, name in enumerate(names)}) for part in PARTS]
    whole = kiln.stream([tables[0], tables[1].select(names[::-1]) if library != "pandas"
                         else tables[1][names[::-1]], *tables[2:]])
    assert np.array_equal(whole.numpy(), X) and list(whole.feature_names) == names
    model = kiln.Ridge().fit(whole, Y)
    assert list(model.feature_names_in_) == names
    np.testing.assert_allclose(model.predict(tables[3]), model.predict(X[PARTS[3]]), rtol=1e-12)
    other = kiln.stream([tables[3].select(names[::-1]) if library != "pandas" else tables[3][names[::-1]]])
    with pytest.raises(kiln.DataError, match="column 0 of X is 'c11', but was 'c0' in fit"):
        model.predict(other)
    assert not hasattr(model.fit(kiln.matrix(X), Y), "feature_names_in_")
    with pytest.raises(kiln.DataError, match="batch 1 lacks the column 'c1'"):
        kiln.stream([tables[0], make({"x" if name == "c1" else name: [1.0] for name in names})])
    with pytest.raises(kiln.ArgumentError, match="batch 1 must have names of columns"):
        kiln.stream([tables[0], X])
    with pytest.raises(kiln.DataError, match="batch 0: the column 't' is of .*TableEncoder"):
        kiln.stream([make({"n": [1.0], "t": ["u"]})])
    if library == "pyarrow":
        twice = module.table([[1.0], [2.0]], names=["a", "a"])
        with pytest.raises(kiln.DataError, match="batch 1 has two columns of the name 'a'"):
            kiln.stream([make({"a": [1.0], "b": [2.0]}), twice])
    if library == "pandas":
        years = make({2023: [1.0], 2024: [2.0]}), make({2024: [20.0], 2023: [10.0]})
        assert kiln.stream(years).numpy().tolist() == [[1, 2], [10, 20]]
    with pytest.raises(kiln.DataError, match="batch 0: the column 'd' is of .*dates"):
        kiln.stream([make({"n": [1.0], "d": [datetime.date(2020, 1, 2)]})])
    if library == "pyarrow":
        assert np.array_equal(kiln.stream(tables[3].to_batches(max_chunksize=500)).numpy(), X[PARTS[3]])


@pytest.mark.parametrize("batches, message", [
    ([], "no batches"),
    ([X, X[:, :3]], "batch 1 is dense of 3 columns, but the first dense of 12"),
    ([X, sp.csr_matrix(X)], "batch 1 is sparse of 12"),
    ([X[0]], "batch 0 has 1 dimensions"),
    ([(X, Y), X], "batch 1 must have a target for each row"),
    ([X, (X, Y)], "batch 1 must have no y"),
    ([(X, Y[:7])], "batch 0 must have a target for each row"),
    ([X.astype(np.float32), X], "batch 1 is float64, but the first float32: give dtype="),
    ([SPARSE.astype(np.float32), SPARSE], "batch 1 is float64"),
    ([X + 1j], "batch 0 is complex"),
    ([X, X + 1j], "batch 1 is complex"),
    ([X, np.ma.masked_greater(X, 1)], "batch 1: expected real numbers, got a masked array"),
    ([np.array([["u", "v"]])], "batch 0: expected real numbers, got an array of <U1"),
    ([np.array([["2020-01-02"]], "M8[D]")], "batch 0: expected real numbers, got datetime64"),
    ([(X, Y, Y)], "batch 0 is a tuple of 3"),
    ([(X, np.ma.masked_greater(Y, 1))], "y of batch 0: expected real numbers, got a masked array"),
])
def test_refused(tmp_path, monkeypatch, batches, message):
    where = folder(tmp_path, monkeypatch)
    with pytest.raises(kiln.ArgumentError, match=message):
        kiln.stream(batches)
    assert os.listdir(where) == []


def test_a_type_that_is_given():
    got = kiln.stream([X[:9].astype(np.float32), X[9:]], dtype=np.float64)
    assert got.dtype == np.float64 and np.array_equal(got.numpy()[9:], X[9:])
    assert kiln.stream([X[:9].astype(np.float32), X[9:]], dtype=np.float32).dtype == np.float32


@pytest.mark.filterwarnings("error")
def test_an_error_of_the_batches(tmp_path, monkeypatch):
    where = folder(tmp_path, monkeypatch)

    def broken():
        yield X
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        kiln.stream(broken())
    assert os.listdir(where) == []


FAR = X + 1e6 * np.arange(12)  # columns far from zero, whose plain sums of squares would cancel
TWO = np.column_stack([Y, X[:, 0] - Y])
WEIGHTS = rng.random(3000)


@pytest.mark.parametrize("rows, targets, weights, options", [
    (X, Y, None, {}),
    (X, TWO, WEIGHTS, {"alpha": [0.5, 20.0]}),
    (X, Y, WEIGHTS, {"fit_intercept": False}),
    (FAR, TWO, None, {"alpha": 3.0}),
    (SPARSE, Y, None, {"alpha": 0.1}),
    (X.astype(np.float32), Y.astype(np.float32), None, {}),
])
def test_ridge_of_batches(rows, targets, weights, options):
    want = kiln.Ridge(**options).fit(rows, targets, weights)
    got = kiln.Ridge(**options)
    for part in PARTS:
        if part.start < part.stop:
            got.partial_fit(rows[part], targets[part], None if weights is None else weights[part])
    digits = 1e-4 if rows.dtype == np.float32 else 1e-8
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=0, atol=digits * np.abs(want.coef_).max())
    np.testing.assert_allclose(got.predict(rows), want.predict(rows), rtol=0,
                               atol=digits * np.abs(want.predict(rows)).max())
    assert got.coef_.shape == want.coef_.shape and got.coef_.dtype == want.coef_.dtype
    assert np.array_equal(got.fit(rows, targets, weights).coef_, want.coef_)
    with pytest.warns(UserWarning, match="partial_fit begins anew: fit"):
        got.partial_fit(rows[:500], targets[:500], None if weights is None else weights[:500])


def test_ridge_goes_on_from_a_pickle_alone(tmp_path):
    want, first = kiln.Ridge().fit(X, Y), kiln.Ridge().partial_fit(X[:900], Y[:900])
    first.save(tmp_path / "m.kiln")
    with pytest.warns(UserWarning, match="begins anew: .* model files"):
        kiln.load(tmp_path / "m.kiln").partial_fit(X[900:], Y[900:])
    again = pickle.loads(pickle.dumps(first)).partial_fit(X[900:], Y[900:])
    np.testing.assert_allclose(again.coef_, want.coef_, rtol=1e-9)


def test_ridge_of_dependent_columns():
    """With a penalty of 0 the solution of the least norm."""
    rows = np.column_stack([X, X[:, :2]])
    got = kiln.Ridge(0.0)
    for part in (slice(0, 900), slice(900, 3000)):
        got.partial_fit(rows[part], Y[part])
    centred = rows - rows.mean(axis=0)
    want = np.linalg.lstsq(centred, Y - Y.mean(), rcond=1e-10)[0]
    np.testing.assert_allclose(got.coef_, want, rtol=0, atol=1e-8)


def test_ridge_refuses():
    model = kiln.Ridge().partial_fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="12"):
        model.partial_fit(X[:, :3], Y)
    with pytest.raises(kiln.ArgumentError, match="y has 2 targets"):
        model.partial_fit(X, TWO)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.where(X > 2, np.nan, X), Y)
    assert np.array_equal(model.coef_, before)
    with pytest.raises(kiln.ArgumentError, match="positive"):
        kiln.Ridge(positive=True).partial_fit(X, Y)
    with pytest.raises(kiln.ArgumentError, match="fit_intercept cannot change"):
        model.set_params(fit_intercept=False).partial_fit(X, Y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("alpha", [1e-300, 1e-14, 1e-11, 1e-8, 1e-4, 1.0])
def test_ridge_of_a_small_penalty(alpha):
    """Dependent columns share what one has, by the singular values of the rows."""
    rows = np.column_stack([X, X[:, :2]])
    got = kiln.Ridge(alpha).partial_fit(rows, Y)
    U, s, V = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    U, s, V = U[:, :12], s[:12], V[:12]
    want = V.T @ (s / (s**2 + alpha) * (U.T @ (Y - Y.mean())))
    np.testing.assert_allclose(got.coef_, want, rtol=0, atol=1e-7)


@pytest.mark.filterwarnings("error")
def test_ridge_of_unlike_scales():
    scales = np.logspace(-6, 6, 12)
    got = kiln.Ridge(1e-14).partial_fit(X * scales, Y)
    want = np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(), rcond=None)[0]
    np.testing.assert_allclose(got.coef_ * scales, want, rtol=0, atol=1e-4)  # alpha is 3e-6 of a column's sum


def test_ridge_counts_no_batch_that_failed(monkeypatch):
    model = kiln.Ridge().partial_fit(X[:900], Y[:900])
    with monkeypatch.context() as broken:
        broken.setattr("kiln._sufficient._solved", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.partial_fit(X[900:], Y[900:])
    got = model.partial_fit(X[900:], Y[900:]).coef_
    np.testing.assert_allclose(got, kiln.Ridge().fit(X, Y).coef_, rtol=0, atol=1e-8)
