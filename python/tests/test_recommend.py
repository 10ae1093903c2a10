"""Recommenders by implicit's habits, and how good their lists are, beside implicit itself and plain NumPy."""
import json
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.base

import kiln

implicit = pytest.importorskip("implicit", reason="the package implicit is not installed")
from implicit.als import AlternatingLeastSquares  # noqa: E402
from implicit.evaluation import ranking_metrics_at_k as their_metrics  # noqa: E402

CPU = {"device": "cpu", "random_state": 0}


def plays(users=70, items=50, density=0.25, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(users, items, density, format="csr", random_state=rng)
    X.data = rng.integers(1, 6, X.nnz).astype(float)
    return X


@pytest.fixture(scope="module")
def pair():
    """Kiln's model and implicit's, of the same factors."""
    X = plays().astype(np.float32)
    ours = kiln.ALS(6, implicit=True, confidence="proportional", alpha=2.0, l2=0.5, **CPU).fit(X)
    theirs = AlternatingLeastSquares(6, regularization=0.5, alpha=2.0, random_state=0, num_threads=1)
    theirs.user_factors, theirs.item_factors = ours.user_factors.copy(), ours.item_factors.copy()
    return X, ours, theirs


@pytest.mark.parametrize("confidence", ["linear", "proportional", "log"])
@pytest.mark.parametrize("solver", ["cg", "cholesky"])
def test_objective_is_that_of_the_confidence(confidence, solver, tmp_path):
    X, alpha, epsilon = plays(), 0.3, 0.5  # proportional: from 0.3 on, where a cell without a count has 1
    model = kiln.ALS(4, implicit=True, confidence=confidence, alpha=alpha, l2=0.3, solver=solver,
                     epsilon=epsilon if confidence == "log" else None, **CPU).fit(X)
    r = X.toarray()
    c = {"linear": 1 + alpha * r, "proportional": np.where(r > 0, alpha * r, 1),
         "log": 1 + alpha * np.log1p(r / epsilon)}[confidence]
    A, B = model.user_factors, model.item_factors
    squares = (c * ((r > 0) - A @ B.T) ** 2).sum() + 0.3 * ((A**2).sum() + (B**2).sum())
    assert model.objective_ == pytest.approx(squares / 2, rel=1e-10)
    model.save(tmp_path / "m.kiln")
    again = kiln.load(tmp_path / "m.kiln")
    assert again.confidence == confidence and again.get_params()["alpha"] == alpha
    W = B.T @ (c[3][:, None] * B) + 0.3 * np.eye(4)
    for one in (model, again):
        np.testing.assert_allclose(one.transform(X[3]), [np.linalg.solve(W, B.T @ (c[3] * (r[3] > 0)))],
                                   rtol=1e-8)


@pytest.mark.parametrize("alpha", [2.0, 0.15])
def test_objective_beside_implicits(alpha):
    """Also where counts weigh less than none."""
    from implicit.cpu.als import calculate_loss

    X = plays().astype(np.float32)
    ours = kiln.ALS(6, implicit=True, confidence="proportional", alpha=alpha, l2=0.5, **CPU).fit(X)
    counted = (alpha * X).tocsr()
    loss = calculate_loss(counted, ours.user_factors, ours.item_factors, 0.5, num_threads=1)
    cells = counted.sum() + np.prod(X.shape) - X.nnz
    assert 2 * ours.objective_ / cells == pytest.approx(loss, rel=2e-5)
    theirs = AlternatingLeastSquares(6, regularization=0.5, alpha=alpha, iterations=200, random_state=0,
                                     use_cg=False, num_threads=1)
    theirs.fit(X, show_progress=False)
    best = calculate_loss(counted, theirs.user_factors, theirs.item_factors, 0.5, num_threads=1)
    assert loss <= best * 1.02


@pytest.mark.parametrize("options", [{}, {"alpha": 3.0, "regularization": 0.5, "use_cg": False,
                                          "dtype": np.float64}], ids=["defaults", "exact"])
def test_implicits_constructor(options, tmp_path):
    """The same call of both: the loss falls to theirs, which callbacks are told."""
    X, told = plays().astype(np.float32), ([], [])
    options = {"factors": 8, "iterations": 20, "calculate_training_loss": True, "num_threads": 1,
               "random_state": 0, **options}
    ours, theirs = (kind(**options) for kind in (kiln.AlternatingLeastSquares, AlternatingLeastSquares))
    for model, losses in zip((ours, theirs), told):
        model.fit(X, show_progress=False, callback=lambda *step, losses=losses: losses.append(step))
    assert [step for step, _, _ in told[0]] == [step for step, _, _ in told[1]] == list(range(20))
    assert told[0][-1][2] < 1.03 * told[1][-1][2]
    cells = X.sum() * ours.alpha + np.prod(X.shape) - X.nnz
    assert told[0][-1][2] == pytest.approx(2 * ours.objective_ / cells, rel=1e-5)
    assert ours.user_factors.dtype == theirs.user_factors.dtype == options.get("dtype", np.float32)
    again = sklearn.base.clone(ours).fit(X, False)
    np.testing.assert_array_equal(again.user_factors, ours.user_factors)
    ours.save(tmp_path / "m.kiln")
    loaded = kiln.AlternatingLeastSquares.load(tmp_path / "m.kiln")
    assert loaded.get_params() == {**ours.get_params(), "device": "auto"}
    np.testing.assert_array_equal(loaded.recommend(3, X[3])[0], ours.recommend(3, X[3])[0])


def test_lists_are_implicits(pair):
    X, ours, theirs = pair
    users = np.array([3, 9, 0])
    for options in ({}, {"filter_already_liked_items": False}, {"N": 3, "filter_items": [1, 2, 30]},
                    {"items": np.array([7, 3, 11, 20, 45])}, {"recalculate_user": True}):
        for who, liked in ((users, X[users]), (5, X[5])):
            ids, scores = ours.recommend(who, liked, **options)
            wanted, values = theirs.recommend(who, liked, **options)
            if "items" in options:  # theirs has what is left out at the end of the list
                ids, wanted = ids[ids >= 0], wanted[values > -1e30]
                scores, values = scores[np.isfinite(scores)], values[values > -1e30]
            np.testing.assert_array_equal(ids, wanted)
            np.testing.assert_allclose(scores, values, rtol=2e-4, atol=1e-6)
    for ids, wanted in ((ours.similar_items(4, N=6), theirs.similar_items(4, N=6)),
                        (ours.similar_items([4, 8], items=np.arange(20)),
                         theirs.similar_items([4, 8], items=np.arange(20))),
                        (ours.similar_users(7, filter_users=[1, 2]),
                         theirs.similar_users(7, filter_users=[1, 2])),
                        (ours.similar_users([7, 2], users=np.arange(30)),
                         theirs.similar_users([7, 2], users=np.arange(30)))):
        np.testing.assert_array_equal(ids[0], wanted[0])
        np.testing.assert_allclose(ids[1], wanted[1], rtol=1e-5)
    score, parts, weights = ours.explain(3, X, 11, N=4)
    their_score, their_parts, _ = theirs.explain(3, X, 11, N=4)
    assert score == pytest.approx(their_score, rel=1e-4)
    assert [i for i, _ in parts] == [i for i, _ in their_parts]
    np.testing.assert_allclose([s for _, s in parts], [s for _, s in their_parts], rtol=1e-4)
    assert ours.explain(3, X, 12, weights)[0] == pytest.approx(theirs.explain(3, X, 12)[0], rel=1e-4)


def test_new_rows_and_columns(pair):
    X, ours, theirs = pair
    import copy

    model = copy.deepcopy(ours)
    new = plays(3, 50, seed=5).astype(np.float32)
    theirs = copy.deepcopy(theirs)
    model.partial_fit_users([2, 70, 72], new)
    theirs.partial_fit_users([2, 70, 72], new)
    np.testing.assert_allclose(model.user_factors, theirs.user_factors, atol=2e-4)
    model.partial_fit_items([50, 1], plays(2, 73, seed=6).astype(np.float32))
    theirs.partial_fit_items([50, 1], plays(2, 73, seed=6).astype(np.float32))
    np.testing.assert_allclose(model.item_factors, theirs.item_factors, atol=2e-4)
    assert model.n_features_in_ == 51 and not hasattr(model, "objective_")
    assert model.partial_fit(plays(4, 51, seed=7)).user_factors.shape == (77, 6)
    biased = kiln.ALS(3, l2=1, **CPU).fit(plays())
    B = biased.item_factors.copy()
    biased.partial_fit_items([0], plays(1, 70, seed=8))  # ratings: a least-squares problem with a bias
    row = plays(1, 70, seed=8)
    A1 = np.column_stack([biased.user_factors, np.ones(70)])[row.indices]
    y = row.data - biased.mean_ - biased.row_biases_[row.indices]
    wanted = np.linalg.solve(A1.T @ A1 + biased.l2_ * np.eye(4), A1.T @ y)
    np.testing.assert_allclose([*biased.item_factors[0], biased.column_biases_[0]], wanted, rtol=1e-9)
    np.testing.assert_array_equal(biased.item_factors[1:], B[1:])
    with pytest.raises(NotImplementedError, match="fit it again"):
        kiln.SFA(2, **CPU).fit(plays()).recalculate_item(0, plays(1, 70))


def test_names_in_and_out(tool, tmp_path):
    X = plays()
    users, items = [f"u{i}" for i in range(70)], [f"i{j}" for j in range(50)]
    model = kiln.ALS(4, implicit=True, **CPU).fit(X, user_names=users, item_names=items)
    numbers, scores = model.recommend([3, 1], X[[3, 1]], N=4)
    model.save(tmp_path / "m.kiln")
    for one in (model, kiln.load(tmp_path / "m.kiln")):
        names, same = one.recommend(["u3", "u1"], X[[3, 1]], N=4, filter_items=["i49"])
        wanted = model.recommend([3, 1], X[[3, 1]], N=4, filter_items=[49])[0]
        assert (names == np.array(items, object)[wanted]).all()
        assert list(one.recommend("u3", X[3], N=4)[0]) == [items[j] for j in numbers[0]]
        assert one.similar_items("i7", N=2)[0][0] == "i7" and one.similar_users(7, N=1)[0][0] == 7
        assert one.predict("u3", "i7") == pytest.approx(model.predict(3, 7))
        with pytest.raises(ValueError, match="there is no user 'nobody' among 70"):
            one.recommend("nobody", X[0])
    model.partial_fit_users(["new", "u2"], X[:2])
    assert model.user_names_[-1] == "new" and len(model.user_factors) == 71
    assert (model.recommend("new", X[0])[0] == model.recommend("new", X[0], recalculate_user=True)[0]).all()
    told = subprocess.run([tool, "recommend", str(tmp_path / "m.kiln"), "--user", "u3", "--top", "1"],
                          capture_output=True, text=True, check=True).stdout
    assert model.recommend("u3", X[3], N=1, filter_already_liked_items=False)[0][0] in told
    import pandas

    frame = pandas.DataFrame(X.toarray(), index=users, columns=items)
    framed = kiln.ALS(4, implicit=True, **CPU).fit(frame)
    assert framed.user_names_[5] == "u5" and framed.item_names_[7] == "i7"


def test_metrics_are_implicits(pair):
    X, ours, theirs = pair
    train, test = kiln.train_test_split(X, 0.7, random_state=1)
    assert (train + test - X).nnz == 0 and 0.6 < train.nnz / X.nnz < 0.8 and train.multiply(test).nnz == 0
    for K in (1, 5, 10, 20):
        found = kiln.ranking_metrics_at_k(ours, train, test, K)
        wanted = their_metrics(theirs, train, test, K, show_progress=False)
        for name, value in wanted.items():
            assert found[name] == pytest.approx(value, rel=1e-12), (K, name)
        same = kiln.ranking_metrics_at_k(theirs, train, test, K)
        assert found == pytest.approx(same)
    users = np.flatnonzero(np.diff(test.indptr))
    ids = ours.recommend(users, train[users], N=20)[0]
    hits = [len(set(row) & set(test[u].indices)) / min(20, test[u].nnz) for u, row in zip(users, ids)]
    assert found["recall"] == pytest.approx(np.mean(hits))
    assert found["coverage"] == len(set(ids.ravel())) / 50
    assert kiln.ranking_metrics_at_k(ours, train, sp.csr_matrix(X.shape))["precision"] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["als", "implicit", "sfa"])
