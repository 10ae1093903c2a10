/* A packed file is written in one go, from memory or from the file that the data lie in: a few passes first
 * find the narrowest values. */
#include "io/panels/layout.h"

#include <zlib.h>

#include "core/codes/entries.h"
#include "core/file.h"
#include "core/narrow/values.h"
#include "core/seams.h"
#include "io/output.h"
#include "io/windows/rows.h"

enum { PIECE = 4096 };

typedef kiln_status taker(void *of, const void *piece, size_t bytes);

struct writer {
    struct ki_output *output;
    const struct ki_table *table;
    kiln_type type;
    struct ki_panels p;
    bool coded;
    int32_t *source;           /* of each column: which number of a row it is, or -1 - its category */
    int64_t width, code_bytes; /* numbers of a row, and bytes of its codes */
    struct ki_bytes text[KI_PANELS_ARRAYS]; /* of arrays that are made here */
    struct ki_bytes sums;
    uint32_t crc;   /* of the panel so far */
    int64_t filled; /* its bytes */
};

/* --------------------------------------------------------------------------------------------- panels */

static kiln_status end_panel(struct writer *w) {
    if (w->filled == 0) return KILN_OK;
    if (!ki_bytes_append(&w->sums, &w->crc, sizeof w->crc)) return ki_fail_nomem(sizeof w->crc, "checksums");
    w->crc = 0;
    w->filled = 0;
    return KILN_OK;
}

static kiln_status put(void *of, const void *piece, size_t bytes) {
    struct writer *w = of;
    const unsigned char *from = piece;
    kiln_status status = KILN_OK;
    for (int64_t left = (int64_t)bytes, some; left > 0; left -= some, from += some) {
        some = ki_min(left, KI_PANEL_BYTES - w->filled);
        w->crc = (uint32_t)crc32_z(w->crc, from, (size_t)some);
        w->filled += some;
        TRY(ki_output_write(w->output, from, (size_t)some));
        if (w->filled == KI_PANEL_BYTES) TRY(end_panel(w));
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------- rows with codes */

typedef kiln_status row_user(struct writer *w, const struct ki_table *rows, void *of);

static kiln_status each_slice(struct writer *w, row_user *use, void *of) {
    struct ki_rows rows = {.first = 0};
    kiln_status status = KILN_OK;
    if (!w->table->file) return use(w, w->table, of);
    do {
        TRY(ki_rows_next(&rows, w->table, w->type));
        TRY(use(w, &rows.part, of));
    } while (rows.part.rows > 0);
done:
    ki_rows_free(&rows);
    return status;
}

/* *of: a row has two levels of a category, or one that is not 1; or a number that is an entry is 0. */
static kiln_status look_for_odd(struct writer *w, const struct ki_table *rows, void *of) {
    bool *odd = of;
    for (int64_t i = 0; i < rows->rows && !*odd; i++)
        for (int64_t e = rows->row_start[i], before = 0; e < rows->row_start[i + 1]; e++) {
            const int32_t source = w->source[rows->col[e]];
            const double value = ki_element(rows->values, w->type, e);
            *odd |= source < 0 ? value != 1 || source == before : value == 0;
            before = source;
        }
    return KILN_OK;
}

struct taking {
    taker *take;
    void *of;
};

/* A row's numbers, then as many more as the room has. */
static kiln_status take_numbers(struct writer *w, const struct ki_table *rows, void *of) {
    const struct taking *taking = of;
    const int64_t real = ki_type_bytes(w->type), row = w->width * real,
                  most = ki_max(PIECE / ki_max(w->width, 1), 1);
    char *room = ki_alloc((size_t)(most * row));
    kiln_status status = KILN_OK;
    if (!room) return ki_fail_nomem((size_t)(most * row), "rows to write");
    for (int64_t first = 0, count; first < rows->rows; first += count) {
        count = ki_min(most, rows->rows - first);
        memset(room, 0, (size_t)(count * row));
        for (int64_t i = 0; i < count; i++)
            for (int64_t e = rows->row_start[first + i]; e < rows->row_start[first + i + 1]; e++) {
                const int32_t source = w->source[rows->col[e]];
                if (source < 0) continue;
                memcpy(room + i * row + source * real, (const char *)rows->values + e * real, (size_t)real);
            }
        TRY(taking->take(taking->of, room, (size_t)(count * row)));
    }
done:
    ki_free(room);
    return status;
}

static void put_code(unsigned char *to, int bytes, int64_t code) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)((uint64_t)code >> 8 * i);
}

