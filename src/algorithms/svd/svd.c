/* Truncated singular value decomposition: C = B^T B is searched for its largest eigenvalues by a block
 * Krylov method whose steps are passes over X (svd_search.c); the triples that follow are judged on A itself
 * (svd_judge.c), and what falls short, as small singular values do, is searched for beside the others. */
#include "algorithms/svd/svd.h"

static const char call[] = "kiln_svd";

static kiln_status svd_check(const struct ki_svd *s, const kiln_matrix *U, const kiln_matrix *sigma,
                             const kiln_matrix *V, const kiln_matrix *X) {
    const kiln_svd_options *o = &s->options;
    kiln_status status;
    if (!V || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", call, V ? "X" : "V");
    const int64_t m = kiln_matrix_rows(X), n = kiln_matrix_cols(X), k = kiln_matrix_cols(V);
    if (m == 0 || n == 0) return ki_fail(KILN_ERR_DATA, "%s: X has no %s", call, m == 0 ? "rows" : "columns");
    if (k < 1 || k > ki_min(m, n))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: V has %lld columns, but X is %lld x %lld and has %lld triples",
                       call, (long long)k, (long long)m, (long long)n, (long long)ki_min(m, n));
    const struct {
        const char *name;
        const kiln_matrix *A;
        int64_t rows, cols;
        bool needed;
    } wanted[] = {{"U", U, m, k, false},
                  {"s", sigma, k, 1, true},
                  {"V", V, n, k, true},
                  {"mean", o->mean, n, 1, false},
                  {"deviation", o->deviation, n, 1, false},
                  {"variance", o->variance, k, 1, false}};
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (wanted[i].A || wanted[i].needed)
            TRY(ki_check_matrix(call, wanted[i].name, wanted[i].A, X, wanted[i].rows, wanted[i].cols));
    if (o->solver < 0 || o->solver > KILN_SVD_GRAM)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s_options.solver is %d, but must be 1 or 2", call, (int)o->solver));
done:
    return status;
}

/* -------------------------------------------------------------------------------------- before the run */

/* A dense X is copied with its columns about their means where these are far off, so that nothing
 * cancels. */
static kiln_status take_means_off(struct ki_svd *s, const struct ki_columns *columns) {
    static const double FAR = 1e4; /* a mean's square, in variances */
    kiln_status status = KILN_OK;
    struct ki_arena *arena = &s->run.arena;
    bool far = false;
    for (int64_t j = 0; j < s->n; j++)
        far |= columns->mean[j] * columns->mean[j] > FAR * columns->variance[j] && columns->mean[j] != 0;
    if (!far || kiln_matrix_format(s->X) != KILN_DENSE) goto done;
    kiln_matrix *own = NULL, *row = ki_run_model(&s->run, 1, s->n);
    TRY(ki_arena_take(arena, &own, ki_whole_of(&s->X, &own, s->X)));
    kiln_matrix *const copy = ki_run_rows(&s->run, s->X, s->n);
    TRY(arena->status);
    TRY(ki_vector_get(s->means, s->mean));
    memcpy(s->deviations, s->means, (size_t)s->n * sizeof *s->means);
    TRY(ki_vector_set(row, s->deviations));
    TRY(kiln_multiply(copy, -1, KILN_PLAIN, s->ones, row, 1, s->X));
    s->X = copy;
    TRY(kiln_multiply(s->mean, 1 / (double)s->m, KILN_TRANSPOSED, copy, s->ones, 0, NULL));
done:
    return status;
}

/* Means, deviations and the sum of variances, as options want them. */
static kiln_status measure(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    struct ki_arena own = {0};
    struct ki_columns columns = {0};
    struct ki_moments asked = {0};
    const bool center = s->options.center, scale = s->options.scale;
    double *const rest = ki_arena_reals(&own, s->n);
    TRY(own.status);
    s->total = NAN;
    for (int64_t j = 0; j < s->n; j++) s->deviations[j] = 1;
    if (!center && !scale) goto done;
    TRY(ki_columns_measure(&columns, &asked, &own, s->X, s->ones, (double)s->m));
    s->run.report.passes += asked.passes;
    s->total = 0;
    if (center) {
        s->mean = ki_run_model(&s->run, s->n, 1);
        TRY(s->run.arena.status);
        memcpy(rest, columns.mean, (size_t)s->n * sizeof *rest);
        TRY(ki_vector_set(s->mean, rest));
        TRY(take_means_off(s, &columns));
        TRY(ki_vector_get(rest, s->mean));
    }
    for (int64_t j = 0; j < s->n; j++) {
        const double deviation = sqrt(columns.variance[j]);
        s->means[j] = center ? columns.mean[j] : 0;
        s->deviations[j] = scale && deviation > 0 ? deviation : 1;
        s->total += columns.variance[j] / (s->deviations[j] * s->deviations[j]);
    }
    s->total *= (double)s->m / (double)(s->m - 1);
done:
    return ki_arena_free(&own, status);
}

