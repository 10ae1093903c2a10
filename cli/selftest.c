/* Small known answers from a device, one case of each kind of kernel, against the same sums in double.
 *
 * Each element is a sum of products with sums in them: m + n roundings at most follow one another, and a
 * few more, so that |got - want| <= (m + n + 8) eps sum |terms|. A wrong kernel misses that by many orders
 * of magnitude. */
#include "selftest.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "selftest_kinds.h"

/* Those whose kernels build quickly come first. */
static const struct kind *const lists[] = {vector_kinds, product_kinds, loss_kinds,
                                           point_kinds,  factor_kinds,  graph_kinds};

double bench_allowed(kiln_type type) {
    return (ROWS + COLS + 8) * (type == KILN_F32 ? (double)FLT_EPSILON : DBL_EPSILON);
}

/* ------------------------------------------------------------------------------------ the problem */

/* Multiples of 1/256 in [-1, 1): exact in f32 too. */
static double next_value(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 23) / 256 - 1;
}

static void fill(struct problem *p) {
    uint32_t state = 20151;
    for (int i = 0; i < ROWS; i++) {
        p->v[i] = next_value(&state);
        for (int j = 0; j < COLS; j++) p->X[i][j] = (i + j) % PICKED == 0 ? next_value(&state) : 0;
    }
    for (int j = 0; j < COLS; j++) {
        p->y[j] = next_value(&state);
        p->z[j] = next_value(&state);
    }
    for (int e = 0; e < WIDE_ROWS * WIDE; e++) p->more[e] = next_value(&state);
}

/* -------------------------------------------------------------------------------------- operands */

static kiln_matrix *keep(struct bench *bench, kiln_matrix *made) {
    if (made) bench->made[bench->made_count++] = made;
    return made;
}

/* Values as the type, in new memory; NULL: out of it, which is noted. */
static void *as_type(struct bench *bench, kiln_type type, const double *values, int64_t count) {
    void *typed = malloc((size_t)(count + 1) * sizeof(double));
    if (!typed) RUN(bench, KILN_ERR_NOMEM);
    for (int64_t i = 0; typed && i < count; i++)
        if (type == KILN_F32)
            ((float *)typed)[i] = (float)values[i];
        else
            ((double *)typed)[i] = values[i];
    return typed;
}

static kiln_matrix *new_dense(struct bench *bench, kiln_type type, int64_t rows, int64_t cols,
                              const double *values) {
    kiln_matrix *made = NULL;
    void *typed = values ? as_type(bench, type, values, rows * cols) : NULL;
    RUN(bench, kiln_matrix_dense(&made, bench->device, type, rows, cols, typed));
    free(typed);
    return keep(bench, made);
}

kiln_matrix *bench_dense(struct bench *bench, int64_t rows, int64_t cols, const double *values) {
    return new_dense(bench, bench->type, rows, cols, values);
}

kiln_matrix *bench_empty(struct bench *bench, int64_t rows, int64_t cols) {
    return new_dense(bench, bench->type, rows, cols, NULL);
}

kiln_matrix *bench_scalars(struct bench *bench, int64_t rows, int64_t cols, const double *values) {
    kiln_device_info info = {.size = sizeof info};
    RUN(bench, kiln_device_get_info(bench->device, &info));
    return new_dense(bench, info.has_f64 ? KILN_F64 : KILN_F32, rows, cols, values);
}

kiln_matrix *bench_csr(struct bench *bench, int64_t rows, int64_t cols, const double *dense) {
    static double values[ROWS * COLS];
    static int32_t col[ROWS * COLS];
    static int64_t row_start[ROWS + 1];
    kiln_matrix *made = NULL;
    int64_t nnz = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            if (dense[i * cols + j] == 0) continue;
            values[nnz] = dense[i * cols + j];
            col[nnz++] = (int32_t)j;
        }
        row_start[i + 1] = nnz;
    }
    void *typed = as_type(bench, bench->type, values, nnz);
    RUN(bench, kiln_matrix_csr(&made, bench->device, bench->type, rows, cols, row_start, col, typed));
    free(typed);
    return keep(bench, made);
}

