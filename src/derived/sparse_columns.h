/* Columns of a sparse matrix on the CPU, copied when they are first asked for and kept: for what goes through
 * the same few of them again and again (newton_descent.c). */
#ifndef KI_OPS_SPARSE_COLUMNS_H
#define KI_OPS_SPARSE_COLUMNS_H

#include "derived/select.h"

struct ki_bodies;

struct ki_sparse_columns {
    const struct ki_selector *selector;
    const struct ki_bodies *bodies;
    int64_t *begin; /* n: where a column's entries begin, -1 = it is not there yet */
    int64_t used;   /* entries */
    int32_t *row;
    double *value;
    /* The columns last taken, side by side: scattered among the others they would not stay in the
     * second-level cache. */
    int32_t *near_row;
    double *scaled;
};

struct ki_sparse_column {
    int64_t from, count;
    int32_t *row;   /* ascending */
    double *scaled; /* the values, times a factor of the row's */
};

/* The selector has to stay. */
kiln_status ki_sparse_columns_open(struct ki_sparse_columns *columns, const struct ki_selector *selector);
void ki_sparse_columns_close(struct ki_sparse_columns *columns);
/* taken[a]: column chosen[a], in ascending order, until the next call; to be scaled. A pass over X if one of
 * them is not there yet. */
kiln_status ki_sparse_columns_take(struct ki_sparse_column *taken, struct ki_sparse_columns *columns,
                                   const int32_t *chosen, int64_t count);
/* Fills them in: scaled = q .* value; square[a] = sum scaled^2 and product[a] = sum scaled q. */
void ki_sparse_columns_scale(const struct ki_sparse_columns *columns, const struct ki_sparse_column *taken,
                             int64_t count, const double *q, double *square, double *product);
/* Sum of scaled .* r. */
double ki_sparse_column_dot(const struct ki_sparse_columns *columns, const struct ki_sparse_column *column,
                            const double *r);
/* r += step * scaled. */
void ki_sparse_column_add(double *r, const struct ki_sparse_columns *columns,
                          const struct ki_sparse_column *column, double step);

/* Asks for the beginning of a column that will be wanted soon: columns in random order are not where the
 * hardware looks. */
void ki_sparse_column_ask(const struct ki_sparse_column *column);

/* Products with columns taken[at[0]] ... taken[at[count - 1]] on all threads. dot[i] = sum of scaled .* r. */
void ki_sparse_columns_dot(double *dot, const struct ki_sparse_columns *columns,
                           const struct ki_sparse_column *taken, const int32_t *at, int64_t count,
                           const double *r);
/* sum[0 ... m - 1] = sum over i of x[i] * scaled. `sum` has room for m of each part; ki_sparse_columns_parts
 * says how many of them pay where the columns have so many entries, whatever the number of threads: each part
 * is added up on its own. */
int ki_sparse_columns_parts(const struct ki_sparse_columns *columns, int64_t entries);
void ki_sparse_columns_sum(double *sum, int parts, const struct ki_sparse_columns *columns,
                           const struct ki_sparse_column *taken, const int32_t *at, int64_t count,
                           const double *x);

#endif
