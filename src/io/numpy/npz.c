/* A sparse matrix as scipy.sparse.save_npz writes it: a zip archive of the arrays format, shape, indptr,
 * indices, data.
 *
 * The end of a zip archive must be read first: a file's arrays are then read where they lie, by several
 * threads (io/chunks.h); what comes from a pipe is read into memory as a whole. Nothing in it is trusted:
 * lengths must fit each other, indptr must not decrease, indices must lie within the shape. The result is
 * canonical (io/numpy/npz_canonical.c); CSC is turned into CSR. */
#include <stdio.h>
#include <zlib.h>

#include "core/threads.h"
#include "io/bytes.h"
#include "io/data.h"
#include "io/numpy/npz.h"
#include "io/text.h"

enum {
    FIRST_READ = 64 << 10,
    LAST_READ = 8 << 20,
    SHORT_MEMBER = 2 * KI_NPY_HEADER_LIMIT,
    BLOCK = 1024,
    WORTH_A_PART = 1 << 14,
    ROWS_FREE = 1 << 20,
    ROWS_PER_BYTE = 8
};

kiln_status ki_npz_fail(const struct ki_npz *s, kiln_status status, const char *reason) {
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(status, &place, "%s", reason);
    return ki_hint("write the matrix again with scipy.sparse.save_npz");
}

/* ----------------------------------------------------------------------------------------- arrays */

static kiln_status read_all(struct ki_npz *s, struct ki_input *input) {
    for (int64_t most = FIRST_READ;; most = ki_min(2 * most, LAST_READ)) {
        size_t got;
        if (!ki_bytes_room(&s->bytes, most)) return ki_fail_nomem((size_t)s->bytes.size, "the .npz file");
        kiln_status status = ki_input_read(input, s->bytes.data + s->bytes.size, (size_t)most, &got);
        if (status != KILN_OK) return status;
        s->bytes.size += (int64_t)got;
        if ((int64_t)got < most) return KILN_OK;
    }
}

/* The first bytes of a member that lies in the archive as it is; a short one whole, which is then checked at
 * once. */
static kiln_status begin_stored(const unsigned char **begin, struct ki_npz_array *a, const struct ki_npz *s,
                                int64_t most) {
    *begin = a->bytes.memory;
    if (!*begin) {
        if (!ki_bytes_room(&a->room, most)) return ki_fail_nomem((size_t)most, "a member of an archive");
        *begin = (unsigned char *)a->room.data;
        kiln_status status = ki_file_read(a->bytes.file, a->room.data, a->bytes.offset, most);
        if (status != KILN_OK) return status;
    }
    if (most < a->member->size) return KILN_OK;
    a->bytes.memory = *begin;
    a->bytes.checked = true;
    return ki_zip_check(&s->zip, a->member, (uint32_t)crc32(0, *begin, (uInt)most));
}

static kiln_status fail_member(const struct ki_npz_array *a, const struct ki_npz *s, const char *what) {
    char reason[120];
    snprintf(reason, sizeof reason, "the member '%.*s' %s", (int)a->member->name_size, a->member->name, what);
    return ki_npz_fail(s, KILN_ERR_PARSE, reason);
}

kiln_status ki_npz_open(struct ki_npz_array *a, struct ki_npz *s, const char *name) {
    kiln_status status = KILN_OK;
    struct ki_place place = {s->file, 0, 0, -1};
    const unsigned char *begin;
    if (!(a->member = ki_zip_find(&s->zip, name))) {
        ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "the .npz archive has no member '%s'", name);
        return ki_hint("scipy.sparse.save_npz writes all of a sparse matrix; a dense one that --map is to "
                       "read must be an .npy file, as numpy.save writes it");
    }
    place.offset = a->member->begin;
    const int64_t most = ki_min(a->member->size, SHORT_MEMBER);
    if (a->unpacked)
        s->left -= a->member->size;
    else
        TRY(ki_zip_open_member(&a->bytes, &s->zip, a->member, &a->room, &s->left));
    begin = a->bytes.memory;
    if (!a->bytes.checked) TRY(begin_stored(&begin, a, s, most));
    TRY(ki_npy_header_size(&a->header, begin, (size_t)most, &place));
    TRY(ki_npy_header(&a->npy, begin, (size_t)most, &place));
    if (a->npy.bytes != a->member->size - a->header)
        TRY(fail_member(a, s, "has not the length of its shape"));
    a->count = a->npy.shape[0] * a->npy.shape[1];
    a->crc = (uint32_t)crc32(0, begin, (uInt)a->header);
