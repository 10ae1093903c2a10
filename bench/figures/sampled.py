"""Nisa et al., Sampled Dense Matrix Multiplication for High-Performance Machine Learning: P = (A B^T) o S."""
import json
import os
import shutil
import subprocess

import numpy as np

import counted
import gpu_factors
import gpu_sddmm
from frame import counts, free, kiln, row, step

P100 = "BIDMach's SDDMM; Tesla P100"
TIMES, RESIDUAL, BLOCK, COMPARED = 2, 4, 1 << 13, 10_000_000
TILES = (1, 3, 7, 21)
BIDMACH = ("BIDMach is not measured, as its GPU kernels are those of CUDA's of 2018; cuSPARSE's SDDMM (through PyTorch) is what a GPU's "
           "library has now, NumPy by blocks of entries stands beside a processor")


def shape_of(run, name, entries=10_000):
    """Rows, columns and entries as in table III; small: as many entries a row, of few rows and no more columns than these need."""
    rows, cols, nnz, kind = gpu_sddmm.CASES[name]
    if run.small:
        part, each = min(1, entries / nnz), nnz / rows
        rows, nnz = max(int(rows * part), 16), max(int(nnz * part), int(16 * each))
        cols = min(cols, max(int(cols * part), int(40 * each)))
    return rows, cols, nnz, kind


def data(run, name):
    rows, cols, nnz, kind = shape_of(run, name)
    return run.sparse(rows, cols, nnz, "f32", kind == "zipf")


def made(run, name):
    """The beginning of the paths of these data."""
    rows, cols, nnz, kind = shape_of(run, name)
    return run.sparse_path(rows, cols, nnz, "f32", kind == "zipf")


# The table's data sets that a folder of real ones may have: lines to skip, and whether each pair stands there once.
REAL = {"kos": ("bow/docword.kos.txt.gz", 3, False), "email-enron": ("graphs/email-Enron.txt.gz", 0, True)}


def real_data(run):
    """(name, S) of those that are there; raises where a file is not the table's."""
    import scipy.sparse as sp
    for name, (place, skip, once) in REAL.items():
        path, (rows, cols, nnz, _) = os.path.join(run.data, place), gpu_sddmm.CASES[name]
        if not os.path.exists(path):
            run.note(f"there is no {place} here")
            continue
        lines = np.loadtxt(path, dtype=np.int64, skiprows=skip, usecols=(0, 1))
        if once:
            lines = np.unique(np.concatenate([lines, lines[:, ::-1]]), axis=0)
        i, j = (lines - (lines.min() > 0)).T
        S = sp.csr_matrix((np.ones(len(i), np.float32), (i, j)), shape=(rows, cols))
        if S.nnz != nnz:
            raise RuntimeError(f"{path}: {S.nnz} entries, and the table has {nnz}")
        yield name, S


def factor(device, rows, k, stream, tensor):
    """Random numbers; tensor: PyTorch's, at the same place."""
    if tensor:
        return gpu_sddmm.make_factor(device, rows, k, True)
    return device.dense(rows, k, np.float32).fill_random(5, stream, normal=False)


class Sample:
    """S on a device, its factors of k columns, and P."""

    def __init__(self, device, X, k, tensors=False):
        self.X, self.k, self.S = X, k, device.csr(X)
        self.a, self.b = (factor(device, rows, k, stream, tensors) for stream, rows in enumerate(X.shape))
        self.P = kiln.like(device, self.S)
        self.call = kiln.struct("sample", kind=TIMES, S=self.S, A=self.a, B=self.b)
        self.flops = 2e-6 * X.nnz * k

    def sddmm(self):
        kiln.call("sddmm", self.P, None, 1, self.call, 0)

    def products(self):
        got = np.empty(self.X.nnz, np.float32)
        kiln.call("matrix_get", got, self.P)
        return got

    def free(self):
        self.P.free()
        free(self.S, self.a, self.b)


