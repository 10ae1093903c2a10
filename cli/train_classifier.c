#define _GNU_SOURCE
/* The rows of the classifiers, logistic regression and the support vector machine; the latter's regression too. */
#include <math.h>
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

/* Of a target that is numbers: a coefficient a column and class takes its time. */
static int64_t classes_most(const struct settings *settings) {
    enum { CLASSES_MOST = 100 };
    return settings->max_classes ? settings->max_classes : CLASSES_MOST;
}

static int find_classes(struct training *job) {
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
    if (count > classes_most(job->settings) && !kiln_data_class_name(job->data, 0, 0))
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

static int prepare_classifier(struct run *run, struct training *job) {
    int code = 0;
    const char *weights = job->settings->class_weight;
    if (weights) code = classes_weights(&job->class_weights, &job->balanced, &job->classes, weights);
    if (!code) code = train_allocate(run, job, job->classes.count == 2 ? 1 : job->classes.count);
    return code;
}

/* --------------------------------------------------------------------------- logistic regression */

static int prepare_logreg(struct run *run, struct training *job) {
    job->loss.kind = KILN_LOSS_LOGISTIC; /* of one kind with the other, for a warm start */
    int code = prepare_classifier(run, job);
    if (job->classes.count > 2) job->loss.kind = KILN_LOSS_SOFTMAX;
    return code;
}

/* The library takes 0 for its default, and a negative number for none. */
static double without_default(double l2) {
    return l2 == 0 ? KILN_NONE : l2;
}

static kiln_status solve_logreg(const struct training *job, const struct problem *problem,
                                kiln_report *report) {
    const kiln_logreg_options options = {.l2 = without_default(problem->penalty.l2),
                                         .l1 = problem->penalty.l1,
                                         .class_weights = job->class_weights,
                                         .balanced = job->balanced,
                                         SHARED_OPTIONS(job, problem)};
    return kiln_logreg(job->W, job->b, kiln_data_X(job->data), kiln_data_y(job->data), &options, report);
}

static double logreg_l2(double C) {
    return 1 / C;
}

static const char *score_log_loss(const struct training *job) {
    (void)job;
    return "log_loss";
}

const struct algorithm algorithm_logreg = {.name = "logreg",
                                           .title = "logistic regression",
                                           .inspect = find_classes,
                                           .prepare = prepare_logreg,
                                           .solve = solve_logreg,
                                           .l2_of_C = logreg_l2,
                                           .score = score_log_loss};

/* ------------------------------------------------------------------------- support vector machine */

static int check_svm(struct training *job) {
    const struct settings *settings = job->settings;
    job->loss.kind = settings->regression ? KILN_LOSS_SQUARED_EPSILON : KILN_LOSS_SQUARED_HINGE;
    job->loss.parameter = settings->epsilon;
    if (settings->regression && settings->class_weight)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--weights and --weights-file weigh rows",
                         "--class-weight: a regression has no classes");
    if (!settings->regression && settings->epsilon > 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "it belongs to --regression",
                         "--epsilon has no meaning here");
    return 0;
}

static int inspect_svm(struct training *job) {
    if (!job->settings->regression) return find_classes(job);
    if (kiln_matrix_cols(kiln_data_y(job->data)) != 1)
        return fail_with(KILN_ERR_DATA, READING, "name one target column", "svm learns one target at a time");
    return 0;
}

static int prepare_svm(struct run *run, struct training *job) {
    return run->settings->regression ? train_allocate(run, job, 1) : prepare_classifier(run, job);
}

static kiln_status solve_svm(const struct training *job, const struct problem *problem, kiln_report *report) {
    const struct settings *settings = job->settings;
    const kiln_svm_options options = {.regression = settings->regression,
                                      .epsilon = settings->epsilon,
                                      .l2 = without_default(problem->penalty.l2),
                                      .class_weights = job->class_weights,
                                      .balanced = job->balanced,
                                      SHARED_OPTIONS(job, problem)};
    return kiln_svm(job->W, job->b, kiln_data_X(job->data), kiln_data_y(job->data), &options, report);
}

static double svm_l2(double C) {
    return 1 / (2 * C);
}

static const char *score_svm(const struct training *job) {
    return job->settings->regression ? "rmse" : "accuracy";
}

const struct algorithm algorithm_svm = {.name = "svm",
                                        .title = "support vector machine",
                                        .check = check_svm,
                                        .inspect = inspect_svm,
                                        .prepare = prepare_svm,
                                        .solve = solve_svm,
                                        .l2_of_C = svm_l2,
                                        .score = score_svm};
