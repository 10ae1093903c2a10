/* The Matrix Market reader: every layout, field and symmetry; what it refuses and where; headers that lie. */
#define _DEFAULT_SOURCE
#include <stdbool.h>

#include "io/bad_file.h"

#include "io/bytes.h"

#define BANNER "%%MatrixMarket matrix "

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_matrix_market, text, strlen(text), options);
}

static void assert_csr(const char *text, const struct ki_table *want) {
    const kiln_read_options options = reading_options();
    struct reading r = read_text(text, &options);
    if (r.status != KILN_OK) print_error("'%s': %s\n", text, kiln_last_error()->message);
    assert_int_equal(r.status, KILN_OK);
    assert_same_table(&r.table, want);
    assert_true(r.table.y == NULL && r.table.targets == 0);
    ki_table_clear(&r.table);
}

static void coordinates(void **state) {
    (void)state;
    const struct ki_table want = {.format = KILN_CSR,
                                  .rows = 3,
                                  .cols = 4,
                                  .nnz = 4,
                                  .row_start = (int64_t[]){0, 2, 2, 4},
                                  .col = (int32_t[]){0, 3, 1, 2},
                                  .values = (double[]){2.5, -1e-3, 0, 7}};
    assert_csr(BANNER "coordinate real general\n3 4 4\n1 1 2.5\n1 4 -1e-3\n3 2 0\n3 3 7\n", &want);
    /* by column; from behind; with comments, blank lines and blanks; CRLF and no final newline; other case */
    assert_csr(BANNER "coordinate real general\n3 4 4\n1 1 2.5\n3 2 0\n3 3 7\n1 4 -1e-3\n", &want);
    assert_csr(BANNER "coordinate real general\n3 4 4\n3 3 7\n3 2 0\n1 4 -1e-3\n1 1 2.5", &want);
    assert_csr(BANNER
               "coordinate real general\n% c\n%\n\n 3\t4  4 \n\n 1 1 2.5\n%\n1  4 -1e-3\n3 2 0\n3 3 7\n\n",
               &want);
    assert_csr(BANNER "coordinate real general\r\n3 4 4\r\n1 1 2.5\r\n1 4 -1e-3\r\n3 2 0\r\n3 3 7", &want);
    assert_csr("\xef\xbb\xbf%%matrixmarket MATRIX Coordinate REAL General\n3 4 4\n1 1 2.5\n1 4 -1e-3\n3 2 "
               "0\n3 3 7\n",
               &want);
    /* entries at the same place add up */
    assert_csr(BANNER "coordinate real general\n3 4 6\n3 3 3\n1 1 2.5\n3 2 1\n3 3 4\n1 4 -1e-3\n3 2 -1\n",
               &want);
}

static void fields_and_symmetries(void **state) {
    (void)state;
    struct ki_table want = {.format = KILN_CSR,
                            .rows = 3,
                            .cols = 3,
                            .nnz = 5,
                            .row_start = (int64_t[]){0, 2, 3, 5},
                            .col = (int32_t[]){0, 2, 2, 0, 1},
                            .values = (double[]){1, 2, 5, 2, 5}};
    assert_csr(BANNER "coordinate real symmetric\n3 3 3\n1 1 1\n3 1 2\n3 2 5\n", &want);
    assert_csr(BANNER "coordinate integer symmetric\n3 3 3\n3 2 5\n3 1 2\n1 1 1\n", &want);
    assert_csr(BANNER "coordinate real symmetric\n3 3 3\n1 1 1\n1 3 2\n2 3 5\n",
               &want); /* the upper triangle */
    want.values = (double[]){1, 1, 1, 1, 1};
    assert_csr(BANNER "coordinate pattern symmetric\n3 3 3\n2 3\n1 1\n1 3\n", &want);
    assert_csr(BANNER "coordinate pattern symmetric\n3 3 3\n3 2\n3 1\n1 1\n", &want);
    want.nnz = 4;
    want.row_start = (int64_t[]){0, 1, 2, 4};
    want.col = (int32_t[]){2, 2, 0, 1};
    want.values = (double[]){-2, 5, 2, -5};
    assert_csr(BANNER "coordinate real skew-symmetric\n3 3 2\n3 1 2\n3 2 -5\n", &want);
    assert_csr(BANNER "coordinate real skew-symmetric\n3 3 2\n1 3 -2\n2 3 5\n", &want);
}

