/* CPU body of a Newton step's vector work (newton.h). The rows are cut into a fixed number of parts whose
 * sums are added in order, so the result does not depend on the number of threads. */

enum { FN(PAIR_PARTS) = 64 };

struct FN(pairs) {
    const struct ki_pairs *pairs;
    double sums[FN(PAIR_PARTS)][3];
};

/* Elements [first, end) of the coefficients' rows, or of the intercepts; op is a constant wherever this is
 * inlined. */
ALWAYS_INLINE void FN(pair_range)(int op, const struct ki_pairs *p, bool intercepts, int64_t first,
                                  int64_t end, double *sums) {
    const int64_t k = p->out.w->cols;
#define OPERAND(pair)                                                                                        \
    (intercepts ? (p->pair.b ? VALUES(p->pair.b) : NULL) : (p->pair.w ? VALUES(p->pair.w) : NULL))
    real *out = OPERAND(out), *second = OPERAND(second);
    const real *x = OPERAND(x), *y = OPERAND(y), *inverse = OPERAND(inverse);
#undef OPERAND
    const real *mean = p->mean && !intercepts ? VALUES(p->mean) : NULL;
    const real *column = p->column && !intercepts ? VALUES(p->column) : NULL;
    const real *sum = p->mean ? VALUES(p->out.b) : NULL, scalar = (real)p->scalar;
    for (int64_t row = first; row < end; row++)
        for (int64_t c = 0, e = row * k; c < k; c++, e++) {
            real unused = 0;
            FN(pair_element)
            (op, out + e, second ? second + e : &unused, x ? x[e] : 0, y ? y[e] : 0, inverse ? inverse[e] : 0,
             mean ? mean[row] * sum[c] : 0, column ? column[row] : 0, scalar, sums);
        }
}

static void FN(pair_rows)(const struct ki_pairs *p, bool intercepts, int64_t first, int64_t end,
                          double *sums) {
    switch (p->op) {
    case KI_PAIR_COMPLETE: FN(pair_range)(KI_PAIR_COMPLETE, p, intercepts, first, end, sums); break;
    case KI_PAIR_ADVANCE: FN(pair_range)(KI_PAIR_ADVANCE, p, intercepts, first, end, sums); break;
    case KI_PAIR_TURN: FN(pair_range)(KI_PAIR_TURN, p, intercepts, first, end, sums); break;
    case KI_PAIR_LEAST: FN(pair_range)(KI_PAIR_LEAST, p, intercepts, first, end, sums); break;
    case KI_PAIR_REACH: FN(pair_range)(KI_PAIR_REACH, p, intercepts, first, end, sums); break;
    case KI_PAIR_MOVE: FN(pair_range)(KI_PAIR_MOVE, p, intercepts, first, end, sums); break;
    case KI_PAIR_FACE: FN(pair_range)(KI_PAIR_FACE, p, intercepts, first, end, sums); break;
    case KI_PAIR_MIX: FN(pair_range)(KI_PAIR_MIX, p, intercepts, first, end, sums); break;
    case KI_PAIR_SETTLE: FN(pair_range)(KI_PAIR_SETTLE, p, intercepts, first, end, sums); break;
    }
}

static void FN(pair_part)(void *arg, int part) {
    struct FN(pairs) *work = arg;
    const int64_t rows = work->pairs->out.w->rows;
    double sums[3] = {0};
    FN(pair_rows)
    (work->pairs, false, ki_part_begin(rows, part, FN(PAIR_PARTS)),
     ki_part_begin(rows, part + 1, FN(PAIR_PARTS)), sums);
    memcpy(work->sums[part], sums, sizeof sums);
}

void FN(pairs_run)(double *sums, const struct ki_pairs *pairs) {
    struct FN(pairs) work = {.pairs = pairs};
    double all[3] = {0};
    ki_parallel(pairs->out.w->nnz > 16384 ? pairs->out.w->device->threads : 1, FN(PAIR_PARTS), FN(pair_part),
                &work);
    for (int part = 0; part < FN(PAIR_PARTS); part++)
        for (int i = 0; i < 3; i++) all[i] += work.sums[part][i];
    if (pairs->out.b) FN(pair_rows)(pairs, true, 0, 1, all);
    if (sums) memcpy(sums, all, sizeof all);
}
