/* Matrices whose values take fewer bytes than their type: which values fit which numbers, what the
 * matrices say they are and take, that operations widen them, whole or not at all, and what is refused. */
#include <math.h>
#include <string.h>

#include "backends/check.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "faults/brutal.h"
#include "kiln/codes.h"

enum { ROWS = 300, COLS = 7, ALL = 1 << 16 };

static kiln_device *device;

static int open_device(void **state) {
    (void)state;
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

static int64_t used(void) {
    kiln_device_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(kiln_device_get_statistics(device, &statistics), KILN_OK);
    return statistics.memory_used;
}

static kiln_storage storage_of(const kiln_matrix *A) {
    kiln_storage storage = {.size = sizeof storage};
    assert_int_equal(kiln_matrix_get_storage(&storage, A), KILN_OK);
    return storage;
}

/* Every number of every element is itself in both types. The standard's ldexp says what a half is. */
static double half_is(unsigned bits) {
    const int exponent = (int)(bits >> 10 & 31u);
    const double mantissa = (double)(bits & 1023u), sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) return mantissa > 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25));
}

static double brain_is(unsigned bits) {
    const int exponent = (int)(bits >> 7 & 255u);
    const double mantissa = (double)(bits & 127u), sign = bits >> 15 ? -1 : 1;
    if (exponent == 255) return mantissa > 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent == 0 ? ldexp(mantissa, -133) : ldexp(128 + mantissa, exponent - 134));
}

static double is(kiln_element element, unsigned bits) {
    switch (element) {
    case KILN_ELEMENT_U8: return (double)(uint8_t)bits;
    case KILN_ELEMENT_I8: return (double)(int8_t)bits;
    case KILN_ELEMENT_U16: return (double)(uint16_t)bits;
    case KILN_ELEMENT_I16: return (double)(int16_t)bits;
    case KILN_ELEMENT_F16: return half_is(bits);
    default: return brain_is(bits);
    }
}

static void all_numbers(void **state) {
    (void)state;
    static uint16_t bits[ALL];
    static uint8_t bytes[ALL];
    static double wide[ALL];
    static float single[ALL];
    for (unsigned i = 0; i < ALL; i++) {
        bits[i] = (uint16_t)i;
        bytes[i] = (uint8_t)i;
    }
    for (kiln_element e = KILN_ELEMENT_U8; e <= KILN_ELEMENT_BF16; e++) {
        kiln_memory memory = {.size = sizeof memory, .rows = 256, .cols = ALL / 256};
        memory.values = e <= KILN_ELEMENT_I8 ? (void *)bytes : bits;
        for (memory.type = KILN_F32; memory.type <= KILN_F64; memory.type++) {
            kiln_matrix *A = NULL;
            assert_int_equal(kiln_matrix_wrap_narrow(&A, device, &memory, e), KILN_OK);
            assert_int_equal(kiln_matrix_get(memory.type == KILN_F32 ? (void *)single : wide, A), KILN_OK);
            kiln_matrix_free(A);
        }
        for (unsigned i = 0; i < ALL; i++) {
            const double expected = is(e, i);
            if (isnan(expected)) {
                assert_true(isnan(wide[i]) && isnan(single[i]));
                continue;
            }
            assert_true(wide[i] == expected && (double)single[i] == expected);
            assert_int_equal(signbit(wide[i]) != 0, signbit(expected) != 0);
            assert_int_equal(signbit(single[i]) != 0, signbit(expected) != 0);
        }
    }
}

static int64_t bytes_of(kiln_element element, kiln_type type) {
    return element ? ki_element_bytes(element) : ki_type_bytes(type);
}

static kiln_matrix *make(kiln_type type, const double *values, int64_t rows, int64_t cols) {
    float *single = ki_alloc((size_t)(rows * cols) * sizeof *single);
    kiln_matrix *A = NULL;
    assert_non_null(single);
    for (int64_t i = 0; i < rows * cols; i++) single[i] = (float)values[i];
    assert_int_equal(
        kiln_matrix_dense(&A, device, type, rows, cols, type == KILN_F32 ? (const void *)single : values),
        KILN_OK);
    ki_free(single);
    return A;
}

