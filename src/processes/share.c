/* An operation on an X whose rows processes have, such as a pass  w = sum_i X_i^T (v_i .* (X_i y)),  process i on its rows X_i.
 *
 * As in a group (pass/group.c), the operands' roles say what each gets: ROW and ENTRY a part, sent once and kept until the operand is
 * written anew, COLUMN a copy of all, SUM a place of its own that is added up in the leader. What processes write to rows goes back to
 * the whole at once, so that no matrix is ever in two states. The operation's struct travels as it is; pointers in it are replaced. */
#include <string.h>

#include "core/seams.h"
#include "pass/combine.h"
#include "pass/group.h"
#include "processes/digest.h"
#include "processes/processes.h"

/* ---------------------------------------------------------------------------------------- both sides */

/* Code and tables lie at the same distance from each other in all processes, which run the same build (join.c sees to it). */
static intptr_t place_of(uintptr_t address) {
    return (intptr_t)(address - (uintptr_t)&ki_chain_rules);
}

static uintptr_t address_of(intptr_t place) {
    return (uintptr_t)&ki_chain_rules + (uintptr_t)place;
}

static bool is_part(const struct ki_order_operand *operand) {
    return operand->role == KI_ROW || operand->role == KI_ENTRY;
}

static bool adds_up(const struct ki_order_operand *operand) {
    return operand->role == KI_SUM && (operand->use & KI_WRITES);
}

/* What is only read comes before what is written, which may be the same matrix: the j-th operand in that order, from 0. */
static int in_turn(const struct ki_rules *rules, int j) {
    for (int written = 0; written < 2; written++)
        for (int i = 0; i < rules->count; i++)
            if (((rules->rule[i].use & KI_WRITES) != 0) == written && j-- == 0) return i;
    return 0;
}

/* -------------------------------------------------------------------------------------------- leader */

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
                                               .drop = free_copies};
static const struct ki_slot_kind copies_kind = {.name = "copies of an operand in processes",
                                                .drop = free_copies};

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

/* The number under which the others have operand j, or will have it. *old: what they have is not what it is now. */
static kiln_status number_of(struct sharing *s, int j, bool *old) {
    struct ki_order_operand *operand = &s->order.share.operand[j];
    const struct ki_slot_kind *kind = is_part(operand) ? &parts_kind : &copies_kind;
    const int64_t identity = is_part(operand) ? s->cut->identity : 0;
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
    s->order.share.rules = place_of((uintptr_t)s->rules);
    s->order.share.run = place_of((uintptr_t)shared->run);
    s->order.share.kind = shared->kind;
    s->order.share.X = s->cut->number;
    s->order.share.fresh = shared->fresh;
    s->order.share.ordered = s->p->device->options.deterministic;
    s->order.share.sums = shared->sums;
    memcpy(s->order.share.whole, shared->whole, s->rules->bytes);
    for (int turn = 0; turn < s->rules->count; turn++) TRY(describe(s, in_turn(s->rules, turn)));
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
        const int j = in_turn(s->rules, turn);
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        kiln_matrix *A = whole(s, j);
        if (!operand->sent) continue;
        if (operand->role == KI_COLUMN)
            TRY(ki_wire_values(s->p, KI_BROADCAST, 0, A, 0, bytes_of(A), A->type, outcome));
        for (int i = 1; i < s->p->transport.count && is_part(operand); i++)
            TRY(part_between(s, KI_SEND, i, j, outcome));
    }
done:
    return status;
}

/* The leader's own rows: its sums and what it writes to rows are the beginning of the whole's. */
static kiln_status run_own(const struct sharing *s) {
    kiln_matrix views[KI_RULES_MOST];
    union {
        max_align_t aligned;
        char bytes[KI_ORDER_STRUCT];
    } slice;
    ki_slice(&slice, views, s->rules, s->shared->kind, s->shared->whole, s->cut->here,
             (struct ki_offset){.rows = s->cut->here->rows, .leads = true});
    return s->shared->run(&slice);
}

