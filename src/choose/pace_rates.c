/* The probes of pace.c are run here. */
#include <math.h>

#include "choose/pace.h"
#include "choose/stopwatch.h"
#include "core/size.h"

enum { REPEATS = 5 };

/* One launch of the probe's kernel, with its groups and no more. What they found is not added up. */
static kiln_status pace_launch(const struct ki_pace_probe *probe, struct ki_kernel *kernel) {
    const struct ki_chain *chain = &probe->chain;
    struct ki_work work;
    kiln_status status;
    TRY(ki_plan_work(&work, &probe->plan, chain,
                     probe->plan.groups * probe->plan.K * chain->X->cols * ki_type_bytes(chain->X->type)));
    TRY(ki_plan_launch(&probe->plan, chain, kernel, &work.buffer, &work, 0));
done:
    return status;
}

static kiln_status pace_time(struct ki_pace_probe *probe, enum ki_pace_number number) {
    kiln_device *device = probe->X.device;
    struct ki_kernel *kernel;
    kiln_status status;
    const int64_t units = device->properties.compute_units;
    probe->plan = ki_pace_candidate(probe).plan;
    TRY(ki_plan_kernel(&kernel, &probe->plan, &probe->chain));
    if (number == KI_PACE_ISSUE)
        probe->groups = ki_max(probe->plan.groups / units, 1);
    else
        probe->plan.groups = ki_min(probe->plan.groups, units);
    TRY(pace_launch(probe, kernel));
    probe->seconds = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        TRY(kiln_device_sync(device));
        const struct ki_stopwatch start = ki_stopwatch_begin();
        TRY(pace_launch(probe, kernel));
        TRY(kiln_device_sync(device));
        probe->seconds = fmin(probe->seconds, ki_stopwatch_seconds(start, device));
    }
done:
    return status;
}

static kiln_status pace_measure(struct ki_pace_probe *probe, enum ki_pace_number number) {
    kiln_device *device = probe->X.device;
    kiln_matrix *X = NULL, *y = NULL, *w = NULL;
    kiln_status status;
    const kiln_type type = probe->X.type;
    const int64_t cols = probe->X.cols, k = probe->chain.k;
    bool held = false;
    TRY(kiln_matrix_dense(&X, device, type, probe->X.rows, cols, NULL));
    TRY(kiln_matrix_dense(&y, device, type, cols, k, NULL));
    TRY(kiln_matrix_dense(&w, device, type, cols, k, NULL));
    const struct ki_operand operands[] = {{w, true}, {X, false}, {y, false}};
    probe->chain.X = X;
    probe->chain.y = y;
    probe->chain.out = w;
    TRY(ki_operands_hold(device, operands, 3));
    held = true;
    TRY(pace_time(probe, number));
done:
    if (held) ki_operands_release(device, (const struct ki_operand[]){{w, true}, {X, false}, {y, false}}, 3);
    kiln_matrix_free(X);
    kiln_matrix_free(y);
    kiln_matrix_free(w);
    return status;
}

kiln_status ki_rates_pace(struct ki_pace *pace, kiln_device *device, kiln_type type) {
    const struct ki_properties *properties = &device->properties;
    struct ki_pace_probe probes[KI_PACE_NUMBERS];
    kiln_status status;
    *pace = (struct ki_pace){1, 1};
    TRY(ki_find_pace(device));
    if (!properties->is_gpu || properties->group_max < KI_PACE_GROUP || ki_is_hopper(properties))
        return KILN_OK;
    for (int number = 0; number < KI_PACE_NUMBERS; number++) {
        ki_pace_probe(&probes[number], device, type, (enum ki_pace_number)number);
        TRY(pace_measure(&probes[number], (enum ki_pace_number)number));
    }
    *pace = ki_pace_fit(probes);
done:
    return status;
}
