/* The status table is complete and stable, and the error record carries everything to the caller. */
#include "core/status.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/check.h"

/* The numbers are a promise to callers: written down a second time, so that changing one is noticed. */
static void codes_are_stable(void **state) {
    (void)state;
    static const struct {
        int code;
        const char *name;
    } promised[] = {{0, "KILN_OK"},
                    {1, "KILN_ERR_INTERNAL"},
                    {2, "KILN_ERR_ARGUMENT"},
                    {3, "KILN_ERR_PARSE"},
                    {4, "KILN_ERR_DATA"},
                    {5, "KILN_ERR_NOMEM"},
                    {6, "KILN_ERR_DEVICE_NOMEM"},
                    {7, "KILN_ERR_DEVICE"},
                    {8, "KILN_ERR_DEVICE_LOST"},
                    {9, "KILN_ERR_BUILD"},
                    {10, "KILN_ERR_IO"},
                    {11, "KILN_ERR_LIMIT"},
                    {12, "KILN_ERR_UNSUPPORTED"},
                    {13, "KILN_ERR_CANCELLED"},
                    {14, "KILN_ERR_MODEL"}};
    int count = 0;
#define COUNT(name, code, text) count++;
    KILN_STATUS_LIST(COUNT)
#undef COUNT
    assert_int_equal(count, sizeof promised / sizeof *promised);
    for (int i = 0; i < count; i++) {
        assert_string_equal(kiln_status_name((kiln_status)promised[i].code), promised[i].name);
        assert_true(strlen(kiln_status_text((kiln_status)promised[i].code)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(kiln_status_text((kiln_status)promised[i].code),
                                    kiln_status_text((kiln_status)promised[j].code));
    }
    assert_string_equal(kiln_status_name((kiln_status)999), "KILN_ERR_UNKNOWN");
    assert_string_equal(kiln_status_text((kiln_status)-1), "unknown status");
}

static void records_a_place(void **state) {
    (void)state;
    struct ki_place place = {"data.svm", 3, 14, 159};
    assert_int_equal(ki_fail_at(KILN_ERR_PARSE, &place, "index %d is too large", 7), KILN_ERR_PARSE);
    assert_int_equal(ki_hint("use %s", "--zero-based"), KILN_ERR_PARSE);
    const kiln_error *error = kiln_last_error();
    assert_int_equal(error->status, KILN_ERR_PARSE);
    assert_string_equal(error->message, "index 7 is too large");
    assert_string_equal(error->hint, "use --zero-based");
    assert_string_equal(error->file, "data.svm");
    assert_true(error->line == 3 && error->column == 14 && error->offset == 159);
    assert_string_equal(error->subsystem, "");
}

static void a_new_error_forgets_the_old(void **state) {
    (void)state;
    struct ki_place place = {"a", 1, 1, 1};
    ki_fail_at(KILN_ERR_PARSE, &place, "old");
    ki_hint("old hint");
    ki_fail_native(KILN_ERR_DEVICE, "cuda", 719, "launch failed");
    const kiln_error *error = kiln_last_error();
    assert_string_equal(error->hint, "");
    assert_string_equal(error->file, "");
    assert_true(error->line == 0 && error->column == 0 && error->offset == -1);
    assert_string_equal(error->subsystem, "cuda");
    assert_int_equal(error->native_code, 719);
    ki_fail(KILN_ERR_IO, "the cause: %s",
            kiln_last_error()->message); /* may quote the record that it replaces */
    assert_string_equal(kiln_last_error()->message, "the cause: launch failed");
    assert_int_equal(kiln_last_error()->native_code, 0);
}

static void long_texts_are_cut(void **state) {
    (void)state;
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    struct ki_place place = {text, 1, 1, 1};
    ki_fail_at(KILN_ERR_PARSE, &place, "%s", text);
    ki_hint("%s", text);
    assert_in_range(strlen(kiln_last_error()->message), 500, 4999);
    assert_in_range(strlen(kiln_last_error()->hint), 100, 4999);
    assert_in_range(strlen(kiln_last_error()->file), 500, 4999);
}

static void *other_thread(void *result) {
    ki_fail(KILN_ERR_DATA, "of the other thread");
    *(int *)result = kiln_last_error()->status;
    return NULL;
}

static void each_thread_has_its_own(void **state) {
    (void)state;
    pthread_t thread;
    int seen = 0;
    ki_fail(KILN_ERR_IO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen, KILN_ERR_DATA);
    assert_string_equal(kiln_last_error()->message, "mine");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(codes_are_stable), cmocka_unit_test(records_a_place),
                                       cmocka_unit_test(a_new_error_forgets_the_old),
                                       cmocka_unit_test(long_texts_are_cut),
                                       cmocka_unit_test(each_thread_has_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
