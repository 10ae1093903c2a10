/* What kiln_glm refuses, that a refused or failed call leaves its results as they were, and that it survives
 * without memory. */
#include "algorithms/least_squares.h"
#include "faults/brutal.h"

enum { M = 6, N = 2 };

static kiln_device *cpu;

/* The operands of a call, all good until a case spoils one. */
struct call {
    kiln_matrix *w, *b, *X, *y, *weights, *offset, *errors;
    kiln_glm_options options;
};

static kiln_matrix *filled(int64_t rows, int64_t cols, double first) {
    double *values = new_doubles(rows * cols);
    for (int64_t i = 0; i < rows * cols; i++) values[i] = first + (double)(i * i % 11) / 8;
    kiln_matrix *A = dense(cpu, KILN_F64, rows, cols, values);
    free(values);
    return A;
}

static void call_new(struct call *call) {
    static const double y[] = {0.5, 1, 0.25, 0.75, 0.125, 0.5};
    *call = (struct call){.w = filled(N, 1, 100),
                          .b = filled(1, 1, 200),
                          .X = filled(M, N, 0),
                          .y = dense(cpu, KILN_F64, M, 1, y),
                          .weights = filled(M, 1, 1),
                          .offset = filled(M, 1, -1),
                          .errors = filled(N + 1, 1, 300)};
    call->options.family = KILN_GAMMA;
}

static void call_free(struct call *call) {
    kiln_matrix *const all[] = {call->w,       call->b,      call->X,     call->y,
                                call->weights, call->offset, call->errors};
    for (int i = 0; i < 7; i++) kiln_matrix_free(all[i]);
}

static void no_X(struct call *c) {
    replace(&c->X, NULL);
}
static void no_w(struct call *c) {
    replace(&c->w, NULL);
}
static void no_b(struct call *c) {
    replace(&c->b, NULL);
}
static void two_targets(struct call *c) {
    replace(&c->y, filled(M, 2, 1));
}
static void short_offset(struct call *c) {
    replace(&c->offset, filled(M - 1, 1, 1));
}
static void short_errors(struct call *c) {
    replace(&c->errors, filled(N, 1, 1));
}
static void penalised_errors(struct call *c) {
    c->options.l2 = 1;
}
static void many_columns(struct call *c) {
    replace(&c->X, filled(M, 16385, 0));
    replace(&c->w, filled(16385, 1, 0));
    replace(&c->errors, filled(16386, 1, 0));
}
static void no_family(struct call *c) {
    c->options.family = 17;
}
static void no_link(struct call *c) {
    c->options.link = 17;
}
static void tweedie_2(struct call *c) {
    c->options.family = KILN_TWEEDIE;
    c->options.parameter = 2;
}
static void no_alpha(struct call *c) {
    c->options.family = KILN_NEGATIVE_BINOMIAL;
}
static void no_power(struct call *c) {
    c->options.link = KILN_LINK_POWER;
}
static void negative_l2(struct call *c) {
    c->options.l2 = -2;
}
static void nan_tolerance(struct call *c) {
    c->options.tolerance = NAN;
}
static void zero_gamma(struct call *c) {
    spoil(c->y, 3, 0);
}
static void negative_count(struct call *c) {
    c->options.family = KILN_POISSON;
    spoil(c->y, 5, -1);
}
static void two_of_one(struct call *c) {
    c->options.family = KILN_BINOMIAL;
    spoil(c->y, 1, 2);
}
static void zero_above_2(struct call *c) {
    c->options.family = KILN_TWEEDIE;
    c->options.parameter = 2.5;
    spoil(c->y, 2, 0);
}
static void nan_y(struct call *c) {
    spoil(c->y, 2, NAN);
}
static void infinite_offset(struct call *c) {
    spoil(c->offset, 4, INFINITY);
}
static void negative_weight(struct call *c) {
    spoil(c->weights, 3, -1);
}
static void zero_weights(struct call *c) {
    for (int i = 0; i < M; i++) spoil(c->weights, i, 0);
}
static void wide_offsets(struct call *c) { /* proportions: eta in (0, 1) */
    c->options.family = KILN_BINOMIAL;
    c->options.link = KILN_LINK_IDENTITY;
    spoil(c->offset, 0, 5);
}
static void huge_targets(struct call *c) { /* their squares overflow, whatever the mean */
    c->options.family = KILN_GAUSSIAN;
    for (int i = 0; i < M; i++) spoil(c->y, i, i % 2 ? 1e308 : -1e308);
}
static void no_start(struct call *c) { /* x and -x: no w makes all eta positive */
    c->options.link = KILN_LINK_IDENTITY;
    c->options.no_intercept = 1;
    for (int i = 0; i < M; i++) {
        spoil(c->X, 2 * i, i % 2 ? 1 : -1);
        spoil(c->X, 2 * i + 1, 0);
        spoil(c->offset, i, 0);
    }
    replace(&c->errors, filled(N, 1, 0));
}

