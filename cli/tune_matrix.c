/* A matrix to measure plans with. */
#include <math.h>
#include <stdlib.h>

#include "random.h"
#include "tune.h"

struct arrays {
    int64_t *row_start;
    int32_t *col;
    void *values; /* which differ, as equal ones need not be read */
};

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Column numbers of each row, ascending and distinct; returns how many there are in all. */
static int64_t fill(struct arrays *arrays, const kiln_work *work, bool zipf, int64_t seed) {
    int64_t used = 0, drawn = 0;
    for (int64_t i = 0; i < work->rows; i++) {
        int32_t *row = arrays->col + used;
        const int64_t until = (int64_t)((double)work->nnz * ((double)(i + 1) / (double)work->rows));
        int64_t n = 0, kept = 0;
        for (; drawn < until; drawn++, n++) {
            const double u = random_unit(seed, STREAM_MADE_COLUMNS, drawn);
            const double at = zipf ? exp(u * log((double)work->cols + 1)) - 1 : u * (double)work->cols;
            row[n] = (int32_t)fmin(at, (double)work->cols - 1);
        }
        qsort(row, (size_t)n, sizeof *row, ascending);
        for (int64_t j = 0; j < n; j++)
            if (j == 0 || row[j] != row[kept - 1]) row[kept++] = row[j];
        arrays->row_start[i] = used;
        used += kept;
    }
    arrays->row_start[work->rows] = used;
    return used;
}

static void fill_values(void *values, kiln_type type, int64_t count, int64_t seed) {
    for (int64_t i = 0; i < count; i++) {
        const double value = random_unit(seed, STREAM_MADE_VALUES, i);
        if (type == KILN_F32)
            ((float *)values)[i] = (float)value;
        else
            ((double *)values)[i] = value;
    }
}

static int sparse(kiln_matrix **X, struct run *run, kiln_work *work, bool zipf) {
    struct arrays arrays = {malloc(((size_t)work->rows + 1) * sizeof *arrays.row_start),
                            malloc((size_t)work->nnz * sizeof *arrays.col),
                            malloc((size_t)work->nnz * (work->type == KILN_F32 ? 4 : 8))};
    int code = 0;
    if (!arrays.row_start || !arrays.col || !arrays.values) {
        code = fail_with(KILN_ERR_NOMEM, WORKING, "fewer --rows or --nnz", "no memory for %lld entries",
                         (long long)work->nnz);
    } else {
        work->nnz = fill(&arrays, work, zipf, run->settings->seed);
        fill_values(arrays.values, work->type, work->nnz, run->settings->seed);
        if (kiln_matrix_csr(X, run->device, work->type, work->rows, work->cols, arrays.row_start, arrays.col,
                            arrays.values) != KILN_OK)
            code = fail_library(WORKING);
    }
    free(arrays.row_start);
    free(arrays.col);
    free(arrays.values);
    return code;
}

int tune_matrix(kiln_matrix **X, struct run *run, kiln_work *work, bool zipf) {
    if (work->format == KILN_CSR) return sparse(X, run, work, zipf);
    if (kiln_matrix_dense(X, run->device, work->type, work->rows, work->cols, NULL) != KILN_OK ||
        kiln_fill_random(*X, KILN_UNIFORM, (uint64_t)run->settings->seed, STREAM_MADE) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}
