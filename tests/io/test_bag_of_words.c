/* Bags of words and their vocabularies: what is read, what is refused, and where. */
#define _DEFAULT_SOURCE
#include "io/bad_file.h"

#include "io/vocabulary.h"

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_bag_of_words, text, strlen(text), options);
}

static void documents_are_rows(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    static const char text[] = "4\n5\n6\r\n1 2 3\n\n4 5 1\n1 1 1\n3 3 0\n4 1 2\r\n1 2 4\n";
    struct reading r = read_text(text, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 4 && r.table.cols == 5 && r.table.nnz == 5); /* the same word twice adds up */
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 2, 3, 5}), 5 * sizeof(int64_t));
    assert_memory_equal(r.table.col, ((int32_t[]){0, 1, 2, 0, 4}), 5 * sizeof(int32_t));
    assert_reals(r.table.values, (double[]){1, 7, 0, 2, 1}, 5);
    ki_table_clear(&r.table);
    options.strict = 1;
    r = read_text(text, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    r = read_text("0\n0\n0\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 0 && r.table.cols == 0 && r.table.nnz == 0);
    ki_table_clear(&r.table);
}

static void refusals(void **state) {
    (void)state;
    static const struct bad_file files[] = {
        {"", 1, 0, KILN_ERR_PARSE, "ends before its numbers of documents, words and entries", NULL},
        {"3\n4\n", 3, 0, KILN_ERR_PARSE, "ends before its numbers", NULL},
        {"x\n4\n1\n", 1, 1, KILN_ERR_PARSE, "expected the number of documents, found 'x'", NULL},
        {"3 4 1\n1 1 1\n", 1, 3, KILN_ERR_PARSE, "end of the line", "one number each"},
        {"3\n-4\n1\n", 2, 1, KILN_ERR_PARSE, "expected the number of words, found '-4'", NULL},
        {"3\n4\n1.5\n", 3, 2, KILN_ERR_PARSE, "end of the line behind the number of entries", NULL},
        {"3\n2147483648\n1\n1 1 1\n", 2, 1, KILN_ERR_LIMIT, "2147483647 is the most", NULL},
        {"3\n4\n2\n1 1 1\n", 5, 0, KILN_ERR_PARSE, "ends after 1 entries, its head says 2", NULL},
        {"3\n4\n1\n1 1 1\n2 2 2\n", 5, 1, KILN_ERR_PARSE, "more than the 1 entries of the head", NULL},
        {"3\n4\n1\n4 1 1\n", 4, 1, KILN_ERR_PARSE, "document 4, the head allows 1 to 3", NULL},
        {"3\n4\n1\n1 0 1\n", 4, 3, KILN_ERR_PARSE, "word 0, the head allows 1 to 4", NULL},
        {"3\n4\n1\n1 1\n", 4, 4, KILN_ERR_PARSE, "expected an integer", NULL},
        {"3\n4\n1\n1 1 -2\n", 4, 5, KILN_ERR_PARSE, "a word cannot stand -2 times", NULL},
        {"3\n4\n1\n1 1 1.5\n", 4, 6, KILN_ERR_PARSE, "the end of the line", NULL},
        {"3\n4\n1\n1 1 1 1\n", 4, 7, KILN_ERR_PARSE, "the end of the line", NULL},
        {"4000000000\n4\n1\n1 1 1\n", 5, 0, KILN_ERR_LIMIT, "4000000000 rows in a file of", NULL},
    };
    const kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_bag_of_words, &files[i], strlen(files[i].text), &options);
}

static void damage(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    assert_true(damage_text(ki_read_bag_of_words, "3\n4\n2\n1 2 3\n3 4 10\n", &options) > 5);
}

static void memory_runs_out(void **state) {
    (void)state;
    static const char text[] = "3\n4\n3\n1 2 3\n3 4 10\n1 1 1\n";
    const kiln_read_options options = reading_options();
    assert_survives_shortage(ki_read_bag_of_words, text, sizeof text - 1, &options);
}

/* -------------------------------------------------------------------------------------- vocabularies */

