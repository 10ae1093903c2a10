/* Progress: on a terminal one line that is drawn over, at most ten times a second; elsewhere plain lines at
 * iterations 1, 2, 4, 8, ..., and while an iteration takes longer at seconds 1, 2, 4, 8, ...
 *
 * How far a solver is: the residual falls about geometrically, so log(first/now) / log(first/tolerance), or
 * iterations done of those allowed, whichever is more. The time left follows from it. */
#define _GNU_SOURCE
#include "progress.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

enum { BAR = 12, WIDE = 100 };

static struct {
    bool known, terminal, colour, utf8; /* what standard error is */
    bool drawn;                         /* the moving line is on the screen */
    char phase[16];
    double tolerance, first_residual, drawn_at;
    int64_t next, last; /* plain lines: what to report next, what was reported last */
    double late;        /* seconds after which a line comes although no iteration has ended */
} state;

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

void progress_begin(double tolerance) {
    find_out();
    state.phase[0] = '\0';
    state.tolerance = tolerance;
}

void progress_clear(void) {
    if (!state.drawn) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    state.drawn = false;
}

static void begin_phase(const kiln_progress *now) {
    progress_clear();
    snprintf(state.phase, sizeof state.phase, "%s", now->phase);
    state.first_residual = now->residual;
    state.drawn_at = 0;
    state.next = 1;
    state.last = -1;
    state.late = 1;
}

static double fraction(const kiln_progress *now) {
    double part = now->total > 0 ? (double)now->done / (double)now->total : 0;
    double way = log(state.first_residual / state.tolerance),
           gone = log(state.first_residual / now->residual);
    if (isfinite(way) && isfinite(gone) && way > 0) part = fmax(part, gone / way);
    return fmin(fmax(part, 0), 1);
}

/* What `done` counts. */
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
    char rate[64] = "", part[48] = "", test[32] = "";
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
    if (!isnan(now->objective))
        snprintf(part, sizeof part, "objective %.*e, ", brief ? 4 : 6, now->objective);
    if (now->test > 0) snprintf(test, sizeof test, "test %.4f, ", now->test);
    snprintf(text, room, "%s%" PRId64 ": %s%s%sresidual %.1e%s", brief ? "" : "iteration ", now->done, part,
             test, brief ? "" : "relative ", now->residual, rate);
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
    if (part > 0.01 && part < 1 && now->seconds > 0.5)
        snprintf(line + length, sizeof line - length, ", %s left",
                 text_seconds(now->seconds * (1 - part) / part));
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

void progress_show(const kiln_progress *now, bool every) {
    const bool solving = kind_of(now) == ITERATIONS;
    if (strcmp(state.phase, now->phase) != 0) begin_phase(now);
    if (!(state.first_residual > 0)) state.first_residual = now->residual;
    if (state.terminal) {
        draw(now);
        return;
    }
    int64_t reached = solving ? now->done : (int64_t)now->seconds;
    const bool due = reached >= 1 && reached != state.last && (reached >= state.next || (every && solving));
    if (!due && !(solving && now->seconds >= state.late)) return;
    state.last = reached;
    while (state.late <= now->seconds) state.late *= 2;
    while (state.next <= reached) state.next *= 2;
    char text[200];
    describe(text, sizeof text, now, false);
    fprintf(stderr, "%s\n", text);
}
