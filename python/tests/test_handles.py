"""Objects that hold handles of the library: copied, pickled, and in a forked child."""
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import kiln
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

_RNG = np.random.default_rng(0)
X, Y = _RNG.normal(size=(60, 4)), _RNG.normal(size=60)


def _pickled(value):
    return pickle.loads(pickle.dumps(value))


def test_a_copy_of_a_device_is_the_device():
    device = kiln.Device("cpu*2", threads=2, deterministic=True)
    assert copy.copy(device) is device and copy.deepcopy([device])[0] is device
    again = _pickled(device)
    assert again is _pickled(device)  # opened once in a process
    assert (again.name, again.threads) == ("cpu*2", 2)
    assert clone(kiln.Ridge(device=device)).device is device


def test_estimators_with_a_device_travel():
    device = kiln.Device("cpu", threads=1)
    model = kiln.Ridge(1.0, device=device).fit(X, Y)
    for other in (copy.copy(model), copy.deepcopy(model), _pickled(model), clone(model).fit(X, Y)):
        np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=1e-12)
    search = GridSearchCV(kiln.Ridge(device=device), {"alpha": [0.1, 10.0]}, n_jobs=2).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("change", [copy.copy, copy.deepcopy, _pickled])
@pytest.mark.parametrize("values",
                         [X, X.astype(np.float32), scipy.sparse.csr_matrix(np.round(X)), np.zeros((0, 3))])
def test_copies_of_a_matrix(change, values):
    matrix = kiln.matrix(values)
    other = change(matrix)
    del matrix
    assert other.sparse == scipy.sparse.issparse(values) and other.dtype == values.dtype
    found = other.numpy()
    assert (found != values).nnz == 0 if other.sparse else (found == values).all()


def test_a_matrix_in_a_file_is_pickled_as_its_name(tmp_path):
    np.save(tmp_path / "X.npy", X)
    assert (_pickled(kiln.matrix(tmp_path / "X.npy")).numpy() == X).all()


def test_what_cannot_travel_says_so(tmp_path):
    half = kiln.Half(X)
    assert copy.deepcopy(half) is half
    for value in (half, kiln.checkpoint(tmp_path / "run.ckpt")):
        with pytest.raises(TypeError, match="cannot be|can be neither"):
            pickle.dumps(value)
    with pytest.raises(TypeError, match="can be neither"):
        copy.copy(kiln.checkpoint(tmp_path / "run.ckpt"))


# ------------------------------------------------------------------------------------------------------ forks

def _wait(child, seconds=60):
    """The exit status of a child that must end."""
    for _ in range(seconds * 100):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "it hangs"


def _fork(work):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are other threads is the point
        child = os.fork()
    if child:
        return _wait(child)
    try:
        work()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


def test_forks_at_any_moment():
    """Other threads train, open devices and build matrices meanwhile; the child trains as if it were
    alone."""
    wanted, end = kiln.Ridge(1.0, device="cpu").fit(X, Y).coef_, threading.Event()
    own = kiln.Device("cpu")

    def train():
        while not end.is_set():
            kiln.Ridge(1.0, device=own).fit(X, Y)

    def reopen():
        while not end.is_set():
            kiln._arrays._opened.clear()
            kiln.device("cpu")

    def work():
        np.testing.assert_allclose(kiln.Ridge(1.0, device="cpu").fit(X, Y).coef_, wanted, rtol=1e-12)
        try:
            kiln.Ridge(1.0, device=own).fit(X, Y)
        except kiln.DeviceError as error:
            assert "forked" in str(error)

    threads = [threading.Thread(target=target) for target in (train, reopen, train)]
    for thread in threads:
        thread.start()
    try:
        for i in range(25):
            time.sleep(i % 5 * 0.0017)
            assert _fork(work) == 0
    finally:
        end.set()
        for thread in threads:
            thread.join()


_SLOW_IMPORT = """
import importlib.abc, os, sys, threading, time, warnings
import kiln
warnings.simplefilter("ignore")
begun = threading.Event()
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "kiln." + sys.argv[1]:
            begun.set()
            time.sleep(0.3)  # the module's lock is held meanwhile
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=getattr, args=(kiln, sys.argv[2]))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    getattr(kiln, sys.argv[2])
    getattr(kiln, "KilnError")
    os._exit(0)
thread.join()
for _ in range(6000):
    found, status = os.waitpid(child, os.WNOHANG)
    if found:
        sys.exit(status != 0)
    time.sleep(0.01)
os.kill(child, 9)
sys.exit("the child hangs")
"""


@pytest.mark.parametrize("module, name", [("_library", "KilnError"), ("_manifold", "MDS"),
                                          ("_arrays", "device"), ("plot", "plot")])
