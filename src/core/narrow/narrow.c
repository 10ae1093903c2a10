/* Narrow values are made of wide ones, and become such again. */
#include "core/narrow/narrow.h"

#include <stdatomic.h>
#include <string.h>

#include "core/home.h"
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

enum { WORTH_A_PART = 1 << 16, PIECE = 512, LENT = 1u << KI_PARTS /* of lent_buffers: A->narrow */ };

/* to = the numbers from[first ... first + count). */
static void widen(void *to, kiln_type type, kiln_element element, const void *from, int64_t first,
                  int64_t count) {
    if (type == KILN_F32)
        widen_f32(to, element, from, first, count);
    else
        widen_f64(to, element, from, first, count);
}

void ki_narrow_get(void *to, const kiln_matrix *A, int64_t first, int64_t count) {
    widen(to, A->type, A->element, ki_host(&A->narrow), first, count);
}

int64_t ki_element_bytes(kiln_element element) {
    static const int8_t bytes[] = {
        [KILN_ELEMENT_TYPE] = 0, [KILN_ELEMENT_U8] = 1,  [KILN_ELEMENT_I8] = 1,   [KILN_ELEMENT_U16] = 2,
        [KILN_ELEMENT_I16] = 2,  [KILN_ELEMENT_F16] = 2, [KILN_ELEMENT_BF16] = 2, [KILN_ELEMENT_F32] = 4};
    return bytes[element];
}

/* The first member of a group, and of processes, holds X for others, whose kernels know no narrow values. */
static bool keeps_narrow(const kiln_device *device) {
    return ki_on_cpu(device) && !ki_device_shares(device);
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
    widen(w->to + begin * ki_type_bytes(w->type), w->type, w->element, w->from, begin, end - begin);
}

static void widen_all(struct widening w, const kiln_device *device, int64_t count) {
    ki_parallel_ranges(device->threads, count, WORTH_A_PART, widen_range, &w);
}

void ki_narrow_get_all(void *to, const kiln_matrix *A) {
    widen_all((struct widening){to, A->type, A->element, ki_host(&A->narrow)}, A->device, A->nnz);
}

void ki_narrow_release(kiln_matrix *A) {
    if (!(A->lent_buffers & LENT)) ki_device_release(A->device, &A->narrow);
    A->narrow = (struct ki_buffer){0, 0, 0};
    A->lent_buffers &= ~(unsigned)LENT;
    A->element = KILN_ELEMENT_TYPE;
}

kiln_status ki_matrix_widen(const kiln_matrix *matrix) {
    kiln_matrix *A = (kiln_matrix *)(uintptr_t)matrix; /* how it is kept, not what it is */
    if (!A->element) return KILN_OK;
    const kiln_status status = ki_device_alloc(A->device, &A->values, A->nnz * ki_type_bytes(A->type));
    if (status != KILN_OK) return status;
    ki_narrow_get_all(ki_host(&A->values), A);
    ki_narrow_release(A);
    return KILN_OK;
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

static uint16_t brain_of(double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)(bits >> 16);
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
    case KILN_ELEMENT_BF16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)to)[i] = brain_of(value[i]);
        break;
    case KILN_ELEMENT_F32:
        for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)value[i];
        break;
    case KILN_ELEMENT_TYPE: break;
    }
}
#undef WHOLE

/* Values [begin, end), each of which has to be itself again, bit by bit: -0 is no whole number's. */
static void narrow_range(void *of, int64_t begin, int64_t end) {
    struct narrowing *n = of;
    const kiln_matrix *A = n->A;
    const int64_t element = ki_element_bytes(n->element);
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

static bool is_narrower(const kiln_matrix *A, kiln_element element) {
    return ki_element_bytes(element) < ki_type_bytes(A->type);
}

/* The first, of which all values are numbers. Most that fit none show it by their first values. */
static kiln_element narrowest(const kiln_matrix *A) {
    for (kiln_element element = KILN_ELEMENT_U8; element <= KILN_ELEMENT_F32; element++)
        if (is_narrower(A, element) && all_fit(A, element, NULL)) return element;
    return KILN_ELEMENT_TYPE;
}

static kiln_status narrow(kiln_matrix *A, kiln_element element, int *narrowed) {
    const int64_t bytes = A->nnz * ki_element_bytes(element);
    struct ki_buffer to = {0, 0, 0};
    kiln_status status = KILN_OK;
    if (bytes > ki_memory_room(A->device)) return KILN_OK;
    TRY(ki_device_alloc(A->device, &to, bytes));
    if (!all_fit(A, element, ki_host(&to))) goto done;
    ki_slots_drop(A);
    ki_device_release(A->device, &A->values);
    A->narrow = to;
    A->element = element;
    *narrowed = 1;
    to = (struct ki_buffer){0, 0, 0};
done:
    ki_device_release(A->device, &to);
    return status;
}

static kiln_status check_element(const char *call, kiln_element element, kiln_type type) {
    if (element < KILN_ELEMENT_TYPE || element > KILN_ELEMENT_F32)
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
    const bool alone = !A->lender && !A->lent_out && !A->view && !A->held && !ki_is_away(A);
    const bool can = keeps_narrow(A->device) && A->format == KILN_DENSE && ki_matrix_resident(A) && alone;
    if (can && A->nnz > 0 && !element) element = narrowest(A);
    if (can && A->nnz > 0 && element) TRY(narrow(A, element, &own));
    if (narrowed) *narrowed = own;
done:
    return status;
}

/* ---- the caller's ---- */

/* A device that does not read narrow values gets a copy in its type. */
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
    made->narrow = (struct ki_buffer){(uintptr_t)memory->values, count * ki_element_bytes(element), 0};
    made->element = element;
    made->lender = lender;
    made->lent_buffers = LENT;
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
    if (!element || own.row_start || own.on_device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: values must be narrow, dense and in host memory", call);
    TRY(check_element(call, element, own.type));
    if (!ki_mul(own.rows, own.cols, &count) || !ki_mul(count, ki_type_bytes(own.type), &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the matrix is too large", call);
    if (count > 0 && !own.values) return ki_fail(KILN_ERR_ARGUMENT, "%s: values is NULL", call);
    if ((uintptr_t)own.values % (uintptr_t)ki_element_bytes(element))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: values does not begin at a multiple of %d bytes", call,
                       (int)ki_element_bytes(element));
    status = count > 0 && keeps_narrow(device) ? wrap_here(A, device, &own, element, count)
                                               : wrap_wide(A, device, &own, element, count);
done:
    return status;
}
