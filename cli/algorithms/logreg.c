/* kiln logreg: logistic regression, of two classes or more. */
#include "linear.h"
#include "verbs.h"
#include "verify.h"

static int prepare_logreg(struct run *run, struct training *job) {
    job->loss.kind = KILN_LOSS_LOGISTIC; /* of one kind with the other, for a warm start */
    int code = linear_prepare_classifier(run, job);
    if (job->classes.count > 2) job->loss.kind = KILN_LOSS_SOFTMAX;
    return code;
}

static void set_logreg(void *own, const struct training *job, const struct problem *problem) {
    kiln_logreg_options *options = own;
    *options = *GIVEN(kiln_logreg_options, job->settings);
    options->l2 = problem->penalty.l2;
    kiln_option_give("logreg", options, "l2");
    options->l1 = problem->penalty.l1;
    options->class_weights = job->class_weights;
    options->balanced = job->balanced;
    TAKE_PROBLEM(*options, problem);
}

static kiln_status solve_logreg(const struct training *job, const struct problem *problem,
                                kiln_report *report) {
    kiln_logreg_options options;
    set_logreg(&options, job, problem);
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
                                           .inspect = linear_find_classes,
                                           .prepare = prepare_logreg,
                                           .set = set_logreg,
                                           .solve = solve_logreg,
                                           .l2_of_C = logreg_l2,
                                           .score = score_log_loss};

const struct verb verb_of_logreg = {
    "logreg",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Train a logistic regression",
    "Two classes or more (true softmax), with L2, L1 or both: minimises sum_i s_i loss(y_i, "
    "x_i.W + b) + l1 "
    "sum|W| + (l2/2) ||W||^2 by a trust-region Newton method. The classes are the distinct "
    "values of the "
    "target, numbers or, in CSV, text.\n\n" DATA_FORMATS "\n\n" TRAINING_SUMMARY,
    "kiln logreg a9a.svm.gz --C 1 -o a9a.kiln\n"
    "kiln logreg iris.csv --target species --standardize -o iris.kiln\n"
    "kiln logreg a9a.svm.gz --l1 0.1:100:10 --cv 5 --select one-se -o sparse.kiln\n"
    "kiln predict a9a.kiln a9a.test.svm.gz --probabilities",
    .run = solve_run,
    .solver = &linear_solver,
    .kinds = VERB_BIT(LOGREG),
    .verify = verify_linear,
    .otherwise = "balanced"};
