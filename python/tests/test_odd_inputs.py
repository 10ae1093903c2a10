"""Inputs that scripts give by mistake, or in another form than most: the right answer, or one sentence that
says what is wrong."""
import warnings

import kiln
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.preprocessing import normalize

CPU = {"device": "cpu"}
ROWS = 24
rng = np.random.default_rng(0)
X = rng.integers(1, 7, (ROWS, 4)).astype(float)
TARGET = X @ [1.0, 2, -1, 0.5] + 1
CLASS = (X[:, 0] + rng.normal(size=ROWS) > 3.5).astype(int)

REGRESSIONS = {
    "LinearRegression": lambda: kiln.LinearRegression(**CPU), "Ridge": lambda: kiln.Ridge(**CPU),
    "Lasso": lambda: kiln.Lasso(0.1, **CPU),
    "general": lambda: kiln.GeneralizedLinearRegressor(alpha=0.1, **CPU),
    "Poisson": lambda: kiln.PoissonRegressor(**CPU), "LinearSVR": lambda: kiln.LinearSVR(**CPU),
    "RidgeCV": lambda: kiln.RidgeCV((0.1, 1), cv=3, **CPU),
    "LassoCV": lambda: kiln.LassoCV(alphas=3, cv=3, **CPU)}
CLASSIFIERS = {
    "LogisticRegression": lambda: kiln.LogisticRegression(**CPU), "LinearSVC": lambda: kiln.LinearSVC(**CPU),
    "LogisticRegressionCV": lambda: kiln.LogisticRegressionCV(Cs=2, cv=2, **CPU)}
OTHERS = {
    "KMeans": lambda: kiln.KMeans(2, random_state=0, **CPU), "MDS": lambda: kiln.MDS(random_state=0, **CPU),
    "NMF": lambda: kiln.NMF(2, random_state=0, **CPU),
    "LDA": lambda: kiln.LatentDirichletAllocation(2, random_state=0, **CPU),
    "ALS": lambda: kiln.ALS(2, l2=0.1, random_state=0, **CPU),
    "SFA": lambda: kiln.SFA(2, l2=0.1, random_state=0, **CPU)}
ESTIMATORS = {**REGRESSIONS, **CLASSIFIERS, **OTHERS}


def fitted(name, data=X):
    y = CLASS if name in CLASSIFIERS else np.abs(TARGET) if name in REGRESSIONS else None
    return (ESTIMATORS[name]().fit(data) if y is None else ESTIMATORS[name]().fit(data, y)), y


def refused(call, part):
    """The call fails with one sentence, in Python's words, that has this part."""
    with pytest.raises((ValueError, kiln.UnsupportedError)) as raised:
        call()
    said = str(raised.value)
    assert part in said and "\n" not in said and "kiln_" not in said and "the loss's" not in said, said


def parted(matrix):
    """The same matrix as CSR with each entry in two parts, and the columns from the last."""
    rows, columns = matrix.shape
    order = np.tile(np.repeat(np.arange(columns)[::-1], 2), rows)
    values = np.repeat(matrix[:, ::-1].ravel() / 2, 2)
    return sp.csr_matrix((values, order, np.arange(0, 2 * matrix.size + 1, 2 * columns)), matrix.shape)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("form", [parted, lambda X: parted(X[:, ::-1])[:, ::-1],
                                  lambda X: kiln.matrix(X, "cpu"),
                                  lambda X: kiln.matrix(sp.csr_matrix(X), "cpu")],
                         ids=["parted", "turned", "Matrix", "sparse Matrix"])
def test_forms_of_the_same_data(name, form):
    """Each method gives what it gives for a plain array."""
    if name == "MDS":
        pytest.skip("takes no sparse data")
    model, y = fitted(name)
    methods = [method for method in ("predict", "transform", "predict_proba", "decision_function", "score",
                                     "perplexity")
               if hasattr(model, method) and not (method == "predict" and name in ("ALS", "SFA"))]
    for method in methods:
        more = (y,) if method == "score" and y is not None else ()
        np.testing.assert_allclose(getattr(model, method)(form(X), *more), getattr(model, method)(X, *more),
                                   rtol=1e-9, atol=1e-9, err_msg=method)


