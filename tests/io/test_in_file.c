/* Data that cannot stay where they are are read window by window: what is read is what a reader of all of
 * them has, to the last bit, and so are errors and warnings, with their places. */
#define _GNU_SOURCE
#include "io/reading.h"
#include "io/scratch.h"

#include <zlib.h>

#include "kiln.h"
#include "core/file.h"

enum { ROWS = 9000, ROOM = 1 << 20, BUDGET = 2 << 20, FILES = 2 };

struct source {
    const char *name;
    void (*write)(FILE *file, int64_t row); /* -1: what the file begins with */
    kiln_read_options options;
    int files;
    bool packed;
};

/* Text, of which some stands in quotes with an end of line, and a level that comes late; numbers, of which
 * some are missing; targets in text, weights, groups. */
static void mixed(FILE *file, int64_t row) {
    if (row < 0) {
        fputs("\xef\xbb\xbfy,town,a,w,\"b\nc\",g\n", file);
        return;
    }
    fprintf(file, "%s,%s,", row % 3 ? "yes" : "no",
            row % 7 == 0      ? "\"a town\nwith \"\"two\"\" lines, \""
            : row < ROWS - 50 ? "village"
                              : "city");
    if (row % 11) fprintf(file, "%lld.25", (long long)row % 1000); /* sums are exact in any order */
    fprintf(file, ",%lld.5,%lld,family %lld\n", (long long)row % 4, (long long)row * 17,
            (long long)row / 5 % 700);
}

/* The same, where no field is empty. */
static void whole(FILE *file, int64_t row) {
    mixed(file, row < 0 ? row : row % 11 == 0 ? 1 : row);
}

static void numbers(FILE *file, int64_t row) {
    if (row >= 0)
        fprintf(file, "%lld,%lld.25,-%lld\n", (long long)row % 5, (long long)row, (long long)row % 13);
}

/* Labels that a number would rewrite come late. */
static void entries(FILE *file, int64_t row) {
    if (row >= 0)
        fprintf(file, "%s%lld 1:%lld %lld:0.5\n", row > ROWS - 100 ? "00" : "", (long long)row % 3,
                (long long)row, 2 + (long long)row % 40);
}

/* Bytes, of which no matrix consists. */
static void bytes(FILE *file, int64_t row) {
    enum { COLS = 30, HEADER = 118 };
    if (row < 0) {
        fwrite("\x93NUMPY\1\0\x76\0", 1, 10, file);
        fprintf(file, "%-*s\n", HEADER - 1,
                "{'descr': '|u1', 'fortran_order': False, 'shape': (9000, 30), }");
    }
    for (int64_t j = 0; row >= 0 && j < COLS; j++) fputc((int)(row * 31 + j * j) % 256, file);
}

static const struct source sources[] = {
    {"mean", mixed, {.target = "y", .weights = "w", .groups = "g", .missing = KILN_MISSING_MEAN}, 1, false},
    {"indicator", mixed, {.target = "y", .missing = KILN_MISSING_INDICATOR}, FILES, false},
    {"drop", mixed, {.target = "y", .offset = "a", .missing = KILN_MISSING_DROP}, FILES, false},
    {"packed", whole, {.target = "y", .ignore = "g"}, 1, true},
    {"numbers", numbers, {.format = KILN_FILE_CSV, .type = KILN_F32}, FILES, true},
    {"labels", entries, {.format = KILN_FILE_LIBSVM, .text_targets = KILN_TARGETS_LABELS}, FILES, false},
    {"entries", entries, {.format = KILN_FILE_LIBSVM, .cols = 50}, 1, true},
    {"array", bytes, {.format = KILN_FILE_NPY, .type = KILN_F32}, 1, false},
    {"arrays", bytes, {.format = KILN_FILE_NPY, .target = "3,-1", .weights = "1"}, FILES, true},
};
enum { SOURCES = sizeof sources / sizeof *sources };

