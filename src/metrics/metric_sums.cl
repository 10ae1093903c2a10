/* GPU body of the sums over all rows (metrics/sums.c): each group adds up its tiles of rows, in double and in
 * a fixed order, and leaves FIELDS sums, which the host joins as it does those of its own parts. Rows are of
 * either type: `singles` has a bit for each operand that is f32. */

#define ARGUMENTS_metric_rows(FIRST, NEXT)                                                                   \
    FIRST(SPACE, wide, sums)                                                                                 \
    NEXT(IN, wide, eta)                                                                                      \
    NEXT(IN, wide, y)                                                                                        \
    NEXT(IN, wide, weights)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, singles)                                                                                \
    NEXT(VALUE, int, columns)                                                                                \
    NEXT(VALUE, long, begin)                                                                                 \
    NEXT(VALUE, long, width)                                                                                 \
    NEXT(VALUE, int, kind)

#define ARGUMENTS_metric_classes(FIRST, NEXT)                                                                \
    ARGUMENTS_metric_rows(FIRST, NEXT)                                                                       \
    NEXT(SPACE, wide, tables)                                                                                \
    NEXT(TABLE, wide, values)                                                                                \
    NEXT(VALUE, int, classes)                                                                                \
    NEXT(VALUE, int, probable)                                                                               \
    NEXT(VALUE, wide, most)

#define ARGUMENTS_metric_table(FIRST, NEXT)                                                                  \
    FIRST(SPACE, wide, tables)                                                                               \
    NEXT(VALUE, long, size)                                                                                  \
    NEXT(VALUE, int, groups)

#define ARGUMENTS_metric_numbers(FIRST, NEXT)                                                                \
    ARGUMENTS_metric_rows(FIRST, NEXT)                                                                       \
    NEXT(IN, wide, means)                                                                                    \
    NEXT(VALUE, int, link)                                                                                   \
    NEXT(VALUE, wide, power)

#define ARGUMENTS_metric_deviances(FIRST, NEXT)                                                              \
    ARGUMENTS_metric_numbers(FIRST, NEXT)                                                                    \
    NEXT(VALUE, int, family)                                                                                 \
    NEXT(VALUE, wide, parameter)                                                                             \
    NEXT(VALUE, wide, least)                                                                                 \
    NEXT(VALUE, wide, largest)                                                                               \
    NEXT(VALUE, int, open)                                                                                   \
    NEXT(VALUE, wide, level)

/* The operands' bits, and what a group leaves of each kind. */
#define METRIC_ETA 1
#define METRIC_Y 2
#define METRIC_WEIGHTS 4
#define METRIC_MEANS 8
#define METRIC_CLASS_SUMS 5    /* weight, lost, brier, right, and of rows whose weight is none */
#define METRIC_DEVIANCE_SUMS 6 /* weight, deviance, brier, right, such rows, those with y not 0 or 1 */
#define METRIC_NUMBER_SUMS 8   /* weight, level, above, spread, square, absolute, error, and such rows */

#ifndef KI_HOST
#include "dialect/joins.h"
#include "dialect/losses.h"
#include "dialect/metric_rows.h"

DEVICE_FN wide number_at(__global const wide *values, int single, long at) {
    return single ? (wide)((__global const float *)values)[at] : values[at];
}

/* Eta has `width` columns, of which those from `begin` on are measured. */
#define ETA_AT(row, c) number_at(eta, singles & METRIC_ETA, (row) * width + begin + (c))
#define Y_AT(e) number_at(y, singles & METRIC_Y, e)
#define WEIGHT_AT(row) (weights ? number_at(weights, singles & METRIC_WEIGHTS, row) : (wide)1)

