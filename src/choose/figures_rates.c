/* Rates of a device for the cost model: what is run to find them (choose/figures.c keeps them).
 *
 * Rates are those of the fused pass itself on matrices larger than the caches of one core, since no bandwidth
 * tells how scattered sums proceed. What an iteration costs beside computing is found as in the
 * iterative-kernels paper, section 4.2: with twice the rows the computing doubles and the overhead stays, T =
 * c + o and T' = 2c + o, hence o = 2T - T'. A sparse row's cost beside its entries is found alike, from short
 * rows and long ones. */
#include <math.h>
#include <string.h>

#include "core/random.h"
#include "core/seams.h"
#include "core/size.h"
#include "choose/figures.h"
#include "choose/stopwatch.h"

static const double ENOUGH = 0.1; /* seconds */
enum {
    REPEATS = 5,
    LEAST = 3,
    BATCH = 20,
    SHORT_ROW = 4,
    LONG_ROW = 32,
    SMALL_ROWS = 2048,
    SMALL_COLUMNS = 16
};

struct probe {
    kiln_matrix *X, *w, *y;
    /* of an iteration: kiln_cg's state, curvature, solution and residual; y is its direction */
    kiln_matrix *S, *curvature, *E, *G;
};

static void probe_free(struct probe *probe) {
    kiln_matrix_free(probe->X);
    kiln_matrix_free(probe->w);
    kiln_matrix_free(probe->y);
    kiln_matrix_free(probe->S);
    kiln_matrix_free(probe->curvature);
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

/* The fastest of a few passes, the first of which builds the kernels, and the second what is derived from
 * X. */
static kiln_status time_pass(double *seconds, const struct probe *probe) {
    kiln_status status;
    double best = INFINITY, all = 0;
    TRY(pass(probe));
    for (int i = 0; i < REPEATS && (i < LEAST || all < ENOUGH); i++) {
        TRY(kiln_device_sync(probe->X->device));
        const struct ki_stopwatch start = ki_stopwatch_begin();
        TRY(pass(probe));
        TRY(kiln_device_sync(probe->X->device));
        const double taken = ki_stopwatch_seconds(start, probe->X->device);
        best = fmin(best, taken);
        all += taken;
    }
    *seconds = best;
done:
    return status;
}

/* Bytes worth reading, within what is free: sparse rates fall with the columns long before they fall with the
 * bytes. */
static int64_t sample_bytes(const kiln_device *device, kiln_format format) {
    const struct ki_properties *properties = &device->properties;
    const int64_t wanted = (int64_t)(properties->is_gpu ? 1 << 30 : 128 << 20) / (format == KILN_CSR ? 2 : 1);
    const int64_t room = ki_min(properties->alloc_max, device->budget - device->statistics.memory_used) / 3;
    return ki_max(ki_min(wanted, room), 1 << 16);
}

static kiln_status measure_dense(double *rate, kiln_device *device, kiln_type type, int64_t cols) {
    struct probe probe = {0};
    kiln_status status;
    double seconds;
    const int64_t row = cols * ki_type_bytes(type), rows = ki_max(sample_bytes(device, KILN_DENSE) / row, 1);
    TRY(kiln_matrix_dense(&probe.X, device, type, rows, cols, NULL));
    TRY(probe_vectors(&probe));
    TRY(time_pass(&seconds, &probe));
    *rate = (double)(rows * row) / seconds;
done:
    probe_free(&probe);
    return status;
}

kiln_status ki_rates_dense(double rates[KI_DENSE_WIDTHS], kiln_device *device, kiln_type type) {
    enum { ANY = 1 };
    kiln_status status = KILN_OK;
    if (ki_on_cpu(device)) {
        for (int i = 0; i < KI_DENSE_WIDTHS; i++)
            TRY(measure_dense(&rates[i], device, type, ki_dense_widths[i]));
        goto done;
    }
    /* The width matters little to a GPU, for which each means kernels of its own to build. */
    TRY(measure_dense(&rates[ANY], device, type, ki_dense_widths[ANY]));
    for (int i = 0; i < KI_DENSE_WIDTHS; i++) rates[i] = rates[ANY];
done:
    return status;
}

/* Holds what a sparse X is to look like. Data lie between columns that are all alike and columns as Zipf's
 * law has them, with which a pass takes up to 1.6 times less, or more, than with the former. */
struct pattern {
    int64_t cols, per_row;
    int64_t samples; /* sample_bytes, so many times */
    int64_t zipf;    /* one row in so many has columns by Zipf's law; 0 = none */
};

/* `per_row` entries a row, one in each of as many equal stretches of the columns, so that they ascend and
 * differ. Their values differ too: a GPU does not read equal ones, and a processor finds zeros that nobody
 * wrote in its cache. */
static void fill_pattern(int64_t *row_start, int32_t *col, void *values, kiln_type type, int64_t rows,
                         const struct pattern *pattern) {
    struct ki_draws draws = {.stream = KI_STREAM_MADE};
    const int64_t per_row = pattern->per_row, zipf = pattern->zipf;
    const double stretch = (double)pattern->cols / (double)per_row, scale = log(stretch);
    for (int64_t i = 0; i < rows; i++) {
        const bool skewed = zipf && i % zipf == 0;
        for (int64_t j = 0; j < per_row; j++) {
            const double uniform = ki_draw(&draws);
            const double within = skewed ? exp(uniform * scale) - 1 : uniform * stretch;
            col[i * per_row + j] = (int32_t)((double)j * stretch + within);
            if (type == KILN_F32)
                ((float *)values)[i * per_row + j] = (float)uniform;
            else
                ((double *)values)[i * per_row + j] = uniform;
        }
        row_start[i] = i * per_row;
    }
    row_start[rows] = rows * per_row;
}

static kiln_status make_sparse(kiln_matrix **X, kiln_device *device, kiln_type type,
                               const struct pattern *pattern) {
    kiln_status status = KILN_OK;
    const int64_t entry = 4 + ki_type_bytes(type), bytes = pattern->samples * sample_bytes(device, KILN_CSR);
    const int64_t rows = ki_max(bytes / (pattern->per_row * entry), 1), nnz = rows * pattern->per_row;
    int64_t *row_start = ki_alloc((size_t)(rows + 1) * 8);
    int32_t *col = ki_alloc((size_t)nnz * 4);
    void *values = ki_alloc((size_t)(nnz * ki_type_bytes(type)));
    if (!row_start || !col || !values)
        TRY(ki_fail_nomem((size_t)(nnz * entry), "the matrix to measure a device with"));
    fill_pattern(row_start, col, values, type, rows, pattern);
    TRY(ki_matrix_adopt_csr(X, device, type, rows, pattern->cols, nnz, row_start, col, values));
    return KILN_OK;
done:
    ki_free(row_start);
    ki_free(col);
    ki_free(values);
    return status;
}

/* Seconds of a pass for each of its entries. */
static kiln_status measure_sparse(double *seconds, kiln_device *device, kiln_type type,
                                  const struct pattern *pattern) {
    struct probe probe = {0};
    kiln_status status;
    TRY(make_sparse(&probe.X, device, type, pattern));
    TRY(probe_vectors(&probe));
    TRY(time_pass(seconds, &probe));
    *seconds /= (double)probe.X->nnz;
done:
    probe_free(&probe);
    return status;
}

/* Entries a second beside what rows take, which timing errors must not make all of it. */
static double rate_beside(double entry, double row, int64_t per_row) {
    return 1 / fmax(entry - row / (double)per_row, 0.1 * entry);
}

/* Columns that are alike are taken in panels on a processor if there are so many, which vectors as long must
 * not outweigh; others row by row. */
static kiln_status measure_wide(double *entry, kiln_device *device, kiln_type type, int64_t cols) {
    const struct pattern alike = {cols, LONG_ROW, 4, 0}, skewed = {cols, LONG_ROW, 2, 1};
    double tiled, row_by_row;
    kiln_status status;
    TRY(measure_sparse(&tiled, device, type, &alike));
    TRY(measure_sparse(&row_by_row, device, type, &skewed));
    *entry = (tiled + row_by_row) / 2;
done:
    return status;
}

static kiln_status measure_long_rows(double entry[KI_SPARSE_WIDTHS], kiln_device *device, kiln_type type) {
    const int mixed = ki_on_cpu(device) ? KI_SPARSE_WIDTHS - 1 : KI_SPARSE_WIDTHS;
    kiln_status status = KILN_OK;
    for (int i = 0; i < mixed; i++) {
        const struct pattern pattern = {ki_sparse_widths[i], LONG_ROW, 1, 2};
        TRY(measure_sparse(&entry[i], device, type, &pattern));
    }
    if (ki_on_cpu(device)) TRY(measure_wide(&entry[mixed], device, type, ki_sparse_widths[mixed]));
done:
    return status;
}

kiln_status ki_rates_sparse(struct ki_figures *figures, kiln_device *device, kiln_type type) {
    enum { WIDEST = KI_SPARSE_WIDTHS - 1 };
    const struct pattern narrow = {ki_sparse_widths[0], SHORT_ROW, 1, 2};
    const struct pattern wide = {ki_sparse_widths[WIDEST], SHORT_ROW, 1, 2};
    double entry[KI_SPARSE_WIDTHS], brief, thin;
    kiln_status status;
    TRY(measure_long_rows(entry, device, type));
    TRY(measure_sparse(&brief, device, type, &narrow));
    figures->row = fmax((brief - entry[0]) / (1.0 / SHORT_ROW - 1.0 / LONG_ROW), 1e-12);
    for (int i = 0; i < KI_SPARSE_WIDTHS; i++)
        figures->sparse[i] = rate_beside(entry[i], figures->row, LONG_ROW);
    figures->thin = figures->sparse[WIDEST];
    if (!ki_on_cpu(device)) goto done;
    TRY(measure_sparse(&thin, device, type, &wide));
    figures->thin = rate_beside(thin, figures->row, SHORT_ROW);
done:
    return status;
}

/* Operands of an iteration, small: the shape tells nothing but what launching costs. */
static kiln_status probe_iteration(struct probe *probe, kiln_device *device, kiln_type type, int64_t rows) {
    enum { STATE = 7 }; /* rows of kiln_cg_step's state with one step of history */
    kiln_status status;
    const kiln_type wide = ki_wide_type(device);
    TRY(kiln_matrix_dense(&probe->X, device, type, rows, SMALL_COLUMNS, NULL));
    TRY(probe_vectors(probe));
    TRY(kiln_matrix_dense(&probe->S, device, wide, STATE, 1, NULL));
    TRY(kiln_matrix_dense(&probe->curvature, device, wide, 1, 1, NULL));
    TRY(kiln_matrix_dense(&probe->E, device, type, SMALL_COLUMNS, 1, NULL));
    TRY(kiln_matrix_dense(&probe->G, device, type, SMALL_COLUMNS, 1, NULL));
done:
    return status;
}

/* An iteration of conjugate gradient, as the solvers queue it. */
static kiln_status iterate(const struct probe *probe) {
    kiln_status status;
    const kiln_cg cg = {.S = probe->S,
                        .E = probe->E,
                        .G = probe->G,
                        .P = probe->y,
                        .Q = probe->w,
                        .curvature = probe->curvature};
    TRY(kiln_cg_pass(&cg, probe->X, NULL));
    TRY(kiln_cg_step(&cg, 0));
done:
    return status;
}

static kiln_status time_iteration(double *seconds, kiln_device *device, kiln_type type, int64_t rows) {
    struct probe probe = {0};
    kiln_status status;
    double best = INFINITY;
    TRY(probe_iteration(&probe, device, type, rows));
    for (int i = 0; i < REPEATS; i++) {
        const struct ki_stopwatch start = ki_stopwatch_begin();
        for (int j = 0; j < BATCH; j++) TRY(iterate(&probe));
        TRY(kiln_device_sync(device));
        best = fmin(best, ki_stopwatch_seconds(start, device) / BATCH);
    }
    *seconds = best;
done:
    probe_free(&probe);
    return status;
}

kiln_status ki_rates_iteration(double *seconds, kiln_device *device, kiln_type type) {
    kiln_status status;
    double once, twice;
    TRY(time_iteration(&once, device, type, SMALL_ROWS));
    TRY(time_iteration(&twice, device, type, 2 * SMALL_ROWS));
    *seconds = fmin(fmax(2 * once - twice, 0.25 * once), once);
done:
    return status;
}

kiln_status ki_rates_link(double *up, double *down, kiln_device *device) {
    kiln_matrix *A = NULL;
    kiln_status status = KILN_OK;
    const int64_t bytes = ki_min(sample_bytes(device, KILN_DENSE), (int64_t)256 << 20) & ~(int64_t)7;
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

kiln_status ki_rates_first_iteration(kiln_device *device, kiln_type type) {
    struct probe probe = {0};
    kiln_status status;
    TRY(probe_iteration(&probe, device, type, SMALL_ROWS));
    TRY(iterate(&probe));
    TRY(kiln_device_sync(device));
done:
    probe_free(&probe);
    return status;
}
