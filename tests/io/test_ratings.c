/* Lists of ratings: how lines are split, what a header says, which of two ratings counts; what is refused,
 * and where. */
#define _DEFAULT_SOURCE
#include "io/bad_file.h"

#include <math.h>

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_ratings, text, strlen(text), options);
}

/* Two users, three items: 7 rates x 4 and y 2.5, 9 rates y 5 and z 0. */
static void assert_small(struct reading *r) {
    if (r->status != KILN_OK) print_error("%s\n", kiln_last_error()->message);
    assert_int_equal(r->status, KILN_OK);
    assert_int_equal(r->table.rows, 2);
    assert_int_equal(r->table.cols, 3);
    assert_string_equal(r->table.row_names[0], "7");
    assert_string_equal(r->table.row_names[1], "9");
    for (int j = 0; j < 3; j++)
        assert_string_equal(r->table.feature_names[j], ((const char *[]){"x", "y", "z"})[j]);
    assert_memory_equal(r->table.row_start, ((int64_t[]){0, 2, 4}), 3 * sizeof(int64_t));
    assert_memory_equal(r->table.col, ((int32_t[]){0, 1, 1, 2}), 4 * sizeof(int32_t));
    assert_reals(r->table.values, (double[]){4, 2.5, 5, 0}, 4); /* the zero is kept */
    ki_table_clear(&r->table);
}

static void any_separator(void **state) {
    (void)state;
    static const char *const texts[] = {
        "7::x::4::978300760\n9::y::5::978302109\n7::y::2.5::1\n9::z::0::2\n", /* MovieLens */
        "7\tx\t4\t881250949\n9\ty\t5\t1\n7\ty\t2.5\t1\n9\tz\t0\t1",
        "7,x,4\n\n9,y,5\r\n7,y,2.5\n9,z,0\n",
        "7;x;4\n9;y;5\n7;y;2.5\n9;z;0\n",
        "7|x|4\n9|y|5\n7|y|2.5\n9|z|0\n",
        "7 x 4\n9  y\t5 \n  7 y 2.5\n9 z 0\n",
        "# mine\n% too\n\n7, \"x\" , 4\n\"9\",y,5\n7,y,\"2.5\"\n9,\"z\",0\n",
        "\xef\xbb\xbfuserId,movieId,rating,timestamp\n7,x,4,1\n9,y,5,1\n7,y,2.5,1\n9,z,0,1\n",
        "when,Rating,ITEM_ID,who,user_id\n1,4,x,,7\n1,5,y,,9\n1,2.5,y,,7\n1,0,z,,9\n", /* names say where */
        "who,what,how\n7,x,4\n9,y,5\n7,y,2.5\n9,z,0\n",                                /* none does */
    };
    const kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct reading r = read_text(texts[i], &options);
        assert_small(&r);
    }
}

