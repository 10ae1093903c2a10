"""docs/results.md says where each verb's bound stands: in the text, in the JSON, in the model and in Python.
All verbs are held to its table."""
from __future__ import annotations

import json
import math
import re
import subprocess

import numpy as np
import pytest
import scipy.sparse
from conftest import ROOT

import kiln
from kiln._load import _texts, open_model

CPU = {"device": "cpu"}
# A file, options and the same in Python: of a run with a bound and of one without, None where there is no
# such run. Conjugate gradient, links with another curvature and losses without a penalty leave no bound.
CASES = {
    "linreg": (("number.csv", ["--target", "y"], lambda d: kiln.LinearRegression(**CPU).fit(d.X, d.y)),
               ("number.csv", ["--target", "y", "--solver", "cg"],
                lambda d: kiln.LinearRegression(solver="cg", **CPU).fit(d.X, d.y))),
    "logreg": (("class.csv", ["--target", "y"], lambda d: kiln.LogisticRegression(**CPU).fit(d.X, d.labels)),
               ("class.csv", ["--target", "y", "--l2", "0"],
                lambda d: kiln.LogisticRegression(C=math.inf, **CPU).fit(d.X, d.labels))),
    "glm": (("count.csv", ["--target", "y", "--family", "poisson"],
             lambda d: kiln.GeneralizedLinearRegressor("poisson", **CPU).fit(d.X, d.counts)),
            ("positive.csv", ["--target", "y", "--link", "log"],
             lambda d: kiln.GeneralizedLinearRegressor("gaussian", link="log", **CPU).fit(d.X, d.positive))),
    "svm": (("class.csv", ["--target", "y"], lambda d: kiln.LinearSVC(**CPU).fit(d.X, d.labels)),
            ("class.csv", ["--target", "y", "--l2", "0"],
             lambda d: kiln.LinearSVC(C=math.inf, **CPU).fit(d.X, d.labels))),
    "pagerank": (("g.edges", [], lambda d: kiln.pagerank(d.graph, **CPU)),
                 ("g.edges", ["--damping", "1"], lambda d: kiln.pagerank(d.graph, damping=1, **CPU))),
    "hits": (("g.edges", [], lambda d: kiln.hits(d.graph, **CPU)), None),
    "kmeans": (None, ("X.npy", ["-k", "3"], lambda d: kiln.KMeans(3, **CPU).fit(d.X))),
    "svd": (None, ("X.npy", ["-k", "2"], lambda d: kiln.TruncatedSVD(2, **CPU).fit(d.X))),
    "pca": (None, ("X.npy", ["-k", "2"], lambda d: kiln.PCA(2, **CPU).fit(d.X))),
    "spectral": (None, ("g.edges", [], lambda d: kiln.SpectralEmbedding(
        affinity="precomputed", **CPU).fit(d.graph))),
    "als": (None, ("R.npz", ["--factors", "2", "--l2", "1"],
                   lambda d: kiln.ALS(2, l2=1, **CPU).fit(d.ratings))),
    "sfa": (None, ("R.npz", ["--factors", "2", "--l2", "1"],
                   lambda d: kiln.SFA(2, l2=1, **CPU).fit(d.ratings))),
    "gap": (None, ("R.npz", ["-k", "2"], lambda d: kiln.NMF(2, **CPU).fit(d.ratings))),
    "lda": (None, ("R.npz", ["-k", "2"], lambda d: kiln.LatentDirichletAllocation(2, **CPU).fit(d.ratings))),
    "mds": (None, ("X.npy", [], lambda d: kiln.MDS(**CPU).fit(d.X))),
}
WORD = re.compile(r"`([^`]+)`")


class Data:
    def __init__(self, folder):
        rng = np.random.default_rng(1)
        self.X = rng.normal(size=(60, 3))
        self.y = self.X @ [1, 2, 0] + rng.normal(size=60)
        self.labels = np.where(self.y + 3 * rng.normal(size=60) > 0, "yes", "no")
        self.counts = rng.poisson(np.exp(self.y / 4)).astype(float)
        self.positive = np.exp(self.y / 4)
        self.ratings = scipy.sparse.csr_matrix(rng.integers(0, 5, (20, 10)).astype(float))
        self.graph = scipy.sparse.csr_matrix((rng.random((20, 20)) < 0.2).astype(float))
        for name, target in ("number", self.y), ("class", self.labels), ("count",
                                                                         self.counts), ("positive",
                                                                                        self.positive):
            lines = [",".join([*map(repr, map(float, row)), str(value)])
                     for row, value in zip(self.X, target)]
            (folder / f"{name}.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n")
        np.save(folder / "X.npy", self.X)
        scipy.sparse.save_npz(folder / "R.npz", self.ratings)
        (folder / "g.edges").write_text("".join(f"{a} {b}\n" for a, b in zip(*self.graph.nonzero())))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("certificates")
    return made, Data(made)


def rows():
    """The table's cells in backticks, by verb."""
    text = (ROOT / "docs" / "results.md").read_text()
    table = re.search(r"^\| verb \| report with a bound .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M).group(1)
    found = {}
    for line in table.splitlines():
        verb, *cells = [WORD.findall(cell) for cell in line.strip("|").split("|")]
        found[verb[0]] = cells
    return found


def test_the_table_has_all_verbs():
    from kiln._library import lib, text

    algorithms = []
    while lib.kiln_algorithm_at(len(algorithms)):
        algorithms.append(text(lib.kiln_algorithm_at(len(algorithms)).name))
    assert sorted(rows()) == sorted(CASES) == sorted(algorithms)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("verb", sorted(CASES))
def test_each_verb_says_its_bound_where_the_table_has_it(verb, bounded, folder, tool):
    place, data = folder
    said, unsaid, keys, attributes = rows()[verb]
    lines, case = (said, CASES[verb][0]) if bounded else (unsaid, CASES[verb][1])
    assert (case is None) == (not lines), "the table and the cases differ"
    if case is None:
        return
    file, options, fit = case
    command = [tool, verb, file, *options, "--device", "cpu", "-o", f"{verb}.kiln"]
    told = json.loads(subprocess.run([*command, "--json"], cwd=place, capture_output=True, text=True,
                                     check=True).stdout)
    report = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    assert all(f"\n  {line}" in report for line in lines), report
    if bounded:
        assert "optimum     no bound" not in report and "error_bound no bound" not in report
    fitted = fit(data)
    kept = [json.loads(_texts(open_model(place / f"{verb}.kiln"))["report"])]
    if hasattr(fitted, "save"):
        fitted.save(place / "python.kiln")
        kept.append(json.loads(_texts(open_model(place / "python.kiln"))["report"]))
    for where in [told, *kept]:
        for key in keys:
            assert key in where, (key, where)
            assert (where[key] is not None) == (bounded or key == "setbacks"), (key, where)
    for attribute in attributes:
        value = eval(f"fitted.{attribute}")
        if attribute.endswith("certificate"):
            assert value == (told["certificate"] or "")
        else:
            assert math.isfinite(value) == (bounded or "setbacks" in attribute), (attribute, value)