def test_lists_of_any_size(kind, dtype):
    """Sizes around those of vectors, tiles and panels, beside a sort; equal scores by number."""
    rng = np.random.default_rng(2)
    for users, items, factors, N in ((1, 1, 1, 1), (7, 65, 3, 70), (8, 33, 5, 4), (130, 257, 17, 9)):
        X = plays(users, items, 0.3, seed=users).astype(dtype)
        X = X.tolil()
        X[0, 0] = 3
        X = X.tocsr()
        model = {"als": kiln.ALS, "implicit": lambda k, **o: kiln.ALS(k, implicit=True, **o),
                 "sfa": kiln.SFA}[kind](factors, max_iter=3, l2=0.1, **CPU)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        model.column_factors_ = rng.integers(-2, 3, (items, factors)).astype(dtype)  # equal scores
        model.row_factors_ = rng.integers(-2, 3, (users, factors)).astype(dtype)
        model.row_biases_[:], model.column_biases_[:], model.mean_ = 0, 0, 0.0
        for liked in (True, False):
            ids, scores = model.recommend(np.arange(users), X, N=N, filter_already_liked_items=liked)
            exact = model.row_factors_ @ model.column_factors_.T
            for u in range(users):
                left = np.setdiff1d(np.arange(items), X[u].indices if liked else [])
                order = left[np.argsort(-exact[u, left], kind="stable")][:N]
                assert list(ids[u][ids[u] >= 0]) == list(order)
                np.testing.assert_array_equal(scores[u][:len(order)], exact[u, order])
                assert np.isnan(scores[u][len(order):]).all()


