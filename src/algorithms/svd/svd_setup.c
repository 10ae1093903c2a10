/* This file says what stands before a search: the columns' means and deviations, a unit in which squares stay
 * in range, the sizes of blocks, and C itself where that is cheaper than to go over X in each iteration. */
#include "algorithms/svd/svd.h"
#include "algorithms/cholesky.h"
#include "ops/linear/gram.h"

/* Returns whether C is made first. Work is counted in multiplications: nobody knows how many iterations there
 * will be, and the guess is what most data took. */
static bool gram_is_cheaper(const struct ki_svd *s) {
    enum { ITERATIONS = 20, COLUMNS_MOST = 8192, PASSES = 40 };
    if (!s->on_cpu && !ki_gram_in_one_walk(s->X)) return ki_gram_price(s->X) < PASSES;
    const double entries = (double)kiln_matrix_nnz(s->X), m = (double)s->m, n = (double)s->n;
    const double steps = (ITERATIONS + 2 * (double)s->k / (double)s->b) * (double)s->b;
    const double gram = entries / m * entries / 2 + n * n * steps, krylov = 2 * entries * steps;
    return s->n <= COLUMNS_MOST && gram < krylov;
}

static bool may_take_gram(const struct ki_svd *s) {
    return s->options.solver != KILN_SVD_KRYLOV && !s->wide && !s->options.graph;
}

static bool gram_has_room(const struct ki_svd *s) {
    kiln_device_info info = {.size = sizeof info};
    kiln_device_statistics used = {.size = sizeof used};
    const kiln_device *device = kiln_matrix_device(s->X);
    return kiln_device_get_info(device, &info) == KILN_OK &&
           kiln_device_get_statistics(device, &used) == KILN_OK &&
           ki_gram_room(s->X, (double)s->n) <= (double)(info.memory - used.memory_used);
}

/* Columns of a block, of the basis at most, and of a panel. On a GPU a pass with 32 columns is little dearer
 * than one with 16; on a CPU the time of a pass over a sparse X goes by the columns, of which narrow blocks
 * need fewer. */
static void find_sizes(struct ki_svd *s) {
    enum { BLOCKS = 32, WIDE = 32 };
    const int64_t panel = s->on_cpu ? 64 : 128;
    const bool gathers = s->on_cpu && kiln_matrix_format(s->X) == KILN_CSR;
    const int64_t least = s->k < 8 || gathers ? 8 : 16, wanted = 2 * s->k + 6 * least;
    s->b = ki_max(least, (wanted / BLOCKS + 7) / 8 * 8);
    if (!s->on_cpu && !(may_take_gram(s) && gram_is_cheaper(s))) s->b = ki_max(s->b, WIDE);
    s->b = ki_min(s->b, s->near);
    s->most = ki_ceil_div(ki_min(wanted, s->near), s->b) * s->b;
    if (s->most + 2 * s->b >= s->near) s->most = ki_ceil_div(s->near, s->b) * s->b;
    s->width = ki_max(ki_ceil_div(s->most / s->b, KI_SVD_PANELS), ki_max(panel / s->b, 1)) * s->b;
    s->width = ki_min(s->width, s->most);
    s->panels = ki_ceil_div(s->most, s->width);
}

/* A dense X is copied with its columns about their means where these are far off, so that nothing cancels;
 * of an X that goes by in panels there is no room for a copy. */
