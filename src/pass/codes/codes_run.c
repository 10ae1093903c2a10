/* A pass over an X with categories as codes on a GPU, K columns of y at a time (codes.cl). Where a row's
 * numbers are too many for a thread's registers, they are a dense X of their own: its dot products come
 * before, and its sums, from the factors that the rows leave, afterwards. */
#include "core/arguments.h"
#include "core/codes/codes.h"
#include "core/limits.h"
#include "core/size.h"
#include "dialect/chain_arguments.h"
#include "pass/codes/codes.cl"
#include "pass/combine.h"
#include "pass/launch.h"

KI_ARGUMENTS(coded);
KI_ARGUMENTS(coded_places);

enum {
    GROUP = 512,
    GROUP_CPU = 64,
    NUMBERS_MOST = 16,    /* times columns of y, that a thread has sums of */
    CHIP_BYTES = 64 << 10 /* so that a compute unit has room for several groups */
};

static bool scatters(const struct ki_chain *chain) {
    return chain->kind != KI_CHAIN_PLAIN;
}

static bool gathers(const struct ki_chain *chain) {
    return chain->kind == KI_CHAIN_FUSED || chain->kind == KI_CHAIN_PLAIN;
}

/* Returns whether the numbers are a pass, or two, of their own. */
static bool apart(const struct ki_chain *chain) {
    return chain->X->codes->numbers->cols * ki_plan_columns(chain) > NUMBERS_MOST;
}

static int group_of(const struct ki_chain *chain) {
    const struct ki_properties *device = &chain->X->device->properties;
    return (int)ki_min(device->is_gpu ? GROUP : GROUP_CPU, device->group_max);
}

/* Sums of levels on chip: those of the narrowest categories that there is room for. */
static int32_t chip_of(const struct ki_chain *chain) {
    const struct ki_codes *codes = chain->X->codes;
    const struct ki_properties *device = &chain->X->device->properties;
    const int64_t element = ki_type_bytes(chain->X->type), K = ki_plan_columns(chain);
    const int64_t fixed = (element + (ki_chain_maps(chain) ? 8 : 0)) * group_of(chain);
    const int64_t most = ki_min(device->is_gpu ? CHIP_BYTES : ki_limits.chip_bytes_cpu, ki_limits.chip_bytes);
    const int64_t room = ki_max(ki_min(device->local_max - fixed, most), 0) / (K * element);
    int64_t chip = 0;
    for (int64_t c = 0; scatters(chain) && c < codes->count; c++)
        if (codes->column[c].near <= room) chip = ki_max(chip, codes->column[c].near);
    return (int32_t)chip;
}

static const char *defines_of(char text[KI_DEFINES_MOST], const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const int BS = group_of(chain);
    char map[KI_MAP_DEFINES];
    ki_map_defines(map, chain);
    return ki_defines(text, "-DKIND=%d -DD=%d -DVS=%d -DBS=%d -DQ=1 -DW=1 -DK=%d%s%s", (int)chain->kind,
                      apart(chain) ? 0 : (int)X->codes->numbers->cols, BS, BS, ki_plan_columns(chain),
                      ki_index_define(chain, X->codes->numbers->nnz), map);
}

void ki_codes_programs(struct ki_programs *programs, const struct ki_chain *chain) {
    char defines[KI_DEFINES_MOST];
    ki_programs_add(programs, "codes", "coded", chain->X->type, defines_of(defines, chain));
}

/* A launch gets so much; a GPU allows a kernel no more than it was told of before. */
static int64_t local_bytes(const struct ki_plan *plan, const struct ki_chain *chain) {
    return ki_max(plan->shared_w * plan->K * ki_type_bytes(chain->X->type), 8);
}

/* The kernel, and as many groups as run at once. */
static kiln_status build(struct ki_kernel **kernel, struct ki_plan *plan, const struct ki_chain *chain) {
    kiln_device *device = chain->X->device;
    char defines[KI_DEFINES_MOST];
    kiln_status status;
    TRY(ki_kernel_get(kernel, device, "codes", "coded", chain->X->type, defines_of(defines, chain)));
    TRY(ki_kernel_resident_with(device, &plan->groups, *kernel, plan->BS, local_bytes(plan, chain)));
    plan->groups = ki_max(ki_min(plan->groups, ki_ceil_div(chain->X->rows, plan->BS)), 1);
done:
    return status;
}

