/* Packed files: what was read comes back, bit for bit, from all of the file, from parts of it and from where
 * it lies; what is damaged or lies about itself is refused, by its name. */
#define _GNU_SOURCE
#include "io/scratch.h"

#include "core/matrix.h"
#include "io/data.h"
#include "io/part.h"
#include "kiln.h"

enum { BIG = 1 << 22 };

static kiln_device *device;
static unsigned char bytes[BIG];

static int open_device(void **state) {
    if (kiln_device_open(&device, "cpu", &(kiln_device_options){.threads = 2}) != KILN_OK) return -1;
    return scratch_make(state);
}

static int close_device(void **state) {
    kiln_device_close(device);
    return scratch_remove(state);
}

static void must(kiln_status status) {
    if (status != KILN_OK) fail_msg("%s (%s)", kiln_last_error()->message, kiln_last_error()->hint);
}

static void write_bytes(const char *path, const void *from, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(from, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static size_t read_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size < sizeof bytes);
    fclose(file);
    return size;
}

/* ------------------------------------------------------------------------------------------- the same */

static void *values_of(const kiln_matrix *A, int64_t *start, int32_t *col) {
    void *values = calloc((size_t)kiln_matrix_nnz(A) + 1, 8);
    if (kiln_matrix_format(A) == KILN_CSR)
        must(kiln_matrix_get_csr(start, col, values, A));
    else
        must(kiln_matrix_get(values, A));
    return values;
}

static void assert_same_matrix(const kiln_matrix *A, const kiln_matrix *B) {
    assert_true(!A == !B);
    if (!A) return;
    assert_int_equal(kiln_matrix_rows(A), kiln_matrix_rows(B));
    assert_int_equal(kiln_matrix_cols(A), kiln_matrix_cols(B));
    assert_int_equal(kiln_matrix_format(A), kiln_matrix_format(B));
    assert_int_equal(kiln_matrix_nnz(A), kiln_matrix_nnz(B));
    const size_t rows = (size_t)kiln_matrix_rows(A), nnz = (size_t)kiln_matrix_nnz(A);
    int64_t *start = calloc(rows + 1, 2 * sizeof *start);
    int32_t *col = calloc(nnz + 1, 2 * sizeof *col);
    void *a = values_of(A, start, col), *b = values_of(B, start + rows + 1, col + nnz + 1);
    assert_memory_equal(a, b, nnz * (size_t)ki_type_bytes(kiln_matrix_type(A)));
    assert_memory_equal(start, start + rows + 1, rows * sizeof *start);
    assert_memory_equal(col, col + nnz + 1, nnz * sizeof *col);
    free(a);
    free(b);
    free(start);
    free(col);
}

static void assert_same_text(const char *a, const char *b) {
    assert_true(!a == !b);
    if (a) assert_string_equal(a, b);
}

static void assert_same(const kiln_data *a, const kiln_data *b) {
    assert_same_matrix(kiln_data_X(a), kiln_data_X(b));
    assert_same_matrix(kiln_data_y(a), kiln_data_y(b));
    assert_same_matrix(kiln_data_weights(a), kiln_data_weights(b));
    assert_same_matrix(kiln_data_offset(a), kiln_data_offset(b));
    const int64_t rows = kiln_matrix_rows(kiln_data_X(a)), cols = kiln_matrix_cols(kiln_data_X(a));
    assert_true(!kiln_data_groups(a) == !kiln_data_groups(b));
    if (kiln_data_groups(a))
        assert_memory_equal(kiln_data_groups(a), kiln_data_groups(b), (size_t)rows * sizeof(int64_t));
    for (int64_t j = 0; j < cols; j++)
        assert_same_text(kiln_data_feature_name(a, j), kiln_data_feature_name(b, j));
    for (int64_t i = 0; i < rows; i++) assert_same_text(kiln_data_row_name(a, i), kiln_data_row_name(b, i));
    assert_same_text(kiln_data_target_name(a, 0), kiln_data_target_name(b, 0));
    for (kiln_column_role role = KILN_COLUMN_FEATURE; role <= KILN_COLUMN_GROUPS; role++)
        assert_same_text(kiln_data_role_name(a, role), kiln_data_role_name(b, role));
    for (int64_t c = 0; c < 5; c++)
        assert_same_text(kiln_data_class_name(a, 0, c), kiln_data_class_name(b, 0, c));
    assert_same_text(kiln_data_schema(a), kiln_data_schema(b));
    int64_t out[2];
    const int64_t *left[2] = {kiln_data_left_out(a, &out[0]), kiln_data_left_out(b, &out[1])};
    assert_int_equal(out[0], out[1]);
    if (out[0]) assert_memory_equal(left[0], left[1], (size_t)out[0] * sizeof(int64_t));
    assert_int_equal(a->X->filled_count, b->X->filled_count);
    if (a->X->filled_count)
        assert_memory_equal(a->X->filled, b->X->filled, (size_t)a->X->filled_count * sizeof(int64_t));
}

