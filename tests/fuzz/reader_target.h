/* A reader run on any bytes: an error with a reason, or a table that keeps what io/data.h promises. */
#ifndef READER_TARGET_H
#define READER_TARGET_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline void demand(int holds) {
    if (!holds) abort();
}

static inline double target_value(const void *values, kiln_type type, int64_t i) {
    return type == KILN_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static inline void check_reals(const void *values, int64_t count, const kiln_read_options *options) {
    for (int64_t i = 0; i < count; i++) {
        double value = target_value(values, options->type, i);
        demand(options->allow_nonfinite || isfinite(value));
    }
}

static inline void check_table(const struct ki_table *table, const kiln_read_options *options) {
    demand(table->rows >= 0 && table->cols >= 0 && table->cols <= INT32_MAX && table->values);
    if (table->format == KILN_DENSE) demand(table->nnz == table->rows * table->cols);
    if (table->format == KILN_CSR) {
        demand(table->row_start[0] == 0 && table->row_start[table->rows] == table->nnz);
        for (int64_t row = 0; row < table->rows; row++) {
            demand(table->row_start[row] <= table->row_start[row + 1]);
            for (int64_t i = table->row_start[row]; i < table->row_start[row + 1]; i++) {
                demand(table->col[i] >= 0 && table->col[i] < table->cols);
                demand(i == table->row_start[row] || table->col[i - 1] < table->col[i]);
            }
        }
    }
    check_reals(table->values, table->nnz, options);
    demand((table->targets > 0) == (table->y != NULL));
    check_reals(table->y, table->rows * table->targets, options);
    for (int64_t j = 0; table->feature_names && j < table->cols; j++) demand(table->feature_names[j] != NULL);
    for (int64_t j = 0; table->target_names && j < table->targets; j++)
        demand(table->target_names[j] != NULL);
}

/* A reader leaves a table that keeps what it promises, or an error with a reason. Clears the table. */
static inline void check_end(struct ki_table *table, kiln_status status, const kiln_read_options *options) {
    if (status == KILN_OK)
        check_table(table, options);
    else
        demand(status != KILN_ERR_INTERNAL && kiln_last_error()->status == status &&
               kiln_last_error()->message[0]);
    ki_table_clear(table);
}

static inline void run_reader(ki_reader *reader, const uint8_t *bytes, size_t size,
                              const kiln_read_options *options) {
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("input", MFD_CLOEXEC);
        demand(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    demand(ftruncate(file, 0) == 0 && pwrite(file, bytes, size, 0) == (ssize_t)size);
    struct ki_input *input = NULL;
    struct ki_table table = {0};
    kiln_status status = ki_input_open(&input, path, options->limit, NULL);
    if (status == KILN_OK) status = reader(&table, input, options);
    check_end(&table, status, options);
    ki_input_close(input);
}

#endif
