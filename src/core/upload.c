/* Host memory that a device can read at the link's full speed must be pinned, and pinning what is uploaded
 * once costs more than the upload (measured: 2.5 GB take 44 ms at 55 GB/s, pinning and unpinning them 135 ms,
 * leaving it to the driver 290 ms). So there are two halves of pinned staging memory: while one is on its
 * way, threads fill the other. What fills them may as well be a file, whose bytes then pass through no other
 * memory. */
#include "core/upload.h"

#include <limits.h>
#include <pthread.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

/* Halves are large enough that waking threads and starting transfers does not show, and a part of the whole,
 * as the first one is filled while nothing moves; pieces small enough to even out threads held up. */
enum { HALVES = 2, HALF_MIN = 4 << 20, HALF_MAX = 32 << 20, HALVES_IN_ALL = 8, PIECE = 1 << 20 };

struct upload {
    ki_fill *fill;
    void *of;
    char *half;            /* that is filled */
    int64_t offset, bytes; /* of what goes there */
    pthread_mutex_t mutex; /* for what went wrong: */
    int failed;            /* the first piece, INT_MAX: none */
    struct ki_error_copy error;
};

static void fill_piece(void *of, int piece) {
    struct upload *u = of;
    const int64_t begin = (int64_t)piece * PIECE;
    if (u->fill(u->of, u->half + begin, u->offset + begin, ki_min(PIECE, u->bytes - begin)) == KILN_OK)
        return;
    pthread_mutex_lock(&u->mutex);
    if (piece < u->failed) {
        u->failed = piece;
        ki_error_keep(&u->error);
    }
    pthread_mutex_unlock(&u->mutex);
}

static kiln_status fill_half(struct upload *u, int threads) {
    ki_parallel(threads, (int)ki_ceil_div(u->bytes, PIECE), fill_piece, u);
    return u->failed == INT_MAX ? KILN_OK : ki_error_renew(&u->error);
}

static kiln_status run(kiln_device *device, struct ki_buffer *to, int64_t bytes, struct upload *u) {
    const struct ki_backend *backend = device->backend;
    const int64_t wanted = ki_min(ki_max(bytes / HALVES_IN_ALL, HALF_MIN), HALF_MAX);
    const int64_t size = ki_min(ki_ceil_div(wanted, PIECE) * PIECE, bytes);
    void *staging;
    bool moving = false;
    kiln_status status, ended;
    TRY(ki_device_staging(device, KI_STAGING_UPLOAD, &staging, HALVES * size));
    for (int64_t i = 0; i * size < bytes; i++) {
        u->half = (char *)staging + i % HALVES * size;
        u->offset = i * size;
        u->bytes = ki_min(size, bytes - u->offset);
        TRY(fill_half(u, device->threads));
        if (moving) TRY(backend->upload_wait(device));
        moving = false;
        TRY(backend->upload_queue(device, to, u->offset, u->half, u->bytes));
        moving = true;
    }
done:
    /* Copies on their way must arrive, whatever happened; the first error counts. */
    if (moving && !device->lost) {
        struct ki_error_copy first;
        if (status != KILN_OK) ki_error_keep(&first);
        ended = backend->upload_wait(device);
        if (status == KILN_OK) return ended;
        ki_error_renew(&first);
    }
    return status;
}

kiln_status ki_upload_filled(kiln_device *device, struct ki_buffer *to, int64_t bytes, ki_fill *fill,
                             void *of) {
    struct upload u = {.fill = fill, .of = of, .failed = INT_MAX};
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK || bytes == 0) return status;
    const double start = ki_clock();
    pthread_mutex_init(&u.mutex, NULL);
    status = run(device, to, bytes, &u);
    pthread_mutex_destroy(&u.mutex);
    if (status != KILN_OK) return status;
    device->statistics.bytes_up += bytes;
    device->statistics.transfer_seconds += ki_clock() - start;
    return KILN_OK;
}
