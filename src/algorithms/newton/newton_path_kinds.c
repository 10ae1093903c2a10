/* Each algorithm that Newton's method trains asks some things of the lanes of a path: the loss, its target,
 * and the origin that the criterion is relative to. What they are not for is left to the algorithm, one model
 * after the other: its checks come first there, so that an option that is of no use is its error. */
#include "algorithms/registry.h"
#include "algorithms/newton/newton_dual.h"
#include "algorithms/newton/newton_path.h"
#include "ops/linear/families.h"

/* Returns whether the algorithm would descend in the dual for one of the values, or refuses to. */
static bool dual_is_taken(const struct ki_lanes *t, const char *call, kiln_classifier_solver solver) {
    bool taken = false;
    if (t->wide) return solver == KILN_CLASSIFIER_DUAL; /* models that start from others are not the dual's */
    for (int64_t v = 0; v < t->count && !taken; v++) {
        const struct ki_newton newton = {.call = call,
                                         .X = t->X,
                                         .k = 1,
                                         .l2 = ki_path_l2(t->path, v),
                                         .l1 = ki_path_l1(t->path, v),
                                         .no_intercept = !t->intercept,
                                         .standardize = t->standardize};
        if (ki_dual_choose(&taken, &newton, solver) != KILN_OK) taken = true;
    }
    return taken;
}

/* Takes what all algorithms' options say. */
static void lanes_take(struct ki_lanes *t, struct ki_path *path, int no_intercept, int standardize) {
    ki_lanes_take(t, path);
    t->intercept = !no_intercept;
    t->standardize = standardize != 0;
    t->tolerance =
        kiln_option_value(path->shown->name, path->options, "tolerance", kiln_matrix_type(path->X));
}

/* The same origin for all lanes, with no deviance. */
static void lanes_set_origins(struct ki_lanes *t, double curvature) {
    for (int64_t f = 0; f < t->folds; f++) t->lane[f].origin.curvature = curvature;
}

/* The rows' weights, checked as the algorithms check them. */
static kiln_status lanes_check_weights(const struct ki_lanes *t, const char *call,
                                       const kiln_matrix *weights) {
    kiln_status status = KILN_OK;
    if (!weights) return KILN_OK;
    TRY(ki_check_matrix(call, "weights", weights, t->X, t->m, 1));
    TRY(ki_check_weights(call, weights));
done:
    return status;
}

/* t->labels of two classes, and their column of t->target: 1 and `other`. *two: whether there are two. */
static kiln_status lanes_take_classes(bool *two, struct ki_lanes *t, const char *call,
                                      const kiln_matrix *weights, const double *class_weights, double other) {
    kiln_status status;
    TRY(ki_labels_new(&t->labels, &t->arena, call, t->path->y,
                      &(struct ki_label_options){weights, class_weights, false}));
    *two = t->labels.count == 2;
    if (*two) TRY(ki_labels_column(&t->target, &t->arena, &t->labels, t->path->y, 1, 1, other));
done:
    return status;
}

kiln_status ki_logreg_together(bool *done, struct ki_path *path) {
    static const char call[] = "kiln_logreg";
    kiln_status status = KILN_OK;
    kiln_logreg_options options;
    struct ki_lanes t;
    bool two;
    memcpy(&options, path->options, sizeof options);
    lanes_take(&t, path, options.no_intercept, options.standardize);
    t.solver = "newton";
    if (options.balanced || options.max_iterations || !(options.tolerance >= 0) || !ki_lanes_apply(&t) ||
        dual_is_taken(&t, call, options.solver))
        return KILN_OK;
    TRY(lanes_check_weights(&t, call, options.weights));
    TRY(lanes_take_classes(&two, &t, call, options.weights, options.class_weights, 0));
    if (!two) goto done;
    t.loss = (kiln_loss){.kind = KILN_LOSS_LOGISTIC, .y = t.target, .weights = t.labels.weights};
    lanes_set_origins(&t, 0.25);
    TRY(ki_lanes_open(&t));
    TRY(ki_lanes_train(&t));
    *done = true;
done:
    return ki_lanes_close(&t, status);
}

/* ---- support vector machines ---- */

