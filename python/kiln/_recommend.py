"""Recommenders: factors of rows (users) and columns (items); what they say of pairs, lists, neighbours."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from ._arrays import Device, Matrix, as_csr, canonical, matrix
from ._base import check_fitted, not_negative
from ._dlpack import on_cuda, to_host
from ._factors import _Factors
from ._library import ArgumentError, check, ffi, lib
from ._ratings import Ratings, not_by_line
from ._rows import lists
from ._solve import choice
from ._words import warn

if TYPE_CHECKING:
    from typing_extensions import Self


class _Recommender(_Factors):
    """The prediction for a row u and a column i is mean_ + row_biases_[u] + column_biases_[i] +
    row_factors_[u] @ column_factors_[i]; mean_ and biases are 0 of a model without them. l2_ is the penalty
    that held. user_names_, item_names_: names of rows and columns, which are texts, or None; who asks by name
    is told names. A number is always a row or column, "3" the name: names that are given as numbers become
    their texts, and a number that is also the name of another row is warned of, once for a model."""

    mean_: float
    warm_start: bool
    user_names_: Any = None
    item_names_: Any = None
    _numbers_told = False  # whether the warning of numbers that are names, too, was given

    # ------------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, *, user_names: Any = None, item_names: Any = None) -> Self:
        """Factors X (n_users, n_items): the stored entries of a sparse matrix; of a dense array what is not
        0. y is ignored. X may be kiln.read_ratings(...), which has names. user_names, item_names: names of
        the rows and columns, which become texts; None: those of a frame's index and columns, if they are
        texts."""
        if isinstance(X, Ratings):
            X, user_names, item_names = X
        not_by_line(X, "fit")
        super().fit(X)
        index = getattr(X, "index", None)
        if user_names is None and index is not None and not callable(index) and index.dtype.kind not in "iuf":
            user_names = list(index)
        if item_names is None:
            item_names = getattr(self, "feature_names_in_", None)
        self.user_names_ = _names(user_names, len(self.row_factors_), "user_names")
        self.item_names_ = _names(item_names, len(self.column_factors_), "item_names")
        return self

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

    def _make(self, where: Device, A: Matrix, B: Matrix, made: Any) -> None:
        where.call(getattr(lib, f"kiln_{self._algorithm}_model"), made, A.pointer, B.pointer, self.mean_,
                   self._settings())

    def _whole_model(self, where: Device) -> Any:
        model = super()._whole_model(where)
        for key, names in (("rows", self.user_names_), ("columns", self.item_names_)):
            if names is not None:
                told = json.dumps(names.tolist())
                check(lib.kiln_model_set_text(model, key.encode(), told.encode()))
        return model

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """fit(X).row_factors_"""
        return self.fit(X).row_factors_

    @property
    def user_factors(self) -> Any:
        """row_factors_, by implicit's name."""
        return self.row_factors_

    @property
    def item_factors(self) -> Any:
        """column_factors_, by implicit's name."""
        return self.column_factors_

    # --------------------------------------------------------------------------------------- new rows

    def transform(self, X: Any) -> Any:
        """The factors of new rows (n_rows, n_components), those of the columns as they are (fold-in)."""
        check_is_fitted(self)
        A = self._fold_in(self._sparse(self._validate(self._by_name(X), reset=False)))
        if not self._has_biases:
            return A.result()
        factors = Matrix.empty(A.device, (A.shape[0], A.shape[1] - 1), A.dtype)
        first = Matrix(np.eye(A.shape[1], A.shape[1] - 1, dtype=A.dtype), A.device)
        A.device.call(lib.kiln_multiply, factors.pointer, 1.0, lib.KILN_PLAIN, A.pointer, first.pointer, 0.0,
                      ffi.NULL)
        return factors.result()

    def recalculate_user(self, userid: Any, user_items: Any) -> Any:
        """The factors of users as these ratings make them, a row of user_items for each; nothing is kept."""
        user_items = self._by_name(user_items, userid)
        return self._folded(userid, user_items)[0 if _is_one(userid) else slice(None)]

    def _folded(self, ids: Any, rows: Any) -> Any:
        found = self.transform(rows)
        return _as_many(found.numpy() if isinstance(found, Matrix) else found, ids)

    def partial_fit_users(self, userids: Any, user_items: Any) -> Self:
        """The users of these numbers or names get the factors that user_items, a row for each, gives them,
        those of the items as they are. New ones are added: numbers beyond the last, with zeros in between, or
        new names."""
        check_is_fitted(self)
        X = self._sparse(self._validate(self._by_name(user_items, userids), reset=False))
        A = _as_many(self._fold_in(X).numpy(), userids)
        self._put("row", "user", userids, A)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """New users, a row of X for each, behind those that are known; without any, fit(X). y is ignored."""
        if not hasattr(self, "row_factors_"):
            return self.fit(X)
        first = len(self.row_factors_)
        if self.user_names_ is not None:
            raise ValueError("the users of this model have names: partial_fit_users(names, X) adds new ones")
        return self.partial_fit_users(np.arange(first, first + X.shape[0]), X)

    def _put(self, side: str, what: str, ids: Any, found: Any) -> None:
        """Factors and biases of these users or items, which may be new."""
        factors, biases = (getattr(self, f"{side}_{part}_") for part in ("factors", "biases"))
        places = self._places_with_new(what, np.atleast_1d(np.asarray(ids)), len(factors))
        count = max(len(factors), int(places.max(initial=-1)) + 1)
        width = factors.shape[1]
        grown = np.zeros((count, width), factors.dtype), np.zeros(count, biases.dtype)
        grown[0][:len(factors)], grown[1][:len(biases)] = factors, biases
        grown[0][places] = found[:, :width]
        if self._has_biases:
            grown[1][places] = found[:, width]
        setattr(self, f"{side}_factors_", grown[0])
        setattr(self, f"{side}_biases_", grown[1])
        self._forget_report()

    def _places_with_new(self, what: str, ids: Any, count: int) -> Any:
        """Their numbers; names that are new become the next ones."""
        names = getattr(self, f"{what}_names_")
        self._mind_names(ids, what)
        if names is None:
            if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0):
                raise ValueError(f"{what}s of this model are integers from 0 on")
            return ids.astype(np.int64)
        if ids.dtype.kind in "iu":
            if ids.size and (ids.min() < 0 or ids.max() >= count):
                raise ValueError(f"the {what}s of this model have names: name the new ones")
            return ids.astype(np.int64)
        known = {name: place for place, name in enumerate(names.tolist())}
        places = np.array([known.setdefault(str(name), len(known)) for name in ids.tolist()], np.int64)
        setattr(self, f"{what}_names_", np.array(list(known), object))
        return places

    # ------------------------------------------------------------------------------------- single cells

    def predict(self, rows: Any, columns: Any = None) -> Any:
        """The predictions for rows[j] and columns[j], numbers or names of the rows and columns of the X that
        fit had; they broadcast. Without columns, for new rows as transform takes them, the number of the
        column that recommend puts first, -1 where none is left."""
        check_is_fitted(self)
        if columns is None:
            X = self._sparse(self._validate(self._by_name(rows), reset=False))
            return self._best(self._fold_in(X).numpy(), X, 1)[0][:, 0]
        rows, columns = self._numbers(rows, "user", "rows"), self._numbers(columns, "item", "columns")
        try:
            rows, columns = np.broadcast_arrays(rows, columns)
        except ValueError as error:
            raise ValueError(f"rows of shape {rows.shape} and columns of shape {columns.shape} do not "
                             "broadcast") from error
        products = np.einsum("...k,...k->...", self.row_factors_[rows], self.column_factors_[columns])
        return self.mean_ + self.row_biases_[rows] + self.column_biases_[columns] + products

    def _numbers(self, ids: Any, what: str, said: str) -> Any:
        """The numbers of users or items, which are told by number or name."""
        count = len(self.row_factors_ if what == "user" else self.column_factors_)
        given, names = np.asarray(ids), getattr(self, f"{what}_names_")
        if names is not None and _are_names(given):
            known = {name: place for place, name in enumerate(names.tolist())}
            told = [str(name) for name in given.ravel().tolist()]
            missing = [name for name in told if name not in known]
            if missing:
                raise ValueError(f"there is no {what} {missing[0]!r} among {count}")
            return np.array([known[name] for name in told], np.int64).reshape(given.shape)
        if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= count):
            raise ValueError(f"{said} must be integers from 0 to {count - 1}, those of the training data"
                             + ("" if names is None else f", or names, which are texts such as {names[0]!r}"))
        self._mind_names(given, what)
        return given.astype(np.int64)

    def _by_name(self, X: Any, ids: Any = None) -> Any:
        """X; of Ratings a matrix with a row for each of these users, None: for each of its own."""
        if not isinstance(X, Ratings):
            return not_by_line(X, "give")
        if self.user_names_ is None or self.item_names_ is None:
            raise ValueError("the ratings have names, but this model has none: fit it to them, or give rows "
                             "of their X")
        given = np.atleast_1d(np.asarray(X.user_names if ids is None else ids))
        named = given if _are_names(given) else self.user_names_[self._numbers(given, "user", "rows")]
        return X._of(named.tolist(), self.item_names_.tolist())

    def _mind_names(self, ids: Any, what: str) -> None:
        """Warns, once, of numbers that are names of others than the rows or columns of these numbers."""
        names = getattr(self, f"{what}_names_")
        if names is None or self._numbers_told or ids.dtype.kind not in "iu":
            return
        known = {name: place for place, name in enumerate(names.tolist())}
        for number in ids.ravel().tolist():
            if known.get(str(number), number) != number:
                side = "row" if what == "user" else "column"
                called = f", the {what} {names[number]!r}" if 0 <= number < len(names) else ""
                warn(f"{number} is taken for {side} {number}{called}: numbers are {side}s, and names are "
                     f"text, {str(number)!r} is the {what} of that name")
                self._numbers_told = True
                return

    # ------------------------------------------------------------------------------------- the best ones

    def _best_of_rows(self, rows: Any, seen: Any, N: int) -> Any:
        """The columns that recommend(rows, seen, N) puts first, which takes no number for a name."""
        return self._best(self._rows_of(rows), self._sparse(self._validate(seen, reset=False)), N)[0]

    def _rows_of(self, places: Any) -> Any:
        """These rows of A, as the library has them."""
        return self._beside(self.row_factors_[places], self.row_biases_[places])

    def recommend(self, userid: Any, user_items: Any = None, N: int = 10,
                  filter_already_liked_items: bool = True, filter_items: Any = None,
                  recalculate_user: bool = False, items: Any = None) -> tuple[Any, Any]:
        """The N best items of each user, best first, and their scores, which are predictions: (ids, scores),
        of one user (N,), of several (n_users, N); -1 and NaN where there are fewer.

        userid: a user's number or name, or several; or new rows of ratings, as transform takes them; or
        factors, a dense array of n_components columns, whose scores lack the users' biases. user_items: what
        they have, a row for each; of new rows these themselves; or kiln.read_ratings(...), in which they are
        found by name. filter_already_liked_items leaves that out.
        filter_items: items that are left out for all; items: those to choose among. recalculate_user: factors
        of user_items, not those that fit has left. Calls with names get names.
        """
        check_fitted(self)
        _at_least_one(N)
        userid = userid if isinstance(userid, str) else self._by_name(userid)
        user_items = self._by_name(user_items, userid)
        place = None if recalculate_user else self._place_of(userid, "user")
        if place is not None:
            kept = user_items if filter_already_liked_items else None
            A, seen, named = self._rows_of(place), self._liked(kept, 1), False
        else:
            A, seen, named = self._asked(userid, user_items, recalculate_user)
        if not filter_already_liked_items:
            seen = None
        elif seen is None:
            raise ValueError("filter_already_liked_items needs user_items, as a model does not keep what "
                             "it was fitted to: a row for each user, or what kiln.read_ratings returned; "
                             "filter_already_liked_items=False recommends what they have, too")
        N = _at_most(N, items, "items")
        columns, scores = self._best(A, seen, N, self._allowed("item", filter_items, items, "items"))
        if named:
            columns = self._called("item", columns)
        return (columns[0], scores[0]) if place is not None or _is_one(userid) else (columns, scores)

    def _called(self, what: str, numbers: Any) -> Any:
        """The names of these, None for -1; numbers where there are no names."""
        names = getattr(self, f"{what}_names_")
        if names is None:
            return numbers
        return np.where(numbers >= 0, names.astype(object)[numbers], None)

    def _allowed(self, what: str, without: Any, only: Any, said: str) -> Any:
        """A byte for each user or item, 0 where it is left out; None: none is."""
        if without is None and only is None:
            return None
        if without is not None and only is not None:
            raise ValueError(f"filter_{said} and {said} exclude each other")
        count = len(self.row_factors_ if what == "user" else self.column_factors_)
        allowed = np.full(count, only is None, np.uint8)
        allowed[self._numbers(without if only is None else only, what, said)] = only is not None
        return allowed

    def _best(self, A: Any, seen: Any, top: int, allowed: Any = None) -> tuple[Any, Any]:
        """The best columns of rows as the library has them, on the host: their bias meets no factor but 1."""
        biased, B = self._has_biases, self.column_factors_
        biases = A[:, -1].copy() if biased else None
        few = lists(self.device, np.ascontiguousarray(A[:, :-1] if biased else A, B.dtype), B, top,
                    seen=seen, allowed=allowed, offsets=self.column_biases_ if biased else None)
        if few is None and biased:
            A = A.copy()
            A[:, -1] = 1
        columns, scores = few or self._top(A, self._tensors()[1], top, allowed, seen)
        return columns, scores if biases is None else scores + self.mean_ + biases[:, None]

    def _top(self, A: Any, B: Any, top: int, allowed: Any = None, seen: Any = None) -> tuple[Any, Any]:
        """kiln_top_products of arrays."""
        where = self._place(self.column_factors_)
        left, right = (matrix(np.ascontiguousarray(F, B.dtype), where) for F in (A, B))
        without = None if seen is None else matrix(seen, where, right.dtype)
        columns, scores = np.empty((len(A), top), np.int64), np.empty((len(A), top))
        where.call(lib.kiln_top_products, ffi.from_buffer("int64_t[]", columns),
                   ffi.from_buffer("double[]", scores), top, left.pointer, right.pointer,
                   without.pointer if without else ffi.NULL,
                   ffi.NULL if allowed is None else ffi.from_buffer("unsigned char[]", allowed))
        return columns, scores

    def _place_of(self, ids: Any, what: str) -> slice | None:
        """The row of one user or item that is told by a number, where there are no names."""
        if type(ids) is not int or getattr(self, f"{what}_names_") is not None:
            return None
        count = len(self.row_factors_ if what == "user" else self.column_factors_)
        return slice(ids, ids + 1) if 0 <= ids < count else None

    def _liked(self, user_items: Any, count: int | None = None) -> Any:
        """user_items as X has it, of `count` users if that is known; None stays None."""
        if user_items is None:
            return None
        if isinstance(user_items, np.ndarray) and user_items.ndim == 1:
            user_items = user_items.reshape(1, -1)
        liked = self._sparse(self._validate(user_items, reset=False))
        if count is not None:
            self._check_liked(liked, count)
        return liked

    @staticmethod
    def _check_liked(liked: Any, count: int) -> None:
        if liked is not None and liked.shape[0] != count:
            raise ValueError(f"user_items has {liked.shape[0]} rows, but must have one for each user, "
                             f"{count}")

    def _asked(self, userid: Any, user_items: Any, recalculate: bool) -> tuple[Any, Any, bool]:
        """Rows of A on the host, what they have, as X has it, or None, and whether they were called by
        name."""
        liked = self._liked(user_items)
        new = self._new_rows(userid)
        if new is not None:
            A, own = new
            liked = own if liked is None else liked
        elif recalculate:
            if liked is None:
                raise ValueError("recalculate_user needs user_items, a row for each user")
            A = self._fold_in(liked).numpy()
        else:
            A = self._rows_of(np.atleast_1d(self._numbers(userid, "user", "rows")))
        count = len(A) if new is not None else np.asarray(userid).size
        self._check_liked(liked, count)
        return A, liked, new is None and _are_names(np.asarray(userid))

    def _new_rows(self, rows: Any) -> tuple[Any, Any] | None:
        """Rows of A for rows of ratings or for factors, and what the former have; None of numbers and
        names."""
        if isinstance(rows, Matrix):
            dense = None if rows.sparse else rows.numpy()
        elif hasattr(rows, "tocsr"):
            dense = None
        else:
            dense = to_host(rows) if on_cuda(rows) else np.asarray(rows)
            if dense.ndim < 2:
                return None
        if dense is not None and dense.shape[1] == self.row_factors_.shape[1]:
            dense = np.ascontiguousarray(dense, self.row_factors_.dtype)
            return self._beside(dense, np.zeros(len(dense), dense.dtype)), None
        X = self._sparse(self._validate(rows, reset=False))
        return self._fold_in(X).numpy(), X

    # ---------------------------------------------------------------------------------------- neighbours

    def similar_items(self, itemid: Any, N: int = 10, recalculate_item: bool = False, item_users: Any = None,
                      filter_items: Any = None, items: Any = None) -> tuple[Any, Any]:
        """The N items whose factors point most nearly the way of this one's, itself among them, or of each of
        several, and the cosines, without biases; -1 and NaN where there are fewer. filter_items: left out;
        items: those to choose among; recalculate_item: factors of item_users, a row of its users for each."""
        rows = self.recalculate_item(itemid, item_users) if recalculate_item else None
        return self._alike("item", itemid, N, filter_items, items, "items", rows)

    def similar_users(self, userid: Any, N: int = 10, filter_users: Any = None,
                      users: Any = None) -> tuple[Any, Any]:
        """The same of users."""
        return self._alike("user", userid, N, filter_users, users, "users", None)

    def recalculate_item(self, itemid: Any, item_users: Any) -> Any:
        """The factors of items as these ratings make them."""
        raise NotImplementedError(f"kiln.{type(self).__name__} finds no factors of new items: fit it again")

    def _alike(self, what: str, ids: Any, N: int, without: Any, only: Any, said: str,
               rows: Any) -> tuple[Any, Any]:
        check_fitted(self)
        _at_least_one(N)
        factors = self.row_factors_ if what == "user" else self.column_factors_
        N = _at_most(N, only, said)
        place = None if rows is not None else self._place_of(ids, what)
        if rows is None:
            rows = factors[self._numbers(ids, what, f"{what}id") if place is None else place]
        rows, allowed = np.atleast_2d(rows), self._allowed(what, without, only, said)
        numbers, cosines = (lists(self.device, rows, factors, N, cosines=True, allowed=allowed)
                            or self._top(_directions(rows), _directions(factors), N, allowed))
        if place is None and _are_names(np.asarray(ids)):
            numbers = self._called(what, numbers)
        return (numbers[0], cosines[0]) if _is_one(ids) else (numbers, cosines)