/* A row's codes, of which `levels` is no level. */
static void code_row(const struct writer *w, unsigned char *to, const struct ki_table *rows, int64_t row) {
    const struct ki_table *table = w->table;
    int64_t e = rows->row_start[row];
    const int64_t end = rows->row_start[row + 1];
    for (int64_t c = 0; c < table->category_count; c++) {
        const struct ki_category *own = &table->categories[c];
        const int bytes = ki_code_bytes(own->levels);
        while (e < end && rows->col[e] < own->first) e++;
        const int64_t code = e < end ? rows->col[e] - own->first : own->levels;
        put_code(to, bytes, ki_min(code, own->levels));
        to += bytes;
    }
}

static kiln_status write_codes(struct writer *w, const struct ki_table *rows, void *of) {
    const int64_t most = ki_max(PIECE / w->code_bytes, 1);
    unsigned char *room = ki_alloc((size_t)(most * w->code_bytes));
    kiln_status status = KILN_OK;
    (void)of;
    if (!room) return ki_fail_nomem((size_t)(most * w->code_bytes), "rows to write");
    for (int64_t first = 0, count; first < rows->rows; first += count) {
        count = ki_min(most, rows->rows - first);
        for (int64_t i = 0; i < count; i++) code_row(w, room + i * w->code_bytes, rows, first + i);
        TRY(put(w, room, (size_t)(count * w->code_bytes)));
    }
done:
    ki_free(room);
    return status;
}

/* ---------------------------------------------------------------------------------------------- values */

/* Values in memory, which may be narrow there. */
static kiln_status each_here(const struct writer *w, const void *values, kiln_element element, int64_t count,
                             taker *take, void *of) {
    double room[PIECE];
    kiln_status status = KILN_OK;
    if (!element) return take(of, values, (size_t)(count * ki_type_bytes(w->type)));
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t some = ki_min(PIECE, count - first);
        ki_widen_values(room, w->type, element, values, first, some);
        TRY(take(of, room, (size_t)(some * ki_type_bytes(w->type))));
    }
done:
    return status;
}

/* Values of an array, in the data's type. */
static kiln_status each_value(struct writer *w, int name, taker *take, void *of) {
    const struct ki_table *table = w->table;
    struct taking taking = {take, of};
    switch (name) {
    case KI_PANELS_Y:
        return each_here(w, table->y, KILN_ELEMENT_TYPE, table->rows * table->targets, take, of);
    case KI_PANELS_WEIGHTS: return each_here(w, table->weights, KILN_ELEMENT_TYPE, table->rows, take, of);
    case KI_PANELS_OFFSET: return each_here(w, table->offset, KILN_ELEMENT_TYPE, table->rows, take, of);
    default: break;
    }
    if (w->coded) return each_slice(w, take_numbers, &taking);
    if (table->file) return ki_file_each(table->file, KI_VALUES, w->type, table->nnz, take, of);
    return each_here(w, table->values, table->element, table->nnz, take, of);
}

/* Values of a type on their way to an element; with ones they are to be 1. */
struct narrowing {
    struct writer *w;
    kiln_element element;
    bool ones, lost;
};

static kiln_status try_element(void *of, const void *piece, size_t bytes) {
    struct narrowing *n = of;
    const kiln_type type = n->w->type;
    const int64_t count = (int64_t)bytes / ki_type_bytes(type);
    for (int64_t i = 0; n->ones && i < count && !n->lost; i++) n->lost = ki_element(piece, type, i) != 1;
    if (!n->ones) n->lost = !ki_narrow_values(NULL, type, n->element, piece, count);
    return n->lost ? KILN_ERR_CANCELLED : KILN_OK; /* which ends the walk, and is nobody's error */
}

