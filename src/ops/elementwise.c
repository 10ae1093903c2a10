/* Element-wise operations: combine, times, map, fill and fill_random. Their operands are the small n x k and
 * m x k matrices beside X, so that they cost little next to a pass over X. */
#include <stdio.h>

#include "core/arguments.h"
#include "core/seams.h"
#include "core/limits.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "ops/elementwise.cl"
#include "ops/elementwise.h"

enum { GROUP = 128, TILE = 16 };

KI_ARGUMENTS(combine_one);
KI_ARGUMENTS(combine_tile);
KI_ARGUMENTS(times);
KI_ARGUMENTS(map);
KI_ARGUMENTS(fill);
KI_ARGUMENTS(fill_random);

static kiln_status check_target(const char *call, const kiln_matrix *W) {
    if (!W) return ki_fail(KILN_ERR_ARGUMENT, "%s: W is NULL", call);
    if (W->format != KILN_DENSE) return ki_fail(KILN_ERR_ARGUMENT, "%s: W must be dense", call);
    return W->device->lost ? kiln_device_sync(W->device) : KILN_OK;
}

/* X must be as W is, or one column of its rows. */
static kiln_status check_broadcast(const char *call, const char *name, const kiln_matrix *X,
                                   const kiln_matrix *W) {
    return ki_check_dense(call, name, X, W, W->rows, X && X->cols == 1 ? 1 : W->cols);
}

kiln_status ki_launch_elements(kiln_matrix *W, int64_t count, const char *file, const char *function,
                               const char *defines, const struct ki_arg *args, int args_count) {
    struct ki_kernel *kernel;
    char all[160];
    snprintf(all, sizeof all, "%s%s", defines, W->nnz > ki_limits.index32 ? " -DINDEX64" : "");
    kiln_status status = ki_kernel_get(&kernel, W->device, file, function, W->type, all);
    if (status != KILN_OK) return status;
    int64_t groups = ki_min(ki_ceil_div(count, GROUP), (int64_t)W->device->properties.compute_units * 32);
    return ki_kernel_launch(W->device, kernel, groups, GROUP, args, args_count);
}

static kiln_status launch(kiln_matrix *W, const char *function, const char *defines,
                          const struct ki_arg *args, int count) {
    return ki_launch_elements(W, W->nnz, "elementwise", function, defines, args, count);
}

/* The coefficients travel by value, so that a launch needs no buffer of its own: sixteen columns at a
 * time. */
static kiln_status combine_tiles(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                                 const kiln_matrix *Y) {
    const int k = (int)W->cols;
    kiln_status status = KILN_OK;
    for (int first = 0; first < k && status == KILN_OK; first += TILE) {
        struct combine_tile_arguments args = {.W = W,
                                              .X = X,
                                              .Y = Y,
                                              .rows = W->rows,
                                              .k = k,
                                              .first = first,
                                              .x_cols = (int)X->cols,
                                              .y_cols = Y ? (int)Y->cols : k};
        for (int c = 0; c < TILE && first + c < k; c++) {
            args.a[c] = a[first + c];
            args.b[c] = Y ? b[first + c] : 0;
        }
        struct ki_arg packed[combine_tile_count];
        status = launch(W, "combine_tile", "", combine_tile_pack(packed, W, &args), combine_tile_count);
    }
    return status;
}

static kiln_status combine_gpu(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                               const kiln_matrix *Y) {
    if (W->cols > 1) return combine_tiles(W, a, X, b, Y);
    return launch(W, "combine_one", "",
                  KI_PACK(combine_one, W, .W = W, .X = X, .Y = Y, .rows = W->rows, .a = *a, .b = Y ? *b : 0));
}

