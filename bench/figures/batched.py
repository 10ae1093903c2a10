"""Polok and Smrz, Fast Linear Algebra on GPU: many vectors reduced and scaled at once."""
import json

import numpy as np

from frame import free, row, step
from gpu_batch import L2, LENGTHS, Batch

FERMI = "OpenCL and cuBLAS of 2012; GeForce GTX 590 (Fermi) and GTX 260 (Tesla)"
COMPARED = 4_000_000  # numbers
CALLS = 1000  # of a loop that calls a library for each vector; its time goes by their number
# Algorithm 2 as the paper prints it: a block copies the factors of `interleave` vectors into on-chip memory, and waits for them, before
# and after each stretch.
ALGORITHM_2 = r"""
extern "C" __global__ void scale(const float *vectors, const float *scales, float *dest, long count, long length, int interleave)
{
    extern __shared__ float shared[];
    const long last = count * length, step = interleave * length;
    for (long e0 = blockIdx.x * step; e0 < last; e0 += gridDim.x * step) {
        const long v0 = e0 / length;
        for (long i = threadIdx.x; i < interleave && i < count - v0; i += blockDim.x) shared[i] = scales[v0 + i];
        __syncthreads();
        for (long e = e0 + threadIdx.x; e < e0 + step && e < last; e += blockDim.x) dest[e] = vectors[e] * shared[e / length - v0];
        __syncthreads();
    }
}
"""


@step("batched.table1", "ways to share vectors among threads", "GB/s", "1D, 2D and looped 1D grids of thread blocks on a GTX 590",
      {"gain of the loop, %": 40, "1D": 108.8, "1D/loop": 153.4},
      "kiln tune batch --exhaustive: the best plan of each variant (a vector a thread, few threads, a block, a looped block, tiles, pieces)")
def table1(run):
    for count in run.size((256, 2560), (256, 2560, 25600, 102400)):
        words = ["tune", "batch", "--rows", str(count), "--columns", "1024", "--type", "f32", "--device", run.asked, "--json", "--quiet"]
        found = json.loads(run.tool(*words, *([] if run.small else ["--exhaustive"])))
        values, moved = {}, 1e-9 * 4 * count * 1025
        for plan in found["plans"]:
            if plan["seconds"]:
                rate = moved / plan["seconds"]
                values[plan["variant"]] = max(rate, values.get(plan["variant"], 0))
                if plan["chosen"]:
                    values["Kiln"] = rate
        yield row(f"{count:,} vectors of 1,024", values)
    if run.kind == "cpu":
        run.note("a processor has one way")


