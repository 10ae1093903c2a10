/* Steps without a product, where the problem is easy: the first ones of logistic regression, and those
 * behind a sample's solution, which leaves its Hessian M (newton_pilot.c).
 *
 * Where columns hardly depend on each other, the criterion's diagonal is nearly the Hessian, and a step by
 * it takes a digit off the gradient for the one pass that evaluates the new point; Newton's step takes a
 * product besides. M is closer still. What the gradients of the points so far differ by corrects either
 * (L-BFGS, Nocedal, Math. Comp. 35 (1980)). Once a step leaves more than half of the gradient, or does not
 * lower the objective, Newton's go on; the first one by M may leave more, as it begins where columns of few
 * entries are far from where they belong.
 *
 * There are few columns beside X, so that the vectors are the host's: of a step, a GPU has the pass alone,
 * the coefficients go to it, and value and gradient come back. In the coordinates of newton_step.c, (W, b')
 * with b = b' - mu W. */
#include "algorithms/newton/newton_work.h"

enum {
    PAIRS = 8, /* steps that are remembered */
    /* The least entries of X a coefficient: with fewer, what the host does takes long beside a pass. A
     * GPU's pass takes hundreds of times less, so that it wants more of them. */
    ENTRIES = 32,
    ENTRIES_GPU = 1 << 14,
    VECTORS = 2 * PAIRS + 9
};
static const double SLOW = 0.5;

struct ki_secant {
    int64_t n, size;       /* coefficients; with the intercept */
    bool on, over;         /* there are such steps; `here` is the last of them */
    int64_t count;         /* steps taken */
    double *step, *change; /* PAIRS x size: steps, what the gradient changed by; number i is at i % PAIRS */
    double *point, *gradient;                       /* size: `here` */
    double *next, *slope;                           /* size: `there`, and its gradient */
    double *direction, *criterion, *mean, *penalty; /* size: the criterion's D^-2, with the common scale */
    double *space;                                  /* for what the device takes */
};

kiln_status ki_newton_secant_open(struct ki_newton_work *work) {
    struct ki_newton *newton = work->newton;
    struct ki_arena *arena = &newton->run.arena;
    const int64_t n = kiln_matrix_cols(newton->X), size = n + !newton->no_intercept;
    kiln_device_info info = {0};
    kiln_status status;
    if (newton->l1 > 0 || newton->k > 1) return KILN_OK;
    TRY(kiln_device_get_info(kiln_matrix_device(newton->X), &info));
    if ((info.is_gpu ? ENTRIES_GPU : ENTRIES) * size > kiln_matrix_nnz(newton->X)) return KILN_OK;
    struct ki_secant *secant = work->secant = ki_arena_zeros(arena, 1, sizeof *secant);
    TRY(arena->status);
    secant->n = n;
    secant->size = size;
    secant->step = ki_arena_reals(arena, VECTORS * size);
    TRY(arena->status);
    secant->change = secant->step + PAIRS * size;
    double **const vectors[] = {&secant->point, &secant->gradient,  &secant->next,
                                &secant->slope, &secant->direction, &secant->criterion,
                                &secant->mean,  &secant->penalty,   &secant->space};
    for (int i = 0; i < VECTORS - 2 * PAIRS; i++) *vectors[i] = secant->change + (PAIRS + i) * size;
done:
    return status;
}

/* ---- checkpoints ---- */

/* The vectors only while there are such steps: what they do not hold follows from them. A checkpoint without
 * is of a device on which they did not pay: there are none then. */
int ki_newton_secant_state(struct ki_state *state, struct ki_newton_work *work) {
    struct ki_secant *secant = work->secant;
    if (!secant || ki_checkpoint_lacks(work->newton->run.control, "secant.on")) return 0;
    state[0] = (struct ki_state){"secant.on", .flag = &secant->on};
    if (!secant->on) return 1;
    state[1] = (struct ki_state){"secant.over", .flag = &secant->over};
    state[2] =
        (struct ki_state){"secant.count", .integers = &secant->count, .least = 0, .most = KI_STATE_MOST};
    state[3] = (struct ki_state){"secant", .reals = secant->step, .count = VECTORS * secant->size};
    return 4;
}

kiln_status ki_newton_secant_look(struct ki_newton_work *work) {
    struct ki_state state[4];
    const int count = ki_newton_secant_state(state, work);
    return ki_checkpoint_look(work->newton->run.control, state, ki_min(count, 1));
}

/* ---- between host and device ---- */

static kiln_status secant_get(double *values, const struct ki_secant *secant, const struct ki_pair *pair) {
    kiln_status status;
    TRY(ki_vector_get(values, pair->w));
    if (pair->b) TRY(ki_vector_get(values + secant->n, pair->b));
done:
    return status;
}