static void columns_by_options(void **state) {
    (void)state;
    static const struct {
        const char *text, *source, *target, *weight;
    } files[] = {
        {"when,who,what,how\n1,7,x,4\n1,9,y,5\n1,7,y,2.5\n1,9,z,0\n", "who", "what", "how"},
        {"when,who,what,how\n1,7,x,4\n1,9,y,5\n1,7,y,2.5\n1,9,z,0\n", "2", "-2", "how"},
        {"1;4;x;7\n1;5;y;9\n1;2.5;y;7\n1;0;z;9\n", "-1", "3", "2"},
        {"user,item,rating,stars\n7,x,1,4\n9,y,1,5\n7,y,1,2.5\n9,z,1,0\n", NULL, NULL, "stars"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        kiln_read_options options = reading_options();
        options.source = files[i].source;
        options.target = files[i].target;
        options.weight = files[i].weight;
        struct reading r = read_text(files[i].text, &options);
        assert_small(&r);
    }
}

static void names_are_text(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    struct reading r = read_text("1,01,1\n1.0,\"a \"\"b\"\", c\",2\n+1,\xc3\xa4 x,3\n1,#1,4\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_int_equal(r.table.rows, 3);
    for (int j = 0; j < 4; j++)
        assert_string_equal(r.table.feature_names[j],
                            ((const char *[]){"01", "a \"b\", c", "\xc3\xa4 x", "#1"})[j]);
    ki_table_clear(&r.table);
}

/* The last rating counts, and that is told; lines without ratings are counted. */
static void repeats(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    static const char text[] = "a,x,1\nb,x,2\na,x,5\na,x,3\n";
    struct reading r = read_text(text, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.values, (double[]){3, 2}, 2);
    assert_int_equal(r.table.warnings.count, 1);
    assert_non_null(strstr(r.table.warnings.text.data, "the last one counts; left out: 2"));
    ki_table_clear(&r.table);
    options.strict = 1;
    struct reading strict = read_text(text, &options);
    assert_int_equal(strict.status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "the rating by 'a' of 'x' stands twice"));
    assert_int_equal(kiln_last_error()->line, 3);
    options = reading_options();
    r = read_text("a,x\nb,x\na,x\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.values, (double[]){2, 1}, 2);
    assert_int_equal(r.table.warnings.count, 0);
    ki_table_clear(&r.table);
    r = read_text("user,item,timestamp\na,x,77\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.values, (double[]){1}, 1);
    assert_non_null(strstr(r.table.warnings.text.data, "no column is called rating"));
    ki_table_clear(&r.table);
    options.type = KILN_F32;
    r = read_text("a,x,0.1\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(((float *)r.table.values)[0] == 0.1f);
    ki_table_clear(&r.table);
}

static void refusals(void **state) {
    (void)state;
    static const struct bad_file files[] = {
        {"1,2,3\n1,2\n", 2, 1, KILN_ERR_PARSE, "2 fields, the first line has 3", "user, item"},
        {"1::2::3::4\n1::2::3\n", 2, 1, KILN_ERR_PARSE, "3 fields, the first line has 4", NULL},
        {"1,2,3\n1,2,3,4\n", 2, 1, KILN_ERR_PARSE, "4 fields, the first line has 3", NULL},
        {"1\n", 1, 1, KILN_ERR_PARSE, "one field only: '1'", "user, item"},
        {"1,2,3\n1,,3\n", 2, 3, KILN_ERR_PARSE, "expected an item", NULL},
        {"1,2,3\n ,2,3\n", 2, 2, KILN_ERR_PARSE, "expected a user", NULL},
        {"1,2,3\n1,2,x\n", 2, 5, KILN_ERR_PARSE, "expected a rating, found 'x'", NULL},
        {"1,2,3\n1,2,3x\n", 2, 5, KILN_ERR_PARSE, "expected a rating", NULL},
        {"1,2,3\n1,2,\n", 2, 5, KILN_ERR_PARSE, "expected a rating, found the end of the line", NULL},
        {"1,2,3\n1,2,nan\n", 2, 5, KILN_ERR_PARSE, "rating 'nan'", "--allow-nonfinite"},
        {"1,2,3\n1,\"2,3\n", 2, 3, KILN_ERR_PARSE, "a quote that is not closed", "ends on its line"},
        {"1,2,3\n1,\"2\"3,4\n", 2, 6, KILN_ERR_PARSE, "expected a separator behind the quote", NULL},
        {"user,item,rating\nb,z,2\na,b\xff,1\n", 3, 3, KILN_ERR_PARSE, "the name of an item is not UTF-8",
         "iconv"},
        {"", 0, 0, KILN_ERR_DATA, "no ratings", NULL},
        {"# nothing\n\n", 0, 0, KILN_ERR_DATA, "no ratings", NULL},
        {"user,item,rating\n", 0, 0, KILN_ERR_DATA, "no ratings", NULL},
    };
    kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_ratings, &files[i], strlen(files[i].text), &options);
    static const char *const outside[] = {"0",
                                          "4",
                                          "-4",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "-99999999999999999999",
                                          "99999999999999999999"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        options.source = outside[i];
        assert_bad_file(
            ki_read_ratings,
            &(struct bad_file){"1,2,3\n", 1, 1, KILN_ERR_PARSE, "but a line has 3", "-1 for the last"}, 6,
            &options);
    }
    options.source = NULL;
    assert_bad_file(ki_read_ratings,
                    &(struct bad_file){"a,b\0c,1\n", 1, 3, KILN_ERR_PARSE, "not UTF-8", NULL}, 8, &options);
    options.max_name = 3;
    assert_bad_file(
        ki_read_ratings,
        &(struct bad_file){"abc,d,1\nabcd,d,1\n", 2, 1, KILN_ERR_LIMIT, "more than 3 bytes", NULL}, 17,
        &options);
    options = reading_options();
    options.type = KILN_F32;
    assert_bad_file(ki_read_ratings,
                    &(struct bad_file){"a,b,1e99\n", 1, 5, KILN_ERR_PARSE, "too large for f32", NULL}, 9,
                    &options);
}

/* The ratings of new users are numbered as the model's items are; others are left out, or an error. */
static void items_of_a_model(void **state) {
    (void)state;
    kiln_model *model = NULL;
    kiln_read_options options = reading_options();
    assert_int_equal(kiln_model_create(&model, "als"), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "columns", "[\"x\", \"12\", \"z\"]"), KILN_OK);
    options.model = model;
    static const char text[] = "new,z,5\nnew,12,4\nnew,other,3\n";
    struct reading r = read_text(text, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_int_equal(r.table.cols, 3);
    assert_memory_equal(r.table.col, ((int32_t[]){1, 2}), 2 * sizeof(int32_t));
    assert_reals(r.table.values, (double[]){4, 5}, 2);
    assert_non_null(strstr(r.table.warnings.text.data, "does not know are left out: 1"));
    ki_table_clear(&r.table);
    options.extra_columns = KILN_EXTRA_ERROR;
    assert_bad_file(ki_read_ratings,
                    &(struct bad_file){text, 3, 5, KILN_ERR_DATA, "does not know the item 'other'", NULL},
                    strlen(text), &options);
    kiln_model_free(model);
}

/* In a file of several blocks: the same matrix with one thread and with seven. */
static void threads_do_not_show(void **state) {
    (void)state;
    const int64_t ratings = 300000;
    char *text = malloc((size_t)ratings * 40);
    assert_non_null(text);
    size_t size = 0;
    uint64_t random = 7;
    for (int64_t i = 0; i < ratings; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size += (size_t)sprintf(text + size, "%u::m%u::%u::97830%u\n", (uint32_t)(random >> 33) % 3000,
                                (uint32_t)(random >> 11) % 900, (uint32_t)(random >> 5) % 6, (uint32_t)i);
    }
    assert_threads_do_not_show(ki_read_ratings, text, size);
    free(text);
}

/* Most lines of this file are whole numbers and a short one, which have a way of their own; a blank at each
 * line's end leads past it, to the same ratings. */
static void quick_lines_are_as_others(void **state) {
    (void)state;
    static const char *const names[] = {"0", "12345678", "123456789", "007", "+7", "1.0", "x", "\"7\"", "7 "};
    static const char *const values[] = {"1", "-0", "0.25", "4.5", ".5", "5.", "1e-300", "+1.5", "16777217"};
    enum { LINES = 3000, NAMES = sizeof names / sizeof *names, VALUES = sizeof values / sizeof *values };
    const kiln_read_options options = reading_options();
    char *text = malloc(LINES * 64), *blanks = malloc(LINES * 64);
    assert_true(text && blanks);
    for (int kind = 0; kind < 6; kind++) { /* pairs, values, values and a time behind */
        const char separator = kind & 1 ? '\t' : ',';
        size_t size = 0, blanks_size = 0;
        uint64_t random = 13;
        for (int i = 0; i < LINES; i++) {
            char line[64], user[16];
            random = random * 6364136223846793005u + 1442695040888963407u;
            const unsigned a = (unsigned)(random >> 33), b = (unsigned)(random >> 20),
                           v = (unsigned)(random >> 45);
            snprintf(user, sizeof user, "%u", a % 1000);
            int used = snprintf(line, sizeof line, "%s%c%u", a % 5 ? user : names[a / 5 % NAMES], separator,
                                b % 700);
            if (kind > 1)
                used +=
                    snprintf(line + used, sizeof line - (size_t)used, "%c%s", separator, values[v % VALUES]);
            if (kind > 3)
                snprintf(line + used, sizeof line - (size_t)used, "%c%u", separator, 978300000u + v);
            size += (size_t)sprintf(text + size, "%s\n", line);
            blanks_size += (size_t)sprintf(blanks + blanks_size, "%s \n", line);
        }
        struct reading quick = read_bytes(ki_read_ratings, text, size, &options);
        struct reading other = read_bytes(ki_read_ratings, blanks, blanks_size, &options);
        assert_int_equal(quick.status, KILN_OK);
        assert_int_equal(other.status, KILN_OK);
        assert_same_table(&quick.table, &other.table);
        ki_table_clear(&quick.table);
        ki_table_clear(&other.table);
    }
    free(text);
    free(blanks);
}

static void damage(void **state) {
    (void)state;
    const kiln_read_options options = reading_options();
    assert_true(damage_text(ki_read_ratings, "user,item,rating\n1,\"a\",0.5\n2,x,1e3\n", &options) > 20);
    assert_true(damage_text(ki_read_ratings, "1::2::5::7\n2::1::3::7\n", &options) > 20);
}

static void memory_runs_out(void **state) {
    (void)state;
    static const char text[] = "1,2,0.5\n2,\"x\"\"\",1e3\n2,1,7\n1,2,4\n";
    const kiln_read_options options = reading_options();
    assert_survives_shortage(ki_read_ratings, text, sizeof text - 1, &options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_separator),
        cmocka_unit_test(columns_by_options),
        cmocka_unit_test(names_are_text),
        cmocka_unit_test(repeats),
        cmocka_unit_test(refusals),
        cmocka_unit_test(items_of_a_model),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(quick_lines_are_as_others),
        cmocka_unit_test(damage),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
