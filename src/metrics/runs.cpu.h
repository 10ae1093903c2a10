/* CPU bodies of the metrics: a run of rows in vectors of doubles, whatever type the rows have. Rows of weight
 * 0 count for nothing, though what is found of them be NaN. */
#if real_bytes == 8

#include "metrics/counts.h"
#include "metrics/runs.h"
#include "pass/cpu/judged_rows.h"
#include "dialect/metric_rows.h"

/* to = the numbers at `from` and every `apart` behind it, and zeros to the end of a vector. */
void FN(metric_read)(double *to, const struct ki_home *home, int64_t from, int64_t apart, int64_t count) {
    const float *singles = (const float *)home->values + from;
    const double *doubles = (const double *)home->values + from;
    if (home->single && apart == 1)
        for (int64_t i = 0; i < count; i++) to[i] = singles[i];
    else if (home->single)
        for (int64_t i = 0; i < count; i++) to[i] = singles[i * apart];
    else if (apart == 1)
        memcpy(to, doubles, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++) to[i] = doubles[i * apart];
    for (int64_t i = count; i % LANES != 0; i++) to[i] = 0;
}

void FN(metric_exp)(double *x, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES) {
        const FN(vreal) e = FN(vexp)(FN(load_some)(x + i, count - i));
        memcpy(x + i, &e, (size_t)ki_min(LANES, count - i) * sizeof *x);
    }
}

/* The keys of scores, without their lowest bits, and which y are the value. */
void FN(metric_keys)(struct ki_labelled *to, const double *score, const double *y, double value, int drop) {
    for (int64_t i = 0; i < to->count; i++) to->key[i] = ki_key(score[i]) >> drop;
    for (int64_t i = 0; i < to->count; i++) to->own[i] = y[i] == value;
}

/* ---------------------------------------------------------------------------------------- two classes */

/* As logistic_loss and lost_of_two of dialect/metric_rows.h. */
void FN(metric_two)(struct ki_two_sums *sums, const struct ki_run *run, const double classes[2],
                    double lost_most) {
    FN(vreal) lost = {0}, brier = {0}, table[3][2] = {{{0}}};
    const FN(vreal) infinite = FN(all)(INFINITY), most = FN(all)(lost_most);
    for (int64_t i = 0; i < run->count; i += LANES) {
        const FN(vreal) s = FN(load)(run->weight + i), y = FN(load)(run->y + i), eta = FN(load)(run->eta + i);
        const FN(vmask) counts = (FN(vmask))(s != 0.0), second = (FN(vmask))(y == classes[1]);
        const FN(vmask) known = second | (FN(vmask))(y == classes[0]), up = (FN(vmask))(eta > 0.0);
        const FN(vmask) of[3] = {known & ~second, known & second, ~known};
        for (int class = 0; class < 3; class ++) {
            table[class][0] += FN(masked)(s, counts & of[class] & ~up);
            table[class][1] += FN(masked)(s, counts & of[class] & up);
        }
        const FN(vreal) size = FN(select)(eta < 0.0, -eta, eta), e = FN(vexp)(-size);
        const FN(vreal) near = 1.0 / (1.0 + e), tail = e * near;
        const FN(vmask) agrees = (up & second) | ((FN(vmask))(eta < 0.0) & ~second);
        const FN(vreal) missed = FN(select)(agrees, tail, near);
        FN(vreal) loss = FN(vlog1p)(e) + FN(masked)(size, ~agrees), apart = missed * missed;
        loss = FN(select)(known, loss, infinite);
        apart = FN(select)(known, apart, (near * near + tail * tail + 1.0) * 0.5);
        loss = FN(select)(loss > most, most, loss);
        lost += FN(masked)(s * loss, counts);
        brier += FN(masked)(s * apart, counts);
    }
    sums->lost = FN(lane_sum)(lost);
    sums->brier = FN(lane_sum)(brier);
    for (int class = 0; class < 3; class ++)
        for (int taken = 0; taken < 2; taken++) sums->table[class][taken] = FN(lane_sum)(table[class][taken]);
}

/* -------------------------------------------------------------------------------------------- numbers */

static int64_t first_that_counts(const struct ki_run *run) {
    int64_t at = 0;
    while (at < run->count && run->weight[at] == 0) at++;
    return at;
}

/* The mean is taken about the first target that counts: that of equal ones is that one, and what they leave
 * is 0, not rounding. A second walk over the run finds their spread. */
