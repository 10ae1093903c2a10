/* The .npz reader: fixtures written by SciPy, archives made here member by member, and archives that lie. */
#define _DEFAULT_SOURCE
#include "io/reading.h"

#include <math.h>
#include <zlib.h>

#include "io/output.h"

struct bytes {
    unsigned char data[1 << 16];
    size_t size;
};

static void put(struct bytes *to, const void *data, size_t size) {
    assert_true(to->size + size <= sizeof to->data);
    if (size > 0) memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void put_number(struct bytes *to, uint64_t value, int size) {
    unsigned char bytes[8];
    for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(value >> 8 * i);
    put(to, bytes, (size_t)size);
}

/* An archive under construction: local headers and data, and the directory that follows them. */
struct archive {
    struct bytes file, directory;
    int count;
    bool
        wide; /* zip64: sizes and offsets stand in extra fields, and the directory's in a record of its own */
};

static void add_member(struct archive *archive, const char *name, const void *data, size_t size) {
    size_t offset = archive->file.size, name_size = strlen(name);
    uint32_t crc = (uint32_t)crc32(0, data, (uInt)size);
    for (int directory = 0; directory < 2; directory++) {
        struct bytes *to = directory ? &archive->directory : &archive->file;
        put(to, directory ? "PK\1\2" : "PK\3\4", 4);
        if (directory) put_number(to, 20, 2);
        put_number(to, 20, 2);
        put_number(to, 0, 8); /* flags, method, time, date */
        put_number(to, crc, 4);
        const bool wide = directory && archive->wide;
        put_number(to, wide ? UINT32_MAX : size, 4);
        put_number(to, wide ? UINT32_MAX : size, 4);
        put_number(to, name_size, 2);
        put_number(to, wide ? 28 : 0, 2);
        if (directory)
            put_number(to, 0, 8), put_number(to, 0, 2), put_number(to, wide ? UINT32_MAX : offset, 4);
        put(to, name, name_size);
        if (wide) put_number(to, 1, 2), put_number(to, 24, 2);
        if (wide) put_number(to, size, 8), put_number(to, size, 8), put_number(to, offset, 8);
        if (!directory) put(to, data, size);
    }
    archive->count++;
}

static void finish(struct archive *archive) {
    size_t at = archive->file.size;
    put(&archive->file, archive->directory.data, archive->directory.size);
    if (archive->wide) {
        const size_t end = archive->file.size;
        put(&archive->file, "PK\6\6", 4);
        put_number(&archive->file, 44, 8);
        put_number(&archive->file, 45, 2);
        put_number(&archive->file, 45, 2);
        put_number(&archive->file, 0, 8);
        put_number(&archive->file, (uint64_t)archive->count, 8);
        put_number(&archive->file, (uint64_t)archive->count, 8);
        put_number(&archive->file, archive->directory.size, 8);
        put_number(&archive->file, at, 8);
        put(&archive->file, "PK\6\7\0\0\0\0", 8);
        put_number(&archive->file, end, 8);
        put_number(&archive->file, 1, 4);
    }
    put(&archive->file, "PK\5\6\0\0\0\0", 8);
    put_number(&archive->file, (uint64_t)archive->count, 2);
    put_number(&archive->file, (uint64_t)archive->count, 2);
    put_number(&archive->file, archive->directory.size, 4);
    put_number(&archive->file, at, 4);
    put_number(&archive->file, 0, 2);
}

static void add_array(struct archive *archive, const char *name, const char *descr, const char *shape,
                      const void *data, size_t size) {
    char text[512];
    int length =
        snprintf(text + 10, 200, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
    memcpy(text, "\x93NUMPY\1", 8);
    text[8] = (char)length;
    text[9] = 0;
    if (size > 0) memcpy(text + 10 + length, data, size);
    add_member(archive, name, text, 10 + (size_t)length + size);
}

/* Holds what a matrix's members say; n = number of elements, -1 = the member is missing. */
struct parts {
    const char *format;
    int64_t shape[3], indptr[8], indices[8];
    double data[8];
    int shape_n, indptr_n, indices_n, data_n;
};

static const struct parts good = {"csr", {2, 3}, {0, 2, 3}, {0, 2, 1}, {5, 6, 7}, 2, 3, 3, 3};

static void add_numbers(struct archive *archive, const char *name, const char *descr, const void *data,
                        int n) {
    char shape[32];
    if (n < 0) return;
    snprintf(shape, sizeof shape, "(%d,)", n);
    add_array(archive, name, descr, shape, data, 8 * (size_t)n);
}

static struct archive build_as(const struct parts *parts, bool wide) {
    static struct archive archive;
    memset(&archive, 0, sizeof archive);
    archive.wide = wide;
    char descr[32];
    snprintf(descr, sizeof descr, "|S%zu", strlen(parts->format));
    add_numbers(&archive, "indices.npy", "<i8", parts->indices, parts->indices_n);
    add_numbers(&archive, "indptr.npy", "<i8", parts->indptr, parts->indptr_n);
    add_array(&archive, "format.npy", descr, "()", parts->format, strlen(parts->format));
    add_numbers(&archive, "shape.npy", "<i8", parts->shape, parts->shape_n);
    add_numbers(&archive, "data.npy", "<f8", parts->data, parts->data_n);
    finish(&archive);
    return archive;
}

static struct archive build(const struct parts *parts) {
    return build_as(parts, false);
}

static struct reading read_parts(const struct parts *parts, const kiln_read_options *options) {
    struct archive archive = build(parts);
    return read_bytes(ki_read_npz, archive.file.data, archive.file.size, options);
}

static struct bytes fixture(const char *name) {
    static struct bytes file;
    char path[512];
    snprintf(path, sizeof path, "%s/io/fixtures/%s", KILN_TEST_DATA, name);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    file.size = fread(file.data, 1, sizeof file.data, from);
    fclose(from);
    return file;
}

static struct reading read_fixture(const char *name, const kiln_read_options *options) {
    struct bytes file = fixture(name);
    return read_bytes(ki_read_npz, file.data, file.size, options);
}

static void assert_matrix(const struct ki_table *table) {
    assert_true(table->format == KILN_CSR && table->rows == 3 && table->cols == 4 && table->nnz == 4);
    assert_memory_equal(table->row_start, ((int64_t[]){0, 2, 2, 4}), 32);
    assert_memory_equal(table->col, ((int32_t[]){1, 3, 0, 3}), 16);
    assert_reals(table->values, (double[]){1.5, 2, -3, 4}, 4);
}

static void scipy_files(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    static const char *const names[] = {"csr_stored.npz", "csr_deflated.npz", "csc.npz"};
    for (int i = 0; i < 3; i++) {
        struct reading r = read_fixture(names[i], &options);
        if (r.status != KILN_OK) fail_msg("%s: %s", names[i], kiln_last_error()->message);
        assert_matrix(&r.table);
        ki_table_clear(&r.table);
    }
    assert_int_equal(read_fixture("coo.npz", &options).status, KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->message, "of format 'coo'"));
    assert_non_null(strstr(kiln_last_error()->hint, "A.tocsr()"));
}

static void canonical_rows(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    for (int narrow = 0; narrow < 2; narrow++) {
        options.type = narrow ? KILN_F32 : KILN_F64;
        struct reading r =
            read_fixture("csr_unsorted.npz", &options); /* columns 2 0 2 | 1 0, values 1 2 3 | 4 5 */
        assert_int_equal(r.status, KILN_OK);
        assert_true(r.table.nnz == 4);
        assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 4}), 24);
        assert_memory_equal(r.table.col, ((int32_t[]){0, 2, 0, 1}), 16);
        static const double want[] = {2, 4, 5, 4};
        for (int i = 0; i < 4; i++)
            assert_true(want[i] ==
                        (narrow ? (double)((float *)r.table.values)[i] : ((double *)r.table.values)[i]));
        ki_table_clear(&r.table);
    }
    options.strict = 1;
    assert_int_equal(read_fixture("csr_unsorted.npz", &options).status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "row 1 (counted from 1) has two entries"));
}

