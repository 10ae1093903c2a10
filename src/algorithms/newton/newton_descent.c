/* The l1 step on the CPU for one column of coefficients: the proximal Newton model of newton_l1.c by
 * coordinate descent,
 *
 *   z_j = S(z_j - g_j / H_jj, l1_j / H_jj),   S(x, t) = sign(x) max(|x| - t, 0),
 *
 * on the columns that are not 0 and those whose gradient says that they should not be: of thousands often a
 * few, and no others are read. Columns are taken in random order, which on text takes a fraction of the
 * sweeps that their own order takes.
 *
 * newton_quadratic.c keeps what a coordinate's gradient needs. Where that is the Gram matrix, sweeps cost
 * next to nothing, and the least point of a face, the elements that are not 0 with their signs, is solved for
 * exactly once sweeps have cost as much. Else sweeps are what costs, so that the model is solved loosely
 * until one sweep does, and then closer, and once a sweep hardly changes the face, conjugate gradient goes on
 * from there (newton_face.c).
 *
 * While rows come to be told apart, a loss like the logistic one falls by the same factor in every step, e,
 * because its curvature falls with it and the model's least point comes much too soon. The model takes that
 * share of the curvature which the last step was seen to have: steps are half as long again then, and near
 * the solution the share is 1. */
#include "algorithms/newton/newton_descent.h"

enum {
    SWEEPS = 1000, /* in a step, at most */
    AHEAD = 3,     /* columns, which are asked for before a sweep comes to them */
    PATIENCE = 8,  /* sweeps before a face is solved, and a sixth of its elements */
    DENSE_COLUMNS = 512,
    SETTLED =
        20, /* columns for each that a sweep took to or from 0: conjugate gradient can go on with the face */
    NOISE = 10000 /* roundings of the objective that a decrease which says something of the curvature has at
               * least */
};
static const double LEAST_SHARE = 0.3,
                    LEAST_LOOSENESS = 0.15; /* tighter takes more sweeps than it saves steps */

static void descent_close(void *of) {
    struct ki_descent *descent = of;
    ki_sparse_columns_close(&descent->columns);
    ki_selector_close(&descent->selector);
}

kiln_status ki_newton_descent_open(struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    struct ki_arena *arena = &work->newton->run.arena;
    const int64_t n = kiln_matrix_cols(newton->X);
    const bool dense = kiln_matrix_format(newton->X) == KILN_DENSE;
    if (!(newton->l1 > 0) || newton->k > 1 || !ki_selectable(newton->X)) return KILN_OK;
    if (dense && (n > DENSE_COLUMNS || n > kiln_matrix_rows(newton->X))) return KILN_OK;
    struct ki_descent *descent = work->descent = ki_arena_zeros(arena, 1, sizeof *descent);
    TRY(arena->status);
    descent->n = n;
    descent->looseness = 1;
    descent->w = ki_arena_room(arena, n, 5 * sizeof(double));
    descent->chosen = ki_arena_room(arena, n, sizeof *descent->chosen);
    TRY(arena->status);
    descent->g = descent->w + n;
    descent->l1 = descent->g + n;
    descent->penalty = descent->l1 + n;
    descent->least = descent->penalty + n;
    if (dense) return KILN_OK;
    TRY(ki_arena_keep(arena, descent, descent_close));
    TRY(ki_selector_open(&descent->selector, newton->X));
    TRY(ki_sparse_columns_open(&descent->columns, &descent->selector));
done:
    return status;
}

/* Prepares what depends on the columns and the curvature that steps go by. */
static void descent_prepare(const struct ki_newton_work *work) {
    const struct ki_newton *newton = work->newton;
    const struct ki_columns *columns = &newton->columns;
    struct ki_descent *descent = work->descent;
    const double part = kiln_matrix_type(newton->X) == KILN_F32 ? 1e-6 : 1e-10;
    for (int64_t j = 0; j < descent->n; j++) {
        const double variance = newton->standardize ? columns->variance[j] : 1;
        descent->l1[j] = newton->l1 * sqrt(variance);
        descent->penalty[j] = newton->l2 * variance;
        descent->least[j] = part * work->diagonal[j]; /* 0 where the column is left out */
    }
    descent->prepared = true;
}

