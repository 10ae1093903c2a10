/* A process's memory, as the kernel counts it: own = max over time of RSS(t) - RSS when counting began.
 *
 * A budget of a CPU is about what comes to be in memory for the work: matrices, work space, readers' buffers,
 * threads' stacks. The program and drivers that "auto" has looked at are not its. The kernel keeps one mark
 * of the most, of the process's whole life, which is set back where the kernel lets it. A mark that has not
 * moved since says no more than that what was held is below it, and what is held now counts. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "held.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
    int64_t now, most;
};

static int64_t field_of(const char *text, const char *name) {
    const char *line = strstr(text, name);
    return line ? (int64_t)strtoll(line + strlen(name), NULL, 10) * 1024 : 0;
}

static struct seen look(void) {
    char text[4096];
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[got < 0 ? 0 : got] = '\0';
    return (struct seen){field_of(text, "VmRSS:"), field_of(text, "VmHWM:")};
}

/* 5 sets the mark of the most back to what is held now. */
static void set_back(void) {
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t written = write(file, "5", 1);
    (void)written; /* where it is refused the mark stays */
    close(file);
}

int64_t held_now(void) {
    return look().now;
}

struct held held_begin(bool afresh) {
    if (afresh) set_back();
    const struct seen seen = look();
    return (struct held){.begun = seen.now, .mark = seen.most};
}

void held_most(int64_t *all, int64_t *own, const struct held *held) {
    const struct seen seen = look();
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