/* ERR_DATA where A's size is NaN or infinite; else unit, the power of two that makes it about 1. */
static kiln_status find_unit(struct ki_svd *s) {
    kiln_status status;
    struct ki_arena own = {0};
    const double range = kiln_matrix_type(s->X) == KILN_F32 ? 0x1p8 : 0x1p64;
    kiln_matrix *const far = ki_arena_model(&own, s->X, s->far, s->b);
    double size = 0;
    TRY(own.status);
    TRY(kiln_fill_random(s->image, KILN_NORMAL, (uint64_t)s->options.seed, KI_STREAM_SVD));
    TRY(ki_svd_forward(s, &s->block, far, s->image));
    s->run.report.passes++;
    TRY(kiln_norm(s->block.root, far, KILN_NORM_2));
    for (int64_t c = 0; c < s->b; c++)
        if (!(s->block.root[c] <= size)) size = s->block.root[c];
    if (!isfinite(size))
        TRY((ki_fail(KILN_ERR_DATA, "%s: X has NaN or infinite values, or sums that overflow", call),
             ki_hint("clean the data, or divide them by a constant")));
    size /= sqrt((double)s->near);
    if (size == 0 || (size < range && size > 1 / range)) goto done;
    int exponent;
    frexp(size, &exponent);
    s->unit = ldexp(1, -exponent);
done:
    return ki_arena_free(&own, status);
}

/* inverse = unit / deviation. */
static kiln_status find_inverse(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    struct ki_arena own = {0};
    if (s->unit == 1 && !s->options.scale) return KILN_OK;
    double *const values = ki_arena_doubles(&own, s->n);
    if (!s->inverse) s->inverse = ki_run_model(&s->run, s->n, 1);
    TRY(own.status);
    TRY(s->run.arena.status);
    for (int64_t j = 0; j < s->n; j++) values[j] = s->unit / s->deviations[j];
    TRY(ki_vector_set(s->inverse, values));
done:
    return ki_arena_free(&own, status);
}

/* Columns of a block, and of the basis at most. */
static void find_sizes(struct ki_svd *s) {
    const int64_t least = s->k < 8 ? 8 : 16;
    const int64_t wanted = 2 * s->k + 6 * least;
    s->b = ki_max(least, (wanted / (KI_SVD_BLOCKS - 8) + 7) / 8 * 8);
    s->b = ki_min(s->b, s->near);
    s->most = (ki_min(wanted, s->near) + s->b - 1) / s->b * s->b + s->b;
    if (s->most + s->b >= s->near) s->most = (s->near + s->b - 1) / s->b * s->b + s->b;
}

static kiln_status svd_rooms(struct ki_svd *s) {
    struct ki_run *run = &s->run;
    const int64_t near = s->near, far = s->far, b = s->b, k = s->k, w = s->most;
    s->ones = ki_arena_fill(&run->arena, ki_run_rows(run, s->X, 1), 1);
    s->means = ki_run_reals(run, s->n);
    s->deviations = ki_run_reals(run, s->n);
    if (run->arena.status == KILN_OK) ki_svd_room_new(&s->block, s, b);
    if (run->arena.status == KILN_OK) ki_svd_room_new(&s->wanted, s, k);
    for (int64_t i = 0; i < w / b; i++) s->V[i] = ki_run_model(run, near, b);
    for (int64_t i = 0; i < w / b; i++) s->next[i] = ki_run_model(run, near, b);
    kiln_matrix **const blocks[] = {&s->W, &s->image, &s->spare};
    for (int i = 0; i < 3; i++) *blocks[i] = ki_run_model(run, near, b);
    kiln_matrix **const wanted[] = {&s->L, &s->near_v, &s->near_w};
    for (int i = 0; i < 3; i++) *wanted[i] = ki_run_model(run, near, k);
    kiln_matrix **const results[] = {&s->far_v, &s->far_w, &s->far_x};
    for (int i = 0; i < 3; i++) *results[i] = ki_run_model(run, far, k);
    s->products = ki_run_model(run, k, b);
    double **const squares[] = {&s->H, &s->K, &s->Q};
    for (int i = 0; i < 3; i++) *squares[i] = ki_run_reals(run, w * w);
    s->R = ki_run_reals(run, b * b);
    s->h = ki_run_reals(run, w * b);
    s->theta = ki_run_reals(run, w);
    s->rest = ki_run_reals(run, w);
    s->order = ki_arena_integers(&run->arena, w);
    s->s = ki_run_reals(run, k);
    s->residual = ki_run_reals(run, k);
    return run->arena.status;
}

