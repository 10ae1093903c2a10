/* Narrow values are made of wide ones, and become such again. */
#include "core/narrow/narrow.h"

#include <stdatomic.h>
#include <string.h>

#include "core/arguments.h"
#include "core/home.h"
#include "core/limits.h"
#include "core/narrow/values.h"
#include "core/narrow/widen.cl"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/threads.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define real float
#define FN(name) name##_f32
#include "core/narrow/widen.h"
#undef real
#undef FN
#define real double
#define FN(name) name##_f64
#include "core/narrow/widen.h"
#undef real
#undef FN
#include "core/narrow/pieces.h"

enum { WORTH_A_PART = 1 << 16, PIECE = 512, GROUP = 256, WIDTH = 4 /* of widen.cl */ };

KI_ARGUMENTS(widen);

void ki_widen_values(void *to, kiln_type type, kiln_element element, const void *from, int64_t first,
                     int64_t count) {
    if (type == KILN_F32)
        widen_f32(to, element, from, first, count);
    else
        widen_f64(to, element, from, first, count);
}

union number {
    float single;
    double wide;
};

/* The number that all entries are, in A's type. */
static union number same_of(const kiln_matrix *A) {
    return A->type == KILN_F32 ? (union number){.single = (float)A->same} : (union number){.wide = A->same};
}

void ki_narrow_get_here(void *to, const kiln_matrix *A, int64_t first, int64_t count) {
    const union number same = same_of(A);
    ki_widen_values(to, A->type, A->element, A->element == KILN_ELEMENT_SAME ? &same : ki_host(&A->values),
                    first, count);
}

const char *ki_element_define(const kiln_matrix *X) {
    static const char *const defines[] = {"",
                                          " -DELEMENT=1",
                                          " -DELEMENT=2",
                                          " -DELEMENT=3",
                                          " -DELEMENT=4",
                                          " -DELEMENT=5",
                                          " -DELEMENT=6",
                                          " -DELEMENT=7",
                                          " -DELEMENT=8"};
    return defines[X->element];
}

/* Packs of kernels have none that load narrow values. */
bool ki_keeps_narrow(const kiln_device *device) {
    const struct ki_backend *backend = device->backend;
    return !device->processes &&
           (!backend->compiler || backend->compiler((kiln_device *)(uintptr_t)device) == KILN_OK);
}

/* ---- widening ---- */

struct widening {
    char *to;
    kiln_type type;
    kiln_element element;
    const void *from;
};

static void widen_range(void *of, int64_t begin, int64_t end) {
    const struct widening *w = of;
    ki_widen_values(w->to + begin * ki_type_bytes(w->type), w->type, w->element, w->from, begin, end - begin);
}

static void widen_all(struct widening w, const kiln_device *device, int64_t count) {
    ki_parallel_ranges(device->threads, count, WORTH_A_PART, widen_range, &w);
}

kiln_status ki_narrow_get(void *to, const kiln_matrix *A, int64_t first, int64_t count) {
    const int64_t element = ki_element_bytes(A->element), bytes = count * element;
    struct widening w = {to, A->type, A->element, NULL};
    const union number same = same_of(A);
    const char *from = A->element == KILN_ELEMENT_SAME ? (const char *)&same
                       : ki_on_cpu(A->device)          ? ki_host(&A->values)
                                                       : A->host[KI_VALUES];
    char *fetched = NULL;
    kiln_status status = KILN_OK;
    if (!from) {
        if (!(fetched = ki_alloc((size_t)bytes))) TRY(ki_fail_nomem((size_t)bytes, "narrow values"));
        TRY(ki_device_download(A->device, fetched, &A->values, first * element, bytes));
    }
    w.from = fetched ? fetched : from + first * element;
    widen_all(w, A->device, count);
done:
    ki_free(fetched);
    return status;
}

/* On a CPU, within the device's budget. */
static kiln_status widen_here(kiln_matrix *A) {
    struct ki_buffer wide = {0, 0, 0};
    const kiln_status status = ki_device_alloc(A->device, &wide, A->nnz * ki_type_bytes(A->type));
    if (status != KILN_OK) return status;
    const union number same = same_of(A);
    const void *from = A->element == KILN_ELEMENT_SAME ? &same : ki_host(&A->values);
    widen_all((struct widening){ki_host(&wide), A->type, A->element, from}, A->device, A->nnz);
    if (!(A->lent_buffers & 1u << KI_VALUES)) ki_device_release(A->device, &A->values);
    A->lent_buffers &= ~(1u << KI_VALUES);
    A->values = wide;
    A->element = KILN_ELEMENT_TYPE;
    return KILN_OK;
}

