/* This file says what a block of targets within a cycle of conjugate gradient goes on with. */
#include "algorithms/linreg/linreg_block.h"

void ki_block_state(struct ki_state state[KI_BLOCK_STATE], struct ki_block *t) {
    struct ki_system *system = t->system;
    const int64_t k = t->k;
    const struct ki_state own[KI_BLOCK_STATE] = {
        {"W", .matrix = &t->W},
        {"E", .matrix = &t->E},
        {"G", .matrix = &t->G},
        {"P", .matrix = &t->P},
        {"Q", .matrix = &t->Q},
        {"scalars", .matrix = &t->S},
        {"shift", .matrix = &t->shift},
        {"sums", .matrix = &t->sums},
        {"curvature", .matrix = &t->curvature},
        {"b", .reals = t->b, .count = k},
        {"reference", .reals = t->reference, .count = k},
        {"norm", .reals = t->norm, .count = k},
        {"squares", .reals = t->rss, .count = k},
        {"objective", .reals = t->objective, .count = k},
        {"zero", .reals = t->zero, .count = k},
        {"best", .reals = t->best, .count = k},
        {"began", .reals = t->began, .count = k},
        {"decrease", .reals = t->decrease, .count = k},
        {"stalls", .integers = t->stalls, .count = k},
        {"took part", .integers = t->took_part, .count = k, .least = 0, .most = 1},
        {"diverged", .flag = &t->diverged},
        {"begun", .integers = &t->begun},
        {"longest", .integers = &t->longest},
        {"all squares", .reals = &system->rss},
        {"all about the means", .reals = &system->tss}};
    memcpy(state, own, sizeof own);
}
