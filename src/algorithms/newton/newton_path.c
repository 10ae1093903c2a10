/* Logistic regression of two classes in all folds of a path at once, on the CPU.
 *
 * The models of one penalty, a column for each fold, are evaluated in one pass over X (ops/linear/fold_losses.h). A step goes by
 *
 *   -(H + L)^-1 g,   H the Hessian of the losses where it was formed last, for the rows that the fold trains on,
 *
 * corrected by what the gradients changed by since (L-BFGS). Neither hangs on the penalty, so from one value to the next only a
 * factor of n x n is new, and the first step is Newton's from the solution before. H of all folds is one weighted walk over X:
 * each row has the curvature of the folds' mean model, which is near all of them, and a fold's H is the sum of the walks over
 * the rows that the others hold out. It is formed anew once steps that a better one would have saved cost as much. Each model
 * meets kiln_logreg's own criterion, in the coordinates of newton_step.c; a fold that does not, as where classes can be separated,
 * is trained one model after the other. */
#include "algorithms/newton/newton_path.h"

enum {
    COLUMNS_MOST = 1024,
    PRICE_MOST = 64,  /* passes that a walk may take */
    ROOM = 1 << 26,   /* doubles */
    ROUNDS_MOST = 60, /* evaluations for a value */
    EXPECTED = 2,     /* evaluations that a value takes with a good H */
    VECTORS = 11
};

/* ---- whether, and room ---- */

static bool dual_is_taken(const struct ki_lanes *t, double l2) {
    const struct ki_newton newton = {.call = "kiln_logreg",
                                     .X = t->X,
                                     .k = 1,
                                     .l2 = l2,
                                     .no_intercept = !t->intercept,
                                     .standardize = t->options.standardize != 0};
    bool dual = true;
    return ki_dual_choose(&dual, &newton, t->options.solver) != KILN_OK || dual;
}

static bool applies(const struct ki_lanes *t) {
    const kiln_logreg_options *options = &t->options;
    const kiln_matrix *X = t->X, *y = t->path->y;
    const double square = (double)t->size * (double)t->size;
    if (t->path->k != 1 || options->balanced || options->max_iterations || options->l1 > 0 || t->m == 0 ||
        t->n == 0)
        return false;
    if (!(options->tolerance >= 0)) return false; /* kiln_logreg says what is wrong, and of a penalty below */
    for (int64_t v = 0; v < t->count; v++) {
        if (!(ki_path_l2(t->path, v) >= 0) || isinf(ki_path_l2(t->path, v))) return false;
        if (t->path->asked.l1 && t->path->asked.l1[v] > 0) return false;
        if (dual_is_taken(t, ki_path_l2(t->path, v))) return false;
    }
    if (kiln_matrix_format(y) != KILN_DENSE || kiln_matrix_type(y) != kiln_matrix_type(X) ||
        kiln_matrix_device(y) != kiln_matrix_device(X) || kiln_matrix_rows(y) != t->m ||
        kiln_matrix_cols(y) != 1)
        return false;
    return ki_fold_losses_apply(X) && ki_gram_in_one_walk(X) && t->folds <= KI_LANES_MOST &&
           t->size <= COLUMNS_MOST && ki_gram_price(X) <= PRICE_MOST &&
           4 * (double)t->folds * square <= ROOM &&
           (double)t->folds * (double)t->n * (double)t->count <= ROOM;
}

static kiln_status doubles(double **values, int64_t count) {
    int64_t bytes;
    *values = ki_mul(count, sizeof **values, &bytes) ? ki_calloc((size_t)bytes) : NULL;
    return *values ? KILN_OK : ki_fail_nomem((size_t)count * sizeof **values, "the models of a path");
}

