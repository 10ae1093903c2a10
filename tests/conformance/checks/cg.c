/* kiln_cg_begin and kiln_cg_step against the recurrences in plain loops, a few steps long: k columns of which
 * one is finished from the start, one meets a direction without curvature, and one reaches its goal on the
 * way. With a preconditioner, a diagonal penalty and means whose sums must be taken off, then with none of
 * them. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum { ROWS = 2503, STEPS = 3, HISTORY = 5, STATE = HISTORY + 2 * STEPS, MOST = 5 };
static const double plain_l2 = 0.5;

/* All as doubles. A is diag(1 + i mod 7), but in column 1 it leaves no positive curvature. */
struct recurrences {
    int64_t n, k;
    bool plain; /* no inverse, penalty and mean */
    double *E, *G, *P, *Q, *inverse, *penalty, *mean;
    double S[STATE * MOST], sums[MOST], shift[MOST], curvature[MOST];
};

/* P's successor, given in inverse .* G + beta P, with what the next pass begins with. */
static void plain_direction(struct recurrences *r, int64_t c, double beta) {
    const bool active = r->S[r->k + c] != 0;
    r->shift[c] = r->S[4 * r->k + c] = 0;
    for (int64_t i = c; i < r->n * r->k; i += r->k) {
        const int64_t row = i / r->k;
        r->P[i] = active ? r->inverse[row] * r->G[i] + (beta != 0 ? beta * r->P[i] : 0) : 0;
        r->Q[i] = r->penalty[row] * r->P[i];
        r->shift[c] -= r->mean[row] * r->P[i];
        r->S[4 * r->k + c] += r->P[i] * r->Q[i];
    }
}

static double plain_rho(const struct recurrences *r, int64_t c) {
    double rho = 0;
    for (int64_t i = c; i < r->n * r->k; i += r->k) rho += r->G[i] * r->inverse[i / r->k] * r->G[i];
    return rho;
}

static void plain_begin(struct recurrences *r) {
    for (int64_t c = 0; c < r->k; c++) {
        r->S[c] = plain_rho(r, c);
        plain_direction(r, c, 0);
    }
    memset(r->E, 0, (size_t)(r->n * r->k) * sizeof *r->E);
}

static void plain_step(struct recurrences *r, int slot) {
    for (int64_t c = 0; c < r->k; c++) {
        const double curvature = r->curvature[c] + r->S[4 * r->k + c], rho = r->S[c];
        double *active = &r->S[r->k + c];
        for (int64_t i = c; i < r->n * r->k; i += r->k) r->Q[i] -= r->mean[i / r->k] * r->sums[c];
        const double alpha = *active != 0 && curvature > 0 ? rho / curvature : 0;
        for (int64_t i = c; i < r->n * r->k; i += r->k) {
            r->E[i] += alpha * r->P[i];
            r->G[i] -= alpha * r->Q[i];
        }
        const double next = plain_rho(r, c);
        *active = alpha != 0 && next > r->S[2 * r->k + c];
        plain_direction(r, c, next / rho);
        if (alpha != 0) {
            r->S[3 * r->k + c] += alpha * rho / 2;
            r->S[c] = next;
        }
        r->S[(HISTORY + 2 * slot) * r->k + c] = r->S[c];
        r->S[(HISTORY + 1 + 2 * slot) * r->k + c] = r->S[3 * r->k + c];
    }
}

/* Adds what a pass adds to Q, the part of its sums that the means magnify among it, and P . A P. */
static void apply(struct recurrences *r) {
    memset(r->curvature, 0, sizeof r->curvature);
    for (int64_t i = 0; i < r->n * r->k; i++) {
        const int64_t row = i / r->k, c = i % r->k;
        const double AP = (c == 1 ? -8 : (double)(1 + row % 7)) * r->P[i];
        r->Q[i] += AP + r->mean[row] * r->sums[c];
        r->curvature[c] += r->P[i] * AP;
    }
}

/* Values that both types hold exactly. */
static void begin(struct recurrences *r, int64_t k, bool plain) {
    *r = (struct recurrences){.n = ROWS, .k = k, .plain = plain};
    double **const all[] = {&r->E, &r->G, &r->P, &r->Q, &r->inverse, &r->penalty, &r->mean};
    for (int a = 0; a < 7; a++) *all[a] = calloc((size_t)(ROWS * MOST), sizeof(double));
    for (int64_t i = 0; i < ROWS; i++) {
        r->inverse[i] = plain ? 1 : i % 11 ? 0.25 * (double)(1 + i % 3) : 0;
        r->penalty[i] = plain ? plain_l2 : 0.125 * (double)(i % 5);
        r->mean[i] = plain ? 0 : 0.5 * (double)(i % 4);
    }
    for (int64_t i = 0; i < ROWS * k; i++) r->G[i] = (double)(float)(2 * random_uniform(5, (uint64_t)i) - 1);
    for (int64_t c = 0; c < k; c++) {
        r->S[k + c] = c == 2 ? 0 : 1;
        r->S[2 * k + c] = c == 3 ? 0.3 * plain_rho(r, c) : 0;
        r->sums[c] = plain ? 0 : 0.0625 * (double)(c + 1);
    }
}

