/* Sampled products on a GPU: the choice of a plan, its launches, work space, and what is left to add up. */
#include "core/arguments.h"
#include "core/limits.h"
#include "core/size.h"
#include "derived/shares.h"
#include "ops/sampled/samples.cl"
#include "ops/sampled/sddmm.cl"
#include "ops/sampled/sddmm.h"
#include "pass/combine.h"

KI_ARGUMENTS(samples);
KI_ARGUMENTS(sddmm);
KI_ARGUMENTS(sddmm_join);

#define JOIN_DEFINES "-DJOIN=128" /* JOIN threads a group */
enum { JOIN = 128, QUARTERS = 4 };

/* A product that is added up in P meanwhile, or in Y, may be taken in slices. */
static bool has_place(const struct ki_sampled *s, const kiln_matrix *S) {
    return s->Y ? s->kind == 0 : s->P && s->P != S && s->beta == 0;
}

/* Numbers of a row that a launch takes where they are added to Y: all, unless B is too large for the cache
 * and its rows are gathered often. */
static int64_t width_of(const struct ki_sampled *s, const kiln_matrix *S) {
    const int64_t bytes = ki_type_bytes(S->type), rows = s->B->rows;
    return has_place(s, S) && rows * s->k * bytes > ki_limits.gathered_bytes &&
                   s->nnz >= ki_limits.gathered_entries * rows
               ? ki_min(s->k, ki_limits.gathered_slice / bytes)
               : s->k;
}

static struct ki_sampled_plan best_plan(const struct ki_sampled *s, const kiln_matrix *S) {
    struct ki_sampled_plan plans[KI_SAMPLED_PLANS];
    if (s->Y) return ki_sampled_layout(s->k, width_of(s, S), S->type, s->halves != 0);
    ki_sampled_plans(plans, S->device,
                     &(struct ki_sampled_shape){.rows = s->rows,
                                                .cols = S->cols,
                                                .nnz = s->nnz,
                                                .k = s->k,
                                                .type = S->type,
                                                .halves = s->halves != 0,
                                                .has_place = has_place(s, S)});
    return plans[0];
}

static kiln_status build(struct ki_kernel **kernel, struct ki_sampled_plan *plan, const struct ki_sampled *s,
                         const kiln_matrix *S) {
    const char *name = s->Y ? "sddmm" : "samples";
    const bool sliced = !s->Y && plan->width < s->k;
    const bool full = plan->VS * plan->Q * plan->W == plan->width && s->k % plan->width == 0;
    static const char *const halves[] = {"", " -DHALVES=1", " -DHALVES=2"}; /* by kiln_half_type */
    const char *defines =
        KI_DEFINES("-DSAMPLE=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=%d%s%s%s%s%s%s%s", s->kind, plan->VS,
                   plan->BS, plan->Q, plan->W, plan->R, s->P ? " -DWITH_P" : "", s->sum ? " -DWITH_SUM" : "",
                   s->short_starts ? " -DSHORT_STARTS" : "", sliced ? " -DSLICED" : "",
                   plan->ahead ? " -DAHEAD" : "", halves[s->halves], full ? " -DFULL" : "");
    kiln_status status = ki_kernel_get(kernel, S->device, name, name, S->type, defines);
    if (status == KILN_OK) status = ki_kernel_resident(S->device, &plan->groups, *kernel, plan->BS);
    return status;
}

/* A vector has a share at least, and so few entries that an int counts them. Whole shares would leave some
 * vectors of a small matrix twice as many as others. */
static void share_out(struct ki_sampled_plan *plan, const struct ki_shares *shares) {
    const int64_t vectors = plan->BS / plan->VS, most = ki_limits.vector_entries / KI_SHARE_ENTRIES;
    plan->groups = ki_max(ki_ceil_div(shares->count, most * vectors),
                          ki_min(plan->groups, ki_ceil_div(shares->count, vectors)));
    plan->each = QUARTERS * shares->count / (plan->groups * vectors);
    plan->more = QUARTERS * shares->count % (plan->groups * vectors);
}

/* Holds what a product works with, beside its operands. */
struct space {
    const struct ki_shares *shares;
    struct ki_kernel *kernel, *join;
    struct ki_buffer sums, cut, cut_row;
};