static void empty_matrices(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct parts parts = {"csr", {0, 3}, {0}, {0}, {0}, 2, 1, 0, 0};
    struct reading r = read_parts(&parts, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 0 && r.table.cols == 3 && r.table.nnz == 0 && r.table.row_start[0] == 0);
    ki_table_clear(&r.table);
    parts = (struct parts){"csc", {2, 0}, {0}, {0}, {0}, 2, 1, 0, 0};
    r = read_parts(&parts, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 2 && r.table.row_start[2] == 0);
    ki_table_clear(&r.table);
}

/* Each change to a good matrix's members, and what is said about it. */
static void lying_members(void **state) {
    (void)state;
    struct parts p[24];
    kiln_status status[24];
    const char *message[24];
    int n = 0;
#define CASE(change, status_, message_)                                                                      \
    p[n] = good;                                                                                             \
    p[n].change;                                                                                             \
    status[n] = status_;                                                                                     \
    message[n++] = message_
    CASE(format = "bsr", KILN_ERR_UNSUPPORTED, "of format 'bsr'");
    CASE(format = "", KILN_ERR_UNSUPPORTED, "of format ''");
    CASE(shape_n = -1, KILN_ERR_UNSUPPORTED, "no member 'shape.npy'");
    CASE(indptr_n = -1, KILN_ERR_UNSUPPORTED, "no member 'indptr.npy'");
    CASE(indices_n = -1, KILN_ERR_UNSUPPORTED, "no member 'indices.npy'");
    CASE(data_n = -1, KILN_ERR_UNSUPPORTED, "no member 'data.npy'");
    CASE(shape_n = 3, KILN_ERR_PARSE, "not a pair of lengths");
    CASE(shape[0] = -1, KILN_ERR_PARSE, "not a pair of lengths");
    CASE(shape[0] = 3, KILN_ERR_PARSE, "indptr has not one entry more");
    CASE(shape[0] = INT64_MAX, KILN_ERR_PARSE, "indptr has not one entry more");
    CASE(shape[1] = 2, KILN_ERR_PARSE, "indices[1] is outside 0 to 1");
    CASE(shape[1] = (int64_t)1 << 31, KILN_ERR_LIMIT, "2^31 columns");
    CASE(indptr_n = 2, KILN_ERR_PARSE, "indptr has not one entry more");
    CASE(indptr_n = 0, KILN_ERR_PARSE, "indptr has not one entry more");
    CASE(indptr[0] = 1, KILN_ERR_PARSE, "does not begin with 0");
    CASE(indptr[1] = 4, KILN_ERR_PARSE, "or decreases");
    CASE(indptr[2] = 4, KILN_ERR_PARSE, "behind the end of indices");
    CASE(indptr[2] = INT64_MAX, KILN_ERR_PARSE, "behind the end of indices");
    CASE(indices[2] = -1, KILN_ERR_PARSE, "indices[2] is outside 0 to 2");
    CASE(indices[0] = (int64_t)1 << 32, KILN_ERR_PARSE, "indices[0] is outside 0 to 2");
    CASE(data_n = 2, KILN_ERR_PARSE, "indices and data differ in length");
    CASE(data[2] = (double)NAN, KILN_ERR_PARSE, "at row 2, column 2 (counted from 1)");
    CASE(format = "csc", KILN_ERR_PARSE, "indptr has not one entry more");
#undef CASE
    for (int i = 0; i < n; i++) {
        kiln_read_options options = reading_options();
        struct reading r = read_parts(&p[i], &options);
        const kiln_error *error = kiln_last_error();
        if (r.status != status[i] || !strstr(error->message, message[i]))
            fail_msg("case %d: %s: %s", i, kiln_status_name(r.status), error->message);
        assert_string_equal(error->file, r.path);
    }
    kiln_read_options options = reading_options();
    struct reading r = read_parts(&good, &options);
    assert_int_equal(r.status, KILN_OK);
    ki_table_clear(&r.table);
    struct parts hollow = {"csc", {INT32_MAX, 1}, {0, 1}, {7}, {1}, 2, 2, 1, 1}; /* 17 GB of row starts */
    assert_int_equal(read_parts(&hollow, &options).status, KILN_ERR_LIMIT);
}

