"""Each picture has what was asked for in it."""
import pathlib
import re

import kiln
import matplotlib
import networkx
import numpy as np
import pytest
from kiln import plot
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import roc_auc_score

matplotlib.use("Agg")


@pytest.fixture
def flowers():
    return load_iris(return_X_y=True)


def test_pictures(flowers, tmp_path):
    X, y = flowers
    model = kiln.LogisticRegression(device="cpu").fit(X, y)
    assert len(plot.convergence(model).lines[0].get_xdata()) == model.n_iter_ + 1
    layout = kiln.MDS(device="cpu").fit(X)
    ax = plot.scatter(layout, [f"kind {k}" for k in y])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["kind 0", "kind 1", "kind 2"]
    ax.figure.savefig(tmp_path / "layout.png")
    assert (tmp_path / "layout.png").stat().st_size > 5000
    assert plot.scatter(layout, X[:, 0]).collections[0].get_array().size == len(X)
    clusters = kiln.KMeans(3, random_state=0, device="cpu").fit(X)
    assert sum(bar.get_height() for bar in plot.cluster_sizes(clusters).patches) == len(X)


def test_rows_of_a_linear_model():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(60, 2)), [[9.0, 9.0]]]
    y = np.r_[X[:60] @ [1.0, -1.0] + rng.normal(size=60), 12.0]
    result = kiln.LinearRegression(device="cpu").fit(X, y).inference(X, y)
    rows = result.residuals()
    for kind in ("response", "pearson", "deviance", "standardized"):
        points = plot.residuals(result, kind).collections[0].get_offsets()
        np.testing.assert_array_equal(points, np.c_[rows["mean"], rows[kind]])
    with pytest.raises(ValueError, match="kind must be one of"):
        plot.residuals(result, "leverage")
    ax = plot.influence(result)
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), np.c_[rows["leverage"],
                                                                         rows["standardized"]])
    assert ax.texts[0].get_text() == "60" == str(np.argmax(rows["cooks_distance"]))
    leverage, residual = ax.lines[2].get_data()  # where Cook's distance is 1
    np.testing.assert_allclose(residual**2 * leverage / (1 - leverage) / 3, 1)


def test_two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    values = [0.01, 0.1, 1.0]
    ax = plot.regularization_path(kiln.LogisticRegression(l1_ratio=1.0, device="cpu"), X, y, values)
    assert len(ax.lines) == X.shape[1] + 1
    named = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert len(named) == 10 == len({(line.get_color(), line.get_linestyle()) for line in named})
    assert len(ax.get_legend().get_texts()) == 10 and all(text.get_text().startswith("column ")
                                                          for text in ax.get_legend().get_texts())
    least = min(np.abs(line.get_ydata()).max() for line in named)
    assert all(np.abs(line.get_ydata()).max() <= least for line in ax.lines if line not in named)
    model = kiln.LogisticRegression(device="cpu").fit(X, y)
    observed = plot.calibration(model, X, y).lines[1].get_ydata()
    assert len(observed) == 10 and observed[0] < 0.2 and observed[-1] > 0.8
    for classifier in (model, kiln.LinearSVC(device="cpu").fit(X, y)):
        ax = plot.roc(classifier, X, y)
        area = roc_auc_score(y, classifier.decision_function(X))
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"1: area {area:.3f}"]
        x, heights = ax.lines[1].get_data()
        assert np.trapezoid(heights, x) == pytest.approx(area, abs=0.01) and (x[-1], heights[-1]) == (1, 1)


def test_curves_of_several_classes(flowers, tmp_path):
    X, y = flowers
    names = np.array(["a", "b", "c"])[y]
    model = kiln.LogisticRegression(C=0.01, device="cpu").fit(X, names)
    ax, areas = plot.roc(model, X, names), roc_auc_score(y, model.predict_proba(X), multi_class="ovr",
                                                         average=None)
    assert ([text.get_text() for text in ax.get_legend().get_texts()] == [f"{name}: area {area:.3f}"
                                                                          for name,
                                                                          area in zip("abc", areas)])
    ax.figure.savefig(tmp_path / "roc.png")
    ax = plot.calibration(model, X, names)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    order = np.argsort(model.predict_proba(X)[:, 0], kind="stable")
    assert (ax.containers[0].lines[0].get_xdata()[0]
            == pytest.approx(model.predict_proba(X)[order, 0][:15].mean(), rel=0.05))
    ax.figure.savefig(tmp_path / "calibration.png")


def test_colours_are_the_tools():
    source = pathlib.Path(__file__).parents[2] / "cli" / "picture.c"
    if not source.exists():
        pytest.skip("the tool's source is not here")
    assert (plot.COLOURS == re.findall(r'"(#[0-9a-f]{6})"', source.read_text().split("picture_palette",
                                                                                     1)[1].split(";", 1)[0]))


@pytest.mark.parametrize("model, lines, chosen", [
    (kiln.RidgeCV(np.logspace(-2, 2, 7), cv=3, device="cpu"), 1, "alpha_"),
    (kiln.LassoCV(alphas=9, cv=3, device="cpu"), 1, "alpha_"),
    (kiln.ElasticNetCV(alphas=9, l1_ratio=[0.3, 0.9], cv=3, device="cpu"), 2, "alpha_"),
    (kiln.LogisticRegressionCV(Cs=5, l1_ratios=[0.0, 0.5], cv=3, device="cpu"), 2, "C_"),
    (kiln.GeneralizedLinearRegressorCV(alphas=6, cv=3, device="cpu"), 1, "alpha_")],
                         ids=lambda value: type(value).__name__)
def test_scores_by_penalty(model, lines, chosen):
    X, y = load_breast_cancer(return_X_y=True)
    model.fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    ax = plot.validation(model)
    assert len(ax.containers) == lines and ax.get_xscale() == "log"
    assert len(ax.get_legend().get_texts()) == (1 if lines == 1 else lines + 1)
    assert ax.lines[-1].get_xdata()[0] == getattr(model, chosen)
    if lines == 1:
        means = ax.containers[0].lines[0].get_ydata()
        np.testing.assert_allclose(means.max(), model.best_score_)


def test_ranks_fall():
    A = networkx.to_scipy_sparse_array(networkx.gnp_random_graph(50, 0.1, seed=0, directed=True),
                                       format="csr", dtype=float)
    assert (np.diff(plot.rank_distribution(kiln.pagerank(A, device="cpu")).lines[0].get_ydata()) <= 0).all()


def test_the_roof_is_above_a_dense_pass():
    ax = plot.roofline(np.ones((20000, 50), np.float32), device="cpu", repeats=3)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0].startswith("cpu: ") and [label.split(":")[0]
                                              for label in labels[1:]] == ["multiply", "mmchain"]
    roof, product, chain = ax.lines
    assert (np.diff(roof.get_ydata())
            >= 0).all() and chain.get_xdata()[0] == 2 * product.get_xdata()[0] == 1.0
    assert 0 < product.get_ydata()[0] and 0 < chain.get_ydata()[0]
