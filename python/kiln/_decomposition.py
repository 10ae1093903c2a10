"""Truncated singular value decomposition and principal components."""
from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.extmath import _incremental_mean_and_var
from sklearn.utils.validation import check_is_fitted

from ._arrays import Matrix, matrix
from ._base import Estimator
from ._dlpack import to_host
from ._library import UnsupportedError, lib

if TYPE_CHECKING:
    from typing_extensions import Self

SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized")


class _Axes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Coordinates of rows on a few axes, (X - mean_) / scale_ times the transpose of components_."""

    _solver: int | None = None
    whiten = False
    scale_: Any = None
    # what components and all columns have of variance, by the rows less one; None, NaN: not known
    _variance: Any = None
    _total: float = np.nan
    components_: Any
    explained_variance_: Any
    n_components: Any

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _find(self, X: Any, k: int, *, center: bool, scale: bool = False) -> None:
        """The k largest singular triples of a validated X: components_, singular_values_ and what they
        explain, by the rows less one."""
        where = self._place(X, k)
        operand = matrix(X, where)
        rows, columns = operand.shape
        made = {name: Matrix.empty(where, shape, operand.dtype)
                for name, shape in (("s", (k, 1)), ("V", (columns, k)), ("variance", (k, 1)),
                                    *([("mean", (columns, 1))] if center else []),
                                    *([("deviation", (columns, 1))] if scale else []))}
        random = check_random_state(getattr(self, "random_state", None))
        self._run([None, made["s"], made["V"], operand], center=int(center), scale=int(scale),
                  solver=self._solver, seed=int(random.randint(2**31 - 1)),
                  tolerance=getattr(self, "tol", 0.0) or None, max_iterations=getattr(self, "max_iter", None),
                  **{name: made.get(name) for name in ("mean", "deviation", "variance")})
        self.components_ = np.ascontiguousarray(made["V"].numpy().T)
        self.singular_values_ = made["s"].numpy()[:, 0]
        self._variance = self.explained_variance_ = made["variance"].numpy()[:, 0]
        self._total = self.report_.figures["variance"]
        with np.errstate(invalid="ignore", divide="ignore"):
            self.explained_variance_ratio_ = (self._variance / self._total).astype(operand.dtype)
        if center:
            self.mean_ = made["mean"].numpy()[:, 0]
        self.scale_ = made["deviation"].numpy()[:, 0] if scale else None
        self.device_ = where.name

    def fit(self, X: Any, y: Any = None) -> Self:
        """Finds the axes of X (n_samples, n_features), dense or sparse; y is ignored."""
        self._fit(X)
        return self

    def _fit(self, X: Any) -> Any:
        """fit(), which returns X as transform() takes it."""
        raise NotImplementedError

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).transform(X)"""
        return self._coordinates(self._fit(X))

    def transform(self, X: Any) -> Any:
        """The rows' coordinates (n_samples, n_components)."""
        check_is_fitted(self)
        return self._coordinates(self._validate(X, reset=False))

    def _predict(self, X: Any) -> Matrix:
        """kiln_predict of a validated X; without components, of which there is no model, no coordinates."""
        if len(self.components_):
            return super()._predict(X)
        return Matrix.empty(self._place(X), (X.shape[0], 0), self.components_.dtype)

    def _coordinates(self, X: Any) -> Any:
        """transform() of a validated X."""
        found = self._predict(X)
        if self.whiten:
            found = Matrix(found.numpy() / self._spreads(), found.device)
        return found.result()

    def inverse_transform(self, X: Any) -> Any:
        """The rows (n_samples, n_features) that have these coordinates (n_samples, n_components), and nothing
        across the axes."""
        check_is_fitted(self)
        host = X.numpy() if isinstance(X, Matrix) else np.asarray(to_host(X))
        if host.ndim != 2 or host.shape[1] != len(self.components_):
            raise ValueError(f"X has shape {host.shape}, but the coordinates of {len(self.components_)} "
                             "components are wanted")
        rows = host @ (self.components_ * self._spreads()[:, None])
        if self.scale_ is not None:
            rows *= self.scale_
        return rows + getattr(self, "mean_", 0)

    def _spreads(self) -> Any:
        """What coordinates are divided by: the roots of what they explain, of whitened ones."""
        least = np.finfo(self.components_.dtype).eps
        roots = np.maximum(np.sqrt(self.explained_variance_), least)
        return roots if self.whiten else np.ones_like(roots)

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        if not len(self.components_):
            raise UnsupportedError(f"a {type(self).__name__} without components has no model to save.")
        tensors = {"V": self.components_.T, "s": self.singular_values_, "mean": getattr(self, "mean_", None),
                   "deviation": self.scale_,
                   "variance": self._variance if np.isfinite(self._variance).all() else None}
        kind = self.components_.dtype
        made = {name: np.ascontiguousarray(values, kind).reshape(len(values), -1)
                for name, values in tensors.items() if values is not None}
        if np.isfinite(self._total):
            made["total"] = np.array([[self._total]])  # of float64, whatever the others are
        return made, {}


