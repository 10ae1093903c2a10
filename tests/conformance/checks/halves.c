/* Sampled products of factors of half precision, alone and times a factor, against the references of sddmm
 * and sddmm_multiply, in loads of one number to eight, and the calls that must be refused. The factors hold
 * multiples of 1/64 up to 2, which both half precisions have. */
#include <kiln/half.h>
#include <stdlib.h>

#include "sampled.h"

extern const struct operation operation_sddmm, operation_sddmm_multiply;

static void coarsen(struct operand *A) {
    for (int64_t e = 0; e < A->host.nnz; e++) host_set(&A->host, e, floor(64 * host_get(&A->host, e)) / 64);
}

static kiln_status call(struct work *work, const struct operation *operation, const kiln_sample *sample,
                        const kiln_half *A, const kiln_half *B, double *sum) {
    const struct problem *p = work->problem;
    if (operation == &operation_sddmm)
        return kiln_sddmm_half(work->w.matrix, sum, p->alpha, sample, A, B, p->beta);
    return kiln_sddmm_multiply_half(work->w.matrix, sum, p->alpha,
                                    p->flags & WITH_TRANSPOSED ? KILN_TRANSPOSED : KILN_PLAIN, sample, A, B,
                                    p->beta, work->z.matrix);
}

static kiln_status run_halves(struct work *work, const struct operation *operation, kiln_half_type type,
                              double *sum) {
    const struct problem *p = work->problem;
    const kiln_sample sample = {
        .size = sizeof sample, .kind = (kiln_sample_kind)p->kind, .S = work->X.matrix};
    kiln_half *A = NULL, *B = NULL;
    kiln_status status = kiln_half_copy(&A, type, work->v.matrix);
    if (status == KILN_OK) status = kiln_half_copy(&B, type, work->y.matrix);
    if (status == KILN_OK) status = call(work, operation, &sample, A, B, sum);
    kiln_half_free(A);
    kiln_half_free(B);
    return status;
}

static kiln_status compare(struct check_context *context, struct work *work,
                           const struct operation *operation, kiln_half_type type) {
    const struct problem *p = work->problem;
    const char *what = operation->name;
    struct expected expected[RESULTS] = {{0}};
    double sum = 0, again = 0;
    int64_t worst = 0;
    operation->expect(expected, work);
    float *got = calloc((size_t)expected[RESULT_W].count + 1, sizeof *got);
    kiln_status status = run_halves(work, operation, type, &sum);
    if (status == KILN_OK) status = kiln_matrix_get(got, work->w.matrix);
    if (status == KILN_OK && p->beta == 0) status = run_halves(work, operation, type, &again);
    const struct expected *of_sum = &expected[RESULT_SCALARS];
    const double ratio = error_ratio(&worst, &expected[RESULT_W], KILN_F32, got),
                 miss = fabs(sum - (double)of_sum->value[0]);
    check_report(context, status == KILN_OK && ratio <= expected[RESULT_W].gate,
                 "halves: %s, type %d, k %lld: %s; element %lld, error ratio %.3g of %.3g", what, (int)type,
                 (long long)p->k, kiln_last_error()->message, (long long)worst, ratio,
                 expected[RESULT_W].gate);
    check_report(context,
                 miss <= 1e-6 * (double)p->k * (double)of_sum->gauge[0] && (p->beta != 0 || sum == again),
                 "halves: %s, type %d, k %lld: the sum is %.9g, not %.9g, and then %.9g", what, (int)type,
                 (long long)p->k, sum, (double)of_sum->value[0], again);
    for (int r = 0; r < RESULTS; r++) expected_free(&expected[r]);
    free(got);
    return KILN_OK;
}

static kiln_status try_problem(struct check_context *context, struct work *work,
                               const struct operation *operation, kiln_half_type type) {
    CHECK_OK(operation->prepare(work));
    coarsen(&work->v);
    coarsen(&work->y);
    CHECK_OK(kiln_matrix_set(work->v.matrix, work->v.host.values));
    CHECK_OK(kiln_matrix_set(work->y.matrix, work->y.host.values));
    return compare(context, work, operation, type);
}

/* turned: the product is the transposed one. */
static void products(struct check_context *context, const struct operation *operation, bool turned) {
    static const int64_t widths[] = {1, 2, 3, 12, 32, 100, 128, 257, 1000, 4096};
    static const enum pattern patterns[] = {PATTERN_UNIFORM, PATTERN_EMPTY_ROWS, PATTERN_POWER_LAW,
                                            PATTERN_DENSE_ROW, PATTERN_NO_ENTRIES};
    kiln_device_info info = {.size = sizeof info};
    kiln_device_get_info(context->device, &info);
    const bool thin = !info.is_gpu && context->device_name[0] == 'o'; /* where building kernels takes long */
    for (int i = 0; i < 10; i += thin ? 3 : 1) {
        const bool adds = i % 3 == 1;
        const struct problem problem = {.format = KILN_CSR,
                                        .pattern = patterns[i % 5],
                                        .rows = 61,
                                        .cols = 43,
                                        .per_row = 5,
                                        .k = widths[i],
                                        .kind = 1 + i % 4,
                                        .flags = (adds ? WITH_Z_ALIAS : 0) | (turned ? WITH_TRANSPOSED : 0),
                                        .alpha = adds ? -1.5 : 1,
                                        .beta = adds ? 0.3 : 0};
        struct work work = {.problem = &problem, .device = context->device, .type = KILN_F32};
        if (try_problem(context, &work, operation, (i + turned) % 2 ? KILN_BF16 : KILN_F16) != KILN_OK)
            check_report(context, false, "halves: %s", kiln_last_error()->message);
        work_free(&work);
    }
}