def test_a_fork_waits_for_a_first_import(module, name):
    """A thread is in the middle of loading a module when another one forks: the child, where that thread is
    not, loads it as well."""
    done = subprocess.run([sys.executable, "-c", _SLOW_IMPORT, module, name], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr


def test_threads_open_devices_at_once():
    """In a process that has opened none yet: the first look for OpenCL's drivers is one thread's alone."""
    names = [row["name"] for row in kiln.devices() if row["usable"]]
    program = (f"import threading, kiln\nnames = {names + ['cpu*2', 'auto', *names]!r}\n"
               "ready = threading.Barrier(len(names))\n"
               "def work(name): ready.wait(); kiln.device(name); print('open')\n"
               "threads = [threading.Thread(target=work, args=(name,)) for name in names]\n"
               "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n")
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert done.stdout.count("open") == 2 * len(names) + 2


def test_a_fork_beside_opencl():
    if not any(row["name"].startswith("opencl") and row["usable"] for row in kiln.devices()):
        pytest.skip("needs an OpenCL device")
    matrix = kiln.matrix(X, "opencl")

    def work():
        for call in (lambda: kiln.multiply(matrix, np.ones(4)), lambda: kiln.matrix(X, "opencl"),
                     matrix.device.synchronize):
            with pytest.raises(kiln.DeviceError, match="forked"):
                call()
        kiln.Ridge(1.0).fit(X, Y)  # "auto" takes what works

    assert _fork(work) == 0
    assert (matrix.numpy() == X).all()


# -------------------------------------------------------------------------------------------- arrays that lie

def _lying(form, **parts):
    S = scipy.sparse.random(6, 5, 0.5, format=form, random_state=0)
    for name, value in parts.items():
        setattr(S, name, value(getattr(S, name)))
    S.has_canonical_format = True
    return S


_MANY = np.arange(7) * 1000
_LIES = [("csr", {"data": lambda a: a[:-3]}), ("csr", {"indices": lambda a: a[:-3]}),
         ("csr", {"indptr": lambda a: a[:-1]}),
         ("csr", {"indptr": lambda a: a[:0]}), ("csr", {"indptr": lambda a: a[::-1]}),
         ("csr", {"indptr": lambda a: a - 1}),
         ("csr", {"indptr": lambda a: _MANY}), ("csr", {"indptr": lambda a: a.astype(float)}),
         ("csr", {"indices": lambda a: a - 5}),
         ("csr", {"indices": lambda a: a + 5}), ("csr", {"indices": lambda a: a.astype(np.int64) + 2**32}),
         ("csr", {"indices": lambda a: a.astype(float)}), ("csr", {"data": lambda a: a.astype(complex)}),
         ("csr", {"data": lambda a: a.reshape(-1, 1)}), ("csc", {"data": lambda a: a[:-3]}),
         ("csc", {"indices": lambda a: a + 6}),
         ("csc", {"indptr": lambda a: _MANY[:6]}), ("csc", {"indices": lambda a: a - 6}),
         ("coo", {"row": lambda a: a + 6}),
         ("coo", {"col": lambda a: a - 5}), ("coo", {"data": lambda a: a[:-1]}),
         ("coo", {"row": lambda a: a[:-1]})]


@pytest.mark.parametrize("call", [kiln.matrix, lambda S: kiln.multiply(S, np.ones(5), device="cpu"),
                                  lambda S: kiln.pagerank(S, device="cpu"),
                                  lambda S: kiln.Ridge(device="cpu").fit(S, np.ones(6)),
                                  lambda S: kiln.KMeans(2, device="cpu").fit(S),
                                  lambda S: kiln.ALS(2, device="cpu").fit(S)])
@pytest.mark.parametrize("form, parts", _LIES)
def test_sparse_matrices_that_lie(call, form, parts):
    with pytest.raises((ValueError, TypeError)):
        call(_lying(form, **parts))


def test_duplicates_that_are_denied_are_found():
    S = scipy.sparse.csr_matrix((np.ones(2), np.array([1, 1]), np.array([0, 2])), (1, 2))
    S.has_canonical_format = True
    with pytest.raises(kiln.DataError):
        kiln.matrix(S)


def test_odd_arrays_are_taken_or_refused():
    raw = np.zeros(X.nbytes + 1, np.uint8)
    crooked = raw[1:].view(np.float64).reshape(X.shape)  # begins at an odd address
    crooked[:] = X
    assert not crooked.flags.aligned
    S = scipy.sparse.csr_matrix(np.round(X))
    S.data = np.frombuffer(b"x" + S.data.tobytes(), np.uint8)[1:].view(np.float64)
    for given, meant in ((crooked, X), (X.astype(">f8"), X),
                         (np.broadcast_to(X[:1], X.shape), np.repeat(X[:1], 60, axis=0)),
                         (S, np.round(X))):
        np.testing.assert_allclose(kiln.multiply(given, np.ones(4), device="cpu"), meant.sum(axis=1),
                                   atol=1e-12)
    for refused in (X + 1j, np.array(["2020-01-01"], "M8[D]").reshape(1, 1), np.ma.masked_array(X, X > 0),
                    np.empty(()),
                    np.array([[1.0, object()]])):
        with pytest.raises((ValueError, TypeError)):
            kiln.matrix(refused)
