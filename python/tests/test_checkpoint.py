"""Runs that are stopped and go on: the same bits, and what is refused."""
import os

import numpy as np
import pytest
import scipy.sparse

import kiln


CPU = kiln.Device("cpu", deterministic=True)


def ratings():
    source = np.random.default_rng(3)
    return scipy.sparse.random(60, 40, density=0.3, format="csr", random_state=source)


def stop_after(iterations):
    return lambda now: now["phase"] == "solve" and now["done"] >= iterations


def model(**options):
    return kiln.ALS(4, max_iter=12, tol=1e-12, random_state=1, device=CPU, **options)


def test_goes_on(tmp_path):
    path = tmp_path / "run.ckpt"
    whole = model().fit(ratings())
    stopped = model()
    stopped.callback = stop_after(5)
    with kiln.checkpoint(path, resume=True) as kept:
        stopped.fit(ratings())
    assert kept.info.resumed == -1 and kept.info.iteration == 5 and kept.info.bytes == path.stat().st_size
    with kiln.checkpoint(path, every=1e-6, resume=True) as kept:
        again = model().fit(ratings())
    assert kept.info.resumed == 5 and kept.info.written > 0
    assert np.array_equal(np.asarray(again.column_factors_), np.asarray(whole.column_factors_)) and again.n_iter_ == whole.n_iter_


def test_interrupt(tmp_path):
    """Ctrl-C raises, and the file is there."""
    def interrupt(now):
        if now["done"] >= 3:
            raise KeyboardInterrupt

    path, stopped = tmp_path / "run.ckpt", model()
    stopped.callback = interrupt
    with pytest.raises(KeyboardInterrupt), kiln.checkpoint(path) as kept:
        stopped.fit(ratings())
    assert kept.info.iteration == 3
    with kiln.checkpoint(resume=path) as kept:
        model().fit(ratings())
    assert kept.info.resumed == 3 and kept.info.written == 0


def test_functions(tmp_path):
    path, graph = tmp_path / "run.ckpt", abs(scipy.sparse.random(50, 50, density=0.1, format="csr", random_state=1))
    whole = kiln.pagerank(graph, device="cpu")
    with kiln.checkpoint(path):
        kiln.pagerank(graph, device="cpu", callback=stop_after(4))
    with kiln.checkpoint(resume=path) as kept:
        again = kiln.pagerank(graph, device="cpu")
    assert kept.info.resumed >= 4
    assert np.array_equal(np.asarray(again[0]), np.asarray(whole[0]))


def test_refusals(tmp_path):
    path, stopped = tmp_path / "run.ckpt", model()
    stopped.callback = stop_after(2)
    with kiln.checkpoint(path):
        stopped.fit(ratings())
    with pytest.raises(kiln.ModelError, match="l2"), kiln.checkpoint(resume=path):
        model(l2=0.5).fit(ratings())
    with pytest.raises(kiln.ModelError, match="not those that"), kiln.checkpoint(resume=path):
        model().fit(ratings() * 1.001)
    with pytest.raises(kiln.FileError), kiln.checkpoint(resume=tmp_path / "none"):
        pass
    with pytest.raises(ValueError, match="name a file"):
        kiln.checkpoint(resume=True)
    with pytest.raises(RuntimeError, match="one run"), kiln.checkpoint(path):
        model().fit(ratings())
        model().fit(ratings())
    assert os.path.exists(path)
