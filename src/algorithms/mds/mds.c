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
    if (ki_lies_in_file(*D)) {
        TRY(ki_arena_free(&s->lines, KILN_OK));
        TRY(ki_mds_file(&s->line, &s->lines, *D, a, b, false));
        *D = s->line;
        return KILN_OK;
    }
    if (!s->line) {
        s->of_line = ki_run_reals(&s->run, 2 * s->n);
        s->ones = ki_arena_fill(&s->run.arena, ki_run_rows(&s->run, *D, 1), 1);
        s->line = ki_run_rows(&s->run, *D, s->n);
        TRY(s->run.arena.status);
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

/* A stress of which nothing is left to fall. */
static double nothing(const struct ki_mds *s) {
    const double epsilon = ki_epsilon(s->type);
    return 4 * epsilon * epsilon * ki_mds_squares(s);
}

/* Tells how the iteration has ended the start. */
static void mds_judge(struct ki_mds *s) {
    struct ki_run *run = &s->run;
    kiln_stop *stop = &run->report.stopped_by;
    const bool fine = run->tolerance >= 16 * ki_epsilon(s->type) && s->setbacks == 0;
    if (s->risen)
        *stop = fine ? KILN_STOP_TOLERANCE : KILN_STOP_STALLED;
    else if (!isfinite(s->stress))
        *stop = KILN_STOP_DIVERGED;
    else if (s->stress <= nothing(s) || stress_1(s) <= run->tolerance)
        *stop = KILN_STOP_TOLERANCE;
    run->report.residual = s->residual;
    ki_run_judge(run);
}

/* One iteration. Majorisation never raises the stress: if it does, this is rounding, and the layout before is
 * kept. */
static kiln_status iterate_once(struct ki_mds *s) {
    kiln_status status;
    const double before = s->stress, squares = s->squares;
    swap(&s->former, &s->Y);
    swap(&s->Y, &s->next);
    TRY(assess(s));
    s->residual = before > nothing(s) ? fmin((before - s->stress) / before, stress_1(s)) : 0;
    s->risen = s->stress > before;
    if (s->risen) {
        s->setbacks += s->stress - before > rounding_of(s, before);
        swap(&s->Y, &s->former);
        s->stress = before, s->squares = squares;
    }
    if (s->risen || s->stress <= nothing(s)) s->residual = 0;
done:
    return status;
}

/* Lowers the stress from the layout in Y on, or, in a run that goes on, from where it was. Y is then the
 * last layout whose stress is known. */
static kiln_status descend(struct ki_mds *s) {
    kiln_status status = KILN_OK;
    struct ki_run *run = &s->run;
    while (ki_run_goes_on(run)) {
        TRY(iterate_once(s));
        run->report.iterations++;
        run->report.passes = s->steps;
        TRY(ki_run_row(run,
                       &(kiln_trace_row){.objective = stress_given(s, s->stress), .residual = s->residual}));
        ki_run_tell(run);
        mds_judge(s);
        TRY(ki_run_keep(run));
    }
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

/* The start's first layout, and its stress. */
static kiln_status begin_start(struct ki_mds *s, const kiln_matrix *given) {
    kiln_status status;
    struct ki_run *run = &s->run;
    const int64_t turn = run->turn;
    ki_run_start(run);
    run->begun = run->report.iterations = run->report.trace_count = s->setbacks = 0;
    if (turn > 0 || s->options.init == KILN_MDS_RANDOM)
        TRY(ki_mds_random(s, (uint64_t)(2 * turn)));
    else
        TRY(s->options.init == KILN_MDS_GIVEN ? copy_scaled(s->Y, given, -s->exponent) : ki_mds_torgerson(s));
    TRY(assess(s));
done:
    return status;
}

/* The start's report changes places with another; figures are the run's. */
static void swap_reports(struct ki_run *run) {
    const kiln_report former = run->best;
    struct kiln_figures *const figures = run->report.figures;
    run->best = run->report;
    run->report = former; /* whose trace has room for the next */
    run->best.figures = NULL;
    run->report.figures = figures;
}

/* The layout, the next one, and the best of former starts. The first start that ends at the limit of
 * iterations stays in the checkpoint: with a higher limit the run goes on there, and makes the starts after
 * it again. The best layout of all starts is then in `best`, what is said of it in the report. */
static kiln_status try_starts(struct ki_mds *s, const kiln_matrix *given) {
    kiln_status status;
    struct ki_run *run = &s->run;
    const struct ki_state state[] = {{"turn", .integers = &run->turn, .least = 0, .most = KI_STATE_MOST},
                                     {"steps", .integers = &s->steps},
                                     {"layout", .matrix = &s->Y},
                                     {"next", .matrix = &s->next},
                                     {"stress", .reals = &s->stress},
                                     {"squares", .reals = &s->squares},
                                     {"residual", .reals = &s->residual},
                                     {"risen", .flag = &s->risen},
                                     {"setbacks", .integers = &s->setbacks},
                                     {"best", .matrix = &s->best},
                                     {"best stress", .reals = &s->best_stress},
                                     {"best squares", .reals = &s->best_squares},
                                     {"best report", .report = &run->best},
                                     {"best setbacks", .integers = &s->best_setbacks}};
    KI_RUN_STATE(run, state);
    run->gains = true;
    run->former = 5;
    TRY(ki_run_look(run, 1)); /* turn, which decides what else there is */
    TRY(ki_run_resume(run));
    if (run->resumed) { /* a start may have ended, and others follow */
        run->report.stopped_by = KILN_STOP_NONE;
        mds_judge(s);
    }
    for (; run->turn < run->restarts && !run->cancelled; run->turn++, run->resumed = false) {
        if (!run->resumed) TRY(begin_start(s, given));
        TRY(descend(s));
        if (!(s->stress < s->best_stress || run->turn == 0)) continue;
        swap_reports(run);
        run->report.stopped_by = run->best.stopped_by; /* how the latest start ended */
        swap(&s->best, &s->Y);
        s->best_stress = s->stress, s->best_squares = s->squares, s->best_setbacks = s->setbacks;
    }
done:
    return status;
}

static kiln_status mds_begin(struct ki_mds *s, const kiln_matrix *X) {
    kiln_status status;
    struct ki_run *run = &s->run;
    kiln_matrix **const layouts[] = {&s->Y, &s->next, &s->former, &s->best, &s->R};
    for (int i = 0; i < 5; i++) *layouts[i] = ki_run_rows(run, X, s->p);
    if (s->options.metric == KILN_MDS_INTERVAL) s->U = ki_run_rows(run, X, s->p);
    s->sums = ki_run_sums(run, 1, SUMS);
    TRY(run->arena.status);
    TRY(ki_mds_take(s, X));
    run->pass_bytes = (s->type == KILN_F32 ? 4 : 8) * s->n * (s->D ? s->n / 2 : kiln_matrix_cols(s->X));
    TRY(measure_points(s));
    if (isinf(stress_given(s, s->delta_squares)))
        TRY((ki_fail(KILN_ERR_DATA, "kiln_mds: the sum of the squared dissimilarities is beyond any double"),
             ki_hint("divide the data by a constant")));
    if (s->weights) TRY(ki_laplacian_new(s));
    if (s->options.metric == KILN_MDS_ORDINAL) TRY(ki_ordinal_new(s));
done:
    return status;
}

/* The points' stress in the units and the type that the caller has. */
static kiln_status give_points(kiln_matrix *given, const kiln_matrix *points, const struct ki_mds *s) {
    kiln_status status;
    struct ki_arena arena = {0};
    double *const values = ki_arena_room(&arena, s->n, sizeof *values);
    TRY(arena.status);
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
    return ki_arena_free(&arena, status);
}

/* The best layout is measured once more, with the disparities that belong to it: a line's figures come from
 * its differences. */
static kiln_status measure_best(struct ki_mds *s, kiln_matrix *given) {
    kiln_status status;
    struct ki_arena arena = {0};
    const kiln_matrix *D = s->D;
    kiln_matrix *const points = given ? ki_arena_rows(&arena, s->Y, 1) : NULL;
    kiln_report *report = &s->run.report;
    double a, b;
    TRY(arena.status);
    swap(&s->Y, &s->best);
    if (s->ordinal) TRY(ki_ordinal_fit(&D, s));
    if (s->U) {
        TRY(step(s, D, NULL));
        fit_line(&a, &b, s);
        TRY(ki_mds_line(&D, s, a, b));
    }
    TRY(step(s, D, points));
    s->stress = s->total[STRESS], s->squares = s->total[SQUARES];
    if (report->trace_count > 0)
        report->trace[report->trace_count - 1].objective = stress_given(s, s->stress);
    swap(&s->Y, &s->best);
    if (given) TRY(give_points(given, points, s));
done:
    return ki_arena_free(&arena, status);
}

/* ------------------------------------------------------------------------------------- the registry's row */

static const kiln_option options_table[] = {
    KI_OPTION(kiln_mds_options, metric, CHOICE, KILN_MDS_RATIO, KILN_MDS_RATIO, 1, 3,
              "ratio|interval|ordinal",
              "What distances are to be near: the dissimilarities (ratio), a line through them (interval), "
              "or any values that rise with them (ordinal, non-metric)."),
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
    KI_OPTION_ITERATIONS(kiln_mds_options, 1000, " of each start"),
};

const struct ki_algorithm ki_algorithm_mds = {
    .shown = {"mds", "Lay points out so that distances come near their dissimilarities",
              KI_OPTIONS(options_table, kiln_mds_options), .predicts = 1, .trial = &ki_trial_mds,
              .components = 2},
    .given = offsetof(kiln_mds_options, given),
    .tensors = {{"layout", 'n', 'p', false, false, false}, {"points", 'n', 'q', true, false, false}},
    .predict = ki_mds_predict,
    .passes = {300, 0, false}};

/* --------------------------------------------------------------------------------------------- the whole */

/* The result is the best start's. */
static kiln_status give(struct ki_mds *s, kiln_matrix *Y) {
    kiln_status status;
    struct ki_run *run = &s->run;
    kiln_report *report = &run->report;
    const bool whole = run->turn == run->restarts && run->report.stopped_by != KILN_STOP_CANCELLED;
    swap_reports(run);
    if (!whole) report->stopped_by = KILN_STOP_CANCELLED;
    s->stress = s->best_stress, s->squares = s->best_squares;
    if (s->options.point_stress || s->U) TRY(measure_best(s, s->options.point_stress));
    TRY(copy_scaled(Y, s->best, s->exponent));
    report->objective = stress_given(s, s->stress);
    report->passes = s->steps;
    ki_report_figure(report, "stress", report->objective);
    ki_report_figure(report, "stress_1", s->squares > 0 ? stress_1(s) : s->stress > 0 ? (double)NAN : 0);
    ki_report_figure(report, "setbacks", (double)s->best_setbacks);
done:
    return status;
}

/* Orders, weights, and distances of which a line is fitted, are of all pairs at once. */
static bool needs_all(const struct ki_mds *s) {
    const kiln_mds_options *o = &s->options;
    return o->weights || o->metric == KILN_MDS_ORDINAL ||
           (!o->dissimilarities && o->metric != KILN_MDS_RATIO);
}

kiln_status kiln_mds(kiln_matrix *Y, const kiln_matrix *X, const kiln_mds_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct ki_mds s = {.exponent = 0};
    struct ki_run *const run = &s.run;
    kiln_mds_options *o = &s.options;
    kiln_matrix *own_X = NULL;
    TRY(KI_RUN_OPEN(run, mds, o, options, report));
    ki_options_fill(o, &ki_algorithm_mds, X ? kiln_matrix_type(X) : KILN_F64);
    TRY(ki_mds_check(Y, X, o));
    s.device = kiln_matrix_device(X), s.type = kiln_matrix_type(X);
    s.n = kiln_matrix_rows(X), s.p = kiln_matrix_cols(Y);
    /* A pair's points lie in any two processes. */
    TRY(ki_arena_take(&run->arena, &own_X, ki_whole_of(&X, &own_X, X)));
    ki_run_on(run, X, o->tolerance, o->max_iterations);
    run->restarts = o->restarts;
    if (ki_lies_in_file(X) && needs_all(&s)) TRY(ki_mds_whole(&X, &s));
    s.given = X;
    TRY(mds_begin(&s, X));
    TRY(ki_run_begin(run, (struct ki_described){.options = o,
                                                .seed = (int64_t)o->seed,
                                                .given = {{"the weights", o->weights}}}));
    TRY(try_starts(&s, Y));
    TRY(give(&s, Y));
done:
    ki_arena_free(&s.lines, status);
    return ki_run_close(run, status);
}
