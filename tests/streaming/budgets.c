/* Operations and linear regression with less device memory than X takes: the results of a device with plenty,
 * whether X stays, leaves and returns, or passes through in panels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"
#include "backends/check.h"
#include "core/matrix.h"
#include "ops/linear/gram.h"

enum { ROWS = 2000, COLS = 90, K = 2, RESULTS = 80000 };

static const char *device_name;

struct world {
    kiln_device *device;
    kiln_type type;
    kiln_matrix *X, *y, *Y, *v, *w, *W, *B, *q, *Q, *C, *P, *b, *g;
    double *results;
    int64_t count;
};

static double noise(uint64_t i) {
    i = (i + 1) * 0x9E3779B97F4A7C15u;
    i = (i ^ i >> 31) * 0xBF58476D1CE4E5B9u;
    return (double)(i >> 11) / 9007199254740992.0 * 2 - 1;
}

static void *numbers(kiln_type type, int64_t count, uint64_t seed) {
    void *values = calloc((size_t)count, 8);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        if (type == KILN_F32)
            ((float *)values)[i] = (float)noise(seed * 1000003 + (uint64_t)i);
        else
            ((double *)values)[i] = noise(seed * 1000003 + (uint64_t)i);
    }
    return values;
}

static kiln_matrix *dense(struct world *o, int64_t rows, int64_t cols, uint64_t seed) {
    kiln_matrix *A = NULL;
    void *values = numbers(o->type, rows * cols, seed);
    assert_int_equal(kiln_matrix_dense(&A, o->device, o->type, rows, cols, values), KILN_OK);
    free(values);
    return A;
}

/* Rows of different lengths, some empty, one full. */
static kiln_matrix *sparse(struct world *o) {
    int64_t *start = calloc(ROWS + 1, 8), nnz = 0;
    int32_t *col = calloc((size_t)ROWS * COLS, 4);
    kiln_matrix *A = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        const int64_t length = i == 1234 ? COLS : i % 5 == 0 ? 0 : 1 + i % (2 * COLS / 3);
        for (int64_t j = 0; j < length; j++) col[nnz++] = (int32_t)((j * COLS + i % COLS) / length % COLS);
        start[i + 1] = nnz;
    }
    void *values = numbers(o->type, nnz, 1);
    assert_int_equal(kiln_matrix_csr(&A, o->device, o->type, ROWS, COLS, start, col, values), KILN_OK);
    free(values);
    free(start);
    free(col);
    return A;
}

static void note(struct world *o, const kiln_matrix *A) {
    void *values = calloc((size_t)A->nnz, 8);
    assert_true(o->count + A->nnz <= RESULTS);
    assert_int_equal(kiln_matrix_get(values, A), KILN_OK);
    for (int64_t i = 0; i < A->nnz; i++)
        o->results[o->count++] = o->type == KILN_F32 ? (double)((float *)values)[i] : ((double *)values)[i];
    free(values);
}

