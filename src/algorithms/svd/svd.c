/* Truncated singular value decomposition: C = B^T B is searched for its largest eigenvalues by a block
 * Krylov method whose steps are passes over X (svd_search.c); the triples that follow are judged on A itself
 * (svd_judge.c), and what falls short, as small singular values do, is searched for beside the others. */
#include "algorithms/svd/svd.h"

static kiln_status svd_check(const struct ki_svd *s, const kiln_matrix *U, const kiln_matrix *sigma,
                             const kiln_matrix *V, const kiln_matrix *X) {
    const kiln_svd_options *o = &s->options;
    const char *const call = s->call;
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
        TRY(ki_fail(KILN_ERR_ARGUMENT, "kiln_svd_options.solver is %d, but must be 1 or 2", (int)o->solver));
    if (o->graph && (o->center || o->scale || o->solver == KILN_SVD_GRAM))
        TRY(ki_fail(KILN_ERR_ARGUMENT,
                    "%s: a graph's matrix is neither centred nor scaled, and has no Gram matrix", call));
    if (o->graph && m != n)
        TRY((ki_fail(KILN_ERR_DATA, "%s: X is %lld x %lld, but rows and columns must be the same vertices",
                     call, (long long)m, (long long)n),
             ki_hint("--format edges reads lines of two vertices")));
    if (o->solver == KILN_SVD_GRAM && m < n)
        TRY((ki_fail(KILN_ERR_UNSUPPORTED, "%s: the Gram matrix of X's columns is larger than X", call),
             ki_hint("kiln_svd_options.solver = krylov goes over X itself")));
done:
    return status;
}

/* -------------------------------------------------------------------------------------- the run */

/* A search with b vectors at once may know but b of more equal values. Returns where the first run of b equal
 * ones or more ends before other values, so that some may be missing there; 0: nowhere. */
static int64_t crowd_of(const struct ki_svd *s) {
    const double residual = s->run.report.residual,
                 near = (64 * ki_epsilon(kiln_matrix_type(s->X)) + residual * residual) * s->s[0];
    int64_t length = 1;
    for (int64_t c = s->locked + 1; c < s->k; c++) {
        const bool equal = s->s[c - 1] - s->s[c] <= near && s->s[c] > s->run.tolerance * s->s[0];
        if (!equal && length >= s->b && !ki_svd_is_whole(s)) return c;
        length = equal ? length + 1 : 1;
    }
    return 0;
}

/* A result that the search cannot make better within what it has is judged; where that is not enough, or
 * small values are lost in the rounding of large ones, what is good is locked and the rest searched for
 * beside it. */
static kiln_status settle(struct ki_svd *s, const struct ki_svd_outlook *look) {
    kiln_status status = KILN_OK;
    kiln_report *report = &s->run.report;
    const double tolerance = s->run.tolerance;
    const int64_t certain = ki_svd_agreed(s, look->certain);
    int64_t good = 0;
    const bool fine = report->residual <= tolerance;
    if (fine && (look->vanished || certain >= s->k - s->locked)) {
        const int64_t crowd = crowd_of(s);
        if (crowd > 0) TRY(ki_svd_lock(s, crowd, true));
        goto done;
    }
    while (good < s->locked + certain && s->residual[good] <= tolerance) good++;
    if (good <= s->locked && (fine || !(report->residual < s->before / 2))) {
        if (!fine) report->stopped_by = KILN_STOP_STALLED;
        goto done;
    }
    s->before = report->residual;
    TRY(ki_svd_lock(s, ki_max(good, s->locked), false));
done:
    return status;
}

enum { PATIENCE = 30, IDLE_MOST = 150, WAIT_MOST = 4 };

/* The parts of a checkpoint. */
static void set_state(struct ki_svd *s) {
    static const char *const names[KI_SVD_PANELS] = {"V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8"};
    const struct ki_state others[KI_SVD_PARTS - KI_SVD_PANELS] = {
        {"next", .matrix = &s->next},
        {"L", .matrix = &s->L},
        {"near", .matrix = &s->near_v}, /* where the search has just begun anew, nothing else has them */
        {"H", .reals = s->H, .count = s->most * s->most},
        {"s", .reals = s->s, .count = s->k},
        {"least", .reals = &s->least},
        {"before", .reals = &s->before},
        {"known", .integers = &s->known, .least = 0, .most = s->most},
        {"locked", .integers = &s->locked, .least = 0, .most = s->k},
        {"streams", .integers = &s->streams, .least = 0, .most = KI_STATE_MOST},
        {"patience", .integers = &s->patience, .least = 0, .most = KI_STATE_MOST},
        {"idle", .integers = &s->idle, .least = 0, .most = KI_STATE_MOST},
        {"wait", .integers = &s->wait, .least = 0, .most = WAIT_MOST},
        {"degree", .integers = &s->degree, .least = 1, .most = KI_SVD_DEGREE_MOST},
        {"beta", .reals = &s->beta},
        {"apart", .integers = &s->apart, .least = 1, .most = WAIT_MOST},
        {"seen", .reals = &s->seen},
        {"squares", .reals = &s->squares},
        {"exact", .flag = &s->exact}};
    for (int64_t i = 0; i < s->panels; i++) s->state[i] = (struct ki_state){names[i], .matrix = &s->V[i]};
    memcpy(s->state + s->panels, others, sizeof others);
    s->run.state = s->state;
    s->run.parts = (int)s->panels + KI_SVD_PARTS - KI_SVD_PANELS;
}

