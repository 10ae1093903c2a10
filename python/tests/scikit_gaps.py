"""Names that scikit-learn's classes have and Kiln's of the same name have not, and the tables of
docs/migration.md that say so.

`python scikit_gaps.py` prints what is missing."""
import inspect
import re

import kiln
import sklearn
import sklearn.cluster
import sklearn.decomposition
import sklearn.linear_model
import sklearn.manifold
import sklearn.svm
from conftest import ROOT
from sklearn.base import BaseEstimator

MODULES = (sklearn.linear_model, sklearn.svm, sklearn.cluster, sklearn.manifold, sklearn.decomposition)
# what scikit-learn's own machinery adds where metadata routing or callbacks are of use, which depends on its
# version
MACHINERY = re.compile(r"set_\w+_request|get_metadata_routing|set_callbacks|param$")
# the version that docs/migration.md is of
CURRENT = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)


def listed(heading):
    """The rows of the table under a heading of docs/migration.md, without its code marks."""
    page = (ROOT / "docs" / "migration.md").read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            for line in page.splitlines() if line.startswith("|")]
    assert len(rows) > 2 and all(row[-1] for row in rows), f"{heading}: rows, each of which says why"
    return rows[2:]


def pairs():
    """Name, scikit-learn's class and Kiln's, of all that both have."""
    for name in kiln.__all__:
        ours = getattr(kiln, name)
        theirs = next((getattr(module, name) for module in MODULES if hasattr(module, name)), None)
        if theirs is not None and isinstance(ours, type) and issubclass(ours, BaseEstimator):
            yield name, theirs, ours


def parameters(kind):
    return inspect.signature(kind).parameters


def documented_attributes(kind):
    """The fitted attributes that a docstring in NumPy's form lists."""
    section = kind.__doc__.partition("Attributes\n")[2].partition("See Also")[0]
    return re.findall(r"^ {4}(\w+_) :", section, re.M)


def gaps(fitted):
    """(class, kind, name) of what is missing; fitted: estimators of Kiln by the class's name, after fit."""
    for name, theirs, ours in pairs():
        yield from ((name, "parameter", one) for one in parameters(theirs) if one not in parameters(ours))
        yield from ((name, "method", one) for one in dir(theirs)
                    if not one.startswith("_") and not hasattr(ours, one) and not MACHINERY.fullmatch(one))
        yield from ((name, "attribute", one) for one in documented_attributes(theirs)
                    if not hasattr(fitted[name], one))
        for method in ("fit", "partial_fit", "predict", "transform", "inverse_transform", "fit_transform",
                       "fit_predict", "score", "perplexity"):
            if hasattr(theirs, method) and hasattr(ours, method):
                known = parameters(getattr(ours, method))
                yield from ((name, "argument", f"{method}({one})")
                            for one, it in parameters(getattr(theirs, method)).items()
                            if one not in known and it.kind not in (it.VAR_KEYWORD, it.VAR_POSITIONAL))


def defaults():
    """(class, parameter, scikit-learn's default, Kiln's) of parameters whose defaults differ."""
    for name, theirs, ours in pairs():
        known = parameters(ours)
        for one, it in parameters(theirs).items():
            if one in known and not (it.default is known[one].default or it.default == known[one].default):
                yield name, one, it.default, known[one].default


def fitted():
    """Each of Kiln's estimators, trained on small data with feature names."""
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(0)
    X = pd.DataFrame(random.poisson(2.0, (40, 4)).astype(float) + 0.5, columns=list("abcd"))
    y = X["a"] + random.random(40)
    few = {"n_components": 2}
    more = {"RidgeCV": {"store_cv_results": True}, "LogisticRegressionCV": {"cv": 3},
            "KMeans": {"n_clusters": 2},
            "MiniBatchKMeans": {"n_clusters": 2}, "NMF": few, "LatentDirichletAllocation": few,
            "MDS": {"metric": "manhattan"}, "PCA": few}
    classes = {"LogisticRegression", "LogisticRegressionCV", "LinearSVC"}
    return {name: ours(device="cpu", **more.get(name, {})).fit(X, y > y.median() if name in classes else y)
            for name, _, ours in pairs()}


if __name__ == "__main__":
    for gap in gaps(fitted()):
        print("%-26s %-10s %s" % gap)
    for difference in defaults():
        print("%-26s default    %s: %r, Kiln %r" % difference)
