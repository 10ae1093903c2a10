/* A sparse matrix by columns: its slots, and the copy on the CPU, counted and then moved by bands of rows, a
 * thread each, so that a column keeps the order of its rows however many there are. */
#include "derived/columns.h"

#include <string.h>

#include "core/limits.h"
#include "core/memory.h"
#include "core/processes.h"
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

struct bands {
    const kiln_matrix *X;
    const struct ki_columns_copy *copy;
    int64_t *next; /* a band's: of each column, how many entries, and then where the next one goes */
    int count;
};

static void count_band(void *of, int band) {
    const struct bands *bands = of;
    const kiln_matrix *X = bands->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    int64_t *next = bands->next + band * X->cols;
    memset(next, 0, (size_t)X->cols * sizeof *next);
    const int64_t end = start[ki_part_begin(X->rows, band + 1, bands->count)];
    for (int64_t e = start[ki_part_begin(X->rows, band, bands->count)]; e < end; e++) next[col[e]]++;
}

static void place_columns(const struct bands *bands) {
    int64_t *start = ki_host(&bands->copy->start), at = 0;
    for (int64_t j = 0; j < bands->X->cols; j++) {
        start[j] = at;
        for (int band = 0; band < bands->count; band++) {
            int64_t *next = bands->next + band * bands->X->cols + j;
            const int64_t length = *next;
            *next = at;
            at += length;
        }
    }
    start[bands->X->cols] = at;
}

static inline __attribute__((always_inline)) void move_entries(const struct bands *bands, int band,
                                                               size_t size) {
    const kiln_matrix *X = bands->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    const char *value = ki_host(&X->values);
    int32_t *row = ki_host(&bands->copy->row);
    char *to = size ? ki_host(&bands->copy->value) : NULL;
    int64_t *next = bands->next + band * X->cols;
    const int64_t end = ki_part_begin(X->rows, band + 1, bands->count);
    for (int64_t i = ki_part_begin(X->rows, band, bands->count); i < end; i++)
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

static kiln_status fill(struct ki_columns_copy *copy, const kiln_matrix *X, bool values) {
    kiln_device *device = X->device;
    struct bands bands = {.X = X, .copy = copy};
    kiln_status status;
    if (X->rows > INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT, "%s of %lld rows, but %d are the most", slot_columns.name,
                       (long long)X->rows, INT32_MAX);
    const int64_t worth = X->nnz / BAND_COUNTS / ki_max(X->cols, 1);
    bands.count = (int)ki_max(1, ki_min(worth, device->threads));
    const size_t bytes = (size_t)(X->cols * bands.count) * sizeof *bands.next;
    if (!(bands.next = ki_alloc(bytes))) return ki_fail_nomem(bytes, slot_columns.name);
    TRY(ki_device_alloc(device, &copy->start, (X->cols + 1) * 8));
    TRY(ki_device_alloc(device, &copy->row, X->nnz * 4));
    if (values) TRY(ki_device_alloc(device, &copy->value, X->nnz * ki_type_bytes(X->type)));
    ki_parallel(device->threads, bands.count, count_band, &bands);
    place_columns(&bands);
    ki_parallel(device->threads, bands.count,
                !values               ? move_pattern
                : X->type == KILN_F32 ? move_4
                                      : move_8,
                &bands);
done:
    ki_free(bands.next);
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

bool ki_transposed_fits(const kiln_matrix *X) {
    kiln_device *device = X->device;
    const int64_t entry = ki_type_bytes(X->type) + 8, starts = (X->cols + 1) * 8;
    if (X->here || X->file || X->view || X->codes || X->nnz == 0 || ki_device_shares(device)) return false;
    if (ki_on_cpu(device)) return true;
    /* room for X itself is counted, also where it is there already: it could leave, but must not */
    return device->properties.has_f64 &&
           ki_matrix_bytes(X) + 2 * X->nnz * entry + starts <= ki_memory_room(device);
}

static kiln_status turn(kiln_matrix *T, const kiln_matrix *X) {
    struct ki_columns_copy copy = {{0}, {0}, {0}};
    const kiln_status status =
        ki_on_cpu(X->device) ? fill(&copy, X, true) : ki_columns_fill_gpu(&copy, X, true, true);
    T->nnz = X->nnz;
    T->values = copy.value;
    T->row_start = copy.start;
    T->col = copy.row;
    return status;
}

kiln_status ki_transposed_new(kiln_matrix **T, const kiln_matrix *X) {
    const double began = ki_clock();
    kiln_device *device = X->device;
    const struct ki_operand operand = {X, false};
    kiln_matrix *made = NULL;
    kiln_status status;
    TRY(ki_matrix_shell(&made, device, X->type, KILN_CSR, X->cols, X->rows));
    TRY(ki_operands_hold(device, &operand, 1));
    status = turn(made, X);
    ki_operands_release(device, &operand, 1);
    device->statistics.layout_seconds += ki_clock() - began;
    if (status != KILN_OK) goto done;
    *T = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}
