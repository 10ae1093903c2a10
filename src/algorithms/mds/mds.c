/* Multi-dimensional scaling by SMACOF: coordinates whose distances come near the dissimilarities.
 *
 *   stress(Y) = sum_{i<j} w_ij (dhat_ij - d_ij(Y))^2
 *
 * Each layout is the one that minimises a quadratic that touches the stress at the layout before and is
 * nowhere below it (de Leeuw's majorisation), so that the stress never rises. One pass over the pairs gives
 * a layout's stress and the next layout: the stress that is reported is that of the layout returned, a sum
 * of squared differences. The disparities dhat are the dissimilarities (ratio), their best line a + b delta
 * with a + b delta_least >= 0 and b >= 0 (interval), or any values that rise with them (ordinal); the last
 * two are fitted to the distances at each layout and scaled so that sum w dhat^2 = sum w, as stress would
 * otherwise fall by shrinking all. */
#include "algorithms/mds/mds.h"

#include "algorithms/run/checkpoint.h"

enum { STRESS, SQUARES, DISTANCES, PRODUCTS, SUMS }; /* of kiln_guttman */

/* One pass over the pairs at Y; R (and U) and total. `points`: or NULL. */
static kiln_status step(struct ki_mds *s, const kiln_matrix *D, kiln_matrix *points) {
    kiln_status status;
    const kiln_guttman step = {.R = s->R,
                               .U = s->U,
                               .sums = s->sums,
                               .points = points,
                               .Y = s->Y,
                               .D = D,
                               .X = D ? NULL : s->X,
                               .weights = s->weights};
    TRY(kiln_guttman_step(&step));
    TRY(ki_vector_get(s->total, s->sums));
    s->steps += points ? 2 : 1;
done:
    return status;
}

/* The sums over all pairs of points, which a step at a layout without extent gives: d = 0 throughout, so
 * that stress is sum delta^2. Only the squares are needed without weights and lines. */
static kiln_status measure_points(struct ki_mds *s) {
    kiln_status status;
    if (s->pairs > 0) return KILN_OK;
    TRY(kiln_fill(s->Y, 0));
    TRY(step(s, s->D, NULL));
    s->pairs = (double)s->n * (double)(s->n - 1) / 2;
    s->delta_squares = s->total[STRESS];
done:
    return status;
}

/* ---------------------------------------------------------------------------------------------- a layout */

/* The line a + b delta, a and b >= 0, that is nearest the distances, scaled; the least delta is 0. */
static void fit_line(double *a, double *b, const struct ki_mds *s) {
    const double w = s->pairs, x = s->delta_sum, xx = s->delta_squares, d = s->total[DISTANCES],
                 xd = s->total[PRODUCTS], determinant = w * xx - x * x;
    *a = w > 0 ? d / w : 0, *b = 0;
    if (determinant > 0) {
        *a = (xx * d - x * xd) / determinant;
        *b = (w * xd - x * d) / determinant;
    }
    if (*a < 0) *a = 0, *b = xd / xx;
    if (*b < 0) *b = 0, *a = d / w;
    const double squares = *a * *a * w + 2 * *a * *b * x + *b * *b * xx,
                 scale = squares > 0 ? sqrt(w / squares) : 1;
    *a *= scale, *b *= scale;
}

kiln_status ki_mds_line(const kiln_matrix **D, struct ki_mds *s, double a, double b) {
    kiln_status status = KILN_OK;
    if (!s->line) {
        TRY(kiln_matrix_dense(&s->line, s->device, s->type, s->n, s->n, NULL));
        TRY(kiln_matrix_dense(&s->ones, s->device, s->type, s->n, 1, NULL));
        TRY(kiln_fill(s->ones, 1));
        if (!(s->of_line = ki_alloc((size_t)s->n * 2 * sizeof *s->of_line)))
            TRY(ki_fail_nomem((size_t)s->n * 2 * sizeof *s->of_line, "disparities"));
    }
    for (int64_t i = 0; i < s->n; i++) s->of_line[i] = b, s->of_line[s->n + i] = a;
    TRY(kiln_combine(s->line, s->of_line, *D, s->of_line + s->n, s->ones));
    *D = s->line;
done:
    return status;
}