/* On another device, where there is room for both kinds at a time. */
static kiln_status widen_there(kiln_matrix *A) {
    const int64_t groups = ki_max(ki_min(ki_ceil_div(A->nnz, GROUP * WIDTH), 1 << 16), 1);
    struct ki_buffer wide = {0, 0, 0};
    kiln_status status;
    A->held++;
    TRY(ki_device_alloc(A->device, &wide, A->nnz * ki_type_bytes(A->type)));
    if (A->element == KILN_ELEMENT_SAME) { /* the least that a device allocates has room for it */
        const union number same = same_of(A);
        TRY(ki_device_upload(A->device, &A->values, 0, &same, ki_type_bytes(A->type)));
    }
    TRY(ki_kernel_run(A->device, "widen", "widen", A->type, ki_element_define(A), groups, GROUP,
                      KI_PACK(widen, A, .to = &wide, .from = &A->values, .count = A->nnz)));
    ki_device_release(A->device, &A->values);
    ki_matrix_drop_host(A);
    A->values = wide;
    wide = (struct ki_buffer){0, 0, 0};
    A->element = KILN_ELEMENT_TYPE;
done:
    A->held--;
    ki_device_release(A->device, &wide);
    return status;
}

/* A is not on its device, for which it may be too large. */
static kiln_status widen_outside(kiln_matrix *A) {
    const size_t bytes = (size_t)(A->nnz * ki_type_bytes(A->type));
    void *wide = ki_alloc(bytes);
    if (!wide) return ki_fail_nomem(bytes, "a widened matrix");
    const union number same = same_of(A);
    const void *from = A->element == KILN_ELEMENT_SAME ? &same : A->host[KI_VALUES];
    widen_all((struct widening){wide, A->type, A->element, from}, A->device, A->nnz);
    ki_matrix_unpin(A);
    if (!(A->lent_host & 1u << KI_VALUES)) ki_free(A->host[KI_VALUES]);
    A->lent_host &= ~(1u << KI_VALUES);
    A->host[KI_VALUES] = wide;
    A->element = KILN_ELEMENT_TYPE;
    return KILN_OK;
}

kiln_status ki_matrix_widen(const kiln_matrix *matrix) {
    kiln_matrix *A = (kiln_matrix *)(uintptr_t)matrix; /* how it is kept, not what it is */
    if (!A->element) return KILN_OK;
    assert(!A->view);
    const bool shares = ki_device_shares(A->device);
    if (shares || A->format == KILN_CSR || !ki_on_cpu(A->device))
        ki_slots_drop(A); /* slices and panels are narrow */
    if (ki_on_cpu(A->device)) return widen_here(A);
    const int64_t both = A->nnz * (ki_type_bytes(A->type) + ki_element_bytes(A->element));
    kiln_status status = KILN_OK;
    if (!shares && !ki_matrix_resident(A) && both <= ki_memory_room(A->device)) status = ki_matrix_bring(A);
    if (status == KILN_OK && ki_matrix_resident(A)) status = widen_there(A);
    if (!A->element || (status != KILN_OK && status != KILN_ERR_DEVICE_NOMEM)) return status;
    status = ki_matrix_to_host(A);
    return status == KILN_OK ? widen_outside(A) : status;
}

kiln_status ki_widen_all(const kiln_matrix *const *all, size_t count) {
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < count; i++)
        if (all[i]) TRY(ki_matrix_widen(all[i]));
done:
    return status;
}

/* ---- narrowing ---- */

struct narrowing {
    kiln_type type;
    kiln_element element;
    const void *from;
    char *to;         /* NULL: values are only looked at */
    atomic_bool lost; /* a value is no number of the element */
};

