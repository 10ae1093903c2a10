/* The .npy reader: fixtures written by NumPy, arrays made here, and headers that lie. */
#define _DEFAULT_SOURCE
#include <zlib.h>

#include "io/reading.h"

#include <math.h>

#include "core/threads.h"
#include "io/part_cut.h"

struct bytes {
    char data[1024];
    size_t size;
};

/* A version 1.0 file: the header's text, padded as NumPy does, and data. */
static struct bytes npy(const char *header, const void *data, size_t size) {
    struct bytes file = {.size = 0};
    size_t length = strlen(header), padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    memcpy(file.data, "\x93NUMPY\x01", 7);
    file.data[8] = (char)(padded & 255);
    file.data[9] = (char)(padded >> 8);
    memset(file.data + 10, ' ', padded);
    memcpy(file.data + 10, header, length);
    file.data[9 + padded] = '\n';
    if (size > 0) memcpy(file.data + 10 + padded, data, size);
    file.size = 10 + padded + size;
    return file;
}

static struct reading read_npy(const struct bytes *file, const kiln_read_options *options) {
    return read_bytes(ki_read_npy, file->data, file->size, options);
}

static struct bytes fixture(const char *name) {
    struct bytes file = {.size = 0};
    char path[512];
    snprintf(path, sizeof path, "%s/io/fixtures/%s", KILN_TEST_DATA, name);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    file.size = fread(file.data, 1, sizeof file.data, from);
    fclose(from);
    assert_true(file.size > 0 && file.size < sizeof file.data);
    return file;
}

static void numpy_files(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct bytes file = fixture("matrix_f8.npy");
    struct reading r = read_npy(&file, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.format == KILN_DENSE && r.table.rows == 2 && r.table.cols == 3 && r.table.nnz == 6);
    assert_reals(r.table.values, (double[]){1.5, -2, 3e300, 0, 0.1, -0.0}, 6);
    ki_table_clear(&r.table);
    file = fixture("matrix_f4_fortran.npy");
    r = read_npy(&file, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.values, (double[]){0.25, 1.25, 2.25, 3.25, 4.25, 5.25}, 6);
    ki_table_clear(&r.table);
    file = fixture("vector_i8.npy");
    r = read_npy(&file, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 3 && r.table.cols == 1);
    assert_reals(r.table.values, (double[]){-1, 9007199254740992.0, 7}, 3);
    ki_table_clear(&r.table);
}

static void element_types(void **state) {
    (void)state;
    static const struct {
        const char *descr;
        char data[17];
        int size;
        double want[2];
    } types[] = {
        {"|i1", "\xFF\x7F", 1, {-1, 127}},
        {"|u1", "\xFF\x7F", 1, {255, 127}},
        {"|b1", "\x00\x01", 1, {0, 1}},
        {"<i2", "\xFE\xFF\x00\x01", 2, {-2, 256}},
        {"<u2", "\xFE\xFF\x00\x01", 2, {65534, 256}},
        {">i2", "\xFF\xFE\x01\x00", 2, {-2, 256}},
        {"<i4", "\xFD\xFF\xFF\xFF\x01\x00\x00\x00", 4, {-3, 1}},
        {"<u4", "\xFF\xFF\xFF\xFF\x01\x00\x00\x00", 4, {4294967295.0, 1}},
        {">u4", "\x00\x00\x00\x05\x01\x00\x00\x00", 4, {5, 16777216}},
        {"=i8", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02\0\0\0\0\0\0\0", 8, {-1, 2}},
        {"<u8", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02\0\0\0\0\0\0\0", 8, {18446744073709551616.0, 2}},
        {"<f2", "\x00\x3E\xFF\xFB", 2, {1.5, -65504}},
        {">f2", "\x80\x01\x04\x00", 2, {-0x1p-24, 0x1p-14}},
        {"<f2", "\xFF\x03\x55\x35", 2, {1023 * 0x1p-24, 0x1.554p-2}},
        {"<f4", "\x00\x00\xC0\x3F\x00\x00\x00\xC0", 4, {1.5, -2}},
        {">f4", "\x3F\xC0\x00\x00\xC0\x00\x00\x00", 4, {1.5, -2}},
        {">f8", "\x3F\xF8\0\0\0\0\0\0\xC0\0\0\0\0\0\0\0", 8, {1.5, -2}},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1, 2), }",
                 types[i].descr);
        struct bytes file = npy(header, types[i].data, 2 * (size_t)types[i].size);
        kiln_read_options options = reading_options();
        struct reading r = read_npy(&file, &options);
        if (r.status != KILN_OK) fail_msg("%s: %s", types[i].descr, kiln_last_error()->message);
        assert_true(r.table.rows == 1 && r.table.cols == 2);
        assert_reals(r.table.values, types[i].want, 2);
        ki_table_clear(&r.table);
        options.type = KILN_F32;
        r = read_npy(&file, &options);
        assert_int_equal(r.status, KILN_OK);
        assert_true(((float *)r.table.values)[0] == (float)types[i].want[0]);
        ki_table_clear(&r.table);
    }
}

