/* X that stays in its file: the same results as from memory, on the CPU and on a device with and without room
 * for it; a file that changes or cannot be read is an error, and no signal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/check.h"
#include "core/matrix.h"
#include "faults/brutal.h"
#include "npy_file.h"

enum { ROWS = 5000, COLS = 24, ELEMENTS = ROWS * COLS };

static char path[64];
static double X[ELEMENTS];

static int make_file(void **state) {
    (void)state;
    for (int i = 0; i < ELEMENTS; i++) X[i] = sin(1 + i % 977) + (i % COLS == 3 ? 2 : 0);
    snprintf(path, sizeof path, "/tmp/kiln-mapped-XXXXXX");
    npy_file(path, ROWS, COLS, X);
    return 0;
}

static int remove_file(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static void change(int64_t offset, const void *bytes, size_t size) {
    const int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, bytes, size, offset), size);
    close(fd);
}

static kiln_status open_data(kiln_data **data, kiln_device *device, int map) {
    const kiln_read_options options = {.map = map};
    return kiln_data_read(data, device, path, &options);
}

/* X^T (X y) and X y. */
static void passes(double w[COLS], double q[ROWS], const kiln_matrix *A) {
    kiln_device *device = kiln_matrix_device(A);
    kiln_matrix *y = NULL, *out = NULL, *long_out = NULL;
    STEP(kiln_matrix_dense(&y, device, KILN_F64, COLS, 1, X));
    STEP(kiln_matrix_dense(&out, device, KILN_F64, COLS, 1, NULL));
    STEP(kiln_matrix_dense(&long_out, device, KILN_F64, ROWS, 1, NULL));
    STEP(kiln_mmchain(out, 1, A, NULL, y, 0, NULL));
    STEP(kiln_multiply(long_out, 1, KILN_PLAIN, A, y, 0, NULL));
    STEP(kiln_matrix_get(w, out));
    STEP(kiln_matrix_get(q, long_out));
    kiln_matrix_free(y);
    kiln_matrix_free(out);
    kiln_matrix_free(long_out);
}

static void expect(double w[COLS], double q[ROWS]) {
    memset(w, 0, COLS * sizeof *w);
    for (int i = 0; i < ROWS; i++) {
        q[i] = 0;
        for (int j = 0; j < COLS; j++) q[i] += X[i * COLS + j] * X[j];
        for (int j = 0; j < COLS; j++) w[j] += q[i] * X[i * COLS + j];
    }
}

/* Some rows, wherever they lie. */
static void check_rows(const kiln_matrix *A) {
    static const int64_t rows[] = {ROWS - 1, 0, 17, 18, 17};
    enum { COUNT = sizeof rows / sizeof *rows };
    double some[COUNT * COLS];
    kiln_matrix *R = NULL;
    STEP(kiln_matrix_dense(&R, kiln_matrix_device(A), KILN_F64, COUNT, COLS, NULL));
    STEP(kiln_rows(R, A, rows));
    STEP(kiln_matrix_get(some, R));
    for (int i = 0; i < COUNT; i++)
        assert_memory_equal(&some[i * COLS], &X[rows[i] * COLS], COLS * sizeof *X);
    kiln_matrix_free(R);
}

static void compare(const kiln_matrix *A) {
    static double w[COLS], q[ROWS], right_w[COLS], right_q[ROWS];
    passes(w, q, A);
    expect(right_w, right_q);
    for (int j = 0; j < COLS; j++) assert_true(fabs(w[j] - right_w[j]) <= 1e-11 * (1e4 + fabs(right_w[j])));
    for (int i = 0; i < ROWS; i++) assert_true(fabs(q[i] - right_q[i]) <= 1e-12 * (100 + fabs(right_q[i])));
}

