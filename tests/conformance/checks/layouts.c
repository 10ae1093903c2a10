/* Passes over a sparse X whose columns are evenly spread and that has entries enough for what is derived from
 * it in the second pass (derived/derived.c): each pass, also by an operation that cannot use it, is right. */
#include <stdlib.h>

#include "cases.h"
#include "core/limits.h"

enum { PASSES = 4, PER_ROW = 20 };

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    CHECK_OK(make_random(work, &work->v, p->rows, 1));
    CHECK_OK(make_random(work, &work->y, p->cols, p->k));
    CHECK_OK(make_random(work, &work->shift, p->cols, p->k));
    return make_output(work, p->cols, p->k);
}

static void pass(struct check_context *context, struct work *work, const struct expected *expected,
                 int number) {
    const int64_t n = work->problem->cols * work->problem->k;
    void *values = calloc((size_t)n, sizeof(double));
    int64_t worst = -1;
    double ratio = 0;
    kiln_status status = kiln_mmchain(work->w.matrix, 0.7, work->X.matrix, work->v.matrix, work->y.matrix,
                                      0.5, work->shift.matrix);
    if (status == KILN_OK) status = kiln_matrix_get(values, work->w.matrix);
    if (status == KILN_OK) ratio = error_ratio(&worst, expected, work->type, values);
    check_report(context, status == KILN_OK && ratio <= expected->gate,
                 "layouts: k=%lld, pass %d: error ratio %.3g at %lld: %s", (long long)work->problem->k,
                 number, ratio, (long long)worst, status == KILN_OK ? "" : kiln_last_error()->message);
    free(values);
}

static void run(struct check_context *context) {
    struct problem p = {.format = KILN_CSR,
                        .pattern = PATTERN_UNIFORM,
                        .rows = ki_limits.columns_entries / PER_ROW + 1573,
                        .cols = 30001,
                        .per_row = PER_ROW};
    kiln_device *device = NULL;
    kiln_status status = kiln_device_open(&device, context->device_name, NULL);
    for (p.k = 1; p.k <= 3 && status == KILN_OK; p.k += 2) {
        struct work work = {.problem = &p, .device = device, .type = context->type};
        struct expected expected = {0};
        status = prepare(&work);
        if (status == KILN_OK) {
            reference_mmchain(&expected, 0.7, &work.X.host, &work.v.host, &work.y.host, 0.5,
                              &work.shift.host);
            for (int number = 1; number <= PASSES; number++) pass(context, &work, &expected, number);
        }
        expected_free(&expected);
        work_free(&work);
    }
    check_report(context, status == KILN_OK, "layouts: %s", kiln_last_error()->message);
    kiln_device_close(device);
}

const struct check check_layouts = {.name = "layouts", .run = run};
