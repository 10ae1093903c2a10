"""kiln.pagerank and kiln.hits of whatever holds a graph, by its nodes' names: networkx's numbers."""

from __future__ import annotations

import subprocess
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

import kiln

pa = pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)
NAMES = np.array([f"node {i}" for i in range(20)], object)
ENDS = RNG.integers(0, 20, (70, 2))  # loops and links that are there twice among them
LINKS = pd.DataFrame(
    {"source": NAMES[ENDS[:, 0]], "target": NAMES[ENDS[:, 1]], "weight": RNG.integers(1, 5, 70) / 2.0}
)
SEEDS = {"node 3": 1.0, "node 5": 3.0}
CPU: dict[str, Any] = {"device": "cpu"}


def graph(frame: pd.DataFrame, kind: Any = nx.MultiDiGraph) -> Any:
    return nx.from_pandas_edgelist(frame, edge_attr="weight", create_using=kind)


def by_name(scores: Any, column: str) -> Any:
    """As a dict, and what kind of thing it was."""
    if isinstance(scores, dict):
        return scores
    if isinstance(scores, pd.Series):
        assert scores.name == column and scores.index.name == "node"
        return scores.to_dict()
    table = scores.to_arrow() if isinstance(scores, pl.DataFrame) else scores
    assert table.column_names == ["node", column]
    return dict(zip(table["node"].to_pylist(), table[column].to_pylist()))