static void arrays(void **state) {
    (void)state;
    struct ki_table want = {
        .format = KILN_DENSE, .rows = 2, .cols = 3, .nnz = 6, .values = (double[]){1, 3, 5, 2, 4, 6}};
    assert_csr(BANNER "array real general\n2 3\n1\n2\n3\n4\n5\n6\n", &want);
    assert_csr(BANNER "array integer general\n% c\n2 3\n1 2 3\n\n4\n5 6", &want);
    want = (struct ki_table){.format = KILN_DENSE,
                             .rows = 3,
                             .cols = 3,
                             .nnz = 9,
                             .values = (double[]){1, 2, 3, 2, 4, 5, 3, 5, 6}};
    assert_csr(BANNER "array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", &want);
    want.values = (double[]){0, -1, -2, 1, 0, -3, 2, 3, 0};
    assert_csr(BANNER "array real skew-symmetric\n3 3\n1\n2\n3\n", &want);
    want = (struct ki_table){.format = KILN_DENSE, .rows = 0, .cols = 3, .values = (double[]){0}};
    assert_csr(BANNER "array real general\n0 3\n", &want);
}

static void empty_ones(void **state) {
    (void)state;
    struct ki_table want = {.format = KILN_CSR,
                            .row_start = (int64_t[]){0, 0, 0, 0},
                            .col = (int32_t[]){0},
                            .values = (double[]){0}};
    assert_csr(BANNER "coordinate real general\n0 0 0\n", &want);
    want.rows = 3;
    want.cols = 2;
    assert_csr(BANNER "coordinate pattern general\n3 2 0", &want);
    static const char *const largest[] = {
        BANNER "coordinate unsigned-integer general\n1 1 1\n1 1 18446744073709551615\n",
        BANNER "coordinate double general\n1 1 1\n1 1 18446744073709551615\n"};
    for (int k = 0; k < 2; k++) {
        want = (struct ki_table){.format = KILN_CSR,
                                 .rows = 1,
                                 .cols = 1,
                                 .nnz = 1,
                                 .row_start = (int64_t[]){0, 1},
                                 .col = (int32_t[]){0},
                                 .values = (double[]){0x1p64}};
        assert_csr(largest[k], &want);
    }
}

static void options_apply(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.type = KILN_F32;
    options.allow_nonfinite = 1;
    struct reading r =
        read_text(BANNER "coordinate real general\n2 2 3\n2 1 0.1\n1 2 nan\n2 1 0.2\n", &options);
    assert_int_equal(r.status, KILN_OK);
    const float *values = r.table.values;
    assert_true(r.table.nnz == 2 && values[0] != values[0] && values[1] == (float)(0.1 + 0.2));
    ki_table_clear(&r.table);
    r = read_text(BANNER "array real general\n2 2\n0.1\n0.2\n0.3\n0.4\n", &options);
    assert_int_equal(r.status, KILN_OK);
    values = r.table.values;
    assert_true(values[0] == 0.1f && values[1] == 0.3f && values[2] == 0.2f && values[3] == 0.4f);
    ki_table_clear(&r.table);

    static const struct bad_file twice = {BANNER "coordinate real general\n2 2 2\n2 1 1\n% again\n2 1 1\n",
                                          5,
                                          0,
                                          KILN_ERR_PARSE,
                                          "entry (2, 1) stands twice",
                                          "strict"};
    static const struct bad_file mirrored = {BANNER "coordinate real symmetric\n2 2 2\n2 1 1\n2 1 3\n",
                                             4,
                                             0,
                                             KILN_ERR_PARSE,
                                             "entry (1, 2) stands twice",
                                             "strict"};
    options = reading_options();
    options.strict = 1;
    assert_bad_file(ki_read_matrix_market, &twice, strlen(twice.text), &options);
    assert_bad_file(ki_read_matrix_market, &mirrored, strlen(mirrored.text), &options);
    static const struct bad_file sum = {BANNER "coordinate real general\n1 1 2\n1 1 1e308\n1 1 1e308\n",
                                        0,
                                        0,
                                        KILN_ERR_DATA,
                                        "sum of the entries (1, 1)",
                                        NULL};
    options.strict = 0;
    assert_bad_file(ki_read_matrix_market, &sum, strlen(sum.text), &options);
}

