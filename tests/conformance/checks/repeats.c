/* This file says what kiln_device_options.deterministic promises of every device: twenty runs (three where a
 * processor stands in for a GPU and takes long), of which the later ones use what was derived from X in the
 * earlier, give the same bits; and they are right. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "core/device.h"

enum { RUNS = 20, RUNS_EMULATED = 3, OPERATIONS = 4 };
static const char *const names[OPERATIONS] = {"mmchain", "multiply transposed", "gram_diagonal",
                                              "loss_gradient"};

static kiln_status run_one(struct work *work, int operation, double *value) {
    const struct problem *p = work->problem;
    kiln_matrix *const X = work->X.matrix, *const v = work->v.matrix, *const w = work->w.matrix;
    const kiln_loss loss = {.kind = p->k == 1 ? KILN_LOSS_SQUARED : KILN_LOSS_SOFTMAX,
                            .y = work->target.matrix};
    *value = 0;
    switch (operation) {
    case 0: return kiln_mmchain(w, 0.7, X, v, work->y.matrix, 0.5, work->shift.matrix);
    case 1: return kiln_multiply(w, 1, KILN_TRANSPOSED, X, work->z.matrix, 0, NULL);
    case 2: return kiln_gram_diagonal(work->offset.matrix, X, v);
    default: return kiln_loss_gradient(value, w, NULL, NULL, &loss, X, work->y.matrix, NULL);
    }
}

static kiln_status fetch(double *bits, struct work *work, int operation, double value) {
    const kiln_matrix *out = operation == 2 ? work->offset.matrix : work->w.matrix;
    memcpy(bits, &value, sizeof value);
    return kiln_matrix_get(bits + 1, out);
}

static void repeat(struct check_context *context, struct work *work, int operation) {
    char text[200];
    const int64_t n = work->problem->cols * work->problem->k;
    const size_t bytes = (size_t)(n + 1) * sizeof(double);
    double *first = calloc(1, bytes), *again = calloc(1, bytes), value;
    problem_describe(text, sizeof text, work->problem);
    const kiln_device *device = work->device;
    const int runs = device->properties.is_gpu || ki_on_cpu(device) ? RUNS : RUNS_EMULATED;
    int same = 0;
    kiln_status status = KILN_OK;
    for (int run = 0; run < runs && status == KILN_OK; run++) {
        status = run_one(work, operation, &value);
        if (status == KILN_OK) status = fetch(run ? again : first, work, operation, value);
        same += run == 0 || memcmp(first, again, bytes) == 0;
    }
    check_report(context, status == KILN_OK && same == runs, "repeats: %s, %s: %d of %d runs alike: %s",
                 names[operation], text, same, runs, status == KILN_OK ? "" : kiln_last_error()->message);
    if (operation == 0 && status == KILN_OK) {
        struct expected expected;
        int64_t worst;
        reference_mmchain(&expected, 0.7, &work->X.host, &work->v.host, &work->y.host, 0.5,
                          &work->shift.host);
        const double ratio = error_ratio(&worst, &expected, work->type, first + 1);
        check_report(context, ratio <= expected.gate, "repeats: %s: error ratio %.3g at %lld", text, ratio,
                     (long long)worst);
        expected_free(&expected);
    }
    free(first);
    free(again);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    CHECK_OK(make_random(work, &work->v, p->rows, 1));
    CHECK_OK(make_random(work, &work->y, p->cols, p->k));
    CHECK_OK(make_random(work, &work->z, p->rows, p->k));
    CHECK_OK(make_random(work, &work->shift, p->cols, p->k));
    CHECK_OK(make_filled(work, &work->target, p->rows, 1, 1));
    CHECK_OK(make_filled(work, &work->offset, p->cols, 1, 0));
    return make_output(work, p->cols, p->k);
}

static void run(struct check_context *context) {
    static const struct problem problems[] = {
        {.format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = 301, .cols = 40, .k = 1},
        {.format = KILN_CSR, .pattern = PATTERN_ZIPF, .rows = 2003, .cols = 700, .per_row = 20, .k = 1},
        {.format = KILN_CSR, .pattern = PATTERN_HOT_COLUMN, .rows = 9001, .cols = 50, .per_row = 4, .k = 1},
        {.format = KILN_CSR, .pattern = PATTERN_ZIPF, .rows = 17001, .cols = 60, .per_row = 5, .k = 9},
        {.format = KILN_CSR, .pattern = PATTERN_DENSE_ROW, .rows = 301, .cols = 9001, .per_row = 5, .k = 3}};
    const kiln_device_options options = {.deterministic = 1};
    kiln_device *device = NULL;
    kiln_status status = kiln_device_open(&device, context->device_name, &options);
    for (size_t i = 0; i < sizeof problems / sizeof *problems && status == KILN_OK; i++) {
        struct work work = {.problem = &problems[i], .device = device, .type = context->type};
        status = prepare(&work);
        for (int operation = 0; operation < OPERATIONS && status == KILN_OK; operation++)
            repeat(context, &work, operation);
        work_free(&work);
    }
    check_report(context, status == KILN_OK, "repeats: %s", kiln_last_error()->message);
    kiln_device_close(device);
}

const struct check check_repeats = {.name = "repeats", .run = run};
