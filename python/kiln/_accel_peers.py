"""kiln.accel's rows for what lies beside scikit-learn's estimators: statsmodels, which begins where Kiln
ends, implicit, and functions of scikit-learn."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_array

import kiln

from ._accel_rules import NotHere, Rule, _far, never
from ._solve import ENDLESS

_FAMILIES = {"Gaussian": "gaussian", "Poisson": "poisson", "Gamma": "gamma",
             "InverseGaussian": "inverse-gaussian", "Binomial": "binomial", "Tweedie": "tweedie",
             "NegativeBinomial": "negative-binomial"}
_LINKS = {"Identity": "identity", "Log": "log", "Logit": "logit", "Probit": "probit", "CLogLog": "cloglog",
          "Cauchy": "cauchit", "InversePower": "inverse", "InverseSquared": "inverse-squared", "Sqrt": "sqrt"}


# --------------------------------------------------------------------------------------------- statsmodels


def _begun(model: Any, weights: Any, offset: Any, **family: Any) -> Any:
    """The coefficients of a generalised linear model, where statsmodels' iterations then end at once."""
    ours = kiln.GeneralizedLinearRegressor(**family, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours.fit(model.exog, model.endog, weights, offset)
    if not ours.converged_ or ENDLESS & ours.report_.warnings.keys():
        raise NotHere("Kiln did not converge")
    return ours.coef_.astype(np.float64)


def _glm(original: Any, model: Any, start_params: Any = None, *arguments: Any, **named: Any) -> Any:
    """GLM.fit from Kiln's coefficients: its results are statsmodels' own."""
    if start_params is not None:
        raise NotHere("start_params given")
    family, link = (type(part).__name__ for part in (model.family, model.family.link))
    if family not in _FAMILIES or link not in _LINKS:
        raise NotHere(f"family {family} with link {link}")
    known = {"Tweedie": "var_power", "NegativeBinomial": "alpha"}.get(family)
    parameter = 0.0 if known is None else getattr(model.family, known)
    weights = np.asarray(model.iweights * model.n_trials, np.float64) * np.ones(len(model.endog))
    offset = np.asarray(model._offset_exposure, np.float64) * np.ones(len(model.endog))
    start = _begun(model, weights, offset if offset.any() else None, family=_FAMILIES[family],
                   link=_LINKS[link], parameter=parameter)
    return original(model, start, *arguments, **named)


def _discrete(family: str, link: str) -> Any:
    def ours(original: Any, model: Any, start_params: Any = None, *arguments: Any, **named: Any) -> Any:
        if start_params is not None:
            raise NotHere("start_params given")
        offset = sum(np.asarray(getattr(model, name, None)) for name in ("offset", "exposure")
                     if getattr(model, name, None) is not None)
        start = _begun(model, None, offset if np.any(offset) else None, family=family, link=link)
        return original(model, start, *arguments, **named)

    return ours


def _to_the_end(original: Any, model: Any, *arguments: Any, **named: Any) -> Any:
    """statsmodels' fit with a tolerance that leaves its end no choice."""
    return original(model, *arguments, **{**named, "tol": 1e-12, "maxiter": 1000})


def _fitted_apart(theirs: Any, ours: Any, *arguments: Any, **named: Any) -> float:
    return max(_far(theirs.fittedvalues, ours.fittedvalues), _far(theirs.bse, ours.bse))


# ----------------------------------------------------------------------------------------------- functions


def _ridge_regression(original: Any, X: Any, y: Any, alpha: Any, *, sample_weight: Any = None,
                      solver: str = "auto", max_iter: Any = None, tol: float = 1e-4, verbose: int = 0,
                      positive: bool = False, random_state: Any = None, return_n_iter: bool = False,
                      return_intercept: bool = False, check_input: bool = True) -> Any:
    """Ridge without an intercept."""
    if return_n_iter or return_intercept:
        raise NotHere("return_n_iter or return_intercept")
    if solver not in ("auto", "svd", "cholesky", "lsqr", "sparse_cg"):
        raise NotHere(f"solver={solver!r}")
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    y = check_array(y, ensure_2d=False, dtype=X.dtype)
    model = kiln.Ridge(alpha, fit_intercept=False, positive=positive)
    return model.fit(X, y, sample_weight).coef_.reshape((-1, X.shape[1]) if np.ndim(y) == 2 else X.shape[1])


def _coefficients_apart(theirs: Any, ours: Any, *arguments: Any, **named: Any) -> float:
    return _far(theirs, ours)


def rules() -> list[Rule]:
    glm, discrete = "statsmodels.genmod.generalized_linear_model", "statsmodels.discrete.discrete_model"
    ridge, kmeans = "sklearn.linear_model._ridge", "sklearn.cluster._kmeans"
    return [Rule("statsmodels.GLM.fit", ((f"{glm}:GLM", "fit"),), _glm, _fitted_apart, 1e-6,
                 _to_the_end),
            Rule("statsmodels.Logit.fit", ((f"{discrete}:Logit", "fit"),), _discrete("binomial", "logit"),
                 _fitted_apart, 1e-6, _to_the_end),
            Rule("statsmodels.Poisson.fit", ((f"{discrete}:Poisson", "fit"),), _discrete("poisson", "log"),
                 _fitted_apart, 1e-6, _to_the_end),
            Rule("implicit.AlternatingLeastSquares.fit",
                 (("implicit.cpu.als:AlternatingLeastSquares", "fit"),),
                 never("its starts are random"), _coefficients_apart, 0.0),
            Rule("ridge_regression",
                 (("sklearn.linear_model", "ridge_regression"), (ridge, "ridge_regression")),
                 _ridge_regression, _coefficients_apart, 1e-4),
            Rule("kmeans_plusplus", (("sklearn.cluster", "kmeans_plusplus"), (kmeans, "kmeans_plusplus")),
                 never("its centres are drawn at random"), _coefficients_apart, 0.0)]
