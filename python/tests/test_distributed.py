"""kiln.distributed.join: fits that processes share, and what becomes of errors in one of them."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import joined
import kiln
from kiln.distributed import _transports

WHOLE = """
from scipy import sparse
X, y, rng = data()
s = rng.uniform(0.5, 2, len(X))
counts = rng.poisson(np.exp(0.2 * X[:, 0]))
classes = np.where(y > 3, "high", np.where(y < -3, "low", "middle"))[np.argsort(y)]
ordered = X[np.argsort(y)]                      # so that no process has all classes
S = sparse.csr_matrix(np.where(X > 0.5, X, 0))
"""
FITS = [  # the estimator, what it is fitted with, and what it finds
    ("kiln.LinearRegression()", "(X, y, s)", "coef_"),
    ("kiln.Ridge(2.0)", "(X, y)", "coef_"),
    ("kiln.Ridge(2.0)", "(X.astype('float32'), y)", "coef_"),
    ("kiln.Lasso(0.1)", "(X, y)", "coef_"),
    ("kiln.PoissonRegressor(alpha=0.1)", "(X, counts, s)", "coef_"),
    ("kiln.GeneralizedLinearRegressor(family='poisson', alpha=0.1)", "(S, counts, s, s)", "coef_"),
    ("kiln.LogisticRegression()", "(ordered, classes)", "coef_"),
    ("kiln.LinearSVC()", "(S, y > 0)", "coef_"),
    ("kiln.RidgeCV([0.1, 1.0, 10.0])", "(X, y)", "coef_"),
    ("kiln.LogisticRegressionCV(Cs=3, cv=3)", "(X, y > 0)", "coef_"),
    ("kiln.KMeans(3, random_state=0)", "(X,)", "cluster_centers_"),
    ("kiln.PCA(2)", "(X,)", "explained_variance_"),
    ("kiln.TruncatedSVD(2, random_state=0)", "(S,)", "singular_values_"),
]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fits_are_those_of_all_rows(count):
    """Up to rounding: sums of parts are added up in another order."""
    for_each = "".join(f"""
whole = {estimator}.fit(*{operands})
found = {estimator}
with kiln.distributed.join(transport, threads=1):
    assert found.fit(*[mine(one) for one in {operands}]) is found
single = found.{attribute}.dtype == np.float32
np.testing.assert_allclose(found.{attribute}, whole.{attribute}, rtol=2e-3 if single else 1e-4, atol=1e-5)
if hasattr(whole, "classes_"):
    assert (found.classes_ == whole.classes_).all()
if hasattr(whole, "labels_"):
    assert (found.labels_ == mine(whole.labels_)).all()
assert not kiln._joint._LENT and found.n_features_in_ == 6 and found.n_iter_ == found.report_.n_iter
""" for estimator, operands, attribute in FITS)
    joined.run(count, WHOLE + for_each)


def test_all_have_the_same_model():
    """To the last bit, names of features included; it is used, pickled and saved without the others."""
    told = joined.run(2, """
import pandas, pickle, tempfile
X, y, _ = data()
frame = pandas.DataFrame(X, columns=list("abcdef"))
with kiln.distributed.join(transport, deterministic=True) as here:
    model = kiln.Ridge(1.0).fit(frame[:200] if rank else frame[200:], y[:200] if rank else y[200:])
    assert repr(here) == f"<kiln.distributed.Joined: process {rank} of 2>"
again = pickle.loads(pickle.dumps(model))
assert (again.predict(frame) == model.predict(frame)).all()
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/model")
    assert (kiln.load(folder + "/model").coef_ == model.coef_).all()
print(model.coef_.tobytes().hex(), list(model.feature_names_in_), model.device_)
""")
    assert told[0] == told[1] and "'f'] cpu" in told[0]


WRONG = [  # what process 1 has in place of X, y and the model, and what all are told
    ("X[:, :5], y", "other features"),
    ("X, y[1:]", "inconsistent numbers of samples"),
    ("X.astype(str) + 'a', y", "could not convert|dtype"),
    ("np.where(X == X.max(), np.nan, X), y", "(?i)nan|finite"),
    ("X, np.where(y == y.max(), np.inf, y)", "finite number"),
    ("__import__('scipy.sparse').sparse.csr_matrix(X), y", "dense or sparse"),
    ("X, y.astype(str)", "arrays beside X"),
    ("X, y, np.ones(len(X))", "arrays beside X"),
    ("X, y[:, None] * [1, 2]", "arrays beside X"),
    ("X[:0], y[:0]", "0 sample"),
    ("__import__('pandas').DataFrame(X, columns=list('abcdef')), y", "feature names"),
]


@pytest.mark.parametrize("whose", [0, 1])
def test_an_error_in_one_is_raised_in_all(whose):
    """And the next fit finds all in step."""
    told = joined.run(2, f"""
