/* A column without entries has the coefficient 0, whatever the loss. Where there are far more such columns
 * than entries, as in a few documents of a large vocabulary, solvers would go over vectors of nothing: the
 * model is found on the other columns, and spread out. */
#include "algorithms/newton/newton_narrow.h"

#include "derived/select.h"

enum { FEW = 4 }; /* columns for an entry */

static bool narrow_pays(const kiln_matrix *X) {
    return kiln_matrix_format(X) == KILN_CSR && ki_selectable(X) && kiln_matrix_nnz(X) > 0 &&
           kiln_matrix_nnz(X) <= kiln_matrix_cols(X) / FEW;
}

kiln_status ki_narrow_solve(bool *solved, ki_narrow_call *call, const struct ki_narrow_task *task,
                            kiln_report *report) {
    kiln_status status;
    struct ki_arena arena = {0};
    const double start = ki_clock();
    struct ki_occupied occupied = {0};
    *solved = false;
    if (!narrow_pays(task->X)) return KILN_OK;
    TRY(ki_occupied_open(&occupied, task->X));
    kiln_matrix *W = ki_arena_model(&arena, task->X, occupied.count, kiln_matrix_cols(task->W));
    TRY(arena.status);
    if (task->warm) ki_occupied_gather(W, task->W, &occupied);
    status = call(W, task->b, occupied.X, task->y, task->options, report);
    if (status == KILN_OK) {
        ki_occupied_spread(task->W, W, &occupied);
        if (report) report->seconds = ki_clock() - start;
        *solved = true;
    }
    if (status == KILN_ERR_DATA) status = KILN_OK;
done:
    ki_occupied_close(&occupied);
    return ki_arena_free(&arena, status);
}