static void write_file(const char *name, const char *text, size_t size) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static void in_scratch(void (*test)(kiln_device *device)) {
    char folder[] = "/tmp/kiln-bag-XXXXXX", command[64];
    kiln_device *device = NULL;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    test(device);
    kiln_device_close(device);
    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static const char bag[] = "2\n3\n2\n1 2 3\n2 3 1\n", market[] = "%%MatrixMarket matrix coordinate integer "
                                                                "general\n2 3 2\n1 2 3\n2 3 1\n";

static void find_vocabulary(kiln_device *device) {
    kiln_data *data = NULL;
    write_file("docword.a.txt", bag, sizeof bag - 1);
    assert_int_equal(kiln_data_read(&data, device, "docword.a.txt", NULL), KILN_OK);
    assert_int_equal(kiln_data_format(data), KILN_FILE_BAG_OF_WORDS);
    assert_null(kiln_data_feature_name(data, 0)); /* none is there */
    assert_int_equal(kiln_data_write(data, "out.txt", KILN_FILE_BAG_OF_WORDS, NULL), KILN_ERR_UNSUPPORTED);
    kiln_data_free(data);
    write_file("vocab.a.txt", "one\r\ntwo words\nthr\xc3\xa9\xc3\xa9", 22);
    assert_int_equal(kiln_data_read(&data, device, "./docword.a.txt", NULL), KILN_OK);
    assert_string_equal(kiln_data_feature_name(data, 0), "one");
    assert_string_equal(kiln_data_feature_name(data, 1), "two words");
    assert_string_equal(kiln_data_feature_name(data, 2), "thr\xc3\xa9\xc3\xa9");
    kiln_data_free(data);
    char *found = NULL;
    assert_int_equal(ki_find_vocabulary(&found, "docword.a.txt.gz"), KILN_OK);
    assert_string_equal(found, "vocab.a.txt");
    ki_free(found);
    assert_int_equal(ki_find_vocabulary(&found, "docwords.a.txt"), KILN_OK);
    assert_null(found);
}

static void name_other_formats(kiln_device *device) {
    static const struct {
        const char *text;
        size_t size;
        kiln_status status;
        int line;
        const char *message;
    } bad[] = {
        {"a\nb\n", 4, KILN_ERR_DATA, 0, "2 words, but the data have 3 columns"},
        {"a\n\nc\n", 5, KILN_ERR_PARSE, 2, "an empty line"},
        {"a\nb\n\xff\n", 6, KILN_ERR_PARSE, 3, "not UTF-8"},
        {"a\nb\0\nc\n", 7, KILN_ERR_PARSE, 2, "not UTF-8"},
    };
    kiln_data *data = NULL;
    const kiln_read_options options = {.size = sizeof options, .vocabulary = "words"};
    write_file("m.mtx", market, sizeof market - 1);
    write_file("m.csv", "x,y,z\n1,2,3\n", 12);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("words", bad[i].text, bad[i].size);
        assert_int_equal(kiln_data_read(&data, device, "m.mtx", &options), bad[i].status);
        assert_non_null(strstr(kiln_last_error()->message, bad[i].message));
        assert_string_equal(kiln_last_error()->file, "words");
        assert_int_equal(kiln_last_error()->line, bad[i].line);
    }
    write_file("words", "a\nb\nc\n", 6);
    assert_int_equal(kiln_data_read(&data, device, "m.mtx", &options), KILN_OK);
    assert_string_equal(kiln_data_feature_name(data, 2), "c");
    kiln_data_free(data);
    write_file("words", "a\nb\nc\nd", 7);
    assert_int_equal(kiln_data_read(&data, device, "m.mtx", &options), KILN_OK);
    assert_string_equal(kiln_data_feature_name(data, 2), "c");
    assert_non_null(strstr(kiln_data_warning(data, 0, NULL), "words: 4 words, of which the data have"));
    kiln_data_free(data);
    assert_int_equal(kiln_data_read(&data, device, "m.csv", &options), KILN_ERR_ARGUMENT);
    assert_non_null(strstr(kiln_last_error()->message, "columns have names"));
    const kiln_read_options missing = {.size = sizeof missing, .vocabulary = "nowhere"};
    assert_int_equal(kiln_data_read(&data, device, "m.mtx", &missing), KILN_ERR_IO);
}

static void vocabulary_beside_the_data(void **state) {
    (void)state;
    in_scratch(find_vocabulary);
}

static void vocabulary_of_other_formats(void **state) {
    (void)state;
    in_scratch(name_other_formats);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_rows),
        cmocka_unit_test(refusals),
        cmocka_unit_test(damage),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(vocabulary_beside_the_data),
        cmocka_unit_test(vocabulary_of_other_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
