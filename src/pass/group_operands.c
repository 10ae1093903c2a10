/* This file says what each member of a group gets of an operation's operands, by their roles (roles.h): a
 * part or a copy that is kept until the operand is written anew, or a place for its part of a sum. On the
 * CPU, where members share the memory, views stand for copies. */
#include <string.h>

#include "pass/group_pass.h"

static void set(const struct ki_pass *pass, struct ki_pass_part *part, int j, const kiln_matrix *A) {
    ki_operand_set(part->slice, &pass->rules->rule[j], A);
}

/* Finds what the slice has as operand j on the CPU: a view on the member's device, which may be written where
 * the whole may. */
static void view_here(const struct ki_pass *pass, struct ki_pass_part *part, int j, const kiln_matrix *A) {
    kiln_matrix *view = &part->views[j];
    *view = *A;
    view->device = part->device;
    view->view = true;
    view->slots = NULL;
    set(pass, part, j, view);
}

/* On a device of its own a member keeps one matrix of the operand, rows x cols, until that is written anew:
 * what lies in A from element `from` on, if it is `filled`. */
static kiln_status give_kept(kiln_matrix **kept, const struct ki_pass *pass, struct ki_pass_part *part, int j,
                             int64_t rows, int64_t cols, int64_t from, bool filled) {
    const kiln_matrix *A = ki_pass_whole(pass, j);
    kiln_matrix *made = NULL;
    kiln_status status = KILN_OK;
    if (!*kept) {
        TRY(ki_matrix_new(&made, part->device, A->type, rows, cols));
        if (filled)
            TRY(ki_device_copy(part->device, part->device, &made->values, 0, pass->device, &A->values,
                               from * ki_type_bytes(A->type), ki_pass_bytes(made)));
        *kept = made;
        made = NULL;
    }
    set(pass, part, j, *kept);
done:
    kiln_matrix_free(made);
    return status;
}

/* Member i's part of A, which its operation reads, writes or both. */
static kiln_status give_part(struct ki_pass *pass, int i, int j) {
    struct ki_pass_part *part = &pass->parts[i];
    const struct ki_split *split = pass->split;
    kiln_matrix *A = ki_pass_whole(pass, j);
    const bool entries = ki_pass_role(pass, j) == KI_ENTRY;
    const int64_t *first = entries ? split->entry : split->first, cols = entries ? 1 : A->cols;
    const int64_t count = first[i + 1] - first[i];
    const int use = pass->rules->rule[j].use;
    struct ki_rows *rows;
    kiln_status status;
    if (ki_on_cpu(pass->device)) {
        part->views[j].device = part->device;
        return KILN_OK;
    }
    TRY(ki_rows_of(&rows, A, split->count, first));
    TRY(give_kept(&rows->rows[i], pass, part, j, count, cols, first[i] * cols,
                  use == KI_READS || (use == KI_CHANGES && !pass->shared->fresh)));
done:
    return status;
}

static kiln_status give_copy(struct ki_pass *pass, int i, int j) {
    struct ki_pass_part *part = &pass->parts[i];
    kiln_matrix *A = ki_pass_whole(pass, j);
    struct ki_rows *copies;
    kiln_status status;
    if (ki_on_cpu(pass->device)) {
        view_here(pass, part, j, A);
        return KILN_OK;
    }
    TRY(ki_copies_of(&copies, A, pass->split->count));
    TRY(give_kept(&copies->rows[i], pass, part, j, A->rows, A->cols, 0, !pass->collected[j]));
done:
    return status;
}

/* A place for this time, on the CPU, too, where the others' must not be written: for the member's part of a
 * sum, or with a copy. What a sum only reads, the first member takes. */
static kiln_status give_place(struct ki_pass *pass, int i, int j) {
    struct ki_pass_part *part = &pass->parts[i];
    const kiln_matrix *A = ki_pass_whole(pass, j);
    kiln_status status;
    if (ki_pass_role(pass, j) == KI_SUM && !ki_pass_writes(pass, j)) return KILN_OK;
    TRY(ki_matrix_new(&part->sum[j], part->device, A->type, A->rows, A->cols));
    if (ki_pass_role(pass, j) == KI_OWN)
        TRY(ki_device_copy(part->device, part->device, &part->sum[j]->values, 0, pass->device, &A->values, 0,
                           ki_pass_bytes(A)));
    set(pass, part, j, part->sum[j]);
done:
    return status;
}

