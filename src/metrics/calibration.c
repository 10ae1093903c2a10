/* Whether predictions come true: rows in order of what is predicted, in bins of about equal weight. */
#include <math.h>

#include "core/seams.h"
#include "core/status.h"
#include "metrics/metrics.h"

struct calibration {
    const struct ki_measured *of;
    int64_t column;
    const double *probabilities;
    struct ki_ranked *residuals; /* room for all rows */
};

static double predicted(const struct calibration *c, int64_t row) {
    if (c->probabilities) return c->probabilities[row * c->of->classes + c->column];
    return ki_mean(c->of, row, c->of->classes ? 0 : c->column);
}

static double observed(const struct calibration *c, int64_t row) {
    if (c->of->classes) return ki_class(c->of, row) == c->column;
    return ki_at(&c->of->y, row * c->of->columns + c->column);
}

/* The rows of a bin. */
struct in_bin {
    const struct calibration *c;
    const struct ki_ranked *rows;
};

static void make_residuals(const void *user, int64_t first, int64_t end, struct ki_ranked *to) {
    const struct in_bin *bin = user;
    for (int64_t i = first; i < end; i++) {
        const int64_t row = (int64_t)bin->rows[i].of;
        to[i - first] = (struct ki_ranked){ki_key(observed(bin->c, row) - predicted(bin->c, row)),
                                           ki_weight(bin->c->of, row)};
    }
}

static kiln_status take_residuals(kiln_bin *bin, const struct calibration *c, const struct ki_ranked *rows,
                                  int64_t count) {
    static const double shares[] = {0.1, 0.5, 0.9};
    double below = 0;
    int next = 0;
    const struct in_bin in_bin = {c, rows};
    const kiln_status status =
        ki_order(c->residuals, count, &(struct ki_unordered){make_residuals, &in_bin}, c->of->threads);
    for (int64_t i = 0; i < count && status == KILN_OK; i++) {
        below += c->residuals[i].of;
        while (next < 3 && (below >= shares[next] * bin->weight || i == count - 1))
            bin->residuals[next++] = ki_key_value(c->residuals[i].key);
    }
    return status;
}

/* The weights' sum over the sum of their squares stands for the number of rows. */
static kiln_status take_bin(kiln_bin *bin, const struct calibration *c, const struct ki_ranked *rows,
                            int64_t count) {
    double squares = 0, spread = 0;
    *bin = (kiln_bin){.least = ki_key_value(rows[0].key), .most = ki_key_value(rows[count - 1].key)};
    for (int64_t i = 0; i < count; i++) bin->weight += ki_weight(c->of, (int64_t)rows[i].of);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (int64_t)rows[i].of;
        const double share = ki_weight(c->of, row) / bin->weight;
        bin->predicted += share * predicted(c, row);
        bin->observed += share * observed(c, row);
        squares += share * share;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (int64_t)rows[i].of;
        const double off = observed(c, row) - bin->observed;
        spread += ki_weight(c->of, row) / bin->weight * off * off;
    }
    bin->error = squares < 1 ? sqrt(spread * squares / (1 - squares)) : (double)NAN;
    return take_residuals(bin, c, rows, count);
}

static kiln_status fill_bins(kiln_bin *bins, int64_t *used, const struct calibration *c,
                             const struct ki_ranked *rows, int64_t count) {
    double total = 0, passed = 0;
    kiln_status status = KILN_OK;
    for (int64_t i = 0; i < count; i++) total += ki_weight(c->of, (int64_t)rows[i].of);
    double next = total / KILN_BINS;
    for (int64_t i = 0, begin = 0; i < count; i++) {
        passed += ki_weight(c->of, (int64_t)rows[i].of);
        const bool tied = i + 1 < count && rows[i + 1].key == rows[i].key;
        if (i + 1 < count && (tied || passed < next * (1 - 1e-12) || *used == KILN_BINS - 1)) continue;
        next = total / KILN_BINS * (floor(passed / total * KILN_BINS + 1e-9) + 1);
        TRY(take_bin(&bins[(*used)++], c, rows + begin, i + 1 - begin));
        begin = i + 1;
    }
done:
    return status;
}

/* Rows that do not count are behind all others. */
static void make_rows(const void *user, int64_t first, int64_t end, struct ki_ranked *to) {
    const struct calibration *c = user;
    for (int64_t i = first; i < end; i++) {
        const double value = predicted(c, i);
        const bool counts = ki_weight(c->of, i) > 0 && isfinite(value);
        to[i - first] = (struct ki_ranked){counts ? ki_key(value) : UINT64_MAX, (double)i};
    }
}

kiln_status ki_calibrate(kiln_bin *bins, int64_t *used, const struct ki_measured *of, int64_t column,
                         const double *probabilities) {
    kiln_status status;
    int64_t count = of->rows;
    const size_t room = (size_t)count * sizeof(struct ki_ranked);
    struct calibration c = {of, column, probabilities, ki_alloc(room)};
    struct ki_ranked *rows = ki_alloc(room);
    if (!c.residuals || !rows) {
        status = ki_fail_nomem(2 * room, "calibration");
        goto done;
    }
    TRY(ki_order(rows, count, &(struct ki_unordered){make_rows, &c}, of->threads));
    while (count > 0 && rows[count - 1].key == UINT64_MAX) count--;
    *used = 0;
    TRY(fill_bins(bins, used, &c, rows, count));
done:
    ki_free(c.residuals);
    ki_free(rows);
    return status;
}
