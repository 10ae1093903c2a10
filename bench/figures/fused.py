"""Ashari et al., On Optimizing Machine Learning Workloads via Kernel Fusion, PPoPP 2015: w = alpha X^T (v .* (X y)) + beta z."""
import argparse
import concurrent.futures
import math

import numpy as np

import counted
import end_to_end
import equations
import gpu_iteration
import plans
from frame import counts, free, kiln, library, row, step

TITAN = "cuSPARSE and cuBLAS of CUDA 6, BIDMat on the GPU, and BIDMat with MKL (8 threads); GeForce GTX Titan, Core i7 3.4 GHz"
ALPHA, BETA = 1.5, 0.5
CONDITION = 110  # of X^T X: HIGGS-shaped data then need the paper's iterations, 32
NAMES = {"higgs": "HIGGS", "kdd2010": "KDD 2010"}
MOST, PART = 100, 20  # iterations
WIDTHS, SPARSITY = (200, 400, 800, 1024, 2048, 4096), 0.01
LOADED = (200, 1024)  # widths of which counters are read
BIDMAT = ("BIDMat is not measured, as its GPU kernels are those of CUDA's of 2014; in its place stand NumPy and SciPy on a processor, and "
          "the libraries of today on a GPU")


def of_kiln(pattern, w, X, v, y, z):
    return {"X^T y": lambda: kiln.multiply(w, 1.0, X, v, transposed=True),
            "X^T (X y)": lambda: kiln.mmchain(w, 1.0, X, None, y),
            "full": lambda: kiln.mmchain(w, ALPHA, X, v, y, BETA, z)}[pattern]


def of_library(pattern, lib, v, y, z):
    return {"X^T y": lambda: lib.transposed(v),
            "X^T (X y)": lambda: lib.transposed(lib.plain(y)),
            "full": lambda: ALPHA * lib.transposed(v * lib.plain(y)) + BETA * z}[pattern]


def measure(run, label, X, patterns):
    """A row for each pattern: Kiln and the library, whose results are compared."""
    rng, (m, n), real = np.random.default_rng(5), X.shape, X.dtype
    host = rng.random(m).astype(real), rng.standard_normal(n).astype(real), rng.standard_normal(n).astype(real)
    lib, device = library(run, X), run.device
    KX = device.dense(m, n, real, X) if isinstance(X, np.ndarray) else device.csr(X)
    v, y, z = (device.dense(len(vector), 1, real, vector) for vector in host)
    w = device.dense(n, 1, real)
    theirs = [lib.up(vector) for vector in host] if lib else None
    for pattern in patterns:
        call = of_kiln(pattern, w, KX, v, y, z)
        values, more = {"Kiln": run.milliseconds(call)}, {"pattern": pattern}
        if lib:
            peer = of_library(pattern, lib, *theirs)
            more["difference"] = run.right(f"{label}, {pattern}", w.numpy()[:, 0], lib.down(peer()))
            values[lib.name] = run.milliseconds(peer, lib.sync)
            if pattern == "X^T y":
                more.update(amortised(run, lib, theirs[0], values[lib.name], values))
        yield row(label if len(patterns) == 1 else f"{label}: {pattern}", values, **more)
    free(KX, v, y, z, w)


def amortised(run, lib, q, pair, values):
    """After how many products storing the transpose has paid, as on Figure 2's second axis; None: never."""
    build = run.milliseconds(lib.transpose, lib.sync)
    T = lib.transpose()
    product = (lambda: T @ q) if lib.name != "cuSPARSE (CuPy)" else (lambda: lib.spmv(T, q))
    values["stored transpose"] = stored = run.milliseconds(product, lib.sync)
    return {"transpose_ms": build, "amortised_after": build / (pair - stored) if pair > stored else None}


def widths(run):
    return run.size((200, 1024), WIDTHS)


def sparse_data(run, cols):
    rows = run.size(4_000, 500_000)
    return run.sparse(rows, cols, int(rows * cols * SPARSITY), "f64")


