/* Passes over the entries of a sparse matrix, each with its row of A and its row of B, k numbers wide. */
#ifndef KI_SDDMM_H
#define KI_SDDMM_H

#include "kiln/half.h"
#include "core/matrix.h"

enum { KI_SAMPLE_COLUMNS = 4096, KI_SAMPLE_PARTS = 256 };
/* Kinds of sample that are the library's own (dialect/real_math.h): of implicit ratings, with alpha in the
 * place of the floor. */
enum {
    KI_SAMPLE_WANTED = 5,
    KI_SAMPLE_SEEN = 6,
    KI_SAMPLE_WANTED_PROPORTIONAL = 7,
    KI_SAMPLE_SEEN_PROPORTIONAL = 8
};

/* q = f(value, a . b) for each entry; then out = alpha q + beta out where P is wanted, row i of Y = alpha
 * (sum of q b) + beta Z. By rows of S, or, with A and B exchanged, by its columns. */
struct ki_sampled {
    int kind; /* kiln_sample_kind, or one of the library's own; 0: q is the value, and there is no A */
    const kiln_matrix *S;
    int64_t rows, nnz, k;
    const struct ki_buffer *start, *col, *value; /* of S */
    bool by_columns, short_starts;               /* short_starts: of 32 bits */
    int halves; /* kiln_half_type: A and B are words of such numbers, k of them a row; 0: matrices of S's
                 * type */
    const kiln_matrix *A, *B, *Z;
    kiln_matrix *P, *Y; /* either may be NULL */
    double alpha, beta, floor;
    const struct ki_sampled_plan *plan; /* of a GPU; NULL: the best predicted one */
    double *sum;                        /* or NULL. On the CPU: of each of KI_SAMPLE_PARTS parts, set to 0 */
};

/* Says how a GPU takes the entries: VS threads of BS share a row of a factor, Q pieces of W numbers each, R
 * entries at a time, `width` of the k numbers in a pass over all entries. */
struct ki_sampled_plan {
    int VS, BS, Q, W, R;
    bool ahead; /* rows of A are loaded for each entry, with those of B; otherwise when a row begins */
    int64_t width;
    int64_t groups,
        each;     /* of a launch; predicted: entries of a vector; launched: quarters of shares of a vector, */
    int64_t more; /* and vectors that have one more */
    double bytes, seconds; /* predicted */
    const char *limit;
};

/* Holds what the launch model goes by. */
struct ki_sampled_shape {
    int64_t rows, cols, nnz, k;
    kiln_type type;
    bool halves;    /* the factors are of half precision */
    bool has_place; /* for what is half added up: products may be taken in slices */
};

enum { KI_SAMPLED_PLANS = 64 };
/* The ways of the device for kiln_sddmm, the best predicted one first; returns how many.
 * ops/sampled/sddmm_plans.c */
int ki_sampled_plans(struct ki_sampled_plan plans[KI_SAMPLED_PLANS], const kiln_device *device,
                     const struct ki_sampled_shape *shape);
/* The way to add up rows of Y of `type`, `width` numbers at a time. halves: of factors of half precision. */
struct ki_sampled_plan ki_sampled_layout(int64_t k, int64_t width, kiln_type type, bool halves);

/* Checked operands. plan NULL: the best predicted one. ops/sampled/sddmm_gpu.c */
kiln_status ki_sampled_gpu(const struct ki_sampled *sampled, const kiln_matrix *S,
                           const struct ki_sampled_plan *plan);
/* Y = alpha op(S) B + beta Z for checked operands, S in memory; ERR_DEVICE_NOMEM, ERR_NOMEM and ERR_LIMIT
 * leave Y as it was. */
kiln_status ki_sampled_multiply(kiln_matrix *Y, double alpha, kiln_transpose op, const kiln_matrix *S,
                                const kiln_matrix *B, double beta, const kiln_matrix *Z);

#endif
