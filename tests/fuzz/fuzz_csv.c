/* Any bytes as CSV. What stands before a NUL byte is a model's schema, what stands behind it the file;
 * without one the file is read three ways. */
#define _GNU_SOURCE
#include "reader_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    kiln_read_options options = {.type = KILN_F64, .threads = 1};
    const uint8_t *nul = size > 0 ? memchr(bytes, 0, size) : NULL;
    if (nul) {
        kiln_model *model = NULL;
        if (kiln_model_create(&model, "linreg") != KILN_OK) abort();
        if (kiln_model_set_text(model, "schema", (const char *)bytes) == KILN_OK) {
            options.model = model;
            run_reader(ki_read_csv, nul + 1, size - (size_t)(nul + 1 - bytes), &options);
        }
        kiln_model_free(model);
        return 0;
    }
    run_reader(ki_read_csv, bytes, size, &options);
    options.target = "y";
    run_reader(ki_read_csv, bytes, size, &options);
    options.text_targets = 1;
    options.type = KILN_F32;
    options.target = "a,b";
    options.weights = "w";
    options.offset = "o";
    options.allow_nonfinite = 1;
    run_reader(ki_read_csv, bytes, size, &options);
    return 0;
}
