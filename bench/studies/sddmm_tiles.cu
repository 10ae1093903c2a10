// What rows in on-chip memory would bring sampled products: kernels written for this study, beside one that gathers as
// src/ops/sampled/samples.cl does. Build: nvcc -O3 -std=c++17 -arch=sm_90 -o tiles sddmm_tiles.cu; run: ./tiles >h200-sddmm-tiles.json
//
//   gathered    rows of B come through the caches, the row of A stays in registers
//   asked for   the same, and only rows of popular columns, 160 KB of them, are kept by the first cache level
//   one on chip rows of popular columns lie in on-chip memory, 200 KB of a unit's, the others come through the second cache level
//   both        tiles of 128 rows and 128 columns, 32 numbers of each row at a time on chip, entries as two local numbers of a byte
//
// Column c is drawn with a weight of 1 / (c + 1), or, in the dense patterns, each cell by itself.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    exit(1);
}

enum { GATHERED, ASKED_FOR, ONE_ON_CHIP, TILE = 128, SLICE = 32, PITCH = SLICE + 4, BOTH_THREADS = 256 };

struct Work {
    const int *start, *col;   // by rows
    const int *first, *cell;  // by tiles: where each begins, and row | column << 8 of its entries
    const int *place;         // where these lie by rows
    const float *A, *B;
    float *P;
    int rows, cols, k, hot;   // columns below `hot` are popular
    long nnz;
    const int *row_of_vector; // the row of each vector's first entry
    int each;
};

__device__ __forceinline__ float4 past_first_level(const float *from) {
    float4 v;
    asm("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(from));
    return v;
}

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

// 16 threads a vector, which has two pieces of 128 numbers, four entries at a time.
template <int WAY, int THREADS> __global__ void __launch_bounds__(THREADS) gather(Work w) {
    extern __shared__ float4 chip[];
    const int lane = threadIdx.x % 16;
    const long vector = (long)blockIdx.x * (THREADS / 16) + threadIdx.x / 16, begin = std::min(vector * w.each, w.nnz);
    const int count = (int)std::min((long)w.each, w.nnz - begin);
    const float4 *A = (const float4 *)w.A, *B = (const float4 *)w.B;
    if (WAY == ONE_ON_CHIP) {
        for (int i = threadIdx.x; i < w.hot * 32; i += THREADS) chip[i] = B[i];
        __syncthreads();
    }
    int row = w.row_of_vector[vector], end = count > 0 ? w.start[row + 1] - (int)begin : 0;
    float4 a[2] = {A[row * 32L + lane], A[row * 32L + 16 + lane]};
    for (int step = 0; step < w.each; step += 4) {
        float4 b[4][2];
        float d[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int c = step + r < count ? w.col[begin + step + r] : 0;
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const long at = c * 32L + q * 16 + lane;
                if (WAY == GATHERED || (WAY == ASKED_FOR && c < w.hot))
                    b[r][q] = B[at];
                else if (WAY == ONE_ON_CHIP && c < w.hot)
                    b[r][q] = chip[at];
                else
                    b[r][q] = past_first_level((const float *)(B + at));
            }
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (step + r < count && step + r >= end) {
                while (step + r >= end) end = w.start[++row + 1] - (int)begin;
                a[0] = A[row * 32L + lane];
                a[1] = A[row * 32L + 16 + lane];
            }
            d[r] = dot(a[0], b[r][0], dot(a[1], b[r][1], 0));
#pragma unroll
            for (int far = 8; far > 0; far /= 2) d[r] += __shfl_xor_sync(0xffffffffu, d[r], far);
        }
        if (lane < 4 && step + lane < count) w.P[begin + step + lane] = lane == 0 ? d[0] : lane == 1 ? d[1] : lane == 2 ? d[2] : d[3];
    }
}

