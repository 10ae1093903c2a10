/* Between glm.c (checks, the fit, its figures), glm_start.c (where to begin), glm_information.c (standard
 * errors), glm_rank.c (how many parameters a wide model has) and certificate/glm_gap.c (how far its
 * objective is above the optimum at most). */
#ifndef KI_GLM_H
#define KI_GLM_H

#include "algorithms/newton/newton.h"

/* The gradient g of a model without a penalty in the inverse of its information H, with an intercept's part:
 * what ki_glm_information leaves where no column depends on others. */
struct ki_glm_form {
    bool known;
    double square;  /* g^T H^-1 g at most, but for the rounding of g */
    double inverse; /* || D H^-1 D || at most, D^2 the diagonal of H, */
    double spread;  /* the sum of s x^2 of all columns, each over D^2; */
    double weight;  /* of the intercept H's part, the sum of the curvatures; 0: there is none */
};

struct ki_glm {
    const kiln_matrix *X;
    const kiln_glm_options *options;
    kiln_loss loss;
    struct ki_newton newton;
    kiln_matrix *ones;   /* m x 1 */
    double weight, rows; /* the sum of the weights, and how many of them are not 0 */
    double mean;         /* weighted, of y */
    double null;         /* the intercept of the model without columns */
    double curvature;    /* the sum of the rows' there */
    struct ki_glm_form form;
};

/* The model without columns: its intercept, the rows' mean curvature there, and its deviance. reached:
 * whether that is in the link's reach; what else a gradient of 0 means, kiln_glm looks at after the fit. */
struct ki_glm_origin {
    double b, curvature, deviance;
    bool reached;
};

extern const char ki_glm_call[];

/* Returns whether all targets are at an end of the family's range, which the best mean goes to: it leaves no
 * deviance. */
bool ki_glm_at_end(const struct ki_glm *glm);
/* Returns whether eta may be any number, whatever the row. */
bool ki_glm_any_eta(const kiln_loss *loss);
/* ERR_DATA naming the first row of y that the family has no place for. */
kiln_status ki_glm_check_target(const kiln_loss *loss);
/* glm->null: the best intercept alone, with the offset, to the last digits. ERR_DATA if no intercept is in
 * range. */
kiln_status ki_glm_null(struct ki_glm *glm);
/* After it: tells the engine the derivative of every row's loss there, if that is a multiple of the distance
 * of y from the mean of all. */
kiln_status ki_glm_tell_derivative(struct ki_glm *glm);
/* The origin is that of the rows of X by their weights in the loss, which has no offset. */
kiln_status ki_glm_origin(struct ki_glm_origin *origin, const kiln_matrix *X, const kiln_loss *loss);
/* The deviance is that of the best intercept alone, with the loss's offset. */
kiln_status ki_glm_null_deviance(double *deviance, const kiln_matrix *X, const kiln_loss *loss);
/* The engine's W where W = 0 is out of range without an intercept: the regression of what the link makes of
 * y smoothed, or of a constant. *found: whether it is in range. */
kiln_status ki_glm_start(struct ki_glm *glm, bool *found);

/* Says how many parameters the model has: the intercept and the columns that do not depend on others. */
struct ki_parameters {
    int64_t count;
    enum { KI_COUNTED, KI_AT_MOST, KI_UNCOUNTED /* the user did not wait */ } how;
};

/* Counts them in X^T diag(h) X, n x n. errors: so many standard errors as there are columns, and one of the
 * intercept, at dispersion 1, NaN for a column that depends on those before it, whose coefficient becomes 0;
 * NULL: not wanted, and the coefficients stay as they are. */
kiln_status ki_glm_information(struct ki_parameters *parameters, double *errors, struct ki_glm *glm);
/* Counts them without that matrix, in about as many passes as the fit took. KI_AT_MOST: the columns that are
 * not constant, but no more than rows; more than 31 dimensions are missing, or it is not clear how many. */
kiln_status ki_glm_rank(struct ki_parameters *parameters, struct ki_glm *glm);

/* sum_i s_i loss_i'^2 / loss_i'' at most at the result, from its predictors and kiln_loss_deviance's rows
 * D; 0: it is not known, or of no use. Takes Eta. */
kiln_status ki_glm_bend(double *bend, const struct ki_glm *glm, kiln_matrix *Eta, const kiln_matrix *D,
                        double pearson);

/* The figures of the result, by which its objective is bounded. */
struct ki_glm_rows {
    double deviance, pearson, bend;
};

/* The report's optimality gap. One or two products of vectors as long as y. */
kiln_status ki_glm_certify(struct ki_glm *glm, const struct ki_glm_rows *rows);

#endif