/* A regression's curvature at 0 is that of the rows farther than epsilon from it. */
static kiln_status lanes_set_regression(struct ki_lanes *t, double epsilon) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int32_t *fold = t->path->asked.fold;
    double *weights = ki_arena_doubles(&arena, t->m), *y = t->walks.room;
    TRY(arena.status);
    for (int64_t i = 0; i < t->m; i++) weights[i] = 1;
    if (t->loss.weights) TRY(ki_vector_get(weights, t->loss.weights));
    TRY(ki_vector_get(y, t->loss.y));
    for (int64_t f = 0; f < t->folds; f++) {
        double sum = 0;
        for (int64_t i = 0; i < t->m; i++)
            if (fabs(y[i]) > epsilon && !(fold && fold[i] == f)) sum += weights[i];
        t->lane[f].origin.curvature = sum > 0 ? sum / t->lane[f].weight : 1;
    }
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_svm_together(bool *done, struct ki_path *path) {
    static const char call[] = "kiln_svm";
    kiln_status status = KILN_OK;
    kiln_svm_options options;
    struct ki_lanes t;
    bool two;
    memcpy(&options, path->options, sizeof options);
    lanes_take(&t, path, options.no_intercept, options.standardize);
    t.solver = "newton";
    const bool regression = options.regression != 0, weighed = options.balanced || options.class_weights;
    if (options.balanced || options.max_iterations || !(options.tolerance >= 0) || !(options.epsilon >= 0) ||
        (regression && (weighed || options.solver == KILN_CLASSIFIER_DUAL)) || !ki_lanes_apply(&t) ||
        (!regression && dual_is_taken(&t, call, options.solver)))
        return KILN_OK;
    TRY(lanes_check_weights(&t, call, options.weights));
    t.loss = (kiln_loss){.kind = KILN_LOSS_SQUARED_EPSILON,
                         .parameter = options.epsilon,
                         .y = path->y,
                         .weights = options.weights};
    if (regression) {
        TRY(ki_check_finite(call, "y", path->y, false));
    } else {
        TRY(lanes_take_classes(&two, &t, call, options.weights, options.class_weights, -1));
        if (!two) goto done;
        t.loss = (kiln_loss){.kind = KILN_LOSS_SQUARED_HINGE, .y = t.target, .weights = t.labels.weights};
    }
    TRY(ki_lanes_open(&t));
    lanes_set_origins(&t, 1);
    if (regression) TRY(lanes_set_regression(&t, options.epsilon));
    TRY(ki_lanes_train(&t));
    *done = true;
done:
    return ki_lanes_close(&t, status);
}

/* ---- generalised linear models ---- */

/* Each lane begins at the best constant of the rows that it trains on. */
static kiln_status lanes_set_constants(struct ki_lanes *t) {
    kiln_status status = KILN_OK;
    kiln_loss loss = t->loss;
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        if (lane->bad) continue;
        if (t->path->asked.fold) {
            TRY(ki_path_weigh(t->walks.rows, t->walks.room, t->path, f));
            loss.weights = t->walks.rows;
        }
        TRY(ki_glm_origin(&lane->origin, t->X, &loss));
        lane->bad = !lane->origin.reached;
    }
done:
    return status;
}

kiln_status ki_glm_together(bool *done, struct ki_path *path) {
    kiln_status status = KILN_OK;
    kiln_glm_options options;
    struct ki_lanes t;
    memcpy(&options, path->options, sizeof options);
    lanes_take(&t, path, options.no_intercept, options.standardize);
    t.deviances = true;
    t.loss = (kiln_loss){.kind = KILN_LOSS_GLM,
                         .family = options.family ? options.family : KILN_GAUSSIAN,
                         .link = options.link,
                         .parameter = options.parameter,
                         .link_power = options.link_power,
                         .y = path->y,
                         .weights = options.weights};
    TRY(ki_family_check(ki_glm_call, &t.loss));
    if (options.no_intercept || options.offset || options.max_iterations || !(options.tolerance >= 0) ||
        !ki_glm_any_eta(&t.loss) || ki_newton_bends_down(&t.loss) || !ki_lanes_apply(&t))
        return KILN_OK;
    TRY(lanes_check_weights(&t, ki_glm_call, options.weights));
    TRY(ki_check_finite(ki_glm_call, "y", path->y, false));
    TRY(ki_glm_check_target(&t.loss));
    TRY(ki_lanes_open(&t));
    TRY(lanes_set_constants(&t));
    TRY(ki_lanes_train(&t));
    *done = true;
done:
    return ki_lanes_close(&t, status);
}
