/* Tables in memory: every type of number and text, missing values, slices and batches become what a CSV
 * file with the same values becomes; what is broken or of another type is refused, and everything is
 * released. Arrays of other libraries: python/tests/test_arrow.py. */
#define _DEFAULT_SOURCE
#include "io/arrow_stream.h"
#include "io/reading.h"
#include "faults/brutal.h"

#include <math.h>

#define FIXED(name, format, ...)                                                                             \
    { name, format, NULL, {NULL, __VA_ARGS__}, {NULL}, 2, 0, 4, 0, 0 }

static kiln_read_options options_for(const char *target) {
    kiln_read_options options = {.size = sizeof options, .target = target, .threads = 2};
    return options;
}

static kiln_status read_stream(kiln_data **data, struct arrow_stream *s, const kiln_read_options *options) {
    kiln_device *device = NULL;
    *data = NULL;
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    const kiln_status status = kiln_data_from_arrow(data, device, &s->stream, options);
    assert_int_equal(s->alive, 0);
    assert_null(s->stream.release);
    if (status != KILN_OK) {
        assert_null(*data);
        kiln_device_close(device);
    }
    return status;
}

static void free_data(kiln_data *data) {
    kiln_device *device = kiln_matrix_device(kiln_data_X(data));
    kiln_data_free(data);
    kiln_device_close(device);
}

/* X as doubles, row by row; the caller frees them. */
static double *dense(const kiln_data *data) {
    const kiln_matrix *X = kiln_data_X(data);
    const int64_t rows = kiln_matrix_rows(X), cols = kiln_matrix_cols(X), nnz = kiln_matrix_nnz(X);
    double *values = calloc((size_t)(rows * cols) + 1, sizeof *values);
    assert_non_null(values);
    if (kiln_matrix_format(X) == KILN_DENSE) {
        assert_int_equal(kiln_matrix_get(values, X), KILN_OK);
        return values;
    }
    int64_t *start = malloc((size_t)(rows + 1) * sizeof *start);
    int32_t *col = malloc((size_t)nnz * sizeof *col + 1);
    double *entries = malloc((size_t)nnz * sizeof *entries + 1);
    assert_true(start && col && entries);
    assert_int_equal(kiln_matrix_get_csr(start, col, entries, X), KILN_OK);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++) values[i * cols + col[e]] = entries[e];
    free(start);
    free(col);
    free(entries);
    return values;
}

static void numbers_of_all_widths(void **state) {
    (void)state;
    const unsigned char bits[] = {0x0A}; /* 0 1 0 1 */
    const int8_t i8[] = {-128, 0, 1, 127};
    const uint8_t u8[] = {255, 0, 1, 2};
    const int16_t i16[] = {-32768, 0, 1, 2};
    const uint32_t u32[] = {4294967295u, 0, 1, 2};
    const int64_t i64[] = {-9007199254740992, 0, 1, 2};
    const uint64_t u64[] = {18446744073709551615u, 0, 1, 2};
    const uint16_t half[] = {0x3C00, 0xC000, 0x0001, 0x7BFF}; /* 1, -2, 2^-24, 65504 */
    const float f32[] = {0.1F, 0, 1, -3e38F};
    const struct arrow_column columns[] = {FIXED("b", "b", bits), FIXED("c", "c", i8),  FIXED("C", "C", u8),
                                           FIXED("s", "s", i16),  FIXED("I", "I", u32), FIXED("l", "l", i64),
                                           FIXED("L", "L", u64),  FIXED("e", "e", half)};
    const struct arrow_column single[] = {FIXED("f", "f", f32)};
    const double want[] = {0,
                           -128,
                           255,
                           -32768,
                           4294967295,
                           -9007199254740992,
                           18446744073709551615.0,
                           1,
                           1,
                           0,
                           0,
                           0,
                           0,
                           0,
                           0,
                           -2,
                           0,
                           1,
                           1,
                           1,
                           1,
                           1,
                           1,
                           0x1p-24,
                           1,
                           127,
                           2,
                           2,
                           2,
                           2,
                           2,
                           65504};
    const kiln_read_options options = options_for(NULL);
    struct arrow_stream s = arrow_stream_of(columns, 8, 4, 1);
    kiln_data *data;
    assert_int_equal(read_stream(&data, &s, &options), KILN_OK);
    assert_int_equal(kiln_matrix_format(kiln_data_X(data)), KILN_DENSE);
    double *got = dense(data);
    for (int i = 0; i < 32; i++) assert_true(got[i] == want[i]);
    assert_string_equal(kiln_data_feature_name(data, 6), "L");
    free(got);
    free_data(data);
    s = arrow_stream_of(single, 1, 4, 1);
    assert_int_equal(read_stream(&data, &s, &options), KILN_OK);
    got = dense(data);
    for (int i = 0; i < 4; i++) assert_true(got[i] == (double)f32[i]);
    free(got);
    free_data(data);
}