/* The packed file of the data has all of them: read in whole, through gzip, in parts, and where it lies. */
static void assert_comes_back(const kiln_data *data, const kiln_read_options *options) {
    const char *path = in_scratch("a.kiln-data"), *zipped = in_scratch("b.kiln-data.gz");
    kiln_read_options own = *options;
    kiln_data *back = NULL;
    must(kiln_data_write(data, path, KILN_FILE_AUTO, NULL));
    must(kiln_data_write(data, zipped, KILN_FILE_AUTO, NULL));
    for (int way = 0; way < 3; way++) {
        own.map = way == 2;
        must(kiln_data_read(&back, device, way == 1 ? zipped : path, &own));
        assert_int_equal(kiln_data_format(back), KILN_FILE_PACKED);
        assert_same(data, back);
        kiln_data_free(back);
    }
    own.map = 0;
    const int64_t rows = kiln_matrix_rows(kiln_data_X(data));
    struct ki_table part = {.rows = 0};
    int64_t got = 0, some = 0;
    for (int i = 0; i < 3; i++) {
        must(ki_part_read(&part, &some, path, KILN_FILE_PACKED, &own,
                          (struct ki_part){.number = i, .count = 3}));
        got += part.rows;
        ki_table_clear(&part);
    }
    assert_int_equal(got, rows);
    assert_int_equal(scratch_files(true), 2);
}

/* The data's packed file is that one, byte for byte. */
static void assert_same_file(const kiln_data *data, const char *path) {
    static unsigned char copy[BIG];
    const char *again = in_scratch("again.kiln-data");
    must(kiln_data_write(data, again, KILN_FILE_AUTO, NULL));
    const size_t size = read_bytes(again);
    memcpy(copy, bytes, size);
    assert_int_equal(remove(again), 0);
    assert_int_equal(read_bytes(path), size);
    assert_memory_equal(bytes, copy, size);
}

static kiln_data *wrap(kiln_matrix *X, kiln_matrix *y) {
    kiln_data *data = NULL;
    must(kiln_data_create(&data, X, y));
    return data;
}

/* -------------------------------------------------------------------------------------- round trips */

static void dense_values_come_back(void **state) {
    (void)state;
    enum { ROWS = 301, COLS = 7 };
    static double values[ROWS * COLS];
    static float singles[ROWS * COLS];
    static const double scales[] = {1, -1, 300, -300, 0.25, 0x1p100, 0.1};
    static const int narrow[] = {1, 1, 2, 2, 2, 2, 8}; /* bytes of a value in f64 */
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (int s = 0; s < 7; s++) {
            kiln_matrix *X = NULL;
            for (int i = 0; i < ROWS * COLS; i++)
                singles[i] = (float)(values[i] = scales[s] * (1 + i % 100) * (s == 6 ? 1 + 1e-9 * i : 1));
            must(kiln_matrix_dense(&X, device, type, ROWS, COLS,
                                   type == KILN_F32 ? (const void *)singles : values));
            kiln_data *data = wrap(X, NULL);
            const kiln_read_options options = {.type = type};
            must(kiln_data_write(data, in_scratch("n.kiln-data"), KILN_FILE_AUTO, NULL));
            const size_t most = (size_t)(type == KILN_F32 && s == 6 ? 4 : narrow[s]) * ROWS * COLS + 700;
            assert_in_range(read_bytes(in_scratch("n.kiln-data")), most - 700, most);
            scratch_files(true);
            assert_comes_back(data, &options);
            kiln_data_free(data);
        }
}

