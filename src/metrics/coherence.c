/* This file computes how well a topic's words go together: which documents have a word is a row of bits, and
 * what two words share the bits of both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "metrics/metrics.h"

#define TINY 1e-12

struct words {
    int64_t topics, top, documents, columns;
    const int64_t *words;
    int64_t count;  /* of different words */
    int64_t *place; /* a column's row of bits, -1: it is in no topic */
    int64_t line;   /* 64-bit numbers of a row */
    uint64_t *bits;
};

static void words_free(struct words *w) {
    ki_free(w->place);
    ki_free(w->bits);
}

/* A row for each column that is a topic's word. */
static kiln_status find_words(struct words *w, const char *call) {
    if (!(w->place = ki_alloc((size_t)w->columns * sizeof *w->place)))
        return ki_fail_nomem((size_t)w->columns * sizeof *w->place, "the words");
    for (int64_t j = 0; j < w->columns; j++) w->place[j] = -1;
    for (int64_t i = 0; i < w->topics * w->top; i++) {
        const int64_t word = w->words[i];
        if (word < -1 || word >= w->columns)
            return ki_fail(KILN_ERR_ARGUMENT, "%s: there is no column %lld", call, (long long)word);
        if (word >= 0 && i % w->top > 0 && w->words[i - 1] < 0)
            return ki_fail(KILN_ERR_ARGUMENT, "%s: topic %lld has column %lld behind a -1, which ends it",
                           call, (long long)(i / w->top), (long long)word);
        if (word >= 0 && w->place[word] < 0) w->place[word] = w->count++;
    }
    w->line = ki_ceil_div(w->documents, 64);
    const size_t bytes = (size_t)(w->count * w->line) * sizeof *w->bits;
    if (!(w->bits = ki_calloc(bytes))) return ki_fail_nomem(bytes, "the words' documents");
    return KILN_OK;
}

static kiln_status mark(struct words *w, const kiln_matrix *X) {
    kiln_status status;
    const int64_t nnz = kiln_matrix_nnz(X);
    const bool single = kiln_matrix_type(X) == KILN_F32;
    const size_t element = single ? sizeof(float) : sizeof(double);
    int64_t *start = ki_alloc((size_t)(w->documents + 1) * sizeof *start);
    int32_t *col = ki_alloc((size_t)nnz * sizeof *col);
    void *values = ki_alloc((size_t)nnz * element);
    if (!start || !col || !values) TRY(ki_fail_nomem((size_t)nnz * 12, "the entries on the host"));
    TRY(kiln_matrix_get_csr(start, col, values, X));
    for (int64_t d = 0; d < w->documents; d++)
        for (int64_t e = start[d]; e < start[d + 1]; e++) {
            const int64_t place = w->place[col[e]];
            const double value = single ? (double)((const float *)values)[e] : ((const double *)values)[e];
            if (place >= 0 && value > 0) w->bits[place * w->line + d / 64] |= (uint64_t)1 << (d % 64);
        }
done:
    ki_free(start);
    ki_free(col);
    ki_free(values);
    return status;
}

/* Returns how many documents have both words. */
static double together(const struct words *w, int64_t one, int64_t other) {
    const uint64_t *a = w->bits + w->place[one] * w->line, *b = w->bits + w->place[other] * w->line;
    int64_t count = 0;
    for (int64_t i = 0; i < w->line; i++) count += __builtin_popcountll(a[i] & b[i]);
    return (double)count;
}

static double pair(const struct words *w, kiln_coherence_kind kind, int64_t word, int64_t before) {
    const double all = (double)w->documents, both = together(w, word, before) / all;
    const double own = together(w, word, word) / all, other = together(w, before, before) / all;
    if (own == 0 || other == 0) return 0;
    if (kind == KILN_COHERENCE_UMASS) return log((both + TINY) / other);
    return log((both + TINY) / (own * other)) / -log(both + TINY);
}

static double coherence(const struct words *w, kiln_coherence_kind kind, const int64_t *words) {
    double sum = 0;
    int64_t pairs = 0;
    for (int64_t i = 1; i < w->top && words[i] >= 0; i++)
        for (int64_t j = 0; j < i; j++, pairs++) sum += pair(w, kind, words[i], words[j]);
    return pairs ? sum / (double)pairs : NAN;
}

kiln_status kiln_coherence(double *coherences, kiln_coherence_kind kind, int64_t topics, int64_t top,
                           const int64_t *words, const kiln_matrix *X) {
    static const char call[] = "kiln_coherence";
    kiln_status status;
    if (!coherences || !words || !X || topics < 0 || top < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL, or a number of words less than 1", call);
    if (kind != KILN_COHERENCE_UMASS && kind != KILN_COHERENCE_NPMI)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: there is no kind %d", call, (int)kind);
    if (kiln_matrix_format(X) != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: X must be sparse", call);
    struct words w = {.topics = topics,
                      .top = top,
                      .words = words,
                      .documents = kiln_matrix_rows(X),
                      .columns = kiln_matrix_cols(X)};
    TRY(find_words(&w, call));
    TRY(mark(&w, X));
    for (int64_t t = 0; t < topics; t++) coherences[t] = coherence(&w, kind, words + t * top);
done:
    words_free(&w);
    return status;
}
