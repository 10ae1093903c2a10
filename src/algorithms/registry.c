/* Looks things up in the algorithms' rows. Their order is that of help and of kiln_algorithm_at. */
#include "algorithms/registry.h"

#include <string.h>

#include "algorithms/algorithm.h"

#define LIST(name) &ki_algorithm_##name,
static const struct ki_algorithm *const algorithms[] = {KI_ALGORITHMS(LIST)};
enum { COUNT = sizeof algorithms / sizeof *algorithms };

const struct ki_algorithm *ki_algorithm_named(const char *name) {
    for (int i = 0; name && i < COUNT; i++)
        if (strcmp(algorithms[i]->shown.name, name) == 0) return algorithms[i];
    return NULL;
}

const kiln_algorithm *kiln_algorithm_at(int64_t i) {
    return i >= 0 && i < COUNT ? &algorithms[i]->shown : NULL;
}

const kiln_algorithm *kiln_algorithm_named(const char *name) {
    const struct ki_algorithm *found = ki_algorithm_named(name);
    return found ? &found->shown : NULL;
}

int64_t kiln_algorithm_passes(const char *name, int64_t columns, int64_t max_iterations) {
    const struct ki_algorithm *found = ki_algorithm_named(name);
    if (!found) return 1;
    int64_t iterations = found->passes.iterations;
    if (found->passes.per_column && columns < iterations) iterations = columns;
    if (max_iterations > 0 && max_iterations < iterations) iterations = max_iterations;
    return iterations + found->passes.besides;
}

/* The field of that name, or its default: 0 for an algorithm that has none. */
static int64_t most_iterations(const kiln_algorithm *algorithm, const void *options) {
    for (int64_t i = 0; i < algorithm->option_count; i++) {
        const kiln_option *option = &algorithm->options[i];
        if (strcmp(option->name, "max_iterations") != 0) continue;
        const int64_t given =
            options ? *(const int64_t *)(const void *)((const char *)options + option->offset) : 0;
        return given ? given : (int64_t)option->standard;
    }
    return 0;
}

kiln_status kiln_solver_choose(kiln_solver *choice, const char *name, const void *options,
                               const kiln_matrix *X, int64_t k) {
    static const char call[] = "kiln_solver_choose";
    kiln_status status;
    kiln_solver made = {0};
    const struct ki_algorithm *found = ki_algorithm_named(name);
    if (!choice || !X || !found || k < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s", call,
                       !choice ? "choice is NULL"
                       : !X    ? "X is NULL"
                       : found ? "k must be positive"
                               : "there is no algorithm of that name");
    TRY(KI_CHECK_RESULT(kiln_solver, choice));
    made.max_iterations = most_iterations(&found->shown, options);
    if (found->choose) TRY(found->choose(&made, options, X, k));
    KI_GIVE(kiln_solver, choice, &made);
done:
    return status;
}

/* ------------------------------------------------------------------------------------- values of options */

static const kiln_option *option_named(const struct ki_algorithm *algorithm, const char *name) {
    for (int64_t i = 0; algorithm && i < algorithm->shown.option_count; i++)
        if (strcmp(algorithm->shown.options[i].name, name) == 0) return &algorithm->shown.options[i];
    return NULL;
}

static double value_of(const void *options, const kiln_option *option) {
    const void *field = (const char *)options + option->offset;
    switch (option->kind) {
    case KILN_OPTION_FLAG:
    case KILN_OPTION_INT:
    case KILN_OPTION_CHOICE: return *(const int *)field;
    case KILN_OPTION_INTEGER: return (double)*(const int64_t *)field;
    case KILN_OPTION_REAL:
    case KILN_OPTION_POSITIVE: return *(const double *)field;
    }
    return 0;
}

static void set_value(void *options, const kiln_option *option, double value) {
    void *field = (char *)options + option->offset;
    switch (option->kind) {
    case KILN_OPTION_FLAG:
    case KILN_OPTION_INT:
    case KILN_OPTION_CHOICE: *(int *)field = (int)value; break;
    case KILN_OPTION_INTEGER: *(int64_t *)field = (int64_t)value; break;
    case KILN_OPTION_REAL:
    case KILN_OPTION_POSITIVE: *(double *)field = value; break;
    }
}

static uint64_t *mask_of(void *options, const struct ki_algorithm *algorithm) {
    return (uint64_t *)(void *)((char *)options + algorithm->given);
}

static bool given(const void *options, const struct ki_algorithm *algorithm, const kiln_option *option) {
    const void *mask = (const char *)options + algorithm->given;
    return *(const uint64_t *)mask >> (option - algorithm->shown.options) & 1;
}

/* The value that 0 stands for; a flag of 0 is off, though its verb and Python may turn it on by default. */
static double standard_of(const kiln_option *option, kiln_type type) {
    if (option->kind == KILN_OPTION_FLAG) return 0;
    return type == KILN_F32 ? option->standard_f32 : option->standard;
}

kiln_status kiln_option_give(const char *name, void *options, const char *option) {
    static const char call[] = "kiln_option_give";
    const struct ki_algorithm *algorithm = ki_algorithm_named(name);
    const kiln_option *found = option ? option_named(algorithm, option) : NULL;
    if (!options || !found)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s", call,
                       !options     ? "options is NULL"
                       : !algorithm ? "there is no algorithm of that name"
                                    : "the algorithm has no option of that name");
    if (*(const size_t *)options < algorithm->given + sizeof(uint64_t))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: options->size must be sizeof kiln_%s_options", call, name);
    *mask_of(options, algorithm) |= (uint64_t)1 << (found - algorithm->shown.options);
    return KILN_OK;
}

kiln_status ki_options_check(const void *options, const struct ki_algorithm *algorithm) {
    const kiln_algorithm *shown = &algorithm->shown;
    for (int64_t i = 0; i < shown->option_count; i++) {
        const kiln_option *option = &shown->options[i];
        if (!given(options, algorithm, option) || value_of(options, option) != 0) continue;
        if (option->kind == KILN_OPTION_POSITIVE || option->least > 0)
            return ki_fail(KILN_ERR_ARGUMENT, "kiln_%s_options.%s is 0, but must be %s %g", shown->name,
                           option->name, option->kind == KILN_OPTION_POSITIVE ? "above" : "at least",
                           option->least);
    }
    return KILN_OK;
}

void ki_options_fill(void *options, const struct ki_algorithm *algorithm, kiln_type type) {
    for (int64_t i = 0; i < algorithm->shown.option_count; i++) {
        const kiln_option *option = &algorithm->shown.options[i];
        if (value_of(options, option) == 0 && !given(options, algorithm, option))
            set_value(options, option, standard_of(option, type));
    }
}

bool ki_option_stands(const void *options, const struct ki_algorithm *algorithm, const char *name) {
    const kiln_option *option = option_named(algorithm, name);
    return value_of(options, option) != 0 || given(options, algorithm, option);
}

double kiln_option_value(const char *name, const void *options, const char *option, kiln_type type) {
    const struct ki_algorithm *algorithm = ki_algorithm_named(name);
    const kiln_option *found = option ? option_named(algorithm, option) : NULL;
    if (!found || !options) return NAN;
    return ki_option_stands(options, algorithm, option) ? value_of(options, found) : standard_of(found, type);
}

void ki_option_set(void *options, const struct ki_algorithm *algorithm, const char *name, double value) {
    const kiln_option *option = option_named(algorithm, name);
    set_value(options, option, value);
    *mask_of(options, algorithm) |= (uint64_t)1 << (option - algorithm->shown.options);
}
