#!/usr/bin/env python3
"""Many vectors at once on a GPU: kiln_batch_reduce (sum, f32) and kiln_batch_scale at every length from 1 to
10^8, against CUB's segmented reductions, built here by nvcc, and PyTorch where they are installed. 1 GiB of
values; a median of CUDA queues' wall clock.

usage: gpu_batch.py [--device cuda] [--json FILE] [--commit TEXT] [--bytes N]
"""
import argparse
import datetime
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

import kiln_c as kiln
from gpu_common import median_time

LENGTHS = [1, 2, 3, 7, 16, 31, 32, 33, 100, 128, 1000, 1024, 10**4, 10**6, 10**8]
SUM, L2, ARGMAX, VARIANCE = 1, 4, 7, 10
CUB = r"""
#include <algorithm>
#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cstdio>
#include <cstdlib>
struct place { int length; __host__ __device__ int operator()(int i) const { return i * length; } };
template <class F> static double median(F call) {
    cudaEvent_t a, b;
    float best[9];
    cudaEventCreate(&a); cudaEventCreate(&b);
    call(); call();
    for (float &t : best) {
        cudaEventRecord(a); call(); cudaEventRecord(b); cudaEventSynchronize(b);
        cudaEventElapsedTime(&t, a, b);
    }
    std::sort(best, best + 9);
    return best[4] * 1e-3;
}
int main(int argc, char **argv) {
    const long elements = atol(argv[1]);
    float *x, *y;
    cudaMalloc(&x, elements * 4); cudaMalloc(&y, elements * 4);
    cudaMemset(x, 0, elements * 4);
    for (int i = 2; i < argc; i++) {
        const int length = atoi(argv[i]), count = (int)(elements / length);
        thrust::transform_iterator<place, thrust::counting_iterator<int>> offsets(thrust::counting_iterator<int>(0), place{length});
        void *space = nullptr;
        size_t bytes = 0;
        cub::DeviceSegmentedReduce::Sum(space, bytes, x, y, count, offsets, offsets + 1);
        cudaMalloc(&space, bytes + 1);
        double seconds = median([&] { cub::DeviceSegmentedReduce::Sum(space, bytes, x, y, count, offsets, offsets + 1); });
        if (count == 1) {
            size_t whole = 0;
            void *more = nullptr;
            cub::DeviceReduce::Sum(more, whole, x, y, length);
            cudaMalloc(&more, whole);
            seconds = std::min(seconds, median([&] { cub::DeviceReduce::Sum(more, whole, x, y, length); }));
            cudaFree(more);
        }
        if (cudaDeviceSynchronize() != cudaSuccess) return 1;
        printf("%d %.9g\n", length, seconds);
        cudaFree(space);
    }
}
"""


