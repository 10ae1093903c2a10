/* This file says what is asked of an X in parts besides shared operations: some of its rows, and its columns'
 * largest elements. */
#include <math.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "kiln/ops.h"
#include "processes/processes.h"

/* ---------------------------------------------------------------------------------------------- rows */

/* The wanted rows that lie in process i: where they are wanted, and their numbers there. */
static int64_t rows_of(const struct ki_cut *cut, int i, const int64_t *rows, int64_t count, int64_t *wanted,
                       int64_t *there) {
    int64_t found = 0;
    for (int64_t r = 0; r < count; r++) {
        if (rows[r] < cut->first[i] || rows[r] >= cut->first[i + 1]) continue;
        wanted[found] = r;
        there[found++] = rows[r] - cut->first[i];
    }
    return found;
}

/* Rows of what lies here, to host memory. */
static kiln_status copy_rows(void *to, const kiln_matrix *X, const int64_t *rows, int64_t count) {
    kiln_matrix *R = NULL;
    kiln_status status = KILN_OK;
    if (count == 0) return KILN_OK;
    TRY(ki_matrix_new(&R, X->device, X->type, count, X->cols));
    TRY(kiln_rows(R, X, rows));
    TRY(kiln_matrix_get(to, R));
done:
    kiln_matrix_free(R);
    return status;
}

/* Process i's share of the rows comes to `some`, and from there to its places in `all`. */
static kiln_status take_rows(struct kiln_processes *p, const struct ki_cut *cut, int i, const kiln_matrix *R,
                             const int64_t *rows, int64_t *lists, char *all, char *some, kiln_status *own) {
    const int64_t bytes = R->cols * ki_type_bytes(R->type);
    int64_t *wanted = lists, *there = lists + R->rows;
    const int64_t count = rows_of(cut, i, rows, R->rows, wanted, there);
    kiln_status status = KILN_OK;
    if (i == 0) {
        *own = copy_rows(some, cut->here, there, count);
    } else {
        TRY(ki_wire_send(p, i, &count, sizeof count));
        TRY(ki_wire_send(p, i, there, count * (int64_t)sizeof *there));
        TRY(ki_wire_receive(p, i, some, count * bytes));
    }
    for (int64_t r = 0; r < count; r++) memcpy(all + wanted[r] * bytes, some + r * bytes, (size_t)bytes);
done:
    return status;
}

kiln_status ki_processes_rows(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows) {
    struct kiln_processes *p = (struct kiln_processes *)X->device->processes;
    struct ki_order order = {.kind = KI_ORDER_ROWS};
    const struct ki_cut *cut;
    const size_t bytes = (size_t)(R->nnz * ki_type_bytes(R->type));
    char *all = ki_alloc(bytes), *some = ki_alloc(bytes);
    int64_t *lists = ki_alloc((size_t)R->rows * 2 * sizeof *lists);
    kiln_status status, own = KILN_OK;
    if (!all || !some || !lists) TRY(ki_fail_nomem(bytes, "rows of a matrix"));
    TRY(ki_cut_of(&cut, X, KI_BY_ROWS));
    order.look = cut->number;
    TRY(ki_order_send(p, &order));
    for (int i = 0; i < p->transport.count; i++) TRY(take_rows(p, cut, i, R, rows, lists, all, some, &own));
    TRY(ki_outcomes_take(p, own));
    TRY(kiln_matrix_set(R, all));
    R->given = false; /* an operation has made it */
done:
    ki_free(all);
    ki_free(some);
    ki_free(lists);
    return status;
}

kiln_status ki_serve_rows(struct kiln_processes *p, const struct ki_order *order) {
    const kiln_matrix *X = ki_kept(p, order->look);
    int64_t count, *rows = NULL;
    char *values = NULL;
    kiln_status status, outcome = KILN_OK;
    TRY(ki_wire_receive(p, 0, &count, sizeof count));
    const int64_t bytes = count * X->cols * ki_type_bytes(X->type);
    rows = ki_alloc((size_t)count * sizeof *rows);
    values = ki_alloc((size_t)bytes);
    if (!rows || !values) return ki_fail_nomem((size_t)bytes, "rows of a matrix");
    TRY(ki_wire_receive(p, 0, rows, count * (int64_t)sizeof *rows));
    outcome = copy_rows(values, X, rows, count);
    TRY(ki_wire_send(p, 0, values, bytes));
    TRY(ki_outcome_send(p, outcome));
done:
    ki_free(rows);
    ki_free(values);
    return status;
}

/* ------------------------------------------------------------------------------------------- largest */

kiln_status ki_processes_largest(double *largest, const kiln_matrix *X) {
    struct kiln_processes *p = (struct kiln_processes *)X->device->processes;
    struct ki_order order = {.kind = KI_ORDER_LARGEST};
    const int64_t bytes = X->cols * (int64_t)sizeof *largest;
    double *theirs = ki_alloc((size_t)bytes);
    const struct ki_cut *cut;
    kiln_status status, own;
    if (!theirs) return ki_fail_nomem((size_t)bytes, "a norm");
    TRY(ki_cut_of(&cut, X, KI_BY_ROWS));
    order.look = cut->number;
    TRY(ki_order_send(p, &order));
    own = kiln_norm(largest, cut->here, KILN_NORM_MAX);
    for (int i = 1; i < p->transport.count; i++) {
        TRY(ki_wire_receive(p, i, theirs, bytes));
        for (int64_t j = 0; j < X->cols; j++) /* what is no number stays */
            if (!(theirs[j] <= largest[j]) && largest[j] == largest[j]) largest[j] = theirs[j];
    }
    TRY(ki_outcomes_take(p, own));
done:
    ki_free(theirs);
    return status;
}

kiln_status ki_serve_largest(struct kiln_processes *p, const struct ki_order *order) {
    const kiln_matrix *X = ki_kept(p, order->look);
    const int64_t bytes = X->cols * (int64_t)sizeof(double);
    double *largest = ki_calloc((size_t)bytes);
    kiln_status status, outcome;
    if (!largest) return ki_fail_nomem((size_t)bytes, "a norm");
    outcome = kiln_norm(largest, X, KILN_NORM_MAX);
    TRY(ki_wire_send(p, 0, largest, bytes));
    TRY(ki_outcome_send(p, outcome));
done:
    ki_free(largest);
    return status;
}
