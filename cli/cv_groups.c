/* The groups of rows that cross-validation keeps together: the data's own, or numbers of a file of their
 * own, which may be any. */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "metrics.h"

struct numbered {
    double number;
    int64_t row;
};

static int by_number(const void *a, const void *b) {
    const double left = ((const struct numbered *)a)->number, right = ((const struct numbered *)b)->number;
    return (left > right) - (left < right);
}

static int no_memory(void) {
    return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the groups");
}

/* To 0, 1, ... in the order of the numbers. */
static int number(int64_t *groups, int64_t *count, const double *numbers, int64_t rows) {
    struct numbered *sorted = malloc((size_t)rows * sizeof *sorted + 1);
    if (!sorted) return no_memory();
    for (int64_t i = 0; i < rows; i++) sorted[i] = (struct numbered){numbers[i], i};
    qsort(sorted, (size_t)rows, sizeof *sorted, by_number);
    *count = 0;
    for (int64_t i = 0; i < rows; i++) {
        *count += i == 0 || sorted[i].number != sorted[i - 1].number;
        groups[sorted[i].row] = *count - 1;
    }
    free(sorted);
    return 0;
}

static int read_file(struct run *run, int64_t *groups, int64_t *count, const kiln_data *data) {
    kiln_matrix *column = NULL;
    int code = run_read_column_file(run, &column, run->settings->groups_file, KILN_F64, "groups", data);
    double *numbers = code ? NULL : values_of(column, &code);
    if (!code) code = number(groups, count, numbers, kiln_matrix_rows(column));
    free(numbers);
    kiln_matrix_free(column);
    return code;
}

int run_read_groups(struct run *run, const kiln_data *data, int64_t **groups, int64_t *count) {
    const kiln_matrix *X = kiln_data_X(data);
    const int64_t rows = kiln_matrix_rows(X), *found = kiln_data_groups(data);
    if (!found && !run->settings->groups_file) return 0;
    if (found && run->settings->groups_file)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give one of them",
                         "--groups and --groups-file together");
    *groups = malloc((size_t)rows * sizeof **groups + 1);
    if (!*groups) return no_memory();
    if (!found) return read_file(run, *groups, count, data);
    memcpy(*groups, found, (size_t)rows * sizeof **groups);
    for (int64_t i = 0; i < rows; i++) *count = found[i] >= *count ? found[i] + 1 : *count;
    return 0;
}
