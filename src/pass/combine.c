/* W = a X + b Y and W = value: what passes do with their results, and the public operations behind their
 * checks; and sums of what groups leave. */
#include "pass/combine.h"
#include "core/home.h"
#include "pass/group.h"

#include <string.h>

#include "bodies/bodies.h"
#include "core/arguments.h"
#include "core/limits.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/size.h"
#include "pass/combine.cl"

enum { GROUP = 128, TILE = 16 };

KI_ARGUMENTS(combine_one);
KI_ARGUMENTS(combine_tile);
KI_ARGUMENTS(fill);

kiln_status ki_launch_elements(const kiln_matrix *W, int64_t count, const char *file, const char *function,
                               const char *defines, const struct ki_arg *args, int args_count) {
    const char *all = KI_DEFINES("%s%s", defines, W->nnz > ki_limits.index32 ? " -DINDEX64" : "");
    int64_t groups = ki_min(ki_ceil_div(count, GROUP), (int64_t)W->device->properties.compute_units * 32);
    return ki_kernel_run(W->device, file, function, W->type, all, groups, GROUP, args, args_count);
}

kiln_status ki_download_wide(double *to, kiln_device *device, const struct ki_buffer *from, int64_t first,
                             int64_t count) {
    const int64_t element = ki_type_bytes(ki_wide_type(device));
    const kiln_status status = ki_device_download(device, to, from, first * element, count * element);
    if (status != KILN_OK || element == 8) return status;
    for (int64_t i = count; i-- > 0;) {
        float narrow;
        memcpy(&narrow, (const char *)to + i * element, sizeof narrow);
        to[i] = (double)narrow;
    }
    return KILN_OK;
}

kiln_status ki_group_sums(double *sums, int count, kiln_device *device, const struct ki_buffer *left,
                          int64_t groups) {
    double *all = ki_alloc((size_t)(groups * count) * sizeof *all);
    if (!all) return ki_fail_nomem((size_t)(groups * count) * sizeof *all, "sums");
    const kiln_status status = ki_download_wide(all, device, left, 0, groups * count);
    for (int i = 0; status == KILN_OK && i < count; i++) {
        sums[i] = 0;
        for (int64_t g = 0; g < groups; g++) sums[i] += all[g * count + i];
    }
    ki_free(all);
    return status;
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
        status = ki_launch_elements(W, W->nnz, "combine", "combine_tile", "-DBY_COLUMNS",
                                    combine_tile_pack(packed, W, &args), combine_tile_count);
    }
    return status;
}

static bool all_alike(const double *coefficient, int64_t k) {
    for (int64_t c = 1; c < k; c++)
        if (coefficient[c] != coefficient[0]) return false;
    return true;
}

/* With one coefficient for all columns a matrix is one long column. */
static kiln_status combine_gpu(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                               const kiln_matrix *Y) {
    const int64_t k = W->cols;
    const bool one = X->cols == k && all_alike(a, k) && (!Y || (Y->cols == k && all_alike(b, k)));
    if (!one) return combine_tiles(W, a, X, b, Y);
    return ki_launch_elements(
        W, W->nnz, "combine", "combine_one", "",
        KI_PACK(combine_one, W, .W = W, .X = X, .Y = Y, .rows = W->nnz, .a = *a, .b = Y ? *b : 0));
}

static const struct ki_rule elements_rules[] = {
    {offsetof(struct ki_elements, X), KI_READS, {KI_ROW}},
    {offsetof(struct ki_elements, Y), KI_READS, {KI_ROW}},
    {offsetof(struct ki_elements, W), KI_WRITES, {KI_ROW}},
};
static const struct ki_rules elements_table = KI_RULES(struct ki_elements, cut, 0, elements_rules);

bool ki_elements_apart(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y) {
    if (ki_is_away(X) || (Y && ki_is_away(Y))) return true;
    if (ki_is_away(W)) ki_slots_drop(W);
    return false;
}

kiln_status ki_elements_share(const struct ki_elements *elements, kiln_status (*run)(const void *elements)) {
    struct ki_elements whole = *elements;
    whole.cut = whole.X && ki_is_away(whole.X) ? whole.X : whole.Y && ki_is_away(whole.Y) ? whole.Y : whole.W;
    return ki_share(
        &(struct ki_shared){.rules = &elements_table, .whole = &whole, .cut = KI_AS_IT_LIES, .run = run});
}

static kiln_status combine_part(const void *part) {
    const struct ki_elements *of = part;
    return ki_combine(of->W, of->a, of->X, of->b, of->Y);
}

static kiln_status combine_apart(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                                 const kiln_matrix *Y) {
    struct ki_elements elements = {.W = W, .X = X, .Y = Y};
    memcpy(elements.a, a, (size_t)W->cols * sizeof *a);
    if (Y) memcpy(elements.b, b, (size_t)W->cols * sizeof *b);
    return ki_elements_share(&elements, combine_part);
}

static kiln_status fill_part(const void *part) {
    const struct ki_elements *of = part;
    return ki_set_all(of->W, *of->a);
}

kiln_status ki_combine(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                       const kiln_matrix *Y) {
    kiln_status status = KILN_OK;
    if (W->nnz == 0) return KILN_OK;
    if (W->cols > KI_ELEMENTS_COLUMNS) {
        TRY(ki_matrix_home(X));
        if (Y) TRY(ki_matrix_home(Y));
    }
    if (ki_elements_apart(W, X, Y)) return combine_apart(W, a, X, b, Y);
    if (!ki_on_cpu(W->device)) return combine_gpu(W, a, X, b, Y);
    TRY(KI_WIDEN(W, X, Y));
    ki_slots_written(W);
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
    const kiln_status status = ki_combine(W, each, X, each + k, Y);
    ki_free(each);
    return status;
}

kiln_status ki_set_all(kiln_matrix *W, double value) {
    if (W->nnz == 0) return KILN_OK;
    if (ki_is_away(W)) return ki_elements_share(&(struct ki_elements){.W = W, .a = {value}}, fill_part);
    if (!ki_on_cpu(W->device))
        return ki_launch_elements(W, W->nnz, "combine", "fill", "",
                                  KI_PACK(fill, W, .W = W, .count = W->nnz, .value = value));
    const kiln_status status = ki_matrix_widen(W);
    if (status != KILN_OK) return status;
    ki_slots_written(W);
    ki_bodies(W)->fill(W, value);
    return KILN_OK;
}