static kiln_status prepare(struct space *space, struct ki_sampled_plan *plan, const struct ki_sampled *s,
                           const kiln_matrix *S) {
    kiln_device *device = S->device;
    kiln_status status;
    TRY(build(&space->kernel, plan, s, S));
    TRY(ki_shares_get(&space->shares, S, s->by_columns, s->start, s->short_starts, s->rows));
    share_out(plan, space->shares);
    const int64_t parts = plan->groups * (plan->BS / plan->VS + 2); /* of rows of Y */
    if (s->sum) TRY(ki_device_space(device, 0, &space->sums, plan->groups * 8));
    if (!s->Y) return KILN_OK;
    TRY(ki_device_space(device, 1, &space->cut, parts * plan->width * ki_type_bytes(S->type)));
    TRY(ki_device_space(device, 2, &space->cut_row, plan->groups * 8));
    TRY(ki_kernel_get(&space->join, device, "sddmm", "sddmm_join", S->type,
                      s->short_starts ? JOIN_DEFINES " -DSHORT_STARTS" : JOIN_DEFINES));
done:
    return status;
}

/* The numbers of each row from `first` on, to P and the sum. */
static kiln_status launch_samples(const struct ki_sampled *s, const kiln_matrix *S,
                                  const struct ki_sampled_plan *plan, const struct space *space,
                                  int64_t first) {
    return ki_kernel_launch(
        S->device, space->kernel, plan->groups, plan->BS,
        KI_PACK(samples, S, .start = s->start, .col = s->col, .value = s->value, .A = s->A, .B = s->B,
                .P = s->P, .sums = s->sum ? &space->sums : NULL, .share_begin = &space->shares->begin,
                .share_row = &space->shares->row, .each = plan->each, .more = plan->more, .k = (int32_t)s->k,
                .first = (int32_t)first, .width = (int32_t)ki_min(plan->width, s->k - first),
                .alpha = s->alpha, .beta = s->beta, .least = s->floor));
}

/* The same, added to rows of Y; then its rows that go beyond a group, and those without entries. */
static kiln_status launch_product(const struct ki_sampled *s, const kiln_matrix *S,
                                  const struct ki_sampled_plan *plan, const struct space *space,
                                  int64_t first) {
    const int64_t in_group = plan->BS / plan->VS, vectors = plan->groups * in_group;
    const int32_t k = (int32_t)s->k, width = (int32_t)ki_min(plan->width, s->k - first);
    kiln_status status;
    TRY(ki_kernel_launch(S->device, space->kernel, plan->groups, plan->BS,
                         KI_PACK(sddmm, S, .start = s->start, .col = s->col, .value = s->value, .A = s->A,
                                 .B = s->B, .Y = s->Y, .Z = s->Z, .sums = s->sum ? &space->sums : NULL,
                                 .cut = &space->cut, .cut_row = &space->cut_row,
                                 .share_begin = &space->shares->begin, .share_row = &space->shares->row,
                                 .each = plan->each, .more = plan->more, .vectors = vectors, .k = k,
                                 .first = (int32_t)first, .width = width, .alpha = s->alpha, .beta = s->beta,
                                 .least = s->floor)));
    TRY(ki_kernel_launch(
        S->device, space->join, plan->groups, JOIN,
        KI_PACK(sddmm_join, S, .Y = s->Y, .Z = s->Z, .start = s->start, .cut = &space->cut,
                .cut_row = &space->cut_row, .rows = s->rows, .share_begin = &space->shares->begin,
                .each = plan->each, .more = plan->more, .vectors = vectors, .in_group = (int32_t)in_group,
                .k = k, .first = (int32_t)first, .width = width, .alpha = s->alpha, .beta = s->beta)));
done:
    return status;
}

kiln_status ki_sampled_gpu(const struct ki_sampled *s, const kiln_matrix *S,
                           const struct ki_sampled_plan *given) {
    struct ki_sampled_plan plan = given ? *given : best_plan(s, S);
    struct space space = {0};
    kiln_status status;
    TRY(prepare(&space, &plan, s, S));
    /* from here on only the driver can fail */
    for (int64_t first = 0; first < s->k; first += plan.width)
        TRY(s->Y ? launch_product(s, S, &plan, &space, first) : launch_samples(s, S, &plan, &space, first));
    if (s->sum) TRY(ki_group_sums(s->sum, 1, S->device, &space.sums, plan.groups));
done:
    return status;
}