#define OK(call)                                                                                             \
    do {                                                                                                     \
        if ((call) != KILN_OK) fail_msg("%s: %s", #call, kiln_last_error()->message);                        \
    } while (0)

static void passes(struct world *o) {
    OK(kiln_mmchain(o->w, 1.5, o->X, o->v, o->y, 0.5, o->b));
    note(o, o->w);
    OK(kiln_mmchain(o->w, 1.5, o->X, NULL, o->y, 0.25, o->w));
    note(o, o->w);
    OK(kiln_mmchain(o->W, -1, o->X, o->v, o->B, 0, NULL));
    note(o, o->W);
    OK(kiln_multiply(o->Q, 2, KILN_PLAIN, o->X, o->B, -1, o->Y));
    note(o, o->Q);
    OK(kiln_multiply(o->Q, 2, KILN_PLAIN, o->X, o->B, 0.5, o->Q));
    note(o, o->Q);
    OK(kiln_multiply(o->W, 2, KILN_TRANSPOSED, o->X, o->Y, 1, o->B));
    note(o, o->W);
    OK(kiln_gram_diagonal(o->w, o->X, o->v));
    note(o, o->w);
    OK(kiln_gram_diagonal(o->w, o->X, NULL));
    note(o, o->w);
    kiln_matrix *G = NULL;
    OK(kiln_matrix_dense(&G, o->device, o->type, COLS, COLS, NULL));
    OK(kiln_gram(G, o->w, o->X, o->v, o->y));
    note(o, G);
    note(o, o->w);
    kiln_matrix_free(G);
}

static void losses(struct world *o) {
    const kiln_loss logistic = {.kind = KILN_LOSS_LOGISTIC, .y = o->v, .weights = o->v, .offset = o->q};
    kiln_matrix *one = NULL;
    OK(kiln_matrix_dense(&one, o->device, o->type, 1, 1, NULL));
    OK(kiln_fill(one, 0.125));
    OK(kiln_loss_gradient(&o->results[o->count++], o->w, o->g, o->C, &logistic, o->X, o->y, one));
    note(o, o->w);
    note(o, o->g);
    note(o, o->C);
    OK(kiln_loss_hessian(o->w, o->g, &logistic, o->C, o->X, o->y, one, 0.5, o->b));
    note(o, o->w);
    note(o, o->g);
    kiln_matrix_free(one);
    const kiln_loss softmax = {.kind = KILN_LOSS_SOFTMAX, .y = o->v, .weights = o->v};
    kiln_matrix *sums = NULL;
    OK(kiln_fill(o->v, 1));
    OK(kiln_matrix_dense(&sums, o->device, o->type, 1, K, NULL));
    OK(kiln_loss_gradient(&o->results[o->count++], o->W, sums, o->P, &softmax, o->X, o->B, NULL));
    note(o, o->W);
    note(o, sums);
    OK(kiln_loss_hessian(o->W, sums, &softmax, o->P, o->X, o->B, NULL, 0, NULL));
    note(o, o->W);
    note(o, sums);
    kiln_matrix_free(sums);
}

/* Rows of X as centres: which of them is nearest, what the rows of each add up to, and one centre more. */
static void clusters(struct world *o) {
    static const int64_t rows[] = {3, 1234, 1999, 0, 777, 3}, more[] = {42};
    enum { COUNT = sizeof rows / sizeof *rows };
    kiln_matrix *C = dense(o, COUNT, COLS, 14), *c = dense(o, 1, COLS, 15), *sums = dense(o, COUNT, COLS, 16);
    double totals[2 * COUNT];
    OK(kiln_rows(C, o->X, rows));
    OK(kiln_rows(c, o->X, more));
    note(o, C);
    OK(kiln_assign(&(kiln_assignment){.labels = o->C, .distances = o->q, .sums = sums, .totals = totals},
                   o->X, C, o->v));
    note(o, o->C);
    note(o, o->q);
    note(o, sums);
    for (int i = 0; i < 2 * COUNT; i++) o->results[o->count++] = totals[i];
    OK(kiln_assign(&(kiln_assignment){.labels = o->C, .distances = o->q, .first = COUNT}, o->X, c, NULL));
    note(o, o->C);
    note(o, o->q);
    OK(kiln_assign(&(kiln_assignment){.totals = totals}, o->X, C, NULL));
    for (int i = 0; i < 2 * COUNT; i++) o->results[o->count++] = totals[i];
    kiln_matrix_free(C);
    kiln_matrix_free(c);
    kiln_matrix_free(sums);
}

static void regression(struct world *o) {
    kiln_linreg_options options = {.l2 = 0.1, .standardize = 1, .weights = o->v};
    kiln_report report = {0};
    kiln_matrix *b = NULL;
    OK(kiln_matrix_dense(&b, o->device, o->type, 1, 1, NULL));
    OK(kiln_fill(o->v, 0.5));
    OK(kiln_linreg(o->w, b, o->X, o->q, &options, &report));
    assert_true(report.converged);
    kiln_report_free(&report);
    note(o, o->w);
    note(o, b);
    kiln_matrix_free(b);
}

/* Everything with so many bytes of device memory; 0 = what there is. */
static void live(struct world *o, kiln_format format, kiln_type type, int64_t memory,
                 kiln_device_statistics *statistics, int64_t *X_bytes) {
    const kiln_device_options options = {.memory = memory, .threads = 2};
    *o = (struct world){.type = type, .results = calloc(RESULTS, sizeof(double))};
    OK(kiln_device_open(&o->device, device_name, &options));
    o->X = format == KILN_CSR ? sparse(o) : dense(o, ROWS, COLS, 1);
    o->y = dense(o, COLS, 1, 2);
    o->b = dense(o, COLS, 1, 3);
    o->w = dense(o, COLS, 1, 4);
    o->B = dense(o, COLS, K, 5);
    o->W = dense(o, COLS, K, 6);
    o->v = dense(o, ROWS, 1, 7);
    o->q = dense(o, ROWS, 1, 8);
    o->C = dense(o, ROWS, 1, 9);
    o->Y = dense(o, ROWS, K, 10);
    o->Q = dense(o, ROWS, K, 11);
    o->P = dense(o, ROWS, K, 12);
    o->g = dense(o, 1, 1, 13);
    OK(kiln_map(o->v, KILN_MAP_ABS, o->v));
    passes(o);
    losses(o);
    clusters(o);
    regression(o);
    *X_bytes = ki_matrix_bytes(o->X);
    kiln_matrix *const all[] = {o->X, o->y, o->Y, o->v, o->w, o->W, o->B, o->q, o->Q, o->C, o->P, o->b, o->g};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(all[i]->held, 0);
        kiln_matrix_free(all[i]);
    }
    kiln_device_get_statistics(o->device, statistics);
    kiln_device_close(o->device);
}

