"""Parquet and Feather files, several files and parts, and tables that come by other ways than pandas: what
the CSV file with the same values gives."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GroupKFold

import kiln

pa = pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": RNG.random(60),
        "colour": RNG.choice(["red", "green", "blue"], 60),
        "price": RNG.random(60),
        "weight": RNG.integers(1, 5, 60),
    }
)
NUMBERS = FRAME[["size", "weight"]]
PRICE = FRAME["price"]


@pytest.fixture
def folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("t.csv", index=False)
    FRAME.to_parquet("t.parquet", row_group_size=7)
    FRAME.to_feather("t.feather")
    (tmp_path / "days").mkdir()
    for i in range(3):
        piece = FRAME[20 * i : 20 * i + 20]  # with an index, which is no column
        piece.to_parquet(f"day-{i}.parquet")
        piece.to_parquet(f"days/{i}.parquet")
        piece.to_csv(f"day-{i}.csv", index=False)
    (tmp_path / "unnamed").write_bytes((tmp_path / "t.parquet").read_bytes())
    return tmp_path


def dense(X: Any) -> Any:
    return X.numpy().toarray() if isinstance(X, kiln.Matrix) else X.toarray() if hasattr(X, "toarray") else X


def test_files_of_columns_are_read_as_their_csv_file(folder: Any) -> None:
    want = kiln.read("t.csv", target="price", weights="weight")
    for source, more in (
        ("t.parquet", {}),
        ("t.feather", {}),
        ("unnamed", {}),
        ("day-*.parquet", {}),
        ([folder / "day-0.csv", "day-1.csv", "day-2.csv"], {}),
        ("day-?.csv", {}),
        ("days", {}),
        ("t.csv", {"format": "csv"}),
        ("unnamed", {"format": "parquet"}),
        ("t.parquet", {"columns": ["size", "colour"]}),
        ("t.csv", {"columns": "size,colour"}),
        ("t.parquet", {"device": "cpu"}),
        ("t.csv", {"device": "cpu"}),
    ):
        got = kiln.read(source, target="price", weights="weight", **more)
        assert got.feature_names == want.feature_names
        assert np.array_equal(dense(got.X), dense(want.X)) and np.array_equal(got.y, want.y)
        assert np.array_equal(got.weights, want.weights) and isinstance(got.X, kiln.Matrix) == (
            "device" in more
        )
    assert kiln.read("t.parquet", columns=["size"], target="price").feature_names == ["size"]
    for source in ("t.csv", "t.parquet", FRAME):
        assert kiln.read(source, columns=["colour"], reference={"colour": "red"}).feature_names == [
            "colour=blue",
            "colour=green",
        ]


@pytest.mark.parametrize("source", ["t.parquet", "t.feather", "day-*.parquet"])
@pytest.mark.parametrize("count", [1, 4, 100])
def test_parts_one_after_the_other_are_the_whole(folder: Any, source: str, count: int) -> None:
    parts = [kiln.read(source, columns=["size"], target="price", part=(i, count)) for i in range(count)]
    assert np.array_equal(np.concatenate([part.X for part in parts])[:, 0], FRAME["size"])
    assert np.array_equal(np.concatenate([part.y for part in parts]), PRICE)


def test_what_cannot_be_read_is_said(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bad.parquet").write_text("a,b\n1,2\n")
    pd.DataFrame({"a": [1, None]}).to_parquet("missing.parquet")
    calls: list[tuple[Any, dict[str, Any], str]] = [
        ("none.parquet", {}, "none.parquet.*no such file"),
        ("bad.parquet", {}, "no Parquet file"),
        ("missing.parquet", {}, r"row 1 \(from 0\) of missing.parquet: the value in numeric column 'a'"),
        ("no-*.csv", {}, "no-"),
        ([], {}, "empty"),
        ("t.parquet", {"columns": ["x"]}, "no column 'x'; its columns are size, colour"),
        ("t.csv", {"part": (0, 2)}, "Parquet"),
        (FRAME, {"part": (0, 2)}, "table in memory"),
        ("t.parquet", {"part": (2, 2)}, "part must be"),
        ("t.csv", {"format": "xls"}, "format must be one of"),
    ]
    for source, more, said in calls:
        with pytest.raises(kiln.KilnError, match=said):
            kiln.read(source, **more)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(kiln.UnsupportedError, match="t.parquet, a Parquet file, needs pyarrow"):
        kiln.read("t.parquet")


class Stream:
    """A table that exports the stream, and is nothing else."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.table = pa.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Interchange:
    """One that offers the dataframe interchange protocol alone."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.table = pa.Table.from_pandas(frame, preserve_index=False)

    def __dataframe__(self, **how: Any) -> Any:
        return self.table.__dataframe__(**how)


class OnGPU:
    """As cuDF's frames and columns: to_arrow alone brings them to the host."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        if frame.ndim == 2:
            self.columns, self.dtypes = frame.columns, frame.dtypes
        self.shape = frame.shape

    def __len__(self) -> int:
        return len(self.frame)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def reset_index(self, drop: bool) -> Any:
        return OnGPU(self.frame.reset_index(drop=drop))

    def to_arrow(self) -> Any:
        return pa.Table.from_pandas(self.frame) if self.frame.ndim == 2 else pa.Array.from_pandas(self.frame)


