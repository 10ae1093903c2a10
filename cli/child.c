/* Work that meets drivers, in a child process of its own. */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "process.h"
#include "wording.h"

void *child_share(size_t bytes) {
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}

void child_unshare(void *shared, size_t bytes) {
    if (shared) munmap(shared, bytes);
}

void child_step(struct child *child, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(child->doing, sizeof child->doing, format, args);
    va_end(args);
    child->steps++;
}

/* A driver may print, which is no part of the result, and work on when the process ends, which is not waited
 * for. */
static void be_child(struct child *child, kiln_status (*work)(void *shared)) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    child->status = work(child);
    if (child->status != KILN_OK) {
        wording(child->message, sizeof child->message, kiln_last_error()->message);
        wording(child->hint, sizeof child->hint, kiln_last_error()->hint);
    }
    child->finished = true;
    fflush(NULL);
    _exit(0);
}

/* The pipe closes when the child ends; should something keep it open, or close it early, the child is
 * looked at all the same. */
static bool ended(pid_t pid, int pipe, int *state) {
    struct pollfd closes = {.fd = pipe, .events = POLLIN};
    if (poll(&closes, 1, 100) > 0) usleep(500);
    return waitpid(pid, state, WNOHANG) == pid;
}

/* True if the child ended by itself. A process that waits for hardware may not even end when it is killed. */
static bool await(struct child *child, pid_t pid, int pipe, double seconds, int *state) {
    int steps = child->steps;
    double since = clock_seconds();
    while (!ended(pid, pipe, state)) {
        if (steps != child->steps) steps = child->steps, since = clock_seconds();
        if (clock_seconds() - since <= seconds) continue;
        kill(pid, SIGKILL);
        since = clock_seconds();
        while (!ended(pid, pipe, state) && clock_seconds() - since < 5) continue;
        return false;
    }
    return true;
}

bool child_run(char fate[FATE_ROOM], struct child *child, double seconds, kiln_status (*work)(void *shared)) {
    int ends[2], state = 0;
    *fate = '\0';
    child->finished = false;
    fflush(NULL);
    if (pipe(ends) != 0) {
        snprintf(fate, FATE_ROOM, "no process could be started: %s", strerror(errno));
        return false;
    }
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        process_ends_with_parent();
        if (getppid() != parent) _exit(EXIT_INTERRUPTED);
        close(ends[0]);
        be_child(child, work);
    }
    if (pid < 0) snprintf(fate, FATE_ROOM, "no process could be started: %s", strerror(errno));
    close(ends[1]);
    const bool alone = pid < 0 || await(child, pid, ends[0], seconds, &state);
    close(ends[0]);
    if (pid < 0 || child->finished) return pid >= 0;
    if (!alone)
        snprintf(fate, FATE_ROOM, "its driver did not answer for %g seconds while %s", seconds, child->doing);
    else if (WIFSIGNALED(state))
        snprintf(fate, FATE_ROOM, "its driver crashed (signal %d, %s) while %s", WTERMSIG(state),
                 strsignal(WTERMSIG(state)), child->doing);
    else
        snprintf(fate, FATE_ROOM, "its driver ended the process (exit code %d) while %s", WEXITSTATUS(state),
                 child->doing);
    return false;
}
