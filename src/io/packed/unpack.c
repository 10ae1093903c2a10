/* One thread fills batches of text while the caller parses the batch before. Where whole members (of gzip;
 * zstd calls them frames) lie in the window of the file that is looked at, they are decoded side by side,
 * each straight to its place in the batch; a longer one is decoded step by step.
 *
 * Where a gzip member ends is known only once it is decoded. So its end is guessed: the next bytes that look
 * like a member's beginning, before which four bytes say how long the text is. Each guess is proved by
 * decoding: a member has to end exactly there, with so many bytes and their checksum. One that does not, and
 * all that is damaged, is decoded again step by step, which finds the true end, or says what is wrong as it
 * would without threads. */
#define _POSIX_C_SOURCE 200809L
#include "io/packed/unpack.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

enum {
    BATCHES = 2,
    STEP = 4 << 20,    /* text of a batch that is decoded step by step */
    WINDOW = 4 << 20,  /* bytes of the file that are looked at for members, at least; a MiB for each thread */
    TEXT = 32 << 20,   /* text of members that are decoded side by side, at most; at least 4 MiB a thread */
    MEMBERS = 1 << 11, /* of a batch */
    SIDES = 64         /* threads that decode them */
};

struct member {
    const unsigned char *in;
    int64_t bytes, at, size; /* of the file; where its text stands in the batch, and how long it is */
};

struct batch {
    char *text;
    int64_t capacity, size, read, taken;
};

struct ki_unpack {
    const struct ki_file *file;
    struct ki_decoder *decoder, *side[SIDES];
    int sides;
    unsigned char *window; /* window[begin..end) are the file's bytes from `at` on */
    int64_t window_bytes, begin, end, at, text_most;
    bool file_over;
    int64_t refused; /* where a member begins that is decoded step by step */
    /* These are the batch that is being made. */
    struct member member[MEMBERS];
    int64_t members;
    char *text;
    _Atomic int64_t next, bad; /* member */
    /* Under the mutex. */
    struct batch batch[BATCHES];
    int64_t made, used; /* batches */
    bool stop, over;
    kiln_status status;
    struct ki_error_copy error;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
};

/* Fills the window where less than half of it is left. */
static kiln_status fill_window(struct ki_unpack *u) {
    if (u->file_over || u->end - u->begin > u->window_bytes / 2) return KILN_OK;
    memmove(u->window, u->window + u->begin, (size_t)(u->end - u->begin));
    u->end -= u->begin;
    u->begin = 0;
    const int64_t wanted = u->window_bytes - u->end;
    const int64_t got = ki_file_try(u->file, u->window + u->end, u->at + u->end, wanted);
    if (got < 0) return ki_file_fail(u->file, u->at + u->end, errno);
    u->end += got;
    u->file_over = got < wanted;
    return KILN_OK;
}

static void pass(struct ki_unpack *u, int64_t bytes) {
    u->begin += bytes;
    u->at += bytes;
}

/* Somewhat more than is needed now: new memory costs as much as decoding into it, and the next batch is about
 * as large. */
static kiln_status make_room(struct batch *batch, int64_t bytes) {
    if (batch->capacity >= bytes) return KILN_OK;
    ki_free(batch->text);
    batch->capacity = 0;
    batch->text = ki_alloc((size_t)(bytes + bytes / 2));
    if (!batch->text) return ki_fail_nomem((size_t)(bytes + bytes / 2), "decompression");
    batch->capacity = bytes + bytes / 2;
    return KILN_OK;
}

/* --------------------------------------------------------------------------------------- side by side */

/* The members that lie in the window, as far as is guessed; returns how long their text is. */
static int64_t find_members(struct ki_unpack *u) {
    int64_t at = u->begin, text = 0, size;
    size_t bytes;
    u->members = 0;
    while (
        u->members < MEMBERS && at < u->end &&
        ki_decoder_member(u->decoder, u->window + at, (size_t)(u->end - at), u->file_over, &bytes, &size) &&
        size <= u->text_most - text) {
        u->member[u->members++] = (struct member){u->window + at, (int64_t)bytes, text, size};
        text += size;
        at += (int64_t)bytes;
    }
    return text;
}

static bool decode_member(struct ki_decoder *decoder, const struct member *m, char *text) {
    struct ki_step step = {.in = m->in, .in_size = (size_t)m->bytes};
    int64_t made = 0;
    ki_decoder_restart(decoder, 0);
    while (step.in_size > 0) {
        step.out = (unsigned char *)text + m->at + made;
        step.out_size = (size_t)(m->size - made);
        if (ki_decoder_step(decoder, &step) != KILN_OK || step.used + step.made == 0) return false;
        made += (int64_t)step.made;
        step.in += step.used;
        step.in_size -= step.used;
        if (!ki_decoder_within(decoder)) break;
    }
    return step.in_size == 0 && made == m->size && !ki_decoder_within(decoder);
}

static void decode_some(void *of, int side) {
    struct ki_unpack *u = of;
    for (int64_t i; (i = atomic_fetch_add(&u->next, 1)) < u->members && i < atomic_load(&u->bad);)
        if (!decode_member(u->side[side], &u->member[i], u->text)) ki_lower(&u->bad, i);
}

