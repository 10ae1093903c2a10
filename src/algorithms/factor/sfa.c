/* Conjugate gradient over all of A and B at once. With S the ratings less their means and P = S - A B^T at
 * S's entries,
 *   G_A = l2 A - P B,   G_B = l2 B - P^T A:  each one pass that makes P's entries and multiplies them by the
 *   factor at once,
 *   H_A = l2 + N (B .* B),  H_B = l2 + N^T (A .* A),  N one where S has entries:
 *   the diagonals of the Hessian's blocks,
 *   Z = G ./ H,  beta = max(0, G.(Z - Z_old) / G_old.Z_old),  D = beta D - Z.
 * Along D the objective is a polynomial of degree four. Its value and slope at 0 are there; three more sums
 * of squares, each a sampled product of which only the sum is wanted, determine it, for the norms along D
 * follow from F.F, F.D and D.D; its first minimum is the step. A step that does not lower the objective is
 * taken back: rounding caused it, of the sums, or of a polynomial from values about a much shorter former
 * step. The next ones are sought about half of it.
 *
 * Sums stay on the device until one is needed, and are then read together: a GPU waits for each reading. */
#include "algorithms/factor/sfa.h"

#include "algorithms/factor/balance.h"
#include "algorithms/factor/entries.h"
#include "algorithms/factor/penalty.h"
#include "algorithms/run/run.h"

enum { SIDES = 2 };
/* Sums over both sides: G.Z, G.Z_old, G.D, F.D, D.D, F.F. */
enum { NOW, BEFORE, SLOPE, CROSS, LENGTH, NORM, SUMS };

/* One side's matrices: its factors F, gradient G, inverse diagonal H, scaled gradient Z and its former one,
 * direction D. */
struct side {
    kiln_matrix *F, *G, *H, *Z, *former, *D, *trial;
};

struct sfa {
    struct ki_run run;
    struct ki_sfa_means means;
    struct ki_spread spread;
    kiln_matrix *S, *N,
        *T; /* the ratings less their means; ones where S has entries; the same of what is held out, or
             * NULL */
    kiln_matrix *transposed; /* S, once an exact sweep has asked for it */
    struct ki_balance balance;
    struct side side[SIDES];
    kiln_matrix *sums; /* a row a sum and side, a column a factor */
    double *read;      /* the same in host memory */
    int64_t factors;
    double decrease;  /* G.Z of the step before */
    double sum[SUMS]; /* as last read */
    double step, objective, test_rmse;
    kiln_sfa_options options; /* defaults filled in */
};

/* ------------------------------------------------------------------------------------------ vectors */

/* W = a X + b Y; b = 0: Y need not hold numbers. */
static kiln_status add(kiln_matrix *W, double a, const kiln_matrix *X, double b, const kiln_matrix *Y) {
    return kiln_combine_from(W, &(kiln_ratio){.factor = a}, X, &(kiln_ratio){.factor = b}, b != 0 ? Y : NULL);
}

/* Queues X.Y of a side. */
static kiln_status dot(struct sfa *s, int sum, int side, const kiln_matrix *X, const kiln_matrix *Y) {
    return kiln_dot_into(s->sums, SIDES * sum + side, X, Y);
}

/* The sums from `first` to `last`, as far as they have been queued. */
static kiln_status read_sums(struct sfa *s, int first, int last) {
    const bool narrow = kiln_matrix_type(s->sums) == KILN_F32;
    const float *floats = (const float *)s->read;
    const kiln_status status = kiln_matrix_get(s->read, s->sums);
    for (int sum = first; status == KILN_OK && sum <= last; sum++) {
        s->sum[sum] = 0;
        for (int64_t at = sum * SIDES * s->factors; at < (sum + 1) * SIDES * s->factors; at++)
            s->sum[sum] += narrow ? (double)floats[at] : s->read[at];
    }
    return status;
}

/* ---------------------------------------------------------------------------------- the objective */

static kiln_sample sample_of(const kiln_matrix *S, const kiln_matrix *A, const kiln_matrix *B) {
    return (kiln_sample){.kind = KILN_SAMPLE_RESIDUAL, .S = S, .A = A, .B = B};
}

