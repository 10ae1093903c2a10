/* The algorithms: a line each. The order is that of help and of kiln_algorithm_at. */
#include "algorithms/registry.h"

#include <string.h>

#include "algorithms/algorithm.h"

#define ALGORITHMS(X)                                                                                        \
    X(linreg) X(logreg) X(glm) X(svm) X(hits) X(pagerank) X(mds) X(als) X(sfa) X(lda) X(gap) X(kmeans)

#define DECLARE(name) extern const struct ki_algorithm ki_algorithm_##name;
#define LIST(name) &ki_algorithm_##name,
ALGORITHMS(DECLARE)
static const struct ki_algorithm *const algorithms[] = {ALGORITHMS(LIST)};
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

void ki_options_fill(void *options, const kiln_algorithm *algorithm, kiln_type type) {
    for (int64_t i = 0; i < algorithm->option_count; i++) {
        const kiln_option *option = &algorithm->options[i];
        const double standard = type == KILN_F32 ? option->standard_f32 : option->standard;
        void *field = (char *)options + option->offset;
        switch (option->kind) {
        case KILN_OPTION_FLAG: break;
        case KILN_OPTION_INT:
        case KILN_OPTION_CHOICE:
            if (*(int *)field == 0) *(int *)field = (int)standard;
            break;
        case KILN_OPTION_INTEGER:
            if (*(int64_t *)field == 0) *(int64_t *)field = (int64_t)standard;
            break;
        case KILN_OPTION_REAL:
        case KILN_OPTION_POSITIVE:
            if (*(double *)field == 0) *(double *)field = standard;
            break;
        }
    }
}
