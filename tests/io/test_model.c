/* Model files: the same bits back, the same bytes twice, and no damaged or foreign file that loads as
 * something else. */
#define _GNU_SOURCE
#include "io/model_file.h"

#include <math.h>

static void loading_gives_what_was_saved(void **state) {
    (void)state;
    static const char *const keys[] = {"algorithm", "kiln_version", "l2", "schema", NULL};
    kiln_model *model = small_model(1), *back = NULL;
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_OK);
    assert_int_equal(kiln_model_load(&back, in_scratch("m")), KILN_OK);
    for (int i = 0; keys[i]; i++) {
        assert_string_equal(kiln_model_key(back, i), keys[i]);
        assert_string_equal(kiln_model_text(back, keys[i]), kiln_model_text(model, keys[i]));
    }
    assert_null(kiln_model_key(back, 4));
    assert_null(kiln_model_text(back, "sha256"));
    static const char *const names[] = {"W", "b"};
    for (int i = 0; i < 2; i++) {
        kiln_matrix *A = NULL, *B = NULL;
        int64_t rows, cols;
        kiln_type type;
        unsigned char a[64] = {0}, b[64] = {0};
        assert_string_equal(kiln_model_tensor_info(back, i, &type, &rows, &cols), names[i]);
        assert_int_equal(type, i == 1 ? KILN_F32 : KILN_F64);
        assert_int_equal(kiln_model_tensor(&A, device, KILN_TYPE_DEFAULT, model, names[i]), KILN_OK);
        assert_int_equal(kiln_model_tensor(&B, device, KILN_TYPE_DEFAULT, back, names[i]), KILN_OK);
        assert_int_equal(kiln_matrix_rows(B), rows);
        assert_int_equal(kiln_matrix_cols(B), cols);
        assert_int_equal(kiln_matrix_get(a, A), KILN_OK);
        assert_int_equal(kiln_matrix_get(b, B), KILN_OK);
        assert_memory_equal(a, b, sizeof a);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
    kiln_matrix *single = NULL;
    float narrow[6];
    assert_int_equal(kiln_model_tensor(&single, device, KILN_F32, back, "W"), KILN_OK); /* in another type */
    assert_int_equal(kiln_matrix_type(single), KILN_F32);
    assert_true(kiln_matrix_rows(single) * kiln_matrix_cols(single) <= 6);
    assert_int_equal(kiln_matrix_get(narrow, single), KILN_OK);
    kiln_matrix_free(single);
    assert_null(kiln_model_tensor_info(back, 2, NULL, NULL, NULL));
    assert_int_equal(kiln_model_save(back, in_scratch("again")), KILN_OK);
    assert_same_bytes(in_scratch("m"), in_scratch("again"));
    kiln_model_free(back);
    kiln_model_free(model);
}

static void same_model_same_bytes(void **state) {
    (void)state;
    kiln_model *a = small_model(1), *b = small_model(7);
    assert_int_equal(kiln_model_set_text(b, "l2", "changed"), KILN_OK);
    assert_int_equal(kiln_model_set_text(b, "l2", "0.25"), KILN_OK);
    set_tensor(b, "W", KILN_F64, 3, 2, (double[]){1, 2, -3, 1e-310, 0.1, 1e300});
    assert_int_equal(kiln_model_save(a, in_scratch("a")), KILN_OK);
    assert_int_equal(kiln_model_save(b, in_scratch("b")), KILN_OK);
    assert_same_bytes(in_scratch("a"), in_scratch("b"));
    kiln_model_free(a);
    kiln_model_free(b);
}