done:
    return status;
}

kiln_status ki_npz_elements(struct ki_npz_array *a, struct ki_npz *s, void *straight,
                            void (*use)(void *of, const unsigned char *raw, int64_t first, int64_t count),
                            void *of) {
    struct ki_chunks chunks = {.file = a->bytes.file,
                               .offset = a->bytes.offset + a->header,
                               .memory = a->bytes.memory ? a->bytes.memory + a->header : NULL,
                               .count = a->count,
                               .element = a->npy.itemsize,
                               .threads = s->options->threads,
                               .straight = straight,
                               .use = use,
                               .of = of,
                               .checked = !a->bytes.checked,
                               .crc = a->crc,
                               .watch = s->watch};
    kiln_status status = ki_chunks_run(&chunks);
    return status == KILN_OK && !a->bytes.checked ? ki_zip_check(&s->zip, a->member, chunks.crc) : status;
}

/* A one-dimensional array of integers ('i') or of any numbers ('f'). */
static kiln_status open_numbers(struct ki_npz_array *array, struct ki_npz *s, const char *name, char kind) {
    kiln_status status = ki_npz_open(array, s, name);
    if (status != KILN_OK) return status;
    char found = array->npy.kind;
    bool number = found == 'i' || found == 'u' || (kind == 'f' && (found == 'f' || found == 'b'));
    if (array->npy.dimensions == 1 && number) return KILN_OK;
    return fail_member(array, s, kind == 'i' ? "is not a list of integers" : "is not a list of real numbers");
}

/* "csr" or "csc", in bytes or in UTF-32. */
static kiln_status read_format(struct ki_npz *s) {
    char name[16] = "";
    kiln_status status = ki_npz_open(&s->format, s, "format.npy");
    if (status != KILN_OK) return status;
    const struct ki_npy *npy = &s->format.npy;
    const unsigned char *text = s->format.bytes.memory ? s->format.bytes.memory + s->format.header : NULL;
    int64_t step = npy->kind == 'U' ? 4 : 1, last = npy->swapped ? step - 1 : 0;
    if (!text || (npy->kind != 'S' && npy->kind != 'U') || npy->dimensions != 0)
        return ki_npz_fail(s, KILN_ERR_PARSE, "the member 'format.npy' is not a text");
    for (int64_t i = 0; i < npy->itemsize && i < (int64_t)sizeof name - 1; i++)
        name[i] = (char)text[i * step + last];
    s->by_column = strcmp(name, "csc") == 0;
    if (s->by_column || strcmp(name, "csr") == 0) return KILN_OK;
    struct ki_excerpt shown = ki_word(name, name + strlen(name));
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "a sparse matrix of format '%s'; csr and csc are read",
               shown.text);
    return ki_hint("save it as CSR: scipy.sparse.save_npz(name, A.tocsr())");
}