def test_many_factors():
    """Up to 1,024: beside the normal equations."""
    X, quiet = plays(5, 4, 0.7), {"l2": 0.5, "max_iter": 1, **CPU}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for factors in (600, 1024):
            for model in (kiln.ALS(factors, **quiet), kiln.SFA(factors, **quiet),
                          kiln.NMF(factors, max_iter=1, **CPU),
                          kiln.LatentDirichletAllocation(factors, max_iter=1, **CPU)):
                assert np.isfinite(model.fit(X).objective_)
        model = kiln.ALS(600, implicit=True, **quiet).fit(X)
    B, c = model.item_factors, 1 + X[2].toarray()[0]
    wanted = np.linalg.solve(B.T @ (c[:, None] * B) + 0.5 * np.eye(600), B.T @ (c * (c > 1)))
    np.testing.assert_allclose(model.transform(X[2])[0], wanted, atol=1e-9)
    with pytest.raises(kiln.ArgumentError, match="1025 factors, but 1 to 1024"):
        kiln.ALS(1025, implicit=True, **CPU).fit(X)


def test_coherence_is_gensims():
    """Its formulas, in plain loops."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.4, (90, 20)).astype(float)
    counts[:, 19] = 0
    X, there = sp.csr_matrix(counts), counts > 0
    topics = [[0, 3, 5, 7], [1, 2], [4, 19, 6]]

    def share(*words):
        return there[:, list(words)].all(1).mean()

    def mass(topic):
        pairs = [(topic[i], topic[j]) for i in range(1, len(topic)) for j in range(i)]
        return np.mean([np.log((share(v, w) + 1e-12) / share(w)) if share(v) and share(w) else 0.0
                        for v, w in pairs])

    def npmi(topic):
        pairs = [(v, w) for v in topic for w in topic if v != w]
        return np.mean([np.log((share(v, w) + 1e-12) / (share(v) * share(w))) / -np.log(share(v, w) + 1e-12)
                        if share(v) and share(w) else 0.0 for v, w in pairs])

    for measure, formula in (("u_mass", mass), ("c_npmi", npmi)):
        np.testing.assert_allclose(kiln.coherence(topics, X, measure=measure), [formula(t) for t in topics],
                                   rtol=1e-12)
    names = [f"w{j}" for j in range(20)]
    np.testing.assert_array_equal(kiln.coherence([["w1", "w2"]], X, feature_names=names),
                                  kiln.coherence([[1, 2]], X))
    model = kiln.LatentDirichletAllocation(3, **CPU).fit(X)
    words = model.top_words(4, feature_names=names)
    best = np.argsort(-model.components_, kind="stable")[:, :4]
    assert [[names.index(w) for w, _ in t] for t in words] == best.tolist()
    np.testing.assert_array_equal(model.coherence(X, n=4),
                                  kiln.coherence([[w for w, _ in t] for t in words], X, feature_names=names))
    with pytest.raises(ValueError, match="there is no word 'x'"):
        kiln.coherence([["x"]], X, feature_names=names)
    for wrong, said in (([-1, 3], "no word -1"), ([3, -1], "no word -1"), ([0, 20], "no column 20"),
                        ([0.5, 1], "must be numbers"),
                        ([1.0, 2.0], "integers, or names, got float64.*argsort"),
                        ([0, 1, 0], "the word 0 twice"), (0, "must be lists of words")):
        with pytest.raises(kiln.ArgumentError, match=said):
            kiln.coherence([wrong], X)
    with pytest.raises(kiln.ArgumentError, match="'w1' twice"):
        kiln.coherence([["w1", "w2", "w1"]], X, feature_names=names)
    np.testing.assert_array_equal(kiln.coherence(model, X), model.coherence(X))
    shares = model.components_ / model.components_.sum(axis=1, keepdims=True)
    with pytest.raises(kiln.ArgumentError, match="argsort"):
        kiln.coherence(shares, X)


@pytest.mark.parametrize("verb", ["lda", "gap"])
def test_topics_by_the_tool(tool, tmp_path, verb):
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(rng.poisson(np.kron(np.eye(2), np.full((20, 8), 0.8)) + 0.05).astype(float))
    rows = [f"{d + 1} {w + 1} {int(n)}" for d, w, n in zip(*X.nonzero(), X.data)]
    (tmp_path / "docword.a.txt").write_text("\n".join([*map(str, (*X.shape, X.nnz)), *rows]) + "\n")
    (tmp_path / "vocab.a.txt").write_text("".join(f"w{j}\n" for j in range(16)))

    def run(*arguments):
        done = subprocess.run([tool, *arguments, "--json", "--quiet"], cwd=tmp_path, capture_output=True,
                              text=True, check=True)
        return json.loads(done.stdout)

    run(verb, "docword.a.txt", "--topics", "2", "-o", "a.kiln", "--device", "cpu")
    told, model = run("evaluate", "a.kiln", "docword.a.txt"), kiln.load(tmp_path / "a.kiln")
    assert told["metrics"]["perplexity"] == pytest.approx(model.perplexity(X), rel=1e-9)
    for key, measure in (("u_mass", "u_mass"), ("npmi", "c_npmi")):
        found = model.coherence(X, measure=measure)
        np.testing.assert_allclose([topic[key] for topic in told["topics"]], found, rtol=1e-12)
        assert told["metrics"][key] == pytest.approx(found.mean(), rel=1e-12)
    assert [topic["words"] for topic in told["topics"]] == [[w for w, _ in t] for t in model.top_words(10)]


@pytest.mark.parametrize("form", ["file", "pandas", "polars", "pyarrow"])
def test_columns_of_ratings_as_they_are_said(tmp_path, form):
    """A third column that nothing names counts by order beside other names, else with a warning that it does
    not."""
    if form != "file":
        pytest.importorskip(form)

    def made(names):
        path = tmp_path / "r.csv"
        path.write_text(f"{names}\nann,x,2\nbob,y,3\n")
        table = path if form == "file" else __import__("pandas").read_csv(path)
        return {"polars": lambda: __import__("polars").from_pandas(table),
                "pyarrow": lambda: __import__("pyarrow").table(table)}.get(form, lambda: table)()

    with pytest.warns(UserWarning, match="no column is called rating, score"):
        found = kiln.read_ratings(made("user,item,preference"))
    assert found.X.toarray().tolist() == [[1, 0], [0, 1]]
    for names, said in [("user,item,preference", {"weight": "preference"}),
                        ("user,item,preference", {"weight": 2}),
                        ("item,user,score", {"source": "item", "target": "user"}),
                        ("who,what,liking", {"source": 0, "target": 1, "weight": -1})]:
        found = kiln.read_ratings(made(names), **said)
        assert (found.user_names, found.item_names) == (["ann", "bob"], ["x", "y"])
        assert found.X.toarray().tolist() == [[2, 0], [0, 3]]
    for said, text in [({"source": "whom"}, "no column"),
                       ({"source": "user", "target": "user"}, "same column")]:
        with pytest.raises((kiln.DataError, kiln.ArgumentError), match=text):
            kiln.read_ratings(made("user,item,preference"), **said)


def test_users_and_items_are_there():
    import pandas

    for frame, said in [({"user": ["a", None], "item": [1, 2]}, "user"),
                        ({"user": [1, 2], "item": [1, np.nan]}, "item"),
                        ({"user": [1, 2], "item": pandas.array([1, None], "Int64")}, "item")]:
        with pytest.raises(kiln.DataError, match=f"the {said} of row 1"):
            kiln.read_ratings(pandas.DataFrame(frame))
    polars = pytest.importorskip("polars")
    with pytest.raises(kiln.DataError, match="the user of row 1"):
        kiln.read_ratings(polars.DataFrame({"user": ["a", None], "item": [1, 2]}))


def test_ratings_are_read(tmp_path):
    import pandas

    lines = [("b", "y", 3.0), ("a", "x", 1.0), ("b", "x", 0.0), ("a", "x", 5.0)]
    (tmp_path / "r.csv").write_text("".join(f"{u},{i},{r:g}\n" for u, i, r in lines))
    frame = pandas.DataFrame(lines, columns=["user", "movie", "stars"])
    with pytest.warns(UserWarning, match="again"):
        found = [kiln.read_ratings(tmp_path / "r.csv"), kiln.read_ratings(frame[["stars", "movie", "user"]])]
    for ratings in found:
        assert (ratings.user_names, ratings.item_names) == (["b", "a"], ["y", "x"])
        assert ratings.X.toarray().tolist() == [[3.0, 0.0], [0.0, 5.0]] and ratings.X.nnz == 3
    counted = kiln.read_ratings(pandas.DataFrame([("b", "y"), ("b", "y")], columns=["u", "i"]))
    assert counted.X.toarray().tolist() == [[2.0]]
    with pytest.raises(kiln.DataError, match="rating of row 1"):
        kiln.read_ratings(pandas.DataFrame({"user": [1, 2], "item": [3, 4], "rating": [1.0, np.nan]}))


def _ids(made=None):
    import pandas

    frame = pandas.DataFrame({"user": [3, 3, 1, 1, 0, 0, 2], "item": [10, 11, 10, 12, 11, 12, 10],
                              "rating": [5.0, 1, 4, 2, 3, 5, 1]})
    return frame if made is None else made(frame)


@pytest.mark.parametrize("form", ["pandas", "polars", "lazy", "pyarrow", "duckdb"])
def test_names_of_ratings_are_texts(form, tmp_path):
    """As those of the same table in a file, of whatever kind the table is."""
    if form != "pandas":
        pytest.importorskip("polars" if form == "lazy" else form)
    frame = _ids({"pandas": lambda f: f, "polars": lambda f: __import__("polars").from_pandas(f),
                  "lazy": lambda f: __import__("polars").from_pandas(f).lazy(),
                  "pyarrow": lambda f: __import__("pyarrow").Table.from_pandas(f),
                  "duckdb": lambda f: __import__("duckdb").from_df(f)}[form])
    _ids().to_csv(tmp_path / "r.csv", index=False)
    found, told = kiln.read_ratings(frame), kiln.read_ratings(tmp_path / "r.csv")
    assert found.user_names == told.user_names == ["3", "1", "0", "2"]
    assert found.item_names == told.item_names == ["10", "11", "12"]
    assert (found.X != told.X).nnz == 0


def test_ratings_are_found_by_name():
    """Ratings in another order, with items that the model does not know, as the model's own rows."""
    own = kiln.Ratings(plays(), [f"u{i}" for i in range(70)], [f"i{j}" for j in range(50)])
    model = kiln.ALS(4, implicit=True, **CPU).fit(own)
    users, items = np.random.default_rng(1).permutation(70), np.random.default_rng(2).permutation(50)
    other = kiln.Ratings(sp.hstack([sp.csr_matrix(np.ones((70, 1))), own.X[users][:, items]]).tocsr(),
                         [f"u{i}" for i in users], ["new", *(f"i{j}" for j in items)])
    for asked, rows in (("u3", [3]), (["u3", "u60"], [3, 60]), ([7, 8], [7, 8])):
        wanted = model.recommend(asked, own.X[rows], N=5)
        for given in (own, other):
            for found, known in zip(model.recommend(asked, given, N=5), wanted):
                np.testing.assert_array_equal(found, known)
        np.testing.assert_array_equal(model.recalculate_user(asked, other),
                                      model.recalculate_user(asked, own.X[rows]))
    np.testing.assert_array_equal(model.transform(other), model.transform(own.X[users]))
    assert model.explain("u3", other, "i7", N=3)[1] == model.explain("u3", own.X, "i7", N=3)[1]
    model.partial_fit_users(["u3", "v"], other._replace(user_names=["v", *other.user_names[1:]]))
    np.testing.assert_array_equal(model.user_factors[-1], model.recalculate_user(0, own.X[users[0]]))
    with pytest.raises(ValueError, match="there is no user 'u3' among the 1 of the ratings"):
        model.recommend("u3", kiln.Ratings(own.X[:1], ["u0"], own.item_names))
    with pytest.raises(ValueError, match="this model has none"):
        kiln.ALS(2, **CPU).fit(own.X).recommend(3, own)
    with pytest.raises(ValueError, match="or what kiln.read_ratings returned"):
        model.recommend("u3")


