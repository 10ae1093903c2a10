/* This header says what an operation's case file provides, and what it gets to work with.
 *
 * cases/<op>.c describes an operation once: the problems worth trying, how operands are made for one, the
 * call, its reference (in the file itself, or in reference.h where several need it), what it must refuse, and
 * the flops and bytes it costs. The conformance suite runs every problem on every device and every refusal;
 * the benchmark runs the same description at one large shape, and faults/operations.c small ones in which
 * each allocation fails.
 * All know the library through kiln.h, and the few operations that are not public through their own
 * headers. */
#ifndef CONFORMANCE_CASES_H
#define CONFORMANCE_CASES_H

#include <math.h>
#include <stdbool.h>

#include "kiln.h"
#include "reference.h"

/* Returns a failing status to the caller. */
#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        kiln_status check_status = (call);                                                                   \
        if (check_status != KILN_OK) return check_status;                                                    \
    } while (0)

/* The stored entries of X are at these places. */
#define PATTERN_LIST(X)                                                                                      \
    X(UNIFORM)       /* row lengths vary around per_row, columns spread evenly */                            \
    X(DENSE)         /* every entry; the only pattern of dense matrices */                                   \
    X(NO_ENTRIES)    /* nnz = 0 */                                                                           \
    X(EMPTY_ROWS)    /* first, last and two of three rows are empty */                                       \
    X(EMPTY_COLUMNS) /* first, last and two of three columns are empty */                                    \
    X(DENSE_ROW)     /* one full row among sparse ones */                                                    \
    X(HOT_COLUMN)    /* one column that every row has */                                                     \
    X(POWER_LAW)     /* few long rows, many short ones */                                                    \
    X(ZIPF)          /* few popular columns, as words in texts */                                            \
    X(UNSORTED)      /* columns in any order within a row */                                                 \
    X(CODES)         /* numbers and categories, which a CPU keeps as codes: see codes.c */
enum pattern {
#define PATTERN_ENUM(name) PATTERN_##name,
    PATTERN_LIST(PATTERN_ENUM)
#undef PATTERN_ENUM
};

/* Variations of a call; each operation uses those that mean something to it. */
#define FLAG_LIST(X)                                                                                         \
    X(V, 0)          /* with v, one column */                                                                \
    X(V_BLOCK, 1)    /* with v, k columns */                                                                 \
    X(Z, 2)          /* with z, a matrix of its own */                                                       \
    X(Z_ALIAS, 3)    /* with z, the destination */                                                           \
    X(Z_NAN, 4)      /* with z full of NaN and beta = 0 */                                                   \
    X(TRANSPOSED, 5) /* op(A) = A^T */                                                                       \
    X(ONES, 6)       /* CSR without values */                                                                \
    X(X_COLUMN, 7)   /* X has one column, used for all */                                                    \
    X(Y_COLUMN, 8)   /* so has Y */                                                                          \
    X(NO_Y, 9)       /* Y = NULL */                                                                          \
    X(X_ALIAS, 10)   /* X is the destination */                                                              \
    X(Y_ALIAS, 11)   /* Y is the destination */                                                              \
    X(X_NAN, 12)     /* combine: X full of NaN, its coefficients 0; else one NaN in X */                     \
    X(Y_NAN, 13)     /* so with Y */                                                                         \
    X(SPECIAL, 14)   /* zeros, infinities, NaN, huge and tiny values among the others */                     \
    X(NORMAL, 15)    /* normal distribution */                                                               \
    X(WEIGHTS, 16)   /* losses: with weights of the rows, */                                                 \
    X(OFFSET, 17)    /* with offsets, */                                                                     \
    X(SHIFT, 18)     /* with an intercept, */                                                                \
    X(SUMS, 19)      /* and its part of the result */                                                        \
    X(CURVATURE, 20) /* and the curvature wanted */                                                          \
    X(X_INF, 21)     /* an infinity in CSR X, the last entry of the middle row */                            \
    X(BOUNDS, 22)    /* assign: with bounds from a pass over the same centres in another order */            \
    X(CERTAIN, 23)   /* losses: every row as good as certain of its class: what is left is next to 0 */
enum flag {
#define FLAG_ENUM(name, bit) WITH_##name = 1 << bit,
    FLAG_LIST(FLAG_ENUM)
#undef FLAG_ENUM
};

struct problem {
    kiln_format format;
    enum pattern pattern;
    int64_t rows, cols, per_row; /* of X; per_row: mean entries in a row, ignored for full patterns */
    int64_t k;
    unsigned flags;
    int kind;         /* of map, norm or loss */
    int family, link; /* of the loss of a generalised linear model */
    double alpha, beta;
};

enum { MOST_COLUMNS = 1030 }; /* of y and of what is as wide, in any case */

