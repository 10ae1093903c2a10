"""scikit-learn's own checks of every estimator; the exceptions are listed with their reasons."""
import kiln
import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

RANDOM_START = "rows that are repeated and rows that weigh more lead to other random starts, in scikit-learn, too"
EXPECTED = {
    kiln.KMeans: {"check_sample_weight_equivalence_on_dense_data": RANDOM_START,
                  "check_sample_weight_equivalence_on_sparse_data": RANDOM_START},
    kiln.MiniBatchKMeans: {"check_sample_weight_equivalence_on_dense_data": RANDOM_START,
                           "check_sample_weight_equivalence_on_sparse_data": RANDOM_START},
}
# Two runs that meet a tolerance agree to that tolerance, and the checks compare seven digits; without a penalty the optimum of their
# data is not unique.
ESTIMATORS = [kiln.LinearRegression(), kiln.Ridge(), kiln.LogisticRegression(tol=1e-11), kiln.GeneralizedLinearRegressor(alpha=0.1, tol=1e-12),
              kiln.PoissonRegressor(), kiln.GammaRegressor(), kiln.TweedieRegressor(), kiln.LinearSVC(tol=1e-11), kiln.LinearSVR(tol=1e-11),
              kiln.Lasso(0.01, tol=1e-12), kiln.ElasticNet(0.01, tol=1e-12), kiln.LassoCV(cv=3, alphas=5, tol=1e-12),
              kiln.ElasticNetCV(cv=3, alphas=5, tol=1e-12),
              kiln.GeneralizedLinearRegressorCV(alphas=3, cv=3, tol=1e-12), kiln.RidgeCV(cv=3), kiln.LogisticRegressionCV(Cs=(0.1, 1.0, 10.0), cv=3, tol=1e-11),
              kiln.KMeans(), kiln.MiniBatchKMeans(), kiln.MDS(), kiln.ALS(n_components=2), kiln.SFA(n_components=2),
              kiln.NMF(2, tol=1e-10, max_iter=5000), kiln.LatentDirichletAllocation(2)]


@parametrize_with_checks([estimator.set_params(device="cpu") for estimator in ESTIMATORS],
                         expected_failed_checks=lambda estimator: EXPECTED.get(type(estimator), {}))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_every_estimator_is_checked():
    from sklearn.base import BaseEstimator

    public = {getattr(kiln, name) for name in kiln.__all__}
    estimators = {value for value in public if isinstance(value, type) and issubclass(value, BaseEstimator)}
    assert estimators == {type(estimator) for estimator in ESTIMATORS}


@pytest.mark.parametrize("value", [-1, -0.5, np.nan, np.inf])
def test_penalties_that_are_none(value):
    """-1 is the library's own word for no penalty."""
    X = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
    for model, name in ((kiln.Ridge(device="cpu"), "alpha"), (kiln.Lasso(device="cpu"), "alpha"), (kiln.PoissonRegressor(device="cpu"), "alpha"),
                        (kiln.LinearSVR(device="cpu"), "epsilon"), (kiln.ALS(2, device="cpu"), "l2"), (kiln.SFA(2, device="cpu"), "damping")):
        with pytest.raises(ValueError, match=f"'{name}' parameter of {type(model).__name__}"):
            model.set_params(**{name: value}).fit(X, X[:, 0])
