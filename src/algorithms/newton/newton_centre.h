/* The centre c of an intercept's penalty moves so that the penalised problem's intercept b(c) comes to be c
 * itself: see newton_dual.c. */
#ifndef KI_NEWTON_CENTRE_H
#define KI_NEWTON_CENTRE_H

#include "algorithms/run/arena.h"

struct ki_centre {
    int64_t k, moves;
    double *now;            /* k: c */
    double *former, *left;  /* k each: c before the last move, and b(c) - c there */
    double *step, *change;  /* DEPTH x k: of the last moves, what c and b(c) - c changed by */
    double *across, *along; /* DEPTH x k: room */
    double *move, *lag;     /* k each: likewise */
};

void ki_centre_open(struct ki_centre *centre, struct ki_arena *arena, int64_t k);
/* Returns how many numbers lie from `now` on: all that it knows, beside `moves`. */
int64_t ki_centre_size(int64_t k);
/* c = 0, and no moves. */
void ki_centre_begin(struct ki_centre *centre);
/* Moves c, and b with it. */
void ki_centre_move(struct ki_centre *centre, double *b);

#endif
