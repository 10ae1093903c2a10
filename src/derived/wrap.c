/* A matrix over the caller's memory. Host memory is the CPU's values, row starts and columns themselves, and
 * to a GPU a host copy that is valid until the matrix is written to; device memory is used where it lies.
 * What is lent is never written but as the matrix is, never freed, and returned once: when the matrix and all
 * that share its structure are gone. */
#include <string.h>

#include "core/arguments.h"
#include "core/limits.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(columns_ascend);
KI_ARGUMENTS(starts_widen);

struct wrap {
    kiln_device *device;
    const kiln_memory *memory;
    bool in_place;         /* device memory */
    bool large, widen;     /* so much there that the device checks it, and widens row starts */
    int64_t nnz, *start;   /* row starts in host memory, ours; NULL: the caller's serve */
    void *array[KI_PARTS]; /* what the matrix gets */
    unsigned lent;         /* of these, the caller's */
};

static kiln_status check_place(struct wrap *w) {
    const kiln_memory *memory = w->memory;
    w->in_place = memory->on_device && !ki_on_cpu(w->device);
    if (w->in_place && ki_device_shares(w->device)) { /* others would write past the members' copies */
        ki_fail(KILN_ERR_UNSUPPORTED, "kiln_matrix_wrap: %s is a group of devices", w->device->info.name);
        return ki_hint("host memory, or one of the devices");
    }
    if (!w->in_place || w->device->properties.addresses) return KILN_OK;
    ki_fail(KILN_ERR_UNSUPPORTED, "kiln_matrix_wrap: device %s has no pointers into its memory",
            w->device->info.name);
    return ki_hint("host memory, or a cuda device");
}

/* NULL passes: whether there should be something is known later. */
static kiln_status check_alignment(const void *array, int64_t element, const char *name) {
    if ((uintptr_t)array % (uintptr_t)element == 0) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_wrap: %s does not begin at a multiple of %lld bytes", name,
            (long long)element);
    return ki_hint("copy it: kiln_matrix_dense, kiln_matrix_csr");
}

static kiln_status check_arrays(const struct wrap *w) {
    const kiln_memory *memory = w->memory;
    const int bits = memory->row_start_bits;
    const int64_t align = w->in_place ? w->device->properties.align : 1;
    kiln_status status;
    if (bits != 0 && bits != 32 && bits != 64)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_wrap: row_start_bits is %d, but must be 32 or 64",
                       bits);
    TRY(check_alignment(memory->values, ki_max(align, ki_type_bytes(memory->type)), "values"));
    TRY(check_alignment(memory->col, ki_max(align, 4), "col"));
    TRY(check_alignment(memory->row_start, ki_max(align, bits == 32 ? 4 : 8), "row_start"));
done:
    return status;
}

/* An array of the caller's in host memory: itself, or what *copy then has to be freed. */
static kiln_status to_host(const void **array, void **copy, const struct wrap *w, const void *from,
                           int64_t bytes) {
    *array = from;
    if (!w->in_place || bytes == 0) return KILN_OK;
    const struct ki_buffer buffer = {(uintptr_t)from, bytes, 0};
    *copy = ki_alloc((size_t)bytes);
    if (!*copy) return ki_fail_nomem((size_t)bytes, "the check of a matrix in device memory");
    *array = *copy;
    return ki_device_download(w->device, *copy, &buffer, 0, bytes);
}

static kiln_status check_columns(const struct wrap *w, const int64_t *start) {
    const void *col;
    void *copy = NULL;
    kiln_status status;
    TRY(ki_csr_check_starts(start, w->memory->rows));
    TRY(to_host(&col, &copy, w, w->memory->col, w->nnz * 4));
    TRY(ki_csr_check_columns(start, col, w->memory->rows, w->memory->cols));
done:
    ki_free(copy);
    return status;
}

/* Finds whether row starts and each row's columns ascend, and these lie in the matrix: the device itself sees
 * it in one pass. */
