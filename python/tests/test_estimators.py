"""scikit-learn's own checks of every estimator; the exceptions are listed with their reasons."""
import kiln
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

RANDOM_START = "rows that are repeated and rows that weigh more lead to other random starts, in scikit-learn, too"
NOT_UNIQUE = "without a penalty the optimum of the check's data is not unique"
ONE_SIDED = "five folds need five rows of each class, of which the check has fewer, in scikit-learn, too"
STARTED = "W of fit_transform is that of the last iteration, as scikit-learn's is"
WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
EXPECTED = {
    kiln.KMeans: dict.fromkeys(WEIGHTS, RANDOM_START),
    kiln.MiniBatchKMeans: dict.fromkeys(WEIGHTS, RANDOM_START),
    kiln.GeneralizedLinearRegressor: dict.fromkeys(WEIGHTS, NOT_UNIQUE),
    kiln.LogisticRegressionCV: {"check_sparsify_coefficients": ONE_SIDED},
    kiln.NMF: dict.fromkeys(("check_transformer_data_not_an_array", "check_transformer_general"), STARTED),
}


def default_estimators():
    """Each estimator as its constructor makes it."""
    for name in kiln.__all__:
        kind = getattr(kiln, name)
        if isinstance(kind, type) and issubclass(kind, BaseEstimator):
            yield kind()


@parametrize_with_checks([estimator.set_params(device="cpu") for estimator in default_estimators()],
                         expected_failed_checks=lambda estimator: EXPECTED.get(type(estimator), {}))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("value", [-1, -0.5, np.nan, np.inf])
def test_penalties_that_are_none(value):
    """-1 is the library's own word for no penalty."""
    X = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
    for model, name in ((kiln.Ridge(device="cpu"), "alpha"), (kiln.Lasso(device="cpu"), "alpha"), (kiln.PoissonRegressor(device="cpu"), "alpha"),
                        (kiln.LinearSVR(device="cpu"), "epsilon"), (kiln.ALS(2, device="cpu"), "l2"), (kiln.SFA(2, device="cpu"), "damping")):
        with pytest.raises(ValueError, match=f"'{name}' parameter of {type(model).__name__}"):
            model.set_params(**{name: value}).fit(X, X[:, 0])
