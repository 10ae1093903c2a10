"""Scripts of python/tests/scripts, as users of scikit-learn write them, with the import changed and nothing
else: the same figures."""
import ast
import pathlib

import kiln
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

SCRIPTS = sorted((pathlib.Path(__file__).parent / "scripts").glob("*.py"))
MODULES = {"linear_model", "svm", "cluster", "manifold", "decomposition"}
PLOTTING = 5e-3  # of what an axis shows: a pixel of 200


class Imports(ast.NodeTransformer):
    """scikit-learn's classes as Kiln's, wherever Kiln has them."""

    def visit_ImportFrom(self, node):
        if node.module == "sklearn" and node.names[0].name in MODULES:
            return ast.Import([ast.alias("kiln", node.names[0].name)])
        if (node.module or "").partition("sklearn.")[2] in MODULES:
            assert all(name.name in kiln.__all__ for name in node.names)
            return ast.ImportFrom("kiln", node.names, 0)
        return node


def figures(tree):
    """The contents of a script's figures: for each axis its limits, arrays and texts."""
    plt.close("all")
    exec(compile(ast.fix_missing_locations(tree), "script", "exec"), {"__name__": "__main__"})
    found = []
    for axis in (axis for number in plt.get_fignums() for axis in plt.figure(number).axes):
        shown = ([(line.get_xydata(), "points") for line in axis.lines] + [(part.get_offsets(), "points")
                                                                           for part in axis.collections])
        shown += [(image.get_array(), "image") for image in axis.images]
        spans = np.array([np.ptp(axis.get_xlim()), np.ptp(axis.get_ylim())])
        found.append(([np.ma.filled(np.ma.asarray(values, float), np.nan) / (spans if kind == "points"
                                                                             else np.ptp(values) or 1.0)
                       for values, kind in shown],
                      [axis.get_title(), *(each.get_text() for each in axis.texts)]))
    plt.close("all")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_same_figures(script):
    matplotlib.use("Agg")
    theirs, ours = (figures(tree) for tree in (ast.parse(script.read_text()),
                                               Imports().visit(ast.parse(script.read_text()))))
    assert len(theirs) == len(ours) > 0
    for (wanted, said), (found, told) in zip(theirs, ours):
        assert told == said and len(found) == len(wanted)
        for one, other in zip(wanted, found):
            np.testing.assert_allclose(other, one, atol=PLOTTING, rtol=0)


def test_there_are_a_dozen():
    assert len(SCRIPTS) >= 12
