"""Models that estimators save are held against the data by `kiln verify`, as the tool's own are."""
import inspect
import json
import re
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp

import kiln
from kiln._base import Estimator
from kiln._load import _texts, open_model

RNG = np.random.default_rng(11)
M = 60
X = RNG.normal(size=(M, 3))
NUMBERS = X @ [1.0, -2, 0.5] + RNG.normal(size=M)
COUNTS = RNG.poisson(np.exp(0.4 * X[:, 0])).astype(float)
AMOUNTS = RNG.gamma(2, np.exp(0.3 * X[:, 1])) + 0.01
CLASSES = (NUMBERS > 0).astype(int)
THREE = np.digitize(NUMBERS, [-1, 1])
NAMES = np.array(["no", "yes"])[CLASSES]
WEIGHTS, OFFSET = RNG.uniform(0.5, 2, M), RNG.normal(size=M)
RATINGS = sp.random(20, 15, 0.5, format="csr", random_state=np.random.RandomState(3),
                    data_rvs=lambda n: RNG.integers(1, 6, n).astype(float))
POINTS = RNG.normal(size=(40, 2)) + 4 * RNG.integers(0, 3, (40, 1))

# The estimator, the data, the target, and more of fit's arguments.
FITS = [
    (kiln.LinearRegression(), X, NUMBERS, {}),
    (kiln.LinearRegression(fit_intercept=False), X, np.column_stack([NUMBERS, AMOUNTS]), {}),
    (kiln.Ridge(2.0, standardize=True), X, NUMBERS, {"sample_weight": WEIGHTS}),
    (kiln.RidgeCV([0.1, 1.0], cv=3), X, NUMBERS, {}),
    (kiln.Lasso(0.1), X, NUMBERS, {}),
    (kiln.LassoCV(cv=3), X, NUMBERS, {}),
    (kiln.ElasticNet(0.1, standardize=True), X, NUMBERS, {"sample_weight": WEIGHTS}),
    (kiln.ElasticNetCV(cv=3), X, NUMBERS, {}),
    (kiln.GeneralizedLinearRegressor("gamma", standard_errors=True), X, AMOUNTS, {"sample_weight": WEIGHTS}),
    (kiln.GeneralizedLinearRegressor("poisson", alpha=0.1), X, COUNTS, {"offset": OFFSET}),
    (kiln.GeneralizedLinearRegressor("inverse-gaussian", alpha=0.1, l1_ratio=0.5), X, AMOUNTS, {}),
    (kiln.GeneralizedLinearRegressor("negative-binomial", parameter=0.5), X, COUNTS, {}),
    (kiln.GeneralizedLinearRegressor("binomial", link="probit"), X, RNG.integers(0, 2, M).astype(float), {}),
    (kiln.GeneralizedLinearRegressorCV("poisson", cv=3), X, COUNTS, {}),
    (kiln.PoissonRegressor(), X, COUNTS, {}),
    (kiln.GammaRegressor(), X, AMOUNTS, {}),
    (kiln.TweedieRegressor(power=1.5), X, AMOUNTS, {}),
    (kiln.LogisticRegression(), X, CLASSES, {"sample_weight": WEIGHTS}),
    (kiln.LogisticRegression(C=0.5, l1_ratio=0.5, standardize=True), X, THREE, {}),
    (kiln.LogisticRegression(class_weight="balanced"), X, THREE, {"sample_weight": WEIGHTS}),
    (kiln.LogisticRegression(class_weight={0: 1.5, 1: 0.3}), X, CLASSES, {}),
    (kiln.LogisticRegressionCV(Cs=[0.1, 1.0], cv=3), X, CLASSES, {}),
    (kiln.LinearSVC(), X, CLASSES, {}),
    (kiln.LinearSVC(class_weight="balanced"), X, THREE, {}),
    (kiln.LinearSVR(epsilon=0.1), X, NUMBERS, {"sample_weight": WEIGHTS}),
    (kiln.KMeans(3, random_state=1), POINTS, None, {}),
    (kiln.KMeans(3, spherical=True, random_state=1), POINTS, None, {"sample_weight": WEIGHTS[:40]}),
    (kiln.MiniBatchKMeans(3, batch_size=16, random_state=1), POINTS, None, {}),
    (kiln.MDS(1, random_state=1), POINTS, None, {}),
    (kiln.SpectralEmbedding(1, affinity="precomputed", random_state=1), np.abs(POINTS[:, :1] - POINTS[:, 0]),
     None, {}),
    (kiln.MDS(1, metric="ordinal", max_iter=20, random_state=1), POINTS, None, {}),
    (kiln.TruncatedSVD(2, standardize=True), RATINGS, None, {}),
    (kiln.TruncatedSVD(2), X, None, {}),
    (kiln.PCA(2, whiten=True), X, None, {}),
    (kiln.PCA(0.5, standardize=True), X, None, {}),
    (kiln.ALS(3, random_state=1), RATINGS, None, {}),
    (kiln.ALS(3, implicit=True, alpha=2.0, l2=1.0, random_state=1), RATINGS, None, {}),
    (kiln.SFA(2, random_state=1), RATINGS, None, {}),
    (kiln.NMF(2, random_state=1), RATINGS, None, {}),
    (kiln.NMF(2, prior="gamma", random_state=1), RATINGS, None, {}),
    (kiln.LatentDirichletAllocation(2, random_state=1), RATINGS, None, {}),
    (kiln.LatentDirichletAllocation(2, learn_alpha=True, random_state=1), RATINGS, None, {}),
    (kiln.LatentDirichletAllocation(2, learning_method="online", batch_size=8, max_iter=5, random_state=1),
     RATINGS, None, {}),
]
QUIET = pytest.mark.filterwarnings("ignore")


