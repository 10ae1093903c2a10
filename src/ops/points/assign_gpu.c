/* The GPU's launches of kiln_assign: labels by the kernel that suits, then sums (assign_sums.c). */
#include "ops/points/assign_gpu.h"

#include <stdio.h>

#include "core/arguments.h"
#include "core/group/group.h"
#include "core/size.h"
#include "derived/derived.h"
#include "dialect/screen.h"
#include "ops/points/assign.cl"
#include "ops/points/assign_screen.cl"
#include "ops/points/assign_slim.cl"
#include "ops/points/assign_split.cl"
#include "ops/points/assign_wide.cl"
#include "ops/points/bounds.h"

enum { SPARSE_GROUP = 64 };

KI_ARGUMENTS(assign_halves);
KI_ARGUMENTS(assign_dense);
KI_ARGUMENTS(assign_few);
KI_ARGUMENTS(screen_centres);
KI_ARGUMENTS(assign_screen);
KI_ARGUMENTS(assign_slim);
KI_ARGUMENTS(assign_split);
KI_ARGUMENTS(wide_centres);
KI_ARGUMENTS(assign_wide);
KI_ARGUMENTS(assign_two);
KI_ARGUMENTS(assign_sparse);
KI_ARGUMENTS(assign_rows);

static void drop(struct ki_assign_space *s) {
    struct ki_buffer *const all[] = {&s->half,   &s->state, &s->transposed, &s->narrow,
                                     &s->scales, &s->lost,  &s->slabs,      &s->share,
                                     &s->apart,  &s->start, &s->partial,    &s->totals};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ki_device_release(s->device, all[i]);
    ki_sort_drop(s->device, &s->data);
    ki_sort_drop(s->device, &s->other);
}

kiln_status ki_assign_launch(const struct ki_assign_space *s, const char *file, const char *function,
                             const char *defines, int64_t count, int group, const struct ki_arg *args,
                             int args_count) {
    const int64_t most = (int64_t)s->device->properties.compute_units * 32;
    return ki_kernel_run(s->device, file, function, s->of->X->type, defines,
                         ki_min(ki_ceil_div(count, group), most), group, args, args_count);
}

/* As many groups as run at once, with the local memory that the last argument gives if it gives any, but
 * `most` at most. */
static kiln_status launch_at_once(const struct ki_assign_space *s, const char *file, const char *function,
                                  const char *defines, int64_t most, int group, const struct ki_arg *args,
                                  int args_count) {
    const struct ki_arg *last = &args[args_count - 1];
    struct ki_kernel *kernel;
    int64_t groups;
    kiln_status status;
    TRY(ki_kernel_get(&kernel, s->device, file, function, s->of->X->type, defines));
    TRY(last->size == 0 ? ki_kernel_resident_with(s->device, &groups, kernel, group, last->as.i64)
                        : ki_kernel_resident(s->device, &groups, kernel, group));
    TRY(ki_kernel_launch(s->device, kernel, ki_min(groups, most), group, args, args_count));
done:
    return status;
}

/* Half norms, and whether any square is too large for f32. */
static kiln_status prepare(struct ki_assign_space *s) {
    static const int32_t none[3];
    const kiln_type type = s->of->X->type;
    kiln_status status;
    TRY(ki_device_alloc(s->device, &s->half, s->k * ki_type_bytes(type)));
    TRY(ki_device_alloc(s->device, &s->state, sizeof none));
    if (s->col) TRY(ki_device_alloc(s->device, &s->transposed, s->k * s->n * ki_type_bytes(type)));
    TRY(ki_device_upload(s->device, &s->state, 0, none, sizeof none));
    TRY(ki_assign_launch(s, "assign", "assign_halves", "-DPREPARE", s->k, 64,
                         KI_PACK(assign_halves, s->of->C, .halves = &s->half, .state = &s->state,
                                 .C = s->of->C, .transposed = s->col ? &s->transposed : NULL,
                                 .k = (int32_t)s->k, .n = (int32_t)s->n)));
done:
    return status;
}

static kiln_status launch_tiles(struct ki_assign_space *s, bool again) {
    const struct ki_assign *of = s->of;
    const bool large = s->device->properties.is_gpu && of->X->type == KILN_F32 && !again;
    const int each = large ? 8 : 4, across = s->device->properties.is_gpu ? 16 : 8;
    const char *defines = KI_DEFINES("-DDENSE%s -DTR=%d -DTC=%d -DGR=%d -DGC=%d -DSLAB=8",
                                     again ? " -DAGAIN" : "", each, each, across, across);
    return launch_at_once(
        s, "assign", "assign_dense", defines, ki_ceil_div(s->rows, each * across), across * across,
        KI_PACK(assign_dense, of->X, .found = &s->data.key, .doubtful = &s->other.key,
                .limits = &s->other.payload, .state = &s->state, .X = of->X, .C = of->C, .halves = &s->half,
                .rows = s->rows, .n = (int32_t)s->n, .k = (int32_t)s->k));
}

