/* All rows are there: what is wrong or odd about them is told, columns become features, missing values their
 * means. */
#include <stdio.h>
#include <string.h>

#include "io/table/builder.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Freed memory goes back to the system: of a wide table the steps' work space is as large as what
 * they make. */
static void give_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static kiln_status number_classes(struct ki_table_builder *b, struct ki_table *table) {
    int32_t *rank = NULL;
    bool any = false;
    ki_table_classes_settle(b->y.data, b->layout.type, b->rows, &b->schema, &b->classes);
    for (int64_t t = 0; t < b->schema.target_count; t++) any |= b->schema.targets[t].text;
    kiln_status status = any ? ki_table_classes_finish(&rank, table, &b->schema, &b->classes) : KILN_OK;
    if (rank) ki_table_classes_number(b->y.data, b->layout.type, b->rows, &b->schema, rank);
    ki_free(rank);
    return status;
}

/* Columns that are text by their first rows and numbers by the others, as where a word for missing values
 * fills the beginning. */
static kiln_status warn_numbers(struct ki_table_builder *b) {
    enum { LEVELS_LEAST = 10 };
    const struct ki_place place = {b->name, 0, 0, -1};
    kiln_status status = KILN_OK;
    if (b->schema.frozen) return KILN_OK;
    const char **word = NULL; /* the first level of each column that is no number */
    int64_t *numbers = ki_calloc((size_t)b->schema.count * sizeof *numbers);
    if (!numbers) return ki_fail_nomem((size_t)b->schema.count * sizeof *numbers, "the levels' kinds");
    word = ki_calloc((size_t)b->schema.count * sizeof *word);
    if (!word) TRY(ki_fail_nomem((size_t)b->schema.count * sizeof *word, "the levels' kinds"));
    for (int64_t i = 0; i < b->levels.count; i++) {
        const struct ki_table_level *level = ki_table_level(&b->levels, i);
        const char *text = b->levels.text.data + level->text;
        const bool number = ki_table_is_number(text, level->size);
        numbers[level->column] += number;
        if (!number && level->size > 0 && !word[level->column]) word[level->column] = text;
    }
    for (int64_t i = 0; i < b->schema.count; i++) {
        const struct ki_table_column *column = &b->schema.columns[i];
        char hint[200], name[64], shown[64];
        if (column->forced || column->levels < LEVELS_LEAST || 2 * numbers[i] <= column->levels) continue;
        const struct ki_place first = {b->name, column->word_line, 0, -1};
        ki_table_excerpt(name, column->name, (int64_t)strlen(column->name));
        snprintf(hint, sizeof hint,
                 "kiln_read_options.missing_words takes a word for a missing value; "
                 "kiln_read_options.categorical '%s' says that text is meant",
                 name);
        TRY(ki_warn(b->warnings, word[i] ? &first : &place, hint,
                    "text column '%s': %lld of its %d levels are numbers%s%s%s", name, (long long)numbers[i],
                    (int)column->levels, word[i] ? ", the first that is none is '" : "",
                    word[i] ? ki_table_excerpt(shown, word[i], (int64_t)strlen(word[i])) : "",
                    word[i] ? "'" : ""));
    }
done:
    ki_free(word);
    ki_free(numbers);
    return status;
}