static void sparse_values_come_back(void **state) {
    (void)state;
    enum { ROWS = 200, COLS = 50 };
    int64_t start[ROWS + 1] = {0};
    int32_t col[ROWS * COLS];
    double values[ROWS * COLS], y[ROWS];
    for (int kind = 0; kind < 3; kind++) { /* ones, counts, fractions */
        kiln_matrix *X = NULL, *Y = NULL;
        for (int i = 0; i < ROWS; i++) {
            start[i + 1] = start[i];
            y[i] = i / 3.0;
            for (int j = i % 7; j < COLS && i % 11 != 3; j += 1 + i % 5) {
                values[start[i + 1]] = kind == 0 ? 1 : kind == 1 ? 1 + j : 1 / (1.0 + j);
                col[start[i + 1]++] = j;
            }
        }
        must(kiln_matrix_csr(&X, device, KILN_F64, ROWS, COLS, start, col, values));
        must(kiln_matrix_dense(&Y, device, KILN_F64, ROWS, 1, y));
        kiln_data *data = wrap(X, Y);
        assert_comes_back(data, &(kiln_read_options){.type = KILN_F64});
        must(kiln_data_write(data, in_scratch("s.kiln-data"), KILN_FILE_AUTO, NULL));
        const int64_t nnz = start[ROWS], value = kind == 0 ? 0 : kind == 1 ? 1 : 8;
        const int64_t least = nnz * (4 + value) + (ROWS + 1) * 8 + ROWS * 8;
        assert_in_range(read_bytes(in_scratch("s.kiln-data")), least, least + 900);
        /* A pass over the rows where they lie gives what the matrix gives. */
        kiln_data *mapped = NULL;
        kiln_matrix *v = NULL, *w[2] = {NULL, NULL};
        double sums[2][ROWS];
        must(kiln_data_read(&mapped, device, in_scratch("s.kiln-data"), &(kiln_read_options){.map = 1}));
        must(kiln_matrix_dense(&v, device, KILN_F64, COLS, 1, values));
        for (int i = 0; i < 2; i++) {
            must(kiln_matrix_dense(&w[i], device, KILN_F64, ROWS, 1, NULL));
            must(kiln_multiply(w[i], 1, KILN_PLAIN, i ? kiln_data_X(mapped) : X, v, 0, NULL));
            must(kiln_matrix_get(sums[i], w[i]));
            kiln_matrix_free(w[i]);
        }
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
        kiln_matrix_free(v);
        kiln_data_free(mapped);
        kiln_data_free(data);
        scratch_files(true);
    }
}

/* A table with all that belongs to rows, in memory and in a file of its own while it is written. */
static void tables_come_back(void **state) {
    (void)state;
    enum { ROWS = 700 };
    const char *path = in_scratch("t.csv");
    static const char *const kinds[] = {"alpha", "beta", "", "gamma"};
    char table[sizeof "t.csv" + 512];
    snprintf(table, sizeof table, "%s", path);
    FILE *file = fopen(table, "w");
    assert_non_null(file);
    fprintf(file, "age,kind,place,w,o,g,y\n");
    for (int i = 0; i < ROWS; i++) {
        if (i % 13 == 4)
            fprintf(file, ",");
        else
            fprintf(file, "%d,", 1 + i % 90);
        fprintf(file, "%s,p%d,%d.5,%d,g%d,%s\n", kinds[i % 4], i * 7 % 300, i % 3, i % 5 - 2, i % 17,
                i % 3 ? "yes" : "no");
    }
    assert_int_equal(fclose(file), 0);
    static const kiln_missing ways[] = {KILN_MISSING_MEAN, KILN_MISSING_INDICATOR, KILN_MISSING_DROP};
    for (int way = 0; way < 3; way++)
        for (int map = 0; map < 2; map++) {
            kiln_read_options options = {.target = "y",
                                         .weights = "w",
                                         .offset = "o",
                                         .groups = "g",
                                         .missing = ways[way],
                                         .text_targets = KILN_TARGETS_TEXT,
                                         .map = map};
            const char *packed = in_scratch("t.kiln-data");
            char kept[512];
            kiln_data *data = NULL, *back = NULL;
            snprintf(kept, sizeof kept, "%s", packed);
            must(kiln_data_read(&data, device, table, &options));
            must(kiln_data_write(data, kept, KILN_FILE_AUTO, NULL));
            options.ignore = "kind";
            assert_int_equal(kiln_data_read(&back, device, kept, &options), KILN_ERR_ARGUMENT);
            assert_non_null(strstr(kiln_last_error()->message, "--ignore comes too late"));
            options.ignore = NULL;
            for (options.map = 0; options.map < 2; options.map++) {
                must(kiln_data_read(&back, device, kept, &options));
                assert_same(data, back);
                assert_string_equal(kiln_data_role_name(back, KILN_COLUMN_OFFSET), "o");
                if (!options.map) assert_same_file(back, kept); /* converted once more */
                kiln_data_free(back);
            }
            /* Codes, of which one is a byte and one, of 300 levels, two, are fewer bytes than entries. */
            if (ways[way] != KILN_MISSING_INDICATOR)
                assert_true(memmem(bytes, read_bytes(kept), "X.codes", 7));
            options.map = 0;
            options.groups = "place";
            assert_int_equal(kiln_data_read(&back, device, kept, &options), KILN_ERR_ARGUMENT);
            assert_non_null(strstr(kiln_last_error()->message, "'g'"));
            options.groups = "g";
            options.text_targets = 0;
            assert_int_equal(kiln_data_read(&back, device, kept, &options), KILN_ERR_DATA);
            assert_non_null(strstr(kiln_last_error()->message, "'y' is text"));
            kiln_data_free(data);
            remove(kept);
        }
    scratch_files(true);
}

