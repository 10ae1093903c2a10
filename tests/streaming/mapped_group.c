/* X in its file, on a group: each member opens the file again and streams its own rows, within a budget of
 * its own. */
#define _GNU_SOURCE
#include <malloc.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/check.h"
#include "core/group/group.h"
#include "core/matrix.h"
#include "faults/brutal.h"

enum { ROWS = 6000, COLS = 40, ELEMENTS = ROWS * COLS, MEMBERS = 3, BUDGET = 256 << 10 };

static char path[2][64]; /* dense; sparse */
static double values[ELEMENTS], right[2][COLS], y[COLS];
static struct ki_seams real; /* the allocator as the library has it, before a test counts */

static kiln_device *open_device(const char *name, int64_t memory) {
    const kiln_device_options options = {.memory = memory, .threads = MEMBERS};
    kiln_device *device = NULL;
    if (kiln_device_open(&device, name, &options) != KILN_OK) {
        print_message("    skip %s: %s\n", name, kiln_last_error()->message);
        skip();
    }
    return device;
}

static void write_file(int sparse, kiln_matrix *A) {
    kiln_data *data = NULL;
    snprintf(path[sparse], sizeof path[sparse], "/tmp/kiln-group-%d.%s", (int)getpid(),
             sparse ? "npz" : "npy");
    assert_int_equal(kiln_data_create(&data, A, NULL), KILN_OK);
    assert_int_equal(kiln_data_write(data, path[sparse], KILN_FILE_AUTO, NULL), KILN_OK);
    kiln_data_free(data);
}

/* right = X^T (X y), of the same rows as a matrix and without their zeros. */
static int make_files(void **state) {
    static int64_t start[ROWS + 1];
    static int32_t col[ELEMENTS];
    static double kept[ELEMENTS];
    kiln_device *cpu = open_device("cpu", 0);
    kiln_matrix *A[2] = {NULL, NULL};
    (void)state;
    real = ki_seams;
    memset(right, 0, sizeof right);
    for (int j = 0; j < COLS; j++) y[j] = cos(j);
    for (int i = 0, e = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < COLS; j++) {
            const double x = (i + j * j) % 3 ? sin(1 + (i * COLS + j) % 977) : 0;
            values[i * COLS + j] = x;
            sum += x * y[j];
            if (x != 0) col[e] = j, kept[e++] = x;
        }
        for (int j = 0; j < COLS; j++) right[0][j] += sum * values[i * COLS + j];
        start[i + 1] = e;
    }
    memcpy(right[1], right[0], sizeof right[0]);
    assert_int_equal(kiln_matrix_dense(&A[0], cpu, KILN_F64, ROWS, COLS, values), KILN_OK);
    assert_int_equal(kiln_matrix_csr(&A[1], cpu, KILN_F64, ROWS, COLS, start, col, kept), KILN_OK);
    for (int sparse = 0; sparse < 2; sparse++) write_file(sparse, A[sparse]);
    kiln_device_close(cpu);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    ki_seams = real; /* a test that failed may have left its counters there */
    for (int sparse = 0; sparse < 2; sparse++) unlink(path[sparse]);
    return 0;
}

static kiln_data *open_data(kiln_device *device, int sparse) {
    kiln_data *data = NULL;
    const kiln_read_options options = {.map = 1};
    STEP(kiln_data_read(&data, device, path[sparse], &options));
    return data;
}

/* *status: of the pass; its result is checked if there is one. */
static void pass(kiln_status *status, kiln_data *data, int sparse) {
    kiln_device *device = kiln_matrix_device(kiln_data_X(data));
    kiln_matrix *in = NULL, *out = NULL;
    double w[COLS];
    STEP(kiln_matrix_dense(&in, device, KILN_F64, COLS, 1, y));
    STEP(kiln_matrix_dense(&out, device, KILN_F64, COLS, 1, NULL));
    *status = kiln_mmchain(out, 1, kiln_data_X(data), NULL, in, 0, NULL);
    if (*status == KILN_OK) STEP(kiln_matrix_get(w, out));
    for (int j = 0; j < COLS && *status == KILN_OK; j++)
        assert_true(fabs(w[j] - right[sparse][j]) <= 1e-11 * (1e4 + fabs(right[sparse][j])));
    kiln_matrix_free(in);
    kiln_matrix_free(out);
}

