/* The record of a run: a trace that grows by doubling, and the names of the rules that stop one. */
#include "algorithms/algorithm.h"

const char *kiln_stop_name(kiln_stop stop) {
    static const char *const names[] = {[KILN_STOP_NONE] = "none",
                                        [KILN_STOP_TOLERANCE] = "tolerance",
                                        [KILN_STOP_ITERATIONS] = "max_iterations",
                                        [KILN_STOP_STALLED] = "stalled",
                                        [KILN_STOP_CANCELLED] = "cancelled",
                                        [KILN_STOP_DIVERGED] = "diverged"};
    const int count = sizeof names / sizeof *names;
    return (int)stop >= 0 && (int)stop < count ? names[stop] : "unknown";
}

void ki_report_hand_over(kiln_report *to, kiln_report *from) {
    if (!to) return;
    KI_GIVE(kiln_report, to, from);
    *from = (kiln_report){0};
}

void kiln_report_free(kiln_report *report) {
    if (!report) return;
    ki_free(report->trace);
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