static void header_spellings(void **state) {
    (void)state;
    static const char *const headers[] = {
        "{'shape': (2,), 'fortran_order': True, 'descr': '|u1'}",
        "{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":(2,1)}",
        " { 'descr' : '|u1' , 'fortran_order' : False , 'shape' : ( 2L , 1L , ) , } ",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct bytes file = npy(headers[i], "\5\6", 2);
        kiln_read_options options = reading_options();
        struct reading r = read_npy(&file, &options);
        if (r.status != KILN_OK) fail_msg("%s: %s", headers[i], kiln_last_error()->message);
        assert_true(r.table.rows == 2 && r.table.cols == 1);
        assert_reals(r.table.values, (double[]){5, 6}, 2);
        ki_table_clear(&r.table);
    }
    /* versions 2 and 3 count the header in four bytes */
    for (char version = 2; version < 4; version++) {
        static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}\n";
        struct bytes file = {.size = 12 + sizeof header - 1 + 2};
        memcpy(file.data, "\x93NUMPY", 6);
        file.data[6] = version;
        file.data[8] = sizeof header - 1;
        memcpy(file.data + 12, header, sizeof header - 1);
        memcpy(file.data + 12 + sizeof header - 1, "\5\6", 2);
        kiln_read_options options = reading_options();
        struct reading r = read_npy(&file, &options);
        assert_int_equal(r.status, KILN_OK);
        assert_reals(r.table.values, (double[]){5, 6}, 2);
        ki_table_clear(&r.table);
    }
}

static void empty_arrays(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct bytes file = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3)}", "", 0);
    struct reading r = read_npy(&file, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 0 && r.table.cols == 3 && r.table.values);
    ki_table_clear(&r.table);
    file = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (5, 0)}", "", 0);
    assert_int_equal(read_npy(&file, &options).status, KILN_ERR_DATA);
}

#define HEAD(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape "}"

static void lying_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        kiln_status status;
        const char *message;
    } files[] = {
        {HEAD("|O", "(1,)"), KILN_ERR_UNSUPPORTED, "elements of type '|O'"},
        {HEAD("|V8", "(1,)"), KILN_ERR_UNSUPPORTED, "'|V8'"},
        {HEAD("<f3", "(4,)"), KILN_ERR_UNSUPPORTED, "'<f3'"},
        {HEAD("<f16", "(1,)"), KILN_ERR_UNSUPPORTED, "'<f16'"},
        {HEAD("<c8", "(1,)"), KILN_ERR_UNSUPPORTED, "'<c8'"},
        {HEAD("<M8[ns]", "(1,)"), KILN_ERR_UNSUPPORTED, "'<M8[ns]'"},
        {HEAD("<i3", "(1,)"), KILN_ERR_UNSUPPORTED, "'<i3'"},
        {HEAD("", "(1,)"), KILN_ERR_UNSUPPORTED, "''"},
        {HEAD("<", "(1,)"), KILN_ERR_UNSUPPORTED, "'<'"},
        {HEAD("f", "(1,)"), KILN_ERR_UNSUPPORTED, "'f'"},
        {HEAD("<U2", "(1,)"), KILN_ERR_UNSUPPORTED, "an array of text"},
        {HEAD("|S8", "(1,)"), KILN_ERR_UNSUPPORTED, "an array of text"},
        {HEAD("<f8", "()"), KILN_ERR_UNSUPPORTED, "a single number"},
        {HEAD("<f8", "(1, 1, 1)"), KILN_ERR_UNSUPPORTED, "an array of 3 dimensions"},
        {HEAD("<f8", "(1)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "1"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(-1,)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(+1,)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(1e0,)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(0x1,)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(1 1)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(,)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(9223372036854775808,)"), KILN_ERR_PARSE, "'shape' is not a tuple"},
        {HEAD("<f8", "(9223372036854775807, 2)"), KILN_ERR_PARSE, "overflows"},
        {HEAD("<f8", "(4294967296, 4294967296)"), KILN_ERR_PARSE, "overflows"},
        {HEAD("<f8", "(1152921504606846976,)"), KILN_ERR_PARSE, "overflows"},
        {HEAD("<f8", "(1, 2147483648)"), KILN_ERR_LIMIT, "2^31 columns"},
        {HEAD("<f8", "(1099511627776, 1000)"), KILN_ERR_PARSE, "the file ends early"},
        {HEAD("<f8", "(2,)"), KILN_ERR_PARSE, "the file ends early"},
        {HEAD("|u1", "(7,)"), KILN_ERR_PARSE, "bytes behind the array"},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", KILN_ERR_PARSE,
         "structured arrays"},
        {"{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", KILN_ERR_PARSE, "neither True nor False"},
        {"{'descr': '<f8', 'fortran_order': False}", KILN_ERR_PARSE, "it lacks"},
        {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", KILN_ERR_PARSE,
         "two keys"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1}", KILN_ERR_PARSE, "an unknown key"},
        {"{'descr': '<f8' 'fortran_order': False, 'shape': (1,)}", KILN_ERR_PARSE, "a comma or a brace"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)", KILN_ERR_PARSE, "malformed"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} + 1", KILN_ERR_PARSE, "text behind"},
        {"__import__('os').system('x')", KILN_ERR_PARSE, "not a dictionary"},
        {"{'descr': '<f8\\x00', 'fortran_order': False, 'shape': (1,)}", KILN_ERR_PARSE, "not a string"},
        {"", KILN_ERR_PARSE, "not a dictionary"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct bytes file = npy(files[i].header, "\0\0\0\0\0\0\0\0", 8);
        kiln_read_options options = reading_options();
        struct reading r = read_npy(&file, &options);
        const kiln_error *error = kiln_last_error();
        if (r.status != files[i].status || !strstr(error->message, files[i].message))
            fail_msg("%s: %s: %s", files[i].header, kiln_status_name(r.status), error->message);
        assert_string_equal(error->file, r.path);
    }
}