/* Text of three layouts and a dictionary, with a missing value in the second row of each; a slice, two
 * batches. */
static void texts_are_levels(void **state) {
    (void)state;
    const unsigned char valid[] = {0x1A}; /* elements 1, 3 and 4 */
    const int32_t offsets[] = {0, 3, 4, 4, 6, 6};
    const int64_t long_offsets[] = {0, 3, 4, 4, 6, 6};
    static const char bytes[] = "???ayz", far[] = "....longer than twelve";
    struct {
        int32_t size;
        union {
            char text[12];
            struct {
                char prefix[4];
                int32_t buffer, at;
            } far;
        } of;
    } views[5] = {{.size = 0}, {1, {"a"}}, {.size = 0}, {18, {.far = {"long", 0, 4}}}, {0, {""}}};
    const int64_t sizes[] = {sizeof far - 1};
    const int8_t indices[] = {7, 1, 7, 0, 2};
    const int32_t dictionary_offsets[] = {0, 2, 3, 3};
    const double numbers[] = {9, 1, 2, 3, 4};
    const struct arrow_column columns[] = {
        {"u", "u", NULL, {valid, offsets, bytes}, {NULL}, 3, 0, 5, 0, 0},
        {"U", "U", NULL, {valid, long_offsets, bytes}, {NULL}, 3, 0, 5, 0, 0},
        {"vu", "vu", NULL, {valid, views, far, sizes}, {NULL}, 4, 0, 5, 0, 0},
        {"d", "c", "u", {valid, indices}, {NULL, dictionary_offsets, "yza"}, 2, 3, 5, 0, 3},
        {"x", "g", NULL, {NULL, numbers}, {NULL}, 2, 0, 5, 0, 0}};
    static const char *const names[] = {
        "u=", "u=a", "u=yz", "U=", "U=a", "U=yz", "vu=", "vu=a", "vu=longer than twelve",
        "d=", "d=a", "d=yz", "x"};
    const double want[] = {0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, /* the slice begins at element 1 */
                           1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 2, /* missing */
                           0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 3,
                           1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 4}; /* an empty text is missing, too */
    const kiln_read_options options = options_for(NULL);
    struct arrow_stream s = arrow_stream_of(columns, 5, 4, 2);
    s.offset = 1;
    kiln_data *data;
    assert_int_equal(read_stream(&data, &s, &options), KILN_OK);
    assert_int_equal(kiln_matrix_rows(kiln_data_X(data)), 8);
    assert_int_equal(kiln_matrix_cols(kiln_data_X(data)), 13);
    for (int j = 0; j < 13; j++) assert_string_equal(kiln_data_feature_name(data, j), names[j]);
    double *got = dense(data);
    for (int i = 0; i < 104; i++) assert_true(got[i] == want[i % 52]);
    free(got);
    free_data(data);
}

/* Classes, weights and groups by name; a code of 64 bits stays exact; columns of refused types do no harm
 * where nobody uses them. */
static void roles_and_classes(void **state) {
    (void)state;
    const int64_t codes[] = {9007199254740993, 9007199254740992, 9007199254740993, 5};
    const double weights[] = {1, 2, 0, 4}, x[] = {1, NAN, 3, 4};
    const int16_t groups[] = {7, 7, -1, 7};
    const struct arrow_column columns[] = {FIXED("y", "l", codes), FIXED("s", "g", weights),
                                           FIXED("x", "g", x), FIXED("g", "s", groups),
                                           FIXED("when", "tss:", codes)};
    kiln_read_options options = options_for("y");
    options.text_targets = KILN_TARGETS_TEXT;
    options.weights = "s";
    options.groups = "g";
    options.ignore = "when";
    options.missing = KILN_MISSING_MEAN;
    struct arrow_stream s = arrow_stream_of(columns, 5, 4, 1);
    kiln_data *data;
    assert_int_equal(read_stream(&data, &s, &options), KILN_OK);
    const double classes[] = {2, 1, 2, 0}, filled[] = {1, 8.0 / 3, 3, 4};
    double y[4], w[4], got[4];
    assert_int_equal(kiln_matrix_get(y, kiln_data_y(data)), KILN_OK);
    assert_int_equal(kiln_matrix_get(w, kiln_data_weights(data)), KILN_OK);
    assert_int_equal(kiln_matrix_get(got, kiln_data_X(data)), KILN_OK);
    assert_string_equal(kiln_data_class_name(data, 0, 2), "9007199254740993");
    for (int i = 0; i < 4; i++) {
        assert_true(y[i] == classes[i]);
        assert_true(w[i] == weights[i]);
        assert_true(got[i] == filled[i]);
        assert_int_equal(kiln_data_groups(data)[i], i == 2);
    }
    free_data(data);
    options.ignore = NULL;
    s = arrow_stream_of(columns, 5, 4, 1);
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->message, "column 'when'"));
    assert_non_null(strstr(kiln_last_error()->hint, "days"));
}

