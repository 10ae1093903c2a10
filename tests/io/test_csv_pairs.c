/* Pairs of text columns (kiln_read_options.interact): each row has one entry for its pair, in the feature
 * that the cells' own texts name. */
#define _DEFAULT_SOURCE
#include "io/bad_file.h"

enum { ROWS = 3000, LEVELS = 7 };
static const char *const colours[LEVELS] = {
    "red", "blue", "", "a:b", "x,\"y\"", "12:30", "long enough not to be cached"};

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_csv, text, strlen(text), options);
}

static void put_cell(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', file);
}

/* The levels of row i: any of both columns, but not all pairs. */
static int level_of(int i, int column) {
    const unsigned mixed = (unsigned)i * 2654435761u >> 7;
    return (int)(column ? (mixed / LEVELS % 3 + mixed) % LEVELS : mixed % LEVELS);
}

static char *make_table(int rows) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    fputs("k,n,l\n", file);
    for (int i = 0; i < rows; i++) {
        put_cell(file, colours[level_of(i, 0)]);
        fprintf(file, ",%d,", i % 5);
        put_cell(file, colours[level_of(i, 1)]);
        fputc('\n', file);
    }
    fclose(file);
    return text;
}

/* The row's last entry is 1, in the feature of its pair. */
static void assert_pairs(const struct ki_table *table, int rows) {
    char wanted[100];
    for (int i = 0; i < rows; i++) {
        const int64_t last = table->row_start[i + 1] - 1;
        snprintf(wanted, sizeof wanted, "k=%s:l=%s", colours[level_of(i, 0)], colours[level_of(i, 1)]);
        assert_string_equal(table->feature_names[table->col[last]], wanted);
        assert_true(((double *)table->values)[last] == 1);
        assert_true(last - table->row_start[i] == 2 + (i % 5 != 0));
    }
}

static void each_row_has_its_pair(void **state) {
    (void)state;
    char *text = make_table(ROWS), *schema = NULL;
    kiln_read_options options = reading_options();
    options.interact = "k:l";
    for (options.threads = 1; options.threads < 6; options.threads += 2) {
        struct reading r = read_text(text, &options);
        assert_int_equal(r.status, KILN_OK);
        assert_pairs(&r.table, ROWS);
        assert_true(r.table.cols == 1 + 2 * LEVELS + 3 * LEVELS); /* the pairs that occur */
        assert_int_equal(r.table.category_count, 3);
        if (!schema) schema = strdup(r.table.schema);
        assert_string_equal(r.table.schema, schema);
        ki_table_clear(&r.table);
    }
    free(schema);
    free(text);
}

/* A model's features are those of its training; a pair that it has not seen is no level. */
static void a_model_remembers_pairs(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    kiln_model *model = NULL;
    options.interact = "k:l";
    struct reading r = read_text("k,l\np,q\nr,s\n,q\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_string_equal(r.table.feature_names[5], "k=:l=q");
    assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "schema", r.table.schema), KILN_OK);
    ki_table_clear(&r.table);
    options.interact = NULL;
    options.model = model;
    r = read_text("l,k\nq,p\nq,r\ns,r\nq,\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 3, 5, 8, 11}), 5 * sizeof(int64_t));
    assert_memory_equal(r.table.col, ((int32_t[]){1, 3, 6, 2, 3, 2, 4, 7, 0, 3, 5}), 11 * sizeof(int32_t));
    assert_int_equal(r.table.warnings.count, 1);
    ki_table_clear(&r.table);
    kiln_model_free(model);
}

/* Rows of levels that a model does not know. It knows (p, s), (p, t), (r, s), without a level for pairs of p
 * if p is the reference: features k=p, k=r, l=s, l=t, and the pairs. */
static struct reading read_unseen(kiln_model **model, const char *reference, kiln_unseen unseen,
                                  const char *text) {
    kiln_read_options options = reading_options();
    options.interact = "k:l";
    options.reference = reference;
    struct reading r = read_text("k,l\np,s\np,t\nr,s\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_int_equal(kiln_model_create(model, "linreg"), KILN_OK);
    assert_int_equal(kiln_model_set_text(*model, "schema", r.table.schema), KILN_OK);
    ki_table_clear(&r.table);
    options = reading_options();
    options.unseen = unseen;
    options.model = *model;
    return read_text(text, &options);
}

/* (r, t) is of known levels, and has no pair; (z, t) is that of the level that z stands for. */
static void unseen_levels_and_pairs(void **state) {
    (void)state;
    kiln_model *model = NULL;
    struct reading r = read_unseen(&model, NULL, KILN_UNSEEN_REFERENCE, "k,l\nr,t\nz,t\n");
    assert_int_equal(r.status, KILN_OK);
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 5}), 3 * sizeof(int64_t));
    assert_memory_equal(r.table.col, ((int32_t[]){1, 3, 0, 3, 5}), 5 * sizeof(int32_t));
    const char *warning = r.table.warnings.text.data;
    assert_non_null(strstr(warning, "training: 2; they count as the reference level, and pairs of known"));
    assert_non_null(strstr(warning, "levels as none; the first is 'r' with 't' in column 'k:l'"));
    ki_table_clear(&r.table);
    kiln_model_free(model);
    r = read_unseen(&model, NULL, KILN_UNSEEN_ZERO, "k,l\nr,t\nz,t\n");
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 3}), 3 * sizeof(int64_t));
    ki_table_clear(&r.table);
    kiln_model_free(model);
    r = read_unseen(&model, NULL, KILN_UNSEEN_ERROR, "k,l\np,s\nr,t\n");
    assert_int_equal(r.status, KILN_ERR_MODEL);
    assert_non_null(strstr(kiln_last_error()->message, "level 'r' with 't' of column 'k:l' was not seen"));
    kiln_model_free(model);
}

