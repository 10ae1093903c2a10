/* kiln explain: why Kiln does what it does, without doing it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "choose.h"
#include "guard.h"
#include "help.h"
#include "plans.h"
#include "process.h"
#include "scaling.h"
#include "train.h"
#include "verbs.h"

enum { SHOWN = 12 };

/* ------------------------------------------------------------------------------- plans of an operation */

static int print_plans(const struct run *run, const struct planned *planned, const struct plan_list *list,
                       const kiln_work *work) {
    const kiln_plan *chosen = list->chosen;
    struct plan_row *rows = calloc((size_t)list->count + 1, sizeof *rows);
    if (!rows) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the plans");
    for (int64_t i = 0; i < list->count; i++) rows[i] = (struct plan_row){&list->plans[i], NAN};
    plans_print_work(stdout, run, planned, work);
    plans_print(stdout, rows, list->count, talk_verbose() ? list->count : SHOWN, planned->sparse);
    free(rows);
    if (!chosen) return 0;
    printf("\n* the choice, out of %s: %.4f ms predicted, %s/s", text_plural(list->count, "plan"),
           1e3 * chosen->seconds, text_bytes(chosen->seconds > 0 ? chosen->bytes / chosen->seconds : 0));
    printf("%s%s\n", *chosen->limit ? "; limited by " : "", chosen->limit);
    return 0;
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
    if (talk_json()) {
        json_t *object = run_json(run, "kiln.explain/1"), *array = json_array();
        plans_json_work(object, planned, &work);
        for (int64_t i = 0; i < list.count; i++) json_add(array, plans_json(&list.plans[i]));
        json_put(object, "plans", array);
        code = json_print(object);
    } else {
        code = print_plans(run, planned, &list, &work);
    }
    kiln_free(list.plans);
    return code;
}

/* ------------------------------------------------------------------------------------ where to run an algorithm */

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

static void print_estimate(const kiln_estimate *e, int64_t passes) {
    printf("%c %s%s%s\n", e->chosen ? '*' : ' ', e->device, *e->description ? ": " : "", e->description);
    if (!e->considered) {
        printf("    left out   %s\n", e->why);
        return;
    }
    printf("    start      %s\n", duration(e->start_seconds));
    if (e->streamed)
        printf("    streaming  X exceeds the device's memory: every pass moves it, at %s/s\n",
               text_bytes(e->up));
    else if (e->up > 0)
        printf("    move       %s: %s at %s/s\n", duration(e->move_seconds), text_bytes(e->bytes),
               text_bytes(e->up));
    if (e->prepare_seconds > 0) {
        printf("    prepare    %s\n", duration(e->prepare_seconds));
        printf("    a pass     %s\n", duration(e->pass_seconds));
    } else {
        printf("    a pass     %s: %s, %s/s of the %s/s that the memory gives\n", duration(e->pass_seconds),
               text_bytes(e->bytes), text_bytes(e->bytes / e->pass_seconds), text_bytes(e->read));
    }
    printf("    beside it  %s in each pass: launches, waiting, vectors\n", duration(e->overhead_seconds));
    printf("    in all     %s = start + move + %s%lld * (pass + beside)%s\n", duration(e->seconds),
           e->prepare_seconds > 0 ? "prepare + " : "", (long long)passes,
           e->measured ? "" : " at most; not measured");
}

/* This tells where work of the same kind on less and on more rows would go: with them computation and transfer grow,
 * while starting a device, launches and waiting stay. Where there is no GPU there is nothing to compare. */
static int tell_sizes(struct run *run, const kiln_work *work, const kiln_estimate *estimates, int64_t count,
                      json_t *object) {
    static const double scales[] = {1.0 / 64, 1.0 / 16, 0.25, 1, 4, 16, 64};
    json_t *array = object ? json_array() : NULL;
    if (object) json_put(object, "sizes", array);
    if (count < 2 || !estimates[1].considered) return 0;
    if (!object) printf("\ntimes the rows   %10s  %10s   --device auto\n", "cpu", "gpu");
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        kiln_work scaled = *work;
        kiln_device *device = run->device;
        kiln_estimate *rows = NULL;
        int64_t found = 0;
        scaled.rows = (int64_t)ceil((double)work->rows * scales[i]);
        scaled.nnz = (int64_t)((double)work->nnz * scales[i]);
        /* No process is timed: this one has had the GPU open by now, so that its driver would neither
         * start nor clean up. */
        if (kiln_device_choose(&device, &rows, &found, run->device, &scaled,
                               &(kiln_choose_options){.thorough = 1}) != KILN_OK)
            return fail_library(WORKING);
        if (object) {
            json_t *row = json_object();
            json_put_number(row, "scale", scales[i]);
            json_put_number(row, "cpu_seconds", rows[0].seconds);
            json_put_number(row, "gpu_seconds", rows[1].considered ? rows[1].seconds : (double)NAN);
            json_put_text(row, "device", rows[rows[1].chosen].device);
            json_add(array, row);
        } else {
            printf("%14s   %10s  %10s   %s\n", text_number(scales[i]), duration(rows[0].seconds),
                   rows[1].considered ? duration(rows[1].seconds) : "-", rows[rows[1].chosen].device);
        }
        if (device != run->device) kiln_device_close(device);
        kiln_free(rows);
    }
    return 0;
}

