/* The tool's words on standard error. */
#define _GNU_SOURCE
#include "talk.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "output.h"
#include "progress.h"
#include "text.h"

static struct { bool quiet, verbose, json; } manner;

static volatile sig_atomic_t signalled, polled;

static void end_at_once(void) {
    kiln_abandon_files();
    output_abandon_all();
    _exit(EXIT_INTERRUPTED);
}

/* Only work that polls can stop in good order; before it begins there is nothing to save. */
static void on_signal(int number) {
    static const char words[] = "kiln: interrupted\n";
    (void)number;
    if (!signalled && polled) {
        signalled = 1;
        return;
    }
    const ssize_t told = write(STDERR_FILENO, words, sizeof words - 1);
    (void)told; /* where nobody listens the exit code says it */
    end_at_once();
}

void talk_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void talk_leave_signals(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
}

bool talk_interrupted(void) {
    return signalled;
}

void talk_begin(bool quiet, bool verbose, bool json) {
    manner.quiet = quiet;
    manner.verbose = verbose;
    manner.json = json;
}

bool talk_json(void) {
    return manner.json;
}

bool talk_verbose(void) {
    return manner.verbose;
}

bool talk_quiet(void) {
    return manner.quiet;
}

/* Messages hold names from files. */
static void print_line(const char *format, va_list args) {
    char line[4096];
    vsnprintf(line, sizeof line, format, args);
    progress_hold();
    fflush(stdout); /* where both streams go to one place, in the order they were written */
    text_put(stderr, line, 1);
    fputc('\n', stderr);
    progress_release();
}

void say(const char *format, ...) {
    if (manner.quiet) return;
    va_list args;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

void say_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

void talk_step(const char *what, int64_t done, int64_t total, double seconds) {
    const kiln_progress now = {.phase = what, .done = done, .total = total, .seconds = seconds};
    polled = 1;
    if (manner.quiet) return;
    if (done == 0) progress_begin(what, 0);
    progress_show(&now, false);
}

void talk_unpolled(void) {
    polled = 0;
    if (signalled) end_at_once();
}

static int on_progress(void *user, const kiln_progress *now) {
    (void)user;
    polled = 1;
    if (!manner.quiet) progress_show(now, manner.verbose);
    return signalled;
}

static int on_silent_progress(void *user, const kiln_progress *now) {
    (void)user;
    (void)now;
    polled = 1;
    return signalled;
}

kiln_control talk_silent_control(void) {
    polled = 1;
    return (kiln_control){on_silent_progress, NULL};
}

void talk_doing(const char *what) {
    if (!manner.quiet) progress_begin(what, 0);
}

kiln_control talk_control(const char *what, double tolerance) {
    if (!manner.quiet) progress_begin(what, tolerance);
    polled = 1;
    return (kiln_control){on_progress, NULL};
}
