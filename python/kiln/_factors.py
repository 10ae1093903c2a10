"""Factor models of sparse data, and topics; recommenders are in _recommend.py."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import digamma, gammaln
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative

from ._arrays import Device, Matrix, as_csr, matrix
from ._base import Estimator
from ._dlpack import to_host
from ._functions import multiply, sddmm
from ._library import UnsupportedError, ffi, lib
from ._solve import Report, algorithm_options

if TYPE_CHECKING:
    from typing_extensions import Self


class _Factors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Rows of a sparse X about their factors A (rows x n_components) times B^T: _options() says how, _take()
    names the results."""

    _joins = False
    n_components: int
    max_iter: int
    tol: float
    random_state: Any

    def _options(self) -> dict[str, Any]:
        """The algorithm's options without those that all share."""
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

    def top_words(self, n: int = 10, feature_names: Any = None) -> list[list[tuple[Any, float]]]:
        """The n words with the largest share of each topic, best first: (word, share). Words are
        feature_names, or the names that the data or the model's file had, else numbers of columns."""
        check_is_fitted(self)
        names = self._word_names(feature_names)
        sums = self.components_.sum(axis=1, keepdims=True)
        shares = self.components_ / np.maximum(sums, np.finfo(self.components_.dtype).tiny)
        best = np.argsort(-shares, axis=1, kind="stable")[:, :n]
        return [[(int(j) if names is None else names[j], float(share[j])) for j in row]
                for row, share in zip(best, shares)]

    def _word_names(self, feature_names: Any = None) -> Any:
        return getattr(self, "feature_names_in_", None) if feature_names is None else list(feature_names)

    def coherence(self, X: Any, *, measure: str = "c_npmi", n: int = 10) -> Any:
        """Says how well the n best words of each topic go together in the documents X: kiln.coherence."""
        from ._ranking import coherence

        check_is_fitted(self)
        return coherence(np.argsort(-self.components_, axis=1, kind="stable")[:, :n], X, measure=measure)

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
    divergence, without a prior; report_.figures["side_gain"]: what the best W given H, and the best H given
    W, would take off the objective at most, where a fall of no more than tol has asked for that. l1_ratio and
    shuffle are taken and change nothing; beta_loss, solver, alpha_W and alpha_H have one value each.
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
        self.n_components, self.init, self.solver, self.beta_loss, self.tol = (
            n_components, init, solver, beta_loss, tol)
        self.max_iter, self.random_state, self.alpha_W, self.alpha_H, self.l1_ratio = (
            max_iter, random_state, alpha_W, alpha_H, l1_ratio)
        self.verbose, self.shuffle, self.prior, self.shape, self.rate, self.device = (
            verbose, shuffle, prior, shape, rate, device)

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
        self.n_components, self.doc_topic_prior, self.topic_word_prior = (
            n_components, doc_topic_prior, topic_word_prior)
        self.learning_method, self.learning_decay, self.learning_offset = (
            learning_method, learning_decay, learning_offset)
        self.max_iter, self.batch_size, self.evaluate_every, self.total_samples = (
            max_iter, batch_size, evaluate_every, total_samples)
        self.perp_tol, self.mean_change_tol, self.max_doc_update_iter = (
            perp_tol, mean_change_tol, max_doc_update_iter)
        self.n_jobs, self.verbose, self.random_state, self.learn_alpha = (
            n_jobs, verbose, random_state, learn_alpha)
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
        X = as_csr(self._not_negative(self._validate(X, reset=first), "partial_fit"))
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

    def _gamma(self, X: Any) -> Any:
        """The parameters of the documents' distributions, whose means kiln_predict has."""
        mixtures = self._predict(X)
        words = np.asarray((X.numpy() if isinstance(X, Matrix) else X).sum(axis=1), np.float64).reshape(-1, 1)
        return (mixtures.numpy().astype(np.float64)
                * (words + float(self._alphas.sum()))).astype(mixtures.dtype)

    def _counts(self, X: Any, gamma: Any) -> Any:
        """Counts how often each topic is expected to have each word of these documents (n_components,
        n_features)."""
        T, U = np.exp(expected_logarithms(gamma)), self.exp_dirichlet_component_.T.astype(np.float64)
        quotients = sddmm(X.astype(np.float64), T, U, kind="quotient", device="cpu")
        return (U * multiply(quotients, T, transposed=True, device="cpu")).T

    def score(self, X: Any, y: Any = None) -> float:
        """The variational lower bound of log p(X), documents and topics, as scikit-learn's."""
        check_is_fitted(self)
        X = as_csr(self._validate(X, reset=False))
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

    def _predict(self, X: Any) -> Matrix:
        """kiln_predict of a validated X; few documents need the topics' shares of their own words alone."""
        if isinstance(X, Matrix) or 4 * X.nnz > X.shape[1]:
            return super()._predict(X)
        words, places = np.unique(X.indices, return_inverse=True)
        sums = self.components_.sum(axis=1, dtype=np.float64)
        known = self.components_[:, words]
        # all the other words count as one, of which there is none in X
        rest = np.maximum(sums - known.sum(axis=1, dtype=np.float64), np.finfo(known.dtype).tiny)
        where, made = self._place(X), ffi.new("kiln_matrix **")
        shares = np.vstack([known.T, rest.astype(known.dtype)])
        documents = csr_matrix((X.data, places.astype(np.int32), X.indptr), (X.shape[0], len(words) + 1))
        operand = matrix(documents, where)
        where.call(lib.kiln_predict, made, self._made(where, self._tensors()[0][:1], shares), operand.pointer)
        return Matrix.adopt(made[0], where)

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
