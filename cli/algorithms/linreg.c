/* kiln linreg: linear regression. */
#include "linear.h"
#include "verbs.h"
#include "verify.h"

static int prepare_linreg(struct run *run, struct training *job) {
    job->loss.kind = KILN_LOSS_SQUARED;
    return linear_allocate(run, job, kiln_matrix_cols(kiln_data_y(job->data)));
}

static void set_linreg(void *own, const struct training *job, const struct problem *problem) {
    kiln_linreg_options *options = own;
    *options = *GIVEN(kiln_linreg_options, job->settings);
    options->l2 = problem->penalty.l2;
    TAKE_PROBLEM(*options, problem);
}

static kiln_status solve_linreg(const struct training *job, const struct problem *problem,
                                kiln_report *report) {
    kiln_linreg_options options;
    set_linreg(&options, job, problem);
    return kiln_linreg(job->W, job->b, kiln_data_X(job->data), kiln_data_y(job->data), &options, report);
}

static const char *score_numbers(const struct training *job) {
    (void)job;
    return "rmse";
}

const struct algorithm algorithm_linreg = {.name = "linreg",
                                           .title = "linear regression",
                                           .prepare = prepare_linreg,
                                           .set = set_linreg,
                                           .solve = solve_linreg,
                                           .score = score_numbers};

const struct verb verb_of_linreg = {"linreg",
                                    "DATA...",
                                    1,
                                    MAX_ARGUMENTS,
                                    NULL,
                                    "Train a linear regression",
                                    "Least squares with an L2 penalty, by preconditioned conjugate gradient "
                                    "or a Cholesky factor: minimises 1/2 sum_i s_i (x_i.w + b - y_i)^2 + "
                                    "(l2/2) ||w||^2 over w and b, for each target.\n\n" DATA_FORMATS
                                    "\n\n" TRAINING_SUMMARY,
                                    "kiln linreg data/flights.csv.gz --target arr_delay -o flights.kiln\n"
                                    "kiln linreg train.svm.gz --l2 1 --standardize -o model.kiln\n"
                                    "kiln linreg X.npz --target-file y.npy --device cuda --type f32 --json\n"
                                    "zstdcat train.svm.zst | kiln linreg - -o model.kiln",
                                    .run = solve_run,
                                    .solver = &linear_solver,
                                    .kinds = VERB_BIT(LINREG),
                                    .verify = verify_linear};