/* The columns that are not 0 or should not be; their number. */
static int64_t descent_choose(struct ki_descent *descent) {
    int64_t count = 0;
    for (int64_t j = 0; j < descent->n; j++) {
        const bool chosen =
            descent->least[j] > 0 && (descent->w[j] != 0 || fabs(descent->g[j]) > descent->l1[j]);
        if (chosen) descent->chosen[count++] = (int32_t)j;
    }
    return count;
}

/* The share of the curvature for the next model: that which the objective without l1 was seen to have along
 * the last step,
 *
 *   share = (2 (slope - decrease) - own) / d . H d,
 *
 * or all of it where the step was a short one, or its decrease is little more than rounding. */
static double descent_share_of(const struct ki_newton_work *work) {
    const struct ki_descent *descent = work->descent;
    const double decrease = descent->smooth - (work->here.objective - work->here.norm1);
    const double share = (2 * (descent->slope - decrease) - descent->own_bend) / descent->bend;
    const double noise = NOISE * ki_epsilon(kiln_matrix_type(work->newton->X)) * fabs(work->first);
    if (!(descent->bend > 0) || !(decrease > noise) || !isfinite(share)) return 1;
    return fmin(fmax(share, LEAST_SHARE), 1);
}

/* Returns how far the intercept was from its best value, as violation does. */
static double descent_settle(struct ki_quadratic *of) {
    if (!of->intercept || !(of->total > 0)) return 0;
    const double slope = ki_quadratic_intercept_slope(of);
    ki_quadratic_move_intercept(of, -slope / of->total);
    return slope * slope / of->total;
}

/* ---- the least point of a face, with a Gram matrix ---- */

/* U = the Hessian on the face, bordered by the intercept's; r = minus the gradient there. Returns the
 * face's elements. */
static int64_t fill_face(struct ki_quadratic *of) {
    int64_t size = 0;
    for (int64_t a = 0; a < of->count; a++)
        if (of->z[a] != 0) of->face[size++] = (int32_t)a;
    const int64_t stride = size + of->intercept;
    for (int64_t i = 0; i < size; i++) {
        const int64_t a = of->face[i];
        for (int64_t j = i; j < size; j++) of->U[i * stride + j] = of->G[a * of->count + of->face[j]];
        if (of->intercept) of->U[i * stride + size] = of->product[a];
        of->solution[i] = -of->g[a] - (of->z[a] > 0 ? of->l1[a] : -of->l1[a]);
    }
    if (of->intercept) {
        of->U[size * stride + size] = of->total;
        of->solution[size] = -of->gb;
    }
    return size;
}

/* Goes to the least point of the face, or towards it until an element becomes 0: what sweeps take
 * thousands for where columns are nearly the same. */
static void solve_face(struct ki_quadratic *of) {
    const int64_t size = fill_face(of), bordered = size + of->intercept;
    double part = 1;
    int64_t first = -1;
    struct ki_factorisation factor = {.U = of->U, .size = bordered, .scale = of->zeros};
    if (!ki_factorise(&factor, INFINITY) || factor.failed) return;
    ki_substitute(of->U, of->solution, bordered);
    for (int64_t i = 0; i < size; i++) {
        const double z = of->z[of->face[i]], moved = z + part * of->solution[i];
        if (z > 0 ? moved > 0 : moved < 0) continue;
        part = -z / of->solution[i];
        first = i;
    }
    for (int64_t i = 0; i < size; i++) {
        const int64_t a = of->face[i];
        const double former = of->z[a];
        of->z[a] = i == first ? 0 : former + part * of->solution[i];
        ki_quadratic_move(of, a, of->z[a] - former);
    }
    if (of->intercept) ki_quadratic_move_intercept(of, part * of->solution[size]);
}

/* ---- sweeps ---- */

/* The step to the least point of one coordinate. Signs are nobody's guess: there are no branches on them. */
static double step_of(const struct ki_quadratic *of, int64_t a, double slope) {
    const double z = of->z[a], most = of->threshold[a], to = z - slope * of->inverse[a];
    const double below = to < most ? to : most, part = below > -most ? below : -most;
    return (to - part) - z;
}