static void bad_files(void **state) {
    (void)state;
    static const char end_of_line[] = "the end of the line";
    static const struct bad_file files[] = {
        {"", 1, 0, KILN_ERR_PARSE, "ends before its size line", NULL},
        {"\n", 1, 1, KILN_ERR_PARSE, "begins with %%MatrixMarket", NULL},
        {"1 1 1\n", 1, 1, KILN_ERR_PARSE, "begins with %%MatrixMarket", NULL},
        {BANNER "coordinate real general\n", 2, 0, KILN_ERR_PARSE, "ends before its size line", NULL},
        {BANNER "coordinate real general\n% only\n", 3, 0, KILN_ERR_PARSE, "ends before its size line", NULL},
        {BANNER "coordinate complex general\n1 1 0\n", 1, 34, KILN_ERR_UNSUPPORTED, "'complex'",
         "real, integer or pattern"},
        {BANNER "coordinate real hermitian\n1 1 0\n", 1, 39, KILN_ERR_UNSUPPORTED, "'hermitian'", NULL},
        {"%%MatrixMarket vector coordinate real\n", 1, 16, KILN_ERR_UNSUPPORTED, "'vector'", NULL},
        {BANNER "coordinate real\n1 1 0\n", 1, 38, KILN_ERR_PARSE, end_of_line, NULL},
        {BANNER "coordinate real general extra\n", 1, 47, KILN_ERR_PARSE, "found 'extra'", NULL},
        {BANNER "array pattern general\n", 1, 1, KILN_ERR_PARSE, "no values for an array", NULL},
        {BANNER "coordinate pattern skew-symmetric\n", 1, 1, KILN_ERR_PARSE, "no values for a skew-symmetric",
         NULL},
        {BANNER "coordinate real general\n2 2\n", 2, 4, KILN_ERR_PARSE, end_of_line, NULL},
        {BANNER "coordinate real general\n2 2 1 1\n", 2, 7, KILN_ERR_PARSE, "found '1'", NULL},
        {BANNER "coordinate real symmetric\n2 3 0\n", 2, 1, KILN_ERR_PARSE, "is square, not 2 x 3", NULL},
        {BANNER "coordinate real general\n2 2 1\n0 1 1\n", 3, 1, KILN_ERR_PARSE,
         "row 0, the size line allows 1 to 2", NULL},
        {BANNER "coordinate real general\n2 2 1\n1 3 1\n", 3, 3, KILN_ERR_PARSE,
         "column 3, the size line allows 1 to 2", NULL},
        {BANNER "coordinate real general\n2 2 1\n-1 1 1\n", 3, 1, KILN_ERR_PARSE, "row -1", NULL},
        {BANNER "coordinate real general\n2 2 1\n99999999999999999999 1 1\n", 3, 1, KILN_ERR_PARSE,
         "row 99999999999999999999", NULL},
        {BANNER "coordinate real general\n2 2 1\n1.5 1 1\n", 3, 1, KILN_ERR_PARSE,
         "expected row, found '1.5'", NULL},
        {BANNER "coordinate real general\n2 2 1\n1\n", 3, 2, KILN_ERR_PARSE, "expected column, found the end",
         NULL},
        {BANNER "coordinate real general\n2 2 1\n1 1\n", 3, 4, KILN_ERR_PARSE,
         "expected a number, found the end", NULL},
        {BANNER "coordinate real general\n2 2 1\n1 1 x\n", 3, 5, KILN_ERR_PARSE,
         "expected a number, found 'x'", NULL},
        {BANNER "coordinate real general\n2 2 1\n1 1 nan\n", 3, 5, KILN_ERR_PARSE, "value 'nan'",
         "--allow-nonfinite"},
        {BANNER "coordinate real general\n2 2 1\n1 1 1 1\n", 3, 7, KILN_ERR_PARSE,
         "expected the end of the line", NULL},
        {BANNER "coordinate integer general\n2 2 1\n1 1 1.5\n", 3, 6, KILN_ERR_PARSE,
         "expected the end of the line", NULL},
        {BANNER "coordinate integer general\n2 2 1\n1 1 x\n", 3, 5, KILN_ERR_PARSE, "expected an integer",
         NULL},
        {BANNER "coordinate integer general\n2 2 1\n1 1 18446744073709551615\n", 3, 5, KILN_ERR_PARSE,
         "value '18446744073709551615' is beyond 64 bits", "unsigned-integer"},
        {BANNER "coordinate pattern general\n2 2 1\n1 1 1\n", 3, 5, KILN_ERR_PARSE,
         "expected the end of the line, as a pattern has no values", NULL},
        {BANNER "coordinate real symmetric\n2 2 2\n2 1 1\n1 2 1\n", 4, 1, KILN_ERR_PARSE,
         "an entry above the diagonal, but those before it are below", "one triangle"},
        {BANNER "coordinate real symmetric\n3 3 4\n1 1 1\n1 2 1\n2 2 1\n3 1 1\n", 6, 1, KILN_ERR_PARSE,
         "an entry below the diagonal, but those before it are above", "one triangle"},
        {BANNER "coordinate real skew-symmetric\n2 2 1\n2 2 1\n", 3, 1, KILN_ERR_PARSE, "entry (2, 2)",
         "diagonal"},
        {BANNER "coordinate real general\n2 2 2\n1 1 1\n", 4, 0, KILN_ERR_PARSE,
         "ends after 1 entries, its size line says 2", NULL},
        {BANNER "coordinate real general\n2 2 1\n1 1 1\n\n% c\n2 2 1\n", 6, 1, KILN_ERR_PARSE,
         "more than the 1 entries", NULL},
        {BANNER "array real general\n2 1\n1\n", 4, 0, KILN_ERR_PARSE,
         "ends after 1 values, its size line says 2", NULL},
        {BANNER "array real general\n2 1\n1\r\n2 3\r\n", 4, 3, KILN_ERR_PARSE, "more than the 2 values",
         NULL},
        {BANNER "array real general\n1 1\n1,5\n", 3, 1, KILN_ERR_PARSE, "expected a number, found '1,5'",
         NULL},
    };
    const kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_matrix_market, &files[i], strlen(files[i].text), &options);
    static const struct bad_file nul = {BANNER "coordinate real general\n1 1 1\n1 \0"
                                               "1 1\n",
                                        3,
                                        3,
                                        KILN_ERR_PARSE,
                                        "a NUL byte",
                                        NULL};
    assert_bad_file(ki_read_matrix_market, &nul, strlen(nul.text) + 5, &options);
}