class TruncatedSVD(_Axes):
    """The largest singular values of X and their right vectors: X is near U S V^T, as latent semantic
    indexing has it of counts of words. A sparse X stays sparse.

    Whatever algorithm, n_iter, n_oversamples and power_iteration_normalizer say, each triple ends within tol:
    the largest of ||X v - s u|| and ||X^T u - s v|| over the largest s. tol=0: 1e-8 of float64, 1e-5 of
    float32. standardize: columns are divided by their standard deviations, which are scale_.
    explained_variance_ is the variance of the rows' coordinates.
    """

    _algorithm = "svd"

    def __init__(self, n_components: int = 2, *, algorithm: str = "randomized", n_iter: int = 5,
                 n_oversamples: int = 10, power_iteration_normalizer: str = "auto", random_state: Any = None,
                 tol: float = 0.0, max_iter: int | None = None, standardize: bool = False,
                 verbose: int = 0, device: Any = "auto") -> None:
        self.n_components, self.algorithm, self.n_iter, self.n_oversamples = (
            n_components, algorithm, n_iter, n_oversamples)
        self.power_iteration_normalizer, self.random_state, self.tol, self.max_iter = (
            power_iteration_normalizer, random_state, tol, max_iter)
        self.standardize, self.verbose, self.device = standardize, verbose, device

    def _fit(self, X: Any) -> Any:
        if self.algorithm not in ("randomized", "arpack"):
            raise ValueError("The 'algorithm' parameter of TruncatedSVD must be one of ['arpack', "
                             f"'randomized']. Got {self.algorithm!r} instead.")
        X = self._validate(X, ensure_min_features=2)
        rows, columns = X.shape
        if self.n_components > columns:
            raise ValueError(f"n_components({self.n_components}) must be <= n_features({columns}).")
        self._find(X, min(self.n_components, rows), center=False, scale=self.standardize)
        if rows > 1:
            self.explained_variance_ = self._variance * self._variance.dtype.type((rows - 1) / rows)
        return X


class _Principal(_Axes):
    """What PCA and IncrementalPCA share: the Gaussian with the variances of the components and, across them,
    noise_variance_ in each direction (Tipping and Bishop, J. R. Statist. Soc. B 61, 1999)."""

    _algorithm = "pca"
    noise_variance_: Any
    n_components_: int

    def get_covariance(self) -> Any:
        """The covariance of the model (n_features, n_features)."""
        check_is_fitted(self)
        V = self.components_
        found = (V.T * np.maximum(self.explained_variance_ - self.noise_variance_, 0)) @ V
        found.flat[:: len(found) + 1] += self.noise_variance_
        return found

    def get_precision(self) -> Any:
        """The inverse of the covariance of the model (n_features, n_features)."""
        check_is_fitted(self)
        V, columns = self.components_, self.n_features_in_
        along = 1 / np.maximum(self.explained_variance_, self.noise_variance_)
        if len(V) == columns:
            return (V.T * along) @ V
        if not self.noise_variance_ > 0:
            raise ValueError("the covariance has no inverse: the components explain all variance, but are "
                             f"{len(V)} of {columns}. Take fewer.")
        found = (V.T * (along - 1 / self.noise_variance_)) @ V
        found.flat[:: columns + 1] += 1 / self.noise_variance_
        return found

    def score_samples(self, X: Any) -> Any:
        """The log-likelihood of each row under the model (n_samples,)."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        host = X.numpy() if isinstance(X, Matrix) else X
        T = self._predict(X).numpy().astype(np.float64)
        variances = np.maximum(self.explained_variance_, self.noise_variance_).astype(np.float64)
        left, noise = self.n_features_in_ - len(variances), float(self.noise_variance_)
        squares, logs = T**2 @ (1 / variances), np.log(variances).sum()
        if left and not noise > 0:  # rows have no part across the components: a density has no value there
            return np.full(len(T), -np.inf)
        if left:
            rest = self._squares(host) - (T**2).sum(axis=1)
            squares = squares + np.maximum(rest, 0) / noise
            logs += left * np.log(noise)
        return -(squares + logs + self.n_features_in_ * np.log(2 * np.pi)) / 2

    def _squares(self, X: Any) -> Any:
        """The squared lengths of rows about mean_."""
        scale = np.ones(len(self.mean_)) if self.scale_ is None else np.asarray(self.scale_, np.float64)
        mean = np.asarray(self.mean_, np.float64)
        if not hasattr(X, "tocsr"):
            return np.square((np.asarray(X, np.float64) - mean) / scale).sum(axis=1)
        X = X.tocsr()
        shift, values = mean / scale, X.astype(np.float64)
        values.data /= scale[X.indices]
        return (np.asarray(values.multiply(values).sum(axis=1)).ravel() - 2 * (values @ shift)
                + shift @ shift)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of score_samples(X)."""
        return float(np.mean(self.score_samples(X)))


