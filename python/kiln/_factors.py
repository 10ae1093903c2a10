"""Factor models of sparse data."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import digamma, gammaln
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative

from ._arrays import Device, Matrix, device as open_device, matrix
from ._base import Estimator, not_negative
from ._dlpack import on_cuda, to_host
from ._functions import multiply, sddmm
from ._library import ArgumentError, UnsupportedError, check, ffi, lib
from ._solve import Report, algorithm_options, choice

if TYPE_CHECKING:
    from typing_extensions import Self


class _Factors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Rows of a sparse X about their factors A (rows x n_components) times B^T: _options() says how, _take()
    names the results."""

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factors X (n_rows, n_columns): the stored entries of a sparse matrix; of a dense array what is not
        0. y is ignored."""
        X = self._sparse(self._checked(X))
        where = self._place(X, self._width())
        R = matrix(X, where)
        A, B, warm = self._start(R)
        self._run([A, B, R], warm_start=warm, tolerance=self.tol, max_iterations=self.max_iter,
                  seed=int(self._random().randint(2**31 - 1)), **self._options())
        self._take(A.numpy(), B.numpy())
        self._n_features_out = self._components()
        self.device_ = where.name
        return self

    def _random(self) -> Any:
        """What numbers are drawn from."""
        return check_random_state(self.random_state)

    def _start(self, R: Matrix) -> tuple[Matrix, Matrix, int]:
        """A and B, and whether the library begins with what they hold."""
        A, B = (Matrix.empty(R.device, (count, self._width()), R.dtype) for count in R.shape)
        return A, B, 0

    def _checked(self, X: Any) -> Any:
        """X as fit() takes it."""
        return self._validate(X)

    def _components(self) -> int:
        """Factors, of an X that was looked at."""
        return self.n_components

    def _width(self) -> int:
        """Columns of A and B."""
        return self._components()

    def transform(self, X: Any) -> Any:
        """The factors of new rows, those of the columns as they are (fold-in)."""
        check_is_fitted(self)
        return self._fold_in(self._sparse(self._validate(X, reset=False))).result()

    def _fold_in(self, X: Any) -> Matrix:
        """A's rows for those of X."""
        where = self._place(X)
        R, made = matrix(X, where), ffi.new("kiln_matrix **")
        where.call(lib.kiln_transform, made, self._model(where), R.pointer)
        return Matrix.adopt(made[0], where)

    @staticmethod
    def _sparse(X: Any) -> Any:
        if hasattr(X, "tocsr") or (isinstance(X, Matrix) and X.sparse):
            return X
        import scipy.sparse

        entries = scipy.sparse.csr_matrix(np.asarray(X))
        return Matrix(entries, X.device) if isinstance(X, Matrix) else entries

    def _settings(self) -> Any:
        """The options' struct with what was set."""
        return algorithm_options(self._algorithm, {name: value for name, value in self._options().items()
                                                   if not isinstance(value, Matrix)})

    def _make(self, where: Device, A: Matrix, B: Matrix, made: Any) -> None:
        """kiln_ALGORITHM_model, which knows the tensors' layout."""
        where.call(getattr(lib, f"kiln_{self._algorithm}_model"), made, A.pointer, B.pointer,
                   self._settings())

    def _model(self, where: Device) -> Any:
        """With one row of A, which no use of a model but a file has need of."""
        A, B = self._tensors()
        return self._made(where, A[:1], B)

    def _whole_model(self, where: Device) -> Any:
        return self._made(where, *self._tensors())

    def _made(self, where: Device, *tensors: Any) -> Any:
        A, B = (Matrix(np.ascontiguousarray(factors), where) for factors in tensors)
        made = ffi.new("kiln_model **")
        self._make(where, A, B, made)
        return ffi.gc(made[0], lib.kiln_model_free)


