"""The Python package as an entrance: takes the tool's arguments, calls the estimator that means the same, and
reports as the tool does. What is judged is the model that save() wrote, predict() and score().

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import typing
import warnings

import numpy as np
import scipy.sparse

from runs import Run, Tool

Options = dict[str, typing.Any]
FLAGS = {
    "no-intercept",
    "standardize",
    "standard-errors",
    "regression",
    "unweighted",
    "no-biases",
    "counted",
    "implicit",
    "deterministic",
    "probabilities",
    "decision",
    "scale",
}
CODES = {"ArgumentError": 2, "UnsupportedError": 2, "ValueError": 2, "DataError": 3, "ModelError": 7}


def parse(arguments: typing.Sequence[object]) -> tuple[list[str], Options]:
    """Names of files, and options by name."""
    files, options, words = [], {}, list(map(str, arguments))
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            files.append(word)
            continue
        name = word.lstrip("-")
        options[name] = True if name in FLAGS else words.pop(0)
    return files, options


def number(options: Options, name: str, default: typing.Any = None, kind: type = float) -> typing.Any:
    return kind(options[name]) if name in options else default


def read(path: pathlib.Path) -> typing.Any:
    """The matrix that draw.write_matrix wrote, sparse where the format is."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".csv":
        return read_table(path)
    if path.suffix == ".npz":
        return scipy.sparse.load_npz(path).tocsr()
    if path.suffix == ".mtx":
        return scipy.sparse.csr_matrix(read_coordinates(path))
    raise ValueError(f"no reader for {path.name}")


def read_table(path: pathlib.Path) -> np.ndarray:
    """The numbers of a table, a column for each level of those of text."""
    columns = np.loadtxt(path, str, delimiter=",", skiprows=1, ndmin=2).T
    texts = [column[0].startswith("level") for column in columns]
    parts = [np.unique(c) == c[:, None] if text else c[:, None] for c, text in zip(columns, texts)]
    return np.hstack([part.astype(float) for part in parts])


def read_coordinates(path: pathlib.Path) -> scipy.sparse.coo_matrix:
    _, size, *lines = path.read_text().splitlines()
    rows, columns, _ = map(int, size.split())
    entries = np.array([line.split() for line in lines], float).reshape(-1, 3)
    return scipy.sparse.coo_matrix(
        (entries[:, 2], (entries[:, 0].astype(int) - 1, entries[:, 1].astype(int) - 1)), (rows, columns)
    )