@pytest.mark.parametrize("form", [parted, lambda X: kiln.matrix(X, "cpu"),
                                  lambda X: kiln.matrix(sp.csr_matrix(X), "cpu")])
def test_directions_of_entries_in_parts(form):
    """Spherical K-Means scales rows by their true lengths."""
    model = kiln.KMeans(2, spherical=True, random_state=0, **CPU).fit(X)
    to = np.linalg.norm(normalize(X)[:, None] - model.cluster_centers_[None], axis=2)
    np.testing.assert_allclose(model.transform(form(X)), to, rtol=1e-7)
    np.testing.assert_allclose(-model.score(form(X)), (to.min(axis=1) ** 2).sum(), rtol=1e-9)


@pytest.mark.parametrize("form", [parted, sp.csr_matrix, lambda X: kiln.matrix(X, "cpu"),
                                  lambda X: kiln.matrix(sp.csr_matrix(X), "cpu")])
def test_the_bound_of_documents_in_parts(form):
    """LDA's score is scikit-learn's of the same topics; partial_fit counts the same words."""
    model = kiln.LatentDirichletAllocation(2, random_state=0, **CPU).fit(X)
    theirs = LatentDirichletAllocation(2, doc_topic_prior=0.5, topic_word_prior=0.5, max_doc_update_iter=1000,
                                       mean_change_tol=1e-10).fit(X)
    theirs.components_ = model.components_
    theirs.exp_dirichlet_component_ = model.exp_dirichlet_component_
    np.testing.assert_allclose(model.score(form(X)), theirs.score(X), rtol=1e-5)
    one, other = (kiln.LatentDirichletAllocation(2, random_state=0, **CPU).partial_fit(data)
                  for data in (X, form(X)))
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_only_looks_like_numbers(name):
    import networkx

    masked = np.ma.masked_array(X, X > 5)
    for data, part in ((masked, "masked array"), (X.astype("M8[s]"), "make numbers of dates"),
                       (X.astype("m8[D]"), "make numbers of dates"),
                       (networkx.path_graph(4), "kiln.pagerank and kiln.hits take it")):
        refused(lambda data=data: fitted(name, data), part)
    model, y = fitted(name, np.ma.masked_array(X))  # nothing is behind the mask
    if y is not None:
        for call in (ESTIMATORS[name]().fit, model.score):
            refused(lambda call=call: call(X, np.ma.masked_array(y, np.arange(ROWS) < 3)),
                    "y: expected real numbers, got a masked array")
            refused(lambda call=call: call(X, y, sample_weight=np.ma.masked_array(y + 1, np.arange(ROWS)
                                                                                  < 3)),
                    "sample_weight: expected")


