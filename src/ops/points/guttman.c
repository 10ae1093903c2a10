/* A layout's stress and the step of SMACOF that lowers it: checks, and the launches.
 *
 * With POINTS a launch adds up stress in place of coordinates: that is asked for once, of the layout
 * returned. */
#include "ops/points/guttman.h"

#include "core/arguments.h"
#include "core/file.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/sized.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "ops/points/guttman.cl"
#include "pass/chain.h"
#include "pass/group.h"

enum { GROUP = 256, SHARES = 4, DIMENSIONS_MAX = 64 };

KI_ARGUMENTS(distances);
KI_ARGUMENTS(guttman);
KI_ARGUMENTS(guttman_finish);

/* A CPU reads an operand that stays in its file panel by panel. */
static bool in_panels(const kiln_matrix *A) {
    return ki_on_cpu(A->device) && A->streams && A->file;
}

/* ki_check_dense of an operand that may so lie in a file. */
static kiln_status check_large(const char *call, const char *name, const kiln_matrix *A,
                               const kiln_matrix *like, int64_t rows, int64_t cols) {
    if (A->device != like->device || !in_panels(A)) return ki_check_dense(call, name, A, like, rows, cols);
    const kiln_status status = ki_check_passed(call, name, A, like);
    if (status != KILN_OK) return status;
    if (A->format == KILN_DENSE && A->rows == rows && A->cols == cols) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: %s must be dense, %lld x %lld", call, name, (long long)rows,
                   (long long)cols);
}

/* ---- panels of points in a file ---- */

/* Some rows of points, read into memory. */
struct panel {
    const kiln_matrix *X;
    kiln_matrix *room; /* most x cols */
    kiln_matrix rows;  /* those that were read */
    int64_t most;
};

/* 1/SHARE of what there is room for, in whole vectors: two panels, and one once more by dimension. */
static kiln_status panel_new(struct panel *panel, const kiln_matrix *X) {
    enum { SHARE = 8, VECTOR_BYTES = 64 };
    const kiln_device *device = X->device;
    const int64_t one = ki_type_bytes(X->type), vector = VECTOR_BYTES / one, row = ki_max(X->cols * one, 1),
                  room = device->options.deterministic ? device->budget : ki_memory_room(device);
    panel->X = X;
    panel->most = ki_min(ki_max(room / SHARE / row / vector, 1) * vector, X->rows);
    return ki_matrix_new_held(&panel->room, X->device, X->type, panel->most, X->cols);
}

static kiln_status panel_read(struct panel *panel, int64_t first) {
    const kiln_matrix *X = panel->X;
    kiln_device_statistics *count = &X->device->statistics;
    panel->rows = *panel->room;
    panel->rows.view = true;
    panel->rows.slots = NULL;
    panel->rows.rows = ki_min(panel->most, X->rows - first);
    panel->rows.nnz = panel->rows.rows * X->cols;
    count->panels++;
    count->panel_bytes += panel->rows.nnz * ki_type_bytes(X->type);
    return ki_matrix_read(ki_host(&panel->room->values), X, KI_VALUES, first * X->cols, panel->rows.nnz);
}

/* ---- distances ---- */

static const struct ki_rule distance_rules[] = {
    {offsetof(struct ki_distances, D), KI_WRITES, {KI_ROW}},
    {offsetof(struct ki_distances, held), KI_READS, {KI_COLUMN}},
};
static const struct ki_rules distance_table = KI_RULES(struct ki_distances, X, 0, distance_rules);

/* X, or a panel of it, and all of Z. */
static kiln_status run_distances(const void *distances) {
    struct ki_distances of = *(const struct ki_distances *)distances;
    const kiln_matrix *Z = of.Z;
    struct panel panel = {0};
    kiln_status status;
    if (of.held) return ki_bodies(of.D)->distances(&of);
    TRY(panel_new(&panel, Z));
    of.Z = &panel.rows;
    for (of.first = 0; of.first < Z->rows; of.first += panel.most) {
        TRY(panel_read(&panel, of.first));
        TRY(ki_bodies(of.D)->distances(&of));
    }
    TRY(ki_file_check(Z->file));
done:
    kiln_matrix_free(panel.room);
    return status;
}