class PCA(_Principal):
    """Principal components: the axes along which the rows' variance is largest, of X about its columns'
    means. A sparse X stays sparse.

    n_components: how many; 0: none, which leaves mean_, noise_variance_ and score(), and nothing to save; a
    number between 0 and 1: as few as explain more than that share of the variance; None: all; "mle": by
    Minka's rule. Whatever svd_solver and its parameters say, each component ends within tol, as in
    TruncatedSVD; "covariance_eigh" goes by the Gram matrix of the columns first. whiten: coordinates are
    divided by their standard deviations, those of a model's file are not. standardize: columns are divided by
    their standard deviations, which are scale_.
    """

    _also = {"n_components": (float, None, "mle", 0)}

    def __init__(self, n_components: Any = None, *, copy: bool = True, whiten: bool = False,
                 svd_solver: str = "auto", tol: float = 0.0, iterated_power: Any = "auto",
                 n_oversamples: int = 10, power_iteration_normalizer: str = "auto", random_state: Any = None,
                 max_iter: int | None = None, standardize: bool = False, verbose: int = 0,
                 device: Any = "auto") -> None:
        self.n_components, self.copy, self.whiten, self.svd_solver, self.tol = (
            n_components, copy, whiten, svd_solver, tol)
        self.iterated_power, self.n_oversamples, self.power_iteration_normalizer, self.random_state = (
            iterated_power, n_oversamples, power_iteration_normalizer, random_state)
        self.max_iter, self.standardize, self.verbose, self.device = max_iter, standardize, verbose, device

    def _fit(self, X: Any) -> Any:
        if self.svd_solver not in SOLVERS:
            raise ValueError(f"The 'svd_solver' parameter of PCA must be one of {sorted(SOLVERS)}. Got "
                             f"{self.svd_solver!r} instead.")
        self._solver = lib.KILN_SVD_GRAM if self.svd_solver == "covariance_eigh" else None
        X = self._validate(X, ensure_min_samples=2)
        rows, columns = X.shape
        most, wanted = min(rows, columns), self.n_components
        if wanted is None or (wanted == "mle" and rows >= columns):
            kept = self._search(X, most, None if wanted is None else most)
        elif wanted == "mle":
            raise ValueError("n_components='mle' is only supported if n_samples >= n_features")
        elif isinstance(wanted, numbers.Integral) and 0 <= int(wanted) <= most:
            kept = self._search(X, int(wanted), None)
        elif not isinstance(wanted, numbers.Integral) and 0 < wanted < 1:
            kept = self._explaining(X, float(wanted), most)
        else:
            raise ValueError(f"n_components={wanted!r} must be between 0 and min(n_samples, "
                             f"n_features)={most!r}, or a share between 0 and 1")
        self._keep(kept, most, rows)
        return X

    def _search(self, X: Any, k: int, rule: int | None) -> Any:
        """Finds k components, and one for none; how many of them are kept, by Minka's rule unless `rule` is
        None."""
        self._find(X, max(k, 1), center=True, scale=self.standardize)
        if rule is None:
            return k
        from sklearn.decomposition._pca import _infer_dimension

        found = _infer_dimension(self.explained_variance_.astype(np.float64), X.shape[0])
        return np.maximum(found, 1)  # a NumPy integer, as scikit-learn has it: scripts format it as such

    def _explaining(self, X: Any, share: float, most: int) -> int:
        """Finds more components until they explain that share; how many are kept."""
        k = min(most, 16)
        while True:
            self._find(X, k, center=True, scale=self.standardize)
            sums = np.cumsum(self.explained_variance_ratio_, dtype=np.float64)
            if sums[-1] > share or k == most:
                return min(int(np.searchsorted(sums, share, side="right")) + 1, k)
            k = min(most, 2 * k)

    def _keep(self, k: int, most: int, rows: int) -> None:
        for name in ("components_", "singular_values_", "explained_variance_", "explained_variance_ratio_",
                     "_variance"):
            setattr(self, name, getattr(self, name)[:k].copy())
        self.n_components_, self.n_samples_ = k, rows
        values = self.singular_values_.astype(np.float64)
        figures = {**self.report_.figures, "rank": min(self.report_.figures["rank"], k)}
        self.report_ = self.report_._replace(objective=float(values @ values), figures=figures)
        rest = self._total - float(np.sum(self.explained_variance_, dtype=np.float64))
        self.noise_variance_ = max(rest, 0.0) / (most - k) if k < most else 0.0


