/* A cross-validation goes on with numbers that go along with each state of the run: for whom they are, what
 * came of the folds that are done, and with --held-out what was predicted. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "cv.h"

enum { HEAD = 6, OUTCOME = METRICS_MOST + 3 };

/* For whom the numbers are: others are refused. */
static void describe(double head[HEAD], const struct validation *validation, const struct training *job) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data));
    uint64_t folds = 1, metric = 1;
    for (int64_t i = 0; i < rows; i++) folds = folds * 31 + (uint64_t)validation->fold[i];
    for (const char *at = validation->metric; *at; at++) metric = metric * 31 + (unsigned char)*at;
    const double own[HEAD] = {
        (double)validation->folds,        (double)validation->count, (double)rows,
        (double)kiln_matrix_cols(job->W), (double)(folds >> 16),     (double)(metric >> 16)};
    memcpy(head, own, sizeof own);
}

/* Numbers one way or the other, one behind the other. */
struct pass {
    double *at;
    bool out;
};

static void real(struct pass *pass, double *value) {
    if (pass->out)
        *pass->at = *value;
    else
        *value = *pass->at;
    pass->at++;
}

static void whole(struct pass *pass, int64_t *value) {
    double number = (double)*value;
    real(pass, &number);
    *value = (int64_t)number;
}

static void came_of(struct pass *pass, struct outcome *outcome) {
    int64_t unconverged = outcome->unconverged;
    for (int i = 0; i < METRICS_MOST; i++) real(pass, &outcome->metrics[i]);
    whole(pass, &outcome->iterations);
    whole(pass, &outcome->nonzeros);
    whole(pass, &unconverged);
    outcome->unconverged = unconverged != 0;
}

/* Finds how many folds are done, and of each value of the penalty what came of them. */
static void pass_all(struct validation *validation, bool out) {
    struct pass pass = {validation->numbers + HEAD, out};
    whole(&pass, &validation->finished);
    for (int64_t i = 0; i < validation->count; i++) {
        struct tried *tried = &validation->tried[i];
        for (int64_t f = 0; f < validation->folds; f++) real(&pass, &tried->score[f]);
        came_of(&pass, &tried->sum);
    }
}

/* Returns how many numbers come before the penalties, of which each value has two. */
static int64_t before_penalties(const struct validation *validation) {
    return HEAD + 1 + validation->count * (OUTCOME + validation->folds);
}

static int fail_other(const struct run *run) {
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "go on with the same command, on the same data",
                     "%s is of a cross-validation of other folds, penalties or metrics",
                     run->settings->resume);
}

static bool equal(const double *a, const double *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (a[i] != b[i]) return false;
    return true;
}

/* The head, and each value's penalties, are the same in the file. */
static int take(const struct run *run, struct validation *validation, int64_t count) {
    const int64_t before = before_penalties(validation), penalties = 2 * validation->count;
    const size_t size = (size_t)(HEAD + penalties) * sizeof(double), head = HEAD * sizeof(double);
    double *own = malloc(size);
    int found = 0;
    if (!own) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the checkpoint");
    memcpy(own, validation->numbers, head);
    memcpy(own + HEAD, validation->numbers + before, size - head);
    const kiln_status status = kiln_checkpoint_along(run->checkpoint, validation->numbers, count, &found);
    const bool same =
        equal(own, validation->numbers, HEAD) && equal(own + HEAD, validation->numbers + before, penalties);
    free(own);
    if (status == KILN_ERR_MODEL && found) return fail_other(run); /* it has numbers, and not so many */
    if (status != KILN_OK) return fail_library(USING_MODEL);
    if (!found) return 0;
    if (!same) return fail_other(run);
    pass_all(validation, false);
    return validation->finished >= 0 && validation->finished <= validation->folds ? 0 : fail_other(run);
}

int cv_state_begin(const struct run *run, struct validation *validation, const struct training *job) {
    const int64_t before = before_penalties(validation), numbers = before + 2 * validation->count,
                  rows = kiln_matrix_rows(kiln_data_X(job->data)),
                  held_out = validation->held_out ? validation->count * rows * kiln_matrix_cols(job->W) : 0;
    if (!run->checkpoint) return 0;
    validation->numbers = calloc((size_t)(numbers + held_out), sizeof *validation->numbers);
    if (!validation->numbers)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the checkpoint");
    if (held_out) {
        free(validation->held_out);
        validation->held_out = validation->numbers + numbers;
    }
    describe(validation->numbers, validation, job);
    for (int64_t i = 0; i < validation->count; i++) {
        validation->numbers[before + 2 * i] = validation->tried[i].penalty.l1;
        validation->numbers[before + 2 * i + 1] = validation->tried[i].penalty.l2;
    }
    return take(run, validation, numbers + held_out);
}

void cv_state_note(struct validation *validation) {
    if (validation->numbers) pass_all(validation, true);
}