static struct reading read_archive(struct archive *archive) {
    kiln_read_options options = reading_options();
    return read_bytes(ki_read_npz, archive->file.data, archive->file.size, &options);
}

static void expect(struct archive *archive, kiln_status status, const char *message) {
    struct reading r = read_archive(archive);
    if (r.status != status || !strstr(kiln_last_error()->message, message))
        fail_msg("%s expected: %s: %s", message, kiln_status_name(r.status), kiln_last_error()->message);
    ki_table_clear(&r.table);
}

static void lying_archives(void **state) {
    (void)state;
    struct archive archive = build(&good), changed;
    unsigned char *directory = changed.file.data + archive.file.size - 22 - archive.directory.size;
    unsigned char *end = changed.file.data + archive.file.size - 22;
    expect(&archive, KILN_OK, "");
#define CASE(change, status, message)                                                                        \
    changed = archive;                                                                                       \
    change;                                                                                                  \
    expect(&changed, status, message)
    CASE(changed.file.size = 0, KILN_ERR_PARSE, "no end record");
    CASE(changed.file.data[changed.file.size++] = 0, KILN_ERR_PARSE, "no end record");
    CASE(end[10] = 200, KILN_ERR_LIMIT, "200 members");
    CASE(end[10] = 4, KILN_ERR_PARSE, "longer than its members");
    CASE(end[10] = 6, KILN_ERR_PARSE, "directory is damaged");
    CASE(end[4] = 1, KILN_ERR_PARSE, "several volumes");
    CASE(end[16] ^= 1, KILN_ERR_PARSE, "where the end record begins");
    CASE(directory[8] = 1, KILN_ERR_UNSUPPORTED, "encrypted");
    CASE(directory[10] = 12, KILN_ERR_UNSUPPORTED, "zip method 12");
    CASE(directory[10] = 8, KILN_ERR_PARSE, "two methods");
    CASE(directory[16] ^= 1, KILN_ERR_PARSE, "checksum");
    CASE(directory[20] ^= 1, KILN_ERR_PARSE, "two sizes");
    CASE((directory[20] ^= 128, directory[24] ^= 128), KILN_ERR_PARSE, "overlap");
    CASE(directory[42] = 4, KILN_ERR_PARSE, "header is damaged");
    CASE(directory[45] = 1, KILN_ERR_PARSE, "outside the file");
    CASE(directory[46] = 'x', KILN_ERR_PARSE, "two names");
    CASE(memset(directory + 20, 255, 8), KILN_ERR_PARSE, "zip64 field");
    CASE(changed.file.data[8] = 8, KILN_ERR_PARSE, "two methods");
    CASE(changed.file.data[100] ^= 1, KILN_ERR_PARSE, "checksum");
#undef CASE
    memset(&archive, 0, sizeof archive);
    add_member(&archive, "format.npy", "", 0);
    add_member(&archive, "format.npy", "", 0);
    finish(&archive);
    expect(&archive, KILN_ERR_PARSE, "two members have one name");
    memset(&archive, 0, sizeof archive);
    add_member(&archive, "data.npy", "", 0);
    finish(&archive);
    expect(&archive, KILN_ERR_UNSUPPORTED, "no sparse matrix");
    memset(&archive, 0, sizeof archive);
    add_array(&archive, "format.npy", "|O", "()", "", 0);
    finish(&archive);
    expect(&archive, KILN_ERR_UNSUPPORTED, "elements of type '|O'");
    memset(&archive, 0, sizeof archive);
    add_array(&archive, "format.npy", "<U3", "()", "c\0\0\0s\0\0\0r\0\0\0x", 13);
    finish(&archive);
    expect(&archive, KILN_ERR_PARSE, "the member 'format.npy' has not the length of its shape");
    memset(&archive, 0, sizeof archive);
    add_array(&archive, "format.npy", "|S3", "()", "csr", 3);
    add_array(&archive, "shape.npy", "<f8", "(2,)", good.data, 16);
    finish(&archive);
    expect(&archive, KILN_ERR_PARSE, "the member 'shape.npy' is not a list of integers");
}