/* Columns that a thread has room for, and bytes of its rows, in registers; bytes of the centres in local
 * memory; columns from which on fewer centres make a chunk; elements behind each chunk of centres and of
 * norms. */
enum {
    FEW_COLUMNS = 32,
    FEW_BYTES = 256,
    FEW_ROWS = 8,
    FEW_GROUP = 128,
    FEW_CENTRES = 13312,
    FEW_WIDE = 16,
    FEW_GAP = 4
};

struct few {
    int rows, chunk, slab; /* of a thread; centres compared, and in local memory, at once */
};

/* Returns whether columns are few: the most rows for which there are registers and local memory. */
static bool few_fits(struct few *to, const struct ki_assign_space *s) {
    const int64_t size = ki_type_bytes(s->of->X->type), width = ki_ceil_div(s->n, 4) * 4;
    if (s->n < 1 || s->n > FEW_COLUMNS) return false;
    to->chunk = s->n < FEW_WIDE ? 8 : 4;
    to->slab = (int)(FEW_CENTRES / size / width / to->chunk * to->chunk);
    const int64_t gaps = to->slab / to->chunk * 2 * FEW_GAP;
    const int64_t room = s->device->properties.local_bytes - (to->slab * (width + 1) + gaps) * size;
    const int64_t rows = ki_min(FEW_BYTES / (s->n * size), room / (FEW_GROUP * (s->n | 1) * size));
    to->rows = (int)ki_min(rows, FEW_ROWS);
    return to->rows >= 1;
}

static kiln_status launch_few(struct ki_assign_space *s, const struct few *few) {
    const struct ki_assign *of = s->of;
    const char *defines = KI_DEFINES("-DFEW -DCOLS=%d -DROWS=%d -DCHUNK=%d -DSLAB=%d -DGROUP=%d", (int)s->n,
                                     few->rows, few->chunk, few->slab, FEW_GROUP);
    return launch_at_once(s, "assign", "assign_few", defines,
                          ki_ceil_div(s->rows, (int64_t)few->rows * FEW_GROUP), FEW_GROUP,
                          KI_PACK(assign_few, of->X, .found = &s->data.key, .doubtful = &s->other.key,
                                  .limits = &s->other.payload, .state = &s->state, .X = of->X, .C = of->C,
                                  .halves = &s->half, .rows = s->rows, .k = (int32_t)s->k));
}

/* Says how assign_screen.cl lays out its memory: the constants of the same names; what it declares beside the
 * ring. */
enum { BM = 96, BK = 32, SCREEN_GROUP = 256, SCREEN_CENTRES = 64, SCREEN_DECLARED = 9 << 10 };

/* Returns whether there are tensor cores for halves, and local memory that the launch gives. */
static bool has_halves(const struct ki_assign_space *s) {
    return s->of->X->type == KILN_F32 && s->device->properties.architecture >= 80 &&
           s->device->backend->resident_with;
}

struct screen {
    int depth, stages, bn;
    int64_t bytes;
};

/* Returns whether tensor cores help, and how: as many centres at a time, and slabs on their way, as there is
 * memory for. */
static bool screen_fits(struct screen *to, const struct ki_assign_space *s) {
    const struct ki_properties *properties = &s->device->properties;
    if (!has_halves(s) || s->k < SCREEN_CENTRES) return false;
    to->depth = (int)ki_ceil_div(s->n, BK) * BK;
    for (to->bn = s->k > 128 ? 256 : 128; to->bn >= 128; to->bn /= 2)
        for (to->stages = 4; to->stages >= 2; to->stages--) {
            to->bytes = (int64_t)BM * (to->depth + 8) * 2 + (int64_t)to->stages * to->bn * BK * 2;
            if (to->bytes + SCREEN_DECLARED <= properties->local_max) return true;
        }
    return false;
}

