/* How well scores rank rows: the area under the receiver operating characteristic, and the curve. */
#include <math.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"
#include "metrics/metrics.h"

/* Weights of rows: of the class, and of others. */
struct shares {
    double positive, negative;
};

bool ki_falls(const kiln_loss *loss) {
    if (loss->kind != KILN_LOSS_GLM) return false;
    return loss->link == KILN_LINK_INVERSE || loss->link == KILN_LINK_INVERSE_SQUARED ||
           (loss->link == KILN_LINK_POWER && loss->link_power < 0);
}

/* ------------------------------------------------------------------------------------------- rows */

/* Each row's key, the highest score first, and its weight, negative where it is not of the class. Rows that
 * do not count have the weight 0, and are all behind the others. */
struct taking {
    const struct ki_scores *scores;
    double sign;
};

static void make_rows(const void *user, int64_t first, int64_t end, struct ki_ranked *to) {
    const struct taking *taking = user;
    const struct ki_scores *scores = taking->scores;
    const struct ki_measured *of = scores->of;
    for (int64_t i = first; i < end; i++) {
        const double score = scores->probabilities ? scores->probabilities[i * of->classes + scores->class]
                             : of->columns == 1    ? taking->sign * ki_at(&of->eta, i)
                                                   : ki_at(&of->eta, i * of->columns + scores->class);
        const bool positive = of->classes ? ki_class(of, i) == scores->class : ki_at(&of->y, i) > 0;
        const double weight = ki_weight(of, i);
        const bool counts = !isnan(score) && weight > 0;
        to[i - first] = (struct ki_ranked){counts ? ~ki_key(score) : UINT64_MAX, !counts    ? 0
                                                                                 : positive ? weight
                                                                                            : -weight};
    }
}

/* ------------------------------------------------------------------------------------------- area */

/* Adds up the rows of one score, from *i on. */
static struct shares next_score(const struct ki_ranked *rows, int64_t count, int64_t *i) {
    struct shares shares = {0, 0};
    const uint64_t key = rows[*i].key;
    for (; *i < count && rows[*i].key == key; ++*i) {
        const double weight = rows[*i].of;
        shares.positive += weight > 0 ? weight : 0;
        shares.negative += weight < 0 ? -weight : 0;
    }
    return shares;
}

enum { PIECES = 64, ROWS_A_PIECE = 4096 };

/* The sorted rows in pieces, none of which parts a score. */
struct pieces {
    const struct ki_ranked *rows;
    int64_t ends[PIECES];
    int count;
    struct shares shares[PIECES];
    double pairs[PIECES]; /* within the piece */
};

static void cut(struct pieces *pieces, int64_t count) {
    pieces->count = (int)ki_max(1, ki_min(PIECES, count / ROWS_A_PIECE));
    for (int p = 0; p < pieces->count; p++) {
        int64_t end = ki_max(ki_part_begin(count, p + 1, pieces->count), p ? pieces->ends[p - 1] : 0);
        while (end > 0 && end < count && pieces->rows[end].key == pieces->rows[end - 1].key) end++;
        pieces->ends[p] = end;
    }
}

static void add_piece(void *user, int p) {
    struct pieces *pieces = user;
    struct ki_sum pairs = {0, 0}, above = {0, 0}, negative = {0, 0};
    for (int64_t i = p ? pieces->ends[p - 1] : 0; i < pieces->ends[p];) {
        const struct shares next = next_score(pieces->rows, pieces->ends[p], &i);
        ki_sum_add(&pairs, next.negative * (ki_sum_of(&above) + next.positive / 2));
        ki_sum_add(&above, next.positive);
        ki_sum_add(&negative, next.negative);
    }
    pieces->pairs[p] = ki_sum_of(&pairs);
    pieces->shares[p] = (struct shares){ki_sum_of(&above), ki_sum_of(&negative)};
}

/* The share of pairs in which the row of the class has the higher score; a tie counts half. *all: of all
 * rows. */
static double area_of(struct shares *all, const struct ki_ranked *rows, int64_t count, int threads) {
    struct pieces pieces = {.rows = rows};
    struct ki_sum pairs = {0, 0};
    *all = (struct shares){0, 0};
    if (count == 0) return NAN;
    cut(&pieces, count);
    ki_parallel(threads, pieces.count, add_piece, &pieces);
    for (int p = 0; p < pieces.count; p++) {
        ki_sum_add(&pairs, pieces.pairs[p]);
        ki_sum_add(&pairs, all->positive * pieces.shares[p].negative);
        all->positive += pieces.shares[p].positive;
        all->negative += pieces.shares[p].negative;
    }
    return all->positive > 0 && all->negative > 0 ? ki_sum_of(&pairs) / (all->positive * all->negative)
                                                  : (double)NAN;
}

/* ------------------------------------------------------------------------------------------ curve */

static void draw(kiln_roc *roc, const struct ki_ranked *rows, int64_t count, const struct shares *all) {
    const double step = 2.0 / (KILN_ROC_MOST - 2);
    double x = 0, y = 0;
    roc->count = 1; /* (0, 0) */
    for (int64_t i = 0; i < count;) {
        const struct shares next = next_score(rows, count, &i);
        x += next.negative / all->negative;
        y += next.positive / all->positive;
        /* Both shares grow, by 2 together. */
        const double last = roc->false_share[roc->count - 1] + roc->true_share[roc->count - 1];
        if (x + y - last < step && i < count) continue;
        roc->false_share[roc->count] = i < count ? fmin(x, 1) : 1; /* not above 1 by rounding */
        roc->true_share[roc->count++] = i < count ? fmin(y, 1) : 1;
    }
}

kiln_status ki_rank(double *area, kiln_roc *roc, const struct ki_scores *scores) {
    kiln_status status;
    if (scores->of->on) return ki_rank_gpu(area, scores->of); /* where no curve is asked for */
    const int threads = scores->of->threads;
    const struct taking taking = {scores, ki_falls(&scores->of->loss) ? -1 : 1};
    int64_t count = scores->of->rows;
    struct shares all;
    struct ki_ranked *rows = ki_alloc((size_t)count * sizeof *rows);
    if (!rows) return ki_fail_nomem((size_t)count * sizeof *rows, "the ranks");
    TRY(ki_order(rows, count, &(struct ki_unordered){make_rows, &taking}, threads));
    while (count > 0 && rows[count - 1].key == UINT64_MAX) count--;
    *area = area_of(&all, rows, count, threads);
    if (roc) {
        *roc = (kiln_roc){.area = *area};
        if (!isnan(*area)) draw(roc, rows, count, &all);
    }
done:
    ki_free(rows);
    return status;
}
