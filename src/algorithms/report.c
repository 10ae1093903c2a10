/* The record of a run: a trace that grows by doubling, figures by name, and the names of the rules that stop
 * a run. */
#include <stdarg.h>
#include <stdio.h>

#include "algorithms/algorithm.h"

const char *kiln_stop_name(kiln_stop stop) {
    static const char *const names[] = {[KILN_STOP_NONE] = "none",
                                        [KILN_STOP_TOLERANCE] = "tolerance",
                                        [KILN_STOP_ITERATIONS] = "max_iterations",
                                        [KILN_STOP_STALLED] = "stalled",
                                        [KILN_STOP_CANCELLED] = "cancelled",
                                        [KILN_STOP_DIVERGED] = "diverged",
                                        [KILN_STOP_ROUNDING] = "rounding"};
    const int count = sizeof names / sizeof *names;
    return (int)stop >= 0 && (int)stop < count ? names[stop] : "unknown";
}

kiln_stop ki_stop_worse(kiln_stop a, kiln_stop b) {
    static const int bad[] = {
        [KILN_STOP_TOLERANCE] = 1, [KILN_STOP_ROUNDING] = 2,  [KILN_STOP_ITERATIONS] = 3,
        [KILN_STOP_STALLED] = 4,   [KILN_STOP_CANCELLED] = 5, [KILN_STOP_DIVERGED] = 6};
    return bad[a] > bad[b] ? a : b;
}
enum { WARNINGS = 4 };

struct kiln_figures {
    int count;
    struct {
        const char *name; /* a literal */
        double value;
    } rows[KI_FIGURES];
    int warned;
    struct {
        const char *name, *hint; /* literals */
        char text[300];
    } warnings[WARNINGS];
};

kiln_status ki_report_begin(kiln_report *report) {
    report->optimality_gap = INFINITY;
    report->figures = ki_calloc(sizeof *report->figures);
    return report->figures ? KILN_OK : ki_fail_nomem(sizeof *report->figures, "the report");
}

void ki_report_figure(kiln_report *report, const char *name, double value) {
    struct kiln_figures *figures = report->figures;
    figures->rows[figures->count].name = name;
    figures->rows[figures->count++].value = value;
}

kiln_status kiln_report_check(const kiln_report *report) {
    static const char call[] = "kiln_report_check";
    if (!report) return ki_fail(KILN_ERR_ARGUMENT, "%s: report is NULL", call);
    if (report->converged) return KILN_OK;
    return ki_fail(report->stopped_by == KILN_STOP_CANCELLED ? KILN_ERR_CANCELLED : KILN_ERR_LIMIT,
                   "%s: not converged: %s after %lld iterations, residual %.3g, tolerance %.3g", call,
                   kiln_stop_name(report->stopped_by), (long long)report->iterations, report->residual,
                   report->tolerance);
}

double kiln_report_figure(const kiln_report *report, const char *name) {
    const struct kiln_figures *figures = report ? report->figures : NULL;
    for (int i = 0; figures && name && i < figures->count; i++)
        if (strcmp(figures->rows[i].name, name) == 0) return figures->rows[i].value;
    return NAN;
}

const char *kiln_report_figure_name(const kiln_report *report, int64_t i) {
    const struct kiln_figures *figures = report ? report->figures : NULL;
    return figures && i >= 0 && i < figures->count ? figures->rows[i].name : NULL;
}

void ki_report_setbacks(kiln_report *report, double sign, int64_t first, kiln_type type, double squares,
                        double terms) {
    enum { DIGITS = 1000 }; /* units: 520 of f32 in a row, in each of two sums, and the differences' own */
    const double part = DIGITS * ki_epsilon(type);
    const double start = report->trace_count > 0 ? fabs(report->trace[0].objective) : 0;
    int64_t count = 0;
    for (int64_t i = first + 1; i < report->trace_count; i++) {
        const double before = report->trace[i - 1].objective, after = report->trace[i].objective;
        const double size = squares > 0 ? sqrt(fabs(before) * fmax(squares, start)) + part * squares
                                        : fmax(fmax(fabs(before), start), terms);
        count += !(sign * (after - before) <= part * size);
    }
    ki_report_figure(report, "setbacks", (double)count);
}

