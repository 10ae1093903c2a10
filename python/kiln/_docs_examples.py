"""An example of each class and function, as doctest runs it."""

_LINE = "X, y = np.arange(8.0).reshape(-1, 1), 2 * np.arange(8.0) + 1"
_GROUPS = "X = np.array([[0.0, 0], [0, 1], [9, 9], [9, 8]])"
_COUNTS = "X = np.array([[4.0, 3, 0], [5, 4, 0], [0, 1, 6], [0, 0, 5]])"


def _session(*lines: str, numpy: bool = True) -> str:
    """Lines as a doctest; those that do not begin with ">" are what is printed."""
    begin = [">>> import numpy as np, kiln" if numpy else ">>> import kiln"]
    return "\n".join([*begin, *lines])


def _slope(call: str, printed: str, what: str = "model.coef_") -> str:
    return _session(f">>> {_LINE}", f">>> model = kiln.{call}.fit(X, y)",
                    f">>> np.round({what}, 2).tolist()", printed)


def _labels(call: str) -> str:
    return _session(f">>> {_LINE}", f">>> model = kiln.{call}.fit(X, y > 6)",
                    ">>> model.predict([[0.0], [7.0]])", "array([False,  True])")


EXAMPLES = {
    "LinearRegression": _slope("LinearRegression()", "[2.0]"),
    "Ridge": _slope("Ridge(alpha=2.0)", "[1.91]"),
    "RidgeCV": _slope("RidgeCV(alphas=[0.0, 10.0], cv=4)", "0.0", "model.alpha_"),
    "Lasso": _slope("Lasso(alpha=0.5)", "[1.9]"),
    "LassoCV": _slope("LassoCV(alphas=[0.5, 5.0], cv=4)", "0.5", "model.alpha_"),
    "ElasticNet": _slope("ElasticNet(alpha=0.5, l1_ratio=0.5)", "[1.86]"),
    "ElasticNetCV": _slope("ElasticNetCV(alphas=[0.5, 5.0], cv=4)", "0.5", "model.alpha_"),
    "PoissonRegressor": _slope("PoissonRegressor(alpha=0.1)", "[7.63]", "model.predict([[4.0]])"),
    "GammaRegressor": _slope("GammaRegressor(alpha=0.1)", "[7.53]", "model.predict([[4.0]])"),
    "TweedieRegressor": _slope("TweedieRegressor(power=1.5, alpha=0.1)", "[7.52]", "model.predict([[4.0]])"),
    "GeneralizedLinearRegressor": _slope("GeneralizedLinearRegressor('poisson', link='identity')", "[2.0]"),
    "GeneralizedLinearRegressorCV": _slope("GeneralizedLinearRegressorCV(alphas=[0.0, 5.0], cv=4)", "0.0",
                                           "model.alpha_"),
    "LogisticRegression": _labels("LogisticRegression(C=10.0)"),
    "LogisticRegressionCV": _labels("LogisticRegressionCV(Cs=[1.0, 10.0], cv=2)"),
    "LinearSVC": _labels("LinearSVC()"),
    "LinearSVR": _slope("LinearSVR(epsilon=0.1, C=100.0)", "[1.97]"),
    "KMeans": _session(f">>> {_GROUPS}", ">>> model = kiln.KMeans(2, random_state=0).fit(X)",
                       ">>> sorted(model.cluster_centers_.tolist())", "[[0.0, 0.5], [9.0, 8.5]]"),
    "MiniBatchKMeans": _session(f">>> {_GROUPS}",
                                ">>> model = kiln.MiniBatchKMeans(2, random_state=0).fit(X)",
                                ">>> len(set(model.predict(X).tolist()))", "2"),
    "MDS": _session(f">>> {_GROUPS}", ">>> model = kiln.MDS(2).fit(X)", ">>> bool(model.stress_ < 1e-12)",
                    "True"),
    "ALS": _session(">>> from scipy.sparse import csr_matrix",
                    ">>> ratings = csr_matrix([[5.0, 4, 0], [4, 0, 1], [0, 2, 5]])",
                    ">>> model = kiln.ALS(2, random_state=0).fit(ratings)",
                    ">>> model.recommend(ratings, top=1)[0].tolist()", "[[2], [1], [0]]"),
    "SFA": _session(">>> from scipy.sparse import csr_matrix",
                    ">>> ratings = csr_matrix([[5.0, 4, 0], [4, 0, 1], [0, 2, 5]])",
                    ">>> kiln.SFA(2, random_state=0).fit(ratings).row_factors_.shape", "(3, 2)"),
    "NMF": _session(f">>> {_COUNTS}", ">>> model = kiln.NMF(2, random_state=0, max_iter=1000).fit(X)",
                    ">>> model.transform(X).argmax(axis=1).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])", "True"),
    "LatentDirichletAllocation": _session(
        f">>> {_COUNTS}", ">>> model = kiln.LatentDirichletAllocation(2, random_state=0).fit(X)",
        ">>> np.round(model.transform(X).sum(axis=1), 6).tolist()", "[1.0, 1.0, 1.0, 1.0]"),
    "mmchain": _session(">>> X = np.array([[1.0, 2], [3, 4]])", ">>> kiln.mmchain(X, [1.0, 1.0])",
                        "array([24., 34.])"),
    "multiply": _session(">>> kiln.multiply(np.array([[1.0, 2], [3, 4]]), [1.0, 1.0])", "array([3., 7.])"),
    "spmm": _session(">>> from scipy.sparse import csr_matrix",
                     ">>> kiln.spmm(csr_matrix([[0.0, 2], [3, 0]]), np.eye(2)).tolist()",
                     "[[0.0, 2.0], [3.0, 0.0]]"),
    "sddmm": _session(">>> from scipy.sparse import csr_matrix",
                      ">>> S = csr_matrix([[0.0, 1], [1, 0]])",
                      ">>> kiln.sddmm(S, np.array([[1.0], [2]]), np.array([[3.0], [4]])).toarray().tolist()",
                      "[[0.0, 4.0], [6.0, 0.0]]"),
    "batch_reduce": _session(">>> kiln.batch_reduce(np.array([[1.0, 2], [3, 4]]), \"mean\")",
                             "array([1.5, 3.5])"),
    "batch_scale": _session(">>> kiln.batch_scale(np.array([[1.0, 2], [3, 4]]), [1.0, 10.0]).tolist()",
                            "[[1.0, 2.0], [30.0, 40.0]]"),
    "pagerank": _session(">>> from scipy.sparse import csr_matrix",
                         ">>> links = csr_matrix([[0.0, 1, 1], [0, 0, 1], [1, 0, 0]])",
                         ">>> np.round(kiln.pagerank(links).scores, 3)", "array([0.388, 0.215, 0.397])"),
    "hits": _session(">>> from scipy.sparse import csr_matrix",
                     ">>> links = csr_matrix([[0.0, 1, 1], [0, 0, 1], [0, 0, 0]])",
                     ">>> np.round(kiln.hits(links).authorities, 3)", "array([0.   , 0.382, 0.618])"),
    "enet_path": _session(f">>> {_LINE}", ">>> alphas, coefs, gaps = kiln.enet_path(X, y, alphas=[0.1, 1.0])",
                          ">>> alphas.tolist(), coefs.shape", "([1.0, 0.1], (1, 2))"),
    "lasso_path": _session(f">>> {_LINE}",
                           ">>> alphas, coefs, gaps = kiln.lasso_path(X, y, alphas=[0.1, 1.0])",
                           ">>> np.round(coefs, 2).tolist()", "[[2.14, 2.19]]"),
    "read": _session(">>> import os, tempfile",
                     ">>> path = os.path.join(tempfile.mkdtemp(), \"t.csv\")",
                     ">>> _ = open(path, \"w\").write(\"size,colour,price\\n1,red,3\\n2,blue,5\\n\")",
                     ">>> data = kiln.read(path, target=\"price\")",
                     ">>> data.feature_names, data.y.tolist()",
                     "(['size', 'colour=blue', 'colour=red'], [3.0, 5.0])"),
    "TableEncoder": _session(">>> import pandas as pd",
                             ">>> frame = pd.DataFrame({'size': [1.0, 2.0], 'colour': ['red', 'blue']})",
                             ">>> kiln.TableEncoder().fit(frame).get_feature_names_out().tolist()",
                             "['size', 'colour=blue', 'colour=red']", numpy=False),
    "devices": _session(">>> \"cpu\" in [row[\"name\"] for row in kiln.devices()]", "True", numpy=False),
    "doctor": _session(">>> len(kiln.doctor()) > 0", "True", numpy=False),
    "explain": _session(">>> sum(row[\"chosen\"] for row in kiln.explain((1000, 10)))", "1", numpy=False),
    "tune": _session(">>> plans = kiln.tune(np.eye(4), device=\"cpu\", repeats=1)",
                     ">>> any(plan[\"chosen\"] for plan in plans)", "True"),
    "device": _session(">>> kiln.device(\"cpu\").name", "'cpu'", numpy=False),
    "Device": _session(">>> where = kiln.Device(\"cpu\", threads=1)", ">>> where.threads", "1", numpy=False),
    "matrix": _session(">>> kiln.matrix(np.eye(2), \"cpu\")",
                       "<kiln.Matrix 2 x 2 float64, dense, on cpu>"),
    "Matrix": _session(">>> X = kiln.Matrix(np.eye(2))",
                       ">>> X.numpy().tolist()", "[[1.0, 0.0], [0.0, 1.0]]"),
    "Half": _session(">>> kiln.Half(np.eye(2), \"bfloat16\")", "<kiln.Half 2 x 2 bfloat16, on cpu>"),
    "results_on_device": _session(">>> with kiln.results_on_device():",
                                  "...     kiln.multiply(np.eye(2), np.eye(2), device=\"cpu\")",
                                  "<kiln.Matrix 2 x 2 float64, dense, on cpu>"),
    "kernels": _session(">>> isinstance(kiln.kernels(\"opencl\"), list)", "True", numpy=False),
    "build_kernels": _session(">>> kiln.build_kernels(\"kiln-kernels.pack\", \"sm_90\")  # doctest: +SKIP",
                              numpy=False),
    "processes": _session(">>> with kiln.processes() as where:  # doctest: +SKIP",
                          "...     if where:", "...         model = kiln.Ridge(device=where).fit(X, y)",
                          numpy=False),
    "checkpoint": _session(">>> import os, tempfile", f">>> {_LINE}",
                           ">>> path = os.path.join(tempfile.mkdtemp(), \"run.ckpt\")",
                           ">>> with kiln.checkpoint(path, resume=True):",
                           "...     model = kiln.LogisticRegression().fit(X, y > 6)",
                           ">>> model.converged_", "True"),
}
