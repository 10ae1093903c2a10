/* Matrices that keep categories as codes: what they say they are, what they take, that they become entries
 * where these are wanted and give the same results then, and what is refused. */
#include <math.h>
#include <string.h>

#include "backends/check.h"
#include "core/codes/codes.h"
#include "core/seams.h"
#include "faults/brutal.h"

/* Columns: a number, a category of 3 levels, two numbers, a category of LEVELS. */
enum { ROWS = 200, LEVELS = 300, COLS = 1 + 3 + 2 + LEVELS, NUMBERS = 3 };

static double numbers[ROWS * NUMBERS], values[ROWS * 5];
static int8_t few[ROWS];
static int16_t many[ROWS];
static int64_t row_start[ROWS + 1];
static int32_t col[ROWS * 5];
static kiln_device *device;

static void add(int64_t *nnz, int64_t column, double value) {
    col[*nnz] = (int32_t)column;
    values[(*nnz)++] = value;
}

static int open_device(void **state) {
    (void)state;
    int64_t nnz = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < NUMBERS; j++) numbers[i * NUMBERS + j] = (i + j) % 4 == 0 ? 0 : i % 7 + j + 0.5;
        few[i] = (int8_t)(i % 4 - 1);
        many[i] = (int16_t)(i % 5 ? i * 37 % LEVELS : -1);
        if (numbers[i * NUMBERS] != 0) add(&nnz, 0, numbers[i * NUMBERS]);
        if (few[i] >= 0) add(&nnz, 1 + few[i], 1);
        for (int j = 1; j < NUMBERS; j++)
            if (numbers[i * NUMBERS + j] != 0) add(&nnz, 3 + j, numbers[i * NUMBERS + j]);
        if (many[i] >= 0) add(&nnz, 6 + many[i], 1);
        row_start[i + 1] = nnz;
    }
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    return 0;
}

static int64_t used(void) {
    kiln_device_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(kiln_device_get_statistics(device, &statistics), KILN_OK);
    return statistics.memory_used;
}

static int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

static void describe(kiln_codes codes[2]) {
    codes[0] = (kiln_codes){
        .size = sizeof *codes, .column = 1, .levels = 3, .codes = few, .code_bytes = sizeof *few};
    codes[1] = (kiln_codes){
        .size = sizeof *codes, .column = 6, .levels = LEVELS, .codes = many, .code_bytes = sizeof *many};
}

static kiln_matrix *make(void) {
    kiln_codes codes[2];
    kiln_matrix *A = NULL;
    describe(codes);
    assert_int_equal(kiln_matrix_codes(&A, device, KILN_F64, ROWS, COLS, numbers, codes, 2), KILN_OK);
    return A;
}

static void assert_entries(const kiln_matrix *A) {
    int64_t got_start[ROWS + 1];
    static int32_t got_col[ROWS * 5];
    static double got[ROWS * 5];
    assert_int_equal(kiln_matrix_format(A), KILN_CSR);
    assert_int_equal(kiln_matrix_nnz(A), row_start[ROWS]);
    assert_int_equal(kiln_matrix_get_csr(got_start, got_col, got, A), KILN_OK);
    assert_memory_equal(got_start, row_start, sizeof row_start);
    assert_memory_equal(got_col, col, (size_t)row_start[ROWS] * sizeof *col);
    assert_memory_equal(got, values, (size_t)row_start[ROWS] * sizeof *values);
}

static kiln_storage storage_of(const kiln_matrix *A) {
    kiln_storage storage = {.size = sizeof storage};
    assert_int_equal(kiln_matrix_get_storage(&storage, A), KILN_OK);
    return storage;
}

static void assert_coded(const kiln_matrix *A, bool coded) {
    const kiln_storage storage = storage_of(A);
    assert_int_equal(storage.categories, coded ? 2 : 0);
    assert_int_equal(storage.numbers, coded ? NUMBERS : 0);
    assert_int_equal(storage.bytes,
                     coded ? ROWS * (NUMBERS * 8 + 1 + 2) : (ROWS + 1) * 8 + row_start[ROWS] * 12);
}

