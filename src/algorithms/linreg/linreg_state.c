/* A block of targets within a cycle of conjugate gradient, for checkpoints. Between two cycles, and by a
 * factor, a block is soon done. */
#include "algorithms/linreg/linreg_block.h"

enum { OWN = 28, STATE = OWN + KI_LINREG_OUTER };

static int state_of(struct ki_state state[STATE], struct ki_block *t) {
    struct ki_system *system = t->system;
    const int64_t k = t->k;
    const struct ki_state own[OWN] = {
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
        {"iterations", .integers = &t->iterations},
        {"begun", .integers = &t->begun},
        {"longest", .integers = &t->longest},
        {"all squares", .reals = &system->rss},
        {"all about the means", .reals = &system->tss},
        {"passes", .integers = &system->passes},
        {"worst stop", .integers = &t->worst, .least = 0, .most = KILN_STOP_ROUNDING}};
    memcpy(state, own, sizeof own);
    for (int i = 0; i < system->outer_count; i++) state[OWN + i] = system->outer[i];
    return OWN + system->outer_count;
}

kiln_status ki_block_resume(bool *resumed, struct ki_block *t) {
    kiln_status status;
    struct ki_state state[STATE];
    struct ki_system *system = t->system;
    TRY(ki_checkpoint_resume(resumed, &system->options.control, state, state_of(state, t)));
    if (!*resumed) return KILN_OK;
    system->report.stopped_by = (kiln_stop)t->worst;
    system->direct.wanted = false;
done:
    return status;
}

kiln_status ki_block_keep(struct ki_block *t) {
    struct ki_state state[STATE];
    const struct ki_system *system = t->system;
    t->worst = system->report.stopped_by;
    const kiln_stop stop = system->cancelled                                 ? KILN_STOP_CANCELLED
                           : t->iterations >= system->options.max_iterations ? KILN_STOP_ITERATIONS
                                                                             : KILN_STOP_NONE;
    return ki_checkpoint_step(&system->options.control, state, state_of(state, t), stop);
}
