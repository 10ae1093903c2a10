/* SHA-256 against the vectors of FIPS 180-4 and NIST's examples, whole and in pieces of every size. */
#include "core/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"

static void known_answers(void **state) {
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
         "pqrst"
         "nopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ki_sha256_hex(hex, cases[i].text, strlen(cases[i].text));
        assert_string_equal(hex, cases[i].digest);
    }
}

static void a_million_letters(void **state) {
    (void)state;
    char *text = malloc(1000000), hex[65];
    assert_non_null(text);
    memset(text, 'a', 1000000);
    ki_sha256_hex(hex, text, 1000000);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(text);
}

/* However a text is cut, the digest is that of the whole; lengths around the block and the padding's edge. */
static void pieces(void **state) {
    (void)state;
    uint8_t text[200], whole[32], parts[32];
    for (int i = 0; i < 200; i++) text[i] = (uint8_t)(7 * i + 3);
    for (size_t length = 0; length <= sizeof text; length++) {
        struct ki_sha256 hash;
        ki_sha256_start(&hash);
        ki_sha256_add(&hash, text, length);
        ki_sha256_finish(&hash, whole);
        for (size_t step = 1; step <= 130; step += 43) {
            ki_sha256_start(&hash);
            for (size_t at = 0; at < length; at += step)
                ki_sha256_add(&hash, text + at, length - at < step ? length - at : step);
            ki_sha256_finish(&hash, parts);
            assert_memory_equal(whole, parts, sizeof whole);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_answers), cmocka_unit_test(a_million_letters),
                                       cmocka_unit_test(pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