/* ---------------------------------------------------------------------------------------- budgets */

/* Bytes that the library has from the allocator, which keeps the count, and the most at a time since it was
 * set. */
static atomic_llong alive, most;

static void count(long long bytes) {
    const long long now = atomic_fetch_add(&alive, bytes) + bytes;
    long long before = most;
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {
    }
}

static void *counted_alloc(size_t bytes, size_t align) {
    void *block = real.alloc(bytes, align);
    if (block) count((long long)malloc_usable_size(block));
    return block;
}

static void *counted_resize(void *block, size_t bytes) {
    const long long before = block ? (long long)malloc_usable_size(block) : 0;
    void *resized = real.resize(block, bytes);
    if (resized) count((long long)malloc_usable_size(resized) - before);
    return resized;
}

static void counted_release(void *block) {
    if (block) count(-(long long)malloc_usable_size(block));
    real.release(block);
}

/* Passes of a group whose members have BUDGET each; on processors the allocator sees what they have. */
static void within_budgets(const char *name, bool counted) {
    for (int sparse = 0; sparse < 2; sparse++) {
        kiln_device *device = open_device(name, BUDGET);
        kiln_data *data = open_data(device, sparse);
        kiln_status status;
        const int64_t starts =
            sparse ? (ROWS + 1) * 2 * 8 : 0; /* in host memory, of the whole and of the slices */
        atomic_store(&alive, 0);
        atomic_store(&most, 0);
        ki_seams.alloc = counted_alloc, ki_seams.resize = counted_resize, ki_seams.release = counted_release;
        for (int turn = 0; turn < 3; turn++) {
            pass(&status, data, sparse);
            assert_int_equal(status, KILN_OK);
        }
        /* Members may run one after another: the allocator saw at least what each says that it had. */
        for (int i = 0; i < MEMBERS; i++) {
            const kiln_device_statistics *s = &device->group->member[i]->statistics;
            assert_true(s->memory_peak > 0 && s->memory_peak <= BUDGET && s->panels > 3);
            if (counted) assert_true(most >= s->memory_peak);
        }
        if (counted) assert_true(most <= MEMBERS * BUDGET + starts);
        kiln_data_free(data);
        ki_seams = real;
        for (int i = 0; i < MEMBERS; i++) {
            const kiln_device *member = device->group->member[i];
            assert_int_equal(member->statistics.memory_used, member->scratch.bytes);
        }
        kiln_device_close(device);
    }
}

static void budgets_on_processors(void **state) {
    (void)state;
    assert_true(ELEMENTS * 8 > 2 * MEMBERS * BUDGET);
    within_budgets("cpu*3", true);
}

static void budgets_on_opencl(void **state) {
    (void)state;
    within_budgets("opencl*3", false);
    within_budgets("cpu@1,opencl:0.0*2@1", false); /* these and a processor */
}

/* A budget that not even one panel and its work space fit into is an error of the member that it is. */
static void too_little(void **state) {
    (void)state;
    kiln_device *device = open_device("cpu*3", 2 << 10);
    kiln_data *data = open_data(device, 0);
    kiln_status status;
    pass(&status, data, 0);
    assert_int_equal(status, KILN_ERR_NOMEM);
    assert_contains(kiln_last_error()->message, "cpu");
    kiln_data_free(data);
    kiln_device_close(device);
}

/* ----------------------------------------------------------------------------------------- faults */

/* The number that the next file to be opened gets. */
static int next_file(void) {
    const int next = dup(0);
    assert_true(next >= 0);
    close(next);
    return next;
}