X, y, _ = data()
other = rank == {whose}
with kiln.distributed.join(transport, threads=1):
    for given, message in {WRONG!r}:
        with pytest.raises(Exception, match=message):
            kiln.Ridge(1.0).fit(*(eval(given) if other else (X, y)))
    with pytest.raises(kiln.ArgumentError, match="other parameters"):
        kiln.Ridge(2.0 if other else 1.0).fit(X, y)
    with pytest.raises(ValueError, match="alpha"):
        kiln.Ridge(-1.0).fit(X, y)  # which all refuse
    with pytest.raises(ValueError, match="least 2 classes"):
        kiln.LogisticRegression().fit(X, np.zeros(len(X)))
    model = kiln.Ridge(1.0).fit(X, y)
import gc
gc.collect()  # of exceptions that their own tracebacks keep
assert not kiln._joint._LENT or rank > 0  # what the library is done with goes
print(model.coef_.tobytes().hex())
""")
    assert told[0] == told[1]


@pytest.mark.parametrize("whose", [0, 1])
@pytest.mark.parametrize("where", ["kiln._joint.host_memory", "kiln._joint.pickle.loads"])
def test_memory_runs_out_in_one(whose, where):
    """Nobody waits for the others' part of a fit that one cannot begin, and the next one works."""
    if (whose, where) == (1, "kiln._joint.pickle.loads"):
        where = "kiln._joint.pickle.dumps"  # of y, which process 0 alone reads
    told = joined.run(2, f"""
X, y, _ = data()
where, name = {where!r}.rsplit(".", 1)
owner = eval(where)
true = getattr(owner, name)
def fails(*given, **named):
    large = {{"host_memory": lambda X: True, "loads": lambda data: len(data) > 4000,
             "dumps": lambda rows: isinstance(rows, dict) and "y" in rows}}[name]
    if rank == {whose} and large(given[-2 if name == "host_memory" else 0]):
        raise MemoryError("there is no more")
    return true(*given, **named)
with kiln.distributed.join(transport, threads=1):
    setattr(owner, name, fails)
    with pytest.raises(MemoryError, match="there is no more"):
        kiln.Ridge(1.0).fit(X, y)
    setattr(owner, name, true)
    assert not kiln._joint._LENT or name == "loads"
    model = kiln.Ridge(1.0).fit(X, y)
print(model.coef_.tobytes().hex())
""", seconds=60)
    assert told[0] == told[1]


def test_generators_are_the_same_in_the_same_state():
    """Wherever they lie in memory, and whatever processes drew from them in fits; the message names nothing
    but what differs."""
    told = joined.run(2, """
X, y, _ = data()
keep = [np.random.RandomState(i) for i in range(10 * rank)]  # so that addresses differ
random = np.random.RandomState(0)
with kiln.distributed.join(transport, threads=1):
    for _ in range(2):
        model = kiln.KMeans(3, random_state=random).fit(mine(X))
    print(random.randint(1 << 30), model.cluster_centers_.tobytes().hex())
    with pytest.raises(kiln.ArgumentError, match="other parameters") as caught:
        kiln.KMeans(3, random_state=np.random.RandomState(rank)).fit(mine(X))
    assert str(caught.value).endswith("random_state=RandomState(MT19937), where that has another")
    with pytest.raises(kiln.ArgumentError, match="other parameters") as caught:
        kiln.Ridge(1.0 + rank).fit(X, y)
    assert str(caught.value).endswith("alpha=2.0, where that has alpha=1.0")
    starts = np.zeros((3, 6)) + np.arange(3.)[:, None]
    kiln.KMeans(3, init=starts).fit(mine(X))
    starts.flags.writeable = rank == 0
    kiln.KMeans(3, init=starts).fit(mine(X))
    long = np.zeros((300, 6))
    long[150] = rank  # which repr leaves out
    with pytest.raises(kiln.ArgumentError, match="other parameters"):
        kiln.KMeans(300, init=long).fit(X)
""")
    assert told[0] == told[1]


