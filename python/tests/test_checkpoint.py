"""Runs that are stopped and go on: the same bits, and what is refused."""
import os
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit
from sklearn.preprocessing import StandardScaler

import kiln


CPU = kiln.Device("cpu", deterministic=True)


def ratings():
    source = np.random.default_rng(3)
    return scipy.sparse.random(60, 40, density=0.3, format="csr", random_state=source)


def stop_after(iterations):
    return lambda now: now["phase"] == "solve" and now["done"] >= iterations


def model(**options):
    return kiln.ALS(4, max_iter=12, tol=1e-12, random_state=1, device=CPU, **options)


def test_goes_on(tmp_path):
    path = tmp_path / "run.ckpt"
    whole = model().fit(ratings())
    stopped = model()
    stopped.callback = stop_after(5)
    with kiln.checkpoint(path, resume=True) as kept:
        stopped.fit(ratings())
    assert kept.info.resumed == -1 and kept.info.iteration == 5 and kept.info.bytes == path.stat().st_size
    with kiln.checkpoint(path, every=1e-6, resume=True) as kept:
        again = model().fit(ratings())
    assert kept.info.resumed == 5 and kept.info.written > 0
    assert np.array_equal(np.asarray(again.column_factors_),
                          np.asarray(whole.column_factors_)) and again.n_iter_ == whole.n_iter_


def test_interrupt(tmp_path):
    """Ctrl-C raises, and the file is there."""
    def interrupt(now):
        if now["done"] >= 3:
            raise KeyboardInterrupt

    path, stopped = tmp_path / "run.ckpt", model()
    stopped.callback = interrupt
    with pytest.raises(KeyboardInterrupt), kiln.checkpoint(path) as kept:
        stopped.fit(ratings())
    assert kept.info.iteration == 3
    with kiln.checkpoint(resume=path) as kept:
        model().fit(ratings())
    assert kept.info.resumed == 3 and kept.info.written == 0


def test_functions(tmp_path):
    path, graph = (tmp_path / "run.ckpt",
                   abs(scipy.sparse.random(50, 50, density=0.1, format="csr", random_state=1)))
    whole = kiln.pagerank(graph, device="cpu")
    with kiln.checkpoint(path):
        kiln.pagerank(graph, device="cpu", callback=stop_after(4))
    with kiln.checkpoint(resume=path) as kept:
        again = kiln.pagerank(graph, device="cpu")
    assert kept.info.resumed >= 4
    assert np.array_equal(np.asarray(again[0]), np.asarray(whole[0]))


def validated(kind, **options):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = {"ridge": lambda: kiln.RidgeCV([0.1, 1.0, 10.0], cv=KFold(4), device=CPU, **options),
             "overlapping": lambda: kiln.RidgeCV([0.1, 1.0, 10.0], cv=ShuffleSplit(4, random_state=0),
                                                 device=CPU, **options),
             "uneven": lambda: kiln.GeneralizedLinearRegressorCV(
                 alphas=[1e-3, 0.1, 10.0], cv=PredefinedSplit(np.repeat(range(4), (9, 160, 200, 200))),
                 device=CPU, **options),
             "logistic": lambda: kiln.LogisticRegressionCV(Cs=[0.1, 1.0], cv=4, device=CPU, **options),
             "means": lambda: kiln.LogisticRegressionCV(Cs=[0.1, 1.0], cv=4, refit=False, device=CPU,
                                                        **options)}[kind]()
    return model, X, y if kind in ("logistic", "means") else y.astype(float)


class Interrupting:
    """A scorer that counts, and stands for Ctrl-C at one of its calls."""

    def __init__(self, at=0):
        self.at, self.calls, self.__name__ = at, 0, "counted"

    def __call__(self, model, X, y):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return model.score(X, y)