static void compare(const struct world *want, const struct world *got) {
    const double unit = want->type == KILN_F32 ? 2e-5 : 1e-12;
    assert_int_equal(got->count, want->count);
    for (int64_t i = 0; i < want->count; i++)
        if (!(fabs(got->results[i] - want->results[i]) <= unit * (100 + fabs(want->results[i]))))
            fail_msg("number %lld of %lld is %.17g, not %.17g", (long long)i, (long long)want->count,
                     got->results[i], want->results[i]);
}

static void with_budgets(kiln_format format, kiln_type type) {
    struct world plenty, little;
    kiln_device_statistics with = {0}, without = {0};
    int64_t bytes = 0;
    live(&plenty, format, type, 0, &without, &bytes);
    assert_int_equal(without.panels, 0);
    assert_int_equal(without.evictions, 0);
    static const int percent[] = {400, 105, 100, 25};
    for (size_t i = 0; i < sizeof percent / sizeof *percent; i++) {
        const int64_t budget = bytes * percent[i] / 100;
        live(&little, format, type, budget, &with, &bytes);
        print_message(
            "    %s %s, %d %% of X: %lld evictions, %lld panels, %lld of %lld bytes, %lld up, %lld down\n",
            format == KILN_CSR ? "csr" : "dense", type == KILN_F32 ? "f32" : "f64", percent[i],
            (long long)with.evictions, (long long)with.panels, (long long)with.memory_peak, (long long)budget,
            (long long)with.bytes_up, (long long)with.bytes_down);
        compare(&plenty, &little);
        assert_true(with.memory_peak <= budget);
        if (percent[i] <= 100)
            assert_true(with.panels > 0 && with.panel_bytes > 0 && with.panel_bytes < with.bytes_up);
        if (percent[i] == 105 || percent[i] == 25) assert_true(with.evictions > 0);
        free(little.results);
    }
    free(plenty.results);
}

static void dense_f64(void **state) {
    (void)state;
    with_budgets(KILN_DENSE, KILN_F64);
}

static void sparse_f32(void **state) {
    (void)state;
    with_budgets(KILN_CSR, KILN_F32);
}

static void count_message(void *count, const char *text) {
    if (!strstr(text, "building kernel")) ++*(int *)count;
}

