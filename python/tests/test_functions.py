"""Functions against NumPy, SciPy and networkx."""
import cProfile
import pstats
import subprocess
import sys

import kiln
import networkx
import numpy as np
import pytest
import scipy.sparse
from kiln._functions import _REDUCTIONS


@pytest.fixture
def sparse():
    return scipy.sparse.random(80, 50, 0.1, format="csr", random_state=5)


def test_mmchain(sparse):
    rng = np.random.default_rng(0)
    y, v, z = rng.normal(size=50), rng.normal(size=80), rng.normal(size=50)
    w = kiln.mmchain(sparse, y, v=v, alpha=2, beta=3, z=z, device="cpu")
    np.testing.assert_allclose(w, 2 * (sparse.T @ (v * (sparse @ y))) + 3 * z, rtol=1e-12)


def test_products(sparse):
    B = np.random.default_rng(0).normal(size=(50, 4))
    np.testing.assert_allclose(kiln.spmm(sparse, B, device="cpu"), sparse @ B, rtol=1e-12)
    np.testing.assert_allclose(kiln.multiply(sparse, sparse @ B, transposed=True, device="cpu"),
                               sparse.T @ (sparse @ B), rtol=1e-12)


def test_sddmm(sparse):
    rng = np.random.default_rng(0)
    A, B = rng.uniform(1, 2, size=(80, 7)), rng.uniform(1, 2, size=(50, 7))
    dots = (A @ B.T)[sparse.nonzero()]
    wanted = {"product": dots, "times": sparse.data * dots, "quotient": sparse.data / dots,
              "residual": sparse.data - dots}
    for kind, values in wanted.items():
        np.testing.assert_allclose(kiln.sddmm(sparse, A, B, kind=kind, device="cpu").data, values, rtol=1e-12)
    with pytest.raises(kiln.ArgumentError, match="kind"):
        kiln.sddmm(sparse, A, B, kind="sum")


def test_batches():
    rng = np.random.default_rng(0)
    X, flat, offsets = rng.normal(size=(9, 33)), rng.normal(size=100), np.array([0, 3, 50, 100])
    wanted = {"sum": np.sum, "squares": lambda x: (x * x).sum(), "l1": lambda x: np.abs(x).sum(),
              "l2": np.linalg.norm, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin,
              "mean": np.mean, "variance": np.var}
    assert set(wanted) == set(_REDUCTIONS)
    for kind, function in wanted.items():
        np.testing.assert_allclose(kiln.batch_reduce(X, kind, device="cpu"), [function(row) for row in X],
                                   rtol=1e-12)
        np.testing.assert_allclose(kiln.batch_reduce(flat, kind, offsets=offsets, device="cpu"),
                                   [function(flat[a:b]) for a, b in zip(offsets, offsets[1:])], rtol=1e-12)
    np.testing.assert_allclose(kiln.batch_scale(X, np.arange(9.0), device="cpu"), X * np.arange(9.0)[:, None])
    np.testing.assert_allclose(kiln.batch_scale(flat, [1, 2, 3], offsets=offsets, device="cpu"),
                               flat * np.repeat([1, 2, 3], np.diff(offsets)))


def test_layouts_of_pagerank():
    """The same ranks in each layout of the links, to the bound that each run tells."""
    A = scipy.sparse.random(300, 300, 0.02, random_state=1, format="csr")
    runs = [kiln.pagerank(A, tol=1e-12, layout=layout, device="cpu")
            for layout in ("auto", "csr", "hybrid", "balanced")]
    for run in runs[1:]:
        bound = run.report.figures["error_bound"] + runs[0].report.figures["error_bound"]
        assert np.abs(run.scores - runs[0].scores).sum() <= bound + 1e-13
    with pytest.raises(ValueError, match="layout must be 'auto' or one of"):
        kiln.pagerank(A, layout="ell", device="cpu")


def test_pagerank():
    graph = networkx.gnp_random_graph(120, 0.03, seed=1, directed=True)
    A = networkx.to_scipy_sparse_array(graph, format="csr", dtype=float)
    wanted = networkx.pagerank(graph, tol=1e-14, max_iter=1000)
    ranking = kiln.pagerank(A, tol=1e-13, device="cpu")
    np.testing.assert_allclose(ranking.scores, [wanted[i] for i in range(120)], atol=1e-10)
    assert ranking.report.converged and ranking.scores.sum() == pytest.approx(1, abs=1e-12)
    seeds = np.zeros((120, 2))
    seeds[3, 0] = seeds[7, 1] = 1
    both = kiln.pagerank(A, personalize=seeds, tol=1e-13, device="cpu").scores
    wanted = networkx.pagerank(graph, personalization={7: 1}, tol=1e-14, max_iter=1000)
    np.testing.assert_allclose(both[:, 1], [wanted[i] for i in range(120)], atol=1e-10)


