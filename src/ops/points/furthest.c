/* The largest distance by label: zeros, and then whatever is larger. Where the rows lie with others each has
 * a row of R's numbers, of which the largest are taken. */
#include "ops/points/furthest.h"

#include <string.h>

#include "bodies/bodies.h"
#include "core/arguments.h"
#include "core/each.h"
#include "core/home.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/size.h"
#include "ops/points/furthest.cl"
#include "pass/combine.h"
#include "pass/group.h"

KI_ARGUMENTS(furthest);

static kiln_status find(kiln_matrix *R, const kiln_matrix *distances, const kiln_matrix *labels) {
    kiln_status status;
    TRY(kiln_fill(R, 0));
    TRY(KI_WIDEN(R, distances, labels));
    if (ki_on_cpu(R->device))
        ki_bodies(R)->furthest(R, distances, labels);
    else if (distances->rows > 0)
        TRY(ki_launch_elements(
            distances, distances->rows, "furthest", "furthest", "",
            KI_PACK(furthest, R, .R = R, .distances = distances, .labels = labels, .rows = distances->rows)));
done:
    return status;
}

struct furthest {
    const kiln_matrix *cut; /* one of the two that is away */
    const kiln_matrix *distances, *labels;
    kiln_matrix *each; /* members x k */
    struct ki_offset place;
};

static const struct ki_rule rules[] = {
    {offsetof(struct furthest, distances), KI_READS, {KI_ROW}},
    {offsetof(struct furthest, labels), KI_READS, {KI_ROW}},
    {offsetof(struct furthest, each), KI_WRITES, {KI_SUM}},
};
static const struct ki_rules table = {.bytes = sizeof(struct furthest),
                                      .X = offsetof(struct furthest, cut),
                                      .place = offsetof(struct furthest, place),
                                      .count = sizeof rules / sizeof *rules,
                                      .rule = rules};

/* A member's numbers in its row, zeros in the others', so that what is added up is what each has found. */
static kiln_status find_part(const void *part) {
    const struct furthest *of = part;
    kiln_device *device = of->each->device;
    const int64_t k = of->each->cols, bytes = k * ki_type_bytes(of->each->type);
    const struct ki_operand held = {of->each, false};
    kiln_matrix *own = NULL;
    kiln_status status;
    TRY(ki_set_all(of->each, 0));
    TRY(ki_matrix_new_held(&own, device, of->each->type, k, 1));
    TRY(find(own, of->distances, of->labels));
    TRY(ki_operands_hold(device, &held, 1));
    status = ki_device_copy(device, device, &of->each->values, of->place.member * bytes, device, &own->values,
                            0, bytes);
    ki_operands_release(device, &held, 1);
done:
    kiln_matrix_free(own);
    return status;
}

/* R = the largest of each column. */
static kiln_status take_largest(kiln_matrix *R, const kiln_matrix *each) {
    const int64_t k = each->cols;
    double *largest = ki_alloc((size_t)k * sizeof *largest);
    kiln_status status;
    if (!largest) return ki_fail_nomem((size_t)k * sizeof *largest, "the furthest rows");
    TRY(kiln_norm(largest, each, KILN_NORM_MAX));
    for (int64_t c = 0; c < k && R->type == KILN_F32; c++) {
        const float narrow = (float)largest[c];
        memcpy((char *)largest + (size_t)c * sizeof narrow, &narrow, sizeof narrow);
    }
    TRY(kiln_matrix_set(R, largest));
    ki_matrix_not_shared(R);
done:
    ki_free(largest);
    return status;
}

kiln_status ki_furthest(kiln_matrix *R, const kiln_matrix *distances, const kiln_matrix *labels) {
    const bool away = ki_is_away(distances);
    kiln_matrix *each = NULL;
    kiln_status status;
    if (!away && !ki_is_away(labels)) return find(R, distances, labels);
    TRY(ki_matrix_new(&each, R->device, R->type, ki_members_of(R->device), R->rows));
    TRY(ki_share(&(struct ki_shared){.rules = &table,
                                     .whole = &(struct furthest){.cut = away ? distances : labels,
                                                                 .distances = distances,
                                                                 .labels = labels,
                                                                 .each = each},
                                     .cut = KI_AS_IT_LIES,
                                     .run = find_part}));
    TRY(take_largest(R, each));
done:
    kiln_matrix_free(each);
    return status;
}
