/* Reading from the page cache is copying: one thread does 7 GB/s where sixteen do 65, and memory that is new
 * to the process costs as much again, which threads share as well when each is the first to touch what it
 * reads. A chunk is as large as a huge page, so that no two threads meet in one, and small enough to be still
 * in the second-level cache when it is checked.
 *
 * Chunks are taken in order: those before one that fails have been begun and are finished, so that the first
 * failure is the same however many threads there are. The caller's thread alone talks to the caller. */
#include "io/chunks.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <zlib.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

struct work {
    struct ki_chunks *chunks;
    int64_t size, count; /* elements of a chunk; chunks */
    char *rooms;         /* one for each worker; NULL where bytes need none */
    int64_t room_bytes;
    uint32_t *crc; /* of each chunk */
    pthread_t caller;
    _Atomic int64_t next, done; /* chunk; bytes */
    _Atomic int64_t failed;     /* the first chunk that could not be read */
    pthread_mutex_t mutex;      /* for what is known of it: */
    int64_t told, reached;
    int code;
    kiln_status stopped; /* by the caller */
};

static void note_failure(struct work *w, int64_t chunk, int64_t reached, int code) {
    pthread_mutex_lock(&w->mutex);
    if (chunk < w->told) {
        w->told = chunk;
        w->reached = reached;
        w->code = code;
    }
    pthread_mutex_unlock(&w->mutex);
    ki_lower(&w->failed, chunk);
}

/* The chunk's bytes, or NULL. */
static const unsigned char *fetch(struct work *w, int worker, int64_t chunk) {
    const struct ki_chunks *c = w->chunks;
    const int64_t first = chunk * w->size, count = ki_min(w->size, c->count - first);
    const int64_t at = first * c->element, bytes = count * c->element;
    if (!c->file && !c->straight) return c->memory + at;
    char *to = c->straight ? (char *)c->straight + at : w->rooms + worker * w->room_bytes;
    if (!c->file) {
        memcpy(to, c->memory + at, (size_t)bytes);
    } else {
        const int64_t got = ki_file_try(c->file, to, c->offset + at, bytes);
        if (got != bytes) {
            note_failure(w, chunk, c->offset + at + got, got < 0 ? errno : 0);
            return NULL;
        }
    }
    return (unsigned char *)to;
}

static void serve(void *of, int worker) {
    struct work *w = of;
    struct ki_chunks *c = w->chunks;
    const bool caller = pthread_equal(pthread_self(), w->caller);
    for (;;) {
        const int64_t chunk = atomic_fetch_add(&w->next, 1);
        if (chunk >= w->count || chunk > atomic_load(&w->failed)) return;
        const int64_t first = chunk * w->size, count = ki_min(w->size, c->count - first);
        const unsigned char *raw = fetch(w, worker, chunk);
        if (!raw) return;
        if (c->checked) w->crc[chunk] = (uint32_t)crc32(0, raw, (uInt)(count * c->element));
        if (c->use) c->use(c->of, raw, first, count);
        const int64_t done = atomic_fetch_add(&w->done, count * c->element) + count * c->element;
        if (!caller || !c->watch) continue;
        const kiln_status status = ki_watch_tell(c->watch, c->offset + done, c->offset + done);
        if (status == KILN_OK) continue;
        w->stopped = status;
        atomic_store(&w->failed, -1);
    }
}

static void add_checksums(const struct work *w) {
    struct ki_chunks *c = w->chunks;
    for (int64_t chunk = 0; c->checked && chunk < w->count; chunk++) {
        const int64_t count = ki_min(w->size, c->count - chunk * w->size);
        c->crc = (uint32_t)crc32_combine(c->crc, w->crc[chunk], (z_off_t)(count * c->element));
    }
}

kiln_status ki_chunks_run(struct ki_chunks *c) {
    const int64_t size = ki_max(KI_CHUNK_BYTES / c->element, 1), count = ki_ceil_div(c->count, size);
    const int workers = (int)ki_min(c->threads, ki_max(count, 1));
    struct work w = {.chunks = c,
                     .size = size,
                     .count = count,
                     .room_bytes = ki_min(size, c->count) * c->element,
                     .caller = pthread_self(),
                     .failed = INT64_MAX,
                     .told = INT64_MAX,
                     .stopped = KILN_OK};
    kiln_status status = KILN_OK;
    if (c->file && !c->straight && !(w.rooms = ki_alloc((size_t)(workers * w.room_bytes))))
        return ki_fail_nomem((size_t)(workers * w.room_bytes), "reading a file");
    if (c->checked && !(w.crc = ki_alloc((size_t)count * sizeof *w.crc)))
        TRY(ki_fail_nomem((size_t)count * sizeof *w.crc, "checking a file"));
    pthread_mutex_init(&w.mutex, NULL);
    ki_parallel(workers, workers, serve, &w);
    pthread_mutex_destroy(&w.mutex);
    if (w.stopped != KILN_OK)
        status = w.stopped;
    else if (w.told < INT64_MAX)
        status = ki_file_fail(c->file, w.reached, w.code);
    else
        add_checksums(&w);
done:
    ki_free(w.rooms);
    ki_free(w.crc);
    return status;
}