/* Columns of names: as many levels as rows, or nearly. */
static kiln_status warn_identifiers(struct ki_table_builder *b) {
    enum { ROWS_LEAST = 20 };
    const struct ki_place place = {b->name, 0, 0, -1};
    for (int64_t i = 0; !b->schema.frozen && i < b->schema.count; i++) {
        const struct ki_table_column *column = &b->schema.columns[i];
        char hint[200], name[64];
        if (!column->text || column->pair || b->all_rows < ROWS_LEAST || column->levels <= b->all_rows / 2)
            continue;
        ki_table_excerpt(name, column->name, (int64_t)strlen(column->name));
        snprintf(hint, sizeof hint,
                 "is it a name or a number of rows? kiln_read_options.ignore '%s' leaves it out", name);
        kiln_status status = ki_warn(b->warnings, &place, hint, "text column '%s' has %d levels in %lld rows",
                                     name, (int)column->levels, (long long)b->all_rows);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

static kiln_status warn_noticed(struct ki_table_builder *b) {
    static const char *const hints[KILN_UNSEEN_REFERENCE + 1] = {
        [KILN_UNSEEN_ZERO] = "kiln_read_options.unseen error|reference takes them otherwise",
        [KILN_UNSEEN_REFERENCE] = "kiln_read_options.unseen error|zero takes them otherwise"};
    const struct ki_table_noticed *level = &b->unseen[0], *class = &b->unseen[1], *row = &b->dropped;
    const kiln_unseen unseen = b->layout.unseen;
    kiln_status status = KILN_OK;
    if (level->count > 0)
        TRY(ki_warn(
            b->warnings, &level->first, hints[unseen],
            "values of text columns not seen in training: %lld; they count as %s; the first is '%s' in "
            "column '%s'",
            (long long)level->count,
            unseen == KILN_UNSEEN_ZERO ? "no level"
            : b->schema.columns[b->schema.count - 1].pair
                ? "the reference level, and pairs of known levels as none"
                : "the reference level",
            level->value, level->column));
    if (class->count > 0)
        TRY(ki_warn(b->warnings, &class->first, "they count as wrong where predictions are judged",
                    "rows of a class that training has not seen: %lld; the first is '%s' in column '%s'",
                    (long long)class->count, class->value, class->column));
    if (row->count > 0)
        TRY(ki_warn(b->warnings, &row->first, "kiln_read_options.missing mean|indicator keeps them",
                    "rows left out, as values are missing: %lld of %lld; the first is '%s' in column '%s'",
                    (long long)row->count, (long long)(row->count + b->all_rows), row->value, row->column));
done:
    return status;
}

/* Finds what could be wrong, now that all rows are there. */
static kiln_status judge(struct ki_table_builder *b) {
    const struct ki_place place = {b->name, 0, 0, -1};
    kiln_status status;
    TRY(ki_table_report_fail(&b->report, &b->layout));
    TRY(warn_noticed(b));
    TRY(warn_identifiers(b));
    TRY(warn_numbers(b));
    if (!b->schema.frozen) TRY(ki_table_find_references(&b->schema, &b->levels, &place));
    if (b->all_rows == 0 && b->dropped.count > 0) {
        ki_fail_at(KILN_ERR_DATA, &place, "all %lld rows have missing values", (long long)b->dropped.count);
        TRY(ki_hint("kiln_read_options.missing mean|indicator keeps them"));
    }
done:
    return status;
}

static struct ki_table_entries entries_of(struct ki_table_builder *b) {
    const int64_t size = b->layout.type == KILN_F32 ? 4 : 8;
    return (struct ki_table_entries){b->layout.sparse,         b->layout.type, b->rows,
                                     b->values.size / size,    b->values.data, (void *)b->ids.data,
                                     (void *)b->row_start.data};
}

/* Values that are missing get their means; ids become features. */
static kiln_status complete(struct ki_table_builder *b, struct ki_table *table) {
    const struct ki_place place = {b->name, 0, 0, -1};
    struct ki_table_entries entries = entries_of(b);
    int32_t *feature = NULL;
    kiln_status status = KILN_OK;
    const bool handles = b->schema.missing >= KILN_MISSING_MEAN;
    if (handles)
        TRY(ki_table_describe(&b->schema, &entries, &b->levels, &place, b->all_rows, b->options->threads,
                              table->together));
    TRY(ki_table_schema_finish(&feature, table, &b->schema, &b->levels));
    if (!handles && b->schema.frozen && table->together) TRY(ki_table_meet_idly(table->together));
    ki_table_levels_free(&b->levels); /* they are in the table's names now */
    if (!entries.sparse && table->cols > b->schema.count)
        TRY(ki_table_widen(&b->values, &entries, &b->schema, feature, table->cols));
    if (entries.sparse) ki_table_number_entries(&entries, feature, b->options->threads);
    if (handles) TRY(ki_table_impute(table, &b->schema, &entries, feature));
    table->nnz = entries.sparse ? entries.count : b->rows * table->cols;
done:
    ki_free(feature);
    give_back();
    return status == KILN_OK ? ki_table_list_columns(table, &b->schema) : status;
}

kiln_status ki_table_finish(struct ki_table_builder *b, struct ki_table *table) {
    kiln_status status;
    give_back();
    b->all_rows = b->rows;
    if (table->together) TRY(ki_table_meet(b, table->together));
    TRY(judge(b));
    TRY(number_classes(b, table));
    TRY(complete(b, table));
    table->format = b->layout.sparse ? KILN_CSR : KILN_DENSE;
    table->rows = b->rows;
    table->values = ki_bytes_take(&b->values);
    if (b->layout.sparse) table->row_start = ki_bytes_take(&b->row_start);
    if (b->layout.sparse) table->col = ki_bytes_take(&b->ids);
    if (table->targets > 0) table->y = ki_bytes_take(&b->y);
    bool taken = table->values && (!b->layout.sparse || (table->row_start && table->col));
    taken = taken && (table->targets == 0 || table->y);
    table->left_out_count = b->left_out.size / (int64_t)sizeof *table->left_out;
    if (table->left_out_count > 0) table->left_out = ki_bytes_take(&b->left_out);
    void **roles[KI_TABLE_ROLES] = {&table->weights, &table->offset, (void **)&table->groups};
    for (int i = 0; i < KI_TABLE_ROLES; i++)
        taken = taken &&
                (!b->schema.roles[i].name || ((*roles[i] = ki_bytes_take(&b->roles[i])) &&
                                              (table->role_names[i] = ki_strdup(b->schema.roles[i].name))));
    if (!taken) status = ki_fail_nomem(1, "the matrix");
    /* those of other processes come before the numbers */
    if (taken && table->groups && !table->together) TRY(ki_table_number_groups(table->groups, b->rows));
done:
    return status;
}