static void not_npy(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        kiln_status status;
    } files[] = {
        {"", 0, KILN_ERR_PARSE},
        {"1,2\n", 4, KILN_ERR_PARSE},
        {"\x93NUMPY", 6, KILN_ERR_PARSE},
        {"\x93NUMPY\x01\0\xFF\xFF", 10, KILN_ERR_PARSE},
        {"\x93NUMPY\x00\0\x08\0{      }", 18, KILN_ERR_UNSUPPORTED},
        {"\x93NUMPY\x04\0\x08\0\0\0{      }", 20, KILN_ERR_UNSUPPORTED},
        {"\x93NUMPY\x02\0\xFF\xFF\xFF\xFF{", 13, KILN_ERR_PARSE},
    };
    kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(read_bytes(ki_read_npy, files[i].bytes, files[i].size, &options).status,
                         files[i].status);
}

static void nonfinite(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    double values[6] = {1, 2, 3, 4, (double)NAN, (double)INFINITY};
    struct bytes file = npy(HEAD("<f8", "(2, 3)"), values, sizeof values);
    struct reading r = read_npy(&file, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "row 2, column 2"));
    assert_int_equal(kiln_last_error()->offset, (int64_t)file.size - 16);
    file = npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3)}", values, sizeof values);
    assert_int_equal(read_npy(&file, &options).status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "row 1, column 3"));
    const uint16_t halves[2] = {0x3C00, 0xFC00}; /* 1, -infinity */
    struct bytes half = npy(HEAD("<f2", "(2, 1)"), halves, sizeof halves);
    assert_int_equal(read_npy(&half, &options).status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "value -inf at row 2, column 1"));
    options.allow_nonfinite = 1;
    r = read_npy(&file, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(isnan(((double *)r.table.values)[2]) && isinf(((double *)r.table.values)[5]));
    ki_table_clear(&r.table);
    options.allow_nonfinite = 0;
    options.type = KILN_F32; /* 1e39 is finite in f64 only */
    values[4] = 1e39;
    file = npy(HEAD("<f8", "(2, 3)"), values, sizeof values);
    assert_int_equal(read_npy(&file, &options).status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "value 1e+39 at row 2, column 2"));
}

/* More than one piece, and both orders. */
static void large_arrays(void **state) {
    (void)state;
    enum { ROWS = 3001, COLS = 401 };
    size_t bytes = sizeof(float) * ROWS * COLS;
    char *text = malloc(128 + bytes);
    for (int way = 0; way < 4; way++) {
        const bool fortran = way % 2;
        memset(text, ' ', 128);
        memcpy(text, "\x93NUMPY\x01\0\x76\0", 10);
        int length = sprintf(text + 10, "{'descr': '<f4', 'fortran_order': %s, 'shape': (%d, %d)}",
                             fortran ? "True" : "False", ROWS, COLS);
        text[10 + length] = ' ';
        float *values = (float *)(void *)(text + 128);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLS; j++) values[fortran ? j * ROWS + i : i * COLS + j] = (float)(i * 7 + j);
        kiln_read_options options = reading_options();
        options.type = way < 2 ? KILN_F64 : KILN_F32; /* as they are, and converted */
        struct reading r = read_bytes(ki_read_npy, text, 128 + bytes, &options);
        assert_int_equal(r.status, KILN_OK);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLS; j++)
                assert_true((way < 2 ? ((double *)r.table.values)[i * COLS + j]
                                     : (double)((float *)r.table.values)[i * COLS + j]) == i * 7 + j);
        ki_table_clear(&r.table);
    }
    free(text);
}

