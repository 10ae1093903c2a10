/* A sparse matrix whose entries are all one number, as those of yes-or-no data are, keeps the number and no
 * values: A->values are of no bytes. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/each.h"
#include "core/home.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

enum { WORTH_A_PART = 1 << 16, PIECE = 1 << 14 };

struct looking {
    size_t size; /* of a value */
    const char *values;
    const void *first;
    atomic_bool differ;
};

/* Each value has the bits of the one before. */
static void look(void *of, int64_t begin, int64_t end) {
    struct looking *l = of;
    for (int64_t at = begin; at < end && !atomic_load(&l->differ); at += PIECE) {
        const size_t others = (size_t)(ki_min(at + PIECE, end) - at - 1) * l->size;
        const char *value = l->values + (size_t)at * l->size;
        if (memcmp(value, l->first, l->size) != 0 || memcmp(value, value + l->size, others) != 0)
            atomic_store(&l->differ, true);
    }
}

/* Whether all values have the bits of `first`. */
static bool are_all(const kiln_device *device, kiln_type type, const void *values, const void *first,
                    int64_t count) {
    struct looking l = {.size = (size_t)ki_type_bytes(type), .values = values, .first = first};
    atomic_init(&l.differ, false);
    ki_parallel_ranges(device->threads, count, WORTH_A_PART, look, &l);
    return !atomic_load(&l.differ);
}

static double number(kiln_type type, const void *value) {
    float single;
    double wide;
    if (type == KILN_F64) {
        memcpy(&wide, value, sizeof wide);
        return wide;
    }
    memcpy(&single, value, sizeof single);
    return (double)single;
}

/* *A of no values; the arrays are its own on success. */
static kiln_status adopt(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows, int64_t cols,
                         int64_t nnz, int64_t *row_start, int32_t *col, double same) {
    void *const none = ki_alloc(0), *const memory[KI_PARTS] = {none, row_start, col};
    kiln_matrix *made = NULL;
    kiln_status status;
    if (!none) return ki_fail_nomem(1, "an empty array");
    TRY(ki_matrix_shell(&made, device, type, KILN_CSR, rows, cols));
    made->nnz = nnz;
    made->element = KILN_ELEMENT_SAME;
    made->same = type == KILN_F32 ? (double)(float)same : same;
    TRY(ki_matrix_place(made, memory));
    *A = made;
    return KILN_OK;
done:
    ki_free(none);
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_matrix_adopt_entries(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                    int64_t cols, int64_t nnz, int64_t *row_start, int32_t *col,
                                    void *values) {
    const double first = nnz > 0 ? number(type, values) : NAN;
    if (isnan(first) || device->processes || !are_all(device, type, values, values, nnz))
        return ki_matrix_adopt_csr(A, device, type, rows, cols, nnz, row_start, col, values);
    const kiln_status status = adopt(A, device, type, rows, cols, nnz, row_start, col, first);
    if (status == KILN_OK) ki_free(values);
    return status;
}

kiln_status ki_same_copy(kiln_matrix **B, kiln_device *device, kiln_type type, const kiln_matrix *A) {
    if (device->processes) return KILN_OK;
    int64_t *row_start = ki_alloc((size_t)(A->rows + 1) * 8);
    int32_t *col = ki_alloc((size_t)A->nnz * 4);
    kiln_status status;
    if (!row_start || !col) TRY(ki_fail_nomem((size_t)A->nnz * 4, "a copy of a matrix"));
    TRY(kiln_matrix_get_csr(row_start, col, NULL, A));
    TRY(adopt(B, device, type, A->rows, A->cols, A->nnz, row_start, col, A->same));
    return KILN_OK;
done:
    ki_free(row_start);
    ki_free(col);
    return status;
}

/* Whether all of A's values are `first`: where they lie in host memory, or piece by piece from the device. */
static kiln_status all_same(bool *same, const kiln_matrix *A, const void *first) {
    const size_t bytes = PIECE * (size_t)ki_type_bytes(A->type);
    const void *here = ki_on_cpu(A->device) ? ki_host(&A->values) : A->host[KI_VALUES];
    void *piece = NULL;
    kiln_status status = KILN_OK;
    *same = true;
    if (here) {
        *same = are_all(A->device, A->type, here, first, A->nnz);
        return KILN_OK;
    }
    if (!(piece = ki_alloc(bytes))) return ki_fail_nomem(bytes, "values on their way");
    for (int64_t at = 0, count; *same && at < A->nnz; at += count) {
        count = ki_min(PIECE, A->nnz - at);
        TRY(ki_elements_get(piece, A, at, count));
        *same = are_all(A->device, A->type, piece, first, count);
    }
done:
    ki_free(piece);
    return status;
}

kiln_status ki_narrow_entries(kiln_matrix *A, int *narrowed) {
    double room;
    bool same;
    struct ki_buffer none = {0, 0, 0};
    void *empty = NULL;
    kiln_status status;
    if (A->nnz == 0) return KILN_OK;
    TRY(ki_elements_get(&room, A, 0, 1));
    const double first = number(A->type, &room);
    if (isnan(first)) return KILN_OK;
    TRY(all_same(&same, A, &room));
    if (!same) return KILN_OK;
    if (ki_matrix_resident(A)) TRY(ki_device_alloc(A->device, &none, 0));
    if (A->host[KI_VALUES] && !(empty = ki_alloc(0))) TRY(ki_fail_nomem(1, "an empty array"));
    ki_slots_drop(A);
    ki_matrix_unpin(A);
    if (none.handle) {
        if (!(A->lent_buffers & 1u << KI_VALUES)) ki_device_release(A->device, &A->values);
        A->lent_buffers &= ~(1u << KI_VALUES);
        A->values = none;
        none = (struct ki_buffer){0, 0, 0};
    }
    if (empty) {
        if (!(A->lent_host & 1u << KI_VALUES)) ki_free(A->host[KI_VALUES]);
        A->lent_host &= ~(1u << KI_VALUES);
        A->host[KI_VALUES] = empty;
    }
    A->element = KILN_ELEMENT_SAME;
    A->same = first;
    *narrowed = 1;
done:
    ki_device_release(A->device, &none);
    return status;
}
