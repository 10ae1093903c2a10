/* The room that algorithms share. They compute through kiln.h's operations, and through a few of
 * ops/ and derived/ that are not public, whose headers are included where they are called:
 * docs/architecture.md says why. */
#ifndef KI_ALGORITHM_H
#define KI_ALGORITHM_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/each.h"
#include "core/random.h"
#include "core/range.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/status.h"
#include "kiln.h"

enum { KI_BLOCK = 64 }; /* columns that kiln_cg_step takes; more targets are solved block by block */

/* Returns what kiln_gram counts for in a report. */
static inline int64_t ki_gram_passes(int64_t n) {
    return (n + 63) / 64;
}

static inline double ki_epsilon(kiln_type type) {
    return type == KILN_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* A column whose spread is no more than that part of its mean counts as constant: rounding takes its part of
 * X w + b, whatever w is. */
static inline double ki_flat(kiln_type type) {
    return 16 * ki_epsilon(type);
}

/* Dense matrices between host and device as doubles, whatever the device's type. */
kiln_status ki_vector_get(double *values, const kiln_matrix *A);
/* Takes rows [first, first + count) of one column. */
kiln_status ki_vector_part(double *values, const kiln_matrix *A, int64_t first, int64_t count);
kiln_status ki_vector_set(kiln_matrix *A, double *values); /* for f32 narrows them where they are */
/* to = from, which has to's shape, or one column that each of to's becomes. */
static inline kiln_status ki_copy(kiln_matrix *to, const kiln_matrix *from) {
    return kiln_combine_from(to, NULL, from, NULL, NULL);
}
kiln_status ki_vector_new(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t count,
                          const double *values);

/* checks.c: ERR_ARGUMENT unless A is dense, rows x cols, and of X's device and type; ERR_DATA where an entry
 * is not finite, or, of weights, negative. */
kiln_status ki_check_matrix(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *X,
                            int64_t rows, int64_t cols);
kiln_status ki_check_finite(const char *call, const char *name, const kiln_matrix *A, bool negative);
kiln_status ki_check_weights(const char *call, const kiln_matrix *weights);
/* *column: the first one of a dense A with a number below 0; -1: none has one. */
kiln_status ki_find_negative(int64_t *column, const kiln_matrix *A);
/* ERR_ARGUMENT unless both are >= 0, the default at 0. */
kiln_status ki_check_iteration(const char *call, double tolerance, int64_t max_iterations);
/* ERR_ARGUMENT unless a penalty's strength, or epsilon, is finite and >= 0. */
kiln_status ki_check_strength(const char *call, const char *field, double given);
int64_t ki_bytes_of(const kiln_matrix *X); /* that one pass over X reads */

/* Columns that count as constant, and yet are not. */
struct ki_flats {
    int64_t count, first; /* how many; the first one's number */
    double centred;       /* the sum over them of sum_i s_i (x_ij - mean_j)^2 */
};

struct ki_arena;

/* Weighted moments of X's columns, n x 1 each on X's device, an arena's; see moments.c. */
struct ki_moments {
    double weight;       /* sum of the weights */
    kiln_matrix *square; /* sum_i s_i x_ij^2 */
    kiln_matrix *mean;   /* sum_i s_i x_ij / weight */
    kiln_matrix
        *centred; /* sum_i s_i (x_ij - mean_j)^2; exactly 0 for a column that is constant, but for ki_flat */
    struct ki_flats flats;
    bool rough; /* asked for: centred of a sparse X may be rounding where it is small */
    /* asked for, where it costs no pass more: right = sum_i s_i (y_i - d) x_ij, y m x 1; else right stays
     * NULL */
    const kiln_matrix *y;
    double d;
    kiln_matrix *right;
    int64_t passes; /* that it took */
};
/* weights m x 1, their sum `weight`. ERR_DATA names a column with NaN or infinite values. */
kiln_status ki_moments_measure(struct ki_moments *moments, struct ki_arena *arena, const kiln_matrix *X,
                               const kiln_matrix *weights, double weight);
/* ERR_DATA: column j of X has what is said there, in the range of X's type, which follows. */
kiln_status ki_fail_column(const kiln_matrix *X, int64_t j, const char *what);
#define KI_PENALTY_OUT_OF_RANGE "values whose squares, with the penalty, leave the range of"

/* The same on the host, n of each, an arena's. */
struct ki_columns {
    double weight;
    double *square, *mean;
    double *variance; /* centred / weight */
    struct ki_flats flats;
};
/* *moments says what is asked for, and keeps its right and passes. */
kiln_status ki_columns_measure(struct ki_columns *columns, struct ki_moments *moments, struct ki_arena *arena,
                               const kiln_matrix *X, const kiln_matrix *weights, double weight);
/* Without an intercept, where no column with a spread of 0 has a penalty: the first of them has all that they
 * can do, and the others count as 0 from here on. Two of them are alike but for rounding, which a fit in f32
 * would otherwise take for data. Nothing changes where all of these are constant to the last digit. */
void ki_columns_one_constant(struct ki_columns *columns, int64_t cols);

enum { KI_FIGURES = 16 }; /* the most that a report holds */
/* Room for figures, to be made before work begins, so that nothing fails once there is a result. */
kiln_status ki_report_begin(kiln_report *report);
/* name: a literal, and new. */
void ki_report_figure(kiln_report *report, const char *name, double value);
/* The figure "setbacks": rows of the trace behind `first` whose objective is worse than the row's before, by
 * more than rounding, of one that no iteration makes worse; sign 1: that falls, -1: rises. squares: of the
 * numbers whose differences' squares the objective f adds up; a difference that is off by a unit e of them
 * makes 2 sqrt(f squares) e + squares e^2 of f at most (Cauchy and Schwarz), far less than units of the
 * start's objective where the fit is good. 0: f is another sum, known to units of that and of `terms`, which
 * may take each other off: what the largest of them adds up to. */
void ki_report_setbacks(kiln_report *report, double sign, int64_t first, kiln_type type, double squares,
                        double terms);
/* name, hint: literals. A name that is there already says nothing new: of several problems, the first
 * speaks. */
void ki_report_warn(kiln_report *report, const char *name, const char *hint, const char *format, ...)
    KI_PRINTF(4, 5);
/* The warning "rank" of a fit without a penalty, where X's columns (centred, under an intercept) depend on
 * each other. */
void ki_report_rank(kiln_report *report, int64_t rank, int64_t columns);
/* The warning "constant" of a fit with an intercept, or standardised: columns that count as constant. */
void ki_report_flats(kiln_report *report, const struct ki_flats *flats, kiln_type type);
kiln_status ki_report_row(kiln_report *report, const kiln_trace_row *row); /* appends to the trace */
/* The caller's report = ours, with all that it owns; to may be NULL. KI_CHECK_RESULT has accepted it. */
void ki_report_give(kiln_report *to, kiln_report *from);
/* The same of an algorithm whose objective is finite where it has converged; else the run has diverged. */
kiln_stop ki_stop_worse(kiln_stop a, kiln_stop b); /* of a report's parts the one to be told */
void ki_report_hand_over(kiln_report *to, kiln_report *from);

#endif
