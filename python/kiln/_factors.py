"""Factor models of sparse data."""
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._arrays import Matrix, matrix
from ._base import Estimator
from ._library import ffi, lib, struct


class ALS(TransformerMixin, Estimator):  # type: ignore[misc]
    """Alternating least squares: rows of a sparse R (users) times columns (items), R about A B^T.

    Explicit ratings by default; implicit=True takes entries for how often something was seen, with confidence 1 + alpha |r|.
    l2: the penalty, with counted=True times the number of a row's entries; None: the default of the kind.
    """

    _algorithm = "als"

    def __init__(self, n_components: int = 64, *, implicit: bool = False, alpha: float | None = None, l2: float | None = None,
                 biases: bool = False, counted: bool = False, solver: str = "cg", max_iter: int = 100, tol: float = 1e-4,
                 random_state: Any = None, device: Any = "auto", verbose: int = 0) -> None:
        self.n_components = n_components
        self.implicit = implicit
        self.alpha = alpha
        self.l2 = l2
        self.biases = biases
        self.counted = counted
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _options(self) -> dict[str, Any]:
        solvers = {"cg": lib.KILN_FACTOR_CG, "cholesky": lib.KILN_FACTOR_CHOLESKY}
        if self.solver not in solvers:
            raise ValueError(f"The 'solver' parameter of ALS must be one of {sorted(solvers)}. Got {self.solver!r} instead.")
        l2 = self.l2 if self.l2 is None or self.l2 > 0 else lib.KILN_NONE
        return {"implicit": self.implicit, "alpha": self.alpha, "l2": l2, "biases": self.biases, "counted": self.counted,
                "solver": solvers[self.solver]}

    def fit(self, X: Any, y: Any = None) -> Any:
        """Factors X (n_rows, n_columns): every stored entry of a sparse matrix, zeros too; of a dense array what is not 0."""
        X = self._sparse(self._validate(X))
        where = self._place(X, self.n_components)
        R = matrix(X, where)
        A = Matrix.empty(where, (R.shape[0], self.n_components), R.dtype)
        B = Matrix.empty(where, (R.shape[1], self.n_components), R.dtype)
        self._run([A, B, R], tolerance=self.tol, max_iterations=self.max_iter,
                  seed=int(check_random_state(self.random_state).randint(2**31 - 1)), **self._options())
        self.row_factors_, self.column_factors_ = A.numpy(), B.numpy()
        self.mean_ = self.report_.figures["mean"]
        self._n_features_out = self.n_components
        self.device_ = where.name
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).row_factors_"""
        return self.fit(X).row_factors_

    def transform(self, X: Any) -> Any:
        """The factors of new rows, those of the columns as they are (fold-in)."""
        check_is_fitted(self)
        X = self._sparse(self._validate(X, reset=False))
        where = self._place(X)
        R, made = matrix(X, where), ffi.new("kiln_matrix **")
        where.call(lib.kiln_transform, made, self._model(where), R.pointer)
        return Matrix.adopt(made[0], where).numpy()

    def recommend(self, factors: Any, seen: Any = None, top: int = 10) -> tuple[Any, Any]:
        """For each row of factors (from transform, or row_factors_) the numbers and the scores of its `top` best columns,
        without those that `seen` (sparse, of as many rows) has; -1 and NaN where there are fewer."""
        check_is_fitted(self)
        where = self._place(self.column_factors_)
        A = matrix(factors, where, self.column_factors_.dtype)
        without = None if seen is None else matrix(seen, where, A.dtype)
        columns, scores = np.empty((A.shape[0], top), np.int64), np.empty((A.shape[0], top))
        where.call(lib.kiln_recommend, ffi.cast("int64_t *", columns.ctypes.data), ffi.cast("double *", scores.ctypes.data), top,
                                 self._model(where), A.pointer, without.pointer if without else ffi.NULL)
        return columns, scores

    @staticmethod
    def _sparse(X: Any) -> Any:
        if isinstance(X, Matrix) or hasattr(X, "tocsr"):
            return X
        import scipy.sparse

        return scipy.sparse.csr_matrix(X)

    def _model(self, where: Any) -> Any:
        """kiln_als_model knows the settings' layout."""
        A = Matrix(self.row_factors_, where)
        B = Matrix(self.column_factors_, where)
        made, options = ffi.new("kiln_model **"), struct("kiln_als_options")
        for name, value in self._options().items():
            if value is not None:
                setattr(options, name, value)
        where.call(lib.kiln_als_model, made, A.pointer, B.pointer, self.mean_, options)
        return ffi.gc(made[0], lib.kiln_model_free)
