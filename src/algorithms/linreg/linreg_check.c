/* This file says what a solution is worth: residual, intercept, gradient, norm and objective, afresh from y -
 * X W - b, whatever the recurrences of conjugate gradient say. What is reported of a fit comes from here. */
#include "algorithms/linreg/linreg_block.h"

/* beta * (*z) = L A. Uses Z. */
static kiln_status penalise(const struct ki_block *t, double *beta, const kiln_matrix **z,
                            const kiln_matrix *A) {
    *beta = t->system->options.l2;
    *z = A;
    if (!t->system->penalty) return KILN_OK;
    *beta = 1;
    *z = t->Z;
    return kiln_times(t->Z, A, t->system->penalty);
}

/* A -= (column means of A, weighted) on each row; adds them to b if given. */
kiln_status ki_block_centre_rows(const struct ki_block *t, kiln_matrix *A, double *b) {
    kiln_status status;
    double shift[KI_BLOCK];
    TRY(kiln_dot(shift, A, t->system->s));
    for (int j = 0; j < t->k; j++) {
        shift[j] /= -t->system->weight;
        if (b) b[j] -= shift[j];
    }
    TRY(kiln_combine(A, t->one, A, shift, t->system->ones));
done:
    return status;
}

/* A = (X - 1 mu^T)^T C, for C whose columns sum to zero but for rounding: that little must not be
 * magnified by the means. */
static kiln_status check_scatter(const struct ki_block *t, kiln_matrix *A, const kiln_matrix *C) {
    kiln_status status;
    const struct ki_system *system = t->system;
    double sum[KI_BLOCK];
    TRY(kiln_multiply(A, 1, KILN_TRANSPOSED, system->X, C, 0, NULL));
    if (system->options.no_intercept) return KILN_OK;
    TRY(kiln_dot(sum, C, system->ones));
    for (int j = 0; j < t->k; j++) sum[j] = -sum[j];
    TRY(kiln_combine(A, t->one, A, sum, system->mean));
done:
    return status;
}

/* The same of W = 0, where C = S (y - b), from what the walk over the columns left. */
static kiln_status scatter_zero(const struct ki_block *t, kiln_matrix *A) {
    const struct ki_system *system = t->system;
    const double minus = -system->right_sum;
    const bool centre = !system->options.no_intercept;
    return kiln_combine(A, t->one, system->right, centre ? &minus : NULL, centre ? system->mean : NULL);
}

/* *direction = D^-2 G. Uses Z. */
static kiln_status check_precondition(const struct ki_block *t, const kiln_matrix **direction) {
    *direction = t->system->inverse ? t->Z : t->G;
    return t->system->inverse ? kiln_times(t->Z, t->G, t->system->inverse) : KILN_OK;
}

kiln_status ki_block_norm(const struct ki_block *t, double *norm) {
    kiln_status status;
    const kiln_matrix *direction;
    TRY(check_precondition(t, &direction));
    TRY(kiln_dot(norm, t->G, direction));
    for (int j = 0; j < t->k; j++) norm[j] = sqrt(norm[j]);
done:
    return status;
}

/* The norm and the objective, once rss and the gradient's part of the data are there, in G with that sign.
 * zero: W is 0. Uses Z. */
static kiln_status check_judge(struct ki_block *t, double sign, bool zero) {
    kiln_status status;
    const kiln_matrix *z;
    double square[KI_BLOCK] = {0}, beta = 0, signs[KI_BLOCK], minus[KI_BLOCK];
    if (!zero) {
        TRY(penalise(t, &beta, &z, t->W));
        TRY(kiln_dot(square, t->W, z));
        for (int j = 0; j < t->k; j++) signs[j] = sign, minus[j] = -beta;
        TRY(kiln_combine(t->G, signs, t->G, minus, z));
    }
    TRY(ki_block_norm(t, t->norm));
    for (int j = 0; j < t->k; j++) t->objective[j] = 0.5 * (t->rss[j] + beta * square[j]);
done:
    return status;
}

/* Returns whether a pass with a row map does what check does in two: of one target whose intercept is known
 * but for rounding. */
static bool at_once(const struct ki_block *t) {
    return t->k == 1 && (t->system->right || (t->system->walk.A && t->system->direct.wanted));
}

static kiln_status set_row(kiln_matrix *row, double value) {
    return ki_vector_set(row, &value);
}

/* The same as check, in one pass, for a b that is right but for rounding: what the residuals' sum says of
 * that is taken off. *far: b was not, so that most digits of rss and of the gradient have cancelled. */
