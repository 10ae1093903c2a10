/* kiln explain and kiln tune share the shape that was asked for, and tables of plans. */
#ifndef CLI_PLANS_H
#define CLI_PLANS_H

#include <kiln/tune.h>

#include "common.h"

/* An operation whose plans are for a shape: mmchain, or sddmm, which is sparse. */
struct planned {
    const char *name;
    bool sparse;
    kiln_status (*plans)(kiln_plan **plans, int64_t *count, kiln_device *device, const kiln_work *work);
};
const struct planned *planned_named(const char *name); /* NULL: there is none */

struct plan_list {
    kiln_plan *plans; /* by predicted time */
    int64_t count;
    const kiln_plan *chosen; /* one of them; NULL: none */
};

/* Each returns 0 or the exit code of an error that it has reported. */
int plans_work(const struct run *run, const struct planned *planned,
               kiln_work *work); /* of --rows, --columns, --nnz, --k, --type */
int plans_list(struct run *run, const struct planned *planned, struct plan_list *list, const kiln_work *work);

struct plan_row {
    const kiln_plan *plan;
    double seconds; /* measured; NaN: it was not */
};

void plans_put_work(struct result *result, const struct run *run, const struct planned *planned,
                    const kiln_work *work);
void plans_put_device(struct result *result, const struct run *run);

/* Plans as "plans", and for people: `most` of them and the choice, in columns of those parameters that say
 * something. entries: vectors of threads go through entries, not rows. plans_table.c */
enum { PARAMETERS_MOST = 16 };
struct plan_table {
    const struct plan_row *rows;
    int64_t count, most;
    bool entries, measured, shown[PARAMETERS_MOST];
};
void plans_put(struct result *result, struct plan_table *table, const struct plan_row *rows, int64_t count,
               int64_t most, bool entries);

#endif