def relation(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("duckdb").sql("select * from frame")


FORMS: dict[str, Any] = {
    "pandas": (lambda frame: frame, pd.Series),
    "polars": (pl.from_pandas, pl.DataFrame),
    "lazy": (lambda frame: pl.from_pandas(frame).lazy(), pl.DataFrame),
    "pyarrow": (lambda frame: pa.Table.from_pandas(frame, preserve_index=False), pa.Table),
    "DuckDB": (relation, pa.Table),
    "networkx": (graph, dict),
    "categories": (lambda frame: frame.astype({"source": "category", "target": "category"}), pd.Series),
    "dictionaries": (
        lambda frame: pa.Table.from_pandas(frame.astype({"source": "category", "target": "category"})),
        pa.Table,
    ),
    "other names": (lambda frame: frame.set_axis(["Src", "DST", "weight"], axis=1), pd.Series),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("undirected", [False, True])
def test_ranks_are_those_of_networkx(form: str, undirected: bool) -> None:
    make, kind = FORMS[form]
    G = graph(LINKS, nx.MultiGraph if undirected else nx.MultiDiGraph)
    wanted = nx.pagerank(G, tol=1e-14, max_iter=1000)
    found = kiln.pagerank(make(LINKS), undirected=undirected, **CPU)
    assert isinstance(found.scores, kind) and "node" in repr(found)
    assert by_name(found.scores, "pagerank") == pytest.approx(wanted, rel=1e-9)
    wanted = nx.pagerank(G, personalization=SEEDS, dangling={"node 7": 1}, tol=1e-14, max_iter=1000)
    start = found.scores if kind in (dict, pd.Series) else None
    for seeds in (SEEDS, pd.Series(SEEDS), pl.DataFrame({"node": list(SEEDS), "seed": list(SEEDS.values())})):
        found = kiln.pagerank(
            make(LINKS), undirected=undirected, personalize=seeds, dangling={"node 7": 1}, start=start, **CPU
        )
        assert by_name(found.scores, "pagerank") == pytest.approx(wanted, rel=1e-8)
    hubs, authorities = nx.hits(G, tol=1e-14, max_iter=10000)
    ranks = kiln.hits(make(LINKS), undirected=undirected, **CPU)
    assert by_name(ranks.hubs, "hub") == pytest.approx(hubs, abs=1e-8)
    assert by_name(ranks.authorities, "authority") == pytest.approx(authorities, abs=1e-8)


def test_columns_and_weights_as_they_are_said() -> None:
    frame = LINKS.rename(columns={"source": "a", "target": "b", "weight": "w"}).assign(weight=1.0)
    wanted = nx.pagerank(graph(LINKS), tol=1e-14, max_iter=1000)
    ones = nx.pagerank(graph(LINKS.assign(weight=1.0)), tol=1e-14, max_iter=1000)
    for table in (frame, pl.from_pandas(frame)):
        found = kiln.pagerank(table, source="a", target="b", weight="w", **CPU)
        assert by_name(found.scores, "pagerank") == pytest.approx(wanted, rel=1e-9)
        found = kiln.pagerank(table, source="a", target="b", **CPU)  # the column `weight`
        assert by_name(found.scores, "pagerank") == pytest.approx(ones, rel=1e-9)
    G = nx.from_pandas_edgelist(frame, "a", "b", edge_attr=["w", "weight"], create_using=nx.MultiDiGraph)
    assert kiln.pagerank(G, weight="w", **CPU).scores == pytest.approx(wanted, rel=1e-9)
    snap = kiln.pagerank(LINKS.set_axis(["FromNodeId", "ToNodeId", *LINKS.columns[2:]], axis=1), **CPU)
    assert snap.scores.to_dict() == pytest.approx(wanted, rel=1e-9)
    plain = kiln.pagerank(LINKS[["source", "target"]], **CPU)  # each row counts 1
    assert plain.scores.to_dict() == pytest.approx(ones, rel=1e-9)
    once = nx.pagerank(graph(LINKS.assign(weight=1.0), nx.DiGraph), tol=1e-14, max_iter=1000)
    assert kiln.pagerank(LINKS, unweighted=True, **CPU).scores.to_dict() == pytest.approx(once, rel=1e-9)


def test_a_column_has_one_role() -> None:
    """One that is said is no other's, whatever it is called; an end may be the one that is left over."""
    G = nx.DiGraph([("x", "y"), ("y", "x"), ("z", "x")])
    wanted = nx.pagerank(G, tol=1e-14, max_iter=1000)
    ends, others = zip(*G.edges)
    for names, said in (
        (["target", "other"], {"source": "target"}),
        (["value_a", "value_b"], {"source": "value_a", "target": "value_b"}),
        (["source_2", "source_1"], {"target": "source_1"}),
        (["a", "count"], {"source": "a", "target": "count"}),
    ):
        frame = pd.DataFrame(dict(zip(names, (ends, others))))
        for table in (frame, pl.from_pandas(frame), pa.table(frame)):
            found = kiln.pagerank(table, **said, **CPU).scores
            assert by_name(found, "pagerank") == pytest.approx(wanted, rel=1e-9)
    named = pd.DataFrame({"source": ends, "target": others, "km": [1.0, 2.0, 3.0]})
    with pytest.warns(UserWarning, match="no column is called weight, value or count.*each row counts 1"):
        found = kiln.pagerank(named, **CPU).scores
    assert found.to_dict() == pytest.approx(wanted, rel=1e-9)
    for names, said in (["source", "target", "target"], {}), (["source", "x", "source"], {"target": "x"}):
        with pytest.raises(kiln.DataError, match="two columns of the table are named"):
            kiln.pagerank(named.set_axis(names, axis=1), **said, **CPU)


def test_files_of_links_are_read_by_name(tmp_path: Any) -> None:
    path, wanted = tmp_path / "links.csv", [[0, 2, 0], [0, 0, 3], [1, 0, 0]]
    path.write_text("a,b,w\nx,y,2\ny,z,3\nz,x,1\n")
    for said in ({"source": "a", "target": "b", "weight": "w"}, {"source": 0, "target": 1}, {"weight": -1}):
        found = kiln.read(path, **said)
        assert found.X.toarray().tolist() == wanted and found.feature_names == ["x", "y", "z"]
    rated = kiln.read(path, format="ratings", source="b", target="a", weight="w")
    assert rated.X.toarray().tolist() == np.diag([2, 3, 1]).tolist()
    with pytest.raises(kiln.ArgumentError, match="source= is of files of links.*table in memory"):
        kiln.read(pd.read_csv(path), source="a", target="b")
    with pytest.raises(kiln.DataError, match="which column is the target"):
        kiln.read(path, source="a")


def test_numbers_that_may_be_columns_are_told_of(tmp_path: Any) -> None:
    """Two whole numbers a line are links or rows: nothing but the format's name tells."""
    numbers, names = tmp_path / "numbers.txt", tmp_path / "names.txt"
    np.savetxt(numbers, np.arange(8).reshape(4, 2), fmt="%d")
    names.write_text("a b\nb c\n")
    with pytest.warns(UserWarning, match="read as links") as told:
        assert kiln.read(numbers).X.shape == (8, 8)
    assert told[0].filename == __file__ and len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kiln.read(numbers, format="csv").X.shape == (4, 2)
        assert kiln.read(numbers, format="edges").X.shape == (8, 8)
        assert kiln.read(names).X.shape == (3, 3)


def test_several_rankings_are_a_frame() -> None:
    seeds = pd.DataFrame({"x": [1.0, 0.0], "y": [0.0, 2.0]}, index=["node 3", "node 5"])
    found = kiln.pagerank(LINKS, personalize=seeds, **CPU).scores
    for j, node in enumerate(seeds.index):
        wanted = nx.pagerank(graph(LINKS), personalization={node: 1}, tol=1e-14, max_iter=1000)
        assert found[j].to_dict() == pytest.approx(wanted, rel=1e-8, abs=1e-12)
    listed = kiln.pagerank(LINKS, personalize=[{"node 3": 1}, seeds["y"]], **CPU).scores
    np.testing.assert_array_equal(listed, found)
    found = kiln.pagerank(pl.from_pandas(LINKS), personalize=seeds, **CPU).scores
    assert found.columns == ["node", "pagerank_0", "pagerank_1"]


@pytest.mark.parametrize("directed", [True, False])
def test_graphs_of_igraph(directed: bool) -> None:
    igraph = pytest.importorskip("igraph")
    links = LINKS[LINKS["source"] != LINKS["target"]]
    G = igraph.Graph.TupleList(links.itertuples(index=False), directed=directed, weights=True)
    wanted = dict(zip(G.vs["name"], G.pagerank(weights="weight")))
    assert kiln.pagerank(G, **CPU).scores == pytest.approx(wanted, rel=1e-8)
    both = dict(zip(G.vs["name"], G.pagerank(weights="weight", directed=False)))
    assert kiln.pagerank(G, undirected=True, **CPU).scores == pytest.approx(both, rel=1e-8)
    plain = igraph.Graph(5, [(0, 1), (1, 2), (2, 0), (3, 0)], directed=directed)
    np.testing.assert_allclose(kiln.pagerank(plain, **CPU).scores, plain.pagerank(), rtol=1e-8)


def test_adjacency_matrices() -> None:
    G = graph(LINKS)
    A = nx.to_scipy_sparse_array(G, format="csr", dtype=float)
    wanted = np.array(list(nx.pagerank(G, tol=1e-14, max_iter=1000).values()))
    both = np.array(list(nx.pagerank(graph(LINKS, nx.MultiGraph), tol=1e-14, max_iter=1000).values()))
    for form in (A, A.tocoo(), sp.csr_matrix(A), A.toarray(), kiln.matrix(A)):
        np.testing.assert_allclose(kiln.pagerank(form, **CPU).scores, wanted, rtol=1e-9)
        np.testing.assert_allclose(kiln.pagerank(form, undirected=True, **CPU).scores, both, rtol=1e-9)
    frame = nx.to_pandas_adjacency(G)
    shuffled = frame[RNG.permutation(frame.columns)]
    for each in (frame, shuffled):
        scores = kiln.pagerank(each, **CPU).scores
        np.testing.assert_allclose(scores, wanted, rtol=1e-9)
        assert list(scores.index) == list(G)


def test_numbers_and_mixed_names() -> None:
    frame = pd.DataFrame({"from": [10, 2, 10], "to": [2, 7, 7]})
    scores = kiln.pagerank(frame, **CPU).scores
    assert scores.index.tolist() == [10, 2, 7] and scores.idxmax() == 7
    assert kiln.pagerank(frame.astype(object).replace(7, "x"), **CPU).scores.index.tolist() == [10, 2, "x"]
    table = pa.table({"from": pa.array([10, 2, 10], pa.int32()), "to": pa.array([2, 7, 7], pa.int64())})
    assert kiln.pagerank(table, **CPU).scores["node"].to_pylist() == [10, 2, 7]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("header", [True, False])
def test_the_tool_ranks_a_file_of_links_alike(tool: Any, tmp_path: Any, named: bool, header: bool) -> None:
    """Text names with blanks, commas and quotes; columns by their names, by options, or by their places;
    links that lead both ways, or one."""
    undirected = named == header
    frame = LINKS.replace({"node 3": 'three, "III"', "node 5": "5"}).assign(note="x,y")
    frame = frame[["note", "target", "weight", "source"]]
    other = (
        frame if named else frame.rename(columns={"source": "by town", "target": "into", "weight": "seats"})
    )
    other.to_csv(tmp_path / "links.csv", index=False, header=header)
    places = (
        {"source": "4", "target": "2", "weight": "-2"}
        if not header
        else ({} if named else {"source": "by town", "target": "into", "weight": "seats"})
    )
    more = [word for role, column in places.items() for word in (f"--{role}", column)]
    more += ["--undirected"] * undirected
    subprocess.run(
        [
            tool,
            "pagerank",
            tmp_path / "links.csv",
            *more,
            "--scores",
            tmp_path / "scores.tsv",
            "--quiet",
            "-o",
            tmp_path / "m.kiln",
        ],
        check=True,
    )
    lines = [line.split("\t") for line in (tmp_path / "scores.tsv").read_text().splitlines()]
    assert {node: float(score) for node, score in lines} == pytest.approx(
        kiln.pagerank(frame, undirected=undirected, **CPU).scores.to_dict(), rel=1e-6
    )
    subprocess.run([tool, "verify", tmp_path / "m.kiln", tmp_path / "links.csv", "--quiet"], check=True)


def test_links_of_a_file_lead_both_ways(tool: Any, tmp_path: Any) -> None:
    (tmp_path / "g.edges").write_text("a b 2\nb a 1\nb c 4\nc c 3\n")
    with pytest.warns(UserWarning, match="lines that repeat a link: 1"):
        both = kiln.read(tmp_path / "g.edges", undirected=True).X
    np.testing.assert_array_equal(both.toarray(), [[0, 3, 0], [3, 0, 4], [0, 4, 3]])
    done = subprocess.run([tool, "hits", tmp_path / "g.edges", "--undirected", "-q", "--scores", "-"],
                          check=True, text=True, capture_output=True)
    scores = [[float(word) for word in line.split("\t")[1:]] for line in done.stdout.splitlines()[:3]]
    np.testing.assert_allclose(np.array(scores), np.column_stack(kiln.hits(both, **CPU)[:2]), rtol=1e-6)
    np.save(tmp_path / "m.npy", np.ones((2, 2)))
    for odd in (tmp_path / "m.npy", pd.DataFrame({"from": [1], "to": [2]})):
        with pytest.raises(kiln.ArgumentError, match="undirected=?(?:True)? is of (links|files of links)"):
            kiln.read(odd, undirected=True)


def test_a_file_of_links(tmp_path: Any) -> None:
    """The table of links as a frame gives the same scores; a file of a matrix those of the matrix."""
    options: list[dict[str, Any]] = [{}, {"undirected": True}, {"unweighted": True}]
    for name, more in zip(("links.csv", "links.tsv", "links.csv"), options):
        LINKS.to_csv(tmp_path / name, index=False, sep="," if name.endswith("csv") else "\t")
        for path in (tmp_path / name, str(tmp_path / name)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = kiln.pagerank(path, **more, **CPU).scores
                hubs = kiln.hits(path, **more, **CPU).hubs
            wanted = kiln.pagerank(LINKS, **more, **CPU).scores
            assert set(found) == {str(node) for node in wanted.index}
            np.testing.assert_allclose([found[str(node)] for node in wanted.index], wanted, rtol=1e-7)
            np.testing.assert_allclose([hubs[str(node)] for node in wanted.index],
                                       kiln.hits(LINKS, **more, **CPU).hubs, rtol=1e-6, atol=1e-9)
    with pytest.raises(kiln.ArgumentError, match="weight=None is of graphs and frames"):
        kiln.pagerank(tmp_path / "links.csv", weight=None)
    (tmp_path / "named.csv").write_text("weight,there,here\n1,b,a\n5,c,a\n1,a,b\n1,a,c\n")
    named = kiln.pagerank(tmp_path / "named.csv", source="here", target="there", weight="weight",
                          personalize={"b": 1.0}, **CPU).scores
    matrix = np.array([[0, 1, 5], [1, 0, 0], [1, 0, 0.0]])
    np.testing.assert_allclose([named[node] for node in "abc"],
                               kiln.pagerank(matrix, personalize=[0.0, 1, 0], **CPU).scores, rtol=1e-9)
    scipy.io.mmwrite(tmp_path / "m.mtx", sp.csr_array(matrix))
    sp.save_npz(tmp_path / "m.npz", sp.csr_matrix(matrix), compressed=False)
    for name in ("m.mtx", "m.npz"):
        np.testing.assert_allclose(kiln.pagerank(tmp_path / name, **CPU).scores,
                                   kiln.pagerank(matrix, **CPU).scores, rtol=1e-9)


def test_what_is_no_graph_is_said() -> None:
    calls: list[tuple[Any, dict[str, Any], str]] = [
        (
            LINKS.rename(columns={"source": "a"}),
            {},
            "no column 'source'; its columns are a, target, weight: source= says",
        ),
        (LINKS, {"weight": "w"}, "no column 'w'"),
        (LINKS, {"source": "target", "target": "target"}, "source= and target= are the same column"),
        (LINKS, {"target": "target", "weight": "target"}, "target= and weight= are the same column"),
        (LINKS.assign(weight="x"), {}, "weights of links must be numbers"),
        (LINKS.assign(weight=np.nan), {}, "weight of link 0 .* is missing"),
        (LINKS[:0], {}, "no links"),
        (LINKS.assign(target=[*LINKS["target"][:-1], None]), {}, "row 69 .* lacks an end"),
        (pl.from_pandas(LINKS.assign(target=[*LINKS["target"][:-1], None])), {}, "row 69 .* lacks an end"),
        (LINKS, {"personalize": {"node 99": 1}}, "personalize: the graph has no node 'node 99'"),
        (sp.eye_array(3), {"personalize": {"a": 1}}, "nodes have no names"),
        (sp.eye_array(3), {"source": "a"}, "name columns"),
        (sp.eye_array(3), {"weight": "a"}, "adjacency matrix holds the weights"),
        ([(1, 2)], {}, "networkx.DiGraph makes"),
        (np.ones((2, 3)), {"undirected": True}, "square, got 2 x 3"),
        (nx.DiGraph(), {}, "no nodes"),
    ]
    for G, more, said in calls:
        with pytest.raises(ValueError, match=said):
            kiln.pagerank(G, **more, **CPU)


def test_weights_that_are_not_there_or_not_wanted() -> None:
    G = nx.DiGraph()
    G.add_edge("a", "b", score=3.0)
    G.add_edge("a", "c")
    for function in (kiln.pagerank, kiln.hits):
        with pytest.raises(kiln.ArgumentError, match="no attribute 'nope'; they have score"):
            function(G, weight="nope")
        with pytest.raises(kiln.ArgumentError, match="weight='score' and unweighted=True exclude each other"):
            function(G, weight="score", unweighted=True)
    scores = kiln.pagerank(G, weight="score", device="cpu").scores
    ours = nx.pagerank(G, weight="score")
    assert scores["b"] == pytest.approx(ours["b"], rel=1e-4)


def test_without_weights_each_link_counts_one() -> None:
    """weight=None as in networkx: parallel links count 1 each; of a matrix each entry does."""
    heavy = ("a", "b", {"weight": 5})
    G = nx.MultiDiGraph([heavy, ("a", "b"), ("a", "c"), ("b", "a"), ("c", "a"), ("c", "b")])
    ends = pd.DataFrame([(*link[:2], 1 + 4 * (i == 0)) for i, link in enumerate(G.edges)],
                        columns=["source", "target", "weight"])
    links = nx.to_scipy_sparse_array(G, weight="weight")
    wanted = nx.pagerank(G, weight=None, tol=1e-14)
    once = nx.pagerank(nx.DiGraph(G), weight=None, tol=1e-14)
    igraph = pytest.importorskip("igraph")
    alike = igraph.Graph.TupleList(ends.itertuples(index=False), directed=True, weights=True)
    for graph_of, score in [(G, wanted), (ends, wanted), (pa.table(ends), wanted), (alike, wanted),
                            (links, once)]:
        found = kiln.pagerank(graph_of, weight=None, **CPU).scores
        found = dict(zip(*found.to_pydict().values())) if hasattr(found, "to_pydict") else found
        found = dict(zip(G, found)) if isinstance(found, np.ndarray) else dict(found)
        assert found == pytest.approx(score, rel=1e-9)
    assert abs(kiln.pagerank(links, **CPU).scores[1] - wanted["b"]) > 0.01
    hubs = kiln.hits(G, weight=None, device="cpu").hubs
    np.testing.assert_allclose(list(hubs.values()), kiln.hits((nx.to_scipy_sparse_array(G, weight=None)),
                                                              device="cpu").hubs, rtol=1e-9)


def test_networkx_names_of_parameters() -> None:
    G = nx.gnp_random_graph(20, 0.2, seed=1, directed=True)
    wanted = nx.pagerank(G, alpha=0.5, personalization={3: 1, 4: 2}, tol=1e-12)
    found = kiln.pagerank(G, alpha=0.5, personalization={3: 1, 4: 2}, nstart=wanted).scores
    assert max(abs(found[node] - wanted[node]) for node in G) < 1e-9
    with pytest.raises(kiln.ArgumentError, match="alpha is another name of damping"):
        kiln.pagerank(G, alpha=0.5, damping=0.6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, bool])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_links_both_ways_are_added_beyond_their_type(form: Any, dtype: Any) -> None:
    """200 + 200 is no number of 8 bits."""
    links = np.array([[0, 200, 3], [200, 0, 1], [0, 100, 0]]).astype(dtype)
    found = kiln.pagerank(form(links), undirected=True).scores
    np.testing.assert_allclose(found, kiln.pagerank(links.astype(float), undirected=True).scores, rtol=1e-9)
