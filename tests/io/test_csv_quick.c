/* Rows that are read in one walk mean what the others do. A word for missing values that is nowhere in the
 * file leads past that walk, and may change nothing: not the table, nor what is refused, where, and why. */
#define _DEFAULT_SOURCE
#include "io/reading.h"

#include "kiln.h"

enum { FILES = 1500, ROWS = 60, COLUMNS = 6, ROOM = 1 << 16 };
static const char no_such_word[] = "no such word";

static uint64_t random_state = 5;
static unsigned below(unsigned n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

#define PICK(list) (list)[below(sizeof(list) / sizeof *(list))]

static const char *odd_number(void) {
    static const char *const odd[] = {"1e5",
                                      "-2.5E-3",
                                      "+1",
                                      " 5 ",
                                      "\"3\"",
                                      "\"-1.5\"",
                                      "12345678901234567890123",
                                      "0.00",
                                      "-0",
                                      ".5",
                                      "5.",
                                      "9",
                                      "00012",
                                      "0.1234567890123456789012",
                                      "1e30",
                                      "16777217",
                                      "0.30000001192092896",
                                      "3.4e38",
                                      "99999999999999999999"};
    return PICK(odd);
}

static const char *bad_number(void) {
    static const char *const bad[] = {"",  "NA",  "nan", "inf",  "abc",   "1e400", "1,5",
                                      "-", "1 2", "1e",  "0x1f", "1.2.3", "12a"};
    return PICK(bad);
}

static const char *level(void) {
    static const char *const levels[] = {"a",
                                         "b",
                                         "red",
                                         "green",
                                         "New York",
                                         "exactly8",
                                         "fifteen letters",
                                         "sixteen letters!",
                                         "a level that is rather long",
                                         "\"a\"",
                                         "\"x\"\"y\"",
                                         "\"d,e\"",
                                         "\"fifteen letters\"",
                                         "\"sixteen letters!\"",
                                         "\"two\nlines\"",
                                         "\"\"",
                                         "\"a\" ",
                                         "\xc3\xa4",
                                         "1",
                                         "NA"};
    return PICK(levels);
}

static void number(char *to) {
    const unsigned digits = below(8);
    if (digits == 7)
        sprintf(to, "%s%u.%u%u", below(2) ? "-" : "", below(10), 100000000 + below(900000000),
                below(1000000000));
    else if (digits == 0)
        sprintf(to, "%u", below(3));
    else
        sprintf(to, "%s%.*f", below(2) ? "-" : "", (int)digits, below(2000000) / 1e5);
}

/* kinds: 0 a number, 1 a level, 2 a whole number from 0 to 2. How often a value is odd, or the record torn,
 * is one in so many. */
static size_t write_file(char *text, const int *kinds, unsigned odd, unsigned bad, unsigned torn) {
    const char *const line_end = below(4) ? "\n" : "\r\n", *const names[] = {"x", "c", "y"};
    size_t size = 0;
    for (int i = 0; i < COLUMNS; i++)
        size += (size_t)sprintf(text + size, "%s%s%d", i ? "," : "", names[kinds[i]], i);
    size += (size_t)sprintf(text + size, "%s", line_end);
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < COLUMNS; i++) {
            char field[80];
            number(field);
            if (kinds[i] == 2) sprintf(field, "%u", below(3));
            if (!below(odd)) strcpy(field, odd_number());
            if (!below(bad)) strcpy(field, bad_number());
            if (kinds[i] == 1 && below(20)) strcpy(field, level());
            size += (size_t)sprintf(text + size, "%s%s", i ? "," : "", field);
        }
        static const char *const tears[] = {",",    "\"",    "x\"y", "\r",   ",1", "\n",
                                            "\n\n", "\r\n1", "\xff", "\"\"", " "};
        if (!below(torn)) size += (size_t)sprintf(text + size, "%s", PICK(tears));
        if (row + 1 < ROWS || below(2)) size += (size_t)sprintf(text + size, "%s", line_end);
    }
    return size;
}