static void wrong_use_is_refused(void **state) {
    (void)state;
    kiln_model *model = NULL;
    kiln_matrix *sparse = NULL, *A = NULL;
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    assert_int_equal(kiln_model_create(&model, "alchemy"), KILN_ERR_ARGUMENT);
    assert_null(model);
    assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_ERR_MODEL); /* no W */
    static const char *const bad_keys[] = {"",       "a\nb",   "\xff",      "\xc0\xaf",    "\xed\xa0\x80",
                                           "sha256", "format", "algorithm", "kiln_version"};
    for (size_t i = 0; i < sizeof bad_keys / sizeof *bad_keys; i++)
        assert_int_equal(kiln_model_set_text(model, bad_keys[i], "x"), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_model_set_text(model, name, "x"), KILN_ERR_ARGUMENT);
    name[255] = '\0';
    assert_int_equal(kiln_model_set_text(model, name, "x"), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "k", "\x80"), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_model_set_text(model, NULL, "x"), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_model_set_text(model, "k", NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_model_set_tensor(model, "W", NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_model_tensor(&A, NULL, KILN_F64, model, "W"), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 1, 1, (double[]){0.1}), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "__metadata__", A), KILN_ERR_ARGUMENT);
    kiln_matrix_free(A);
    A = NULL;
    assert_int_equal(kiln_matrix_csr(&sparse, device, KILN_F64, 1, 1, (int64_t[]){0, 0}, NULL, NULL),
                     KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "W", sparse), KILN_ERR_UNSUPPORTED);
    assert_int_equal(kiln_model_tensor(&A, device, KILN_F64, model, "W"), KILN_ERR_MODEL);
    set_tensor(model, "W", KILN_F64, 2, 1, (double[]){1, NAN});
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_ERR_MODEL);
    set_tensor(model, "W", KILN_F64, 2, 65537, NULL);
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_ERR_MODEL);
    set_tensor(model, "W", KILN_F64, 2, 1, NULL);
    set_tensor(model, "b", KILN_F64, 1, 2, NULL);
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_ERR_MODEL);
    assert_int_equal(scratch_files(false), 0);
    kiln_matrix_free(sparse);
    kiln_model_free(model);
}

/* A damaged file must fail, or (white space in the header) say exactly the same. */
static bool loads_as(const char *path, const char *original) {
    kiln_model *model = NULL;
    if (kiln_model_load(&model, path) != KILN_OK) {
        assert_null(model);
        assert_int_equal(kiln_last_error()->status, KILN_ERR_MODEL);
        return false;
    }
    assert_int_equal(kiln_model_save(model, in_scratch("resaved")), KILN_OK);
    assert_same_bytes(in_scratch("resaved"), original);
    kiln_model_free(model);
    return true;
}

static void every_damage_is_found(void **state) {
    (void)state;
    const char *good = in_scratch("good"), *bad = in_scratch("bad");
    char good_path[512], bad_path[512];
    snprintf(good_path, sizeof good_path, "%s", good);
    snprintf(bad_path, sizeof bad_path, "%s", bad);
    kiln_model *model = small_model(1);
    assert_int_equal(kiln_model_save(model, good_path), KILN_OK);
    kiln_model_free(model);
    size_t size;
    int accepted = 0;
    char *bytes = file_bytes(good_path, &size);
    size_t data = size - (6 * 8 + 2 * 4);
    for (size_t i = 0; i < size; i++) {
        char kept = bytes[i], flips[] = {0, (char)0xff, (char)(kept ^ 1), (char)(kept ^ 0x80)};
        for (int f = 0; f < 4; f++) {
            if (flips[f] == kept) continue;
            bytes[i] = flips[f];
            put_file(bad_path, bytes, size);
            bool loads = loads_as(bad_path, good_path);
            assert_true(!loads || i < data);
            accepted += loads;
        }
        bytes[i] = kept;
    }
    assert_true(accepted < 8);
    for (size_t cut = 0; cut < size; cut++) {
        put_file(bad_path, bytes, cut);
        assert_false(loads_as(bad_path, good_path));
    }
    bytes[size] = '\0';
    put_file(bad_path, bytes, size + 1);
    assert_false(loads_as(bad_path, good_path));
    free(bytes);
}

