/* .npy: a header, then the elements as they lie in memory. They are read piece by piece into room that grows
 * as they come, so that a header which promises more than there is costs nothing. Elements of the wanted type
 * go straight to their place. */
#include "io/npy.h"

#include <math.h>

#include "core/threads.h"
#include "io/bytes.h"
#include "io/data.h"

enum { PIECE = 8 << 20, PIECE_FIRST = 64 << 10, TILE = 32, WORTH_A_PART = 1 << 14 };

/* -------------------------------------------------------------------------------------- elements */

static uint64_t load(const unsigned char *from, int64_t size, bool swapped) {
    uint64_t bits = 0;
    unsigned char turned[8];
    for (int64_t i = 0; swapped && i < size; i++) turned[i] = from[size - 1 - i];
    memcpy(&bits, swapped ? turned : from, (size_t)size);
    return bits;
}

/* One element as a double. Sizes are told apart outside the loops over elements. */
static inline double element(const unsigned char *from, char kind, int64_t size, bool swapped) {
    uint64_t bits = load(from, size, swapped);
    if (kind == 'f' && size == 8) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (kind == 'f') {
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    if (kind == 'b') return bits != 0;
    if (kind == 'u') return (double)bits;
    int unused = (int)(64 - 8 * size);
    return (double)((int64_t)(bits << unused) >> unused);
}

struct conversion {
    void *values;
    kiln_type type;
    const struct ki_npy *npy;
    const unsigned char *from;
};

/* One loop for each kind and size, so that the compiler sees both as constants. */
#define LOOP(kind_, size_)                                                                                   \
    if (c->npy->kind == (kind_) && c->npy->itemsize == (size_)) {                                            \
        for (int64_t i = begin; i < end; i++) {                                                              \
            double value = element(c->from + i * (size_), kind_, size_, c->npy->swapped);                    \
            if (c->type == KILN_F64)                                                                         \
                ((double *)c->values)[i] = value;                                                            \
            else                                                                                             \
                ((float *)c->values)[i] = (float)value;                                                      \
        }                                                                                                    \
        return;                                                                                              \
    }

static void convert_range(void *of, int64_t begin, int64_t end) {
    const struct conversion *c = of;
    LOOP('f', 4);
    LOOP('f', 8);
    LOOP('b', 1);
    LOOP('i', 1);
    LOOP('i', 2);
    LOOP('i', 4);
    LOOP('i', 8);
    LOOP('u', 1);
    LOOP('u', 2);
    LOOP('u', 4);
    LOOP('u', 8);
}

kiln_status ki_npy_convert(void *values, kiln_type type, const struct ki_npy *npy, const void *bytes,
                           int64_t count, int threads) {
    if (npy->kind == 'S' || npy->kind == 'U')
        return ki_fail(KILN_ERR_UNSUPPORTED, "an array of text; numbers are needed");
    struct conversion c = {values, type, npy, bytes};
    ki_parallel_ranges(threads, count, WORTH_A_PART, convert_range, &c);
    return KILN_OK;
}

bool ki_npy_integers(int64_t *values, const struct ki_npy *npy, const void *bytes, int64_t count) {
    const unsigned char *from = bytes;
    int unused = (int)(64 - 8 * npy->itemsize);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = load(from + i * npy->itemsize, npy->itemsize, npy->swapped);
        if (npy->kind == 'u' && bits > INT64_MAX) return false;
        values[i] = npy->kind == 'u' ? (int64_t)bits : (int64_t)(bits << unused) >> unused;
    }
    return true;
}

struct search {
    const void *values;
    kiln_type type;
    _Atomic int64_t first;
};

static void search_range(void *of, int64_t begin, int64_t end) {
    struct search *s = of;
    const float *narrow = s->values;
    const double *wide = s->values;
    int64_t i = begin;
    if (s->type == KILN_F64)
        while (i < end && isfinite(wide[i])) i++;
    else
        while (i < end && isfinite(narrow[i])) i++;
    if (i < end) ki_lower(&s->first, i);
}

int64_t ki_first_nonfinite(const void *values, kiln_type type, int64_t count, int threads) {
    struct search s = {values, type, count};
    ki_parallel_ranges(threads, count, WORTH_A_PART, search_range, &s);
    return s.first;
}

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