/* The largest block of memory asked for since it was set to 0. */
static size_t largest;
static struct ki_seams real;

static void *watched_alloc(size_t bytes, size_t align) {
    if (bytes > largest) largest = bytes;
    return real.alloc(bytes, align);
}

static void *watched_resize(void *memory, size_t bytes) {
    if (bytes > largest) largest = bytes;
    return real.resize(memory, bytes);
}

/* Every number of the size line replaced by every boundary: an error or a small matrix, with little memory.
 */
static void headers_that_lie(void **state) {
    (void)state;
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "-1",
                                          "-0",
                                          "+5",
                                          "1048576",
                                          "1048577",
                                          "2147483646",
                                          "2147483647",
                                          "2147483648",
                                          "4294967295",
                                          "4294967296",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "1e400",
                                          "1e3",
                                          "0x10",
                                          "1.0",
                                          "",
                                          "nan"};
    static const char *const layouts[] = {"coordinate real general", "coordinate real symmetric",
                                          "array real general", "array real symmetric",
                                          "array real skew-symmetric"};
    const kiln_read_options options = reading_options();
    char text[256];
    real = ki_seams;
    ki_seams.alloc = watched_alloc;
    ki_seams.resize = watched_resize;
    for (size_t l = 0; l < 5; l++)
        for (size_t n = 0; n < 3 * sizeof numbers / sizeof *numbers; n++) {
            const char *sizes[] = {"2", "2", l < 2 ? "1" : ""};
            sizes[n % 3] = numbers[n / 3];
            snprintf(text, sizeof text, "%s%s\n%s %s %s\n1 1 1\n", BANNER, layouts[l], sizes[0], sizes[1],
                     sizes[2]);
            largest = 0;
            struct reading r = read_text(text, &options);
            assert_true(largest <= (size_t)16 << 20);
            ki_table_clear(&r.table);
            if (l > 1) { /* and both sizes of an array */
                snprintf(text, sizeof text, "%s%s\n%s %s\n1 1 1\n", BANNER, layouts[l], numbers[n / 3],
                         numbers[n / 3]);
                r = read_text(text, &options);
                assert_true(largest <= (size_t)16 << 20);
                ki_table_clear(&r.table);
            }
        }
    ki_seams = real;

    static const struct bad_file rows = {BANNER "coordinate real general\n4294967295 2 0\n",
                                         3,
                                         0,
                                         KILN_ERR_LIMIT,
                                         "4294967295 rows in a file of",
                                         "a million rows"};
    assert_bad_file(ki_read_matrix_market, &rows, strlen(rows.text), &options);
}

