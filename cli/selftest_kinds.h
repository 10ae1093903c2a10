/* The checks of each kind of kernel share these: a problem, operands on the device, and answers with
 * what they should be.
 *
 * A check is one function. It makes its operands, calls the library, takes the results, and says by plain
 * loops in double what each element should be, as a sum of terms. Elements have the order in which they
 * were taken. */
#ifndef CLI_SELFTEST_KINDS_H
#define CLI_SELFTEST_KINDS_H

#include <stdint.h>

#include "selftest.h"

/* Every third element of X is not zero; 301 and 67 are odd sizes. */
enum { ROWS = 301, COLS = 67, PICKED = 3, FACTORS = 4, WIDE_ROWS = 9, WIDE = 2048, ANSWERS = 8192 };

struct problem {
    double X[ROWS][COLS], v[ROWS], y[COLS], z[COLS];
    double more[WIDE_ROWS * WIDE]; /* for operands of other shapes */
};

struct bench {
    kiln_device *device;
    kiln_type type;
    kiln_format format; /* of X */
    kiln_status status; /* the first that was not KILN_OK: the calls after it are left out */
    const struct problem *p;
    kiln_matrix *made[24];
    int made_count;
    double want[ANSWERS], terms[ANSWERS], got[ANSWERS];
    int answers;
};

/* The call, unless one has failed. */
#define RUN(bench, call)                                                                                     \
    do {                                                                                                     \
        if ((bench)->status == KILN_OK) (bench)->status = (call);                                            \
    } while (0)

/* Operands, which the bench frees; NULL where something has failed. */
kiln_matrix *bench_X(struct bench *bench); /* in the bench's format */
kiln_matrix *bench_csr(struct bench *bench, int64_t rows, int64_t cols, const double *dense);
kiln_matrix *bench_dense(struct bench *bench, int64_t rows, int64_t cols, const double *values);
kiln_matrix *bench_empty(struct bench *bench, int64_t rows, int64_t cols);
kiln_matrix *bench_like(struct bench *bench, const kiln_matrix *pattern); /* of its structure */
/* It has the device's widest type. */
kiln_matrix *bench_scalars(struct bench *bench, int64_t rows, int64_t cols, const double *values);

/* Adds the elements of a matrix, or `count` numbers, to the answers; their number before that is returned. */
int bench_take(struct bench *bench, const kiln_matrix *result);
int bench_numbers(struct bench *bench, const double *numbers, int count);
/* Element e is a sum with this term, of this size: what rounding may change of it is as large as that of
 * the size. */
void bench_sized(struct bench *bench, int e, double term, double size);
void bench_term(struct bench *bench, int e, double term); /* whose size is its own */
/* One answer more: `value`, which should be 0 and may be as large as `limit`. */
void bench_judge(struct bench *bench, double value, double limit);
double bench_allowed(kiln_type type);

struct kind {
    const char *operation, *says;
    void (*run)(struct bench *bench);
    bool sparse, dense;
};
/* Each list ends with a kind without a name. */
extern const struct kind product_kinds[], vector_kinds[], loss_kinds[], point_kinds[], factor_kinds[],
    graph_kinds[];

#endif
