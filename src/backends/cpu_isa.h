/* This header says which of the CPU's bodies a processor can run. */
#ifndef KI_CPU_ISA_H
#define KI_CPU_ISA_H

#include <stdint.h>

#include "core/device.h"

/* Holds what CPUID says (leaf 1 in ECX, leaf 7 in EBX), and in XCR0 which registers the system saves; 0
 * without an answer. */
struct ki_cpuid {
    uint32_t leaf_1, leaf_7, xcr0;
};

struct ki_cpuid ki_cpuid_read(void);

/* The best instruction set, all of whose instructions such a processor has: whatever CMakeLists.txt lets the
 * compiler use. */
enum ki_isa ki_isa_of(struct ki_cpuid cpuid);

#endif
