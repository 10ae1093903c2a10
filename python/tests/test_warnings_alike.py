"""One data set for each warning, through the tool and through the package: both warn, and of the same
thing."""
import subprocess
import warnings

import kiln
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

CPU = {"device": "cpu"}
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
NOISE, GROUP = rng.normal(size=60), np.where(rng.random(60) < 0.3, 1.0, 0.0)
COIN = (rng.random(60) < 0.5).astype(int)
SIDE = (X[:, 0] > 0).astype(int)
WITH_GROUP, SUM = np.column_stack([X, GROUP]), np.column_stack([X, X.sum(axis=1)])
LETTERS = np.where(COIN > 0, "a", "b")
FEW_ROWS = np.repeat([[0.0, 1], [2, 3], [4, 9]], 5, axis=0)
RATINGS = rng.integers(1, 6, (20, 15)).astype(float)
NEAR = np.column_stack([X, 1e9 + 1e-7 * NOISE])
ONE = np.linspace(0, 1, 60).reshape(-1, 1)
LINE = rng.poisson(1 + 3 * ONE[:, 0]).astype(float)
LINKS = sp.csr_matrix(np.triu(np.ones((4, 4)), 1))


def glm(family, **options):
    return kiln.GeneralizedLinearRegressor(family, **options, **CPU)


# The words of both, the verb and its options, X, y, and Python's call of these.
FITS = [
    ("the classes can be separated:", ["logreg", "--l2", "0"], X, SIDE,
     kiln.LogisticRegression(C=np.inf, **CPU)),
    ("the classes can be separated:", ["glm", "--family", "binomial"], X, SIDE, glm("binomial")),
    ("the classes can be separated but for ties", ["logreg", "--l2", "0"], WITH_GROUP,
     np.where(GROUP, 1, COIN), kiln.LogisticRegression(C=np.inf, **CPU)),
    ("rows have the target 0 and nothing that speaks against a mean of 0", ["glm", "--family", "poisson"],
     WITH_GROUP, np.where(GROUP, 0, rng.poisson(2, 60)), glm("poisson")),
    ("columns depend on each other, 3 of 4 say all that they do", ["linreg"], SUM, NOISE,
     kiln.LinearRegression(**CPU)),
    ("columns depend on each other, 3 of 4 say all that they do", ["glm", "--standard-errors"], SUM, NOISE,
     glm("gaussian", standard_errors=True)),
    ("counts as constant", ["linreg"], NEAR, NOISE, kiln.LinearRegression(**CPU)),
    ("not converge", ["logreg", "--max-iterations", "1"], X, LETTERS,
     kiln.LogisticRegression(max_iter=1, **CPU)),
    ("not converge", ["glm", "--family", "poisson", "--max-iterations", "1"], X, COIN,
     glm("poisson", max_iter=1)),
    ("not converge", ["svm", "--max-iterations", "1"], X, SIDE, kiln.LinearSVC(max_iter=1, **CPU)),
    ("not converge", ["linreg", "--solver", "cg", "--max-iterations", "1"], X, NOISE,
     kiln.LinearRegression(solver="cg", max_iter=1, **CPU)),
    ("number of distinct clusters (3) found smaller than the number wanted (5)", ["kmeans", "-k", "5"],
     FEW_ROWS, None, kiln.KMeans(5, random_state=0, **CPU)),
    ("number of distinct clusters (3) found smaller than the number wanted (5)",
     ["kmeans", "-k", "5", "--batch", "5"], FEW_ROWS, None,
     kiln.MiniBatchKMeans(5, batch_size=5, random_state=0, **CPU)),
    ("all factors are about 0: the penalty of 1e+06", ["als", "--l2", "1e6"], RATINGS, None,
     kiln.ALS(l2=1e6, random_state=0, **CPU)),
    ("all factors are about 0: the penalty of 1e+06", ["sfa", "--l2", "1e6"], RATINGS, None,
     kiln.SFA(l2=1e6, random_state=0, **CPU)),
    ("not converge", ["als", "--max-iterations", "1", "--l2", "0.1"], RATINGS, None,
     kiln.ALS(l2=0.1, max_iter=1, random_state=0, **CPU)),
    ("not converge", ["gap", "--max-iterations", "1"], RATINGS, None,
     kiln.NMF(prior="gamma", max_iter=1, random_state=0, **CPU)),
    ("not converge", ["lda", "--max-iterations", "1"], RATINGS, None,
     kiln.LatentDirichletAllocation(max_iter=1, random_state=0, **CPU)),
    ("not converge", ["mds", "--init", "random", "--max-iterations", "1"], X, None,
     kiln.MDS(init="random", max_iter=1, random_state=0, **CPU)),
]