/* ---- dense ---- */

/* X 2 x 3 of 1 to 6, y or none, under these names. */
static struct archive dense(const char *X, const char *y, const char *shape) {
    static const double numbers[] = {1, 2, 3, 4, 5, 6};
    static struct archive archive;
    memset(&archive, 0, sizeof archive);
    add_array(&archive, X, "<f8", "(2, 3)", numbers, sizeof numbers);
    if (y) add_array(&archive, y, "<i8", shape, (int64_t[]){7, 8, 9}, shape[1] == '2' ? 16 : 24);
    finish(&archive);
    return archive;
}

static void dense_arrays(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"X.npy", "y.npy"}, {"x.npy", "labels.npy"}, {"arr_0.npy", "arr_1.npy"}, {"X.npy", NULL}};
    for (int n = 0; n < 4; n++)
        for (int options = 0; options < 2; options++) {
            kiln_read_options reading = reading_options();
            if (options) reading.target_file = "elsewhere";
            const struct archive archive = dense(names[n][0], names[n][1], "(2,)");
            struct reading read = read_bytes(ki_read_npz, archive.file.data, archive.file.size, &reading);
            assert_int_equal(read.status, KILN_OK);
            const struct ki_table *table = &read.table;
            assert_true(table->format == KILN_DENSE && table->rows == 2 && table->cols == 3 &&
                        table->nnz == 6);
            assert_reals(table->values, (double[]){1, 2, 3, 4, 5, 6}, 6);
            assert_int_equal(table->targets, names[n][1] && !options ? 1 : 0);
            if (table->y) assert_reals(table->y, (double[]){7, 8}, 2);
            ki_table_clear(&read.table);
        }
}

