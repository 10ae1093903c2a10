/* What stands before a search: the columns' means and deviations, a unit in which squares stay in range, the
 * sizes of blocks, and C itself where that is cheaper than to go over X in each iteration. */
#include "algorithms/svd/svd.h"

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
    s->total *= (double)s->m / (double)ki_max(s->m - 1, 1);
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
        TRY((ki_fail(KILN_ERR_DATA, "%s: X has NaN or infinite values, or sums that overflow", s->call),
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

static kiln_status make_rooms(struct ki_svd *s) {
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

/* The sum of the columns' variances, where measure has not found it: NaN where a column's squares leave the
 * type's range. X is finite, as find_unit has seen. */
static kiln_status find_total(struct ki_svd *s) {
    struct ki_arena own = {0};
    struct ki_columns columns = {0};
    struct ki_moments asked = {.rough = true};
    if (s->options.center || s->options.scale) return KILN_OK;
    kiln_status status = ki_columns_measure(&columns, &asked, &own, s->X, s->ones, (double)s->m);
    s->run.report.passes += asked.passes;
    if (status == KILN_OK) {
        s->total = 0;
        for (int64_t j = 0; j < s->n; j++) s->total += columns.variance[j];
        s->total *= (double)s->m / (double)ki_max(s->m - 1, 1);
    }
    return ki_arena_free(&own, status == KILN_ERR_DATA ? KILN_OK : status);
}

/* ---- the Gram matrix ---- */

/* Whether C is made first. Work is counted in multiplications: nobody knows how many iterations there will
 * be, and the guess is what most data took. */
static bool gram_is_cheaper(const struct ki_svd *s) {
    enum { ITERATIONS = 20, COLUMNS_MOST = 8192 };
    const double entries = (double)kiln_matrix_nnz(s->X), m = (double)s->m, n = (double)s->n;
    const double steps = (ITERATIONS + 2 * (double)s->k / (double)s->b) * (double)s->b;
    const double gram = entries / m * entries / 2 + n * n * steps, krylov = 2 * entries * steps;
    return s->n <= COLUMNS_MOST && gram < krylov;
}

static kiln_status find_gram(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    struct ki_arena own = {0};
    s->run.report.solver = "krylov";
    if (s->options.solver == KILN_SVD_KRYLOV || s->wide) return KILN_OK;
    if (s->options.solver != KILN_SVD_GRAM && (s->unit != 1 || !gram_is_cheaper(s))) return KILN_OK;
    if (s->unit != 1)
        return (ki_fail(KILN_ERR_DATA, "%s: the squares of X leave the type's range", s->call),
                ki_hint("kiln_svd_options.solver = krylov scales X implicitly"));
    s->run.report.solver = "gram";
    s->G = ki_run_model(&s->run, s->n, s->n);
    double *const scale = ki_arena_doubles(&own, s->n);
    TRY(s->run.arena.status);
    TRY(own.status);
    TRY(kiln_gram(s->G, NULL, s->X, NULL, s->mean));
    s->run.report.passes += ki_gram_passes(s->n);
    if (!s->inverse) goto done;
    TRY(kiln_times(s->G, s->G, s->inverse));
    TRY(ki_vector_get(scale, s->inverse));
    TRY(kiln_combine(s->G, scale, s->G, NULL, NULL));
done:
    return ki_arena_free(&own, status);
}

kiln_status ki_svd_set_up(struct ki_svd *s) {
    kiln_status status;
    find_sizes(s);
    TRY(make_rooms(s));
    TRY(measure(s));
    TRY(find_inverse(s));
    TRY(find_unit(s));
    TRY(find_inverse(s));
    TRY(find_total(s));
    TRY(find_gram(s));
done:
    return status;
}
