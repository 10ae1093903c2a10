/* Threads that read a matrix's rows from its file into one of two places while the other is in use. */
#ifndef KI_FEEDER_H
#define KI_FEEDER_H

#include "core/matrix.h"

enum { KI_SLOTS = 2 };

/* Rows of a matrix. */
struct ki_panel {
    int64_t first, rows;    /* of the matrix */
    int64_t begin, entries; /* where their entries begin, and how many they are */
};

struct ki_feeder;

/* Panel i goes to places[i % KI_SLOTS], values and columns. Panels and places must stay until the end. Reading begins. */
kiln_status ki_feeder_start(struct ki_feeder **feeder, const kiln_matrix *A, const struct ki_panel *panels,
                            int64_t count, void *places[KI_SLOTS][KI_PARTS]);
/* Waits until panel i is there; says why it never will be. */
kiln_status ki_feeder_wait(struct ki_feeder *feeder, int64_t i);
/* Panel i's place may be filled with another. */
void ki_feeder_done(struct ki_feeder *feeder, int64_t i);
void ki_feeder_stop(struct ki_feeder *feeder); /* NULL is allowed */

#endif
