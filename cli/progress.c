/* Progress: on a terminal one line that is drawn over, at most ten times a second; elsewhere plain lines at
 * iterations 1, 2, 4, 8, ...
 *
 * Much of the work calls nobody back, or not within a second. A thread breaks the silence, whatever goes on:
 * where nothing has been said for 1, 2, 4, 8, ... seconds it tells what is being done and for how long, and
 * the latest that is known of it; on a terminal, of work of which nothing is known, from 0.2 seconds on.
 *
 * How far a solver is: the residual falls about geometrically, so log(first/now) / log(first/tolerance), or
 * iterations done of those allowed, whichever is more. The time left follows from it. */
#define _GNU_SOURCE
#include "progress.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

enum { BAR = 12, WIDE = 100 };
/* On a terminal: seconds of work of which nothing is known, until it is named and between two lines of it. */
static const double SOON = 0.2;

static struct {
    bool known, terminal, colour, utf8; /* what standard error is */
    bool drawn;                         /* the moving line is on the screen */
    char phase[16];
    double tolerance, first_residual, drawn_at;
    int64_t next, last;          /* plain lines: the iteration to report next, the one reported last */
    char doing[64];              /* the work that the thread watches over; "": none */
    double begun, said_at, late; /* of the work, of the latest line, and how long silence may last */
    kiln_progress latest;        /* of phase NULL: nothing is known yet */
} state;
/* Taken by whoever writes to standard error, the thread or the others, and for the state. */
static pthread_mutex_t mutex;

