/* This file says how a run ended, in rows. */
#include "report.h"

#include <math.h>

#include "text.h"

void report_put_end(struct result *result, const kiln_report *report, const struct report_words *words) {
    const bool asked = report->converged && isinf(report->tolerance); /* so many iterations, no tolerance */
    if (!asked)
        PUT(result, "converged", FLAG(report->converged), .label = "converged", .kept = true,
            .shown = report->converged && report->stopped_by == KILN_STOP_ROUNDING ? "to rounding" : NULL);
    PUT(result, "iterations", COUNT(report->iterations), .label = asked ? "done" : NULL,
        .before = asked ? NULL : ", ", .unit = "iteration", .kept = true);
    if (asked) PUT(result, "converged", FLAG(true), .before = ", ", .shown = "as asked", .kept = true);
    PUT(result, "stopped_by", TEXT(kiln_stop_name(report->stopped_by)), .kept = true);
    if (report->solver)
        PUT(result, "solver", TEXT(report->solver), .before = asked ? NULL : " of ",
            .kept = words->solver_kept);
    PUT(result, "residual", NUMBER(report->residual), .kept = true, .format = "%.1e",
        .before = result_words(result, "; %s ", words->change ? words->change : "change"));
    PUT(result, "tolerance", NUMBER(report->tolerance), .format = "%.1e",
        .before = asked ? NULL : ", tolerance ");
}

static void put_optimum(struct result *result, const kiln_report *report, const struct report_words *words) {
    const double setbacks = kiln_report_figure(report, "setbacks"),
                 eigenvalue = kiln_report_figure(report, "eigenvalue_error");
    const bool bound =
        !isnan(kiln_report_figure(report, "error_bound")); /* which stands in the objective's place */
    if (words->ranks && isfinite(eigenvalue))
        PUT(result, NULL, NUMBER(eigenvalue), .label = "optimum", .before = "the eigenvalue is at most ",
            .after = " off; the scores have no bound");
    else if (words->ranks && !bound)
        PUT(result, NULL, .kind = ROW_NONE, .label = "optimum", .shown = "no bound");
    if (words->ranks) return;
    PUT(result, "optimality_gap", NUMBER(report->optimality_gap), .kept = true, .label = "optimum",
        .before = report->certificate ? "at most " : NULL, .shown = report->certificate ? NULL : "no bound");
    PUT(result, "certificate", TEXT(report->certificate), .kept = true,
        .before = report->certificate ? " below that (" : NULL, .after = ")");
    if (isnan(setbacks)) return;
    PUT(result, "setbacks", COUNT((int64_t)setbacks), .kept = true,
        .before = report->certificate ? NULL : "; ", .unit = "iteration",
        .shown = setbacks > 0 ? NULL : "no iteration", .after = " went the wrong way");
}

void report_put_objective(struct result *result, const kiln_report *report,
                          const struct report_words *words) {
    PUT(result, words->objective, NUMBER(report->objective), .label = words->objective, .kept = true,
        .shown = isinf(report->objective) ? "no bound" : NULL);
    put_optimum(result, report, words);
}

static void fill_trace(struct result *line, const void *of, int64_t i) {
    const kiln_trace_row *row = &((const kiln_report *)of)->trace[i];
    PUT(line, "iteration", COUNT(row->iteration));
    PUT(line, "residual", NUMBER(row->residual));
    PUT(line, "objective", NUMBER(row->objective));
    PUT(line, "seconds", NUMBER(row->seconds));
    PUT(line, "inner", COUNT(row->inner));
    PUT(line, "radius", NUMBER(row->radius));
    if (row->test > 0) PUT(line, "test", NUMBER(row->test));
}

void report_put_trace(struct result *result, const kiln_report *report) {
    PUT(result, "trace", TABLE(report->trace_count, fill_trace, report), .hidden = true);
}