static void on_device(const char *name, int64_t memory) {
    const kiln_device_options options = {.memory = memory};
    kiln_device *device = NULL, *cpu = NULL;
    kiln_data *data = NULL;
    kiln_device_statistics statistics = {0};
    static double back[ELEMENTS];
    if (kiln_device_open(&device, name, &options) != KILN_OK) {
        print_message("    skip %s: %s\n", name, kiln_last_error()->message);
        skip();
    }
    STEP(open_data(&data, device, 1));
    const kiln_matrix *A = kiln_data_X(data);
    compare(A);
    kiln_device_get_statistics(device, &statistics);
    const bool streams = !strcmp(name, "cpu") || memory > 0;
    assert_true(streams == (statistics.panels > 0));
    check_rows(A);
    if (memory) assert_true(statistics.memory_peak <= memory && statistics.panels > 4);
    STEP(kiln_matrix_get(back, A));
    assert_memory_equal(back, X, sizeof X);
    /* To another device and back, still in the file. */
    STEP(kiln_device_open(&cpu, "cpu", NULL));
    STEP(kiln_data_move(data, cpu));
    compare(kiln_data_X(data));
    STEP(kiln_data_move(data, device));
    compare(kiln_data_X(data));
    kiln_data_free(data);
    kiln_device_close(cpu);
    kiln_device_get_statistics(device, &statistics);
    assert_int_equal(statistics.memory_used, 0 + device->scratch.bytes);
    kiln_device_close(device);
}

static void on_the_cpu(void **state) {
    (void)state;
    on_device("cpu", 0);
}

static void with_little_memory(void **state) {
    (void)state;
    on_device("cpu", sizeof X / 3);
}

/* Other matrices on a deterministic device do not move the panels, and so the bits stay. */
static void panels_stay_where_they_are(const char *name) {
    const kiln_device_options options = {.memory = sizeof X / 3, .threads = 2, .deterministic = 1};
    static double w[2][COLS], q[2][ROWS];
    kiln_device *device = NULL;
    kiln_data *data = NULL;
    kiln_matrix *more = NULL;
    kiln_device_statistics before = {0}, between = {0}, after = {0};
    if (kiln_device_open(&device, name, &options) != KILN_OK) skip();
    STEP(open_data(&data, device, 1));
    kiln_device_get_statistics(device, &before);
    passes(w[0], q[0], kiln_data_X(data));
    kiln_device_get_statistics(device, &between);
    STEP(kiln_matrix_dense(&more, device, KILN_F64, ROWS, 3, NULL));
    passes(w[1], q[1], kiln_data_X(data));
    kiln_device_get_statistics(device, &after);
    if (strcmp(name, "cpu") == 0)
        assert_true(after.panels - between.panels == between.panels - before.panels);
    assert_memory_equal(w[0], w[1], sizeof *w);
    assert_memory_equal(q[0], q[1], sizeof *q);
    kiln_matrix_free(more);
    kiln_data_free(data);
    kiln_device_close(device);
}

static void deterministic_on_the_cpu(void **state) {
    (void)state;
    panels_stay_where_they_are("cpu");
}

static void deterministic_on_opencl(void **state) {
    (void)state;
    panels_stay_where_they_are("opencl");
}

static void on_opencl(void **state) {
    (void)state;
    on_device("opencl", 0);
}

static void on_opencl_with_little_memory(void **state) {
    (void)state;
    on_device("opencl", sizeof X / 3);
}

static kiln_device *cpu_device(void) {
    kiln_device *cpu = NULL;
    assert_int_equal(kiln_device_open(&cpu, "cpu", NULL), KILN_OK);
    return cpu;
}

