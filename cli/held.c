/* A process's memory, as the kernel counts it: own = max over time of RSS(t) - RSS when counting began.
 *
 * A budget of a CPU is about what comes to be in memory for the work: matrices, work space, readers' buffers,
 * threads' stacks. The program and drivers that "auto" has looked at are not its. The kernel keeps one mark
 * of the most, of the process's whole life, which is set back where the kernel lets it. A mark that has not
 * moved since says no more than that what was held is below it, and what is held now counts. */
#include "held.h"

#include "process.h"

int64_t held_now(void) {
    return process_memory().now;
}

struct held held_begin(bool afresh) {
    if (afresh) process_memory_set_back();
    const struct process_memory seen = process_memory();
    return (struct held){.begun = seen.now, .mark = seen.most};
}

void held_most(int64_t *all, int64_t *own, const struct held *held) {
    const struct process_memory seen = process_memory();
    const int64_t most = (seen.most > held->mark ? seen.most : seen.now) - held->begun;
    *all = seen.most;
    *own = most > held->most ? most : held->most;
}

void held_except(struct held *held, int64_t before, bool afresh) {
    int64_t all, own;
    const int64_t now = held_now(), came = now > before ? now - before : 0, begun = held->begun + came;
    held_most(&all, &own, held);
    *held = held_begin(afresh);
    held->begun = begun;
    held->most = own > came ? own - came : 0;
}
