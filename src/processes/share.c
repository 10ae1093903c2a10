/* An operation on an X whose rows processes have, such as a pass  w = sum_i X_i^T (v_i .* (X_i y)),  process
 * i on its rows X_i.
 *
 * As in a group (pass/group.c), the operands' roles say what each gets: ROW and ENTRY a part, sent once and
 * kept until the operand is written anew, COLUMN, GATHER and MEMBER a copy of all, OWN the same for this
 * time, SUM a place of its own that is added up in the leader. What processes write to rows goes back to the
 * whole at once, and what they write for all between rounds to all (rounds.c), so that no matrix is ever in
 * two states. The operation's struct travels as it is; pointers in it are replaced. */
#include <string.h>

#include "core/seams.h"
#include "pass/combine.h"
#include "processes/digest.h"
#include "processes/sharing.h"

/* What the others keep of an operand: what a slot of it holds. */
struct copies {
    struct kiln_processes *processes;
    int number;
    int64_t identity; /* of X's cut, for parts; 0 for copies of all */
    uint64_t digest;  /* on the CPU: of the values that they have */
};

static void free_copies(kiln_device *device, void *data) {
    struct copies *copies = data;
    (void)device;
    ki_number_drop(copies->processes, copies->number);
    ki_free(copies);
}

static const struct ki_slot_kind parts_kind = {.name = "parts of an operand in processes",
                                               .drop = free_copies,
                                               .compared = true},
                                 copies_kind = {.name = "copies of an operand in processes",
                                                .drop = free_copies,
                                                .compared = true};

static const struct ki_slot_kind *kind_of(const struct ki_order_operand *operand) {
    return ki_is_part(operand) ? &parts_kind : &copies_kind;
}

struct sharing {
    struct kiln_processes *p;
    const struct ki_shared *shared;
    const struct ki_rules *rules;
    const kiln_matrix *X;
    const struct ki_cut *cut;
    struct ki_order order;
};

static kiln_matrix *whole(const struct sharing *s, int j) {
    return ki_operand_of(s->shared->whole, &s->rules->rule[j]);
}

/* On the CPU; elsewhere whatever writes to an operand drops its slots (core/memory.c). */
static uint64_t digest_of(const kiln_matrix *A) {
    return ki_on_cpu(A->device) ? ki_digest(ki_host(&A->values), A->nnz * ki_type_bytes(A->type)) : 0;
}

/* The number under which the others have operand j, or will have it. *old: what they have is not what it is
 * now. */
static kiln_status number_of(struct sharing *s, int j, bool *old) {
    struct ki_order_operand *operand = &s->order.share.operand[j];
    const struct ki_slot_kind *kind = kind_of(operand);
    const int64_t identity = operand->role == KI_ENTRY ? s->cut->identity
                             : operand->role == KI_ROW ? s->cut->rows
                                                       : 0;
    const kiln_matrix *A = whole(s, j);
    struct copies *copies = ki_slot_get(A, kind), *made = NULL;
    kiln_status status = KILN_OK;
    if (copies && copies->identity != identity) { /* of another X, which is cut elsewhere */
        ki_slot_drop(A, kind);
        copies = NULL;
    }
    const uint64_t digest = digest_of(A);
    *old = !copies || copies->digest != digest;
    operand->made = !copies;
    if (copies) {
        operand->number = copies->number;
        copies->digest = digest;
        return KILN_OK;
    }
    made = ki_alloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, kind->name);
    *made = (struct copies){.processes = s->p, .identity = identity, .digest = digest};
    TRY(ki_number_take(&made->number, s->p));
    operand->number = made->number;
    status = ki_slot_put(A, kind, made, 0);
    if (status == KILN_OK) return KILN_OK;
    ki_number_drop(s->p, made->number);
done:
    ki_free(made);
    return status;
}