/* Rows of a class that the model of the reading does not know have -1 for it: in their packed file, too, and
 * when a model numbers the file's classes anew. */
static void unknown_classes_come_back(void **state) {
    (void)state;
    static const char seen[] = "a,y\n1,no\n2,yes\n3,no\n", now[] = "a,y\n1,no\n2,maybe\n3,yes\n4,zero\n";
    static const double right[] = {0, -1, 1, -1};
    kiln_read_options options = {.target = "y", .text_targets = KILN_TARGETS_TEXT};
    kiln_data *data = NULL, *back = NULL;
    kiln_model *model = NULL;
    double y[4];
    write_bytes(in_scratch("seen.csv"), seen, sizeof seen - 1);
    must(kiln_data_read(&data, device, in_scratch("seen.csv"), &options));
    must(kiln_model_create(&model, "logreg"));
    must(kiln_model_set_text(model, "schema", kiln_data_schema(data)));
    kiln_data_free(data);
    options.model = model;
    write_bytes(in_scratch("now.csv"), now, sizeof now - 1);
    must(kiln_data_read(&data, device, in_scratch("now.csv"), &options));
    must(kiln_data_write(data, in_scratch("now.kiln-data"), KILN_FILE_AUTO, NULL));
    for (int way = 0; way < 4; way++) {
        options.model = way / 2 ? model : NULL;
        options.map = way % 2;
        must(kiln_data_read(&back, device, in_scratch("now.kiln-data"), &options));
        assert_same(data, back);
        must(kiln_matrix_get(y, kiln_data_y(back)));
        assert_memory_equal(y, right, sizeof right);
        assert_null(kiln_data_class_name(back, 0, -1));
        kiln_data_free(back);
    }
    kiln_data_free(data);
    kiln_model_free(model);
    scratch_files(true);
}

/* ------------------------------------------------------------------------------------------------- damage */

static kiln_status read_changed(const char *path, size_t size) {
    kiln_data *back = NULL;
    write_bytes(path, bytes, size);
    const kiln_status status = kiln_data_read(&back, device, path, &(kiln_read_options){.type = KILN_F64});
    kiln_data_free(back);
    return status;
}

static void every_change_is_found(void **state) {
    (void)state;
    enum { ROWS = 5, COLS = 2 };
    kiln_matrix *X = NULL, *y = NULL;
    const char *path = in_scratch("d.kiln-data");
    must(kiln_matrix_csr(&X, device, KILN_F64, ROWS, COLS, (int64_t[]){0, 2, 3, 3, 4, 6},
                         (int32_t[]){0, 1, 1, 0, 0, 1}, (double[]){1, 2, 3, 0.1, 5, 6}));
    must(kiln_matrix_dense(&y, device, KILN_F64, ROWS, 1, (double[]){1, 2, 3, 4, 0.5}));
    kiln_data *data = wrap(X, y);
    must(kiln_data_write(data, path, KILN_FILE_AUTO, NULL));
    kiln_data_free(data);
    const size_t size = read_bytes(path);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 7) {
            bytes[i] ^= (unsigned char)(1 << bit);
            if (read_changed(path, size) == KILN_OK) fail_msg("a change of byte %zu was not found", i);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    for (size_t cut = 0; cut < size; cut++) assert_int_not_equal(read_changed(path, cut), KILN_OK);
    bytes[size] = 0;
    assert_int_not_equal(read_changed(path, size + 1), KILN_OK);
    assert_int_equal(read_changed(path, size), KILN_OK);
    scratch_files(true);
}

