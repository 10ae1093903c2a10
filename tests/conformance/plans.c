/* conformance --plans: every way in which a device could run mmchain on a shape, forced by kiln_mmchain_with, against the reference.
 * What is not chosen today is chosen for another shape, on another GPU or by a better model tomorrow. The device lists its plans, so
 * that a new variant is covered by being there. Each plan runs twice: a dense pass gives the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tune.h"
#include "suite.h"

extern const struct operation operation_mmchain;

/* rows, columns, columns of y. Odd widths, for copies of 16 bytes; one row, few rows, for groups with nothing to do; rows of several
 * groups; several columns of y, in one launch and more. */
static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 1003, 1},   {3, 28, 1},     {5, 20001, 1},   {9001, 1, 1},    {4001, 3, 1},
    {3001, 7, 1},   {2001, 13, 1},  {9001, 28, 1},  {3001, 101, 1},  {1001, 999, 1},  {1001, 1001, 1},
    {501, 1024, 1}, {301, 5003, 1}, {101, 8192, 1}, {157, 12001, 1}, {151, 20000, 1}, {99, 20001, 2},
    {67, 49999, 1}, {67, 50002, 1}, {3001, 28, 8},  {1501, 101, 3},  {701, 1024, 4},  {301, 4096, 8},
    {77, 20000, 8}, {67, 50000, 4}, {67, 50000, 2}, {19, 100000, 8}};
enum { SHAPES = sizeof shapes / sizeof *shapes, QUICK_ENTRIES = 40000 };

struct plan_run {
    struct suite *suite;
    struct tally *tally;
    const char *device_name;
    struct work work;
    struct expected expected[RESULTS];
    void *first, *second; /* results, of `bytes` */
    size_t bytes;
};

/* The matrix is full of NaN before each run. */
static kiln_status run_plan(void *got, struct plan_run *run, const kiln_plan *plan) {
    struct work *work = &run->work;
    CHECK_OK(kiln_matrix_set(work->w.matrix, work->w.host.values));
    CHECK_OK(kiln_mmchain_with(plan, work->w.matrix, work->X.matrix, work->v.matrix, work->y.matrix));
    CHECK_OK(kiln_device_sync(work->device));
    return kiln_matrix_get(got, work->w.matrix);
}

static void check_plan(struct plan_run *run, const kiln_plan *plan) {
    char text[512], why[400] = "";
    int64_t worst = 0;
    double ratio = 0;
    const struct expected *expected = &run->expected[RESULT_W];
    if (run_plan(run->first, run, plan) != KILN_OK || run_plan(run->second, run, plan) != KILN_OK) {
        snprintf(why, sizeof why, "%s", kiln_last_error()->message);
    } else {
        const struct host_matrix got = {.type = run->work.type, .values = run->first};
        ratio = error_ratio(&worst, expected, run->work.type, run->first);
        if (!(ratio <= expected->gate))
            snprintf(why, sizeof why, "element %lld is %.17g, not %.17g: error ratio %.4g, allowed %.4g",
                     (long long)worst, host_get(&got, worst), (double)expected->value[worst], ratio,
                     expected->gate);
        else if (memcmp(run->first, run->second, run->bytes) != 0)
            snprintf(why, sizeof why, "a second run gave other bits");
    }
    problem_describe(text, sizeof text, run->work.problem);
    suite_report(run->suite, run->tally, why[0] == '\0', ratio, expected->gate,
                 "plans %s %s %s plan %lld, %s: vector %d group %d load %d rows %d columns %d team %d "
                 "stages %d%s%s",
                 run->device_name, run->work.type == KILN_F32 ? "f32" : "f64", text, (long long)plan->number,
                 plan->variant, plan->vector, plan->group, plan->load, plan->rows, plan->columns, plan->team,
                 plan->stages, why[0] ? ": " : "", why);
}

/* Of the `of` plans of a variant `most` are run, evenly over the list. */
static bool in_sample(int64_t number, int64_t of, int64_t most) {
    return most == 0 || of <= most || (number + 1) * most / of > number * most / of;
}

static void check_list(struct plan_run *run, const kiln_plan *plans, int64_t count, int64_t most) {
    for (int64_t i = 0; i < count; i++) {
        int64_t number = 0, of = 0;
        for (int64_t j = 0; j < count; j++) {
            if (strcmp(plans[i].variant, plans[j].variant) != 0) continue;
            number += j < i;
            of++;
        }
        if (plans[i].chosen || in_sample(number, of, most)) check_plan(run, &plans[i]);
    }
}

static kiln_status run_shape(struct plan_run *run, const struct problem *problem, int64_t most) {
    struct work *work = &run->work;
    const kiln_work shape = {.format = KILN_DENSE,
                             .type = work->type,
                             .rows = problem->rows,
                             .cols = problem->cols,
                             .k = problem->k};
    kiln_plan *plans = NULL;
    int64_t count = 0;
    CHECK_OK(operation_mmchain.prepare(work));
    CHECK_OK(work_fetch(work));
    operation_mmchain.expect(run->expected, work);
    run->bytes = (size_t)work->w.host.nnz * (work->type == KILN_F32 ? 4 : 8);
    run->first = malloc(run->bytes);
    run->second = malloc(run->bytes);
    CHECK_OK(kiln_mmchain_plans(&plans, &count, work->device, &shape));
    check_list(run, plans, count, most);
    kiln_free(plans);
    return KILN_OK;
}

void run_plans(struct suite *suite, const struct options *options, struct tally *tally, kiln_device *device,
               const char *device_name, kiln_type type) {
    for (int s = options->part; s < SHAPES; s += options->parts) {
        const struct problem problem = {.format = KILN_DENSE,
                                        .pattern = PATTERN_DENSE,
                                        .rows = shapes[s][0],
                                        .cols = shapes[s][1],
                                        .k = shapes[s][2],
                                        .flags = WITH_V,
                                        .alpha = 1};
        struct plan_run run = {.suite = suite,
                               .tally = tally,
                               .device_name = device_name,
                               .work = {.problem = &problem, .device = device, .type = type}};
        if (options->quick && problem.rows * problem.cols * problem.k > QUICK_ENTRIES) continue;
        if (run_shape(&run, &problem, options->each) != KILN_OK)
            suite_report(suite, tally, false, 0, 0, "plans %s %lld x %lld: %s", device_name,
                         (long long)problem.rows, (long long)problem.cols, kiln_last_error()->message);
        for (int r = 0; r < RESULTS; r++) expected_free(&run.expected[r]);
        free(run.first);
        free(run.second);
        work_free(&run.work);
    }
}
