/* How many ranks a GPU gathers in a second, the roof of PageRank's iterations: from arrays of 1 to 64 MB,
 * each rank as often as any other; and where a part of the gathers meets the ranks with most links, which lie
 * first and are kept in on-chip memory.
 * A link is 4 bytes that are read once. Prints JSON.
 *
 * nvcc -O3 -arch=sm_90 -cudart static -o gathers gathers.cu && ./gathers
 *
 * popular: the share of links whose source is among the 256 ranks a KB that are kept, whose share of a
 * graph's links h200-gathers.json has. */
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

enum { GROUP = 512, AHEAD = 8, REPEATS = 7 };

__device__ static uint32_t scatter(uint64_t i) {
    i = (i ^ (i >> 31)) * 0x7fb5d329728ea185ull;
    i = (i ^ (i >> 27)) * 0x81dadef4bc2dd44dull;
    return (uint32_t)((i ^ (i >> 33)) >> 8);
}

/* Links to everywhere, `popular` of 1,000 to the first `kept` ranks. */
__global__ void make(uint32_t *links, long count, uint32_t ranks, uint32_t kept, uint32_t popular) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += (long)gridDim.x * blockDim.x) {
        const bool near = kept && scatter(3 * i) % 1000 < popular;
        links[i] = near ? scatter(3 * i + 1) % kept : kept + scatter(3 * i + 2) % (ranks - kept);
    }
}

template <bool ON_CHIP>
__global__ void gather(float *sums, const uint4 *links, long quads, const float *ranks, uint32_t kept) {
    extern __shared__ float near[];
    if (ON_CHIP) {
        for (uint32_t i = threadIdx.x; i < kept; i += blockDim.x) near[i] = ranks[i];
        __syncthreads();
    }
    float sum = 0;
    const long threads = (long)gridDim.x * blockDim.x;
    for (long q = blockIdx.x * (long)blockDim.x + threadIdx.x; q < quads; q += AHEAD / 4 * threads) {
        float got[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD / 4; a++) {
            const long at = q + a * threads;
            const uint4 four = at < quads ? __ldcs(links + at) : make_uint4(0, 0, 0, 0);
            const uint32_t link[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int k = 0; k < 4; k++)
                got[4 * a + k] = ON_CHIP && link[k] < kept ? near[link[k]] : __ldg(ranks + link[k]);
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) sum += got[a];
    }
    sums[blockIdx.x * (long)blockDim.x + threadIdx.x] = sum;
}

static double best_seconds(bool on_chip, float *sums, const uint32_t *links, long count, const float *ranks, uint32_t kept, int units) {
    const size_t bytes = on_chip ? kept * sizeof(float) : 0;
    const int beside = bytes > 112 << 10 ? 1 : bytes > 56 << 10 ? 2 : 4;
    cudaEvent_t start, end;
    float best = 1e30f, ms;
    cudaEventCreate(&start), cudaEventCreate(&end);
    cudaFuncSetAttribute(gather<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    for (int i = 0; i < REPEATS; i++) {
        cudaEventRecord(start);
        if (on_chip)
            gather<true><<<units * beside, beside == 4 ? GROUP : 1024, bytes>>>(sums, (const uint4 *)links, count / 4, ranks, kept);
        else
            gather<false><<<units * 4, GROUP>>>(sums, (const uint4 *)links, count / 4, ranks, kept);
        cudaEventRecord(end), cudaEventSynchronize(end), cudaEventElapsedTime(&ms, start, end);
        best = ms < best ? ms : best;
    }
    return 1e-3 * best;
}

int main() {
    static const int megabytes[] = {1, 4, 16, 32, 64}, kilobytes[] = {48, 96, 192}, shares[] = {0, 220, 350, 440, 600, 700};
    const long count = 1l << 28;
    cudaDeviceProp device;
    uint32_t *links;
    float *ranks, *sums;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) return 1;
    cudaMalloc(&links, count * 4), cudaMalloc(&ranks, 64 << 20), cudaMalloc(&sums, (size_t)device.multiProcessorCount * 4096 * 4);
    cudaMemset(ranks, 0, 64 << 20);
    printf("{\"what\": \"gathers of floats by %ld links of 4 bytes\", \"device\": \"%s\", \"gathers\": [", count, device.name);
    const char *comma = "";
    for (int m : megabytes)
        for (int k : kilobytes)
            for (int share : shares) {
                const uint32_t kept = (uint32_t)k * 256, all = (uint32_t)m << 18;
                if (!share && k != kilobytes[0]) continue;
                make<<<4096, 256>>>(links, count, all, share ? kept : 0, (uint32_t)share);
                for (int on_chip = 0; on_chip <= (share > 0); on_chip++) {
                    const double seconds = best_seconds(on_chip, sums, links, count, ranks, kept, device.multiProcessorCount);
                    printf("%s\n {\"megabytes\": %d, \"kept_kb\": %d, \"popular\": %.2f, \"on_chip\": %s, \"per_second\": %.4g}", comma, m,
                           share ? k : 0, share / 1000.0, on_chip ? "true" : "false", (double)count / seconds);
                    comma = ",";
                }
            }
    const cudaError_t code = cudaDeviceSynchronize();
    printf("\n], \"error\": \"%s\"}\n", cudaGetErrorString(code));
    return code != cudaSuccess;
}