void ki_report_warn(kiln_report *report, const char *name, const char *hint, const char *format, ...) {
    struct kiln_figures *figures = report->figures;
    va_list args;
    for (int i = 0; i < figures->warned; i++)
        if (strcmp(figures->warnings[i].name, name) == 0) return;
    if (figures->warned == WARNINGS) return;
    figures->warnings[figures->warned].name = name;
    figures->warnings[figures->warned].hint = hint;
    va_start(args, format);
    vsnprintf(figures->warnings[figures->warned].text, sizeof figures->warnings->text, format, args);
    va_end(args);
    figures->warned++;
}

void ki_report_rank(kiln_report *report, int64_t rank, int64_t columns) {
    if (rank < columns)
        ki_report_warn(report, "rank", "a penalty (kiln_linreg_options.l2), or fewer columns",
                       "columns depend on each other, %lld of %lld say all that they do: other coefficients "
                       "predict these data as well",
                       (long long)rank, (long long)columns);
}

void ki_report_flats(kiln_report *report, const struct ki_flats *flats, kiln_type type) {
    const bool narrow = type == KILN_F32;
    char counts[64] = " counts";
    if (flats->count == 0) return;
    if (flats->count > 1)
        snprintf(counts, sizeof counts, " and %lld more count", (long long)flats->count - 1);
    ki_report_warn(
        report, "constant",
        narrow ? "--type f64, or a constant taken off that column before, such as its mean"
               : "a constant taken off that column before, such as its mean",
        "column %lld%s as constant: a spread within 16 units of what %s resolves at the mean is rounding "
        "(columns count from 0)",
        (long long)flats->first, counts, narrow ? "f32" : "f64");
}

const char *kiln_report_warning(const kiln_report *report, int64_t i, const char **name, const char **hint) {
    const struct kiln_figures *figures = report ? report->figures : NULL;
    if (!figures || i < 0 || i >= figures->warned) return NULL;
    if (name) *name = figures->warnings[i].name;
    if (hint) *hint = figures->warnings[i].hint;
    return figures->warnings[i].text;
}

void ki_report_give(kiln_report *to, kiln_report *from) {
    if (!to) return;
    if (!from->certificate) from->optimality_gap = INFINITY;
    KI_GIVE(kiln_report, to, from);
    *from = (kiln_report){0};
}

void ki_report_hand_over(kiln_report *to, kiln_report *from) {
    /* Squares that overflow leave a result without a value, which is no optimum. */
    if (from->converged && !isfinite(from->objective)) {
        from->converged = 0;
        from->stopped_by = KILN_STOP_DIVERGED;
    }
    ki_report_give(to, from);
}

void kiln_report_free(kiln_report *report) {
    if (!report) return;
    ki_free(report->trace);
    ki_free(report->figures);
    report->figures = NULL;
    report->trace = NULL;
    report->trace_count = 0;
}

/* The array is full whenever its length is a power of two, so no capacity need be kept. */
kiln_status ki_report_row(kiln_report *report, const kiln_trace_row *row) {
    int64_t count = report->trace_count, bytes;
    if ((count & (count - 1)) == 0) {
        if (!ki_mul3(ki_max(count, 1), 2, sizeof *row, &bytes)) return ki_fail_nomem(SIZE_MAX, "the trace");
        kiln_trace_row *grown = ki_resize(report->trace, (size_t)bytes);
        if (!grown) return ki_fail_nomem((size_t)bytes, "the trace");
        report->trace = grown;
    }
    report->trace[report->trace_count++] = *row;
    return KILN_OK;
}
