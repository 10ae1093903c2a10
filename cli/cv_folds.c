/* This file says which fold holds each row out. Rows are dealt out in a random order, class by class, so that
 * each fold has its share of each class; of a numeric target the classes are those between its quantiles.
 * Groups are dealt out as wholes, the largest first, each to the fold where the squares of the folds' shares
 * of the classes,
 *   sum_f sum_c (n_fc / n_c)^2,  grow least: that is balance of the classes and, where there is but one, of
 *   the rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cv.h"
#include "random.h"

static void shuffle(int64_t *order, int64_t count, int64_t seed) {
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = (int64_t)(random_unit(seed, STREAM_FOLDS, i) * (double)(i + 1));
        const int64_t former = order[i];
        order[i] = order[j];
        order[j] = former;
    }
}

static int no_memory(void) {
    return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the folds");
}

enum { QUANTILES = 10 };

/* Rows whose share in each fold should be the same: the classes; of a binomial glm those below and above a
 * half; of another numeric target those between its quantiles. Of several targets no one says how they are to
 * be shared, and all rows are alike. */
struct strata {
    const struct classes *classes; /* or NULL: stratum 0 lies below least[0], the next below least[1], ... */
    double least[QUANTILES];
    int64_t count;
};

static int by_value(const void *a, const void *b) {
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* Tenths of the rows, or so many that each has a row for each fold. Equal values share a stratum. */
static bool find_quantiles(struct strata *s, const double *y, int64_t rows, int64_t folds) {
    const int64_t most = rows / folds < QUANTILES ? rows / folds : QUANTILES;
    double *sorted = malloc((size_t)rows * sizeof *sorted);
    if (!sorted) return false;
    memcpy(sorted, y, (size_t)rows * sizeof *sorted);
    qsort(sorted, (size_t)rows, sizeof *sorted, by_value);
    s->count = 1;
    for (int64_t q = 1; q < most; q++) {
        const double value = sorted[q * rows / most];
        if (value > (s->count > 1 ? s->least[s->count - 2] : sorted[0])) s->least[s->count++ - 1] = value;
    }
    free(sorted);
    return true;
}

static bool find_strata(struct strata *s, const struct training *job, const double *y, int64_t folds) {
    const kiln_matrix *targets = kiln_data_y(job->data);
    *s = (struct strata){.count = 1};
    if (job->classes.count) {
        s->classes = &job->classes;
        s->count = job->classes.count;
    } else if (job->loss.kind == KILN_LOSS_GLM && kiln_family_describe(job->loss.family)->outcomes) {
        s->least[0] = nextafter(0.5, 1);
        s->count = 2;
    } else if (kiln_matrix_cols(targets) == 1) {
        return find_quantiles(s, y, kiln_matrix_rows(targets), folds);
    }
    return true;
}

static int64_t stratum_of(const struct strata *s, const double *y, int64_t row) {
    int64_t found = 0;
    if (s->count == 1) return 0;
    if (s->classes) return classes_find(s->classes, y[row]);
    while (found < s->count - 1 && y[row] >= s->least[found]) found++;
    return found;
}

static int deal_rows(int32_t *fold, const struct training *job, int64_t folds, const double *y,
                     const struct strata *strata) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data));
    int64_t *order = malloc((size_t)rows * sizeof *order),
            *next = calloc((size_t)strata->count + 1, sizeof *next);
    const bool good = order && next;
    if (good) shuffle(order, rows, job->settings->seed);
    for (int64_t i = 0; good && i < rows; i++) next[stratum_of(strata, y, i) + 1]++;
    for (int64_t c = 1; good && c < strata->count; c++) next[c] += next[c - 1];
    for (int64_t i = 0; good && i < rows; i++) {
        const int64_t row = order[i];
        fold[row] = (int32_t)(next[stratum_of(strata, y, row)]++ % folds);
    }
    free(order);
    free(next);
    return good ? 0 : no_memory();
}

/* ----------------------------------------------------------------------------------------- groups */

struct group {
    int64_t number, size;
    double place; /* in a random order */
};

static int by_size(const void *a, const void *b) {
    const struct group *p = a, *q = b;
    return p->size != q->size ? (p->size < q->size) - (p->size > q->size)
                              : (p->place > q->place) - (p->place < q->place);
}

struct dealing {
    int64_t folds, classes, groups;
    struct group *group;
    int64_t *start, *row; /* rows of group g: row[start[g]] ... row[start[g + 1] - 1] */
    double *total, *taken,
        *own;      /* rows of each class: in all, in each fold, in the group that is dealt out */
    int64_t *size; /* rows of each fold */
};

