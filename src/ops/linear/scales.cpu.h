/* CPU body of ops/linear/scales.h. The columns are cut into a fixed number of parts whose sums are added in
 * order, so the result does not depend on the number of threads. */

enum { FN(SCALES_PARTS) = 64 };

struct FN(scales) {
    const struct ki_scales *scales;
    double sums[FN(SCALES_PARTS)][KI_SCALES_SUMS];
};

static void FN(scales_column)(const struct ki_scales *s, int64_t j, double *sums) {
    const real square = VALUES(s->square)[j];
    real *inverse = s->inverse ? VALUES(s->inverse) + j : NULL, penalty;
    real *centred = s->centred ? VALUES(s->centred) + j : NULL;
    switch (s->op) {
    case KI_SCALES_MEASURE:
        FN(column_measure)
        (VALUES(s->square) + j, VALUES(s->mean) + j, centred, s->c ? VALUES(s->c)[j] : 0, s->weight,
         s->doubted, s->flat, sums);
        break;
    case KI_SCALES_WEIGH:
        *inverse = FN(column_weigh)(square, *centred, &penalty, s->weight, s->l2, s->intercept,
                                    s->standardize, s->plain);
        if (s->penalty) VALUES(s->penalty)[j] = penalty;
        if (s->kept) VALUES(s->kept)[j] = *inverse > 0 ? 1 : 0;
        break;
    case KI_SCALES_INVERT: *inverse = FN(column_invert)(square, *inverse, sums); break;
    }
}

static void FN(scales_part)(void *arg, int part) {
    struct FN(scales) *work = arg;
    const int64_t n = work->scales->square->rows, end = ki_part_begin(n, part + 1, FN(SCALES_PARTS));
    double sums[KI_SCALES_SUMS] = {0};
    for (int64_t j = ki_part_begin(n, part, FN(SCALES_PARTS)); j < end; j++)
        FN(scales_column)(work->scales, j, sums);
    memcpy(work->sums[part], sums, sizeof sums);
}

void FN(scales_run)(double *sums, const struct ki_scales *scales) {
    struct FN(scales) work = {.scales = scales};
    const kiln_matrix *square = scales->square;
    ki_parallel(square->rows > 16384 ? square->device->threads : 1, FN(SCALES_PARTS), FN(scales_part), &work);
    if (!sums) return;
    memset(sums, 0, KI_SCALES_SUMS * sizeof *sums);
    for (int part = 0; part < FN(SCALES_PARTS); part++)
        for (int i = 0; i < KI_SCALES_SUMS; i++) sums[i] += work.sums[part][i];
}
