/* Files read by several threads: values, the first error and the checksums are the same for any number of
 * them, and the same as of bytes from a pipe. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "io/numpy/npz.h"
#include "io/output.h"
#include "io/reading.h"

enum { ROWS = 70000, COLS = 17, COUNT = ROWS * COLS, HEAD = 128, BYTES = HEAD + 8 * COUNT };

static char path[] = "/tmp/kiln-chunks-XXXXXX";
static char *file; /* an .npy of five chunks */

static double value_of(int64_t i) {
    return (double)(i % 1009) - 500.25;
}

static int make(void **state) {
    (void)state;
    file = malloc(BYTES);
    memset(file, ' ', HEAD);
    memcpy(file, "\x93NUMPY\1\0\x76\0", 10);
    const int length = snprintf(file + 10, HEAD - 10,
                                "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d)}", ROWS, COLS);
    file[10 + length] = ' ';
    for (int64_t i = 0; i < COUNT; i++) memcpy(file + HEAD + 8 * i, &(double){value_of(i)}, 8);
    close(mkstemp(path));
    return 0;
}

static int clear(void **state) {
    (void)state;
    free(file);
    unlink(path);
    return 0;
}

static void put(int64_t i, double value) {
    memcpy(file + HEAD + 8 * i, &value, 8);
}