def said(tool, folder, *arguments, code=0):
    done = subprocess.run([tool, *arguments, "--device", "cpu"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return [line.removeprefix("kiln: warning: ") for line in done.stderr.splitlines()
            if line.startswith("kiln: warning: ")]


def heard(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(warning.filename == __file__ and issubclass(warning.category, UserWarning)
               for warning in caught)
    return [str(warning.message) for warning in caught]


def table(path, X, y=None, **more):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    pd.DataFrame({**columns, **({} if y is None else {"y": y}), **more}).to_csv(path, index=False,
                                                                                float_format="%.17g")


@pytest.mark.parametrize("part,arguments,X,y,model", FITS, ids=[f"{row[1][0]}-{row[0][:25]}" for row in FITS])
def test_a_fit(part, arguments, X, y, model, tool, tmp_path):
    if arguments[0] in ("als", "sfa", "gap", "lda"):
        sp.save_npz(tmp_path / "data.npz", sp.csr_matrix(X))
        lines = said(tool, tmp_path, arguments[0], "data.npz", *arguments[1:])
    else:
        table(tmp_path / "data.csv", X, y)
        lines = said(tool, tmp_path, arguments[0], "data.csv", *([] if y is None else ["--target", "y"]),
                     *arguments[1:])
    assert any(part in line for line in lines), lines
    messages = heard(lambda: model.fit(X) if y is None else model.fit(X, y))
    assert any(part in message and message.startswith(type(model).__name__) for message in messages), messages
    assert not any("--" in message or "kiln_" in message or "max_iterations" in message
                   for message in messages)


@pytest.mark.parametrize("verb", ["pagerank", "hits"])
def test_a_ranking(verb, tool, tmp_path):
    (tmp_path / "links.txt").write_text("".join(f"{i} {j}\n" for i, j in zip(*LINKS.nonzero())))
    assert any("not converged" in line for line in said(tool, tmp_path, verb, "links.txt", "--max-iterations",
                                                        "1"))
    assert any("not converge" in message
               for message in heard(lambda: getattr(kiln, verb)(LINKS, max_iter=1, **CPU)))


def test_classes_that_training_has_not_seen(tool, tmp_path):
    other = LETTERS.copy()
    other[:5] = "z"
    table(tmp_path / "data.csv", X, LETTERS)
    table(tmp_path / "new.csv", X, other)
    said(tool, tmp_path, "logreg", "data.csv", "--target", "y", "-o", "model.kiln")
    for verb in ("evaluate", "predict"):
        assert any("class that training has not seen: 5" in line for line in said(tool, tmp_path, verb,
                                                                                  "model.kiln", "new.csv"))
    for model in (kiln.LogisticRegression(**CPU), kiln.LinearSVC(**CPU),
                  kiln.LogisticRegressionCV(Cs=2, cv=2, **CPU)):
        assert any("5 of 60 rows are of classes that the model does not know" in message
                   for message in heard(lambda model=model: model.fit(X, LETTERS).score(X, other)))


def test_levels_that_training_has_not_seen(tool, tmp_path):
    frame = pd.DataFrame({"c": ["r", "g", "b"] * 20, "x": X[:, 0]})
    new = frame.assign(c=frame.c.where(frame.index > 0, "new"))
    frame.assign(y=NOISE).to_csv(tmp_path / "data.csv", index=False)
    new.assign(y=NOISE).to_csv(tmp_path / "new.csv", index=False)
    said(tool, tmp_path, "linreg", "data.csv", "--target", "y", "--l2", "1", "-o", "model.kiln")
    part = "values of text columns not seen in training: 1"
    assert any(part in line for line in said(tool, tmp_path, "predict", "model.kiln", "new.csv"))
    assert any(part in message for message in heard(lambda: kiln.Ridge(**CPU).fit(frame, NOISE).predict(new)))


def test_means_that_a_family_cannot_have(tool, tmp_path):
    far = np.array([[-5.0], [0.5]])
    table(tmp_path / "data.csv", ONE, LINE)
    table(tmp_path / "far.csv", far, [1, 2])
    said(tool, tmp_path, "glm", "data.csv", "--target", "y", "--family", "poisson", "--link", "identity",
         "-o", "model.kiln")
    model = glm("poisson", link="identity").fit(ONE, LINE)
    for verb, call in (("predict", lambda: model.predict(far)),
                       ("evaluate", lambda: model.score(far, [1.0, 2.0]))):
        assert any("1 row a mean that poisson cannot have" in line for line in said(tool, tmp_path, verb,
                                                                                    "model.kiln", "far.csv"))
        assert any("1 of 2 rows a mean that the family 'poisson' cannot have" in message
                   for message in heard(call))


def test_an_offset_that_is_missing(tool, tmp_path):
    """An error of both, as a prediction without it is another one."""
    table(tmp_path / "data.csv", X, COIN, off=NOISE)
    table(tmp_path / "new.csv", X, COIN)
    said(tool, tmp_path, "glm", "data.csv", "--target", "y", "--family", "poisson", "--offset", "off", "-o",
         "model.kiln")
    model = glm("poisson").fit(X, COIN, offset=NOISE)
    for verb, call in (("predict", lambda: model.predict(X)), ("evaluate", lambda: model.score(X, COIN))):
        said(tool, tmp_path, verb, "model.kiln", "new.csv", code=7)
        with pytest.raises(ValueError, match="fitted with an offset"):
            call()


def test_a_budget_that_was_reached(tool, tmp_path):
    """An X that stays in its file on purpose is none to warn of."""
    if not any(row["name"].startswith("opencl") and row["usable"] for row in kiln.devices()):
        pytest.skip("no OpenCL")
    big = np.random.default_rng(1).normal(size=(4000, 8))
    np.save(tmp_path / "X.npy", big)
    np.save(tmp_path / "y.npy", big @ np.ones(8))
    budget = big.nbytes // 2
    options = ["--target-file", "y.npy", "--solver", "cg", "--memory", str(budget)]
    part = "the memory of opencl:0.0 was too little: X does not fit, so that every pass moved it in panels"

    def lines(*more):
        return subprocess.run([tool, "linreg", "X.npy", *options, "--device", "opencl", *more], cwd=tmp_path,
                              capture_output=True, text=True, check=True).stderr

    def messages(data):
        return heard(lambda: kiln.Ridge(1.0, solver="cg",
                                        device=kiln.Device("opencl",
                                                           memory=budget)).fit(data, big @ np.ones(8)))

    assert part in lines() and any(part in message for message in messages(big))
    assert "too little" not in lines("--map")
    mapped = kiln.matrix(tmp_path / "X.npy", kiln.Device("opencl", memory=budget))
    assert heard(lambda: kiln.Ridge(1.0, solver="cg").fit(mapped, big @ np.ones(8))) == []


def test_scores_that_are_no_numbers(tool, tmp_path):
    """Folds of one class have no area under the curve: an error of both, as nothing can be chosen."""
    rare = np.zeros(60, int)
    rare[0] = 1
    table(tmp_path / "data.csv", X, rare)
    done = subprocess.run([tool, "logreg", "data.csv", "--target", "y", "--cv", "3", "--metric", "auc"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 3 and "no value of the penalty has a finite auc in every fold" in done.stderr
            and "a smaller --cv" in done.stderr)
    with pytest.raises(ValueError,
                       match="no penalty has a finite score in every fold"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kiln.LogisticRegressionCV(Cs=2, cv=3, scoring="roc_auc", **CPU).fit(X, rare)