static rlim_t limit_files(rlim_t limit) {
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    const rlim_t before = files.rlim_cur;
    files.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    return before;
}

/* The process may have so many more files open: too few for the first member, the second, the third, and then
 * enough. */
static void no_more_files(void **state) {
    (void)state;
    kiln_device *device = open_device("cpu*3", 0);
    for (int sparse = 0; sparse < 2; sparse++)
        for (int more = 0; more <= MEMBERS; more++) {
            const int first = next_file();
            kiln_data *data = open_data(device, sparse);
            kiln_status status;
            const rlim_t before = limit_files((rlim_t)(next_file() + more));
            pass(&status, data, sparse);
            limit_files(before);
            assert_int_equal(status, more == MEMBERS ? KILN_OK : KILN_ERR_IO);
            if (status != KILN_OK) assert_contains(kiln_last_error()->message, "cannot open once more");
            if (status != KILN_OK) assert_contains(kiln_last_error()->message, path[sparse]);
            pass(&status, data, sparse); /* and then it goes on */
            assert_int_equal(status, KILN_OK);
            kiln_data_free(data);
            assert_int_equal(next_file(), first); /* all are closed */
        }
    kiln_device_close(device);
}

static void disk_faults(void **state) {
    (void)state;
    kiln_device *device = open_device("cpu*3", BUDGET);
    for (int sparse = 0; sparse < 2; sparse++)
        for (const struct brutal_file_fault *fault = brutal_file_faults; fault->name; fault++) {
            long n = 0;
            for (bool fired = true; fired; n++) {
                kiln_data *data = open_data(device, sparse); /* whose members open it in the pass */
                kiln_status status;
                brutal_files_start(fault, n, false);
                pass(&status, data, sparse);
                fired = brutal_files_stop();
                assert_int_equal(status, fired && !fault->harmless ? KILN_ERR_IO : KILN_OK);
                if (status != KILN_OK) assert_contains(kiln_last_error()->message, path[sparse]);
                pass(&status, data, sparse);
                assert_int_equal(status, KILN_OK);
                kiln_data_free(data);
            }
            assert_true(n > MEMBERS);
        }
    kiln_device_close(device);
}

/* The last member's rows are gone: it finds too few, or another member that the file has changed. */
static void cut_off_in_use(void **state) {
    (void)state;
    kiln_device *device = open_device("cpu*3", 0);
    kiln_data *data = open_data(device, 0);
    kiln_status status;
    pass(&status, data, 0);
    assert_int_equal(status, KILN_OK);
    assert_int_equal(truncate(path[0], 128 + (ELEMENTS - 5) * 8), 0);
    pass(&status, data, 0);
    assert_int_equal(status, KILN_ERR_IO);
    assert_contains(kiln_last_error()->message, "while it was in use");
    kiln_data_free(data);
    kiln_device_close(device);
}

static void memory_body(void *context) {
    const int sparse = *(const int *)context;
    const kiln_device_options options = {.memory = BUDGET, .threads = MEMBERS};
    kiln_device *device = NULL;
    kiln_status status;
    STEP(kiln_device_open(&device, "cpu*3", &options));
    kiln_data *data = open_data(device, sparse);
    pass(&status, data, sparse);
    if (status != KILN_OK && brutal_fired()) {
        assert_int_equal(status, KILN_ERR_NOMEM);
        brutal_relent();
        pass(&status, data, sparse);
    }
    assert_int_equal(status, KILN_OK);
    kiln_data_free(data);
    kiln_device_close(device);
}

static void memory_faults(void **state) {
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++)
        brutal_memory(sparse ? "a group's pass over a sparse file" : "a group's pass over a file", 1,
                      memory_body, &sparse);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_files, remove_files)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(budgets_on_processors), TEST(budgets_on_opencl), TEST(too_little),   TEST(no_more_files),
        TEST(disk_faults),           TEST(cut_off_in_use),    TEST(memory_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