@pytest.mark.parametrize("name", [*REGRESSIONS, *CLASSIFIERS])
@pytest.mark.parametrize("matrix", [False, True])
def test_the_true_values_of_a_score(name, matrix):
    model, y = fitted(name)
    data = kiln.matrix(X, "cpu") if matrix else X
    few = np.arange(ROWS) < 3
    for truth, part in ((np.where(few, np.nan, y), "y contains NaN"),
                        (np.where(few, np.inf, y), "y contains infinity"), (None, "y is None"),
                        (np.column_stack([y, y]), "(24, 2)"),
                        (y[:-1], "inconsistent numbers of samples: [24, 23]")):
        refused(lambda truth=truth: model.score(data, truth), part)
    for weights, part in ((np.where(few, np.nan, 1.0), "sample_weight contains NaN"),
                          (np.where(few, np.inf, 1.0), "sample_weight contains infinity"),
                          (-np.ones(ROWS), "Negative values"), (np.zeros(ROWS), "at least one non-zero"),
                          (np.ones(5), "expected (24,)"),
                          (np.full(ROWS, 1e308), "sum of sample_weight overflows")):
        refused(lambda weights=weights: model.score(data, y, sample_weight=weights), part)
        refused(lambda weights=weights: ESTIMATORS[name]().fit(data, y, sample_weight=weights), part)
    assert model.score(data, y, sample_weight=2.0) == pytest.approx(model.score(data, y))
    for truth in (y.tolist(), y[:, None], y.astype(np.float16).astype(object), kiln.matrix(y.astype(float)),
                  np.repeat(y, 2)[::2]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model.score(data, truth) == pytest.approx(model.score(data, y), rel=1e-3)


def test_labels_of_another_kind():
    names = np.where(CLASS > 0, "yes", "no")
    for truth, wrong in ((CLASS, names), (names, [None] * ROWS)):
        model = kiln.LogisticRegression(**CPU).fit(X, truth)
        if wrong is names:  # they compare, as unequal
            with pytest.warns(UserWarning, match="24 of 24 rows are of classes that the model does not know"):
                assert model.score(X, wrong) == 0
        else:
            refused(lambda model=model, wrong=wrong: model.score(X, wrong),
                    "labels that cannot be compared with classes_")


def test_classes_of_rows_that_are_not_numbers():
    """A kiln.Matrix may hold NaN: that is no class."""
    for name in ("LogisticRegression", "LinearSVC"):
        model, _ = fitted(name)
        refused(lambda model=model: model.predict(kiln.matrix(np.where(X > 5, np.nan, X), "cpu")), "NaN")


def test_offsets():
    counts = rng.poisson(2, ROWS).astype(float)
    offset = np.linspace(-1, 1, ROWS)
    model = kiln.GeneralizedLinearRegressor("poisson", **CPU).fit(X, counts, offset=offset)
    for wrong, part in ((np.where(offset > 0, np.nan, 0), "offset contains NaN"),
                        (np.full(ROWS, np.inf), "offset contains infinity"),
                        (offset[:-1], "offset must be of shape (24,)"),
                        (offset[None], "offset must be of shape (24,)"),
                        (np.ma.masked_array(offset, offset > 0), "masked array")):
        refused(lambda wrong=wrong: model.predict(X, offset=wrong), part)
        refused(lambda wrong=wrong: model.score(X, counts, offset=wrong), part)
    for same in (offset[:, None], offset.tolist(), kiln.matrix(offset)):
        np.testing.assert_allclose(model.predict(X, offset=same), model.predict(X, offset=offset))
        assert model.score(X, counts, offset=same) == pytest.approx(model.score(X, counts, offset=offset))


def test_paths():
    for call, part in ((lambda: kiln.lasso_path(np.where(X > 5, np.nan, X), TARGET, **CPU),
                        "NaN or infinite"),
                       (lambda: kiln.lasso_path(X, np.full(ROWS, np.nan), **CPU), "NaN or infinite"),
                       (lambda: kiln.lasso_path(X[:, :0], TARGET, **CPU), "24 x 0"),
                       (lambda: kiln.lasso_path(X, TARGET[:-1], **CPU), "(23,)"),
                       (lambda: kiln.lasso_path(X, None, **CPU), "y is None"),
                       (lambda: kiln.lasso_path(X, TARGET, eps=0, **CPU), "eps"),
                       (lambda: kiln.enet_path(X, TARGET, coef_init=[1.0], **CPU), "coef_init")):
        refused(call, part)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_that_are_no_numbers(name):
    """They are refused by their names, whatever would have become of them."""
    wanted = {"C", "alpha", "batch_size", "doc_topic_prior", "eps", "epsilon", "l1_ratio", "l2", "max_iter",
              "n_clusters", "n_components", "n_init", "tol"}
    y = CLASS if name in CLASSIFIERS else np.abs(TARGET) if name in REGRESSIONS else None
    for parameter in wanted & ESTIMATORS[name]().get_params().keys():
        for wrong in ("x", b"x", {}, [[1.0]]):
            model = ESTIMATORS[name]().set_params(**{parameter: wrong})
            refused(lambda model=model: model.fit(X) if y is None else model.fit(X, y), parameter)


def test_functions_name_their_parameters():
    links = sp.eye(3, format="csr")
    for call, part in ((lambda: kiln.pagerank(links, damping="x", **CPU),
                        "damping must be a number that fits, got 'x'"),
                       (lambda: kiln.hits(links, tol="x", **CPU), "tol must be"),
                       (lambda: kiln.pagerank(links, max_iter=1e99, **CPU), "max_iter must be"),
                       (lambda: kiln.GeneralizedLinearRegressor("x", **CPU).fit(X, TARGET),
                        "family must be one of"),
                       (lambda: kiln.GeneralizedLinearRegressor(link="x", **CPU).fit(X, TARGET),
                        "link must be one of"), (lambda: kiln.MDS(eps=-1, **CPU).fit(X), "eps is -1"),
                       (lambda: kiln.MiniBatchKMeans(2, batch_size=0, **CPU).fit(X),
                        "'batch_size' parameter of MiniBatchKMeans must be at least 1")):
        refused(call, part)
    with pytest.warns(match="MDS did not converge: max_iter ended it after 1 iterations.*raise max_iter, or "
                            "eps"):
        kiln.MDS(max_iter=1, init="random", random_state=0, **CPU).fit(X)


def test_functions_say_which_operand():
    links = sp.random(30, 30, 0.2, format="csr", random_state=0)
    model = kiln.ALS(2, l2=0.1, random_state=0, **CPU).fit(X)
    for call, part in ((lambda: kiln.sddmm(np.eye(2), np.eye(2), np.eye(2), **CPU),
                        "S must be a sparse matrix"),
                       (lambda: kiln.pagerank(links, start=np.ones(4), **CPU),
                        "start is 4 x 1, but must be 30 x 1"),
                       (lambda: kiln.pagerank(links, dangling=np.ones(4), **CPU),
                        "dangling is 4 x 1, but must be 30 x 1"),
                       (lambda: kiln.explain((5,)), "shape must be"),
                       (lambda: kiln.device(3), "named by text"),
                       (lambda: kiln.Device("cpu", threads="x"),
                        "threads must be a number that fits, got 'x'"),
                       (lambda: kiln.Device("cpu", memory=2**70), "memory must be a number that fits"),
                       (lambda: model.similar_items(0, N=0), "N must be"),
                       (lambda: model.recommend(0, N=1.5), "N must be"),
                       (lambda: model.predict([1, 2], [1, 2, 3]), "do not broadcast")):
        refused(call, part)
    assert kiln.explain((10, 5), dtype=np.float32) and model.predict([[0], [1]], [0, 1, 2]).shape == (2, 3)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.coo_array, np.array, np.float32, kiln.matrix,
                                  lambda rows: kiln.matrix(sp.csr_matrix(rows)), lambda rows: rows.tolist()],
                         ids=["csr", "coo", "array", "float32", "Matrix", "sparse Matrix", "list"])