/* Which of its ways a linear model would be found in. */
static int tell_solver(const struct training *job, const kiln_matrix *X, json_t *object) {
    kiln_solver choice;
    const int code = train_choose_solver(&choice, job, X);
    if (code) return code;
    if (object) {
        json_put_text(object, "solver", choice.solver);
        json_put_text(object, "why", choice.why);
        json_put_count(object, "max_iterations", choice.max_iterations);
        return 0;
    }
    printf("\nsolver      %s%s%s\n", choice.solver ? choice.solver : "newton", *choice.why ? ": " : "",
           choice.why);
    printf("iterations  %s at most\n", text_count(choice.max_iterations));
    return 0;
}

/* What the verb itself has to say, of X on the device that was chosen. */
static int tell_more(struct run *run, const struct verb *verb, kiln_device *device, const struct solving *s,
                     json_t *object) {
    const kiln_matrix *X = solving_X(s);
    const struct training *job = s->solver == &train_solver ? s->state : NULL;
    kiln_matrix *copy = NULL;
    if (!verb->explain && !job) return 0;
    const bool there = device == kiln_matrix_device(X);
    int code = there || kiln_matrix_copy(&copy, device, kiln_matrix_type(X), X) == KILN_OK
                   ? 0
                   : fail_library(WORKING);
    if (!code)
        code =
            job ? tell_solver(job, there ? X : copy, object) : verb->explain(run, there ? X : copy, object);
    kiln_matrix_free(copy);
    return code;
}

static bool is_scaled(const struct settings *settings) {
    return settings->gpus > 0 || settings->nodes > 0;
}

static void tell_scaling(const struct run *run, const struct verb *verb, const kiln_work *work,
                         json_t *object) {
    const struct settings *settings = run->settings;
    kiln_work passes = *work;
    if (verb->work && run->count > 1) verb->work(&passes);
    scaling_tell(verb, &passes, settings->gpus > 0 ? settings->gpus : 1,
                 settings->nodes > 0 ? settings->nodes : 1, object);
}

static void json_put_work(json_t *object, const struct verb *verb, const kiln_work *work) {
    json_put_text(object, "algorithm", verb->name);
    json_put_count(object, "passes", work->passes);
    json_put_count(object, "rows", work->rows);
    json_put_count(object, "columns", work->cols);
    json_put_count(object, "nnz", work->nnz);
    json_put_count(object, "k", work->k);
}

static int tell_estimates(struct run *run, const struct verb *verb, kiln_device *device,
                          const struct solving *s, const kiln_work *work, const kiln_estimate *estimates,
                          int64_t count) {
    if (talk_json()) {
        json_t *object = run_json(run, "kiln.explain/1");
        json_put_work(object, verb, work);
        struct result result;
        result_begin(&result);
        PUT(&result, "estimates", TABLE(count, choose_put_estimate, estimates));
        result_merge(object, &result);
        int code = tell_sizes(run, work, estimates, count, object);
        if (is_scaled(run->settings)) tell_scaling(run, verb, work, object);
        if (!code) code = tell_more(run, verb, device, s, object);
        const int printed = json_print(object);
        return code ? code : printed;
    }
    printf("%s: %s x %s, %s of X, %s expected", run->arguments[0], text_plural(work->rows, "row"),
           text_plural(work->cols, "column"), text_bytes(estimates[0].bytes),
           text_plural(work->passes, "pass"));
    if (work->k > 1 && work->trial)
        printf(", k = %lld", (long long)work->k);
    else if (work->k > 1)
        printf(", with %s of y each", text_plural(work->k, "column"));
    printf("\n\n");
    for (int64_t i = 0; i < count; i++) print_estimate(&estimates[i], work->passes);
    printf("\n* --device auto would take this one\n");
    const int code = tell_sizes(run, work, estimates, count, NULL);
    if (is_scaled(run->settings)) tell_scaling(run, verb, work, NULL);
    return code ? code : tell_more(run, verb, device, s, NULL);
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
    json_t *object = talk_json() ? run_json(run, "kiln.explain/1") : NULL;
    if (object)
        json_put_work(object, verb, &work);
    else
        printf("%s: %s x %s, %s expected\n", verb->name, text_plural(work.rows, "row"),
               text_plural(work.cols, "column"), text_plural(work.passes, "pass"));
    tell_scaling(run, verb, &work, object);
    return object ? json_print(object) : 0;
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
    int code = solve_begin(&s, &as, algorithm_named(verb->name) ? &train_solver : &reads);
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
        code = status == KILN_OK ? tell_estimates(run, verb, device, &s, &work, estimates, count)
                                 : fail_library(WORKING);
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