static const struct {
    void (*spoil)(struct call *call);
    kiln_status status;
    const char *says;
} refusals[] = {
    {no_X, KILN_ERR_ARGUMENT, "X is NULL"},
    {no_w, KILN_ERR_ARGUMENT, "w is NULL"},
    {no_b, KILN_ERR_ARGUMENT, "b is NULL"},
    {two_targets, KILN_ERR_ARGUMENT, "y is 6 x 2, but must be 6 x 1"},
    {short_offset, KILN_ERR_ARGUMENT, "offset is 5 x 1, but must be 6 x 1"},
    {short_errors, KILN_ERR_ARGUMENT, "standard_errors is 2 x 1, but must be 3 x 1"},
    {penalised_errors, KILN_ERR_ARGUMENT, "l2 must be 0"},
    {many_columns, KILN_ERR_LIMIT, "16385 columns; at most 16384"},
    {no_family, KILN_ERR_ARGUMENT, "no family has the number 17"},
    {no_link, KILN_ERR_ARGUMENT, "no link has the number 17"},
    {tweedie_2, KILN_ERR_ARGUMENT, "(kiln_glm_options.parameter) is 2"},
    {no_alpha, KILN_ERR_ARGUMENT, "(kiln_glm_options.parameter) is 0"},
    {no_power, KILN_ERR_ARGUMENT, "power of the link (kiln_glm_options.link_power) is 0"},
    {negative_l2, KILN_ERR_ARGUMENT, "l2 is -2"},
    {nan_tolerance, KILN_ERR_ARGUMENT, "tolerance is nan"},
    {zero_gamma, KILN_ERR_DATA, "row 3 of y is 0, but the family wants a number > 0"},
    {negative_count, KILN_ERR_DATA, "row 5 of y is -1, but the family wants a number >= 0"},
    {two_of_one, KILN_ERR_DATA, "row 1 of y is 2, but the family wants a number >= 0 and <= 1"},
    {zero_above_2, KILN_ERR_DATA, "row 2 of y is 0, but the family wants a number > 0"},
    {nan_y, KILN_ERR_DATA, "row 2, column 0 of y is nan"},
    {infinite_offset, KILN_ERR_DATA, "row 4, column 0 of offset is inf"},
    {negative_weight, KILN_ERR_DATA, "row 3, column 0 of weights is -1"},
    {zero_weights, KILN_ERR_DATA, "weights are all zero"},
    {wide_offsets, KILN_ERR_DATA, "no intercept gives every row a mean in its range"},
    {huge_targets, KILN_ERR_DATA, "the objective overflows f64 at every constant mean"},
    {no_start, KILN_ERR_DATA, "no coefficients were found"},
};

static void same(const kiln_matrix *A, double *before) {
    if (!A) return;
    double *now = values_of(A);
    assert_memory_equal(now, before, (size_t)kiln_matrix_nnz(A) * sizeof *now);
    free(now);
    free(before);
}

static void refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct call c;
        call_new(&c);
        refusals[i].spoil(&c);
        c.options.weights = c.weights;
        c.options.offset = c.offset;
        c.options.standard_errors = c.errors;
        kiln_report report, before;
        memset(&report, 0x5a, sizeof report);
        report.size = sizeof report;
        before = report;
        double *w = c.w ? values_of(c.w) : NULL, *b = c.b ? values_of(c.b) : NULL,
               *errors = values_of(c.errors);
        const kiln_status status = kiln_glm(c.w, c.b, c.X, c.y, &c.options, &report);
        if (status != refusals[i].status || !strstr(kiln_last_error()->message, refusals[i].says))
            fail_msg("%s expected: %s, but got %s: %s", kiln_status_name(refusals[i].status),
                     refusals[i].says, kiln_status_name(status), kiln_last_error()->message);
        assert_memory_equal(&report, &before, sizeof report);
        same(c.w, w);
        same(c.b, b);
        same(c.errors, errors);
        call_free(&c);
    }
}

