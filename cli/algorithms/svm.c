/* kiln svm: the linear support vector machine, and its regression. */
#include "linear.h"
#include "verbs.h"
#include "verify.h"

static bool regression(const struct training *job) {
    return GIVEN(kiln_svm_options, job->settings)->regression != 0;
}

static int check_svm(struct training *job) {
    const kiln_svm_options *given = GIVEN(kiln_svm_options, job->settings);
    job->loss.kind = given->regression ? KILN_LOSS_SQUARED_EPSILON : KILN_LOSS_SQUARED_HINGE;
    job->loss.parameter = given->epsilon;
    if (given->regression && job->settings->class_weight)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--weights and --weights-file weigh rows",
                         "--class-weight: a regression has no classes");
    if (!given->regression && given->epsilon > 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "it belongs to --regression",
                         "--epsilon has no meaning here");
    return 0;
}

static int inspect_svm(struct training *job) {
    if (!regression(job)) return linear_find_classes(job);
    if (kiln_matrix_cols(kiln_data_y(job->data)) != 1)
        return fail_with(KILN_ERR_DATA, READING, "name one target column", "svm learns one target at a time");
    return 0;
}

static int prepare_svm(struct run *run, struct training *job) {
    return regression(job) ? linear_allocate(run, job, 1) : linear_prepare_classifier(run, job);
}

static void set_svm(void *own, const struct training *job, const struct problem *problem) {
    kiln_svm_options *options = own;
    *options = *GIVEN(kiln_svm_options, job->settings);
    options->l2 = problem->penalty.l2;
    kiln_option_give("svm", options, "l2");
    options->class_weights = job->class_weights;
    options->balanced = job->balanced;
    TAKE_PROBLEM(*options, problem);
}

static kiln_status solve_svm(const struct training *job, const struct problem *problem, kiln_report *report) {
    kiln_svm_options options;
    set_svm(&options, job, problem);
    return kiln_svm(job->W, job->b, kiln_data_X(job->data), kiln_data_y(job->data), &options, report);
}

static double svm_l2(double C) {
    return 1 / (2 * C);
}

static const char *score_svm(const struct training *job) {
    return regression(job) ? "rmse" : "accuracy";
}

const struct algorithm algorithm_svm = {.name = "svm",
                                        .title = "support vector machine",
                                        .check = check_svm,
                                        .inspect = inspect_svm,
                                        .prepare = prepare_svm,
                                        .set = set_svm,
                                        .solve = solve_svm,
                                        .l2_of_C = svm_l2,
                                        .score = score_svm};

const struct verb verb_of_svm = {
    "svm",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Train a linear support vector machine",
    "With the squared hinge, in the primal: minimises sum_i s_i max(0, 1 - y_i (x_i.w + b))^2 / 2 + "
    "(l2/2) ||w||^2, several classes each against the rest; with --regression max(0, |x_i.w + b - "
    "y_i| - epsilon)^2 / 2. The duality gap in the summary bounds how far the objective can be from "
    "its optimum.\n\n" DATA_FORMATS "\n\n" TRAINING_SUMMARY,
    "kiln svm a9a.svm.gz --C 1 -o a9a.kiln\n"
    "kiln svm houses.csv --target price --regression --epsilon 0.1 --standardize",
    .run = solve_run,
    .solver = &linear_solver,
    .kinds = VERB_BIT(SVM),
    .verify = verify_linear,
    .otherwise = "balanced"};
