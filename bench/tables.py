"""The tables of README.md and of the pages in docs, from what lies in bench/results: each stands between two comments,
`<!-- table NAME -->` and `<!-- end -->`. A row that the results lack is an error, not a gap.
bench/plot.py writes them, or checks them."""
import json
import os
import re

MMCHAIN = ["X", "type", "Kiln ms", "of the measured read bandwidth"]
DENSE = {"float64": (28, 1024, 8192, 20000, 100000), "float32": (28, 1024, 8192, 50000)}
SPARSE = [("kdd", "KDD2010-shaped, popular columns"), ("kdd-uniform", "uniform columns"),
          ("million-zipf", "popular columns"), ("million", "uniform columns"), ("paper-1024", "1 % dense"),
          ("paper-4096", "1 % dense"), ("skewed-rows", "a few very long rows")]
CPU = [("csr", 500000, 4096, "float64"), ("csr", 2000000, 1024, "float64"),
       ("csr", 600000, 1000000, "float64"), ("dense", 2000000, 28, "float64"),
       ("dense", 250000, 257, "float64"), ("dense", 64000, 1024, "float64"),
       ("dense", 16000, 4096, "float32"), ("dense", 1500, 50000, "float64")]


def load(results, name):
    with open(os.path.join(results, name), encoding="utf-8") as file:
        return json.load(file)


def find(table, **wanted):
    for row in table:
        if all(row[key] == value for key, value in wanted.items()):
            return row
    raise KeyError(f"no row with {wanted}")


def short(kind):
    return kind.replace("float", "f")


def percent(fraction):
    return f"{100 * fraction:.0f} %"


def h200(results):
    yield MMCHAIN + ["two calls ms", "ratio"], 2
    data = load(results, "h200-dense-cuda.json")
    for kind, widths in DENSE.items():
        for cols in widths:
            row = find(data["rows"], cols=cols, type=kind, k=1)
            yield [f"dense {row['rows']:,} x {cols:,}", short(kind), f"{row['fused_ms']:.3f}",
                   percent(row["fraction_of_roof"]), f"{row['composed_ms']:.3f}",
                   f"{row['composed_ms'] / row['fused_ms']:.2f}"], 0
    data = load(results, "h200-sparse.json")
    for case, words in SPARSE:
        row = find(data["rows"], case=case, type="float64")
        yield [f"sparse {row['rows']:,} x {row['columns']:,}, {row['nnz'] / 1e6:.0f} M nonzeros, {words}",
               "f64", f"{row['fused_ms']:.3f}", percent(row["fraction_of_roof"]), f"{row['pair_ms']:.3f}",
               f"{row['pair_ms'] / row['fused_ms']:.2f}"], 0


def newton(results):
    yield ["logistic regression", "Kiln s", "composed s", "ratio", "Kiln on 16 cores s", "ratio"], 1
    for row in load(results, "h200-newton.json")["rows"]:
        yield [row["case"], f"{row['cuda']['seconds']:.4f}", f"{row['composed_seconds']:.4f}",
               f"{row['ratio_to_composed']:.1f}", f"{row['cpu']['seconds']:.3f}",
               f"{row['ratio_to_cpu']:.0f}"], 0


def sweeps(results):
    yield ["model", "data", "factors", "sweep ms", "its products alone ms", "ratio"], 3
    for row in load(results, "h200-factors.json")["sweeps"]:
        yield [row["model"], f"{row['rows']:,} x {row['columns']:,}, {row['nnz'] / 1e6:.1f} M entries",
               str(row["factors"]), f"{row['sweep_ms']:.2f}", f"{row['floor_ms']:.2f}",
               f"{row['times_floor']:.2f}"], 0


def applications(results):
    yield ["application", "data", "by library calls ms", "SDDMM's share", "faster by kiln_sddmm",
           "faster by the model"], 2
    for row in load(results, "h200-factors.json")["applications"]:
        yield [row["application"], f"{row['data']}, {row['nnz'] / 1e6:.0f} M entries",
               f"{row['cusparse_sweep_ms']:.0f}", percent(row["share"]), f"{row['by_sddmm']:.2f}",
               f"{row['by_model']:.2f}"], 0


