/* A run's report, as rows of its result, as warnings, and as an exit code. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <kiln.h>

#include "common.h"
#include "result.h"

struct report_words {
    const char *objective; /* what report.objective is called: "inertia" */
    const char *change;    /* what report.residual is; NULL: "change" */
    bool ranks;            /* the objective is one that no run makes as small, or as large, as it can be */
    bool solver_kept;      /* the model says which one it was */
};

void report_put_end(struct result *result, const kiln_report *report, const struct report_words *words);
/* The objective and what is known of its distance from the optimum: optimality_gap, null where there is no
 * bound, what it follows from, and of iterations that only improve it how many did not. */
void report_put_objective(struct result *result, const kiln_report *report, const struct report_words *words);
void report_put_trace(struct result *result, const kiln_report *report);
/* The exit code of a run on these data that ended so, after the warnings or the error that belong to it. */
int report_end(const struct run *run, const kiln_report *report, const kiln_data *data);
json_t *report_add_warning(json_t *array, const char *name, const char *text); /* nothing where text is "" */
json_t *report_warnings_json(const kiln_report *report,
                             const kiln_data *data); /* a list of {"name", "text"} */
int report_fail_diverged(const struct run *run, const kiln_report *report, kiln_type type);

#endif
