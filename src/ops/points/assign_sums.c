/* The second half of kiln_assign on GPUs: what the rows of each centre add up to, by groups or lines of
 * threads with sums of their own where local memory has room for them, or by pieces of rows in the order of
 * their labels (assign_sums.cl). */
#include "core/arguments.h"
#include "core/size.h"
#include "ops/points/assign_gpu.h"
#include "ops/points/assign_sums.cl"
#include "ops/points/bounds.h"
#include "pass/combine.h"

/* Sums in local memory: columns at most, elements of a tile of rows, and rows. Pieces of sorted rows: at
 * least so long, and so many. */
enum { OWN_GROUP = 1024, OWN_COLUMNS = 64, OWN_TILE = 8192, OWN_MOST = 1024, OWN_LEAST = 128 };
enum { ROWS_OF_A_PIECE = 256, PIECES_OF_A_UNIT = 32 };
/* Lines: threads of a group at most, lines at least, rows on their way to a line. */
enum { LINES_GROUP = 512, LINES_LEAST = 4, AHEAD = 16 };

KI_ARGUMENTS(assign_bounds);
KI_ARGUMENTS(assign_own);
KI_ARGUMENTS(assign_lines);
KI_ARGUMENTS(assign_pieces);
KI_ARGUMENTS(assign_join);

/* Rows by cluster, and where each cluster begins. */
static kiln_status sort(struct ki_assign_space *s) {
    int bits = 0;
    kiln_status status;
    while (bits < 31 && (int64_t)1 << bits < s->k) bits++;
    if (!s->other.key.handle) {
        TRY(ki_device_alloc(s->device, &s->other.key, s->entries * 4));
        TRY(ki_device_alloc(s->device, &s->other.payload, s->entries * 4));
    }
    TRY(ki_sort(s->device, s->of->X->type, &s->data, &s->other, s->entries, bits));
    TRY(ki_device_alloc(s->device, &s->start, (s->k + 1) * 4));
    TRY(ki_assign_launch(s, "assign_sums", "assign_bounds", "-DBOUNDS", s->entries + 1, KI_ASSIGN_GROUP,
                         KI_PACK(assign_bounds, s->of->X, .start = &s->start, .key = &s->data.key,
                                 .rows = (int32_t)s->entries, .k = (int32_t)s->k)));
done:
    return status;
}

static int power_of_two(int64_t least, int most) {
    int power = 1;
    while (power < most && power < least) power *= 2;
    return power;
}

/* Returns whether all sums fit into a group's local memory, twice where that is larger than what a kernel may
 * declare: with as many rows at a time as leave room for them. */
static bool own_fits(struct ki_assign_sums *to, const struct ki_assign_space *s) {
    const struct ki_properties *properties = &s->device->properties;
    const int64_t size = ki_type_bytes(s->of->X->type), wide = ki_type_bytes(ki_wide_type(s->device));
    const int64_t room =
        ki_max(properties->local_max / 2, ki_min(properties->local_bytes, properties->local_max));
    if (s->col || s->n < 1 || s->n > OWN_COLUMNS) return false;
    to->group = properties->is_gpu && properties->group_max >= OWN_GROUP ? OWN_GROUP : OWN_GROUP / 4;
    to->across = power_of_two(s->n, OWN_COLUMNS);
    for (to->tile = (int)ki_max(ki_min(OWN_TILE / to->across, OWN_MOST), OWN_LEAST); to->tile >= OWN_LEAST;
         to->tile /= 2) {
        to->shares = (int)ki_min(ki_max(to->group / to->across / s->k, 1), to->tile / 32);
        to->bytes = to->shares * s->k * (2 * s->n + 1) * wide + to->tile * (s->n + 1) * size +
                    s->k * (to->tile / 32 + 1) * 4;
        if (to->bytes <= room) return true;
    }
    return false;
}

/* Returns whether there is room for sums of enough lines, where labels come with distances. */
static bool lines_fit(struct ki_assign_sums *to, const struct ki_assign_space *s) {
    if (!s->measured || !s->device->backend->resident_with) return false;
    const int64_t line = s->k * (s->n + 2) * ki_type_bytes(ki_wide_type(s->device));
    to->across = power_of_two(s->n + 2, 2 * OWN_COLUMNS);
    to->lines = (int)ki_min(s->device->properties.local_max / line, LINES_GROUP / to->across);
    to->group = to->lines * to->across;
    to->bytes = to->lines * line;
    return to->lines >= LINES_LEAST;
}

void ki_assign_plan(struct ki_assign_sums *to, const struct ki_assign_space *s) {
    *to = (struct ki_assign_sums){0};
    if (lines_fit(to, s)) return;
    *to = (struct ki_assign_sums){0};
    if (!own_fits(to, s)) to->bytes = 0;
}

bool ki_assign_sorts(const struct ki_assign_sums *how) {
    return how->bytes == 0;
}

/* A kernel whose groups have sums of their own in local memory, `rows` rows at a time: as many of them as run
 * at once, and room for what they leave. */
static kiln_status prepare(struct ki_kernel **kernel, struct ki_assign_space *s, struct ki_assign_sums *how,
                           const char *function, const char *defines, int64_t rows) {
    kiln_status status;
    TRY(ki_kernel_get(kernel, s->device, "assign_sums", function, s->of->X->type, defines));
    TRY(ki_kernel_resident_with(s->device, &how->groups, *kernel, how->group, how->bytes));
    how->groups = ki_min(how->groups, ki_ceil_div(s->entries, rows));
    TRY(ki_device_alloc(s->device, &s->partial,
                        how->groups * s->k * (s->n + 2) * ki_type_bytes(ki_wide_type(s->device))));
done:
    return status;
}

