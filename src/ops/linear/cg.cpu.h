/* CPU body of kiln_cg_step and kiln_cg_begin (ops/linear/cg.c). The rows are cut into a fixed number of parts
 * whose sums are added in order, so the result does not depend on the number of threads. */

enum { FN(CG_PARTS) = 64 };
enum FN(cg_phase) { FN(CG_UPDATE), FN(CG_DIRECTION) };

/* alpha 0: E and G stay; beta below 0: finished, P becomes 0. */
struct FN(cg) {
    const struct ki_cg *step;
    enum FN(cg_phase) phase;
    double alpha[KI_CG_COLUMNS], beta[KI_CG_COLUMNS], excess[KI_CG_COLUMNS];
    double part[FN(CG_PARTS)][2][KI_CG_COLUMNS]; /* the new rho and mean . (inverse .* G), or P . L P */
};

ALWAYS_INLINE void FN(cg_row)(const struct FN(cg) * cg, enum FN(cg_phase) phase, int64_t i,
                              double sum[2][KI_CG_COLUMNS]) {
    const kiln_cg *on = &cg->step->on;
    const bool begin = cg->step->slot == KI_CG_BEGIN;
    const int64_t k = on->P->cols;
    const real scale = on->inverse ? VALUES(on->inverse)[i] : 1, mean = on->mean ? VALUES(on->mean)[i] : 0;
    const real penalty = on->penalty ? VALUES(on->penalty)[i] : (real)on->l2;
    real *E = VALUES(on->E) + i * k, *G = VALUES(on->G) + i * k;
    real *P = VALUES(on->P) + i * k, *Q = VALUES(on->Q) + i * k;
    for (int64_t c = 0; c < k; c++) {
        const real alpha = (real)cg->alpha[c];
        if (phase == FN(CG_UPDATE)) {
            if (begin) E[c] = 0;
            if (alpha != 0) {
                E[c] += alpha * P[c];
                G[c] -= alpha * (Q[c] - mean * (real)cg->excess[c]);
            }
            sum[0][c] += (double)G[c] * (double)(scale * G[c]);
            sum[1][c] += (double)mean * (double)(scale * G[c]);
        } else {
            const real former = begin ? 0 : P[c];
            P[c] = cg->beta[c] < 0 ? 0 : scale * G[c] + (real)cg->beta[c] * former;
            Q[c] = penalty * P[c];
            sum[0][c] += (double)P[c] * (double)Q[c];
        }
    }
}

static void FN(cg_part)(void *arg, int part) {
    struct FN(cg) *cg = arg;
    const int64_t n = cg->step->on.P->rows, end = ki_part_begin(n, part + 1, FN(CG_PARTS));
    memset(cg->part[part], 0, sizeof cg->part[part]);
    for (int64_t i = ki_part_begin(n, part, FN(CG_PARTS)); i < end; i++) {
        if (cg->phase == FN(CG_UPDATE))
            FN(cg_row)(cg, FN(CG_UPDATE), i, cg->part[part]);
        else
            FN(cg_row)(cg, FN(CG_DIRECTION), i, cg->part[part]);
    }
}

/* One phase over all rows, and the sums of its parts. */
static void FN(cg_run)(struct FN(cg) * cg, enum FN(cg_phase) phase, double total[2][KI_CG_COLUMNS]) {
    const kiln_matrix *P = cg->step->on.P;
    cg->phase = phase;
    ki_parallel(P->nnz > 16384 ? P->device->threads : 1, FN(CG_PARTS), FN(cg_part), cg);
    memset(total, 0, sizeof(double[2][KI_CG_COLUMNS]));
    for (int part = 0; part < FN(CG_PARTS); part++)
        for (int64_t c = 0; c < P->cols; c++) {
            total[0][c] += cg->part[part][0][c];
            total[1][c] += cg->part[part][1][c];
        }
}

void FN(cg_step)(const struct ki_cg *step) {
    const kiln_cg *on = &step->on;
    struct FN(cg) cg = {.step = step};
    const int64_t k = on->P->cols;
    const bool begin = step->slot == KI_CG_BEGIN;
    double *S = ki_host(&on->S->values), total[2][KI_CG_COLUMNS], curvature[KI_CG_COLUMNS];
    for (int64_t c = 0; !begin && on->mean && c < k; c++) cg.excess[c] = VALUES(on->sums)[c];
    for (int64_t c = 0; !begin && c < k; c++) {
        curvature[c] = ((const double *)ki_host(&on->curvature->values))[c] + S[CG_PENALTY * k + c];
        cg.alpha[c] = cg_alpha(S[CG_RHO * k + c], S[CG_ACTIVE * k + c], curvature[c]);
    }
    FN(cg_run)(&cg, FN(CG_UPDATE), total);
    for (int64_t c = 0; c < k; c++) {
        double column[CG_ROWS];
        for (int row = 0; row < CG_ROWS; row++) column[row] = S[row * k + c];
        const double rho = column[CG_RHO], next = total[0][c];
        if (begin)
            column[CG_RHO] = next;
        else
            cg_settle_column(column, curvature[c], next);
        cg.beta[c] = column[CG_ACTIVE] == 0 ? -1 : begin ? 0 : next / rho;
        if (on->mean && cg.beta[c] <= 0)
            VALUES(on->shift)[c] = 0; /* and what it holds now may be no number */
        if (on->mean && cg.beta[c] >= 0)
            VALUES(on->shift)[c] = (real)cg.beta[c] * VALUES(on->shift)[c] - (real)total[1][c];
        for (int row = 0; row < CG_ROWS; row++) S[row * k + c] = column[row];
        if (begin) continue;
        S[(CG_ROWS + 2 * step->slot) * k + c] = column[CG_RHO];
        S[(CG_ROWS + 2 * step->slot + 1) * k + c] = column[CG_DECREASE];
    }
    FN(cg_run)(&cg, FN(CG_DIRECTION), total);
    for (int64_t c = 0; c < k; c++) S[CG_PENALTY * k + c] = total[0][c];
}
