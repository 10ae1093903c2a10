/* A pass over a sparse X on a GPU, K columns of y at a time:
 *
 *   1. what panels add to the rows' dot products,      dots    = (X's part in panels) y
 *   2. the rows one by one: their dot products, the map in the middle, and the sums of popular columns, or of
 *      all,
 *   3. the other columns' sums, from the rows' factors, in panels or through the transpose.
 *
 * derived/derived.h says what X has of these; what it has not, the rows do. */
#include "core/seams.h"
#include "pass/combine.h"
#include "pass/csr/panels.h"
#include "pass/csr/stage.h"

static const struct ki_buffer *values_of(const kiln_matrix *A) {
    return A ? &A->values : NULL;
}

static struct ki_stage stage_over_X(const struct ki_chain *chain, const struct ki_plan *plan,
                                    const struct ki_derived *derived, int first) {
    const kiln_matrix *X = chain->X;
    const bool gathers = chain->kind <= KI_CHAIN_PLAIN, scatters = chain->kind != KI_CHAIN_PLAIN;
    const struct ki_popular *popular = derived->popular;
    const enum ki_csr_part here = !derived->panels ? KI_PART_ALL : popular ? KI_PART_POPULAR : KI_PART_NONE;
    return (struct ki_stage){.chain = chain,
                             .kind = chain->kind,
                             .plan = *plan,
                             .A = {.start = &X->row_start,
                                   .col = popular ? &popular->code : &X->col,
                                   .values = derived->alike ? NULL : &X->values,
                                   .same = derived->value,
                                   .rows = X->rows,
                                   .lists = derived->rows,
                                   .coded = popular},
                             .dots_of = gathers ? here : KI_PART_NONE,
                             .sums_of = scatters && !derived->transpose ? here : KI_PART_NONE,
                             .y = {values_of(chain->y), chain->k, first},
                             .out = {values_of(chain->out), chain->k, first},
                             .z = values_of(chain->z),
                             .alpha = chain->alpha,
                             .beta = chain->beta};
}

static kiln_status take_spaces(struct ki_stage *stage, const struct ki_derived *derived) {
    const kiln_matrix *X = stage->chain->X;
    kiln_device *device = X->device;
    const int64_t row = stage->plan.K * ki_type_bytes(X->type);
    const bool scatters = stage->kind != KI_CHAIN_PLAIN, gathers = stage->kind <= KI_CHAIN_PLAIN;
    const int64_t hot = derived->popular ? derived->popular->count * row : 0;
    kiln_status status = KILN_OK;
    if (hot && stage->dots_of) TRY(ki_device_space(device, KI_SPACE_Y_HOT, &stage->y_hot, hot));
    if (hot && stage->sums_of) TRY(ki_device_space(device, KI_SPACE_W_HOT, &stage->w_hot, hot));
    if (derived->panels && gathers) TRY(ki_device_space(device, KI_SPACE_DOTS, &stage->dots, X->rows * row));
    if (scatters && stage->sums_of != KI_PART_ALL && stage->kind != KI_CHAIN_TRANSPOSED)
        TRY(ki_device_space(device, KI_SPACE_FACTORS, &stage->factors, X->rows * row));
done:
    return status;
}

/* The second step. Where all entries are somebody else's, a thread does what is left of a row. */
static kiln_status run_rows(struct ki_stage *stage, struct ki_work *work) {
    static const struct ki_rows none = {.longest = INT32_MAX};
    struct ki_stage only_map = *stage;
    if (stage->dots_of || stage->sums_of) return ki_stage_run(stage, work);
    only_map.plan.VS = ki_csr_lanes(&stage->plan);
    only_map.plan.Q = 1;
    only_map.chip_y = 0;
    only_map.A.lists = &none;
    return ki_stage_run(&only_map, work);
}

/* Returns what multiplies X^T in the third step: what the rows left, or y itself. */
static struct ki_columns_of factors_of(const struct ki_stage *stage) {
    return stage->factors.handle ? (struct ki_columns_of){&stage->factors, stage->plan.K, 0} : stage->y;
}

