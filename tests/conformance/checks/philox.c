/* The reference generator itself, against the known answers published with Random123 (kat_vectors, philox4x32
 * 10). */
#include <string.h>

#include "cases.h"

static void run(struct check_context *context) {
    static const struct {
        uint64_t seed, stream, index;
        uint32_t out[4];
    } known[] = {{0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                 {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                 {UINT64_C(0x299f31d0a4093822),
                  UINT64_C(0x0370734413198a2e),
                  UINT64_C(0x85a308d3243f6a88),
                  {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        reference_philox(out, known[i].seed, known[i].stream, known[i].index);
        check_report(context, memcmp(out, known[i].out, sizeof out) == 0,
                     "known answer %d: %08x %08x %08x %08x", (int)i, out[0], out[1], out[2], out[3]);
    }
}

const struct check check_philox = {.name = "philox", .run = run};
