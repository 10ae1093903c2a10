/* kiln explain batch and kiln tune batch: the ways to reduce many vectors of one length, and the clock's
 * opinion of each. */
#include "batch_plans.h"

#include <math.h>
#include <stdlib.h>

#include "files.h"
#include "plans.h"
#include "progress.h"
#include "random.h"

enum { BATCHES = 4, CALLS_MAX = 100, MEASURED = 8 };
static const double SECONDS_A_BATCH = 0.004;

struct asked {
    int64_t count, length;
    kiln_type type;
    kiln_batch *batch;
    kiln_matrix *X, *result;
    kiln_plan *plans; /* the best predicted one first */
    int64_t plans_count;
    struct plan_row *rows;
    int64_t measured;
};

static int ask(struct run *run, struct asked *asked) {
    const struct settings *settings = run->settings;
    if (settings->rows <= 0 || settings->columns <= 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "for example --rows 1000000 --columns 33",
                         "%s batch needs --rows, the vectors, and --columns, their length", run->verb->name);
    if (settings->nnz || settings->k || settings->skew)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave out --nnz, --k and --skew",
                         "%s batch is about vectors of one length", run->verb->name);
    asked->count = settings->rows;
    asked->length = settings->columns;
    asked->type = settings->type ? type_of(settings->type) : KILN_F64;
    const int code = run_open_device(run, "auto");
    if (code) return code;
    if (kiln_batch_equal(&asked->batch, asked->count, asked->length, 0, 0, 0) != KILN_OK ||
        kiln_batch_plans(&asked->plans, &asked->plans_count, run->device, asked->batch, asked->type) !=
            KILN_OK)
        return fail_library(WORKING);
    asked->rows = calloc((size_t)asked->plans_count, sizeof *asked->rows);
    if (!asked->rows) return fail_with(KILN_ERR_NOMEM, WORKING, "", "no memory for the plans");
    for (int64_t i = 0; i < asked->plans_count; i++)
        asked->rows[i] = (struct plan_row){.plan = &asked->plans[i], .seconds = (double)NAN};
    return 0;
}

static void asked_free(struct asked *asked) {
    kiln_matrix_free(asked->X);
    kiln_matrix_free(asked->result);
    kiln_batch_free(asked->batch);
    kiln_free(asked->plans);
    free(asked->rows);
}

static int by_prediction(const void *a, const void *b) {
    const struct plan_row *p = a, *q = b;
    return (p->plan->seconds > q->plan->seconds) - (p->plan->seconds < q->plan->seconds);
}

static int by_time(const void *a, const void *b) {
    const struct plan_row *p = a, *q = b;
    return (p->seconds > q->seconds) - (p->seconds < q->seconds);
}

static int run_calls(double *seconds, struct run *run, const struct asked *asked, const kiln_plan *plan,
                     int calls) {
    const double start = clock_seconds();
    for (int i = 0; i < calls; i++)
        if (kiln_batch_reduce_with(plan, asked->result, KILN_BATCH_SUM, asked->X, asked->batch) != KILN_OK)
            return fail_library(WORKING);
    if (kiln_device_sync(run->device) != KILN_OK) return fail_library(WORKING);
    *seconds = (clock_seconds() - start) / calls;
    return 0;
}

/* The fastest of several batches of calls, queued behind each other. */
static int measure(struct run *run, const struct asked *asked, struct plan_row *row) {
    double once, fastest = INFINITY;
    int code = run_calls(&once, run, asked, row->plan, 1); /* builds the kernel */
    if (!code) code = run_calls(&once, run, asked, row->plan, 1);
    const int calls = (int)fmin(fmax(SECONDS_A_BATCH / fmax(once, 1e-7), 1), CALLS_MAX);
    for (int i = 0; !code && i < BATCHES && !talk_interrupted(); i++) {
        code = run_calls(&once, run, asked, row->plan, calls);
        if (!code) fastest = fmin(fastest, once);
    }
    row->seconds = fastest;
    return code;
}

static int measure_all(struct run *run, struct asked *asked) {
    const int64_t most =
        run->settings->exhaustive || asked->plans_count < MEASURED ? asked->plans_count : MEASURED;
    const double start = clock_seconds();
    if (kiln_matrix_dense(&asked->X, run->device, asked->type, asked->count, asked->length, NULL) !=
            KILN_OK ||
        kiln_matrix_dense(&asked->result, run->device, asked->type, asked->count, 1, NULL) != KILN_OK ||
        kiln_fill_random(asked->X, KILN_UNIFORM, (uint64_t)run->settings->seed, STREAM_MADE) != KILN_OK)
        return fail_library(WORKING);
    for (int64_t i = 0; i < most && !talk_interrupted(); i++) {
        talk_step("plan", i, most, clock_seconds() - start);
        const int code = measure(run, asked, &asked->rows[i]);
        if (code) return code;
        if (!talk_interrupted()) asked->measured++;
    }
    qsort(asked->rows, (size_t)asked->measured, sizeof *asked->rows, by_time);
    return 0;
}

static int tell(struct run *run, const struct asked *asked, const char *schema, int64_t count) {
    struct plan_table table;
    struct result result;
    result_begin(&result);
    run_put(&result, run, schema);
    run_put_device(&result, run);
    PUT(&result, "operation", TEXT("batch_reduce"), .head = "batch    kiln_", .after = ", ");
    PUT(&result, "vectors", COUNT(asked->count), .before = "");
    PUT(&result, "length", COUNT(asked->length), .before = " vectors of ");
    PUT(&result, "type", TEXT(type_name(asked->type)), .before = ", ");
    PUT(&result, "plans_in_all", COUNT(asked->plans_count));
    plans_put_device(&result, run);
    plans_put(&result, &table, asked->rows, count, count, false);
    return run_tell(run, &result);
}

int explain_batch(struct run *run) {
    struct asked asked = {.count = 0};
    int code = ask(run, &asked);
    if (!code) {
        qsort(asked.rows, (size_t)asked.plans_count, sizeof *asked.rows, by_prediction);
        code = tell(run, &asked, "kiln.explain/1", asked.plans_count);
    }
    asked_free(&asked);
    return code;
}

int tune_batch(struct run *run) {
    struct asked asked = {.count = 0};
    int code = ask(run, &asked);
    if (!code) qsort(asked.rows + 1, (size_t)asked.plans_count - 1, sizeof *asked.rows, by_prediction);
    if (!code) code = measure_all(run, &asked);
    if (!code) {
        progress_end();
        code = tell(run, &asked, "kiln.tune/1", asked.measured);
        if (!code && talk_interrupted()) code = EXIT_INTERRUPTED;
    }
    asked_free(&asked);
    return code;
}
