"""Models are judged here: offsets, saturated predictions, folds that fail, scores of one class."""
import warnings

import kiln
import numpy as np
import pytest
from scipy.special import xlogy

X = np.linspace(-1, 1, 60).reshape(-1, 1)
EXPOSURE = np.linspace(1, 50, 60)
COUNTS = np.round(EXPOSURE * np.exp(0.5 * X[:, 0]) + np.tile([0.0, 1.0, 2.0], 20))


def poisson_deviance(y, mu):
    return 2 * (xlogy(y, y / mu) - y + mu).sum()


def test_offsets(tmp_path):
    offset = np.log(EXPOSURE)
    model = kiln.GeneralizedLinearRegressor("poisson", device="cpu").fit(X, COUNTS, offset=offset)
    means = np.exp(X[:, 0] * model.coef_[0] + model.intercept_ + offset)
    assert np.allclose(model.predict(X, offset=offset), means, rtol=1e-12)
    null = poisson_deviance(COUNTS, EXPOSURE * COUNTS.sum() / EXPOSURE.sum())
    wanted = 1 - poisson_deviance(COUNTS, means) / null
    assert model.score(X, COUNTS, offset=offset) == pytest.approx(wanted, abs=1e-9)
    model.save(tmp_path / "m.kiln")
    loaded = kiln.load(tmp_path / "m.kiln")
    for fitted in model, loaded:
        for call in (lambda m: m.predict(X), lambda m: m.score(X, COUNTS)):
            with pytest.raises(ValueError, match="offset"):
                call(fitted)
    assert loaded.score(X, COUNTS, offset=offset) == pytest.approx(wanted, abs=1e-9)
    with pytest.raises(ValueError, match="shape"):
        model.predict(X, offset=offset[:3])
    plain = kiln.GeneralizedLinearRegressor("poisson", device="cpu").fit(X, COUNTS)
    assert np.isfinite(plain.score(X, COUNTS)) and plain.predict(X).shape == (60,)


def test_offsets_in_folds():
    offset, folds = np.log(EXPOSURE), [(np.arange(60)[np.arange(60) % 2 != i],
                                        np.arange(60)[np.arange(60) % 2 == i]) for i in (0, 1)]
    model = kiln.GeneralizedLinearRegressorCV("poisson", alphas=[0.1, 1e-3], cv=folds,
                                              device="cpu").fit(X, COUNTS, offset=offset)
    train, test = folds[0]
    one = kiln.GeneralizedLinearRegressor("poisson", alpha=0.1, device="cpu").fit(X[train], COUNTS[train],
                                                                                  offset=offset[train])
    assert model.scores_[0, 0, 0] == pytest.approx(one.score(X[test], COUNTS[test], offset=offset[test]),
                                                   abs=1e-6)
    with pytest.raises(ValueError, match="offset"):
        model.predict(X)


def test_tools_models_need_their_offset(tool, tmp_path):
    import subprocess

    (tmp_path / "t.csv").write_text("x,o,y\n" + "".join(f"{x},{np.log(e)},{y}\n"
                                                        for (x,), e, y in zip(X, EXPOSURE, COUNTS)))
    subprocess.run([tool, "glm", "-q", "--device", "cpu", tmp_path / "t.csv", "--target", "y", "--offset",
                    "o", "--family", "poisson", "-o", tmp_path / "m.kiln"], check=True,
                   stdout=subprocess.DEVNULL)
    with pytest.raises(ValueError, match="offset"):
        kiln.load(tmp_path / "m.kiln").predict(X)


def test_saturated():
    """At eta = 40 the mean is 1 in doubles, and 1 - mean e^-40."""
    model = kiln.GeneralizedLinearRegressor("binomial", alpha=1e-3,
                                            device="cpu").fit(X, (X[:, 0] > 0).astype(float))
    far, y = np.array([[1e3], [-1e3], [1.0], [-1.0]]), np.array([0.0, 1.0, 1.0, 0.0])
    eta = far[:, 0] * model.coef_[0] + model.intercept_
    lost = np.logaddexp(0, eta) - y * eta
    assert model.score(far, y) == pytest.approx(1 - 2 * lost.sum() / (8 * np.log(2)), rel=1e-12)