/* Operands that are only read come before those that are written, which may be the same matrix. */
static kiln_status give(struct ki_pass *pass, int i) {
    struct ki_pass_part *part = &pass->parts[i];
    kiln_status status = KILN_OK;
    for (int written = 0; written < 2; written++)
        for (int j = 0; j < pass->rules->count; j++) {
            if (!ki_pass_whole(pass, j) || ki_pass_writes(pass, j) != (written == 1)) continue;
            switch (ki_pass_role(pass, j)) {
            case KI_ROW:
            case KI_ENTRY: TRY(give_part(pass, i, j)); break;
            case KI_COLUMN:
            case KI_GATHER:
            case KI_MEMBER: TRY(give_copy(pass, i, j)); break;
            case KI_OWN:
            case KI_SUM: TRY(give_place(pass, i, j)); break;
            case KI_NO_ROLE: break;
            }
        }
    ki_operands_list(part->held, pass->rules, part->slice);
    TRY(ki_operands_hold(part->device, part->held, KI_RULES_MOST));
    part->holds = true;
done:
    return status;
}

void ki_pass_choose(struct ki_pass *pass) {
    for (int i = 0; i < pass->split->count; i++)
        if (!ki_takes_part(pass, i)) return;
    for (int j = 0; j < pass->rules->count; j++) {
        const kiln_matrix *A = ki_pass_whole(pass, j);
        if (A &&
            (ki_pass_role(pass, j) == KI_COLUMN ? !ki_copies_there(A)
                                                : ki_pass_role(pass, j) == KI_SUM && ki_pass_writes(pass, j)))
            pass->collected[j] = ki_group_collects(pass->device, ki_pass_bytes(A));
    }
}

kiln_status ki_pass_collect(struct ki_pass *pass, int j) {
    const struct ki_buffer *buffers[KI_MEMBERS + 1] = {&ki_pass_whole(pass, j)->values};
    const kiln_matrix *A = ki_pass_whole(pass, j);
    for (int i = 1; i < pass->split->count; i++)
        buffers[i] = &ki_operand_of(pass->parts[i].slice, &pass->rules->rule[j])->values;
    return ki_pass_role(pass, j) == KI_SUM ? ki_group_sum(pass->device, buffers, A->nnz, A->type)
                                           : ki_group_spread(pass->device, buffers, A->nnz, A->type);
}

kiln_status ki_pass_room(struct ki_pass *pass) {
    kiln_status status = KILN_OK;
    if (ki_on_cpu(pass->device)) return KILN_OK;
    for (int i = 1; i < pass->split->count; i++)
        for (int j = 0; j < pass->rules->count; j++) {
            const kiln_matrix *A = ki_pass_whole(pass, j);
            if (ki_takes_part(pass, i) && A && ki_pass_writes(pass, j) && ki_pass_role(pass, j) == KI_SUM &&
                !pass->collected[j])
                TRY(ki_matrix_new_held(&pass->parts[i].moved[j], A->device, A->type, A->rows, A->cols));
        }
done:
    return status;
}

/* Views for the first member of what others have copies of: to write the whole itself would drop these. */
static void view_stays(struct ki_pass *pass) {
    for (int j = 0; j < pass->rules->count; j++)
        if (ki_pass_whole(pass, j) && ki_pass_writes(pass, j) && ki_pass_stays(pass, j))
            view_here(pass, &pass->parts[0], j, ki_pass_whole(pass, j));
}

kiln_status ki_pass_prepare(struct ki_pass *pass, int i) {
    const struct ki_split *split = pass->split;
    const struct ki_shared *shared = pass->shared;
    const size_t at = pass->rules->sums;
    struct ki_pass_part *part = &pass->parts[i];
    kiln_status status = KILN_OK;
    part->device = pass->device->group->member[i];
    part->slice = (char *)pass->memory + (size_t)i * pass->rules->bytes;
    ki_slice(part->slice, part->views, pass->rules, shared->kind, shared->whole, split->X[i],
             (struct ki_offset){.row = split->first[i],
                                .entry = split->entry[i],
                                .rows = split->first[i + 1] - split->first[i],
                                .member = i,
                                .leads = i == 0});
    if (shared->sums) {
        part->sums =
            (double *)((char *)pass->memory + (size_t)split->count * pass->rules->bytes) + i * shared->sums;
        memcpy((char *)part->slice + at, &part->sums, sizeof part->sums);
    }
    if (i == 0) {
        view_stays(pass);
    } else {
        TRY(ki_device_after(part->device, pass->device));
        TRY(give(pass, i));
    }
done:
    return status;
}
