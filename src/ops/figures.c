/* Measuring a device for the cost model.
 *
 * Rates are those of the fused pass itself on matrices far larger than the caches, since no bandwidth tells how scattered
 * sums proceed. What an iteration costs beside computing is found as in the iterative-kernels paper, section 4.2: with
 * twice the rows the computing doubles and the overhead stays, T = c + o and T' = 2c + o, hence o = 2T - T'. */
#include "ops/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/cache.h"
#include "core/seams.h"
#include "core/size.h"

enum { REPEATS = 5, BATCH = 20, PER_ROW = 16, DENSE_COLUMNS = 64, SMALL_ROWS = 2048, SMALL_COLUMNS = 16 };

struct probe {
    kiln_matrix *X, *w, *y;
    kiln_matrix *S, *E,
        *G; /* of an iteration: kiln_cg_step's state, solution and residual; y is its direction */
};

static void probe_free(struct probe *probe) {
    kiln_matrix_free(probe->X);
    kiln_matrix_free(probe->w);
    kiln_matrix_free(probe->y);
    kiln_matrix_free(probe->S);
    kiln_matrix_free(probe->E);
    kiln_matrix_free(probe->G);
}

static kiln_status probe_vectors(struct probe *probe) {
    kiln_status status;
    const kiln_matrix *X = probe->X;
    TRY(kiln_matrix_dense(&probe->w, X->device, X->type, X->cols, 1, NULL));
    TRY(kiln_matrix_dense(&probe->y, X->device, X->type, X->cols, 1, NULL));
done:
    return status;
}

static kiln_status pass(const struct probe *probe) {
    return kiln_mmchain(probe->w, 1, probe->X, NULL, probe->y, 0, NULL);
}

/* The fastest of a few passes, the first of which builds the kernels. */
static kiln_status time_pass(double *seconds, const struct probe *probe) {
    kiln_status status;
    double best = INFINITY;
    TRY(pass(probe));
    for (int i = 0; i < REPEATS; i++) {
        TRY(kiln_device_sync(probe->X->device));
        const double start = ki_clock();
        TRY(pass(probe));
        TRY(kiln_device_sync(probe->X->device));
        best = fmin(best, ki_clock() - start);
    }
    *seconds = best;
done:
    return status;
}

/* Bytes worth reading: beyond the caches, within what is free. */
static int64_t sample_bytes(const kiln_device *device) {
    const struct ki_properties *properties = &device->properties;
    const int64_t wanted = properties->is_gpu ? (int64_t)1 << 30 : (int64_t)128 << 20;
    const int64_t room = ki_min(properties->alloc_max, device->budget - device->statistics.memory_used) / 3;
    return ki_max(ki_min(wanted, room), 1 << 16);
}

static kiln_status measure_dense(double *rate, kiln_device *device, kiln_type type) {
    struct probe probe = {0};
    kiln_status status;
    double seconds;
    const int64_t bytes = sample_bytes(device), rows = bytes / (DENSE_COLUMNS * ki_type_bytes(type));
    TRY(kiln_matrix_dense(&probe.X, device, type, rows, DENSE_COLUMNS, NULL));
    TRY(probe_vectors(&probe));
    TRY(time_pass(&seconds, &probe));
    *rate = (double)bytes / seconds;
done:
    probe_free(&probe);
    return status;
}

/* PER_ROW entries a row, one in each of as many equal stretches of the columns, so that they ascend and differ. */
static void fill_pattern(int64_t *row_start, int32_t *col, int64_t rows, int64_t cols) {
    uint64_t state = 1;
    const uint64_t stretch = (uint64_t)cols / PER_ROW;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < PER_ROW; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            col[i * PER_ROW + j] = (int32_t)((uint64_t)j * stretch + ((state >> 33) * stretch >> 31));
        }
        row_start[i] = i * PER_ROW;
    }
    row_start[rows] = rows * PER_ROW;
}

static kiln_status make_sparse(kiln_matrix **X, kiln_device *device, kiln_type type, int64_t cols) {
    kiln_status status = KILN_OK;
    const int64_t rows = ki_max(sample_bytes(device) / (PER_ROW * (4 + ki_type_bytes(type))), 1);
    const int64_t nnz = rows * PER_ROW;
    int64_t *row_start = ki_alloc((size_t)(rows + 1) * 8);
    int32_t *col = ki_alloc((size_t)nnz * 4);
    void *values = ki_calloc((size_t)(nnz * ki_type_bytes(type)));
    if (!row_start || !col || !values)
        TRY(ki_fail_nomem((size_t)(nnz * (4 + ki_type_bytes(type))), "the matrix to measure a device with"));
    fill_pattern(row_start, col, rows, cols);
    TRY(ki_matrix_adopt_csr(X, device, type, rows, cols, nnz, row_start, col, values));
    return KILN_OK;
done:
    ki_free(row_start);
    ki_free(col);
    ki_free(values);
    return status;
}

