/* Which table of CPU bodies a matrix's device and type ask for. */
#include "ops/bodies.h"

const struct ki_bodies *ki_bodies(const kiln_matrix *A) {
    static const struct ki_bodies *const tables[KI_ISA_COUNT] = {
        ki_bodies_base,
#if defined(__x86_64__)
        ki_bodies_avx2,
        ki_bodies_avx512,
#else
        ki_bodies_base,
        ki_bodies_base,
#endif
    };
    return &tables[A->device->isa][A->type == KILN_F64];
}
