/* Atomic output: what each kind of path gets, and that no failure of any file call harms the old file. */
#define _DEFAULT_SOURCE
#include "io/scratch.h"

#include <limits.h>
#include <sys/wait.h>
#include <zlib.h>

#include "io/output.h"

static const char old_text[] = "old contents\n";

static kiln_status write_file(const char *path, bool gzip, const void *bytes, size_t size,
                              const kiln_control *control) {
    struct ki_output *output = NULL;
    kiln_status status = ki_output_open(&output, path, gzip, control);
    if (status != KILN_OK) {
        assert_null(output);
        return status;
    }
    status = ki_output_write(output, bytes, size);
    if (status == KILN_OK) return ki_output_commit(output);
    ki_output_abandon(output);
    return status;
}

static void assert_file(const char *path, const void *bytes, size_t size) {
    size_t got;
    char *contents = file_bytes(path, &got);
    assert_int_equal(got, size);
    assert_memory_equal(contents, bytes, size);
    free(contents);
}

/* More than the buffers hold, and not constant. */
enum { LARGE = 1000003 };
static char *large_text(void) {
    char *text = malloc(LARGE);
    for (int i = 0; i < LARGE; i++) text[i] = (char)(i * 7 + i / 251);
    return text;
}

static void new_file_takes_umask(void **state) {
    (void)state;
    struct stat info;
    mode_t mask = umask(027);
    assert_int_equal(write_file(in_scratch("a"), false, "hello", 5, NULL), KILN_OK);
    umask(mask);
    assert_file(in_scratch("a"), "hello", 5);
    assert_int_equal(stat(in_scratch("a"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(scratch_files(false), 1);
}

static void replacement_keeps_permissions(void **state) {
    (void)state;
    struct stat info;
    put_file(in_scratch("a"), old_text, sizeof old_text);
    assert_int_equal(chmod(in_scratch("a"), 0604), 0);
    assert_int_equal(write_file(in_scratch("a"), false, "new", 3, NULL), KILN_OK);
    assert_file(in_scratch("a"), "new", 3);
    assert_int_equal(stat(in_scratch("a"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0604);
}

static void link_stays_and_its_file_is_replaced(void **state) {
    (void)state;
    struct stat info;
    put_file(in_scratch("real"), old_text, sizeof old_text);
    assert_int_equal(symlink("real", in_scratch("link")), 0);
    assert_int_equal(write_file(in_scratch("link"), false, "new", 3, NULL), KILN_OK);
    assert_file(in_scratch("real"), "new", 3);
    assert_int_equal(lstat(in_scratch("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(scratch_files(false), 2);
}

static void unusable_paths_are_refused(void **state) {
    (void)state;
    char long_name[8192];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(symlink("nowhere", in_scratch("dangling")), 0);
    assert_int_equal(write_file(in_scratch("dangling"), false, "x", 1, NULL), KILN_ERR_IO);
    assert_non_null(strstr(kiln_last_error()->message, "symbolic link"));
    assert_int_equal(write_file(scratch, false, "x", 1, NULL), KILN_ERR_IO);
    assert_int_equal(kiln_last_error()->native_code, EISDIR);
    assert_int_equal(write_file(in_scratch("no/such/folder"), false, "x", 1, NULL), KILN_ERR_IO);
    assert_int_equal(kiln_last_error()->native_code, ENOENT);
    assert_string_not_equal(kiln_last_error()->hint, "");
    assert_int_equal(write_file(long_name, false, "x", 1, NULL), KILN_ERR_IO);
    assert_int_equal(write_file("", false, "x", 1, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(scratch_files(false), 1);
}

static void fifo_is_written_directly(void **state) {
    (void)state;
    char *text = large_text();
    assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
    pid_t child = fork();
    if (child == 0) _exit(write_file(in_scratch("fifo"), false, text, LARGE, NULL) == KILN_OK ? 0 : 1);
    char *got = malloc(LARGE + 1);
    FILE *reader = fopen(in_scratch("fifo"), "rb");
    assert_int_equal(fread(got, 1, LARGE + 1, reader), LARGE);
    fclose(reader);
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_memory_equal(got, text, LARGE);
    free(got);
    free(text);
}

static void full_device_is_an_error(void **state) {
    (void)state;
    assert_int_equal(write_file("/dev/full", false, "x", 1, NULL), KILN_ERR_IO);
    assert_int_equal(kiln_last_error()->native_code, ENOSPC);
}

static void dash_is_standard_output(void **state) {
    (void)state;
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), file = open(in_scratch("out"), O_WRONLY | O_CREAT, 0600);
    dup2(file, STDOUT_FILENO);
    kiln_status first = write_file("-", false, "one\n", 4, NULL);
    kiln_status second = write_file("/dev/stdout", false, "two\n", 4, NULL);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(file);
    assert_int_equal(first, KILN_OK);
    assert_int_equal(second, KILN_OK);
    assert_file(in_scratch("out"), "one\ntwo\n", 8);
}

static void gzip_reads_back_and_repeats(void **state) {
    (void)state;
    char *text = large_text(), *back = malloc(LARGE + 1);
    assert_int_equal(write_file(in_scratch("a.gz"), true, text, LARGE, NULL), KILN_OK);
    assert_int_equal(write_file(in_scratch("b.gz"), true, text, LARGE, NULL), KILN_OK);
    gzFile file = gzopen(in_scratch("a.gz"), "rb");
    assert_int_equal(gzread(file, back, LARGE + 1), LARGE);
    assert_int_equal(gzclose(file), Z_OK);
    assert_memory_equal(back, text, LARGE);
    size_t size;
    char *bytes = file_bytes(in_scratch("b.gz"), &size);
    assert_file(in_scratch("a.gz"), bytes, size);
    assert_true(size < LARGE);
    free(bytes);
    free(back);
    free(text);
}

static int stop_at_once(void *user, const kiln_progress *now) {
    *(int64_t *)user = now->done;
    return 1;
}

static void cancelling_leaves_nothing(void **state) {
    (void)state;
    char *text = large_text();
    int64_t seen = 0;
    kiln_control control = {stop_at_once, &seen};
    assert_int_equal(write_file(in_scratch("a"), false, text, LARGE, &control), KILN_ERR_CANCELLED);
    assert_true(seen > 0);
    assert_int_equal(scratch_files(false), 0);
    free(text);
}

static void abandoning_keeps_the_old_file(void **state) {
    (void)state;
    struct ki_output *output = NULL;
    put_file(in_scratch("a"), old_text, sizeof old_text);
    assert_int_equal(ki_output_open(&output, in_scratch("a"), false, NULL), KILN_OK);
    assert_int_equal(ki_output_write(output, "half", 4), KILN_OK);
    ki_output_abandon(output);
    ki_output_abandon(NULL);
    assert_file(in_scratch("a"), old_text, sizeof old_text);
    assert_int_equal(scratch_files(false), 1);
}

/* Each file call in turn fails. The old file survives all but a failure of the very last fsync, the folder's.
 */
static void every_fault_keeps_the_old_file(int code, bool gzip) {
    char *text = large_text();
    int failures = 0, made_new = 0;
    bool hit = true;
    for (int k = 1; hit; k++) {
        put_file(in_scratch("a"), old_text, sizeof old_text);
        faults_begin(k, code, 0);
        kiln_status status = write_file(in_scratch("a"), gzip, text, LARGE, NULL);
        hit = faults_end();
        assert_int_equal(scratch_files(false), 1);
        if (status == KILN_OK) continue;
        failures++;
        assert_int_equal(status, KILN_ERR_IO);
        assert_int_equal(kiln_last_error()->native_code, code);
        size_t size;
        char *bytes = file_bytes(in_scratch("a"), &size);
        if (size != sizeof old_text || memcmp(bytes, old_text, size) != 0) {
            made_new++;
            assert_non_null(strstr(kiln_last_error()->message, "folder"));
            assert_true(gzip || (size == LARGE && memcmp(bytes, text, LARGE) == 0));
        }
        free(bytes);
    }
    if (code == EINTR) {
        assert_int_equal(failures, 0);
    } else {
        assert_true(failures >= 7); /* open, writes, fsync, close, open of the folder, rename, its fsync */
        assert_int_equal(made_new, 1);
    }
    free(text);
}

static void faults_keep_the_old_file(void **state) {
    (void)state;
    for (int gzip = 0; gzip <= 1; gzip++) {
        every_fault_keeps_the_old_file(EIO, gzip);
        every_fault_keeps_the_old_file(ENOSPC, gzip);
        every_fault_keeps_the_old_file(EINTR, gzip);
    }
}

static void short_writes_are_continued(void **state) {
    (void)state;
    char *text = large_text();
    faults_begin(0, 0, 997);
    kiln_status status = write_file(in_scratch("a"), false, text, LARGE, NULL);
    faults_end();
    assert_int_equal(status, KILN_OK);
    assert_file(in_scratch("a"), text, LARGE);
    free(text);
}

/* For a program that ends at once: the temporary file goes, the old one stays, and writing that goes on after
 * it fails. */
static void abandoning_all_keeps_the_old_file(void **state) {
    (void)state;
    struct ki_output *output = NULL;
    put_file(in_scratch("a"), old_text, sizeof old_text);
    assert_int_equal(ki_output_open(&output, in_scratch("a"), false, NULL), KILN_OK);
    assert_int_equal(ki_output_write(output, "new", 3), KILN_OK);
    assert_int_equal(scratch_files(false), 2);
    kiln_abandon_files();
    assert_int_equal(scratch_files(false), 1);
    assert_int_equal(ki_output_commit(output), KILN_ERR_IO);
    assert_file(in_scratch("a"), old_text, sizeof old_text);
    kiln_abandon_files(); /* nothing is left to do */
}

/* A name that fits, but not with what a temporary file's has besides. */
static void names_that_are_too_long(void **state) {
    (void)state;
    char long_name[PATH_MAX] = "";
    while (strlen(long_name) + 3 < PATH_MAX) strcat(long_name, "./");
    strcpy(long_name + strlen(long_name) - 1, "a");
    assert_true(strlen(long_name) < PATH_MAX && strlen(long_name) + 20 > PATH_MAX);
    assert_int_equal(write_file(long_name, false, "new", 3, NULL), KILN_ERR_IO);
    assert_non_null(strstr(kiln_last_error()->message, "cannot create ./././"));
    assert_int_equal(access(long_name, F_OK), -1);
}

/* A name without a folder is one in the working folder. */
static void names_without_a_folder(void **state) {
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch), 0);
    const kiln_status status = write_file("plain", false, "hello", 5, NULL);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(status, KILN_OK);
    assert_file(in_scratch("plain"), "hello", 5);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, scratch_empty)
    const struct CMUnitTest tests[] = {
        TEST(new_file_takes_umask),
        TEST(replacement_keeps_permissions),
        TEST(link_stays_and_its_file_is_replaced),
        TEST(unusable_paths_are_refused),
        TEST(fifo_is_written_directly),
        TEST(full_device_is_an_error),
        TEST(dash_is_standard_output),
        TEST(gzip_reads_back_and_repeats),
        TEST(cancelling_leaves_nothing),
        TEST(abandoning_keeps_the_old_file),
        TEST(faults_keep_the_old_file),
        TEST(short_writes_are_continued),
        TEST(abandoning_all_keeps_the_old_file),
        TEST(names_that_are_too_long),
        TEST(names_without_a_folder),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
