/* Reading ahead. A panel is read in stripes, which any thread takes, the waiting one among them: so it goes on, if slowly,
 * where no thread can be had, and several threads read from the page cache as fast as memory allows. */
#define _POSIX_C_SOURCE 200809L
#include "core/feeder.h"

#include <pthread.h>
#include <stdio.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

enum { THREADS = 4, STRIPES = 8 };

struct ki_feeder {
    const kiln_matrix *A;
    const struct ki_panel *panels;
    int64_t count;
    void *places[KI_SLOTS][KI_PARTS];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex. */
    int64_t taken;          /* stripes that a thread has begun, over all panels */
    int64_t read[KI_SLOTS]; /* stripes of the place's panel that are there */
    int64_t allowed;        /* panels below this may be read: their places are free */
    bool stop;
    kiln_status status; /* the first failure */
    char message[300], hint[200];
    int threads;
    pthread_t thread[THREADS];
};

static void fail(struct ki_feeder *f, kiln_status status) {
    if (f->status != KILN_OK) return;
    f->status = status;
    snprintf(f->message, sizeof f->message, "%s", kiln_last_error()->message);
    snprintf(f->hint, sizeof f->hint, "%s", kiln_last_error()->hint);
}

static kiln_status read_stripe(const struct ki_feeder *f, int64_t i, int stripe) {
    const struct ki_panel *panel = &f->panels[i];
    const int64_t begin = ki_part_begin(panel->entries, stripe, STRIPES);
    const int64_t count = ki_part_begin(panel->entries, stripe + 1, STRIPES) - begin;
    const int64_t element = ki_type_bytes(f->A->type);
    void *const *place = f->places[i % KI_SLOTS];
    kiln_status status = ki_matrix_read((char *)place[KI_VALUES] + begin * element, f->A, KI_VALUES,
                                        panel->begin + begin, count);
    if (status != KILN_OK || f->A->format == KILN_DENSE) return status;
    return ki_matrix_read((int32_t *)place[KI_COL] + begin, f->A, KI_COL, panel->begin + begin, count);
}

/* Takes a stripe that may be read and reads it; false if there is none. Called and left with the mutex locked. */
static bool work(struct ki_feeder *f) {
    const int64_t item = f->taken, i = item / STRIPES;
    if (f->status != KILN_OK || i >= f->allowed || i >= f->count) return false;
    f->taken++;
    pthread_mutex_unlock(&f->mutex);
    kiln_status status = read_stripe(f, i, (int)(item % STRIPES));
    pthread_mutex_lock(&f->mutex);
    if (status != KILN_OK) fail(f, status);
    f->read[i % KI_SLOTS]++;
    pthread_cond_broadcast(&f->changed);
    return true;
}

static void *serve(void *of) {
    struct ki_feeder *f = of;
    pthread_mutex_lock(&f->mutex);
    while (!f->stop)
        if (!work(f)) pthread_cond_wait(&f->changed, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

kiln_status ki_feeder_start(struct ki_feeder **feeder, const kiln_matrix *A, const struct ki_panel *panels,
                            int64_t count, void *places[KI_SLOTS][KI_PARTS]) {
    struct ki_feeder *f = ki_calloc(sizeof *f);
    if (!f) return ki_fail_nomem(sizeof *f, "reading ahead");
    *f = (struct ki_feeder){.A = A, .panels = panels, .count = count, .allowed = KI_SLOTS};
    for (int slot = 0; slot < KI_SLOTS; slot++)
        for (int part = 0; part < KI_PARTS; part++) f->places[slot][part] = places[slot][part];
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->changed, NULL);
    while (f->threads < ki_min(THREADS, A->device->threads) &&
           pthread_create(&f->thread[f->threads], NULL, serve, f) == 0)
        f->threads++;
    *feeder = f;
    return KILN_OK;
}

kiln_status ki_feeder_wait(struct ki_feeder *f, int64_t i) {
    pthread_mutex_lock(&f->mutex);
    while (f->status == KILN_OK && f->read[i % KI_SLOTS] < STRIPES)
        if (!work(f)) pthread_cond_wait(&f->changed, &f->mutex);
    const kiln_status status = f->status;
    pthread_mutex_unlock(&f->mutex);
    if (status == KILN_OK) return KILN_OK;
    ki_fail(status, "%s", f->message);
    return *f->hint ? ki_hint("%s", f->hint) : status;
}

void ki_feeder_done(struct ki_feeder *f, int64_t i) {
    pthread_mutex_lock(&f->mutex);
    f->read[i % KI_SLOTS] = 0;
    f->allowed = i + 1 + KI_SLOTS;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
}

void ki_feeder_stop(struct ki_feeder *f) {
    if (!f) return;
    pthread_mutex_lock(&f->mutex);
    f->stop = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
    for (int t = 0; t < f->threads; t++) pthread_join(f->thread[t], NULL);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->mutex);
    ki_free(f);
}