static void refusals(void **state) {
    (void)state;
    kiln_device *cpu = cpu_device();
    kiln_data *data = NULL;
    kiln_read_options options = {.map = 1, .type = KILN_F64};
    assert_fails(KILN_ERR_ARGUMENT, kiln_data_read(&data, cpu, "-", &options));
    assert_fails(KILN_ERR_UNSUPPORTED, kiln_data_read(&data, cpu, "/dev/null", &options));
    assert_fails(KILN_ERR_IO, kiln_data_read(&data, cpu, "/nowhere/X.npy", &options));
    options.limit = 1000;
    assert_fails(KILN_ERR_LIMIT, kiln_data_read(&data, cpu, path, &options));
    options.limit = 0;
    const double nan_value = NAN;
    change(128 + 8 * (7 * COLS + 2), &nan_value, 8);
    assert_fails(KILN_ERR_PARSE, kiln_data_read(&data, cpu, path, &options));
    assert_contains(kiln_last_error()->message, "row 8, column 3");
    assert_int_equal(kiln_last_error()->offset, 128 + 8 * (7 * COLS + 2));
    options.allow_nonfinite = 1;
    assert_int_equal(kiln_data_read(&data, cpu, path, &options), KILN_OK);
    kiln_data_free(data);
    data = NULL;
    assert_int_equal(truncate(path, 128 + 8 * ELEMENTS - 8), 0);
    assert_fails(KILN_ERR_PARSE, kiln_data_read(&data, cpu, path, &options));
    assert_int_equal(truncate(path, 100), 0);
    assert_fails(KILN_ERR_PARSE, kiln_data_read(&data, cpu, path, &options));
    assert_null(data);
    kiln_device_close(cpu);
}

/* Operations that need all of X at once say so. */
static void other_operations(void **state) {
    (void)state;
    kiln_device *cpu = cpu_device();
    kiln_data *data = NULL;
    double norm[COLS];
    assert_int_equal(open_data(&data, cpu, 1), KILN_OK);
    assert_fails(KILN_ERR_UNSUPPORTED, kiln_norm(norm, kiln_data_X(data), KILN_NORM_2));
    kiln_data_free(data);
    kiln_device_close(cpu);
}

struct judged {
    kiln_verification model;
    kiln_kmeans_verification clusters;
    kiln_svd_verification triples;
};

/* Claims that any numbers make, one right as another. */
static void judge(struct judged *judged, const kiln_matrix *A) {
    kiln_device *device = kiln_matrix_device(A);
    const int64_t rows = kiln_matrix_rows(A), cols = kiln_matrix_cols(A);
    kiln_matrix *w = NULL, *y = NULL, *V = NULL, *s = NULL, *C = NULL;
    STEP(kiln_matrix_dense(&w, device, KILN_F64, cols, 1, X));
    STEP(kiln_matrix_dense(&y, device, KILN_F64, rows, 1, X));
    STEP(kiln_matrix_dense(&V, device, KILN_F64, cols, 2, X));
    STEP(kiln_matrix_dense(&s, device, KILN_F64, 2, 1, (const double[]){9, 4}));
    STEP(kiln_matrix_dense(&C, device, KILN_F64, 3, cols, X));
    const kiln_loss loss = {.kind = KILN_LOSS_SQUARED, .y = y};
    *judged = (struct judged){.model = {.size = sizeof judged->model},
                              .clusters = {.size = sizeof judged->clusters},
                              .triples = {.size = sizeof judged->triples}};
    STEP(kiln_verify(&judged->model, &loss, A, w, NULL, NULL));
    STEP(kiln_verify_kmeans(&judged->clusters, C, A, NULL));
    STEP(kiln_verify_svd(&judged->triples, V, s, A, NULL));
    kiln_matrix *const all[] = {w, y, V, s, C};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

/* Two windows of rows give what all rows give, to the last bit. */
static void judged_from_the_file(kiln_status (*fetch)(kiln_data **data, kiln_device *device, int map)) {
    kiln_device *cpu = cpu_device();
    kiln_data *whole = NULL, *mapped = NULL;
    static struct judged found, wanted;
    STEP(fetch(&whole, cpu, 0));
    STEP(fetch(&mapped, cpu, 1));
    judge(&wanted, kiln_data_X(whole));
    judge(&found, kiln_data_X(mapped));
    assert_memory_equal(&found, &wanted, sizeof found);
    assert_true(found.model.objective > 1 && found.clusters.inertia > 1);
    kiln_data_free(whole);
    kiln_data_free(mapped);
    kiln_device_close(cpu);
}

static void dense_judged_from_the_file(void **state) {
    (void)state;
    judged_from_the_file(open_data);
}

/* Other numbers of the same size in the same place, and the time of writing set back: no result, from the CPU
 * and from a device that brings X. */
static void written_in_use(void **state) {
    (void)state;
    const double one = 1;
    static const struct timespec tick = {.tv_nsec = 20000000};
    const struct timespec back[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    kiln_device *cpu = cpu_device();
    for (int set_back = 0; set_back < 2; set_back++) {
        kiln_data *data = NULL;
        kiln_matrix *y = NULL, *w = NULL;
        assert_int_equal(utimensat(AT_FDCWD, path, back, 0), 0);
        nanosleep(&tick, NULL);
        assert_int_equal(open_data(&data, cpu, 1), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&y, cpu, KILN_F64, COLS, 1, X), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&w, cpu, KILN_F64, COLS, 1, NULL), KILN_OK);
        assert_int_equal(kiln_mmchain(w, 1, kiln_data_X(data), NULL, y, 0, NULL), KILN_OK);
        nanosleep(&tick, NULL);
        change(128 + 8 * 1000, &one, 8);
        if (set_back) assert_int_equal(utimensat(AT_FDCWD, path, back, 0), 0);
        assert_fails(KILN_ERR_IO, kiln_mmchain(w, 1, kiln_data_X(data), NULL, y, 0, NULL));
        assert_contains(kiln_last_error()->message, "changed while it was in use");
        assert_string_equal(kiln_last_error()->file, path);
        kiln_matrix_free(y);
        kiln_matrix_free(w);
        kiln_data_free(data);
    }
    kiln_device_close(cpu);
}

