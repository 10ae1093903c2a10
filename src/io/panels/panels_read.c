/* A packed file becomes a table: all of it, a part of its rows, or X where it lies. */
#include <inttypes.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "core/threads.h"
#include "io/numpy/map.h"
#include "io/ordered.h"
#include "io/panels/panels.h"
#include "io/part_cut.h"
#include "io/table/table.h"

/* ------------------------------------------------------------------------------------------------ columns */

/* Rows' numbers, of a matrix with so many columns. */
static kiln_status read_rows(void **to, struct ki_panels_reader *r, enum ki_panels_name name, int64_t first,
                             int64_t rows) {
    const struct ki_panels_array *a = &r->p.array[name];
    if (!a->type) return KILN_OK;
    return ki_panels_values_of(to, r, name, first * a->shape[1], rows * a->shape[1]);
}

static kiln_status read_integers(int64_t **to, int64_t *count, struct ki_panels_reader *r,
                                 enum ki_panels_name name) {
    const struct ki_panels_array *a = &r->p.array[name];
    void *made = NULL;
    *count = 0;
    if (!a->type || a->shape[0] == 0) return KILN_OK;
    const kiln_status status = ki_panels_load(&made, r, name, 0, a->bytes);
    if (status != KILN_OK) return status;
    *to = made;
    *count = a->shape[0];
    return KILN_OK;
}

/* *names: `count` texts that lie in *text, all of an array. */
static kiln_status read_names(char ***names, char **text, struct ki_panels_reader *r,
                              enum ki_panels_name name, int64_t count) {
    const struct ki_panels_array *a = &r->p.array[name];
    void *made = NULL;
    int64_t at = 0;
    if (!a->type) return KILN_OK;
    if (count > a->bytes)
        return ki_panels_fail(r, name, "there are fewer names than columns, rows or classes");
    kiln_status status = ki_panels_load(&made, r, name, 0, a->bytes);
    if (status != KILN_OK) return status;
    *text = made;
    if (!(*names = ki_calloc((size_t)(count + 1) * sizeof **names)))
        return ki_fail_nomem((size_t)count * sizeof **names, "the names");
    for (int64_t i = 0; i < count && at < a->bytes; i++) {
        char *one = *text + at;
        const int64_t length = (int64_t)strlen(one);
        if (!ki_table_utf8(one, length)) return ki_panels_fail(r, name, "a name is not UTF-8 text");
        (*names)[i] = one;
        at += length + 1;
    }
    return at == a->bytes && (count == 0 || (*names)[count - 1])
               ? KILN_OK
               : ki_panels_fail(r, name, "there are not as many names as columns, rows or classes");
}

/* Each name has memory of its own. */
static kiln_status read_own_names(char ***own, struct ki_panels_reader *r, enum ki_panels_name name,
                                  int64_t count) {
    char **names = NULL, *text = NULL;
    kiln_status status;
    TRY(read_names(&names, &text, r, name, count));
    if (!names) goto done;
    if (!(*own = ki_calloc((size_t)(count + 1) * sizeof **own)))
        TRY(ki_fail_nomem((size_t)count * 8, "the names"));
    for (int64_t i = 0; i < count; i++)
        if (!((*own)[i] = ki_strdup(names[i]))) TRY(ki_fail_nomem(strlen(names[i]), "a name"));
done:
    ki_free(names);
    ki_free(text);
    return status;
}

/* A column without a name is called by its role. */
static kiln_status read_roles(struct ki_table *table, struct ki_panels_reader *r) {
    const bool there[KI_TABLE_ROLES] = {table->weights, table->offset, table->groups};
    char **names = NULL, *text = NULL, *standard[KI_TABLE_ROLES] = {"weights", "offset", "groups"};
    kiln_status status;
    TRY(read_names(&names, &text, r, KI_PANELS_ROLE_NAMES, KI_TABLE_ROLES));
    for (int i = 0; i < KI_TABLE_ROLES; i++) {
        const char *name = names && *names[i] ? names[i] : standard[i];
        if (there[i] && !(table->role_names[i] = ki_strdup(name))) TRY(ki_fail_nomem(strlen(name), "a name"));
    }
done:
    ki_free(names);
    ki_free(text);
    return status;
}

/* A target that is text has numbers of its classes; -1: a class that the model which encoded it did not
 * know. */
