"""Hubs and authorities: kiln hits against networkx, on graphs of SNAP and LAW.

networkx (scipy's svds) scales both vectors to sum 1, as Kiln does by default. Prints, for each graph, the
largest difference between the two, and the seconds that each took for the ranking alone (reading apart);
--json FILE keeps them.

    python3 bench/peers/hits.py --kiln build/kiln ../shared/data/graphs/wiki-Vote.txt.gz ...
"""
import argparse
import datetime
import gzip
import json
import os
import subprocess
import tempfile
import time

import networkx


def by_kiln(kiln, path, device, threads):
    with tempfile.TemporaryDirectory() as folder:
        scores = os.path.join(folder, "scores.tsv")
        command = [kiln, "hits", path, "--device", device, "--tolerance", "1e-12", "--scores", scores,
                   "--json", "--quiet"]
        result = json.loads(subprocess.check_output(command + (["--threads", str(threads)] if threads
                                                               else [])))
        with open(scores) as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
    return {row[0]: (float(row[1]), float(row[2])) for row in rows}, result


def by_networkx(path):
    """An edge that stands twice weighs 2, as in Kiln."""
    graph = networkx.DiGraph()
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        for line in file:
            if line.startswith("#"):
                continue
            a, b = line.split()[:2]
            graph.add_edge(a, b, weight=graph.edges[a, b]["weight"] + 1 if graph.has_edge(a, b) else 1)
    start = time.perf_counter()
    hubs, authorities = networkx.hits(graph, max_iter=10000, tol=1e-14)
    return hubs, authorities, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--kiln", default="build/kiln")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    rows = []
    for path in arguments.graphs:
        scores, result = by_kiln(arguments.kiln, path, arguments.device, arguments.threads)
        hubs, authorities, seconds = by_networkx(path)
        assert scores.keys() == hubs.keys()
        row = {
            "graph": os.path.basename(path),
            "vertices": len(scores),
            "links": result["nnz"],
            "iterations": result["iterations"],
            "hub_difference": max(abs(scores[name][0] - hubs[name]) for name in scores),
            "authority_difference": max(abs(scores[name][1] - authorities[name]) for name in scores),
            "largest_hub": max(hubs.values()),
            "largest_authority": max(authorities.values()),
            "kiln_seconds": result["seconds"]["solve"],
            "networkx_seconds": seconds,
        }
        rows.append(row)
        print(json.dumps(row))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"networkx": networkx.__version__, "commit": arguments.commit,
                       "date": datetime.date.today().isoformat(), "device": arguments.device, "rows": rows},
                      file, indent=1)


if __name__ == "__main__":
    main()
