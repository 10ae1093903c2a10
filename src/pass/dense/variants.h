/* Dense passes on a GPU: the ways in which there are, one row of a table each (variants.c), with the plans
 * that a way offers a device and the time that each is predicted to take (cost.c: what they have in
 * common). */
#ifndef KI_VARIANTS_H
#define KI_VARIANTS_H

#include "pass/dense/pace.h"
#include "pass/launch.h"

/* A list of candidates being made for a chain. */
struct ki_offers {
    const struct ki_chain *chain;
    struct ki_candidate *rows; /* room for all; may be NULL where no pack is there, to keep the best alone */
    struct ki_candidate best;
    int count, chosen;
    int words; /* registers for x, y and w that a thread may have where all of them are held at once */
};

extern const struct ki_variant ki_dense_rows, ki_dense_wide, ki_dense_ring, ki_dense_team, ki_dense_tile;

/* Fills in the plan's cost by its variant, for `groups` on each compute unit, and adds it to the list. */
void ki_offer(struct ki_offers *offers, const struct ki_plan *plan, int64_t groups);

/* The layout that the model predicts to be the fastest. */
kiln_status ki_dense_choose(struct ki_plan *plan, const struct ki_chain *chain);

/* Offers the one plan of dense.cl for all rows of about so many columns: threads and their loads are powers
 * of two, and no load is wider than an element. The lines "// pack" of dense.cl are its kernels, one for each
 * power of two. By the cost model a pass over f32 takes 1.7 times as long on an H200 with one column of y as
 * with the plan that suits the shape best, a softmax of eight classes 3.5 times: the geometric mean of shapes
 * from 30,000 x 1 to 250,000 x 50,000. */
void ki_offer_general(struct ki_offers *offers);

/* Returns whether a chain goes through products.cl: one product alone, of more columns of y than a launch of
 * the variants takes. */
bool ki_dense_multiplies(const struct ki_chain *chain);
/* Such a chain: the result, or, TRANSPOSED, `splits` partial ones, partials[split][k][n], in the device's
 * work space. */
kiln_status ki_dense_products(int64_t *splits, struct ki_buffer *partials, const struct ki_chain *chain);
void ki_dense_products_programs(struct ki_programs *programs, const struct ki_chain *chain);

/* ---- what variants share ---- */

/* Bytes a nanosecond of a compute unit, and what bounds them, for a plan with `groups` on each. */
typedef double ki_rate(const char **limit, const struct ki_plan *plan, const struct ki_chain *chain,
                       int64_t groups);
/* A candidate's cost from that rate: the pass, the last groups' idle time, the partial sums and their end
 * (`ending` nanoseconds at an H200's pace), for each K columns. */
void ki_cost(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups, ki_rate *rate,
             double ending);
/* The rate where each of these alone would allow so much: (sum of rates^-power)^(-1/power). *least: which is
 * the smallest. */
double ki_joint_rate(const double *rates, int count, double power, int *least);
/* A compute unit's share of the memory's bandwidth, in bytes a nanosecond. */
double ki_dense_unit_memory(const kiln_device *device);
/* Shuffles that sum `numbers` over `lanes`, each halving what a lane is in charge of. */
double ki_sum_shuffles(double numbers, double lanes);
double ki_log2_of(double power);
/* Groups of so many registers a thread that a compute unit holds, as far as registers and threads go. */
int64_t ki_unit_groups(const struct ki_plan *plan, const struct ki_chain *chain, double registers);

/* Returns whether the device copies in bulk, and groups have all of a unit's on-chip memory: Hopper through
 * CUDA or NVIDIA's OpenCL. */
static inline bool ki_copies_in_bulk(const struct ki_properties *device) {
    return (device->architecture >= 90 && device->local_max > 0) || device->local_declared > 0;
}

/* Elements of the widest load of 16 bytes that divides the row. */
static inline int ki_load_width(const kiln_matrix *X) {
    const int64_t widest = 16 / ki_type_bytes(X->type);
    return (int)(X->cols % widest == 0 ? widest : X->cols % 2 == 0 ? 2 : 1);
}

/* The same of values as X keeps them. */
static inline int ki_kept_width(const kiln_matrix *X) {
    int64_t width = 16 / ki_value_bytes(X);
    while (X->cols % width) width /= 2;
    return (int)width;
}

/* Loads of a thread and step that are narrower than 16 bytes: each counts by as much as it lacks. */
static inline double ki_narrow_loads(const struct ki_plan *plan, const kiln_matrix *X) {
    return plan->R * plan->Q * (1 - (double)(plan->W * ki_value_bytes(X)) / 16);
}

/* Calls each(offers, plan) for the vectors and groups, and the loads of a row, that one group's rows may
 * have, for K columns. */
void ki_each_layout(struct ki_offers *offers, int K,
                    void (*each)(struct ki_offers *offers, struct ki_plan plan));
/* The fewest columns of y that a launch may take: all of them where a map needs whole rows. */
int ki_least_columns(const struct ki_chain *chain);

#endif