class _Recommender(_Factors):
    """The prediction for a row u and a column i is mean_ + row_biases_[u] + column_biases_[i] +
    row_factors_[u] @ column_factors_[i]; mean_ and biases are 0 of a model without them. l2_ is the penalty
    that held."""

    mean_: float
    warm_start: bool

    def _biased(self) -> bool:
        """Whether A and B are to have a last column of biases or means."""
        return True

    def _width(self) -> int:
        return self.n_components + self._biased()

    def _take(self, A: Any, B: Any) -> None:
        figures = self.report_.figures
        self._know(A, B, figures["mean"], figures["l2"], self._biased())

    def _know(self, A: Any, B: Any, mean: float, l2: float, biased: bool) -> None:
        """The fitted attributes, of tensors as the library has them."""
        width = A.shape[1] - biased
        self.row_factors_, self.column_factors_ = (np.ascontiguousarray(F[:, :width]) for F in (A, B))
        self.row_biases_, self.column_biases_ = (F[:, width].copy() if biased else np.zeros(len(F), F.dtype)
                                                 for F in (A, B))
        self.mean_, self.l2_, self._has_biases = mean, l2, biased

    def _tensors(self) -> tuple[Any, Any]:
        return (self._beside(self.row_factors_, self.row_biases_),
                self._beside(self.column_factors_, self.column_biases_))

    def _beside(self, factors: Any, biases: Any) -> Any:
        return np.column_stack([factors, biases]) if self._has_biases else factors

    def _settings(self) -> Any:
        options = super()._settings()
        options.l2 = self.l2_
        check(lib.kiln_option_give(self._algorithm.encode(), options, b"l2"))
        return options

    def _start(self, R: Matrix) -> tuple[Matrix, Matrix, int]:
        last = self._tensors() if self.warm_start and hasattr(self, "row_factors_") else ()
        if not last or any(known.shape[1] != self._width() for known in last):
            return super()._start(R)
        random = check_random_state(self.random_state)
        A, B = (matrix(self._grown(known, count, R.dtype, random), R.device)
                for known, count in zip(last, R.shape))
        return A, B, 1

    def _grown(self, known: Any, count: int, dtype: Any, random: Any) -> Any:
        """Factors that are known, and small random ones for what has come since; a bias begins at 0."""
        new = 0.1 * random.normal(size=(max(0, count - len(known)), self._width()))
        if self._biased():
            new[:, -1] = 0
        return np.ascontiguousarray(np.vstack([known, new])[:count], dtype)

    def predict(self, rows: Any, columns: Any = None) -> Any:
        """The predictions for rows[j] and columns[j], numbers of the rows and columns of the X that fit had;
        they broadcast. Without columns, for new rows as transform takes them, the number of the column that
        recommend puts first, -1 where none is left."""
        check_is_fitted(self)
        if columns is None:
            X = self._sparse(self._validate(rows, reset=False))
            return self._best(self._fold_in(X), X, 1)[0][:, 0]
        rows, columns = (self._numbers(numbers, len(biases), name) for numbers, biases, name in
                         ((rows, self.row_biases_, "rows"), (columns, self.column_biases_, "columns")))
        try:
            rows, columns = np.broadcast_arrays(rows, columns)
        except ValueError as error:
            raise ValueError(f"rows of shape {rows.shape} and columns of shape {columns.shape} do not "
                             "broadcast") from error
        products = np.einsum("...k,...k->...", self.row_factors_[rows], self.column_factors_[columns])
        return self.mean_ + self.row_biases_[rows] + self.column_biases_[columns] + products

    @staticmethod
    def _at_least_one(top: Any) -> None:
        if not isinstance(top, (int, np.integer)) or top < 1:
            raise ArgumentError(f"top must be an integer from 1 on, got {top!r}")

    @staticmethod
    def _numbers(numbers: Any, count: int, name: str) -> Any:
        numbers = np.asarray(numbers)
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= count):
            raise ValueError(f"{name} must be integers from 0 to {count - 1}, those of the training data")
        return numbers.astype(np.int64)

    def transform(self, X: Any) -> Any:
        """The factors of new rows (n_rows, n_components), those of the columns as they are (fold-in)."""
        check_is_fitted(self)
        A = self._fold_in(self._sparse(self._validate(X, reset=False)))
        if not self._has_biases:
            return A.result()
        factors = Matrix.empty(A.device, (A.shape[0], A.shape[1] - 1), A.dtype)
        first = Matrix(np.eye(A.shape[1], A.shape[1] - 1, dtype=A.dtype), A.device)
        A.device.call(lib.kiln_multiply, factors.pointer, 1.0, lib.KILN_PLAIN, A.pointer, first.pointer, 0.0,
                      ffi.NULL)
        return factors.result()

    def similar(self, column: int, top: int = 10) -> tuple[Any, Any]:
        """The numbers of the `top` columns whose factors point most nearly the way of this one's, and the
        cosines; -1 and NaN where there are fewer."""
        check_is_fitted(self)
        self._at_least_one(top)
        columns, scores = np.empty(top, np.int64), np.empty(top)
        where = open_device("cpu")
        where.call(lib.kiln_similar, ffi.cast("int64_t *", columns.ctypes.data),
                   ffi.cast("double *", scores.ctypes.data), top, self._model(where), column)
        return columns, scores

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).row_factors_"""
        return self.fit(X).row_factors_

    def _make(self, where: Device, A: Matrix, B: Matrix, made: Any) -> None:
        where.call(getattr(lib, f"kiln_{self._algorithm}_model"), made, A.pointer, B.pointer, self.mean_,
                   self._settings())

    def recommend(self, rows: Any, seen: Any = None, top: int = 10) -> tuple[Any, Any]:
        """The numbers and the scores, which are predictions, of the `top` best columns of each row; -1 and
        NaN where there are fewer.

        rows: what transform takes, new rows of ratings or counts, whose own columns are left out; or numbers
        of rows that fit had; or factors, a dense array of n_components columns, whose scores lack the rows'
        biases. seen: a matrix of as many rows, whose stored entries are left out; of new rows in place of
        their own.
        """
        check_is_fitted(self)
        self._at_least_one(top)
        A, own = self._rows(rows)
        return self._best(A, own if seen is None else self._sparse(self._validate(seen, reset=False)), top)

    def _best(self, A: Matrix, seen: Any, top: int) -> tuple[Any, Any]:
        where = A.device
        without = None if seen is None else matrix(seen, where, A.dtype)
        columns, scores = np.empty((A.shape[0], top), np.int64), np.empty((A.shape[0], top))
        where.call(lib.kiln_recommend, ffi.cast("int64_t *", columns.ctypes.data),
                   ffi.cast("double *", scores.ctypes.data), top, self._model(where), A.pointer,
                   without.pointer if without else ffi.NULL)
        return columns, scores

    def _rows(self, rows: Any) -> tuple[Matrix, Any]:
        """Rows of A, and what is known of them as X has it, or None."""
        if not isinstance(rows, Matrix) and not hasattr(rows, "tocsr") and not on_cuda(rows):
            known = np.asarray(rows)
            if known.ndim < 2:
                return (self._placed(self._tensors()[0][np.atleast_1d(self._numbers(known,
                                                                                    len(self.row_biases_),
                                                                                    "rows"))]), None)
        dense = rows.numpy() if isinstance(rows,
                                           Matrix) and not rows.sparse else rows if hasattr(rows, "tocsr") else to_host(rows)
        if not isinstance(rows, Matrix) or not rows.sparse:
            if not hasattr(rows, "tocsr") and np.shape(dense)[1] == self.row_factors_.shape[1]:
                dense = np.asarray(dense, self.row_factors_.dtype)
                return self._placed(self._beside(dense, np.zeros(len(dense), dense.dtype))), None
        X = self._sparse(self._validate(rows, reset=False))
        return self._fold_in(X), X

    def _placed(self, A: Any) -> Matrix:
        return matrix(np.ascontiguousarray(A), self._place(self.column_factors_))


class ALS(_Recommender):
    """Alternating least squares: rows of a sparse X (users) times columns (items).

    Explicit ratings by default; implicit=True takes entries for how often something was seen, with confidence
    1 + alpha |r|. biases: mean_ and a bias for each row and column beside n_components factors; None: of
    ratings, not of counts. l2: the penalty, with counted=True times the number of a row's entries; None: 0.8
    d (sqrt(entries a row) + sqrt(entries a column)), d the ratings' standard deviation or 1 of counts; with
    counted 0.1 d. solver: "cg", "cholesky" or "ccd" (CCD++); steps: of "cg" for each row, of "ccd" for each
    factor; None: 3. warm_start: a fit goes on from the last one's factors; rows and columns beyond those it
    had are new.
    """

    _algorithm = "als"

    def __init__(self, n_components: int = 32, *, implicit: bool = False, alpha: float | None = None,
                 l2: float | None = None, biases: bool | None = None, counted: bool = False,
                 solver: str = "cg", steps: int | None = None, max_iter: int = 100, tol: float = 1e-4,
                 warm_start: bool = False, random_state: Any = None, device: Any = "auto",
                 verbose: int = 0) -> None:
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
        return not self.implicit if self.biases is None else bool(self.biases)

    def _options(self) -> dict[str, Any]:
        not_negative(self, "l2")
        return {"implicit": self.implicit, "alpha": self.alpha, "l2": self.l2, "biases": self._biased(),
                "counted": self.counted, "solver": choice("als", "solver", self.solver), "steps": self.steps}

    def _settings(self) -> Any:
        options = super()._settings()
        options.biases = self._has_biases
        return options


class SFA(_Recommender):
    """Sparse factor analysis: ratings about their means, by conjugate gradient over all factors at once. The
    biases are means, damped: sums divided by their count plus `damping`. l2: None: as of ALS."""

    _algorithm = "sfa"

    def __init__(self, n_components: int = 32, *, l2: float | None = None, damping: float | None = None,
                 max_iter: int = 200, tol: float = 1e-4, warm_start: bool = False, random_state: Any = None,
                 device: Any = "auto", verbose: int = 0) -> None:
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


class _Topics(_Factors):
    _rows: Any  # of the training data; None: not known

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factors X (n_rows, n_columns), counts or other numbers that are not negative; y is ignored."""
        return super().fit(X)

    def _checked(self, X: Any) -> Any:
        return self._not_negative(self._validate(X), "fit")

    def _not_negative(self, X: Any, method: str) -> Any:
        """X, without negative entries; of a kiln.Matrix the library looks at the counts."""
        if not isinstance(X, Matrix):
            check_non_negative(X, f"{type(self).__name__}.{method}")
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _take(self, A: Any, B: Any) -> None:
        self._rows, self.components_ = A, B.T.copy()

    def _tensors(self) -> tuple[Any, Any]:
        any_row = np.ones((1, len(self.components_)), self.components_.dtype)
        return any_row if self._rows is None else self._rows, self.components_.T

    def _whole_model(self, where: Device) -> Any:
        if self._rows is None:
            raise UnsupportedError(f"a model file holds the factors of the rows, which this "
                                   f"{type(self).__name__} of scikit-learn's does not know: fit Kiln's.")
        return super()._whole_model(where)

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """exp(- mean log-likelihood of a word) of the documents X, whose mixtures are found first; 1 is
        perfect. sub_sampling is taken and changes nothing: X alone counts."""
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
    """Non-negative factors of counts: minimises the generalised Kullback-Leibler divergence of X from W H by
    multiplicative updates.

    prior: None, or "gamma" (GaP): entries of W come from Gamma(shape, rate), and each row of H adds up to 1.
    init: "random", or at X's singular vectors, "nndsvd" and, without zeros, "nndsvda"; None: "nndsvda" where
    there are no more factors than rows and columns, else "random"; "custom": W and H of fit_transform.
    n_components: "auto" is the number of columns.

    n_components_; components_ (n_components, n_features): H; reconstruction_err_: the root of twice the
    divergence, without a prior. l1_ratio and shuffle are taken and change nothing; beta_loss, solver, alpha_W
    and alpha_H have one value each.
    """

    _algorithm = "gap"
    _only = {"beta_loss": (("kullback-leibler", 1),
                           "take beta_loss='kullback-leibler', or scikit-learn's class"),
             "solver": (("mu",), "take solver='mu', or scikit-learn's class for other divergences"),
             "alpha_W": ((0,), "take prior='gamma', or scikit-learn's class"),
             "alpha_H": (("same", 0), "take scikit-learn's class")}
    _also = {"n_components": (None, "auto")}
    _given: tuple[Any, Any] = None, None  # W and H of fit_transform

    def __init__(self, n_components: Any = 10, *, init: str | None = "random", solver: str = "mu",
                 beta_loss: Any = "kullback-leibler", tol: float = 1e-5, max_iter: int = 200,
                 random_state: Any = None, alpha_W: float = 0.0, alpha_H: Any = "same", l1_ratio: float = 0.0,
                 verbose: int = 0, shuffle: bool = False, prior: str | None = None,
                 shape: float | None = None, rate: float | None = None, device: Any = "auto") -> None:
        self.n_components, self.init, self.solver, self.beta_loss, self.tol = n_components, init, solver, beta_loss, tol
        self.max_iter, self.random_state, self.alpha_W, self.alpha_H, self.l1_ratio = max_iter, random_state, alpha_W, alpha_H, l1_ratio
        self.verbose, self.shuffle, self.prior, self.shape, self.rate, self.device = verbose, shuffle, prior, shape, rate, device

    def _components(self) -> int:
        wanted = self.n_components
        return int(self.n_features_in_ if wanted is None or isinstance(wanted, str) and wanted == "auto"
                   else wanted)

    def _options(self) -> dict[str, Any]:
        if self.prior not in (None, "gamma"):
            raise ValueError(f"The 'prior' parameter of NMF must be None or 'gamma'. Got {self.prior!r} "
                             "instead.")
        starts = {"random": lib.KILN_GAP_RANDOM, "custom": lib.KILN_GAP_RANDOM, "nndsvd": lib.KILN_GAP_NNDSVD,
                  "nndsvda": lib.KILN_GAP_NNDSVDA}
        if self.init is not None and self.init not in starts:
            raise ValueError(f"The 'init' parameter of NMF must be None or one of {sorted(starts)}. Got "
                             f"{self.init!r} instead.")
        return {"init": starts[self._init if self.init is None else self.init], "prior": lib.KILN_GAP_GAMMA
                if self.prior else lib.KILN_GAP_NO_PRIOR,
                "shape": self.shape, "rate": self.rate}

    def _start(self, R: Matrix) -> tuple[Matrix, Matrix, int]:
        self._init = "nndsvda" if self._components() <= min(R.shape) else "random"
        if self.init != "custom":
            return super()._start(R)
        factors = []
        for name, given, count in zip("WH", self._given, R.shape):
            shape = (count, self._components()) if name == "W" else (self._components(), count)
            if given is None or np.shape(given) != shape:
                raise ValueError(f"init='custom' of NMF needs {name} of shape {shape} in fit_transform(X, "
                                 "W=, H=), got "
                                 f"{'none' if given is None else np.shape(given)}.")
            factors.append(matrix(np.array(given if name == "W" else np.transpose(given), R.dtype, order="C"),
                                  R.device))
        return factors[0], factors[1], 1

    def _take(self, A: Any, B: Any) -> None:
        super()._take(A, B)
        self.n_components_ = A.shape[1]
        self.__dict__.pop("reconstruction_err_", None)
        if self.prior is None and "objective_" in vars(self):
            self.reconstruction_err_ = float(np.sqrt(2 * max(self.objective_, 0.0)))

    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Any:
        """W of the rows that it trains on. W, H: where to begin, with init="custom"."""
        self._given = W, H
        try:
            return self.fit(X)._rows
        finally:
            del self._given

    def inverse_transform(self, X: Any) -> Any:
        """X H of factors X (n_rows, n_components): the rows that they stand for."""
        check_is_fitted(self)
        return (X if hasattr(X, "tocsr") else np.asarray(to_host(X))) @ self.components_