/* Values [begin, end), each of which has to be itself again, bit by bit: -0 is no whole number's. */
static void narrow_range(void *of, int64_t begin, int64_t end) {
    struct narrowing *n = of;
    const int64_t element = ki_element_bytes(n->element);
    double value[PIECE], again[PIECE];
    float room[PIECE]; /* for any element */
    for (int64_t at = begin, count; at < end && !atomic_load(&n->lost); at += count) {
        void *to = n->to ? (void *)(n->to + at * element) : room;
        count = ki_min(PIECE, end - at);
        if (n->type == KILN_F64)
            memcpy(value, (const double *)n->from + at, (size_t)count * sizeof *value);
        else
            widen_f64(value, KILN_ELEMENT_F32, n->from, at, count);
        narrow_piece(to, n->element, value, count);
        widen_f64(again, n->element, to, 0, count);
        if (memcmp(value, again, (size_t)count * sizeof *value) != 0) atomic_store(&n->lost, true);
    }
}

bool ki_narrow_values(void *to, kiln_type type, kiln_element element, const void *from, int64_t count) {
    struct narrowing n = {.type = type, .element = element, .from = from, .to = to};
    narrow_range(&n, 0, count);
    return !atomic_load(&n.lost);
}

/* Values of A's type in host memory, and how many. */
struct wide {
    const kiln_device *device;
    kiln_type type;
    const void *values;
    int64_t count;
};

static bool all_fit(const struct wide *wide, kiln_element element, void *to) {
    struct narrowing n = {.type = wide->type, .element = element, .from = wide->values, .to = to};
    ki_parallel_ranges(wide->device->threads, wide->count, WORTH_A_PART, narrow_range, &n);
    return !atomic_load(&n.lost);
}

static bool is_narrower(kiln_type type, kiln_element element) {
    return ki_element_bytes(element) < ki_type_bytes(type);
}

/* The first, of which all values are numbers. Most that fit none show it by their first values. */
static kiln_element narrowest(const struct wide *wide) {
    for (kiln_element element = KILN_ELEMENT_U8; element <= KILN_ELEMENT_F32; element++)
        if (is_narrower(wide->type, element) && all_fit(wide, element, NULL)) return element;
    return KILN_ELEMENT_TYPE;
}

/* *narrow: such values as all are, in memory of their own; NULL where they are none. */
static kiln_status narrow_values(void **narrow, kiln_element *element, const struct wide *wide) {
    if (wide->count > 0 && !*element) *element = narrowest(wide);
    const size_t bytes = (size_t)(wide->count * ki_element_bytes(*element));
    if (bytes == 0) return KILN_OK;
    void *to = ki_alloc(bytes);
    if (!to) return ki_fail_nomem(bytes, "narrow values");
    if (all_fit(wide, *element, to))
        *narrow = to;
    else
        ki_free(to);
    return KILN_OK;
}

/* On a CPU, where the budget has room for both kinds at a time. */
static kiln_status narrow_here(kiln_matrix *A, kiln_element element, int *narrowed) {
    const struct wide wide = {A->device, A->type, ki_host(&A->values), A->nnz};
    struct ki_buffer to = {0, 0, 0};
    kiln_status status = KILN_OK;
    if (A->nnz == 0 || (!element && !(element = narrowest(&wide)))) return KILN_OK;
    const int64_t bytes = A->nnz * ki_element_bytes(element);
    if (bytes > ki_memory_room(A->device)) return KILN_OK;
    TRY(ki_device_alloc(A->device, &to, bytes));
    if (!all_fit(&wide, element, ki_host(&to))) goto done;
    ki_slots_drop(A);
    ki_device_release(A->device, &A->values);
    A->values = to;
    A->element = element;
    *narrowed = 1;
    to = (struct ki_buffer){0, 0, 0};
done:
    ki_device_release(A->device, &to);
    return status;
}

