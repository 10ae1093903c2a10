"""Measures how good Kiln's estimators are at their defaults, beside scikit-learn's and implicit's at theirs.

    python tests/audit/quality.py [--only WORDS] [--seeds 10] [--json FILE] [--commit TEXT] [--device TEXT]

20 data sets and 10 seeds; a row holds the means of a measure that this file computes from centres, layouts,
factors and predictions, for both alike. "within" says that Kiln's mean is at most 1 % worse. Real data are
those of scikit-learn and, where the folder exists, DATA (../shared/data beside the repository); their rows
are left out without it.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import datetime
import gzip
import json
import os
import pathlib
import typing
import warnings

import numpy as np
import scipy.sparse
import sklearn.cluster
import sklearn.datasets
import sklearn.decomposition
import sklearn.linear_model
import sklearn.manifold

import kiln

DATA = pathlib.Path(os.environ.get("KILN_DATA", pathlib.Path(__file__).parents[2] / ".." / "shared" / "data"))


class Row(typing.NamedTuple):
    name: str
    measure: str
    peer: str
    run: typing.Callable[[int], tuple[float, float]]  # of a seed: Kiln's value and the peer's
    more_is_better: bool = False
    needs: str = ""  # a file of DATA


# ------------------------------------------------------------------------------------------------------- data
def blobs(seed: int, rows: int, columns: int, centres: int, apart: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    where = rng.uniform(-apart, apart, (centres, columns))
    return where[rng.integers(0, centres, rows)] + rng.normal(size=(rows, columns))


def digits() -> np.ndarray:
    return sklearn.datasets.load_digits().data


def mnist(rows: int) -> np.ndarray:
    raw = gzip.open(DATA / "dense/mnist-t10k-images-idx3-ubyte.gz").read()
    return np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784)[:rows].astype(float)


def covtype(rows: int) -> np.ndarray:
    table = np.loadtxt(DATA / "dense/covtype.20k.data.gz", delimiter=",", max_rows=rows)[:, :10]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def kos(documents: int) -> scipy.sparse.csr_matrix:
    """The first documents, of the words that 5 of them or more have."""
    d, w, n = np.loadtxt(DATA / "bow/docword.kos.txt.gz", skiprows=3, dtype=int).T
    X = scipy.sparse.csr_matrix((n.astype(float), (d - 1, w - 1)))[:documents]
    return X[:, np.asarray((X > 0).sum(axis=0)).ravel() >= 5].tocsr()


def topics(seed: int, documents: int, words: int, count: int) -> scipy.sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    phi, theta = rng.dirichlet(np.full(words, 0.05), count), rng.dirichlet(np.full(count, 0.2), documents)
    return scipy.sparse.csr_matrix(rng.poisson(80 * theta @ phi).astype(float))


def eurodist() -> np.ndarray:
    """Distances of 21 cities: a lower triangle by columns."""
    lines = (DATA / "mds/eurodist.csv").read_text().splitlines()[1:]
    values = [float(line.split(",")[-1]) for line in lines]
    D = np.zeros((21, 21))
    D[np.triu_indices(21, 1)] = values
    return D + D.T


def ratings() -> scipy.sparse.csr_matrix:
    user, item, value, _ = np.loadtxt(DATA / "ratings/ml-100k.u.data.gz", dtype=int).T
    return scipy.sparse.csr_matrix((value.astype(float), (user - 1, item - 1)))


def plays(users: int) -> scipy.sparse.csr_matrix:
    lines = gzip.open(DATA / "ratings/ml-1m.implicit.train.txt.gz", "rt").read().splitlines()[:users]
    rows = [list(map(int, line.split()))[1:] for line in lines]
    indices = np.concatenate(rows)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return scipy.sparse.csr_matrix((np.ones(len(indices)), indices, indptr))


def split(
    X: scipy.sparse.csr_matrix, seed: int, share: float
) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
    """Entries to train with, and held out ones."""
    X = X.tocoo()
    out = np.random.default_rng(seed).random(X.nnz) < share
    parts = [scipy.sparse.csr_matrix((X.data[p], (X.row[p], X.col[p])), X.shape) for p in (~out, out)]
    return parts[0], parts[1]


# --------------------------------------------------------------------------------------------------- measures
def inertia(X: np.ndarray, C: np.ndarray) -> float:
    return float(
        sum(((rows[:, None] - C[None]) ** 2).sum(axis=2).min(axis=1).sum() for rows in np.array_split(X, 40))
    )


def stress(D: np.ndarray, Y: np.ndarray) -> float:
    return float(((np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(axis=2)) - D) ** 2).sum() / 2)


def divergence(X: scipy.sparse.csr_matrix, W: np.ndarray, H: np.ndarray) -> float:
    mean, X = np.asarray(W, float) @ np.asarray(H, float), X.toarray()
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((np.where(X > 0, X * np.log(X / mean), 0) - X + mean).sum())


def perplexity(X: scipy.sparse.csr_matrix, theta: np.ndarray, parameters: np.ndarray) -> float:
    """exp(- mean log-likelihood of a word) of these mixtures and the topics' mean distributions."""
    phi = parameters / parameters.sum(axis=1, keepdims=True)
    X = X.tocoo()
    chance = (theta[X.row] * phi.T[X.col]).sum(axis=1)
    return float(np.exp(-(X.data * np.log(chance)).sum() / X.data.sum()))


