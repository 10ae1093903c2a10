// RoDe's sampled product (Pang et al., PPoPP 2024; github.com/CRAFT-THU/RoDe) behind a C interface, so that gpu_sddmm.py times it on the
// same arrays. Only that repository's kernels and its division of rows are used; bench/peers/rode.sh builds it from a clone.
#include <cuda_runtime.h>
#include <vector>

#include "RoDe_SDDMM/RoDeSddmm.cu"

// Rows cut into segments of whole blocks of 32 entries and a residue each, as SparseMatrix::RowDivide2Segment does for vectors of 4.
struct rode {
    int segments, residues;
    int *rows_of_segments, *segment_starts, *rows_of_residues;
    cudaStream_t streams[2];
};

static int *upload(const std::vector<int> &from) {
    int *to = nullptr;
    if (cudaMalloc(&to, sizeof(int) * (from.size() + 1)) != cudaSuccess) return nullptr;
    cudaMemcpy(to, from.data(), sizeof(int) * from.size(), cudaMemcpyHostToDevice);
    return to;
}

extern "C" rode *rode_new(int rows, const int *starts, int segment) {
    const int vector = 4, block = 32;
    std::vector<int> rows_of_segments, segment_starts, rows_of_residues;
    for (int row = 0; row < rows; row++) {
        int from = starts[row];
        const int skew = from % vector;
        int left = starts[row + 1] - from + skew;
        if (left > segment) {
            rows_of_segments.push_back(row);
            segment_starts.push_back(from);
            from += segment - skew;
            left -= segment;
        }
        for (; left > segment; left -= segment, from += segment) {
            rows_of_segments.push_back(row);
            segment_starts.push_back(from);
        }
        if (left >= block) {
            rows_of_segments.push_back(row);
            segment_starts.push_back(from);
        }
        if (left > 0 && left % block) rows_of_residues.push_back(row);
    }
    segment_starts.push_back(starts[rows]);
    rode *made = new rode{(int)rows_of_segments.size(), (int)rows_of_residues.size(), upload(rows_of_segments),
                          upload(segment_starts), upload(rows_of_residues), {}};
    for (auto &stream : made->streams) cudaStreamCreate(&stream);
    return made;
}

// P = S .* (A B^T), all arrays on the device. Returns a CUDA error.
extern "C" int rode_sddmm(const rode *r, int k, int columns, const int *starts, const int *cols, const float *values,
                          const float *A, const float *B, float *P) {
    const auto call = [&](auto kernel) {
        kernel(r->segments, r->residues, columns, k, r->rows_of_segments, r->rows_of_residues, r->segment_starts,
               starts, cols, values, A, B, P, r->streams[0], r->streams[1]);
    };
    if (k == 32)
        call(RoDeSDDMM_n32);
    else if (k == 128)
        call(RoDeSDDMM_n128);
    else if (k == 512) // the same template, which its authors instantiate for 128
        call(RoDeSDDMMKernel_n128<float4, 4, 32, 32, 8, 512, 32>);
    else
        return -1;
    const cudaError_t error = cudaGetLastError();
    const bool nothing = r->segments == 0 || r->residues == 0; // a launch of no blocks is an error, which its own benchmark ignores
    return nothing ? 0 : (int)error;
}

extern "C" void rode_free(rode *r) {
    cudaFree(r->rows_of_segments);
    cudaFree(r->segment_starts);
    cudaFree(r->rows_of_residues);
    for (auto &stream : r->streams) cudaStreamDestroy(stream);
    delete r;
}