def test_a_row_for_each_rating_is_no_matrix_of_users(tmp_path):
    frame = _ids()
    frame.to_csv(tmp_path / "r.csv", index=False)
    model = kiln.ALS(2, l2=0.1, **CPU).fit(kiln.read_ratings(frame))
    for given in (frame, tmp_path / "r.csv", str(tmp_path / "r.csv")):
        for asked in (lambda: kiln.ALS(2).fit(given), lambda: model.transform(given),
                      lambda: model.recommend("3", given), lambda: model.partial_fit_users(["3"], given),
                      lambda: kiln.train_test_split(given),
                      lambda: kiln.ranking_metrics_at_k(model, given, given)):
            with pytest.raises(kiln.ArgumentError, match=r"kiln.read_ratings\(...\) of it"):
                asked()


def test_ratings_are_shared_out_and_judged():
    own = kiln.Ratings(plays(), [f"u{i}" for i in range(70)], [f"i{j}" for j in range(50)])
    train, test = kiln.train_test_split(own, 0.7, random_state=3)
    alike = kiln.train_test_split(own.X, 0.7, random_state=3)
    assert (train.X != alike[0]).nnz == (test.X != alike[1]).nnz == 0 and test[1:] == own[1:]
    model = kiln.ALS(4, **CPU).fit(train)
    assert kiln.ranking_metrics_at_k(model, train, test) == kiln.ranking_metrics_at_k(model, *alike)
    with pytest.raises(ValueError, match="other names than the model"):
        kiln.ranking_metrics_at_k(model, train, test._replace(item_names=own.item_names[::-1]))


