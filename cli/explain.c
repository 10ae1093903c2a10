/* kiln explain: why Kiln does what it does, without doing it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch_plans.h"
#include "choose.h"
#include "guard.h"
#include "help.h"
#include "plans.h"
#include "scaling.h"
#include "linear.h"
#include "verbs.h"

enum { SHOWN = 12 };

/* ------------------------------------------------------------------------------- plans of an operation */

static int tell_plans(struct run *run, const struct planned *planned, const struct plan_list *list,
                      const kiln_work *work) {
    const kiln_plan *chosen = list->chosen;
    struct plan_row *rows = calloc((size_t)list->count + 1, sizeof *rows);
    struct plan_table table;
    struct result result;
    if (!rows) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the plans");
    for (int64_t i = 0; i < list->count; i++) rows[i] = (struct plan_row){&list->plans[i], NAN};
    result_begin(&result);
    run_put(&result, run, "kiln.explain/1");
    run_put_device(&result, run);
    plans_put_work(&result, run, planned, work);
    plans_put(&result, &table, rows, list->count, talk_verbose() ? list->count : SHOWN, planned->sparse);
    if (chosen) {
        PUT_LINE(&result, "%s", "");
        PUT_LINE(&result, "* the choice, out of %s: %.4f ms predicted, %s/s%s%s",
                 text_plural(list->count, "plan"), 1e3 * chosen->seconds,
                 text_bytes(chosen->seconds > 0 ? chosen->bytes / chosen->seconds : 0),
                 *chosen->limit ? "; limited by " : "", chosen->limit);
    }
    const int code = run_tell(run, &result);
    free(rows);
    return code;
}

static int explain_plans(struct run *run, const struct planned *planned) {
    kiln_work work;
    struct plan_list list = {NULL, 0, NULL};
    int code = 0;
    if (run->count > 1)
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, "--rows, --columns and --nnz give the shape of X",
                         "explain %s reads no data, and '%s' is given", planned->name, run->arguments[1]);
    if (!code) code = plans_work(run, planned, &work);
    if (!code) code = run_open_device(run, "auto");
    if (!code) code = plans_list(run, planned, &list, &work);
    if (code) return code;
    code = tell_plans(run, planned, &list, &work);
    kiln_free(list.plans);
    return code;
}

/* -------------------------------------------------------------------------- where to run an algorithm */

enum { SIZES = 7 };
static const double scales[SIZES] = {1.0 / 64, 1.0 / 16, 0.25, 1, 4, 16, 64};

/* Holds what is expected of each device; and of work of other sizes, on the CPU and on the GPU. */
struct estimates {
    const kiln_estimate *list;
    int64_t count, passes;
    const kiln_work *work;
    struct size {
        double cpu, gpu;
        char device[sizeof((kiln_estimate *)0)->device];
    } size[SIZES];
    int sizes;
};

/* Short times too. */
static const char *duration(double seconds) {
    static char text[4][32];
    static int next;
    char *here = text[next++ % 4];
    if (seconds >= 0.1) return text_seconds(seconds);
    snprintf(here, sizeof text[0], "%.3g %s", seconds * (seconds < 1e-4 ? 1e6 : 1e3),
             seconds < 1e-4 ? "us" : "ms");
    return here;
}

/* One of the devices in question, in lines. */
static void put_estimate(struct result *row, const void *of, int64_t i) {
    const struct estimates *all = of;
    const kiln_estimate *e = &all->list[i];
    choose_put_estimate(row, all->list, i);
    PUT_LINE(row, "%c %s%s%s", e->chosen ? '*' : ' ', e->device, *e->description ? ": " : "", e->description);
    if (!e->considered) {
        PUT_LINE(row, "    left out   %s", e->why);
        return;
    }
    PUT_LINE(row, "    start      %s", duration(e->start_seconds));
    if (e->streamed)
        PUT_LINE(row, "    streaming  X exceeds the device's memory: every pass moves it, at %s/s",
                 text_bytes(e->up));
    else if (e->up > 0)
        PUT_LINE(row, "    move       %s: %s at %s/s", duration(e->move_seconds), text_bytes(e->bytes),
                 text_bytes(e->up));
    if (e->prepare_seconds > 0) {
        PUT_LINE(row, "    prepare    %s", duration(e->prepare_seconds));
        PUT_LINE(row, "    iteration  %s", duration(e->pass_seconds));
    } else {
        PUT_LINE(row, "    a pass     %s: %s, %s/s of the %s/s that the memory gives",
                 duration(e->pass_seconds), text_bytes(e->bytes), text_bytes(e->bytes / e->pass_seconds),
                 text_bytes(e->read));
    }
    PUT_LINE(row, "    beside it  %s in each: launches, waiting, vectors", duration(e->overhead_seconds));
    PUT_LINE(row, "    in all     %s = start + move + %s%lld * (%s + beside)%s", duration(e->seconds),
             e->prepare_seconds > 0 ? "prepare + " : "", (long long)all->passes,
             e->prepare_seconds > 0 ? "iteration" : "pass", e->measured ? "" : " at most; not measured");
}