/* b may be missing without an intercept, options and report always; a b that is given becomes 0. */
static void optional_operands(void **state) {
    (void)state;
    struct call c;
    call_new(&c);
    assert_ok(kiln_glm(c.w, c.b, c.X, c.y, NULL, NULL));
    const kiln_glm_options options = {.family = KILN_POISSON, .no_intercept = 1};
    assert_ok(kiln_glm(c.w, NULL, c.X, c.y, &options, NULL));
    assert_ok(kiln_glm(c.w, c.b, c.X, c.y, &options, NULL));
    double *b = values_of(c.b);
    assert_true(*b == 0);
    free(b);
    call_free(&c);
}

/* One fit with all options, and one that needs a start of its own. */
static void fits(void *context) {
    (void)context;
    static const double X[12 * 2] = {1, 2, 1, 5, 1, 3, 1, 9, 1, 4, 1, 7, 1, 6, 1, 8, 1, 2, 1, 3, 1, 1, 1, 5};
    static const double y[12] = {3, 6, 2, 11, 5, 7, 8, 8, 1, 5, 2, 4};
    kiln_device *device = NULL;
    kiln_matrix *A = NULL, *Y = NULL, *w = NULL, *b = NULL, *s = NULL, *errors = NULL;
    kiln_report report = {0};
    STEP(kiln_device_open(&device, "cpu", NULL));
    STEP(kiln_matrix_dense(&A, device, KILN_F64, 12, 2, X));
    STEP(kiln_matrix_dense(&Y, device, KILN_F64, 12, 1, y));
    STEP(kiln_matrix_dense(&s, device, KILN_F64, 12, 1, y));
    STEP(kiln_matrix_dense(&w, device, KILN_F64, 2, 1, NULL));
    STEP(kiln_matrix_dense(&b, device, KILN_F64, 1, 1, NULL));
    STEP(kiln_matrix_dense(&errors, device, KILN_F64, 3, 1, NULL));
    const kiln_glm_options options = {
        .family = KILN_POISSON, .weights = s, .offset = s, .standard_errors = errors};
    STEP(kiln_glm(w, b, A, Y, &options, &report));
    assert_int_equal(report.converged, 1);
    kiln_report_free(&report);
    const kiln_glm_options bounded = {.family = KILN_GAMMA, .link = KILN_LINK_IDENTITY, .no_intercept = 1};
    STEP(kiln_glm(w, NULL, A, Y, &bounded, &report));
    assert_int_equal(report.converged, 1);
    kiln_report_free(&report);
    kiln_matrix *const all[] = {A, Y, s, w, b, errors};
    for (int i = 0; i < 6; i++) kiln_matrix_free(all[i]);
    kiln_device_close(device);
}

/* Two steps on so many rows that the first one is a sample's solution. */
enum { TALL = 35000, NARROW = 15 };

static void tall_fit(void *context) {
    const double *X = context, *y = X + TALL * NARROW;
    kiln_device *device = NULL;
    kiln_matrix *A = NULL, *Y = NULL, *w = NULL, *b = NULL;
    kiln_report report = {0};
    STEP(kiln_device_open(&device, "cpu", NULL));
    STEP(kiln_matrix_dense(&A, device, KILN_F64, TALL, NARROW, X));
    STEP(kiln_matrix_dense(&Y, device, KILN_F64, TALL, 1, y));
    STEP(kiln_matrix_dense(&w, device, KILN_F64, NARROW, 1, NULL));
    STEP(kiln_matrix_dense(&b, device, KILN_F64, 1, 1, NULL));
    const kiln_glm_options options = {
        .family = KILN_POISSON, .weights = Y, .offset = Y, .l2 = 1, .max_iterations = 2};
    STEP(kiln_glm(w, b, A, Y, &options, &report));
    assert_true(report.iterations == 2 && report.trace[1].inner == 0 && report.trace[2].inner == 0);
    kiln_report_free(&report);
    kiln_matrix *const all[] = {A, Y, w, b};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
    kiln_device_close(device);
}

static void survives_without_memory(void **state) {
    (void)state;
    double *values = malloc(sizeof *values * TALL * (NARROW + 1));
    uint64_t random = 5;
    assert_non_null(values);
    for (int i = 0; i < TALL * NARROW; i++) values[i] = random_uniform(&random);
    for (int i = 0; i < TALL; i++) values[TALL * NARROW + i] = 1 + 3 * values[i * NARROW];
    brutal_memory("kiln_glm", 2, fits, NULL);
    brutal_memory("kiln_glm with a sample", 1, tall_fit, values);
    free(values);
}

static int open_device(void **state) {
    (void)state;
    assert_ok(kiln_device_open(&cpu, "cpu", NULL));
    return 0;
}

static int close_device(void **state) {
    (void)state;
    kiln_device_close(cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(optional_operands),
                                       cmocka_unit_test(survives_without_memory)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
