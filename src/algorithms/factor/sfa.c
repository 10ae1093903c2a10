/* Conjugate gradient over all of A and B at once. With S the ratings less their means and P = S - A B^T at S's entries,
 *   G_A = l2 A - P B,   G_B = l2 B - P^T A:  each one pass that makes P's entries and multiplies them by the factor at once,
 *   H_A = l2 + N (B .* B),  H_B = l2 + N^T (A .* A),  N one where S has entries: the diagonals of the Hessian's blocks,
 *   Z = G ./ H,  beta = max(0, G.(Z - Z_old) / G_old.Z_old),  D = beta D - Z.
 * Along D the objective is a polynomial of degree four. Its value and slope at 0 are there; three more values, each a sampled product
 * of which only the sum is wanted, determine it, and its first minimum is the step. A step that does not lower the objective, which
 * rounding alone can cause, is taken back and ends the run. */
#include "algorithms/factor/sfa.h"

enum { STREAM = 0x5fa, SIDES = 2 };

/* One side's matrices: its factors F, gradient G, inverse diagonal H, scaled gradient Z and its former one, direction D. */
struct side {
    kiln_matrix *F, *G, *H, *Z, *former, *D, *trial;
};

struct sfa {
    struct ki_sfa_means means;
    kiln_matrix *S, *N,
        *T; /* the ratings less their means; ones where S has entries; the same of what is held out, or NULL */
    struct side side[SIDES];
    double *one, *other; /* coefficients, one a factor */
    int64_t factors;
    double slope, decrease; /* G.D; G.Z of the step before */
    double step, objective, start, test_rmse;
    const kiln_sfa_options *options;
    kiln_report report;
};

/* ------------------------------------------------------------------------------------------ vectors */

static void fill(double *values, int64_t count, double value) {
    for (int64_t i = 0; i < count; i++) values[i] = value;
}

/* W = a X + b Y, all columns alike. */
static kiln_status add(struct sfa *s, kiln_matrix *W, double a, const kiln_matrix *X, double b,
                       const kiln_matrix *Y) {
    fill(s->one, s->factors, a);
    fill(s->other, s->factors, b);
    return kiln_combine(W, s->one, X, s->other, Y);
}

static kiln_status dot(double *sum, struct sfa *s, const kiln_matrix *X, const kiln_matrix *Y) {
    kiln_status status = kiln_dot(s->one, X, Y);
    for (int64_t k = 0; status == KILN_OK && k < s->factors; k++) *sum += s->one[k];
    return status;
}

/* ---------------------------------------------------------------------------------- the objective */

static kiln_sample sample_of(const kiln_matrix *S, const kiln_matrix *A, const kiln_matrix *B) {
    return (kiln_sample){.kind = KILN_SAMPLE_RESIDUAL, .S = S, .A = A, .B = B};
}

/* *sum = squares of the residuals; of T, if there is nothing in S. */
static kiln_status value_at(double *objective, struct sfa *s, const kiln_matrix *A, const kiln_matrix *B) {
    const kiln_sample sample = sample_of(s->S, A, B);
    double squares = 0, norms = 0;
    kiln_status status;
    TRY(kiln_sddmm(NULL, &squares, 1, &sample, 0));
    TRY(dot(&norms, s, A, A));
    TRY(dot(&norms, s, B, B));
    *objective = squares / 2 + s->options->l2 / 2 * norms;
done:
    return status;
}

/* G and the objective, which the same pass adds up. */
static kiln_status gradients(double *objective, struct sfa *s) {
    struct side *a = &s->side[0], *b = &s->side[1];
    const kiln_sample sample = sample_of(s->S, a->F, b->F);
    const double l2 = s->options->l2;
    double squares = 0, norms = 0;
    kiln_status status;
    TRY(kiln_sddmm_multiply(a->G, &squares, -1, KILN_PLAIN, &sample, l2, a->F));
    TRY(kiln_sddmm_multiply(b->G, NULL, -1, KILN_TRANSPOSED, &sample, l2, b->F));
    TRY(dot(&norms, s, a->F, a->F));
    TRY(dot(&norms, s, b->F, b->F));
    *objective = squares / 2 + l2 / 2 * norms;
done:
    return status;
}

static kiln_status measure_test(struct sfa *s) {
    if (!s->T) return KILN_OK;
    const kiln_sample sample = sample_of(s->T, s->side[0].F, s->side[1].F);
    double squares = 0;
    kiln_status status = kiln_sddmm(NULL, &squares, 1, &sample, 0);
    s->test_rmse = sqrt(squares / (double)kiln_matrix_nnz(s->T));
    return status;
}

/* ------------------------------------------------------------------------------------- the direction */

/* H and Z of one side, given the other's factors. */
static kiln_status scale(struct sfa *s, struct side *own, const struct side *other, kiln_transpose op) {
    kiln_status status;
    TRY(kiln_map(other->trial, KILN_MAP_SQUARE, other->F));
    TRY(kiln_fill(own->H, s->options->l2));
    TRY(kiln_multiply(own->H, 1, op, s->N, other->trial, 1, own->H));
    TRY(kiln_map(own->H, KILN_MAP_RECIPROCAL, own->H));
    TRY(kiln_times(own->Z, own->G, own->H));
done:
    return status;
}

