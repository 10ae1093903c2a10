"""libkiln's metrics beside scikit-learn's: weighted, with ties, in both types; and what the package's scores
make of them."""
import kiln
import numpy as np
import pytest
from kiln._library import lib
from kiln._metrics import Metrics, r2
from scipy.special import expit, softmax
from sklearn import metrics

R = np.random.default_rng(3)


@pytest.mark.parametrize("rows", [3, 50, 2000, 80_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tied", [False, True])
def test_two_classes(rows, dtype, tied):
    eta = np.round(3 * R.normal(size=rows), 1 if tied else 9).astype(dtype)
    y = (R.random(rows) < expit(eta / 2)).astype(dtype)
    y[:2] = 0, 1
    weights = R.integers(0, 4, rows) * R.random(rows)
    weights[:2] = 1
    for given in None, weights:
        found = Metrics({"kind": lib.KILN_LOSS_LOGISTIC}, kiln.matrix(eta.reshape(-1, 1), "cpu"), y, given)
        exact, options = eta.astype(float), {"sample_weight": given}
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, exact, **options), rel=1e-13)
        assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, exact > 0, **options), rel=1e-13)
        assert found["brier"] == pytest.approx(metrics.brier_score_loss(y, expit(exact), **options),
                                               rel=1e-13)
        assert (found["log_loss"]
                == pytest.approx(np.average(np.logaddexp(0, np.where(y == 1, -exact, exact)), weights=given),
                                 rel=1e-13))


def test_many_classes():
    eta, y, weights = 3 * R.normal(size=(3000, 4)), R.integers(0, 4, 3000), R.random(3000)
    found, means = Metrics({"kind": lib.KILN_LOSS_SOFTMAX}, eta, y, weights, curves=1), softmax(eta, axis=1)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, means, sample_weight=weights), rel=1e-13)
    rates = metrics.precision_recall_fscore_support(y, eta.argmax(axis=1), sample_weight=weights)
    areas = [metrics.roc_auc_score(y == c, means[:, c], sample_weight=weights) for c in range(4)]
    for c in range(4):
        for name, wanted in zip(("precision", "recall", "f1", "auc"),
                                (rates[0][c], rates[1][c], rates[2][c], areas[c])):
            assert found.part(c, name) == pytest.approx(wanted, rel=1e-12)
    assert found["macro_f1"] == pytest.approx(rates[2].mean(),
                                              rel=1e-12) and found["auc"] == pytest.approx(np.mean(areas),
                                                                                           rel=1e-12)
    assert (found["balanced_accuracy"]
            == pytest.approx(metrics.balanced_accuracy_score(y, eta.argmax(axis=1), sample_weight=weights),
                             rel=1e-12))


def test_numbers():
    """scikit-learn's R2 is the mean over the targets; of one that is constant 1 or 0."""
    means, weights = R.normal(size=(500, 3)), R.random(500)
    y = means + R.normal(size=(500, 3))
    assert r2(means, y, weights) == pytest.approx(metrics.r2_score(y, means, sample_weight=weights),
                                                  rel=1e-12)
    y[:, 0] = 0.1
    means[:, 0] = 0.1
    assert r2(means, y,
              weights) == pytest.approx(np.mean([1.0, *metrics.r2_score(y[:, 1:], means[:, 1:],
                                                                        sample_weight=weights,
                                                                        multioutput="raw_values")]))
    assert r2(means[:, 0] + 1, y[:, 0], None) == 0


@pytest.mark.parametrize("family, power, y", [("POISSON", 1, R.poisson(2, 400)),
                                              ("GAMMA", 2, R.gamma(2, size=400)),
                                              ("GAUSSIAN", 0, R.normal(size=400))])
def test_deviance(family, power, y):
    eta, weights = R.normal(size=400) / 3 + (power > 0), R.random(400)
    found = Metrics({"family": getattr(lib, f"KILN_{family}")}, eta, y, weights, explained=1)
    means = np.exp(eta) if power else eta
    assert (found["mean_deviance"] == pytest.approx(metrics.mean_tweedie_deviance(y, means, power=power,
                                                                                  sample_weight=weights),
                                                    rel=1e-12))
    assert (found["d2"] == pytest.approx(metrics.d2_tweedie_score(y, means, power=power,
                                                                  sample_weight=weights), rel=1e-11))


def test_scores():
    """Those of estimators: text labels, unknown ones, one row, several targets."""
    X, weights = R.normal(size=(200, 3)), R.random(200)
    kinds = np.array(["b", "a", "c"])[np.clip((X[:, 0] * 2).astype(int), -1, 1)]
    for model in kiln.LogisticRegression(device="cpu"), kiln.LinearSVC(device="cpu"):
        model.fit(X, kinds)
        assert model.score(X, kinds,
                           weights) == pytest.approx(metrics.accuracy_score(kinds, model.predict(X),
                                                                            sample_weight=weights), rel=1e-13)
        with pytest.warns(UserWarning, match="200 of 200"):
            assert model.score(X, np.full(200, "zebra")) == 0
        with pytest.raises(ValueError, match="inconsistent"):
            model.score(X, kinds[:9])
    y = X[:, :2] + R.normal(size=(200, 2))
    model = kiln.Ridge(device="cpu").fit(X, y)
    assert (model.score(X, y, weights)
            == pytest.approx(metrics.r2_score(y, model.predict(X), sample_weight=weights), rel=1e-12))
    with pytest.raises(ValueError, match="NaN"):
        model.score(X, np.full((200, 2), np.nan))
    with pytest.warns(UserWarning, match="two samples"):
        assert np.isnan(kiln.Ridge(device="cpu").fit(X, y[:, 0]).score(X[:1], y[:1, 0]))


def test_scores_on_opencl():
    """Arrays that lie on another device are fetched."""
    try:
        where = kiln.device("opencl")
    except kiln.KilnError as error:
        pytest.skip(str(error))
    X = R.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    here, there = (kiln.LogisticRegression(device=device).fit(X, y).score(X, y) for device in ("cpu", where))
    assert here == pytest.approx(there)