/* Returns what the least subgradient counts for. */
static double violation(const struct ki_quadratic *of, int64_t a, double slope) {
    const double z = of->z[a], l1 = of->l1[a], below = slope < l1 ? slope : l1;
    const double v = slope + (z != 0 ? copysign(l1, z) : -(below > -l1 ? below : -l1));
    return v * v * of->inverse[a];
}

static void descent_shuffle(int32_t *order, int64_t count, struct ki_draws *draws) {
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t other = ki_draw_below(draws, i + 1);
        const int32_t former = order[i];
        order[i] = order[other];
        order[other] = former;
    }
}

/* One sweep over `order`, which keeps the columns that are not 0; the sum of violations met with.
 * *changed: how many columns came to another face. */
static double descent_sweep(struct ki_quadratic *of, int64_t *active, int64_t *changed) {
    int64_t kept = 0, left = 0;
    double violations = descent_settle(of);
    for (int64_t i = 0; i < *active; i++) {
        const int32_t a = of->order[i];
        if (!of->G && i + AHEAD < *active) ki_sparse_column_ask(&of->u[of->order[i + AHEAD]]);
        const double slope = ki_quadratic_slope(of, a), step = step_of(of, a, slope);
        violations += violation(of, a, slope);
        of->order[kept] = a;
        kept += (of->z[a] != 0) | (step != 0);
        const double former = of->z[a], z = former + step;
        left += (z > 0) != (former > 0) || (z < 0) != (former < 0);
        of->z[a] = z;
        if (step != 0) ki_quadratic_move(of, a, step);
    }
    *active = kept;
    *changed = left;
    return violations;
}

static int64_t all(struct ki_quadratic *of) {
    for (int64_t a = 0; a < of->count; a++) of->order[a] = (int32_t)a;
    return of->count;
}

/* Sweeps until the violations are `goal` or less, over all columns and, between, over those that are not
 * 0. */
static kiln_status descent_descend(struct ki_quadratic *of, struct ki_newton_work *work,
                                   struct ki_newton_model *model, double goal) {
    kiln_status status = KILN_OK;
    struct ki_draws draws = {.seed = (uint64_t)ki_run_iterations(&work->newton->run),
                             .stream = KI_STREAM_DESCENT};
    int64_t active = all(of), changed = 0;
    int64_t waited = 0; /* sweeps since a face was solved, or as many as one costs */
    bool full = true;
    while (model->inner < SWEEPS && !work->newton->run.cancelled) {
        descent_shuffle(of->order, active, &draws);
        const double violations = descent_sweep(of, &active, &changed);
        model->inner++;
        model->rest = violations / 2;
        ki_run_ask(&work->newton->run);
        if (violations <= goal && full) break;
        if (of->G && ++waited >= PATIENCE + active / 6) {
            solve_face(of);
            waited = 0;
        }
        const bool settled = !of->G && !full && changed <= active / SETTLED;
        full = violations <= goal;
        if (settled && !full) TRY(ki_quadratic_face(of, work, model, goal, &full));
        if (full) active = all(of);
    }
done:
    return status;
}

static double descent_goal_of(struct ki_quadratic *of, const struct ki_newton_work *work) {
    double sum = of->intercept && of->total > 0 ? of->gb * of->gb / of->total : 0;
    for (int64_t a = 0; a < of->count; a++) {
        of->inverse[a] = 1 / of->diagonal[a];
        of->threshold[a] = of->l1[a] / of->diagonal[a];
        sum += violation(of, a, of->g[a]);
    }
    if (of->G) {
        const double goal = ki_newton_forcing(work->norm / work->reference, work->goal, sum);
        return goal * goal;
    }
    const double enough = 0.3 * work->goal * work->reference / work->norm;
    const double part = fmax(work->descent->looseness, enough);
    return part * part * sum;
}

/* ---- checkpoints ---- */

