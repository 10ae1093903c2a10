/* .npy: a header, then the elements as they lie in memory. Those of a file are read by several threads
 * (io/chunks.h), once its length bears the header out; those of a stream piece by piece into room that grows
 * as they come, so that a header which promises more than there is costs nothing. Elements of the wanted type
 * go straight to their place. */
#include "io/numpy/npy.h"

#include "core/threads.h"
#include "io/bytes.h"
#include "io/chunks.h"
#include "io/data.h"
#include "io/part_cut.h"

enum { PIECE = 8 << 20, PIECE_FIRST = 64 << 10, TILE = 32, WORTH_A_PART = 1 << 14 };

/* ------------------------------------------------------------------------------------------ file */

struct source {
    struct ki_input *input;
    const kiln_read_options *options;
    struct ki_npy npy;
    int64_t header; /* bytes */
};

static struct ki_place place_at(const struct source *s, int64_t offset) {
    return (struct ki_place){ki_input_name(s->input), 0, 0, offset};
}

static kiln_status read_header(struct source *s) {
    unsigned char prefix[12], *header;
    struct ki_place place = place_at(s, 0);
    size_t got;
    kiln_status status = KILN_OK;
    TRY(ki_input_peek(s->input, prefix, sizeof prefix, &got));
    TRY(ki_npy_header_size(&s->header, prefix, got, &place));
    header = ki_alloc((size_t)s->header);
    if (!header) return ki_fail_nomem((size_t)s->header, "the .npy header");
    status = ki_input_read(s->input, header, (size_t)s->header, &got);
    if (status == KILN_OK) status = ki_npy_header(&s->npy, header, got, &place);
    ki_free(header);
done:
    return status;
}

kiln_status ki_npy_check_matrix(const struct ki_npy *npy, const char *name) {
    const struct ki_place place = {name, 0, 0, 0};
    if (npy->kind == 'S' || npy->kind == 'U') {
        ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "an array of text; numbers are needed");
        return ki_hint("write text columns as CSV; they are one-hot encoded");
    }
    if (npy->dimensions == 0) {
        ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "a single number, not an array");
        return ki_hint("save a matrix of one or two dimensions");
    }
    if (npy->shape[1] > INT32_MAX)
        return ki_fail_at(KILN_ERR_LIMIT, &place, "the array has 2^31 columns or more");
    if (npy->shape[1] == 0 && npy->shape[0] > 0)
        return ki_fail_at(KILN_ERR_DATA, &place, "the array has rows but no columns");
    return KILN_OK;
}

kiln_status ki_npy_fail_nonfinite(const struct ki_npy *npy, const char *name, int64_t header, int64_t i,
                                  double value, kiln_type type) {
    bool fortran = npy->fortran && npy->dimensions == 2;
    int64_t row = fortran ? i % npy->shape[0] : i / npy->shape[1];
    int64_t column = fortran ? i / npy->shape[0] : i % npy->shape[1];
    const struct ki_place place = {name, 0, 0, header + i * npy->itemsize};
    ki_fail_at(KILN_ERR_PARSE, &place,
               "value %g at row %lld, column %lld (counted from 1) is not a finite %s", value,
               (long long)row + 1, (long long)column + 1, type == KILN_F32 ? "f32" : "f64");
    return ki_hint("repair or remove the row; --allow-nonfinite accepts such values");
}

/* raw: the bytes of element i. */
static kiln_status fail_number(const struct source *s, int64_t i, const void *raw) {
    return ki_npy_fail_nonfinite(&s->npy, ki_input_name(s->input), s->header, i, ki_npy_number(&s->npy, raw),
                                 s->options->type);
}

static kiln_status fail_short(const struct source *s, int64_t end) {
    struct ki_place place = place_at(s, end);
    ki_fail_at(KILN_ERR_PARSE, &place, "the file ends early: the header promises %lld bytes of data",
               (long long)s->npy.bytes);
    return ki_hint("the file is cut off; copy it again");
}

static kiln_status fail_long(const struct source *s) {
    struct ki_place place = place_at(s, s->header + s->npy.bytes);
    ki_fail_at(KILN_ERR_PARSE, &place, "bytes behind the array");
    return ki_hint("an .npy file holds one array; save several with scipy.sparse.save_npz or as files");
}

/* `count` elements from `first` on of a file of so many bytes; those of an array that lies by columns are all
 * of them, and come to their places by rows, a chunk at a time. */