static void a_damaged_panel_has_a_name(void **state) {
    (void)state;
    enum { ROWS = 3000, COLS = 100 }; /* 2.4 MB: two panels */
    double *values = calloc(ROWS * COLS, sizeof *values);
    kiln_matrix *X = NULL;
    kiln_data *back = NULL;
    const char *path = in_scratch("p.kiln-data");
    for (int i = 0; i < ROWS * COLS; i++) values[i] = i / 7.0;
    must(kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLS, values));
    kiln_data *data = wrap(X, NULL);
    must(kiln_data_write(data, path, KILN_FILE_AUTO, NULL));
    const size_t size = read_bytes(path);
    bytes[size - 1000] ^= 1;
    write_bytes(path, bytes, size);
    for (int map = 0; map < 2; map++) {
        assert_int_equal(kiln_data_read(&back, device, path, &(kiln_read_options){.map = map}),
                         KILN_ERR_PARSE);
        assert_string_equal(kiln_last_error()->message, "panel 2 of X.values (rows 2622 to 3000) is damaged");
        assert_string_equal(kiln_last_error()->file, path);
    }
    kiln_data_free(data);
    free(values);
    scratch_files(true);
}

/* A schema that is none, and those of other columns, levels, targets and classes. */
static void schemas_are_not_trusted(void **state) {
    (void)state;
    static const char rows[] = "a,k,y\n1,u,no\n2,v,yes\n3,u,no\n";
    static const char *const changes[][2] = {{"{\"format\"", "{\"for\\u0000at\""},
                                             {"\"number\"", "\"numbed\""},
                                             {"\"a\"", "\"b\""},
                                             {"\"v\"", "\"w\""},
                                             {"\"y\"", "\"z\""},
                                             {"\"yes\"", "\"yet\""}};
    char table[512], packed[512];
    kiln_data *data = NULL, *back = NULL;
    snprintf(table, sizeof table, "%s", in_scratch("s.csv"));
    snprintf(packed, sizeof packed, "%s", in_scratch("s.kiln-data"));
    write_bytes(table, rows, sizeof rows - 1);
    const kiln_read_options options = {.target = "y", .text_targets = KILN_TARGETS_TEXT};
    must(kiln_data_read(&data, device, table, &options));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *own = data->schema, lie[1024];
        const char *at = strstr(own, changes[i][0]);
        assert_non_null(at);
        snprintf(lie, sizeof lie, "%.*s%s%s", (int)(at - own), own, changes[i][1],
                 at + strlen(changes[i][0]));
        data->schema = lie;
        must(kiln_data_write(data, packed, KILN_FILE_AUTO, NULL));
        data->schema = own;
        assert_int_equal(kiln_data_read(&back, device, packed, &options), KILN_ERR_PARSE);
        assert_non_null(strstr(kiln_last_error()->message, i < 2 ? "schema is damaged" : "other columns"));
    }
    /* A compressed one has no rows that can be read where they lie. */
    must(kiln_data_write(data, in_scratch("s.kiln-data.gz"), KILN_FILE_AUTO, NULL));
    kiln_read_options mapped = options;
    mapped.map = 1;
    assert_int_equal(kiln_data_read(&back, device, in_scratch("s.kiln-data.gz"), &mapped),
                     KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->hint, "decompress it"));
    /* Classes go into CSV by their names. */
    must(kiln_data_write(data, table, KILN_FILE_AUTO, NULL));
    assert_int_equal(read_bytes(table), 40);
    assert_memory_equal(bytes, "a,k=u,k=v,y\n1,1,0,no\n2,0,1,yes\n3,1,0,no\n", 40);
    kiln_data_free(data);
    scratch_files(true);
}

