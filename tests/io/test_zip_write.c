/* Archives: what was written is read again, with fields of 32 bits and with those of 64, which files of 4 GiB
 * and more have. */
#define _GNU_SOURCE
#include "io/scratch.h"

#include "io/numpy/zip.h"
#include "io/numpy/zip_write.h"
#include "io/output.h"

enum { MEMBERS = 3 };
static const char *const names[MEMBERS] = {"first", "second.npy", "x"};
static const char *const contents[MEMBERS] = {"twenty bytes in a row", "", "a few"};

static void write_archive(const char *path, int64_t most) {
    struct ki_output *output = NULL;
    struct ki_zip zip = {.most = most};
    assert_int_equal(ki_output_open(&output, path, false, NULL), KILN_OK);
    zip.output = output;
    for (int i = 0; i < MEMBERS; i++) {
        const size_t size = strlen(contents[i]), head = size / 3;
        assert_int_equal(ki_zip_add(&zip, names[i], contents[i], head, contents[i] + head, size - head),
                         KILN_OK);
    }
    assert_int_equal(ki_zip_finish(&zip), KILN_OK);
    assert_int_equal(ki_output_commit(output), KILN_OK);
}

static bool has_bytes(const char *bytes, size_t size, const char *mark) {
    return memmem(bytes, size, mark, 4) != NULL;
}

/* most 0: an ordinary archive; 5: one member's size, two offsets and the directory's need 64 bits; 1: all
 * that is not empty. */
static void what_is_written_is_read(void **state) {
    (void)state;
    static const int64_t most[] = {0, 60, 5, 1};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        struct ki_zip_archive archive = {0};
        size_t size;
        write_archive(in_scratch("a.zip"), most[i]);
        char *bytes = file_bytes(in_scratch("a.zip"), &size);
        assert_true(has_bytes(bytes, size, "PK\x06\x06") == (most[i] > 0)); /* zip64's end record */
        assert_int_equal(ki_zip_open(&archive, (const unsigned char *)bytes, (int64_t)size, "a.zip"),
                         KILN_OK);
        assert_int_equal(archive.count, MEMBERS);
        for (int k = 0; k < MEMBERS; k++) {
            const struct ki_zip_member *member = ki_zip_find(&archive, names[k]);
            struct ki_zip_bytes found;
            struct ki_bytes room = {0};
            int64_t left = 1000;
            assert_non_null(member);
            assert_int_equal(member->size, strlen(contents[k]));
            assert_int_equal(ki_zip_open_member(&found, &archive, member, &room, &left), KILN_OK);
            assert_memory_equal(found.memory, contents[k], strlen(contents[k]));
            ki_bytes_free(&room);
        }
        free(bytes);
    }
}

static void too_many_members(void **state) {
    (void)state;
    struct ki_output *output = NULL;
    struct ki_zip zip = {.most = 0};
    assert_int_equal(ki_output_open(&output, in_scratch("b.zip"), false, NULL), KILN_OK);
    zip.output = output;
    for (int i = 0; i < KI_ZIP_WRITTEN; i++) assert_int_equal(ki_zip_add(&zip, "a", "", 0, NULL, 0), KILN_OK);
    assert_int_equal(ki_zip_add(&zip, "a", "", 0, NULL, 0), KILN_ERR_INTERNAL);
    ki_output_abandon(output);
    assert_int_equal(scratch_files(false), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, scratch_empty)
    const struct CMUnitTest tests[] = {TEST(what_is_written_is_read), TEST(too_many_members)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
