/* Targets that are text: classes numbered in the order of their names, the same for a model's further
 * data. */
#define _DEFAULT_SOURCE
#include "io/bad_file.h"

static const char flowers[] = "length,species\n1.5,virginica\n2,setosa\n3,\"virginica\"\n4,b\xc3\xa4r\n";

static kiln_read_options class_options(void) {
    kiln_read_options options = reading_options();
    options.target = "species";
    options.text_targets = 1;
    return options;
}

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_csv, text, strlen(text), options);
}

static void numbered_by_name(void **state) {
    (void)state;
    kiln_read_options options = class_options();
    struct reading r = read_text(flowers, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.targets == 1 && r.table.class_count[0] == 3 && r.table.format == KILN_DENSE);
    assert_string_equal(r.table.class_names[0][0], "b\xc3\xa4r");
    assert_string_equal(r.table.class_names[0][1], "setosa");
    assert_string_equal(r.table.class_names[0][2], "virginica");
    assert_reals(r.table.y, (double[]){2, 1, 2, 0}, 4);
    assert_non_null(
        strstr(r.table.schema,
               "\"target\":[{\"name\":\"species\",\"levels\":[\"b\xc3\xa4r\",\"setosa\",\"virginica\"]}]"));
    ki_table_clear(&r.table);
    options.type = KILN_F32;
    r = read_text(flowers, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(((float *)r.table.y)[0] == 2 && ((float *)r.table.y)[3] == 0);
    ki_table_clear(&r.table);
}

static void numbers_stay_numbers(void **state) {
    (void)state;
    const kiln_read_options options = class_options();
    struct reading r = read_text("a,species\n1,10\n2,-3\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_null(r.table.class_names);
    assert_reals(r.table.y, (double[]){10, -3}, 2);
    ki_table_clear(&r.table);
}

static void two_targets(void **state) {
    (void)state;
    kiln_read_options options = class_options();
    options.target = "species,size,colour";
    struct reading r = read_text("species,x,size,colour\nb,1,7,red\na,2,8,blue\nb,3,9,green\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.targets == 3 && r.table.class_count[0] == 2 && r.table.class_count[2] == 3);
    assert_null(r.table.class_names[1]);
    assert_reals(r.table.y, (double[]){1, 7, 2, 0, 8, 0, 1, 9, 1}, 9);
    ki_table_clear(&r.table);
}

static kiln_model *model_with(const char *schema) {
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_create(&model, "logreg"), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "schema", schema), KILN_OK);
    return model;
}

#define SCHEMA(target)                                                                                       \
    "{\"format\":\"csv\",\"target\":[" target "],\"columns\":[{\"name\":\"length\",\"kind\":\"number\"}]}"

/* A class that the model does not know is -1; data without the target are fine. */
static void with_a_model(void **state) {
    (void)state;
    kiln_model *model = model_with(SCHEMA("{\"name\":\"species\",\"levels\":[\"setosa\",\"virginica\"]}"));
    kiln_read_options options = reading_options();
    options.model = model;
    struct reading r = read_text(flowers, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.y, (double[]){1, 0, 1, -1}, 4);
    assert_int_equal(r.table.class_count[0], 2);
    ki_table_clear(&r.table);
    options.target = "species"; /* named again */
    r = read_text(flowers, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.y, (double[]){1, 0, 1, -1}, 4);
    ki_table_clear(&r.table);
    options.target = "y"; /* another one, of numbers */
    r = read_text("length,y\n1,2\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.y, (double[]){2}, 1);
    assert_null(r.table.class_names);
    ki_table_clear(&r.table);
    options.target = NULL;
    r = read_text("length\n1\n2\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_null(r.table.y);
    ki_table_clear(&r.table);
    kiln_model_free(model);
}

static void hostile_schemas(void **state) {
    (void)state;
    static const char *const schemas[] = {
        SCHEMA("{\"name\":\"species\"}"),
        SCHEMA("{\"name\":\"species\",\"levels\":[\"b\",\"a\"]}"),
        SCHEMA("{\"name\":\"species\",\"levels\":[\"a\",\"a\"]}"),
        SCHEMA("{\"name\":\"species\",\"levels\":[1]}"),
        SCHEMA("{\"name\":\"species\",\"levels\":\"a\"}"),
        SCHEMA("{\"name\":\"species\",\"levels\":[\"a\"],\"kind\":\"text\"}"),
        SCHEMA("{\"levels\":[\"a\"]}"),
        SCHEMA("[\"species\"]"),
        SCHEMA("{\"name\":\"length\",\"levels\":[\"a\"]}"),
    };
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        kiln_model *model = model_with(schemas[i]);
        kiln_read_options options = reading_options();
        options.model = model;
        struct reading r = read_text(flowers, &options);
        if (r.status != KILN_ERR_MODEL) fail_msg("schema %zu: %s", i, kiln_status_name(r.status));
        kiln_model_free(model);
    }
}

static void refusals(void **state) {
    (void)state;
    static const struct bad_file files[] = {
        {"x,species\n1,a\n2,\n3,b\n", 3, 3, KILN_ERR_PARSE, "in target 'species': missing", "missing drop"},
        {"x,species\n1,a\n2,\xff\n", 3, 3, KILN_ERR_PARSE, "not UTF-8", "iconv"},
        {"x,species\n1,\"1,5\"\n2,\"2,5\"\n", 2, 4, KILN_ERR_PARSE, "a number with a comma", NULL},
    };
    const kiln_read_options options = class_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_csv, &files[i], strlen(files[i].text), &options);
}

/* Enough rows for several parts, with classes that come late. */
static void threads_do_not_show(void **state) {
    (void)state;
    const int rows = 60000;
    char *text = malloc((size_t)rows * 24 + 16);
    assert_non_null(text);
    size_t size = (size_t)sprintf(text, "x,species\n");
    for (int i = 0; i < rows; i++)
        size += (size_t)sprintf(text + size, "%d,class %d\n", i, (i * 7919) % (1 + i / 1000));
    kiln_read_options options = class_options();
    options.threads = 1;
    struct reading one = read_bytes(ki_read_csv, text, size, &options);
    options.threads = 5;
    struct reading five = read_bytes(ki_read_csv, text, size, &options);
    assert_int_equal(one.status, KILN_OK);
    assert_int_equal(five.status, KILN_OK);
    assert_same_table(&one.table, &five.table);
    for (int i = 0; i < rows; i++) { /* the number names the class of the row */
        char name[32];
        snprintf(name, sizeof name, "class %d", (i * 7919) % (1 + i / 1000));
        assert_string_equal(one.table.class_names[0][(int64_t)((double *)one.table.y)[i]], name);
    }
    ki_table_clear(&one.table);
    ki_table_clear(&five.table);
    free(text);
}

static void memory_runs_out(void **state) {
    (void)state;
    const kiln_read_options options = class_options();
    assert_survives_shortage(ki_read_csv, flowers, sizeof flowers - 1, &options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbered_by_name),    cmocka_unit_test(numbers_stay_numbers),
        cmocka_unit_test(two_targets),         cmocka_unit_test(with_a_model),
        cmocka_unit_test(hostile_schemas),     cmocka_unit_test(refusals),
        cmocka_unit_test(threads_do_not_show), cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