#define REFUSED(call)                                                                                        \
    do {                                                                                                     \
        const kiln_status found = (call);                                                                    \
        check_report(context, found == KILN_ERR_ARGUMENT, "halves: %s: status %d", #call, (int)found);       \
    } while (0)

static void refusals(struct check_context *context) {
    static const uint16_t ones[6] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
    static const int64_t starts[] = {0, 1, 2};
    static const int32_t cols[] = {2, 0};
    kiln_device *device = context->device;
    kiln_half *A = NULL, *B = NULL, *brain = NULL, *other = NULL;
    kiln_matrix *S = NULL, *dense = NULL;
    double sum = 0;
    const kiln_status made[] = {kiln_matrix_csr(&S, device, context->type, 2, 3, starts, cols, NULL),
                                kiln_matrix_dense(&dense, device, context->type, 2, 2, NULL),
                                kiln_half_dense(&A, device, KILN_F16, 2, 2, ones),
                                kiln_half_dense(&B, device, KILN_F16, 3, 2, ones),
                                kiln_half_dense(&brain, device, KILN_BF16, 3, 2, ones)};
    for (int i = 0; i < 5; i++) check_report(context, made[i] == KILN_OK, "halves: operand %d", i);
    kiln_sample sample = {.size = sizeof sample, .kind = KILN_SAMPLE_PRODUCT, .S = S};
    if (context->type == KILN_F64) {
        REFUSED(kiln_sddmm_half(NULL, &sum, 1, &sample, A, B, 0));
    } else {
        check_report(context, kiln_sddmm_half(NULL, &sum, 1, &sample, A, B, 0) == KILN_OK && sum == 8,
                     "halves: the sum of two products of 2 squared is %g: %s", sum,
                     kiln_last_error()->message);
    }
    REFUSED(kiln_sddmm_half(NULL, NULL, 1, &sample, A, B, 0));
    REFUSED(kiln_sddmm_half(NULL, &sum, 1, NULL, A, B, 0));
    REFUSED(kiln_sddmm_half(NULL, &sum, 1, &sample, NULL, B, 0));
    REFUSED(kiln_sddmm_half(NULL, &sum, 1, &sample, A, NULL, 0));
    REFUSED(kiln_sddmm_half(NULL, &sum, 1, &sample, A, A, 0));
    REFUSED(kiln_sddmm_half(NULL, &sum, 1, &sample, B, B, 0));
    REFUSED(kiln_sddmm_half(NULL, &sum, 1, &sample, A, brain, 0));
    if (context->type == KILN_F32) {
        REFUSED(kiln_sddmm_multiply_half(NULL, NULL, 1, KILN_PLAIN, &sample, A, B, 0, NULL));
        REFUSED(kiln_sddmm_multiply_half(dense, NULL, 1, KILN_TRANSPOSED, &sample, A, B, 0, NULL));
        REFUSED(kiln_sddmm_multiply_half(dense, NULL, 1, (kiln_transpose)7, &sample, A, B, 0, NULL));
        REFUSED(kiln_sddmm_multiply_half(dense, NULL, 1, KILN_PLAIN, &sample, A, brain, 0, NULL));
        REFUSED(kiln_sddmm_multiply_half(dense, NULL, 1, KILN_PLAIN, &sample, A, B, 1, S));
    }
    sample.A = dense;
    REFUSED(kiln_sddmm_half(NULL, &sum, 1, &sample, A, B, 0));
    REFUSED(kiln_half_dense(NULL, device, KILN_F16, 2, 2, ones));
    REFUSED(kiln_half_dense(&other, NULL, KILN_F16, 2, 2, ones));
    REFUSED(kiln_half_dense(&other, device, (kiln_half_type)3, 2, 2, ones));
    REFUSED(kiln_half_dense(&other, device, KILN_F16, 2, 0, ones));
    REFUSED(kiln_half_dense(&other, device, KILN_F16, -1, 2, ones));
    REFUSED(kiln_half_dense(&other, device, KILN_F16, 2, 2, NULL));
    REFUSED(kiln_half_copy(&other, KILN_F16, NULL));
    REFUSED(kiln_half_copy(&other, KILN_F16, S));
    check_report(context, !other, "halves: a refused call changed its out-parameter");
    kiln_half_free(A);
    kiln_half_free(B);
    kiln_half_free(brain);
    kiln_matrix_free(S);
    kiln_matrix_free(dense);
}

static void run(struct check_context *context) {
    if (context->type == KILN_F32) {
        products(context, &operation_sddmm, false);
        products(context, &operation_sddmm_multiply, false);
        products(context, &operation_sddmm_multiply, true);
    }
    refusals(context);
}

const struct check check_halves = {.name = "halves", .run = run, .single = true};
