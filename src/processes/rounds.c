/* An operation in rounds, such as steps of PageRank: after each the processes tell each other what they have
 * written of operands that all have as a whole (KI_GATHER: their rows; KI_MEMBER: their row). Each sends to
 * all at once, and nothing passes through the leader. */
#include "core/seams.h"
#include "processes/sharing.h"

struct telling {
    const struct ki_rounds *rounds;
    const struct ki_order_operand *operand;
    kiln_matrix *A; /* NULL: this process could not make it */
    char *memory;   /* its values: on the CPU its own, elsewhere a copy */
    bool copied;
    bool member; /* a row for each process */
};

static int64_t row_bytes(const struct telling *t) {
    return t->operand->cols * ki_type_bytes(t->operand->type);
}

static int64_t rows_from(const struct telling *t, int i) {
    return t->member ? 1 : ki_share_rows(t->rounds->first, i);
}

static int64_t place_from(const struct telling *t, int i) {
    return (t->member ? i : t->rounds->first[i]) * row_bytes(t);
}

/* Whoever has no memory for what comes cannot go on, and so nobody can. */
static kiln_status open_memory(struct telling *t) {
    const int64_t bytes = t->operand->rows * row_bytes(t);
    if (t->A && ki_on_cpu(t->A->device)) {
        t->memory = ki_host(&t->A->values);
        return KILN_OK;
    }
    t->copied = true;
    t->memory = ki_alloc((size_t)bytes);
    if (t->memory) return KILN_OK;
    t->rounds->p->broken = true;
    return ki_fail_nomem((size_t)bytes, "what processes exchange");
}

static kiln_status download_own(const struct telling *t, int own) {
    if (!t->A || !t->copied) return KILN_OK;
    return ki_device_download(t->A->device, t->memory + place_from(t, own), &t->A->values, place_from(t, own),
                              rows_from(t, own) * row_bytes(t));
}

static kiln_status upload_theirs(const struct telling *t, int own) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < t->rounds->p->transport.count && t->A && t->copied; i++)
        if (i != own && rows_from(t, i) > 0)
            TRY(ki_device_upload(t->A->device, &t->A->values, place_from(t, i), t->memory + place_from(t, i),
                                 rows_from(t, i) * row_bytes(t)));
done:
    return status;
}

static kiln_status tell(struct telling *t, kiln_status *outcome) {
    struct kiln_processes *p = t->rounds->p;
    const int own = p->transport.rank;
    kiln_status status;
    TRY(open_memory(t));
    if (*outcome == KILN_OK) *outcome = download_own(t, own);
    for (int i = 0; i < p->transport.count; i++)
        p->exchange[i] = (struct ki_exchange){.out = t->memory + place_from(t, own),
                                              .in = t->memory + place_from(t, i),
                                              .out_bytes = rows_from(t, own) * row_bytes(t),
                                              .in_bytes = rows_from(t, i) * row_bytes(t)};
    TRY(ki_wire_exchange(p));
    if (*outcome == KILN_OK) *outcome = upload_theirs(t, own);
done:
    if (t->copied) ki_free(t->memory);
    return status;
}

/* Tells what the round before has written for all. */
static kiln_status tell_all(const struct ki_rounds *rounds, int64_t round, kiln_status *outcome) {
    kiln_status status = KILN_OK;
    for (int j = 0; j < rounds->rules->count; j++) {
        const struct ki_rule *rule = &rounds->rules->rule[j];
        const struct ki_order_operand *operand = &rounds->order->share.operand[j];
        const enum ki_role was = rule->role[(rounds->order->share.kind + round - 1) % 2];
        if (operand->role == KI_NO_ROLE || (was != KI_GATHER && was != KI_MEMBER)) continue;
        struct telling t = {.rounds = rounds,
                            .operand = operand,
                            .A = *outcome == KILN_OK ? ki_operand_of(rounds->slice, rule) : NULL,
                            .member = was == KI_MEMBER};
        TRY(tell(&t, outcome));
    }
done:
    return status;
}

kiln_status ki_rounds_run(const struct ki_rounds *rounds, kiln_status *outcome) {
    const bool takes_part = ki_share_rows(rounds->first, rounds->p->transport.rank) > 0;
    kiln_status status = KILN_OK;
    for (int64_t round = 0; round < rounds->order->share.rounds; round++) {
        if (round > 0) TRY(tell_all(rounds, round, outcome));
        if (takes_part && *outcome == KILN_OK) *outcome = rounds->run_round(rounds->slice, round);
    }
done:
    return status;
}
