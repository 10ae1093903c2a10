"""Class labels stay what they are, in files, arrays and models."""
import subprocess

import kiln
import numpy as np
import pytest

WIDE = [9007199254740993, 9007199254740992, -5]


def clusters(labels, each=10):
    random = np.random.default_rng(0)
    codes = np.tile(np.arange(len(labels)), each)
    return (np.column_stack([codes, codes * 3 % len(labels)]) + random.uniform(-0.2, 0.2, (len(codes), 2)),
            np.array(labels)[codes])


@pytest.mark.parametrize("labels", [np.array(WIDE), np.array([2**64 - 1, 2**64 - 2], np.uint64),
                                    np.array(["007", "07", "7"]), np.array([-1, 1]), np.array(["--1", "1"]),
                                    np.array(["-0", "1"])])
@pytest.mark.parametrize("estimator", [kiln.LogisticRegression, kiln.LinearSVC])
def test_models_keep_labels(tool, tmp_path, labels, estimator):
    X, y = clusters(labels)
    model = estimator(device="cpu", C=100).fit(X, y)
    assert (model.predict(X) == y).all()
    model.save(tmp_path / "m.kiln")
    loaded = kiln.load(tmp_path / "m.kiln")
    assert loaded.classes_.dtype == model.classes_.dtype and (loaded.predict(X) == y).all()
    np.save(tmp_path / "X.npy", X)
    said = subprocess.check_output([tool, "predict", "-q", "--device", "cpu", tmp_path / "m.kiln",
                                    tmp_path / "X.npy"], text=True)
    assert said.split() == [str(label) for label in y]


def test_files(tmp_path):
    X, y = clusters(["007", "07", "7"])
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, y)))
    assert (kiln.read(tmp_path / "t.csv", target="y").y == y).all()
    assert kiln.read(tmp_path / "t.csv", target="y", numeric="y").y.tolist() == [7.0] * len(y)
    (tmp_path / "t.svm").write_text("".join(f"{label} 1:{a + 9} 2:{b + 9}\n" for (a, b), label in zip(X, y)))
    assert (kiln.read(tmp_path / "t.svm").y == y).all()
    X, y = clusters(WIDE)
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, y)))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    for data in kiln.read(tmp_path / "t.csv", target="y"), kiln.read(tmp_path / "X.npy",
                                                                     target_file=tmp_path / "y.npy"):
        assert data.y.dtype == np.int64 and (data.y == y).all()


def test_columns_beside_x(tmp_path):
    (tmp_path / "t.csv").write_text("a,y,w,o,g\n1,1,2,0.5,b\n2,NA,1,0.25,a\n3,0,1,0.125,b\n")
    data = kiln.read(tmp_path / "t.csv", target="y", weights="w", offset="o", groups="g", missing="drop")
    assert (data.weights.tolist() == [2, 1] and data.offset.tolist() == [0.5, 0.125] and data.groups.tolist()
            == [0, 0])
    assert data.roles == {"weights": "w", "offset": "o", "groups": "g"}
    assert type(data)(data.X, None, None, []).roles is None
    assert data.X.tolist() == [[1], [3]] and data.y.tolist() == [1, 0]
    with pytest.raises(kiln.KilnError):
        kiln.read(tmp_path / "t.csv", target="y")
    with pytest.raises(ValueError, match="missing must be"):
        kiln.read(tmp_path / "t.csv", missing="skip")