static kiln_status take_classes(struct ki_table *table, struct ki_panels_reader *r, const int64_t *count,
                                char *const *names, int64_t all) {
    const int64_t targets = table->targets;
    int64_t used = 0;
    table->class_names = ki_calloc((size_t)targets * sizeof *table->class_names);
    table->class_count = ki_calloc((size_t)targets * sizeof *table->class_count);
    if (!table->class_names || !table->class_count) return ki_fail_nomem((size_t)targets * 16, "the classes");
    for (int64_t j = 0; j < targets; j++) {
        if (count[j] < 0 || count[j] > all - used)
            return ki_panels_fail(r, KI_PANELS_CLASS_COUNTS, "classes without a name");
        if (count[j] == 0) continue;
        if (!r->options->text_targets) {
            ki_fail_at(KILN_ERR_DATA, &(struct ki_place){r->name, 0, 0, -1}, "the target '%.100s' is text",
                       table->target_names ? table->target_names[j] : "y");
            return ki_hint("a classifier takes it, as kiln logreg; kiln convert takes it to CSV alone");
        }
        char **own = table->class_names[j] = ki_calloc((size_t)count[j] * sizeof *own);
        if (!own) return ki_fail_nomem((size_t)count[j] * sizeof *own, "the classes");
        table->class_count[j] = count[j];
        for (int64_t i = 0; i < count[j]; i++)
            if (!(own[i] = ki_strdup(names[used++]))) return ki_fail_nomem(1, "the classes");
        for (int64_t i = 0; i < table->rows; i++) {
            const double value = ki_element(table->y, r->options->type, i * targets + j);
            if (!(value >= -1 && value < (double)count[j] && value == (double)(int64_t)value))
                return ki_panels_fail(r, KI_PANELS_Y, "a target is the number of no class");
        }
    }
    return used == all ? KILN_OK : ki_panels_fail(r, KI_PANELS_CLASS_NAMES, "names of no class");
}

static kiln_status read_classes(struct ki_table *table, struct ki_panels_reader *r) {
    int64_t *count = NULL, targets, all = 0;
    char **names = NULL, *text = NULL;
    kiln_status status;
    TRY(read_integers(&count, &targets, r, KI_PANELS_CLASS_COUNTS));
    if (targets == 0) goto done;
    for (int64_t j = 0; j < targets; j++)
        if (count[j] < 0 || !ki_add(all, count[j], &all))
            TRY(ki_panels_fail(r, KI_PANELS_CLASS_COUNTS, "a negative number of classes"));
    TRY(read_names(&names, &text, r, KI_PANELS_CLASS_NAMES, all));
    TRY(take_classes(table, r, count, names, all));
done:
    ki_free(count);
    ki_free(names);
    ki_free(text);
    return status;
}

/* Integers that ascend, each below `limit`. */
static bool ascend(const int64_t *list, int64_t count, int64_t limit) {
    bool good = true;
    for (int64_t i = 0; i < count; i++) good = good && list[i] > (i ? list[i - 1] : -1) && list[i] < limit;
    return good;
}

/* The entry of X at a place, row * columns + column, of the part; -1: there is none. */
static int64_t entry_at(const struct ki_table *table, int64_t place) {
    const int64_t row = place / table->cols;
    if (table->format == KILN_DENSE) return place;
    const int64_t col = place % table->cols;
    int64_t first = table->row_start[row], end = table->row_start[row + 1];
    while (first < end) {
        const int64_t middle = first + (end - first) / 2;
        if (table->col[middle] < col)
            first = middle + 1;
        else
            end = middle;
    }
    return first < table->row_start[row + 1] && table->col[first] == col ? first : -1;
}

/* Entries that were filled: of the file's places those of the part's rows. */
static kiln_status read_filled(struct ki_table *table, struct ki_panels_reader *r, int64_t first) {
    int64_t count, kept = 0, all;
    kiln_status status;
    TRY(read_integers(&table->filled, &count, r, KI_PANELS_FILLED));
    if (count == 0) goto done;
    if (!ki_mul(r->p.rows, r->p.cols, &all) || !ascend(table->filled, count, all))
        TRY(ki_panels_fail(r, KI_PANELS_FILLED,
                           "entries that were filled do not ascend, or lie outside of X"));
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = table->filled[i] - first * table->cols;
        if (place < 0 || place >= table->rows * table->cols) continue;
        if ((table->filled[kept++] = entry_at(table, place)) < 0)
            TRY(ki_panels_fail(r, KI_PANELS_FILLED, "an entry that was filled is none of X"));
    }
    table->filled_count = kept;
done:
    return status;
}