/* *to = what all threads of the group have together. */
DEVICE_FN void leave(__global wide *to, wide sum, LOCAL_PTR wide *shared) {
    const int lane = (int)get_local_id(0);
    shared[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach >= 1; reach /= 2) {
        if (lane < reach) shared[lane] += shared[lane + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) *to = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
}

#ifdef CLASSES
/* The row's class, -1 where it is unknown. */
DEVICE_FN int class_of(wide y, __global const wide *values, int classes) {
    int at = 0;
    if (!values) {
        at = y >= 0 && y < (wide)classes ? (int)y : -1;
        return (wide)at == y ? at : -1;
    }
    for (int left = classes, half_of; left > 1; left -= half_of) {
        half_of = left / 2;
        at += values[at + half_of] <= y ? half_of : 0;
    }
    return values[at] == y ? at : -1;
}

/* The group's own table is added to by the first thread of each cell, in the threads' order: no sum is
 * atomic. */
__kernel void metric_classes(PARAMETERS(metric_classes)) {
    LOCAL wide shared[GROUP];
    LOCAL int cells[GROUP];
    const int lane = (int)get_local_id(0), size = (classes + 1) * classes;
    const long group = (long)get_group_id(0), tiles = (rows + GROUP - 1) / GROUP;
    __global wide *table = tables + group * size, *own = sums + group * METRIC_CLASS_SUMS;
    struct ki_sum weight = {0, 0}, lost = {0, 0}, brier = {0, 0}, right = {0, 0};
    wide wrong = 0;
    for (int c = lane; c < size; c += GROUP) table[c] = 0;
    for (long tile = group; tile < tiles; tile += (long)get_num_groups(0)) {
        const long row = tile * GROUP + lane;
        const wide s = row < rows ? WEIGHT_AT(row) : (wide)0;
        int cell = -1;
        wrong += s >= 0 ? 0 : 1;
        if (s != 0) {
            const int class_ = class_of(Y_AT(row), values, classes);
            const wide first = ETA_AT(row, 0);
            wide largest = first, loss = 0, own_above = 0;
            real missed = 0;
            int taken = columns == 1 && first > 0 ? 1 : 0;
            for (int c = 1; c < columns; c++) {
                const wide score = ETA_AT(row, c);
                taken = score > largest ? c : taken;
                largest = taken == c ? score : largest;
            }
            if (probable && columns == 1) loss = lost_of_two(first, class_, &missed);
            if (probable && columns > 1) {
                struct many of = {0, 0, 0};
                for (int c = 0; c < columns; c++) {
                    const wide above = ETA_AT(row, c) - largest;
                    own_above = c == class_ ? above : own_above;
                    many_add(&of, (real)exp(above), c == class_);
                }
                loss = lost_of_many(&of, own_above, class_ >= 0, &missed);
            }
            cell = (class_ < 0 ? classes : class_) * classes + taken;
            ki_sum_add(&weight, s);
            ki_sum_add(&lost, s * (loss > most ? most : loss));
            ki_sum_add(&brier, s * missed);
            if (class_ == taken) ki_sum_add(&right, s);
        }
        cells[lane] = cell;
        shared[lane] = s;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        int begun = cell < 0 ? 1 : 0;
        for (int other = 0; other < lane && !begun; other++) begun = cells[other] == cell;
        if (!begun) {
            wide sum = table[cell];
            for (int other = lane; other < GROUP; other++)
                sum += cells[other] == cell ? shared[other] : (wide)0;
            table[cell] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    leave(own, ki_sum_of(&weight), shared);
    leave(own + 1, ki_sum_of(&lost), shared);
    leave(own + 2, ki_sum_of(&brier), shared);
    leave(own + 3, ki_sum_of(&right), shared);
    leave(own + 4, wrong, shared);
}

/* The first group's table has what all have, in their order. */
__kernel void metric_table(PARAMETERS(metric_table)) {
    FOR_EACH(c, size) {
        wide sum = 0;
        for (int g = 0; g < groups; g++) sum += tables[g * size + c];
        tables[c] = sum;
    }
}
#endif

#ifdef DEVIANCES
/* Without eta the mean is `level` for all rows. */
__kernel void metric_deviances(PARAMETERS(metric_deviances)) {
    LOCAL wide shared[GROUP];
    __global wide *own = sums + (long)get_group_id(0) * METRIC_DEVIANCE_SUMS;
    struct ki_sum weight = {0, 0}, deviance = {0, 0}, brier = {0, 0}, right = {0, 0};
    wide wrong = 0, others = 0;
    for (long row = (long)get_global_id(0); row < rows; row += (long)get_global_size(0)) {
        const wide s = WEIGHT_AT(row), at = Y_AT(row), x = eta ? ETA_AT(row, 0) : level;
        others += at == 0 || at == 1 ? 0 : 1;
        wrong += s >= 0 ? 0 : 1;
        if (s != 0) {
            const wide mean =
                means ? number_at(means, singles & METRIC_MEANS, row) : mean_row(kind, link, power, x);
            const wide loss =
                unit_deviance(family, link, parameter, power, least, largest, open, at, x, mean);
            ki_sum_add(&weight, s);
            ki_sum_add(&deviance, s * loss);
            ki_sum_add(&brier, s * (mean - at) * (mean - at));
            if ((mean > (wide)0.5) == (at > 0)) ki_sum_add(&right, s);
        }
    }
    leave(own, ki_sum_of(&weight), shared);
    leave(own + 1, ki_sum_of(&deviance), shared);
    leave(own + 2, ki_sum_of(&brier), shared);
    leave(own + 3, ki_sum_of(&right), shared);
    leave(own + 4, wrong, shared);
    leave(own + 5, others, shared);
}
#endif

#ifdef NUMBERS
/* Rows that a thread adds up about their own mean: the second look finds them in a cache. */
enum { RUN = 32 };

/* A group takes one target: groups are shares of the rows x targets. */
__kernel void metric_numbers(PARAMETERS(metric_numbers)) {
    LOCAL wide shared[GROUP];
    LOCAL struct ki_variation spreads[GROUP];
    const int lane = (int)get_local_id(0), group = (int)get_group_id(0);
    const int shares = (int)get_num_groups(0) / columns;
    const int target = group / shares, share = group - target * shares;
    const long tile_rows = (long)RUN * GROUP;
    __global wide *own = sums + (long)group * METRIC_NUMBER_SUMS;
    struct ki_sum square = {0, 0}, absolute = {0, 0}, error = {0, 0};
    struct ki_variation all = {0, 0, 0, 0};
    wide wrong = 0;
    for (long tile = share * tile_rows; tile < rows; tile += shares * tile_rows) {
        const long end = rows - tile < tile_rows ? rows : tile + tile_rows;
        struct ki_variation run = {0, 0, 0, 0};
        wide about = 0;
        for (long row = tile + lane; row < end; row += GROUP) {
            const wide s = WEIGHT_AT(row);
            wrong += s >= 0 ? 0 : 1;
            if (s != 0) {
                const long e = row * columns + target;
                const wide number = Y_AT(e);
                const wide off = number - (means ? number_at(means, singles & METRIC_MEANS, e)
                                                 : mean_row(kind, link, power, ETA_AT(row, target)));
                run.level = run.weight == 0 ? number : run.level;
                run.weight += s;
                ki_sum_add(&square, s * off * off);
                ki_sum_add(&absolute, s * fabs(off));
                ki_sum_add(&error, -s * off);
                about += s * (number - run.level);
            }
        }
        run.above = run.weight > 0 ? about / run.weight : (wide)0;
        for (long row = tile + lane; row < end; row += GROUP) {
            const wide s = WEIGHT_AT(row);
            const wide off = s == 0 ? (wide)0 : Y_AT(row * columns + target) - run.level - run.above;
            run.spread += s == 0 ? (wide)0 : s * off * off;
        }
        ki_variation_join(&all, &run);
    }
    spreads[lane] = all;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach >= 1; reach /= 2) {
        if (lane < reach) {
            const struct ki_variation next = spreads[lane + reach];
            ki_variation_join(&all, &next);
            spreads[lane] = all;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) {
        own[0] = all.weight;
        own[1] = all.level;
        own[2] = all.above;
        own[3] = all.spread;
    }
    leave(own + 4, ki_sum_of(&square), shared);
    leave(own + 5, ki_sum_of(&absolute), shared);
    leave(own + 6, ki_sum_of(&error), shared);
    leave(own + 7, wrong, shared);
}
#endif

/* The variants that differ in text, as the tests build them: of f64 alone, which sums are in. */
// build CLASSES GROUP=128
// build DEVIANCES GROUP=128
// build NUMBERS GROUP=128
// pack f64 {CLASSES|DEVIANCES|NUMBERS} GROUP=128
#endif
