/* The CSV reader: what it accepts, what it makes of it, and what it says about files it cannot use. */
#define _DEFAULT_SOURCE
#include "io/bad_file.h"

#include "io/csv/csv.h"

static struct reading read_text(const char *text, const kiln_read_options *options) {
    return read_bytes(ki_read_csv, text, strlen(text), options);
}

static void dense_file(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.target = "y";
    struct reading r = read_text("a,y,b\n1,10,2.5\n-3,20,4e-3\n\n 5 , 30 ,\"6\"\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_int_equal(r.table.format, KILN_DENSE);
    assert_true(r.table.rows == 3 && r.table.cols == 2 && r.table.targets == 1 && r.table.nnz == 6);
    assert_reals(r.table.values, (double[]){1, 2.5, -3, 4e-3, 5, 6}, 6);
    assert_reals(r.table.y, (double[]){10, 20, 30}, 3);
    assert_string_equal(r.table.feature_names[1], "b");
    assert_string_equal(r.table.target_names[0], "y");
    assert_string_equal(r.table.schema,
                        "{\"format\":\"csv\",\"target\":[\"y\"],\"columns\":[{\"name\":\"a\",\"kind\":"
                        "\"number\"},{\"name\":\"b\",\"kind\":\"number\"}]}");
    ki_table_clear(&r.table);
}

/* Weights and offset are neither features nor targets, wherever they stand. */
static void columns_with_roles(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.target = "y";
    options.weights = "w";
    options.offset = "o";
    struct reading r = read_text("w,a,o,y,k\n2,1,0.5,10,u\n3,-1,0.25,20,v\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 2 && r.table.cols == 3 && r.table.targets == 1);
    assert_reals(r.table.weights, (double[]){2, 3}, 2);
    assert_reals(r.table.offset, (double[]){0.5, 0.25}, 2);
    assert_reals(r.table.y, (double[]){10, 20}, 2);
    assert_null(strstr(r.table.schema, "\"name\":\"w\""));
    ki_table_clear(&r.table);
    r = read_text("w,a,y\n2,1,10\n", &options);
    assert_int_equal(r.status, KILN_ERR_ARGUMENT);
    assert_non_null(strstr(kiln_last_error()->message, "offset 'o'"));
    options.offset = "y";
    r = read_text("w,a,y\n2,1,10\n", &options);
    assert_int_equal(r.status, KILN_ERR_ARGUMENT);
    assert_non_null(strstr(kiln_last_error()->message, "both target and offset"));
    options.offset = NULL;
    r = read_text("w,a,y\n2,1,10\n,2,11\n", &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_int_equal(kiln_last_error()->line, 3);
}

/* Rows of one text belong together, whether it is quoted or not; groups are numbered as they come. */
static void groups_of_rows(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.target = "y";
    options.groups = "g";
    struct reading r = read_text("a,g,y\n1,x,1\n2,\"y\"\"\",2\n3,\"x\",3\n4,7,4\n5,\"y\"\"\",5\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 5 && r.table.cols == 1);
    for (int i = 0; i < 5; i++) assert_int_equal(r.table.groups[i], ((int[]){0, 1, 0, 2, 1})[i]);
    ki_table_clear(&r.table);
    r = read_text("a,g,y\n1,x,1\n2,,2\n", &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_int_equal(kiln_last_error()->line, 3);
    options.missing = KILN_MISSING_DROP;
    r = read_text("a,g,y\n1,x,1\n2,NA,2\n3,z,3\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 2 && r.table.groups[0] == 0 && r.table.groups[1] == 1);
    ki_table_clear(&r.table);
    options.groups = "y";
    r = read_text("a,g,y\n1,x,1\n", &options);
    assert_int_equal(r.status, KILN_ERR_ARGUMENT);
    assert_non_null(strstr(kiln_last_error()->message, "both target and groups"));
}

static void text_columns(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.target = "delay";
    struct reading r =
        read_text("carrier,dist,delay,to\nUA,0,1,\"x,\ny\"\nAA,7,2,\nUA,8,3,\"say \"\"hi\"\"\"\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_int_equal(r.table.format, KILN_CSR);
    assert_true(r.table.rows == 3 && r.table.cols == 6 && r.table.nnz == 8);
    static const char *const names[] = {"carrier=AA", "carrier=UA",    "dist",
                                        "to=",        "to=say \"hi\"", "to=x,\ny"};
    for (int j = 0; j < 6; j++) assert_string_equal(r.table.feature_names[j], names[j]);
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 5, 8}), 32);
    assert_memory_equal(r.table.col, ((int32_t[]){1, 5, 0, 2, 3, 1, 2, 4}), 32);
    assert_reals(r.table.values, (double[]){1, 1, 1, 7, 1, 1, 8, 1}, 8);
    assert_reals(r.table.y, (double[]){1, 2, 3}, 3);
    assert_non_null(
        strstr(r.table.schema, "{\"name\":\"carrier\",\"kind\":\"text\",\"levels\":[\"AA\",\"UA\"]}"));
    ki_table_clear(&r.table);
}

/* Whole numbers of up to eight characters are read apart from all others. */
static void whole_numbers(void **state) {
    (void)state;
    static const char *const numbers[] = {"0",        "-0",        "7",         "-7",         "007",
                                          "-0012",    "99999999",  "-9999999",  "12345678",   "-1234567",
                                          "10000000", "999999999", "-12345678", "1234567890", "90909090",
                                          "-8070605", "102",       "+5"};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    char text[1024] = "a,b\n";
    double want[2 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        sprintf(text + strlen(text), "%s,%s\n", numbers[i], numbers[COUNT - 1 - i]);
        want[2 * i] = strtod(numbers[i], NULL);
        want[2 * i + 1] = strtod(numbers[COUNT - 1 - i], NULL);
    }
    kiln_read_options options = reading_options();
    struct reading r = read_text(text, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_memory_equal(r.table.values, want, sizeof want); /* the sign of zero, too */
    ki_table_clear(&r.table);
}

/* None of these passes for a whole number, wherever in the text it stands. */
static void no_whole_numbers(void **state) {
    (void)state;
    static const char *const words[] = {
        "-",  "--5",      "5-",       "1-2",      "1:2",      "12/3",     "1 2", "x1",
        "1x", "1234567:", "/2345678", ":2345678", "-:234567", "\xB1\xB2", "0x1"};
    kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int last = 0; last < 2; last++) {
            char text[512] = "a\n";
            for (int row = 0; row < 40; row++) strcat(text, "1\n");
            strcat(strcat(text, words[i]), last ? "" : "\n1\n1\n1\n1\n1\n");
            struct reading r = read_text(text, &options);
            assert_int_equal(r.status, KILN_ERR_PARSE);
            assert_true(kiln_last_error()->line == 42);
        }
}

/* Files that mean the same as "a,b\n1,2\n3,4\n". */
static void spellings(void **state) {
    (void)state;
    static const struct {
        const char *text, *suffix;
    } files[] = {
        {"a,b\n1,2\n3,4\n", ""},
        {"a,b\r\n1,2\r\n3,4\r\n", ""},
        {"a,b\n1,2\n3,4", ""},
        {"a;b\n1;2\n3;4\n", ""},
        {"a\tb\n1\t2\n3\t4\n", ""},
        {"a\tb\n1\t2\n3\t4\n", ".tsv"},
        {"\xEF\xBB\xBF"
         "a,b\n1,2\n3,4\n",
         ""},
        {"\n\na,b\n\n1,2\n\r\n3,4\n\n", ""},
        {"\"a\",\"b\"\n\"1\",\"2\"\n3,4\n", ""},
        {"a,b\n+1,2.0\n3e0,.4e1\n", ""},
        {"\"a\",b\n1,2\n3,4\r", ""},
        {"a;\"b\"\n1;2\n3;4", ""},
        {"a b\n1 2\n3 4\n", ".txt"},
        {"  a   b  \r\n 1 \t2\r\n3    4 ", ""},
        {"# a b\n1.00e+00 2.00e+00\n3.00e+00 4.00e+00\n", ".txt"},
        {"\"a\" \"b\"\n\"1\" 1 2\n\"2\" 3 4\n", ".txt"},
        {"a b\nfirst 1 2\n\"the second\" 3 4\n", ""},
    };
    kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct reading r =
            read_named(ki_read_csv, files[i].text, strlen(files[i].text), files[i].suffix, &options);
        assert_int_equal(r.status, KILN_OK);
        assert_true(r.table.rows == 2 && r.table.cols == 2 && r.table.targets == 0 && !r.table.y);
        assert_reals(r.table.values, (double[]){1, 2, 3, 4}, 4);
        assert_string_equal(r.table.feature_names[0], "a");
        assert_string_equal(r.table.feature_names[1], "b");
        ki_table_clear(&r.table);
    }
}

static void headers(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.target = "column2";
    struct reading r = read_text("1,2\n3,4\n", &options); /* none: all fields are numbers */
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 2);
    assert_reals(r.table.y, (double[]){2, 4}, 2);
    assert_string_equal(r.table.feature_names[0], "column1");
    ki_table_clear(&r.table);
    static const char *const numbers[] = {"2", "-1"};
    for (int i = 0; i < 2; i++) { /* the number alone, or from the end */
        options.target = numbers[i];
        r = read_text("1,2\n3,4\n", &options);
        assert_int_equal(r.status, KILN_OK);
        assert_reals(r.table.y, (double[]){2, 4}, 2);
        assert_string_equal(r.table.target_names[0], "column2");
        ki_table_clear(&r.table);
        r = read_text("a,b\n1,2\n", &options); /* not of columns that have names */
        assert_int_equal(r.status, KILN_ERR_ARGUMENT);
    }
    options.target = "-3";
    assert_int_equal(read_text("1,2\n3,4\n", &options).status, KILN_ERR_ARGUMENT);
    options.target = "column2";
    r = read_text(",a\n5,6\n", &options); /* a column without name */
    assert_int_equal(r.status, KILN_ERR_ARGUMENT);
    options.target = NULL;
    r = read_text(",a\n5,6\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_string_equal(r.table.feature_names[0], "column1");
    ki_table_clear(&r.table);
    r = read_text("1 2\n3 4\n", &options); /* blanks separate */
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 2 && r.table.cols == 2);
    assert_string_equal(r.table.feature_names[1], "column2");
    ki_table_clear(&r.table);
    r = read_text("name of town\nNew York\nOld York\n", &options); /* and here they do not */
    assert_int_equal(r.status, KILN_OK);
    assert_string_equal(r.table.feature_names[1], "name of town=Old York");
    ki_table_clear(&r.table);
    r = read_text("a,b\n", &options); /* no rows */
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 0 && r.table.cols == 2);
    ki_table_clear(&r.table);
}

static void several_targets(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.target = "c,a";
    struct reading r = read_text("a,b,c\n1,2,3\n4,5,6\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.cols == 1 && r.table.targets == 2);
    assert_reals(r.table.y, (double[]){3, 1, 6, 4}, 4);
    ki_table_clear(&r.table);
    options.target = "x,y"; /* a name that holds a comma goes first */
    r = read_text("\"x,y\",b\n1,2\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_string_equal(r.table.target_names[0], "x,y");
    ki_table_clear(&r.table);
}

static void nonfinite_allowed(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.allow_nonfinite = 1;
    struct reading r = read_text("a,b,c\n1,,inf\n-inf,nan,NA\n", &options);
    assert_int_equal(r.status, KILN_OK);
    const double *x = r.table.values;
    assert_true(x[1] != x[1] && x[2] > 1e308 && x[3] < -1e308 && x[4] != x[4] && x[5] != x[5]);
    ki_table_clear(&r.table);
}

static void targets_and_weights_in_range(void **state) {
    (void)state;
    static const kiln_range share = {0, 1, 0, "divide it"};
    static const struct bad_file files[] = {
        {"w,x,y\n1,-5,1\n\n1,2,1.5\n", 4, 5, KILN_ERR_DATA,
         "value '1.5' in column 'y' must be a number >= 0 and <= 1", "divide it"},
        {"w,x,y\n1,-5,nan\n", 2, 6, KILN_ERR_DATA, "'nan' in column 'y' must be a number >= 0", NULL},
        {"w,x,y\n-2,3,1\n", 2, 1, KILN_ERR_DATA, "value '-2' in column 'w' must be a number >= 0", NULL},
    };
    kiln_read_options options = reading_options();
    options.target = "y";
    options.weights = "w";
    options.target_range = &share;
    options.allow_nonfinite = 1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_bad_file(ki_read_csv, &files[i], strlen(files[i].text), &options);
    struct reading r = read_text("w,x,y\n0,-5,1\n3,7,0\n", &options);
    assert_int_equal(r.status, KILN_OK);
    ki_table_clear(&r.table);
}

static void narrow_type(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.type = KILN_F32;
    struct reading r = read_text("a,b\n0.1,2\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(((float *)r.table.values)[0] == 0.1f && ((float *)r.table.values)[1] == 2);
    ki_table_clear(&r.table);
    r = read_text("a,b\n1e39,2\n", &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
}

#define ELEVEN "a,b\n1,1\n1,1\n1,1\n1,1\n1,1\n1,1\n1,1\n1,1\n1,1\n1,1\n"

static const struct bad {
    const char *text;
    kiln_status status;
    int64_t line, column;
    const char *message, *hint;
} bad_files[] = {
    {"", KILN_ERR_PARSE, 1, 1, "the file has no lines", "column names"},
    {"\n\r\n", KILN_ERR_PARSE, 1, 1, "the file has no lines", ""},
    {",,,\nname,age\n", KILN_ERR_PARSE, 1, 1, "names no column", "remove the line"},
    {"\n;\" \";\t\r\n1;2;3\n", KILN_ERR_PARSE, 2, 1, "names no column", "remove the line"},
    {"a b\n1 2\n3 4 5\n", KILN_ERR_PARSE, 3, 1, "the row has 3 fields, the first line has 2", ""},
    {"a b\n1 2\n3\n", KILN_ERR_PARSE, 3, 1, "the row has 1 fields, the first line has 2", ""},
    {"\"a\" \"b\"\n\"1\" 1 2\n\"2\"\n", KILN_ERR_PARSE, 3, 1, "the row has 0 fields, the first line has 2",
     ""},
    {"a b\n1 2\n3 \"4\"5\n", KILN_ERR_PARSE, 3, 6, "", ""},
    {"a,b\n1,2\n3\n", KILN_ERR_PARSE, 3, 1, "the row has 1 fields, the first line has 2", "quotes around"},
    {"a,b\n1,2\n3,4,5\n", KILN_ERR_PARSE, 3, 1, "the row has 3 fields", ""},
    {"a,b\n1,2\n3,4,\n", KILN_ERR_PARSE, 3, 1, "the row has 3 fields", ""},
    {"a,b\n1,2\n3,\n", KILN_ERR_PARSE, 3, 3, "value '' in numeric column 'b': missing", "fill the value"},
    {"a,b\n1,2\nNA,4\n", KILN_ERR_PARSE, 3, 1, "value 'NA' in numeric column 'a': missing", "remove the row"},
    {"a,b\n1,2\n5,nan\n", KILN_ERR_PARSE, 3, 3, "value 'nan'", ""},
    {"a,b\n1,2\n5,-inf\n", KILN_ERR_PARSE, 3, 3, "value '-inf' in column 'b' is not a finite f64", ""},
    {"a,b\n1,2\n5,1e309\n", KILN_ERR_PARSE, 3, 3, "value '1e309'", ""},
    {ELEVEN "1,oops\n", KILN_ERR_PARSE, 12, 3, "value 'oops' in numeric column 'b': expected a number",
     "correct"},
    {ELEVEN "1,0x10\n", KILN_ERR_PARSE, 12, 3, "value '0x10'", ""},
    {ELEVEN "1,\"1,200.5\"\n", KILN_ERR_PARSE, 12, 4, "value '1,200.5' in numeric column 'b'", "thousands"},
    {"a;b\n1;1,5\n2;2\n", KILN_ERR_PARSE, 2, 3, "value '1,5' in column 'b': a number with a comma",
     "decimal point"},
    {"a,b\n1,\"12,000\"\n", KILN_ERR_PARSE, 2, 4, "value '12,000'", "thousands"},
    {"a,b\n1,5\" pipe\n", KILN_ERR_PARSE, 2, 4, "a quote inside a field", "double the quotes"},
    {"a,b\n1,\"x\"y\n", KILN_ERR_PARSE, 2, 6, "text behind the closing quote", ""},
    {"a,b\n1,\"x\n2,3\n", KILN_ERR_PARSE, 2, 3, "not closed within the file", "close the quote"},
    {"\"a,b\n1,2\n", KILN_ERR_PARSE, 1, 1, "not closed within the file", ""},
    {"a,b\r1,2\r3,4\r", KILN_ERR_PARSE, 1, 4, "a carriage return without line feed", "line ends"},
    {"a,b,a\n1,2,3\n", KILN_ERR_PARSE, 1, 1, "two columns are named 'a'", "rename"},
    {"a,b\xFF\n1,2\n", KILN_ERR_PARSE, 1, 3, "the name of column 2 is not UTF-8", "iconv"},
    {"a,b\n1,caf\xE9\n", KILN_ERR_PARSE, 2, 3, "a value in column 'b' is not UTF-8", "iconv"},
    {"a,b\n1,\"l1\nl2\"\n2,\"l1\"\n3\n", KILN_ERR_PARSE, 5, 1, "the row has 1 fields", ""},
};

static void bad_table(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        const struct bad *bad = &bad_files[i];
        struct reading r = read_text(bad->text, &options);
        const kiln_error *error = kiln_last_error();
        assert_int_equal(r.status, bad->status);
        if (!strstr(error->message, bad->message) || !strstr(error->hint, bad->hint))
            fail_msg("file %zu says: %s (hint: %s)", i, error->message, error->hint);
        if (error->line != bad->line || error->column != bad->column)
            fail_msg("file %zu: %lld:%lld", i, (long long)error->line, (long long)error->column);
        assert_string_equal(error->file, r.path);
    }
}

static void nul_bytes(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    struct reading r = read_bytes(ki_read_csv, "a,b\n1,x\0y\n", 10, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    r = read_bytes(ki_read_csv, "a\0,b\n1,2\n", 9, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    r = read_bytes(ki_read_csv, "a,b\n1,2\0\n", 9, &options);
    if (r.status == KILN_OK) ki_table_clear(&r.table);
    assert_int_equal(r.status, KILN_ERR_PARSE);
}

static void bad_targets(void **state) {
    (void)state;
    static const char text[] = "dep_delay,carrier,arr_delay\n1,AA,2\n";
    kiln_read_options options = reading_options();
    options.target = "arr_dely";
    assert_int_equal(read_text(text, &options).status, KILN_ERR_ARGUMENT);
    assert_string_equal(kiln_last_error()->message, "target 'arr_dely' is not a column of the file");
    assert_string_equal(kiln_last_error()->hint, "did you mean 'arr_delay'?");
    options.target = "ARR_DELAY";
    assert_int_equal(read_text(text, &options).status, KILN_ERR_ARGUMENT);
    assert_string_equal(kiln_last_error()->hint, "did you mean 'arr_delay'?");
    assert_int_equal(read_text("a,y\n1,2\n", &(kiln_read_options){.type = KILN_F64, .target = "Y"}).status,
                     KILN_ERR_ARGUMENT);
    assert_string_equal(kiln_last_error()->hint, "did you mean 'y'?");
    options.target = "price";
    assert_int_equal(read_text(text, &options).status, KILN_ERR_ARGUMENT);
    assert_string_equal(kiln_last_error()->hint, "the header has 3 columns, from 'dep_delay' to 'arr_delay'");
    options.target = "carrier";
    assert_int_equal(read_text(text, &options).status, KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->hint, "kiln_read_options.text_targets"));
    options.target = "arr_delay,arr_delay";
    assert_int_equal(read_text(text, &options).status, KILN_ERR_ARGUMENT);
    options.target = "";
    assert_int_equal(read_text(text, &options).status, KILN_ERR_ARGUMENT);
    options.target = "y";
    assert_int_equal(read_text("y\n1\n", &options).status, KILN_ERR_DATA);
}

/* ------------------------------------------------------------------------------------------ models */

static kiln_model *model_with(const char *schema) {
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_create(&model, "linreg"), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "schema", schema), KILN_OK);
    return model;
}

#define SCHEMA                                                                                               \
    "{\"format\":\"csv\",\"target\":[\"y\"],\"columns\":[{\"name\":\"a\",\"kind\":\"number\"},"              \
    "{\"name\":\"t\",\"kind\":\"text\",\"levels\":[\"p\",\"q\"]}]}"

static void model_schema(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    kiln_model *model = model_with(SCHEMA);
    options.model = model;
    struct reading r = read_text("t,other,a,y\nq,x,5,1\nnew,x,6,2\np,,0,3\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 3 && r.table.cols == 3 && r.table.nnz == 4 && r.table.targets == 1);
    assert_memory_equal(r.table.row_start, ((int64_t[]){0, 2, 3, 4}), 32);
    assert_memory_equal(r.table.col, ((int32_t[]){0, 2, 0, 1}), 16);
    assert_reals(r.table.values, (double[]){5, 1, 6, 1}, 4);
    assert_reals(r.table.y, (double[]){1, 2, 3}, 3);
    assert_string_equal(r.table.feature_names[2], "t=q");
    assert_string_equal(r.table.schema, SCHEMA);
    ki_table_clear(&r.table);
    r = read_text("a,t\n1,p\n", &options); /* without the target */
    assert_int_equal(r.status, KILN_OK);
    assert_true(!r.table.y && r.table.targets == 0);
    ki_table_clear(&r.table);
    r = read_text("a,y\n1,2\n", &options);
    assert_int_equal(r.status, KILN_ERR_MODEL);
    assert_non_null(strstr(kiln_last_error()->message, "needs a column 't'"));
    r = read_text("a,t\nword,p\n", &options); /* the model says that a is a number */
    assert_int_equal(r.status, KILN_ERR_PARSE);
    options.target = "z";
    r = read_text("a,t,z\n1,p,9\n", &options);
    assert_int_equal(r.status, KILN_OK);
    assert_reals(r.table.y, (double[]){9}, 1);
    ki_table_clear(&r.table);
    kiln_model_free(model);
}

static void hostile_schemas(void **state) {
    (void)state;
    static const char *const schemas[] = {
        "x",
        "[]",
        "{}",
        "{\"format\":\"csv\"}",
        "{\"format\":\"npy\",\"target\":[],\"columns\":[]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[1]}",
        "{\"format\":\"csv\",\"target\":[1],\"columns\":[{\"name\":\"a\",\"kind\":\"number\"}]}",
        "{\"format\":\"csv\",\"target\":\"y\",\"columns\":[{\"name\":\"a\",\"kind\":\"number\"}]}",
        "{\"format\":\"csv\",\"target\":[\"a\"],\"columns\":[{\"name\":\"a\",\"kind\":\"number\"}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\"}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"date\"}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"number\",\"levels\":[]}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"text\"}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"text\",\"levels\":[1]}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"text\",\"levels\":[\"q\","
        "\"p\"]}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"text\",\"levels\":[\"p\","
        "\"p\"]}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"number\"},{\"name\":\"a\","
        "\"kind\":\"number\"}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"number\",\"more\":1}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"name\":\"b\",\"kind\":\"number\"}]"
        "}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\\u0000\",\"kind\":\"number\"}]}",
        "{\"format\":\"csv\",\"target\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"number\"}],\"x\":1}",
    };
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        kiln_read_options options = reading_options();
        kiln_model *model = model_with(schemas[i]);
        options.model = model;
        struct reading r = read_text("a,b\n1,2\n", &options);
        if (r.status != KILN_ERR_MODEL) fail_msg("schema %zu: %s", i, kiln_status_name(r.status));
        kiln_model_free(model);
    }
}

/* ------------------------------------------------------------------------------------- large and odd */

/* Rows of a file that spans several blocks: numbers, levels, quoted line feeds. */
static char *large_file(size_t *size, int rows) {
    char *text = malloc((size_t)rows * 96 + 64);
    size_t at = (size_t)sprintf(text, "x,t,q,y\n");
    for (int i = 0; i < rows; i++) {
        const char *quoted = i % 7 == 0 ? "\"two\nlines, \"\"and\"\" quotes\"" : "plain";
        at += (size_t)sprintf(text + at, "%d.5,L%d,%s,%d\n", i, (i * 7919) % 1000, quoted, i % 13);
    }
    *size = at;
    return text;
}

static void threads_agree(void **state) {
    (void)state;
    size_t size;
    char *text = large_file(&size, 120000);
    kiln_read_options options = reading_options();
    options.target = "y";
    options.threads = 1;
    struct reading one = read_bytes(ki_read_csv, text, size, &options);
    assert_int_equal(one.status, KILN_OK);
    assert_true(one.table.rows == 120000 && one.table.cols == 1003 && one.table.nnz == 360000);
    const double *y = one.table.y;
    for (int64_t i = 0; i < one.table.rows; i++) assert_true(y[i] == (double)(i % 13));
    for (options.threads = 2; options.threads < 8; options.threads += 3) {
        struct reading many = read_bytes(ki_read_csv, text, size, &options);
        assert_int_equal(many.status, KILN_OK);
        assert_same_table(&one.table, &many.table);
        ki_table_clear(&many.table);
    }
    ki_table_clear(&one.table);
    for (options.threads = 1; options.threads < 6; options.threads += 2) {
        char *place = strstr(text + size * 3 / 4, ",plain,");
        memcpy(place, ",pl\"in,", 7);
        assert_int_equal(read_bytes(ki_read_csv, text, size, &options).status, KILN_ERR_PARSE);
        assert_int_equal(kiln_last_error()->offset, place + 3 - text);
        memcpy(place, ",plain,", 7);
    }
    free(text);
}

/* A quoted field longer than any block. */
static void long_field(void **state) {
    (void)state;
    size_t quoted = 20u << 20, size = quoted + 64;
    char *text = malloc(size);
    memset(text, '\n', size);
    memcpy(text, "t,x\n\"", 5);
    size_t at = 5 + quoted;
    at += (size_t)sprintf(text + at, "\",1\nshort,2\n");
    kiln_read_options options = reading_options();
    assert_int_equal(read_bytes(ki_read_csv, text, at, &options).status, KILN_ERR_LIMIT);
    options.max_name = 64 << 20;
    struct reading r = read_bytes(ki_read_csv, text, at, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_true(r.table.rows == 2 && r.table.cols == 3);
    assert_true(strlen(r.table.feature_names[0]) == quoted + 2);
    ki_table_clear(&r.table);
    text[at - 3] = ';'; /* a bad row behind it: the line is known all the same */
    r = read_bytes(ki_read_csv, text, at, &options);
    assert_int_equal(r.status, KILN_ERR_PARSE);
    assert_int_equal(kiln_last_error()->line, (int64_t)quoted + 3);
    free(text);
}

/* Every prefix and every changed byte gives an error or a table, never anything worse. */
static void torn_files(void **state) {
    (void)state;
    static const char text[] = "a,t,\"q\"\r\n1,x,\"l1\nl2\"\n-2.5e3,\"y\"\"z\",w\n3,,v\n";
    kiln_read_options options = reading_options();
    size_t size = sizeof text - 1;
    char copy[sizeof text];
    for (size_t i = 0; i <= size; i++) {
        struct reading r = read_bytes(ki_read_csv, text, i, &options);
        assert_true(r.status == KILN_OK || kiln_last_error()->status == r.status);
        ki_table_clear(&r.table);
    }
    static const char changes[] = {0, '\xFF', '"', ',', '\n', '\r', 'x', '7'};
    for (size_t i = 0; i < size * sizeof changes; i++) {
        memcpy(copy, text, size);
        copy[i / sizeof changes] = changes[i % sizeof changes];
        struct reading r = read_bytes(ki_read_csv, copy, size, &options);
        assert_true(r.status == KILN_OK || r.status == KILN_ERR_PARSE);
        ki_table_clear(&r.table);
    }
}

static void memory_runs_out(void **state) {
    (void)state;
    size_t size;
    char *text = large_file(&size, 150);
    kiln_read_options options = reading_options();
    options.target = "y";
    assert_survives_shortage(ki_read_csv, text, size, &options);
    free(text);
    kiln_model *model = model_with(SCHEMA);
    options.target = NULL;
    options.model = model;
    assert_survives_shortage(ki_read_csv, "t,a,y\np,1,2\n", 12, &options);
    kiln_model_free(model);
}

static void shipped_data(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.target = "arr_delay";
    struct ki_input *input;
    struct ki_table table = {0};
    assert_int_equal(ki_input_open(&input, KILN_SHIPPED_DATA "/flights.csv.gz", 0, NULL), KILN_OK);
    assert_int_equal(ki_read_csv(&table, input, &options), KILN_OK);
    ki_input_close(input);
    assert_true(table.rows == 65470 && table.cols == 126 && table.targets == 1);
    double sum = 0;
    for (int64_t i = 0; i < table.rows; i++) sum += ((double *)table.y)[i];
    assert_true(sum == 438067);
    ki_table_clear(&table);
}

/* A word of digits that means "missing" is none in any row, also where a number would be read quickly. */
static void numbers_that_mean_missing(void **state) {
    (void)state;
    kiln_read_options options = reading_options();
    options.missing = KILN_MISSING_MEAN;
    options.missing_words = "-999,0.5";
    static const char text[] = "a,b\n1,2\n-999,3.5\n4,0.5\n-1,1.25\n1,1\n1,1\n1,1\n";
    struct reading r = read_bytes(ki_read_csv, text, sizeof text - 1, &options);
    assert_int_equal(r.status, KILN_OK);
    assert_int_equal(r.table.filled_count, 2);
    assert_true(((const double *)r.table.values)[2] == 7.0 / 6);
    assert_true(((const double *)r.table.values)[5] == 9.75 / 6);
    ki_table_clear(&r.table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_file),        cmocka_unit_test(columns_with_roles),
        cmocka_unit_test(text_columns),      cmocka_unit_test(spellings),
        cmocka_unit_test(headers),           cmocka_unit_test(whole_numbers),
        cmocka_unit_test(no_whole_numbers),  cmocka_unit_test(several_targets),
        cmocka_unit_test(nonfinite_allowed), cmocka_unit_test(targets_and_weights_in_range),
        cmocka_unit_test(narrow_type),       cmocka_unit_test(bad_table),
        cmocka_unit_test(nul_bytes),         cmocka_unit_test(bad_targets),
        cmocka_unit_test(model_schema),      cmocka_unit_test(hostile_schemas),
        cmocka_unit_test(threads_agree),     cmocka_unit_test(long_field),
        cmocka_unit_test(torn_files),        cmocka_unit_test(shipped_data),
        cmocka_unit_test(memory_runs_out),   cmocka_unit_test(numbers_that_mean_missing),
        cmocka_unit_test(groups_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
