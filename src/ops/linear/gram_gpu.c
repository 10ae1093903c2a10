/* The GPU's launches of kiln_gram and ki_gram_all for a dense X: which tiles, and how many splits of the rows
 * (gram.cl); up to 32 columns on tensor cores by warps on their own (gram_narrow.cl). */
#include <stdio.h>

#include "core/arguments.h"
#include "core/narrow/narrow.h"
#include "core/size.h"
#include "ops/linear/gram.cl"
#include "ops/linear/gram_gpu.h"
#include "ops/linear/gram_narrow.cl"
#include "pass/combine.h"
#include "pass/dense/variants.h"

KI_ARGUMENTS(gram);
KI_ARGUMENTS(gram_narrow);
KI_ARGUMENTS(gram_finish);
KI_ARGUMENTS(gram_centre);

enum {
    FINISH = 128,
    PARTS = 8,
    SPLITS_MOST = 4096,
    PARTIALS_MOST = 1 << 28 /* bytes, unless one split takes more */
};

/* Options of the kernels beside the walks. */
#define SMALL_DEFINES(element)                                                                               \
    KI_DEFINES("-DENDS -DSIDE=32 -DBS=%d -DCHUNK=32 -DW=1 -DSTAGES=1%s", FINISH, element)

/* Holds what the kernels are built with. Tiles of tensor cores are 32 x 32 a warp, of which a lone one is
 * shared by eight. */
struct shape {
    int side, group, chunk, stages;
    bool tensor;
};

/* The shape is the one that makes the fewest multiplications of so many columns. */
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

enum { WALK_DEFINES = 128 };

/* One walk is launched with these: the kernel, and what the next one needs to know of its partial sums. */
struct walk {
    const struct ki_gram *gram;
    kiln_device *device;
    int64_t k, size, strips, pairs, splits;
    struct shape shape;
    struct ki_kernel *kernel;
    int64_t local; /* bytes of on-chip memory that a group of warps on their own is given */
    char finish[WALK_DEFINES];
};

/* Says how gram_narrow.cl lays out its memory: NARROW is its SIDE, STAGES goes along with its build, the
 * others are its constants. */
enum { NARROW = 32, WARPS = 8, ROWS = 32, STAGES = 2 };

static bool is_narrow(const struct walk *walk) {
    return walk->size <= NARROW && walk->shape.tensor && walk->device->backend->resident_with &&
           !walk->gram->X->element;
}

/* Says what the two walks are built with. */
#define NARROW_DEFINES(walk)                                                                                 \
    KI_DEFINES("-DTENSOR%s -DCOLS=%d -DK=%d -DSTAGES=%d", (walk)->gram->v ? " -DWEIGHTED" : "",              \
               (int)(walk)->gram->X->cols, (int)(walk)->k, STAGES)

static const char *tiles_defines(char text[WALK_DEFINES], const struct walk *walk) {
    const struct shape *shape = &walk->shape;
    snprintf(text, WALK_DEFINES, "-DSIDE=%d -DBS=%d -DCHUNK=%d -DW=%d -DSTAGES=%d%s%s%s", shape->side,
             shape->group, shape->chunk, ki_load_width(walk->gram->X), shape->stages,
             walk->strips == 1 ? " -DONE_STRIP" : "", shape->tensor ? " -DTENSOR" : "",
             ki_element_define(walk->gram->X));
    return text;
}

static struct walk walk_of(const struct ki_gram *gram) {
    struct walk walk = {.gram = gram, .device = gram->X->device, .k = gram->Y ? gram->Y->cols : 0};
    walk.size = gram->X->cols + walk.k + 1;
    walk.shape = shape_of(gram->X, walk.size);
    walk.strips = ki_ceil_div(walk.size, walk.shape.side);
    walk.pairs = walk.strips * (walk.strips + 1) / 2;
    return walk;
}

void ki_gram_centre_program(struct ki_programs *programs, const kiln_matrix *X) {
    ki_programs_add(programs, "gram", "gram_centre", X->type, SMALL_DEFINES(ki_element_define(X)));
}

void ki_gram_programs(struct ki_programs *programs, const kiln_matrix *X, bool weighted, int64_t targets) {
    const kiln_matrix Y = {.cols = targets};
    const struct walk walk = walk_of(&(struct ki_gram){.X = X, .v = weighted ? X : NULL, .Y = &Y});
    char defines[WALK_DEFINES];
    if (is_narrow(&walk))
        ki_programs_add(programs, "gram_narrow", "gram_narrow", X->type, NARROW_DEFINES(&walk));
    else
        ki_programs_add(programs, "gram", "gram", X->type, tiles_defines(defines, &walk));
    ki_gram_centre_program(programs, X);
}