static kiln_status distances_on_cpu(kiln_matrix *D, const kiln_matrix *X, const kiln_matrix *Z) {
    const struct ki_distances of = {.D = D, .X = X, .Z = Z, .held = in_panels(Z) ? NULL : Z};
    return in_panels(X) ? ki_run_single(&(struct ki_single){
                              .rules = &distance_table, .whole = &of, .run = run_distances})
                        : run_distances(&of);
}

kiln_status kiln_distances(kiln_matrix *D, const kiln_matrix *X, const kiln_matrix *Z) {
    static const char call[] = "kiln_distances";
    kiln_status status;
    if (!D || !X || !Z) return ki_fail(KILN_ERR_ARGUMENT, "%s: D, X or Z is NULL", call);
    TRY(check_large(call, "X", X, D, D->rows, X->cols));
    TRY(check_large(call, "Z", Z, D, D->cols, X->cols));
    TRY(ki_check_dense(call, "D", D, X, X->rows, Z->rows));
    if (D == X || D == Z) return ki_fail(KILN_ERR_ARGUMENT, "%s: D must be neither X nor Z", call);
    D->given = ki_device_shares(D->device); /* it is as large as any X, and steps of SMACOF split it */
    if (D->nnz == 0) return KILN_OK;
    if (ki_on_cpu(D->device)) return distances_on_cpu(D, X, Z);
    const int64_t groups =
        ki_min(ki_ceil_div(D->nnz, GROUP), (int64_t)D->device->properties.compute_units * 64);
    TRY(ki_kernel_run(D->device, "guttman", "distances", D->type, "-DDISTANCES", groups, GROUP,
                      KI_PACK(distances, D, .D = D, .X = X, .Z = Z, .rows = D->rows, .cols = D->cols,
                              .q = (int32_t)X->cols)));
done:
    return status;
}

/* Says how the pairs are laid out on a GPU. */
struct layout {
    int side, strips, components;
    int64_t columns, rows, partial; /* bytes */
};

/* The next piece lies where any device lets a piece of a buffer begin. */
static int64_t aligned(int64_t bytes) {
    return ki_ceil_div(bytes, 512) * 512;
}

/* On-chip memory of a work-group whose tiles have `side` points: guttman.cl's arrays. */
static int64_t local_bytes(const kiln_guttman *step, int64_t side) {
    const int64_t pairs = side * (side + 1) * (step->U ? 2 : 1), points = 2 * side * step->Y->cols;
    const int64_t dimensions = step->X ? 16 * (2 * side + 1) : 0;
    return (pairs + points + dimensions + GROUP) * ki_type_bytes(step->Y->type) +
           GROUP * ki_type_bytes(ki_wide_type(step->Y->device));
}

/* Strips have copies of their own of what columns get: as many as keep the device busy, while the copies stay
 * small beside the pairs. */
static struct layout lay_out(const struct ki_guttman *pairs, bool points) {
    const kiln_guttman *step = &pairs->on;
    const kiln_device *device = step->Y->device;
    const int64_t n = step->Y->rows - pairs->place.row, p = step->Y->cols,
                  element = ki_type_bytes(step->Y->type);
    const int64_t room = ki_min(device->properties.local_bytes, 48 << 10);
    struct layout at = {.side = device->properties.is_gpu ? 64 : 32};
    while (at.side > 16 && local_bytes(step, at.side) > room) at.side /= 2;
    at.components = (int)(points ? 1 : step->U ? 2 * p : p);
    const int64_t tiles = ki_ceil_div(n, at.side), down = ki_ceil_div(pairs->place.rows, at.side),
                  busy = (int64_t)device->properties.compute_units * 8 / SHARES;
    const int64_t small = ki_max(n / (8 * at.components), 1);
    at.strips = (int)ki_max(ki_min(ki_min(ki_min(tiles / 2, down), busy), small), 1);
    at.columns = aligned(at.strips * at.components * n * element);
    at.rows = aligned(SHARES * at.components * n * element);
    at.partial = aligned((int64_t)at.strips * SHARES * KI_GUTTMAN_SUMS * ki_type_bytes(ki_wide_type(device)));
    return at;
}

