/* The kernels that training a linear model asks for, in a list: each operation adds its own, passes over X
 * first, which take the compiler longest. */
#include "ops/linear/ahead.h"

#include "core/kernels/kernels.h"
#include "ops/linear/cg.h"
#include "ops/linear/gram_gpu.h"
#include "ops/linear/newton.h"
#include "ops/linear/scales.h"
#include "ops/vectors/reduce.h"
#include "pass/launch.h"

/* Stands for an operand that there will be. */
static kiln_matrix some;

/* The sums over X's columns that scales are made of, the squares of a sparse X twice. */
static void list_scales(struct ki_programs *programs, const kiln_matrix *X) {
    const struct ki_chain squares = {.kind = KI_CHAIN_SQUARES, .X = X, .v = &some, .k = 1};
    const struct ki_chain sums = {.kind = KI_CHAIN_TRANSPOSED, .X = X, .k = 1};
    if (ki_column_sums_apply(X)) {
        ki_column_sums_programs(programs, X);
        ki_gram_centre_program(programs, X);
    } else {
        ki_chain_programs(programs, &squares, false);
        ki_chain_programs(programs, &sums, true);
        ki_chain_programs(programs, &squares, true);
    }
    ki_scales_program(programs, X->type, X->cols);
}

/* A loss with its gradient. */
static void list_loss(struct ki_programs *programs, const struct ki_ahead *ahead) {
    ki_chain_programs(programs,
                      &(struct ki_chain){.kind = KI_CHAIN_FUSED,
                                         .X = ahead->X,
                                         .k = 1,
                                         .map = KI_ROW_LOSS,
                                         .loss = ahead->loss,
                                         .shift = &some},
                      true);
}

/* X^T (v .* (X y + shift)), as a Hessian's product is and one of conjugate gradient. */
static void list_products(struct ki_programs *programs, const kiln_matrix *X, int columns) {
    ki_chain_programs(
        programs,
        &(struct ki_chain){.kind = KI_CHAIN_FUSED, .X = X, .k = columns, .v = &some, .shift = &some}, true);
}

static void list_newton(struct ki_programs *programs, const struct ki_ahead *ahead) {
    static const enum ki_pair_op steps[] = {KI_PAIR_TURN, KI_PAIR_ADVANCE, KI_PAIR_COMPLETE, KI_PAIR_MIX};
    const kiln_matrix *X = ahead->X;
    /* A column of means, times the coefficients. */
    const kiln_matrix mean = {.device = X->device,
                              .type = X->type,
                              .format = KILN_DENSE,
                              .rows = X->cols,
                              .cols = 1,
                              .nnz = X->cols};
    list_loss(programs, ahead);
    list_products(programs, X, 1);
    ki_chain_programs(programs, &(struct ki_chain){.kind = KI_CHAIN_TRANSPOSED, .X = &mean, .k = 1}, true);
    list_scales(programs, X);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        ki_pairs_program(programs, X->type, X->cols + 1, steps[i]);
    ki_reduce_program(programs, X->type, X->rows, KI_REDUCE_ABS);
    if (ahead->labels) ki_reduce_program(programs, X->type, X->rows, KI_REDUCE_ONES);
}

static void list_least_squares(struct ki_programs *programs, const struct ki_ahead *ahead) {
    const kiln_matrix *X = ahead->X;
    if (!ahead->gram) {
        list_products(programs, X, (int)ahead->targets);
        ki_cg_program(programs, X, ahead->targets);
    }
    if (ahead->gram && ki_gram_in_one_walk(X)) {
        ki_gram_programs(programs, X, ahead->weighted, ahead->targets);
        list_loss(programs, ahead);
        ki_scales_program(programs, X->type, X->cols);
    } else {
        list_scales(programs, X);
    }
    ki_programs_add(programs, "elementwise", "times", X->type, "");
    ki_reduce_program(programs, X->type, X->rows, KI_REDUCE_DOT);
    ki_programs_add(programs, "combine", "fill", ki_wide_type(X->device), "");
}

kiln_status ki_linear_ahead(const struct ki_ahead *ahead) {
    const kiln_matrix *X = ahead->X;
    struct ki_programs programs = {0};
    if (!X->device->backend->build || X->nnz == 0) return KILN_OK;
    (ahead->newton ? list_newton : list_least_squares)(&programs, ahead);
    ki_programs_add(&programs, "combine", "fill", X->type, "");
    return ki_programs_build(X->device, &programs);
}
