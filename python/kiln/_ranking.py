"""This module judges lists of items and lists of words, by the library's definitions (kiln/metrics.h)."""
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ._arrays import Matrix, as_csr, device, matrix
from ._library import ArgumentError, ffi, lib, struct
from ._ratings import Ratings, not_by_line
from ._recommend import _at_least_one, _Recommender


def ranking_metrics_at_k(model: Any, train_user_items: Any, test_user_items: Any, K: int = 10,
                         show_progress: bool = False, num_threads: int = 0) -> dict[str, float]:
    """Judges the K best items of each user that has items in test_user_items, without those that
    train_user_items has: "precision", "map", "ndcg" and "auc" as implicit.evaluation's, "recall", the mean
    share of what K places have room for, and "coverage", the share of all items that somebody was
    recommended.

    model: one of Kiln's, or anything with implicit's recommend(userids, user_items, N=). kiln.Ratings must
    have the model's names, as those of train_test_split do. precision is hits
    over sum of min(K, a user's test items). show_progress and num_threads are taken and change nothing.

    Examples
    --------
    >>> import numpy, scipy.sparse, kiln
    >>> plays = scipy.sparse.random(60, 40, 0.2, format="csr", random_state=0)
    >>> train, test = kiln.train_test_split(plays, random_state=0)
    >>> model = kiln.ALS(4, implicit=True, random_state=0).fit(train)
    >>> sorted(kiln.ranking_metrics_at_k(model, train, test, K=5))
    ['auc', 'coverage', 'map', 'ndcg', 'precision', 'recall']
    """
    _at_least_one(K, "K")
    train, test = (_as_fitted(model, part) for part in (train_user_items, test_user_items))
    if train.shape != test.shape:
        raise ValueError(f"train_user_items is {train.shape}, test_user_items {test.shape}: they must be of "
                         "one shape")
    users = np.flatnonzero(np.diff(test.indptr))
    columns = np.full((0, K), -1, np.int64)
    if len(users):
        ours = getattr(type(model), "recommend", None) is _Recommender.recommend
        columns = np.ascontiguousarray(model._best_of_rows(users, train[users], K) if ours
                                       else model.recommend(users, train[users], N=K)[0], np.int64)
    wanted = test[users].astype(np.float64)
    where = device("cpu")
    made, operand = struct("kiln_ranking"), matrix(wanted, where)
    lists = ffi.from_buffer("int64_t[]", columns) if len(users) else ffi.new("int64_t[1]")
    where.call(lib.kiln_ranking_of, made, columns.shape[1], lists, operand.pointer)
    return {name: float(getattr(made, name)) for name in ("precision", "recall", "map", "ndcg", "auc",
                                                          "coverage")}


def _as_fitted(model: Any, part: Any) -> Any:
    """Ratings, or a matrix, whose rows and columns are those of the model."""
    if not isinstance(part, Ratings):
        return as_csr(not_by_line(part, "give"))
    # users and items that have come since the fit are behind the others
    if any(getattr(model, known, None) is not None and getattr(model, known)[:len(names)].tolist() != names
           for known, names in (("user_names_", part.user_names), ("item_names_", part.item_names))):
        raise ValueError("these ratings have other names than the model, or in another order: share "
                         "ratings out by kiln.train_test_split")
    return as_csr(part.X)


