"""kiln.TableEncoder: features of tables as the tool makes them, in scikit-learn's pipelines."""

from __future__ import annotations

import pathlib
import pickle
import subprocess
import warnings
from typing import Any

import formulaic
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import kiln

pa = pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": RNG.uniform(1, 3, 60),
        "colour": RNG.choice(["red", "blue", None], 60),
        "floor": pd.Categorical(RNG.choice(["f1", "f2"], 60)),
        "rooms": RNG.integers(1, 5, 60),
    }
)
PRICE = (FRAME["size"] * 10 + (FRAME["colour"] == "red") * 5 + RNG.normal(size=60)).to_numpy()
GAPS = FRAME.assign(size=FRAME["size"].where(RNG.random(60) < 0.8))
NAMES = ["size", "colour=", "colour=blue", "colour=red", "floor=f1", "floor=f2", "rooms"]


@parametrize_with_checks([kiln.TableEncoder(), kiln.TableEncoder(missing="mean")])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def test_pairs_of_columns_are_features() -> None:
    encoder = kiln.TableEncoder(interact=[("colour", "floor")], sparse_output=False)
    made = encoder.fit_transform(FRAME)
    names = [f"colour={c}:floor={f}" for c in ("", "blue", "red") for f in ("f1", "f2")]
    colour = FRAME["colour"].fillna("")
    wanted = np.column_stack([(colour == c) & (FRAME["floor"] == f) for c in ("", "blue", "red")
                              for f in ("f1", "f2")])
    assert list(encoder.get_feature_names_out()) == NAMES + names
    assert (made[:, len(NAMES):] == wanted).all()
    assert list(encoder.feature_names_in_) == list(FRAME.columns)
    assert (encoder.transform(FRAME) == made).all()


