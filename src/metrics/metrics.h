/* This header says what the metrics of one set of predictions are made of. */
#ifndef KI_METRICS_H
#define KI_METRICS_H

#include <math.h>

#include "kiln/metrics.h"
#include "core/matrix.h"
#include "metrics/runs.h"

/* ------------------------------------------------------------------------------------------ operands */

static inline double ki_at(const struct ki_home *home, int64_t e) {
    return home->single ? (double)((const float *)home->values)[e] : ((const double *)home->values)[e];
}

struct ki_measured {
    kiln_loss loss; /* its link filled in */
    kiln_metrics_options options;
    struct ki_home eta, y, weights, means;
    int64_t rows, columns; /* of what is measured: Eta's columns first, ..., first + columns - 1 */
    int64_t first, wide;   /* wide: all columns of Eta */
    int64_t classes;       /* 0: numbers */
    int threads;
    const struct ki_bodies *bodies; /* of doubles, where the host reads them */
    bool at_home;                   /* asked for: the host reads them wherever they lie */
    kiln_device *on; /* the GPU that has all operands and measures them; NULL: the host reads them */
};

/* kiln_metrics_of's arguments, checked, and where they are measured; to be freed on failure, too. */
kiln_status ki_measured_take(struct ki_measured *of, const kiln_loss *loss, const kiln_matrix *Eta,
                             const kiln_metrics_options *options);
void ki_measured_free(struct ki_measured *of);

/* The linear predictor of the row's c-th column. */
static inline double ki_eta(const struct ki_measured *of, int64_t row, int64_t c) {
    return ki_at(&of->eta, row * of->wide + of->first + c);
}

static inline double ki_weight(const struct ki_measured *of, int64_t row) {
    return of->weights.values ? ki_at(&of->weights, row) : 1;
}

/* Returns whether a row's two numbers count by their difference alone. */
static inline bool ki_differ(const struct ki_measured *of) {
    return of->loss.kind == KILN_LOSS_SOFTMAX && of->columns == 2;
}

static inline bool ki_has_probabilities(const struct ki_measured *of) {
    return of->loss.kind == KILN_LOSS_LOGISTIC || of->loss.kind == KILN_LOSS_SOFTMAX;
}

/* The row's class, -1 where it is unknown. Which one that is is as good as random: nothing branches on it. */
static inline int64_t ki_class(const struct ki_measured *of, int64_t row) {
    const double y = ki_at(&of->y, row);
    const double *values = of->options.classes;
    int64_t at = 0;
    if (!values) {
        at = y >= 0 && y < (double)of->classes ? (int64_t)y : -1;
        return (double)at == y ? at : -1;
    }
    for (int64_t left = of->classes, half; left > 1; left -= half) {
        half = left / 2;
        at += values[at + half] <= y ? half : 0;
    }
    return values[at] == y ? at : -1;
}

/* Returns whether an area is asked for, but no curve: of two classes, or of what may be outcomes. */
static inline bool ki_is_ranked(const struct ki_measured *of) {
    const bool outcomes = of->loss.kind == KILN_LOSS_GLM && kiln_family_describe(of->loss.family)->outcomes;
    return (of->classes == 2 || outcomes) && !of->options.unranked;
}

double ki_mean(const struct ki_measured *of, int64_t row, int64_t c); /* what the number is predicted to be */
/* The probabilities of all classes, rows x classes; NULL: no memory. */
double *ki_probabilities(const struct ki_measured *of);

/* ---------------------------------------------------------------------------------------------- sums */

/* All rows have these sums. */
struct ki_row_sums {
    struct ki_sum weight, deviance, lost, brier, right;
    bool outcomes; /* each y is 0 or 1 */
    bool wrong;    /* a weight is none */
};

struct ki_metric_sums {
    struct ki_row_sums rows;
    struct ki_number_sums *numbers; /* a target each, or NULL */
    double *confusion;              /* (classes + 1) x classes, or NULL */
};

/* One pass over all rows. Both arrays are for ki_free, on failure too. */
kiln_status ki_sums_take(struct ki_metric_sums *sums, const struct ki_measured *of);
kiln_status ki_sums_take_gpu(struct ki_metric_sums *sums, const struct ki_measured *of);
/* The deviance of one mean for all rows. */
kiln_status ki_deviance_at(double *deviance, const struct ki_measured *of, double mean);
kiln_status ki_deviance_at_gpu(double *deviance, const struct ki_measured *of, double mean);

/* --------------------------------------------------------------------------------------------- ranks */

/* A row in an order: 16 bytes. */
struct ki_ranked {
    uint64_t key; /* the smallest comes first */
    double of;    /* what goes along */
};

/* Rows first ... end - 1 as make() says that they are, in no order. */
struct ki_unordered {
    void (*make)(const void *user, int64_t first, int64_t end, struct ki_ranked *to);
    const void *user;
};

/* Rows 0 ... count - 1 sorted by key, those of one key as they come, in time of the order of count. make() is
 * called up to three times for each. */
kiln_status ki_order(struct ki_ranked *rows, int64_t count, const struct ki_unordered *from, int threads);

/* The same for who needs them once, in order, some at a time: beyond ki_limits.ordered_rows a fifth of the
 * memory, and make() is called up to eight times for each. Rows of one key come together. */
kiln_status ki_order_slices(int64_t count, const struct ki_unordered *from, int threads,
                            void (*take)(void *user, const struct ki_ranked *rows, int64_t count),
                            void *user);

/* The number of such a key. */
static inline double ki_key_value(uint64_t key) {
    union {
        uint64_t bits;
        double value;
    } of = {key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key};
    return of.value;
}

enum { KI_RANKED_BYTES = 2 * sizeof(struct ki_ranked) }; /* of a row on a GPU */

/* Scores and whose they are. */
struct ki_scores {
    const struct ki_measured *of;
    const double *probabilities; /* rows x classes, whose column `class` is the score; NULL: eta's is */
    int64_t class;               /* of a GLM's outcomes 1 */
};
/* The area under the curve, and the curve unless roc is NULL. */
kiln_status ki_rank(double *area, kiln_roc *roc, const struct ki_scores *scores);
kiln_status ki_rank_gpu(double *area, const struct ki_measured *of);
bool ki_falls(const kiln_loss *loss); /* whether a larger linear predictor is a smaller mean */

/* bins: KILN_BINS of them. column: the target or class; probabilities as above, or NULL. */
kiln_status ki_calibrate(kiln_bin *bins, int64_t *count, const struct ki_measured *of, int64_t column,
                         const double *probabilities);

#endif
