/* Any bytes as an edge list. */
#define _GNU_SOURCE
#include "reader_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const kiln_read_options usual = {.type = KILN_F64, .threads = 2, .limit = 1 << 24};
    static const kiln_read_options other = {
        .type = KILN_F32, .threads = 1, .limit = 1 << 24, .strict = 1, .allow_nonfinite = 1};
    run_reader(ki_read_ratings, bytes, size, &usual);
    run_reader(ki_read_ratings, bytes, size, &other);
    return 0;
}
