/* CSR: "coordinate", row by row. Dense: "array", which goes down the columns. */
#include <inttypes.h>

#include "io/decimal.h"
#include "io/print.h"

enum { INDEX_BYTES = 20 };

static int64_t row_bound(const struct ki_printer *printer, int64_t i) {
    const struct ki_table *table = printer->table;
    return (table->row_start[i + 1] - table->row_start[i]) * (2 * INDEX_BYTES + KI_DECIMAL_BYTES + 1);
}

static char *print_row(const struct ki_printer *printer, char *at, int64_t i) {
    const struct ki_table *table = printer->table;
    for (int64_t e = table->row_start[i]; e < table->row_start[i + 1]; e++) {
        at = ki_print_int64(at, printer->first + i + 1);
        *at++ = ' ';
        at = ki_print_int64(at, (int64_t)table->col[e] + 1);
        *at++ = ' ';
        at = ki_print_real(at, ki_element(table->values, printer->type, e), printer->type);
        *at++ = '\n';
    }
    return at;
}

static int64_t element_bound(const struct ki_printer *printer, int64_t e) {
    (void)printer;
    (void)e;
    return KI_DECIMAL_BYTES + 1;
}

static char *print_element(const struct ki_printer *printer, char *at, int64_t e) {
    const struct ki_table *table = printer->table;
    int64_t i = e % table->rows, j = e / table->rows;
    at = ki_print_real(at, ki_element(table->values, printer->type, i * table->cols + j), printer->type);
    *at++ = '\n';
    return at;
}

kiln_status ki_write_matrix_market(struct ki_output *output, const struct ki_table *table, kiln_type type,
                                   int threads) {
    kiln_status status;
    if (table->file && table->format == KILN_DENSE) {
        ki_fail(KILN_ERR_UNSUPPORTED,
                "a Matrix Market array goes down the columns, and X lies in its file by rows");
        return ki_hint("write .npy or .csv");
    }
    if (table->format == KILN_CSR) {
        struct ki_printer rows = {table, type, threads, table->rows, row_bound, print_row, 0};
        TRY(ki_print_header(
            output, "%%%%MatrixMarket matrix coordinate real general\n%" PRId64 " %" PRId64 " %" PRId64 "\n",
            table->rows, table->cols, table->nnz));
        TRY(ki_print_items(output, &rows));
    } else {
        struct ki_printer elements = {table,         type,          threads, table->rows * table->cols,
                                      element_bound, print_element, 0};
        TRY(ki_print_header(output, "%%%%MatrixMarket matrix array real general\n%" PRId64 " %" PRId64 "\n",
                            table->rows, table->cols));
        TRY(ki_print_items(output, &elements));
    }
done:
    return status;
}
