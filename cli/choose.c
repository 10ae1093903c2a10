#define _GNU_SOURCE
/* --device auto. */
#include "choose.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "guard.h"
#include "process.h"

enum { ESTIMATES = 4 };
static const double NOTICED = 0.5; /* seconds */

/* Holds what the JSON object tells later. */
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
    return (kiln_work){.size = sizeof(kiln_work),
                       .format = kiln_matrix_format(X),
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
    const int64_t before = held_now();
    talk_unpolled();
    talk_doing("choose a device");
    guard_begin();
    const kiln_status status = kiln_device_choose(&device, &estimates, &count, run->device, work,
                                                  &(kiln_choose_options){.process = process_of});
    guard_end();
    if (status != KILN_OK) return fail_library(WORKING);
    held_except(&run->memory, before, run->settings->strict);
    chosen.choosing = clock_seconds() - start;
    keep_estimates(estimates, count);
    kiln_free(estimates);
    say_choice();
    return device == run->device ? 0 : move_to(run, data, device);
}

void choose_put_estimate(struct result *result, const void *of, int64_t i) {
    const kiln_estimate *estimate = &((const kiln_estimate *)of)[i];
    PUT(result, "device", TEXT(estimate->device));
    PUT(result, "description", TEXT(*estimate->description ? estimate->description : NULL));
    PUT(result, "chosen", FLAG(estimate->chosen));
    PUT(result, "considered", FLAG(estimate->considered));
    PUT(result, "why", TEXT(*estimate->why ? estimate->why : NULL));
    if (!estimate->considered) return;
    PUT(result, "measured", FLAG(estimate->measured));
    PUT(result, "streamed", FLAG(estimate->streamed));
    PUT(result, "bytes", BYTES(estimate->bytes));
    PUT(result, "read_bytes_per_second", NUMBER(estimate->read));
    PUT(result, "up_bytes_per_second", NUMBER(estimate->up));
    PUT(result, "down_bytes_per_second", NUMBER(estimate->down));
    PUT(result, "start_seconds", SECONDS(estimate->start_seconds));
    PUT(result, "move_seconds", SECONDS(estimate->move_seconds));
    PUT(result, "prepare_seconds", SECONDS(estimate->prepare_seconds));
    PUT(result, "pass_seconds", SECONDS(estimate->pass_seconds));
    PUT(result, "overhead_seconds", SECONDS(estimate->overhead_seconds));
    PUT(result, "seconds", SECONDS(estimate->seconds));
}

void choose_put(struct result *result, const struct run *run) {
    double predicted = 0, start = 0;
    if (!chosen.count) return;
    for (int i = 0; i < chosen.count; i++) {
        if (!chosen.estimate[i].chosen) continue;
        predicted = chosen.estimate[i].seconds;
        start = chosen.estimate[i].start_seconds;
    }
    result_open(result, "choice", false);
    PUT(result, "predicted_seconds", SECONDS(predicted - start));
    PUT(result, "actual_seconds", SECONDS(chosen.moving + run->seconds.solve));
    PUT(result, "choosing_seconds", SECONDS(chosen.choosing));
    PUT(result, "estimates", TABLE(chosen.count, choose_put_estimate, chosen.estimate), .hidden = true);
    result_close(result);
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
    const double starts = fmax(algorithm_value(verb->name, settings, "restarts"), 1);
    return kiln_algorithm_passes(verb->name, columns, (int64_t)most) * trainings(settings) * (int64_t)starts;
}

/* ------------------------------------------------------------------------------------ whole processes */

enum { TIMES = 2 }; /* the first one may have to build a kernel */

extern char **environ;

/* Timing whole processes: this program runs itself, `kiln devices --start`, which opens a device, multiplies
 * something small, and ends. Nothing within a process could see how long the driver goes on cleaning up after
 * it. */
static bool spawn(pid_t *child, const char *device) {
    char name[32], program[4096];
    char *arguments[] = {"kiln", "devices", "--start", "--quiet", "--device", name, NULL};
    posix_spawn_file_actions_t actions;
    snprintf(name, sizeof name, "%s", device);
    if (!process_program(program, sizeof program) || posix_spawn_file_actions_init(&actions) != 0)
        return false;
    const bool made =
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn(child, program, &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return made;
}

double process_of(void *user, const char *device) {
    double least = INFINITY;
    (void)user;
    for (int i = 0; i < TIMES; i++) {
        pid_t child;
        int code = 0;
        const double start = clock_seconds();
        if (!spawn(&child, device)) return KILN_NONE;
        while (waitpid(child, &code, 0) < 0 && errno == EINTR) continue;
        if (!WIFEXITED(code) || WEXITSTATUS(code) != 0) return KILN_NONE;
        least = fmin(least, clock_seconds() - start);
    }
    return least;
}
