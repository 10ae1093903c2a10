/* A layout's stress again, and that of the layout after one more iteration, in plain loops in long double
 * over all pairs.
 *
 * Training cannot know a disparity or a distance nearer than some units of rounding: with e_ij so many times
 * both, what rounding may have made of the stress is sum w (2 |dhat - d| e + e^2), and a part of the stress
 * itself, for its sums. The next layout's points may be off by z_i, the rounding of the mean of their
 * disparities, which changes its stress by at most 2 n |z| |Y - next| + n |z|^2: the stress lies below a
 * paraboloid of curvature 2 n that touches it. */
#include <stdlib.h>

#include "algorithms/mds/mds.h"
#include "algorithms/verify/verify.h"

/* A pair that counts; hat: its ordinal disparity. */
struct pair {
    long double delta, weight, distance, hat;
    int64_t i, j;
};

struct layout {
    struct ki_copy X;
    int64_t n, p;
    double *Y, *weights;     /* weights NULL: ones */
    long double *next;       /* n x p, and the sum of each point's disparities */
    long double unit, reach; /* of X's type: rounding, and how many units of it a distance may be off */
    const kiln_mds_options *options;
    bool partial;     /* some pairs do not count, or not alike: the next layout takes a system of equations */
    long double a, b; /* disparities a + b delta */
    /* Ordinal: the pairs, and the corners of a hull among them with what lies before each: weight, weighted
     * distances. */
    long double rounding; /* relative, of dissimilarities that are equal */
    struct pair *pairs;
    struct corner {
        long double weight, sum;
        int64_t pairs;
    } * hull;
};

/* Weight and dissimilarity of a pair; weight 0 where it is missing. */
static long double pair_of(long double *delta, const struct layout *l, int64_t i, int64_t j) {
    const int64_t q = l->X.cols;
    const long double w = l->weights ? l->weights[i * l->n + j] : 1;
    long double square = 0;
    if (l->options->dissimilarities) {
        *delta = l->X.window->x[i * q + j];
        return isnan(l->X.window->x[i * q + j]) ? 0 : w;
    }
    for (int64_t c = 0; c < q; c++) {
        const long double apart =
            (long double)l->X.window->x[i * q + c] - (long double)l->X.window->x[j * q + c];
        square += apart * apart;
    }
    *delta = sqrtl(square);
    return w;
}

/* Roundings of a sum over pairs in training: so many terms follow one another in the elements' type before
 * they go to doubles. */
static long double terms_of(const struct layout *l) {
    enum { IN_A_ROW = 512 };
    const long double pairs = (long double)l->n * (long double)(l->n - 1) / 2;
    return fminl(pairs, IN_A_ROW) + 8;
}

static long double distance(const struct layout *l, const long double *next, int64_t i, int64_t j) {
    long double square = 0;
    for (int64_t c = 0; c < l->p; c++) {
        const int64_t at = i * l->p + c, other = j * l->p + c;
        const long double apart =
            next ? next[at] - next[other] : (long double)l->Y[at] - (long double)l->Y[other];
        square += apart * apart;
    }
    return sqrtl(square);
}

/* The line through (delta, d) with a + b least >= 0 and b >= 0, scaled so that sum w (a + b delta)^2 = sum
 * w. Returns how far, relative, its values may be off in training: sums of d and of delta d that are off by
 * some units, over the least eigenvalue of the scaled normal equations. */
