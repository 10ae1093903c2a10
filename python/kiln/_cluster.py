"""K-Means."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._arrays import Matrix, matrix
from ._base import Estimator
from ._library import ffi, lib, struct

_ALGORITHMS = {"auto": None, "lloyd": "KILN_KMEANS_LLOYD", "bounds": "KILN_KMEANS_BOUNDS"}
_STARTS = {"k-means++": "KILN_INIT_PLUS", "k-means||": "KILN_INIT_PARALLEL", "random": "KILN_INIT_RANDOM"}

if TYPE_CHECKING:
    from typing_extensions import Self


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):  # type: ignore[misc]
    """Centres that make the sum of squared distances of the rows from the nearest one small, by Lloyd's iteration.

    init: "k-means++", "k-means||", "random", or an array of centres; n_init: starts, of which the best is kept ("auto": 1, for
    "random" 10). The labels of float32 are those of float64. spherical: directions count; rows and centres are scaled to length 1.
    algorithm: "lloyd" measures all distances and adds up all rows in each pass; with "bounds" a CPU measures the distances that the
    pass before leaves in doubt, as "elkan" of scikit-learn does, and a GPU adds up the rows that change; "auto": bounds on the CPU for
    256 features or more, or where features times clusters are 65,536 or more, on a GPU from 64 MB on. Labels are the same.
    """

    _algorithm = "kmeans"

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", n_init: Any = "auto", max_iter: int = 300,
                 tol: float = 1e-4, spherical: bool = False, algorithm: str = "auto", random_state: Any = None,
                 device: Any = "auto", verbose: int = 0) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.spherical = spherical
        self.algorithm = algorithm
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Finds centres for X (n_samples, n_features), dense or sparse; y is ignored."""
        if self.algorithm not in _ALGORITHMS:
            raise ValueError(f"The 'algorithm' parameter of {type(self).__name__} must be one of {sorted(_ALGORITHMS)}. Got "
                             f"{self.algorithm!r} instead.")
        chosen = _ALGORITHMS[self.algorithm]
        self._cluster(self._checked(X), sample_weight, self._restarts(), algorithm=getattr(lib, chosen) if chosen else None)
        return self

    def _checked(self, X: Any) -> Any:
        """X as _cluster() takes it; the library itself finds what is not finite in a dense one."""
        return self._validate(X, ensure_all_finite=hasattr(X, "tocsr"))

    def _restarts(self) -> int:
        if self.n_init == "auto":
            return 10 if isinstance(self.init, str) and self.init == "random" else 1
        return int(self.n_init)

    def _cluster(self, X: Any, sample_weight: Any, restarts: int, **options: Any) -> None:
        rows = X.shape[0]
        if not 1 <= self.n_clusters <= rows:
            raise ValueError(f"n_samples={rows} should be >= n_clusters={self.n_clusters}.")
        where = self._place(X, self.n_clusters)
        operand = matrix(X, where)
        weights = self._weights(sample_weight, X)
        given = not isinstance(self.init, str)
        if not given and self.init not in _STARTS:
            raise ValueError(f"The 'init' parameter of {type(self).__name__} must be one of {sorted(_STARTS)} or an array. Got "
                             f"{self.init!r} instead.")
        if given:
            start = np.array(self.init, operand.dtype, order="C")
            if start.shape != (self.n_clusters, operand.shape[1]):
                raise ValueError(f"The shape of the initial centers {start.shape} does not match the number of clusters "
                                 f"{self.n_clusters} and of features {operand.shape[1]}.")
            centres = matrix(start, where)
        else:
            centres = Matrix.empty(where, (self.n_clusters, operand.shape[1]), operand.dtype)
        labels = Matrix.empty(where, (rows, 1), operand.dtype)
        clusters = Matrix.empty(where, (self.n_clusters, 3), operand.dtype)
        self._run([centres, operand], init=lib.KILN_INIT_GIVEN if given else getattr(lib, _STARTS[self.init]),
                  restarts=restarts, seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                  spherical=int(self.spherical), tolerance=self.tol, max_iterations=self.max_iter,
                  weights=None if weights is None else matrix(weights, where), labels=labels, clusters=clusters, **options)
        self.cluster_centers_ = centres.numpy()
        self.labels_ = labels.numpy()[:, 0].astype(np.int32)
        self.inertia_ = self.objective_
        self._clusters = clusters.numpy()
        self._n_features_out = self.n_clusters
        self.device_ = where.name

    def predict(self, X: Any) -> Any:
        """The number of the nearest centre of each row."""
        check_is_fitted(self)
        return self._predict(self._validate(X, reset=False)).numpy()[:, 0].astype(np.int32)

    def transform(self, X: Any) -> Any:
        """The distances of each row from every centre (n_samples, n_clusters). A sparse X is made dense for it."""
        check_is_fitted(self)
        X = self._scaled(self._validate(X, reset=False))
        where = self._place(X)
        operand = matrix(X.toarray() if hasattr(X, "toarray") else X, where)
        distances = Matrix.empty(where, (operand.shape[0], self.n_clusters), operand.dtype)
        centres = matrix(self.cluster_centers_, where, operand.dtype)
        where.call(lib.kiln_distances, distances.pointer, operand.pointer, centres.pointer)
        return distances.result()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances of the rows from their nearest centres."""
        check_is_fitted(self)
        X = self._scaled(self._validate(X, reset=False))
        where = self._place(X)
        operand = matrix(X, where)
        weights = self._weights(sample_weight, X)
        weigh = None if weights is None else matrix(weights, where)
        totals = np.zeros((self.n_clusters, 2))
        wanted = struct("kiln_assignment", totals=ffi.cast("double *", totals.ctypes.data))
        centres = matrix(self.cluster_centers_, where, operand.dtype)
        where.call(lib.kiln_assign, wanted, operand.pointer, centres.pointer, weigh.pointer if weigh else ffi.NULL)
        return -float(totals[:, 1].sum())

    def _scaled(self, X: Any) -> Any:
        return normalize(X) if self.spherical else X

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        texts = {"geometry": "spherical"} if self.spherical else {}
        return {"centres": self.cluster_centers_, "clusters": self._clusters}, texts


class MiniBatchKMeans(KMeans):
    """K-Means by batches of rows drawn at random: a fraction of a pass each."""

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", n_init: Any = "auto", max_iter: int = 100,
                 batch_size: int = 1024, tol: float = 1e-4, spherical: bool = False, random_state: Any = None,
                 device: Any = "auto", verbose: int = 0) -> None:
        # not the base's: it sets `algorithm`, which is no parameter here
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.tol = tol
        self.spherical = spherical
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Finds centres for X (n_samples, n_features), dense or sparse; y is ignored."""
        X = self._checked(X)
        self._cluster(X, sample_weight, self._restarts(), batch=min(self.batch_size, X.shape[0]))
        return self
