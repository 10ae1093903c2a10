/* Edge lists: names become vertices in the order of their coming, whatever they look like; what is refused,
 * and where. */
#define _DEFAULT_SOURCE
#include "io/bad_file.h"

#include <math.h>

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_edges, text, strlen(text), options);
}

static void assert_names(const struct ki_table *table, const char *const *names, int64_t count) {
    assert_int_equal(table->cols, count);
    assert_int_equal(table->rows, count);
    for (int64_t i = 0; i < count; i++) assert_string_equal(table->feature_names[i], names[i]);
}

static void vertices_in_order_of_arrival(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    struct reading r =
        read_text("# a graph\n% of four\n30\t1412\n30 3352\n\n1412\t30\nbob   30\r\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_names(&r.table, (const char *const[]){"30", "1412", "3352", "bob"}, 4);
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 3, 3, 4}), 5 * sizeof(int64_t));
    assert_memory_equal(r.table.col, ((int32_t[]){1, 2, 0, 0}), 4 * sizeof(int32_t));
    assert_reals(r.table.values, (double[]){1, 1, 1, 1}, 4);
    ki_table_clear(&r.table);
}

/* Tables that mean the same as "a b 2" and "b,c a 1". */
static void tables(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    static const struct {
        const char *text, *suffix;
    } files[] = {
        {"source,target,weight\na b,x,2\n\"b,c\",\"a b\",1\n", ".csv"},
        {"weight;to;note;from\r\n2;x;;a b\r\n1;a b;!;b,c", ".txt"},
        {"a b\tx\t2\nb,c\ta b\t1\n", ".tsv"},
        {"# links\n\"a b\",x,2\n\"b,c\",a b,1\n", ""},
        {"first,second,how often\na b,x,2\n\"b,c\",a b,1\n", ""},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct reading r =
            read_named(ki_read_edges, files[i].text, strlen(files[i].text), files[i].suffix, &options);
        assert_int_equal(r.status, KILN_OK);
        assert_names(&r.table, (const char *const[]){"a b", "x", "b,c"}, 3);
        assert_memory_equal(r.table.row_start, ((int64_t[]){0, 1, 1, 2}), 4 * sizeof(int64_t));
        assert_reals(r.table.values, (double[]){2, 1}, 2);
        ki_table_clear(&r.table);
    }
    struct reading numbers = read_text("paper,reference\n1,2\n2,1\n", &options);
    assert_int_equal(numbers.status, KILN_OK);
    assert_names(&numbers.table, (const char *const[]){"1", "2"}, 2);
    ki_table_clear(&numbers.table);
    static const struct bad_file bad[] = {
        {"a,b,c,d\n1,2,3,4\n", 1, 1, KILN_ERR_PARSE, "which of the 4 columns", "--source and --target"},
        {"from,to\na,b\na\n", 3, 1, KILN_ERR_PARSE, "1 fields, the first line has 2", "from, to"},
        {"from,to,weight\na,b,1\na,,1\n", 3, 3, KILN_ERR_PARSE, "a second vertex", ""},
        {"from,to,weight\na,b,x\n", 2, 5, KILN_ERR_PARSE, "expected a weight, found 'x'", ""},
        {"from,to,weight\na,b,inf\n", 2, 5, KILN_ERR_PARSE, "weight 'inf'", ""},
        {"from,to\na,\"b\n", 2, 3, KILN_ERR_PARSE, "a quote that is not closed", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_bad_file(ki_read_edges, &bad[i], strlen(bad[i].text), &options);
}

/* Names that look alike as numbers are still different names. */
/* The same two links, whose columns options name or number. */
static void columns_by_options(void **state) {
    (void)state;
    static const struct {
        const char *text, *source, *target, *weight;
    } files[] = {
        {"id,org,dest,km\n1,a b,x,2\n2,\"b,c\",a b,1\n", "org", "dest", "km"},
        {"id,org,dest,km\n1,a b,x,2\n2,\"b,c\",a b,1\n", "org", NULL, "-1"}, /* dest is a word for it */
        {"1,a b,x,2\n2,\"b,c\",a b,1\n", "2", "3", "4"},
        {"2;x;a b\n1;a b;b,c\n", "-1", "2", NULL}, /* the column that is left over */
        {"\"the \"\"org\"\"\",to,weight\na b,x,2\n\"b,c\",a b,1\n", "the \"org\"", NULL, NULL},
        {"from,to,weight,km\na b,x,7,2\n\"b,c\",a b,7,1\n", NULL, NULL, "km"},
        {"to,from,km\na b,x,2\n\"b,c\",a b,1\n", "to", "from", "km"},
        {"FromNodeId,ToNodeId,km\na b,x,2\n\"b,c\",a b,1\n", NULL, NULL, "km"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        kiln_read_options options = reading_options();
        options.source = files[i].source;
        options.target = files[i].target;
        options.weight = files[i].weight;
        struct reading r = read_named(ki_read_edges, files[i].text, strlen(files[i].text), ".csv", &options);
        if (r.status != KILN_OK) fail_msg("case %d: %s", (int)i, kiln_last_error()->message);
        assert_names(&r.table, (const char *const[]){"a b", "x", "b,c"}, 3);
        assert_memory_equal(r.table.row_start, ((int64_t[]){0, 1, 1, 2}), 4 * sizeof(int64_t));
        assert_reals(r.table.values, (double[]){2, 1}, 2);
        ki_table_clear(&r.table);
    }
    static const struct {
        const char *source, *target, *weight, *said;
    } bad[] = {{"start", "to", NULL, "no column is called 'start'; the columns are 'from', 'to' and 'km'"},
               {"5", "to", NULL, "source is column 5, but a line has 3"},
               {"0", "to", NULL, "source is column 0, but a line has 3"},
               {"from", "1", NULL, "source and target are the same column, '1'"},
               {"From", NULL, NULL, "no column is called 'From'"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kiln_read_options options = reading_options();
        options.source = bad[i].source;
        options.target = bad[i].target;
        options.weight = bad[i].weight;
        static const char text[] = "from,to,km\na,b,1\n";
        struct reading r = read_named(ki_read_edges, text, sizeof text - 1, ".csv", &options);
        assert_int_equal(r.status, KILN_ERR_PARSE);
        if (!strstr(kiln_last_error()->message, bad[i].said)) fail_msg("%s", kiln_last_error()->message);
    }
}

static void names_are_text(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    struct reading r = read_text("1 01\n1.0 +1\n999999999 1000000000\n\xc3\xa4 a\n-1 0\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_names(
        &r.table,
        (const char *const[]){"1", "01", "1.0", "+1", "999999999", "1000000000", "\xc3\xa4", "a", "-1", "0"},
        10);
    ki_table_clear(&r.table);
}

static void weights_add_up(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    static const char text[] = "a b 0.5\nb a 2\na b 0.25\na a -1e2\n";
    struct reading r = read_text(text, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_int_equal(r.table.nnz, 3);
    assert_memory_equal(r.table.col, ((int32_t[]){0, 1, 0}), 3 * sizeof(int32_t));
    assert_reals(r.table.values, (double[]){-100, 0.75, 2}, 3); /* the loop is kept */
    ki_table_clear(&r.table);
    options.strict = 1;
    struct reading strict = read_text(text, &options);
    assert_int_equal(strict.status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "from 'a' to 'b' stands twice"));
    assert_string_equal(kiln_last_error()->file, strict.path);
    assert_int_equal(kiln_last_error()->line, 3);
    options.strict = 0;
    options.type = KILN_F32;
    r = read_text(text, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(((float *)r.table.values)[1] == 0.75f);
    ki_table_clear(&r.table);
}

/* A + A^T but for the loop: the weights of links that are listed both ways add up. */
static void links_lead_both_ways(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.undirected = 1;
    struct reading r = read_text("a b 0.5\nb a 2\nb c 4\na a 8\na a 1\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 4, 5}), 4 * sizeof(int64_t));
    assert_memory_equal(r.table.col, ((int32_t[]){0, 1, 0, 2, 1}), 5 * sizeof(int32_t));
    assert_reals(r.table.values, (double[]){9, 2.5, 2.5, 4, 4}, 5);
    assert_int_equal(r.table.warnings.count, 1);
    assert_non_null(strstr((const char *)r.table.warnings.text.data, "lines that repeat a link: 2;"));
    ki_table_clear(&r.table);
    options.strict = 1;
    r = read_text("a b\nc c\nb a\n", &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "stands twice"));
    assert_int_equal(kiln_last_error()->line, 3);
}

static void refusals(void **state) {
    (void)state;
    static const struct bad_file files[] = {
        {"1 2\n3\n", 2, 2, KILN_ERR_PARSE, "expected a second vertex, found the end of the line", NULL},
        {"1 2\n3 4 5\n", 2, 1, KILN_ERR_PARSE, "3 words, the lines before have 2",
         "on every line or on none"},
        {"1 2 3\n3 4\n", 2, 1, KILN_ERR_PARSE, "2 words, the lines before have 3", NULL},
        {"1 2 3 4\n", 1, 7, KILN_ERR_PARSE, "more than three words: '4'", "from to weight"},
        {"1 2 x\n", 1, 5, KILN_ERR_PARSE, "expected a weight, found 'x'", NULL},
        {"1 2 3x\n", 1, 5, KILN_ERR_PARSE, "expected a weight", NULL},
        {"1 2 nan\n", 1, 5, KILN_ERR_PARSE, "weight 'nan'", "--allow-nonfinite"},
        {"ok ok\nb\xff z\n", 2, 1, KILN_ERR_PARSE, "not UTF-8", "iconv"},
        {"", 0, 0, KILN_ERR_DATA, "no edges", NULL},
        {"# nothing\n\n", 0, 0, KILN_ERR_DATA, "no edges", NULL},
    };
    const kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_edges, &files[i], strlen(files[i].text), &options);
    assert_bad_file(ki_read_edges, &(struct bad_file){"a b\0c\n", 1, 3, KILN_ERR_PARSE, "not UTF-8", NULL}, 6,
                    &options);
}

/* Ids far apart and close together, in a file of several blocks: the same graph with one thread and with
 * seven. */
static void threads_do_not_show(void **state) {
    (void)state;
    const int64_t edges = 400000;
    char *text = malloc((size_t)edges * 24);
    assert_non_null(text);
    size_t size = 0;
    uint64_t random = 7;
    for (int64_t i = 0; i < edges; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t from = (uint32_t)(random >> 33) % 60000,
                       to = (uint32_t)(random >> 11) % (i % 3 ? 60000 : 900000000);
        size += (size_t)sprintf(text + size, "%u\t%u\n", from, to);
    }
    assert_threads_do_not_show(ki_read_edges, text, size);
    free(text);
}

/* Most lines of this file are two whole numbers or short names, which have a way of their own; a blank at
 * each line's end leads past it, to the same graph. */
static void quick_lines_are_as_others(void **state) {
    (void)state;
    static const char *const ends[] = {"0",
                                       "7",
                                       "12345678",
                                       "123456789",
                                       "1234567890",
                                       "007",
                                       "+7",
                                       "-7",
                                       "1.0",
                                       "x",
                                       "99999999",
                                       "00",
                                       "1e3",
                                       "12a",
                                       "100000000",
                                       "10",
                                       "\xc3\xa4",
                                       "a\"b",
                                       "\"q\"",
                                       "a#",
                                       "user12345",
                                       "exactly8",
                                       "1\vb",
                                       "a-name-of-exactly-31-bytes-here",
                                       "a-name-of-exactly-32-bytes-here!"};
    static const char *const weights[] = {
        "",       "1",    "-0",  "0.25", "-12345678.12345678", ".5",      "5.",
        "1e-300", "+1.5", "007", "0.1",  "123456789012345678", "16777217"};
    enum { LINES = 3000, ENDS = sizeof ends / sizeof *ends, WEIGHTS = sizeof weights / sizeof *weights };
    const kiln_read_options options = reading_options();
    char *text = malloc(LINES * 128), *blanks = malloc(LINES * 128);
    assert_true(text && blanks);
    for (int kind = 0; kind < 8; kind++) {
        const char *const separator = kind & 1 ? "\t" : " ", *const line_end = kind & 2 ? "\r\n" : "\n";
        size_t size = 0, blanks_size = 0;
        uint64_t random = 11;
        for (int i = 0; i < LINES; i++) {
            char line[120];
            random = random * 6364136223846793005u + 1442695040888963407u;
            const unsigned a = (unsigned)(random >> 33), b = (unsigned)(random >> 20),
                           w = (unsigned)(random >> 45);
            const char *const weight = weights[1 + w % (WEIGHTS - 1)];
            if (a % 4 == 0)
                snprintf(line, sizeof line, "%s%s%s%s%s", ends[a / 4 % ENDS], separator, ends[b % ENDS],
                         kind & 4 ? separator : "", kind & 4 ? weight : "");
            else
                snprintf(line, sizeof line, "%u%s%u%s%s", a % 1000, separator, b % 50000,
                         kind & 4 ? separator : "", kind & 4 ? weight : "");
            size += (size_t)sprintf(text + size, "%s%s", line, line_end);
            blanks_size += (size_t)sprintf(blanks + blanks_size, "%s %s", line, line_end);
        }
        struct reading quick = read_bytes(ki_read_edges, text, size, &options);
        struct reading other = read_bytes(ki_read_edges, blanks, blanks_size, &options);
        assert_int_equal(quick.status, KILN_OK);
        assert_int_equal(other.status, KILN_OK);
        assert_same_table(&quick.table, &other.table);
        ki_table_clear(&quick.table);
        ki_table_clear(&other.table);
    }
    free(text);
    free(blanks);
}

static void damage(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    assert_true(damage_text(ki_read_edges, "# head\n1 2 0.5\n2 x 1e3\n", &options) > 20);
}

static void memory_runs_out(void **state) {
    (void)state;
    static const char text[] = "1 2 0.5\n2 x 1e3\n2 1 7\n1 2 4\n";
    const kiln_read_options options = reading_options();
    assert_survives_shortage(ki_read_edges, text, sizeof text - 1, &options);
}

/* .txt is an edge list if it looks like one, and what it was before if not. */
static void told_by_name_and_text(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        kiln_file_format format;
    } files[] = {
        {"edges-test.edges", "1 2\n2 3\n", KILN_FILE_EDGES},
        {"edges-test.txt", "# Nodes: 2 Edges: 1\n1\t2\n", KILN_FILE_EDGES},
        {"edges-test.txt", "a b 0.5\nb c 1e-3\n", KILN_FILE_EDGES},
        {"edges-test.txt", "http://a\thttp://b\n", KILN_FILE_EDGES},
        {"edges-test.txt", "1 1:2\n2 3:4\n", KILN_FILE_LIBSVM},
        {"edges-test.txt", "1.5\n2.5\n", KILN_FILE_CSV},
        {"edges-test.txt", "1,2\n3,4\n", KILN_FILE_CSV},
        {"edges-test.txt", "1\t2\t3\t4\n3\t4\t5\t6\n", KILN_FILE_CSV},
    };
    char folder[] = "/tmp/kiln-edges-XXXXXX";
    kiln_device *device = NULL;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        kiln_data *data = NULL;
        FILE *file = fopen(files[i].name, "w");
        assert_non_null(file);
        assert_true(fputs(files[i].text, file) >= 0);
        fclose(file);
        assert_int_equal(kiln_data_read(&data, device, files[i].name, NULL), KILN_OK);
        assert_int_equal(kiln_data_format(data), files[i].format);
        if (files[i].format == KILN_FILE_EDGES) {
            assert_int_equal(kiln_matrix_rows(kiln_data_X(data)), kiln_matrix_cols(kiln_data_X(data)));
            assert_non_null(kiln_data_feature_name(data, 1));
            assert_int_equal(kiln_data_write(data, "edges-test.out", KILN_FILE_EDGES, NULL),
                             KILN_ERR_UNSUPPORTED);
        }
        kiln_data_free(data);
        unlink(files[i].name);
    }
    kiln_device_close(device);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vertices_in_order_of_arrival),
        cmocka_unit_test(tables),
        cmocka_unit_test(columns_by_options),
        cmocka_unit_test(names_are_text),
        cmocka_unit_test(weights_add_up),
        cmocka_unit_test(links_lead_both_ways),
        cmocka_unit_test(refusals),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(quick_lines_are_as_others),
        cmocka_unit_test(damage),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(told_by_name_and_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