static void assert_values(const kiln_matrix *A, const double *values) {
    static double wide[ALL];
    static float single[ALL];
    assert_int_equal(kiln_matrix_get(A->type == KILN_F32 ? (void *)single : wide, A), KILN_OK);
    for (int64_t i = 0; i < A->nnz; i++)
        assert_true((A->type == KILN_F32 ? (double)single[i] : wide[i]) == values[i]);
}

/* The narrowest that holds all, at the ends of each range and one beyond. */
static void found(void **state) {
    (void)state;
    static const struct {
        double a, b;
        kiln_element f64, f32;
    } cases[] = {{0, 255, KILN_ELEMENT_U8, KILN_ELEMENT_U8},
                 {-128, 127, KILN_ELEMENT_I8, KILN_ELEMENT_I8},
                 {-1, 128, KILN_ELEMENT_I16, KILN_ELEMENT_I16},
                 {0, 256, KILN_ELEMENT_U16, KILN_ELEMENT_U16},
                 {0, 65535, KILN_ELEMENT_U16, KILN_ELEMENT_U16},
                 {-1, 32767, KILN_ELEMENT_I16, KILN_ELEMENT_I16},
                 {-32768, 5, KILN_ELEMENT_I16, KILN_ELEMENT_I16},
                 {-1, 65535, KILN_ELEMENT_F32, KILN_ELEMENT_TYPE},
                 {0.5, -65504, KILN_ELEMENT_F16, KILN_ELEMENT_F16},
                 {0.5, 65519, KILN_ELEMENT_F32, KILN_ELEMENT_TYPE},
                 {-0.0, 1, KILN_ELEMENT_F16, KILN_ELEMENT_F16},
                 {0x1p-24, -0x1.ff8p-15, KILN_ELEMENT_F16, KILN_ELEMENT_F16},
                 {0x1p-25, 1, KILN_ELEMENT_BF16, KILN_ELEMENT_BF16},
                 {-0x1.fep127, 0x1p-133, KILN_ELEMENT_BF16, KILN_ELEMENT_BF16},
                 {0x1.01p127, 0x1p-140, KILN_ELEMENT_F32, KILN_ELEMENT_TYPE},
                 {0x1.002p0, 1, KILN_ELEMENT_F32, KILN_ELEMENT_TYPE},
                 {0.25f + 0x1p-24f, 1, KILN_ELEMENT_F32, KILN_ELEMENT_TYPE},
                 {0.1, 1, KILN_ELEMENT_TYPE, KILN_ELEMENT_TYPE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            double values[ROWS * COLS];
            const kiln_element expected = type == KILN_F32 ? cases[i].f32 : cases[i].f64;
            int narrowed = -1;
            for (int j = 0; j < ROWS * COLS; j++) values[j] = 1;
            values[0] = cases[i].a;
            values[ROWS * COLS - 1] = type == KILN_F32 ? (double)(float)cases[i].b : cases[i].b;
            if (type == KILN_F32) values[0] = (double)(float)values[0];
            kiln_matrix *A = make(type, values, ROWS, COLS);
            assert_int_equal(kiln_matrix_narrow(A, KILN_ELEMENT_TYPE, &narrowed), KILN_OK);
            assert_int_equal(storage_of(A).element, expected);
            assert_int_equal(narrowed, expected != KILN_ELEMENT_TYPE);
            assert_int_equal(storage_of(A).bytes, ROWS * COLS * bytes_of(expected, type));
            assert_int_equal(used(), storage_of(A).bytes);
            assert_int_equal(kiln_matrix_type(A), type);
            assert_values(A, values);
            kiln_matrix_free(A);
            assert_int_equal(used(), 0);
        }
}

/* A matrix with one value that does not fit stays as it is. */
static void not_lossless(void **state) {
    (void)state;
    double values[ROWS * COLS];
    int narrowed = -1;
    for (int i = 0; i < ROWS * COLS; i++) values[i] = i % 250;
    values[ROWS * COLS - 2] = (double)NAN;
    kiln_matrix *A = make(KILN_F64, values, ROWS, COLS);
    for (kiln_element e = KILN_ELEMENT_U8; e <= KILN_ELEMENT_F16; e++) {
        assert_int_equal(kiln_matrix_narrow(A, e, &narrowed), KILN_OK);
        assert_int_equal(narrowed, 0);
        assert_int_equal(storage_of(A).element, KILN_ELEMENT_TYPE);
    }
    assert_int_equal(kiln_matrix_narrow(A, KILN_ELEMENT_TYPE, &narrowed), KILN_OK);
    assert_int_equal(storage_of(A).element, KILN_ELEMENT_BF16); /* which has NaN */
    double again[ROWS * COLS];
    assert_int_equal(kiln_matrix_get(again, A), KILN_OK);
    assert_memory_equal(again, values, sizeof values);
    kiln_matrix_free(A);
}

/* Passes leave X narrow; what wants all of it widens it, and values that are set are wide. */
static void widened_once(void **state) {
    (void)state;
    double values[ROWS * COLS], row[COLS];
    static const int64_t rows[] = {0, ROWS - 1};
    kiln_matrix *Y = NULL, *W = NULL, *R = NULL, *B = NULL, *G = NULL;
    for (int i = 0; i < ROWS * COLS; i++) values[i] = i * 37 % 256;
    kiln_matrix *A = make(KILN_F64, values, ROWS, COLS);
    assert_int_equal(kiln_matrix_narrow(A, KILN_ELEMENT_TYPE, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&Y, device, KILN_F64, COLS, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&W, device, KILN_F64, COLS, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&R, device, KILN_F64, 2, COLS, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&G, device, KILN_F64, COLS, COLS, NULL), KILN_OK);
    assert_int_equal(kiln_mmchain(W, 1, A, NULL, Y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_gram_diagonal(W, A, NULL), KILN_OK);
    assert_int_equal(kiln_gram(G, NULL, A, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&B, device, KILN_F32, A), KILN_OK);
    assert_int_equal(storage_of(A).element, KILN_ELEMENT_U8);
    assert_values(B, values);
    assert_int_equal(kiln_rows(R, A, rows), KILN_OK);
    assert_int_equal(storage_of(A).element, KILN_ELEMENT_TYPE);
    assert_int_equal(storage_of(A).bytes, ROWS * COLS * 8);
    assert_values(A, values);
    double both[2 * COLS];
    assert_int_equal(kiln_matrix_get(both, R), KILN_OK);
    memcpy(row, both + COLS, sizeof row);
    assert_memory_equal(row, values + (ROWS - 1) * COLS, sizeof row);
    assert_int_equal(kiln_matrix_narrow(A, KILN_ELEMENT_U8, NULL), KILN_OK);
    values[3] = 0.1;
    assert_int_equal(kiln_matrix_set(A, values), KILN_OK);
    assert_values(A, values);
    kiln_matrix *const all[] = {A, B, Y, W, R, G};
    for (int i = 0; i < 6; i++) kiln_matrix_free(all[i]);
}

static int released;
static void release(void *user) {
    (void)user;
    released++;
}

/* The caller's narrow values are read where they lie, by the CPUs of a group, too. */
static void wrapped(void **state) {
    (void)state;
    static uint8_t bytes[ROWS * COLS];
    double values[ROWS * COLS];
    static const char *const names[] = {"cpu", "cpu*2"};
    for (int i = 0; i < ROWS * COLS; i++) values[i] = bytes[i] = (uint8_t)(i * 11);
    const kiln_memory memory = {.size = sizeof memory,
                                .type = KILN_F64,
                                .rows = ROWS,
                                .cols = COLS,
                                .values = bytes,
                                .release = release};
    for (int i = 0; i < 2; i++) {
        kiln_device *own;
        kiln_matrix *A = NULL;
        released = 0;
        assert_int_equal(kiln_device_open(&own, names[i], NULL), KILN_OK);
        assert_int_equal(kiln_matrix_wrap_narrow(&A, own, &memory, KILN_ELEMENT_U8), KILN_OK);
        assert_int_equal(storage_of(A).element, KILN_ELEMENT_U8);
        assert_values(A, values);
        kiln_memory lent = {.size = sizeof lent};
        assert_int_equal(kiln_matrix_lend(&lent, A), KILN_OK);
        assert_int_equal(storage_of(A).element, KILN_ELEMENT_TYPE);
        assert_values(A, values);
        kiln_matrix_free(A);
        assert_int_equal(released, 1);
        kiln_device_close(own);
    }
    assert_int_equal(bytes[5], 55);
}

static void refused(void **state) {
    (void)state;
    static uint16_t numbers[4] = {1, 2, 3, 4};
    static const int64_t start[] = {0, 2, 4};
    static const int32_t col[] = {0, 1, 0, 1};
    kiln_matrix *A = NULL;
    kiln_memory memory = {.size = sizeof memory, .type = KILN_F32, .rows = 2, .cols = 2, .values = numbers};
#define REFUSED(change, element)                                                                             \
    do {                                                                                                     \
        kiln_memory changed = memory;                                                                        \
        change;                                                                                              \
        assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap_narrow(&A, device, &changed, element));             \
        assert_null(A);                                                                                      \
    } while (0)
    REFUSED((void)0, KILN_ELEMENT_TYPE);
    REFUSED((void)0, KILN_ELEMENT_F32);
    REFUSED((void)0, (kiln_element)8);
    REFUSED((void)0, (kiln_element)-1);
    REFUSED(changed.values = (char *)numbers + 1, KILN_ELEMENT_I16);
    REFUSED(changed.values = NULL, KILN_ELEMENT_I16);
    REFUSED(changed.type = (kiln_type)3, KILN_ELEMENT_I16);
    REFUSED((changed.rows = INT64_MAX / 2, changed.cols = 9), KILN_ELEMENT_I16);
    REFUSED(changed.on_device = 1, KILN_ELEMENT_I16);
    REFUSED((changed.row_start = start, changed.col = col), KILN_ELEMENT_I16);
#undef REFUSED
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap_narrow(NULL, device, &memory, KILN_ELEMENT_U8));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap_narrow(&A, NULL, &memory, KILN_ELEMENT_U8));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap_narrow(&A, device, NULL, KILN_ELEMENT_U8));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_narrow(NULL, KILN_ELEMENT_U8, NULL));
    assert_int_equal(kiln_matrix_wrap_narrow(&A, device, &memory, KILN_ELEMENT_I16), KILN_OK);
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_narrow(A, (kiln_element)9, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_narrow(A, KILN_ELEMENT_F32, NULL));
    kiln_matrix_free(A);
}