static kiln_status read_shape(struct ki_npz *s) {
    int64_t shape[2];
    kiln_status status = open_numbers(&s->shape, s, "shape.npy", 'i');
    if (status != KILN_OK) return status;
    if (s->shape.count != 2 || !s->shape.bytes.memory ||
        !ki_npy_integers(shape, &s->shape.npy, s->shape.bytes.memory + s->shape.header, 2) || shape[0] < 0 ||
        shape[1] < 0)
        return ki_npz_fail(s, KILN_ERR_PARSE, "the member 'shape.npy' is not a pair of lengths");
    s->rows = shape[0];
    s->cols = shape[1];
    if (s->cols > INT32_MAX || (s->by_column && s->rows > INT32_MAX))
        return ki_npz_fail(s, KILN_ERR_LIMIT, "the matrix has 2^31 columns or more");
    s->lines = s->by_column ? s->cols : s->rows;
    s->across = s->by_column ? s->rows : s->cols;
    return KILN_OK;
}

/* ---------------------------------------------------------------------------------------- matrix */

struct starts {
    const struct ki_npy *npy;
    int64_t *start;
    atomic_bool wrong;
};

static void use_starts(void *of, const unsigned char *raw, int64_t first, int64_t count) {
    struct starts *x = of;
    if (!ki_npy_integers(x->start + first, x->npy, raw, count)) x->wrong = true;
}

static void check_starts(void *of, int64_t begin, int64_t end) {
    struct starts *x = of;
    bool fine = true;
    for (int64_t i = begin; i < end; i++) fine &= x->start[i] <= x->start[i + 1];
    if (!fine) x->wrong = true;
}

static kiln_status read_indptr(int64_t **start, struct ki_npz *s) {
    kiln_status status = open_numbers(&s->indptr, s, "indptr.npy", 'i');
    if (status != KILN_OK) return status;
    int64_t count = s->indptr.count;
    if (count - 1 != s->lines)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indptr has not one entry more than the shape has lines");
    *start = ki_alloc((size_t)count * sizeof **start);
    if (!*start) return ki_fail_nomem((size_t)count * sizeof **start, "the row starts");
    struct starts x = {.npy = &s->indptr.npy, .start = *start};
    status = ki_npz_elements(&s->indptr, s, NULL, use_starts, &x);
    if (status != KILN_OK) return status;
    ki_parallel_ranges(s->options->threads, s->lines, WORTH_A_PART, check_starts, &x);
    if (x.wrong || (*start)[0] != 0)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indptr does not begin with 0, or decreases");
    return KILN_OK;
}

kiln_status ki_npz_outline(int64_t **start, struct ki_npz *s) {
    kiln_status status;
    TRY(read_format(s));
    TRY(read_shape(s));
    TRY(read_indptr(start, s));
done:
    return status;
}

struct indices {
    const struct ki_npz *source;
    int32_t *col;
    int64_t nnz;
    _Atomic int64_t bad; /* the first that lies outside the matrix */
};

static void use_indices(void *of, const unsigned char *raw, int64_t first, int64_t count) {
    struct indices *x = of;
    const struct ki_npy *npy = &x->source->indices.npy;
    const int64_t end = ki_min(first + count, x->nnz), across = x->source->across;
    for (int64_t from = first; from < end; from += BLOCK) {
        int64_t wide[BLOCK];
        const int64_t here = ki_min(BLOCK, end - from);
        const bool fine = ki_npy_integers(wide, npy, raw + (from - first) * npy->itemsize, here);
        bool inside = true;
        if (!fine) {
            ki_lower(&x->bad, from);
            continue;
        }
        for (int64_t i = 0; i < here; i++) {
            inside &= (uint64_t)wide[i] < (uint64_t)across;
            x->col[from + i] = (int32_t)wide[i];
        }
        for (int64_t i = 0; i < here && !inside; i++)
            if (wide[i] < 0 || wide[i] >= across) ki_lower(&x->bad, from + i);
    }
}