static void dense_arrays_that_lie(void **state) {
    (void)state;
    struct archive archive = dense("X.npy", "y.npy", "(3,)");
    expect(&archive, KILN_ERR_DATA, "y.npy has 3 rows, X.npy 2");
    memset(&archive, 0, sizeof archive);
    add_array(&archive, "X.npy", "<f8", "(1, 2)", (double[]){1, NAN}, 16);
    finish(&archive);
    expect(&archive, KILN_ERR_PARSE, "row 1, column 2");
    memset(&archive, 0, sizeof archive);
    add_array(&archive, "X.npy", "<f8", "(1000000, 2)", (double[]){1, 2}, 16);
    finish(&archive);
    expect(&archive, KILN_ERR_PARSE, "has not the length of its shape");
    memset(&archive, 0, sizeof archive);
    add_array(&archive, "X.npy", "<f8", "(1, 1, 1)", good.data, 8);
    finish(&archive);
    expect(&archive, KILN_ERR_UNSUPPORTED, "3 dimensions");
    archive = dense("X.npy", NULL, "");
    archive.file.data[60] ^= 1;
    expect(&archive, KILN_ERR_PARSE, "");
}

/* The records of archives beyond 4 GiB, which any archive may have. */
static void wide_archives(void **state) {
    (void)state;
    struct archive archive = build_as(&good, true), changed;
    unsigned char *end = changed.file.data + archive.file.size - 22, *locator = end - 20,
                  *wide = locator - 56;
    unsigned char *directory = wide - archive.directory.size;
    expect(&archive, KILN_OK, "");
#define CASE(change, message)                                                                                \
    changed = archive;                                                                                       \
    change;                                                                                                  \
    expect(&changed, KILN_ERR_PARSE, message)
    CASE(locator[8] += 1, "zip64 end record is elsewhere");
    CASE(locator[8] -= 1, "zip64 end record is damaged");
    CASE(wide[3] = 7, "zip64 end record is damaged");
    CASE(wide[40] ^= 1, "where the end record begins");
    CASE(wide[55] = 255, "where the end record begins");
    CASE(directory[46 + 11 + 2] = 16, "zip64 field is damaged"); /* of indices.npy, 11 letters */
    CASE(directory[46 + 11 + 3] = 1, "zip64 field is damaged");
    CASE(directory[46 + 11] = 2, "zip64 field is damaged");
    CASE(directory[46 + 11 + 10] = 255, "two sizes");
    CASE(directory[46 + 11 + 27] = 255, "outside the file");
#undef CASE
}

