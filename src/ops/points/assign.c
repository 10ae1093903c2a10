/* Nearest centres, and what each centre's rows add up to: checks, then the CPU's body or the GPU's
 * launches. */
#include "ops/points/assign.h"
#include "pass/rows.h"

#include <string.h>

#include "bodies/bodies.h"
#include "core/size.h"
#include "core/sized.h"
#include "ops/points/bounds.h"
#include "pass/group.h"
#include "pass/roles.h"

/* Each member finds the nearest centres of its rows, and what they add up to. */
static const struct ki_rule rules[] = {
    {offsetof(struct ki_assign, sums), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_assign, labels), KI_CHANGES, {KI_ROW}},
    {offsetof(struct ki_assign, distances), KI_CHANGES, {KI_ROW}},
    {offsetof(struct ki_assign, weights), KI_READS, {KI_ROW}},
    {offsetof(struct ki_assign, C), KI_READS, {KI_COLUMN}},
};
static const struct ki_rules table = KI_RULES(struct ki_assign, X, offsetof(struct ki_assign, totals), rules);

/* The same with bounds, on the CPU: sums are those that the bounds hold, which each panel corrects. */
static const struct ki_rule bounded_rules[] = {
    {offsetof(struct ki_assign, sums), KI_WRITES, {KI_OWN}},
    {offsetof(struct ki_assign, weights), KI_READS, {KI_ROW}},
    {offsetof(struct ki_assign, C), KI_READS, {KI_COLUMN}},
};
static const struct ki_rules bounded_table = {.bytes = sizeof(struct ki_assign),
                                              .X = offsetof(struct ki_assign, X),
                                              .place = offsetof(struct ki_assign, place),
                                              .count = sizeof bounded_rules / sizeof *bounded_rules,
                                              .rule = bounded_rules};

/* X, or a panel of it: labels first, by the bounds or without; then all rows are added up, or those that have
 * come and gone. */
static kiln_status run_bounded_rows(const void *assign) {
    struct ki_assign of = *(const struct ki_assign *)assign;
    const struct ki_bodies *bodies = ki_bodies(of.X);
    kiln_bounds *b = of.bounds, rows = *b;
    kiln_status status = KILN_OK;
    ki_bounds_rows(&rows, of.place.row, of.place.rows);
    of.bounds = &rows;
    struct ki_assign labels = {.X = of.X, .C = of.C}, sums = of;
    if (of.paused) {
        memcpy(rows.before, rows.labels, (size_t)rows.m * sizeof *rows.before);
        labels.found = sums.found = rows.labels;
        if (!rows.fresh) TRY(bodies->assign(&labels));
    } else {
        TRY(bodies->bounds(&of));
        sums.known = rows.labels;
    }
    sums.kept = rows.sums;
    sums.adds = !of.place.leads;
    if (rows.fresh) TRY(bodies->assign(&sums));
    bodies->bounds_add(&of);
    b->changed += rows.changed;
    b->measured += rows.measured;
done:
    return status;
}

static kiln_status run_bounded(const struct ki_assign *assign) {
    struct ki_assign of = *assign;
    kiln_bounds *b = of.bounds;
    kiln_status status;
    of.place = (struct ki_offset){.rows = of.X->rows, .leads = true};
    ki_bodies(of.X)->bounds_centres(&of);
    of.paused = ki_bounds_pause(b);
    if (!of.paused) TRY(ki_bounds_group(b));
    b->changed = 0;
    b->measured = 0;
    TRY(ki_run_single(&(struct ki_single){.rules = &bounded_table, .whole = &of, .run = run_bounded_rows}));
    if (!of.paused) ki_bounds_count(b, b->measured, !b->valid);
    b->known = true;
    b->fresh = false;
done:
    return status;
}

/* All rows that X has, which with the other operands is on the device. */
static kiln_status run_there(const struct ki_assign *of) {
    return ki_on_cpu(of->X->device) ? ki_bodies(of->X)->assign(of) : ki_assign_gpu(of);
}

static kiln_status run_by_bounds(const struct ki_assign *of) {
    kiln_status status = ki_bounds_begin(of->bounds);
    if (status != KILN_OK) return status;
    if (ki_on_cpu(of->X->device)) return run_bounded(of);
    const struct ki_operand operands[] = {
        {of->X, false}, {of->C, false}, {of->weights, false}, {of->sums, true}, {of->bounds->running, true}};
    const int count = sizeof operands / sizeof *operands;
    status = ki_operands_hold(of->X->device, operands, count);
    if (status != KILN_OK) return status;
    status = run_there(of);
    ki_operands_release(of->X->device, operands, count);
    return status;
}

/* X, or a panel of it, whose sums are added up before they are rounded. */
static kiln_status run_rows(const void *assign) {
    struct ki_assign of = *(const struct ki_assign *)assign;
    kiln_device *device = of.X->device;
    kiln_status status = KILN_OK;
    if (!of.X->view) of.wide = NULL;
    if (of.wide && !*of.wide)
        TRY(ki_matrix_new_held(of.wide, device, ki_wide_type(device), of.C->rows * (of.C->cols + 2), 1));
    if (of.wide && ki_on_cpu(device)) of.kept = ki_host(&(*of.wide)->values);
    TRY(run_there(&of));
done:
    return status;
}

