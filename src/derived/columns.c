/* A sparse matrix by columns: its slots, and the copy on the CPU, counted and then moved by bands of rows, a
 * thread each, so that a column keeps the order of its rows however many there are. */
#include "derived/columns.h"

#include <string.h>

#include "core/limits.h"
#include "core/memory.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "derived/transposed.h"

enum { BAND_COUNTS = 4 }; /* entries of a band, at least, for each column that it counts */

#define AT(buffer) offsetof(struct ki_columns_copy, buffer)
#define COPY KI_SLOT(struct ki_columns_copy, AT(start), AT(row), AT(value))
static const struct ki_slot_kind slot_columns = {.name = "a matrix by columns", COPY};
static const struct ki_slot_kind slot_pattern = {.name = "the pattern of a matrix by columns", COPY};
static const struct ki_slot_kind slot_long = {.name = "a long matrix by columns", COPY};
#undef COPY
#undef AT

/* Entries in host memory by rows, and where they go by columns. */
struct bands {
    int64_t rows, cols;
    const int64_t *start;
    const int32_t *col;
    const void *value;
    int64_t *to_start;
    int32_t *to_row;
    void *to_value; /* NULL: the pattern alone */
    int64_t *next;  /* a band's: of each column, how many entries, and then where the next one goes */
    int count;
};

static void count_band(void *of, int band) {
    const struct bands *bands = of;
    const int64_t *start = bands->start;
    const int32_t *col = bands->col;
    int64_t *next = bands->next + band * bands->cols;
    memset(next, 0, (size_t)bands->cols * sizeof *next);
    const int64_t end = start[ki_part_begin(bands->rows, band + 1, bands->count)];
    for (int64_t e = start[ki_part_begin(bands->rows, band, bands->count)]; e < end; e++) next[col[e]]++;
}

static void place_columns(const struct bands *bands) {
    int64_t at = 0;
    for (int64_t j = 0; j < bands->cols; j++) {
        bands->to_start[j] = at;
        for (int band = 0; band < bands->count; band++) {
            int64_t *next = bands->next + band * bands->cols + j;
            const int64_t length = *next;
            *next = at;
            at += length;
        }
    }
    bands->to_start[bands->cols] = at;
}

static inline __attribute__((always_inline)) void move_entries(const struct bands *bands, int band,
                                                               size_t size) {
    const int64_t *start = bands->start;
    const int32_t *col = bands->col;
    const char *value = bands->value;
    int32_t *row = bands->to_row;
    char *to = bands->to_value;
    int64_t *next = bands->next + band * bands->cols;
    const int64_t end = ki_part_begin(bands->rows, band + 1, bands->count);
    for (int64_t i = ki_part_begin(bands->rows, band, bands->count); i < end; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            const int64_t place = next[col[e]]++;
            row[place] = (int32_t)i;
            if (size) memcpy(to + (size_t)place * size, value + (size_t)e * size, size);
        }
}

static void move_pattern(void *of, int band) {
    move_entries(of, band, 0);
}

static void move_4(void *of, int band) {
    move_entries(of, band, 4);
}

static void move_8(void *of, int band) {
    move_entries(of, band, 8);
}

static kiln_status check_rows(const kiln_matrix *X) {
    if (X->rows <= INT32_MAX) return KILN_OK;
    return ki_fail(KILN_ERR_LIMIT, "%s of %lld rows, but %d are the most", slot_columns.name,
                   (long long)X->rows, INT32_MAX);
}

static kiln_status run_bands(struct bands *bands, const kiln_matrix *X) {
    const int threads = X->device->threads;
    bands->rows = X->rows;
    bands->cols = X->cols;
    const int64_t worth = X->nnz / BAND_COUNTS / ki_max(X->cols, 1);
    bands->count = (int)ki_max(1, ki_min(worth, threads));
    const size_t bytes = (size_t)(X->cols * bands->count) * sizeof *bands->next;
    if (!(bands->next = ki_alloc(bytes))) return ki_fail_nomem(bytes, slot_columns.name);
    ki_parallel(threads, bands->count, count_band, bands);
    place_columns(bands);
    ki_parallel(threads, bands->count,
                !bands->to_value      ? move_pattern
                : X->type == KILN_F32 ? move_4
                                      : move_8,
                bands);
    ki_free(bands->next);
    return KILN_OK;
}

static kiln_status fill(struct ki_columns_copy *copy, const kiln_matrix *X, bool values) {
    kiln_device *device = X->device;
    kiln_status status;
    TRY(check_rows(X));
    TRY(ki_device_alloc(device, &copy->start, (X->cols + 1) * 8));
    TRY(ki_device_alloc(device, &copy->row, X->nnz * 4));
    if (values) TRY(ki_device_alloc(device, &copy->value, X->nnz * ki_type_bytes(X->type)));
    TRY(run_bands(&(struct bands){.start = ki_host(&X->row_start),
                                  .col = ki_host(&X->col),
                                  .value = ki_host(&X->values),
                                  .to_start = ki_host(&copy->start),
                                  .to_row = ki_host(&copy->row),
                                  .to_value = values ? ki_host(&copy->value) : NULL},
                  X));
done:
    return status;
}

static kiln_status make(const kiln_matrix *X, const struct ki_slot_kind *kind) {
    const double began = ki_clock();
    const bool values = kind != &slot_pattern;
    struct ki_columns_copy *copy = ki_slot_new(kind);
    if (!copy) return KILN_ERR_NOMEM;
    const kiln_status filled = ki_on_cpu(X->device)
                                   ? fill(copy, X, values)
                                   : ki_columns_fill_gpu(copy, X, values, kind == &slot_long);
    const kiln_status status = ki_slot_keep(X, kind, copy, filled);
    X->device->statistics.layout_seconds += ki_clock() - began;
    return status;
}

