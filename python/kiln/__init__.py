"""Kiln: machine learning on large sparse and dense data at memory speed.

Estimators follow scikit-learn; functions take NumPy arrays, SciPy's sparse matrices and what offers DLPack.
"""
from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._arrays import Device, Matrix, device, matrix, results_on_device
    from ._checkpoint import checkpoint
    from ._cluster import KMeans, MiniBatchKMeans
    from ._cv import ElasticNetCV, GeneralizedLinearRegressorCV, LassoCV, LogisticRegressionCV, RidgeCV
    from ._decomposition import PCA, IncrementalPCA, TruncatedSVD
    from ._encoder import TableEncoder
    from ._factors import NMF, LatentDirichletAllocation
    from ._functions import Half, batch_reduce, batch_scale, mmchain, multiply, sddmm, spmm
    from ._graphs import hits, pagerank
    from ._library import (ArgumentError, DataError, DeviceError, FileError, KilnError, ModelError,
                           OutOfMemoryError, UnsupportedError)
    from ._implicit import AlternatingLeastSquares
    from ._inference import Inference
    from ._linear import (ElasticNet, GammaRegressor, GeneralizedLinearRegressor, Lasso, LinearRegression,
                          LinearSVC, LinearSVR, LogisticRegression, PoissonRegressor, Ridge, TweedieRegressor)
    from ._load import load
    from ._machine import build_kernels, devices, doctor, explain, kernels, processes, tune
    from ._manifold import MDS, SpectralEmbedding
    from ._onnx import to_onnx
    from ._path import enet_path, lasso_path
    from ._ranking import coherence, ranking_metrics_at_k, train_test_split
    from ._ratings import Ratings, read_ratings
    from ._read import read
    from ._recommend import ALS, SFA
    from ._scikit import from_sklearn, to_sklearn
    from ._stream import stream

    __version__: str

# Name -> the module that has it, which is loaded when the name is first used: scikit-learn only for an
# estimator.
_NAMES = {
    **dict.fromkeys(("KilnError", "ArgumentError", "DataError", "ModelError", "DeviceError",
                     "OutOfMemoryError", "FileError", "UnsupportedError"), "_library"),
    **dict.fromkeys(("Device", "Matrix", "device", "matrix", "results_on_device"), "_arrays"),
    **dict.fromkeys(("LinearRegression", "Ridge", "Lasso", "ElasticNet", "LogisticRegression",
                     "PoissonRegressor", "GammaRegressor", "TweedieRegressor",
                     "GeneralizedLinearRegressor", "LinearSVC", "LinearSVR"), "_linear"),
    "checkpoint": "_checkpoint",
    "Inference": "_inference",
    **dict.fromkeys(("KMeans", "MiniBatchKMeans"), "_cluster"),
    **dict.fromkeys(("RidgeCV", "LassoCV", "ElasticNetCV", "LogisticRegressionCV",
                     "GeneralizedLinearRegressorCV"), "_cv"),
    **dict.fromkeys(("MDS", "SpectralEmbedding"), "_manifold"),
    **dict.fromkeys(("PCA", "IncrementalPCA", "TruncatedSVD"), "_decomposition"),
    **dict.fromkeys(("enet_path", "lasso_path"), "_path"),
    **dict.fromkeys(("NMF", "LatentDirichletAllocation"), "_factors"),
    **dict.fromkeys(("ALS", "SFA"), "_recommend"),
    "AlternatingLeastSquares": "_implicit",
    **dict.fromkeys(("Ratings", "read_ratings"), "_ratings"),
    **dict.fromkeys(("coherence", "ranking_metrics_at_k", "train_test_split"), "_ranking"),
    "load": "_load",
    **dict.fromkeys(("from_sklearn", "to_sklearn"), "_scikit"),
    "to_onnx": "_onnx",
    **dict.fromkeys(("pagerank", "hits"), "_graphs"),
    **dict.fromkeys(("Half", "mmchain", "multiply", "spmm", "sddmm", "batch_reduce", "batch_scale"),
                    "_functions"),
    "read": "_read",
    "stream": "_stream",
    "TableEncoder": "_encoder",
    **dict.fromkeys(("build_kernels", "devices", "doctor", "explain", "kernels", "processes", "tune"),
                    "_machine"),
}

__all__ = [
    "ALS", "AlternatingLeastSquares", "ArgumentError", "DataError", "Device", "DeviceError", "ElasticNet",
    "ElasticNetCV", "FileError", "GammaRegressor", "GeneralizedLinearRegressor",
    "GeneralizedLinearRegressorCV", "Half", "IncrementalPCA", "Inference", "KMeans", "KilnError", "Lasso",
    "LassoCV", "LatentDirichletAllocation", "LinearRegression", "LinearSVC", "LinearSVR",
    "LogisticRegression", "LogisticRegressionCV", "MDS", "Matrix", "MiniBatchKMeans", "ModelError", "NMF",
    "OutOfMemoryError", "PCA", "PoissonRegressor", "Ratings", "Ridge", "RidgeCV", "SFA",
    "SpectralEmbedding", "TableEncoder", "TruncatedSVD", "TweedieRegressor", "UnsupportedError",
    "batch_reduce", "batch_scale", "build_kernels", "checkpoint", "coherence", "device", "devices",
    "doctor", "enet_path", "explain", "from_sklearn", "hits", "kernels", "lasso_path", "load", "matrix",
    "mmchain", "multiply", "pagerank", "processes", "ranking_metrics_at_k", "read", "read_ratings",
    "results_on_device", "sddmm", "spmm", "stream", "to_onnx", "to_sklearn", "train_test_split", "tune",
]

# A fork waits until a name's module is loaded: in the child nobody would go on with one half loaded, and
# whoever asks for it there would wait for ever.
_loading = threading.RLock()
os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release,
                    after_in_child=_loading.release)


def __getattr__(name: str) -> Any:
    with _loading:
        return _attribute(name)


def _attribute(name: str) -> Any:
    if name == "__version__":
        from ._library import lib, text

        return text(lib.kiln_version())
    if name in ("plot", "accel", "distributed"):
        return _module(name, name)
    if name not in _NAMES:  # name and obj let Python ask "Did you mean?"
        raise AttributeError(f"module 'kiln' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    value = getattr(_module(_NAMES[name], name), name)
    importlib.import_module("._docs", __name__).complete(value)
    globals()[name] = value
    return value


def _module(module: str, name: str) -> Any:
    try:
        return importlib.import_module(f".{module}", __name__)
    except ImportError as error:  # none, or a version that lacks a name
        from ._extras import missing

        raise missing(error, f"kiln.{name}") from error


def _warn_of_another_kiln() -> None:
    """Another project's package of this name, installed into the same folder, has replaced files or lost its
    own."""
    found = [name for name in os.listdir(os.path.dirname(os.path.dirname(__file__)))
             if name.startswith("kiln-") and name.endswith((".dist-info", ".egg-info"))]
    if found:
        import warnings

        warnings.warn(f"another distribution with a package 'kiln' is installed beside kiln-ml ({found[0]}), "
                      "and either may have replaced files of the other's: pip uninstall kiln kiln-ml, then "
                      "pip install kiln-ml", RuntimeWarning, stacklevel=3)


_warn_of_another_kiln()


def __dir__() -> list[str]:
    return [*__all__, "__version__", "accel", "distributed", "plot"]