static void cut_off_in_use(void **state) {
    (void)state;
    kiln_device *cpu = cpu_device();
    kiln_data *data = NULL;
    kiln_matrix *y = NULL, *w = NULL;
    assert_int_equal(open_data(&data, cpu, 1), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&y, cpu, KILN_F64, COLS, 1, X), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&w, cpu, KILN_F64, COLS, 1, NULL), KILN_OK);
    assert_int_equal(truncate(path, 4096), 0);
    assert_fails(KILN_ERR_IO, kiln_mmchain(w, 1, kiln_data_X(data), NULL, y, 0, NULL));
    assert_contains(kiln_last_error()->message, "shorter");
    assert_contains(kiln_last_error()->hint, "alone");
    kiln_matrix_free(y);
    kiln_matrix_free(w);
    kiln_data_free(data);
    kiln_device_close(cpu);
}

/* Reading fails once at each of its calls: an error that names the file, then the right result. */
static void disk_faults(void **state) {
    (void)state;
    kiln_device *cpu = cpu_device();
    kiln_data *data = NULL;
    assert_int_equal(open_data(&data, cpu, 1), KILN_OK);
    for (const struct brutal_file_fault *fault = brutal_file_faults; fault->name; fault++) {
        long n = 0;
        for (bool fired = true; fired; n++) {
            static double w[COLS], q[ROWS];
            kiln_matrix *y = NULL, *out = NULL;
            assert_int_equal(kiln_matrix_dense(&y, cpu, KILN_F64, COLS, 1, X), KILN_OK);
            assert_int_equal(kiln_matrix_dense(&out, cpu, KILN_F64, COLS, 1, NULL), KILN_OK);
            brutal_files_start(fault, n, false);
            kiln_status status = kiln_mmchain(out, 1, kiln_data_X(data), NULL, y, 0, NULL);
            fired = brutal_files_stop();
            assert_int_equal(status, fired && !fault->harmless ? KILN_ERR_IO : KILN_OK);
            if (status != KILN_OK) assert_contains(kiln_last_error()->message, path);
            assert_int_equal(kiln_mmchain(out, 1, kiln_data_X(data), NULL, y, 0, NULL), KILN_OK);
            assert_int_equal(kiln_matrix_get(w, out), KILN_OK);
            static double right[COLS];
            expect(right, q);
            for (int j = 0; j < COLS; j++)
                assert_true(fabs(w[j] - right[j]) <= 1e-11 * (1e4 + fabs(right[j])));
            kiln_matrix_free(y);
            kiln_matrix_free(out);
        }
        assert_true(n > 1);
    }
    kiln_data_free(data);
    kiln_device_close(cpu);
}

