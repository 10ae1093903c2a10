/* The table of plans. A plan has more parameters than a screen has room for, and a device sets only some of
 * them: a column is shown where it says something, and the ones that are shown are explained below. */
#include <math.h>
#include <string.h>

#include "plans.h"

static double vector(const kiln_plan *plan) {
    return plan->vector;
}
static double group(const kiln_plan *plan) {
    return plan->group;
}
static double team(const kiln_plan *plan) {
    return plan->team;
}
static double stages(const kiln_plan *plan) {
    return plan->stages;
}
static double coarsening(const kiln_plan *plan) {
    return (double)plan->coarsening;
}
static double load(const kiln_plan *plan) {
    return plan->load;
}
static double rows(const kiln_plan *plan) {
    return plan->rows;
}
static double columns(const kiln_plan *plan) {
    return plan->columns;
}
static double groups(const kiln_plan *plan) {
    return (double)plan->groups;
}
static double occupancy(const kiln_plan *plan) {
    return 100 * plan->occupancy;
}
static double atomics(const kiln_plan *plan) {
    return plan->atomics;
}

/* Shown if a plan has another value than `plain`. */
static const struct {
    const char *key, *name, *meaning;
    double (*value)(const kiln_plan *plan);
    double plain;
    int width;
    const char *of_entries; /* its meaning where vectors of threads go through entries; NULL: the same */
} parameters[] = {
    {"VS", "VS", "threads that share a row", vector, 1, 4, NULL},
    {"BS", "BS", "threads in a work-group (CPU: in all)", group, 0, 5, NULL},
    {"team", "CL", "work-groups that share a row", team, 1, 3, NULL},
    {"stages", "ST", "tiles of X on their way while one is worked on", stages, 0, 3, NULL},
    {"C", "C", "rows that a vector of threads goes through", coarsening, 0, 9,
     "entries that a vector of threads goes through"},
    {"TL", "TL", "elements of a row that a thread holds", load, 0, 4, NULL},
    {"rows_a_step", "ROWS", "rows a step", rows, 0, 5, "entries a step, whose rows are loaded together"},
    {"K", "K", "columns of y taken in one pass", columns, 1, 4, "numbers of each row taken in one pass"},
    {"groups", "GROUPS", "work-groups launched", groups, 1, 7, NULL},
    {NULL, "OCCUP.", "threads that a compute unit holds, of those that it can, in %", occupancy, 100, 7,
     NULL},
    {NULL, "ATOMICS", "additions to w in memory that other threads may make too", atomics, 0, 10, NULL},
};
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

static void lay_out(struct plan_table *table) {
    for (int64_t i = 0; i < table->count; i++) {
        if (!isnan(table->rows[i].seconds)) table->measured = true;
        for (int p = 0; p < PARAMETERS; p++) {
            const double value = parameters[p].value(table->rows[i].plan);
            /* 0 stands for a parameter that the device does not have. */
            if (value != 0 && value != parameters[p].plain) table->shown[p] = true;
        }
    }
}

static void put_plan(struct result *row, const void *of, int64_t i) {
    const struct plan_table *table = of;
    const kiln_plan *plan = table->rows[i].plan;
    const double seconds = table->rows[i].seconds;
    const char *label = i < table->most || plan->chosen ? "" : NULL;
    PUT(row, "chosen", FLAG(plan->chosen), .label = label, .shown = plan->chosen ? "*" : " ", .width = 1);
    PUT(row, "variant", TEXT(plan->variant), .label = label ? "VARIANT" : NULL, .width = -14);
    for (int p = 0; p < PARAMETERS; p++) {
        const double value = parameters[p].value(plan);
        const bool shown = label && table->shown[p];
        PUT(row, parameters[p].key, COUNT((int64_t)value), .label = shown ? parameters[p].name : NULL,
            .shown = result_words(row, "%.7g", round(value)), .width = parameters[p].width);
    }
    PUT(row, "shared_w", COUNT(plan->shared));
    PUT(row, "occupancy", NUMBER(plan->occupancy));
    PUT(row, "bytes", BYTES(plan->bytes), .label = label ? "BYTES" : NULL, .width = 10);
    PUT(row, "atomics", NUMBER(plan->atomics));
    PUT(row, "predicted_seconds", NUMBER(plan->seconds));
    PUT(row, NULL, NUMBER(1e3 * plan->seconds), .format = "%.4f ms", .label = label ? "PREDICTED" : NULL,
        .width = 12);
    PUT(row, "seconds", NUMBER(seconds));
    PUT(row, NULL, NUMBER(1e3 * seconds), .format = "%.4f ms",
        .label = label && table->measured ? "MEASURED" : NULL, .width = 12);
    PUT(row, "limit", TEXT(plan->limit), .label = label ? "LIMIT" : NULL, .before = "  ");
}

static void put_legend(struct result *result, const struct plan_table *table) {
    char text[1024] = "";
    for (int p = 0; p < PARAMETERS; p++) {
        const size_t used = strlen(text);
        if (table->shown[p])
            snprintf(text + used, sizeof text - used, "%s%s: %s", used ? "; " : "", parameters[p].name,
                     table->entries && parameters[p].of_entries ? parameters[p].of_entries
                                                                : parameters[p].meaning);
    }
    if (*text) PUT(result, NULL, TEXT(result_words(result, "%s", text)), .wrapped = true);
}

void plans_put(struct result *result, struct plan_table *table, const struct plan_row *list, int64_t count,
               int64_t most, bool entries) {
    *table = (struct plan_table){.rows = list, .count = count, .most = most, .entries = entries};
    lay_out(table);
    PUT(result, "plans", TABLE(count, put_plan, table));
    if (!count) PUT_LINE(result, "  no plans: the device goes about such an X in one way only");
    if (!count) return;
    if (count > most) PUT_LINE(result, "  %s; --verbose shows all", text_plural(count, "plan"));
    PUT_LINE(result, "%s", "");
    put_legend(result, table);
}
