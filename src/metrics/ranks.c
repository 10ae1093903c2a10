/* Scores rank rows, and this file says how well: the area under the receiver operating characteristic, and
 * the curve. */
#include <math.h>

#include "bodies/bodies.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"
#include "metrics/counts.h"
#include "metrics/metrics.h"

bool ki_falls(const kiln_loss *loss) {
    if (loss->kind != KILN_LOSS_GLM) return false;
    return loss->link == KILN_LINK_INVERSE || loss->link == KILN_LINK_INVERSE_SQUARED ||
           (loss->link == KILN_LINK_POWER && loss->link_power < 0);
}

/* ------------------------------------------------------------------------------------------- rows */

/* Each row's key, the highest score first, and its weight, negative where it is not of the class. Rows that
 * do not count have the weight 0, and are all behind the others. Rows are made several times, and so by loops
 * each of which reads one array of one type. */
struct taking {
    const struct ki_scores *scores;
    double sign;
};

enum { BLOCK = 256 };

static void read_scores(double *to, const struct taking *taking, int64_t row, int count) {
    const struct ki_scores *scores = taking->scores;
    const struct ki_measured *of = scores->of;
    const int64_t at = row * of->wide + of->first, c = ki_differ(of)      ? 1
                                                       : of->columns == 1 ? 0
                                                                          : scores->class;
    double other[BLOCK];
    if (scores->probabilities) {
        const double *of_class = scores->probabilities + row * of->classes + scores->class;
        for (int i = 0; i < count; i++) to[i] = of_class[i * of->classes];
        return;
    }
    of->bodies->metric_read(to, &of->eta, at + c, of->wide, count);
    if (ki_differ(of)) {
        of->bodies->metric_read(other, &of->eta, at, of->wide, count);
        for (int i = 0; i < count; i++) to[i] -= other[i];
    } else if (taking->sign < 0) {
        for (int i = 0; i < count; i++) to[i] = -to[i];
    }
}

static void make_block(const struct taking *taking, int64_t first, int count, struct ki_ranked *to) {
    const struct ki_measured *of = taking->scores->of;
    const int64_t class = taking->scores->class;
    const double value = of->options.classes ? of->options.classes[class] : (double)class;
    double score[BLOCK], y[BLOCK], weight[BLOCK];
    read_scores(score, taking, first, count);
    of->bodies->metric_read(y, &of->y, first, 1, count);
    if (of->weights.values)
        of->bodies->metric_read(weight, &of->weights, first, 1, count);
    else
        for (int i = 0; i < count; i++) weight[i] = 1;
    for (int i = 0; i < count; i++) {
        const bool positive = of->classes ? y[i] == value : y[i] > 0;
        const bool counts = !isnan(score[i]) && weight[i] > 0;
        const double signs[] = {-1, 1}; /* which of them is as good as random */
        to[i] = (struct ki_ranked){counts ? ~ki_key(score[i]) : UINT64_MAX,
                                   counts ? weight[i] * signs[positive] : 0};
    }
}

static void make_rows(const void *user, int64_t first, int64_t end, struct ki_ranked *to) {
    for (int64_t at = first; at < end; at += BLOCK)
        make_block(user, at, (int)ki_min(BLOCK, end - at), to + (at - first));
}

/* The same of rows that all count once. What floats leave of a double's bits is 29 that are equal. */
static void make_labelled(const void *user, int64_t first, int64_t count, struct ki_labelled *to) {
    enum { BITS_BEYOND_FLOAT = 29 };
    const struct taking *taking = user;
    const struct ki_measured *of = taking->scores->of;
    const int64_t class = taking->scores->class;
    const double value = of->options.classes && of->classes ? of->options.classes[class] : (double)class;
    double score[BLOCK], y[BLOCK];
    bool all = true;
    read_scores(score, taking, first, (int)count);
    of->bodies->metric_read(y, &of->y, first, 1, count);
    for (int64_t i = 0; i < count; i++) all &= score[i] == score[i];
    to->count = all ? count : 0;
    for (int64_t i = 0; !all && i < count; i++) {
        score[to->count] = score[i];
        y[to->count] = y[i];
        to->count += score[i] == score[i];
    }
    of->bodies->metric_keys(to, score, y, value, of->eta.single && !ki_differ(of) ? BITS_BEYOND_FLOAT : 0);
}

/* ------------------------------------------------------------------------------------------- area */

enum { FEW = 128, PIECES = 64, ROWS_A_PIECE = 4096 };

static void add_row(struct ki_ranking *to, const struct ki_ranked *row) {
    const struct ki_tied tied = {row->key, row->of > 0 ? row->of : 0, row->of < 0 ? -row->of : 0};
    ki_ranking_add(to, &tied);
}

