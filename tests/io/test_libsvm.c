/* The LIBSVM reader: what it accepts, what it refuses and where, and that threads do not show. */
#define _DEFAULT_SOURCE
#include <stdbool.h>

#include "io/bad_file.h"

#include <math.h>

#include "io/bytes.h"

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_libsvm, text, strlen(text), options);
}

static void assert_rows(const struct ki_table *table, const int64_t *row_start, const int32_t *col) {
    assert_int_equal(table->format, KILN_CSR);
    assert_memory_equal(table->row_start, row_start, (size_t)(table->rows + 1) * sizeof *row_start);
    assert_memory_equal(table->col, col, (size_t)table->nnz * sizeof *col);
}

static void plain(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    struct reading r = read_text("+1 1:0.5 3:-2e-3\n-1\n2.5 2:0 4:7 # 9:9\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 3 && r.table.cols == 4 && r.table.nnz == 4 && r.table.targets == 1);
    assert_rows(&r.table, (int64_t[]){0, 2, 2, 4}, (int32_t[]){0, 2, 1, 3});
    assert_reals(r.table.values, (double[]){0.5, -2e-3, 0, 7}, 4);
    assert_reals(r.table.y, (double[]){1, -1, 2.5}, 3);
    ki_table_clear(&r.table);
}

static void same_matrix_other_text(void **state) {
    (void)state;
    static const char *const texts[] = {
        "1 2:3 4:5\n2 1:1\n",
        "1 2:3 4:5\n2 1:1",                               /* no final newline */
        "1 2:3 4:5\r\n2 1:1\r\n",                         /* CRLF */
        "1 2:3 4:5\r\n2 1:1\r",                           /* the last line has half of one */
        "\xef\xbb\xbf\x31 2:3 4:5\n2 1:1\n",              /* byte order mark */
        "# head\n\n  \t\n1 2:3 4:5 # 7:7\n#\n2 1:1#\n\n", /* comments and empty lines */
        "\t1.0e0  2:3.000\t4:+5 \n 2 0001:1 \n",          /* blanks and spellings */
        "1 4:5 2:3\n2 1:1\n",                             /* unsorted */
    };
    const kiln_read_options options = reading_options();
    struct reading first = read_text(texts[0], &options);
    assert_int_equal(first.status, KILN_OK);
    for (size_t i = 1; i < sizeof texts / sizeof *texts; i++) {
        struct reading r = read_text(texts[i], &options);
        assert_int_equal(r.status, KILN_OK);
        assert_same_table(&r.table, &first.table);
        ki_table_clear(&r.table);
    }
    ki_table_clear(&first.table);
}

static void options_apply(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.zero_based = 1;
    struct reading r = read_text("1,2 0:1 5:2\n3,4 2:3\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.cols == 6 && r.table.targets == 2);
    assert_rows(&r.table, (int64_t[]){0, 2, 3}, (int32_t[]){0, 5, 2});
    assert_reals(r.table.y, (double[]){1, 2, 3, 4}, 4);
    ki_table_clear(&r.table);

    options.zero_based = 0;
    options.type = KILN_F32;
    options.allow_nonfinite = 1;
    r = read_text("nan 1:0.1 2:1e300 3:-inf\n", &options);
    assert_int_equal(r.status, KILN_OK);
    const float *values = r.table.values;
    assert_true(values[0] == 0.1f && isinf(values[1]) && isinf(values[2]) && isnan(((float *)r.table.y)[0]));
    ki_table_clear(&r.table);
}

static void bad_files(void **state) {
    (void)state;
    static const struct bad_file files[] = {
        {"", 0, 0, KILN_ERR_DATA, "no rows", NULL},
        {"\n\n", 0, 0, KILN_ERR_DATA, "no rows", NULL},
        {"# only\n# comments", 0, 0, KILN_ERR_DATA, "no rows", NULL},
        {"1 1:1\n2 0:1\n", 2, 3, KILN_ERR_PARSE, "feature index 0; LIBSVM files count from 1",
         "--zero-based"},
        {"1 5:1 7:1\n\n1 7:2 3:1 7:3\n", 3, 11, KILN_ERR_PARSE, "index 7 twice", NULL},
        {"1 -3:1\n", 1, 3, KILN_ERR_PARSE, "feature index -3:1", NULL},
        {"1 2147483648:1\n", 1, 3, KILN_ERR_PARSE, "possible are 1 to 2147483647", NULL},
        {"1 99999999999999999999:1\n", 1, 3, KILN_ERR_PARSE, "feature index 99999999999999999999:1", NULL},
        {"1 1:nan\n", 1, 5, KILN_ERR_PARSE, "value 'nan'", "--allow-nonfinite"},
        {"1 1:1 2:-Infinity\n", 1, 9, KILN_ERR_PARSE, "value '-Infinity'", NULL},
        {"1 1:1e999\n", 1, 5, KILN_ERR_PARSE, "value '1e999'", NULL},
        {"inf 1:1\n", 1, 1, KILN_ERR_PARSE, "value 'inf'", NULL},
        {"1:1 2:2\n", 1, 1, KILN_ERR_PARSE, "not with a label", "put a number in front"},
        {"a 1:1\n", 1, 1, KILN_ERR_PARSE, "expected a label, found 'a'", NULL},
        {"1x 1:1\n", 1, 1, KILN_ERR_PARSE, "expected a label, found '1x'", NULL},
        {"1 1:1 2\n", 1, 7, KILN_ERR_PARSE, "expected index:value, found '2'", NULL},
        {"1 1:1 :2\n", 1, 7, KILN_ERR_PARSE, "expected index:value, found ':2'", NULL},
        {"1 1.5:1\n", 1, 3, KILN_ERR_PARSE, "expected index:value, found '1.5:1'", NULL},
        {"1 1:\n", 1, 5, KILN_ERR_PARSE, "expected a number, found the end of the line", NULL},
        {"1 1:\r\n", 1, 5, KILN_ERR_PARSE, "expected a number, found the end of the line", NULL},
        {"1 1: 2\n", 1, 5, KILN_ERR_PARSE, "expected a number, found a blank", NULL},
        {"1 1:1,5\n", 1, 5, KILN_ERR_PARSE, "expected a number, found '1,5'", NULL},
        {"1 1:0x10\n", 1, 5, KILN_ERR_PARSE, "expected a number, found '0x10'", NULL},
        {"1 1:1\r2 1:1\n", 1, 5, KILN_ERR_PARSE, "expected a number", NULL},
        {"3 qid:1 1:1\n", 1, 3, KILN_ERR_UNSUPPORTED, "qid:", "remove"},
        {"1 1:1\n1,2 1:1\n", 2, 1, KILN_ERR_PARSE, "2 labels, the row before has 1", NULL},
        {"1, 1:1\n", 1, 3, KILN_ERR_PARSE, "expected a label, found a blank", NULL},
        {"1 a\xff\x01"
         "bcdefghijklmnopqrstuvwxyz0123456789ABCDEFG\n",
         1, 3, KILN_ERR_PARSE, "found 'a??bcdefghijklmnopqrstuvwxyz0123456789AB...'", NULL},
    };
    const kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_libsvm, &files[i], strlen(files[i].text), &options);

    static const struct bad_file nul = {"1 1:1 \0"
                                        "2:1\n",
                                        1,
                                        7,
                                        KILN_ERR_PARSE,
                                        "a NUL byte",
                                        "text file"};
    assert_bad_file(ki_read_libsvm, &nul, 11, &options);
    kiln_read_options narrow = options, from_zero = options;
    narrow.type = KILN_F32;
    from_zero.zero_based = 1;
    static const struct bad_file large = {"1 1:1e300\n", 1, 5, KILN_ERR_PARSE, "too large for f32", NULL};
    assert_bad_file(ki_read_libsvm, &large, strlen(large.text), &narrow);
    static const struct bad_file beyond = {"1 2147483647:1\n", 1, 3, KILN_ERR_PARSE, "0 to 2147483646", NULL};
    assert_bad_file(ki_read_libsvm, &beyond, strlen(beyond.text), &from_zero);
}

static void damaged(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    int accepted = damage_text(ki_read_libsvm, "+1 1:0.5 3:-2e-3 # x\r\n1.25 7:1 2:4\n", &options);
    assert_in_range(accepted, 20, 130); /* a changed digit is another number */
}

/* Many rows, some of them unsorted; with `shuffle` every row's entries stand in another order. */
static struct ki_bytes many_rows(int rows, bool shuffle) {
    struct ki_bytes text = {0};
    char word[64];
    for (int i = 0; i < rows; i++) {
        assert_true(ki_bytes_append(&text, word, snprintf(word, sizeof word, "%d.25", i)));
        for (int k = 0; k < i % 9; k++) {
            int index = (shuffle ? k * 7 % (i % 9) : k);
            if (shuffle && i % 9 == 7) index = 6 - k;
            int n =
                snprintf(word, sizeof word, " %d:%.17g", 1 + index * 100 + i % 50, sin(i * 100.0 + index));
            assert_true(ki_bytes_append(&text, word, n));
        }
        assert_true(ki_bytes_append(&text, "\n", 1));
    }
    return text;
}

/* Entries with a blank behind have a way of their own; tabs lead past it, to the same rows and errors. */
static void quick_entries_are_as_others(void **state) {
    (void)state;
    static const char *const indices[] = {"1", "07", "9999999", "99999999", "2147483647", "12", "5", "3"};
    static const char *const values[] = {"1", "-0", "0.25", "-4.5", ".5", "5.", "1e-300", "+1.5", "16777217"};
    static const char *const bad[] = {"0:1",     "1:",  ":1", "2147483648:1", "7:x", "7:1.5.2",
                                      "7:1e999", "x:1", "7",  "-1:2"};
    enum { FILES = 300, ROWS = 30, LENGTH = 1 << 14 };
    char *text = malloc(LENGTH), *tabs = malloc(LENGTH);
    assert_true(text && tabs);
    uint64_t random = 17;
    for (int file = 0; file < FILES; file++) {
        const kiln_read_options options = {
            .type = file & 1 ? KILN_F64 : KILN_F32, .threads = 1, .zero_based = file % 5 == 0};
        size_t size = 0;
        for (int row = 0; row < ROWS; row++) {
            size += (size_t)sprintf(text + size, "%d", row % 2);
            for (int i = 0; i < 8; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                const unsigned a = (unsigned)(random >> 33), b = (unsigned)(random >> 20) & 0xffff;
                if (file % 3 == 0 && a % 400 == 0)
                    size += (size_t)sprintf(text + size, " %s", bad[b % (sizeof bad / sizeof *bad)]);
                else if (a % 11 == 0 && i == 7)
                    size += (size_t)sprintf(text + size, " %s:%s", indices[b % 8], values[b % 9]);
                else
                    size += (size_t)sprintf(text + size, " %d:%s%u.%u", 20 * i + (int)(b % 19) + 20,
                                            b % 2 ? "-" : "", b % 7, a);
            }
            size += (size_t)sprintf(text + size, "%s", row % 7 ? "\n" : " # a row\r\n");
        }
        strcpy(tabs, text);
        for (char *p = tabs; *p; p++)
            if (*p == ' ') *p = '\t';
        assert_same_outcome(ki_read_libsvm, text, tabs, &options);
    }
    free(text);
    free(tabs);
}

static void threads_and_order_do_not_show(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct ki_bytes text = many_rows(60000, false), shuffled = many_rows(60000, true);
    options.threads = 1;
    struct reading first = read_bytes(ki_read_libsvm, text.data, (size_t)text.size, &options);
    assert_int_equal(first.status, KILN_OK);
    assert_int_equal(first.table.rows, 60000);
    for (options.threads = 1; options.threads <= 7; options.threads += 2) {
        struct reading r = read_bytes(ki_read_libsvm, text.data, (size_t)text.size, &options);
        assert_int_equal(r.status, KILN_OK);
        assert_same_table(&r.table, &first.table);
        ki_table_clear(&r.table);
        r = read_bytes(ki_read_libsvm, shuffled.data, (size_t)shuffled.size, &options);
        assert_int_equal(r.status, KILN_OK);
        assert_same_table(&r.table, &first.table);
        ki_table_clear(&r.table);
    }
    ki_table_clear(&first.table);
    ki_bytes_free(&text);
    ki_bytes_free(&shuffled);
}

static void targets_in_range(void **state) {
    (void)state;
    static const kiln_range positive = {0, INFINITY, 1, "shift it"};
    static const struct bad_file files[] = {
        {"1 1:2\n# none\n0 1:3\n", 3, 1, KILN_ERR_DATA, "target '0' must be a number > 0", "shift it"},
        {"1,2\n3,-4\n", 2, 3, KILN_ERR_DATA, "target '-4' must be a number > 0", "shift it"},
    };
    kiln_read_options options = reading_options();
    options.target_range = &positive;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_libsvm, &files[i], strlen(files[i].text), &options);
    struct reading r = read_text("1e-300 1:-2\n", &options);
    assert_int_equal(r.status, KILN_OK);
    ki_table_clear(&r.table);
}

