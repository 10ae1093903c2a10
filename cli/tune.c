/* kiln tune: the plans of mmchain or sddmm against the clock, and where the model's choice stands among
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch_plans.h"
#include "files.h"
#include "plans.h"
#include "plot.h"
#include "progress.h"
#include "random.h"
#include "verbs.h"

/* Plans measured unless all are asked for; those worst predicted are left out, never the choice. */
enum { MEASURED = 12, SHOWN = 15, BATCHES = 4, CALLS_MAX = 100 };
static const double SECONDS_A_BATCH = 0.004, SECONDS_TO_WARM = 0.2;

struct tune {
    const struct planned *planned;
    kiln_work work;
    struct plan_list list;
    kiln_matrix *X, *v, *y, *w; /* of sddmm S, A, B and P */
    struct plan_row *tuned;     /* by measured time, after measuring */
    int64_t count, rank;        /* rank of the choice, from 1 */
    double loss;                /* of the choice against the best, as a fraction */
};

/* ------------------------------------------------------------------------- a matrix to measure with */

struct arrays {
    int64_t *row_start;
    int32_t *col;
    void *values; /* which differ, as equal ones need not be read */
};

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Column numbers of each row, ascending and distinct; returns how many there are in all. */
static int64_t fill(struct arrays *arrays, const kiln_work *work, bool zipf, int64_t seed) {
    int64_t used = 0, drawn = 0;
    for (int64_t i = 0; i < work->rows; i++) {
        int32_t *row = arrays->col + used;
        const int64_t until = (int64_t)((double)work->nnz * ((double)(i + 1) / (double)work->rows));
        int64_t n = 0, kept = 0;
        for (; drawn < until; drawn++, n++) {
            const double u = random_unit(seed, STREAM_MADE_COLUMNS, drawn);
            const double at = zipf ? exp(u * log((double)work->cols + 1)) - 1 : u * (double)work->cols;
            row[n] = (int32_t)fmin(at, (double)work->cols - 1);
        }
        qsort(row, (size_t)n, sizeof *row, ascending);
        for (int64_t j = 0; j < n; j++)
            if (j == 0 || row[j] != row[kept - 1]) row[kept++] = row[j];
        arrays->row_start[i] = used;
        used += kept;
    }
    arrays->row_start[work->rows] = used;
    return used;
}

static void fill_values(void *values, kiln_type type, int64_t count, int64_t seed) {
    for (int64_t i = 0; i < count; i++) {
        const double value = random_unit(seed, STREAM_MADE_VALUES, i);
        if (type == KILN_F32)
            ((float *)values)[i] = (float)value;
        else
            ((double *)values)[i] = value;
    }
}

static int sparse(kiln_matrix **X, struct run *run, kiln_work *work, bool zipf) {
    struct arrays arrays = {malloc(((size_t)work->rows + 1) * sizeof *arrays.row_start),
                            malloc((size_t)work->nnz * sizeof *arrays.col),
                            malloc((size_t)work->nnz * (work->type == KILN_F32 ? 4 : 8))};
    int code = 0;
    if (!arrays.row_start || !arrays.col || !arrays.values) {
        code = fail_with(KILN_ERR_NOMEM, WORKING, "fewer --rows or --nnz", "no memory for %lld entries",
                         (long long)work->nnz);
    } else {
        work->nnz = fill(&arrays, work, zipf, run->settings->seed);
        fill_values(arrays.values, work->type, work->nnz, run->settings->seed);
        if (kiln_matrix_csr(X, run->device, work->type, work->rows, work->cols, arrays.row_start, arrays.col,
                            arrays.values) != KILN_OK)
            code = fail_library(WORKING);
    }
    free(arrays.row_start);
    free(arrays.col);
    free(arrays.values);
    return code;
}

/* X of the work's shape, with random values; columns of a sparse X equally likely or, with zipf, popular in
 * inverse proportion to their number. Sparse: work->nnz becomes what X has after columns drawn twice in a row
 * were dropped. Returns 0 or the exit code of an error that it has reported. */