static kiln_status take_results(struct sharing *s, kiln_status *outcome) {
    const enum ki_way sum = s->order.share.ordered ? KI_ADD_UP_ORDERED : KI_ADD_UP;
    kiln_status status = KILN_OK;
    double *sums;
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        kiln_matrix *A = whole(s, j);
        if (adds_up(operand)) TRY(ki_wire_values(s->p, sum, 0, A, 0, bytes_of(A), A->type, outcome));
        for (int i = 1; i < s->p->transport.count && is_part(operand) && (operand->use & KI_WRITES); i++)
            TRY(part_between(s, KI_RECEIVE, i, j, outcome));
    }
    if (!s->shared->sums) goto done;
    memcpy(&sums, (const char *)s->shared->whole + s->rules->sums, sizeof sums);
    TRY(ki_wire_sum(s->p, sums, s->shared->sums, s->order.share.ordered));
done:
    return status;
}

/* What processes have written to rows is what they have. */
static void renew_digests(struct sharing *s) {
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        struct copies *copies = is_part(operand) ? ki_slot_get(whole(s, j), &parts_kind) : NULL;
        if (copies && (operand->use & KI_WRITES)) copies->digest = digest_of(whole(s, j));
    }
}

/* From the order on both sides do their part of every exchange, whatever happened before. */
static kiln_status exchange(struct sharing *s) {
    kiln_status status, outcome = KILN_OK;
    TRY(ki_order_send(s->p, &s->order));
    TRY(send_operands(s, &outcome));
    if (outcome == KILN_OK) outcome = run_own(s);
    TRY(take_results(s, &outcome));
    TRY(ki_outcomes_take(s->p, outcome));
    renew_digests(s);
done:
    return status;
}