/* A header of our own behind the right length, with `data` bytes of values. */
static kiln_status load_header(const char *header, size_t data) {
    size_t length = strlen(header);
    char *bytes = calloc(1, 8 + length + data);
    for (int i = 0; i < 8; i++) bytes[i] = (char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    put_file(in_scratch("m"), bytes, 8 + length + data);
    free(bytes);
    kiln_model *model = NULL;
    kiln_status status = kiln_model_load(&model, in_scratch("m"));
    kiln_model_free(model);
    return status;
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define META "\"__metadata__\":{\"format\":\"kiln 1\",\"sha256\":\"" ZEROS "\",\"algorithm\":\"linreg\"}"
#define W(shape, offsets) "\"W\":{\"dtype\":\"F64\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void lying_headers_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *header, *says;
        size_t data;
    } cases[] = {
        {"{" META "," W("[1,1]", "[0,8]") "}", "checksum does not match", 8},
        {"{}", "metadata", 0},
        {"{\"__metadata__\":[]}", "metadata", 0},
        {"{\"__metadata__\":{\"format\":\"pt\"}}", "metadata \"sha256\"", 0},
        {"{\"__metadata__\":{\"format\":\"kiln 9\",\"sha256\":\"\"}}", "'kiln 9'", 0},
        {"{\"__metadata__\":{\"format\":\"kiln 1\",\"sha256\":\"\"}}", "checksum is damaged", 0},
        {"{\"__metadata__\":{\"format\":\"kiln 1\",\"format\":\"kiln 1\"}}", "duplicate", 0},
        {"{" META "," W("[1,1]", "[0,8]") "," W("[1,1]", "[8,16]") "}", "duplicate", 16},
        {"{" META "," W("[1,1]", "[0,8]") "}", "cut short", 7},
        {"{" META "," W("[1,1]", "[0,8]") "}", "added", 9},
        {"{" META "," W("[1,1]", "[8,16]") "}", "begins at 8", 16},
        {"{" META "," W("[1,1]", "[8,0]") "}", "do not fit", 8},
        {"{" META "," W("[1,1]", "[0,16]") "}", "do not fit", 16},
        {"{" META
         "," W("[1,1]", "[0,8]") ",\"a\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[4,8]}}",
         "begins at 4", 8},
        {"{" META "," W("[4294967296,2147483647]", "[0,8]") "}", "too large", 8},
        {"{" META "," W("[9223372036854775807,1]", "[0,8]") "}", "too large", 8},
        {"{" META "," W("[1,4294967296]", "[0,8]") "}", "too large", 8},
        {"{" META "," W("[99999999999999999999,1]", "[0,8]") "}", "not valid", 8},
        {"{" META "," W("[-1,1]", "[0,8]") "}", "shape [rows, cols]", 8},
        {"{" META "," W("[1.0,1]", "[0,8]") "}", "shape [rows, cols]", 8},
        {"{" META "," W("[1]", "[0,8]") "}", "shape [rows, cols]", 8},
        {"{" META "," W("[1,1,1]", "[0,8]") "}", "shape [rows, cols]", 8},
        {"{" META "," W("\"1\"", "[0,8]") "}", "shape [rows, cols]", 8},
        {"{" META ",\"W\":7}", "shape [rows, cols]", 0},
        {"{" META ",\"W\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[0,8]}}", "'I64'", 8},
        {"{" META ",\"W\":{\"dtype\":\"\\u001b\",\"shape\":[1,1],\"data_offsets\":[0,8]}}", "(unprintable)",
         8},
        {"{" META ",\"W\\n\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]}}", "not printable",
         8},
        {"{" META ",\"W\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8],\"x\":1}}", "needs dtype",
         8},
        {"{\"a\":[[[[", "nested", 0},
        {"{\"a\\\"", "not valid", 0},
        {"{\"\xff\":1}", "not valid", 0},
        {"{\"a\\u0000b\":{}}", "not valid", 0},
        {"{" META "}x", "not valid", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(load_header(cases[i].header, cases[i].data), KILN_ERR_MODEL);
        if (!strstr(kiln_last_error()->message, cases[i].says))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].header, kiln_last_error()->message, cases[i].says);
        assert_string_equal(kiln_last_error()->file, in_scratch("m"));
    }
}