/* Treatment coding: what has a reference level in it has no feature, so that columns are independent. */
static void references_have_no_pairs(void **state) {
    (void)state;
    kiln_model *model = NULL;
    kiln_read_options options = reading_options();
    options.interact = "k:l";
    options.reference = "k=p,l=s";
    struct reading r = read_text("k,l\np,s\np,t\nr,s\nr,t\nr,u\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.cols == 5);
    assert_string_equal(r.table.feature_names[3], "k=r:l=t");
    assert_string_equal(r.table.feature_names[4], "k=r:l=u");
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 0, 1, 2, 5, 8}), 6 * sizeof(int64_t));
    ki_table_clear(&r.table);
    r = read_unseen(&model, "k=p", KILN_UNSEEN_REFERENCE, "k,l\nr,s\nz,s\np,t\n");
    assert_int_equal(r.status, KILN_OK); /* r, s, r:s */
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 3, 4, 5}), 4 * sizeof(int64_t));
    ki_table_clear(&r.table);
    kiln_model_free(model);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *interact, *text, *says;
    } cases[] = {{"k", "k,l,n\na,b,1\n", "is of one column, not A:B"},
                 {"k:k", "k,l,n\na,b,1\n", "'k:k' is of one column"},
                 {"k:m", "k,l,n\na,b,1\n", "'m' is not a column"},
                 {"k:n", "k,l,n\na,b,1\n", "column 'n' is numeric"},
                 {"k:l,k:l", "k,l,n\na,b,1\n", "two columns would be named 'k:l'"},
                 {"k:l,l:k", "k,l,n\na,b,1\n", "interactions 'k:l' and 'l:k' are of the same columns"},
                 {"k:=:", "k,=:\np,q\np:=,y\n", "two pairs could have one name"},
                 {"k:l", "k,l,k:l\na,b,1\n", "is of one column, not A:B"},
                 {"k:l", "k,l\na,b\nc:l=d,e\n", "two pairs could have one name"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_read_options options = reading_options();
        options.interact = cases[i].interact;
        struct reading r = read_text(cases[i].text, &options);
        assert_true(r.status == KILN_ERR_ARGUMENT || r.status == KILN_ERR_DATA);
        assert_non_null(strstr(kiln_last_error()->message, cases[i].says));
    }
}

#define PAIR(of)                                                                                             \
    "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"k\",\"kind\":\"text\",\"levels\":[\"a\"]},"  \
    "{\"name\":\"n\",\"kind\":\"number\"},{\"name\":\"k:l\",\"kind\":\"text\",\"of\":" of                    \
    ",\"levels\":[]}]}"

static void hostile_schemas(void **state) {
    (void)state;
    static const char *const schemas[] = {PAIR("1"),
                                          PAIR("[]"),
                                          PAIR("[\"k\"]"),
                                          PAIR("[\"k\",\"n\"]"),
                                          PAIR("[\"k\",\"z\"]"),
                                          PAIR("[\"k:l\",\"k\"]"),
                                          PAIR("[\"k\",1]"),
                                          PAIR("[\"k\",\"k\",\"k\"]")};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        kiln_model *model = NULL;
        kiln_read_options options = reading_options();
        assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
        assert_int_equal(kiln_model_set_text(model, "schema", schemas[i]), KILN_OK);
        options.model = model;
        struct reading r = read_text("k,n\na,1\n", &options);
        assert_int_equal(r.status, KILN_ERR_MODEL);
        assert_non_null(strstr(kiln_last_error()->message, "a pair is "));
        kiln_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_row_has_its_pair),
                                       cmocka_unit_test(a_model_remembers_pairs),
                                       cmocka_unit_test(unseen_levels_and_pairs),
                                       cmocka_unit_test(references_have_no_pairs),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(hostile_schemas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
