/* Any bytes as a packed file. Checksums are not compared in a fuzz build. */
#define _GNU_SOURCE
#include "reader_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    kiln_read_options options = {.type = KILN_F64, .threads = 1, .text_targets = KILN_TARGETS_TEXT};
    run_reader(ki_read_panels, bytes, size, &options);
    options.type = KILN_F32;
    options.allow_nonfinite = 1;
    run_reader(ki_read_panels, bytes, size, &options);
    return 0;
}
