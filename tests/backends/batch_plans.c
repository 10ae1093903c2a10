/* This file says what the launch model says of the sums of a batch on an H200 that is not here, for
 * fit_batch.py: it reads lines and answers on stdout.
 *   shape COUNT LENGTH f32|f64         a line a plan, "WAY VS load parts together groups seconds chosen",
 *                                      then "."
 * and the lines of constants.h about those of ops/batch/batch.h. */
#include "constants.h"
#include "h200.h"
#include "ops/batch/batch.h"

static const struct ki_properties h200 = {H200_BY_CUDA, .bandwidth = 4.814e12};

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

static int answer(kiln_device *device, const char *line) {
    char type[8];
    long long count, length;
    if (sscanf(line, "shape %lld %lld %7s", &count, &length, type) != 3 || count < 1 || length < 1) return 1;
    list_plans(device, type_named(type), count, length);
    puts(".");
    return 0;
}

int main(void) {
    kiln_device device = {.properties = h200};
    const struct constants constants = {names, now.values, NAMES};
    now.constants = *ki_batch_constants;
    ki_batch_constants = &now.constants;
    return answer_lines("kiln_batch_plans", &constants, answer, &device);
}
