/* Timing a process's end: this program runs itself, `kiln devices --start`, and takes the time from the line that tells of the
 * start, after which nothing is left to do but to close the device, until the process is gone. Nothing within a process
 * could see how long the driver goes on cleaning up after it. */
#define _GNU_SOURCE
#include "process_end.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

extern char **environ;

static bool spawn(pid_t *child, int output, const char *device) {
    char name[32];
    char *arguments[] = {"kiln", "devices", "--start", "--quiet", "--device", name, NULL};
    posix_spawn_file_actions_t actions;
    snprintf(name, sizeof name, "%s", device);
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    const bool made =
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) == 0 &&
        posix_spawn(child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return made;
}

/* Waits for the end of a line; false if there is none. */
static bool read_line(int input) {
    char byte = '\0';
    ssize_t got;
    do {
        got = read(input, &byte, 1);
    } while ((got == 1 && byte != '\n') || (got < 0 && errno == EINTR));
    return got == 1;
}

double process_end(void *user, const char *device) {
    int ends[2], code = 0;
    pid_t child;
    (void)user;
    if (pipe2(ends, O_CLOEXEC) != 0) return KILN_NONE;
    const bool spawned = spawn(&child, ends[1], device);
    close(ends[1]);
    const bool started = spawned && read_line(ends[0]);
    const double start = clock_seconds();
    while (spawned && waitpid(child, &code, 0) < 0 && errno == EINTR) continue;
    const double seconds = clock_seconds() - start;
    close(ends[0]);
    return started && WIFEXITED(code) && WEXITSTATUS(code) == 0 ? seconds : KILN_NONE;
}