def relation(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("duckdb").sql("select * from frame")


TABLES: dict[str, Any] = {
    "stream": Stream,
    "interchange": Interchange,
    "cuDF": OnGPU,
    "DuckDB": relation,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind(kind: str) -> None:
    make = TABLES[kind]
    for frame in (FRAME[["size", "colour", "weight"]], NUMBERS):
        theirs = kiln.Ridge(device="cpu").fit(frame, PRICE)
        model = kiln.Ridge(device="cpu").fit(make(frame), PRICE)
        assert list(model.feature_names_in_) == list(theirs.feature_names_in_)
        np.testing.assert_array_equal(model.coef_, theirs.coef_)
        turned, texts = frame[frame.columns[::-1]], frame is not NUMBERS
        for each in (model, theirs):
            np.testing.assert_allclose(each.predict(make(turned if texts else frame)), theirs.predict(frame),
                                       rtol=1e-12)
            if not texts:  # as scikit-learn
                with pytest.raises(ValueError, match="in the order of fit|in the same order as they were"):
                    each.predict(make(turned))
        assert kiln.read(make(frame)).feature_names == list(theirs.feature_names_in_)
    with pytest.raises(ValueError, match="lacks the column 'weight'|now missing:\n- weight"):
        theirs.predict(make(NUMBERS[["size"]]))
    with pytest.raises(ValueError, match="not there in fit, 'more'|unseen at fit time:\n- more"):
        theirs.predict(make(NUMBERS.assign(more=1.0)))
    with pytest.raises(kiln.UnsupportedError, match="'when'.*days since a date"):
        kiln.Ridge().fit(make(NUMBERS.assign(when=pd.Timestamp("2020-01-01"))), PRICE)
    with pytest.raises(ValueError, match="'size'.*kiln.TableEncoder"):
        kiln.Ridge().fit(make(FRAME.assign(size=FRAME["size"].where(FRAME["size"] > 0.1))), PRICE)


COLUMNS: dict[str, Any] = {
    "Float64": lambda column: column.astype("Float64"),
    "arrow": lambda column: column.astype("double[pyarrow]"),
    "polars": lambda column: pl.Series(column.to_numpy()),
    "chunks": lambda column: pa.chunked_array([column]),
    "frame": lambda column: column.to_frame("y"),
    "polars frame": lambda column: pl.DataFrame({"y": column}),
    "table": lambda column: pa.table({"y": column}),
    "cuDF": OnGPU,
    "DuckDB": lambda column: relation(column.to_frame("y")),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("X", [NUMBERS, FRAME[["size", "colour"]]], ids=["numbers", "text"])
def test_targets_weights_and_groups_as_columns(kind: str, X: Any) -> None:
    make, weights, groups = COLUMNS[kind], FRAME["weight"].astype(float), FRAME["weight"].astype(float) % 3
    theirs = kiln.Ridge(device="cpu").fit(X, PRICE.to_numpy(), sample_weight=weights.to_numpy())
    model = kiln.Ridge(device="cpu").fit(X, make(PRICE), sample_weight=make(weights))
    np.testing.assert_array_equal(np.ravel(model.coef_), theirs.coef_)
    assert model.score(X, make(PRICE), sample_weight=make(weights)) == pytest.approx(
        theirs.score(X, PRICE, weights)
    )
    searched = kiln.RidgeCV([0.1, 1], cv=GroupKFold(3), device="cpu")
    wanted = searched.fit(X, PRICE.to_numpy(), groups=groups.to_numpy()).best_score_
    assert searched.fit(X, make(PRICE), groups=make(groups)).best_score_ == pytest.approx(wanted)


def test_columns_of_pandas_that_are_more_than_numbers() -> None:
    """Intervals, as of pandas.cut, are levels by their text; sparse columns are filled up; periods are
    dates."""
    frame = pd.DataFrame({"a": np.arange(6.0), "p": pd.period_range("2020-01", periods=6, freq="M")})
    with pytest.raises(kiln.UnsupportedError, match="'p' of the table holds dates"):
        kiln.read(frame)
    assert kiln.read(frame, ignore=["p"]).feature_names == ["a"]
    frame["p"] = pd.cut(frame["a"], [-1, 2, 5])
    assert kiln.read(frame).feature_names == ["a", "p=(-1, 2]", "p=(2, 5]"]
    frame["p"] = pd.arrays.SparseArray([0, 0, 1.5, 0, 0, 2])
    assert kiln.read(frame).X[:, 1].tolist() == [0, 0, 1.5, 0, 0, 2]
    with pytest.raises(kiln.UnsupportedError, match="column p with type complex128"):
        kiln.read(frame.assign(p=1j))
    with pytest.raises(kiln.DataError, match="two columns of the table are named 'a'"):
        kiln.read(frame.set_axis(["a", "a"], axis=1))


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("more, lacking", [({"c": [4.0]}, "'b' is not among them"),
                                           ({"b": [4.0], "c": [4.0]},
                                            "3 columns, the first file has 2; 'c'")])
def test_files_of_other_columns_are_refused(tmp_path: Any, kind: str, more: Any, lacking: str) -> None:
    names = [tmp_path / f"A{i}.{kind}" for i in (1, 2)]
    for name, columns in zip(names, ({"a": [1.0], "b": [2.0]}, {**more, "a": [3.0]})):
        frame = pd.DataFrame(columns)
        frame.to_parquet(name) if kind == "parquet" else frame.to_feather(name)
    for source in (names, str(tmp_path / f"A*.{kind}")):
        with pytest.raises(kiln.DataError, match=f"A2.{kind}: .*{lacking}"):
            kiln.read(source)
    assert kiln.read(names, columns=["a"]).X.tolist() == [[1], [3]]
