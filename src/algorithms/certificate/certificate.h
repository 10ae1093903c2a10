/* This header says how far a linear model's objective is above the optimum at most: the duality gap, with all
 * that rounding may have made of it. */
#ifndef KI_CERTIFICATE_H
#define KI_CERTIFICATE_H

#include "algorithms/algorithm.h"

/* A point of  f(W, b) = sum_i s_i loss_i(eta_i) + sum_jc (L_j W_jc^2 / 2 + l1_j |W_jc|),  eta = X W + 1 b +
 * offset,  L_j = l2 and l1_j = l1, or, standardised, times variance_j and its root; with its gradient.
 * loss_i is convex and its second derivative at most `curvature` around the point. Arrays of the host. */
struct ki_certificate {
    const kiln_matrix *X; /* its shape and type are looked at, no more */
    int64_t k;            /* columns of W */
    double l2, l1;
    bool intercept, standardize;
    double weight; /* sum of s */
    const double *square, *mean,
        *variance;         /* n: sum_i s_i x_ij^2, weighted mean and variance; the last two may be
                                               NULL where there is neither an intercept nor standardising */
    struct ki_flats flats; /* columns whose coefficient is 0 as they count as constant: under an intercept */
    const double *w,
        *g;          /* n x k: W; the gradient with respect to it of the columns about their means (under an
             * intercept), without the l1 term's */
    double norm;     /* g NULL: of its entries, where no column is weighed differently and l1 is 0 */
    const double *b; /* k: the intercepts of X as it is; NULL: none */
    const double *slopes; /* k: the gradient with respect to the intercepts, for what makes them 0 */
    double slope;         /* sqrt(sum_i s_i |loss_i'|^2) at most */
    double curvature;
    double bend;    /* l2 = 0: sum_i s_i loss_i'^2 / loss_i'' at most; 0: not known */
    double excess;  /* sum_i s_i (loss_i - least value of loss_i) */
    double terms;   /* sum_i s_i |.| of what the losses were added up from, but for multiples of eta, */
    double lean;    /* and sqrt(sum_i s_i c_i^2) of these, c_i eta_i */
    double target;  /* sqrt(sum_i s_i y_i^2) where eta and y are subtracted, and of the offsets */
    bool quadratic; /* losses (y - eta)^2 / 2 */
    /* Making the intercepts' gradient 0 costs this: sum_i s_i of the losses' share (with l2 = 0, half of what
     * twice the move costs), and drift * sigma_j in an entry of the gradient. */
    double settled, drift;
};

/* f(W, b) as computed less the optimum, at most; INFINITY: there is no bound. */
double ki_certificate_gap(const struct ki_certificate *at);
/* Its parts: what rounding may have made of the computed f, and of entry j of g. */
double ki_certificate_rounding(const struct ki_certificate *at);
double ki_certificate_blur(const struct ki_certificate *at, int64_t j);
/* The columns of at->flats, whose gradient nobody has, may add so much to the bound; INFINITY: no bound. */
double ki_certificate_flats(const struct ki_certificate *at);

/* Returns what a sum of so many terms may be off by, beside the sum of their sizes. */
double ki_units(int64_t terms, kiln_type type);
/* || U^-1 ||^2 at most, of the factor U n x n of a matrix of unit diagonal whose entries may be off by
 * *part, which becomes r, below 1/2: quadratic forms of the matrix's inverse are at most 1 / (1 - r) times
 * those by U. INFINITY: nothing can be told. work: n. See factor_gap.c. */
double ki_inverse_square(const double *U, int64_t n, double *part, double *work);
/* The report's optimality_gap and certificate; where gap is not finite they stay as they are, and say that
 * there is no bound. */
void ki_report_certify(kiln_report *report, double gap, const char *by);

#endif