static kiln_status measure_sparse(double *rate, kiln_device *device, kiln_type type, int64_t cols) {
    struct probe probe = {0};
    kiln_status status;
    double seconds;
    TRY(make_sparse(&probe.X, device, type, cols));
    TRY(probe_vectors(&probe));
    TRY(time_pass(&seconds, &probe));
    *rate = (double)probe.X->nnz / seconds;
done:
    probe_free(&probe);
    return status;
}

/* Operands of an iteration, small: the shape tells nothing but what launching costs. */
static kiln_status probe_iteration(struct probe *probe, kiln_device *device, kiln_type type, int64_t rows) {
    enum { STATE = 6 }; /* rows of kiln_cg_step's state with one step of history */
    kiln_status status;
    const kiln_type wide = device->properties.has_f64 ? KILN_F64 : KILN_F32;
    TRY(kiln_matrix_dense(&probe->X, device, type, rows, SMALL_COLUMNS, NULL));
    TRY(probe_vectors(probe));
    TRY(kiln_matrix_dense(&probe->S, device, wide, STATE, 1, NULL));
    TRY(kiln_matrix_dense(&probe->E, device, type, SMALL_COLUMNS, 1, NULL));
    TRY(kiln_matrix_dense(&probe->G, device, type, SMALL_COLUMNS, 1, NULL));
done:
    return status;
}

/* An iteration of conjugate gradient, as the solvers queue it. */
static kiln_status iterate(const struct probe *probe) {
    kiln_status status;
    TRY(pass(probe));
    TRY(kiln_cg_step(&(kiln_cg){.S = probe->S, .E = probe->E, .G = probe->G, .P = probe->y, .Q = probe->w},
                     0));
done:
    return status;
}

static kiln_status time_iteration(double *seconds, kiln_device *device, kiln_type type, int64_t rows) {
    struct probe probe = {0};
    kiln_status status;
    double best = INFINITY;
    TRY(probe_iteration(&probe, device, type, rows));
    for (int i = 0; i < REPEATS; i++) {
        const double start = ki_clock();
        for (int j = 0; j < BATCH; j++) TRY(iterate(&probe));
        TRY(kiln_device_sync(device));
        best = fmin(best, (ki_clock() - start) / BATCH);
    }
    *seconds = best;
done:
    probe_free(&probe);
    return status;
}

static kiln_status measure_iteration(double *seconds, kiln_device *device, kiln_type type) {
    kiln_status status;
    double once, twice;
    TRY(time_iteration(&once, device, type, SMALL_ROWS));
    TRY(time_iteration(&twice, device, type, 2 * SMALL_ROWS));
    *seconds = fmin(fmax(2 * once - twice, 0.25 * once), once);
done:
    return status;
}

static kiln_status measure_link(double *up, double *down, kiln_device *device) {
    kiln_matrix *A = NULL;
    kiln_status status = KILN_OK;
    const int64_t bytes = ki_min(sample_bytes(device), (int64_t)256 << 20) & ~(int64_t)7;
    double best_up = INFINITY, best_down = INFINITY;
    char *memory = ki_alloc((size_t)bytes);
    if (!memory) TRY(ki_fail_nomem((size_t)bytes, "measuring the link to a device"));
    memset(memory, 0, (size_t)bytes);
    TRY(kiln_matrix_dense(&A, device, KILN_F32, bytes / 4, 1, memory));
    for (int i = 0; i < REPEATS; i++) {
        double start = ki_clock();
        TRY(kiln_matrix_set(A, memory));
        TRY(kiln_device_sync(device));
        best_up = fmin(best_up, ki_clock() - start);
        start = ki_clock();
        TRY(kiln_matrix_get(memory, A));
        best_down = fmin(best_down, ki_clock() - start);
    }
    *up = (double)bytes / best_up;
    *down = (double)bytes / best_down;
done:
    kiln_matrix_free(A);
    ki_free(memory);
    return status;
}

/* ----------------------------------------------------------------------------------------- profile */

void ki_figures_owner(char owner[KI_FIGURE_OWNER], const kiln_device_info *info) {
    snprintf(owner, KI_FIGURE_OWNER, "%s %s", info->name, info->description);
}

