/* An operation on an X that is split over the members of a group, such as a pass  w = sum_i X_i^T (v_i .*
 * (X_i y)),  member i on its rows X_i.
 *
 * The operands' roles (roles.h) say what each member gets. The whole of every operand lies on the first
 * member, and so do all results but rows, which other operations want there next. ROW and ENTRY: a member's
 * part, copied to it once and kept until the operand is written anew. Rows that it writes stay with it until
 * somebody asks for the whole (core/home.h), entries go back. COLUMN: a copy of
 * all of it, kept as long. SUM: a place of its own, added up on the first in the members' order, so that the
 * same number of members gives the same bits. GATHER, MEMBER and OWN: a copy of all of it; an operation of
 * several rounds keeps its members' parts where they are until the last, and exchanges no more than what
 * others read. group_operands.c makes all that. Each member sends its results as soon as it has them, while
 * others compute; large sums and copies to many go by the backend's collectives (core/group/group.h). */
#include "pass/group.h"
#include "core/home.h"

#include <string.h>

#include "core/each.h"
#include "core/narrow/narrow.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "pass/combine.h"
#include "pass/group_pass.h"

/* ----------------------------------------------------------------------------------------- results */

/* Sends what member i has written: entries to their places in the whole, parts of sums to where they are
 * added. */
static kiln_status send(struct ki_pass *pass, int i) {
    struct ki_pass_part *part = &pass->parts[i];
    kiln_status status = KILN_OK;
    for (int j = 0; j < pass->rules->count; j++) {
        kiln_matrix *A = ki_pass_whole(pass, j);
        if (!A || !ki_pass_writes(pass, j) || pass->collected[j] || ki_pass_stays(pass, j)) continue;
        if (ki_pass_role(pass, j) == KI_ROW) continue;
        const bool sum = ki_pass_role(pass, j) == KI_SUM;
        const kiln_matrix *from = ki_operand_of(part->slice, &pass->rules->rule[j]);
        TRY(ki_device_copy(part->device, pass->device, sum ? &part->moved[j]->values : &A->values,
                           sum ? 0 : pass->split->entry[i] * ki_type_bytes(A->type), part->device,
                           &from->values, 0, ki_pass_bytes(from)));
    }
    TRY(ki_device_after(pass->device, part->device));
done:
    return status;
}

/* Adds the parts of sum j, all the members' in turn. */
static kiln_status add_up(struct ki_pass *pass, int j) {
    kiln_matrix *sum = ki_pass_whole(pass, j);
    kiln_status status = KILN_OK;
    if (pass->collected[j]) return ki_pass_collect(pass, j);
    for (int i = 1; i < pass->split->count; i++) {
        if (!ki_takes_part(pass, i)) continue;
        const struct ki_pass_part *part = &pass->parts[i];
        kiln_matrix here = part->moved[j] ? *part->moved[j] : *part->sum[j];
        here.view = true;
        here.device = sum->device;
        TRY(ki_combine_all(sum, 1, sum, 1, &here));
    }
done:
    return status;
}