/* A panel is transposed in every pass, of which nothing is told but the streaming, once; the same bits each
 * time. The least panel has 64 rows where buffers begin at multiples of 256 bytes, as on CUDA, and up to
 * 1,722 entries: 28,592 bytes for two of them on their way, 41,328 for entries before and after their sort,
 * 32,772 for its counters and 8,720 for vectors are 111,412. */
static void deterministic(void **state) {
    (void)state;
    int messages = 0;
    const kiln_device_options options = {
        .memory = 120000, .deterministic = 1, .message = count_message, .message_user = &messages};
    struct world o = {.type = KILN_F32, .results = calloc(RESULTS, sizeof(double))};
    kiln_device_statistics statistics = {0};
    OK(kiln_device_open(&o.device, device_name, &options));
    o.X = sparse(&o);
    o.y = dense(&o, COLS, 1, 2);
    o.w = dense(&o, COLS, 1, 4);
    o.v = dense(&o, ROWS, 1, 7);
    for (int pass = 0; pass < 3; pass++) {
        OK(kiln_mmchain(o.w, 1, o.X, o.v, o.y, 0, NULL));
        note(&o, o.w);
    }
    assert_memory_equal(o.results, o.results + COLS, COLS * sizeof(double));
    assert_memory_equal(o.results, o.results + 2 * COLS, COLS * sizeof(double));
    kiln_matrix *C = dense(&o, 3, COLS, 5), *sums = dense(&o, 3, COLS, 6);
    for (int pass = 0; pass < 2; pass++) {
        double totals[6];
        OK(kiln_assign(&(kiln_assignment){.sums = sums, .totals = totals}, o.X, C, NULL));
        note(&o, sums);
    }
    assert_memory_equal(o.results + 3 * COLS, o.results + 6 * COLS, 3 * COLS * sizeof(double));
    kiln_matrix_free(C);
    kiln_matrix_free(sums);
    kiln_device_get_statistics(o.device, &statistics);
    assert_true(statistics.panels > 3);
    assert_true(statistics.layout_seconds > 0);
    assert_int_equal(messages, 1);
    kiln_matrix_free(o.X);
    kiln_matrix_free(o.y);
    kiln_matrix_free(o.w);
    kiln_matrix_free(o.v);
    kiln_device_close(o.device);
    free(o.results);
}

/* Short rows come first: panels of as many bytes have more entries further on, and to transpose these takes
 * more room than the first panel did. A pass that finds that out begins again with smaller ones. */
