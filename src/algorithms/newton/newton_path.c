/* Logistic regression of two classes, generalised linear models and support vector machines in all folds of
 * a path at once, on the CPU.
 *
 * The models of one penalty, a column for each fold, are evaluated in one pass over X
 * (ops/linear/fold_losses.h). A step goes by
 *
 *   -(H + L)^-1 g,   H the Hessian of the losses where it was formed last, for the rows that the fold trains
 *   on,
 *
 * corrected by what the gradients changed by since (L-BFGS). Neither depends on the penalty, so from one
 * value to the next only a factor of n x n is new, and the first step is Newton's from the solution before. H
 * of all folds is one weighted walk over X: each row has the curvature of the folds' mean model, which is
 * near all of them, and a fold's H is the sum of the walks over the rows that the others hold out. It is
 * formed anew once steps that a better one would have saved cost as much: in a value, after its first step,
 * near the solution. Each model meets its algorithm's own criterion, in the coordinates of newton_step.c; a
 * fold that does not, as where classes can be separated, is trained one model after the other. */
#include "algorithms/newton/newton_path.h"

#include "ops/linear/fold_losses.h"
#include "ops/linear/gram.h"

enum {
    COLUMNS_MOST = 1024,
    PRICE_MOST = 64,  /* passes that a walk may take */
    ROOM = 1 << 26,   /* doubles */
    ROUNDS_MOST = 60, /* evaluations for a value */
    EXPECTED = 2,     /* evaluations that a value takes with a good H */
    VECTORS = 12
};

/* ---- whether, and room ---- */

/* A Hessian that is too large may be that of a sparse X whose rows have words in common: most columns of one
 * with far fewer entries than columns have none. */
static bool is_wide(const struct ki_lanes *t) {
    for (int64_t v = 0; v < t->count; v++)
        if (ki_path_l1(t->path, v) > 0) return false;
    return kiln_matrix_format(t->X) == KILN_CSR && t->n >= COLUMNS_MOST && t->folds > 1 &&
           kiln_matrix_nnz(t->X) >= t->n && (double)t->folds * (double)t->m <= ROOM;
}

static bool has_hessians(const struct ki_lanes *t) {
    const double square = (double)(t->n + 1) * (double)(t->n + 1);
    return ki_gram_in_one_walk(t->X) && !ki_gram_streams(t->X) && t->n < COLUMNS_MOST &&
           ki_gram_price(t->X) <= PRICE_MOST && 4 * (double)t->folds * square <= ROOM;
}

void ki_lanes_take(struct ki_lanes *t, struct ki_path *path) {
    *t = (struct ki_lanes){.path = path,
                           .X = path->X,
                           .m = kiln_matrix_rows(path->X),
                           .n = kiln_matrix_cols(path->X),
                           .folds = ki_max(path->asked.folds, 1),
                           .count = path->asked.count,
                           .narrow = kiln_matrix_type(path->X) == KILN_F32,
                           .start = ki_clock()};
}

static bool is_strength(double value) {
    return value >= 0 && !isinf(value);
}

bool ki_lanes_apply(struct ki_lanes *t) {
    const kiln_matrix *X = t->X, *y = t->path->y;
    for (int64_t v = 0; v < t->count; v++)
        if (!is_strength(ki_path_l2(t->path, v)) || !is_strength(ki_path_l1(t->path, v))) return false;
    if (t->path->k != 1 || t->m == 0 || t->n == 0 || kiln_matrix_format(y) != KILN_DENSE ||
        kiln_matrix_type(y) != kiln_matrix_type(X) || kiln_matrix_device(y) != kiln_matrix_device(X) ||
        kiln_matrix_rows(y) != t->m || kiln_matrix_cols(y) != 1)
        return false;
    if (t->standardize && !t->intercept)
        return false; /* variances are about the means, spreads here are not */
    t->wide = is_wide(t);
    return ki_fold_losses_apply(X) && t->folds <= KI_LANES_MOST && (t->wide || has_hessians(t)) &&
           (double)t->folds * (double)t->n * (double)t->count <= ROOM;
}

