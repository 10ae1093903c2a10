/* Sums of dense matrices, for passes and for the operations above them; how kernels over elements are
 * launched, and how what groups leave comes to the host. */
#ifndef KI_COMBINE_H
#define KI_COMBINE_H

#include "core/kernels/kernels.h"

/* One thread for each of `count` elements or rows, on the device and in the type of W, the largest operand;
 * the kernels walk on where there are more elements than threads. */
kiln_status ki_launch_elements(const kiln_matrix *W, int64_t count, const char *file, const char *function,
                               const char *defines, const struct ki_arg *args, int args_count);

/* Numbers [first, first + count) of a buffer in the device's widest type, as doubles. */
kiln_status ki_download_wide(double *to, kiln_device *device, const struct ki_buffer *from, int64_t first,
                             int64_t count);
/* sums[i] = what the groups' i-th numbers of `count`, in the widest type, add up to, in the groups' order. */
kiln_status ki_group_sums(double *sums, int count, kiln_device *device, const struct ki_buffer *left,
                          int64_t groups);

/* kiln_combine and kiln_fill of checked operands; _all with the same coefficients for every column. */
kiln_status ki_combine(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                       const kiln_matrix *Y);
kiln_status ki_combine_all(kiln_matrix *W, double a, const kiln_matrix *X, double b, const kiln_matrix *Y);
kiln_status ki_set_all(kiln_matrix *W, double value);

#endif
