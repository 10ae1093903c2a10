/* The plan of a pass over a sparse X on a GPU, and the time that it takes. */
#include <math.h>
#include <stdio.h>

#include "core/limits.h"
#include "core/size.h"
#include "pass/csr/csr.h"

enum { SUMS_TOGETHER = 4 }; /* of f32 (dialect/cuda.h) */

/* Rows of y and w, of K elements, that so many bytes of local memory hold beside what a group needs
 * otherwise. */
static int64_t room_of(const struct ki_plan *plan, const struct ki_chain *chain, int64_t bytes) {
    const int64_t element = ki_type_bytes(chain->X->type);
    const int64_t fixed = (plan->K * element + (ki_chain_maps(chain) ? 8 : 0)) * plan->BS;
    return ki_max(ki_min(chain->X->device->properties.local_max - fixed, bytes), 0) / (plan->K * element);
}

/* Returns whether all of w, or of y, would be on chip. */
static bool fits(const struct ki_plan *plan, const struct ki_chain *chain) {
    const bool gpu = chain->X->device->properties.is_gpu;
    return chain->X->cols <= room_of(plan, chain, gpu ? ki_limits.chip_bytes : ki_limits.chip_bytes_cpu);
}

/* Sums that the memory adds four at a time, or eight columns of y side by side, are slower on chip, but for
 * sums that many entries go to (bench/studies/h200-sparse-variants.json). One column gains by each that
 * gathers here. */
int64_t ki_csr_chip_columns(const struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_device *device = chain->X->device;
    const bool sums = chain->kind != KI_CHAIN_PLAIN && !device->options.deterministic;
    const int64_t more = ki_limits.chip_bytes / 8 * 11;
    int64_t bytes = ki_limits.chip_bytes;
    if (!device->properties.is_gpu) return room_of(plan, chain, ki_limits.chip_bytes_cpu);
    if (sums && plan->W == SUMS_TOGETHER)
        bytes = ki_limits.chip_bytes / 16;
    else if (sums && plan->K == 8 && !fits(plan, chain))
        bytes = ki_limits.chip_bytes / 8;
    else if (plan->K == 1 && chain->X->cols > room_of(plan, chain, more))
        bytes = more;
    return room_of(plan, chain, bytes);
}

/* Large groups share what is on chip among many threads. Where all of w and y fits twice, two groups add to
 * fewer sums each, and where each thread has many short rows, in which popular columns come up together,
 * smaller ones still; but where a thread has few entries, what each group costs by itself, y from memory and
 * sums to there, takes most of the time. */
static int largest_group(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int K = ki_plan_columns(chain);
    const bool heavy = chain->map != KI_ROW_SCALE || device->warp == 1; /* takes registers */
    const bool few = X->nnz < 8 * 2048 * (int64_t)device->compute_units;
    const bool twice = !few && chain->kind != KI_CHAIN_PLAIN && K <= 2 &&
                       2 * X->cols * K * ki_type_bytes(X->type) <= ki_limits.chip_bytes / 2;
    const bool many = K == 1 && ki_rows_vector(X->device, X->nnz, X->rows) <= 2 &&
                      X->rows / 16 >= (int64_t)device->compute_units * 1024;
    return (int)ki_min(!device->is_gpu  ? 64
                       : twice && many  ? 256
                       : heavy || twice ? 512
                                        : 1024,
                       device->group_max);
}

/* Columns of y that a thread takes, of eight: as many as the memory adds in one operation; else two where all
 * sums are on chip, for what a thread does for an entry beside them, but sums in memory want to go there in
 * one piece. */
static int columns_a_thread(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    struct ki_plan plan = {.K = ki_plan_columns(chain), .BS = largest_group(chain), .W = 1};
    const bool together = X->type == KILN_F32 && X->device->properties.architecture >= 90;
    if (plan.K < 8) return 1;
    const bool all = fits(&plan, chain);
    if (together && chain->k % SUMS_TOGETHER == 0 && !(all && chain->kind == KI_CHAIN_PLAIN))
        return SUMS_TOGETHER;
    return all ? 2 : 1;
}

int ki_csr_vector(const kiln_device *device, int64_t nnz, int64_t rows, const struct ki_rows *known,
                  int lanes) {
    const int vector = known && known->vector ? known->vector : ki_rows_vector(device, nnz, rows);
    return (int)ki_min(vector * lanes, device->properties.is_gpu ? 32 : 8);
}

int ki_csr_turns(const kiln_device *device, int K) {
    return K == 1 ? KI_TURNS : device->properties.is_gpu ? 8 : 1;
}

/* Entries that a thread of a row's vector has where the row is longer than the mean by a standard deviation,
 * lengths taken for Poisson's. */
static int turns_of(const struct ki_chain *chain, const struct ki_plan *plan) {
    const kiln_matrix *X = chain->X;
    const double mean = (double)X->nnz / (double)ki_max(X->rows, 1);
    const double turns = ceil((mean + sqrt(mean)) * ki_csr_lanes(plan) / plan->VS);
    return (int)fmin(fmax(turns, 1), ki_csr_turns(X->device, plan->K));
}

