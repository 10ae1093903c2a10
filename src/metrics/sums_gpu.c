/* The sums over all rows where these lie on a GPU: only what groups leave comes to the host, which joins it
 * as it does the parts of its own rows, in their order. */
#include "core/arguments.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "metrics/metrics.h"
#include "metrics/metric_sums.cl"

KI_ARGUMENTS(metric_classes);
KI_ARGUMENTS(metric_table);
KI_ARGUMENTS(metric_numbers);
KI_ARGUMENTS(metric_deviances);

enum {
    GROUP = 128,
    GROUPS_A_UNIT = 16,
    CELLS_MOST = 1 << 18,
    SPACE_SUMS = 0,
    SPACE_TABLES = 1,
    SPACE_VALUES = 2
};

static const char file[] = "metric_sums";

#define METRIC_ROWS(of, from)                                                                                \
    .sums = &(from)->sums, .eta = (of)->eta.matrix, .y = (of)->y.matrix, .weights = (of)->weights.matrix,    \
    .rows = (of)->rows, .singles = singles_of(of), .columns = (int32_t)(of)->columns, .begin = (of)->first,  \
    .width = (of)->wide, .kind = (int)(of)->loss.kind

static int32_t singles_of(const struct ki_measured *of) {
    return (of->eta.single ? METRIC_ETA : 0) | (of->y.single ? METRIC_Y : 0) |
           (of->weights.single ? METRIC_WEIGHTS : 0) | (of->means.single ? METRIC_MEANS : 0);
}

/* Holds what the groups leave: `fields` numbers each, in host memory once they have been fetched. */
struct left {
    struct ki_buffer sums;
    double *numbers;
    int64_t groups, fields;
};

/* `groups` is at most what the device has work for. */
static kiln_status begin(struct left *left, const struct ki_measured *of, int64_t groups, int64_t fields) {
    const int64_t bytes = groups * fields * (int64_t)sizeof(double);
    *left = (struct left){.groups = groups, .fields = fields, .numbers = ki_alloc((size_t)bytes)};
    if (!left->numbers) return ki_fail_nomem((size_t)bytes, "metrics");
    return ki_device_space(of->on, SPACE_SUMS, &left->sums, bytes);
}

static kiln_status fetch(struct left *left, const struct ki_measured *of) {
    return ki_device_download(of->on, left->numbers, &left->sums, 0,
                              left->groups * left->fields * (int64_t)sizeof(double));
}

static double field(const struct left *left, int64_t group, int field) {
    return left->numbers[group * left->fields + field];
}

static void add_up(struct ki_sum *to, const struct left *left, int of) {
    for (int64_t g = 0; g < left->groups; g++) ki_sum_add(to, field(left, g, of));
}

static bool any(const struct left *left, int of) {
    struct ki_sum count = {0, 0};
    add_up(&count, left, of);
    return ki_sum_of(&count) != 0;
}

static int64_t groups_for(const struct ki_measured *of, int64_t rows_a_group) {
    const int64_t most = (int64_t)of->on->properties.compute_units * GROUPS_A_UNIT;
    return ki_max(1, ki_min(most, ki_ceil_div(of->rows, rows_a_group)));
}

/* -------------------------------------------------------------------------------------------- classes */

static kiln_status upload_classes(struct ki_buffer *values, const struct ki_measured *of) {
    const int64_t bytes = of->classes * (int64_t)sizeof(double);
    const kiln_status status = ki_device_space(of->on, SPACE_VALUES, values, bytes);
    return status == KILN_OK ? ki_device_upload(of->on, values, 0, of->options.classes, bytes) : status;
}

static kiln_status take_classes(struct ki_metric_sums *sums, const struct ki_measured *of) {
    const int64_t cells = (of->classes + 1) * of->classes,
                  groups = ki_max(1, ki_min(groups_for(of, GROUP), CELLS_MOST / cells)),
                  bytes = cells * (int64_t)sizeof(double);
    const double least = of->options.least_probability;
    const char *defines = KI_DEFINES("-DCLASSES -DGROUP=%d", GROUP);
    struct ki_buffer tables, values;
    struct left left = {.numbers = NULL};
    double *all = ki_alloc((size_t)bytes);
    kiln_status status = all ? KILN_OK : ki_fail_nomem((size_t)bytes, "metrics");
    TRY(status);
    TRY(begin(&left, of, groups, METRIC_CLASS_SUMS));
    TRY(ki_device_space(of->on, SPACE_TABLES, &tables, groups * bytes));
    if (of->options.classes) TRY(upload_classes(&values, of));
    TRY(ki_kernel_run(
        of->on, file, "metric_classes", KILN_F64, KI_DEFINES("-DCLASSES -DGROUP=%d", GROUP), groups, GROUP,
        KI_PACK(metric_classes, of->eta.matrix, METRIC_ROWS(of, &left), .tables = &tables,
                .values = of->options.classes ? &values : NULL, .classes = (int32_t)of->classes,
                .probable = ki_has_probabilities(of), .most = least > 0 ? -log(least) : INFINITY)));
    TRY(ki_kernel_run(
        of->on, file, "metric_table", KILN_F64, defines, ki_min(ki_ceil_div(cells, GROUP), groups), GROUP,
        KI_PACK(metric_table, of->eta.matrix, .tables = &tables, .size = cells, .groups = (int32_t)groups)));
    TRY(fetch(&left, of));
    TRY(ki_device_download(of->on, all, &tables, 0, bytes));
    add_up(&sums->rows.weight, &left, 0);
    add_up(&sums->rows.lost, &left, 1);
    add_up(&sums->rows.brier, &left, 2);
    add_up(&sums->rows.right, &left, 3);
    sums->rows.wrong = any(&left, 4);
    sums->confusion = all;
    all = NULL;
done:
    ki_free(left.numbers);
    ki_free(all);
    return status;
}

