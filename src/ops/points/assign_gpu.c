/* The GPU's launches of kiln_assign: labels, then the rows sorted by them, then sums of slices of each cluster (assign.cl). */
#include "ops/points/assign.h"

#include <stdio.h>

#include "core/arguments.h"
#include "core/size.h"
#include "derived/parts.h"
#include "dialect/screen.h"
#include "ops/points/assign.cl"
#include "ops/points/assign_screen.cl"
#include "ops/points/assign_slim.cl"
#include "ops/points/assign_sums.cl"

enum { GROUP = 128, SPARSE_GROUP = 64 };
/* Sums in local memory: columns at most, elements of a tile of rows. Pieces of sorted rows: at least so long, and so many. */
enum { OWN_GROUP = 1024, OWN_COLUMNS = 64, OWN_TILE = 8192, ROWS_OF_A_PIECE = 256, PIECES_OF_A_UNIT = 32 };

KI_ARGUMENTS(assign_halves);
KI_ARGUMENTS(assign_dense);
KI_ARGUMENTS(assign_few);
KI_ARGUMENTS(screen_centres);
KI_ARGUMENTS(assign_screen);
KI_ARGUMENTS(assign_slim);
KI_ARGUMENTS(assign_two);
KI_ARGUMENTS(assign_sparse);
KI_ARGUMENTS(assign_rows);
KI_ARGUMENTS(assign_bounds);
KI_ARGUMENTS(assign_own);
KI_ARGUMENTS(assign_pieces);
KI_ARGUMENTS(assign_join);

/* The GPU's work space. */
struct space {
    const struct ki_assign *of;
    kiln_device *device;
    int64_t rows, n, k;
    const struct ki_buffer *row_start, *col;  /* NULL: X is dense */
    struct ki_buffer half, state, transposed; /* of the centres; transposed for a sparse X */
    struct ki_sort data, other;               /* key: each row's centre; payload: the row */
    struct ki_buffer narrow, scales, lost;    /* of the centres, as halves (assign_screen.cl) */
    struct ki_buffer start, partial, totals;  /* of the clusters */
};

static void drop(struct space *s) {
    struct ki_buffer *const all[] = {&s->half, &s->state, &s->transposed, &s->narrow, &s->scales,
                                     &s->lost, &s->start, &s->partial,    &s->totals};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ki_device_release(s->device, all[i]);
    ki_sort_drop(s->device, &s->data);
    ki_sort_drop(s->device, &s->other);
}

