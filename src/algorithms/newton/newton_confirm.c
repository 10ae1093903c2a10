/* Whether a point that meets the criterion has converged: whether the objective can fall by no more than
 *
 *   SHARE tolerance (what the model has gained over the best constant) + rounding
 *
 * from there. The criterion goes by the columns' curvature at the origin, one by one. At the end there may
 * be less, as where rows of huge entries have left the loss or all rows are certain of their class, and
 * columns that nearly depend on each other have directions with much less.
 *
 * Three answers, the cheap ones first. The objective itself is a bound where losses are never negative, and
 * so is || L^-1/2 g ||^2 / 2 of convex losses, L the penalty: strong convexity, but for the intercepts, which
 * go by what curvature is left. Second, the last step: where the objective fell by what its model had
 * promised, no more is left than that, if the model was solved by a factor without a pivot of nothing but
 * rounding, or by coordinate descent. Third, the next step's model: g^T H^-1 g / 2 by the present Hessian,
 * and what conjugate gradient may have left out of it (newton_work.h, rest). That goes by the least curvature
 * it has met with, and where columns have lost theirs, or M lacks some, by the penalty: a direction that it
 * has not seen may have less (ki_newton_loose). With l1 alone no penalty bounds that of several classes:
 * there the duality gap has to tell where a column has lost its curvature and the rows in all have not. While
 * none of them tells, steps go on, each a digit more exact than what is there, and by the present diagonal.
 *
 * A model is believed only where the step left every row's curvature about as it was. A row of 1e12 that is
 * told apart from the others loses the same share of it in every step, e, and what its column can gain once
 * that row lets go of it is in no model before.
 *
 * Without a penalty an optimum may be at infinity, where no curvature is left: there the criterion alone
 * ends a run, but for support vector machines, whose losses have a least value, and for losses that are not
 * convex: these may be level far beyond a row's best mean, too, so that a step that is too long ends where
 * every gradient is small. The curvature changes with each step there, and steps lead back. */
#include "algorithms/newton/newton_descent.h"

#include "ops/linear/families.h"

/* SHARE: of the tolerance, as some of what is left is estimated. STRICTER: than the present point is, the
 * next step. FAR: of the curvature that steps go by, what they need not be told of. */
static const double SHARE = 0.5, STRICTER = 0.1, FAR = 0.1;

/* Returns what the model has gained over the best constant, at least. Where that is not known, strong
 * convexity has half of the penalty's part for it: f(0) >= f(w) + || L^1/2 w ||^2 / 2 at an optimum w. */
static double gain_of(const struct ki_newton_work *work) {
    const struct ki_newton *newton = work->newton;
    const bool first = newton->no_intercept || work->problem.kind == KILN_LOSS_GLM;
    const double constant = first ? work->first : newton->constant;
    const double ridge = work->here.objective - work->here.loss - work->here.norm1;
    return fmax(fmax(constant - work->here.objective, ridge), 0);
}

/* Returns what may be left. Near 0 rounding of predictors alone keeps a support vector machine's objective
 * from it, and one of classes where there is one alone is never there. */
double ki_newton_enough(const struct ki_newton_work *work) {
    const double epsilon = ki_epsilon(kiln_matrix_type(work->newton->X));
    return SHARE * work->newton->run.tolerance * gain_of(work) + ki_newton_noise(work) +
           (ki_newton_hinged(work) ? 8 * epsilon : 1) * epsilon * fabs(work->first);
}

bool ki_newton_bends_down(const kiln_loss *loss) {
    if (loss->kind != KILN_LOSS_GLM) return false;
    return ki_family_find(loss->family)->bends_down >> ki_link_of(loss) & 1;
}

static bool wanted(const struct ki_newton_work *work) {
    return work->newton->l2 > 0 || work->newton->l1 > 0 || ki_newton_hinged(work);
}

/* totals, k: the curvature of each intercept at `here`, the rows' sum of s p (1 - p). Uses there.C of
 * several classes. */
static kiln_status measure_totals(double *totals, struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    struct ki_arena arena = {0};
    if (newton->k == 1) return kiln_norm(totals, work->here.C, KILN_NORM_1);
    kiln_matrix *sums = ki_arena_model(&arena, newton->X, newton->k, 1),
                *ones = ki_arena_fill(&arena, ki_arena_rows(&arena, newton->X, 1), 1);
    TRY(arena.status);
    TRY(ki_newton_classes(work));
    TRY(kiln_multiply(sums, 1, KILN_TRANSPOSED, work->there.C, newton->weights ? newton->weights : ones, 0,
                      NULL));
    TRY(ki_vector_get(totals, sums));
done:
    return ki_arena_free(&arena, status);
}