/* Rows that are to stay in the file: what the array of the archive must be for that. i4, f8: its types. */
static void put_i4(struct archive *archive, const char *name, const int64_t *from, int n) {
    char shape[32];
    int32_t numbers[8];
    for (int i = 0; i < n; i++) numbers[i] = (int32_t)from[i];
    snprintf(shape, sizeof shape, "(%d,)", n);
    add_array(archive, name, "<i4", shape, numbers, 4 * (size_t)n);
}

static void expect_mapped(const struct parts *parts, bool i4, kiln_type type, kiln_status status,
                          const char *message) {
    static struct archive archive;
    char path[] = "/tmp/kiln-npz-XXXXXX.npz";
    const kiln_read_options options = {.map = 1, .type = type, .format = KILN_FILE_NPZ};
    kiln_device *cpu = NULL;
    kiln_data *data = NULL;
    memset(&archive, 0, sizeof archive);
    if (i4)
        put_i4(&archive, "indices.npy", parts->indices, parts->indices_n);
    else
        add_numbers(&archive, "indices.npy", "<i8", parts->indices, parts->indices_n);
    add_numbers(&archive, "indptr.npy", "<i8", parts->indptr, parts->indptr_n);
    add_array(&archive, "format.npy", "|S3", "()", parts->format, 3);
    add_numbers(&archive, "shape.npy", "<i8", parts->shape, parts->shape_n);
    add_numbers(&archive, "data.npy", "<f8", parts->data, parts->data_n);
    finish(&archive);
    const int file = mkstemps(path, 4);
    assert_true(file >= 0 && write(file, archive.file.data, archive.file.size) == (ssize_t)archive.file.size);
    assert_int_equal(close(file), 0);
    assert_int_equal(kiln_device_open(&cpu, "cpu", NULL), KILN_OK);
    const kiln_status got = kiln_data_read(&data, cpu, path, &options);
    if (got != status || (status != KILN_OK && !strstr(kiln_last_error()->message, message)))
        fail_msg("%s expected: %s: %s", message, kiln_status_name(got), kiln_last_error()->message);
    kiln_data_free(data);
    kiln_device_close(cpu);
    assert_int_equal(unlink(path), 0);
}

static void what_cannot_stay_in_the_file(void **state) {
    (void)state;
    struct parts parts = good;
    expect_mapped(&good, true, KILN_F64, KILN_OK, "");
    expect_mapped(&good, false, KILN_F64, KILN_OK, ""); /* by way of a temporary file */
    expect_mapped(&good, true, KILN_F32, KILN_OK, "");
    parts.format = "csc";
    parts.indptr_n = 4, parts.indptr[2] = 2, parts.indptr[3] = 3, parts.indices[1] = 1;
    expect_mapped(&parts, true, KILN_F64, KILN_ERR_UNSUPPORTED, "stored by columns");
    parts = good;
    parts.indices[1] = 0;
    expect_mapped(&parts, true, KILN_F64, KILN_OK, "");
    parts.indices[1] = 3;
    expect_mapped(&parts, true, KILN_F64, KILN_ERR_PARSE, "indices[1] is outside 0 to 2");
    parts = good;
    parts.data[2] = NAN;
    expect_mapped(&parts, true, KILN_F64, KILN_ERR_PARSE, "data[2] is not a finite f64");
    parts = good;
    parts.data_n = 2;
    expect_mapped(&parts, true, KILN_F64, KILN_ERR_PARSE, "not the length that indptr states");
}