/* -------------------------------------------------------------------------------------- the run */

/* A result that the search cannot make better within what it has: judged, and where that is not enough, what
 * is good is locked and the rest searched for beside it. */
static kiln_status settle(struct ki_svd *s) {
    kiln_status status;
    kiln_report *report = &s->run.report;
    int64_t good = 0;
    TRY(ki_svd_judge(s));
    if (report->residual <= s->run.tolerance) goto done;
    while (good < s->k && s->residual[good] <= s->run.tolerance) good++;
    if (good <= s->locked && !(report->residual < s->before / 2)) {
        report->stopped_by = KILN_STOP_STALLED;
        goto done;
    }
    s->before = report->residual;
    TRY(ki_svd_lock(s, good));
done:
    return status;
}

/* What a checkpoint holds. The blocks of V that are not there yet are 0. */
static void set_state(struct ki_svd *s) {
    static const char *const names[KI_SVD_BLOCKS] = {
        "V1",  "V2",  "V3",  "V4",  "V5",  "V6",  "V7",  "V8",  "V9",  "V10", "V11", "V12", "V13", "V14",
        "V15", "V16", "V17", "V18", "V19", "V20", "V21", "V22", "V23", "V24", "V25", "V26", "V27", "V28",
        "V29", "V30", "V31", "V32", "V33", "V34", "V35", "V36", "V37", "V38", "V39", "V40"};
    const struct ki_state others[KI_SVD_PARTS - KI_SVD_BLOCKS] = {
        {"L", .matrix = &s->L},
        {"H", .reals = s->H, .count = s->most * s->most},
        {"s", .reals = s->s, .count = s->k},
        {"least", .reals = &s->least},
        {"before", .reals = &s->before},
        {"known", .integers = &s->known, .least = 0, .most = s->most},
        {"blocks", .integers = &s->blocks, .least = 1, .most = s->most / s->b},
        {"locked", .integers = &s->locked, .least = 0, .most = s->k},
        {"streams", .integers = &s->streams},
        {"patience", .integers = &s->patience},
        {"exact", .flag = &s->exact}};
    const int64_t blocks = s->most / s->b;
    for (int64_t i = 0; i < blocks; i++) s->state[i] = (struct ki_state){names[i], .matrix = &s->V[i]};
    memcpy(s->state + blocks, others, sizeof others);
    s->run.state = s->state;
    s->run.parts = (int)blocks + KI_SVD_PARTS - KI_SVD_BLOCKS;
}

enum { PATIENCE = 30 };

static kiln_status svd_iterate(struct ki_svd *s) {
    struct ki_run *run = &s->run;
    kiln_status status = KILN_OK;
    while (ki_run_goes_on(run)) {
        bool settled;
        double squares = 0;
        TRY(ki_svd_step(s));
        ki_svd_ritz(s);
        const double estimate = ki_svd_estimate(s, &settled);
        s->patience = estimate < s->least || isinf(estimate) ? 0 : s->patience + 1;
        s->least = fmin(s->least, estimate);
        for (int64_t c = 0; c < s->k - s->locked && c < s->known; c++) squares += fmax(s->theta[c], 0);
        for (int64_t c = 0; c < s->locked; c++) squares += s->s[c] * s->s[c];
        run->report.residual = estimate, run->report.objective = squares / s->unit / s->unit;
        if (settled || s->patience >= PATIENCE) TRY(settle(s));
        run->unsettled = !(s->judged && run->report.residual <= run->tolerance);
        TRY(ki_run_step(
            run, &(kiln_trace_row){.residual = run->report.residual, .objective = run->report.objective}));
    }
done:
    return status;
}

/* -------------------------------------------------------------------------------------- behind the run */

