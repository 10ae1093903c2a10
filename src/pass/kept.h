/* Panels of a streamed X that stay on the device between passes: the first ones, as many as there is room for
 * beside what passes take, so that only the others are moved (pass/stream.c). */
#ifndef KI_KEPT_H
#define KI_KEPT_H

#include "core/feeder.h"

struct ki_kept {
    int64_t target;         /* bytes by which X is cut into panels */
    int64_t most, count;    /* that there is room for, and that have come */
    int64_t bytes;          /* of the former */
    struct ki_buffer *part; /* most x KI_PARTS */
};

/* Returns what X has; NULL: nothing. Held matrices (core/memory.h) keep it. */
struct ki_kept *ki_kept_get(const kiln_matrix *X);
/* Before a pass over X, cut into panels: makes room where passes before have left some. *kept: NULL where
 * none stays. Kept blocks are allocated, and filled by the pass. Until the end the device's statistics have
 * the pass's own peak. */
kiln_status ki_kept_begin(struct ki_kept **kept, const kiln_matrix *X, const struct ki_panel *panels,
                          int64_t count, int64_t target);
/* After the pass, `whole` if it went well: notes what it took beside kept panels. */
void ki_kept_end(const kiln_matrix *X, bool whole);
/* Nothing stays, in this pass; what it took so far does not count. */
void ki_kept_drop(const kiln_matrix *X);

#endif