#define META "\"__metadata__\":{\"format\":\"kiln data 1\",\"rows\":\"2\",\"columns\":\"2\"}"
#define DENSE ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]}"
#define SUMS ",\"checksums\":{\"dtype\":\"U32\",\"shape\":[3],\"data_offsets\":[4,16]}"

/* Headers that lie, before anything is read for them. */
static void headers_are_not_trusted(void **state) {
    (void)state;
    static const struct {
        const char *header, *message;
    } bad[] = {
        {"{" META DENSE "}", "checksums"},
        {"{" META SUMS "}", "lie behind"},
        {"{" META ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[1,5]}" SUMS "}",
         "lie behind"},
        {"{" META ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,5]}" SUMS "}",
         "lie behind"},
        {"{" META ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[4,0]}" SUMS "}",
         "lie behind"},
        {"{" META ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[-2,-2],\"data_offsets\":[0,4]}" SUMS "}",
         "shape"},
        {"{" META ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[2,2,1],\"data_offsets\":[0,4]}" SUMS "}",
         "shape"},
        {"{" META
         ",\"X.values\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}" SUMS
         "}",
         "shape"},
        {"{" META ",\"X.values\":{\"dtype\":\"I64\",\"shape\":[2,2],\"data_offsets\":[0,32]}" SUMS "}",
         "type"},
        {"{" META ",\"X.values\":{\"dtype\":\"C64\",\"shape\":[2,2],\"data_offsets\":[0,32]}" SUMS "}",
         "type"},
        {"{" META ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[4,1],\"data_offsets\":[0,4]}" SUMS "}",
         "arrays of X"},
        {"{" META ",\"X.values\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}" SUMS "}",
         "arrays of X"},
        {"{" META ",\"X.row_start\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]}}",
         "arrays of X"},
        {"{" META ",\"Z\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}" SUMS "}", "does not know"},
        {"{" META DENSE ",\"checksums\":{\"dtype\":\"U32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         "checksums"},
        {"{" META DENSE ",\"weights\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[4,13]}}",
         "as many rows"},
        {"{\"__metadata__\":{\"format\":\"kiln data 2\"}" DENSE SUMS "}", "which this version reads"},
        {"{\"__metadata__\":{\"format\":\"kiln data 1\",\"rows\":\"-2\",\"columns\":\"2\"}" DENSE SUMS "}",
         "rows"},
        {"{\"__metadata__\":{\"format\":\"kiln data 1\",\"rows\":\"2\",\"columns\":\"2147483648\"}" DENSE SUMS
         "}",
         "2^31"},
        {"{" META DENSE SUMS, "not valid"},
        {"[]", "no object"},
        {"{" META DENSE SUMS "}", "checksums are damaged"}, /* all of it right, but for these */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const size_t length = strlen(bad[i].header);
        memset(bytes, 0, sizeof bytes);
        bytes[0] = (unsigned char)length;
        bytes[1] = (unsigned char)(length >> 8);
        memcpy(bytes + 8, bad[i].header, length);
        kiln_read_options options = {.format = KILN_FILE_PACKED};
        kiln_data *back = NULL;
        write_bytes(in_scratch("h.kiln-data"), bytes, 8 + length + 16);
        assert_int_not_equal(kiln_data_read(&back, device, in_scratch("h.kiln-data"), &options), KILN_OK);
        if (!strstr(kiln_last_error()->message, bad[i].message))
            fail_msg("%s: %s", bad[i].header, kiln_last_error()->message);
    }
    memset(bytes, 255, 8); /* a header as long as there are numbers */
    write_bytes(in_scratch("h.kiln-data"), bytes, 100);
    kiln_data *back = NULL;
    assert_int_equal(kiln_data_read(&back, device, in_scratch("h.kiln-data"),
                                    &(kiln_read_options){.format = KILN_FILE_PACKED}),
                     KILN_ERR_PARSE);
    scratch_files(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_values_come_back),  cmocka_unit_test(sparse_values_come_back),
        cmocka_unit_test(tables_come_back),        cmocka_unit_test(unknown_classes_come_back),
        cmocka_unit_test(every_change_is_found),   cmocka_unit_test(a_damaged_panel_has_a_name),
        cmocka_unit_test(headers_are_not_trusted), cmocka_unit_test(schemas_are_not_trusted)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