def train_test_split(ratings: Any, train_percentage: float = 0.8,
                     random_state: Any = None) -> tuple[Any, Any]:
    """Entries of a sparse matrix, or of kiln.Ratings, shared out: (train, test), of its shape and names; each
    goes to train with this probability. An entry's fate depends on its place and random_state alone.

    Examples
    --------
    >>> import scipy.sparse, kiln
    >>> train, test = kiln.train_test_split(scipy.sparse.eye(50, format="csr"), 0.5, random_state=0)
    >>> train.shape, train.nnz + test.nnz
    ((50, 50), 50)
    """
    if not 0 < train_percentage < 1:
        raise ArgumentError(f"train_percentage must be between 0 and 1, got {train_percentage!r}")
    if isinstance(ratings, Ratings):
        train, test = train_test_split(ratings.X, train_percentage, random_state)
        return ratings._replace(X=train), ratings._replace(X=test)
    where, seed = device("cpu"), int(check_random_state(random_state).randint(2**31 - 1))
    operand = matrix(as_csr(not_by_line(ratings, "share out")), where)
    parts = [ffi.new("kiln_matrix **") for _ in range(2)]
    where.call(lib.kiln_split_entries, *parts, operand.pointer, 1 - train_percentage, seed)
    train, test = (Matrix.adopt(part[0], where).numpy() for part in parts)
    return train, test


_HOW = ": the words, best first, are as np.argsort(-components_, axis=1)[:, :10] has them"
_KINDS = {"u_mass": "KILN_COHERENCE_UMASS", "c_npmi": "KILN_COHERENCE_NPMI"}


def coherence(topics: Any, X: Any, *, measure: str = "c_npmi", feature_names: Any = None) -> Any:
    """Says how well each topic's words go together in the documents X (n_documents, n_words), a sparse matrix
    of counts: an array of a number for each. topics: lists of different words, best first, numbers of columns
    or feature_names; or a fitted topic model, of whose topics the 10 best words count.

    measure: gensim's "u_mass", the mean of log((d(v, w) / N + 1e-12) / (d(w) / N)) over pairs in which w
    comes first, d the numbers of the N documents with these words; or "c_npmi", whose windows are whole
    documents here, since counts know no order.

    Examples
    --------
    >>> import scipy.sparse, kiln
    >>> X = scipy.sparse.csr_matrix([[1, 2, 0], [3, 1, 0], [0, 0, 1], [0, 0, 2.0]])
    >>> kiln.coherence([[0, 1], [0, 2]], X, measure="u_mass").round(1).tolist()
    [0.0, -26.9]
    """
    if measure not in _KINDS:
        raise ArgumentError(f"measure must be 'u_mass' or 'c_npmi', got {measure!r}")
    if hasattr(topics, "components_"):
        topics = np.argsort(-topics.components_, axis=1, kind="stable")[:, :10]
    lists = [_places(words, feature_names) for words in topics]
    most = max((len(words) for words in lists), default=1) or 1
    padded = np.full((len(lists), most), -1, np.int64)
    for row, words in zip(padded, lists):
        row[:len(words)] = words
    where = device("cpu")
    operand = matrix(as_csr(X), where)
    found = np.empty(len(lists))
    if len(lists):
        where.call(lib.kiln_coherence, ffi.from_buffer("double[]", found), getattr(lib, _KINDS[measure]),
                   len(lists), most, ffi.from_buffer("int64_t[]", padded), operand.pointer)
    return found


def _places(words: Any, names: Any) -> Any:
    """The numbers of words, which are told by number or by name."""
    if isinstance(words, str) or np.ndim(words) != 1:
        raise ArgumentError(f"topics must be lists of words, got {words!r} for one")
    words = list(words)
    for place, word in enumerate(words):
        if word in words[:place]:
            raise ArgumentError(f"a topic has the word {word!r} twice{_HOW}")
    if not any(isinstance(word, str) for word in words):
        numbers = np.asarray(words)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise ArgumentError("words must be numbers of columns, which are integers, or names, got "
                                f"{numbers.dtype}{_HOW}")
        numbers = numbers.astype(np.int64)
        if numbers.size and numbers.min() < 0:
            raise ArgumentError(f"there is no word {numbers.min()}: words are numbers of columns, from 0 on")
        return numbers
    if names is None:
        raise ArgumentError("words by name need feature_names")
    known = {name: place for place, name in enumerate(names)}
    missing = [word for word in words if word not in known]
    if missing:
        raise ValueError(f"there is no word {missing[0]!r} among {len(known)}")
    return np.array([known[word] for word in words], np.int64)
