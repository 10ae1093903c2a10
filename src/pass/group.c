/* A pass over an X that is split over the members of a group:  w = sum_i X_i^T (v_i .* (X_i y)),  member i on its rows X_i.
 *
 * The operands' roles (roles.h) say what each member gets. The whole of every operand lies on the first member, and so do all
 * results, which other operations want there next. ROW: a member's rows, copied to it once and kept until the operand is written
 * anew; what it writes goes back. COLUMN: a copy for the pass. SUM: a place of its own, added up on the first in the members'
 * order, so that the same number of members gives the same bits. On the CPU, where members share the memory, views stand for the
 * copies. */
#include "pass/group.h"

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "pass/combine.h"
#include "pass/roles.h"

/* A member's part of the pass. */
struct part {
    kiln_device *device;
    struct ki_slice slice;
    kiln_matrix views[KI_CHAIN_OPERANDS]; /* CPU: COLUMN operands */
    kiln_matrix *copy[KI_CHAIN_OPERANDS]; /* COLUMN copies and SUM parts: for this pass */
    struct ki_operand held[KI_CHAIN_OPERANDS];
    bool holds;
    double value;
    kiln_status status;
    struct ki_error_copy error;
};

struct pass {
    const struct ki_chain *whole;
    kiln_device *device;
    const struct ki_split *split;
    struct part *parts;
};

/* The members behind the first that have rows; those without would add nothing. */
static bool takes_part(const struct pass *pass, int i) {
    return i == 0 || pass->split->first[i + 1] > pass->split->first[i];
}

static int64_t row_bytes(const kiln_matrix *A) {
    return A->cols * ki_type_bytes(A->type);
}

/* ------------------------------------------------------------------------------------------ operands */

/* What the slice has as operand j on the CPU: a view on the member's device, which may be written where the whole may. */
static void view_here(struct part *part, int j, const kiln_matrix *A) {
    kiln_matrix *view = &part->views[j];
    *view = *A;
    view->device = part->device;
    view->view = true;
    view->slots = NULL;
    ki_chain_set_operand(&part->slice.chain, j, view);
}

/* Member i's rows of A. `copied`: they are to be what A's are; else they are about to be written. */
static kiln_status give_rows(struct pass *pass, int i, int j, bool copied) {
    struct part *part = &pass->parts[i];
    kiln_matrix *A = ki_chain_operand(pass->whole, j);
    const int64_t first = pass->split->first[i], count = pass->split->first[i + 1] - first;
    struct ki_rows *rows;
    kiln_matrix *made = NULL;
    kiln_status status;
    if (ki_on_cpu(pass->device)) {
        part->slice.rows[j].device = part->device;
        return KILN_OK;
    }
    TRY(ki_rows_of(&rows, A, pass->split));
    if (!rows->rows[i]) {
        TRY(ki_matrix_new(&made, part->device, A->type, count, A->cols));
        if (copied)
            TRY(ki_device_copy(part->device, &made->values, 0, pass->device, &A->values, first * row_bytes(A),
                               count * row_bytes(A)));
        rows->rows[i] = made;
        made = NULL;
    }
    ki_chain_set_operand(&part->slice.chain, j, rows->rows[i]);
done:
    kiln_matrix_free(made);
    return status;
}

static kiln_status give_copy(struct pass *pass, int i, int j) {
    struct part *part = &pass->parts[i];
    kiln_matrix *A = ki_chain_operand(pass->whole, j);
    kiln_status status;
    if (ki_on_cpu(pass->device)) {
        view_here(part, j, A);
        return KILN_OK;
    }
    TRY(ki_matrix_new(&part->copy[j], part->device, A->type, A->rows, A->cols));
    TRY(ki_device_copy(part->device, &part->copy[j]->values, 0, pass->device, &A->values, 0,
                       A->rows * row_bytes(A)));
    ki_chain_set_operand(&part->slice.chain, j, part->copy[j]);
done:
    return status;
}

/* A place for the member's part of a sum; what a sum only reads, the first member takes. */
static kiln_status give_sum(struct pass *pass, int i, int j) {
    struct part *part = &pass->parts[i];
    const kiln_matrix *A = ki_chain_operand(pass->whole, j);
    if (!ki_chain_writes(j)) return KILN_OK;
    kiln_status status = ki_matrix_new(&part->copy[j], part->device, A->type, A->rows, A->cols);
    if (status == KILN_OK) ki_chain_set_operand(&part->slice.chain, j, part->copy[j]);
    return status;
}

/* What is read comes before what is written, which may be the same matrix. */
static kiln_status give(struct pass *pass, int i) {
    struct part *part = &pass->parts[i];
    kiln_status status = KILN_OK;
    for (int written = 0; written < 2; written++)
        for (int j = 0; j < KI_CHAIN_OPERANDS; j++) {
            if (!ki_chain_operand(pass->whole, j) || ki_chain_writes(j) != (written == 1)) continue;
            switch (ki_chain_role(pass->whole, j)) {
            case KI_ROW: TRY(give_rows(pass, i, j, !written)); break;
            case KI_COLUMN: TRY(give_copy(pass, i, j)); break;
            case KI_SUM: TRY(give_sum(pass, i, j)); break;
            }
        }
    ki_chain_operands(part->held, &part->slice.chain);
    TRY(ki_operands_hold(part->device, part->held, KI_CHAIN_OPERANDS));
    part->holds = true;
done:
    return status;
}

