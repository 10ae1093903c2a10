/* Launches of guttman_block.cl: the pairs of a layout of few dimensions in blocks. */
#include <stdio.h>

#include "core/arguments.h"
#include "core/size.h"
#include "ops/points/guttman.h"
#include "ops/points/guttman_block.cl"
#include "pass/chain.h"
#include "pass/unit.h"

KI_ARGUMENTS(guttman_block);
KI_ARGUMENTS(guttman_block_finish);

enum { GROUP = 128, LANES = 32, DIMENSIONS = 4, COMPONENTS_MOST = 6, SIDE_MOST = 512, SIDE_LEAST = 128 };

/* Rows and columns of a thread, and the groups that a compute unit has registers for beside one another, as
 * measured on an H200: more groups hide more of what memory and row sums take, more pairs a thread have fewer
 * instructions each. */
struct shape {
    int rows, columns, wide, groups;
};

static int components_of(const kiln_guttman *step, bool points) {
    return (int)(points ? 1 : step->U ? 2 * step->Y->cols : step->Y->cols);
}

static struct shape shape_of(const struct ki_guttman *pairs, bool points) {
    const kiln_guttman *step = &pairs->on;
    const int components = components_of(step, points);
    const bool few = components <= 3 && !step->weights;
    struct shape shape;
    if (step->Y->type == KILN_F64)
        shape = few ? (struct shape){4, 2, 2, 4} : (struct shape){2, 2, 2, 3};
    else if (few)
        shape = components < 3 ? (struct shape){8, 4, 4, 3} : (struct shape){8, 2, 2, 4};
    else
        shape = (struct shape){4, 4, 4, 3};
    if (step->Y->rows % shape.wide != 0 || pairs->place.row % shape.wide != 0)
        shape.wide = 1; /* rows of D, or of their pairs, begin anywhere */
    return shape;
}

/* On-chip memory of a group: guttman_block.cl's arrays. */
static int64_t local_bytes(const kiln_guttman *step, const struct shape *shape, int components,
                           int64_t side) {
    const int64_t own = side / LANES * components * GROUP, spread = shape->rows * components * (GROUP + 4);
    return (own + spread + side * step->Y->cols) * ki_type_bytes(step->Y->type) +
           GROUP * ki_type_bytes(ki_wide_type(step->Y->device));
}

/* The side of a block. What is done once for each row of a block makes small ones dearer; of large ones there
 * must be enough for all units. */
static int64_t side_of(const kiln_guttman *step, const struct shape *shape, int components) {
    const kiln_device *device = step->Y->device;
    const int64_t room = ki_min(device->properties.local_bytes, 48 << 10);
    const int64_t groups = (int64_t)device->properties.compute_units * shape->groups;
    double least = 0;
    int64_t best = 0;
    for (int64_t side = SIDE_MOST; side >= SIDE_LEAST; side /= 2) {
        const int64_t tiles = ki_ceil_div(step->Y->rows, side), blocks = tiles * (tiles + 1) / 2;
        const double cost = (double)ki_max(blocks, groups) * (double)side * (double)(side + 64);
        if (local_bytes(step, shape, components, side) > room || (best && cost >= least)) continue;
        least = cost;
        best = side;
    }
    return best;
}

bool ki_guttman_in_blocks(const struct ki_guttman *pairs, bool points) {
    const kiln_guttman *step = &pairs->on;
    const int components = components_of(step, points);
    const struct shape shape = shape_of(pairs, points);
    return step->D && step->Y->cols <= DIMENSIONS && components <= COMPONENTS_MOST &&
           step->Y->device->properties.group_max >= GROUP && side_of(step, &shape, components) > 0;
}

kiln_status ki_guttman_blocks(const struct ki_guttman *pairs, bool points) {
    const kiln_guttman *step = &pairs->on;
    kiln_status status;
    kiln_device *device = step->Y->device;
    const int components = components_of(step, points);
    const struct shape shape = shape_of(pairs, points);
    const int64_t from = pairs->place.row, rows = pairs->place.rows, n = step->Y->rows - from;
    const int64_t side = side_of(step, &shape, components), tiles = ki_ceil_div(n, side),
                  down = ki_ceil_div(rows, side);
    const int64_t blocks = down * tiles - down * (down - 1) / 2, walks = side / (GROUP / LANES * shape.rows);
    int64_t groups;
    struct ki_buffer space;
    struct ki_kernel *walk, *finish;
    char most[40] = "";
    const char *option = device->properties.registers_option;
    const int64_t registers = ki_unit_of(device).registers / (shape.groups * GROUP) / 8 * 8;
    if (option) snprintf(most, sizeof most, " %s%d", option, (int)registers);
    const char *common =
        KI_DEFINES("-DSIDE=%d -DBS=%d -DROWS=%d -DP=%d -DCOMPONENTS=%d -DOF_R=%d%s%s", (int)side, GROUP,
                   shape.rows, (int)step->Y->cols, components, points ? 1 : (int)step->Y->cols,
                   step->U && !points ? " -DWITH_U" : "", points ? " -DPOINTS" : "");
    const char *defines = KI_DEFINES("-DPAIRS %s -DCOLUMNS=%d -DW=%d%s%s", common, shape.columns, shape.wide,
                                     step->weights ? " -DWEIGHTS" : "", most);
    TRY(ki_kernel_get(&walk, device, "guttman_block", "guttman_block", step->Y->type, defines));
    TRY(ki_kernel_get(&finish, device, "guttman_block", "guttman_block_finish", step->Y->type,
                      KI_DEFINES("-DFINISH %s", common)));
    TRY(ki_kernel_resident(device, &groups, walk, GROUP));
    const int64_t each = ki_ceil_div(blocks * walks, ki_min(groups, blocks));
    groups = ki_ceil_div(blocks * walks, each);
    /* The groups' sums, and behind them, where any device lets a piece of a buffer begin, the points'. */
    const int64_t sums =
        ki_ceil_div(groups * KI_GUTTMAN_SUMS * ki_type_bytes(ki_wide_type(device)), 512) * 512;
    TRY(ki_device_scratch(device, &space,
                          sums + (2 * tiles + 1) * components * n * ki_type_bytes(step->Y->type)));
    struct ki_buffer part = space;
    part.offset += sums;
    TRY(ki_kernel_launch(device, walk, groups, GROUP,
                         KI_PACK(guttman_block, step->Y, .part = &part, .partial = &space, .Y = step->Y,
                                 .D = step->D, .weights = step->weights, .n = n, .rows = rows,
                                 .line = step->Y->rows, .from = from, .each = each)));
    TRY(ki_kernel_launch(
        device, finish,
        ki_min(ki_ceil_div(n * components, GROUP), (int64_t)device->properties.compute_units * 32), GROUP,
        KI_PACK(guttman_block_finish, step->Y, .R = points ? step->points : step->R, .U = step->U,
                .sums = points ? NULL : step->sums, .part = &part, .partial = &space, .n = n, .rows = rows,
                .from = from, .each = each, .groups = (int32_t)groups)));
done:
    return status;
}
