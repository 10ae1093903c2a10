"""kiln.read of tables in memory: what other libraries export by the Arrow C stream interface becomes what the
CSV file with the same values becomes."""
from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import nanoarrow
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kiln


def dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def assert_same(table: Any, path: Any, **options: Any) -> None:
    got, want = kiln.read(table, **options), kiln.read(path, **options)
    assert got.feature_names == want.feature_names
    assert np.array_equal(dense(got.X), dense(want.X))
    for mine, theirs in zip((got.y, got.weights, got.offset, got.groups),
                            (want.y, want.weights, want.offset, want.groups)):
        assert (mine is None) == (theirs is None)
        assert mine is None or (np.asarray(mine) == np.asarray(theirs)).all()


def drawn(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Numbers of several widths, texts with gaps, categories, targets and roles."""
    words = np.array(["alpha", "b", "", "with, comma", 'quote "q"', "z" * 20], object)
    frame = pd.DataFrame({
        "a": rng.standard_normal(rows), "b": rng.integers(-100, 100, rows).astype("int8"),
        "c": rng.integers(0, 2**40, rows), "d": rng.standard_normal(rows).astype("float32"),
        "e": words[rng.integers(0, 6, rows)], "f": words[rng.integers(0, 2, rows)],
        "y": rng.integers(0, 3, rows), "s": rng.random(rows), "o": rng.standard_normal(rows),
        "g": words[rng.integers(0, 2, rows)]})
    frame.loc[rng.random(rows) < 0.2, "f"] = None
    frame["d"] = frame["d"].astype("float64")
    return frame


def exports(frame: pd.DataFrame) -> dict[str, Any]:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    encoded = pa.table({name: column.combine_chunks().dictionary_encode() if pa.types.is_string(column.type)
                        or pa.types.is_large_string(column.type)
                        else column for name, column in zip(table.column_names, table.columns)})
    views = pa.table({name: column.cast(pa.string_view()) if pa.types.is_string(column.type)
                      or pa.types.is_large_string(column.type) else column
                      for name, column in zip(table.column_names, table.columns)})
    third = max(len(frame) // 3, 1)
    chunks = pa.concat_tables([table.slice(0, third), table.slice(third, third), table.slice(2 * third)])
    padded = pa.concat_tables([table.slice(0, 1), table]).combine_chunks().slice(1)
    return {"pandas": frame, "categories": frame.astype({"e": "category", "f": "category"}),
            "polars": pl.from_pandas(frame), "pyarrow": table, "dictionaries": encoded, "views": views,
            "chunks": chunks, "slice": padded, "reader": table.to_reader(max_chunksize=7),
            "nanoarrow": nanoarrow.c_array_stream(table)}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of both alike: rows left out, names
@pytest.mark.parametrize("rows", [1, 50, 20_000])
def test_tables_are_read_as_their_csv_files(tmp_path: pathlib.Path, rows: int) -> None:
    frame, path = drawn(np.random.default_rng(rows), rows), tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    for name, table in exports(frame).items():
        if name in ("reader", "nanoarrow"):  # streams, which are read once
            assert np.array_equal(dense(kiln.read(table, target="y").X),
                                  dense(kiln.read(path, target="y").X)), name
            continue
        for options in ({"target": "y"}, {"target": "e"} if rows > 1 else {"target": "b"},
                        {"target": "y", "weights": "s", "offset": "o", "groups": "g"},
                        {"target": "y", "categorical": "b", "ignore": "e"} if rows == 50
                        else {"features": "a,d"}):
            assert_same(table, path,
                        **options) if options.get("target") != "e" else assert_same(table, path,
                                                                                    missing="drop", **options)


def test_numbers_that_are_missing() -> None:
    table = pa.table({"x": pa.array([1.0, None, 3.0, float("nan")]), "b": pa.array([True, None, False, True]),
                      "n": pa.nulls(4), "y": [1.0, 2.0, 3.0, 4.0]})
    data = kiln.read(table.drop(["n"]), target="y", missing="mean")
    assert np.allclose(data.X, [[1, 1], [2, 2 / 3], [3, 0], [2, 1]])
    data = kiln.read(table.drop(["n"]), target="y", missing="nan")
    assert np.isnan(data.X[[1, 1, 3], [0, 1, 0]]).all() and np.isfinite(data.X).sum() == 5
    data = kiln.read(pl.from_arrow(table).drop("n"), target="y", missing="indicator")
    assert data.feature_names == ["x", "x missing", "b", "b missing"]
    with pytest.raises(kiln.DataError, match="row 1 .*: the value in numeric column 'x' is missing; 3 such"):
        kiln.read(table, target="y", ignore="n")
    with pytest.raises(kiln.DataError, match="'n'"):
        kiln.read(table, target="y", missing="mean", ignore="x,b")
    assert (kiln.read(table, features="y", missing_words="-1,3", missing="mean").X[2, 0]
            == pytest.approx(7 / 3))


def test_labels_stay_what_they_are() -> None:
    labels = kiln.read(pa.table({"x": [1, 2, 3], "y": pa.array([2**60 + 1, 2**60, 7], pa.int64())}),
                       target="y").y
    assert labels.tolist() == [2**60 + 1, 2**60, 7]
    assert kiln.read(pa.table({"x": [1, 2], "y": pa.array(["01", "1"])}),
                     target="y").y.tolist() == ["01", "1"]
    assert kiln.read(pl.DataFrame({"x": [1, 2], "y": [True, False]}), target="y").y.tolist() == [1, 0]


def test_refused_types_say_what_to_do() -> None:
    import datetime
    import decimal

    for values, advice in ((pa.array([datetime.date(2024, 1, 1)] * 2), "days since"),
                           (pa.array([1, 2], pa.timestamp("ms")), "days since"),
                           (pa.array([decimal.Decimal("1.5")] * 2), "float64"),
                           (pa.array([[1], [2]]), "lists.*plain column"),
                           (pa.array([b"a", b"b"]), "ignore='odd'"),
                           (pa.array([{"a": 1}] * 2), "structs.*plain column")):
        table = pa.table({"x": [1, 2], "odd": values})
        with pytest.raises(kiln.UnsupportedError, match=f"'odd'.*{advice}"):
            kiln.read(table)
        assert kiln.read(table, ignore="odd").X.tolist() == [[1], [2]]
    with pytest.raises(kiln.ArgumentError, match="struct of columns"):
        kiln.read(pl.Series([1, 2, 3]))
    with pytest.raises(kiln.ArgumentError, match="target_file"):
        kiln.read(pa.table({"x": [1]}), target_file="y.npy")
    stream = nanoarrow.c_array_stream(pa.table({"x": [1.0]}))
    kiln.read(stream)
    with pytest.raises((kiln.KilnError, RuntimeError)):
        kiln.read(stream)


def test_a_model_encodes_a_table_as_its_training_data(tool: pathlib.Path, tmp_path: pathlib.Path) -> None:
    frame = drawn(np.random.default_rng(5), 200)
    frame.to_csv(tmp_path / "train.csv", index=False)
    model = tmp_path / "m.kiln"
    subprocess.run([tool, "linreg", tmp_path / "train.csv", "--target", "a", "--l2", "1", "--ignore", "g,s",
                    "-o", model, "--quiet"], check=True)
    new = drawn(np.random.default_rng(6), 60)
    new.loc[3, "e"] = "unseen"
    new.to_csv(tmp_path / "new.csv", index=False)
    with pytest.warns(UserWarning, match="not seen in training: 1"):
        want = kiln.read(tmp_path / "new.csv", model=model)
    for table in (new, pl.from_pandas(new), pa.Table.from_pandas(new[new.columns[::-1]],
                                                                 preserve_index=False)):
        with pytest.warns(UserWarning, match="row 3 .*: values of text columns not seen in training: 1"):
            got = kiln.read(table, model=model)
        assert got.feature_names == want.feature_names and np.array_equal(dense(got.X), dense(want.X))
