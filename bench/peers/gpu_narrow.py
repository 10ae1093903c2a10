#!/usr/bin/env python3
"""Passes over a dense X that is kept as bytes, and as f32, on a GPU, in turns, and logistic fits of both.

MNIST's shape, 60,000 x 784 of u8, and 10,000,000 x 28 of i8. `gain` is how many times faster bytes are,
`bandwidth` the rate at which the bytes of X are read. Ends with 1 if results differ by more than the rounding
of f32 sums. --scale S: as many times the rows, for a try on little hardware.

usage: gpu_narrow.py [--device cuda:0] [--scale S] [--json FILE] [--commit TEXT]
"""
import argparse
import sys
import time

import numpy as np

import gpu_common
import kiln_c as kiln

SHAPES = (("mnist", 60000, 784, np.uint8, 0, 256, kiln.lib.KILN_ELEMENT_U8),
          ("28 columns", 10000000, 28, np.int8, -128, 128, kiln.lib.KILN_ELEMENT_I8))
APART = 2e-4  # of the largest number of a result


def fetched(matrix, shape):
    out = np.empty(shape, np.float32)
    kiln.call("matrix_get", out, matrix)
    return out.astype(float)


def calls_of(device, X, y):
    """Names, calls and results of the passes over X."""
    rows, cols = X.shape
    rng = np.random.default_rng(2)

    def dense(m, n, values=None):
        values = None if values is None else np.ascontiguousarray(values, np.float32)
        return kiln.make(device, "dense", device, kiln.lib.KILN_F32, m, n, values)
    one, many = (dense(cols, k, rng.normal(0, 0.01, (cols, k))) for k in (1, 8))
    target = dense(rows, 1, y)
    w, wide, out = dense(cols, 1), dense(cols, 8), dense(rows, 1)
    G, g, value = dense(cols, cols), dense(cols, 1), kiln.ffi.new("double *")
    loss = kiln.struct("loss", kind=kiln.lib.KILN_LOSS_LOGISTIC, y=target)
    passes = {"mmchain": (w, (cols, 1), "mmchain", w, 1.0, X, None, one, 0.0, None),
              "mmchain of 8": (wide, (cols, 8), "mmchain", wide, 1.0, X, None, many, 0.0, None),
              "multiply": (out, (rows, 1), "multiply", out, 1.0, 0, X, one, 0.0, None),
              "multiply by X^T": (w, (cols, 1), "multiply", w, 1.0, 1, X, target, 0.0, None),
              "loss": (w, (cols, 1), "loss_gradient", value, w, None, None, loss, X, one, None),
              "gram": (G, (cols, cols), "gram", G, g, X, None, None)}
    return {name: (lambda call=call: kiln.call(*call), result, shape)
            for name, (result, shape, *call) in passes.items()}


def fit(device, X, y):
    """Seconds and the coefficients of a logistic regression, the second of two."""
    rows, cols = X.shape
    target, w, b = (kiln.make(device, "dense", device, kiln.lib.KILN_F32, n, 1, values)
                    for n, values in ((rows, y), (cols, None), (1, None)))
    options = kiln.struct("logreg_options", l2=1.0, tolerance=1e-4)
    for _ in range(2):
        report = kiln.struct("report")
        began = time.perf_counter()
        kiln.call("logreg", w, b, X, target, options, report)
        seconds = time.perf_counter() - began
    return seconds, float(report.objective)


def measure(device, name, rows, cols, dtype, low, high, element):
    rng = np.random.default_rng(1)
    values = rng.integers(low, high, (rows, cols), dtype=np.int16).astype(dtype)
    y = (values[:, :8].sum(1, dtype=np.int64) + rng.normal(0, 50, rows) > 4 * (low + high)).astype(np.float32)
    kept = {way: kiln.make(device, "dense", device, kiln.lib.KILN_F32, rows, cols, values.astype(np.float32))
            for way in ("narrow", "wide")}
    done = kiln.ffi.new("int *")
    kiln.call("matrix_narrow", kept["narrow"], element, done)
    assert done[0] == 1, "X stays wide"
    found = []
    both = {way: calls_of(device, X, y) for way, X in kept.items()}

    def sync():
        kiln.call("device_sync", device)
    for which in both["wide"]:
        seconds, results = {}, []
        for way, calls in both.items():
            if way == "narrow":  # a pass that gains nothing by it has had it widened
                kiln.call("matrix_narrow", kept[way], element, done)
            call, result, shape = calls[which]
            seconds[way] = gpu_common.median_time(call, sync)
            results.append(fetched(result, shape))
        found.append({"shape": name, "pass": which, "narrow_ms": 1000 * seconds["narrow"],
                      "wide_ms": 1000 * seconds["wide"], "gain": seconds["wide"] / seconds["narrow"],
                      "narrow_bandwidth": rows * cols / seconds["narrow"] / 1e9,
                      "wide_bandwidth": 4 * rows * cols / seconds["wide"] / 1e9,
                      "difference": gpu_common.relative_error(*results)})
    fits = {way: fit(device, X, y) for way, X in kept.items()}
    apart = abs(fits["narrow"][1] / fits["wide"][1] - 1)
    found.append({"shape": name, "pass": "logreg", "narrow_ms": 1000 * fits["narrow"][0],
                  "wide_ms": 1000 * fits["wide"][0], "gain": fits["wide"][0] / fits["narrow"][0],
                  "difference": apart})
    storage = kiln.struct("storage")
    kiln.call("matrix_get_storage", storage, kept["narrow"])
    found[-1]["stays_narrow"] = bool(storage.element == element)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    a = parser.parse_args()
    device, rows = kiln.Device(a.device), []
    for name, count, *rest in SHAPES:
        rows += measure(device, name, max(int(count * a.scale), 64), *rest)
        gpu_common.keep(a.json, "passes over X as bytes and as f32", a.device, a.commit, rows)
    for row in rows:
        print(f"{row['shape']:12}{row['pass']:17}{row['narrow_ms']:10.3f} ms{row['wide_ms']:10.3f} ms wide"
              f"{row['gain']:7.2f} times, {row['difference']:.1e} apart")
    return 0 if all(row["difference"] < APART for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