/* This tells where work of the same kind on less and on more rows would go: with them computation and
 * transfer grow, while starting a device, launches and waiting stay. Where there is no GPU there is
 * nothing to compare. */
static int estimate_sizes(struct run *run, struct estimates *all) {
    if (all->count < 2 || !all->list[1].considered) return 0;
    for (; all->sizes < SIZES; all->sizes++) {
        struct size *size = &all->size[all->sizes];
        kiln_work scaled = *all->work;
        kiln_device *device = run->device;
        kiln_estimate *rows = NULL;
        int64_t found = 0;
        scaled.rows = (int64_t)ceil((double)scaled.rows * scales[all->sizes]);
        scaled.nnz = (int64_t)((double)scaled.nnz * scales[all->sizes]);
        /* No process is timed: this one has had the GPU open by now, so that its driver would neither
         * start nor clean up. */
        if (kiln_device_choose(&device, &rows, &found, run->device, &scaled,
                               &(kiln_choose_options){.thorough = 1}) != KILN_OK)
            return fail_library(WORKING);
        *size = (struct size){rows[0].seconds, rows[1].considered ? rows[1].seconds : (double)NAN, ""};
        snprintf(size->device, sizeof size->device, "%s", rows[rows[1].chosen].device);
        if (device != run->device) kiln_device_close(device);
        kiln_free(rows);
    }
    return 0;
}

static void put_size(struct result *row, const void *of, int64_t i) {
    const struct size *size = &((const struct estimates *)of)->size[i];
    PUT(row, "scale", NUMBER(scales[i]), .label = "times the rows", .width = 14);
    PUT(row, "cpu_seconds", NUMBER(size->cpu), .label = "cpu", .before = "   ", .width = 10,
        .shown = result_words(row, "%s", duration(size->cpu)));
    PUT(row, "gpu_seconds", NUMBER(size->gpu), .label = "gpu", .before = "  ", .width = 10,
        .shown = isnan(size->gpu) ? "-" : result_words(row, "%s", duration(size->gpu)));
    PUT(row, "device", TEXT(size->device), .label = "--device auto", .before = "   ");
}

/* Tells which of its ways a linear model would be found in. */
static int put_solver(struct result *result, const struct training *job, const kiln_matrix *X) {
    kiln_solver choice;
    const int code = linear_choose_solver(&choice, job, X);
    if (code) return code;
    PUT_LINE(result, "%s", "");
    PUT(result, "solver", TEXT(choice.solver), .head = "solver      ",
        .shown = choice.solver ? NULL : "newton");
    PUT(result, "why", TEXT(result_words(result, "%s", choice.why)), .before = *choice.why ? ": " : NULL);
    PUT(result, "max_iterations", COUNT(choice.max_iterations), .head = "iterations  ", .after = " at most");
    return 0;
}

/* Tells what the verb itself has to say, of X on the device that was chosen. */
static int put_more(struct result *result, struct run *run, const struct verb *verb, kiln_device *device,
                    const struct solving *s) {
    const kiln_matrix *X = solving_X(s);
    const struct training *job = s->solver == &linear_solver ? s->state : NULL;
    kiln_matrix *copy = NULL;
    if (!verb->explain && !job) return 0;
    const bool there = device == kiln_matrix_device(X);
    int code = there || kiln_matrix_copy(&copy, device, kiln_matrix_type(X), X) == KILN_OK
                   ? 0
                   : fail_library(WORKING);
    if (!code)
        code = job ? put_solver(result, job, there ? X : copy) : verb->explain(result, run, there ? X : copy);
    kiln_matrix_free(copy);
    return code;
}

static bool is_scaled(const struct settings *settings) {
    return settings->gpus > 0 || settings->nodes > 0;
}

static void put_scaling(struct result *result, struct scaling *scaling, const struct run *run,
                        const struct verb *verb, const kiln_work *work) {
    const struct settings *settings = run->settings;
    kiln_work passes = *work;
    if (!is_scaled(settings)) return;
    if (verb->work && run->count > 1) verb->work(&passes);
    scaling_put(result, scaling, verb, &passes, settings->gpus > 0 ? settings->gpus : 1,
                settings->nodes > 0 ? settings->nodes : 1);
}

static void put_work(struct result *result, const struct verb *verb, const kiln_work *work) {
    PUT(result, "algorithm", TEXT(verb->name), .head = "");
    PUT(result, "rows", COUNT(work->rows), .before = ": ", .unit = "row");
    PUT(result, "columns", COUNT(work->cols), .before = " x ", .unit = "column");
    PUT(result, "nnz", COUNT(work->nnz));
}

