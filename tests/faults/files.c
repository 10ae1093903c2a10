/* Every file call fails once while data and models are read and written: the error says KILN_ERR_IO, what
 * stood under the name before is untouched, nothing else is left behind, and the same call then works.
 * Interrupted and short calls are no errors at all. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fake.h"
#include "faults/brutal.h"

enum { ROWS = 30, COLS = 4 };

static kiln_device *device;

static int setup(void **state) {
    world_make(state);
    assert_int_equal(mkdir(world_path("data"), 0700), 0);
    return kiln_device_open(&device, "cpu", &(kiln_device_options){.threads = 1});
}

static int teardown(void **state) {
    kiln_device_close(device);
    device = NULL;
    return world_clear(state);
}

static kiln_data *make_data(double first) {
    kiln_matrix *X = NULL, *y = NULL;
    kiln_data *data = NULL;
    double values[ROWS * COLS], targets[ROWS];
    int64_t row_start[ROWS + 1];
    int32_t col[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        values[i] = first + i / 8.0;
        col[i] = i % COLS;
    }
    for (int i = 0; i < ROWS; i++) targets[i] = i;
    for (int i = 0; i <= ROWS; i++) row_start[i] = i * COLS;
    STEP(kiln_matrix_csr(&X, device, KILN_F64, ROWS, COLS, row_start, col, values));
    STEP(kiln_matrix_dense(&y, device, KILN_F64, ROWS, 1, targets));
    STEP(kiln_data_create(&data, X, y));
    return data;
}

/* The file's first value, whatever its format; -1 if it is no sound file of ROWS rows. */
static double first_value(const char *path) {
    kiln_data *data = NULL;
    double values[ROWS * (COLS + 1)];
    if (kiln_data_read(&data, device, path, NULL) != KILN_OK) return -1;
    const kiln_matrix *X = kiln_data_X(data);
    bool sound = kiln_matrix_rows(X) == ROWS && kiln_matrix_cols(X) <= COLS + 1;
    if (sound && kiln_matrix_format(X) == KILN_CSR)
        assert_int_equal(kiln_matrix_get_csr(NULL, NULL, values, X), KILN_OK);
    else if (sound)
        assert_int_equal(kiln_matrix_get(values, X), KILN_OK);
    kiln_data_free(data);
    return sound ? values[0] : -1;
}

static int files_in_folder(void) {
    int count = 0;
    DIR *folder = opendir(world_path("data"));
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count - 2;
}

/* ------------------------------------------------------------------------------ what is put to test */

struct task {
    const char *name, *file;
    kiln_status (*run)(const char *path, double first);
    double (*check)(const char *path); /* the first value of what the file holds, -1 if it is not sound */
    bool writes;
};

static kiln_status write_data(const char *path, double first) {
    kiln_data *data = make_data(first);
    kiln_status status = kiln_data_write(data, path, KILN_FILE_AUTO, NULL);
    kiln_data_free(data);
    return status;
}

static kiln_status read_data(const char *path, double first) {
    kiln_data *data = NULL;
    kiln_status status = kiln_data_read(&data, device, path, NULL);
    assert_int_equal(status == KILN_OK, data != NULL);
    (void)first;
    kiln_data_free(data);
    return status;
}

static kiln_status save_model(const char *path, double first) {
    kiln_model *model = NULL;
    kiln_matrix *W = NULL;
    double values[COLS] = {first, 2, 3, 4};
    STEP(kiln_matrix_dense(&W, device, KILN_F64, COLS, 1, values));
    STEP(kiln_model_create(&model, "linreg"));
    STEP(kiln_model_set_text(model, "note", "a note"));
    STEP(kiln_model_set_tensor(model, "W", W));
    kiln_status status = kiln_model_save(model, path);
    kiln_model_free(model);
    kiln_matrix_free(W);
    return status;
}

static kiln_status load_model(const char *path, double first) {
    kiln_model *model = NULL;
    kiln_status status = kiln_model_load(&model, path);
    assert_int_equal(status == KILN_OK, model != NULL);
    (void)first;
    kiln_model_free(model);
    return status;
}

static double model_value(const char *path) {
    kiln_model *model = NULL;
    kiln_matrix *W = NULL;
    double values[COLS] = {-1};
    if (kiln_model_load(&model, path) != KILN_OK) return -1;
    assert_int_equal(kiln_model_tensor(&W, device, KILN_F64, model, "W"), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, W), KILN_OK);
    kiln_matrix_free(W);
    kiln_model_free(model);
    return values[0];
}

