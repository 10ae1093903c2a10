/* Matrices with codes: how they are made, of codes or of entries, and become entries again. */
#include "core/codes/codes.h"

#include <stdatomic.h>

#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/threads.h"

enum { PARTS = 64 }; /* of the rows, for loops over all */

bool ki_codes_fit(const kiln_device *device) {
    return ki_on_cpu(device) && !ki_device_shares(device);
}

int64_t ki_codes_bytes(const struct ki_codes *codes, int64_t rows) {
    int64_t bytes = ki_matrix_bytes(codes->numbers);
    for (int64_t c = 0; c < codes->count; c++) bytes += rows * codes->column[c].bytes;
    return bytes;
}

void ki_codes_free(struct ki_codes *codes) {
    if (!codes) return;
    for (int64_t c = 0; codes->column && c < codes->count; c++) ki_free(codes->column[c].codes);
    kiln_matrix_free(codes->numbers);
    ki_free(codes->place);
    ki_free(codes->column);
    ki_free(codes);
}

/* ---- their entries ---- */

struct entries {
    const kiln_matrix *A;
    int64_t before[PARTS + 1]; /* entries of the parts before */
    int64_t *row_start;
    int32_t *col;
    void *values;
};

static bool is_entry(const kiln_matrix *numbers, int64_t at) {
    return numbers->type == KILN_F32 ? ((const float *)ki_host(&numbers->values))[at] != 0
                                     : ((const double *)ki_host(&numbers->values))[at] != 0;
}

static int64_t entries_of_row(const kiln_matrix *A, int64_t row) {
    const struct ki_codes *codes = A->codes;
    const int64_t n = codes->numbers->cols;
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) count += is_entry(codes->numbers, row * n + j);
    for (int64_t c = 0; c < codes->count; c++)
        count += ki_code_at(&codes->column[c], row) < codes->column[c].levels;
    return count;
}

static void count_part(void *of, int part) {
    struct entries *e = of;
    const int64_t end = ki_part_begin(e->A->rows, part + 1, PARTS);
    int64_t count = 0;
    for (int64_t i = ki_part_begin(e->A->rows, part, PARTS); i < end; i++) count += entries_of_row(e->A, i);
    e->before[part + 1] = count;
}

static int64_t count_entries(struct entries *e) {
    e->before[0] = 0;
    ki_parallel(e->A->device->threads, PARTS, count_part, e);
    for (int part = 0; part < PARTS; part++) e->before[part + 1] += e->before[part];
    return e->before[PARTS];
}

/* number: where the entry's value stands among the numbers, or -1: it is a level. */
static void put_entry(const struct entries *e, int64_t at, int64_t column, int64_t number) {
    const kiln_matrix *numbers = e->A->codes->numbers;
    if (e->col) e->col[at] = (int32_t)column;
    if (!e->values) return;
    if (e->A->type == KILN_F32)
        ((float *)e->values)[at] = number < 0 ? 1 : ((const float *)ki_host(&numbers->values))[number];
    else
        ((double *)e->values)[at] = number < 0 ? 1 : ((const double *)ki_host(&numbers->values))[number];
}

/* The entries of a row from `at` on, in the order of their columns; returns where the next row's begin. */
static int64_t put_row(const struct entries *e, int64_t row, int64_t at) {
    const struct ki_codes *codes = e->A->codes;
    const int64_t n = codes->numbers->cols;
    int64_t j = 0;
    for (int64_t c = 0; c <= codes->count; c++) {
        const struct ki_code_column *column = codes->column + c;
        const int64_t until = c < codes->count ? column->first : e->A->cols;
        for (; j < n && codes->place[j] < until; j++)
            if (is_entry(codes->numbers, row * n + j)) put_entry(e, at++, codes->place[j], row * n + j);
        const int64_t level = c < codes->count ? ki_code_at(column, row) : 0;
        if (c < codes->count && level < column->levels) put_entry(e, at++, column->first + level, -1);
    }
    return at;
}

static void fill_part(void *of, int part) {
    const struct entries *e = of;
    const int64_t end = ki_part_begin(e->A->rows, part + 1, PARTS);
    int64_t at = e->before[part];
    for (int64_t i = ki_part_begin(e->A->rows, part, PARTS); i < end; i++) {
        if (e->row_start) e->row_start[i] = at;
        at = put_row(e, i, at);
    }
}

