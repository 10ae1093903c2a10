/* A process's part of a shared operation (share.c): it gets its operands, runs, and sends what it has
 * written. */
#include <string.h>

#include "core/seams.h"
#include "pass/combine.h"
#include "processes/sharing.h"

struct serving {
    struct kiln_processes *p;
    const struct ki_order *order;
    const struct ki_rules *rules;
    kiln_matrix *X;
    kiln_matrix *operand[KI_RULES_MOST]; /* NULL: there is none, or it could not be made */
    int64_t *first;                      /* the cut, if it was sent */
    int64_t rows;                        /* this process's, or columns of an X that is cut so */
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
    *rows = operand->role == KI_ROW ? s->rows : operand->role == KI_ENTRY ? s->X->nnz : operand->rows;
    *cols = operand->role == KI_ENTRY ? 1 : operand->cols;
}

static kiln_status make_operand(struct serving *s, int j) {
    const struct ki_order_operand *operand = &s->order->share.operand[j];
    kiln_matrix *made;
    int64_t rows, cols;
    kiln_status status = KILN_OK;
    if (operand->role == KI_NO_ROLE || (operand->role == KI_SUM && !ki_adds_up(operand))) return KILN_OK;
    if (ki_is_passing(operand) || operand->made) {
        shape_of(s, j, &rows, &cols);
        TRY(ki_matrix_new(&made, s->p->device, operand->type, rows, cols));
        if (!ki_is_passing(operand)) TRY(ki_keep(s->p, operand->number, made));
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
    return ki_wire_values(s->p, ki_is_whole(operand) ? KI_BROADCAST : KI_RECEIVE, 0, s->operand[j], 0,
                          rows * cols * ki_type_bytes(operand->type), operand->type, &s->outcome);
}

static void fill_in(struct serving *s) {
    const int rank = s->p->transport.rank;
    memcpy(s->slice.bytes, s->order->share.whole, s->rules->bytes);
    memcpy(s->slice.bytes + s->rules->X, &s->X, sizeof s->X);
    for (int j = 0; j < s->rules->count; j++)
        ki_operand_set(s->slice.bytes, &s->rules->rule[j], s->operand[j]);
    if (s->order->share.sums) memcpy(s->slice.bytes + s->rules->sums, &s->sums, sizeof s->sums);
    if (!s->rules->place) return;
    const struct ki_offset place = {.row = s->first[rank],
                                    .entry = s->first[s->p->transport.count + 1 + rank],
                                    .rows = s->rows,
                                    .member = rank};
    memcpy(s->slice.bytes + s->rules->place, &place, sizeof place);
}

/* A process without rows adds zeros. */
static kiln_status add_nothing(struct serving *s) {
    kiln_status status = KILN_OK;
    for (int j = 0; j < s->rules->count; j++)
        if (ki_adds_up(&s->order->share.operand[j])) TRY(ki_set_all(s->operand[j], 0));
done:
    return status;
}

/* On what is held. */
static kiln_status run_part(struct serving *s) {
    const uintptr_t code = ki_address_of(s->order->share.run);
    struct ki_rounds rounds = {
        .p = s->p, .order = s->order, .rules = s->rules, .first = s->first, .slice = s->slice.bytes};
    kiln_status (*run)(const void *slice);
    if (s->order->share.rounds) {
        memcpy(&rounds.run_round, &code, sizeof rounds.run_round);
        return ki_rounds_run(&rounds, &s->outcome);
    }
    memcpy(&run, &code, sizeof run);
    if (s->outcome == KILN_OK) s->outcome = s->rows > 0 ? run(s->slice.bytes) : add_nothing(s);
    return KILN_OK;
}

static kiln_status run_held(struct serving *s) {
    struct ki_operand held[KI_RULES_MOST];
    bool holds = false;
    fill_in(s);
    if (s->outcome == KILN_OK && (s->rows > 0 || s->order->share.rounds)) {
        ki_operands_list(held, s->rules, s->slice.bytes);
        s->outcome = ki_operands_hold(s->p->device, held, KI_RULES_MOST);
        holds = s->outcome == KILN_OK;
    }
    const kiln_status status = run_part(s);
    if (holds) ki_operands_release(s->p->device, held, KI_RULES_MOST);
    return status;
}

static kiln_status send_results(struct serving *s) {
    const struct ki_order *order = s->order;
    const enum ki_way sum = order->share.ordered ? KI_ADD_UP_ORDERED : KI_ADD_UP;
    kiln_status status = KILN_OK;
    for (int j = 0; j < s->rules->count; j++) {
        const struct ki_order_operand *operand = &order->share.operand[j];
        const bool adds = ki_adds_up(operand);
        int64_t rows, cols;
        if (!adds && !ki_comes_back(operand)) continue;
        shape_of(s, j, &rows, &cols);
        TRY(ki_wire_values(s->p, adds ? sum : KI_SEND, 0, s->operand[j], 0,
                           rows * cols * ki_type_bytes(operand->type), operand->type, &s->outcome));
    }
    if (order->share.sums) TRY(ki_wire_sum(s->p, s->sums, order->share.sums, order->share.ordered));
done:
    return status;
}

static kiln_status begin(struct serving *s) {
    const struct ki_order *order = s->order;
    const uintptr_t rules = ki_address_of(order->share.rules);
    kiln_status status = KILN_OK;
    memcpy(&s->rules, &rules, sizeof rules);
    s->sums = ki_calloc((size_t)order->share.sums * sizeof *s->sums);
    s->first = ki_alloc((size_t)ki_cut_bytes(s->p));
    if (!s->sums || !s->first || !s->X)
        return ki_fail_nomem((size_t)order->share.sums * sizeof *s->sums, "sums");
    s->rows = order->share.cut == KI_BY_COLUMNS ? s->X->cols : s->X->rows;
    if (s->rules->place || order->share.rounds) TRY(ki_wire_broadcast(s->p, s->first, ki_cut_bytes(s->p)));
done:
    return status;
}

kiln_status ki_serve_share(struct kiln_processes *p, const struct ki_order *order) {
    struct serving s = {.p = p, .order = order, .X = ki_kept(p, order->share.X), .outcome = KILN_OK};
    kiln_status status;
    TRY(begin(&s));
    for (int turn = 0; turn < s.rules->count; turn++) {
        const int j = ki_in_turn(s.rules, turn);
        if (s.outcome == KILN_OK) s.outcome = make_operand(&s, j);
        TRY(receive_operand(&s, j));
    }
    TRY(run_held(&s));
    TRY(send_results(&s));
    TRY(ki_outcome_send(p, s.outcome));
done:
    for (int j = 0; s.rules && j < s.rules->count; j++)
        if (ki_is_passing(&order->share.operand[j])) kiln_matrix_free(s.operand[j]);
    ki_free(s.first);
    ki_free(s.sums);
    return status;
}