static const struct task tasks[] = {{"write LIBSVM", "a.svm", write_data, first_value, true},
                                    {"write gzip", "a.svm.gz", write_data, first_value, true},
                                    {"write Matrix Market", "a.mtx", write_data, first_value, true},
                                    {"write CSV", "a.csv", write_data, first_value, true},
                                    {"write npz", "a.npz", write_data, first_value, true},
                                    {"write packed", "a.kiln-data", write_data, first_value, true},
                                    {"save model", "a.kiln", save_model, model_value, true},
                                    {"read LIBSVM", "a.svm", read_data, first_value, false},
                                    {"read gzip", "a.svm.gz", read_data, first_value, false},
                                    {"read Matrix Market", "a.mtx", read_data, first_value, false},
                                    {"read CSV", "a.csv", read_data, first_value, false},
                                    {"read npz", "a.npz", read_data, first_value, false},
                                    {"read packed", "a.kiln-data", read_data, first_value, false},
                                    {"load model", "a.kiln", load_model, model_value, false}};

/* One call fails; then the old content (1) or the new (2) must be there, as the status says. */
static bool one_fault(const struct task *task, const struct brutal_file_fault *fault, long n,
                      bool persistent) {
    char path[512];
    snprintf(path, sizeof path, "%s", world_path("data/%s", task->file));
    assert_int_equal((task->check == model_value ? save_model : write_data)(path, 1), KILN_OK);
    int before = files_in_folder();
    brutal_files_start(fault, n, persistent);
    kiln_status status = task->run(path, 2);
    bool fired = brutal_files_stop();
    assert_false(brutal_files_torn_by_power());
    double value = task->check(path), written = task->writes ? 2 : 1;
    if (!fired || fault->harmless) {
        if (status != KILN_OK)
            fail_msg("%s, %s of call %ld: %s", task->name, fault->name, n, kiln_last_error()->message);
        assert_true(value == written);
    } else if (status != KILN_OK) {
        assert_int_equal(status, KILN_ERR_IO);
        assert_true(strlen(kiln_last_error()->message) > 0);
        /* Once renamed, a failing fsync of the folder is reported though the new content is there. */
        if (value != 1 && value != written)
            fail_msg("%s, %s of call %ld: the file is torn", task->name, fault->name, n);
    } else if (brutal_files_mattered()) {
        fail_msg("%s, %s of call %ld: not reported", task->name, fault->name, n);
    }
    /* Removing the temporary file can fail, too, if all fails. */
    if (!persistent) assert_int_equal(files_in_folder(), before);
    assert_int_equal(task->run(path, 2), KILN_OK);
    assert_true(task->check(path) == written);
    return fired;
}

static void every_file_call_fails(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof tasks / sizeof *tasks; t++) {
        long points = 0;
        for (const struct brutal_file_fault *fault = brutal_file_faults; fault->name; fault++)
            for (int persistent = 0; persistent < 2; persistent++) {
                if (persistent && fault->code == EINTR)
                    continue; /* interrupted for ever is waiting for ever */
                long n = 0;
                while (one_fault(&tasks[t], fault, n, persistent)) n++;
                points += n;
            }
        print_message("    %s: %ld faults\n", tasks[t].name, points);
        assert_true(points > 10);
    }
}

static void memory_body(void *context) {
    const struct task *task = context;
    char path[512];
    snprintf(path, sizeof path, "%s", world_path("data/%s", task->file));
    STEP(task->run(path, 2));
    assert_int_equal(files_in_folder(), 1);
}

static void every_allocation_fails(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof tasks / sizeof *tasks; t++) {
        struct task task = tasks[t];
        char path[512];
        remove_tree(world_path("data"));
        assert_int_equal(mkdir(world_path("data"), 0700), 0);
        snprintf(path, sizeof path, "%s", world_path("data/%s", task.file));
        assert_int_equal((task.check == model_value ? save_model : write_data)(path, 1), KILN_OK);
        brutal_memory(task.name, 2, memory_body, &task);
        assert_true(task.check(path) == (task.writes ? 2 : 1));
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(every_allocation_fails), TEST(every_file_call_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
