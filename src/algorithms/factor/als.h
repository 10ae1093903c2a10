/* This header has what the training of als and sfa and their models share. */
#ifndef KI_ALS_H
#define KI_ALS_H

#include "algorithms/factor/entries.h"
#include "algorithms/registry.h"

/* Fills in what 0 stands for, where it was not given, but for l2, whose default the data decide. */
void ki_als_fill(kiln_als_options *options, kiln_type type);
void ki_sfa_fill(kiln_sfa_options *options, kiln_type type);
/* For who has no data to decide by: ERR_ARGUMENT where l2 is 0 and was not given. */
kiln_status ki_factor_known(const char *call, const void *options, const struct ki_algorithm *algorithm);

#endif