static void memory_body(void *context) {
    (void)context;
    const kiln_device_options options = {.memory = sizeof X / 3};
    kiln_device *cpu = NULL;
    kiln_data *data = NULL;
    static double w[COLS], q[ROWS];
    STEP(kiln_device_open(&cpu, "cpu", &options));
    STEP(open_data(&data, cpu, 1));
    passes(w, q, kiln_data_X(data));
    kiln_data_free(data);
    kiln_device_close(cpu);
}

static void memory_faults(void **state) {
    (void)state;
    brutal_memory("passes over a file", 2, memory_body, NULL);
}

/* ---------------------------------------------------------------------------------------- sparse */

static char npz[80];

/* Rows of different lengths, some empty. */
static int make_npz(void **state) {
    kiln_device *cpu = cpu_device();
    kiln_matrix *A = NULL;
    kiln_data *data = NULL;
    static int64_t start[ROWS + 1];
    static int32_t col[ELEMENTS];
    static double values[ELEMENTS];
    make_file(state);
    int64_t nnz = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++)
            if (i % 7 && (i + j * j) % 3) col[nnz] = j, values[nnz++] = X[i * COLS + j];
        start[i + 1] = nnz;
    }
    snprintf(npz, sizeof npz, "%s.npz", path);
    assert_int_equal(kiln_matrix_csr(&A, cpu, KILN_F64, ROWS, COLS, start, col, values), KILN_OK);
    assert_int_equal(kiln_data_create(&data, A, NULL), KILN_OK);
    assert_int_equal(kiln_data_write(data, npz, KILN_FILE_NPZ, NULL), KILN_OK);
    kiln_data_free(data);
    kiln_device_close(cpu);
    return 0;
}

static int remove_npz(void **state) {
    unlink(npz);
    return remove_file(state);
}

static kiln_data *open_npz(kiln_device *device, int map) {
    const kiln_read_options options = {.map = map};
    kiln_data *data = NULL;
    assert_int_equal(kiln_data_read(&data, device, npz, &options), KILN_OK);
    return data;
}

static kiln_status open_sparse(kiln_data **data, kiln_device *device, int map) {
    *data = open_npz(device, map);
    return KILN_OK;
}

static void sparse_judged_from_the_file(void **state) {
    (void)state;
    judged_from_the_file(open_sparse);
}

