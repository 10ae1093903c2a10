"""Pages from the docstrings of the Python package."""
from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import textwrap
from typing import Any

import kiln
from c_reference import escape

GROUPS = {
    "Estimators": ["LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV",
                   "LogisticRegression", "LogisticRegressionCV", "PoissonRegressor", "GammaRegressor",
                   "TweedieRegressor", "GeneralizedLinearRegressor", "GeneralizedLinearRegressorCV",
                   "LinearSVC", "LinearSVR", "KMeans", "MiniBatchKMeans", "MDS", "PCA", "IncrementalPCA",
                   "TruncatedSVD", "SpectralEmbedding", "ALS",
                   "AlternatingLeastSquares", "SFA", "NMF", "LatentDirichletAllocation", "TableEncoder", "Inference"],
    "Functions": ["mmchain", "multiply", "spmm", "sddmm", "batch_reduce", "batch_scale", "pagerank", "hits",
                  "enet_path", "lasso_path", "ranking_metrics_at_k", "train_test_split", "coherence"],
    "Files, devices and arrays": ["read", "stream", "read_ratings", "Ratings", "load", "to_sklearn",
                                  "from_sklearn", "to_onnx", "devices",
                                  "doctor", "explain", "tune", "device", "Device", "matrix", "Matrix", "Half",
                                  "results_on_device", "checkpoint", "processes", "kernels", "build_kernels"],
    "Errors": ["KilnError", "ArgumentError", "DataError", "ModelError", "DeviceError", "OutOfMemoryError",
               "FileError", "UnsupportedError"],
}
MODULES = {"plot": "Pictures: kiln.plot", "accel": "scikit-learn and networkx on Kiln: kiln.accel",
           "distributed": "Several processes: kiln.distributed",
           "distributed.dask": "A Dask cluster: kiln.distributed.dask",
           "distributed.ray": "A Ray dataset: kiln.distributed.ray"}
# What scikit-learn adds to every estimator.
INHERITED = {"get_params", "set_params", "get_metadata_routing", "set_fit_request", "set_score_request",
             "set_output", "set_partial_fit_request", "set_predict_request", "set_transform_request",
             "set_inverse_transform_request"}


def signature(name: str, what: Any) -> str:
    """The call as it is written, without the quotes of annotations that are evaluated late."""
    try:
        text = str(inspect.signature(what))
    except (TypeError, ValueError):
        return name
    text = re.sub(r"(:|->) '([^']*)'", r"\1 \2", text.replace("(self, ", "(").replace("(self)", "()"))
    text = re.sub(r"(: Any(?= =|,|\))| -> (Any|None)$)", "", text)
    return textwrap.fill(name + text, 88, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False)


def prose(what: Any) -> str:
    """A docstring as Markdown: lines that are indented are code, and NumPy's sections are lists."""
    out: list[str] = []
    section, lines = "", (inspect.getdoc(what) or "").split("\n")
    for line, after in zip(lines, [*lines[1:], ""]):
        if after and after == "-" * len(line):
            section = line
            out += [f"**{line}**", ""]
        elif line and line == "-" * len(line):
            continue
        elif section == "Examples":
            out.append(f"    {line}" if line else "")
        elif section and section != "Notes":
            head = line and not line.startswith("    ") and after.startswith("    ")
            out.append(list_line(line) + ("\\" if head else ""))  # what is said of it begins a line
        else:
            code = line.startswith("    ")
            if code != bool(out and out[-1].startswith("    ")) and (code or out):
                out.append("")
            out.append(line if code else prose_line(line))
    return "\n".join(out)


def list_line(line: str) -> str:
    """A line of a section that lists parameters: its head, or what is said of it."""
    if line.startswith("    ") or not line:
        return "  " + prose_line(line.strip()) if line else ""
    name, colon, kind = line.partition(" : ")
    return f"- `{name}`" + (f" : {prose_line(kind)}" if colon else "")


def prose_line(line: str) -> str:
    """Escaped but for code in backquotes; what scikit-learn's docstrings link to is plain text."""
    line = re.sub(r":\w+:`([^`<]*?)(?: <[^>]*>)?`", r"\1", line.replace("``", "`"))
    return "".join(part if part.startswith("`") else escape(part) for part in re.split(r"(`[^`]+`)", line))


def methods(kind: Any) -> list[tuple[str, Any]]:
    """The public methods, in the order in which the classes declare them."""
    seen: dict[str, Any] = {}
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if (not name.startswith("_") and inspect.isfunction(value) and name not in INHERITED
                and value.__doc__):
                seen.setdefault(name, getattr(kind, name))
    return list(seen.items())


def entry(name: str, what: Any, prefix: str = "kiln.") -> list[str]:
    out = [f"## {escape(name)}", "", "```python", signature(prefix + name, what), "```", "", prose(what), ""]
    if inspect.isclass(what) and not issubclass(what, Exception):
        for method, function in methods(what):
            own = function.__module__.startswith("kiln")
            text = prose(function) if own else prose_line((inspect.getdoc(function) or "").split("\n")[0])
            out += [f"**{escape(method)}**", "", "```python", signature(method, function) if own
                    else f"{method}(...)", "```", "", text, ""]
    return out


def write(stage: pathlib.Path) -> None:
    """python-reference.md, and a page for each group."""
    missing = set(kiln.__all__) ^ {name for names in GROUPS.values() for name in names}
    if missing:
        raise SystemExit(f"python_reference.py: GROUPS and kiln.__all__ differ: {sorted(missing)}")
    index = ["# The Python package", "", "From the docstrings. [Kiln in Python](python.md) is the guide.", ""]
    pages = []
    for title, names in GROUPS.items():
        page = "python-" + title.split(",")[0].lower()
        lines = [f"# {title}", ""]
        for name in names:
            lines += entry(name, getattr(kiln, name))
        (stage / f"{page}.md").write_text("\n".join(lines))
        index += [f"**[{title}]({page}.md)**", "",
                  ", ".join(f"[`{name}`]({page}.md#{anchor(name)})" for name in names), ""]
        pages.append(page)
    for name, title in MODULES.items():
        module = importlib.import_module(f"kiln.{name}")
        lines = [f"# {title}", "", prose(module), ""]
        public = [(key, value) for key, value in vars(module).items() if inspect.isfunction(value)
                  and value.__module__ == module.__name__
                  and not key.startswith("_")]
        for key, value in public:
            lines += entry(key, value, f"kiln.{name}.")
        page = "python-" + name.replace(".", "-")
        (stage / f"{page}.md").write_text("\n".join(lines))
        index += [f"**[{title}]({page}.md)**", "",
                  ", ".join(f"[`{key}`]({page}.md#{anchor(key)})" for key, _ in public), ""]
        pages.append(page)
    index += ["```{toctree}", ":hidden:", "", *pages, "```", ""]
    (stage / "python-reference.md").write_text("\n".join(index))


def anchor(name: str) -> str:
    """What MyST calls the heading."""
    return name.lower()