struct figure {
    const char *name;
    size_t offset;           /* in struct ki_figures */
    bool typed;              /* one for f32, one for f64 */
    bool sparse, dense, gpu; /* needed by which work, on which device */
};
#define AT(field) offsetof(struct ki_figures, field)
static const struct figure figures_kept[] = {
    {"start", AT(start), false, true, true, true},  {"up", AT(up), false, true, true, true},
    {"down", AT(down), false, true, true, true},    {"bandwidth", AT(read), false, true, true, false},
    {"dense", AT(dense), true, false, true, false}, {"narrow", AT(narrow), true, true, false, false},
    {"wide", AT(wide), true, true, false, false},   {"iteration", AT(iteration), true, true, true, false},
};
#undef AT
enum { KEPT = sizeof figures_kept / sizeof *figures_kept };

static void figure_name(char name[KI_FIGURE_OWNER + 40], const struct figure *figure, kiln_type type,
                        const char *owner) {
    if (figure->typed)
        snprintf(name, KI_FIGURE_OWNER + 40, "%s %s %s", figure->name, ki_type_name(type), owner);
    else
        snprintf(name, KI_FIGURE_OWNER + 40, "%s %s", figure->name, owner);
}

static bool needed(const struct figure *figure, const kiln_work *work, bool host) {
    if (figure->gpu && host) return false;
    return work->format == KILN_CSR ? figure->sparse : figure->dense;
}

kiln_status ki_figures_recall(bool *found, struct ki_figures *figures, kiln_device *device, const char *owner,
                              const kiln_work *work) {
    char name[KI_FIGURE_OWNER + 40];
    const bool host = strncmp(owner, "cpu ", 4) == 0;
    struct ki_figures recalled = {0};
    bool all = true;
    for (int i = 0; i < KEPT && all; i++) {
        if (!needed(&figures_kept[i], work, host)) continue;
        figure_name(name, &figures_kept[i], work->type, owner);
        kiln_status status =
            ki_cache_profile_get(&all, (double *)((char *)&recalled + figures_kept[i].offset), device, name);
        if (status != KILN_OK) return status;
    }
    *found = all;
    if (all) *figures = recalled;
    return KILN_OK;
}

static kiln_status keep(kiln_device *device, const struct ki_figures *figures, const kiln_work *work) {
    char name[KI_FIGURE_OWNER + 40], owner[KI_FIGURE_OWNER];
    kiln_status status = KILN_OK;
    ki_figures_owner(owner, &device->info);
    for (int i = 0; i < KEPT && status == KILN_OK; i++) {
        const double value = *(const double *)((const char *)figures + figures_kept[i].offset);
        if (!needed(&figures_kept[i], work, ki_on_cpu(device)) || value == 0) continue;
        figure_name(name, &figures_kept[i], work->type, owner);
        status = ki_cache_profile_put(device, name, value);
    }
    return status;
}

kiln_status ki_figures_measure(struct ki_figures *figures, kiln_device *device, const kiln_work *work) {
    kiln_status status;
    char owner[KI_FIGURE_OWNER];
    bool found;
    struct ki_figures measured = {.start = figures->start};
    ki_figures_owner(owner, &device->info);
    TRY(ki_figures_recall(&found, figures, device, owner, work));
    if (found) return KILN_OK;
    ki_device_message(device, "measuring device %s once, for choosing a device", device->info.name);
    TRY(kiln_device_bandwidth(&measured.read, device, 0));
    TRY(measure_iteration(&measured.iteration, device, work->type));
    if (work->format == KILN_CSR) {
        TRY(measure_sparse(&measured.narrow, device, work->type, KI_COLUMNS_NARROW));
        TRY(measure_sparse(&measured.wide, device, work->type, KI_COLUMNS_WIDE));
    } else {
        TRY(measure_dense(&measured.dense, device, work->type));
    }
    if (!ki_on_cpu(device)) TRY(measure_link(&measured.up, &measured.down, device));
    TRY(keep(device, &measured, work));
    *figures = measured;
done:
    return status;
}

kiln_status ki_figures_keep_start(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                                  double opened_at) {
    char name[KI_FIGURE_OWNER + 40], owner[KI_FIGURE_OWNER];
    kiln_status status;
    struct probe probe = {0};
    bool found;
    ki_figures_owner(owner, &device->info);
    snprintf(name, sizeof name, "start %s", owner);
    TRY(probe_iteration(&probe, device, work->type, SMALL_ROWS));
    TRY(iterate(&probe));
    TRY(kiln_device_sync(device));
    double seconds = ki_clock() - opened_at;
    /* Building happens once a machine, not once a start. */
    if (device->statistics.kernels_built > 0) seconds -= device->statistics.build_seconds;
    double least = seconds;
    TRY(ki_cache_profile_get(&found, &least, device, name));
    figures->start = fmin(seconds, least);
    if (!found || seconds < least) TRY(ki_cache_profile_put(device, name, seconds));
done:
    probe_free(&probe);
    return status;
}
