/* Matrices with codes: how they are made, of codes or of entries. */
#include "core/codes/entries.h"

#include <stdlib.h>
#include <stdatomic.h>

#include "core/narrow/narrow.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/threads.h"

enum { PARTS = 64 }; /* of the rows, for loops over all */

bool ki_codes_fit(const kiln_device *device) {
    return !ki_device_shares(device) && (ki_on_cpu(device) || !device->options.deterministic);
}

int64_t ki_codes_bytes(const struct ki_codes *codes, int64_t rows) {
    int64_t bytes = ki_matrix_bytes(codes->numbers);
    for (int64_t c = 0; c < codes->count; c++) bytes += rows * codes->column[c].bytes;
    return bytes;
}

void ki_codes_free(struct ki_codes *codes) {
    if (!codes) return;
    kiln_matrix_free(codes->numbers);
    kiln_matrix_free(codes->words);
    ki_free(codes->place);
    ki_free(codes->column);
    ki_free(codes);
}

/* ---- making them ---- */

/* Codes whose arrays lie in host memory until all are written. */
struct making {
    struct ki_codes *codes;
    kiln_type type;
    int64_t rows, cols, width; /* width: numbers of a row */
    void *numbers, *words;     /* from ki_alloc */
    int64_t words_count;
};

int ki_code_bytes(int64_t levels) {
    return levels <= UINT8_MAX ? 1 : levels <= UINT16_MAX ? 2 : 4;
}

/* Sums of a level for neighbouring threads of a GPU, where few levels are added to all the time. */
static int spread_of(int64_t levels) {
    enum { MOST = 32, ALL = 512 };
    int spread = 1;
    while (spread < MOST && 2 * spread * levels <= ALL) spread *= 2;
    return spread;
}

static void put_code(struct ki_code_column *column, int64_t row, int64_t code) {
    const uint16_t two = (uint16_t)code;
    const int32_t four = (int32_t)code;
    switch (column->bytes) {
    case 1: ((uint8_t *)column->codes)[row] = (uint8_t)code; break;
    case 2: memcpy((char *)column->codes + 2 * row, &two, 2); break;
    default: memcpy((char *)column->codes + 4 * row, &four, 4); break;
    }
}

static void making_free(struct making *m) {
    ki_codes_free(m->codes);
    ki_free(m->numbers);
    ki_free(m->words);
}

/* The columns and places of categories that ascend and do not overlap. */
static void lay_out(struct ki_codes *codes, int64_t cols, const struct ki_category *categories) {
    int64_t next = 0;
    for (int64_t c = 0, j = 0; c <= codes->count; c++) {
        const int64_t until = c < codes->count ? categories[c].first : cols;
        for (; next < until; next++) codes->place[j++] = (int32_t)next;
        if (c == codes->count) break;
        struct ki_code_column *column = &codes->column[c];
        *column = (struct ki_code_column){.first = categories[c].first,
                                          .levels = categories[c].levels,
                                          .slot = codes->slots,
                                          .bytes = ki_code_bytes(categories[c].levels),
                                          .spread = spread_of(categories[c].levels)};
        codes->slots += column->levels + 1;
        next = column->first + column->levels;
    }
}