static kiln_status prepare(struct pass *pass, int i) {
    struct part *part = &pass->parts[i];
    struct ki_chain *chain = &part->slice.chain;
    kiln_status status = KILN_OK;
    part->device = pass->device->group->member[i];
    ki_chain_slice(&part->slice, pass->whole, pass->split->X[i], pass->split->first[i], i == 0);
    if (chain->value) chain->value = &part->value;
    if (i == 0) return KILN_OK;
    TRY(ki_device_after(part->device, pass->device));
    TRY(give(pass, i));
done:
    return status;
}

/* ----------------------------------------------------------------------------------------- results */

/* Adds the parts of sum j, all the members' in turn. */
static kiln_status add_up(struct pass *pass, int j) {
    kiln_matrix *sum = ki_chain_operand(pass->whole, j), *moved = NULL;
    kiln_status status = KILN_OK;
    if (!ki_on_cpu(pass->device)) TRY(ki_matrix_new(&moved, sum->device, sum->type, sum->rows, sum->cols));
    for (int i = 1; i < pass->split->count; i++) {
        if (!takes_part(pass, i)) continue;
        struct part *part = &pass->parts[i];
        kiln_matrix here = *part->copy[j];
        here.view = true;
        here.device = sum->device;
        if (moved)
            TRY(ki_device_copy(sum->device, &moved->values, 0, part->device, &part->copy[j]->values, 0,
                               sum->rows * row_bytes(sum)));
        TRY(ki_combine_all(sum, 1, sum, 1, moved ? moved : &here));
    }
done:
    kiln_matrix_free(moved);
    return status;
}

/* The rows that members have written go into their places in the whole. */
static kiln_status take_rows(struct pass *pass, int j) {
    kiln_matrix *A = ki_chain_operand(pass->whole, j);
    kiln_status status = KILN_OK;
    if (ki_on_cpu(pass->device)) return KILN_OK; /* they are there */
    for (int i = 1; i < pass->split->count; i++) {
        if (!takes_part(pass, i)) continue;
        struct part *part = &pass->parts[i];
        const kiln_matrix *rows = ki_chain_operand(&part->slice.chain, j);
        TRY(ki_device_copy(pass->device, &A->values, pass->split->first[i] * row_bytes(A), part->device,
                           &rows->values, 0, rows->rows * row_bytes(A)));
    }
done:
    return status;
}

static kiln_status finish(struct pass *pass) {
    const struct ki_chain *whole = pass->whole;
    kiln_status status = KILN_OK;
    for (int i = 1; i < pass->split->count; i++)
        if (takes_part(pass, i)) TRY(ki_device_after(pass->device, pass->parts[i].device));
    for (int j = 0; j < KI_CHAIN_OPERANDS; j++) {
        if (!ki_chain_operand(whole, j) || !ki_chain_writes(j)) continue;
        TRY(ki_chain_role(whole, j) == KI_SUM ? add_up(pass, j) : take_rows(pass, j));
    }
    if (!whole->value) goto done;
    *whole->value = 0;
    for (int i = 0; i < pass->split->count; i++) *whole->value += pass->parts[i].value;
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- pass */

static void run_part(void *of, int i) {
    struct pass *pass = of;
    struct part *part = &pass->parts[i];
    if (!takes_part(pass, i)) return;
    part->status = ki_chain_run(&part->slice.chain);
    if (part->status != KILN_OK) ki_error_keep(&part->error);
}

static kiln_status run(struct pass *pass) {
    const int count = pass->split->count;
    kiln_status status = KILN_OK;
    for (int i = 0; i < count; i++)
        if (takes_part(pass, i)) TRY(prepare(pass, i));
    ki_parallel(count, count, run_part, pass);
    for (int i = 0; i < count; i++)
        if (pass->parts[i].status != KILN_OK) return ki_group_fail(pass->device, i, &pass->parts[i].error);
    TRY(finish(pass));
done:
    return status;
}

static void end(struct pass *pass) {
    for (int i = 1; i < pass->split->count; i++) {
        struct part *part = &pass->parts[i];
        if (part->holds) ki_operands_release(part->device, part->held, KI_CHAIN_OPERANDS);
        for (int j = 0; j < KI_CHAIN_OPERANDS; j++) kiln_matrix_free(part->copy[j]);
    }
    ki_free(pass->parts);
}

bool ki_chain_is_split(const struct ki_chain *chain) {
    return chain->X->device->group && chain->X->given && !chain->X->view;
}

kiln_status ki_chain_group(const struct ki_chain *chain) {
    struct pass pass = {.whole = chain, .device = chain->X->device};
    struct ki_operand operands[KI_CHAIN_OPERANDS];
    kiln_status status;
    TRY(ki_group_alive(pass.device));
    TRY(ki_split_of(&pass.split, chain->X));
    ki_chain_operands(operands, chain);
    TRY(ki_operands_hold(pass.device, operands, KI_CHAIN_OPERANDS));
    pass.parts = ki_calloc((size_t)pass.split->count * sizeof *pass.parts);
    status =
        pass.parts ? run(&pass) : ki_fail_nomem((size_t)pass.split->count * sizeof *pass.parts, "a pass");
    if (pass.parts) end(&pass);
    ki_operands_release(pass.device, operands, KI_CHAIN_OPERANDS);
done:
    return status;
}
