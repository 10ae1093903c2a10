/* A device's figures for the cost model, in the machine's profile. What measures them is in choose/figures_rates.c. */
#include "choose/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/kernels/cache.h"
#include "core/seams.h"

void ki_figures_owner(char owner[KI_FIGURE_OWNER], const kiln_device_info *info) {
    snprintf(owner, KI_FIGURE_OWNER, "%s %s", info->name, info->description);
}

struct figure {
    const char *name;
    size_t offset;           /* in struct ki_figures */
    bool typed;              /* one for f32, one for f64 */
    bool sparse, dense, gpu; /* needed by which work, on which device */
};
#define AT(field) offsetof(struct ki_figures, field)
static const struct figure figures_kept[] = {
    {"start", AT(start), false, true, true, true},
    {"up", AT(up), false, true, true, true},
    {"down", AT(down), false, true, true, true},
    {"bandwidth", AT(read), false, true, true, false},
    {"dense 5", AT(dense[0]), true, false, true, false},
    {"dense 40", AT(dense[1]), true, false, true, false},
    {"dense 32768", AT(dense[2]), true, false, true, false},
    {"row", AT(row), true, true, false, false},
    {"sparse 1024", AT(sparse[0]), true, true, false, false},
    {"sparse 65536", AT(sparse[1]), true, true, false, false},
    {"sparse 262144", AT(sparse[2]), true, true, false, false},
    {"sparse 4194304", AT(sparse[3]), true, true, false, false},
    {"thin 4194304", AT(thin), true, true, false, false},
    {"iteration", AT(iteration), true, true, true, false},
};
#undef AT
enum { KEPT = sizeof figures_kept / sizeof *figures_kept };

static void figure_name(char name[KI_FIGURE_OWNER + 40], const struct figure *figure, kiln_type type,
                        const char *owner) {
    if (figure->typed)
        snprintf(name, KI_FIGURE_OWNER + 40, "%s %s %s", figure->name, ki_type_name(type), owner);
    else
        snprintf(name, KI_FIGURE_OWNER + 40, "%s %s", figure->name, owner);
}

static bool needed(const struct figure *figure, const kiln_work *work, bool host) {
    if (figure->gpu && host) return false;
    return work->format == KILN_CSR ? figure->sparse : figure->dense;
}

kiln_status ki_figures_recall(bool *found, struct ki_figures *figures, kiln_device *device, const char *owner,
                              const kiln_work *work) {
    char name[KI_FIGURE_OWNER + 40];
    const bool host = strncmp(owner, "cpu ", 4) == 0;
    struct ki_figures recalled = {0};
    bool all = true;
    for (int i = 0; i < KEPT && all; i++) {
        if (!needed(&figures_kept[i], work, host)) continue;
        figure_name(name, &figures_kept[i], work->type, owner);
        kiln_status status =
            ki_cache_profile_get(&all, (double *)((char *)&recalled + figures_kept[i].offset), device, name);
        if (status != KILN_OK) return status;
    }
    *found = all;
    if (all) *figures = recalled;
    return KILN_OK;
}

static kiln_status keep(kiln_device *device, const struct ki_figures *figures, const kiln_work *work) {
    char name[KI_FIGURE_OWNER + 40], owner[KI_FIGURE_OWNER];
    kiln_status status = KILN_OK;
    ki_figures_owner(owner, &device->info);
    for (int i = 0; i < KEPT && status == KILN_OK; i++) {
        const double value = *(const double *)((const char *)figures + figures_kept[i].offset);
        if (!needed(&figures_kept[i], work, ki_on_cpu(device)) || value == 0) continue;
        figure_name(name, &figures_kept[i], work->type, owner);
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
    TRY(ki_rates_iteration(&figures->iteration, device, work->type));
    TRY(work->format == KILN_CSR ? ki_rates_sparse(figures, device, work->type)
                                 : ki_rates_dense(figures->dense, device, work->type));
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
    struct ki_figures recalled, measured = {.start = figures->start, .end = figures->end};
    ki_figures_owner(owner, &device->info);
    TRY(ki_figures_recall(&found, &recalled, device, owner, work));
    if (!found) {
        ki_figures_tell(device, told);
        TRY(measure(&measured, device, work));
        TRY(keep(device, &measured, work));
        recalled = measured;
    }
    recalled.end = figures->end;
    *figures = recalled;
done:
    return status;
}

kiln_status ki_figures_keep_start(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                                  double opened_at) {
    char name[KI_FIGURE_OWNER + 40], owner[KI_FIGURE_OWNER];
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

static void end_name(char name[KI_FIGURE_OWNER + 40], const kiln_device_info *info) {
    char owner[KI_FIGURE_OWNER];
    ki_figures_owner(owner, info);
    snprintf(name, KI_FIGURE_OWNER + 40, "end %s", owner);
}

kiln_status ki_figures_recall_end(bool *found, struct ki_figures *figures, kiln_device *device,
                                  const kiln_device_info *owner) {
    char name[KI_FIGURE_OWNER + 40];
    end_name(name, owner);
    return ki_cache_profile_get(found, &figures->end, device, name);
}

kiln_status ki_figures_keep_end(struct ki_figures *figures, kiln_device *device, double seconds) {
    char name[KI_FIGURE_OWNER + 40];
    end_name(name, &device->info);
    figures->end = seconds;
    return ki_cache_profile_put(device, name, seconds);
}