static long double fit_line(struct layout *l, const long double *next) {
    long double least = INFINITY, w_sum = 0, x = 0, xx = 0, d_sum = 0, xd = 0, delta, alpha, beta;
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = i + 1; j < l->n; j++)
            if (pair_of(&delta, l, i, j) > 0) least = fminl(least, delta);
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = i + 1; j < l->n; j++) {
            const long double w = pair_of(&delta, l, i, j), d = distance(l, next, i, j),
                              above = delta - least;
            if (!(w > 0)) continue;
            w_sum += w, x += w * above, xx += w * above * above, d_sum += w * d, xd += w * above * d;
        }
    const long double determinant = w_sum * xx - x * x;
    if (!(w_sum > 0)) return 0;
    alpha = determinant > 0 ? (xx * d_sum - x * xd) / determinant : d_sum / w_sum;
    beta = determinant > 0 ? (w_sum * xd - x * d_sum) / determinant : 0;
    if (alpha < 0) alpha = 0, beta = xd / xx;
    if (beta < 0) beta = 0, alpha = d_sum / w_sum;
    const long double squares = alpha * alpha * w_sum + 2 * alpha * beta * x + beta * beta * xx;
    const long double scale = squares > 0 ? sqrtl(w_sum / squares) : 1;
    l->b = scale * beta;
    l->a = scale * alpha - l->b * least;
    const long double apart = determinant > 0 ? 1 - x / sqrtl(w_sum * xx) : 1;
    return l->unit * (l->reach + terms_of(l)) * sqrtl(2 / fmaxl(apart, l->unit));
}

static int by_delta(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return x->delta < y->delta ? -1 : x->delta > y->delta;
}

static int by_distance(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return x->distance < y->distance ? -1 : x->distance > y->distance;
}

/* The pairs in the order that disparities keep, those of equal dissimilarity by distance and as one
 * dissimilarity. Training takes the order from the same numbers (mds_ordinal.c): no rounding decides it. */
static void put_in_order(struct layout *l, int64_t count) {
    qsort(l->pairs, (size_t)count, sizeof *l->pairs, by_delta);
    for (int64_t begin = 0, end; begin < count; begin = end) {
        const long double least = l->pairs[begin].delta, most = least * (1 + l->rounding);
        for (end = begin + 1; end < count && l->pairs[end].delta <= most;) l->pairs[end++].delta = least;
        qsort(l->pairs + begin, (size_t)(end - begin), sizeof *l->pairs, by_distance);
    }
}

static long double slope(const struct corner *from, const struct corner *to) {
    return (to->sum - from->sum) / (to->weight - from->weight);
}

/* The values nearest to the distances that rise with the dissimilarities are the slopes of the lower hull of
 * the distances' sums, drawn over the weights' sums; equal dissimilarities are one step of it (secondary
 * ties) or steps by distance. Returns how many pairs count. */
static int64_t fit_order(struct layout *l, const long double *next) {
    int64_t count = 0, last = 0;
    struct corner at = {0, 0, 0};
    long double delta, squares = 0;
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = i + 1; j < l->n; j++) {
            const long double w = pair_of(&delta, l, i, j);
            if (w != 1) l->partial = true;
            if (w > 0) l->pairs[count++] = (struct pair){delta, w, distance(l, next, i, j), 0, i, j};
        }
    put_in_order(l, count);
    l->hull[0] = at;
    for (int64_t e = 0; e < count; e++) {
        at.weight += l->pairs[e].weight, at.sum += l->pairs[e].weight * l->pairs[e].distance, at.pairs++;
        if (l->options->ties == KILN_MDS_SECONDARY && e + 1 < count &&
            l->pairs[e + 1].delta == l->pairs[e].delta)
            continue;
        while (last > 0 && slope(&l->hull[last - 1], &l->hull[last]) >= slope(&l->hull[last], &at)) last--;
        l->hull[++last] = at;
    }
    for (int64_t step = 1; step <= last; step++) {
        const long double value = slope(&l->hull[step - 1], &l->hull[step]);
        squares += (l->hull[step].weight - l->hull[step - 1].weight) * value * value;
        for (int64_t e = l->hull[step - 1].pairs; e < l->hull[step].pairs; e++) l->pairs[e].hat = value;
    }
    const long double scale = squares > 0 ? sqrtl(at.weight / squares) : 1;
    for (int64_t e = 0; e < count; e++) l->pairs[e].hat *= scale;
    return count;
}

