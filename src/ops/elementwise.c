/* Element-wise operations: combine, times, map, fill and fill_random. Their operands are the small n x k and
 * m x k matrices beside X, so that they cost little next to a pass over X. */
#include <stdio.h>

#include "core/seams.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "ops/elementwise.h"

enum { GROUP = 128 };

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
    snprintf(all, sizeof all, "%s%s", defines, W->nnz > KILN_INDEX32_LIMIT ? " -DINDEX64" : "");
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
static kiln_status combine_gpu(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                               const kiln_matrix *Y) {
    enum { TILE = 16 };
    const int64_t k = W->cols;
    for (int64_t first = 0; first < k; first += TILE) {
        const int64_t width = ki_min(k - first, TILE);
        struct ki_arg args[8 + 2 * TILE];
        int n = 0;
        args[n++] = ki_arg_values(W);
        args[n++] = ki_arg_values(X);
        args[n++] = ki_arg_values(Y);
        args[n++] = ki_arg_i64(W->rows);
        args[n++] = ki_arg_i32((int32_t)k);
        args[n++] = ki_arg_i32((int32_t)first);
        args[n++] = ki_arg_i32(X->cols == 1 ? 1 : (int32_t)k);
        args[n++] = ki_arg_i32(Y && Y->cols == 1 ? 1 : (int32_t)k);
        const int64_t tile = k == 1 ? 1 : TILE;
        for (int64_t c = 0; c < tile; c++) args[n++] = ki_arg_real(W->type, c < width ? a[first + c] : 0);
        for (int64_t c = 0; c < tile; c++)
            args[n++] = ki_arg_real(W->type, Y && c < width ? b[first + c] : 0);
        kiln_status status = launch(W, k == 1 ? "combine_one" : "combine_tile", "", args, n);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
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
    const struct ki_arg args[] = {ki_arg_values(W),
                                  ki_arg_values(X),
                                  ki_arg_values(Y),
                                  ki_arg_i64(W->nnz),
                                  ki_arg_i32(X->cols == 1 ? (int32_t)W->cols : 1),
                                  ki_arg_i32(Y->cols == 1 ? (int32_t)W->cols : 1)};
    TRY(launch(W, "times", "", args, 6));
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
    const struct ki_arg args[] = {ki_arg_values(W), ki_arg_values(X), ki_arg_i64(W->nnz),
                                  ki_arg_i32((int32_t)kind)};
    TRY(launch(W, "map", "", args, 4));
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
    const struct ki_arg args[] = {ki_arg_values(W), ki_arg_i64(W->nnz), ki_arg_real(W->type, value)};
    TRY(launch(W, "fill", "", args, 3));
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
    const struct ki_arg args[] = {ki_arg_values(W), ki_arg_i64(W->nnz), ki_arg_i64((int64_t)seed),
                                  ki_arg_i64((int64_t)stream)};
    TRY(launch(W, "fill_random", distribution == KILN_NORMAL ? "-DNORMAL" : "", args, 4));
done:
    return status;
}
