#!/usr/bin/env python3
"""Passes over a matrix larger than the device's memory budget, against the link that it moves over:
   Kiln's mmchain, w = X^T (X y), in panels from host memory, and kiln linreg --map from a file, as fractions
   of the rate at which the same device takes pinned host memory (CUDA), or host memory as it is (OpenCL).

usage: gpu_stream.py [--device cuda|opencl] [--gigabytes N] [--only-file] [--kiln PROGRAM] [--folder DIR] [--json FILE] [--commit TEXT]
The budget is a quarter of X. Every result is compared with that of a device with room for X (the CPU where it
has none). --folder: where the file for --map is written; left out, that part is.
"""
import argparse
import concurrent.futures
import ctypes
import datetime
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np

import kiln_c as kiln

PASSES = 5
SHAPES = [("dense", "float64", 28), ("dense", "float64", 1000), ("dense", "float32", 1000),
          ("csr", "float64", 1_000_000)]
PER_ROW = 30


def cuda_link(megabytes=1024, repeats=8):
    """Bytes a second from pinned host memory, by the driver's own copy: the best of a few."""
    cuda = ctypes.CDLL("libcuda.so.1")
    size = ctypes.c_size_t(megabytes << 20)
    context, host, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()

    def call(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: error {code}")

    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuMemAllocHost_v2", ctypes.byref(host), size)
    call("cuMemAlloc_v2", ctypes.byref(device), size)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call("cuMemcpyHtoD_v2", device, host, size)
        call("cuCtxSynchronize")
        best = min(best, time.perf_counter() - start)
    call("cuMemFree_v2", device)
    call("cuMemFreeHost", host)
    call("cuDevicePrimaryCtxRelease_v2", 0)
    return size.value / best


def plain_link(name, megabytes=64, repeats=8):
    device = kiln.Device(name)
    values = np.ones((megabytes << 18, 1), np.float32)
    A = device.dense(*values.shape, "float32", values)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        kiln.call("matrix_set", A, values)
        device.synchronize()
        best = min(best, time.perf_counter() - start)
    return values.nbytes / best


def make(form, dtype, cols, size):
    """Host arrays of about `size` bytes; the values of a block repeat, which no transfer notices."""
    rng = np.random.default_rng(1)
    element = np.dtype(dtype).itemsize
    if form == "dense":
        rows = max(size // (cols * element), 1)
        return np.resize(rng.standard_normal(1 << 20).astype(dtype), (rows, cols))
    import scipy.sparse as sp
    rows = max(size // (PER_ROW * (4 + element)), 1)
    stretch = cols // PER_ROW
    col = (np.arange(PER_ROW) * stretch + rng.integers(0, stretch, (rows, PER_ROW))).astype(np.int32).ravel()
    values = np.resize(rng.standard_normal(1 << 20).astype(dtype), rows * PER_ROW)
    return sp.csr_matrix((values, col, np.arange(rows + 1, dtype=np.int64) * PER_ROW), shape=(rows, cols))


def place(device, X, dtype):
    return device.csr(X) if hasattr(X, "indptr") else device.dense(*X.shape, dtype, X)


def passes(device, X, dtype, count):
    """The result, and the seconds of each pass."""
    y = device.dense(X.shape[1], 1, dtype, np.ones((X.shape[1], 1), dtype))
    w = device.dense(X.shape[1], 1, dtype)
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        kiln.call("mmchain", w, 1, X, None, y, 0, None)
        device.synchronize()
        seconds.append(time.perf_counter() - start)
    return w.numpy(), seconds


def streamed(name, form, dtype, cols, size, link):
    host = make(form, dtype, cols, size)
    size = host.nbytes if form == "dense" else host.data.nbytes + host.indices.nbytes + 8 * len(host.indptr)
    device = kiln.Device(name, memory=size // 4)
    X = place(device, host, dtype)
    w, seconds = passes(device, X, dtype, PASSES + 1)  # the first builds kernels and pins X
    figures = device.statistics()
    if not figures["panels"]:
        raise RuntimeError("X was not streamed")
    want, resident = None, "cpu"
    for resident in (name, "cpu"):
        try:
            whole = kiln.Device(resident)
            want, _ = passes(whole, place(whole, host, dtype), dtype, 1)
            break
        except kiln.KilnError:
            continue
    error = float(np.max(np.abs(w - want)) / np.max(np.abs(want)))
    best = sorted(seconds[1:])[len(seconds[1:]) // 2]
    return {"format": form, "type": dtype, "rows": int(host.shape[0]), "columns": int(cols),
            "bytes": int(size), "budget": int(size // 4), "first_pass_seconds": seconds[0],
            "pass_seconds": best, "gigabytes_per_second": size / best / 1e9, "of_link": size / best / link,
            "waiting_for_panels": figures["panel_wait_seconds"] / figures["panel_seconds"],
            "panels_per_pass": figures["panels"] // (PASSES + 1), "relative_difference": error,
            "compared_with": resident}


def plain_reading(path, size, threads):
    """Bytes a second of nothing but reading: pieces of a file from the page cache to memory that is there,
    the best of a few."""
    piece, best = 4 << 20, float("inf")
    local = threading.local()
    file = os.open(path, os.O_RDONLY)

    def read(offset):
        if not hasattr(local, "room"):
            local.room = np.ones(piece, np.uint8)
        os.preadv(file, [local.room], offset)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(4):
            start = time.perf_counter()
            list(pool.map(read, range(0, size, piece)))
            best = min(best, time.perf_counter() - start)
    os.close(file)
    return size / best


def from_file(name, program, folder, size, link):
    cols = 100
    X = make("dense", "float64", cols, size)
    paths = [os.path.join(folder, file) for file in ("kiln-stream-X.npy", "kiln-stream-y.npy")]
    try:
        np.save(paths[0], X)
        np.save(paths[1], X @ np.arange(cols) + 1)
        reading = plain_reading(paths[0], X.nbytes, len(os.sched_getaffinity(0)))
        for _ in range(2):  # the first builds kernels within its passes
            run = subprocess.run([program, "linreg", paths[0], "--target-file", paths[1], "--map", "--device",
                                  name, "--json", "--memory", str(X.nbytes // 4)], capture_output=True,
                                 text=True)
            if run.returncode:
                raise RuntimeError(run.stderr)
        memory = json.loads(run.stdout)["memory"]
    finally:
        for path in paths:
            if os.path.exists(path):
                os.remove(path)
    rate = memory["panel_bytes"] / memory["panel_seconds"]
    return {"format": "npy file", "type": "float64", "rows": X.shape[0], "columns": cols, "bytes": X.nbytes,
            "panels": memory["panels"], "plain_reading_bytes_per_second": reading,
            "gigabytes_per_second": rate / 1e9, "of_link": rate / link,
            "waiting_for_panels": memory["panel_wait_seconds"] / memory["panel_seconds"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--gigabytes", type=float, default=8)
    parser.add_argument("--only-file", action="store_true", help="leave X in host memory out")
    parser.add_argument("--kiln", default="kiln")
    parser.add_argument("--folder")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    size = int(options.gigabytes * 1e9)
    link = cuda_link() if options.device.startswith("cuda") else plain_link(options.device)
    device = kiln.Device(options.device)
    name, description = device.name, device.description
    print(f"{name}: {description}; link {link / 1e9:.1f} GB/s")
    rows = []
    for form, dtype, cols in SHAPES if not options.only_file else []:
        rows.append(streamed(options.device, form, dtype, cols, size, link))
    if options.folder:
        rows.append(from_file(options.device, options.kiln, options.folder, size, link))
    for row in rows:
        print(f"{row['format']:9} {row['type']} {row['rows']:>11,} x {row['columns']:<9,} "
              f"{row['gigabytes_per_second']:7.2f} GB/s, {100 * row['of_link']:5.1f} % of the link, "
              f"{100 * row['waiting_for_panels']:3.0f} % of the time waiting for panels"
              + (f", difference {row['relative_difference']:.1e}" if "relative_difference" in row else ""))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"what": "gpu_stream", "device": name, "description": description,
                       "commit": options.commit, "date": datetime.date.today().isoformat(),
                       "link_bytes_per_second": link, "rows": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
