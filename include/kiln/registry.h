/* Kiln: which algorithms there are, and what can be set of each.
 *
 * A tool or a binding that reads this table offers a new algorithm, and a new option of an old one, without a
 * line of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_REGISTRY_H
#define KILN_REGISTRY_H

#include "kiln/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_option_kind {
    KILN_OPTION_FLAG = 1,     /* int, 0 or 1 */
    KILN_OPTION_INT = 2,      /* int in [least, most] */
    KILN_OPTION_INTEGER = 3,  /* int64_t in [least, most] */
    KILN_OPTION_REAL = 4,     /* double in [least, most] */
    KILN_OPTION_POSITIVE = 5, /* double in (0, most] */
    KILN_OPTION_CHOICE = 6    /* an enum: `choices` names the numbers from 1 on */
} kiln_option_kind;

/* A field of an algorithm's options struct. Fields that are arguments rather than settings (warm_start,
 * matrices, arrays, the control) are not listed. */
typedef struct kiln_option {
    const char *name; /* the field's */
    kiln_option_kind kind;
    size_t offset; /* of the field in the struct */
    /* Says what a field of 0 stands for, for an X in f64 and in f32; 0 where the data or other options
     * decide. A flag's field of 0 is off in any case: tools and bindings set it where nobody says and its
     * standard is 1. */
    double standard, standard_f32;
    double least, most;
    const char *choices; /* "gaussian|poisson|..."; NULL but for a choice */
    const char *help;    /* one sentence or more */
} kiln_option;

typedef struct kiln_algorithm {
    const char *name;    /* as in a model's text "algorithm", and kiln_NAME is its function */
    const char *summary; /* what it does: "Train a linear regression" */
    const kiln_option *options;
    int64_t option_count;
    size_t options_bytes; /* sizeof its options struct */
    int predicts;         /* 1: kiln_predict takes its models */
    /* for kiln_work.trial (kiln/tune.h): how to find out what a run takes; NULL: what its passes over X
     * take */
    const struct kiln_trial *trial;
    /* how many factors, topics or coordinates tools and bindings ask for where nobody says; 0: it must be
     * said, or there is nothing to say */
    int64_t components;
} kiln_algorithm;

/* Says that an option of an algorithm's options struct is meant as it stands, though it is 0, which else
 * stands for the default: a tolerance of 0 (until rounding allows no more), no damping, no penalty.
 *   kiln_pagerank_options options = {.size = sizeof options, .damping = 0};
 *   kiln_option_give("pagerank", &options, "damping");
 * The algorithm refuses a 0 that makes no sense, such as a max_iterations of 0. option: the field's name, of
 * those that the registry lists. Errors: ERR_ARGUMENT (no such algorithm or option; a size without the field
 * `given`). */
KILN_API kiln_status kiln_option_give(const char *algorithm, void *options, const char *option);
/* An option's value in force for an X of that type: as it stands, or what 0 stands for by the table. NaN
 * where there is no such option. options: the algorithm's options struct, of its full size. */
KILN_API double kiln_option_value(const char *algorithm, const void *options, const char *option,
                                  kiln_type type);

/* The i-th algorithm, from 0; NULL past the last. Valid for as long as the library is loaded, as all in
 * it. */
KILN_API const kiln_algorithm *kiln_algorithm_at(int64_t i);
KILN_API const kiln_algorithm *
kiln_algorithm_named(const char *name); /* NULL if there is none of that name */
/* Passes over an X of so many columns that a run is expected to take before it converges, from experience
 * with real data; max_iterations as in its options, 0 = the default. 1 for a name that is none. */
KILN_API int64_t kiln_algorithm_passes(const char *name, int64_t columns, int64_t max_iterations);

/* Says which of its ways an algorithm would take. Zero it before the call. */
typedef struct kiln_solver {
    size_t size;
    const char *solver;     /* as kiln_report's would begin; a literal; NULL: it does not choose by X */
    int64_t max_iterations; /* in force: as given, or the default for such an X; 0: it has no such option */
    char why[256];          /* what decided, a sentence without a full stop; "" where there is no choice */
} kiln_solver;
/* Finds what the algorithm would do with X, on its device, for k columns of y (classes, where these are more
 * than 2) and with `options`, its options struct (NULL: defaults). Fields that are no settings are not looked
 * at. At most 65,536 of X's entries are looked at: a rule that only the data can bring into force, as a
 * factor that turns out useless, may lead to another solver in the end. Errors: ERR_ARGUMENT (no algorithm of
 * that name, or X is NULL, k < 1, an option out of its range), ERR_UNSUPPORTED (a solver that cannot be had
 * for such an X). On failure *choice is untouched. */
KILN_API kiln_status kiln_solver_choose(kiln_solver *choice, const char *name, const void *options,
                                        const kiln_matrix *X, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