static kiln_status check_weights(const struct ki_table *table, const struct ki_panels_reader *r) {
    bool good = true;
    for (int64_t i = 0; table->weights && i < table->rows; i++)
        good = good && !(ki_element(table->weights, r->options->type, i) < 0);
    for (int64_t i = 0; table->groups && i < table->rows; i++)
        good = good && table->groups[i] >= 0 && table->groups[i] < r->p.rows;
    return good ? KILN_OK
                : ki_panels_fail(r, r->p.array[KI_PANELS_WEIGHTS].type ? KI_PANELS_WEIGHTS : KI_PANELS_GROUPS,
                                 "a weight or a group is negative, or there is no such group");
}

static kiln_status read_columns(struct ki_table *table, struct ki_panels_reader *r, int64_t first) {
    const struct ki_panels *p = &r->p;
    char **schema = NULL, *text = NULL;
    void *groups = NULL;
    kiln_status status;
    table->targets = p->array[KI_PANELS_Y].type ? p->array[KI_PANELS_Y].shape[1] : 0;
    TRY(read_rows(&table->y, r, KI_PANELS_Y, first, table->rows));
    TRY(read_rows(&table->weights, r, KI_PANELS_WEIGHTS, first, table->rows));
    TRY(read_rows(&table->offset, r, KI_PANELS_OFFSET, first, table->rows));
    if (p->array[KI_PANELS_GROUPS].type) {
        TRY(ki_panels_load(&groups, r, KI_PANELS_GROUPS, first * 8, table->rows * 8));
        table->groups = groups;
    }
    TRY(check_weights(table, r));
    TRY(read_roles(table, r));
    TRY(read_filled(table, r, first));
    if (first == 0) TRY(read_integers(&table->left_out, &table->left_out_count, r, KI_PANELS_LEFT_OUT));
    if (!ascend(table->left_out, table->left_out_count, INT64_MAX))
        TRY(ki_panels_fail(r, KI_PANELS_LEFT_OUT, "rows that were left out do not ascend"));
    TRY(read_names(&table->feature_names, &table->name_text, r, KI_PANELS_FEATURE_NAMES, p->cols));
    if (table->rows == p->rows)
        TRY(read_names(&table->row_names, &table->row_name_text, r, KI_PANELS_ROW_NAMES, p->rows));
    TRY(read_own_names(&table->target_names, r, KI_PANELS_TARGET_NAMES, table->targets));
    TRY(read_classes(table, r));
    TRY(read_names(&schema, &text, r, KI_PANELS_SCHEMA, 1));
    table->schema = text;
    text = NULL;
    TRY(ki_panels_check_schema(table, r));
    TRY(ki_panels_suit(table, r));
done:
    ki_free(schema);
    ki_free(text);
    return status;
}

/* -------------------------------------------------------------------------------------- whole and parts */

/* X, whose panels are checked where it is read, comes last. */
static bool is_big(int name) {
    return name == KI_PANELS_VALUES || name == KI_PANELS_COLUMNS;
}

/* Each part checks its share of the panels, so that all are. */
static kiln_status check_share(struct ki_panels_reader *r, struct ki_part part) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < KI_PANELS_CHECKSUMS; i++) {
        const int64_t panels = ki_ceil_div(r->p.array[i].bytes, KI_PANEL_BYTES);
        if (part.count == 1 && is_big(i)) continue;
        TRY(ki_panels_check(r, (enum ki_panels_name)i, ki_part_begin(panels, part.number, part.count),
                            ki_part_begin(panels, part.number + 1, part.count)));
    }
done:
    return status;
}

static kiln_status read_part(struct ki_table *table, struct ki_panels_reader *r, struct ki_part part) {
    const int64_t first = ki_part_begin(r->p.rows, part.number, part.count);
    kiln_status status;
    table->rows = ki_part_begin(r->p.rows, part.number + 1, part.count) - first;
    table->cols = r->p.cols;
    TRY(check_share(r, part));
    TRY(ki_panels_matrix(table, r, first));
    TRY(read_columns(table, r, first));
done:
    return status;
}

/* Bytes that come in order alone come to memory. */
static kiln_status read_stream(struct ki_panels_reader *r, struct ki_input *input) {
    enum { FIRST = 1 << 16, MOST = 1 << 24 };
    for (int64_t most = FIRST;; most = ki_min(2 * most, MOST)) {
        size_t got;
        if (!ki_bytes_room(&r->memory, most)) return ki_fail_nomem((size_t)r->memory.size, "a packed file");
        const kiln_status status = ki_input_read(input, r->memory.data + r->memory.size, (size_t)most, &got);
        if (status != KILN_OK) return status;
        r->memory.size += (int64_t)got;
        if ((int64_t)got < most) return KILN_OK;
    }
}