/* On another device, by way of host memory. */
static kiln_status narrow_there(kiln_matrix *A, kiln_element element, int *narrowed) {
    struct wide wide = {A->device, A->type, A->host[KI_VALUES], A->nnz};
    void *fetched = NULL, *narrow = NULL;
    kiln_status status;
    if (!wide.values) {
        const size_t bytes = (size_t)ki_matrix_bytes(A);
        if (!(wide.values = fetched = ki_alloc(bytes))) TRY(ki_fail_nomem(bytes, "a matrix's values"));
        TRY(kiln_matrix_get(fetched, A));
    }
    TRY(narrow_values(&narrow, &element, &wide));
    if (!narrow) goto done;
    ki_slots_drop(A);
    ki_device_release(A->device, &A->values);
    ki_matrix_drop_host(A);
    A->host[KI_VALUES] = narrow;
    A->element = element;
    *narrowed = 1;
    if (A->streams || ki_device_shares(A->device)) goto done;
    status = ki_matrix_bring(A);
    if (status == KILN_OK) ki_matrix_drop_host(A);
    if (status == KILN_ERR_DEVICE_NOMEM) status = KILN_OK;
done:
    ki_free(fetched);
    return status;
}

/* On success the values are the matrix's, on failure the caller's. */
static kiln_status adopt_narrow(kiln_matrix **A, kiln_device *device, kiln_type type, kiln_element element,
                                int64_t rows, int64_t cols, void *values) {
    void *const memory[KI_PARTS] = {values, NULL, NULL};
    kiln_matrix *made;
    kiln_status status = ki_matrix_shell(&made, device, type, KILN_DENSE, rows, cols);
    if (status != KILN_OK) return status;
    made->nnz = rows * cols;
    made->element = element;
    status = ki_matrix_place(made, memory);
    if (status == KILN_OK)
        *A = made;
    else
        kiln_matrix_free(made);
    return status;
}

/* Returns whether fewer bytes make up for kernels that have to be compiled. */
static bool is_worth_it(const kiln_device *device, kiln_type type, int64_t count) {
    return (ki_on_cpu(device) || count * ki_type_bytes(type) >= ki_limits.narrow_bytes) &&
           ki_keeps_narrow(device);
}

kiln_status ki_narrow_copy(kiln_matrix **B, kiln_device *device, kiln_type type, const kiln_matrix *A) {
    const size_t bytes = (size_t)ki_matrix_bytes(A);
    kiln_status status = KILN_OK;
    if (A->element == KILN_ELEMENT_SAME) return ki_same_copy(B, device, type, A);
    if (!is_narrower(type, A->element) || !is_worth_it(device, type, A->nnz)) return KILN_OK;
    void *values = ki_alloc(bytes);
    if (!values) return ki_fail_nomem(bytes, "a copy of a matrix");
    if (ki_on_cpu(A->device))
        memcpy(values, ki_host(&A->values), bytes);
    else if (ki_matrix_resident(A))
        TRY(ki_device_download(A->device, values, &A->values, 0, (int64_t)bytes));
    else
        memcpy(values, A->host[KI_VALUES], bytes);
    TRY(adopt_narrow(B, device, type, A->element, A->rows, A->cols, values));
    return KILN_OK;
done:
    ki_free(values);
    return status;
}

kiln_status ki_matrix_adopt_read(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                 int64_t cols, void *values) {
    const struct wide wide = {device, type, values, rows * cols};
    kiln_element element = KILN_ELEMENT_TYPE;
    void *narrow = NULL;
    kiln_status status = KILN_OK;
    if (is_worth_it(device, type, wide.count)) TRY(narrow_values(&narrow, &element, &wide));
    if (!narrow) return ki_matrix_adopt_dense(A, device, type, rows, cols, values);
    TRY(adopt_narrow(A, device, type, element, rows, cols, narrow));
    ki_free(values);
    narrow = NULL;
done:
    ki_free(narrow);
    return status;
}

static kiln_status check_element(const char *call, kiln_element element, kiln_type type) {
    if (element < KILN_ELEMENT_TYPE || element > KILN_ELEMENT_SAME)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no element has the number %d", call, (int)element);
    if (ki_element_bytes(element) >= ki_type_bytes(type))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the element is f32, which is the matrix's type", call);
    return KILN_OK;
}

kiln_status kiln_matrix_narrow(kiln_matrix *A, kiln_element element, int *narrowed) {
    static const char call[] = "kiln_matrix_narrow";
    int own = 0;
    kiln_status status;
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "%s: A is NULL", call);
    TRY(check_element(call, element, A->type));
    const bool sparse = A->format == KILN_CSR, alone = !A->lent_out && !A->view && !A->held && !A->file;
    const bool can = alone && !A->element && !A->codes && !A->here && !A->device->processes;
    if (can && sparse && (!element || element == KILN_ELEMENT_SAME))
        TRY(ki_narrow_entries(A, &own));
    else if (can && !sparse && element != KILN_ELEMENT_SAME && !A->lender && !ki_is_away(A) &&
             ki_keeps_narrow(A->device))
        TRY((ki_on_cpu(A->device) ? narrow_here : narrow_there)(A, element, &own));
    if (narrowed) *narrowed = own;