static int make_matrix(kiln_matrix **X, struct run *run, kiln_work *work, bool zipf) {
    if (work->format == KILN_CSR) return sparse(X, run, work, zipf);
    if (kiln_matrix_dense(X, run->device, work->type, work->rows, work->cols, NULL) != KILN_OK ||
        kiln_fill_random(*X, KILN_UNIFORM, (uint64_t)run->settings->seed, STREAM_MADE) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}

/* --------------------------------------------------------------------------------------- its picture */

/* Outliers would flatten everything else: what is slower than four times the best is drawn there. */
static double milliseconds(double seconds, double best) {
    return seconds > 0 && isfinite(seconds) ? 1e3 * fmin(seconds, 4 * best) : (double)NAN;
}

/* Every plan's time in ascending order, after Figure 6 of the fused-kernels paper, what was predicted for it,
 * and which one the model chooses. */
static int draw(const char *path, const struct plan_row *tuned, int64_t count, const char *title) {
    char choice[400] = "";
    if (count == 0) return 0;
    double *rank = malloc((size_t)count * 3 * sizeof *rank);
    if (!rank) return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for a picture");
    double *measured = rank + count, *predicted = measured + count, chosen = 1;
    for (int64_t i = 0; i < count; i++) {
        rank[i] = (double)i + 1;
        measured[i] = milliseconds(tuned[i].seconds, tuned[0].seconds);
        predicted[i] = milliseconds(tuned[i].plan->seconds, tuned[0].seconds);
        if (!tuned[i].plan->chosen) continue;
        chosen = rank[i];
        snprintf(choice, sizeof choice, "the choice: rank %lld of %lld, %.1f %% above the best",
                 (long long)i + 1, (long long)count, 100 * (tuned[i].seconds / tuned[0].seconds - 1));
    }
    const struct series series[] = {
        {"predicted", rank, predicted, .count = count, .number = 1, .look = LOOK_POINTS},
        {"measured", rank, measured, .count = count, .look = LOOK_LINE | LOOK_POINTS}};
    const struct panel panel = {.title = choice,
                                .x_title = "plans, fastest first",
                                .y_title = "milliseconds",
                                .from_zero = true,
                                .series = series,
                                .count = 2,
                                .marks = {chosen},
                                .mark_names = {"the choice"},
                                .mark_count = *choice != 0};
    const int code = plot_panels(path, title, &panel, 1);
    free(rank);
    return code;
}

/* ------------------------------------------------------------------------------------------ measuring */

static int make_operands(struct run *run, struct tune *tune) {
    const bool zipf = run->settings->skew && strcmp(run->settings->skew, "zipf") == 0;
    const int code = make_matrix(&tune->X, run, &tune->work, zipf);
    if (code) return code;
    const kiln_work *work = &tune->work;
    const bool samples = tune->planned->sparse;
    kiln_matrix **const made[3] = {&tune->v, &tune->y, &tune->w};
    const int64_t rows[3] = {work->rows, work->cols, work->cols},
                  cols[3] = {samples ? work->k : 1, work->k, work->k};
    for (int i = 0; i < (samples ? 2 : 3); i++)
        if (kiln_matrix_dense(made[i], run->device, work->type, rows[i], cols[i], NULL) != KILN_OK ||
            kiln_fill_random(*made[i], KILN_UNIFORM, (uint64_t)run->settings->seed,
                             (uint64_t)STREAM_MADE + 1 + (uint64_t)i) != KILN_OK)
            return fail_library(WORKING);
    if (samples && kiln_matrix_like(&tune->w, tune->X, KILN_TYPE_DEFAULT, NULL) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}

static kiln_status run_plan(const struct tune *tune, const kiln_plan *plan) {
    const kiln_sample sample = {
        .size = sizeof sample, .kind = KILN_SAMPLE_TIMES, .S = tune->X, .A = tune->v, .B = tune->y};
    return tune->planned->sparse ? kiln_sddmm_with(plan, tune->w, &sample)
                                 : kiln_mmchain_with(plan, tune->w, tune->X, tune->v, tune->y);
}

static int run_batch(double *seconds, struct run *run, const struct tune *tune, const kiln_plan *plan,
                     int calls) {
    const double start = clock_seconds();
    for (int i = 0; i < calls; i++)
        if (run_plan(tune, plan) != KILN_OK) return fail_library(WORKING);
    if (kiln_device_sync(run->device) != KILN_OK) return fail_library(WORKING);
    *seconds = (clock_seconds() - start) / calls;
    return 0;
}

/* The fastest of several batches, in which calls are queued behind each other as algorithms do it: what
 * finding the plan and launching take on the host then hides behind the passes. */
static int measure(double *seconds, struct run *run, const struct tune *tune, const kiln_plan *plan) {
    double once, fastest = INFINITY;
    int code = run_batch(&once, run, tune, plan, 1); /* builds the kernel */
    if (!code) code = run_batch(&once, run, tune, plan, 1);
    const int calls = (int)fmin(fmax(SECONDS_A_BATCH / fmax(once, 1e-7), 1), CALLS_MAX);
    for (int i = 0; !code && i < BATCHES && !talk_interrupted(); i++) {
        code = run_batch(&once, run, tune, plan, calls);
        if (!code) fastest = fmin(fastest, once);
    }
    *seconds = fastest;
    return code;
}

/* Clocks of a GPU that was idle still rise while the first plans run, which made those up to 6 % slower
 * than later. */
static int warm_up(struct run *run, const struct tune *tune) {
    const double start = clock_seconds();
    int code = 0;
    for (double once; !code && clock_seconds() - start < SECONDS_TO_WARM && !talk_interrupted();)
        code = run_batch(&once, run, tune, &tune->list.plans[0], 1);
    return code;
}

static int by_time(const void *a, const void *b) {
    const struct plan_row *p = a, *q = b;
    return (p->seconds > q->seconds) - (p->seconds < q->seconds);
}

static int measure_all(struct run *run, struct tune *tune) {
    const struct plan_list *list = &tune->list;
    const int64_t most = run->settings->exhaustive ? list->count : MEASURED;
    const int64_t beyond = list->chosen && list->chosen - list->plans >= most;
    const double start = clock_seconds();
    tune->tuned = calloc((size_t)list->count + 1, sizeof *tune->tuned);
    if (!tune->tuned) return fail_with(KILN_ERR_NOMEM, WORKING, "", "no memory for the measurements");
    const int warmed = list->count ? warm_up(run, tune) : 0;
    if (warmed) return warmed;
    for (int64_t i = 0; i < list->count; i++) {
        if (i >= most && !list->plans[i].chosen) continue;
        struct plan_row *row = &tune->tuned[tune->count];
        row->plan = &list->plans[i];
        talk_step("plan", tune->count, most < list->count ? most + beyond : list->count,
                  clock_seconds() - start);
        const int code = measure(&row->seconds, run, tune, row->plan);
        if (code) return code;
        if (talk_interrupted()) break; /* and what is measured by then is told */
        tune->count++;
    }
    qsort(tune->tuned, (size_t)tune->count, sizeof *tune->tuned, by_time);
    for (int64_t i = 0; i < tune->count; i++) {
        if (!tune->tuned[i].plan->chosen) continue;
        tune->rank = i + 1;
        tune->loss = tune->tuned[i].seconds / tune->tuned[0].seconds - 1;
    }
    return 0;
}

static void put_choice(struct result *result, const struct tune *tune) {
    const struct plan_row *tuned = tune->tuned;
    if (!tune->rank) return;
    PUT_LINE(result, "%s", "");
    PUT_LINE(result, "* the model's choice: rank %lld of %lld measured", (long long)tune->rank,
             (long long)tune->count);
    if (tune->count < tune->list.count)
        PUT(result, NULL, COUNT(tune->list.count), .before = " (of ",
            .after = " plans in all; --exhaustive measures them)");
    if (tune->rank > 1)
        PUT(result, NULL, NUMBER(100 * tune->loss), .format = "%.1f", .before = ", ",
            .after = " % slower than the best");
    PUT(result, NULL, NUMBER(1e3 * tuned[tune->count / 2].seconds), .format = "%.4f", .before = "; median ");
    PUT(result, NULL, NUMBER(1e3 * tuned[tune->count - 1].seconds), .format = "%.4f", .before = " ms, worst ",
        .after = " ms");
}

static int tell(struct run *run, const struct tune *tune) {
    struct plan_table table;
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.tune/1");
    run_put_device(&result, run);
    plans_put_work(&result, run, tune->planned, &tune->work);
    PUT(&result, "skew", TEXT(run->settings->skew ? run->settings->skew : "uniform"));
    PUT(&result, "exhaustive", FLAG(run->settings->exhaustive));
    PUT(&result, "plans_in_all", COUNT(tune->list.count));
    PUT(&result, "rank", COUNT(tune->rank));
    PUT(&result, "loss", NUMBER(tune->rank ? tune->loss : (double)NAN));
    PUT(&result, "plot", TEXT(talk_interrupted() ? NULL : run->settings->plot));
    plans_put(&result, &table, tune->tuned, tune->count, talk_verbose() ? tune->count : SHOWN,
              tune->planned->sparse);
    put_choice(&result, tune);
    return run_tell(run, &result);
}

static int tune_plans(struct run *run, struct tune *tune) {
    char title[200];
    int code = plans_work(run, tune->planned, &tune->work);
    if (!code) code = run_check_outputs(run);
    if (!code) code = run_open_device(run, "auto");
    if (!code) code = make_operands(run, tune);
    if (!code) code = plans_list(run, tune->planned, &tune->list, &tune->work);
    if (!code) code = measure_all(run, tune);
    if (code) return code;
    const bool interrupted = talk_interrupted();
    snprintf(title, sizeof title, "%s %s x %s%s, %s, %s", tune->planned->name, text_count(tune->work.rows),
             text_count(tune->work.cols), tune->work.format == KILN_CSR ? " sparse" : "",
             type_name(tune->work.type), run->device_info.name);
    if (run->settings->plot && !interrupted)
        code = draw(run->settings->plot, tune->tuned, tune->count, title);
    if (code) return code;
    progress_end();
    code = tell(run, tune);
    if (!interrupted) return code;
    say_error("kiln: interrupted after %s", text_plural(tune->count, "plan"));
    return EXIT_INTERRUPTED;
}

int verb_tune(struct run *run) {
    struct tune tune = {.planned = planned_named(run->arguments[0])};
    int code;
    if (tune.planned)
        code = tune_plans(run, &tune);
    else if (strcmp(run->arguments[0], "batch") == 0)
        code = tune_batch(run);
    else
        code = fail_with(KILN_ERR_ARGUMENT, WORKING,
                         "kiln tune mmchain --rows N --columns N, kiln tune sddmm, or kiln tune batch",
                         "cannot tune '%s'", run->arguments[0]);
    kiln_matrix_free(tune.X);
    kiln_matrix_free(tune.v);
    kiln_matrix_free(tune.y);
    kiln_matrix_free(tune.w);
    kiln_free(tune.list.plans);
    free(tune.tuned);
    return code;
}
