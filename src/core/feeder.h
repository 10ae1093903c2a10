/* Threads that read a matrix's rows from its file into places that are free while others are in use. */
#ifndef KI_FEEDER_H
#define KI_FEEDER_H

#include "core/matrix.h"

/* Places for panels: where passes take them from, and where a device that moves them on has them read to. */
enum { KI_SLOTS = 2, KI_AHEAD = 4 };

/* Rows of a matrix. */
struct ki_panel {
    int64_t first, rows;    /* of the matrix */
    int64_t begin, entries; /* where their entries begin, and how many they are */
};

struct ki_feeder;

/* Panel i goes to places[i % slots], values and columns; slots <= KI_AHEAD. Panels must stay until the end.
 * Reading begins. */
kiln_status ki_feeder_start(struct ki_feeder **feeder, const kiln_matrix *A, const struct ki_panel *panels,
                            int64_t count, void *places[][KI_PARTS], int slots);
/* Waits until panel i is there; says why it never will be. */
kiln_status ki_feeder_wait(struct ki_feeder *feeder, int64_t i);
/* Panel i's place may be filled with another. */
void ki_feeder_done(struct ki_feeder *feeder, int64_t i);
void ki_feeder_stop(struct ki_feeder *feeder); /* NULL is allowed */

#endif