/* Decodes the members that come next; none, if the next one is better decoded step by step. */
static kiln_status side_by_side(struct ki_unpack *u, struct batch *batch) {
    const int64_t text = find_members(u);
    kiln_status status = KILN_OK;
    if (u->members == 0 || (u->members == 1 && text > STEP)) return KILN_OK;
    TRY(make_room(batch, ki_max(text, 1)));
    u->text = batch->text;
    atomic_store(&u->next, 0);
    atomic_store(&u->bad, u->members);
    ki_parallel(u->sides, (int)ki_min(u->sides, u->members), decode_some, u);
    const int64_t good = atomic_load(&u->bad);
    if (good < u->members) u->refused = u->at + (u->member[good].in - u->window - u->begin);
    if (good == 0) goto done;
    batch->size = u->member[good - 1].at + u->member[good - 1].size;
    pass(u, u->member[good - 1].in + u->member[good - 1].bytes - u->window - u->begin);
done:
    return status;
}

/* ---------------------------------------------------------------------------------------- step by step */

/* Decodes on to the end of a member, of the batch or of the file. */
static kiln_status step_by_step(struct ki_unpack *u, struct batch *batch, bool *over) {
    kiln_status status;
    TRY(make_room(batch, STEP));
    if (!ki_decoder_within(u->decoder)) ki_decoder_restart(u->decoder, u->at);
    do {
        TRY(fill_window(u));
        if (u->begin == u->end) {
            *over = true;
            return ki_decoder_end(u->decoder);
        }
        struct ki_step step = {.in = u->window + u->begin,
                               .in_size = (size_t)(u->end - u->begin),
                               .out = (unsigned char *)batch->text + batch->size,
                               .out_size = (size_t)(STEP - batch->size)};
        status = ki_decoder_step(u->decoder, &step);
        batch->size += (int64_t)step.made;
        pass(u, (int64_t)step.used);
    } while (status == KILN_OK && batch->size < STEP && ki_decoder_within(u->decoder));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- batches */

/* Fills a batch; it may hold text in spite of an error, which belongs behind that. */
static kiln_status make_batch(struct ki_unpack *u, struct batch *batch, bool *over) {
    kiln_status status = KILN_OK;
    batch->size = batch->read = 0;
    while (batch->size == 0 && !*over) {
        const int64_t before = u->at;
        TRY(fill_window(u));
        if (!ki_decoder_within(u->decoder) && u->at != u->refused) TRY(side_by_side(u, batch));
        if (u->at == before) TRY(step_by_step(u, batch, over));
    }
done:
    batch->taken = u->at;
    return status;
}

static void *serve(void *of) {
    struct ki_unpack *u = of;
    pthread_mutex_lock(&u->mutex);
    while (!u->over && !u->stop) {
        if (u->made - u->used == BATCHES) {
            pthread_cond_wait(&u->changed, &u->mutex);
            continue;
        }
        struct batch *batch = &u->batch[u->made % BATCHES];
        bool over = false;
        pthread_mutex_unlock(&u->mutex);
        const kiln_status status = make_batch(u, batch, &over);
        pthread_mutex_lock(&u->mutex);
        if (status != KILN_OK) ki_error_keep(&u->error);
        u->status = status;
        u->over = over || status != KILN_OK;
        u->made += batch->size > 0;
        pthread_cond_signal(&u->changed);
    }
    pthread_mutex_unlock(&u->mutex);
    return NULL;
}

static void release(struct ki_unpack *u) {
    for (int i = 0; i < u->sides; i++) ki_decoder_free(u->side[i]);
    for (int i = 0; i < BATCHES; i++) ki_free(u->batch[i].text);
    pthread_cond_destroy(&u->changed);
    pthread_mutex_destroy(&u->mutex);
    ki_free(u->window);
    ki_free(u);
}

struct ki_unpack *ki_unpack_start(const struct ki_file *file, struct ki_decoder *decoder, int threads) {
    struct ki_unpack *u = ki_calloc(sizeof *u);
    if (!u) return NULL;
    u->file = file;
    u->decoder = decoder;
    u->refused = -1;
    u->window_bytes = ki_max(WINDOW, (int64_t)threads << 20);
    u->text_most = ki_max(TEXT, (int64_t)threads << 22);
    pthread_mutex_init(&u->mutex, NULL);
    pthread_cond_init(&u->changed, NULL);
    u->window = ki_alloc((size_t)u->window_bytes);
    while (u->sides < ki_min(threads, SIDES) && ki_decoder_again(&u->side[u->sides], decoder) == KILN_OK)
        u->sides++;
    if (u->window && u->sides > 0 && pthread_create(&u->thread, NULL, serve, u) == 0) return u;
    release(u);
    return NULL;
}

kiln_status ki_unpack_take(struct ki_unpack *u, char *to, size_t bytes, size_t *got, int64_t *taken) {
    kiln_status status = KILN_OK;
    *got = 0;
    pthread_mutex_lock(&u->mutex);
    while (u->made == u->used && !u->over) pthread_cond_wait(&u->changed, &u->mutex);
    const bool some = u->made > u->used;
    if (!some) status = u->status;
    pthread_mutex_unlock(&u->mutex);
    if (!some) return status == KILN_OK ? KILN_OK : ki_error_renew(&u->error);
    struct batch *batch = &u->batch[u->used % BATCHES];
    *got = (size_t)ki_min((int64_t)bytes, batch->size - batch->read);
    memcpy(to, batch->text + batch->read, *got);
    batch->read += (int64_t)*got;
    *taken = batch->taken;
    if (batch->read < batch->size) return KILN_OK;
    pthread_mutex_lock(&u->mutex);
    u->used++;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->mutex);
    return KILN_OK;
}

void ki_unpack_stop(struct ki_unpack *u) {
    if (!u) return;
    pthread_mutex_lock(&u->mutex);
    u->stop = true;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->mutex);
    pthread_join(u->thread, NULL);
    release(u);
}