// A group a tile: both operands' slices on chip, a thread an entry.
__global__ void __launch_bounds__(BOTH_THREADS) both(Work w) {
    extern __shared__ float4 chip[];
    float *a = (float *)chip, *b = a + TILE * PITCH;
    const int across = (w.cols + TILE - 1) / TILE, row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
    const int from = w.first[blockIdx.x], to = w.first[blockIdx.x + 1];
    for (int first = from; first < to; first += 8 * BOTH_THREADS) {
        float sum[8] = {0};
        int cell[8];
        for (int e = 0; e < 8; e++) {
            const int at = first + e * BOTH_THREADS + threadIdx.x;
            cell[e] = at < to ? w.cell[at] : 0;
        }
        for (int k = 0; k < w.k; k += SLICE) {
            __syncthreads();
            for (int i = threadIdx.x; i < TILE * SLICE / 4; i += BOTH_THREADS) {
                const int r = i / (SLICE / 4), c = i % (SLICE / 4) * 4;
                if (row0 + r < w.rows) *(float4 *)(a + r * PITCH + c) = *(const float4 *)(w.A + (long)(row0 + r) * w.k + k + c);
                if (col0 + r < w.cols) *(float4 *)(b + r * PITCH + c) = *(const float4 *)(w.B + (long)(col0 + r) * w.k + k + c);
            }
            __syncthreads();
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (first + e * BOTH_THREADS < to) {
                    const float4 *x = (const float4 *)(a + (cell[e] & 255) * PITCH), *y = (const float4 *)(b + (cell[e] >> 8) * PITCH);
                    for (int c = 0; c < SLICE / 4; c++) sum[e] = dot(x[c], y[c], sum[e]);
                }
        }
        for (int e = 0; e < 8; e++) {
            const int at = first + e * BOTH_THREADS + threadIdx.x;
            if (at < to) w.P[w.place[at]] = sum[e];
        }
    }
}

struct Pattern {
    std::vector<int> start, col, first, cell, place;
};

static Pattern made(int rows, int cols, double mean, double density) {
    Pattern s;
    std::mt19937_64 random(1);
    std::poisson_distribution<int> length(mean);
    std::uniform_real_distribution<double> uniform(0, 1);
    s.start.push_back(0);
    for (int i = 0; i < rows; i++) {
        std::vector<int> row;
        if (density > 0)
            for (int c = 0; c < cols; c++)
                if (uniform(random) < density) row.push_back(c);
        for (int n = density > 0 ? 0 : length(random); n > 0; n--)
            row.push_back(std::min(cols - 1, (int)(exp(uniform(random) * log(cols + 1.0)) - 1)));
        std::sort(row.begin(), row.end());
        row.erase(std::unique(row.begin(), row.end()), row.end());
        s.col.insert(s.col.end(), row.begin(), row.end());
        s.start.push_back((int)s.col.size());
    }
    const int across = (cols + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
    s.first.assign(down * across + 1, 0);
    s.cell.resize(s.col.size());
    s.place.resize(s.col.size());
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < rows; i++)
            for (int e = s.start[i]; e < s.start[i + 1]; e++) {
                const int tile = i / TILE * across + s.col[e] / TILE;
                if (pass == 0) {
                    s.first[tile + 1]++;
                } else {
                    const int at = s.first[tile]++;
                    s.cell[at] = i % TILE | s.col[e] % TILE << 8;
                    s.place[at] = e;
                }
            }
        if (pass == 0)
            for (size_t t = 1; t < s.first.size(); t++) s.first[t] += s.first[t - 1];
        else
            for (size_t t = s.first.size() - 1; t > 0; t--) s.first[t] = s.first[t - 1];
    }
    s.first[0] = 0;
    return s;
}

template <class T> static T *upload(const std::vector<T> &from) {
    T *to;
    check(cudaMalloc(&to, sizeof(T) * (from.size() + 64)));
    check(cudaMemcpy(to, from.data(), sizeof(T) * from.size(), cudaMemcpyHostToDevice));
    return to;
}

template <class F> static double best_ms(F run) {
    cudaEvent_t begin, end;
    double best = 1e9;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    run();
    for (int turn = 0; turn < 5; turn++) {
        float ms;
        check(cudaEventRecord(begin));
        for (int i = 0; i < 8; i++) run();
        check(cudaEventRecord(end));
        check(cudaEventSynchronize(end));
        check(cudaEventElapsedTime(&ms, begin, end));
        best = std::min(best, ms / 8.0);
    }
    return best;
}

static std::vector<float> result(const Work &w) {
    std::vector<float> p(w.nnz);
    check(cudaMemcpy(p.data(), w.P, sizeof(float) * p.size(), cudaMemcpyDeviceToHost));
    return p;
}