/* G and the objective, which the same pass adds up. */
static kiln_status gradients(double *objective, struct sfa *s) {
    struct side *a = &s->side[0], *b = &s->side[1];
    const kiln_sample sample = sample_of(s->S, a->F, b->F);
    const double l2 = s->options.l2;
    double squares = 0;
    kiln_status status;
    TRY(kiln_sddmm_multiply(a->G, &squares, -1, KILN_PLAIN, &sample, l2, a->F));
    TRY(kiln_sddmm_multiply(b->G, NULL, -1, KILN_TRANSPOSED, &sample, l2, b->F));
    for (int i = 0; i < SIDES; i++) TRY(dot(s, NORM, i, s->side[i].F, s->side[i].F));
    TRY(read_sums(s, NORM, NORM));
    *objective = squares / 2 + l2 / 2 * s->sum[NORM];
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
    TRY(kiln_fill(own->H, s->options.l2));
    TRY(kiln_multiply(own->H, 1, op, s->N, other->trial, 1, own->H));
    TRY(kiln_map(own->H, KILN_MAP_RECIPROCAL, own->H));
    TRY(kiln_times(own->Z, own->G, own->H));
done:
    return status;
}

/* D = beta D - Z, and its sums. */
static kiln_status turn(struct sfa *s, double beta) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i];
        TRY(add(own->D, -1, own->Z, beta, own->D));
        TRY(dot(s, SLOPE, i, own->G, own->D));
        TRY(dot(s, CROSS, i, own->F, own->D));
        TRY(dot(s, LENGTH, i, own->D, own->D));
    }
    TRY(read_sums(s, SLOPE, LENGTH));
done:
    return status;
}

/* Z, and D from it. A direction that does not lead down, as rounding may make it, begins anew with -Z. */
static kiln_status directions(struct sfa *s, bool anew) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i], *other = &s->side[1 - i];
        kiln_matrix *former = own->former;
        own->former = own->Z;
        own->Z = former;
        TRY(scale(s, own, other, i ? KILN_TRANSPOSED : KILN_PLAIN));
        TRY(dot(s, NOW, i, own->G, own->Z));
        if (!anew) TRY(dot(s, BEFORE, i, own->G, own->former));
    }
    TRY(read_sums(s, NOW, anew ? NOW : BEFORE));
    const double now = s->sum[NOW],
                 beta = anew || !(s->decrease > 0) ? 0 : fmax((now - s->sum[BEFORE]) / s->decrease, 0);
    s->decrease = now;
    TRY(turn(s, beta));
    if (s->sum[SLOPE] >= 0 && !anew) TRY(turn(s, 0)); /* Z is right already */
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ the step */

/* At F + t D. */
static kiln_status value_along(double *objective, struct sfa *s, double t) {
    double squares = 0;
    kiln_status status = KILN_OK;
    for (int i = 0; i < SIDES; i++) TRY(add(s->side[i].trial, 1, s->side[i].F, t, s->side[i].D));
    const kiln_sample sample = sample_of(s->S, s->side[0].trial, s->side[1].trial);
    TRY(kiln_sddmm(NULL, &squares, 1, &sample, 0));
    const double norms = s->sum[NORM] + t * (2 * s->sum[CROSS] + t * s->sum[LENGTH]);
    *objective = squares / 2 + s->options.l2 / 2 * norms;
done:
    return status;
}

/* The first t > 0 where c1 + 2 c2 t + 3 c3 t^2 + 4 c4 t^3, which is negative at 0, vanishes; at most
 * `most`. */
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
    double q[3], c[5] = {s->objective, s->sum[SLOPE]};
    kiln_status status = KILN_OK;
    for (int i = 0; i < 3; i++) { /* (f(t) - f - f' t) / t^2 = c2 + c3 t + c4 t^2 */
        double value;
        TRY(value_along(&value, s, at[i]));
        q[i] = ((value - s->objective) / at[i] - s->sum[SLOPE]) / at[i];
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
    for (int i = 0; i < SIDES; i++) TRY(add(s->side[i].F, 1, s->side[i].F, t, s->side[i].D));
done:
    return status;
}

/* One step; *fell: whether the objective is lower now. If it is not, the step has been taken back. */
static kiln_status iterate_once(bool *fell, struct sfa *s, bool anew) {
    double step, objective;
    kiln_status status;
    TRY(directions(s, anew));
    *fell = false;
    if (!(s->sum[SLOPE] < 0)) return KILN_OK;
    TRY(find_step(&step, s));
    TRY(move(s, step));
    TRY(gradients(&objective, s));
    *fell = objective < s->objective;
    s->step = *fell ? step : step / 2; /* too long: the polynomial is known about the former step alone */
    if (*fell) {
        s->objective = objective;
    } else {
        TRY(move(s, -step));
        TRY(gradients(&objective, s));
    }
done:
    return status;
}

/* All of A given B, then all of B given A, by Cholesky, and the two columns of a factor made equally long.
 * Nothing of more factors than Cholesky takes. */