/* Made narrow, read so and widened, each allocation failing in turn. */
static void body(void *context) {
    (void)context;
    static const int64_t rows[] = {0, 7};
    double values[ROWS * COLS];
    kiln_device *own;
    kiln_matrix *A = NULL, *Y = NULL, *W = NULL, *R = NULL;
    int narrowed = 0;
    for (int i = 0; i < ROWS * COLS; i++) values[i] = i % 200;
    STEP(kiln_device_open(&own, "cpu", NULL));
    STEP(kiln_matrix_dense(&A, own, KILN_F64, ROWS, COLS, values));
    STEP(kiln_matrix_dense(&Y, own, KILN_F64, COLS, 1, NULL));
    STEP(kiln_matrix_dense(&W, own, KILN_F64, COLS, 1, NULL));
    STEP(kiln_matrix_dense(&R, own, KILN_F64, 2, COLS, NULL));
    STEP(kiln_matrix_narrow(A, KILN_ELEMENT_TYPE, &narrowed));
    assert_int_equal(storage_of(A).element, KILN_ELEMENT_U8);
    STEP(kiln_mmchain(W, 1, A, NULL, Y, 0, NULL));
    STEP(kiln_rows(R, A, rows));
    assert_values(A, values);
    kiln_matrix *const all[] = {A, Y, W, R};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
    kiln_device_close(own);
}

