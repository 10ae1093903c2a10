#define _GNU_SOURCE /* O_CLOEXEC */
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int64_t field_of(const char *text, const char *name) {
    const char *line = strstr(text, name);
    return line ? (int64_t)strtoll(line + strlen(name), NULL, 10) * 1024 : 0;
}

struct process_memory process_memory(void) {
    char text[4096];
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[got < 0 ? 0 : got] = '\0';
    return (struct process_memory){field_of(text, "VmRSS:"), field_of(text, "VmHWM:")};
}

/* 5 sets the mark of the most back. */
void process_memory_set_back(void) {
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t written = write(file, "5", 1);
    (void)written; /* where it is refused the mark stays */
    close(file);
}

bool process_program(char *file, size_t bytes) {
    return snprintf(file, bytes, "/proc/self/exe") < (int)bytes;
}

void process_ends_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}