done:
    return status;
}

/* ---- the caller's ---- */

/* A device that does not read narrow values, or few of them, gets a copy in its type. */
static kiln_status wrap_wide(kiln_matrix **A, kiln_device *device, const kiln_memory *memory,
                             kiln_element element, int64_t count) {
    const size_t bytes = (size_t)(count * ki_type_bytes(memory->type));
    void *wide = ki_alloc(bytes);
    if (!wide) return ki_fail_nomem(bytes, "a widened matrix");
    widen_all((struct widening){wide, memory->type, element, memory->values}, device, count);
    const kiln_status status =
        ki_matrix_adopt_dense(A, device, memory->type, memory->rows, memory->cols, wide);
    if (status != KILN_OK)
        ki_free(wide);
    else if (memory->release)
        memory->release(memory->user);
    return status;
}

/* Another that reads narrow values gets a copy of them. */
static kiln_status wrap_there(kiln_matrix **A, kiln_device *device, const kiln_memory *memory,
                              kiln_element element, int64_t count) {
    const size_t bytes = (size_t)(count * ki_element_bytes(element));
    void *values = ki_alloc(bytes);
    if (!values) return ki_fail_nomem(bytes, "narrow values");
    memcpy(values, memory->values, bytes);
    const kiln_status status =
        adopt_narrow(A, device, memory->type, element, memory->rows, memory->cols, values);
    if (status != KILN_OK)
        ki_free(values);
    else if (memory->release)
        memory->release(memory->user);
    return status;
}

static kiln_status wrap_here(kiln_matrix **A, kiln_device *device, const kiln_memory *memory,
                             kiln_element element, int64_t count) {
    struct ki_lender *lender = ki_alloc(sizeof *lender);
    kiln_matrix *made;
    if (!lender) return ki_fail_nomem(sizeof *lender, "a matrix");
    const kiln_status status =
        ki_matrix_shell(&made, device, memory->type, KILN_DENSE, memory->rows, memory->cols);
    if (status != KILN_OK) {
        ki_free(lender);
        return status;
    }
    *lender = (struct ki_lender){1, memory->release, memory->user};
    made->nnz = count;
    made->given = true;
    made->values = (struct ki_buffer){(uintptr_t)memory->values, count * ki_element_bytes(element), 0};
    made->element = element;
    made->lender = lender;
    made->lent_buffers = 1u << KI_VALUES;
    *A = made;
    return KILN_OK;
}

kiln_status kiln_matrix_wrap_narrow(kiln_matrix **A, kiln_device *device, const kiln_memory *memory,
                                    kiln_element element) {
    static const char call[] = "kiln_matrix_wrap_narrow";
    kiln_memory own;
    kiln_status status;
    int64_t count, bytes;
    if (!A || !memory) return ki_fail(KILN_ERR_ARGUMENT, "%s: A or memory is NULL", call);
    TRY(KI_TAKE(kiln_memory, &own, memory));
    TRY(ki_check_shape(device, own.type, own.rows, own.cols));
    if (!element || element == KILN_ELEMENT_SAME || own.row_start || own.on_device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: values must be narrow, dense and in host memory", call);
    TRY(check_element(call, element, own.type));
    if (!ki_mul(own.rows, own.cols, &count) || !ki_mul(count, ki_type_bytes(own.type), &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the matrix is too large", call);
    if (count > 0 && !own.values) return ki_fail(KILN_ERR_ARGUMENT, "%s: values is NULL", call);
    if ((uintptr_t)own.values % (uintptr_t)ki_element_bytes(element))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: values does not begin at a multiple of %d bytes", call,
                       (int)ki_element_bytes(element));
    status = (count == 0 || !is_worth_it(device, own.type, count) ? wrap_wide
              : ki_on_cpu(device)                                 ? wrap_here
                                  : wrap_there)(A, device, &own, element, count);
done:
    return status;
}