static void faults_lose_nothing(void **state) {
    (void)state;
    brutal_memory("narrow values", 2, body, NULL);
}

/* ---- sparse: one number in place of all values ---- */

enum { SPARSE_ROWS = 6, SPARSE_COLS = 5, ENTRIES = 9 };
static const int64_t row_start[] = {0, 2, 2, 5, 6, 8, ENTRIES};
static const int32_t column[] = {0, 3, 1, 2, 4, 2, 0, 4, 1};

static kiln_matrix *make_sparse(kiln_type type, double value, double last) {
    double wide[ENTRIES];
    float single[ENTRIES];
    kiln_matrix *A = NULL;
    for (int e = 0; e < ENTRIES; e++) single[e] = (float)(wide[e] = e < ENTRIES - 1 ? value : last);
    assert_int_equal(kiln_matrix_csr(&A, device, type, SPARSE_ROWS, SPARSE_COLS, row_start, column,
                                     type == KILN_F32 ? (const void *)single : wide),
                     KILN_OK);
    return A;
}

static bool narrowed_to(kiln_matrix *A, kiln_element element) {
    int narrowed = -1;
    assert_int_equal(kiln_matrix_narrow(A, element, &narrowed), KILN_OK);
    return narrowed;
}

static void assert_sparse(const kiln_matrix *A, double value) {
    int64_t start[SPARSE_ROWS + 1];
    int32_t col[ENTRIES];
    double values[ENTRIES];
    for (int e = 0; e < ENTRIES; e++) values[e] = value;
    assert_values(A, values);
    assert_int_equal(kiln_matrix_get_csr(start, col, NULL, A), KILN_OK);
    assert_memory_equal(start, row_start, sizeof start);
    assert_memory_equal(col, column, sizeof col);
}