def verified(tool, folder, model, data, y, more, code=0):
    """The tool's judgement of a model and of these data, as files."""
    arguments, sparse = [], hasattr(data, "tocsr")
    file = folder / ("X.npz" if sparse else "X.npy")
    sp.save_npz(file, data) if sparse else np.save(file, data)
    for name, option, values in (("y", "--target-file", y),
                                 ("s", "--weights-file", more.get("sample_weight")),
                                 ("o", "--offset-file", more.get("offset"))):
        if values is not None:
            np.save(folder / f"{name}.npy", values)
            arguments += [option, folder / f"{name}.npy"]
    run = subprocess.run([tool, "verify", model, file, *arguments, "--quiet", "--json"], capture_output=True,
                         text=True)
    assert run.returncode == code, run.stdout + run.stderr
    return json.loads(run.stdout) if run.stdout else {}


def label(fit):
    return f"{type(fit[0]).__name__}-{FITS.index(fit)}"


@QUIET
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit", FITS, ids=label)
def test_verify_takes_what_estimators_save(fit, dtype, tool, tmp_path):
    estimator, data, y, more = fit
    data = data.astype(dtype)
    estimator.fit(data, y, **more) if y is not None else estimator.fit(data, **more)
    estimator.save(tmp_path / "m.kiln")
    found = verified(tool, tmp_path, tmp_path / "m.kiln", data, y, more)
    assert found["holds"] and len(found["claims"]) > 1
    told = subprocess.run([tool, "info", tmp_path / "m.kiln"], check=True, capture_output=True, text=True)
    assert not re.search(" $", told.stdout, re.M), told.stdout  # no name without what it names
    # loaded and saved again it says the same
    kiln.load(tmp_path / "m.kiln").save(tmp_path / "again.kiln")
    assert verified(tool, tmp_path, tmp_path / "again.kiln", data, y, more)["claims"] == found["claims"]


@QUIET
def test_every_estimator_is_there():
    classes = {kind for _, kind in inspect.getmembers(kiln, inspect.isclass) if issubclass(kind, Estimator)}
    # the one claims nothing (test_svd.py), the other is an ALS that has not converged (test_recommend.py)
    others = {kiln.IncrementalPCA, kiln.AlternatingLeastSquares}
    assert {type(fit[0]) for fit in FITS} == classes - others


@QUIET
def test_other_data_and_changed_models_are_seen(tool, tmp_path):
    model = kiln.LogisticRegression().fit(sp.csr_matrix(X), NAMES)
    model.save(tmp_path / "m.kiln")
    texts = _texts(open_model(tmp_path / "m.kiln"))
    assert (json.loads(texts["options"])["l2"] == 1 and json.loads(texts["report"])["converged"] is True
            and texts["trained_by"] == "python")
    # of which the classes have no names
    verified(tool, tmp_path, tmp_path / "m.kiln", X + 0.01, CLASSES, {}, code=3)
    model = kiln.Ridge().fit(X, NUMBERS)
    model.coef_[0] *= 1.01
    model._weight[0] *= 1.01
    model.save(tmp_path / "m.kiln")
    assert not verified(tool, tmp_path, tmp_path / "m.kiln", X, NUMBERS, {}, code=4)["holds"]


@QUIET
def test_means_over_folds_claim_nothing(tool, tmp_path):
    model = kiln.LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, refit=False).fit(X, CLASSES)
    model.save(tmp_path / "m.kiln")
    verified(tool, tmp_path, tmp_path / "m.kiln", X, CLASSES, {}, code=7)
