/* An arena is a list of pointers and of what frees each; the last is freed first. */
#include "algorithms/run/arena.h"

struct ki_held {
    void *thing;
    void (*free)(void *);
};

static void free_matrix(void *A) {
    kiln_matrix_free(A);
}

static void free_batch(void *pieces) {
    kiln_batch_free(pieces);
}

/* The arena's, or freed at once where there is no room to write it down. */
static void *arena_hold(struct ki_arena *arena, void *thing, void (*release)(void *)) {
    const struct ki_held held = {thing, release};
    const int64_t count = arena->count;
    if ((count & (count - 1)) == 0) {
        const size_t bytes = (size_t)ki_max(2 * count, 1) * sizeof held;
        struct ki_held *grown = ki_resize(arena->held, bytes);
        if (!grown) {
            release(thing);
            arena->status = ki_fail_nomem(bytes, "what a call holds");
            return NULL;
        }
        arena->held = grown;
    }
    arena->held[arena->count++] = held;
    return thing;
}

static kiln_matrix *dense(struct ki_arena *arena, const kiln_matrix *X, kiln_type type, int64_t rows,
                          int64_t cols) {
    kiln_matrix *A = NULL;
    if (arena->status == KILN_OK)
        arena->status = kiln_matrix_dense(&A, kiln_matrix_device(X), type, rows, cols, NULL);
    return arena->status == KILN_OK ? arena_hold(arena, A, free_matrix) : NULL;
}

kiln_matrix *ki_arena_rows(struct ki_arena *arena, const kiln_matrix *X, int64_t cols) {
    return dense(arena, X, kiln_matrix_type(X), kiln_matrix_rows(X), cols);
}

kiln_matrix *ki_arena_model(struct ki_arena *arena, const kiln_matrix *X, int64_t rows, int64_t cols) {
    return dense(arena, X, kiln_matrix_type(X), rows, cols);
}

kiln_matrix *ki_arena_sums(struct ki_arena *arena, const kiln_matrix *X, int64_t rows, int64_t cols) {
    kiln_device_info info = {0};
    if (arena->status == KILN_OK) arena->status = kiln_device_get_info(kiln_matrix_device(X), &info);
    return dense(arena, X, info.has_f64 ? KILN_F64 : KILN_F32, rows, cols);
}

kiln_matrix *ki_arena_fill(struct ki_arena *arena, kiln_matrix *A, double value) {
    if (arena->status == KILN_OK) arena->status = kiln_fill(A, value);
    return A;
}

kiln_matrix *ki_arena_vector(struct ki_arena *arena, const kiln_matrix *X, int64_t count,
                             const double *values) {
    kiln_matrix *A = NULL;
    if (arena->status == KILN_OK)
        arena->status = ki_vector_new(&A, kiln_matrix_device(X), kiln_matrix_type(X), count, values);
    if (A) ki_matrix_not_shared(A);
    return arena->status == KILN_OK ? arena_hold(arena, A, free_matrix) : NULL;
}

void *ki_arena_room(struct ki_arena *arena, int64_t count, size_t size) {
    int64_t bytes = 0;
    void *memory = NULL;
    if (arena->status != KILN_OK) return NULL;
    if (ki_mul(count, (int64_t)size, &bytes)) memory = ki_alloc((size_t)bytes);
    if (!memory) arena->status = ki_fail_nomem(bytes ? (size_t)bytes : SIZE_MAX, "a method's work space");
    return memory ? arena_hold(arena, memory, ki_free) : NULL;
}

void *ki_arena_zeros(struct ki_arena *arena, int64_t count, size_t size) {
    void *memory = ki_arena_room(arena, count, size);
    return memory ? memset(memory, 0, (size_t)count * size) : NULL;
}

double *ki_arena_reals(struct ki_arena *arena, int64_t count) {
    return ki_arena_zeros(arena, count, sizeof(double));
}

double *ki_arena_doubles(struct ki_arena *arena, int64_t count) {
    return ki_arena_room(arena, count, sizeof(double));
}

int64_t *ki_arena_integers(struct ki_arena *arena, int64_t count) {
    return ki_arena_zeros(arena, count, sizeof(int64_t));
}

kiln_status ki_arena_keep(struct ki_arena *arena, void *thing, void (*release)(void *)) {
    arena_hold(arena, thing, release);
    return arena->status;
}

kiln_status ki_arena_take(struct ki_arena *arena, kiln_matrix *const *A, kiln_status made) {
    return made == KILN_OK ? ki_arena_keep(arena, *A, free_matrix) : (arena->status = made);
}

kiln_status ki_arena_take_batch(struct ki_arena *arena, kiln_batch *const *pieces, kiln_status made) {
    return made == KILN_OK ? ki_arena_keep(arena, *pieces, free_batch) : (arena->status = made);
}

void *ki_arena_give(struct ki_arena *arena, void *thing) {
    for (int64_t i = 0; i < arena->count; i++)
        if (arena->held[i].thing == thing) arena->held[i].thing = NULL;
    return thing;
}

void ki_arena_drop(struct ki_arena *arena, kiln_matrix *A) {
    kiln_matrix_free(ki_arena_give(arena, A));
}

kiln_status ki_arena_free(struct ki_arena *arena, kiln_status status) {
    while (arena->count > 0) {
        const struct ki_held *held = &arena->held[--arena->count];
        if (held->thing) held->free(held->thing);
    }
    ki_free(arena->held);
    *arena = (struct ki_arena){0};
    return status;
}
