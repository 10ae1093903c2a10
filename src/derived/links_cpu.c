/* Windows of rows by length on the CPU. A branch that follows a row's length is guessed wrong at most rows of
 * a web graph; within a run it is always the same. Windows are so small that what belongs to their rows stays
 * in the second-level cache, and rows that were near each other, and so gather what is near, stay so. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "derived/links.h"

enum { HEIGHT_LEAST = 64, WINDOWS_WANTED = 64 };

struct filling {
    const struct ki_windows *windows;
    const struct ki_columns *in;
    int64_t rows;
    size_t size; /* of a weight; 0 = none */
};

static int run_of(const int64_t *start, int64_t row) {
    return (int)ki_min(start[row + 1] - start[row], KI_LONG + 1);
}

/* A counting sort, by the run and then by number. */
static void fill_window(void *of, int window) {
    const struct filling *filling = of;
    const struct ki_windows *windows = filling->windows;
    const int64_t *from = ki_host(filling->in->start);
    const int64_t first = window * windows->height, end = ki_min(first + windows->height, filling->rows);
    int32_t *runs = (int32_t *)ki_host(&windows->runs) + (int64_t)window * KI_RUNS;
    int32_t *place = ki_host(&windows->place), *source = ki_host(&windows->source);
    int64_t *start = ki_host(&windows->start), next[KI_RUNS], at = first, link = from[first];
    for (int64_t row = first; row < end; row++) runs[run_of(from, row)]++;
    for (int run = 0; run < KI_RUNS; at += runs[run++]) next[run] = at;
    for (int64_t row = first; row < end; row++) place[next[run_of(from, row)]++] = (int32_t)row;
    for (at = first; at < end; at++) {
        const int64_t begin = from[place[at]], count = from[place[at] + 1] - begin;
        memcpy(source + link, (const int32_t *)ki_host(filling->in->row) + begin, (size_t)count * 4);
        if (filling->size)
            memcpy((char *)ki_host(&windows->weight) + (size_t)link * filling->size,
                   (const char *)ki_host(filling->in->value) + (size_t)begin * filling->size,
                   (size_t)count * filling->size);
        start[at] = link;
        link += count;
    }
    if (end == filling->rows) start[end] = link;
}

kiln_status ki_windows_fill_cpu(struct ki_windows *windows, const kiln_matrix *A,
                                const struct ki_columns *in) {
    kiln_device *device = A->device;
    const int64_t n = A->cols;
    kiln_status status;
    windows->height = ki_max(HEIGHT_LEAST, ki_min(n / WINDOWS_WANTED, KI_WINDOW_CPU));
    const int64_t count = ki_ceil_div(n, windows->height);
    struct filling filling = {windows, in, n, in->value ? (size_t)ki_type_bytes(A->type) : 0};
    TRY(ki_device_alloc(device, &windows->place, n * 4));
    TRY(ki_device_alloc(device, &windows->start, (n + 1) * 8));
    TRY(ki_device_alloc(device, &windows->source, A->nnz * 4));
    if (in->value) TRY(ki_device_alloc(device, &windows->weight, A->nnz * ki_type_bytes(A->type)));
    TRY(ki_device_alloc(device, &windows->runs, count * KI_RUNS * 4));
    memset(ki_host(&windows->runs), 0, (size_t)(count * KI_RUNS) * 4);
    ki_parallel(device->threads, (int)count, fill_window, &filling);
done:
    return status;
}