static kiln_status columns_ascend(bool *ascend, const kiln_matrix *A) {
    struct ki_buffer found = {0};
    int32_t wrong = 0;
    kiln_status status;
    TRY(ki_device_alloc(A->device, &found, 4));
    TRY(ki_device_upload(A->device, &found, 0, &wrong, 4));
    TRY(ki_derive_for_all(A->device, "columns_ascend", "-DASCEND", KILN_F32, ki_max(A->nnz, A->rows),
                          KI_PACK(columns_ascend, NULL, .found = &found, .row_start = &A->row_start,
                                  .col = &A->col, .rows = A->rows, .cols = A->cols, .nnz = A->nnz)));
    TRY(ki_number_at(&wrong, A->device, &found, 0));
    *ascend = !wrong;
done:
    ki_device_release(A->device, &found);
    return status;
}

/* Columns in another order may be right all the same: the host looks at each row, and says what is wrong. */
static kiln_status check_large(const struct wrap *w, const kiln_matrix *A) {
    const int64_t bytes = (A->rows + 1) * 8;
    void *start = NULL;
    bool ascend = false;
    kiln_status status;
    TRY(columns_ascend(&ascend, A));
    if (ascend) return KILN_OK;
    start = ki_alloc((size_t)bytes);
    if (!start) TRY(ki_fail_nomem((size_t)bytes, "the check of a matrix in device memory"));
    TRY(ki_device_download(A->device, start, &A->row_start, 0, bytes));
    TRY(check_columns(w, start));
done:
    ki_free(start);
    return status;
}

/* The first and the last row start, of device memory. */
static kiln_status read_ends(int64_t ends[2], const struct wrap *w) {
    const int64_t bytes = w->memory->row_start_bits == 32 ? 4 : 8, rows = w->memory->rows;
    const struct ki_buffer starts = {(uintptr_t)w->memory->row_start, (rows + 1) * bytes, 0};
    int32_t narrow = 0;
    kiln_status status = KILN_OK;
    for (int i = 0; i < 2; i++) {
        TRY(ki_device_download(w->device, bytes == 4 ? (void *)&narrow : &ends[i], &starts, i * rows * bytes,
                               bytes));
        if (bytes == 4) ends[i] = narrow;
    }
done:
    return status;
}

static kiln_status check_ends(struct wrap *w, const int64_t ends[2]) {
    w->nnz = ends[1];
    if (ends[0] != 0 || w->nnz < 0)
        return ki_fail(KILN_ERR_DATA, "row_start begins with %lld and ends with %lld, but must begin with 0",
                       (long long)ends[0], (long long)w->nnz);
    if (w->nnz > 0 && !w->memory->col) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_wrap: col is NULL");
    return KILN_OK;
}

/* Row starts of 32 bits are widened, which takes little beside what they point to. */
static kiln_status take_starts(struct wrap *w) {
    const kiln_memory *memory = w->memory;
    const bool narrow = memory->row_start_bits == 32;
    const int64_t count = memory->rows + 1;
    const void *given = NULL;
    void *copy = NULL;
    int64_t ends[2];
    kiln_status status;
    if (w->in_place) {
        TRY(read_ends(ends, w));
        w->large = ki_max(memory->rows, ends[1]) >= ki_limits.rows_entries;
        w->widen = w->large && narrow;
        if (w->large) return check_ends(w, ends);
    }
    TRY(to_host(&given, &copy, w, memory->row_start, count * (narrow ? 4 : 8)));
    if (narrow) {
        w->start = ki_alloc((size_t)count * 8);
        if (!w->start) TRY(ki_fail_nomem((size_t)count * 8, "row starts of 64 bits"));
        for (int64_t i = 0; i < count; i++) w->start[i] = ((const int32_t *)given)[i];
    }
    const int64_t *start = narrow ? w->start : given;
    TRY(check_ends(w, (const int64_t[]){start[0], start[memory->rows]}));
    if (!memory->trusted) TRY(check_columns(w, start));
done:
    ki_free(copy);
    return status;
}

/* The caller's arrays, or in place of empty ones and of narrow row starts our own. */
static kiln_status take_arrays(struct wrap *w, const kiln_matrix *A) {
    const kiln_memory *memory = w->memory;
    void *const given[KI_PARTS] = {memory->values, (void *)(uintptr_t)memory->row_start,
                                   (void *)(uintptr_t)memory->col};
    w->array[KI_ROW_START] = w->start;
    w->start = NULL;
    for (int part = 0; part < ki_matrix_parts(A); part++) {
        if (w->array[part] || (w->widen && part == KI_ROW_START)) continue;
        w->array[part] = ki_matrix_part_bytes(A, part) > 0 ? given[part] : ki_alloc(0);
        if (!w->array[part]) return ki_fail_nomem(1, "an empty array");
        if (ki_matrix_part_bytes(A, part) > 0) w->lent |= 1u << part;
    }
    return KILN_OK;
}

