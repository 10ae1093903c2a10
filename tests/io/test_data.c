/* kiln_data_read: formats told apart by mark, name and text; compressed files; targets from a second file;
 * options. */
#define _DEFAULT_SOURCE
#include "io/scratch.h"

#include <zlib.h>

#include "kiln.h"

static kiln_device *device;

static int begin(void **state) {
    return scratch_make(state) != 0 || kiln_device_open(&device, "cpu", NULL) != KILN_OK;
}

static int end(void **state) {
    kiln_device_close(device);
    return scratch_remove(state);
}

static const char *put_text(const char *name, const char *text) {
    const char *path = in_scratch(name);
    put_file(path, text, strlen(text));
    return path;
}

static const char *put_gzip(const char *name, const char *text) {
    const char *path = in_scratch(name);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
    return path;
}

static const char svm[] = "1 1:2 3:4\n-1 2:5\n";
static const char mtx[] = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 2\n1 3 4\n2 2 5\n";
static const char csv[] = "a,b,c\n2,0,4\n0,5,0\n";

/* The file is read as `format`, and X is the 2 x 3 matrix that all three texts describe. */
static void assert_read(const char *path, kiln_file_format format, size_t bytes) {
    kiln_data *data = NULL;
    kiln_status status = kiln_data_read(&data, device, path, NULL);
    if (status != KILN_OK) print_error("%s: %s\n", path, kiln_last_error()->message);
    assert_int_equal(status, KILN_OK);
    assert_int_equal(kiln_data_format(data), format);
    assert_int_equal(kiln_data_bytes(data), bytes);
    const kiln_matrix *X = kiln_data_X(data);
    assert_true(kiln_matrix_rows(X) == 2 && kiln_matrix_cols(X) == 3);
    double dense[6], values[3];
    if (kiln_matrix_format(X) == KILN_CSR) {
        assert_int_equal(kiln_matrix_get_csr(NULL, NULL, values, X), KILN_OK);
        assert_true(values[0] == 2 && values[1] == 4 && values[2] == 5);
    } else {
        assert_int_equal(kiln_matrix_get(dense, X), KILN_OK);
        assert_true(dense[0] == 2 && dense[2] == 4 && dense[4] == 5 && dense[5] == 0);
    }
    assert_true((kiln_data_y(data) != NULL) == (format == KILN_FILE_LIBSVM));
    kiln_data_free(data);
}

static void formats(void **state) {
    (void)state;
    assert_read(put_text("a.svm", svm), KILN_FILE_LIBSVM, strlen(svm));
    assert_read(put_text("a.LIBSVM", svm), KILN_FILE_LIBSVM, strlen(svm));
    assert_read(put_text("noname", svm), KILN_FILE_LIBSVM, strlen(svm));
    assert_read(put_text("a.mtx", mtx), KILN_FILE_MATRIX_MARKET, strlen(mtx));
    assert_read(put_text("wrong.csv", mtx), KILN_FILE_MATRIX_MARKET,
                strlen(mtx)); /* the mark outweighs the name */
    assert_read(put_text("a.csv", csv), KILN_FILE_CSV, strlen(csv));
    assert_read(put_text("plain.txt", csv), KILN_FILE_CSV, strlen(csv));
    assert_read(put_gzip("a.svm.gz", svm), KILN_FILE_LIBSVM, strlen(svm));
    assert_read(put_gzip("a.csv.gz", csv), KILN_FILE_CSV, strlen(csv));
    assert_read(put_gzip("packed.mtx", mtx), KILN_FILE_MATRIX_MARKET, strlen(mtx));
    assert_read(put_text("not_packed.svm.gz", svm), KILN_FILE_LIBSVM, strlen(svm));
}

static void assert_fails(const char *path, const kiln_read_options *options, kiln_status want,
                         const char *message, const char *hint) {
    kiln_data *data = NULL;
    kiln_status status = kiln_data_read(&data, device, path, options);
    const kiln_error *error = kiln_last_error();
    if (status != want || !strstr(error->message, message) || !strstr(error->hint, hint))
        print_error("%s: %d '%s' hint '%s'\n", path, (int)status, error->message, error->hint);
    assert_int_equal(status, want);
    assert_non_null(strstr(error->message, message));
    assert_non_null(strstr(error->hint, hint));
    assert_null(data);
}