/* An error says which row it means, whatever batch that is in. */
static void errors_name_the_row(void **state) {
    (void)state;
    const double x[] = {1, 2, INFINITY, 4}, y[] = {1, 2, 3, 4};
    const unsigned char valid[] = {0x07};
    const struct arrow_column infinite[] = {FIXED("x", "g", x), FIXED("y", "g", y)};
    struct arrow_column gap[] = {FIXED("x", "g", y), FIXED("y", "g", y)};
    gap[0].buffers[0] = valid;
    const kiln_read_options options = options_for("y");
    struct arrow_stream s = arrow_stream_of(infinite, 2, 4, 2);
    kiln_data *data;
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "value 'inf' in column 'x'"));
    assert_int_equal(kiln_last_error()->line, 3);
    s = arrow_stream_of(gap, 2, 4, 2);
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_PARSE);
    assert_int_equal(kiln_last_error()->line, 4);
    s = arrow_stream_of(infinite + 1, 1, 4, 1);
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "no column besides the target"));
}

static void broken_arrays_are_refused(void **state) {
    (void)state;
    const int32_t back[] = {0, 3, 1, 4, 4}, beyond[] = {0, 1, 9, 9, 4}, below[] = {-1, 1, 2, 3, 4};
    const int8_t high[] = {0, 1, 2, 3}, low[] = {0, 1, -1, 0};
    const int32_t view[] = {13, 0, 0, 0, 13, 0, 1, 0, -1, 0, 0, 0, 13, 0, 0, -1};
    const int64_t view_sizes[] = {12};
    const double x[] = {1, 2, 3, 4};
    const struct arrow_column broken[] = {
        {"x", "u", NULL, {NULL, back, "abcd"}, {NULL}, 3, 0, 4, 0, 0},
        {"x", "u", NULL, {NULL, beyond, "abcd"}, {NULL}, 3, 0, 4, 0, 0},
        {"x", "u", NULL, {NULL, below, "abcd"}, {NULL}, 3, 0, 4, 0, 0},
        {"x", "u", NULL, {NULL, back, NULL}, {NULL}, 3, 0, 4, 0, 0},
        {"x", "c", "u", {NULL, high}, {NULL, (const int32_t[]){0, 1, 1, 2}, "ab"}, 2, 3, 4, 0, 3},
        {"x", "c", "u", {NULL, low}, {NULL, (const int32_t[]){0, 1, 1, 2}, "ab"}, 2, 3, 4, 0, 3},
        {"x", "vu", NULL, {NULL, view, "twelve bytes", view_sizes}, {NULL}, 4, 0, 1, 0, 0},
        {"x", "vu", NULL, {NULL, view + 4, "twelve bytes", view_sizes}, {NULL}, 4, 0, 1, 0, 0},
        {"x", "vu", NULL, {NULL, view + 8, "twelve bytes", view_sizes}, {NULL}, 4, 0, 1, 0, 0},
        {"x", "vu", NULL, {NULL, view + 12, "twelve bytes", view_sizes}, {NULL}, 4, 0, 1, 0, 0},
        {"x", "vu", NULL, {NULL, view, "twelve bytes", NULL}, {NULL}, 4, 0, 1, 0, 0},
        {"x", "g", NULL, {NULL, x}, {NULL}, 2, 0, 3, 0, 0},    /* shorter than the table */
        {"x", "g", NULL, {NULL, x}, {NULL}, 1, 0, 4, 0, 0},    /* no buffer of values */
        {"x", "g", NULL, {NULL, NULL}, {NULL}, 2, 0, 4, 0, 0}, /* or none there */
        {"x", "g", NULL, {NULL, x}, {NULL}, 2, 0, 4, -1, 0},   /* a negative offset */
        {"x", "g", NULL, {NULL, x}, {NULL}, 2, 0, INT64_MAX, INT64_MAX, 0},
    };
    const kiln_read_options options = options_for(NULL);
    kiln_data *data;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct arrow_stream s = arrow_stream_of(&broken[i], 1, ki_min(broken[i].length, 4), 1);
        if (i == 11) s.rows = 4;
        if (i == 15) s.offset = 1;
        const kiln_status status = read_stream(&data, &s, &options);
        if (status != KILN_ERR_DATA) print_error("case %zu: %d\n", i, (int)status);
        assert_int_equal(status, KILN_ERR_DATA);
        assert_non_null(strstr(kiln_last_error()->message, "column 'x'"));
    }
}

