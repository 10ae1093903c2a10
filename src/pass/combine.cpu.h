/* CPU bodies of pass/combine.h. */
#include "pass/cpu/elements.h"

/* One column: without a division an element. */
static void FN(combine_column)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    const real a = (real)e->a[0], b = e->Y ? (real)e->b[0] : 0;
    const real *X = VALUES(e->X), *Y = b != 0 ? VALUES(e->Y) : NULL;
    if (a != 0 && Y)
        for (int64_t i = first; i < end; i++) out[i] = a * X[i] + b * Y[i];
    else
        for (int64_t i = first; i < end; i++) out[i] = a != 0 ? a * X[i] : Y ? b * Y[i] : 0;
}

static void FN(combine_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    const int64_t k = e->W->cols;
    if (k == 1) {
        FN(combine_column)(e, out, first, end);
        return;
    }
    for (int64_t i = first / k; i * k < end; i++) {
        const struct FN(row) x = FN(row_of)(e->X, i, k), y = e->Y ? FN(row_of)(e->Y, i, k) : x;
        for (int64_t c = FN(row_begin)(i, k, first); c < FN(row_end)(i, k, end); c++) {
            real sum = e->a[c] != 0 ? (real)e->a[c] * x.at[c * x.step] : 0;
            if (e->Y && e->b[c] != 0) sum += (real)e->b[c] * y.at[c * y.step];
            out[i * k + c] = sum;
        }
    }
}

void FN(combine)(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                 const kiln_matrix *Y) {
    FN(each_element)
    (&(struct FN(elements)){.W = W, .X = X, .Y = Y, .a = a, .b = b, .range = FN(combine_range)});
}

static void FN(fill_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i++) out[i] = (real)e->value;
}

void FN(fill)(kiln_matrix *W, double value) {
    FN(each_element)(&(struct FN(elements)){.W = W, .value = value, .range = FN(fill_range)});
}