static kiln_status exact_sweep(struct sfa *s) {
    enum { MOST = 1024 };
    struct side *a = &s->side[0], *b = &s->side[1];
    kiln_factor_rows rows = {
        .size = sizeof rows, .R = s->S, .B = b->F, .l2 = s->options.l2, .solver = KILN_FACTOR_CHOLESKY};
    kiln_status status = KILN_OK;
    double sum;
    if (s->factors > MOST) return KILN_OK;
    if (!s->transposed)
        TRY(ki_arena_take(&s->run.arena, &s->transposed,
                          ki_entries_take(&s->transposed, &sum, "kiln_sfa", s->S)));
    TRY(kiln_factor_solve(a->F, &rows));
    rows.R = s->transposed;
    rows.B = a->F;
    TRY(kiln_factor_solve(b->F, &rows));
    TRY(ki_balance_run(&s->balance, a->F, b->F, s->factors));
    TRY(gradients(&s->objective, s));
done:
    return status;
}

/* --------------------------------------------------------------------------------------- the run */

static bool gains(const struct sfa *s, double before) {
    return before - s->objective > s->run.tolerance * before;
}

/* A step that gains little says nothing of the ones after it, as long and short ones may take turns: the run
 * ends where eight along the scaled gradient gain little, and an exact sweep, too. Where that one gains more
 * the direction begins anew. */
static kiln_status confirm(struct sfa *s, double before) {
    kiln_status status = KILN_OK;
    bool fell;
    for (int turn = 0; turn < 8 && !gains(s, before); turn++) TRY(iterate_once(&fell, s, true));
    if (gains(s, before)) goto done;
    TRY(exact_sweep(s));
    if (gains(s, before)) TRY(iterate_once(&fell, s, true));
done:
    return status;
}

static kiln_status check_value(const struct sfa *s) {
    if (isfinite(s->objective)) return KILN_OK;
    ki_fail(KILN_ERR_DATA, "kiln_sfa: the objective overflows %s",
            kiln_matrix_type(s->S) == KILN_F32 ? "f32" : "f64");
    return ki_hint("scale the entries of R");
}

static kiln_status sfa_iterate(struct sfa *s) {
    enum { OF_START = 2, OF_ITERATION = 7 }; /* passes over R */
    struct ki_run *run = &s->run;
    struct side *a = &s->side[0], *b = &s->side[1];
    const struct ki_state state[] = {{"A", .matrix = &a->F},
                                     {"A gradient", .matrix = &a->G},
                                     {"A scaled", .matrix = &a->Z},
                                     {"A direction", .matrix = &a->D},
                                     {"B", .matrix = &b->F},
                                     {"B gradient", .matrix = &b->G},
                                     {"B scaled", .matrix = &b->Z},
                                     {"B direction", .matrix = &b->D},
                                     {"sums", .reals = s->sum, .count = SUMS},
                                     {"decrease", .reals = &s->decrease},
                                     {"step", .reals = &s->step},
                                     {"objective", .reals = &s->objective},
                                     {"test", .reals = &s->test_rmse}};
    kiln_status status;
    KI_RUN_STATE(run, state);
    TRY(ki_run_resume(run));
    if (!run->resumed) {
        run->report.passes = OF_START;
        s->step = 1;
        TRY(gradients(&s->objective, s));
        TRY(check_value(s));
    }
    while (ki_run_goes_on(run)) {
        const double before = s->objective;
        bool fell = false;
        TRY(iterate_once(&fell, s, run->report.iterations == 0));
        TRY(confirm(s, before));
        TRY(measure_test(s));
        run->report.passes += OF_ITERATION;
        TRY(ki_run_step(run,
                        &(kiln_trace_row){.objective = s->objective,
                                          .residual = fmax(before - s->objective, 0) / fmax(before, DBL_MIN),
                                          .test = s->T ? s->test_rmse : 0}));
    }
done:
    return status;
}

/* ----------------------------------------------------------------------------------------- the start */

static void make_side(struct side *side, struct ki_arena *arena, const kiln_matrix *given, int64_t factors) {
    kiln_matrix **const all[] = {&side->F,      &side->G, &side->H,    &side->Z,
                                 &side->former, &side->D, &side->trial};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = ki_arena_rows(arena, given, factors);
}

static kiln_status start(struct sfa *s, const kiln_matrix *A, const kiln_matrix *B) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < SIDES; i++) {
        struct side *own = &s->side[i];
        if (s->options.warm_start) {
            TRY(ki_sfa_factors(own->F, i ? B : A));
        } else {
            TRY(kiln_fill_random(own->F, KILN_NORMAL, (uint64_t)s->options.seed,
                                 KI_STREAM_SFA + (uint64_t)i));
            TRY(add(own->F, 0.1 * sqrt(s->spread.deviation), own->F, 0, NULL));
        }
    }
