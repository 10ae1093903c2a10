/* A sparse matrix by columns on the CPU: counted and then moved by bands of rows, a thread each, so that a column keeps the order
 * of its rows however many there are. */
#include "derived/columns.h"

#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

enum { BAND_COUNTS = 4 }; /* entries of a band, at least, for each column that it counts */

struct copy {
    struct ki_buffer start, row, value;
};

#define AT(buffer) offsetof(struct copy, buffer)
#define COPY KI_SLOT(struct copy, AT(start), AT(row), AT(value))
static const struct ki_slot_kind slot_columns = {.name = "a matrix by columns", COPY};
static const struct ki_slot_kind slot_pattern = {.name = "the pattern of a matrix by columns", COPY};
#undef COPY
#undef AT

struct bands {
    const kiln_matrix *X;
    const struct copy *copy;
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

static kiln_status fill(struct copy *copy, const kiln_matrix *X, bool values) {
    kiln_device *device = X->device;
    struct bands bands = {.X = X, .copy = copy};
    kiln_status status;
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
    struct copy *copy = ki_slot_new(kind);
    if (!copy) return KILN_ERR_NOMEM;
    return ki_slot_keep(X, kind, copy, fill(copy, X, kind == &slot_columns));
}

/* What has values serves where the pattern is enough. */
kiln_status ki_columns_get(struct ki_columns *columns, const kiln_matrix *X, enum ki_columns_kind wanted) {
    const double began = ki_clock();
    const int64_t bytes = ki_slots_bytes(X);
    kiln_status status = KILN_OK;
    if (!ki_on_cpu(X->device)) {
        TRY(ki_columns_gpu(columns, X, wanted));
    } else {
        if (X->rows > INT32_MAX)
            return ki_fail(KILN_ERR_LIMIT, "%s of %lld rows, but %d are the most", slot_columns.name,
                           (long long)X->rows, INT32_MAX);
        const bool all = wanted != KI_COLUMNS_PATTERN || ki_slot_get(X, &slot_columns);
        const struct ki_slot_kind *kind = all ? &slot_columns : &slot_pattern;
        if (!ki_slot_get(X, kind)) TRY(make(X, kind));
        const struct copy *copy = ki_slot_get(X, kind);
        *columns = (struct ki_columns){.start = &copy->start,
                                       .row = &copy->row,
                                       .value = all ? &copy->value : NULL,
                                       .long_starts = true};
    }
    if (ki_slots_bytes(X) != bytes) X->device->statistics.layout_seconds += ki_clock() - began;
done:
    return status;
}

void ki_columns_drop(const kiln_matrix *X) {
    if (!ki_on_cpu(X->device)) {
        ki_columns_drop_gpu(X);
        return;
    }
    ki_slot_drop(X, &slot_columns);
    ki_slot_drop(X, &slot_pattern);
}