static void finish(struct recurrences *r) {
    free(r->E), free(r->G), free(r->P), free(r->Q), free(r->inverse), free(r->penalty), free(r->mean);
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

struct on_device {
    kiln_matrix *E, *G, *P, *Q, *S, *inverse, *penalty, *mean, *sums, *shift, *curvature;
};

/* E, P and shift hold what must not be read. */
static kiln_status upload(struct on_device *d, struct check_context *context, const struct recurrences *r) {
    const kiln_type type = context->type;
    kiln_device_info info = {0};
    double waste[ROWS * MOST];
    for (int i = 0; i < ROWS * MOST; i++) waste[i] = (double)NAN;
    kiln_status status = kiln_device_get_info(context->device, &info);
    if (!status) status = to_device(&d->E, context, type, ROWS, r->k, waste);
    if (!status) status = to_device(&d->P, context, type, ROWS, r->k, waste);
    if (!status) status = to_device(&d->Q, context, type, ROWS, r->k, waste);
    if (!status) status = to_device(&d->shift, context, type, 1, r->k, waste);
    if (!status) status = to_device(&d->sums, context, type, 1, r->k, r->sums);
    if (!status) status = to_device(&d->G, context, type, ROWS, r->k, r->G);
    if (!status) status = to_device(&d->inverse, context, type, ROWS, 1, r->inverse);
    if (!status) status = to_device(&d->penalty, context, type, ROWS, 1, r->penalty);
    if (!status) status = to_device(&d->mean, context, type, ROWS, 1, r->mean);
    const kiln_type wide = info.has_f64 ? KILN_F64 : KILN_F32;
    if (!status) status = to_device(&d->S, context, wide, STATE, r->k, r->S);
    if (!status) status = to_device(&d->curvature, context, wide, 1, r->k, r->curvature);
    return status;
}

static void compare(struct check_context *context, const struct on_device *d, const struct recurrences *r,
                    const char *when) {
    const double allowed = (context->type == KILN_F32 ? 1.2e-7 : 2.3e-16) * 256;
    const struct {
        const char *name;
        const kiln_matrix *matrix;
        const double *want;
        int64_t rows;
    } results[] = {{"E", d->E, r->E, ROWS}, {"G", d->G, r->G, ROWS},  {"P", d->P, r->P, ROWS},
                   {"Q", d->Q, r->Q, ROWS}, {"S", d->S, r->S, STATE}, {"shift", d->shift, r->shift, 1}};
    for (int i = 0; i < (r->plain ? 5 : 6); i++) {
        const double off = difference(results[i].matrix, results[i].want, results[i].rows * r->k);
        check_report(context, off <= allowed, "%s of %d columns%s %s: off by %.3g, allowed %.3g",
                     results[i].name, (int)r->k, r->plain ? ", plain," : "", when, off, allowed);
    }
}

static void check_columns(struct check_context *context, int64_t k, bool plain) {
    struct recurrences r;
    struct on_device d = {0};
    begin(&r, k, plain);
    kiln_status status = upload(&d, context, &r);
    const kiln_cg cg = {.S = d.S,
                        .E = d.E,
                        .G = d.G,
                        .P = d.P,
                        .Q = d.Q,
                        .inverse = plain ? NULL : d.inverse,
                        .penalty = plain ? NULL : d.penalty,
                        .l2 = plain_l2,
                        .mean = plain ? NULL : d.mean,
                        .sums = plain ? NULL : d.sums,
                        .shift = plain ? NULL : d.shift,
                        .curvature = d.curvature};
    if (!status) status = kiln_cg_begin(&cg);
    plain_begin(&r);
    if (!status) compare(context, &d, &r, "at first");
    for (int slot = 0; !status && slot < STEPS; slot++) {
        apply(&r);
        status = to_device(&d.Q, context, context->type, ROWS, k, r.Q);
        if (!status)
            status = to_device(&d.curvature, context, kiln_matrix_type(d.curvature), 1, k, r.curvature);
        if (!status) status = kiln_cg_step(&cg, slot);
        plain_step(&r, slot);
    }
    check_report(context, status == KILN_OK, "%s", kiln_last_error()->message);
    if (!status) compare(context, &d, &r, "in the end");
    kiln_matrix *const all[] = {d.E,       d.G,    d.P,    d.Q,     d.S,        d.inverse,
                                d.penalty, d.mean, d.sums, d.shift, d.curvature};
    for (int i = 0; i < 11; i++) kiln_matrix_free(all[i]);
    finish(&r);
}

static void run(struct check_context *context) {
    check_columns(context, 1, false);
    check_columns(context, 1, true);
    check_columns(context, MOST, false);
}

const struct check check_cg = {.name = "cg_step", .run = run};
