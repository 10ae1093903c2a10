/* This file says what kiln_glm refuses, that a refused or failed call leaves its results as they were, and
 * that it survives without memory. */
#include "algorithms/refusals.h"
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

static kiln_status ask(const void *context, kiln_report *report) {
    const struct call *c = context;
    kiln_glm_options options = c->options;
    options.weights = c->weights;
    options.offset = c->offset;
    options.standard_errors = c->errors;
    return kiln_glm(c->w, c->b, c->X, c->y, &options, report);
}

static const struct refusal refusals[] = {
    {KILN_ERR_ARGUMENT, "X is NULL", {IS_NULL(X)}},
    {KILN_ERR_ARGUMENT, "w is NULL", {IS_NULL(w)}},
    {KILN_ERR_ARGUMENT, "b is NULL", {IS_NULL(b)}},
    {KILN_ERR_ARGUMENT, "y is 6 x 2, but must be 6 x 1", {IS(y, M, 2)}},
    {KILN_ERR_ARGUMENT, "offset is 5 x 1, but must be 6 x 1", {IS(offset, M - 1, 1)}},
    {KILN_ERR_ARGUMENT, "standard_errors is 2 x 1, but must be 3 x 1", {IS(errors, N, 1)}},
    {KILN_ERR_ARGUMENT, "l2 must be 0", {REAL_FIELD(options.l2, 1)}},
    {KILN_ERR_LIMIT,
     "16385 columns; at most 16384",
     {IS(X, M, 16385), IS(w, 16385, 1), IS(errors, 16386, 1)}},
    {KILN_ERR_ARGUMENT, "no family has the number 17", {FIELD(options.family, 17)}},
    {KILN_ERR_ARGUMENT, "no link has the number 17", {FIELD(options.link, 17)}},
    {KILN_ERR_ARGUMENT,
     "(kiln_glm_options.parameter) is 2",
     {FIELD(options.family, KILN_TWEEDIE), REAL_FIELD(options.parameter, 2)}},
    {KILN_ERR_ARGUMENT, "(kiln_glm_options.parameter) is 0", {FIELD(options.family, KILN_NEGATIVE_BINOMIAL)}},
    {KILN_ERR_ARGUMENT,
     "power of the link (kiln_glm_options.link_power) is 0",
     {FIELD(options.link, KILN_LINK_POWER)}},
    {KILN_ERR_ARGUMENT, "l2 is -2", {REAL_FIELD(options.l2, -2)}},
    {KILN_ERR_ARGUMENT, "tolerance is nan", {REAL_FIELD(options.tolerance, NAN)}},
    {KILN_ERR_DATA, "row 3 of y is 0, but the family wants a number > 0", {AT(y, 3, 0)}},
    {KILN_ERR_DATA,
     "row 5 of y is -1, but the family wants a number >= 0",
     {FIELD(options.family, KILN_POISSON), AT(y, 5, -1)}},
    {KILN_ERR_DATA,
     "row 1 of y is 2, but the family wants a number >= 0 and <= 1",
     {FIELD(options.family, KILN_BINOMIAL), AT(y, 1, 2)}},
    {KILN_ERR_DATA,
     "row 2 of y is 0, but the family wants a number > 0",
     {FIELD(options.family, KILN_TWEEDIE), REAL_FIELD(options.parameter, 2.5), AT(y, 2, 0)}},
    {KILN_ERR_DATA, "row 2, column 0 of y is nan", {AT(y, 2, NAN)}},
    {KILN_ERR_DATA, "row 4, column 0 of offset is inf", {AT(offset, 4, INFINITY)}},
    {KILN_ERR_DATA, "row 3, column 0 of weights is -1", {AT(weights, 3, -1)}},
    {KILN_ERR_DATA, "weights are all zero", {ALL(weights, 0)}},
    /* proportions: eta in (0, 1) */
    {KILN_ERR_DATA,
     "no intercept gives every row a mean in its range",
     {FIELD(options.family, KILN_BINOMIAL), FIELD(options.link, KILN_LINK_IDENTITY), AT(offset, 0, 5)}},
    /* their squares overflow, whatever the mean */
    {KILN_ERR_DATA,
     "the objective overflows f64 at every constant mean",
     {FIELD(options.family, KILN_GAUSSIAN), ALL(y, 1e308), AT(y, 0, -1e308)}},
};

static void refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct call c;
        call_new(&c);
        spoil_call(&c, &refusals[i], cpu);
        assert_refused(&refusals[i], ask, &c, (kiln_matrix *[]){c.w, c.b, c.errors}, 3);
        call_free(&c);
    }
}

/* x and -x: no w makes all eta positive. */
static void refuses_where_nothing_starts(void **state) {
    (void)state;
    static const struct refusal refusal = {KILN_ERR_DATA, "no coefficients were found", {{.what = NOTHING}}};
    struct call c;
    call_new(&c);
    c.options.link = KILN_LINK_IDENTITY;
    c.options.no_intercept = 1;
    for (int i = 0; i < M; i++) {
        spoil(c.X, 2 * i, i % 2 ? 1 : -1);
        spoil(c.X, 2 * i + 1, 0);
        spoil(c.offset, i, 0);
    }
    replace(&c.errors, filled(N, 1, 0));
    assert_refused(&refusal, ask, &c, (kiln_matrix *[]){c.w, c.b, c.errors}, 3);
    call_free(&c);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses), cmocka_unit_test(refuses_where_nothing_starts),
        cmocka_unit_test(optional_operands), cmocka_unit_test(survives_without_memory)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
