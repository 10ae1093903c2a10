/* A dense matrix's rows, a sample: the rows are cut into as many parts as are wanted, and of each part one
 * row is taken, now here, now there (the golden ratio's multiples), so that rows in order, or in a pattern,
 * give a fair share of what they hold. Also finds columns in which the sample hardly varies, by Boyer and
 * Moore's vote: each row either is like the value that leads, or is paired with a row of it. */
#include <string.h>

#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/threads.h"
#include "derived/select.h"

enum { TASKS = 64 };

struct sampling {
    const kiln_matrix *X;
    const char *from; /* NULL: X's values are narrow */
    char *to;
    int64_t rows, count, bytes; /* bytes: of a row */
};

static int64_t chosen(const struct sampling *of, int64_t i) {
    const int64_t first = of->rows * i / of->count, room = of->rows * (i + 1) / of->count - first;
    const uint64_t share = (uint64_t)i * 0x9E3779B97F4A7C15u >> 32;
    return first + (int64_t)(share * (uint64_t)room >> 32);
}

static void copy(void *arg, int task) {
    const struct sampling *of = arg;
    const int64_t end = of->count * (task + 1) / TASKS;
    for (int64_t i = of->count * task / TASKS; i < end; i++)
        if (of->from)
            memcpy(of->to + i * of->bytes, of->from + chosen(of, i) * of->bytes, (size_t)of->bytes);
        else
            ki_narrow_get_here(of->to + i * of->bytes, of->X, chosen(of, i) * of->X->cols, of->X->cols);
}

void ki_sample_rows(kiln_matrix *few, const kiln_matrix *X) {
    struct sampling of = {.X = X,
                          .from = X->element ? NULL : ki_host(&X->values),
                          .to = ki_host(&few->values),
                          .rows = X->rows,
                          .count = few->rows,
                          .bytes = X->cols * ki_type_bytes(X->type)};
    ki_parallel(X->device->threads, TASKS, copy, &of);
}

static double at(const kiln_matrix *X, int64_t k) {
    const void *values = ki_host(&X->values);
    double value[1]; /* room for either type */
    if (X->element) {
        ki_narrow_get_here(value, X, k, 1);
        values = value;
        k = 0;
    }
    return X->type == KILN_F32 ? (double)((const float *)values)[k] : ((const double *)values)[k];
}

int64_t ki_sample_differs(const kiln_matrix *X, int64_t count, int64_t column, int64_t enough) {
    const struct sampling of = {.rows = X->rows, .count = count};
    double leader = 0;
    int64_t votes = 0, pairs = 0;
    for (int64_t i = 0; i < count && pairs < enough; i++) {
        const double value = at(X, chosen(&of, i) * X->cols + column);
        if (votes == 0) leader = value;
        if (value == leader) {
            votes++;
        } else {
            votes--;
            pairs++;
        }
    }
    return pairs;
}
