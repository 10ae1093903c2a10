/* A dense matrix, and targets where there are some, as numpy.savez writes them: arrays that the archive has
 * under the usual names. */
#include <stdio.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "io/numpy/npz.h"

/* A sparse matrix's own data.npy is not among them: an archive that has lost its format is torn. */
static const char *const matrices[] = {"X.npy", "x.npy", "arr_0.npy", NULL};
static const char *const targets[] = {"y.npy", "target.npy", "labels.npy", "arr_1.npy", NULL};

/* The first of these names that the archive has, or NULL. */
static const char *name_of(const struct ki_npz *s, const char *const *names) {
    while (*names && !ki_zip_find(&s->zip, *names)) names++;
    return *names;
}

static kiln_status fail_none(const struct ki_npz *s) {
    const struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(
        KILN_ERR_UNSUPPORTED, &place,
        "the .npz archive has no sparse matrix, as scipy.sparse.save_npz writes it, and no array X, x or "
        "arr_0");
    return ki_hint("numpy.savez(name, X=X, y=y), or numpy.save(name, X) for an .npy file");
}

/* *values = an array's numbers, row by row. */
static kiln_status read_array(void **values, struct ki_npz_array *a, struct ki_npz *s, const char *name) {
    kiln_status status;
    const kiln_read_options *options = s->options;
    char where[300];
    TRY(ki_npz_open(a, s, name));
    snprintf(where, sizeof where, "%.200s: %s", s->file, name);
    TRY(ki_npy_check_matrix(&a->npy, where));
    const int64_t bytes =
        a->count * ki_type_bytes(options->type); /* count is at most what the member holds */
    const bool turned = ki_npy_by_columns(&a->npy);
    struct ki_numbers numbers = {.npy = &a->npy,
                                 .type = options->type,
                                 .values = ki_alloc((size_t)bytes),
                                 .turned = turned,
                                 .wanted = a->count,
                                 .any = options->allow_nonfinite,
                                 .bad = INT64_MAX};
    if (!(*values = numbers.values)) return ki_fail_nomem((size_t)bytes, "the matrix");
    TRY(ki_npz_elements(a, s, ki_npy_native(&a->npy, options->type) && !turned ? *values : NULL,
                        ki_numbers_use, &numbers));
    if (numbers.bad < INT64_MAX) {
        const int64_t at = ki_npy_value_at(&a->npy, numbers.bad);
        const double value =
            options->type == KILN_F32 ? (double)((float *)*values)[at] : ((double *)*values)[at];
        TRY(ki_npy_fail_nonfinite(&a->npy, where, a->header, numbers.bad, value, options->type));
    }
done:
    return status;
}

kiln_status ki_npz_dense(struct ki_table *table, struct ki_npz *s) {
    kiln_status status;
    const char *matrix = name_of(s, matrices), *target = name_of(s, targets);
    if (!matrix) return fail_none(s);
    TRY(read_array(&table->values, &s->data, s, matrix));
    table->format = KILN_DENSE;
    table->rows = s->data.npy.shape[0];
    table->cols = s->data.npy.shape[1];
    table->nnz = s->data.count;
    if (!target || s->options->target_file) return KILN_OK;
    TRY(read_array(&table->y, &s->indices, s, target));
    table->targets = s->indices.npy.shape[1];
    if (s->indices.npy.shape[0] == table->rows) return KILN_OK;
    const struct ki_place place = {s->file, 0, 0, -1};
    TRY(ki_fail_at(KILN_ERR_DATA, &place, "%s has %lld rows, %s %lld", target,
                   (long long)s->indices.npy.shape[0], matrix, (long long)table->rows));
done:
    return status;
}