static void add(void *slice) {
    ((struct ki_assign *)slice)->adds = true;
}

/* Bytes that labels and distances take on a GPU beside the operands (assign_gpu.c): what is found of each
 * row, its doubts, half norms, the transpose of C for sparse rows; halves of many centres. */
static int64_t labels_bytes(const struct ki_assign *of) {
    enum { MANY = 64, PADDED = 256 };
    const int64_t m = of->X->rows, n = of->X->cols, k = of->C->rows, size = ki_type_bytes(of->X->type);
    const bool sparse = of->X->format == KILN_CSR;
    const int64_t rows = m * (k == 1 || sparse ? 4 : 8 + size), centres = k * (1 + (sparse ? n : 0)) * size,
                  halves = k < MANY || sparse ? 0 : (k + PADDED) * (n + PADDED) * 4;
    return (rows + centres + halves) / 8 * 9 + 64; /* blocks are up to an eighth larger */
}

/* Returns whether a body takes X with its values as they are kept. */
static bool keeps(const kiln_matrix *X) {
    return ki_on_cpu(X->device) && X->format == KILN_CSR;
}

static kiln_status run(const void *assign) {
    struct ki_assign of = *(const struct ki_assign *)assign;
    kiln_matrix *wide = NULL;
    if (of.bounds) return run_by_bounds(&of);
    if (of.sums) of.wide = &wide;
    const kiln_status status =
        ki_run_single(&(struct ki_single){.rules = &table,
                                          .whole = &of,
                                          .sums = of.totals && !of.sums ? 2 * of.C->rows : 0,
                                          .fresh = of.first == 0,
                                          .narrow = keeps(of.X),
                                          .work = of.first == 0 ? 0 : labels_bytes(&of),
                                          .run = run_rows,
                                          .go_on = add});
    kiln_matrix_free(wide);
    return status;
}

static kiln_status check(const char *call, const kiln_assignment *to, const kiln_matrix *X,
                         const kiln_matrix *C, const kiln_matrix *weights) {
    enum { CENTRES_MOST = 1 << 24 };
    kiln_status status;
    if (!X || !C) return ki_fail(KILN_ERR_ARGUMENT, "%s: X or C is NULL", call);
    TRY(ki_check_passed(call, "X", X, C));
    TRY(ki_check_dense(call, "C", C, X, C->rows, X->cols));
    if (weights) TRY(ki_check_rows(call, "weights", weights, X, X->rows, 1));
    if (to->labels) TRY(ki_check_rows(call, "labels", to->labels, X, X->rows, 1));
    if (to->distances) TRY(ki_check_rows(call, "distances", to->distances, X, X->rows, 1));
    if (to->sums) TRY(ki_check_dense(call, "sums", to->sums, X, C->rows, X->cols));
    const kiln_matrix *const results[] = {to->labels, to->distances, to->sums}, *const given[] = {X, C,
                                                                                                  weights};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            if (results[i] && (results[i] == given[j] || (i != j && results[i] == results[j])))
                return ki_fail(KILN_ERR_ARGUMENT, "%s: a result must not be an operand or another result",
                               call);
    if (to->first < 0 || C->rows < 1 || C->rows > CENTRES_MOST || to->first > CENTRES_MOST - C->rows)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld centres from number %lld on, but there must be 1 to %d",
                       call, (long long)C->rows, (long long)to->first, CENTRES_MOST);
    if (to->first > 0 && (!to->distances || to->sums || to->totals))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: first > 0 goes with distances, and without sums and totals",
                       call);
    const kiln_bounds *b = to->bounds;
    if (b && (!to->sums || !to->totals || to->labels || to->distances))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: bounds go with sums and totals, and nothing else", call);
    if (b && (b->device != X->device || b->type != X->type || b->m != X->rows || b->n != X->cols ||
              b->k != C->rows || X->format != KILN_DENSE || ki_is_split(X)))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the bounds were made for another X or number of centres",
                       call);
done:
    return status;
}

kiln_status kiln_assign(const kiln_assignment *result, const kiln_matrix *X, const kiln_matrix *C,
                        const kiln_matrix *weights) {
    static const char call[] = "kiln_assign";
    kiln_assignment to;
    kiln_status status;
    if (!result) return ki_fail(KILN_ERR_ARGUMENT, "%s: result is NULL", call);
    TRY(KI_TAKE(kiln_assignment, &to, result));
    TRY(check(call, &to, X, C, weights));
    for (int64_t i = 0; to.totals && X->rows == 0 && i < 2 * C->rows; i++) to.totals[i] = 0;
    if (X->rows == 0) return to.sums ? kiln_fill(to.sums, 0) : KILN_OK;
    const struct ki_assign assign = {.labels = to.labels,
                                     .distances = to.distances,
                                     .sums = to.sums,
                                     .totals = to.totals,
                                     .first = to.first,
                                     .X = X,
                                     .C = C,
                                     .weights = weights,
                                     .bounds = to.bounds};
    if (!ki_is_split(X)) return run(&assign);
    return ki_share(&(struct ki_shared){.rules = &table,
                                        .whole = &assign,
                                        .sums = to.totals ? 2 * C->rows : 0,
                                        .fresh = to.first == 0,
                                        .narrow = keeps(X),
                                        .run = run});
done:
    return status;
}
