/* CPU body of kiln_cg_step (ops/cg.c). The rows are cut into a fixed number of parts whose sums are added in order, so the
 * result does not depend on the number of threads. */

enum { FN(CG_PARTS) = 64 };

struct FN(cg) {
    const struct ki_cg *step;
    int phase; /* 0: P . Q; 1: E, G and rho; 2: P */
    double alpha[KI_CG_COLUMNS], beta[KI_CG_COLUMNS];
    double part[FN(CG_PARTS)][KI_CG_COLUMNS];
};

static void FN(cg_part)(void *arg, int part) {
    struct FN(cg) *cg = arg;
    const struct ki_cg *s = cg->step;
    const int64_t k = s->P->cols, end = ki_part_begin(s->P->rows, part + 1, FN(CG_PARTS));
    const real *Q = VALUES(s->Q), *inverse = s->inverse ? VALUES(s->inverse) : NULL;
    real *E = VALUES(s->E), *G = VALUES(s->G), *P = VALUES(s->P);
    double *sum = cg->part[part];
    memset(sum, 0, (size_t)k * sizeof *sum);
    for (int64_t i = ki_part_begin(s->P->rows, part, FN(CG_PARTS)); i < end; i++)
        for (int64_t c = 0, at = i * k; c < k; c++, at++) {
            const real alpha = (real)cg->alpha[c], scale = inverse ? inverse[i] : 1;
            if (cg->phase == 0) {
                sum[c] += (double)P[at] * (double)Q[at];
            } else if (cg->phase == 1) {
                if (alpha != 0) {
                    E[at] += alpha * P[at];
                    G[at] -= alpha * Q[at];
                }
                sum[c] += (double)G[at] * (double)(scale * G[at]);
            } else {
                P[at] = cg->beta[c] < 0 ? 0 : scale * G[at] + (real)cg->beta[c] * P[at];
            }
        }
}

/* One phase over all rows; total, if given, receives the sums. */
static void FN(cg_phase)(struct FN(cg) * cg, int phase, double *total) {
    const kiln_matrix *P = cg->step->P;
    cg->phase = phase;
    ki_parallel(P->nnz > 16384 ? P->device->threads : 1, FN(CG_PARTS), FN(cg_part), cg);
    for (int64_t c = 0; total && c < P->cols; c++) {
        total[c] = 0;
        for (int part = 0; part < FN(CG_PARTS); part++) total[c] += cg->part[part][c];
    }
}

static void FN(cg_step)(const struct ki_cg *step) {
    struct FN(cg) cg = {.step = step};
    const int64_t k = step->P->cols;
    double *S = ki_host(&step->S->values), curvature[KI_CG_COLUMNS], next[KI_CG_COLUMNS];
    FN(cg_phase)(&cg, 0, curvature);
    for (int64_t c = 0; c < k; c++)
        cg.alpha[c] = cg_alpha(S[CG_RHO * k + c], S[CG_ACTIVE * k + c], curvature[c]);
    FN(cg_phase)(&cg, 1, next);
    for (int64_t c = 0; c < k; c++) {
        double column[CG_ROWS];
        const double rho = S[CG_RHO * k + c];
        for (int row = 0; row < CG_ROWS; row++) column[row] = S[row * k + c];
        cg_settle_column(column, curvature[c], next[c]);
        cg.beta[c] = column[CG_ACTIVE] != 0 ? next[c] / rho : -1; /* below 0: finished */
        for (int row = 0; row < CG_ROWS; row++) S[row * k + c] = column[row];
        S[(CG_ROWS + 2 * step->slot) * k + c] = column[CG_RHO];
        S[(CG_ROWS + 2 * step->slot + 1) * k + c] = column[CG_DECREASE];
    }
    FN(cg_phase)(&cg, 2, NULL);
}
