"""Gunarathne et al., Iterative Statistical Kernels on Contemporary GPUs: multi-dimensional scaling (SMACOF), PageRank, K-Means."""
import numpy as np

import gpu_overheads
import pagerank
from frame import free, kiln, row, step

CARDS = "OpenCL on Tesla C1060, C2070 and M2050; speed-ups over one core of their processors"
ARGMIN, GIVEN = 8, 4  # kiln_batch_kind; kiln_init
WEB = {"Stanford-Web": (281_903, 2_312_497), "Google-Web": (875_713, 5_105_039), "BerkStan-Web": (685_230, 7_600_595)}


# The paper's kernels as its Figures 3 and 12 print them, with its switches; k of Figure 3, which it does not define, is -1, and a point's
# pair with itself is left out.
PRINTED = r"""
extern "C" __global__ void mds(const double *data, const double *x, double *result, int n)
{
    extern __shared__ double own[]; // the thread's point, where SHARED says so
    const int gid = blockIdx.x * blockDim.x + threadIdx.x;
    if (gid >= n) return;
    for (int c = 0; SHARED && c < WIDTH; c++) own[threadIdx.x * WIDTH + c] = x[gid * WIDTH + c];
    double row_sum = 0, sum[WIDTH] = {0};
    for (int j = 0; j < n; j++) {
        double square = 0;
        for (int c = 0; c < WIDTH; c++) {
            const double d = (SHARED ? own[threadIdx.x * WIDTH + c] : x[gid * WIDTH + c]) - x[j * WIDTH + c];
            square += d * d;
        }
        const double b = j == gid ? 0 : data[COLUMNS ? (long)j * n + gid : (long)gid * n + j] / sqrt(square);
        row_sum += b;
        for (int c = 0; c < WIDTH; c++) sum[c] += b * x[j * WIDTH + c];
    }
    for (int c = 0; c < WIDTH; c++) result[gid * WIDTH + c] = row_sum * x[gid * WIDTH + c] - sum[c];
}
extern "C" __global__ void kmeans(const float *matrix, const float *centroids, float *assignment, int n, int k)
{
    extern __shared__ float shared[];
    const int gid = blockIdx.x * blockDim.x + threadIdx.x, lid = threadIdx.x, lz = blockDim.x;
    float *centres = shared, *points = shared + (CENTRES ? k * WIDTH : 0), least = 0;
    for (int i = lid; CENTRES && i < k * WIDTH; i += lz) centres[i] = centroids[i];
    for (int c = 0; SHARED && gid < n && c < WIDTH; c++)
        points[SPREAD ? lid + lz * c : lid * WIDTH + c] = matrix[COLUMNS ? (long)c * n + gid : (long)gid * WIDTH + c];
    __syncthreads();
    if (gid >= n) return;
    for (int j = 0; j < k; j++) {
        float distance = 0;
        for (int c = 0; c < WIDTH; c++) {
            const float point = SHARED ? points[SPREAD ? lid + lz * c : lid * WIDTH + c] : matrix[COLUMNS ? (long)c * n + gid : (long)gid * WIDTH + c];
            const float d = (CENTRES ? centres[j * WIDTH + c] : centroids[j * WIDTH + c]) - point;
            distance += d * d;
        }
        if (j == 0 || distance < least) {
            least = distance;
            assignment[gid] = (float)j;
        }
    }
}
"""
SWITCHES = ("SHARED", "CENTRES", "COLUMNS", "SPREAD")
MDS_STEPS = {"printed: naive": (), "printed: X(k) in shared memory": ("SHARED",),
             "printed: and column-major": ("SHARED", "COLUMNS")}
KMEANS_STEPS = {"printed: A naive": (), "printed: B points in shared memory": ("SHARED",),
                "printed: C and centroids": ("SHARED", "CENTRES"),
                "printed: D and column-major": ("SHARED", "CENTRES", "COLUMNS"),
                "printed: D and shared points so": ("SHARED", "CENTRES", "COLUMNS", "SPREAD")}
THREADS = 128