/* alpha is in the factors that the rows left. */
static double alpha_of(const struct ki_stage *stage) {
    return stage->factors.handle ? 1 : stage->alpha;
}

/* out = X^T factors + beta z. Bands leave their sums, which are added up in order. */
static kiln_status run_transposed(const struct ki_stage *main, const struct ki_derived *derived) {
    const struct ki_chain *chain = main->chain;
    const kiln_matrix *X = chain->X;
    const struct ki_transpose *T = derived->transpose;
    const int64_t rows = X->cols * T->bands;
    const int width = (int)ki_min(main->plan.K, chain->k - main->out.first);
    struct ki_stage stage = {.chain = chain,
                             .kind = KI_CHAIN_PLAIN,
                             .plan = main->plan,
                             .A = {.start = &T->start,
                                   .col = &T->row,
                                   .values = derived->alike ? NULL : &T->value,
                                   .same = derived->value,
                                   .rows = rows,
                                   .lists = &T->rows,
                                   .transposed = true,
                                   .bands = T->bands > 1},
                             .dots_of = KI_PART_ALL,
                             .y = factors_of(main),
                             .out = main->out,
                             .z = main->z,
                             .alpha = alpha_of(main),
                             .beta = main->beta};
    struct ki_work none = {{0}, 0};
    struct ki_buffer sums;
    kiln_status status;
    stage.plan.VS = ki_csr_vector(X->device, X->nnz, rows, &T->rows, ki_csr_lanes(&stage.plan));
    stage.plan.Q = (int)ki_min(main->plan.Q, 4);
    stage.plan.shared_w = 0;
    if (T->bands == 1) return ki_stage_run(&stage, &none);
    TRY(ki_device_space(X->device, KI_SPACE_BANDS, &sums, rows * width * ki_type_bytes(X->type)));
    stage.z = NULL;
    stage.out = (struct ki_columns_of){&sums, width, 0};
    TRY(ki_stage_run(&stage, &none));
    TRY(ki_bands_sum(T, chain, &sums, width, main->out.first));
done:
    return status;
}

static kiln_status run_columns(struct ki_stage *stage, const struct ki_derived *derived,
                               struct ki_work *work) {
    const struct ki_chain *chain = stage->chain;
    const bool scatters = chain->kind != KI_CHAIN_PLAIN;
    const int K = stage->plan.K, first = stage->out.first;
    kiln_status status;
    if (stage->sums_of == KI_PART_NONE) stage->plan.shared_w = 0;
    TRY(take_spaces(stage, derived));
    if (derived->popular && (stage->dots_of || stage->sums_of))
        TRY(ki_popular_pack(derived->popular, &stage->y_hot, stage->sums_of ? &stage->w_hot : NULL, chain->X,
                            stage->dots_of ? chain->y : NULL, first, K));
    if (stage->dots.handle) TRY(ki_panels_dots(derived, chain, &stage->dots, K, first));
    /* y is the factors of TRANSPOSED. */
    if (chain->kind != KI_CHAIN_TRANSPOSED || stage->sums_of) TRY(run_rows(stage, work));
    if (scatters && derived->transpose) TRY(run_transposed(stage, derived));
    if (scatters && derived->panels) {
        const struct ki_columns_of factors = factors_of(stage);
        TRY(ki_panels_sums(derived, chain, K, first, alpha_of(stage), factors.values, factors.k,
                           factors.first));
    }
    if (derived->popular && stage->sums_of)
        TRY(ki_popular_unpack(derived->popular, chain->out, &stage->w_hot, first, K));
done:
    return status;
}

static kiln_status begin_with_z(const struct ki_chain *chain) {
    return chain->z ? ki_combine_all(chain->out, chain->beta, chain->z, 0, NULL)
                    : ki_set_all(chain->out, 0.0);
}