void ki_codes_entries(int64_t *row_start, int32_t *col, void *values, const kiln_matrix *A) {
    struct entries e = {.A = A, .row_start = row_start, .col = col, .values = values};
    const int64_t nnz = count_entries(&e);
    ki_parallel(A->device->threads, PARTS, fill_part, &e);
    if (row_start) row_start[A->rows] = nnz;
}

kiln_status ki_matrix_expand(const kiln_matrix *matrix) {
    kiln_matrix *A = (kiln_matrix *)(uintptr_t)matrix; /* how it is kept, not what it is */
    struct ki_codes *codes = A->codes;
    void *memory[KI_PARTS] = {0};
    kiln_status status = KILN_OK;
    if (!codes) return KILN_OK;
    for (int part = 0; part < KI_PARTS; part++) {
        const int64_t bytes = ki_matrix_part_bytes(A, part);
        if (!(memory[part] = ki_alloc((size_t)bytes))) TRY(ki_fail_nomem((size_t)bytes, "a sparse matrix"));
    }
    ki_codes_entries(memory[KI_ROW_START], memory[KI_COL], memory[KI_VALUES], A);
    A->codes = NULL;
    status = ki_matrix_place(A, memory);
    if (status == KILN_OK) {
        ki_memory_count(A->device, ki_matrix_bytes(codes->numbers) - ki_codes_bytes(codes, A->rows));
        ki_codes_free(codes);
        return KILN_OK;
    }
    A->codes = codes;
done:
    for (int part = 0; part < KI_PARTS; part++) ki_free(memory[part]);
    return status;
}

/* ---- making them ---- */

static int narrowest(int64_t levels) {
    return levels <= UINT8_MAX ? 1 : levels <= UINT16_MAX ? 2 : 4;
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

/* Room for codes and numbers, which are not yet written: categories ascend and do not overlap. */
static kiln_status codes_new(struct ki_codes **codes, kiln_device *device, kiln_type type, int64_t rows,
                             int64_t cols, const struct ki_category *categories, int64_t count) {
    kiln_status status = KILN_OK;
    struct ki_codes *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "a matrix");
    int64_t numbers = cols, next = 0;
    for (int64_t c = 0; c < count; c++) numbers -= categories[c].levels;
    made->place = ki_alloc((size_t)numbers * sizeof *made->place);
    made->column = ki_calloc((size_t)count * sizeof *made->column);
    if (!made->place || !made->column) TRY(ki_fail_nomem((size_t)cols * 4, "categories"));
    made->count = count;
    for (int64_t c = 0, j = 0; c <= count; c++) {
        const int64_t until = c < count ? categories[c].first : cols;
        for (; next < until; next++) made->place[j++] = (int32_t)next;
        if (c == count) break;
        struct ki_code_column *column = &made->column[c];
        *column = (struct ki_code_column){categories[c].first, categories[c].levels, made->slots, 0, NULL};
        column->bytes = narrowest(column->levels);
        made->slots += column->levels + 1;
        next = column->first + column->levels;
        column->codes = ki_alloc((size_t)(rows * column->bytes));
        if (!column->codes) TRY(ki_fail_nomem((size_t)(rows * column->bytes), "categories"));
    }
    TRY(ki_matrix_new(&made->numbers, device, type, rows, numbers));
    *codes = made;
    made = NULL;
done:
    ki_codes_free(made);
    return status;
}