static void crowded_header_is_refused_before_it_is_parsed(void **state) {
    (void)state;
    enum { ENTRIES = 100000 };
    char *header = malloc(3 * ENTRIES + 16);
    strcpy(header, "{\"a\":[");
    for (int i = 0; i < ENTRIES; i++) memcpy(header + 6 + 3 * i, "{},", 4);
    assert_int_equal(load_header(header, 0), KILN_ERR_MODEL);
    assert_non_null(strstr(kiln_last_error()->message, "too many entries"));
    free(header);
}

static void more_than_the_limits_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *begin, *item, *end, *says;
        int count;
    } cases[] = {
        {"{\"__metadata__\":{\"format\":\"kiln 1\",\"sha256\":\"" ZEROS "\"", ",\"k%d\":\"\"", "}}",
         "too many texts", 1025},
        {"{" META, ",\"t%d\":{\"dtype\":\"F64\",\"shape\":[0,0],\"data_offsets\":[0,0]}", "}",
         "more than 256", 257},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char *header = malloc(1 << 16), *at = header + sprintf(header, "%s", cases[c].begin);
        for (int i = 0; i < cases[c].count; i++) at += sprintf(at, cases[c].item, i);
        strcpy(at, cases[c].end);
        assert_int_equal(load_header(header, 0), KILN_ERR_MODEL);
        assert_non_null(strstr(kiln_last_error()->message, cases[c].says));
        free(header);
    }
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
    char name[32];
    for (int i = 0; i < 1022; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(kiln_model_set_text(model, name, "x"), KILN_OK);
    }
    assert_int_equal(kiln_model_set_text(model, "one more", "x"), KILN_ERR_LIMIT);
    for (int i = 0; i < 255; i++) {
        snprintf(name, sizeof name, "t%d", i);
        set_tensor(model, name, KILN_F64, 1, 1, NULL);
    }
    set_tensor(model, "W", KILN_F64, 1, 1, NULL);
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 1, 1, NULL), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "one more", A), KILN_ERR_LIMIT);
    kiln_matrix_free(A);
    assert_int_equal(kiln_model_save(model, in_scratch("full")), KILN_ERR_MODEL); /* nobody reads t0 */
    kiln_model_free(model);
    assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
    set_tensor(model, "W", KILN_F64, 1, 1, NULL);
    for (int i = 0; i < 1022; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(kiln_model_set_text(model, name, "x"), KILN_OK);
    }
    assert_int_equal(kiln_model_save(model, in_scratch("full")), KILN_OK); /* a full model can be read back */
    kiln_model_free(model);
    assert_int_equal(kiln_model_load(&model, in_scratch("full")), KILN_OK);
    kiln_model_free(model);
}

/* A header may be long, but not without end; what cannot be read back is not saved. */
static void header_length_is_limited(void **state) {
    (void)state;
    enum { LONG = 17 << 20 };
    kiln_model *model = small_model(1);
    char *text = malloc(LONG + 1);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    assert_int_equal(kiln_model_set_text(model, "schema", text), KILN_OK);
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_ERR_LIMIT);
    text[15 << 20] = '\0';
    assert_int_equal(kiln_model_set_text(model, "schema", text), KILN_OK);
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_OK);
    assert_true(first_weight(in_scratch("m")) == 1);
    free(text);
    kiln_model_free(model);
}

static void other_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"1 1:0.5 7:2\n-1 2:1\n", "is LIBSVM data, not a model (did you swap the arguments?)"},
        {"a,b,c\n1,2,3\n", "is CSV data"},
        {"%%MatrixMarket matrix coordinate real general\n", "is Matrix Market data"},
        {"\x93NUMPY\x01", "is npy data"},
        {"PK\x03\x04", "is npz data"},
        {"\x1f\x8b\x08", "is gzip data"},
        {"\x28\xb5\x2f\xfd", "is zstd data"},
        {"hello world, again", "is CSV data"},
        {"hello", "is text"},
        {"\x01\x02", "is not a model"},
        {"", "is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_model *model = NULL;
        put_file(in_scratch("ok.svm"), cases[i].text, strlen(cases[i].text));
        assert_int_equal(kiln_model_load(&model, in_scratch("ok.svm")), KILN_ERR_MODEL);
        assert_null(model);
        assert_non_null(strstr(kiln_last_error()->message, cases[i].says));
        assert_string_not_equal(kiln_last_error()->hint, "");
    }
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_load(&model, in_scratch("absent")), KILN_ERR_IO);
    assert_int_equal(kiln_last_error()->native_code, ENOENT);
    assert_int_equal(kiln_model_load(&model, scratch), KILN_ERR_IO);
}