def sparse_rows(run, pattern):
    run.note(BIDMAT)
    for cols in widths(run):
        X = sparse_data(run, cols)
        yield from measure(run, f"{X.shape[0]:,} x {cols:,}", X, [pattern])


@step("fused.table2", "share of the pattern in linear regression by conjugate gradient", "%",
      "SystemML, one thread of a processor, by single operations",
      {"HIGGS": 99.4, "HIGGS, vectors": 0.1, "KDD 2010": 82.9, "KDD 2010, vectors": 16.9},
      "a pass (mmchain with v and z) as a share of an iteration of kiln_linreg, whose remainder is vectors; both shares of the same "
      "iteration composed of library calls")
def table2(run):
    for name, X in data_sets(run):
        KX = run.device.dense(*X.shape, X.dtype, X) if isinstance(X, np.ndarray) else run.device.csr(X)
        ours = gpu_iteration.measure(run.device, name, KX, False)
        free(KX)
        yield row(name, {"Kiln": 100 / ours["ratio"], **composed_shares(run, X)}, iteration_ms=ours["iteration_ms"],
                  pass_ms=ours["pass_ms"], before_ms=ours["before_ms"])


def composed_shares(run, X):
    """Splits an iteration by library calls into the pattern and the operations on vectors."""
    lib, steps = library(run, X), 4
    if not lib:
        return {}
    p = lib.up(np.random.default_rng(1).standard_normal(X.shape[1]).astype(X.dtype))

    def milliseconds(apply):
        return run.milliseconds(lambda: end_to_end.conjugate_gradient(apply, p, 0 * p, steps), lib.sync)

    apply = lambda p: lib.transposed(lib.plain(p))
    whole, vectors = milliseconds(apply), milliseconds(lambda _, q=apply(p): q)
    return {lib.name: 100 * steps * run.milliseconds(lambda: apply(p), lib.sync) / whole, f"{lib.name}, vectors": 100 * vectors / whole}


def made(run, name):
    """The beginning of the paths of HIGGS- or KDD2010-shaped data, with the paper's numbers of rows, columns and entries."""
    return run.generated(name, "f64", "--scale", str(run.size(0.0004, 1)), "--condition", str(CONDITION))


def data_sets(run, names=("higgs", "kdd2010")):
    import scipy.sparse as sp
    for name in names:
        path = made(run, name)
        yield NAMES[name], run.once(("read", name), lambda: np.load(path + ".npy") if name == "higgs" else sp.load_npz(path + ".npz"))


@counts("fused.fig2")
def loads(run):
    """A product of each width by Kiln and by the library."""
    for cols in LOADED:
        X = sparse_data(run, cols)
        lib, q = library(run, X), np.random.default_rng(5).random(X.shape[0])
        KX, v, w = run.device.csr(X), run.device.dense(len(q), 1, np.float64, q), run.device.dense(cols, 1, np.float64)
        theirs = lib.up(q)
        yield f"{cols} Kiln", lambda: kiln.multiply(w, 1.0, KX, v, transposed=True)
        yield f"{cols} {lib.name}", lambda: lib.transposed(theirs)
        free(KX, v, w)


@step("fused.fig2", "X^T y of a sparse X, 1 % of entries", "ms", TITAN,
      {"cuSPARSE, mean": 35, "cuSPARSE, most": 67, "loads of cuSPARSE over the kernel's, mean": 3.5},
      "kiln_multiply, transposed, against the library's transposed product, with what both read by ncu's counters; with a stored transpose, "
      "and after how many products that pays")
def fig2(run):
    found = counted.count(run, "fused.fig2")
    for held, cols in zip(sparse_rows(run, "X^T y"), widths(run)):
        ours = found.get(f"{cols} Kiln", {})
        for label, loads_of in found.items():
            if label.startswith(f"{cols} ") and label != f"{cols} Kiln":
                held["loads"] = {what: {"Kiln": round(ours[what], 1), "cuSPARSE": round(mb, 1)} for what, mb in loads_of.items() if what in ours}
        yield held


