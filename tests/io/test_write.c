/* The reader of a format gives back bit for bit what its writer writes; and text files look as documented.
 */
#define _GNU_SOURCE
#include "io/scratch.h"

#include <math.h>

#include "kiln.h"

static kiln_device *device;

static int open_device(void **state) {
    if (kiln_device_open(&device, "cpu", NULL) != KILN_OK) return -1;
    return scratch_make(state);
}

static int close_device(void **state) {
    kiln_device_close(device);
    return scratch_remove(state);
}

enum { ROWS = 211, COLS = 7, TARGETS = 2 };

/* Element i of a sequence of finite numbers of all sizes, with the special ones first. */
static double number(uint64_t i, kiln_type type) {
    static const double special[] = {-0.0,     5e-324, 1e308,     0.1,
                                     -1.0 / 3, 1e23,   123456789, 0.30000000000000004};
    uint32_t random[4];
    double wide;
    float narrow;
    if (type == KILN_F64 && i < sizeof special / sizeof *special) return special[i];
    kiln_random(random, 5, 0, i);
    memcpy(&wide, random, sizeof wide);
    memcpy(&narrow, random + 2, sizeof narrow);
    if (type == KILN_F32) return isfinite(narrow) ? (double)narrow : 1.5;
    return isfinite(wide) ? wide : 1.5;
}

static void fill(void *values, kiln_type type, int64_t count, uint64_t first) {
    for (int64_t i = 0; i < count; i++) {
        double value = number(first + (uint64_t)i, type);
        if (type == KILN_F32)
            ((float *)values)[i] = (float)value;
        else
            ((double *)values)[i] = value;
    }
}

/* A matrix with empty rows if sparse, and its last column in use, so that every format knows the width. */
static kiln_data *make_data(kiln_format format, kiln_type type, bool with_y) {
    kiln_matrix *X = NULL, *y = NULL;
    kiln_data *data = NULL;
    double values[ROWS * COLS];
    int64_t start[ROWS + 1] = {0};
    int32_t col[ROWS * COLS];
    fill(values, type, ROWS * COLS, 0);
    for (int i = 0; i < ROWS; i++) {
        start[i + 1] = start[i];
        for (int j = 0; j < COLS; j++)
            if ((i * 5 + j * 3) % 4 == 0 && i % 10 != 3) col[start[i + 1]++] = j;
    }
    if (format == KILN_DENSE)
        assert_int_equal(kiln_matrix_dense(&X, device, type, ROWS, COLS, values), KILN_OK);
    else
        assert_int_equal(kiln_matrix_csr(&X, device, type, ROWS, COLS, start, col, values), KILN_OK);
    fill(values, type, ROWS * TARGETS, 100000);
    if (with_y) assert_int_equal(kiln_matrix_dense(&y, device, type, ROWS, TARGETS, values), KILN_OK);
    assert_int_equal(kiln_data_create(&data, X, y), KILN_OK);
    return data;
}

/* rows x cols elements as bytes, zeros filled in. Free them. */
static char *dense_bytes(const kiln_matrix *A, size_t *size) {
    size_t rows = (size_t)kiln_matrix_rows(A), cols = (size_t)kiln_matrix_cols(A);
    size_t element = kiln_matrix_type(A) == KILN_F32 ? 4 : 8, nnz = (size_t)kiln_matrix_nnz(A);
    *size = rows * cols * element;
    char *bytes = calloc(rows * cols + 1, element);
    if (kiln_matrix_format(A) == KILN_DENSE) {
        assert_int_equal(kiln_matrix_get(bytes, A), KILN_OK);
        return bytes;
    }
    int64_t *start = malloc((rows + 1) * sizeof *start);
    int32_t *col = malloc((nnz + 1) * sizeof *col);
    char *values = malloc((nnz + 1) * element);
    assert_int_equal(kiln_matrix_get_csr(start, col, values, A), KILN_OK);
    for (size_t i = 0; i < rows; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++)
            memcpy(bytes + (i * cols + (size_t)col[e]) * element, values + (size_t)e * element, element);
    free(start);
    free(col);
    free(values);
    return bytes;
}

