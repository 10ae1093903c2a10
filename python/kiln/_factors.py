"""Factor models of sparse data."""
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative

from ._arrays import Device, Matrix, device as open_device, matrix
from ._base import Estimator, not_negative
from ._library import ffi, lib, struct
from ._solve import Report, choice


class _Factors(TransformerMixin, Estimator):  # type: ignore[misc]
    """Rows of a sparse X about their factors A (rows x n_components) times B^T: _options() says how, _take() names the results."""

    n_components: int
    max_iter: int
    tol: float
    random_state: Any

    def _options(self) -> dict[str, Any]:
        """Of the algorithm, those apart that all share."""
        raise NotImplementedError

    def _take(self, A: Any, B: Any) -> None:
        """The fitted attributes."""
        raise NotImplementedError

    def _tensors(self) -> tuple[Any, Any]:
        """A and B again."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Any:
        """Factors X (n_rows, n_columns): the stored entries of a sparse matrix; of a dense array what is not 0. y is ignored."""
        X = self._sparse(self._validate(X))
        where = self._place(X, self.n_components)
        R = matrix(X, where)
        A, B, warm = self._start(R)
        self._run([A, B, R], warm_start=warm, tolerance=self.tol, max_iterations=self.max_iter,
                  seed=int(check_random_state(self.random_state).randint(2**31 - 1)), **self._options())
        self._take(A.numpy(), B.numpy())
        self._n_features_out = self._width()
        self.device_ = where.name
        return self

    def _start(self, R: Matrix) -> tuple[Matrix, Matrix, int]:
        """A and B, and whether the library begins with what they hold."""
        A, B = (Matrix.empty(R.device, (count, self._width()), R.dtype) for count in R.shape)
        return A, B, 0

    def _width(self) -> int:
        """Columns of the factors."""
        return self.n_components

    def transform(self, X: Any) -> Any:
        """The factors of new rows, those of the columns as they are (fold-in)."""
        check_is_fitted(self)
        X = self._sparse(self._validate(X, reset=False))
        where = self._place(X)
        R, made = matrix(X, where), ffi.new("kiln_matrix **")
        where.call(lib.kiln_transform, made, self._model(where), R.pointer)
        return Matrix.adopt(made[0], where).result()

    @staticmethod
    def _sparse(X: Any) -> Any:
        if isinstance(X, Matrix) or hasattr(X, "tocsr"):
            return X
        import scipy.sparse

        return scipy.sparse.csr_matrix(X)

    def _settings(self) -> Any:
        """The options' struct with what was set."""
        options = struct(f"kiln_{self._algorithm}_options")
        for name, value in self._options().items():
            if value is not None and not isinstance(value, Matrix):
                setattr(options, name, value)
        return options

    def _make(self, where: Device, A: Matrix, B: Matrix, made: Any) -> None:
        """kiln_ALGORITHM_model, which knows the tensors' layout."""
        where.call(getattr(lib, f"kiln_{self._algorithm}_model"), made, A.pointer, B.pointer, self._settings())

    def _model(self, where: Device) -> Any:
        A, B = (Matrix(np.ascontiguousarray(factors), where) for factors in self._tensors())
        made = ffi.new("kiln_model **")
        self._make(where, A, B, made)
        return ffi.gc(made[0], lib.kiln_model_free)