/* Ranks sorted rows; halves are joined, so that sums are rounded as often as there are halvings. */
static struct ki_ranking ranking_of(const struct ki_ranked *rows, int64_t count) {
    struct ki_ranking all = {.scores = 0};
    if (count > FEW) {
        const struct ki_ranking rest = ranking_of(rows + count / 2, count - count / 2);
        all = ranking_of(rows, count / 2);
        ki_ranking_join(&all, &rest);
        return all;
    }
    for (int64_t i = 0; i < count; i++) add_row(&all, &rows[i]);
    return all;
}

struct pieces {
    const struct ki_ranked *rows;
    int64_t rows_count;
    int count;
    struct ki_ranking made[PIECES];
};

static void rank_piece(void *user, int p) {
    struct pieces *pieces = user;
    const int64_t begin = ki_part_begin(pieces->rows_count, p, pieces->count),
                  end = ki_part_begin(pieces->rows_count, p + 1, pieces->count);
    pieces->made[p] = ranking_of(pieces->rows + begin, end - begin);
}

struct ranked {
    struct ki_ranking all;
    int threads;
};

/* The next sorted rows. */
static void take_rows(void *user, const struct ki_ranked *rows, int64_t count) {
    struct ranked *ranked = user;
    struct pieces pieces = {.rows = rows, .rows_count = count};
    pieces.count = (int)ki_max(1, ki_min(PIECES, count / ROWS_A_PIECE));
    ki_parallel(ranked->threads, pieces.count, rank_piece, &pieces);
    for (int p = 0; p < pieces.count; p++) ki_ranking_join(&ranked->all, &pieces.made[p]);
}

/* ------------------------------------------------------------------------------------------ curve */

/* Adds up the rows of one score, from *i on. */
static struct ki_ranking next_score(const struct ki_ranked *rows, int64_t count, int64_t *i) {
    struct ki_ranking one = {.scores = 0};
    const uint64_t key = rows[*i].key;
    for (; *i < count && rows[*i].key == key; ++*i) add_row(&one, &rows[*i]);
    return one;
}

static void draw(kiln_roc *roc, const struct ki_ranked *rows, int64_t count, const struct ki_ranking *all) {
    const double step = 2.0 / (KILN_ROC_MOST - 2);
    double x = 0, y = 0;
    roc->count = 1; /* (0, 0) */
    for (int64_t i = 0; i < count;) {
        const struct ki_ranking next = next_score(rows, count, &i);
        x += next.first.negative / all->negative;
        y += next.first.positive / all->positive;
        /* Both shares grow, by 2 together. */
        const double last = roc->false_share[roc->count - 1] + roc->true_share[roc->count - 1];
        if (x + y - last < step && i < count) continue;
        roc->false_share[roc->count] = i < count ? fmin(x, 1) : 1; /* not above 1 by rounding */
        roc->true_share[roc->count++] = i < count ? fmin(y, 1) : 1;
    }
}

/* The curve wants all rows at once, and their weights before. */
static kiln_status rank_at_once(struct ranked *ranked, kiln_roc *roc, const struct ki_unordered *from,
                                int64_t count) {
    kiln_status status;
    struct ki_ranked *rows = ki_alloc((size_t)count * sizeof *rows);
    if (!rows) return ki_fail_nomem((size_t)count * sizeof *rows, "the ranks");
    TRY(ki_order(rows, count, from, ranked->threads));
    while (count > 0 && rows[count - 1].key == UINT64_MAX) count--;
    take_rows(ranked, rows, count);
    const struct ki_ranking all = ki_ranking_whole(&ranked->all);
    *roc = (kiln_roc){.area = ki_ranking_area(&all)};
    if (!isnan(roc->area)) draw(roc, rows, count, &all);
done:
    ki_free(rows);
    return status;
}

kiln_status ki_rank(double *area, kiln_roc *roc, const struct ki_scores *scores) {
    const struct ki_measured *of = scores->of;
    if (of->on) return ki_rank_gpu(area, of); /* where no curve is asked for */
    const struct taking taking = {scores, ki_falls(&of->loss) ? -1 : 1};
    const struct ki_unordered from = {make_rows, &taking};
    struct ranked ranked = {.threads = of->threads};
    kiln_status status;
    if (!roc && !of->weights.values)
        return ki_count_area(area, &(struct ki_labelled_rows){make_labelled, &taking}, of->rows, of->threads);
    if (roc)
        TRY(rank_at_once(&ranked, roc, &from, of->rows));
    else
        TRY(ki_order_slices(of->rows, &from, of->threads, take_rows, &ranked));
    const struct ki_ranking all = ki_ranking_whole(&ranked.all);
    *area = ki_ranking_area(&all);
done:
    return status;
}
