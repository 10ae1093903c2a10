/* An operation on an X that is split over the members of a group, such as a pass  w = sum_i X_i^T (v_i .* (X_i y)),  member i on
 * its rows X_i.
 *
 * The operands' roles (roles.h) say what each member gets. The whole of every operand lies on the first member, and so do all
 * results, which other operations want there next. ROW and ENTRY: a member's part, copied to it once and kept until the operand is
 * written anew; what it writes goes back. COLUMN: a copy of all of it, kept as long. SUM: a place of its own, added up on the
 * first in the members' order, so that the same number of members gives the same bits. GATHER, MEMBER and OWN: a copy of all of it; an
 * operation of several rounds keeps its members' parts where they are until the last, and exchanges no more than what others read. Each member sends its results as soon as it
 * has them, while others compute; large sums and copies to many go by the backend's collectives (core/group.h). On the CPU, where members share the memory, views stand for the copies. */
#include "pass/group.h"

#include <string.h>

#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "pass/combine.h"

/* A member's part of the operation. */
struct part {
    kiln_device *device;
    void *slice; /* the operation's struct */
    kiln_matrix views[KI_RULES_MOST];
    kiln_matrix *sum[KI_RULES_MOST];   /* SUM parts, and OWN copies, for this time */
    kiln_matrix *moved[KI_RULES_MOST]; /* the same on the first member */
    struct ki_operand held[KI_RULES_MOST];
    bool holds;
    double *sums;
    kiln_status status;
    struct ki_error_copy error;
};

struct pass {
    const struct ki_shared *shared;
    const struct ki_rules *rules;
    kiln_device *device;
    const struct ki_split *split;
    struct part *parts;
    int64_t round;
    void *memory;                  /* the parts' slices, then their sums */
    bool collected[KI_RULES_MOST]; /* a COLUMN or SUM operand that goes by collectives */
};

/* The members behind the first that have rows; those without would add nothing. */
static bool takes_part(const struct pass *pass, int i) {
    return i == 0 || pass->split->first[i + 1] > pass->split->first[i];
}

static kiln_matrix *whole(const struct pass *pass, int j) {
    return ki_operand_of(pass->shared->whole, &pass->rules->rule[j]);
}

static enum ki_role role(const struct pass *pass, int j) {
    return pass->rules->rule[j].role[pass->shared->kind];
}

static bool writes(const struct pass *pass, int j) {
    return pass->rules->rule[j].use & KI_WRITES;
}

/* What is no result of a member's, or has come to the first between rounds. */
static bool stays(const struct pass *pass, int j) {
    const enum ki_role is = role(pass, j);
    return is == KI_COLUMN || is == KI_GATHER || is == KI_MEMBER || is == KI_OWN;
}

static void set(const struct pass *pass, struct part *part, int j, const kiln_matrix *A) {
    ki_operand_set(part->slice, &pass->rules->rule[j], A);
}

static int64_t bytes_of(const kiln_matrix *A) {
    return A->nnz * ki_type_bytes(A->type);
}

/* ------------------------------------------------------------------------------------------ operands */

/* What the slice has as operand j on the CPU: a view on the member's device, which may be written where the whole may. */
static void view_here(const struct pass *pass, struct part *part, int j, const kiln_matrix *A) {
    kiln_matrix *view = &part->views[j];
    *view = *A;
    view->device = part->device;
    view->view = true;
    view->slots = NULL;
    set(pass, part, j, view);
}

