/* All rows are there: what is wrong or odd about them is told, columns become features, missing values their
 * means. */
#include <stdio.h>
#include <string.h>

#include "io/csv/csv_reader.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* What has been freed goes back to the system: of a wide table the steps' work space is as large as what
 * they make. */
static void give_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static kiln_status number_classes(struct ki_csv_reader *r, struct ki_table *table) {
    int32_t *rank = NULL;
    bool any = false;
    ki_csv_classes_settle(r->y.data, r->layout.type, r->rows, &r->schema, &r->classes);
    for (int64_t t = 0; t < r->schema.target_count; t++) any |= r->schema.targets[t].text;
    kiln_status status = any ? ki_csv_classes_finish(&rank, table, &r->schema, &r->classes) : KILN_OK;
    if (rank) ki_csv_classes_number(r->y.data, r->layout.type, r->rows, &r->schema, rank);
    ki_free(rank);
    return status;
}

/* Columns that are text by their first rows and numbers by the others, as where a word for missing values
 * fills the beginning. */
static kiln_status warn_numbers(struct ki_csv_reader *r) {
    enum { LEVELS_LEAST = 10 };
    const struct ki_place place = {r->name, 0, 0, -1};
    kiln_status status = KILN_OK;
    if (r->schema.frozen) return KILN_OK;
    const char **word = NULL; /* the first level of each column that is no number */
    int64_t *numbers = ki_calloc((size_t)r->schema.count * sizeof *numbers);
    if (!numbers) return ki_fail_nomem((size_t)r->schema.count * sizeof *numbers, "the levels' kinds");
    word = ki_calloc((size_t)r->schema.count * sizeof *word);
    if (!word) TRY(ki_fail_nomem((size_t)r->schema.count * sizeof *word, "the levels' kinds"));
    for (int64_t i = 0; i < r->levels.count; i++) {
        const struct ki_csv_level *level = ki_csv_level(&r->levels, i);
        const char *text = r->levels.text.data + level->text;
        const bool number = ki_csv_is_number(text, level->size);
        numbers[level->column] += number;
        if (!number && level->size > 0 && !word[level->column]) word[level->column] = text;
    }
    for (int64_t i = 0; i < r->schema.count; i++) {
        const struct ki_csv_column *column = &r->schema.columns[i];
        char hint[200], name[64], shown[64];
        if (column->forced || column->levels < LEVELS_LEAST || 2 * numbers[i] <= column->levels) continue;
        const struct ki_place first = {r->name, column->word_line, 0, -1};
        ki_csv_excerpt(name, column->name, (int64_t)strlen(column->name));
        snprintf(hint, sizeof hint,
                 "kiln_read_options.missing_words takes a word for a missing value; "
                 "kiln_read_options.categorical '%s' says that "
                 "text is meant",
                 name);
        TRY(ki_warn(r->warnings, word[i] ? &first : &place, hint,
                    "text column '%s': %lld of its %d levels are numbers%s%s%s", name, (long long)numbers[i],
                    (int)column->levels, word[i] ? ", the first that is none is '" : "",
                    word[i] ? ki_csv_excerpt(shown, word[i], (int64_t)strlen(word[i])) : "",
                    word[i] ? "'" : ""));
    }
done:
    ki_free(word);
    ki_free(numbers);
    return status;
}

