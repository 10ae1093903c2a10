/* One side of GaP or KL-NMF, the other one given, is convex:
 *   f(F) = sum_r [sum_c u_c F_rc - (shape - 1) log F_rc - sum_j x_rj log l_rj].
 * The multiplicative update is F_rc D_rc with D = (Y + (shape - 1) / F) / u, and the gradient is u (1 - D).
 * F is best where D = 1, or where F = 0 and D <= 1 (Karush, Kuhn and Tucker).
 *
 * A row of the best F has sum_c u_c F_rc = T_r, with T_r = k (shape - 1) and the row's sum in X. Convexity
 * thus bounds what there is to gain,
 *   f(F) - f(best) <= <gradient, F - best> <= <u (1 - D), F> + sum_r T_r max_c (D_rc - 1)+,
 * here with the sum over c in place of the largest. Where columns have to sum to 1 the u_c are multipliers:
 * any of them turn the problem into the free one, whose best is no worse (weak duality). The best guess is
 * u_c = sum_r F_rc Y_rc, by which the update divides.
 *
 * A step F D hardly moves an F near 0, and never one that is 0. The row's T_r in u F gets a part of
 * T_r (1 - 1/D)+ more, which is nothing where D <= 1, and bounded. */
#include "algorithms/topics/gap.h"

/* V = (D - 1)+. */
static kiln_status growth(struct ki_gap_side *side, const double *under) {
    const int64_t k = kiln_matrix_cols(side->F);
    double *a = side->a, *b = side->b;
    kiln_status status;
    for (int64_t c = 0; c < k; c++) {
        a[c] = under[c] > 0 ? 1 / under[c] : 0;
        b[c] = -1;
    }
    TRY(kiln_combine(side->V, a, side->Y, b, side->rows));
    if (side->shape > 1) {
        for (int64_t c = 0; c < k; c++) {
            b[c] = a[c] * (side->shape - 1);
            a[c] = 1;
        }
        TRY(kiln_map(side->before, KILN_MAP_RECIPROCAL, side->F));
        TRY(kiln_combine(side->V, a, side->V, b, side->before));
    }
    TRY(kiln_map(side->before, KILN_MAP_ABS, side->V));
    for (int64_t c = 0; c < k; c++) a[c] = b[c] = 0.5;
    TRY(kiln_combine(side->V, a, side->V, b, side->before));
done:
    return status;
}

/* Adds to Y what entries grow by. */
static kiln_status add_growth(struct ki_gap_side *side, double lift, const double *weight) {
    const int64_t k = kiln_matrix_cols(side->F);
    double *a = side->a, *b = side->b;
    kiln_status status;
    for (int64_t c = 0; c < k; c++) a[c] = b[c] = 1;
    TRY(kiln_combine(side->V, a, side->V, b, side->rows));
    TRY(kiln_map(side->V, KILN_MAP_RECIPROCAL, side->V));
    for (int64_t c = 0; c < k; c++) a[c] = -1;
    TRY(kiln_combine(side->V, a, side->V, b, side->rows));
    TRY(kiln_times(side->V, side->totals, side->V));
    for (int64_t c = 0; c < k; c++) {
        a[c] = 1;
        b[c] = lift * (weight ? weight[c] : 1);
    }
    TRY(kiln_combine(side->Y, a, side->Y, b, side->V));
done:
    return status;
}

kiln_status ki_gap_product(struct ki_gap_side *side, const double *under, double lift, const double *weight) {
    kiln_status status;
    if (lift > 0) {
        TRY(growth(side, under));
        TRY(ki_copy(side->before, side->F));
    }
    TRY(kiln_times(side->Y, side->F, side->Y));
    if (lift > 0) TRY(add_growth(side, lift, weight));
done:
    return status;
}

kiln_status ki_gap_divide(struct ki_gap_side *side, const double *under) {
    for (int64_t c = 0; c < kiln_matrix_cols(side->F); c++) {
        side->a[c] = under[c] > 0 ? 1 / under[c] : 0;
        side->b[c] = side->a[c] * (side->shape - 1);
    }
    return kiln_combine(side->F, side->a, side->Y, side->b, side->rows);
}

kiln_status ki_gap_gain(double *gain, struct ki_gap_side *side, const double *under) {
    const int64_t k = kiln_matrix_cols(side->F);
    kiln_status status;
    TRY(growth(side, under));
    TRY(kiln_dot(side->a, side->V, side->totals));
    *gain = 0;
    for (int64_t c = 0; c < k; c++) *gain += side->a[c];
    TRY(kiln_dot(side->a, side->F, side->rows));
    TRY(kiln_dot(side->b, side->F, side->Y));
    for (int64_t c = 0; c < k; c++)
        *gain += under[c] * side->a[c] - side->b[c] - (side->shape - 1) * (double)kiln_matrix_rows(side->F);
done:
    return status;
}