def test_recommend_takes_what_transform_takes(form):
    rows = np.where(rng.random((5, 8)) < 0.4, rng.integers(1, 6, (5, 8)), 0).astype(float)
    model = kiln.ALS(2, l2=0.1, random_state=0, **CPU).fit(np.vstack([rows, rows]))
    np.testing.assert_allclose(model.transform(form(rows)), model.transform(rows), rtol=1e-4)
    np.testing.assert_array_equal(model.recommend(form(rows), N=2)[0], model.recommend(rows, N=2)[0])
    np.testing.assert_array_equal(model.predict(form(rows)), model.predict(rows))


@pytest.mark.parametrize("form", [sp.csr_matrix, kiln.matrix, lambda rows: kiln.matrix(sp.csr_matrix(rows))])
@pytest.mark.parametrize("spherical", [False, True])
def test_batches_of_any_form(form, spherical):
    """The first batch is a beginning: nobody expects it to converge."""
    def train(form):
        model = kiln.MiniBatchKMeans(2, max_iter=1, spherical=spherical, random_state=0, **CPU)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return model.partial_fit(form(X[:12])).partial_fit(form(X[12:]))

    np.testing.assert_allclose(train(form).cluster_centers_, train(np.asarray).cluster_centers_, rtol=1e-9)
    with pytest.warns(match="did not converge"):
        kiln.MiniBatchKMeans(2, max_iter=1, tol=0, random_state=0, **CPU).fit(X)


