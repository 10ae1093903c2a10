/* The check of operands that may be used in parts where their rows are (core/home.h). */
#ifndef KI_PASS_ROWS_H
#define KI_PASS_ROWS_H

#include "core/home.h"

/* ki_check_dense of what is used in parts by a shared operation, or brought by ki_run_single: A stays where
 * it is. */
kiln_status ki_check_rows(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                          int64_t rows, int64_t cols);

#endif