kiln_matrix *bench_like(struct bench *bench, const kiln_matrix *pattern) {
    kiln_matrix *made = NULL;
    RUN(bench, kiln_matrix_like(&made, pattern, bench->type, NULL));
    return keep(bench, made);
}

kiln_matrix *bench_X(struct bench *bench) {
    const double *values = bench->p->X[0];
    return bench->format == KILN_CSR ? bench_csr(bench, ROWS, COLS, values)
                                     : bench_dense(bench, ROWS, COLS, values);
}

/* --------------------------------------------------------------------------------------- answers */

int bench_take(struct bench *bench, const kiln_matrix *result) {
    static float singles[ANSWERS];
    const int first = bench->answers;
    if (bench->status != KILN_OK) return first;
    const bool single = kiln_matrix_type(result) == KILN_F32;
    double *to = bench->got + first;
    RUN(bench, kiln_matrix_get(single ? (void *)singles : (void *)to, result));
    const int count = (int)kiln_matrix_nnz(result);
    for (int e = 0; single && e < count; e++) to[e] = singles[e];
    bench->answers += count;
    return first;
}

int bench_numbers(struct bench *bench, const double *numbers, int count) {
    const int first = bench->answers;
    for (int e = 0; e < count; e++) bench->got[first + e] = numbers[e];
    bench->answers += count;
    return first;
}

void bench_sized(struct bench *bench, int e, double term, double size) {
    bench->want[e] += term;
    bench->terms[e] += fabs(size);
}

void bench_term(struct bench *bench, int e, double term) {
    bench_sized(bench, e, term, term);
}

void bench_judge(struct bench *bench, double value, double limit) {
    bench_sized(bench, bench_numbers(bench, &value, 1), 0, limit / bench_allowed(bench->type));
}

static double largest_error(const struct bench *bench) {
    double largest = 0;
    for (int e = 0; e < bench->answers; e++) {
        if (bench->got[e] == bench->want[e]) continue; /* also a sum without terms */
        const double error = fabs(bench->got[e] - bench->want[e]) / bench->terms[e];
        if (!(error <= largest)) largest = error; /* NaN counts as an error */
    }
    return largest;
}

/* ----------------------------------------------------------------------------------------- tests */

/* The kind and the format that have this number: sparse first, types in turn. NULL: there are fewer. */
static const struct kind *find(struct selftest *test, int number) {
    int behind = number / 2;
    for (size_t list = 0; list < sizeof lists / sizeof *lists; list++)
        for (const struct kind *kind = lists[list]; kind->operation; kind++) {
            if (behind >= kind->sparse + kind->dense) {
                behind -= kind->sparse + kind->dense;
                continue;
            }
            const kiln_type type = number % 2 ? KILN_F64 : KILN_F32;
            *test = (struct selftest){.operation = kind->operation,
                                      .says = kind->says,
                                      .type = type,
                                      .format = kind->sparse && behind == 0 ? KILN_CSR : KILN_DENSE,
                                      .allowed = bench_allowed(type)};
            return kind;
        }
    return NULL;
}

int selftest_count(void) {
    struct selftest test;
    int count = 0;
    while (count < SELFTESTS_MOST && find(&test, count)) count++;
    return count;
}

struct selftest selftest_named(int number) {
    struct selftest test = {0};
    find(&test, number);
    return test;
}

struct selftest selftest_run(kiln_device *device, int number) {
    static struct problem p;
    static struct bench bench;
    struct selftest test;
    const struct kind *kind = find(&test, number);
    fill(&p);
    bench = (struct bench){.device = device, .type = test.type, .format = test.format, .p = &p};
    kind->run(&bench);
    test.status = bench.status;
    if (test.status == KILN_OK) test.error = largest_error(&bench);
    while (bench.made_count > 0) kiln_matrix_free(bench.made[--bench.made_count]);
    return test;
}

bool selftest_passed(const struct selftest *test) {
    return test->status == KILN_OK && test->error <= test->allowed;
}
