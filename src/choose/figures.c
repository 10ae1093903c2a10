/* A device's figures for the cost model, in the machine's profile. What measures them is in
 * choose/figures_rates.c. */
#define _GNU_SOURCE
#include "choose/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/seams.h"
#include "choose/pace.h"
#include "choose/trial.h"

/* A figure is needed by some work, as one for all or as one for f32 and one for f64, and is measured on some
 * devices. */
enum { DENSE = 1, SPARSE = 2, TRIAL = 4, ALL = 7 };
enum which { EVERY, GPU, TOLD /* none: somebody tells it, or has seen it, or nobody */ };

struct figure {
    const char *name;
    size_t offset; /* in struct ki_figures */
    int works;
    enum which of;
};
#define AT(field) offsetof(struct ki_figures, field)
static const struct figure figures_kept[] = {
    {"process", AT(process), ALL, TOLD},
    {"start", AT(start), ALL, TOLD},
    {"up", AT(up), ALL, GPU},
    {"down", AT(down), ALL, GPU},
    {"bandwidth", AT(read), ALL, EVERY},
    {"dense 5", AT(dense[0]), DENSE, EVERY},
    {"dense 40", AT(dense[1]), DENSE, EVERY},
    {"dense 32768", AT(dense[2]), DENSE, EVERY},
    {"dense latency", AT(pace.latency), DENSE, GPU},
    {"dense issue", AT(pace.issue), DENSE, GPU},
    {"row", AT(row), SPARSE, EVERY},
    {"sparse 1024", AT(sparse[0]), SPARSE, EVERY},
    {"sparse 65536", AT(sparse[1]), SPARSE, EVERY},
    {"sparse 262144", AT(sparse[2]), SPARSE, EVERY},
    {"sparse 4194304", AT(sparse[3]), SPARSE, EVERY},
    {"thin 4194304", AT(thin), SPARSE, EVERY},
    {"iteration", AT(iteration), DENSE | SPARSE, EVERY},
    {"dense until", AT(until), DENSE, EVERY},
    {"sparse until", AT(until), SPARSE, EVERY},
    {"until", AT(until), TRIAL, EVERY},
    {"units 0", AT(trial.units[0]), TRIAL, EVERY},
    {"units 1", AT(trial.units[1]), TRIAL, EVERY},
    {"units 2", AT(trial.units[2]), TRIAL, EVERY},
    {"prepare 0", AT(trial.prepare[0]), TRIAL, EVERY},
    {"prepare 1", AT(trial.prepare[1]), TRIAL, EVERY},
    {"prepare 2", AT(trial.prepare[2]), TRIAL, EVERY},
    {"iteration 0", AT(trial.iteration[0]), TRIAL, EVERY},
    {"iteration 1", AT(trial.iteration[1]), TRIAL, EVERY},
    {"iteration 2", AT(trial.iteration[2]), TRIAL, EVERY},
};
#undef AT
enum { KEPT = sizeof figures_kept / sizeof *figures_kept, NAME = KI_FIGURE_OWNER + 60 };

static void figure_name(char name[NAME], const struct figure *figure, const kiln_work *work,
                        const char *owner) {
    const bool tried = figure->works == TRIAL, typed = figure->works != ALL;
    snprintf(name, NAME, "%s%s%s%s%s %s", tried ? work->trial->name : "", tried ? " " : "", figure->name,
             typed ? " " : "", typed ? ki_type_name(work->type) : "", owner);
}

static bool needed(const struct figure *figure, const kiln_work *work, bool host) {
    if (figure->of == GPU && host) return false;
    return figure->works & (work->trial ? TRIAL : work->format == KILN_CSR ? SPARSE : DENSE);
}

kiln_status ki_figures_recall(bool *found, struct ki_figures *figures, kiln_device *device, const char *owner,
                              const kiln_work *work) {
    char name[NAME];
    const bool host = strncmp(owner, "cpu ", 4) == 0;
    struct ki_figures recalled = {0};
    bool all = true;
    for (int i = 0; i < KEPT && all; i++) {
        const struct figure *figure = &figures_kept[i];
        bool there;
        if (!needed(figure, work, host)) continue;
        figure_name(name, figure, work, owner);
        kiln_status status =
            ki_cache_profile_get(&there, (double *)((char *)&recalled + figure->offset), device, name);
        if (status != KILN_OK) return status;
        all = there || figure->of == TOLD;
    }
    all = all && (double)time(NULL) < recalled.until;
    *found = all;
    if (all) *figures = recalled;
    figures->process = recalled.process;
    return KILN_OK;
}