/* The intercepts' part of what the penalty tells: by the curvature that is left. theta, k, unless NULL: the
 * step that they take each by itself. */
static kiln_status by_curvature(double *left, double *theta, struct ki_newton_work *work,
                                const struct ki_pair *of) {
    kiln_status status;
    const int64_t k = work->newton->k;
    struct ki_arena arena = {0};
    double *b = ki_arena_doubles(&arena, 2 * k);
    TRY(arena.status);
    double *totals = b + k;
    TRY(ki_vector_get(b, of->b));
    TRY(measure_totals(totals, work));
    for (int64_t c = 0; c < k; c++) {
        if (b[c] != 0) *left += b[c] * b[c] / (2 * totals[c]);
        if (theta) theta[c] = b[c] != 0 ? b[c] / totals[c] : 0;
    }
done:
    return ki_arena_free(&arena, status);
}

/* The same of all columns with one penalty and no l1: where there are a million of them, the gradient stays
 * on the device. Takes there.gradient. */
static kiln_status by_one_penalty(double *left, struct ki_newton_work *work, const struct ki_pair *of) {
    kiln_status status;
    const int64_t k = work->newton->k;
    kiln_matrix *const g = work->there.gradient.w;
    struct ki_arena arena = {0};
    double *norms = ki_arena_doubles(&arena, k);
    TRY(arena.status);
    TRY(kiln_times(g, of->w, work->kept));
    TRY(kiln_norm(norms, g, KILN_NORM_2));
    for (int64_t c = 0; c < k; c++) *left += norms[c] * norms[c] / (2 * work->newton->l2);
done:
    return ki_arena_free(&arena, status);
}

/* The same column by column. */
static kiln_status by_penalties(double *left, struct ki_newton_work *work, const struct ki_pair *of) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const int64_t n = kiln_matrix_cols(newton->X), k = newton->k;
    struct ki_arena arena = {0};
    double *g = ki_arena_reals(&arena, 2 * n * k + n);
    TRY(arena.status);
    double *w = g + n * k, *l1 = w + n * k;
    TRY(ki_vector_get(g, of->w));
    if (work->l1) TRY(ki_vector_get(w, work->here.at.w));
    if (work->l1) TRY(ki_vector_get(l1, work->l1));
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < k && work->diagonal[j] > 0; c++) {
            const double at = w[j * k + c], slope = g[j * k + c];
            const double least = at == 0 ? fmax(fabs(slope) - l1[j], 0) : fabs(slope + copysign(l1[j], at));
            *left += least * least / (2 * ki_newton_penalty_of(newton, j));
        }
done:
    return ki_arena_free(&arena, status);
}

/* Returns by how much the intercepts' step moves the columns' gradient, in the penalty's measure. By Cauchy
 * and Schwarz
 *
 *   (sum_i s_i h_i theta (x_ij - mean_j))^2 <= (sum_i s_i h_i^2 theta^2) (sum_i s_i (x_ij - mean_j)^2),
 *
 * of which the first is at most `settled` = theta^2 sum s h times the largest curvature of a row. That
 * matters where a row of 1e12 has left: about a mean that is its own part of the column, the gradient of the
 * others is one with the intercept's. */
static double drift_of(const struct ki_newton_work *work, double settled) {
    const struct ki_newton *newton = work->newton;
    const int64_t n = kiln_matrix_cols(newton->X);
    const double most = ki_newton_hinged(work) ? 1 : newton->k > 1 ? 0.5 : 0.25;
    double sum = 0;
    if (work->problem.kind == KILN_LOSS_GLM) return 0; /* whose curvatures have no bound */
    for (int64_t j = 0; j < n; j++)
        if (work->diagonal[j] > 0) sum += ki_newton_spread(newton, j) / (2 * ki_newton_penalty_of(newton, j));
    return most * settled * sum;
}

/* Q = what is left of a gradient, or a residual, by the model, once the intercepts have taken the steps
 * -theta; *gain: its product with theta on entry, and by how much the model falls. One pass. Uses P. */
