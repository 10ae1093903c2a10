/* The CPU bodies of all operations: one table per element type and instruction set, chosen at run time. */
#ifndef KI_BODIES_H
#define KI_BODIES_H

#include "bodies/list.h"
#include "ops/assign.h"
#include "ops/cg.h"
#include "ops/factor_rows.h"
#include "ops/gram.h"
#include "ops/loss.h"
#include "pass/chain.h"
#include "ops/newton.h"
#include "ops/ranks.h"
#include "ops/scales.h"
#include "ops/sddmm.h"
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