static void lanes_make_lanes(struct ki_lanes *t) {
    const int64_t size = t->size, square = t->wide ? 0 : size * size, pairs = t->wide ? 1 : KI_LANE_PAIRS,
                  of_one = (VECTORS + 2 * pairs + (t->wide ? 3 + KI_FORMER : 0)) * size + 2 * square;
    double *memory = ki_arena_reals(&t->arena, t->folds * of_one);
    for (int64_t f = 0; memory && f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        double *at = memory + f * of_one;
        double **const vectors[VECTORS] = {&lane->mean, &lane->spread,  &lane->zero,      &lane->point,
                                           &lane->data, &lane->next,    &lane->slope,     &lane->direction,
                                           &lane->kept, &lane->penalty, &lane->criterion, &lane->l1};
        for (int i = 0; i < VECTORS; i++, at += size) *vectors[i] = at;
        lane->H = at;
        lane->U = lane->H + square;
        lane->step = lane->U + square;
        lane->change = lane->step + pairs * size;
        if (t->wide) lane->search.rest = lane->change + size;
        if (t->wide) lane->search.toward = lane->search.rest + size;
        if (t->wide) lane->search.inverse = lane->search.toward + size;
        if (t->wide) lane->search.former = lane->search.inverse + size;
        t->columns[f] = t->path->asked.fold ? (int)f : -1;
    }
}

static void lanes_make_matrices(struct ki_lanes *t) {
    struct ki_arena *arena = &t->arena;
    const kiln_matrix *X = t->X;
    t->fold = ki_arena_rows(arena, X, 1);
    t->C = ki_arena_rows(arena, X, t->wide ? t->folds : 1);
    t->mean_C = ki_arena_rows(arena, X, 1);
    t->W = ki_arena_model(arena, X, t->n, t->folds);
    t->G = ki_arena_model(arena, X, t->n, t->folds);
    t->b = ki_arena_model(arena, X, 1, t->folds);
    t->gb = ki_arena_model(arena, X, 1, t->folds);
    t->w = ki_arena_model(arena, X, t->n, 1);
    t->g = ki_arena_model(arena, X, t->n, 1);
    t->shift = ki_arena_model(arena, X, 1, 1);
    t->gs = ki_arena_model(arena, X, 1, 1);
    t->ones = ki_arena_fill(arena, ki_arena_model(arena, X, t->folds, 1), 1);
    t->values = ki_arena_sums(arena, X, 2, t->folds);
}

static kiln_status lanes_make_room(struct ki_lanes *t) {
    kiln_status status;
    struct ki_arena *arena = &t->arena;
    const int64_t models = t->folds * t->count;
    if (t->wide)
        ki_path_rows_open(&t->walks, arena, t->path);
    else
        ki_path_walks_open(&t->walks, arena, t->path, &t->system.walk);
    t->square = ki_arena_reals(arena, t->size);
    t->inverse = ki_arena_reals(arena, t->size);
    t->host = ki_arena_reals(arena, t->n * t->folds);
    t->made_W = ki_arena_reals(arena, models * t->n);
    t->made_b = ki_arena_reals(arena, models);
    t->reports = ki_arena_zeros(arena, models, sizeof *t->reports);
    lanes_make_lanes(t);
    lanes_make_matrices(t);
    TRY(arena->status);
    for (int64_t i = 0; i < t->m; i++) t->walks.room[i] = t->path->asked.fold ? t->path->asked.fold[i] : 0;
    TRY(ki_vector_set(t->fold, t->walks.room));
done:
    return status;
}

kiln_status ki_lanes_close(struct ki_lanes *t, kiln_status status) {
    for (int64_t i = 0; t->reports && i < t->folds * t->count; i++) kiln_report_free(&t->reports[i]);
    return ki_arena_free(&t->arena, status);
}

