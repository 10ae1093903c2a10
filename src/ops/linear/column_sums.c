/* Sums over the columns of a dense X: CPU body or two launches, on each member of a group. */
#include "core/arguments.h"
#include "core/narrow/narrow.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "ops/linear/column_sums.cl"
#include "ops/linear/scales.h"
#include "pass/dense/variants.h"
#include "pass/group.h"

KI_ARGUMENTS(column_sums);
KI_ARGUMENTS(column_sums_finish);

enum { GROUP = 256, KINDS = 3, FINISH_GROUP = 128, FINISH_WIDTH = 16, ROWS_LEAST = 16 };

static const char FINISH[] = "-DFINISH";

static int64_t group_of(const kiln_matrix *X) {
    return ki_min(GROUP, X->device->properties.group_max);
}

#define SUMS_DEFINES(X)                                                                                      \
    KI_DEFINES("-DSUMS -DBS=%d -DW=%d%s", (int)group_of(X), ki_load_width(X), ki_element_define(X))

void ki_column_sums_programs(struct ki_programs *programs, const kiln_matrix *X) {
    ki_programs_add(programs, "column_sums", "column_sums", X->type, SUMS_DEFINES(X));
    ki_programs_add(programs, "column_sums", "column_sums_finish", X->type, FINISH);
}

static kiln_status run_gpu(const struct ki_column_sums *sums) {
    kiln_status status;
    const kiln_matrix *X = sums->X;
    kiln_device *device = X->device;
    const int64_t group = group_of(X), width = ki_load_width(X);
    const int64_t all = ki_ceil_div(X->cols, width), blocks = ki_ceil_div(all, group),
                  pieces = ki_ceil_div(all, blocks), slots = group / pieces;
    struct ki_kernel *kernel;
    struct ki_buffer partial;
    int64_t resident, bytes;
    TRY(ki_kernel_get(&kernel, device, "column_sums", "column_sums", X->type, SUMS_DEFINES(X)));
    TRY(ki_kernel_resident(device, &resident, kernel, group));
    const int64_t shares = ki_max(ki_min(resident / blocks, ki_ceil_div(X->rows, slots * ROWS_LEAST)), 1);
    if (!ki_mul3(shares * KINDS, X->cols, ki_type_bytes(ki_wide_type(device)), &bytes))
        return ki_fail_nomem(SIZE_MAX, "the columns' sums");
    TRY(ki_device_scratch(device, &partial, bytes));
    TRY(ki_kernel_launch(device, kernel, shares * blocks, group,
                         KI_PACK(column_sums, X, .partial = &partial, .X = X, .v = sums->v, .c = sums->c,
                                 .y = sums->y, .d = sums->d, .rows = X->rows, .n = (int32_t)X->cols,
                                 .pieces = (int32_t)pieces, .blocks = (int32_t)blocks)));
    TRY(ki_kernel_run(device, "column_sums", "column_sums_finish", X->type, FINISH,
                      ki_ceil_div(KINDS * X->cols, FINISH_WIDTH), FINISH_GROUP,
                      KI_PACK(column_sums_finish, X, .square = sums->square, .sum = sums->sum,
                              .right = sums->right, .partial = &partial, .n = (int32_t)X->cols,
                              .shares = (int32_t)shares)));
done:
    return status;
}

static kiln_status run_here(const void *of) {
    const struct ki_column_sums *sums = of;
    return ki_on_cpu(sums->X->device) ? ki_bodies(sums->X)->column_sums(sums) : run_gpu(sums);
}

static const struct ki_rule rules[] = {
    {offsetof(struct ki_column_sums, v), KI_READS, {KI_ROW}},
    {offsetof(struct ki_column_sums, y), KI_READS, {KI_ROW}},
    {offsetof(struct ki_column_sums, c), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_column_sums, square), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_column_sums, sum), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_column_sums, right), KI_WRITES, {KI_SUM}},
};
static const struct ki_rules table = KI_RULES(struct ki_column_sums, X, 0, rules);

static kiln_status run(const void *of) {
    const kiln_matrix *X = ((const struct ki_column_sums *)of)->X;
    return ki_run_single(&(struct ki_single){.rules = &table,
                                             .whole = of,
                                             .narrow = true,
                                             .walked = KINDS * X->cols * ki_type_bytes(X->type),
                                             .run = run_here});
}

bool ki_column_sums_apply(const kiln_matrix *X) {
    return X->format == KILN_DENSE && X->cols > 0 && X->rows > 0;
}

kiln_status ki_column_sums(const struct ki_column_sums *sums) {
    const kiln_matrix *X = sums->X;
    if (X->device->lost) return kiln_device_sync(X->device);
    if (!ki_is_split(X)) return run(sums);
    return ki_share(&(struct ki_shared){.rules = &table, .whole = sums, .narrow = true, .run = run});
}