/* Written by version 0.1.0; every later version reads it. */
static void golden_file_loads(void **state) {
    (void)state;
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_load(&model, KILN_TEST_DATA "/io/fixtures/linreg-0.1.0.kiln"), KILN_OK);
    assert_string_equal(kiln_model_text(model, "algorithm"), "linreg");
    assert_string_equal(kiln_model_text(model, "kiln_version"), "0.1.0");
    assert_string_equal(kiln_model_text(model, "l2"), "0.25");
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_OK);
    assert_same_bytes(in_scratch("m"), KILN_TEST_DATA "/io/fixtures/linreg-0.1.0.kiln");
    assert_true(first_weight(in_scratch("m")) == 1);
    kiln_model_free(model);
}

static void prediction_is_X_W_plus_b(void **state) {
    (void)state;
    static const double x[] = {1, 2, 3, -1, 0, 0.5}, w[] = {1, 2, 4, 8, 16, 32}, b[] = {0.25, -1};
    static const double with_b[] = {57.25, 113, 7.25, 13}, without_b[] = {57, 114, 7, 14};
    for (int intercept = 0; intercept <= 1; intercept++) {
        for (int sparse = 0; sparse <= 1; sparse++) {
            kiln_model *model = NULL;
            kiln_matrix *X = NULL, *P = NULL, *narrow = NULL, *refused = NULL;
            double p[4];
            assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
            set_tensor(model, "W", KILN_F64, 3, 2, w);
            if (intercept) set_tensor(model, "b", KILN_F64, 1, 2, b);
            if (sparse)
                assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, 2, 3, (int64_t[]){0, 3, 6},
                                                 (int32_t[]){0, 1, 2, 0, 1, 2}, x),
                                 KILN_OK);
            else
                assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, 2, 3, x), KILN_OK);
            assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
            assert_int_equal(kiln_matrix_get(p, P), KILN_OK);
            assert_memory_equal(p, intercept ? with_b : without_b, sizeof p);
            assert_int_equal(kiln_matrix_dense(&narrow, device, KILN_F64, 2, 2, x), KILN_OK);
            assert_int_equal(kiln_predict(&refused, model, narrow), KILN_ERR_MODEL);
            assert_non_null(strstr(kiln_last_error()->message, "trained on 3 columns, the data have 2"));
            assert_null(refused);
            kiln_matrix_free(narrow);
            kiln_matrix_free(P);
            kiln_matrix_free(X);
            kiln_model_free(model);
        }
    }
}

/* A model of the algorithm with the given tensors, all f64 and 1, 2, 3, ...; the first tensor without a name
 * ends them. */
struct shape {
    const char *name;
    int64_t rows, cols;
};
static kiln_model *model_of(const char *algorithm, const struct shape *tensors) {
    static double values[64];
    kiln_model *model = NULL;
    for (int i = 0; i < 64; i++) values[i] = i + 1;
    assert_int_equal(kiln_model_create(&model, algorithm), KILN_OK);
    for (; tensors->name; tensors++)
        set_tensor(model, tensors->name, KILN_F64, tensors->rows, tensors->cols, values);
    return model;
}