class Package(Tool):
    """One process for all problems. Devices are opened once by name, threads and determinism."""

    validated, needs_groups, holds_out = ("linreg", "logreg"), True, False
    starts_warm = centres = False
    scores_given, least_probability = True, float(np.finfo(float).eps)
    devices: dict[tuple[str, int, bool], typing.Any] = {}
    models: dict[str, typing.Any]

    def __init__(self, folder: pathlib.Path, options: list[str], seconds: float = 60) -> None:
        import kiln

        super().__init__(str(pathlib.Path(kiln.__file__).parent), folder, options, seconds)
        self.kiln, self.models = kiln, {}
        _, shared = parse(options)
        self.type = np.float32 if shared["type"] == "f32" else np.float64
        key = shared["device"], int(shared.get("threads", 0)), "deterministic" in shared
        if key not in self.devices:
            self.devices[key] = kiln.Device(key[0], threads=key[1], deterministic=key[2])
        self.device = self.devices[key]

    def run(self, verb: str, *arguments: object, shared: bool = True) -> Run:
        command = ["kiln", verb, *map(str, arguments), *(self.options if shared else [])]
        self.commands.append(" ".join(["(package)", *command[1:]]))
        files, options = parse(arguments)
        said = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                code, out = 0, getattr(self, verb)(files, options)
            except (self.kiln.KilnError, ValueError) as error:  # a fault of neither kind is a finding
                code = CODES.get(type(error).__name__, 1)
                out, said = {"error": str(error)}, f"{type(error).__name__}: {error}"
        messages = [f"warning: {w.message}" for w in caught]
        return Run(code, out, "\n".join([said, *messages]), command)

    def verify(self, *arguments: object) -> "Run | None":
        """The judgement of the tool that KILN_TOOL names of the model that save() wrote; None without either:
        rankings are no models."""
        tool = os.environ.get("KILN_TOOL")
        saved = (self.folder / "model.kiln").exists()
        return Tool(tool, self.folder, [], self.seconds).verify(*arguments) if tool and saved else None

    def evaluate(self, *arguments: object) -> "Run | None":
        return None  # score() of the training data stands among the metrics of a fit

    # ---------------------------------------------------------------------------------------------- helpers
    def data(self, name: str) -> typing.Any:
        X = read(self.folder / name)
        given = self.type == np.float64 and X.dtype.kind in "iu"  # integers are kept as narrow as they are
        return X if given else X.astype(self.type)

    def vector(self, options: Options, name: str) -> typing.Any:
        return np.load(self.folder / options[name]) if name in options else None

    def told(self, report: typing.Any, **more: typing.Any) -> dict[str, typing.Any]:
        trace = report.history.get("objective", [])
        return {
            "converged": report.converged,
            "iterations": report.n_iter,
            "objective": report.objective,
            "residual": report.residual,
            "tolerance": report.tolerance,
            "solver": report.solver,
            "optimality_gap": report.optimality_gap,
            "trace": [{"objective": float(value)} for value in trace],
            "metrics": {},
            "figures": dict(report.figures),
            **report.figures,
            **more,
        }

    def kept(self, model: typing.Any, options: Options, **more: typing.Any) -> dict[str, typing.Any]:
        name = options.get("o", "model.kiln")
        model.save(self.folder / name)
        self.models[name] = model
        return self.told(model.report_, **more)

    def common(self, options: Options) -> dict[str, typing.Any]:
        """The parameters that all linear models take."""
        drawn = {"fit_intercept": "no-intercept" not in options, "device": self.device}
        if "solver" in options:
            drawn["solver"] = options["solver"]
        if "max-iterations" in options:
            drawn["max_iter"] = int(options["max-iterations"])
        return drawn

    def fitted(
        self, model: typing.Any, files: list[str], options: Options, name: str
    ) -> dict[str, typing.Any]:
        """Trains a linear model; its score stands among the metrics as `name`."""
        X, y = self.data(files[0]), self.vector(options, "target-file")
        weights, offset = self.vector(options, "weights-file"), self.vector(options, "offset-file")
        more = {} if offset is None else {"offset": offset}
        model.fit(X, y, sample_weight=weights, **more)
        out = self.kept(model, options)
        if y.ndim == 1 or y.shape[1] == 1:
            out["metrics"][name] = model.score(X, y, sample_weight=weights, **more)
        return out

    def searched(self, name: str, files: list[str], options: Options) -> dict[str, typing.Any]:
        """RidgeCV or LogisticRegressionCV, whose folds are the groups; held.csv has the folds alone."""
        groups, penalties = self.vector(options, "groups-file").astype(int), [
            float(v) for v in options["l2"].split(",")
        ]
        folds = [(np.nonzero(groups != f)[0], np.nonzero(groups == f)[0]) for f in range(int(options["cv"]))]
        ridge = name == "RidgeCV"
        grid = (
            {"alphas": penalties}
            if ridge
            else {"Cs": [1 / l2 for l2 in penalties], "scoring": "neg_log_loss"}
        )
        model = getattr(self.kiln, name)(
            **grid, cv=folds, standardize="standardize" in options, **self.common(options)
        )
        out = self.fitted(model, files, options, "score")
        scores = model.scores_ if ridge else -model.scores_.reshape(len(folds), len(penalties))
        rows = [
            {"l2": l2, "folds": list(map(float, s)), "mean": float(s.mean())}
            for l2, s in zip(penalties, scores.T)
        ]
        best = model.alpha_ if ridge else min(penalties, key=lambda l2: abs(1 / l2 - model.C_))
        out["cross_validation"] = {"metric": "r2" if ridge else "log_loss", "values": rows, "best": best}
        table = np.column_stack([np.arange(len(groups)) + 1, groups + 1])
        np.savetxt(self.folder / options["held-out"], table, fmt="%d", delimiter=",", header="row,fold")
        return out

    # ------------------------------------------------------------------------------------------------ verbs
    def linreg(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        if "cv" in options:
            return self.searched("RidgeCV", files, options)
        l2, standardize = number(options, "l2", 0.0), "standardize" in options
        if l2 == 0 and not standardize:
            return self.fitted(self.kiln.LinearRegression(**self.common(options)), files, options, "r2")
        model = self.kiln.Ridge(l2, standardize=standardize, **self.common(options))
        return self.fitted(model, files, options, "r2")

    def logreg(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        if "cv" in options:
            return self.searched("LogisticRegressionCV", files, options)
        l1, l2 = number(options, "l1", 0.0), number(options, "l2", 1.0)
        model = self.kiln.LogisticRegression(
            C=1 / (l1 + l2),
            l1_ratio=l1 / (l1 + l2),
            standardize="standardize" in options,
            **self.common(options),
        )
        return self.fitted(model, files, options, "accuracy")

    def svm(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        shared = {
            "C": 1 / (2 * number(options, "l2", 0.5)),
            "standardize": "standardize" in options,
            **self.common(options),
        }
        if "regression" in options:
            model = self.kiln.LinearSVR(epsilon=number(options, "epsilon", 0.0), **shared)
            return self.fitted(model, files, options, "r2")
        return self.fitted(self.kiln.LinearSVC(**shared), files, options, "accuracy")

    def glm(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        weights = self.vector(options, "weights-file")
        rows = read(self.folder / files[0]).shape[0]
        total = rows if weights is None else float(weights.astype(self.type).sum())
        l1, l2 = number(options, "l1", 0.0), number(options, "l2", 0.0)
        model = self.kiln.GeneralizedLinearRegressor(
            options.get("family", "gaussian"),
            link=options.get("link", "default"),
            parameter=max(number(options, name, 0.0) for name in ("variance-power", "alpha", "precision")),
            alpha=(l1 + l2) / total,
            l1_ratio=l1 / (l1 + l2) if l1 + l2 > 0 else 0.0,
            standardize="standardize" in options,
            standard_errors="standard-errors" in options,
            **self.common(options),
        )
        out = self.fitted(model, files, options, "d2")
        out["metrics"]["aic"] = model.report_.figures.get("aic")
        return out

    def kmeans(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        init = options.get("init", "k-means++")
        model = self.kiln.KMeans(
            int(options["k"]),
            init="k-means||" if init == "k-means-parallel" else init,
            n_init=number(options, "restarts", 1, int),
            tol=number(options, "tolerance", 1e-4),
            algorithm=options.get("algorithm", "auto"),
            random_state=number(options, "seed", 0, int),
            device=self.device,
        )
        model.fit(self.data(files[0]), sample_weight=self.vector(options, "weights-file"))
        np.savetxt(self.folder / options["labels"], model.labels_, fmt="%d")
        names = ("weight", "inertia", "radius")
        clusters = [dict(zip(names, map(float, row))) for row in model._clusters]
        return self.kept(model, options, inertia=model.inertia_, clusters=clusters)

    def mds(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        model = self.kiln.MDS(
            number(options, "d", 2, int),
            metric=options.get("metric", "ratio"),
            n_init=number(options, "restarts", 1, int),
            random_state=number(options, "seed", 0, int),
            device=self.device,
        ).fit(self.data(files[0]))
        return self.kept(model, options, stress=model.objective_)

    def als(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        implicit = "implicit" in options
        model = self.kiln.ALS(
            int(options["factors"]),
            implicit=implicit,
            l2=number(options, "l2"),
            biases=False if implicit or "no-biases" in options else None,
            counted="counted" in options,
            solver=options.get("solver", "cg"),
            random_state=number(options, "seed", 0, int),
            device=self.device,
        )
        return self.kept(model.fit(self.data(files[0])), options)

    def sfa(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        model = self.kiln.SFA(
            int(options["factors"]), l2=number(options, "l2"), random_state=0, device=self.device
        )
        return self.kept(model.fit(self.data(files[0])), options)

    def gap(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        model = self.kiln.NMF(
            int(options["k"]),
            prior=None if options.get("prior") == "none" else "gamma",
            random_state=number(options, "seed", 0, int),
            device=self.device,
        )
        return self.kept(model.fit(self.data(files[0])), options)

    def lda(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        model = self.kiln.LatentDirichletAllocation(
            int(options["k"]), random_state=number(options, "seed", 0, int), device=self.device
        )
        return self.kept(model.fit(self.data(files[0])), options)

    def decomposed(self, model: typing.Any, files: list[str], options: Options) -> dict[str, typing.Any]:
        T = np.asarray(model.fit_transform(self.data(files[0])))
        header = ",".join(f"component_{c + 1}" for c in range(T.shape[1]))
        np.savetxt(self.folder / options["coordinates"], T, fmt="%.17g", delimiter=",", header=header)
        return self.kept(model, options)

    def pca(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        model = self.kiln.PCA(
            int(options["k"]),
            svd_solver="covariance_eigh" if options.get("solver") == "gram" else "auto",
            standardize="scale" in options,
            random_state=number(options, "seed", 0, int),
            device=self.device,
        )
        return self.decomposed(model, files, options)

    def svd(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        model = self.kiln.TruncatedSVD(
            int(options["k"]),
            standardize="scale" in options,
            random_state=number(options, "seed", 0, int),
            device=self.device,
        )
        return self.decomposed(model, files, options)

    # ----------------------------------------------------------------------------------------------- graphs
    def links(self, name: str) -> tuple[scipy.sparse.csr_matrix, list[str]]:
        """The adjacency matrix; vertices stand in the order of their first line."""
        lines = [line.split("\t") for line in (self.folder / name).read_text().splitlines()]
        names = list(dict.fromkeys(v for line in lines for v in line[:2]))
        place = {v: i for i, v in enumerate(names)}
        ends = np.array([[place[v] for v in line[:2]] for line in lines])
        values = np.array([float(line[2]) if len(line) > 2 else 1.0 for line in lines])
        A = scipy.sparse.coo_matrix((values, ends.T), (len(names), len(names))).tocsr()
        return A.astype(self.type), names

    def scores(self, names: list[str], *columns: np.ndarray, file: str) -> None:
        rows = zip(names, *(c.astype(float).tolist() for c in columns))
        (self.folder / file).write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))

    def pagerank(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        A, names = self.links(files[0])
        seeds = None
        if "personalize" in options:
            wanted = set((self.folder / options["personalize"]).read_text().split())
            seeds = np.array([name in wanted for name in names], self.type)
        found = self.kiln.pagerank(
            A,
            damping=number(options, "damping", 0.85),
            personalize=seeds,
            unweighted="unweighted" in options,
            dangling=options.get("dangling", "personalized"),
            device=self.device,
        )
        self.scores(names, found.scores, file=options["scores"])
        return self.told(found.report)

    def hits(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        A, names = self.links(files[0])
        found = self.kiln.hits(
            A,
            norm=number(options, "norm", 1, int),
            unweighted="unweighted" in options,
            solver=options.get("solver", "auto"),
            device=self.device,
        )
        self.scores(names, found.hubs, found.authorities, file=options["scores"])
        return self.told(found.report)

    # ---------------------------------------------------------------------------------------------- new rows
    def predict(self, files: list[str], options: Options) -> dict[str, typing.Any]:
        model, X = self.models[files[0]], self.data(files[1])
        offset = self.vector(options, "offset-file")
        more = {} if offset is None else {"offset": offset}
        if "probabilities" in options:
            found = model.predict_proba(X)
        elif "decision" in options:
            found = model.decision_function(X)
        elif hasattr(model, "components_") and hasattr(model, "singular_values_"):
            found = model.transform(X)
        else:
            found = model.predict(X, **more)
        return {"predictions": np.asarray(found).reshape(X.shape[0], -1).tolist()}
