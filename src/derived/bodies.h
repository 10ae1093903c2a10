/* This folder's CPU bodies, a row each (bodies/bodies.h): of doubles, whatever the table's type. */
#ifndef KI_DERIVED_BODIES_H
#define KI_DERIVED_BODIES_H

#include "derived/sparse_columns.h"

/* clang-format off */
#define KI_BODIES_derived(BODY)                                                                              \
    BODY(double, column_dot, (const struct ki_sparse_column *column, const double *r))                       \
    BODY(void, column_add, (double *r, const struct ki_sparse_column *column, double step))                  \
    BODY(void, column_scale, (double *square, double *product, const struct ki_sparse_column *column,        \
                              const double *value, const double *q))
/* clang-format on */

#endif