static int tell_estimates(struct run *run, const struct verb *verb, kiln_device *device,
                          const struct solving *s, struct estimates *all) {
    const kiln_work *work = all->work;
    struct scaling scaling;
    struct result result;
    int code = estimate_sizes(run, all);
    if (code) return code;
    result_begin(&result);
    run_put(&result, run, "kiln.explain/1");
    put_work(&result, verb, work);
    PUT(&result, NULL, BYTES(all->list[0].bytes), .before = ", ", .after = " of X");
    PUT(&result, "passes", COUNT(work->passes), .before = ", ", .after = " expected",
        .shown = result_words(&result, "%s", text_plural(work->passes, work->trial ? "iteration" : "pass")));
    PUT(&result, "k", COUNT(work->k), .unit = work->trial ? NULL : "column",
        .before = work->k < 2   ? NULL
                  : work->trial ? ", k = "
                                : ", with ",
        .after = work->trial ? NULL : " of y each");
    PUT_LINE(&result, "%s", "");
    PUT(&result, "estimates", TABLE(all->count, put_estimate, all));
    PUT_LINE(&result, "%s", "");
    PUT_LINE(&result, "* --device auto would take this one");
    PUT_LINE(&result,
             "  These are figures of as many %s as most data take; a run ends when it has converged.",
             work->trial ? "iterations" : "passes");
    if (work->trial)
        PUT_LINE(&result,
                 "  Of options that change an iteration, solver, metric and batches are not counted.");
    if (all->sizes) PUT_LINE(&result, "%s", "");
    PUT(&result, "sizes", TABLE(all->sizes, put_size, all));
    put_scaling(&result, &scaling, run, verb, work);
    code = put_more(&result, run, verb, device, s);
    const int told = run_tell(run, &result);
    result_free(&result);
    return code ? code : told;
}

/* An X that need not exist, on groups that need not either. */
static int explain_scaling(struct run *run, const struct verb *verb) {
    const struct settings *settings = run->settings;
    if (settings->rows <= 0 || settings->columns <= 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING,
                         "name DATA, or --rows and --columns, and --nnz if it is sparse",
                         "explain %s --gpus needs DATA or a shape", verb->name);
    kiln_work work = {.format = settings->nnz ? KILN_CSR : KILN_DENSE,
                      .type = type_of(settings->type),
                      .rows = settings->rows,
                      .cols = settings->columns,
                      .nnz = settings->nnz ? settings->nnz : settings->rows * settings->columns,
                      .k = settings->k ? settings->k : choose_width(verb, settings),
                      .passes = choose_passes(verb, settings, settings->columns)};
    struct scaling scaling;
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.explain/1");
    put_work(&result, verb, &work);
    PUT(&result, "passes", COUNT(work.passes), .before = ", ", .after = " expected",
        .shown = result_words(&result, "%s", text_plural(work.passes, "pass")));
    PUT(&result, "k", COUNT(work.k));
    put_scaling(&result, &scaling, run, verb, &work);
    return run_tell(run, &result);
}

static int explain_training(struct run *run, const struct verb *verb) {
    const struct settings *settings = run->settings;
    static const struct solver reads = {.bytes = 1}; /* of others the data are enough */
    struct solving s;
    struct run as = *run;
    kiln_work work;
    kiln_device *device = NULL;
    kiln_estimate *estimates = NULL;
    int64_t count = 0;
    if (run->count < 2 && is_scaled(settings)) return explain_scaling(run, verb);
    if (run->count < 2)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "name the data that it would be trained on",
                         "explain %s needs DATA", verb->name);
    if (settings->rows || settings->columns || settings->nnz || settings->k)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave out --rows, --columns, --nnz and --k",
                         "explain %s takes the shape of X from its data", verb->name);
    if (settings->device && strcmp(settings->device, "auto") != 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave out --device",
                         "explain %s says which device --device auto takes, and '%s' is given", verb->name,
                         settings->device);
    as.verb = verb;
    as.arguments++;
    as.count--;
    int code = solve_begin(&s, &as, algorithm_named(verb->name) ? &linear_solver : &reads);
    run->device = as.device;
    if (!code) {
        work = solve_work(&s);
        talk_unpolled();
        talk_doing("choose a device");
        guard_begin();
        const kiln_status status =
            kiln_device_choose(&device, &estimates, &count, run->device, &work,
                               &(kiln_choose_options){.thorough = 1, .process = process_of});
        guard_end();
        struct estimates all = {.list = estimates, .count = count, .passes = work.passes, .work = &work};
        code = status == KILN_OK ? tell_estimates(run, verb, device, &s, &all) : fail_library(WORKING);
    }
    if (device != run->device) kiln_device_close(device);
    kiln_free(estimates);
    solve_end(&s);
    return code;
}

int verb_explain(struct run *run) {
    const char *what = run->arguments[0];
    const struct planned *planned = planned_named(what);
    if (is_scaled(run->settings) && !kiln_algorithm_named(what))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "name an algorithm: kiln explain logreg DATA --gpus 8",
                         "explain %s takes no --gpus and --nodes", what);
    if (planned) return explain_plans(run, planned);
    if (strcmp(what, "batch") == 0) return explain_batch(run);
    if (kiln_algorithm_named(what) && verb_named(what)) return explain_training(run, verb_named(what));
    return fail_with(KILN_ERR_ARGUMENT, WORKING,
                     "mmchain, sddmm, batch, or an algorithm with its data: kiln explain linreg DATA",
                     "nothing to explain about '%s'", what);
}
