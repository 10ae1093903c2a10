/* Element-wise operations: combine, times, map, fill and fill_random. Their operands are the small n x k and
 * m x k matrices beside X, so that they cost little next to a pass over X. */
#include "core/arguments.h"
#include "core/narrow/narrow.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "ops/vectors/elementwise.cl"
#include "pass/combine.h"
#include "pass/rows.h"

KI_ARGUMENTS(times);
KI_ARGUMENTS(map);
KI_ARGUMENTS(fill_random);

static kiln_status check_target(const char *call, const kiln_matrix *W) {
    if (!W) return ki_fail(KILN_ERR_ARGUMENT, "%s: W is NULL", call);
    if (W->format != KILN_DENSE) return ki_fail(KILN_ERR_ARGUMENT, "%s: W must be dense", call);
    return W->device->lost ? kiln_device_sync(W->device) : ki_matrix_widen(W);
}

/* X must be as W is, or one column of its rows. */
static kiln_status check_broadcast(const char *call, const char *name, const kiln_matrix *X,
                                   const kiln_matrix *W) {
    return ki_check_rows(call, name, X, W, W->rows, X && X->cols == 1 ? 1 : W->cols);
}

static kiln_status launch(kiln_matrix *W, const char *function, const char *defines,
                          const struct ki_arg *args, int count) {
    return ki_launch_elements(W, W->nnz, "elementwise", function, defines, args, count);
}

kiln_status kiln_combine(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                         const kiln_matrix *Y) {
    static const char call[] = "kiln_combine";
    kiln_status status;
    TRY(check_target(call, W));
    TRY(check_broadcast(call, "X", X, W));
    if (Y) TRY(check_broadcast(call, "Y", Y, W));
    if (!a || (Y && !b)) return ki_fail(KILN_ERR_ARGUMENT, "%s: the coefficients are NULL", call);
    TRY(ki_combine(W, a, X, b, Y));
done:
    return status;
}

static kiln_status times_part(const void *part) {
    const struct ki_elements *of = part;
    return kiln_times(of->W, of->X, of->Y);
}

static kiln_status map_part(const void *part) {
    const struct ki_elements *of = part;
    return kiln_map(of->W, (kiln_map_kind)of->kind, of->X);
}

kiln_status kiln_times(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y) {
    static const char call[] = "kiln_times";
    kiln_status status;
    TRY(check_target(call, W));
    TRY(check_broadcast(call, "X", X, W));
    TRY(check_broadcast(call, "Y", Y, W));
    if (W->nnz == 0) return KILN_OK;
    if (ki_elements_apart(W, X, Y))
        return ki_elements_share(&(struct ki_elements){.W = W, .X = X, .Y = Y}, times_part);
    if (ki_on_cpu(W->device)) {
        ki_slots_written(W);
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
    TRY(ki_check_rows(call, "X", X, W, W->rows, W->cols));
    if (kind < KILN_MAP_ABS || kind > KILN_MAP_LOG)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no map has the number %d", call, (int)kind);
    if (W->nnz == 0) return KILN_OK;
    if (ki_elements_apart(W, X, NULL))
        return ki_elements_share(&(struct ki_elements){.W = W, .X = X, .kind = (int)kind}, map_part);
    if (ki_on_cpu(W->device)) {
        ki_slots_written(W);
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
    TRY(ki_set_all(W, value));
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
    if (ki_is_away(W)) ki_slots_drop(W);
    if (ki_on_cpu(W->device)) {
        ki_slots_written(W);
        ki_bodies(W)->fill_random(W, distribution, seed, stream);
        return KILN_OK;
    }
    TRY(launch(
        W, "fill_random", distribution == KILN_NORMAL ? "-DNORMAL" : "",
        KI_PACK(fill_random, W, .W = W, .count = W->nnz, .seed = (int64_t)seed, .stream = (int64_t)stream)));
done:
    return status;
}
