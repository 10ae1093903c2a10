/* What kiln explain and kiln tune share: the shape that was asked for, and tables of plans. */
#ifndef CLI_PLANS_H
#define CLI_PLANS_H

#include "common.h"

struct plan_list {
    kiln_plan *plans; /* by predicted time */
    int64_t count;
    const kiln_plan *chosen; /* one of them; NULL: none */
};

/* Each returns 0 or the exit code of an error that it has reported. */
int plans_work(const struct run *run, kiln_work *work); /* of --rows, --columns, --nnz, --k, --type */
int plans_list(struct run *run, struct plan_list *list, const kiln_work *work);

void plans_print_work(const struct run *run, const kiln_work *work);
void plans_print_head(const char *extra);
void plans_print_row(const kiln_plan *plan, const char *extra);
void plans_json_work(json_t *object, const kiln_work *work);
json_t *plans_json(const kiln_plan *plan);

#endif