/* Columns with values serve where the pattern is enough. */
kiln_status ki_columns_get(struct ki_columns *columns, const kiln_matrix *X, enum ki_columns_kind wanted) {
    const bool cpu = ki_on_cpu(X->device),
               all = wanted != KI_COLUMNS_PATTERN || ki_slot_get(X, &slot_columns);
    const bool long_starts = !cpu && wanted == KI_COLUMNS_ANY && X->nnz > ki_limits.index32;
    const struct ki_slot_kind *kind = long_starts ? &slot_long : all ? &slot_columns : &slot_pattern;
    const kiln_status status = ki_slot_get(X, kind) ? KILN_OK : make(X, kind);
    if (status != KILN_OK) return status;
    const struct ki_columns_copy *copy = ki_slot_get(X, kind);
    *columns = (struct ki_columns){.start = &copy->start,
                                   .row = &copy->row,
                                   .value = all ? &copy->value : NULL,
                                   .long_starts = cpu || long_starts};
    return KILN_OK;
}

void ki_columns_drop(const kiln_matrix *X) {
    const struct ki_slot_kind *const kinds[] = {&slot_columns, &slot_pattern, &slot_long};
    for (int i = 0; i < 3; i++) ki_slot_drop(X, kinds[i]);
}

/* ---- a matrix of its own ---- */

/* Room for X itself is counted also where it is there already: it could leave, but must not. A group's
 * members take X and what it becomes from host memory. */
static bool sorts_there(const kiln_matrix *X) {
    const int64_t entry = ki_type_bytes(X->type) + 8, starts = (X->cols + 1) * 8;
    if (ki_on_cpu(X->device)) return true;
    return !X->device->group && X->device->properties.has_f64 &&
           ki_matrix_bytes(X) + 2 * X->nnz * entry + starts <= ki_memory_room(X->device);
}

static kiln_status turn_there(kiln_matrix **T, const kiln_matrix *X) {
    const struct ki_operand operand = {X, false};
    struct ki_columns_copy copy = {{0}, {0}, {0}};
    kiln_matrix *made = NULL;
    kiln_status status;
    TRY(ki_matrix_shell(&made, X->device, X->type, KILN_CSR, X->cols, X->rows));
    TRY(ki_operands_hold(X->device, &operand, 1));
    status = ki_on_cpu(X->device) ? fill(&copy, X, true) : ki_columns_fill_gpu(&copy, X, true, true);
    made->nnz = X->nnz;
    made->given = X->given;
    made->values = copy.value;
    made->row_start = copy.start;
    made->col = copy.row;
    ki_operands_release(X->device, &operand, 1);
    if (status != KILN_OK) goto done;
    *T = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

/* X's arrays in host memory: where they lie there, or copies. */
static kiln_status read_host(const void *from[KI_PARTS], void *copy[KI_PARTS], const kiln_matrix *X) {
    bool there = true;
    for (int part = 0; part < KI_PARTS; part++) there = there && (from[part] = ki_matrix_host(X, part));
    if (there) return KILN_OK;
    for (int part = 0; part < KI_PARTS; part++) {
        const size_t bytes = (size_t)ki_matrix_part_bytes(X, part);
        if (!(from[part] = copy[part] = ki_alloc(bytes))) return ki_fail_nomem(bytes, slot_columns.name);
    }
    return kiln_matrix_get_csr(copy[KI_ROW_START], copy[KI_COL], copy[KI_VALUES], X);
}

/* By all threads of the host. */
static kiln_status turn_on_host(kiln_matrix **T, const kiln_matrix *X) {
    const void *from[KI_PARTS] = {NULL};
    void *copy[KI_PARTS] = {NULL};
    const size_t value = (size_t)ki_type_bytes(X->type), nnz = (size_t)X->nnz;
    int64_t *start = ki_alloc((size_t)(X->cols + 1) * sizeof *start);
    int32_t *row = ki_alloc(nnz * sizeof *row);
    void *values = ki_alloc(nnz * value);
    kiln_status status;
    if (!start || !row || !values) TRY(ki_fail_nomem(nnz * (value + sizeof *row), slot_columns.name));
    TRY(check_rows(X));
    TRY(read_host(from, copy, X));
    TRY(run_bands(&(struct bands){.start = from[KI_ROW_START],
                                  .col = from[KI_COL],
                                  .value = from[KI_VALUES],
                                  .to_start = start,
                                  .to_row = row,
                                  .to_value = values},
                  X));
    TRY(ki_matrix_adopt_csr(T, X->device, X->type, X->cols, X->rows, X->nnz, start, row, values));
    start = NULL, row = NULL, values = NULL;
done:
    ki_free(start);
    ki_free(row);
    ki_free(values);
    for (int part = 0; part < KI_PARTS; part++) ki_free(copy[part]);
    return status;
}

kiln_status ki_transposed_new(kiln_matrix **T, const kiln_matrix *X) {
    const double began = ki_clock();
    kiln_status status;
    TRY(ki_matrix_expand(X));
    const bool there = sorts_there(X);
    status = there ? turn_there(T, X) : turn_on_host(T, X);
    if (there && status == KILN_ERR_DEVICE_NOMEM) status = turn_on_host(T, X);
    X->device->statistics.layout_seconds += ki_clock() - began;
done:
    return status;
}
