/* verify_glm.c (figures) and verify_information.c (what counts columns, standard errors) share this. */
#ifndef KI_VERIFY_GLM_H
#define KI_VERIFY_GLM_H

#include "algorithms/verify/verify.h"

struct ki_verify_model {
    const kiln_loss *loss;
    const kiln_verify_options *options;
    kiln_type type; /* of X */
    struct ki_copy X;
    int64_t k;
    double *W, *b, *y, *s, *offset, *errors; /* but for W and y NULL where they are not given */
    long double *A;                          /* columns x columns: the information, then its factor by rows */
    long double *scale;                      /* columns: the roots of its diagonal; 0: none is left */
    long double *mean; /* columns: by the rows' curvatures; zeros without an intercept */
    long double *row;  /* columns: of one row */
    int64_t columns;   /* of [1 X] */
    double weight, counted, parameters,
        least;    /* least: what elimination leaves of a column that is independent */
    bool unclear; /* whether training may have counted columns otherwise */
};

static inline double ki_verify_weight_of(const struct ki_verify_model *m, int64_t i) {
    return m->s ? m->s[i] : 1;
}

/* Fills A, scale, mean, parameters, least and unclear, of these linear predictors; eta NULL: of least
 * squares. */
void ki_verify_information(struct ki_verify_model *m, const double *eta);
/* The largest relative difference of a given standard error; those of dependent columns are negative or no
 * numbers. */
double ki_verify_errors(const struct ki_verify_model *m, double dispersion);

#endif
