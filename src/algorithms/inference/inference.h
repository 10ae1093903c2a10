/* Between inference.c (the model's figures and its covariance), likelihood.c, sandwich.c (robust errors) and
 * rows.c (what a row is judged by). */
#ifndef KI_INFERENCE_H
#define KI_INFERENCE_H

#include "algorithms/inference/information.h"
#include "ops/linear/families.h"

enum { KI_INFERENCE_FIGURES = 24 };

struct kiln_inference {
    int64_t n, count; /* columns; coefficients with the intercept */
    double *values;   /* count */
    double *hat;      /* count x count: H^-1 = hat hat^T; rows of zeros for columns that depend on others */
    double *root;     /* the covariance's, in the same way; hat itself where that is dispersion H^-1 */
    double scale;     /* 1, or the dispersion: covariance = scale root root^T */
    double dispersion, parameters, degrees; /* of Student's t */
    kiln_family family;
    kiln_link link;
    double parameter, link_power;
    bool estimated;  /* the dispersion is */
    uint64_t digest; /* of the targets and weights of rows that count, in any order and either type */
    bool *dependent; /* count */
    struct {
        const char *name;
        double value;
    } figures[KI_INFERENCE_FIGURES];
    int figure_count;
};

/* Holds what is known of X's rows at the result, on the host. */
struct ki_inference_rows {
    int64_t m;
    double *y, *mean, *weights, *curvature; /* expected; of weights all are there */
    double *D;                              /* m x 3, kiln_loss_deviance's columns */
    kiln_matrix *C;                         /* curvature, on the device */
};

/* A problem as statistics compute with it: in f64, of data of either type. */
struct ki_inference_wide {
    const kiln_matrix *X, *w, *b;
    kiln_loss loss;
};
/* Fills wide; w, b and what the loss does not have may be NULL. */
kiln_status ki_inference_widen(struct ki_inference_wide *wide, struct ki_arena *arena, const kiln_matrix *X,
                               const kiln_loss *loss, const kiln_matrix *w, const kiln_matrix *b);

/* The loss as that of a generalised linear model. ERR_UNSUPPORTED where it is none. */
kiln_status ki_inference_loss(kiln_loss *glm, const char *call, const kiln_loss *loss);
/* Fills rows, an arena's, at the coefficients W and b (perhaps NULL). */
kiln_status ki_inference_measure_rows(struct ki_inference_rows *rows, struct ki_arena *arena,
                                      const kiln_matrix *X, const kiln_loss *loss, const kiln_matrix *W,
                                      const kiln_matrix *b);

/* The log-likelihood with all constants at a dispersion; NaN of Tweedie's powers above 2, and of a family
 * whose density is not known. */
double ki_log_likelihood(const struct ki_inference_rows *rows, const kiln_loss *loss, double deviance,
                         double dispersion);
/* Akaike's criterion by the family's row (families.h), of a Tweedie model by s log f at deviance / weight;
 * NaN as above. */
double ki_akaike(const struct ki_inference_rows *rows, const kiln_loss *loss, const struct ki_likelihood *at);

/* q_i = |x~_i^T R|^2 of a root R (count x count), on the host. Passes of up to 64 columns. */
kiln_status ki_inference_squares(double *q, const kiln_matrix *X, const double *R, int64_t count);
/* u_i, the derivative of row i's log-likelihood. */
double ki_inference_score(const struct ki_inference_rows *rows, const kiln_loss *loss, int64_t i);

/* made->root and made->scale of robust errors; made->hat is filled, and of->A not looked at. counted: the
 * rows of weight above 0; *groups: how many there are. */
kiln_status ki_inference_sandwich(kiln_inference *made, const struct ki_information *of,
                                  const struct ki_inference_rows *rows, const kiln_loss *loss,
                                  const kiln_inference_options *options, double counted, double *groups);
/* R (count x count) of columns about their means becomes that of the columns as they are. */
void ki_inference_uncentre(double *R, int64_t count, const struct ki_information *of);

#endif
