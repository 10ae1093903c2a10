/* What an arena holds is a list of pointers and of what frees each; the last is freed first. */
#include "algorithms/run/arena.h"

enum kind { MEMORY, MATRIX, BATCH };

struct ki_held {
    enum kind kind;
    void *thing;
};

static void release(const struct ki_held *held) {
    switch (held->kind) {
    case MATRIX: kiln_matrix_free(held->thing); break;
    case BATCH: kiln_batch_free(held->thing); break;
    default: ki_free(held->thing);
    }
}

/* The arena's, or freed at once where there is no room to write it down. */
static void *hold(struct ki_arena *arena, enum kind kind, void *thing) {
    const struct ki_held held = {kind, thing};
    const int64_t count = arena->count;
    if ((count & (count - 1)) == 0) {
        const size_t bytes = (size_t)ki_max(2 * count, 1) * sizeof held;
        struct ki_held *grown = ki_resize(arena->held, bytes);
        if (!grown) {
            release(&held);
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
    return arena->status == KILN_OK ? hold(arena, MATRIX, A) : NULL;
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
    return arena->status == KILN_OK ? hold(arena, MATRIX, A) : NULL;
}

void *ki_arena_room(struct ki_arena *arena, int64_t count, size_t size) {
    int64_t bytes = 0;
    void *memory = NULL;
    if (arena->status != KILN_OK) return NULL;
    if (ki_mul(count, (int64_t)size, &bytes)) memory = ki_alloc((size_t)bytes);
    if (!memory) arena->status = ki_fail_nomem(bytes ? (size_t)bytes : SIZE_MAX, "a method's numbers");
    return memory ? hold(arena, MEMORY, memory) : NULL;
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

static kiln_status take(struct ki_arena *arena, enum kind kind, void *thing, kiln_status made) {
    if (made != KILN_OK) return arena->status = made;
    hold(arena, kind, thing);
    return arena->status;
}

kiln_status ki_arena_take(struct ki_arena *arena, kiln_matrix *const *A, kiln_status made) {
    return take(arena, MATRIX, *A, made);
}

kiln_status ki_arena_take_batch(struct ki_arena *arena, kiln_batch *const *pieces, kiln_status made) {
    return take(arena, BATCH, *pieces, made);
}

kiln_matrix *ki_arena_give(struct ki_arena *arena, kiln_matrix *A) {
    for (int64_t i = 0; i < arena->count; i++)
        if (arena->held[i].thing == A) arena->held[i].thing = NULL;
    return A;
}

void ki_arena_drop(struct ki_arena *arena, kiln_matrix *A) {
    kiln_matrix_free(ki_arena_give(arena, A));
}

kiln_status ki_arena_free(struct ki_arena *arena, kiln_status status) {
    while (arena->count > 0) release(&arena->held[--arena->count]);
    ki_free(arena->held);
    *arena = (struct ki_arena){0};
    return status;
}