/* Rows of y that go on chip beside plan->shared_w of w, which may become fewer. */
static int64_t share_chip(struct ki_plan *plan, const struct ki_chain *chain,
                          const struct ki_derived *derived) {
    const kiln_matrix *X = chain->X;
    const bool w = chain->kind != KI_CHAIN_PLAIN && !derived->transpose;
    const int64_t known = derived->popular ? derived->popular->count : X->cols;
    if (derived->transpose) plan->shared_w = 0;
    int64_t chip_y = chain->kind <= KI_CHAIN_PLAIN ? ki_csr_chip_columns(plan, chain) - plan->shared_w : 0;
    /* Columns in no known order would not make use of the chip. */
    if (!derived->popular && X->cols > (w ? plan->shared_w : chip_y) && derived->passes > 1)
        plan->shared_w = chip_y = 0;
    plan->shared_w = (int)ki_min(plan->shared_w, known);
    return ki_min(chip_y, known);
}

kiln_status ki_chain_gpu_csr(const struct ki_chain *chain, const struct ki_plan *forced) {
    const kiln_matrix *X = chain->X;
    struct ki_plan plan = forced ? *forced : ki_csr_plan(chain);
    struct ki_derived derived;
    struct ki_work work = {{0}, 0};
    const bool scatters = chain->kind != KI_CHAIN_PLAIN;
    kiln_status status;
    TRY(ki_derived_get(&derived, X, scatters, plan.shared_w));
    if (scatters && !derived.transpose) TRY(begin_with_z(chain));
    if (!forced && derived.rows->vector) ki_csr_suit(&plan, chain, derived.rows);
    const int64_t chip_y = share_chip(&plan, chain, &derived);
    for (int first = 0; first < chain->k; first += plan.K) {
        struct ki_stage stage = stage_over_X(chain, &plan, &derived, first);
        stage.chip_y = (int)chip_y;
        TRY(run_columns(&stage, &derived, &work));
    }
    if (ki_chain_maps(chain)) TRY(ki_map_value(chain, &work));
done:
    /* A panel of rows that passes through the device takes what was derived from it along. */
    if (X->view) ki_slots_drop(X);
    return status;
}

/* A first pass has nothing of X but X; later ones have ranks, where they are looked for, which are mostly
 * found. */
void ki_csr_programs(struct ki_programs *programs, const struct ki_chain *chain, bool again) {
    static const struct ki_rows none = {.longest = INT32_MAX};
    static const struct ki_popular ranked = {.count = INT64_MAX};
    struct ki_derived derived = {.passes = again ? 2 : 1, .rows = &none};
    struct ki_plan plan = ki_csr_plan(chain);
    const bool ranks = ki_derived_programs(programs, chain->X, plan.shared_w);
    if (again && ranks) derived.popular = &ranked;
    const int64_t chip_y = share_chip(&plan, chain, &derived);
    struct ki_stage stage = stage_over_X(chain, &plan, &derived, 0);
    stage.chip_y = (int)chip_y;
    ki_stage_program(programs, &stage);
}

/* The built kernel tells how many groups run at once. */
static kiln_status count_groups(struct ki_candidate *candidate, const struct ki_chain *chain) {
    static const struct ki_rows none = {.longest = INT32_MAX};
    const struct ki_derived derived = {.rows = &none};
    const struct ki_stage stage = stage_over_X(chain, &candidate->plan, &derived, 0);
    return ki_stage_groups(&candidate->plan.groups, &stage);
}

kiln_status ki_csr_candidates(struct ki_candidate **list, int *count, int *chosen,
                              const struct ki_chain *chain) {
    struct ki_plan plans[KI_CSR_PLANS];
    const int n = ki_csr_plans(plans, chosen, chain);
    struct ki_candidate *made = ki_calloc((size_t)n * sizeof *made);
    kiln_status status = KILN_OK;
    if (!made) return ki_fail_nomem((size_t)n * sizeof *made, "the candidates");
    for (int i = 0; i < n; i++) {
        made[i].plan = plans[i];
        TRY(count_groups(&made[i], chain));
        ki_csr_predict(&made[i], chain);
    }
    *list = made;
    *count = n;
    return KILN_OK;
done:
    ki_free(made);
    return status;
}
