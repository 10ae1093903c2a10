"""Docstrings in NumPy's form: parameters, fitted attributes, and examples that print what they say."""
import doctest
import inspect
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scikit_gaps

import kiln
from kiln._base import Estimator
from kiln._docs import _row
from kiln._docs_table import PARAMETERS

PUBLIC = [name for name in kiln.__all__ if inspect.isfunction(getattr(kiln, name))
          or (inspect.isclass(getattr(kiln, name)) and not issubclass(getattr(kiln, name), Exception))]

OWN = {"from_sklearn", "to_sklearn", "to_onnx", "load"}  # whose sources have NumPy's form


def section(name, title):
    """The names that a section lists."""
    text = getattr(kiln, name).__doc__.partition(f"{title}\n{'-' * len(title)}\n")[2]
    text = re.split(r"\n\n\w+\n---", text)[0]
    return [one.strip("* ") for head in re.findall(r"^([*\w][\w, *]*)(?: :|$)", text, re.M)
            for one in head.split(",")]


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters(name):
    """Each has its row in the table, or is told of in the text above the section."""
    of, doc = getattr(kiln, name), getattr(kiln, name).__doc__
    wanted = [one for one in inspect.signature(of).parameters if not one.startswith("_")]
    assert section(name, "Parameters") == wanted
    told = doc.partition("\nParameters\n")[0]
    for one in wanted if name not in OWN else ():
        assert _row(PARAMETERS, of, one) or re.search(rf"\b{one}\b", told), one
    assert "As above." not in doc
    assert max(map(len, doc.splitlines())) <= 112
    assert not re.search(r"^\s*(X{2,}|TODO|FIXME)\b", doc, re.M)  # a mark of who wrote it


def test_attributes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = scikit_gaps.fitted()
        rng = np.random.default_rng(0)
        X = rng.poisson(2.0, (40, 4)) + 0.5
        models["GeneralizedLinearRegressor"] = kiln.GeneralizedLinearRegressor(
            "poisson", standard_errors=True).fit(X, X[:, 0])
        models["GeneralizedLinearRegressorCV"] = kiln.GeneralizedLinearRegressorCV("poisson").fit(X, X[:, 0])
        models.update(ALS=kiln.ALS(2).fit(X), SFA=kiln.SFA(2).fit(X),
                      AlternatingLeastSquares=kiln.AlternatingLeastSquares(2, alpha=2.0).fit(X, False))
    assert set(models) == {name for name in PUBLIC if inspect.isclass(getattr(kiln, name))
                           and issubclass(getattr(kiln, name), Estimator)}
    for name, model in models.items():
        there = {one for one in dir(model)
                 if one.endswith("_") and not one.startswith("_") and hasattr(model, one)}
        told = getattr(kiln, name).__doc__
        assert [one for one in there if not re.search(rf"\b{one}(?!\w)", told)] == [], name
        assert set(section(name, "Attributes")) >= {"n_features_in_", "report_", "converged_"}


@pytest.mark.filterwarnings("ignore")
def test_examples():
    runner, parser = doctest.DocTestRunner(verbose=False), doctest.DocTestParser()
    said = []
    for name in PUBLIC:
        doc = getattr(kiln, name).__doc__
        assert "\nExamples\n--------\n" in doc, name
        runner.run(parser.get_doctest(doc, {}, name, None, 0), out=said.append)
    assert not said, "".join(said)


def test_modules_ask_nothing_of_the_package():
    """kiln.__getattr__ takes a lock: a module that asks it while it is loaded may wait for a thread that has
    the lock and waits for the module."""
    script = """
import importlib, pkgutil, kiln
asked, answer = [], kiln.__getattr__
kiln.__getattr__ = lambda name: (asked.append(name), answer(name))[1]
for module in pkgutil.iter_modules(kiln.__path__):
    try:
        importlib.import_module(f"kiln.{module.name}")
    except ModuleNotFoundError as error:  # a package that is not required
        assert not error.name.startswith("kiln"), error
assert not asked, asked
"""
    subprocess.run([sys.executable, "-c", script], check=True)