static kiln_status take_means_off(struct ki_svd *s, const struct ki_columns *columns) {
    static const double FAR = 1e4; /* a mean's square, in variances */
    kiln_status status = KILN_OK;
    struct ki_arena *arena = &s->run.arena;
    bool far = false;
    for (int64_t j = 0; j < s->n; j++)
        far |= columns->mean[j] * columns->mean[j] > FAR * columns->variance[j] && columns->mean[j] != 0;
    if (!far || kiln_matrix_format(s->X) != KILN_DENSE || ki_gram_streams(s->X)) goto done;
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

/* Columns whose spread counts as rounding have a variance of 0 here, and are decomposed as they are: their
 * part of the sum is known apart. */
static double variance_of_flats(const struct ki_columns *columns) {
    return columns->flats.centred / columns->weight;
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
    s->total = variance_of_flats(&columns);
    if (scale) ki_report_flats(&s->run.report, &columns.flats, kiln_matrix_type(s->X));
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
        s->taken += (double)s->m * (rest[j] / s->deviations[j]) * (rest[j] / s->deviations[j]);
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
    struct ki_svd_room room = {0};
    kiln_matrix *const near = ki_arena_model(&own, s->X, s->near, 1);
    kiln_matrix *const far = ki_arena_model(&own, s->X, s->far, 1);
    double size = 0;
    TRY(own.status);
    TRY(ki_svd_room_new(&room, s, 1));
    TRY(kiln_fill_random(near, KILN_NORMAL, (uint64_t)s->options.seed, KI_STREAM_SVD));
    TRY(ki_svd_forward(s, &room, far, near));
    s->run.report.passes++;
    TRY(kiln_norm(&size, far, KILN_NORM_2));
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
    if (s->unit == 1 && !s->options.scale && !s->options.graph) return KILN_OK;
    double *const values = ki_arena_doubles(&own, s->n);
    if (!s->inverse) s->inverse = ki_run_model(&s->run, s->n, 1);
    TRY(own.status);
    TRY(s->run.arena.status);
    for (int64_t j = 0; j < s->n; j++) values[j] = s->unit / s->deviations[j];
    TRY(ki_vector_set(s->inverse, values));
done:
    return ki_arena_free(&own, status);
}

static kiln_status make_rooms(struct ki_svd *s) {
    struct ki_run *run = &s->run;
    const int64_t near = s->near, b = s->b, k = s->k, w = s->most;
    s->ones = ki_arena_fill(&run->arena, ki_run_rows(run, s->X, 1), 1);
    s->means = ki_run_reals(run, s->n);
    s->deviations = ki_run_reals(run, s->n);
    if (run->arena.status == KILN_OK) ki_svd_room_new(&s->block, s, b);
    if (run->arena.status == KILN_OK) ki_svd_room_new(&s->wanted, s, k);
    for (int64_t i = 0; i < s->panels; i++) s->V[i] = ki_run_model(run, near, s->width);
    kiln_matrix **const blocks[] = {&s->W, &s->next, &s->spare};
    for (int i = 0; i < 3; i++) *blocks[i] = ki_run_model(run, near, b);
    kiln_matrix **const wanted[] = {&s->L, &s->near_v, &s->near_w};
    for (int i = 0; i < 3; i++) *wanted[i] = ki_run_model(run, near, k);
    s->products = ki_run_model(run, k, b);
    s->part = ki_run_model(run, s->width, b);
    s->place = ki_run_model(run, b, s->width);
    double **const squares[] = {&s->H, &s->K, &s->Q};
    for (int i = 0; i < 3; i++) *squares[i] = ki_run_reals(run, w * w);
    s->R = ki_run_reals(run, b * b);
    s->h = ki_run_reals(run, s->panels * s->width * b);
    s->theta = ki_run_reals(run, w);
    s->rest = ki_run_reals(run, w);
    s->s = ki_run_reals(run, k);
    s->residual = ki_run_reals(run, k);
    return run->arena.status;
}

/* The sum of the columns' variances, where measure has not found it: NaN where a column's squares leave the
 * type's range. X is finite, as find_unit has seen. */
static kiln_status find_total(struct ki_svd *s) {
    struct ki_arena own = {0};
    struct ki_columns columns = {0};
    struct ki_moments asked = {0};
    if (s->options.center || s->options.scale || s->options.graph) return KILN_OK;
    kiln_status status = ki_columns_measure(&columns, &asked, &own, s->X, s->ones, (double)s->m);
    s->run.report.passes += asked.passes;
    if (status == KILN_OK) {
        s->total = variance_of_flats(&columns);
        for (int64_t j = 0; j < s->n; j++) s->total += columns.variance[j];
        s->total *= (double)s->m / (double)ki_max(s->m - 1, 1);
    }
    return ki_arena_free(&own, status == KILN_ERR_DATA ? KILN_OK : status);
}

/* ---- the Gram matrix ---- */

/* Returns whether X^T X, in which X is not yet scaled, is in range, and what counts of it. */
static bool squares_fit(const struct ki_svd *s) {
    const double range = kiln_matrix_type(s->X) == KILN_F32 ? 0x1p30 : 0x1p400;
    return s->unit < range && s->unit > 1 / range;
}

static kiln_status find_gram(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    struct ki_arena own = {0};
    s->run.report.solver = "krylov";
    if (!may_take_gram(s)) return KILN_OK;
    if (s->options.solver != KILN_SVD_GRAM && !(squares_fit(s) && gram_is_cheaper(s) && gram_has_room(s)))
        return KILN_OK;
    if (!squares_fit(s))
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

/* On a GPU a product with many columns reads X once, where a pass that multiplies both ways takes a few of
 * them at a time; but it reads X twice, which is too dear where X has to be moved. */
static kiln_status find_way(struct ki_svd *s) {
    if (s->on_cpu || s->G || s->options.graph || ki_gram_streams(s->X)) return KILN_OK;
    s->between = ki_run_model(&s->run, s->far, s->b);
    return s->run.arena.status;
}

kiln_status ki_svd_set_up(struct ki_svd *s) {
    kiln_status status;
    kiln_device_info info = {.size = sizeof info};
    TRY(kiln_device_get_info(kiln_matrix_device(s->X), &info));
    s->on_cpu = strncmp(info.name, "cpu", 3) == 0 && !strchr(info.name, ',');
    find_sizes(s);
    TRY(make_rooms(s));
    TRY((s->options.graph ? ki_svd_graph_measure : measure)(s));
    TRY(find_inverse(s));
    TRY(find_unit(s));
    TRY(find_inverse(s));
    TRY(find_total(s));
    TRY(find_gram(s));
    TRY(find_way(s));
done:
    return status;
}
