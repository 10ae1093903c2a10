/* E += u v^T at R's entries; then u and v in turn minimise 1/2 sum (e_ui - u_u v_i)^2 + l2_u/2 u_u^2 + l2_i/2
 * v_i^2; E -= u v^T.
 *
 * That minimum is kiln_factor_solve's with one factor, and E +- u v^T a sampled product with k = 1. E is kept
 * by rows and by columns, as both sides are solved by rows. A bias is the factor of a column of ones, which
 * stays. */
#include "algorithms/factor/ccd.h"

#include "algorithms/factor/entries.h"

/* E + sign u v^T, and its transposed copy. */
static kiln_status update(struct ki_ccd *ccd, double sign, const kiln_matrix *u, const kiln_matrix *v) {
    kiln_sample by_rows = {.kind = KILN_SAMPLE_PRODUCT, .S = ccd->E, .A = u, .B = v};
    kiln_sample by_columns = {.kind = KILN_SAMPLE_PRODUCT, .S = ccd->T, .A = v, .B = u};
    kiln_status status = kiln_sddmm(ccd->E, NULL, sign, &by_rows, 1);
    return status == KILN_OK ? kiln_sddmm(ccd->T, NULL, sign, &by_columns, 1) : status;
}

/* u = column k of A. */
static kiln_status take(struct ki_ccd *ccd, kiln_matrix *u, const kiln_matrix *A, int64_t k) {
    const int64_t r = kiln_matrix_cols(A);
    struct ki_arena arena = {0};
    kiln_matrix *const pick = ki_arena_model(&arena, A, r, 1);
    kiln_status status;
    TRY(arena.status);
    memset(ccd->unit, 0, (size_t)r * sizeof *ccd->unit);
    ccd->unit[k] = 1;
    TRY(ki_vector_set(pick, ccd->unit));
    TRY(kiln_multiply(u, 1, KILN_PLAIN, A, pick, 0, NULL));
done:
    return ki_arena_free(&arena, status);
}

/* Column k of A = u. */
static kiln_status put(struct ki_ccd *ccd, kiln_matrix *A, int64_t k, const kiln_matrix *u) {
    for (int64_t j = 0; j < kiln_matrix_cols(A); j++) {
        ccd->unit[j] = j == k;
        ccd->others[j] = j != k;
    }
    return kiln_combine(A, ccd->unit, u, ccd->others, A);
}

static kiln_status minimise(const struct ki_ccd *ccd, kiln_matrix *u, const kiln_matrix *E,
                            const kiln_matrix *v) {
    return kiln_factor_solve(
        u, &(kiln_factor_rows){
               .R = E, .B = v, .l2 = ccd->l2, .counted = ccd->counted, .solver = KILN_FACTOR_CHOLESKY});
}

static kiln_status one_factor(struct ki_ccd *ccd, int64_t steps, kiln_matrix *A, kiln_matrix *B, int64_t k) {
    kiln_status status;
    TRY(take(ccd, ccd->u, A, k));
    TRY(take(ccd, ccd->v, B, k));
    TRY(update(ccd, 1, ccd->u, ccd->v));
    for (int64_t t = 0; t < steps; t++) {
        TRY(minimise(ccd, ccd->u, ccd->E, ccd->v));
        TRY(minimise(ccd, ccd->v, ccd->T, ccd->u));
    }
    TRY(update(ccd, -1, ccd->u, ccd->v));
    TRY(put(ccd, A, k, ccd->u));
    TRY(put(ccd, B, k, ccd->v));
done:
    return status;
}

static kiln_status biases(struct ki_ccd *ccd, kiln_matrix *A, kiln_matrix *B) {
    const int64_t last = kiln_matrix_cols(A) - 1;
    kiln_status status;
    TRY(take(ccd, ccd->u, A, last));
    TRY(update(ccd, 1, ccd->u, ccd->column_ones));
    TRY(minimise(ccd, ccd->u, ccd->E, ccd->column_ones));
    TRY(update(ccd, -1, ccd->u, ccd->column_ones));
    TRY(put(ccd, A, last, ccd->u));
    TRY(take(ccd, ccd->v, B, last));
    TRY(update(ccd, 1, ccd->row_ones, ccd->v));
    TRY(minimise(ccd, ccd->v, ccd->T, ccd->row_ones));
    TRY(update(ccd, -1, ccd->row_ones, ccd->v));
    TRY(put(ccd, B, last, ccd->v));
done:
    return status;
}

kiln_status ki_ccd_update(struct ki_ccd *ccd, double sign, const kiln_matrix *A, const kiln_matrix *B) {
    const int64_t n = kiln_matrix_cols(A), factors = n - (ccd->biases != 0);
    kiln_status status = KILN_OK;
    for (int64_t k = 0; k < n; k++) {
        TRY(take(ccd, ccd->u, A, k));
        TRY(take(ccd, ccd->v, B, k));
        TRY(update(ccd, sign, ccd->u, k < factors ? ccd->v : ccd->column_ones));
        if (k == factors) TRY(update(ccd, sign, ccd->row_ones, ccd->v));
    }
done:
    return status;
}

kiln_status ki_ccd_sweep(struct ki_ccd *ccd, int64_t steps, kiln_matrix *A, kiln_matrix *B) {
    kiln_status status = KILN_OK;
    if (ccd->biases) TRY(biases(ccd, A, B));
    for (int64_t k = 0; k < kiln_matrix_cols(A) - (ccd->biases != 0); k++)
        TRY(one_factor(ccd, steps, A, B, k));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ the start */

kiln_status ki_ccd_begin(struct ki_ccd *ccd, struct ki_arena *arena, const kiln_matrix *R,
                         const kiln_matrix *transposed, double mean, const kiln_matrix *A,
                         const kiln_matrix *B) {
    const int64_t n = kiln_matrix_cols(A);
    kiln_status status;
    ccd->u = ki_arena_rows(arena, A, 1);
    ccd->v = ki_arena_rows(arena, B, 1);
    ccd->row_ones = ki_arena_fill(arena, ki_arena_rows(arena, A, 1), 1);
    ccd->column_ones = ki_arena_fill(arena, ki_arena_rows(arena, B, 1), 1);
    ccd->unit = ki_arena_reals(arena, n);
    ccd->others = ki_arena_reals(arena, n);
    TRY(arena->status);
    TRY(ki_arena_take(arena, &ccd->E, ki_entries_centred(&ccd->E, R, mean, NULL, NULL)));
    TRY(ki_arena_take(arena, &ccd->T, ki_entries_centred(&ccd->T, transposed, mean, NULL, NULL)));
    TRY(ki_ccd_update(ccd, -1, A, B));
done:
    return status;
}
