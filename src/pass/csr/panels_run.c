/* Launches of the passes over panels (pass/csr/panels.cl), and the sum over bands of rows. */
#include "pass/csr/panels.h"

#include "core/arguments.h"
#include "core/limits.h"
#include "core/size.h"
#include "pass/launch.h"
#include "pass/csr/panels.cl"

KI_ARGUMENTS(panels_dots);
KI_ARGUMENTS(panels_sums);
KI_ARGUMENTS(bands_sum);

/* Loads under way a thread: more take registers from threads (measured: 2 and 4 alike, 8 slower). */
enum { LOADS = 4, GROUP = 256, GROUP_CPU = 64, BUSY = 1 << 16 };

static int group_of(const kiln_matrix *X) {
    return X->device->properties.is_gpu ? GROUP : GROUP_CPU;
}

/* A group for each piece. */
static kiln_status run(const struct ki_derived *derived, const struct ki_chain *chain, const char *function,
                       int K, const struct ki_arg *args, int count) {
    const kiln_matrix *X = chain->X;
    const char *defines =
        KI_DEFINES("-DBS=%d -DQ=%d -DK=%d%s", group_of(X), LOADS, K, ki_index_define(chain, 0));
    return ki_kernel_run(X->device, "panels", function, X->type, defines, derived->panels->pieces.segments,
                         group_of(X), args, count);
}

/* The values of ARGUMENTS_panels. */
#define PANEL_VALUES(derived, chain, begin)                                                                  \
    .entry = &(derived)->panels->entry, .X = (derived)->alike ? NULL : &(derived)->panels->value,            \
    .same = (derived)->value, .start = &(derived)->panels->start,                                            \
    .piece_block = &(derived)->panels->pieces.segment_row,                                                   \
    .piece_number = &(derived)->panels->pieces.segment_number, .piece = ki_limits.piece,                     \
    .blocks = (int32_t)(derived)->panels->blocks, .height = (derived)->panels->height,                       \
    .bits = (derived)->panels->bits, .k = (chain)->k, .first = begin

kiln_status ki_panels_dots(const struct ki_derived *derived, const struct ki_chain *chain,
                           const struct ki_buffer *dots, int K, int first) {
    const kiln_matrix *X = chain->X;
    const kiln_status status = ki_derived_fill(X->device, dots, X->rows * K * ki_type_bytes(X->type) / 4, 0);
    if (status != KILN_OK) return status;
    return run(derived, chain, "panels_dots", K,
               KI_PACK(panels_dots, X, PANEL_VALUES(derived, chain, first), .dots = dots, .y = chain->y));
}

kiln_status ki_panels_sums(const struct ki_derived *derived, const struct ki_chain *chain, int K, int first,
                           double alpha, const struct ki_buffer *factors, int factors_k, int factors_first) {
    return run(derived, chain, "panels_sums", K,
               KI_PACK(panels_sums, chain->X, PANEL_VALUES(derived, chain, first), .out = chain->out,
                       .squared = chain->kind == KI_CHAIN_SQUARES, .alpha = alpha, .factors = factors,
                       .factors_k = factors_k, .factors_first = factors_first));
}

/* Threads that add up the bands of one sum: as many as keep a device busy where there are few sums of many
 * bands. */
static int slices_of(int64_t size, int64_t bands, int group) {
    int slices = 1;
    while (slices < group / 8 && size * slices < BUSY && bands >= slices * 8) slices *= 2;
    return slices;
}

kiln_status ki_bands_sum(const struct ki_transpose *transpose, const struct ki_chain *chain,
                         const struct ki_buffer *sums, int width, int first) {
    const kiln_matrix *X = chain->X;
    const int64_t size = X->cols * width, bands = transpose->bands;
    const int group = group_of(X), slices = slices_of(size, bands, group);
    const char *defines =
        KI_DEFINES("-DBS=%d -DQ=1 -DK=1 -DSLICES=%d%s", group, slices, ki_index_define(chain, size * bands));
    return ki_kernel_run(
        X->device, "panels", "bands_sum", X->type, defines, ki_ceil_div(size, group / slices), group,
        KI_PACK(bands_sum, X, .out = chain->out, .sums = sums, .z = chain->z, .beta = chain->beta,
                .count = (int32_t)bands, .size = size, .width = width, .k = chain->k, .first = first));
}
