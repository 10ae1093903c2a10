"""Frames as they are: text columns become a feature for each level, columns go by name, and errors say which
one."""
import pickle
import re
import warnings

import kiln
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from kiln import accel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"size": RNG.uniform(1, 3, 60), "colour": RNG.choice(["red", "blue", "green"], 60),
                      "floor": pd.Categorical(RNG.choice(["f1", "f2"], 60)), "new": RNG.random(60) < 0.5},
                     index=RNG.permutation(60))
PRICE = (FRAME["size"] * 10 + (FRAME["colour"] == "red") * 5 - (FRAME["floor"] == "f2") * 3
         + RNG.normal(size=60)).to_numpy()
NAMES = ["size", "colour=blue", "colour=green", "colour=red", "floor=f1", "floor=f2", "new"]
FEATURES = np.column_stack([FRAME["size"], *(FRAME["colour"] == one for one in ("blue", "green", "red")),
                            *(FRAME["floor"] == one for one in ("f1", "f2")), FRAME["new"]])
KINDS = {"pandas": lambda frame: frame,
         "polars": lambda frame: polars.from_pandas(frame, include_index=False),
         "pyarrow": pyarrow.Table.from_pandas}


@pytest.mark.parametrize("kind", KINDS)
def test_text_becomes_levels(kind, tmp_path):
    """The right coefficients are scikit-learn's of features that are made by hand; the index is none."""
    theirs = Ridge().fit(FEATURES, PRICE)
    model = kiln.Ridge(device="cpu").fit(KINDS[kind](FRAME), PRICE)
    assert list(model.feature_names_in_) == NAMES and model.n_features_in_ == 7
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-8)
    turned = KINDS[kind](FRAME[["new", "floor", "colour", "size"]][:20])
    model.save(tmp_path / "m.kiln")
    for each in (model, kiln.load(tmp_path / "m.kiln"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(each.predict(turned), theirs.predict(FEATURES[:20]), rtol=1e-8)


KINDS_OF_PANDAS = FRAME.assign(**{
    "none": FRAME["colour"].where(FRAME["size"] > 1.2), "whole": FRAME["size"].astype("int16"),
    "nullable": pd.array(np.arange(60), dtype="Int64"), "sure": pd.array(FRAME["new"], dtype="boolean"),
    "swapped": FRAME["size"].to_numpy().astype(">f4"), "objects": FRAME["size"].astype(object),
    "codes": pd.Categorical(np.arange(60) % 3 * 10), "some": FRAME["floor"].where(FRAME["size"] > 1.2),
    "binned": pd.cut(FRAME["size"], 3), "sparse": pd.arrays.SparseArray(np.arange(60) % 2.0)})


@pytest.mark.parametrize("bad", [{"when": pd.date_range("2020", periods=2)},
                                 {"when": pd.to_timedelta([1, None])},
                                 {"when": pd.period_range("2020", periods=2)},
                                 {"when": [pd.Timestamp("2020").date()] * 2}, {"both": ["a", 1]},
                                 {"complex": [1j, 2]}, {"gap": pd.array([1, None], dtype="Int64")}, None],
                         ids=str)
def test_pandas_without_pyarrow(bad, monkeypatch):
    """The same features, and the same kinds of errors, with the same column's name."""
    def found(frame):
        try:
            data = kiln.read(frame)
        except kiln.KilnError as error:
            return type(error), re.search("'?(when|both|complex|gap)'?", str(error)).group(1)
        return data.feature_names, np.asarray(data.X.todense()).tolist()

    frame = KINDS_OF_PANDAS if bad is None else pd.DataFrame(bad)
    wanted = found(frame)

    def absent(*_):
        raise ImportError("No module named 'pyarrow'")

    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", absent)
    assert found(frame) == wanted


@pytest.mark.parametrize("make", [lambda: kiln.LinearRegression(device="cpu"),
                                  lambda: kiln.GeneralizedLinearRegressor(device="cpu")])
def test_levels_add_up_to_the_intercept_without_a_word(make):
    """What text alone makes depend on other columns is no news; what else does is."""
    frame = FRAME[["size", "colour", "floor"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "rank" not in make().fit(frame, PRICE).report_.warnings
    with pytest.warns(UserWarning, match="columns depend on each other"):
        make().fit(frame.assign(twice=2 * frame["size"]), PRICE)


def test_the_index_is_no_column():
    """It was one in kiln.read, under the name __index_level_0__, of each frame whose rows had been taken out
    of another."""
    assert kiln.read(FRAME[["size", "new"]]).feature_names == ["size", "new"]
    assert kiln.read(FRAME.set_index("colour")[["size"]]).feature_names == ["size"]
    assert kiln.read(pyarrow.Table.from_pandas(FRAME[["size"]])).feature_names == ["size"]


def test_levels_that_are_new_and_columns_that_lack():
    model = kiln.Ridge(device="cpu").fit(FRAME, PRICE)
    with pytest.warns(UserWarning, match="'pink' in column 'colour'"):
        found = model.predict(FRAME.assign(colour="pink"))
    none = FEATURES.astype(float)
    none[:, 1:4] = 0
    np.testing.assert_allclose(found, none @ model.coef_ + model.intercept_, rtol=1e-10)
    with pytest.raises(ValueError, match="'floor'"):
        model.predict(FRAME[["size", "colour", "new"]])
    with pytest.raises(ValueError, match="fitted with numbers alone"):
        kiln.Ridge(device="cpu").fit(FRAME[["size"]], PRICE).predict(FRAME)
    assert kiln.Ridge(device="cpu").fit(FRAME, PRICE).fit(FEATURES, PRICE).predict(FEATURES).shape == (60,)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_dates_are_refused_with_a_hint(kind):
    frame = KINDS[kind](FRAME.assign(when=pd.Timestamp("2020-01-01")))
    with pytest.raises(NotImplementedError, match="'when'.*days since a date"):
        kiln.Ridge().fit(frame, PRICE)


def test_errors_say_the_columns_name():
    numbers = FRAME[["size"]].assign(area=1.0)
    numbers.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="column 'area' of X has NaN(?!.*count from 0)"):
        kiln.Ridge(device="cpu").fit(numbers, PRICE)
    mixed = FRAME.copy()
    mixed.iloc[3, 0] = np.nan
    with pytest.raises(ValueError, match="size"):
        kiln.Ridge(device="cpu").fit(mixed, PRICE)


def of_read(frame, **options):
    return lambda: kiln.read(frame, **{"target": "size", **options})


def of_fit(frame):
    return lambda: kiln.Ridge(device="cpu").fit(frame, PRICE)


def of_encoder(frame, new=None, **options):
    encoder = kiln.TableEncoder(**options)
    return (lambda: encoder.fit(frame)) if new is None else (lambda: encoder.fit(frame).transform(new))


GAP = FRAME.assign(size=[1.0, 2.0, None] + [3.0] * 57)
WHEN = FRAME.assign(when=pd.Timestamp("2020-01-01"))


@pytest.mark.parametrize("call, said", [
    (of_fit(GAP), r"row 2 \(from 0\) of the table: the value in numeric column 'size' is missing \(.*; "
                  r"kiln.TableEncoder\(missing='mean'\) in a pipeline does it\)$"),
    (of_read(GAP, target="colour"), "row 2 .* is missing .*missing='drop' or 'mean' or 'indicator' or 'nan'"),
    (of_encoder(GAP), "row 2 .* missing='mean' or 'indicator' or 'nan' does it"),
    (of_fit(FRAME.assign(size=[1.0, np.inf] * 30)),
     r"row 1 .*'inf' in column 'size' is not a finite f64; 30 such values, the next: row 3 'size', .*"
     r"\(repair or remove the row\)$"),
    (of_encoder(FRAME, FRAME.assign(colour="pink"), handle_unknown="error"),
     "row 0 .*'pink' of column 'colour'.*handle_unknown='ignore' or 'reference'"),
    (of_encoder(FRAME, FRAME[["size", "new"]]), "^the model needs a column .* the table lacks .*training"),
    (of_encoder(FRAME, reference={"color": "red"}), "^reference 'color' is not a column of the table"),
    (of_encoder(FRAME, reference={"colour": "pink"}), r"^column 'colour' has no level 'pink'.*\(levels"),
    (of_encoder(FRAME, reference={"size": "1"}), r"\(categorical='size' takes its numbers for levels\)$"),
    (of_fit(WHEN), r"'when' .* dates, times or durations, .*: kiln.TableEncoder\(ignore='when'\) in a pipe"),
    (of_read(WHEN), r"'when' .* days since a date, or leave it out: ignore='when'\)$"),
    (of_encoder(WHEN), r"leave it out: ignore='when'\)$")])
def test_messages_are_the_entrances_own(call, said):
    """Rows count from 0, as a frame's do, and an option is written as whoever called it has it: estimators
    have none for tables, so that theirs is the encoder's."""
    with pytest.raises(kiln.KilnError, match=said) as caught:
        call()
    assert not re.search(r"\(table\)|\bline\b|\bfile\b|\bheader\b", str(caught.value) + caught.value.hint)
    assert not caught.value.file and not caught.value.line


def test_a_stored_table_has_rows_too(tmp_path):
    """A message names the file, and warns of it, too."""
    GAP.to_parquet(tmp_path / "gap.parquet")
    with pytest.raises(kiln.DataError, match=r"row 2 \(from 0\) of .*gap.parquet: the value") as caught:
        kiln.read(tmp_path / "gap.parquet", target="colour")
    assert caught.value.file.endswith("gap.parquet")
    with pytest.warns(UserWarning, match=r"row 2 \(from 0\) of .*gap.parquet: rows left out"):
        kiln.read(tmp_path / "gap.parquet", target="colour", missing="drop")


def test_names_that_are_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kiln.Ridge(device="cpu").fit(FRAME.rename(columns={"size": 3}), PRICE)
    assert model.feature_names_in_[0] == "3"


def test_a_column_of_numbers_and_text():
    frame = FRAME.assign(colour=[1, "red"] * 30)
    for call in (lambda: kiln.Ridge(device="cpu").fit(frame, PRICE), lambda: kiln.read(frame)):
        with pytest.raises(kiln.DataError, match="mixes kinds of values.*column colour"):
            call()


def test_a_fit_that_is_refused_leaves_the_model():
    model = kiln.Ridge(device="cpu").fit(FRAME, PRICE)
    wanted = model.predict(FRAME)
    for X, y in ((FEATURES, PRICE[:5]), (np.empty((0, 7)), PRICE[:0]), (FRAME, PRICE[:5])):
        with pytest.raises(ValueError):
            model.fit(X, y)
        np.testing.assert_array_equal(model.predict(FRAME), wanted)


@pytest.mark.parametrize("model", [kiln.LogisticRegression(), kiln.LinearSVC(),
                                   kiln.KMeans(3, random_state=0), kiln.MDS(), kiln.RidgeCV(cv=3),
                                   kiln.NMF(2, random_state=0), kiln.PoissonRegressor()],
                         ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_estimator_takes_them(model):
    y = PRICE > PRICE.mean() if hasattr(model, "class_weight") else np.abs(PRICE)
    by_frame, by_array = (model.__class__(**model.set_params(device="cpu").get_params()).fit(X, y)
                          for X in (FRAME, FEATURES))
    for name in ("coef_", "cluster_centers_", "components_", "stress_"):
        if hasattr(by_array, name):
            np.testing.assert_allclose(getattr(by_frame, name), getattr(by_array, name), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_searches_go_by_rows(kind):
    frame = KINDS[kind](FRAME)
    wanted = cross_val_score(Ridge(), FEATURES, PRICE)
    np.testing.assert_allclose(cross_val_score(kiln.Ridge(device="cpu"), frame, PRICE), wanted, rtol=1e-6)
    assert (GridSearchCV(kiln.Ridge(device="cpu"), {"alpha": [1.0, 1e6]}).fit(frame, PRICE).best_params_
            == {"alpha": 1.0})


def test_accel_leaves_them_to_scikit_learn():
    accel.install()
    try:
        with pytest.raises(ValueError, match="could not convert"):
            Ridge().fit(FRAME, PRICE)
    finally:
        accel.uninstall()


@pytest.mark.parametrize("kind", [pd.DataFrame, polars.DataFrame])
def test_words_that_are_probably_no_levels(kind):
    """As of a CSV file: numbers with something beside them, dates, times, a stray word among numbers; not of
    categories."""
    y = list(range(40))
    for words, said in (([f"{i % 9}%" for i in y], "holds numbers with something beside them, such as '0%'"),
                        ([f"2024-01-{1 + i % 28:02}" for i in y], "holds dates or times"),
                        ([f"{i % 24}:{i:02}" for i in y], "holds dates or times"),
                        (["?" if i % 4 == 0 else str(i) for i in y],
                         "10 of its first 40 values are no numbers")):
        with pytest.warns(UserWarning, match=re.escape(said)) as caught:
            kiln.read(kind({"a": words, "y": y}), target="y")
        assert all(warning.filename == __file__ and "--" not in str(warning.message) for warning in caught)
        with pytest.warns(UserWarning, match=re.escape(said)):
            kiln.Ridge(device="cpu").fit(kind({"a": words, "b": y}), y)
    for words in (["red", "green"] * 20, [f"a{i % 3}" for i in y]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kiln.read(kind({"a": words, "y": y}), target="y")
    if kind is pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kiln.read(kind({"a": pd.Categorical([f"{i % 9}%" for i in y]), "y": y}), target="y")
