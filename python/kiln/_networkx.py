"""Kiln as a backend of networkx: nx.pagerank(G, backend="kiln"), or networkx.config.backend_priority =
["kiln"] for all calls."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._graphs import hits as _hits
from ._graphs import pagerank as _pagerank


class Graph:
    """A networkx graph as this backend takes it, which is as it is."""

    __networkx_backend__ = "kiln"

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def is_directed(self) -> bool:
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        return bool(self.graph.is_multigraph())


def convert_from_nx(graph: Any, **how: Any) -> Graph:
    return Graph(graph)


def convert_to_nx(result: Any, **how: Any) -> Any:
    return result.graph if isinstance(result, Graph) else result


def info() -> dict[str, Any]:
    """What networkx's documentation shows of the backend."""
    return {"backend_name": "kiln", "project": "kiln", "package": "kiln",
            "short_summary": "Ranking of large graphs on CPUs and GPUs.",
            "functions": {"pagerank": {}, "hits": {}}}


def _links(graph: Any, weight: str | None) -> tuple[list[Any], Any]:
    import networkx

    graph = graph.graph if isinstance(graph, Graph) else graph
    if not isinstance(graph, networkx.Graph):
        raise TypeError(f"a {type(graph).__name__} is no networkx graph")
    nodes = list(graph)
    if not nodes:  # of which networkx makes no matrix
        return nodes, None
    return nodes, networkx.to_scipy_sparse_array(graph, nodelist=nodes, weight=weight, dtype=float,
                                                 format="csr")


def _by_place(nodes: list[Any], values: dict[Any, float] | None) -> Any:
    return None if values is None else np.array([values.get(node, 0.0) for node in nodes], np.float64)


def pagerank(G: Any, alpha: float = 0.85, personalization: Any = None, max_iter: int = 100, tol: float = 1e-6,
             nstart: Any = None, weight: str | None = "weight", dangling: Any = None) -> Any:
    """networkx.pagerank, to Kiln's tolerance, which is smaller; max_iter, tol and nstart change nothing of
    where it ends."""
    nodes, links = _links(G, weight)
    if not nodes:
        return {}
    sink = _by_place(nodes, dangling)
    found = _pagerank(links, alpha=alpha, personalization=_by_place(nodes, personalization),
                      dangling="personalized" if sink is None else sink)
    return dict(zip(nodes, np.asarray(found.scores, np.float64).tolist()))


def hits(G: Any, max_iter: int = 100, tol: float = 1e-8, nstart: Any = None, normalized: bool = True) -> Any:
    """networkx.hits, to Kiln's tolerance; hubs and authorities add up to 1."""
    if not normalized:
        raise NotImplementedError("hits of Kiln's backend is normalized=True alone")
    nodes, links = _links(G, "weight")
    if not nodes:
        return {}, {}
    found = _hits(links)
    return tuple(dict(zip(nodes, np.asarray(one, np.float64).tolist()))
                 for one in (found.hubs, found.authorities))