def precision(scores: np.ndarray, train: scipy.sparse.csr_matrix, test: scipy.sparse.csr_matrix) -> float:
    """Mean over users of the share of the 10 best items, without those of training, that were held out."""
    scores = np.where(train.toarray() != 0, -np.inf, scores)
    best = np.argpartition(-scores, 10, axis=1)[:, :10]
    hits = np.take_along_axis(test.toarray() != 0, best, axis=1).sum(axis=1)
    held = np.asarray((test != 0).sum(axis=1)).ravel()
    return float((hits / np.minimum(10, np.maximum(held, 1)))[held > 0].mean())


# --------------------------------------------------------------------------------------------------- problems
def kmeans(
    make: typing.Callable[[int], np.ndarray], k: int, batches: bool = False
) -> typing.Callable[[int], tuple[float, float]]:
    name = "MiniBatchKMeans" if batches else "KMeans"

    def run(seed: int) -> tuple[float, float]:
        X = make(seed)
        models = [getattr(package, name)(k, random_state=seed).fit(X) for package in (kiln, sklearn.cluster)]
        return inertia(X, models[0].cluster_centers_), inertia(X, models[1].cluster_centers_)

    return run


def mds(
    make: typing.Callable[[int], np.ndarray], given: bool = False
) -> typing.Callable[[int], tuple[float, float]]:
    def run(seed: int) -> tuple[float, float]:
        X = make(seed)
        D = X if given else np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
        own = kiln.MDS(dissimilarity="precomputed", random_state=seed).fit(D)
        peer = sklearn.manifold.MDS(metric="precomputed", random_state=seed).fit(D)
        return stress(D, own.embedding_), stress(D, peer.embedding_)

    return run


def nmf(make: typing.Callable[[int], scipy.sparse.csr_matrix]) -> typing.Callable[[int], tuple[float, float]]:
    def run(seed: int) -> tuple[float, float]:
        X = make(seed)
        own = kiln.NMF(10, random_state=seed)
        peer = sklearn.decomposition.NMF(10, beta_loss="kullback-leibler", solver="mu", random_state=seed)
        W, V = own.fit_transform(X), peer.fit_transform(X)
        return divergence(X, W, own.components_), divergence(X, V, peer.components_)

    return run


def lda(make: typing.Callable[[int], scipy.sparse.csr_matrix]) -> typing.Callable[[int], tuple[float, float]]:
    def run(seed: int) -> tuple[float, float]:
        X = make(seed)
        out = np.random.default_rng(seed).random(X.shape[0]) < 0.2
        found = []
        for package in (kiln, sklearn.decomposition):
            model = package.LatentDirichletAllocation(10, random_state=seed).fit(X[~out])
            found.append(perplexity(X[out], model.transform(X[out]), model.components_))
        return found[0], found[1]

    return run


def implicit_als(
    make: typing.Callable[[int], scipy.sparse.csr_matrix],
) -> typing.Callable[[int], tuple[float, float]]:
    import implicit.als

    def run(seed: int) -> tuple[float, float]:
        train, test = split(make(seed), seed, 0.2)
        own = kiln.ALS(implicit=True, random_state=seed).fit(train)
        peer = implicit.als.AlternatingLeastSquares(random_state=seed)
        peer.fit(train, show_progress=False)
        scores = own.row_factors_ @ own.column_factors_.T, peer.user_factors @ peer.item_factors.T
        return precision(scores[0], train, test), precision(scores[1], train, test)

    return run


def explicit_als(seed: int) -> tuple[float, float]:
    """The peer is the mean and damped biases alone, which Ridge fits to the rows' and columns' indicators."""
    train, test = (part.tocoo() for part in split(ratings(), seed, 0.1))
    model = kiln.ALS(random_state=seed).fit(train.tocsr())
    m, n = train.shape

    def indicators(X: scipy.sparse.coo_matrix) -> scipy.sparse.csr_matrix:
        at = np.arange(X.nnz)
        return scipy.sparse.csr_matrix(
            (np.ones(2 * X.nnz), (np.r_[at, at], np.r_[X.row, m + X.col])), (X.nnz, m + n)
        )

    biases = sklearn.linear_model.Ridge(5.0, solver="lsqr").fit(indicators(train), train.data)
    errors = (model.predict(test.row, test.col) - test.data, biases.predict(indicators(test)) - test.data)
    return float(np.sqrt((errors[0] ** 2).mean())), float(np.sqrt((errors[1] ** 2).mean()))