/* A tensor is refused that nobody would look at, that does not fit the rest, or that is missing. */
static void each_algorithm_checks_its_tensors(void **state) {
    (void)state;
    static const struct {
        const char *algorithm, *says; /* NULL: it can be saved */
        struct shape tensors[5];
        const char *key, *text;
    } cases[] = {
        {"linreg", NULL, {{"W", 3, 2}, {"b", 1, 2}}, NULL, NULL},
        {"linreg", "no tensor 'classes'", {{"W", 3, 1}, {"classes", 2, 1}}, NULL, NULL},
        {"linreg", "no tensor 'W2'", {{"W", 3, 1}, {"W2", 3, 1}}, NULL, NULL},
        {"linreg", "needs 2 columns as 'W' has", {{"W", 3, 2}, {"b", 1, 3}}, NULL, NULL},
        {"linreg", "needs 1 rows", {{"W", 3, 2}, {"b", 2, 2}}, NULL, NULL},
        {"logreg", "lacks the tensor 'classes'", {{"W", 3, 1}}, NULL, NULL},
        {"logreg", NULL, {{"W", 3, 1}, {"classes", 2, 1}}, "class_names", "[\"a\",\"b\"]"},
        {"logreg", "the 2 names", {{"W", 3, 1}, {"classes", 2, 1}}, "class_names", "[\"a\"]"},
        {"logreg", "the 2 names", {{"W", 3, 1}, {"classes", 2, 1}}, "class_names", "[\"a\",2]"},
        {"logreg", "the 2 names", {{"W", 3, 1}, {"classes", 2, 1}}, "class_names", "{}"},
        {"logreg", "does not suit 3 classes", {{"W", 3, 1}, {"classes", 3, 1}}, NULL, NULL},
        {"svm", NULL, {{"W", 3, 1}, {"parameters", 1, 2}}, NULL, NULL},
        {"svm", "as only a regression", {{"W", 3, 1}, {"parameters", 1, 2}, {"classes", 2, 1}}, NULL, NULL},
        {"glm", "does not name its family", {{"W", 3, 1}, {"parameters", 1, 2}}, NULL, NULL},
        {"glm", "no tensor 'classes'", {{"W", 3, 1}, {"parameters", 1, 2}, {"classes", 2, 1}}, NULL, NULL},
        {"glm", "lacks the tensor 'parameters'", {{"W", 3, 1}}, NULL, NULL},
        {"hits", NULL, {{"hubs", 2, 1}, {"authorities", 3, 1}}, "vertices", "[\"a\",\"b\",\"c\"]"},
        {"hits", NULL, {{"hubs", 2, 1}, {"authorities", 3, 1}}, NULL, NULL},
        {"hits", "the 2 names", {{"hubs", 2, 1}, {"authorities", 2, 1}}, "vertices", "[\"a\",\"b\",\"c\"]"},
        {"hits", "needs 1 columns", {{"hubs", 2, 2}, {"authorities", 2, 1}}, NULL, NULL},
        {"hits", "no tensor 'W'", {{"hubs", 2, 1}, {"authorities", 2, 1}, {"W", 2, 1}}, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_model *model = model_of(cases[i].algorithm, cases[i].tensors), *back = NULL;
        if (cases[i].key) assert_int_equal(kiln_model_set_text(model, cases[i].key, cases[i].text), KILN_OK);
        const kiln_status status = kiln_model_save(model, in_scratch("m"));
        if (status != (cases[i].says ? KILN_ERR_MODEL : KILN_OK))
            fail_msg("case %d: status %d: %s", (int)i, (int)status, kiln_last_error()->message);
        if (!cases[i].says) {
            assert_int_equal(kiln_model_load(&back, in_scratch("m")), KILN_OK);
        } else if (!strstr(kiln_last_error()->message, cases[i].says)) {
            fail_msg("case %d: \"%s\" lacks \"%s\"", (int)i, kiln_last_error()->message, cases[i].says);
        }
        kiln_model_free(back);
        kiln_model_free(model);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, scratch_empty)
    const struct CMUnitTest tests[] = {
        TEST(loading_gives_what_was_saved),
        TEST(same_model_same_bytes),
        TEST(wrong_use_is_refused),
        TEST(every_damage_is_found),
        TEST(lying_headers_are_refused),
        TEST(crowded_header_is_refused_before_it_is_parsed),
        TEST(more_than_the_limits_is_refused),
        TEST(header_length_is_limited),
        TEST(other_files_are_named),
        TEST(golden_file_loads),
        TEST(each_algorithm_checks_its_tensors),
        TEST(prediction_is_X_W_plus_b),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
