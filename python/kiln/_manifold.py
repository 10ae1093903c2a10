"""Multi-dimensional scaling and spectral embedding."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn.manifold
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import _VALID_METRICS
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from ._arrays import Matrix, matrix
from ._base import Estimator, not_negative
from ._library import UnsupportedError, lib

_METRICS = {"ratio": "KILN_MDS_RATIO", "interval": "KILN_MDS_INTERVAL", "ordinal": "KILN_MDS_ORDINAL"}
_TIES = {"primary": "KILN_MDS_PRIMARY", "secondary": "KILN_MDS_SECONDARY"}
_STARTS = {"classical_mds": "KILN_MDS_TORGERSON", "random": "KILN_MDS_RANDOM"}

if TYPE_CHECKING:
    from typing_extensions import Self


class MDS(Estimator):
    """A layout in few dimensions whose distances come near those of the data, by SMACOF.

    metric: "ratio" (distances near the dissimilarities themselves), "interval" or "ordinal" (non-metric);
    dissimilarity: "euclidean" (X holds points) or "precomputed" (X is the symmetric matrix of
    dissimilarities; NaN is missing); init: "classical_mds", "random", or an array; ties: of "ordinal",
    "primary" lets equal dissimilarities have different distances, "secondary" does not.

    scikit-learn's words are taken, too: metric=True or False, and metric_mds, say "ratio" or "ordinal";
    metric="euclidean", "precomputed" or another one of its distances, with metric_params, says what X holds.
    normalized_stress: whether stress_ is Stress-1 in place of the sum of squares over the pairs; "auto": of
    "ordinal". n_jobs: threads. dissimilarity_matrix_: what was laid out, where X held no points.
    """

    _algorithm = "mds"
    _joins = False
    _names = {"tolerance": "eps"}

    def __init__(self, n_components: int = 2, *, metric_mds: bool = True, n_init: int = 1,
                 init: Any = "classical_mds", max_iter: int = 1000, verbose: int = 0,
                 eps: float | None = None, n_jobs: int | None = None, random_state: Any = None,
                 dissimilarity: str = "euclidean", metric: Any = "ratio", metric_params: dict[str, Any]
                 | None = None, normalized_stress: Any = "auto", ties: str = "primary",
                 device: Any = "auto") -> None:
        self.n_components, self.metric_mds, self.n_init, self.init, self.max_iter = (
            n_components, metric_mds, n_init, init, max_iter)
        self.verbose, self.eps, self.n_jobs, self.random_state, self.dissimilarity = (
            verbose, eps, n_jobs, random_state, dissimilarity)
        self.metric, self.metric_params, self.normalized_stress, self.ties, self.device = (
            metric, metric_params, normalized_stress, ties, device)

    def _meant(self) -> tuple[str, Any]:
        """Says how distances are to come near, and what of: "euclidean", "precomputed", or another distance
        of scikit-learn's."""
        kind = "ratio" if self.metric_mds else "ordinal"
        if isinstance(self.metric, (bool, np.bool_)):
            return "ratio" if self.metric else "ordinal", self.dissimilarity
        if self.metric in _METRICS:
            if not self.metric_mds and self.metric == "interval":
                raise ValueError("metric='interval' of MDS is metric scaling: leave metric_mds=True, or take "
                                 "metric='ordinal'.")
            return kind if self.metric == "ratio" else self.metric, self.dissimilarity
        if self.dissimilarity == "precomputed" and self.metric not in ("euclidean", "precomputed"):
            raise ValueError(f"metric={self.metric!r} and dissimilarity='precomputed' of MDS exclude each "
                             "other.")
        if isinstance(self.metric, str) and self.metric not in (*_VALID_METRICS, "precomputed"):
            raise ValueError(f"metric={self.metric!r} of MDS is neither a kind of scaling, "
                             f"{sorted(_METRICS)}, nor 'precomputed', nor a distance that "
                             "sklearn.metrics.pairwise_distances knows.")
        return kind, "precomputed" if self.dissimilarity == "precomputed" else self.metric

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.pairwise = "precomputed" in (self.dissimilarity, self.metric)
        tags.input_tags.allow_nan = tags.input_tags.pairwise
        return tags

    def fit(self, X: Any, y: Any = None, init: Any = None) -> Self:
        """Lays out X: points (n_samples, n_features), or dissimilarities (n_samples, n_samples); y is
        ignored. init: an array, in place of the parameter."""
        self._check_only()
        for name, value, known in (("ties", self.ties, _TIES), ("dissimilarity", self.dissimilarity,
                                                                ("euclidean", "precomputed", "deprecated")),
                                   ("normalized_stress", self.normalized_stress, ("auto", True, False)),
                                   *([("init", self.init, _STARTS)] if isinstance(self.init, str) else [])):
            if value not in known:
                raise ValueError(f"The {name!r} parameter of MDS must be one of {sorted(known)}. Got "
                                 f"{value!r} instead.")
        if not 1 <= self.n_components <= 64:
            raise ValueError(f"The 'n_components' parameter of MDS must be an int in the range [1, 64]. Got "
                             f"{self.n_components!r} instead.")
        self._metric, of = self._meant()
        X = self._validate(X, accept_sparse=False, ensure_all_finite="allow-nan" if of == "precomputed"
                           else True, ensure_min_samples=2)
        self._points = X if of in ("euclidean", "deprecated") else None
        if of not in ("euclidean", "deprecated", "precomputed"):
            X = np.ascontiguousarray(pairwise_distances(X, metric=of, **(self.metric_params or {})), X.dtype)
        if self._points is None:
            self.dissimilarity_matrix_ = X
        elif hasattr(self, "dissimilarity_matrix_"):  # of a fit before this one
            del self.dissimilarity_matrix_
        where = self._place(X, self.n_components)
        start = self.init if init is None else init
        given = not isinstance(start, str)
        if given:
            Y = matrix(self._start(start, X), where)
        else:
            Y = Matrix.empty(where, (X.shape[0], self.n_components), X.dtype)
        points = Matrix.empty(where, (X.shape[0], 1), "float64" if where.has_f64 else X.dtype)
        self._run([Y, matrix(X, where)], metric=getattr(lib, _METRICS[self._metric]),
                  ties=getattr(lib, _TIES[self.ties]), init=lib.KILN_MDS_GIVEN if given
                  else getattr(lib, _STARTS[start]),
                  dissimilarities=self._points is None, restarts=self.n_init, tolerance=self.eps,
                  seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                  max_iterations=self.max_iter, point_stress=points)
        self.embedding_ = Y.numpy()
        self.stress_1_ = self.report_.figures["stress_1"]
        normalized = self._metric == "ordinal" if self.normalized_stress == "auto" else self.normalized_stress
        self.stress_ = self.stress_1_ if normalized else self.objective_
        self.point_stress_ = points.numpy()[:, 0]
        self.device_ = where.name
        return self

    def _start(self, init: Any, X: Any) -> Any:
        start = np.array(init, X.dtype, order="C")
        if start.shape != (X.shape[0], self.n_components):
            raise ValueError(f"init must be of shape {(X.shape[0], self.n_components)}, got {start.shape}")
        return start

    def fit_transform(self, X: Any, y: Any = None, init: Any = None) -> Any:
        """fit(X).embedding_"""
        return self.fit(X, init=init).embedding_

    def place(self, X: Any) -> Any:
        """The places of new rows in the layout, which stays as it is (n_new, n_components). X: points, or
        their dissimilarities to those of the layout (n_new, n_samples). Only for the metric "ratio": the
        others' distances are near fitted values."""
        check_is_fitted(self)
        X = self._validate(X, reset=False, accept_sparse=False)
        return self._predict(X).result()

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        tensors = {"layout": self.embedding_}
        if self._points is not None:
            tensors["points"] = self._points
        return tensors, {"metric": self._metric}