def cpu(results):
    yield MMCHAIN + ["SciPy / NumPy with OpenBLAS ms", "ratio", "ratio to MKL"], 2
    data = load(results, "cpu2-mmchain.json")
    for form, rows, cols, kind in CPU:
        row = find(data["rows"], format=form, rows=rows, cols=cols, type=kind, threads=2)
        sparse = form == "csr"
        theirs = row["scipy_ms" if sparse else "openblas_ms"]
        yield [("sparse " if sparse else "dense ") + f"{rows:,} x {cols:,}" +
               (f", {rows * row['per_row'] / 1e6:.0f} M nonzeros" if sparse else ""), short(kind),
               f"{row['kiln_ms']:.1f}", percent(row["of_roof"]), f"{theirs:.1f}",
               f"{theirs / row['kiln_ms']:.2f}", f"{row['mkl_ms'] / row['kiln_ms']:.2f}" if sparse else ""], 0


def fastest(rows):
    """Milliseconds of the fastest, of none that got there more than it was given, of no rows nothing; and how
    many times Kiln's, which stands first."""
    ours, theirs = rows[0], rows[1:]
    if not theirs:
        return ["", ""]
    done = [row["seconds"] for row in theirs if row["seconds"] is not None]
    if not done:
        return [f"> {1000 * max(row['cut_off'] for row in theirs):,.0f}", ""]
    return [f"{1000 * min(done):.1f}", f"{min(done) / ours['seconds']:.1f}"]


def models(results):
    yield ["data", "loss", "Kiln ms", "LIBLINEAR ms", "ratio", "scikit-learn's best ms", "ratio"], 2
    cases = {}
    for row in load(results, "cpu2-logreg.json")["rows"]:
        cases.setdefault((row["dataset"], row["problem"]), []).append(row)
    for (data, problem), rows in cases.items():
        ours = find(rows, solver="kiln")
        yield [data, problem.replace("multinomial", "softmax"), f"{1000 * ours['seconds']:.1f}",
               *fastest([ours] + [row for row in rows if row["solver"] == "liblinear"]),
               *fastest([ours] + [row for row in rows if row["solver"].startswith("sklearn")])], 0


def python(results, file="cpu2-python.json"):
    yield ["the same three lines, X in memory", "Kiln s", "scikit-learn s", "ratio", "others s", "ratio",
           "objective above the least: Kiln's", "scikit-learn's"], 1
    for row in load(results, file)["rows"]:
        fits = row["fits"]
        ours, theirs = fits["kiln"], fits.get("scikit-learn")
        others = {who: one for who, one in fits.items() if who not in ("kiln", "scikit-learn")}
        ratio = lambda one: f"{one['seconds'] / ours['seconds']:.1f}"
        yield [row["name"], f"{ours['seconds']:.3f}", f"{theirs['seconds']:.3f}" if theirs else "",
               ratio(theirs) if theirs else "",
               "; ".join(f"{who} {one['seconds']:.3f}" for who, one in others.items()),
               "; ".join(map(ratio, others.values())), f"{ours['gap']:.0e}", f"{theirs['gap']:.0e}" if theirs
               else ""], 0


def python_calls(results):
    yield ["8 x 8 operands, a call from Python, us", "the library", "kiln.Matrix", "NumPy",
           'NumPy, device="auto"'], 1
    calls = load(results, "cpu2-python-intelex.json")["calls"]
    for name in dict.fromkeys(row["call"] for row in calls):
        rows = {row["operands"]: row for row in calls if row["call"] == name}
        yield [f"`{name}`", f"{rows['NumPy']['library']:.1f}",
               *(f"{rows[kind]['microseconds']:.1f}" for kind in ("kiln.Matrix", "NumPy", "NumPy, auto"))], 0