static void sparse_on(const char *name, int64_t memory) {
    const kiln_device_options options = {.memory = memory};
    kiln_device *device = NULL, *cpu = cpu_device();
    static double w[COLS], q[ROWS], right_w[COLS], right_q[ROWS];
    if (kiln_device_open(&device, name, &options) != KILN_OK) {
        print_message("    skip %s: %s\n", name, kiln_last_error()->message);
        skip();
    }
    kiln_data *whole = open_npz(cpu, 0), *mapped = open_npz(device, 1);
    const kiln_matrix *A = kiln_data_X(mapped), *B = kiln_data_X(whole);
    assert_true(kiln_matrix_format(A) == KILN_CSR && kiln_matrix_nnz(A) == kiln_matrix_nnz(B));
    passes(right_w, right_q, B);
    passes(w, q, A);
    for (int j = 0; j < COLS; j++) assert_true(fabs(w[j] - right_w[j]) <= 1e-11 * (1e4 + fabs(right_w[j])));
    for (int i = 0; i < ROWS; i++) assert_true(fabs(q[i] - right_q[i]) <= 1e-12 * (100 + fabs(right_q[i])));
    static int64_t start[2][ROWS + 1];
    static int32_t col[2][ELEMENTS];
    static double values[2][ELEMENTS];
    assert_int_equal(kiln_matrix_get_csr(start[0], col[0], values[0], A), KILN_OK);
    assert_int_equal(kiln_matrix_get_csr(start[1], col[1], values[1], B), KILN_OK);
    assert_memory_equal(start[0], start[1], sizeof start[0]);
    assert_memory_equal(col[0], col[1], sizeof col[0]);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    kiln_data_free(whole);
    kiln_data_free(mapped);
    kiln_device_close(device);
    kiln_device_close(cpu);
}

static void sparse_on_the_cpu(void **state) {
    (void)state;
    sparse_on("cpu", 0);
    sparse_on("cpu", sizeof X / 3);
}

static void sparse_on_opencl(void **state) {
    (void)state;
    sparse_on("opencl", 0);
    sparse_on("opencl", sizeof X / 3);
}

/* The first byte of a column's number, wherever the archive keeps it: the file has this run of bytes once. */
static int64_t find_bytes(const void *wanted, size_t size) {
    static unsigned char bytes[1 << 21];
    const int fd = open(npz, O_RDONLY);
    const ssize_t total = read(fd, bytes, sizeof bytes);
    close(fd);
    for (ssize_t at = 0; at + (ssize_t)size <= total; at++)
        if (memcmp(bytes + at, wanted, size) == 0) return at;
    fail_msg("not found");
    return -1;
}

static void overwrite(int64_t offset, unsigned char byte) {
    const int fd = open(npz, O_WRONLY);
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

/* Columns are checked in chunks of 2 MiB: where one ends within a row, the two neighbours are compared as
 * well. */
static void sparse_of_several_chunks(void **state) {
    (void)state;
    enum { LONG_ROWS = 5, LONG_COLS = 400000 };
    kiln_device *cpu = cpu_device();
    kiln_matrix *A = NULL;
    kiln_data *data = NULL;
    const kiln_read_options options = {.map = 1};
    int64_t start[LONG_ROWS + 1] = {0};
    int32_t *col = malloc(sizeof *col * LONG_ROWS * LONG_COLS),
            *back = malloc(sizeof *col * LONG_ROWS * LONG_COLS);
    double *values = calloc(LONG_ROWS * LONG_COLS, sizeof *values);
    assert_true(col && back && values);
    for (int i = 0; i < LONG_ROWS; i++) start[i + 1] = start[i] + LONG_COLS;
    for (int e = 0; e < LONG_ROWS * LONG_COLS; e++) col[e] = e % LONG_COLS;
    assert_int_equal(kiln_matrix_csr(&A, cpu, KILN_F64, LONG_ROWS, LONG_COLS, start, col, values), KILN_OK);
    assert_int_equal(kiln_data_create(&data, A, NULL), KILN_OK);
    assert_int_equal(kiln_data_write(data, npz, KILN_FILE_NPZ, NULL), KILN_OK);
    kiln_data_free(data);
    data = open_npz(cpu, 1);
    assert_int_equal(kiln_matrix_get_csr(NULL, back, NULL, kiln_data_X(data)), KILN_OK);
    assert_memory_equal(back, col, sizeof *col * LONG_ROWS * LONG_COLS);
    kiln_data_free(data);
    free(col);
    free(back);
    free(values);

    char packed[500];
    snprintf(packed, sizeof packed, "%s/io/fixtures/csc.npz", KILN_TEST_DATA);
    data = NULL;
    assert_fails(KILN_ERR_UNSUPPORTED, kiln_data_read(&data, cpu, packed, &options));
    assert_contains(kiln_last_error()->message, "stored by columns");
    kiln_device_close(cpu);
}

static void sparse_that_changes(void **state) {
    (void)state;
    kiln_device *cpu = cpu_device();
    kiln_data *data = open_npz(cpu, 1), *second = NULL;
    kiln_matrix *y = NULL, *w = NULL;
    const kiln_read_options options = {.map = 1};
    assert_int_equal(kiln_matrix_dense(&y, cpu, KILN_F64, COLS, 1, X), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&w, cpu, KILN_F64, COLS, 1, NULL), KILN_OK);
    int32_t found[8];
    int64_t start[ROWS + 1];
    static int32_t col[ELEMENTS];
    assert_int_equal(kiln_matrix_get_csr(start, col, NULL, kiln_data_X(data)), KILN_OK);
    memcpy(found, col, sizeof found);
    const int64_t at = find_bytes(found, sizeof found);
    overwrite(at, 200); /* beyond the last column */
    assert_fails(KILN_ERR_IO, kiln_mmchain(w, 1, kiln_data_X(data), NULL, y, 0, NULL));
    assert_contains(kiln_last_error()->message, "changed");
    assert_fails(KILN_ERR_PARSE, kiln_data_read(&second, cpu, npz, &options));
    assert_contains(kiln_last_error()->message, "checksum");
    overwrite(at, (unsigned char)found[0]);
    overwrite(find_bytes(&X[COLS + 3], 8) + 1, 0x55); /* a value */
    assert_fails(KILN_ERR_PARSE, kiln_data_read(&second, cpu, npz, &options));
    assert_contains(kiln_last_error()->message, "checksum");
    assert_null(second);
    kiln_matrix_free(y);
    kiln_matrix_free(w);
    kiln_data_free(data);
    kiln_device_close(cpu);
}

