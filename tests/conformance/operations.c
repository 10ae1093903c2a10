/* All operations that have cases: the suite and the benchmark go through this list. */
#include "cases.h"

extern const struct operation operation_mmchain, operation_multiply, operation_gram, operation_gram_diagonal,
    operation_combine, operation_times, operation_map, operation_fill, operation_fill_random, operation_dot,
    operation_norm, operation_loss_gradient, operation_loss_hessian, operation_loss_mean,
    operation_loss_deviance, operation_cg_pass;

const struct operation *const operations[] = {&operation_mmchain,
                                              &operation_multiply,
                                              &operation_gram,
                                              &operation_gram_diagonal,
                                              &operation_combine,
                                              &operation_times,
                                              &operation_map,
                                              &operation_fill,
                                              &operation_fill_random,
                                              &operation_dot,
                                              &operation_norm,
                                              &operation_loss_gradient,
                                              &operation_loss_hessian,
                                              &operation_loss_mean,
                                              &operation_loss_deviance,
                                              &operation_cg_pass,
                                              NULL};