/* -------------------------------------------------------------------------------------------- numbers */

static kiln_status take_numbers(struct ki_metric_sums *sums, const struct ki_measured *of) {
    const int64_t shares = ki_max(1, groups_for(of, 8 * GROUP) / of->columns);
    struct left left = {.numbers = NULL};
    struct ki_number_sums *numbers = ki_calloc((size_t)of->columns * sizeof *numbers);
    kiln_status status = numbers ? KILN_OK : ki_fail_nomem((size_t)of->columns * sizeof *numbers, "metrics");
    TRY(status);
    TRY(begin(&left, of, shares * of->columns, METRIC_NUMBER_SUMS));
    TRY(ki_kernel_run(of->on, file, "metric_numbers", KILN_F64, KI_DEFINES("-DNUMBERS -DGROUP=%d", GROUP),
                      left.groups, GROUP,
                      KI_PACK(metric_numbers, of->eta.matrix, METRIC_ROWS(of, &left),
                              .means = of->means.matrix, .link = (int)of->loss.link,
                              .power = of->loss.link_power)));
    TRY(fetch(&left, of));
    for (int64_t g = 0; g < left.groups; g++) {
        struct ki_number_sums *to = &numbers[g / shares];
        const struct ki_variation own = {field(&left, g, 0), field(&left, g, 1), field(&left, g, 2),
                                         field(&left, g, 3)};
        ki_variation_join(&to->y, &own);
        ki_sum_add(&to->square, field(&left, g, 4));
        ki_sum_add(&to->absolute, field(&left, g, 5));
        ki_sum_add(&to->error, field(&left, g, 6));
    }
    sums->rows.wrong |= any(&left, 7);
    sums->numbers = numbers;
    numbers = NULL;
done:
    ki_free(left.numbers);
    ki_free(numbers);
    return status;
}

/* level: the mean of all rows under the identity, or NULL: that of each row's eta. */
static kiln_status take_deviances(struct ki_row_sums *sums, const struct ki_measured *of,
                                  const double *level) {
    const kiln_range range = kiln_family_range(of->loss.family, of->loss.parameter);
    struct left left = {.numbers = NULL};
    kiln_status status;
    TRY(begin(&left, of, groups_for(of, GROUP), METRIC_DEVIANCE_SUMS));
    struct metric_deviances_arguments arguments = {
        METRIC_ROWS(of, &left),       .means = of->means.matrix,      .link = (int)of->loss.link,
        .power = of->loss.link_power, .family = (int)of->loss.family, .parameter = of->loss.parameter,
        .least = range.least,         .largest = range.most,          .open = range.open};
    if (level) {
        arguments.eta = arguments.means = NULL;
        arguments.level = *level;
        arguments.link = (int)KILN_LINK_IDENTITY;
    }
    struct ki_arg list[metric_deviances_count];
    TRY(ki_kernel_run(of->on, file, "metric_deviances", KILN_F64, KI_DEFINES("-DDEVIANCES -DGROUP=%d", GROUP),
                      left.groups, GROUP, metric_deviances_pack(list, of->eta.matrix, &arguments),
                      metric_deviances_count));
    TRY(fetch(&left, of));
    add_up(&sums->weight, &left, 0);
    add_up(&sums->deviance, &left, 1);
    add_up(&sums->brier, &left, 2);
    add_up(&sums->right, &left, 3);
    sums->wrong |= any(&left, 4);
    sums->outcomes = !any(&left, 5);
done:
    ki_free(left.numbers);
    return status;
}

/* ------------------------------------------------------------------------------------------------ all */

kiln_status ki_sums_take_gpu(struct ki_metric_sums *sums, const struct ki_measured *of) {
    kiln_status status = KILN_OK;
    *sums = (struct ki_metric_sums){.rows.outcomes = true};
    if (of->classes) return take_classes(sums, of);
    TRY(take_numbers(sums, of));
    if (of->loss.kind == KILN_LOSS_GLM) TRY(take_deviances(&sums->rows, of, NULL));
done:
    return status;
}

kiln_status ki_deviance_at_gpu(double *deviance, const struct ki_measured *of, double mean) {
    struct ki_row_sums sums = {.outcomes = true};
    const kiln_status status = take_deviances(&sums, of, &mean);
    if (status == KILN_OK) *deviance = ki_sum_of(&sums.deviance);
    return status;
}