void ki_csr_suit(struct ki_plan *plan, const struct ki_chain *chain, const struct ki_rows *known) {
    plan->VS = ki_csr_vector(chain->X->device, chain->X->nnz, chain->X->rows, known, ki_csr_lanes(plan));
    plan->Q = turns_of(chain, plan);
}

/* A thread keeps a row's whole part in registers, if the row is not much longer than the mean. w gets three
 * quarters of the space on chip, for an addition to memory costs about three times what a load from there
 * does (bench/studies/h200-sparse-parts.json). */
static const struct ki_variant rows_variant = {
    .name = "csr", .file = "csr", .function = "mmchain_csr", .define = "CSR"};

static struct ki_plan plan_of(const struct ki_chain *chain, int VS, int BS) {
    const kiln_matrix *X = chain->X;
    struct ki_plan plan = {.variant = &rows_variant,
                           .VS = VS,
                           .BS = BS,
                           .K = ki_plan_columns(chain),
                           .W = columns_a_thread(chain),
                           .R = 1};
    plan.Q = turns_of(chain, &plan);
    const int64_t room = ki_csr_chip_columns(&plan, chain);
    const bool scatters = chain->kind != KI_CHAIN_PLAIN, gathers = chain->kind <= KI_CHAIN_PLAIN;
    const bool all = !gathers || (X->cols <= room && fits(&plan, chain));
    if (scatters) plan.shared_w = (int)ki_min(X->cols, all ? room : room / 4 * 3);
    plan.steps = ki_max(ki_ceil_div(X->rows, BS / VS), 1);
    return plan;
}

struct ki_plan ki_csr_plan(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const int lanes = ki_plan_columns(chain) / columns_a_thread(chain);
    return plan_of(chain, ki_csr_vector(X->device, X->nnz, X->rows, NULL, lanes), largest_group(chain));
}

int ki_csr_plans(struct ki_plan plans[KI_CSR_PLANS], int *chosen, const struct ki_chain *chain) {
    const struct ki_plan best = ki_csr_plan(chain);
    const struct ki_properties *device = &chain->X->device->properties;
    const int most = (int)ki_min(device->is_gpu ? 1024 : best.BS, device->group_max);
    const int least = (int)ki_min(device->is_gpu ? 256 : best.BS, best.BS);
    int n = 0;
    for (int VS = ki_csr_lanes(&best); VS <= 32 && VS <= least; VS *= 2)
        for (int BS = least; BS <= most; BS *= 2) {
            if (VS == best.VS && BS == best.BS) *chosen = n;
            plans[n++] = plan_of(chain, VS, BS);
        }
    return n;
}

/* Relative time that an entry takes of a thread which has so many of a row: rows cost something of their own,
 * and the more the more threads share one; what few threads load lies apart. Fitted to all plans on an H200
 * (bench/studies/h200-plans-sparse.json). */
static double effort(double entries) {
    return 1 + 0.6 / entries + 0.03 * entries;
}

/* Returns what a plan loses to ki_csr_plan's: by vectors that do not suit the rows, and by too few threads to
 * wait for memory side by side. Smaller vectors have no room for rows that are longer than the mean. */
static double loss_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int lanes = ki_csr_lanes(plan), VS = ki_csr_vector(X->device, X->nnz, X->rows, NULL, lanes);
    const double mean = (double)X->nnz * lanes / (double)ki_max(X->rows, 1);
    const double of_vector = effort(mean / plan->VS) / effort(mean / VS);
    const double threads = (double)(plan->groups * plan->BS) / ki_max(device->compute_units, 1);
    const double waits = threads < 1024 && threads > 0 ? pow(1024 / threads, 0.7) : 1;
    const double alone = plan->BS > largest_group(chain) ? 1.1 : 1;
    return (plan->VS < VS ? fmax(of_vector, 1.05) : of_vector) * waits * alone;
}

/* Seconds that a pass takes, by where sums gather and y is read: operations a second on an H200
 * (bench/results/h200-sparse.json and, for single ones, bench/studies/h200-sparse-parts.json), scaled by the
 * memory's bandwidth. What is too large for the cache goes through panels, or, on a deterministic device,
 * through the transpose. Columns count as equally frequent, for nothing is known of them here; popular ones
 * make it faster. */
void ki_csr_predict(struct ki_candidate *candidate, const struct ki_chain *chain) {
    static const double chip = 230e9, cached_load = 180e9, cached_sum = 100e9, panel_load = 125e9,
                        panel_sum = 95e9, band_load = 80e9, load = 52e9, H200 = 4.55e12, launches = 8e-6;
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
        seconds += operations / (cached ? cached_load : exact || !scatters ? load : panel_load);
    if (scatters)
        seconds += operations / (on_chip ? chip : cached ? cached_sum : exact ? band_load : panel_sum);
    if (device->is_gpu) seconds *= loss_of(&candidate->plan, chain);
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
                                                 : "sums in panels");
}