def test_hits():
    graph = networkx.gnp_random_graph(100, 0.05, seed=2, directed=True)
    A = networkx.to_scipy_sparse_array(graph, format="csr", dtype=float)
    hubs, authorities = networkx.hits(graph, tol=1e-12, max_iter=10000)
    found = kiln.hits(A, tol=1e-13, max_iter=10000, device="cpu")
    np.testing.assert_allclose(found.hubs, [hubs[i] for i in range(100)], atol=1e-8)
    np.testing.assert_allclose(found.authorities, [authorities[i] for i in range(100)], atol=1e-8)


def test_the_best_device_is_chosen():
    rows = kiln.explain((1000, 10))
    assert sum(row["chosen"] for row in rows) == 1
    assert kiln.mmchain(np.eye(3), np.ones(3)).tolist() == [1, 1, 1]
    assert {row["what"] for row in kiln.doctor()}
    assert any(row["name"] == "cpu" and row["usable"] for row in kiln.devices())


@pytest.mark.parametrize("where", [row["name"] for row in kiln.devices() if row["usable"]][-2:])
def test_tune_measures_plans(where, sparse):
    plans = kiln.tune(sparse, device=where, most=3, repeats=1)
    assert sum(plan["chosen"] for plan in plans) == 1 and 1 <= len(plans) <= 4
    measured = [plan["measured"] for plan in plans]
    assert measured == sorted(measured) and measured[0] > 0 and all(plan["variant"] for plan in plans)


@pytest.mark.parametrize("operation", ["sddmm", "batch_reduce"])
def test_tune_measures_plans_of_other_operations(operation):
    X = scipy.sparse.random(3000, 200, 0.05, format="csr", random_state=0)
    where = [row["name"] for row in kiln.devices() if row["usable"] and row["name"] != "cpu"][:1] or ["cpu"]
    plans = kiln.tune(X if operation == "sddmm" else X.toarray(), operation=operation, columns=8,
                      device=where[0], most=2, repeats=1)
    assert plans and all(plan["measured"] > 0 for plan in plans)
    with pytest.raises(kiln.ArgumentError, match="one of"):
        kiln.tune(X, operation="sums")


@pytest.mark.parametrize("kind, digits", [("float16", 11), ("bfloat16", 8)])
def test_factors_of_half_precision(kind, digits):
    S = scipy.sparse.random(300, 200, 0.05, format="csr", random_state=0, dtype=np.float32)
    random = np.random.default_rng(0)
    A, B = random.random((300, 16), np.float32), random.random((200, 16), np.float32)
    halves = [kiln.Half(factor, kind) for factor in (A, B)]
    want, got = kiln.sddmm(S, A, B, kind="times", device="cpu"), kiln.sddmm(S, *halves, kind="times")
    assert halves[0].shape == (300, 16) and (got.indices == S.indices).all()
    np.testing.assert_allclose(got.data, want.data, rtol=2.0**(2 - digits))
    if kind == "float16":
        exact = kiln.sddmm(S, *(kiln.Half(factor.astype(np.float16)) for factor in (A, B)), kind="times")
        np.testing.assert_array_equal(exact.data, got.data)
    for wrong in (lambda: kiln.Half(A, "float8"), lambda: kiln.Half(np.ones(3, np.float16)),
                  lambda: kiln.sddmm(S, halves[0], B)):
        with pytest.raises((kiln.ArgumentError, TypeError)):
            wrong()


def test_solvers_of_hits():
    A = scipy.sparse.random(200, 200, 0.05, format="csr", random_state=0)
    power, other = (kiln.hits(A, solver=solver, device="cpu") for solver in ("power", "lobpcg"))
    np.testing.assert_allclose(power.authorities, other.authorities, atol=1e-7)
    with pytest.raises(ValueError, match="one of"):
        kiln.hits(A, solver="lanczos")