/* next = V^+ (R + a U): without weights a division by n. */
static kiln_status next_layout(struct ki_mds *s, double a, double b) {
    double of_R[64], of_U[64];
    kiln_status status;
    const double scale = s->weights ? 1 : 1 / (double)s->n;
    for (int64_t c = 0; c < s->p; c++) of_R[c] = b * scale, of_U[c] = a * scale;
    if (!s->weights) return kiln_combine(s->next, of_R, s->R, of_U, s->U);
    TRY(kiln_combine(s->R, of_R, s->R, of_U, s->U));
    TRY(ki_laplacian_solve(s->next, s));
done:
    return status;
}

/* A line's stress is a sum of totals that cancel where the fit is good: below this share of sum w d^2 they
 * have too few digits left. */
static double cancels(const struct ki_mds *s) {
    return s->type == KILN_F32 ? 1e-2 : 1e-6;
}

/* Stress of Y, and the layout that majorisation makes of it. Where a line's cancels, a second pass takes the
 * differences. */
static kiln_status assess(struct ki_mds *s) {
    kiln_status status;
    const kiln_matrix *D = s->D;
    double a = 0, b = 1;
    if (s->ordinal) TRY(ki_ordinal_fit(&D, s));
    TRY(step(s, D, NULL));
    s->stress = s->total[STRESS];
    s->squares = s->total[SQUARES];
    if (s->U) {
        fit_line(&a, &b, s);
        s->stress = a * a * s->pairs + 2 * a * b * s->delta_sum + b * b * s->delta_squares -
                    2 * a * s->total[DISTANCES] - 2 * b * s->total[PRODUCTS] + s->squares;
        if (!(s->stress >= cancels(s) * s->squares)) {
            TRY(ki_mds_line(&D, s, a, b));
            TRY(step(s, D, NULL));
            s->stress = s->total[STRESS], a = 0, b = 1;
        }
    }
    TRY(next_layout(s, a, b));
done:
    return status;
}

/* A stress in the units of the data that were given. */
static double stress_given(const struct ki_mds *s, double stress) {
    return ldexp(stress, 2 * s->exponent + s->weight_exponent);
}

static void swap(kiln_matrix **a, kiln_matrix **b) {
    kiln_matrix *const former = *a;
    *a = *b;
    *b = former;
}

static bool cancelled(const struct ki_mds *s, const kiln_trace_row *row) {
    const kiln_control *control = &s->options.control;
    const double element = s->type == KILN_F32 ? 4 : 8,
                 entries = (double)s->n * (s->D ? (double)s->n / 2 : (double)kiln_matrix_cols(s->X));
    const kiln_progress now = {.phase = "solve",
                               .done = row->iteration,
                               .total = s->options.max_iterations,
                               .objective = row->objective,
                               .residual = row->residual,
                               .seconds = row->seconds,
                               .bytes = (int64_t)(element * entries * (double)s->steps)};
    return control->progress && control->progress(control->user, &now) != 0;
}

/* The layout, the next one, and the best of former starts. The first start that ends at the limit of
 * iterations stays in the checkpoint: with a higher limit the run goes on there, and makes the starts after
 * it again. */
