/* "y 1:0.5 7:2": targets separated by commas, then the stored entries, columns counted from 1. */
#include <math.h>

#include "io/decimal.h"
#include "io/print.h"

enum { ENTRY_BYTES = 12 + KI_DECIMAL_BYTES }; /* " 2147483648:" and the value */

static int64_t bound(const struct ki_printer *printer, int64_t i) {
    const struct ki_table *table = printer->table;
    int64_t entries = table->format == KILN_CSR ? table->row_start[i + 1] - table->row_start[i] : table->cols;
    return table->targets * (KI_DECIMAL_BYTES + 1) + entries * ENTRY_BYTES + 1;
}

static char *print_entry(char *at, int64_t column, double value, kiln_type type) {
    *at++ = ' ';
    at = ki_print_int64(at, column + 1);
    *at++ = ':';
    return ki_print_real(at, value, type);
}

static char *print_row(const struct ki_printer *printer, char *at, int64_t i) {
    const struct ki_table *table = printer->table;
    kiln_type type = printer->type;
    for (int64_t t = 0; t < table->targets; t++) {
        if (t > 0) *at++ = ',';
        at = ki_print_real(at, ki_element(table->y, type, i * table->targets + t), type);
    }
    if (table->format == KILN_CSR) {
        for (int64_t e = table->row_start[i]; e < table->row_start[i + 1]; e++)
            at = print_entry(at, table->col[e], ki_element(table->values, type, e), type);
    } else {
        for (int64_t j = 0; j < table->cols; j++) {
            double value = ki_element(table->values, type, i * table->cols + j);
            if (value != 0 || signbit(value)) at = print_entry(at, j, value, type);
        }
    }
    *at++ = '\n';
    return at;
}

kiln_status ki_write_libsvm(struct ki_output *output, const struct ki_table *table, kiln_type type,
                            int threads) {
    if (!table->y) {
        ki_fail(KILN_ERR_UNSUPPORTED, "LIBSVM files begin each line with a target, and the data have none");
        return ki_hint("name a target column, or write .mtx, .npz or .csv");
    }
    struct ki_printer rows = {table, type, threads, table->rows, bound, print_row, 0};
    return ki_print_items(output, &rows);
}