/* A split is a group, each of which has some slices a warp. */
static kiln_status plan_narrow(struct walk *walk) {
    const kiln_matrix *X = walk->gram->X;
    const int64_t slice = ROWS * (walk->size + (walk->gram->v != NULL)) * ki_type_bytes(X->type);
    const int64_t sums = NARROW * NARROW * ki_type_bytes(X->type);
    int64_t resident;
    kiln_status status;
    TRY(ki_kernel_get(&walk->kernel, walk->device, "gram_narrow", "gram_narrow", X->type,
                      NARROW_DEFINES(walk)));
    walk->shape.group = FINISH;
    walk->local = WARPS * ki_max(STAGES * slice, sums);
    TRY(ki_kernel_resident_with(walk->device, &resident, walk->kernel, WARPS * 32, walk->local));
    walk->splits = ki_max(ki_min(resident, ki_ceil_div(X->rows, ROWS * WARPS * STAGES)), 1);
    snprintf(walk->finish, sizeof walk->finish, "%s", SMALL_DEFINES(""));
done:
    return status;
}

static kiln_status plan_tiles(struct walk *walk) {
    const kiln_matrix *X = walk->gram->X;
    const struct shape *shape = &walk->shape;
    int64_t resident;
    kiln_status status;
    TRY(ki_kernel_get(&walk->kernel, walk->device, "gram", "gram", X->type,
                      tiles_defines(walk->finish, walk)));
    TRY(ki_kernel_resident(walk->device, &resident, walk->kernel, shape->group));
    walk->splits = splits_of(shape, X->rows, walk->pairs, resident);
done:
    return status;
}

static kiln_status launch(const struct walk *walk, const struct ki_buffer *partials) {
    const struct ki_gram *gram = walk->gram;
    const kiln_matrix *X = gram->X;
    if (walk->local)
        return ki_kernel_launch(walk->device, walk->kernel, walk->splits, WARPS * 32,
                                KI_PACK_LOCAL(gram_narrow, X, walk->local, .partials = partials, .X = X,
                                              .v = gram->v, .c = gram->c, .Y = gram->Y, .d = gram->d,
                                              .rows = X->rows));
    return ki_kernel_launch(walk->device, walk->kernel, walk->pairs * walk->splits, walk->shape.group,
                            KI_PACK(gram, X, .partials = partials, .X = X, .v = gram->v, .c = gram->c,
                                    .Y = gram->Y, .d = gram->d, .rows = X->rows, .n = (int32_t)X->cols,
                                    .k = (int32_t)walk->k, .strips = (int32_t)walk->strips,
                                    .splits = (int32_t)walk->splits));
}

static kiln_status finish(const struct walk *walk, const struct ki_buffer *partials) {
    const struct ki_gram *gram = walk->gram;
    const int64_t square = walk->size * walk->size;
    const int64_t parts = walk->splits >= 4 * PARTS ? PARTS : 1;
    struct ki_buffer all = {0};
    kiln_status status;
    if (gram->all)
        TRY(ki_device_space(walk->device, 0, &all, square * ki_type_bytes(ki_wide_type(walk->device))));
    TRY(ki_kernel_run(walk->device, "gram", "gram_finish", gram->X->type, walk->finish,
                      ki_min(ki_ceil_div(square * parts, walk->shape.group), 4096), walk->shape.group,
                      KI_PACK(gram_finish, gram->X, .all = gram->all ? &all : NULL, .G = gram->G,
                              .g = gram->g, .partials = partials, .n = (int32_t)gram->X->cols,
                              .k = (int32_t)walk->k, .strips = (int32_t)walk->strips,
                              .splits = (int32_t)walk->splits, .parts = (int32_t)parts)));
    if (gram->all) TRY(ki_download_wide(gram->all, walk->device, &all, 0, square));
done:
    return status;
}

kiln_status ki_gram_gpu(const struct ki_gram *gram) {
    kiln_status status;
    const kiln_matrix *X = gram->X;
    struct walk walk = walk_of(gram);
    struct ki_buffer partials;
    int64_t tile, bytes, square;
    if (!ki_mul3(walk.pairs, walk.shape.side * walk.shape.side, ki_type_bytes(X->type), &tile) ||
        !ki_mul3(walk.size, walk.size, ki_type_bytes(ki_wide_type(X->device)), &square))
        return ki_fail(KILN_ERR_ARGUMENT, "a Gram matrix of %lld columns overflows", (long long)walk.size);
    TRY(is_narrow(&walk) ? plan_narrow(&walk) : plan_tiles(&walk));
    if (!ki_mul(tile, walk.splits, &bytes)) return ki_fail_nomem(SIZE_MAX, "a Gram matrix");
    TRY(ki_device_scratch(X->device, &partials, bytes));
    TRY(launch(&walk, &partials));
    TRY(finish(&walk, &partials));
done:
    return status;
}

kiln_status ki_gram_centre_gpu(kiln_matrix *c, const kiln_matrix *X, int sample) {
    const char *defines = SMALL_DEFINES(ki_element_define(X));
    return ki_kernel_run(
        X->device, "gram", "gram_centre", X->type, defines, ki_ceil_div(X->cols, FINISH), FINISH,
        KI_PACK(gram_centre, X, .c = c, .X = X, .rows = X->rows, .n = (int32_t)X->cols, .sample = sample));
}