static kiln_status read_indices(int32_t **indices, struct ki_npz *s, int64_t nnz) {
    kiln_status status = open_numbers(&s->indices, s, "indices.npy", 'i');
    if (status != KILN_OK) return status;
    if (s->indices.count < nnz)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indptr points behind the end of indices");
    *indices = ki_alloc((size_t)nnz * sizeof **indices);
    if (!*indices) return ki_fail_nomem((size_t)nnz * sizeof **indices, "the columns");
    struct indices x = {s, *indices, nnz, nnz};
    status = ki_npz_elements(&s->indices, s, NULL, use_indices, &x);
    if (status != KILN_OK || x.bad == nnz) return status;
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(KILN_ERR_PARSE, &place, "indices[%lld] is outside 0 to %lld", (long long)x.bad,
               (long long)s->across - 1);
    return ki_hint("scipy's A.check_format() finds this too");
}

/* *finite: all of them are, or may be otherwise. */
static kiln_status read_values(void **values, bool *finite, struct ki_npz *s, int64_t nnz) {
    kiln_type type = s->options->type;
    kiln_status status = open_numbers(&s->data, s, "data.npy", 'f');
    if (status != KILN_OK) return status;
    if (s->data.count != s->indices.count)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indices and data differ in length");
    int64_t bytes = s->data.count * (type == KILN_F32 ? 4 : 8);
    *values = ki_alloc((size_t)bytes);
    if (!*values) return ki_fail_nomem((size_t)bytes, "the values");
    struct ki_numbers numbers = {&s->data.npy, type, *values, 0, nnz, s->options->allow_nonfinite,
                                 INT64_MAX,    false};
    void *straight = ki_npy_native(&s->data.npy, type) ? *values : NULL;
    status = ki_npz_elements(&s->data, s, straight, ki_numbers_use, &numbers);
    *finite = numbers.bad == INT64_MAX;
    return status;
}

/* Row starts of a CSC matrix that states many more rows than it has bytes would cost memory that nobody
 * sent. */
static kiln_status check_rows(const struct ki_npz *s) {
    int64_t file_bytes = s->zip.size;
    if (s->rows <= ROWS_FREE || s->rows / ROWS_PER_BYTE <= file_bytes) return KILN_OK;
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(KILN_ERR_LIMIT, &place, "a csc matrix of %lld rows in a file of %lld bytes",
               (long long)s->rows, (long long)file_bytes);
    return ki_hint("save it as CSR: scipy.sparse.save_npz(name, A.tocsr())");
}

/* table: rows from columns. The entries of a row come out in the order of their columns. */
static kiln_status from_columns(struct ki_table *table, const struct ki_npz *s,
                                const struct ki_table *columns) {
    bool narrow = s->options->type == KILN_F32;
    int64_t nnz = columns->nnz, *next = ki_calloc((size_t)(s->rows + 1) * sizeof *next);
    table->row_start = next;
    table->col = ki_alloc((size_t)nnz * sizeof *table->col);
    table->values = ki_alloc((size_t)nnz * (narrow ? 4 : 8));
    if (!next || !table->col || !table->values) return ki_fail_nomem((size_t)nnz * 12, "the matrix by rows");
    for (int64_t i = 0; i < nnz; i++) next[columns->col[i]]++;
    for (int64_t i = 0, sum = 0; i <= s->rows; i++) {
        int64_t count = next[i];
        next[i] = sum;
        sum += count;
    }
    for (int64_t j = 0; j < s->cols; j++)
        for (int64_t i = columns->row_start[j]; i < columns->row_start[j + 1]; i++) {
            int64_t at = next[columns->col[i]]++;
            table->col[at] = (int32_t)j;
            if (narrow)
                ((float *)table->values)[at] = ((float *)columns->values)[i];
            else
                ((double *)table->values)[at] = ((double *)columns->values)[i];
        }
    memmove(next + 1, next,
            (size_t)s->rows * sizeof *next); /* each start had moved to the next one's place */
    next[0] = 0;
    return KILN_OK;
}

/* The members that hold nearly all of an archive, inflated side by side. */
struct inflating {
    struct ki_npz *s;
    struct ki_npz_array *array[2];
    const char *name[2];
    int64_t left[2];
    kiln_status status[2];
    struct ki_error_copy error[2];
};