/* Columns of names: as many levels as rows, or nearly. */
static kiln_status warn_identifiers(struct ki_csv_reader *r) {
    enum { ROWS_LEAST = 20 };
    const struct ki_place place = {r->name, 0, 0, -1};
    for (int64_t i = 0; !r->schema.frozen && i < r->schema.count; i++) {
        const struct ki_csv_column *column = &r->schema.columns[i];
        char hint[200], name[64];
        if (!column->text || r->all_rows < ROWS_LEAST || column->levels <= r->all_rows / 2) continue;
        ki_csv_excerpt(name, column->name, (int64_t)strlen(column->name));
        snprintf(hint, sizeof hint,
                 "is it a name or a number of rows? kiln_read_options.ignore '%s' leaves it out", name);
        kiln_status status = ki_warn(r->warnings, &place, hint, "text column '%s' has %d levels in %lld rows",
                                     name, (int)column->levels, (long long)r->all_rows);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

static kiln_status warn_noticed(struct ki_csv_reader *r) {
    static const char *const hints[KILN_UNSEEN_REFERENCE + 1] = {
        [KILN_UNSEEN_ZERO] = "kiln_read_options.unseen error|reference takes them otherwise",
        [KILN_UNSEEN_REFERENCE] = "kiln_read_options.unseen error|zero takes them otherwise"};
    const struct noticed *level = &r->unseen[0], *class = &r->unseen[1], *row = &r->dropped;
    const kiln_unseen unseen = r->layout.unseen;
    kiln_status status = KILN_OK;
    if (level->count > 0)
        TRY(ki_warn(
            r->warnings, &level->first, hints[unseen],
            "values of text columns not seen in training: %lld; they count as %s; the first is '%s' in "
            "column '%s'",
            (long long)level->count, unseen == KILN_UNSEEN_ZERO ? "no level" : "the reference level",
            level->value, level->column));
    if (class->count > 0)
        TRY(ki_warn(r->warnings, &class->first, "they count as wrong where predictions are judged",
                    "rows of a class that training has not seen: %lld; the first is '%s' in column '%s'",
                    (long long)class->count, class->value, class->column));
    if (row->count > 0)
        TRY(ki_warn(r->warnings, &row->first, "kiln_read_options.missing mean|indicator keeps them",
                    "rows left out, as values are missing: %lld of %lld; the first is '%s' in column '%s'",
                    (long long)row->count, (long long)(row->count + r->all_rows), row->value, row->column));
done:
    return status;
}

/* What could be wrong, now that all rows are there. */
static kiln_status judge(struct ki_csv_reader *r) {
    const struct ki_place place = {r->name, 0, 0, -1};
    kiln_status status;
    TRY(ki_csv_report_fail(&r->report, &r->layout));
    TRY(warn_noticed(r));
    TRY(warn_identifiers(r));
    TRY(warn_numbers(r));
    if (!r->schema.frozen) TRY(ki_csv_find_references(&r->schema, &r->levels, &place));
    if (r->all_rows == 0 && r->dropped.count > 0) {
        ki_fail_at(KILN_ERR_DATA, &place, "all %lld rows have missing values", (long long)r->dropped.count);
        TRY(ki_hint("kiln_read_options.missing mean|indicator keeps them"));
    }
done:
    return status;
}

static struct ki_csv_entries entries_of(struct ki_csv_reader *r) {
    const int64_t size = r->layout.type == KILN_F32 ? 4 : 8;
    return (struct ki_csv_entries){r->layout.sparse,         r->layout.type, r->rows,
                                   r->values.size / size,    r->values.data, (void *)r->ids.data,
                                   (void *)r->row_start.data};
}

/* Values that are missing get their means; ids become features. */
static kiln_status complete(struct ki_csv_reader *r, struct ki_table *table) {
    const struct ki_place place = {r->name, 0, 0, -1};
    struct ki_csv_entries entries = entries_of(r);
    int32_t *feature = NULL;
    kiln_status status = KILN_OK;
    const bool handles = r->schema.missing >= KILN_MISSING_MEAN;
    if (handles)
        TRY(ki_csv_describe(&r->schema, &entries, &r->levels, &place, r->all_rows, r->options->threads,
                            table->together));
    TRY(ki_csv_schema_finish(&feature, table, &r->schema, &r->levels));
    if (!handles && r->schema.frozen && table->together) TRY(ki_csv_meet_idly(table->together));
    ki_csv_levels_free(&r->levels); /* they are in the table's names now */
    if (!entries.sparse && table->cols > r->schema.count)
        TRY(ki_csv_widen(&r->values, &entries, &r->schema, feature, table->cols));
    if (entries.sparse) ki_csv_number_entries(&entries, feature, r->options->threads);
    if (handles) TRY(ki_csv_impute(table, &r->schema, &entries, feature));
    table->nnz = entries.sparse ? entries.count : r->rows * table->cols;
done:
    ki_free(feature);
    give_back();
    return status == KILN_OK ? ki_csv_list_columns(table, &r->schema) : status;
}

kiln_status ki_csv_finish(struct ki_csv_reader *r, struct ki_table *table) {
    kiln_status status;
    give_back();
    r->all_rows = r->rows;
    if (table->together) TRY(ki_csv_meet(r, table->together));
    TRY(judge(r));
    TRY(number_classes(r, table));
    TRY(complete(r, table));
    table->format = r->layout.sparse ? KILN_CSR : KILN_DENSE;
    table->rows = r->rows;
    table->values = ki_bytes_take(&r->values);
    if (r->layout.sparse) table->row_start = ki_bytes_take(&r->row_start);
    if (r->layout.sparse) table->col = ki_bytes_take(&r->ids);
    if (table->targets > 0) table->y = ki_bytes_take(&r->y);
    bool taken = table->values && (!r->layout.sparse || (table->row_start && table->col));
    taken = taken && (table->targets == 0 || table->y);
    table->left_out_count = r->left_out.size / (int64_t)sizeof *table->left_out;
    if (table->left_out_count > 0) table->left_out = ki_bytes_take(&r->left_out);
    void **roles[KI_CSV_ROLES] = {&table->weights, &table->offset, (void **)&table->groups};
    for (int i = 0; i < KI_CSV_ROLES; i++)
        taken = taken && (!r->schema.roles[i].name || (*roles[i] = ki_bytes_take(&r->roles[i])));
    if (!taken) status = ki_fail_nomem(1, "the matrix");
    /* those of other processes come before the numbers */
    if (taken && table->groups && !table->together) TRY(ki_csv_number_groups(table->groups, r->rows));
done:
    return status;
}
