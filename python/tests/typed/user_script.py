"""A user's program, which mypy checks strictly beside the package (pyproject.toml), and pyright finds nothing
in."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kiln

if TYPE_CHECKING:
    from typing_extensions import assert_type


def fit_each_class(X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """fit() returns the class itself."""
    assert_type(kiln.LinearRegression().fit(X, y), kiln.LinearRegression)
    assert_type(kiln.Ridge(alpha=0.5).fit(X, y), kiln.Ridge)
    assert_type(kiln.RidgeCV(alphas=[0.1, 1.0]).fit(X, y), kiln.RidgeCV)
    assert_type(kiln.Lasso(0.1, device="cpu").fit(X, y), kiln.Lasso)
    assert_type(kiln.LassoCV().fit(X, y), kiln.LassoCV)
    assert_type(kiln.ElasticNet().fit(X, y), kiln.ElasticNet)
    assert_type(kiln.ElasticNetCV().fit(X, y), kiln.ElasticNetCV)
    assert_type(kiln.LogisticRegression(C=2.0).fit(X, y > 0), kiln.LogisticRegression)
    assert_type(kiln.LogisticRegressionCV().fit(X, y > 0), kiln.LogisticRegressionCV)
    assert_type(kiln.PoissonRegressor().fit(X, y), kiln.PoissonRegressor)
    assert_type(kiln.GammaRegressor().fit(X, y), kiln.GammaRegressor)
    assert_type(kiln.TweedieRegressor(power=1.5).fit(X, y), kiln.TweedieRegressor)
    assert_type(kiln.GeneralizedLinearRegressor("poisson").fit(X, y, offset=y),
                kiln.GeneralizedLinearRegressor)
    assert_type(kiln.GeneralizedLinearRegressorCV().fit(X, y), kiln.GeneralizedLinearRegressorCV)
    assert_type(kiln.LinearSVC().fit(X, y > 0), kiln.LinearSVC)
    assert_type(kiln.LinearSVR().fit(X, y), kiln.LinearSVR)
    assert_type(kiln.KMeans(2).fit(X), kiln.KMeans)
    assert_type(kiln.MiniBatchKMeans(2).partial_fit(X), kiln.MiniBatchKMeans)
    assert_type(kiln.MDS(2).fit(X), kiln.MDS)
    assert_type(kiln.ALS(2).fit(X), kiln.ALS)
    assert_type(kiln.AlternatingLeastSquares(2).fit(X, False), kiln.AlternatingLeastSquares)
    assert_type(kiln.SFA(2).fit(X), kiln.SFA)
    assert_type(kiln.NMF(2).fit(X), kiln.NMF)
    assert_type(kiln.LatentDirichletAllocation(2).fit(X), kiln.LatentDirichletAllocation)


def use(model: kiln.Ridge, folder: Path) -> dict[str, Any]:
    """What a fitted model says, and where it goes."""
    assert_type(model.converged_, bool)
    assert_type(model.report_.n_iter, int)
    assert_type(model.device_, str)
    model.save(folder / "m.kiln")
    theirs = model.to_sklearn()
    again = kiln.load(folder / "m.kiln")
    return {"ours": again.get_params(), "theirs": theirs.get_params(), "score": kiln.__version__.upper()}


def functions(X: NDArray[np.float64], where: kiln.Device) -> None:
    """Matrices, devices, files, errors."""
    A = kiln.matrix(X, where)
    assert_type(A, kiln.Matrix)
    assert_type(A.shape, tuple[int, int])
    assert_type(kiln.device("cpu"), kiln.Device)
    for row in kiln.devices():
        print(row["name"])
    try:
        data = kiln.read("x.csv", target="y")
        print(data.X, data.y, data.feature_names)
    except kiln.DataError as error:
        print(error.hint, error.line)
    scores, report = kiln.pagerank(X)
    print(scores, report.converged)
    with kiln.checkpoint("run.ckpt"), kiln.results_on_device():
        print(kiln.multiply(X, X, transposed=True))
