/* Launches of the passes over panels (pass/csr/panels.cl), and the sum over bands of rows. */
#include "pass/csr/panels.h"

#include <stdio.h>

#include "core/kernels.h"
#include "core/limits.h"
#include "core/size.h"
#include "pass/launch.h"

/* Loads under way a thread: more take registers from threads (measured: 2 and 4 alike, 8 slower). */
enum { LOADS = 4, GROUP = 256, GROUP_CPU = 64, ARGS = 24, BUSY = 1 << 16 };

static int group_of(const kiln_matrix *X) {
    return X->device->properties.is_gpu ? GROUP : GROUP_CPU;
}

static kiln_status kernel_of(struct ki_kernel **kernel, const struct ki_chain *chain, const char *function,
                             int K) {
    const kiln_matrix *X = chain->X;
    char defines[64];
    snprintf(defines, sizeof defines, "-DBS=%d -DQ=%d -DK=%d%s", group_of(X), LOADS, K,
             ki_index_define(chain, 0));
    return ki_kernel_get(kernel, X->device, "panels", function, X->type, defines);
}

static int panel_args(struct ki_arg *args, int n, const struct ki_derived *derived, kiln_type type) {
    const struct ki_panels *panels = derived->panels;
    args[n++] = ki_arg_buffer(&panels->entry);
    args[n++] = ki_arg_buffer(derived->alike ? NULL : &panels->value);
    args[n++] = ki_arg_real(type, derived->value);
    args[n++] = ki_arg_buffer(&panels->start);
    args[n++] = ki_arg_buffer(&panels->pieces.segment_row);
    args[n++] = ki_arg_buffer(&panels->pieces.segment_number);
    args[n++] = ki_arg_i32(ki_limits.piece);
    args[n++] = ki_arg_i32((int32_t)panels->blocks);
    args[n++] = ki_arg_i32(panels->height);
    args[n++] = ki_arg_i32(panels->bits);
    return n;
}

kiln_status ki_panels_dots(const struct ki_derived *derived, const struct ki_chain *chain,
                           const struct ki_buffer *dots, int K, int first) {
    const kiln_matrix *X = chain->X;
    struct ki_kernel *kernel;
    struct ki_arg args[ARGS];
    kiln_status status;
    TRY(ki_derived_zero(X, dots, X->rows * K));
    TRY(kernel_of(&kernel, chain, "panels_dots", K));
    args[0] = ki_arg_buffer(dots);
    int n = panel_args(args, 1, derived, X->type);
    args[n++] = ki_arg_values(chain->y);
    args[n++] = ki_arg_i32(chain->k);
    args[n++] = ki_arg_i32(first);
    TRY(ki_kernel_launch(X->device, kernel, derived->panels->pieces.segments, group_of(X), args, n));
done:
    return status;
}

kiln_status ki_panels_sums(const struct ki_derived *derived, const struct ki_chain *chain, int K, int first,
                           double alpha, const struct ki_buffer *factors, int factors_k, int factors_first) {
    const kiln_matrix *X = chain->X;
    struct ki_kernel *kernel;
    struct ki_arg args[ARGS];
    kiln_status status;
    TRY(kernel_of(&kernel, chain, "panels_sums", K));
    args[0] = ki_arg_values(chain->out);
    int n = panel_args(args, 1, derived, X->type);
    args[n++] = ki_arg_i32(chain->kind == KI_CHAIN_SQUARES);
    args[n++] = ki_arg_real(X->type, alpha);
    args[n++] = ki_arg_buffer(factors);
    args[n++] = ki_arg_i32(factors_k);
    args[n++] = ki_arg_i32(factors_first);
    args[n++] = ki_arg_i32(chain->k);
    args[n++] = ki_arg_i32(first);
    TRY(ki_kernel_launch(X->device, kernel, derived->panels->pieces.segments, group_of(X), args, n));
done:
    return status;
}

/* Threads that add up the bands of one sum: as many as keep a device busy where there are few sums of many bands. */
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
    struct ki_kernel *kernel;
    char defines[64];
    kiln_status status;
    snprintf(defines, sizeof defines, "-DBS=%d -DQ=1 -DK=1 -DSLICES=%d%s", group, slices,
             ki_index_define(chain, size * bands));
    TRY(ki_kernel_get(&kernel, X->device, "panels", "bands_sum", X->type, defines));
    const struct ki_arg args[] = {ki_arg_values(chain->out),  ki_arg_buffer(sums),
                                  ki_arg_values(chain->z),    ki_arg_real(X->type, chain->beta),
                                  ki_arg_i32((int32_t)bands), ki_arg_i64(size),
                                  ki_arg_i32(width),          ki_arg_i32(chain->k),
                                  ki_arg_i32(first)};
    TRY(ki_kernel_launch(X->device, kernel, ki_ceil_div(size, group / slices), group, args, 9));
done:
    return status;
}