static void assert_same_matrix(const kiln_matrix *A, const kiln_matrix *B) {
    size_t size_a, size_b;
    assert_int_equal(kiln_matrix_rows(A), kiln_matrix_rows(B));
    assert_int_equal(kiln_matrix_cols(A), kiln_matrix_cols(B));
    assert_int_equal(kiln_matrix_type(A), kiln_matrix_type(B));
    char *a = dense_bytes(A, &size_a), *b = dense_bytes(B, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(a, b, size_a);
    free(a);
    free(b);
}

static void assert_round_trip(const char *name, kiln_format format, kiln_type type, const char *target) {
    bool with_y = !strstr(name, ".mtx") && !strstr(name, ".np");
    kiln_data *data = make_data(format, type, with_y), *back = NULL;
    kiln_read_options options = {.type = type, .target = target};
    kiln_status status = kiln_data_write(data, in_scratch(name), KILN_FILE_AUTO, NULL);
    if (status == KILN_OK) status = kiln_data_read(&back, device, in_scratch(name), &options);
    if (status != KILN_OK) fail_msg("%s: %s", name, kiln_last_error()->message);
    assert_same_matrix(kiln_data_X(data), kiln_data_X(back));
    if (!strstr(name, ".csv")) assert_int_equal(kiln_matrix_format(kiln_data_X(back)), format);
    if (with_y) assert_same_matrix(kiln_data_y(data), kiln_data_y(back));
    assert_int_equal(scratch_files(true), 1);
    kiln_data_free(back);
    kiln_data_free(data);
}

static void every_format_reads_back(void **state) {
    (void)state;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        assert_round_trip("a.svm", KILN_CSR, type, NULL);
        assert_round_trip("a.libsvm.gz", KILN_CSR, type, NULL);
        assert_round_trip("a.mtx", KILN_CSR, type, NULL);
        assert_round_trip("a.mtx", KILN_DENSE, type, NULL);
        assert_round_trip("a.mtx.gz", KILN_CSR, type, NULL);
        assert_round_trip("a.csv", KILN_DENSE, type, "y1,y2");
        assert_round_trip("a.csv.gz", KILN_CSR, type, "y1,y2");
        assert_round_trip("a.npy", KILN_DENSE, type, NULL);
        assert_round_trip("a.npy.gz", KILN_DENSE, type, NULL);
        assert_round_trip("a.npz", KILN_CSR, type, NULL);
        assert_round_trip("a.npz.gz", KILN_CSR, type, NULL);
    }
}

/* Two rows out of order, one of them empty in the middle; a stored zero stays. */
static kiln_data *tiny(bool sparse, bool with_y) {
    kiln_matrix *X = NULL, *y = NULL;
    kiln_data *data = NULL;
    if (sparse)
        assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, 3, 3, (int64_t[]){0, 3, 3, 4},
                                         (int32_t[]){2, 0, 1, 1}, (double[]){0.1, -2, 0, 1e-20}),
                         KILN_OK);
    else
        assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, 2, 2, (double[]){1, 0, -0.0, 2.5}), KILN_OK);
    if (with_y)
        assert_int_equal(kiln_matrix_dense(&y, device, KILN_F64, sparse ? 3 : 2, 1, (double[]){1, -1, 0.5}),
                         KILN_OK);
    assert_int_equal(kiln_data_create(&data, X, y), KILN_OK);
    return data;
}

static void text_looks_as_documented(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        bool sparse;
    } cases[] = {
        {"a.svm", "1 1:-2 2:0 3:0.1\n-1\n0.5 2:1e-20\n", true},
        {"a.svm", "1 1:1\n-1 1:-0 2:2.5\n", false},
        {"a.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 -2\n1 2 0\n1 3 0.1\n3 2 1e-20\n",
         true},
        {"a.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n-0\n0\n2.5\n", false},
        {"a.csv", "x1,x2,x3,y1\n-2,0,0.1,1\n0,0,0,-1\n0,1e-20,0,0.5\n", true},
        {"a.CSV", "x1,x2,y1\n1,0,1\n-0,2.5,-1\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_data *data = tiny(cases[i].sparse, true);
        assert_int_equal(kiln_data_write(data, in_scratch(cases[i].name), KILN_FILE_AUTO, NULL), KILN_OK);
        size_t size;
        char *text = file_bytes(in_scratch(cases[i].name), &size);
        assert_string_equal(text, cases[i].text);
        free(text);
        kiln_data_free(data);
    }
}

static void names_are_quoted_and_kept(void **state) {
    (void)state;
    static const char text[] = "plain,\"a,b\",\"say \"\"hi\"\"\",t\n1,2,3,4\n5,6,7,8\n";
    put_file(in_scratch("in.csv"), text, sizeof text - 1);
    kiln_data *data = NULL;
    kiln_read_options options = {.target = "t"};
    assert_int_equal(kiln_data_read(&data, device, in_scratch("in.csv"), &options), KILN_OK);
    assert_int_equal(kiln_data_write(data, in_scratch("out.csv"), KILN_FILE_AUTO, NULL), KILN_OK);
    size_t size;
    char *back = file_bytes(in_scratch("out.csv"), &size);
    assert_string_equal(back, text);
    free(back);
    kiln_data_free(data);
}