static void inflate_member(void *of, int i) {
    struct inflating *x = of;
    struct ki_npz_array *a = x->array[i];
    const struct ki_zip_member *member = ki_zip_find(&x->s->zip, x->name[i]);
    if (!member || member->method != 8) return;
    x->status[i] = ki_zip_open_member(&a->bytes, &x->s->zip, member, &a->room, &x->left[i]);
    if (x->status[i] != KILN_OK) ki_error_keep(&x->error[i]);
    a->unpacked = true;
}

/* Without a file's indices, or where these are as long as is allowed, there is nothing to do. */
static kiln_status inflate_side_by_side(struct ki_npz *s) {
    const struct ki_zip_member *first = ki_zip_find(&s->zip, "indices.npy");
    struct inflating x = {.s = s,
                          .array = {&s->indices, &s->data},
                          .name = {"indices.npy", "data.npy"},
                          .left = {s->left, s->left}};
    if (!first || first->size >= s->left) return KILN_OK;
    x.left[1] -= first->size;
    ki_parallel(s->options->threads, 2, inflate_member, &x);
    for (int i = 0; i < 2; i++)
        if (x.status[i] != KILN_OK) return ki_error_renew(&x.error[i]);
    return KILN_OK;
}

static kiln_status read_matrix(struct ki_table *table, bool *finite, struct ki_npz *s) {
    kiln_status status = KILN_OK;
    struct ki_table found = {0};
    TRY(ki_npz_outline(&found.row_start, s));
    found.nnz = found.row_start[s->lines];
    TRY(inflate_side_by_side(s));
    TRY(read_indices(&found.col, s, found.nnz));
    TRY(read_values(&found.values, finite, s, found.nnz));
    if (s->by_column) {
        TRY(check_rows(s));
        TRY(from_columns(table, s, &found));
    } else {
        table->row_start = found.row_start;
        table->col = found.col;
        table->values = found.values;
        found.row_start = NULL;
        found.col = NULL;
        found.values = NULL;
    }
    table->format = KILN_CSR;
    table->rows = s->rows;
    table->cols = s->cols;
    table->nnz = found.nnz;
done:
    ki_table_clear(&found);
    return status;
}

void ki_npz_clear(struct ki_npz *s) {
    ki_bytes_free(&s->bytes);
    struct ki_npz_array *const arrays[] = {&s->format, &s->shape, &s->indptr, &s->indices, &s->data};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        ki_bytes_free(&arrays[i]->room);
        ki_zip_stream_free(arrays[i]->stream);
    }
}

/* Only a file's end is read, where the directory is; what cannot be read but in order comes to memory. */
static kiln_status open_archive(struct ki_npz *s, struct ki_input *input) {
    int64_t bytes;
    const struct ki_file *file = ki_input_file(input, &bytes);
    kiln_status status;
    if (file) {
        TRY(ki_input_take(input));
        TRY(ki_zip_open_file(&s->zip, &s->bytes, file, bytes));
    } else {
        TRY(read_all(s, input));
        TRY(ki_zip_open(&s->zip, (const unsigned char *)s->bytes.data, s->bytes.size, s->file));
    }
done:
    return status;
}

kiln_status ki_read_npz(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_npz s = {.options = options, .file = ki_input_name(input), .watch = ki_input_watch(input)};
    bool finite = true;
    s.left = options->limit > 0 ? options->limit : INT64_MAX;
    TRY(open_archive(&s, input));
    if (!ki_zip_find(&s.zip, "format.npy")) {
        status = ki_npz_dense(table, &s);
        goto done;
    }
    TRY(read_matrix(table, &finite, &s));
    TRY(ki_npz_canonical(table, finite, &s));
done:
    ki_npz_clear(&s);
    return status;
}
