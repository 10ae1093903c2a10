/* Making, copying and reading matrices. Input arrays are checked here once, so that operations can trust
 * them. */
#include "core/codes/codes.h"
#include "core/file.h"
#include "core/home.h"
#include "core/narrow/narrow.h"
#include "core/matrix.h"
#include "core/processes.h"

#include <string.h>

#include "core/seams.h"
#include "core/size.h"

kiln_status ki_check_shape(const kiln_device *device, kiln_type type, int64_t rows, int64_t cols) {
    if (!device) return ki_fail(KILN_ERR_ARGUMENT, "device is NULL");
    if (type != KILN_F32 && type != KILN_F64)
        return ki_fail(KILN_ERR_ARGUMENT, "type is %d, but must be KILN_F32 or KILN_F64", (int)type);
    if (type == KILN_F64 && !device->properties.has_f64) {
        ki_fail(KILN_ERR_UNSUPPORTED, "device %s has no double precision", device->info.name);
        return ki_hint("--type f32, or another device");
    }
    if (rows < 0 || cols < 0 || cols > INT32_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "shape %lld x %lld: rows must be >= 0 and columns in [0, 2^31)",
                       (long long)rows, (long long)cols);
    return KILN_OK;
}

void ki_memory_join(kiln_matrix *A) {
    struct ki_memory *memory = &A->device->memory;
    A->older = memory->newest;
    A->newer = NULL;
    if (memory->newest)
        memory->newest->newer = A;
    else
        memory->oldest = A;
    memory->newest = A;
}

void ki_memory_leave(kiln_matrix *A) {
    struct ki_memory *memory = &A->device->memory;
    if (A->newer)
        A->newer->older = A->older;
    else if (memory->newest == A)
        memory->newest = A->older;
    if (A->older)
        A->older->newer = A->newer;
    else if (memory->oldest == A)
        memory->oldest = A->newer;
    A->newer = A->older = NULL;
}

kiln_status ki_matrix_shell(kiln_matrix **A, kiln_device *device, kiln_type type, kiln_format format,
                            int64_t rows, int64_t cols) {
    kiln_status status = ki_check_shape(device, type, rows, cols);
    if (status != KILN_OK) return status;
    kiln_matrix *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "a matrix");
    *made = (kiln_matrix){.device = device, .type = type, .format = format, .rows = rows, .cols = cols};
    ki_memory_join(made);
    *A = made;
    return KILN_OK;
}