static void later_panels_take_more(void **state) {
    (void)state;
    enum {
        SHORT = 40000,
        FULL = 2000,
        LENGTH = 60,
        MANY = 20000,
        LEAST = 600000,
        MOST = 1200000,
        STEP = 150000
    };
    const int64_t rows = SHORT + FULL, nnz = SHORT + (int64_t)FULL * LENGTH;
    int64_t *start = calloc((size_t)rows + 1, 8);
    int32_t *col = calloc((size_t)nnz, 4);
    float *values = numbers(KILN_F32, nnz, 31), *y = numbers(KILN_F32, MANY, 32);
    float *want = calloc(MANY, sizeof *want), *got = calloc(MANY, sizeof *got);
    for (int64_t i = 0; i < rows; i++) {
        start[i + 1] = start[i] + (i < SHORT ? 1 : LENGTH);
        for (int64_t e = start[i]; e < start[i + 1]; e++)
            col[e] = (int32_t)((e - start[i]) * (MANY / LENGTH) + i % (MANY / LENGTH));
    }
    for (int64_t memory = 0; memory <= MOST; memory = memory ? memory + STEP : LEAST) {
        const kiln_device_options options = {.memory = memory, .deterministic = 1};
        struct world o = {.type = KILN_F32};
        OK(kiln_device_open(&o.device, device_name, &options));
        OK(kiln_matrix_csr(&o.X, o.device, KILN_F32, rows, MANY, start, col, values));
        OK(kiln_matrix_dense(&o.y, o.device, KILN_F32, MANY, 1, y));
        o.w = dense(&o, MANY, 1, 33);
        OK(kiln_mmchain(o.w, 1, o.X, NULL, o.y, 0, NULL));
        OK(kiln_matrix_get(memory ? got : want, o.w));
        for (int i = 0; memory && i < MANY; i++)
            if (!(fabs((double)got[i] - (double)want[i]) <= 2e-5 * (100 + fabs((double)want[i]))))
                fail_msg("column %d with %lld bytes: %g, not %g", i, (long long)memory, (double)got[i],
                         (double)want[i]);
        kiln_matrix_free(o.X);
        kiln_matrix_free(o.y);
        kiln_matrix_free(o.w);
        kiln_device_close(o.device);
    }
    void *const all[] = {start, col, values, y, want, got};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* Budgets that X just fits into, and not what the search for the nearest centres takes beside it: X goes by
 * in panels, for labels and distances as for distances that are compared with earlier ones. */
static void room_for_little_beside_X(void **state) {
    (void)state;
    enum { CENTRES = 3, FIRST = 102, LAST = 132, STEP = 5 };
    double want = 0;
    for (int percent = 1000; percent; percent = percent == 1000  ? FIRST
                                                : percent < LAST ? percent + STEP
                                                                 : 0) {
        const int64_t memory = (int64_t)ROWS * COLS * 8 / 100 * percent;
        const kiln_device_options options = {.memory = memory};
        struct world o = {.type = KILN_F64};
        kiln_device_statistics statistics = {0};
        double sum = 0;
        OK(kiln_device_open(&o.device, device_name, &options));
        o.X = dense(&o, ROWS, COLS, 1);
        o.B = dense(&o, CENTRES, COLS, 2);
        o.C = dense(&o, ROWS, 1, 3);
        o.q = dense(&o, ROWS, 1, 4);
        OK(kiln_fill(o.C, 0));
        OK(kiln_multiply(o.C, 1, KILN_PLAIN, o.X, o.y = dense(&o, COLS, 1, 5), 0, NULL)); /* X is there */
        OK(kiln_assign(&(kiln_assignment){.labels = o.C, .distances = o.q}, o.X, o.B, NULL));
        OK(kiln_assign(&(kiln_assignment){.distances = o.q, .first = CENTRES}, o.X, o.B, NULL));
        OK(kiln_norm(&sum, o.q, KILN_NORM_1));
        kiln_device_get_statistics(o.device, &statistics);
        assert_true(statistics.memory_peak <= memory);
        if (percent == 1000) want = sum;
        if (!(fabs(sum - want) <= 1e-12 * want)) fail_msg("%d %%: %.17g, not %.17g", percent, sum, want);
        kiln_matrix *const all[] = {o.X, o.B, o.C, o.q, o.y};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
        kiln_device_close(o.device);
    }
}

/* With a budget of nine tenths of X most of it stays, from the second pass on: each further pass moves the
 * rest alone, and gives the same bits. What needs the place gets it, and X goes by as before. */
static void most_stays(void **state) {
    (void)state;
    enum { MOVED = 2, PASSES = 6 };
    const int64_t bytes = (int64_t)ROWS * COLS * 8, budget = bytes * 9 / 10;
    const kiln_device_options options = {.memory = budget, .deterministic = 1};
    struct world o = {.type = KILN_F64, .results = calloc(RESULTS, sizeof(double))};
    kiln_device_statistics before = {0}, after = {0};
    kiln_matrix *large = NULL;
    OK(kiln_device_open(&o.device, device_name, &options));
    o.X = dense(&o, ROWS, COLS, 1);
    o.y = dense(&o, COLS, 1, 2);
    o.w = dense(&o, COLS, 1, 4);
    for (int pass = 0; pass < PASSES; pass++) {
        kiln_device_get_statistics(o.device, &before);
        OK(kiln_mmchain(o.w, 1, o.X, NULL, o.y, 0, NULL));
        note(&o, o.w);
        kiln_device_get_statistics(o.device, &after);
        const int64_t moved = after.panel_bytes - before.panel_bytes;
        print_message("    pass %d moves %lld of %lld bytes\n", pass, (long long)moved, (long long)bytes);
        if (pass < MOVED) assert_int_equal(moved, bytes);
        if (pass >= MOVED) assert_true(moved <= bytes * 4 / 10 && moved >= bytes / 10);
        if (pass > MOVED)
            assert_memory_equal(o.results + MOVED * COLS, o.results + pass * COLS, COLS * sizeof(double));
    }
    OK(kiln_matrix_dense(&large, o.device, KILN_F64, budget / 16, 1, NULL)); /* half of the budget */
    OK(kiln_mmchain(o.w, 1, o.X, NULL, o.y, 0, NULL));
    note(&o, o.w);
    for (int i = 0; i < COLS; i++)
        assert_true(fabs(o.results[PASSES * COLS + i] - o.results[i]) <= 1e-12 * (100 + fabs(o.results[i])));
    kiln_device_get_statistics(o.device, &after);
    assert_true(after.memory_peak <= budget);
    assert_int_equal(after.evictions, 0);
    kiln_matrix *const all[] = {o.X, o.y, o.w, large};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(all[i]->held, 0);
        kiln_matrix_free(all[i]);
    }
    kiln_device_close(o.device);
    free(o.results);
}

