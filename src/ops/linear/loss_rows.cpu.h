/* CPU body of kiln_loss_mean and kiln_loss_deviance: rows by themselves, in parts for the threads. */
#include "pass/cpu/judged_rows.h"

/* Elements or rows first ... of all, and zeros behind them. */
static void FN(take_block)(struct FN(judged) * b, real *to, const real *from, int64_t first, int64_t end) {
    b->count = ki_min(FN(JUDGED_ROWS), end - first);
    memcpy(to, from + first, (size_t)b->count * sizeof *to);
    for (int64_t i = b->count; i % LANES != 0; i++) to[i] = 0;
}

static void FN(means_of_elements)(const struct ki_loss_rows *rows, int64_t first, int64_t end) {
    struct FN(judged) b;
    for (int64_t i = first; i < end; i += b.count) {
        FN(take_block)(&b, b.eta, VALUES(rows->Eta), i, end);
        FN(block_means)(rows->loss, &b);
        memcpy(VALUES(rows->out) + i, b.mu, (size_t)b.count * sizeof(real));
    }
}

static void FN(mean_of_rows)(const struct ki_loss_rows *rows, int64_t first, int64_t end) {
    const int64_t k = rows->out->cols;
    const real *eta = VALUES(rows->Eta);
    real *out = VALUES(rows->out);
    if (rows->loss->kind != KILN_LOSS_SOFTMAX) {
        FN(means_of_elements)(rows, first * k, end * k);
        return;
    }
    for (int64_t row = first; row < end; row++) {
        for (int64_t c = 0; c < k; c++) out[row * k + c] = eta[row * k + c];
        FN(softmax_row)(out + row * k, (int)k, 0);
    }
}

enum { FN(COUNTS) = 16 };

/* The third column of counts below COUNTS, of weight 1: most counts are small, and Gamma functions cost more
 * than all else. Returns how many are listed. */
static int FN(list_counts)(real least[FN(COUNTS)], const kiln_loss *loss) {
    const bool counts = loss->family == KILN_POISSON || loss->family == KILN_NEGATIVE_BINOMIAL;
    for (int y = 0; counts && y < FN(COUNTS); y++)
        least[y] = FN(least_row)((int)loss->family, (real)loss->parameter, (real)y, 1);
    return counts ? FN(COUNTS) : 0;
}

/* The three columns of rows first ... of the block. */
static void FN(write_deviances)(const struct FN(judged) * b, const struct ki_loss_rows *rows, int64_t first,
                                const real *least, int listed) {
    const kiln_loss *loss = rows->loss;
    const real parameter = (real)loss->parameter;
    const real *s = loss->weights ? VALUES(loss->weights) + first : NULL;
    for (int64_t i = 0; i < b->count; i++) {
        const real weight = s ? s[i] : 1;
        real *d = VALUES(rows->out) + 3 * (first + i);
        if (!b->usual[i] || weight == 0) {
            FN(deviance_row)
            ((int)loss->family, (int)loss->link, parameter, (real)loss->link_power, b->y[i], weight,
             b->eta[i], d);
            continue;
        }
        d[0] = (real)2 * weight * b->half[i];
        d[1] = weight * b->pearson[i];
        const int count = b->y[i] >= 0 && b->y[i] < (real)listed ? (int)b->y[i] : -1;
        d[2] = count >= 0 && (real)count == b->y[i]
                   ? weight * least[count]
                   : FN(least_row)((int)loss->family, parameter, b->y[i], weight);
    }
}

static void FN(deviance_of_rows)(const struct ki_loss_rows *rows, int64_t first, int64_t end) {
    struct FN(judged) b;
    real least[FN(COUNTS)];
    const int listed = FN(list_counts)(least, rows->loss);
    for (int64_t row = first; row < end; row += b.count) {
        FN(take_block)(&b, b.eta, VALUES(rows->Eta), row, end);
        FN(take_block)(&b, b.y, VALUES(rows->loss->y), row, end);
        FN(block_means)(rows->loss, &b);
        FN(block_deviances)(rows->loss, &b);
        FN(write_deviances)(&b, rows, row, least, listed);
    }
}

static void FN(loss_rows_range)(void *of, int64_t first, int64_t end) {
    const struct ki_loss_rows *rows = of;
    if (rows->deviance)
        FN(deviance_of_rows)(rows, first, end);
    else
        FN(mean_of_rows)(rows, first, end);
}

void FN(loss_rows)(struct ki_loss_rows *rows) {
    enum { ROWS_WORTH_A_PART = 1024 };
    ki_parallel_ranges(rows->out->device->threads, rows->out->rows, ROWS_WORTH_A_PART, FN(loss_rows_range),
                       rows);
}