void FN(metric_number)(struct ki_number_sums *to, const struct ki_run *run) {
    const int64_t first = first_that_counts(run);
    if (first == run->count) return;
    FN(vreal) square = {0}, absolute = {0}, error = {0}, about = {0}, weight = {0}, spread = {0};
    struct ki_variation y = {0, run->y[first], 0, 0};
    for (int64_t i = 0; i < run->count; i += LANES) {
        const FN(vreal) s = FN(load)(run->weight + i), target = FN(load)(run->y + i);
        const FN(vmask) counts = (FN(vmask))(s != 0.0);
        const FN(vreal) e = FN(masked)(target - FN(load)(run->mean + i), counts);
        weight += s;
        square += s * e * e;
        absolute += s * FN(select)(e < 0.0, -e, e);
        error -= s * e;
        about += s * FN(masked)(target - y.level, counts);
    }
    y.weight = FN(lane_sum)(weight);
    y.above = FN(lane_sum)(about) / y.weight;
    for (int64_t i = 0; i < run->count; i += LANES) {
        const FN(vreal) s = FN(load)(run->weight + i), off = FN(load)(run->y + i) - y.level - y.above;
        spread += FN(masked)(s * off * off, (FN(vmask))(s != 0.0));
    }
    y.spread = FN(lane_sum)(spread);
    ki_sum_add(&to->square, FN(lane_sum)(square));
    ki_sum_add(&to->absolute, FN(lane_sum)(absolute));
    ki_sum_add(&to->error, FN(lane_sum)(error));
    ki_variation_join(&to->y, &y);
}

/* ---------------------------------------------------------------------------------------------- a GLM */

/* All rows have the first one's mean. */
static void FN(spread_mean)(struct FN(judged) * b, const kiln_loss *loss, int64_t count) {
    double *const all[] = {b->mu, b->log_mu, b->rest, b->log_rest};
    b->count = 1;
    for (int64_t i = 1; i < LANES; i++) b->eta[i] = b->eta[0];
    FN(block_means)(loss, b);
    b->count = count;
    for (int a = 0; a < (FN(is_binomial)(loss) ? 4 : 1); a++)
        for (int64_t i = 1; i < FN(JUDGED_ROWS); i++) all[a][i] = all[a][0];
}

/* The formula of a single row says what is infinite or NaN: means that are none the family has, and the ends
 * of the numbers. */
static void FN(take_unusual)(struct FN(judged) * b, const struct ki_run *run, const kiln_loss *loss) {
    const kiln_range range = kiln_family_range(loss->family, loss->parameter);
    for (int64_t i = 0; i < run->count; i++) {
        const double mean = run->mean[i];
        const bool possible = mean >= range.least && mean <= range.most && mean - mean == 0;
        if ((b->usual[i] && possible) || run->weight[i] == 0) continue;
        b->half[i] =
            0.5 * FN(unit_deviance)((int)loss->family, (int)loss->link, loss->parameter, loss->link_power,
                                    range.least, range.most, range.open, run->y[i], run->eta[i], mean);
    }
}

/* one_mean: of all rows, that of the first one's eta. */
void FN(metric_judge)(struct ki_judged_sums *sums, struct ki_run *run, const kiln_loss *loss, bool one_mean) {
    struct FN(judged) b = {.count = run->count};
    FN(vreal) weight = {0}, deviance = {0}, brier = {0}, right = {0};
    FN(vmask) others = {0};
    memcpy(b.eta, run->eta, sizeof b.eta);
    memcpy(b.y, run->y, sizeof b.y);
    if (one_mean)
        FN(spread_mean)(&b, loss, run->count);
    else
        FN(block_means)(loss, &b);
    if (!run->given) memcpy(run->mean, b.mu, sizeof run->mean);
    FN(block_deviances)(loss, &b);
    FN(take_unusual)(&b, run, loss);
    for (int64_t i = 0; i < run->count; i += LANES) {
        const FN(vreal) s = FN(load)(run->weight + i), y = FN(load)(run->y + i),
                        mean = FN(load)(run->mean + i);
        const FN(vmask) counts = (FN(vmask))(s != 0.0);
        others |= ~((FN(vmask))(y == 0.0) | (FN(vmask))(y == 1.0));
        weight += s;
        deviance += FN(masked)(2.0 * s * FN(load)(b.half + i), counts);
        brier += FN(masked)(s * (mean - y) * (mean - y), counts);
        right += FN(masked)(s, ~((FN(vmask))(mean > 0.5) ^ (FN(vmask))(y > 0.0)));
    }
    *sums = (struct ki_judged_sums){FN(lane_sum)(weight), FN(lane_sum)(deviance), FN(lane_sum)(brier),
                                    FN(lane_sum)(right), true};
    for (int l = 0; l < LANES; l++) sums->outcomes &= others[l] == 0;
}

#endif