/* By levels, of equal ones the first. */
static int compare_columns(const void *a, const void *b) {
    const struct ki_code_column *x = *(struct ki_code_column *const *)a,
                                *y = *(struct ki_code_column *const *)b;
    if (x->levels != y->levels) return x->levels < y->levels ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Bytes before the codes. */
static int64_t head_bytes(const struct making *m) {
    return ki_ceil_div((m->codes->count * KI_CODE_WORDS + m->width) * 4, 16) * 16;
}

/* The beginning of the words. */
static kiln_status put_head(const struct making *m) {
    const struct ki_codes *codes = m->codes;
    const size_t bytes = (size_t)codes->count * sizeof(struct ki_code_column *);
    struct ki_code_column **ranked = ki_alloc(bytes);
    if (!ranked) return ki_fail_nomem(bytes, "categories");
    for (int64_t c = 0; c < codes->count; c++) ranked[c] = &codes->column[c];
    qsort(ranked, (size_t)codes->count, sizeof *ranked, compare_columns);
    int32_t *word = m->words;
    int64_t near = 0;
    for (int64_t rank = 0; rank < codes->count; rank++, word += KI_CODE_WORDS) {
        struct ki_code_column *column = ranked[rank];
        column->near = near += column->levels * column->spread;
        word[KI_CODE_AT] = (int32_t)(column->at / 16);
        word[KI_CODE_BYTES] = column->bytes;
        word[KI_CODE_FIRST] = (int32_t)column->first;
        word[KI_CODE_LEVELS] = (int32_t)column->levels;
        word[KI_CODE_SPREAD] = column->spread;
        word[KI_CODE_NEAR] = (int32_t)ki_min(near, INT32_MAX);
    }
    memcpy(word, codes->place, (size_t)m->width * 4);
    ki_free(ranked);
    return KILN_OK;
}

/* Room for codes and numbers, which are not yet written. Freed by making_free, whatever it returns. */
static kiln_status making_begin(struct making *m, kiln_type type, int64_t rows, int64_t cols,
                                const struct ki_category *categories, int64_t count) {
    *m = (struct making){ki_calloc(sizeof *m->codes), type, rows, cols, cols, NULL, NULL, 0};
    if (!m->codes) return ki_fail_nomem(sizeof *m->codes, "a matrix");
    for (int64_t c = 0; c < count; c++) m->width -= categories[c].levels;
    int64_t bytes;
    if (!ki_mul3(rows, m->width, ki_type_bytes(type), &bytes)) return ki_fail_nomem(SIZE_MAX, "a matrix");
    m->codes->count = count;
    m->codes->place = ki_alloc((size_t)m->width * sizeof *m->codes->place);
    m->codes->column = ki_calloc((size_t)count * sizeof *m->codes->column);
    m->numbers = ki_alloc((size_t)bytes);
    if (!m->codes->place || !m->codes->column || !m->numbers) return ki_fail_nomem((size_t)bytes, "a matrix");
    lay_out(m->codes, cols, categories);
    bytes = head_bytes(m);
    for (int64_t c = 0; c < count; c++) {
        int64_t more;
        m->codes->column[c].at = bytes;
        if (!ki_mul(rows, m->codes->column[c].bytes, &more) || more / 16 + bytes / 16 >= INT32_MAX)
            return ki_fail(KILN_ERR_ARGUMENT, "the codes of %lld rows overflow", (long long)rows);
        bytes += ki_ceil_div(more, 16) * 16;
    }
    m->words_count = bytes / 4;
    m->words = ki_calloc((size_t)bytes);
    if (!m->words) return ki_fail_nomem((size_t)bytes, "categories");
    ki_codes_point(m->codes->column, count, m->words);
    return put_head(m);
}

/* Codes that have been written go to the device. */
static kiln_status making_end(struct ki_codes **codes, struct making *m, kiln_device *device) {
    kiln_status status;
    struct ki_codes *made = m->codes;
    made->nnz = ki_codes_count(made, m->numbers, m->width, m->rows, m->type, device->threads);
    TRY(ki_matrix_adopt_dense(&made->numbers, device, m->type, m->rows, m->width, m->numbers));
    m->numbers = NULL;
    TRY(ki_matrix_adopt_dense(&made->words, device, KILN_F32, m->words_count, 1, m->words));
    m->words = NULL;
    if (!ki_on_cpu(device)) ki_codes_point(made->column, made->count, NULL);
    *codes = made;
    m->codes = NULL;
done:
    return status;
}

kiln_status ki_matrix_adopt_codes(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                  int64_t cols, struct ki_codes *codes) {
    const kiln_status status = ki_matrix_shell(A, device, type, KILN_CSR, rows, cols);
    if (status != KILN_OK) return status;
    (*A)->codes = codes;
    (*A)->given = true;
    (*A)->nnz = codes->nnz;
    return KILN_OK;
}

/* ---- of entries ---- */

struct packing {
    struct making made;
    const int64_t *row_start;
    const int32_t *col;
    const void *values;
    const int32_t *source; /* of each column: which number it is, or -1 - its category */
    atomic_bool odd;       /* a category is none, or an entry is 0 */
};

static bool equals(kiln_type type, const char *value, double number) {
    float narrow;
    double wide;
    memcpy(&narrow, value, sizeof narrow);
    if (type == KILN_F32) return (double)narrow == number;
    memcpy(&wide, value, sizeof wide);
    return wide == number;
}

static void pack_row(struct packing *p, int64_t row, char *numbers, int64_t element) {
    const kiln_type type = p->made.type;
    for (int64_t e = p->row_start[row]; e < p->row_start[row + 1]; e++) {
        const int32_t source = p->source[p->col[e]];
        const char *value = (const char *)p->values + e * element;
        if (source >= 0) {
            memcpy(numbers + source * element, value, (size_t)element);
            if (equals(type, value, 0)) atomic_store(&p->odd, true);
            continue;
        }
        struct ki_code_column *column = &p->made.codes->column[-1 - source];
        if (!equals(type, value, 1) || ki_code_at(column, row) < column->levels) atomic_store(&p->odd, true);
        put_code(column, row, p->col[e] - column->first);
    }
}

static void pack_part(void *of, int part) {
    struct packing *p = of;
    const struct making *m = &p->made;
    const int64_t end = ki_part_begin(m->rows, part + 1, PARTS), element = ki_type_bytes(m->type),
                  bytes = m->width * element;
    for (int64_t i = ki_part_begin(m->rows, part, PARTS); i < end; i++) {
        char *row = (char *)m->numbers + i * bytes;
        memset(row, 0, (size_t)bytes);
        for (int64_t c = 0; c < m->codes->count; c++)
            put_code(&m->codes->column[c], i, m->codes->column[c].levels);
        pack_row(p, i, row, element);
    }
}

bool ki_codes_pay(kiln_type type, int64_t rows, int64_t cols, int64_t nnz,
                  const struct ki_category *categories, int64_t count) {
    double numbers = (double)cols, row = 0;
    for (int64_t c = 0; c < count; c++) {
        numbers -= (double)categories[c].levels;
        row += ki_code_bytes(categories[c].levels);
    }
    row += numbers * (double)ki_type_bytes(type);
    const double entries = (double)nnz * (double)(ki_type_bytes(type) + 4) + 8 * (double)rows;
    return count > 0 && (double)rows * row <= 0.75 * entries;
}

kiln_status ki_codes_pack(struct ki_codes **codes, kiln_device *device, kiln_type type, int64_t rows,
                          int64_t cols, const int64_t *row_start, const int32_t *col, const void *values,
                          const struct ki_category *categories, int64_t count) {
    kiln_status status;
    struct packing p = {.row_start = row_start, .col = col, .values = values};
    int32_t *source = NULL;
    *codes = NULL;
    if (!ki_codes_pay(type, rows, cols, row_start[rows], categories, count)) return KILN_OK;
    TRY(making_begin(&p.made, type, rows, cols, categories, count));
    source = ki_alloc((size_t)cols * sizeof *source);
    if (!source) TRY(ki_fail_nomem((size_t)cols * sizeof *source, "categories"));
    for (int64_t j = 0; j < p.made.width; j++) source[p.made.codes->place[j]] = (int32_t)j;
    for (int64_t c = 0; c < count; c++)
        for (int64_t l = 0; l < categories[c].levels; l++)
            source[categories[c].first + l] = (int32_t)(-1 - c);
    p.source = source;
    ki_parallel(device->threads, PARTS, pack_part, &p);
    if (!atomic_load(&p.odd)) TRY(making_end(codes, &p.made, device));
done:
    ki_free(source);
    making_free(&p.made);
    return status;
}

/* ---- of the caller's codes ---- */

static int64_t given_at(const kiln_codes *from, int64_t row) {
    int16_t two;
    int32_t four;
    switch (from->code_bytes) {
    case 1: return ((const int8_t *)from->codes)[row];
    case 2: memcpy(&two, (const char *)from->codes + 2 * row, 2); return two;
    default: memcpy(&four, (const char *)from->codes + 4 * row, 4); return four;
    }
}

static kiln_status take_codes(struct ki_code_column *column, const kiln_codes *from, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t code = given_at(from, i);
        if (code < -1 || code >= from->levels)
            return ki_fail(KILN_ERR_DATA,
                           "row %lld: the code %lld of the category at column %lld lies "
                           "outside [-1, %lld)",
                           (long long)i, (long long)code, (long long)from->column, (long long)from->levels);
        put_code(column, i, code < 0 ? column->levels : code);
    }
    return KILN_OK;
}

