/* The arrays of an X whose rows lie in the processes, to the leader's memory, and values from there. */
#include "core/seams.h"
#include "processes/processes.h"

static int64_t part_bytes(const kiln_matrix *X, int part, int64_t rows, int64_t entries) {
    return part == KI_ROW_START ? (rows + 1) * 8 : entries * (part == KI_COL ? 4 : ki_type_bytes(X->type));
}

/* One array of the rows that lie here. */
static kiln_status copy_part(void *to, const kiln_matrix *rows, int part) {
    if (part == KI_VALUES) return kiln_matrix_get(to, rows);
    return part == KI_COL ? kiln_matrix_get_csr(NULL, to, NULL, rows)
                          : kiln_matrix_get_csr(to, NULL, NULL, rows);
}

/* Row starts count from the first entry of the process that they come from, and its last is the next one's
 * first. */
kiln_status ki_processes_fetch(void *to, const kiln_matrix *X, int part) {
    struct kiln_processes *p = (struct kiln_processes *)X->device->processes;
    struct ki_order order = {.kind = KI_ORDER_FETCH, .part = part};
    const struct ki_cut *cut;
    kiln_status status, own;
    TRY(ki_cut_of(&cut, X, KI_BY_ROWS));
    order.look = cut->number;
    TRY(ki_order_send(p, &order));
    own = copy_part(to, cut->here, part);
    for (int i = 1; i < p->transport.count; i++) {
        const int64_t rows = cut->first[i + 1] - cut->first[i];
        int64_t *start = (int64_t *)to + cut->first[i];
        char *at = part == KI_ROW_START ? (char *)start : (char *)to + part_bytes(X, part, 0, cut->entry[i]);
        TRY(ki_wire_receive(p, i, at, part_bytes(X, part, rows, cut->entry[i + 1] - cut->entry[i])));
        for (int64_t r = 0; part == KI_ROW_START && r <= rows; r++) start[r] += cut->entry[i];
    }
    TRY(ki_outcomes_take(p, own));
done:
    return status;
}

/* Elements of a dense matrix, by number. */
static kiln_status serve_some(struct kiln_processes *p, kiln_matrix *A) {
    const int64_t element = ki_type_bytes(A->type);
    const struct ki_operand held = {A, false};
    int64_t some[2];
    kiln_status status, outcome = ki_operands_hold(p->device, &held, 1);
    const bool holds = outcome == KILN_OK;
    TRY(ki_wire_receive(p, 0, some, sizeof some));
    TRY(ki_wire_values(p, KI_SEND, 0, A, some[0] * element, some[1] * element, A->type, &outcome));
    TRY(ki_outcome_send(p, outcome));
done:
    if (holds) ki_operands_release(p->device, &held, 1);
    return status;
}

kiln_status ki_serve_fetch(struct kiln_processes *p, const struct ki_order *order) {
    kiln_matrix *X = ki_kept(p, order->look);
    if (order->some) return serve_some(p, X);
    const int64_t bytes = part_bytes(X, order->part, X->rows, X->nnz);
    void *values = ki_calloc((size_t)bytes);
    kiln_status status, outcome;
    if (!values) return ki_fail_nomem((size_t)bytes, "an array of a matrix");
    outcome = copy_part(values, X, order->part);
    TRY(ki_wire_send(p, 0, values, bytes));
    TRY(ki_outcome_send(p, outcome));
done:
    ki_free(values);
    return status;
}

kiln_status ki_processes_store(kiln_matrix *X, const void *values) {
    struct kiln_processes *p = (struct kiln_processes *)X->device->processes;
    struct ki_order order = {.kind = KI_ORDER_STORE};
    const int64_t real = ki_type_bytes(X->type);
    const struct ki_cut *cut;
    kiln_status status, own;
    TRY(ki_cut_of(&cut, X, KI_BY_ROWS));
    ki_cut_columns_drop(X);
    order.look = cut->number;
    TRY(ki_order_send(p, &order));
    for (int i = 1; i < p->transport.count; i++)
        TRY(ki_wire_send(p, i, (const char *)values + cut->entry[i] * real,
                         (cut->entry[i + 1] - cut->entry[i]) * real));
    own = kiln_matrix_set(cut->here, values);
    cut->here->given = false;
    TRY(ki_outcomes_take(p, own));
done:
    return status;
}

kiln_status ki_serve_store(struct kiln_processes *p, const struct ki_order *order) {
    kiln_matrix *X = ki_kept(p, order->look);
    const int64_t bytes = part_bytes(X, KI_VALUES, 0, X->nnz);
    void *values = ki_alloc((size_t)bytes);
    kiln_status status;
    if (!values) return ki_fail_nomem((size_t)bytes, "values of a matrix");
    TRY(ki_wire_receive(p, 0, values, bytes));
    TRY(ki_outcome_send(p, kiln_matrix_set(X, values)));
done:
    ki_free(values);
    return status;
}