static void unfit_wishes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name, *hint;
        bool sparse;
        kiln_status status;
    } cases[] = {
        {"a.svm", "target", true, KILN_ERR_UNSUPPORTED}, {"a.npy", ".npz", true, KILN_ERR_UNSUPPORTED},
        {"a.npz", ".npy", false, KILN_ERR_UNSUPPORTED},  {"a.mtx.zst", ".gz", true, KILN_ERR_UNSUPPORTED},
        {"a.parquet", ".svm", true, KILN_ERR_ARGUMENT},  {"noending", ".svm", true, KILN_ERR_ARGUMENT},
        {".gz", ".svm", true, KILN_ERR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_data *data = tiny(cases[i].sparse, false);
        assert_int_equal(kiln_data_write(data, in_scratch(cases[i].name), KILN_FILE_AUTO, NULL),
                         cases[i].status);
        assert_non_null(strstr(kiln_last_error()->hint, cases[i].hint));
        assert_int_equal(scratch_files(false), 0);
        kiln_data_free(data);
    }
    kiln_matrix *wide = NULL;
    kiln_data *data = NULL;
    assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, 1, 1 << 20, (int64_t[]){0, 0}, NULL, NULL),
                     KILN_OK);
    assert_int_equal(kiln_data_create(&data, wide, NULL), KILN_OK);
    assert_int_equal(kiln_data_write(data, in_scratch("a.csv"), KILN_FILE_AUTO, NULL), KILN_ERR_UNSUPPORTED);
    assert_int_equal(kiln_data_write(data, in_scratch("x"), KILN_FILE_MATRIX_MARKET, NULL), KILN_OK);
    kiln_data_free(data);
}

/* A CSV file that would not be read again as it was written. */
static void tables_that_csv_cannot_say(void **state) {
    (void)state;
    kiln_data *data = NULL;
    put_file(in_scratch("years.csv"), "\"1999\",x\n1,2\n", 13);
    kiln_read_options options = {.features = "1999"};
    assert_int_equal(kiln_data_read(&data, device, in_scratch("years.csv"), &options), KILN_OK);
    assert_int_equal(kiln_data_write(data, in_scratch("b.csv"), KILN_FILE_AUTO, NULL), KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->message, "numbers for names"));
    assert_non_null(strstr(kiln_last_error()->hint, ".npz"));
    kiln_data_free(data);

    kiln_matrix *empty = NULL;
    assert_int_equal(kiln_matrix_dense(&empty, device, KILN_F64, 2, 0, NULL), KILN_OK);
    assert_int_equal(kiln_data_create(&data, empty, NULL), KILN_OK);
    assert_int_equal(kiln_data_write(data, in_scratch("b.csv"), KILN_FILE_AUTO, NULL), KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->message, "at least one column"));
    kiln_data_free(data);
    assert_int_equal(scratch_files(false), 1);
}

static int stop_at_once(void *user, const kiln_progress *now) {
    assert_string_equal(now->phase, "write");
    ++*(int *)user;
    return 1;
}

static void cancelling_leaves_nothing(void **state) {
    (void)state;
    int calls = 0;
    kiln_control control = {stop_at_once, &calls};
    kiln_data *data = make_data(KILN_CSR, KILN_F64, true);
    assert_int_equal(kiln_data_write(data, in_scratch("a.svm"), KILN_FILE_AUTO, &control),
                     KILN_ERR_CANCELLED);
    assert_int_equal(calls, 1);
    assert_int_equal(scratch_files(false), 0);
    kiln_data_free(data);
}

static int countdown;

static void *failing_alloc(size_t bytes, size_t align) {
    return countdown > 0 && --countdown == 0 ? NULL : faults.real.alloc(bytes, align);
}

static void *failing_resize(void *memory, size_t bytes) {
    return countdown > 0 && --countdown == 0 ? NULL : faults.real.resize(memory, bytes);
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    static const char *const names[] = {"a.svm.gz", "a.mtx", "a.csv", "a.npz"};
    kiln_data *data = tiny(true, true);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        kiln_status status = KILN_ERR_NOMEM;
        int k = 1;
        for (; status != KILN_OK; k++) {
            faults.real = ki_seams;
            countdown = k;
            ki_seams.alloc = failing_alloc;
            ki_seams.resize = failing_resize;
            status = kiln_data_write(data, in_scratch(names[n]), KILN_FILE_AUTO, NULL);
            ki_seams = faults.real;
            if (status != KILN_OK) assert_int_equal(status, KILN_ERR_NOMEM);
            assert_int_equal(scratch_files(true), status == KILN_OK);
        }
        assert_true(k > 6);
    }
    kiln_data_free(data);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, scratch_empty)
    const struct CMUnitTest tests[] = {
        TEST(every_format_reads_back),    TEST(text_looks_as_documented),
        TEST(names_are_quoted_and_kept),  TEST(unfit_wishes_are_refused),
        TEST(cancelling_leaves_nothing),  TEST(every_failed_allocation_is_reported),
        TEST(tables_that_csv_cannot_say),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