enum { STATE = 12 };
static void state_of(struct ki_state state[STATE], struct ki_mds *s) {
    const bool former = s->turn > 0;
    const struct ki_state parts[STATE] = {{"turn", .integers = &s->turn, .least = 0, .most = KI_STATE_MOST},
                                          {"steps", .integers = &s->steps},
                                          {"layout", .matrix = &s->Y},
                                          {"next", .matrix = &s->next},
                                          {"stress", .reals = &s->stress},
                                          {"squares", .reals = &s->squares},
                                          {"best", .matrix = former ? &s->best : NULL},
                                          {"best stress", .reals = former ? &s->best_stress : NULL},
                                          {"best squares", .reals = former ? &s->best_squares : NULL},
                                          {"best report", .report = former ? &s->best_report : NULL},
                                          {"setbacks", .integers = &s->setbacks},
                                          {"best setbacks", .integers = former ? &s->best_setbacks : NULL}};
    memcpy(state, parts, sizeof parts);
}

static kiln_status resume(bool *resumed, struct ki_mds *s) {
    kiln_status status;
    struct ki_state state[STATE];
    state_of(state, s);
    TRY(ki_checkpoint_look(&s->options.control, state, 1)); /* turn, which decides what else there is */
    state_of(state, s);
    TRY(ki_checkpoint_resume(resumed, &s->options.control, state, STATE));
    s->limited = *resumed && s->report.stopped_by == KILN_STOP_ITERATIONS;
done:
    return status;
}

/* Kruskal's: without distances it says nothing. */
static double stress_1(const struct ki_mds *s) {
    return s->squares > 0 ? sqrt(s->stress / s->squares) : INFINITY;
}

/* By how much rounding may make a stress rise, at most: distances and disparities are known to some units of
 * themselves, off, which makes sum w (2 |dhat - d| off + off^2) of it, and sums of a line's totals to so many
 * units of what cancels in them (Cauchy and Schwarz, and Higham and Mary's bound for sums as they are). */
static double rounding_of(const struct ki_mds *s, double stress) {
    enum { SUMMED = 1000 };
    const double epsilon = ki_epsilon(s->type), width = s->X ? (double)kiln_matrix_cols(s->X) : 0,
                 off = epsilon * (8 + (double)s->p + width) * (sqrt(s->squares) + sqrt(ki_mds_squares(s)));
    return SUMMED * epsilon * (stress + (s->U ? s->squares : 0)) + 2 * sqrt(stress) * off + off * off;
}

/* Lowers the stress from the layout in Y on, or, in a run that goes on, from where it was. Y is then the
 * last layout whose stress is known. */
static kiln_status descend(struct ki_mds *s, bool resumed) {
    kiln_status status = KILN_OK;
    struct ki_state state[STATE];
    kiln_report *report = &s->report;
    const double epsilon = ki_epsilon(s->type), nothing = 4 * epsilon * epsilon * ki_mds_squares(s);
    if (!resumed) {
        report->stopped_by = KILN_STOP_NONE;
        report->iterations = report->trace_count = s->setbacks = 0;
        TRY(assess(s));
    }
    while (report->stopped_by == KILN_STOP_NONE) {
        const double before = s->stress, squares = s->squares;
        kiln_trace_row row = {.iteration = ++report->iterations};
        swap(&s->former, &s->Y);
        swap(&s->Y, &s->next);
        TRY(assess(s));
        row.objective = stress_given(s, s->stress);
        row.residual = before > nothing ? fmin((before - s->stress) / before, stress_1(s)) : 0;
        if (s->stress >
            before) { /* majorisation never does: this is rounding, and the layout before is kept */
            s->setbacks += s->stress - before > rounding_of(s, before);
            swap(&s->Y, &s->former);
            s->stress = before, s->squares = squares;
            row.objective = stress_given(s, before);
            row.residual = 0;
            report->stopped_by = s->options.tolerance >= 16 * epsilon && s->setbacks == 0
                                     ? KILN_STOP_TOLERANCE
                                     : KILN_STOP_STALLED;
        } else if (!isfinite(s->stress))
            report->stopped_by = KILN_STOP_DIVERGED;
        else if (s->stress <= nothing) /* of which nothing is left to fall */
            row.residual = 0, report->stopped_by = KILN_STOP_TOLERANCE;
        else if (row.residual <= s->options.tolerance)
            report->stopped_by = KILN_STOP_TOLERANCE;
        row.seconds = ki_clock() - s->start_time;
        TRY(ki_report_row(report, &row));
        report->residual = row.residual;
        if (cancelled(s, &row) && report->stopped_by == KILN_STOP_NONE)
            report->stopped_by = KILN_STOP_CANCELLED;
        else if (row.iteration >= s->options.max_iterations && report->stopped_by == KILN_STOP_NONE)
            report->stopped_by = KILN_STOP_ITERATIONS;
        state_of(state, s);
        if (!s->limited) TRY(ki_checkpoint_step(&s->options.control, state, STATE, report->stopped_by));
        s->limited |= report->stopped_by == KILN_STOP_ITERATIONS;
    }
    report->converged = report->stopped_by == KILN_STOP_TOLERANCE;
done:
    return status;
}