static void save(const void *bytes, size_t size) {
    FILE *to = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

static kiln_status read_path(struct ki_table *table, ki_reader *reader, const kiln_read_options *options) {
    struct ki_input *input = NULL;
    kiln_status status = ki_input_open(&input, path, options->limit, &options->control);
    memset(table, 0, sizeof *table);
    if (status != KILN_OK) return status;
    status = reader(table, input, options);
    if (status == KILN_OK) assert_int_equal(ki_input_offset(input) > 0, true);
    ki_input_close(input);
    if (status != KILN_OK) ki_table_clear(table);
    return status;
}

static const int thread_counts[] = {1, 2, 3, 16};
#define EACH_THREADS(options)                                                                                \
    for (size_t t_ = 0; t_ < 4 && ((options).threads = thread_counts[t_], true); t_++)

static void values_of_any_threads(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct ki_table table;
    save(file, BYTES);
    for (int narrow = 0; narrow < 2; narrow++) EACH_THREADS(options) {
            options.type = narrow ? KILN_F32 : KILN_F64;
            assert_int_equal(read_path(&table, ki_read_npy, &options), KILN_OK);
            for (int64_t i = 0; i < COUNT; i++)
                assert_true(value_of(i) ==
                            (narrow ? (double)((float *)table.values)[i] : ((double *)table.values)[i]));
            ki_table_clear(&table);
        }
}

static void first_bad_value(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct ki_table table;
    const int64_t first = 4 * COUNT / 5 + 3;
    put(first, (double)NAN);
    put(first + 1, (double)INFINITY);
    put(COUNT - 1, (double)NAN);
    save(file, BYTES);
    char where[80];
    snprintf(where, sizeof where, "nan at row %d, column %d ", (int)(first / COLS) + 1,
             (int)(first % COLS) + 1);
    EACH_THREADS(options) {
        assert_int_equal(read_path(&table, ki_read_npy, &options), KILN_ERR_PARSE);
        assert_non_null(strstr(kiln_last_error()->message, where));
        assert_int_equal(kiln_last_error()->offset, HEAD + 8 * first);
    }
    for (int64_t i = 0; i < COUNT; i++) put(i, value_of(i));
}

/* ---------------------------------------------------------------------------------- what files do */

static struct {
    struct ki_seams real;
    int64_t from; /* reads of bytes from here on fail, or find the file's end */
    int code;
} disk;

static ssize_t bad_pread(int fd, void *buffer, size_t bytes, off_t offset) {
    if (offset + (off_t)bytes <= disk.from) return disk.real.pread(fd, buffer, bytes, offset);
    if (offset < disk.from) return disk.real.pread(fd, buffer, (size_t)(disk.from - offset), offset);
    errno = disk.code;
    return disk.code ? -1 : 0;
}

static void first_bad_place(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct ki_table table;
    save(file, BYTES);
    disk.real = ki_seams;
    disk.from = BYTES / 2 + 1;
    for (int cut = 0; cut < 2; cut++) EACH_THREADS(options) {
            disk.code = cut ? 0 : EIO;
            ki_seams.pread = bad_pread;
            const kiln_status status = read_path(&table, ki_read_npy, &options);
            ki_seams = disk.real;
            assert_int_equal(status, KILN_ERR_IO);
            assert_non_null(strstr(kiln_last_error()->message, cut ? "has become shorter" : path));
            assert_string_equal(cut ? kiln_last_error()->file : path, path);
            if (cut) assert_int_equal(kiln_last_error()->offset, disk.from);
            assert_int_equal(kiln_last_error()->native_code, disk.code);
        }
}

struct watched {
    int64_t calls, stop_at;
};

static int watch(void *user, const kiln_progress *now) {
    struct watched *w = user;
    assert_true(now->done <= now->total && now->total == BYTES);
    return ++w->calls == w->stop_at;
}

static void progress_and_cancelling(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct watched w = {0};
    struct ki_table table;
    save(file, BYTES);
    options.control = (kiln_control){.progress = watch, .user = &w};
    options.threads = 1;
    assert_int_equal(read_path(&table, ki_read_npy, &options), KILN_OK);
    ki_table_clear(&table);
    const int64_t calls = w.calls;
    assert_true(calls >= 5);
    for (w.stop_at = 1; w.stop_at <= calls; w.stop_at++) {
        w.calls = 0;
        assert_int_equal(read_path(&table, ki_read_npy, &options), KILN_ERR_CANCELLED);
        assert_int_equal(w.calls, w.stop_at);
    }
    w.stop_at = 0;
    options.threads = 3;
    options.limit = BYTES - 1;
    assert_int_equal(read_path(&table, ki_read_npy, &options), KILN_ERR_LIMIT);
}

static void shortage_of_memory(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.type = KILN_F32;
    assert_survives_shortage(ki_read_npy, file, BYTES, &options);
}

/* ------------------------------------------------------------------------------------------ sparse */

enum { SPARSE_ROWS = 30000, EACH = 40 };

static void save_sparse(void) {
    struct ki_table made = {
        .format = KILN_CSR, .rows = SPARSE_ROWS, .cols = 3 * EACH, .nnz = SPARSE_ROWS * EACH};
    struct ki_output *output;
    made.row_start = ki_alloc((SPARSE_ROWS + 1) * sizeof *made.row_start);
    made.col = ki_alloc((size_t)made.nnz * sizeof *made.col);
    made.values = ki_alloc((size_t)made.nnz * sizeof(double));
    for (int64_t i = 0; i <= SPARSE_ROWS; i++) made.row_start[i] = i * EACH;
    for (int64_t i = 0; i < made.nnz; i++) {
        made.col[i] = (int32_t)(3 * (i % EACH) + i / EACH % 3);
        ((double *)made.values)[i] = value_of(i);
    }
    assert_int_equal(ki_output_open(&output, path, false, NULL), KILN_OK);
    assert_int_equal(ki_write_npz(output, &made, KILN_F64, 1), KILN_OK);
    assert_int_equal(ki_output_commit(output), KILN_OK);
    ki_table_clear(&made);
}

static void flip(int64_t offset, char with) {
    FILE *changed = fopen(path, "r+b");
    assert_int_equal(fseek(changed, offset, SEEK_SET), 0);
    const int byte = fgetc(changed);
    assert_int_equal(fseek(changed, offset, SEEK_SET), 0);
    fputc(byte ^ with, changed);
    assert_int_equal(fclose(changed), 0);
}

/* Any byte of an array of several chunks is under its member's checksum. */
static void sparse_checksums(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct ki_table table;
    save_sparse();
    struct ki_input *input;
    int64_t bytes;
    assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
    assert_non_null(ki_input_file(input, &bytes));
    ki_input_close(input);
    EACH_THREADS(options) {
        assert_int_equal(read_path(&table, ki_read_npz, &options), KILN_OK);
        assert_int_equal(table.nnz, SPARSE_ROWS * EACH);
        for (int64_t i = 0; i < table.nnz; i++) {
            assert_int_equal(table.col[i], 3 * (i % EACH) + i / EACH % 3);
            assert_true(((double *)table.values)[i] == value_of(i));
        }
        ki_table_clear(&table);
        for (int64_t at = bytes / 3; at < bytes - 4096; at += bytes / 5) {
            flip(at, 1);
            assert_int_equal(read_path(&table, ki_read_npz, &options), KILN_ERR_PARSE);
            assert_non_null(strstr(kiln_last_error()->message, "checksum"));
            flip(at, 1);
        }
    }
}

/* ------------------------------------------------------------------------------------------- pipes */

/* Through a pipe, which has room for it: no reader may want to go back. */
static struct reading read_pipe(ki_reader *reader, const void *bytes, size_t size,
                                const kiln_read_options *options) {
    struct reading reading = {.status = KILN_ERR_INTERNAL};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, size), size);
    close(ends[1]);
    snprintf(reading.path, sizeof reading.path, "/dev/fd/%d", ends[0]);
    struct ki_input *input = NULL;
    int64_t whole;
    assert_int_equal(ki_input_open(&input, reading.path, options->limit, NULL), KILN_OK);
    assert_null(ki_input_file(input, &whole));
    reading.status = reader(&reading.table, input, options);
    ki_input_close(input);
    close(ends[0]);
    if (reading.status != KILN_OK) ki_table_clear(&reading.table);
    return reading;
}