static kiln_status launch_rows(const struct space *s, const char *file, const char *function,
                               const char *defines, int64_t count, int group, const struct ki_arg *args,
                               int args_count) {
    struct ki_kernel *kernel;
    kiln_status status;
    TRY(ki_kernel_get(&kernel, s->device, file, function, s->of->X->type, defines));
    TRY(ki_kernel_launch(s->device, kernel,
                         ki_min(ki_ceil_div(count, group), (int64_t)s->device->properties.compute_units * 32),
                         group, args, args_count));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ labels */

/* Half norms, and whether any square is too large for f32. */
static kiln_status prepare(struct space *s) {
    static const int32_t none[3];
    const kiln_type type = s->of->X->type;
    kiln_status status;
    TRY(ki_device_alloc(s->device, &s->half, s->k * ki_type_bytes(type)));
    TRY(ki_device_alloc(s->device, &s->state, sizeof none));
    if (s->col) TRY(ki_device_alloc(s->device, &s->transposed, s->k * s->n * ki_type_bytes(type)));
    TRY(ki_device_alloc(s->device, &s->data.key, s->rows * 4));
    TRY(ki_device_upload(s->device, &s->state, 0, none, sizeof none));
    TRY(launch_rows(s, "assign", "assign_halves", "-DPREPARE", s->k, 64,
                    KI_PACK(assign_halves, s->of->C, .halves = &s->half, .state = &s->state, .C = s->of->C,
                            .transposed = s->col ? &s->transposed : NULL, .k = (int32_t)s->k,
                            .n = (int32_t)s->n)));
done:
    return status;
}

static kiln_status launch_tiles(struct space *s, bool again) {
    const struct ki_assign *of = s->of;
    const bool large = s->device->properties.is_gpu && of->X->type == KILN_F32 && !again;
    const int each = large ? 8 : 4, across = s->device->properties.is_gpu ? 16 : 8;
    struct ki_kernel *kernel;
    int64_t groups;
    char defines[96];
    kiln_status status;
    snprintf(defines, sizeof defines, "-DDENSE%s -DTR=%d -DTC=%d -DGR=%d -DGC=%d -DSLAB=8",
             again ? " -DAGAIN" : "", each, each, across, across);
    TRY(ki_kernel_get(&kernel, s->device, "assign", "assign_dense", of->X->type, defines));
    TRY(ki_kernel_resident(s->device, &groups, kernel, across * across));
    TRY(ki_kernel_launch(
        s->device, kernel, ki_min(groups, ki_ceil_div(s->rows, each * across)), across * across,
        KI_PACK(assign_dense, of->X, .found = &s->data.key, .doubtful = &s->other.key,
                .limits = &s->other.payload, .state = &s->state, .X = of->X, .C = of->C, .halves = &s->half,
                .rows = s->rows, .n = (int32_t)s->n, .k = (int32_t)s->k)));
done:
    return status;
}

/* Columns that a thread has room for, and bytes of its rows, in registers; bytes of the centres in local memory; columns from
 * which on fewer centres make a chunk. */
enum { FEW_COLUMNS = 32, FEW_BYTES = 256, FEW_ROWS = 8, FEW_GROUP = 128, FEW_CENTRES = 13312, FEW_WIDE = 16 };

struct few {
    int rows, chunk, slab; /* of a thread; centres compared, and in local memory, at once */
};

/* Whether columns are few: the most rows for which there are registers and local memory. */
static bool few_fits(struct few *to, const struct space *s) {
    const int64_t size = ki_type_bytes(s->of->X->type), width = ki_ceil_div(s->n, 4) * 4;
    if (s->n < 1 || s->n > FEW_COLUMNS) return false;
    to->chunk = s->n < FEW_WIDE ? 8 : 4;
    to->slab = (int)(FEW_CENTRES / size / width / to->chunk * to->chunk);
    const int64_t room = s->device->properties.local_bytes - to->slab * (width + 1) * size;
    const int64_t rows = ki_min(FEW_BYTES / (s->n * size), room / (FEW_GROUP * (s->n | 1) * size));
    to->rows = (int)ki_min(rows, FEW_ROWS);
    return to->rows >= 1;
}

static kiln_status launch_few(struct space *s, const struct few *few) {
    const struct ki_assign *of = s->of;
    struct ki_kernel *kernel;
    int64_t groups;
    char defines[112];
    kiln_status status;
    snprintf(defines, sizeof defines, "-DFEW -DCOLS=%d -DROWS=%d -DCHUNK=%d -DSLAB=%d -DGROUP=%d", (int)s->n,
             few->rows, few->chunk, few->slab, FEW_GROUP);
    TRY(ki_kernel_get(&kernel, s->device, "assign", "assign_few", of->X->type, defines));
    TRY(ki_kernel_resident(s->device, &groups, kernel, FEW_GROUP));
    TRY(ki_kernel_launch(s->device, kernel,
                         ki_min(groups, ki_ceil_div(s->rows, (int64_t)few->rows * FEW_GROUP)), FEW_GROUP,
                         KI_PACK(assign_few, of->X, .found = &s->data.key, .doubtful = &s->other.key,
                                 .limits = &s->other.payload, .state = &s->state, .X = of->X, .C = of->C,
                                 .halves = &s->half, .rows = s->rows, .k = (int32_t)s->k)));
done:
    return status;
}

/* How assign_screen.cl lays out its memory: the constants of the same names; what it declares beside the ring. */
enum { BM = 96, BK = 32, SCREEN_GROUP = 256, SCREEN_CENTRES = 64, SCREEN_DECLARED = 9 << 10 };

/* Whether there are tensor cores for halves, and local memory that the launch gives. */
static bool has_halves(const struct space *s) {
    return s->of->X->type == KILN_F32 && s->device->properties.architecture >= 80 &&
           s->device->backend->resident_with;
}

struct screen {
    int depth, stages, bn;
    int64_t bytes;
};

/* Whether tensor cores help, and how: as many centres at a time, and slabs on their way, as there is memory for. */
static bool screen_fits(struct screen *to, const struct space *s) {
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
static kiln_status launch_two(struct space *s) {
    const struct ki_assign *of = s->of;
    return launch_rows(s, "assign_screen", "assign_two", "-DSCREEN -DTWO", s->rows * 2, SCREEN_GROUP,
                       KI_PACK(assign_two, of->X, .found = &s->data.key, .doubtful = &s->other.key,
                               .limits = &s->other.payload, .state = &s->state, .X = of->X, .C = of->C,
                               .rows = s->rows, .n = (int32_t)s->n));
}

enum { SLIM_LEAST = 9, SLIM_COLUMNS = 64, SLIM_CENTRES = 32, SLIM_DECLARED = 1 << 10 };

/* Whether tensor cores go through centres that all are in local memory: the bytes that these take, or 0. */
static int64_t slim_bytes(const struct space *s) {
    const struct ki_properties *properties = &s->device->properties;
    const int64_t depth = ki_ceil_div(s->n, 32) * 32, padded = ki_ceil_div(s->k, 32) * 32;
    const int64_t bytes = padded * (depth * 2 + 4);
    const bool suits = has_halves(s) && s->n >= SLIM_LEAST && s->n <= SLIM_COLUMNS && s->k >= SLIM_CENTRES;
    return suits && bytes <= properties->local_max / 2 - SLIM_DECLARED ? bytes : 0;
}

static kiln_status launch_slim(struct space *s, int64_t bytes) {
    const struct ki_assign *of = s->of;
    const struct ki_buffer *X = &of->X->values;
    const bool aligned = s->n % 32 == 0 && X->handle % 16 == 0 && X->offset % 16 == 0;
    struct ki_arg args[assign_slim_count + 1];
    struct ki_kernel *kernel;
    int64_t groups;
    char defines[80];
    kiln_status status;
    snprintf(defines, sizeof defines, "-DSCREEN -DCOLS=%d -DRING_BYTES=%d%s", (int)s->n, (int)bytes,
             aligned ? " -DALIGNED" : "");
    assign_slim_pack(args, of->X,
                     &(struct assign_slim_arguments){.found = &s->data.key,
                                                     .doubtful = &s->other.key,
                                                     .limits = &s->other.payload,
                                                     .state = &s->state,
                                                     .X = of->X,
                                                     .C = of->C,
                                                     .halves = &s->half,
                                                     .rows = s->rows,
                                                     .k = (int32_t)s->k});
    args[assign_slim_count] = ki_arg_local(bytes);
    TRY(ki_kernel_get(&kernel, s->device, "assign_slim", "assign_slim", of->X->type, defines));
    TRY(ki_kernel_resident_with(s->device, &groups, kernel, SCREEN_GROUP, bytes));
    TRY(ki_kernel_launch(s->device, kernel, ki_min(groups, ki_ceil_div(s->rows, SCREEN_GROUP)), SCREEN_GROUP,
                         args, assign_slim_count + 1));
    TRY(launch_two(s));
done:
    return status;
}

static kiln_status launch_screened(struct space *s, const struct screen *screen, const char *defines) {
    const struct ki_assign *of = s->of;
    struct ki_arg args[assign_screen_count + 1];
    struct ki_kernel *kernel;
    int64_t groups;
    kiln_status status;
    assign_screen_pack(args, of->X,
                       &(struct assign_screen_arguments){.found = &s->data.key,
                                                         .doubtful = &s->other.key,
                                                         .limits = &s->other.payload,
                                                         .state = &s->state,
                                                         .X = of->X,
                                                         .C = of->C,
                                                         .narrow = &s->narrow,
                                                         .scales = &s->scales,
                                                         .lost = &s->lost,
                                                         .rows = s->rows,
                                                         .n = (int32_t)s->n,
                                                         .k = (int32_t)s->k});
    args[assign_screen_count] = ki_arg_local(screen->bytes);
    TRY(ki_kernel_get(&kernel, s->device, "assign_screen", "assign_screen", of->X->type, defines));
    TRY(ki_kernel_resident_with(s->device, &groups, kernel, SCREEN_GROUP, screen->bytes));
    TRY(ki_kernel_launch(s->device, kernel, ki_min(groups, ki_ceil_div(s->rows, BM)), SCREEN_GROUP, args,
                         assign_screen_count + 1));
done:
    return status;
}

/* Centres as halves; one pass for all rows, one for those between two centres, one for those between more. */
static kiln_status launch_screen(struct space *s, const struct screen *screen) {
    const struct ki_assign *of = s->of;
    const int64_t padded = ki_ceil_div(s->k, screen->bn) * screen->bn;
    char defines[96], again[112], centres[64];
    kiln_status status;
    snprintf(centres, sizeof centres, "-DSCREEN -DCENTRES -DDEPTH=%d -DBN=%d", screen->depth, screen->bn);
    snprintf(defines, sizeof defines, "-DSCREEN -DWIDE -DDEPTH=%d -DBN=%d -DSTAGES=%d -DRING_BYTES=%d",
             screen->depth, screen->bn, screen->stages, (int)screen->bytes);
    snprintf(again, sizeof again, "%s -DAGAIN", defines);
    TRY(ki_device_alloc(s->device, &s->narrow, padded * screen->depth * 2));
    TRY(ki_device_alloc(s->device, &s->scales, padded * 2 * 4));
    TRY(ki_device_alloc(s->device, &s->lost, s->k * 4));
    TRY(launch_rows(s, "assign_screen", "screen_centres", centres, padded * 32, SCREEN_GROUP,
                    KI_PACK(screen_centres, of->X, .narrow = &s->narrow, .scales = &s->scales,
                            .lost = &s->lost, .C = of->C, .k = (int32_t)s->k, .n = (int32_t)s->n)));
    TRY(launch_screened(s, screen, defines));
    TRY(launch_two(s));
    TRY(launch_screened(s, screen, again));
done:
    return status;
}

static kiln_status find(struct space *s) {
    const struct ki_assign *of = s->of;
    const bool doubts = of->X->type == KILN_F32 && s->k > 1;
    kiln_status status = KILN_OK;
    if (s->col) {
        char defines[48];
        snprintf(defines, sizeof defines, "-DSPARSE -DGROUP=%d", SPARSE_GROUP);
        TRY(launch_rows(s, "assign", "assign_sparse", defines, s->rows * SPARSE_GROUP, SPARSE_GROUP,
                        KI_PACK(assign_sparse, of->X, .found = &s->data.key, .X = of->X,
                                .row_start = s->row_start, .col = s->col, .transposed = &s->transposed,
                                .C = of->C, .halves = &s->half, .state = &s->state, .rows = s->rows,
                                .n = (int32_t)s->n, .k = (int32_t)s->k)));
        goto done;
    }
    if (doubts) {
        TRY(ki_device_alloc(s->device, &s->other.key, s->rows * 4));
        TRY(ki_device_alloc(s->device, &s->other.payload, s->rows * 4));
    }
    struct screen screen;
    struct few few;
    const int64_t slim = slim_bytes(s);
    if (!slim && !few_fits(&few, s) && screen_fits(&screen, s)) {
        TRY(launch_screen(s, &screen));
        goto done;
    }
    TRY(slim ? launch_slim(s, slim) : few_fits(&few, s) ? launch_few(s, &few) : launch_tiles(s, false));
    if (doubts) TRY(launch_tiles(s, true));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- sums */

/* Rows by cluster, and where each cluster begins. */
static kiln_status sort(struct space *s) {
    int bits = 0;
    kiln_status status;
    while (bits < 31 && (int64_t)1 << bits < s->k) bits++;
    if (!s->other.key.handle) {
        TRY(ki_device_alloc(s->device, &s->other.key, s->rows * 4));
        TRY(ki_device_alloc(s->device, &s->other.payload, s->rows * 4));
    }
    TRY(ki_sort(s->device, s->of->X->type, &s->data, &s->other, s->rows, bits));
    TRY(ki_device_alloc(s->device, &s->start, (s->k + 1) * 4));
    TRY(launch_rows(s, "assign_sums", "assign_bounds", "-DBOUNDS", s->rows + 1, GROUP,
                    KI_PACK(assign_bounds, s->of->X, .start = &s->start, .key = &s->data.key,
                            .rows = (int32_t)s->rows, .k = (int32_t)s->k)));
done:
    return status;
}

/* How rows are added up: groups with sums of their own, or pieces of sorted rows. */
struct adding {
    int group, across, tile,
        shares;            /* own: threads; those for columns; rows at a time; threads for a column */
    int64_t bytes;         /* own: of local memory; 0: pieces */
    int64_t groups, piece; /* groups; rows of a piece */
};

static int power_of_two(int64_t least, int most) {
    int power = 1;
    while (power < most && power < least) power *= 2;
    return power;
}

/* Whether all sums fit into a group's local memory, twice where that is larger than what a kernel may declare. */
static bool own_fits(struct adding *to, const struct space *s) {
    const struct ki_properties *properties = &s->device->properties;
    const int64_t size = ki_type_bytes(s->of->X->type), wide = ki_type_bytes(ki_wide_type(s->device));
    if (s->col || s->n < 1 || s->n > OWN_COLUMNS) return false;
    to->group = properties->is_gpu && properties->group_max >= OWN_GROUP ? OWN_GROUP : OWN_GROUP / 4;
    to->across = power_of_two(s->n, OWN_COLUMNS);
    to->tile = (int)ki_max(ki_min(OWN_TILE / to->across, 1024), 128);
    to->shares = (int)ki_min(ki_max(to->group / to->across / s->k, 1), to->tile / 32);
    const int64_t bytes = to->shares * s->k * (2 * s->n + 1) * wide + to->tile * (s->n + 1) * size +
                          s->k * (to->tile / 32 + 1) * 4;
    to->bytes = bytes <= ki_max(properties->local_max / 2, properties->local_bytes) ? bytes : 0;
    return to->bytes > 0;
}

static kiln_status launch_own(struct space *s, struct adding *how) {
    const struct ki_assign *of = s->of;
    struct ki_kernel *kernel;
    struct ki_arg args[assign_own_count + 1];
    char defines[96];
    kiln_status status;
    snprintf(defines, sizeof defines, "-DOWN -DGROUP=%d -DCOLS=%d -DACROSS=%d -DAT_ONCE=%d", how->group,
             (int)s->n, how->across, how->tile);
    TRY(ki_kernel_get(&kernel, s->device, "assign_sums", "assign_own", of->X->type, defines));
    TRY(s->device->backend->resident_with
            ? ki_kernel_resident_with(s->device, &how->groups, kernel, how->group, how->bytes)
            : ki_kernel_resident(s->device, &how->groups, kernel, how->group));
    how->groups = ki_min(how->groups, ki_ceil_div(s->rows, how->tile));
    TRY(ki_device_alloc(s->device, &s->partial,
                        how->groups * s->k * (s->n + 2) * ki_type_bytes(ki_wide_type(s->device))));
    assign_own_pack(args, of->X,
                    &(struct assign_own_arguments){.partial = &s->partial,
                                                   .key = &s->data.key,
                                                   .X = of->X,
                                                   .C = of->C,
                                                   .weights = of->weights,
                                                   .rows = s->rows,
                                                   .k = (int32_t)s->k,
                                                   .shares = how->shares});
    args[assign_own_count] = ki_arg_local(how->bytes);
    TRY(ki_kernel_launch(s->device, kernel, how->groups, how->group, args, assign_own_count + 1));
done:
    return status;
}

/* As many pieces as keep the device busy, as long as their sums are small beside X or C. */
static kiln_status launch_pieces(struct space *s, struct adding *how) {
    const struct ki_assign *of = s->of;
    const int64_t bytes = (s->n + 2) * ki_type_bytes(ki_wide_type(s->device));
    const int64_t busy = (int64_t)s->device->properties.compute_units * PIECES_OF_A_UNIT;
    const int64_t room = ki_max(ki_matrix_bytes(of->X) / 8 / bytes, s->k);
    const int across = s->col ? 1 : power_of_two(s->n, GROUP), each = s->col || s->n <= GROUP ? 1 : 4;
    struct ki_kernel *kernel;
    char defines[96];
    kiln_status status;
    how->piece = ki_max(ki_ceil_div(s->rows, ki_max(ki_min(busy, room), 1)), ROWS_OF_A_PIECE);
    how->groups = ki_ceil_div(s->rows, how->piece);
    snprintf(defines, sizeof defines, "-DPIECES%s -DGROUP=%d -DACROSS=%d -DEACH=%d", s->col ? " -DCSR" : "",
             GROUP, across, each);
    TRY(ki_device_alloc(s->device, &s->partial, (how->groups + s->k) * bytes));
    TRY(ki_kernel_get(&kernel, s->device, "assign_sums", "assign_pieces", of->X->type, defines));
    TRY(ki_kernel_launch(s->device, kernel, how->groups, GROUP,
                         KI_PACK(assign_pieces, of->X, .partial = &s->partial, .start = &s->start,
                                 .key = &s->data.key, .order = &s->data.payload, .X = of->X,
                                 .row_start = s->row_start, .col = s->col, .C = of->C, .weights = of->weights,
                                 .rows = (int32_t)s->rows, .n = (int32_t)s->n,
                                 .piece = (int32_t)how->piece)));
done:
    return status;
}

static kiln_status add_up(struct space *s, struct adding *how) {
    const struct ki_assign *of = s->of;
    char defines[64];
    kiln_status status;
    snprintf(defines, sizeof defines, "-DJOIN -DGROUP=%d -DACROSS=%d", GROUP, power_of_two(s->n + 2, GROUP));
    TRY(how->bytes ? launch_own(s, how) : launch_pieces(s, how));
    TRY(ki_device_alloc(s->device, &s->totals, s->k * 2 * ki_type_bytes(ki_wide_type(s->device))));
    TRY(launch_rows(s, "assign_sums", "assign_join", defines, s->k * GROUP, GROUP,
                    KI_PACK(assign_join, of->X, .sums = of->sums, .totals = &s->totals,
                            .partial = &s->partial, .start = how->bytes ? NULL : &s->start,
                            .n = (int32_t)s->n, .k = (int32_t)s->k, .groups = (int32_t)how->groups,
                            .piece = (int32_t)how->piece)));
done:
    return status;
}

static kiln_status bring_totals(const struct space *s) {
    const struct ki_assign *of = s->of;
    const bool wide = ki_wide_type(s->device) == KILN_F64;
    const int64_t count = 2 * s->k, bytes = count * (wide ? 8 : 4);
    kiln_status status = ki_device_download(s->device, of->totals, &s->totals, 0, bytes);
    if (status != KILN_OK || wide) return status;
    const float *narrow = (const float *)(const void *)of->totals;
    for (int64_t i = count - 1; i >= 0; i--) of->totals[i] = (double)narrow[i];
    return status;
}

/* X and its buffers are on the device. */
kiln_status ki_assign_gpu(const struct ki_assign *of) {
    const kiln_matrix *X = of->X;
    const bool sparse = X->format == KILN_CSR, sums = of->sums || of->totals;
    struct space s = {.of = of, .device = X->device, .rows = X->rows, .n = X->cols, .k = of->C->rows};
    struct adding how = {0};
    kiln_status status;
    if (X->rows >= INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT, "kiln_assign: X has %lld rows, but a GPU takes at most %d",
                       (long long)X->rows, INT32_MAX - 1);
    if (sparse) s.row_start = &X->row_start, s.col = &X->col;
    const bool sorted = sums && !own_fits(&how, &s);
    TRY(prepare(&s));
    TRY(find(&s));
    if (sorted) TRY(ki_device_alloc(s.device, &s.data.payload, s.rows * 4));
    if (of->labels || of->distances || sorted)
        TRY(launch_rows(&s, "assign", "assign_rows", "-DPREPARE", s.rows, GROUP,
                        KI_PACK(assign_rows, X, .labels = of->labels, .distances = of->distances,
                                .payload = sorted ? &s.data.payload : NULL, .found = &s.data.key, .X = X,
                                .row_start = s.row_start, .col = s.col, .C = of->C, .rows = s.rows,
                                .n = (int32_t)s.n, .first = of->first)));
    if (sorted) TRY(sort(&s));
    if (sums) TRY(add_up(&s, &how));
    if (of->totals) TRY(bring_totals(&s));
done:
    drop(&s);
    return status;
}
