/* The Gram matrix of [X - 1 c^T, Y - 1 d^T, 1] with weights v, and what of it is asked for. */
#ifndef KI_GRAM_H
#define KI_GRAM_H

#include <stdbool.h>

#include "kiln.h"

struct ki_gram {
    kiln_matrix *G, *g; /* X's part, n x n, and its products with v, n x 1 or NULL; both NULL with `all` */
    const kiln_matrix *X, *v, *c; /* v m x 1 or NULL (ones), c n x 1 or NULL (zeros) */
    const kiln_matrix *Y, *d;     /* m x k, with `all`, or NULL (k = 0); d k x 1 or NULL (zeros) */
    double *all; /* on the host: the whole, (n + k + 1) x (n + k + 1); NULL: G and g are wanted */
};

/* Returns whether X's device has a body for ki_gram_all: the CPU, and of dense X all. An X that is too large
 * streams through it. */
bool ki_gram_in_one_walk(const kiln_matrix *X);
/* Whether such a walk is expected to move X panel by panel, so that it costs as much as any other pass. */
bool ki_gram_streams(const kiln_matrix *X);
/* Returns whether rows of weight 0 cost nothing: X lies in the CPU's memory. */
bool ki_gram_skips(const kiln_matrix *X);
/* Bytes that a Gram matrix of X's device takes there, size x size, work space among them: on the CPU a copy
 * for each part of the rows; elsewhere it, a panel's and the least of partial sums, as panels and sums become
 * smaller where there is no room. */
double ki_gram_room(const kiln_matrix *X, double size);
/* Whether one of the two factors X - 1 c^T of G is taken about zero first, of columns far from zero, so that
 * sums as large as || x_j || || x_k - 1 c_k || cancel. */
bool ki_gram_cancels(const kiln_matrix *X);
/* gram->all of such an X. */
kiln_status ki_gram_all(const struct ki_gram *gram);
/* c (n x 1) = about X's column means: those of a few rows, evenly apart. */
kiln_status ki_gram_centre(kiln_matrix *c, const kiln_matrix *X);

#endif
