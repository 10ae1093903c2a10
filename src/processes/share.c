/* An operation on an X whose rows processes have, such as a pass  w = sum_i X_i^T (v_i .* (X_i y)),  process
 * i on its rows X_i.
 *
 * As in a group (pass/group.c), the operands' roles say what each gets: ROW and ENTRY a part, sent once and
 * kept until the operand is written anew, COLUMN, GATHER and MEMBER a copy of all, OWN the same for this
 * time, SUM a place of its own that is added up in the leader. What processes write to rows stays with them
 * until somebody asks for the whole (core/home.h); what they write to entries goes back at once, and what
 * they write for all between rounds to all (rounds.c). The operation's struct travels as it is; pointers in
 * it are replaced. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "pass/combine.h"
#include "processes/digest.h"
#include "processes/sharing.h"
#include "core/home.h"

/* Holds what the others keep of an operand: what a slot of it holds. */
struct copies {
    struct kiln_processes *processes;
    int number;
    int64_t identity;  /* of X's cut, for parts; 0 for copies of all */
    uint64_t digest;   /* on the CPU: of the values that they have */
    struct ki_cut cut; /* of rows: where those of each process begin */
    kiln_matrix here;  /* the leader's, a view */
};

static void free_copies(kiln_device *device, void *data) {
    struct copies *copies = data;
    (void)device;
    ki_number_drop(copies->processes, copies->number);
    ki_free(copies->cut.first);
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

/* A row operand is cut as X is. */
static kiln_status copy_cut(struct copies *copies, const struct sharing *s) {
    const int64_t bytes = ki_cut_bytes(s->p);
    int64_t *first = ki_alloc((size_t)bytes);
    if (!first) return ki_fail_nomem((size_t)bytes, "the rows of processes");
    memcpy(first, s->cut->first, (size_t)bytes);
    copies->cut = (struct ki_cut){.processes = s->p,
                                  .number = copies->number,
                                  .rows = s->cut->rows,
                                  .first = first,
                                  .entry = first + s->p->transport.count + 1,
                                  .here = &copies->here};
    return KILN_OK;
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
    const uint64_t digest = ki_is_away(A) ? 0 : digest_of(A);
    *old = !ki_is_away(A) && (!copies || copies->digest != digest);
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
    status = operand->role == KI_ROW ? copy_cut(made, s) : KILN_OK;
    if (status == KILN_OK) status = ki_slot_put(A, kind, made, 0);
    if (status == KILN_OK) return KILN_OK;
    ki_number_drop(s->p, made->number);
    ki_free(made->cut.first);
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

/* Brings what the other processes have of elements [first, first + count), of which process i has those from
 * own[i] on: to the whole, or to host memory. */
static kiln_status receive_elements(kiln_matrix *A, const struct copies *copies, void *to, int64_t first,
                                    int64_t count) {
    struct kiln_processes *p = copies->processes;
    const int64_t element = ki_type_bytes(A->type);
    struct ki_order order = {.kind = KI_ORDER_FETCH, .part = KI_VALUES, .look = copies->number, .some = true};
    kiln_status status, outcome = KILN_OK;
    TRY(ki_order_send(p, &order));
    for (int i = 1; i < p->transport.count; i++) {
        const int64_t own = copies->cut.first[i] * A->cols, begin = ki_max(first, own),
                      end = ki_max(begin, ki_min(first + count, copies->cut.first[i + 1] * A->cols));
        const int64_t some[2] = {begin - own, end - begin};
        TRY(ki_wire_send(p, i, some, sizeof some));
        TRY(to ? ki_wire_receive(p, i, (char *)to + (begin - first) * element, some[1] * element)
               : ki_wire_values(p, KI_RECEIVE, i, A, begin * element, some[1] * element, A->type, &outcome));
        p->calls.sharing.rows_home_bytes += some[1] * element;
    }
    TRY(ki_outcomes_take(p, outcome));
done:
    return status;
}

/* The leader's own of some elements. */
static kiln_status get_own(void *to, kiln_matrix *A, const struct copies *copies, int64_t first,
                           int64_t count) {
    const int64_t element = ki_type_bytes(A->type),
                  end = ki_min(first + count, copies->cut.first[1] * A->cols);
    if (end <= first) return KILN_OK;
    return ki_device_download(A->device, to, &A->values, first * element, (end - first) * element);
}

static kiln_status bring_home(kiln_matrix *A, void *to, int64_t first, int64_t count) {
    const struct ki_operand held = {A, false};
    const bool parts = true;
    struct copies *copies = ki_slot_get(A, &parts_kind);
    kiln_status status;
    TRY(ki_operands_hold_parts(A->device, &held, &parts, 1));
    status = receive_elements(A, copies, to, first, count);
    if (status == KILN_OK && to) status = get_own(to, A, copies, first, count);
    if (status == KILN_OK && !to) {
        ki_matrix_drop_host(A);
        ki_away_end(A);
        copies->digest = digest_of(A);
    }
    ki_operands_release(A->device, &held, 1);
done:
    return status;
}

/* Processes alone have what they wrote to rows; what they wrote for all is what everybody has. */
static void note_written(struct sharing *s) {
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &s->order.share.operand[j];
        const bool kept = operand->role != KI_NO_ROLE && operand->role != KI_SUM && !ki_is_passing(operand);
        kiln_matrix *A = whole(s, j);
        if (!kept || operand->away || !(operand->use & KI_WRITES)) continue;
        struct copies *copies = ki_slot_get(A, kind_of(operand));
        struct ki_away *away;
        if (ki_stays(operand) && ki_away_record(&away, A) == KILN_OK) {
            away->bring = bring_home;
            ki_slot_drop(A, &copies_kind);
        } else if (copies) {
            copies->digest = digest_of(A);
        }
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
    note_written(s);
done:
    return status;
}

/* Returns what processes have of A's rows, if they have them as X's are cut. */
static const struct copies *rows_there(const struct sharing *s, const kiln_matrix *A) {
    const struct copies *copies = ki_slot_get(A, &parts_kind);
    return copies && copies->identity == s->cut->rows ? copies : NULL;
}

/* parts[j]: operand j is used and written in parts. What will be away gets its record. On the CPU a written
 * operand keeps its slots of copies and parts, whose digests are renewed, and loses all others; so does
 * elsewhere what is written in parts. */
static kiln_status list_operands(struct ki_operand operands[KI_RULES_MOST], bool parts[KI_RULES_MOST],
                                 const struct sharing *s) {
    struct ki_away *away;
    kiln_status status = KILN_OK;
    ki_operands_list(operands, s->rules, s->shared->whole);
    for (int j = 0; j < s->rules->count; j++) {
        struct ki_operand *operand = &operands[j];
        const bool row = s->rules->rule[j].role[s->shared->kind] == KI_ROW;
        if (operand->matrix && operand->matrix->here) operand->matrix = NULL; /* held where it lies */
        if (!operand->matrix) continue;
        parts[j] = row && (!ki_is_away(operand->matrix) || rows_there(s, operand->matrix));
        if (row && operand->written) TRY(ki_away_record(&away, operand->matrix));
        if (!operand->written || !ki_on_cpu(s->p->device)) continue;
        ki_slots_written(operand->matrix);
        operand->written = false;
    }
done:
    return status;
}

/* A matrix that was being written may not be whole; one that was only read is what it was. */
static void drop_copies(const struct sharing *s) {
    for (int j = 0; j < s->rules->count; j++) {
        kiln_matrix *A = whole(s, j);
        if (!A) continue;
        ki_slot_drop(A, &copies_kind);
        if (ki_is_away(A) && !(s->rules->rule[j].use & KI_WRITES)) continue;
        ki_slot_drop(A, &parts_kind);
        ki_away_end(A);
    }
}

/* X's rows, which are processes' already. */
static kiln_status cut_as_it_lies(struct sharing *s) {
    struct copies *copies = ki_slot_get(s->X, &parts_kind);
    copies->here = *s->X;
    copies->here.view = true;
    copies->here.slots = NULL;
    copies->here.rows = copies->cut.first[1];
    copies->here.nnz = copies->here.rows * s->X->cols;
    s->cut = &copies->cut;
    return KILN_OK;
}

kiln_status ki_processes_share(const struct ki_shared *shared) {
    struct sharing s = {.shared = shared, .rules = shared->rules};
    struct ki_operand operands[KI_RULES_MOST];
    bool parts[KI_RULES_MOST] = {false};
    kiln_status status;
    memcpy(&s.X, (const char *)shared->whole + s.rules->X, sizeof s.X);
    s.p = (struct kiln_processes *)s.X->device->processes;
    TRY(ki_device_alive(s.p->device));
    TRY(shared->cut == KI_AS_IT_LIES ? cut_as_it_lies(&s) : ki_cut_of(&s.cut, s.X, shared->cut));
    s.p->calls.sharing.operations++;
    TRY(list_operands(operands, parts, &s));
    TRY(ki_operands_hold_parts(s.p->device, operands, parts, KI_RULES_MOST));
    status = make_order(&s);
    if (status == KILN_OK) status = exchange(&s);
    if (status != KILN_OK) drop_copies(&s);
    ki_operands_release(s.p->device, operands, KI_RULES_MOST);
done:
    return status;
}
