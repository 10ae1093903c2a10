/* conformance --plans: every way in which a device could run mmchain or sddmm on a shape, forced by
 * kiln_mmchain_with and kiln_sddmm_with, against the reference.
 * What is not chosen today is chosen for another shape, on another GPU or by a better model tomorrow. The
 * device lists its plans, so that a new variant is covered by being there. Each plan runs twice: a dense pass
 * gives the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tune.h"
#include "sampled.h"
#include "suite.h"

extern const struct operation operation_mmchain, operation_sddmm;

/* rows, columns, columns of y. Odd widths, for copies of 16 bytes; one row, few rows, for groups with nothing
 * to do; rows of several groups; several columns of y, in one launch and more. */
static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 1003, 1},   {3, 28, 1},     {5, 20001, 1},   {9001, 1, 1},    {4001, 3, 1},
    {3001, 7, 1},   {2001, 13, 1},  {9001, 28, 1},  {3001, 101, 1},  {1001, 999, 1},  {1001, 1001, 1},
    {501, 1024, 1}, {301, 5003, 1}, {101, 8192, 1}, {157, 12001, 1}, {151, 20000, 1}, {99, 20001, 2},
    {67, 49999, 1}, {67, 50002, 1}, {3001, 28, 8},  {1501, 101, 3},  {701, 1024, 4},  {301, 4096, 8},
    {77, 20000, 8}, {67, 50000, 4}, {67, 50000, 2}, {19, 100000, 8}};
enum { SHAPES = sizeof shapes / sizeof *shapes, QUICK_ENTRIES = 40000 };

/* Plans of sampled products are tried at these shapes: rows, columns, entries a row, k, in loads of one
 * number, of two and of four; a row of several vectors' entries; vectors of several warps; rows taken in
 * slices; and a pattern. */
static const struct {
    int64_t rows, cols, per_row, k;
    enum pattern pattern;
} samples[] = {{61, 43, 9, 30, PATTERN_EMPTY_ROWS},      {301, 205, 9, 1, PATTERN_UNIFORM},
               {301, 205, 9, 3, PATTERN_ZIPF},           {1501, 99, 12, 33, PATTERN_POWER_LAW},
               {50, 9001, 3, 32, PATTERN_DENSE_ROW},     {301, 205, 9, 128, PATTERN_POWER_LAW},
               {301, 13, 5, 512, PATTERN_UNIFORM},       {61, 43, 5, 1000, PATTERN_EMPTY_ROWS},
               {2001, 301, 21, 100, PATTERN_HOT_COLUMN}, {17, 13, 5, 4095, PATTERN_UNIFORM}};
enum { SAMPLES = sizeof samples / sizeof *samples };

struct plan_run {
    const struct operation *operation;
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
    if (run->operation == &operation_sddmm) {
        const kiln_sample sample = sampled_of(work, work->X.matrix);
        CHECK_OK(kiln_sddmm_with(plan, work->w.matrix, &sample));
    } else {
        CHECK_OK(kiln_mmchain_with(plan, work->w.matrix, work->X.matrix, work->v.matrix, work->y.matrix));
    }
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

/* `most` of the `of` plans of a variant are run, evenly over the list. */
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
    kiln_plan *plans = NULL;
    int64_t count = 0;
    CHECK_OK(run->operation->prepare(work));
    CHECK_OK(work_fetch(work));
    run->operation->expect(run->expected, work);
    const kiln_work shape = {.format = problem->format,
                             .type = work->type,
                             .rows = problem->rows,
                             .cols = problem->cols,
                             .nnz = work->X.host.nnz,
                             .k = problem->k};
    run->bytes = (size_t)work->w.host.nnz * (work->type == KILN_F32 ? 4 : 8);
    run->first = malloc(run->bytes);
    run->second = malloc(run->bytes);
    CHECK_OK(run->operation == &operation_sddmm ? kiln_sddmm_plans(&plans, &count, work->device, &shape)
                                                : kiln_mmchain_plans(&plans, &count, work->device, &shape));
    check_list(run, plans, count, most);
    kiln_free(plans);
    return KILN_OK;
}

static void run_problem(struct plan_run *run, const struct problem *problem, int64_t most) {
    run->work.problem = problem;
    if (run_shape(run, problem, most) != KILN_OK)
        suite_report(run->suite, run->tally, false, 0, 0, "plans %s %lld x %lld: %s", run->device_name,
                     (long long)problem->rows, (long long)problem->cols, kiln_last_error()->message);
    for (int r = 0; r < RESULTS; r++) expected_free(&run->expected[r]);
    free(run->first);
    free(run->second);
    work_free(&run->work);
}

void run_plans(struct suite *suite, const struct options *options, struct tally *tally, kiln_device *device,
               const char *device_name, kiln_type type) {
    const struct plan_run begin = {.operation = &operation_mmchain,
                                   .suite = suite,
                                   .tally = tally,
                                   .device_name = device_name,
                                   .work = {.device = device, .type = type}};
    for (int s = options->part; s < SHAPES; s += options->parts) {
        const struct problem problem = {.format = KILN_DENSE,
                                        .pattern = PATTERN_DENSE,
                                        .rows = shapes[s][0],
                                        .cols = shapes[s][1],
                                        .k = shapes[s][2],
                                        .flags = WITH_V,
                                        .alpha = 1};
        struct plan_run run = begin;
        if (options->quick && problem.rows * problem.cols * problem.k > QUICK_ENTRIES) continue;
        run_problem(&run, &problem, options->each);
    }
    for (int s = options->part; s < SAMPLES; s += options->parts) {
        const struct problem problem = {.format = KILN_CSR,
                                        .pattern = samples[s].pattern,
                                        .rows = samples[s].rows,
                                        .cols = samples[s].cols,
                                        .per_row = samples[s].per_row,
                                        .k = samples[s].k,
                                        .kind = 1 + s % 4,
                                        .alpha = 1};
        struct plan_run run = begin;
        run.operation = &operation_sddmm;
        if (options->quick && s > 0) break; /* each width has kernels of its own */
        run_problem(&run, &problem, options->each);
    }
}
