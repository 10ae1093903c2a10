/* A sweep of coordinate descent through the dual of a penalised loss, over the rows of a sparse X
 * on the CPU (Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008; Yu, Huang and Lin, Machine Learning 85,
 * 2011):
 *
 *   minimise over t   1/2 sum_j (X^T t)_j^2 / L_j + sum_i conjugate_i(t_i),   t_i = y_i a_i,  w = L^-1 X^T t
 *
 * squared hinge: a >= 0, a^2 / (2 s) - a; logistic: 0 < a < s, a log a + (s - a) log (s - a). A row's
 * variable is set to its best value, the others standing, and w follows at once. For softmax t_i has k
 * numbers, s (e_y - p): a row's variable is p, k shares of 1, and the conjugate s sum_c p_c log p_c; w is n x
 * k. Squared hinges of k classes, each against the rest, go over a row together, as softmax's classes do:
 * what takes the time is to fetch a row's entries and what of w belongs to them, which lies side by side. An
 * intercept is one more column of ones, of penalty 1 / bias_step.
 *
 * Two threads, where k = 1, each descend in half of the rows, drawn anew for every sweep, with a w of their
 * own; then their changes are added up (Ma, Smith, Jaggi, Jordan, Richtarik and Takac, ICML 2015). As neither
 * knows of the other's changes, each counts its own `stretch` times:
 * with 2 the sum cannot overshoot. With the ratio |d_1 + d_2|^2 / (|d_1|^2 + |d_2|^2) of the changes before,
 * hardly above 1 for text, it seldom does, and takes larger steps. */
#ifndef KI_OPS_DUAL_H
#define KI_OPS_DUAL_H

#include <stdbool.h>

#include "core/random.h"
#include "kiln/ops.h"

/* ROOM: of several columns, rows of `rest`. SIDES: of several hinges, how many are worth going together. */
enum { KI_DUAL_PARTS = 2, KI_DUAL_ROOM = 8, KI_DUAL_SIDES = 8 };

struct ki_dual {
    const kiln_matrix *X;     /* ki_dual_possible */
    const double *y, *s;      /* m: +1 or -1, of several hinges the class; the weights, or NULL for ones */
    const double *reciprocal; /* n: L^-1 */
    bool uniform;             /* that is reciprocal[0] throughout */
    bool logistic;
    int64_t k;        /* 1; of softmax, the classes; of several hinges, how many */
    int64_t first;    /* of several hinges, the first one's class */
    int64_t stride;   /* from a row of w, and unless it is 1 of a, to the next: ki_dual_stride(k), or more */
    double bias_step; /* 0: no intercept */
    const double *square; /* m: x_i . L^-1 x_i + bias_step, from ki_dual_measure */
    double *a;            /* m: the variables; of several columns m x k */
    double *rest;         /* m: logistic: s - a; of several columns room, KI_DUAL_ROOM rows of a */
    double *w;            /* n x k; what stands beyond k in a row is 0 */
    double *b;            /* k */
    double *own;    /* NULL: one thread; else KI_DUAL_PARTS of w and b each, w's equal to it before the first
              * sweep */
    double stretch; /* 1; with `own` KI_DUAL_PARTS before the first sweep */
    /* of one column, n and m: w and a before the sweep, and before the move ahead of it (dual_plane.h); else
     * NULL */
    double *former_w, *before_w, *former_a, *before_a;
    double last_b,
        least;      /* that move of b; the least violation of a sweep so far, INFINITY before the first */
    int32_t *order; /* the rows; the first `active` take part */
    int64_t active;
    double bound; /* squared hinge: a row at 0 whose slope, for all of k, is above it takes part no longer */
    struct ki_draws draws; /* of the order */
    /* out, of the slopes met, for logistic of how far a was from its row's own loss: the sum of squares as
     * the primal's gradient has them, of several hinges the largest sum; and the largest */
    double violation, worst;
    int64_t met, kept; /* in a sweep: how many rows have had their turn, and how many of those stay */
};

/* A stretch of w where the parts' changes are added up: joined += inverse * sum_p (own_p - joined), and all
 * own_p = joined. */
struct ki_dual_join {
    double *joined, *own[KI_DUAL_PARTS];
    const double *reciprocal; /* L^-1 of these numbers; NULL: all alike */
    double inverse;           /* 1 / stretch */
    int64_t count;
    double apart, together; /* out: sum_p |own_p - joined|^2 and |sum_p (own_p - joined)|^2, times L */
};

/* Sparse, on the CPU, in memory, of rows that 32 bits number. */
bool ki_dual_possible(const kiln_matrix *X);
/* Before the first of the calls below but ki_dual_mean_square: sweeps go over entries. */
kiln_status ki_dual_open(const kiln_matrix *X);
int64_t ki_dual_stride(int64_t k);
/* Returns whether two threads are faster for a w of one column: adding up goes over all of it. */
bool ki_dual_shared(const kiln_matrix *X);
/* The active rows once, in random order. Nothing is shared between two of the kind but what is const. */
void ki_dual_sweep(struct ki_dual *dual);
/* The mean of a row's sum of squares, from about 8,192 of X's entries. */
double ki_dual_mean_square(const kiln_matrix *X);
/* square[i] of all rows, without an intercept's part. */
void ki_dual_measure(double *square, const kiln_matrix *X, const double *reciprocal);

#endif