/* ---- Hessians ---- */

/* H of fold f, times `scale`, about its own means. */
static void lanes_take_hessian(struct ki_lanes *t, int64_t f, double scale) {
    struct ki_lane *lane = &t->lane[f];
    const struct ki_walk *walk = &t->system.walk;
    const int64_t n = t->n, size = t->size, last = walk->size - 1;
    const double *A = walk->A;
    ki_path_add_up(&t->walks, f);
    for (int64_t j = 0; j < n; j++) lane->kept[j] = t->intercept ? lane->mean[j] - walk->origin[j] : 0;
    for (int64_t i = 0; i < n; i++) {
        const double *row = A + i * walk->size, d = lane->kept[i];
        for (int64_t j = i; j < n; j++)
            lane->H[i * size + j] =
                scale * (row[j] - d * A[j * walk->size + last] - row[last] * lane->kept[j] +
                         d * lane->kept[j] * A[last * walk->size + last]);
        if (t->intercept) lane->H[i * size + n] = scale * (row[last] - d * A[last * walk->size + last]);
    }
    lane->formed = scale * A[last * walk->size + last];
    if (t->intercept) lane->H[n * size + n] = lane->formed;
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < i; j++) lane->H[i * size + j] = lane->H[j * size + i];
    lane->pairs = 0;
}

/* Finds what the columns are in each fold, where no walk tells. */
static kiln_status lanes_measure_wide(struct ki_lanes *t) {
    kiln_status status = KILN_OK;
    struct ki_arena arena = {0};
    struct ki_columns columns = {0};
    const int32_t *fold = t->path->asked.fold;
    double *room = t->walks.room;
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        struct ki_moments moments = {.rough = !t->intercept && !t->standardize};
        for (int64_t i = 0; i < t->m; i++) room[i] = 1;
        if (t->loss.weights) TRY(ki_vector_get(room, t->loss.weights));
        for (int64_t i = 0; i < t->m; i++) {
            room[i] = fold[i] == f ? 0 : room[i];
            lane->weight += room[i];
        }
        lane->bad = !(lane->weight > 0);
        if (lane->bad) continue;
        TRY(ki_vector_set(t->walks.rows, room));
        TRY(ki_columns_measure(&columns, &moments, &arena, t->X, t->walks.rows, lane->weight));
        if (!t->intercept && t->standardize) ki_columns_one_constant(&columns, t->n);
        for (int64_t j = 0; j < t->n; j++) {
            lane->mean[j] = t->intercept ? columns.mean[j] : 0;
            lane->spread[j] = t->intercept ? lane->weight * columns.variance[j] : columns.square[j];
        }
        lane->flats = columns.flats;
        ki_arena_free(&arena, KILN_OK);
    }
done:
    return ki_arena_free(&arena, status);
}

/* Finds what the columns are in each fold. */
static kiln_status lanes_measure(struct ki_lanes *t) {
    kiln_status status;
    const int64_t square = t->system.walk.size * t->system.walk.size;
    TRY(ki_path_walk(&t->walks, NULL, t->loss.weights, t->intercept));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        ki_path_add_up(&t->walks, f);
        lane->bad = !ki_walk_sound(&t->system);
        lane->weight = t->system.walk.A[square - 1];
        for (int64_t j = 0; j < t->n && !lane->bad; j++) {
            lane->mean[j] = t->intercept ? ki_walk_mean(&t->system, j) : 0;
            lane->spread[j] = ki_walk_element(&t->system, j, j);
        }
    }
done:
    return status;
}