/* Holds what pairs add up to: the stress, sum w d^2, and what rounding may have made of the stress. */
struct total {
    long double stress, squares, blur;
};

/* A pair; delta: the dissimilarity as the line has it, which may be off like a distance. made: where the
 * next layout is added up, or NULL. */
static void add_pair(struct total *total, const struct layout *l, const struct pair *pair, long double delta,
                     long double *made) {
    const long double d = pair->distance, rest = pair->hat - d, w = pair->weight;
    const long double off = l->unit * (l->reach * (d + delta) + 8 * pair->hat);
    for (int64_t c = 0; c < l->p && made; c++) {
        const int64_t at = pair->i * l->p + c, other = pair->j * l->p + c;
        const long double apart = (long double)l->Y[at] - (long double)l->Y[other];
        const long double pull = (d > 0 ? pair->hat / d * apart : c == 0 ? pair->hat : 0) / (long double)l->n;
        made[at] += pull;
        made[other] -= pull;
    }
    if (made) made[l->n * l->p + pair->i] += pair->hat, made[l->n * l->p + pair->j] += pair->hat;
    total->stress += w * rest * rest;
    total->squares += w * d * d;
    total->blur += w * (2 * fabsl(rest) * off + off * off);
}

static struct total ordinal_total(struct layout *l, const long double *next, long double *made) {
    struct total total = {0, 0, 0};
    const int64_t count = fit_order(l, next);
    for (const struct pair *pair = l->pairs; pair < l->pairs + count; pair++)
        add_pair(&total, l, pair, 0, made);
    return total;
}

/* The total is that of Y, or of `next`. */
static struct total total_of(struct layout *l, const long double *next, long double *made) {
    struct total total = {0, 0, 0};
    long double delta, line = 0;
    if (l->options->metric == KILN_MDS_ORDINAL)
        total = ordinal_total(l, next, made);
    else {
        if (l->options->metric == KILN_MDS_INTERVAL) line = fit_line(l, next);
        for (int64_t i = 0; i < l->n; i++)
            for (int64_t j = i + 1; j < l->n; j++) {
                const long double w = pair_of(&delta, l, i, j);
                const struct pair pair = {delta, w, distance(l, next, i, j), l->a + l->b * delta, i, j};
                if (w != 1) l->partial = true;
                if (w > 0) add_pair(&total, l, &pair, l->b * delta, made);
            }
    }
    /* A line that is off by a part `line` of itself is off its best place: the stress rises by the square of
     * it. */
    total.blur += l->unit * terms_of(l) * total.stress + 4 * line * line * total.squares;
    return total;
}

/* Returns how the stress of the next layout may differ as its points are rounded: z is off by as many units
 * as there are terms in a row. */
static long double blur_of_next(const struct layout *l) {
    const long double n = (long double)l->n;
    long double off = 0, moved = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const long double z = l->unit * (n + l->reach) * l->next[l->n * l->p + i] / n;
        off += z * z;
    }
    for (int64_t e = 0; e < l->n * l->p; e++) {
        const long double step = l->Y[e] - l->next[e];
        moved += step * step;
    }
    return 2 * n * sqrtl(off * moved) + n * off;
}

/* The layout that is next lies about 0; Y may lie anywhere. */
static void centre(struct layout *l) {
    for (int64_t c = 0; c < l->p; c++) {
        long double mean = 0;
        for (int64_t i = 0; i < l->n; i++) mean += l->Y[i * l->p + c] / (long double)l->n;
        for (int64_t i = 0; i < l->n; i++) l->next[i * l->p + c] += mean;
    }
}

