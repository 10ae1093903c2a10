/* The table of plans. A plan has more parameters than a screen has room for, and a device sets only some of them: a column is
 * shown where it says something, and the ones that are shown are explained below. */
#include <math.h>
#include <string.h>

#include "plans.h"

enum { LINE = 100 };

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
    const char *name, *meaning;
    double (*value)(const kiln_plan *plan);
    double plain;
    int width;
    const char *of_entries; /* its meaning where vectors of threads go through entries; NULL: the same */
} parameters[] = {
    {"VS", "threads that share a row", vector, 1, 4, NULL},
    {"BS", "threads in a work-group (CPU: in all)", group, 0, 5, NULL},
    {"CL", "work-groups that share a row", team, 1, 3, NULL},
    {"ST", "tiles of X on their way while one is worked on", stages, 0, 3, NULL},
    {"C", "rows that a vector of threads goes through", coarsening, 0, 9,
     "entries that a vector of threads goes through"},
    {"TL", "elements of a row that a thread holds", load, 0, 4, NULL},
    {"ROWS", "rows a step", rows, 0, 5, "entries a step, whose rows are loaded together"},
    {"K", "columns of y taken in one pass", columns, 1, 4, "numbers of each row taken in one pass"},
    {"GROUPS", "work-groups launched", groups, 1, 7, NULL},
    {"OCCUP.", "threads that a compute unit holds, of those that it can, in %", occupancy, 100, 7, NULL},
    {"ATOMICS", "additions to w in memory that other threads may make too", atomics, 0, 10, NULL},
};
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

struct table {
    bool shown[PARAMETERS], measured;
};

static struct table lay_out(const struct plan_row *list, int64_t count) {
    struct table table = {.measured = false};
    for (int64_t i = 0; i < count; i++) {
        if (!isnan(list[i].seconds)) table.measured = true;
        for (int p = 0; p < PARAMETERS; p++) {
            const double value = parameters[p].value(list[i].plan);
            /* 0 stands for a parameter that the device does not have. */
            if (value != 0 && value != parameters[p].plain) table.shown[p] = true;
        }
    }
    return table;
}

static void print_head(FILE *file, const struct table *table) {
    fprintf(file, "  %-14s", "VARIANT");
    for (int p = 0; p < PARAMETERS; p++)
        if (table->shown[p]) fprintf(file, " %*s", parameters[p].width, parameters[p].name);
    fprintf(file, " %10s %12s%s  LIMIT\n", "BYTES", "PREDICTED", table->measured ? "     MEASURED" : "");
}

static void print_row(FILE *file, const struct table *table, const struct plan_row *row) {
    const kiln_plan *plan = row->plan;
    fprintf(file, "%c %-14s", plan->chosen ? '*' : ' ', plan->variant);
    for (int p = 0; p < PARAMETERS; p++)
        if (table->shown[p]) fprintf(file, " %*.7g", parameters[p].width, round(parameters[p].value(plan)));
    fprintf(file, " %10s %9.4f ms", text_bytes(plan->bytes), 1e3 * plan->seconds);
    if (table->measured) fprintf(file, " %9.4f ms", 1e3 * row->seconds);
    fprintf(file, "  %s\n", plan->limit);
}

static void print_legend(FILE *file, const struct table *table, bool entries) {
    char text[1024] = "";
    for (int p = 0; p < PARAMETERS; p++) {
        const size_t used = strlen(text);
        if (table->shown[p])
            snprintf(text + used, sizeof text - used, "%s%s: %s", used ? "; " : "", parameters[p].name,
                     entries && parameters[p].of_entries ? parameters[p].of_entries : parameters[p].meaning);
    }
    if (*text) text_wrap(file, text, 0, LINE);
}

void plans_print(FILE *file, const struct plan_row *list, int64_t count, int64_t most, bool entries) {
    if (!count) {
        fprintf(file, "  no plans: the device goes about such an X in one way only\n");
        return;
    }
    const struct table table = lay_out(list, count);
    print_head(file, &table);
    for (int64_t i = 0; i < count; i++)
        if (i < most || list[i].plan->chosen) print_row(file, &table, &list[i]);
    if (count > most) fprintf(file, "  %s; --verbose shows all\n", text_plural(count, "plan"));
    fputc('\n', file);
    print_legend(file, &table, entries);
}