/* Elements and bytes of a dense matrix. */
static kiln_status dense_size(int64_t *nnz, int64_t *bytes, kiln_type type, int64_t rows, int64_t cols) {
    if (!ki_mul(rows, cols, nnz) || !ki_mul(*nnz, ki_type_bytes(type), bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "shape %lld x %lld is too large", (long long)rows, (long long)cols);
    return KILN_OK;
}

kiln_status ki_matrix_new(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows, int64_t cols) {
    kiln_status status;
    kiln_matrix *made = NULL;
    int64_t bytes = 0;
    TRY(ki_matrix_shell(&made, device, type, KILN_DENSE, rows, cols));
    TRY(dense_size(&made->nnz, &bytes, type, rows, cols));
    TRY(ki_device_alloc(device, &made->values, bytes));
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_matrix_new_held(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                               int64_t cols) {
    const kiln_status status = ki_matrix_new(A, device, type, rows, cols);
    if (status == KILN_OK) (*A)->held++;
    return status;
}

/* Values of a new matrix that the device has no room for: it stays in host memory. */
static kiln_status values_on_host(kiln_matrix *A, const void *values) {
    const int64_t bytes = ki_matrix_bytes(A);
    A->host[KI_VALUES] = ki_alloc((size_t)bytes);
    if (!A->host[KI_VALUES]) return ki_fail_nomem((size_t)bytes, "a matrix that the device has no room for");
    if (values)
        memcpy(A->host[KI_VALUES], values, (size_t)bytes);
    else
        memset(A->host[KI_VALUES], 0, (size_t)bytes);
    return KILN_OK;
}

kiln_status ki_matrix_dense(kiln_matrix **A, bool *unset, kiln_device *device, kiln_type type, int64_t rows,
                            int64_t cols, const void *values) {
    kiln_matrix *made = NULL;
    kiln_status status;
    int64_t bytes = 0;
    TRY(ki_matrix_shell(&made, device, type, KILN_DENSE, rows, cols));
    TRY(dense_size(&made->nnz, &bytes, type, rows, cols));
    made->given = values;
    const bool waits = values && ki_device_shares(device) && !ki_on_cpu(device); /* as in ki_matrix_place */
    if (!waits) status = ki_device_alloc(device, &made->values, bytes);
    *unset = status == KILN_OK && !values;
    if (waits || status == KILN_ERR_DEVICE_NOMEM)
        TRY(values_on_host(made, values));
    else if (status == KILN_OK && values)
        TRY(ki_device_upload(device, &made->values, 0, values, bytes));
    if (status != KILN_OK) goto done;
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_matrix_adopt_dense(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                  int64_t cols, void *values) {
    kiln_status status;
    kiln_matrix *made = NULL;
    void *const memory[KI_PARTS] = {values, NULL, NULL};
    int64_t bytes = 0;
    TRY(ki_matrix_shell(&made, device, type, KILN_DENSE, rows, cols));
    TRY(dense_size(&made->nnz, &bytes, type, rows, cols));
    TRY(ki_matrix_place(made, memory));
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_matrix_adopt_csr(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                int64_t cols, int64_t nnz, int64_t *row_start, int32_t *col, void *values) {
    kiln_status status;
    kiln_matrix *made = NULL;
    void *const memory[KI_PARTS] = {values, row_start, col};
    TRY(ki_matrix_shell(&made, device, type, KILN_CSR, rows, cols));
    made->nnz = nnz;
    TRY(ki_matrix_place(made, memory));
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_matrix_adopt_file(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                 int64_t cols, int64_t nnz, int64_t *row_start, struct ki_file *file) {
    kiln_status status = ki_matrix_shell(A, device, type, row_start ? KILN_CSR : KILN_DENSE, rows, cols);
    if (status != KILN_OK) return status;
    (*A)->nnz = nnz;
    (*A)->given = true;
    (*A)->host[KI_ROW_START] = row_start;
    (*A)->file = file;
    (*A)->streams = ki_on_cpu(device);
    return KILN_OK;
}

static void return_lent(struct ki_lender *lender) {
    if (!lender || --lender->users > 0) return;
    if (lender->release) lender->release(lender->user);
    ki_free(lender);
}

/* B has A's entries. */
static kiln_status copy_filled(kiln_matrix *B, const kiln_matrix *A) {
    const size_t bytes = (size_t)A->filled_count * sizeof *A->filled;
    if (!A->filled) return KILN_OK;
    B->filled = ki_alloc(bytes);
    if (!B->filled) return ki_fail_nomem(bytes, "which entries were missing");
    memcpy(B->filled, A->filled, bytes);
    B->filled_count = A->filled_count;
    return KILN_OK;
}

static void drop_filled(kiln_matrix *A) {
    ki_free(A->filled);
    A->filled = NULL;
    A->filled_count = 0;
}

void ki_matrix_clear(kiln_matrix *A) {
    kiln_matrix *S = A->structure;
    if (A->lent_buffers && !A->device->lost)
        (void)A->device->backend->sync(A->device);      /* queued work may use them */
    if (A->lent_out) (void)ki_device_settle(A->device); /* theirs may */
    ki_slots_drop(A);
    if (ki_matrix_resident(A)) ki_structure_release(A);
    for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++)
        if (!(A->lent_buffers & 1u << part)) ki_device_release(A->device, ki_matrix_part(A, part));
    ki_matrix_drop_host(A);
    ki_codes_free(A->codes);
    A->codes = NULL;
    drop_filled(A);
    return_lent(A->lender);
    ki_memory_leave(A);
    if (S && --S->users == 0) {
        S->users = 1; /* it is a hidden matrix to the last */
        ki_matrix_clear(S);
        ki_free(S);
    }
}

void kiln_matrix_free(kiln_matrix *A) {
    if (!A) return;
    ki_matrix_clear(A);
    ki_free(A);
}

kiln_status ki_csr_check_starts(const int64_t *row_start, int64_t rows) {
    if (row_start[0] != 0)
        return ki_fail(KILN_ERR_DATA, "row_start[0] is %lld, but must be 0", (long long)row_start[0]);
    for (int64_t i = 0; i < rows; i++)
        if (row_start[i + 1] < row_start[i])
            return ki_fail(KILN_ERR_DATA, "row_start decreases at row %lld: %lld, then %lld", (long long)i,
                           (long long)row_start[i], (long long)row_start[i + 1]);
    return KILN_OK;
}

/* Column numbers in range and distinct within each row: `seen[c]` holds the last row that had column c.
 * Skipped for rows that ascend, which need no memory. */
kiln_status ki_csr_check_columns(const int64_t *row_start, const int32_t *col, int64_t rows, int64_t cols) {
    int64_t *seen = NULL;
    kiln_status status = KILN_OK;
    for (int64_t i = 0; i < rows && status == KILN_OK; i++) {
        bool ascending = true;
        int32_t previous = -1;
        for (int64_t e = row_start[i]; e < row_start[i + 1]; e++) {
            if (col[e] < 0 || col[e] >= cols) {
                ki_free(seen);
                return ki_fail(KILN_ERR_DATA, "row %lld: column %d lies outside [0, %lld)", (long long)i,
                               (int)col[e], (long long)cols);
            }
            ascending = ascending && col[e] > previous;
            previous = col[e];
        }
        if (ascending) continue;
        if (!seen) {
            seen = ki_alloc((size_t)cols * sizeof *seen);
            if (!seen) return ki_fail_nomem((size_t)cols * sizeof *seen, "the check for duplicate columns");
            memset(seen, 0xff, (size_t)cols * sizeof *seen);
        }
        for (int64_t e = row_start[i]; e < row_start[i + 1] && status == KILN_OK; e++) {
            if (seen[col[e]] == i)
                status =
                    ki_fail(KILN_ERR_DATA, "row %lld: column %d occurs twice", (long long)i, (int)col[e]);
            seen[col[e]] = i;
        }
    }
    ki_free(seen);
    return status;
}

kiln_status ki_values_copy(void **copy, kiln_type type, int64_t n, const void *values) {
    const size_t bytes = (size_t)(n * ki_type_bytes(type));
    void *made = ki_alloc(bytes);
    if (!made) return ki_fail_nomem(bytes, "the values of a sparse matrix");
    if (values && n > 0) memcpy(made, values, bytes);
    for (int64_t i = 0; !values && i < n; i++) {
        if (type == KILN_F32)
            ((float *)made)[i] = 1;
        else
            ((double *)made)[i] = 1;
    }
    *copy = made;
    return KILN_OK;
}

kiln_status kiln_matrix_csr(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows, int64_t cols,
                            const int64_t *row_start, const int32_t *col, const void *values) {
    if (!A || !row_start) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_csr: A or row_start is NULL");
    int64_t *own_start = NULL;
    int32_t *own_col = NULL;
    void *own_values = NULL;
    kiln_status status;
    int64_t bytes = 0;
    TRY(ki_check_shape(device, type, rows, cols));
    TRY(ki_csr_check_starts(row_start, rows));
    int64_t nnz = row_start[rows];
    if (nnz > 0 && !col) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_csr: col is NULL");
    if (!ki_mul(nnz, 8, &bytes) || !ki_mul(rows + 1, 8, &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "%lld rows with %lld entries are too many", (long long)rows,
                       (long long)nnz);
    TRY(ki_csr_check_columns(row_start, col, rows, cols));
    own_start = ki_alloc((size_t)(rows + 1) * 8);
    own_col = ki_alloc((size_t)nnz * 4);
    if (!own_start || !own_col) TRY(ki_fail_nomem((size_t)nnz * 4, "a sparse matrix"));
    TRY(ki_values_copy(&own_values, type, nnz, values));
    memcpy(own_start, row_start, (size_t)(rows + 1) * 8);
    if (nnz > 0) memcpy(own_col, col, (size_t)nnz * 4);
    TRY(ki_matrix_adopt_csr(A, device, type, rows, cols, nnz, own_start, own_col, own_values));
    return KILN_OK;
done:
    ki_free(own_start);
    ki_free(own_col);
    ki_free(own_values);
    return status;
}

/* Host copy of the values in another type, in place of the old array. */
static kiln_status convert(void **values, kiln_type from, kiln_type to, int64_t n) {
    if (from == to) return KILN_OK;
    void *converted = ki_alloc((size_t)(n * ki_type_bytes(to)));
    if (!converted) return ki_fail_nomem((size_t)(n * ki_type_bytes(to)), "a conversion");
    for (int64_t i = 0; i < n; i++) {
        if (to == KILN_F32)
            ((float *)converted)[i] = (float)((const double *)*values)[i];
        else
            ((double *)converted)[i] = ((const float *)*values)[i];
    }
    ki_free(*values);
    *values = converted;
    return KILN_OK;
}

kiln_status kiln_matrix_copy(kiln_matrix **B, kiln_device *device, kiln_type type, const kiln_matrix *A) {
    if (!B || !A || !device) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_copy: an argument is NULL");
    if (type == KILN_TYPE_DEFAULT) type = A->type;
    kiln_status status;
    int64_t *row_start = NULL;
    int32_t *col = NULL;
    void *values = NULL;
    kiln_matrix *made = NULL;
    if (A->codes && ki_codes_fit(device)) {
        TRY(ki_codes_copy(&made, device, type, A));
        goto copied;
    }
    if (A->element) TRY(ki_narrow_copy(&made, device, type, A));
    if (made) goto copied;
    values = ki_alloc((size_t)(A->nnz * ki_type_bytes(A->type)));
    TRY(values ? KILN_OK : ki_fail_nomem((size_t)(A->nnz * ki_type_bytes(A->type)), "a copy of a matrix"));
    if (A->format == KILN_CSR) {
        row_start = ki_alloc((size_t)(A->rows + 1) * 8);
        col = ki_alloc((size_t)A->nnz * 4);
        TRY(row_start && col ? KILN_OK : ki_fail_nomem((size_t)A->nnz * 4, "a copy of a matrix"));
        TRY(kiln_matrix_get_csr(row_start, col, values, A));
        TRY(convert(&values, A->type, type, A->nnz));
        TRY(ki_matrix_adopt_csr(&made, device, type, A->rows, A->cols, A->nnz, row_start, col, values));
    } else {
        TRY(kiln_matrix_get(values, A));
        TRY(convert(&values, A->type, type, A->nnz));
        TRY(ki_matrix_adopt_dense(&made, device, type, A->rows, A->cols, values));
    }
    row_start = NULL;
    col = NULL;
    values = NULL;
copied:
    TRY(copy_filled(made, A));
    *B = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    ki_free(row_start);
    ki_free(col);
    ki_free(values);
    return status;
}

int64_t kiln_matrix_rows(const kiln_matrix *A) {
    return A ? A->rows : 0;
}

int64_t kiln_matrix_cols(const kiln_matrix *A) {
    return A ? A->cols : 0;
}

int64_t kiln_matrix_nnz(const kiln_matrix *A) {
    return A ? A->nnz : 0;
}

kiln_type kiln_matrix_type(const kiln_matrix *A) {
    return A ? A->type : KILN_TYPE_DEFAULT;
}

kiln_format kiln_matrix_format(const kiln_matrix *A) {
    return A ? A->format : (kiln_format)0;
}

kiln_device *kiln_matrix_device(const kiln_matrix *A) {
    return A ? A->device : NULL;
}

kiln_status ki_matrix_fail_away(const kiln_matrix *A) {
    ki_fail(KILN_ERR_UNSUPPORTED, "the matrix's rows lie in %d processes, over which this cannot be split",
            A->device->processes->count);
    return ki_hint("one process (without --mpi), or several devices of one machine (--device cuda:all)");
}

/* One of A's arrays to host memory, wherever it lies. */
static kiln_status fetch(void *to, const kiln_matrix *A, int part) {
    if (A->here) return A->device->processes->fetch(to, A, part);
    const kiln_status status = ki_matrix_home(A);
    if (status != KILN_OK) return status;
    if (A->codes)
        return ki_codes_entries(part == KI_ROW_START ? to : NULL, part == KI_COL ? to : NULL,
                                part == KI_VALUES ? to : NULL, A);
    if (A->element && part == KI_VALUES) return ki_narrow_get(to, A, 0, A->nnz);
    const int64_t bytes = ki_matrix_part_bytes(A, part);
    kiln_matrix *owner = (kiln_matrix *)(uintptr_t)ki_matrix_owner(A, part);
    if (ki_matrix_resident(owner))
        return ki_device_download(owner->device, to, ki_matrix_part(owner, part), 0, bytes);
    if (!owner->host[part]) return ki_matrix_read(to, owner, part, 0, owner->nnz);
    memcpy(to, owner->host[part], (size_t)bytes);
    return KILN_OK;
}

kiln_status kiln_matrix_get(void *values, const kiln_matrix *A) {
    if (!A || !values) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_get: an argument is NULL");
    return fetch(values, A, KI_VALUES);
}

kiln_status kiln_matrix_set(kiln_matrix *A, const void *values) {
    if (!A || !values) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_set: an argument is NULL");
    if (!ki_matrix_resident(A) && A->file)
        return ki_fail(KILN_ERR_UNSUPPORTED, "kiln_matrix_set: the matrix lies in the file %s",
                       A->file->name);
    drop_filled(A);
    if (A->here) return A->device->processes->store(A, values);
    const kiln_status expanded = ki_matrix_expand(A);
    if (expanded != KILN_OK) return expanded;
    const int64_t bytes = ki_matrix_part_bytes(A, KI_VALUES);
    A->given = true;
    ki_slots_drop(A);
    if (!ki_matrix_resident(A)) {
        memcpy(A->host[KI_VALUES], values, (size_t)bytes);
        return KILN_OK;
    }
    ki_matrix_drop_host(A);
    return ki_device_upload(A->device, &A->values, 0, values, bytes);
}

kiln_status kiln_matrix_get_csr(int64_t *row_start, int32_t *col, void *values, const kiln_matrix *A) {
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_get_csr: A is NULL");
    if (A->format != KILN_CSR)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_get_csr: the matrix is not sparse");
    kiln_status status = KILN_OK;
    if (row_start) TRY(fetch(row_start, A, KI_ROW_START));
    if (col) TRY(fetch(col, A, KI_COL));
    if (values) TRY(fetch(values, A, KI_VALUES));
done:
    return status;
}