class IncrementalPCA(_Principal):
    """Principal components of rows that come in batches, of which no more than one is held: each batch is
    merged with the components of those before it (Ross et al., Int. J. Comput. Vision 77, 2008).

    n_components: how many; None: as many as the first batch has rows or columns, whichever is less.
    batch_size: the rows of a batch that fit() takes; None: 5 times the columns. whiten: as in PCA.
    """

    _also = {"n_components": (None,), "batch_size": (None,)}
    n_samples_seen_: int
    var_: Any

    def __init__(self, n_components: int | None = None, *, whiten: bool = False, copy: bool = True,
                 batch_size: int | None = None, verbose: int = 0, device: Any = "auto") -> None:
        self.n_components, self.whiten, self.copy, self.batch_size, self.verbose, self.device = (
            n_components, whiten, copy, batch_size, verbose, device)

    def _fit(self, X: Any) -> Any:
        X = self._validate(X)
        if isinstance(X, Matrix):
            X = X.numpy()
        rows, columns = X.shape
        self.n_samples_seen_ = 0
        self.batch_size_ = 5 * columns if self.batch_size is None else int(self.batch_size)
        for batch in gen_batches(rows, self.batch_size_, min_batch_size=self.n_components or 0):
            part = X[batch]
            self._merge(part.toarray() if hasattr(part, "toarray") else part)
        return X

    def partial_fit(self, X: Any, y: Any = None, check_input: bool = True) -> Self:
        """Goes on with one batch, dense (n_samples, n_features); y is ignored. check_input=False is taken and
        changes nothing."""
        if hasattr(X, "tocsr"):
            raise TypeError("IncrementalPCA.partial_fit does not support sparse input. Either convert data "
                            "to dense or use IncrementalPCA.fit to do so in batches.")
        first = not hasattr(self, "components_")
        X = self._validate(X, accept_sparse=False, reset=first)
        if first:
            self.n_samples_seen_ = 0
        self._merge(X.numpy() if isinstance(X, Matrix) else X)
        return self

    def _merge(self, X: Any) -> None:
        rows, columns = X.shape
        first = self.n_samples_seen_ == 0
        k = min(rows, columns) if self.n_components is None else self.n_components
        if not first:
            if self.n_components is not None and k != self.n_components_:
                raise ValueError(f"Number of input features has changed from {self.n_components_} to {k} "
                                 "between calls to partial_fit! Try setting n_components to a fixed value.")
            k = self.n_components_
        if k > columns:
            raise ValueError(f"n_components={k} invalid for n_features={columns}, need more rows than "
                             "columns for IncrementalPCA processing")
        if first and k > rows:
            raise ValueError(f"n_components={k} must be less or equal to the batch number of samples {rows} "
                             "for the first partial_fit call.")
        seen = np.repeat(self.n_samples_seen_, columns)
        mean, variance, counts = _incremental_mean_and_var(
            X, last_mean=0.0 if first else self.mean_, last_variance=0.0 if first else self.var_,
            last_sample_count=seen)
        total = int(counts[0])
        if first:
            stack = X - mean
        else:
            own = X.mean(axis=0)
            moved = np.sqrt(self.n_samples_seen_ / total * rows) * (self.mean_ - own)
            stack = np.vstack([self.singular_values_[:, None] * self.components_, X - own, moved[None, :]])
        stack = np.ascontiguousarray(stack, X.dtype)
        k = min(k, *stack.shape)
        inner = TruncatedSVD(k, verbose=self.verbose, device=self.device)
        inner._find(stack, k, center=False)
        self.components_, self.singular_values_ = inner.components_, inner.singular_values_
        self.device_ = inner.device_
        self._variance = self.explained_variance_ = self.singular_values_**2 / max(total - 1, 1)
        whole = float(np.sum(variance, dtype=np.float64)) * total
        self._total = whole / max(total - 1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.explained_variance_ratio_ = (self.singular_values_**2 / whole).astype(X.dtype)
        self.n_components_, self.n_samples_seen_ = k, total
        self.mean_, self.var_ = mean.astype(X.dtype), variance
        rest = float(np.square(stack, dtype=np.float64).sum() - np.square(self.singular_values_,
                                                                          dtype=np.float64).sum())
        others = min(stack.shape) - k
        self.noise_variance_ = max(rest, 0.0) / others / max(total - 1, 1) if others > 0 else 0.0