@pytest.mark.parametrize("kind", ["ridge", "overlapping", "uneven", "logistic", "means"])
@pytest.mark.parametrize("folds", [1, 3])
def test_cross_validation_goes_on_after_the_folds_that_are_done(tmp_path, kind, folds):
    path, values = tmp_path / "run.ckpt", 2 if kind in ("logistic", "means") else 3
    whole, X, y = validated(kind, scoring=Interrupting())
    whole.fit(X, y)
    with pytest.raises(KeyboardInterrupt), kiln.checkpoint(path):
        validated(kind, scoring=Interrupting(values * folds + 2))[0].fit(X, y)
    count = Interrupting()
    with kiln.checkpoint(path, resume=True) as kept:
        again = validated(kind, scoring=count)[0].fit(X, y)
    assert kept.info.resumed >= 0 and count.calls == values * (4 - folds)
    np.testing.assert_array_equal(again.scores_, whole.scores_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert getattr(again, "C_", 0) == getattr(whole, "C_", 0)


def test_other_folds_of_the_same_rows_are_refused(tmp_path):
    """The rows of the first split are the same, one after the other; their border is another."""
    path, (_, X, y) = tmp_path / "run.ckpt", validated("ridge")
    rows = np.arange(len(X))

    def search(border, at):
        splits = [(rows[:border], rows[border:]), (rows[10:], rows[:10])]
        return kiln.RidgeCV([0.1, 1.0], cv=splits, scoring=Interrupting(at), device=CPU).fit(X, y)

    with pytest.raises(KeyboardInterrupt), kiln.checkpoint(path):
        search(40, 4)
    with pytest.raises(kiln.KilnError, match="fold|other|checkpoint"), kiln.checkpoint(path, resume=True):
        search(30, 0)


def test_cross_validation_that_is_stopped_in_the_last_training(tmp_path):
    """No fold is trained again, and the training goes on where it was."""
    path = tmp_path / "run.ckpt"
    whole, X, y = validated("logistic", scoring=Interrupting())
    whole.fit(X, y)
    stopped, count = validated("logistic", scoring=Interrupting())[0], Interrupting()
    stopped.callback = lambda now: stopped.scoring.calls == 8 and now["phase"] == "solve" and now["done"] >= 2
    with kiln.checkpoint(path) as kept:
        stopped.fit(X, y)
    assert kept.info.written == 1 and not stopped.converged_
    with kiln.checkpoint(path, resume=True) as kept:
        again = validated("logistic", scoring=count)[0].fit(X, y)
    assert kept.info.resumed >= 2 and count.calls == 0
    np.testing.assert_array_equal(again.scores_, whole.scores_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize("kind", ["logistic", "poisson", "lasso"])
def test_folds_that_max_iter_has_cut_are_trained_to_the_end(tmp_path, kind):
    """Under a higher limit the folds go on with the first that has ended at it, as a single fit does."""
    path, rng = tmp_path / "run.ckpt", np.random.default_rng(3)
    X = rng.normal(size=(90, 5)) * [1, 30, 1, 1, 1]
    target = X @ [1, 0.1, 0, -1, 0.5] + rng.normal(size=90)
    y = {"logistic": target > 0, "poisson": np.round(np.exp(target / 4)), "lasso": target}[kind].astype(float)

    def model(**more):
        if kind == "logistic":
            return kiln.LogisticRegressionCV(Cs=[0.1, 10.0], cv=KFold(3), device=CPU, **more)
        if kind == "poisson":
            return kiln.GeneralizedLinearRegressorCV("poisson", alphas=[0.1, 10.0], cv=KFold(3), device=CPU,
                                                     **more)
        return kiln.LassoCV(alphas=[0.01, 0.1], cv=KFold(3), device=CPU, **more)

    whole = model().fit(X, y)
    with pytest.warns(ConvergenceWarning), kiln.checkpoint(path) as kept:
        cut = model(max_iter=2).fit(X, y)
    assert kept.info.written >= 1
    with pytest.warns(ConvergenceWarning), kiln.checkpoint(path, resume=True):  # the same limit: the same end
        same = model(max_iter=2).fit(X, y)
    np.testing.assert_array_equal(same.coef_, cut.coef_)
    with warnings.catch_warnings(), kiln.checkpoint(path, resume=True) as kept:
        warnings.simplefilter("error")
        again = model().fit(X, y)
    assert kept.info.resumed == 0
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(again.coef_, cut.coef_)


def test_refusals_of_cross_validations(tmp_path):
    path = tmp_path / "run.ckpt"
    model, X, y = validated("ridge", scoring=Interrupting(5))
    with pytest.raises(KeyboardInterrupt), kiln.checkpoint(path):
        model.fit(X, y)
    for other in ({"alphas": [0.1, 1.0, 20.0]}, {"cv": KFold(3)},
                  {"cv": KFold(4, shuffle=True, random_state=0)}, {"scoring": None}):
        with (
            pytest.raises(kiln.ModelError, match="a cross-validation of RidgeCV with other folds"),
            kiln.checkpoint(resume=path),
        ):
            validated("ridge", scoring=Interrupting())[0].set_params(**other).fit(X, y)
    with pytest.raises(kiln.ModelError, match="one of several runs"), kiln.checkpoint(resume=path):
        kiln.Ridge(device=CPU).fit(X, y)
    with pytest.raises(RuntimeError, match="one run"), kiln.checkpoint(path):
        kiln.RidgeCV(device=CPU).fit(X, y)
        kiln.Ridge(device=CPU).fit(X, y)
    with pytest.raises(RuntimeError, match="one run"), kiln.checkpoint(path):
        validated("ridge")[0].fit(X, y)
        validated("ridge")[0].fit(X, y)
    model, X, labels = validated("means")  # nothing is trained after its folds
    with pytest.raises(RuntimeError, match="one run"), kiln.checkpoint(path):
        model.fit(X, labels)
        kiln.Ridge(device=CPU).fit(X, y)


def test_scorers_are_told_apart(tmp_path):
    path, calls = tmp_path / "run.ckpt", []

    def stopping(truth, found, beta):
        calls.append(beta)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fbeta_score(truth, found, beta=beta)

    one, X, y = validated("logistic", scoring=make_scorer(stopping, beta=2.0))
    with pytest.raises(KeyboardInterrupt), kiln.checkpoint(path):
        one.fit(X, y)
    with pytest.raises(kiln.ModelError, match="scoring"), kiln.checkpoint(resume=path):
        validated("logistic", scoring=make_scorer(stopping, beta=0.5))[0].fit(X, y)
    with kiln.checkpoint(resume=path) as kept:
        validated("logistic", scoring=make_scorer(stopping, beta=2.0))[0].fit(X, y)
    assert kept.info.resumed >= 0


def test_refusals(tmp_path):
    path, stopped = tmp_path / "run.ckpt", model()
    stopped.callback = stop_after(2)
    with kiln.checkpoint(path):
        stopped.fit(ratings())
    with pytest.raises(kiln.ModelError, match="l2"), kiln.checkpoint(resume=path):
        model(l2=0.5).fit(ratings())
    with pytest.raises(kiln.ModelError, match="not those that"), kiln.checkpoint(resume=path):
        model().fit(ratings() * 1.001)
    with pytest.raises(kiln.FileError), kiln.checkpoint(resume=tmp_path / "none"):
        pass
    with pytest.raises(ValueError, match="name a file"):
        kiln.checkpoint(resume=True)
    with pytest.raises(RuntimeError, match="one run"), kiln.checkpoint(path):
        model().fit(ratings())
        model().fit(ratings())
    assert os.path.exists(path)


@pytest.mark.parametrize("fit", [kiln.LassoCV(positive=True, cv=3, device=CPU),
                                 kiln.Lasso(0.1, positive=True, device=CPU),
                                 kiln.LinearSVC(penalty="l1", device=CPU)], ids=str)
def test_what_keeps_no_checkpoint_says_so(tmp_path, fit):
    X = np.random.default_rng(0).normal(size=(40, 5))
    y = (X[:, 0] > 0).astype(float)
    for options in ({"path": tmp_path / "run.ckpt"}, {"path": tmp_path / "run.ckpt", "resume": True}):
        with pytest.warns(UserWarning, match="nothing in the block took .*run.ckpt") as told:
            with kiln.checkpoint(**options):
                fit.fit(X, y)
        assert told[-1].filename == __file__
    with pytest.raises(ZeroDivisionError), warnings.catch_warnings(), kiln.checkpoint(tmp_path / "run.ckpt"):
        warnings.simplefilter("error")
        1 / 0
    with warnings.catch_warnings(), kiln.checkpoint(tmp_path / "run.ckpt"):
        warnings.simplefilter("error")
        kiln.Lasso(0.1, device=CPU).fit(X, y)