static void streams_as_files(void **state) {
    (void)state;
    static const struct {
        ki_reader *reader;
        const char *name;
    } fixtures[] = {{ki_read_npy, "matrix_f8.npy"},    {ki_read_npy, "matrix_f4_fortran.npy"},
                    {ki_read_npy, "vector_i8.npy"},    {ki_read_npz, "csr_stored.npz"},
                    {ki_read_npz, "csr_deflated.npz"}, {ki_read_npz, "csc.npz"},
                    {ki_read_npz, "csr_unsorted.npz"}};
    const kiln_read_options options = reading_options();
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        char name[512], bytes[8192];
        snprintf(name, sizeof name, "%s/io/fixtures/%s", KILN_TEST_DATA, fixtures[f].name);
        FILE *from = fopen(name, "rb");
        assert_non_null(from);
        const size_t size = fread(bytes, 1, sizeof bytes, from);
        fclose(from);
        assert_true(size > 0 && size < sizeof bytes);
        struct reading a = read_bytes(fixtures[f].reader, bytes, size, &options);
        struct reading b = read_pipe(fixtures[f].reader, bytes, size, &options);
        assert_int_equal(a.status, KILN_OK);
        assert_int_equal(b.status, KILN_OK);
        assert_same_table(&a.table, &b.table);
        ki_table_clear(&a.table);
        ki_table_clear(&b.table);
        for (size_t cut = 1; cut < size; cut += 7)
            assert_int_equal(read_pipe(fixtures[f].reader, bytes, cut, &options).status, KILN_ERR_PARSE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_any_threads), cmocka_unit_test(first_bad_value),
        cmocka_unit_test(first_bad_place),       cmocka_unit_test(progress_and_cancelling),
        cmocka_unit_test(shortage_of_memory),    cmocka_unit_test(sparse_checksums),
        cmocka_unit_test(streams_as_files),
    };
    return cmocka_run_group_tests(tests, make, clear);
}