class ALS(_Recommender):
    """Alternating least squares: rows of a sparse X (users) times columns (items).

    Explicit ratings by default; implicit=True takes entries for how often something was seen, each with the
    confidence 1 + alpha |r|. confidence: "linear"; or "proportional", alpha |r|, as the package implicit has
    it; or "log", 1 + alpha log(1 + |r| / epsilon). biases: mean_ and a bias for each row and column beside
    n_components factors; None: of ratings, not of counts. l2: the penalty, with counted=True times the number
    of a row's entries; None: 0.8 d (sqrt(entries a row) + sqrt(entries a column)), d the ratings' standard
    deviation or 1 of counts; with counted 0.1 d. solver: "cg", "cholesky" or "ccd" (CCD++); None: "cg", or
    "cholesky" where its products would leave the type; steps: of "cg"
    for each row, of "ccd" for each factor; None: 3. warm_start: a fit goes on from the last one's factors;
    rows and columns beyond those it had are new.
    """

    _algorithm = "als"

    def __init__(self, n_components: int = 32, *, implicit: bool = False, alpha: float | None = None,
                 l2: float | None = None, biases: bool | None = None, counted: bool = False,
                 solver: str | None = None, steps: int | None = None, max_iter: int = 100, tol: float = 1e-4,
                 confidence: str = "linear", epsilon: float | None = None, warm_start: bool = False,
                 random_state: Any = None, device: Any = "auto", verbose: int = 0) -> None:
        self.n_components = n_components
        self.steps = steps
        self.warm_start = warm_start
        self.implicit = implicit
        self.alpha = alpha
        self.confidence = confidence
        self.epsilon = epsilon
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
        if not self.implicit and (self.alpha is not None or self.confidence != "linear"):
            name = "confidence" if self.alpha is None else "alpha"
            raise ArgumentError(f"{name}={getattr(self, name)!r} is of counts: it needs implicit=True")
        if self.epsilon is not None and self.confidence != "log":
            raise ArgumentError(f"epsilon={self.epsilon!r} is of confidence='log', got {self.confidence!r}")
        return {"implicit": self.implicit, "alpha": self.alpha, "l2": self.l2, "biases": self._biased(),
                "counted": self.counted, "steps": self.steps,
                "solver": self.solver and choice("als", "solver", self.solver),
                "confidence": choice("als", "confidence", self.confidence), "epsilon": self.epsilon}

    def _settings(self) -> Any:
        options = super()._settings()
        options.biases = self._has_biases
        return options

    def recalculate_item(self, itemid: Any, item_users: Any) -> Any:
        """The factors of items as these ratings make them, a row of item_users (users in columns) for each;
        nothing is kept."""
        found = self._fold_in_items(itemid, item_users)[:, :self.row_factors_.shape[1]]
        return found[0] if _is_one(itemid) else found

    def partial_fit_items(self, itemids: Any, item_users: Any) -> Self:
        """The items of these numbers or names get the factors that item_users, a row for each with users in
        columns, gives them, those of the users as they are. New ones are added as by partial_fit_users."""
        self._put("column", "item", itemids, self._fold_in_items(itemids, item_users))
        self.n_features_in_ = len(self.column_factors_)
        if hasattr(self, "feature_names_in_") and self.item_names_ is not None:
            self.feature_names_in_ = self.item_names_
        return self

    def _fold_in_items(self, ids: Any, item_users: Any) -> Any:
        """Rows of B: the model with its sides exchanged."""
        check_is_fitted(self)
        X = self._sparse(check_array(canonical(item_users), accept_sparse="csr",
                                     dtype=[np.float64, np.float32]))
        if X.shape[1] != len(self.row_factors_):
            raise ValueError(f"item_users has {X.shape[1]} columns, but must have one for each of "
                             f"{len(self.row_factors_)} users")
        where = self._place(X)
        A, B = self._tensors()
        R, made = matrix(X, where), ffi.new("kiln_matrix **")
        where.call(lib.kiln_transform, made, self._made(where, B[:1], A), R.pointer)
        return _as_many(Matrix.adopt(made[0], where).numpy(), ids)

    def explain(self, userid: Any, user_items: Any, itemid: Any, user_weights: Any = None,
                N: int = 10) -> tuple[float, list[tuple[Any, float]], Any]:
        """The user's items from which the preference for an item comes, with implicit=True: (score, the N
        largest of [(item, its part)], weights). user_items: all users' counts; weights, the user's matrix B^T
        C B + l2 as scipy.linalg.cho_factor has it, may be given back for the next item."""
        check_is_fitted(self)
        if not self.implicit:
            raise ValueError("explain is for implicit=True: of ratings, predict says how a score comes about")
        user, item = self._numbers(userid, "user", "userid"), self._numbers(itemid, "item", "itemid")
        row = (self._by_name(user_items, userid) if isinstance(user_items, Ratings)
               else as_csr(user_items)[[int(user)]])
        B, counts = self.column_factors_.astype(np.float64), row.data.astype(np.float64)
        own, confidences = B[row.indices], self._confidences(counts)
        if user_weights is None:
            l2 = self.l2_ * (len(counts) if self.counted else 1)
            user_weights = cho_factor(B.T @ B + (own.T * (confidences - 1)) @ own + l2 * np.eye(B.shape[1]))
        parts = np.where(counts > 0, own @ cho_solve(user_weights, B[item]) * confidences, 0.0)
        best = [place for place in np.argsort(-parts, kind="stable") if counts[place] > 0][:N]
        told = self._called("item", row.indices) if _are_names(np.asarray(itemid)) else row.indices
        return float(parts.sum()), [(told[place], float(parts[place])) for place in best], user_weights

    def _confidences(self, counts: Any) -> Any:
        alpha, size = 1.0 if self.alpha is None else self.alpha, np.abs(counts)
        if self.confidence == "proportional":
            return alpha * size
        return 1 + alpha * (np.log1p(size / (self.epsilon or 1.0)) if self.confidence == "log" else size)


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