/* The place of an error far into a file that several threads share, and the first of two errors. */
static void errors_far_inside(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct ki_bytes text = many_rows(60000, false);
    assert_true(ki_bytes_append(&text, "1 1:x\n", 6));
    struct ki_bytes more = many_rows(60000, false);
    assert_true(ki_bytes_append(&text, more.data, more.size) && ki_bytes_append(&text, "1,2\n", 4));
    struct reading r = read_bytes(ki_read_libsvm, text.data, (size_t)text.size, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_true(kiln_last_error()->line == 60001 && kiln_last_error()->column == 5);
    assert_true(kiln_last_error()->offset == more.size + 4);
    text.data[more.size + 4] = '1';
    r = read_bytes(ki_read_libsvm, text.data, (size_t)text.size, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_true(kiln_last_error()->line == 120002 && kiln_last_error()->column == 1);
    ki_bytes_free(&text);
    ki_bytes_free(&more);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain),
                                       cmocka_unit_test(same_matrix_other_text),
                                       cmocka_unit_test(options_apply),
                                       cmocka_unit_test(bad_files),
                                       cmocka_unit_test(targets_in_range),
                                       cmocka_unit_test(damaged),
                                       cmocka_unit_test(threads_and_order_do_not_show),
                                       cmocka_unit_test(quick_entries_are_as_others),
                                       cmocka_unit_test(errors_far_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