/* A byte a code up to 255 levels, "none" being one more, and two up to 65,535. */
static void widths(void **state) {
    (void)state;
    static const struct {
        int64_t levels;
        int bytes;
    } cases[] = {{1, 1}, {255, 1}, {256, 2}, {65535, 2}, {65536, 4}, {1000000, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t codes[3] = {-1, (int32_t)cases[i].levels - 1, 0};
        const kiln_codes category = {.levels = cases[i].levels, .codes = codes};
        int64_t got_start[4];
        int32_t got_col[2];
        kiln_matrix *A = NULL;
        assert_int_equal(kiln_matrix_codes(&A, device, KILN_F32, 3, cases[i].levels, NULL, &category, 1),
                         KILN_OK);
        assert_int_equal(storage_of(A).bytes, 3 * cases[i].bytes);
        assert_int_equal(kiln_matrix_get_csr(got_start, got_col, NULL, A), KILN_OK);
        assert_int_equal(got_start[1], 0);
        assert_int_equal(got_start[3], 2);
        assert_int_equal(got_col[0], cases[i].levels - 1);
        assert_int_equal(got_col[1], 0);
        kiln_matrix_free(A);
    }
}

/* Passes and Gram matrices leave the codes, and say what they say of entries. */
static void passes_leave_codes(void **state) {
    (void)state;
    static double y[COLS], from_codes[COLS * COLS], from_entries[COLS * COLS];
    kiln_matrix *A = make(), *B = NULL, *Y = NULL, *W = NULL, *G = NULL;
    for (int j = 0; j < COLS; j++) y[j] = j % 11 - 5;
    assert_int_equal(kiln_matrix_csr(&B, device, KILN_F64, ROWS, COLS, row_start, col, values), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&Y, device, KILN_F64, COLS, 1, y), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&W, device, KILN_F64, COLS, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&G, device, KILN_F64, COLS, COLS, NULL), KILN_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kiln_mmchain(W, 1, i ? B : A, NULL, Y, 0, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_get(i ? from_entries : from_codes, W), KILN_OK);
    }
    /* sums of halves that f64 holds */
    assert_memory_equal(from_codes, from_entries, COLS * sizeof *from_codes);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kiln_gram(G, NULL, i ? B : A, NULL, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_get(i ? from_entries : from_codes, G), KILN_OK);
    }
    assert_memory_equal(from_codes, from_entries, sizeof from_codes);
    assert_coded(A, true);
    assert_entries(A);
    assert_coded(A, true);
    kiln_matrix *const all[] = {A, B, Y, W, G};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
}

static void expand_by_rows(kiln_matrix *A) {
    static const int64_t rows[] = {0, 7};
    static double got[2 * COLS];
    kiln_matrix *R = NULL;
    assert_int_equal(kiln_matrix_dense(&R, device, KILN_F64, 2, COLS, NULL), KILN_OK);
    assert_int_equal(kiln_rows(R, A, rows), KILN_OK);
    assert_int_equal(kiln_matrix_get(got, R), KILN_OK);
    for (int i = 0; i < 2; i++)
        for (int64_t e = row_start[rows[i]]; e < row_start[rows[i] + 1]; e++)
            assert_true(got[i * COLS + col[e]] == values[e]);
    kiln_matrix_free(R);
}

static void expand_by_set(kiln_matrix *A) {
    assert_int_equal(kiln_matrix_set(A, values), KILN_OK);
}

static void expand_by_like(kiln_matrix *A) {
    kiln_matrix *B = NULL;
    assert_int_equal(kiln_matrix_like(&B, A, KILN_TYPE_DEFAULT, values), KILN_OK);
    assert_entries(B);
    kiln_matrix_free(B);
}

/* Whatever else wants entries has them, once and for good; and memory is counted as they take it. */
static void others_expand(void **state) {
    (void)state;
    void (*const ways[])(kiln_matrix *) = {expand_by_rows, expand_by_set, expand_by_like};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        kiln_matrix *A = make();
        assert_coded(A, true);
        ways[i](A);
        assert_coded(A, false);
        assert_entries(A);
        kiln_matrix_free(A);
        assert_int_equal(used(), 0);
    }
}

/* A copy has codes, too, and is one: what becomes of the first does not touch it. In another type the numbers
 * change and the codes do not. */
static void copies(void **state) {
    (void)state;
    kiln_matrix *A = make(), *B = NULL, *C = NULL;
    assert_int_equal(kiln_matrix_copy(&B, device, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&C, device, KILN_F32, A), KILN_OK);
    assert_coded(A, true);
    kiln_matrix_free(A);
    assert_coded(B, true);
    assert_entries(B);
    assert_int_equal(storage_of(C).bytes, ROWS * (NUMBERS * 4 + 1 + 2));
    kiln_matrix_free(B);
    kiln_matrix_free(C);
    assert_int_equal(used(), 0);
}

static void assert_product(const kiln_matrix *A, kiln_device *on, const double *expected) {
    static double y[COLS], got[COLS];
    kiln_matrix *Y = NULL, *W = NULL;
    for (int j = 0; j < COLS; j++) y[j] = j % 11 - 5;
    assert_int_equal(kiln_matrix_dense(&Y, on, KILN_F64, COLS, 1, y), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&W, on, KILN_F64, COLS, 1, NULL), KILN_OK);
    assert_int_equal(kiln_mmchain(W, 1, A, NULL, Y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_get(got, W), KILN_OK);
    assert_memory_equal(got, expected, sizeof got); /* sums of halves that f64 holds */
    kiln_matrix_free(Y);
    kiln_matrix_free(W);
}