static kiln_status finish(struct ki_pass *pass) {
    const struct ki_shared *shared = pass->shared;
    kiln_status status = KILN_OK;
    for (int i = 1; i < pass->split->count && !ki_on_cpu(pass->device); i++)
        if (ki_takes_part(pass, i)) TRY(send(pass, i));
    for (int j = 0; j < pass->rules->count; j++)
        if (ki_pass_whole(pass, j) && ki_pass_writes(pass, j) && ki_pass_role(pass, j) == KI_SUM)
            TRY(add_up(pass, j));
    if (!shared->sums) goto done;
    double *sums;
    memcpy(&sums, (const char *)shared->whole + pass->rules->sums, sizeof sums);
    memcpy(sums, pass->parts[0].sums, (size_t)shared->sums * sizeof *sums);
    for (int i = 1; i < pass->split->count; i++)
        for (int64_t s = 0; ki_takes_part(pass, i) && s < shared->sums; s++)
            sums[s] += pass->parts[i].sums[s];
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- pass */

static void run_part(void *of, int i) {
    struct ki_pass *pass = of;
    struct ki_pass_part *part = &pass->parts[i];
    if (!ki_takes_part(pass, i)) return;
    part->status = pass->shared->rounds ? pass->shared->run_round(part->slice, pass->round)
                                        : pass->shared->run(part->slice);
    if (part->status != KILN_OK) ki_error_keep(&part->error);
}

/* Returns whether the members' work is queued and not waited for: X is there, and nothing goes to host
 * memory. Then one thread has queued it all before others would be awake. */
static bool only_queues(const struct ki_pass *pass) {
    bool queues = !pass->shared->sums;
    for (int i = 0; queues && i < pass->split->count; i++)
        queues = pass->parts[i].device->backend->copy && ki_matrix_resident(pass->split->X[i]);
    return queues;
}

static kiln_status run_parts(struct ki_pass *pass) {
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
static kiln_status meet(struct ki_pass *pass) {
    const int count = pass->split->count;
    kiln_status status = KILN_OK;
    for (int pair = 0; pair < count * count; pair++)
        if (ki_takes_part(pass, pair / count) && ki_takes_part(pass, pair % count))
            TRY(ki_device_after(pass->parts[pair / count].device, pass->parts[pair % count].device));
done:
    return status;
}

/* Sends what member i has written of operand j in the round before to all others. */
static kiln_status tell(struct ki_pass *pass, int i, int j) {
    const struct ki_rule *rule = &pass->rules->rule[j];
    const bool row = rule->role[(pass->shared->kind + pass->round - 1) % 2] == KI_MEMBER;
    const int64_t *first = pass->split->first;
    const kiln_matrix *from = ki_operand_of(pass->parts[i].slice, rule);
    const int64_t bytes = from->cols * ki_type_bytes(from->type), begin = (row ? i : first[i]) * bytes,
                  rows = row ? 1 : first[i + 1] - first[i];
    kiln_status status = KILN_OK;
    for (int to = 0; to < pass->split->count; to++)
        if (to != i && ki_takes_part(pass, to))
            TRY(ki_device_copy(pass->parts[i].device, pass->parts[to].device,
                               &ki_operand_of(pass->parts[to].slice, rule)->values, begin,
                               pass->parts[i].device, &from->values, begin, rows * bytes));
done:
    return status;
}

/* Results of the round before that others need go to them; on the CPU all have the same. */
static kiln_status exchange(struct ki_pass *pass) {
    kiln_status status = KILN_OK;
    if (ki_on_cpu(pass->device)) return KILN_OK;
    for (int i = 0; i < pass->split->count; i++)
        for (int j = 0; j < pass->rules->count; j++) {
            const enum ki_role was = pass->rules->rule[j].role[(pass->shared->kind + pass->round - 1) % 2];
            if (ki_takes_part(pass, i) && ki_pass_whole(pass, j) && (was == KI_GATHER || was == KI_MEMBER))
                TRY(tell(pass, i, j));
        }
    TRY(meet(pass));
done:
    return status;
}

static kiln_status run(struct ki_pass *pass) {
    const int count = pass->split->count;
    kiln_status status;
    ki_pass_choose(pass);
    TRY(ki_pass_room(pass));
    for (int i = 0; i < count; i++)
        if (ki_takes_part(pass, i)) TRY(ki_pass_prepare(pass, i));
    for (int j = 0; j < pass->rules->count; j++)
        if (pass->collected[j] && ki_pass_role(pass, j) == KI_COLUMN) TRY(ki_pass_collect(pass, j));
    if (pass->shared->rounds) TRY(meet(pass));
    for (; pass->round == 0 || pass->round < pass->shared->rounds; pass->round++) {
        if (pass->round > 0) TRY(exchange(pass));
        TRY(run_parts(pass));
    }
    TRY(finish(pass));
done:
    return status;
}

static void end(struct ki_pass *pass) {
    for (int i = 0; i < pass->split->count; i++) {
        struct ki_pass_part *part = &pass->parts[i];
        if (part->holds) ki_operands_release(part->device, part->held, KI_RULES_MOST);
        for (int j = 0; j < KI_RULES_MOST; j++) {
            kiln_matrix_free(part->sum[j]);
            kiln_matrix_free(part->moved[j]);
        }
    }
    ki_free(pass->parts);
    ki_free(pass->memory);
}

static kiln_status begin(struct ki_pass *pass) {
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

int ki_members_of(const kiln_device *device) {
    return device->group ? device->group->count : device->processes->count;
}

/* ---------------------------------------------------------------------------------- rows of operands */

/* Member i's rows to their places in the whole, behind what the first is about. */
static kiln_status fetch_rows(kiln_matrix *A, const struct ki_rows *rows, int i) {
    kiln_device *member = A->device->group->member[i];
    const struct ki_operand held = {rows->rows[i], false};
    const int64_t bytes = ki_pass_bytes(rows->rows[i]);
    kiln_status status;
    TRY(ki_operands_hold(member, &held, 1));
    status = ki_device_after(member, A->device);
    if (status == KILN_OK)
        status =
            ki_device_copy(member, A->device, &A->values, rows->first[i] * A->cols * ki_type_bytes(A->type),
                           member, &rows->rows[i]->values, 0, bytes);
    if (status == KILN_OK) status = ki_device_after(A->device, member);
    if (status == KILN_OK) A->device->group->sharing.rows_home_bytes += bytes;
    ki_operands_release(member, &held, 1);
done:
    return status;
}

/* Elements [first, first + count) to host memory. */
static kiln_status get_some(void *to, const kiln_matrix *A, int64_t first, int64_t count) {
    const struct ki_rows *rows = ki_rows_there(A);
    const int64_t element = ki_type_bytes(A->type);
    kiln_status status = KILN_OK;
    for (int i = 0; i < rows->count; i++) {
        const int64_t own = rows->first[i] * A->cols, begin = ki_max(first, own),
                      end = ki_min(first + count, rows->first[i + 1] * A->cols);
        char *at = (char *)to + (begin - first) * element;
        if (begin >= end) continue;
        if (i > 0)
            TRY(ki_elements_get(at, rows->rows[i], begin - own, end - begin));
        else
            TRY(ki_device_download(A->device, at, &A->values, begin * element, (end - begin) * element));
        if (i > 0) A->device->group->sharing.rows_home_bytes += (end - begin) * element;
    }
done:
    return status;
}

static kiln_status bring_home(kiln_matrix *A, void *to, int64_t first, int64_t count) {
    const struct ki_operand held = {A, false};
    const bool parts = true;
    const struct ki_rows *rows = ki_rows_there(A);
    kiln_status status;
    TRY(ki_operands_hold_parts(A->device, &held, &parts, 1));
    if (to) status = get_some(to, A, first, count);
    for (int i = 1; i < rows->count && status == KILN_OK && !to; i++)
        if (rows->rows[i]) status = fetch_rows(A, rows, i);
    if (status == KILN_OK && !to) {
        ki_matrix_drop_host(A);
        ki_away_end(A);
    }
    ki_operands_release(A->device, &held, 1);
done:
    return status;
}

/* X is as its parts lie. */
static kiln_status split_as_it_lies(struct ki_split *split, const kiln_matrix *X) {
    const struct ki_rows *rows = ki_rows_there(X);
    *split = (struct ki_split){.count = rows->count};
    memcpy(split->first, rows->first, sizeof split->first);
    for (int i = 0; i < rows->count; i++)
        split->X[i] = rows->rows[i] ? rows->rows[i] : (kiln_matrix *)(uintptr_t)X;
    return KILN_OK;
}

/* parts[j]: rows are used and written in parts, as these are what members have of operand j. What will be
 * away gets its record. */
static kiln_status list_operands(struct ki_operand operands[KI_RULES_MOST], bool parts[KI_RULES_MOST],
                                 const struct ki_pass *pass) {
    struct ki_away *away;
    kiln_status status = KILN_OK;
    ki_operands_list(operands, pass->rules, pass->shared->whole);
    for (int j = 0; j < pass->rules->count && !ki_on_cpu(pass->device); j++) {
        const kiln_matrix *A = operands[j].matrix;
        if (!A || ki_pass_role(pass, j) != KI_ROW) continue;
        const struct ki_rows *rows = ki_is_away(A) ? ki_rows_there(A) : NULL;
        parts[j] = !rows || memcmp(rows->first, pass->split->first, sizeof rows->first) == 0;
        if (operands[j].written) TRY(ki_away_record(&away, A));
    }
done:
    return status;
}

static void note_rows(const struct ki_pass *pass, kiln_status status) {
    for (int j = 0; j < pass->rules->count; j++) {
        const kiln_matrix *A = ki_pass_whole(pass, j);
        struct ki_away *away;
        if (!A) continue;
        if (status != KILN_OK)
            ki_copies_drop(A, ki_pass_writes(pass, j));
        else if (ki_pass_role(pass, j) == KI_ROW && ki_pass_writes(pass, j) && ki_rows_there(A) &&
                 ki_away_record(&away, A) == KILN_OK)
            away->bring = bring_home; /* not of an X without rows, of which no member has any */
    }
}

kiln_status ki_share(const struct ki_shared *shared) {
    struct ki_pass pass = {.shared = shared, .rules = shared->rules};
    struct ki_operand operands[KI_RULES_MOST];
    bool parts[KI_RULES_MOST] = {false};
    struct ki_split as_it_lies;
    const kiln_matrix *X;
    kiln_status status;
    memcpy(&X, (const char *)shared->whole + pass.rules->X, sizeof X);
    if (shared->cut != KI_AS_IT_LIES) TRY(ki_matrix_home(X));
    if (X->device->processes) return X->device->processes->share(shared);
    if (!shared->narrow) TRY(ki_matrix_widen(X));
    pass.device = X->device;
    TRY(ki_group_alive(pass.device));
    pass.device->group->sharing.operations++;
    pass.split = &as_it_lies;
    TRY(shared->cut == KI_AS_IT_LIES ? split_as_it_lies(&as_it_lies, X)
                                     : ki_split_of(&pass.split, X, shared->cut));
    TRY(list_operands(operands, parts, &pass));
    TRY(ki_operands_hold_parts(pass.device, operands, parts, KI_RULES_MOST));
    status = begin(&pass);
    if (status == KILN_OK) {
        status = run(&pass);
        end(&pass);
        note_rows(&pass, status);
    }
    ki_operands_release(pass.device, operands, KI_RULES_MOST);
done:
    return status;
}