/* H at the mean of the folds' models. */
static kiln_status lanes_form(struct ki_lanes *t) {
    kiln_status status;
    double value, b = 0, models = 0;
    for (int64_t f = 0; f < t->folds; f++) models += t->lane[f].bad ? 0 : 1;
    memset(t->host, 0, (size_t)t->n * sizeof *t->host);
    for (int64_t f = 0; f < t->folds; f++) {
        const struct ki_lane *lane = &t->lane[f];
        if (lane->bad) continue;
        if (t->intercept) b += lane->point[t->n] / models;
        for (int64_t j = 0; j < t->n; j++) {
            t->host[j] += lane->point[j] / models;
            b -= lane->mean[j] * lane->point[j] / models;
        }
    }
    TRY(ki_vector_set(t->w, t->host));
    TRY(ki_vector_set(t->shift, &b));
    TRY(kiln_loss_gradient(&value, t->g, t->gs, t->C, &t->loss, t->X, t->w, t->intercept ? t->shift : NULL));
    TRY(ki_path_walk(&t->walks, NULL, t->C, t->intercept));
    for (int64_t f = 0; f < t->folds; f++)
        if (!t->lane[f].bad) lanes_take_hessian(t, f, 1);
    t->products += 1 + ki_gram_passes(t->n);
    t->rent = 0;
done:
    return status;
}

/* ---- values ---- */

kiln_status ki_lanes_told(const struct ki_lanes *t) {
    const struct ki_lane *lane = &t->lane[0];
    return ki_path_told(t->path,
                        &(kiln_progress){.phase = "training",
                                         .done = t->value,
                                         .total = t->count,
                                         .objective = lane->objective,
                                         .residual = lane->reference > 0 ? lane->norm / lane->reference : 0,
                                         .bytes = (t->round + t->products) * ki_bytes_of(t->X)});
}

static kiln_status write_report(kiln_report *report, const struct ki_lanes *t, const struct ki_lane *lane,
                                int64_t passes) {
    kiln_status status;
    TRY(ki_report_begin(report));
    report->converged = 1;
    report->stopped_by = KILN_STOP_TOLERANCE;
    report->iterations = lane->iterations;
    report->residual = lane->reference > 0 ? lane->norm / lane->reference : 0;
    report->tolerance = t->tolerance;
    report->objective = lane->objective;
    report->passes = passes;
    report->seconds = ki_clock() - t->start;
    report->solver = t->solver;
    if (t->intercept || t->standardize) ki_report_flats(report, &lane->flats, kiln_matrix_type(t->X));
    if (!t->deviances) return KILN_OK;
    /* what a deviance has beside twice the loss depends on y alone */
    ki_report_figure(report, "deviance", lane->origin.deviance + 2 * (lane->loss - lane->zero_loss));
    ki_report_figure(report, "null_deviance", lane->origin.deviance);
done:
    return status;
}

static kiln_status lanes_keep(struct ki_lanes *t, int64_t v, int64_t passes) {
    kiln_status status = KILN_OK;
    for (int64_t f = 0; f < t->folds; f++) {
        const struct ki_lane *lane = &t->lane[f];
        double shift = 0;
        if (lane->bad) continue;
        for (int64_t j = 0; j < t->n; j++) {
            t->made_W[(f * t->n + j) * t->count + v] = lane->point[j];
            shift += lane->mean[j] * lane->point[j];
        }
        t->made_b[f * t->count + v] = t->intercept ? lane->point[t->n] - shift : 0;
        TRY(write_report(&t->reports[f * t->count + v], t, lane, passes));
    }
done:
    return status;
}

static void lanes_penalise(struct ki_lanes *t) {
    for (int64_t f = 0; f < t->folds; f++)
        t->lane[f].bad = t->lane[f].bad || !ki_lane_penalise(t, &t->lane[f]);
}

/* Returns whether an H of these points may tell what bounds do not. */
static bool lanes_need_proof(const struct ki_lanes *t) {
    bool any = false;
    for (int64_t f = 0; f < t->folds; f++) any = any || (!t->lane[f].met && t->lane[f].doubted);
    return any && !t->wide && !t->fresh;
}

