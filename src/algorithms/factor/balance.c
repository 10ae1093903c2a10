/* s^2 |a|^2 + |b|^2 / s^2, whose product s a . b / s is always the same, is least where both are equal:
 * s^4 = |b|^2 / |a|^2. */
#include "algorithms/factor/balance.h"

#define ENOUGH 1e-3 /* a scale nearer to 1 is left: the penalty is within 4e-6 of its least value */

/* *to = a new column with these numbers. */
static kiln_status take(kiln_matrix **to, struct ki_arena *arena, const kiln_matrix *A,
                        const double *numbers) {
    kiln_device *device = kiln_matrix_device(A);
    return ki_arena_take(arena, to,
                         ki_vector_new(to, device, kiln_matrix_type(A), kiln_matrix_rows(A), numbers));
}

kiln_status ki_balance_begin(struct ki_balance *balance, struct ki_arena *arena,
                             const struct ki_counts *counts, const kiln_matrix *A, const kiln_matrix *B) {
    const int64_t r = kiln_matrix_cols(A);
    kiln_status status;
    balance->a = ki_arena_reals(arena, r);
    balance->b = ki_arena_reals(arena, r);
    balance->squares = ki_arena_model(arena, A, r, 1);
    TRY(arena->status);
    if (!counts) goto done;
    TRY(take(&balance->rows, arena, A, counts->row));
    TRY(take(&balance->columns, arena, B, counts->column));
done:
    return status;
}

kiln_status ki_balance_measure(struct ki_balance *balance, const kiln_matrix *A, const kiln_matrix *B) {
    kiln_status status;
    TRY(kiln_gram_diagonal(balance->squares, A, balance->rows));
    TRY(ki_vector_get(balance->a, balance->squares));
    TRY(kiln_gram_diagonal(balance->squares, B, balance->columns));
    TRY(ki_vector_get(balance->b, balance->squares));
done:
    return status;
}

kiln_status ki_balance_run(struct ki_balance *balance, kiln_matrix *A, kiln_matrix *B, int64_t factors) {
    kiln_status status;
    bool changed = false;
    TRY(ki_balance_measure(balance, A, B));
    for (int64_t k = 0; k < kiln_matrix_cols(A); k++) {
        const double scale = sqrt(sqrt(balance->b[k] / balance->a[k]));
        const bool sound = k < factors && balance->a[k] > 0 && scale > 0 && isfinite(scale);
        balance->a[k] = sound ? scale : 1;
        balance->b[k] = 1 / balance->a[k];
        changed |= fabs(balance->a[k] - 1) > ENOUGH;
    }
    if (!changed) goto done;
    TRY(kiln_combine(A, balance->a, A, NULL, NULL));
    TRY(kiln_combine(B, balance->b, B, NULL, NULL));
done:
    return status;
}