def test_a_number_is_a_row_and_a_text_a_name(tmp_path):
    ratings = kiln.read_ratings(_ids())
    model = kiln.ALS(2, l2=0.1, **CPU).fit(ratings.X, user_names=[3, 1, 0, 2],
                                           item_names=np.array([10, 11, 12]))
    assert model.user_names_.tolist() == ratings.user_names
    assert model.item_names_.tolist() == ratings.item_names
    model.save(tmp_path / "m.kiln")
    for one in (model, kiln.load(tmp_path / "m.kiln")):
        with pytest.warns(UserWarning, match="3 is taken for row 3, the user '2': numbers are rows") as told:
            by_row = one.predict(3, [0, 1, 2])
        assert [warning.filename for warning in told] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert one.predict("2", ["10", "11", "12"]).tolist() == by_row.tolist()
            one.recommend(3, filter_already_liked_items=False)  # once for a model
            names, _ = one.recommend("3", ratings.X[0], N=1)
            assert names.tolist() == ["12"]
            assert one.similar_users(np.array([3, 1], object), N=1)[0].tolist() == [["3"], ["1"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = kiln.ALS(2, l2=0.1, **CPU).fit(ratings)
        kiln.ranking_metrics_at_k(again, ratings.X, ratings.X, K=1)  # asks by rows
        again.partial_fit_users(np.array([3, 7], object), ratings.X[:2])
        assert again.user_names_.tolist() == ["3", "1", "0", "2", "7"]
        kiln.ALS(2, l2=0.1, **CPU).fit(ratings.X, user_names=range(4)).recommend(3, ratings.X[3])
    for asked in (lambda: again.recommend(0, ratings.X[0], items=[]),
                  lambda: again.similar_items(0, items=[])):
        with pytest.raises(kiln.ArgumentError, match="items is empty"):
            asked()
    with pytest.raises(ValueError, match="or names, which are texts such as '3'"):
        again.predict(10, 0)


@pytest.mark.parametrize("given, said", [
    ({"confidence": "log"}, "needs implicit=True"), ({"alpha": 2.0}, "needs implicit=True"),
    ({"implicit": True, "epsilon": 2.0}, "confidence='log'"),
    ({"implicit": True, "confidence": "proportional", "epsilon": 2.0}, "confidence='log'")])
def test_options_that_would_change_nothing_are_refused(given, said, tmp_path):
    with pytest.raises(kiln.ArgumentError, match=said):
        kiln.ALS(2, **given, **CPU).fit(plays())
    rest = {name: given[name] for name in given if name == "implicit"}
    kiln.ALS(2, **rest, **CPU).fit(plays()).save(tmp_path / "m.kiln")
    kiln.load(tmp_path / "m.kiln").fit(plays())  # what a file holds is no option that was given


def test_a_frame_of_ratings_is_no_matrix_of_them():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"userId": [1, 2, 2], "movieId": [7, 7, 9], "rating": [3.0, 4, 5]})
    with pytest.raises(kiln.ArgumentError, match=r"kiln.read_ratings\(...\)"):
        kiln.ALS(1, **CPU).fit(frame)
    ratings = kiln.read_ratings(frame)
    assert repr(ratings) == ("Ratings(X=2 x 2 float64, 3 entries; user_names=['1', '2']; "
                             "item_names=['7', '9'])")
    kiln.ALS(1, **CPU).fit(frame.pivot(index="userId", columns="movieId", values="rating").fillna(0))
    for users, items in [("user", "item"), ("User-ID", "Book_title"), ("customer_name", "products")]:
        with pytest.raises(kiln.ArgumentError, match=r"kiln.read_ratings\(...\)"):
            kiln.ALS(1, **CPU).fit(frame.set_axis([users, items, "rating"], axis=1))
    titles = ["User's guide to the galaxy", "Movie 43", "Book of Eli"]
    assert kiln.ALS(1, **CPU).fit(frame.set_axis(titles, axis=1)).item_names_.tolist() == titles
    words = ["user", "item", *(f"word {j}" for j in range(40))]
    assert kiln.ALS(1, **CPU).fit(pandas.DataFrame(np.eye(42), columns=words)).item_names_.tolist() == words


@pytest.mark.parametrize("unit", [1e10, 1e-10])
def test_the_unit_of_ratings_changes_nothing(unit):
    """In f32 products of conjugate gradients leave the type, which would end at twice the least objective."""
    R = plays().astype(np.float64)
    least = kiln.ALS(3, biases=False, solver="cholesky", device="cpu").fit(R).report_.objective
    found = kiln.ALS(3, biases=False, device="cpu").fit((R * unit).astype(np.float32)).report_.objective
    assert abs(found / unit**2 - least) < 0.02 * least