/* X^T (X y) of the entries. */
static void product_of_entries(double expected[COLS]) {
    memset(expected, 0, COLS * sizeof *expected);
    for (int64_t i = 0; i < ROWS; i++) {
        double dot = 0;
        for (int64_t e = row_start[i]; e < row_start[i + 1]; e++) dot += values[e] * (col[e] % 11 - 5);
        for (int64_t e = row_start[i]; e < row_start[i + 1]; e++) expected[col[e]] += values[e] * dot;
    }
}

/* A GPU keeps the codes, copied or moved there and back, and takes no more memory than they; passes leave
 * them; what wants entries has them. */
static void on_opencl(void **state) {
    (void)state;
    static double expected[COLS];
    kiln_device *opencl;
    kiln_device_statistics statistics = {.size = sizeof statistics};
    kiln_matrix *A = make(), *B = NULL;
    if (kiln_device_open(&opencl, "opencl", NULL) != KILN_OK) {
        kiln_matrix_free(A);
        skip();
    }
    product_of_entries(expected);
    assert_int_equal(kiln_matrix_copy(&B, opencl, KILN_TYPE_DEFAULT, A), KILN_OK);
    assert_int_equal(kiln_device_get_statistics(opencl, &statistics), KILN_OK);
    assert_in_range(statistics.memory_used, ROWS * (NUMBERS * 8 + 1 + 2), ROWS * (NUMBERS * 8 + 1 + 2) + 512);
    assert_product(B, opencl, expected);
    assert_coded(B, true);
    assert_entries(B);
    assert_coded(B, true);
    kiln_matrix_free(B);
    assert_int_equal(ki_matrix_move(A, opencl), KILN_OK);
    assert_int_equal(used(), 0);
    assert_product(A, opencl, expected);
    assert_int_equal(ki_matrix_move(A, device), KILN_OK);
    assert_coded(A, true);
    assert_product(A, device, expected);
    assert_int_equal(ki_matrix_move(A, opencl), KILN_OK);
    assert_int_equal(kiln_matrix_set(A, values), KILN_OK);
    assert_coded(A, false);
    assert_product(A, opencl, expected);
    assert_entries(A);
    kiln_matrix_free(A);
    kiln_device_close(opencl);
}

/* A GPU whose sums have an order has entries. */
static void deterministic(void **state) {
    (void)state;
    static double expected[COLS];
    const kiln_device_options options = {.size = sizeof options, .deterministic = 1};
    kiln_device *opencl;
    kiln_matrix *A = make(), *B = NULL;
    if (kiln_device_open(&opencl, "opencl", &options) != KILN_OK) {
        kiln_matrix_free(A);
        skip();
    }
    product_of_entries(expected);
    assert_int_equal(kiln_matrix_copy(&B, opencl, KILN_TYPE_DEFAULT, A), KILN_OK);
    assert_coded(B, false);
    assert_product(B, opencl, expected);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
    kiln_device_close(opencl);
}

/* From entries: codes where columns are categories, and else none. */
static void packing(void **state) {
    (void)state;
    static const struct ki_category categories[] = {{1, 3}, {6, LEVELS}}, wrong[] = {{0, 4}, {6, LEVELS}};
    struct ki_codes *codes = NULL;
    kiln_matrix *A = NULL;
    assert_int_equal(
        ki_codes_pack(&codes, device, KILN_F64, ROWS, COLS, row_start, col, values, categories, 2), KILN_OK);
    assert_non_null(codes);
    assert_int_equal(ki_matrix_adopt_codes(&A, device, KILN_F64, ROWS, COLS, codes), KILN_OK);
    assert_entries(A);
    assert_coded(A, true);
    kiln_matrix_free(A);
    assert_int_equal(ki_codes_pack(&codes, device, KILN_F64, ROWS, COLS, row_start, col, values, wrong, 2),
                     KILN_OK);
    assert_null(codes);
    for (int i = 0; i < 2; i++) { /* a number that is an entry and 0, and a level's 1 that is none */
        const int64_t entry = i ? row_start[2] - 1 : row_start[1];
        const double value = values[entry];
        values[entry] = i ? 2 : 0;
        assert_int_equal(
            ki_codes_pack(&codes, device, KILN_F64, ROWS, COLS, row_start, col, values, categories, 2),
            KILN_OK);
        assert_null(codes);
        values[entry] = value;
    }
    assert_int_equal(used(), 0);
}

