/* Matrices that share the structure of a CSR matrix: row starts and columns lie in a hidden matrix S without
 * values, which each of them counts (S->users) and which goes with the last. To the memory of a device S is a
 * matrix like any other, counted once: each sharing matrix that is on the device holds it there (S->held), so
 * that it leaves after all of them and comes with the first. */
#include "core/matrix.h"
#include "core/processes.h"
#include "core/seams.h"

kiln_status ki_structure_hold(kiln_matrix *A) {
    kiln_matrix *S = A->structure;
    if (!S) return KILN_OK;
    if (!ki_matrix_resident(S)) {
        kiln_status status = ki_matrix_bring(S);
        if (status != KILN_OK) return status;
    }
    S->held++;
    A->row_start = S->row_start;
    A->col = S->col;
    return KILN_OK;
}

void ki_structure_release(kiln_matrix *A) {
    if (!A->structure) return;
    A->structure->held--;
    A->row_start = A->col = (struct ki_buffer){0, 0, 0};
}

/* Makes A, a CSR matrix in memory, one whose row starts and columns can be shared. */
static kiln_status make_shared(kiln_matrix *A) {
    if (A->structure) return KILN_OK;
    const unsigned structure = 1u << KI_ROW_START | 1u << KI_COL;
    kiln_matrix *S = ki_calloc(sizeof *S);
    if (!S) return ki_fail_nomem(sizeof *S, "a shared structure");
    ki_matrix_unpin(A);
    *S = (kiln_matrix){.device = A->device,
                       .type = A->type,
                       .format = KILN_CSR,
                       .rows = A->rows,
                       .cols = A->cols,
                       .nnz = A->nnz,
                       .row_start = A->row_start,
                       .col = A->col,
                       .host = {NULL, A->host[KI_ROW_START], A->host[KI_COL]},
                       .users = 1,
                       .held = ki_matrix_resident(A),
                       .lender = A->lender,
                       .lent_host = A->lent_host & structure,
                       .lent_buffers = A->lent_buffers & structure};
    ki_memory_join(S);
    if (A->lender) A->lender->users++;
    A->lent_host &= ~structure;
    A->lent_buffers &= ~structure;
    A->host[KI_ROW_START] = A->host[KI_COL] = NULL;
    A->structure = S;
    return KILN_OK;
}

static kiln_status share(kiln_matrix **A, kiln_matrix *pattern, kiln_type type, void *values) {
    void *const memory[KI_PARTS] = {values, NULL, NULL};
    kiln_matrix *made = NULL;
    kiln_status status;
    TRY(ki_matrix_shell(&made, pattern->device, type, KILN_CSR, pattern->rows, pattern->cols));
    if (pattern->codes) TRY(ki_matrix_expand(pattern));
    TRY(make_shared(pattern));
    made->nnz = pattern->nnz;
    made->structure = pattern->structure;
    made->structure->users++;
    TRY(ki_matrix_place(made, memory));
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

/* A pattern in a file keeps it; the structure is read from there. */
static kiln_status read(kiln_matrix **A, const kiln_matrix *pattern, kiln_type type, void *values) {
    int64_t *row_start = ki_alloc((size_t)(pattern->rows + 1) * 8);
    int32_t *col = ki_alloc((size_t)pattern->nnz * 4);
    kiln_status status;
    if (!row_start || !col)
        TRY(ki_fail_nomem((size_t)pattern->nnz * 4, "the structure of a matrix in a file"));
    TRY(kiln_matrix_get_csr(row_start, col, NULL, pattern));
    TRY(ki_matrix_adopt_csr(A, pattern->device, type, pattern->rows, pattern->cols, pattern->nnz, row_start,
                            col, values));
    return KILN_OK;
done:
    ki_free(row_start);
    ki_free(col);
    return status;
}

static kiln_status make_like(kiln_matrix **A, const kiln_matrix *pattern, kiln_type type,
                             const void *values) {
    kiln_matrix *changed = (kiln_matrix *)(uintptr_t)pattern; /* who owns its structure, not what it is */
    void *own = NULL;
    kiln_status status;
    TRY(ki_values_copy(&own, type, pattern->nnz, values));
    TRY(pattern->file ? read(A, pattern, type, own) : share(A, changed, type, own));
    return KILN_OK;
done:
    ki_free(own);
    return status;
}

static kiln_status like_rows(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                             kiln_matrix **made, double *sums) {
    (void)row, (void)entry, (void)sums;
    return make_like(made, rows, each->type, NULL);
}

/* The rows of A lie in processes, which have no part of `values` yet, or in a file: ones to theirs, which
 * goes on to a temporary file. */
static kiln_status like_each(kiln_matrix **A, const kiln_matrix *pattern, kiln_type type,
                             const void *values) {
    kiln_matrix *made = NULL;
    kiln_status status;
    TRY(ki_each_run(&made, NULL, &(struct ki_each){.run = like_rows, .made = 1, .type = type}, pattern));
    if (values) TRY(kiln_matrix_set(made, values));
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

kiln_status kiln_matrix_like(kiln_matrix **A, const kiln_matrix *pattern, kiln_type type,
                             const void *values) {
    static const char call[] = "kiln_matrix_like";
    if (!A || !pattern) return ki_fail(KILN_ERR_ARGUMENT, "%s: A or pattern is NULL", call);
    if (pattern->format != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: pattern is not sparse", call);
    if (type == KILN_TYPE_DEFAULT) type = pattern->type;
    if (type != KILN_F32 && type != KILN_F64)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no type has the number %d", call, (int)type);
    const bool each = pattern->here || (pattern->file && !values);
    return each ? like_each(A, pattern, type, values) : make_like(A, pattern, type, values);
}
