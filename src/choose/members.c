/* The seconds of a pass on each member of a group, by which X is cut among unlike ones
 * (pass/split_shares.c): what the model of cost says from the figures that each has by itself, as "auto"
 * takes them. */
#include <float.h>
#include <math.h>

#include "choose/figures.h"
#include "derived/panels_cpu.h"
#include "pass/group.h"

static kiln_status seconds_alone(double *seconds, kiln_device *device, const kiln_work *work) {
    struct ki_figures figures = {0};
    bool told = false;
    const kiln_status status = ki_figures_measure(&figures, device, work, &told);
    if (status == KILN_OK)
        *seconds = ki_cost_of(&figures, work, DBL_MAX, ki_on_cpu(device) && !ki_cpu_panels_fit(work)).pass;
    return status;
}

kiln_status ki_member_seconds(double *seconds, const kiln_matrix *X, int member) {
    kiln_device *device = X->device->group->member[member];
    struct ki_group *group = device->group;
    const kiln_device_info info = device->info;
    kiln_work work = {.size = sizeof work,
                      .type = X->type,
                      .format = X->format,
                      .rows = X->rows,
                      .cols = X->cols,
                      .nnz = X->nnz};
    kiln_status status = ki_work_check(&work, &work);
    if (status != KILN_OK) return status;
    if (group) device->info = group->own; /* the first stands for all, but is measured by itself */
    device->group = NULL;
    status = seconds_alone(seconds, device, &work);
    device->group = group;
    device->info = info;
    return status;
}