kiln_status kiln_combine(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                         const kiln_matrix *Y) {
    static const char call[] = "kiln_combine";
    kiln_status status;
    TRY(check_target(call, W));
    TRY(check_broadcast(call, "X", X, W));
    if (Y) TRY(check_broadcast(call, "Y", Y, W));
    if (!a || (Y && !b)) return ki_fail(KILN_ERR_ARGUMENT, "%s: the coefficients are NULL", call);
    if (W->nnz == 0) return KILN_OK;
    if (!ki_on_cpu(W->device)) return combine_gpu(W, a, X, b, Y);
    ki_bodies(W)->combine(W, a, X, b, Y);
done:
    return status;
}

kiln_status ki_combine_all(kiln_matrix *W, double a, const kiln_matrix *X, double b, const kiln_matrix *Y) {
    const int64_t k = W->cols;
    if (W == X && a == 1 && b == 0) return KILN_OK;
    double *each = ki_alloc((size_t)(2 * k) * sizeof *each);
    if (!each) return ki_fail_nomem((size_t)(2 * k) * sizeof *each, "coefficients");
    for (int64_t c = 0; c < k; c++) {
        each[c] = a;
        each[k + c] = b;
    }
    const kiln_status status = kiln_combine(W, each, X, each + k, Y);
    ki_free(each);
    return status;
}

kiln_status kiln_times(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y) {
    static const char call[] = "kiln_times";
    kiln_status status;
    TRY(check_target(call, W));
    TRY(check_broadcast(call, "X", X, W));
    TRY(check_broadcast(call, "Y", Y, W));
    if (W->nnz == 0) return KILN_OK;
    if (ki_on_cpu(W->device)) {
        ki_bodies(W)->times(W, X, Y);
        return KILN_OK;
    }
    TRY(launch(W, "times", "",
               KI_PACK(times, W, .W = W, .X = X, .Y = Y, .count = W->nnz,
                       .x_share = X->cols == 1 ? (int)W->cols : 1,
                       .y_share = Y->cols == 1 ? (int)W->cols : 1)));
done:
    return status;
}

kiln_status kiln_map(kiln_matrix *W, kiln_map_kind kind, const kiln_matrix *X) {
    static const char call[] = "kiln_map";
    kiln_status status;
    TRY(check_target(call, W));
    TRY(ki_check_dense(call, "X", X, W, W->rows, W->cols));
    if (kind < KILN_MAP_ABS || kind > KILN_MAP_EXP)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no map has the number %d", call, (int)kind);
    if (W->nnz == 0) return KILN_OK;
    if (ki_on_cpu(W->device)) {
        ki_bodies(W)->map(W, kind, X);
        return KILN_OK;
    }
    TRY(launch(W, "map", "", KI_PACK(map, W, .W = W, .X = X, .count = W->nnz, .kind = (int)kind)));
done:
    return status;
}

kiln_status kiln_fill(kiln_matrix *W, double value) {
    kiln_status status;
    TRY(check_target("kiln_fill", W));
    if (W->nnz == 0) return KILN_OK;
    if (ki_on_cpu(W->device)) {
        ki_bodies(W)->fill(W, value);
        return KILN_OK;
    }
    TRY(launch(W, "fill", "", KI_PACK(fill, W, .W = W, .count = W->nnz, .value = value)));
done:
    return status;
}

kiln_status kiln_fill_random(kiln_matrix *W, kiln_distribution distribution, uint64_t seed, uint64_t stream) {
    static const char call[] = "kiln_fill_random";
    kiln_status status;
    TRY(check_target(call, W));
    if (distribution != KILN_UNIFORM && distribution != KILN_NORMAL)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no distribution has the number %d", call, (int)distribution);
    if (W->nnz == 0) return KILN_OK;
    if (ki_on_cpu(W->device)) {
        ki_bodies(W)->fill_random(W, distribution, seed, stream);
        return KILN_OK;
    }
    TRY(launch(
        W, "fill_random", distribution == KILN_NORMAL ? "-DNORMAL" : "",
        KI_PACK(fill_random, W, .W = W, .count = W->nnz, .seed = (int64_t)seed, .stream = (int64_t)stream)));
done:
    return status;
}
