/* JSON as the library reads it: what RFC 8259 allows and what it does not, and memory that is short. */
#include "io/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"
#include "faults/brutal.h"

static struct ki_json *parsed(const char *text) {
    struct ki_json *root = NULL;
    struct ki_json_fault fault;
    if (ki_json_parse(&root, &fault, text, (int64_t)strlen(text)) != KILN_OK)
        fail_msg("%s: %s at %lld", text, fault.says, (long long)fault.offset);
    return root;
}

static void values_are_read(void **state) {
    (void)state;
    struct ki_json *root = parsed(
        " {\"a\":[1, -2.5e3 ,0,true,false,null,\"\"],\"b\" : {\"c\":\"x\"},\"d\":-9223372036854775808}\n");
    const struct ki_json *list = ki_json_member(root, "a"), *at = list->first;
    assert_int_equal(root->count, 3);
    assert_int_equal(list->count, 7);
    assert_int_equal(at->integer, 1);
    assert_true((at = at->next)->kind == KI_JSON_REAL && at->real == -2500);
    assert_int_equal((at = at->next)->integer, 0);
    assert_true(ki_json_is(at = at->next, KI_JSON_TRUE));
    assert_true(ki_json_is(at = at->next, KI_JSON_FALSE));
    assert_true(ki_json_is(at = at->next, KI_JSON_NULL));
    assert_string_equal(ki_json_text(at = at->next), "");
    assert_null(at->next);
    assert_string_equal(ki_json_text(ki_json_member(ki_json_member(root, "b"), "c")), "x");
    assert_true(ki_json_member(root, "d")->integer == INT64_MIN);
    assert_null(ki_json_member(root, "e"));
    assert_null(ki_json_text(ki_json_member(list, "a")));
    ki_free(root);
}

static void texts_come_back(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "a",
                                        "\"\\/\b\f\n\r\t",
                                        "\x01\x1f\x7f",
                                        "\xc3\xa4",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ki_bytes written = {NULL, 0, 0};
        assert_true(ki_json_put_text(&written, texts[i]) && ki_bytes_append(&written, "", 1));
        struct ki_json *root = parsed(written.data);
        assert_string_equal(ki_json_text(root), texts[i]);
        ki_free(root);
        ki_bytes_free(&written);
    }
    struct ki_json *root = parsed("\"\\u0041\\u00e4\\u20AC\\ud83d\\ude00\\/\"");
    assert_string_equal(ki_json_text(root), "A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80/");
    ki_free(root);
}

static void others_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "[",
                                        "[1",
                                        "[1,",
                                        "[1,]",
                                        "[,1]",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{a:1}",
                                        "{1:1}",
                                        "{\"a\":1 \"b\":2}",
                                        "\"",
                                        "\"a",
                                        "\"\\\"",
                                        "\"\\x\"",
                                        "\"\\u12\"",
                                        "\"\\u12g4\"",
                                        "\"\\u0000\"",
                                        "\"\\ud800\"",
                                        "\"\\udc00\"",
                                        "\"\\ud800\\u0041\"",
                                        "\"\n\"",
                                        "\"\xff\"",
                                        "\"\xc3\"",
                                        "\"\xc0\x80\"",
                                        "\"\xed\xa0\x80\"",
                                        "\"\xf5\x80\x80\x80\"",
                                        "01",
                                        "-",
                                        "+1",
                                        ".5",
                                        "1.",
                                        "1e",
                                        "1e+",
                                        "0x1",
                                        "NaN",
                                        "Infinity",
                                        "1e999",
                                        "9223372036854775808",
                                        "tru",
                                        "nul",
                                        "[1] 2",
                                        "}",
                                        "]",
                                        "[}",
                                        "{]",
                                        "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ki_json *root = NULL;
        struct ki_json_fault fault;
        /* In memory of its own length, so that a sanitizer sees who reads on. */
        const size_t length = strlen(texts[i]);
        char *text = malloc(length + !length);
        assert_non_null(text);
        memcpy(text, texts[i], length);
        if (ki_json_parse(&root, &fault, text, (int64_t)length) != KILN_ERR_PARSE) fail_msg("%s", texts[i]);
        assert_null(root);
        assert_non_null(fault.says);
        assert_in_range(fault.offset, 0, length);
        free(text);
    }
}

/* Depth has an end, and so has an object with many keys, of which two are the same. */
static void large_texts_are_judged(void **state) {
    (void)state;
    enum { KEYS = 40000 };
    struct ki_json *root = NULL;
    struct ki_json_fault fault;
    struct ki_bytes text = {NULL, 0, 0};
    for (int depth = 64; depth <= 65; depth++) {
        text.size = 0;
        for (int i = 0; i < depth; i++) assert_true(ki_bytes_append(&text, "[", 1));
        for (int i = 0; i < depth; i++) assert_true(ki_bytes_append(&text, "]", 1));
        const kiln_status status = ki_json_parse(&root, &fault, text.data, text.size);
        assert_int_equal(status, depth == 64 ? KILN_OK : KILN_ERR_PARSE);
    }
    ki_free(root);
    for (int twice = 0; twice < 2; twice++) {
        root = NULL;
        text.size = 0;
        for (int i = 0; i < KEYS; i++) {
            char key[32];
            const int number = twice && i == KEYS - 1 ? 7 : i;
            const int length = snprintf(key, sizeof key, "%s\"k%d\":1", i ? "," : "{", number);
            assert_true(ki_bytes_append(&text, key, length));
        }
        assert_true(ki_bytes_append(&text, "}", 1));
        assert_int_equal(ki_json_parse(&root, &fault, text.data, text.size),
                         twice ? KILN_ERR_PARSE : KILN_OK);
        if (!twice) assert_int_equal(root->count, KEYS);
        ki_free(root);
    }
    ki_bytes_free(&text);
}

static void memory_that_is_short_is_no_fault_of_the_text(void **state) {
    (void)state;
    struct ki_json *root = NULL;
    struct ki_json_fault fault;
    brutal_start(0, false);
    STEP(ki_json_parse(&root, &fault, "[1]", 3)); /* says so, and succeeds when called again */
    ki_free(root);
    assert_true(brutal_stop());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(large_texts_are_judged),
        cmocka_unit_test(memory_that_is_short_is_no_fault_of_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
