"""scikit-learn's own checks of every estimator; the exceptions are listed with their reasons."""
import kiln
import numpy as np
import pytest
from scikit_gaps import CURRENT, listed, pairs
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

NOT_UNIQUE = "without a penalty the optimum of the check's data is not unique"
EXPECTED = {"GeneralizedLinearRegressor": dict.fromkeys(("check_sample_weight_equivalence_on_dense_data",
                                                         "check_sample_weight_equivalence_on_sparse_data"),
                                                        NOT_UNIQUE),
            "AlternatingLeastSquares": {"check_fit_score_takes_y": "implicit's fit takes none",
                                        "check_transformer_preserve_dtypes": "dtype says the type"}}
COUNTS = {}
for name, count, failed, _, why in listed("scikit-learn's own checks"):
    COUNTS[name] = int(count)
    if failed != "none":
        EXPECTED[name] = dict.fromkeys(failed.split(", "), f"{why}, in scikit-learn, too")


def default_estimators():
    """Each estimator that runs on a device, as its constructor makes it; test_encoder.py has the other
    one."""
    for name in kiln.__all__:
        kind = getattr(kiln, name)
        if isinstance(kind, type) and issubclass(kind, BaseEstimator) and "device" in kind().get_params():
            yield kind()


@parametrize_with_checks([estimator.set_params(device="cpu") for estimator in default_estimators()],
                         expected_failed_checks=lambda estimator: EXPECTED.get(type(estimator).__name__, {}))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
def test_the_table_of_the_checks():
    """Each class has its row, and what Kiln's class fails, scikit-learn's own fails, too."""
    if not CURRENT:
        pytest.skip("the page is of another version of scikit-learn")
    assert {name for name, *_ in pairs()} == set(COUNTS)
    for name, theirs, ours in pairs():
        assert sum(1 for _ in estimator_checks_generator(ours(device="cpu"))) == COUNTS[name], name
        wanted = set(EXPECTED.get(name, {}))
        failing = set()
        for model, check in estimator_checks_generator(theirs()) if wanted else ():
            function = check.func if hasattr(check, "func") else check
            if function.__name__ in wanted - failing:
                try:
                    check(model)
                except Exception:
                    failing.add(function.__name__)
        assert failing == wanted, name


@pytest.mark.parametrize("value", [-1, -0.5, np.nan, np.inf])
def test_penalties_that_are_none(value):
    """-1 is the library's own word for no penalty."""
    X = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
    for model, name in ((kiln.Ridge(device="cpu"), "alpha"), (kiln.Lasso(device="cpu"), "alpha"),
                        (kiln.PoissonRegressor(device="cpu"), "alpha"),
                        (kiln.LinearSVR(device="cpu"), "epsilon"), (kiln.ALS(2, device="cpu"), "l2"),
                        (kiln.SFA(2, device="cpu"), "damping")):
        with pytest.raises(ValueError, match=f"'{name}' parameter of {type(model).__name__}"):
            model.set_params(**{name: value}).fit(X, X[:, 0])