template <int WAY, int THREADS> static double gather_ms(Work w, const Pattern &s, int units, long bytes) {
    auto kernel = gather<WAY, THREADS>;
    w.hot = (int)std::min({bytes / (w.k * 4L), (long)w.cols, w.nnz / (10 * units)});
    const int shared = WAY == ONE_ON_CHIP ? w.hot * w.k * 4 : 0, vectors = THREADS / 16;
    int resident;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, THREADS, shared));
    const long groups = std::min((long)resident * units, (w.nnz + 32 * vectors - 1) / (32 * vectors));
    w.each = (int)((w.nnz + groups * vectors - 1) / (groups * vectors) + 3) / 4 * 4;
    std::vector<int> rows;
    for (long v = 0; v < groups * vectors; v++)
        rows.push_back((int)(std::upper_bound(s.start.begin(), s.start.end(), (int)std::min(v * w.each, w.nnz - 1)) - s.start.begin()) - 1);
    int *table = upload(rows);
    w.row_of_vector = table;
    const double ms = best_ms([&] { kernel<<<(unsigned)groups, THREADS, shared>>>(w); });
    check(cudaGetLastError());
    check(cudaFree(table));
    return ms;
}

static void run(const char *name, int rows, int cols, double mean, double density, int units, bool last) {
    const Pattern s = made(rows, cols, mean, density);
    const int k = 128;
    std::vector<float> numbers((size_t)std::max(rows, cols) * k);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = (float)(i * 2654435761u % 1000) / 1000;
    Work w = {};
    w.start = upload(s.start), w.col = upload(s.col), w.first = upload(s.first), w.cell = upload(s.cell), w.place = upload(s.place);
    w.A = w.B = upload(numbers);
    w.rows = rows, w.cols = cols, w.k = k, w.nnz = (long)s.col.size();
    check(cudaMalloc(&w.P, sizeof(float) * s.col.size()));
    const double gathered = gather_ms<GATHERED, 128>(w, s, units, 0);
    const std::vector<float> want = result(w);
    double apart = 0, largest = *std::max_element(want.begin(), want.end());
    const auto compare = [&] {
        const std::vector<float> got = result(w);
        for (size_t i = 0; i < got.size(); i++) apart = std::max(apart, fabs((double)got[i] - want[i]) / largest);
        check(cudaMemset(w.P, 0, sizeof(float) * got.size()));
    };
    const double asked = gather_ms<ASKED_FOR, 128>(w, s, units, 160 << 10);
    compare();
    const double on_chip = std::min(gather_ms<ONE_ON_CHIP, 512>(w, s, units, 100 << 10), gather_ms<ONE_ON_CHIP, 1024>(w, s, units, 200 << 10));
    compare();
    const int bytes = 2 * TILE * PITCH * 4;
    check(cudaFuncSetAttribute(both, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    const double both_ms = best_ms([&] { both<<<(unsigned)s.first.size() - 1, BOTH_THREADS, bytes>>>(w); });
    check(cudaGetLastError());
    compare();
    printf("  {\"case\": \"%s\", \"k\": %d, \"rows\": %d, \"columns\": %d, \"nnz\": %ld, \"density\": %.4f, \"gathered_ms\": %.4f,\n"
           "   \"asked_for_ms\": %.4f, \"one_on_chip_ms\": %.4f, \"both_ms\": %.4f, \"difference\": %.2g}%s\n",
           name, k, rows, cols, w.nnz, (double)w.nnz / rows / cols, gathered, asked, on_chip, both_ms, apart, last ? "" : ",");
    for (const void *p : {(const void *)w.start, (const void *)w.col, (const void *)w.first, (const void *)w.cell, (const void *)w.place, (const void *)w.A, (const void *)w.P})
        check(cudaFree((void *)p));
}

int main() {
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    const int units = device.multiProcessorCount;
    printf("{\"what\": \"sampled products with rows in on-chip memory: bench/studies/sddmm_tiles.cu says which ways\",\n"
           " \"device\": \"%s\",\n \"rows\": [\n", device.name);
    run("kos", 3430, 6906, 353160.0 / 3430, 0, units, false);
    run("nips", 1500, 12419, 746316.0 / 1500, 0, units, false);
    run("email-enron", 36692, 36692, 367662.0 / 36692, 0, units, false);
    run("enron", 39861, 28102, 3710420.0 / 39861, 0, units, false);
    run("2 % of all cells", 8192, 8192, 0, 0.02, units, false);
    run("5 % of all cells", 8192, 8192, 0, 0.05, units, false);
    run("10 % of all cells", 8192, 8192, 0, 0.1, units, false);
    run("20 % of all cells", 8192, 8192, 0, 0.2, units, true);
    printf(" ]}\n");
}