static kiln_status check_at_once(bool *far, struct ki_block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    const bool intercept = !system->options.no_intercept;
    const kiln_loss loss = {.kind = KILN_LOSS_SQUARED, .y = t->y, .weights = system->options.weights};
    double value, sum, minus;
    if (kiln_matrix_type(system->X) == KILN_F32) t->b[0] = (float)t->b[0];
    TRY(set_row(t->shift, t->b[0]));
    TRY(kiln_loss_gradient(&value, t->G, intercept ? t->sums : NULL, NULL, &loss, system->X, t->W,
                           intercept ? t->shift : NULL));
    system->run.report.passes++;
    t->rss[0] = 2 * value;
    if (intercept) {
        TRY(ki_vector_get(&sum, t->sums));
        minus = -sum;
        TRY(kiln_combine(t->G, t->one, t->G, &minus, system->mean));
        const double step = sum / system->weight;
        t->b[0] -= step;
        t->rss[0] = fmax(t->rss[0] - sum * step, 0);
        *far = sum * step > t->rss[0] && fabs(step) > 1e-3 * fabs(t->b[0]);
    }
    TRY(check_judge(t, -1, false));
done:
    return status;
}

/* From an intercept that is far off, residuals would lose digits. */
kiln_status ki_block_follow(struct ki_block *t) {
    kiln_status status = KILN_OK;
    double shift[KI_BLOCK];
    if (t->system->options.no_intercept) return KILN_OK;
    TRY(kiln_dot(shift, t->E, t->system->mean));
    for (int j = 0; j < t->k; j++) t->b[j] -= shift[j];
done:
    return status;
}

/* The criterion of W = 0 comes from the walk; tss about the means in any case. */
kiln_status ki_block_check_zero(struct ki_block *t, double *tss) {
    kiln_status status;
    struct ki_arena arena = {0};
    const struct ki_system *system = t->system;
    const int64_t n = system->walk.n;
    double *right = ki_arena_doubles(&arena, n * t->k);
    TRY(arena.status);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < t->k; j++) right[i * t->k + j] = ki_walk_element(system, i, n + j);
    TRY(ki_vector_set(t->G, right));
    for (int j = 0; j < t->k; j++) {
        t->b[j] = system->options.no_intercept ? 0 : ki_walk_mean(system, n + j);
        t->rss[j] = ki_walk_element(system, n + j, n + j);
        tss[j] = ki_walk_spread(system, j);
    }
    TRY(check_judge(t, 1, true));
done:
    return ki_arena_free(&arena, status);
}

/* Residual, intercept, gradient, norm and objective of W, all from y - X W - b. The former b is subtracted
 * before X W is, as far fewer digits cancel than after; the means of what remains then correct it. */
static kiln_status check_about(bool *far, struct ki_block *t, bool zero) {
    kiln_status status;
    struct ki_system *system = t->system;
    const bool intercept = !system->options.no_intercept;
    double minus_b[KI_BLOCK];
    if (!zero && at_once(t)) return check_at_once(far, t);
    for (int j = 0; j < t->k; j++) {
        if (kiln_matrix_type(system->X) == KILN_F32) t->b[j] = (float)t->b[j];
        minus_b[j] = -t->b[j];
    }
    TRY(kiln_combine(t->R, minus_b, system->ones, t->one, t->y));
    if (!zero) TRY(kiln_multiply(t->R, -1, KILN_PLAIN, system->X, t->W, 1, t->R));
    if (intercept) TRY(ki_block_centre_rows(t, t->R, t->b));
    if (t->SR != t->R) TRY(kiln_times(t->SR, t->R, system->s));
    TRY(kiln_dot(t->rss, t->SR, t->R));
    const bool known = zero && system->right;
    TRY(known ? scatter_zero(t, t->G) : check_scatter(t, t->G, t->SR));
    system->run.report.passes += known ? 0 : zero ? 1 : 2;
    TRY(check_judge(t, 1, zero));
done:
    return status;
}

/* Returns whether the former b was so far off that its digits, and not W's and y's, are what the residuals
 * have lost. */
static bool was_far(const struct ki_block *t, const double *former) {
    const double epsilon = ki_epsilon(kiln_matrix_type(t->system->X));
    for (int j = 0; j < t->k; j++) {
        const double lost = epsilon * former[j];
        if (fabs(former[j]) > 16 * fabs(t->b[j]) && lost * lost * t->system->weight > 1e-8 * t->rss[j])
            return true;
    }
    return false;
}

kiln_status ki_block_check(struct ki_block *t, bool zero) {
    enum { LOOKS = 3 };
    kiln_status status;
    double former[KI_BLOCK];
    int looks = 0;
    bool far = false;
    do {
        memcpy(former, t->b, (size_t)t->k * sizeof *former);
        far = false;
        TRY(check_about(&far, t, zero));
    } while (!zero && ++looks < LOOKS && (far || was_far(t, former)));
done:
    return status;
}
