/* The CPU bodies of all operations: one table per element type and instruction set, chosen at run time. */
#ifndef KI_BODIES_H
#define KI_BODIES_H

#include "ops/cg.h"
#include "ops/gram.h"
#include "ops/loss.h"
#include "pass/chain.h"
#include "ops/newton.h"
#include "ops/scales.h"
#include "derived/sparse_columns.h"

struct ki_bodies {
    kiln_status (*chain)(const struct ki_chain *chain);
    kiln_status (*gram)(const struct ki_gram *gram);
    void (*combine)(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                    const kiln_matrix *Y);
    void (*times)(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y);
    void (*map)(kiln_matrix *W, kiln_map_kind kind, const kiln_matrix *X);
    void (*fill)(kiln_matrix *W, double value);
    void (*fill_random)(kiln_matrix *W, kiln_distribution distribution, uint64_t seed, uint64_t stream);
    /* result[c] = sum over rows of f(x, y): see reduce.h. */
    void (*read)(const kiln_matrix *A, const kiln_matrix *sums); /* bandwidth.c */
    void (*cg_step)(const struct ki_cg *step);
    void (*reduce)(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind, const double *scale);
    void (*loss_rows)(struct ki_loss_rows *rows);
    void (*pairs_run)(double *sums, const struct ki_pairs *pairs);
    void (*scales_run)(double *sums, const struct ki_scales *scales);
    /* See sparse_columns.h; of doubles, whatever the table's type. */
    double (*column_dot)(const struct ki_sparse_column *column, const double *r);
    void (*column_add)(double *r, const struct ki_sparse_column *column, double step);
    void (*column_scale)(double *square, double *product, const struct ki_sparse_column *column,
                         const double *value, const double *q);
};

/* [0] f32, [1] f64 */
extern const struct ki_bodies ki_bodies_base[2], ki_bodies_avx2[2], ki_bodies_avx512[2];

const struct ki_bodies *ki_bodies(const kiln_matrix *A); /* those for A's device and type */
/* ... and for a pass: sparse rows times one column of y, whose time is gathers' and scatters', go without AVX-512's where those are
 * slow. */
const struct ki_bodies *ki_chain_bodies(const struct ki_chain *chain);
enum ki_isa ki_chain_isa(const struct ki_chain *chain); /* whose bodies these are */

#endif