/* Member i's part of A, which its operation reads, writes or both. */
static kiln_status give_part(struct pass *pass, int i, int j) {
    struct part *part = &pass->parts[i];
    const struct ki_split *split = pass->split;
    kiln_matrix *A = whole(pass, j), *made = NULL;
    const bool entries = role(pass, j) == KI_ENTRY;
    const int64_t *first = entries ? split->entry : split->first, cols = entries ? 1 : A->cols;
    const int64_t count = first[i + 1] - first[i];
    struct ki_rows *rows;
    kiln_status status;
    if (ki_on_cpu(pass->device)) {
        part->views[j].device = part->device;
        return KILN_OK;
    }
    TRY(ki_rows_of(&rows, A, split->count, first));
    if (!rows->rows[i]) {
        TRY(ki_matrix_new(&made, part->device, A->type, count, cols));
        if (pass->rules->rule[j].use == KI_READS ||
            (pass->rules->rule[j].use == KI_CHANGES && !pass->shared->fresh))
            TRY(ki_device_copy(part->device, part->device, &made->values, 0, pass->device, &A->values,
                               first[i] * cols * ki_type_bytes(A->type), bytes_of(made)));
        rows->rows[i] = made;
        made = NULL;
    }
    set(pass, part, j, rows->rows[i]);
done:
    kiln_matrix_free(made);
    return status;
}

static kiln_status give_copy(struct pass *pass, int i, int j) {
    struct part *part = &pass->parts[i];
    kiln_matrix *A = whole(pass, j), *made = NULL;
    struct ki_rows *copies;
    kiln_status status;
    if (ki_on_cpu(pass->device)) {
        view_here(pass, part, j, A);
        return KILN_OK;
    }
    TRY(ki_copies_of(&copies, A, pass->split->count));
    if (!copies->rows[i]) {
        TRY(ki_matrix_new(&made, part->device, A->type, A->rows, A->cols));
        if (!pass->collected[j])
            TRY(ki_device_copy(part->device, part->device, &made->values, 0, pass->device, &A->values, 0,
                               bytes_of(A)));
        copies->rows[i] = made;
        made = NULL;
    }
    set(pass, part, j, copies->rows[i]);
done:
    kiln_matrix_free(made);
    return status;
}

/* A place for the member's part of a sum, and one where the first member gets it; what a sum only reads, the first takes. */
static kiln_status give_sum(struct pass *pass, int i, int j) {
    struct part *part = &pass->parts[i];
    const kiln_matrix *A = whole(pass, j);
    kiln_status status;
    if (!writes(pass, j)) return KILN_OK;
    TRY(ki_matrix_new(&part->sum[j], part->device, A->type, A->rows, A->cols));
    set(pass, part, j, part->sum[j]);
done:
    return status;
}

/* A copy for this time, on the CPU, too, where the others' must not be written. */
static kiln_status give_own(struct pass *pass, int i, int j) {
    struct part *part = &pass->parts[i];
    const kiln_matrix *A = whole(pass, j);
    kiln_status status;
    TRY(ki_matrix_new(&part->sum[j], part->device, A->type, A->rows, A->cols));
    TRY(ki_device_copy(part->device, part->device, &part->sum[j]->values, 0, pass->device, &A->values, 0,
                       bytes_of(A)));
    set(pass, part, j, part->sum[j]);
done:
    return status;
}

/* What is only read comes before what is written, which may be the same matrix. */
static kiln_status give(struct pass *pass, int i) {
    struct part *part = &pass->parts[i];
    kiln_status status = KILN_OK;
    for (int written = 0; written < 2; written++)
        for (int j = 0; j < pass->rules->count; j++) {
            if (!whole(pass, j) || writes(pass, j) != (written == 1)) continue;
            switch (role(pass, j)) {
            case KI_ROW:
            case KI_ENTRY: TRY(give_part(pass, i, j)); break;
            case KI_COLUMN:
            case KI_GATHER:
            case KI_MEMBER: TRY(give_copy(pass, i, j)); break;
            case KI_OWN: TRY(give_own(pass, i, j)); break;
            case KI_SUM: TRY(give_sum(pass, i, j)); break;
            case KI_NO_ROLE: break;
            }
        }
    ki_operands_list(part->held, pass->rules, part->slice);
    TRY(ki_operands_hold(part->device, part->held, KI_RULES_MOST));
    part->holds = true;
done:
    return status;
}

