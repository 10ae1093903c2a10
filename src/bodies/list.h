/* Every CPU body: a row here for its signature, and below the file that it is in. This is all that adding one takes.
 *
 * BODY(result, name, (parameters)): the file defines FN(name), a static function, for each element type (each_real.h). The rows are
 * read twice, as the members of struct ki_bodies and as the tables that bodies.c makes for each instruction set. */
#ifndef KI_BODY_LIST
struct ki_assign;
struct ki_chain;
struct ki_gram;
struct ki_cg;
struct ki_dirichlet;
struct ki_factor_rows;
struct ki_loss_rows;
struct ki_pairs;
struct ki_ranks;
struct ki_sampled;
struct ki_scales;
struct ki_sparse_column;
struct kiln_batch;
struct batch_part;

/* clang-format off */
#define KI_BODY_LIST(BODY)                                                                                   \
    BODY(kiln_status, assign, (const struct ki_assign *assign))                                              \
    BODY(void, copy_rows, (kiln_matrix *R, const kiln_matrix *X, const int64_t *rows))                       \
    BODY(kiln_status, chain, (const struct ki_chain *chain))                                                 \
    BODY(kiln_status, gram, (const struct ki_gram *gram))                                                    \
    BODY(void, combine, (kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,             \
                         const kiln_matrix *Y))                                                              \
    BODY(void, times, (kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y))                          \
    BODY(void, map, (kiln_matrix *W, kiln_map_kind kind, const kiln_matrix *X))                              \
    BODY(void, fill, (kiln_matrix *W, double value))                                                         \
    BODY(void, fill_random, (kiln_matrix *W, kiln_distribution distribution, uint64_t seed,                  \
                             uint64_t stream))                                                               \
    BODY(void, read, (const kiln_matrix *A, const kiln_matrix *sums))                                        \
    BODY(void, cg_step, (const struct ki_cg *step))                                                          \
    BODY(void, reduce, (double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,                \
                        const double *scale))                                                                \
    BODY(void, batch_reduce, (kiln_matrix *result, const kiln_matrix *X, const struct kiln_batch *batch,     \
                              int kind, struct batch_part *partial))                                         \
    BODY(void, batch_scale, (kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,                 \
                             const struct kiln_batch *batch))                                                \
    BODY(void, dirichlet, (const struct ki_dirichlet *dirichlet))                                            \
    BODY(void, factor_rows, (const struct ki_factor_rows *rows))                                             \
    BODY(void, loss_rows, (struct ki_loss_rows *rows))                                                       \
    BODY(void, ranks_begin, (const struct ki_ranks *ranks))                                                  \
    BODY(void, ranks_step, (const struct ki_ranks *ranks, int64_t step))                                     \
    BODY(void, sampled, (const struct ki_sampled *sampled))                                                  \
    BODY(void, pairs_run, (double *sums, const struct ki_pairs *pairs))                                      \
    BODY(void, scales_run, (double *sums, const struct ki_scales *scales))                                   \
    BODY(void, dual_sweep, (struct ki_dual *dual))                                                           \
    BODY(void, dual_measure, (double *square, const kiln_matrix *X, const double *reciprocal, double bias_step)) \
    BODY(kiln_status, guttman, (const kiln_guttman *step))                                                   \
    BODY(kiln_status, distances, (kiln_matrix *D, const kiln_matrix *X, const kiln_matrix *Z))
/* Those of doubles, whatever the table's type: `name` is the function itself. */
#define KI_DOUBLE_BODY_LIST(BODY)                                                                            \
    BODY(double, column_dot, (const struct ki_sparse_column *column, const double *r))                       \
    BODY(void, column_add, (double *r, const struct ki_sparse_column *column, double step))                  \
    BODY(void, column_scale, (double *square, double *product, const struct ki_sparse_column *column,        \
                              const double *value, const double *q))
/* clang-format on */
#endif

#ifdef FN /* the bodies themselves, for one element type; what others build on comes first */
/* clang-format off */
#include "dialect/simd.h"
#include "dialect/sparse_row.h"
#include "dialect/real_math.h"
#include "dialect/losses.h"
#include "pass/cpu/chain.cpu.h"
#include "pass/cpu/combine.cpu.h"
/* clang-format on */
#include "choose/bandwidth.cpu.h"
#include "derived/sparse_columns.cpu.h"
#include "ops/points/assign.cpu.h"
#include "ops/batch/batch.cpu.h"
#include "ops/linear/cg.cpu.h"
#include "ops/linear/dual.cpu.h"
#include "ops/vectors/elementwise.cpu.h"
#include "ops/sampled/dirichlet.cpu.h"
#include "ops/sampled/factor_rows.cpu.h"
#include "ops/linear/gram.cpu.h"
#include "ops/points/guttman.cpu.h"
#include "ops/linear/loss_rows.cpu.h"
#include "ops/linear/newton.cpu.h"
#include "ops/graph/ranks.cpu.h"
#include "ops/vectors/reduce.cpu.h"
#include "ops/vectors/rows.cpu.h"
#include "ops/linear/scales.cpu.h"
#include "ops/sampled/sddmm.cpu.h"
#endif
