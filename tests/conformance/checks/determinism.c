/* This file says what kiln_device_options.deterministic promises of the CPU: the same bits with any number of
 * threads. Shapes are large enough for several parts, one has so many columns that a copy of w for each part
 * is not small beside X, and one so many that threads share rows. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum {
    RESULTS_MAX = 9 * 20000 * 3 + 64,
    NARROW = 300 /* columns up to which the Gram matrix is looked at */
};

/* All sums over rows that there are, of one X, one after the other in `results`. */
static kiln_status compute(double *results, int64_t *count, struct work *work) {
    const struct problem *p = work->problem;
    kiln_matrix *const X = work->X.matrix, *const v = work->v.matrix, *const y = work->y.matrix;
    kiln_matrix *const w = work->w.matrix, *const z = work->z.matrix;
    kiln_loss loss = {.kind = p->k == 1 ? KILN_LOSS_LOGISTIC : KILN_LOSS_SOFTMAX, .y = v, .weights = v};
    double *const start = results;
    void *const values = calloc(RESULTS_MAX, sizeof(double));
    kiln_matrix *diagonal = NULL, *gram = NULL;
    const int64_t width = p->cols <= NARROW ? p->cols : 0;
    kiln_status status = kiln_matrix_dense(&diagonal, work->device, work->type, p->cols, 1, NULL);
    if (status == KILN_OK) status = kiln_matrix_dense(&gram, work->device, work->type, width, width, NULL);
    for (int step = 0; step < (width > 0 ? 6 : 5) && status == KILN_OK; step++) {
        kiln_matrix *out = step == 5 ? gram : step == 3 ? diagonal : step == 2 ? z : w;
        switch (step) {
        case 0: status = kiln_mmchain(w, 1, X, v, y, 0, NULL); break;
        case 1: status = kiln_loss_gradient(results++, w, NULL, NULL, &loss, X, y, NULL); break;
        case 2: status = kiln_multiply(z, 1, KILN_PLAIN, X, y, 0, NULL); break;
        case 3: status = kiln_gram_diagonal(diagonal, X, v); break;
        case 5: status = kiln_gram(gram, NULL, X, v, diagonal); break;
        default: status = kiln_multiply(w, 1, KILN_TRANSPOSED, X, z, 0, NULL);
        }
        if (status == KILN_OK) status = kiln_matrix_get(values, out);
        const size_t bytes = (size_t)kiln_matrix_nnz(out) * (work->type == KILN_F32 ? 4 : 8);
        memcpy(results, values, bytes);
        results += (bytes + 7) / 8;
    }
    if (status == KILN_OK) status = kiln_dot(results, z, z);
    results += p->k;
    for (int norm = KILN_NORM_1; norm <= KILN_NORM_MAX && status == KILN_OK; norm++, results += p->k)
        status = kiln_norm(results, z, (kiln_norm_kind)norm);
    *count = results - start;
    kiln_matrix_free(diagonal);
    kiln_matrix_free(gram);
    free(values);
    return status;
}

static kiln_status with_threads(double *results, int64_t *count, const struct problem *problem,
                                kiln_type type, int threads) {
    const kiln_device_options options = {.threads = threads, .deterministic = 1};
    struct work work = {.problem = problem, .type = type};
    kiln_status status = kiln_device_open(&work.device, "cpu", &options);
    if (status != KILN_OK) return status;
    status = make_X(&work);
    if (status == KILN_OK) status = make_random(&work, &work.y, problem->cols, problem->k);
    if (status == KILN_OK) status = make_filled(&work, &work.v, problem->rows, 1, 1);
    if (status == KILN_OK) status = make_random(&work, &work.z, problem->rows, problem->k);
    if (status == KILN_OK) status = make_output(&work, problem->cols, problem->k);
    memset(results, 0, RESULTS_MAX * sizeof *results);
    if (status == KILN_OK) status = compute(results, count, &work);
    work_free(&work);
    kiln_device_close(work.device);
    return status;
}

static void run(struct check_context *context) {
    static const struct problem problems[] = {
        {.format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = 9001, .cols = 37, .k = 1},
        {.format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = 3001, .cols = 37, .k = 3},
        {.format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = 97, .cols = 5003, .k = 1},
        {.format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = 21, .cols = 61501, .k = 1},
        {.format = KILN_CSR, .pattern = PATTERN_POWER_LAW, .rows = 20011, .cols = 300, .per_row = 15, .k = 1},
        {.format = KILN_CSR, .pattern = PATTERN_UNIFORM, .rows = 7001, .cols = 300, .per_row = 15, .k = 3},
        {.format = KILN_CSR,
         .pattern = PATTERN_UNIFORM,
         .rows = 10007,
         .cols = 20000,
         .per_row = 12,
         .k = 1}};
    static const int threads[] = {2, 3, 4, 7, 8, 16};
    double *first = calloc(RESULTS_MAX, sizeof *first), *other = calloc(RESULTS_MAX, sizeof *other);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        char text[200];
        int64_t count = 0;
        problem_describe(text, sizeof text, &problems[i]);
        kiln_status status = with_threads(first, &count, &problems[i], context->type, 1);
        for (size_t t = 0; t < sizeof threads / sizeof *threads && status == KILN_OK; t++) {
            status = with_threads(other, &count, &problems[i], context->type, threads[t]);
            check_report(context, count > 0 && memcmp(first, other, (size_t)count * sizeof *first) == 0,
                         "determinism: %s: %d threads give the bits of one", text, threads[t]);
        }
        check_report(context, status == KILN_OK, "determinism: %s: %s", text, kiln_last_error()->message);
    }
    free(first);
    free(other);
}

const struct check check_determinism = {
    .name = "determinism",
    .run = run,
    .only_cpu = "only the CPU has a number of threads; repeats is for every device"};