def test_links_that_leave_the_range():
    y = np.exp(0.5 * X[:, 0]) * np.tile([0.8, 1.2], 30)
    model = kiln.GeneralizedLinearRegressor("inverse-gaussian", device="cpu").fit(X, y)
    assert np.allclose(model.predict(X), np.exp(X[:, 0] * model.coef_[0] + model.intercept_), rtol=1e-12)
    squared = kiln.GeneralizedLinearRegressor("inverse-gaussian", link="inverse-squared",
                                              device="cpu").fit(X, y)
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        squared.predict(np.array([[0.0], [100.0]]))


def test_folds_that_fail():
    random = np.random.default_rng(0)
    y = 1 - 0.2 * X[:, 0] + random.uniform(0, 0.1, 60)
    wild = np.vstack([X, [[-500.0]]])
    settings = {"link": "inverse", "cv": 4, "device": "cpu"}
    with pytest.warns(UserWarning, match="cannot be chosen"):
        model = kiln.GeneralizedLinearRegressorCV("gamma", alphas=[1e-11, 1e7],
                                                  **settings).fit(wild, np.append(y, 9.0))
    assert model.alpha_ == 1e7 and not np.isfinite(model.scores_).all()
    with pytest.raises(ValueError, match="in every fold"):
        kiln.GeneralizedLinearRegressorCV("gamma", alphas=[1e-11], **settings).fit(wild, np.append(y, 9.0))


def test_one_fold_decides_alone():
    y = X[:, 0] + np.tile([0.0, 0.1, -0.1], 20)
    y[0] = 1e9
    with pytest.warns(UserWarning, match="decides alone"):
        kiln.RidgeCV(alphas=[0.1, 1.0], scoring="neg_mean_squared_error",
                     cv=[(np.arange(3, 60), np.arange(3)), *(
            (np.delete(np.arange(1, 60), slice(i, i + 10)), np.arange(i + 1, i + 11)) for i in (5, 20, 35))],
                     device="cpu").fit(X, y)


def test_scores_of_one_class():
    y, kinds = (X[:, 0] > 0.2).astype(int), np.where(X[:, 0] > 0.2, "yes", "no")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scoring in "f1", "precision", "recall":
            numbers, names = (kiln.LogisticRegressionCV(Cs=[1, 10], scoring=scoring, cv=3,
                                                        device="cpu").fit(X, values) for values in (y, kinds))
            assert (np.array_equal(numbers.scores_, names.scores_) and numbers.score(X, y)
                    == names.score(X, kinds))


def test_targets_on_a_device():
    model = kiln.LinearRegression(device="cpu").fit(X, 2 * X[:, 0])
    assert model.score(X, kiln.matrix(2 * X[:, 0], "cpu")) == pytest.approx(1)
    classifier = kiln.LogisticRegression(device="cpu").fit(X, (X[:, 0] > 0).astype(int))
    assert classifier.score(X, kiln.matrix((X[:, 0] > 0).astype(float), "cpu")) == 1


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_weights_in_folds(l1_ratio):
    """scikit-learn's rule: a fold's penalty is alpha times the weight that it trains on."""
    from sklearn.linear_model import ElasticNetCV

    random = np.random.default_rng(1)
    Z, weights = random.normal(size=(60, 4)), random.uniform(0, 5, 60)
    y = Z @ [1, 0.5, 0, 0] + random.normal(size=60)
    weights[:20] *= 10
    alphas = np.geomspace(1, 1e-3, 8)
    theirs = ElasticNetCV(l1_ratio=l1_ratio, alphas=alphas, cv=3, tol=1e-12,
                          max_iter=100000).fit(Z, y, sample_weight=weights)
    ours = kiln.ElasticNetCV(l1_ratio=l1_ratio, alphas=alphas, cv=3,
                             device="cpu").fit(Z, y, sample_weight=weights)
    assert np.allclose(ours.mse_path_, theirs.mse_path_,
                       rtol=1e-6) and ours.alpha_ == pytest.approx(theirs.alpha_)