/* Rows that screening leaves between two centres. */
static kiln_status launch_two(struct ki_assign_space *s) {
    const struct ki_assign *of = s->of;
    return ki_assign_launch(s, "assign_screen", "assign_two", "-DSCREEN -DTWO", s->rows * 2, SCREEN_GROUP,
                            KI_PACK(assign_two, of->X, .found = &s->data.key, .doubtful = &s->other.key,
                                    .limits = &s->other.payload, .state = &s->state, .X = of->X, .C = of->C,
                                    .rows = s->rows, .n = (int32_t)s->n));
}

enum { SLIM_LEAST = 9, SLIM_COLUMNS = 64, SLIM_CENTRES = 32, SLIM_DECLARED = 27 << 10, SLIM_TILES = 16 };

/* Says how assign_slim.cl goes through the centres: eights at a time, how many in all, bytes of local memory
 * (0: it does not suit). */
struct slim {
    int tiles;
    int64_t padded, bytes;
};

static bool slim_fits(struct slim *to, const struct ki_assign_space *s) {
    const struct ki_properties *properties = &s->device->properties;
    const int64_t depth = ki_ceil_div(s->n, 32) * 32;
    if (s->col || !has_halves(s) || s->n < SLIM_LEAST || s->n > SLIM_COLUMNS || s->k < SLIM_CENTRES)
        return false;
    to->tiles = (int)ki_min(ki_ceil_div(s->k, 8), SLIM_TILES);
    to->padded = ki_ceil_div(s->k, to->tiles * 8) * to->tiles * 8;
    to->bytes = to->padded * (depth * 2 + 8);
    return to->bytes <= properties->local_max / 2 - SLIM_DECLARED;
}

static kiln_status launch_slim(struct ki_assign_space *s, const struct slim *slim) {
    const struct ki_assign *of = s->of;
    const struct ki_buffer *X = &of->X->values;
    const bool aligned = s->n % 32 == 0 && X->handle % 16 == 0 && X->offset % 16 == 0;
    const char *defines =
        KI_DEFINES("-DSCREEN -DCOLS=%d -DTILES=%d%s%s", (int)s->n, slim->tiles,
                   slim->padded == slim->tiles * 8 ? " -DONE_BLOCK" : "", aligned ? " -DALIGNED" : "");
    return launch_at_once(s, "assign_slim", "assign_slim", defines, ki_ceil_div(s->rows, SCREEN_GROUP / 2),
                          SCREEN_GROUP,
                          KI_PACK_LOCAL(assign_slim, of->X, slim->bytes, .found = &s->data.key,
                                        .apart = s->apart.handle ? &s->apart : NULL, .state = &s->state,
                                        .X = of->X, .C = of->C, .rows = s->rows, .k = (int32_t)s->k));
}

/* Says how assign_split.cl lays out its memory: bytes of 32 centres, and what it declares. */
enum { SPLIT_COLUMNS = 4, SPLIT_CENTRES = 32, SPLIT_RECORD = 420 * 4, SPLIT_DECLARED = 30 << 10 };

/* Bytes of local memory for all centres; 0: it does not suit. */
static int64_t split_bytes(const struct ki_assign_space *s) {
    const int64_t bytes = ki_ceil_div(s->k, SPLIT_CENTRES) * SPLIT_RECORD;
    if (s->col || !has_halves(s) || s->n < 1 || s->n > SPLIT_COLUMNS || s->k < SPLIT_CENTRES) return 0;
    return bytes <= s->device->properties.local_max / 2 - SPLIT_DECLARED ? bytes : 0;
}

static kiln_status launch_split(struct ki_assign_space *s, int64_t bytes) {
    const struct ki_assign *of = s->of;
    const char *defines = KI_DEFINES("-DSCREEN -DCOLS=%d", (int)s->n);
    return launch_at_once(s, "assign_split", "assign_split", defines, ki_ceil_div(s->rows, SCREEN_GROUP),
                          SCREEN_GROUP,
                          KI_PACK_LOCAL(assign_split, of->X, bytes, .found = &s->data.key, .state = &s->state,
                                        .X = of->X, .C = of->C, .rows = s->rows, .k = (int32_t)s->k));
}

static kiln_status launch_screened(struct ki_assign_space *s, const struct screen *screen,
                                   const char *defines) {
    const struct ki_assign *of = s->of;
    return launch_at_once(
        s, "assign_screen", "assign_screen", defines, ki_ceil_div(s->rows, BM), SCREEN_GROUP,
        KI_PACK_LOCAL(assign_screen, of->X, screen->bytes, .found = &s->data.key, .doubtful = &s->other.key,
                      .limits = &s->other.payload, .state = &s->state, .X = of->X, .C = of->C,
                      .narrow = &s->narrow, .scales = &s->scales, .lost = &s->lost, .rows = s->rows,
                      .n = (int32_t)s->n, .k = (int32_t)s->k));
}