static kiln_status put_narrow(void *of, const void *piece, size_t bytes) {
    struct narrowing *n = of;
    const kiln_type type = n->w->type;
    const int64_t real = ki_type_bytes(type), count = (int64_t)bytes / real,
                  each = ki_element_bytes(n->element);
    double room[PIECE];
    kiln_status status = KILN_OK;
    if (!n->element) return put(n->w, piece, bytes);
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t some = ki_min(PIECE, count - first);
        if (!ki_narrow_values(room, type, n->element, (const char *)piece + first * real, some))
            TRY(ki_fail(KILN_ERR_DATA, "the data have changed while they were written"));
        TRY(put(n->w, room, (size_t)(some * each)));
    }
done:
    return status;
}

/* *fits: they all are numbers of n's element. */
static kiln_status fits(bool *fits, struct narrowing *n, int name) {
    const kiln_status status = each_value(n->w, name, try_element, n);
    *fits = !n->lost;
    return n->lost ? KILN_OK : status;
}

static kiln_status find_element(kiln_element *found, struct writer *w, int name) {
    *found = KILN_ELEMENT_TYPE;
    for (kiln_element element = KILN_ELEMENT_U8; element <= KILN_ELEMENT_F32; element++) {
        struct narrowing n = {.w = w, .element = element};
        bool good;
        if (ki_element_bytes(element) >= ki_type_bytes(w->type)) continue;
        const kiln_status status = fits(&good, &n, name);
        if (status != KILN_OK) return status;
        if (!good) continue;
        *found = element;
        break;
    }
    return KILN_OK;
}

static kiln_status add_values(struct writer *w, int name, int64_t rows, int64_t cols, int dimensions) {
    kiln_element element;
    const kiln_status status = find_element(&element, w, name);
    if (status == KILN_OK)
        ki_panels_add(&w->p, (enum ki_panels_name)name, ki_panels_values(element, w->type), rows, cols,
                      dimensions);
    return status;
}

/* -------------------------------------------------------------------------------------------- the plan */

static kiln_status find_categories(struct writer *w) {
    const struct ki_table *table = w->table;
    bool odd = false;
    int64_t width = 0;
    kiln_status status = KILN_OK;
    if (!ki_codes_pay(w->type, table->rows, table->cols, table->nnz, table->categories,
                      table->category_count))
        return KILN_OK;
    w->source = ki_calloc((size_t)table->cols * sizeof *w->source);
    if (!w->source) return ki_fail_nomem((size_t)table->cols * sizeof *w->source, "categories");
    for (int64_t c = 0; c < table->category_count; c++)
        for (int64_t l = 0; l < table->categories[c].levels; l++)
            w->source[table->categories[c].first + l] = (int32_t)(-1 - c);
    for (int64_t j = 0; j < table->cols; j++)
        if (w->source[j] == 0) w->source[j] = (int32_t)width++;
    TRY(each_slice(w, look_for_odd, &odd));
    if (odd) goto done;
    w->coded = true;
    w->width = width;
    for (int64_t c = 0; c < table->category_count; c++)
        w->code_bytes += ki_code_bytes(table->categories[c].levels);
done:
    return status;
}

static kiln_status plan_X(struct writer *w) {
    const struct ki_table *table = w->table;
    struct narrowing ones = {.w = w, .ones = true};
    bool pattern;
    kiln_status status = KILN_OK;
    if (table->format == KILN_DENSE) return add_values(w, KI_PANELS_VALUES, table->rows, table->cols, 2);
    if (table->category_count > 0) TRY(find_categories(w));
    if (w->coded) {
        TRY(add_values(w, KI_PANELS_VALUES, table->rows, w->width, 2));
        ki_panels_add(&w->p, KI_PANELS_CODES, NULL, table->rows, w->code_bytes, 2);
        ki_panels_add(&w->p, KI_PANELS_CATEGORIES, NULL, table->category_count, 2, 2);
        if (!ki_bytes_append(&w->text[KI_PANELS_CATEGORIES], table->categories,
                             table->category_count * (int64_t)sizeof *table->categories))
            status = ki_fail_nomem((size_t)table->category_count * 16, "categories");
        return status;
    }
    TRY(fits(&pattern, &ones, KI_PANELS_VALUES));
    if (!pattern) TRY(add_values(w, KI_PANELS_VALUES, table->nnz, 1, 1));
    ki_panels_add(&w->p, KI_PANELS_ROW_START, NULL, table->rows + 1, 1, 1);
    ki_panels_add(&w->p, KI_PANELS_COLUMNS, NULL, table->nnz, 1, 1);
done:
    return status;
}

