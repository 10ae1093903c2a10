/* The seams: allocation's promises, that a replaced entry is used, and the random numbers' known answers. */
#define _GNU_SOURCE
#include "core/random.h"
#include "core/seams.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"

static void memory_is_aligned_and_never_null(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < 300; bytes += 13) {
        unsigned char *memory = ki_calloc(bytes);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(memory[i], 0);
        ki_free(memory);
    }
    ki_free(NULL);
    void *nothing = ki_resize(NULL, 0);
    assert_non_null(nothing);
    ki_free(nothing);
    char *copy = ki_strdup("copy");
    assert_string_equal(copy, "copy");
    ki_free(copy);
}

static void *no_alloc(size_t bytes, size_t align) {
    (void)bytes;
    (void)align;
    return NULL;
}

static void *no_resize(void *memory, size_t bytes) {
    (void)memory;
    (void)bytes;
    return NULL;
}

static double stopped(void) {
    return 42;
}

static void replaced_entries_are_used(void **state) {
    (void)state;
    struct ki_seams saved = ki_seams;
    ki_seams.alloc = no_alloc;
    ki_seams.resize = no_resize;
    ki_seams.clock = stopped;
    void *a = ki_alloc(8), *b = ki_calloc(8), *c = ki_resize(NULL, 8), *d = ki_strdup("x");
    double now = ki_clock();
    ki_seams = saved;
    assert_null(a);
    assert_null(b);
    assert_null(c);
    assert_null(d);
    assert_true(now == 42);
    double first = ki_clock();
    assert_true(ki_clock() >= first);
}

static void files_are_posix(void **state) {
    (void)state;
    int folder = ki_seams.openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
    assert_true(folder >= 0);
    assert_true(ki_seams.openat(folder, "no such file here", O_RDONLY, 0) < 0);
    assert_int_equal(ki_seams.close(folder), 0);
    assert_true(ki_seams.open("/no such file here", O_RDONLY, 0) < 0);
}

/* Known answers of Random123's kat_vectors, philox4x32-10. */
static void random_known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t seed, stream, index;
        uint32_t out[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        kiln_random(out, cases[i].seed, cases[i].stream, cases[i].index);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

/* Draws are the stream's words in order, go on from their count alone, and share nothing with another
 * stream. */
static void draws_are_the_words_in_order(void **state) {
    (void)state;
    struct ki_draws draws = {.seed = 7, .stream = KI_STREAM_DUAL};
    struct ki_draws other = {.seed = 7, .stream = KI_STREAM_DESCENT};
    int same = 0;
    for (int i = 0; i < 41; i++) {
        struct ki_draws anew = {.seed = 7, .stream = KI_STREAM_DUAL, .count = i};
        uint32_t words[4];
        kiln_random(words, 7, KI_STREAM_DUAL, (uint64_t)i / 4);
        assert_int_equal(ki_draw_word(&anew), words[i % 4]);
        assert_int_equal(ki_draw_word(&draws), words[i % 4]);
        same += ki_draw_word(&other) == words[i % 4];
    }
    assert_int_equal(same, 0);
    for (int i = 0; i < 1000; i++) {
        const double unit = ki_draw(&draws);
        assert_true(unit >= 0 && unit < 1);
        assert_in_range(ki_draw_below(&draws, 3), 0, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_never_null), cmocka_unit_test(replaced_entries_are_used),
        cmocka_unit_test(files_are_posix), cmocka_unit_test(random_known_answers),
        cmocka_unit_test(draws_are_the_words_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
