/* This header has what kiln_batch_plans and kiln_dense_plans have in common: lines on stdin about a GPU that
 * is not here, answers on stdout.
 *   set I VALUE                        the constant that is the I-th in `constants`
 *   constants                          a line a constant, "NAME VALUE", then "."
 * and lines of the model's own. */
#ifndef CONSTANTS_H
#define CONSTANTS_H
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kiln.h"

/* A model's constants are `count` numbers in the order of their names. */
struct constants {
    const char *const *names;
    double *values;
    int count;
};

/* True: the line was about constants, and has been answered. */
static inline bool constants_answer(const struct constants *of, const char *line) {
    int at;
    double value;
    if (sscanf(line, "set %d %lf", &at, &value) == 2 && at >= 0 && at < of->count) {
        of->values[at] = value;
        return true;
    }
    if (strncmp(line, "constants", 9) != 0) return false;
    for (int i = 0; i < of->count; i++) printf("%s %.9g\n", of->names[i], of->values[i]);
    puts(".");
    return true;
}

static inline kiln_type type_named(const char *name) {
    return strcmp(name, "f64") == 0 ? KILN_F64 : KILN_F32;
}

/* Each line of stdin goes to the constants or to `answer`, which returns 0 if it understood; the exit
 * code. */
static inline int answer_lines(const char *program, const struct constants *of,
                               int (*answer)(kiln_device *device, const char *line), kiln_device *device) {
    char line[256];
    int status = 0;
    while (status == 0 && fgets(line, sizeof line, stdin))
        status = (!constants_answer(of, line) && answer(device, line)) || fflush(stdout) != 0;
    if (status) fprintf(stderr, "%s: not understood: %s", program, line);
    return status;
}
#endif
