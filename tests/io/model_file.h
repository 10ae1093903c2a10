/* A small model to save, what to ask of its file, and a device: for the tests of model files. */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include "io/scratch.h"
#include "kiln.h"

static kiln_device *device;

static inline int open_device(void **state) {
    if (kiln_device_open(&device, "cpu", NULL) != KILN_OK) return -1;
    return scratch_make(state);
}

static inline int close_device(void **state) {
    kiln_device_close(device);
    return scratch_remove(state);
}

static inline void set_tensor(kiln_model *model, const char *name, kiln_type type, int64_t rows, int64_t cols,
                              const void *values) {
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, type, rows, cols, values), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, name, A), KILN_OK);
    kiln_matrix_free(A);
}

/* Three columns, two targets, texts that need escapes. */
static inline kiln_model *small_model(double first) {
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
    set_tensor(model, "b", KILN_F32, 1, 2, (float[]){0.1F, -0.0F});
    set_tensor(model, "W", KILN_F64, 3, 2, (double[]){first, 2, -3, 1e-310, 0.1, 1e300});
    assert_int_equal(kiln_model_set_text(model, "schema", "{\"a\":[\"\\n\",\"\xc3\xa9\"]}\n\t\x01"), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "l2", "0.25"), KILN_OK);
    return model;
}

/* A loaded W's first element; -1 if the file does not load. */
static inline double first_weight(const char *path) {
    kiln_model *model = NULL;
    if (kiln_model_load(&model, path) != KILN_OK) return -1;
    kiln_matrix *W = NULL;
    double values[6];
    assert_int_equal(kiln_model_tensor(&W, device, KILN_TYPE_DEFAULT, model, "W"), KILN_OK);
    assert_int_equal(kiln_matrix_rows(W) * kiln_matrix_cols(W), 6);
    assert_int_equal(kiln_matrix_get(values, W), KILN_OK);
    kiln_matrix_free(W);
    kiln_model_free(model);
    return values[0];
}

static inline void assert_same_bytes(const char *a, const char *b) {
    size_t size_a, size_b;
    char *bytes_a = file_bytes(a, &size_a), *bytes_b = file_bytes(b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(bytes_a, bytes_b, size_a);
    free(bytes_a);
    free(bytes_b);
}

#endif