/* broken: the row that has a field too many, or -1. */
static void write_file(const char *path, const struct source *source, int64_t broken) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    for (int64_t row = -1; row < ROWS; row++) {
        if (row >= 0 && row == broken) fputs("1:1 0:0,1,1,1,1,1,1,1,1,1\n", file);
        source->write(file, row);
    }
    assert_int_equal(fclose(file), 0);
    if (source->packed) {
        gzFile packed = gzopen(path, "wb1");
        assert_int_equal(gzwrite(packed, text, (unsigned)size), (int)size);
        assert_int_equal(gzclose(packed), Z_OK);
    } else {
        put_file(path, text, size);
    }
    free(text);
}

struct outcome {
    kiln_status status;
    kiln_device *device;
    kiln_data *data;
};

/* The last of the files is broken. */
static struct outcome read_source(const struct source *source, bool mapped, int64_t broken) {
    static char paths[FILES][600];
    const char *more[FILES];
    kiln_read_options options = source->options;
    if (!options.text_targets) options.text_targets = KILN_TARGETS_TEXT;
    struct outcome read = {.status = KILN_ERR_INTERNAL};
    for (int i = 0; i < source->files; i++) {
        const char *ending = source->write == entries ? "svm" : source->write == bytes ? "npy" : "csv";
        snprintf(paths[i], sizeof paths[i], "%s/%s-%d.%s%s", scratch, source->name, i, ending,
                 source->packed ? ".gz" : "");
        write_file(paths[i], source, i == source->files - 1 ? broken : -1);
        more[i] = paths[i];
    }
    options.size = sizeof options;
    options.more = more + 1;
    options.more_count = source->files - 1;
    options.map = mapped;
    const kiln_device_options little = {.threads = 2, .memory = mapped ? BUDGET : 0};
    read.status = kiln_device_open(&read.device, "cpu", &little);
    if (read.status == KILN_OK) read.status = kiln_data_read(&read.data, read.device, paths[0], &options);
    return read;
}

static void close_read(struct outcome *read) {
    kiln_data_free(read->data);
    if (read->device) kiln_device_close(read->device);
}

static void assert_values(const kiln_matrix *a, const kiln_matrix *b) {
    static double left[ROOM], right[ROOM];
    assert_int_equal(!a, !b);
    if (!a) return;
    assert_true(kiln_matrix_rows(a) == kiln_matrix_rows(b) && kiln_matrix_cols(a) == kiln_matrix_cols(b));
    assert_true(kiln_matrix_nnz(a) == kiln_matrix_nnz(b) && kiln_matrix_nnz(a) <= ROOM);
    assert_int_equal(kiln_matrix_format(a), kiln_matrix_format(b));
    assert_int_equal(kiln_matrix_get(left, a), KILN_OK);
    assert_int_equal(kiln_matrix_get(right, b), KILN_OK);
    assert_memory_equal(left, right, (size_t)(kiln_matrix_nnz(a) * ki_type_bytes(kiln_matrix_type(a))));
}

static void assert_structure(const kiln_matrix *a, const kiln_matrix *b) {
    static int64_t left[ROOM], right[ROOM];
    static int32_t left_col[ROOM], right_col[ROOM];
    if (kiln_matrix_format(a) != KILN_CSR) return;
    assert_int_equal(kiln_matrix_get_csr(left, left_col, NULL, a), KILN_OK);
    assert_int_equal(kiln_matrix_get_csr(right, right_col, NULL, b), KILN_OK);
    assert_memory_equal(left, right, (size_t)(kiln_matrix_rows(a) + 1) * sizeof *left);
    assert_memory_equal(left_col, right_col, (size_t)kiln_matrix_nnz(a) * sizeof *left_col);
}

static void assert_list(const int64_t *a, int64_t a_count, const int64_t *b, int64_t b_count) {
    assert_int_equal(a_count, b_count);
    if (a_count) assert_memory_equal(a, b, (size_t)a_count * sizeof *a);
}

#define ASSERT_NAMES(call)                                                                                   \
    for (int64_t i = 0;; i++) {                                                                              \
        const kiln_data *data = left;                                                                        \
        const char *here = (call);                                                                           \
        data = right;                                                                                        \
        const char *there = (call);                                                                          \
        assert_int_equal(!here, !there);                                                                     \
        if (!here) break;                                                                                    \
        assert_string_equal(here, there);                                                                    \
    }

