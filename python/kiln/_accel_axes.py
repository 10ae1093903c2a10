"""kiln.accel's rows for singular values and principal components: where scikit-learn's answer is the right
one but for rounding, as ARPACK's and LAPACK's are, and that of its randomised search is not."""
from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array

from ._accel_rules import NotHere, Rule, adopt, twin

_FEW = 4  # so many times the components are rows and columns: LAPACK is the way to most of them
_RANDOM = "its random search ends elsewhere: Kiln's ends at a tolerance"


def _solver(model: Any, X: Any) -> Any:
    """What scikit-learn's "auto" is for so few components."""
    rows, columns = X.shape
    if model.svd_solver != "auto":
        return model.svd_solver
    if scipy.sparse.issparse(X):
        return "arpack"
    if columns <= 1000 and rows >= 10 * columns:
        return "covariance_eigh"
    return "full" if max(rows, columns) <= 500 else "randomized"


def _check(model: Any, X: Any) -> Any:
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
    k = model.n_components
    if not isinstance(k, (int, np.integer)) or not 1 <= k <= min(X.shape) // _FEW:
        raise NotHere(f"n_components={k!r} of a matrix of {X.shape[0]} x {X.shape[1]}")
    return X


def _train(model: Any, X: Any) -> Any:
    """X as it was checked; the model is fitted."""
    model._validate_params()
    checked = _check(model, X)
    if hasattr(model, "svd_solver"):
        solver = _solver(model, checked)
        if solver == "randomized":
            raise NotHere(_RANDOM)
        if scipy.sparse.issparse(checked) and solver not in ("arpack", "covariance_eigh"):
            raise NotHere(f"svd_solver={solver!r} refuses a sparse matrix")
    elif getattr(model, "algorithm", "arpack") != "arpack":
        raise NotHere(_RANDOM)
    adopt(model, twin(model).fit(checked), X)
    return checked


def _fit(original: Any, model: Any, X: Any, y: Any = None) -> Any:
    _train(model, X)
    return model


def _fit_transform(original: Any, model: Any, X: Any, y: Any = None) -> Any:
    return model.transform(_train(model, X))


def _lengths(found: Any) -> Any:
    values = (found.singular_values_ if hasattr(found, "singular_values_")
              else np.linalg.svd(np.asarray(found, np.float64), compute_uv=False))
    return np.asarray(values, np.float64)


def _spectra_apart(theirs: Any, ours: Any, *arguments: Any, **named: Any) -> float:
    """The largest difference of singular values, over the largest of them: vectors of close values are any
    that span what these have."""
    wanted, found = _lengths(theirs), _lengths(ours)
    return float(np.abs(wanted - found).max() / (wanted.max() or 1.0))


def rules() -> list[Rule]:
    methods = (("PCA", "fit", _fit), ("PCA", "fit_transform", _fit_transform),
               ("TruncatedSVD", "fit_transform", _fit_transform), ("IncrementalPCA", "fit", _fit))
    return [Rule(f"{name}.{method}", ((f"sklearn.decomposition:{name}", method),), ours, _spectra_apart, 1e-4)
            for name, method, ours in methods]
