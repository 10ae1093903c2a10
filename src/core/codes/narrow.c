/* Narrow values are made of wide ones, and become such again. */
#include "core/codes/narrow.h"

#include <stdatomic.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/status.h"
#include "core/threads.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define real float
#define FN(name) name##_f32
#include "core/codes/widen.h"
#undef real
#undef FN
#define real double
#define FN(name) name##_f64
#include "core/codes/widen.h"
#undef real
#undef FN

enum { WORTH_A_PART = 1 << 16, PIECE = 512 };

/* to = the numbers from[first ... first + count). */
static void widen(void *to, kiln_type type, kiln_element element, const void *from, int64_t first,
                  int64_t count) {
    if (type == KILN_F32)
        widen_f32(to, element, from, first, count);
    else
        widen_f64(to, element, from, first, count);
}

void ki_narrow_get(void *to, const kiln_matrix *A, int64_t first, int64_t count) {
    widen(to, A->type, A->codes->element, ki_host(&A->codes->numbers->values), first, count);
}

/* Bytes of a number as it lies in memory. */
static int64_t element_bytes(kiln_element element) {
    static const int8_t bytes[] = {
        [KILN_ELEMENT_U8] = 1,  [KILN_ELEMENT_I8] = 1,  [KILN_ELEMENT_U16] = 2, [KILN_ELEMENT_I16] = 2,
        [KILN_ELEMENT_F16] = 2, [KILN_ELEMENT_F32] = 4, [KILN_ELEMENT_ONE] = 0};
    return bytes[element];
}

int64_t ki_narrow_bytes(const struct ki_codes *codes) {
    const kiln_matrix *numbers = codes->numbers;
    int64_t bytes = numbers->nnz * element_bytes(codes->element);
    for (int part = KI_ROW_START; part < ki_matrix_parts(numbers); part++)
        bytes += ki_matrix_part_bytes(numbers, part);
    return bytes;
}

static bool keeps_narrow(const kiln_device *device) {
    return ki_on_cpu(device) && ki_codes_fit(device);
}

struct widening {
    char *to;
    const kiln_matrix *A;
};

static void widen_range(void *of, int64_t begin, int64_t end) {
    const struct widening *w = of;
    ki_narrow_get(w->to + begin * ki_type_bytes(w->A->type), w->A, begin, end - begin);
}

void ki_narrow_entries(int64_t *row_start, int32_t *col, void *values, const kiln_matrix *A) {
    const kiln_matrix *numbers = A->codes->numbers;
    struct widening w = {values, A};
    if (row_start) memcpy(row_start, ki_host(&numbers->row_start), (size_t)(A->rows + 1) * sizeof *row_start);
    if (col) memcpy(col, ki_host(&numbers->col), (size_t)A->nnz * sizeof *col);
    if (values) ki_parallel_ranges(A->device->threads, A->nnz, WORTH_A_PART, widen_range, &w);
}

/* A matrix's numbers elsewhere: of its shape, but without arrays yet. They are its own on success. */
static kiln_status codes_new(struct ki_codes **codes, const kiln_matrix *A, kiln_element element) {
    kiln_status status = KILN_OK;
    struct ki_codes *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "a matrix");
    made->element = element;
    TRY(ki_matrix_shell(&made->numbers, A->device, A->type, A->format, A->rows, A->cols));
    made->numbers->nnz = A->nnz;
    *codes = made;
    made = NULL;
done:
    ki_codes_free(made);
    return status;
}

/* ERR_ARGUMENT of what is no element of such a matrix, or takes no fewer bytes than the type. */
static kiln_status check_element(const char *call, kiln_element element, kiln_type type, bool sparse) {
    if (element < KILN_ELEMENT_TYPE || element > KILN_ELEMENT_ONE)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: element is %d, which is none", call, (int)element);
    if (element && sparse != (element == KILN_ELEMENT_ONE))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: element is %d, which is none of a %s matrix", call,
                       (int)element, sparse ? "sparse" : "dense");
    if (element && element_bytes(element) >= ki_type_bytes(type))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: element is f32, which is the matrix's type", call);
    return KILN_OK;
}

/* ---- making them ---- */