def test_importing_and_calling_cost_little():
    """Counted, not timed: no large package is imported for a matrix, and a call is some 170 of Python's."""
    code = "import sys, numpy; import kiln; kiln.Matrix; print(*{name.split('.')[0] for name in sys.modules})"
    found = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"scipy", "sklearn", "pandas", "polars", "pyarrow", "matplotlib"} & set(found)
    X, y, calls = np.eye(8), np.ones(8), cProfile.Profile()
    kiln.multiply(X, y)
    calls.enable()
    for _ in range(10):
        kiln.multiply(X, y)
    calls.disable()
    assert pstats.Stats(calls).total_calls < 10 * 200


def test_a_target_by_its_index(tmp_path):
    """As NumPy counts; in text, as the tool does."""
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "all.npy", X)
    for target, column in ((0, 0), (2, 2), (-1, 2), ("1", 0), ("-1", 2)):
        data = kiln.read(tmp_path / "all.npy", target=target)
        np.testing.assert_array_equal(data.y, X[:, column])
        np.testing.assert_array_equal(data.X, np.delete(X, column, axis=1))
    with pytest.raises(kiln.ArgumentError, match="3 columns"):
        kiln.read(tmp_path / "all.npy", target=3)
    np.savez(tmp_path / "both.npz", X=X, y=[1, 2, 3, 4])
    data = kiln.read(tmp_path / "both.npz")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, [1, 2, 3, 4])


@pytest.mark.parametrize("kind", ["DiGraph", "Graph", "MultiDiGraph", "MultiGraph"])
def test_rankings_of_networkx_graphs(kind):
    random, graph = np.random.default_rng(1), getattr(networkx, kind)()
    graph.add_nodes_from("xyz")
    for _ in range(200):
        graph.add_edge(*(f"n{v}" for v in random.integers(0, 40, 2)), weight=float(random.integers(1, 5)))
    seeds, sink = {"n3": 1, "x": 2}, {"n1": 1}
    for own, theirs in (({}, {}), ({"personalize": seeds, "dangling": sink},
                                   {"personalization": seeds, "dangling": sink})):
        wanted = networkx.pagerank(graph, tol=1e-14, max_iter=1000, **theirs)
        found = kiln.pagerank(graph, tol=1e-13, device="cpu", **own)
        assert list(found.scores) == list(graph) and max(abs(wanted[node] - found.scores[node])
                                                         for node in graph) < 1e-12
    hubs, authorities = networkx.hits(graph, tol=1e-13, max_iter=10000)
    found = kiln.hits(graph, tol=1e-13, max_iter=10000, device="cpu")
    assert max(abs(hubs[node] - found.hubs[node]) for node in graph) < 1e-9
    assert max(abs(authorities[node] - found.authorities[node]) for node in graph) < 1e-9
    assert len(repr(found)) < 800
    with pytest.raises(kiln.ArgumentError, match="no node 'q'"):
        kiln.pagerank(graph, personalize={"q": 1}, device="cpu")


WRONG = {"graph": networkx.path_graph(3), "ragged": [[1, 2], [3]], "set": {1, 2}, "dict": {"a": 1},
         "nothing": None, "generator": iter("ab"), "complex": np.ones((3, 3)) * 1j,
         "texts": np.full((3, 3), "1"), "dates": np.full((3, 3), "2020-01-01", "M8[D]"),
         "objects": np.array([[1, "x"]], object), "sparse complex": scipy.sparse.csr_matrix(np.eye(3) * 1j)}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_matrix_is_refused(wrong):
    calls = [kiln.Matrix, lambda X: kiln.mmchain(X, np.ones(3), device="cpu"),
             lambda X: kiln.multiply(X, np.ones((3, 2)), device="cpu"),
             lambda X: kiln.batch_reduce(X, device="cpu")]
    if not isinstance(wrong, networkx.Graph):
        calls += [kiln.hits, kiln.pagerank]
    for call in calls:
        with pytest.raises((kiln.ArgumentError, kiln.DataError)):
            call(wrong)


def test_rankings_take_no_lists_and_no_vectors():
    for call in (kiln.hits, kiln.pagerank):
        with pytest.raises(kiln.ArgumentError, match="links or rows"):
            call([(0, 1), (1, 2)])
    for call in (kiln.hits, kiln.pagerank, lambda X: kiln.mmchain(X, np.ones(1)),
                 lambda X: kiln.multiply(X, np.ones(1))):
        with pytest.raises(kiln.ArgumentError, match="2 dimensions, got 1"):
            call(np.ones(3))