/* Appends the next `count` elements, converted and checked. buffer: for elements of another type. */
static kiln_status read_piece(const struct source *s, struct ki_bytes *values, struct ki_bytes *buffer,
                              int64_t count) {
    const kiln_read_options *options = s->options;
    int64_t real = options->type == KILN_F32 ? 4 : 8, done_before = values->size / real;
    int64_t bytes = count * s->npy.itemsize;
    bool same = s->npy.kind == 'f' && s->npy.itemsize == real && !s->npy.swapped;
    if (!ki_bytes_room(values, count * real) || (!same && !ki_bytes_room(buffer, bytes)))
        return ki_fail_nomem((size_t)values->size, "the matrix");
    char *to = values->data + values->size, *raw = same ? to : buffer->data;
    size_t got;
    kiln_status status = ki_input_read(s->input, raw, (size_t)bytes, &got);
    if (status != KILN_OK) return status;
    if ((int64_t)got < bytes) {
        struct ki_place place = place_at(s, s->header + done_before * s->npy.itemsize + (int64_t)got);
        ki_fail_at(KILN_ERR_PARSE, &place, "the file ends early: the header promises %lld bytes of data",
                   (long long)s->npy.bytes);
        return ki_hint("the file is cut off; copy it again");
    }
    if (!same) status = ki_npy_convert(to, options->type, &s->npy, raw, count, options->threads);
    if (status != KILN_OK) return status;
    values->size += count * real;
    if (options->allow_nonfinite) return KILN_OK;
    int64_t bad = ki_first_nonfinite(to, options->type, count, options->threads);
    if (bad == count) return KILN_OK;
    double value;
    status =
        ki_npy_convert(&value, KILN_F64, &s->npy, same ? to + bad * real : raw + bad * s->npy.itemsize, 1, 1);
    if (status != KILN_OK) return status;
    return ki_npy_fail_nonfinite(&s->npy, ki_input_name(s->input), s->header, done_before + bad, value,
                                 options->type);
}

static kiln_status read_elements(const struct source *s, struct ki_bytes *values) {
    kiln_status status = KILN_OK;
    struct ki_bytes buffer = {0};
    int64_t left = s->npy.shape[0] * s->npy.shape[1], piece = PIECE_FIRST / s->npy.itemsize;
    while (left > 0) {
        int64_t count = ki_min(left, piece);
        TRY(read_piece(s, values, &buffer, count));
        left -= count;
        piece = ki_min(2 * piece, PIECE / s->npy.itemsize);
    }
    char beyond;
    size_t got;
    TRY(ki_input_read(s->input, &beyond, 1, &got));
    if (got > 0) {
        struct ki_place place = place_at(s, s->header + s->npy.bytes);
        ki_fail_at(KILN_ERR_PARSE, &place, "bytes behind the array");
        TRY(ki_hint("an .npy file holds one array; save several with scipy.sparse.save_npz or as files"));
    }
done:
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

static kiln_status turn(const struct source *s, struct ki_bytes *values) {
    int64_t rows = s->npy.shape[0], cols = s->npy.shape[1];
    if (!s->npy.fortran || s->npy.dimensions < 2 || rows < 2 || cols < 2) return KILN_OK;
    struct ki_bytes turned = {0};
    if (!ki_bytes_room(&turned, values->size))
        return ki_fail_nomem((size_t)values->size, "the array in row order");
    struct transposition t = {turned.data, values->data, s->options->type, rows, cols};
    ki_parallel_ranges(s->options->threads, (rows + TILE - 1) / TILE, 1 + WORTH_A_PART / TILE / cols,
                       transpose_bands, &t);
    turned.size = values->size;
    ki_bytes_free(values);
    *values = turned;
    return KILN_OK;
}

kiln_status ki_read_npy(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct source s = {.input = input, .options = options};
    struct ki_bytes values = {0};
    TRY(read_header(&s));
    TRY(ki_npy_check_matrix(&s.npy, ki_input_name(input)));
    TRY(read_elements(&s, &values));
    TRY(turn(&s, &values));
    table->format = KILN_DENSE;
    table->rows = s.npy.shape[0];
    table->cols = s.npy.shape[1];
    table->nnz = table->rows * table->cols;
    table->values = ki_bytes_take(&values);
    if (!table->values) TRY(ki_fail_nomem(1, "the matrix"));
done:
    ki_bytes_free(&values);
    return status;
}
