"""Shared parts of the steps of bench/papers. A step is one table or figure of a paper: a function that measures and returns rows, with what
the paper says beside it. A row has a label and, by series, numbers of the step's unit; the series "Kiln" is what runs today, the others
are what it stands beside: the baseline then, its successor now, and Kiln with one of its optimisations left out.

A step runs on any device. What its peers are depends on that: SciPy and NumPy on a processor (an OpenCL device, which PoCL makes of the
processor, is compared with them, too), CuPy (cuSPARSE) and PyTorch (cuBLAS) on an NVIDIA GPU. A peer that cannot be imported is named.
"""
import collections
import importlib.util
import os
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "peers")]

import kiln_c as kiln  # noqa: E402

LIMIT = 1e-4  # of f32; of f64 results agree far better
LONG, POOL = 1, 4_000_037  # seconds; numbers, a prime
STEPS, COUNTED = {}, {}

# name: "fused.fig4". then: the baseline and the machine of the paper. told: numbers that its text gives. how: what answers it here.
Step = collections.namedtuple("Step", "name title unit then told how run")


def step(name, title, unit, then, told, how):
    def keep(run):
        STEPS[name] = Step(name, title, unit, then, told, how, run)
        return run
    return keep


def counts(name):
    """Marks a function of the run: counters of its pairs (label, call) are read for the step."""
    def keep(calls):
        COUNTED[name] = calls
        return calls
    return keep


def row(label, values, **more):
    return {"label": label, "values": {name: float(value) for name, value in values.items() if value is not None}, **more}


class Run:
    """The device, the size of the data, and where things are."""

    def __init__(self, device, scale, build, folder, data):
        self.small, self.build, self.folder, self.kind = scale == "small", build, folder, device.split(":")[0]
        self.data, self.kept = data, {}  # real data sets, which the project may not ship; what steps share
        self.asked, self.device, self.notes = device, kiln.Device(device), []
        self.described = f"{self.device.name}: {self.device.description}"

    def size(self, small, full):
        return small if self.small else full

    def once(self, key, make):
        """The result of make(), which steps share."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def generated(self, kind, real, *more):
        """The beginning of the paths of data that bench/generate.c makes, once for all steps."""
        def make():
            path = os.path.join(self.folder, "".join((kind, real, *more)))  # a name of its own in every process that makes some
            subprocess.run([f"{self.build}/bench/kiln_generate", kind, path, "--type", real, *more], check=True, stdout=subprocess.DEVNULL)
            return path
        return self.once(("generated", kind, real, *more), make)

    def sparse(self, rows, cols, entries, real, popular=False):
        """CSR with just so many entries at distinct places; popular: column c with a weight of about 1/(c+1)."""
        import scipy.sparse as sp
        return sp.load_npz(self.sparse_path(rows, cols, entries, real, popular) + ".npz")

    def sparse_path(self, rows, cols, entries, real, popular):
        return self.generated("kdd2010", real, "--rows", str(rows), "--cols", str(cols), "--nnz", str(entries),
                              *([] if popular else ["--uniform"]))

    def floats(self, rows, cols, first=0):
        """Random numbers of single precision, the same again and again where there are many."""
        pool = self.once("floats", lambda: np.random.default_rng(5).random(POOL, np.float32))
        return np.resize(pool[first:], (rows, cols))

    def milliseconds(self, call, sync=None):
        """Times a call: the median of batches that end with an idle device; of a short one some hundredths of a second, of one that takes
        long what three took, or as many as a second had room for."""
        sync = sync or self.device.synchronize
        call()
        sync()
        begin = time.perf_counter()
        call()
        sync()
        once = max(time.perf_counter() - begin, 1e-7)
        batch, least = max(1, int(0.002 / once)), self.size(0.004, 0.05)
        times = [once] if batch == 1 else []
        while time.perf_counter() - begin < least or len(times) < 3 and time.perf_counter() - begin < LONG:
            began = time.perf_counter()
            for _ in range(batch):
                call()
            sync()
            times.append((time.perf_counter() - began) / batch)
        return 1e3 * statistics.median(times)

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def lacks(self, package):
        if importlib.util.find_spec(package):
            return False
        self.note(f"Python has no {package} here")
        return True

    def tool(self, *words):
        done = subprocess.run([f"{self.build}/kiln", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"kiln {' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def right(self, what, got, want):
        """The largest difference over the largest number; raises where it is no rounding."""
        difference = float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-300))
        if not difference <= LIMIT:
            raise RuntimeError(f"{what}: differs by {difference:.2g} of the largest number")
        return difference


class Host:
    """Products of NumPy and SciPy."""
    name, sync = "NumPy and SciPy", staticmethod(lambda: None)

    def __init__(self, X):
        self.X, self.T = X, X.T

    def up(self, vector):
        return vector

    down = staticmethod(np.asarray)

    def plain(self, y):
        return self.X @ y

    def transposed(self, q):
        return self.T @ q

    def transpose(self):
        """Stored, as a solver would keep it."""
        return self.X.T.tocsr()


class Cusparse:
    name = "cuSPARSE (CuPy)"

    def __init__(self, X):
        import cupy
        import cupyx.cusparse
        import cupyx.scipy.sparse
        self.cupy, self.spmv = cupy, cupyx.cusparse.spmv
        self.X, self.sync = cupyx.scipy.sparse.csr_matrix(X), cupy.cuda.Device().synchronize

    def up(self, vector):
        return self.cupy.asarray(vector)

    @staticmethod
    def down(vector):
        return vector.get()

    def plain(self, y):
        return self.spmv(self.X, y)

    def transposed(self, q):
        return self.spmv(self.X, q, transa=True)

    def transpose(self):
        return self.X.T.tocsr()


class Cublas:
    name = "cuBLAS (PyTorch)"

    def __init__(self, X):
        import torch
        self.torch, self.X, self.sync = torch, torch.from_numpy(X).cuda(), torch.cuda.synchronize

    def up(self, vector):
        return self.torch.from_numpy(vector).cuda()

    @staticmethod
    def down(vector):
        return vector.cpu().numpy()

    def plain(self, y):
        return self.torch.mv(self.X, y)

    def transposed(self, q):
        return self.torch.mv(self.X.t(), q)


def library(run, X):
    """A composer of products on the run's device from a library's calls, or None."""
    if run.kind != "cuda":
        return Host(X)
    sparse = not isinstance(X, np.ndarray)
    if run.lacks("cupy" if sparse else "torch"):
        return None
    return Cusparse(X) if sparse else Cublas(X)


def free(*matrices):
    for matrix in matrices:
        matrix.free()