def linear(name: str, load: typing.Callable[..., typing.Any]) -> typing.Callable[[int], tuple[float, float]]:
    """Held-out RMSE, of classes log loss."""

    def run(seed: int) -> tuple[float, float]:
        X, y = load(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        out = np.random.default_rng(seed).random(len(y)) < 0.2
        found = []
        for package in (kiln, sklearn.linear_model):
            model = getattr(package, name)().fit(X[~out], y[~out])
            if hasattr(model, "predict_proba"):
                chance = np.clip(model.predict_proba(X[out]), 1e-15, 1)[np.arange(out.sum()), y[out]]
                found.append(float(-np.log(chance).mean()))
            else:
                found.append(float(np.sqrt(((model.predict(X[out]) - y[out]) ** 2).mean())))
        return found[0], found[1]

    return run


def iris(seed: int) -> np.ndarray:
    return np.unique(sklearn.datasets.load_iris().data, axis=0)


MINE, OTHER = "scikit-learn", "implicit"
ROWS = [
    Row("KMeans: 8 blobs 20 apart", "inertia", MINE, kmeans(lambda s: blobs(s, 2000, 10, 8, 20), 8)),
    Row("KMeans: 50 blobs in 10 columns", "inertia", MINE, kmeans(lambda s: blobs(s, 3000, 10, 50, 20), 50)),
    Row("KMeans: 20 blobs that overlap", "inertia", MINE, kmeans(lambda s: blobs(s, 2000, 4, 20, 3), 20)),
    Row("KMeans: digits", "inertia", MINE, kmeans(lambda s: digits(), 10)),
    Row("KMeans: MNIST", "inertia", MINE, kmeans(lambda s: mnist(2000), 10), needs="dense"),
    Row("KMeans: covtype", "inertia", MINE, kmeans(lambda s: covtype(5000), 15), needs="dense"),
    Row("MiniBatchKMeans: 30 blobs", "inertia", MINE, kmeans(lambda s: blobs(s, 8000, 6, 30, 15), 30, True)),
    Row("MiniBatchKMeans: digits", "inertia", MINE, kmeans(lambda s: digits(), 10, True)),
    Row("MDS: iris", "stress", MINE, mds(iris)),
    Row("MDS: digits", "stress", MINE, mds(lambda s: digits()[100 * s : 100 * s + 150])),
    Row("MDS: distances of cities", "stress", MINE, mds(lambda s: eurodist(), True), needs="mds"),
    Row("NMF: digits", "divergence", MINE, nmf(lambda s: scipy.sparse.csr_matrix(digits()))),
    Row("NMF: KOS", "divergence", MINE, nmf(lambda s: kos(500)), needs="bow"),
    Row("NMF: drawn topics", "divergence", MINE, nmf(lambda s: topics(s, 400, 300, 8))),
    Row("LDA: KOS", "perplexity", MINE, lda(lambda s: kos(600)), needs="bow"),
    Row("LDA: drawn topics", "perplexity", MINE, lda(lambda s: topics(s, 500, 300, 8))),
    Row(
        "implicit ALS: MovieLens 100k",
        "precision at 10",
        OTHER,
        implicit_als(lambda s: ratings()),
        True,
        "ratings",
    ),
    Row(
        "implicit ALS: MovieLens 1M",
        "precision at 10",
        OTHER,
        implicit_als(lambda s: plays(1500)),
        True,
        "ratings",
    ),
    Row("ALS: MovieLens 100k", "RMSE", "biases alone", explicit_als, needs="ratings"),
    Row("RidgeCV: diabetes", "RMSE", MINE, linear("RidgeCV", sklearn.datasets.load_diabetes)),
    Row("LassoCV: diabetes", "RMSE", MINE, linear("LassoCV", sklearn.datasets.load_diabetes)),
    Row(
        "LogisticRegression: breast cancer",
        "log loss",
        MINE,
        linear("LogisticRegression", sklearn.datasets.load_breast_cancer),
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--device", default="")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # a peer's limit of iterations is its default, too
    rows = []
    for row in ROWS:
        if arguments.only not in row.name or (row.needs and not (DATA / row.needs).exists()):
            continue
        values = np.array([row.run(seed) for seed in range(arguments.seeds)])
        own, peer = values.mean(axis=0)
        worse = (peer / own if row.more_is_better else own / peer) - 1
        rows.append(
            {
                "data": row.name, "measure": row.measure, "peer": row.peer, "kiln_mean": own,
                "peer_mean": peer, "worse_by": worse, "within": bool(worse <= 0.01),
                "kiln": values[:, 0].tolist(), "peers": values[:, 1].tolist(),
            }
        )  # fmt: skip
        print(f"{row.name:36} {row.measure:16} {own:14.6g} {peer:14.6g} {100 * worse:+7.2f} %", flush=True)
    if arguments.json:
        head = {"benchmark": "quality", "commit": arguments.commit, "device": arguments.device}
        head |= {"date": datetime.date.today().isoformat(), "seeds": arguments.seeds, "rows": rows}
        arguments.json.write_text(json.dumps(head, indent=1) + "\n")
    return 0 if all(row["within"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