struct narrowing {
    const kiln_matrix *A;
    kiln_element element;
    char *to;         /* NULL: values are only looked at */
    atomic_bool lost; /* a value is no number of the element */
};

/* The half that is nearest to a number; whether it is the number, who asks finds by widening it. */
static uint16_t half_of(double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    float scaled;
    bits &= 0x7fffffffu;
    memcpy(&scaled, &bits, sizeof scaled);
    if (!(scaled < 65536.0f)) return sign | 0x7c00u;
    scaled *= 0x1p-112f;
    memcpy(&bits, &scaled, sizeof bits);
    return (uint16_t)(sign | bits >> 13);
}

/* `count` numbers to the element, of which those that are none of its numbers become any. */
#define WHOLE(type_, least, most)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                                      \
        ((type_ *)to)[i] = value[i] >= (least) && value[i] <= (most) ? (type_)value[i] : 0;                  \
    break
static void narrow_piece(void *to, kiln_element element, const double *value, int64_t count) {
    switch (element) {
    case KILN_ELEMENT_U8: WHOLE(uint8_t, 0, UINT8_MAX);
    case KILN_ELEMENT_I8: WHOLE(int8_t, INT8_MIN, INT8_MAX);
    case KILN_ELEMENT_U16: WHOLE(uint16_t, 0, UINT16_MAX);
    case KILN_ELEMENT_I16: WHOLE(int16_t, INT16_MIN, INT16_MAX);
    case KILN_ELEMENT_F16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)to)[i] = half_of(value[i]);
        break;
    case KILN_ELEMENT_F32:
        for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)value[i];
        break;
    case KILN_ELEMENT_ONE: /* there is nothing to write */
    case KILN_ELEMENT_TYPE: break;
    }
}
#undef WHOLE

/* Values [begin, end), each of which has to be itself again, with its sign: -0 is no whole number's. */
static void narrow_range(void *of, int64_t begin, int64_t end) {
    struct narrowing *n = of;
    const kiln_matrix *A = n->A;
    const int64_t element = element_bytes(n->element);
    double value[PIECE], again[PIECE];
    float room[PIECE]; /* for any element */
    for (int64_t at = begin, count; at < end && !atomic_load(&n->lost); at += count) {
        void *to = n->to ? (void *)(n->to + at * element) : room;
        count = ki_min(PIECE, end - at);
        if (A->type == KILN_F64)
            memcpy(value, (const double *)ki_host(&A->values) + at, (size_t)count * sizeof *value);
        else
            widen_f64(value, KILN_ELEMENT_F32, ki_host(&A->values), at, count);
        narrow_piece(to, n->element, value, count);
        widen_f64(again, n->element, to, 0, count);
        if (memcmp(value, again, (size_t)count * sizeof *value) != 0) atomic_store(&n->lost, true);
    }
}

static bool all_fit(const kiln_matrix *A, kiln_element element, void *to) {
    struct narrowing n = {.A = A, .element = element, .to = to};
    atomic_init(&n.lost, false);
    ki_parallel_ranges(A->device->threads, A->nnz, WORTH_A_PART, narrow_range, &n);
    return !atomic_load(&n.lost);
}

/* The first in this order that all values are numbers of. Most that fit none show it by their first
 * values. */
static kiln_element narrowest(const kiln_matrix *A) {
    static const kiln_element order[] = {KILN_ELEMENT_ONE, KILN_ELEMENT_U8,  KILN_ELEMENT_I8,
                                         KILN_ELEMENT_U16, KILN_ELEMENT_I16, KILN_ELEMENT_F16,
                                         KILN_ELEMENT_F32};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if ((order[i] == KILN_ELEMENT_ONE) == (A->format == KILN_CSR) &&
            element_bytes(order[i]) < ki_type_bytes(A->type) && all_fit(A, order[i], NULL))
            return order[i];
    return KILN_ELEMENT_TYPE;
}

