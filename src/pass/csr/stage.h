/* A stage of a pass over a sparse X on a GPU: one multiplication of all rows of X, or of its transpose, for K
 * columns of y. */
#ifndef KI_PASS_STAGE_H
#define KI_PASS_STAGE_H

#include "pass/csr/csr.h"

/* A sparse matrix as the kernels see it. */
struct ki_csr {
    const struct ki_buffer *start, *col, *values; /* values: NULL if all are `same` */
    double same;
    int64_t rows;
    const struct ki_rows *lists;
    bool coded;      /* col has ~rank for popular columns (derived/popular.c) */
    bool transposed; /* X's transpose, whose starts are of 32 bits */
    bool bands;      /* cut into bands of X's rows, which are the columns here */
};

/* Says which entries are multiplied with y, or scattered into w: the others' turn comes elsewhere. Numbers as
 * in csr.cl. */
enum ki_csr_part { KI_PART_NONE, KI_PART_POPULAR, KI_PART_ALL };

/* Columns of a dense operand, from `first` on, of k. */
struct ki_columns_of {
    const struct ki_buffer *values;
    int k, first;
};

struct ki_stage {
    const struct ki_chain *chain;
    enum ki_chain_kind kind; /* the chain's, but PLAIN for the transpose */
    struct ki_plan plan;
    struct ki_csr A;
    enum ki_csr_part dots_of, sums_of;
    int chip_y; /* rows of y in local memory, beside plan.shared_w of w; K elements each */
    struct ki_columns_of y, out;
    const struct ki_buffer *z;
    double alpha, beta;
    /* Work space; empty where it is not needed. Of popular columns, by rank; and of rows, K elements each:
     * what their dot products begin with, and what multiplies X^T. */
    struct ki_buffer y_hot, w_hot, dots, factors;
};

/* Groups that would run the rows that are in no list. */
kiln_status ki_stage_groups(int64_t *groups, const struct ki_stage *stage);
/* Lists the kernel of those rows. */
void ki_stage_program(struct ki_programs *programs, const struct ki_stage *stage);
/* All rows; with a map, their records too. */
kiln_status ki_stage_run(struct ki_stage *stage, struct ki_work *work);

/* Work spaces of the device (core/memory.h). */
enum { KI_SPACE_Y_HOT, KI_SPACE_W_HOT, KI_SPACE_DOTS, KI_SPACE_FACTORS, KI_SPACE_PARTIALS, KI_SPACE_BANDS };

#endif
