/* This file says which device ends the work first: the host, where the data lie, or the best GPU.
 *
 * The order of questions keeps small work free of cost. Pessimistic figures of a processor need no measuring,
 * and no GPU starts in less than START_LEAST: work that ends sooner stays on the host, and no GPU's library
 * is even loaded. Then the host is measured. Then the GPU's figures are recalled by the name that the profile
 * remembers, which needs no GPU either. Only if the GPU wins, or is not known yet, is it opened. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/kernels/cache.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "choose/figures.h"
#include "choose/trial.h"
#include "derived/panels_cpu.h"

/* Connecting to a driver and making a context on it, in seconds: no GPU was seen to take less. */
static const double START_LEAST = 0.15;

struct candidate {
    kiln_device *device; /* NULL: not open */
    kiln_device_info info;
    struct ki_figures figures;
    bool known, measured; /* the figures are something; are of this machine */
    double budget;
    char why[160];
};

struct choice {
    kiln_work work;
    kiln_choose_options options;
    struct candidate host, gpu;
    bool told; /* that something is measured */
};

/* Only the processor is asked whether X is thin: a GPU has other ways. */
static struct ki_cost cost_of(const struct choice *choice, const struct candidate *candidate) {
    const bool thin = candidate == &choice->host && !ki_cpu_panels_fit(&choice->work);
    return ki_cost_of(&candidate->figures, &choice->work, candidate->budget, thin);
}

static double seconds_of(const struct choice *choice, const struct candidate *candidate) {
    return cost_of(choice, candidate).total;
}

/* Far below what any processor of today does with each thread, so that the estimate errs on the long side. */
static void assume_host(struct candidate *host, const kiln_work *work, int threads) {
    const double t = (double)ki_min(threads, 8);
    host->figures = (struct ki_figures){.process = host->figures.process,
                                        .read = 3e9 * t,
                                        .row = 1e-8 / t,
                                        .thin = 1e7 * t,
                                        .iteration = 50e-6};
    for (int i = 0; i < KI_DENSE_WIDTHS; i++) host->figures.dense[i] = 3e9 * t;
    for (int i = 0; i < KI_SPARSE_WIDTHS; i++) host->figures.sparse[i] = 1.5e8 * t / (1 << i);
    if (work->trial) ki_trial_assume(&host->figures.trial, work->trial, t);
    host->known = true;
}

static kiln_status begin(struct choice *choice, kiln_device *host) {
    char owner[KI_FIGURE_OWNER];
    struct candidate *candidate = &choice->host;
    candidate->device = host;
    candidate->info = host->info;
    ki_figures_owner(owner, &host->info);
    const kiln_status status =
        ki_figures_recall(&candidate->measured, &candidate->figures, host, owner, &choice->work);
    candidate->known = candidate->measured;
    if (!candidate->known) assume_host(candidate, &choice->work, host->threads);
    return status;
}

/* ----------------------------------------------- the GPU that was seen last: name, description, bytes */

static kiln_status remember_gpu(kiln_device *gpu) {
    struct ki_cache *cache;
    char text[240];
    kiln_status status = ki_cache_of(&cache, gpu);
    if (status != KILN_OK) return status;
    const int length = snprintf(text, sizeof text, "%s\t%s\t%lld\n", gpu->info.name, gpu->info.description,
                                (long long)gpu->properties.memory);
    const struct ki_piece piece = {text, (size_t)length};
    ki_cache_write_file(cache, gpu, "gpu", &piece, 1);
    return KILN_OK;
}

static bool parse_gpu(struct candidate *gpu, char *text, size_t size) {
    if (size == 0 || text[size - 1] != '\n' || memchr(text, '\0', size)) return false;
    text[size - 1] = '\0';
    long long bytes;
    int end = 0;
    kiln_device_info info = {.is_gpu = 1};
    if (sscanf(text, "%31[^\t]\t%159[^\t]\t%lld%n", info.name, info.description, &bytes, &end) != 3 ||
        text[end] || bytes <= 0)
        return false;
    gpu->info = info;
    gpu->budget = (double)bytes;
    return true;
}