static void streams_that_fail(void **state) {
    (void)state;
    const double x[] = {1, 2, 3, 4};
    const struct arrow_column column = FIXED("x", "g", x);
    const struct arrow_column twice[] = {FIXED("x", "g", x), FIXED("x", "g", x)};
    kiln_read_options options = options_for(NULL);
    kiln_data *data;
    for (int call = 0; call < 4; call++) {
        struct arrow_stream s = arrow_stream_of(&column, 1, 4, 3);
        s.fail_at = call;
        assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_IO);
        assert_non_null(strstr(kiln_last_error()->message, "the disk is gone"));
    }
    struct arrow_stream s = arrow_stream_of(&column, 1, 4, 1);
    s.format = "g";
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_ARGUMENT);
    s = arrow_stream_of(twice, 2, 4, 1);
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_PARSE);
    s = arrow_stream_of(&column, 0, 4, 1);
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_LIMIT);
    s = arrow_stream_of(&column, 1, 4, 0); /* a table without rows */
    const kiln_status empty = read_stream(&data, &s, &options);
    if (empty == KILN_OK) {
        assert_int_equal(kiln_matrix_rows(kiln_data_X(data)), 0);
        free_data(data);
    }
    options.target_file = "y.npy";
    s = arrow_stream_of(&column, 1, 4, 1);
    assert_int_equal(read_stream(&data, &s, &options), KILN_ERR_ARGUMENT);
    s = arrow_stream_of(&column, 1, 4, 1);
    s.stream.release = NULL;
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    options.target_file = NULL;
    assert_int_equal(kiln_data_from_arrow(&data, device, &s.stream, &options), KILN_ERR_ARGUMENT);
    kiln_device_close(device);
}

/* Texts, classes, groups and missing numbers, with each allocation failing in turn. */
static void read_short_of_memory(void *context) {
    (void)context;
    const unsigned char valid[] = {0x0B};
    const int32_t offsets[] = {0, 1, 2, 2, 4};
    const int64_t codes[] = {3, 1, 3, 1};
    const double x[] = {1, 2, 3, 4};
    const struct arrow_column columns[] = {{"u", "u", NULL, {valid, offsets, "abcd"}, {NULL}, 3, 0, 4, 0, 0},
                                           {"x", "g", NULL, {valid, x}, {NULL}, 2, 0, 4, 0, 0},
                                           FIXED("y", "l", codes),
                                           FIXED("g", "l", codes)};
    kiln_read_options options = options_for("y");
    options.text_targets = KILN_TARGETS_LABELS;
    options.groups = "g";
    options.missing = KILN_MISSING_INDICATOR;
    options.threads = 1;
    kiln_device *device = NULL;
    kiln_data *data = NULL;
    struct arrow_stream s;
    STEP(kiln_device_open(&device, "cpu", &(kiln_device_options){.threads = 1}));
    STEP((s = arrow_stream_of(columns, 4, 4, 2), kiln_data_from_arrow(&data, device, &s.stream, &options)));
    assert_int_equal(s.alive, 0);
    kiln_data_free(data);
    kiln_device_close(device);
}

static void memory(void **state) {
    (void)state;
    brutal_memory("a table in memory", 2, read_short_of_memory, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_all_widths),
        cmocka_unit_test(texts_are_levels),
        cmocka_unit_test(roles_and_classes),
        cmocka_unit_test(errors_name_the_row),
        cmocka_unit_test(broken_arrays_are_refused),
        cmocka_unit_test(streams_that_fail),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