/* Kept without values where all have the bits of one that is a number. */
static void sparse_found(void **state) {
    (void)state;
    static const struct {
        double value, last;
        bool same;
    } cases[] = {{1, 1, true},     {0.1, 0.1, true}, {-3, -3, true},   {1, 2, false},
                 {0, -0.0, false}, {0, 0, true},     {NAN, NAN, false}};
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            kiln_matrix *A = make_sparse(type, cases[c].value, cases[c].last);
            const int64_t before = used(), values = ENTRIES * ki_type_bytes(type);
            assert_int_equal(narrowed_to(A, KILN_ELEMENT_TYPE), cases[c].same);
            const kiln_storage storage = storage_of(A);
            assert_int_equal(storage.element, cases[c].same ? KILN_ELEMENT_SAME : KILN_ELEMENT_TYPE);
            assert_int_equal(storage.bytes,
                             8 * (SPARSE_ROWS + 1) + 4 * ENTRIES + (cases[c].same ? 0 : values));
            if (cases[c].same) {
                const double value = type == KILN_F32 ? (double)(float)cases[c].value : cases[c].value;
                assert_true(storage.same == value);
                assert_true(used() <= before - values + 8);
                assert_sparse(A, value);
                assert_false(narrowed_to(A, KILN_ELEMENT_SAME)); /* it is so already */
            }
            assert_int_equal(A->nnz, ENTRIES);
            kiln_matrix_free(A);
        }
}

static void sparse_or_dense(void **state) {
    (void)state;
    static const double values[] = {1, 1, 1, 1};
    kiln_matrix *A = make_sparse(KILN_F64, 1, 1), *D = make(KILN_F64, values, 2, 2), *none = NULL;
    assert_false(narrowed_to(A, KILN_ELEMENT_U8));
    assert_false(narrowed_to(D, KILN_ELEMENT_SAME));
    static const int64_t empty[3];
    assert_int_equal(kiln_matrix_csr(&none, device, KILN_F64, 2, 2, empty, NULL, NULL), KILN_OK);
    assert_false(narrowed_to(none, KILN_ELEMENT_TYPE));
    kiln_matrix_free(none);
    kiln_matrix_free(D);
    kiln_matrix_free(A);
}

