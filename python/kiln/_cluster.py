"""K-Means."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._arrays import Matrix, matrix
from ._base import Estimator
from ._functions import multiply
from ._library import ModelError, ffi, lib, struct

_ALGORITHMS = {"auto": None, "lloyd": "KILN_KMEANS_LLOYD", "bounds": "KILN_KMEANS_BOUNDS",
               "elkan": "KILN_KMEANS_BOUNDS"}
_ENDLESS = 10**15  # batches; no run takes as many, and the library has them
_STARTS = {"k-means++": "KILN_INIT_PLUS", "k-means||": "KILN_INIT_PARALLEL", "random": "KILN_INIT_RANDOM"}

if TYPE_CHECKING:
    from typing_extensions import Self


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin,  # type: ignore[misc]
             Estimator):
    """Centres that make the sum of squared distances of the rows from the nearest one small, by Lloyd's
    iteration.

    init: "k-means++", "k-means||", "random", an array of centres, or a function of X, n_clusters and
    random_state that returns one; n_init: starts, of which the best is kept ("auto": 1, for "random" 10). The
    labels of float32 are those of float64. spherical: directions count; rows and centres are scaled to length
    1. algorithm: "lloyd" measures all distances and adds up all rows in each pass; with "bounds" a CPU
    measures the distances that the pass before leaves in doubt, and a GPU adds up the rows that change
    ("elkan" is another name for it); "auto": bounds on the CPU for 256 features or more, or where features
    times clusters are 65,536 or more, on a GPU from 64 MB on. Labels are the same. copy_x is taken and
    changes nothing: X is never written to.
    """

    _algorithm = "kmeans"
    _row_results = ("labels_",)
    _clusters: Any = None  # of each centre the rows' weight, their inertia and the radius; None: not known

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", n_init: Any = "auto",
                 max_iter: int = 300, tol: float = 1e-4, verbose: int = 0, random_state: Any = None,
                 copy_x: bool = True, algorithm: str = "auto", spherical: bool = False,
                 device: Any = "auto") -> None:
        self.n_clusters, self.init, self.n_init, self.max_iter, self.tol = (
            n_clusters, init, n_init, max_iter, tol)
        self.verbose, self.random_state, self.copy_x, self.algorithm, self.spherical = (
            verbose, random_state, copy_x, algorithm, spherical)
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Finds centres for X (n_samples, n_features), dense or sparse; y is ignored."""
        if self.algorithm not in _ALGORITHMS:
            raise ValueError(f"The 'algorithm' parameter of {type(self).__name__} must be one of "
                             f"{sorted(_ALGORITHMS)}. Got "
                             f"{self.algorithm!r} instead.")
        chosen = _ALGORITHMS[self.algorithm]
        self._cluster(self._checked(X), sample_weight, self._restarts(), algorithm=getattr(lib, chosen)
                      if chosen else None)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """fit(X).labels_"""
        return self.fit(X, y, sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """fit(X).transform(X)"""
        return self.fit(X, y, sample_weight).transform(X)

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
        random = check_random_state(self.random_state)
        if not given and self.init not in _STARTS:
            raise ValueError(f"The 'init' parameter of {type(self).__name__} must be one of "
                             f"{sorted(_STARTS)} or an array. Got "
                             f"{self.init!r} instead.")
        if given:
            init = self.init(X, self.n_clusters, random_state=random) if callable(self.init) else self.init
            start = np.array(init, operand.dtype, order="C")
            if start.shape != (self.n_clusters, operand.shape[1]):
                raise ValueError(f"The shape of the initial centers {start.shape} does not match the number "
                                 "of clusters "
                                 f"{self.n_clusters} and of features {operand.shape[1]}.")
            centres = matrix(start, where)
        else:
            centres = Matrix.empty(where, (self.n_clusters, operand.shape[1]), operand.dtype)
        labels = Matrix.empty(where, (rows, 1), operand.dtype)
        clusters = Matrix.empty(where, (self.n_clusters, 3), operand.dtype)
        self._run([centres, operand], init=lib.KILN_INIT_GIVEN if given else getattr(lib, _STARTS[self.init]),
                  restarts=restarts, seed=int(random.randint(2**31 - 1)),
                  spherical=int(self.spherical), tolerance=self.tol,
                  weights=None if weights is None else matrix(weights, where), labels=labels,
                  clusters=clusters, **{"max_iterations": self.max_iter, **options})
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
        """The distances of each row from every centre (n_samples, n_clusters). A sparse X is made dense for
        it."""
        check_is_fitted(self)
        X = self._scaled(self._validate(X, reset=False))
        where = self._place(X)
        if isinstance(X, Matrix) and X.sparse:
            X = X.numpy()
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
        where.call(lib.kiln_assign, wanted, operand.pointer, centres.pointer, weigh.pointer if weigh
                   else ffi.NULL)
        return -float(totals[:, 1].sum())

    def _scaled(self, X: Any) -> Any:
        return normalize(X.numpy() if isinstance(X, Matrix) else X) if self.spherical else X

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        texts = {"geometry": "spherical"} if self.spherical else {}
        known = {} if self._clusters is None else {"clusters": self._clusters}
        return {"centres": self.cluster_centers_, **known}, texts


class MiniBatchKMeans(KMeans):
    """K-Means by batches of rows drawn at random: a fraction of a pass each.

    max_iter counts passes over X, of as many batches as X has rows for. init_size and reassignment_ratio are
    taken and change nothing: starts are of all rows, and empty clusters are always moved. n_steps_: batches
    so far; n_iter_: the passes that these are, rounded up, of fit alone.
    """

    _steps = "batches"

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", max_iter: int = 100,
                 batch_size: int = 1024, verbose: int = 0, compute_labels: bool = True,
                 random_state: Any = None, tol: float = 0.0, max_no_improvement: int | None = 10,
                 init_size: int | None = None, n_init: Any = "auto", reassignment_ratio: float = 0.01,
                 spherical: bool = False, device: Any = "auto") -> None:
        # not the base's: it sets `algorithm`, which is no parameter here
        self.n_clusters, self.init, self.max_iter, self.batch_size, self.verbose = (
            n_clusters, init, max_iter, batch_size, verbose)
        self.compute_labels, self.random_state, self.tol, self.max_no_improvement = (
            compute_labels, random_state, tol, max_no_improvement)
        self.init_size, self.n_init, self.reassignment_ratio, self.spherical, self.device = (
            init_size, n_init, reassignment_ratio, spherical, device)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Finds centres for X (n_samples, n_features), dense or sparse; y is ignored."""
        X = self._checked(X)
        rows, batch, patience = X.shape[0], min(self.batch_size, X.shape[0]), self.max_no_improvement
        if patience is not None and not (isinstance(patience, (int, np.integer)) and patience >= 0):
            raise ValueError(f"The 'max_no_improvement' parameter of {type(self).__name__} must be an int "
                             f"from 0 on, or None. Got {patience!r} instead.")
        steps = max(1, self.max_iter * rows // batch)
        self._beginning = patience == 0  # the second batch, the first that counts, ends it unheard
        try:
            self._cluster(X, sample_weight, self._restarts(), batch=batch,
                          patience=0 if patience is None else min(int(patience), _ENDLESS),
                          max_iterations=min(steps, 2) if self._beginning else steps)
        finally:
            del self._beginning
        self.n_steps_ = self.n_iter_
        self.n_iter_ = -(-self.n_steps_ * batch // rows)
        if not self.compute_labels:
            del self.labels_
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Goes on with one batch: each centre becomes the mean of all rows that were nearest to it when they
        came. The first batch is clustered by Lloyd's iteration, and needs n_clusters rows at least; y is
        ignored."""
        if not hasattr(self, "cluster_centers_"):
            self._beginning = True
            try:
                self._cluster(self._checked(X), sample_weight, self._restarts())
            finally:
                del self._beginning
            self._forget_report()
            self.n_steps_ = 1
            if not self.compute_labels:
                del self.labels_
            return self
        if self._clusters is None:
            raise ModelError("this MiniBatchKMeans came without the weight of each centre's rows, which "
                             "partial_fit goes on from: fit it anew.")
        X = self._scaled(self._validate(X, reset=False))
        if isinstance(X, Matrix) and X.sparse:
            X = X.numpy()
        found = self._predict(X).numpy()
        labels, distances = found[:, 0].astype(np.int32), found[:, 1].astype(np.float64)
        weights = (np.ones(len(labels)) if sample_weight is None
                   else np.asarray(self._weights(sample_weight, X), np.float64))
        shares = csr_matrix((weights, labels, np.arange(len(labels) + 1)), (len(labels), self.n_clusters))
        sums = np.asarray(multiply(shares, X.toarray() if hasattr(X, "toarray") else X, transposed=True,
                                   device="cpu"), np.float64)
        known = self._clusters.astype(np.float64)
        added = np.bincount(labels, weights, self.n_clusters)
        total = known[:, 0] + added
        moved = added > 0
        centres = self.cluster_centers_.astype(np.float64)
        centres[moved] = (centres[moved] * known[moved, :1] + sums[moved]) / total[moved, None]
        self.cluster_centers_ = self._scaled(centres).astype(self.cluster_centers_.dtype)
        known[:, 0], known[:, 1] = (total, known[:, 1] + np.bincount(labels, weights * distances**2,
                                                                     self.n_clusters))
        np.maximum.at(known[:, 2], labels, distances)
        self._clusters = known.astype(self._clusters.dtype)
        self._forget_report()
        self.inertia_ = float(weights @ distances**2)
        self.n_steps_ += 1
        if self.compute_labels:
            self.labels_ = labels
        return self
