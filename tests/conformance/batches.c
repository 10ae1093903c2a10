/* Batches for cases: see batches.h. */
#include "batches.h"

#include <stdlib.h>

struct layout {
    kiln_batch *batch;
    int64_t count, length, first, stride, step, *offsets;
};

static struct layout *layout_of(const struct work *work) {
    return work->own;
}

const kiln_batch *batches_batch(const struct work *work) {
    return layout_of(work)->batch;
}

int64_t batches_count(const struct work *work) {
    return layout_of(work)->count;
}

int64_t batches_length(const struct work *work, int64_t v) {
    const struct layout *l = layout_of(work);
    return l->offsets ? l->offsets[v + 1] - l->offsets[v] : l->length;
}

int64_t batches_element(const struct work *work, int64_t v, int64_t i) {
    const struct layout *l = layout_of(work);
    return l->offsets ? l->offsets[v] + i : l->first + v * l->stride + i * l->step;
}

void batches_list(struct problem_list *list, struct problem p) {
    static const int64_t rows[][2] = {{0, 5},    {5, 0},     {1, 1},      {1000, 1},  {1001, 2},
                                      {700, 3},  {599, 7},   {301, 16},   {97, 31},   {97, 32},
                                      {97, 33},  {41, 100},  {40, 128},   {17, 1000}, {9, 1024},
                                      {5, 9999}, {3, 70001}, {1, 300007}, {20011, 4}, {1, 10000019}};
    static const int64_t others[][2] = {{7, 13}, {64, 40}, {301, 129}, {3, 30011}};
    const int64_t rows_count = (int64_t)(sizeof rows / sizeof *rows),
                  others_count = (int64_t)(sizeof others / sizeof *others);
    p.format = KILN_DENSE;
    p.pattern = PATTERN_DENSE;
    p.k = 1;
    for (int64_t i = 0; i < rows_count; i++) {
        if (list->thin && (i + p.kind) % 4) continue; /* where each length may be a kernel to build */
        if (rows[i][1] > 1000000 && p.kind % 3 != 1) continue;
        p.rows = rows[i][0];
        p.cols = rows[i][1];
        problem_add(list, p);
    }
    for (p.family = BATCH_APART; p.family < BATCH_LAYOUTS; p.family++)
        for (int64_t i = 0; i < others_count; i++) {
            if (list->thin && (i + p.kind) % 4) continue;
            p.rows = others[i][0];
            p.cols = others[i][1];
            p.per_row = 9;
            p.format = p.family == BATCH_SPARSE ? KILN_CSR : KILN_DENSE;
            p.pattern = p.family == BATCH_SPARSE ? PATTERN_POWER_LAW : PATTERN_DENSE;
            problem_add(list, p);
        }
}

static void free_layout(void *own) {
    struct layout *l = own;
    kiln_batch_free(l->batch);
    free(l->offsets);
    free(l);
}

/* Lengths of every kind, some of them none, that together fill what there is. */
static void make_offsets(struct layout *l, const struct problem *p) {
    const int64_t all = p->rows * p->cols, first = all < 5 ? 0 : 5;
    const int64_t longest = p->family == BATCH_HUGE ? all * 2 / 3 : 0;
    int64_t at = first;
    l->offsets = malloc((size_t)(all + 1000) * sizeof *l->offsets);
    for (l->count = 0, l->offsets[0] = first; at < all; l->count++) {
        const double u = random_uniform(77, (uint64_t)l->count);
        int64_t length = u < 0.2 ? 0 : u < 0.9 ? (int64_t)(u * 20) : (int64_t)(1000 * (u - 0.9) * 40);
        if (l->count == 11 && longest) length = longest;
        at = at + length < all ? at + length : all;
        l->offsets[l->count + 1] = at;
    }
}

static kiln_status make_layout(struct work *work, struct layout *l) {
    const struct problem *p = work->problem;
    *l = (struct layout){.count = p->rows, .length = p->cols, .stride = p->cols, .step = 1};
    switch ((enum batch_layout)p->family) {
    case BATCH_APART:
        l->first = 3;
        l->length = p->cols - 5;
        return kiln_batch_equal(&l->batch, l->count, l->length, l->first, l->stride, 0);
    case BATCH_COLUMNS:
        *l = (struct layout){.count = p->cols, .length = p->rows, .stride = 1, .step = p->cols};
        return kiln_batch_equal(&l->batch, l->count, l->length, 0, 1, l->step);
    case BATCH_STEPS:
        l->length = (p->cols + 1) / 2;
        l->step = 2;
        return kiln_batch_equal(&l->batch, l->count, l->length, 0, l->stride, 2);
    case BATCH_RAGGED:
    case BATCH_HUGE:
        make_offsets(l, p);
        return kiln_batch_ragged(&l->batch, work->device, l->count, l->offsets);
    case BATCH_SPARSE:
        l->offsets = malloc((size_t)(p->rows + 1) * sizeof *l->offsets);
        for (int64_t i = 0; i <= p->rows; i++) l->offsets[i] = work->X.host.row_start[i];
        return kiln_batch_rows(&l->batch, work->X.matrix);
    default: return KILN_OK;
    }
}

kiln_status batches_prepare(struct work *work) {
    CHECK_OK(make_X(work));
    work->own = calloc(1, sizeof(struct layout));
    work->free_own = free_layout;
    return make_layout(work, work->own);
}