static void wrong_kinds(void **state) {
    (void)state;
    const char *path = in_scratch("model.kiln");
    put_file(path, "\x02\0\0\0\0\0\0\0{}", 10);
    assert_fails(path, NULL, KILN_ERR_PARSE, "this is a Kiln model, not data", "did you swap the arguments?");
    const char *inner = put_gzip("inner.svm.gz", svm);
    size_t size;
    char *bytes = file_bytes(inner, &size);
    path = in_scratch("twice.svm.gz");
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    gzclose(file);
    free(bytes);
    assert_fails(path, NULL, KILN_ERR_PARSE, "compressed twice", "one is read");
    assert_fails(in_scratch("missing.svm"), NULL, KILN_ERR_IO, "No such file", "");
    assert_fails(scratch, NULL, KILN_ERR_IO, "Is a directory", "");
    assert_fails(put_text("empty.svm", ""), NULL, KILN_ERR_DATA, "no rows", "");
}

static void standard_input(void **state) {
    (void)state;
    int saved = dup(STDIN_FILENO), fd = open(put_gzip("stdin.gz", svm), O_RDONLY);
    assert_true(saved >= 0 && fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    assert_read("-", KILN_FILE_LIBSVM, strlen(svm));
    dup2(open(put_text("bad", "1 1:2\n1 1:x\n"), O_RDONLY), STDIN_FILENO);
    assert_fails("-", NULL, KILN_ERR_PARSE, "expected a number", "");
    assert_string_equal(kiln_last_error()->file, "(stdin)");
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
}

static void targets(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
    } files[] = {{"y.txt", "0.5,1\n-2,3\n"},
                 {"y.csv", "0.5,1\r\n-2,3"},
                 {"y.mtx", "%%MatrixMarket matrix array real general\n2 2\n0.5\n-2\n1\n3\n"}};
    char path[512]; /* outlives four further names */
    snprintf(path, sizeof path, "%s", put_text("targets.mtx", mtx));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        kiln_data *data = NULL;
        kiln_read_options options = {.target_file = put_text(files[i].name, files[i].text)};
        assert_int_equal(kiln_data_read(&data, device, path, &options), KILN_OK);
        const kiln_matrix *y = kiln_data_y(data);
        double values[4];
        assert_true(kiln_matrix_rows(y) == 2 && kiln_matrix_cols(y) == 2);
        assert_int_equal(kiln_matrix_get(values, y), KILN_OK);
        assert_true(values[0] == 0.5 && values[1] == 1 && values[2] == -2 && values[3] == 3);
        assert_null(kiln_data_target_name(data, 0));
        kiln_data_free(data);
    }
    kiln_read_options options = {.target_file = put_text("short", "1\n")};
    assert_fails(path, &options, KILN_ERR_DATA, "has 1 rows, the data have 2", "");
    options.target_file = put_text("sparse", "1 1:1\n2 2:2\n");
    assert_fails(path, &options, KILN_ERR_DATA, "holds a sparse matrix", "one number a line");
    options.target_file = put_text("words", "1\nx\n");
    assert_fails(path, &options, KILN_ERR_PARSE, "found 'x'", "");
    assert_int_equal(kiln_last_error()->line, 2);
    options.target_file = put_text("fine", "1\n2\n");
    assert_fails(put_text("own.svm", svm), &options, KILN_ERR_ARGUMENT, "targets of their own", "only once");
}

/* A target that would be ignored is told. */
static void targets_that_cannot_be(void **state) {
    (void)state;
    kiln_read_options options = {.target = "price"};
    const char *path = in_scratch("named.svm");
    put_file(path, svm, strlen(svm));
    assert_fails(path, &options, KILN_ERR_ARGUMENT, "no column names", "first number of each line");
    path = in_scratch("named.mtx");
    static const char array[] = "%%MatrixMarket matrix array real general\n1 1\n2\n";
    put_file(path, array, strlen(array));
    assert_fails(path, &options, KILN_ERR_ARGUMENT, "no column names", "from 1 to 1, or -1");
}