struct problem_list {
    struct problem *problems;
    int64_t count;
    int64_t entries_max; /* problems with more entries times k are left out */
    bool thin;           /* fewer widths: for devices that take long to build a kernel for each */
    bool sampled;        /* one problem of four, always the same ones */
};
void problem_add(struct problem_list *list, struct problem problem);
/* e.g. "csr HOT_COLUMN 300x1000 k=3 alpha=1 beta=0.5 V Z_ALIAS" */
void problem_describe(char *text, size_t bytes, const struct problem *problem);

/* A matrix on the device and the host's copy of what it was made from. */
struct operand {
    struct host_matrix host;
    kiln_matrix *matrix;
    bool alias; /* of the destination, which owns both */
};

struct work {
    const struct problem *problem;
    kiln_device *device;
    kiln_type type;
    struct operand X, v, y, z, w;                  /* w is the destination; unused ones stay zero */
    struct operand target, weights, offset, shift; /* losses: y, s, offset and b of kiln_loss_gradient */
    struct operand sums, curvature;                /* further destinations */
    double coefficients[2 * MOST_COLUMNS];
    void *own; /* whatever else an operation needs; free_own frees it */
    void (*free_own)(void *own);
    double
        scalars[MOST_COLUMNS + 1]; /* results of operations that return numbers; the last one is a canary */
};

/* Says what an operation may have computed, each with an expectation of its own. */
enum result { RESULT_W, RESULT_SUMS, RESULT_CURVATURE, RESULT_SCALARS, RESULTS };
/* NULL for the scalars. */
struct operand *work_result(struct work *work, enum result result);

struct check_context;
struct refusal_set;

struct operation {
    const char *name; /* that of its file */
    void (*list)(struct problem_list *list);
    kiln_status (*prepare)(struct work *work);
    kiln_status (*run)(struct work *work);
    void (*expect)(struct expected expected[RESULTS], const struct work *work); /* unused ones stay zero */
    double (*flops)(const struct work *work);
    double (*bytes)(const struct work *work); /* that must move: each operand once */
    /* Calls that must be refused, each in REFUSED of refusals.h; NULL where tests/algorithms has them. */
    void (*refuse)(struct check_context *context, struct refusal_set *set);
    /* The benchmark fills a shape into this; k = 0: the columns are the k of an element-wise operation. */
    struct problem benchmark;
    bool atomics; /* documented: CSR on a GPU may differ in the last bits from run to run */
};
extern const struct operation *const operations[]; /* ends with NULL */

/* ---- making operands (inputs.c). Values come from Philox, so that a problem is the same everywhere. ---- */

kiln_status make_X(struct work *work);
/* Uniform in [-1, 1), rounded to the type. */
kiln_status make_random(struct work *work, struct operand *A, int64_t rows, int64_t cols);
kiln_status make_filled(struct work *work, struct operand *A, int64_t rows, int64_t cols, double value);
/* Full of NaN, so that an element not written shows. */
kiln_status make_output(struct work *work, int64_t rows, int64_t cols);
kiln_status make_result(struct work *work, enum result result, int64_t rows, int64_t cols);
void make_alias(struct work *work, struct operand *A);
/* Host arrays for a rows x cols dense operand with zeros, and the matrix made from them. */
void host_new(struct operand *A, kiln_type type, int64_t rows, int64_t cols);
kiln_status operand_upload(struct work *work, struct operand *A);
/* Fetches the values of the operands that were made on the device, which a reference needs. */
kiln_status work_fetch(struct work *work);
void operand_free(struct operand *A);
void work_free(struct work *work);
/* The host arrays of an X of PATTERN_CODES, and the matrix. */
kiln_status make_codes(struct work *work);
/* The host arrays of a sparse X. */
void make_csr(struct host_matrix *X, const struct problem *problem, kiln_type type);
double random_uniform(uint64_t stream, uint64_t index); /* in [0, 1) */
/* Seed of all values; the benchmark and the suite leave it alone. */
enum { SEED = 20150207 };
/* An operand with more elements than this is filled on the device. */
enum { HOST_MADE_MAX = 1 << 24 };

static inline double operand_bytes(const struct operand *A) {
    double element = A->host.type == KILN_F32 ? 4 : 8;
    if (!A->matrix) return 0;
    if (!A->host.row_start) return element * (double)A->host.nnz;
    return (element + 4) * (double)A->host.nnz + 8 * (double)(A->host.rows + 1);
}

/* ---- checks that are not of the form "one call against its reference" ---- */

struct check_context {
    kiln_device *device;
    const char *device_name;
    kiln_type type;
    int64_t passed, failed;
    bool verbose;
};
/* Counts a result, and prints it if it failed. */
void check_report(struct check_context *context, bool passed, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

struct check {
    const char *name;
    void (*run)(struct check_context *context);
    const char *only_cpu; /* why other devices have nothing to check; NULL: they have */
    bool single;          /* checks operations that cannot be split over a group of devices */
};
extern const struct check *const checks[]; /* ends with NULL */

#endif
