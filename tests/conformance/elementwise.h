/* What the element-wise operations' cases share: W is rows x k, X and Y are rows x k or rows x 1. */
#ifndef CONFORMANCE_ELEMENTWISE_H
#define CONFORMANCE_ELEMENTWISE_H

#include <stddef.h>

#include "cases.h"

void elementwise_list(struct problem_list *list, const unsigned *variants, size_t count);
kiln_status elementwise_prepare(struct work *work);
double elementwise_bytes(const struct work *work);

#endif