static kiln_status read_file(void **values, const struct source *s, const struct ki_file *file, int64_t bytes,
                             int64_t first, int64_t count) {
    const kiln_read_options *options = s->options;
    const int64_t needed = count * ki_type_bytes(options->type); /* count is at most the file's bytes */
    const bool turned = ki_npy_by_columns(&s->npy);
    struct ki_numbers numbers = {.npy = &s->npy,
                                 .type = options->type,
                                 .turned = turned,
                                 .wanted = count,
                                 .any = options->allow_nonfinite,
                                 .bad = INT64_MAX};
    struct ki_chunks chunks = {.file = file,
                               .offset = s->header + first * s->npy.itemsize,
                               .count = count,
                               .element = s->npy.itemsize,
                               .threads = options->threads,
                               .use = ki_numbers_use,
                               .of = &numbers,
                               .watch = ki_input_watch(s->input)};
    unsigned char raw[8];
    kiln_status status = KILN_OK;
    TRY(ki_input_take(s->input));
    if (bytes - s->header < s->npy.bytes) TRY(fail_short(s, bytes));
    if (bytes - s->header > s->npy.bytes) TRY(fail_long(s));
    *values = numbers.values = ki_alloc((size_t)needed);
    if (!*values) TRY(ki_fail_nomem((size_t)needed, "the matrix"));
    if (ki_npy_native(&s->npy, options->type) && !turned) chunks.straight = *values;
    TRY(ki_chunks_run(&chunks));
    if (numbers.bad == INT64_MAX) goto done;
    TRY(ki_file_read(file, raw, s->header + (first + numbers.bad) * s->npy.itemsize, s->npy.itemsize));
    TRY(fail_number(s, first + numbers.bad, raw));
done:
    return status;
}

/* Appends the next `count` elements of a stream, converted and checked. buffer: for elements of another
 * type. */
static kiln_status read_piece(const struct source *s, struct ki_bytes *values, struct ki_bytes *buffer,
                              int64_t count) {
    const kiln_read_options *options = s->options;
    const int64_t real = options->type == KILN_F32 ? 4 : 8, before = values->size / real;
    const int64_t bytes = count * s->npy.itemsize;
    const bool native = ki_npy_native(&s->npy, options->type);
    size_t got;
    kiln_status status;
    if (!ki_bytes_room(values, count * real) || (!native && !ki_bytes_room(buffer, bytes)))
        return ki_fail_nomem((size_t)values->size, "the matrix");
    char *raw = native ? values->data + values->size : buffer->data;
    struct ki_numbers numbers = {.npy = &s->npy,
                                 .type = options->type,
                                 .values = values->data,
                                 .before = before,
                                 .wanted = before + count,
                                 .any = options->allow_nonfinite,
                                 .bad = INT64_MAX};
    struct ki_chunks chunks = {.memory = (unsigned char *)raw,
                               .count = count,
                               .element = s->npy.itemsize,
                               .threads = options->threads,
                               .use = ki_numbers_use,
                               .of = &numbers};
    TRY(ki_input_read(s->input, raw, (size_t)bytes, &got));
    if ((int64_t)got < bytes) TRY(fail_short(s, s->header + before * s->npy.itemsize + (int64_t)got));
    TRY(ki_chunks_run(&chunks));
    values->size += count * real;
    if (numbers.bad < INT64_MAX)
        TRY(fail_number(s, numbers.bad, raw + (numbers.bad - before) * s->npy.itemsize));
done:
    return status;
}

/* The next `left` elements of what cannot be read but in order; last: nothing comes behind them. */
static kiln_status read_stream(void **values, const struct source *s, int64_t left, bool last) {
    kiln_status status = KILN_OK;
    struct ki_bytes made = {0}, buffer = {0};
    int64_t piece = PIECE_FIRST / s->npy.itemsize;
    while (left > 0) {
        int64_t count = ki_min(left, piece);
        TRY(read_piece(s, &made, &buffer, count));
        left -= count;
        piece = ki_min(2 * piece, PIECE / s->npy.itemsize);
    }
    char beyond;
    size_t got = 0;
    if (last) TRY(ki_input_read(s->input, &beyond, 1, &got));
    if (got > 0) TRY(fail_long(s));
    *values = ki_bytes_take(&made);
    if (!*values) TRY(ki_fail_nomem(1, "the matrix"));
done:
    ki_bytes_free(&made);
    ki_bytes_free(&buffer);
    return status;
}

struct transposition {
    void *to; /* = from^T */
    const void *from;
    kiln_type type;
    int64_t rows, cols;
};