static kiln_status narrow(kiln_matrix *A, kiln_element element, int *narrowed) {
    const int64_t bytes = A->nnz * element_bytes(element);
    struct ki_codes *codes = NULL;
    kiln_status status = KILN_OK;
    void *to = NULL;
    if (bytes > ki_memory_room(A->device)) return KILN_OK;
    TRY(ki_memory_make_room(A->device, bytes));
    to = ki_alloc((size_t)bytes);
    if (!to) TRY(ki_fail_nomem((size_t)bytes, "a narrow matrix"));
    if (!all_fit(A, element, to)) goto done;
    TRY(codes_new(&codes, A, element));
    ki_slots_drop(A);
    ki_device_release(A->device, &A->values);
    codes->numbers->values = (struct ki_buffer){(uintptr_t)to, bytes, 0};
    codes->numbers->row_start = A->row_start;
    codes->numbers->col = A->col;
    A->row_start = A->col = (struct ki_buffer){0, 0, 0};
    ki_memory_count(A->device, bytes);
    A->codes = codes;
    *narrowed = 1;
    to = NULL;
done:
    ki_free(to);
    return status;
}

kiln_status kiln_matrix_narrow(kiln_matrix *A, kiln_element element, int *narrowed) {
    static const char call[] = "kiln_matrix_narrow";
    int own = 0;
    kiln_status status = KILN_OK;
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "%s: A is NULL", call);
    TRY(check_element(call, element, A->type, A->format == KILN_CSR));
    const bool own_arrays = !A->lender && !A->structure && !A->users && !A->lent_out && !A->view && !A->held;
    const bool can = keeps_narrow(A->device) && ki_matrix_resident(A) && own_arrays && A->nnz > 0;
    if (can && !element) element = narrowest(A);
    if (can && element) TRY(narrow(A, element, &own));
    if (narrowed) *narrowed = own;
done:
    return status;
}

/* ---- the caller's ---- */

/* What the device does not read narrow becomes a copy of its type. */
static kiln_status wrap_wide(kiln_matrix **A, kiln_device *device, const kiln_memory *memory,
                             kiln_element element, int64_t count) {
    const size_t bytes = (size_t)(count * ki_type_bytes(memory->type));
    void *wide = ki_alloc(bytes);
    if (!wide) return ki_fail_nomem(bytes, "a widened matrix");
    widen(wide, memory->type, element, memory->values, 0, count);
    const kiln_status status =
        ki_matrix_adopt_dense(A, device, memory->type, memory->rows, memory->cols, wide);
    if (status != KILN_OK)
        ki_free(wide);
    else if (memory->release)
        memory->release(memory->user);
    return status;
}

static kiln_status wrap_here(kiln_matrix **A, kiln_device *device, const kiln_memory *memory,
                             kiln_element element, int64_t count) {
    kiln_matrix *made = NULL, *numbers;
    struct ki_lender *lender = ki_alloc(sizeof *lender);
    kiln_status status = lender ? KILN_OK : ki_fail_nomem(sizeof *lender, "a matrix");
    if (status != KILN_OK) return status;
    TRY(ki_matrix_shell(&made, device, memory->type, KILN_DENSE, memory->rows, memory->cols));
    made->nnz = count;
    made->given = true;
    TRY(codes_new(&made->codes, made, element));
    numbers = made->codes->numbers;
    numbers->values = (struct ki_buffer){(uintptr_t)memory->values, count * element_bytes(element), 0};
    numbers->lent_buffers = 1u << KI_VALUES;
    *lender = (struct ki_lender){1, memory->release, memory->user};
    numbers->lender = lender;
    lender = NULL;
    *A = made;
    made = NULL;
done:
    ki_free(lender);
    kiln_matrix_free(made);
    return status;
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
    if (!element || own.row_start || own.on_device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: values must be narrow, dense and in host memory", call);
    TRY(check_element(call, element, own.type, false));
    if (!ki_mul(own.rows, own.cols, &count) || !ki_mul(count, ki_type_bytes(own.type), &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the matrix is too large", call);
    if (count > 0 && !own.values) return ki_fail(KILN_ERR_ARGUMENT, "%s: values is NULL", call);
    if ((uintptr_t)own.values % (uintptr_t)element_bytes(element))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: values does not begin at a multiple of %d bytes", call,
                       (int)element_bytes(element));
    status = count > 0 && keeps_narrow(device) ? wrap_here(A, device, &own, element, count)
                                               : wrap_wide(A, device, &own, element, count);
done:
    return status;
}
