#!/usr/bin/env python3
"""Passes over an X of numbers and categories that is kept as codes, and as sparse rows of entries.

Rows of 10 numbers and 6 categories of 5 to 5,000 levels. For f32 and f64 the passes that a generalised linear
model is made of, value with gradient and Hessian product, over the codes and over the same X as entries, in
turns, with the bytes that each reads and so what bytes alone would give. With --fits whole Poisson models of
both, and glum's of a SplitMatrix of tabmat by each of its solvers (pip install glum; not with a GPU), all of
one objective. --busy counts seconds of the processor, for a machine that others use. Ends with 1 if passes
differ by more than rounding, or a fit of Kiln's is more than 1e-6 above the best.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/blocks.py --threads 2 --fits --json FILE --commit TEXT
"""
import argparse
import datetime
import json
import sys
import time

import numpy as np
import scipy.sparse

L2 = 1.0
NUMBERS, LEVELS = 10, (5, 20, 100, 500, 2000, 5000)


def draw(rows, seed=1):
    """Numbers, codes and counts of a Poisson model of them; levels are as uneven as names are."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((rows, NUMBERS))
    codes = [np.minimum((levels * rng.random(rows) ** 2).astype(np.int32), levels - 1) for levels in LEVELS]
    eta = numbers @ rng.normal(0, 0.1, NUMBERS) - 0.5
    for levels, code in zip(LEVELS, codes):
        eta += rng.normal(0, 0.3, levels)[code]
    return numbers, codes, rng.poisson(np.exp(eta)).astype(float)


def entries(numbers, codes):
    """The same X as compressed sparse rows."""
    rows, width = len(numbers), NUMBERS + len(LEVELS)
    first = NUMBERS + np.concatenate([[0], np.cumsum(LEVELS)[:-1]])
    col = np.empty((rows, width), np.int32)
    col[:, :NUMBERS] = np.arange(NUMBERS)
    values = np.ones((rows, width))
    values[:, :NUMBERS] = numbers
    for c, code in enumerate(codes):
        col[:, NUMBERS + c] = first[c] + code
    starts = np.arange(0, rows * width + 1, width, dtype=np.int64)
    return scipy.sparse.csr_matrix((values.ravel(), col.ravel(), starts),
                                   shape=(rows, NUMBERS + sum(LEVELS)))


def coded(kiln, device, kind, numbers, codes):
    """kiln_matrix_codes of them."""
    real = np.float32 if kind == kiln.lib.KILN_F32 else np.float64
    values, first = np.ascontiguousarray(numbers, real), NUMBERS
    given = kiln.ffi.new("kiln_codes[]", len(codes))
    for c, (levels, code) in enumerate(zip(LEVELS, codes)):
        given[c].size, given[c].column, given[c].levels = kiln.ffi.sizeof("kiln_codes"), first, levels
        given[c].codes, given[c].code_bytes = kiln.plain(code), 4
        first += levels
    return kiln.make(device, "codes", device, kind, len(numbers), first, values, given, len(codes))


def best(run, turns, clock):
    """Least seconds of each of some calls that take turns."""
    least = [np.inf] * len(run)
    for _ in range(turns):
        for i, call in enumerate(run):
            begin = clock()
            call()
            least[i] = min(least[i], clock() - begin)
    return least


def stored(kiln, matrix):
    storage = kiln.struct("storage")
    kiln.call("matrix_get_storage", storage, matrix)
    return int(storage.bytes)


def passes(kiln, device, kind, numbers, codes, X, y, turns, clock):
    """Seconds and bytes of the passes over codes and over entries, and how far their results are apart."""
    real = np.float32 if kind == kiln.lib.KILN_F32 else np.float64
    rows, cols = X.shape
    both = [coded(kiln, device, kind, numbers, codes),
            kiln.make(device, "csr", device, kind, rows, cols, X.indptr.astype(np.int64), X.indices,
                      X.data.astype(real))]
    rng = np.random.default_rng(2)

    def dense(values, m, n):
        return kiln.make(device, "dense", device, kind, m, n,
                         None if values is None else np.ascontiguousarray(values, real))
    target, W = dense(y, rows, 1), dense(rng.normal(0, 0.05, cols), cols, 1)
    G, C, value = [dense(None, cols, 1) for _ in both], dense(None, rows, 1), kiln.ffi.new("double *")
    loss = kiln.struct("loss", kind=kiln.lib.KILN_LOSS_GLM, family=kiln.lib.KILN_POISSON,
                       link=kiln.lib.KILN_LINK_LOG, y=target)
    told = {}

    def gradient(i):
        kiln.call("loss_gradient", value, G[i], None, C, loss, both[i], W, None)
        kiln.call("device_sync", device)

    def hessian(i):
        kiln.call("loss_hessian", G[i], None, loss, C, both[i], W, None, 0.0, None)
        kiln.call("device_sync", device)
    for name, call in (("gradient", gradient), ("hessian", hessian)):
        least = best([lambda: call(0), lambda: call(1)], turns, clock)
        results = []
        for made in G:
            out = np.empty(cols, real)
            kiln.call("matrix_get", out, made)
            results.append(out.astype(float))
        told[name] = {"codes_seconds": least[0], "entries_seconds": least[1], "gain": least[1] / least[0],
                      "difference": float(np.abs(results[0] - results[1]).max() / np.abs(results[1]).max())}
    sizes = [stored(kiln, made) for made in both]
    told["codes_bytes"], told["entries_bytes"] = sizes
    told["gain_of_bytes"] = sizes[1] / sizes[0]
    return told


def objective(eta, y, w):
    return float(np.sum(np.exp(eta) - y * eta) + L2 / 2 * w @ w)


def fit(kiln, device, kind, X, y):
    """The coefficients and the intercept of a model of a matrix on the device, and Newton's steps."""
    real = np.float32 if kind == kiln.lib.KILN_F32 else np.float64
    rows, cols = X.shape
    target = kiln.make(device, "dense", device, kind, rows, 1, np.ascontiguousarray(y, real))
    w, b = (kiln.make(device, "dense", device, kind, n, 1, None) for n in (cols, 1))
    report = kiln.struct("report")
    kiln.call("glm", w, b, X, target,
              kiln.struct("glm_options", family=kiln.lib.KILN_POISSON, l2=L2, tolerance=1e-4), report)
    found = np.empty(cols, real), np.empty(1, real)
    for to, made in zip(found, (w, b)):
        kiln.call("matrix_get", to, made)
    return found[0].astype(float), float(found[1][0]), int(report.iterations)