static kiln_status make_lanes(struct ki_lanes *t) {
    kiln_status status;
    const int64_t size = t->size, square = size * size,
                  of_one = (VECTORS + 2 * KI_LANE_PAIRS) * size + 2 * square;
    TRY(doubles(&t->memory, t->folds * of_one));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        double *at = t->memory + f * of_one;
        double **const vectors[VECTORS] = {&lane->mean, &lane->spread,  &lane->zero,     &lane->point,
                                           &lane->data, &lane->next,    &lane->slope,    &lane->direction,
                                           &lane->kept, &lane->penalty, &lane->criterion};
        for (int i = 0; i < VECTORS; i++, at += size) *vectors[i] = at;
        lane->H = at;
        lane->U = lane->H + square;
        lane->step = lane->U + square;
        lane->change = lane->step + KI_LANE_PAIRS * size;
        t->columns[f] = t->path->asked.fold ? (int)f : -1;
    }
done:
    return status;
}

static kiln_status make_matrices(struct ki_lanes *t) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(t->X);
    const kiln_type type = kiln_matrix_type(t->X);
    const struct {
        kiln_matrix **at;
        int64_t rows, cols;
    } all[] = {{&t->fold, t->m, 1},  {&t->v, t->m, 1},        {&t->C, t->m, 1},      {&t->W, t->n, t->folds},
               {&t->b, 1, t->folds}, {&t->G, t->n, t->folds}, {&t->gb, 1, t->folds}, {&t->w, t->n, 1},
               {&t->shift, 1, 1},    {&t->g, t->n, 1},        {&t->gs, 1, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        TRY(kiln_matrix_dense(all[i].at, device, type, all[i].rows, all[i].cols, NULL));
    TRY(kiln_matrix_dense(&t->values, device, KILN_F64, 1, t->folds, NULL));
    TRY(ki_labels_column(&t->target, &t->labels, t->path->y, 1, 1, 0));
    for (int64_t i = 0; i < t->m; i++) t->room[i] = t->path->asked.fold ? t->path->asked.fold[i] : 0;
    TRY(ki_vector_set(t->fold, t->room));
done:
    return status;
}

static kiln_status make_room(struct ki_lanes *t) {
    kiln_status status;
    const int64_t models = t->folds * t->count, walk = (t->n + 1) * (t->n + 1);
    const struct {
        double **at;
        int64_t count;
    } all[] = {{&t->room, t->m},
               {&t->base, t->m},
               {&t->host, t->n * t->folds},
               {&t->parts, t->folds * walk},
               {&t->system.walk.A, walk},
               {&t->system.walk.origin, t->n + 1},
               {&t->made_W, models * t->n},
               {&t->made_b, models}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) TRY(doubles(all[i].at, all[i].count));
    t->reports = ki_calloc((size_t)models * sizeof *t->reports);
    if (!t->reports) TRY(ki_fail_nomem((size_t)models * sizeof *t->reports, "the models of a path"));
    TRY(make_lanes(t));
    TRY(make_matrices(t));
done:
    return status;
}

static void release(struct ki_lanes *t) {
    double *const arrays[] = {t->room, t->base, t->host, t->parts, t->made_W, t->made_b, t->memory};
    kiln_matrix *const all[] = {t->target, t->fold, t->v,      t->C, t->W,     t->b, t->G,
                                t->gb,     t->w,    t->values, t->g, t->shift, t->gs};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) ki_free(arrays[i]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    for (int64_t i = 0; t->reports && i < t->folds * t->count; i++) kiln_report_free(&t->reports[i]);
    ki_free(t->reports);
    ki_walk_free(&t->system.walk);
    ki_labels_free(&t->labels);
}

/* ---- Hessians ---- */

/* One walk for each fold, over the rows that it holds out, weighted by `base`. */
static kiln_status walk_folds(struct ki_lanes *t) {
    kiln_status status = KILN_OK;
    const int32_t *fold = t->path->asked.fold;
    struct ki_walk walk = t->system.walk;
    for (int64_t f = 0; f < t->folds; f++) {
        for (int64_t i = 0; i < t->m; i++) t->room[i] = !fold || fold[i] == f ? t->base[i] : 0;
        TRY(ki_vector_set(t->v, t->room));
        walk.A = t->parts + f * walk.size * walk.size;
        TRY(ki_walk_sums(&walk, t->X, NULL, t->v, t->intercept));
    }
done:
    return status;
}

static void add_up(struct ki_lanes *t, int64_t f) {
    const int64_t square = t->system.walk.size * t->system.walk.size;
    double *A = t->system.walk.A;
    memset(A, 0, (size_t)square * sizeof *A);
    for (int64_t g = 0; g < t->folds; g++)
        for (int64_t i = 0; (g != f || !t->path->asked.fold) && i < square; i++)
            A[i] += t->parts[g * square + i];
}

/* H of fold f, times `scale`, about its own means. */
static void take_hessian(struct ki_lanes *t, int64_t f, double scale) {
    struct ki_lane *lane = &t->lane[f];
    const struct ki_walk *walk = &t->system.walk;
    const int64_t n = t->n, size = t->size, last = walk->size - 1;
    const double *A = walk->A;
    add_up(t, f);
    for (int64_t j = 0; j < n; j++) lane->kept[j] = t->intercept ? lane->mean[j] - walk->origin[j] : 0;
    for (int64_t i = 0; i < n; i++) {
        const double *row = A + i * walk->size, d = lane->kept[i];
        for (int64_t j = i; j < n; j++)
            lane->H[i * size + j] =
                scale * (row[j] - d * A[j * walk->size + last] - row[last] * lane->kept[j] +
                         d * lane->kept[j] * A[last * walk->size + last]);
        if (t->intercept) lane->H[i * size + n] = scale * (row[last] - d * A[last * walk->size + last]);
    }
    if (t->intercept) lane->H[n * size + n] = scale * A[last * walk->size + last];
    lane->pairs = 0;
}

/* From the walks with the rows' weights: what the columns are in each fold, and H at 0, where every curvature is 1/4. */
static kiln_status measure(struct ki_lanes *t) {
    kiln_status status;
    TRY(walk_folds(t));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        add_up(t, f);
        lane->bad = !ki_walk_sound(&t->system);
        lane->weight = t->system.walk.A[t->system.walk.size * t->system.walk.size - 1];
        for (int64_t j = 0; j < t->n && !lane->bad; j++) {
            lane->mean[j] = t->intercept ? ki_walk_mean(&t->system, j) : 0;
            lane->spread[j] = ki_walk_element(&t->system, j, j);
        }
        take_hessian(t, f, 0.25);
    }
done:
    return status;
}