/* A state that the search can go on from, as far as ranges of integers do not say that. */
static kiln_status check_state(const struct ki_svd *s) {
    if (s->known % s->b != 0)
        return ki_fail(KILN_ERR_MODEL, "the checkpoint is damaged: %lld vectors are known, of blocks of %lld",
                       (long long)s->known, (long long)s->b);
    if (s->degree > 1 && !(s->beta > 0 && isfinite(s->beta)))
        return ki_fail(KILN_ERR_MODEL, "the checkpoint is damaged: a polynomial's bound is %g", s->beta);
    return KILN_OK;
}

/* Whether the host's look at the estimate, some 3 flops for each cube of V's columns, takes as long as a good
 * part of a step. */
static bool is_look_dear(const struct ki_svd *s) {
    enum { FASTER = 256 }; /* a GPU than a core of the host */
    const double n = (double)s->n, size = (double)s->known,
                 entries = s->G && !s->exact ? n * n : (double)kiln_matrix_nnz(s->X);
    const double step = 4 * entries * (double)(s->b * s->degree), look = 3 * size * size * size;
    return 8 * look > (s->on_cpu ? step : step / FASTER);
}

/* The next look, where it is dear, waits until the estimate may be small enough, if it falls on as it did. */
static void wait_for_next(struct ki_svd *s, double estimate) {
    const double goal = log(estimate / (s->run.tolerance / 2)),
                 gain = log(s->seen / estimate) / (double)s->apart;
    s->wait = 1;
    if (is_look_dear(s) && goal > 0 && isfinite(goal) && gain > 0)
        s->wait = isinf(gain) ? 2 : ki_max(1, (int64_t)fmin(goal / gain, WAIT_MOST));
    s->apart = s->wait;
    s->seen = estimate;
}

/* The search ends where triples are within the tolerance, or rounding may be what is left of the residuals
 * and they have not fallen for a while, or nothing at all has moved for a long one. */
static bool is_over(const struct ki_svd *s, const struct ki_svd_outlook *look) {
    return look->settled || (s->patience >= PATIENCE && look->estimate <= look->blur) || s->idle >= IDLE_MOST;
}

/* Looks at what the search has reached, and says what follows where it cannot make that better. The estimate
 * by a polynomial of C is a bound, and a wide one where rounding is near: before a restart X itself is asked,
 * which costs less than a step of many products. A look that is stopped leaves the state as it was. */
static kiln_status look(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    const int64_t patience = s->patience, idle = s->idle;
    const double rounding = 64 * ki_epsilon(kiln_matrix_type(s->X));
    struct ki_svd_outlook look;
    TRY(ki_svd_look(&look, s));
    if (!s->run.cancelled && s->degree > 1 && !look.settled && ki_svd_is_full(s)) {
        TRY(ki_svd_judge(s));
        look.estimate = s->run.report.residual;
        look.settled = look.estimate <= s->run.tolerance;
    }
    for (int64_t c = 0; c < s->locked; c++) look.squares += s->s[c] * s->s[c];
    const bool nearer = look.estimate < s->least;
    s->patience = nearer || isinf(look.estimate) ? 0 : patience + 1;
    s->idle = nearer || look.squares > s->squares * (1 + rounding) ? 0 : idle + 1;
    const bool over = is_over(s, &look);
    if (over && !s->judged && !s->run.cancelled) TRY(ki_svd_judge(s));
    if (s->run.cancelled) {
        s->patience = patience, s->idle = idle, s->wait = 0;
        goto done;
    }
    s->least = fmin(s->least, look.estimate);
    s->squares = look.squares;
    wait_for_next(s, look.estimate);
    if (over) {
        TRY(settle(s, &look));
        goto done;
    }
    s->run.report.residual = look.estimate;
    s->run.report.objective = s->squares / s->unit / s->unit;
done:
    return status;
}

/* An iteration that is stopped in its step, or in its look, does not count, and is the first of a run that
 * goes on. */