/* Which operands go by collectives: these take all members. */
static void choose_ways(struct pass *pass) {
    for (int i = 0; i < pass->split->count; i++)
        if (!takes_part(pass, i)) return;
    for (int j = 0; j < pass->rules->count; j++) {
        const kiln_matrix *A = whole(pass, j);
        if (A &&
            (role(pass, j) == KI_COLUMN ? !ki_copies_there(A) : role(pass, j) == KI_SUM && writes(pass, j)))
            pass->collected[j] = ki_group_collects(pass->device, bytes_of(A));
    }
}

/* The first member's operand j and what the others have for it, by a collective. */
static kiln_status collect(struct pass *pass, int j) {
    const struct ki_buffer *buffers[KI_MEMBERS + 1] = {&whole(pass, j)->values};
    const kiln_matrix *A = whole(pass, j);
    for (int i = 1; i < pass->split->count; i++)
        buffers[i] = &ki_operand_of(pass->parts[i].slice, &pass->rules->rule[j])->values;
    return role(pass, j) == KI_SUM ? ki_group_sum(pass->device, buffers, A->nnz, A->type)
                                   : ki_group_spread(pass->device, buffers, A->nnz, A->type);
}

/* Where the parts of sums arrive, made before any member is told to begin: what they send must not overtake what the first member
 * still does with that memory. */
static kiln_status make_room(struct pass *pass) {
    kiln_status status = KILN_OK;
    if (ki_on_cpu(pass->device)) return KILN_OK;
    for (int i = 1; i < pass->split->count; i++)
        for (int j = 0; j < pass->rules->count; j++) {
            const kiln_matrix *A = whole(pass, j);
            if (takes_part(pass, i) && A && writes(pass, j) && role(pass, j) == KI_SUM && !pass->collected[j])
                TRY(ki_matrix_new(&pass->parts[i].moved[j], A->device, A->type, A->rows, A->cols));
        }
done:
    return status;
}

/* Views for the first member of what others have copies of: to write the whole itself would drop these. */
static void view_stays(struct pass *pass) {
    for (int j = 0; j < pass->rules->count; j++)
        if (whole(pass, j) && writes(pass, j) && stays(pass, j))
            view_here(pass, &pass->parts[0], j, whole(pass, j));
}