/* Factors of ratings with budgets of 1 to 3 times their size, which they fit into, but not beside their
 * transpose and what a step takes: the results of a device with plenty. Where both fit but for the step, they
 * do not drive each other out for every half of an iteration. */
static void ratings_beside_their_transpose(void **state) {
    (void)state;
    enum { STEPS = 4, PLENTY = 4000, FIRST = 105, LAST = 205, PERCENT = 50, BOTH = 200 };
    double want[2] = {0, 0};
    for (int percent = PLENTY; percent; percent = percent == PLENTY ? FIRST
                                                  : percent < LAST  ? percent + PERCENT
                                                                    : 0)
        for (int sfa = 0; sfa < 2; sfa++) {
            struct world o = {.type = KILN_F64};
            kiln_device *plain;
            OK(kiln_device_open(&plain, "cpu", NULL));
            o.device = plain;
            kiln_matrix *R = sparse(&o);
            const int64_t bytes = ki_matrix_bytes(R);
            kiln_device_statistics s = {0};
            kiln_report report = {.size = sizeof report};
            OK(kiln_device_open(&o.device, device_name,
                                &(kiln_device_options){.memory = bytes / 100 * percent}));
            OK(kiln_matrix_copy(&o.X, o.device, KILN_F64, R));
            OK(kiln_matrix_dense(&o.Y, o.device, KILN_F64, ROWS, K + 2 * sfa, NULL));
            OK(kiln_matrix_dense(&o.B, o.device, KILN_F64, COLS, K + 2 * sfa, NULL));
            if (sfa)
                OK(kiln_sfa(o.Y, o.B, o.X,
                            &(kiln_sfa_options){.l2 = 1, .max_iterations = STEPS, .tolerance = 1e-300},
                            &report));
            else
                OK(kiln_als(o.Y, o.B, o.X,
                            &(kiln_als_options){.l2 = 1, .max_iterations = STEPS, .tolerance = 1e-300},
                            &report));
            kiln_device_get_statistics(o.device, &s);
            print_message("    %s, %d %%: %lld evictions, %lld of %lld bytes up\n", sfa ? "sfa" : "als",
                          percent, (long long)s.evictions, (long long)s.bytes_up,
                          (long long)(2 * STEPS * bytes));
            assert_true(s.memory_peak <= bytes / 100 * percent);
            if (percent == PLENTY) want[sfa] = report.objective;
            if (!(fabs(report.objective - want[sfa]) <= 1e-8 * want[sfa]))
                fail_msg("%d %%: %.17g, not %.17g", percent, report.objective, want[sfa]);
            if (!sfa && percent >= BOTH) assert_true(s.bytes_up <= 2 * STEPS * bytes);
            kiln_report_free(&report);
            kiln_matrix *const all[] = {R, o.X, o.Y, o.B};
            for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
            kiln_device_close(o.device);
            kiln_device_close(plain);
        }
}

