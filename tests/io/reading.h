/* A reader run on bytes: they go to a temporary file, the reader's table and error come back. */
#ifndef READING_H
#define READING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/seams.h"
#include "io/data.h"

struct reading {
    kiln_status status;
    struct ki_table table;
    char path[64];
};

static inline kiln_read_options reading_options(void) {
    return (kiln_read_options){.type = KILN_F64, .threads = 2};
}

/* suffix: of the file's name, such as ".tsv". */
static inline struct reading read_named(ki_reader *reader, const void *bytes, size_t size, const char *suffix,
                                        const kiln_read_options *options) {
    struct reading reading = {.status = KILN_ERR_INTERNAL};
    snprintf(reading.path, sizeof reading.path, "/tmp/kiln-reading-XXXXXX%s", suffix);
    int fd = mkstemps(reading.path, (int)strlen(suffix));
    assert_true(fd >= 0);
    assert_true(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    struct ki_input *input = NULL;
    reading.status = ki_input_open(&input, reading.path, options->limit, NULL);
    if (reading.status == KILN_OK) {
        reading.status = reader(&reading.table, input, options);
        ki_input_close(input);
    }
    if (reading.status != KILN_OK) ki_table_clear(&reading.table);
    unlink(reading.path);
    return reading;
}

static inline struct reading read_bytes(ki_reader *reader, const void *bytes, size_t size,
                                        const kiln_read_options *options) {
    return read_named(reader, bytes, size, "", options);
}

static inline void assert_reals(const void *got, const double *want, int64_t count) {
    for (int64_t i = 0; i < count; i++) assert_true(((const double *)got)[i] == want[i]);
}

/* The same matrix, targets and names, bit for bit. */
static inline void assert_same_table(const struct ki_table *a, const struct ki_table *b) {
    assert_int_equal(a->format, b->format);
    assert_true(a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->targets == b->targets);
    assert_memory_equal(a->values, b->values, (size_t)a->nnz * sizeof(double));
    if (a->format == KILN_CSR) {
        assert_memory_equal(a->row_start, b->row_start, (size_t)(a->rows + 1) * sizeof(int64_t));
        assert_memory_equal(a->col, b->col, (size_t)a->nnz * sizeof(int32_t));
    }
    if (a->y) assert_memory_equal(a->y, b->y, (size_t)(a->rows * a->targets) * sizeof(double));
    if (a->schema) assert_string_equal(a->schema, b->schema);
}

#endif