static void damaged(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    assert_in_range(damage_text(ki_read_matrix_market,
                                BANNER "coordinate real general\n3 3 2\n3 1 2.5\n1 2 -1\n", &options),
                    2, 60);
    assert_in_range(
        damage_text(ki_read_matrix_market, BANNER "array real symmetric\n2 2\n1.5\n2\n-3\n", &options), 2,
        60);
}

/* A large symmetric matrix in three orders, read by 1 to 7 threads. */
/* Most lines have a way of their own; a blank at each one's end leads past it, to the same entries and
 * errors. */
static void quick_lines_are_as_others(void **state) {
    (void)state;
    static const char *const fields[] = {"real", "integer", "pattern"};
    static const char *const values[2][8] = {
        {"1", "-0", "0.25", "-12345678.12345678", ".5", "1e-300", "+1.5", "16777217"},
        {"1", "-7", "12345678", "123456789", "007", "+3", "9223372036854775807", "0"}};
    static const char *const bad[] = {"0 1 1", "1 0 1",   "60001 1 1", "1 1 x",  "1 1",
                                      "1",     "1 1 1 1", "1 1 1.5",   "-1 2 3", "1 1 1e999"};
    enum { FILES = 300, LINES = 60, LENGTH = 1 << 13 };
    char *text = malloc(LENGTH), *blanks = malloc(LENGTH);
    assert_true(text && blanks);
    uint64_t random = 19;
    for (int file = 0; file < FILES; file++) {
        const kiln_read_options options = {.type = file & 1 ? KILN_F64 : KILN_F32, .threads = 1};
        const int field = file % 3;
        size_t size =
            (size_t)sprintf(text, BANNER "coordinate %s general\n60000 99999999 %d\n", fields[field], LINES);
        size_t blanks_size = (size_t)sprintf(blanks, "%s", text);
        for (int i = 0; i < LINES; i++) {
            char line[80];
            random = random * 6364136223846793005u + 1442695040888963407u;
            const unsigned a = (unsigned)(random >> 33), b = (unsigned)(random >> 20) & 0xffff;
            int used = snprintf(line, sizeof line, "%u%s%u", 1 + a % 60000, a % 3 ? " " : "\t",
                                1 + (b % 16 ? b : 12345678));
            if (field < 2 && b % 4)
                snprintf(line + used, sizeof line - (size_t)used, field ? " %u" : " %u.5", a);
            else if (field < 2)
                snprintf(line + used, sizeof line - (size_t)used, " %s", values[field][a % 8]);
            if (file % 4 == 0 && a % 200 == 0) strcpy(line, bad[b % (sizeof bad / sizeof *bad)]);
            size += (size_t)sprintf(text + size, "%s%s", line, file % 5 ? "\n" : "\r\n");
            blanks_size += (size_t)sprintf(blanks + blanks_size, "%s %s", line, file % 5 ? "\n" : "\r\n");
        }
        assert_same_outcome(ki_read_matrix_market, text, blanks, &options);
    }
    free(text);
    free(blanks);
}