/* A device that has 100 bytes less than the call asks for beside X, Y and Z: one of these leaves, and never
 * what the call works with. */
enum { LONG = 20000, WIDE = 64, ALL = WIDE + 1 };
enum full_call { NORM, DOT, GRAM, FULL_CALLS };

static void check_sums(const double *got, int64_t stride, const double *x, const double *y, bool root) {
    for (int64_t c = 0; c < WIDE; c++) {
        long double sum = 0;
        for (int64_t i = 0; i < LONG; i++) sum += (long double)x[i * WIDE + c] * y[i * WIDE + c];
        const double want = root ? sqrt((double)sum) : (double)sum;
        if (!(fabs(got[c * stride] - want) <= 1e-12 * LONG))
            fail_msg("column %d: %.17g, not %.17g", (int)c, got[c * stride], want);
    }
}

/* *wanted: bytes that the call has asked for. */
static void with_little(int64_t *wanted, enum full_call call, const double *x, const double *y,
                        int64_t memory) {
    const kiln_device_options options = {.memory = memory};
    kiln_device_statistics before = {0}, after = {0};
    kiln_device *device;
    kiln_matrix *X, *Y, *Z;
    double *got = calloc(ALL * ALL, sizeof *got);
    OK(kiln_device_open(&device, device_name, &options));
    OK(kiln_matrix_dense(&X, device, KILN_F64, LONG, WIDE, x));
    OK(kiln_matrix_dense(&Y, device, KILN_F64, LONG, WIDE, y));
    OK(kiln_matrix_dense(&Z, device, KILN_F64, LONG, WIDE, NULL));
    OK(kiln_fill(Z, 1));
    kiln_device_get_statistics(device, &before);
    if (call == NORM) OK(kiln_norm(got, X, KILN_NORM_2));
    if (call == DOT) OK(kiln_dot(got, X, Y));
    if (call == GRAM) OK(ki_gram_all(&(struct ki_gram){.X = X, .all = got}));
    check_sums(got, call == GRAM ? ALL + 1 : 1, x, call == DOT ? y : x, call == NORM);
    kiln_device_get_statistics(device, &after);
    *wanted = after.memory_used - before.memory_used;
    assert_int_equal(before.evictions, 0);
    assert_int_equal(after.evictions > 0, memory > 0);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
    kiln_matrix_free(Z);
    kiln_device_close(device);
    free(got);
}

static void full(void **state) {
    (void)state;
    double *x = numbers(KILN_F64, LONG * WIDE, 21), *y = numbers(KILN_F64, LONG * WIDE, 22);
    for (enum full_call call = 0; call < FULL_CALLS; call++) {
        int64_t wanted, again;
        with_little(&wanted, call, x, y, 0);
        assert_true(wanted > 100);
        with_little(&again, call, x, y, (int64_t)3 * LONG * WIDE * 8 + wanted - 100);
    }
    free(x);
    free(y);
}

int main(int argc, char **argv) {
    kiln_device *device = NULL;
    device_name = argc > 1 ? argv[1] : "opencl";
    if (kiln_device_open(&device, device_name, NULL) != KILN_OK) {
        printf("skip %s: %s\n", device_name, kiln_last_error()->message);
        return 77;
    }
    kiln_device_close(device);
    const struct CMUnitTest tests[] = {cmocka_unit_test(dense_f64),
                                       cmocka_unit_test(sparse_f32),
                                       cmocka_unit_test(deterministic),
                                       cmocka_unit_test(most_stays),
                                       cmocka_unit_test(later_panels_take_more),
                                       cmocka_unit_test(room_for_little_beside_X),
                                       cmocka_unit_test(ratings_beside_their_transpose),
                                       cmocka_unit_test(full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
