/* Checked steps of PageRank's power iteration, see kiln_ranks in kiln.h. */
#ifndef KI_RANKS_H
#define KI_RANKS_H

#include "derived/links.h"
#include "pass/roles.h"

enum {
    KI_RANKS_COLUMNS = 64,
    KI_RANKS_BEGIN = -1
}; /* rankings at once, at most; the slot of the beginning */

/* On a device by itself sums[0] is NULL. On a group each member has the vertices that `place` says: their
 * rows of P, factor, teleport and dangling; all of C and next, of which it writes its rows; all of S. A
 * step's number tells which of `sums` is written. */
struct ki_ranks {
    kiln_ranks on;
    struct ki_links in; /* the links by where they lead; not in the beginning */
    struct ki_offset place;
    kiln_matrix *sums[2]; /* members x 2 k: what each member's vertices add up to, mass and then change */
    int64_t first, count; /* steps */
};

/* ranks_gpu.c; checked and held. Each leaves the sums of its vertices: on a group in a row of ranks->sums,
 * elsewhere in S. */
kiln_status ki_ranks_begin_gpu(const struct ki_ranks *ranks);
kiln_status ki_ranks_steps_gpu(const struct ki_ranks *ranks, int64_t first, int64_t count);
/* S after all members have left their sums of step `number`, or of the beginning. */
kiln_status ki_ranks_settle_gpu(const struct ki_ranks *ranks, int64_t number);

/* ranks_group.c: the same by the members of a group. */
kiln_status ki_ranks_share(const struct ki_ranks *ranks);
/* ranks.c: one of these on one device, which it holds. */
kiln_status ki_ranks_run(const struct ki_ranks *ranks, int64_t first, int64_t count);
kiln_status ki_ranks_settle(const struct ki_ranks *ranks, int64_t number);

/* ranks_stream.c: the same where the device has no room for A and its links beside the ranks, or A lies in a
 * file; checked. */
bool ki_ranks_streams(const kiln_ranks *on);
kiln_status ki_ranks_stream(const struct ki_ranks *ranks, int64_t first, int64_t count);

#endif