@step("fused.fig3", "X^T (X y) of a sparse X, 1 % of entries", "ms", TITAN,
      {"BIDMat-CPU, mean": 9.28, "BIDMat-GPU, mean": 14.66, "cuSPARSE, mean": 20.33}, "kiln_mmchain against two products of the library")
def fig3(run):
    return sparse_rows(run, "X^T (X y)")


@step("fused.fig4", "alpha X^T (v .* (X y)) + beta z of a sparse X, 1 % of entries", "ms", TITAN,
      {"BIDMat-CPU, mean": 13.41, "BIDMat-GPU, mean": 19.62, "cuBLAS and cuSPARSE, mean": 26.21},
      "kiln_mmchain with v, beta and z against the library's products and vector operations")
def fig4(run):
    return sparse_rows(run, "full")


@step("fused.table4", "three patterns on KDD 2010", "ms", TITAN,
      {"X^T y": 5552.1 / 50.5, "X^T (X y)": 5683.1 / 78.3, "full": 5704.1 / 85.2},
      "the same three on data of KDD 2010's rows, columns and entries, columns popular as in Zipf's law")
def table4(run):
    for name, X in data_sets(run, ["kdd2010"]):
        yield from measure(run, name, X, ["X^T y", "X^T (X y)", "full"])


@step("fused.fig5", "X^T (X y) of a dense X", "ms", TITAN,
      {"BIDMat-CPU, mean": 15.33, "BIDMat-GPU, mean": 2.18, "cuBLAS, mean": 4.27}, "kiln_mmchain against two products of the library")
def fig5(run):
    rows = run.size(2_000, 500_000)
    for cols in run.size((32, 512), (32, 64, 128, 256, 512, 1024, 2048)):
        yield from measure(run, f"{rows:,} x {cols:,}", run.floats(rows, cols).astype(np.float64), ["X^T (X y)"])


# Rows, columns, entries and popularity. Beside the paper's shape those on which choices were measured to lose the most
# (bench/studies/h200-plans-sparse.json), and dense ones for equation 6.
CHOICES = [(500_000, 1024, 5_000_000, "uniform"), (500_000, 200, 1_000_000, "uniform"), (4_000_000, 4096, 20_000_000, "zipf"),
           (500_000, 200, 0, "")]


@step("fused.fig6", "the launch model's choice among all plans, sparse 500,000 x 1,024", "ms",
      "the best of some 1,200 settings of VS, BS, C and the grid, found by trying all",
      {"loss of the choice, at most %": 2},
      "kiln tune mmchain --exhaustive: the choice, the best and the worst of the plans (with --scale small those predicted fastest), and the "
      "one that is nearest to what equations 4 to 6 say")
