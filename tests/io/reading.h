/* A reader run on bytes: they go to a temporary file, the reader's table and error come back. */
#ifndef READING_H
#define READING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* The same matrix, targets and names, bit for bit; real: bytes of a value. */
static inline void assert_same_reals(const struct ki_table *a, const struct ki_table *b, size_t real) {
    assert_int_equal(a->format, b->format);
    assert_true(a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->targets == b->targets);
    assert_memory_equal(a->values, b->values, (size_t)a->nnz * real);
    if (a->format == KILN_CSR) {
        assert_memory_equal(a->row_start, b->row_start, (size_t)(a->rows + 1) * sizeof(int64_t));
        assert_memory_equal(a->col, b->col, (size_t)a->nnz * sizeof(int32_t));
    }
    if (a->y) assert_memory_equal(a->y, b->y, (size_t)(a->rows * a->targets) * real);
    if (a->schema) assert_string_equal(a->schema, b->schema);
    for (int64_t i = 0; a->feature_names && i < a->cols; i++)
        assert_string_equal(a->feature_names[i], b->feature_names[i]);
    for (int64_t i = 0; a->row_names && i < a->rows; i++)
        assert_string_equal(a->row_names[i], b->row_names[i]);
}

static inline void assert_same_table(const struct ki_table *a, const struct ki_table *b) {
    assert_same_reals(a, b, sizeof(double));
}

/* Text of several blocks: the same table with one thread and with seven. */
static inline void assert_threads_do_not_show(ki_reader *reader, const char *text, size_t size) {
    kiln_read_options options = reading_options();
    options.threads = 1;
    struct reading one = read_bytes(reader, text, size, &options);
    options.threads = 7;
    struct reading seven = read_bytes(reader, text, size, &options);
    assert_int_equal(one.status, KILN_OK);
    assert_int_equal(seven.status, KILN_OK);
    assert_same_table(&one.table, &seven.table);
    ki_table_clear(&one.table);
    ki_table_clear(&seven.table);
}

/* The k-th request for memory fails, for each k until all are granted; alone, or with all that come after it.
 */
static struct {
    struct ki_seams real;
    int64_t count, failing, alive;
    bool ever_after;
} shortage;

static inline bool runs_short(void) {
    int64_t number = __atomic_add_fetch(&shortage.count, 1, __ATOMIC_SEQ_CST);
    return shortage.ever_after ? number >= shortage.failing : number == shortage.failing;
}

static inline void *short_alloc(size_t bytes, size_t align) {
    if (runs_short()) return NULL;
    __atomic_add_fetch(&shortage.alive, 1, __ATOMIC_SEQ_CST);
    return shortage.real.alloc(bytes, align);
}

static inline void *short_resize(void *memory, size_t bytes) {
    if (runs_short()) return NULL;
    if (!memory) __atomic_add_fetch(&shortage.alive, 1, __ATOMIC_SEQ_CST);
    return shortage.real.resize(memory, bytes);
}

static inline void short_release(void *memory) {
    __atomic_sub_fetch(&shortage.alive, 1, __ATOMIC_SEQ_CST);
    shortage.real.release(memory);
}

/* Each failure must be told as such and leave nothing behind. */
static inline void assert_survives_shortage(ki_reader *reader, const void *bytes, size_t size,
                                            const kiln_read_options *options) {
    for (int mode = 0; mode < 2; mode++) {
        kiln_status status = KILN_ERR_NOMEM;
        for (shortage.failing = 1; status != KILN_OK; shortage.failing++) {
            shortage.real = ki_seams;
            shortage.count = shortage.alive = 0;
            shortage.ever_after = mode == 1;
            ki_seams.alloc = short_alloc;
            ki_seams.resize = short_resize;
            ki_seams.release = short_release;
            struct reading r = read_bytes(reader, bytes, size, options);
            ki_table_clear(&r.table);
            ki_seams = shortage.real;
            status = r.status;
            assert_int_equal(shortage.alive, 0);
            assert_true(status == KILN_OK || status == KILN_ERR_NOMEM);
        }
        assert_true(shortage.failing > 4);
    }
}

#endif