/* ------------------------------------------------------------------------------------------- all layouts */

/* to = 2^exponent from; in two factors, as there are exponents that a coefficient has no room for. */
static kiln_status copy_scaled(kiln_matrix *to, const kiln_matrix *from, int exponent) {
    kiln_status status;
    double half[64], rest[64];
    if (exponent == 0) return ki_copy(to, from);
    for (int c = 0; c < 64; c++)
        half[c] = ldexp(1, exponent / 2), rest[c] = ldexp(1, exponent - exponent / 2);
    TRY(kiln_combine(to, half, from, NULL, NULL));
    TRY(kiln_combine(to, rest, to, NULL, NULL));
done:
    return status;
}

static kiln_status start(struct ki_mds *s, const kiln_matrix *given, int64_t turn) {
    if (turn > 0 || s->options.init == KILN_MDS_RANDOM) return ki_mds_random(s, (uint64_t)(2 * turn));
    return s->options.init == KILN_MDS_GIVEN ? copy_scaled(s->Y, given, -s->exponent) : ki_mds_torgerson(s);
}

/* The best layout of all starts is in `best`, what is said of it in `report`. */
static kiln_status try_starts(struct ki_mds *s, const kiln_matrix *given) {
    kiln_status status;
    kiln_report *best = &s->best_report;
    struct kiln_figures *const figures = s->report.figures; /* of the run, not of a start */
    bool resumed, cut = false;
    s->report.figures = NULL;
    TRY(resume(&resumed, s));
    for (; s->turn < s->options.restarts; s->turn++, resumed = false) {
        if (!resumed) TRY(start(s, given, s->turn));
        TRY(descend(s, resumed));
        cut = s->report.stopped_by == KILN_STOP_CANCELLED;
        if (s->stress < s->best_stress || s->turn == 0) {
            const kiln_report former = *best;
            *best = s->report;
            s->report = former; /* whose trace has room for the next */
            swap(&s->best, &s->Y);
            s->best_stress = s->stress, s->best_squares = s->squares, s->best_setbacks = s->setbacks;
        }
        if (cut) break;
    }
    kiln_report_free(&s->report);
    s->report = *best;
    *best = (kiln_report){0};
    if (cut) s->report.stopped_by = KILN_STOP_CANCELLED, s->report.converged = 0;
    s->stress = s->best_stress, s->squares = s->best_squares;
done:
    s->report.figures = figures;
    return status;
}

static kiln_status allocate(struct ki_mds *s) {
    kiln_status status = KILN_OK;
    kiln_matrix **const layouts[] = {&s->Y, &s->next, &s->former, &s->best, &s->R};
    kiln_device_info info = {0};
    for (int i = 0; i < 5; i++) TRY(kiln_matrix_dense(layouts[i], s->device, s->type, s->n, s->p, NULL));
    if (s->options.metric == KILN_MDS_INTERVAL)
        TRY(kiln_matrix_dense(&s->U, s->device, s->type, s->n, s->p, NULL));
    TRY(kiln_device_get_info(s->device, &info));
    TRY(kiln_matrix_dense(&s->sums, s->device, info.has_f64 ? KILN_F64 : KILN_F32, 1, SUMS, NULL));
done:
    return status;
}

