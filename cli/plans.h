/* What kiln explain and kiln tune share: the shape that was asked for, and tables of plans. */
#ifndef CLI_PLANS_H
#define CLI_PLANS_H

#include <kiln/tune.h>

#include "common.h"

struct plan_list {
    kiln_plan *plans; /* by predicted time */
    int64_t count;
    const kiln_plan *chosen; /* one of them; NULL: none */
};

/* Each returns 0 or the exit code of an error that it has reported. */
int plans_work(const struct run *run, kiln_work *work); /* of --rows, --columns, --nnz, --k, --type */
int plans_list(struct run *run, struct plan_list *list, const kiln_work *work);

struct plan_row {
    const kiln_plan *plan;
    double seconds; /* measured; NaN: it was not */
};

void plans_print_work(FILE *file, const struct run *run, const kiln_work *work);
/* The first `most` rows and the choice. plans_table.c */
void plans_print(FILE *file, const struct plan_row *list, int64_t count, int64_t most);
void plans_json_work(json_t *object, const kiln_work *work);
json_t *plans_json(const kiln_plan *plan);

#endif