/* Z, and D from it. A direction that does not lead down, as rounding may make it, begins anew with -Z. */
static kiln_status directions(struct sfa *s, bool anew) {
    double now = 0, before = 0, slope = 0;
    kiln_status status = KILN_OK;
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i], *other = &s->side[1 - i];
        kiln_matrix *former = own->former;
        own->former = own->Z;
        own->Z = former;
        TRY(scale(s, own, other, i ? KILN_TRANSPOSED : KILN_PLAIN));
        TRY(dot(&now, s, own->G, own->Z));
        if (!anew) TRY(dot(&before, s, own->G, own->former));
    }
    const double beta = anew || !(s->decrease > 0) ? 0 : fmax((now - before) / s->decrease, 0);
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i];
        TRY(add(s, own->D, -1, own->Z, beta, own->D));
        TRY(dot(&slope, s, own->G, own->D));
    }
    s->decrease = now;
    s->slope = slope;
    if (slope >= 0 && !anew) { /* Z is right already */
        for (int i = 0; i < SIDES; i++) TRY(add(s, s->side[i].D, -1, s->side[i].Z, 0, NULL));
        s->slope = -now;
    }
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ the step */

static kiln_status value_along(double *objective, struct sfa *s, double t) {
    kiln_status status;
    for (int i = 0; i < SIDES; i++) TRY(add(s, s->side[i].trial, 1, s->side[i].F, t, s->side[i].D));
    TRY(value_at(objective, s, s->side[0].trial, s->side[1].trial));
done:
    return status;
}

/* The first t > 0 where c1 + 2 c2 t + 3 c3 t^2 + 4 c4 t^3, which is negative at 0, vanishes; at most `most`. */
static double first_minimum(const double c[5], double most) {
    double low = 0, high = most / 1024;
    const double *k = c;
#define SLOPE(t) (k[1] + (t) * (2 * k[2] + (t) * (3 * k[3] + (t)*4 * k[4])))
    while (high < most && SLOPE(high) < 0) {
        low = high;
        high *= 1.25;
    }
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (SLOPE(middle) < 0)
            low = middle;
        else
            high = middle;
    }
#undef SLOPE
    return high;
}

/* The step by which the objective is lowest, from its values at half, once and twice the former step. */
static kiln_status find_step(double *step, struct sfa *s) {
    const double at[3] = {s->step / 2, s->step, s->step * 2};
    double q[3], c[5] = {s->objective, s->slope};
    kiln_status status = KILN_OK;
    for (int i = 0; i < 3; i++) { /* (f(t) - f - f' t) / t^2 = c2 + c3 t + c4 t^2 */
        double value;
        TRY(value_along(&value, s, at[i]));
        q[i] = ((value - s->objective) / at[i] - s->slope) / at[i];
    }
    const double first = (q[1] - q[0]) / (at[1] - at[0]), second = (q[2] - q[1]) / (at[2] - at[1]);
    c[4] = (second - first) / (at[2] - at[0]);
    c[3] = first - c[4] * (at[0] + at[1]);
    c[2] = q[0] - at[0] * (c[3] + c[4] * at[0]);
    *step = first_minimum(c, 16 * s->step);
done:
    return status;
}

static kiln_status move(struct sfa *s, double t) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < SIDES; i++) TRY(add(s, s->side[i].F, 1, s->side[i].F, t, s->side[i].D));
done:
    return status;
}

/* One step; *fell: whether the objective is lower now. If it is not, the step has been taken back. */
static kiln_status iterate_once(bool *fell, struct sfa *s, bool anew) {
    double step, objective;
    kiln_status status;
    TRY(directions(s, anew));
    *fell = false;
    if (!(s->slope < 0)) return KILN_OK;
    TRY(find_step(&step, s));
    TRY(move(s, step));
    TRY(gradients(&objective, s));
    *fell = objective < s->objective;
    if (*fell) {
        s->objective = objective;
        s->step = step;
    } else {
        TRY(move(s, -step));
        TRY(gradients(&objective, s));
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------- the run */

static kiln_status check_value(const struct sfa *s) {
    if (isfinite(s->objective)) return KILN_OK;
    ki_fail(KILN_ERR_DATA, "kiln_sfa: the objective overflows %s",
            kiln_matrix_type(s->S) == KILN_F32 ? "f32" : "f64");
    return ki_hint("scale the entries of R");
}

static kiln_status iterate(struct sfa *s) {
    kiln_report *report = &s->report;
    kiln_status status;
    TRY(gradients(&s->objective, s));
    TRY(check_value(s));
    s->step = 1;
    while (report->stopped_by == KILN_STOP_NONE) {
        const double before = s->objective;
        bool fell = false;
        TRY(iterate_once(&fell, s, report->iterations == 0));
        if (!fell) TRY(iterate_once(&fell, s, true));
        TRY(measure_test(s));
        const kiln_trace_row row = {.iteration = ++report->iterations,
                                    .objective = s->objective,
                                    .residual = (before - s->objective) / fmax(before, DBL_MIN),
                                    .seconds = ki_clock() - s->start,
                                    .test = s->T ? s->test_rmse : 0};
        TRY(ki_report_step(report, &row, s->options->tolerance, s->options->max_iterations,
                           &s->options->control, 5 * ki_bytes_of(s->S) * row.iteration));
    }
    report->converged = report->stopped_by == KILN_STOP_TOLERANCE;
    report->passes = 7 * report->iterations + 2;
done:
    return status;
}

/* ----------------------------------------------------------------------------------------- the start */

static kiln_status allocate(struct sfa *s, const kiln_matrix *A, const kiln_matrix *B) {
    kiln_status status = KILN_OK;
    const size_t bytes = (size_t)s->factors * sizeof(double);
    s->one = ki_alloc(bytes);
    s->other = ki_alloc(bytes);
    if (!s->one || !s->other) TRY(ki_fail_nomem(bytes, "coefficients"));
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i];
        const kiln_matrix *given = i ? B : A;
        kiln_matrix **const all[] = {&own->F, &own->G, &own->H, &own->Z, &own->former, &own->D, &own->trial};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            TRY(kiln_matrix_dense(all[k], kiln_matrix_device(given), kiln_matrix_type(given),
                                  kiln_matrix_rows(given), s->factors, NULL));
    }
done:
    return status;
}