enum { WIDE_COLUMNS = 128, WIDE_GROUP = 128, WIDE_SLAB = 32, WIDE_STAGES = 4 };

/* The first pass over rows whose halves fit into registers. */
static kiln_status launch_wide(struct ki_assign_space *s) {
    const struct ki_assign *of = s->of;
    const struct ki_buffer *X = &of->X->values;
    const bool aligned = s->n % 32 == 0 && X->handle % 16 == 0 && X->offset % 16 == 0;
    const int64_t slab = WIDE_SLAB * (ki_ceil_div(s->n, 32) * 32 * 2 + 8),
                  slabs = ki_ceil_div(s->k, WIDE_SLAB);
    kiln_status status;
    const char *defines =
        KI_DEFINES("-DSCREEN -DCOLS=%d -DSTAGES=%d%s", (int)s->n, WIDE_STAGES, aligned ? " -DALIGNED" : "");
    const char *centres = KI_DEFINES("-DCENTRES %s", defines);
    TRY(ki_device_alloc(s->device, &s->slabs, slabs * slab));
    TRY(ki_device_alloc(s->device, &s->share, (s->k + 1) * 4));
    TRY(ki_kernel_run(s->device, "assign_wide", "wide_centres", of->X->type, centres, slabs, WIDE_GROUP,
                      KI_PACK(wide_centres, of->X, .slabs = &s->slabs, .share = &s->share,
                              .scales = &s->scales, .C = of->C, .k = (int32_t)s->k)));
    TRY(launch_at_once(s, "assign_wide", "assign_wide", defines, ki_ceil_div(s->rows, WIDE_GROUP), WIDE_GROUP,
                       KI_PACK_LOCAL(assign_wide, of->X, slab * WIDE_STAGES, .found = &s->data.key,
                                     .doubtful = &s->other.key, .limits = &s->other.payload,
                                     .state = &s->state, .X = of->X, .C = of->C, .slabs = &s->slabs,
                                     .share = &s->share, .rows = s->rows, .k = (int32_t)s->k)));
done:
    return status;
}

/* Centres as halves; one pass for all rows, one for those between two centres, one for those between more. */
static kiln_status launch_screen(struct ki_assign_space *s, const struct screen *screen) {
    const struct ki_assign *of = s->of;
    const int64_t padded = ki_ceil_div(s->k, screen->bn) * screen->bn;
    kiln_status status;
    const char *centres = KI_DEFINES("-DSCREEN -DCENTRES -DDEPTH=%d -DBN=%d", screen->depth, screen->bn);
    const char *defines = KI_DEFINES("-DSCREEN -DWIDE -DDEPTH=%d -DBN=%d -DSTAGES=%d", screen->depth,
                                     screen->bn, screen->stages);
    const char *again = KI_DEFINES("%s -DAGAIN", defines);
    TRY(ki_device_alloc(s->device, &s->narrow, padded * screen->depth * 2));
    TRY(ki_device_alloc(s->device, &s->scales, padded * 2 * 4));
    TRY(ki_device_alloc(s->device, &s->lost, s->k * 4));
    TRY(ki_assign_launch(s, "assign_screen", "screen_centres", centres, padded * 32, SCREEN_GROUP,
                         KI_PACK(screen_centres, of->X, .narrow = &s->narrow, .scales = &s->scales,
                                 .lost = &s->lost, .C = of->C, .k = (int32_t)s->k, .n = (int32_t)s->n)));
    if (s->n <= WIDE_COLUMNS) {
        TRY(launch_wide(s));
    } else {
        TRY(launch_screened(s, screen, defines));
        TRY(launch_two(s));
    }
    TRY(launch_screened(s, screen, again));
done:
    return status;
}