/* No prefix of a file is a file; a changed byte gives an error or numbers. */
static void torn_files(void **state) {
    (void)state;
    static const char *const names[] = {"matrix_f8.npy", "matrix_f4_fortran.npy", "vector_i8.npy"};
    kiln_read_options options = reading_options();
    for (int n = 0; n < 3; n++) {
        struct bytes file = fixture(names[n]);
        for (size_t i = 0; i < file.size; i++) {
            struct bytes torn = file;
            torn.size = i;
            struct reading r = read_npy(&torn, &options);
            assert_int_equal(r.status, KILN_ERR_PARSE);
        }
        static const unsigned char flips[] = {0xFF, 0x01, 0x80};
        for (size_t i = 0; i < 4 * file.size; i++) {
            struct bytes changed = file;
            char *byte = &changed.data[i / 4];
            *byte = i % 4 == 3 ? 0 : (char)(*byte ^ flips[i % 4]);
            struct reading r = read_npy(&changed, &options);
            assert_true(r.status == KILN_OK || kiln_last_error()->status == r.status);
            if (r.status == KILN_OK) assert_true(r.table.rows * r.table.cols <= 24);
            ki_table_clear(&r.table);
        }
    }
}

static void memory_runs_out(void **state) {
    (void)state;
    static const char *const names[] = {"matrix_f8.npy", "matrix_f4_fortran.npy", "vector_i8.npy"};
    kiln_read_options options = reading_options();
    for (int n = 0; n < 3; n++) {
        struct bytes file = fixture(names[n]);
        assert_survives_shortage(ki_read_npy, file.data, file.size, &options);
    }
}

/* The part that `read_part` reads. */
static struct ki_part part;

static kiln_status read_part(struct ki_table *table, struct ki_input *input,
                             const kiln_read_options *options) {
    return ki_read_npy_part(table, input, options, part);
}

/* The same bytes as gzip, which are come to in order. */
static struct bytes packed(const struct bytes *file) {
    struct bytes made = {.size = 0};
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)file->data,
                       .avail_in = (uInt)file->size,
                       .next_out = (Bytef *)made.data,
                       .avail_out = sizeof made.data};
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    made.size = stream.total_out;
    deflateEnd(&stream);
    return made;
}

static void expect_part(kiln_status status, struct bytes file, bool stream, const double *values) {
    const kiln_read_options options = reading_options();
    if (stream) file = packed(&file);
    struct reading r = read_bytes(read_part, file.data, file.size, &options);
    assert_int_equal(r.status, status);
    if (status == KILN_OK) {
        assert_true(r.table.cols == 2 && r.table.nnz == 2 * r.table.rows);
        assert_reals(r.table.values, values, r.table.nnz);
        ki_table_clear(&r.table);
        assert_survives_shortage(read_part, file.data, file.size, &options);
    }
    ki_table_clear(&r.table);
}

/* Rows of a file, whose length each part knows; and of a stream, one part after the other, of which the last
 * one sees how it ends. */
static void parts(void **state) {
    static const char whole[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }",
                      turned[] = "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }";
    const double values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    (void)state;
    for (int stream = 0; stream < 2; stream++)
        for (part.count = 1; part.count <= 5; part.count++)
            for (part.number = 0; part.number < part.count; part.number++) {
                const bool last = part.number + 1 == part.count;
                const int64_t first = ki_part_begin(3, part.number, part.count),
                              end = ki_part_begin(3, part.number + 1, part.count);
                const double *own = values + 2 * first;
                expect_part(KILN_OK, npy(whole, values, 6 * sizeof *values), stream, own);
                expect_part(last || !stream ? KILN_ERR_PARSE : KILN_OK, npy(whole, values, sizeof values),
                            stream, own);
                expect_part(end > 0 || !stream ? KILN_ERR_PARSE : KILN_OK, npy(whole, values, sizeof *values),
                            stream, own); /* of the first row */
                expect_part(KILN_ERR_UNSUPPORTED, npy(turned, values, 6 * sizeof *values), stream, own);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_files),
        cmocka_unit_test(element_types),
        cmocka_unit_test(header_spellings),
        cmocka_unit_test(empty_arrays),
        cmocka_unit_test(lying_headers),
        cmocka_unit_test(not_npy),
        cmocka_unit_test(nonfinite),
        cmocka_unit_test(large_arrays),
        cmocka_unit_test(torn_files),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