static kiln_status lanes_form_anew(struct ki_lanes *t) {
    kiln_status status;
    TRY(lanes_form(t));
    lanes_penalise(t);
    t->fresh = true;
    for (int64_t f = 0; f < t->folds; f++) t->lane[f].t = 0;
done:
    return status;
}

/* Returns whether a better H would have saved the evaluations that forming it costs: a walk, and the pass for
 * its curvature. */
static bool lanes_is_due(const struct ki_lanes *t) {
    return !t->wide && (double)t->rent > 1 + ki_gram_price(t->X);
}

/* All folds' models of value v. A new H serves the steps after the first, and the next value's first. */
static kiln_status lanes_train_value(struct ki_lanes *t, int64_t v) {
    kiln_status status = KILN_OK;
    bool over = false;
    t->penalty = ki_path_l2(t->path, v);
    t->l1 = ki_path_l1(t->path, v);
    t->value = v;
    t->products = 0;
    t->worn = true;
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        lane->iterations = lane->shortened = 0;
        lane->doubted = lane->right = false;
        lane->t = 0;
    }
    t->fresh = false;
    lanes_penalise(t);
    if (t->wide) ki_lanes_foresee(t);
    for (t->round = 0; !over; t->round++) {
        TRY(ki_lanes_told(t));
        for (int64_t f = 0; f < t->folds && t->round == ROUNDS_MOST; f++)
            if (!t->lane[f].met) t->lane[f].bad = true;
        TRY(ki_lanes_advance(t, &over));
        if (t->round == 0 && !over && lanes_is_due(t)) {
            TRY(lanes_form(t));
            lanes_penalise(t);
        }
        if (lanes_need_proof(t)) TRY(lanes_form_anew(t));
    }
    t->rent += ki_max(t->round - 1 - EXPECTED, 0);
    TRY(lanes_keep(t, v, t->round - 1 + t->products));
done:
    return status;
}

/* ---- all ---- */

kiln_status ki_lanes_open(struct ki_lanes *t) {
    kiln_status status;
    t->size = t->n + t->intercept;
    t->system = (struct ki_system){
        .X = t->X, .options.no_intercept = !t->intercept, .walk = {.n = t->n, .size = t->n + 1}};
    TRY(lanes_make_room(t));
    TRY((t->wide ? lanes_measure_wide : lanes_measure)(t));
done:
    return status;
}

/* All lanes at their origins, H about what it is there. */
static kiln_status lanes_begin(struct ki_lanes *t) {
    kiln_status status;
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        if (t->intercept) lane->point[t->n] = lane->next[t->n] = lane->origin.b;
        if (!lane->bad && !t->wide) lanes_take_hessian(t, f, lane->origin.curvature);
    }
    TRY(ki_lanes_evaluate(t));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        memcpy(lane->zero, lane->slope, (size_t)t->size * sizeof *lane->zero);
        memcpy(lane->data, lane->slope, (size_t)t->size * sizeof *lane->data);
        lane->loss = lane->zero_loss = lane->next_loss;
        lane->total = lane->zero_total = lane->next_total;
        lane->bad = lane->bad || !isfinite(lane->loss);
    }
    TRY(ki_lanes_tell_constants(t));
done:
    return status;
}

static kiln_status lanes_give(void *of, int64_t f) {
    struct ki_lanes *t = of;
    if (t->lane[f].bad) return ki_path_fold(t->path, f);
    return ki_path_give_fold(t->path, f, t->made_W + f * t->n * t->count, t->made_b + f * t->count,
                             t->reports + f * t->count);
}

kiln_status ki_lanes_train(struct ki_lanes *t) {
    kiln_status status;
    TRY(lanes_begin(t));
    for (int64_t v = 0; v < t->count; v++) TRY(lanes_train_value(t, v));
    TRY(ki_path_each(t->path, lanes_give, t));
done:
    return status;
}
