"""One row: what a call with a few rows costs, against scikit-learn's and implicit's same call.

Every estimator's predict, predict_proba, decision_function, transform, and the recommender's lists and
neighbours, with 1, 10 and 100 rows, dense and sparse. Models are fitted by Kiln and given to scikit-learn by
to_sklearn, so that both answer the same question; implicit gets ALS' factors. Calls take turns in pairs of
short rounds, and the least mean of a round counts, as neighbours on the machine disturb; `middle` is the
median of the rounds' ratios.

    python3 bench/peers/one_row.py [--only WORD...] [--rows 1 10 100] [--rounds 40] [--json FILE]
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import subprocess
import time
import warnings

import kiln
import numpy as np
import scipy.sparse


def timed(call, count):
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def pairs(ours, theirs, rounds):
    """Seconds of a call of each, the least of all rounds, and the median ratio of rounds."""
    counts = [max(1, min(200, int(2e-3 / min(timed(call, 3), timed(call, 3))))) for call in (ours, theirs)]
    each = [(timed(ours, counts[0]), timed(theirs, counts[1])) for _ in range(rounds)]
    return min(e[0] for e in each), min(e[1] for e in each), float(np.median([a / b for a, b in each]))


def data(cols, rows=2000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, cols))
    return X, X @ rng.normal(size=cols) / np.sqrt(cols) + rng.normal(size=rows)


def classes(cols, count, rows=3000):
    """Rows about a point for each class, of which every one has some."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % count
    return rng.normal(size=(rows, cols)) + 2 * rng.normal(size=(count, cols))[y], y


def words(rows, cols, density=0.02):
    X = scipy.sparse.random(rows, cols, density, format="csr", random_state=0)
    X.data = np.ceil(5 * X.data)
    return X


def linear(few):
    """(name, ours, theirs) of linear models; few(X, sparse): the rows that are asked about."""
    X, y = data(30)
    positive = np.exp(y / 4)
    regressors = [kiln.LinearRegression(), kiln.Ridge(), kiln.Lasso(0.01), kiln.ElasticNet(0.01),
                  kiln.PoissonRegressor(), kiln.GammaRegressor(), kiln.TweedieRegressor(power=1.5),
                  kiln.LinearSVR()]
    for model in regressors:
        model.fit(X, positive)
        yield from both(model, ["predict"], [few(X)], f"{type(model).__name__} 30 columns")
    for cols, count in ((30, 2), (30, 3), (100, 30), (2000, 300)):
        X, y = classes(cols, count)
        thin = scipy.sparse.csr_matrix(np.where(np.abs(X) > 3, X, 0))
        for model in (kiln.LogisticRegression(tol=1e-2, max_iter=5), kiln.LinearSVC(tol=1e-2, max_iter=5)):
            if type(model) is kiln.LinearSVC and count > 30:
                continue
            model.fit(X, y)
            verbs = ["predict", "decision_function"]
            verbs += ["predict_proba"] if hasattr(model, "predict_proba") else []
            yield from both(model, verbs, [few(X), few(thin)],
                            f"{type(model).__name__} {cols} columns, {count} classes")


def others(few):
    X, _ = classes(30, 8)
    model = kiln.KMeans(8, random_state=0).fit(X)
    yield from both(model, ["predict", "transform"], [few(X)], "KMeans 30 columns, 8 centres")
    counts = words(2000, 2000)
    for model in (kiln.NMF(10, random_state=0, max_iter=20),
                  kiln.LatentDirichletAllocation(10, random_state=0, max_iter=5)):
        model.fit(counts)
        yield from both(model, ["transform"], [few(counts)], f"{type(model).__name__} 2000 words, 10 topics")


def both(model, verbs, inputs, name):
    peer = model.to_sklearn()
    for X in inputs:
        kind = "sparse" if scipy.sparse.issparse(X) else "dense"
        for verb in verbs:
            yield (f"{name}, {verb}, {kind}", lambda m=model, v=verb, X=X: getattr(m, v)(X),
                   lambda m=peer, v=verb, X=X: getattr(m, v)(X))


def recommenders(count):
    try:
        from implicit.cpu.als import AlternatingLeastSquares
    except ImportError:
        return
    for users, items, factors in ((2000, 3000, 32), (2000, 50000, 64)):
        plays = words(users, items, 0.01).astype(np.float32)
        model = kiln.ALS(factors, implicit=True, random_state=0, max_iter=2).fit(plays)
        peer = AlternatingLeastSquares(factors, num_threads=0)
        peer.user_factors, peer.item_factors = model.row_factors_, model.column_factors_
        who = 7 if count == 1 else np.arange(count)
        liked = plays[:count]
        size = f"{users} x {items}, {factors} factors"
        for name, call in (("recommend", lambda m, who=who, liked=liked: m.recommend(who, liked)),
                           ("recommend with what is liked",
                            lambda m, who=who, liked=liked: m.recommend(
                                who, liked, filter_already_liked_items=False)),
                           ("similar_items", lambda m, who=who: m.similar_items(who)),
                           ("similar_users", lambda m, who=who: m.similar_users(who))):
            yield (f"ALS {size}, {name}", lambda m=model, c=call: c(m), lambda m=peer, c=call: c(m))


def cases(count):
    def few(X):
        return X[:count].copy()

    yield from linear(few)
    yield from others(few)
    yield from recommenders(count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kiln.device("cpu")
    found = []
    for count in options.rows:
        for name, ours, theirs in cases(count):
            if options.only and not any(word in name for word in options.only):
                continue
            mine, other, middle = pairs(ours, theirs, options.rounds)
            found.append({"call": name, "rows": count, "kiln": mine * 1e6, "peer": other * 1e6,
                          "middle": middle})
            print(f"{count:4} {name:64} {mine * 1e6:9.1f} us {other * 1e6:9.1f} us {mine / other:6.2f} "
                  f"({middle:.2f})", flush=True)
    if options.json:
        where = kiln.device("cpu")
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                                cwd=os.path.dirname(__file__), check=True).stdout.strip()
        versions = {name: importlib.metadata.version(name) for name in ("numpy", "scikit-learn", "implicit")}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"kiln": kiln.__version__, "commit": commit,
                       "date": datetime.date.today().isoformat(), "device": "cpu",
                       "description": where.description, "versions": versions, "unit": "microseconds",
                       "calls": found}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
