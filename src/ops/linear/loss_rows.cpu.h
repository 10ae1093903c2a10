/* CPU body of kiln_loss_mean and kiln_loss_deviance: rows by themselves, in parts for the threads. */
#include "dialect/losses.h"

static void FN(mean_of_rows)(const struct ki_loss_rows *rows, int64_t first, int64_t end) {
    const kiln_loss *loss = rows->loss;
    const int64_t k = rows->out->cols;
    const real *eta = VALUES(rows->Eta);
    real *out = VALUES(rows->out);
    if (loss->kind != KILN_LOSS_SOFTMAX) {
        for (int64_t i = first * k; i < end * k; i++)
            out[i] = FN(mean_row)((int)loss->kind, (int)loss->link, (real)loss->link_power, eta[i]);
        return;
    }
    for (int64_t row = first; row < end; row++) {
        for (int64_t c = 0; c < k; c++) out[row * k + c] = eta[row * k + c];
        FN(softmax_row)(out + row * k, (int)k, 0);
    }
}

static void FN(deviance_of_rows)(const struct ki_loss_rows *rows, int64_t first, int64_t end) {
    const kiln_loss *loss = rows->loss;
    const real *s = loss->weights ? VALUES(loss->weights) : NULL;
    for (int64_t row = first; row < end; row++) FN(deviance_row)
    ((int)loss->family, (int)loss->link, (real)loss->parameter, (real)loss->link_power, VALUES(loss->y)[row],
     s ? s[row] : 1, VALUES(rows->Eta)[row], VALUES(rows->out) + 3 * row);
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
