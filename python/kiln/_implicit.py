"""The recommender of the package implicit, by the names that it has there."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ._arrays import Device, Matrix, device, with_threads
from ._base import not_negative
from ._library import ArgumentError
from ._ratings import Ratings
from ._recommend import ALS
from ._solve import choice

if TYPE_CHECKING:
    from typing_extensions import Self


def _alias(name: str) -> Any:
    """A parameter by the name that ALS has for it."""
    return property(operator.attrgetter(name), lambda model, value: setattr(model, name, value))


class AlternatingLeastSquares(ALS):
    """ALS of counts with the constructor, the defaults and the fit of implicit's class: factors of
    user_items, each count r with the confidence alpha r.

    regularization is l2 of ALS, iterations are made one and all, and factors are of dtype (float16: of
    float32). use_cg chooses between three steps of conjugate gradient for each row and Cholesky's
    factorisation. use_gpu: True is device="cuda", False "cpu"; None: as device says. num_threads: of the
    CPU, 0: all. calculate_training_loss: callbacks are told implicit's loss; the objective of each iteration
    is in report_.history as ever. use_native is taken and changes nothing: there is no other code. Starts are
    drawn in another way than implicit's, and a second fit begins anew.
    """

    # the rest of ALS's parameters
    implicit, biases, counted, confidence, epsilon = True, None, False, "proportional", None
    n_components, max_iter = _alias("factors"), _alias("iterations")
    steps, tol, warm_start, verbose = None, 0.0, False, 0
    _beginning = True  # iterations are a number that was asked for
    _names = {"l2": "regularization", "max_iterations": "iterations", "factors": "factors"}

    def __init__(self, factors: int = 100, regularization: float = 0.01, alpha: float = 1.0,
                 dtype: Any = np.float32, use_native: bool = True, use_cg: bool = True,
                 use_gpu: bool | None = None, iterations: int = 15, calculate_training_loss: bool = False,
                 num_threads: int = 0, random_state: Any = None, *, device: Any = "auto") -> None:
        # not the base's: its parameters follow from these
        self.factors, self.regularization, self.alpha, self.dtype = factors, regularization, alpha, dtype
        self.use_native, self.use_cg, self.use_gpu, self.iterations = use_native, use_cg, use_gpu, iterations
        self.calculate_training_loss, self.num_threads = calculate_training_loss, num_threads
        self.random_state, self.device = random_state, device

    @property
    def n_jobs(self) -> int | None:
        """num_threads, as joblib counts them."""
        return self.num_threads or None

    def fit(self, user_items: Any, show_progress: Any = True,
            callback: Callable[[int, float, float | None], Any] | None = None, *, user_names: Any = None,
            item_names: Any = None) -> Self:
        """Factors user_items (n_users, n_items), as ALS does. show_progress: True is a bar of the
        iterations; what else stands there, as a pipeline's y, is ignored. callback(iteration, seconds, loss)
        is called after each; loss is None unless calculate_training_loss."""
        kinds = {np.dtype(np.float16): np.float32}
        wanted = np.dtype(self.dtype)
        if wanted.kind != "f" or wanted.itemsize > 8:
            raise ArgumentError(f"The 'dtype' parameter of AlternatingLeastSquares must be float64, float32 "
                                f"or float16. Got {self.dtype!r} instead.")
        self._kind = np.dtype(kinds.get(wanted, wanted))
        self.verbose, self.callback = int(show_progress is True), None
        if callback is not None:
            R = user_items.X if isinstance(user_items, Ratings) else user_items
            self.callback = _Epochs(callback, self._cells(R) if self.calculate_training_loss else None)
        try:
            return super().fit(user_items, user_names=user_names, item_names=item_names)
        finally:
            del self._kind, self.verbose, self.callback

    @classmethod
    def load(cls, path: Any) -> Any:
        """kiln.load(path), which reads what save() has written."""
        from ._load import load

        return load(path)

    def _cells(self, R: Any) -> float:
        """The sum of all cells' confidences as implicit's loss has it."""
        R = self._sparse(R)
        R = R.numpy() if isinstance(R, Matrix) else R
        return float(self.alpha * R.sum(dtype=np.float64) + np.prod(R.shape, dtype=np.float64) - R.nnz)

    def _checked(self, X: Any) -> Any:
        X = super()._checked(X)
        return X if isinstance(X, Matrix) else X.astype(self._kind, copy=False)

    def _options(self) -> dict[str, Any]:
        not_negative(self, "regularization")
        return {"implicit": True, "alpha": self.alpha, "l2": self.regularization, "biases": False,
                "solver": None if self.use_cg else choice("als", "solver", "cholesky"),
                "confidence": choice("als", "confidence", self.confidence)}

    def _place(self, X: Any, columns: int = 1) -> Device:
        if self.use_gpu is None or self.device != "auto" or isinstance(X, Matrix):
            return super()._place(X, columns)
        return with_threads(device("cuda" if self.use_gpu else "cpu"), self.n_jobs)


class _Epochs:
    """implicit's callback as one of a run's."""

    def __init__(self, callback: Callable[[int, float, float | None], Any], cells: float | None) -> None:
        self.callback, self.cells, self.seconds, self.done = callback, cells, 0.0, 0

    def __call__(self, now: dict[str, Any]) -> None:
        if now["phase"] != "solve" or now["done"] <= self.done:
            return
        loss = None if self.cells is None else 2 * now["objective"] / self.cells
        self.callback(self.done, now["seconds"] - self.seconds, loss)
        self.done, self.seconds = now["done"], now["seconds"]