static void assert_same(const kiln_data *left, const kiln_data *right) {
    int64_t one, other;
    assert_values(kiln_data_X(left), kiln_data_X(right));
    assert_structure(kiln_data_X(left), kiln_data_X(right));
    assert_values(kiln_data_y(left), kiln_data_y(right));
    assert_values(kiln_data_weights(left), kiln_data_weights(right));
    assert_values(kiln_data_offset(left), kiln_data_offset(right));
    assert_int_equal(!kiln_data_groups(left), !kiln_data_groups(right));
    if (kiln_data_groups(left)) assert_list(kiln_data_groups(left), ROWS, kiln_data_groups(right), ROWS);
    const int64_t *gone = kiln_data_left_out(left, &one), *gone_too = kiln_data_left_out(right, &other);
    assert_list(gone, one, gone_too, other);
    assert_list(kiln_data_X(left)->filled, kiln_data_X(left)->filled_count, kiln_data_X(right)->filled,
                kiln_data_X(right)->filled_count);
    if (kiln_data_feature_name(left, 0))
        ASSERT_NAMES(i < kiln_matrix_cols(kiln_data_X(data)) ? kiln_data_feature_name(data, i) : NULL)
    ASSERT_NAMES(i < 1 && kiln_data_y(data) ? kiln_data_target_name(data, i) : NULL)
    ASSERT_NAMES(kiln_data_y(data) ? kiln_data_class_name(data, 0, i) : NULL)
    ASSERT_NAMES(kiln_data_warning(data, i, NULL))
    ASSERT_NAMES(i < 1 ? kiln_data_schema(data) : NULL)
}

static void what_all_of_it_is(void **state) {
    (void)state;
    for (int i = 0; i < SOURCES; i++) {
        struct outcome all = read_source(&sources[i], false, -1),
                       windows = read_source(&sources[i], true, -1);
        if (windows.status != KILN_OK) fail_msg("%s: %s", sources[i].name, kiln_last_error()->message);
        assert_int_equal(all.status, KILN_OK);
        assert_non_null(kiln_data_X(windows.data)->file);
        assert_same(all.data, windows.data);
        int64_t gone = 0;
        (void)kiln_data_left_out(all.data, &gone);
        assert_int_equal(gone + kiln_data_X(all.data)->filled_count > 0, sources[i].options.missing != 0);
        if (sources[i].write != bytes)
            assert_true(kiln_data_bytes(all.data) == kiln_data_bytes(windows.data));
        close_read(&all);
        close_read(&windows);
    }
}

static void errors_have_their_places(void **state) {
    (void)state;
    for (int i = 0; i < SOURCES; i++)
        for (int64_t broken = 3; sources[i].write != bytes && broken < ROWS; broken += ROWS - 7) {
            struct outcome all = read_source(&sources[i], false, broken);
            const kiln_error *error = kiln_last_error();
            const int64_t line = error->line, column = error->column, offset = error->offset;
            char *message = strdup(error->message);
            struct outcome windows = read_source(&sources[i], true, broken);
            assert_int_equal(all.status, KILN_ERR_PARSE);
            assert_int_equal(windows.status, all.status);
            assert_string_equal(error->message, message);
            if (line <= broken) fail_msg("%s: line %lld: %s", sources[i].name, (long long)line, message);
            if (error->line != line || error->column != column || error->offset != offset)
                fail_msg("%s: %lld:%lld (%lld), not %lld:%lld (%lld)", sources[i].name,
                         (long long)error->line, (long long)error->column, (long long)error->offset,
                         (long long)line, (long long)column, (long long)offset);
            free(message);
            close_read(&all);
            close_read(&windows);
        }
}

static void late(FILE *file, int64_t row) {
    if (row < 0)
        fputs("a,k,y\n", file);
    else
        fprintf(file, "%s,level%d,%d\n", row == ROWS - 9 || row == ROWS - 5 ? "" : "12345678", (int)(row % 7),
                (int)(row % 3));
}

static void nothing(FILE *file, int64_t row) {
    (void)file, (void)row;
}

static void names_alone(FILE *file, int64_t row) {
    if (row < 0) fputs("a,y\n", file);
}