static void add_vector(struct writer *w, enum ki_panels_name name, const void *values, int64_t count) {
    if (values) ki_panels_add(&w->p, name, NULL, count, 1, 1);
}

/* Names, each with its NUL. */
static kiln_status add_names(struct writer *w, enum ki_panels_name name, char *const *names, int64_t count) {
    struct ki_bytes *text = &w->text[name];
    for (int64_t i = 0; i < count; i++)
        if (!ki_bytes_append(text, names[i], (int64_t)strlen(names[i]) + 1))
            return ki_fail_nomem((size_t)text->size, "the names");
    ki_panels_add(&w->p, name, NULL, text->size, 1, 1);
    return KILN_OK;
}

static kiln_status add_classes(struct writer *w) {
    const struct ki_table *table = w->table;
    struct ki_bytes *text = &w->text[KI_PANELS_CLASS_NAMES];
    for (int64_t j = 0; j < table->targets; j++) {
        const int64_t count = table->class_names[j] ? table->class_count[j] : 0;
        bool room = ki_bytes_append(&w->text[KI_PANELS_CLASS_COUNTS], &count, sizeof count);
        for (int64_t i = 0; room && i < count; i++)
            room = ki_bytes_append(text, table->class_names[j][i],
                                   (int64_t)strlen(table->class_names[j][i]) + 1);
        if (!room) return ki_fail_nomem((size_t)text->size, "the classes");
    }
    ki_panels_add(&w->p, KI_PANELS_CLASS_COUNTS, NULL, table->targets, 1, 1);
    ki_panels_add(&w->p, KI_PANELS_CLASS_NAMES, NULL, text->size, 1, 1);
    return KILN_OK;
}

static kiln_status add_roles(struct writer *w) {
    char *names[KI_TABLE_ROLES];
    bool any = false;
    for (int i = 0; i < KI_TABLE_ROLES; i++) {
        any |= w->table->role_names[i] != NULL;
        names[i] = w->table->role_names[i] ? w->table->role_names[i] : "";
    }
    return any ? add_names(w, KI_PANELS_ROLE_NAMES, names, KI_TABLE_ROLES) : KILN_OK;
}

/* Entries that were filled, as places in X. */
static kiln_status find_places(struct writer *w, const struct ki_table *rows, void *of) {
    const struct ki_table *table = w->table;
    struct ki_bytes *text = &w->text[KI_PANELS_FILLED];
    int64_t *entries = of; /* before the slice's, and rows */
    int64_t next = text->size / (int64_t)sizeof *entries;
    for (int64_t i = 0; i < rows->rows; i++)
        for (; next < table->filled_count && table->filled[next] < entries[0] + rows->row_start[i + 1];
             next++) {
            const int64_t place =
                (entries[1] + i) * table->cols + rows->col[table->filled[next] - entries[0]];
            if (!ki_bytes_append(text, &place, sizeof place)) return ki_fail_nomem(sizeof place, "entries");
        }
    entries[0] += rows->nnz;
    entries[1] += rows->rows;
    return KILN_OK;
}

static kiln_status add_filled(struct writer *w) {
    const struct ki_table *table = w->table;
    int64_t entries[2] = {0, 0}, all;
    kiln_status status = KILN_OK;
    if (!ki_mul(table->rows, table->cols, &all))
        return ki_fail(KILN_ERR_LIMIT, "places of X overflow, so that none can be filled anew");
    if (table->format == KILN_CSR)
        TRY(each_slice(w, find_places, entries));
    else if (!ki_bytes_append(&w->text[KI_PANELS_FILLED], table->filled,
                              table->filled_count * (int64_t)sizeof(int64_t)))
        TRY(ki_fail_nomem((size_t)table->filled_count * 8, "entries"));
    ki_panels_add(&w->p, KI_PANELS_FILLED, NULL, table->filled_count, 1, 1);
done:
    return status;
}