static kiln_status svd_iterate(struct ki_svd *s) {
    struct ki_run *run = &s->run;
    kiln_status status = KILN_OK;
    while (ki_run_goes_on(run)) {
        if (s->wait > 0) TRY(ki_svd_step(s));
        run->report.residual = s->seen, run->report.objective = s->squares / s->unit / s->unit;
        if (!run->cancelled && (--s->wait <= 0 || ki_svd_is_whole(s))) TRY(look(s));
        if (run->cancelled) {
            ki_run_judge(run);
            TRY(ki_run_keep(run));
            break;
        }
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

/* Whether X's type has room for the largest variance, with all of its digits. */
static bool variances_fit(const struct ki_svd *s) {
    const bool narrow = kiln_matrix_type(s->X) == KILN_F32;
    const double largest = s->s[0] / s->unit, square = largest * largest / (double)ki_max(s->m - 1, 1),
                 least = (narrow ? (double)FLT_MIN : DBL_MIN) / ki_epsilon(kiln_matrix_type(s->X));
    return largest == 0 || (square >= least && square <= (narrow ? (double)FLT_MAX : DBL_MAX));
}

static kiln_status give(struct ki_svd *s, kiln_matrix *U, kiln_matrix *sigma, kiln_matrix *V) {
    kiln_status status;
    kiln_report *report = &s->run.report;
    struct ki_arena own = {0};
    const int64_t k = s->k, m = s->m;
    kiln_matrix *const left = s->wide ? s->near_v : s->far_v, *const right = s->wide ? s->far_v : s->near_v;
    double *const signs = ki_arena_reals(&own, k), *const variance = ki_arena_reals(&own, k);
    const bool fit = variances_fit(s);
    const double least = (double)ki_max(m, s->n) * ki_epsilon(kiln_matrix_type(s->X)) * s->s[0];
    double rank = 0;
    TRY(own.status);
    TRY(kiln_dot(variance, left, s->ones));
    for (int64_t c = 0; c < k; c++) {
        const double value = s->s[c] / s->unit, sum = s->options.center ? 0 : variance[c],
                     about = fmax(1 - sum * sum / (double)m, 0); /* of 1, the sum of u's squares */
        rank += s->s[c] > least;
        variance[c] = fit ? value * value * about / (double)ki_max(m - 1, 1) : (double)NAN;
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
    if (!s->options.graph) ki_report_figure(report, "variance", s->total);
    ki_report_figure(report, "rank", rank);
    if (s->options.graph) ki_svd_graph_tell(s);
    if (!fit)
        ki_report_warn(report, "range", "the same decomposition of X over its largest number",
                       "the squares of the singular values leave the range of %s: variances are not known",
                       kiln_matrix_type(s->X) == KILN_F32 ? "f32" : "f64");
done:
    return ki_arena_free(&own, status);
}

/* --------------------------------------------------------------------------------------------- the whole */

static kiln_status decompose(struct ki_svd *s, const struct ki_algorithm *algorithm, kiln_matrix *U,
                             kiln_matrix *sigma, kiln_matrix *V, const kiln_matrix *X) {
    kiln_status status;
    struct ki_run *const run = &s->run;
    kiln_svd_options *o = &s->options;
    TRY(svd_check(s, U, sigma, V, X));
    ki_options_fill(o, algorithm, kiln_matrix_type(X));
    s->m = kiln_matrix_rows(X), s->n = kiln_matrix_cols(X), s->k = kiln_matrix_cols(V);
    s->wide = s->m < s->n;
    s->near = ki_min(s->m, s->n), s->far = ki_max(s->m, s->n);
    ki_run_on(run, X, o->tolerance, o->max_iterations);
    TRY(ki_svd_set_up(s));
    TRY(ki_run_begin(run, (struct ki_described){.options = o}));
    set_state(s);
    TRY(ki_svd_begin(s));
    TRY(ki_run_resume(run));
    TRY(check_state(s));
    TRY(svd_iterate(s));
    if (!s->judged) TRY(ki_svd_judge(s));
    TRY(give(s, U, sigma, V));
done:
    return status;
}

static kiln_status call(const char *name, const struct ki_algorithm *algorithm, kiln_matrix *U,
                        kiln_matrix *sigma, kiln_matrix *V, const kiln_matrix *X,
                        const kiln_svd_options *options, kiln_report *report) {
    kiln_status status;
    struct ki_svd s = {
        .run = {.unbounded = true}, .call = name, .X = X, .unit = 1, .degree = 1, .before = INFINITY};
    TRY(ki_run_open(&s.run, algorithm, &s.options, options, KI_LAYOUT(kiln_svd_options), &s.options.control,
                    report));
    s.options.center |= algorithm == &ki_algorithm_pca;
    if (s.options.graph && algorithm != &ki_algorithm_spectral)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: a graph (kiln_svd_options.graph) is for kiln_spectral", name));
    s.options.graph = algorithm == &ki_algorithm_spectral;
    TRY(decompose(&s, algorithm, U, sigma, V, X));
done:
    return ki_run_close(&s.run, status);
}

kiln_status kiln_svd(kiln_matrix *U, kiln_matrix *s, kiln_matrix *V, const kiln_matrix *X,
                     const kiln_svd_options *options, kiln_report *report) {
    return call("kiln_svd", &ki_algorithm_svd, U, s, V, X, options, report);
}

kiln_status kiln_pca(kiln_matrix *U, kiln_matrix *s, kiln_matrix *V, const kiln_matrix *X,
                     const kiln_svd_options *options, kiln_report *report) {
    return call("kiln_pca", &ki_algorithm_pca, U, s, V, X, options, report);
}

kiln_status kiln_spectral(kiln_matrix *U, kiln_matrix *s, kiln_matrix *V, const kiln_matrix *X,
                          const kiln_svd_options *options, kiln_report *report) {
    return call("kiln_spectral", &ki_algorithm_spectral, U, s, V, X, options, report);
}
