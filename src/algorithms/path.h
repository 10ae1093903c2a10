/* Models along a path of penalties, in folds (kiln_path): what the driver, path.c, and an algorithm with a
 * way of its own share. */
#ifndef KI_PATH_H
#define KI_PATH_H

#include "algorithms/run/run.h"

struct ki_path;

/* Holds what kiln_path has to know of an algorithm. */
struct ki_path_rule {
    kiln_status (*train)(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                         const void *options, kiln_report *report);
    const struct ki_layout *layout;              /* of its options struct */
    size_t weights, warm_start, control, errors; /* offsets in it; 0: it has no such field */
    kiln_status (*together)(
        bool *, struct ki_path *); /* trains all models, unless *done = false; NULL: it has no such way */
};

struct ki_path {
    struct ki_run run; /* its problems are the folds, and all that a checkpoint holds is how many are done */
    const struct ki_path_rule *rule;
    const kiln_algorithm *shown;
    kiln_path_options asked;
    char *options; /* the algorithm's own; the driver sets penalties, weights and warm_start for each model */
    const kiln_matrix *X, *y;
    int64_t k;
    double *weights;      /* m, of the rows; NULL: ones */
    kiln_matrix *trained; /* m x 1: the weights of a fold */
    bool cut;             /* a model has ended at its limit: the checkpoint stays at the first such fold */
    kiln_control control; /* the caller's, with his checkpoint, which those of the models do not bring */
};

/* The weights of the rows that fold f trains on. room: m numbers. */
kiln_status ki_path_weigh(kiln_matrix *weights, double *room, const struct ki_path *path, int64_t f);
/* The strengths of value v's penalties; l1 0 where the algorithm has none. */
double ki_path_l2(const struct ki_path *path, int64_t v);
double ki_path_l1(const struct ki_path *path, int64_t v);
/* Trains fold f one model after the other. */
kiln_status ki_path_fold(struct ki_path *path, int64_t f);
/* fold(of, f) for all folds that are not done. */
kiln_status ki_path_each(struct ki_path *path, kiln_status (*fold)(void *of, int64_t f), void *of);
/* All models of a fold to the caller, from the host: W n x (count k), b count k, reports count.
 * ERR_CANCELLED: the caller has ended the path. */
kiln_status ki_path_give_fold(struct ki_path *path, int64_t f, const double *W, const double *b,
                              kiln_report *reports);
/* The error of a path that the caller has ended, in `take` or by the progress of the options' control. */
kiln_status ki_path_stopped(void);

/* ---- path_walks.c ---- */

struct ki_walk;

struct ki_path_walks {
    const struct ki_path *path;
    struct ki_walk *walk; /* its A becomes the sum */
    int64_t folds;        /* 1 without any */
    double *parts, *room; /* folds x size x size: the walks; m */
    kiln_matrix *rows;    /* m x 1: weights of a fold's rows */
};

/* The progress callback of the options' control, with the seconds since the path began; ERR_CANCELLED where
 * it ends the path. */
kiln_status ki_path_told(const struct ki_path *path, const kiln_progress *now);
/* The arena's room for the walks and in `walk`, whose n and size are set; for the rows alone, where there
 * are to be no walks. */
void ki_path_walks_open(struct ki_path_walks *walks, struct ki_arena *arena, const struct ki_path *path,
                        struct ki_walk *walk);
void ki_path_rows_open(struct ki_path_walks *walks, struct ki_arena *arena, const struct ki_path *path);
/* Each fold's sums over the rows that it holds out, weighted (m x 1; NULL: ones), or over all where there
 * are no folds. */
kiln_status ki_path_walk(struct ki_path_walks *walks, const kiln_matrix *y, const kiln_matrix *weights,
                         bool intercept);
/* walk->A = the sums over the rows that fold f trains on. */
void ki_path_add_up(struct ki_path_walks *walks, int64_t f);

/* ---- ways of their own ---- */

/* newton/newton_path_kinds.c */
kiln_status ki_logreg_together(bool *done, struct ki_path *path);
kiln_status ki_glm_together(bool *done, struct ki_path *path);
kiln_status ki_svm_together(bool *done, struct ki_path *path);
/* linreg/linreg_path.c */
kiln_status ki_linreg_together(bool *done, struct ki_path *path);

#endif