done:
    return status;
}

static kiln_status sfa_check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *R,
                             const kiln_sfa_options *o) {
    static const char call[] = "kiln_sfa";
    kiln_status status;
    TRY(ki_factors_check(call, "R", A, B, R, o->test));
    if (!(o->l2 >= 0) || isinf(o->l2) || !(o->damping >= 0) || isinf(o->damping))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: l2 must be finite and positive, damping not negative", call);
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
    if (kiln_matrix_cols(A) < 2)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A and B need a column for means behind the factors", call);
    if (kiln_matrix_nnz(R) == 0) return ki_fail(KILN_ERR_DATA, "%s: R has no entries", call);
done:
    return status;
}

/* Sums along a direction are in the type, and of the square of the entries' size. */
static const struct ki_room of_sums = {1e15, 1e140};

/* The means, and the penalty that stands for 0. */
static kiln_status look(struct sfa *s, const kiln_matrix *R) {
    const int64_t nnz = kiln_matrix_nnz(R);
    kiln_sfa_options *o = &s->options;
    struct ki_arena arena = {0};
    struct ki_counts counts = {0};
    kiln_status status;
    bool has;
    TRY(ki_sfa_means_measure(&s->means, &s->run.arena, R, o->damping));
    TRY(ki_spread_take(&s->spread, R, s->means.mean * (double)nnz));
    TRY(ki_room_has(&has, of_sums, R));
    if (!has || !isfinite(s->spread.squares)) TRY(ki_room_fail("kiln_sfa", "sums of squares", R));
    TRY(ki_counts_take(&counts, &arena, R, NULL));
    if (!ki_option_stands(o, &ki_algorithm_sfa, "l2"))
        o->l2 = ki_factor_penalty(&counts, nnz, s->spread.deviation);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status sfa_begin(struct sfa *s, const kiln_matrix *A, const kiln_matrix *B,
                             const kiln_matrix *R) {
    struct ki_arena *arena = &s->run.arena;
    const kiln_matrix *test = s->options.test;
    kiln_status status;
    s->factors = kiln_matrix_cols(A) - 1;
    TRY(look(s, R));
    TRY(ki_sfa_centred(&s->S, arena, R, &s->means));
    TRY(ki_arena_take(arena, &s->N, kiln_matrix_like(&s->N, s->S, KILN_TYPE_DEFAULT, NULL)));
    if (test && kiln_matrix_nnz(test) > 0) TRY(ki_sfa_centred(&s->T, arena, test, &s->means));
    s->sums = ki_run_sums(&s->run, SUMS * SIDES, s->factors);
    s->read = ki_run_reals(&s->run, SUMS * SIDES * s->factors);
    make_side(&s->side[0], arena, A, s->factors);
    make_side(&s->side[1], arena, B, s->factors);
    TRY(arena->status);
    TRY(ki_balance_begin(&s->balance, arena, NULL, s->side[0].F, s->side[1].F));
    TRY(start(s, A, B));
done:
    return status;
}

static kiln_status report_figures(struct sfa *s) {
    kiln_report *report = &s->run.report;
    double squares;
    kiln_status status;
    ki_report_figure(report, "mean", s->means.mean);
    TRY(ki_entries_squares(&squares, s->S, 0));
    ki_report_setbacks(report, 1, 0, kiln_matrix_type(s->S), squares, 0);
    if (s->options.test) ki_report_figure(report, "test_rmse", s->test_rmse);
    TRY(ki_factor_figures(report, s->options.l2, s->side[0].F, s->side[1].F, s->factors, squares));
done:
    return status;
}

kiln_status kiln_sfa(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *R, const kiln_sfa_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct sfa s = {.test_rmse = NAN};
    kiln_sfa_options *o = &s.options;
    TRY(KI_RUN_OPEN(&s.run, sfa, o, options, report));
    ki_sfa_fill(o, R ? kiln_matrix_type(R) : KILN_F64);
    TRY(sfa_check(A, B, R, o));
    ki_run_on(&s.run, R, o->tolerance, o->max_iterations);
    const kiln_sfa_options wanted = *o; /* for checkpoints: what the data decide is 0 still */
    TRY(sfa_begin(&s, A, B, R));
    TRY(ki_run_begin(&s.run, (struct ki_described){.options = &wanted,
                                                   .seed = o->seed,
                                                   .given = {{"the entries held out", o->test}}}));
    TRY(sfa_iterate(&s));
    TRY(report_figures(&s));
    TRY(ki_sfa_join(A, s.side[0].F, s.means.row));
    TRY(ki_sfa_join(B, s.side[1].F, s.means.column));
done:
    return ki_run_close(&s.run, status);
}
