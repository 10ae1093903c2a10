/* What the training of als and sfa and their models share. */
#ifndef KI_ALS_H
#define KI_ALS_H

#include "algorithms/factor/entries.h"
#include "algorithms/registry.h"

void ki_als_fill(kiln_als_options *options, kiln_type type); /* 0 becomes the default, KILN_NONE 0 */
void ki_sfa_fill(kiln_sfa_options *options, kiln_type type);
/* ERR_ARGUMENT unless test is NULL or sparse and of R's shape, type and device. */
kiln_status ki_check_test(const char *call, const kiln_matrix *R, const kiln_matrix *test);

#endif