static void judge(kiln_mds_verification *made, struct layout *l) {
    const struct total total = total_of(l, NULL, l->next);
    const long double above = sqrtl(total.stress + total.blur),
                      below = sqrtl(fmaxl(total.stress - total.blur, 0));
    made->stress = (double)total.stress;
    made->stress_rounding = (double)total.blur;
    made->stress_1 = total.squares > 0  ? (double)sqrtl(total.stress / total.squares)
                     : total.stress > 0 ? NAN
                                        : 0;
    made->stress_1_rounding = total.squares > 0
                                  ? (double)((above - below) / sqrtl(total.squares) +
                                             l->unit * (l->reach + terms_of(l)) * (long double)made->stress_1)
                                  : 0;
    if (l->partial) return;
    centre(l);
    const struct total after = total_of(l, l->next, NULL);
    made->fall = total.stress > 0 ? (double)((total.stress - after.stress) / total.stress) : 0;
    made->fall_rounding =
        total.stress > 0 ? (double)((total.blur + after.blur + blur_of_next(l)) / total.stress) : 0;
}

/* Refuses what kiln_mds refuses of the numbers. */
static kiln_status check_values(const char *call, const struct layout *l, const kiln_matrix *X) {
    kiln_status status = KILN_OK;
    if (!l->options->dissimilarities) TRY(ki_check_finite(call, "X", X, false));
    for (int64_t e = 0; e < l->n * l->n && status == KILN_OK; e++) {
        if (l->options->dissimilarities)
            TRY(ki_mds_check_entry(call, "dissimilarity", l->X.window->x[e], e, l->n, true));
        if (l->weights) TRY(ki_mds_check_entry(call, "weight", l->weights[e], e, l->n, false));
    }
done:
    return status;
}

kiln_status kiln_verify_mds(kiln_mds_verification *result, const kiln_matrix *Y, const kiln_matrix *X,
                            const kiln_mds_options *options) {
    static const char call[] = "kiln_verify_mds";
    kiln_status status;
    kiln_mds_options own;
    struct layout l = {.options = &own, .b = 1};
    kiln_mds_verification made = {.fall = NAN};
    if (!result || !Y || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_mds_options, &own, options));
    TRY(KI_CHECK_RESULT(kiln_mds_verification, result));
    l.n = kiln_matrix_rows(Y), l.p = kiln_matrix_cols(Y);
    TRY(ki_check_matrix(call, "Y", Y, X, kiln_matrix_rows(X), l.p));
    if (kiln_matrix_format(X) != KILN_DENSE || (own.dissimilarities && kiln_matrix_cols(X) != l.n))
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: X must be dense, and square where it holds dissimilarities",
                    call));
    TRY(ki_copy_take(&l.X, X, true));
    TRY(ki_copy_vector(&l.Y, Y));
    if (own.weights) {
        TRY(ki_check_matrix(call, "weights", own.weights, X, l.n, l.n));
        TRY(ki_copy_vector(&l.weights, own.weights));
    }
    TRY(check_values(call, &l, X));
    const size_t bytes = (size_t)(l.n * (l.p + 1)) * sizeof *l.next;
    if (!(l.next = ki_calloc(bytes))) TRY(ki_fail_nomem(bytes, "a layout to verify"));
    l.unit = ki_epsilon(kiln_matrix_type(X)) / 2;
    l.reach = 8 + (long double)l.p + (own.dissimilarities ? 0 : (long double)kiln_matrix_cols(X));
    if (own.metric == KILN_MDS_ORDINAL) {
        l.rounding = ki_mds_rounding(kiln_matrix_type(X));
        const size_t most = (size_t)(l.n * (l.n - 1) / 2 + 1);
        l.pairs = ki_alloc(most * sizeof *l.pairs), l.hull = ki_alloc(most * sizeof *l.hull);
        if (!l.pairs || !l.hull)
            TRY(ki_fail_nomem(most * (sizeof *l.pairs + sizeof *l.hull), "pairs to verify"));
    }
    judge(&made, &l);
    KI_GIVE(kiln_mds_verification, result, &made);
done:
    ki_copy_free(&l.X);
    ki_free(l.Y);
    ki_free(l.weights);
    ki_free(l.next);
    ki_free(l.pairs);
    ki_free(l.hull);
    return status;
}