/* The figures of the GPU seen last, if the profile has all that the work needs. */
static kiln_status recall_gpu(struct choice *choice) {
    enum { MOST = 1024 };
    struct ki_cache *cache;
    struct candidate *gpu = &choice->gpu;
    kiln_device *host = choice->host.device;
    char owner[KI_FIGURE_OWNER], *text = NULL;
    size_t size = 0;
    kiln_status status = ki_cache_of(&cache, host);
    if (status == KILN_OK) status = ki_cache_read_file(&text, &size, cache, host, "gpu", MOST);
    if (status != KILN_OK || !text) return status;
    if (parse_gpu(gpu, text, size)) {
        ki_figures_owner(owner, &gpu->info);
        status = ki_figures_recall(&gpu->measured, &gpu->figures, host, owner, &choice->work);
        gpu->measured = gpu->measured && gpu->figures.start > 0;
        gpu->known = gpu->measured && (gpu->figures.process > 0 || !choice->options.process);
        if (host->options.memory > 0) gpu->budget = (double)host->options.memory;
    } else {
        ki_cache_drop_file(cache, host, "gpu", "damaged");
    }
    ki_free(text);
    return status;
}

/* ------------------------------------------------------------------------------ opening and measuring */

/* The best GPU, as "auto" finds it. *gpu stays NULL if there is none, and why says why. */
static kiln_status open_gpu(kiln_device **gpu, char why[160], const kiln_device_options *options) {
    static const char *const names[] = {"cuda", "opencl"};
    for (int i = 0; i < 2; i++) {
        kiln_device *opened = NULL;
        const kiln_status status = kiln_device_open(&opened, names[i], options);
        if (status == KILN_ERR_NOMEM) return status;
        if (status == KILN_OK && opened->properties.is_gpu) {
            *gpu = opened;
            return KILN_OK;
        }
        const size_t used = strlen(why);
        snprintf(why + used, 160 - used, "%s%.75s", used ? "; " : "",
                 status == KILN_OK ? "opencl: a processor, which the device cpu serves better"
                                   : kiln_last_error()->message);
        kiln_device_close(opened);
    }
    return KILN_OK;
}

/* Returns how long a process takes that opens the GPU seen last and does nothing else, asked once and before
 * this one opens a GPU: a driver that somebody uses starts and ends sooner. Negative: nobody was asked, or
 * nobody knows. */
static double ask_for_process(struct choice *choice) {
    const kiln_choose_options *options = &choice->options;
    if (!options->process || !*choice->gpu.info.name || choice->gpu.figures.process > 0) return -1;
    ki_figures_tell(choice->host.device, &choice->told);
    return options->process(options->user, choice->gpu.info.name);
}

/* Keeps what was said, if it was of the GPU that is open now; else what was said before is recalled with the
 * rest. */
static kiln_status take_process(struct candidate *gpu, const char *asked, double seconds) {
    gpu->figures.process = 0;
    return seconds > 0 && seconds <= DBL_MAX && strcmp(asked, gpu->device->info.name) == 0
               ? ki_figures_keep_process(&gpu->figures, gpu->device, seconds)
               : KILN_OK;
}

static kiln_status measure_gpu(struct choice *choice, double began) {
    struct candidate *gpu = &choice->gpu;
    kiln_status status;
    TRY(ki_figures_keep_start(&gpu->figures, gpu->device, &choice->work, began));
    TRY(ki_figures_measure(&gpu->figures, gpu->device, &choice->work, &choice->told));
    TRY(remember_gpu(gpu->device));
done:
    return status;
}

/* Opens the GPU and completes its figures. A GPU that is not there, lacks the type, or fails is left out, and
 * why says why. */
static kiln_status look_at_gpu(struct choice *choice) {
    struct candidate *gpu = &choice->gpu;
    const kiln_device_info seen = gpu->info;
    const double process = ask_for_process(choice), began = ki_clock();
    gpu->known = gpu->measured = false;
    kiln_status status = open_gpu(&gpu->device, gpu->why, &choice->host.device->options);
    if (status == KILN_OK && gpu->device) status = take_process(gpu, seen.name, process);
    if (status != KILN_OK || !gpu->device) return status;
    gpu->info = gpu->device->info;
    gpu->budget = (double)gpu->device->budget;
    if (choice->work.type == KILN_F64 && !gpu->device->properties.has_f64)
        snprintf(gpu->why, sizeof gpu->why, "it has no double precision");
    else if ((status = measure_gpu(choice, began)) != KILN_OK)
        snprintf(gpu->why, sizeof gpu->why, "it could not be measured: %.120s", kiln_last_error()->message);
    else
        gpu->known = gpu->measured = true;
    return status == KILN_ERR_NOMEM ? status : KILN_OK;
}

/* Finds what a process takes on the processor, too: of a GPU's this is a part. */
static kiln_status ask_for_host(struct choice *choice) {
    struct candidate *host = &choice->host;
    const kiln_choose_options *options = &choice->options;
    if (!options->process || host->figures.process > 0) return KILN_OK;
    const double seconds = options->process(options->user, host->info.name);
    return seconds > 0 && seconds <= DBL_MAX ? ki_figures_keep_process(&host->figures, host->device, seconds)
                                             : KILN_OK;
}

