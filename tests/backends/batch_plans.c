/* What the launch model says of the sums of a batch on an H200 that is not here, for fit_batch.py: it reads lines and answers on stdout.
 *   shape COUNT LENGTH f32|f64         a line a plan, "WAY VS load parts together groups seconds chosen", then "."
 *   set I VALUE                        the constant of ops/batch/batch.h that is the I-th in `constants`
 *   constants                          a line a constant, "NAME VALUE", then "." */
#include <stdio.h>
#include <string.h>

#include "ops/batch/batch.h"

static const struct ki_properties h200 = {.is_gpu = true,
                                          .compute_units = 132,
                                          .warp = 32,
                                          .shuffles = true,
                                          .group_max = 1024,
                                          .bandwidth = 4.814e12};

#define NAME(name, value) #name,
static const char *const names[] = {KI_BATCH_CONSTANTS(NAME)};
enum { NAMES = sizeof names / sizeof *names };
_Static_assert(NAMES * sizeof(double) == sizeof(struct ki_batch_constants), "a name for each constant");

static union {
    struct ki_batch_constants constants;
    double values[NAMES];
} now;

static void list_plans(const kiln_device *device, kiln_type type, long long count, long long length) {
    const kiln_batch batch = {.count = count,
                              .length = length,
                              .stride = length,
                              .step = 1,
                              .elements = count * length,
                              .longest = length};
    struct ki_batch_plan plans[KI_BATCH_PLANS];
    const int found = ki_batch_plans(plans, device, &batch, type);
    for (int i = 0; i < found; i++)
        printf("%d %d %d %lld %lld %lld %.9g %d\n", (int)plans[i].way, plans[i].lanes, plans[i].wide,
               (long long)plans[i].parts, (long long)plans[i].together, (long long)plans[i].groups,
               plans[i].seconds, i == 0);
}

static int answer(const kiln_device *device, const char *line) {
    char type[8];
    long long count, length;
    int at;
    double value;
    if (sscanf(line, "set %d %lf", &at, &value) == 2 && at >= 0 && at < NAMES) {
        now.values[at] = value;
        return 0;
    }
    if (sscanf(line, "shape %lld %lld %7s", &count, &length, type) == 3 && count > 0 && length > 0) {
        list_plans(device, strcmp(type, "f64") == 0 ? KILN_F64 : KILN_F32, count, length);
    } else if (strncmp(line, "constants", 9) == 0) {
        for (int i = 0; i < NAMES; i++) printf("%s %.9g\n", names[i], now.values[i]);
    } else {
        return 1;
    }
    puts(".");
    return fflush(stdout) != 0;
}

int main(void) {
    char line[256];
    const kiln_device device = {.properties = h200};
    int status = 0;
    now.constants = *ki_batch_constants;
    ki_batch_constants = &now.constants;
    while (status == 0 && fgets(line, sizeof line, stdin)) status = answer(&device, line);
    if (status) fprintf(stderr, "kiln_batch_plans: not understood: %s", line);
    return status;
}