/* Copies keep the number, in another type the one that is nearest; what is written has values. */
static void sparse_copied_and_written(void **state) {
    (void)state;
    double others[ENTRIES];
    kiln_matrix *A = make_sparse(KILN_F64, 0.1, 0.1), *copy = NULL, *single = NULL, *like = NULL;
    assert_true(narrowed_to(A, KILN_ELEMENT_SAME));
    assert_int_equal(kiln_matrix_copy(&copy, device, KILN_TYPE_DEFAULT, A), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&single, device, KILN_F32, A), KILN_OK);
    assert_int_equal(kiln_matrix_like(&like, A, KILN_TYPE_DEFAULT, NULL), KILN_OK);
    assert_int_equal(storage_of(copy).element, KILN_ELEMENT_SAME);
    assert_int_equal(storage_of(single).element, KILN_ELEMENT_SAME);
    assert_sparse(copy, 0.1);
    assert_sparse(single, (double)0.1f);
    assert_sparse(like, 1);
    assert_sparse(A, 0.1);
    for (int e = 0; e < ENTRIES; e++) others[e] = e;
    assert_int_equal(kiln_matrix_set(copy, others), KILN_OK);
    assert_int_equal(storage_of(copy).element, KILN_ELEMENT_TYPE);
    assert_values(copy, others);
    kiln_matrix_free(A);
    assert_sparse(like, 1); /* the structure stays as long as one has it */
    kiln_matrix_free(like);
    kiln_matrix_free(single);
    kiln_matrix_free(copy);
}

static void count_release(void *count) {
    ++*(int *)count;
}

/* Others' values are read no longer, and go back with the matrix. */
static void sparse_wrapped(void **state) {
    (void)state;
    double values[ENTRIES];
    int returned = 0;
    kiln_matrix *A = NULL;
    for (int e = 0; e < ENTRIES; e++) values[e] = 2;
    const kiln_memory memory = {.size = sizeof memory,
                                .type = KILN_F64,
                                .rows = SPARSE_ROWS,
                                .cols = SPARSE_COLS,
                                .values = values,
                                .row_start = row_start,
                                .col = column,
                                .release = count_release,
                                .user = &returned};
    assert_int_equal(kiln_matrix_wrap(&A, device, &memory), KILN_OK);
    assert_true(narrowed_to(A, KILN_ELEMENT_TYPE));
    for (int e = 0; e < ENTRIES; e++) values[e] = 3;
    assert_sparse(A, 2);
    assert_int_equal(ki_matrix_widen(A), KILN_OK);
    assert_sparse(A, 2);
    assert_true(values[0] == 3);
    assert_int_equal(returned, 0);
    kiln_matrix_free(A);
    assert_int_equal(returned, 1);
}

static void sparse_body(void *context) {
    (void)context;
    double values[ENTRIES], rows[2 * SPARSE_COLS];
    static const int64_t which[] = {0, 5};
    kiln_device *own;
    kiln_matrix *A = NULL, *B = NULL, *y = NULL, *w = NULL, *R = NULL;
    for (int e = 0; e < ENTRIES; e++) values[e] = 3;
    STEP(kiln_device_open(&own, "cpu", NULL));
    STEP(kiln_matrix_csr(&A, own, KILN_F64, SPARSE_ROWS, SPARSE_COLS, row_start, column, values));
    STEP(kiln_matrix_dense(&y, own, KILN_F64, SPARSE_COLS, 1, NULL));
    STEP(kiln_matrix_dense(&w, own, KILN_F64, SPARSE_COLS, 1, NULL));
    STEP(kiln_matrix_dense(&R, own, KILN_F64, 2, SPARSE_COLS, NULL));
    STEP(kiln_matrix_narrow(A, KILN_ELEMENT_TYPE, NULL));
    STEP(kiln_matrix_copy(&B, own, KILN_F32, A));
    STEP(kiln_mmchain(w, 1, A, NULL, y, 0, NULL));
    STEP(kiln_rows(R, A, which));
    STEP(kiln_matrix_get(rows, R));
    assert_true(rows[0] == 3 && rows[SPARSE_COLS + 1] == 3 && rows[1] == 0);
    assert_values(A, values);
    kiln_matrix *const all[] = {A, B, y, w, R};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    kiln_device_close(own);
}

static void sparse_faults_lose_nothing(void **state) {
    (void)state;
    brutal_memory("entries without values", 2, sparse_body, NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_device, close_device)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(all_numbers),
                                       TEST(found),
                                       TEST(not_lossless),
                                       TEST(widened_once),
                                       TEST(wrapped),
                                       TEST(refused),
                                       TEST(faults_lose_nothing),
                                       TEST(sparse_found),
                                       TEST(sparse_or_dense),
                                       TEST(sparse_copied_and_written),
                                       TEST(sparse_wrapped),
                                       TEST(sparse_faults_lose_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
