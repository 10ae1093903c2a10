/* kiln_cg_step against the recurrences in plain loops, a few steps long: k columns of which one is finished from the start,
 * one meets a direction without curvature, and one reaches its goal on the way. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum { ROWS = 1503, STEPS = 3, STATE = 4 + 2 * STEPS, MOST = 5 };

struct recurrences {
    int64_t n, k;
    double *E, *G, *P, *Q, *inverse; /* as doubles; Q is H P with H = diag(1 + i mod 7), but 0 in column 1 */
    double S[STATE * MOST];
};

static void plain_step(struct recurrences *r, int slot) {
    for (int64_t c = 0; c < r->k; c++) {
        double curvature = 0, next = 0, rho = r->S[c], *active = &r->S[r->k + c];
        for (int64_t i = c; i < r->n * r->k; i += r->k) curvature += r->P[i] * r->Q[i];
        const double alpha = *active != 0 && curvature > 0 ? rho / curvature : 0;
        for (int64_t i = c; i < r->n * r->k; i += r->k) {
            r->E[i] += alpha * r->P[i];
            r->G[i] -= alpha * r->Q[i];
            next += r->G[i] * r->inverse[i / r->k] * r->G[i];
        }
        *active = alpha != 0 && next > r->S[2 * r->k + c];
        for (int64_t i = c; i < r->n * r->k; i += r->k)
            r->P[i] = *active != 0 ? r->inverse[i / r->k] * r->G[i] + next / rho * r->P[i] : 0;
        if (alpha != 0) {
            r->S[3 * r->k + c] += alpha * rho / 2;
            r->S[c] = next;
        }
        r->S[(4 + 2 * slot) * r->k + c] = r->S[c];
        r->S[(5 + 2 * slot) * r->k + c] = r->S[3 * r->k + c];
    }
}

static void apply(struct recurrences *r) {
    for (int64_t i = 0; i < r->n * r->k; i++)
        r->Q[i] = i % r->k == 1 ? 0 : (double)(1 + i / r->k % 7) * r->P[i];
}

/* Values that both types hold exactly. */
static void begin(struct recurrences *r, int64_t k) {
    *r = (struct recurrences){.n = ROWS, .k = k};
    double **const all[] = {&r->E, &r->G, &r->P, &r->Q, &r->inverse};
    for (int a = 0; a < 5; a++) *all[a] = calloc((size_t)(ROWS * MOST), sizeof(double));
    for (int64_t i = 0; i < ROWS; i++) r->inverse[i] = i % 11 ? 0.25 * (double)(1 + i % 3) : 0;
    for (int64_t i = 0; i < ROWS * k; i++) {
        r->G[i] = (double)(float)(2 * random_uniform(5, (uint64_t)i) - 1);
        r->P[i] = (double)(float)(r->inverse[i / k] * r->G[i]);
        r->S[i % k] += r->G[i] * r->inverse[i / k] * r->G[i];
    }
    for (int64_t c = 0; c < k; c++) {
        r->S[k + c] = c == 2 ? 0 : 1;
        r->S[2 * k + c] = c == 3 ? 0.3 * r->S[c] : 0;
    }
    apply(r);
}

static void finish(struct recurrences *r) {
    free(r->E), free(r->G), free(r->P), free(r->Q), free(r->inverse);
}

static kiln_status to_device(kiln_matrix **A, struct check_context *context, kiln_type type, int64_t rows,
                             int64_t cols, const double *values) {
    float *narrow = malloc((size_t)(rows * cols) * sizeof *narrow + 1);
    for (int64_t i = 0; i < rows * cols; i++) narrow[i] = (float)values[i];
    kiln_status status = *A ? kiln_matrix_set(*A, type == KILN_F64 ? (const void *)values : narrow)
                            : kiln_matrix_dense(A, context->device, type, rows, cols,
                                                type == KILN_F64 ? (const void *)values : narrow);
    free(narrow);
    return status;
}

/* The largest difference, against the largest value: one step rounds a few times. */
static double difference(const kiln_matrix *A, const double *want, int64_t count) {
    double *got = malloc((size_t)count * sizeof *got), worst = 0, largest = 0;
    kiln_status status = kiln_matrix_get(got, A);
    for (int64_t i = 0; status == KILN_OK && i < count; i++) {
        float narrow;
        memcpy(&narrow, (const char *)got + (size_t)i * sizeof narrow, sizeof narrow);
        const double value = kiln_matrix_type(A) == KILN_F32 ? (double)narrow : got[i];
        worst = fmax(worst, isfinite(value) ? fabs(value - want[i]) : (double)INFINITY);
        largest = fmax(largest, fabs(want[i]));
    }
    free(got);
    return status == KILN_OK ? worst / (largest + 1e-30) : (double)INFINITY;
}

static void check_columns(struct check_context *context, int64_t k) {
    struct recurrences r;
    kiln_device_info info;
    kiln_matrix *E = NULL, *G = NULL, *P = NULL, *Q = NULL, *S = NULL, *inverse = NULL;
    begin(&r, k);
    kiln_status status = kiln_device_get_info(context->device, &info);
    const kiln_type type = context->type;
    if (!status) status = to_device(&E, context, type, ROWS, k, r.E);
    if (!status) status = to_device(&G, context, type, ROWS, k, r.G);
    if (!status) status = to_device(&P, context, type, ROWS, k, r.P);
    if (!status) status = to_device(&inverse, context, type, ROWS, 1, r.inverse);
    if (!status) status = to_device(&S, context, info.has_f64 ? KILN_F64 : KILN_F32, STATE, k, r.S);
    for (int slot = 0; !status && slot < STEPS; slot++) {
        status = to_device(&Q, context, type, ROWS, k, r.Q);
        if (!status) status = kiln_cg_step(S, E, G, P, Q, inverse, slot);
        plain_step(&r, slot);
        apply(&r);
    }
    check_report(context, status == KILN_OK, "%s", kiln_last_error()->message);
    const double allowed = (type == KILN_F32 ? 1.2e-7 : 2.3e-16) * 64;
    const struct {
        const char *name;
        const kiln_matrix *matrix;
        const double *want;
        int64_t rows;
    } results[] = {{"E", E, r.E, ROWS}, {"G", G, r.G, ROWS}, {"P", P, r.P, ROWS}, {"S", S, r.S, STATE}};
    for (int i = 0; !status && i < 4; i++) {
        const double off = difference(results[i].matrix, results[i].want, results[i].rows * k);
        check_report(context, off <= allowed, "%s of %d columns: off by %.3g, allowed %.3g", results[i].name,
                     (int)k, off, allowed);
    }
    kiln_matrix *const all[] = {E, G, P, Q, S, inverse};
    for (int i = 0; i < 6; i++) kiln_matrix_free(all[i]);
    finish(&r);
}

static void run(struct check_context *context) {
    check_columns(context, 1);
    check_columns(context, MOST);
}

const struct check check_cg = {.name = "cg_step", .run = run};