/* Columns of a dense matrix without names, by their number; the others are X, in their order. */
static void columns_by_number(void **state) {
    (void)state;
    static const char array[] =
        "%%MatrixMarket matrix array real general\n2 4\n1\n5\n2\n6\n3\n7\n4\n8\n"; /* 1 2 3 4; 5 6 7 8 */
    static const struct {
        kiln_read_options options;
        int cols, targets;
        double X[6], y[4];
    } cases[] = {
        {{.target = "-1"}, 3, 1, {1, 2, 3, 5, 6, 7}, {4, 8}},
        {{.target = "1"}, 3, 1, {2, 3, 4, 6, 7, 8}, {1, 5}},
        {{.target = "3,-4"}, 2, 2, {2, 4, 6, 8}, {3, 1, 7, 5}},
        {{.target = "4", .weights = "2", .offset = "-2"}, 1, 1, {1, 5}, {4, 8}},
    };
    char path[512];
    snprintf(path, sizeof path, "%s", put_text("numbered.mtx", array));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            kiln_data *data = NULL;
            kiln_read_options options = cases[i].options;
            kiln_matrix *wide = NULL;
            double values[6];
            options.type = narrow ? KILN_F32 : KILN_F64;
            assert_int_equal(kiln_data_read(&data, device, path, &options), KILN_OK);
            const kiln_matrix *X = kiln_data_X(data), *y = kiln_data_y(data);
            assert_true(kiln_matrix_rows(X) == 2 && kiln_matrix_cols(X) == cases[i].cols);
            assert_true(kiln_matrix_rows(y) == 2 && kiln_matrix_cols(y) == cases[i].targets);
            assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, X), KILN_OK);
            assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
            assert_memory_equal(values, cases[i].X, (size_t)(2 * cases[i].cols) * sizeof *values);
            kiln_matrix_free(wide);
            assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, y), KILN_OK);
            assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
            assert_memory_equal(values, cases[i].y, (size_t)(2 * cases[i].targets) * sizeof *values);
            kiln_matrix_free(wide);
            assert_true(!kiln_data_weights(data) == !options.weights &&
                        !kiln_data_offset(data) == !options.offset);
            kiln_data_free(data);
        }
    static const struct {
        kiln_read_options options;
        const char *message;
        kiln_status status;
    } bad[] = {
        {{.target = "0"}, "4 columns, so that no target can be 0", KILN_ERR_ARGUMENT},
        {{.target = "5"}, "no target can be 5", KILN_ERR_ARGUMENT},
        {{.target = "-5"}, "no target can be -5", KILN_ERR_ARGUMENT},
        {{.target = "2,-3"}, "column 2 of", KILN_ERR_ARGUMENT},
        {{.target = "2,"}, "no target can be '2,'", KILN_ERR_ARGUMENT},
        {{.target = "2 3"}, "no target can be '2 3'", KILN_ERR_ARGUMENT},
        {{.weights = "1,2"}, "one column can be the weights, but '1,2' names 2", KILN_ERR_ARGUMENT},
        {{.offset = "x"}, "no offset can be 'x'", KILN_ERR_ARGUMENT},
        {{.target = "1,2,3,4"}, "no column left", KILN_ERR_DATA},
        {{.target = "1", .groups = "2"}, "none can be '2'", KILN_ERR_ARGUMENT},
        {{.target = "1", .target_file = "y.txt"}, "targets of their own", KILN_ERR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(path, &bad[i].options, bad[i].status, bad[i].message, "");
    const kiln_read_options weights = {.weights = "1"};
    assert_fails(put_text("negative.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n-1\n2\n2\n"),
                 &weights, KILN_ERR_DATA, "row 2 has the weight -1", "");
}

/* Questions about nothing have answers. */
static void of_nothing(void **state) {
    (void)state;
    kiln_device_statistics statistics = {.bytes_up = 1};
    assert_int_equal(kiln_device_get_statistics(NULL, &statistics), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_device_get_statistics(NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(statistics.bytes_up, 1);
    assert_true(kiln_matrix_rows(NULL) == 0 && kiln_matrix_cols(NULL) == 0 && kiln_matrix_nnz(NULL) == 0);
    assert_true(kiln_matrix_type(NULL) == KILN_TYPE_DEFAULT && kiln_matrix_format(NULL) == (kiln_format)0);
    assert_null(kiln_matrix_device(NULL));
    assert_true(!kiln_data_X(NULL) && !kiln_data_y(NULL));
    assert_true(!kiln_data_feature_name(NULL, 0) && !kiln_data_target_name(NULL, 0));
    assert_true(kiln_data_format(NULL) == KILN_FILE_AUTO && kiln_data_bytes(NULL) == 0);
    assert_string_equal(kiln_data_schema(NULL), "");
    assert_true(!kiln_model_text(NULL, "schema") && !kiln_model_key(NULL, 0));
    assert_null(kiln_model_tensor_info(NULL, 0, NULL, NULL, NULL));
}

static void columns(void **state) {
    (void)state;
    kiln_data *data = NULL;
    kiln_read_options options = {.cols = 10};
    const char *sparse = put_text("a.svm", svm),
               *dense = put_text("a.mtx", "%%MatrixMarket matrix array real general\n1 1\n2\n");
    assert_int_equal(kiln_data_read(&data, device, sparse, &options), KILN_OK);
    assert_int_equal(kiln_matrix_cols(kiln_data_X(data)), 10);
    kiln_data_free(data);
    options.cols = 2; /* less than there are: a lower bound only */
    assert_int_equal(kiln_data_read(&data, device, sparse, &options), KILN_OK);
    assert_int_equal(kiln_matrix_cols(kiln_data_X(data)), 3);
    kiln_data_free(data);
    data = NULL;
    assert_fails(dense, &options, KILN_ERR_DATA, "1 dense columns, at least 2", "");
    options.cols = -1;
    assert_fails(sparse, &options, KILN_ERR_ARGUMENT, "-1 columns", "");

    kiln_model *model = NULL;
    kiln_matrix *W = NULL;
    assert_int_equal(kiln_matrix_dense(&W, device, KILN_F64, 7, 1, NULL), KILN_OK);
    assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "W", W), KILN_OK);
    options = (kiln_read_options){.model = model};
    assert_int_equal(kiln_data_read(&data, device, sparse, &options), KILN_OK);
    assert_int_equal(kiln_matrix_cols(kiln_data_X(data)), 7);
    kiln_data_free(data);
    kiln_model_free(model);
    kiln_matrix_free(W);
}

static void limits_and_types(void **state) {
    (void)state;
    const char *path = put_gzip("a.svm.gz", svm);
    kiln_read_options options = {.limit = 5};
    assert_fails(path, &options, KILN_ERR_LIMIT, "more than the allowed 5 bytes", "");
    options = (kiln_read_options){.type = (kiln_type)9};
    assert_fails(path, &options, KILN_ERR_ARGUMENT, "element type 9", "");
    options = (kiln_read_options){.format = (kiln_file_format)77};
    assert_fails(path, &options, KILN_ERR_ARGUMENT, "file format 77", "");
    options = (kiln_read_options){.type = KILN_F32, .threads = 3, .format = KILN_FILE_LIBSVM};
    kiln_data *data = NULL;
    assert_int_equal(kiln_data_read(&data, device, path, &options), KILN_OK);
    assert_int_equal(kiln_matrix_type(kiln_data_X(data)), KILN_F32);
    assert_int_equal(kiln_matrix_type(kiln_data_y(data)), KILN_F32);
    assert_string_equal(kiln_data_schema(data), "");
    assert_null(kiln_data_feature_name(data, 0));
    kiln_data_free(data);
}

static void created(void **state) {
    (void)state;
    kiln_matrix *X = NULL, *y = NULL, *other = NULL;
    kiln_data *data = NULL;
    assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, 3, 2, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&y, device, KILN_F64, 3, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&other, device, KILN_F64, 2, 1, NULL), KILN_OK);
    assert_int_equal(kiln_data_create(&data, X, other), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_data_create(&data, NULL, y), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_data_create(&data, y, y), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_data_create(&data, X, y), KILN_OK);
    assert_true(kiln_data_X(data) == X && kiln_data_y(data) == y);
    kiln_data_free(data);
    kiln_matrix_free(other);
    kiln_data_free(NULL);
}

