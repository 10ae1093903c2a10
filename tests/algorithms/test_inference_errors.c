/* This file says what kiln_inference_of refuses, and that it survives without memory. Its numbers are held
 * against statsmodels in python/tests/test_inference.py. */
#include "algorithms/least_squares.h"
#include "faults/brutal.h"

enum { M = 8, N = 2 };

static const double X[M * N] = {1, 0, 2, 1, 3, 0, 4, 1, 5, 1, 6, 0, 7, 1, 8, 0};
static const double y[M] = {1, 2, 2, 4, 3, 7, 6, 9};
static const int64_t groups[M] = {0, 0, 1, 1, 2, 2, 0, 1};

struct operands {
    kiln_device *device;
    kiln_matrix *A, *Y, *w, *b;
};

static void statistics(void *context) {
    (void)context;
    struct operands o = {0};
    kiln_inference *made = NULL;
    kiln_matrix *R = NULL, *P = NULL;
    double covariance[(N + 1) * (N + 1)];
    STEP(kiln_device_open(&o.device, "cpu", NULL));
    STEP(kiln_matrix_dense(&o.A, o.device, KILN_F64, M, N, X));
    STEP(kiln_matrix_dense(&o.Y, o.device, KILN_F64, M, 1, y));
    STEP(kiln_matrix_dense(&o.w, o.device, KILN_F64, N, 1, NULL));
    STEP(kiln_matrix_dense(&o.b, o.device, KILN_F64, 1, 1, NULL));
    STEP(kiln_matrix_dense(&R, o.device, KILN_F64, M, 7, NULL));
    STEP(kiln_matrix_dense(&P, o.device, KILN_F64, M, 6, NULL));
    const kiln_loss loss = {.kind = KILN_LOSS_GLM, .family = KILN_POISSON, .y = o.Y};
    STEP(kiln_glm(o.w, o.b, o.A, o.Y, &(kiln_glm_options){.family = KILN_POISSON}, NULL));
    for (int errors = KILN_ERRORS_MODEL; errors <= KILN_ERRORS_CLUSTER; errors++) {
        if (errors == KILN_ERRORS_HC1 || errors == KILN_ERRORS_HC2) continue; /* as the next one */
        const kiln_inference_options options = {
            .errors = (kiln_errors)errors, .groups = groups, .group_count = 3};
        STEP(kiln_inference_of(&made, o.w, o.b, o.A, &loss, &options));
        STEP(kiln_inference_residuals(R, made, o.A, &loss));
        STEP(kiln_inference_predict(P, made, o.A, NULL, 0.9));
        assert_ok(kiln_inference_covariance(covariance, made));
        assert_true(covariance[0] > 0 && kiln_inference_value(made, "parameters") == 3);
        kiln_inference_free(made);
        made = NULL;
    }
    kiln_matrix *const all[] = {o.A, o.Y, o.w, o.b, R, P};
    for (int i = 0; i < 6; i++) kiln_matrix_free(all[i]);
    kiln_device_close(o.device);
}

static void survives_without_memory(void **state) {
    (void)state;
    brutal_memory("statistics", 1, statistics, NULL);
}

static void refuses(void **state) {
    (void)state;
    kiln_device *cpu = NULL;
    assert_ok(kiln_device_open(&cpu, "cpu", NULL));
    kiln_matrix *A = dense(cpu, KILN_F64, M, N, X), *Y = dense(cpu, KILN_F64, M, 1, y),
                *w = dense(cpu, KILN_F64, N, 1, X), *b = dense(cpu, KILN_F64, 1, 1, X),
                *B = dense(cpu, KILN_F64, M - 1, N, X);
    static const int64_t wrong[M] = {0, 0, 1, 1, 2, 3, 0, 1}, one[M];
    const kiln_loss good = {.kind = KILN_LOSS_SQUARED, .y = Y};
    const struct {
        const kiln_matrix *X, *w;
        kiln_loss loss;
        kiln_inference_options options;
        kiln_status status;
        const char *says;
    } refusals[] = {
        {NULL, w, good, {0}, KILN_ERR_ARGUMENT, "is NULL"},
        {B, w, good, {0}, KILN_ERR_ARGUMENT, "y is 8 x 1, but must be 7 x 1"},
        {A, b, good, {0}, KILN_ERR_ARGUMENT, "w is 1 x 1, but must be 2 x 1"},
        {A, w, {.kind = KILN_LOSS_SOFTMAX, .y = Y}, {0}, KILN_ERR_UNSUPPORTED, "statistics are of"},
        {A, w, {.kind = KILN_LOSS_LOGISTIC, .y = Y}, {0}, KILN_ERR_DATA, "row 1 of y is 2"},
        {A, w, good, {.errors = (kiln_errors)9}, KILN_ERR_ARGUMENT, "no kind of errors has the number 9"},
        {A, w, good, {.errors = KILN_ERRORS_CLUSTER}, KILN_ERR_ARGUMENT, "need the groups"},
        {A,
         w,
         good,
         {.errors = KILN_ERRORS_CLUSTER, .groups = wrong, .group_count = 3},
         KILN_ERR_ARGUMENT,
         "row 5 is of group 3, not of 0 ... 2"},
        {A,
         w,
         good,
         {.errors = KILN_ERRORS_CLUSTER, .groups = one, .group_count = 1},
         KILN_ERR_DATA,
         "two or more"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        kiln_inference *made = NULL;
        const kiln_status status = kiln_inference_of(&made, refusals[i].w, b, refusals[i].X,
                                                     &refusals[i].loss, &refusals[i].options);
        if (status != refusals[i].status || made || !strstr(kiln_last_error()->message, refusals[i].says))
            fail_msg("%s expected, but got: %s", refusals[i].says, kiln_last_error()->message);
    }
    kiln_matrix *const all[] = {A, Y, w, b, B};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    kiln_device_close(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(survives_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