int ki_newton_descent_state(struct ki_state *state, struct ki_newton_work *work) {
    struct ki_descent *descent = work->descent;
    if (!descent || ki_checkpoint_lacks(work->newton->run.control, "descent.looseness")) return 0;
    int count = 0;
    state[count++] = (struct ki_state){"descent.looseness", .reals = &descent->looseness};
    state[count++] = (struct ki_state){"descent.slope", .reals = &descent->slope};
    state[count++] = (struct ki_state){"descent.bend", .reals = &descent->bend};
    state[count++] = (struct ki_state){"descent.own bend", .reals = &descent->own_bend};
    state[count++] = (struct ki_state){"descent.smooth", .reals = &descent->smooth};
    return count;
}

/* ---- the step ---- */

static kiln_status descent_put(kiln_matrix *A, const double *values, int64_t count) {
    kiln_status status;
    struct ki_arena arena = {0};
    const kiln_matrix *column = ki_arena_vector(&arena, A, count, values);
    const double one = 1;
    TRY(arena.status);
    TRY(kiln_combine(A, &one, column, NULL, NULL));
done:
    return ki_arena_free(&arena, status);
}

/* S = z - w and what the model says of it: its slope from the gradient at w, its curvature from that at z. */
static kiln_status descent_conclude(const struct ki_quadratic *of, struct ki_newton_work *work, double gb,
                                    struct ki_newton_model *model) {
    kiln_status status = KILN_OK;
    struct ki_descent *descent = work->descent;
    double slope = gb * of->b, bend = of->b * (ki_quadratic_intercept_slope(of) - gb), grown = 0, own = 0;
    for (int64_t a = 0; a < of->count; a++) {
        const double d = of->z[a] - of->w[a], g = descent->g[descent->chosen[a]];
        if (of->G) bend += d * (of->g[a] - g);
        slope += d * g;
        own += of->own[a] * d * d;
        grown += of->l1[a] * (fabs(of->z[a]) - fabs(of->w[a]));
    }
    bend = of->G ? bend - own : ki_quadratic_bend(of);
    descent->slope = -slope;
    descent->bend = bend / descent->share;
    descent->own_bend = own;
    descent->smooth = work->here.objective - work->here.norm1;
    model->slope = -slope - grown;
    model->decrease = model->slope - 0.5 * (bend + own);
    memset(descent->g, 0, (size_t)descent->n * sizeof(double));
    for (int64_t a = 0; a < of->count; a++) descent->g[descent->chosen[a]] = of->z[a] - of->w[a];
    TRY(descent_put(work->S.w, descent->g, descent->n));
    if (of->intercept) TRY(descent_put(work->S.b, &of->b, 1));
done:
    return status;
}

/* Returns whether some column has less curvature than what the model adds to it, a part of the criterion's: a
 * row of huge entries has left the loss. Such a model says nothing of what is left. */
static bool descent_is_stiff(const struct ki_quadratic *of, const struct ki_descent *descent) {
    for (int64_t a = 0; a < of->count; a++)
        if (descent->least[descent->chosen[a]] > 0.5 * of->diagonal[a]) return true;
    return false;
}

kiln_status ki_newton_descend(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    struct ki_descent *descent = work->descent;
    struct ki_arena arena = {0};
    struct ki_quadratic quadratic = {.arena = &arena};
    *model = (struct ki_newton_model){0};
    if (ki_run_iterations(&work->newton->run) == 0 || !descent->prepared) descent_prepare(work);
    if (ki_run_iterations(&work->newton->run) == 0) descent->looseness = 1;
    descent->share = ki_run_iterations(&work->newton->run) == 0 ? 1 : descent_share_of(work);
    TRY(ki_vector_get(descent->w, work->here.at.w));
    TRY(ki_vector_get(descent->g, work->here.gradient.w));
    quadratic.count = descent_choose(descent);
    TRY(ki_quadratic_new(&quadratic, work));
    const double gb = quadratic.gb;
    TRY(ki_quadratic_form(&quadratic, work));
    TRY(descent_descend(&quadratic, work, model, descent_goal_of(&quadratic, work)));
    if (!quadratic.G && model->inner == 1)
        descent->looseness = fmax(0.25 * descent->looseness, LEAST_LOOSENESS);
    TRY(descent_conclude(&quadratic, work, gb, model));
    model->stiff = descent_is_stiff(&quadratic, descent);
    if (model->stiff) model->rest = INFINITY;
done:
    return ki_arena_free(&arena, status);
}