static void transpose_tile(const struct transposition *t, int64_t i0, int64_t j0) {
    const int64_t rows = t->rows, cols = t->cols, i1 = ki_min(i0 + TILE, rows), j1 = ki_min(j0 + TILE, cols);
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++)
            if (t->type == KILN_F64)
                ((double *)t->to)[i * cols + j] = ((const double *)t->from)[j * rows + i];
            else
                ((float *)t->to)[i * cols + j] = ((const float *)t->from)[j * rows + i];
}

/* begin, end: bands of TILE rows. */
static void transpose_bands(void *of, int64_t begin, int64_t end) {
    const struct transposition *t = of;
    for (int64_t band = begin; band < end; band++)
        for (int64_t j = 0; j < t->cols; j += TILE) transpose_tile(t, band * TILE, j);
}

/* Values of a stream by rows, where it has them by columns. */
static kiln_status turn(void **values, const struct ki_npy *npy, kiln_type type, int threads) {
    const int64_t rows = npy->shape[0], cols = npy->shape[1];
    const int64_t bytes = rows * cols * ki_type_bytes(type);
    if (!ki_npy_by_columns(npy)) return KILN_OK;
    void *turned = ki_alloc((size_t)bytes);
    if (!turned) return ki_fail_nomem((size_t)bytes, "the array in row order");
    struct transposition t = {turned, *values, type, rows, cols};
    ki_parallel_ranges(threads, (rows + TILE - 1) / TILE, 1 + WORTH_A_PART / TILE / cols, transpose_bands,
                       &t);
    ki_free(*values);
    *values = turned;
    return KILN_OK;
}

static void set_shape(struct ki_table *table, int64_t rows, int64_t cols) {
    table->format = KILN_DENSE;
    table->rows = rows;
    table->cols = cols;
    table->nnz = rows * cols;
}

kiln_status ki_read_npy(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct source s = {.input = input, .options = options};
    int64_t bytes;
    TRY(read_header(&s));
    TRY(ki_npy_check_matrix(&s.npy, ki_input_name(input)));
    const int64_t count = s.npy.shape[0] * s.npy.shape[1];
    const struct ki_file *file = ki_input_file(input, &bytes);
    if (file) {
        TRY(read_file(&table->values, &s, file, bytes, 0, count));
        TRY(ki_npy_labels(table, &s.npy, file, s.header, options));
    } else {
        TRY(read_stream(&table->values, &s, count, true));
        TRY(turn(&table->values, &s.npy, options->type, options->threads));
    }
    set_shape(table, s.npy.shape[0], s.npy.shape[1]);
done:
    return status;
}

/* Bytes that come before what is wanted. */
static kiln_status skip(const struct source *s, int64_t bytes) {
    char *room = ki_alloc(PIECE_FIRST);
    kiln_status status = KILN_OK;
    if (!room) return ki_fail_nomem(PIECE_FIRST, "rows that are passed over");
    for (int64_t left = bytes, some; left > 0; left -= some) {
        size_t got;
        some = ki_min(left, PIECE_FIRST);
        TRY(ki_input_read(s->input, room, (size_t)some, &got));
        if ((int64_t)got < some) TRY(fail_short(s, ki_input_offset(s->input)));
    }
done:
    ki_free(room);
    return status;
}

kiln_status ki_read_npy_part(struct ki_table *table, struct ki_input *input, const kiln_read_options *options,
                             struct ki_part part) {
    kiln_status status = KILN_OK;
    struct source s = {.input = input, .options = options};
    int64_t bytes;
    TRY(read_header(&s));
    TRY(ki_npy_check_matrix(&s.npy, ki_input_name(input)));
    const int64_t rows = s.npy.shape[0], cols = s.npy.shape[1];
    if (ki_npy_by_columns(&s.npy)) TRY(ki_part_refuse(ki_input_name(input), "it is stored by columns"));
    const int64_t first = ki_part_begin(rows, part.number, part.count);
    const int64_t own = ki_part_begin(rows, part.number + 1, part.count) - first;
    const struct ki_file *file = ki_input_file(input, &bytes);
    if (file) {
        TRY(read_file(&table->values, &s, file, bytes, first * cols, own * cols));
    } else {
        TRY(skip(&s, first * cols * s.npy.itemsize));
        TRY(read_stream(&table->values, &s, own * cols, part.number + 1 == part.count));
    }
    set_shape(table, own, cols);
done:
    return status;
}