static kiln_status check_category(const kiln_codes *from, int64_t next, int64_t cols) {
    static const char call[] = "kiln_matrix_codes";
    if (!from->codes) return ki_fail(KILN_ERR_ARGUMENT, "%s: the codes of a category are NULL", call);
    if (from->code_bytes != 1 && from->code_bytes != 2 && from->code_bytes != 4)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: codes of %d bytes, but must be of 1, 2 or 4", call,
                       from->code_bytes);
    if (from->levels < 1 || from->column < next || from->levels > cols - from->column)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s: a category at column %lld with %lld levels overlaps another one, or lies "
                       "outside of %lld columns",
                       call, (long long)from->column, (long long)from->levels, (long long)cols);
    return KILN_OK;
}

/* Full structs of the caller's, in the order of their columns. */
static kiln_status take_given(kiln_codes *own, struct ki_category *categories, const kiln_codes *given,
                              int64_t count, int64_t cols) {
    kiln_status status = KILN_OK;
    int64_t next = 0;
    for (int64_t c = 0; c < count; c++) {
        const size_t stride = given->size ? given->size : sizeof *given;
        TRY(KI_TAKE(kiln_codes, &own[c],
                    (const kiln_codes *)(const void *)((const char *)given + c * stride)));
        if (own[c].code_bytes == 0) own[c].code_bytes = 4;
        TRY(check_category(&own[c], next, cols));
        categories[c] = (struct ki_category){own[c].column, own[c].levels};
        next = own[c].column + own[c].levels;
    }
done:
    return status;
}

