/* A column without entries has the coefficient 0, whatever the loss. Where there are far more such columns than entries, as in a few
 * documents of a large vocabulary, solvers would go over vectors of nothing: the model is found on the other columns, and spread out. */
#include "algorithms/newton/newton_narrow.h"

enum { FEW = 4 }; /* columns for an entry */

static bool pays(const kiln_matrix *X) {
    return kiln_matrix_format(X) == KILN_CSR && ki_selectable(X) && kiln_matrix_nnz(X) > 0 &&
           kiln_matrix_nnz(X) <= kiln_matrix_cols(X) / FEW;
}

kiln_status ki_narrow_solve(bool *solved, ki_narrow_call *call, const struct ki_narrow_task *task,
                            kiln_report *report) {
    kiln_status status = KILN_OK;
    const double start = ki_clock();
    struct ki_occupied occupied = {0};
    kiln_matrix *W = NULL;
    *solved = false;
    if (!pays(task->X)) return KILN_OK;
    TRY(ki_occupied_open(&occupied, task->X));
    TRY(kiln_matrix_dense(&W, kiln_matrix_device(task->X), kiln_matrix_type(task->X), occupied.count,
                          kiln_matrix_cols(task->W), NULL));
    if (task->warm) ki_occupied_gather(W, task->W, &occupied);
    status = call(W, task->b, occupied.X, task->y, task->options, report);
    if (status == KILN_OK) {
        ki_occupied_spread(task->W, W, &occupied);
        if (report) report->seconds = ki_clock() - start;
        *solved = true;
    }
    if (status == KILN_ERR_DATA) status = KILN_OK;
done:
    kiln_matrix_free(W);
    ki_occupied_close(&occupied);
    return status;
}
