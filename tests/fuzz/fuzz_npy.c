/* Any bytes as an .npy file. */
#define _GNU_SOURCE
#include "reader_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    kiln_read_options options = {.type = KILN_F64, .threads = 1};
    run_reader(ki_read_npy, bytes, size, &options);
    options.type = KILN_F32;
    options.allow_nonfinite = 1;
    run_reader(ki_read_npy, bytes, size, &options);
    return 0;
}
