"""Models as ONNX graphs, run by onnxruntime: the same decisions."""
import numpy as np
import pytest
from sklearn.base import clone
from test_leave import MANY, rows_for, trained
from test_saved import AMOUNTS, COUNTS, FITS, OFFSET, X

import kiln

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
QUIET = pytest.mark.filterwarnings("ignore")
NONE = {"MDS", "ALS", "SFA", "LatentDirichletAllocation", "PCA", "TruncatedSVD", "SpectralEmbedding"}
SHARES = np.random.default_rng(1).uniform(0.1, 0.9, len(X))
LINKS = {"identity": AMOUNTS + 3, "log": AMOUNTS, "logit": SHARES, "sqrt": AMOUNTS, "inverse": AMOUNTS,
         "inverse-squared": AMOUNTS, "power": AMOUNTS, "cloglog": SHARES, "probit": SHARES, "cauchit": SHARES}


def run(model, rows, **more):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString(), options)
    found = session.run(None, {"X": rows, **more})
    return dict(zip((output.name for output in session.get_outputs()), found))


def alike(model, rows, loose=1e-12):
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    found = run(model, rows)
    if "label" in found:
        same = found["label"] == model.predict(rows)
        assert same.all() if loose < 1e-9 else same.mean() > 0.999
    wanted = (model.predict_proba(rows) if "probabilities" in found
              else model.decision_function(rows) if "scores" in found and hasattr(model, "classes_")
              else model.transform(rows) if hasattr(model, "transform") else model.predict(rows))
    got = next(found[name] for name in ("probabilities", "scores", "variable") if name in found)
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=0, atol=loose * np.abs(wanted).max())
    assert got.dtype == wanted.dtype


@QUIET
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_class(dtype):
    for estimator, data, y, more in FITS:
        if dtype == np.float32 and hasattr(data, "tocsr"):
            continue
        model = trained((clone(estimator).set_params(device="cpu"), data.astype(dtype), y, more))
        if type(model).__name__ in NONE:
            with pytest.raises(kiln.UnsupportedError, match="no ONNX graph"):
                model.to_onnx()
        elif not getattr(model, "_offset", False):
            rows = rows_for(model).astype(dtype)
            loose = 1e-12 if dtype == np.float64 else 1e-5
            alike(model, rows, max(loose, 1e-7) if isinstance(model, (kiln.KMeans, kiln.NMF)) or
                  "probit" in repr(model) else loose)


@QUIET
@pytest.mark.parametrize("link", LINKS)
def test_every_link(link):
    family = "binomial" if LINKS[link] is SHARES else "gamma"
    model = kiln.GeneralizedLinearRegressor(family, link=link, link_power=0.7 if link == "power" else 0.0,
                                            device="cpu", max_iter=5).fit(0.1 * X, LINKS[link])
    model.coef_ = 0.01 * model.coef_  # which keeps eta above 0 for all rows
    alike(model, MANY, 1e-6 if link in ("probit", "cauchit") else 1e-13)


@QUIET
@pytest.mark.parametrize("prior", [None, "gamma"])
def test_parts_of_pictures_in_float32(prior):
    """They rest where transform's do, within a few steps, each of which changes the likelihood by 1e-7 of
    itself at most there. A sum of float32 rested 2e-5 earlier."""
    from sklearn.datasets import load_digits

    rows = load_digits().data[:500].astype(np.float32)
    model = kiln.NMF(10, prior=prior, random_state=0, device="cpu").fit(rows)
    H = model.components_.astype(np.float64)

    def likelihood(W):
        P = np.maximum(W.astype(np.float64) @ H, 1e-30)
        return (rows * np.log(P)).sum()

    ours, found = likelihood(model.transform(rows)), likelihood(run(model, rows)["variable"])
    assert abs(found - ours) < 1e-6 * abs(ours)


@QUIET
def test_an_offset_is_an_input():
    model = kiln.GeneralizedLinearRegressor("poisson", device="cpu").fit(X, COUNTS, offset=OFFSET)
    found = run(model, X, offset=OFFSET[:, None])["variable"][:, 0]
    np.testing.assert_allclose(found, model.predict(X, offset=OFFSET), rtol=1e-13)


@QUIET
def test_files_labels_and_names(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"))
    for y in (X[:, 0] > 0, np.where(X[:, 0] > 0, "yes", "no"), np.digitize(X[:, 0], [-1, 1]) * 2.0,
              np.digitize(X[:, 0], [-1, 1]).astype(np.uint8)):
        model = kiln.LogisticRegression(device="cpu").fit(frame, y)
        assert run(model, MANY)["label"].tolist() == model.predict(MANY).tolist()
    model.to_onnx(tmp_path / "m.onnx")
    read = onnx.load(tmp_path / "m.onnx")
    assert read.metadata_props[0].value == '["a", "b", "c"]'
    with pytest.raises(Exception, match="not fitted"):
        kiln.Ridge().to_onnx()