def _names(names: Any, count: int, said: str) -> Any:
    """Names as an array of texts, or None."""
    if names is None:
        return None
    made = np.empty(len(names), object)
    made[:] = [str(name) for name in names]
    if len(made) != count or len(set(made.tolist())) != count:
        raise ValueError(f"{said} must be {count} different names, got {len(made)}, "
                         f"{len(set(made.tolist()))} of them different")
    return made


def _are_names(ids: Any) -> bool:
    return bool(ids.dtype.kind in "UO")


def _is_one(ids: Any) -> bool:
    return not hasattr(ids, "tocsr") and not isinstance(ids, Matrix) and np.ndim(ids) == 0


def _as_many(rows: Any, ids: Any) -> Any:
    """rows, of which there must be one for each."""
    if len(rows) != np.asarray(ids).size:
        raise ValueError(f"there are {len(rows)} rows for {np.asarray(ids).size} ids")
    return rows


def _at_least_one(N: Any, name: str = "N") -> None:
    if not isinstance(N, (int, np.integer)) or N < 1:
        raise ArgumentError(f"{name} must be an integer from 1 on, got {N!r}")


def _at_most(N: int, only: Any, said: str) -> int:
    """Returns how many of N there can be among these, all for None."""
    if only is None:
        return N
    count = np.asarray(only).size
    if not count:
        raise ArgumentError(f"{said} is empty, so that there is nothing to choose among")
    return min(N, count)


def _directions(factors: Any) -> Any:
    """Rows of length 1, or of zeros."""
    lengths = np.linalg.norm(factors, axis=1, keepdims=True)
    return np.ascontiguousarray(factors / np.where(lengths > 0, lengths, 1))
