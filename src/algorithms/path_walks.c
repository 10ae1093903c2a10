/* Sums over the rows of every fold, for ways that train a path's models together.
 *
 * A walk for each fold takes the rows that it holds out, so that all walks are one over X. What a fold trains
 * on is the sum of the other folds' walks: sums of squares add up, and nothing cancels, as it would where a
 * fold's own were taken off the whole. */
#include "algorithms/linreg/linreg.h"
#include "algorithms/path.h"

kiln_status ki_path_told(const struct ki_path *path, const kiln_progress *now) {
    const kiln_control *control = path->run.control;
    kiln_progress told = *now;
    told.seconds = ki_clock() - path->run.start;
    return control->progress && control->progress(control->user, &told) ? ki_path_stopped() : KILN_OK;
}

void ki_path_rows_open(struct ki_path_walks *walks, struct ki_arena *arena, const struct ki_path *path) {
    *walks = (struct ki_path_walks){.path = path,
                                    .folds = ki_max(path->asked.folds, 1),
                                    .room = ki_arena_reals(arena, kiln_matrix_rows(path->X)),
                                    .rows = ki_arena_rows(arena, path->X, 1)};
}

void ki_path_walks_open(struct ki_path_walks *walks, struct ki_arena *arena, const struct ki_path *path,
                        struct ki_walk *walk) {
    const int64_t square = walk->size * walk->size;
    ki_path_rows_open(walks, arena, path);
    walks->walk = walk;
    walks->parts = ki_arena_reals(arena, walks->folds * square);
    walk->A = ki_arena_reals(arena, square);
    walk->origin = ki_arena_reals(arena, walk->size);
}

/* The weights of the rows that fold f holds out. Which these are is as good as random: nothing branches on
 * it. */
static kiln_status walks_hold(struct ki_path_walks *walks, const kiln_matrix *weights, int64_t f) {
    kiln_status status = KILN_OK;
    const int32_t *fold = walks->path->asked.fold;
    const int64_t m = kiln_matrix_rows(walks->rows);
    double *room = walks->room;
    for (int64_t i = 0; !weights && i < m; i++) room[i] = 1;
    if (weights) TRY(ki_vector_get(room, weights));
    for (int64_t i = 0; i < m; i++) {
        const double weight = room[i];
        room[i] = fold[i] == f ? weight : 0;
    }
    TRY(ki_vector_set(walks->rows, room));
done:
    return status;
}

kiln_status ki_path_walk(struct ki_path_walks *walks, const kiln_matrix *y, const kiln_matrix *weights,
                         bool intercept) {
    kiln_status status = KILN_OK;
    const struct ki_path *path = walks->path;
    const bool folded = path->asked.fold != NULL;
    struct ki_walk walk = *walks->walk;
    for (int64_t f = 0; f < walks->folds; f++) {
        TRY(ki_path_told(path, &(kiln_progress){.phase = "fold",
                                                .done = f,
                                                .total = walks->folds,
                                                .objective = (double)NAN,
                                                .residual = (double)NAN}));
        if (folded) TRY(walks_hold(walks, weights, f));
        walk.A = walks->parts + f * walk.size * walk.size;
        TRY(ki_walk_sums(&walk, path->X, y, folded ? walks->rows : weights, intercept));
    }
done:
    return status;
}

void ki_path_add_up(struct ki_path_walks *walks, int64_t f) {
    const int64_t square = walks->walk->size * walks->walk->size;
    double *A = walks->walk->A;
    memset(A, 0, (size_t)square * sizeof *A);
    for (int64_t g = 0; g < walks->folds; g++) {
        if (g == f && walks->path->asked.fold) continue;
        for (int64_t i = 0; i < square; i++) A[i] += walks->parts[g * square + i];
    }
}