/* H at the mean of the folds' models. */
static kiln_status form(struct ki_lanes *t) {
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
    TRY(kiln_loss_gradient(
        &value, t->g, t->gs, t->C,
        &(kiln_loss){.kind = KILN_LOSS_LOGISTIC, .y = t->target, .weights = t->labels.weights}, t->X, t->w,
        t->intercept ? t->shift : NULL));
    TRY(ki_vector_get(t->base, t->C));
    TRY(walk_folds(t));
    for (int64_t f = 0; f < t->folds; f++)
        if (!t->lane[f].bad) take_hessian(t, f, 1);
    t->rent = 0;
done:
    return status;
}

/* ---- values ---- */

static kiln_status told(const struct ki_lanes *t, int64_t v, int64_t round) {
    const kiln_control *control = &t->options.control;
    const kiln_progress now = {.phase = "training",
                               .done = v,
                               .total = t->count,
                               .objective = t->lane[0].objective,
                               .residual = t->lane[0].norm / t->lane[0].reference,
                               .seconds = ki_clock() - t->start,
                               .bytes = round * ki_bytes_of(t->X)};
    return control->progress && control->progress(control->user, &now) ? ki_path_stopped() : KILN_OK;
}

static void keep(struct ki_lanes *t, int64_t v, int64_t passes) {
    for (int64_t f = 0; f < t->folds; f++) {
        const struct ki_lane *lane = &t->lane[f];
        kiln_report *report = &t->reports[f * t->count + v];
        double shift = 0;
        if (lane->bad) continue;
        for (int64_t j = 0; j < t->n; j++) {
            t->made_W[(f * t->n + j) * t->count + v] = lane->point[j];
            shift += lane->mean[j] * lane->point[j];
        }
        t->made_b[f * t->count + v] = t->intercept ? lane->point[t->n] - shift : 0;
        *report = (kiln_report){.converged = 1,
                                .stopped_by = KILN_STOP_TOLERANCE,
                                .iterations = lane->iterations,
                                .residual = lane->norm / lane->reference,
                                .tolerance = t->tolerance,
                                .objective = lane->objective,
                                .passes = passes,
                                .seconds = ki_clock() - t->start,
                                .solver = "newton"};
    }
}

