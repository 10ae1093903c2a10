"""Factor and topic models at their defaults against their peers at theirs, over seeds: how good what they
find is, not how fast.

Explicit ratings: the error on a tenth of MovieLens 100K that is held out, of all ratings and of a fifth of
them. Counts: precision and recall of the ten best on a fifth of MovieLens 1M that is held out, and on the
split that comes with the data, against implicit. Topics: the objective on KOS, KL-NMF against scikit-learn's
with the same number of topics, whose defaults but solver and loss are kept.

    python3 bench/studies/factor_defaults.py ../shared/data --seeds 10 --json bench/results/cpu2-factor-defaults.json
"""
import argparse
import datetime
import gzip
import json
import os
import warnings

import numpy as np
import scipy.sparse
import scipy.special

import kiln

TOP = 10


def explicit(folder):
    with gzip.open(os.path.join(folder, "ratings", "ml-100k.u.data.gz"), "rt") as file:
        lines = np.loadtxt(file, dtype=np.int64)
    return lines[:, 0] - 1, lines[:, 1] - 1, lines[:, 2].astype(float)


def rmse(make, ratings, share, seed):
    rng = np.random.default_rng(seed)
    kept = rng.random(len(ratings[2])) < share
    rows, columns, values = (part[kept] for part in ratings)
    test = rng.random(len(values)) < 0.1
    X = scipy.sparse.csr_matrix((values[~test], (rows[~test], columns[~test])),
                                (ratings[0].max() + 1, ratings[1].max() + 1))
    model = make(seed).fit(X)
    return float(np.sqrt(np.mean((model.predict(rows[test], columns[test]) - values[test]) ** 2)))


def lists(folder, name):
    rows, columns = [], []
    with gzip.open(os.path.join(folder, "ratings", f"ml-1m.implicit.{name}.txt.gz"), "rt") as file:
        for line in file:
            user, *items = map(int, line.split())
            rows += [user] * len(items)
            columns += items
    return scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), (6040, 3953))


def held_out(X, seed):
    X, rng = X.tocoo(), np.random.default_rng(seed)
    test = rng.random(X.nnz) < 0.2
    return [scipy.sparse.csr_matrix((X.data[part], (X.row[part], X.col[part])), X.shape)
            for part in (~test, test)]


def ranking(rows, columns, train, test):
    """Precision and recall of the ten best columns of each row that it has not been trained on."""
    scores = rows @ columns.T
    scores[train.nonzero()] = -np.inf
    best = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
    wanted = test.toarray() > 0
    some = wanted.any(axis=1)
    hits = np.take_along_axis(wanted, best, 1)[some].sum(axis=1)
    return float(hits.mean() / TOP), float((hits / np.minimum(TOP, wanted[some].sum(axis=1))).mean())


def implicit_peer(train, seed):
    import implicit

    model = implicit.als.AlternatingLeastSquares(random_state=seed, num_threads=2)
    model.fit(train, show_progress=False)
    return model.user_factors, model.item_factors


def implicit_kiln(train, seed):
    model = kiln.ALS(implicit=True, random_state=seed, device="cpu").fit(train.astype(np.float32))
    return model.row_factors_, model.column_factors_


def words(folder):
    with gzip.open(os.path.join(folder, "bow", "docword.kos.txt.gz"), "rt") as file:
        rows, columns, _ = (int(file.readline()) for _ in range(3))
        lines = np.loadtxt(file, dtype=np.int64)
    return scipy.sparse.csr_matrix((lines[:, 2].astype(float), (lines[:, 0] - 1, lines[:, 1] - 1)),
                                   (rows, columns))


def divergence(X, W, H):
    rows, columns = X.nonzero()
    means = np.einsum("ek,ek->e", W[rows], H.T[columns])
    return float(np.sum(X.data * np.log(X.data / np.maximum(means, 1e-300)) - X.data) + W.sum(0) @ H.sum(1))


def nmf(X, seed):
    from sklearn.decomposition import NMF

    ours = kiln.NMF(10, random_state=seed, device="cpu")
    peer = NMF(10, solver="mu", beta_loss="kullback-leibler", random_state=seed)
    return [divergence(X, model.fit_transform(X), model.components_) for model in (ours, peer)]


def lda(X, seed):
    """Perplexity of the training counts by scikit-learn's bound, for both."""
    from sklearn.decomposition import LatentDirichletAllocation

    ours = kiln.LatentDirichletAllocation(10, random_state=seed, device="cpu").fit(X)
    peer = LatentDirichletAllocation(10, random_state=seed).fit(X)
    theirs = peer.perplexity(X)
    peer.components_ = ours.components_.copy()
    peer.exp_dirichlet_component_ = np.exp(scipy.special.psi(peer.components_)
                                           - scipy.special.psi(peer.components_.sum(1))[:, None])
    return float(peer.perplexity(X)), float(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--slow-seeds", type=int, default=3,
                        help="of implicit's, scikit-learn's and their like")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}

    def keep(name, values):
        found[name] = {"mean": float(np.mean(values)), "seeds": values}
        print(f"{name:60} {found[name]['mean']:.5g}", flush=True)

    ratings, seeds, slow = explicit(arguments.data), range(arguments.seeds), range(arguments.slow_seeds)
    for name, make in (("als", lambda seed: kiln.ALS(random_state=seed, device="cpu")),
                       ("als without biases", lambda seed: kiln.ALS(biases=False, random_state=seed,
                                                                    device="cpu")),
                       ("als counted", lambda seed: kiln.ALS(counted=True, random_state=seed, device="cpu")),
                       ("sfa", lambda seed: kiln.SFA(random_state=seed, device="cpu"))):
        for share in (1, 0.2):
            keep(f"{name}, RMSE, {share:.0%} of MovieLens 100K",
                 [rmse(make, ratings, share, seed) for seed in seeds])
    own = lists(arguments.data, "train"), lists(arguments.data, "test")
    for name, train_with in (("kiln", implicit_kiln), ("implicit", implicit_peer)):
        for split in ("a random fifth", "the data's own split"):
            results = []
            for seed in slow:
                train, test = held_out(own[0] + own[1], seed) if split == "a random fifth" else own
                results.append(ranking(*train_with(train, seed), train, test))
            for what, values in zip(("precision@10", "recall@10"), zip(*results)):
                keep(f"{name}, {what}, MovieLens 1M, {split}", list(values))
    X = words(arguments.data)
    for what, compare in (("KL-NMF, divergence", nmf), ("LDA, perplexity", lda)):
        for name, values in zip(("kiln", "scikit-learn"), zip(*(compare(X, seed) for seed in slow))):
            keep(f"{name}, {what}, KOS", list(values))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"study": "factor and topic models at their defaults against peers at theirs",
                       "date": datetime.date.today().isoformat(), "device": kiln.device("cpu").description,
                       "results": found}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
