/* The cases of element-wise operations share this: W is rows x k, X and Y are rows x k or rows x 1. */
#ifndef CONFORMANCE_ELEMENTWISE_H
#define CONFORMANCE_ELEMENTWISE_H

#include <stddef.h>

#include "cases.h"

void elementwise_list(struct problem_list *list, const unsigned *variants, size_t count);
kiln_status elementwise_prepare(struct work *work);
double elementwise_bytes(const struct work *work);
/* A matrix of scalars, rows x k, of the device's widest type, all `value`. */
kiln_status elementwise_scalars(kiln_matrix **R, const struct work *work, int64_t rows, double value);
/* work->scalars = the row that `into` writes among three, whose other rows must stay: else NaN. */
kiln_status elementwise_into(struct work *work,
                             kiln_status (*into)(kiln_matrix *R, int64_t row, const struct work *work));

#endif
