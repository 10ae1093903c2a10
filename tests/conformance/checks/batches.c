/* Every way that the launch model may choose for a batch gives what the others give: sums of whole numbers,
 * which no order of adding up changes, and the place of the largest. */
#include "batches.h"

#include <kiln/tune.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 4096 };

struct trial {
    struct check_context *context;
    kiln_matrix *X, *result;
    kiln_batch *batch;
    int64_t count;
};

static void compare_plans(const struct trial *t, const char *name, kiln_batch_kind kind,
                          const kiln_plan *plans, int64_t plans_count) {
    const size_t bytes = (size_t)t->count * (t->context->type == KILN_F32 ? 4 : 8);
    void *first = calloc(1, bytes + 1), *other = calloc(1, bytes + 1);
    for (int64_t i = 0; i < plans_count; i++) {
        kiln_status status = kiln_fill(t->result, 4711);
        if (!status) status = kiln_batch_reduce_with(&plans[i], t->result, kind, t->X, t->batch);
        if (!status) status = kiln_matrix_get(i ? other : first, t->result);
        check_report(t->context, !status && (i == 0 || memcmp(first, other, bytes) == 0),
                     "batches: %s, reduction %d, %s of %d: %s", name, (int)kind, plans[i].variant,
                     plans[i].vector, status ? kiln_last_error()->message : "the same bits");
    }
    free(first);
    free(other);
}

static void try_batch(struct trial *t, const char *name, kiln_status made, int64_t count) {
    kiln_plan *plans = NULL;
    int64_t plans_count = 0;
    t->count = count;
    if (!made) made = kiln_matrix_dense(&t->result, t->context->device, t->context->type, count, 1, NULL);
    if (!made) made = kiln_batch_plans(&plans, &plans_count, t->context->device, t->batch, t->context->type);
    check_report(t->context, !made && plans_count > 0 && plans[0].chosen, "batches: %s: %s", name,
                 kiln_last_error()->message);
    if (!made) {
        compare_plans(t, name, KILN_BATCH_SUM, plans, plans_count);
        compare_plans(t, name, KILN_BATCH_ARGMAX, plans, plans_count);
    }
    kiln_free(plans);
    kiln_matrix_free(t->result);
    kiln_batch_free(t->batch);
    t->result = NULL;
    t->batch = NULL;
}

static void run(struct check_context *context) {
    enum { ROWS = 301, COLS = 200, ALL = ROWS * COLS };
    struct trial t = {.context = context};
    struct host_matrix values = {.type = context->type, .rows = ROWS, .cols = COLS, .nnz = ALL};
    int64_t offsets[COUNT_MAX + 1] = {0}, count = 0;
    values.values = calloc(ALL, 8);
    for (int64_t e = 0; e < ALL; e++) host_set(&values, e, floor(100 * random_uniform(3, (uint64_t)e)));
    while (count < COUNT_MAX && offsets[count] < ALL) { /* lengths 0, 1, 4 ... and a long one */
        const int64_t length = count == 20 ? 20011 : count % 13 * (count % 13);
        offsets[count + 1] = offsets[count] + length < ALL ? offsets[count] + length : ALL;
        count++;
    }
    const kiln_status made =
        kiln_matrix_dense(&t.X, context->device, context->type, ROWS, COLS, values.values);
    check_report(context, made == KILN_OK, "batches: making X: %s", kiln_last_error()->message);
    if (made == KILN_OK) {
        try_batch(&t, "short rows", kiln_batch_equal(&t.batch, 3001, 20, 0, 0, 0), 3001);
        try_batch(&t, "odd rows", kiln_batch_equal(&t.batch, 1800, 33, 5, 0, 0), 1800);
        try_batch(&t, "long rows", kiln_batch_equal(&t.batch, 3, 20001, 1, 0, 0), 3);
        try_batch(&t, "columns", kiln_batch_equal(&t.batch, COLS, ROWS, 0, 1, COLS), COLS);
        try_batch(&t, "ragged", kiln_batch_ragged(&t.batch, context->device, count, offsets), count);
    }
    kiln_matrix_free(t.X);
    free(values.values);
}

const struct check check_batches = {.name = "batches", .run = run, .single = true};