static kiln_status describe(struct sharing *s, int j) {
    struct ki_order_operand *operand = &s->order.share.operand[j];
    const struct ki_rule *rule = &s->rules->rule[j];
    const kiln_matrix *A = whole(s, j);
    kiln_status status = KILN_OK;
    bool old;
    if (!A || rule->role[s->shared->kind] == KI_NO_ROLE) return KILN_OK;
    *operand = (struct ki_order_operand){.role = rule->role[s->shared->kind],
                                         .use = rule->use,
                                         .type = A->type,
                                         .rows = A->rows,
                                         .cols = A->cols};
    if (operand->role == KI_SUM) return KILN_OK;
    if (operand->role == KI_OWN) {
        operand->sent = true;
        return KILN_OK;
    }
    if (A->here) { /* entries that lie in the processes as X's do */
        const struct ki_cut *cut;
        if (operand->role != KI_ENTRY) return ki_matrix_fail_away(A);
        TRY(ki_cut_of(&cut, A, KI_BY_ROWS));
        operand->number = cut->number;
        operand->away = true;
        return KILN_OK;
    }
    TRY(number_of(s, j, &old));
    operand->sent = old && (rule->use == KI_READS || (rule->use == KI_CHANGES && !s->shared->fresh));
done:
    return status;
}

static kiln_status make_order(struct sharing *s) {
    const struct ki_shared *shared = s->shared;
    kiln_status status = KILN_OK;
    if (s->rules->bytes > KI_ORDER_STRUCT)
        return ki_fail(KILN_ERR_INTERNAL, "an operation of %zu bytes", s->rules->bytes);
    s->order.kind = KI_ORDER_SHARE;
    s->order.share.rules = ki_place_of((uintptr_t)s->rules);
    s->order.share.run = ki_place_of(shared->rounds ? (uintptr_t)shared->run_round : (uintptr_t)shared->run);
    s->order.share.rounds = shared->rounds;
    s->order.share.cut = shared->cut;
    s->order.share.kind = shared->kind;
    s->order.share.X = s->cut->number;
    s->order.share.fresh = shared->fresh;
    s->order.share.ordered = s->p->device->options.deterministic;
    s->order.share.sums = shared->sums;
    memcpy(s->order.share.whole, shared->whole, s->rules->bytes);
    for (int turn = 0; turn < s->rules->count; turn++) TRY(describe(s, ki_in_turn(s->rules, turn)));
done:
    return status;
}

/* Operand j as far as process i has to do with it. */
static kiln_status part_between(struct sharing *s, enum ki_way way, int i, int j, kiln_status *outcome) {
    const struct ki_order_operand *operand = &s->order.share.operand[j];
    const bool entries = operand->role == KI_ENTRY;
    const int64_t *first = entries ? s->cut->entry : s->cut->first;
    const int64_t one = (entries ? 1 : operand->cols) * ki_type_bytes(operand->type);
    return ki_wire_values(s->p, way, i, whole(s, j), first[i] * one, (first[i + 1] - first[i]) * one,
                          operand->type, outcome);
}

static int64_t bytes_of(const kiln_matrix *A) {
    return A->nnz * ki_type_bytes(A->type);
}

static kiln_status send_operands(struct sharing *s, kiln_status *outcome) {
    kiln_status status = KILN_OK;
    for (int turn = 0; turn < s->rules->count; turn++) {
        const int j = ki_in_turn(s->rules, turn);
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        kiln_matrix *A = whole(s, j);
        if (!operand->sent) continue;
        if (ki_is_whole(operand))
            TRY(ki_wire_values(s->p, KI_BROADCAST, 0, A, 0, bytes_of(A), A->type, outcome));
        for (int i = 1; i < s->p->transport.count && ki_is_part(operand); i++)
            TRY(part_between(s, KI_SEND, i, j, outcome));
    }
done:
    return status;
}

/* The leader's own rows: its sums and what it writes to rows are the beginning of the whole's. What is whole
 * everywhere it writes through views: to write the whole itself would drop what says that the others have
 * it. */
static kiln_status run_own(struct sharing *s, kiln_status *outcome) {
    kiln_matrix views[KI_RULES_MOST];
    union {
        max_align_t aligned;
        char bytes[KI_ORDER_STRUCT];
    } slice;
    ki_slice(&slice, views, s->rules, s->shared->kind, s->shared->whole, s->cut->here,
             (struct ki_offset){.rows = s->cut->first[1], .leads = true});
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        if (operand->away) ki_operand_set(&slice, &s->rules->rule[j], whole(s, j)->here);
        if (!ki_is_whole(operand) || !(operand->use & KI_WRITES)) continue;
        views[j] = *whole(s, j);
        views[j].view = true;
        views[j].slots = NULL;
        ki_operand_set(&slice, &s->rules->rule[j], &views[j]);
    }
    if (!s->shared->rounds) {
        if (*outcome == KILN_OK) *outcome = s->shared->run(&slice);
        return KILN_OK;
    }
    return ki_rounds_run(&(struct ki_rounds){.p = s->p,
                                             .order = &s->order,
                                             .rules = s->rules,
                                             .first = s->cut->first,
                                             .run_round = s->shared->run_round,
                                             .slice = &slice},
                         outcome);
}