def library(run, sample):
    """(name, call, what waits, some of its products) of the library beside: products at the places of S, times S."""
    X = sample.X
    if run.kind != "cuda":
        A, B = sample.a.numpy(), sample.b.numpy()
        of, want = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.empty(X.nnz, np.float32)

        def blocks():
            for at in range(0, X.nnz, BLOCK):
                part = slice(at, at + BLOCK)
                want[part] = X.data[part] * np.einsum("ij,ij->i", A[of[part]], B[X.indices[part]])

        return "NumPy", blocks, lambda: None, lambda some: want[some]
    import torch
    S = torch.sparse_csr_tensor(torch.from_numpy(X.indptr.astype(np.int64)), torch.from_numpy(X.indices.astype(np.int64)),
                                torch.from_numpy(X.data), size=X.shape, device="cuda")
    a, bt = sample.a.tensor, sample.b.tensor.t()
    call = lambda: torch.sparse.sampled_addmm(S, a, bt, beta=0.0)
    return "cuSPARSE (PyTorch)", call, torch.cuda.synchronize, lambda some: call().values()[some].cpu().numpy() * X.data[some]


def compared(run, label, X, k, unit=True):
    """Milliseconds by series (unit: Gflop/s), the products compared, of many each so many-th."""
    peer = run.kind != "cuda" or not run.lacks("torch")
    sample, some = Sample(run.device, X, k, peer and run.kind == "cuda"), slice(None, None, 1 + X.nnz // COMPARED)
    sample.sddmm()
    times = {"Kiln": run.milliseconds(sample.sddmm)}
    if peer:
        got = sample.products()[some]
        name, call, sync, products = library(run, sample)
        call()
        run.right(f"sddmm, {label}", got, products(some))
        times[name] = run.milliseconds(call, sync)
    flops = sample.flops
    sample.free()
    return {name: flops / value if unit else value for name, value in times.items()}


@step("sampled.table3", "the 21 data sets", "entries", "UCI's bags of words, SNAP and GraphChallenge", {"data sets": 21},
      "made data of the same rows, columns and just as many entries, popular columns where theirs are")
def table3(run):
    for name in gpu_sddmm.CASES:
        rows, cols, nnz, kind = shape_of(run, name)
        X = data(run, name)
        if X.shape != (rows, cols) or X.nnz != nnz:
            raise RuntimeError(f"{name}: {X.shape}, {X.nnz} entries, not {nnz}")
        yield row(name, {"table III": gpu_sddmm.CASES[name][2], "made": X.nnz}, rows=rows, columns=cols, popular=kind == "zipf")


@step("sampled.fig4", "reuse against movement of S by the slice of K", "ms", "a sketch of the model, Tesla P100",
      {}, "the best plan of kiln_sddmm_plans for each number of factor columns that one pass over S takes, NYTimes, K = 512; S moves K / Tk times")
def fig4(run):
    X, k = data(run, "nytimes"), run.size(64, 512)
    found = gpu_sddmm.run_plans(run.device, "nytimes", k, (X.indptr, X.indices, X.data), X.shape)["plans"]
    for columns in sorted({plan["K"] for plan in found}):
        best = min(plan["ms"] for plan in found if plan["K"] == columns)
        passes = -(-k // columns) if columns else 1
        yield row(f"Tk = {columns or k}", {"best plan": best}, s_moved_mb=1e-6 * 12 * X.nnz * passes)


@step("sampled.fig5", "two schemes by density", "Gflop/s", "SM-L2 and SM-SM on a Tesla P100", {"density from which SM-SM is faster, %": 5},
      "every plan of kiln_sddmm on square S: rows of A kept in registers for a row of S, or loaded ahead for each entry")
def fig5(run):
    run.note("both factors in on-chip memory (SM-SM) is no plan of Kiln's, for it lost at every density that was measured: "
             "bench/studies/h200-sddmm-tiles.json")
    for n, densities in run.size(((600, (1, 5)),), ((75_000, (0.1, 1, 5)),)):
        for density in densities:
            X = run.sparse(n, n, int(n * n * density / 100), "f32")
            plans = gpu_sddmm.run_plans(run.device, "square", 32, (X.indptr, X.indices, X.data), X.shape)["plans"]
            values = {}
            for plan in plans:
                rate = 2e-6 * X.nnz * 32 / plan["ms"]
                values[plan["variant"]] = max(rate, values.get(plan["variant"], 0))
                if plan["chosen"]:
                    values["Kiln"] = rate
            yield row(f"{n:,} x {n:,}, {density} %", values)


@step("sampled.fig7", "the 21 data sets, K = 32, 128 and 512", "Gflop/s", P100,
      {"BIDMach, least": 1, "BIDMach, most": 4.6, "most Gflop/s, K = 32": 324, "K = 128": 403, "K = 512": 414},
      "kiln_sddmm, f32, against the library's")
def fig7(run):
    run.note(BIDMACH)
    for name in gpu_sddmm.CASES:
        X = data(run, name)
        for k in run.size((32,), (32, 128, 512)):
            if X.nnz * k > 1.3e11:  # PubMed's factors of 512 and its entries exceed a GPU with the library's copies
                run.note(f"{name} is left out for K = {k}, as the paper does")
            else:
                yield row(f"{name}, K = {k}", compared(run, name, X, k))
    for name, S in real_data(run):
        for k in run.size((32,), (32, 128, 512)):
            yield row(f"{name}, the real one, K = {k}", compared(run, name, S, k))


@step("sampled.fig8", "what the model's choice loses to the best plan", "%", "tile sizes on a Tesla P100, found by trying all", {},
      "every plan of kiln_sddmm_plans, timed")
def fig8(run):
    names = run.size(("kos", "facebook"), [name for name in gpu_sddmm.CASES if name != "pubmed"])
    for name in names:
        X = data(run, name)
        for k in run.size((32,), (32, 512)):
            found = gpu_sddmm.run_plans(run.device, name, k, (X.indptr, X.indices, X.data), X.shape)
            yield row(f"{name}, K = {k}", {"loss": 100 * found["loss"]}, plans=len(found["plans"]), best_ms=found["best_ms"])


def groups(run):
    """Names of groups of two, four and eight devices, as far as there are so many."""
    if run.kind != "cuda":
        return [f"{run.asked}*2"]
    there = len([d for d in kiln.devices() if d["usable"] and d["name"].startswith("cuda")])
    return ["cuda:" + ",".join(map(str, range(n))) for n in (2, 4, 8) if n <= there]


def by_processes(run, name, X, k):
    """Returns how many times faster two processes of MPI are than one, each with one device or half of the processor's threads; `kiln sddmm`
    on files, without reading and writing. None where two cannot be had."""
    plugin, mpirun = os.path.join(run.build, "libkiln-openmpi.so"), shutil.which("mpirun")
    if run.kind == "opencl" or run.kind == "cuda" and not groups(run) or not mpirun or not os.path.exists(plugin):
        run.note("two processes want the plug-in for Open MPI, mpirun, and a processor or two GPUs of CUDA")
        return None
    path = os.path.join(run.folder, "factors")
    for side, rows in zip("AB", X.shape):
        np.save(f"{path}.{side}.npy", run.floats(rows, k))
    words = ["sddmm", made(run, name) + ".npz", f"{path}.A.npy", f"{path}.B.npy", "--kind", "times", "--type", "f32", "--device", run.kind,
             "--json", "--quiet"]
    threads = [] if run.kind == "cuda" else ["--threads", str(max(1, len(os.sched_getaffinity(0)) // 2))]
    one = min(json.loads(run.tool(*words, *threads))["seconds"]["solve"] for _ in range(2))
    environment = dict(os.environ, KILN_MPI_PATH=plugin, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    done = subprocess.run([mpirun, "-n", "2", f"{run.build}/kiln", *words, *threads, "--mpi"], env=environment, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"two processes: {done.stderr}")
    return one / json.loads(done.stdout)["seconds"]["solve"]


@step("sampled.fig9", "several GPUs", "x", "4 and 16 Tesla P100, K = 512; entries dealt out by prefix sums",
      {"NYTimes: nearly linear in the number of GPUs": 4},
      "kiln_sddmm on a group against one device, and kiln sddmm by two processes of MPI against one; rows are dealt out by their entries")
def fig9(run):
    found, k = groups(run), run.size(32, 512)
    run.note("one GPU is here: a group needs two or more" if not found else "on a processor a group is two parts of it, which shows that it "
             "works and not what it gains" if run.kind != "cuda" else f"groups: {', '.join(found)}")
    run.note("processes send the factors and fetch the products in each call, which a group's members have at hand")
    for name in run.size(("kos",), ("nytimes", "enron", "web-berkstan", "offshore", "roadnet-ca") if found else ("nytimes",)):
        X, values = data(run, name), {"1": 1.0}
        alone = Sample(run.device, X, k)
        alone.sddmm()
        one, want = run.milliseconds(alone.sddmm), alone.products()
        alone.free()
        for group in found:
            device = kiln.Device(group)
            shared = Sample(device, X, k)
            shared.sddmm()
            run.right(f"sddmm on {group}", shared.products(), want)
            values[str(group.count(",") + 1) if "," in group else "2"] = one / run.milliseconds(shared.sddmm, device.synchronize)
            shared.free()
        yield row(name, {**values, "2 processes": by_processes(run, name, X, k)}, one_ms=one)


@counts("sampled.table4")
def reads(run):
    """The products by each number of tiles."""
    X, k = data(run, "nytimes"), run.size(32, 512)
    for tiles in TILES:
        parts = tiles_of(run.device, X, k, tiles)
        yield f"{tiles} tiles", lambda: [part.sddmm() for part in parts]
        for part in parts:
            part.free()


@step("sampled.table4", "tiles of columns against the movement of A and S", "ms",
      "DRAM transactions of a Tesla P100 by nvprof: 15,542 M with one tile, 10,482 M with seven, 12,908 M with 21",
      {"one tile over seven, transactions": 15542 / 10482},
      "kiln_sddmm on S whole, and on its columns in tiles one after the other, NYTimes, K = 512; on several GPUs with the group's S, too")
def table4(run):
    X, k = data(run, "nytimes"), run.size(32, 512)
    devices = {"": run.device, **{f", {name}": kiln.Device(name) for name in groups(run)}}
    found, whole = counted.count(run, "sampled.table4"), {}
    for tiles in run.size((1, 3), TILES):
        values = {}
        for label, device in devices.items():
            parts = tiles_of(device, X, k, tiles)
            values[f"by tiles{label}"] = run.milliseconds(lambda parts=parts: [part.sddmm() for part in parts], device.synchronize)
            for part in parts:
                part.free()
        whole = whole or {label.replace("by tiles", "Kiln"): milliseconds for label, milliseconds in values.items()}
        yield row(f"{tiles} tiles", {**whole, **values}, a_moved_mb=4e-6 * tiles * X.shape[0] * k, s_moved_mb=12e-6 * X.nnz,
                  **found.get(f"{tiles} tiles", {}))


def tiles_of(device, X, k, tiles):
    """Samples of X's columns in tiles."""
    edges = tile_edges(X, tiles)
    return [Sample(device, X[:, a:b] if tiles > 1 else X, k) for a, b in zip(edges, edges[1:]) if b > a]


def tile_edges(X, tiles):
    """Columns at which tiles with about as many entries each begin and end."""
    held = np.cumsum(np.bincount(X.indices, minlength=X.shape[1]))
    return [0, *(int(np.searchsorted(held, X.nnz * t / tiles)) + 1 for t in range(1, tiles)), X.shape[1]]


@step("sampled.table5", "an application (SFA) with the faster SDDMM", "x", "BIDMach's SFA with its own SDDMM; Tesla P100",
      {"Netflix": 1.68, "NYTimes": 1.68, "PubMed": 1.50, "SDDMM's share, Netflix, %": 53.14, "NYTimes, %": 53.70, "PubMed, %": 42.52},
      "a sweep of kiln_sfa, SDDMM's share of it, and the sweep with the library's SDDMM in its place, reckoned as the paper does")
def table5(run):
    run.note("as in the paper the application's gain is reckoned from the share and the kernel's gain; h200-factors.json has it measured")
    k = run.size(8, 128)
    for name in run.size(("kos",), ("netflix", "nytimes")):
        X = data(run, name) if name in gpu_sddmm.CASES else run.sparse(480_189, 17_770, 100_480_507, "f32", True)
        KX = run.device.csr(X)
        A, B, trace = gpu_factors.fit("sfa", run.device, KX, k, 9)
        sweep = 1e3 * float(np.median(np.diff([seconds for _, seconds in trace])[-3:]))
        plain = [run.device.dense(n, k, np.float32).fill_random(1, 2 + i, normal=False) for i, n in enumerate(X.shape)]
        products = gpu_factors.Products(run.device, KX, *plain)
        ours = 3 * products.time("sddmm", RESIDUAL, summed=True)
        products.free()
        free(A, B, KX, *plain)
        times = compared(run, name, X, k, False)
        peer = [series for series in times if series != "Kiln"]
        gain = times[peer[0]] / times["Kiln"] if peer else 1.0
        yield row(name, {"kernel": gain, "application": (sweep - ours + ours * gain) / sweep}, sddmm_percent=100 * ours / sweep,
                  sweep_ms=sweep)
