"""Multi-dimensional scaling."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._arrays import Matrix, matrix
from ._base import Estimator
from ._library import lib

_METRICS = {"ratio": "KILN_MDS_RATIO", "interval": "KILN_MDS_INTERVAL", "ordinal": "KILN_MDS_ORDINAL"}
_TIES = {"primary": "KILN_MDS_PRIMARY", "secondary": "KILN_MDS_SECONDARY"}
_STARTS = {"classical_mds": "KILN_MDS_TORGERSON", "random": "KILN_MDS_RANDOM"}

if TYPE_CHECKING:
    from typing_extensions import Self


class MDS(Estimator):
    """A layout in few dimensions whose distances come near those of the data, by SMACOF.

    metric: "ratio" (distances near the dissimilarities themselves), "interval" or "ordinal" (non-metric); dissimilarity:
    "euclidean" (X holds points) or "precomputed" (X is the symmetric matrix of dissimilarities; NaN is missing); init:
    "classical_mds", "random", or an array; ties: of "ordinal", "primary" lets equal dissimilarities have different distances,
    "secondary" does not.
    """

    _algorithm = "mds"

    def __init__(self, n_components: int = 2, *, metric: str = "ratio", dissimilarity: str = "euclidean",
                 ties: str = "primary", init: Any = "classical_mds", n_init: int = 1, max_iter: int = 1000, eps: float | None = None,
                 random_state: Any = None, device: Any = "auto", verbose: int = 0) -> None:
        self.n_components = n_components
        self.metric = metric
        self.dissimilarity = dissimilarity
        self.ties = ties
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.eps = eps
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.pairwise = self.dissimilarity == "precomputed"
        tags.input_tags.allow_nan = self.dissimilarity == "precomputed"
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Lays out X: points (n_samples, n_features), or dissimilarities (n_samples, n_samples); y is ignored."""
        for name, value, known in (("metric", self.metric, _METRICS), ("ties", self.ties, _TIES),
                                   ("dissimilarity", self.dissimilarity, ("euclidean", "precomputed"))):
            if value not in known:
                raise ValueError(f"The {name!r} parameter of MDS must be one of {sorted(known)}. Got {value!r} instead.")
        if not 1 <= self.n_components <= 64:
            raise ValueError(f"The 'n_components' parameter of MDS must be an int in the range [1, 64]. Got {self.n_components!r} instead.")
        missing = "allow-nan" if self.dissimilarity == "precomputed" else True
        X = self._validate(X, accept_sparse=False, ensure_all_finite=missing, ensure_min_samples=2)
        where = self._place(X, self.n_components)
        given = not isinstance(self.init, str)
        if given:
            Y = matrix(self._start(X), where)
        else:
            Y = Matrix.empty(where, (X.shape[0], self.n_components), X.dtype)
        points = Matrix.empty(where, (X.shape[0], 1), "float64" if where.has_f64 else X.dtype)
        self._run([Y, matrix(X, where)], metric=getattr(lib, _METRICS[self.metric]), ties=getattr(lib, _TIES[self.ties]),
                  init=lib.KILN_MDS_GIVEN if given else getattr(lib, _STARTS[self.init]),
                  dissimilarities=self.dissimilarity == "precomputed", restarts=self.n_init, tolerance=self.eps,
                  seed=int(check_random_state(self.random_state).randint(2**31 - 1)), max_iterations=self.max_iter,
                  point_stress=points)
        self.embedding_ = Y.numpy()
        self.stress_ = self.objective_
        self.stress_1_ = self.report_.figures["stress_1"]
        self.point_stress_ = points.numpy()[:, 0]
        self._points = None if self.dissimilarity == "precomputed" else X
        self.device_ = where.name
        return self

    def _start(self, X: Any) -> Any:
        start = np.array(self.init, X.dtype, order="C")
        if start.shape != (X.shape[0], self.n_components):
            raise ValueError(f"init must be of shape {(X.shape[0], self.n_components)}, got {start.shape}")
        return start

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).embedding_"""
        return self.fit(X).embedding_

    def place(self, X: Any) -> Any:
        """Where new rows go in the layout, which stays as it is (n_new, n_components). X: points, or their dissimilarities to those of
        the layout (n_new, n_samples). Of the metric "ratio" alone: the others' distances are near fitted values."""
        check_is_fitted(self)
        X = self._validate(X, reset=False, accept_sparse=False)
        return self._predict(X).result()

    def _content(self) -> tuple[dict[str, Any], dict[str, str]]:
        tensors = {"layout": self.embedding_}
        if self._points is not None:
            tensors["points"] = self._points
        return tensors, {"metric": self.metric}
