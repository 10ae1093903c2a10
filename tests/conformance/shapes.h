/* Shapes of X that break things, for the operations that have an X with rows and columns. */
#ifndef CONFORMANCE_SHAPES_H
#define CONFORMANCE_SHAPES_H

#include "cases.h"

/* Appends every shape and pattern, dense and CSR, with k = 1 and some with more columns; flags, alpha and
 * beta are left to the operation. */
void shapes_add(struct problem_list *list);
void shapes_free(struct problem_list *list);

#endif