static kiln_status launch_lines(struct ki_assign_space *s, struct ki_assign_sums *how) {
    const struct ki_assign *of = s->of;
    struct ki_kernel *kernel;
    kiln_status status;
    const char *defines =
        KI_DEFINES("-DLINES%s -DGROUP=%d -DCOLS=%d -DACROSS=%d -DAHEAD=%d", of->weights ? " -DWEIGHTED" : "",
                   how->group, (int)s->n, how->across, AHEAD);
    TRY(prepare(&kernel, s, how, "assign_lines", defines, how->lines * AHEAD));
    TRY(ki_kernel_launch(s->device, kernel, how->groups, how->group,
                         KI_PACK_LOCAL(assign_lines, of->X, how->bytes, .partial = &s->partial,
                                       .key = &s->data.key, .apart = &s->apart, .X = of->X,
                                       .weights = of->weights, .rows = s->rows, .k = (int32_t)s->k)));
done:
    return status;
}

static kiln_status launch_own(struct ki_assign_space *s, struct ki_assign_sums *how) {
    const struct ki_assign *of = s->of;
    struct ki_kernel *kernel;
    kiln_status status;
    const char *defines =
        KI_DEFINES("-DOWN%s -DGROUP=%d -DCOLS=%d -DACROSS=%d -DAT_ONCE=%d", s->corrects ? " -DLISTED" : "",
                   how->group, (int)s->n, how->across, how->tile);
    TRY(prepare(&kernel, s, how, "assign_own", defines, how->tile));
    if (how->groups == 0) goto done;
    TRY(ki_kernel_launch(s->device, kernel, how->groups, how->group,
                         KI_PACK_LOCAL(assign_own, of->X, how->bytes, .partial = &s->partial,
                                       .key = &s->data.key, .order = s->corrects ? &s->data.payload : NULL,
                                       .X = of->X, .C = of->C, .weights = of->weights, .rows = s->entries,
                                       .k = (int32_t)s->k, .shares = how->shares)));
done:
    return status;
}

/* As many pieces as keep the device busy, as long as their sums are small beside X or C. */
static kiln_status launch_pieces(struct ki_assign_space *s, struct ki_assign_sums *how) {
    const struct ki_assign *of = s->of;
    const int64_t bytes = (s->n + 2) * ki_type_bytes(ki_wide_type(s->device));
    const int64_t busy = (int64_t)s->device->properties.compute_units * PIECES_OF_A_UNIT;
    const int64_t room = ki_max(ki_matrix_bytes(of->X) / 8 / bytes, s->k);
    const int across = s->col ? 1 : power_of_two(s->n, KI_ASSIGN_GROUP),
              each = s->col || s->n <= KI_ASSIGN_GROUP ? 1 : 4;
    kiln_status status;
    how->piece = ki_max(ki_ceil_div(s->entries, ki_max(ki_min(busy, room), 1)), ROWS_OF_A_PIECE);
    how->groups = ki_ceil_div(s->entries, how->piece);
    const char *defines = KI_DEFINES("-DPIECES%s -DGROUP=%d -DACROSS=%d -DEACH=%d",
                                     s->col        ? " -DCSR"
                                     : s->corrects ? " -DLISTED"
                                                   : "",
                                     KI_ASSIGN_GROUP, across, each);
    TRY(ki_device_alloc(s->device, &s->partial, (how->groups + s->k) * bytes));
    if (how->groups == 0) goto done;
    TRY(ki_kernel_run(
        s->device, "assign_sums", "assign_pieces", of->X->type, defines, how->groups, KI_ASSIGN_GROUP,
        KI_PACK(assign_pieces, of->X, .partial = &s->partial, .start = &s->start, .key = &s->data.key,
                .order = &s->data.payload, .X = of->X, .row_start = s->row_start, .col = s->col, .C = of->C,
                .weights = of->weights, .rows = (int32_t)s->entries, .n = (int32_t)s->n,
                .piece = (int32_t)how->piece)));
done:
    return status;
}

kiln_status ki_assign_add_up(struct ki_assign_space *s, struct ki_assign_sums *how) {
    const struct ki_assign *of = s->of;
    const kiln_bounds *b = of->bounds;
    const kiln_matrix *running = b ? b->running : of->wide ? *of->wide : NULL;
    kiln_status status;
    if (b) TRY(ki_assign_follow(s));
    if (ki_assign_sorts(how)) TRY(sort(s));
    const char *defines =
        KI_DEFINES("-DJOIN -DGROUP=%d -DACROSS=%d", KI_ASSIGN_GROUP, power_of_two(s->n + 2, KI_ASSIGN_GROUP));
    TRY(how->lines ? launch_lines(s, how) : how->bytes ? launch_own(s, how) : launch_pieces(s, how));
    TRY(ki_device_alloc(s->device, &s->totals, s->k * 2 * ki_type_bytes(ki_wide_type(s->device))));
    TRY(ki_assign_launch(s, "assign_sums", "assign_join", defines, s->k * KI_ASSIGN_GROUP, KI_ASSIGN_GROUP,
                         KI_PACK(assign_join, of->X, .sums = of->sums, .totals = &s->totals,
                                 .running = running ? &running->values : NULL, .partial = &s->partial,
                                 .start = how->bytes ? NULL : &s->start, .n = (int32_t)s->n,
                                 .k = (int32_t)s->k, .groups = (int32_t)how->groups,
                                 .piece = (int32_t)how->piece, .corrects = s->corrects || of->adds)));
    if (of->totals) TRY(ki_download_wide(of->totals, s->device, &s->totals, 0, 2 * s->k));
done:
    return status;
}
