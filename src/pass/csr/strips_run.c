/* The launch of a pass over strips (pass/csr/strips.cl). */
#include <stdio.h>

#include "core/arguments.h"
#include "core/size.h"
#include "dialect/chain_arguments.h"
#include "pass/launch.h"
#include "pass/csr/strips.cl"
#include "pass/csr/strips.h"

enum { LOADS = 4 };

KI_ARGUMENTS(mmchain_strips);

static kiln_status kernel_of(struct ki_kernel **kernel, const struct ki_strips *strips,
                             const struct ki_chain *chain) {
    char map[KI_MAP_DEFINES] = "", defines[128 + KI_MAP_DEFINES];
    const int group = ki_strips_group(chain->X->device);
    ki_map_defines(map, chain);
    snprintf(defines, sizeof defines,
             "-DKIND=%d -DVS=1 -DBS=%d -DQ=%d -DW=1 -DR=1 -DK=1 -DBUCKET_BITS=%d%s%s", (int)chain->kind,
             group, LOADS, strips->bucket_bits, ki_index_define(chain, 0), map);
    return ki_kernel_get(kernel, chain->X->device, "strips", "mmchain_strips", chain->X->type, defines);
}

kiln_status ki_strips_pass(const struct ki_layout *layout, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_strips *strips = &layout->strips;
    const struct ki_plan plan = {.K = 1, .groups = strips->count};
    const int64_t local = strips->height * ki_type_bytes(X->type);
    const int group = ki_strips_group(X->device);
    struct ki_kernel *kernel;
    struct ki_work work = {{0}, 0};
    struct ki_arg args[mmchain_strips_count + KI_MAP_ARGS + 1];
    int64_t resident;
    int n = mmchain_strips_count;
    kiln_status status;
    TRY(kernel_of(&kernel, strips, chain));
    /* Where the API wants to be told of so much local memory before the launch. */
    if (X->device->backend->resident_clusters)
        TRY(ki_kernel_resident_clusters(X->device, &resident, kernel, group, 1, local));
    if (ki_chain_maps(chain)) TRY(ki_plan_work(&work, &plan, chain, 0));
    mmchain_strips_pack(args, X,
                        &(struct mmchain_strips_arguments){.out = chain->out,
                                                           .start = &strips->start,
                                                           .entry = &strips->entry,
                                                           .X = layout->alike ? NULL : &strips->value,
                                                           .same = layout->value,
                                                           KI_CHAIN_VALUES(chain),
                                                           .height = strips->height,
                                                           .buckets = strips->buckets,
                                                           .panels = strips->panels,
                                                           .bits = strips->bits,
                                                           .v_cols = chain->v ? (int32_t)chain->v->cols : 0});
    n += ki_map_args(args + n, chain, &work);
    args[n++] = ki_arg_local(local);
    TRY(ki_kernel_launch(X->device, kernel, strips->count, group, args, n));
    if (!ki_chain_maps(chain)) return KILN_OK;
    TRY(ki_map_records(chain, &work, strips->count, 1, 0));
    TRY(ki_map_value(chain, &work));
done:
    return status;
}