static kiln_status launch(struct ki_kernel *kernel, const struct ki_plan *plan, const struct ki_work *work,
                          const struct ki_chain *chain, kiln_matrix *rest, int first) {
    const kiln_matrix *X = chain->X;
    const struct ki_codes *codes = X->codes;
    struct ki_arg args[coded_count + KI_MAP_ARGS + 1];
    int n = coded_count;
    coded_pack(args, X,
               &(struct coded_arguments){.out = chain->out,
                                         .numbers = codes->numbers,
                                         .words = codes->words,
                                         .rest = rest,
                                         KI_CHAIN_VALUES(chain),
                                         .count = (int32_t)codes->count,
                                         .k = chain->k,
                                         .first = first,
                                         .v_cols = chain->v ? (int32_t)chain->v->cols : 0,
                                         .chip = plan->shared_w});
    n += ki_map_args(args + n, chain, work);
    args[n++] = ki_arg_local(local_bytes(plan, chain));
    kiln_status status = ki_kernel_launch(X->device, kernel, plan->groups, plan->BS, args, n);
    if (status == KILN_OK && ki_chain_maps(chain))
        status = ki_map_records(chain, work, plan->groups, plan->K, first);
    return status;
}

/* part = what of `all` belongs to the numbers, or all += part there. */
static kiln_status places(const char *function, kiln_matrix *all, kiln_matrix *part,
                          const struct ki_chain *chain) {
    const struct ki_codes *codes = chain->X->codes;
    return ki_launch_elements(all, part->nnz, "codes", function, "-DPLACES", /* the larger one's indices */
                              KI_PACK(coded_places, all, .all = all, .part = part, .words = codes->words,
                                      .places = (int32_t)(codes->count * KI_CODE_WORDS),
                                      .count = (int32_t)codes->numbers->cols, .k = chain->k));
}

/* rest = the numbers' part of X y. */
static kiln_status numbers_products(kiln_matrix *rest, const struct ki_chain *chain) {
    kiln_matrix *numbers = chain->X->codes->numbers, *y = NULL, *all = (kiln_matrix *)(uintptr_t)chain->y;
    kiln_status status;
    TRY(ki_matrix_new_held(&y, numbers->device, numbers->type, numbers->cols, chain->k));
    TRY(places("coded_take", all, y, chain));
    TRY(ki_chain_gpu(&(struct ki_chain){
        .kind = KI_CHAIN_PLAIN, .out = rest, .alpha = 1, .X = numbers, .y = y, .k = chain->k}));
done:
    kiln_matrix_free(y);
    return status;
}

/* out += the numbers' part of X^T times the factors: `rest`, with alpha in them, or y. */
static kiln_status numbers_sums(const kiln_matrix *rest, const struct ki_chain *chain) {
    kiln_matrix *numbers = chain->X->codes->numbers, *w = NULL;
    kiln_status status;
    TRY(ki_matrix_new_held(&w, numbers->device, numbers->type, numbers->cols, chain->k));
    TRY(ki_chain_gpu(
        &(struct ki_chain){.kind = chain->kind == KI_CHAIN_SQUARES ? KI_CHAIN_SQUARES : KI_CHAIN_TRANSPOSED,
                           .out = w,
                           .alpha = rest ? 1 : chain->alpha,
                           .X = numbers,
                           .y = rest ? rest : chain->y,
                           .k = chain->k}));
    TRY(places("coded_give", chain->out, w, chain));
done:
    kiln_matrix_free(w);
    return status;
}

kiln_status ki_chain_gpu_codes(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    struct ki_plan plan = {
        .BS = group_of(chain), .K = ki_plan_columns(chain), .C = 1, .shared_w = chip_of(chain)};
    struct ki_work work = {{0}, 0};
    struct ki_kernel *kernel;
    kiln_matrix *rest = NULL;
    kiln_status status;
    if (scatters(chain) && chain->z) TRY(ki_combine_all(chain->out, chain->beta, chain->z, 0, NULL));
    if (scatters(chain) && !chain->z) TRY(ki_set_all(chain->out, 0.0));
    if (apart(chain) && gathers(chain)) {
        TRY(ki_matrix_new_held(&rest, X->device, X->type, X->rows, chain->k));
        TRY(numbers_products(rest, chain));
    }
    TRY(build(&kernel, &plan, chain));
    if (ki_chain_maps(chain)) TRY(ki_plan_work(&work, &plan, chain, 0));
    for (int first = 0; first < chain->k; first += plan.K)
        TRY(launch(kernel, &plan, &work, chain, rest, first));
    if (ki_chain_maps(chain)) TRY(ki_map_value(chain, &work));
    if (apart(chain) && scatters(chain)) TRY(numbers_sums(rest, chain));
done:
    kiln_matrix_free(rest);
    return status;
}