def gpu_python(results):
    yield ["from Python", "Kiln ms", "of it the library", "gap", "FlashLib ms", "gap", "ratio", "cuML ms",
           "gap", "ratio"], 1
    data = load(results, "h200-python.json")

    def beside(row, peer):
        ours, theirs = row["kiln"], row.get(peer)
        if not theirs:
            return ["", "", ""]
        return [f"{theirs['ms']:.1f}", f"{theirs['gap']:.0e}" if "gap" in theirs
                else f"{theirs['inertia'] / ours['inertia'] - 1:+.0e}",
                f"{theirs['ms'] / ours['ms']:.1f}"]

    for row in data["rows"] + data["clusters"]:
        ours = row["kiln"]
        name = ({"logistic": "logistic regression, ", "squared": "ridge, "}.get(row.get("loss"), "")
                + row["case"])
        yield [name, f"{ours['ms']:.1f}", f"{ours['library_ms']:.1f}" if "library_ms" in ours else "",
               f"{ours['gap']:.0e}" if "gap" in ours else "", *beside(row, "flashlib"),
               *beside(row, "cuml")], 0


def files(results):
    """README's: from a file to its answer, beside the fastest that does the same and whose time is known."""
    yield ["from file to answer", "Kiln", "fastest peer", "ratio"], 1

    def row(what, ours, theirs, name):
        text = lambda s: f"{s:.2f} s" if s >= 1 else f"{1000 * s:.3g} ms"
        return [what, text(ours), f"{name} {text(theirs)}", f"{theirs / ours:.1f}"], 0

    for one in load(results, "papers-cuda.json")["fused.table5"]["rows"]:
        values = dict(one["values"])
        ours = values.pop("Kiln")
        yield row(f"linear regression, {one['label']}, H200", ours, min(values.values()), "CuPy")
    cases = load(results, "cpu2-answer.json")["rows"]
    for job, what, names in (("linreg csv", "linear regression, CSV with text columns", {"pyarrow": "scikit-learn"}),
                             ("glm poisson csv", "Poisson regression, the same CSV", {"pyarrow": "scikit-learn"}),
                             ("linreg npy", "linear regression, `.npy`", {"numpy": "NumPy"}),
                             ("logreg libsvm", "logistic regression, LIBSVM", {"liblinear-train": "LIBLINEAR"}),
                             ("pagerank", "PageRank, edge list", {}), ("hits", "HITS, edge list", {}),
                             ("mds", "scaling of points, `.npy`", {"sklearn": "scikit-learn"})):
        runs = {name: run["cpu_seconds"] for name, run in find(cases, job=job)["runs"].items()
                if run.get("cpu_seconds")}
        ours = runs.pop("kiln")
        name = min(runs, key=runs.get)
        yield row(f"{what}, 2 cores", ours, runs[name], names.get(name, name))


def answer(results):
    """Whole commands; seconds of processors, then of the wall."""
    data = load(results, "cpu2-answer.json")
    yield ["job", "MB", "Kiln, s", "others, s", "Kiln, wall", "others, wall"], 1

    def each(runs, key):
        return "<br>".join(f"{name} {run[key]:.2f}" if key in run else f"{name} > {run['longer_than']:.0f}"
                           if key == "wall_seconds" else f"{name} -"
                           for name, run in runs.items() if name != "kiln")

    for row in data["rows"]:
        ours = row["runs"]["kiln"]
        yield [row["job"], f"{row['megabytes']:.0f}", f"{ours['cpu_seconds']:.2f}",
               each(row["runs"], "cpu_seconds"), f"{ours['wall_seconds']:.2f}",
               each(row["runs"], "wall_seconds")], 1


def readers(results):
    """Seconds of processors for one reading."""
    rows = load(results, "cpu2-xeon-readers.json")["rows"]
    yield ["file", "MB", "Kiln", "before", "others"], 1
    for kind in dict.fromkeys(row["kind"] for row in rows):
        told = {row["reader"]: row for row in rows if row["kind"] == kind and "cpu_seconds" in row}
        others = "<br>".join(f"{name} {row['cpu_seconds']:.2f}" for name, row in told.items()
                           if name not in ("kiln", "before"))
        yield [kind, f"{told['kiln']['megabytes']:.0f}", f"{told['kiln']['cpu_seconds']:.2f}",
               f"{told['before']['cpu_seconds']:.2f}", others], 1