@pytest.mark.parametrize("wrong", ["device=3", "device='cpu', threads='many'", "device='cpu', memory=2**70",
                                   "device='nothing'"])
def test_no_device_leaves_no_processes(wrong):
    """Whatever exception says so: all have it, all leave, and they can join again."""
    joined.run(2, f"""
X, y, _ = data()
parted = []
part = kiln._joint.Joined._part
kiln._joint.Joined._part = lambda self: (parted.append(self), part(self))
with pytest.raises(Exception) as caught:
    kiln.distributed.join(transport, {wrong})
alone = pytest.raises(type(caught.value), kiln.Device, *eval("(lambda device, **rest: (device,))({wrong})"),
                      **eval("(lambda device, **rest: rest)({wrong})"))
assert str(alone.value) == str(caught.value)
assert len(parted) == 1 and kiln._joint.current() is None
with kiln.distributed.join(transport, threads=1):
    kiln.Ridge().fit(X, y)
""", seconds=60)


def test_what_cannot_be_shared_is_refused_in_all():
    joined.run(2, """
import pandas
X, y, _ = data()
with kiln.distributed.join(transport):
    for model in (kiln.NMF(2), kiln.ALS(2), kiln.MDS()):
        with pytest.raises(kiln.UnsupportedError, match="several processes"):
            model.fit(abs(X))
    fitted = kiln.Ridge(0.0).fit(X, y)
    for name, call in {"MiniBatchKMeans.partial_fit": lambda: kiln.MiniBatchKMeans(2).partial_fit(X),
                       "inference": lambda: fitted.inference(X, y), "pagerank": lambda: kiln.pagerank(X[:6]),
                       "hits": lambda: kiln.hits(X[:6]), "enet_path": lambda: kiln.enet_path(X, y),
                       "lasso_path": lambda: kiln.lasso_path(X, y),
                       "TableEncoder.fit": lambda: kiln.TableEncoder().fit(X),
                       "from_formula": lambda: kiln.Ridge.from_formula("y ~ x", {})}.items():
        with pytest.raises(kiln.UnsupportedError, match=name + " would be of this process's rows alone"):
            call()
    with pytest.raises(kiln.UnsupportedError, match="text or dates"):
        kiln.Ridge().fit(pandas.DataFrame({"a": ["x", "y"], "b": [1, 2]}), [1, 2])
    with pytest.raises(kiln.ArgumentError, match="joined others already"):
        kiln.distributed.join(transport)
""")


@pytest.mark.parametrize("whose", [0, 1, 2])
def test_who_leaves_early_is_an_error_of_the_others(whose):
    joined.run(3, f"""
X, y, _ = data()
with kiln.distributed.join(transport, threads=1):
    kiln.Ridge().fit(X, y)
    if rank == {whose}:
        raise SystemExit(0)
    with pytest.raises(kiln.DeviceError, match="same fits in the same order"):
        kiln.Ridge().fit(X, y)
    for _ in range(2):  # nobody takes the model of its own rows for that of all
        with pytest.raises(kiln.DeviceError, match="have parted"):
            kiln.Ridge().fit(X, y)
kiln.Ridge().fit(X, y)  # by itself
""")


@pytest.mark.parametrize("whose", [0, 1])
@pytest.mark.parametrize("when", ["before", "within"])
def test_who_is_killed_is_an_error_of_the_others(whose, when):
    """A transport that notices ends them at once."""
    program = f"""
X, y, _ = data()
joined = kiln.distributed.join(transport, threads=1)
if rank == {whose} and {when == 'before'}:
    os.kill(os.getpid(), signal.SIGKILL)
if rank == {whose}:
    send, turns = transport.send, iter(range(20))
    def counted(to, data):
        if next(turns, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        send(to, data)
    transport.send = counted
with pytest.raises(kiln.DeviceError) as caught:
    for _ in range(100):
        kiln.Ridge().fit(X, y)
assert isinstance(caught.value.__cause__, (EOFError, OSError)), caught.value.__cause__
with pytest.raises(kiln.DeviceError):
    kiln.Ridge().fit(X, y)
joined.leave()
kiln.Ridge().fit(X, y)
"""
    joined.run(3, program, fails=(whose,))