class Vectors:
    """`elements` numbers as vectors of a length, their factors, and where results go."""

    def __init__(self, run, length, elements):
        self.run, self.count, self.length = run, max(1, elements // length), length
        device, real = run.device, np.float32
        self.host, self.factors_host = run.floats(self.count, length), run.floats(1, self.count, 1_000)[0] + real(0.5)
        self.X, self.Y = device.dense(self.count, length, real, self.host), device.dense(self.count, length, real)
        self.out, self.factors = device.dense(self.count, 1, real), device.dense(self.count, 1, real, self.factors_host)
        self.batch = Batch(self.count, length)
        self.read, self.moved = 4e-9 * self.count * (length + 1), 4e-9 * self.count * (2 * length + 1)

    def reduce(self):
        self.batch.reduce(self.out, L2, self.X)

    def scale(self):
        self.batch.scale(self.Y, self.X, self.factors)

    def check(self):
        """Looks at one of every so many vectors."""
        self.reduce()
        self.scale()
        some = slice(None, None, 1 + self.host.size // COMPARED)
        wide = self.host[some].astype(np.float64)
        self.run.right("norms", self.out.numpy()[some, 0], np.sqrt((wide * wide).sum(1)))
        self.run.right("scaled vectors", self.Y.numpy()[some], wide * self.factors_host[some, None])

    def free(self):
        free(self.X, self.Y, self.out, self.factors, self.batch)

    def library(self):
        """(batched norm, batched scaling, a norm of one vector, a scaling of one), and what waits for them."""
        if self.run.kind != "cuda":
            from scipy.linalg import blas
            x, s, y, one = self.host, self.factors_host[:, None], np.empty_like(self.host), self.host[0].copy()
            return ("NumPy", lambda: np.sqrt(np.einsum("ij,ij->i", x, x)), lambda: np.multiply(x, s, out=y), lambda: blas.snrm2(one),
                    lambda: blas.sscal(1.0, one)), lambda: None
        if self.run.lacks("torch") or self.run.lacks("cupy"):
            return None, None
        import cupy
        import torch
        from cupy import cublas
        x, s = torch.from_numpy(self.host).cuda(), torch.from_numpy(self.factors_host[:, None]).cuda()
        y, one, place = torch.empty_like(x), cupy.asarray(self.host[0]), cupy.empty((), np.float32)
        return ("PyTorch", lambda: torch.linalg.vector_norm(x, dim=1), lambda: torch.mul(x, s, out=y),
                lambda: cublas.nrm2(one, out=place), lambda: cublas.scal(1.0, one)), torch.cuda.synchronize


@step("batched.table2", "scaling against the interleave size of Algorithm 2", "GB/s", FERMI,
      {"8 bytes, Fermi": 12.3, "256 bytes, Fermi": 144.0, "49,152 bytes, Fermi": 156.5},
      "kiln_batch_scale, vectors of 128, beside Algorithm 2 as it is printed (through CuPy, on an NVIDIA GPU)")
def table2(run):
    vectors = Vectors(run, 128, run.size(128_000, 200_000_000))
    vectors.check()
    ours = vectors.moved / run.milliseconds(vectors.scale) * 1e3
    if run.kind != "cuda" or run.lacks("cupy"):
        run.note("Algorithm 2 fills on-chip memory by hand and is measured on NVIDIA GPUs alone; Kiln has no interleave size: factors come "
                 "through the caches, which GPUs of 2012 lacked, and nothing waits")
        yield row("no interleave", {"Kiln": ours})
    else:
        yield from interleaved(run, vectors, ours)
    vectors.free()


def interleaved(run, vectors, ours):
    import cupy
    kernel = cupy.RawKernel(ALGORITHM_2, "scale")
    x, s = cupy.asarray(vectors.host), cupy.asarray(vectors.factors_host)
    y, blocks = cupy.empty_like(x), 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    for size in (8, 16, 256, 512, 1024, 2048, 4096, 16384, 32768, 49152):
        def call(size=size):
            kernel((blocks,), (1024,), (x, s, y, np.int64(vectors.count), np.int64(vectors.length), np.int32(size // 4)), shared_mem=size)
        call()
        run.right(f"Algorithm 2, {size} bytes", y[::9973].get(), vectors.host[::9973] * vectors.factors_host[::9973, None])
        milliseconds = run.milliseconds(call, cupy.cuda.Device().synchronize)
        yield row(f"{size:,} bytes", {"Kiln": ours, "Algorithm 2": vectors.moved / milliseconds * 1e3})


@step("batched.fig1", "norms (a, c) and scaling (b, d) by the vectors' length", "GB/s", FERMI,
      {"over cublasSnrm2, long vectors, GB/s, Fermi": 80, "over cuBLAS, times": 3},
      "kiln_batch_reduce (L2) and kiln_batch_scale at every length, against the library's batched calls and a BLAS call for each vector")
def fig1(run):
    run.note(f"a loop of BLAS calls is timed for {CALLS:,} vectors at most and multiplied by their number")
    elements = run.size(40_000, 1 << 27)
    for length in run.size((1, 33, 1000), [n for n in LENGTHS if n <= 10**6]):
        vectors = Vectors(run, length, elements)
        vectors.check()
        found, sync = vectors.library()
        for what, call, moved, place in (("norm", vectors.reduce, vectors.read, 0), ("scale", vectors.scale, vectors.moved, 1)):
            values = {"Kiln": moved / run.milliseconds(call) * 1e3}
            if found:
                values[found[0]] = moved / run.milliseconds(found[1 + place], sync) * 1e3
                one, calls = found[3 + place], min(vectors.count, CALLS)
                milliseconds = run.milliseconds(lambda: [one() for _ in range(calls)], sync) * vectors.count / calls
                values["a BLAS call a vector"] = moved / milliseconds * 1e3
            yield row(f"{what}, {vectors.count:,} of {length:,}", values)
        vectors.free()
