/* Steps without a product, where the problem is easy: the first ones of logistic regression.
 *
 * Where columns hardly depend on each other, the criterion's diagonal is nearly the Hessian, and a step by it takes a digit off the
 * gradient for the one pass that evaluates the new point; Newton's step takes a product besides. What the gradients of the
 * points so far differ by corrects the diagonal (L-BFGS, Nocedal, Math. Comp. 35 (1980)), on the host, as there are few
 * columns beside X. Once a step leaves more than half of the gradient, or does not lower the objective, Newton's go on. */
#include "algorithms/newton/newton_work.h"

enum {
    PAIRS = 8,    /* steps that are remembered */
    ENTRIES = 32, /* of X for each coefficient: with fewer, the host's part is not small beside a pass */
};
static const double SLOW = 0.5;

struct ki_secant {
    int64_t n, size; /* coefficients; with the intercept */
    int64_t count;   /* steps taken */
    bool wanted;
    double norm;           /* the criterion before the last of them */
    double *step, *change; /* PAIRS x size: steps, what the gradient changed by; number i is at i % PAIRS */
    double *gradient, *inverse, *direction, *space; /* size */
};

kiln_status ki_newton_secant_open(struct ki_newton_work *work) {
    const struct ki_newton *newton = work->newton;
    const int64_t n = kiln_matrix_cols(newton->X), size = n + !newton->no_intercept;
    if (newton->l1 > 0 || newton->k > 1 || ENTRIES * size > kiln_matrix_nnz(newton->X)) return KILN_OK;
    struct ki_secant *secant = work->secant = ki_calloc(sizeof *secant);
    if (!secant) return ki_fail_nomem(sizeof *secant, "Newton's method");
    secant->n = n;
    secant->size = size;
    secant->step = ki_calloc((size_t)(2 * PAIRS + 4) * (size_t)size * sizeof(double));
    if (!secant->step)
        return ki_fail_nomem((size_t)(2 * PAIRS + 4) * (size_t)size * sizeof(double), "Newton's method");
    secant->change = secant->step + PAIRS * size;
    secant->gradient = secant->change + PAIRS * size;
    secant->inverse = secant->gradient + size;
    secant->direction = secant->inverse + size;
    secant->space = secant->direction + size;
    return KILN_OK;
}

void ki_newton_secant_close(struct ki_newton_work *work) {
    if (!work->secant) return;
    ki_free(work->secant->step);
    ki_free(work->secant);
}

void ki_newton_secant_begin(struct ki_newton_work *work) {
    if (!work->secant) return;
    work->secant->count = 0;
    work->secant->wanted = work->problem.kind == KILN_LOSS_LOGISTIC && !ki_newton_factor_cheap(work);
}

void ki_newton_secant_end(struct ki_newton_work *work) {
    work->secant->wanted = false;
}

/* The pairs only while they are wanted. */
int ki_newton_secant_state(struct ki_state *state, struct ki_newton_work *work) {
    struct ki_secant *secant = work->secant;
    if (!secant) return 0;
    state[0] = (struct ki_state){"secant.wanted", .flag = &secant->wanted};
    if (!secant->wanted) return 1;
    state[1] =
        (struct ki_state){"secant.count", .integers = &secant->count, .least = 0, .most = KI_STATE_MOST};
    state[2] = (struct ki_state){"secant.norm", .reals = &secant->norm};
    state[3] = (struct ki_state){"secant", .reals = secant->step, .count = (2 * PAIRS + 4) * secant->size};
    return 4;
}

kiln_status ki_newton_secant_look(struct ki_newton_work *work) {
    struct ki_state state[4];
    const int count = ki_newton_secant_state(state, work);
    return ki_checkpoint_look(&work->newton->control, state, ki_min(count, 1));
}

/* values = the pair's numbers, and back, by way of `space`. */
static kiln_status get(double *values, const struct ki_secant *secant, const struct ki_pair *pair) {
    kiln_status status;
    TRY(ki_vector_get(values, pair->w));
    if (pair->b) TRY(ki_vector_get(values + secant->n, pair->b));
done:
    return status;
}

