/* Moves what sampled products move, without their arithmetic, at the most that memory and caches give. Two
 * threads have half of the entries each; in blocks of 256 entries the rows of B are loaded in the matrix's
 * order, asked for `ahead` entries early, then the rows of A that begin in the block, then the entries'
 * values, and products or rows of Y are stored. rows_moved.py calls it:
 *
 *     cc -O3 -march=native -shared -fPIC -pthread -o rows_moved.so rows_moved.c */
#include <immintrin.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCK = 256, LINE = 64 };

/* P NULL: no products are stored; A NULL: rows of B alone are moved. Rows of `bytes`, a multiple of 128. */
struct work {
    const int64_t *start;
    const int32_t *col;
    const float *value;
    const char *A, *B;
    float *P;
    char *Y;
    int64_t first, last, row, bytes, ahead;
    __m512i sum;
};

static inline __attribute__((always_inline)) void load(__m512i sum[2], const char *row, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 2 * LINE) {
        sum[0] = _mm512_xor_si512(sum[0], _mm512_loadu_si512(row + at));
        sum[1] = _mm512_xor_si512(sum[1], _mm512_loadu_si512(row + at + LINE));
    }
}

static inline __attribute__((always_inline)) void store_past(char *row, int64_t bytes, __m512i x) {
    for (int64_t at = 0; at < bytes; at += LINE) _mm512_stream_si512((void *)(row + at), x);
}

static inline __attribute__((always_inline)) void move(struct work *w, int64_t bytes) {
    __m512i sum[2] = {{0}, {0}};
    for (int64_t from = w->first; from < w->last; from += BLOCK) {
        const int64_t end = from + BLOCK < w->last ? from + BLOCK : w->last;
        for (int64_t e = from; e < end; e++) {
            const char *next = w->B + w->col[e + w->ahead < w->last ? e + w->ahead : e] * bytes;
            for (int64_t at = 0; w->ahead && at < bytes && at < 1024; at += LINE)
                __builtin_prefetch(next + at);
            load(sum, w->B + w->col[e] * bytes, bytes);
        }
        for (; w->A && w->start[w->row] < end; w->row++) {
            load(sum, w->A + w->row * bytes, bytes);
            if (w->Y) store_past(w->Y + w->row * bytes, bytes, sum[0]);
        }
        if (w->P)
            for (int64_t e = from; e < end; e++) w->P[e] = w->value[e];
    }
    w->sum = _mm512_xor_si512(sum[0], sum[1]);
}

static void *run(void *of) {
    struct work *w = of;
    switch (w->bytes) {
    case 128: move(w, 128); break;
    case 512: move(w, 512); break;
    case 2048: move(w, 2048); break;
    default: break;
    }
    return NULL;
}

int rows_moved(const int64_t *start, const int32_t *col, const float *value, const char *A, const char *B,
               float *P, char *Y, int64_t rows, int64_t bytes, int64_t ahead) {
    struct work of[2];
    pthread_t other;
    int64_t half = 0;
    while (start[half] < start[rows] / 2) half++;
    for (int i = 0; i < 2; i++)
        of[i] = (struct work){
            start,        col,   value, A,  B, P, Y, i ? start[half] : 0, i ? start[rows] : start[half],
            i ? half : 0, bytes, ahead, {0}};
    pthread_create(&other, NULL, run, &of[1]);
    run(&of[0]);
    pthread_join(other, NULL);
    return (int)_mm512_reduce_add_epi32(_mm512_xor_si512(of[0].sum, of[1].sum));
}
