/* The GPU's launches of kiln_gram and ki_gram_all for a dense X (gram.cl): which tiles, and how many splits of the rows. */
#include "core/arguments.h"
#include "core/size.h"
#include "ops/linear/gram.cl"
#include "ops/linear/gram_gpu.h"
#include "pass/combine.h"
#include "pass/dense/variants.h"

KI_ARGUMENTS(gram);
KI_ARGUMENTS(gram_finish);
KI_ARGUMENTS(gram_centre);

enum {
    FINISH = 128,
    PARTS = 8,
    SPLITS_MOST = 4096,
    PARTIALS_MOST = 1 << 28 /* bytes, unless one split takes more */
};

/* What the kernels are built with. Tiles of tensor cores are 32 x 32 a warp, of which a lone one is shared by eight. */
struct shape {
    int side, group, chunk, stages;
    bool tensor;
};

/* That which makes the fewest multiplications of so many columns. */
static struct shape shape_of(const kiln_matrix *X, int64_t size) {
    static const struct shape tensor[] = {
        {32, 256, 64, 4, true}, {64, 128, 16, 3, true}, {96, 288, 16, 3, true}};
    static const struct shape plain[] = {{32, 64, 32, 3, false}, {64, 256, 16, 2, false}};
    const bool cores = X->type == KILN_F32 && ki_copies_in_bulk(&X->device->properties);
    if (!cores) return plain[size > plain[0].side && X->device->properties.group_max >= plain[1].group];
    struct shape best = tensor[0];
    int64_t least = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        const int64_t side = tensor[i].side, strips = ki_ceil_div(size, side);
        const int64_t work = strips * (strips + 1) * side * side;
        if ((i == 0 && strips > 1) || work >= least) continue;
        best = tensor[i];
        least = work;
    }
    return best;
}

/* Splits so that all groups run at once, and each has some chunks. */
static int64_t splits_of(const struct shape *shape, int64_t rows, int64_t pairs, int64_t resident) {
    enum { CHUNKS_LEAST = 4 };
    const int64_t chunks = ki_ceil_div(ki_max(rows, 1), shape->chunk);
    const int64_t room = PARTIALS_MOST / (pairs * shape->side * shape->side * 8);
    const int64_t wanted = ki_min(ki_max(resident / pairs, 1), ki_ceil_div(chunks, CHUNKS_LEAST));
    return ki_max(ki_min(ki_min(wanted, SPLITS_MOST), room), 1);
}

kiln_status ki_gram_gpu(const struct ki_gram *gram) {
    kiln_status status;
    const kiln_matrix *X = gram->X;
    kiln_device *device = X->device;
    const int64_t k = gram->Y ? gram->Y->cols : 0, size = X->cols + k + 1;
    const struct shape shape = shape_of(X, size);
    const int64_t strips = ki_ceil_div(size, shape.side), pairs = strips * (strips + 1) / 2;
    struct ki_kernel *kernel;
    struct ki_buffer partials, all = {0};
    int64_t resident, tile, bytes, square;
    if (!ki_mul3(pairs, shape.side * shape.side, ki_type_bytes(X->type), &tile) ||
        !ki_mul3(size, size, ki_type_bytes(ki_wide_type(device)), &square))
        return ki_fail(KILN_ERR_ARGUMENT, "a Gram matrix of %lld columns overflows", (long long)size);
    const char *defines = KI_DEFINES("-DSIDE=%d -DBS=%d -DCHUNK=%d -DW=%d -DSTAGES=%d%s%s", shape.side,
                                     shape.group, shape.chunk, ki_load_width(X), shape.stages,
                                     strips == 1 ? " -DONE_STRIP" : "", shape.tensor ? " -DTENSOR" : "");
    TRY(ki_kernel_get(&kernel, device, "gram", "gram", X->type, defines));
    TRY(ki_kernel_resident(device, &resident, kernel, shape.group));
    const int64_t splits = splits_of(&shape, X->rows, pairs, resident);
    if (!ki_mul(tile, splits, &bytes)) return ki_fail_nomem(SIZE_MAX, "a Gram matrix");
    TRY(ki_device_scratch(device, &partials, bytes));
    if (gram->all) TRY(ki_device_space(device, 0, &all, square));
    TRY(ki_kernel_launch(device, kernel, pairs * splits, shape.group,
                         KI_PACK(gram, X, .partials = &partials, .X = X, .v = gram->v, .c = gram->c,
                                 .Y = gram->Y, .d = gram->d, .rows = X->rows, .n = (int32_t)X->cols,
                                 .k = (int32_t)k, .strips = (int32_t)strips, .splits = (int32_t)splits)));
    const int64_t parts = splits >= 4 * PARTS ? PARTS : 1;
    TRY(ki_kernel_run(device, "gram", "gram_finish", X->type, defines,
                      ki_min(ki_ceil_div(size * size * parts, shape.group), 4096), shape.group,
                      KI_PACK(gram_finish, X, .all = gram->all ? &all : NULL, .G = gram->G, .g = gram->g,
                              .partials = &partials, .n = (int32_t)X->cols, .k = (int32_t)k,
                              .strips = (int32_t)strips, .splits = (int32_t)splits,
                              .parts = (int32_t)parts)));
    if (gram->all) TRY(ki_download_wide(gram->all, device, &all, 0, size * size));
done:
    return status;
}

kiln_status ki_gram_centre_gpu(kiln_matrix *c, const kiln_matrix *X, int sample) {
    const char *defines = KI_DEFINES("-DSIDE=32 -DBS=%d -DCHUNK=32 -DW=1 -DSTAGES=1", FINISH);
    return ki_kernel_run(
        X->device, "gram", "gram_centre", X->type, defines, ki_ceil_div(X->cols, FINISH), FINISH,
        KI_PACK(gram_centre, X, .c = c, .X = X, .rows = X->rows, .n = (int32_t)X->cols, .sample = sample));
}
