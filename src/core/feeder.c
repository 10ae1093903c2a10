/* Reading ahead. A panel is read in stripes, which any thread takes, the waiting one among them: so it goes
 * on, if slowly, where no thread can be had, and several threads read from the page cache as fast as memory
 * allows. */
#define _POSIX_C_SOURCE 200809L
#include "core/feeder.h"

#include <pthread.h>
#include <stdio.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

enum { THREADS_MAX = 64, STRIPE = 1 << 20, STRIPES_MAX = 1 << 10 };

struct ki_feeder {
    const kiln_matrix *A;
    const struct ki_panel *panels;
    int64_t count;
    int slots, stripes; /* of a panel */
    void *places[KI_AHEAD][KI_PARTS];
    pthread_mutex_t mutex;
    pthread_cond_t readable, arrived; /* something for the readers to do; a whole panel, or a failure */
    /* Under the mutex. */
    int64_t taken;          /* stripes that a thread has begun, over all panels */
    int64_t read[KI_AHEAD]; /* stripes of the place's panel that are there */
    int64_t allowed;        /* panels below this may be read: their places are free */
    bool stop;
    kiln_status status; /* the first failure */
    struct ki_error_copy error;
    int threads;
    pthread_t thread[THREADS_MAX];
};

static void fail(struct ki_feeder *f, kiln_status status) {
    if (f->status == KILN_OK) ki_error_keep(&f->error);
    if (f->status == KILN_OK) f->status = status;
}

static kiln_status read_stripe(const struct ki_feeder *f, int64_t i, int stripe) {
    const struct ki_panel *panel = &f->panels[i];
    const int64_t begin = ki_part_begin(panel->entries, stripe, f->stripes);
    const int64_t count = ki_part_begin(panel->entries, stripe + 1, f->stripes) - begin;
    const int64_t element = ki_type_bytes(f->A->type);
    void *const *place = f->places[i % f->slots];
    kiln_status status = ki_matrix_read((char *)place[KI_VALUES] + begin * element, f->A, KI_VALUES,
                                        panel->begin + begin, count);
    if (status != KILN_OK || f->A->format == KILN_DENSE) return status;
    return ki_matrix_read((int32_t *)place[KI_COL] + begin, f->A, KI_COL, panel->begin + begin, count);
}

/* Takes a stripe that may be read and reads it; false if there is none. Called and left with the mutex
 * locked. */
static bool work(struct ki_feeder *f) {
    const int64_t item = f->taken, i = item / f->stripes;
    if (f->status != KILN_OK || i >= f->allowed || i >= f->count) return false;
    f->taken++;
    pthread_mutex_unlock(&f->mutex);
    kiln_status status = read_stripe(f, i, (int)(item % f->stripes));
    pthread_mutex_lock(&f->mutex);
    if (status != KILN_OK) fail(f, status);
    if (++f->read[i % f->slots] == f->stripes || status != KILN_OK) pthread_cond_signal(&f->arrived);
    return true;
}

static void *serve(void *of) {
    struct ki_feeder *f = of;
    pthread_mutex_lock(&f->mutex);
    while (!f->stop)
        if (!work(f)) pthread_cond_wait(&f->readable, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

kiln_status ki_feeder_start(struct ki_feeder **feeder, const kiln_matrix *A, const struct ki_panel *panels,
                            int64_t count, void *places[][KI_PARTS], int slots) {
    struct ki_feeder *f = ki_calloc(sizeof *f);
    if (!f) return ki_fail_nomem(sizeof *f, "reading ahead");
    int64_t entries = 0;
    for (int64_t i = 0; i < count; i++) entries = ki_max(entries, panels[i].entries);
    const int64_t stripes = ki_ceil_div(entries * ki_type_bytes(A->type), STRIPE);
    *f = (struct ki_feeder){.A = A,
                            .panels = panels,
                            .count = count,
                            .slots = slots,
                            .stripes = (int)ki_min(ki_max(stripes, 1), STRIPES_MAX),
                            .allowed = slots};
    for (int slot = 0; slot < slots; slot++)
        for (int part = 0; part < KI_PARTS; part++) f->places[slot][part] = places[slot][part];
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->readable, NULL);
    pthread_cond_init(&f->arrived, NULL);
    while (f->threads < ki_min(THREADS_MAX, A->device->threads) &&
           pthread_create(&f->thread[f->threads], NULL, serve, f) == 0)
        f->threads++;
    *feeder = f;
    return KILN_OK;
}

kiln_status ki_feeder_wait(struct ki_feeder *f, int64_t i) {
    pthread_mutex_lock(&f->mutex);
    while (f->status == KILN_OK && f->read[i % f->slots] < f->stripes)
        if (f->taken / f->stripes > i || !work(f)) /* a stripe of a later panel would keep this one waiting */
            pthread_cond_wait(&f->arrived, &f->mutex);
    const kiln_status status = f->status;
    pthread_mutex_unlock(&f->mutex);
    return status == KILN_OK ? KILN_OK : ki_error_renew(&f->error);
}

void ki_feeder_done(struct ki_feeder *f, int64_t i) {
    pthread_mutex_lock(&f->mutex);
    f->read[i % f->slots] = 0;
    f->allowed = i + 1 + f->slots;
    pthread_cond_broadcast(&f->readable);
    pthread_mutex_unlock(&f->mutex);
}

void ki_feeder_stop(struct ki_feeder *f) {
    if (!f) return;
    pthread_mutex_lock(&f->mutex);
    f->stop = true;
    pthread_cond_broadcast(&f->readable);
    pthread_mutex_unlock(&f->mutex);
    for (int t = 0; t < f->threads; t++) pthread_join(f->thread[t], NULL);
    pthread_cond_destroy(&f->readable);
    pthread_cond_destroy(&f->arrived);
    pthread_mutex_destroy(&f->mutex);
    ki_free(f);
}