kiln_status ki_matrix_adopt_codes(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                  int64_t cols, struct ki_codes *codes) {
    kiln_status status;
    kiln_matrix *made = NULL;
    const int64_t bytes = ki_codes_bytes(codes, rows) - ki_matrix_bytes(codes->numbers);
    TRY(ki_matrix_shell(&made, device, type, KILN_CSR, rows, cols));
    TRY(ki_memory_make_room(device, bytes));
    ki_memory_count(device, bytes);
    made->codes = codes;
    made->given = true;
    made->nnz = count_entries(&(struct entries){.A = made});
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

/* ---- of entries ---- */

struct packing {
    struct ki_codes *codes;
    int64_t rows;
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
    const kiln_type type = p->codes->numbers->type;
    for (int64_t e = p->row_start[row]; e < p->row_start[row + 1]; e++) {
        const int32_t source = p->source[p->col[e]];
        const char *value = (const char *)p->values + e * element;
        if (source >= 0) {
            memcpy(numbers + source * element, value, (size_t)element);
            if (equals(type, value, 0)) atomic_store(&p->odd, true);
            continue;
        }
        struct ki_code_column *column = &p->codes->column[-1 - source];
        if (!equals(type, value, 1) || ki_code_at(column, row) < column->levels) atomic_store(&p->odd, true);
        put_code(column, row, p->col[e] - column->first);
    }
}

static void pack_part(void *of, int part) {
    struct packing *p = of;
    const kiln_matrix *numbers = p->codes->numbers;
    const int64_t end = ki_part_begin(p->rows, part + 1, PARTS), element = ki_type_bytes(numbers->type),
                  bytes = numbers->cols * element;
    for (int64_t i = ki_part_begin(p->rows, part, PARTS); i < end; i++) {
        char *row = (char *)ki_host(&numbers->values) + i * bytes;
        memset(row, 0, (size_t)bytes);
        for (int64_t c = 0; c < p->codes->count; c++)
            put_code(&p->codes->column[c], i, p->codes->column[c].levels);
        pack_row(p, i, row, element);
    }
}

/* Whether codes take at most three quarters of what entries do: of tables of many zeros they would take
 * more. */
static bool pays(kiln_type type, int64_t rows, int64_t cols, int64_t nnz,
                 const struct ki_category *categories, int64_t count) {
    double numbers = (double)cols, row = 0;
    for (int64_t c = 0; c < count; c++) {
        numbers -= (double)categories[c].levels;
        row += narrowest(categories[c].levels);
    }
    row += numbers * (double)ki_type_bytes(type);
    const double entries = (double)nnz * (double)(ki_type_bytes(type) + 4) + 8 * (double)rows;
    return count > 0 && (double)rows * row <= 0.75 * entries;
}

kiln_status ki_codes_pack(struct ki_codes **codes, kiln_device *device, kiln_type type, int64_t rows,
                          int64_t cols, const int64_t *row_start, const int32_t *col, const void *values,
                          const struct ki_category *categories, int64_t count) {
    kiln_status status;
    struct packing p = {.rows = rows, .row_start = row_start, .col = col, .values = values};
    int32_t *source = NULL;
    *codes = NULL;
    if (!pays(type, rows, cols, row_start[rows], categories, count)) return KILN_OK;
    TRY(codes_new(&p.codes, device, type, rows, cols, categories, count));
    source = ki_alloc((size_t)cols * sizeof *source);
    if (!source) TRY(ki_fail_nomem((size_t)cols * sizeof *source, "categories"));
    for (int64_t j = 0; j < p.codes->numbers->cols; j++) source[p.codes->place[j]] = (int32_t)j;
    for (int64_t c = 0; c < count; c++)
        for (int64_t l = 0; l < categories[c].levels; l++)
            source[categories[c].first + l] = (int32_t)(-1 - c);
    p.source = source;
    ki_parallel(device->threads, PARTS, pack_part, &p);
    if (atomic_load(&p.odd)) goto done;
    *codes = p.codes;
    p.codes = NULL;
done:
    ki_free(source);
    ki_codes_free(p.codes);
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
        return ki_hint("make the matrix on a CPU, and copy it: kiln_matrix_copy");
    }
    own = ki_alloc((size_t)count * sizeof *own);
    categories = ki_alloc((size_t)count * sizeof *categories);
    if (!own || !categories) TRY(ki_fail_nomem((size_t)count * sizeof *own, "categories"));
    TRY(take_given(own, categories, given, count, cols));
    TRY(codes_new(&codes, device, type, rows, cols, categories, count));
    if (codes->numbers->nnz > 0 && !numbers)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: %lld columns are no category's, but numbers is NULL", call,
                    (long long)codes->numbers->cols));
    for (int64_t c = 0; c < count; c++) TRY(take_codes(&codes->column[c], &own[c], rows));
    if (codes->numbers->nnz > 0) TRY(kiln_matrix_set(codes->numbers, numbers));
    TRY(ki_matrix_adopt_codes(A, device, type, rows, cols, codes));
    codes = NULL;
done:
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
                        .categories = codes ? codes->count : 0};
    KI_GIVE(kiln_storage, storage, &own);
done:
    return status;
}
