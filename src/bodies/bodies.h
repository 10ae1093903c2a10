/* The CPU bodies of all operations: one table per element type and instruction set, chosen at run time. */
#ifndef KI_BODIES_H
#define KI_BODIES_H

#include "choose/bodies.h"
#include "derived/bodies.h"
#include "metrics/bodies.h"
#include "ops/batch/bodies.h"
#include "ops/graph/bodies.h"
#include "ops/linear/bodies.h"
#include "ops/points/bodies.h"
#include "ops/rows/bodies.h"
#include "ops/sampled/bodies.h"
#include "ops/vectors/bodies.h"
#include "pass/bodies.h"

/* Rows BODY(result, name, (parameters)) of all folders, of the table's type; and of doubles, whatever the
 * table's type. */
#define KI_BODY_LIST(BODY)                                                                                   \
    KI_BODIES_choose(BODY) KI_BODIES_batch(BODY) KI_BODIES_graph(BODY) KI_BODIES_linear(BODY)                \
        KI_BODIES_points(BODY) KI_BODIES_rows(BODY) KI_BODIES_sampled(BODY) KI_BODIES_vectors(BODY)          \
            KI_BODIES_pass(BODY)
#define KI_DOUBLE_BODY_LIST(BODY) KI_BODIES_derived(BODY) KI_BODIES_metrics(BODY)

struct ki_bodies {
#define MEMBER(result, name, parameters) result(*name) parameters;
    KI_BODY_LIST(MEMBER) KI_DOUBLE_BODY_LIST(MEMBER)
#undef MEMBER
};

/* [0] f32, [1] f64 */
extern const struct ki_bodies ki_bodies_base[2], ki_bodies_avx2[2], ki_bodies_avx512[2];

const struct ki_bodies *ki_bodies(const kiln_matrix *A); /* those for A's device and type */
const struct ki_bodies *ki_bodies_for(const kiln_device *device, kiln_type type);
/* ... and for a pass: sparse rows times one column of y, whose time is gathers' and scatters', go without
 * AVX-512's where those are slow. */
const struct ki_bodies *ki_chain_bodies(const struct ki_chain *chain);
enum ki_isa ki_chain_isa(const struct ki_chain *chain); /* whose bodies these are */

#endif