static void npz_memory_body(void *context) {
    (void)context;
    const kiln_read_options options = {.map = 1};
    kiln_device *cpu = NULL;
    kiln_data *data = NULL;
    static double w[COLS], q[ROWS];
    STEP(kiln_device_open(&cpu, "cpu", NULL));
    STEP(kiln_data_read(&data, cpu, npz, &options));
    passes(w, q, kiln_data_X(data));
    kiln_data_free(data);
    kiln_device_close(cpu);
}

static void sparse_memory_faults(void **state) {
    (void)state;
    brutal_memory("passes over a sparse file", 1, npz_memory_body, NULL);
}

#define SPARSE_TEST(function) cmocka_unit_test_setup_teardown(function, make_npz, remove_npz)
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_file, remove_file)

/* ---------------------------------------------------------------------------------------- factors */

enum { FACTORS = 3 };

/* The factors of ratings: those of the file's entries. */
static kiln_status factors_of(double A[ROWS * FACTORS], double B[COLS * FACTORS], const kiln_matrix *R) {
    const kiln_als_options options = {.max_iterations = 3, .biases = 1, .seed = 4};
    kiln_device *device = kiln_matrix_device(R);
    kiln_matrix *a = NULL, *b = NULL;
    kiln_status status = kiln_matrix_dense(&a, device, KILN_F64, ROWS, FACTORS, NULL);
    if (status == KILN_OK) status = kiln_matrix_dense(&b, device, KILN_F64, COLS, FACTORS, NULL);
    if (status == KILN_OK) status = kiln_als(a, b, R, &options, NULL);
    if (status == KILN_OK) status = kiln_matrix_get(A, a);
    if (status == KILN_OK) status = kiln_matrix_get(B, b);
    kiln_matrix_free(a);
    kiln_matrix_free(b);
    return status;
}

static double right_A[ROWS * FACTORS], right_B[COLS * FACTORS], got_A[ROWS * FACTORS], got_B[COLS * FACTORS];