static void threads_and_order_do_not_show(void **state) {
    (void)state;
    enum { SIZE = 40000, STEP = 17 };
    struct ki_bytes text[3] = {{0}, {0}, {0}};
    char line[128];
    for (int k = 0; k < 3; k++) {
        int64_t at = 0;
        assert_true(ki_bytes_append(&text[k], line,
                                    snprintf(line, sizeof line, "%scoordinate real symmetric\n%d %d %d\n",
                                             BANNER, SIZE, SIZE, 2 * SIZE - STEP)));
        for (int i = 0; i < 2 * SIZE - STEP; i++, at = (at + 7919) % (2 * SIZE - STEP)) {
            int64_t e = k == 0 ? i : k == 1 ? 2 * SIZE - STEP - 1 - i : at;
            int64_t r = e < SIZE ? e + 1 : e - SIZE + STEP + 1, c = e < SIZE ? r : r - STEP;
            assert_true(ki_bytes_append(
                &text[k], line,
                snprintf(line, sizeof line, "%lld %lld %.17g\n", (long long)r, (long long)c, (double)e / 7)));
        }
    }
    kiln_read_options options = reading_options();
    struct reading first = read_bytes(ki_read_matrix_market, text[0].data, (size_t)text[0].size, &options);
    assert_int_equal(first.status, KILN_OK);
    assert_int_equal(first.table.nnz, SIZE + 2 * (SIZE - STEP));
    for (options.threads = 1; options.threads <= 7; options.threads += 3)
        for (int k = 0; k < 3; k++) {
            struct reading r =
                read_bytes(ki_read_matrix_market, text[k].data, (size_t)text[k].size, &options);
            assert_int_equal(r.status, KILN_OK);
            assert_same_table(&r.table, &first.table);
            ki_table_clear(&r.table);
        }
    ki_table_clear(&first.table);

    /* The last entry in the other triangle, far from the first. */
    int64_t line_begin = text[0].size - 1;
    while (text[0].data[line_begin - 1] != '\n') line_begin--;
    struct ki_bytes both = {0};
    assert_true(ki_bytes_append(&both, text[0].data, line_begin));
    assert_true(ki_bytes_append(&both, line, snprintf(line, sizeof line, "1 %d 1\n", SIZE)));
    for (options.threads = 1; options.threads <= 7; options.threads += 3) {
        struct reading mixed = read_bytes(ki_read_matrix_market, both.data, (size_t)both.size, &options);
        assert_int_equal(mixed.status, KILN_ERR_PARSE);
        assert_int_equal(kiln_last_error()->line, 2 * SIZE - STEP + 2);
    }
    ki_bytes_free(&both);

    text[0].data[text[0].size - 2] = 'x'; /* and an error far inside */
    struct reading r = read_bytes(ki_read_matrix_market, text[0].data, (size_t)text[0].size, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_int_equal(kiln_last_error()->line, 2 * SIZE - STEP + 2);
    for (int k = 0; k < 3; k++) ki_bytes_free(&text[k]);
}

/* More comment lines than one block holds. */
static void long_header(void **state) {
    (void)state;
    struct ki_bytes text = {0};
    const kiln_read_options options = reading_options();
    assert_true(ki_bytes_append(&text, BANNER "array real general\n", 41));
    for (int i = 0; i < 30000; i++) assert_true(ki_bytes_append(&text, "% a comment line\n", 17));
    assert_true(ki_bytes_append(&text, "1 1\n4.5\n", 8));
    struct reading r = read_bytes(ki_read_matrix_market, text.data, (size_t)text.size, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.values, (double[]){4.5}, 1);
    ki_table_clear(&r.table);
    ki_bytes_free(&text);
}

/* Entries of many bins in any order, some of them again and again, are what a square of numbers says. */
static void sums_of_many(void **state) {
    (void)state;
    enum { N = 300, ENTRIES = 100000 };
    static const char *const kinds[] = {"real general", "real symmetric", "real skew-symmetric",
                                        "pattern general", "pattern symmetric"};
    static double sum[N][N];
    static bool there[N][N];
    char *text = malloc((size_t)ENTRIES * 24 + 200);
    assert_non_null(text);
    for (int kind = 0; kind < 5; kind++) {
        const bool mirrored = kind == 1 || kind == 2 || kind == 4, valued = kind < 3;
        uint64_t random = 3;
        size_t size = (size_t)sprintf(text, "%%%%MatrixMarket matrix coordinate %s\n%d %d %d\n", kinds[kind],
                                      N, N, ENTRIES);
        memset(sum, 0, sizeof sum);
        memset(there, 0, sizeof there);
        for (int e = 0; e < ENTRIES; e++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            int i = (int)(random >> 40) % N, j = (int)(random >> 20 & 0xFFFFF) % (e % 2 ? N : 7);
            const int value = valued ? (int)(random >> 55) - 100 : 1;
            if (mirrored && i < j) { /* below the diagonal, where skew-symmetric ones are */
                const int was = i;
                i = j;
                j = was;
            }
            if (kind == 2 && i == j) i = (j + 1) % N > j ? j + 1 : j - 1;
            if (kind == 2 && i < j) {
                const int was = i;
                i = j;
                j = was;
            }
            size += (size_t)sprintf(text + size, valued ? "%d %d %d\n" : "%d %d\n", i + 1, j + 1, value);
            sum[i][j] += value;
            there[i][j] = true;
            if (mirrored && i != j) sum[j][i] += kind == 2 ? -value : value;
            if (mirrored) there[j][i] = true;
        }
        const kiln_read_options options = reading_options();
        struct reading r = read_bytes(ki_read_matrix_market, text, size, &options);
        if (r.status != KILN_OK) fail_msg("%s: %s", kinds[kind], kiln_last_error()->message);
        int64_t at = 0;
        for (int i = 0; i < N; i++) {
            assert_true(r.table.row_start[i] == at);
            for (int j = 0; j < N; j++) {
                if (!there[i][j]) continue;
                assert_int_equal(r.table.col[at], j);
                assert_true(((double *)r.table.values)[at++] == sum[i][j]);
            }
        }
        assert_true(r.table.row_start[N] == at && r.table.nnz == at);
        ki_table_clear(&r.table);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(coordinates),
                                       cmocka_unit_test(fields_and_symmetries),
                                       cmocka_unit_test(arrays),
                                       cmocka_unit_test(empty_ones),
                                       cmocka_unit_test(options_apply),
                                       cmocka_unit_test(bad_files),
                                       cmocka_unit_test(headers_that_lie),
                                       cmocka_unit_test(damaged),
                                       cmocka_unit_test(threads_and_order_do_not_show),
                                       cmocka_unit_test(sums_of_many),
                                       cmocka_unit_test(quick_lines_are_as_others),
                                       cmocka_unit_test(long_header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