kiln_status ki_processes_share(const struct ki_shared *shared) {
    struct sharing s = {.shared = shared, .rules = shared->rules};
    struct ki_operand operands[KI_RULES_MOST];
    kiln_status status;
    memcpy(&s.X, (const char *)shared->whole + s.rules->X, sizeof s.X);
    s.p = (struct kiln_processes *)s.X->device->processes;
    TRY(ki_device_alive(s.p->device));
    TRY(ki_cut_of(&s.cut, s.X));
    ki_operands_list(operands, s.rules, shared->whole);
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

/* ---------------------------------------------------------------------------------------- the others */

struct serving {
    struct kiln_processes *p;
    const struct ki_order *order;
    const struct ki_rules *rules;
    kiln_matrix *X;
    kiln_matrix *operand[KI_RULES_MOST]; /* NULL: there is none, or it could not be made */
    double *sums;
    kiln_status outcome;
    union {
        max_align_t aligned;
        char bytes[KI_ORDER_STRUCT];
    } slice;
};

/* The shape of this process's part. */
static void shape_of(const struct serving *s, int j, int64_t *rows, int64_t *cols) {
    const struct ki_order_operand *operand = &s->order->share.operand[j];
    *rows = operand->role == KI_ROW ? s->X->rows : operand->role == KI_ENTRY ? s->X->nnz : operand->rows;
    *cols = operand->role == KI_ENTRY ? 1 : operand->cols;
}

static kiln_status make_operand(struct serving *s, int j) {
    const struct ki_order_operand *operand = &s->order->share.operand[j];
    kiln_matrix *made;
    int64_t rows, cols;
    kiln_status status = KILN_OK;
    if (operand->role == KI_NO_ROLE || (operand->role == KI_SUM && !adds_up(operand))) return KILN_OK;
    if (operand->role == KI_SUM || operand->made) {
        shape_of(s, j, &rows, &cols);
        TRY(ki_matrix_new(&made, s->p->device, operand->type, rows, cols));
        if (operand->role != KI_SUM) TRY(ki_keep(s->p, operand->number, made));
        s->operand[j] = made;
        return KILN_OK;
    }
    s->operand[j] = ki_kept(s->p, operand->number);
    if (!s->operand[j]) return ki_fail(KILN_ERR_INTERNAL, "an operand that this process does not have");
done:
    return status;
}

static kiln_status receive_operand(struct serving *s, int j) {
    const struct ki_order_operand *operand = &s->order->share.operand[j];
    int64_t rows, cols;
    if (!operand->sent) return KILN_OK;
    shape_of(s, j, &rows, &cols);
    return ki_wire_values(s->p, operand->role == KI_COLUMN ? KI_BROADCAST : KI_RECEIVE, 0, s->operand[j], 0,
                          rows * cols * ki_type_bytes(operand->type), operand->type, &s->outcome);
}

static kiln_status run_held(struct serving *s, kiln_status (*run)(const void *slice)) {
    struct ki_operand held[KI_RULES_MOST];
    kiln_status status;
    ki_operands_list(held, s->rules, s->slice.bytes);
    TRY(ki_operands_hold(s->p->device, held, KI_RULES_MOST));
    status = run(s->slice.bytes);
    ki_operands_release(s->p->device, held, KI_RULES_MOST);
done:
    return status;
}

/* A process without rows adds zeros. */
static kiln_status run_part(struct serving *s) {
    kiln_status status = KILN_OK;
    kiln_status (*run)(const void *slice);
    const uintptr_t code = address_of(s->order->share.run);
    memcpy(&run, &code, sizeof run);
    memcpy(s->slice.bytes, s->order->share.whole, s->rules->bytes);
    memcpy(s->slice.bytes + s->rules->X, &s->X, sizeof s->X);
    for (int j = 0; j < s->rules->count; j++)
        ki_operand_set(s->slice.bytes, &s->rules->rule[j], s->operand[j]);
    if (s->order->share.sums) memcpy(s->slice.bytes + s->rules->sums, &s->sums, sizeof s->sums);
    if (s->X->rows > 0) return run_held(s, run);
    for (int j = 0; j < s->rules->count; j++)
        if (adds_up(&s->order->share.operand[j])) TRY(ki_set_all(s->operand[j], 0));
done:
    return status;
}

static kiln_status send_results(struct serving *s) {
    const struct ki_order *order = s->order;
    const enum ki_way sum = order->share.ordered ? KI_ADD_UP_ORDERED : KI_ADD_UP;
    kiln_status status = KILN_OK;
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &order->share.operand[j];
        const bool adds = adds_up(operand);
        int64_t rows, cols;
        if (!adds && !(is_part(operand) && (operand->use & KI_WRITES))) continue;
        shape_of(s, j, &rows, &cols);
        TRY(ki_wire_values(s->p, adds ? sum : KI_SEND, 0, s->operand[j], 0,
                           rows * cols * ki_type_bytes(operand->type), operand->type, &s->outcome));
    }
    if (order->share.sums) TRY(ki_wire_sum(s->p, s->sums, order->share.sums, order->share.ordered));
done:
    return status;
}

kiln_status ki_serve_share(struct kiln_processes *p, const struct ki_order *order) {
    struct serving s = {.p = p, .order = order, .X = ki_kept(p, order->share.X), .outcome = KILN_OK};
    const uintptr_t rules = address_of(order->share.rules);
    kiln_status status;
    memcpy(&s.rules, &rules, sizeof rules);
    s.sums = ki_calloc((size_t)order->share.sums * sizeof *s.sums);
    if (!s.sums || !s.X) return ki_fail_nomem((size_t)order->share.sums * sizeof *s.sums, "sums");
    for (int turn = 0; turn < s.rules->count; turn++) {
        const int j = in_turn(s.rules, turn);
        if (s.outcome == KILN_OK) s.outcome = make_operand(&s, j);
        TRY(receive_operand(&s, j));
    }
    if (s.outcome == KILN_OK) s.outcome = run_part(&s);
    TRY(send_results(&s));
    TRY(ki_outcome_send(p, s.outcome));
done:
    for (int j = 0; j < s.rules->count; j++)
        if (adds_up(&order->share.operand[j])) kiln_matrix_free(s.operand[j]);
    ki_free(s.sums);
    return status;
}