static void release(struct ki_mds *s) {
    kiln_matrix *const all[] = {s->Y,    s->next,  s->former,      s->best,  s->R,    s->U,
                                s->sums, s->own_D, s->own_weights, s->own_X, s->line, s->ones};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    ki_free(s->of_line);
    ki_ordinal_free(s->ordinal);
    ki_laplacian_free(s->laplacian);
    kiln_report_free(&s->report);
    kiln_report_free(&s->best_report);
}

static kiln_status solve(struct ki_mds *s, const kiln_matrix *given, const kiln_matrix *X) {
    kiln_status status;
    TRY(allocate(s));
    TRY(ki_mds_take(s, X));
    TRY(measure_points(s));
    if (isinf(stress_given(s, s->delta_squares)))
        TRY((ki_fail(KILN_ERR_DATA, "kiln_mds: the sum of the squared dissimilarities is beyond any double"),
             ki_hint("divide the data by a constant")));
    if (s->weights) TRY(ki_laplacian_new(s));
    if (s->options.metric == KILN_MDS_ORDINAL) TRY(ki_ordinal_new(s));
    TRY(ki_checkpoint_begin(&(struct ki_described){.control = &s->options.control,
                                                   .algorithm = "mds",
                                                   .options = &s->options,
                                                   .seed = s->options.seed,
                                                   .X = X,
                                                   .given = {{"the weights", s->options.weights}},
                                                   .report = &s->report,
                                                   .start = &s->start_time,
                                                   .most = s->options.max_iterations}));
    TRY(try_starts(s, given));
done:
    return status;
}

/* The points' stress in the units and the type that the caller has. */
static kiln_status give_points(kiln_matrix *given, const kiln_matrix *points, const struct ki_mds *s) {
    kiln_status status;
    double *values = ki_alloc((size_t)s->n * sizeof *values);
    if (!values) TRY(ki_fail_nomem((size_t)s->n * sizeof *values, "the points' stress"));
    TRY(ki_vector_get(values, points));
    for (int64_t i = 0; i < s->n; i++) {
        values[i] = stress_given(s, values[i]);
        if (kiln_matrix_type(given) == KILN_F32 && values[i] > (double)FLT_MAX)
            TRY((ki_fail(KILN_ERR_DATA, "kiln_mds: the stress of point %lld is %g, which f32 cannot hold",
                         (long long)i + 1, values[i]),
                 ki_hint("compute in f64, or divide the data by a constant")));
    }
    TRY(ki_vector_set(given, values));
done:
    ki_free(values);
    return status;
}

/* Of the best layout, once more with the disparities that belong to it: what is said of a line comes from
 * its differences. */
static kiln_status measure_best(struct ki_mds *s, kiln_matrix *given) {
    kiln_status status;
    const kiln_matrix *D = s->D;
    kiln_matrix *points = NULL;
    double a, b;
    if (given) TRY(kiln_matrix_dense(&points, s->device, s->type, s->n, 1, NULL));
    swap(&s->Y, &s->best);
    if (s->ordinal) TRY(ki_ordinal_fit(&D, s));
    if (s->U) {
        TRY(step(s, D, NULL));
        fit_line(&a, &b, s);
        TRY(ki_mds_line(&D, s, a, b));
    }
    TRY(step(s, D, points));
    s->stress = s->total[STRESS], s->squares = s->total[SQUARES];
    if (s->report.trace_count > 0)
        s->report.trace[s->report.trace_count - 1].objective = stress_given(s, s->stress);
    swap(&s->Y, &s->best);
    if (given) TRY(give_points(given, points, s));
done:
    kiln_matrix_free(points);
    return status;
}

/* ------------------------------------------------------------------------------------- the registry's row */