def test_pairs_are_coded_as_treatments() -> None:
    """Pairs with a reference level have no feature: those of a formula's C(a) * C(b)."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.choice(["p", "q", "r"], 60), "b": rng.choice(["u", "v"], 60)})
    made = kiln.TableEncoder(interact="a:b", reference={"a": "p", "b": "u"}, sparse_output=False)
    X = made.fit_transform(frame)
    assert list(made.get_feature_names_out()) == ["a=q", "a=r", "b=v", "a=q:b=v", "a=r:b=v"]
    assert np.linalg.matrix_rank(np.column_stack([np.ones(60), X])) == 6
    wanted = formulaic.model_matrix("a * b", frame).to_numpy()[:, 1:]
    np.testing.assert_array_equal(X, wanted)
    unseen = pd.DataFrame({"a": ["q", "new"], "b": ["new", "v"]})
    with pytest.warns(UserWarning, match="not seen in training: 2; they count as no level"):
        np.testing.assert_array_equal(made.transform(unseen), [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]])


def test_features_are_those_of_a_hand_made_table() -> None:
    wanted = np.column_stack(
        [
            FRAME["size"],
            FRAME["colour"].isna(),
            *(FRAME["colour"] == one for one in ("blue", "red")),
            *(FRAME["floor"] == one for one in ("f1", "f2")),
            FRAME["rooms"],
        ]
    ).astype(float)
    for frame in (FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)):
        for encoder in (
            kiln.TableEncoder(),
            kiln.TableEncoder(sparse_output=False),
            kiln.TableEncoder(sparse_output=True),
        ):
            fitted = pickle.loads(pickle.dumps(clone(encoder).fit(frame)))
            for made in (
                clone(encoder).fit_transform(frame),
                fitted.transform(frame),
                fitted.transform(FRAME[["rooms", "floor", "colour", "size"]]),
            ):
                np.testing.assert_array_equal(dense(made), wanted)
                assert encoder.sparse_output == "auto" or hasattr(made, "toarray") == encoder.sparse_output
            assert list(fitted.get_feature_names_out()) == NAMES and fitted.n_features_in_ == 4
            assert fitted.levels_ == {"colour": ["", "blue", "red"], "floor": ["f1", "f2"]}
    encoder = kiln.TableEncoder(
        features=["size", "colour", "rooms"],
        categorical="rooms",
        reference={"colour": "red", "rooms": "1"},
        dtype="float32",
    ).fit(FRAME)
    assert list(encoder.get_feature_names_out()) == [
        "size",
        "colour=",
        "colour=blue",
        "rooms=2",
        "rooms=3",
        "rooms=4",
    ]
    assert encoder.transform(FRAME).dtype == np.float32


def test_columns_of_an_array() -> None:
    X = np.array([[1, "a"], [2, "b"], [3, None]], object)
    encoder = kiln.TableEncoder(sparse_output=False)
    assert encoder.fit_transform(X).tolist() == [[1, 0, 1, 0], [2, 0, 0, 1], [3, 1, 0, 0]]
    assert list(encoder.get_feature_names_out(["size", "sort"])) == ["size", "sort=", "sort=a", "sort=b"]
    with pytest.raises(ValueError, match="mixes kinds of values"):
        encoder.fit(np.array([[1], ["a"]], object))


def test_missing_values() -> None:
    mean = GAPS["size"].mean()
    gaps = GAPS["size"].isna().to_numpy()
    for missing, column in (
        ("mean", np.where(gaps, mean, GAPS["size"])),
        ("nan", GAPS["size"]),
        ("indicator", np.where(gaps, mean, GAPS["size"])),
    ):
        encoder = kiln.TableEncoder(missing=missing).fit(GAPS)
        np.testing.assert_allclose(dense(encoder.transform(GAPS))[:, 0], column, rtol=1e-14)
        assert ("size missing" in encoder.get_feature_names_out()) == (missing == "indicator")
        assert encoder.means_.get("size") == (None if missing == "nan" else pytest.approx(mean))
    new = FRAME[:1].assign(size=np.nan)  # the mean is that of fit
    assert dense(kiln.TableEncoder(missing="mean").fit(GAPS).transform(new))[0, 0] == pytest.approx(mean)
    for missing, frame, said in ((None, GAPS, "'size'.*missing='mean' or"), ("error", FRAME, "'colour'")):
        with pytest.raises(kiln.DataError, match=said):
            kiln.TableEncoder(missing=missing).fit(frame)


def test_levels_and_columns_that_fit_has_not_seen() -> None:
    new = FRAME.assign(colour="pink")
    for how, wanted in (("warn", [0, 0, 0]), ("ignore", [0, 0, 0]), ("reference", [1, 0, 0])):
        encoder = kiln.TableEncoder(handle_unknown=how, sparse_output=False).fit(FRAME)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert encoder.transform(new)[0, 1:4].tolist() == wanted
        assert len(caught) == (how != "ignore") and all(
            "'pink' in column 'colour'" in str(one.message) for one in caught
        )
    with pytest.raises(ValueError, match="'pink' of column 'colour' was not seen"):
        kiln.TableEncoder(handle_unknown="error").fit(FRAME).transform(new)
    with pytest.raises(ValueError, match="'rooms'"):
        encoder.transform(FRAME.drop(columns="rooms"))
    for name, value in (
        ("missing", "drop"),
        ("handle_unknown", "x"),
        ("sparse_output", "x"),
        ("dtype", "int32"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be"):
            kiln.TableEncoder(**{name: value}).fit(FRAME)


def test_frames_come_out_where_they_are_asked_for() -> None:
    for kind, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        made = kiln.TableEncoder().set_output(transform=kind).fit_transform(FRAME)
        assert isinstance(made, frame) and list(made.columns) == NAMES


def test_a_search_fills_by_the_rows_that_train() -> None:
    pipeline = make_pipeline(kiln.TableEncoder(missing="mean"), Ridge())
    search = GridSearchCV(
        pipeline, {"ridge__alpha": [1.0, 100.0], "tableencoder__missing": ["mean", "indicator"]}, cv=3
    )
    assert search.fit(GAPS, PRICE).best_params_["ridge__alpha"] == 1.0
    train, test = slice(20, 60), slice(0, 20)
    filled = GAPS.assign(size=GAPS["size"].fillna(GAPS["size"][train].mean()))
    rows = kiln.TableEncoder().fit_transform(filled)
    wanted = Ridge().fit(rows[train], PRICE[train]).score(rows[test], PRICE[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(wanted)


def test_the_tool_makes_the_same_model_of_the_same_table(tool: pathlib.Path, tmp_path: pathlib.Path) -> None:
    GAPS.assign(price=PRICE).to_csv(tmp_path / "t.csv", index=False)
    subprocess.run(
        [
            tool,
            "linreg",
            tmp_path / "t.csv",
            "--target",
            "price",
            "--l2",
            "2",
            "--missing",
            "indicator",
            "--reference",
            "floor=f2",
            "-o",
            tmp_path / "m.kiln",
            "--quiet",
        ],
        check=True,
    )
    theirs = kiln.load(tmp_path / "m.kiln")
    model = make_pipeline(
        kiln.TableEncoder(missing="indicator", reference={"floor": "f2"}), kiln.Ridge(2, device="cpu")
    ).fit(GAPS, PRICE)
    np.testing.assert_allclose(model[-1].coef_, theirs.coef_, rtol=1e-10)
    np.testing.assert_allclose(model[-1].intercept_, theirs.intercept_, rtol=1e-10)
    data = kiln.read(GAPS, model=tmp_path / "m.kiln")
    assert data.feature_names == list(model[0].get_feature_names_out())
    np.testing.assert_array_equal(dense(data.X), dense(model[0].transform(GAPS)))


def test_references_and_names_that_make_no_sense():
    frame = pd.DataFrame({"c": ["x", "y", "x"], "c=x": [1.0, 2.0, 3.0]})
    for reference in (True, ["c"], "c"):
        with pytest.raises(kiln.ArgumentError, match="reference must name a column's level, as {'colour'"):
            kiln.TableEncoder(reference=reference).fit(frame)
    for read in (kiln.read, kiln.TableEncoder().fit, lambda X: kiln.Ridge(device="cpu").fit(X, [1.0, 2, 4])):
        with pytest.warns(UserWarning, match="two features are called 'c=x'"):
            read(frame)


@pytest.mark.parametrize("kind", ["pandas", "category", "polars", "pyarrow"])
def test_text_of_a_frame_that_says_na_is_text(kind: str, tmp_path: pathlib.Path) -> None:
    """Such tables have nulls of their own; files have words for them."""
    frame = pd.DataFrame({"c": ["NA", "None", None, "x", "nan", "x"], "z": [1.0, 2, 3, 4, 5, 6]})
    levels = ["", "NA", "None", "nan", "x"]
    table = {"pandas": lambda: frame, "category": lambda: frame.astype({"c": "category"}),
             "polars": lambda: pl.from_pandas(frame),
             "pyarrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(frame)}[kind]()
    encoder = kiln.TableEncoder(sparse_output=False).fit(table)
    assert encoder.levels_["c"] == levels
    assert encoder.transform(table)[:, :5].tolist() == np.eye(5)[[1, 2, 0, 4, 3, 4]].tolist()
    names = [f"c={level}" for level in levels]
    assert kiln.read(table, features="c").feature_names == names
    assert len(kiln.Ridge(device="cpu").fit(table, frame["z"]).coef_) == len(names) + 1
    assert kiln.read(table, target="c", features="z", missing="drop").y.tolist() == [
        "NA", "None", "x", "nan", "x"]
    assert kiln.read(table.head(2) if kind != "pyarrow" else table[:2], groups="c").groups.tolist() == [0, 1]
    assert kiln.TableEncoder(missing_words="NA,None").fit(table).levels_["c"] == ["", "nan", "x"]
    (tmp_path / "t.csv").write_text("c,z\nNA,1\nNone,2\n,3\nx,4\nnan,5\nx,6\n")
    assert kiln.read(tmp_path / "t.csv", features="c").feature_names == ["c=", "c=x"]