static void expect_factors(void) {
    kiln_device *cpu = cpu_device();
    kiln_data *whole = open_npz(cpu, 0);
    assert_int_equal(factors_of(right_A, right_B, kiln_data_X(whole)), KILN_OK);
    kiln_data_free(whole);
    kiln_device_close(cpu);
}

static void check_factors(void) {
    for (int i = 0; i < ROWS * FACTORS; i++) assert_true(fabs(got_A[i] - right_A[i]) <= 1e-9);
    for (int i = 0; i < COLS * FACTORS; i++) assert_true(fabs(got_B[i] - right_B[i]) <= 1e-9);
}

/* With a budget so small that the columns are sorted in several bands. */
static void factors_with_little_memory(void **state) {
    (void)state;
    const kiln_device_options options = {.memory = 2 * (ROWS + COLS) * FACTORS * 8 + 200000};
    kiln_device *cpu = NULL;
    expect_factors();
    assert_int_equal(kiln_device_open(&cpu, "cpu", &options), KILN_OK);
    kiln_data *mapped = open_npz(cpu, 1);
    assert_int_equal(factors_of(got_A, got_B, kiln_data_X(mapped)), KILN_OK);
    check_factors();
    kiln_data_free(mapped);
    kiln_device_close(cpu);
}

/* Each call of the temporary file and of the data's fails in turn: an error, and no file is left. */
static void factors_disk_faults(void **state) {
    (void)state;
    kiln_device *cpu = cpu_device();
    kiln_data *mapped = open_npz(cpu, 1);
    expect_factors();
    for (const struct brutal_file_fault *fault = brutal_file_faults; fault->name; fault++) {
        long n = 0;
        for (bool fired = true; fired; n++) {
            brutal_files_start(fault, n, false);
            const kiln_status status = factors_of(got_A, got_B, kiln_data_X(mapped));
            const bool mattered = brutal_files_mattered();
            fired = brutal_files_stop();
            if (!fired || fault->harmless) assert_int_equal(status, KILN_OK);
            if (fired && mattered && !fault->harmless && status != KILN_OK)
                assert_int_equal(status, KILN_ERR_IO);
            if (status == KILN_OK) check_factors();
        }
        assert_true(n > 10);
    }
    kiln_data_free(mapped);
    kiln_device_close(cpu);
}

static void factors_body(void *context) {
    kiln_device *cpu = NULL;
    kiln_data *data = NULL;
    const kiln_read_options options = {.map = 1};
    (void)context;
    STEP(kiln_device_open(&cpu, "cpu", NULL));
    STEP(kiln_data_read(&data, cpu, npz, &options));
    STEP(factors_of(got_A, got_B, kiln_data_X(data)));
    check_factors();
    kiln_data_free(data);
    kiln_device_close(cpu);
}

static void factors_memory_faults(void **state) {
    (void)state;
    expect_factors();
    brutal_memory("factors of a file", 1, factors_body, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(on_the_cpu),
                                       TEST(with_little_memory),
                                       TEST(refusals),
                                       TEST(other_operations),
                                       TEST(dense_judged_from_the_file),
                                       TEST(written_in_use),
                                       TEST(cut_off_in_use),
                                       TEST(disk_faults),
                                       TEST(memory_faults),
                                       SPARSE_TEST(sparse_on_the_cpu),
                                       SPARSE_TEST(sparse_judged_from_the_file),
                                       SPARSE_TEST(sparse_of_several_chunks),
                                       SPARSE_TEST(sparse_that_changes),
                                       SPARSE_TEST(sparse_memory_faults),
                                       SPARSE_TEST(sparse_on_opencl),
                                       SPARSE_TEST(factors_with_little_memory),
                                       SPARSE_TEST(factors_disk_faults),
                                       SPARSE_TEST(factors_memory_faults),
                                       TEST(on_opencl),
                                       TEST(deterministic_on_the_cpu),
                                       TEST(deterministic_on_opencl),
                                       TEST(on_opencl_with_little_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