static kiln_status set(const struct ki_secant *secant, const struct ki_pair *pair, const double *values) {
    kiln_status status;
    memcpy(secant->space, values, (size_t)secant->size * sizeof *values);
    TRY(ki_vector_set(pair->w, secant->space));
    if (pair->b) TRY(ki_vector_set(pair->b, secant->space + secant->n));
done:
    return status;
}

static double dot(const struct ki_secant *secant, const double *x, const double *y) {
    double sum = 0;
    for (int64_t i = 0; i < secant->size; i++) sum += x[i] * y[i];
    return sum;
}

/* The last step and what it changed the gradient by; `step` had a length of 1 where `taken` was. */
static kiln_status remember(struct ki_newton_work *work) {
    kiln_status status;
    struct ki_secant *secant = work->secant;
    const int64_t at = secant->count % PAIRS * secant->size;
    double *step = secant->step + at, *change = secant->change + at;
    TRY(get(secant->space, secant, &work->here.gradient));
    for (int64_t i = 0; i < secant->size; i++) {
        step[i] = work->taken * secant->direction[i];
        change[i] = secant->space[i] - secant->gradient[i];
        secant->gradient[i] = secant->space[i];
    }
    if (dot(secant, step, change) > 0)
        secant->count++;
    else
        secant->wanted = false;
done:
    return status;
}

/* direction = -B^-1 gradient, by the two loops over the pairs. */
static void turn(struct ki_secant *secant) {
    const int64_t size = secant->size, first = ki_max(secant->count - PAIRS, 0);
    double *q = secant->direction, share[PAIRS], bend = 1;
    for (int64_t i = 0; i < size; i++) q[i] = -secant->gradient[i];
    for (int64_t p = secant->count; p-- > first;) {
        const double *s = secant->step + p % PAIRS * size, *y = secant->change + p % PAIRS * size;
        share[p % PAIRS] = dot(secant, s, q) / dot(secant, s, y);
        for (int64_t i = 0; i < size; i++) q[i] -= share[p % PAIRS] * y[i];
    }
    if (secant->count > 0) {
        const int64_t last = (secant->count - 1) % PAIRS * size;
        const double *y = secant->change + last;
        double square = 0;
        for (int64_t i = 0; i < size; i++) square += secant->inverse[i] * y[i] * y[i];
        bend = dot(secant, secant->step + last, y) / square;
    }
    for (int64_t i = 0; i < size; i++) q[i] *= bend * secant->inverse[i];
    for (int64_t p = first; p < secant->count; p++) {
        const double *s = secant->step + p % PAIRS * size, *y = secant->change + p % PAIRS * size;
        const double rest = share[p % PAIRS] - dot(secant, y, q) / dot(secant, s, y);
        for (int64_t i = 0; i < size; i++) q[i] += rest * s[i];
    }
}

/* What the first step needs. */
static kiln_status start(struct ki_newton_work *work) {
    kiln_status status;
    struct ki_secant *secant = work->secant;
    TRY(get(secant->gradient, secant, &work->here.gradient));
    TRY(get(secant->inverse, secant, &work->criterion));
    for (int64_t i = 0; i < secant->size; i++) secant->inverse[i] /= work->scale;
done:
    return status;
}

kiln_status ki_newton_secant_direction(bool *found, struct ki_newton_work *work,
                                       struct ki_newton_model *model) {
    kiln_status status = KILN_OK;
    struct ki_secant *secant = work->secant;
    *found = false;
    if (!secant || !secant->wanted) return KILN_OK;
    if (work->iterations > 0 && work->norm > SLOW * secant->norm) secant->wanted = false;
    if (!secant->wanted) return KILN_OK;
    TRY(work->iterations > 0 ? remember(work) : start(work));
    if (!secant->wanted) return KILN_OK;
    turn(secant);
    const double slope = -dot(secant, secant->gradient, secant->direction);
    double square = 0;
    for (int64_t i = 0; i < secant->size; i++)
        if (secant->inverse[i] > 0)
            square += secant->direction[i] * secant->direction[i] / secant->inverse[i];
    secant->wanted = *found = slope > 0 && isfinite(slope) && isfinite(square);
    if (!*found) return KILN_OK;
    *model = (struct ki_newton_model){
        .slope = slope, .decrease = 0.5 * slope, .length = sqrt(square / work->scale), .secant = true};
    secant->norm = work->norm;
    TRY(set(secant, &work->S, secant->direction));
done:
    return status;
}