static void refused(void **state) {
    (void)state;
    kiln_codes codes[2];
    kiln_matrix *A = NULL;
#define REFUSED_CALL(status, change, ...)                                                                    \
    do {                                                                                                     \
        describe(codes);                                                                                     \
        change;                                                                                              \
        assert_fails(status, kiln_matrix_codes(&A, device, __VA_ARGS__));                                    \
        assert_null(A);                                                                                      \
    } while (0)
#define REFUSED(status, change) REFUSED_CALL(status, change, KILN_F64, ROWS, COLS, numbers, codes, 2)
    REFUSED_CALL(KILN_ERR_ARGUMENT, (void)0, (kiln_type)7, ROWS, COLS, numbers, codes, 2);
    REFUSED_CALL(KILN_ERR_ARGUMENT, (void)0, KILN_F64, -1, COLS, numbers, codes, 2);
    REFUSED_CALL(KILN_ERR_ARGUMENT, (void)0, KILN_F64, ROWS, COLS - 1, numbers, codes, 2);
    REFUSED_CALL(KILN_ERR_ARGUMENT, (void)0, KILN_F64, ROWS, COLS, NULL, codes, 2);
    REFUSED_CALL(KILN_ERR_ARGUMENT, (void)0, KILN_F64, ROWS, COLS, numbers, codes, 0);
    REFUSED(KILN_ERR_ARGUMENT, codes[0].codes = NULL);
    REFUSED(KILN_ERR_ARGUMENT, codes[0].code_bytes = 3);
    REFUSED(KILN_ERR_ARGUMENT, codes[0].levels = 0);
    REFUSED(KILN_ERR_ARGUMENT, codes[0].levels = 6);
    REFUSED(KILN_ERR_ARGUMENT, codes[0].column = -1);
    REFUSED(KILN_ERR_ARGUMENT, codes[1].column = 3);
    REFUSED(KILN_ERR_ARGUMENT, codes[1].levels = INT64_MAX);
    REFUSED(KILN_ERR_DATA, codes[0].levels = 2);
    few[3] = -2;
    REFUSED(KILN_ERR_DATA, (void)0);
    few[3] = 2;
#undef REFUSED
#undef REFUSED_CALL
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_codes(NULL, device, KILN_F64, ROWS, COLS, numbers, codes, 2));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_codes(&A, NULL, KILN_F64, ROWS, COLS, numbers, codes, 2));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_codes(&A, device, KILN_F64, ROWS, COLS, numbers, NULL, 2));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_get_storage(NULL, NULL));
    assert_int_equal(used(), 0);
}

/* A group gets entries. */
static void elsewhere(void **state) {
    (void)state;
    kiln_codes codes[2];
    kiln_matrix *A = make(), *B = NULL;
    kiln_device *group;
    assert_int_equal(kiln_device_open(&group, "cpu*2", NULL), KILN_OK);
    describe(codes);
    assert_fails(KILN_ERR_UNSUPPORTED, kiln_matrix_codes(&B, group, KILN_F64, ROWS, COLS, numbers, codes, 2));
    assert_int_equal(kiln_matrix_copy(&B, group, KILN_TYPE_DEFAULT, A), KILN_OK);
    assert_entries(B);
    kiln_matrix_free(B);
    kiln_matrix_free(A);
    kiln_device_close(group);
}

/* Made, read as codes and expanded, each allocation failing in turn. */
static void body(void *context) {
    (void)context;
    static const int64_t rows[] = {0, 7};
    kiln_device *own;
    kiln_codes codes[2];
    kiln_matrix *A = NULL, *Y = NULL, *W = NULL, *R = NULL;
    describe(codes);
    STEP(kiln_device_open(&own, "cpu", NULL));
    STEP(kiln_matrix_codes(&A, own, KILN_F64, ROWS, COLS, numbers, codes, 2));
    STEP(kiln_matrix_dense(&Y, own, KILN_F64, COLS, 1, NULL));
    STEP(kiln_matrix_dense(&W, own, KILN_F64, COLS, 1, NULL));
    STEP(kiln_matrix_dense(&R, own, KILN_F64, 2, COLS, NULL));
    STEP(kiln_mmchain(W, 1, A, NULL, Y, 0, NULL));
    assert_coded(A, true);
    STEP(kiln_rows(R, A, rows));
    assert_coded(A, false);
    assert_entries(A);
    kiln_matrix *const all[] = {A, Y, W, R};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
    kiln_device_close(own);
}

static void faults_lose_nothing(void **state) {
    (void)state;
    brutal_memory("categories", 2, body, NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_device, close_device)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(widths),    TEST(passes_leave_codes), TEST(others_expand), TEST(copies),
        TEST(packing),   TEST(on_opencl),          TEST(deterministic), TEST(refused),
        TEST(elsewhere), TEST(faults_lose_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
