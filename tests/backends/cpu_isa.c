/* Bodies for AVX2 and AVX-512 run only where the processor has every instruction that their compiler was
 * allowed (CMakeLists.txt hands its options over), and the system saves their registers: processors that lack
 * one thing each. */
#include "backends/cpu_isa.h"

#include <string.h>

#include "core/check.h"

enum { SAVES_AVX = 0x6, SAVES_AVX512 = 0xe6 };

/* A processor with everything, and a system that saves all registers. */
static const struct ki_cpuid whole = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

/* The bit that stands for an option of the compiler: in ECX of leaf 1, else in EBX of leaf 7. */
static const struct {
    const char *option;
    bool leaf_1;
    int bit;
} bits[] = {{"-mavx2", false, 5},      {"-mfma", true, 12},       {"-mf16c", true, 29},
            {"-mbmi", false, 3},       {"-mbmi2", false, 8},      {"-mavx512f", false, 16},
            {"-mavx512dq", false, 17}, {"-mavx512bw", false, 30}, {"-mavx512vl", false, 31}};

static struct ki_cpuid without(const char *option) {
    struct ki_cpuid cpuid = whole;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        if (strcmp(bits[i].option, option) != 0) continue;
        uint32_t *const leaf = bits[i].leaf_1 ? &cpuid.leaf_1 : &cpuid.leaf_7;
        *leaf &= ~(UINT32_C(1) << bits[i].bit);
        return cpuid;
    }
    fail_msg("no bit is known for the option %s", option);
    return cpuid;
}

/* Each option, "a b c", asks for its bit: without it the processor gets at most what is below `isa`. */
static void check_options(const char *options, enum ki_isa isa) {
    char list[256];
    int count = 0;
    assert_true(strlen(options) < sizeof list);
    strcpy(list, options);
    for (char *option = strtok(list, " "); option; option = strtok(NULL, " "), count++)
        assert_true(ki_isa_of(without(option)) < isa);
    assert_true(count >= 5);
}

static void every_option_is_asked_for(void **state) {
    (void)state;
    assert_int_equal(ki_isa_of(whole), KI_ISA_AVX512);
    check_options(OPTIONS_OF_AVX2, KI_ISA_AVX2);
    check_options(OPTIONS_OF_AVX512, KI_ISA_AVX512);
}

/* -mavx2 brings these along: SSE3, SSSE3, SSE4.1, SSE4.2, POPCNT, and AVX; and XGETBV, without which nobody
 * knows what is saved. */
static void so_is_what_they_bring_along(void **state) {
    (void)state;
    static const int brought[] = {0, 9, 19, 20, 23, 28, 27};
    for (size_t i = 0; i < sizeof brought / sizeof *brought; i++) {
        struct ki_cpuid cpuid = whole;
        cpuid.leaf_1 &= ~(UINT32_C(1) << brought[i]);
        assert_int_equal(ki_isa_of(cpuid), KI_ISA_BASE);
    }
}

static void the_system_saves_the_registers(void **state) {
    (void)state;
    static const struct {
        uint32_t xcr0;
        enum ki_isa isa;
    } systems[] = {{0, KI_ISA_BASE},
                   {0x1, KI_ISA_BASE},
                   {0x3, KI_ISA_BASE},
                   {0x5, KI_ISA_BASE},
                   {SAVES_AVX, KI_ISA_AVX2},
                   {SAVES_AVX | 0x20, KI_ISA_AVX2},
                   {SAVES_AVX512 & ~0x80, KI_ISA_AVX2},
                   {0xe0, KI_ISA_BASE},
                   {SAVES_AVX512, KI_ISA_AVX512}};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        struct ki_cpuid cpuid = whole;
        cpuid.xcr0 = systems[i].xcr0;
        assert_int_equal(ki_isa_of(cpuid), systems[i].isa);
    }
}

/* Haswell's bits as Intel lists them, and an Ivy Bridge, which has F16C but no AVX2. */
static void processors(void **state) {
    (void)state;
    assert_int_equal(ki_isa_of((struct ki_cpuid){0x7ffafbff, 0x000027ab, 0x7}), KI_ISA_AVX2);
    assert_int_equal(ki_isa_of((struct ki_cpuid){0x7fbae3ff, 0x00000281, 0x7}), KI_ISA_BASE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_is_asked_for),
        cmocka_unit_test(so_is_what_they_bring_along),
        cmocka_unit_test(the_system_saves_the_registers),
        cmocka_unit_test(processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
