/* A column without entries has the coefficient 0, whatever the loss. Where there are far more such columns than entries, as in a few
 * documents of a large vocabulary, solvers would go over vectors of nothing: the model is found on the other columns, and spread out. */
#include "algorithms/newton/newton_narrow.h"

enum { FEW = 4 }; /* columns for an entry */

struct narrow {
    kiln_matrix *X; /* m x count */
    int32_t *kept;  /* count: which columns they are */
    int64_t count;
    kiln_matrix *W; /* count x k */
};

static kiln_status select_columns(struct narrow *narrow, const kiln_matrix *X) {
    kiln_status status;
    struct ki_selector selector = {0};
    struct ki_selection selection = {0};
    const int64_t cols = kiln_matrix_cols(X);
    TRY(ki_selector_open(&selector, X));
    narrow->kept = ki_alloc((size_t)ki_max(kiln_matrix_nnz(X), 1) * sizeof *narrow->kept);
    if (!narrow->kept) TRY(ki_fail_nomem((size_t)kiln_matrix_nnz(X) * sizeof *narrow->kept, "columns of X"));
    for (int64_t j = 0; j < cols; j++)
        if (ki_selector_entries(&selector, j) > 0) narrow->kept[narrow->count++] = (int32_t)j;
    TRY(ki_selection_open(&selection, &selector, narrow->kept, narrow->count));
    TRY(ki_selection_matrix(&narrow->X, &selection));
done:
    ki_selection_close(&selection);
    ki_selector_close(&selector);
    return status;
}

/* W's rows of the kept columns into narrow->W, or the other way round. */
static kiln_status move_rows(const struct narrow *narrow, kiln_matrix *W, bool back) {
    kiln_status status;
    const int64_t k = kiln_matrix_cols(narrow->W), count = kiln_matrix_rows(W) * k;
    double *wide = ki_calloc((size_t)count * sizeof *wide),
           *few = ki_alloc((size_t)(narrow->count * k) * sizeof *few);
    if (!wide || !few) TRY(ki_fail_nomem((size_t)count * sizeof *wide, "coefficients"));
    TRY(ki_vector_get(back ? few : wide, back ? narrow->W : W));
    for (int64_t j = 0; j < narrow->count; j++) {
        double *there = wide + narrow->kept[j] * k, *here = few + j * k;
        memcpy(back ? there : here, back ? here : there, (size_t)k * sizeof *few);
    }
    TRY(ki_vector_set(back ? W : narrow->W, back ? wide : few));
done:
    ki_free(wide);
    ki_free(few);
    return status;
}

static bool pays(const kiln_matrix *X) {
    return kiln_matrix_format(X) == KILN_CSR && ki_selectable(X) && kiln_matrix_nnz(X) > 0 &&
           kiln_matrix_nnz(X) <= kiln_matrix_cols(X) / FEW;
}

kiln_status ki_narrow_solve(bool *solved, ki_narrow_call *call, const struct ki_narrow_task *task,
                            kiln_report *report) {
    kiln_status status = KILN_OK;
    const double start = ki_clock();
    struct narrow narrow = {0};
    *solved = false;
    if (!pays(task->X)) return KILN_OK;
    TRY(select_columns(&narrow, task->X));
    TRY(kiln_matrix_dense(&narrow.W, kiln_matrix_device(task->X), kiln_matrix_type(task->X), narrow.count,
                          kiln_matrix_cols(task->W), NULL));
    if (task->warm) TRY(move_rows(&narrow, task->W, false));
    status = call(narrow.W, task->b, narrow.X, task->y, task->options, report);
    if (status == KILN_OK) {
        TRY(move_rows(&narrow, task->W, true));
        if (report) report->seconds = ki_clock() - start;
        *solved = true;
    }
    if (status == KILN_ERR_DATA) status = KILN_OK;
done:
    kiln_matrix_free(narrow.X);
    kiln_matrix_free(narrow.W);
    ki_free(narrow.kept);
    return status;
}