class LatentDirichletAllocation(_Topics):
    """Topics of documents by variational Bayes, in full or in batches; parameters as scikit-learn's.

    components_ holds the parameters of the topics' distributions over words (n_components, n_features);
    transform gives each document's mixture. learn_alpha: a prior for each topic, fitted. n_jobs: threads.
    total_samples: documents in all, for partial_fit.

    bound_: the perplexity by the bound, of the documents of fit; doc_topic_prior_, topic_word_prior_: the
    priors that held; n_batch_iter_: batches so far; random_state_: what the seed of the start was drawn from.
    evaluate_every, perp_tol, mean_change_tol and
    max_doc_update_iter are taken and change nothing: `tol`, on the bound, says when to stop.
    """

    _algorithm = "lda"

    _names = {"alpha": "doc_topic_prior", "eta": "topic_word_prior", "decay": "learning_decay",
              "delay": "learning_offset"}

    def __init__(self, n_components: int = 10, *, doc_topic_prior: float | None = None,
                 topic_word_prior: float | None = None, learning_method: str = "batch",
                 learning_decay: float = 0.7, learning_offset: float = 10.0, max_iter: int = 200,
                 batch_size: int = 128, evaluate_every: int = -1, total_samples: float = 1e6,
                 perp_tol: float = 0.1, mean_change_tol: float = 1e-3, max_doc_update_iter: int = 100,
                 n_jobs: int | None = None, verbose: int = 0, random_state: Any = None,
                 learn_alpha: bool = False, tol: float = 1e-5, device: Any = "auto") -> None:
        self.n_components, self.doc_topic_prior, self.topic_word_prior = n_components, doc_topic_prior, topic_word_prior
        self.learning_method, self.learning_decay, self.learning_offset = learning_method, learning_decay, learning_offset
        self.max_iter, self.batch_size, self.evaluate_every, self.total_samples = max_iter, batch_size, evaluate_every, total_samples
        self.perp_tol, self.mean_change_tol, self.max_doc_update_iter = perp_tol, mean_change_tol, max_doc_update_iter
        self.n_jobs, self.verbose, self.random_state, self.learn_alpha = n_jobs, verbose, random_state, learn_alpha
        self.tol, self.device = tol, device

    def _options(self) -> dict[str, Any]:
        if self.learning_method not in ("batch", "online"):
            raise ValueError(f"The 'learning_method' parameter of LatentDirichletAllocation must be 'batch' "
                             "or 'online'. Got "
                             f"{self.learning_method!r} instead.")
        options = {"alpha": self.doc_topic_prior, "eta": self.topic_word_prior,
                   "learn_alpha": self.learn_alpha}
        if self.learning_method == "online":
            options.update(batch=self.batch_size, delay=self.learning_offset, decay=self.learning_decay)
        return options

    def fit(self, X: Any, y: Any = None) -> Self:
        """Finds topics in X (n_documents, n_words), counts; y is ignored."""
        self._alphas: Any = None
        self.random_state_ = check_random_state(self.random_state)
        super().fit(X)
        self.bound_ = self.report_.figures["perplexity_bound"]
        self.n_batch_iter_ = int(self.report_.figures.get("batches", self.n_iter_)) + 1
        return self

    def _random(self) -> Any:
        return self.random_state_

    @property
    def doc_topic_prior_(self) -> Any:
        """alpha: a number, or with learn_alpha one for each topic."""
        return self._alphas[0].copy() if self.learn_alpha else float(self._alphas[0, 0])

    @property
    def topic_word_prior_(self) -> float:
        """eta."""
        return (1 / self.components_.shape[0] if self.topic_word_prior is None
                else float(self.topic_word_prior))

    @property
    def exp_dirichlet_component_(self) -> Any:
        """exp(E log phi) of the topics (n_components, n_features)."""
        return np.exp(expected_logarithms(self.components_))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Goes on with these documents, in batches of batch_size, as learning_method="online" does with a
        corpus of total_samples of them: batch t moves components_ by (learning_offset + t)^-learning_decay of
        the way. The first call begins at random; y is ignored."""
        first = not hasattr(self, "components_")
        X = self._documents(self._not_negative(self._validate(X, reset=first), "partial_fit"))
        if first:
            self.random_state_ = random = check_random_state(self.random_state)
            self.components_ = random.gamma(100.0, 0.01, (self.n_components, X.shape[1])).astype(X.dtype)
            prior = 1 / self.n_components if self.doc_topic_prior is None else self.doc_topic_prior
            self._alphas = np.full((1, self.n_components), prior, X.dtype)
            self._rows = np.ones((1, self.n_components), X.dtype)
            self.n_batch_iter_, self._n_features_out = 1, self.n_components
        for begin in range(0, X.shape[0], self.batch_size):
            batch = X[begin:begin + self.batch_size]
            self._rows = self._gamma(batch)
            share = (self.learning_offset + self.n_batch_iter_) ** -self.learning_decay
            found = self._counts(batch, self._rows) * (self.total_samples
                                                       / batch.shape[0]) + self.topic_word_prior_
            self.components_ = ((1 - share) * self.components_ + share * found).astype(self.components_.dtype)
            self.n_batch_iter_ += 1
        self._forget_report()
        return self

    @staticmethod
    def _documents(X: Any) -> Any:
        """A validated X on the host, as SciPy's CSR."""
        return csr_matrix(X.numpy() if isinstance(X, Matrix) else X)

    def _gamma(self, X: Any) -> Any:
        """The parameters of the documents' distributions, whose means kiln_predict has."""
        mixtures = self._predict(X)
        words = np.asarray((X.numpy() if isinstance(X, Matrix) else X).sum(axis=1), np.float64).reshape(-1, 1)
        return (mixtures.numpy().astype(np.float64)
                * (words + float(self._alphas.sum()))).astype(mixtures.dtype)

    def _counts(self, X: Any, gamma: Any) -> Any:
        """How often each topic is expected to have each word of these documents (n_components,
        n_features)."""
        T, U = np.exp(expected_logarithms(gamma)), self.exp_dirichlet_component_.T.astype(np.float64)
        quotients = sddmm(X.astype(np.float64), T, U, kind="quotient", device="cpu")
        return (U * multiply(quotients, T, transposed=True, device="cpu")).T

    def score(self, X: Any, y: Any = None) -> float:
        """The variational lower bound of log p(X), documents and topics, as scikit-learn's."""
        check_is_fitted(self)
        X = self._documents(self._validate(X, reset=False))
        gamma, topics = self._gamma(X).astype(np.float64), self.components_.astype(np.float64)
        T, U = np.exp(expected_logarithms(gamma)), np.exp(expected_logarithms(topics)).T
        likely = X.data @ np.log(sddmm(X.astype(np.float64), T, U, device="cpu").data)
        return float(likely + _dirichlet_bound(self._alphas.astype(np.float64), gamma)
                     + _dirichlet_bound(np.full((1, topics.shape[1]), self.topic_word_prior_), topics))

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

    def transform(self, X: Any, *, normalize: bool = True) -> Any:
        """Each document's mixture of topics (n_documents, n_components), which adds up to 1; without
        normalize the parameters of its Dirichlet distribution, which add up to the document's words and the
        priors."""
        check_is_fitted(self)
        X = self._sparse(self._validate(X, reset=False))
        return self._predict(X).result() if normalize else self._gamma(X)

    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True) -> Any:
        """fit(X).transform(X)"""
        return self.fit(X).transform(X, normalize=normalize)


def expected_logarithms(parameters: Any) -> Any:
    """E log of what Dirichlet distributions draw, a row for each."""
    parameters = np.asarray(parameters, np.float64)
    return digamma(parameters) - digamma(parameters.sum(axis=1, keepdims=True))


def _dirichlet_bound(prior: Any, parameters: Any) -> float:
    """E log p - E log q, p of Dirichlet(prior) and q of Dirichlet(parameters), summed over rows."""
    found = (np.sum((prior - parameters) * expected_logarithms(parameters))
             + np.sum(gammaln(parameters) - gammaln(prior)))
    return float(found + np.sum(gammaln(prior.sum(axis=1)) - gammaln(parameters.sum(axis=1))))