/* Deflated zeros, many times their size. */
static void bomb(void **state) {
    (void)state;
    enum { ZEROS = 96 << 20 };
    static struct bytes file;
    unsigned char *zeros = calloc(ZEROS, 1), *packed = malloc(1 << 20);
    z_stream stream = {.next_in = zeros, .avail_in = ZEROS, .next_out = packed, .avail_out = 1 << 20};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t size = stream.total_out;
    deflateEnd(&stream);
    char *archive = malloc(size + 256);
    file.size = 0;
    for (int directory = 0; directory < 2; directory++) {
        if (directory) memcpy(archive, file.data, file.size), memcpy(archive + file.size, packed, size);
        put(&file, directory ? "PK\1\2\24\0" : "PK\3\4", directory ? 6 : 4);
        put_number(&file, 20, 4);
        put_number(&file, 8, 2);
        put_number(&file, 0, 8); /* time, date, checksum */
        put_number(&file, size, 4);
        put_number(&file, ZEROS, 4);
        put_number(&file, 10, 4);
        if (directory) put_number(&file, 0, 8), put_number(&file, 0, 6);
        put(&file, "format.npy", 10);
    }
    size_t local = 40, entry = file.size - local;
    put(&file, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    put_number(&file, entry, 4);
    put_number(&file, local + size, 4);
    put_number(&file, 0, 2);
    memcpy(archive + local + size, file.data + local, file.size - local);
    kiln_read_options options = reading_options();
    struct reading r = read_bytes(ki_read_npz, archive, size + file.size, &options);
    assert_int_equal(r.status, KILN_ERR_LIMIT);
    assert_non_null(strstr(kiln_last_error()->message, "more than 200 times"));
    options.limit = 1 << 20;
    r = read_bytes(ki_read_npz, archive, size + file.size, &options);
    assert_int_equal(r.status, KILN_ERR_LIMIT);
    assert_non_null(strstr(kiln_last_error()->message, "limit"));
    free(archive);
    free(packed);
    free(zeros);
}

/* Members that are deflated, or in another order, lie in a temporary file and give the same rows. */
static void deflated_members_are_mapped(void **state) {
    (void)state;
    static const char *const names[] = {"csr_stored.npz", "csr_deflated.npz", "csr_unsorted.npz"};
    kiln_device *cpu = NULL;
    assert_int_equal(kiln_device_open(&cpu, "cpu", NULL), KILN_OK);
    for (int n = 0; n < 3; n++) {
        char path[512];
        int64_t start[2][64] = {{0}};
        int32_t col[2][256] = {{0}};
        double values[2][256] = {{0}};
        snprintf(path, sizeof path, "%s/io/fixtures/%s", KILN_TEST_DATA, names[n]);
        for (int map = 0; map < 2; map++) {
            kiln_data *data = NULL;
            assert_int_equal(kiln_data_read(&data, cpu, path, &(kiln_read_options){.map = map}), KILN_OK);
            assert_true(kiln_matrix_nnz(kiln_data_X(data)) <= 256 &&
                        kiln_matrix_rows(kiln_data_X(data)) < 64);
            assert_int_equal(kiln_matrix_get_csr(start[map], col[map], values[map], kiln_data_X(data)),
                             KILN_OK);
            kiln_data_free(data);
        }
        assert_memory_equal(start[0], start[1], sizeof start[0]);
        assert_memory_equal(col[0], col[1], sizeof col[0]);
        assert_memory_equal(values[0], values[1], sizeof values[0]);
    }
    kiln_device_close(cpu);
}

/* No prefix is a file. A changed byte is an error, or one that does not matter: then the matrix is the same.
 */
static void torn_files(void **state) {
    (void)state;
    static const char *const names[] = {"csr_stored.npz", "csr_deflated.npz", "csc.npz"};
    static const unsigned char flips[] = {0xFF, 0x01, 0x80};
    kiln_read_options options = reading_options();
    options.threads = 1;
    for (int n = 0; n < 3; n++) {
        struct bytes file = fixture(names[n]);
        for (size_t i = 0; i < file.size; i++)
            assert_int_equal(read_bytes(ki_read_npz, file.data, i, &options).status, KILN_ERR_PARSE);
        for (size_t i = 0; i < 4 * file.size; i++) {
            unsigned char *byte = &file.data[i / 4], kept = *byte;
            *byte = i % 4 == 3 ? 0 : (unsigned char)(kept ^ flips[i % 4]);
            struct reading r = read_bytes(ki_read_npz, file.data, file.size, &options);
            if (r.status == KILN_OK) assert_matrix(&r.table);
            ki_table_clear(&r.table);
            *byte = kept;
        }
    }
}

/* Enough entries for several threads: each row's columns descend, its first one stands twice. */
static void large_matrix(void **state) {
    (void)state;
    enum { ROWS = 5000, EACH = 21, COLS = 50 };
    struct ki_table made = {.format = KILN_CSR, .rows = ROWS, .cols = COLS, .nnz = ROWS * EACH};
    made.row_start = ki_alloc((ROWS + 1) * sizeof(int64_t));
    made.col = ki_alloc(ROWS * EACH * sizeof(int32_t));
    made.values = ki_alloc(ROWS * EACH * sizeof(double));
    for (int64_t row = 0; row <= ROWS; row++) made.row_start[row] = row * EACH;
    for (int64_t i = 0; i < ROWS * EACH; i++) {
        made.col[i] = (int32_t)(i % EACH == EACH - 1 ? COLS - 1 : COLS - 1 - i % EACH);
        ((double *)made.values)[i] = (double)i;
    }
    char path[] = "/tmp/kiln-reading-XXXXXX";
    struct ki_output *output;
    struct ki_input *input;
    struct ki_table read = {0};
    kiln_read_options options = reading_options();
    close(mkstemp(path));
    assert_int_equal(ki_output_open(&output, path, false, NULL), KILN_OK);
    assert_int_equal(ki_write_npz(output, &made, KILN_F64, 1), KILN_OK);
    assert_int_equal(ki_output_commit(output), KILN_OK);
    assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
    assert_int_equal(ki_read_npz(&read, input, &options), KILN_OK);
    ki_input_close(input);
    unlink(path);
    assert_true(read.nnz == ROWS * (EACH - 1));
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t i = 0; i < EACH - 1; i++) {
            int64_t at = row * (EACH - 1) + i, from = row * EACH + EACH - 2 - i;
            assert_int_equal(read.col[at], COLS - EACH + 1 + i);
            double want = i < EACH - 2 ? (double)from : (double)(2 * row * EACH + EACH - 1);
            assert_true(((double *)read.values)[at] == want);
        }
    ki_table_clear(&made);
    ki_table_clear(&read);
}

static void memory_runs_out(void **state) {
    (void)state;
    static const char *const names[] = {"csr_stored.npz", "csr_deflated.npz", "csc.npz", "csr_unsorted.npz"};
    kiln_read_options options = reading_options();
    for (int n = 0; n < 4; n++) {
        struct bytes file = fixture(names[n]);
        assert_survives_shortage(ki_read_npz, file.data, file.size, &options);
    }
    const struct archive archive = dense("X.npy", "y.npy", "(2,)");
    assert_survives_shortage(ki_read_npz, archive.file.data, archive.file.size, &options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scipy_files),
        cmocka_unit_test(canonical_rows),
        cmocka_unit_test(empty_matrices),
        cmocka_unit_test(lying_members),
        cmocka_unit_test(lying_archives),
        cmocka_unit_test(bomb),
        cmocka_unit_test(wide_archives),
        cmocka_unit_test(what_cannot_stay_in_the_file),
        cmocka_unit_test(deflated_members_are_mapped),
        cmocka_unit_test(torn_files),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(large_matrix),
        cmocka_unit_test(dense_arrays),
        cmocka_unit_test(dense_arrays_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