/* Wishes that no file can grant, told before it is read or as soon as its format is known. */
static void wishes_that_do_not_go_together(void **state) {
    (void)state;
    const char *const svm_path = put_text("a.svm", svm), *const more[] = {svm_path},
                      *mtx_path = put_text("a.mtx", mtx);
    const struct {
        kiln_read_options options;
        const char *path, *message, *hint;
        kiln_status status;
    } cases[] = {
        {{.map = 1, .more = more, .more_count = 1},
         mtx_path,
         "none can stay on disk",
         "join",
         KILN_ERR_UNSUPPORTED},
        {{.vocabulary = "-"}, "-", "both the data and their vocabulary", "", KILN_ERR_ARGUMENT},
        {{.target_file = "-"}, "-", "both the data and their targets", "", KILN_ERR_ARGUMENT},
        {{.missing = (kiln_missing)9}, svm_path, "unknown way with missing", "", KILN_ERR_ARGUMENT},
        {{.max_levels = -1}, svm_path, "a negative limit", "", KILN_ERR_ARGUMENT},
        {{.weights = "w"}, svm_path, "none can be 'w'", "--weights-file", KILN_ERR_ARGUMENT},
        {{.offset = "o"}, svm_path, "none can be 'o'", "--offset-file", KILN_ERR_ARGUMENT},
        {{.groups = "g"}, svm_path, "none can be 'g'", "--groups-file", KILN_ERR_ARGUMENT},
        {{.target = "t"}, svm_path, "no target can be 't'", "first number of each line", KILN_ERR_ARGUMENT},
        {{.format = KILN_FILE_NPY}, NULL, "must not be NULL", "", KILN_ERR_ARGUMENT},
    };
    const int saved = dup(STDIN_FILENO);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int text = open(svm_path, O_RDONLY);
        assert_true(text >= 0 && dup2(text, STDIN_FILENO) == STDIN_FILENO);
        close(text);
        assert_fails(cases[i].path, &cases[i].options, cases[i].status, cases[i].message, cases[i].hint);
    }
    assert_true(dup2(saved, STDIN_FILENO) == STDIN_FILENO);
    close(saved);
}