/* A host too full to be measured is judged by the pessimistic figures: what is to be done there does not fail
 * for that. */
static void measure_host(struct choice *choice) {
    struct candidate *host = &choice->host;
    if (host->measured) return;
    struct ki_figures figures = {.process = host->figures.process};
    if (ki_figures_measure(&figures, host->device, &choice->work, &choice->told) != KILN_OK) {
        ki_device_message(host->device, "device %s could not be measured: %s", host->info.name,
                          kiln_last_error()->message);
        return;
    }
    host->figures = figures;
    host->measured = true;
}

/* Returns whether the host has ended before a GPU has merely started, which is then not looked at. */
static bool settled(struct choice *choice) {
    const struct ki_figures *gpu = &choice->gpu.figures;
    const double start = choice->gpu.known ? fmax(gpu->start, gpu->process) : START_LEAST;
    if (choice->options.thorough || seconds_of(choice, &choice->host) > start) return false;
    choice->gpu.known = false;
    snprintf(choice->gpu.why, sizeof choice->gpu.why, "not looked at, as starting one takes %.2f s or more",
             start);
    return true;
}

static bool gpu_wins(const struct choice *choice) {
    return choice->gpu.known && seconds_of(choice, &choice->gpu) < seconds_of(choice, &choice->host);
}

static kiln_status decide(struct choice *choice) {
    kiln_status status;
    TRY(recall_gpu(choice));
    if (settled(choice)) return KILN_OK;
    measure_host(choice);
    TRY(ask_for_host(choice));
    if (settled(choice)) return KILN_OK;
    /* A recalled figure may be of another GPU or driver by now: once open, what counts is what is there. */
    if (choice->options.thorough || !choice->gpu.known || gpu_wins(choice)) TRY(look_at_gpu(choice));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- telling */

static void explain(kiln_estimate *row, const struct choice *choice, const struct candidate *candidate,
                    const struct candidate *other, bool chosen) {
    const struct ki_cost cost = cost_of(choice, candidate);
    *row = (kiln_estimate){.chosen = chosen, .considered = candidate->known, .measured = candidate->measured};
    memcpy(row->device, candidate->info.name, sizeof row->device);
    memcpy(row->description, candidate->info.description, sizeof row->description);
    memcpy(row->why, candidate->why, sizeof row->why);
    if (!candidate->known) {
        if (!*row->device) snprintf(row->device, sizeof row->device, "gpu");
        return;
    }
    row->streamed = cost.streamed;
    row->bytes = cost.bytes;
    row->read = candidate->figures.read;
    row->up = candidate->figures.up;
    row->down = candidate->figures.down;
    row->start_seconds = cost.start;
    row->move_seconds = cost.move;
    row->prepare_seconds = cost.prepare;
    row->pass_seconds = cost.pass;
    row->overhead_seconds = cost.overhead;
    row->seconds = cost.total;
    if (chosen && other->known)
        snprintf(row->why, sizeof row->why, "%.3g s expected, %s %.3g s", cost.total, other->info.name,
                 seconds_of(choice, other));
    else if (chosen)
        snprintf(row->why, sizeof row->why, "%.3g s expected%s", cost.total,
                 candidate->measured ? "" : " at most");
}

kiln_status kiln_device_choose(kiln_device **device, kiln_estimate **estimates, int64_t *count,
                               kiln_device *host, const kiln_work *work, const kiln_choose_options *options) {
    struct choice choice = {.work = {0}};
    kiln_status status;
    kiln_estimate *rows = NULL;
    if (!device || !estimates || !count || !host)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_choose: an argument is NULL");
    if (!ki_on_cpu(host))
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_choose: host is %s, but must be cpu", host->info.name);
    TRY(ki_work_check(&choice.work, work));
    TRY(KI_TAKE(kiln_choose_options, &choice.options, options));
    TRY(begin(&choice, host));
    TRY(decide(&choice));
    rows = ki_calloc(2 * sizeof *rows);
    if (!rows) TRY(ki_fail_nomem(2 * sizeof *rows, "the estimates"));
    const bool on_gpu = gpu_wins(&choice) && choice.gpu.device;
    explain(&rows[0], &choice, &choice.host, &choice.gpu, !on_gpu);
    explain(&rows[1], &choice, &choice.gpu, &choice.host, on_gpu);
    *device = on_gpu ? choice.gpu.device : host;
    *estimates = rows;
    *count = 2;
    if (on_gpu) choice.gpu.device = NULL;
done:
    kiln_device_close(choice.gpu.device);
    return status;
}