static kiln_status start(struct sfa *s, const kiln_matrix *A, const kiln_matrix *B) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i];
        if (s->options->warm_start) {
            TRY(ki_sfa_factors(own->F, i ? B : A));
        } else {
            TRY(kiln_fill_random(own->F, KILN_NORMAL, (uint64_t)s->options->seed, STREAM + (uint64_t)i));
            TRY(add(s, own->F, 0.1, own->F, 0, NULL));
        }
    }
done:
    return status;
}

static void sfa_free(struct sfa *s) {
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i];
        kiln_matrix *const all[] = {own->F, own->G, own->H, own->Z, own->former, own->D, own->trial};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) kiln_matrix_free(all[k]);
    }
    kiln_matrix_free(s->S);
    kiln_matrix_free(s->N);
    kiln_matrix_free(s->T);
    ki_sfa_means_free(&s->means);
    ki_free(s->one);
    ki_free(s->other);
    kiln_report_free(&s->report);
}

static kiln_status check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *R,
                         const kiln_sfa_options *o) {
    static const char call[] = "kiln_sfa";
    kiln_status status;
    if (!A || !B || !R) return ki_fail(KILN_ERR_ARGUMENT, "%s: A, B and R must not be NULL", call);
    if (A == B) return ki_fail(KILN_ERR_ARGUMENT, "%s: A and B are one matrix", call);
    if (kiln_matrix_format(R) != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: R must be sparse", call);
    if (!(o->l2 > 0) || isinf(o->l2) || !(o->damping >= 0) || isinf(o->damping))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: l2 must be finite and positive, damping not negative", call);
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
    TRY(ki_check_matrix(call, "A", A, R, kiln_matrix_rows(R), kiln_matrix_cols(A)));
    TRY(ki_check_matrix(call, "B", B, R, kiln_matrix_cols(R), kiln_matrix_cols(A)));
    if (kiln_matrix_cols(A) < 2)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A and B need a column for means behind the factors", call);
    TRY(ki_check_test(call, R, o->test));
    if (kiln_matrix_nnz(R) == 0) return ki_fail(KILN_ERR_DATA, "%s: R has no entries", call);
done:
    return status;
}

kiln_status kiln_sfa(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *R, const kiln_sfa_options *options,
                     kiln_report *report) {
    kiln_status status;
    kiln_sfa_options o;
    struct sfa s = {.start = ki_clock(), .test_rmse = NAN, .options = &o};
    TRY(KI_TAKE(kiln_sfa_options, &o, options));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    ki_sfa_fill(&o, R ? kiln_matrix_type(R) : KILN_F64);
    TRY(check(A, B, R, &o));
    s.factors = kiln_matrix_cols(A) - 1;
    s.report.tolerance = o.tolerance;
    TRY(ki_report_begin(&s.report));
    TRY(ki_sfa_means_measure(&s.means, R, o.damping));
    TRY(ki_sfa_centred(&s.S, R, &s.means));
    TRY(kiln_matrix_like(&s.N, s.S, KILN_TYPE_DEFAULT, NULL));
    if (o.test && kiln_matrix_nnz(o.test) > 0) TRY(ki_sfa_centred(&s.T, o.test, &s.means));
    TRY(allocate(&s, A, B));
    TRY(start(&s, A, B));
    TRY(iterate(&s));
    TRY(ki_sfa_join(A, s.side[0].F, s.means.row));
    TRY(ki_sfa_join(B, s.side[1].F, s.means.column));
    ki_report_figure(&s.report, "mean", s.means.mean);
    if (o.test) ki_report_figure(&s.report, "test_rmse", s.test_rmse);
    s.report.seconds = ki_clock() - s.start;
    ki_report_hand_over(report, &s.report);
done:
    sfa_free(&s);
    return status;
}
