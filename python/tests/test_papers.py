"""bench/papers: each of the papers' tables and figures, in its small form on the processor. No figure is
judged here, but that it is there, that the results behind it are right (a step fails where they are not), and
what the data must be."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The contents of the papers: figures and tables of measurements, and the two tables of data sets.
PAPERS = {"fused": "fig2 fig3 fig4 fig5 fig6 table2 table4 table5 table6",
          "iterative": "fig4 fig5 fig6 fig7 fig10 fig11 fig13 fig14 fig15 fig16 fig17",
          "batched": "fig1 table1 table2",
          "sampled": "fig4 fig5 fig7 fig8 fig9 table3 table4 table5"}
NAMES = {f"{paper}.{name}" for paper, names in PAPERS.items() for name in names.split()}


def run(script, *words):
    return subprocess.run([sys.executable, ROOT / "bench" / script, *words], capture_output=True, text=True,
                          check=False)


def build_of(tool):
    """The folder that tool was built in, which has the benchmarks."""
    build = pathlib.Path(tool).parent
    if not (build / "bench" / "kiln_bench").exists():
        pytest.skip(f"{build} has no benchmarks")
    return build


def test_list():
    told = run("papers", "--list").stdout
    assert set(re.findall(r"^(\w+\.\w+) ", told, re.MULTILINE)) == NAMES
    assert len(NAMES) == 31 and "31 tables and figures" in told


@pytest.mark.parametrize("script", ["papers", "run"])
def test_unknown_names_are_refused(script):
    done = run(script, "fig99")
    assert done.returncode == 2 and "there is no step fig99" in done.stderr


def test_run_knows_all_operations_and_its_peers(tool, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # beside bench/run
    loader = importlib.machinery.SourceFileLoader("bench_run", str(ROOT / "bench" / "run"))
    bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(bench)
    assert bench.forgotten(build_of(tool)) == []
    for name, script, *_ in bench.PEERS + bench.NAMED:
        assert (ROOT / "bench" / "peers" / script).exists(), name


def test_page_maps_every_figure():
    page = (ROOT / "docs" / "papers.md").read_text()
    assert set(re.findall(r"`(\w+\.(?:fig|table)\d+)`", page)) == NAMES


@pytest.fixture(scope="module")
def found(tool, tmp_path_factory):
    build, folder = build_of(tool), tmp_path_factory.mktemp("papers")
    done = run("papers", "--all", "--scale", "small", "--device", "cpu", "--build", str(build), "--out",
               str(folder), "--pictures", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    with open(folder / "papers-cpu.json", encoding="utf-8") as file:
        return json.load(file), folder


def test_every_step_runs(found):
    results, folder = found
    assert set(results) == NAMES
    for name, result in results.items():
        assert result["device"].startswith("cpu: ") and result["date"] and result["commit"], name
        assert result["rows"], name
        assert all(row["values"] for row in result["rows"]), name
        assert (folder / f"papers-cpu-{name}.svg").read_text().startswith("<svg"), name


def test_data_sets_are_those_of_the_table(found):
    results, _ = found
    rows = results["sampled.table3"]["rows"]
    assert len(rows) == 21
    assert sum(row["values"]["table III"] for row in rows) == 599_373_754


def test_results_differ_by_rounding(found):
    results, _ = found
    compared = [row for result in results.values() for row in result["rows"] if "difference" in row]
    assert len(compared) > 10
    assert all(row["difference"] < 1e-4 for row in compared)


@pytest.mark.parametrize("columns", [[], ["--uniform"]])
def test_exact_entries(tool, tmp_path, columns):
    """Data with just so many entries at distinct places."""
    path = tmp_path / "S"
    subprocess.run([build_of(tool) / "bench" / "kiln_generate", "kdd2010", path, "--rows", "1000", "--cols",
                    "600", "--nnz", "60001", *columns], check=True, stdout=subprocess.DEVNULL)
    X = scipy.sparse.load_npz(f"{path}.npz")
    assert X.shape == (1000, 600) and X.nnz == 60_001
    inner = np.delete(np.diff(X.indices), X.indptr[1:-1] - 1)
    assert (inner > 0).all()
    assert abs(np.bincount(X.indices, minlength=600)[:60].mean() / 100 - 1) < 0.15 if columns \
        else np.bincount(X.indices)[0] > 900


def test_equations_give_the_papers_example(monkeypatch):
    """Section 4.3: 500,000 x 1,024 with 1 % on a GTX Titan: VS 8, BS 640, 28 groups, whose vectors take 223
    rows. Section 3.3: 200 columns in loads of 2 waste a warp, in loads of 7 none."""
    monkeypatch.syspath_prepend(ROOT / "bench" / "figures")
    equations = importlib.import_module("equations")
    found = equations.sparse(equations.TITAN, 500_000, 1024, 5_000_000, 8)
    assert found == {"VS": 8, "BS": 640, "C": 224}
    assert equations.warps(equations.TITAN, 640, 43, 8832) == 2 * 640 // 32
    assert equations.dense(equations.TITAN, 28) == {"VS": 32, "BS": 1024, "TL": 1}
    assert [equations.vector_of(load, 200, 128) for load in (2, 7)] == [128, 32]


def test_counters_are_told_apart_by_markers(monkeypatch):
    """ncu's table: a row a kernel and metric; what comes before the first marker is nobody's."""
    monkeypatch.syspath_prepend(ROOT / "bench" / "figures")
    counted = importlib.import_module("counted")
    head = '==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    rows = [(0, "warm(int)", 7), (1, "marker()", 1), (2, "ours", "2,000,000"), (3, "more", 500_000),
            (4, "marker", 1), (5, "theirs<double>(int)", 4_000_000)]
    text = head + "".join(f'"{i}","{name}","{metric}","","{value}"\n' for i, name, value in rows
                          for metric in counted.METRICS)
    assert counted.table(text, ["a", "b"]) == {"a": {"DRAM read, MB": 2.5, "L2 read, MB": 80.0},
                                               "b": {"DRAM read, MB": 4.0, "L2 read, MB": 128.0}}
    assert counted.table("==ERROR== no permission", ["a"]) == {}
