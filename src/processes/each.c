/* This file says what each process does to its own rows of a matrix (struct ki_each): parts of new matrices
 * stay where they are made, sums go to the leader. */
#include <string.h>

#include "core/seams.h"
#include "processes/processes.h"

/* Holds what one process has made: matrices, their entries, and sums. */
struct made {
    int64_t entries[KI_EACH_MADE];
    kiln_matrix *rows[KI_EACH_MADE];
    double sums[KI_EACH_SUMS];
};

static kiln_status run(struct made *made, const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                       int64_t entry) {
    const kiln_status status = each->run(each, rows, row, entry, made->rows, made->sums);
    for (int i = 0; status == KILN_OK && i < each->made; i++) {
        made->rows[i]->given = false; /* it is not cut again */
        made->entries[i] = made->rows[i]->nnz;
    }
    return status;
}

static void free_made(struct made *made) {
    for (int i = 0; i < KI_EACH_MADE; i++) kiln_matrix_free(made->rows[i]);
}

/* -------------------------------------------------------------------------------------------- leader */

struct leading {
    struct kiln_processes *p;
    const struct ki_each *each;
    const kiln_matrix *X;
    const struct ki_cut *cut;
    struct ki_order order;
    struct made own;
    int64_t *rows, *entries; /* count of rows, then of entries of each matrix made */
    int numbers;             /* that have been taken */
};

static kiln_status begin(struct leading *l) {
    const size_t count = (size_t)l->p->transport.count;
    kiln_status status;
    TRY(ki_cut_of(&l->cut, l->X, KI_BY_ROWS));
    const size_t bytes = (1 + KI_EACH_MADE) * count * sizeof *l->rows;
    l->rows = ki_calloc(bytes);
    if (!l->rows) TRY(ki_fail_nomem(bytes, "what processes make"));
    l->entries = l->rows + count;
    for (size_t i = 0; i < count; i++) l->rows[i] = l->cut->first[i + 1] - l->cut->first[i];
    l->order.kind = KI_ORDER_EACH;
    l->order.each.each = *l->each;
    l->order.each.run = ki_place_of((uintptr_t)l->each->run);
    l->order.each.X = l->cut->number;
    for (; l->numbers < l->each->made; l->numbers++)
        TRY(ki_number_take(&l->order.each.number[l->numbers], l->p));
done:
    return status;
}

/* Tells all what to do and where their rows begin, does the leader's share, and takes what the others
 * report. */
static kiln_status meet(struct leading *l) {
    const int64_t count = l->p->transport.count;
    kiln_status status, outcome;
    TRY(ki_order_send(l->p, &l->order));
    for (int i = 1; i < count; i++) {
        const int64_t at[2] = {l->cut->first[i], l->cut->entry[i]};
        TRY(ki_wire_send(l->p, i, at, sizeof at));
    }
    outcome = run(&l->own, l->each, l->cut->here, 0, 0);
    for (int i = 0; i < count; i++) {
        int64_t entries[KI_EACH_MADE];
        memcpy(entries, l->own.entries, sizeof entries);
        if (i > 0) TRY(ki_wire_receive(l->p, i, entries, sizeof entries));
        for (int j = 0; j < l->each->made; j++) l->entries[j * count + i] = entries[j];
    }
    TRY(ki_wire_sum(l->p, l->own.sums, KI_EACH_SUMS, l->p->device->options.deterministic));
    TRY(ki_outcomes_take(l->p, outcome));
done:
    return status;
}

/* The matrices: each has its number, and the leader's rows, from when its cut has. */
static kiln_status keep(kiln_matrix **made, struct leading *l) {
    kiln_status status = KILN_OK;
    for (int j = 0; j < l->each->made; j++) {
        kiln_matrix *here = l->own.rows[j];
        TRY(ki_matrix_shell(&made[j], l->X->device, here->type, KILN_CSR, 0, here->cols));
        made[j]->given = true;
        TRY(ki_cut_keep(made[j], l->p, l->order.each.number[j], here, l->rows,
                        l->entries + j * l->p->transport.count));
        ki_cut_alike(made[j], l->cut);
        l->own.rows[j] = NULL;
        l->order.each.number[j] = -1;
    }
done:
    return status;
}

kiln_status ki_processes_each(kiln_matrix **made, double *sums, const struct ki_each *each,
                              const kiln_matrix *X) {
    struct leading l = {.p = (struct kiln_processes *)X->device->processes, .each = each, .X = X};
    kiln_matrix *all[KI_EACH_MADE] = {NULL};
    kiln_status status;
    TRY(begin(&l));
    TRY(meet(&l));
    TRY(keep(all, &l));
    for (int j = 0; j < each->made; j++) made[j] = all[j];
    for (int s = 0; s < each->sums; s++) sums[s] = l.own.sums[s];
done:
    for (int j = 0; j < l.numbers; j++)
        if (l.order.each.number[j] >= 0) ki_number_drop(l.p, l.order.each.number[j]);
    for (int j = 0; j < each->made && status != KILN_OK; j++) kiln_matrix_free(all[j]);
    free_made(&l.own);
    ki_free(l.rows);
    return status;
}

/* ---------------------------------------------------------------------------------------- the others */

kiln_status ki_serve_each(struct kiln_processes *p, const struct ki_order *order) {
    struct ki_each each = order->each.each;
    const uintptr_t code = ki_address_of(order->each.run);
    struct made own = {.entries = {0}};
    int64_t at[2];
    kiln_status status, outcome;
    memcpy(&each.run, &code, sizeof each.run);
    TRY(ki_wire_receive(p, 0, at, sizeof at));
    outcome = run(&own, &each, ki_kept(p, order->each.X), at[0], at[1]);
    TRY(ki_wire_send(p, 0, own.entries, sizeof own.entries));
    for (int j = 0; j < each.made && outcome == KILN_OK; j++) {
        outcome = ki_keep(p, order->each.number[j], own.rows[j]);
        own.rows[j] = NULL;
    }
    TRY(ki_wire_sum(p, own.sums, KI_EACH_SUMS, p->device->options.deterministic));
    TRY(ki_outcome_send(p, outcome));
done:
    free_made(&own);
    return status;
}
