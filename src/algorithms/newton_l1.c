/* Directions for objectives with an l1 term: OWL-QN, limited-memory BFGS on the orthant of the present point (Andrew and Gao,
 * ICML 2007), with the Newton engine's diagonal for its initial Hessian.
 *
 * The direction is the two-loop recursion applied to the least subgradient; ops/newton.h's PROJECT keeps of a step what goes
 * against the subgradient and stays in the orthant. One pass a step. The recursion keeps r / gamma in place of r, so that
 * the scale of the initial Hessian, gamma D^-2, needs no operation of its own. */
#include "algorithms/newton_work.h"

enum { MEMORY = 10 };

/* The last steps and the gradient's changes, newest at (next - 1) % MEMORY. */
struct ki_memory {
    struct ki_pair step[MEMORY], change[MEMORY];
    double curvature[MEMORY]; /* step . change > 0 */
    int next, count;
};

kiln_status ki_newton_l1_open(struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    work->memory = ki_calloc(sizeof *work->memory);
    if (!work->memory) return ki_fail_nomem(sizeof *work->memory, "OWL-QN's memory");
    for (int i = 0; i < MEMORY; i++) {
        TRY(ki_newton_pair(&work->memory->step[i], work->newton));
        TRY(ki_newton_pair(&work->memory->change[i], work->newton));
    }
done:
    return status;
}

void ki_newton_l1_close(struct ki_newton_work *work) {
    for (int i = 0; work->memory && i < MEMORY; i++) {
        ki_newton_pair_free(&work->memory->step[i]);
        ki_newton_pair_free(&work->memory->change[i]);
    }
    ki_free(work->memory);
}

void ki_newton_l1_begin(struct ki_newton_work *work) {
    work->memory->count = 0;
    work->gamma = 1 / work->scale; /* D^-2 carries that factor: a step of Jacobi's */
}

/* out = x + scalar y; sums: out . with, out . (D^-2 out). */
static kiln_status mix(double *sums, const struct ki_newton_work *work, struct ki_pair out, struct ki_pair x,
                       double scalar, struct ki_pair y, struct ki_pair with) {
    return ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_MIX,
                                                 .out = out,
                                                 .second = with,
                                                 .x = x,
                                                 .y = y,
                                                 .inverse = work->criterion,
                                                 .scalar = scalar});
}

kiln_status ki_newton_l1_direction(struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_memory *memory = work->memory;
    const int count = memory->count;
    struct ki_pair q = work->R, r = work->S;
    double alpha[MEMORY], sums[3];
    int slot[MEMORY]; /* newest first */
    for (int i = 0; i < count; i++) slot[i] = (memory->next - 1 - i + 2 * MEMORY) % MEMORY;
    TRY(mix(sums, work, q, work->subgradient, 0, work->subgradient, count ? memory->step[slot[0]] : q));
    for (int i = 0; i < count; i++) {
        alpha[i] = sums[0] / memory->curvature[slot[i]];
        const struct ki_pair next = i + 1 < count ? memory->step[slot[i + 1]] : q;
        TRY(mix(sums, work, q, q, -alpha[i], memory->change[slot[i]], next));
    }
    TRY(ki_pairs_run(NULL,
                     &(struct ki_pairs){.op = KI_PAIR_TURN, .out = r, .x = q, .inverse = work->criterion}));
    if (count) TRY(mix(sums, work, r, r, 0, r, memory->change[slot[count - 1]]));
    for (int i = count; i-- > 0;) {
        const double beta = work->gamma * sums[0] / memory->curvature[slot[i]];
        const struct ki_pair next = i > 0 ? memory->change[slot[i - 1]] : q;
        TRY(mix(sums, work, r, r, (alpha[i] - beta) / work->gamma, memory->step[slot[i]], next));
    }
done:
    return status;
}

/* `there` is the point before. A change without curvature teaches nothing. */
kiln_status ki_newton_l1_learn(struct ki_newton_work *work) {
    kiln_status status;
    struct ki_memory *memory = work->memory;
    const int slot = memory->next;
    double sums[3];
    TRY(mix(NULL, work, memory->step[slot], work->here.at, -1, work->there.at, work->R));
    TRY(mix(sums, work, memory->change[slot], work->here.gradient, -1, work->there.gradient,
            memory->step[slot]));
    if (!(sums[0] > 0) || !(sums[1] > 0) || !isfinite(sums[0] / sums[1])) return KILN_OK;
    memory->curvature[slot] = sums[0];
    work->gamma = sums[0] / sums[1];
    memory->next = (slot + 1) % MEMORY;
    if (memory->count < MEMORY) memory->count++;
done:
    return status;
}