static void assert_same_reading(const char *text, size_t size, const kiln_read_options *options,
                                char **schema) {
    struct kiln_error first = {.message = NULL};
    char message[400] = "";
    kiln_read_options slow = *options;
    slow.missing_words = no_such_word;
    struct reading quick = read_bytes(ki_read_csv, text, size, options);
    if (quick.status != KILN_OK) {
        first = *kiln_last_error();
        snprintf(message, sizeof message, "%s", first.message);
    }
    struct reading other = read_bytes(ki_read_csv, text, size, &slow);
    if (quick.status != other.status)
        fail_msg("%d and %d: %s\n%.*s", (int)quick.status, (int)other.status, message, (int)size, text);
    if (quick.status != KILN_OK) {
        const kiln_error *second = kiln_last_error();
        if (strcmp(message, second->message) != 0 || first.line != second->line ||
            first.column != second->column || first.offset != second->offset)
            fail_msg("%s (%lld:%lld) and %s (%lld:%lld)\n%.*s", message, (long long)first.line,
                     (long long)first.column, second->message, (long long)second->line,
                     (long long)second->column, (int)size, text);
        return;
    }
    free(*schema);
    *schema = strdup(quick.table.schema);
    struct ki_table *a = &quick.table, *b = &other.table;
    ki_free(a->schema); /* which tells the word */
    a->schema = NULL;
    assert_same_reals(a, b, options->type == KILN_F32 ? sizeof(float) : sizeof(double));
    assert_int_equal(a->warnings.count, b->warnings.count);
    ki_table_clear(a);
    ki_table_clear(b);
}

static kiln_read_options random_options(const int *kinds, char names[4][8]) {
    static const kiln_missing missing[] = {KILN_MISSING_DEFAULT, KILN_MISSING_ERROR, KILN_MISSING_DROP,
                                           KILN_MISSING_MEAN, KILN_MISSING_INDICATOR};
    kiln_read_options options = {.type = below(2) ? KILN_F64 : KILN_F32, .threads = 1};
    const char *const prefix[] = {"x", "c", "y"};
    for (int i = 0; i < 4; i++) sprintf(names[i], "%s%d", prefix[kinds[i]], i);
    if (below(2)) options.target = names[0];
    if (options.target && below(2)) options.text_targets = 1;
    if (!below(3)) options.weights = names[1];
    if (!below(3)) options.ignore = names[2];
    if (!below(4)) options.groups = names[3];
    options.missing = PICK(missing);
    options.allow_nonfinite = !below(4);
    options.strict = !below(8);
    return options;
}

static void one_walk_is_as_two(void **state) {
    (void)state;
    char *text = malloc(ROOM);
    assert_non_null(text);
    for (int file = 0; file < FILES; file++) {
        int kinds[COLUMNS];
        char names[4][8], *schema = NULL;
        for (int i = 0; i < COLUMNS; i++) kinds[i] = (int)below(4) % 3;
        kiln_read_options options = random_options(kinds, names);
        const unsigned odd = below(3) ? 12 : 1000000, bad = below(2) ? 1000000 : 200,
                       torn = below(2) ? 1000000 : 40;
        assert_same_reading(text, write_file(text, kinds, odd, bad, torn), &options, &schema);
        kiln_model *model = NULL;
        if (schema && *schema && kiln_model_create(&model, "linreg") == KILN_OK &&
            kiln_model_set_text(model, "schema", schema) == KILN_OK) {
            options = (kiln_read_options){
                .type = options.type, .threads = 1, .model = model, .unseen = (kiln_unseen)below(4)};
            assert_same_reading(text, write_file(text, kinds, odd, bad, torn), &options, &schema);
        }
        kiln_model_free(model);
        free(schema);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_walk_is_as_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