def fig6(run):
    options = argparse.Namespace(kiln=f"{run.build}/kiln", device=run.asked, quick=run.small)
    works = [(shape, "f64") for shape in run.size(CHOICES[::3], CHOICES)] + run.size([], [(CHOICES[2], "f32")])
    limits = equations.of_gpu(run)
    if run.kind == "cuda":  # builds the kernels side by side, which are kept
        with concurrent.futures.ThreadPoolExecutor(len(works)) as pool:
            list(pool.map(lambda work: plans.tune(options, *work, 0.002), works))
    for (rows, cols, entries, skew), kind in works:
        found = plans.tune(options, (rows, cols, entries, skew), kind, run.size(0.04, 1))
        times = [1e3 * plan["seconds"] for plan in found["plans"]]
        choice = next(plan for plan in found["plans"] if plan["chosen"])
        values = {"Kiln": 1e3 * choice["seconds"], "best plan": min(times), "worst plan": max(times)}
        wanted = equations.sparse(limits, rows, cols, entries, int(kind[1:]) // 8) if entries else equations.dense(limits, cols)
        if run.kind != "cpu":
            values["plan by equations"] = 1e3 * nearest(found["plans"], wanted)["seconds"]
        yield row(f"{found['rows']:,} x {cols:,}, {skew or 'dense'}, {kind}", values, plans=len(times), rank=found["rank"],
                  loss_percent=100 * found["loss"], predicted_ms=1e3 * choice["predicted_seconds"],
                  chosen={name: choice[name] for name in wanted}, equations=wanted)
    run.note("times are predicted for each plan from measured bandwidths, in place of equations 4 to 6 (docs/passes.md)")


def nearest(found, wanted):
    """Returns the plan whose parameters are the fewest doublings away, but for C, which follows from the grid."""
    names = [name for name in wanted if name != "C"]
    return min(found, key=lambda plan: sum(abs(math.log2(max(plan[name], 1) / wanted[name])) for name in names))


def whole_runs(run, device, alone=False):
    """`kiln linreg` from file to model, and unless alone the same composed of library calls; once for all steps. On the processor
    KDD 2010 does a part of the paper's 100 iterations, by which the rest is reckoned."""
    for name, called in NAMES.items():
        iterations = PART if device == "cpu" and name == "kdd2010" else MOST
        options = argparse.Namespace(build=run.build, device=device, type="f64", iterations=iterations, tolerance=1e-6, alone=alone)
        yield called, run.once(("whole", device, name), lambda: end_to_end.run_files(options, name, made(run, name), run.folder))


def reckoned(found):
    """Iterations of a whole run."""
    return MOST if found["iterations"] == PART else found["iterations"]


def useful(found, kind="fused"):
    """Seconds without a process's start and end, and without the writing of a model, which the composed run does not do."""
    seconds = found[kind]
    return sum(seconds.get(part, 0) for part in ("read", "move", "build")) + seconds["compute"] * reckoned(found) / found["iterations"]


@step("fused.table5", "linear regression by conjugate gradient, end to end", "s", "cuSPARSE and cuBLAS of CUDA 6; GeForce GTX Titan",
      {"HIGGS, 32 iterations": 4.8, "KDD 2010, 100 iterations": 9},
      "kiln linreg with the paper's listing 1, reading, moving and solving, against the same composed of library calls; HIGGS-like data have "
      "columns of a condition number that needs the paper's iterations")
def table5(run):
    for name, found in whole_runs(run, run.kind):
        values = {"Kiln": useful(found), "composed": useful(found, "composed")}
        if "composed_stored_transpose" in found:
            values["composed, stored transpose"] = useful(found, "composed_stored_transpose")
        yield row(f"{name}, {reckoned(found)} iterations", values, weights_apart=found["composed"]["difference"],
                  solving={"Kiln": found["fused"]["compute"], "composed": found["composed"]["compute"]})


@step("fused.table6", "linear regression against the same system on its processor", "s", "SystemML on its CPU, the GPU called from Java",
      {"HIGGS, total": 1.2, "KDD 2010, total": 1.9, "HIGGS, fused kernel": 11.2, "KDD 2010, fused kernel": 4.1},
      "kiln linreg on the device and on the processor, reading, moving and solving; on the processor itself against NumPy and SciPy")
def table6(run):
    run.note("SystemDS is SystemML's successor; docs/migration.md says how its users' files are read here")
    run.note(f"on the processor KDD 2010's {MOST} iterations are reckoned from {PART}")
    of_processor = dict(whole_runs(run, "cpu", alone=True)) if run.kind != "cpu" else {}
    for name, found in whole_runs(run, run.kind):
        values = {"Kiln": useful(found)}
        if run.kind == "cpu":
            values["NumPy and SciPy"] = useful(found, "composed")
        else:
            values["Kiln on the processor"] = useful(of_processor[name])
        yield row(name, values, iterations=reckoned(found), parts=found["fused"])