/* s->data.key: one centre is the nearest without a look at X. */
static kiln_status find(struct ki_assign_space *s) {
    const struct ki_assign *of = s->of;
    kiln_status status;
    TRY(ki_device_alloc(s->device, &s->data.key, s->rows * 4));
    if (s->k == 1) return ki_derived_fill(s->device, &s->data.key, s->rows, 0);
    TRY(prepare(s));
    if (s->col) {
        char defines[48];
        snprintf(defines, sizeof defines, "-DSPARSE -DGROUP=%d", SPARSE_GROUP);
        TRY(ki_assign_launch(s, "assign", "assign_sparse", defines, s->rows * SPARSE_GROUP, SPARSE_GROUP,
                             KI_PACK(assign_sparse, of->X, .found = &s->data.key, .X = of->X,
                                     .row_start = s->row_start, .col = s->col, .transposed = &s->transposed,
                                     .C = of->C, .halves = &s->half, .state = &s->state, .rows = s->rows,
                                     .n = (int32_t)s->n, .k = (int32_t)s->k)));
        goto done;
    }
    struct slim slim;
    if (slim_fits(&slim, s)) {
        TRY(launch_slim(s, &slim));
        goto done;
    }
    const int64_t split = split_bytes(s);
    if (split > 0) {
        TRY(launch_split(s, split));
        goto done;
    }
    TRY(ki_device_alloc(s->device, &s->other.key, s->rows * 4));
    TRY(ki_device_alloc(s->device, &s->other.payload, s->rows * ki_type_bytes(of->X->type)));
    struct screen screen;
    struct few few;
    if (!few_fits(&few, s) && screen_fits(&screen, s)) {
        TRY(launch_screen(s, &screen));
        goto done;
    }
    TRY(few_fits(&few, s) ? launch_few(s, &few) : launch_tiles(s, false));
    TRY(launch_tiles(s, true));
done:
    return status;
}

/* Finds what the caller wants of each row, and the rows' numbers where they are sorted. Distances of rows of
 * ROW_COLUMNS are read by ROW_THREADS side by side: by one each, neighbours would read places that lie a row
 * apart. */
static kiln_status launch_rows(struct ki_assign_space *s, bool sorted) {
    enum { ROW_COLUMNS = 16, ROW_THREADS = 8 };
    const struct ki_assign *of = s->of;
    const int across = of->distances && !s->col && s->n >= ROW_COLUMNS ? ROW_THREADS : 1;
    const char *defines = KI_DEFINES("-DWANTED -DACROSS=%d", across);
    return ki_assign_launch(s, "assign", "assign_rows", defines, s->rows * across, KI_ASSIGN_GROUP,
                            KI_PACK(assign_rows, of->X, .labels = of->labels, .distances = of->distances,
                                    .payload = sorted ? &s->data.payload : NULL, .found = &s->data.key,
                                    .X = of->X, .row_start = s->row_start, .col = s->col, .C = of->C,
                                    .rows = s->rows, .n = (int32_t)s->n, .first = of->first));
}

/* Labels for the next pass, where they are not kept already; a sort would take them away. */
static kiln_status keep_labels(const struct ki_assign_space *s) {
    kiln_bounds *b = s->of->bounds;
    if (!b || s->corrects) return KILN_OK;
    return ki_device_copy(s->device, s->device, &b->kept, 0, s->device, &s->data.key, 0, s->rows * 4);
}

/* X and its buffers are on the device. */
kiln_status ki_assign_gpu(const struct ki_assign *of) {
    const kiln_matrix *X = of->X;
    const bool sparse = X->format == KILN_CSR, sums = of->sums || of->totals;
    struct ki_assign_space s = {
        .of = of, .device = X->device, .rows = X->rows, .entries = X->rows, .n = X->cols, .k = of->C->rows};
    struct ki_assign_sums how = {0};
    struct slim slim;
    kiln_status status;
    if (X->rows >= INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT, "kiln_assign: X has %lld rows, but a GPU takes at most %d",
                       (long long)X->rows, INT32_MAX - 1);
    if (sparse) s.row_start = &X->row_start, s.col = &X->col;
    s.measured = slim_fits(&slim, &s) && !ki_assign_corrects(of);
    if (sums) ki_assign_plan(&how, &s);
    if (how.lines > 0) TRY(ki_device_alloc(s.device, &s.apart, s.rows * ki_type_bytes(X->type)));
    TRY(find(&s));
    if (of->bounds) TRY(ki_assign_look(&s));
    TRY(keep_labels(&s));
    if (s.corrects) {
        s.measured = false;
        ki_assign_plan(&how, &s);
    }
    const bool sorted = sums && ki_assign_sorts(&how) && !s.corrects;
    if (sorted) TRY(ki_device_alloc(s.device, &s.data.payload, s.rows * 4));
    if (of->labels || of->distances || sorted) TRY(launch_rows(&s, sorted));
    if (sums) TRY(ki_assign_add_up(&s, &how));
    if (of->bounds) of->bounds->fresh = false;
done:
    /* A pass that failed has left nothing behind that is of use to the next. */
    if (of->bounds) of->bounds->known = status == KILN_OK;
    drop(&s);
    return status;
}