/* POSIX has no initializer of recursive mutexes. */
__attribute__((constructor)) static void make_mutex(void) {
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

static double now_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void find_out(void) {
    if (state.known) return;
    state.known = true;
    const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
    state.terminal = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    state.colour = state.terminal && !(no_color && *no_color);
    setlocale(LC_CTYPE, "");
    state.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void progress_hold(void) {
    pthread_mutex_lock(&mutex);
    if (state.drawn) fputs("\r\033[K", stderr);
    if (state.drawn) fflush(stderr);
    state.drawn = false;
}

void progress_release(void) {
    state.said_at = now_seconds();
    state.late = 1;
    pthread_mutex_unlock(&mutex);
}

static void begin_phase(const kiln_progress *now) {
    snprintf(state.phase, sizeof state.phase, "%s", now->phase);
    state.first_residual = now->residual;
    state.drawn_at = 0;
    state.next = 1;
    state.last = -1;
}

static double fraction(const kiln_progress *now) {
    double part = now->total > 0 ? (double)now->done / (double)now->total : 0;
    double way = log(state.first_residual / state.tolerance),
           gone = log(state.first_residual / now->residual);
    if (isfinite(way) && isfinite(gone) && way > 0) part = fmax(part, gone / way);
    return fmin(fmax(part, 0), 1);
}

/* Says what `done` counts. */
enum kind { ITERATIONS, BYTES, STEPS };

static enum kind kind_of(const kiln_progress *now) {
    if (strcmp(now->phase, "solve") == 0) return ITERATIONS;
    return strcmp(now->phase, "read") == 0 || strcmp(now->phase, "write") == 0 ? BYTES : STEPS;
}

/* "iteration 12: objective 1.2e+06, relative residual 3e-05, 12.1 GB/s", or, to fit beside the bar on a
 * terminal of 80 columns, "12: objective 1.2e+06, residual 3e-05, 12.1 GB/s"; "read: 34 MB of 94 MB, 310
 * MB/s"; of what has a number, the one that is being worked on: "plan 3 of 12". */
static void describe(char *text, size_t room, const kiln_progress *now, bool brief) {
    const bool solving = kind_of(now) == ITERATIONS;
    double bytes = solving ? (double)now->bytes : (double)now->done;
    char rate[64] = "", part[48] = "", test[32] = "", residual[48];
    if (kind_of(now) == STEPS) {
        snprintf(text, room, "%s %" PRId64 " of %" PRId64, now->phase, now->done + 1, now->total);
        return;
    }
    if (now->seconds > 0.02 && bytes > 0)
        snprintf(rate, sizeof rate, ", %s/s", text_bytes(bytes / now->seconds));
    if (!solving) {
        if (now->total > 0) snprintf(part, sizeof part, " of %s", text_bytes((double)now->total));
        snprintf(text, room, "%s: %s%s%s", now->phase, text_bytes((double)now->done), part, rate);
        return;
    }
    if (isfinite(now->objective))
        snprintf(part, sizeof part, "objective %.*e, ", brief ? 4 : 6, now->objective);
    if (now->test > 0) snprintf(test, sizeof test, "test %.4f, ", now->test);
    if (isfinite(now->residual)) /* a start, and the first batches, have none */
        snprintf(residual, sizeof residual, "%sresidual %.1e", brief ? "" : "relative ", now->residual);
    else
        snprintf(residual, sizeof residual, "no residual yet");
    snprintf(text, room, "%s%" PRId64 ": %s%s%s%s", brief ? "" : "iteration ", now->done, part, test,
             residual, rate);
}

static void draw_bar(double part) {
    int full = (int)(part * BAR + 0.5);
    if (state.colour) fputs("\033[36m", stderr);
    for (int i = 0; i < BAR; i++)
        fputs(i < full ? (state.utf8 ? "\u2588" : "#") : (state.utf8 ? "\u2591" : "."), stderr);
    if (state.colour) fputs("\033[0m", stderr);
}

static int terminal_width(void) {
    struct winsize window = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
}

static void draw(const kiln_progress *now) {
    double time = now_seconds();
    if (time - state.drawn_at < 0.1) return;
    state.drawn_at = time;
    int width = terminal_width();
    double part = fraction(now);
    char line[256];
    describe(line, sizeof line, now, width < WIDE);
    size_t length = strlen(line);
    const double left = part > 0.01 ? now->seconds * (1 - part) / part : 0;
    if (left >= 1 && now->seconds > 0.5)
        snprintf(line + length, sizeof line - length, ", %.0f s left", ceil(left));
    fputc('\r', stderr);
    if (width > 3 * BAR) {
        draw_bar(part);
        fputc(' ', stderr);
        width -= BAR + 1;
    }
    fprintf(stderr, "%.*s\033[K", width - 1, line);
    fflush(stderr);
    state.drawn = true;
}

static void show(const kiln_progress *now, bool every) {
    if (strcmp(state.phase, now->phase) != 0) begin_phase(now);
    if (!(state.first_residual > 0)) state.first_residual = now->residual;
    state.latest = *now;
    if (state.terminal) {
        draw(now);
        return;
    }
    if (kind_of(now) != ITERATIONS || now->done < 1 || now->done == state.last) return;
    if (now->done < state.next && !every) return;
    state.last = now->done;
    while (state.next <= now->done) state.next *= 2;
    char text[200];
    describe(text, sizeof text, now, false);
    progress_hold();
    fprintf(stderr, "%s\n", text);
    progress_release();
}

void progress_show(const kiln_progress *now, bool every) {
    pthread_mutex_lock(&mutex);
    show(now, every);
    pthread_mutex_unlock(&mutex);
}

/* --------------------------------------------------------------------------------------------- silence */

static void break_silence(void) {
    const double time = now_seconds(), silent = time - fmax(state.said_at, state.begun);
    const bool unknown = state.terminal && !state.latest.phase;
    if (!*state.doing || time - state.drawn_at < (unknown ? SOON : 1)) return;
    if (unknown ? silent < SOON : time - state.said_at < state.late) return;
    while (state.late <= time - state.said_at) state.late *= 2;
    char text[256];
    if (state.latest.phase)
        describe(text, sizeof text - 32, &state.latest, state.terminal);
    else
        snprintf(text, sizeof text - 32, "%s", state.doing);
    snprintf(text + strlen(text), 32, ", %.*f s so far", unknown, time - state.begun);
    if (!state.terminal) {
        fprintf(stderr, "%s\n", text);
        return;
    }
    fprintf(stderr, "\r%.*s\033[K", terminal_width() - 1, text);
    fflush(stderr);
    state.late = 1;
    state.drawn = true;
    state.drawn_at = time;
}

static void *watch(void *nothing) {
    const struct timespec nap = {.tv_nsec = 100000000};
    for (;;) {
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&mutex);
        break_silence();
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}

/* Signals go to the other threads. Without this one the tool works as well, only more silently. */
static void begin_watch(void) {
    static bool begun;
    pthread_t thread;
    sigset_t all, before;
    if (begun) return;
    begun = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_begin(const char *doing, double tolerance) {
    pthread_mutex_lock(&mutex);
    find_out();
    if (!state.said_at) state.said_at = now_seconds();
    if (!*state.doing) state.late = 1;
    state.phase[0] = '\0';
    state.tolerance = tolerance;
    snprintf(state.doing, sizeof state.doing, "%s", doing);
    state.begun = now_seconds();
    state.latest.phase = NULL;
    pthread_mutex_unlock(&mutex);
    begin_watch();
}

void progress_end(void) {
    progress_hold();
    state.doing[0] = '\0';
    progress_release();
}
