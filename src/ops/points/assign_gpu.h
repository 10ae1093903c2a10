/* The halves of kiln_assign on GPUs share this: labels (assign_gpu.c) and sums (assign_sums.c). */
#ifndef KI_ASSIGN_GPU_H
#define KI_ASSIGN_GPU_H

#include "derived/parts.h"
#include "ops/points/assign.h"

enum { KI_ASSIGN_GROUP = 128 };

/* The GPU's work space. */
struct ki_assign_space {
    const struct ki_assign *of;
    kiln_device *device;
    int64_t rows, n, k;
    int64_t entries; /* that are added up: rows, or with `corrects` those that left a centre or came to one */
    bool corrects;   /* the sums of the pass before */
    const struct ki_buffer *row_start, *col;  /* NULL: X is dense */
    struct ki_buffer half, state, transposed; /* of the centres; transposed for a sparse X */
    struct ki_sort data, other;               /* key: each row's centre; payload: the row */
    struct ki_buffer narrow, scales, lost;    /* of the centres, as halves (assign_screen.cl) */
    struct ki_buffer slabs, share;            /* and as assign_wide.cl has them */
    bool measured;                            /* labels come with distances, if `apart` is there */
    struct ki_buffer apart;                   /* ||x - c||^2 of each row and its centre (assign_lines) */
    struct ki_buffer start, partial, totals;  /* of the clusters */
};

/* Says how rows are added up: groups or lines of threads with sums of their own, or pieces of sorted rows. */
struct ki_assign_sums {
    int group, across;     /* own, lines: threads; those for columns */
    int tile, shares;      /* own: rows at a time; threads for a column */
    int lines;             /* 0: another way */
    int64_t bytes;         /* own, lines: of local memory; 0: pieces */
    int64_t groups, piece; /* groups; rows of a piece */
};

/* A launch for `count` elements in groups of `group`; a thread takes several of many. */
kiln_status ki_assign_launch(const struct ki_assign_space *s, const char *file, const char *function,
                             const char *defines, int64_t count, int group, const struct ki_arg *args,
                             int args_count);

/* Finds how the rows of s are best added up. */
void ki_assign_plan(struct ki_assign_sums *to, const struct ki_assign_space *s);
/* Returns whether that is by rows in the order of their labels: the launches before leave rows' numbers in
 * s->data.payload, unless there is a list. */
bool ki_assign_sorts(const struct ki_assign_sums *how);
/* Sums and totals, from the labels in s->data.key. */
kiln_status ki_assign_add_up(struct ki_assign_space *s, struct ki_assign_sums *how);

/* With bounds (assign_moved.c): whether the sums of the pass before are corrected, if as few rows change as
 * then. */
bool ki_assign_corrects(const struct ki_assign *of);
/* When labels are found: which rows have changed. s->corrects, and s->data is the list of them; or it stays
 * as it is. */
kiln_status ki_assign_look(struct ki_assign_space *s);
/* Before sums are corrected: the distances follow the centres. Else these are kept. */
kiln_status ki_assign_follow(const struct ki_assign_space *s);

#endif