def test_a_path_warns_once():
    for call, name in ((kiln.lasso_path, "lasso_path"), (kiln.enet_path, "enet_path"),
                       (kiln.ElasticNet.path, "enet_path")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(X, TARGET, alphas=20, max_iter=1)
        assert len(caught) == 1 and caught[0].filename == __file__
        assert (str(caught[0].message).startswith(f"{name}: ")
                and "of 20 models did not converge; raise max_iter" in str(caught[0].message))


def unaligned(array):
    """A copy whose numbers begin at odd addresses."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    memory[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return memory[1:].view(array.dtype).reshape(array.shape)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def mapped(array, tmp_path):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def of_parts(S, **types):
    """A copy of a sparse matrix whose arrays have these types."""
    S = S.copy()
    for name, kind in types.items():
        setattr(S, name, getattr(S, name).astype(kind))
    return S


LAYOUTS = {"unaligned": unaligned, "big-endian": lambda X: X.astype(">f8"), "read-only": read_only,
           "by columns": np.asfortranarray, "backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
           "strided": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
           "objects": lambda X: X.astype(object),
           "halves": lambda X: X.astype(np.float16), "longdouble": lambda X: X.astype(np.longdouble),
           "list": lambda X: X.tolist(), "no mask": np.ma.masked_array,
           "recarray": lambda X: X.view(np.recarray)}


@pytest.mark.parametrize("layout", [*LAYOUTS, "memmap"])
def test_layouts_of_an_array(layout, tmp_path):
    form = LAYOUTS.get(layout, lambda array: mapped(array, tmp_path))
    weights = CLASS + 1.0
    theirs = kiln.Ridge(**CPU).fit(X, TARGET, sample_weight=weights)
    y, s = (array if layout in ("list", "recarray") else form(array[:, None])[:, 0]
            for array in (TARGET, weights))
    model = kiln.Ridge(**CPU).fit(form(X), y, sample_weight=s)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(form(X)), theirs.predict(X), rtol=1e-9)
    assert model.score(form(X), y, s) == pytest.approx(theirs.score(X, TARGET, weights))
    np.testing.assert_array_equal(kiln.multiply(form(X), np.eye(4), **CPU), X)
    np.testing.assert_array_equal(kiln.matrix(form(X)).numpy(), X)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_formats_of_a_sparse_matrix(format, kind):
    rows = np.where(X > 3, X, 0)
    S = kind(rows).asformat(format)
    forms = [S]
    if format in ("csr", "csc"):
        forms += [of_parts(S, indices=np.int64, indptr=np.int64), of_parts(S, indptr=np.int64),
                  of_parts(S, indices=">i4"), of_parts(S, data=">f8"), of_parts(S, data=np.longdouble),
                  of_parts(S, data=np.int16), of_parts(S, data=np.float16)]
        for make in (unaligned, read_only):
            forms.append(S.copy())
            for name in ("data", "indices", "indptr"):
                setattr(forms[-1], name, make(getattr(S, name)))
    theirs = kiln.Ridge(**CPU).fit(sp.csr_matrix(rows), TARGET)
    for form in forms:
        np.testing.assert_allclose(kiln.Ridge(**CPU).fit(form, TARGET).coef_, theirs.coef_, rtol=1e-12)
        found = kiln.multiply(form, np.eye(4), **CPU)
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, rows)


def test_arrays_that_hold_no_numbers():
    for data, part in ((np.zeros(ROWS, [("a", "f8"), ("b", "f8")]), "records with the fields a, b"),
                       (np.zeros((ROWS, 4), "V8"), "bytes without a type"), (np.array(3.0), "2D array"),
                       (X + 1j, "Complex data"), (X[None], "dim 3")):
        with pytest.raises(ValueError, match=part):
            kiln.Ridge(**CPU).fit(data, TARGET)
    for data, part in ((np.array({"a": 1}, object), "array of objects"), (X.astype(str), "real numbers"),
                       (X.astype("S9"), "real numbers"), (np.array(3.0), "1 or 2 dimensions"),
                       (np.zeros((ROWS, 4), "V8"), "bytes without a type"),
                       (sp.csr_matrix(X, dtype=complex), "must be real numbers")):
        refused(lambda data=data: kiln.matrix(data), part)
    with pytest.raises(TypeError, match="np.matrix is not supported"):
        kiln.Ridge(**CPU).fit(np.matrix(X), TARGET)
    np.testing.assert_array_equal(kiln.matrix(np.matrix(X)).numpy(), X)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_columns_name_for_y(name):
    """It is the column itself that fit takes."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=TARGET)
    for given in (frame, X):
        with pytest.raises(ValueError, match=r"y is the text 'y', .* frame\['y'\]"):
            REGRESSIONS[name]().fit(given, "y")
    for kind in (kiln.LogisticRegression, kiln.LinearSVC):
        with pytest.raises(ValueError, match=r"y is the text 'y'"):
            kind(**CPU).fit(frame, "y")
    with pytest.raises(ValueError, match=r"y is the text 'y'"):
        REGRESSIONS[name]().fit(X, TARGET).score(X, "y")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_label_that_is_missing(missing):
    y = np.array(["b", "a"] * (ROWS // 2), object)
    y[5] = missing
    for kind in (kiln.LogisticRegression, kiln.LinearSVC):
        with pytest.raises(ValueError, match=r"row 5 of y .* has no label|contains NaN"):
            kind(**CPU).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("model", [
    kiln.LinearSVC(loss="hinge"), kiln.LinearSVC("l1"), kiln.LinearSVR(loss="epsilon_insensitive"),
    kiln.LinearRegression(positive=True), kiln.Lasso(positive=True), kiln.RidgeCV()], ids=repr)
def test_the_column_that_is_not_finite(model, bad):
    pd = pytest.importorskip("pandas")
    data = X.copy()
    data[3, 1] = bad
    for given, column in ((pd.DataFrame(data, columns=list("abcd")), "'b'"), (sp.csr_matrix(data), "1")):
        with pytest.raises(ValueError, match=f"column {column} of X has NaN or infinite"):
            model.set_params(**CPU).fit(given, CLASS)


def test_the_hint_is_the_entrances_own():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": pa.array([1.0, None, 2.0]), "b": [1.0, 2, 3]})
    with pytest.raises(kiln.DataError, match="value; missing='mean' or 'indicator' or 'nan' does it"):
        kiln.TableEncoder().fit(table)
    with pytest.raises(kiln.DataError, match=r"value; kiln.TableEncoder\(missing='mean'\) in a pipeline"):
        kiln.LinearRegression(**CPU).fit(table, [1, 2, 3])


@pytest.mark.parametrize("model", [lambda: kiln.NMF(2, random_state=0, **CPU),
                                   lambda: kiln.NMF(2, prior="gamma", random_state=0, **CPU),
                                   lambda: kiln.LatentDirichletAllocation(2, random_state=0, **CPU)])
@pytest.mark.filterwarnings("ignore")
def test_new_documents_with_negative_counts(model):
    """Arrays, and matrices, which nobody else looks at."""
    model = model().fit(X)
    for bad in (-X, sp.csr_matrix(-X), kiln.matrix(sp.csr_matrix(-X))):
        refused(lambda bad=bad: model.transform(bad), "must be a finite number >= 0")


def test_new_ratings_that_are_not_finite():
    """Which an implicit model would take for some list."""
    bad = kiln.matrix(sp.csr_matrix(np.where(X == X[0, 0], np.nan, X)))
    model = kiln.ALS(2, implicit=True, random_state=0, **CPU).fit(X)
    for call in (model.transform, lambda rows: model.recommend(rows, N=2)):
        refused(lambda call=call: call(bad), "the entry in row 0, column 0 is nan")


def graph_of(weight):
    networkx = pytest.importorskip("networkx")
    return networkx.DiGraph([("a", "b", {"weight": 1.0}), ("b", "c", {"weight": weight})])


def test_messages_are_of_what_was_given(tmp_path):
    """The parameters that the caller wrote, the link that is meant, and hints that can be followed."""
    square, counts = sp.csr_matrix(X[:4]), np.abs(TARGET)
    np.save(tmp_path / "f4.npy", np.ones((5, 3), np.float32))
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    for call, said in (
            (lambda: kiln.pagerank(square, alpha=2), "alpha is 2"),
            (lambda: kiln.pagerank(square, damping=2), "damping is 2"),
            (lambda: kiln.pagerank(square, personalization=np.ones(3)), "personalization is 3 x 1"),
            (lambda: kiln.pagerank(sp.csr_matrix(X)), "an adjacency matrix is square, got 24 x 4"),
            (lambda: kiln.pagerank(graph_of(-2)), "the link from 'b' to 'c' has the weight -2, but"),
            (lambda: kiln.pagerank(graph_of("x")), "the weights of links must be numbers"),
            (lambda: kiln.hits(graph_of(None)), "the weight of the link from 'b' to 'c' is missing"),
            (lambda: kiln.ranking_metrics_at_k(None, square, square, K=0), "K must be an integer from 1 on"),
            (lambda: kiln.lasso_path(X, TARGET, alphas=[-1.0]), "alphas must be numbers in the range"),
            (lambda: kiln.stream([X], dtype="int8"), "dtype must be float32 or float64"),
            (lambda: kiln.Device(7), "a device is named by text"),
            (lambda: kiln.LinearRegression(**CPU).fit(X, TARGET).inference(X, TARGET).compare(3),
             "compare takes a kiln.Inference"),
            (lambda: kiln.GeneralizedLinearRegressor("poisson", parameter=3.0, **CPU).fit(X, counts),
             "parameter=3.0 has no meaning with family='poisson'"),
            (lambda: kiln.GeneralizedLinearRegressor("poisson", link_power=2.0, **CPU).fit(X, counts),
             "it belongs to link='power'"),
            (lambda: kiln.SpectralEmbedding(2, gamma=-1, **CPU).fit(X), "'gamma' parameter"),
            (lambda: kiln.read(tmp_path / "f4.npy", target=3), "so that no target can be 3"),
            (lambda: kiln.read(tmp_path / "f4.npy", target="q"), "give its index, from 0 to 2, or -1"),
            (lambda: kiln.Inference(kiln.KMeans(2, **CPU).fit(X), X, TARGET), "a KMeans has no statistics"),
            (lambda: kiln.Inference(kiln.LinearRegression(), X, TARGET), "is not fitted yet"),
            (lambda: kiln.matrix(X, dtype="int8"), "dtype must be float32 or float64"),
            (lambda: kiln.matrix(tmp_path / "columns.npy"), "(X), or read it into memory by kiln.read)")):
        refused(call, said)