static kiln_status settle(double *gain, struct ki_newton_work *work, double *theta,
                          const struct ki_pair *of) {
    kiln_status status;
    double curvature;
    TRY(ki_newton_furnish(work));
    TRY(kiln_fill(work->P.w, 0));
    TRY(ki_vector_set(work->P.b, theta));
    TRY(ki_newton_apply(work, &work->P, &curvature));
    TRY(ki_pairs_run(
        NULL, &(struct ki_pairs){.op = KI_PAIR_MIX, .out = work->Q, .x = *of, .y = work->Q, .scalar = -1}));
    *gain = fmax(*gain - curvature / 2, 0);
done:
    return status;
}

/* || L^-1/2 g ||^2 / 2 of a gradient, or a residual, with l1 of the least subgradient; and the intercepts'
 * part. Where that proves nothing for the drift alone, the intercepts take their step first. */
static kiln_status by_penalty(double *left, struct ki_newton_work *work, const struct ki_pair *of) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = work->newton;
    const bool several = newton->standardize || work->l1;
    struct ki_arena arena = {0};
    double half = 0;
    *left = newton->l2 > 0 ? 0 : (double)INFINITY;
    if (!(newton->l2 > 0)) return KILN_OK;
    TRY((several ? by_penalties : by_one_penalty)(left, work, of));
    if (!work->mean) return KILN_OK;
    double *theta = ki_arena_doubles(&arena, newton->k);
    TRY(arena.status);
    TRY(by_curvature(&half, theta, work, of));
    const double enough = ki_newton_enough(work), drift = drift_of(work, 2 * half), simple = *left + half;
    *left = pow(sqrt(*left) + sqrt(drift), 2) + half;
    if (*left <= enough || !(simple <= enough)) goto done;
    double gain = 2 * half;
    TRY(settle(&gain, work, theta, of));
    *left = half = 0;
    TRY((several ? by_penalties : by_one_penalty)(left, work, &work->Q));
    TRY(by_curvature(&half, NULL, work, &work->Q));
    *left = gain + pow(sqrt(*left) + sqrt(drift_of(work, 2 * half)), 2) + half;
done:
    return ki_arena_free(&arena, status);
}

/* Returns whether l1 alone penalises several classes: where a column has lost its curvature neither the model
 * nor a penalty bounds what is left. */
static bool alone(const struct ki_newton_work *work) {
    const struct ki_newton *newton = work->newton;
    return newton->k > 1 && newton->l1 > 0 && !(newton->l2 > 0);
}

/* The duality gap of certificate.h at `here`, of first order: t scaled by theta until no column has more than
 * its l1_j. */
static kiln_status by_scaling(double *left, struct ki_newton_work *work) {
    kiln_status status;
    struct ki_arena arena = {0};
    const struct ki_newton *newton = work->newton;
    const int64_t n = kiln_matrix_cols(newton->X), k = newton->k;
    double theta = 1, half = 0, sum = 0, *g = ki_arena_reals(&arena, n * k),
           *w = ki_arena_reals(&arena, n * k), *l1 = ki_arena_reals(&arena, n);
    TRY(arena.status);
    TRY(ki_vector_get(g, work->here.gradient.w));
    TRY(ki_vector_get(w, work->here.at.w));
    TRY(ki_vector_get(l1, work->l1));
    if (work->mean) TRY(by_curvature(&half, NULL, work, &work->here.gradient));
    for (int64_t e = 0; e < n * k; e++) {
        const double size = fabs(g[e]) + sqrt(half * ki_newton_spread(newton, e / k));
        if (work->diagonal[e / k] > 0 && size > l1[e / k]) theta = fmin(theta, l1[e / k] / size);
    }
    for (int64_t e = 0; e < n * k; e++) {
        const double z = (w[e] < 0 ? g[e] : -g[e]) - sqrt(half * ki_newton_spread(newton, e / k));
        if (work->diagonal[e / k] > 0) sum += fabs(w[e]) * fmax(l1[e / k] - theta * z, 0);
    }
    *left = sum + (1 - theta) * work->here.loss + half;
done:
    return ki_arena_free(&arena, status);
}

bool ki_newton_doubtful(const struct ki_newton_work *work) {
    if (!(work->newton->l2 > 0)) return false;
    return work->fallen || (ki_newton_factored(work) && !ki_newton_firm(work));
}

kiln_status ki_newton_loose(bool *loose, struct ki_newton_work *work) {
    double left;
    const kiln_status status = by_penalty(&left, work, &work->R);
    if (status == KILN_OK) *loose = !(left <= ki_newton_enough(work));
    return status;
}