/* One launch over the pairs and one that adds the copies up. */
static kiln_status launch(const struct ki_guttman *of, bool points) {
    const kiln_guttman *step = &of->on;
    kiln_status status;
    if (ki_guttman_in_blocks(of, points)) return ki_guttman_blocks(of, points);
    kiln_device *device = step->Y->device;
    const int64_t from = of->place.row, many = of->place.rows, n = step->Y->rows - from, p = step->Y->cols;
    const struct layout at = lay_out(of, points);
    struct ki_buffer space;
    struct ki_kernel *pairs, *finish;
    const char *defines = KI_DEFINES(
        "-DGUTTMAN -DSIDE=%d -DBS=%d -DSHARES=%d -DP=%d -DCOMPONENTS=%d -DOF_R=%d%s%s%s%s", at.side, GROUP,
        SHARES, (int)p, at.components, points ? 1 : (int)p, step->U && !points ? " -DWITH_U" : "",
        points ? " -DPOINTS" : "", step->weights ? " -DWEIGHTS" : "", step->X ? " -DFROM_X" : "");
    TRY(ki_kernel_get(&pairs, device, "guttman", "guttman", step->Y->type, defines));
    TRY(ki_kernel_get(&finish, device, "guttman", "guttman_finish", step->Y->type, defines));
    TRY(ki_device_scratch(device, &space, at.partial + at.columns + at.rows));
    struct ki_buffer partial = space, columns = space, rows = space;
    columns.offset += at.partial, rows.offset += at.partial + at.columns;
    /* Each ends where the next begins: NVIDIA's OpenCL crashes on views of a buffer that overlap. */
    columns.bytes = rows.offset - space.offset;
    TRY(ki_kernel_launch(device, pairs, (int64_t)at.strips * SHARES, GROUP,
                         KI_PACK(guttman, step->Y, .columns = &columns, .rows = &rows, .partial = &partial,
                                 .Y = step->Y, .D = step->D, .weights = step->weights, .X = step->X,
                                 .q = step->X ? (int32_t)step->X->cols : 0, .n = n, .many = many,
                                 .line = step->Y->rows, .from = from, .strips = at.strips)));
    const int64_t groups =
        ki_min(ki_ceil_div(n * at.components, GROUP), (int64_t)device->properties.compute_units * 32);
    TRY(ki_kernel_launch(device, finish, groups, GROUP,
                         KI_PACK(guttman_finish, step->Y, .R = points ? step->points : step->R, .U = step->U,
                                 .sums = points ? NULL : step->sums, .columns = &columns, .rows = &rows,
                                 .partial = &partial, .n = n, .many = many, .from = from,
                                 .strips = at.strips)));
done:
    return status;
}

static kiln_status check(const char *call, const kiln_guttman *step) {
    kiln_status status;
    if (!step || !step->R || !step->Y || !step->sums)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the step, or its R, Y or sums, is NULL", call);
    const kiln_matrix *Y = step->Y;
    const int64_t n = Y->rows, p = Y->cols;
    TRY(ki_check_dense(call, "Y", Y, step->R, n, p));
    if (p < 1 || p > DIMENSIONS_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: Y has %lld dimensions, but must have 1 to %d", call,
                       (long long)p, DIMENSIONS_MAX);
    TRY(ki_check_dense(call, "R", step->R, Y, n, p));
    if (!step->D == !step->X)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: either D or X must be given, the other one NULL", call);
    if (step->D) TRY(check_large(call, "D", step->D, Y, n, n));
    if (step->X) TRY(check_large(call, "X", step->X, Y, n, step->X->cols));
    if (step->weights) TRY(ki_check_dense(call, "weights", step->weights, Y, n, n));
    if (step->U) TRY(ki_check_dense(call, "U", step->U, Y, n, p));
    if (step->points) TRY(ki_check_dense(call, "points", step->points, Y, n, 1));
    const kiln_matrix *written[] = {step->R, step->U, step->points};
    TRY(ki_check_wide(call, "sums", step->sums, Y, 1, KI_GUTTMAN_SUMS));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++)
            if (written[i] && written[i] == written[j])
                return ki_fail(KILN_ERR_ARGUMENT, "%s: R, U and points must be different matrices", call);
    for (int i = 0; i < 3; i++)
        if (written[i] && (written[i] == Y || written[i] == step->D || written[i] == step->X ||
                           written[i] == step->weights))
            return ki_fail(KILN_ERR_ARGUMENT, "%s: R, U and points must not be Y, D, X or weights", call);