/* All folds' models of value v. */
static kiln_status train_value(struct ki_lanes *t, int64_t v) {
    kiln_status status = KILN_OK;
    int64_t round = 0;
    bool over = false;
    t->penalty = ki_path_l2(t->path, v);
    if (t->rent > ki_gram_price(t->X) / (double)t->folds) TRY(form(t));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        lane->iterations = lane->shortened = 0;
        lane->t = 0;
        lane->bad = lane->bad || !ki_lane_penalise(t, lane);
    }
    for (; !over; round++) {
        TRY(told(t, v, round));
        for (int64_t f = 0; f < t->folds && round == ROUNDS_MOST; f++)
            if (!t->lane[f].met) t->lane[f].bad = true;
        TRY(ki_lanes_advance(t, &over));
    }
    t->rent += ki_max(round - 1 - EXPECTED, 0);
    keep(t, v, round - 1);
done:
    return status;
}

/* ---- all ---- */

static kiln_status begin(struct ki_lanes *t) {
    kiln_status status;
    TRY(make_room(t));
    for (int64_t i = 0; i < t->m; i++) t->base[i] = 1;
    if (t->labels.weights) TRY(ki_vector_get(t->base, t->labels.weights));
    TRY(measure(t));
    TRY(ki_lanes_evaluate(t));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        memcpy(lane->zero, lane->slope, (size_t)t->size * sizeof *lane->zero);
        memcpy(lane->data, lane->slope, (size_t)t->size * sizeof *lane->data);
        lane->loss = lane->next_loss;
        lane->bad = lane->bad || !isfinite(lane->loss);
    }
done:
    return status;
}

static kiln_status give(void *of, int64_t f) {
    struct ki_lanes *t = of;
    if (t->lane[f].bad) return ki_path_fold(t->path, f);
    return ki_path_give_fold(t->path, f, t->made_W + f * t->n * t->count, t->made_b + f * t->count,
                             t->reports + f * t->count);
}

kiln_status ki_logreg_together(bool *done, struct ki_path *path) {
    kiln_status status = KILN_OK;
    struct ki_lanes t = {.path = path,
                         .X = path->X,
                         .m = kiln_matrix_rows(path->X),
                         .n = kiln_matrix_cols(path->X),
                         .folds = ki_max(path->asked.folds, 1),
                         .count = path->asked.count,
                         .narrow = kiln_matrix_type(path->X) == KILN_F32,
                         .start = ki_clock()};
    memcpy(&t.options, path->options, sizeof t.options);
    t.intercept = !t.options.no_intercept;
    t.size = t.n + t.intercept;
    t.tolerance = t.options.tolerance > 0 ? t.options.tolerance : t.narrow ? 1e-4 : 1e-8;
    t.system = (struct ki_system){
        .X = t.X, .options.no_intercept = !t.intercept, .walk = {.n = t.n, .size = t.n + 1}};
    if (!applies(&t)) return KILN_OK;
    TRY(ki_labels_new(&t.labels, "kiln_logreg", path->y,
                      &(struct ki_label_options){t.options.weights, t.options.class_weights, false}));
    if (t.labels.count != 2) goto done;
    if (t.options.weights) TRY(ki_check_weights("kiln_logreg", t.options.weights));
    TRY(begin(&t));
    for (int64_t v = 0; v < t.count; v++) TRY(train_value(&t, v));
    TRY(ki_path_each(path, give, &t));
    *done = true;
done:
    release(&t);
    return status;
}