/* Device memory, or the CPU's: what is not lent is counted, and uploaded. */
static kiln_status place_here(kiln_matrix *A, struct wrap *w) {
    kiln_status status = KILN_OK;
    A->lent_buffers = w->lent;
    for (int part = 0; part < ki_matrix_parts(A); part++) {
        struct ki_buffer *buffer = ki_matrix_part(A, part);
        const int64_t bytes = ki_matrix_part_bytes(A, part);
        const bool lent = w->lent & 1u << part;
        if (lent || ki_on_cpu(A->device)) {
            *buffer = (struct ki_buffer){(uintptr_t)w->array[part], bytes, 0};
            w->array[part] = NULL;
            if (!lent) ki_memory_count(A->device, bytes);
        } else if (w->widen && part == KI_ROW_START) {
            const struct ki_buffer narrow = {(uintptr_t)w->memory->row_start, bytes / 2, 0};
            TRY(ki_device_alloc(A->device, buffer, bytes));
            TRY(ki_derive_for_all(
                A->device, "starts_widen", "-DASCEND", KILN_F32, bytes / 8,
                KI_PACK(starts_widen, NULL, .to = buffer, .from = &narrow, .n = bytes / 8)));
        } else {
            TRY(ki_device_alloc(A->device, buffer, bytes));
            TRY(ki_device_upload(A->device, buffer, 0, w->array[part], bytes));
        }
    }
done:
    return status;
}

static void place_on_host(kiln_matrix *A, struct wrap *w) {
    A->lent_host = w->lent;
    memcpy(A->host, w->array, sizeof A->host);
    memset(w->array, 0, sizeof w->array);
}

static kiln_status wrap(kiln_matrix **A, struct wrap *w) {
    const kiln_memory *memory = w->memory;
    const kiln_format format = memory->row_start ? KILN_CSR : KILN_DENSE;
    kiln_matrix *made = NULL;
    struct ki_lender *lender = NULL;
    kiln_status status;
    int64_t bytes;
    TRY(ki_matrix_shell(&made, w->device, memory->type, format, memory->rows, memory->cols));
    TRY(check_place(w));
    TRY(check_arrays(w));
    if (w->in_place) TRY(ki_device_settle(w->device)); /* before anything of it is read */
    if (memory->rows >= INT64_MAX / 8)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%lld rows are too many", (long long)memory->rows));
    if (format == KILN_CSR)
        TRY(take_starts(w));
    else if (!ki_mul(memory->rows, memory->cols, &w->nnz))
        w->nnz = INT64_MAX;
    if (!ki_mul(w->nnz, 8, &bytes))
        TRY(ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_wrap: the matrix is too large"));
    if (w->nnz > 0 && !memory->values) TRY(ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_wrap: values is NULL"));
    made->nnz = w->nnz;
    lender = ki_alloc(sizeof *lender);
    if (!lender) TRY(ki_fail_nomem(sizeof *lender, "a matrix"));
    TRY(take_arrays(w, made));
    if (w->in_place || ki_on_cpu(w->device))
        TRY(place_here(made, w));
    else
        place_on_host(made, w);
    if (w->large && !memory->trusted) TRY(check_large(w, made));
    *lender = (struct ki_lender){1, memory->release, memory->user};
    made->lender = lender;
    made->given = true;
    *A = made;
    made = NULL;
    lender = NULL;
done:
    ki_free(lender);
    kiln_matrix_free(made);
    return status;
}

kiln_status kiln_matrix_wrap(kiln_matrix **A, kiln_device *device, const kiln_memory *memory) {
    if (!A || !memory) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_wrap: A or memory is NULL");
    kiln_memory own;
    struct wrap w = {.device = device, .memory = &own};
    kiln_status status = KI_TAKE(kiln_memory, &own, memory);
    if (status == KILN_OK) status = wrap(A, &w);
    ki_free(w.start);
    for (int part = 0; part < KI_PARTS; part++)
        if (!(w.lent & 1u << part)) ki_free(w.array[part]);
    return status;
}
