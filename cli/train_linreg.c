/* The row of linear regression. */
#include "train.h"

static int prepare_linreg(struct run *run, struct training *job) {
    job->loss.kind = KILN_LOSS_SQUARED;
    return train_allocate(run, job, kiln_matrix_cols(kiln_data_y(job->data)));
}

static kiln_status solve_linreg(const struct training *job, const struct problem *problem,
                                kiln_report *report) {
    const kiln_linreg_options *given = (const void *)job->settings->algorithm.bytes;
    const kiln_linreg_options options = {.l2 = problem->penalty.l2,
                                         .no_preconditioner = given->no_preconditioner,
                                         SHARED_OPTIONS(job, problem)};
    return kiln_linreg(job->W, job->b, kiln_data_X(job->data), kiln_data_y(job->data), &options, report);
}

static const char *score_numbers(const struct training *job) {
    (void)job;
    return "rmse";
}

const struct algorithm algorithm_linreg = {.name = "linreg",
                                           .title = "linear regression",
                                           .prepare = prepare_linreg,
                                           .solve = solve_linreg,
                                           .score = score_numbers};
