/* This file says what the cost model says of dense passes on a GPU that is not here, for fit_dense.py: it
 * reads lines and answers on stdout.
 *   gpu cuda|opencl                    an H200 as CUDA (at first) or NVIDIA's OpenCL describes it
 *   shape ROWS COLS f32|f64 K          a line a plan, "VARIANT VS BS load R K C stages lag groups seconds
 *                                      chosen limit", then "."
 * and the lines of constants.h about those of hopper.h. */
#include "constants.h"
#include "h200.h"
#include "core/memory.h"
#include "pass/dense/hopper.h"
#include "pass/launch.h"

static const struct ki_properties by_cuda = {H200_BY_CUDA, .bandwidth = 4.814e12};
static const struct ki_properties by_opencl = {H200_BY_OPENCL};

#define NAME(name, ...) #name,
#define F64(name, ...) "f64." #name,
#define F32(name, ...) "f32." #name,
#define TEAM_F64(name, ...) "team_f64." #name,
#define TEAM_F32(name, ...) "team_f32." #name,
#define TEAM_WHOLE(name, ...) "team_f32_whole." #name,
/* In the order of struct ki_dense_constants, which holds nothing but numbers. */
/* clang-format off */
static const char *const names[] = {
    KI_DENSE_CONSTANTS(NAME) KI_RING_CONSTANTS(NAME) KI_TEAM_CONSTANTS(NAME)
    KI_TILE_CONSTANTS(F64) KI_TILE_CONSTANTS(F32)
    KI_TILE_TEAM_CONSTANTS(TEAM_F64) KI_TILE_TEAM_CONSTANTS(TEAM_F32) KI_TILE_TEAM_CONSTANTS(TEAM_WHOLE)};
/* clang-format on */
enum { NAMES = sizeof names / sizeof *names };
_Static_assert(NAMES * sizeof(double) == sizeof(struct ki_dense_constants), "a name for each constant");

static union {
    struct ki_dense_constants constants;
    double values[NAMES];
} now;

static int list_plans(kiln_device *device, kiln_type type, long long rows, long long cols, int k) {
    kiln_matrix X = {
        .device = device, .type = type, .format = KILN_DENSE, .rows = rows, .cols = cols, .nnz = rows * cols};
    const struct ki_chain chain = {.kind = KI_CHAIN_FUSED, .map = KI_ROW_SCALE, .alpha = 1, .k = k, .X = &X};
    struct ki_candidate *list = NULL;
    int count = 0, chosen = -1;
    if (ki_chain_candidates(&list, &count, &chosen, &chain) != KILN_OK) return 1;
    for (int i = 0; i < count; i++) {
        const struct ki_plan *p = &list[i].plan;
        printf("%s %d %d %d %d %d %d %d %d %lld %.9g %d %s\n", p->variant->name, p->VS, p->BS, p->Q * p->W,
               p->R, p->K, p->C, p->stages, p->lag, (long long)p->groups, list[i].seconds, i == chosen,
               list[i].limit);
    }
    kiln_free(list);
    return 0;
}

static int answer(kiln_device *device, const char *line) {
    char word[16], type[8];
    long long rows, cols;
    int k;
    if (sscanf(line, "gpu %15s", word) == 1) {
        device->properties = strcmp(word, "opencl") == 0 ? by_opencl : by_cuda;
        return 0;
    }
    if (sscanf(line, "shape %lld %lld %7s %d", &rows, &cols, type, &k) != 4) return 1;
    if (list_plans(device, type_named(type), rows, cols, k)) return 1;
    puts(".");
    return 0;
}

int main(void) {
    kiln_device *device = NULL;
    if (kiln_device_open(&device, "cpu", NULL) != KILN_OK) return 1;
    const struct ki_properties own = device->properties;
    const struct constants constants = {names, now.values, NAMES};
    now.constants = *ki_dense_constants;
    ki_dense_constants = &now.constants;
    device->properties = by_cuda;
    const int status = answer_lines("kiln_dense_plans", &constants, answer, device);
    device->properties = own;
    kiln_device_close(device);
    return status;
}