/* Warnings of rows far below the first window name the same line; a file without rows is the same. */
static void warnings_have_their_places(void **state) {
    (void)state;
    const struct source drop = {"late", late, {.target = "y", .missing = KILN_MISSING_DROP}, 1, false};
    const struct source empty = {"nothing", nothing, {.target = "y"}, 1, false};
    const struct source head = {"names", names_alone, {.target = "y"}, 1, false};
    struct outcome all = read_source(&drop, false, -1), windows = read_source(&drop, true, -1);
    assert_int_equal(windows.status, KILN_OK);
    assert_non_null(strstr(kiln_data_warning(all.data, 0, NULL), ".csv:8993:1: "));
    assert_string_equal(kiln_data_warning(windows.data, 0, NULL), kiln_data_warning(all.data, 0, NULL));
    close_read(&all);
    close_read(&windows);
    windows = read_source(&empty, true, -1);
    assert_int_equal(windows.status, KILN_ERR_PARSE);
    assert_string_equal(kiln_last_error()->message, "the file has no lines");
    close_read(&windows);
    windows = read_source(&head, true, -1);
    assert_int_equal(windows.status, KILN_OK);
    assert_int_equal(kiln_matrix_rows(kiln_data_y(windows.data)), 0);
    close_read(&windows);
}

/* X goes from its file to another one, of each format, as from memory. */
static void written_from_the_file(void **state) {
    (void)state;
    static const char *const endings[] = {".csv", ".svm", ".mtx", ".npy", ".npz"};
    for (int i = 0; i < SOURCES; i++) {
        struct outcome all = read_source(&sources[i], false, -1),
                       windows = read_source(&sources[i], true, -1);
        assert_int_equal(windows.status, KILN_OK);
        for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
            char paths[2][600];
            size_t left_size, right_size;
            const bool dense = kiln_matrix_format(kiln_data_X(all.data)) == KILN_DENSE;
            for (int k = 0; k < 2; k++) {
                snprintf(paths[k], sizeof paths[k], "%s/out-%d%s", scratch, k, endings[e]);
                const kiln_status status =
                    kiln_data_write(k ? windows.data : all.data, paths[k], KILN_FILE_AUTO, NULL);
                const bool none = e == 3 ? !dense : e == 4 ? dense : e == 1 && !kiln_data_y(all.data);
                const bool can = !none && !(e == 2 && dense && k);
                assert_int_equal(status, can ? KILN_OK : KILN_ERR_UNSUPPORTED);
            }
            if (access(paths[0], R_OK) != 0 || access(paths[1], R_OK) != 0) continue;
            char *left = file_bytes(paths[0], &left_size), *right = file_bytes(paths[1], &right_size);
            assert_int_equal(left_size, right_size);
            assert_memory_equal(left, right, left_size);
            free(left);
            free(right);
            unlink(paths[0]);
            unlink(paths[1]);
        }
        close_read(&all);
        close_read(&windows);
    }
}

/* Each request for memory that fails, of the first ones and some of those that follow, is told as such, and
 * nothing is left of it. */
static void no_memory(void **state) {
    (void)state;
    static const int chosen[] = {0, 2, 5, 8};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        kiln_status status = KILN_ERR_NOMEM;
        for (shortage.failing = 1; status != KILN_OK; shortage.failing += 1 + shortage.failing / 8) {
            shortage.real = ki_seams;
            shortage.count = shortage.alive = 0;
            ki_seams.alloc = short_alloc;
            ki_seams.resize = short_resize;
            ki_seams.release = short_release;
            struct outcome read = read_source(&sources[chosen[i]], true, -1);
            status = read.status;
            close_read(&read);
            ki_seams = shortage.real;
            assert_int_equal(shortage.alive, 0);
            assert_true(status == KILN_OK || status == KILN_ERR_NOMEM);
        }
        assert_true(shortage.failing > 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_all_of_it_is, scratch_empty),
        cmocka_unit_test_teardown(errors_have_their_places, scratch_empty),
        cmocka_unit_test_teardown(warnings_have_their_places, scratch_empty),
        cmocka_unit_test_teardown(written_from_the_file, scratch_empty),
        cmocka_unit_test_teardown(no_memory, scratch_empty),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