class _Recommender(_Factors):
    mean_: float
    warm_start: bool

    def _take(self, A: Any, B: Any) -> None:
        self.row_factors_, self.column_factors_ = A, B
        self.mean_ = self.report_.figures["mean"]

    def _tensors(self) -> tuple[Any, Any]:
        return self.row_factors_, self.column_factors_

    def _start(self, R: Matrix) -> tuple[Matrix, Matrix, int]:
        last = getattr(self, "row_factors_", None), getattr(self, "column_factors_", None)
        if not self.warm_start or any(known is None or known.shape[1] != self._width() for known in last):
            return super()._start(R)
        random = check_random_state(self.random_state)
        A, B = (matrix(self._grown(known, count, R.dtype, random), R.device) for known, count in zip(last, R.shape))
        return A, B, 1

    def _grown(self, known: Any, count: int, dtype: Any, random: Any) -> Any:
        """Factors that are known, and small random ones for what has come since; a bias begins at 0."""
        new = 0.1 * random.normal(size=(max(0, count - len(known)), self._width()))
        if self._biased():
            new[:, -1] = 0
        return np.ascontiguousarray(np.vstack([known, new])[:count], dtype)

    def _biased(self) -> bool:
        """Whether the last column of the factors holds biases or means."""
        return True

    def similar(self, column: int, top: int = 10) -> tuple[Any, Any]:
        """The numbers of the `top` columns whose factors point most nearly the way of this one's, and the cosines; -1 and NaN where there
        are fewer."""
        check_is_fitted(self)
        columns, scores = np.empty(top, np.int64), np.empty(top)
        where = open_device("cpu")
        where.call(lib.kiln_similar, ffi.cast("int64_t *", columns.ctypes.data), ffi.cast("double *", scores.ctypes.data), top,
                   self._model(where), column)
        return columns, scores

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).row_factors_"""
        return self.fit(X).row_factors_

    def _make(self, where: Device, A: Matrix, B: Matrix, made: Any) -> None:
        where.call(getattr(lib, f"kiln_{self._algorithm}_model"), made, A.pointer, B.pointer, self.mean_, self._settings())

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


class ALS(_Recommender):
    """Alternating least squares: rows of a sparse R (users) times columns (items), R about A B^T.

    Explicit ratings by default; implicit=True takes entries for how often something was seen, with confidence 1 + alpha |r|.
    l2: the penalty, with counted=True times the number of a row's entries; None: the default of the kind. solver: "cg", "cholesky" or
    "ccd" (CCD++); steps: of "cg" for each row, of "ccd" for each factor; None: 3. warm_start: a fit goes on from the last one's factors; rows and columns beyond those it had are new.
    """

    _algorithm = "als"

    def __init__(self, n_components: int = 64, *, implicit: bool = False, alpha: float | None = None, l2: float | None = None,
                 biases: bool = False, counted: bool = False, solver: str = "cg", steps: int | None = None, max_iter: int = 100,
                 tol: float = 1e-4, warm_start: bool = False, random_state: Any = None, device: Any = "auto", verbose: int = 0) -> None:
        self.n_components = n_components
        self.steps = steps
        self.warm_start = warm_start
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

    def _biased(self) -> bool:
        return self.biases

    def _options(self) -> dict[str, Any]:
        not_negative(self, "l2")
        l2 = self.l2 if self.l2 is None or self.l2 > 0 else lib.KILN_NONE
        return {"implicit": self.implicit, "alpha": self.alpha, "l2": l2, "biases": self.biases, "counted": self.counted,
                "solver": choice("als", "solver", self.solver), "steps": self.steps}


class SFA(_Recommender):
    """Sparse factor analysis: ratings about their means, by conjugate gradient over all factors at once. The factors have a last column
    more than n_components, which holds the means."""

    _algorithm = "sfa"

    def __init__(self, n_components: int = 32, *, l2: float | None = None, damping: float | None = None, max_iter: int = 200,
                 tol: float = 1e-4, warm_start: bool = False, random_state: Any = None, device: Any = "auto", verbose: int = 0) -> None:
        self.n_components = n_components
        self.warm_start = warm_start
        self.l2 = l2
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _options(self) -> dict[str, Any]:
        not_negative(self, "l2", "damping")
        return {"l2": self.l2, "damping": self.damping}

    def _width(self) -> int:
        return self.n_components + 1


class _Topics(_Factors):
    def fit(self, X: Any, y: Any = None) -> Any:
        """Factors X (n_rows, n_columns), counts or other numbers that are not negative; y is ignored."""
        if not isinstance(X, Matrix):
            X = self._validate(X)
            check_non_negative(X, f"{type(self).__name__}.fit")
        return super().fit(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _take(self, A: Any, B: Any) -> None:
        self._rows, self.components_ = A, B.T.copy()

    def _tensors(self) -> tuple[Any, Any]:
        return self._rows, self.components_.T

    def perplexity(self, X: Any) -> float:
        """exp(- mean log-likelihood of a word) of the documents X, whose mixtures are found first; 1 is perfect."""
        check_is_fitted(self)
        X = self._sparse(self._validate(X, reset=False))
        where = self._place(X)
        R, made, value = matrix(X, where), ffi.new("kiln_matrix **"), ffi.new("double *")
        model = self._model(where)
        where.call(lib.kiln_transform, made, model, R.pointer)
        A = Matrix.adopt(made[0], where)
        where.call(lib.kiln_perplexity, value, model, A.pointer, R.pointer)
        return float(value[0])


class NMF(_Topics):
    """Non-negative factors of counts: minimises the generalised Kullback-Leibler divergence of X from W H by multiplicative updates.

    prior: None, or "gamma" (GaP): entries of W come from Gamma(shape, rate), and each row of H adds up to 1. init: "random", or at X's
    singular vectors, "nndsvd" and, without zeros, "nndsvda".
    """

    _algorithm = "gap"

    def __init__(self, n_components: int = 10, *, init: str = "random", prior: str | None = None, shape: float | None = None,
                 rate: float | None = None, max_iter: int = 200, tol: float = 1e-5, random_state: Any = None, device: Any = "auto",
                 verbose: int = 0) -> None:
        self.n_components = n_components
        self.init = init
        self.prior = prior
        self.shape = shape
        self.rate = rate
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _options(self) -> dict[str, Any]:
        if self.prior not in (None, "gamma"):
            raise ValueError(f"The 'prior' parameter of NMF must be None or 'gamma'. Got {self.prior!r} instead.")
        starts = {"random": lib.KILN_GAP_RANDOM, "nndsvd": lib.KILN_GAP_NNDSVD, "nndsvda": lib.KILN_GAP_NNDSVDA}
        if self.init not in starts:
            raise ValueError(f"The 'init' parameter of NMF must be one of {sorted(starts)}. Got {self.init!r} instead.")
        return {"init": starts[self.init], "prior": lib.KILN_GAP_GAMMA if self.prior else lib.KILN_GAP_NO_PRIOR, "shape": self.shape, "rate": self.rate}

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """W of the rows that it trains on."""
        return self.fit(X)._rows


class LatentDirichletAllocation(_Topics):
    """Topics of documents by variational Bayes, in full or in batches; parameters as scikit-learn's.

    components_ holds the parameters of the topics' distributions over words (n_components, n_features); transform gives each
    document's mixture. learn_alpha: a prior for each topic, fitted.
    """

    _algorithm = "lda"

    def __init__(self, n_components: int = 10, *, doc_topic_prior: float | None = None, topic_word_prior: float | None = None,
                 learning_method: str = "batch", learning_decay: float = 0.7, learning_offset: float = 10.0, batch_size: int = 128,
                 learn_alpha: bool = False, max_iter: int = 200, tol: float = 1e-5, random_state: Any = None, device: Any = "auto",
                 verbose: int = 0) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.batch_size = batch_size
        self.learn_alpha = learn_alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _options(self) -> dict[str, Any]:
        if self.learning_method not in ("batch", "online"):
            raise ValueError(f"The 'learning_method' parameter of LatentDirichletAllocation must be 'batch' or 'online'. Got "
                             f"{self.learning_method!r} instead.")
        options = {"alpha": self.doc_topic_prior, "eta": self.topic_word_prior, "learn_alpha": self.learn_alpha}
        if self.learning_method == "online":
            options.update(batch=self.batch_size, delay=self.learning_offset, decay=self.learning_decay)
        return options

    def fit(self, X: Any, y: Any = None) -> Any:
        """Finds topics in X (n_documents, n_words), counts; y is ignored."""
        self._alphas: Any = None
        return super().fit(X)

    def _run(self, operands: list[Matrix | None], **options: Any) -> Report:
        first = operands[0]
        assert first is not None
        alphas = Matrix.empty(first.device, (1, self.n_components), first.dtype)
        report = super()._run(operands, alphas=alphas, **options)
        self._alphas = alphas.numpy()
        return report

    def _make(self, where: Device, A: Matrix, B: Matrix, made: Any) -> None:
        alphas = Matrix(self._alphas, where)
        where.call(lib.kiln_lda_model, made, A.pointer, B.pointer, alphas.pointer, self._settings())

    def transform(self, X: Any) -> Any:
        """Each document's mixture of topics (n_documents, n_components), which adds up to 1."""
        check_is_fitted(self)
        return self._predict(self._sparse(self._validate(X, reset=False))).result()

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).transform(X)"""
        return self.fit(X).transform(X)