def fit_glum(solver, numbers, codes, y):
    import glum
    import tabmat
    parts = [tabmat.DenseMatrix(np.asfortranarray(numbers))]
    parts += [tabmat.CategoricalMatrix(code) for code in codes]
    model = glum.GeneralizedLinearRegressor(family="poisson", alpha=L2 / len(y), l1_ratio=0, solver=solver,
                                            gradient_tol=1e-6, max_iter=300)
    model.fit(tabmat.SplitMatrix(parts), y)
    return model.coef_, float(model.intercept_), int(model.n_iter_)


def fits(kiln, device, numbers, codes, X, y, turns, clock):
    """Seconds, steps and objectives of whole fits, which take turns."""
    told, run = {}, {}
    for name, kind in (("f32", kiln.lib.KILN_F32), ("f64", kiln.lib.KILN_F64)):
        real = np.float32 if name == "f32" else np.float64
        made = {"codes": coded(kiln, device, kind, numbers, codes),
                "entries": kiln.make(device, "csr", device, kind, *X.shape, X.indptr.astype(np.int64),
                                     X.indices, X.data.astype(real))}
        for way, matrix in made.items():
            run[f"kiln {way} {name}"] = lambda kind=kind, matrix=matrix: fit(kiln, device, kind, matrix, y)
    # glum numbers the levels that occur; a level of no row has the coefficient 0
    seen = [np.unique(code, return_inverse=True) for code in codes]
    if device.name == "cpu":
        for solver in ("irls-ls", "lbfgs"):
            run[f"glum {solver}"] = lambda solver=solver: fit_glum(solver, numbers, [n for _, n in seen], y)
    for turn in range(turns):
        for name, call in run.items():
            begin = clock()
            w, b, steps = call()
            seconds = clock() - begin
            if name.startswith("glum"):
                at = np.cumsum([NUMBERS] + [len(levels) for levels, _ in seen])
                eta = numbers @ w[:NUMBERS] + b + sum(w[first:][n] for first, (_, n) in zip(at, seen))
            else:
                eta = X @ w + b
            least = min(seconds, told[name]["seconds"]) if turn else seconds
            told[name] = {"seconds": least, "iterations": steps, "objective": objective(eta, y, w)}
    for name, found in told.items():
        print(f"{name:20}{found['seconds']:10.3f} s {found['iterations']:5} steps, {found['objective']:.9g}")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--fits", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--commit", default="")
    parser.add_argument("--json")
    a = parser.parse_args()
    import kiln_c as kiln
    device = kiln.Device(a.device, threads=a.threads)
    clock = time.process_time if a.busy else time.perf_counter
    numbers, codes, y = draw(a.rows)
    X = entries(numbers, codes)
    told = {"made_by": "bench/peers/blocks.py", "date": str(datetime.date.today()), "commit": a.commit,
            "device": next(row["description"] for row in kiln.devices() if row["name"] == device.name),
            "seconds_of": "processor" if a.busy else "clock",
            "threads": a.threads, "rows": a.rows, "numbers": NUMBERS, "levels": LEVELS}
    bad = False
    for name, kind, most in (("f32", kiln.lib.KILN_F32, 1e-5), ("f64", kiln.lib.KILN_F64, 1e-12)):
        found = told[name] = passes(kiln, device, kind, numbers, codes, X, y, a.turns, clock)
        bad |= any(found[of]["difference"] > most for of in ("gradient", "hessian"))
        print(name, json.dumps(found))
    if a.fits:
        found = told["fits"] = fits(kiln, device, numbers, codes, X, y, min(a.turns, 3), clock)
        least = min(one["objective"] for one in found.values())
        bad |= any(one["objective"] > least + 1e-6 * abs(least) for name, one in found.items()
                   if name.startswith("kiln"))
    if a.json:
        with open(a.json, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
            file.write("\n")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
