/* --device auto. */
#include "choose.h"

#include <string.h>

#include "commands.h"
#include "guard.h"
#include "process.h"

enum { ESTIMATES = 4 };
static const double NOTICED = 0.5; /* seconds */

/* What the JSON object tells later. */
static struct {
    kiln_estimate estimate[ESTIMATES];
    int count;
    double choosing, moving; /* seconds that these took */
} chosen;

static bool automatic(const struct run *run) {
    return !run->processes && (!run->settings->device || strcmp(run->settings->device, "auto") == 0);
}

int choose_reader(struct run *run) {
    if (!automatic(run)) return run_open_device(run, "auto");
    const struct settings *settings = run->settings;
    struct settings unnamed = *settings;
    unnamed.device = NULL;
    run->settings = &unnamed;
    const int code = run_open_device(run, "cpu");
    run->settings = settings;
    return code;
}

static void keep_estimates(const kiln_estimate *estimates, int64_t count) {
    for (int64_t i = 0; i < count && i < ESTIMATES; i++) chosen.estimate[chosen.count++] = estimates[i];
}

/* One line: the choice, its reason, what is against the others, and how long it took, if anybody noticed. */
static void say_choice(void) {
    const kiln_estimate *best = NULL;
    char others[2 * sizeof best->why] = "", took[64] = "";
    for (int i = 0; i < chosen.count; i++) {
        const kiln_estimate *estimate = &chosen.estimate[i];
        const size_t used = strlen(others);
        if (estimate->chosen)
            best = estimate;
        else if (!estimate->considered)
            snprintf(others + used, sizeof others - used, "; %s: %s", estimate->device, estimate->why);
    }
    if (chosen.choosing > NOTICED)
        snprintf(took, sizeof took, "; measured in %s", text_seconds(chosen.choosing));
    if (best) say("device %s: %s%s%s", best->device, best->why, others, took);
}

static int move_to(struct run *run, kiln_data *data, kiln_device *device) {
    kiln_device *host = run->device;
    kiln_device_statistics before = {0};
    run->device = device;
    kiln_device_get_statistics(device, &before);
    const double start = clock_seconds();
    if (kiln_device_get_info(device, &run->device_info) != KILN_OK ||
        kiln_data_move(data, device) != KILN_OK) {
        const int code = fail_library(WORKING);
        /* The data still lie on the host, which must outlive them: the caller frees them before main
         * closes it. */
        run->device = host;
        kiln_device_close(device);
        return code;
    }
    chosen.moving = clock_seconds() - start;
    run_account(run, &before, chosen.moving);
    kiln_device_close(host);
    return 0;
}

kiln_work choose_work(const struct verb *verb, const kiln_data *data, int64_t k, int64_t passes) {
    const kiln_matrix *X = kiln_data_X(data);
    const kiln_algorithm *algorithm = kiln_algorithm_named(verb->name);
    return (kiln_work){.format = kiln_matrix_format(X),
                       .type = kiln_matrix_type(X),
                       .rows = kiln_matrix_rows(X),
                       .cols = kiln_matrix_cols(X),
                       .nnz = kiln_matrix_nnz(X),
                       .k = k,
                       .passes = passes,
                       .trial = algorithm ? algorithm->trial : NULL};
}

int choose_device(struct run *run, kiln_data *data, const kiln_work *work) {
    if (!automatic(run)) return 0;
    kiln_device *device;
    kiln_estimate *estimates = NULL;
    int64_t count;
    const double start = clock_seconds();
    talk_unpolled();
    talk_doing("choose a device");
    guard_begin();
    const kiln_status status = kiln_device_choose(&device, &estimates, &count, run->device, work,
                                                  &(kiln_choose_options){.process = process_of});
    guard_end();
    if (status != KILN_OK) return fail_library(WORKING);
    chosen.choosing = clock_seconds() - start;
    keep_estimates(estimates, count);
    kiln_free(estimates);
    say_choice();
    return device == run->device ? 0 : move_to(run, data, device);
}

json_t *choose_estimate_json(const kiln_estimate *estimate) {
    json_t *object = json_object();
    json_put_text(object, "device", estimate->device);
    json_put_text(object, "description", *estimate->description ? estimate->description : NULL);
    json_put_flag(object, "chosen", estimate->chosen);
    json_put_flag(object, "considered", estimate->considered);
    json_put_text(object, "why", *estimate->why ? estimate->why : NULL);
    if (!estimate->considered) return object;
    json_put_flag(object, "measured", estimate->measured);
    json_put_flag(object, "streamed", estimate->streamed);
    json_put_number(object, "bytes", estimate->bytes);
    json_put_number(object, "read_bytes_per_second", estimate->read);
    json_put_number(object, "up_bytes_per_second", estimate->up);
    json_put_number(object, "down_bytes_per_second", estimate->down);
    json_put_number(object, "start_seconds", estimate->start_seconds);
    json_put_number(object, "move_seconds", estimate->move_seconds);
    json_put_number(object, "prepare_seconds", estimate->prepare_seconds);
    json_put_number(object, "pass_seconds", estimate->pass_seconds);
    json_put_number(object, "overhead_seconds", estimate->overhead_seconds);
    json_put_number(object, "seconds", estimate->seconds);
    return object;
}

void choose_json(const struct run *run, json_t *object) {
    if (!chosen.count) return;
    json_t *choice = json_object(), *estimates = json_array();
    double predicted = 0, start = 0;
    for (int i = 0; i < chosen.count; i++) {
        json_add(estimates, choose_estimate_json(&chosen.estimate[i]));
        if (!chosen.estimate[i].chosen) continue;
        predicted = chosen.estimate[i].seconds;
        start = chosen.estimate[i].start_seconds;
    }
    json_put_number(choice, "predicted_seconds", predicted - start);
    json_put_number(choice, "actual_seconds", chosen.moving + run->seconds.solve);
    json_put_number(choice, "choosing_seconds", chosen.choosing);
    json_put(choice, "estimates", estimates);
    json_put(object, "choice", choice);
}

/* Models that are trained: one for each value of the penalty in each fold, and the one that is kept. */
static int64_t trainings(const struct settings *settings) {
    const int64_t ridge = settings->C.count > settings->l2.count ? settings->C.count : settings->l2.count;
    const int64_t most = settings->l1.count > ridge ? settings->l1.count : ridge;
    const int64_t values = most > 1 ? most : 1, folds = settings->folds > 1 ? settings->folds : 1;
    return values * folds + (values * folds > 1);
}

int64_t choose_width(const struct verb *verb, const struct settings *settings) {
    return verb->width ? verb->width(settings) : 1;
}

int64_t choose_passes(const struct verb *verb, const struct settings *settings, int64_t columns) {
    if (!kiln_algorithm_named(verb->name)) return 1;
    const double most = algorithm_value(verb->name, settings, "max_iterations");
    return kiln_algorithm_passes(verb->name, columns, (int64_t)most) * trainings(settings);
}