def test_parts_are_shares_of_the_files(tmp_path):
    """Each process has whole files where there are enough, and a part of the rows of fewer Parquet files; the
    model is that of all rows."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = np.random.default_rng(0).normal(size=(600, 6))
    y = X @ np.arange(6.0)
    for i in range(3):
        some = slice(200 * i, 200 * i + 200)
        np.savetxt(tmp_path / f"part-{i}.csv", np.column_stack([y[some], X[some]]), delimiter=",",
                   header="y,a,b,c,d,e,f", comments="", fmt="%.17g")
    parquet.write_table(pyarrow.table({"y": y, **dict(zip("abcdef", X.T))}), tmp_path / "all.parquet")
    told = joined.run(2, f"""
import pathlib
folder = pathlib.Path({str(tmp_path)!r})
with pytest.raises(kiln.ArgumentError, match="has not joined"):
    kiln.read(folder / "all.parquet", target="y", parts=True)
with kiln.distributed.join(transport, threads=1):
    for source, counts in ((folder / "part-*.csv", (200, 400)),
                           ([folder / f"part-{{i}}.csv" for i in range(3)], (200, 400)),
                           (folder / "all.parquet", (300, 300))):
        share = kiln.read(source, target="y", parts=True)
        assert share.X.shape == (counts[rank], 6), share.X.shape
        model = kiln.Ridge(1.0).fit(share.X, share.y)
        print(model.coef_.round(9).tolist(), list(share.feature_names))
    for source, more, message in ((folder / "part-0.csv", {{}}, "1 files are fewer than the 2 processes"),
                                  (folder / "all.parquet", {{"part": (0, 2)}}, "without part="),
                                  (folder / "none-*.csv", {{}}, "no file matches"),
                                  (share.X, {{}}, "of files")):
        with pytest.raises(kiln.ArgumentError, match=message):
            kiln.read(source, parts=True, **more)
    kiln.Ridge(1.0).fit(share.X, share.y)  # all are in step
""")
    whole = kiln.Ridge(1.0).fit(X, y).coef_
    assert told[0] == told[1]
    for line in told[0].splitlines():
        np.testing.assert_allclose(eval(line.split("] [")[0] + "]"), whole, rtol=1e-7, atol=1e-8)
        assert line.endswith("['a', 'b', 'c', 'd', 'e', 'f']")


def test_a_callback_ends_the_run_of_all():
    joined.run(2, """
X, y, _ = data()
class Stop(Exception):
    pass
def stop(now):
    raise Stop("enough")
with kiln.distributed.join(transport, threads=1):
    model = kiln.LogisticRegression()
    model.callback = stop
    with pytest.raises(Exception, match="enough"):
        model.fit(X, y > 0)
    kiln.LogisticRegression().fit(X, y > 0)