static kiln_status take_results(struct sharing *s, kiln_status *outcome) {
    const enum ki_way sum = s->order.share.ordered ? KI_ADD_UP_ORDERED : KI_ADD_UP;
    kiln_status status = KILN_OK;
    double *sums;
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        kiln_matrix *A = whole(s, j);
        if (ki_adds_up(operand)) TRY(ki_wire_values(s->p, sum, 0, A, 0, bytes_of(A), A->type, outcome));
        for (int i = 1; i < s->p->transport.count && ki_comes_back(operand); i++)
            TRY(part_between(s, KI_RECEIVE, i, j, outcome));
    }
    if (!s->shared->sums) goto done;
    memcpy(&sums, (const char *)s->shared->whole + s->rules->sums, sizeof sums);
    TRY(ki_wire_sum(s->p, sums, s->shared->sums, s->order.share.ordered));
done:
    return status;
}

/* What processes have written to rows, or for all, is what they have. */
static void renew_digests(struct sharing *s) {
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        const bool kept = operand->role != KI_NO_ROLE && operand->role != KI_SUM && !ki_is_passing(operand);
        if (!kept || operand->away || !(operand->use & KI_WRITES)) continue;
        struct copies *copies = ki_slot_get(whole(s, j), kind_of(operand));
        if (copies) copies->digest = digest_of(whole(s, j));
    }
}

/* From the order on both sides do their part of every exchange, whatever happened before. */
static kiln_status exchange(struct sharing *s) {
    kiln_status status, outcome = KILN_OK;
    TRY(ki_order_send(s->p, &s->order));
    if (s->rules->place || s->shared->rounds) TRY(ki_wire_broadcast(s->p, s->cut->first, ki_cut_bytes(s->p)));
    TRY(send_operands(s, &outcome));
    TRY(run_own(s, &outcome));
    TRY(take_results(s, &outcome));
    TRY(ki_outcomes_take(s->p, outcome));
    renew_digests(s);
done:
    return status;
}

/* On the CPU a written operand keeps its slots of copies and parts, whose digests are renewed, and loses all
 * others. */
static void list_operands(struct ki_operand operands[KI_RULES_MOST], const struct sharing *s) {
    ki_operands_list(operands, s->rules, s->shared->whole);
    for (int j = 0; j < s->rules->count; j++) {
        struct ki_operand *operand = &operands[j];
        if (operand->matrix && operand->matrix->here) operand->matrix = NULL; /* held where it lies */
        if (!operand->matrix || !operand->written || !ki_on_cpu(s->p->device)) continue;
        ki_slots_written(operand->matrix);
        operand->written = false;
    }
}

kiln_status ki_processes_share(const struct ki_shared *shared) {
    struct sharing s = {.shared = shared, .rules = shared->rules};
    struct ki_operand operands[KI_RULES_MOST];
    kiln_status status;
    memcpy(&s.X, (const char *)shared->whole + s.rules->X, sizeof s.X);
    s.p = (struct kiln_processes *)s.X->device->processes;
    TRY(ki_device_alive(s.p->device));
    TRY(ki_cut_of(&s.cut, s.X, shared->cut));
    list_operands(operands, &s);
    TRY(ki_operands_hold(s.p->device, operands, KI_RULES_MOST));
    status = make_order(&s);
    if (status == KILN_OK) status = exchange(&s);
    for (int j = 0; j < s.rules->count && status != KILN_OK; j++)
        if (whole(&s, j)) { /* what was begun may not be whole */
            ki_slot_drop(whole(&s, j), &parts_kind);
            ki_slot_drop(whole(&s, j), &copies_kind);
        }
    ki_operands_release(s.p->device, operands, KI_RULES_MOST);
done:
    return status;
}
