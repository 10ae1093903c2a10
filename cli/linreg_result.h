/* What becomes of a linear regression: the model file, the summary, the JSON object. */
#ifndef CLI_LINREG_RESULT_H
#define CLI_LINREG_RESULT_H

#include "common.h"

struct linreg {
    kiln_model *warm; /* NULL without --warm-start */
    kiln_data *data;
    kiln_matrix *weights, *W, *b; /* weights and b may be NULL */
    kiln_report report;
    double rmse;
};

int linreg_save(struct run *run, const struct linreg *job);
/* The summary or the JSON object; returns the exit code of the whole run. */
int linreg_tell(struct run *run, const struct linreg *job);

#endif
