/* The parts of one CSV file, each with a reader of its own: what they tell each other makes one table of
 * them. */
#define _DEFAULT_SOURCE
#include "io/reading.h"

#include "io/csv/csv.h"
#include "io/part.h"

enum { PARTS = 2, COLUMNS = 1500, ROWS = 60 };

/* Holds what all tell, by rank; that of the others has been gathered before a reader comes. */
static struct {
    int rank;
    struct ki_bytes told[PARTS];
} meeting;

static kiln_status meet(void *of, struct ki_bytes *bytes) {
    struct ki_bytes *own = &meeting.told[meeting.rank], all = {0};
    (void)of;
    ki_bytes_free(own);
    *own = *bytes;
    for (int i = 0; i < PARTS; i++)
        assert_true(ki_bytes_append(&all, meeting.told[i].data, meeting.told[i].size));
    *bytes = all;
    return KILN_OK;
}

static void read_part(struct ki_table *table, const char *path, int rank, const kiln_read_options *options) {
    const struct ki_together together = {.rank = rank, .first = path, .meet = meet};
    const struct ki_part part = {.number = rank, .count = PARTS};
    int64_t bytes;
    *table = (struct ki_table){.together = &together};
    meeting.rank = rank;
    assert_int_equal(ki_part_read(table, &bytes, path, KILN_FILE_CSV, options, part), KILN_OK);
    table->together = NULL;
}

/* The header and the first row fill more than the first block, of 64 KiB, so that it ends with the header.
 * Towns change every ten rows, and a value is missing in rows that `left_out` has. */
static void write_file(char *path, const bool left_out[ROWS]) {
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fputs("y,town", file);
    for (int j = 0; j < COLUMNS; j++) fprintf(file, ",a column with a name of 42 bytes: %08d", j);
    for (int i = 0; i < ROWS; i++) {
        fprintf(file, "\n%d,town %d", i, i / 10);
        for (int j = 0; j < COLUMNS; j++) fputs(j == 7 && left_out[i] ? "," : ",2", file);
    }
    fputs("\n", file);
    assert_int_equal(fclose(file), 0);
}

/* Reads all parts, twice, as only then each hears what all tell. */
static void read_parts(struct ki_table *parts, const bool left_out[ROWS]) {
    char path[] = "/tmp/kiln-parts-XXXXXX";
    kiln_read_options options = reading_options();
    options.target = "y";
    options.missing = KILN_MISSING_DROP;
    write_file(path, left_out);
    for (int i = 0; i < 2 * PARTS; i++) {
        if (i >= PARTS) ki_table_clear(&parts[i % PARTS]);
        read_part(&parts[i % PARTS], path, i % PARTS, &options);
    }
    for (int i = 0; i < PARTS; i++) ki_bytes_free(&meeting.told[i]);
    unlink(path);
}

/* All know by the first rows that towns are text, and which there are. */
static void first_rows_behind_a_block(void **state) {
    (void)state;
    struct ki_table parts[PARTS];
    read_parts(parts, (const bool[ROWS]){false});
    assert_true(parts[0].rows > 2 && parts[1].rows > 2 && parts[0].rows + parts[1].rows == ROWS);
    for (int i = 0; i < PARTS; i++) {
        assert_true(parts[i].cols == ROWS / 10 + COLUMNS);
        assert_string_equal(parts[i].feature_names[0], "town=town 0");
        assert_string_equal(parts[i].feature_names[5], "town=town 5");
        ki_table_clear(&parts[i]);
    }
}

/* The first row of all that is left out: who has found it knows the line, the others the value alone. */
static void place_of_a_row_left_out(void **state) {
    (void)state;
    for (int finder = 0; finder < PARTS; finder++) {
        struct ki_table parts[PARTS];
        bool left_out[ROWS] = {false};
        left_out[finder == 0 ? 1 : ROWS - 2] = left_out[ROWS - 1] = true;
        read_parts(parts, left_out);
        for (int i = 0; i < PARTS; i++) {
            const char *warning = parts[i].warnings.text.data;
            assert_int_equal(parts[i].warnings.count, 1);
            assert_non_null(strstr(warning, "missing: 2 of 60; the first is '' in column 'a column"));
            const char *line = strchr(warning, ':') + 1;
            assert_true((*line >= '1' && *line <= '9') == (i == finder));
            ki_table_clear(&parts[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_rows_behind_a_block),
        cmocka_unit_test(place_of_a_row_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
