/* A device's figures for the cost model, in the machine's profile. What measures them is in choose/figures_rates.c. */
#include "choose/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/kernels/cache.h"
#include "core/seams.h"
#include "choose/trial.h"

void ki_figures_owner(char owner[KI_FIGURE_OWNER], const kiln_device_info *info) {
    snprintf(owner, KI_FIGURE_OWNER, "%s %s", info->name, info->description);
}

/* Which work needs a figure. */
enum { DENSE = 1, SPARSE = 2, TRIAL = 4, ALL = 7 };

struct figure {
    const char *name;
    size_t offset; /* in struct ki_figures */
    int works;
    bool typed, gpu; /* one for f32, one for f64; of GPUs only */
};
#define AT(field) offsetof(struct ki_figures, field)
static const struct figure figures_kept[] = {
    {"start", AT(start), ALL, false, true},
    {"up", AT(up), ALL, false, true},
    {"down", AT(down), ALL, false, true},
    {"bandwidth", AT(read), ALL, false, false},
    {"dense 5", AT(dense[0]), DENSE, true, false},
    {"dense 40", AT(dense[1]), DENSE, true, false},
    {"dense 32768", AT(dense[2]), DENSE, true, false},
    {"row", AT(row), SPARSE, true, false},
    {"sparse 1024", AT(sparse[0]), SPARSE, true, false},
    {"sparse 65536", AT(sparse[1]), SPARSE, true, false},
    {"sparse 262144", AT(sparse[2]), SPARSE, true, false},
    {"sparse 4194304", AT(sparse[3]), SPARSE, true, false},
    {"thin 4194304", AT(thin), SPARSE, true, false},
    {"iteration", AT(iteration), DENSE | SPARSE, true, false},
    {"units 0", AT(trial.units[0]), TRIAL, true, false},
    {"units 1", AT(trial.units[1]), TRIAL, true, false},
    {"units 2", AT(trial.units[2]), TRIAL, true, false},
    {"prepare 0", AT(trial.prepare[0]), TRIAL, true, false},
    {"prepare 1", AT(trial.prepare[1]), TRIAL, true, false},
    {"prepare 2", AT(trial.prepare[2]), TRIAL, true, false},
    {"iteration 0", AT(trial.iteration[0]), TRIAL, true, false},
    {"iteration 1", AT(trial.iteration[1]), TRIAL, true, false},
    {"iteration 2", AT(trial.iteration[2]), TRIAL, true, false},
};
#undef AT
enum { KEPT = sizeof figures_kept / sizeof *figures_kept, NAME = KI_FIGURE_OWNER + 60 };

static void figure_name(char name[NAME], const struct figure *figure, const kiln_work *work,
                        const char *owner) {
    const bool tried = figure->works == TRIAL;
    snprintf(name, NAME, "%s%s%s%s%s %s", tried ? work->trial->name : "", tried ? " " : "", figure->name,
             figure->typed ? " " : "", figure->typed ? ki_type_name(work->type) : "", owner);
}

static bool needed(const struct figure *figure, const kiln_work *work, bool host) {
    if (figure->gpu && host) return false;
    return figure->works & (work->trial ? TRIAL : work->format == KILN_CSR ? SPARSE : DENSE);
}

kiln_status ki_figures_recall(bool *found, struct ki_figures *figures, kiln_device *device, const char *owner,
                              const kiln_work *work) {
    char name[NAME];
    const bool host = strncmp(owner, "cpu ", 4) == 0;
    struct ki_figures recalled = {0};
    bool all = true;
    for (int i = 0; i < KEPT && all; i++) {
        if (!needed(&figures_kept[i], work, host)) continue;
        figure_name(name, &figures_kept[i], work, owner);
        kiln_status status =
            ki_cache_profile_get(&all, (double *)((char *)&recalled + figures_kept[i].offset), device, name);
        if (status != KILN_OK) return status;
    }
    *found = all;
    if (all) *figures = recalled;
    return KILN_OK;
}

static kiln_status keep(kiln_device *device, const struct ki_figures *figures, const kiln_work *work) {
    char name[NAME], owner[KI_FIGURE_OWNER];
    kiln_status status = KILN_OK;
    ki_figures_owner(owner, &device->info);
    for (int i = 0; i < KEPT && status == KILN_OK; i++) {
        const double value = *(const double *)((const char *)figures + figures_kept[i].offset);
        if (!needed(&figures_kept[i], work, ki_on_cpu(device)) || value == 0) continue;
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

static kiln_status measure(struct ki_figures *figures, kiln_device *device, const kiln_work *work) {
    const kiln_device_options options = device->options;
    kiln_status status;
    device->options.message = NULL; /* what the samples need is nobody's concern */
    TRY(kiln_device_bandwidth(&figures->read, device, 0));
    if (work->trial) {
        TRY(ki_trial_measure(&figures->trial, device, work->type, work->trial));
    } else {
        TRY(ki_rates_iteration(&figures->iteration, device, work->type));
        TRY(work->format == KILN_CSR ? ki_rates_sparse(figures, device, work->type)
                                     : ki_rates_dense(figures->dense, device, work->type));
    }
    if (!ki_on_cpu(device)) TRY(ki_rates_link(&figures->up, &figures->down, device));
done:
    device->options = options;
    return status;
}

kiln_status ki_figures_measure(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                               bool *told) {
    kiln_status status;
    char owner[KI_FIGURE_OWNER];
    bool found;
    struct ki_figures recalled, measured = {.start = figures->start, .process = figures->process};
    ki_figures_owner(owner, &device->info);
    TRY(ki_figures_recall(&found, &recalled, device, owner, work));
    if (!found) {
        ki_figures_tell(device, told);
        TRY(measure(&measured, device, work));
        TRY(keep(device, &measured, work));
        recalled = measured;
    }
    recalled.process = figures->process;
    *figures = recalled;
done:
    return status;
}

kiln_status ki_figures_keep_start(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                                  double opened_at) {
    char name[NAME], owner[KI_FIGURE_OWNER];
    kiln_status status;
    bool found;
    ki_figures_owner(owner, &device->info);
    snprintf(name, sizeof name, "start %s", owner);
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

static void process_name(char name[NAME], const kiln_device_info *info) {
    char owner[KI_FIGURE_OWNER];
    ki_figures_owner(owner, info);
    snprintf(name, NAME, "process %s", owner);
}

kiln_status ki_figures_recall_process(bool *found, struct ki_figures *figures, kiln_device *device,
                                      const kiln_device_info *owner) {
    char name[NAME];
    process_name(name, owner);
    return ki_cache_profile_get(found, &figures->process, device, name);
}

kiln_status ki_figures_keep_process(struct ki_figures *figures, kiln_device *device, double seconds) {
    char name[NAME];
    process_name(name, &device->info);
    figures->process = seconds;
    return ki_cache_profile_put(device, name, seconds);
}
