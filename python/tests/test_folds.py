"""Nothing is learnt outside its fold: missing values and levels, as scikit-learn's pipelines have it."""
import csv
import json
import subprocess

import kiln
import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder


@pytest.fixture
def table(tmp_path):
    """Missing numbers in columns that tell of y, so that a mean of all rows would, and a level of one row."""
    rng = np.random.default_rng(3)
    y = rng.normal(0, 2, 120)
    X = np.column_stack([rng.normal(5, 1, 120) + 3 * y, rng.normal(0, 1, 120) + y, rng.normal(1, 1, 120)])
    X[rng.random(X.shape) < [0.3, 0.1, 0]] = np.nan
    names = rng.choice(["a", "b"], 120)
    names[7] = "once"
    path = tmp_path / "table.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "z", "u", "who", "y", "class"])
        writer.writerows([*("" if np.isnan(v) else v for v in row), name, v, "yes" if v > 0 else "no"]
                         for row, name, v in zip(X, names, y))
    return path, X, names, y


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("way", ["mean", "indicator"])
def test_tool_scores_are_those_of_a_pipeline(table, tool, tmp_path, way, text):
    path, X, names, y = table
    frame = np.column_stack([X.astype(object), names]) if text else X
    fill = SimpleImputer(add_indicator=way == "indicator")
    encode = make_column_transformer((fill, [0, 1, 2]), (OneHotEncoder(handle_unknown="ignore"),
                                                         [3])) if text else fill
    for verb, target, model, scoring in ((["linreg"], y, Ridge(2.0, tol=1e-12),
                                          "neg_root_mean_squared_error"),
                                         (["logreg"], y > 0,
                                          LogisticRegression(C=0.5, tol=1e-10, max_iter=10000),
                                          "neg_log_loss")):
        done = subprocess.run([tool, *verb, path, "--target", "class" if verb == ["logreg"] else "y",
                               "--features", "x,z,u" + ",who" * text, "--l2", "2", "--cv", "4", "--missing",
                               way, "--tolerance", "1e-10", "--held-out", tmp_path / "held.csv", "--json",
                               "--device", "cpu"],
                              capture_output=True, text=True, check=True)
        assert "warning" not in done.stderr
        with open(tmp_path / "held.csv") as file:
            folds = PredefinedSplit([int(row["fold"]) - 1 for row in csv.DictReader(file)])
        expected = -cross_val_score(make_pipeline(encode, model), frame, target, cv=folds, scoring=scoring)
        np.testing.assert_allclose(json.loads(done.stdout)["cross_validation"]["values"][0]["folds"],
                                   expected, rtol=1e-5)


def test_read_keeps_what_is_missing(table):
    path, X, _, y = table
    data = kiln.read(path, target="y", features="x,z,u", missing="nan")
    np.testing.assert_array_equal(data.X, X)
    folds = KFold(4, shuffle=True, random_state=1)
    found, expected = (GridSearchCV(make_pipeline(SimpleImputer(), model), {name + "__alpha": [0.1, 100.0]},
                                    cv=folds).fit(data.X, data.y)
                       for name, model in (("ridge", kiln.Ridge()), ("ridge", Ridge())))
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"],
                               rtol=1e-7)
    with pytest.raises(kiln.DataError, match="the target of row"):
        kiln.read(path, target="x", features="z,u", missing="nan")
    with pytest.raises(ValueError, match="NaN"):
        kiln.RidgeCV().fit(data.X, data.y)


def test_names_end_at_no_nul(tmp_path):
    """C would take what stands before it: another file."""
    X = np.arange(12.0).reshape(6, 2)
    model = kiln.Ridge().fit(X, X[:, 0])
    path = f"{tmp_path}/a\0b"

    def keep():
        with kiln.checkpoint(path):
            kiln.LogisticRegression().fit(X, [0, 1, 0, 1, 0, 1])

    for call in (lambda: kiln.read(path), lambda: kiln.load(path), lambda: kiln.matrix(path),
                 lambda: model.save(path), keep, lambda: kiln.read(tmp_path / "t.csv", target="y\0"),
                 lambda: kiln.device("cpu\0x")):
        with pytest.raises(ValueError, match="NUL"):
            call()
    assert not list(tmp_path.iterdir())
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    assert kiln.read(tmp_path / "t.csv", target="y").y == [2]


def test_targets_that_overflow_are_not_blamed_on_a_start():
    """The user gave none, and the squares of 1e200 are no doubles."""
    X = np.arange(40.0).reshape(20, 2)
    y = X[:, 0] % 7
    y[3] = 1e200
    with pytest.raises(kiln.DataError, match="overflows.*rescale y or X"):
        kiln.RidgeCV([1.0, 10.0], cv=4, device="cpu").fit(X, y)
