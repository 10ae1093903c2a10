/* This header has what the parts of multi-dimensional scaling share (mds.c). */
#ifndef KI_MDS_H
#define KI_MDS_H

#include "algorithms/run/run.h"

struct ki_mds {
    struct ki_run run;
    kiln_mds_options options; /* defaults filled in */
    kiln_device *device;
    kiln_type type;
    int64_t n, p;
    /* Dissimilarities n x n, or the points whose distances they are: one of them is NULL. */
    const kiln_matrix *D, *X, *weights;
    const kiln_matrix *given;       /* X as the caller gave it */
    kiln_matrix *own_D;             /* D, if it was made here */
    int exponent, weight_exponent;  /* what was divided by 2^exponent: distances, as the layout's; weights */
    kiln_matrix *Y, *next, *former; /* this layout, the one that majorisation makes of it, the one before */
    kiln_matrix *best;              /* the layout with the least stress of all starts */
    kiln_matrix *R, *U, *sums;      /* what kiln_guttman_step writes; U for interval */
    double pairs, delta_sum,
        delta_squares; /* weighted, over the pairs that count; interval: of delta - shift */
    double shift; /* interval: the least dissimilarity, which D is without; on D's diagonal stands -shift */
    kiln_matrix *line, *ones; /* n x n, n x 1: a line's disparities, where they are needed */
    struct ki_arena lines;    /* of a D in a file: the latest of them */
    double *of_line;          /* 2 n: its coefficients */
    double total[4];          /* of the last step: the sums of kiln_guttman */
    double stress, squares; /* of Y as it lies here, divided; the sum of w d^2 that stress-1 takes it over */
    double best_stress, best_squares; /* the same of `best` */
    int64_t setbacks, best_setbacks;  /* iterations whose stress rose by more than rounding: none should */
    double residual;                  /* of the last iteration */
    bool risen;                       /* it would have raised the stress: the start is at its end */
    int64_t steps;                    /* passes over the pairs */
    struct ki_ordinal *ordinal;
    struct ki_laplacian *laplacian; /* weighted: what solves V Z = R */
};

/* sum w dhat^2. */
static inline double ki_mds_squares(const struct ki_mds *s) {
    return s->options.metric == KILN_MDS_RATIO ? s->delta_squares : s->pairs;
}

/* mds_data.c: whether the operands and the options, filled in, are ones of kiln_mds. */
kiln_status ki_mds_check(const kiln_matrix *Y, const kiln_matrix *X, const kiln_mds_options *o);
/* s's D and weights, or X, and the sums over the pairs, from the data that the caller gave. */
kiln_status ki_mds_take(struct ki_mds *s, const kiln_matrix *X);
/* Whether the type holds the squares of such numbers, their sums, and squares of much smaller ones. */
static inline bool ki_mds_fits(double extent, kiln_type type) {
    const double most = type == KILN_F32 ? 0x1p20 : 0x1p300;
    return extent >= 1 / most && extent <= most;
}
/* The largest distance from the first point, at least half of that between any two; no number that fits
 * where squares overflow. */
kiln_status ki_mds_extent(double *extent, const kiln_matrix *X);
/* ERR_DATA unless element e of a square matrix of n rows is finite and not negative, or NaN where it may
 * miss. */
kiln_status ki_mds_check_entry(const char *call, const char *what, double value, int64_t e, int64_t n,
                               bool may_miss);

/* *X, which lies in a file, as a copy in memory. */
kiln_status ki_mds_whole(const kiln_matrix **X, struct ki_mds *s);
/* *made = a + b D, or its square, element by element, of a D in a file: it lies in a temporary one. */
kiln_status ki_mds_file(kiln_matrix **made, struct ki_arena *arena, const kiln_matrix *D, double a, double b,
                        bool square);

/* *D = a + b D, in a matrix of s's own. */
kiln_status ki_mds_line(const kiln_matrix **D, struct ki_mds *s, double a, double b);

/* mds_start.c: classical scaling (Torgerson), and random coordinates of the size that the dissimilarities
 * have. */
kiln_status ki_mds_torgerson(struct ki_mds *s);
kiln_status ki_mds_random(struct ki_mds *s, uint64_t stream);

/* mds_ordinal.c: disparities that are monotone in the dissimilarities. */
/* The distance of two points in q dimensions as an order takes it: the squares in long double, one after
 * another. */
static inline long double ki_mds_distance(const double *x, const double *y, int64_t q) {
    long double square = 0;
    for (int64_t c = 0; c < q; c++) {
        const long double apart = (long double)x[c] - (long double)y[c];
        square += apart * apart;
    }
    return sqrtl(square);
}
/* Dissimilarities that differ by so much, relative, count as equal: rounding of the points' coordinates. */
static inline double ki_mds_rounding(kiln_type type) {
    return type == KILN_F32 ? 1e-5 : 1e-12;
}
kiln_status ki_ordinal_new(struct ki_mds *s);
/* The matrix of disparities that fit Y's distances best. */
kiln_status ki_ordinal_fit(const kiln_matrix **disparities, struct ki_mds *s);

/* mds_weighted.c: Z with V Z = R, V = diag(weights 1) - weights, improved from Z = Y on. */
kiln_status ki_laplacian_new(struct ki_mds *s);
kiln_status ki_laplacian_solve(kiln_matrix *Z, struct ki_mds *s);

/* mds_predict.c: new points in a model's layout. */
kiln_status ki_mds_predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X);

#endif
