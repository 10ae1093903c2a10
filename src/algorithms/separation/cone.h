/* Directions that no row speaks against: d with a . d >= 0 for every row a, and = 0 for some of them. See
 * cone.c. */
#ifndef KI_CONE_H
#define KI_CONE_H

#include "algorithms/algorithm.h"

enum ki_cone_row {
    KI_CONE_DEMAND, /* a . d >= 0 */
    KI_CONE_TIE,    /* a . d = 0: its part of the basis is taken */
    KI_CONE_GONE    /* nothing is asked any more */
};

struct ki_cone {
    int64_t dims, count, room;
    double *rows;  /* count x dims, each of length 1 */
    int64_t *name; /* count: the caller's */
    char *state;   /* count: an enum ki_cone_row */
    double *basis; /* rank x dims, orthonormal: what ties span */
    int64_t rank;
    double nothing; /* a length beside 1 that is rounding of the rows' entries */
};

kiln_status ki_cone_open(struct ki_cone *cone, int64_t dims, double nothing);
void ki_cone_close(struct ki_cone *cone);
/* A row of dims numbers, of any length but 0, which is no row. */
kiln_status ki_cone_add(struct ki_cone *cone, const double *row, int64_t name, enum ki_cone_row state);
double ki_cone_gain(const struct ki_cone *cone, int64_t i, const double *d);
/* From now on directions are asked for across d, of length 1. */
void ki_cone_leave_out(struct ki_cone *cone, const double *d);

enum ki_cone_answer {
    KI_CONE_NONE,     /* every row that demands is 0 in all directions that are left: they have become ties */
    KI_CONE_FOUND,    /* d, of length 1: no row loses more than *blur, and one gains more */
    KI_CONE_UNDECIDED /* rounding, or too many steps */
};
/* Cost: at most about dims steps, each of 2 count dims flops. */
kiln_status ki_cone_solve(enum ki_cone_answer *answer, double *d, double *blur, struct ki_cone *cone);
/* d, of length 1: a direction at random across all ties; false: they span everything. */
bool ki_cone_across(double *d, const struct ki_cone *cone);

#endif