kiln_status kiln_matrix_codes(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                              int64_t cols, const void *numbers, const kiln_codes *given, int64_t count) {
    static const char call[] = "kiln_matrix_codes";
    kiln_status status;
    struct making m = {0};
    struct ki_codes *codes = NULL;
    kiln_codes *own = NULL;
    struct ki_category *categories = NULL;
    if (!A || !device || !given) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_check_shape(device, type, rows, cols));
    if (count < 1 || count > cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld categories of %lld columns", call, (long long)count,
                       (long long)cols);
    if (!ki_codes_fit(device)) {
        ki_fail(KILN_ERR_UNSUPPORTED, "%s: device %s does not keep categories as codes", call,
                device->info.name);
        return ki_hint("make the matrix on a CPU, and copy it, which gives it entries: kiln_matrix_copy");
    }
    own = ki_alloc((size_t)count * sizeof *own);
    categories = ki_alloc((size_t)count * sizeof *categories);
    if (!own || !categories) TRY(ki_fail_nomem((size_t)count * sizeof *own, "categories"));
    TRY(take_given(own, categories, given, count, cols));
    TRY(making_begin(&m, type, rows, cols, categories, count));
    const int64_t bytes = rows * m.width * ki_type_bytes(type);
    if (bytes > 0 && !numbers)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: %lld columns are no category's, but numbers is NULL", call,
                    (long long)m.width));
    for (int64_t c = 0; c < count; c++) TRY(take_codes(&m.codes->column[c], &own[c], rows));
    if (bytes > 0) memcpy(m.numbers, numbers, (size_t)bytes);
    TRY(making_end(&codes, &m, device));
    TRY(ki_matrix_adopt_codes(A, device, type, rows, cols, codes));
    codes = NULL;
done:
    making_free(&m);
    ki_codes_free(codes);
    ki_free(categories);
    ki_free(own);
    return status;
}

kiln_status kiln_matrix_get_storage(kiln_storage *storage, const kiln_matrix *A) {
    kiln_status status;
    if (!storage || !A) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_get_storage: storage or A is NULL");
    TRY(KI_CHECK_RESULT(kiln_storage, storage));
    const struct ki_codes *codes = A->codes;
    kiln_storage own = {.bytes = codes ? ki_codes_bytes(codes, A->rows) : ki_matrix_bytes(A),
                        .numbers = codes                     ? codes->numbers->cols
                                   : A->format == KILN_DENSE ? A->cols
                                                             : 0,
                        .categories = codes ? codes->count : 0,
                        .element = A->element,
                        .same = A->same};
    KI_GIVE(kiln_storage, storage, &own);
done:
    return status;
}