def printed(run, name, steps, width, arguments, result, shared):
    """Milliseconds of the paper's kernel with each of its optimisations, and whether the results are `result`; on an NVIDIA GPU with
    CuPy. arguments(switches): those of the kernel; shared: bytes by switches."""
    if run.kind != "cuda" or run.lacks("cupy"):
        run.note("the paper's kernels with each switch are measured on NVIDIA GPUs, through CuPy")
        return {}
    import cupy
    found = {}
    for series, switches in steps.items():
        defines = tuple(f"-D{switch}={int(switch in switches)}" for switch in SWITCHES) + (f"-DWIDTH={width}",)
        kernel = cupy.RawModule(code=PRINTED, options=defines).get_function(name)
        operands, to = arguments(cupy, switches)
        blocks = (-(-len(result) // THREADS),)

        def call(kernel=kernel, operands=operands, switches=switches, blocks=blocks):
            kernel(blocks, (THREADS,), operands, shared_mem=shared(switches))

        call()
        got, wrong = to.get(), 0.0
        if name == "kmeans":  # two centres as near as rounding
            wrong = float((got != result[:, 0]).mean())
        else:
            run.right(series, got, result)
        if wrong > 1e-3:
            raise RuntimeError(f"{series}: {wrong:.2%} of the labels differ")
        found[series] = run.milliseconds(call, cupy.cuda.Device().synchronize)
    return found


# ---------------------------------------------------------------------------------------- multi-dimensional scaling

class Layout:
    """Operands of a step of SMACOF for n random points: their distances, a layout, the next one."""

    def __init__(self, device, n, p=3, dtype="float64"):
        self.X, self.Y = (device.dense(n, p, dtype).fill_random(1, stream) for stream in (0, 1))
        self.D, self.R, self.sums = device.dense(n, n, dtype), device.dense(n, p, dtype), device.dense(1, 4, "float64")
        kiln.call("distances", self.D, self.X, self.X)
        self.call = kiln.struct("guttman", R=self.R, sums=self.sums, Y=self.Y, D=self.D)
        self.device, self.dtype, self.host, self.more = device, dtype, None, []

    def step(self):
        kiln.call("guttman_step", self.call)

    def moved(self):
        """With the invariant data copied from the host anew, as without a cache on the device."""
        self.copy()
        self.step()

    def copy(self):
        if self.host is None:
            self.host = self.D.numpy()
        kiln.call("matrix_set", self.D, self.host)

    def temporaries(self):
        """R by single operations: the quotients delta / d as a matrix, their sums, and two products."""
        if not self.more:
            (n, p), dense = self.Y.shape, self.device.dense
            self.more = [dense(n, n, self.dtype), dense(n, 1, self.dtype, np.ones((n, 1))), dense(n, 1, self.dtype), dense(n, p, self.dtype)]
        apart, ones, row_sums, scaled = self.more
        kiln.call("distances", apart, self.Y, self.Y)
        kiln.call("map", apart, 4, apart)
        kiln.call("times", apart, apart, self.D)
        kiln.multiply(row_sums, 1.0, apart, ones)
        kiln.call("times", scaled, self.Y, row_sums)
        kiln.multiply(self.R, -1.0, apart, self.Y, 1.0, scaled)

    def printed(self, run, result):
        n, p = self.Y.shape

        def arguments(cupy, _):
            to = cupy.empty((n, p))
            return (cupy.asarray(self.D.numpy()), cupy.asarray(self.Y.numpy()), to, np.int32(n)), to

        return printed(run, "mds", MDS_STEPS, p, arguments, result, lambda switches: 8 * THREADS * p * ("SHARED" in switches))

    def moved_temporaries(self):
        self.copy()
        self.temporaries()

    def free(self):
        free(self.X, self.Y, self.D, self.R, self.sums, *self.more)


def points_of(run):
    return run.size((128, 384), (2_048, 4_096, 8_192, 16_384))


@step("iterative.fig4", "MDS with its distances kept on the device, and without", "ms", CARDS, {},
      "a step of kiln_guttman_step, and the same with the n x n distances copied from the host before each")
def fig4(run):
    for n in points_of(run):
        layout = Layout(run.device, n)
        yield row(f"{n:,} points", {"Kiln": run.milliseconds(layout.step), "without caching": run.milliseconds(layout.moved)})
        layout.free()


@step("iterative.fig5", "MDS with each optimisation, and with its number of iterations", "ms", CARDS, {},
      "steps without caching, without the restructured step (quotients as an n x n matrix, by single operations), and as it runs; on an "
      "NVIDIA GPU the paper's kernel, too, with each of its optimisations; runs of kiln_mds of several lengths")
def fig5(run):
    run.note("Kiln's step reads the distances right of the diagonal only, in tiles that neighbouring threads read side by side; its layout "
             "has no switch, the paper's kernel has")
    for n in points_of(run):
        layout = Layout(run.device, n)
        layout.step()
        fused = layout.R.numpy()
        layout.temporaries()
        difference = run.right(f"MDS of {n} points", layout.R.numpy(), fused)
        yield row(f"(a) {n:,} points", {"Kiln": run.milliseconds(layout.step), "without reuse": run.milliseconds(layout.temporaries),
                                        "without reuse and caching": run.milliseconds(layout.moved_temporaries),
                                        **layout.printed(run, fused)}, difference=difference)
        layout.free()
    n = points_of(run)[-1]
    X = run.device.dense(n, 8, "float64").fill_random(1, 0)
    for iterations in run.size((2, 4), (5, 10, 20, 40)):
        Y = run.device.dense(n, 2, "float64")
        whole = run.milliseconds(lambda: kiln.fit("mds", Y, X, tolerance=1e-300, max_iterations=iterations))
        yield row(f"(b) {n:,} points, {iterations} iterations", {"whole run": whole})
        yield row(f"(c) {n:,} points, one of {iterations}", {"an iteration": whole / iterations})
        Y.free()
    X.free()


def overheads(run, verb, sizes, iterations=10):
    """T and T' of the paper's model: a run, and one with twice the computation. c is what solving takes longer then, by the run's own
    clock, as starting and ending a GPU's driver differs by more from process to process; the rest of T is overhead. Beside T and T'
    what kiln explain predicts."""
    device, options = run.asked, gpu_overheads.OPTIONS[verb]
    path = gpu_overheads.write(verb, sizes[0], run.folder)
    for _ in range(run.size(1, 2)):  # measures the machine, and then a process on the GPU that it has seen
        gpu_overheads.kiln(run.build, "explain", verb, path, *options)
    for size in sizes:
        path, wanted = gpu_overheads.write(verb, size, run.folder), []
        for count in (iterations, 2 * iterations):
            measured = gpu_overheads.measure(run.build, verb, path, device, count, run.size(1, 2))
            told, _ = gpu_overheads.kiln(run.build, "explain", verb, path, *options, "--max-iterations", str(count))
            predicted = [e["seconds"] for e in told["estimates"] if e["considered"] and e["device"].split(":")[0] == run.kind]
            wanted.append((measured["seconds"], measured["parts"]["solve"], predicted[0] if predicted else None))
        (once, solved, once_told), (twice, solved_twice, twice_told) = wanted
        compute = max(solved_twice - solved, 0)
        values = {"T": 1e3 * once, "T'": 1e3 * twice, "compute": 1e3 * compute, "overhead": 1e3 * (once - compute)}
        if once_told is None:
            run.note("kiln explain leaves OpenCL on a processor out: there is no prediction")
        else:
            values.update({"T predicted": 1e3 * once_told, "T' predicted": 1e3 * twice_told})
        yield row(f"{verb}, {size:,} {'vertices' if verb == 'pagerank' else 'points'}, {iterations} iterations", values)


@step("iterative.fig6", "overheads of MDS: T with the computation once, T' with it twice", "ms", CARDS, {},
      "kiln mds from a process's start to its end, with 10 and 20 iterations on the same data, and what kiln explain predicts")
def fig6(run):
    return overheads(run, "mds", run.size((250,), (1_000, 12_000)))


def environments(run):
    """The run's device, the processor, and one core of it."""
    names = [run.asked] + ([] if run.kind == "cpu" else ["cpu"])
    if run.kind == "cuda":
        names[1:1] = [d["name"] for d in kiln.devices() if d["usable"] and d["is_gpu"] and d["name"].startswith("opencl")][:1]
    made = [(name, kiln.Device(name)) for name in names]
    return made + [("one core", kiln.Device("cpu", threads=1))]


def rates(run, label, operations, make):
    """Gflop/s in both types on each device; make(device, dtype): a call, and what frees its operands."""
    for name, device in environments(run):
        values = {}
        for kind in ("float32", "float64"):
            call, done = make(device, kind)
            values["single" if kind == "float32" else "double"] = 1e-6 * operations / run.milliseconds(call, device.synchronize)
            done()
        yield row(f"{label}, {name}", values)


@step("iterative.fig7", "MDS in single and double precision on each device", "Gflop/s",
      "Tesla C1060, C2070 and M2050; double is a little more than a third of single",
      {"double of single, C2070": 1 / 3}, "a step of SMACOF, with the paper's count of operations, n (8 p n + 7 n + 3 p + 1)")
def fig7(run):
    n, p = run.size(256, 8_192), 3

    def make(device, kind):
        layout = Layout(device, n, p, kind)
        return layout.step, layout.free

    return rates(run, f"{n:,} points", n * (8 * p * n + 7 * n + 3 * p + 1), make)


# ------------------------------------------------------------------------------------------------------- PageRank

def web(run, name):
    """A made graph with the data set's pages and links, popular pages as in Zipf's law."""
    scale = run.size(0.005, 1)
    pages, links = (int(number * scale) for number in WEB[name])
    A = run.sparse(pages, pages, links, "f32", True)
    A.data[:] = 1
    return A


def iteration(run, device, A, layout, real=np.float32):
    matrix = device.csr(A.astype(real))
    ranks = pagerank.Ranks(device, matrix, real, pagerank.LAYOUTS[layout])
    milliseconds = run.milliseconds(ranks.steps, device.synchronize) / pagerank.STEPS
    found = ranks.P.numpy()
    ranks.free()
    matrix.free()
    return milliseconds, found


def library_iteration(run, A):
    if run.kind != "cuda":
        peer = pagerank.Scipy(A, np.float32)
        return "SciPy", run.milliseconds(peer.step, lambda: None)
    if run.lacks("cupy"):
        return None, None
    import gpu_pagerank
    peer = gpu_pagerank.Cupy(A.indptr.astype(np.int64), A.indices)
    return "cuSPARSE (CuPy)", run.milliseconds(peer.steps, peer.cp.cuda.Device().synchronize) / pagerank.STEPS


def other_than_cpu(run):
    """The device that shares with the processor: the run's, or OpenCL's first. None: there is none."""
    if run.kind != "cpu":
        return run.device.name
    return next((told["name"] for told in kiln.devices() if told["name"].startswith("opencl") and told["usable"]), None)


def shared_iterations(run, A):
    """Work sharing: the pages with most links to them on the processor, those with few on the other device, which choose their layouts.
    Yields the name of each partition, its time, and the ranks of A's pages."""
    other = other_than_cpu(run)
    if not other:
        run.note("no other device shares the pages with the processor here")
        return
    order = np.argsort(np.bincount(A.indices, minlength=A.shape[1]), kind="stable")  # a list's processor has the last pages
    sorted_pages = A[order][:, order].tocsr()
    shares = [f"cpu@1,{other}@3"] if run.small else [f"cpu,{other}", *(f"cpu@1,{other}@{share}" for share in (9, 3, 1))]
    for name in shares:
        milliseconds, ranks = iteration(run, kiln.Device(name), sorted_pages, "chosen")
        back = np.empty_like(ranks)
        back[order] = ranks
        yield name, milliseconds, back


@step("iterative.fig10", "PageRank of Stanford-Web by each layout of the links", "ms",
      CARDS + "; long rows on the CPU, short ones as ELLPACK on the GPU", {},
      "an iteration in each layout of kiln_ranks_step (CSR, hybrid ELLPACK and CSR, balanced CSR) and in the one that is chosen; and by "
      "the processor and another device together, which has the pages with fewest links to them: of links and pages a share by measured speeds, 9 of "
      "10, 3 of 4, and half (small: 3 of 4)")
def fig10(run):
    A = web(run, "Stanford-Web")
    values, first = {}, None
    for layout in pagerank.LAYOUTS:
        values["Kiln" if layout == "chosen" else layout], ranks = iteration(run, run.device, A, layout)
        first = ranks if first is None else first
        run.right(f"PageRank, {layout}", ranks, first)
    for name, milliseconds, ranks in shared_iterations(run, A):
        values[name] = milliseconds
        run.right(f"PageRank, {name}", ranks, first)
    values["one core, CSR"] = iteration(run, kiln.Device("cpu", threads=1), A, "csr")[0]
    peer, milliseconds = library_iteration(run, A)
    if peer:
        values[peer] = milliseconds
    yield row(f"{A.shape[0]:,} pages, {A.nnz:,} links", values)


@step("iterative.fig11", "PageRank of three webs, balanced CSR", "ms", CARDS, {},
      "an iteration in the balanced layout and in the chosen one, and the balanced one on a core of the processor")
def fig11(run):
    for name in WEB:
        A = web(run, name)
        yield row(f"{name}: {A.nnz / A.shape[0]:.1f} links a page", {
            "Kiln": iteration(run, run.device, A, "chosen")[0], "balanced": iteration(run, run.device, A, "balanced")[0],
            "one core, balanced": iteration(run, kiln.Device("cpu", threads=1), A, "balanced")[0]})


# -------------------------------------------------------------------------------------------------------- K-Means

class Points:
    """Operands of an assignment of n points of p dimensions to k centres."""

    def __init__(self, device, n, p, k, dtype="float32"):
        rng = np.random.default_rng(n + p + k)
        self.host = rng.standard_normal((n, p)).astype(dtype)
        self.X, self.C = device.dense(n, p, dtype, self.host), device.dense(k, p, dtype, self.host[:k])
        self.labels, self.sums = device.dense(n, 1, dtype), device.dense(k, p, dtype)
        self.totals = np.empty((k, 2))
        self.only, self.all = (kiln.struct("assignment", labels=self.labels),
                               kiln.struct("assignment", sums=self.sums, totals=self.totals))
        self.device, self.shape, self.apart = device, (n, p, k), None

    def assign(self):
        kiln.call("assign", self.only, self.X, self.C, None)

    def iterate(self):
        kiln.call("assign", self.all, self.X, self.C, None)

    def iterate_moved(self):
        kiln.call("matrix_set", self.X, self.host)
        self.iterate()

    def apart_assign(self):
        """All distances as a matrix, and the place of the least in each row."""
        self.apart = self.apart or self.device.dense(self.shape[0], self.shape[2], self.X.dtype)
        kiln.call("distances", self.apart, self.X, self.C)
        kiln.call("batch_reduce", self.labels, ARGMIN, self.apart, None)

    def printed(self, run, labels):
        n, p, k = self.shape

        def arguments(cupy, switches):
            X = self.host.T if "COLUMNS" in switches else self.host
            to = cupy.empty(n, np.float32)
            return (cupy.asarray(np.ascontiguousarray(X)), cupy.asarray(self.host[:k]), to, np.int32(n), np.int32(k)), to

        def shared(switches):
            return 4 * p * (k * ("CENTRES" in switches) + THREADS * ("SHARED" in switches))

        return printed(run, "kmeans", KMEANS_STEPS, p, arguments, labels, shared)

    def apart_moved(self):
        kiln.call("matrix_set", self.X, self.host)
        self.apart_assign()

    def fit(self, iterations):
        C = self.device.dense(self.shape[2], self.shape[1], self.X.dtype, self.host[:self.shape[2]])
        kiln.fit("kmeans", C, self.X, init=GIVEN, tolerance=1e-300, max_iterations=iterations)
        C.free()

    def free(self):
        free(self.X, self.C, self.labels, self.sums, *([self.apart] if self.apart else []))


def library_labels(run, points):
    """An assignment by a library's product: |c|^2 / 2 - x.c, and its least."""
    n, p, k = points.shape
    if run.kind != "cuda":
        C = points.host[:k]
        half = (C * C).sum(1) / 2
        return "NumPy", run.milliseconds(lambda: (half - points.host @ C.T).argmin(1), lambda: None)
    if run.lacks("torch"):
        return None, None
    import torch
    X, C = torch.from_numpy(points.host).cuda(), torch.from_numpy(points.host[:k]).cuda()
    half = (C * C).sum(1) / 2
    return "PyTorch", run.milliseconds(lambda: torch.addmm(half, X, C.T, alpha=-1).argmin(1), torch.cuda.synchronize)


def counts(run):
    return run.size((1_000, 4_000), (8_192, 100_000, 1_000_000, 4_000_000))


@step("iterative.fig13", "K-Means with each optimisation, 2 dimensions, 300 centroids", "ms", CARDS,
      {"local memory over naive, C1060": 1.75, "centroids there, too": 2.6, "column-major there": 2.4},
      "assignments without reuse (all distances as a matrix, then the least of each row), without caching too, and as it runs; on an NVIDIA "
      "GPU the paper's kernel, too, with each of its optimisations")
def fig13(run):
    run.note("Kiln keeps points in registers and centroids in on-chip memory in one kernel, whose layout has no switch; the paper's has")
    for n in counts(run):
        points = Points(run.device, n, 2, 300)
        points.assign()
        labels = points.labels.numpy()
        points.apart_assign()
        wrong = float((labels != points.labels.numpy()).mean())
        if wrong > 1e-3:  # two centres as near as rounding
            raise RuntimeError(f"K-Means of {n} points: {wrong:.2%} of the labels differ")
        values = {"Kiln": run.milliseconds(points.assign), "without reuse": run.milliseconds(points.apart_assign),
                  "without reuse and caching": run.milliseconds(points.apart_moved), **points.printed(run, labels)}
        peer, milliseconds = library_labels(run, points)
        if peer:
            values[peer] = milliseconds
        yield row(f"{n:,} points", values, labels_apart=wrong)
        points.free()


@step("iterative.fig14", "K-Means with its points kept on the device, and without", "ms", CARDS, {},
      "an iteration of kiln_assign with its sums, and the same with the points copied from the host before each")
def fig14(run):
    for n in counts(run):
        points = Points(run.device, n, 4, run.size(30, 300))
        yield row(f"{n:,} points", {"Kiln": run.milliseconds(points.iterate), "without caching": run.milliseconds(points.iterate_moved)})
        points.free()


def operations(n, p, k):
    """The paper's count of an iteration."""
    return n * (3 * p * k + k)


@step("iterative.fig15", "K-Means with its number of centroids, dimensions and iterations", "Gflop/s", CARDS, {"peak": 100},
      "assignments with their sums, with the paper's count of operations, n k (3 p + 1); runs of kiln_kmeans of several lengths")
def fig15(run):
    n = counts(run)[-1]
    shapes = [("(a)", 4, k) for k in run.size((50, 300), (50, 100, 200, 300, 500))] + [("(b)", p, k) for p in (2, 4) for k in (100, 300)]
    for panel, p, k in shapes:
        points = Points(run.device, n, p, k)
        yield row(f"{panel} {p}D, {k} centroids, {n:,} points", {"Kiln": 1e-6 * operations(n, p, k) / run.milliseconds(points.iterate)})
        points.free()
    points = Points(run.device, n, 2, 300)
    for iterations in run.size((2, 4), (5, 10, 20, 40)):
        whole = run.milliseconds(lambda: points.fit(iterations))
        yield row(f"(c, d) {iterations} iterations, {n:,} points", {"Kiln": 1e-6 * iterations * operations(n, 2, 300) / whole}, ms=whole)
    points.free()


@step("iterative.fig16", "overheads of K-Means, and of PageRank: T with the computation once, T' with it twice", "ms", CARDS, {},
      "kiln kmeans and kiln pagerank from a process's start to its end, with 10 and 20 iterations, and what kiln explain predicts")
def fig16(run):
    for verb in ("kmeans", "pagerank"):
        yield from overheads(run, verb, run.size((1_000,), gpu_overheads.SIZES[verb][::3]))


@step("iterative.fig17", "K-Means in single and double precision on each device", "Gflop/s",
      "Tesla C1060, C2070 and M2050; single and double within 10 %", {"peak": 100},
      "an assignment with its sums, 4 dimensions, 300 centroids, with the paper's count of operations")
def fig17(run):
    n, p, k = run.size(2_000, 1_000_000), 4, 300

    def make(device, kind):
        points = Points(device, n, p, k, kind)
        return points.iterate, points.free

    return rates(run, f"{n:,} points", operations(n, p, k), make)