static kiln_status read_input(struct ki_table *table, struct ki_input *input,
                              const kiln_read_options *options, struct ki_part part) {
    struct ki_panels_reader r = {
        .name = ki_input_name(input), .options = options, .watch = ki_input_watch(input)};
    int64_t bytes;
    kiln_status status;
    r.file = ki_input_file(input, &bytes);
    TRY(r.file ? ki_input_take(input) : read_stream(&r, input));
    TRY(ki_panels_open(&r, r.file ? bytes : r.memory.size));
    TRY(read_part(table, &r, part));
done:
    ki_panels_close(&r);
    return status;
}

kiln_status ki_read_panels(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    return read_input(table, input, options, (struct ki_part){.number = 0, .count = 1});
}

kiln_status ki_read_panels_part(struct ki_table *table, struct ki_input *input,
                                const kiln_read_options *options, struct ki_part part) {
    const kiln_status status = read_input(table, input, options, part);
    for (int64_t i = 0; status == KILN_OK && table->groups && i < table->rows; i++)
        table->groups[i]++; /* who joins parts numbers groups anew, by keys that are not 0 */
    return status;
}

/* ------------------------------------------------------------------------------------- where they lie */

/* Values can be read from where they lie if they are of the type, or narrower numbers of it. */
static kiln_status map_values(struct ki_panels_reader *r, struct ki_mapping *m) {
    const struct ki_panels_array *a = &r->p.array[KI_PANELS_VALUES];
    const kiln_type type = r->options->type;
    if (!a->type) {
        m->file->ones = true;
        return KILN_OK;
    }
    const struct ki_npy npy = ki_panels_npy(a);
    struct ki_numbers numbers = {.npy = &npy,
                                 .type = type,
                                 .wanted = a->bytes / npy.itemsize,
                                 .any = r->options->allow_nonfinite || npy.kind == 'i' || npy.kind == 'u',
                                 .bad = INT64_MAX};
    if (npy.itemsize > ki_type_bytes(type))
        return ki_mapping_refuse(m, "its values are f64", "--type f64, or leave --map out");
    m->file->at[KI_VALUES] = a->begin;
    m->file->element = ki_npy_native(&npy, type) ? KILN_ELEMENT_TYPE : a->type->element;
    const kiln_status status = ki_panels_run(r, KI_PANELS_VALUES, NULL, ki_numbers_use, &numbers);
    return status == KILN_OK && numbers.bad < INT64_MAX
               ? ki_panels_nonfinite(r, KI_PANELS_VALUES, numbers.bad)
               : status;
}

static kiln_status map_entries(struct ki_table *table, struct ki_panels_reader *r, struct ki_mapping *m) {
    kiln_status status;
    TRY(ki_panels_starts(&table->row_start, r));
    struct ki_ordered order = ki_ordered_begin(table->row_start, table->rows, table->cols);
    table->format = KILN_CSR;
    table->nnz = order.nnz;
    m->file->at[KI_COL] = r->p.array[KI_PANELS_COLUMNS].begin;
    TRY(ki_panels_run(r, KI_PANELS_COLUMNS, NULL, ki_ordered_use, &order));
    if (order.outside == INT64_MAX) TRY(ki_ordered_seams(&order, m->file));
    if (order.outside < INT64_MAX || order.unordered < INT64_MAX)
        TRY(ki_panels_fail(r, KI_PANELS_COLUMNS, "columns of a row do not ascend, or lie outside of X"));
done:
    return status;
}

kiln_status ki_map_panels(struct ki_table *table, struct ki_mapping *m) {
    struct ki_panels_reader r = {
        .name = m->file->name, .file = m->file, .options = m->options, .watch = &m->watch};
    kiln_status status;
    TRY(ki_panels_open(&r, m->bytes));
    if (r.p.array[KI_PANELS_CODES].type || r.p.array[KI_PANELS_FILLED].type)
        TRY(ki_mapping_refuse(m, "it has categories as codes, or entries that were missing",
                              "leave --map out"));
    table->rows = r.p.rows;
    table->cols = r.p.cols;
    table->nnz = table->rows * table->cols;
    TRY(check_share(&r, (struct ki_part){.number = 0, .count = 1}));
    if (r.p.array[KI_PANELS_ROW_START].type) TRY(map_entries(table, &r, m));
    TRY(map_values(&r, m));
    TRY(read_columns(table, &r, 0));
done:
    ki_panels_close(&r);
    return status;
}
