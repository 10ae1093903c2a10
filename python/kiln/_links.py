"""A graph in any form that is taken becomes its links as a matrix, and the names of its nodes."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from ._arrays import Matrix, canonical, is_graph, numbers, widened
from ._columns import as_table
from ._extras import needed
from ._library import ArgumentError, DataError, lib, text
from ._roles import columns_by_role

# The names of columns with the ends of links, and with their weights, begin so: as in the tool.
_WORDS = ("source|src|from|citing|tail$", "target|dst|dest|to_|tonode|to$|cited|head$", "weight|value|count")
_STAY = (".npy", ".npz", ".kiln-data")  # files with a matrix that stays where it is


class Graph:
    """links: the adjacency matrix; nodes: the names of its rows, None: their places. Results have the graph's
    form: dicts by node for a graph of networkx, of igraph with names, and a file of links; Series and frames
    by node for a frame of pandas; frames with a column `node` for polars, and pyarrow's tables for other
    tables."""

    def __init__(self, G: Any, *, source: str | None = None, target: str | None = None,
                 weight: str | None = "auto", undirected: bool = False, unweighted: bool = False) -> None:
        self.links, self._kind = G, ""
        self.nodes: Any = None
        self._undirected = undirected
        named, alike = None if weight == "auto" else weight, weight is None
        self.unweighted = unweighted
        if unweighted and named is not None:
            raise ArgumentError(f"weight={weight!r} and unweighted=True exclude each other")
        if isinstance(G, (list, tuple, dict)):
            raise ArgumentError(f"a {type(G).__name__} may hold links or rows: networkx.DiGraph makes a "
                                "graph of links, numpy.array a matrix of rows")
        file = isinstance(G, (str, os.PathLike)) and not os.fspath(G).endswith(_STAY)
        table = None if file or is_graph(G) or _is_igraph(G) or isinstance(G, Matrix) else as_table(G)
        if table is None and not file and (source is not None or target is not None):
            raise ArgumentError("source= and target= name columns of a frame with a link in each row")
        if file:
            if alike:
                raise ArgumentError("weight=None is of graphs and frames: lines of a file that repeat a link "
                                    "add up; unweighted=True takes every link for 1")
            self._of_file(G, {"source": source, "target": target, "weight": named})
        elif is_graph(G):
            self._of_networkx(G, named, alike)
        elif _is_igraph(G):
            self._of_igraph(G, named, alike)
        elif table is not None and not _is_adjacency(table, (source, target)):
            self._of_table(table, {"source": source, "target": target, "weight": named}, unweighted, alike)
        elif named is not None:
            raise ArgumentError("weight= names a column of a frame or an attribute of a graph's links; an "
                                "adjacency matrix holds the weights")
        else:
            if table is not None:
                self._of_adjacency(table)
            self.unweighted = unweighted or alike  # an entry is all the links between two nodes
        if self._undirected:
            self.links = _both_ways(self.links)

    # -------------------------------------------------------------------------------------- what comes in

    def _of_networkx(self, G: Any, weight: str | None, alike: bool) -> None:
        import networkx

        if len(G) == 0:
            raise ArgumentError("the graph has no nodes")
        if weight is not None and G.number_of_edges() and not any(weight in link for *_, link in
                                                                  G.edges(data=True)):
            known = sorted({str(name) for *_, link in G.edges(data=True) for name in link})
            raise ArgumentError(f"the graph's links have no attribute {weight!r}; they have "
                                f"{', '.join(known[:20]) or 'none'}")
        self.nodes, self._kind = list(G), "dict"
        try:
            self.links = networkx.to_scipy_sparse_array(G, self.nodes, np.float64, format="csr",
                                                        weight=None if alike else weight or "weight")
        except (TypeError, ValueError) as error:
            raise DataError(f"the weights of links must be numbers: {error}") from error
        if bad := self.worst(lambda values: ~np.isfinite(values)):
            raise DataError(f"the weight of {bad[0]} is missing, or no finite number")
        self._undirected = self._undirected and G.is_directed()  # else they are there both ways

    def _of_igraph(self, G: Any, weight: str | None, alike: bool) -> None:
        if G.vcount() == 0:
            raise ArgumentError("the graph has no nodes")
        if weight is not None and weight not in G.es.attributes():
            raise ArgumentError(f"the graph's links have no attribute {weight!r}; they have "
                                f"{', '.join(G.es.attributes()) or 'none'}")
        if "name" in G.vs.attributes():
            self.nodes, self._kind = G.vs["name"], "dict"
            if len(set(self.nodes)) < len(self.nodes):
                raise ArgumentError("several nodes of the graph have the same name")
        ends = np.array(G.get_edgelist(), np.int64).reshape(-1, 2)
        known = not alike and (weight or "weight" in G.es.attributes())
        weights = G.es[weight or "weight"] if known else None
        self._undirected = self._undirected or not G.is_directed()
        self._take(ends[:, 0], ends[:, 1], weights, G.vcount())

    def _of_file(self, path: Any, said: dict[str, str | None]) -> None:
        """What the tool takes for a graph: a list or table of links, or a file of a matrix."""
        from ._read import links_of_file

        self.links, data = links_of_file(path, said, tables=lib.KILN_FILE_EDGES)
        names = [lib.kiln_data_feature_name(data, j) for j in range(self.links.shape[1])]
        if all(names):
            self.nodes, self._kind = [text(name) for name in names], "dict"

    def _of_adjacency(self, frame: Any) -> None:
        self.nodes, self._kind = frame.index, "pandas"
        self.links = frame[frame.index].to_numpy(np.float64)

    def _of_table(self, table: Any, said: dict[str, str | None], unweighted: bool, alike: bool) -> None:
        if hasattr(table, "reset_index"):
            columns = [(str(name), table.iloc[:, j]) for j, name in enumerate(table.columns)]
            self._kind = "pandas"
        else:
            pyarrow = arrow()
            made = pyarrow.table(table)
            columns = list(zip(made.column_names, made.columns))
            self._kind = "polars" if type(table).__module__.startswith("polars") else "arrow"
        source, target, weights = columns_by_role(columns, said, _WORDS, weighted=not (unweighted or alike))
        codes, self.nodes = (_codes_of_pandas if self._kind == "pandas" else _codes_of_arrow)(source, target)
        half = len(codes) // 2
        if not half:
            raise ArgumentError("the frame has no links")
        if len(missing := np.flatnonzero(codes < 0)):
            raise DataError(f"row {missing[0] % half} (from 0) of the frame lacks an end of its link")
        self._take(codes[:half], codes[half:], None if alike else weights, len(self.nodes))

    def _take(self, source: Any, target: Any, weights: Any, count: int) -> None:
        """The matrix of links whose ends are numbers; those that are there several times are added up."""
        sparse = needed("scipy.sparse", "a table of links or ratings")
        values = np.ones(len(source)) if weights is None else _numbers(weights)
        if len(missing := np.flatnonzero(~np.isfinite(values))):
            raise DataError(f"the weight of link {missing[0]} (from 0) is missing, or no finite number")
        self.links = sparse.coo_array((values, (source, target)), (count, count)).tocsr()

    def worst(self, bad: Any) -> tuple[str, float] | None:
        """The first link of these weights, in words, and its weight; None: there is none in host memory."""
        if isinstance(self.links, Matrix) or not hasattr(self.links, "tocoo"):
            return None
        links = self.links.tocoo()
        if not len(found := np.flatnonzero(bad(links.data))):
            return None
        ends = (int(links.row[found[0]]), int(links.col[found[0]]))
        named = ends if self.nodes is None else tuple(_listed(self.nodes)[end] for end in ends)
        return f"the link from {named[0]!r} to {named[1]!r}", float(links.data[found[0]])

    # --------------------------------------------------------------------------------- what goes by name

    def vector(self, values: Any, name: str) -> Any:
        """What is given by node, in the nodes' order: a dict, a Series, or a frame of pandas by its index, of
        some nodes, others have 0; a list of these, each a column; or an array as it is."""
        if values is None or isinstance(values, Matrix):
            return values
        if isinstance(values, (list, tuple)) and any(isinstance(one, dict) or hasattr(one, "index")
                                                     and hasattr(one, "to_numpy") for one in values):
            return np.column_stack([self.vector(one, name) for one in values])
        if hasattr(values, "index") and hasattr(values, "to_numpy"):  # of pandas
            keys, numbers_of = list(values.index), np.asarray(values.to_numpy(), np.float64)
        elif isinstance(values, dict):
            keys, numbers_of = list(values), np.array(list(values.values()), np.float64)
        elif (table := as_table(values)) is not None:
            made = arrow().table(table)
            keys = made.columns[0].to_pylist()
            numbers_of = np.column_stack([one.to_numpy() for one in made.columns[1:]])
            numbers_of = numbers_of[:, 0] if numbers_of.shape[1] == 1 else numbers_of
        else:
            return values if hasattr(values, "shape") else numbers(values)
        if self.nodes is None:
            raise ArgumentError(f"{name} is given by node, but the graph's nodes have no names")
        place = {node: i for i, node in enumerate(_listed(self.nodes))}
        for key in keys:
            if key not in place:
                raise ArgumentError(f"{name}: the graph has no node {key!r}")
        found = np.zeros((len(place), *numbers_of.shape[1:]))
        found[[place[key] for key in keys]] = numbers_of
        return found

    def named(self, scores: Matrix, name: str, vector: bool = True) -> Any:
        """Scores as they are handed out; with `vector` of one column."""
        if self.nodes is None:
            return scores.result(vector=vector)
        values = scores.numpy()
        values = values[:, 0] if vector else values
        if self._kind == "dict":
            return dict(zip(self.nodes, values.tolist() if vector else values))
        if self._kind == "pandas":
            import pandas

            index = pandas.Index(self.nodes, name="node")
            return pandas.Series(values, index, name=name) if vector else pandas.DataFrame(values, index)
        columns = {name: values} if vector else {f"{name}_{j}": column for j, column in enumerate(values.T)}
        made = arrow().table({"node": self.nodes, **columns})
        if self._kind == "arrow":
            return made
        import polars

        return polars.from_arrow(made)


def _is_igraph(G: Any) -> bool:
    return all(hasattr(G, name) for name in ("vs", "es", "get_edgelist"))


def _is_adjacency(table: Any, said: tuple[str | None, str | None]) -> bool:
    """A frame of pandas whose index and columns are the same nodes."""
    return (said == (None, None) and hasattr(table, "index") and table.shape[0] == table.shape[1]
            and set(table.index) == set(table.columns))


def _codes_of_pandas(source: Any, target: Any) -> tuple[Any, Any]:
    """The ends of all links as numbers, the sources first; and what they number. -1: missing."""
    import pandas

    ends = [pandas.Series(one.astype(one.cat.categories.dtype) if hasattr(one, "cat") else one)
            for one in (source, target)]
    codes, nodes = pandas.factorize(pandas.concat(ends, ignore_index=True))
    return codes, pandas.Index(nodes)


def _codes_of_arrow(source: Any, target: Any) -> tuple[Any, Any]:
    pyarrow = arrow()
    ends = [one.cast(one.type.value_type) if pyarrow.types.is_dictionary(one.type) else one
            for one in (source, target)]
    if ends[0].type != ends[1].type:
        try:
            ends[1] = ends[1].cast(ends[0].type)
        except pyarrow.ArrowException as error:
            raise DataError(f"the sources are of type {ends[0].type}, and the targets of "
                            f"{ends[1].type}") from error
    encoded = pyarrow.chunked_array([chunk for one in ends for chunk in one.chunks],
                                    ends[0].type).combine_chunks().dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), encoded.dictionary


def arrow() -> Any:
    return needed("pyarrow", "a table of links or ratings")


def _numbers(weights: Any) -> Any:
    try:
        values = weights.to_numpy() if hasattr(weights, "to_numpy") else np.asarray(weights)
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the weights of links must be numbers: {error}") from error


def _listed(nodes: Any) -> list[Any]:
    """Nodes as Python has them."""
    return list(nodes.to_pylist() if hasattr(nodes, "to_pylist") else nodes)


def sparse_links(links: Any) -> Any:
    """A dense array as a sparse matrix, whose entries are the links."""
    if isinstance(links, np.ndarray) and links.ndim == 2:
        return needed("scipy.sparse", "a graph").csr_array(numbers(links))
    return links


def _both_ways(links: Any) -> Any:
    """Links that lead both ways: A + A^T, where a link of a node to itself stays as it is."""
    if isinstance(links, Matrix):
        links = links.numpy()
    if len(np.shape(links)) != 2 or links.shape[0] != links.shape[1]:
        raise ArgumentError(f"an adjacency matrix is square, got {' x '.join(map(str, np.shape(links)))}")
    if hasattr(links, "tocsr"):
        sparse = needed("scipy.sparse", "a graph")
        links = sparse.csr_array(widened(canonical(links)))
        return links + links.T - sparse.diags_array(links.diagonal())
    links = widened(numbers(links))
    return links + links.T - np.diag(np.diag(links))
