/* The refusals of a call are rows of a table. A file has a `struct call` of operands and options that are all
 * good; a row says what spoils them, and what the call then says. Results and report stay as they were. */
#ifndef ALGORITHMS_REFUSALS_H
#define ALGORITHMS_REFUSALS_H

#include <stddef.h>

#include "algorithms/least_squares.h"

/* An operand becomes NULL, or a matrix of that shape; one of its numbers, or each, another (of f64); a field
 * of the options this number, or this pointer. */
struct change {
    enum {
        NOTHING,
        NO_MATRIX,
        MATRIX,
        F32_MATRIX,
        SPARSE_MATRIX,
        NUMBER,
        NUMBERS,
        REAL,
        INTEGER,
        POINTER
    } what;
    size_t offset, size; /* in struct call */
    int64_t rows, cols;
    double number;
    const void *pointer;
};
#define OF_CALL(field) .offset = offsetof(struct call, field), .size = sizeof(((struct call *)0)->field)
#define IS_NULL(field)                                                                                       \
    { .what = NO_MATRIX, OF_CALL(field) }
#define IS(field, m, n)                                                                                      \
    { .what = MATRIX, OF_CALL(field), .rows = m, .cols = n }
#define IS_F32(field, m, n)                                                                                  \
    { .what = F32_MATRIX, OF_CALL(field), .rows = m, .cols = n }
#define IS_SPARSE(field, m, n)                                                                               \
    { .what = SPARSE_MATRIX, OF_CALL(field), .rows = m, .cols = n }
#define AT(field, place, value)                                                                              \
    { .what = NUMBER, OF_CALL(field), .rows = place, .number = value }
#define ALL(field, value)                                                                                    \
    { .what = NUMBERS, OF_CALL(field), .number = value }
#define REAL_FIELD(field, value)                                                                             \
    { .what = REAL, OF_CALL(field), .number = value }
#define FIELD(field, value)                                                                                  \
    { .what = INTEGER, OF_CALL(field), .number = value }
#define POINTER_FIELD(field, value)                                                                          \
    { .what = POINTER, OF_CALL(field), .pointer = value }

enum { CHANGES = 4 };
struct refusal {
    kiln_status status;
    const char *says;
    struct change changes[CHANGES];
};

static inline kiln_matrix *made_for(kiln_device *device, const struct change *change) {
    const int64_t count = change->rows * change->cols;
    double *values = new_doubles(count + 1);
    for (int64_t i = 0; i < count; i++) values[i] = 1 + (double)(i * i % 11) / 8;
    kiln_matrix *A = change->what == SPARSE_MATRIX
                         ? csr(device, KILN_F64, change->rows, change->cols, values)
                         : dense(device, change->what == F32_MATRIX ? KILN_F32 : KILN_F64, change->rows,
                                 change->cols, values);
    free(values);
    return A;
}

static inline void change_call(void *call, const struct change *change, kiln_device *device) {
    void *const field = (char *)call + change->offset;
    kiln_matrix **const operand = field;
    switch (change->what) {
    case NOTHING: break;
    case NO_MATRIX: replace(operand, NULL); break;
    case MATRIX:
    case F32_MATRIX:
    case SPARSE_MATRIX: replace(operand, made_for(device, change)); break;
    case NUMBER: spoil(*operand, (int)change->rows, change->number); break;
    case NUMBERS:
        for (int64_t i = 0; i < kiln_matrix_nnz(*operand); i++) spoil(*operand, (int)i, change->number);
        break;
    case REAL: *(double *)field = change->number; break;
    case INTEGER:
        if (change->size == sizeof(int64_t))
            *(int64_t *)field = (int64_t)change->number;
        else
            *(int *)field = (int)change->number;
        break;
    case POINTER: *(const void **)field = change->pointer; break;
    }
}

static inline void spoil_call(void *call, const struct refusal *refusal, kiln_device *device) {
    for (int i = 0; i < CHANGES; i++) change_call(call, &refusal->changes[i], device);
}

/* ask(call, report) ends as the row says, and leaves the `count` results, any of them NULL, and the
 * report. */
static inline void assert_refused(const struct refusal *refusal,
                                  kiln_status (*ask)(const void *call, kiln_report *report), const void *call,
                                  kiln_matrix *const *results, int count) {
    double *before[4];
    kiln_report report, untouched;
    memset(&report, 0x5a, sizeof report);
    report.size = sizeof report;
    untouched = report;
    for (int i = 0; i < count; i++) before[i] = results[i] ? values_of(results[i]) : NULL;
    const kiln_status status = ask(call, &report);
    if (status != refusal->status || !strstr(kiln_last_error()->message, refusal->says))
        fail_msg("%s expected: %s, but got %s: %s", kiln_status_name(refusal->status), refusal->says,
                 kiln_status_name(status), kiln_last_error()->message);
    assert_memory_equal(&report, &untouched, sizeof report);
    for (int i = 0; i < count; i++) {
        double *after = results[i] ? values_of(results[i]) : NULL;
        if (after) assert_memory_equal(after, before[i], (size_t)kiln_matrix_nnz(results[i]) * sizeof *after);
        free(after);
        free(before[i]);
    }
}

#endif
