/* This header says how far the furthest row of each centre is, of what kiln_assign says of the rows. */
#ifndef KI_FURTHEST_H
#define KI_FURTHEST_H

#include "kiln/ops.h"

/* R_c = max of the distances_i with labels_i = c; 0 where there are none.
 * R k x 1; distances, which are not negative, and labels, whole numbers below k, m x 1, all three of a type
 * and on a device.
 * Cost: one read of both. Determinism: every bit, as a maximum does not depend on the order. Errors: device
 * errors. */
kiln_status ki_furthest(kiln_matrix *R, const kiln_matrix *distances, const kiln_matrix *labels);

#endif