def spread(values):
    """The median and the largest of some ratios."""
    ordered = sorted(values)
    return [f"{ordered[len(ordered) // 2]:.2f}", f"{ordered[-1]:.2f}"] if ordered else ["", ""]


def map_of(results, file):
    """A row for each verb of a map (bench/peers/map.py)."""
    yield ["verb", "cells", "without a time", "fit / passes, median", "largest", "peer / Kiln, median",
           "least", "cells that stand out"], 1
    rows = load(results, file)["rows"]
    for verb in dict.fromkeys(row["cell"]["verb"] for row in rows):
        here = [row for row in rows if row["cell"]["verb"] == verb]
        timed = [row for row in here if "seconds" in row]
        fits = [row["seconds"] / (row["passes"] * row["pass_seconds"]) for row in timed
                if row["passes"] > 0 and row["seconds"] > 0.002 and "iterations" in row]
        ours = [row[theirs] / row[our] for row in timed for our, theirs in
                (("seconds", "peer_seconds"), ("pass_seconds", "composed_seconds"))
                if theirs in row and ("iterations" in row) == (our == "seconds")]
        least = f"{min(ours):.2f}" if ours else ""
        yield [verb, str(len(here)), str(len(here) - len(timed)), *spread(fits), spread(ours)[0], least,
               str(sum(bool(row["found"]) for row in here))], 0


PAPERS = {"fused": "table2 fig2 fig3 fig4 table4 fig5 fig6 table5 table6",
          "iterative": "fig4 fig5 fig6 fig7 fig10 fig11 fig13 fig14 fig15 fig16 fig17",
          "batched": "table1 table2 fig1", "sampled": "table3 fig4 fig5 fig7 fig8 fig9 table4 table5"}


def digits(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def span(values):
    least, most = digits(min(values)), digits(max(values))
    return least if least == most else f"{least} to {most}"


def today(found):
    """Says of a speed how many times faster Kiln is than each of the others, the mean and the range; else the figures themselves."""
    if found["ratios"]:
        return "; ".join(f"{name} {digits(ratio['mean'])} ({span([ratio['least'], ratio['most']])})"
                         for name, ratio in found["ratios"].items())
    series = dict.fromkeys(name for row in found["rows"] for name in row["values"])
    return "; ".join(f"{name} {span([row['values'][name] for row in found['rows'] if name in row['values']])}"
                     for name in series) + f" {found['unit']}"


def papers(results):
    """The measurements of bench/papers on an H200."""
    yield ["step", "in the paper", "today", "at"], 4
    held = load(results, "papers-cuda.json")
    for paper, names in PAPERS.items():
        for name in names.split():
            found = held.get(f"{paper}.{name}")
            if not found:
                continue  # it has not run there
            yield [f"`{paper}.{name}`", "; ".join(f"{what} {digits(number)}" for what, number in found["paper"].items()),
                   today(found), found["commit"]], 0


TABLES = {"files": files, "h200": h200, "h200-newton": newton, "h200-sweeps": sweeps,
          "h200-applications": applications, "cpu2": cpu, "cpu2-models": models, "cpu2-python": python,
          "cpu2-python-cv": lambda results: python(results, "cpu2-python-cv.json"),
          "cpu2-python-intelex": lambda results: python(results, "cpu2-python-intelex.json"),
          "cpu1-map": lambda results: map_of(results, "cpu1-map.json"),
          "answer": answer, "readers": readers, "python-calls": python_calls, "h200-python": gpu_python,
          "papers": papers}


def draw(rows):
    """Markdown; the first row is the head, its number that of the columns of words."""
    (head, words), *body = rows
    lines = [head, ["---" if i < words else "---:" for i in range(len(head))]] + [row for row, _ in body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def renew(text, results):
    """The text with all of its tables as the results have them."""
    def table(match):
        return match[1] + draw(TABLES[match[2]](results)) + match[3]

    return re.sub(r"(<!-- table (\S+) -->\n).*?(<!-- end -->\n)", table, text, flags=re.DOTALL)
