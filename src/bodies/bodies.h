/* The CPU bodies of all operations: one table per element type and instruction set, chosen at run time. */
#ifndef KI_BODIES_H
#define KI_BODIES_H

#include "bodies/list.h"
#include "ops/points/assign.h"
#include "ops/linear/cg.h"
#include "ops/sampled/dirichlet.h"
#include "ops/linear/dual.h"
#include "ops/sampled/factor_rows.h"
#include "ops/linear/gram.h"
#include "ops/linear/loss.h"
#include "pass/chain.h"
#include "ops/linear/newton.h"
#include "ops/graph/ranks.h"
#include "ops/linear/scales.h"
#include "ops/sampled/sddmm.h"
#include "derived/sparse_columns.h"

struct ki_bodies {
#define MEMBER(result, name, parameters) result(*name) parameters;
    KI_BODY_LIST(MEMBER) KI_DOUBLE_BODY_LIST(MEMBER)
#undef MEMBER
};

/* [0] f32, [1] f64 */
extern const struct ki_bodies ki_bodies_base[2], ki_bodies_avx2[2], ki_bodies_avx512[2];

const struct ki_bodies *ki_bodies(const kiln_matrix *A); /* those for A's device and type */
/* ... and for a pass: sparse rows times one column of y, whose time is gathers' and scatters', go without AVX-512's where those are
 * slow. */
const struct ki_bodies *ki_chain_bodies(const struct ki_chain *chain);
enum ki_isa ki_chain_isa(const struct ki_chain *chain); /* whose bodies these are */

#endif
