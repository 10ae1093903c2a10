#define _GNU_SOURCE
/* This file has what logistic regression and the support vector machine share: the classes of a target. */
#include <stdlib.h>
#include <string.h>

#include "train.h"

/* ---------------------------------------------------------------------------------------- classes */

static int copy_names(struct training *job) {
    struct classes *classes = &job->classes;
    if (!kiln_data_class_name(job->data, 0, 0)) return 0;
    classes->names = calloc((size_t)classes->count, sizeof *classes->names);
    bool failed = !classes->names;
    for (int64_t i = 0; !failed && i < classes->count; i++) {
        const char *name = kiln_data_class_name(job->data, 0, (int64_t)classes->values[i]);
        classes->names[i] = name ? strdup(name) : NULL;
        failed = !classes->names[i];
    }
    return failed ? fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the classes' names") : 0;
}

/* Returns whether the labels are numbers, though they may be kept as text: 1.50, 2.00, ... */
static bool are_numbers(const kiln_data *data) {
    const char *name;
    for (int64_t i = 0; (name = kiln_data_class_name(data, 0, i)); i++) {
        char *end;
        strtod(name, &end);
        if (end == name || *end) return false;
    }
    return true;
}

/* A target that is numbers may have no more classes: a coefficient a column and class takes its time. */
static int64_t classes_most(const struct settings *settings) {
    return settings->max_classes ? settings->max_classes : CLASSES_MOST;
}

int train_find_classes(struct training *job) {
    const kiln_matrix *y = kiln_data_y(job->data);
    double *values = NULL;
    int64_t count;
    if (kiln_matrix_cols(y) != 1)
        return fail_with(KILN_ERR_DATA, READING, "name one target column",
                         "%s tells the classes of one target apart, the data have %lld targets",
                         job->algorithm->name, (long long)kiln_matrix_cols(y));
    if (kiln_classes(&values, &count, y, 0) != KILN_OK) return fail_library(READING);
    job->classes.values = malloc((size_t)count * sizeof *values);
    if (job->classes.values) memcpy(job->classes.values, values, (size_t)count * sizeof *values);
    job->classes.count = job->classes.values ? count : 0;
    kiln_free(values);
    if (!job->classes.values)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld classes", (long long)count);
    if (count > classes_most(job->settings) && are_numbers(job->data))
        return fail_with(KILN_ERR_DATA, READING,
                         "kiln linreg, glm and svm --regression predict numbers; "
                         "--max-classes says that so many classes are meant",
                         "the target has %s different numbers: is it a measurement, not a class?",
                         text_count(count));
    if (count < 2)
        return fail_with(KILN_ERR_DATA, READING, "",
                         "all rows are of one class: there is nothing to tell apart");
    return copy_names(job);
}

int train_prepare_classifier(struct run *run, struct training *job) {
    int code = 0;
    const char *weights = job->settings->class_weight;
    if (weights) code = classes_weights(&job->class_weights, &job->balanced, &job->classes, weights);
    if (!code) code = train_allocate(run, job, job->classes.count == 2 ? 1 : job->classes.count);
    return code;
}
