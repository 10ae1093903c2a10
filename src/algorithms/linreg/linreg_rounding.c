/* What is left of a gradient when each column's own rounding is taken off. A column that is all but constant must not make the
 * others' gradients look like rounding, nor keep them from converging. */
#include "algorithms/linreg/linreg_block.h"

kiln_status ki_block_beyond_rounding(const struct ki_block *t, double *norm, bool fitted) {
    kiln_status status;
    const struct ki_system *system = t->system;
    const int64_t n = kiln_matrix_cols(system->X), k = t->k;
    const double part = 16 * ki_epsilon(kiln_matrix_type(system->X));
    double *values = ki_alloc((size_t)(n * (3 + 2 * k)) * sizeof *values);
    if (!values) return ki_fail_nomem((size_t)(n * (3 + 2 * k)) * sizeof *values, "the columns' rounding");
    double *square = values, *own = square + n, *inverse = own + n, *g = inverse + n, *w = g + n * k;
    for (int64_t j = 0; j < n; j++) inverse[j] = 1;
    TRY(ki_vector_get(square, system->square));
    TRY(ki_vector_get(own, system->options.no_intercept ? system->square : system->centred));
    if (system->inverse) TRY(ki_vector_get(inverse, system->inverse));
    TRY(ki_vector_get(g, t->G));
    TRY(ki_vector_get(w, t->W));
    for (int64_t c = 0; c < k; c++) {
        double size = system->weight * t->b[c] * t->b[c], sum = 0;
        for (int64_t j = 0; j < n; j++) size += w[j * k + c] * w[j * k + c] * square[j];
        for (int64_t j = 0; j < n; j++) {
            const double rounding =
                             sqrt(square[j]) * sqrt(t->rss[c]) + (fitted ? sqrt(own[j]) * sqrt(size) : 0),
                         left = fmax(fabs(g[j * k + c]) - part * rounding, 0);
            sum += left * left * inverse[j];
        }
        norm[c] = sqrt(sum);
    }
done:
    ki_free(values);
    return status;
}