/* The smaller of the criterion's diagonal and the Hessian's at `here`: the steps' from here on. One pass. */
static kiln_status refresh(struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const struct ki_columns *columns = &newton->columns;
    const int64_t n = kiln_matrix_cols(newton->X);
    const double most = ki_newton_most(newton);
    bool less = false;
    struct ki_arena arena = {0};
    double total, *floor = ki_arena_doubles(&arena, n);
    TRY(arena.status);
    TRY(ki_newton_furnish(work));
    TRY(ki_newton_squares(work, &total));
    TRY(ki_vector_get(floor, work->square));
    work->uneven = false;
    for (int64_t j = 0; j < n; j++) {
        const bool kept = work->diagonal[j] > 0;
        const double penalty = ki_newton_penalty_of(newton, j),
                     spread = newton->no_intercept || !kept
                                  ? 1
                                  : columns->weight * columns->variance[j] / columns->square[j],
                     present = fmin(work->diagonal[j], spread * floor[j] + penalty);
        less = less || present < FAR * work->diagonal[j];
        work->uneven =
            work->uneven || (kept && floor[j] * columns->weight < FAR * total * columns->square[j]);
        floor[j] = kept ? fmax((penalty + 0.01 * present) / work->scale, 1 / most) : 0;
        work->diagonal[j] = kept ? fmax(present, work->scale / most) : 0;
    }
    if (total > 0) work->diagonal[n] = fmin(total, work->diagonal[n]);
    TRY(ki_vector_set(work->floor, floor));
    work->radius = fmax(work->radius, 10 * work->norm / fmin(work->scale, 1));
    if (!less) goto done;
    work->worn = work->fallen = true;
    if (!ki_newton_exact(work) && !work->descent && !work->l1) work->led = work->regular = false;
    if (work->descent) work->descent->prepared = false;
    ki_newton_factor_forget(work);
done:
    return ki_arena_free(&arena, status);
}

/* Finds whether some row's |change| is a quarter of what `part` was made of, its reciprocals, or more; of 0
 * there is no share. most: k numbers. */
static kiln_status exceeds(bool *more, kiln_matrix *part, const kiln_matrix *change, double *most) {
    kiln_status status;
    TRY(kiln_times(part, part, change));
    TRY(kiln_norm(most, part, KILN_NORM_MAX));
    for (int64_t j = 0; j < kiln_matrix_cols(part); j++) *more |= !(most[j] < 0.25);
done:
    return status;
}

/* Whether the last step lowered, or raised, some row's curvature (of softmax, a probability) by a fifth, to 0
 * or from there among these: by a quarter of the smaller one, or of the one that is not 0. Takes there.C. */
static kiln_status has_changed(bool *changed, struct ki_newton_work *work) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *change = work->there.C, *part = ki_arena_rows(&arena, change, kiln_matrix_cols(change));
    const int64_t k = kiln_matrix_cols(change);
    double *one = ki_arena_doubles(&arena, 3 * k);
    TRY(arena.status);
    double *minus = one + k;
    for (int64_t j = 0; j < k; j++) one[j] = 1, minus[j] = -1;
    *changed = false;
    TRY(kiln_map(part, KILN_MAP_RECIPROCAL, change));
    TRY(kiln_combine(change, one, work->here.C, minus, change));
    TRY(exceeds(changed, part, change, minus + k));
    TRY(kiln_map(part, KILN_MAP_RECIPROCAL, work->here.C));
    TRY(exceeds(changed, part, change, minus + k));
done:
    return ki_arena_free(&arena, status);
}

/* Finds whether the step that led from `there` to `here`, or failed to lead the other way, left the rows'
 * curvatures as they were, so that a quadratic model says what is left. Once a point, as it takes `there`. */
static kiln_status is_regular(bool *regular, struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    bool changed = false;
    /* no step has led to a warm start, or one that a column could hardly take part in: the next one is
     * tried */
    const bool ahead = work->looked && !work->led && work->ahead && !work->regular;
    if (ahead) TRY(ki_newton_try(work, 1));
    if (!work->looked || ahead) TRY(has_changed(&changed, work));
    if (!work->looked || ahead) work->regular = !changed && (ahead || work->led);
    work->looked = true;
    *regular = work->regular;
done:
    return status;
}

/* Finds whether the rows whose curvature is not the same at `here` and `there` have most of some column's.
 * Two passes where there are any. Takes there.C. */