/* Weights, offset and groups of a table, its columns and classes; and several files of a format without
 * names. */
static void what_a_table_gives(void **state) {
    (void)state;
    kiln_data *data = NULL;
    const char *path = put_text("t.csv", "a,w,o,g,y\n1,2,3,p,no\n4,5,6,q,yes\n7,8,9,p,no\n");
    const kiln_read_options options = {
        .target = "y", .text_targets = 1, .weights = "w", .offset = "o", .groups = "g"};
    double values[3];
    assert_int_equal(kiln_data_read(&data, device, path, &options), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, kiln_data_weights(data)), KILN_OK);
    assert_true(values[0] == 2 && values[1] == 5 && values[2] == 8);
    assert_int_equal(kiln_matrix_get(values, kiln_data_offset(data)), KILN_OK);
    assert_true(values[0] == 3 && values[1] == 6 && values[2] == 9);
    const int64_t *groups = kiln_data_groups(data);
    assert_true(groups[0] == 0 && groups[1] == 1 && groups[2] == 0);
    assert_string_equal(kiln_data_class_name(data, 0, 1), "yes");
    assert_null(kiln_data_class_name(data, 0, 2));
    assert_null(kiln_data_class_name(data, 1, 0));
    assert_null(kiln_data_row_name(data, 0));
    assert_int_equal(kiln_data_column(data, 4)->role, KILN_COLUMN_TARGET);
    assert_null(kiln_data_column(data, 5));
    kiln_data_free(data);

    const char *const more[] = {put_text("b.mtx", mtx)};
    const kiln_read_options both = {.more = more, .more_count = 1};
    data = NULL;
    assert_int_equal(kiln_data_read(&data, device, put_text("a.mtx", mtx), &both), KILN_OK);
    assert_int_equal(kiln_matrix_rows(kiln_data_X(data)), 4);
    assert_int_equal(kiln_data_bytes(data), 2 * strlen(mtx));
    kiln_data_free(data);
    assert_fails(put_text("a.svm", svm), &both, KILN_ERR_DATA,
                 "this is Matrix Market, the first file is LIBSVM", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats),
                                       cmocka_unit_test(wrong_kinds),
                                       cmocka_unit_test(standard_input),
                                       cmocka_unit_test(targets),
                                       cmocka_unit_test(columns),
                                       cmocka_unit_test(limits_and_types),
                                       cmocka_unit_test(created),
                                       cmocka_unit_test(targets_that_cannot_be),
                                       cmocka_unit_test(columns_by_number),
                                       cmocka_unit_test(of_nothing),
                                       cmocka_unit_test(wishes_that_do_not_go_together),
                                       cmocka_unit_test(what_a_table_gives)};
    return cmocka_run_group_tests(tests, begin, end);
}
