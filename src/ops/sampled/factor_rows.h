/* A checked problem of kiln_factor_solve or kiln_factor_loss, as the bodies take it. */
#ifndef KI_FACTOR_ROWS_H
#define KI_FACTOR_ROWS_H

#include "kiln/factors.h"

/* SOLVE writes A, LOSS to `loss`. */
enum ki_factor_task { KI_FACTOR_SOLVE_CG = 1, KI_FACTOR_SOLVE_CHOLESKY = 2, KI_FACTOR_LOSS = 3 };

struct ki_factor_rows {
    enum ki_factor_task task;
    kiln_factor_rows given;
    kiln_matrix *A;
    int parts;         /* of a loss: KILN_FACTOR_FIT | KILN_FACTOR_PENALTY */
    int64_t tile;      /* entries whose rows of B lie side by side */
    double *loss;      /* LOSS */
    double *each;      /* CPU: each row's part of it */
    int pieces;        /* CPU: of the rows, each with its space */
    int64_t *cut;      /* pieces + 1 beginnings */
    void *space;       /* all pieces' */
    int64_t space_one; /* bytes of one, a multiple of 64 */
};

kiln_status ki_factor_rows_gpu(const struct ki_factor_rows *rows); /* ops/sampled/factor_rows_gpu.c */
/* Bytes that it takes beside its operands, at most. */
int64_t ki_factor_rows_work(const struct ki_factor_rows *rows);

#endif
