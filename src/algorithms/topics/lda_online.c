/* Online variational Bayes: documents are shuffled once and cut into batches; each batch's gamma is found
 * from scratch, and lambda goes a part of the way, rho_t = (delay + t)^-decay, to what it would be if all
 * documents were like the batch.
 * Source: Hoffman, Blei and Bach, "Online learning for latent Dirichlet allocation", NIPS 2010. */
#include "algorithms/topics/lda.h"

enum { STEPS_MOST = 100 };
#define REST 1e-3 /* mean change of gamma at which a batch is done */

struct ki_lda_batches {
    int64_t count, topics, steps; /* steps of lambda so far */
    double documents, delay, decay;
    kiln_matrix **X; /* of each batch */
};

int64_t *ki_lda_batches_steps(struct ki_lda_batches *batches) {
    return batches ? &batches->steps : NULL;
}

/* Fisher and Yates. */
static void shuffle(int64_t *order, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t word[4];
        kiln_random(word, seed, KI_STREAM_LDA_ORDER, (uint64_t)i);
        const uint64_t wide = (uint64_t)word[0] << 32 | word[1];
        const int64_t other = (int64_t)(wide % (uint64_t)(i + 1)), held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
}

/* The rows order[0 .. rows) of the entries. */
static kiln_status take_rows(kiln_matrix **X, const struct ki_host_entries *entries, const int64_t *order,
                             int64_t rows, const kiln_matrix *like) {
    struct ki_host_entries to = {0};
    int64_t nnz = 0;
    kiln_status status;
    for (int64_t i = 0; i < rows; i++) nnz += entries->start[order[i] + 1] - entries->start[order[i]];
    TRY(ki_entries_new(&to, rows, entries->cols, nnz));
    for (int64_t i = 0; i < rows; i++) {
        const int64_t from = entries->start[order[i]], count = entries->start[order[i] + 1] - from;
        memcpy(to.col + to.start[i], entries->col + from, (size_t)count * sizeof *to.col);
        memcpy(to.value + to.start[i], entries->value + from, (size_t)count * sizeof *to.value);
        to.start[i + 1] = to.start[i] + count;
    }
    TRY(ki_entries_matrix(X, &to, like));
done:
    ki_host_entries_free(&to);
    return status;
}

kiln_status ki_lda_batches_new(struct ki_lda_batches **batches, struct ki_arena *arena, const kiln_matrix *X,
                               int64_t k, const kiln_lda_options *options) {
    const int64_t m = kiln_matrix_rows(X), size = options->batch, count = ki_ceil_div(m, size);
    struct ki_arena own = {0};
    struct ki_host_entries entries = {0};
    struct ki_lda_batches *made = ki_arena_zeros(arena, 1, sizeof(struct ki_lda_batches));
    kiln_matrix **const list = ki_arena_zeros(arena, count, sizeof(kiln_matrix *));
    int64_t *const order = ki_arena_integers(&own, m);
    kiln_status status;
    TRY(arena->status);
    TRY(own.status);
    TRY(ki_entries_get(&entries, X));
    *made = (struct ki_lda_batches){
        .topics = k, .documents = (double)m, .delay = options->delay, .decay = options->decay, .X = list};
    shuffle(order, m, (uint64_t)options->seed);
    for (int64_t *i = &made->count; *i < count; ++*i) {
        const int64_t first = *i * size, rows = ki_min(size, m - first);
        TRY(ki_arena_take(arena, &list[*i], take_rows(&list[*i], &entries, order + first, rows, X)));
    }
    *batches = made;
done:
    ki_host_entries_free(&entries);
    return ki_arena_free(&own, status);
}

static kiln_status run_batch(struct ki_lda_batches *batches, const kiln_matrix *X, struct ki_lda_topics *t,
                             const double *alpha) {
    const double rows = (double)kiln_matrix_rows(X);
    const double share = pow(batches->delay + (double)++batches->steps, -batches->decay);
    struct ki_arena arena = {0};
    struct ki_lda_documents d = {0};
    kiln_status status;
    double change = INFINITY;
    TRY(ki_lda_documents_new(&d, &arena, X, batches->topics, false));
    TRY(ki_lda_documents_begin(&d, t, alpha));
    for (int step = 0; step < STEPS_MOST && change > REST * rows * (double)batches->topics; step++)
        TRY(ki_lda_documents_step(&d, t, NULL, &change));
    TRY(ki_lda_words(NULL, &d, t));
    TRY(ki_lda_topics_update(t, 1 - share, share, batches->documents / rows));
    TRY(ki_lda_topics_ready(t));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_lda_batches_run(struct ki_lda_batches *batches, struct ki_lda_topics *t, const double *alpha) {
    kiln_status status = KILN_OK;
    for (int64_t i = 0; i < batches->count; i++) TRY(run_batch(batches, batches->X[i], t, alpha));
done:
    return status;
}