/* A = count values, which stay as they are. */
static kiln_status secant_set(const struct ki_secant *secant, kiln_matrix *A, const double *values) {
    memcpy(secant->space, values, (size_t)kiln_matrix_nnz(A) * sizeof *values);
    return ki_vector_set(A, secant->space);
}

static kiln_status secant_set_pair(const struct ki_secant *secant, const struct ki_pair *pair,
                                   const double *values) {
    kiln_status status;
    TRY(secant_set(secant, pair->w, values));
    if (pair->b) TRY(secant_set(secant, pair->b, values + secant->n));
done:
    return status;
}

/* Prepares what the first step needs. Means and penalties are as the device has them. */
static kiln_status secant_begin(struct ki_newton_work *work) {
    kiln_status status;
    struct ki_secant *secant = work->secant;
    secant->count = 0;
    secant->on = true;
    secant->over = false;
    TRY(secant_get(secant->point, secant, &work->here.at));
    TRY(secant_get(secant->gradient, secant, &work->here.gradient));
    TRY(secant_get(secant->criterion, secant, &work->criterion));
    TRY(ki_vector_get(secant->penalty, work->penalty));
    if (work->mean) TRY(ki_vector_get(secant->mean, work->mean));
    for (int64_t j = secant->n; j < secant->size; j++) secant->penalty[j] = secant->mean[j] = 0;
done:
    return status;
}

/* `there`, at `next`: value, gradient, and *norm, the criterion. One pass. */
static kiln_status secant_evaluate(struct ki_newton_work *work, double *norm) {
    kiln_status status;
    struct ki_secant *secant = work->secant;
    struct ki_newton_point *there = &work->there;
    const int64_t n = secant->n;
    double shift = work->mean ? secant->next[n] : 0, square = 0, sum = 0;
    for (int64_t j = 0; j < n; j++) shift -= secant->mean[j] * secant->next[j];
    TRY(secant_set(secant, there->at.w, secant->next));
    if (work->mean) TRY(ki_vector_set(work->shift, &shift));
    TRY(kiln_loss_gradient(&there->loss, there->gradient.w, there->gradient.b, there->C, &work->problem,
                           work->newton->X, there->at.w, work->mean ? work->shift : NULL));
    work->newton->run.report.passes++;
    TRY(secant_get(secant->slope, secant, &there->gradient));
    const double off = work->mean ? secant->slope[n] : 0;
    for (int64_t j = 0; j < secant->size; j++) {
        const double w = secant->next[j];
        secant->slope[j] += secant->penalty[j] * w - secant->mean[j] * off;
        square += secant->penalty[j] * w * w;
        sum += secant->criterion[j] * secant->slope[j] * secant->slope[j];
    }
    there->objective = there->loss + 0.5 * square;
    *norm = sqrt(sum);
done:
    return status;
}

/* ---- steps ---- */

static double secant_dot(const struct ki_secant *secant, const double *x, const double *y) {
    double sum = 0;
    for (int64_t i = 0; i < secant->size; i++) sum += x[i] * y[i];
    return sum;
}

/* Returns what the criterion's diagonal is divided by: as the last step has it. */
static double bend_of(const struct ki_secant *secant, double scale) {
    if (secant->count == 0) return 1 / scale;
    const int64_t last = (secant->count - 1) % PAIRS * secant->size;
    const double *y = secant->change + last;
    double square = 0;
    for (int64_t i = 0; i < secant->size; i++) square += secant->criterion[i] * y[i] * y[i];
    return secant_dot(secant, secant->step + last, y) / square;
}

/* direction = -B^-1 gradient, by the two loops over the pairs. */
static void secant_turn(const struct ki_newton_work *work) {
    struct ki_secant *secant = work->secant;
    const int64_t size = secant->size, first = ki_max(secant->count - PAIRS, 0);
    double *q = secant->direction, share[PAIRS];
    for (int64_t i = 0; i < size; i++) q[i] = -secant->gradient[i];
    for (int64_t p = secant->count; p-- > first;) {
        const double *s = secant->step + p % PAIRS * size, *y = secant->change + p % PAIRS * size;
        share[p % PAIRS] = secant_dot(secant, s, q) / secant_dot(secant, s, y);
        for (int64_t i = 0; i < size; i++) q[i] -= share[p % PAIRS] * y[i];
    }
    if (ki_newton_factored(work)) {
        ki_newton_factor_turn(work, q);
    } else {
        const double bend = bend_of(secant, work->scale);
        for (int64_t i = 0; i < size; i++) q[i] *= bend * secant->criterion[i];
    }
    for (int64_t p = first; p < secant->count; p++) {
        const double *s = secant->step + p % PAIRS * size, *y = secant->change + p % PAIRS * size;
        const double rest = share[p % PAIRS] - secant_dot(secant, y, q) / secant_dot(secant, s, y);
        for (int64_t i = 0; i < size; i++) q[i] += rest * s[i];
    }
}