static const kiln_option options_table[] = {
    KI_OPTION(kiln_mds_options, metric, CHOICE, KILN_MDS_RATIO, KILN_MDS_RATIO, 1, 3,
              "ratio|interval|ordinal",
              "What distances are to be near: the dissimilarities (ratio), a line through them (interval), "
              "or any values that "
              "rise with them (ordinal, non-metric)."),
    KI_OPTION(kiln_mds_options, ties, CHOICE, KILN_MDS_PRIMARY, KILN_MDS_PRIMARY, 1, 2, "primary|secondary",
              "Ordinal: whether equal dissimilarities may have different disparities (primary) or not "
              "(secondary)."),
    KI_OPTION(kiln_mds_options, init, CHOICE, KILN_MDS_TORGERSON, KILN_MDS_TORGERSON, 1, 3,
              "torgerson|random|given",
              "The first start: classical scaling, random coordinates, or a given layout."),
    KI_OPTION(kiln_mds_options, dissimilarities, FLAG, 0, 0, 0, 1, NULL,
              "The data are a square matrix of dissimilarities; otherwise their rows are points, and "
              "distances are meant."),
    KI_OPTION(kiln_mds_options, restarts, INTEGER, 1, 1, 1, 1e9, NULL,
              "Start this many times, from random coordinates after the first, and keep the layout with the "
              "least stress."),
    KI_OPTION(kiln_mds_options, tolerance, REAL, 1e-6, 1e-5, 0, INFINITY, NULL,
              "Stop when an iteration lowers the stress by at most this share of it, or stress-1 is no more "
              "than this."),
    KI_OPTION(kiln_mds_options, max_iterations, INTEGER, 1000, 1000, 1, 9e18, NULL,
              "Stop each start after this many iterations, converged or not."),
};

const struct ki_algorithm ki_algorithm_mds = {
    .shown = {"mds", "Lay points out so that distances come near their dissimilarities",
              KI_OPTIONS(options_table, kiln_mds_options), .predicts = 1, .trial = &ki_trial_mds,
              .components = 2},
    .given = offsetof(kiln_mds_options, given),
    .tensors = {{"layout", 'n', 'p', false, false, false}, {"points", 'n', 'q', true, false, false}},
    .predict = ki_mds_predict,
    .passes = {100, 0, false}};

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_mds(kiln_matrix *Y, const kiln_matrix *X, const kiln_mds_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct ki_mds s = {.start_time = ki_clock()};
    kiln_matrix *own_X = NULL;
    TRY(KI_TAKE(kiln_mds_options, &s.options, options));
    TRY(ki_options_check(&s.options, &ki_algorithm_mds));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    ki_options_fill(&s.options, &ki_algorithm_mds, X ? kiln_matrix_type(X) : KILN_F64);
    TRY(ki_mds_check(Y, X, &s.options));
    s.device = kiln_matrix_device(X), s.type = kiln_matrix_type(X);
    s.n = kiln_matrix_rows(X), s.p = kiln_matrix_cols(Y);
    TRY(ki_report_begin(&s.report));
    TRY(ki_whole_of(&X, &own_X, X)); /* a pair's points lie in any two processes */
    TRY(solve(&s, Y, X));
    if (s.options.point_stress || s.U) TRY(measure_best(&s, s.options.point_stress));
    TRY(copy_scaled(Y, s.best, s.exponent));
    s.report.tolerance = s.options.tolerance;
    s.report.objective = stress_given(&s, s.stress);
    s.report.passes = s.steps;
    ki_report_figure(&s.report, "stress", s.report.objective);
    ki_report_figure(&s.report, "stress_1",
                     s.squares > 0  ? sqrt(s.stress / s.squares)
                     : s.stress > 0 ? NAN
                                    : 0);
    ki_report_figure(&s.report, "setbacks", (double)s.best_setbacks);
    s.report.seconds = ki_clock() - s.start_time;
    ki_report_hand_over(report, &s.report);
done:
    release(&s);
    kiln_matrix_free(own_X);
    return status;
}
