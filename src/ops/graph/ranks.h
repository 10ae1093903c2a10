/* Checked steps of PageRank's power iteration, see kiln_ranks in kiln.h. */
#ifndef KI_RANKS_H
#define KI_RANKS_H

#include "derived/links.h"

enum { KI_RANKS_COLUMNS = 64 }; /* rankings at once, at most */

struct ki_ranks {
    kiln_ranks on;
    struct ki_links in; /* the links by where they lead; not in the beginning */
};

/* ranks_gpu.c; checked and held. */
kiln_status ki_ranks_begin_gpu(const struct ki_ranks *ranks);
kiln_status ki_ranks_steps_gpu(const struct ki_ranks *ranks, int64_t first, int64_t count);

#endif