done:
    return status;
}

/* Each member takes the pairs of its rows, of which the first have the most: what these give to any point is
 * a part of its sum. */
static const struct ki_rule rules[] = {
    {offsetof(struct ki_guttman, on.R), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_guttman, on.U), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_guttman, on.sums), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_guttman, on.points), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_guttman, on.Y), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_guttman, on.X), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_guttman, on.weights), KI_READS, {KI_ROW}},
};
static const struct ki_rules table = {.bytes = sizeof(struct ki_guttman),
                                      .X = offsetof(struct ki_guttman, cut),
                                      .place = offsetof(struct ki_guttman, place),
                                      .count = sizeof rules / sizeof *rules,
                                      .rule = rules};

static kiln_status run_rows(const void *of) {
    struct ki_guttman pairs = *(const struct ki_guttman *)of;
    kiln_status status;
    if (pairs.on.D) pairs.on.D = pairs.cut;
    pairs.place.row += pairs.base;
    if (ki_on_cpu(pairs.on.Y->device)) return ki_bodies(pairs.on.Y)->guttman(&pairs);
    TRY(launch(&pairs, false));
    if (pairs.on.points) TRY(launch(&pairs, true));
done:
    return status;
}

/* Points in a file: a panel of rows meets those from itself on. */
static kiln_status run_panels(struct ki_guttman *pairs) {
    const kiln_matrix *X = pairs->on.X;
    const struct ki_single single = {.rules = &table, .whole = pairs, .run = run_rows};
    struct panel down = {0}, across = {0};
    struct ki_sums sums = {0};
    kiln_status status;
    TRY(panel_new(&down, X));
    across.X = X, across.most = down.most;
    TRY(ki_matrix_new_held(&across.room, X->device, X->type, down.most, X->cols));
    TRY(ki_sums_begin(&sums, &single));
    for (int64_t first = 0; first < X->rows; first += down.most) {
        TRY(panel_read(&down, first));
        for (pairs->from = first; pairs->from < X->rows; pairs->from += across.most) {
            if (pairs->from > first) TRY(panel_read(&across, pairs->from));
            pairs->columns = pairs->from > first ? &across.rows : &down.rows;
            TRY(ki_sums_add(&sums, &down.rows, first));
        }
    }
    TRY(ki_file_check(X->file));
done:
    ki_sums_end(&sums);
    kiln_matrix_free(down.room);
    kiln_matrix_free(across.room);
    return status;
}

static kiln_status run(const void *of) {
    struct ki_guttman pairs = *(const struct ki_guttman *)of;
    if (pairs.on.D && pairs.cut->nnz > 0) {
        pairs.base = pairs.place.row;
        pairs.place.row = 0;
        return ki_run_single(&(struct ki_single){.rules = &table, .whole = &pairs, .run = run_rows});
    }
    return pairs.on.X && in_panels(pairs.on.X) ? run_panels(&pairs) : run_rows(&pairs);
}

kiln_status kiln_guttman_step(const kiln_guttman *step) {
    kiln_status status;
    struct ki_guttman pairs = {.place = {.leads = true}};
    TRY(KI_TAKE(kiln_guttman, &pairs.on, step));
    TRY(check("kiln_guttman_step", &pairs.on));
    pairs.cut = pairs.on.D ? pairs.on.D : pairs.on.X;
    pairs.place.rows = pairs.on.Y->rows;
    /* Points by panels are never there as a whole, which members would copy: the first has all pairs. */
    if (!ki_is_split(pairs.cut) || pairs.cut->nnz == 0 || (!pairs.on.D && in_panels(pairs.on.X)))
        return run(&pairs);
    return ki_share(&(struct ki_shared){.rules = &table, .whole = &pairs, .cut = KI_BY_PAIRS, .run = run});
done:
    return status;
}
