/* Any bytes as a model file: an error, or a model that predicts and that a save gives back. The checksum is
 * not compared in a fuzz build (FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION), so that what lies behind it is
 * reached. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kiln.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A loaded model's weights fit into the input, so X with one row is small. */
static void predict_one_row(kiln_device *device, const kiln_model *model) {
    kiln_matrix *W = NULL, *X = NULL, *P = NULL;
    if (kiln_model_tensor(&W, device, KILN_TYPE_DEFAULT, model, "W") != KILN_OK) abort();
    if (kiln_matrix_dense(&X, device, kiln_matrix_type(W), 1, kiln_matrix_rows(W), NULL) == KILN_OK)
        kiln_predict(&P, model, X);
    kiln_matrix_free(P);
    kiln_matrix_free(X);
    kiln_matrix_free(W);
}

static void read_all(const kiln_model *model) {
    const char *name;
    int64_t rows, cols;
    kiln_type type;
    for (int64_t i = 0; (name = kiln_model_key(model, i)); i++)
        if (!kiln_model_text(model, name)) abort();
    for (int64_t i = 0; (name = kiln_model_tensor_info(model, i, &type, &rows, &cols)); i++)
        if (rows < 0 || cols < 0 || (type != KILN_F32 && type != KILN_F64)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static kiln_device *device;
    static int file = -1;
    static char path[64];
    kiln_model *model = NULL;
    if (!device) {
        const kiln_device_options one_thread = {.threads = 1};
        if (kiln_device_open(&device, "cpu", &one_thread) != KILN_OK) abort();
        file = memfd_create("model", MFD_CLOEXEC);
        if (file < 0) abort();
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size) abort();
    if (kiln_model_load(&model, path) == KILN_OK) {
        read_all(model);
        predict_one_row(device, model);
        if (kiln_model_save(model, "/dev/null") != KILN_OK) abort();
    } else if (model || kiln_last_error()->status == KILN_ERR_INTERNAL) {
        abort();
    }
    kiln_model_free(model);
    return 0;
}
