"""What a model's file says of its fit, as the tool's models do, so that `kiln verify` can hold it against the
data."""
from __future__ import annotations

import json
import math
from typing import Any, Mapping

from ._library import lib, text
from ._solve import Report

# what the tool calls it
_OBJECTIVES = {"kmeans": "inertia", "mds": "stress", "lda": "bound", "svd": "squares", "pca": "squares",
               "spectral": "squares"}
_LINEAR = {"linreg", "logreg", "glm", "svm"}
_METRICS = {"linreg": ("r2", "rss", "rank"), "glm": ("null_deviance", "dispersion", "aic", "parameters",
                                                     "parameters_at_most")}
_ARRAY = "an array"  # in place of a file's name
# what is told of, besides the options' values
GIVEN = ("warm_start", "weights", "offset", "standard_errors", "regression")
KEPT = ("device", "type", "options", "report", "metrics", "trained_by", "targets", "cross_validation",
        "held_out", "schema", "rows", "columns")


def told(algorithm: str, options: Any, given: Mapping[str, bool], report: Report, device: str,
         single: bool, positive: bool = False) -> dict[str, str]:
    """The texts of a model that was trained with this struct of options and with what was given of GIVEN.
    Metrics are those that the fit has found anyway: "trained_by" says that others may be missing."""
    linear = algorithm in _LINEAR
    used = _linear_options(algorithm, options, given, report,
                           single) if linear else _options(algorithm, options, single)
    if "l2" in report.figures:
        used["l2"] = report.figures["l2"]
    if positive:
        used["positive"] = True
    used["warm_start"] = "an earlier fit" if given.get("warm_start") else None
    used.update(missing=None, weights=None, weights_file=_ARRAY if given.get("weights") else None)
    texts = {"device": device, "trained_by": "python", "options": _json(used),
             "report": _json(_report(algorithm, report, linear))}
    if linear:
        found = {name: report.figures[name] for name in _METRICS.get(algorithm, ()) if name in report.figures}
        texts.update(type="f32" if single else "f64", metrics=_json(found))
    if algorithm == "kmeans":
        texts["targets"] = '["cluster","distance"]'
    return texts


def _json(values: dict[str, Any]) -> str:
    """What is no finite number is null."""
    finite = {key: None if isinstance(value, float) and not math.isfinite(value) else value
              for key, value in values.items()}
    return json.dumps(finite)


def _options(algorithm: str, options: Any, single: bool) -> dict[str, Any]:
    """Every option that the registry tells, with the value that held."""
    row = lib.kiln_algorithm_named(algorithm.encode())
    real = {lib.KILN_OPTION_REAL, lib.KILN_OPTION_POSITIVE}
    found: dict[str, Any] = {}
    for i in range(row.option_count):
        option = row.options[i]
        value = float(lib.kiln_option_value(row.name, options, option.name, lib.KILN_F32 if single
                                            else lib.KILN_F64))
        found[text(option.name)] = (bool(value) if option.kind == lib.KILN_OPTION_FLAG else value
                                    if option.kind in real else _choice(option, int(value))
                                    if option.kind == lib.KILN_OPTION_CHOICE else int(value))
    return found


def _choice(option: Any, number: int) -> str | None:
    """The name of a choice; None where it is left to the library."""
    return text(option.choices).split("|")[number - 1] if number > 0 else None


def _linear_options(algorithm: str, options: Any, given: Mapping[str, bool], report: Report,
                    single: bool) -> dict[str, Any]:
    """By the names that the tool has for them."""
    all_of = _options(algorithm, options, single)
    used = {"l2": all_of["l2"], "intercept": not all_of["no_intercept"], "standardize": all_of["standardize"],
            "tolerance": report.tolerance, "max_iterations": all_of["max_iterations"]}
    if "l1" in all_of:
        used["l1"] = all_of["l1"]
    if algorithm == "linreg":
        used["preconditioner"] = not all_of["no_preconditioner"]
    if algorithm == "glm":
        # the inverse Gaussian's default was another one once
        link = all_of["link"] or ("log" if all_of["family"] == "inverse-gaussian" else "default")
        used.update(family=all_of["family"], link=link,
                    parameter=float(options.parameter), link_power=float(options.link_power),
                    standard_errors=bool(given.get("standard_errors")), offset=None, offset_file=_ARRAY
                    if given.get("offset") else None)
    if algorithm == "svm" and given.get("regression"):
        used["epsilon"] = float(options.epsilon)
    return used


def _report(algorithm: str, report: Report, linear: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"iterations": report.n_iter, "converged": report.converged,
                             "stopped_by": report.stopped_by}
    if report.solver:
        found["solver"] = report.solver
    found.update({"residual": report.residual, _OBJECTIVES.get(algorithm, "objective"): report.objective,
                  "optimality_gap": report.optimality_gap if report.certificate else None,
                  "certificate": report.certificate or None})
    for name, value in report.figures.items():
        if not linear or name in ("gap", "setbacks"):
            found.setdefault(name, value)
    return found
