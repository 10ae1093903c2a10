/* The plan of a pass over a sparse X on a GPU, and the time that it takes. */
#include <stdio.h>

#include "core/size.h"
#include "ops/layout.h"
#include "ops/mmchain_csr.h"

static int64_t chip_bytes(const struct ki_plan *plan, const struct ki_chain *chain) {
    const struct ki_properties *device = &chain->X->device->properties;
    const int64_t element = ki_type_bytes(chain->X->type);
    const int64_t fixed = (plan->K * element + (ki_chain_maps(chain) ? 8 : 0)) * plan->BS;
    const int64_t bytes =
        ki_min(device->local_max - fixed, device->is_gpu ? KI_CHIP_BYTES : KI_CHIP_BYTES_CPU);
    return ki_max(bytes, 0);
}

int64_t ki_csr_chip_columns(const struct ki_plan *plan, const struct ki_chain *chain) {
    return chip_bytes(plan, chain) / (plan->K * ki_type_bytes(chain->X->type));
}

int ki_csr_vector(const kiln_device *device, int64_t nnz, int64_t rows, int K) {
    return (int)ki_min(ki_layout_vector(device, nnz, rows) * K, device->properties.is_gpu ? 32 : 8);
}

int ki_csr_turns(const kiln_device *device, int K) {
    return K == 1 ? KI_TURNS : device->properties.is_gpu ? 8 : 1;
}

/* Large groups share what is on chip among many threads. A thread keeps a row's whole part in registers, if the row is not
 * much longer than the mean. w gets three quarters of the space, for an addition to memory costs about three times what a
 * load from there does (bench/results/h200-sparse-parts.json). */
struct ki_plan ki_csr_plan(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    struct ki_plan plan = {.file = "mmchain_csr",
                           .function = "mmchain_csr",
                           .variant = "CSR",
                           .K = ki_plan_columns(chain),
                           .W = 1,
                           .R = 1};
    const bool heavy = plan.K > 2 || ki_chain_maps(chain) || device->warp == 1;
    plan.BS = (int)ki_min(!device->is_gpu ? 64 : heavy ? 512 : 1024, device->group_max);
    plan.VS = ki_csr_vector(X->device, X->nnz, X->rows, plan.K);
    const int64_t together = ki_max(X->rows, 1) * (plan.VS / plan.K);
    plan.Q = (int)ki_min(ki_max(ki_ceil_div(X->nnz * 8, 7 * together), 1), ki_csr_turns(X->device, plan.K));
    const int64_t room = ki_csr_chip_columns(&plan, chain);
    const bool scatters = chain->kind != KI_CHAIN_PLAIN, gathers = chain->kind <= KI_CHAIN_PLAIN;
    if (scatters) plan.shared_w = (int)ki_min(X->cols, X->cols <= room || !gathers ? room : room / 4 * 3);
    plan.steps = ki_max(ki_ceil_div(X->rows, plan.BS / plan.VS), 1);
    return plan;
}

/* Seconds that a pass takes, by where sums gather and y is read: operations a second on an H200 (bench/results/h200-sparse.json
 * and, for single ones, h200-sparse-parts.json), scaled by the memory's bandwidth. What is too large for the cache goes through
 * tiles, or, on a deterministic device, through the transpose. Columns count as equally frequent, for nothing is known of
 * them here; popular ones make it faster. */
void ki_csr_predict(struct ki_candidate *candidate, const struct ki_chain *chain) {
    static const double chip = 230e9, cached_load = 180e9, cached_sum = 100e9, tile_load = 125e9,
                        tile_sum = 95e9, load = 52e9, H200 = 4.55e12, launches = 8e-6;
    enum { CACHED = 16 << 20 };
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int64_t element = ki_type_bytes(X->type);
    const double bandwidth = device->bandwidth > 0 ? 0.945 * device->bandwidth : 25e9 * device->compute_units;
    const double operations = (double)X->nnz * chain->k,
                 passes = (double)ki_ceil_div(chain->k, candidate->plan.K);
    const bool scatters = chain->kind != KI_CHAIN_PLAIN, gathers = chain->kind <= KI_CHAIN_PLAIN;
    const bool cached = X->cols * chain->k * element <= CACHED, exact = X->device->options.deterministic;
    const bool on_chip =
        X->cols <= (scatters ? candidate->plan.shared_w : ki_csr_chip_columns(&candidate->plan, chain));
    double seconds = 0;
    if (gathers && !on_chip)
        seconds += operations / (cached ? cached_load : exact || !scatters ? load : tile_load);
    if (scatters) seconds += operations / (on_chip ? chip : cached ? cached_sum : exact ? load : tile_sum);
    candidate->bytes =
        (int64_t)passes * (X->nnz * (4 + element) + X->rows * 8) + (X->rows + 2 * X->cols) * element;
    candidate->atomics = scatters && !on_chip ? X->nnz * chain->k : 0;
    const double stream = (double)candidate->bytes / bandwidth;
    candidate->seconds = launches + stream + seconds * H200 / bandwidth;
    candidate->occupancy =
        ki_min(candidate->plan.groups / ki_max(device->compute_units, 1) * candidate->plan.BS, 2048) / 2048.0;
    snprintf(candidate->limit, sizeof candidate->limit, "%s",
             stream > seconds * H200 / bandwidth ? "memory bandwidth"
             : on_chip                           ? "sums on chip"
             : cached                            ? "sums in the cache"
             : exact                             ? "sums through the transpose"
                                                 : "sums in tiles");
}