static bool allocate(struct dealing *d, int64_t rows) {
    d->group = calloc((size_t)d->groups, sizeof *d->group);
    d->start = calloc((size_t)d->groups + 2, sizeof *d->start);
    d->row = malloc((size_t)rows * sizeof *d->row);
    d->total = calloc((size_t)d->classes, sizeof *d->total);
    d->own = calloc((size_t)d->classes, sizeof *d->own);
    d->taken = calloc((size_t)(d->folds * d->classes), sizeof *d->taken);
    d->size = calloc((size_t)d->folds, sizeof *d->size);
    return d->group && d->start && d->row && d->total && d->own && d->taken && d->size;
}

static void release(struct dealing *d) {
    free(d->group);
    free(d->start);
    free(d->row);
    free(d->total);
    free(d->own);
    free(d->taken);
    free(d->size);
}

static void sort_groups(struct dealing *d, const int64_t *group, int64_t rows, int64_t seed) {
    for (int64_t i = 0; i < rows; i++) d->start[group[i] + 2]++;
    for (int64_t g = 0; g < d->groups; g++)
        d->group[g] =
            (struct group){.number = g, .size = d->start[g + 2], .place = random_unit(seed, STREAM_FOLDS, g)};
    for (int64_t g = 1; g <= d->groups; g++) d->start[g + 1] += d->start[g];
    for (int64_t i = 0; i < rows; i++) d->row[d->start[group[i] + 1]++] = i;
    qsort(d->group, (size_t)d->groups, sizeof *d->group, by_size);
}

/* The fold for a group whose rows of class class[i] are own[class[i]]: an empty one before any other. */
static int64_t best_fold(const struct dealing *d, const int64_t *class, int64_t count) {
    int64_t best = 0;
    double least = 0;
    for (int64_t f = 0; f < d->folds; f++) {
        double growth = 0;
        for (int64_t i = 0; i < count; i++) {
            const double own = d->own[class[i]], total = d->total[class[i]];
            growth += own * (2 * d->taken[f * d->classes + class[i]] + own) / (total * total);
        }
        if (f > 0 && (growth > least || (growth == least && d->size[f] >= d->size[best]))) continue;
        best = f;
        least = growth;
    }
    return best;
}

/* `class` has room for all classes. */
static void deal_group(const struct dealing *d, int32_t *fold, const struct group *group,
                       const struct strata *strata, const double *y, int64_t *class) {
    const int64_t *row = d->row + d->start[group->number];
    int64_t count = 0;
    for (int64_t i = 0; i < group->size; i++) {
        const int64_t of = stratum_of(strata, y, row[i]);
        if (d->own[of]++ == 0) class[count++] = of;
    }
    const int64_t f = best_fold(d, class, count);
    for (int64_t i = 0; i < group->size; i++) fold[row[i]] = (int32_t)f;
    d->size[f] += group->size;
    for (int64_t i = 0; i < count; i++) {
        d->taken[f * d->classes + class[i]] += d->own[class[i]];
        d->own[class[i]] = 0;
    }
}

static int deal_groups(int32_t *fold, const struct training *job, int64_t folds, const double *y,
                       const struct strata *strata) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data));
    struct dealing d = {.folds = folds, .classes = strata->count, .groups = job->group_count};
    int64_t *class = malloc((size_t)d.classes * sizeof *class);
    const bool good = allocate(&d, rows) && class;
    if (good) sort_groups(&d, job->groups, rows, (uint64_t)job->settings->seed);
    for (int64_t i = 0; good && i < rows; i++) d.total[stratum_of(strata, y, i)]++;
    for (int64_t g = 0; good && g < d.groups; g++) deal_group(&d, fold, &d.group[g], strata, y, class);
    release(&d);
    free(class);
    return good ? 0 : no_memory();
}

int cv_deal(int32_t *fold, const struct training *job, int64_t folds) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data));
    int code = 0;
    if (folds > rows)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "", "--cv %lld: the data have only %lld rows",
                         (long long)folds, (long long)rows);
    if (job->groups && folds > job->group_count)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "", "--cv %lld: there are only %s", (long long)folds,
                         text_plural(job->group_count, "group"));
    struct strata strata;
    double *y = values_of(kiln_data_y(job->data), &code);
    if (!code && !find_strata(&strata, job, y, folds)) code = no_memory();
    if (!code) code = (job->groups ? deal_groups : deal_rows)(fold, job, folds, y, &strata);
    free(y);
    return code;
}