def cub_seconds(elements):
    """Seconds of CUB's sum by length; {} without nvcc."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "segments.cu", pathlib.Path(folder) / "segments"
        source.write_text(CUB)
        subprocess.run([nvcc, "-O3", "-std=c++17", "--extended-lambda", "-arch=native", source, "-o",
                        program], check=True)
        lines = subprocess.run([program, str(elements), *map(str, LENGTHS)], check=True, capture_output=True,
                               text=True).stdout
    return {int(line.split()[0]): float(line.split()[1]) for line in lines.splitlines()}


def torch_seconds(elements):
    """Seconds of PyTorch's sum and product by length; {} where it is not installed."""
    try:
        import torch
    except ImportError:
        return {}
    found, x = {}, torch.ones(elements, device="cuda")
    y = torch.empty_like(x)
    for length in LENGTHS:
        rows = x[:elements // length * length].view(-1, length)
        out, s = torch.empty(rows.shape[0], device="cuda"), torch.ones(rows.shape[0], 1, device="cuda")
        target = y[:rows.numel()].view_as(rows)
        found[length] = (median_time(lambda: torch.sum(rows, 1, out=out), torch.cuda.synchronize, 0.03),
                         median_time(lambda: torch.mul(rows, s, out=target), torch.cuda.synchronize, 0.03))
    return found


class Batch:
    def __init__(self, count, length):
        made = kiln.ffi.new("kiln_batch **")
        kiln.call("batch_equal", made, count, length, 0, 0, 0)
        self.pointer = made[0]

    def reduce(self, result, kind, X):
        kiln.call("batch_reduce", result, kind, X, self)

    def scale(self, Y, X, factors):
        kiln.call("batch_scale", Y, X, factors, self)

    def free(self):
        kiln.lib.kiln_batch_free(self.pointer)


def measure(device, X, Y, length, elements):
    count = elements // length
    batch, out = Batch(count, length), device.dense(count, 1, np.float32)
    factors = device.dense(count, 1, np.float32).fill_random(1, 1)
    row = {"length": length, "count": count, "bytes": 4 * (count * length + count),
           "scale_bytes": 4 * (2 * count * length + count)}
    for name, kind in (("sum", SUM), ("l2", L2), ("argmax", ARGMAX), ("variance", VARIANCE)):
        if kind != ARGMAX or length <= 1 << 24:
            row[name] = median_time(lambda: batch.reduce(out, kind, X), device.synchronize, 0.03)
    row["scale"] = median_time(lambda: batch.scale(Y, X, factors), device.synchronize, 0.03)
    batch.reduce(out, SUM, X)
    want = (X.numpy().ravel()[:count * length].reshape(count, length).sum(1, dtype=np.float64)
            if length >= 10**6 else None)
    if want is not None:
        row["wrong"] = float(np.abs(out.numpy().ravel() - want).max() / max(1.0, np.abs(want).max()))
    for item in (out, factors, batch):
        item.free()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--bytes", type=int, default=1 << 30)
    args = parser.parse_args()
    elements = args.bytes // 4
    device = kiln.Device(args.device)
    read = device.bandwidth()
    X, Y = device.dense(1, elements, np.float32).fill_random(3, 0), device.dense(1, elements, np.float32)
    lengths = [length for length in LENGTHS if length <= elements]
    copy = median_time(lambda: kiln.call("map", Y, 1, X), device.synchronize, 0.05)
    rows = [measure(device, X, Y, length, elements) for length in lengths]
    for matrix in (X, Y):
        matrix.free()
    cub, torch = (cub_seconds(elements) if args.device == "cuda" else {}, torch_seconds(elements)
                  if args.device == "cuda" else {})
    copied = 8 * elements / copy
    print(f"read {read / 1e9:.0f} GB/s, copy (map) {copied / 1e9:.0f} GB/s")
    print("    length    sum of read     l2  argmax  variance  scale of copy    CUB sum  PyTorch sum, scale")
    for row in rows:
        length = row["length"]
        row["of_read"], row["of_copy"] = (row["bytes"] / row["sum"] / read, row["scale_bytes"] / row["scale"]
                                          / copied)
        row["cub_sum"] = cub.get(length)
        row["torch_sum"], row["torch_scale"] = torch.get(length, (None, None))
        ms = [f"{1e3 * row[key]:.3f}" if row.get(key) else "-" for key in
              ("sum", "l2", "argmax", "variance", "scale", "cub_sum", "torch_sum", "torch_scale")]
        print(f"{length:10d} {ms[0]:>7} {100 * row['of_read']:5.1f}% {ms[1]:>7} {ms[2]:>7} {ms[3]:>8}  "
              f"{ms[4]:>7} "
              f"{100 * row['of_copy']:5.1f}%   {ms[5]:>8} {ms[6]:>8} {ms[7]:>8}")
    if args.json:
        name, description = device.name, device.description
        pathlib.Path(args.json).write_text(json.dumps(
            {"device": description, "name": name, "date": datetime.date.today().isoformat(),
             "commit": args.commit, "type": "f32", "elements": elements, "read": read, "copy": copied,
             "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
