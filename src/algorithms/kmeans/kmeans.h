/* This header has what the parts of K-Means share: the run's state; how it begins (kmeans_start.c), goes on
 * by batches (kmeans_batch.c), fills empty clusters (kmeans_empty.c), is stopped and goes on
 * (kmeans_state.c), and what its models are for (kmeans_model.c). */
#ifndef KI_KMEANS_H
#define KI_KMEANS_H

#include "algorithms/run/run.h"

enum {
    KI_PIECE = 4096, /* rows, one of which is drawn on the host */
    KI_CLUSTER = 3   /* columns of options.clusters */
};

struct kmeans {
    struct ki_run run;
    const kiln_matrix *X;        /* spherical: with rows of length 1 */
    kiln_kmeans_options options; /* defaults filled in */
    kiln_device *device;
    kiln_type type;
    int64_t m, n, k;
    kiln_matrix *C, *sums;      /* k x n */
    kiln_matrix *means, *per;   /* k x n: where C goes; k x 1: numbers of the centres */
    double *centres, *next;     /* k x n: C, and what it becomes */
    double *totals;             /* k x 2, as kiln_assign has them */
    double *found;              /* the same of the centres that a start ends with */
    double *best, *best_totals; /* of the restarts */
    kiln_bounds *bounds;        /* of this start; NULL: every pass measures all distances */
    kiln_matrix *running; /* sums and totals that the bounds hold; NULL: no pass of this start was made */
    double scale;         /* mean variance of X's columns */
    struct ki_draws draws;
    int64_t round;             /* mini-batches in this start */
    double *seen, mean;        /* of them: weights that the centres have seen; see kmeans_batch.c */
    double smooth[2];          /* with patience: the smoothed inertia, and its least value so far */
    int64_t idle;              /* and the batches since then */
    int64_t tired, best_tired; /* whether patience ended this start, and the best one */
    int64_t adding;            /* whether there are `running` sums */
    bool cut;                  /* before this start had its first centres */
    int64_t different;         /* rows of weight above 0, k at most; 0: not counted yet */
    int64_t relocated, filled; /* filled: centres that got rows in the last pass */
};

/* Bounds for a start, where there are some, and they are asked for or pay; _close: the report says what they
 * saved. */
kiln_status ki_kmeans_open_bounds(struct kmeans *s);
void ki_kmeans_close_bounds(struct kmeans *s);
kiln_status ki_kmeans_start(struct kmeans *s); /* s->C */
/* Iterations on rows drawn at random, to the end of the start; in a run that goes on, from where it was. */
kiln_status ki_kmeans_batches(struct kmeans *s);
/* Centres without rows get some: corrects s->next, which are sums, and s->totals. *moved: how many. */
kiln_status ki_kmeans_fill(struct kmeans *s, int64_t *moved);
kiln_status ki_kmeans_different(struct kmeans *s); /* counts s->different, once */

/* sums, totals and objective of X, or of a batch, for the centres s->C. */
kiln_status ki_kmeans_assign(struct kmeans *s, const kiln_matrix *X, const kiln_matrix *weights);
/* s->C = s->next, which is narrowed on the way; what the centres then are goes to s->centres. */
kiln_status ki_kmeans_move(struct kmeans *s);
/* The centre c of s->next as C will hold it, scaled to length 1 if the run is spherical; what the squares of
 * its move add up to. */
double ki_kmeans_place(struct kmeans *s, int64_t c);
/* A pass: s->means, s->found and the objective of the centres; how far they are from the means, but for
 * rounding: sum of squares; s->filled. */
kiln_status ki_kmeans_means(struct kmeans *s, double *moved);
/* Squared moves, added up, as a residual: over the mean variance of X's columns. */
static inline double ki_kmeans_residual(const struct kmeans *s, double moved) {
    return s->scale > 0 ? moved / s->scale : moved;
}
/* report.stopped_by, by the residual and the rest after an iteration. */
void ki_kmeans_judge(struct kmeans *s);
/* After an iteration, when report.stopped_by says whether it was the last: the checkpoint. Its state: of C,
 * of what C becomes, and of the starts before. */
kiln_status ki_kmeans_keep(struct kmeans *s);
/* The same in a start, after a draw of k-means++: so many of its k rows are chosen, and each row's distance
 * from all of these but the last. */
struct kmeans_drawn {
    int64_t *count, *rows;
    kiln_matrix *distances;
};
kiln_status ki_kmeans_keep_start(struct kmeans *s, const struct kmeans_drawn *drawn);
/* Takes the state of a start, where one waits; `drawn` stays as it is otherwise. */
kiln_status ki_kmeans_resume_start(struct kmeans *s, const struct kmeans_drawn *drawn);
/* The state of a run, for its end of an iteration; and takes one that waits. Of a state in a start the number
 * of the start alone. */
enum { KI_KMEANS_STATE = 19 };
void ki_kmeans_state(struct ki_state state[KI_KMEANS_STATE], struct kmeans *s);
kiln_status ki_kmeans_resume(struct kmeans *s);
/* A line of the trace: of the centres that the report's objective and `moved` belong to. */
kiln_status ki_kmeans_row(struct kmeans *s, double moved);
/* The numbers of m rows, `rows` of them a piece, of which the last may have fewer. */
kiln_status ki_kmeans_pieces(kiln_batch **pieces, struct ki_arena *arena, const struct kmeans *s, int64_t m,
                             int64_t rows);
/* *U = X with rows of length 1; rows of zeros stay. */
kiln_status ki_kmeans_unit(kiln_matrix **U, const kiln_matrix *X);

#endif
