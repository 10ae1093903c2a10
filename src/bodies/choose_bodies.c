/* This file says which table of CPU bodies a matrix's device and type ask for. */
#include "bodies/bodies.h"

static const struct ki_bodies *bodies_of(enum ki_isa isa, kiln_type type) {
    static const struct ki_bodies *const tables[KI_ISA_COUNT] = {
        ki_bodies_base,
#if defined(__x86_64__) && !defined(KI_BASE_ONLY)
        ki_bodies_avx2,
        ki_bodies_avx512,
#else
        ki_bodies_base,
        ki_bodies_base,
#endif
    };
    return &tables[isa][type == KILN_F64];
}

const struct ki_bodies *ki_bodies_for(const kiln_device *device, kiln_type type) {
    return bodies_of(device->isa, type);
}

const struct ki_bodies *ki_bodies(const kiln_matrix *A) {
    return bodies_of(A->device->isa, A->type);
}

enum ki_isa ki_chain_isa(const struct ki_chain *chain) {
    const kiln_device *device = chain->X->device;
    const bool entries = chain->X->format == KILN_CSR && !chain->X->codes;
    const bool single = entries && chain->k == 1 && chain->map == KI_ROW_SCALE;
    const bool apart = single && device->isa == KI_ISA_AVX512 && !device->properties.gathers;
    return apart ? KI_ISA_AVX2 : device->isa;
}

const struct ki_bodies *ki_chain_bodies(const struct ki_chain *chain) {
    return bodies_of(ki_chain_isa(chain), chain->X->type);
}