static kiln_status rows_matter(bool *matter, struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = work->newton;
    const int64_t n = kiln_matrix_cols(newton->X);
    const double one = 1, minus = -1;
    struct ki_arena arena = {0};
    double changed;
    TRY(kiln_combine(work->there.C, &one, work->here.C, &minus, work->there.C));
    TRY(kiln_norm(&changed, work->there.C, KILN_NORM_MAX));
    *matter = !isfinite(changed);
    if (*matter || changed == 0) return KILN_OK;
    TRY(kiln_map(work->there.C, KILN_MAP_ABS, work->there.C));
    double *squares = ki_arena_doubles(&arena, 2 * n);
    TRY(arena.status);
    TRY(kiln_gram_diagonal(work->square, newton->X, work->there.C));
    TRY(ki_vector_get(squares, work->square));
    TRY(kiln_gram_diagonal(work->square, newton->X, work->here.C));
    TRY(ki_vector_get(squares + n, work->square));
    work->newton->run.report.passes += 2;
    for (int64_t j = 0; j < n; j++) {
        const double all = fmax(squares[j], squares[n + j]) + ki_newton_penalty_of(newton, j);
        *matter = *matter || (work->diagonal[j] > 0 && squares[j] > (1 - FAR) * all);
    }
done:
    return ki_arena_free(&arena, status);
}

/* Finds whether a hinge's model may be believed: the rows that the last step, or twice the next one, or
 * rounding of the predictors lets into the loss or out of it do not matter. A row of 1e12 is led to the kink
 * itself, where rounding says on which side it lies, and has all of its column's curvature on one side and
 * none on the other. One pass. Uses `there`. */
static kiln_status kinks_settled(bool *settled, struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    const double rounding = 8 * ki_epsilon(kiln_matrix_type(work->newton->X));
    bool matter = false;
    *settled = false;
    if (!work->led && !work->ahead) return KILN_OK; /* no step is there to go by */
    if (!work->looked) TRY(rows_matter(&matter, work));
    if (!work->looked) work->regular = !matter;
    work->looked = true;
    if (!work->regular) return KILN_OK;
    TRY(ki_pairs_run(
        NULL, &(struct ki_pairs){
                  .op = KI_PAIR_MIX, .out = work->there.at, .x = work->here.at, .y = work->S, .scalar = 2}));
    TRY(ki_pairs_run(NULL, &(struct ki_pairs){.op = KI_PAIR_MIX,
                                              .out = work->there.at,
                                              .x = work->there.at,
                                              .y = work->here.at,
                                              .scalar = rounding}));
    TRY(ki_newton_evaluate(work, &work->there));
    TRY(rows_matter(&matter, work));
    *settled = !matter;
done:
    return status;
}

bool ki_newton_meets(const struct ki_newton_work *work) {
    return work->norm <= work->newton->run.tolerance * work->reference;
}

kiln_status ki_newton_prove(struct ki_newton_work *work, double left) {
    kiln_status status = KILN_OK;
    const double enough = ki_newton_enough(work);
    const bool bounded = work->problem.kind != KILN_LOSS_GLM && work->here.objective <= enough;
    bool regular = true;
    work->proved = false;
    if (!ki_newton_meets(work)) return KILN_OK;
    if (wanted(work) && !bounded) {
        if (!(left <= enough)) return KILN_OK;
        TRY((ki_newton_hinged(work) ? kinks_settled : is_regular)(&regular, work));
        if (regular && alone(work)) TRY(refresh(work));
        regular = regular && !(alone(work) && work->uneven);
    } else if (ki_newton_bends_down(&work->problem)) {
        TRY(is_regular(&regular, work));
    }
    work->proved = regular;
done:
    return status;
}

kiln_status ki_newton_confirm(struct ki_newton_work *work, double left) {
    kiln_status status = KILN_OK;
    double bound;
    bool regular;
    work->proved = false;
    if (!ki_newton_meets(work)) return KILN_OK;
    if (work->newton->k > 1) TRY(is_regular(&regular, work)); /* while there.C is what it needs */
    if (!ki_newton_bends_down(&work->problem)) {
        TRY(alone(work) ? by_scaling(&bound, work) : by_penalty(&bound, work, &work->here.gradient));
        work->proved = bound <= ki_newton_enough(work);
    }
    if (!work->proved) TRY(ki_newton_prove(work, left));
    if (work->proved || !(work->reference > 0)) return KILN_OK;
    if (!ki_newton_hinged(work)) TRY(is_regular(&regular, work));
    work->goal = STRICTER * work->norm / work->reference;
    if (work->level == 0) TRY(refresh(work));
done:
    return status;
}