class SpectralEmbedding(Estimator):
    """Coordinates of a graph's vertices, or of points by the graph of their neighbours: eigenvectors of the
    normalised Laplacian over the roots of the degrees, but for the first, which is constant.

    affinity: "nearest_neighbors", "rbf", "precomputed" (X is the matrix of weights, sparse or dense, none
    negative; one that is not symmetric counts both ways), "precomputed_nearest_neighbors", or a function of
    X; gamma, n_neighbors and n_jobs are of these, as in scikit-learn. Weights of vertices with themselves are
    left out, but for those of a kiln.Matrix. Whatever eigen_solver says, each vector v ends with
    ||A v - s v|| at most eigen_tol for A = (1 + D^-1/2 W D^-1/2) / 2; "auto": 1e-8 of float64, 1e-5 of
    float32. eigenvalues_ are the Laplacian's, the first one with them, which is 0.
    """

    _algorithm = "spectral"
    _joins = False
    _names = {"tolerance": "eigen_tol"}
    _row_results = ("embedding_",)

    def __init__(self, n_components: int = 2, *, affinity: Any = "nearest_neighbors",
                 gamma: float | None = None, random_state: Any = None, eigen_solver: str | None = None,
                 eigen_tol: Any = "auto", n_neighbors: int | None = None, n_jobs: int | None = None,
                 max_iter: int | None = None, verbose: int = 0, device: Any = "auto") -> None:
        self.n_components, self.affinity, self.gamma, self.random_state, self.eigen_solver = (
            n_components, affinity, gamma, random_state, eigen_solver)
        self.eigen_tol, self.n_neighbors, self.n_jobs, self.max_iter, self.verbose, self.device = (
            eigen_tol, n_neighbors, n_jobs, max_iter, verbose, device)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity in ("precomputed", "precomputed_nearest_neighbors")
        return tags

    def _weights_of(self, X: Any) -> Any:
        """affinity_matrix_ of a validated X, and without its diagonal."""
        if self.affinity == "precomputed":
            self.affinity_matrix_ = X
        else:
            not_negative(self, "gamma")
            maker = sklearn.manifold.SpectralEmbedding(
                affinity=self.affinity, gamma=self.gamma, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs)
            self.affinity_matrix_ = maker._get_affinity_matrix(X)
            for name in ("gamma_", "n_neighbors_"):
                if hasattr(maker, name):
                    setattr(self, name, getattr(maker, name))
        if isinstance(self.affinity_matrix_, Matrix):
            return self.affinity_matrix_
        weights = check_array(self.affinity_matrix_, accept_sparse="csr", dtype=X.dtype, order="C", copy=True)
        if hasattr(weights, "tocsr"):
            rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
            weights.data[rows == weights.indices] = 0
            weights.eliminate_zeros()
        else:
            np.fill_diagonal(weights, 0)
        return weights

    def fit(self, X: Any, y: Any = None) -> Self:
        """Finds the coordinates of the rows of X: points (n_samples, n_features), or a graph's weights
        (n_samples, n_samples); y is ignored."""
        known = ("nearest_neighbors", "rbf", "precomputed", "precomputed_nearest_neighbors")
        if not (callable(self.affinity) or self.affinity in known):
            raise ValueError("The 'affinity' parameter of SpectralEmbedding must be one of "
                             f"{sorted(known)} or a callable. Got {self.affinity!r} instead.")
        X = self._validate(X, ensure_min_samples=2)
        weights = self._weights_of(X)
        vertices, k = weights.shape[0], int(self.n_components) + 1
        if weights.shape[1] != vertices:
            raise ValueError(f"the weights are {vertices} x {weights.shape[1]}, but rows and columns must be "
                             "the same vertices")
        if k > vertices:
            raise ValueError(f"n_components={self.n_components} must be less than the number of vertices, "
                             f"{vertices}")
        where = self._place(weights, k)
        operand = matrix(weights, where)
        s, V, roots = (Matrix.empty(where, shape, operand.dtype)
                       for shape in ((k, 1), (vertices, k), (vertices, 1)))
        self._run([None, s, V, operand], deviation=roots,
                  seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                  tolerance=None if self.eigen_tol == "auto" else self.eigen_tol,
                  max_iterations=self.max_iter)
        self._take(V.numpy(), s.numpy(), roots.numpy())
        self.device_ = where.name
        return self

    def _take(self, V: Any, s: Any, roots: Any) -> None:
        """Vectors (n, k + 1), the values of A (k + 1, 1) and the degrees' roots (n, 1)."""
        self._tensors = {"V": V, "s": s, "deviation": roots}
        self.eigenvalues_ = np.maximum(2 - 2 * s[:, 0], 0)
        found = V[:, 1:] / roots
        largest = found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])]
        self.embedding_ = found * np.where(largest < 0, -1, 1).astype(found.dtype)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).embedding_"""
        return self.fit(X).embedding_

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        if not hasattr(self, "_tensors"):
            raise UnsupportedError("scikit-learn's SpectralEmbedding keeps no eigenvectors to save: fit "
                                   "Kiln's.")
        return self._tensors, {}