static kiln_status prepare(struct pass *pass, int i) {
    const struct ki_split *split = pass->split;
    const struct ki_shared *shared = pass->shared;
    const size_t at = pass->rules->sums;
    struct part *part = &pass->parts[i];
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

/* ----------------------------------------------------------------------------------------- results */

/* Sends what member i has written: rows and entries to their places in the whole, parts of sums to where they are added. */
static kiln_status send(struct pass *pass, int i) {
    struct part *part = &pass->parts[i];
    kiln_status status = KILN_OK;
    for (int j = 0; j < pass->rules->count; j++) {
        kiln_matrix *A = whole(pass, j);
        if (!A || !writes(pass, j) || pass->collected[j] || stays(pass, j)) continue;
        const bool sum = role(pass, j) == KI_SUM, entries = role(pass, j) == KI_ENTRY;
        const kiln_matrix *from = ki_operand_of(part->slice, &pass->rules->rule[j]);
        const int64_t first = entries ? pass->split->entry[i] : pass->split->first[i] * A->cols;
        TRY(ki_device_copy(part->device, pass->device, sum ? &part->moved[j]->values : &A->values,
                           sum ? 0 : first * ki_type_bytes(A->type), part->device, &from->values, 0,
                           bytes_of(from)));
    }
    TRY(ki_device_after(pass->device, part->device));
done:
    return status;
}

/* Adds the parts of sum j, all the members' in turn. */
static kiln_status add_up(struct pass *pass, int j) {
    kiln_matrix *sum = whole(pass, j);
    kiln_status status = KILN_OK;
    if (pass->collected[j]) return collect(pass, j);
    for (int i = 1; i < pass->split->count; i++) {
        if (!takes_part(pass, i)) continue;
        const struct part *part = &pass->parts[i];
        kiln_matrix here = part->moved[j] ? *part->moved[j] : *part->sum[j];
        here.view = true;
        here.device = sum->device;
        TRY(ki_combine_all(sum, 1, sum, 1, &here));
    }
done:
    return status;
}

static kiln_status finish(struct pass *pass) {
    const struct ki_shared *shared = pass->shared;
    kiln_status status = KILN_OK;
    for (int i = 1; i < pass->split->count && !ki_on_cpu(pass->device); i++)
        if (takes_part(pass, i)) TRY(send(pass, i));
    for (int j = 0; j < pass->rules->count; j++)
        if (whole(pass, j) && writes(pass, j) && role(pass, j) == KI_SUM) TRY(add_up(pass, j));
    if (!shared->sums) goto done;
    double *sums;
    memcpy(&sums, (const char *)shared->whole + pass->rules->sums, sizeof sums);
    memcpy(sums, pass->parts[0].sums, (size_t)shared->sums * sizeof *sums);
    for (int i = 1; i < pass->split->count; i++)
        for (int64_t s = 0; takes_part(pass, i) && s < shared->sums; s++) sums[s] += pass->parts[i].sums[s];
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- pass */

static void run_part(void *of, int i) {
    struct pass *pass = of;
    struct part *part = &pass->parts[i];
    if (!takes_part(pass, i)) return;
    part->status = pass->shared->rounds ? pass->shared->run_round(part->slice, pass->round)
                                        : pass->shared->run(part->slice);
    if (part->status != KILN_OK) ki_error_keep(&part->error);
}

/* Whether the members' work is queued and not waited for: X is there, and nothing goes to host memory. Then one thread has queued it
 * all before others would be awake. */
static bool only_queues(const struct pass *pass) {
    bool queues = pass->device->backend->copy && !pass->shared->sums;
    for (int i = 0; queues && i < pass->split->count; i++) queues = ki_matrix_resident(pass->split->X[i]);
    return queues;
}

static kiln_status run_parts(struct pass *pass) {
    const int count = pass->split->count;
    if (only_queues(pass)) /* the first, who needs no copies, last */
        for (int i = count - 1; i >= 0; i--) run_part(pass, i);
    else
        ki_parallel(count, count, run_part, pass);
    for (int i = 0; i < count; i++)
        if (pass->parts[i].status != KILN_OK) return ki_group_fail(pass->device, i, &pass->parts[i].error);
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------------ rounds */

/* Nobody goes on before all have done what they were given so far. */
static kiln_status meet(struct pass *pass) {
    const int count = pass->split->count;
    kiln_status status = KILN_OK;
    for (int pair = 0; pair < count * count; pair++)
        if (takes_part(pass, pair / count) && takes_part(pass, pair % count))
            TRY(ki_device_after(pass->parts[pair / count].device, pass->parts[pair % count].device));
done:
    return status;
}

/* Sends what member i has written of operand j in the round before to all others. */
static kiln_status tell(struct pass *pass, int i, int j) {
    const struct ki_rule *rule = &pass->rules->rule[j];
    const bool row = rule->role[(pass->shared->kind + pass->round - 1) % 2] == KI_MEMBER;
    const int64_t *first = pass->split->first;
    const kiln_matrix *from = ki_operand_of(pass->parts[i].slice, rule);
    const int64_t bytes = from->cols * ki_type_bytes(from->type), begin = (row ? i : first[i]) * bytes,
                  rows = row ? 1 : first[i + 1] - first[i];
    kiln_status status = KILN_OK;
    for (int to = 0; to < pass->split->count; to++)
        if (to != i && takes_part(pass, to))
            TRY(ki_device_copy(pass->parts[i].device, pass->parts[to].device,
                               &ki_operand_of(pass->parts[to].slice, rule)->values, begin,
                               pass->parts[i].device, &from->values, begin, rows * bytes));
done:
    return status;
}

/* What the round before has written for others goes to them; on the CPU all have the same. */
static kiln_status exchange(struct pass *pass) {
    kiln_status status = KILN_OK;
    if (ki_on_cpu(pass->device)) return KILN_OK;
    for (int i = 0; i < pass->split->count; i++)
        for (int j = 0; j < pass->rules->count; j++) {
            const enum ki_role was = pass->rules->rule[j].role[(pass->shared->kind + pass->round - 1) % 2];
            if (takes_part(pass, i) && whole(pass, j) && (was == KI_GATHER || was == KI_MEMBER))
                TRY(tell(pass, i, j));
        }
    TRY(meet(pass));
done:
    return status;
}

static kiln_status run(struct pass *pass) {
    const int count = pass->split->count;
    kiln_status status;
    choose_ways(pass);
    TRY(make_room(pass));
    for (int i = 0; i < count; i++)
        if (takes_part(pass, i)) TRY(prepare(pass, i));
    for (int j = 0; j < pass->rules->count; j++)
        if (pass->collected[j] && role(pass, j) == KI_COLUMN) TRY(collect(pass, j));
    if (pass->shared->rounds) TRY(meet(pass));
    for (; pass->round == 0 || pass->round < pass->shared->rounds; pass->round++) {
        if (pass->round > 0) TRY(exchange(pass));
        TRY(run_parts(pass));
    }
    TRY(finish(pass));
done:
    return status;
}

static void end(struct pass *pass) {
    for (int i = 0; i < pass->split->count; i++) {
        struct part *part = &pass->parts[i];
        if (part->holds) ki_operands_release(part->device, part->held, KI_RULES_MOST);
        for (int j = 0; j < KI_RULES_MOST; j++) {
            kiln_matrix_free(part->sum[j]);
            kiln_matrix_free(part->moved[j]);
        }
    }
    ki_free(pass->parts);
    ki_free(pass->memory);
}

static kiln_status begin(struct pass *pass) {
    const size_t count = (size_t)pass->split->count;
    const size_t bytes = count * (pass->rules->bytes + (size_t)pass->shared->sums * sizeof(double));
    pass->memory = ki_calloc(bytes);
    if (!pass->memory) return ki_fail_nomem(bytes, "the shares of a group's members");
    pass->parts = ki_calloc(count * sizeof *pass->parts);
    if (pass->parts) return KILN_OK;
    ki_free(pass->memory);
    return ki_fail_nomem(count * sizeof *pass->parts, "the shares of a group's members");
}

bool ki_is_split(const kiln_matrix *X) {
    return ki_device_shares(X->device) && X->given && !X->view;
}

kiln_status ki_share(const struct ki_shared *shared) {
    struct pass pass = {.shared = shared, .rules = shared->rules};
    struct ki_operand operands[KI_RULES_MOST];
    const kiln_matrix *X;
    kiln_status status;
    memcpy(&X, (const char *)shared->whole + pass.rules->X, sizeof X);
    if (X->device->processes) return X->device->processes->share(shared);
    pass.device = X->device;
    TRY(ki_group_alive(pass.device));
    TRY(ki_split_of(&pass.split, X, shared->cut));
    ki_operands_list(operands, pass.rules, shared->whole);
    TRY(ki_operands_hold(pass.device, operands, KI_RULES_MOST));
    status = begin(&pass);
    if (status == KILN_OK) {
        status = run(&pass);
        end(&pass);
        for (int j = 0; j < pass.rules->count && status != KILN_OK; j++)
            if (whole(&pass, j)) ki_copies_drop(whole(&pass, j));
    }
    ki_operands_release(pass.device, operands, KI_RULES_MOST);
done:
    return status;
}
