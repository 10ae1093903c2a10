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

/* An operation on each row of W, X and Y, dense matrices of as many rows, some of which lie in parts
 * (core/home.h). What else it wants to know travels with it. */
enum { KI_ELEMENTS_COLUMNS = 16 };
struct ki_elements {
    const kiln_matrix *cut; /* one that lies so; ki_elements_share finds it */
    kiln_matrix *W;
    const kiln_matrix *X, *Y;                              /* NULL: there is none */
    double a[KI_ELEMENTS_COLUMNS], b[KI_ELEMENTS_COLUMNS]; /* of W's columns */
    int kind;
};
/* Whether X or Y (NULL: none) lies in parts, so that W = f(X, Y) is computed there. Where not, what others
 * have of W is forgotten. */
bool ki_elements_apart(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y);
/* `run` for each part. */
kiln_status ki_elements_share(const struct ki_elements *elements, kiln_status (*run)(const void *elements));

#endif
