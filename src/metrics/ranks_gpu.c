/* The area under the curve where rows lie on a GPU: sorted there, and only what is known of groups' pieces
 * comes to the host. */
#include "core/arguments.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "metrics/metrics.h"
#include "metrics/metric_ranks.cl"

KI_ARGUMENTS(rank_tiles);
KI_ARGUMENTS(rank_merge);
KI_ARGUMENTS(rank_area);

enum { GROUP = 128, EACH = 8, TILE = GROUP * EACH, GROUPS_A_UNIT = 8 };

static const char file[] = "metric_ranks";

/* The rows' keys and weights, and room for as many to merge into. */
struct sorted {
    struct ki_buffer keys, weights, other_keys, other_weights;
};

static kiln_status make_room(struct sorted *sorted, const struct ki_measured *of) {
    struct ki_buffer *const all[] = {&sorted->keys, &sorted->weights, &sorted->other_keys,
                                     &sorted->other_weights};
    kiln_status status = KILN_OK;
    for (int i = 0; i < 4 && status == KILN_OK; i++)
        status = ki_device_space(of->on, i, all[i], of->rows * (int64_t)sizeof(double));
    return status;
}

static void swap(struct ki_buffer *a, struct ki_buffer *b) {
    const struct ki_buffer kept = *a;
    *a = *b;
    *b = kept;
}

static kiln_status sort(struct sorted *sorted, const struct ki_measured *of, const char *defines,
                        int64_t tiles) {
    const kiln_matrix *like = of->eta.matrix;
    kiln_status status;
    TRY(ki_kernel_run(of->on, file, "rank_tiles", KILN_F64, defines, tiles, GROUP,
                      KI_PACK(rank_tiles, like, .keys = &sorted->keys, .of = &sorted->weights, .eta = like,
                              .y = of->y.matrix, .weights = of->weights.matrix, .rows = of->rows,
                              .columns = (int32_t)of->columns, .begin = of->first, .width = of->wide,
                              .differ = ki_differ(of),
                              .singles = (of->eta.single ? RANK_ETA : 0) | (of->y.single ? RANK_Y : 0) |
                                         (of->weights.single ? RANK_WEIGHTS : 0),
                              .falls = ki_falls(&of->loss), .classes = of->classes > 0,
                              .class_value = of->options.classes ? of->options.classes[1] : 1)));
    for (int64_t run = TILE; run < of->rows; run *= 2) {
        TRY(ki_kernel_run(of->on, file, "rank_merge", KILN_F64, defines, tiles, GROUP,
                          KI_PACK(rank_merge, like, .keys_to = &sorted->other_keys,
                                  .to = &sorted->other_weights, .keys = &sorted->keys,
                                  .from = &sorted->weights, .rows = of->rows, .run = run)));
        swap(&sorted->keys, &sorted->other_keys);
        swap(&sorted->weights, &sorted->other_weights);
    }
done:
    return status;
}

kiln_status ki_rank_gpu(double *area, const struct ki_measured *of) {
    const int64_t tiles = ki_ceil_div(of->rows, TILE),
                  most = (int64_t)of->on->properties.compute_units * GROUPS_A_UNIT,
                  tiles_a_group = ki_max(1, ki_ceil_div(tiles, most)),
                  groups = ki_ceil_div(tiles, tiles_a_group),
                  bytes = groups * (int64_t)sizeof(struct ki_ranking);
    const char *defines = KI_DEFINES("-DGROUP=%d -DEACH=%d", GROUP, EACH);
    struct sorted sorted;
    struct ki_buffer left;
    struct ki_ranking *pieces = NULL;
    kiln_status status = KILN_OK;
    *area = NAN;
    if (of->rows == 0) goto done;
    pieces = ki_alloc((size_t)bytes);
    if (!pieces) {
        status = ki_fail_nomem((size_t)bytes, "the ranks");
        goto done;
    }
    TRY(make_room(&sorted, of));
    TRY(sort(&sorted, of, defines, tiles));
    TRY(ki_device_scratch(of->on, &left, bytes));
    TRY(ki_kernel_run(of->on, file, "rank_area", KILN_F64, defines, groups, GROUP,
                      KI_PACK(rank_area, of->eta.matrix, .left = &left, .keys = &sorted.keys,
                              .from = &sorted.weights, .rows = of->rows, .tiles_a_group = tiles_a_group)));
    TRY(ki_device_download(of->on, pieces, &left, 0, bytes));
    for (int64_t reach = 1; reach < groups; reach *= 2) /* as a tree, whose sums round less than a chain's */
        for (int64_t g = 0; g + reach < groups; g += 2 * reach)
            ki_ranking_join(&pieces[g], &pieces[g + reach]);
    const struct ki_ranking whole = ki_ranking_whole(&pieces[0]);
    *area = ki_ranking_area(&whole);
done:
    ki_free(pieces);
    return status;
}