""")


def test_a_transport_lacks_something():
    with pytest.raises(kiln.ArgumentError, match="has no send"):
        kiln.distributed.join(type("Half", (), {"rank": 0, "size": 1})())


def test_no_launcher(monkeypatch):
    for names in kiln._joint.LAUNCHERS.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    with pytest.raises(kiln.UnsupportedError, match="no launcher"):
        kiln.distributed.join()


def test_processes_that_nobody_joined_are_warned_of(monkeypatch):
    X, y = np.eye(4), np.arange(4.0)
    for rank, warned in (("1", False), ("0", True)):
        monkeypatch.setattr(kiln._joint, "_told", False)
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "4")
        with pytest.warns() as caught:
            kiln.Ridge().fit(X, y)
            kiln.Ridge().fit(X, y)
            kiln._words.warn("the end")
        said = [str(one.message) for one in caught]
        assert sum("torchrun has started 4 processes" in one for one in said) == warned


def test_first_host():
    for listing, host in (("node7", "node7"), ("node[08-11,20],login1", "node08"), ("a,b", "a"),
                          ("rack[1,3]-x,b", "rack1-x")):
        assert _transports.first_host(listing) == host


PROGRAM = """
import sys
import numpy as np
import kiln, kiln.distributed
{before}
X = np.random.default_rng(0).normal(size=(900, 6))
y = X @ np.arange(6.)
with kiln.distributed.join({by}) as here:
    mine = slice(900 * here.rank // here.size, 900 * (here.rank + 1) // here.size)
    model = kiln.Ridge(1e-6).fit(X[mine], y[mine])
sys.stdout.write(f"found {{here.size}} {{np.allclose(model.coef_, np.arange(6), atol=1e-4)}}\\n")
"""
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def _launch(command, before="", by="", **environment):
    done = subprocess.run([*command, "-c", PROGRAM.format(before=before, by=by)], text=True, timeout=300,
                          capture_output=True, check=False, env=dict(os.environ, **environment))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("found 2 True") == 2, (done.stdout, done.stderr)


def _mpirun():
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("there is no mpirun")
    return [mpirun, "-n", "2", sys.executable]


def test_mpirun(tool):
    plugins = sorted(pathlib.Path(tool).resolve().parent.glob("libkiln-openmpi.so"))
    if not plugins:
        pytest.skip("the plug-in for Open MPI was not built")
    _launch(_mpirun(), **OPEN_MPI, KILN_MPI_PATH=str(plugins[0]))


@pytest.mark.parametrize("by", ["MPI.COMM_WORLD", ""])
def test_mpi4py(by):
    """With its communicator, and as what is found where the plug-in is missing."""
    pytest.importorskip("mpi4py")
    _launch(_mpirun(), "from mpi4py import MPI" if by else "", by, **OPEN_MPI, KILN_MPI_PATH="/nowhere")


@pytest.mark.parametrize("before", ["", "import torch.distributed as over; over.init_process_group('gloo')"])
def test_torchrun(before, tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(before=before, by=""))
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                           "--standalone", str(program)], text=True, timeout=300, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("found 2 True") == 2, (done.stdout, done.stderr)


@pytest.fixture(scope="module")
def client():
    """There are two workers, each a process of one thread."""
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("dask.array")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as made:
            yield made


def _on_dask(*arrays):
    import dask.array

    return [dask.array.from_array(one, chunks=(70, *one.shape[1:])) for one in arrays]


def test_dask(client):
    """Arrays, also cut by columns, and what there is for each row; an error of a worker's is the client's."""
    import kiln.distributed.dask as over

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    y, s = np.where(X @ np.arange(5.0) > 0.3 * rng.normal(size=500), "high", "low"), rng.uniform(1, 2, 500)
    whole = kiln.LogisticRegression().fit(X, y, s)
    cut, labels, weights = _on_dask(X, y, s)
    found = over.fit(kiln.LogisticRegression(), cut.rechunk((70, 2)), labels, sample_weight=weights)
    assert (found.classes_ == whole.classes_).all()
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-4)
    centres = over.fit(kiln.KMeans(init=X[:3], n_clusters=3), cut, client=client)
    np.testing.assert_allclose(centres.inertia_, kiln.KMeans(init=X[:3], n_clusters=3).fit(X).inertia_)
    assert not hasattr(centres, "labels_")
    with pytest.raises(ValueError, match="alpha"):
        over.fit(kiln.Ridge(-1.0), cut, weights)
    with pytest.raises(kiln.ArgumentError, match="as many partitions"):
        over.fit(kiln.Ridge(), cut, weights.rechunk(50))
    with pytest.raises(kiln.ArgumentError, match="must be a Dask array"):
        over.fit(kiln.Ridge(), X, s)
    with pytest.raises(kiln.ArgumentError, match="partition 0 .*rechunk"):  # as many, and as many rows in all
        over.fit(kiln.Ridge(), cut.rechunk(((200, 100, 200), 5)), weights.rechunk(((100, 200, 200),)))


def test_dask_frames(client):
    import kiln.distributed.dask as over
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")

    table = pandas.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=["a", "b", "c"])
    whole = kiln.Ridge().fit(table[["a", "b"]], table["c"])
    cut = frames.from_pandas(table, npartitions=5)
    found = over.fit(kiln.Ridge(), cut[["a", "b"]], cut["c"])
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-8)
    assert list(found.feature_names_in_) == ["a", "b"]


def _no_memory(parts):
    raise MemoryError("there is no more")


def _patch(name, made, dask_worker):
    import kiln.distributed.dask as over

    made, dask_worker.kiln_true = made or dask_worker.kiln_true, getattr(over, name)
    setattr(over, name, made)


@pytest.mark.parametrize("whose", [0, 1])
def test_a_dask_worker_fails_by_itself(client, whose):
    """The client has its error, the other worker is free again, and the next fit works."""
    import kiln.distributed.dask as over

    X, y = np.random.default_rng(0).normal(size=(140, 3)), np.arange(140.0)
    cut, values = _on_dask(X, y)
    worker = sorted(client.scheduler_info(n_workers=-1)["workers"])[whose]
    client.run(_patch, "_joined_rows", _no_memory, workers=[worker])
    try:
        with pytest.raises(MemoryError, match="there is no more"):
            over.fit(kiln.Ridge(), cut, values)
    finally:
        client.run(_patch, "_joined_rows", None, workers=[worker])
    end = time.monotonic() + 30
    while any(client.processing().values()) or any(client.run(_executing).values()):
        assert time.monotonic() < end, "a worker waits for ever"
        time.sleep(0.1)
    np.testing.assert_allclose(over.fit(kiln.Ridge(), cut, values).coef_, kiln.Ridge().fit(X, y).coef_)


def _executing(dask_worker):
    return dask_worker.state.executing_count


def _end_worker(now):
    os.kill(os.getpid(), 9)


@pytest.mark.timeout(1500)  # Ray's processes are many, and a message takes them all
def test_ray(monkeypatch):
    """Two actors fit what Ray's blocks have; what goes wrong in one, and that it is gone, reaches the
    driver."""
    ray, pandas = pytest.importorskip("ray"), pytest.importorskip("pandas")
    pytest.importorskip("ray.data")
    import kiln.distributed.ray as over

    monkeypatch.setenv("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(500, 5)), rng.uniform(1, 2, 500)
    y = X @ np.arange(5.0) + 0.3 * rng.normal(size=500)
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(label=y, share=s)
    whole = kiln.Ridge().fit(X, y, s)
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        blocks = ray.data.from_pandas([frame[:200], frame[200:300], frame[300:]])
        found = over.fit(kiln.Ridge(), blocks, "label", sample_weight="share")
        np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-4)
        assert list(found.feature_names_in_) == list("abcde")
        arrays = ray.data.from_numpy([X[:250], X[250:]])
        few = {"init": X[:3], "n_clusters": 3, "tol": 0.5}  # iterations, each of which takes some messages
        centres = over.fit(kiln.KMeans(**few), arrays)
        np.testing.assert_allclose(centres.inertia_, kiln.KMeans(**few).fit(X).inertia_)
        assert not hasattr(centres, "labels_")
        with pytest.raises(ValueError, match="'C' parameter"):
            over.fit(kiln.LinearSVR(C=-1.0), blocks, "label", sample_weight="share")
        with pytest.raises(kiln.ArgumentError, match="no column 'weight'"):
            over.fit(kiln.LogisticRegression(), blocks, "label", sample_weight="weight")
        with pytest.raises(kiln.ArgumentError, match="must be a Ray dataset"):
            over.fit(kiln.KMeans(), X)
        model = kiln.LinearSVR()
        model.callback = lambda now: os.kill(os.getpid(), 9)  # which goes by value: workers know no tests
        with pytest.raises(kiln.DeviceError, match="has gone|did not come or go"):
            over.fit(model, blocks, "label", sample_weight="share")
    finally:
        ray.shutdown()


@pytest.mark.parametrize("share", [70, 140])
def test_a_dask_worker_is_lost(client, share):
    """The client has an error, and does not wait for ever, whether there is another worker that notices or
    all rows were on the one that is lost."""
    import dask.array

    import kiln.distributed.dask as over

    client.wait_for_workers(2)
    X, y = (dask.array.from_array(one, chunks=(share, *one.shape[1:]))
            for one in (np.eye(140), np.arange(140) % 2))
    model = kiln.LogisticRegression()
    model.callback = _end_worker
    with pytest.raises(Exception, match="has gone|another process|did not come"):
        over.fit(model, X, y)
