/* CPU bodies of pass/combine.h, and what loops over elements share: large matrices are cut into parts for the threads. */

struct FN(elements) {
    kiln_matrix *W;
    const kiln_matrix *X, *Y;
    const double *a, *b;
    double value;
    uint64_t seed, stream;
    int kind, parts; /* kind: of map, or the distribution */
    void (*range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end);
};

static void FN(elements_part)(void *arg, int part) {
    const struct FN(elements) *e = arg;
    e->range(e, VALUES(e->W), ki_part_begin(e->W->nnz, part, e->parts),
             ki_part_begin(e->W->nnz, part + 1, e->parts));
}

static void FN(each_element)(struct FN(elements) * e) {
    enum { WORTH_A_PART = 16384 };
    const int threads = e->W->device->threads;
    e->parts = (int)ki_max(ki_min(e->W->nnz / WORTH_A_PART, (int64_t)threads * 4), 1);
    ki_parallel(threads, e->parts, FN(elements_part), e);
}

/* One column: without a division an element. */
static void FN(combine_column)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    const real a = (real)e->a[0], b = e->Y ? (real)e->b[0] : 0;
    const real *X = VALUES(e->X), *Y = b != 0 ? VALUES(e->Y) : NULL;
    if (a != 0 && Y)
        for (int64_t i = first; i < end; i++) out[i] = a * X[i] + b * Y[i];
    else
        for (int64_t i = first; i < end; i++) out[i] = a != 0 ? a * X[i] : Y ? b * Y[i] : 0;
}

/* An operand's numbers for row i: all of W's k, or one that stands for each. */
struct FN(row) {
    const real *at;
    int64_t step; /* to the next column: 1 or 0 */
};

static struct FN(row) FN(row_of)(const kiln_matrix *A, int64_t i, int64_t k) {
    return A->cols == 1 ? (struct FN(row)){VALUES(A) + i, k == 1} : (struct FN(row)){VALUES(A) + i * k, 1};
}

/* The columns of row i in a range of elements [first, end). */
static int64_t FN(row_begin)(int64_t i, int64_t k, int64_t first) {
    return ki_max(first - i * k, 0);
}
static int64_t FN(row_end)(int64_t i, int64_t k, int64_t end) {
    return ki_min(end - i * k, k);
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

static void FN(combine)(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                        const kiln_matrix *Y) {
    FN(each_element)
    (&(struct FN(elements)){.W = W, .X = X, .Y = Y, .a = a, .b = b, .range = FN(combine_range)});
}

static void FN(fill_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i++) out[i] = (real)e->value;
}

static void FN(fill)(kiln_matrix *W, double value) {
    FN(each_element)(&(struct FN(elements)){.W = W, .value = value, .range = FN(fill_range)});
}
