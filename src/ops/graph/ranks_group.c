/* Steps of PageRank by the members of a group.
 *
 * In a step each member gathers for its vertices, for which it has the links that lead to them, a slice of A
 * by columns. What it makes of them that others gather from, D^-1 P, goes to all; P stays until the last
 * step. Mass and change are a row of sums from each member, which all add up in the same order, so that each
 * has the same state, and none waits for the host. A round is: the state after the step before, and the step,
 * so that there is one round more than steps. In the beginning A is cut into rows, as the weights of what
 * links from a vertex are a row's. */
#include "ops/graph/ranks.h"

#include "dialect/scalar_math.h"
#include "pass/group.h"

/* By the parity of the step: C and next change places, and so do the sums. */
static const struct ki_rule rules[] = {
    {offsetof(struct ki_ranks, on.P), KI_CHANGES, {KI_ROW, KI_ROW}},
    {offsetof(struct ki_ranks, on.C), KI_CHANGES, {KI_COLUMN, KI_GATHER}},
    {offsetof(struct ki_ranks, on.next), KI_CHANGES, {KI_GATHER, KI_COLUMN}},
    {offsetof(struct ki_ranks, on.factor), KI_READS, {KI_ROW, KI_ROW}},
    {offsetof(struct ki_ranks, on.teleport), KI_READS, {KI_ROW, KI_ROW}},
    {offsetof(struct ki_ranks, on.dangling), KI_READS, {KI_ROW, KI_ROW}},
    {offsetof(struct ki_ranks, on.S), KI_CHANGES, {KI_OWN, KI_OWN}},
    {offsetof(struct ki_ranks, sums[0]), KI_CHANGES, {KI_MEMBER, KI_COLUMN}},
    {offsetof(struct ki_ranks, sums[1]), KI_CHANGES, {KI_COLUMN, KI_MEMBER}},
};
static const struct ki_rules table = {.bytes = sizeof(struct ki_ranks),
                                      .X = offsetof(struct ki_ranks, on.A),
                                      .place = offsetof(struct ki_ranks, place),
                                      .count = sizeof rules / sizeof *rules,
                                      .rule = rules};

static const struct ki_rule begin_rules[] = {
    {offsetof(struct ki_ranks, on.P), KI_READS, {KI_ROW, KI_ROW}},
    {offsetof(struct ki_ranks, on.C), KI_WRITES, {KI_ROW, KI_ROW}},
    {offsetof(struct ki_ranks, on.factor), KI_WRITES, {KI_ROW, KI_ROW}},
    {offsetof(struct ki_ranks, on.S), KI_CHANGES, {KI_OWN, KI_OWN}},
    {offsetof(struct ki_ranks, sums[0]), KI_CHANGES, {KI_MEMBER, KI_COLUMN}},
};
static const struct ki_rules begin_table = {.bytes = sizeof(struct ki_ranks),
                                            .X = offsetof(struct ki_ranks, on.A),
                                            .place = offsetof(struct ki_ranks, place),
                                            .count = sizeof begin_rules / sizeof *begin_rules,
                                            .rule = begin_rules};

static kiln_status begin_round(const void *of, int64_t round) {
    return round == 0 ? ki_ranks_run(of, 0, KI_RANKS_BEGIN) : ki_ranks_settle(of, KI_RANKS_BEGIN);
}

static kiln_status step_round(const void *of, int64_t round) {
    const struct ki_ranks *ranks = of;
    kiln_status status = KILN_OK;
    if (round > 0) TRY(ki_ranks_settle(ranks, ranks->first + round - 1));
    if (round < ranks->count) TRY(ki_ranks_run(ranks, ranks->first + round, 1));
done:
    return status;
}

kiln_status ki_ranks_share(const struct ki_ranks *ranks) {
    struct ki_ranks shared = *ranks;
    kiln_device *device = ranks->on.A->device;
    const bool begins = ranks->count == KI_RANKS_BEGIN;
    kiln_status status = KILN_OK;
    if (ranks->count == 0) return KILN_OK;
    for (int i = 0; i < 2; i++) {
        TRY(ki_matrix_new(&shared.sums[i], device, ki_wide_type(device), ki_members_of(device),
                          2 * ranks->on.P->cols));
        TRY(kiln_fill(shared.sums[i], 0)); /* of members without vertices */
    }
    TRY(ki_share(&(struct ki_shared){.rules = begins ? &begin_table : &table,
                                     .kind = begins ? 0 : (int)(ranks->first % 2),
                                     .whole = &shared,
                                     .cut = begins ? KI_BY_ROWS : KI_BY_COLUMNS,
                                     .rounds = begins ? 2 : ranks->count + 1,
                                     .run_round = begins ? begin_round : step_round}));
done:
    kiln_matrix_free(shared.sums[0]);
    kiln_matrix_free(shared.sums[1]);
    return status;
}