static kiln_status keep(kiln_device *device, const struct ki_figures *figures, const kiln_work *work) {
    char name[NAME], owner[KI_FIGURE_OWNER];
    kiln_status status = KILN_OK;
    ki_figures_owner(owner, &device->info);
    for (int i = 0; i < KEPT && status == KILN_OK; i++) {
        const double value = *(const double *)((const char *)figures + figures_kept[i].offset);
        if (!needed(&figures_kept[i], work, ki_on_cpu(device)) || value == 0) continue;
        if (figures_kept[i].of == TOLD) continue; /* kept when it was told or seen */
        figure_name(name, &figures_kept[i], work, owner);
        status = ki_cache_profile_put(device, name, value);
    }
    return status;
}

void ki_figures_tell(const kiln_device *device, bool *told) {
    if (!*told)
        ki_device_message(device, "measuring this machine, once, to choose among its devices: some seconds");
    *told = true;
}

/* Until when figures that are measured now are good: on a machine with more work than processors for an
 * hour. */
static double good_until(void) {
    enum { HOUR = 3600, MONTH = 30 * 24 * HOUR };
    double load;
    const bool busy = getloadavg(&load, 1) == 1 && load > (double)sysconf(_SC_NPROCESSORS_ONLN);
    return (double)time(NULL) + (busy ? HOUR : MONTH);
}

static kiln_status measure(struct ki_figures *figures, kiln_device *device, const kiln_work *work) {
    const kiln_device_options options = device->options;
    kiln_status status;
    device->options.message = NULL; /* what the samples need is nobody's concern */
    figures->until = good_until();
    TRY(kiln_device_bandwidth(&figures->read, device, 0));
    if (work->trial) {
        TRY(ki_trial_measure(&figures->trial, device, work->type, work->trial));
    } else {
        if (work->format == KILN_DENSE) TRY(ki_rates_pace(&figures->pace, device, work->type));
        TRY(ki_rates_iteration(&figures->iteration, device, work->type));
        TRY(work->format == KILN_CSR ? ki_rates_sparse(figures, device, work->type)
                                     : ki_rates_dense(figures->dense, device, work->type));
    }
    if (!ki_on_cpu(device)) TRY(ki_rates_link(&figures->up, &figures->down, device));
done:
    device->options = options;
    return status;
}

/* A process is none of what can be measured: what was told before, or what `figures` come with. */
kiln_status ki_figures_measure(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                               bool *told) {
    kiln_status status;
    char owner[KI_FIGURE_OWNER];
    bool found;
    struct ki_figures made = *figures;
    ki_figures_owner(owner, &device->info);
    TRY(ki_figures_recall(&found, &made, device, owner, work));
    if (figures->process > 0) made.process = figures->process;
    if (!found) {
        ki_figures_tell(device, told);
        TRY(measure(&made, device, work));
        TRY(keep(device, &made, work));
    }
    *figures = made;
done:
    return status;
}

/* The name of a figure that is one for all works. */
static void name_for_all(char name[NAME], const char *figure, const kiln_device *device) {
    char owner[KI_FIGURE_OWNER];
    ki_figures_owner(owner, &device->info);
    snprintf(name, NAME, "%s %s", figure, owner);
}

kiln_status ki_figures_keep_start(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                                  double opened_at) {
    char name[NAME];
    kiln_status status;
    bool found;
    name_for_all(name, "start", device);
    TRY(ki_rates_first_iteration(device, work->type));
    double seconds = ki_clock() - opened_at;
    /* Building happens once a machine, not once a start. */
    if (device->statistics.kernels_built > 0) seconds -= device->statistics.build_seconds;
    double least = seconds;
    TRY(ki_cache_profile_get(&found, &least, device, name));
    figures->start = fmin(seconds, least);
    if (!found || seconds < least) TRY(ki_cache_profile_put(device, name, seconds));
done:
    return status;
}

kiln_status ki_figures_keep_process(struct ki_figures *figures, kiln_device *device, double seconds) {
    char name[NAME];
    name_for_all(name, "process", device);
    figures->process = seconds;
    return ki_cache_profile_put(device, name, seconds);
}