/* The evaluated point becomes `here`. False: what the gradient changed by is of no use for another step. */
static bool secant_accept(struct ki_newton_work *work, double norm) {
    struct ki_secant *secant = work->secant;
    const struct ki_newton_point former = work->here;
    const int64_t at = secant->count % PAIRS * secant->size;
    for (int64_t i = 0; i < secant->size; i++) {
        secant->step[at + i] = secant->next[i] - secant->point[i];
        secant->change[at + i] = secant->slope[i] - secant->gradient[i];
        secant->point[i] = secant->next[i];
        secant->gradient[i] = secant->slope[i];
    }
    secant->count++;
    work->here = work->there;
    work->there = former;
    work->norm = norm;
    work->level = 0;
    return secant_dot(secant, secant->step + at, secant->change + at) > 0;
}

/* The run goes on where a checkpoint was kept: `here` is evaluated once more, for the same bits. */
static kiln_status secant_go_on(struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton_point former = work->here;
    memcpy(work->secant->next, work->secant->point, (size_t)work->secant->size * sizeof(double));
    TRY(secant_evaluate(work, &work->norm));
    work->newton->run.report.passes--;
    work->here = work->there;
    work->there = former;
done:
    return status;
}

/* A step; *moved: whether `here` is a new point. */
static kiln_status secant_advance(struct ki_newton_work *work, bool *moved) {
    kiln_status status = KILN_OK;
    struct ki_secant *secant = work->secant;
    const double former = work->norm, noise = ki_newton_noise(work);
    double norm;
    *moved = false;
    secant_turn(work);
    const double slope = -secant_dot(secant, secant->gradient, secant->direction);
    if (!(slope > 0) || !isfinite(slope)) return KILN_OK;
    for (int64_t i = 0; i < secant->size; i++) secant->next[i] = secant->point[i] + secant->direction[i];
    TRY(secant_evaluate(work, &norm));
    const double actual = work->here.objective - work->there.objective;
    const bool resolved = 0.5 * slope > noise;
    const bool lower = resolved ? actual >= 1e-4 * slope : actual >= -noise && norm < former;
    if (!lower || !isfinite(actual) || !isfinite(norm)) goto done;
    *moved = true;
    const bool gained = secant_accept(work, norm), near = secant->count > 1 || !ki_newton_factored(work);
    work->led = true;
    work->looked = false;
    TRY(ki_newton_prove(work, fmax(actual, 0.5 * slope)));
    secant->over = !gained || (near && !(norm <= SLOW * former)) || (ki_newton_meets(work) && !work->proved);
    work->newton->run.report.iterations++;
    TRY(ki_newton_record(work, 0));
done:
    return status;
}

/* `here` on the device. */
static kiln_status secant_leave(const struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    struct ki_secant *secant = work->secant;
    secant->on = false;
    if (secant->count == 0) return KILN_OK;
    TRY(secant_set_pair(secant, &work->here.at, secant->point));
    TRY(secant_set_pair(secant, &work->here.gradient, secant->gradient));
done:
    return status;
}

kiln_status ki_newton_secant(struct ki_newton_work *work, struct ki_newton_model *model, bool resumed) {
    kiln_status status;
    struct ki_secant *secant = work->secant;
    bool moved = true;
    const bool easy = work->problem.kind == KILN_LOSS_LOGISTIC && !ki_newton_factor_cheap(work);
    const bool led = !resumed && ki_run_iterations(&work->newton->run) >
                                     0; /* by a sample of the rows: the first step is done */
    if (!secant || !(resumed ? secant->on : easy || led)) return KILN_OK;
    TRY(resumed ? secant_go_on(work) : secant_begin(work));
    if (led) TRY(ki_newton_record(work, 0));
    if (led && ki_checkpoint_kept(work->newton->run.control)) TRY(ki_newton_keep(work, model));
    while (moved && !secant->over && ki_newton_stop(work) == KILN_STOP_NONE) {
        TRY(secant_advance(work, &moved));
        if (!moved || !ki_checkpoint_kept(work->newton->run.control)) continue;
        TRY(secant_set_pair(secant, &work->here.at, secant->point));
        TRY(ki_newton_keep(work, model));
    }
    TRY(secant_leave(work));
    if (secant->count > 0 && !work->proved) TRY(ki_newton_confirm(work, INFINITY));
    if (secant->count > 0 && ki_newton_stop(work) == KILN_STOP_TOLERANCE)
        work->newton->run.report.solver = "newton (L-BFGS steps)";
done:
    return status;
}