/* Each column's sign: that of V's entry of the largest size, of equals the first, becomes positive. */
static kiln_status find_signs(double *signs, const struct ki_svd *s, const kiln_matrix *V) {
    kiln_status status;
    struct ki_arena own = {0};
    double *const values = ki_arena_doubles(&own, s->n * s->k), *const most = ki_arena_reals(&own, s->k);
    TRY(own.status);
    TRY(ki_vector_get(values, V));
    for (int64_t c = 0; c < s->k; c++) signs[c] = 1;
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t c = 0; c < s->k; c++) {
            const double value = values[j * s->k + c];
            if (!(fabs(value) > most[c])) continue;
            most[c] = fabs(value);
            signs[c] = value < 0 ? -1 : 1;
        }
done:
    return ki_arena_free(&own, status);
}

static kiln_status give_vector(kiln_matrix *to, const double *values, int64_t count) {
    kiln_status status;
    struct ki_arena own = {0};
    if (!to) return KILN_OK;
    double *const copy = ki_arena_doubles(&own, count);
    TRY(own.status);
    memcpy(copy, values, (size_t)count * sizeof *copy);
    TRY(ki_vector_set(to, copy));
done:
    return ki_arena_free(&own, status);
}

static kiln_status give(struct ki_svd *s, kiln_matrix *U, kiln_matrix *sigma, kiln_matrix *V) {
    kiln_status status;
    kiln_report *report = &s->run.report;
    struct ki_arena own = {0};
    const int64_t k = s->k, m = s->m;
    kiln_matrix *const left = s->wide ? s->near_v : s->far_v, *const right = s->wide ? s->far_v : s->near_v;
    double *const signs = ki_arena_reals(&own, k), *const variance = ki_arena_reals(&own, k);
    double rank = 0, parts = 0;
    TRY(own.status);
    TRY(kiln_dot(variance, left, s->ones));
    for (int64_t c = 0; c < k; c++) {
        const double value = s->s[c] / s->unit,
                     mean = s->options.center ? 0 : variance[c] * value / (double)m;
        rank += s->s[c] > (double)ki_max(m, s->n) * ki_epsilon(kiln_matrix_type(s->X)) * s->s[0];
        variance[c] = fmax(value * value - (double)m * mean * mean, 0) / (double)(m - 1);
        parts += variance[c];
        s->s[c] = value;
    }
    TRY(find_signs(signs, s, right));
    TRY(kiln_combine(V, signs, right, NULL, NULL));
    if (U) TRY(kiln_combine(U, signs, left, NULL, NULL));
    TRY(give_vector(sigma, s->s, k));
    TRY(give_vector(s->options.variance, variance, k));
    TRY(give_vector(s->options.mean, s->means, s->n));
    TRY(give_vector(s->options.deviation, s->deviations, s->n));
    ki_report_figure(report, "orthogonality", s->orthogonality);
    ki_report_figure(report, "variance", s->total);
    ki_report_figure(report, "rank", rank);
done:
    return ki_arena_free(&own, status);
}

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_svd(kiln_matrix *U, kiln_matrix *sigma, kiln_matrix *V, const kiln_matrix *X,
                     const kiln_svd_options *options, kiln_report *report) {
    kiln_status status;
    struct ki_svd s = {.run = {.unbounded = true}, .X = X, .unit = 1, .before = INFINITY};
    struct ki_run *const run = &s.run;
    kiln_svd_options *o = &s.options;
    TRY(KI_RUN_OPEN(run, svd, o, options, report));
    TRY(svd_check(&s, U, sigma, V, X));
    ki_options_fill(o, &ki_algorithm_svd, kiln_matrix_type(X));
    s.m = kiln_matrix_rows(X), s.n = kiln_matrix_cols(X), s.k = kiln_matrix_cols(V);
    s.wide = s.m < s.n;
    s.near = ki_min(s.m, s.n), s.far = ki_max(s.m, s.n);
    ki_run_on(run, X, o->tolerance, o->max_iterations);
    find_sizes(&s);
    TRY(svd_rooms(&s));
    TRY(measure(&s));
    TRY(find_inverse(&s));
    TRY(find_unit(&s));
    TRY(find_inverse(&s));
    TRY(ki_run_begin(run, (struct ki_described){.options = o}));
    run->report.solver = "krylov";
    set_state(&s);
    TRY(ki_svd_begin(&s));
    TRY(ki_run_resume(run));
    TRY(svd_iterate(&s));
    if (!s.judged) {
        ki_svd_ritz(&s);
        TRY(ki_svd_judge(&s));
    }
    TRY(give(&s, U, sigma, V));
done:
    return ki_run_close(run, status);
}