static kiln_status plan(struct writer *w) {
    const struct ki_table *table = w->table;
    char *schema[1] = {table->schema};
    kiln_status status;
    w->p.rows = table->rows;
    w->p.cols = table->cols;
    TRY(plan_X(w));
    if (table->y) TRY(add_values(w, KI_PANELS_Y, table->rows, table->targets, 2));
    if (table->weights) TRY(add_values(w, KI_PANELS_WEIGHTS, table->rows, 1, 1));
    if (table->offset) TRY(add_values(w, KI_PANELS_OFFSET, table->rows, 1, 1));
    add_vector(w, KI_PANELS_GROUPS, table->groups, table->rows);
    if (table->filled_count > 0) TRY(add_filled(w));
    add_vector(w, KI_PANELS_LEFT_OUT, table->left_out, table->left_out_count);
    if (table->feature_names) TRY(add_names(w, KI_PANELS_FEATURE_NAMES, table->feature_names, table->cols));
    if (table->row_names) TRY(add_names(w, KI_PANELS_ROW_NAMES, table->row_names, table->rows));
    if (table->y && table->target_names)
        TRY(add_names(w, KI_PANELS_TARGET_NAMES, table->target_names, table->targets));
    if (table->y && table->class_names) TRY(add_classes(w));
    TRY(add_roles(w));
    if (table->schema) TRY(add_names(w, KI_PANELS_SCHEMA, schema, 1));
    ki_panels_add(&w->p, KI_PANELS_CHECKSUMS, NULL, ki_panels_checksums(&w->p), 1, 1);
done:
    return status;
}

/* ---------------------------------------------------------------------------------------------- the file */

static kiln_status write_array(struct writer *w, int name) {
    const struct ki_table *table = w->table;
    const size_t bytes = (size_t)w->p.array[name].bytes;
    struct narrowing n = {.w = w, .element = w->p.array[name].type->element};
    switch (name) {
    case KI_PANELS_VALUES:
    case KI_PANELS_Y:
    case KI_PANELS_WEIGHTS:
    case KI_PANELS_OFFSET:
        if (w->type == KILN_F32 && n.element == KILN_ELEMENT_F32) n.element = KILN_ELEMENT_TYPE;
        return each_value(w, name, put_narrow, &n);
    case KI_PANELS_ROW_START: return put(w, table->row_start, bytes);
    case KI_PANELS_COLUMNS:
        return table->file ? ki_file_each(table->file, KI_COL, w->type, table->nnz, put, w)
                           : put(w, table->col, bytes);
    case KI_PANELS_CODES: return each_slice(w, write_codes, NULL);
    case KI_PANELS_GROUPS: return put(w, table->groups, bytes);
    case KI_PANELS_LEFT_OUT: return put(w, table->left_out, bytes);
    default: return put(w, w->text[name].data, bytes);
    }
}

static kiln_status write_all(struct writer *w) {
    struct ki_bytes header = {NULL, 0, 0};
    kiln_status status;
    TRY(ki_panels_put_header(&header, &w->p));
    if (header.size > KI_PANELS_HEADER_LIMIT) TRY(ki_fail(KILN_ERR_INTERNAL, "a header that is too long"));
    TRY(put(w, header.data, (size_t)header.size));
    TRY(end_panel(w));
    for (int i = 0; i < KI_PANELS_CHECKSUMS; i++) {
        if (w->p.array[i].type) TRY(write_array(w, i));
        TRY(end_panel(w));
    }
    const uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)w->sums.data, (size_t)w->sums.size);
    if (!ki_bytes_append(&w->sums, &crc, sizeof crc)) TRY(ki_fail_nomem(sizeof crc, "checksums"));
    TRY(ki_output_write(w->output, w->sums.data, (size_t)w->sums.size));
done:
    ki_bytes_free(&header);
    return status;
}

kiln_status ki_write_panels(struct ki_output *output, const struct ki_table *table, kiln_type type,
                            int threads) {
    struct writer w = {.output = output, .table = table, .type = type};
    kiln_status status;
    (void)threads;
    TRY(plan(&w));
    TRY(write_all(&w));
done:
    for (int i = 0; i < KI_PANELS_ARRAYS; i++) ki_bytes_free(&w.text[i]);
    ki_bytes_free(&w.sums);
    ki_free(w.source);
    return status;
}
